// ./sample: prompts from everywhere, stops and seeds, and every mistake.
#include <cmath>

#include "program.h"

namespace {

struct SampleTest : testing::Test {
  static void SetUpTestSuite() {
    bench = new Bench;
    bench->train(bench->tiny("model", 60) + Words{"--passes", "0:40/30/30", "--lr", "0.01", "--tokenizer", "bytes"});
  }
  static void TearDownTestSuite() { delete bench; }
  static Ran sample(const Words& words, const Setting& setting = {}) {
    return run("sample", Words{"--model", *bench / "model", "--threads", "1"} + words, setting);
  }
  static std::string said(const Words& words, const Setting& setting = {}) {
    Ran ran = sample(words, setting);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  }
  static inline Bench* bench = nullptr;
};

Setting with_input(const std::string& input) {
  Setting setting;
  setting.input = input;
  return setting;
}

}  // namespace

TEST_F(SampleTest, ContinuesAPromptInEveryMode) {
  for (const char* mode : {"standard", "soft", "fused", "sequential"}) {
    std::string text = said({"--prompt", "the cat ", "--tokens", "9", "--mode", mode});
    EXPECT_EQ(text.rfind("the cat ", 0), 0u) << mode;
    EXPECT_GT(text.size(), 9u) << mode;
    EXPECT_EQ(text.back(), '\n');
    EXPECT_EQ(text, run("sample", {"--model", *bench / "model", "--threads", "2", "--prompt", "the cat ", "--tokens",
                                   "9", "--mode", mode})
                        .out);
  }
  EXPECT_EQ(said({"--prompt", "the cat ", "--tokens", "9"}),
            said({"--prompt", "the cat ", "--tokens", "9", "--mode", "soft"}))
      << "a model with trained feedback uses it";
  EXPECT_NE(said({"--prompt", "the cat sat ", "--mode", "fused", "--prefill-passes", "3"}), "");
}

TEST_F(SampleTest, ASeedGivesTheSameTextAndAnotherAnother) {
  Words words = {"--prompt", "the ", "--tokens", "20", "--temperature", "1"};
  EXPECT_EQ(said(words + Words{"--seed", "1"}), said(words + Words{"--seed", "1"}));
  EXPECT_NE(said(words + Words{"--seed", "1"}), said(words + Words{"--seed", "2"}));
  Words greedy = {"--prompt", "the ", "--tokens", "20"};
  std::string best = said(greedy + Words{"--temperature", "0"});
  EXPECT_EQ(best, said(greedy + Words{"--temperature", "0", "--seed", "9"}));
  EXPECT_EQ(best, said(greedy + Words{"--top-k", "1"}));
  EXPECT_EQ(best, said(greedy + Words{"--top-p", "0"}));
}

TEST_F(SampleTest, WeightsMayBeRoundedToBfloat16) {
  Words words = {"--prompt", "the cat ", "--tokens", "9", "--temperature", "0"};
  EXPECT_EQ(said(words + Words{"--weights", "f32"}), said(words));
  EXPECT_EQ(said(words + Words{"--weights", "bf16"}).rfind("the cat ", 0), 0u);
  EXPECT_EQ(sample(words + Words{"--weights", "fp8"}).status, 1);
}

TEST_F(SampleTest, EndsBeforeAStopAndAfterItsTokens) {
  Words words = {"--prompt", "the ", "--no-echo", "--temperature", "0"};
  std::string text = said(words + Words{"--tokens", "12"});
  ASSERT_GE(text.size(), 5u);
  std::string stop = text.substr(2, 2);
  if (stop.find_first_of("|\\\n") == std::string::npos) {
    EXPECT_EQ(said(words + Words{"--tokens", "12", "--stop", stop}), text.substr(0, text.find(stop)) + "\n");
    EXPECT_EQ(said(words + Words{"--tokens", "12", "--stop", "@@@|" + stop}), text.substr(0, text.find(stop)) + "\n");
  }
  EXPECT_EQ(said({"--prompt", "the ", "--tokens", "0"}), "the \n");
  Ran ran = sample({"--prompt", "the ", "--tokens", "100", "--seed", "3"});
  EXPECT_LE(ran.out.size(), 34u) << "a context of 32 tokens";
  EXPECT_EQ(ran.status, 0);
}

