// Preparing data: the next batch of documents is read while this one is tokenized; its tokens are written in order.
#include "prepare.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "cpu/parallel.h"
#include "error.h"
#include "files.h"
#include "hash.h"
#include "json.h"
#include "log.h"
#include "shard_writer.h"
#include "shards.h"
#include "signals.h"
#include "token_folder.h"

namespace {

constexpr int kFormat = 1;  // of data.json

// --- data.json

// How far it has come.
struct Journal {
  PrepareResult counts;
  std::vector<InputFile> inputs;
  InputPosition position;
  Checksums checksums;
};

int64_t read_count(const Json& json, const std::string& name, const std::string& path) {
  int64_t count = json.get_int(name, path);
  if (count < 0) fail("%s: `%s` should be 0 or more, not %lld", path.c_str(), name.c_str(), (long long)count);
  return count;
}

// All that the shards' bytes depend on, but for the inputs.
Json options_to_json(const PrepareOptions& o, const Tokenizer& tokenizer) {
  return Json::object({{"tokenizer", describe_tokenizer(tokenizer)},
                       {"end-token", std::string(tokenizer.bytes_of(tokenizer.end_of_text()))},
                       {"field", o.documents.field},
                       {"prompt-field", o.documents.prompt_field},
                       {"separator", o.documents.separator},
                       {"format", o.documents.format},
                       {"shard-tokens", o.shard_tokens},
                       {"val", o.validation},
                       {"dedup", o.deduplicate}});
}

// The words that go on, without --out: the folder has the tokenizer, and the bytes depend on no other flags. Empty where
// they are not known: a pipe that has a name may have another one the next time.
std::vector<std::string> command_for(const PrepareOptions& o, const Tokenizer& tokenizer,
                                     const std::vector<InputFile>& files) {
  for (const InputFile& file : files)
    if (!file.regular && file.path != "-") return {};
  std::vector<std::string> command = {"data"};
  command.insert(command.end(), o.documents.inputs.begin(), o.documents.inputs.end());
  Json defaults = options_to_json({}, tokenizer);
  for (const auto& [name, value] : options_to_json(o, tokenizer).members) {
    if (write_json(value) == write_json(*defaults.find(name))) continue;
    if (value.kind == Json::Kind::boolean)
      command.push_back("--" + name);
    else
      add_flag(command, name, value.kind == Json::Kind::string ? value.string : write_json(value));
  }
  if (o.documents.on_bad_line != DocumentOptions().on_bad_line)
    add_flag(command, "on-bad-line", o.documents.on_bad_line);
  return command;
}

const std::pair<const char*, int64_t PrepareResult::*> kCounts[] = {
    {"documents", &PrepareResult::documents},
    {"validation_documents", &PrepareResult::validation_documents},
    {"duplicates", &PrepareResult::duplicates},
    {"empty", &PrepareResult::empty},
    {"bytes", &PrepareResult::bytes},
    {"train_tokens", &PrepareResult::train_tokens},
    {"validation_tokens", &PrepareResult::validation_tokens},
    {"train_shards", &PrepareResult::train_shards},
    {"validation_shards", &PrepareResult::validation_shards}};

// Of the inputs behind `at` the reader may be changing what was read of them.
Json journal_to_json(const PrepareResult& counts, const InputPosition& at, const std::vector<InputFile>& files,
                     Json options, const Checksums& checksums) {
  Json json = Json::object({{"format", kFormat}, {"complete", counts.complete}});
  for (auto [name, member] : kCounts) json.set(name, counts.*member);
  if (counts.bad_lines.count > 0)
    json.set("bad_lines",
             Json::object({{"count", counts.bad_lines.count},
                           {"first", Json::array({counts.bad_lines.first.begin(), counts.bad_lines.first.end()})}}));
  json.set("options", std::move(options));
  if (!counts.complete)
    json.set("position",
             Json::object({{"input", at.file}, {"byte", at.offset}, {"line", at.line}, {"crc32c", write_crc(at.crc)}}));
  Json inputs = Json::array();
  for (size_t i = 0; i < files.size(); ++i) {
    const InputFile& file = files[i];
    Json entry = Json::object({{"path", file.path}});
    if (int64_t(i) <= at.file) entry.set("bytes", file.bytes), entry.set("modified", file.modified);
    if (int64_t(i) < at.file) entry.set("read", file.read), entry.set("crc32c", write_crc(file.crc));
    inputs.items.push_back(std::move(entry));
  }
  json.set("inputs", std::move(inputs));
  if (!checksums.empty()) json.set("checksums", write_checksums(checksums));
  return json;
}

InputPosition read_position(const Json& json, const std::string& path) {
  return {read_count(json, "input", path), read_count(json, "byte", path), read_count(json, "line", path),
          read_crc(json, "crc32c", path)};
}

BadLines read_bad_lines(const Json& json, const std::string& path) {
  BadLines bad{read_count(json, "count", path), {}};
  for (const Json& line : json.get("first", path).items) {
    if (line.kind != Json::Kind::string) fail("%s: `first` should hold strings", path.c_str());
    bad.first.push_back(line.string);
  }
  return bad;
}

Journal read_journal(const Json& json, const std::string& path) {
  Journal journal;
  journal.counts.complete = json.get_bool("complete", path);
  for (auto [name, member] : kCounts) journal.counts.*member = read_count(json, name, path);
  if (const Json* bad = json.find("bad_lines")) journal.counts.bad_lines = read_bad_lines(*bad, path);
  const Json& inputs = json.get("inputs", path);
  journal.position.file = int64_t(inputs.items.size());
  if (!journal.counts.complete) journal.position = read_position(json.get("position", path), path);
  if (journal.position.file > int64_t(inputs.items.size())) fail("%s: `input` is beyond `inputs`", path.c_str());
  for (int64_t i = 0; i < int64_t(inputs.items.size()); ++i) {
    const Json& entry = inputs.items[size_t(i)];
    InputFile file;
    file.path = entry.get_string("path", path);
    if (i <= journal.position.file)
      file.bytes = read_count(entry, "bytes", path), file.modified = entry.get_string("modified", path);
    if (i < journal.position.file)
      file.read = read_count(entry, "read", path), file.crc = read_crc(entry, "crc32c", path);
    journal.inputs.push_back(std::move(file));
  }
  journal.checksums = read_checksums(json, path);
  return journal;
}

// Fails by naming the first option that was another one.
void require_same_options(const Json& then, const Json& now, const std::string& folder) {
  for (const auto& [name, value] : now.members) {
    const Json* before = then.find(name);
    bool unrecorded = !before && name == "end-token";  // from before it was
    if (unrecorded || (before && write_json(*before) == write_json(value))) continue;
    std::string was = before ? write_json(*before) : "unknown", is = write_json(value);
    if (name == "tokenizer")
      fail("%s was begun with another tokenizer: %s, and now %s", folder.c_str(), was.c_str(), is.c_str());
    fail("%s was begun with --%s %s, not %s: give the same, or another folder", folder.c_str(), name.c_str(),
         was.c_str(), is.c_str());
  }
}

void require_same_inputs(const std::vector<InputFile>& then, const std::vector<InputFile>& now,
                         const std::string& folder) {
  for (size_t i = 0; i < std::max(then.size(), now.size()); ++i) {
    std::string was = i < then.size() ? then[i].path : "nothing", is = i < now.size() ? now[i].path : "nothing";
    if (was != is)
      fail("%s was begun with other inputs: number %zu was %s and is %s now", folder.c_str(), i + 1, was.c_str(),
           is.c_str());
  }
}

// --- Documents as tokens

struct Batch {
  std::vector<Record> records;
  InputPosition end;
  int64_t bytes_read = 0;  // of the input, up to the end
};

Batch read_batch(DocumentReader& reader, int64_t most_bytes) {
  constexpr size_t kMostDocuments = 4096;
  Batch batch;
  Record record;
  for (int64_t bytes = 0; bytes < most_bytes && batch.records.size() < kMostDocuments && reader.next(&record);) {
    bytes += int64_t(record.bytes.size());
    batch.records.push_back(std::move(record));
    batch.end = reader.position();
  }
  batch.bytes_read = reader.bytes_read();
  return batch;
}

struct Encoded {
  std::vector<int> tokens;  // the prompt's, then the text's
  int64_t prompt = 0;       // how many are the prompt's
  int64_t bytes = 0;        // 0: the text is empty
  Hash128 hash;
  std::optional<BadLine> bad_line;  // in place of a document
  std::exception_ptr error;
};

struct HashOfHash {
  size_t operator()(const Hash128& h) const { return size_t(h.low); }
};

class Preparation {
 public:
  Preparation(const PrepareOptions& o, const Tokenizer& tokenizer, const PrepareWatch& watch)
      : o_(o), tokenizer_(tokenizer), tokenizer_json_(tokenizer.to_json()), watch_(watch), reader_(o.documents) {
    if (tokenizer.end_of_text() < 0)
      fail("the tokenizer has no token that ends a text, which has to stand between documents");
    refuse_own_folder();
    if (reader_.total_bytes() == 0) fail("nothing to tokenize: the input is empty");
    if (!file_exists(path("data.json"))) reader_.require_texts();  // now, and not after an hour
    make_folder(o.out);
    lock_ = std::make_unique<FolderLock>(o.out);
    remove_halves();
    refuse_others_files();
    if (file_exists(path("data.json"))) read_data_json();
    require_own_tokenizer();
    train_ = std::make_unique<ShardWriter>(form("train"), counts_.train_tokens, counts_.complete, checksums_then_);
    validation_ =
        std::make_unique<ShardWriter>(form("val"), counts_.validation_tokens, counts_.complete, checksums_then_);
    if (o.deduplicate && !counts_.complete) open_seen();
    for (int t = 0; t < thread_count(); ++t) encoders_.push_back(std::make_unique<Encoder>(tokenizer));
  }

