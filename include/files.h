// Files that are whole or absent. All fail() with the path and the system's reason.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

std::string read_file(const std::string& path);  // refuses folders; any size that memory holds

// Writes beside the target, syncs, then renames over it: a reader never sees half, a full disk loses nothing.
void write_file(const std::string& path, const std::string& bytes);

void make_folder(const std::string& path);                       // with its parents; fine where it exists
std::vector<std::string> list_folder(const std::string& path);   // names, sorted; empty where there is no such folder
bool file_exists(const std::string& path);
bool folder_exists(const std::string& path);
void remove_folder(const std::string& path);                     // with all in it
void sync_folder(const std::string& path);                       // so that a rename in it is on the disk

// CRC-32C of a range of bytes, continuing from `crc` (0 to start).
uint32_t crc32c(uint32_t crc, const void* bytes, size_t n);

// Holds FOLDER/lock for this process's life; fails by naming the folder where another process holds it. The lock dies with the
// process (flock), so nothing stale is left by a kill.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};
