// Files that are whole or absent: every system call's result is looked at, and what was begun and failed is removed.
#include "files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "error.h"

namespace {

// A descriptor that closes itself, for reading: what close() says does not matter there.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

[[noreturn]] void fail_to(const char* what, const std::string& path) {
  int reason = errno;
  if (path.empty()) fail("cannot %s: the path is empty", what);
  fail("cannot %s %s: %s", what, path.c_str(), std::strerror(reason));
}

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  int fd;
  do fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

ssize_t read_retrying(int fd, void* bytes, size_t n) {
  ssize_t got;
  do got = read(fd, bytes, n);
  while (got < 0 && errno == EINTR);
  return got;
}

int sync_retrying(int fd) {
  int result;
  do result = fsync(fd);
  while (result < 0 && errno == EINTR);
  return result;
}

int open_for_reading(const std::string& path, struct stat* status) {
  int fd = open_retrying(path, O_RDONLY);
  if (fd < 0) fail_to("read", path);
  if (fstat(fd, status) < 0) {
    close(fd);
    fail_to("read", path);
  }
  if (S_ISDIR(status->st_mode)) {
    close(fd);
    fail("cannot read %s: it is a folder, not a file", path.c_str());
  }
  return fd;
}

std::string parent_of(const std::string& path) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool is_folder(const struct stat& status) { return S_ISDIR(status.st_mode); }

}  // namespace

std::string read_file(const std::string& path) {
  constexpr size_t kMostFromPipe = size_t(1) << 30;  // a device may never end
  struct stat status;
  Descriptor file{open_for_reading(path, &status)};
  bool regular = S_ISREG(status.st_mode);
  try {
    std::string bytes(regular ? size_t(status.st_size) + 1 : 4096,
                      '\0');  // one more, so that the end shows without growing
    size_t size = 0;
    while (true) {
      if (size == bytes.size()) bytes.resize(size * 2);
      ssize_t got = read_retrying(file.fd, bytes.data() + size, bytes.size() - size);
      if (got < 0) fail_to("read", path);
      if (got == 0) break;
      size += size_t(got);
      if (!regular && size > kMostFromPipe) fail("cannot read %s: it goes on for more than 1 GiB", path.c_str());
    }
    bytes.resize(size);
    return bytes;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  fail("cannot read %s: its %lld bytes do not fit in memory", path.c_str(), (long long)status.st_size);
}

std::string read_head(const std::string& path, size_t most) {
  struct stat status;
  Descriptor file{open_for_reading(path, &status)};
  std::string bytes(most, '\0');
  size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < most; size += size_t(got)) {
    got = read_retrying(file.fd, &bytes[size], most - size);
    if (got < 0) fail_to("read", path);
  }
  bytes.resize(size);
  return bytes;
}

NewFile::NewFile(const std::string& path, const std::string& shown) : path_(path), shown_(shown) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) ours_ = false;
  fd_ = open_retrying(path, ours_ ? O_WRONLY | O_CREAT | O_EXCL : O_WRONLY, 0666);
  if (fd_ < 0) fail_to("write", shown_);
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (ours_) unlink(path_.c_str());
}

void NewFile::write(const void* bytes, size_t n) {
  constexpr size_t kPiece = 1 << 20;  // small enough that the checksum reads what the cache still holds
  const char* next = static_cast<const char*>(bytes);
  while (n > 0) {
    ssize_t written = ::write(fd_, next, std::min(n, kPiece));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to("write", shown_);
    crc_ = crc32c(crc_, next, size_t(written));
    next += written;
    n -= size_t(written);
    size_ += written;
  }
}

void NewFile::finish() {
  bool cannot_sync = sync_retrying(fd_) < 0 && (ours_ || (errno != EINVAL && errno != ENOTSUP && errno != EROFS));
  if (cannot_sync) fail_to("write", shown_);  // the destructor removes what is there
  int fd = fd_;
  fd_ = -1;
  if (close(fd) == 0 || errno == EINTR) return;
  int reason = errno;
  if (ours_) unlink(path_.c_str());
  errno = reason;
  fail_to("write", shown_);
}

