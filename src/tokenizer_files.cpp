// Tokenizers as others write them: tiktoken's ranks, and GPT-2's encoder.json and vocab.bpe. Tokenizer::load is the one
// door for all of them.
#include <algorithm>
#include <charconv>

#include "error.h"
#include "files.h"
#include "program.h"
#include "tokenizer_kind.h"
#include "tokenizer_reader.h"

namespace {

using Tables = Tokenizer::Tables;

// Calls line(text, where) for each line that is not empty.
template <class Line>
void each_line(const std::string& bytes, const std::string& path, Line line) {
  int number = 1;
  for (size_t begin = 0, end; begin < bytes.size(); begin = end + 1, ++number) {
    end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view words = std::string_view(bytes).substr(begin, end - begin);
    if (words.ends_with('\r')) words.remove_suffix(1);
    if (!words.empty()) line(words, path + ":" + std::to_string(number));
  }
}

// --- tiktoken's ranks: a line a token, its bytes in base64 and its rank, which is its id. Two tokens become one where
// their bytes together are a token.

constexpr size_t kLongestRanked = 1024;  // bytes; all ways to divide a token are looked through

// Files whose pattern and special tokens stand in the code that reads them, not in the file: tiktoken's own
// (tiktoken_ext/openai_public.py), and those of Llama 3, Llama 4 and the first Qwen.
struct KnownRanks {
  const char* name;
  int ranks, rank_of_the;  // " the": others may have as many ranks
  Pattern pattern;
  std::vector<Tokenizer::Special> specials;
};

const std::vector<KnownRanks>& known_ranks() {
  static const std::vector<KnownRanks> known = {
      {"r50k_base", 50256, 262, Pattern::gpt2, {{"<|endoftext|>", 50256}}},
      {"p50k_base", 50280, 262, Pattern::gpt2, {{"<|endoftext|>", 50256}}},
      {"cl100k_base",
       100256,
       279,
       Pattern::cl100k,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {"o200k_base", 199998, 290, Pattern::o200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
      {"Llama 3",
       128000,
       279,
       Pattern::llama3,
       {{"<|begin_of_text|>", 128000},
        {"<|end_of_text|>", 128001},
        {"<|start_header_id|>", 128006},
        {"<|end_header_id|>", 128007},
        {"<|eom_id|>", 128008},
        {"<|eot_id|>", 128009},
        {"<|python_tag|>", 128010},
        {"<|reserved_special_token_247|>", 128255}}},  // the last, in Llama 3.1 as Hugging Face has it
      {"Llama 4",
       200000,
       290,
       Pattern::o200k,
       {{"<|begin_of_text|>", 200000},
        {"<|end_of_text|>", 200001},
        {"<|fim_prefix|>", 200002},
        {"<|fim_middle|>", 200003},
        {"<|fim_suffix|>", 200004},
        {"<|header_start|>", 200005},
        {"<|header_end|>", 200006},
        {"<|eom|>", 200007},
        {"<|eot|>", 200008}}},
      {"Qwen",
       151643,
       279,
       Pattern::qwen2,
       {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}}},
  };
  return known;
}

std::string from_base64(std::string_view text, const std::string& where) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  if (text.size() % 4 != 0) fail("%s: expected base64, whose length is a multiple of four", where.c_str());
  uint32_t bits = 0;
  for (size_t i = 0; i + padding < text.size(); ++i) {
    size_t value = digits.find(text[i]);
    if (value == digits.npos) fail("%s: `%c` is no digit of base64", where.c_str(), text[i]);
    bits = bits << 6 | uint32_t(value);
    if (i % 4 != 0) bytes += char(bits >> (6 - 2 * (i % 4)) & 0xff);
  }
  return bytes;
}

std::vector<MergeRule> rules_of_ranks(const Tables& t, const TokenTable& table) {
  std::vector<MergeRule> rules;
  for (int id = 0; id < t.vocabulary.size(); ++id) {
    std::string_view bytes = t.vocabulary.bytes(id);
    if (bytes.size() < 2 || table.find(bytes) != id) continue;  // no special
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      int left = table.find(bytes.substr(0, cut)), right = left < 0 ? -1 : table.find(bytes.substr(cut));
      if (right >= 0) rules.push_back({left, right, id, id});
    }
  }
  return rules;
}

int64_t whole_number(const std::string& digits, const std::string& path) {
  int64_t number = -1;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size())
    fail("%s: `%s` is no whole number", path.c_str(), visible(digits).c_str());
  return number;
}

