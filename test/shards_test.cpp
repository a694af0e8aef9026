// Token files: both formats there and back, mistakes by name, masks, names, files beyond 2 GiB.
#include "shards.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "data.h"
#include "random.h"
#include "scratch.h"

namespace {

template <class Id>
std::string bytes_of(const std::vector<Id>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Id));
}

template <class Id>
void put_shard(const std::string& path, const std::vector<Id>& tokens) {
  put(path, shard_header(8 * sizeof(Id), int64_t(tokens.size())) + bytes_of(tokens));
}

std::string header_of(int32_t magic, int32_t version, int32_t tokens) {
  std::vector<int32_t> numbers(256);
  numbers[0] = magic, numbers[1] = version, numbers[2] = tokens;
  return bytes_of(numbers);
}

std::vector<int> values_of(const Tokens& tokens) {
  std::vector<int> values;
  for (int64_t i = 0; i < tokens.size(); ++i) values.push_back(tokens[i]);
  return values;
}

// --- There and back --------------------------------------------------------------------------------------------------

TEST(TokenFile, OfSixteenBitsComesBack) {
  Scratch folder;
  put_shard<uint16_t>(folder / "a.bin", {50256, 0, 65535, 7});
  Tokens tokens = Tokens::map(folder / "a.bin");
  EXPECT_EQ(tokens.bits(), 16);
  EXPECT_EQ(values_of(tokens), (std::vector<int>{50256, 0, 65535, 7}));
  EXPECT_EQ(tokens.name(), folder / "a.bin");
  EXPECT_FALSE(tokens.has_mask());
  EXPECT_TRUE(tokens.may_be_target(3));
  ShardHeader header = read_shard_header(folder / "a.bin");
  EXPECT_EQ(header.bits, 16);
  EXPECT_EQ(header.tokens, 4);
}

TEST(TokenFile, OfThirtyTwoBitsComesBack) {
  Scratch folder;
  put_shard<uint32_t>(folder / "a.bin", {128000, 0, 2147483647});
  Tokens tokens = Tokens::map(folder / "a.bin");
  EXPECT_EQ(tokens.bits(), 32);
  EXPECT_EQ(values_of(tokens), (std::vector<int>{128000, 0, 2147483647}));
  EXPECT_EQ(read_shard_header(folder / "a.bin").bits, 32);
}

TEST(TokenFile, HasTheHeaderOfLlmC) {
  EXPECT_EQ(shard_header(16, 100'000'000), header_of(20240520, 1, 100'000'000));
  EXPECT_EQ(shard_header(32, INT32_MAX), header_of(20240801, 7, INT32_MAX));
  EXPECT_EQ(bits_for_vocab(50257), 16);
  EXPECT_EQ(bits_for_vocab(65536), 16);
  EXPECT_EQ(bits_for_vocab(65537), 32);
}

TEST(TokenFile, WithoutTokensIsEmpty) {
  Scratch folder;
  put_shard<uint16_t>(folder / "a.bin", {});
  put(folder / "a.mask", "");
  EXPECT_EQ(Tokens::map(folder / "a.bin").size(), 0);
}

TEST(TokenFile, StaysMappedAsLongAsACopyLives) {
  Scratch folder;
  std::vector<uint16_t> written(10000);
  for (size_t i = 0; i < written.size(); ++i) written[i] = uint16_t(i);
  put_shard(folder / "a.bin", written);
  put(folder / "a.mask", std::string(written.size(), '\1'));
  Tokens part;
  {
    Tokens whole = Tokens::map(folder / "a.bin"), copy = whole;
    part = copy.part(9000, 9010);
  }
  std::filesystem::remove(folder / "a.bin");
  EXPECT_EQ(values_of(part), std::vector<int>({9000, 9001, 9002, 9003, 9004, 9005, 9006, 9007, 9008, 9009}));
  EXPECT_TRUE(part.may_be_target(9));
}

