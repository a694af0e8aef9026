// Preparing data: what documents are, how they become shards; that threads and batches change nothing; that a run which
// was stopped, however and whenever, ends with the same bytes as one that was not.
#include "prepare.h"

#include <sys/stat.h>

#include <random>

#include "bpe.h"
#include "hash.h"
#include "kernels.h"
#include "log.h"
#include "program.h"
#include "shards.h"
#include "token_folder.h"

namespace {

using Texts = std::vector<std::string>;

// A tokenizer of some merges.
Tokenizer small_tokenizer() {
  PieceCounts counts(Pattern::llama3);
  counts.add(some_text());
  return train_bpe(counts, 300);
}

// Documents of different lengths, no two the same, some of them Chinese.
Texts some_documents(int count) {
  Texts documents;
  std::string all = some_text(2000);
  for (int i = 0; i < count; ++i)
    documents.push_back(std::to_string(i) + (i % 5 == 0 ? " 今天天气很好，" : " ") +
                        all.substr(i * 37 % 1000, i * 101 % 700));
  return documents;
}

std::string as_text(const Texts& documents) {
  std::string text;
  for (const std::string& document : documents) text += document + "\n<|endoftext|>\n";
  return text;
}

std::string as_jsonl(const Texts& documents) {
  std::string lines;
  for (const std::string& document : documents) lines += write_json(Json::object({{"text", document}})) + "\n";
  return lines;
}

// The tokens of a split's files in order, and which may be targets.
struct Stream {
  std::vector<int> tokens;
  std::string mask;
  std::vector<int64_t> sizes;  // of the files
};
Stream stream_of(const std::string& folder, const std::string& split) {
  Stream stream;
  for (const std::string& name : list_folder(folder)) {
    if (name.rfind(split + "_", 0) != 0 || !has(name, ".bin")) continue;
    Tokens tokens = Tokens::map(folder + "/" + name);
    stream.sizes.push_back(tokens.size());
    for (int64_t i = 0; i < tokens.size(); ++i) {
      stream.tokens.push_back(tokens[i]);
      stream.mask += tokens.may_be_target(i) ? '1' : '0';
    }
  }
  return stream;
}

// A split's documents as texts; an end-of-text token stands before each and at the end.
Texts documents_in(const std::string& folder, const std::string& split, const Tokenizer& tokenizer) {
  std::vector<int> tokens = stream_of(folder, split).tokens, document;
  if (tokens.empty()) return {};
  EXPECT_EQ(tokens.front(), tokenizer.end_of_text());
  EXPECT_EQ(tokens.back(), tokenizer.end_of_text());
  Texts documents;
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i] != tokenizer.end_of_text()) {
      document.push_back(tokens[i]);
      continue;
    }
    documents.push_back(tokenizer.decode(document));
    document.clear();
  }
  return documents;
}

// A folder for inputs and for what is made of them.
struct Kitchen {
  Scratch folder;
  Tokenizer tokenizer = small_tokenizer();
  std::string operator/(const std::string& name) const { return folder / name; }
  PrepareOptions options(const Words& inputs, const std::string& out) const {
    PrepareOptions o;
    for (const std::string& input : inputs) o.documents.inputs.push_back(folder / input);
    o.out = folder / out;
    o.shard_tokens = 1000, o.validation = 0.2f;
    o.batch_bytes = 500, o.save_seconds = 1000;
    return o;
  }
  // What is in a file, as documents.
  Texts read(const std::string& name, const std::string& bytes,
             const std::function<void(PrepareOptions&)>& change = {}) {
    put(folder / name, bytes);
    PrepareOptions o = options({name}, "read");
    o.validation = 0;
    if (change) change(o);
    remove_folder(o.out);
    prepare_data(o, tokenizer);
    return documents_in(o.out, "train", tokenizer);
  }
};

std::string refusal(const PrepareOptions& o, const Tokenizer& tokenizer) {
  return message_of([&] { prepare_data(o, tokenizer); });
}

// Begins, saving after every few documents, and is stopped by a disk that is full at `bytes` a file (the tokenizer is
// there already).
void begin(PrepareOptions o, const Tokenizer& tokenizer, size_t bytes = 3000) {
  o.save_seconds = 0;
  std::filesystem::create_directory(o.out);
  put(o.out + "/tokenizer.json", tokenizer.to_json());
  FullDisk full(bytes);
  EXPECT_TRUE(has(refusal(o, tokenizer), "File too large"));
}

// The same bytes in every file but data.json and the lock, and nothing hidden left.
void expect_same_shards(const std::string& a, const std::string& b) {
  auto shown = [](const std::string& folder) {
    Texts names;
    for (const std::string& name : list_folder(folder))
      if (name != "lock" && name != "data.json") names.push_back(name);
    return names;
  };
  EXPECT_EQ(shown(a), shown(b));
  for (const std::string& name : shown(a))
    EXPECT_TRUE(contents(a + "/" + name) == contents(b + "/" + name)) << name << " differs";
}

}  // namespace

// --- Documents

TEST(Prepare, TextIsDividedAtLinesThatHoldTheSeparatorAlone) {
  Kitchen k;
  EXPECT_EQ(k.read("a.txt", "one\ntwo\n<|endoftext|>\nthree\r\n<|endoftext|>\r\nfour <|endoftext|>\n\n"),
            (Texts{"one\ntwo", "three", "four <|endoftext|>\n\n"}));
  EXPECT_EQ(k.read("a.txt", "<|endoftext|>\n<|endoftext|>\n\n<|endoftext|>\nx<|endoftext|>"), (Texts{"x<|endoftext|>"}))
      << "empty ones are left out";
  EXPECT_EQ(k.read("a.txt", "one\n---\ntwo<|endoftext|>", [](PrepareOptions& o) { o.documents.separator = "---"; }),
            (Texts{"one", "two<|endoftext|>"}));
  auto whole = [](PrepareOptions& o) { o.documents.separator = ""; };
  EXPECT_EQ(k.read("a.txt", "a\n\n<|endoftext|>\nb\n", whole), (Texts{"a\n\n<|endoftext|>\nb\n"}));
  EXPECT_EQ(k.read("a.md", "no separator\nat all\n"), (Texts{"no separator\nat all\n"}));
  PrepareOptions o = k.options({"a.txt"}, "out");
  o.documents.separator = "a\nb";
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "more than one line"));
}