TokenTable table_of(const Tables& t, const std::string& path) {
  TokenTable table(t.vocabulary);
  for (int id = 0; id < t.vocabulary.size(); ++id)
    if (t.entries[id] == Entry::bytes && !table.insert(id))
      fail("%s: the token of id %d is there twice", path.c_str(), id);
  return table;
}

struct RanksRead {
  int count = 0, last = -1;
  int rank_of_the = -1, end_of_text = -1;  // −1: no token has these bytes
};

RanksRead read_lines_of_ranks(TokenizerReader& reader, const std::string& bytes, const std::string& path,
                              const std::string& end_token) {
  RanksRead read;
  each_line(bytes, path, [&](std::string_view line, const std::string& where) {
    size_t space = line.find(' ');
    if (space == line.npos) fail("%s: expected a token in base64, a space and its rank", where.c_str());
    std::string token = from_base64(line.substr(0, space), where);
    int64_t rank = whole_number(std::string(line.substr(space + 1)), where);
    if (token.size() > kLongestRanked)
      fail("%s: a token of %zu bytes; at most %zu are possible", where.c_str(), token.size(), kLongestRanked);
    reader.add_bytes(rank, token, where);
    if (token == " the") read.rank_of_the = int(rank);
    if (token == end_token) read.end_of_text = int(rank);
    ++read.count, read.last = std::max(read.last, int(rank));
  });
  return read;
}

// Null where the file is none of those that are known.
const KnownRanks* known_by(const RanksRead& read, const std::string& path, const std::string& pattern) {
  const KnownRanks* known = nullptr;
  for (const KnownRanks& k : known_ranks())
    if (k.ranks == read.count && k.rank_of_the == read.rank_of_the) known = &k;
  if (!known && pattern.empty())
    fail("%s holds %d ranks, and is none of the files that are known: name its pattern with --pattern", path.c_str(),
         read.count);
  if (known && !pattern.empty() && pattern_named(pattern) != known->pattern)
    fail("--pattern %s: %s has the ranks of %s, which cut as %s; leave the flag out", pattern.c_str(), path.c_str(),
         known->name, name_of(known->pattern));
  return known;
}

std::shared_ptr<const Tables> read_ranks(const std::string& bytes, const std::string& path, const std::string& pattern,
                                         const std::string& end_token) {
  TokenizerReader reader(path);
  Tables& tables = *reader.tables;
  RanksRead read = read_lines_of_ranks(reader, bytes, path, end_token.empty() ? "<|endoftext|>" : end_token);
  const KnownRanks* known = known_by(read, path, pattern);
  tables.pattern = known ? known->pattern : pattern_named(pattern);
  std::vector<Tokenizer::Special> specials;
  if (known)
    specials = known->specials;
  else if (read.end_of_text >= 0)
    specials = {{end_token.empty() ? "<|endoftext|>" : end_token, read.end_of_text}};
  else if (!end_token.empty())
    specials = {{end_token, read.last + 1}};
  for (const Tokenizer::Special& s : specials) reader.add_added({.text = s.text, .id = s.id, .special = true}, s.id);
  reader.fill_vocabulary();
  TokenTable table = table_of(tables, path);
  reader.find_bytes([&](std::string_view byte) { return table.find(byte); });
  tables.rules = rules_of_ranks(tables, table);
  tables.whole_first = true;
  tables.finish();
  return reader.tables;
}

// --- GPT-2's two files

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }  // npos + 1 = 0

// Classes of transformers that read these files, and what they do that the files don't say.
struct KnownClass {
  const char* name;  // without "Fast"
  Pattern pattern;
  bool nfc;
};
constexpr KnownClass kKnownClasses[] = {
    {"GPT2Tokenizer", Pattern::gpt2, false},    {"RobertaTokenizer", Pattern::gpt2, false},
    {"BartTokenizer", Pattern::gpt2, false},    {"CodeGenTokenizer", Pattern::gpt2, false},
    {"WhisperTokenizer", Pattern::gpt2, false}, {"Qwen2Tokenizer", Pattern::qwen2, true},
};

// How the class that a tokenizer_config.json names cuts text. No class: GPT-2's. `given`: --pattern.
void take_class(Tables& tables, const Json& config, const std::string& path, const std::string& given) {
  if (!given.empty()) tables.pattern = pattern_named(given);
  const Json* member = config.find("tokenizer_class");
  if (!member || member->kind != Json::Kind::string) return;
  std::string name = member->string.substr(0, member->string.rfind("Fast"));
  for (const KnownClass& known : kKnownClasses) {
    if (known.name != name) continue;
    if (!given.empty() && tables.pattern != known.pattern)
      fail("--pattern %s: %s is of a %s, which cuts as %s; leave the flag out", given.c_str(), path.c_str(),
           name.c_str(), name_of(known.pattern));
    tables.pattern = known.pattern, tables.nfc = known.nfc;
    return;
  }
  if (given.empty())
    fail(
        "%s is of a %s, and how that cuts text is not known: give its tokenizer.json, or name its pattern with "
        "--pattern",
        path.c_str(), visible(member->string).c_str());
}

