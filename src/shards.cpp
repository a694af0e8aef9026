// Token files: their header, mapped into memory, and the names that stand for many of them.
#include "shards.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "error.h"
#include "files.h"
#include "text_input.h"
#include "unicode.h"

static_assert(std::endian::native == std::endian::little, "token files are mapped as they are: little-endian");

// --- Tokens

template <class T>
void Tokens::hold(std::vector<T> tokens, std::vector<uint8_t> mask) {
  check(mask.empty() || mask.size() == tokens.size(), "a mask of %zu for %zu tokens", mask.size(), tokens.size());
  size_ = int64_t(tokens.size()), bits_ = 8 * int(sizeof(T));
  auto held = std::make_shared<const std::vector<T>>(std::move(tokens));
  tokens_ = held->data(), owner_ = std::move(held);
  if (mask.empty()) return;
  auto mask_held = std::make_shared<const std::vector<uint8_t>>(std::move(mask));
  mask_ = mask_held->data(), mask_owner_ = std::move(mask_held);
}

Tokens::Tokens(std::vector<uint16_t> tokens, std::vector<uint8_t> mask) { hold(std::move(tokens), std::move(mask)); }
Tokens::Tokens(std::vector<uint32_t> tokens, std::vector<uint8_t> mask) { hold(std::move(tokens), std::move(mask)); }

Tokens Tokens::part(int64_t begin, int64_t end) const {
  check(0 <= begin && begin <= end && end <= size_, "part [%lld, %lld) of %lld tokens", (long long)begin,
        (long long)end, (long long)size_);
  Tokens part = *this;
  part.tokens_ = static_cast<const char*>(tokens_) + begin * (bits_ / 8);
  if (mask_) part.mask_ += begin;
  part.size_ = end - begin;
  return part;
}

// The first place in [from, size) where the condition holds, else size. Whole blocks are looked at first, without
// leaving early, because that becomes vector instructions.
template <class T, class Condition>
static int64_t find_where(const T* tokens, int64_t from, int64_t size, Condition holds) {
  constexpr int kBlock = 64;
  for (; from + kBlock <= size; from += kBlock) {
    T any = 0;
    for (int i = 0; i < kBlock; ++i) any |= T(holds(tokens[from + i]));
    if (any) break;
  }
  while (from < size && !holds(tokens[from])) ++from;
  return from;
}

int64_t Tokens::find(int token, int64_t from) const {
  auto is_it = [token](auto id) { return id == decltype(id)(token); };
  if (token < 0 || (bits_ == 16 && token > UINT16_MAX)) return size_;
  if (bits_ == 32) return find_where(static_cast<const uint32_t*>(tokens_), from, size_, is_it);
  return find_where(static_cast<const uint16_t*>(tokens_), from, size_, is_it);
}

int64_t Tokens::find_beyond(int vocab, int64_t from) const {
  auto is_beyond = [vocab](auto id) { return id >= decltype(id)(vocab); };
  if (bits_ == 16 && vocab > UINT16_MAX) return size_;
  if (bits_ == 32) return find_where(static_cast<const uint32_t*>(tokens_), from, size_, is_beyond);
  return find_where(static_cast<const uint16_t*>(tokens_), from, size_, is_beyond);
}

void require_ids_below(int vocab, const Tokens& tokens) {
  int64_t at = tokens.find_beyond(vocab);
  if (at == tokens.size()) return;
  fail("%s holds token %u at position %lld, but the tokenizer has %d ids: it was made with another tokenizer",
       tokens.name().c_str(), unsigned(tokens[at]), (long long)at, vocab);
}

// --- Files

