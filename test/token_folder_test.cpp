// A folder of token files is what its data.json says, or a line says what it is not, whoever reads it.
#include "token_folder.h"

#include "program.h"
#include "shards.h"

namespace {

// Some documents as token files: three to train on, one held out.
struct Prepared : Bench {
  Prepared() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += some_text(100 + 7 * size_t(i)) + "<|endoftext|>\n";
    put(*this / "texts.txt", text);
    EXPECT_EQ(data().status, 0);
  }
  Ran data() const {
    return run("tokenize", {"data", *this / "texts.txt", "--out", folder_path(), "--tokenizer", "bytes",
                            "--shard-tokens", "6000", "--val", "0.2"});
  }
  std::string folder_path() const { return *this / "d"; }
  std::string file(const std::string& name) const { return folder_path() + "/" + name; }
  Ran train(const std::string& what) const {
    return run("train", {"--data", what, "--width", "16", "--heads", "2", "--seq", "32", "--batch", "2", "--steps", "1",
                         "--threads", "1", "--out", *this / "out"});
  }
  void refused(const std::string& part) const {
    expect_refused(train(folder_path()), "train", part);
    Ran ran = run("tokenize", {"inspect", folder_path()});
    EXPECT_EQ(ran.status, 1);
    EXPECT_TRUE(has(ran.err, part)) << ran.err;
  }
};

void edit(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = contents(path);
  size_t at = text.find(from);
  ASSERT_NE(at, text.npos) << from;
  put(path, text.replace(at, from.size(), to));
}

// What a program said is to be typed, typed.
Ran shell_in(const std::string& folder, std::string line, const std::string& input = "") {
  size_t at = line.find("./tokenize");
  EXPECT_NE(at, line.npos) << line;
  Setting setting;
  setting.folder = folder, setting.input = input;
  return Running({"sh", "-c", line.replace(at, 10, program_path("tokenize"))}, setting).wait();
}

// What stands in a message between two parts of it.
std::string between(const std::string& message, const std::string& before, const std::string& after) {
  size_t begin = message.find(before), end = message.find(after, begin);
  EXPECT_TRUE(begin != message.npos && end != message.npos) << message;
  return begin == message.npos ? "" : message.substr(begin + before.size(), end - begin - before.size());
}

}  // namespace

TEST(TokenFolder, ThatIsWholeIsTaken) {
  Prepared p;
  ShardNames names = find_shards(p.folder_path());
  EXPECT_EQ(read_token_folder(p.folder_path()).files.size(), names.train.size() + names.validation.size());
  EXPECT_EQ(p.train(p.folder_path()).status, 0);
  EXPECT_EQ(run("tokenize", {"inspect", p.folder_path()}).status, 0);
  EXPECT_NO_THROW(require_as_prepared(p / "")) << "a folder without data.json is taken as it is";
}

TEST(TokenFolder, WhoseFilesHaveOtherBytesIsFoundByInspectingIt) {
  Prepared p;
  auto inspected = [&] { return run("tokenize", {"inspect", p.folder_path()}).err; };
  EXPECT_EQ(inspected(), "");
  std::string first = contents(p.file("train_000000.bin")), second = contents(p.file("train_000001.bin"));
  ASSERT_EQ(first.size(), second.size());
  put(p.file("train_000000.bin"), second), put(p.file("train_000001.bin"), first);  // two full ones, swapped
  EXPECT_TRUE(has(inspected(), "train_000000.bin has other bytes than when it was made, by the checksum in "))
      << inspected();
  EXPECT_TRUE(has(inspected(), "train_000001.bin has other bytes")) << "each is named";
  put(p.file("train_000000.bin"), first.substr(0, 5000) + char(first[5000] ^ 1) + first.substr(5001));
  put(p.file("train_000001.bin"), second);
  EXPECT_TRUE(has(inspected(), "train_000000.bin has other bytes")) << "one bit of it";
  EXPECT_FALSE(has(inspected(), "train_000001.bin has other bytes"));
  put(p.file("train_000000.bin"), first);
  EXPECT_EQ(inspected(), "");
  std::string record = contents(p.file("data.json"));
  edit(p.file("data.json"), "\"checksums\"", "\"before\"");
  EXPECT_EQ(inspected(), "") << "a folder from before there were any";
  put(p.file("data.json"), record.substr(0, record.find(",\n  \"checksums\"")) + "\n}\n");
  put(p.file(".seen.partial"), "x");
  EXPECT_EQ(p.data().status, 0) << "as a kill may leave it";
  EXPECT_FALSE(file_exists(p.file(".seen.partial")));
  EXPECT_EQ(contents(p.file("data.json")), record);
}

