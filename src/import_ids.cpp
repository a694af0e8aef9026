#include "import_ids.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "error.h"
#include "files.h"
#include "log.h"
#include "shard_writer.h"
#include "shards.h"
#include "text_input.h"
#include "token_folder.h"

namespace {

// What is found of raw ids that cannot be what they are taken for; empty: nothing.
std::string doubt_ids(const Tokens& raw) {
  std::string_view head(static_cast<const char*>(raw.bytes()), std::min(raw.byte_size(), kTextHead));
  if (std::string other = describe_no_raw_ids(head, raw.name()); !other.empty()) return other;
  int64_t looked = std::min<int64_t>(raw.size(), 1 << 16);
  bool odd_zero = looked >= 16, three_zero = looked >= 16;  // every second id; three of four
  for (int64_t i = 0; i < looked; ++i) odd_zero &= i % 2 == 0 || raw[i] == 0, three_zero &= i % 4 == 0 || raw[i] == 0;
  bool all_zero = raw.part(0, looked).find_beyond(1) == looked;
  if (all_zero || !odd_zero) return "";
  int bits = raw.bits() * (three_zero ? 4 : 2);
  if (bits == 32) return "every second id is 0: they have 32 bits, so give --bits 32";
  return text(
      "they seem to have %d bits an id; python3 -c \"import numpy; numpy.fromfile(%s, 'i%d')"
      ".astype('u4').tofile('ids.bin')\" makes them 32, for --bits 32",
      bits, ("'" + raw.name() + "'").c_str(), bits / 8);
}

// Fails where an id is beyond the vocabulary that made them, or the one that they will be taken for.
void require_vocabulary_of_ids(const Tokens& raw, const std::optional<Tokenizer>& tokenizer) {
  int vocab = tokenizer ? tokenizer->vocab() : raw.bits() == 16 ? 50257 : 128256;
  int64_t at = raw.find_beyond(vocab);
  if (at == raw.size()) return;
  if (tokenizer) require_ids_below(vocab, raw);
  const char* whose = raw.bits() == 16 ? "GPT-2's" : "Llama 3's";
  fail(
      "%s holds id %u at position %lld, and %s vocabulary, for which it is taken, has %d: name the tokenizer that made "
      "it with --tokenizer%s",
      raw.name().c_str(), unsigned(raw[at]), (long long)at, whose, vocab,
      raw.bits() == 32 ? ", or leave out --bits 32 where an id has 16" : "");
}

std::string split_of(const Tokens& raw) { return std::filesystem::path(raw.name()).stem().string(); }

bool belongs_to(const std::string& file, const Tokens& raw) {
  std::string split = split_of(raw) + "_";
  return file.starts_with(split) && file.size() == split.size() + 10 && file.ends_with(".bin");
}

// The words that make it again, without --out.
std::vector<std::string> command_for(const ImportOptions& o) {
  std::vector<std::string> command = {"import"};
  command.insert(command.end(), o.files.begin(), o.files.end());
  const ImportOptions defaults;
  auto add = [&](const char* name, const std::string& value, const std::string& usual) {
    if (value != usual) add_flag(command, name, value);
  };
  add("bits", o.bits, defaults.bits), add("format", o.format, defaults.format);
  add("shard-tokens", std::to_string(o.shard_tokens), std::to_string(defaults.shard_tokens));
  add("tokenizer", o.tokenizer.path, ""), add("pattern", o.tokenizer.pattern, "");
  add("end-token", o.tokenizer.end_token, "");
  return command;
}

// What data.json says: the files that there will be. Once it is there, they are known as ours.
TokenFolder folder_of_import(const std::vector<Tokens>& inputs, const std::optional<Tokenizer>& tokenizer,
                             int64_t shard_tokens) {
  TokenFolder f;
  f.imported = true;
  if (tokenizer) f.tokenizer = describe_tokenizer(*tokenizer);
  if (tokenizer && tokenizer->end_of_text() >= 0)
    f.end_token = std::string(tokenizer->bytes_of(tokenizer->end_of_text()));
  for (const Tokens& raw : inputs)
    for (int64_t begin = 0, i = 0; begin < raw.size(); begin += shard_tokens, ++i)
      f.files.emplace_back(text("%s_%06lld.bin", split_of(raw).c_str(), (long long)i),
                           std::min(shard_tokens, raw.size() - begin));
  return f;
}

void write_record(const std::string& out, const TokenFolder& f, bool complete) {
  Json options = Json::object({{"tokenizer", f.tokenizer}}), files = Json::object();
  if (!f.end_token.empty()) options.set("end-token", f.end_token);
  for (const auto& [name, tokens] : f.files) files.set(name, tokens);
  Json record = Json::object({{"format", 1}, {"complete", complete}, {"options", options}, {"files", files}});
  if (!f.checksums.empty()) record.set("checksums", write_checksums(f.checksums));
  if (!complete) record.set("command", write_command(f.command));
  write_file(out + "/data.json", write_json_indented(record));
}

// Copies the ids of RAW/NAME.bin to OUT/NAME_000000.bin …, and returns their checksums.
Checksums import_ids(const Tokens& raw, const ShardForm& form, Progress& progress) {
  constexpr int64_t kPiece = 1 << 20;
  ShardWriter writer(form, 0, false);
  std::vector<int> ids;
  for (int64_t begin = 0; begin < raw.size(); begin += kPiece) {
    int64_t end = std::min(raw.size(), begin + kPiece);
    ids.clear();
    for (int64_t i = begin; i < end; ++i) ids.push_back(raw[i]);
    writer.append(ids.data(), end - begin, true);
    progress.update(double(end) / double(raw.size()), raw.name() + ": " + show_count(double(end), "token"));
  }
  writer.finish();
  writer.publish();
  progress.print(text("%-10s %s in %s/%s_*.bin, ", form.split.c_str(), show_count(double(raw.size()), "token").c_str(),
                      form.folder.c_str(), form.split.c_str()) +
                 show_count(double(writer.shards()), "file"));
  return writer.checksums();
}

// Two inputs of one name would be one file.
void require_different_names(const std::vector<Tokens>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (split_of(inputs[i]) == split_of(inputs[j]))
        fail("%s and %s would both become %s_000000.bin: rename one, or import them into two folders",
             inputs[j].name().c_str(), inputs[i].name().c_str(), split_of(inputs[i]).c_str());
}

// Another import into the same folder adds files, and replaces those of the same names.
void add_to_import(TokenFolder& now, const TokenFolder& before, const std::vector<Tokens>& inputs,
                   const std::string& out) {
  if (before.tokenizer != now.tokenizer || before.end_token != now.end_token)
    fail("%s holds tokens of another tokenizer, or that end texts otherwise: choose another folder", out.c_str());
  for (const auto& file : before.files) {
    if (std::any_of(inputs.begin(), inputs.end(), [&](const Tokens& raw) { return belongs_to(file.first, raw); })) {
      std::filesystem::remove(out + "/" + file.first);
      continue;
    }
    auto checksum = before.checksums.find(file.first);
    bool recorded = checksum != before.checksums.end();  // then it was finished
    if (!before.complete && !recorded)
      fail(
          "%s: an import there was cut short, of which %s is to be: give its file again, too, or choose another folder",
          out.c_str(), file.first.c_str());
    now.files.push_back(file);
    now.checksums[file.first] = recorded ? checksum->second : crc32c_of_file(out + "/" + file.first);
  }
}

// What ./train --data would read besides, or take for the tokenizer.
void refuse_others_files(const std::string& out, const TokenFolder& before, const std::vector<Tokens>& inputs,
                         const std::string& tokenizer) {
  std::error_code none;  // there is no such folder yet
  for (const Tokens& raw : inputs) {
    std::string folder = std::filesystem::path(raw.name()).parent_path().string();
    if (std::filesystem::equivalent(folder.empty() ? "." : folder, out, none))
      fail("--out %s: %s lies there itself; choose another folder", out.c_str(), raw.name().c_str());
  }
  std::string beside = out + "/tokenizer.json";
  if (!before.imported && file_exists(beside) && read_file(beside) != tokenizer)
    fail("%s is another tokenizer: choose another folder", beside.c_str());
  for (const std::string& name : list_folder(out)) {
    bool ours = std::any_of(before.files.begin(), before.files.end(), [&](auto& file) { return file.first == name; });
    if (name[0] != '.' && name.ends_with(".bin") && !(before.imported && ours))
      fail("%s/%s is in the way: move it away, or choose another folder", out.c_str(), name.c_str());
  }
}

std::vector<Tokens> map_inputs(const ImportOptions& o, const std::optional<Tokenizer>& tokenizer) {
  std::vector<Tokens> inputs;
  for (const std::string& file : o.files) {
    if (file == "-") fail("import reads files, not standard input: write the ids to a file first");
    inputs.push_back(Tokens::map_raw(file, std::stoi(o.bits)));
    if (inputs.back().size() == 0) fail("%s is empty: there are no ids in it", file.c_str());
    if (std::string doubt = o.format.empty() ? doubt_ids(inputs.back()) : ""; !doubt.empty())
      fail("%s: %s (--format ids takes it as it is)", file.c_str(), doubt.c_str());
    require_vocabulary_of_ids(inputs.back(), tokenizer);
  }
  require_different_names(inputs);
  return inputs;
}

}  // namespace

void import_token_ids(const ImportOptions& o) {
  std::optional<Tokenizer> tokenizer;
  if (!o.tokenizer.path.empty())
    tokenizer = o.tokenizer.load_for_documents();
  else
    o.tokenizer.require_nothing("an import without --tokenizer");
  std::vector<Tokens> inputs = map_inputs(o, tokenizer);
  std::string json = tokenizer ? tokenizer->to_json() : "";
  TokenFolder before = read_token_folder(o.out), now = folder_of_import(inputs, tokenizer, o.shard_tokens);
  now.command = command_for(o);
  refuse_others_files(o.out, before, inputs, json);
  make_folder(o.out);
  FolderLock lock(o.out);
  if (before.imported) add_to_import(now, before, inputs, o.out);
  write_record(o.out, now, false);
  if (!json.empty()) write_file(o.out + "/tokenizer.json", json);
  Progress progress(stdout);
  for (const Tokens& raw : inputs)
    now.checksums.merge(import_ids(raw, {o.out, split_of(raw), raw.bits(), o.shard_tokens}, progress));
  progress.finish();
  write_record(o.out, now, true);
}
