// --tokenizer, --pattern and --end-token: which token ends a text, where nobody says so and where somebody does; and
// that all programs agree about it.
#include "tokenizer_flags.h"

#include <map>

#include "program.h"
#include "shards.h"

namespace {

// Tokenizers of bytes whose special tokens have names of which none is known to end a text.
const std::vector<std::string> kNobodyKnows = {"[UNK]", "[SEP]", "[MASK]"};
constexpr const char* kRefusal =
    "which of its special tokens ends a text is not known; say so with --end-token: they are `[UNK]`, `[SEP]`, "
    "`[MASK]`";

struct Tokenizers : Bench {
  Tokenizers() {
    std::filesystem::create_directory(folder / "t");
    put(json(), Tokenizer(Pattern::llama3, {}, kNobodyKnows).to_json());
    put(text(), some_text() + "\n<|endoftext|>\n" + some_text(3000));
  }
  std::string json() const { return folder / "t/tokenizer.json"; }
  void put_config(const std::string& eos) const {
    put(folder / "t/tokenizer_config.json", "{\"eos_token\": " + eos + ", \"pad_token\": \"[UNK]\"}");
  }
  Ran tokenize(const Words& words, const std::string& input = "") const {
    Setting setting;
    setting.input = input;
    return run("tokenize", words, setting);
  }
  int end_of_model(const std::string& out, int step) const {
    return int(parse_json(contents(checkpoint(out, step) + "/config.json"), "c").get_int("eos_token_id", "c"));
  }
};

std::string end_of(const TokenizerFlags& flags) {
  Tokenizer t = flags.load_for_documents();
  return t.end_of_text() < 0 ? "" : std::string(t.bytes_of(t.end_of_text()));
}

void write_ids(const std::string& path, const std::vector<uint16_t>& ids) {
  std::string bytes = shard_header(16, int64_t(ids.size()));
  bytes.append(reinterpret_cast<const char*>(ids.data()), ids.size() * 2);
  put(path, bytes);
}

}  // namespace

TEST(EndToken, IsTheOneNamedElseTheConfigsElseOfAKnownNameElseNone) {
  Tokenizers t;
  EXPECT_EQ(end_of({t.json(), "", ""}), "");
  EXPECT_EQ(end_of({t.json(), "", "[SEP]"}), "[SEP]");
  for (const char* eos : {"\"[UNK]\"", R"({"__type": "AddedToken", "content": "[UNK]", "lstrip": false})"}) {
    t.put_config(eos);
    EXPECT_EQ(end_of({t.json(), "", ""}), "[UNK]") << eos;
    EXPECT_EQ(end_of({t / "t", "", ""}), "[UNK]") << "the folder";
    EXPECT_EQ(end_of({t.json(), "", "[SEP]"}), "[SEP]") << "what is named comes first";
    EXPECT_EQ((TokenizerFlags{t.json(), "", ""}.load().end_of_text()), -1) << "no documents, no end";
  }
  put(t.json(), Tokenizer(Pattern::llama3, {}, {"[UNK]", "</s>", "<|endoftext|>"}).to_json());
  EXPECT_EQ(end_of({t.json(), "", ""}), "[UNK]") << "the config comes before known names";
  t.put_config("null");
  EXPECT_EQ(end_of({t.json(), "", ""}), "<|endoftext|>");
  EXPECT_EQ(end_of({"bytes", "", ""}), "<|endoftext|>");
}

TEST(EndToken, WhatIsNoSpecialTokenIsRefusedWithTheListOfThose) {
  Tokenizers t;
  EXPECT_EQ(message_of([&] {
              end_of({t.json(), "", "a"});
            }),
            "--end-token a: " + t.json() + " has no such special token; they are `[UNK]`, `[SEP]`, `[MASK]`");
  t.put_config("\"</s>\"");
  EXPECT_EQ(message_of([&] {
              end_of({t.json(), "", ""});
            }),
            t.json() +
                ": the tokenizer_config.json beside it ends a text by `</s>`, which is no special token of it; say "
                "with --end-token which does: they are `[UNK]`, `[SEP]`, `[MASK]`");
  EXPECT_EQ(end_of({t.json(), "", "[MASK]"}), "[MASK]");
  t.put_config("3");
  EXPECT_TRUE(has(message_of([&] { end_of({t.json(), "", ""}); }), "tokenizer_config.json: `eos_token` should be"));
  std::vector<std::string> many;
  for (int i = 0; i < 300; ++i) many.push_back(text("<|%d|>", i));
  put(t.json(), Tokenizer(Pattern::llama3, {}, many).to_json());
  EXPECT_TRUE(has(message_of([&] { end_of({t.json(), "", "x"}); }), "`<|11|>` and 288 more"));
  put(t.json(), Tokenizer(Pattern::llama3, {}, {}).to_json());
  EXPECT_TRUE(has(message_of([&] { require_end_of_text(Tokenizer::load(t.json()), "t"); }), "has no special token"));
}

