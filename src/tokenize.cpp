// ./tokenize: trains tokenizers, turns text into tokens and back, and prepares data for ./train.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "bpe.h"
#include "documents.h"
#include "files.h"
#include "flags.h"
#include "import_ids.h"
#include "inspect.h"
#include "log.h"
#include "prepare.h"
#include "program.h"
#include "shards.h"
#include "signals.h"
#include "token_folder.h"
#include "tokenizer_flags.h"
#include "utf8.h"

namespace {

void say(const char* name, const std::string& what) { std::printf("%-10s %s", name, wrapped({what}, 11).c_str()); }
// Not divided: it is copied.
void say_command(const char* name, const std::string& command) { std::printf("%-10s %s\n", name, command.c_str()); }

// --- Training a tokenizer

void add_document_flags(Flags& f, DocumentOptions& o) {
  f.section("Documents");
  f.add("field", &o.field, "of .jsonl, which has an object a line: the string that is a document");
  f.add("prompt-field", &o.prompt_field, "of .jsonl: a string before it, ended by a newline; empty: none");
  f.add("separator", &o.separator, "a line of a text file between documents; empty: each file is a document");
  f.choice(
      "format", &o.format, {"", "text", "jsonl"},
      "empty: .jsonl and .ndjson are by their name, all else is text, and what is neither is refused; text: whatever "
      "it is");
  f.choice("on-bad-line", &o.on_bad_line, {"fail", "skip"},
           "of .jsonl: what a line does that is no JSON, or has no such string; those skipped are counted and listed");
}

struct Trained {
  Tokenizer tokenizer;
  std::string read, made;  // what was read, and what came out
  BadLines bad_lines;
};

// The next document that is none of the bad lines; false at the end.
bool next_document(DocumentReader& reader, PromptedText* document, BadLines* bad_lines) {
  for (Record record; reader.next(&record);) try {
      *document = reader.parse(std::move(record));
      return true;
    } catch (const BadLine& line) {
      bad_lines->add(line);
    }
  return false;
}

// Lists those that were skipped; the summary has their number.
void list_bad_lines(const BadLines& bad) {
  for (size_t i = 0; i < bad.first.size(); ++i) say(i == 0 ? "bad lines" : "", bad.first[i]);
  if (bad.count > int64_t(bad.first.size()))
    say("", text("… and %lld more", (long long)bad.count - (long long)bad.first.size()));
}

// Documents of `bytes` in all at most, counted; `sample` is how they begin.
PieceCounts count_pieces(DocumentReader& reader, Pattern pattern, int64_t* documents, std::string* sample,
                         BadLines* bad_lines) {
  constexpr size_t kSampleBytes = 4 << 20;
  PieceCounts counts(pattern);
  Progress progress(stdout);
  double start = seconds_now(), total = double(reader.total_bytes());
  for (PromptedText document; next_document(reader, &document, bad_lines);) {
    for (const std::string& part : {document.prompt, document.text}) {
      counts.add(part);
      if (sample->size() < kSampleBytes) sample->append(part, 0, kSampleBytes - sample->size());
    }
    ++*documents;
    double bytes = double(reader.bytes_read());
    progress.update(bytes / total,
                    "reading: " + show_bytes(bytes) + ", " + show_bytes(bytes / (seconds_now() - start)) + "/s");
  }
  counts.count_all();
  progress.finish();
  return counts;
}

Trained train_tokenizer(const DocumentOptions& o, Pattern pattern, int vocab,
                        const std::vector<std::string>& specials) {
  DocumentReader reader(o);
  Trained trained;
  int64_t documents = 0;
  std::string sample;
  double start = seconds_now();
  PieceCounts counts = count_pieces(reader, pattern, &documents, &sample, &trained.bad_lines);
  if (sample.empty() && trained.bad_lines.count > 0)
    fail("nothing to train a tokenizer on: all lines are bad or empty (%lld bad ones), the first by %s",
         (long long)trained.bad_lines.count, trained.bad_lines.first[0].c_str());
  if (sample.empty()) fail("nothing to train a tokenizer on: the input is empty");
  trained.read = show_bytes(double(reader.bytes_read())) + ", " + show_count(documents, "document") + ", " +
                 show_count(counts.pieces(), "different piece");
  if (counts.forgotten() > 0) trained.read += ", " + show_count(counts.forgotten(), "rare one") + " forgotten";
  if (trained.bad_lines.count > 0) trained.read += ", " + show_count(trained.bad_lines.count, "bad line") + " left out";
  Progress progress(stdout);
  trained.tokenizer = train_bpe(counts, vocab, specials, [&](int done, int of) {
    progress.update(double(done) / of, text("merging: %d of %d", done, of));
  });
  progress.update(1, show_count(trained.tokenizer.vocab(), "id"));
  progress.finish();
  double bytes_a_token = double(sample.size()) / double(trained.tokenizer.encode(sample).size());
  trained.made =
      text("%d ids, pattern %s, %.2f bytes a token on the first %s, %s", trained.tokenizer.vocab(), name_of(pattern),
           bytes_a_token, show_bytes(double(sample.size())).c_str(), show_duration(seconds_now() - start).c_str());
  return trained;
}

// End-of-text, and those of a list "a,b".
std::vector<std::string> special_tokens(const std::string& list) {
  std::vector<std::string> specials = {"<|endoftext|>"};
  for (size_t begin = 0, end; !list.empty() && begin <= list.size(); begin = end + 1) {
    end = std::min(list.find(',', begin), list.size());
    std::string special = list.substr(begin, end - begin);
    if (special.empty()) fail("--special %s: a special token is empty", list.c_str());
    if (std::find(specials.begin(), specials.end(), special) != specials.end())
      fail("--special %s: %s is there twice (<|endoftext|> always is)", list.c_str(), special.c_str());
    specials.push_back(special);
  }
  return specials;
}

// What would be met only when the tokenizer is trained.
void require_writable(const std::string& out) {
  if (file_exists(out)) fail("--out %s is there already: move it away, or choose another name", out.c_str());
  if (folder_exists(out)) fail("--out %s is a folder: name the file to write, such as tok.json", out.c_str());
  std::string folder = std::filesystem::path(out).parent_path().string();
  if (folder.empty()) folder = ".";
  if (!folder_exists(folder)) fail("--out %s: there is no folder %s", out.c_str(), folder.c_str());
  if (access(folder.c_str(), W_OK) < 0) fail("cannot write %s: %s", out.c_str(), std::strerror(errno));
}

int train(int argc, char** argv) {
  DocumentOptions o;
  std::string out, data, pattern = "llama3", special;
  int vocab = 8192, threads = 0;
  Flags flags("./tokenize train", "Trains a byte-level BPE tokenizer and writes it as a tokenizer.json.");
  flags.words("INPUT...", &o.inputs, "text files, .jsonl, folders of these, - for standard input");
  flags.section("Tokenizer");
  flags.add("vocab", &vocab, "ids: 256 bytes, pairs, special tokens", 257, 1 << 24);
  flags.choice("pattern", &pattern, pattern_names(), "how text is cut into pieces that no token spans");
  flags.add("special", &special, "special tokens beside <|endoftext|>, divided by commas");
  flags.add("out", &out, "the file to write, such as tok.json");
  flags.add("data", &data, "one more INPUT");
  flags.add("most-bytes", &o.most_bytes, "read only so many bytes of the input (0: all)", 0);
  flags.add("threads", &threads, "CPU threads (0: all cores)", 0, 4096);
  add_document_flags(flags, o);
  flags.examples(
      {"./tokenize train book.txt --out tok.json", "./tokenize train texts/ --vocab 4096 --out data/tok.json"});
  flags.parse(argc, argv);
  if (!data.empty()) o.inputs.push_back(data);
  if (o.inputs.empty()) fail("train: give what to train on: ./tokenize train INPUT... --out FILE");
  if (out.empty()) fail("train: give the file to write: --out FILE");
  require_writable(out);
  std::vector<std::string> specials = special_tokens(special);
  if (vocab < 256 + int(specials.size()))
    fail("--vocab %d is too small: bytes and special tokens take %zu ids", vocab, 256 + specials.size());
  for (const std::string& text : specials) require_special(text);

  start_threads(threads);
  Trained trained = train_tokenizer(o, pattern_named(pattern), vocab, specials);
  write_file(out, trained.tokenizer.to_json());
  say("read", trained.read);
  list_bad_lines(trained.bad_lines);
  say("tokenizer", out + ": " + trained.made);
  if (trained.tokenizer.vocab() < vocab)
    say("", text("no pair occurs twice any more, so it has fewer than %d ids", vocab));
  return 0;
}

// --- Encoding and decoding

constexpr const char* kTokenizerFiles = "a tokenizer.json, tiktoken's ranks, GPT-2's files, or bytes";

std::string read_input(const std::vector<std::string>& files) {
  return files.empty() || files[0] == "-" ? read_standard_input() : read_file(files[0]);
}

std::string name_of_input(const std::vector<std::string>& files) {
  return files.empty() || files[0] == "-" ? "standard input" : files[0];
}

void print(std::string_view bytes) {
  if (!bytes.empty()) std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

int encode(int argc, char** argv) {
  TokenizerFlags tokenizer;
  std::vector<std::string> files;
  bool raw = false, special = false;
  Flags flags("./tokenize encode", "Prints a text's token ids on one line, which ./tokenize decode reads back.");
  flags.examples(
      {"./tokenize encode --tokenizer tok.json book.txt", "echo \"It was\" | ./tokenize encode --tokenizer tok.json"});
  flags.words("[FILE]", &files, "the text; without it, or -: standard input", 1);
  flags.section("Encoding");
  tokenizer.add(flags, kTokenizerFiles);
  flags.add("raw", &raw, "write little-endian uint32 instead");
  flags.add("special", &special, "special tokens that stand in the text are meant");
  flags.parse(argc, argv);
  Tokenizer t = tokenizer.load();
  std::vector<int> ids;
  Encoder(t).encode(read_input(files), &ids, special);
  if (raw) {
    print({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int)});
    return 0;
  }
  std::string line;
  char digits[16];
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) line += ' ';
    line.append(digits, std::to_chars(digits, digits + sizeof digits, ids[i]).ptr);
  }
  print(line + "\n");
  return 0;
}

