// UTF-8 and the table of classes: a two-stage table, blocks of 128 characters and which block is whose.
#include "unicode.h"

#include <array>
#include <iterator>

#include "utf8.h"

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
  class_of_letter['f'] = kNumber;  // such as ½, which is no part of a word
  class_of_letter['_'] = kOther;   // such as _, which is
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

constexpr auto make_letters_of_words() {
  std::array<bool, 128> of_words = {};
  for (unsigned char letter : {'l', 'u', 'o', 'm', 'n', '_'}) of_words[letter] = true;
  return of_words;
}
constexpr auto kLettersOfWords = make_letters_of_words();

constexpr auto make_words() {
  std::array<std::array<bool, kBlock>, kRowCount> words = {};
  for (size_t row = 0; row < kRowCount; ++row)
    for (unsigned i = 0; i < kBlock; ++i)
      words[row][i] = kLettersOfWords[static_cast<unsigned char>(kRows[row].classes[i])];
  return words;
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
constexpr auto kWords = make_words();
constexpr auto kRowOfBlock = make_row_of_block();

constexpr unsigned kNoCode = kCodes;

struct Code {
  unsigned code;  // kNoCode: a byte that is not UTF-8
  uint8_t length;
};

inline Code code_beyond_ascii(std::string_view text, size_t at) {
  constexpr Code kAlone = {kNoCode, 1};
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
  return {code, uint8_t(length)};
}

// What a table of rows has for a character.
template <class Rows>
auto look_up(const Rows& rows, unsigned code) {
  return rows[kRowOfBlock[code / kBlock]][code % kBlock];
}

}  // namespace

constinit const std::array<uint8_t, 128> kClassOfAscii = kClasses[0];

Character character_beyond_ascii(std::string_view text, size_t at) {
  Code character = code_beyond_ascii(text, at);
  if (character.code == kNoCode) return {kOther, 1};
  return {look_up(kClasses, character.code), character.length};
}

bool is_word_at(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  unsigned char byte = text[at];
  unsigned code = byte < 0x80 ? byte : code_beyond_ascii(text, at).code;
  return code != kNoCode && look_up(kWords, code);
}

size_t last_character(std::string_view text, size_t end) {
  size_t at = character_border(text, end - 1);
  return at + character_at(text, at).length == end ? at : end - 1;
}