GrowingFile::GrowingFile(const std::string& path, int64_t size, const std::string& shown) : shown_(shown) {
  fd_ = open_retrying(path, O_WRONLY | O_CREAT, 0666);
  if (fd_ < 0) fail_to("write", shown_);
  int64_t found = lseek(fd_, 0, SEEK_END);
  bool cut = found >= size && ftruncate(fd_, size) == 0 && lseek(fd_, size, SEEK_SET) == size;
  int reason = errno;
  if (cut) return;
  close(fd_);
  if (found >= 0 && found < size)
    fail("%s holds %lld bytes and should hold %lld", shown_.c_str(), (long long)found, (long long)size);
  errno = reason;
  fail_to("write", shown_);
}

GrowingFile::~GrowingFile() { close(fd_); }

void GrowingFile::write(const void* bytes, size_t n) {
  constexpr size_t kMostWaiting = 1 << 20;
  waiting_.append(static_cast<const char*>(bytes), n);
  if (waiting_.size() >= kMostWaiting) flush();
}

void GrowingFile::flush() {
  for (size_t done = 0; done < waiting_.size();) {
    ssize_t written = ::write(fd_, waiting_.data() + done, waiting_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to("write", shown_);
    done += size_t(written);
  }
  waiting_.clear();
}

void GrowingFile::rewrite(int64_t at, const std::string& bytes) {
  flush();
  if (pwrite(fd_, bytes.data(), bytes.size(), at) != ssize_t(bytes.size())) fail_to("write", shown_);
}

void GrowingFile::sync() {
  flush();
  if (sync_retrying(fd_) < 0) fail_to("write", shown_);
}

// A hidden name in the target's folder that nobody else uses: not another process, not another thread, not a leftover.
static std::string partial_name(const std::string& target) {
  static std::atomic<int> count = 0;
  std::string name = std::filesystem::path(target).filename().string();
  while (true) {
    std::string partial = parent_of(target) + text("/.%.200s.%d.%d.partial", name.c_str(), int(getpid()), int(count++));
    struct stat status;
    if (lstat(partial.c_str(), &status) != 0) return partial;
  }
}

// Where a path leads: renaming over a link would leave what it points to as it was.
static std::string follow_links(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) ? resolved : path;
}

void replace_file(const std::string& path, const std::function<void(NewFile&)>& write) {
  if (path.empty()) fail_to("write", path);
  struct stat old;
  bool exists = stat(path.c_str(), &old) == 0;
  if ((exists && is_folder(old)) || path.back() == '/')
    fail("cannot write %s: it is a folder, not a file", path.c_str());
  if (exists && !S_ISREG(old.st_mode)) {  // a device or a pipe: it has no half, and must not be replaced
    NewFile device(path);
    write(device);
    device.finish();
    return;
  }
  std::string target = follow_links(path), partial = partial_name(target);
  NewFile file(partial, path);
  if (exists) chmod(partial.c_str(), old.st_mode & 0777);
  write(file);
  file.finish();
  if (rename(partial.c_str(), target.c_str()) < 0) {
    int reason = errno;
    unlink(partial.c_str());
    errno = reason;
    fail_to("write", path);
  }
  sync_folder(parent_of(target));
}

void write_file(const std::string& path, const std::string& bytes) {
  replace_file(path, [&](NewFile& file) { file.write(bytes); });
}

void make_folder(const std::string& path) {
  if (folder_exists(path)) return;
  if (path.empty()) fail_to("make a folder", path);
  std::string bare = path;
  while (bare.size() > 1 && bare.back() == '/') bare.pop_back();
  std::string parent = parent_of(bare);
  if (parent != bare) make_folder(parent);
  if (mkdir(bare.c_str(), 0777) == 0) return sync_folder(parent);
  int reason = errno;
  if (folder_exists(bare)) return;  // someone else was quicker
  if (reason == EEXIST) fail("cannot make the folder %s: a file has that name", path.c_str());
  errno = reason;
  fail_to("make the folder", path);
}

std::vector<std::string> list_folder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (!folder && errno == ENOENT) return {};
  if (!folder) fail_to("list the folder", path);
  std::vector<std::string> names;
  errno = 0;
  while (dirent* entry = readdir(folder)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  int reason = errno;
  closedir(folder);
  errno = reason;
  if (reason) fail_to("list the folder", path);
  std::sort(names.begin(), names.end());
  return names;
}

bool file_exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !is_folder(status);
}

bool folder_exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && is_folder(status);
}