// A token's bytes, for which `word` at the place `where` stands.
std::string_view bytes_of_id(const Tokenizer& t, int64_t id, const std::string& word, const std::string& where) {
  std::string_view bytes = id < 0 || id >= t.vocab() ? std::string_view() : t.bytes_of(int(id));
  if (!bytes.empty()) return bytes;
  if (id >= 0 && id < t.vocab())
    fail("%s: the id %s stands for nothing in this tokenizer", where.c_str(), word.c_str());
  fail("%s: `%s` is no id: this tokenizer has 0 to %d", where.c_str(), word.c_str(), t.vocab() - 1);
}

std::string decode_raw(const Tokenizer& t, const std::string& bytes, const std::string& name) {
  if (bytes.size() % 4 != 0) fail("%s: %zu bytes are no whole number of uint32 ids", name.c_str(), bytes.size());
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 4) {
    uint32_t id;
    std::memcpy(&id, &bytes[at], 4);
    out += bytes_of_id(t, id, std::to_string(id), text("%s: token %zu", name.c_str(), at / 4 + 1));
  }
  return out;
}

std::string decode_words(const Tokenizer& t, const std::string& words, const std::string& name) {
  std::string out;
  size_t line = 1, line_start = 0;
  for (size_t at = 0; at < words.size();) {
    if (std::strchr(" \t\r\n", words[at]) && words[at]) {
      if (words[at++] == '\n') ++line, line_start = at;
      continue;
    }
    size_t end = std::min(words.find_first_of(" \t\r\n", at), words.size());
    int64_t id = -1;
    auto [last, error] = std::from_chars(&words[at], words.data() + end, id);
    if (error != std::errc() || last != words.data() + end) id = -1;
    std::string word = words.substr(at, std::min<size_t>(end - at, 40));
    out += bytes_of_id(t, id, word, text("%s:%zu:%zu", name.c_str(), line, at - line_start + 1));
    at = end;
  }
  return out;
}