TEST_F(SampleTest, TakesPromptsFromAFileAndFromItsInput) {
  put(*bench / "prompts", "the \r\ncat\n\nsat");
  Words words = {"--tokens", "5", "--temperature", "0"};
  std::string texts = said(words + Words{"--prompts", *bench / "prompts"});
  std::string expected;
  for (const char* prompt : {"the ", "cat", "", "sat"}) expected += said(words + Words{"--prompt", prompt});
  EXPECT_EQ(texts, expected);
  EXPECT_EQ(said(words + Words{"--prompts", *bench / "prompts", "--batch", "1"}), expected);
  EXPECT_EQ(said(words, with_input("the \ncat\n\nsat\n")), expected);
  EXPECT_EQ(said(words + Words{"--prompts", "-"}, with_input("the \ncat\n\nsat\n")), expected);
  EXPECT_EQ(said(words, with_input("")), said(words + Words{"--prompt", ""})) << "a new text begins";
}

TEST_F(SampleTest, TextsThatEndAtTheEndOfTheContextAreNamedHoweverManyPromptsThereAre) {
  // A context of 32 tokens, which are bytes: a prompt of 30 leaves room for fewer than ten.
  std::string longest(30, 'a'), file = *bench / "lengths";
  put(file, longest + "\nthe\n" + longest + "\n"), put(*bench / "single", longest + "\n");
  Words words = {"--tokens", "10", "--temperature", "0"};
  for (const char* batch : {"1", "16"}) {
    Ran ran = sample(words + Words{"--prompts", file, "--batch", batch});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.err, "[prompt 1 of " + file + ": end of the context, 32 tokens]\n[prompt 3 of " + file +
                           ": end of the context, 32 tokens]\n");
  }
  EXPECT_EQ(sample(words, with_input(longest + "\nthe\n")).err,
            "[prompt 1 of standard input: end of the context, 32 tokens]\n");
  EXPECT_EQ(sample(words + Words{"--prompt", longest}).err, "[--prompt: end of the context, 32 tokens]\n");
  EXPECT_EQ(sample(words + Words{"--prompts", *bench / "single"}).err,
            "[the prompt of " + (*bench / "single") + ": end of the context, 32 tokens]\n");
  EXPECT_EQ(sample({"--prompt", longest, "--tokens", "2", "--temperature", "0"}).err, "") << "it ends as asked";
}

TEST_F(SampleTest, AMarkBeforePromptsIsNoPartOfThemAndWhatIsNoTextIsRefused) {
  Words words = {"--tokens", "5", "--temperature", "0"};
  put(*bench / "marked", "\xef\xbb\xbfthe \ncat\n"), put(*bench / "unmarked", "the \ncat\n");
  EXPECT_EQ(said(words + Words{"--prompts", *bench / "marked"}), said(words + Words{"--prompts", *bench / "unmarked"}));
  put(*bench / "wide", std::string("\xff\xfe"
                                   "a\0\n\0",
                                   6));
  expect_refused(sample({"--prompts", *bench / "wide"}), "sample", "wide is UTF-16: make it UTF-8, iconv");
}

TEST_F(SampleTest, TakesAnyBytes) {
  EXPECT_EQ(said({"--prompt", "-h", "--tokens", "0"}), "-h\n");
  std::string odd("a\0b\xff\xfe\x80 \xe2\x82\n", 9);
  std::string text = said({"--tokens", "3"}, with_input(odd));
  EXPECT_EQ(text.substr(0, 8), odd.substr(0, 8));
  EXPECT_NE(said({"--tokens", "3", "--prompt", "\xc3"}), "");
}

