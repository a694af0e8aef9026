// Two sums of eight bytes at a time, each scattered after every word, by different ways.
#include "hash.h"

#include <bit>
#include <cstring>

#include "random.h"

Hash128 hash128(std::string_view bytes, Hash128 start) {
  static_assert(std::endian::native == std::endian::little, "the words below are read as little-endian");
  Hash128 h = {scatter_bits(start.high), scatter_bits(~start.low)};
  auto stir = [&](uint64_t word) {
    h.high = scatter_bits(h.high ^ word);
    h.low = scatter_bits(h.low + std::rotl(word, 29) * 0xd1342543de82ef95u);
  };
  uint64_t word;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) std::memcpy(&word, bytes.data() + at, 8), stir(word);
  word = 0;
  if (at < bytes.size()) std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  stir(word);
  stir(bytes.size());
  return h;
}
