// 128 bits that tell texts apart: of 10¹⁰ different ones no two share them, unless somebody made them to.
#pragma once
#include <cstdint>
#include <string_view>

struct Hash128 {
  uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
};

// `start`: the hash of what is thought of before the bytes.
Hash128 hash128(std::string_view bytes, Hash128 start = {});