TEST_F(SampleTest, ConversesOnATerminal) {
  Setting setting;
  setting.terminal = true;
  Running running({program_path("sample"), "--model", *bench / "model", "--threads", "1", "--tokens", "4"}, setting);
  running.type("the cat\n");
  running.type(std::string(60, 'x') + "\n");
  running.until([&] { return has(running.shown(), std::string(60, 'x')); });
  running.type("\4");
  Ran ran = running.wait();
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.err, "context 32 tokens") && has(ran.err, "too long: 60 tokens") && has(ran.err, "> "))
      << ran.err;
}

TEST_F(SampleTest, CtrlCEndsAConversationThatWaits) {
  Setting setting;
  setting.terminal = true;
  Running running({program_path("sample"), "--model", *bench / "model", "--threads", "1", "--tokens", "4"}, setting);
  running.type("the cat\n");
  ASSERT_TRUE(running.until([&] { return lines_of(running.shown()).size() >= 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  running.kill(SIGINT);
  EXPECT_EQ(running.wait().status, 128 + SIGINT);
}

TEST_F(SampleTest, ATerminalGetsNoControlCharacters) {
  Setting setting;
  setting.terminal = true;
  Ran ran = run("sample",
                {"--model", *bench / "model", "--threads", "1", "--tokens", "20", "--temperature", "100", "--prompt",
                 "\x1b[31m\xff"},
                setting);
  EXPECT_EQ(ran.status, 0);
  EXPECT_FALSE(has(ran.out, "\x1b")) << ran.out;
  EXPECT_EQ(ran.out.rfind("·[31m·", 0), 0u) << ran.out;
}

TEST_F(SampleTest, EndsQuietlyWhenItsReaderGoesAway) {
  std::string command = program_path("sample") + " --model '" + *bench / "model" + "' --threads 1 --tokens 20";
  Ran ran = shell("yes the | head -400 | " + command + " | head -1");
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(lines_of(ran.out).size(), 1u);
  expect_refused(shell(command + " --prompt a >/dev/full"), "sample", "cannot write to standard output");
  EXPECT_EQ(shell(command + " --prompt a >&- <&-").status, 0);
}

TEST_F(SampleTest, EveryMistakeIsOneLine) {
  put(*bench / "none", "");
  put(*bench / "long", "a\n" + std::string(33, 'x') + "\n");
  const std::pair<Words, const char*> mistakes[] = {
      {{"--tempature", "1"}, "did you mean --temperature?"},
      {{"--mode", "hard"}, "not one of"},
      {{"--top-p", "2"}, "too large"},
      {{"--temperature", "-1"}, "too small"},
      {{"--device", "cuda"}, "--device cuda"},
      {{"--device", "tpu"}, "not one of"},
      {{"--prompt", "a", "--prompts", "b"}, "exclude each other"},
      {{"--prompts", *bench / "nosuch"}, "No such file"},
      {{"--prompts", *bench / "none"}, "holds no prompts"},
      {{"--prompts", "-"}, "standard input holds no prompts"},
      {{"--prompt", std::string(33, 'x')}, "33 tokens; this model's context is 32"},
      {{"--prompts", *bench / "long"}, "prompt 2 of"},
  };
  for (const auto& [words, part] : mistakes) {
    Ran ran = sample(words);
    expect_refused(ran, "sample", part);
    EXPECT_EQ(ran.out, "") << part;
  }
}

TEST_F(SampleTest, ATypedFlagThatHasNoEffectBesideTheOthersIsRefused) {
  const std::pair<Words, const char*> idle[] = {
      {{"--prefill-passes", "3"}, "--prefill-passes: mode soft has no such passes; leave it out"},
      {{"--mode", "sequential", "--prefill-passes", "1"}, "--prefill-passes: mode sequential has"},
      {{"--temperature", "0", "--top-k", "5"}, "--top-k: temperature 0 takes the likeliest token, whatever"},
      {{"--temperature", "0", "--top-p", "0.5", "--top-k", "5"}, "--top-k, --top-p: temperature 0 takes"},
      {{"--stop", "|"}, "--stop: no text stands in it; leave it out"},
  };
  for (const auto& [words, part] : idle) {
    Ran ran = sample(words + Words{"--prompt", "the "});
    expect_refused(ran, "sample", part);
    EXPECT_EQ(ran.out, "") << part;
  }
  // What asks for nothing, and what requests may use.
  said({"--prompt", "the ", "--tokens", "1", "--temperature", "0", "--top-k", "0", "--top-p", "1", "--stop", ""});
  said({"--serve", "--prefill-passes", "3", "--temperature", "0", "--top-k", "5"},
       with_input("{\"mode\": \"fused\"}\n"));
}

TEST_F(SampleTest, AModeThatWasNeverTrainedIsSaidToBeNoise) {
  bench->train(bench->tiny("untrained", 3) + Words{"--passes", "1", "--fusion", "gate"});
  Words words = {"--model", *bench / "untrained", "--threads", "1", "--tokens", "3", "--prompt", "the "};
  for (const char* mode : {"soft", "fused", "sequential"}) {
    Ran ran = run("sample", words + Words{"--mode", mode});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.err, "note: the feedback of " + (*bench / "untrained") + " was never trained, so that mode " + mode +
                           " feeds back noise\n");
  }
  EXPECT_EQ(run("sample", words).err, "");
  EXPECT_EQ(run("sample", words + Words{"--mode", "standard"}).err, "");
  EXPECT_EQ(sample({"--prompt", "the ", "--mode", "soft", "--tokens", "3"}).err, "") << "trained";
  expect_refused(run("eval", {"--model", *bench / "untrained", "--passes", "0,2"}), "eval",
                 "step_00000003 has no trained feedback, so that there are no fused passes to look at");
}

TEST_F(SampleTest, TokensThatTheTokenizerLacksAreShownByTheirNumbers) {
  std::string bytes;
  for (int i = 0; i < 4000; ++i) bytes += {char(300 + i % 7), char((300 + i % 7) >> 8)};
  put(*bench / "raw", bytes);
  ASSERT_EQ(run("tokenize", {"import", *bench / "raw", "--out", *bench / "ids"}).status, 0);
  Words sizes = bench->tiny("numbers", 40);
  sizes[1] = *bench / "ids";
  bench->train(sizes + Words{"--passes", "1", "--lr", "0.05"});
  Ran ran = run("sample", {"--model", *bench / "numbers", "--tokenizer", "bytes", "--prompt", "a", "--tokens", "3",
                           "--temperature", "0", "--threads", "1"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.err, "note: the tokenizer has 257 of the model's 50257 ids; another shows as its number, like <257>\n");
  EXPECT_TRUE(has(ran.out, "a<30") && has(ran.out, ">\n")) << ran.out;
}

TEST_F(SampleTest, MissingAndBrokenModelsAreNamed) {
  auto refused = [](const std::string& model, const std::string& part) {
    expect_refused(run("sample", {"--model", model, "--prompt", "a"}), "sample", part);
  };
  refused(*bench / "nosuch", "no such folder; ./train makes one, --model names another");
  refused(bench->text(), "is a file");
  refused(bench->folder.path, "no checkpoint is there");
  refused("", "name is empty");
  auto broken = [&](const std::string& name, const std::function<void(const std::string&)>& act) {
    std::filesystem::copy(*bench / "model", *bench / name, std::filesystem::copy_options::recursive);
    act(bench->checkpoint(name, 60));
    return *bench / name;
  };
  refused(broken("cut", [](const std::string& c) { std::filesystem::resize_file(c + "/model.safetensors", 999); }),
          "truncated");
  refused(broken("config", [](const std::string& c) { put(c + "/config.json", "{\"model_type\": 3}"), reseal(c); }),
          "config.json");
  auto give_layers = [](const std::string& c, const std::string& layers) {
    std::string config = contents(c + "/config.json"), one = "\"num_hidden_layers\": 1";
    put(c + "/config.json", config.replace(config.find(one), one.size(), one.substr(0, one.size() - 1) + layers));
  };
  refused(broken("layers", [&](const std::string& c) { give_layers(c, "16777216"), reseal(c); }),
          "layers is 16777216; this engine is made for at most 4096");
  refused(broken("changed", [&](const std::string& c) { give_layers(c, "16777216"); }), "is truncated or was changed");
  refused(broken("bits", [&](const std::string& c) { give_layers(c, "9"); }), "config.json: its bytes have changed");
  refused(broken("nan", [](const std::string& c) { fill_weights(c, INFINITY); }), "not finite");
  refused(broken("flip",
                 [](const std::string& c) {
                   std::string bytes = contents(c + "/model.safetensors");
                   bytes.back() ^= 64;
                   put(c + "/model.safetensors", bytes);
                 }),
          "its bytes have changed");
  refused(broken("heads",
                 [](const std::string& c) {
                   std::string config = contents(c + "/config.json");
                   size_t at = config.find("\"hidden_size\": 16");
                   put(c + "/config.json", config.replace(at, 17, "\"hidden_size\": 1048576")), reseal(c);
                 }),
          "");
  std::string endless = broken("endless", [](const std::string& c) {
    std::string config = contents(c + "/config.json"), name = "\"eos_token_id\": ";
    size_t at = config.find(name) + name.size();
    put(c + "/config.json", config.replace(at, config.find(',', at) - at, "-1")), reseal(c);
  });
  expect_refused(run("sample", {"--model", endless, "--prompt", ""}), "sample", "no end-of-text to begin with");
  EXPECT_EQ(run("sample", {"--model", endless, "--prompt", "a", "--tokens", "3"}).status, 0);
  bench->train(bench->tiny("plain", 5) + Words{"--passes", "1"});
  expect_refused(run("sample", {"--model", *bench / "plain", "--mode", "soft"}), "sample",
                 "needs a model with feedback");
}

// --- Models of the built-in corpus

namespace {

struct PuzzleTest : testing::Test {
  static void SetUpTestSuite() {
    bench = new Bench;
    bench->train({"--data", "sums", "--steps", "20", "--width", "16", "--heads", "2", "--batch", "2", "--passes", "2",
                  "--eval-every", "0", "--out", *bench / "model", "--threads", "1"});
  }
  static void TearDownTestSuite() { delete bench; }
  static Ran sample(const Words& words, const Setting& setting = {}) {
    Ran ran = run("sample", Words{"--model", *bench / "model", "--threads", "1"} + words, setting);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran;
  }
  static inline Bench* bench = nullptr;
};

}  // namespace

TEST_F(PuzzleTest, WithoutAPromptAHeldOutPuzzleIsAnsweredInEveryMode) {
  Words lines = lines_of(sample({}).out);
  ASSERT_EQ(lines.size(), 5u);
  const char* names[] = {"right", "STANDARD", "SOFT", "FUSED", "SEQUENTIAL"};
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i].rfind(std::string("  ") + names[i], 0), 0u) << lines[i];
  EXPECT_TRUE(has(lines[1], " of ") && has(lines[1], "?")) << lines[1];
  EXPECT_EQ(lines_of(sample({"--mode", "fused"}).out).size(), 2u);
  EXPECT_EQ(sample({}).out, sample({}).out);
}

TEST_F(PuzzleTest, ATypedQuestionIsAnsweredInEveryModeBesideTheRightAnswer) {
  Setting setting;
  setting.terminal = true;
  Running running({program_path("sample"), "--model", *bench / "model", "--threads", "1"}, setting);
  running.type("0212?\nhello\n" + std::string(60, '0') + "?\n\n");
  running.type("\4");
  Ran ran = running.wait();
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.err, "sums: ? asks for the sum") && has(ran.err, "  0212?\n")) << ran.err;
  EXPECT_TRUE(has(ran.out, "  right       2\r\n  STANDARD    ")) << ran.out;
  EXPECT_TRUE(has(ran.out, "no question of this model's puzzles: type one like 0212?")) << ran.out;
  EXPECT_TRUE(has(ran.out, "too long: ")) << ran.out;
}