TEST(EndToken, TrainingOnATextTakesItAndItsModelKeepsIt) {
  Tokenizers t;
  Words flags = {"--tokenizer", t.json()};
  expect_refused(run("train", t.tiny("out", 10) + flags), "train", kRefusal);
  expect_refused(run("train", t.tiny("out", 10) + flags + Words{"--end-token", "<s>"}), "train",
                 "has no such special token");
  EXPECT_FALSE(std::filesystem::exists(t / "out"));
  t.train(t.tiny("out", 10) + flags + Words{"--end-token", "[SEP]"});
  EXPECT_EQ(t.end_of_model("out", 10), 257);
  EXPECT_TRUE(has(contents(t / "out/run.conf"), "end-token = \"[SEP]\"")) << contents(t / "out/run.conf");

  std::filesystem::remove_all(t / "t");  // what was found beside it does not matter any more
  t.train({"--resume", t / "out", "--steps", "12", "--threads", "1"});
  EXPECT_EQ(t.end_of_model("out", 12), 257);
  expect_refused(run("train", {"--resume", t / "out", "--end-token", "[MASK]"}), "train",
                 "--end-token [MASK]: the run in " + t.checkpoint("out", 12) + " has [SEP]");
  EXPECT_EQ(run("eval", {"--model", t / "out", "--threads", "1"}).status, 0);
  EXPECT_EQ(run("sample", {"--model", t / "out", "--prompt", "the", "--tokens", "3", "--end-token", "[SEP]"}).status,
            0);
  for (const char* program : {"sample", "eval"})
    expect_refused(run(program, {"--model", t / "out", "--end-token", "[MASK]"}), program,
                   "--end-token [MASK]: " + t.checkpoint("out", 12) + "/tokenizer.json ends a text by `[SEP]`");
  t.train(t.tiny("next", 4) + Words{"--init-from", t / "out"});
  EXPECT_EQ(t.end_of_model("next", 4), 257) << "a checkpoint's tokenizer ends a text as its model does";
}

TEST(EndToken, OfAConfigIsWrittenDownForTheRun) {
  Tokenizers t;
  t.put_config("\"[MASK]\"");
  t.train(t.tiny("out", 4) + Words{"--tokenizer", t.json()});
  EXPECT_EQ(t.end_of_model("out", 4), 258);
  EXPECT_TRUE(has(contents(t / "out/run.conf"), "end-token = \"[MASK]\""));
}

TEST(EndToken, OfATokenizerThatIsTrainedIsItsOwn) {
  Tokenizers t;
  t.train(t.tiny("out", 4) + Words{"--vocab", "270", "--end-token", "<|endoftext|>"});
  expect_refused(run("train", t.tiny("other", 4) + Words{"--vocab", "270", "--end-token", "[SEP]"}), "train",
                 "the tokenizer that is trained has no such special token; they are `<|endoftext|>`");
  expect_refused(t.tokenize({"data", t.text(), "--out", t / "d", "--vocab", "270", "--end-token", "[SEP]"}), "tokenize",
                 "the tokenizer that is trained has no such special token");
}

TEST(EndToken, ATextIsEncodedAndDecodedWithoutOne) {
  Tokenizers t;
  t.put_config("3");
  EXPECT_EQ(t.tokenize({"encode", "--tokenizer", t.json()}, "ab").out, "97 98\n");
  EXPECT_EQ(t.tokenize({"decode", "--tokenizer", t.json()}, "97 257").out, "a[SEP]");
}