  PrepareResult run() {
    if (counts_.complete) {
      reader_.resume(inputs_then_, position_);  // are the inputs what they were?
      if (!file_exists(path("tokenizer.json"))) write_file(path("tokenizer.json"), tokenizer_json_);
      remove_seen();                               // a kill may have come before
      if (checksums() != checksums_then_) save();  // it is from before there were any
      counts_.found = true;
      return counts_;
    }
    double saved = seconds_now();
    report(0);
    std::future<Batch> ahead = read_ahead(true);
    StopReading stop_reading{reader_};  // before `ahead` waits for it
    while (true) {
      Batch batch = wait_for(ahead);
      if (stop_signal()) {
        if (unsaved_) save();
        return counts_;
      }
      if (batch.records.empty()) return finish();
      ahead = read_ahead(false);
      for (const Encoded& document : encode(batch)) take(document);
      position_ = batch.end, unsaved_ = true;
      report(batch.bytes_read);
      if (seconds_now() - saved >= o_.save_seconds) save(), saved = seconds_now();
    }
  }

 private:
  struct StopReading {
    DocumentReader& reader;
    ~StopReading() { reader.stop(); }
  };

  std::string path(const std::string& name) const { return o_.out + "/" + name; }

  ShardForm form(const std::string& split) const {
    return {o_.out, split, bits_for_vocab(tokenizer_.vocab()), o_.shard_tokens, !o_.documents.prompt_field.empty()};
  }