TEST_F(PuzzleTest, ATextThatEndsWithAQuestionEndsAfterTheAnswer) {
  Ran ran = sample({"--prompt", "0212?"});
  EXPECT_EQ(ran.out, sample({"--prompt", "0212?", "--temperature", "0"}).out) << "the likeliest answer";
  EXPECT_TRUE(ran.err == "[right]\n" || ran.err == "[wrong: 2 is right]\n") << ran.err;
  EXPECT_TRUE(has(sample({"--prompt", "hello"}).err, "trained to answer puzzles"));
  auto tokens = [](const Words& words) {
    return parse_json(sample(words + Words{"--json"}).out, "json").get("tokens", "json").items.size();
  };
  EXPECT_EQ(tokens({"--prompt", "0212?"}), 1u);
  EXPECT_EQ(tokens({"--prompt", "hello", "--tokens", "9"}), 9u);
  EXPECT_EQ(tokens({"--prompt", "0212?", "--tokens", "9"}), 9u) << "as many as are asked for";
}

TEST_F(PuzzleTest, ARunsLastLineAsksPuzzles) {
  Ran ran = run("train", {"--resume", *bench / "model", "--threads", "1"});
  EXPECT_TRUE(has(ran.out, "sample --model " + *bench / "model" + "\n")) << ran.out;
}

