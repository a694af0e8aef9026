// Files that are whole or absent. All fail() with the path and the system's reason.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

std::string read_file(const std::string& path);  // refuses folders; any size that memory holds

std::string read_head(const std::string& path, size_t most);  // its first bytes, all where there are fewer

// A new file that grows; unless finish() is reached, it is removed again. `shown` is its name in messages. A device or
// a pipe that is already there is written to as it is.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : NewFile(path, path) {}  // fails where there is such a file
  NewFile(const std::string& path, const std::string& shown);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* bytes, size_t n);
  void write(const std::string& bytes) { write(bytes.data(), bytes.size()); }
  void finish();  // to the disk, and closed
  uint32_t crc() const { return crc_; }
  int64_t size() const { return size_; }

 private:
  std::string path_, shown_;
  int fd_ = -1;
  bool ours_ = true;
  uint32_t crc_ = 0;
  int64_t size_ = 0;
};

// A file that grows over several runs, and stays when one fails. What it held beyond `size` bytes is cut off; fails
// where it is shorter. With size 0 it may be new.
class GrowingFile {
 public:
  GrowingFile(const std::string& path, int64_t size, const std::string& shown);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  void write(const void* bytes, size_t n);  // may wait in memory
  void rewrite(int64_t at, const std::string& bytes);
  void sync();  // all of it is on the disk

 private:
  void flush();
  std::string shown_, waiting_;
  int fd_ = -1;
};

// Writes beside the target, syncs, then renames over it: a reader never sees half, a full disk loses nothing. A link is
// followed.
void replace_file(const std::string& path, const std::function<void(NewFile&)>& write);
void write_file(const std::string& path, const std::string& bytes);

void make_folder(const std::string& path);                      // with its parents; fine where it exists
std::vector<std::string> list_folder(const std::string& path);  // names, sorted; empty where there is no such folder
bool file_exists(const std::string& path);                      // anything but a folder
bool folder_exists(const std::string& path);
void remove_folder(const std::string& path);  // with all in it; fine where there is none; of a link only the link
void rename_path(const std::string& from, const std::string& to);
void sync_folder(const std::string& path);  // so that a rename in it is on the disk

// CRC-32C of a range of bytes, continuing from `crc` (0 to start), and of a whole file.
uint32_t crc32c(uint32_t crc, const void* bytes, size_t n);
uint32_t crc32c_of_file(const std::string& path);

// Holds FOLDER/lock for this process's life; fails by naming the folder where another process holds it. The lock dies
// with the process (flock), so nothing stale is left by a kill. On file systems without locks it warns and goes on.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};
