#include "tokenizer_reader.h"

#include <algorithm>
#include <cmath>

#include "byte_characters.h"
#include "error.h"
#include "nfc.h"
#include "program.h"

static constexpr int kMostIds = 1 << 24;

void TokenizerReader::add(int64_t id, Token token, const std::string& where) {
  if (id < 0 || id >= kMostIds)
    fail("%s: the id of `%s` is out of range: ids are 0 … %d", where.c_str(), visible(token.bytes).c_str(),
         kMostIds - 1);
  if (token.bytes.empty()) fail("%s: the token of id %lld is empty", where.c_str(), (long long)id);
  if (!by_id_.emplace(int(id), std::move(token)).second)
    fail("%s: the id %lld stands for two tokens", where.c_str(), (long long)id);
}

std::string TokenizerReader::name_of(const Token& token) {
  return token.entry == Entry::bytes ? to_characters(token.bytes) : token.bytes;
}

void TokenizerReader::add_bytes(int64_t id, std::string bytes, const std::string& where) {
  add(id, {std::move(bytes), Entry::bytes}, where);
}

void TokenizerReader::add_named(const Json& vocabulary) {
  if (vocabulary.kind != Json::Kind::object) fail("%s: the vocabulary should be an object", path_.c_str());
  by_name_.reserve(vocabulary.members.size());
  for (const auto& [name, id] : vocabulary.members) {
    if (id.kind != Json::Kind::number || id.number != std::floor(id.number))
      fail("%s: the id of `%s` should be a whole number", path_.c_str(), visible(name).c_str());
    std::optional<std::string> bytes = from_characters(name);
    Token token = bytes ? Token{*bytes, Entry::bytes} : Token{name, Entry::text};
    add(int64_t(std::clamp(id.number, -1.0, double(kMostIds))), std::move(token), path_);
    by_name_.emplace(name, int(id.number));
  }
}

int TokenizerReader::find(const std::string& name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

int TokenizerReader::merged(const std::string& name, const std::string& where) const {
  int id = find(name);
  if (id < 0) fail("%s: the merged `%s` is no token", where.c_str(), visible(name).c_str());
  return id;
}

void TokenizerReader::add_merge(const std::string& left, const std::string& right, const std::string& where) {
  int a = merged(left, where), b = merged(right, where), both = find(left + right);
  if (both < 0)
    fail("%s: `%s` and `%s` merge into what is no token", where.c_str(), visible(left).c_str(), visible(right).c_str());
  if (!merges_.insert(uint64_t(a) << 32 | uint32_t(b)).second)
    fail("%s: the merge of `%s` and `%s` is there twice", where.c_str(), visible(left).c_str(), visible(right).c_str());
  tables->rules.push_back({a, b, int(tables->rules.size()), both});
}

void TokenizerReader::add_added(const AddedToken& token, int64_t id) {
  std::string where = path_ + ": added token `" + visible(token.text) + "`";
  if (!added_.insert(token.text).second) fail("%s is there twice", where.c_str());
  if (int named = find(token.text); named >= 0 && named != id)
    fail("%s has the id %lld, but %d in the vocabulary", where.c_str(), (long long)id, named);
  auto there = id >= 0 && id < kMostIds ? by_id_.find(int(id)) : by_id_.end();
  bool in_vocabulary = there != by_id_.end() && name_of(there->second) == token.text;
  if (!in_vocabulary) add(id, {token.text, Entry::none}, where);
  tables->added.push_back(token);
  tables->added.back().id = int(id);
}

// A flag that is not there is off.
void TokenizerReader::add_added(const Json& json, int64_t id, const std::string& where) {
  auto flag = [&](const char* name) { return json.find(name) && json.get_bool(name, where); };
  AddedToken token = {.text = json.get_string("content", where), .id = 0};
  token.special = json.get_bool("special", where);
  token.normalized = flag("normalized"), token.single_word = flag("single_word");
  token.lstrip = flag("lstrip"), token.rstrip = flag("rstrip");
  if (!token.text.empty()) add_added(token, id);
}

void TokenizerReader::fill_vocabulary() {
  constexpr size_t kMostMissing = 1 << 16;
  int last = by_id_.empty() ? -1 : by_id_.rbegin()->first;
  if (size_t(last) + 1 > 2 * by_id_.size() + kMostMissing)
    fail("%s: the id %d is too far away: there are only %zu tokens", path_.c_str(), last, by_id_.size());
  for (const auto& [id, token] : by_id_) {
    while (tables->vocabulary.size() < id) tables->vocabulary.append("");
    tables->vocabulary.append(token.bytes);
    tables->entries.resize(id, Entry::none);
    tables->entries.push_back(token.entry);
  }
}

// One that was trained on a text alone lacks the bytes that are not in it.
void TokenizerReader::require_bytes(const std::string& lacking) const {
  if (lacking.empty()) return;
  fail(
      "%s: %s no token, the first is 0x%02x, and a text that holds it could not be encoded; train it with all of them "
      "(in Hugging Face's library initial_alphabet=ByteLevel.alphabet())",
      path_.c_str(),
      lacking.size() == 1 ? "one of the 256 bytes has" : text("%zu of the 256 bytes have", lacking.size()).c_str(),
      static_cast<unsigned char>(lacking[0]));
}

// Can a text's bytes become this token?
static bool is_reached(const Tokenizer::Tables& t, int id) {
  return t.whole_first || std::find(t.byte_token, t.byte_token + 256, id) != t.byte_token + 256 ||
         std::any_of(t.rules.begin(), t.rules.end(), [&](const MergeRule& rule) { return rule.id == id; });
}

// An added token stands for its text, normalized where that is looked for. But the text may be the name of other bytes,
// as `Ġthe` is that of " the": then it stands for these if a text's bytes can become it.
void TokenizerReader::settle_added_bytes() {
  std::unordered_set<std::string> normalized;
  for (const AddedToken& added : tables->added) {
    Token& token = by_id_.at(added.id);
    std::string text = added.normalized && tables->nfc ? nfc(added.text) : added.text;
    if (added.normalized && !normalized.insert(text).second)
      fail("%s: added token `%s` is there twice once it is normalized", path_.c_str(), visible(added.text).c_str());
    if (token.bytes == text || (token.entry == Entry::bytes && is_reached(*tables, added.id))) continue;
    token = {text, token.entry == Entry::none ? Entry::none : Entry::text};
  }
}

std::shared_ptr<const Tokenizer::Tables> TokenizerReader::finish_named() {
  find_bytes([&](std::string_view byte) { return find(to_characters(byte)); });
  settle_added_bytes();
  fill_vocabulary();
  tables->finish();
  return tables;
}

std::pair<std::string, std::string> two_words(std::string_view line, const std::string& where) {
  size_t space = line.find(' ');
  if (space == line.npos || space == 0 || space + 1 == line.size() || line.find(' ', space + 1) != line.npos)
    fail("%s: a merge should be two tokens with a space between them", where.c_str());
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}