// --- For programs

namespace {

Json object_in(const std::string& line) { return parse_json(line, "a line"); }

std::vector<Json> served(const Words& words, const std::string& requests) {
  Ran ran = run("sample", words + Words{"--serve", "--threads", "1"}, with_input(requests));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  std::vector<Json> answers;
  for (const std::string& line : lines_of(ran.out)) answers.push_back(object_in(line));
  return answers;
}

}  // namespace

TEST_F(SampleTest, JsonHasTheTextItsTokensAndWhyItEnds) {
  Words words = {"--prompt", "the ", "--tokens", "5", "--mode", "fused"};
  Json json = object_in(said(words + Words{"--json", "--logprobs"}));
  EXPECT_EQ("the " + json.get_string("text", "json") + "\n", said(words));
  EXPECT_EQ(json.get_string("prompt", "json"), "the ");
  EXPECT_EQ(json.get_string("mode", "json"), "fused");
  EXPECT_EQ(json.get_string("finish_reason", "json"), "length");
  EXPECT_EQ(json.get("tokens", "json").items.size(), 5u);
  ASSERT_EQ(json.get("logprobs", "json").items.size(), 5u);
  for (const Json& logprob : json.get("logprobs", "json").items) EXPECT_LE(logprob.number, 0);

  Words lines = lines_of(said({"--json", "--no-echo", "--tokens", "40"}, with_input("the cat\na mat\n")));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(object_in(lines[1]).get_int("number", "json"), 1);
  EXPECT_EQ(object_in(lines[1]).find("prompt"), nullptr);
  EXPECT_EQ(object_in(lines[1]).find("logprobs"), nullptr);
  EXPECT_EQ(object_in(lines[0]).get_string("finish_reason", "json"), "context");
}

