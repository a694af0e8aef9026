#include "utf8.h"

#include <algorithm>

namespace {

// How many bytes the character has that this byte leads; 1 for ASCII and for what leads nothing.
size_t length_led_by(unsigned char lead) {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 1;
}

bool continues(unsigned char byte) { return (byte & 0xc0) == 0x80; }

// May `second` follow `lead`? Beyond being a continuation byte: no overlong forms, no surrogates, nothing above
// U+10FFFF.
bool may_follow(unsigned char lead, unsigned char second) {
  unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high;
}

// How many bytes at the end of `bytes` begin a character that further bytes could complete.
size_t unfinished_bytes(std::string_view bytes) {
  auto at_end = [&](size_t i) { return static_cast<unsigned char>(bytes[bytes.size() - i]); };  // 1 is the last byte
  for (size_t n = 1; n <= std::min<size_t>(3, bytes.size()); ++n) {
    if (continues(at_end(n))) continue;  // its lead stands further left
    bool unfinished = length_led_by(at_end(n)) > n && (n == 1 || may_follow(at_end(n), at_end(n - 1)));
    return unfinished ? n : 0;
  }
  return 0;
}

}  // namespace

size_t utf8_length(std::string_view text, size_t at) {
  if (at >= text.size()) return 0;
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (byte(0) < 0x80) return 1;
  size_t length = length_led_by(byte(0));
  if (length == 1 || length > text.size() - at || !may_follow(byte(0), byte(1))) return 0;
  for (size_t i = 2; i < length; ++i)
    if (!continues(byte(i))) return 0;
  return length;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

size_t character_border(std::string_view text, size_t at) {
  for (size_t i = at; at - i < 4; --i) {
    if (!continues(text[i])) return i;
    if (i == 0) break;
  }
  return at;
}

void append_utf8(std::string* s, unsigned code) {
  if (code < 0x80) {
    *s += char(code);
  } else if (code < 0x800) {
    *s += char(0xC0 | code >> 6);
    *s += char(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *s += char(0xE0 | code >> 12);
    *s += char(0x80 | (code >> 6 & 0x3F));
    *s += char(0x80 | (code & 0x3F));
  } else {
    *s += char(0xF0 | code >> 18);
    *s += char(0x80 | (code >> 12 & 0x3F));
    *s += char(0x80 | (code >> 6 & 0x3F));
    *s += char(0x80 | (code & 0x3F));
  }
}

std::string Utf8Stream::push(std::string_view bytes) {
  std::string whole = pending_;
  whole += bytes;
  size_t keep = unfinished_bytes(whole);
  pending_ = whole.substr(whole.size() - keep);
  whole.resize(whole.size() - keep);
  return whole;
}

std::string Utf8Stream::flush() {
  std::string rest;
  rest.swap(pending_);
  return rest;
}