namespace {

struct Format {
  int32_t magic, version, bits;
};
constexpr Format kFormats[] = {{20240520, 1, 16}, {20240801, 7, 32}};

// A regular file that is open for reading, and its size.
struct OpenFile {
  int fd;
  int64_t size = 0;
  explicit OpenFile(const std::string& path) {
    do fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not make it wait
    while (fd < 0 && errno == EINTR);
    struct stat status;
    bool found = fd >= 0 && fstat(fd, &status) == 0;
    int reason = errno;
    if (found && S_ISREG(status.st_mode)) {
      size = status.st_size;
      return;
    }
    if (fd >= 0) close(fd);
    if (!found) fail("cannot read %s: %s", path.c_str(), std::strerror(reason));
    fail("cannot read %s: it is %s, not a file", path.c_str(), S_ISDIR(status.st_mode) ? "a folder" : "a device");
  }
  OpenFile(const OpenFile&) = delete;
  ~OpenFile() { close(fd); }
};

// All of a file; it stays mapped after it is closed. Null where it is empty.
std::shared_ptr<const void> map_file(const OpenFile& file, const std::string& path) {
  if (file.size == 0) return nullptr;
  size_t bytes = size_t(file.size);
  void* base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd, 0);
  if (base == MAP_FAILED) fail("cannot map %s: %s", path.c_str(), std::strerror(errno));
  return {base, [bytes](void* base) { munmap(base, bytes); }};
}

ShardHeader read_header(const OpenFile& file, const std::string& path) {
  char header[kShardHeaderBytes] = {};  // enough to say what it is, where it is something else
  int64_t got = 0, wanted = std::min<int64_t>(file.size, kShardHeaderBytes);
  while (got < wanted) {
    ssize_t n = pread(file.fd, header + got, size_t(wanted - got), got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot read %s: %s", path.c_str(), n < 0 ? std::strerror(errno) : "it ends early");
    got += n;
  }
  auto refuse_other = [&] {
    std::string other = describe_no_token_file({header, size_t(got)}, path);
    if (!other.empty()) fail("%s is not a token file: %s", path.c_str(), other.c_str());
  };
  if (got < kShardHeaderBytes) refuse_other();
  if (got < kShardHeaderBytes)
    fail("%s is not a token file: it has %lld bytes, and a header alone has %d", path.c_str(), (long long)got,
         kShardHeaderBytes);
  int32_t magic, version, tokens;
  std::memcpy(&magic, header, 4), std::memcpy(&version, header + 4, 4), std::memcpy(&tokens, header + 8, 4);
  const Format* format =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.magic == magic; });
  if (format == std::end(kFormats)) refuse_other();
  if (format == std::end(kFormats))
    fail("%s is not a token file: its first number is %d, not %d (16 bits a token) or %d (32 bits)", path.c_str(),
         magic, kFormats[0].magic, kFormats[1].magic);
  if (version != format->version)
    fail("%s has version %d of its format; only version %d is known", path.c_str(), version, format->version);
  if (tokens < 0) fail("%s is corrupt: its header counts %d tokens", path.c_str(), tokens);
  int64_t bytes = kShardHeaderBytes + int64_t(tokens) * (format->bits / 8);
  if (file.size != bytes)
    fail("%s is %s: its header counts %d tokens, which take %lld bytes, but it has %lld; copy it or make it again",
         path.c_str(), file.size < bytes ? "truncated" : "too long", tokens, (long long)bytes, (long long)file.size);
  return {format->bits, tokens};
}

}  // namespace

Tokens Tokens::map(const std::string& path) {
  Tokens tokens;
  OpenFile file(path);
  ShardHeader header = read_header(file, path);
  tokens.name_ = path, tokens.size_ = header.tokens, tokens.bits_ = header.bits;
  tokens.owner_ = map_file(file, path);
  tokens.tokens_ = static_cast<const char*>(tokens.owner_.get()) + kShardHeaderBytes;
  std::string beside = mask_path(path);
  if (!file_exists(beside)) return tokens;
  OpenFile mask(beside);
  if (mask.size != header.tokens)
    fail("%s has %lld bytes, but %s has %lld tokens: a mask has a byte a token", beside.c_str(), (long long)mask.size,
         path.c_str(), (long long)header.tokens);
  tokens.mask_owner_ = map_file(mask, beside);
  tokens.mask_ = static_cast<const uint8_t*>(tokens.mask_owner_.get());
  return tokens;
}