int decode(int argc, char** argv) {
  TokenizerFlags tokenizer;
  std::vector<std::string> files;
  bool raw = false;
  Flags flags("./tokenize decode", "Writes the bytes that token ids stand for; special tokens are their text.");
  flags.examples({"echo 72 105 10 | ./tokenize decode --tokenizer tok.json",
                  "echo 72 105 10 | ./tokenize decode --tokenizer bytes  # Hi"});
  flags.words("[FILE]", &files, "ids with space between them; without it, or -: standard input", 1);
  flags.section("Decoding");
  tokenizer.add(flags, kTokenizerFiles);
  flags.add("raw", &raw, "the ids are little-endian uint32");
  flags.parse(argc, argv);
  Tokenizer t = tokenizer.load();
  std::string in = read_input(files), name = name_of_input(files);
  if (!raw) in.erase(0, in.size() - without_mark(in).size());
  std::string out = raw ? decode_raw(t, in, name) : decode_words(t, in, name);
  print(isatty(1) ? visible(out) : out);
  return 0;
}

// --- Preparing data

constexpr int64_t kTokenizerBytes = 100'000'000;  // of the input, that a tokenizer is trained on where none is given

// The tokenizer of a folder, which has to be one that the flags would have made. `most`: --vocab, or 0.
Tokenizer tokenizer_in(const std::string& folder, TokenizerFlags flags, int most) {
  flags.path = folder + "/tokenizer.json";
  Tokenizer t = flags.load_for_documents();
  if (most > 0 && t.vocab() > most)
    fail("%s has %d ids, more than --vocab %d: choose another folder", flags.path.c_str(), t.vocab(), most);
  std::string fewer = most > t.vocab() ? text("; --vocab %d is for a new one", most) : "";
  say("tokenizer", text("%s: %d ids%s", flags.path.c_str(), t.vocab(), fewer.c_str()));
  return t;
}

