// UTF-8 in bytes that may be anything (the Unicode Standard, table 3-7: no overlong forms, no surrogates, nothing above
// U+10FFFF).
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

// The length of the well-formed character at `at`, or 0 where there is none.
size_t utf8_length(std::string_view text, size_t at);
bool is_utf8(std::string_view text);
// A byte-order mark, as some editors put it before a text, is no part of the text.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view without_mark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}
// The last place at or before `at` < text.size() that is not within a character; `at` where bytes are no characters.
size_t character_border(std::string_view text, size_t at);
// Appends the character's bytes; `code` is below 0x110000.
void append_utf8(std::string* s, unsigned code);

// Cuts a stream of bytes at characters' borders, so that streaming output shows whole characters: push bytes, print
// what comes back; what is left at the end comes from flush(). Invalid bytes pass through as they are.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string flush();

 private:
  std::string pending_;
};