TEST(Prepare, DocumentsCrossTheReadersBuffer) {
  Kitchen k;
  Texts documents = {std::string(3'000'000, 'a'), "b", std::string(1'048'576, 'c'), std::string(1'048'575, 'd')};
  auto large = [](PrepareOptions& o) { o.shard_tokens = 1 << 20; };
  EXPECT_TRUE(k.read("a.txt", as_text(documents), large) == documents);
  EXPECT_TRUE(k.read("a.jsonl", as_jsonl(documents), large) == documents);
}

TEST(Prepare, JsonlGivesADocumentALine) {
  Kitchen k;
  EXPECT_EQ(
      k.read("a.jsonl",
             "{\"id\": 1, \"text\": \"one\\n\\u4f60\"}\n\n  \r\n{\"text\": \"\"}\r\n{\"text\": \"<|endoftext|>\"}"),
      (Texts{"one\n你", "<|endoftext|>"}));
  auto content = [](PrepareOptions& o) { o.documents.field = "content", o.documents.format = "jsonl"; };
  EXPECT_EQ(k.read("a.json", "{\"content\": \"x\", \"text\": 3}\n", content), (Texts{"x"}));
  EXPECT_EQ(k.read("a.jsonl", "{\"text\"", [](PrepareOptions& o) { o.documents.format = "text"; }),
            (Texts{"{\"text\""}));
}

TEST(Prepare, MistakesInJsonlAreNamedByFileAndLine) {
  Kitchen k;
  const std::pair<const char*, const char*> mistakes[] = {
      {"{\"text\": \"a\"}\n\n{\"text\": \"b\"\n{\"text\": \"c\"}\n",
       "a.jsonl:3:13: expected `,` or `}`, but the line ends here"},
      {"{\"text\": \"a\"} x\n", "a.jsonl:1:15: expected the end of the line"},
      {"{\"txt\": \"a\"}\n", "a.jsonl:1: `text` is missing"},
      {"{\"text\": 3}\n", "a.jsonl:1: `text` should be a string"},
      {"{\"text\": null}\n", "a.jsonl:1: `text` should be a string"},
      {"\n[\"text\"]\n", "a.jsonl:2: should be an object"},
      {"{\"text\": \"\xff\"}\n", "a.jsonl:1:11: expected UTF-8"}};
  for (auto [lines, message] : mistakes) {
    put(k / "a.jsonl", lines);
    EXPECT_TRUE(has(refusal(k.options({"a.jsonl"}, "out"), k.tokenizer), message))
        << refusal(k.options({"a.jsonl"}, "out"), k.tokenizer);
    remove_folder(k / "out");
  }
  // Mended behind what is done, it goes on.
  Texts documents = some_documents(50);
  std::string good = as_jsonl(documents), bad = good;
  bad[good.rfind("\"text\"") + 1] = 'T';
  put(k / "a.jsonl", bad);
  PrepareOptions o = k.options({"a.jsonl"}, "out");
  o.save_seconds = 0;
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "a.jsonl:50: `text` is missing"));
  EXPECT_TRUE(file_exists(k / "out/data.json"));
  put(k / "a.jsonl", good);
  prepare_data(o, k.tokenizer);
  PrepareOptions whole = k.options({"a.jsonl"}, "whole");
  prepare_data(whole, k.tokenizer);
  expect_same_shards(o.out, whole.out);
}

TEST(Prepare, FoldersAreReadByNameWithoutWhatIsHidden) {
  Kitchen k;
  for (const char* folder : {"in", "in/b", "in/.hidden"}) std::filesystem::create_directory(k / folder);
  put(k / "in/c.txt", "c"), put(k / "in/b/2.jsonl", "{\"text\": \"b2\"}"), put(k / "in/b/1", "b1"),
      put(k / "in/a.txt", "a");
  put(k / "in/.x", "hidden"), put(k / "in/.hidden/y", "hidden"), put(k / "in/empty", ""), put(k / "z.txt", "z");
  PrepareOptions o = k.options({"z.txt", "in/", "in/c.txt"}, "out");
  o.validation = 0;
  PrepareResult result = prepare_data(o, k.tokenizer);
  EXPECT_EQ(documents_in(o.out, "train", k.tokenizer), (Texts{"z", "a", "b1", "b2", "c", "c"}));
  EXPECT_EQ(result.documents, 6);
  EXPECT_EQ(result.bytes, 8);
}

