// ./train on token files: which it takes, what tokenizer they have, how often they are seen; and that a run that was
// stopped at any step, across borders of files, goes on with the same bits.
#include "program.h"
#include "shards.h"
#include "tokenizer.h"

namespace {

// Token files of a text of some sentences, as ./tokenize makes them, in several small files.
struct Shards : Bench {
  explicit Shards(const Words& more = {"--vocab", "280"}, int documents = 40) {
    std::string texts;
    for (int i = 0; i < documents; ++i) texts += (i ? "\n<|endoftext|>\n" : "") + some_text(size_t(60 + 37 * (i % 7)));
    put(text(), texts);
    Ran ran =
        ::run("tokenize",
              Words{"data", text(), "--out", data(), "--shard-tokens", "400", "--val", "0.2", "--threads", "1"} + more);
    EXPECT_EQ(ran.status, 0) << ran.err;
  }
  std::string data() const { return folder / "data"; }
  Words small(const std::string& out, int steps = 30) const {
    Words words = tiny(out, steps);
    words[1] = data();
    return words;
  }
};

void write_tokens(const std::string& path, const std::vector<uint16_t>& tokens) {
  std::string bytes = shard_header(16, int64_t(tokens.size()));
  bytes.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2);
  put(path, bytes);
}

TEST(ShardTraining, AFolderAPatternAndItsTokenizerAreTaken) {
  Shards shards;
  size_t files = find_shards(shards.data()).train.size();
  ASSERT_GE(files, 3u);
  Ran ran = shards.train(shards.small("folder"));
  EXPECT_TRUE(has(ran.out, std::to_string(files) + " files of 16-bit tokens")) << ran.out;
  EXPECT_TRUE(has(ran.out, "vocabulary"));
  Words words = shards.small("pattern");
  words[1] = shards.data() + "/*.bin";
  shards.train(words);
  EXPECT_TRUE(shards.model("folder", 30) == shards.model("pattern", 30));
  std::string tokenizer = contents(shards.checkpoint("folder", 30) + "/tokenizer.json");
  EXPECT_EQ(tokenizer, contents(shards.data() + "/tokenizer.json"));
  ran = run("sample", {"--model", shards / "folder", "--prompt", "the cat", "--tokens", "5", "--temperature", "0"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "the cat"));
  ran = run("eval", {"--model", shards / "folder"});
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST(ShardTraining, ResumesWithTheSameBitsAtAnyStepAcrossBordersOfFiles) {
  for (const char* pack : {"documents", "stream"}) {
    Shards shards;
    Words more = {"--pack", pack, "--passes", "0:60/40", "--eval-every", "0", "--sample-every", "0"};
    shards.train(shards.small("whole", 60) + more);
    for (int step = 1; step < 60; step += 4) {
      std::string out = "stopped" + std::to_string(step);
      Words first = shards.small(out, 60) + more + Words{"--save-every", std::to_string(step), "--keep", "0"};
      Running running(Words{program_path("train")} + first);
      running.until([&] { return std::filesystem::exists(shards.checkpoint(out, step)); });
      running.kill(SIGKILL);
      running.wait();
      shards.train({"--resume", shards.checkpoint(out, step), "--threads", "1", "--save-every", "0"});
      ASSERT_TRUE(shards.model(out, 60) == shards.model("whole", 60)) << pack << ", from step " << step;
      ASSERT_TRUE(shards.optimizer(out, 60) == shards.optimizer("whole", 60)) << pack << ", from step " << step;
    }
    Json state = parse_json(contents(shards.checkpoint("whole", 60) + "/state.json"), "state");
    EXPECT_GT(state.get_int("epoch", "state"), 0) << "it should cross borders";
  }
}

TEST(ShardTraining, EpochsSayHowLongAndRepeatedDataIsNoted) {
  Shards shards;
  Words words = shards.small("once");
  words.erase(std::find(words.begin(), words.end(), "--steps"), std::find(words.begin(), words.end(), "--steps") + 2);
  Ran once = shards.train(words + Words{"--epochs", "1"});
  EXPECT_FALSE(has(once.out, "note:")) << once.out;
  EXPECT_TRUE(has(once.out, "1 epochs") || has(once.out, "0.9") || has(once.out, "1.0")) << once.out;
  words.back() = shards / "thrice";
  Ran thrice = shards.train(words + Words{"--epochs", "3"});
  EXPECT_TRUE(has(thrice.out, "seen about 3")) << thrice.out;
  EXPECT_NEAR(double(shards.logged("thrice")), 3 * double(shards.logged("once")), 4);
  expect_refused(run("train", shards.small("both") + Words{"--epochs", "2"}), "train", "exclude each other");
  shards.train({"--resume", shards / "once", "--steps", "80", "--threads", "1"});
  Ran again = shards.train({"--resume", shards / "once", "--threads", "1"});
  EXPECT_TRUE(has(again.out, "run      80 steps")) << "the last --steps says how long\n" << again.out;
}

TEST(ShardTraining, TheFlagsOfARunByEpochsMakeItAgain) {
  Shards shards;
  Words words = shards.small("one");
  words.erase(std::find(words.begin(), words.end(), "--steps"), std::find(words.begin(), words.end(), "--steps") + 2);
  shards.train(words + Words{"--epochs", "0.5"});
  shards.train({"--config", shards / "one/run.conf", "--out", shards / "other", "--threads", "1"});
  EXPECT_EQ(shards.logged("one"), shards.logged("other"));
  shards.train({"--resume", shards / "one", "--epochs", "1", "--threads", "1"});
  EXPECT_GT(shards.logged("one"), shards.logged("other"));
}

TEST(ShardTraining, EmptyFilesChangeNothingOfThePlan) {
  Bench bench;
  std::vector<uint16_t> tokens;
  for (int i = 0; i < 3000; ++i) tokens.push_back(uint16_t(i % 30 ? 'a' + i % 7 : 256));
  auto plan = [&](const std::string& name, int empty_files) {
    std::filesystem::create_directory(bench / name);
    for (int i = 0; i < empty_files; ++i) write_tokens(bench / (name + text("/train_%d.bin", i)), {});
    write_tokens(bench / (name + "/train_9.bin"), tokens);
    write_tokens(bench / (name + "/val.bin"), tokens);
    Words words = {"--data",    bench / name, "--tokenizer", "bytes", "--width", "16",
                   "--heads",   "2",          "--seq",       "32",    "--batch", "2",
                   "--threads", "1",          "--epochs",    "1",     "--out",   bench / (name + "_out")};
    std::string out = bench.train(words).out;
    EXPECT_FALSE(has(out, "nan")) << out;
    return bench.logged(name + "_out");
  };
  EXPECT_EQ(plan("one", 0), plan("many", 9));
}

TEST(ShardTraining, TheLongestFileIsHeldOutFromHoweverShortTheLastIs) {
  Bench bench;
  std::filesystem::create_directory(bench / "data");
  write_tokens(bench / "data/a.bin", std::vector<uint16_t>(3000, 'a'));
  write_tokens(bench / "data/b.bin", std::vector<uint16_t>(3000, 'b'));
  write_tokens(bench / "data/c.bin", {256});
  Words words = bench.tiny("out", 3);
  words[1] = bench / "data";
  EXPECT_TRUE(has(bench.train(words + Words{"--tokenizer", "bytes"}).out, "held out 300 tokens"));
}

TEST(ShardTraining, FilesOfLlmCWithoutATokenizerAreTrainedOnByTheirIds) {
  Bench bench;
  std::vector<uint16_t> tokens;
  for (int i = 0; i < 3000; ++i) tokens.push_back(uint16_t(i % 50 == 0 ? 50256 : 100 + i % 7));
  std::filesystem::create_directory(bench / "gpt2");
  write_tokens(bench / "gpt2/fineweb_train_000001.bin", tokens);
  write_tokens(bench / "gpt2/fineweb_val_000000.bin", tokens);
  Words words = bench.tiny("ids", 4);
  words[1] = bench / "gpt2/*.bin";
  Ran ran = bench.train(words + Words{"--sample-every", "2", "--passes", "1"});
  EXPECT_TRUE(has(ran.out, "ids only, taken for GPT-2's")) << ran.out;
  EXPECT_TRUE(has(ran.out, "vocabulary 50257")) << ran.out;
  EXPECT_TRUE(has(ran.out, "says <1")) << ran.out;
  EXPECT_FALSE(std::filesystem::exists(bench.checkpoint("ids", 4) + "/tokenizer.json"));
  expect_refused(run("sample", {"--model", bench / "ids", "--prompt", "x"}), "sample", "name their tokenizer");
  EXPECT_EQ(run("sample", {"--model", bench / "ids", "--tokens", "3"}).status, 0);
  bench.train({"--resume", bench / "ids", "--steps", "6", "--threads", "1"});
}

TEST(ShardTraining, ThePlanListsWhatIsHeldOut) {
  Shards shards;
  EXPECT_TRUE(has(unwrapped(shards.train(shards.small("named", 2)).out), "tokens: val_000000.bin"));
  std::filesystem::create_directory(shards / "many");
  std::vector<uint16_t> tokens(500, 'a');
  write_tokens(shards / "many/interval_train.bin", tokens);
  for (int i = 0; i < 6; ++i) write_tokens(shards / text("many/val_%d.bin", i), tokens);
  Words words = shards.small("many_out", 2);
  words[1] = shards / "many";
  std::string plan = unwrapped(shards.train(words + Words{"--tokenizer", "bytes"}).out);
  EXPECT_TRUE(has(plan, "tokens: val_0.bin, val_1.bin, val_2.bin, val_3.bin, and 2 more")) << plan;
  for (int i = 0; i < 6; ++i) std::filesystem::remove(shards / text("many/val_%d.bin", i));
  words.back() = shards / "tenth_out";
  plan = unwrapped(shards.train(words + Words{"--tokenizer", "bytes"}).out);
  EXPECT_TRUE(has(plan, "held out 50 tokens: the last tenth of interval_train.bin")) << plan;
}

TEST(ShardTraining, VocabIsRefusedWhereNoTokenizerIsTrained) {
  Shards shards;
  Words words = shards.small("out", 4);
  std::string says = "--vocab 280: no tokenizer is trained here, ";
  expect_refused(run("train", words + Words{"--vocab", "280"}), "train", says + "token files have the ids of theirs");
  put(shards / "own.conf", "vocab = 280\n");
  expect_refused(run("train", words + Words{"--config", shards / "own.conf"}), "train", says);
  EXPECT_FALSE(std::filesystem::exists(shards / "out"));
  shards.train(words);
  EXPECT_FALSE(has(contents(shards / "out/run.conf"), "vocab"));
  shards.train({"--config", shards / "out/run.conf", "--out", shards / "again", "--threads", "1"});
  EXPECT_TRUE(shards.model("out", 4) == shards.model("again", 4));
  expect_refused(run("train", {"--resume", shards / "out", "--vocab", "280", "--steps", "6"}), "train", says);
  shards.train({"--resume", shards / "out", "--steps", "6", "--threads", "1"});

  words[1] = shards.text();
  words.back() = shards / "new";
  expect_refused(run("train", words + Words{"--init-from", shards / "out", "--vocab", "280"}), "train",
                 says + "the weights bring theirs");
  shards.train(words + Words{"--vocab", "270"});
  EXPECT_TRUE(has(contents(shards / "new/run.conf"), "vocab = \"270\""));
  shards.train({"--resume", shards / "new", "--vocab", "270", "--steps", "6", "--threads", "1"});
  EXPECT_TRUE(has(contents(shards / "new/run.conf"), "vocab = \"270\""));
}

TEST(Train, WhatIsNoTextIsRefusedAndFormatTextTakesItAsItIs) {
  Bench bench;
  std::string bytes = some_text();
  bytes[100] = '\0';
  put(bench / "zero", bytes), put(bench / "w.jsonl", "{\"body\": \"the cat\"}\n");
  put(bench / "x.bin", bytes);
  Words words = bench.tiny("out", 4);
  words[1] = bench / "w.jsonl";
  expect_refused(run("train", words + Words{"--tokenizer", "bytes"}), "train",
                 "./tokenize data " + (bench / "w.jsonl") + " --field body --tokenizer bytes --out w_tokens;");
  words[1] = bench / "zero";
  expect_refused(run("train", words), "train", "zero is not text: byte 100 is zero; --format text takes it as it is");
  EXPECT_FALSE(std::filesystem::exists(bench / "out"));
  Ran ran = bench.train(words + Words{"--format", "text"});
  EXPECT_TRUE(has(ran.out, "held out the last tenth of it")) << ran.out;
  EXPECT_TRUE(has(contents(bench / "out/run.conf"), "format = \"text\""));
  bench.train({"--resume", bench / "out", "--steps", "6", "--threads", "1"});
  EXPECT_EQ(run("eval", {"--model", bench / "out"}).status, 0) << "as it was trained";
  expect_refused(run("eval", {"--model", bench / "out", "--data", bench / "zero"}), "eval", "byte 100 is zero");
  EXPECT_EQ(run("eval", {"--model", bench / "out", "--data", bench / "zero", "--format", "text"}).status, 0);
  words[1] = bench / "x.bin", words.back() = bench / "bin";
  bench.train(words + Words{"--format", "text"});
}

TEST(ShardTraining, MasksBesideTheFilesHold) {
  Bench bench;
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += "{\"q\": \"what is " + std::to_string(i) + " and one?\", \"a\": \"" + std::to_string(i + 1) + "\"}\n";
  put(bench / "qa.jsonl", lines);
  Ran ran = run("tokenize", {"data", bench / "qa.jsonl", "--out", bench / "data", "--vocab", "280", "--field", "a",
                             "--prompt-field", "q", "--val", "0.2", "--threads", "1"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  Words words = bench.tiny("out", 10);
  words[1] = bench / "data";
  bench.train(words);
  std::string mask = contents(bench / "data/train_000000.mask");
  put(bench / "data/train_000000.mask", std::string(mask.size(), '\1'));
  expect_refused(run("train", {"--resume", bench / "out", "--steps", "12"}), "train", "other data");
  put(bench / "data/train_000000.mask", mask.substr(1));
  words.back() = bench / "other";
  expect_refused(run("train", words), "train", "train_000000.mask");
}

TEST(ShardTraining, WhatDoesNotFitTogetherIsNamedAndNothingIsWritten) {
  Shards shards;
  put(shards / "cut.bin", contents(shards.data() + "/train_000000.bin").substr(0, 1500));
  put(shards / "text.bin", some_text(3000));
  std::vector<uint16_t> high(500, 400);
  std::filesystem::create_directory(shards / "high");
  write_tokens(shards / "high/train_000000.bin", high);
  std::filesystem::copy(shards.data() + "/tokenizer.json", shards / "high/tokenizer.json");
  std::filesystem::create_directory(shards / "only_val");
  write_tokens(shards / "only_val/val_000000.bin", high);
  std::filesystem::create_directory(shards / "none");
  std::filesystem::copy(shards.data(), shards / "silent");
  for (const std::string& name : list_folder(shards / "silent"))
    if (has(name, "val_")) write_tokens(shards / ("silent/" + name), std::vector<uint16_t>(100, 279));
  struct Case {
    std::string data, says;
    Words more = {};
  };
  for (const Case& c : std::vector<Case>{
           {shards / "cut.bin", "cut.bin"},
           {shards / "text.bin", "text.bin"},
           {shards / "high", "holds token 400 at position 0, but the tokenizer has 280 ids"},
           {shards / "only_val", "for validation"},
           {shards / "none/*.bin", "none/*.bin"},
           {shards / "none", "it is a folder without token files (*.bin), which ./tokenize data makes of text"},
           {shards / "silent/*.bin", "none of the held-out tokens is a target"},
           {shards / "nothing.bin", "nothing.bin"},
           {shards.data(), "is not the tokenizer of", {"--tokenizer", "bytes"}},
           {shards.data(), "no/such.json", {"--tokenizer", "no/such.json"}},
       }) {
    Words words = shards.small("out");
    words[1] = c.data;
    expect_refused(run("train", words + c.more), "train", c.says);
    EXPECT_FALSE(std::filesystem::exists(shards / "out")) << c.data;
  }
}

TEST(ShardTraining, FilesMayHaveMoved) {
  Shards shards;
  shards.train(shards.small("out", 10));
  std::filesystem::rename(shards.data(), shards / "moved");
  expect_refused(run("train", {"--resume", shards / "out", "--steps", "12"}), "train", "if the file has moved");
  for (std::string data : {shards / "moved", shards / "moved/*.bin"})
    shards.train({"--resume", shards / "out", "--data", data, "--steps", data == shards / "moved" ? "12" : "14",
                  "--threads", "1"});
}

TEST(ShardTraining, AModelKeepsToItsTokenizer) {
  Shards shards, others({"--vocab", "270"});
  shards.train(shards.small("out"));
  expect_refused(run("train", {"--resume", shards / "out", "--data", others.data(), "--steps", "40"}), "train", "");
  Words words = shards.small("new");
  words[1] = others.data();
  expect_refused(run("train", words + Words{"--init-from", shards / "out"}), "train", "is not the tokenizer of");
  expect_refused(run("eval", {"--model", shards / "out", "--data", others.data()}), "eval", "is not the tokenizer of");
  words[1] = shards.text();
  shards.train(words + Words{"--init-from", shards / "out"});
  EXPECT_EQ(contents(shards.checkpoint("new", 30) + "/tokenizer.json"), contents(shards.data() + "/tokenizer.json"));
  put(shards / "text2.txt", std::string(3000, 'x') + some_text(500));
  std::string other = shards / "other.json";
  ASSERT_EQ(run("tokenize", {"train", shards / "text2.txt", "--vocab", "280", "--out", other}).status, 0);
  words = shards.small("third");
  words[1] = shards.text();
  expect_refused(run("train", words + Words{"--init-from", shards / "out", "--tokenizer", other}), "train",
                 "from id 256 on they differ");
  shards.train(words + Words{"--init-from", shards / "out", "--tokenizer", shards.data() + "/tokenizer.json"});
}

TEST(Train, AFolderNamedAsTheCorpusDoesNotStandInItsWay) {
  Bench bench;
  Setting here;
  here.folder = bench.folder.path;
  Words words = bench.tiny("sums", 3);
  words[1] = "sums";
  bench.train(words, here);
  bench.train({"--resume", "sums", "--steps", "4", "--threads", "1"}, here);
}

TEST(Train, AnyTokenizerMayBeGivenForAText) {
  Bench bench;
  bench.train(bench.tiny("bytes") + Words{"--tokenizer", "bytes"});
  Json config = parse_json(contents(bench.checkpoint("bytes", 30) + "/config.json"), "config");
  EXPECT_EQ(config.get_int("vocab_size", "config"), 257);
  EXPECT_EQ(config.get_int("eos_token_id", "config"), 256);
  ASSERT_EQ(
      run("tokenize", {"train", bench.text(), "--vocab", "270", "--pattern", "gpt2", "--out", bench / "t.json"}).status,
      0);
  bench.train(bench.tiny("given") + Words{"--tokenizer", bench / "t.json"});
  EXPECT_EQ(contents(bench.checkpoint("given", 30) + "/tokenizer.json"), contents(bench / "t.json"));
  std::filesystem::remove(bench / "t.json");
  bench.train({"--resume", bench / "given", "--steps", "40", "--threads", "1"});
  expect_refused(run("train", bench.tiny("both") + Words{"--vocab", "260", "--tokenizer", "bytes"}), "train",
                 "exclude each other");
  bench.train({"--config", bench / "bytes/run.conf", "--out", bench / "again", "--threads", "1"});
  bench.train(bench.tiny("trained") + Words{"--vocab", "260"});
  config = parse_json(contents(bench.checkpoint("trained", 30) + "/config.json"), "config");
  EXPECT_EQ(config.get_int("vocab_size", "config"), 260);
  EXPECT_EQ(contents(bench / "trained/tokenizer.json"), contents(bench.checkpoint("trained", 30) + "/tokenizer.json"));
}

}  // namespace
