#include "token_folder.h"

#include <algorithm>
#include <filesystem>

#include "error.h"
#include "files.h"
#include "program.h"
#include "shards.h"

namespace {

std::string data_json(const std::string& folder) { return folder + "/data.json"; }

// The names and sizes of a split's files as ./tokenize data cuts them.
void add_files(TokenFolder& f, const std::string& split, int64_t shards, int64_t tokens, int64_t shard_tokens) {
  for (int64_t i = 0; i < shards; ++i)
    f.files.emplace_back(text("%s_%06lld.bin", split.c_str(), (long long)i),
                         std::min(shard_tokens, tokens - i * shard_tokens));
}

void take_prepared(TokenFolder& f, const Json& json, const Json& options, const std::string& path) {
  int64_t shard_tokens = options.get_int("shard-tokens", path);
  for (auto [split, shards, tokens] : {std::tuple{"train", "train_shards", "train_tokens"},
                                       std::tuple{"val", "validation_shards", "validation_tokens"}})
    add_files(f, split, json.get_int(shards, path), json.get_int(tokens, path), shard_tokens);
  f.masked = options.find("prompt-field") && !options.get_string("prompt-field", path).empty();
}

bool is_listed(const TokenFolder& f, const std::string& name) {
  return std::any_of(f.files.begin(), f.files.end(), [&](const auto& file) { return file.first == name; });
}

// As a clause for a message.
std::string how_to_go_on(const TokenFolder& f, const std::string& folder) {
  constexpr size_t kMost = 1000;
  bool has_tokenizer = f.imported || file_exists(folder + "/tokenizer.json");
  std::string line = "./tokenize";
  for (const std::string& word : f.command) line += " " + shell_word(word);
  line += " --out " + shell_word(folder);
  if (f.command.empty() || !has_tokenizer || line.size() > kMost || line.find('\n') != line.npos)
    return text("give its ./tokenize %s again, which goes on", f.imported ? "import" : "data");
  bool piped = std::find(f.command.begin(), f.command.end(), "-") != f.command.end();
  return (piped ? "pipe the same input in again: " : "") + line + " goes on with it";
}

void refuse_unlisted(const TokenFolder& f, const std::string& folder) {
  for (const std::string& name : list_folder(folder)) {
    std::string bin = name.ends_with(".mask") ? name.substr(0, name.size() - 5) + ".bin" : name;
    if (name[0] == '.' || !bin.ends_with(".bin") || (is_listed(f, bin) && (bin == name || f.masked))) continue;
    fail("%s/%s is none of the files that %s lists: move it away, or name the files that are meant, as in '%s/*.bin'",
         folder.c_str(), name.c_str(), data_json(folder).c_str(), folder.c_str());
  }
}

}  // namespace

std::string describe_tokenizer(const Tokenizer& t) { return text("%d ids, checksum %08x", t.vocab(), t.checksum()); }

std::string write_crc(uint32_t crc) { return text("%08x", crc); }

uint32_t read_crc(const Json& json, const std::string& name, const std::string& path) {
  std::string digits = json.get_string(name, path);
  if (digits.size() != 8 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    fail("%s: `%s` should be eight hexadecimal digits", path.c_str(), name.c_str());
  return uint32_t(std::stoul(digits, nullptr, 16));
}

Json write_checksums(const Checksums& checksums) {
  Json json = Json::object();
  for (const auto& [name, crc] : checksums) json.members.emplace_back(name, write_crc(crc));
  return json;
}

Json write_command(const std::vector<std::string>& words) { return Json::array({words.begin(), words.end()}); }

void add_flag(std::vector<std::string>& command, const std::string& name, const std::string& value) {
  if (value.starts_with("--")) return command.push_back("--" + name + "=" + value);
  command.insert(command.end(), {"--" + name, value});
}

Checksums read_checksums(const Json& data_json, const std::string& path) {
  Checksums checksums;
  if (const Json* json = data_json.find("checksums"))
    for (const auto& [name, digits] : json->members) checksums[name] = read_crc(*json, name, path);
  return checksums;
}

TokenFolder read_token_folder(const std::string& folder) {
  TokenFolder f;
  std::string path = data_json(folder);
  if (!file_exists(path)) return f;
  Json json = parse_json(read_file(path), path);
  const Json& options = json.get("options", path);
  f.complete = json.get_bool("complete", path);
  f.tokenizer = options.get_string("tokenizer", path);
  if (options.find("end-token")) f.end_token = options.get_string("end-token", path);
  f.imported = json.find("files") != nullptr;
  if (!f.imported) take_prepared(f, json, options, path);
  if (f.imported)
    for (const auto& [name, tokens] : json.get("files", path).members)
      f.files.emplace_back(name, json.get("files", path).get_int(name, path));
  f.checksums = read_checksums(json, path);
  if (const Json* command = json.find("command"))
    for (const Json& word : command->items) f.command.push_back(word.string);
  return f;
}

void require_as_prepared(const std::string& folder) {
  std::string path = data_json(folder);
  if (!file_exists(path)) return;
  TokenFolder f = read_token_folder(folder);
  if (!f.complete)
    fail("%s is not finished: %s, or name the files that are there, as in '%s/*.bin'", folder.c_str(),
         how_to_go_on(f, folder).c_str(), folder.c_str());
  if (f.files.empty())
    fail(
        "%s says that all is done, and lists no files: remove it and make the folder anew, or name the files that are "
        "meant, as in '%s/*.bin'",
        path.c_str(), folder.c_str());
  for (const auto& [name, tokens] : f.files) {
    std::string file = folder + "/" + name;
    if (!file_exists(file))
      fail(
          "%s is missing, which %s lists: copy it back, make the folder anew, or name the files that are meant, as in "
          "'%s/*.bin'",
          file.c_str(), path.c_str(), folder.c_str());
    if (int64_t held = read_shard_header(file).tokens; held != tokens)
      fail("%s holds %lld tokens, and %s says %lld: it is another file", file.c_str(), (long long)held, path.c_str(),
           (long long)tokens);
    if (f.masked && !file_exists(mask_path(file)))
      fail("%s is missing, which says what of %s may be targets", mask_path(file).c_str(), file.c_str());
  }
  refuse_unlisted(f, folder);
}

std::vector<std::string> files_with_other_bytes(const std::string& folder) {
  std::vector<std::string> others;
  for (const auto& [name, crc] : read_token_folder(folder).checksums)
    if (std::string file = folder + "/" + name; crc32c_of_file(file) != crc) others.push_back(file);
  return others;
}

void require_tokenizer_in(const std::string& folder) {
  std::string beside = folder + "/tokenizer.json";
  if (!file_exists(beside) && !read_token_folder(folder).tokenizer.empty())
    fail("%s is missing, by which the tokens in %s were made: copy it back, or name it with --tokenizer",
         beside.c_str(), folder.c_str());
}

void require_tokenizer_of(const std::string& folder, const Tokenizer& tokenizer, const std::string& name) {
  TokenFolder f = read_token_folder(folder);
  std::string now = describe_tokenizer(tokenizer);
  if (!f.tokenizer.empty() && f.tokenizer != now)
    fail("%s is not the tokenizer that made the tokens in %s: it has %s, and %s says %s", name.c_str(), folder.c_str(),
         now.c_str(), data_json(folder).c_str(), f.tokenizer.c_str());
}
