// Pre-tokenizing: the automata against their regexes, read literally by a small backtracking matcher; and what no regex
// library is asked: bytes that are not UTF-8, and texts of a million of the same.
#include "pretokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "scratch.h"
#include "unicode.h"

namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(Pattern pattern, const std::string& text) {
  // Of exactly the text's size, so that AddressSanitizer sees a read behind its end.
  std::unique_ptr<char[]> bytes(new char[text.size()]);
  std::copy(text.begin(), text.end(), bytes.get());
  std::string_view view(bytes.get(), text.size());
  Pieces pieces;
  for (size_t at = 0; at < text.size();) {
    size_t end = piece_end(pattern, view, at);
    EXPECT_GT(end, at);
    EXPECT_LE(end, text.size());
    if (end <= at || end > text.size()) break;
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

std::vector<Pattern> all_patterns() {
  std::vector<Pattern> patterns = {Pattern::none};
  for (const std::string& name : pattern_names()) patterns.push_back(pattern_named(name));
  return patterns;
}

// The spellings of each pattern, as the libraries and models have them.
const std::vector<std::pair<Pattern, std::string>> kSpellings = {
    {Pattern::gpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Pattern::gpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Pattern::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Pattern::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
    {Pattern::cl100k,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
    {Pattern::llama3,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::llama3,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"},
    {Pattern::qwen2,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::o200k,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};
const char* kTiktokensCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";

// A character of the random texts, with its general category: "Zs" is anything that \s takes.
struct Symbol {
  std::string bytes, category;
};
using Text = std::vector<Symbol>;

const Text kNasty = {
    {"a", "Ll"},  {"s", "Ll"},      {"t", "Ll"},      {"l", "Ll"},      {"e", "Ll"},      {"r", "Ll"},
    {"v", "Ll"},  {"é", "Ll"},      {"ſ", "Ll"},      {"𝒶", "Ll"},      {"A", "Lu"},      {"S", "Lu"},
    {"L", "Lu"},  {"E", "Lu"},      {"R", "Lu"},      {"É", "Lu"},      {"\u212a", "Lu"}, {"ǅ", "Lt"},
    {"ʰ", "Lm"},  {"ー", "Lm"},     {"ª", "Lo"},      {"中", "Lo"},     {"ب", "Lo"},      {"ก", "Lo"},
    {"𠀀", "Lo"}, {"1", "Nd"},      {"9", "Nd"},      {"٣", "Nd"},      {"½", "No"},      {"Ⅷ", "Nl"},
    {"𝟘", "Nd"},  {"\u0301", "Mn"}, {"\u0903", "Mc"}, {"\u20dd", "Me"}, {"\ufe0f", "Mn"}, {"'", "Po"},
    {"'", "Po"},  {"'", "Po"},      {"/", "Po"},      {"!", "Po"},      {"_", "Pc"},      {"’", "Pf"},
    {"€", "Sc"},  {"😀", "So"},      {"\u200d", "Cf"}, {"\x01", "Cc"},   {"\u0378", "Cn"}, {" ", "Zs"},
    {" ", "Zs"},  {" ", "Zs"},      {"\t", "Zs"},     {"\n", "Zs"},     {"\n", "Zs"},     {"\r", "Zs"},
    {"\v", "Zs"}, {"\u0085", "Zs"}, {"\u00a0", "Zs"}, {"\u2003", "Zs"}, {"\u3000", "Zs"}, {"\u2028", "Zs"},
    {"\xff", ""}, {"\x80", ""},     {"\xe4", ""},     {"\xf0", ""},
};

// A regex of the few things that the patterns have, matched by trying, in the order in which it is written.
class Regex {
 public:
  explicit Regex(const std::string& source) : source_(source) { root_ = alternatives(); }
  // The end of the match at `at`; `at` where there is none.
  size_t match(const Text& text, size_t at) const {
    size_t result = at;
    root_(text, at, [&](size_t end) { return result = end, true; });
    return result;
  }

 private:
  using Then = std::function<bool(size_t)>;  // what follows in the regex: whether it matches from there
  using Node = std::function<bool(const Text&, size_t, const Then&)>;
  using Set = std::function<bool(const Symbol&)>;

  bool take(const std::string& word) {
    if (source_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  Node alternatives() {
    std::vector<Node> nodes;
    do nodes.push_back(sequence());
    while (take("|"));
    return [nodes](const Text& text, size_t at, const Then& then) {
      for (const Node& node : nodes)
        if (node(text, at, then)) return true;
      return false;
    };
  }

  Node sequence() {
    Node result = [](const Text&, size_t at, const Then& then) { return then(at); };
    while (at_ < source_.size() && source_[at_] != '|' && source_[at_] != ')')
      result = [first = result, second = repeated(item())](const Text& text, size_t at, const Then& then) {
        return first(text, at, [&](size_t end) { return second(text, end, then); });
      };
    return result;
  }

  Node repeated(const Node& node) {
    int least = 1, most = 1;
    if (take("?"))
      least = 0;
    else if (take("*"))
      least = 0, most = 1 << 20;
    else if (take("+"))
      most = 1 << 20;
    else if (take("{1,3}"))
      most = 3;
    else
      return node;
    if (!take("+")) return greedy(node, least, most);
    return [all = greedy(node, least, most)](const Text& text, size_t at, const Then& then) {  // possessive
      size_t end = at;
      return all(text, at, [&](size_t longest) { return end = longest, true; }) && then(end);
    };
  }

  static Node greedy(const Node& node, int least, int most) {
    return [=](const Text& text, size_t at, const Then& then) {
      auto more = [&](size_t end) { return greedy(node, std::max(least - 1, 0), most - 1)(text, end, then); };
      return (most > 0 && node(text, at, more)) || (least == 0 && then(at));
    };
  }

  Node group() {
    Node node = alternatives();
    check(take(")"), "%s: a bracket is open", source_.c_str());
    return node;
  }

  Node item() {
    if (take("$")) return [](const Text& text, size_t at, const Then& then) { return at == text.size() && then(at); };
    if (take("(?:")) return group();
    if (take("(?i:")) {
      any_case_ = true;
      Node node = group();
      any_case_ = false;
      return node;
    }
    if (take("(?!"))
      return [node = group()](const Text& text, size_t at, const Then& then) {
        return !node(text, at, [](size_t) { return true; }) && then(at);
      };
    return [set = take("[") ? set_of_several() : set_of_one()](const Text& text, size_t at, const Then& then) {
      return at < text.size() && set(text[at]) && then(at + 1);
    };
  }

  Set set_of_several() {
    bool negated = take("^");
    std::vector<Set> sets;
    while (!take("]")) sets.push_back(set_of_one());
    return [=](const Symbol& symbol) {
      for (const Set& set : sets)
        if (set(symbol)) return !negated;
      return negated;
    };
  }

  Set set_of_one() {
    if (take("\\s")) return [](const Symbol& symbol) { return symbol.category == "Zs"; };
    if (take("\\S")) return [](const Symbol& symbol) { return symbol.category != "Zs"; };
    if (take("\\r")) return [](const Symbol& symbol) { return symbol.bytes == "\r"; };
    if (take("\\n")) return [](const Symbol& symbol) { return symbol.bytes == "\n"; };
    if (take("\\p{")) {
      size_t start = at_;
      while (!take("}")) ++at_;
      std::string category = source_.substr(start, at_ - 1 - start);
      return [category](const Symbol& symbol) { return symbol.category.compare(0, category.size(), category) == 0; };
    }
    return [c = std::string(1, source_[at_++]), any_case = any_case_](const Symbol& symbol) {
      return symbol.bytes == c ||
             (any_case && (symbol.bytes == std::string(1, char(toupper(c[0]))) || (c == "s" && symbol.bytes == "ſ")));
    };
  }

  std::string source_;
  size_t at_ = 0;
  bool any_case_ = false;
  Node root_;
};

std::string bytes_of(const Text& text, size_t begin, size_t end) {
  std::string bytes;
  for (size_t i = begin; i < end; ++i) bytes += text[i].bytes;
  return bytes;
}

Pieces pieces_of(const Regex& regex, const Text& text) {
  Pieces pieces;
  for (size_t at = 0; at < text.size();) {
    size_t end = regex.match(text, at);
    check(end > at, "the regex matches nothing at %zu of `%s`", at, bytes_of(text, 0, text.size()).c_str());
    pieces.push_back(bytes_of(text, at, end));
    at = end;
  }
  return pieces;
}

// Now of all nasty characters, now of a few, so that runs are long.
Text random_text(std::mt19937& random) {
  auto below = [&](size_t n) { return size_t(random() % n); };
  Text few;
  for (size_t n = below(3) ? 1 + below(6) : 0; n > 0; --n) few.push_back(kNasty[below(kNasty.size())]);
  const Text& alphabet = few.empty() ? kNasty : few;
  Text text(1 + below(12));
  for (Symbol& symbol : text) symbol = alphabet[below(alphabet.size())];
  return text;
}

// Of UTF-8, but for the single bytes in kNasty that might have become the beginning of a character.
bool is_as_meant(const Text& text) {
  std::string bytes = bytes_of(text, 0, text.size());
  size_t at = 0;
  for (const Symbol& symbol : text) {
    if (character_at(bytes, at).length != symbol.bytes.size()) return false;
    at += symbol.bytes.size();
  }
  return true;
}

TEST(PreTokenizer, CutsAsEachRegexSaysWhateverTheText) {
  auto regexes = kSpellings;
  regexes.emplace_back(Pattern::cl100k, kTiktokensCl100k);
  for (const auto& [pattern, source] : regexes) {
    Regex regex(source);
    std::mt19937 random(1);
    for (int i = 0; i < 20000; ++i) {
      Text text = random_text(random);
      if (!is_as_meant(text)) continue;
      std::string bytes = bytes_of(text, 0, text.size());
      ASSERT_EQ(pieces_of(pattern, bytes), pieces_of(regex, text)) << source << "\n" << testing::PrintToString(bytes);
    }
  }
}

TEST(PreTokenizer, Gpt2CutsWordsNumbersAndSignsWithTheSpaceBefore) {
  auto cut = [](const std::string& text) { return pieces_of(Pattern::gpt2, text); };
  EXPECT_EQ(cut("Hello world, it's  12345!"), (Pieces{"Hello", " world", ",", " it", "'s", " ", " 12345", "!"}));
  EXPECT_EQ(cut("I'LL don't'st"), (Pieces{"I", "'", "LL", " don", "'t", "'s", "t"}));
  EXPECT_EQ(cut("a\n\n  b \t"), (Pieces{"a", "\n\n ", " b", " \t"}));
  EXPECT_EQ(cut("naïve e\u0301 中文 ½x"), (Pieces{"naïve", " e", "\u0301", " 中文", " ½", "x"}));
}

TEST(PreTokenizer, Cl100kAndLlama3DifferInSpacesAtTheEndOnly) {
  for (Pattern pattern : {Pattern::cl100k, Pattern::llama3}) {
    auto cut = [&](const std::string& text) { return pieces_of(pattern, text); };
    EXPECT_EQ(cut("Hello world, I'LL pay $12345!\n\n x"),
              (Pieces{"Hello", " world", ",", " I", "'LL", " pay", " $", "123", "45", "!\n\n", " x"}));
    EXPECT_EQ(cut("(word)\t\ttab  \n\n  two"), (Pieces{"(word", ")", "\t", "\ttab", "  \n\n", " ", " two"}));
    EXPECT_EQ(cut("'ſ'start"), (Pieces{"'ſ", "'s", "tart"}));
    EXPECT_EQ(cut("a  \n"), (Pieces{"a", "  \n"}));
    EXPECT_EQ(cut("a   "), (Pieces{"a", "   "}));
  }
  EXPECT_EQ(pieces_of(Pattern::cl100k, "a \n  "), (Pieces{"a", " \n  "}));
  EXPECT_EQ(pieces_of(Pattern::llama3, "a \n  "), (Pieces{"a", " \n", "  "}));
}

TEST(PreTokenizer, Qwen2CutsDigitsOneByOne) {
  EXPECT_EQ(pieces_of(Pattern::qwen2, "in 2024."), (Pieces{"in", " ", "2", "0", "2", "4", "."}));
}

TEST(PreTokenizer, O200kEndsWordsWhereCapitalsBegin) {
  auto cut = [](const std::string& text) { return pieces_of(Pattern::o200k, text); };
  EXPECT_EQ(cut("camelCase HTMLParser don't WE'RE"), (Pieces{"camel", "Case", " HTMLParser", " don't", " WE'RE"}));
  EXPECT_EQ(cut("e\u0301a A\u0301B"), (Pieces{"e\u0301a", " A\u0301", "B"}));
  EXPECT_EQ(cut("中ABC中ABCd"), (Pieces{"中ABC中ABCd"}));
  EXPECT_EQ(cut("中ABC中AB"), (Pieces{"中ABC中", "AB"}));
  EXPECT_EQ(cut("\u0301AB"), (Pieces{"\u0301", "AB"}));  // the mark is no sign before the capitals
  EXPECT_EQ(cut("!\u0301AB"), (Pieces{"!\u0301", "AB"}));
  EXPECT_EQ(cut("https://a.b/c //\n/x"), (Pieces{"https", "://", "a", ".b", "/c", " //\n/", "x"}));
  EXPECT_EQ(cut("a \n  "), (Pieces{"a", " \n", "  "}));
}

TEST(PreTokenizer, WithoutAPatternTheTextIsOnePiece) {
  EXPECT_EQ(pieces_of(Pattern::none, "two words\n"), (Pieces{"two words\n"}));
}

TEST(PreTokenizer, APieceDependsOnTheTextFromItsBeginningOn) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    Text text = random_text(random);
    std::string bytes = bytes_of(text, 0, text.size());
    size_t at = random() % bytes.size();
    for (Pattern pattern : all_patterns())
      ASSERT_EQ(piece_end(pattern, bytes, at), at + piece_end(pattern, bytes.substr(at), 0))
          << name_of(pattern) << " " << testing::PrintToString(bytes) << " at " << at;
  }
}

TEST(PreTokenizer, PiecesCoverAnyBytes) {
  const std::string edges =
      std::string(1, '\0') + "\n 'az\x7F\x80\xA0\xBF\xC0\xC2\xC5\xDF\xE0\xE2\xED\xEF\xF0\xF4\xF5\xFF";
  std::mt19937 random(4);
  for (int i = 0; i < 50000; ++i) {
    std::string bytes(1 + random() % 8, ' ');
    for (char& byte : bytes) byte = edges[random() % edges.size()];
    for (Pattern pattern : all_patterns()) {
      std::string joined;
      for (const std::string& piece : pieces_of(pattern, bytes)) joined += piece;
      ASSERT_EQ(joined, bytes) << name_of(pattern);
    }
  }
}

TEST(PreTokenizer, AByteThatIsNotUtf8IsASign) {
  EXPECT_EQ(pieces_of(Pattern::gpt2, "a\xFF\xC3 \x80z\xE4\xB8"), (Pieces{"a", "\xFF\xC3", " \x80", "z", "\xE4\xB8"}));
  EXPECT_EQ(pieces_of(Pattern::llama3, "\xFFword\xC3"), (Pieces{"\xFFword", "\xC3"}));
  EXPECT_EQ(pieces_of(Pattern::o200k, "\xE4\xB8word"), (Pieces{"\xE4\xB8", "word"}));
}

// Would take hours, were a run of characters looked at again for each of its pieces.
TEST(PreTokenizer, AMillionOfAnythingTakesLinearTime) {
  const std::vector<std::string> repeated = {
      "^",          "a",  "A",      "1",        " ",       "\n", "\r\n", " \n",     "\n ", "\u3000",
      "\t\u2003\n", "中", "\u0301", "A\u0301",  "ªA",      "'",  "'s",   "/",       "/\n", "!\n",
      " a",         " '", "\xFF",   "\xE4\xB8", "a\u0301", "😀",  "!A",   "\u0301A", "1a"};
  for (const std::string& unit : repeated) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    for (const char* behind : {"", "x"})
      for (Pattern pattern : all_patterns()) {
        std::string whole = text + behind;
        size_t at = 0;
        while (at < whole.size()) at = piece_end(pattern, whole, at);
        EXPECT_EQ(at, whole.size());
      }
  }
}

// The same, by counting: what is behind a run of spaces or capitals lies within three pieces of its beginning, so none
// of the run is passed more than three times.
TEST(PreTokenizer, ARunThatIsBacktrackedOverIsAtMostThreePieces) {
  const std::vector<std::string> spaces = {" ", "\t", "\n", "\r", "\u3000"}, cased = {"A", "É", "中", "\u0301", "ª"};
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const std::vector<std::string>& alphabet = i % 2 ? spaces : cased;
    std::string run;
    for (int n = 1 + int(random() % 12); n > 0; --n) run += alphabet[random() % alphabet.size()];
    for (Pattern pattern : {Pattern::gpt2, Pattern::cl100k, Pattern::llama3, Pattern::qwen2, Pattern::o200k}) {
      if (i % 2 == 0 && pattern != Pattern::o200k) continue;
      ASSERT_LE(pieces_of(pattern, run).size(), 3u) << name_of(pattern) << testing::PrintToString(run);
      ASSERT_LE(pieces_of(pattern, run + "1").size(), 4u) << name_of(pattern) << testing::PrintToString(run);
    }
  }
}

TEST(PreTokenizer, PatternsHaveNames) {
  EXPECT_EQ(pattern_names(), (Pieces{"gpt2", "cl100k", "llama3", "qwen2", "o200k"}));
  for (const std::string& name : pattern_names()) EXPECT_EQ(name_of(pattern_named(name)), name);
  EXPECT_EQ(message_of([] { pattern_named("gpt3"); }),
            "there is no pattern `gpt3`; there are gpt2, cl100k, llama3, qwen2, o200k");
  EXPECT_NE(message_of([] { pattern_named("none"); }), "");
}

TEST(PreTokenizer, PatternsAreKnownByTheirRegexes) {
  for (const auto& [pattern, regex] : kSpellings) {
    Pattern found = Pattern::none;
    EXPECT_TRUE(pattern_of_regex(regex, &found)) << regex;
    EXPECT_EQ(found, pattern) << regex;
  }
  for (const std::string& name : pattern_names()) {
    Pattern found = Pattern::none;
    EXPECT_TRUE(pattern_of_regex(regex_of(pattern_named(name)), &found)) << name;
    EXPECT_EQ(name_of(found), name);
  }
  Pattern found = Pattern::qwen2;
  EXPECT_FALSE(pattern_of_regex("", &found));
  EXPECT_FALSE(pattern_of_regex(R"(\p{N})", &found));
  EXPECT_FALSE(pattern_of_regex(kTiktokensCl100k, &found));  // \p{N}{1,3}+ is all digits to Hugging Face's library
  EXPECT_EQ(found, Pattern::qwen2);
  EXPECT_EQ(regex_of(Pattern::none), nullptr);
}

std::string utf8(unsigned code) {
  if (code < 0x80) return {char(code)};
  if (code < 0x800) return {char(0xC0 | code >> 6), char(0x80 | (code & 0x3F))};
  if (code < 0x10000) return {char(0xE0 | code >> 12), char(0x80 | (code >> 6 & 0x3F)), char(0x80 | (code & 0x3F))};
  return {char(0xF0 | code >> 18), char(0x80 | (code >> 12 & 0x3F)), char(0x80 | (code >> 6 & 0x3F)),
          char(0x80 | (code & 0x3F))};
}

TEST(Unicode, ClassesAreAsManyAsInUnicode16) {
  std::map<int, int> counts;
  for (unsigned code = 0; code < 0x110000; ++code) {
    std::string bytes = utf8(code);
    Character character = character_at(bytes, 0);
    bool surrogate = code >= 0xD800 && code < 0xE000;
    ASSERT_EQ(character.length, surrogate ? 1 : bytes.size()) << code;
    ++counts[character.kind];
  }
  EXPECT_EQ(counts[kLower], 2258);
  EXPECT_EQ(counts[kUpper], 1858 + 31);
  EXPECT_EQ(counts[kUncased], 404 + 136477);
  EXPECT_EQ(counts[kMark], 2501);
  EXPECT_EQ(counts[kNumber], 1911);
  EXPECT_EQ(counts[kSpace], 23);
  EXPECT_EQ(counts[kLineEnd], 2);
  EXPECT_EQ(counts.size(), 8u);
}

TEST(Unicode, CharactersHaveTheirClass) {
  for (const Symbol& symbol : kNasty) {
    const std::map<std::string, int> kinds = {{"Ll", kLower},   {"Lu", kUpper},  {"Lt", kUpper},  {"Lm", kUncased},
                                              {"Lo", kUncased}, {"Mn", kMark},   {"Mc", kMark},   {"Me", kMark},
                                              {"Nd", kNumber},  {"Nl", kNumber}, {"No", kNumber}, {"Zs", kSpace}};
    auto found = kinds.find(symbol.category);
    int kind = found == kinds.end() ? int(kOther) : found->second;
    if (symbol.bytes == "\n" || symbol.bytes == "\r") kind = kLineEnd;
    EXPECT_EQ(character_at(symbol.bytes, 0).kind, kind) << symbol.bytes;
  }
}

TEST(Unicode, WhatIsNotUtf8IsReadByteByByte) {
  for (const char* bytes :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2 ", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE4\xB8",
        "\xE4\xB8 ", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF0\x9F\x98", "\xF5\x80\x80\x80", "\xFF"}) {
    Character character = character_at(bytes, 0);
    EXPECT_EQ(character.kind, kOther) << testing::PrintToString(bytes);
    EXPECT_EQ(character.length, 1) << testing::PrintToString(bytes);
  }
  EXPECT_EQ(character_at("a", 1).length, 0);
  EXPECT_EQ(character_at("a", 1).kind, 0);
}

}  // namespace
