// ./tokenize: its subcommands, and their mistakes.
#include <random>

#include "bpe.h"
#include "program.h"
#include "shards.h"
#include "token_folder.h"

namespace {

std::string random_bytes(size_t n) {
  std::mt19937 random(7);
  std::string bytes(n, '\0');
  for (char& c : bytes) c = char(random());
  return bytes;
}

// A text, and a tokenizer of 280 ids trained on it by the program.
struct Workshop {
  Scratch folder;
  Workshop() {
    put(folder / "a.txt", some_text());
    Ran ran = tokenize({"train", folder / "a.txt", "--vocab", "280", "--out", folder / "tok.json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
  }
  std::string operator/(const std::string& name) const { return folder / name; }
  Ran tokenize(const Words& words, const std::string& input = "") const {
    Setting setting;
    setting.input = input;
    return run("tokenize", words, setting);
  }
};

}  // namespace

TEST(Tokenize, ListsItsSubcommandsAndNamesTheNearest) {
  for (const Words& words : {Words{}, Words{"--help"}, Words{"-h"}}) {
    Ran ran = run("tokenize", words);
    EXPECT_EQ(ran.status, 0);
    for (const char* name : {"\n  train ", "\n  encode ", "\n  decode ", "\n  data ", "\n  import ", "\n  inspect "})
      EXPECT_TRUE(has(ran.out, name)) << ran.out;
  }
  expect_refused(run("tokenize", {"inspct"}), "tokenize", "no subcommand `inspct`: did you mean inspect?");
  expect_refused(run("tokenize", {"x"}), "tokenize", "./tokenize lists them");
  for (const char* name : {"train", "encode", "decode", "data", "import", "inspect"}) {
    Ran ran = run("tokenize", {name, "--help"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_TRUE(has(ran.out, std::string("Usage: ./tokenize ") + name)) << ran.out;
    for (const std::string& line : lines_of(ran.out)) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(Tokenize, WhatIsEncodedDecodesToTheSameBytes) {
  Workshop w;
  for (const std::string& text : {random_bytes(20000), some_text(), std::string(), std::string("\n"),
                                  std::string("你好\0é", 9), std::string("<|endoftext|> 12")})
    for (const Words& flags :
         {Words{"--tokenizer", w / "tok.json"}, Words{"--tokenizer", "bytes"},
          Words{"--tokenizer", w / "tok.json", "--raw"}, Words{"--tokenizer", w / "tok.json", "--special"}}) {
      Ran ids = w.tokenize(Words{"encode"} + flags, text);
      EXPECT_EQ(ids.status, 0) << ids.err;
      Words back = flags;
      if (back.back() == "--special") back.pop_back();
      Ran decoded = w.tokenize(Words{"decode"} + back, ids.out);
      EXPECT_EQ(decoded.status, 0) << decoded.err;
      EXPECT_TRUE(decoded.out == text) << flags.back() << " changes " << text.size() << " bytes";
    }
  put(w / "text", "a file"), put(w / "ids", w.tokenize({"encode", w / "text", "--tokenizer", "bytes"}).out);
  EXPECT_EQ(contents(w / "ids"), "97 32 102 105 108 101\n");
  EXPECT_EQ(w.tokenize({"decode", "--tokenizer", "bytes", w / "ids"}).out, "a file");
  EXPECT_EQ(w.tokenize({"decode", "--tokenizer", "bytes", "-"}, " 97\n\n\t98\r\n").out, "ab");
}

TEST(Tokenize, SpecialTokensInATextAreTextUnlessTheyAreMeant) {
  Workshop w;
  Ran plain = w.tokenize({"encode", "--tokenizer", "bytes"}, "a<|endoftext|>");
  EXPECT_EQ(lines_of(plain.out)[0].rfind("97 60 124", 0), 0u) << plain.out;
  EXPECT_EQ(w.tokenize({"encode", "--tokenizer", "bytes", "--special"}, "a<|endoftext|>").out, "97 256\n");
  EXPECT_EQ(w.tokenize({"decode", "--tokenizer", "bytes"}, "97 256 98").out, "a<|endoftext|>b");
  std::string raw = w.tokenize({"encode", "--tokenizer", "bytes", "--special", "--raw"}, "a<|endoftext|>").out;
  EXPECT_EQ(raw, std::string("a\0\0\0\0\1\0\0", 8)) << "little-endian";
}

TEST(Tokenize, DecodingNamesABadIdAndItsPlace) {
  Workshop w;
  const std::pair<const char*, const char*> mistakes[] = {
      {"1 2\n 3 x\n", "standard input:2:4: `x` is no id: this tokenizer has 0 to 256"},
      {"257", "standard input:1:1: `257` is no id"},
      {"-1", "`-1` is no id"},
      {"1.5", "`1.5` is no id"},
      {"1,2", "`1,2` is no id"},
      {"99999999999999999999", "`99999999999999999999` is no id"}};
  for (auto [ids, part] : mistakes) {
    Ran ran = w.tokenize({"decode", "--tokenizer", "bytes"}, ids);
    expect_refused(ran, "tokenize", part);
    EXPECT_EQ(ran.out, "");
  }
  expect_refused(w.tokenize({"decode", "--tokenizer", "bytes", "--raw"}, "abcde"), "tokenize",
                 "5 bytes are no whole number");
  expect_refused(w.tokenize({"decode", "--tokenizer", "bytes", "--raw"}, std::string("a\0\0\0\xff\xff\xff\xff", 8)),
                 "tokenize", "token 2: `4294967295` is no id");
}

TEST(Tokenize, TrainWritesATokenizerAndSaysWhatCameOut) {
  Workshop w;
  put(w / "b.jsonl", "{\"text\": \"the cat the cat the cat\"}\n");
  Ran ran = w.tokenize({"train", w / "a.txt", w / "b.jsonl", "--data", w / "a.txt", "--vocab", "270", "--pattern",
                        "gpt2", "--special", "<|user|>,<|bot|>", "--out", w / "new.json", "--threads", "1"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::string said = unwrapped(ran.out);
  EXPECT_TRUE(has(said, "3 documents") && has(said, "270 ids, pattern gpt2") && has(said, " bytes a token")) << said;
  Tokenizer t = Tokenizer::load(w / "new.json");
  EXPECT_EQ(t.vocab(), 270);
  EXPECT_EQ(t.pattern(), Pattern::gpt2);
  ASSERT_EQ(t.specials().size(), 3u);
  EXPECT_EQ(t.specials()[2].text, "<|bot|>");

  // From standard input and from a file the same comes out; --most-bytes reads only the beginning.
  auto trained = [&](const Words& words, const std::string& input = "") {
    std::filesystem::remove(w / "x.json");
    Ran ran = w.tokenize(Words{"train", "--vocab", "280", "--out", w / "x.json"} + words, input);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return contents(w / "x.json");
  };
  EXPECT_EQ(trained({"-"}, some_text()), contents(w / "tok.json"));
  EXPECT_EQ(trained({"-", "--most-bytes", "6000"}, some_text(6000).substr(0, 6000) + std::string(5000, 'q')),
            trained({"-"}, some_text(6000).substr(0, 6000)));
}

TEST(Tokenize, DataTrainsATokenizerOfItsOwnWhereNoneIsGiven) {
  Workshop w;
  Words words = {"--vocab", "280", "--shard-tokens", "500", "--threads", "1", "--out"};
  Ran ran = w.tokenize(Words{"data", w / "a.txt"} + words + Words{w / "file"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"tokenizer  280 ids, pattern llama3", "documents  1 document", "no document was held out",
                           "bytes a token", "/train --data "})
    EXPECT_TRUE(has(ran.out, part)) << part << "\n" << ran.out;
  EXPECT_EQ(contents(w / "file/tokenizer.json"), contents(w / "tok.json"));
  EXPECT_EQ(w.tokenize(Words{"data", "-"} + words + Words{w / "piped"}, some_text()).status, 0);
  EXPECT_EQ(
      w.tokenize({"data", w / "a.txt", "--tokenizer", w / "tok.json", "--shard-tokens", "500", "--out", w / "given"})
          .status,
      0);
  for (const std::string& name : list_folder(w / "file")) {
    if (!has(name, ".bin")) continue;
    EXPECT_TRUE(contents(w / ("file/" + name)) == contents(w / ("piped/" + name))) << name;
    EXPECT_TRUE(contents(w / ("file/" + name)) == contents(w / ("given/" + name))) << name;
  }
  ran = w.tokenize(Words{"data", w / "a.txt"} + words + Words{w / "file"});
  EXPECT_TRUE(ran.status == 0 && has(ran.out, "nothing was to be done")) << ran.out << ran.err;
  expect_refused(w.tokenize({"data", w / "a.txt", "--vocab", "270", "--shard-tokens", "500", "--out", w / "file"}),
                 "tokenize", "has 280 ids, more than --vocab 270");
  ran = w.tokenize({"data", w / "a.txt", "--vocab", "290", "--shard-tokens", "500", "--out", w / "file"});
  EXPECT_TRUE(has(unwrapped(ran.out), "tokenizer.json: 280 ids; --vocab 290 is for a new one")) << ran.out;
  expect_refused(w.tokenize(Words{"data", w / "a.txt", "--pattern", "gpt2"} + words + Words{w / "file"}), "tokenize",
                 "has the pattern llama3, not gpt2");
}

TEST(Tokenize, TrainWritesWhatEveryProgramReads) {
  Workshop w;
  int number = 0;
  for (std::string special : {"Ġthe", "the", "é|", "語", "cat sat", "##", "<s>,<s><s>,Ġ ,Ã©"}) {
    std::string out = w / ("t" + std::to_string(++number) + ".json");
    Ran ran = w.tokenize({"train", w / "a.txt", "--vocab", "300", "--special", special, "--out", out});
    ASSERT_EQ(ran.status, 0) << special << ": " << ran.err;
    Tokenizer t = Tokenizer::load(out);
    EXPECT_EQ(t.to_json(), contents(out)) << special;
    for (const Tokenizer::Special& s : t.specials())
      EXPECT_EQ(t.encode(s.text, true), std::vector<int>{s.id}) << s.text;
    EXPECT_EQ(t.decode(t.encode("the cat, " + special)), "the cat, " + special);
    ran = w.tokenize({"encode", "--tokenizer", out, w / "a.txt"});
    EXPECT_EQ(w.tokenize({"decode", "--tokenizer", out}, ran.out).out, contents(w / "a.txt")) << special;
  }
}

TEST(Tokenize, DataTakesTheFoldersTokenizerWhateverItsSize) {
  Workshop w;
  std::string specials = "<|0|>";
  for (int i = 1; i < 8000; ++i) specials += text(",<|%d|>", i);
  std::filesystem::create_directory(w / "out");
  Words words = {"train", w / "a.txt", "--vocab", "8280", "--out", w / "out/tokenizer.json", "--special", specials};
  ASSERT_EQ(w.tokenize(words).status, 0);
  Ran ran = w.tokenize({"data", w / "a.txt", "--out", w / "out"});
  EXPECT_TRUE(ran.status == 0 && has(ran.out, "tokenizer.json: 8280 ids")) << ran.out << ran.err;
}

TEST(Tokenize, DataDrawsABarOnATerminal) {
  Workshop w;
  Setting setting;
  setting.terminal = true;
  Ran ran = run("tokenize", {"data", w / "a.txt", "--tokenizer", w / "tok.json", "--out", w / "d"}, setting);
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.out, "\r[") && has(ran.out, "] 100 %")) << ran.out;
}

TEST(Tokenize, InspectShowsWhatTokenFilesHold) {
  Workshop w;
  put(w / "b.jsonl", "{\"q\": \"the\", \"text\": \"cat sat\\non\"}\n{\"q\": \"a\", \"text\": \"天地\\u0007\"}\n");
  ASSERT_EQ(
      w.tokenize({"data", w / "b.jsonl", "--prompt-field", "q", "--val", "0", "--tokenizer", "bytes", "--out", w / "d"})
          .status,
      0);
  Ran ran = w.tokenize({"inspect", w / "d"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"d/train_000000.bin\n", "tokens     26 of 16 bits, 1.1 KiB", " different of 257",
                           "masked     23.1 % are no targets", "\"<|endoftext|>\" 11.5 %",
                           "2 begin here; tokens: mean 11.5, median 14, longest 14",
                           "beginning  \"the\\ncat sat\\non\"\n", "\"a\\n天地\\u0007\"\n"})
    EXPECT_TRUE(has(ran.out, part)) << part << " is missing in\n" << ran.out;
  std::filesystem::rename(w / "d/tokenizer.json", w / "away.json");
  ran = w.tokenize({"inspect", w / "d/train_000000.bin"});
  EXPECT_TRUE(ran.status == 0 && has(ran.out, "id 256 11.5 %") && !has(ran.out, "begin")) << ran.out;
  EXPECT_TRUE(has(w.tokenize({"inspect", w / "d", "--tokenizer", w / "away.json"}).out, "2 begin here"));
}

TEST(Tokenize, InspectNamesBrokenFilesAndGoesOn) {
  Workshop w;
  ASSERT_EQ(w.tokenize({"data", w / "a.txt", "--shard-tokens", "500", "--tokenizer", w / "tok.json", "--out", w / "d"})
                .status,
            0);
  std::filesystem::resize_file(w / "d/train_000000.bin", 1100);
  put(w / "junk.bin", std::string(2000, 'x'));
  Ran ran = w.tokenize({"inspect", w / "junk.bin", w / "nosuch.bin", w / "d"});
  EXPECT_EQ(ran.status, 1);
  Words errors = lines_of(ran.err);
  ASSERT_EQ(errors.size(), 3u) << ran.err;
  EXPECT_TRUE(has(errors[0], "junk.bin") && has(errors[1], "nosuch.bin") && has(errors[2], "train_000000.bin"))
      << ran.err;
  EXPECT_TRUE(has(ran.out, "train_000001.bin\n")) << ran.out;
  ran = w.tokenize({"inspect", w / "d/train_000001.bin", "--tokenizer", "bytes"});
  expect_refused(ran, "tokenize", "bytes is not the tokenizer that made the tokens in");
  EXPECT_EQ(ran.out, "");
}

TEST(Tokenize, BadLinesAreSkippedCountedAndListed) {
  Workshop w;
  std::string lines;
  for (int i = 0; i < 30; ++i)
    lines += "{\"text\": \"the cat sat " + std::to_string(i) + "\"}\n" + (i < 12 ? "bad\n" : "");
  put(w / "a.jsonl", lines);
  expect_refused(w.tokenize({"train", w / "a.jsonl", "--out", w / "t.json"}), "tokenize", "--on-bad-line skip");
  Ran ran = w.tokenize({"train", w / "a.jsonl", "--out", w / "t.json", "--vocab", "270", "--on-bad-line", "skip"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"30 documents", "12 bad lines left out", "a.jsonl:2:1: ", "a.jsonl:20:1: ", "… and 2 more"})
    EXPECT_TRUE(has(ran.out, part)) << part << "\n" << ran.out;
  EXPECT_FALSE(has(ran.out, "a.jsonl:22:1: "));
  ran = w.tokenize({"data", w / "a.jsonl", "--out", w / "d", "--vocab", "270", "--on-bad-line", "skip"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"30 documents", "left out: 12 bad lines", "a.jsonl:2:1: ", "… and 2 more"})
    EXPECT_TRUE(has(ran.out, part)) << part << "\n" << ran.out;
}

TEST(Tokenize, EncodeTakesAMarkForBytesAndDecodeForNone) {
  Workshop w;
  put(w / "mark.txt",
      "\xef\xbb\xbf"
      "a");
  EXPECT_EQ(w.tokenize({"encode", "--tokenizer", "bytes", w / "mark.txt"}).out, "239 187 191 97\n");
  put(w / "ids",
      "\xef\xbb\xbf"
      "97 98\n");
  EXPECT_EQ(w.tokenize({"decode", "--tokenizer", "bytes", w / "ids"}).out, "ab");
}

template <class T>
std::string as_bytes(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

TEST(Tokenize, AnotherImportAddsToTheFolderAndReplacesFilesOfTheSameNames) {
  Workshop w;
  put(w / "train.bin", as_bytes(std::vector<uint16_t>(3000, 261)));
  put(w / "val.bin", as_bytes(std::vector<uint16_t>(500, 262)));
  auto import = [&](const std::string& name, const Words& more = {}) {
    return w.tokenize(Words{"import", w / name, "--out", w / "d", "--shard-tokens", "1000"} + more);
  };
  Ran ran = import("train.bin");
  ASSERT_EQ(ran.status, 0) << ran.err;
  ASSERT_EQ(import("val.bin").status, 0);
  EXPECT_EQ(w.tokenize({"inspect", w / "d"}).err, "");
  EXPECT_EQ(read_token_folder(w / "d").checksums.size(), 4u) << "those of files that stay are kept";
  put(w / "train.bin", as_bytes(std::vector<uint16_t>(1500, 263)));
  ran = import("train.bin");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(w.tokenize({"inspect", w / "d"}).err, "");
  ShardNames names = find_shards(w / "d");
  EXPECT_EQ(names.train.size(), 2u);
  EXPECT_EQ(names.validation.size(), 1u);
  EXPECT_EQ(Tokens::map(names.train[1])[0], 263);

  std::string record = contents(w / "d/data.json");
  record.replace(record.find("true"), 4, "false");  // as a kill leaves it
  put(w / "d/data.json", record.replace(record.find("checksums"), 9, "before"));
  expect_refused(run("train", {"--data", w / "d", "--out", w / "out"}), "train",
                 "is not finished: give its ./tokenize import");
  expect_refused(import("val.bin"), "tokenize", "an import there was cut short");
  ASSERT_EQ(w.tokenize({"import", w / "train.bin", w / "val.bin", "--out", w / "d"}).status, 0);
  EXPECT_TRUE(has(contents(w / "d/data.json"), "\"checksums\"")) << "of the files that were made";
  EXPECT_EQ(w.tokenize({"inspect", w / "d"}).err, "");
  expect_refused(import("val.bin", {"--tokenizer", w / "tok.json"}), "tokenize", "tokens of another tokenizer");
  put(w / "d/other.bin", "x");
  expect_refused(import("val.bin"), "tokenize", "other.bin is in the way");
}

TEST(Tokenize, AnImportKeepsItsTokenizerAndWhatEndsATextInDataJson) {
  Workshop w;
  ASSERT_EQ(w.tokenize({"train", w / "a.txt", "--vocab", "270", "--special", "<a>,<b>", "--out", w / "t.json"}).status,
            0);
  put(w / "train.bin", as_bytes(std::vector<uint16_t>(900, 261)));
  ASSERT_EQ(w.tokenize({"import", w / "train.bin", "--out", w / "d", "--tokenizer", w / "t.json", "--end-token", "<b>"})
                .status,
            0);
  Json options = parse_json(contents(w / "d/data.json"), "d").get("options", "d");
  EXPECT_EQ(options.get_string("end-token", "d"), "<b>");
  EXPECT_TRUE(has(options.get_string("tokenizer", "d"), " ids, checksum "));
}

TEST(Tokenize, ImportGivesRawIdsAHeader) {
  Workshop w;
  std::vector<uint16_t> ids;
  for (int i = 0; i < 2500; ++i) ids.push_back(uint16_t(i % 40 == 39 ? 50256 : i * 7 % 3000));
  std::string raw(reinterpret_cast<const char*>(ids.data()), ids.size() * 2);
  put(w / "train.bin", raw), put(w / "val.bin", raw.substr(0, 400));
  Ran ran = w.tokenize({"import", w / "train.bin", w / "val.bin", "--out", w / "d", "--shard-tokens", "1000"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "2.5 k tokens in " + (w / "d/train_*.bin") + ", 3 files")) << ran.out;
  ShardNames names = find_shards(w / "d");
  EXPECT_EQ(names.train.size(), 3u);
  ASSERT_EQ(names.validation.size(), 1u);
  std::vector<int> all;
  for (const std::string& name : names.train) {
    Tokens tokens = Tokens::map(name);
    for (int64_t i = 0; i < tokens.size(); ++i) all.push_back(tokens[i]);
  }
  EXPECT_EQ(all, std::vector<int>(ids.begin(), ids.end()));
  EXPECT_EQ(Tokens::map(names.validation[0]).size(), 200);
  ran = run("train", {"--data", w / "d", "--width", "16", "--heads", "2", "--layers", "1", "--seq", "32", "--batch",
                      "2", "--steps", "2", "--passes", "1", "--out", w / "out"});
  EXPECT_EQ(ran.status, 0) << ran.err;

  std::filesystem::create_directory(w / "again");
  put(w / "again/train.bin", raw);
  put(w / "wide.bin", as_bytes(std::vector<uint32_t>(ids.begin(), ids.end())));
  put(w / "longs.bin", as_bytes(std::vector<uint64_t>(ids.begin(), ids.end())));
  put(w / "high.bin", as_bytes(std::vector<uint16_t>(100, 60000)));
  put(w / "book.bin", some_text(4000));
  put(w / "array.npy", std::string("\x93NUMPY\x01\0v\0{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", 68));
  put(w / "ids.gz", "\x1f\x8b\x08" + raw);
  const std::pair<Words, const char*> mistakes[] = {
      {{"import", "--out", w / "x"}, "give files of token ids"},
      {{"import", w / "train.bin"}, "give the folder to write to"},
      {{"import", w / "train.bin", "--out", w.folder.path}, "lies there itself; choose another folder"},
      {{"import", "-", "--out", w / "x"}, "import reads files, not standard input"},
      {{"import", w / "train.bin", "--out", w / "x", "--end-token", "x"}, "give one with --tokenizer"},
      {{"import", w / "train.bin", "--out", w / "x", "--bits", "32"}, "or leave out --bits 32"},
      {{"import", w / "wide.bin", "--out", w / "x"}, "every second id is 0: they have 32 bits, so give --bits 32"},
      {{"import", w / "longs.bin", "--out", w / "x", "--bits", "32"}, "they seem to have 64 bits an id; python3 -c"},
      {{"import", w / "book.bin", "--out", w / "x"}, "it looks like text, which ./tokenize data"},
      {{"import", w / "high.bin", "--out", w / "x"}, "GPT-2's vocabulary, for which it is taken, has 50257"},
      {{"import", w / "array.npy", "--out", w / "x"}, "numpy.load(sys.argv[1]).astype(\"u4\").tofile"},
      {{"import", w / "ids.gz", "--out", w / "x"}, "gzip"},
      {{"import", w / "train.bin", w / "again/train.bin", "--out", w / "x"}, "would both become train_000000.bin"},
      {{"import", w / "d/val_000000.bin", "--out", w / "x"}, "has a header already"},
      {{"import", w / "train.bin", "--out", w / "x", "--tokenizer", "bytes"}, "but the tokenizer has 257 ids"},
      {{"import", w / "nosuch", "--out", w / "x"}, "nosuch: No such file"}};
  for (const auto& [words, part] : mistakes) {
    expect_refused(w.tokenize(words), "tokenize", part);
    EXPECT_FALSE(std::filesystem::exists(w / "x")) << part;
  }
}

TEST(Tokenize, EveryMistakeIsOneLine) {
  Workshop w;
  put(w / "empty", "");
  const std::pair<Words, const char*> mistakes[] = {
      {{"train", "--out", w / "x"}, "give what to train on"},
      {{"train", w / "a.txt"}, "give the file to write"},
      {{"train", w / "a.txt", "--out", w / "tok.json"}, "is there already"},
      {{"train", w / "nosuch", "--out", w / "x"}, "nosuch: No such file"},
      {{"train", w / "empty", "--out", w / "x"}, "the input is empty"},
      {{"train", w / "a.txt", "--out", w / "x", "--vocab", "256"}, "too small"},
      {{"train", w / "a.txt", "--out", w / "x", "--vocab", "258", "--special", "a,b"}, "special tokens take 259 ids"},
      {{"train", w / "a.txt", "--out", w / "x", "--special", "a,,b"}, "a special token is empty"},
      {{"train", w / "a.txt", "--out", w / "x", "--special", "a,a"}, "a is there twice"},
      {{"train", w / "a.txt", "--out", w / "x", "--special", "#"}, "`#` cannot be a special token"},
      {{"train", w / "a.txt", "--out", w / "x", "--special", "<s>,é"}, "it is the name of byte 0xe9"},
      {{"train", w / "a.txt", "--out", w / "x", "--special", "a\xff"}, "`a·` is not UTF-8"},
      {{"train", w / "a.txt", "--out", w / "x", "--pattern", "gpt5"}, "not one of gpt2"},
      {{"train", w / "a.txt", "--out", w / "nosuch/x"}, "there is no folder"},
      {{"train", w / "nosuch", "--out", w.folder.path}, "is a folder: name the file to write"},
      {{"train", "-", "-", "--out", w / "x"}, "standard input (-) is named twice"},
      {{"encode"}, "give the tokenizer"},
      {{"encode", "--tokenizer", w / "nosuch"}, "nosuch"},
      {{"encode", "--tokenizer", "bytes", w / "nosuch"}, "nosuch: No such file"},
      {{"encode", "--tokenizer", "bytes", w / "a.txt", w / "a.txt"}, "at most 1"},
      {{"encode", "--tokenizer", "bytes", w.folder.path}, "it is a folder"},
      {{"decode", "--tokeniser", "bytes"}, "did you mean --tokenizer?"},
      {{"data", "--out", w / "x"}, "give what to tokenize"},
      {{"data", w / "a.txt"}, "give the folder to write to"},
      {{"data", w / "a.txt", "--out", w / "a.txt", "--tokenizer", "bytes"}, "a file has that name"},
      {{"data", w / "nosuch", "--out", w / "a.txt"}, "a file has that name"},
      {{"data", w / "a.txt", "--out", w / "x", "--tokenizer", "bytes", "--vocab", "300"}, "exclude each other"},
      {{"data", w / "a.txt", "--out", w / "x", "--tokenizer", "bytes", "--val", "2"}, "too large"},
      {{"data", w / "a.txt", "--out", w / "x", "--tokenizer", "bytes", "--shard-tokens", "0"}, "too small"},
      {{"data", w / "empty", "--out", w / "x"}, "the input is empty"},
      {{"data", w / "caf\xe9", "--out", w / "x", "--tokenizer", "bytes"}, "the name is not UTF-8"},
      {{"inspect"}, "give token files"},
      {{"inspect", w.folder.path}, ".bin"},
  };
  for (const auto& [words, part] : mistakes) {
    expect_refused(w.tokenize(words), "tokenize", part);
    EXPECT_FALSE(std::filesystem::exists(w / "x")) << part;
  }
}