TEST(TokenFile, GivesTheSameBatchesAsItsTokensInMemory) {
  Scratch folder;
  Random random(random_key(1));
  std::vector<uint16_t> tokens(3000);
  std::vector<uint8_t> mask(tokens.size());
  for (uint16_t& token : tokens) token = uint16_t(random.below(20) == 0 ? 256 : random.below(256));
  for (uint8_t& may : mask) may = random.below(2) == 0;
  put_shard(folder / "a.bin", tokens);
  put(folder / "a.mask", std::string(mask.begin(), mask.end()));
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader memory({Tokens(tokens, mask)}, {257, 256}, pack, 16, 1);
    Loader file({Tokens::map(folder / "a.bin")}, {257, 256}, pack, 16, 1);
    for (int i = 0; i < 100; ++i) {
      Batch a = memory.next(5), b = file.next(5);
      ASSERT_EQ(a.tokens, b.tokens);
      ASSERT_EQ(a.targets, b.targets);
      ASSERT_EQ(a.row_of_segment, b.row_of_segment);
    }
  }
}

// A file with a hole is as long as any, but takes no room.
TEST(TokenFile, BeyondTwoGibibytesIsReadToItsEnd) {
  constexpr int64_t kTokens = 1'181'116'006;  // 2.2 GiB of 16 bits
  Scratch folder;
  std::string path = folder / "large.bin";
  put(path, shard_header(16, kTokens));
  int64_t bytes = kShardHeaderBytes + 2 * kTokens;
  if (truncate(path.c_str(), bytes) != 0) GTEST_SKIP() << "the disk takes no file of 2.2 GiB";
  std::vector<uint16_t> last = {256, 5, 6, 256};
  int fd = open(path.c_str(), O_WRONLY);
  bool written = pwrite(fd, last.data(), 8, bytes - 8) == 8;
  close(fd);
  if (!written) GTEST_SKIP() << "the disk takes no file of 2.2 GiB";
  Tokens tokens = Tokens::map(path);
  ASSERT_EQ(tokens.size(), kTokens);
  EXPECT_EQ(tokens[0], 0);
  EXPECT_EQ(values_of(tokens.part(kTokens - 4, kTokens)), (std::vector<int>{256, 5, 6, 256}));
  EXPECT_EQ(tokens.find(256, kTokens - 100'000), kTokens - 4);
  EXPECT_EQ(tokens.find_beyond(6, kTokens - 3), kTokens - 2);
  Batch batch = validation_batches({tokens.part(kTokens - 4, kTokens)}, {257, 256}, Pack::documents, 8, 8).at(0);
  EXPECT_EQ(batch.targets, (std::vector<int>{6, 256}));
}

// --- Searching -------------------------------------------------------------------------------------------------------

template <class Id>
void expect_searches_right() {
  for (int size : {0, 1, 63, 64, 65, 200}) {
    for (int at = 0; at < size; ++at) {
      std::vector<Id> ids(size, Id(7));
      ids[at] = 300;
      Tokens tokens(ids);
      for (int from : {0, 1, 64, at, at + 1}) {
        if (from > size) continue;
        int64_t expected = from <= at ? at : size;
        ASSERT_EQ(tokens.find(300, from), expected) << size << " " << at << " " << from;
        ASSERT_EQ(tokens.find_beyond(300, from), expected);
        ASSERT_EQ(tokens.find_beyond(301, from), size);
        ASSERT_EQ(tokens.find(8, from), size);
      }
      ASSERT_EQ(tokens.find(7), at == 0 ? std::min(1, size) : 0);
      ASSERT_EQ(tokens.find(-1), size);
      ASSERT_EQ(tokens.find(300 + 65536), size);
    }
    EXPECT_EQ(Tokens(std::vector<Id>(size, Id(-1))).find_beyond(65535), 0);
  }
}

TEST(Tokens, AreFoundWhereverTheyStand) {
  expect_searches_right<uint16_t>();
  expect_searches_right<uint32_t>();
  EXPECT_EQ(Tokens(std::vector<uint16_t>{65535}).find_beyond(65536), 1);
  EXPECT_EQ(Tokens(std::vector<uint32_t>{65535, 65536, 0xFFFFFFFF}).find_beyond(65536), 1);
  EXPECT_EQ(Tokens(std::vector<uint32_t>{65535, 65536, 0xFFFFFFFF}).find_beyond(INT32_MAX), 2);
}

TEST(Tokens, AnIdThatTheTokenizerLacksIsNamedWithItsFile) {
  Scratch folder;
  std::vector<uint16_t> ids(100, 511);
  ids[17] = 50256;
  put_shard(folder / "a.bin", ids);
  Tokens tokens = Tokens::map(folder / "a.bin");
  EXPECT_EQ(message_of([&] { require_ids_below(50257, tokens); }), "");
  EXPECT_EQ(message_of([&] { require_ids_below(512, tokens); }),
            folder / "a.bin" +
                " holds token 50256 at position 17, but the tokenizer has 512 ids: it was made with another tokenizer");
}

// --- Mistakes --------------------------------------------------------------------------------------------------------

// What both ways to open a file say of it.
std::string refusal_of(const std::string& path) {
  std::string message = message_of([&] { Tokens::map(path); });
  EXPECT_EQ(message_of([&] { read_shard_header(path); }), message);
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(TokenFile, IsRefusedByNameWhereItIsNone) {
  Scratch folder;
  std::string path = folder / "a.bin";
  auto refusal = [&](const std::string& bytes) {
    put(path, bytes);
    return refusal_of(path);
  };
  EXPECT_EQ(refusal_of(folder / "none.bin"), "cannot read " + folder / "none.bin" + ": No such file or directory");
  EXPECT_EQ(refusal_of(folder.path), "cannot read " + folder.path + ": it is a folder, not a file");
  EXPECT_EQ(refusal_of("/dev/null"), "cannot read /dev/null: it is a device, not a file");
  std::string looks_like_text =
      path + " is not a token file: it looks like text, which ./tokenize data makes token files of";
  EXPECT_EQ(refusal("Once upon a time"), looks_like_text);
  EXPECT_EQ(refusal(std::string(5000, 'x')), looks_like_text);
  EXPECT_EQ(refusal(""), path + " is not a token file: it has 0 bytes, and a header alone has 1024");
  EXPECT_EQ(refusal(shard_header(16, 0).substr(0, 1023)),
            path + " is not a token file: it has 1023 bytes, and a header alone has 1024");
  EXPECT_EQ(refusal(header_of(20240326, 3, 0)),
            path +
                " is not a token file: its first number is 20240326, not 20240520 (16 bits a token) or 20240801 (32 "
                "bits)");
}

TEST(TokenFile, IsRefusedByWhatItIsInstead) {
  Scratch folder;
  std::string path = folder / "a.bin";
  auto refusal = [&](const std::string& bytes) {
    put(path, bytes);
    return refusal_of(path);
  };
  EXPECT_EQ(refusal("\x1f\x8b" + std::string(2000, 'x')), path + " is not a token file: it is packed (gzip)");
  std::vector<uint16_t> ids;
  for (int i = 0; i < 4000; ++i) ids.push_back(uint16_t(i * 11 % 50257));
  std::string perhaps = path +
                        " is not a token file: it is perhaps raw token ids of 16 bits without a header, as nanoGPT has "
                        "them: ./tokenize import " +
                        path + " --out FOLDER gives them one";
  EXPECT_EQ(refusal(bytes_of<uint16_t>(ids)), perhaps);
  ids.resize(50);
  EXPECT_EQ(refusal(bytes_of<uint16_t>(ids)), perhaps);
}

TEST(TokenFile, OfRawIdsIsMappedWithoutAHeader) {
  Scratch folder;
  std::string path = folder / "raw.bin";
  put(path, bytes_of<uint16_t>({1, 2, 50256}));
  Tokens tokens = Tokens::map_raw(path, 16);
  EXPECT_EQ(tokens.size(), 3);
  EXPECT_EQ(tokens[2], 50256);
  EXPECT_EQ(message_of([&] { Tokens::map_raw(path, 32); }),
            path + " has 6 bytes, which are no whole number of ids of 32 bits");
  put(path, shard_header(32, 0));
  EXPECT_EQ(message_of([&] { Tokens::map_raw(path, 16); }),
            path + " has a header already: ./train --data reads it as it is");
}

TEST(TokenFile, IsRefusedByNameWhereItIsCorrupt) {
  Scratch folder;
  std::string path = folder / "a.bin";
  auto refusal = [&](const std::string& bytes) {
    put(path, bytes);
    return refusal_of(path);
  };
  EXPECT_EQ(refusal(header_of(20240520, 2, 0)), path + " has version 2 of its format; only version 1 is known");
  EXPECT_EQ(refusal(header_of(20240801, 1, 0)), path + " has version 1 of its format; only version 7 is known");
  EXPECT_EQ(refusal(header_of(20240520, 1, -5)), path + " is corrupt: its header counts -5 tokens");
  std::string tokens = bytes_of<uint16_t>({1, 2, 3});
  EXPECT_EQ(refusal(shard_header(16, 3) + tokens), "");
  EXPECT_EQ(refusal(shard_header(16, 4) + tokens),
            path +
                " is truncated: its header counts 4 tokens, which take 1032 bytes, but it has 1030; copy it or make "
                "it again");
  EXPECT_EQ(refusal(shard_header(16, 2) + tokens),
            path +
                " is too long: its header counts 2 tokens, which take 1028 bytes, but it has 1030; copy it or make "
                "it again");
  EXPECT_NE(refusal(shard_header(32, 3) + tokens).find("is truncated"), std::string::npos);
  EXPECT_NE(refusal(shard_header(16, INT32_MAX) + tokens).find("which take 4294968318 bytes"), std::string::npos);
}

// --- Masks -----------------------------------------------------------------------------------------------------------

TEST(Mask, LiesBesideItsFile) {
  EXPECT_EQ(mask_path("data/train_000000.bin"), "data/train_000000.mask");
  EXPECT_EQ(mask_path("data.bin/tokens"), "data.bin/tokens.mask");
  Scratch folder;
  put_shard<uint16_t>(folder / "a.bin", {1, 2, 3, 4});
  put(folder / "a.mask", std::string("\1\0\0\1", 4));
  Tokens tokens = Tokens::map(folder / "a.bin");
  EXPECT_TRUE(tokens.has_mask());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(tokens.may_be_target(i), i % 3 == 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tokens.part(1, 4).may_be_target(i), i == 2);
}

TEST(Mask, OfAnotherSizeIsRefusedByName) {
  Scratch folder;
  put_shard<uint16_t>(folder / "a.bin", {1, 2, 3, 4});
  for (int size : {0, 3, 5}) {
    put(folder / "a.mask", std::string(size, '\1'));
    EXPECT_EQ(message_of([&] { Tokens::map(folder / "a.bin"); }), folder / "a.mask" + " has " + std::to_string(size) +
                                                                      " bytes, but " + folder / "a.bin" +
                                                                      " has 4 tokens: a mask has a byte a token");
  }
}

// --- Names -----------------------------------------------------------------------------------------------------------

// A folder "val" with files in it; names are shown without the folder.
class ShardFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "val/sub.bin");
    for (const char* name : {"train_000001.bin", "train_000000.bin", "val_000000.bin", "train_000000.mask",
                             "tokenizer.json", ".hidden.bin", "odd[1].bin", "odd1.bin", "notes[2].txt"})
      put_shard<uint16_t>(folder_ / "val/" + name, {});
  }
  std::string in(const std::string& name) const { return folder_ / "val/" + name; }
  std::string shown(const std::vector<std::string>& paths) const {
    std::string out;
    for (const std::string& path : paths) {
      EXPECT_EQ(path.find(folder_ / "val/"), 0u) << path;
      out += (out.empty() ? "" : " ") + path.substr((folder_ / "val/").size());
    }
    return out;
  }
  std::string found(const std::string& data) const {
    ShardNames names = find_shards(data);
    return shown(names.train) + " | " + shown(names.validation);
  }
  Scratch folder_;
};

