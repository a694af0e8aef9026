// Safetensors: what is written reads back, and no file, however wrong, is crashed on.
#include "safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "files.h"
#include "json.h"
#include "scratch.h"

namespace {

const std::vector<float> kFloats = {1, -2, 3.5f, 0, 1e-30f, 6};
const uint8_t kBytes[3] = {7, 8, 9};
const int64_t kLong = -5;

std::vector<TensorView> some_tensors() {
  return {{"bytes", "U8", {3}, kBytes},
          {"w", "F32", {2, 3}, kFloats.data()},
          {"scalar", "I64", {}, &kLong},
          {"empty", "F32", {0, 5}, nullptr}};
}

std::string file_of(const std::string& header, const std::string& data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

// What opening a file with these bytes says, without the path.
std::string refusal(const std::string& bytes) {
  Scratch folder;
  put(folder / "f", bytes);
  std::string message = message_of([&] { SafetensorsFile file(folder / "f"); });
  EXPECT_TRUE(message.empty() || has(message, folder / "f")) << message;
  size_t at = message.find(folder / "f");
  return at == std::string::npos ? message : message.erase(at, (folder / "f").size());
}

std::string refusal(const std::string& header, size_t data_bytes) {
  return refusal(file_of(header, std::string(data_bytes, 'x')));
}

TEST(Safetensors, WhatIsWrittenReadsBack) {
  Scratch folder;
  Metadata metadata = {{"format", "fullband"}, {"note", "é\n\""}};
  write_safetensors(folder / "f", some_tensors(), metadata);
  SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(std::memcmp(file.floats("w", {2, 3}), kFloats.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.find("bytes")->data, kBytes, 3), 0);
  EXPECT_EQ(std::memcmp(file.find("scalar")->data, &kLong, 8), 0);
  EXPECT_EQ(file.find("scalar")->shape.size(), 0u);
  EXPECT_EQ(file.find("empty")->bytes(), 0);
  EXPECT_EQ(file.find("no"), nullptr);
}

TEST(Safetensors, DataIsAlignedForTheMachine) {
  Scratch folder;
  write_safetensors(folder / "f", some_tensors(), {});
  std::string bytes = contents(folder / "f");
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0u);
  SafetensorsFile file(folder / "f");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.tensors()[0].data) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.find("w")->data) % 4, 0u);
}

TEST(Safetensors, TensorsOfOneTypeKeepTheirOrder) {
  Scratch folder;
  write_safetensors(folder / "f", {{"z", "F32", {1}, kFloats.data()}, {"a", "F32", {2}, kFloats.data()}}, {});
  SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.tensors()[0].name, "z");
  EXPECT_EQ(file.tensors()[1].name, "a");
}

TEST(Safetensors, AFileWithoutTensorsIsFine) {
  Scratch folder;
  write_safetensors(folder / "f", {}, {});
  EXPECT_TRUE(SafetensorsFile(folder / "f").tensors().empty());
  EXPECT_EQ(refusal("{}", 0), "");
}

TEST(Safetensors, TheChecksumIsThatOfTheWholeFile) {
  Scratch folder;
  uint32_t crc = write_safetensors_to(folder / "f", some_tensors(), {});
  std::string bytes = contents(folder / "f");
  EXPECT_EQ(crc, crc32c(0, bytes.data(), bytes.size()));
  EXPECT_EQ(crc, SafetensorsFile(folder / "f").crc());
}

TEST(Safetensors, TensorsThatAreNotAlignedAreCopiedToWhereTheyAre) {
  Scratch folder;
  std::string header = R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},)"
                       R"( "w": {"dtype": "F32", "shape": [6], "data_offsets": [1, 25]}})";
  for (int pad = 0; pad < 4; ++pad) {
    put(folder / "f",
        file_of(header + std::string(pad, ' '), "x" + std::string(reinterpret_cast<const char*>(kFloats.data()), 24)));
    SafetensorsFile file(folder / "f");
    const float* w = file.floats("w", {6});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(w) % 4, 0u);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(w[i], kFloats[i]);
  }
}

TEST(Safetensors, HeadersOfOthersAreRead) {  // members we do not know, another order, spaces
  EXPECT_EQ(refusal("  {\"b\": {\"data_offsets\": [4, 6], \"shape\": [1], \"dtype\": \"BF16\", \"more\": {}},\n"
                    "\"a\": {\"dtype\": \"F32\", \"shape\": [1, 1], \"data_offsets\": [0, 4]}, \"__metadata__\": {}}  ",
                    6),
            "");
}

TEST(Safetensors, WrongFloatsAreNamed) {
  Scratch folder;
  write_safetensors(folder / "f", some_tensors(), {});
  SafetensorsFile file(folder / "f");
  EXPECT_EQ(message_of([&] { file.floats("v", {1}); }), (folder / "f") + ": tensor `v` is missing");
  EXPECT_EQ(message_of([&] {
              file.floats("w", {3, 2});
            }),
            (folder / "f") + ": tensor `w` has the shape [2, 3], but the model's is [3, 2]");
  EXPECT_EQ(message_of([&] { file.floats("bytes", {3}); }),
            (folder / "f") + ": tensor `bytes` is U8; only F32 can be read here");
}

