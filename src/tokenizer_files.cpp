// Tokenizers as others write them: Hugging Face's tokenizer.json, tiktoken's ranks, GPT-2's encoder.json and vocab.bpe.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "error.h"
#include "files.h"
#include "json.h"
#include "program.h"
#include "tokenizer_tables.h"

namespace {

using Tables = Tokenizer::Tables;
constexpr int kMostIds = 1 << 24;

// --- Bytes as printable characters, as GPT-2 writes them: those that are printable stand for themselves, the others for
// U+0100 and on.

struct ByteCharacters {
  std::array<std::string, 256> of_byte;
  std::unordered_map<std::string, unsigned char> to_byte;
  ByteCharacters() {
    for (int byte = 0, others = 0; byte < 256; ++byte) {
      bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      int code = printable ? byte : 256 + others++;
      of_byte[byte] =
          code < 128 ? std::string(1, char(code)) : std::string{char(0xc0 | code >> 6), char(0x80 | (code & 0x3f))};
      to_byte[of_byte[byte]] = static_cast<unsigned char>(byte);
    }
  }
};

const ByteCharacters& byte_characters() {
  static const ByteCharacters map;
  return map;
}

std::string to_characters(std::string_view bytes) {
  std::string out;
  for (unsigned char byte : bytes) out += byte_characters().of_byte[byte];
  return out;
}

// The bytes that a token's characters stand for; a token with any other character is its own text, as in Hugging Face's
// decoder.
std::string from_characters(const std::string& token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    size_t length = static_cast<unsigned char>(token[at]) < 0x80 ? 1 : 2;
    auto found = byte_characters().to_byte.find(token.substr(at, length));
    if (found == byte_characters().to_byte.end()) return token;
    bytes += char(found->second);
    at += length;
  }
  return bytes;
}

// --- A vocabulary and its merges, whatever file they came from

// Tokens by id, checked: ids in range, none twice, no token twice.
class Ids {
 public:
  explicit Ids(const std::string& path) : path_(path) {}

  void add(int64_t id, std::string bytes, const std::string& where) {
    if (id < 0 || id >= kMostIds)
      fail("%s: the id of `%s` is out of range: ids are 0 … %d", where.c_str(), visible(bytes).c_str(), kMostIds - 1);
    if (bytes.empty()) fail("%s: the token of id %lld is empty", where.c_str(), (long long)id);
    auto [place, is_new] = by_id_.emplace(int(id), std::move(bytes));
    if (!is_new) fail("%s: the id %lld stands for two tokens", where.c_str(), (long long)id);
  }

  // An added token stands for its text, whatever its characters are elsewhere.
  void set(int id, const std::string& text) { by_id_[id] = text; }

  // Ids in between may be missing, as those of tiktoken's specials are; but a few tokens with one far away are no
  // vocabulary, and would take its memory.
  void fill(Tables* tables) const {
    constexpr size_t kMostMissing = 1 << 16;
    int last = by_id_.empty() ? -1 : by_id_.rbegin()->first;
    if (size_t(last) + 1 > 2 * by_id_.size() + kMostMissing)
      fail("%s: the id %d is too far away: there are only %zu tokens", path_.c_str(), last, by_id_.size());
    for (const auto& [id, bytes] : by_id_) {
      while (tables->vocabulary.size() < id) tables->vocabulary.append("");
      tables->vocabulary.append(bytes);
    }
  }

 private:
  std::string path_;
  std::map<int, std::string> by_id_;
};

// Where each token is found by its bytes; specials are not among them.
TokenTable table_of(const Tables& t, const std::string& path) {
  TokenTable table(t.vocabulary);
  std::vector<bool> apart(t.vocabulary.size());
  for (const auto* texts : {&t.specials, &t.added})
    for (const Tokenizer::Special& text : *texts) apart[text.id] = true;
  for (int id = 0; id < t.vocabulary.size(); ++id)
    if (!apart[id] && !t.vocabulary.bytes(id).empty() && !table.insert(id))
      fail("%s: the token of id %d is there twice", path.c_str(), id);
  return table;
}

void find_bytes(Tables* t, const TokenTable& table, const std::string& path) {
  for (int byte = 0; byte < 256; ++byte) {
    char c = char(byte);
    t->byte_token[byte] = table.find({&c, 1});
    if (t->byte_token[byte] < 0)
      fail("%s: no token for the byte 0x%02x: this is not a byte-level tokenizer", path.c_str(), byte);
  }
}

