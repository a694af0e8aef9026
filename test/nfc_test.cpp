// Canonical composition: pinned cases of every kind, its laws on random texts, bytes that are not UTF-8, and a million
// marks. scripts/check_tokenizers.py holds it against Hugging Face's library on every character.
#include "nfc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "random.h"
#include "utf8.h"

namespace {

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

void expect_nfc(const std::string& text, const std::string& composed) {
  EXPECT_EQ(nfc(text), composed) << text;
  EXPECT_EQ(needs_nfc(text), text != composed) << text;
}

void expect_unchanged(const std::string& text) { expect_nfc(text, text); }

// As expect_nfc, of texts that nobody wants to see.
void expect_long_nfc(const std::string& text, const std::string& composed) {
  EXPECT_TRUE(nfc(text) == composed) << text.substr(0, 20);
  EXPECT_EQ(needs_nfc(text), text != composed) << text.substr(0, 20);
}

// What composes, decomposes, reorders or blocks, beside what does nothing at all.
const std::vector<std::string> kPieces = {
    "a",      "e",      "A",      "\n",     "é",      "ấ",      "中",         "\u0301",     "\u0300", "\u0323",
    "\u0302", "\u0345", "\u0334", "\u0344", "\u0340", "\u0591", "\u1100",     "\u1161",     "\u11a8", "\u11a7",
    "가",     "각",     "ก",      "\u0915", "\u093c", "\u0958", "\u09c7",     "\u09be",     "\u212b", "\uf900",
    "\ufb1d", "\u05b4", "\u3099", "\u304b", "\u0fb2", "\u0f81", "\U0001d15e", "\U0001d165", "🙂",   "\U000e0001",
    "\xff",   "\xc3",   "\x80",   "\xed",   "\u1e9b", "\u0307", "\U00011099", "\U000110ba", "\u1ac0", "\u0897"};

std::string random_text(Random* random, int pieces) {
  std::string text;
  for (int i = 0; i < pieces; ++i) text += kPieces[random->below(int(kPieces.size()))];
  return text;
}

template <class Action>
void on_random_texts(Action action) {
  for (int seed = 0; seed < 20000; ++seed) {
    Random random(random_key(1, uint64_t(seed)));
    action(random_text(&random, random.below(12)), &random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Nfc, MostTextsAreTheirOwn) {
  for (const char* text : {"", "a", "plain text\nof lines", "naïve café", "Ωμέγα", "Ёлка", "語", "한국어", "ภาษาไทย",
                           "🏳️‍🌈", "עִבְרִית", "हिन्दी", "\u0301", "a\u0315"})
    expect_unchanged(text);
  expect_unchanged(repeated("thirty-two bytes and then é and more ", 100));
}

TEST(Nfc, ACharacterAndItsMarkBecomeOneCharacter) {
  expect_nfc("e\u0301", "é");
  expect_nfc("cafe\u0301 au lait", "café au lait");
  expect_nfc("e\u0302\u0301", "ế");
  expect_nfc("ê\u0301", "ế");
  expect_nfc("\u304b\u3099", "が");
  expect_nfc("\u09c7\u09be", "\u09cb");
  expect_nfc("\U00011099\U000110ba", "\U0001109a");
  expect_unchanged("x\u0301");  // there is no such character
}

TEST(Nfc, MarksGetTheirOrder) {
  expect_nfc("x\u0301\u0323", "x\u0323\u0301");
  expect_nfc("e\u0301\u0323", "ẹ\u0301");
  expect_nfc("é\u0323", "ẹ\u0301");
  expect_nfc("\u0301\u0323", "\u0323\u0301");
  expect_nfc("x\u0315\u0301\u0334\u0300", "x\u0334\u0301\u0300\u0315");  // those of one class stay in theirs
}

TEST(Nfc, AMarkIsBlockedByOneOfItsClassAndByAStarter) {
  expect_unchanged("a\u0305\u0301");
  expect_unchanged("a\u200d\u0301");
  expect_nfc("a\u0334\u0301", "á\u0334");
  expect_unchanged("\u09c7\u09bc\u09be");
}

TEST(Nfc, SomeCharactersAreOnlyDecomposed) {
  expect_nfc("\u212b", "Å");
  expect_nfc("\u2126", "Ω");
  expect_nfc("\u0340", "\u0300");
  expect_nfc("\u0344", "\u0308\u0301");
  expect_nfc("\u0958", "\u0915\u093c");
  expect_unchanged("\u0915\u093c");
  expect_nfc("\uf900", "豈");
  expect_nfc("\ufb1d", "\u05d9\u05b4");
  expect_nfc("\u0f81", "\u0f71\u0f80");
  expect_nfc("\u2adc", "\u2add\u0338");
  expect_nfc("\U0001d15e", "\U0001d157\U0001d165");
  expect_unchanged("ﬁ½Å①");  // what is compatible but not the same stays
}

TEST(Nfc, HangulIsComposedByArithmetic) {
  for (int syllable : {0xac00, 0xac01, 0xac1b, 0xac1c, 0xb4d0, 0xd788, 0xd7a3}) {
    int i = syllable - 0xac00;
    std::string whole, parts;
    append_utf8(&whole, unsigned(syllable));
    append_utf8(&parts, unsigned(0x1100 + i / 28 / 21));
    append_utf8(&parts, unsigned(0x1161 + i / 28 % 21));
    if (i % 28) append_utf8(&parts, unsigned(0x11a7 + i % 28));
    expect_nfc(parts, whole);
    expect_unchanged(whole);
  }
  expect_nfc("가\u11a8", "각");
  for (const char* text : {"각\u11a8", "가\u1161", "가\u11a7", "가\u11c3", "\u1100\u11a8", "\u1113\u1161",
                           "\u1100\u1176", "\u1161", "\u11a8", "\u1100"})
    expect_unchanged(text);
  expect_nfc("\u1100\u1161\u1100\u1161\u11a8", "가각");
  expect_unchanged("\u1100\u0301\u1161");
}

TEST(Nfc, CharactersThatAreYoungerThanUnicode9Stay) {
  expect_unchanged("x\u0301\u1ac0");                         // 13.0, a mark below: it would go before the other
  expect_unchanged("e\u0898\u0301");                         // 14.0: it is no mark yet, so nothing reaches across it
  expect_unchanged("\U00011935\U00011930");                  // 13.0, one character by now
  expect_unchanged("\U000105d2\u0307");                      // 16.0
  expect_nfc("x\U0001e94a\u0334", "x\u0334\U0001e94a");      // 9.0: it has a class
  expect_nfc("x\u0301\u08d4\u0323", "x\u0323\u0301\u08d4");  // 9.0
}

TEST(Nfc, BytesThatAreNotUtf8StayAndDivide) {
  expect_unchanged("\xff");
  expect_unchanged("e\xff\u0301");
  expect_unchanged("e\xcc");
  expect_unchanged("\xc3\u0301");
  expect_unchanged("\u1100\xed\xa0\x80\u1161");
  expect_unchanged("x\u0301\x80\u0323");
  expect_nfc("\xe2\x84 e\u0301\u0301\x81", "\xe2\x84 é\u0301\x81");
  expect_nfc("e\u0301\xff\xff e\u0301", "é\xff\xff é");
  expect_nfc(std::string("e\u0301\0e\u0301", 7), std::string("é\0é", 5));
}

TEST(Nfc, ASecondTimeChangesNothing) {
  on_random_texts([](const std::string& text, Random*) {
    std::string once = nfc(text);
    EXPECT_EQ(nfc(once), once) << text;
    EXPECT_FALSE(needs_nfc(once)) << text;
    EXPECT_EQ(needs_nfc(text), once != text) << text;
    EXPECT_EQ(is_utf8(once), is_utf8(text)) << text;
  });
}

TEST(Nfc, ATextsPartsMayBeComposedFirst) {
  on_random_texts([](const std::string& text, Random* random) {
    std::string rest = random_text(random, random->below(12));
    if (!is_utf8(text) || !is_utf8(rest)) return;  // bytes may only be characters together
    EXPECT_EQ(nfc(text + rest), nfc(nfc(text) + nfc(rest))) << text << " and " << rest;
    EXPECT_EQ(nfc(text + "\n" + rest), nfc(text) + "\n" + nfc(rest)) << text << " and " << rest;
    EXPECT_EQ(nfc(text + "\xff" + rest), nfc(text) + "\xff" + nfc(rest)) << text << " and " << rest;
  });
}

TEST(Nfc, AMillionMarksTakeNoLongerThanTheyShould) {
  constexpr int kMillion = 1000000;
  expect_long_nfc(repeated("\u0301", kMillion), repeated("\u0301", kMillion));
  expect_long_nfc("e" + repeated("\u0301", kMillion), "é" + repeated("\u0301", kMillion - 1));
  expect_long_nfc("x" + repeated("\u0301\u0323", kMillion),
                  "x" + repeated("\u0323", kMillion) + repeated("\u0301", kMillion));
  expect_long_nfc(repeated("e\u0301", kMillion), repeated("é", kMillion));
  expect_long_nfc(repeated("\u1100\u1161\u11a8", kMillion), repeated("각", kMillion));
  expect_long_nfc(repeated("\u1161", kMillion) + "\u212b", repeated("\u1161", kMillion) + "Å");
  expect_long_nfc("\u0f71" + repeated("\u0344", kMillion), "\u0f71" + repeated("\u0308\u0301", kMillion));
  expect_long_nfc(repeated("\xcc", kMillion), repeated("\xcc", kMillion));
  expect_long_nfc(repeated("abcdefg\n", kMillion) + "é", repeated("abcdefg\n", kMillion) + "é");
}

}  // namespace
