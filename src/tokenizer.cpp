// Byte pairs merged by rank. Most pieces of a text have been seen before, so an encoder remembers how the short ones came
// out; the rest of the time goes into looking up pairs.
#include "tokenizer.h"

#include <algorithm>
#include <cstring>

#include "error.h"
#include "files.h"
#include "nfc.h"
#include "tokenizer_tables.h"
#include "utf8.h"

// --- Tables

PairTable::PairTable(const std::vector<MergeRule>& rules) {
  int bits = 4;
  while ((size_t(1) << bits) < 2 * rules.size()) ++bits;
  slots_.resize(size_t(1) << bits);
  shift_ = 64 - bits;
  for (const MergeRule& rule : rules) {
    Slot& slot = slots_[place(key(rule.left, rule.right))];
    if (slot.key == kNone) slot = {key(rule.left, rule.right), uint32_t(rule.rank), rule.id};
  }
}

TokenTable::TokenTable(const TokenBytes& vocabulary) : vocabulary_(&vocabulary) {
  int bits = 4;
  while ((size_t(1) << bits) < 2 * size_t(vocabulary.size())) ++bits;
  slots_.assign(size_t(1) << bits, -1);
  shift_ = 64 - bits;
}

size_t TokenTable::place(std::string_view bytes) const {
  size_t at = hash_bytes(bytes) >> shift_;
  while (slots_[at] >= 0 && vocabulary_->bytes(slots_[at]) != bytes) at = (at + 1) & (slots_.size() - 1);
  return at;
}

bool TokenTable::insert(int id) {
  int& slot = slots_[place(vocabulary_->bytes(id))];
  if (slot >= 0) return false;
  slot = id;
  return true;
}

uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t hash = bytes.size() * kOdd;
  auto mix = [&](uint64_t word) { hash = (hash ^ word) * kOdd, hash ^= hash >> 29; };
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  mix(rest);
  return hash * kOdd;
}

// Whether the flag `normalized` tells tokens apart: else they are found all at once.
static bool has_two_steps(const Tokenizer::Tables& t) {
  auto is_normalized = [](const AddedToken& token) { return token.normalized; };
  bool mixed = std::any_of(t.added.begin(), t.added.end(), is_normalized) &&
               !std::all_of(t.added.begin(), t.added.end(), is_normalized);
  return t.nfc || mixed;
}

// What there is to an added token beyond its id and its bytes: nothing for a special one without flags.
static uint32_t checksum_of_added(const Tokenizer::Tables& t, const AddedToken& token, uint32_t crc) {
  bool whole = t.whole_first && t.entries[token.id] == Entry::bytes && t.is_piece(t.vocabulary.bytes(token.id));
  const bool flags[] = {token.normalized && has_two_steps(t), token.lstrip, token.rstrip, token.single_word, whole};
  bool flagged = std::find(std::begin(flags), std::end(flags), true) != std::end(flags);
  if (token.special && !flagged && token.text == t.vocabulary.bytes(token.id)) return crc;
  crc = crc32c(crc, &token.id, sizeof token.id);
  crc = crc32c(crc, token.text.data(), token.text.size());
  crc = crc32c(crc, &token.special, sizeof token.special);
  return crc32c(crc, flags, sizeof flags);
}

static uint32_t checksum_of(const Tokenizer::Tables& t) {
  uint32_t crc = crc32c(0, &t.pattern, sizeof t.pattern);
  for (int id = 0; id < t.vocabulary.size(); ++id) {
    std::string_view bytes = t.vocabulary.bytes(id);
    uint64_t size = bytes.size();
    crc = crc32c(crc32c(crc, &size, sizeof size), bytes.data(), bytes.size());
  }
  for (size_t i = 0; i < t.rules.size(); ++i) {  // their order, whatever their ranks are called
    MergeRule rule = t.rules[i];
    rule.rank = int(i);
    crc = crc32c(crc, &rule, sizeof rule);
  }
  for (const Tokenizer::Special& special : t.specials) crc = crc32c(crc, &special.id, sizeof special.id);
  crc = crc32c(crc, &t.whole_first, sizeof t.whole_first);
  // What few tokenizers have adds to the checksum of those alone.
  std::vector<bool> is_added(t.vocabulary.size());
  for (const AddedToken& token : t.added) {
    is_added[token.id] = true;
    crc = checksum_of_added(t, token, crc);
  }
  for (int id = 0; id < t.vocabulary.size(); ++id)
    if (t.entries[id] == Entry::text && !is_added[id]) crc = crc32c(crc, &id, sizeof id);
  return t.nfc ? crc32c(crc, "NFC", 3) : crc;
}