TEST(Safetensors, EveryTruncationIsNamedNotCrashedOn) {
  Scratch folder;
  write_safetensors(folder / "f", some_tensors(), {{"format", "x"}});
  std::string whole = contents(folder / "f");
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "") << n;
  EXPECT_TRUE(has(refusal(whole.substr(0, whole.size() - 1)), "it is truncated"));
  EXPECT_TRUE(has(refusal(whole + "x"), "1 bytes follow the last tensor"));
  EXPECT_EQ(refusal(""), ": 0 bytes are too few for a safetensors file");
  EXPECT_TRUE(has(refusal("1234567"), "7 bytes are too few"));
}

TEST(Safetensors, NoChangedByteIsCrashedOn) {
  Scratch folder;
  write_safetensors(folder / "f", some_tensors(), {{"format", "x"}});
  std::string whole = contents(folder / "f");
  for (size_t n = 0; n < whole.size() - 35; ++n) {
    std::string changed = whole;
    changed[n] = char(changed[n] ^ (n % 2 ? 0x80 : 0x01));
    refusal(changed);
  }
}

TEST(Safetensors, AGiantHeaderLengthIsRefused) {
  for (uint64_t length : {uint64_t(-1), uint64_t(-8), uint64_t(1) << 63, uint64_t(100), uint64_t(9)}) {
    std::string bytes = std::string(reinterpret_cast<const char*>(&length), 8) + "{}      ";
    EXPECT_TRUE(has(refusal(bytes), "its header is said to have")) << length;
  }
}

TEST(Safetensors, AHeaderThatIsNotJsonIsNamedByItsPlace) {
  EXPECT_EQ(refusal("", 0), " (header):1:1: expected a value, but the file ends here");
  EXPECT_TRUE(has(refusal("{\"a\" 1}", 0), " (header):1:6: expected `:`"));
  EXPECT_TRUE(has(refusal(std::string(100000, '['), 0), "nested deeper than 100"));
  EXPECT_EQ(refusal("[]", 0), " (header): should be an object");
  EXPECT_EQ(refusal("7", 0), " (header): should be an object");
  EXPECT_TRUE(has(refusal("\xFF\xFE", 0), "expected a value"));
}

TEST(Safetensors, TwoTensorsOfOneNameAreRefused) {
  EXPECT_TRUE(has(refusal(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},)"
                          R"( "a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})",
                          2),
                  "the member `a` is there twice"));
}

TEST(Safetensors, WrongMembersAreNamed) {
  auto entry = [](const std::string& e) { return refusal("{\"t\": " + e + "}", 4); };
  EXPECT_EQ(entry("3"), ": tensor `t`: should be an object with a member `dtype`");
  EXPECT_EQ(entry("{}"), ": tensor `t`: `dtype` is missing");
  EXPECT_EQ(entry(R"({"dtype": 1})"), ": tensor `t`: `dtype` should be a string");
  EXPECT_EQ(entry(R"({"dtype": "F32"})"), ": tensor `t`: `shape` is missing");
  EXPECT_EQ(entry(R"({"dtype": "F32", "shape": 1})"), ": tensor `t`: `shape` should be an array");
  EXPECT_EQ(entry(R"({"dtype": "F32", "shape": [1]})"), ": tensor `t`: `data_offsets` is missing");
  EXPECT_EQ(entry(R"({"dtype": "F9", "shape": [1], "data_offsets": [0, 4]})"),
            ": tensor `t` has the unknown dtype `F9`");
  for (const char* shape : {"[-1]", "[1.5]", "[\"1\"]", "[1e300]", "[null]", "[9007199254740993]", "[[1]]"})
    EXPECT_EQ(entry(R"({"dtype": "F32", "data_offsets": [0, 4], "shape": )" + std::string(shape) + "}"),
              ": tensor `t`: `shape` should hold whole numbers, none negative")
        << shape;
  for (const char* offsets : {"[]", "[0]", "[0, 4, 4]", "[4, 0]"})
    EXPECT_EQ(entry(R"({"dtype": "F32", "shape": [1], "data_offsets": )" + std::string(offsets) + "}"),
              ": tensor `t`: `data_offsets` should be two numbers, begin and end")
        << offsets;
  EXPECT_TRUE(has(entry(R"({"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]})"), "none negative"));
}