  // What it writes would be its input the next time.
  void refuse_own_folder() const {
    namespace fs = std::filesystem;
    std::error_code error;  // making the folder will say what is wrong
    fs::path out = fs::weakly_canonical(o_.out, error);
    for (const std::string& input : o_.documents.inputs) {
      if (input == "-" || !folder_exists(input)) continue;
      fs::path folder = fs::canonical(input);
      if (std::mismatch(folder.begin(), folder.end(), out.begin(), out.end()).first == folder.end())
        fail("--out %s lies in the input %s, of which all is read: choose a folder outside", o_.out.c_str(),
             input.c_str());
    }
  }

  // What ./train --data FOLDER would read besides. (Of files that are named as ours ShardWriter knows which are.)
  void refuse_others_files() const {
    for (const std::string& name : list_folder(o_.out)) {
      bool ours = name.starts_with("train_") || name.starts_with("val_") || name[0] == '.';
      if (name.ends_with(".bin") && !ours)
        fail("%s is in the way: ./train --data would read it besides; move it away, or choose another folder",
             path(name).c_str());
    }
  }

  // What a kill left of a file that was being replaced.
  void remove_halves() const {
    for (const std::string& name : list_folder(o_.out))
      if ((name.starts_with(".data.json.") || name.starts_with(".tokenizer.json.")) && name.ends_with(".partial"))
        std::filesystem::remove(path(name));
  }