// The name that a document's end has, in order of preference; −1: none, and no other is guessed to be it.
static int find_end_of_text(const std::vector<Tokenizer::Special>& specials) {
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<|im_end|>"})
    for (const Tokenizer::Special& special : specials)
      if (special.text == name) return special.id;
  return -1;
}

void Tokenizer::Tables::finish() {
  std::sort(rules.begin(), rules.end(), [](const MergeRule& a, const MergeRule& b) {
    return std::tie(a.rank, a.left, a.right) < std::tie(b.rank, b.left, b.right);
  });
  pairs = PairTable(rules);
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  entries.resize(vocabulary.size(), Entry::none);
  special.assign(vocabulary.size(), 0);
  std::vector<AddedToken> first, second;
  for (const AddedToken& token : added) {
    if (token.special) special[token.id] = 1, specials.push_back({token.text, token.id});
    (token.normalized ? second : first).push_back(token);
    if (token.normalized && nfc) second.back().text = ::nfc(token.text);
  }
  as_written = AddedTokens(std::move(first)), normalized = AddedTokens(std::move(second));
  end_of_text = find_end_of_text(specials);
  whole = TokenTable(vocabulary);
  if (whole_first)
    for (int id = 0; id < vocabulary.size(); ++id)
      if (entries[id] == Entry::bytes) whole.insert(id);
  checksum = checksum_of(*this);
}

Tokenizer::Tokenizer() : Tokenizer(Pattern::none, {}, {"<|endoftext|>"}) {}

Tokenizer::Tokenizer(Pattern pattern, const std::vector<Merge>& merges, const std::vector<std::string>& specials) {
  auto tables = std::make_shared<Tables>();
  tables->pattern = pattern;
  for (int byte = 0; byte < 256; ++byte) {
    tables->byte_token[byte] = byte;
    tables->vocabulary.append(std::string(1, char(byte)));
  }
  for (const Merge& merge : merges) {
    int id = tables->vocabulary.size();
    check(merge.left >= 0 && merge.left < id && merge.right >= 0 && merge.right < id, "merge of %d and %d into %d",
          merge.left, merge.right, id);
    std::string left(tables->vocabulary.bytes(merge.left));
    tables->vocabulary.append(left + std::string(tables->vocabulary.bytes(merge.right)));
    tables->rules.push_back({merge.left, merge.right, id - 256, id});
  }
  tables->entries.assign(tables->vocabulary.size(), Entry::bytes);
  for (const std::string& text : specials) {
    tables->added.push_back({.text = text, .id = tables->vocabulary.size(), .special = true});
    tables->vocabulary.append(text);
  }
  tables->finish();
  tables_ = tables;
}

Tokenizer Tokenizer::ids_only(int vocab, int end_of_text) {
  auto tables = std::make_shared<Tables>();
  for (int id = 0; id < vocab; ++id) tables->vocabulary.append(text("<%d>", id));
  std::fill_n(tables->byte_token, 256, -1);
  tables->added = {{.text = text("<%d>", end_of_text), .id = end_of_text, .special = true}};
  tables->finish();
  Tokenizer tokenizer;
  tokenizer.tables_ = tables, tokenizer.end_of_text_ = end_of_text;
  return tokenizer;
}

bool Tokenizer::reads_text() const { return tables_->byte_token[0] >= 0; }

int Tokenizer::vocab() const { return tables_->vocabulary.size(); }
int Tokenizer::end_of_text() const { return end_of_text_.value_or(tables_->end_of_text); }
Tokenizer Tokenizer::ending_with(int token) const {
  Tokenizer other = *this;
  other.end_of_text_ = token;
  return other;
}
Pattern Tokenizer::pattern() const { return tables_->pattern; }
const std::vector<Tokenizer::Special>& Tokenizer::specials() const { return tables_->specials; }
uint32_t Tokenizer::checksum() const { return tables_->checksum; }

std::string_view Tokenizer::bytes_of(int token) const {
  return token >= 0 && token < vocab() ? tables_->vocabulary.bytes(token) : std::string_view();
}

