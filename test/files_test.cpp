// Files: whole or absent, whatever the disk says; checksums; locks.
#include "files.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "scratch.h"

namespace {

std::string noise(size_t n) {
  std::string bytes(n, '\0');
  uint32_t state = 1;
  for (char& c : bytes) c = char((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

TEST(Files, WhatWasWrittenIsRead) {
  Scratch folder;
  for (size_t n : {size_t(0), size_t(1), size_t(4096), size_t(3000000)}) {
    std::string bytes = noise(n);
    write_file(folder / "a", bytes);
    EXPECT_EQ(read_file(folder / "a"), bytes);
  }
  EXPECT_EQ(list_folder(folder.path), std::vector<std::string>{"a"});
}

TEST(Files, WhatCannotBeReadIsNamed) {
  Scratch folder;
  EXPECT_EQ(message_of([&] { read_file(folder / "no"); }),
            "cannot read " + (folder / "no") + ": No such file or directory");
  EXPECT_EQ(message_of([&] { read_file(folder.path); }), "cannot read " + folder.path + ": it is a folder, not a file");
  EXPECT_EQ(message_of([] { read_file(""); }), "cannot read: the path is empty");
  put(folder / "a", "");
  EXPECT_TRUE(has(message_of([&] { read_file(folder / "a/b"); }), "Not a directory"));
}

TEST(Files, FilesWithoutASizeAreReadToTheirEnd) {
  EXPECT_TRUE(has(read_file("/proc/self/status"), "Pid:"));
  Scratch folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { put(folder / "pipe", std::string(100000, 'x')); });
  EXPECT_EQ(read_file(folder / "pipe").size(), 100000u);
  writer.join();
}

TEST(Files, AFullDiskLosesNothingAndLeavesNothing) {
  Scratch folder;
  write_file(folder / "a", "earlier");
  {
    FullDisk disk(5000);
    EXPECT_EQ(message_of([&] { write_file(folder / "a", noise(100000)); }),
              "cannot write " + (folder / "a") + ": File too large");
    EXPECT_NE(message_of([&] { write_file(folder / "b", noise(5001)); }), "");
  }
  EXPECT_EQ(read_file(folder / "a"), "earlier");
  EXPECT_EQ(list_folder(folder.path), std::vector<std::string>{"a"});
}

TEST(Files, ADeviceIsWrittenToAndNeverReplaced) {
  EXPECT_EQ(message_of([] { write_file("/dev/full", "x"); }), "cannot write /dev/full: No space left on device");
  EXPECT_EQ(message_of([] { write_file("/dev/null", "x"); }), "");
  struct stat status;
  ASSERT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST(Files, WhatCannotBeWrittenIsNamed) {
  Scratch folder;
  put(folder / "file", "");
  EXPECT_TRUE(
      has(message_of([&] { write_file(folder / "no/a", "x"); }), "cannot write " + (folder / "no/a") + ": No such"));
  EXPECT_TRUE(has(message_of([&] { write_file(folder / "file/a", "x"); }), "Not a directory"));
  EXPECT_TRUE(has(message_of([&] { write_file(folder.path, "x"); }), "it is a folder"));
  EXPECT_TRUE(has(message_of([&] { write_file(folder / "new/", "x"); }), "it is a folder"));
  EXPECT_TRUE(has(message_of([&] { write_file("", "x"); }), "the path is empty"));
  EXPECT_NE(message_of([&] { write_file("/proc/fullband", "x"); }), "");
  EXPECT_NE(message_of([&] { write_file(folder / std::string(300, 'x'), "x"); }), "");
}

TEST(Files, TheLongestNameCanStillBeReplaced) {
  Scratch folder;
  std::string path = folder / std::string(255, 'n');
  write_file(path, "1");
  write_file(path, "2");
  EXPECT_EQ(read_file(path), "2");
}

TEST(Files, ALinkIsFollowedAndPermissionsStay) {
  Scratch folder;
  make_folder(folder / "else");
  put(folder / "else/target", "old");
  chmod((folder / "else/target").c_str(), 0640);
  ASSERT_EQ(symlink("else/target", (folder / "link").c_str()), 0);
  write_file(folder / "link", "new");
  struct stat status;
  ASSERT_EQ(lstat((folder / "link").c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(read_file(folder / "else/target"), "new");
  ASSERT_EQ(stat((folder / "link").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(Files, AReaderNeverSeesHalf) {
  Scratch folder;
  std::string a(300000, 'a'), b(200000, 'b');
  write_file(folder / "f", a);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 10; ++i) write_file(folder / "f", i % 2 ? a : b);
    done = true;
  });
  int halves = 0;
  while (!done) {
    std::string seen = read_file(folder / "f");
    halves += seen != a && seen != b;
  }
  writer.join();
  EXPECT_EQ(halves, 0);
}

TEST(Files, WritersOfOneFileDoNotMixTheirBytes) {
  Scratch folder;
  auto write_often = [&](char c) {
    for (int i = 0; i < 8; ++i) write_file(folder / "f", std::string(100000, c));
  };
  std::thread other(write_often, 'x');
  write_often('y');
  other.join();
  std::string last = read_file(folder / "f");
  EXPECT_EQ(last, std::string(100000, last[0]));
  EXPECT_EQ(list_folder(folder.path).size(), 1u);
}

TEST(NewFile, IsRemovedUnlessFinished) {
  Scratch folder;
  {
    NewFile file(folder / "a");
    file.write("abc");
  }
  EXPECT_FALSE(file_exists(folder / "a"));
  NewFile file(folder / "a");
  file.write("abc");
  file.write("def");
  file.finish();
  EXPECT_EQ(read_file(folder / "a"), "abcdef");
  EXPECT_EQ(file.crc(), crc32c(0, "abcdef", 6));
  EXPECT_EQ(file.size(), 6);
}

TEST(NewFile, RefusesWhatIsThereAndLeavesItAlone) {
  Scratch folder;
  put(folder / "a", "mine");
  EXPECT_EQ(message_of([&] { NewFile file(folder / "a"); }), "cannot write " + (folder / "a") + ": File exists");
  EXPECT_EQ(read_file(folder / "a"), "mine");
}

TEST(GrowingFile, GoesOnWhereItIsTold) {
  Scratch folder;
  std::string path = folder / "a", bytes = noise(2'500'000);
  {
    GrowingFile file(path, 0, path);
    for (size_t at = 0; at < bytes.size(); at += 100'000) file.write(&bytes[at], 100'000);
    file.rewrite(3, "abc");
    file.sync();
    file.write("lost", 4);
  }
  bytes.replace(3, 3, "abc");
  EXPECT_TRUE(read_file(path) == bytes);
  {
    GrowingFile file(path, 10, path);
    file.write("x", 1);
    file.sync();
  }
  EXPECT_EQ(read_file(path), bytes.substr(0, 10) + "x");
  EXPECT_EQ(message_of([&] { GrowingFile(path, 12, "shown"); }), "shown holds 11 bytes and should hold 12");
  EXPECT_TRUE(has(message_of([&] { GrowingFile(folder / "no/a", 0, "shown"); }), "cannot write shown: No such file"));
  FullDisk full(20);
  EXPECT_TRUE(has(message_of([&] {
                    GrowingFile file(path, 11, "shown");
                    file.write(bytes.data(), 100);
                    file.sync();
                  }),
                  "cannot write shown: File too large"));
}

TEST(Files, AFailingWriterLeavesTheOldFile) {
  Scratch folder;
  put(folder / "a", "old");
  EXPECT_EQ(message_of([&] {
              replace_file(folder / "a", [](NewFile& file) {
                file.write("half");
                fail("no more");
              });
            }),
            "no more");
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(list_folder(folder.path).size(), 1u);
}

TEST(Folders, AreMadeWithTheirParents) {
  Scratch folder;
  make_folder(folder / "a/b/c/");
  make_folder(folder / "a/b/c");
  EXPECT_TRUE(folder_exists(folder / "a/b/c"));
  EXPECT_NO_THROW(make_folder("."));
  EXPECT_NO_THROW(make_folder("/"));
}

TEST(Folders, WhatCannotBeAFolderIsNamed) {
  Scratch folder;
  put(folder / "file", "");
  EXPECT_TRUE(has(message_of([&] { make_folder(folder / "file"); }), "a file has that name"));
  EXPECT_NE(message_of([&] { make_folder(folder / "file/sub/sub"); }), "");
  EXPECT_NE(message_of([&] { make_folder("/proc/fullband/x"); }), "");
  EXPECT_EQ(message_of([] { make_folder(""); }), "cannot make a folder: the path is empty");
}

TEST(Folders, AreListedInOrder) {
  Scratch folder;
  for (const char* name : {"b", "a", ".hidden", "c"}) put(folder / name, "");
  EXPECT_EQ(list_folder(folder.path), (std::vector<std::string>{".hidden", "a", "b", "c"}));
  EXPECT_TRUE(list_folder(folder / "no").empty());
  EXPECT_TRUE(has(message_of([&] { list_folder(folder / "a"); }), "Not a directory"));
}

TEST(Folders, FilesAndFoldersAreToldApart) {
  Scratch folder;
  put(folder / "f", "");
  EXPECT_TRUE(file_exists(folder / "f"));
  EXPECT_FALSE(folder_exists(folder / "f"));
  EXPECT_FALSE(file_exists(folder.path));
  EXPECT_TRUE(folder_exists(folder.path));
  EXPECT_FALSE(file_exists(folder / "no") || folder_exists(folder / "no"));
}

TEST(Folders, AreRemovedWithAllInThemButNotWhatLinksPointTo) {
  Scratch folder;
  make_folder(folder / "a/b");
  put(folder / "a/b/f", "x");
  put(folder / "kept", "x");
  ASSERT_EQ(symlink(folder.path.c_str(), (folder / "a/link").c_str()), 0);
  remove_folder(folder / "a");
  EXPECT_EQ(list_folder(folder.path), std::vector<std::string>{"kept"});
  EXPECT_NO_THROW(remove_folder(folder / "no"));
  EXPECT_TRUE(has(message_of([&] { remove_folder(folder / "kept"); }), "it is a file"));
  EXPECT_TRUE(has(message_of([&] { remove_folder(""); }), "the path is empty"));
  EXPECT_EQ(read_file(folder / "kept"), "x");
}

TEST(Folders, OfALinkOnlyTheLinkIsRemoved) {
  Scratch folder;
  make_folder(folder / "a");
  put(folder / "a/f", "x");
  ASSERT_EQ(symlink("a", (folder / "link").c_str()), 0);
  remove_folder(folder / "link/");
  EXPECT_EQ(list_folder(folder.path), std::vector<std::string>{"a"});
  EXPECT_TRUE(file_exists(folder / "a/f"));
}

TEST(Folders, SyncAndRenameNameWhatFails) {
  Scratch folder;
  EXPECT_NO_THROW(sync_folder(folder.path));
  EXPECT_TRUE(has(message_of([&] { sync_folder(folder / "no"); }), "cannot sync the folder"));
  EXPECT_TRUE(has(message_of([&] { rename_path(folder / "no", folder / "x"); }), "cannot rename"));
}

TEST(Crc32c, HasThePublishedValues) {  // RFC 3720, B.4
  std::string zeros(32, '\0'), ones(32, '\xFF'), up, down;
  for (int i = 0; i < 32; ++i) up += char(i), down += char(31 - i);
  EXPECT_EQ(crc32c(0, zeros.data(), 32), 0x8A9136AAu);
  EXPECT_EQ(crc32c(0, ones.data(), 32), 0x62A8AB43u);
  EXPECT_EQ(crc32c(0, up.data(), 32), 0x46DD794Eu);
  EXPECT_EQ(crc32c(0, down.data(), 32), 0x113FDB5Cu);
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c(0, "", 0), 0u);
}

TEST(Crc32c, ContinuesFromAnySplit) {
  std::string bytes = noise(200);
  uint32_t whole = crc32c(0, bytes.data(), bytes.size());
  for (size_t n = 0; n <= bytes.size(); ++n)
    EXPECT_EQ(crc32c(crc32c(0, bytes.data(), n), bytes.data() + n, bytes.size() - n), whole);
}

TEST(Crc32c, OfAFileIsThatOfItsBytes) {
  Scratch folder;
  std::string bytes = noise(2500000);
  put(folder / "f", bytes);
  EXPECT_EQ(crc32c_of_file(folder / "f"), crc32c(0, bytes.data(), bytes.size()));
  EXPECT_TRUE(has(message_of([&] { crc32c_of_file(folder / "no"); }), "cannot read"));
}

TEST(FolderLock, IsHeldByOneAndFreedAtItsEnd) {
  Scratch folder;
  {
    FolderLock lock(folder.path);
    std::string refused = message_of([&] { FolderLock second(folder.path); });
    EXPECT_EQ(refused, folder.path + " is in use by another process (process " + std::to_string(getpid()) +
                           "): let it end first, or choose another folder");
  }
  EXPECT_NO_THROW(FolderLock(folder.path));
}

TEST(FolderLock, DiesWithItsProcess) {
  Scratch folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    FolderLock lock(folder.path);
    if (write(ready[1], "x", 1) == 1) pause();
    _exit(0);
  }
  char c;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  EXPECT_TRUE(has(message_of([&] { FolderLock lock(folder.path); }), "(process " + std::to_string(child) + ")"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(FolderLock(folder.path));
  close(ready[0]), close(ready[1]);
}

TEST(FolderLock, NeedsAFolder) {
  Scratch folder;
  EXPECT_TRUE(has(message_of([&] { FolderLock lock(folder / "no"); }), folder / "no/lock"));
}

}  // namespace
