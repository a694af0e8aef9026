// Tokens of text: every byte and back, and characters never cut in a stream.
#include "tokenizer.h"

#include <gtest/gtest.h>

#include "random.h"

namespace {

const std::string kManyScripts = "plain, naïve, Ω≈π, 語, 🙂🏳️‍🌈, \xf4\x8f\xbf\xbf end";

std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += char(i);
  return bytes;
}

// Is it a run of whole characters? A plain decoder, one character at a time.
bool is_whole_utf8(const std::string& text) {
  size_t i = 0;
  while (i < text.size()) {
    unsigned char lead = text[i];
    size_t n = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
    if (n == 0 || i + n > text.size()) return false;
    for (size_t j = 1; j < n; ++j)
      if ((text[i + j] & 0xc0) != 0x80) return false;
    i += n;
  }
  return true;
}

TEST(Tokenizer, EveryByteIsItsOwnTokenAndComesBack) {
  auto tokens = encode(all_bytes());
  ASSERT_EQ(tokens.size(), 256u);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(tokens[i], i);
  EXPECT_EQ(decode(tokens), all_bytes());
  EXPECT_TRUE(encode("").empty());
}

TEST(Tokenizer, NoTextBecomesTheEndOfTextMarker) {
  for (int token : encode(all_bytes() + "<|endoftext|>")) EXPECT_NE(token, kEndOfText);
}

TEST(Tokenizer, SpecialsAndForeignIdsDecodeToNothing) {
  EXPECT_EQ(decode({'a', kEndOfText, 'b', -1, 257, 100000, 'c'}), "abc");
  EXPECT_EQ(decode_token(kEndOfText), "");
  EXPECT_EQ(decode_token(-1), "");
  EXPECT_EQ(decode_token(255), "\xff");
}

TEST(Utf8Stream, ShowsOnlyWholeCharactersHoweverTheTextIsCut) {
  for (int seed = 0; seed < 200; ++seed) {
    Random random(random_key(1, uint64_t(seed)));
    Utf8Stream stream;
    std::string shown;
    for (size_t at = 0; at < kManyScripts.size();) {
      size_t n = std::min<size_t>(random.below(5), kManyScripts.size() - at);
      std::string part = stream.push(kManyScripts.substr(at, n));
      ASSERT_TRUE(is_whole_utf8(part)) << part;
      shown += part;
      at += n;
    }
    EXPECT_EQ(shown, kManyScripts);
    EXPECT_EQ(stream.flush(), "");
  }
}

TEST(Utf8Stream, ShowsACharacterAtItsLastByte) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xf0"), "");
  EXPECT_EQ(stream.push("\x9f\x99"), "");
  EXPECT_EQ(stream.push("\x82!"), "\xf0\x9f\x99\x82!");
}

TEST(Utf8Stream, FlushGivesWhatIsLeftOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("ab\xe8\xaa"), "ab");
  EXPECT_EQ(stream.flush(), "\xe8\xaa");
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("c"), "c");
}

TEST(Utf8Stream, InvalidBytesPassThroughAtOnce) {
  // Lone continuations, bytes that lead nothing, an overlong form, a surrogate, beyond U+10FFFF.
  for (const char* bytes :
       {"\x80\x80\x80\x80", "\xff", "\xc0", "\xc1", "\xf5", "\xe0\x80", "\xed\xa0", "\xf0\x80", "\xf4\x90"}) {
    Utf8Stream stream;
    EXPECT_EQ(stream.push(bytes), bytes);
    EXPECT_EQ(stream.flush(), "");
  }
}

TEST(Utf8Stream, NoByteIsLostWhateverTheBytes) {
  for (int seed = 0; seed < 200; ++seed) {
    Random random(random_key(2, uint64_t(seed)));
    Utf8Stream stream;
    std::string pushed, shown;
    for (int i = 0; i < 100; ++i) {
      std::string byte(1, char(random.below(2) ? random.below(256) : 0xc0 + random.below(64)));
      pushed += byte;
      shown += stream.push(byte);
      ASSERT_LE(pushed.size() - shown.size(), 3u);
    }
    EXPECT_EQ(shown + stream.flush(), pushed);
  }
}

}  // namespace