TEST(Prepare, WhatCannotBeReadInAFolderIsRefusedAndNotLeftOut) {
  Kitchen k;
  std::filesystem::create_directory(k / "in");
  put(k / "in/a.txt", "a");
  std::filesystem::create_symlink("nosuch", k / "in/.hidden");
  for (const char* name : {"loop", "dangling"}) {
    std::filesystem::create_symlink(name == std::string("loop") ? name : "nosuch", k / ("in/" + std::string(name)));
    EXPECT_TRUE(has(refusal(k.options({"in"}, "out"), k.tokenizer),
                    (k / "in/") + name + " is a link that leads nowhere: bring back what it names, or move it out"));
    std::filesystem::remove(k / ("in/" + std::string(name)));
  }
  ASSERT_EQ(mkfifo((k / "in/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(has(refusal(k.options({"in"}, "out"), k.tokenizer), "in/pipe is a pipe, not a file: move it out"));
  std::filesystem::remove(k / "in/pipe");
  EXPECT_FALSE(folder_exists(k / "out"));
  EXPECT_EQ(prepare_data(k.options({"in"}, "out"), k.tokenizer).documents, 1);
}

TEST(Prepare, AFolderToWhichLinksLeadIsReadOnce) {
  Kitchen k;
  for (const char* folder : {"in", "in/sub", "far"}) std::filesystem::create_directory(k / folder);
  put(k / "in/a.txt", "a"), put(k / "in/sub/b.txt", "b"), put(k / "far/c.txt", "c");
  std::filesystem::create_directory_symlink("../in", k / "in/loop");
  std::filesystem::create_directory_symlink("../..", k / "in/sub/up");
  std::filesystem::create_directory_symlink("../far", k / "in/x"),
      std::filesystem::create_directory_symlink("x", k / "in/y");
  PrepareOptions o = k.options({"in/sub/../sub/b.txt", "far"}, "out_far");
  EXPECT_EQ(prepare_data(o, k.tokenizer).documents, 2);
  std::filesystem::remove(k / "in/sub/up");
  PrepareOptions all = k.options({"in"}, "out");
  all.validation = 0;
  prepare_data(all, k.tokenizer);
  EXPECT_EQ(documents_in(all.out, "train", k.tokenizer), (Texts{"a", "b", "c"}));
}

TEST(Prepare, AnyBytesComeBack) {
  Kitchen k;
  std::mt19937 random(1);
  std::string bytes(30000, '\0');
  for (char& c : bytes) c = char(random());
  auto text = [](PrepareOptions& o) { o.documents.format = "text"; };
  EXPECT_EQ(k.read("bytes", bytes, text), (Texts{bytes}));
  EXPECT_EQ(k.read("chinese.txt", "天地玄黃，宇宙洪荒。\n<|endoftext|>\n日月盈昃"),
            (Texts{"天地玄黃，宇宙洪荒。", "日月盈昃"}));
}

TEST(Prepare, PackedFilesAreRefused) {
  Kitchen k;
  put(k / "a.gz", std::string("\x1f\x8b\x08\0\0", 5)), put(k / "a.parquet", std::string("PAR1\x15\0....", 10));
  EXPECT_TRUE(has(refusal(k.options({"a.gz"}, "out"), k.tokenizer), "a.gz is packed (gzip): unpack it"));
  EXPECT_TRUE(has(refusal(k.options({"a.parquet"}, "out"), k.tokenizer), "make it .jsonl first"));
  EXPECT_EQ(k.read("a.gz", "\x1f\x8b", [](PrepareOptions& o) { o.documents.format = "text"; }), (Texts{"\x1f\x8b"}));
}

TEST(Prepare, WhatIsNoTextIsFoundBeforeAnythingIsMade) {
  Kitchen k;
  std::filesystem::create_directory(k / "in");
  put(k / "in/a.txt", as_text(some_documents(50))), put(k / "in/z.txt.gz", "\x1f\x8b\x08");
  EXPECT_TRUE(has(refusal(k.options({"in"}, "out"), k.tokenizer), "in/z.txt.gz is packed (gzip)"));
  EXPECT_FALSE(folder_exists(k / "out"));
  Setting piped;
  piped.input = "\x1f\x8b\x08";
  for (const Words& format : {Words{}, Words{"--format", "jsonl"}})
    expect_refused(run("tokenize", Words{"data", "-", "--tokenizer", "bytes", "--out", k / "out"} + format, piped),
                   "tokenize", "standard input is packed (gzip): unpack it through gzip -dc");
  piped.input = as_jsonl({"a", "b"});
  expect_refused(run("tokenize", {"data", "-", "--tokenizer", "bytes", "--out", k / "out"}, piped), "tokenize",
                 "standard input seems to be JSONL, an object a line: say --format jsonl");
}

TEST(Prepare, APipeIsLookedAtHoweverSmallItsPiecesAre) {
  Kitchen k;
  ASSERT_EQ(mkfifo((k / "pipe").c_str(), 0600), 0);
  std::string bytes = some_text(3000);
  bytes[2500] = '\0';
  DocumentOptions o;
  o.inputs = {k / "pipe"};
  DocumentReader reader(o);
  std::thread writer([&] {
    int fd = open((k / "pipe").c_str(), O_WRONLY);
    for (char c : bytes) EXPECT_EQ(write(fd, &c, 1), 1);
    close(fd);
  });
  Record record;
  EXPECT_TRUE(has(message_of([&] {
                    while (reader.next(&record)) {
                    }
                  }),
                  "byte 2500 is zero"));
  writer.join();
}

TEST(Prepare, AMarkBeforeATextIsNoPartOfIt) {
  Kitchen k;
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(k.read("a.txt", mark + "<|endoftext|>\none\n<|endoftext|>\n" + mark + "two"), (Texts{"one", mark + "two"}));
  EXPECT_EQ(k.read("a.jsonl", mark + as_jsonl({"one", "two"})), (Texts{"one", "two"}));
  auto text = [](PrepareOptions& o) { o.documents.format = "text"; };
  EXPECT_EQ(k.read("a.txt", mark + "one", text), (Texts{"one"}));
  put(k / "a.txt", mark), put(k / "b.txt", mark + "b"), put(k / "c.txt", mark.substr(0, 2));
  PrepareOptions o = k.options({"a.txt", "b.txt", "c.txt"}, "out");
  o.validation = 0;
  prepare_data(o, k.tokenizer);
  EXPECT_EQ(documents_in(o.out, "train", k.tokenizer), (Texts{"b", mark.substr(0, 2)}));

  // Stopped anywhere, it goes on to the same bytes as without the mark.
  std::string documents = as_text(some_documents(100));
  put(k / "plain.txt", documents), put(k / "marked.txt", mark + documents);
  PrepareOptions plain = k.options({"plain.txt"}, "plain"), marked = k.options({"marked.txt"}, "marked");
  plain.shard_tokens = marked.shard_tokens = 100'000;
  prepare_data(plain, k.tokenizer);
  begin(marked, k.tokenizer);
  prepare_data(marked, k.tokenizer);
  expect_same_shards(plain.out, marked.out);
}

TEST(Prepare, BadLinesAreSkippedWhereThatIsAskedForAndCountedAndListed) {
  Kitchen k;
  auto skip = [](PrepareOptions& o) { o.documents.on_bad_line = "skip"; };
  std::string lines =
      "{\"text\": \"a\"}\n\n{\"text\": \"b\"\n{\"txt\": 1}\n{\"text\": 3}\n[]\nnull\n{\"text\": \"\xff\"}\nword\n" +
      std::string("\0\n", 2) + "{\"text\": \"c\"}\n{\"text\": \"torn";
  EXPECT_EQ(k.read("a.jsonl", lines, skip), (Texts{"a", "c"}));
  Json json = parse_json(contents(k / "read/data.json"), "data.json");
  const Json& bad = json.get("bad_lines", "data.json");
  EXPECT_EQ(bad.get_int("count", "data.json"), 9);
  const Json& first = bad.get("first", "data.json");
  ASSERT_EQ(first.items.size(), 9u);
  EXPECT_EQ(first.items[0].string, (k / "a.jsonl") + ":3:13: expected `,` or `}`, but the line ends here");
  EXPECT_EQ(first.items[1].string, (k / "a.jsonl") + ":4: `text` is missing");
  EXPECT_EQ(k.read("a.jsonl", as_jsonl({"a"}), skip), (Texts{"a"}));
  EXPECT_FALSE(has(contents(k / "read/data.json"), "bad_lines"));

  put(k / "a.jsonl", lines);
  EXPECT_TRUE(has(refusal(k.options({"a.jsonl"}, "fails"), k.tokenizer), "(--on-bad-line skip leaves such lines out)"));
  put(k / "a.jsonl", "{\"body\": 1}\n{\"body\": 2}\n");
  PrepareOptions o = k.options({"a.jsonl"}, "none");
  skip(o);
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "(2 bad ones), the first by " + (k / "a.jsonl") + ":1: `text` is missing"));
}

TEST(Prepare, BadLinesAreTheSameAfterAKill) {
  Kitchen k;
  Texts documents = some_documents(100);
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += (i % 7 == 3 ? "bad\n" : "") + as_jsonl({documents[size_t(i)]});
  put(k / "a.jsonl", lines);
  PrepareOptions whole = k.options({"a.jsonl"}, "whole"), killed = k.options({"a.jsonl"}, "killed");
  whole.documents.on_bad_line = killed.documents.on_bad_line = "skip";
  whole.shard_tokens = killed.shard_tokens = 100'000;
  EXPECT_EQ(prepare_data(whole, k.tokenizer).bad_lines.count, 14);
  begin(killed, k.tokenizer);
  EXPECT_TRUE(has(contents(killed.out + "/data.json"), "\"complete\": false"));
  prepare_data(killed, k.tokenizer);
  expect_same_shards(whole.out, killed.out);
  EXPECT_EQ(contents(whole.out + "/data.json"), contents(killed.out + "/data.json"));
}

TEST(Prepare, ARunThatABadLineEndedGoesOnWithoutIt) {
  Kitchen k;
  Texts documents = some_documents(60);
  put(k / "a.jsonl", as_jsonl(documents) + "bad\n" + as_jsonl({"more"}));
  PrepareOptions o = k.options({"a.jsonl"}, "out"), whole = k.options({"a.jsonl"}, "whole");
  o.save_seconds = 0;
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "a.jsonl:61:1: "));
  EXPECT_TRUE(file_exists(k / "out/data.json"));
  o.documents.on_bad_line = whole.documents.on_bad_line = "skip";
  prepare_data(o, k.tokenizer), prepare_data(whole, k.tokenizer);
  expect_same_shards(o.out, whole.out);
  EXPECT_EQ(contents(o.out + "/data.json"), contents(whole.out + "/data.json"));
}