Tokens Tokens::map_raw(const std::string& path, int bits) {
  check(bits == 16 || bits == 32, "tokens of %d bits", bits);
  Tokens tokens;
  OpenFile file(path);
  tokens.name_ = path, tokens.size_ = file.size / (bits / 8), tokens.bits_ = bits;
  tokens.owner_ = map_file(file, path);
  tokens.tokens_ = tokens.owner_.get();
  if (file.size % (bits / 8) != 0) {
    std::string other = describe_no_raw_ids(
        {static_cast<const char*>(tokens.tokens_), std::min<size_t>(size_t(file.size), kTextHead)}, path);
    if (!other.empty()) fail("%s: %s", path.c_str(), other.c_str());
    fail("%s has %lld bytes, which are no whole number of ids of %d bits", path.c_str(), (long long)file.size, bits);
  }
  for (const Format& format : kFormats)
    if (file.size >= kShardHeaderBytes && std::memcmp(tokens.tokens_, &format, 8) == 0)
      fail("%s has a header already: ./train --data reads it as it is", path.c_str());
  return tokens;
}

ShardHeader read_shard_header(const std::string& path) { return read_header(OpenFile(path), path); }

std::string shard_header(int bits, int64_t tokens) {
  check(bits == 16 || bits == 32, "tokens of %d bits", bits);
  check(0 <= tokens && tokens <= INT32_MAX, "a file of %lld tokens", (long long)tokens);
  const Format& format = kFormats[bits == 32];
  int32_t numbers[] = {format.magic, format.version, int32_t(tokens)};
  std::string header(kShardHeaderBytes, '\0');
  std::memcpy(header.data(), numbers, sizeof numbers);
  return header;
}

int bits_for_vocab(int vocab) { return vocab <= UINT16_MAX + 1 ? 16 : 32; }

// --- Names

static bool is_named_bin(const std::string& path) { return std::string_view(path).ends_with(".bin"); }

std::string mask_path(const std::string& shard) {
  return (is_named_bin(shard) ? shard.substr(0, shard.size() - 4) : shard) + ".mask";
}

static std::vector<std::string> shards_of_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : list_folder(folder)) {
    std::string path = folder + (folder.back() == '/' ? "" : "/") + name;
    if (name[0] != '.' && is_named_bin(name) && file_exists(path)) paths.push_back(path);
  }
  return paths;
}

static std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found;
  int result = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);  // its order would be the locale's
  std::vector<std::string> paths;
  if (result == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::erase_if(paths, [](const std::string& path) { return !is_named_bin(path) || !file_exists(path); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

static bool is_pattern(const std::string& data) { return data.find_first_of("*?[") != std::string::npos; }

bool names_shards(const std::string& data) {
  if (folder_exists(data)) return !shards_of_folder(data).empty();
  return is_named_bin(data) || (is_pattern(data) && !file_exists(data));
}

bool matches_shards(const std::string& data) { return is_pattern(data) && !matches_of(data).empty(); }

// Does val, valid or validation stand in a file's name, with no letter beside it? Letters beyond ASCII are such, too.
static bool names_validation(const std::string& path) {
  std::string word;
  for (size_t at = path.rfind('/') + 1;;) {  // npos + 1 = 0
    Character c = character_at(path, at);
    if (c.kind & (kLower | kUpper | kUncased | kMark)) {
      word += c.length == 1 ? std::string(1, char(std::tolower(path[at]))) : path.substr(at, c.length);
    } else {
      if (word == "val" || word == "valid" || word == "validation") return true;
      word.clear();
    }
    if (c.length == 0) return false;
    at += c.length;
  }
}

ShardNames find_shards(const std::string& data) {
  std::vector<std::string> paths;
  if (folder_exists(data)) {
    paths = shards_of_folder(data);
    if (paths.empty()) fail("%s holds no token files (*.bin)", data.c_str());
  } else if (file_exists(data) || !is_pattern(data)) {
    paths = {data};
    if (!file_exists(data)) fail("there is no token file %s", data.c_str());
  } else {
    paths = matches_of(data);
    if (paths.empty()) fail("no token files (*.bin) match %s", data.c_str());
  }
  ShardNames names;
  for (const std::string& path : paths) (names_validation(path) ? names.validation : names.train).push_back(path);
  return names;
}
