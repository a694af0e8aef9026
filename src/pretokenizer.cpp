// The patterns as automata: each tries its alternatives in the regex's order. None backtracks over more than the spaces
// or capitals it has just passed, and what it gives back so becomes at most two further pieces: hence linear time.
#include "pretokenizer.h"

#include "error.h"
#include "unicode.h"

namespace {

constexpr uint8_t kLetter = kLower | kUpper | kUncased;
constexpr uint8_t kSign = kMark | kOther;  // neither letter, number nor space

// The end of the characters from `at` on whose classes are in `set`.
inline size_t skip(std::string_view text, size_t at, uint8_t set) {
  while (true) {
    Character next = character_at(text, at);
    if (!(next.kind & set)) return at;
    at += next.length;
  }
}

// The same, of at most `most` characters.
inline size_t skip_some(std::string_view text, size_t at, uint8_t set, int most) {
  for (; most > 0; --most) {
    Character next = character_at(text, at);
    if (!(next.kind & set)) break;
    at += next.length;
  }
  return at;
}

// The end of 's, 't, 'm, 'd, 'll, 're or 've at `at`; `at` where there is none.
template <bool kAnyCase>
inline size_t contraction_end(std::string_view text, size_t at) {
  auto byte = [&](size_t i) {
    int b = at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
    return kAnyCase && b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b;
  };
  if (byte(0) != '\'') return at;
  switch (byte(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'l':
      return byte(2) == 'l' ? at + 3 : at;
    case 'r':
    case 'v':
      return byte(2) == 'e' ? at + 3 : at;
    case 0xC5:  // ſ is 0xC5 0xBF
      return kAnyCase && byte(2) == 0xBF ? at + 3 : at;
  }
  return at;
}

// The piece of the spaces at `at`, \s+(?!\S)|\s+: all of them at the text's end, else all but the last, which is left to
// what follows it. With kLines, \s*[\r\n]+ goes before: up to the last line end; but not at the text's end, if that is
// whole.
template <bool kLines, bool kWholeAtEnd>
inline size_t space_end(std::string_view text, size_t at) {
  size_t end = skip(text, at, kSpace | kLineEnd);
  if (kWholeAtEnd && end == text.size()) return end;
  for (size_t line = end; kLines && line > at; --line)
    if (text[line - 1] == '\n' || text[line - 1] == '\r') return line;
  if (end == text.size()) return end;
  size_t last = end - 1;
  while ((text[last] & 0xC0) == 0x80) --last;  // to the last space's first byte
  return last > at ? last : end;
}

size_t whole_text(std::string_view text, size_t) { return text.size(); }

size_t gpt2_end(std::string_view text, size_t at) {
  if (size_t end = contraction_end<false>(text, at); end > at) return end;
  size_t start = at + (text[at] == ' ');
  uint8_t kind = character_at(text, start).kind;
  for (uint8_t set : {kLetter, uint8_t(kNumber), kSign})
    if (kind & set) return skip(text, start, set);
  return space_end<false, true>(text, at);
}

// cl100k and its relatives.
template <int kMostDigits, bool kWholeAtEnd>
size_t cl100k_end(std::string_view text, size_t at) {
  if (size_t end = contraction_end<true>(text, at); end > at) return end;
  Character first = character_at(text, at);
  size_t word = first.kind & (kLetter | kNumber | kLineEnd) ? at : at + first.length;  // any other may precede a word
  if (size_t end = skip(text, word, kLetter); end > word) return end;
  if (first.kind & kNumber) return skip_some(text, at, kNumber, kMostDigits);
  size_t signs = at + (text[at] == ' ');
  if (size_t end = skip(text, signs, kSign); end > signs) return skip(text, end, kLineEnd);
  return space_end<true, kWholeAtEnd>(text, at);
}

// o200k's words are capitals, then small letters, where uncased letters and marks are both: [u°]*[l°]+, else [u°]+[l°]*.
// Without a small letter after them, the capitals and uncased ones end with the last uncased, for the first alternative
// gives back the capitals behind it; where nothing is uncased it fails, and the second takes all.
inline size_t cased_word_end(std::string_view text, size_t at) {
  constexpr uint8_t kBoth = kUncased | kMark;
  size_t end = at, uncased_end = at;
  while (true) {
    Character next = character_at(text, end);
    if (next.kind & kLower) return skip(text, end, kLower | kBoth);
    if (!(next.kind & (kUpper | kBoth))) return uncased_end > at ? uncased_end : end;
    end += next.length;
    if (next.kind & kBoth) uncased_end = end;
  }
}

size_t o200k_end(std::string_view text, size_t at) {
  Character first = character_at(text, at);
  // A mark may precede a word as any sign may, but counts as the word's own: the pieces are the same.
  size_t word = first.kind & (kLetter | kMark | kNumber | kLineEnd) ? at : at + first.length;
  if (size_t end = cased_word_end(text, word); end > word) return contraction_end<true>(text, end);
  if (first.kind & kNumber) return skip_some(text, at, kNumber, 3);
  size_t signs = at + (text[at] == ' ');
  if (size_t end = skip(text, signs, kSign); end > signs) {
    while (end < text.size() && (text[end] == '\r' || text[end] == '\n' || text[end] == '/')) ++end;
    return end;
  }
  return space_end<true, false>(text, at);
}

struct Rule {
  Pattern pattern;
  const char* name;
  PieceEnd piece_end;
  const char* regexes[4];  // its spellings, the first for tokenizer.json
};

constexpr Rule kRules[] = {
    {Pattern::none, "none", whole_text, {}},
    {Pattern::gpt2,
     "gpt2",
     gpt2_end,
     {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"}},
    {Pattern::cl100k,
     "cl100k",
     cl100k_end<3, true>,
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+)"
      R"(|\s++$|\s*[\r\n]|\s+(?!\S)|\s)"}},
    {Pattern::llama3,
     "llama3",
     cl100k_end<3, false>,
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
      R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {Pattern::qwen2,
     "qwen2",
     cl100k_end<1, false>,
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
    {Pattern::o200k,
     "o200k",
     o200k_end,
     {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
};

const Rule& rule_of(Pattern pattern) { return kRules[int(pattern)]; }

}  // namespace

const char* name_of(Pattern pattern) { return rule_of(pattern).name; }

std::vector<std::string> pattern_names() {
  std::vector<std::string> names;
  for (const Rule& rule : kRules)
    if (rule.pattern != Pattern::none) names.push_back(rule.name);
  return names;
}

Pattern pattern_named(const std::string& name) {
  std::string names;
  for (const Rule& rule : kRules) {
    if (rule.pattern == Pattern::none) continue;
    if (name == rule.name) return rule.pattern;
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
  }
  fail("there is no pattern `%s`; there are %s", name.c_str(), names.c_str());
}

const char* regex_of(Pattern pattern) { return rule_of(pattern).regexes[0]; }

bool pattern_of_regex(const std::string& regex, Pattern* pattern) {
  for (const Rule& rule : kRules)
    for (const char* known : rule.regexes) {
      if (!known || regex != known) continue;
      *pattern = rule.pattern;
      return true;
    }
  return false;
}

size_t piece_end(Pattern pattern, std::string_view text, size_t at) { return piece_end_of(pattern)(text, at); }

PieceEnd piece_end_of(Pattern pattern) { return rule_of(pattern).piece_end; }