TEST(Prepare, AnInputWithoutTextIsRefused) {
  Kitchen k;
  put(k / "empty", ""), put(k / "separators", "<|endoftext|>\n<|endoftext|>\n");
  std::filesystem::create_directory(k / "folder");
  for (const char* name : {"empty", "folder"}) {
    EXPECT_TRUE(has(refusal(k.options({name}, "out"), k.tokenizer), "nothing to tokenize")) << name;
    EXPECT_FALSE(folder_exists(k / "out"));
  }
  EXPECT_TRUE(has(refusal(k.options({"separators"}, "out"), k.tokenizer), "nothing to tokenize"));
  EXPECT_TRUE(has(refusal(k.options({"nosuch"}, "out"), k.tokenizer), "nosuch: No such file"));
}

TEST(Prepare, AReaderEndsWhereItIsToldTo) {
  Kitchen k;
  put(k / "a.txt", "one\n<|endoftext|>\ntwo three"), put(k / "b.jsonl", "{\"text\": \"b\"}\n{\"text\": \"c\"}\n");
  auto texts_within = [&](int64_t bytes) {
    DocumentOptions o;
    o.inputs = {k / "a.txt", k / "b.jsonl"};
    o.most_bytes = bytes;
    DocumentReader reader(o);
    Texts texts;
    for (Record record; reader.next(&record);) texts.push_back(reader.parse(record).text);
    return texts;
  };
  EXPECT_EQ(texts_within(21), (Texts{"one", "two"}));
  EXPECT_EQ(texts_within(27 + 14), (Texts{"one", "two three", "b"}));
  EXPECT_EQ(texts_within(27 + 20), (Texts{"one", "two three", "b"})) << "half a line of .jsonl is none";
  EXPECT_EQ(texts_within(0), (Texts{"one", "two three", "b", "c"}));
  EXPECT_EQ(texts_within(1000), (Texts{"one", "two three", "b", "c"}));
}

TEST(Prepare, AReaderThatWaitsForAPipeCanBeStopped) {
  Kitchen k;
  ASSERT_EQ(mkfifo((k / "pipe").c_str(), 0600), 0);
  int held = open((k / "pipe").c_str(), O_RDWR);
  ASSERT_EQ(write(held, "first\n<|endoftext|>\nsecond", 26), 26);
  DocumentOptions o;
  o.inputs = {k / "pipe"};
  DocumentReader reader(o);
  Record record;
  EXPECT_TRUE(reader.next(&record));
  EXPECT_EQ(record.bytes, "first");
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    reader.stop();
  });
  EXPECT_FALSE(reader.next(&record)) << "the second document is not known to be whole";
  EXPECT_EQ(reader.position().offset, 20);
  stopper.join();
  close(held);
}

