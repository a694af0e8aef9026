// Characters in bytes that may be anything, and characters never cut in a stream.
#include "utf8.h"

#include <gtest/gtest.h>

#include "random.h"

namespace {

const std::string kManyScripts = "plain, naïve, Ω≈π, 語, 🙂🏳️‍🌈, \xf4\x8f\xbf\xbf end";

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

TEST(Utf8, ACharacterIsAsLongAsItsBytesSay) {
  EXPECT_EQ(utf8_length("a", 0), 1u);
  EXPECT_EQ(utf8_length("é", 0), 2u);
  EXPECT_EQ(utf8_length("語", 0), 3u);
  EXPECT_EQ(utf8_length("🙂", 0), 4u);
  for (const char* none : {"\x80", "\xc0\x80", "\xe8\xaa", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", ""})
    EXPECT_EQ(utf8_length(none, 0), 0u) << none;
  EXPECT_TRUE(is_utf8(kManyScripts));
  EXPECT_FALSE(is_utf8(kManyScripts + "\xff"));
}

TEST(Utf8, ABorderIsNeverWithinACharacter) {
  std::string text = "a語b";
  EXPECT_EQ(character_border(text, 0), 0u);
  for (size_t at : {1, 2, 3}) EXPECT_EQ(character_border(text, at), 1u);
  EXPECT_EQ(character_border(text, 4), 4u);
  EXPECT_EQ(character_border("\x80\x80\x80\x80\x80\x80", 5), 5u);
  EXPECT_EQ(character_border("\x80\x80", 1), 1u);
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