TEST(TokenFolder, WhoseFilesAreAllGoneSaysWhichThereShouldBe) {
  Prepared p;
  ASSERT_EQ(p.train(p.folder_path()).status, 0);
  for (const std::string& name : list_folder(p.folder_path()))
    if (name.ends_with(".bin")) std::filesystem::remove(p.file(name));
  for (const Words& data : {Words{}, Words{"--data", p.folder_path()}})
    expect_refused(run("eval", Words{"--model", p / "out"} + data), "eval", "train_000000.bin is missing, which ");
  remove_folder(p / "out");
  p.refused("train_000000.bin is missing, which ");
}

TEST(TokenFolder, WhoseDataJsonListsNoFilesThoughAllIsDoneIsRefused) {
  Prepared p;
  const char* refusal = "data.json says that all is done, and lists no files: remove it and make the folder anew";
  Json json = parse_json(contents(p.file("data.json")), "data.json");
  for (const char* count : {"train_tokens", "validation_tokens", "train_shards", "validation_shards"})
    json.set(count, 0);
  put(p.file("data.json"), write_json(json));
  p.refused(refusal);
  expect_refused(p.data(), "tokenize", "data.json says that all is done, and counts no tokens: remove it and make");
  put(p.file("data.json"), "{\"format\": 1, \"complete\": true, \"options\": {\"tokenizer\": \"\"}, \"files\": {}}");
  p.refused(refusal);
}

TEST(TokenFolder, WithoutAFileNamesItAndWhatToDo) {
  for (const char* name : {"train_000001.bin", "val_000000.bin"}) {
    Prepared p;
    std::filesystem::remove(p.file(name));
    p.refused(std::string(name) + " is missing, which ");
    expect_refused(p.data(), "tokenize", std::string(name) + " is missing, which was written before: copy it back");
    EXPECT_EQ(p.train(p.file("*.bin")).status, 0) << "the files that are named are taken";
  }
}

TEST(TokenFolder, WithAnotherTokenizerOrNoneIsRefused) {
  Prepared p;
  ASSERT_EQ(run("tokenize", {"train", p.text(), "--vocab", "270", "--out", p / "other.json"}).status, 0);
  std::filesystem::remove(p.file("tokenizer.json"));
  p.refused("tokenizer.json is missing, by which the tokens in");
  expect_refused(p.train(p.file("*.bin")), "train", "tokenizer.json is missing, by which the tokens in");
  EXPECT_EQ(run("tokenize", {"inspect", p.folder_path(), "--tokenizer", "bytes"}).status, 0) << "it is named";
  std::filesystem::copy(p / "other.json", p.file("tokenizer.json"));
  p.refused("is not the tokenizer that made the tokens in");
  expect_refused(p.train(p.file("*.bin")), "train", "is not the tokenizer that made the tokens in");
  std::filesystem::remove(p.file("tokenizer.json"));
  EXPECT_EQ(p.data().status, 0);
  EXPECT_EQ(p.train(p.folder_path()).status, 0) << "it was put back";
}

TEST(TokenFolder, WithFilesOfOthersIsRefused) {
  Prepared p;
  std::filesystem::copy(p.file("val_000000.bin"), p.file("other.bin"));
  p.refused("other.bin is none of the files that");
  expect_refused(p.data(), "tokenize", "other.bin is in the way");
  std::filesystem::remove(p.file("other.bin"));
  put(p.file("train_000009.mask"), "x");
  p.refused("train_000009.mask is none of the files that");
}

TEST(TokenFolder, WhoseFilesAreOthersIsRefused) {
  Prepared p;
  std::string file = contents(find_shards(p.folder_path()).train.back());  // the last one is short
  std::filesystem::remove(p.file("train_000000.bin"));
  put(p.file("train_000000.bin"), file);
  p.refused("data.json says 6000: it is another file");
}

TEST(TokenFolder, ThatIsUnfinishedIsRefusedWithTheWayOn) {
  Prepared p;
  edit(p.file("data.json"), "\"complete\": true", "\"complete\": false");
  p.refused("is not finished: give its ./tokenize data again, which goes on, or name the files that are there");
  EXPECT_EQ(p.train(p.file("*.bin")).status, 0);
}