TEST(Prepare, APipeThatNobodyWritesToCanBeStoppedAndIsReadOnceSomebodyDoes) {
  Kitchen k;
  ASSERT_EQ(mkfifo((k / "pipe").c_str(), 0600), 0);
  DocumentOptions o;
  o.inputs = {k / "pipe"};
  auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  Record record;
  DocumentReader stopped(o), read(o);
  std::thread stopper([&] { wait(), stopped.stop(); });
  EXPECT_FALSE(stopped.next(&record));
  stopper.join();
  std::thread writer([&] { wait(), put(k / "pipe", "late"); });
  EXPECT_TRUE(read.next(&record));
  EXPECT_EQ(record.bytes, "late");
  EXPECT_FALSE(read.next(&record));
  writer.join();
}

TEST(Prepare, HashesTellTextsApart) {
  std::vector<Hash128> hashes;
  for (size_t n = 0; n < 70; ++n) hashes.push_back(hash128(std::string(n, '\0')));
  for (int bit = 0; bit < 8 * 20; ++bit) {
    std::string bytes(20, 'x');
    bytes[bit / 8] ^= char(1 << bit % 8);
    hashes.push_back(hash128(bytes));
  }
  hashes.push_back(hash128("b", hash128("a"))), hashes.push_back(hash128("a", hash128("b"))),
      hashes.push_back(hash128("ab"));
  for (size_t i = 0; i < hashes.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_TRUE(hashes[i].high != hashes[j].high && hashes[i].low != hashes[j].low);
}

// --- Shards

TEST(Prepare, ShardsAreFullButTheLastAndTheirTokensAreOneStream) {
  Kitchen k;
  Texts documents = some_documents(100);
  put(k / "a.txt", as_text(documents));
  PrepareOptions o = k.options({"a.txt"}, "out");
  PrepareResult result = prepare_data(o, k.tokenizer);
  EXPECT_TRUE(result.complete && !result.found);
  std::vector<int> all;
  for (const char* split : {"train", "val"}) {
    Stream stream = stream_of(o.out, split);
    ASSERT_GT(stream.sizes.size(), 1u);
    for (size_t i = 0; i + 1 < stream.sizes.size(); ++i) EXPECT_EQ(stream.sizes[i], 1000);
    EXPECT_TRUE(stream.sizes.back() > 0 && stream.sizes.back() <= 1000);
  }
  EXPECT_EQ(result.train_tokens, int64_t(stream_of(o.out, "train").tokens.size()));
  EXPECT_EQ(result.validation_tokens, int64_t(stream_of(o.out, "val").tokens.size()));
  EXPECT_EQ(contents(o.out + "/tokenizer.json"), k.tokenizer.to_json());
  EXPECT_FALSE(file_exists(o.out + "/train_000000.mask"));

  // Both splits hold the documents in the input's order, and cuts do not matter.
  Texts train = documents_in(o.out, "train", k.tokenizer), validation = documents_in(o.out, "val", k.tokenizer), joined;
  EXPECT_EQ(train.size() + validation.size(), documents.size());
  EXPECT_EQ(int64_t(validation.size()), result.validation_documents);
  for (size_t t = 0, v = 0; t + v < documents.size();)
    joined.push_back(t < train.size() && train[t] == documents[joined.size()] ? train[t++] : validation[v++]);
  EXPECT_EQ(joined, documents);
  PrepareOptions other = k.options({"a.txt"}, "other");
  other.shard_tokens = 77;
  prepare_data(other, k.tokenizer);
  EXPECT_EQ(stream_of(other.out, "train").tokens, stream_of(o.out, "train").tokens);
}

TEST(Prepare, AShardThatIsJustFullIsTheLast) {
  Kitchen k;
  put(k / "a.txt", "abcdefgh");
  Tokenizer bytes;
  PrepareOptions o = k.options({"a.txt"}, "out");
  o.shard_tokens = 5;
  PrepareResult result = prepare_data(o, bytes);
  EXPECT_EQ(stream_of(o.out, "train").sizes, (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(result.train_shards, 2);
  EXPECT_TRUE(prepare_data(o, bytes).found);
}

TEST(Prepare, ThreadsAndBatchesChangeNothing) {
  Kitchen k;
  put(k / "a.txt", as_text(some_documents(200))), put(k / "b.jsonl", as_jsonl(some_documents(250)));
  PrepareOptions one = k.options({"a.txt", "b.jsonl"}, "one");
  one.deduplicate = true;
  set_threads(1);
  prepare_data(one, k.tokenizer);
  int threads = 2;
  for (int64_t batch : {1, 30000, 8 << 20}) {
    PrepareOptions o = one;
    o.out = k / ("batch" + std::to_string(batch));
    o.batch_bytes = batch, o.save_seconds = 1000;
    set_threads(threads++);
    prepare_data(o, k.tokenizer);
    expect_same_shards(one.out, o.out);
    EXPECT_EQ(contents(one.out + "/data.json"), contents(o.out + "/data.json"));
  }
  set_threads(1);
}

TEST(Prepare, LargeVocabulariesTakeTokensOf32Bits) {
  Kitchen k;
  std::vector<std::string> specials = {"<|endoftext|>"};
  for (int i = 0; i < 66000; ++i) specials.push_back(text("<%d>", i));
  Tokenizer large(Pattern::llama3, {}, specials);
  put(k / "a.txt", "text");
  prepare_data(k.options({"a.txt"}, "out"), large);
  EXPECT_EQ(read_shard_header(k / "out/train_000000.bin").bits, 32);
  EXPECT_EQ(documents_in(k / "out", "train", large), (Texts{"text"}));
}

TEST(Prepare, TheSplitIsByTheDocumentAloneAndTheFirstIsNeverHeldOut) {
  Kitchen k;
  Texts documents = some_documents(1000);
  put(k / "a.txt", as_text(documents));
  PrepareOptions o = k.options({"a.txt"}, "out");
  prepare_data(o, k.tokenizer);
  Texts held_out = documents_in(o.out, "val", k.tokenizer);
  EXPECT_TRUE(held_out.size() > 150 && held_out.size() < 250) << held_out.size();

  std::reverse(documents.begin(), documents.end());
  put(k / "b.txt", "x\n<|endoftext|>\n" + as_text(documents));
  PrepareOptions reversed = k.options({"b.txt"}, "reversed");
  prepare_data(reversed, k.tokenizer);
  Texts again = documents_in(reversed.out, "val", k.tokenizer);
  std::reverse(again.begin(), again.end());
  EXPECT_EQ(std::vector(again.end() - held_out.size(), again.end()), held_out);

  PrepareOptions all = k.options({"a.txt"}, "all"), none = k.options({"a.txt"}, "none");
  all.validation = 1, none.validation = 0;
  prepare_data(all, k.tokenizer), prepare_data(none, k.tokenizer);
  EXPECT_EQ(documents_in(all.out, "train", k.tokenizer).size(), 1u);
  EXPECT_EQ(documents_in(all.out, "val", k.tokenizer).size(), 999u);
  EXPECT_FALSE(file_exists(none.out + "/val_000000.bin"));
}

TEST(Prepare, DuplicatesAreLeftOut) {
  Kitchen k;
  auto once = [](PrepareOptions& o) { o.deduplicate = true; };
  EXPECT_EQ(k.read("a.txt", as_text({"a", "b", "a", "a ", "b"}), once), (Texts{"a", "b", "a "}));
  EXPECT_EQ(k.read("a.txt", as_text({"a", "b", "a"})), (Texts{"a", "b", "a"}));
  PrepareOptions o = k.options({"a.txt"}, "out");
  o.deduplicate = true;
  PrepareResult result = prepare_data(o, k.tokenizer);
  EXPECT_EQ(result.documents, 2);
  EXPECT_EQ(result.duplicates, 1);
  EXPECT_FALSE(file_exists(o.out + "/.seen.partial"));
}

TEST(Prepare, PromptsAreNoTargets) {
  Kitchen k;
  put(k / "a.jsonl",
      "{\"q\": \"ab\", \"text\": \"cd\"}\n{\"q\": \"\", \"text\": \"e\"}\n{\"q\": \"f\\n\", \"text\": \"g\"}\n"
      "{\"q\": \"h\", \"text\": \"\"}\n");
  PrepareOptions o = k.options({"a.jsonl"}, "out");
  o.documents.prompt_field = "q", o.validation = 0, o.shard_tokens = 4;
  Tokenizer bytes;
  PrepareResult result = prepare_data(o, bytes);
  EXPECT_EQ(result.empty, 1);
  EXPECT_EQ(documents_in(o.out, "train", bytes), (Texts{"ab\ncd", "e", "f\ng"})) << "a newline ends a prompt";
  EXPECT_EQ(stream_of(o.out, "train").mask, "1000111110011");
  put(k / "b.jsonl", "{\"text\": \"cd\"}\n");
  PrepareOptions without = k.options({"b.jsonl"}, "without");
  without.documents.prompt_field = "q";
  EXPECT_TRUE(has(refusal(without, bytes), "b.jsonl:1: `q` is missing"));
}

// --- Going on

TEST(Prepare, AFullDiskCostsNothing) {
  Kitchen k;
  put(k / "a.txt", as_text(some_documents(60))), put(k / "b.jsonl", as_jsonl(some_documents(90)));
  PrepareOptions whole = k.options({"a.txt", "b.jsonl"}, "whole");
  whole.deduplicate = true;
  whole.shard_tokens = 3000, whole.batch_bytes = 2000;
  whole.documents.inputs.insert(whole.documents.inputs.begin(), k / "a.txt");
  prepare_data(whole, k.tokenizer);
  auto limits = {200, 900, 1023, 1500, 2500, 4000, 5500, 7023};
  for (size_t limit : limits) {
    PrepareOptions o = whole;
    o.out = k / std::to_string(limit);
    begin(o, k.tokenizer, limit);
    prepare_data(o, k.tokenizer);
    expect_same_shards(whole.out, o.out);
  }
  PrepareOptions o = whole;  // again and again
  o.out = k / "again";
  for (size_t limit : limits) begin(o, k.tokenizer, limit);
  prepare_data(o, k.tokenizer);
  expect_same_shards(whole.out, o.out);
}

TEST(Prepare, KilledAtAnyMomentItEndsWithTheSameBytes) {
  Kitchen k;
  put(k / "tok.json", k.tokenizer.to_json());
  put(k / "a.txt", as_text(some_documents(150))), put(k / "b.jsonl", as_jsonl(some_documents(250)));
  for (const Words& flags : {Words{"--threads", "1"}, Words{"--threads", "2", "--dedup"},
                             Words{"--prompt-field", "text", "--format", "jsonl"}}) {
    bool jsonl = flags[0] == "--prompt-field";
    auto words = [&](const std::string& out) {
      Words inputs = jsonl ? Words{k / "b.jsonl"} : Words{k / "a.txt", k / "b.jsonl"};
      return Words{program_path("tokenize"), "data"} + inputs + flags +
             Words{"--tokenizer", k / "tok.json", "--out",         k / out, "--shard-tokens", "997",
                   "--val",       "0.3",          "--batch-bytes", "6000",  "--save-seconds", "0"};
    };
    remove_folder(k / "whole"), remove_folder(k / "killed");
    double start = seconds_now();
    ASSERT_EQ(Running(words("whole")).wait().status, 0);
    double seconds = seconds_now() - start;
    std::random_device device;
    uint32_t seed = device();
    SCOPED_TRACE("random seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> life(0.001, seconds);
    int kills = 0;
    for (int tries = 0; tries < 12; ++tries) {
      Running running(words("killed"));
      std::this_thread::sleep_for(std::chrono::duration<double>(life(random)));
      running.kill(SIGKILL);
      Ran ran = running.wait();
      EXPECT_TRUE(ran.status == 0 || ran.status == 128 + SIGKILL) << ran.out << ran.err;
      kills += ran.status != 0;
      if (ran.status == 0) remove_folder(k / "killed");  // the next tries would find nothing to do
    }
    EXPECT_GT(kills, 0);
    Ran ran = Running(words("killed")).wait();
    EXPECT_EQ(ran.status, 0) << ran.err;
    expect_same_shards(k / "whole", k / "killed");
    EXPECT_EQ(contents(k / "whole/data.json"), contents(k / "killed/data.json"));
  }
}

TEST(Prepare, DataJsonHasTheChecksumOfEachFinishedFileWhichIsNotReadAgain) {
  Kitchen k;
  put(k / "a.jsonl", as_jsonl(some_documents(500)));
  PrepareOptions whole = k.options({"a.jsonl"}, "whole"), killed = k.options({"a.jsonl"}, "killed");
  whole.documents.prompt_field = killed.documents.prompt_field = "text";
  prepare_data(whole, k.tokenizer);
  Checksums recorded = read_token_folder(whole.out).checksums, held;
  for (const std::string& name : list_folder(whole.out))
    if (has(name, ".bin") || has(name, ".mask")) held[name] = crc32c_of_file(whole.out + "/" + name);
  EXPECT_EQ(recorded, held);

  begin(killed, k.tokenizer, contents(whole.out + "/data.json").size() - 100);  // which it reaches, too
  std::string first = killed.out + "/train_000000.bin", bytes = contents(first);
  ASSERT_FALSE(read_token_folder(killed.out).complete);
  put(first, bytes.substr(0, 2000) + char(bytes[2000] ^ 1) + bytes.substr(2001));
  prepare_data(killed, k.tokenizer);
  EXPECT_EQ(contents(whole.out + "/data.json"), contents(killed.out + "/data.json"));
  EXPECT_EQ(files_with_other_bytes(killed.out), Texts{first});
  put(first, bytes);
  expect_same_shards(whole.out, killed.out);
}

TEST(Prepare, AnUnfinishedFolderFromBeforeThereWereChecksumsGetsThem) {
  Kitchen k;
  put(k / "a.txt", as_text(some_documents(1000)));
  PrepareOptions whole = k.options({"a.txt"}, "whole"), killed = k.options({"a.txt"}, "killed");
  prepare_data(whole, k.tokenizer);
  begin(killed, k.tokenizer, contents(whole.out + "/data.json").size() - 100);
  std::string record = killed.out + "/data.json";
  Json json = parse_json(contents(record), record);
  ASSERT_TRUE(json.find("checksums"));
  std::erase_if(json.members, [](const auto& member) { return member.first == "checksums"; });
  put(record, write_json_indented(json));
  prepare_data(killed, k.tokenizer);
  EXPECT_EQ(contents(whole.out + "/data.json"), contents(record));
}

TEST(Prepare, CtrlCSavesAndTheSameCommandGoesOn) {
  Kitchen k;
  put(k / "a.txt", as_text(some_documents(2000)));
  auto words = [&](const std::string& out) {
    return Words{program_path("tokenize"), "data",  k / "a.txt",     "--tokenizer", "bytes", "--out", k / out,
                 "--shard-tokens",         "20000", "--batch-bytes", "500"};
  };
  Running running(words("out") + Words{"--save-seconds", "0"});
  ASSERT_TRUE(running.until([&] { return file_exists(k / "out/data.json"); }));
  running.kill(SIGINT);
  Ran ran = running.wait();
  EXPECT_EQ(ran.status, 128 + SIGINT);
  EXPECT_TRUE(has(ran.out, "the same command goes on from here")) << ran.out;
  EXPECT_EQ(ran.err, "");
  EXPECT_TRUE(has(contents(k / "out/data.json"), "\"complete\": false"));
  ran = Running(words("out")).wait();
  EXPECT_TRUE(ran.status == 0 && has(ran.out, "going on behind ")) << ran.out << ran.err;
  ASSERT_EQ(Running(words("whole")).wait().status, 0);
  expect_same_shards(k / "whole", k / "out");
}

TEST(Prepare, StandardInputHasToBringTheSameBytesAgain) {
  Kitchen k;
  std::string text = as_text(some_documents(100));
  auto words = [&](const std::string& out) {
    return Words{"data", "-", "--tokenizer", "bytes", "--out", k / out, "--batch-bytes", "500", "--save-seconds", "0"};
  };
  Setting setting;
  setting.input = text;
  ASSERT_EQ(run("tokenize", words("whole"), setting).status, 0);
  setting.largest_file = 12000;
  expect_refused(run("tokenize", words("out"), setting), "tokenize", "File too large");
  setting.largest_file = 0;
  setting.input = text.substr(0, 3000);
  expect_refused(run("tokenize", words("out"), setting), "tokenize", "standard input ends after 3000 bytes");
  setting.input = "X" + text.substr(1);
  expect_refused(run("tokenize", words("out"), setting), "tokenize", "standard input is not the input");
  setting.input = text;
  ASSERT_EQ(run("tokenize", words("out"), setting).status, 0);
  expect_same_shards(k / "whole", k / "out");
  put(k / "a.txt", text);
  ASSERT_EQ(run("tokenize", {"data", k / "a.txt", "--tokenizer", "bytes", "--out", k / "file"}).status, 0);
  expect_same_shards(k / "whole", k / "file");
}

TEST(Prepare, AnInputThatHasChangedIsRefused) {
  Kitchen k;
  std::string a = as_text(some_documents(5)), b = as_text(some_documents(60));
  put(k / "a.txt", a), put(k / "b.txt", b);
  PrepareOptions o = k.options({"a.txt", "b.txt"}, "out");
  o.shard_tokens = 100000;
  begin(o, k.tokenizer, 9000);
  auto now = std::filesystem::file_time_type::clock::now();
  for (const char* name : {"a.txt", "b.txt"}) {
    std::string good = contents(k / name), bad = good;
    bad[1] ^= 1;
    put(k / name, bad);
    std::filesystem::last_write_time(k / name, now + std::chrono::hours(1));
    EXPECT_TRUE(has(refusal(o, k.tokenizer), std::string(name) + " has changed since")) << name;
    put(k / name, good);
    std::filesystem::last_write_time(k / name, now + std::chrono::hours(2));
  }
  put(k / "a.txt", a + "more");
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "a.txt has changed since"));
  put(k / "a.txt", a);
  PrepareOptions other = o;
  std::swap(other.documents.inputs[0], other.documents.inputs[1]);
  EXPECT_TRUE(has(refusal(other, k.tokenizer), "begun with other inputs: number 1 was " + (k / "a.txt")));
  other = o;
  other.documents.inputs.pop_back();
  EXPECT_TRUE(has(refusal(other, k.tokenizer), "begun with other inputs: number 2"));
  prepare_data(o, k.tokenizer);  // written anew, but the same
  put(k / "b.txt", b + "more");
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "b.txt has changed since")) << "complete, but of another text";
}

