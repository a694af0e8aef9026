// Shards that grow under hidden names.
#include "shard_writer.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "error.h"
#include "shards.h"

namespace {

// The number in BEFORE…AFTER, or −1 where the name is another one.
int64_t number_in(std::string_view name, const std::string& before, const std::string& after) {
  if (name.size() <= before.size() + after.size() || name.substr(0, before.size()) != before ||
      name.substr(name.size() - after.size()) != after)
    return -1;
  std::string digits(name.substr(before.size(), name.size() - before.size() - after.size()));
  bool all = digits.size() < 18 && digits.find_first_not_of("0123456789") == std::string::npos;
  return all ? std::stoll(digits) : -1;
}

[[noreturn]] void refuse(const std::string& path) {
  fail("%s is in the way, and no run here has written it: move it away, or choose another folder", path.c_str());
}

}  // namespace

ShardWriter::ShardWriter(ShardForm form, int64_t tokens, bool ended, const Checksums& recorded)
    : form_(std::move(form)), tokens_(tokens), ended_(ended) {
  clear_folder();
  for (; published_ < complete(); ++published_) {  // one by one: what is recorded may be wrong, and end here
    publish(published_);                           // what a kill kept from it
    require_complete(published_);
    for (const char* kind : kinds()) {
      auto found = recorded.find(file(published_, kind));
      checksums_[file(published_, kind)] =
          found != recorded.end() ? found->second : crc32c_of_file(name(published_, kind));
    }
  }
  if (!ended_ && tokens_ % form_.shard_tokens > 0) open_shard();
}

std::string ShardWriter::file(int64_t shard, const char* kind) const {
  return text("%s_%06lld.%s", form_.split.c_str(), (long long)shard, kind);
}

// A mask is there before its tokens are.
std::vector<const char*> ShardWriter::kinds() const {
  return form_.masked ? std::vector<const char*>{"mask", "bin"} : std::vector<const char*>{"bin"};
}

int64_t ShardWriter::shards() const { return (tokens_ + form_.shard_tokens - 1) / form_.shard_tokens; }

void ShardWriter::clear_folder() const {
  for (const std::string& file : list_folder(form_.folder))
    for (const char* kind : {"bin", "mask"}) {
      std::string end = std::string(".") + kind;
      int64_t number = number_in(file, form_.split + "_", end);
      if (number >= complete()) refuse(form_.folder + "/" + file);
      if (number_in(file, "." + form_.split + "_", end + ".partial") >= shards())
        unlink((form_.folder + "/" + file).c_str());
    }
}

void ShardWriter::require_complete(int64_t shard) const {
  if (!file_exists(name(shard, "bin")))
    fail("%s is missing, which was written before: copy it back, or remove the folder and begin anew",
         name(shard, "bin").c_str());
  ShardHeader header = read_shard_header(name(shard, "bin"));
  int64_t tokens = std::min(form_.shard_tokens, tokens_ - shard * form_.shard_tokens);
  if (header.tokens != tokens || header.bits != form_.bits)
    fail("%s holds %lld tokens of %d bits and should hold %lld of %d", name(shard, "bin").c_str(),
         (long long)header.tokens, header.bits, (long long)tokens, form_.bits);
  if (form_.masked && !file_exists(name(shard, "mask"))) fail("%s is missing", name(shard, "mask").c_str());
}

// The header is that of a full shard, which all but the last will be.
void ShardWriter::open_shard() {
  int64_t shard = tokens_ / form_.shard_tokens, held = tokens_ % form_.shard_tokens;
  int64_t bytes = held > 0 ? kShardHeaderBytes + held * (form_.bits / 8) : 0;
  bin_ = {std::make_unique<GrowingFile>(partial(shard, "bin"), bytes, name(shard, "bin"))};
  if (form_.masked) mask_ = {std::make_unique<GrowingFile>(partial(shard, "mask"), held, name(shard, "mask"))};
  std::string header = shard_header(form_.bits, form_.shard_tokens);
  if (held == 0) return bin_.write(header.data(), header.size());
  bin_.file->rewrite(0, header);  // a kill may have come after finish()
  bin_.crc = crc32c_of_file(partial(shard, "bin"));
  if (form_.masked) mask_.crc = crc32c_of_file(partial(shard, "mask"));
}

void ShardWriter::close_shard() {
  sync();
  checksums_[file(shards() - 1, "bin")] = bin_.crc;
  if (form_.masked) checksums_[file(shards() - 1, "mask")] = mask_.crc;
  bin_ = {}, mask_ = {};
}

void ShardWriter::Part::write(const void* bytes, size_t n) {
  file->write(bytes, n);
  crc = crc32c(crc, bytes, n);
}

void ShardWriter::append(const int* tokens, int64_t n, bool may_be_targets) {
  std::vector<uint16_t> narrow;
  while (n > 0) {
    if (!bin_.file) open_shard();
    int64_t part = std::min(n, form_.shard_tokens - tokens_ % form_.shard_tokens);
    if (form_.bits == 16) {
      narrow.assign(tokens, tokens + part);
      bin_.write(narrow.data(), size_t(part) * sizeof(uint16_t));
    } else {
      bin_.write(tokens, size_t(part) * sizeof(uint32_t));
    }
    if (form_.masked) {
      std::vector<uint8_t> mask(size_t(part), may_be_targets);
      mask_.write(mask.data(), mask.size());
    }
    tokens += part, n -= part, tokens_ += part;
    if (tokens_ % form_.shard_tokens == 0) close_shard();
  }
}

void ShardWriter::finish() {
  ended_ = true;
  if (!bin_.file) return;
  bin_.file->rewrite(0, shard_header(form_.bits, tokens_ % form_.shard_tokens));
  bin_.crc = crc32c_of_file(partial(shards() - 1, "bin"));  // of the other header, too
  close_shard();
}

void ShardWriter::sync() {
  if (bin_.file) bin_.file->sync();
  if (mask_.file) mask_.file->sync();
}

void ShardWriter::publish() {
  for (; published_ < complete(); ++published_) publish(published_);
}

void ShardWriter::publish(int64_t shard) const {
  for (const char* kind : kinds()) {
    std::string from = partial(shard, kind), to = name(shard, kind);
    if (!file_exists(from)) continue;  // published before
    if (file_exists(to)) refuse(to);
    rename_path(from, to);
  }
}