TEST_F(SampleTest, ServesRequestsALineEach) {
  std::vector<Json> answers =
      served({"--model", *bench / "model", "--tokens", "4"},
             "{\"prompt\": \"the \"}\n{\"prompt\": \"the \", \"tokens\": 2, \"mode\": \"standard\", \"seed\": 3, "
             "\"id\": {\"a\": 1}}\n{\"prompt\": [116, 104, 101, 32]}\n{\"prompt\": \"the \", \"continuation\": "
             "\"cat\", \"id\": 4}\n{}\n");
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ("the " + answers[0].get_string("text", "0") + "\n", said({"--prompt", "the ", "--tokens", "4"}));
  EXPECT_EQ("the " + answers[1].get_string("text", "1") + "\n",
            said({"--prompt", "the ", "--tokens", "2", "--mode", "standard", "--seed", "3"}));
  EXPECT_EQ(write_json(answers[1].get("id", "1")), "{\"a\": 1}");
  EXPECT_EQ(answers[2].get_string("text", "2"), answers[0].get_string("text", "0")) << "the same prompt as ids";
  EXPECT_EQ(answers[3].get("logprobs", "3").items.size(), 3u);
  double sum = 0;
  for (const Json& logprob : answers[3].get("logprobs", "3").items) sum += logprob.number;
  EXPECT_EQ(answers[3].get_number("logprob", "3"), sum);
  EXPECT_EQ(answers[4].find("error"), nullptr) << "a new text from end-of-text";
}