TEST(Prepare, OtherOptionsAreRefusedByName) {
  Kitchen k;
  put(k / "a.txt", as_text(some_documents(60)));
  PrepareOptions o = k.options({"a.txt"}, "out");
  begin(o, k.tokenizer);
  auto before = everything_in(o.out);
  const std::pair<const char*, std::function<void(PrepareOptions&)>> changes[] = {
      {"--shard-tokens 1000, not 999", [](PrepareOptions& o) { o.shard_tokens = 999; }},
      {"--val 0.2, not 0.1", [](PrepareOptions& o) { o.validation = 0.1f; }},
      {"--dedup false, not true", [](PrepareOptions& o) { o.deduplicate = true; }},
      {"--separator", [](PrepareOptions& o) { o.documents.separator = ""; }},
      {"--field \"text\", not \"body\"", [](PrepareOptions& o) { o.documents.field = "body"; }},
      {"--prompt-field", [](PrepareOptions& o) { o.documents.prompt_field = "body"; }},
      {"--format", [](PrepareOptions& o) { o.documents.format = "text"; }}};
  for (const auto& [part, change] : changes) {
    PrepareOptions other = o;
    change(other);
    EXPECT_TRUE(has(refusal(other, k.tokenizer), part)) << part << ": " << refusal(other, k.tokenizer);
  }
  EXPECT_TRUE(has(refusal(o, Tokenizer()), "begun with another tokenizer"));
  EXPECT_TRUE(has(refusal(o, k.tokenizer.ending_with('a')), "begun with --end-token \"<|endoftext|>\", not \"a\""));
  EXPECT_EQ(everything_in(o.out), before);
  prepare_data(o, k.tokenizer);
}

