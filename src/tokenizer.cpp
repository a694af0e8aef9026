// Bytes as tokens, and UTF-8 borders in a stream of bytes.
#include "tokenizer.h"

#include <algorithm>

std::vector<int> encode(const std::string& text) {
  std::vector<int> tokens(text.size());
  for (size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<unsigned char>(text[i]);
  return tokens;
}

std::string decode_token(int token) { return token >= 0 && token < 256 ? std::string(1, char(token)) : std::string(); }

std::string decode(const std::vector<int>& tokens) {
  std::string text;
  for (int token : tokens) text += decode_token(token);
  return text;
}

namespace {

// How many bytes the character has that this byte leads; 1 for ASCII and for what leads nothing.
int utf8_length(unsigned char lead) {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 1;
}

// May `second` follow `lead`? Beyond being a continuation byte: no overlong forms, no surrogates, nothing above
// U+10FFFF (the Unicode Standard, table 3-7).
bool may_follow(unsigned char lead, unsigned char second) {
  unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high;
}

// How many bytes at the end of `bytes` begin a character that further bytes could complete.
size_t unfinished_bytes(const std::string& bytes) {
  auto at_end = [&](size_t i) { return static_cast<unsigned char>(bytes[bytes.size() - i]); };  // 1 is the last byte
  for (size_t n = 1; n <= std::min<size_t>(3, bytes.size()); ++n) {
    if ((at_end(n) & 0xc0) == 0x80) continue;  // a continuation: its lead stands further left
    bool unfinished = utf8_length(at_end(n)) > int(n) && (n == 1 || may_follow(at_end(n), at_end(n - 1)));
    return unfinished ? n : 0;
  }
  return 0;
}

}  // namespace

std::string Utf8Stream::push(const std::string& bytes) {
  std::string whole = pending_ + bytes;
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