// A tokenizer for the data: the one given, or that of the folder, or one trained on how the input begins.
Tokenizer tokenizer_for(PrepareOptions& o, const TokenizerFlags& flags, int vocab, bool vocab_given) {
  TokenizerFlags given = flags.in_folder(o.out);
  if (!given.path.empty()) return given.load_for_documents();
  if (file_exists(o.out)) fail("--out %s: a file has that name", o.out.c_str());
  if (file_exists(o.out + "/tokenizer.json")) return tokenizer_in(o.out, given, vocab_given ? vocab : 0);
  DocumentReader listing(o.documents);
  for (const InputFile& file : listing.files()) {
    if (file.path == "-") o.documents.standard_input = read_standard_input(kTokenizerBytes);
    if (!file.regular && file.path != "-")
      fail(
          "%s can be read only once, and a tokenizer would be trained on it first: give --tokenizer, or pipe it in as "
          "-",
          file.path.c_str());
  }
  DocumentOptions head = o.documents;
  head.most_bytes = kTokenizerBytes;
  Pattern pattern = given.pattern.empty() ? Pattern::llama3 : pattern_named(given.pattern);
  Trained trained = train_tokenizer(head, pattern, vocab, special_tokens(""));
  given.require(trained.tokenizer, "the tokenizer that is trained");
  say("tokenizer", trained.made);
  return trained.tokenizer;
}