TEST(EndToken, OfAFolderOfTokenFilesIsInItsDataJson) {
  Tokenizers t;
  Words command = {"data", t.text(), "--out", t / "data", "--tokenizer", t.json(), "--threads", "1"};
  expect_refused(t.tokenize(command), "tokenize", kRefusal);
  EXPECT_FALSE(std::filesystem::exists(t / "data/data.json"));
  Ran ran = t.tokenize(command + Words{"--end-token", "[SEP]", "--val", "0"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json options = parse_json(contents(t / "data/data.json"), "d").get("options", "d");
  EXPECT_EQ(options.get_string("end-token", "d"), "[SEP]");
  EXPECT_EQ(Tokens::map(t / "data/train_000000.bin")[0], 257);

  // The same command goes on, with the flag or without it; another end is refused.
  EXPECT_TRUE(has(t.tokenize(command + Words{"--val", "0"}).out, "nothing was to be done"));
  EXPECT_TRUE(has(t.tokenize({"data", t.text(), "--out", t / "data", "--val", "0"}).out, "nothing was to be done"));
  std::string refusal = "--end-token [MASK]: the texts in " + (t / "data") + " end by `[SEP]`";
  expect_refused(t.tokenize(command + Words{"--val", "0", "--end-token", "[MASK]"}), "tokenize", refusal);

  EXPECT_TRUE(has(t.tokenize({"inspect", t / "data"}).out, "2 begin here"));
  expect_refused(t.tokenize({"inspect", t / "data", "--end-token", "[MASK]"}), "tokenize", refusal);
  Words words = t.tiny("out", 4);
  words[1] = t / "data";
  t.train(words);
  EXPECT_EQ(t.end_of_model("out", 4), 257);
  words.back() = t / "other";
  expect_refused(run("train", words + Words{"--end-token", "[MASK]"}), "train", refusal);
  t.train(words + Words{"--tokenizer", t.json()});
  EXPECT_EQ(t.end_of_model("other", 4), 257);

  std::filesystem::remove(t / "data/data.json");  // as files of others
  EXPECT_TRUE(has(t.tokenize({"inspect", t / "data"}).out, "which token ends one is not known; --end-token says so"));
  EXPECT_TRUE(has(t.tokenize({"inspect", t / "data", "--end-token", "[SEP]"}).out, "2 begin here"));
}

TEST(EndToken, TokenFilesAreDividedByTheSpecialTokenWithWhichTheyBeginAndThatIsSaid) {
  Tokenizers t;
  put(t.json(), Tokenizer(Pattern::llama3, {}, {"<s>", "</s>", "[MASK]"}).to_json());
  std::vector<uint16_t> begun, ended;  // <s> a … <s> a …; and the same with </s> at each end
  for (int i = 0; i < 3000; ++i) begun.push_back(uint16_t(i % 30 == 0 ? 256 : 'a' + i % 7));
  for (int i = 0; i < 3000; ++i) ended.push_back(i % 30 == 29 ? uint16_t(257) : begun[size_t(i)]);
  write_ids(t / "t/a.bin", begun);
  auto words = [&](const std::string& out) {
    Words words = t.tiny(out, 4);
    words[1] = t / "t";
    return words;
  };
  EXPECT_TRUE(has(t.train(words("begun")).out, "divided by `<s>`, with which they begin"));
  EXPECT_EQ(t.end_of_model("begun", 4), 256);
  t.train({"--resume", t / "begun", "--steps", "6", "--threads", "1"});
  expect_refused(
      run("train", words("no") + Words{"--end-token", "</s>"}), "train",
      "a.bin begins with `<s>`, and `</s>`, which should end its texts (--end-token), is not among its first");
  write_ids(t / "t/a.bin", ended);
  EXPECT_FALSE(has(t.train(words("ended") + Words{"--end-token", "</s>"}).out, "with which they begin"));
  EXPECT_EQ(t.end_of_model("ended", 4), 257);

  // Files that begin within a document, of a tokenizer of which nothing is known.
  put(t.json(), Tokenizer(Pattern::llama3, {}, kNobodyKnows).to_json());
  begun[0] = 'a';
  write_ids(t / "t/a.bin", begun);
  expect_refused(run("train", words("unknown")), "train", kRefusal);
  t.train(words("unknown") + Words{"--end-token", "[UNK]"});
  std::filesystem::remove(t.json());
  expect_refused(run("train", words("none") + Words{"--end-token", "[UNK]"}), "train",
                 "has no tokenizer of which it could be said; give one with --tokenizer");
}

TEST(Pattern, OfABpeThatIsTrainedIsChosenAndStays) {
  Tokenizers t;
  t.train(t.tiny("usual", 4) + Words{"--vocab", "270"});
  EXPECT_EQ(Tokenizer::load(t / "usual/tokenizer.json").pattern(), Pattern::llama3);
  t.train(t.tiny("out", 4) + Words{"--vocab", "270", "--pattern", "o200k"});
  EXPECT_EQ(Tokenizer::load(t / "out/tokenizer.json").pattern(), Pattern::o200k);
  EXPECT_TRUE(has(contents(t / "out/run.conf"), "pattern = \"o200k\""));
  t.train({"--resume", t / "out", "--steps", "6", "--threads", "1", "--pattern", "o200k"});
  expect_refused(run("train", {"--resume", t / "out", "--pattern", "gpt2"}), "train",
                 "--pattern gpt2: the run in " + t.checkpoint("out", 6) + " has o200k");
  expect_refused(run("train", {"--resume", t / "usual", "--pattern", "gpt2"}), "train",
                 "--pattern gpt2: the run in " + t.checkpoint("usual", 4) + " was started without it");
  Words corpus = t.tiny("corpus", 4);
  corpus[1] = "cups";
  t.train(corpus + Words{"--pattern", "gpt2"});
  EXPECT_EQ(Tokenizer::load(t / "corpus/tokenizer.json").pattern(), Pattern::gpt2);
  expect_refused(run("train", t.tiny("bytes") + Words{"--vocab", "257", "--pattern", "gpt2"}), "train",
                 "the tokenizer that is trained has the pattern none, not gpt2");
}

TEST(Pattern, ThatATokenizerDoesNotHaveIsRefusedInEveryProgram) {
  Tokenizers t;
  t.train(t.tiny("out", 4) + Words{"--tokenizer", t.json(), "--end-token", "[SEP]"});
  std::string part = "tokenizer.json has the pattern llama3, not gpt2; leave the flag out";
  Words flags = {"--tokenizer", t.json(), "--pattern", "gpt2"};
  expect_refused(run("train", t.tiny("new", 4) + flags), "train", part);
  for (const char* program : {"sample", "eval"}) {
    expect_refused(run(program, Words{"--model", t / "out"} + flags), program, part);
    expect_refused(run(program, {"--model", t / "out", "--pattern", "gpt2"}), program, part);
    EXPECT_EQ(run(program, {"--model", t / "out", "--pattern", "llama3"}).status, 0);
  }
  for (const char* command : {"encode", "decode"}) expect_refused(t.tokenize(Words{command} + flags), "tokenize", part);
  expect_refused(t.tokenize(Words{"data", t.text(), "--out", t / "d"} + flags), "tokenize", part);
  expect_refused(t.tokenize(Words{"inspect", t / "d"} + flags), "tokenize", part);
  EXPECT_EQ(t.tokenize({"encode", "--tokenizer", t.json(), "--pattern", "llama3"}, "a").out, "97\n");
  expect_refused(t.tokenize({"encode", "--tokenizer", "bytes", "--pattern", "llama3"}, "a"), "tokenize",
                 "bytes has the pattern none, not llama3");
}

TEST(Pattern, OfRanksOfUnknownNumberIsTakenInEveryProgram) {
  Tokenizers t;
  std::string ranks, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int byte = 0; byte < 256; ++byte)
    ranks +=
        std::string{digits[size_t(byte >> 2)], digits[size_t((byte & 3) << 4)]} + "== " + std::to_string(byte) + "\n";
  put(t / "own.tiktoken", ranks);
  Words flags = {"--tokenizer", t / "own.tiktoken", "--end-token", "<|endoftext|>"}, pattern = {"--pattern", "gpt2"};
  std::string part = "name its pattern with --pattern";
  expect_refused(run("train", t.tiny("out", 4) + flags), "train", part);
  t.train(t.tiny("out", 4) + flags + pattern);
  EXPECT_EQ(Tokenizer::load(t.checkpoint("out", 4) + "/tokenizer.json").pattern(), Pattern::gpt2);
  for (const char* program : {"sample", "eval"}) {
    expect_refused(run(program, Words{"--model", t / "out"} + flags), program, part);
    Ran ran = run(program, Words{"--model", t / "out"} + flags + pattern);
    EXPECT_EQ(ran.status, 0) << ran.err;
  }
  for (const Words& words :
       {Words{"encode"}, Words{"decode"}, Words{"data", t.text(), "--out", t / "d"}, Words{"inspect", t / "d"}}) {
    expect_refused(t.tokenize(words + flags), "tokenize", part);
    EXPECT_EQ(t.tokenize(words + flags + pattern).status, 0) << words[0];
  }
}

TEST(TokenizerOfAModel, MayBeNamedWhereItHasNoneAndHasToBeItsOwnWhereItHasOne) {
  Tokenizers t;
  t.train(t.tiny("out", 4) + Words{"--vocab", "270"});
  ASSERT_EQ(t.tokenize({"train", "-", "--vocab", "270", "--out", t / "other.json"}, std::string(3000, 'x')).status, 0);
  for (const char* program : {"sample", "eval"})
    expect_refused(run(program, {"--model", t / "out", "--tokenizer", t / "other.json"}), program,
                   "from id 256 on they differ");
  std::filesystem::create_directory(t / "ids");
  std::vector<uint16_t> ids;
  for (int i = 0; i < 3000; ++i) ids.push_back(uint16_t(i % 50 == 0 ? 50256 : 97 + i % 7));
  write_ids(t / "ids/a.bin", ids);
  Words words = t.tiny("ids_only", 2);
  words[1] = t / "ids";
  t.train(words + Words{"--passes", "1"});
  expect_refused(run("eval", {"--model", t / "ids_only", "--data", t.text()}), "eval",
                 "name their tokenizer with --tokenizer");
  expect_refused(run("sample", {"--model", t / "ids_only", "--end-token", "x"}), "sample",
                 "has no tokenizer of which it could be said");
}

// What programs say names only flags that they have.
TEST(Messages, NameOnlyFlagsOfTheProgramsThatSayThem) {
  const Words engine = {"train", "sample", "eval"}, all = {"train", "sample", "eval", "tokenize data"};
  const Words tokenize = {"tokenize train", "tokenize encode", "tokenize decode",
                          "tokenize data",  "tokenize import", "tokenize inspect"};
  // A file's messages come out of these programs: all of them have a flag that it names; of ./tokenize some subcommand.
  const std::map<std::string, Words> said_by = {{"sample.cpp", {"sample"}},
                                                {"eval.cpp", {"eval"}},
                                                {"bench.cpp", {"bench"}},
                                                {"tokenize.cpp", {"tokenize"}},
                                                {"import_ids.cpp", {"tokenize import"}},
                                                {"prepare.cpp", {"tokenize data"}},
                                                {"documents.cpp", {"tokenize data"}},
                                                {"text_input.cpp", {"tokenize"}},  // whose commands it says to type
                                                {"data.cpp", {"train", "eval"}},
                                                {"training_data.cpp", {"train"}},
                                                {"devices.cpp", {"train"}},
                                                {"tokenizer.cpp", all},
                                                {"tokenizer_files.cpp", all},
                                                {"tokenizer_flags.cpp", all},
                                                {"checkpoint.cpp", engine},
                                                {"program.cpp", engine},
                                                {"threads.cpp", engine},
                                                {"inspect.cpp", {"tokenize inspect"}},
                                                {"trainer.cpp", {"train or sample"}}};
  std::map<std::string, std::string> help;
  for (const std::string& program : engine) help[program] = run(program, {"--help"}).out;
  help["train or sample"] = help["train"] + help["sample"];  // ./train ends with how to talk to its model
  help["bench"] = run("bench", {"--help"}).out;
  for (const std::string& name : tokenize)
    help["tokenize"] += help[name] = run("tokenize", {name.substr(9), "--help"}).out;
  std::string folder = std::filesystem::path(__FILE__).parent_path().parent_path() / "src";
  int found = 0;
  for (const std::string& file : list_folder(folder)) {
    if (!file.ends_with(".cpp") || file == "flags.cpp" || file.ends_with("_flags.cpp")) continue;
    auto programs = said_by.find(file);
    for (const std::string& line : lines_of(contents(folder + "/" + file))) {
      size_t quote = line.find('"'), comment = line.find("//");
      if (quote == std::string::npos || comment < quote) continue;
      for (size_t at = quote; (at = line.find("--", at)) != std::string::npos; at += 2) {
        size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at + 2);
        std::string flag = line.substr(at, end - at);
        if (flag.size() < 4 || line[at - 1] == '-') continue;
        bool to_paste = line.rfind("./train ", at) != std::string::npos;  // a command of ./train, whoever shows it
        for (const std::string& program : to_paste || programs == said_by.end() ? Words{"train"} : programs->second)
          EXPECT_TRUE(has(help[program], flag + " ") || has(help[program], flag + ",") ||
                      has(help[program], "--[no-]" + flag.substr(2)))
              << file << " names " << flag << ", which ./" << program << " has not: " << line;
        ++found;
      }
    }
  }
  EXPECT_GT(found, 50) << "they are looked for in the right place";
}