// What the other files in the folder of a vocabulary say of it.
void take_config_beside(TokenizerReader& reader, const std::string& folder, const std::string& pattern) {
  std::string path = folder + "tokenizer_config.json", added_path = folder + "added_tokens.json";
  Json config = file_exists(path) ? read_beside_tokenizer(path) : Json::object();
  take_class(*reader.tables, config, path, pattern);
  if (const Json* space = config.find("add_prefix_space"); space && space->boolean)
    fail("%s: `add_prefix_space` is not supported", path.c_str());
  const Json* added = config.find("added_tokens_decoder");
  if (added && added->kind != Json::Kind::object) fail("%s: `added_tokens_decoder` should be an object", path.c_str());
  if (added)
    for (const auto& [id, token] : added->members) reader.add_added(token, whole_number(id, path), path);
  if (added || !file_exists(added_path)) return;
  for (const auto& [name, id] : read_beside_tokenizer(added_path).members)
    if (reader.find(name) < 0)
      fail("%s names `%s`, and no tokenizer_config.json says how it is found: give the tokenizer.json",
           added_path.c_str(), visible(name).c_str());
}

std::shared_ptr<const Tables> read_gpt2(const TokenizerFile& vocabulary, const TokenizerFile& merges,
                                        const std::string& pattern) {
  TokenizerReader reader(vocabulary.path);
  reader.tables->pattern = Pattern::gpt2;
  reader.add_named(vocabulary.json);
  take_config_beside(reader, folder_of(vocabulary.path), pattern);
  if (int end = reader.find("<|endoftext|>"); end >= 0 && !reader.is_added("<|endoftext|>"))
    reader.add_added({.text = "<|endoftext|>", .id = end, .special = true}, end);
  each_line(merges.bytes, merges.path, [&](std::string_view line, const std::string& where) {
    if (line.starts_with("#version")) return;
    auto [left, right] = two_words(line, where);
    reader.add_merge(left, right, where);
  });
  return reader.finish_named();
}

// The other of the two files, which lies beside this one under one of these names.
TokenizerFile look_beside(const std::string& path, TokenizerKind kind, const std::vector<const char*>& names) {
  std::string folder = folder_of(path);
  for (const char* name : names) {
    if (!file_exists(folder + name)) continue;
    TokenizerFile other = look_at_tokenizer(folder + name);
    if (other.kind != kind)
      fail("%s: %s lies beside it, which should be %s, but seems to be %s", path.c_str(), name, name_of(kind),
           name_of(other.kind));
    return other;
  }
  fail("%s: %s should lie beside it", path.c_str(), names[0]);
}

std::shared_ptr<const Tables> load_file(const std::string& path, const std::string& pattern,
                                        const std::string& end_token) {
  TokenizerFile file = look_at_tokenizer(path);
  if (file.kind == TokenizerKind::tokenizer_json) return read_tokenizer_json(file.json, path);
  if (file.kind == TokenizerKind::ranks) return read_ranks(file.bytes, path, pattern, end_token);
  if (file.kind == TokenizerKind::vocabulary)
    return read_gpt2(file, look_beside(path, TokenizerKind::merges, {"vocab.bpe", "merges.txt"}), pattern);
  if (file.kind == TokenizerKind::merges)
    return read_gpt2(look_beside(path, TokenizerKind::vocabulary, {"encoder.json", "vocab.json"}), file, pattern);
  refuse_tokenizer(file);
}

}  // namespace

Tokenizer Tokenizer::load(const std::string& path, const std::string& pattern, const std::string& end_token) {
  Tokenizer tokenizer;
  if (path == "bytes") return tokenizer;
  if (path.empty()) fail("the tokenizer's name is empty; give a file, a folder, or bytes");
  std::string file = path;
  if (folder_exists(path)) {
    for (const char* name : {"tokenizer.json", "vocab.bpe", "merges.txt"})
      if (file == path && file_exists(path + "/" + name)) file = path + "/" + name;
    if (file == path) fail("%s: no tokenizer is there (tokenizer.json, or vocab.bpe and encoder.json)", path.c_str());
  }
  tokenizer.tables_ = load_file(file, pattern, end_token);
  return tokenizer;
}