bool Tokenizer::is_special(int token) const { return token >= 0 && token < vocab() && tables_->special[token]; }

std::string Tokenizer::decode(const std::vector<int>& tokens) const {
  std::string text;
  for (int token : tokens)
    if (!is_special(token)) text += bytes_of(token);
  return text;
}

std::vector<int> Tokenizer::encode(std::string_view text, bool specials_allowed) const {
  std::vector<int> tokens;
  Encoder(*this).encode(text, &tokens, specials_allowed);
  return tokens;
}

// --- Encoding

namespace {

constexpr size_t kShort = 96;            // up to here looking through all pairs is faster than keeping them in a heap
constexpr size_t kLongest = 1 << 26;     // a longer piece is encoded in parts: merging takes 40 bytes of memory a byte
constexpr uint32_t kNever = UINT32_MAX;  // the rank of a pair that does not merge

// Merges the symbols of a short piece in place; returns how many are left.
size_t merge_short(const PairTable& pairs, int* symbols, size_t count) {
  uint32_t ranks[kShort];  // of symbol i with the next
  auto rank = [&](size_t i) { return i + 1 < count ? pairs.find(symbols[i], symbols[i + 1]).rank : kNever; };
  for (size_t i = 0; i < count; ++i) ranks[i] = rank(i);
  for (;;) {
    size_t best = 0;
    for (size_t i = 1; i < count; ++i)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == kNever) return count;
    symbols[best] = pairs.find(symbols[best], symbols[best + 1]).id;
    --count;
    std::copy(symbols + best + 2, symbols + count + 1, symbols + best + 1);
    std::copy(ranks + best + 2, ranks + count + 1, ranks + best + 1);
    ranks[best] = rank(best);
    if (best > 0) ranks[best - 1] = rank(best - 1);
  }
}

// The same for a piece of any length: symbols in a list, pairs in a heap by rank, the leftmost first. An entry whose
// pair is no longer there is known by its rank.
size_t merge_long(const PairTable& pairs, int* symbols, size_t count) {
  constexpr uint32_t kEnd = UINT32_MAX;
  std::vector<uint32_t> next(count), before(count);
  std::vector<uint64_t> heap;  // rank, position
  for (size_t i = 0; i < count; ++i) next[i] = i + 1 < count ? uint32_t(i + 1) : kEnd, before[i] = uint32_t(i - 1);
  auto later = std::greater<>();
  auto entry = [&](uint32_t i) {
    uint32_t rank = next[i] == kEnd ? kNever : pairs.find(symbols[i], symbols[next[i]]).rank;
    return uint64_t(rank) << 32 | i;
  };
  for (uint32_t i = 0; i + 1 < count; ++i)
    if (uint64_t e = entry(i); e >> 32 != kNever) heap.push_back(e);
  std::make_heap(heap.begin(), heap.end(), later);
  auto push = [&](uint32_t i) {
    uint64_t e = entry(i);
    if (e >> 32 == kNever) return;
    heap.push_back(e);
    std::push_heap(heap.begin(), heap.end(), later);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    uint64_t e = heap.back();
    uint32_t i = uint32_t(e);
    heap.pop_back();
    if (symbols[i] < 0 || entry(i) != e) continue;
    uint32_t gone = next[i];
    symbols[i] = pairs.find(symbols[i], symbols[gone]).id;
    symbols[gone] = -1;
    next[i] = next[gone];
    if (next[i] != kEnd) before[next[i]] = i;
    push(i);
    if (before[i] != kEnd) push(before[i]);
  }
  return size_t(std::remove(symbols, symbols + count, -1) - symbols);
}

void append_piece(const Tokenizer::Tables& t, std::string_view piece, std::vector<int>* tokens) {
  for (; piece.size() > kLongest; piece.remove_prefix(character_border(piece, kLongest)))
    append_piece(t, piece.substr(0, character_border(piece, kLongest)), tokens);
  if (t.whole_first)
    if (int id = t.whole.find(piece); id >= 0) return tokens->push_back(id);
  size_t first = tokens->size();
  for (unsigned char byte : piece) tokens->push_back(t.byte_token[byte]);
  if (piece.size() < 2) return;
  auto merge = piece.size() <= kShort ? merge_short : merge_long;
  tokens->resize(first + merge(t.pairs, tokens->data() + first, piece.size()));
}

