// Text as characters: UTF-8 read one character at a time, with the classes that pre-tokenizing patterns ask for, as
// Unicode 16.0 has them. A byte that is no part of well-formed UTF-8 is a character of its own.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// Bits, so that a set of classes is a mask. Every character is in one of them.
enum CharacterClass : uint8_t {
  kLower = 1,     // \p{Ll}
  kUpper = 2,     // \p{Lu}, \p{Lt}
  kUncased = 4,   // \p{Lm}, \p{Lo}: letters without case
  kMark = 8,      // \p{M}
  kNumber = 16,   // \p{N}
  kSpace = 32,    // \s, but for line ends
  kLineEnd = 64,  // \r, \n
  kOther = 128,   // signs and all the rest, and bytes that are not UTF-8
};

struct Character {
  uint8_t kind;    // its CharacterClass; 0 at the text's end
  uint8_t length;  // bytes; 0 at the text's end
};

extern const std::array<uint8_t, 128> kClassOfAscii;

// The character at `at`, whose first byte is not ASCII.
Character character_beyond_ascii(std::string_view text, size_t at);

inline Character character_at(std::string_view text, size_t at) {
  if (at >= text.size()) return {0, 0};
  unsigned char byte = text[at];
  return byte < 0x80 ? Character{kClassOfAscii[byte], 1} : character_beyond_ascii(text, at);
}

// Is the character at `at` part of a word? \w, as Rust's regular expressions have it: letters, marks, digits and number
// letters, and signs such as _.
bool is_word_at(std::string_view text, size_t at);

// Where the character begins that ends at `end` > 0.
size_t last_character(std::string_view text, size_t end);