TEST_F(SampleTest, ARequestThatIsWrongIsAnsweredAndTheNextOneServed) {
  std::string requests;
  const std::pair<const char*, const char*> kWrong[] = {
      {"x", "line 1:1:1: expected a value"},
      {"[1]", "line 2: a request is an object"},
      {"", "line 3:1:1"},
      {"{\"id\": 5, \"token\": 3}", "line 4: unknown flag token; did you mean tokens?"},
      {"{\"id\": 5, \"tokens\": -1}", "line 5: tokens: -1 is too small"},
      {"{\"id\": 5, \"tokens\": \"many\"}", "line 6: tokens"},
      {"{\"id\": 5, \"mode\": \"loud\"}", "line 7: mode: `loud` is not one of"},
      {"{\"id\": 5, \"prompt\": 3}", "line 8: `prompt` should be a string"},
      {"{\"id\": 5, \"prompt\": [1.5]}", "line 9: `prompt` should be a text or a list of ids"},
      {"{\"id\": 5, \"prompt\": [900]}", "the prompt has the id 900; this model's go from 0 to 256"},
      {"{\"id\": 5, \"stop\": [3]}", "line 11: `stop` should be a string"},
      {"{\"id\": 5, \"prompt\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}", "the prompt has 37 tokens"},
      {"{\"id\": 5, \"prompt\": \"xxxxxxxxxxxxxxxx\", \"continuation\": \"xxxxxxxxxxxxxxxxxx\"}", "have 34 tokens"},
      {"{\"id\": 5, \"temperature\": 0, \"top_k\": 5}", "line 14: `top_k`: temperature 0 takes the likeliest token"},
      {"{\"id\": 5, \"mode\": \"standard\", \"prefill-passes\": 2}", "line 15: `prefill-passes`: mode standard has"},
      {"{\"id\": 5, \"prompt\": \"a\", \"prompt\": \"b\"}", "line 16"}};
  for (const auto& [line, error] : kWrong) requests += std::string(line) + "\n";
  std::vector<Json> answers = served({"--model", *bench / "model"}, requests + "{\"tokens\": 1, \"stop\": []}");
  ASSERT_EQ(answers.size(), std::size(kWrong) + 1);
  for (size_t i = 0; i < std::size(kWrong); ++i) {
    EXPECT_TRUE(has(answers[i].get_string("error", "an answer"), kWrong[i].second)) << write_json(answers[i]);
    EXPECT_EQ(answers[i].find("id") != nullptr, i > 2 && i + 1 < std::size(kWrong)) << kWrong[i].first;
  }
  EXPECT_EQ(answers.back().find("error"), nullptr);
}

TEST_F(SampleTest, AnAnswerComesBeforeTheNextRequestIsRead) {
  Ran ran = shell("(echo '{\"tokens\": 1}'; sleep 0.3; test -s " + (*bench / "answers") + " || echo late >&2) | " +
                  program_path("sample") + " --threads 1 --serve --model " + (*bench / "model") + " > " +
                  (*bench / "answers"));
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.err, "");
}