  void read_data_json() {
    std::string name = path("data.json");
    Json json = parse_json(read_file(name), name);
    if (json.get_int("format", name) != kFormat) fail("%s has a format that this program does not know", name.c_str());
    if (json.find("files")) fail("%s holds imported token files: choose another folder", o_.out.c_str());
    Journal journal = read_journal(json, name);
    if (journal.counts.complete && journal.counts.train_tokens == 0)
      fail("%s says that all is done, and counts no tokens: remove it and make the folder anew", name.c_str());
    require_same_options(json.get("options", name), options_to_json(o_, tokenizer_), o_.out);
    require_same_inputs(journal.inputs, reader_.files(), o_.out);
    counts_ = journal.counts, position_ = journal.position, inputs_then_ = std::move(journal.inputs);
    checksums_then_ = std::move(journal.checksums);
  }

  void require_own_tokenizer() const {
    std::string name = path("tokenizer.json");
    if (!file_exists(name) || read_file(name) == tokenizer_json_) return;
    if (Tokenizer::load(name).checksum() != tokenizer_.checksum())
      fail("%s is another tokenizer: give it as --tokenizer, or choose another folder", name.c_str());
  }

  // The hashes of the documents so far, in a file of their own: they are too many to be written anew every time.
  void open_seen() {
    std::string name = path(".seen.partial");
    seen_file_ = std::make_unique<GrowingFile>(name, counts_.documents * int64_t(sizeof(Hash128)), name);
    std::string bytes = read_file(name);
    for (size_t at = 0; at < bytes.size(); at += sizeof(Hash128)) {
      Hash128 hash;
      std::memcpy(&hash, &bytes[at], sizeof hash);
      seen_.insert(hash);
    }
  }

  std::future<Batch> read_ahead(bool first) {
    return std::async(std::launch::async, [this, first] {
      if (first) reader_.resume(inputs_then_, position_);
      return read_batch(reader_, o_.batch_bytes);
    });
  }