TEST_F(ShardFiles, OfAFolderAreItsBinFilesSorted) {
  std::string all = "odd1.bin odd[1].bin train_000000.bin train_000001.bin | val_000000.bin";
  EXPECT_EQ(found(folder_ / "val"), all);
  EXPECT_EQ(found(folder_ / "val/"), all);
}

TEST_F(ShardFiles, OfAPatternAreThoseThatMatchAndEndInBin) {
  EXPECT_EQ(found(in("train_*.bin")), "train_000000.bin train_000001.bin | ");
  EXPECT_EQ(found(in("*_00000?.bin")), "train_000000.bin train_000001.bin | val_000000.bin");
  EXPECT_EQ(found(in("train_00000[1-9]*")), "train_000001.bin | ");
  EXPECT_EQ(found(in("*")), "odd1.bin odd[1].bin train_000000.bin train_000001.bin | val_000000.bin");
  EXPECT_EQ(found(folder_ / "*/val*"), " | val_000000.bin");
}

TEST_F(ShardFiles, WhatExistsUnderTheVeryNameIsMeant) {
  EXPECT_EQ(found(in("odd[1].bin")), "odd[1].bin | ");
  std::filesystem::remove(in("odd[1].bin"));
  EXPECT_EQ(found(in("odd[1].bin")), "odd1.bin | ");
}