std::shared_ptr<const Tables> finished(std::shared_ptr<Tables> tables) {
  tables->finish();
  return tables;
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

std::shared_ptr<const Tables> read_ranks(const std::string& bytes, const std::string& path,
                                         const std::string& pattern) {
  auto tables = std::make_shared<Tables>();
  Ids ids(path);
  int count = 0, last = -1;
  each_line(bytes, path, [&](std::string_view line, const std::string& where) {
    size_t space = line.find(' ');
    if (space == line.npos)
      fail("%s: expected a token in base64, a space and its rank; %s is no tokenizer that Fullband knows",
           where.c_str(), path.c_str());
    std::string token = from_base64(line.substr(0, space), where);
    int64_t rank = -1;
    auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
    if (error != std::errc() || end != line.data() + line.size())
      fail("%s: the rank is no whole number", where.c_str());
    if (token.size() > kLongestRanked)
      fail("%s: a token of %zu bytes; at most %zu are possible", where.c_str(), token.size(), kLongestRanked);
    ids.add(rank, token, where);
    ++count, last = std::max(last, int(rank));
  });
  const KnownRanks* known = nullptr;
  for (const KnownRanks& k : known_ranks())
    if (k.ranks == count) known = &k;
  if (!known && pattern.empty())
    fail("%s holds %d ranks, and no known tokenizer has so many: name its pattern with --pattern", path.c_str(), count);
  tables->pattern = pattern.empty() ? known->pattern : pattern_named(pattern);
  tables->specials = known ? known->specials : std::vector<Tokenizer::Special>{{"<|endoftext|>", last + 1}};
  for (const Tokenizer::Special& s : tables->specials) ids.add(s.id, s.text, path);
  ids.fill(tables.get());
  TokenTable table = table_of(*tables, path);
  find_bytes(tables.get(), table, path);
  tables->rules = rules_of_ranks(*tables, table);
  tables->whole_first = true;
  return finished(tables);
}

// --- Merges of named tokens

// Adds the merge of two tokens by name; its rank is the number of those before it.
class MergeReader {
 public:
  MergeReader(Tables* tables, const TokenTable& table) : tables_(tables), table_(table) {}

  void add(const std::string& left, const std::string& right, const std::string& where) {
    int a = find(left, where), b = find(right, where);
    std::string both(tables_->vocabulary.bytes(a));
    both += tables_->vocabulary.bytes(b);
    int id = table_.find(both);
    if (id < 0) fail("%s: `%s` and `%s` merge into what is no token", where.c_str(), left.c_str(), right.c_str());
    if (!seen_.emplace(uint64_t(a) << 32 | uint32_t(b), 0).second)
      fail("%s: the merge of `%s` and `%s` is there twice", where.c_str(), left.c_str(), right.c_str());
    tables_->rules.push_back({a, b, int(tables_->rules.size()), id});
  }

 private:
  int find(const std::string& name, const std::string& where) const {
    int id = table_.find(from_characters(name));
    if (id < 0) fail("%s: the merged `%s` is no token", where.c_str(), name.c_str());
    return id;
  }
  Tables* tables_;
  const TokenTable& table_;
  std::unordered_map<uint64_t, int> seen_;
};

void add_named(Ids* ids, const Json& vocabulary, const std::string& path) {
  if (vocabulary.kind != Json::Kind::object) fail("%s: the vocabulary should be an object", path.c_str());
  for (const auto& [name, id] : vocabulary.members) {
    if (id.kind != Json::Kind::number || id.number != std::floor(id.number))
      fail("%s: the id of `%s` should be a whole number", path.c_str(), name.c_str());
    ids->add(int64_t(std::clamp(id.number, -1.0, double(kMostIds))), from_characters(name), path);
  }
}

// "a b" → a and b.
std::pair<std::string, std::string> two_words(std::string_view line, const std::string& where) {
  size_t space = line.find(' ');
  if (space == line.npos || space == 0 || space + 1 == line.size() || line.find(' ', space + 1) != line.npos)
    fail("%s: a merge should be two tokens with a space between them", where.c_str());
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

std::shared_ptr<const Tables> read_gpt2(const std::string& vocabulary_path, const std::string& merges_path) {
  auto tables = std::make_shared<Tables>();
  tables->pattern = Pattern::gpt2;
  Json vocabulary = parse_json(read_file(vocabulary_path), vocabulary_path);
  Ids ids(vocabulary_path);
  add_named(&ids, vocabulary, vocabulary_path);
  ids.fill(tables.get());
  if (const Json* end = vocabulary.find("<|endoftext|>"))
    tables->specials.push_back({"<|endoftext|>", int(end->number)});
  TokenTable table = table_of(*tables, vocabulary_path);
  find_bytes(tables.get(), table, vocabulary_path);
  MergeReader merges(tables.get(), table);
  each_line(read_file(merges_path), merges_path, [&](std::string_view line, const std::string& where) {
    if (line.starts_with("#version")) return;
    auto [left, right] = two_words(line, where);
    merges.add(left, right, where);
  });
  return finished(tables);
}

// --- tokenizer.json

bool is_null(const Json* json) { return !json || json->kind == Json::Kind::null; }

std::string type_of(const Json& json, const std::string& path) { return json.get_string("type", path); }

// Refuses a member that is there and is neither null nor false nor empty.
void refuse(const Json& object, const char* name, const std::string& where) {
  const Json* member = object.find(name);
  bool plain = is_null(member) || (member->kind == Json::Kind::boolean && !member->boolean) ||
               (member->kind == Json::Kind::string && member->string.empty());
  if (!plain) fail("%s: `%s` is not supported", where.c_str(), name);
}

// A ByteLevel pre-tokenizer: does it cut by GPT-2's pattern?
bool cuts_as_gpt2(const Json& step, const std::string& path) {
  refuse(step, "add_prefix_space", path + ": pre-tokenizer ByteLevel");
  const Json* cuts = step.find("use_regex");
  return !cuts || cuts->kind != Json::Kind::boolean || cuts->boolean;
}

Pattern pattern_of_split(const Json& step, const std::string& path) {
  std::string where = path + ": pre-tokenizer Split";
  std::string behavior = step.get_string("behavior", where);
  const Json* invert = step.find("invert");
  bool inverted = invert && invert->kind == Json::Kind::boolean && invert->boolean;
  // The patterns match all of a text, so that there is nothing between the matches to remove or to keep.
  if (!(behavior == "Isolated" && !inverted) && !(behavior == "Removed" && inverted))
    fail("%s: behavior `%s`%s is not supported", where.c_str(), behavior.c_str(), inverted ? ", inverted," : "");
  const Json* regex = step.get("pattern", where).find("Regex");
  Pattern pattern;
  if (!regex || regex->kind != Json::Kind::string) fail("%s: its pattern should be a Regex", where.c_str());
  if (!pattern_of_regex(regex->string, &pattern))
    fail("%s: unknown pattern `%s`", where.c_str(), regex->string.c_str());
  return pattern;
}

Pattern read_pre_tokenizer(const Json& root, const std::string& path) {
  const Json* pre = root.find("pre_tokenizer");
  if (is_null(pre)) fail("%s: no pre-tokenizer; a byte-level one is expected", path.c_str());
  std::vector<Json> steps = {*pre};
  if (type_of(*pre, path) == "Sequence") steps = pre->get("pretokenizers", path).items;
  bool byte_level = false;
  Pattern pattern = Pattern::none;
  for (const Json& step : steps) {
    std::string type = type_of(step, path);
    if (type != "ByteLevel" && type != "Split")
      fail("%s: pre-tokenizer `%s` is not supported", path.c_str(), type.c_str());
    if (byte_level) fail("%s: a pre-tokenizer after ByteLevel is not supported", path.c_str());
    Pattern cut = type == "Split" ? pattern_of_split(step, path) : Pattern::none;
    if (type == "ByteLevel") {
      byte_level = true;
      if (cuts_as_gpt2(step, path)) cut = Pattern::gpt2;
    }
    if (cut == Pattern::none) continue;
    if (pattern != Pattern::none) fail("%s: two patterns in a row are not supported", path.c_str());
    pattern = cut;
  }
  if (!byte_level) fail("%s: no ByteLevel pre-tokenizer: this is not a byte-level tokenizer", path.c_str());
  return pattern;
}

void read_added(Tables* tables, Ids* ids, const Json& root, const Json& vocabulary, const std::string& path) {
  const Json* added = root.find("added_tokens");
  if (is_null(added)) return;
  std::unordered_set<std::string> seen;
  for (const Json& token : added->items) {
    std::string content = token.get_string("content", path), where = path + ": added token `" + content + "`";
    int64_t id = token.get_int("id", path);
    for (const char* name : {"single_word", "lstrip", "rstrip"}) refuse(token, name, where);
    if (!seen.insert(content).second) fail("%s is there twice", where.c_str());
    const Json* in_vocabulary = vocabulary.find(content);
    if (in_vocabulary && in_vocabulary->number != double(id))
      fail("%s has the id %lld, but %g in the vocabulary", where.c_str(), (long long)id, in_vocabulary->number);
    if (!in_vocabulary) ids->add(id, content, where);
    ids->set(int(id), content);
    (token.get_bool("special", path) ? tables->specials : tables->added).push_back({content, int(id)});
  }
}

std::shared_ptr<const Tables> read_tokenizer_json(const Json& root, const std::string& path) {
  auto tables = std::make_shared<Tables>();
  if (const Json* normalizer = root.find("normalizer"); !is_null(normalizer))
    fail("%s: normalizer `%s` is not supported", path.c_str(), type_of(*normalizer, path).c_str());
  const Json& model = root.get("model", path);
  const Json* type = model.find("type");
  if (type && !(type->kind == Json::Kind::string && type->string == "BPE"))
    fail("%s: model `%s` is not supported: it should be BPE", path.c_str(), type->string.c_str());
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"})
    refuse(model, name, path + ": model");
  tables->pattern = read_pre_tokenizer(root, path);
  if (const Json* whole = model.find("ignore_merges")) tables->whole_first = whole->boolean;

  Ids ids(path);
  add_named(&ids, model.get("vocab", path), path);
  read_added(tables.get(), &ids, root, model.get("vocab", path), path);
  ids.fill(tables.get());
  TokenTable table = table_of(*tables, path);
  find_bytes(tables.get(), table, path);
  MergeReader merges(tables.get(), table);
  size_t number = 0;
  for (const Json& merge : model.get("merges", path).items) {
    std::string where = path + ": merge " + std::to_string(++number);
    if (merge.kind == Json::Kind::string) {
      auto [left, right] = two_words(merge.string, where);
      merges.add(left, right, where);
    } else if (merge.items.size() == 2 && merge.items[0].kind == Json::Kind::string &&
               merge.items[1].kind == Json::Kind::string) {
      merges.add(merge.items[0].string, merge.items[1].string, where);
    } else {
      fail("%s should be two tokens", where.c_str());
    }
  }
  return finished(tables);
}

Json byte_level(bool cuts) {
  return Json::object(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", cuts}});
}

Json pre_tokenizer_json(Pattern pattern) {
  if (pattern == Pattern::none || pattern == Pattern::gpt2) return byte_level(pattern == Pattern::gpt2);
  Json split = Json::object({{"type", "Split"},
                             {"pattern", Json::object({{"Regex", regex_of(pattern)}})},
                             {"behavior", "Isolated"},
                             {"invert", false}});
  return Json::object({{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level(false)})}});
}

// The other of the two files that GPT-2's tokenizer is.
std::string beside(const std::string& path, const std::vector<const char*>& names) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  for (const char* name : names)
    if (file_exists(folder + name)) return folder + name;
  fail("%s: %s should lie beside it", path.c_str(), names[0]);
}