TEST(Safetensors, ShapesThatOverflowAreRefused) {
  auto shaped = [](const std::string& shape) {
    return refusal(R"({"t": {"dtype": "F64", "shape": )" + shape + R"(, "data_offsets": [0, 8]}})", 8);
  };
  EXPECT_TRUE(has(shaped("[4503599627370496, 4503599627370496]"), "impossible shape"));
  EXPECT_TRUE(has(shaped("[4294967296, 4294967296, 0]"), "impossible shape"));
  EXPECT_TRUE(has(shaped("[2]"), "shape [2] of F64 takes 16 bytes, but the offsets leave 8"));
  EXPECT_TRUE(has(shaped("[0]"), "takes 0 bytes"));
  EXPECT_EQ(shaped("[]"), "");
}

TEST(Safetensors, TensorsThatOverlapOrLeaveHolesAreRefused) {
  auto two = [](int a, int b, int c, int d) {
    auto entry = [](int begin, int end) {
      return text(R"({"dtype": "U8", "shape": [%d], "data_offsets": [%d, %d]})", end - begin, begin, end);
    };
    return refusal("{\"a\": " + entry(a, b) + ", \"b\": " + entry(c, d) + "}", 8);
  };
  EXPECT_EQ(two(0, 4, 4, 8), "");
  EXPECT_EQ(two(4, 8, 0, 4), "");
  EXPECT_EQ(two(0, 8, 8, 8), "");
  EXPECT_EQ(two(0, 5, 4, 8), ": tensor `b` overlaps the one before it");
  EXPECT_EQ(two(0, 8, 0, 8), ": tensor `b` overlaps the one before it");
  EXPECT_EQ(two(0, 8, 3, 3), ": tensor `b` overlaps the one before it");
  EXPECT_EQ(two(0, 3, 4, 8), ": 1 bytes before tensor `b` belong to no tensor");
  EXPECT_EQ(two(1, 4, 4, 8), ": 1 bytes before tensor `a` belong to no tensor");
  EXPECT_EQ(two(0, 4, 4, 7), ": 1 bytes follow the last tensor: the file is longer than its header says");
  EXPECT_TRUE(has(two(0, 4, 4, 9), "tensor `b` ends at byte 9 of the data, but the file has only 8"));
}

TEST(Safetensors, MetadataIsTextOnly) {
  EXPECT_EQ(refusal(R"({"__metadata__": {"a": 1}})", 0), ": `__metadata__`: `a` should be a string");
  EXPECT_EQ(refusal(R"({"__metadata__": 1})", 0), ": `__metadata__` should be an object");
}

TEST(Safetensors, PathsThatAreNoFileAreNamed) {
  Scratch folder;
  EXPECT_TRUE(has(message_of([&] { SafetensorsFile f(folder / "no"); }), "No such file or directory"));
  EXPECT_EQ(message_of([&] { SafetensorsFile f(folder.path); }), "cannot read " + folder.path + ": it is not a file");
  EXPECT_TRUE(has(message_of([&] { SafetensorsFile f("/dev/zero"); }), "it is not a file"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(has(message_of([&] { SafetensorsFile f(folder / "pipe"); }), "it is not a file"));
}

TEST(Safetensors, AFullDiskLosesNothingAndLeavesNothing) {
  Scratch folder;
  write_safetensors(folder / "f", some_tensors(), {});
  std::string before = contents(folder / "f");
  std::vector<float> big(100000, 1.0f);
  {
    FullDisk disk(50000);
    EXPECT_EQ(message_of([&] {
                write_safetensors(folder / "f", {{"w", "F32", {100000}, big.data()}}, {});
              }),
              "cannot write " + (folder / "f") + ": File too large");
    EXPECT_NE(message_of([&] { write_safetensors_to(folder / "g", {{"w", "F32", {100000}, big.data()}}, {}); }), "");
  }
  EXPECT_EQ(contents(folder / "f"), before);
  EXPECT_EQ(list_folder(folder.path).size(), 1u);
}

TEST(Safetensors, ANewFileIsNeverWrittenOverAnother) {
  Scratch folder;
  put(folder / "f", "mine");
  EXPECT_TRUE(has(message_of([&] { write_safetensors_to(folder / "f", {}, {}); }), "File exists"));
  EXPECT_EQ(contents(folder / "f"), "mine");
}

TEST(Safetensors, TensorsThatCannotBeWrittenLeaveNothing) {
  Scratch folder;
  EXPECT_TRUE(has(message_of([&] {
                    write_safetensors(folder / "f", {{"t", "X9", {1}, kBytes}}, {});
                  }),
                  "unknown dtype `X9`"));
  EXPECT_TRUE(has(message_of([&] {
                    write_safetensors(folder / "f", {{"t", "U8", {-1}, kBytes}}, {});
                  }),
                  "impossible shape [-1]"));
  EXPECT_TRUE(list_folder(folder.path).empty());
}

TEST(SafetensorsDeathTest, WritingTwoTensorsOfOneNameIsOurMistake) {
  Scratch folder;
  EXPECT_DEATH(write_safetensors(folder / "f", {{"t", "U8", {1}, kBytes}, {"t", "U8", {1}, kBytes}}, {}),
               "two tensors are named t");
}

}  // namespace
