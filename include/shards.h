// Token files as llm.c has them. A header of 256 little-endian int32: magic, version, number of tokens, zeros; then the
// tokens: uint16 (magic 20240520, version 1) or uint32 (20240801, 7). A document is an end-of-text token and then its
// own, up to the next end-of-text; a file may begin or end within a document.
//
// A mask, where there is one, lies beside NAME.bin as NAME.mask: a byte a token, 1 where it may be a target, else 0.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

// Tokens of 16 or 32 bits that lie in memory or in a mapped file, and which of them may be targets. A copy costs
// nothing. A mapped file must keep its size for as long: the system kills a process that reads where a file was cut off.
class Tokens {
 public:
  Tokens() = default;
  // In memory; an empty mask lets every token be a target.
  explicit Tokens(std::vector<uint16_t> tokens, std::vector<uint8_t> mask = {});
  explicit Tokens(std::vector<uint32_t> tokens, std::vector<uint8_t> mask = {});
  // Maps a token file, and its mask where it has one. Fails by name for what is truncated, too long or no token file,
  // and where the mask has another size.
  static Tokens map(const std::string& path);
  // Maps ids of so many bits without a header, as numpy.tofile and nanoGPT write them. Fails where they are no whole
  // number of ids, and for token files.
  static Tokens map_raw(const std::string& path, int bits);

  int64_t size() const { return size_; }
  int bits() const { return bits_; }
  const void* bytes() const { return tokens_; }
  size_t byte_size() const { return size_t(size_) * size_t(bits_ / 8); }
  int operator[](int64_t i) const {
    return bits_ == 16 ? static_cast<const uint16_t*>(tokens_)[i] : int(static_cast<const uint32_t*>(tokens_)[i]);
  }
  bool may_be_target(int64_t i) const { return !mask_ || mask_[i]; }
  bool has_mask() const { return mask_; }
  const uint8_t* mask() const { return mask_; }
  const std::string& name() const { return name_; }  // the file's path; in memory "the data"
  Tokens part(int64_t begin, int64_t end) const;     // keeps the name, counts from 0

  // The first place from `from` on with this token, or with an id that a vocabulary of this many ids lacks; size() where
  // there is none. At the speed of memory.
  int64_t find(int token, int64_t from = 0) const;
  int64_t find_beyond(int vocab, int64_t from = 0) const;

 private:
  template <class T>
  void hold(std::vector<T> tokens, std::vector<uint8_t> mask);
  std::shared_ptr<const void> owner_, mask_owner_;
  const void* tokens_ = nullptr;
  const uint8_t* mask_ = nullptr;
  int64_t size_ = 0;
  int bits_ = 16;
  std::string name_ = "the data";
};

// Fails where an id is not below `vocab`: "NAME holds token 50256 at position 17, but the tokenizer has 512 ids".
void require_ids_below(int vocab, const Tokens& tokens);

// What a token file's header says.
struct ShardHeader {
  int bits;
  int64_t tokens;
};
constexpr int kShardHeaderBytes = 1024;
// Fails by name where it is not a token file or its size is not what its header says.
ShardHeader read_shard_header(const std::string& path);
std::string shard_header(int bits, int64_t tokens);  // its 1024 bytes; at most 2³¹ − 1 tokens
int bits_for_vocab(int vocab);                       // 16 up to 65,536 ids
std::string mask_path(const std::string& shard);     // NAME.mask of NAME.bin
// CRC-32C of token files and of masks, by their names without the folder.
using Checksums = std::map<std::string, uint32_t>;

// The files that a pattern names (*, ?, [...]), which end in .bin, sorted; a folder means its *.bin, and what exists
// under the very name is meant, whatever it is called. Validation are those in whose own name, not their folder's, one of
// the words val, valid and validation stands, in letters of any case: no letter is beside it. Fails where there are none.
struct ShardNames {
  std::vector<std::string> train, validation;
};
bool names_shards(const std::string& data);    // does --data mean token files?
bool matches_shards(const std::string& data);  // is it a pattern, and are there such files?
ShardNames find_shards(const std::string& data);
