// Flags: every accepted form, every mistake's line, and the help.
#include "flags.h"

#include <unistd.h>

#include "log.h"
#include "program.h"

namespace {

struct Options {
  int width = 64;
  int64_t steps = 1000;
  float learning_rate = 3e-4f;
  bool shuffle = true, head_gate = false;
  std::string out = "out", fusion = "gate";
  Flags flags{"train", "Trains a full-bandwidth transformer."};

  Options() {
    flags.section("Model");
    flags.add("width", &width, "model width D", 1, 65536);
    flags.choice("fusion", &fusion, {"none", "gate", "concat", "add"}, "how the carried state enters");
    flags.add("head-gate", &head_gate, "a gate on each head's output");
    flags.section("Training");
    flags.add("steps", &steps, "optimizer steps", 0);
    flags.add("learning-rate", &learning_rate, "peak learning rate", 0, 10);
    flags.add("shuffle", &shuffle, "shuffle the documents");
    flags.add("out", &out, "folder for checkpoints and logs");
  }

  void parse(std::vector<std::string> words) {
    words.insert(words.begin(), "train");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    flags.parse(int(argv.size()), argv.data());
  }
};

std::string refusal(const std::vector<std::string>& words) {
  return message_of([&] { Options().parse(words); });
}

std::string config_refusal(const std::string& lines) {  // without the file's path
  Scratch folder;
  put(folder / "run.conf", lines);
  std::string message = refusal({"--config", folder / "run.conf"});
  size_t at = message.find("run.conf");
  return at == std::string::npos ? message : message.substr(at);
}

TEST(Flags, BothFormsOfAValueAreTaken) {
  Options o;
  o.parse({"--width", "128", "--steps=5", "--learning-rate", "1e-3", "--out=a=b", "--fusion", "add"});
  EXPECT_EQ(o.width, 128);
  EXPECT_EQ(o.steps, 5);
  EXPECT_EQ(o.learning_rate, 1e-3f);
  EXPECT_EQ(o.out, "a=b");
  EXPECT_EQ(o.fusion, "add");
  EXPECT_TRUE(o.flags.given("width") && o.flags.given("learning_rate"));
  EXPECT_FALSE(o.flags.given("shuffle"));
}

TEST(Flags, WithoutWordsDefaultsStay) {
  Options o;
  o.parse({});
  EXPECT_EQ(o.width, 64);
  o.flags.parse(0, nullptr);
  EXPECT_EQ(o.out, "out");
}

TEST(Flags, NamesMayHaveDashesOrUnderscores) {
  Options o;
  o.parse({"--learning_rate", "0.5", "--head_gate"});
  EXPECT_EQ(o.learning_rate, 0.5f);
  EXPECT_TRUE(o.head_gate);
}

TEST(Flags, BooleansStandAloneNegatedOrWithAWord) {
  for (std::vector<std::string> on :
       {std::vector<std::string>{"--head-gate"}, {"--head-gate=true"}, {"--head-gate", "true"}, {"--head-gate=1"}}) {
    Options o;
    o.parse(on);
    EXPECT_TRUE(o.head_gate);
  }
  for (std::vector<std::string> off :
       {std::vector<std::string>{"--no-shuffle"}, {"--shuffle=false"}, {"--shuffle", "false"}, {"--no_shuffle"}}) {
    Options o;
    o.parse(off);
    EXPECT_FALSE(o.shuffle);
  }
  EXPECT_EQ(refusal({"--shuffle=maybe"}), "--shuffle: `maybe` is neither true nor false");
  EXPECT_EQ(refusal({"--no-shuffle=true"}), "--no-shuffle takes no value");
  EXPECT_EQ(refusal({"--no-width"}), "--no-width: --width has a value and cannot be turned off");
}

TEST(Flags, AValueMayBeginWithADash) {
  int n = 0;
  float x = 0;
  std::string s;
  Flags flags("p", "");
  flags.add("n", &n, "");
  flags.add("x", &x, "");
  flags.add("s", &s, "");
  std::string words[] = {"p", "--n", "-3", "--x", "-.5e-1", "--s", "- a list"};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  flags.parse(int(argv.size()), argv.data());
  EXPECT_TRUE(flags.has("x") && !flags.has("y") && !flags.has("help"));
  EXPECT_EQ(n, -3);
  EXPECT_EQ(x, -0.05f);
  EXPECT_EQ(s, "- a list");
}

TEST(Flags, WordsOfNoFlagAreTakenWhereTheyAreWanted) {
  auto words_of = [](std::vector<std::string> given, size_t most = SIZE_MAX) {
    std::vector<std::string> words;
    bool raw = false;
    int n = 0;
    Flags flags("p", "");
    flags.words("INPUT...", &words, "inputs", most);
    flags.add("raw", &raw, "");
    flags.add("n", &n, "");
    given.insert(given.begin(), "p");
    std::vector<char*> argv;
    for (auto& word : given) argv.push_back(word.data());
    flags.parse(int(argv.size()), argv.data());
    EXPECT_EQ(flags.values().size(), 2u) << "they are no flag";
    EXPECT_TRUE(has(flags.help(), "Usage: p INPUT... [--flag") && has(flags.help(), "  INPUT...")) << flags.help();
    return words;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of({}), Words());
  EXPECT_EQ(words_of({"a", "--n", "3", "b", "--raw", "c", "-"}), (Words{"a", "b", "c", "-"}));
  EXPECT_EQ(words_of({"--raw", "--", "--n", "-x", "--help", "--"}), (Words{"--n", "-x", "--help", "--"}));
  EXPECT_EQ(words_of({""}), (Words{""}));
  EXPECT_EQ(message_of([&] { words_of({"a", "b"}, 1); }), "stray word `b`: at most 1 stands here");
  EXPECT_EQ(message_of([&] { words_of({"a", "-x"}); }), "unknown flag --x; --help lists the flags");
  EXPECT_EQ(refusal({"a"}), "stray word `a`; a value follows its flag, as in --name value");
}

TEST(Flags, AValueMayBeDashH) {
  Options o;
  o.parse({"--out", "-h", "--width", "5"});
  EXPECT_EQ(o.out, "-h");
  EXPECT_EQ(refusal({"--config", "-h"}), "cannot read -h: No such file or directory");
}

TEST(Flags, AValueMayBeEmpty) {
  Options o;
  o.parse({"--out="});
  EXPECT_EQ(o.out, "");
  Options p;
  p.parse({"--out", ""});
  EXPECT_EQ(p.out, "");
  EXPECT_EQ(refusal({"--width="}), "--width: `` is not a whole number, written in digits");
}

TEST(Flags, AnUnknownFlagIsToldTheNearestKnownOne) {
  EXPECT_EQ(refusal({"--widht", "3"}), "unknown flag --widht; did you mean --width?");
  EXPECT_EQ(refusal({"--learning_rat=3"}), "unknown flag --learning_rat; did you mean --learning-rate?");
  EXPECT_EQ(refusal({"--no-shufle"}), "unknown flag --no-shufle; did you mean --no-shuffle?");
  EXPECT_EQ(refusal({"-widht", "3"}), "unknown flag --widht; did you mean --width?");
  EXPECT_EQ(refusal({"--zebra"}), "unknown flag --zebra; --help lists the flags");
  EXPECT_EQ(refusal({"--confg", "x"}), "unknown flag --confg; did you mean --config?");
  EXPECT_TRUE(has(refusal({"--=3"}), "unknown flag"));
}

TEST(Flags, AFlagWithAnotherDashIsToldThatFlagsHaveTwo) {
  EXPECT_EQ(refusal({"-width", "3"}), "-width: flags have two dashes: --width");
  EXPECT_EQ(refusal({"-width=3"}), "-width=3: flags have two dashes: --width=3");
  EXPECT_EQ(refusal({"-learning_rate", "3"}), "-learning_rate: flags have two dashes: --learning_rate");
  EXPECT_EQ(refusal({"-no-shuffle"}), "-no-shuffle: flags have two dashes: --no-shuffle");
  EXPECT_EQ(refusal({"-config", "f"}), "-config: flags have two dashes: --config");
  EXPECT_EQ(refusal({"-help"}), "-help: flags have two dashes: --help");
  for (const char* dash : {"–", "—", "−"})  // as text editors make of two
    EXPECT_EQ(refusal({std::string(dash) + "width", "3"}), std::string(dash) + "width: flags have two dashes: --width");
  EXPECT_TRUE(has(refusal({"—zebra"}), "stray word `—zebra`"));
}

TEST(Flags, WhatOtherTrainersCallAFlagNamesOurs) {
  int batch = 1;
  float lr = 1;
  Flags flags("train", "Trains.");
  flags.add("batch", &batch, "rows"), flags.add("lr", &lr, "rate");
  auto refusal = [&](const char* word) {
    char program[] = "train";
    std::string typed = word;
    char* words[] = {program, typed.data()};
    return message_of([&] { flags.parse(2, words); });
  };
  EXPECT_EQ(refusal("--learning-rate"), "unknown flag --learning-rate; did you mean --lr?");
  EXPECT_EQ(refusal("--learning_rate=3"), "unknown flag --learning_rate; did you mean --lr?");
  EXPECT_EQ(refusal("--batch-size"), "unknown flag --batch-size; did you mean --batch?");
  EXPECT_EQ(refusal("--n-layer"), "unknown flag --n-layer; --help lists the flags") << "this program has no --layers";
}

TEST(Flags, VersionIsShownWhateverElseIsWrong) {
  int n = 1;
  Flags flags("train", "Trains.");
  flags.add("n", &n, "a number");
  char program[] = "train", wrong[] = "--nn", version[] = "--version";
  char* words[] = {program, wrong, version};
  EXPECT_EXIT((flags.parse(3, words), std::exit(1)), testing::ExitedWithCode(0), "") << "on standard output";
}

TEST(Flags, EveryProgramSaysItsVersionAndTheKernelsThatItHas) {
  for (const char* program : {"train", "sample", "eval", "tokenize", "bench"}) {
    Ran ran = run(program, {"--version"});
    EXPECT_EQ(ran.status, 0) << program << ran.err;
    EXPECT_EQ(lines_of(ran.out).size(), 1u) << program << ran.out;
    EXPECT_EQ(ran.out.rfind("Fullband ", 0), 0u) << program << ran.out;
    EXPECT_TRUE(has(ran.out, "CUDA; built by ")) << program << ran.out;
    EXPECT_EQ(ran.out, run("train", {"--version"}).out) << program;
    Ran help = run(program, {"-h"});
    EXPECT_EQ(help.status, 0) << program << help.err;
    EXPECT_EQ(help.out, run(program, {"--help"}).out) << program;
  }
}

TEST(Flags, AStrayWordIsNamed) {
  EXPECT_TRUE(has(refusal({"--width", "3", "more"}), "stray word `more`"));
  EXPECT_TRUE(has(refusal({"--shuffle", "yes"}), "stray word `yes`"));
  EXPECT_TRUE(has(refusal({""}), "stray word ``"));
  EXPECT_TRUE(has(refusal({"--"}), "stray word `--`"));
  EXPECT_TRUE(has(refusal({"-"}), "stray word `-`"));
}

TEST(Flags, AMissingValueIsNamed) {
  EXPECT_EQ(refusal({"--width"}), "--width needs a value");
  EXPECT_EQ(refusal({"--out", "--width", "3"}), "--out needs a value (if `--width` is meant, write --out=--width)");
  EXPECT_EQ(refusal({"--out", "-- a folder"}),
            "--out needs a value (if `-- a folder` is meant, write --out='-- a folder')");
  EXPECT_EQ(refusal({"--config"}), "--config needs a value");
}

TEST(Flags, AFlagGivenTwiceIsAMistake) {
  EXPECT_EQ(refusal({"--width", "3", "--width=4"}), "--width is given twice");
  EXPECT_EQ(refusal({"--head-gate", "--no-head_gate"}), "--no-head_gate is given twice");
  EXPECT_EQ(refusal({"--config=a", "--config=b"}), "--config is given twice");
}

TEST(Flags, WholeNumbersAreWrittenInDigitsAndWithinTheirRange) {
  for (const char* bad : {"", "x", "1e6", "1.0", "3x", " 3", "3 ", "0x10", "--3", "+-3", "+"})
    EXPECT_TRUE(has(refusal({"--width=" + std::string(bad)}), "is not a whole number")) << bad;
  EXPECT_EQ(refusal({"--width", "0"}), "--width: 0 is too small; it should be at least 1");
  EXPECT_EQ(refusal({"--width", "65537"}), "--width: 65537 is too large; it should be at most 65536");
  EXPECT_EQ(refusal({"--width", "99999999999999999999"}),
            "--width: 99999999999999999999 is too large; it should be at most 65536");
  EXPECT_EQ(refusal({"--steps", "-99999999999999999999"}),
            "--steps: -99999999999999999999 is too small; it should be at least 0");
  EXPECT_EQ(refusal({"--steps", "9223372036854775808"}),
            "--steps: 9223372036854775808 is too large; it should be at most 9223372036854775807");
  Options o;
  o.parse({"--steps", "9223372036854775807", "--width=+7"});
  EXPECT_EQ(o.steps, INT64_MAX);
  EXPECT_EQ(o.width, 7);
}

TEST(Flags, NumbersAreFiniteAndWithinTheirRange) {
  for (const char* bad : {"", "x", "1e", "nan", "inf", "-inf", "1,5", "0.1f", "1 2"})
    EXPECT_TRUE(has(refusal({"--learning-rate=" + std::string(bad)}), "is not a finite number")) << bad;
  EXPECT_EQ(refusal({"--learning-rate", "-1"}), "--learning-rate: -1 is too small; it should be at least 0");
  EXPECT_EQ(refusal({"--learning-rate", "1e2"}), "--learning-rate: 1e2 is too large; it should be at most 10");
  EXPECT_EQ(refusal({"--learning-rate", "1e999"}), "--learning-rate: 1e999 is out of a float's range");
}

TEST(Flags, AChoiceListsItsWords) {
  EXPECT_EQ(refusal({"--fusion", "sum"}), "--fusion: `sum` is not one of none, gate, concat, add");
}

TEST(Flags, AConfigurationFileIsReadAndTheCommandLineWins) {
  Scratch folder;
  put(folder / "run.conf",
      "\xEF\xBB\xBF# a run\r\nwidth = 256  # wide\r\n\n  learning_rate=1e-2\nshuffle = no\nout = \"a # \\\"b\\\" \\\\ "
      "\\n\" # c\n"
      "fusion='concat'\nsteps = 7");
  Options o;
  o.parse({"--steps", "9", "--config", folder / "run.conf"});
  EXPECT_EQ(o.width, 256);
  EXPECT_EQ(o.learning_rate, 1e-2f);
  EXPECT_FALSE(o.shuffle);
  EXPECT_EQ(o.out, "a # \"b\" \\ \n");
  EXPECT_EQ(o.fusion, "concat");
  EXPECT_EQ(o.steps, 9);
  EXPECT_TRUE(o.flags.given("width"));
  EXPECT_FALSE(o.flags.given("head-gate"));
}

TEST(Flags, AValueInAFileMayHoldAHashOrBeEmpty) {
  Scratch folder;
  put(folder / "run.conf", "out = a#b # comment\n");
  Options o;
  o.parse({"--config=" + (folder / "run.conf")});
  EXPECT_EQ(o.out, "a#b");
  put(folder / "run.conf", "out = # nothing\n");
  Options p;
  p.parse({"--config=" + (folder / "run.conf")});
  EXPECT_EQ(p.out, "");
}

TEST(Flags, AMistakeInAFileIsNamedByItsLine) {
  EXPECT_EQ(config_refusal("# x\nwidht = 3\n"), "run.conf:2: unknown flag widht; did you mean width?");
  EXPECT_EQ(config_refusal("width = x"), "run.conf:1: width: `x` is not a whole number, written in digits");
  EXPECT_EQ(config_refusal("\n\nwidth 3"), "run.conf:3: expected `name = value`");
  EXPECT_EQ(config_refusal("= 3"), "run.conf:1: expected `name = value`");
  EXPECT_EQ(config_refusal("width = 3\nwidth = 4"), "run.conf:2: width is given twice");
  EXPECT_EQ(config_refusal("out = \"abc"), "run.conf:1: the closing \" is missing");
  EXPECT_EQ(config_refusal("out = 'abc' d"), "run.conf:1: `d` follows the closing '");
  EXPECT_TRUE(has(config_refusal("out = \"a\\q\""), "run.conf:1: expected \\\\"));
  EXPECT_TRUE(has(config_refusal("out = \"a\\"), "run.conf:1: expected \\\\"));
  EXPECT_EQ(config_refusal("config = a"), "run.conf:1: a file cannot name another --config");
  EXPECT_EQ(config_refusal("help = 1"), "run.conf:1: --help belongs on the command line");
  EXPECT_EQ(config_refusal("no-head-gate = 1"),
            "run.conf:1: --no-head-gate belongs on the command line; here, write head-gate = false");
  EXPECT_EQ(config_refusal("no-width = 1"), "run.conf:1: unknown flag no-width; --help lists the flags");
  EXPECT_EQ(config_refusal("halp = 1"), "run.conf:1: unknown flag halp; --help lists the flags");
  EXPECT_EQ(config_refusal("fusion = x"), "run.conf:1: fusion: `x` is not one of none, gate, concat, add");
}

TEST(Flags, AFileOfThemThatIsNoTextIsNamedAsWhatItIs) {
  const char* lines = "a file of flags has lines `name = value`";
  EXPECT_EQ(config_refusal(std::string("\0\x01\xFF", 3)), text("run.conf is not text: byte 0 is zero; %s", lines));
  EXPECT_EQ(config_refusal(std::string("\xff\xfes\0t\0", 6)), text("run.conf is UTF-16: %s", lines));
  EXPECT_EQ(config_refusal("\x1f\x8b\x08"), text("run.conf is packed (gzip): %s", lines));
  EXPECT_EQ(config_refusal("\n{\"width\": 3}"), text("run.conf seems to be JSON: %s (a run's is its run.conf)", lines));
}

TEST(Flags, WhatNobodyTypedIsNamedByItsLineInTheFile) {
  Scratch folder;
  std::string file = folder / "run.conf";
  put(file, "# x\nwidth = 3\nhead_gate = yes\nsteps = 7\n");
  Options o;
  o.parse({"--steps", "9", "--config", file});
  EXPECT_EQ(o.flags.place("width"), file + ":2");
  EXPECT_EQ(o.flags.place("steps"), "");
  EXPECT_TRUE(o.flags.typed("steps") && o.flags.given("width") && !o.flags.typed("width"));
  EXPECT_EQ(places_of_flags("--width 3 is too small"), " (--width stands in " + file + ":2)");
  EXPECT_EQ(places_of_flags("--width and --head-gate and --steps"),
            " (--head-gate stands in " + file + ":3, --width in " + file + ":2)");
  EXPECT_EQ(places_of_flags("--width-of, --widths"), "");
  EXPECT_EQ(places_of_flags("width"), "");
}

TEST(Flags, OfTwoThatExcludeEachOtherTheCommandLinesHolds) {
  Scratch folder;
  std::string file = folder / "run.conf";
  put(file, "width = 3\nsteps = 7\n");
  Options typed;
  typed.parse({"--steps", "9", "--config", file});
  typed.flags.exclude("width", "steps");
  EXPECT_TRUE(!typed.flags.given("width") && typed.flags.given("steps"));
  EXPECT_TRUE(typed.width == 64 && typed.steps == 9);
  EXPECT_EQ(typed.flags.place("width"), "");
  Options both;
  both.parse({"--config", file});
  EXPECT_EQ(message_of([&] { both.flags.exclude("width", "steps", ": so"); }),
            "--width and --steps exclude each other: so");
  EXPECT_NO_THROW(both.flags.exclude("width", "out"));
}

TEST(Flags, WithoutEffectTheyAreRefusedWhereTheyAreTyped) {
  Scratch folder;
  put(folder / "run.conf", "width = 3\nhead_gate = yes\n");
  auto refused = [&](const Words& words, bool idle) {
    Options o;
    o.parse(words);
    return message_of([&] {
      o.flags.refuse_idle({{{"steps"}, false, "no"}, {{"width", "head-gate"}, idle, "so it is"}});
    });
  };
  EXPECT_EQ(refused({"--width", "3"}, true), "--width: so it is; leave it out");
  EXPECT_EQ(refused({"--no-head-gate", "--width", "3"}, true), "--width, --head-gate: so it is; leave them out");
  EXPECT_EQ(refused({"--width", "3", "--steps", "2"}, false), "");
  EXPECT_EQ(refused({"--config", folder / "run.conf"}, true), "") << "a file may hold every flag";
  EXPECT_EQ(refused({"--config", folder / "run.conf", "--width", "4"}, true), "--width: so it is; leave it out");
}

TEST(Flags, AConfigurationFileThatCannotBeReadIsNamed) {
  EXPECT_EQ(refusal({"--config", "/no/such"}), "cannot read /no/such: No such file or directory");
  EXPECT_TRUE(has(refusal({"--config", "/tmp"}), "it is a folder"));
  EXPECT_TRUE(has(refusal({"--config", ""}), "the path is empty"));
}

TEST(Flags, ValuesGoOutAsTextAndComeBackTheSame) {
  Options a, b;
  a.parse({"--width", "7", "--learning-rate", "0.0123", "--no-shuffle", "--out", "x y"});
  std::vector<std::pair<std::string, std::string>> values = a.flags.values();
  EXPECT_EQ(values[0], (std::pair<std::string, std::string>{"width", "7"}));
  EXPECT_EQ(values[4], (std::pair<std::string, std::string>{"learning-rate", "0.0123"}));
  for (auto& [name, value] : values) b.flags.set(name, value, "state.json");
  EXPECT_EQ(b.flags.values(), values);
  EXPECT_EQ(b.learning_rate, a.learning_rate);
  EXPECT_FALSE(b.flags.given("width"));
}

TEST(Flags, SettingNamesWhereTheMistakeIs) {
  Options o;
  EXPECT_EQ(message_of([&] { o.flags.set("widht", "3", "state.json"); }),
            "state.json: unknown flag widht; did you mean width?");
  EXPECT_TRUE(has(message_of([&] { o.flags.set("width", "x", "state.json"); }), "state.json: width: `x`"));
}

TEST(Flags, HelpShowsSectionsAndDefaultsWithinThePage) {
  Options o;
  bool other = false;
  o.flags.add("a-name-that-is-very-long-indeed", &other, std::string(40, 'x') + " " + std::string(40, 'y') + " é z");
  o.flags.examples({"./train --width 3  # small"});
  o.width = 3;  // the default is what it was when the flag was added
  std::string help = o.flags.help();
  EXPECT_EQ(help.find("Usage: train "), 0u);
  EXPECT_TRUE(has(help, "\nModel\n  --width N                 model width D [64]\n"));
  EXPECT_TRUE(has(help, "\n\nTraining\n"));
  EXPECT_TRUE(
      has(help, "--fusion none|gate|concat|add\n" + std::string(28, ' ') + "how the carried state enters [gate]\n"));
  EXPECT_TRUE(has(help, "  --[no-]shuffle            shuffle the documents [true]\n"));
  EXPECT_TRUE(has(help, "peak learning rate [3e-4]"));
  EXPECT_TRUE(has(help, "--config FILE") && has(help, "--help"));
  EXPECT_TRUE(has(help, "\n\nExamples\n  ./train --width 3  # small\n\n"));
  for (size_t start = 0, end; start < help.size(); start = end + 1) {
    end = help.find('\n', start);
    EXPECT_LE(end - start, page_width() + 1) << help.substr(start, end - start);
  }
}

TEST(FlagsDeathTest, HelpIsPrintedAndEndsWell) {
  auto parse = [](const std::vector<std::string>& words) {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // where the test looks
    Options().parse(words);
  };
  EXPECT_EXIT(parse({"--width", "x", "--help"}), testing::ExitedWithCode(0), "^Usage: train");
  EXPECT_EXIT(parse({"-h"}), testing::ExitedWithCode(0), "--width N");
  EXPECT_EXIT(parse({"--head-gate", "-h"}), testing::ExitedWithCode(0), "--width N");
  EXPECT_EXIT(parse({"--out=x", "-h"}), testing::ExitedWithCode(0), "--width N");
}

TEST(FlagsDeathTest, TwoFlagsOfOneNameAreOurMistake) {
  Options o;
  EXPECT_DEATH(o.flags.add("head_gate", &o.shuffle, ""), "head_gate is there twice");
  EXPECT_DEATH(o.flags.add("help", &o.shuffle, ""), "help is there twice");
}

TEST(NearestWord, CountsInsertionsDeletionsReplacementsAndSwaps) {
  std::vector<std::string> words = {"width", "layers", "heads"};
  EXPECT_EQ(nearest_word("widht", words), "width");
  EXPECT_EQ(nearest_word("wdth", words), "width");
  EXPECT_EQ(nearest_word("widthh", words), "width");
  EXPECT_EQ(nearest_word("leyers", words), "layers");
  EXPECT_EQ(nearest_word("head", words), "heads");
  EXPECT_EQ(nearest_word("tokens", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word(std::string(100000, 'w'), words), "");
  EXPECT_EQ(nearest_word("width", {}), "");
}

}  // namespace