void add_data_flags(Flags& f, PrepareOptions& o, TokenizerFlags& tokenizer, int* vocab, int* threads) {
  f.section("Data");
  f.add("out", &o.out, "folder for the token files; the same command goes on there after Ctrl-C or a kill");
  f.add("shard-tokens", &o.shard_tokens, "tokens in a file", 2, INT32_MAX);
  f.add("val", &o.validation, "share of the documents that are held out", 0, 1);
  f.add("dedup", &o.deduplicate, "leave out documents that were there before");
  f.add("threads", threads, "CPU threads (0: all cores)", 0, 4096);
  f.add("batch-bytes", &o.batch_bytes, "bytes that are tokenized together", 1, 1 << 30);
  f.add("save-seconds", &o.save_seconds, "work that a kill may cost", 0, 1e6f);
  f.section("Tokenizer");
  tokenizer.add(f, std::string(kTokenizerFiles) + "; empty: the folder's, or a new one",
                "how a new one cuts text (empty: llama3)");
  f.add("vocab", vocab, "ids of a new one, which is trained on the input's first 100 MB", 257, 1 << 24);
  add_document_flags(f, o.documents);
}

void report(const PrepareOptions& o, const PrepareResult& r) {
  std::string left_out;
  if (r.empty > 0) left_out += ", " + show_count(double(r.empty)) + " empty";
  if (r.bad_lines.count > 0) left_out += ", " + show_count(double(r.bad_lines.count), "bad line");
  if (r.duplicates > 0) left_out += ", " + show_count(r.duplicates, "duplicate");
  say("documents", show_count(r.documents, "document") + ", " + show_bytes(double(r.bytes)) +
                       (left_out.empty() ? "" : "; left out:" + left_out.substr(1)));
  list_bad_lines(r.bad_lines);
  auto split = [&](const char* name, int64_t tokens, int64_t shards) {
    if (shards > 0)
      say(name,
          show_count(tokens, "token") + text(" in %s/%s_*.bin, ", o.out.c_str(), name) + show_count(shards, "file"));
  };
  split("train", r.train_tokens, r.train_shards), split("val", r.validation_tokens, r.validation_shards);
  if (r.complete && r.validation_documents == 0) say("val", "no document was held out");
  int64_t tokens = r.train_tokens + r.validation_tokens;
  say("", text("%.2f bytes a token", double(r.bytes) / double(std::max<int64_t>(tokens, 1))));
}

// A bar from where it begins.
class Watch {
 public:
  void operator()(const PrepareResult& r, double fraction, int64_t bytes_read) {
    if (first_ < 0) {
      first_ = double(bytes_read);
      if (r.documents > 0) progress_.print("going on behind " + show_count(r.documents, "document"));
      return;
    }
    int64_t tokens = r.train_tokens + r.validation_tokens;
    double seconds = std::max(seconds_now() - start_, 1e-3);
    double bytes_a_token = double(r.bytes) / double(std::max<int64_t>(tokens, 1));
    std::vector<std::string> parts = {show_bytes(double(bytes_read)),
                                      ", " + show_bytes((double(bytes_read) - first_) / seconds) + "/s",
                                      ", " + show_count(r.documents, "document"), ", " + show_count(tokens, "token"),
                                      text(", %.2f bytes each", bytes_a_token)};
    progress_.update(fraction, parts);
  }
  void finish() { progress_.finish(); }

 private:
  Progress progress_{stdout};
  double start_ = seconds_now(), first_ = -1;
};