TEST(Prepare, WhatIsCompleteStaysAsItIs) {
  Kitchen k;
  put(k / "a.txt", as_text(some_documents(60)));
  PrepareOptions o = k.options({"a.txt"}, "out");
  PrepareResult made = prepare_data(o, k.tokenizer);
  auto before = everything_in(o.out);
  PrepareResult found = prepare_data(o, k.tokenizer);
  EXPECT_TRUE(found.found && found.complete && !made.found);
  EXPECT_EQ(found.train_tokens, made.train_tokens);
  EXPECT_EQ(everything_in(o.out), before);
  std::filesystem::rename(o.out + "/train_000001.bin", o.out + "/.train_000001.bin.partial");
  EXPECT_TRUE(prepare_data(o, k.tokenizer).found) << "a kill came before the file got its name";
  EXPECT_EQ(everything_in(o.out), before);
  std::filesystem::resize_file(o.out + "/train_000001.bin", 1500);
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "train_000001.bin"));
  std::filesystem::remove(o.out + "/train_000001.bin");
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "train_000001.bin is missing"));
}

TEST(Prepare, FilesOfOthersAreNotTouched) {
  Kitchen k;
  put(k / "a.txt", as_text(some_documents(60)));
  PrepareOptions o = k.options({"a.txt"}, "out");
  std::filesystem::create_directory(o.out);
  put(o.out + "/notes.txt", "mine");
  for (const char* name : {"train_000000.bin", "val_000007.bin", "train_000001.mask", "training.bin"}) {
    put(o.out + "/" + name, "mine");
    EXPECT_TRUE(has(refusal(o, k.tokenizer), std::string(name) + " is in the way")) << name;
    EXPECT_EQ(contents(o.out + "/" + name), "mine");
    std::filesystem::remove(o.out + "/" + name);
  }
  put(o.out + "/tokenizer.json", Tokenizer().to_json());
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "tokenizer.json is another tokenizer"));
  EXPECT_EQ(contents(o.out + "/tokenizer.json"), Tokenizer().to_json());
  std::filesystem::remove(o.out + "/tokenizer.json");
  put(o.out + "/data.json", "{}");
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "data.json: `format` is missing"));
  std::filesystem::remove(o.out + "/data.json");
  prepare_data(o, k.tokenizer);
  EXPECT_EQ(contents(o.out + "/notes.txt"), "mine");
  put(o.out + "/train_000099.bin", "mine");
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "train_000099.bin is in the way"));
}

TEST(Prepare, TheFolderIsOutsideTheInputAndUsedByOneRun) {
  Kitchen k;
  std::filesystem::create_directory(k / "in");
  put(k / "in/a.txt", "text");
  for (const char* out : {"in", "in/out", "in/../in/x/y"}) {
    EXPECT_TRUE(has(refusal(k.options({"in"}, out), k.tokenizer), "choose a folder outside")) << out;
    EXPECT_FALSE(folder_exists(k / "in/out"));
  }
  PrepareOptions o = k.options({"in"}, "in_too");
  std::filesystem::create_directory(o.out);
  FolderLock lock(o.out);
  EXPECT_TRUE(has(refusal(o, k.tokenizer), "in use by another process"));
}