// A short piece as a key: its bytes, zeros, and its length in the last byte.
struct Key {
  uint64_t low, high;
};
constexpr size_t kKeyBytes = 15;

Key key_of(std::string_view text, size_t at, size_t length) {
  Key key = {0, 0};
  if (at + 16 <= text.size())
    std::memcpy(&key, text.data() + at, 16);
  else
    std::memcpy(&key, text.data() + at, length);
  key.low &= length >= 8 ? ~uint64_t(0) : (uint64_t(1) << 8 * length) - 1;
  key.high &= length <= 8 ? 0 : (uint64_t(1) << 8 * (length - 8)) - 1;
  key.high |= uint64_t(length) << 56;
  return key;
}

}  // namespace

// How short pieces were encoded, by their hash: two to a cache line, the newer one first. The number of tokens stands
// beside the length.
struct Encoder::Memory {
  static constexpr int kBits = 15, kTokens = 4, kCountAt = 60;
  struct Entry {
    uint64_t low = 0, high = 0;
    int tokens[kTokens];
    bool holds(const Key& key) const {
      constexpr uint64_t count = uint64_t(15) << kCountAt;
      return low == key.low && (high & ~count) == key.high;
    }
    int count() const { return int(high >> kCountAt); }
  };
  struct alignas(64) Line {
    Entry entries[2];
  };
  std::vector<Line> lines = std::vector<Line>(size_t(1) << kBits);

  Line& line_of(const Key& key) {
    uint64_t hash = (key.low ^ (key.high * 0xc2b2ae3d27d4eb4f)) * 0x9e3779b97f4a7c15;
    return lines[(hash ^ hash >> 32) * 0x9e3779b97f4a7c15 >> (64 - kBits)];
  }
  static const Entry* find(const Line& line, const Key& key) {
    for (const Entry& entry : line.entries)
      if (entry.holds(key)) return &entry;
    return nullptr;
  }
  static void keep(Line& line, const Key& key, const int* tokens, size_t count) {
    if (count > kTokens) return;
    line.entries[1] = line.entries[0];
    Entry& entry = line.entries[0];
    entry.low = key.low, entry.high = key.high | uint64_t(count) << kCountAt;
    std::copy_n(tokens, count, entry.tokens);
  }
};

Encoder::Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
Encoder::~Encoder() = default;

void Encoder::encode(std::string_view text, std::vector<int>* tokens, bool specials_allowed) {
  const Tokenizer::Tables& t = *tokenizer_.tables_;
  if (!tokenizer_.reads_text())
    fail("nothing is known of these tokens but their ids: name their tokenizer with --tokenizer");
  auto found = [&](const AddedToken& token) { tokens->push_back(token.id); };
  auto plain = [&](std::string_view part) { encode_plain(part, tokens); };
  auto divide = [&](std::string_view part) { t.normalized.divide(part, specials_allowed, plain, found); };
  auto normalize = [&](std::string_view part) {
    if (!t.nfc || !needs_nfc(part)) return divide(part);
    divide(nfc(part));
  };
  t.as_written.divide(text, specials_allowed, normalize, found);
}

void Encoder::encode_plain(std::string_view text, std::vector<int>* tokens) {
  const Tokenizer::Tables& t = *tokenizer_.tables_;
  if (t.rules.empty() && !t.whole_first) {  // bytes
    for (unsigned char byte : text) tokens->push_back(t.byte_token[byte]);
    return;
  }
  if (!memory_ && text.size() > 256) memory_ = std::make_unique<Memory>();
  PieceEnd piece_end = piece_end_of(t.pattern);
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = piece_end(text, at);
    size_t length = end - at;
    if (length == 1) {
      tokens->push_back(t.byte_token[static_cast<unsigned char>(text[at])]);
      continue;
    }
    if (!memory_ || length > kKeyBytes) {
      append_piece(t, text.substr(at, length), tokens);
      continue;
    }
    Key key = key_of(text, at, length);
    Memory::Line& line = memory_->line_of(key);
    size_t first = tokens->size();
    if (const Memory::Entry* known = Memory::find(line, key)) {
      tokens->resize(first + Memory::kTokens);
      std::memcpy(tokens->data() + first, known->tokens, sizeof known->tokens);
      tokens->resize(first + known->count());
      continue;
    }
    append_piece(t, text.substr(at, length), tokens);
    Memory::keep(line, key, tokens->data() + first, tokens->size() - first);
  }
}
