// Tokenizers as others write them: tiktoken's ranks, and GPT-2's encoder.json and vocab.bpe. Tokenizer::load is the one
// door for all of them.
#include <algorithm>
#include <charconv>

#include "error.h"
#include "files.h"
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

struct KnownRanks {
  const char* name;
  int ranks;
  Pattern pattern;
  std::vector<Tokenizer::Special> specials;
};

const std::vector<KnownRanks>& known_ranks() {
  static const std::vector<KnownRanks> known = {
      {"r50k_base", 50256, Pattern::gpt2, {{"<|endoftext|>", 50256}}},
      {"p50k_base", 50280, Pattern::gpt2, {{"<|endoftext|>", 50256}}},
      {"cl100k_base",
       100256,
       Pattern::cl100k,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {"o200k_base", 199998, Pattern::o200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
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

TokenTable table_of(const Tables& t, const std::string& path) {
  TokenTable table(t.vocabulary);
  for (int id = 0; id < t.vocabulary.size(); ++id)
    if (t.entries[id] == Entry::bytes && !table.insert(id))
      fail("%s: the token of id %d is there twice", path.c_str(), id);
  return table;
}

std::shared_ptr<const Tables> read_ranks(const std::string& bytes, const std::string& path,
                                         const std::string& pattern) {
  TokenizerReader reader(path);
  Tables& tables = *reader.tables;
  int count = 0, last = -1, end_of_text = -1;
  each_line(bytes, path, [&](std::string_view line, const std::string& where) {
    size_t space = line.find(' ');
    if (space == line.npos) fail("%s: expected a token in base64, a space and its rank", where.c_str());
    std::string token = from_base64(line.substr(0, space), where);
    int64_t rank = -1;
    auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
    if (error != std::errc() || end != line.data() + line.size())
      fail("%s: the rank is no whole number", where.c_str());
    if (token.size() > kLongestRanked)
      fail("%s: a token of %zu bytes; at most %zu are possible", where.c_str(), token.size(), kLongestRanked);
    reader.add_bytes(rank, token, where);
    if (token == "<|endoftext|>") end_of_text = int(rank);
    ++count, last = std::max(last, int(rank));
  });
  const KnownRanks* known = nullptr;
  for (const KnownRanks& k : known_ranks())
    if (k.ranks == count) known = &k;
  if (!known && pattern.empty())
    fail("%s holds %d ranks, and no known tokenizer has so many: name its pattern with --pattern", path.c_str(), count);
  tables.pattern = pattern.empty() ? known->pattern : pattern_named(pattern);
  if (end_of_text < 0) end_of_text = last + 1;
  using Specials = std::vector<Tokenizer::Special>;
  for (const Tokenizer::Special& s : known ? known->specials : Specials{{"<|endoftext|>", end_of_text}})
    reader.add_added({.text = s.text, .id = s.id, .special = true}, s.id);
  reader.fill_vocabulary();
  TokenTable table = table_of(tables, path);
  reader.find_bytes([&](std::string_view byte) { return table.find(byte); });
  tables.rules = rules_of_ranks(tables, table);
  tables.whole_first = true;
  tables.finish();
  return reader.tables;
}

// --- GPT-2's two files

std::shared_ptr<const Tables> read_gpt2(const TokenizerFile& vocabulary, const TokenizerFile& merges,
                                        const std::string& pattern) {
  TokenizerReader reader(vocabulary.path);
  reader.tables->pattern = pattern.empty() ? Pattern::gpt2 : pattern_named(pattern);
  reader.add_named(vocabulary.json);
  if (int end = reader.find("<|endoftext|>"); end >= 0)
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
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
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

std::shared_ptr<const Tables> load_file(const std::string& path, const std::string& pattern) {
  TokenizerFile file = look_at_tokenizer(path);
  if (file.kind == TokenizerKind::tokenizer_json) return read_tokenizer_json(file.json, path);
  if (file.kind == TokenizerKind::ranks) return read_ranks(file.bytes, path, pattern);
  if (file.kind == TokenizerKind::vocabulary)
    return read_gpt2(file, look_beside(path, TokenizerKind::merges, {"vocab.bpe", "merges.txt"}), pattern);
  if (file.kind == TokenizerKind::merges)
    return read_gpt2(look_beside(path, TokenizerKind::vocabulary, {"encoder.json", "vocab.json"}), file, pattern);
  refuse_tokenizer(file);
}

}  // namespace

Tokenizer Tokenizer::load(const std::string& path, const std::string& pattern) {
  Tokenizer tokenizer;
  if (path == "bytes") return tokenizer;
  if (path.empty()) fail("the tokenizer's name is empty; give a file, a folder, or bytes");
  std::string file = path;
  if (folder_exists(path)) {
    for (const char* name : {"tokenizer.json", "vocab.bpe", "merges.txt"})
      if (file == path && file_exists(path + "/" + name)) file = path + "/" + name;
    if (file == path) fail("%s: no tokenizer is there (tokenizer.json, or vocab.bpe and encoder.json)", path.c_str());
  }
  tokenizer.tables_ = load_file(file, pattern);
  return tokenizer;
}
