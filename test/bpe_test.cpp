// BPE training: against the rule done naively, whatever the threads and the parts that a text comes in.
#include "bpe.h"

#include <gtest/gtest.h>

#include <map>

#include "kernels.h"
#include "random.h"
#include "scratch.h"

namespace {

std::string draw_text(int seed, int words) {
  Random random(random_key(5, uint64_t(seed)));
  std::string text;
  for (int i = 0; i < words; ++i) {
    for (int n = 1 + random.below(7); n > 0; --n) text += "aaabbcdé"[random.below(9)];
    text += random.below(8) ? ' ' : '\n';
  }
  return text;
}

// Merges by the rule: every pair of every piece is counted anew for each.
std::vector<std::pair<std::string, std::string>> train_naively(const std::string& text, Pattern pattern, int merges) {
  std::map<std::string, int64_t> counts;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = piece_end(pattern, text, at);
    ++counts[text.substr(at, end - at)];
  }
  std::vector<std::pair<std::vector<int>, int64_t>> pieces;
  for (const auto& [piece, count] : counts) {
    std::vector<int> symbols;
    for (unsigned char byte : piece) symbols.push_back(byte);
    pieces.push_back({symbols, count});
  }
  std::vector<std::string> bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(std::string(1, char(i)));
  std::vector<std::pair<std::string, std::string>> out;
  while (int(out.size()) < merges) {
    std::map<std::pair<int, int>, int64_t> pairs;
    for (const auto& [symbols, count] : pieces)
      for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs[{symbols[i], symbols[i + 1]}] += count;
    std::pair<int, int> best;
    int64_t most = 1;
    for (const auto& [pair, count] : pairs)
      if (count > most) best = pair, most = count;
    if (most < 2) break;
    for (auto& [symbols, count] : pieces)
      for (size_t i = 0; i + 1 < symbols.size(); ++i)
        if (symbols[i] == best.first && symbols[i + 1] == best.second) {
          symbols[i] = int(bytes.size());
          symbols.erase(symbols.begin() + i + 1);
        }
    out.push_back({bytes[best.first], bytes[best.second]});
    bytes.push_back(bytes[best.first] + bytes[best.second]);
  }
  return out;
}

Tokenizer train(const std::string& text, int vocab, Pattern pattern = Pattern::gpt2) {
  PieceCounts counts(pattern);
  counts.add(text);
  return train_bpe(counts, vocab);
}

TEST(Bpe, MergesTheMostFrequentPairAgainAndAgain) {
  for (int seed = 0; seed < 20; ++seed) {
    std::string text = draw_text(seed, 300);
    auto expected = train_naively(text, Pattern::gpt2, 120);
    Tokenizer t = train(text, 256 + 120 + 1);
    ASSERT_EQ(size_t(t.vocab()), 256 + expected.size() + 1);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(t.bytes_of(256 + int(i)), expected[i].first + expected[i].second) << "merge " << i << ", seed " << seed;
  }
}

TEST(Bpe, StopsWhereNoPairOccursTwice) {
  Tokenizer t = train("abcdefg", 1000, Pattern::none);
  EXPECT_EQ(t.vocab(), 257);
  EXPECT_EQ(train("", 1000).vocab(), 257);
  EXPECT_EQ(train("abab", 1000, Pattern::none).vocab(), 258);
}

TEST(Bpe, RepeatedLettersAreMergedFromTheLeft) {
  Tokenizer t = train("aaaaaaa", 1000, Pattern::none);  // aa aa aa a, aaaa aa a
  EXPECT_EQ(t.bytes_of(256), "aa");
  EXPECT_EQ(t.encode("aaaaa"), (std::vector<int>{257, 'a'}));
}

TEST(Bpe, ThreadsChangeNothing) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += draw_text(i, 40000);
  ASSERT_GT(text.size(), size_t(3) << 20);
  set_threads(1);
  std::string one = train(text, 600).to_json();
  set_threads(3);
  EXPECT_EQ(train(text, 600).to_json(), one);
  set_threads(1);
}

TEST(Bpe, TextsCountWhateverTheOrderTheyComeIn) {
  PieceCounts forward(Pattern::llama3), backward(Pattern::llama3);
  for (int i = 0; i < 50; ++i) forward.add(draw_text(i, 100)), backward.add(draw_text(49 - i, 100));
  EXPECT_EQ(train_bpe(forward, 500).to_json(), train_bpe(backward, 500).to_json());
}

TEST(Bpe, TheRarestPiecesAreForgottenWhereThereAreTooMany) {
  auto count = [] {
    PieceCounts counts(Pattern::gpt2, 1000);
    Random random(3);
    std::string text;
    for (int i = 0; text.size() < (size_t(17) << 20); ++i) {
      text += " common";
      if (i % 2) text += " x" + std::to_string(random.below(1 << 30));
    }
    counts.add(text);
    counts.count_all();
    EXPECT_LE(counts.pieces(), 1000);
    EXPECT_GT(counts.forgotten(), 1000);
    return train_bpe(counts, 270);
  };
  Tokenizer t = count();
  EXPECT_EQ(t.encode(" common").size(), 1u);
  EXPECT_EQ(t.to_json(), count().to_json());
}

TEST(Bpe, NoMergeSpellsASpecialToken) {
  PieceCounts counts(Pattern::none);
  for (int i = 0; i < 50; ++i) counts.add("<s><s>");
  Tokenizer t = train_bpe(counts, 300, {"<s>"});
  for (int id = 0; id < t.vocab(); ++id) EXPECT_EQ(t.bytes_of(id) == "<s>", t.is_special(id)) << id;
  EXPECT_EQ(t.decode(t.encode("<s><s>")), "<s><s>");
}

TEST(Bpe, NoMergeHasTheNameOfASpecialToken) {
  PieceCounts counts(Pattern::gpt2);
  for (int i = 0; i < 50; ++i) counts.add("the the"), counts.add("語");
  Tokenizer t = train_bpe(counts, 300, {"Ġthe", "語"});  // Ġ is a space's character; 語 is no name of bytes
  EXPECT_EQ(t.decode(t.encode(" the")), " the");
  EXPECT_EQ(t.encode("Ġthe", true).size(), 1u);
  for (int id = 0; id < t.vocab(); ++id) EXPECT_NE(t.bytes_of(id), " the");
  EXPECT_EQ(t.encode("語").size(), 1u) << "it may be learnt beside the special token of the same text";
  EXPECT_FALSE(t.is_special(t.encode("語")[0]));
}

TEST(Bpe, ABytesNameCannotBeASpecialToken) {
  for (const char* name : {"#", "a", "|", "é", "ÿ", "Ġ"}) {
    std::string said = message_of([&] { require_special(name); });
    EXPECT_TRUE(has(said, "cannot be a special token")) << name << ": " << said;
  }
  for (const char* name : {"##", "語", " ", "é|", "Ġthe"}) EXPECT_EQ(message_of([&] { require_special(name); }), "");
  EXPECT_TRUE(has(message_of([] { require_special("\xe9"); }), "not UTF-8"));
}

TEST(Bpe, LongPiecesAreNoProblem) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "語文字"[i % 9];
  Tokenizer t = train(text, 300);
  EXPECT_EQ(t.decode(t.encode(text)), text);
}

TEST(Bpe, AVocabularyTooSmallForBytesIsRefused) {
  EXPECT_TRUE(has(message_of([] { train("abab", 256); }), "257"));
  EXPECT_EQ(train("abab", 257).vocab(), 257);
}

}  // namespace
