// UTF-8 and the table of classes: a two-stage table, blocks of 128 characters and which block is whose.
#include "unicode.h"

#include <array>
#include <iterator>

namespace {

constexpr unsigned kBlock = 128, kCodes = 0x110000;

struct Row {
  unsigned first;
  const char* classes;  // of kBlock characters; the row holds for all blocks up to the next one's first
};
constexpr Row kRows[] = {
#include "unicode_table.inc"
};
constexpr size_t kRowCount = std::size(kRows);

constexpr auto make_class_of_letter() {
  std::array<uint8_t, 128> class_of_letter = {};
  uint8_t kind = 1;
  for (unsigned char letter : {'l', 'u', 'o', 'm', 'n', 's', 'e', '.'}) {  // in the order of CharacterClass's bits
    class_of_letter[letter] = kind;
    kind = uint8_t(kind << 1);
  }
  return class_of_letter;
}
constexpr auto kClassOfLetter = make_class_of_letter();

constexpr auto make_classes() {
  std::array<std::array<uint8_t, kBlock>, kRowCount> classes = {};
  for (size_t row = 0; row < kRowCount; ++row)
    for (unsigned i = 0; i < kBlock; ++i)
      classes[row][i] = kClassOfLetter[static_cast<unsigned char>(kRows[row].classes[i])];
  return classes;
}

constexpr auto make_row_of_block() {
  std::array<uint16_t, kCodes / kBlock> row_of_block = {};
  for (size_t block = 0, row = 0; block < row_of_block.size(); ++block) {
    if (row + 1 < kRowCount && kRows[row + 1].first == block * kBlock) ++row;
    row_of_block[block] = uint16_t(row);
  }
  return row_of_block;
}

constexpr auto kClasses = make_classes();
constexpr auto kRowOfBlock = make_row_of_block();

uint8_t class_of(unsigned code) { return kClasses[kRowOfBlock[code / kBlock]][code % kBlock]; }

}  // namespace

constinit const std::array<uint8_t, 128> kClassOfAscii = kClasses[0];

Character character_beyond_ascii(std::string_view text, size_t at) {
  constexpr Character kAlone = {kOther, 1};
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(text.data()) + at;
  unsigned lead = bytes[0], length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size() - at) return kAlone;  // 0xC0 and 0xC1 would be overlong
  unsigned code = lead & (0x7F >> length);
  for (unsigned i = 1; i < length; ++i) {
    if ((bytes[i] & 0xC0) != 0x80) return kAlone;
    code = code << 6 | (bytes[i] & 0x3F);
  }
  bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  bool surrogate = code >= 0xD800 && code < 0xE000;
  if (overlong || surrogate || code >= kCodes) return kAlone;
  return {class_of(code), uint8_t(length)};
}