  Batch wait_for(std::future<Batch>& ahead) {
    while (ahead.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
      if (stop_signal()) reader_.stop();
    return ahead.get();
  }

  std::vector<Encoded> encode(Batch& batch) {
    std::vector<Encoded> encoded(batch.records.size());
    std::atomic<size_t> next = 0;
    ISA::parallel(encoded.size() > 1, [&](int thread, int) {
      for (size_t i; (i = next.fetch_add(1)) < encoded.size();) try {
          encode(reader_.parse(std::move(batch.records[i])), *encoders_[thread], &encoded[i]);
        } catch (const BadLine& line) {
          encoded[i].bad_line = line;
        } catch (...) {
          encoded[i].error = std::current_exception();
        }
    });
    return encoded;
  }

  static void encode(const PromptedText& document, Encoder& encoder, Encoded* e) {
    if (document.text.empty()) return;
    e->bytes = int64_t(document.prompt.size() + document.text.size());
    e->hash = hash128(document.text, hash128(document.prompt));
    encoder.encode(document.prompt, &e->tokens);
    e->prompt = int64_t(e->tokens.size());
    encoder.encode(document.text, &e->tokens);
  }

  void take(const Encoded& e) {
    if (e.error) std::rethrow_exception(e.error);
    if (e.bad_line) return counts_.bad_lines.add(*e.bad_line);
    if (e.bytes == 0) return void(++counts_.empty);
    if (o_.deduplicate && !is_new(e.hash)) return void(++counts_.duplicates);
    bool held_out = counts_.documents > 0 && double(e.hash.high >> 11) * 0x1p-53 < double(o_.validation);
    ShardWriter& split = held_out ? *validation_ : *train_;
    int end = tokenizer_.end_of_text();
    split.append(&end, 1, true);  // which the document before is to predict
    split.append(e.tokens.data(), e.prompt, false);
    split.append(e.tokens.data() + e.prompt, int64_t(e.tokens.size()) - e.prompt, true);
    ++counts_.documents, counts_.validation_documents += held_out, counts_.bytes += e.bytes;
  }

  bool is_new(const Hash128& hash) {
    if (!seen_.insert(hash).second) return false;
    seen_file_->write(&hash, sizeof hash);
    return true;
  }

  void count_tokens() {
    counts_.train_tokens = train_->tokens(), counts_.validation_tokens = validation_->tokens();
    counts_.train_shards = train_->shards(), counts_.validation_shards = validation_->shards();
  }

  void report(int64_t bytes_read) {
    count_tokens();
    int64_t total = reader_.total_bytes();
    if (watch_) watch_(counts_, total > 0 ? double(bytes_read) / double(total) : -1, bytes_read);
  }

  // First the tokens are on the disk, then what says so; then full shards get their names.
  void save() {
    count_tokens();
    for (ShardWriter* split : {train_.get(), validation_.get()}) split->sync();
    if (seen_file_) seen_file_->sync();
    if (!file_exists(path("tokenizer.json"))) write_file(path("tokenizer.json"), tokenizer_json_);
    Json json = journal_to_json(counts_, position_, reader_.files(), options_to_json(o_, tokenizer_), checksums());
    if (!counts_.complete) json.set("command", write_command(command_for(o_, tokenizer_, reader_.files())));
    write_file(path("data.json"), write_json_indented(json));
    for (ShardWriter* split : {train_.get(), validation_.get()}) split->publish();
    unsaved_ = false;
  }

  PrepareResult finish() {
    const BadLines& bad = counts_.bad_lines;
    if (counts_.documents == 0 && bad.count > 0)
      fail("nothing to tokenize: all lines are bad or empty (%lld bad ones), the first by %s", (long long)bad.count,
           bad.first.empty() ? "an unknown fault" : bad.first[0].c_str());
    if (counts_.documents == 0) fail("nothing to tokenize: the input holds no document that is not empty");
    int end = tokenizer_.end_of_text();
    for (ShardWriter* split : {train_.get(), validation_.get()}) {
      if (split->tokens() > 0) split->append(&end, 1, true);
      split->finish();
    }
    position_ = reader_.position();
    counts_.complete = true;
    save();
    remove_seen();
    return counts_;
  }

  void remove_seen() const { std::filesystem::remove(path(".seen.partial")); }

  Checksums checksums() const {
    Checksums all = train_->checksums();
    all.insert(validation_->checksums().begin(), validation_->checksums().end());
    return all;
  }

  const PrepareOptions& o_;
  const Tokenizer& tokenizer_;
  std::string tokenizer_json_;
  const PrepareWatch& watch_;
  DocumentReader reader_;
  std::unique_ptr<FolderLock> lock_;
  PrepareResult counts_;
  InputPosition position_;              // behind the last document that counts
  std::vector<InputFile> inputs_then_;  // as data.json has them
  Checksums checksums_then_;
  std::unique_ptr<ShardWriter> train_, validation_;
  std::unordered_set<Hash128, HashOfHash> seen_;
  std::unique_ptr<GrowingFile> seen_file_;
  std::vector<std::unique_ptr<Encoder>> encoders_;  // one a thread
  bool unsaved_ = false;
};

}  // namespace

PrepareResult prepare_data(const PrepareOptions& options, const Tokenizer& tokenizer, const PrepareWatch& watch) {
  return Preparation(options, tokenizer, watch).run();
}
