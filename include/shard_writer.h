// Writes a split's tokens as shards of equal size, so that a kill at any moment costs only what nobody has recorded yet.
// A shard grows under a hidden name. Whoever writes calls sync(), records tokens() on the disk, and then publish(),
// which gives full shards their names; later the writer goes on from what was recorded, whatever happened since.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "files.h"
#include "shards.h"

struct ShardForm {
  std::string folder, split;  // folder/split_000000.bin, …
  int bits = 16;
  int64_t shard_tokens = 0;
  bool masked = false;  // with NAME.mask
};

class ShardWriter {
 public:
  // Goes on behind `tokens` recorded ones; `ended`: finish() was called before they were recorded; `recorded`: checksums
  // of full shards, of which those that lack are read. Removes what was begun and not recorded; fails where shards are
  // missing, broken, or there that are not ours.
  ShardWriter(ShardForm, int64_t tokens, bool ended, const Checksums& recorded = {});

  void append(const int* tokens, int64_t n, bool may_be_targets);
  int64_t tokens() const { return tokens_; }
  int64_t shards() const;                                    // of which the last may be growing
  const Checksums& checksums() const { return checksums_; }  // of all but one that grows
  void finish();                                             // no tokens follow
  void sync();
  void publish();

 private:
  // A file that grows, and the CRC-32C of what it holds.
  struct Part {
    std::unique_ptr<GrowingFile> file;
    uint32_t crc = 0;
    void write(const void* bytes, size_t n);
  };
  std::string name(int64_t shard, const char* kind) const { return form_.folder + "/" + file(shard, kind); }
  std::string partial(int64_t shard, const char* kind) const {
    return form_.folder + "/." + file(shard, kind) + ".partial";
  }
  std::string file(int64_t shard, const char* kind) const;
  std::vector<const char*> kinds() const;
  int64_t complete() const { return ended_ ? shards() : tokens_ / form_.shard_tokens; }
  void clear_folder() const;
  void publish(int64_t shard) const;
  void require_complete(int64_t shard) const;
  void open_shard();
  void close_shard();

  ShardForm form_;
  int64_t tokens_ = 0, published_ = 0;
  bool ended_ = false;
  Checksums checksums_;
  Part bin_, mask_;  // of the shard that grows
};