std::shared_ptr<const Tables> load_file(const std::string& path, const std::string& pattern) {
  constexpr const char *merges[] = {"vocab.bpe", "merges.txt"}, *vocabularies[] = {"encoder.json", "vocab.json"};
  std::string bytes = read_file(path);
  size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == bytes.npos) fail("%s is empty: there is no tokenizer in it", path.c_str());
  if (bytes[first] == '{') {
    Json root = parse_json(bytes, path);
    if (root.find("model")) return read_tokenizer_json(root, path);
    return read_gpt2(path, beside(path, {std::begin(merges), std::end(merges)}));
  }
  if (bytes.starts_with("#version"))
    return read_gpt2(beside(path, {std::begin(vocabularies), std::end(vocabularies)}), path);
  return read_ranks(bytes, path, pattern);
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

std::string Tokenizer::to_json() const {
  const Tables& t = *tables_;
  Json added = Json::array(), vocabulary = Json::object(), merges = Json::array();
  std::vector<bool> apart(vocab());
  for (const auto* texts : {&t.specials, &t.added})
    for (const Special& s : *texts) {
      apart[s.id] = true;
      added.items.push_back(Json::object({{"id", s.id},
                                          {"content", s.text},
                                          {"single_word", false},
                                          {"lstrip", false},
                                          {"rstrip", false},
                                          {"normalized", false},
                                          {"special", texts == &t.specials}}));
    }
  for (int id = 0; id < vocab(); ++id)
    if (!apart[id] && !bytes_of(id).empty()) vocabulary.members.emplace_back(to_characters(bytes_of(id)), id);
  for (const MergeRule& rule : t.rules)
    merges.items.push_back(Json::array({to_characters(bytes_of(rule.left)), to_characters(bytes_of(rule.right))}));
  return write_json(Json::object({{"version", "1.0"},
                                  {"truncation", Json()},
                                  {"padding", Json()},
                                  {"added_tokens", added},
                                  {"normalizer", Json()},
                                  {"pre_tokenizer", pre_tokenizer_json(t.pattern)},
                                  {"post_processor", Json()},
                                  {"decoder", byte_level(true)},
                                  {"model", Json::object({{"type", "BPE"},
                                                          {"dropout", Json()},
                                                          {"unk_token", Json()},
                                                          {"continuing_subword_prefix", Json()},
                                                          {"end_of_word_suffix", Json()},
                                                          {"fuse_unk", false},
                                                          {"byte_fallback", false},
                                                          {"ignore_merges", t.whole_first},
                                                          {"vocab", vocabulary},
                                                          {"merges", merges}})}}));
}