TEST(ShardNames, HoldOutThoseInWhoseNameTheWordStandsAlone) {
  Scratch folder;
  auto validates = [&](const std::string& name) {
    put_shard<uint16_t>(folder / name, {});
    ShardNames names = find_shards(folder / name);
    EXPECT_EQ(names.train.size() + names.validation.size(), 1u);
    return !names.validation.empty();
  };
  for (const char* name : {"val.bin", "val_000000.bin", "fineweb_val_000001.bin", "a.val.bin", "VAL-1.bin", "2val2.bin",
                           "valid.bin", "x-Validation-0.bin", "train_val.bin", "set val.bin", "été.val.bin"})
    EXPECT_TRUE(validates(name)) << name;
  for (const char* name : {"interval_train_000.bin", "medieval_1.bin", "train.bin", "evaluation.bin", "valley.bin",
                           "vals.bin", "invalid.bin", "éval.bin", "valé.bin", "validate.bin", "va_l.bin"})
    EXPECT_FALSE(validates(name)) << name;
}

TEST_F(ShardFiles, AreToldFromTextsAndMixesByTheirName) {
  for (const std::string& data : {folder_ / "val", in("*"), in("train_000000.bin"), in("missing.bin"), in("x?"),
                                  in("odd[1].bin"), std::string("a[b]")})
    EXPECT_TRUE(names_shards(data)) << data;
  for (const std::string& data : {folder_.path, in("tokenizer.json"), in("notes[2].txt"), std::string("sums=8,cups=1"),
                                  std::string("all"), std::string("text.txt"), std::string("")})
    EXPECT_FALSE(names_shards(data)) << data;
}

TEST_F(ShardFiles, ThatAreNotThereAreNamed) {
  EXPECT_EQ(message_of([&] { find_shards(in("missing.bin")); }), "there is no token file " + in("missing.bin"));
  EXPECT_EQ(message_of([&] { find_shards(in("missing*")); }), "no token files (*.bin) match " + in("missing*"));
  EXPECT_EQ(message_of([&] { find_shards(in("*.json")); }), "no token files (*.bin) match " + in("*.json"));
  EXPECT_EQ(message_of([&] { find_shards(folder_.path); }), folder_.path + " holds no token files (*.bin)");
}

}  // namespace
