// What a Tokenizer holds: the tokens' bytes, the merges, and how both are found.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "added_tokens.h"
#include "tokenizer.h"

// The bytes of each id; empty where an id stands for nothing.
class TokenBytes {
 public:
  int size() const { return int(starts_.size()) - 1; }
  std::string_view bytes(int id) const {
    return std::string_view(bytes_).substr(starts_[id], starts_[id + 1] - starts_[id]);
  }
  void append(std::string_view bytes) {
    bytes_ += bytes;
    starts_.push_back(bytes_.size());
  }

 private:
  std::string bytes_;
  std::vector<size_t> starts_ = {0};
};

// Two tokens that become one; of several that can, the lowest rank is first, and the leftmost of equal ones.
struct MergeRule {
  int left, right, rank, id;
};

uint64_t hash_bytes(std::string_view bytes);

// (left, right) → rank and id, by open addressing.
class PairTable {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Slot {
    uint64_t key = kNone;
    uint32_t rank = UINT32_MAX;
    int id = -1;
  };
  explicit PairTable(const std::vector<MergeRule>& rules = {});
  struct Found {
    uint32_t rank;  // UINT32_MAX: they do not merge
    int id;
  };
  Found find(int left, int right) const {
    const Slot& slot = slots_[place(key(left, right))];
    return {slot.rank, slot.id};
  }

 private:
  static uint64_t key(int left, int right) { return uint64_t(left) << 32 | uint32_t(right); }
  size_t place(uint64_t key) const {
    size_t at = (key ^ key >> 29) * 0x9e3779b97f4a7c15 >> shift_;
    while (slots_[at].key != key && slots_[at].key != kNone) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  std::vector<Slot> slots_;
  int shift_;
};

// Bytes → id. Refers to the vocabulary, which must outlive it and stay where it is.
class TokenTable {
 public:
  TokenTable() = default;
  explicit TokenTable(const TokenBytes&);
  bool insert(int id);  // false where a token of the same bytes is there
  int find(std::string_view bytes) const { return slots_.empty() ? -1 : slots_[place(bytes)]; }  // −1: none

 private:
  size_t place(std::string_view bytes) const;
  const TokenBytes* vocabulary_ = nullptr;
  std::vector<int> slots_;
  int shift_ = 60;
};

// How the vocabulary that merges work on has an id.
enum class Entry : uint8_t {
  none,   // not at all: the id is an added token's alone, or nothing's
  bytes,  // as these bytes, whose characters (byte_characters.h) are its name
  text,   // under a name that is no bytes' characters: no text's bytes merge into it
};

struct Tokenizer::Tables {
  Pattern pattern = Pattern::none;
  bool nfc = false;  // text is normalized before it is cut into pieces
  TokenBytes vocabulary;
  std::vector<Entry> entries;  // of ids; those beyond are none
  std::vector<MergeRule> rules;
  bool whole_first = false;  // a piece that is a token is that token, whatever its merges
  int byte_token[256];
  std::vector<AddedToken> added;

  // From these:
  void finish();
  PairTable pairs;
  TokenTable whole;
  std::vector<Special> specials;
  std::vector<uint8_t> special;        // an id
  AddedTokens as_written, normalized;  // the added tokens: those found in the text as it is, and the others
  int end_of_text = -1;                // −1: no special has a known name
  uint32_t checksum = 0;

  bool is_piece(std::string_view bytes) const { return piece_end(pattern, bytes, 0) == bytes.size(); }

  Tables() = default;
  Tables(const Tables&) = delete;
};