void remove_folder(const std::string& path) {
  std::string bare = path;
  while (bare.size() > 1 && bare.back() == '/') bare.pop_back();  // "link/" would be what the link points to
  struct stat status;
  if (lstat(bare.c_str(), &status) < 0) {
    if (errno == ENOENT && !path.empty()) return;
    fail_to("remove the folder", path);
  }
  if (!is_folder(status) && !S_ISLNK(status.st_mode)) fail("cannot remove the folder %s: it is a file", path.c_str());
  std::error_code error;
  std::filesystem::remove_all(bare, error);  // does not follow links
  if (error) fail("cannot remove the folder %s: %s", path.c_str(), error.message().c_str());
}

void rename_path(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return;
  fail("cannot rename %s to %s: %s", from.c_str(), to.c_str(), std::strerror(errno));
}

void sync_folder(const std::string& path) {
  Descriptor folder{open_retrying(path, O_RDONLY | O_DIRECTORY)};
  if (folder.fd < 0 && errno == EACCES) return;  // may be written in but not read: there is no way to sync it
  if (folder.fd < 0) fail_to("sync the folder", path);
  if (sync_retrying(folder.fd) == 0) return;
  bool unsupported = errno == EINVAL || errno == ENOTSUP || errno == EROFS;  // some network file systems
  if (!unsupported) fail_to("sync the folder", path);
}

// Slicing by 8: table[k][b] is the effect of byte b followed by k zero bytes, so eight bytes are eight independent
// look-ups.
using CrcTables = std::array<std::array<uint32_t, 256>, 8>;

static constexpr CrcTables make_crc_tables() {
  CrcTables table = {};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0u);  // Castagnoli's polynomial, reflected
    table[0][b] = crc;
  }
  for (int k = 1; k < 8; ++k)
    for (uint32_t b = 0; b < 256; ++b) table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xFF];
  return table;
}

uint32_t crc32c(uint32_t crc, const void* bytes, size_t n) {
  static_assert(std::endian::native == std::endian::little, "the words below are read as little-endian");
  static constexpr CrcTables table = make_crc_tables();
  const unsigned char* next = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; n >= 8; n -= 8, next += 8) {
    uint64_t word;
    std::memcpy(&word, next, 8);
    word ^= crc;
    crc = table[7][word & 0xFF] ^ table[6][word >> 8 & 0xFF] ^ table[5][word >> 16 & 0xFF] ^
          table[4][word >> 24 & 0xFF] ^ table[3][word >> 32 & 0xFF] ^ table[2][word >> 40 & 0xFF] ^
          table[1][word >> 48 & 0xFF] ^ table[0][word >> 56];
  }
  for (; n > 0; --n, ++next) crc = crc >> 8 ^ table[0][(crc ^ *next) & 0xFF];
  return ~crc;
}

uint32_t crc32c_of_file(const std::string& path) {
  struct stat status;
  Descriptor file{open_for_reading(path, &status)};
  std::vector<char> piece(1 << 20);
  uint32_t crc = 0;
  while (true) {
    ssize_t got = read_retrying(file.fd, piece.data(), piece.size());
    if (got < 0) fail_to("read", path);
    if (got == 0) return crc;
    crc = crc32c(crc, piece.data(), size_t(got));
  }
}

static std::string holder_of(int fd) {
  char pid[16] = {};
  ssize_t got = pread(fd, pid, sizeof pid - 1, 0);
  return got > 0 && std::strspn(pid, "0123456789") > 0 ? text(" (process %d)", std::atoi(pid)) : "";
}

FolderLock::FolderLock(const std::string& folder) {
  std::string path = folder + "/lock";
  fd_ = open_retrying(path, O_RDWR | O_CREAT, 0666);
  if (fd_ < 0) fail_to("lock the folder with", path);
  int held;
  do held = flock(fd_, LOCK_EX | LOCK_NB);
  while (held < 0 && errno == EINTR);
  if (held < 0 && errno == EWOULDBLOCK) {
    std::string holder = holder_of(fd_);
    close(fd_);
    fail("%s is in use by another process%s: let it end first, or choose another folder", folder.c_str(),
         holder.c_str());
  }
  if (held < 0)
    std::fprintf(stderr, "warning: cannot lock %s (%s); going on without\n", path.c_str(), std::strerror(errno));
  std::string pid = text("%d\n", int(getpid()));  // a courtesy to whoever is refused, so a failure does not matter
  if (ftruncate(fd_, 0) < 0 || pwrite(fd_, pid.data(), pid.size(), 0) < 0) return;
}

FolderLock::~FolderLock() { close(fd_); }