int data(int argc, char** argv) {
  PrepareOptions o;
  TokenizerFlags tokenizer;
  int vocab = 8192, threads = 0;
  Flags flags("./tokenize data", "Turns text into token files that ./train --data FOLDER reads.");
  flags.words("INPUT...", &o.documents.inputs, "text files, .jsonl, folders of these, - for standard input");
  add_data_flags(flags, o, tokenizer, &vocab, &threads);
  flags.examples({"./tokenize data book.txt --out data/book", "./tokenize data texts/ --out data/texts --vocab 4096",
                  "./tokenize data web.jsonl --out data/web --dedup"});
  flags.parse(argc, argv);
  if (o.documents.inputs.empty()) fail("data: give what to tokenize: ./tokenize data INPUT... --out FOLDER");
  if (o.out.empty()) fail("data: give the folder to write to: --out FOLDER");
  if (!tokenizer.path.empty() && flags.given("vocab")) fail("--tokenizer and --vocab exclude each other");

  start_threads(threads);
  double start = seconds_now();
  Tokenizer t = tokenizer_for(o, tokenizer, vocab, flags.given("vocab"));
  require_end_of_text(t, tokenizer.path.empty() ? o.out + "/tokenizer.json" : tokenizer.path);
  catch_stop_signals();
  Watch watch;
  PrepareResult r = prepare_data(o, t, std::ref(watch));
  watch.finish();
  release_stop_signals();  // all is saved
  report(o, r);
  if (!r.complete) {
    say("stopped", "the same command goes on from here");
    return 128 + stop_signal();
  }
  say(r.found ? "complete" : "took",
      r.found ? "since before: nothing was to be done" : show_duration(seconds_now() - start));
  say_command("train on", sibling("train") + " --data " + shell_word(o.out));
  return 0;
}

// --- Importing token ids

int import(int argc, char** argv) {
  ImportOptions o;
  Flags flags("./tokenize import",
              "Turns raw token ids, as nanoGPT's train.bin and val.bin hold them, into token files.");
  flags.words("RAW...", &o.files, "little-endian ids without a header; NAME.bin becomes NAME_000000.bin ...");
  flags.section("Ids");
  flags.choice("bits", &o.bits, {"16", "32"}, "of an id");
  flags.choice(
      "format", &o.format, {"", "ids"},
      "empty: what does not look like ids is refused by what it is; ids: they are such, whatever they look like");
  flags.add("out", &o.out, "folder for the token files");
  flags.add("shard-tokens", &o.shard_tokens, "tokens in a file", 2, INT32_MAX);
  o.tokenizer.add(flags,
                  std::string(kTokenizerFiles) + ", which made the ids; empty: GPT-2's (16 bits), Llama 3's (32)");
  flags.examples({"./tokenize import train.bin val.bin --out data/ids", "./train --data data/ids --out runs/ids"});
  flags.parse(argc, argv);
  if (o.files.empty()) fail("import: give files of token ids: ./tokenize import RAW... --out FOLDER");
  if (o.out.empty()) fail("import: give the folder to write to: --out FOLDER");
  import_token_ids(o);
  say_command("train on", sibling("train") + " --data " + shell_word(o.out));
  return 0;
}

// --- Inspecting token files

// The tokenizer of a file: the one given, else the one beside it; null where there is neither.
const Tokenizer* tokenizer_of(const std::string& file, const TokenizerFlags& given,
                              std::map<std::string, Tokenizer>& known) {
  std::string folder = std::filesystem::path(file).parent_path().string();
  if (folder.empty()) folder = ".";
  if (auto found = known.find(folder); found != known.end()) return &found->second;
  TokenizerFlags flags = given.in_folder(folder);
  if (flags.path.empty() && file_exists(folder + "/tokenizer.json")) flags.path = folder + "/tokenizer.json";
  if (!flags.path.empty()) {
    Tokenizer tokenizer = flags.load_for_documents();
    require_tokenizer_of(folder, tokenizer, flags.path);
    return &known.emplace(folder, std::move(tokenizer)).first->second;
  }
  given.require_nothing(file);
  return nullptr;
}