TEST(TokenFolder, ThatIsUnfinishedSaysTheCommandThatGoesOn) {
  Bench bench;
  std::string lines;
  for (int i = 0; i < 90; ++i)
    lines += write_json(Json::object({{"a body", some_text(100 + 7 * size_t(i))}})) + (i % 9 == 5 ? "\nbad\n" : "\n");
  std::filesystem::create_directory(bench / "in");
  put(bench / "in/it's.jsonl", lines);
  Setting inside;
  inside.folder = bench / "";
  auto data = [&](const std::string& out, const Setting& setting) {
    return run("tokenize",
               {"data", "in", "--out", out, "--vocab", "270", "--shard-tokens", "6000", "--val", "0.2", "--dedup",
                "--field", "a body", "--on-bad-line", "skip", "--batch-bytes", "900", "--save-seconds", "0"},
               setting);
  };
  ASSERT_EQ(data("whole", inside).status, 0);
  Setting full = inside;
  full.largest_file = 11000;
  ASSERT_EQ(data("my d", full).status, 1);
  std::string refused = run("train", {"--data", "my d"}, inside).err;
  EXPECT_EQ(refused,
            "train: my d is not finished: ./tokenize data in --field 'a body' --shard-tokens 6000 --val 0.2 --dedup "
            "--on-bad-line skip --out 'my d' goes on with it, or name the files that are there, as in 'my d/*.bin'\n");
  Ran ran = shell_in(bench / "", between(refused, "finished: ", " goes on with it"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "going on behind ")) << ran.out;
  EXPECT_EQ(contents(bench / "my d/data.json"), contents(bench / "whole/data.json"));
  EXPECT_EQ(run("tokenize", {"inspect", "my d"}, inside).status, 0);
}

TEST(TokenFolder, ThatIsUnfinishedAndCameFromAPipeAsksForTheSameInput) {
  Bench bench;
  Setting setting;
  setting.folder = bench / "";
  for (int i = 0; i < 90; ++i) setting.input += some_text(100 + 7 * size_t(i)) + "<|endoftext|>\n";
  setting.largest_file = 20000;
  ASSERT_EQ(
      run("tokenize",
          {"data", "-", "--out", "d", "--tokenizer", "bytes", "--batch-bytes", "900", "--save-seconds", "0"}, setting)
          .status,
      1);
  Ran piped = Running({"sh", "-c",
                       "cat | " + program_path("tokenize") +
                           " data /dev/fd/0 --out e --tokenizer bytes --batch-bytes 900 --save-seconds 0"},
                      setting)
                  .wait();
  EXPECT_TRUE(has(run("tokenize", {"inspect", bench / "e"}).err, "give its ./tokenize data again")) << piped.err;
  std::string refused = run("tokenize", {"inspect", bench / "d"}).err;
  std::string line = between(refused, "is not finished: pipe the same input in again: ", " goes on with it");
  EXPECT_EQ(line, "./tokenize data - --out " + (bench / "d"));
  EXPECT_EQ(shell_in(bench / "", line, setting.input).status, 0);
  EXPECT_EQ(run("tokenize", {"inspect", bench / "d"}).status, 0);
}

TEST(TokenFolder, OfAnImportThatWasCutShortSaysTheCommandThatMakesItWhole) {
  Bench bench;
  Setting setting;
  setting.folder = bench / "";
  put(bench / "a.bin", std::string(6000, '\0')), put(bench / "b.bin", std::string(20000, '\0'));
  Words import = {"--bits", "32", "--tokenizer", "bytes", "--format", "ids", "--out", "d"};
  ASSERT_EQ(run("tokenize", Words{"import", "a.bin"} + import, setting).status, 0);
  setting.largest_file = 10000;
  ASSERT_EQ(run("tokenize", Words{"import", "b.bin"} + import, setting).status, 1);
  setting.largest_file = 0;
  std::string refused = run("train", {"--data", "d"}, setting).err;
  std::string line = between(refused, "is not finished: ", " goes on with it");
  EXPECT_EQ(line, "./tokenize import b.bin --bits 32 --format ids --tokenizer bytes --out d");
  EXPECT_EQ(shell_in(bench / "", line).status, 0) << "a.bin was finished";
  EXPECT_EQ(read_token_folder(bench / "d").files.size(), 2u);
  EXPECT_EQ(run("tokenize", {"inspect", "d"}, setting).err, "");
}

TEST(TokenFolder, FormatTextIsForAFile) {
  Prepared p;
  Words words = {"--format", "text", "--out", p / "out"};
  expect_refused(run("train", Words{"--data", p.folder_path()} + words), "train",
                 "it is a folder of token files; --format text is for one file of text");
  expect_refused(run("train", words), "train", "--data sums is the built-in corpus, and no file has that name");
}