int inspect(int argc, char** argv) {
  TokenizerFlags tokenizer;
  std::vector<std::string> words;
  Flags flags("./tokenize inspect", "Shows what token files hold, and whether they are whole.");
  flags.examples({"./tokenize inspect data/book", "./tokenize inspect data/book/train_000000.bin"});
  flags.words("FILE...", &words, "token files, and folders of these");
  flags.section("Inspecting");
  tokenizer.add(flags, std::string(kTokenizerFiles) + "; empty: tokenizer.json beside the file");
  flags.parse(argc, argv);
  if (words.empty()) fail("inspect: give token files, or a folder of these");
  std::map<std::string, Tokenizer> known;
  if (!tokenizer.path.empty()) tokenizer.load();  // what is wrong with it is no fault of the files
  int status = 0;
  std::set<std::string> told;  // a broken file breaks its folder, too
  auto tell = [&](const Error& e) {
    if (!told.insert(e.what()).second) return;
    std::fflush(stdout);
    std::fprintf(stderr, "tokenize: %s\n", as_started(e.what()).c_str());
    status = 1;
  };
  auto show = [&](const std::string& file) {
    try {
      std::string shown = describe_shard(file, tokenizer_of(file, tokenizer, known));
      print(isatty(1) ? visible(shown) : shown);
    } catch (const Error& e) {
      tell(e);
    }
  };
  for (const std::string& word : words) {
    if (!folder_exists(word)) {
      show(word);
      continue;
    }
    if (!names_shards(word)) require_as_prepared(word);  // its data.json may list some that are gone
    ShardNames names = find_shards(word);
    for (const auto* split : {&names.train, &names.validation})
      for (const std::string& file : *split) show(file);
    try {
      require_as_prepared(word);
      if (tokenizer.path.empty()) require_tokenizer_in(word);
      for (const std::string& file : files_with_other_bytes(word))
        tell(Error(text("%s has other bytes than when it was made, by the checksum in %s/data.json: copy it again",
                        file.c_str(), word.c_str())));
    } catch (const Error& e) {
      tell(e);
    }
  }
  return status;
}

// --- Subcommands

const struct {
  const char *name, *summary;
  int (*run)(int argc, char** argv);
} kCommands[] = {{"train", "trains a tokenizer on text", train},
                 {"encode", "turns a text into token ids", encode},
                 {"decode", "turns token ids into text", decode},
                 {"data", "turns text into token files to train on", data},
                 {"import", "turns raw token ids, such as nanoGPT's, into token files", import},
                 {"inspect", "shows what token files hold", inspect}};

constexpr const char* kSummary = "Trains tokenizers, turns text into tokens and back, and prepares data for ./train.";
const std::vector<std::string> kExamples = {"./tokenize data book.txt --out data/book",
                                            "./train --data data/book --model micro --out runs/micro"};

void print_commands() {
  std::printf("%s\n\n%s%s", as_started("Usage: ./tokenize SUBCOMMAND ...").c_str(),
              wrapped({as_started(kSummary)}, 0).c_str(), ("\n" + show_examples(kExamples)).c_str());
  for (const auto& command : kCommands) std::printf("  %-10s %s", command.name, wrapped({command.summary}, 13).c_str());
  std::printf("\n%s", wrapped({as_started("./tokenize SUBCOMMAND --help shows its flags.")}, 0).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argv, [&] {
    std::string name = argc > 1 ? argv[1] : "--help";
    std::vector<std::string> names;
    for (const auto& command : kCommands) {
      if (name == command.name) return command.run(argc - 1, argv + 1);
      names.push_back(command.name);
    }
    if (name == "--help" || name == "-h") {
      print_commands();
      return 0;
    }
    if (name == "--version") {
      print(version_line());
      return 0;
    }
    std::string nearest = nearest_word(name, names);
    fail("no subcommand `%s`: %s", name.c_str(),
         nearest.empty() ? "./tokenize lists them" : text("did you mean %s?", nearest.c_str()).c_str());
  });
}
