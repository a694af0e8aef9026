// A text is its own NFC but for short runs around characters that may change or compose with what stands before them.
// Runs are found by looking at each character once (UAX #15's quick check); a run is decomposed, its marks are sorted,
// and it is composed again.
#include "nfc.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "utf8.h"

namespace {

constexpr unsigned kBlock = 128, kCodes = 0x110000;

struct Mark {
  unsigned first, last;  // neighbours of one combining class
  uint8_t combining_class;
};
// A character and its canonical parts; second is 0 where there is one part alone. Ordered by the parts.
struct Decomposition {
  unsigned first, second, whole;
  bool composes;  // some parts are never composed, as Unicode has excluded them
};
#include "nfc_table.inc"

// Hangul: a syllable is a leading consonant, a vowel, and often a trailing consonant.
constexpr unsigned kLeading = 0x1100, kVowel = 0x1161, kTrailing = 0x11A7, kSyllable = 0xAC00;
constexpr unsigned kLeadings = 19, kVowels = 21, kTrailings = 28;  // kTrailing itself stands for none

struct Traits {
  uint8_t combining_class = 0;  // 0: a starter, which marks follow
  bool doubtful = false;        // may become another character, or a part of the one before it
  uint16_t decomposition = 0;   // its place in kDecompositions, from 1; 0: it has none
};

// Tells all that the table says: `traits_of` returns the traits of a character, to be changed.
template <class TraitsOf>
constexpr void tell_traits(TraitsOf traits_of) {
  for (const Mark& mark : kMarks)
    for (unsigned code = mark.first; code <= mark.last; ++code) traits_of(code).combining_class = mark.combining_class;
  uint16_t place = 0;
  for (const Decomposition& d : kDecompositions) {
    traits_of(d.whole).decomposition = ++place;
    traits_of(d.composes ? d.second : d.whole).doubtful = true;
  }
  for (unsigned i = 0; i < kVowels; ++i) traits_of(kVowel + i).doubtful = true;
  for (unsigned i = 1; i < kTrailings; ++i) traits_of(kTrailing + i).doubtful = true;
}

// Which row of traits a block of characters has. Row 0 is of those without any, and of what is no character.
constexpr auto make_row_of_block() {
  std::array<uint8_t, kCodes / kBlock + 2> row_of_block = {};
  tell_traits([&, ignored = Traits()](unsigned code) mutable -> Traits& {
    row_of_block[code / kBlock] = 1;
    return ignored;
  });
  uint8_t rows = 1;
  for (uint8_t& row : row_of_block)
    if (row) row = rows++;
  return row_of_block;
}
constexpr auto kRowOfBlock = make_row_of_block();
constexpr size_t kRows = 1 + *std::max_element(kRowOfBlock.begin(), kRowOfBlock.end());

constexpr auto make_traits() {
  std::array<std::array<Traits, kBlock>, kRows> traits = {};
  tell_traits([&](unsigned code) -> Traits& { return traits[kRowOfBlock[code / kBlock]][code % kBlock]; });
  return traits;
}
constexpr auto kTraits = make_traits();

Traits traits_of(unsigned code) { return kTraits[kRowOfBlock[code / kBlock]][code % kBlock]; }

// --- Characters, and bytes that are none, which are given codes above them

struct Symbol {
  unsigned code;
  size_t length;  // in bytes
};

Symbol symbol_at(std::string_view text, size_t at) {
  size_t length = utf8_length(text, at);
  unsigned lead = static_cast<unsigned char>(text[at]);
  if (length == 0) return {kCodes + lead, 1};
  unsigned code = length == 1 ? lead : lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (text[at + i] & 0x3F);
  return {code, length};
}

void append_symbol(std::string* text, unsigned code) {
  if (code >= kCodes)
    *text += char(code - kCodes);
  else
    append_utf8(text, code);
}

size_t end_of_ascii(std::string_view text, size_t at) {
  constexpr size_t kStep = 32;
  uint64_t words[kStep / sizeof(uint64_t)];
  for (; text.size() - at >= kStep; at += kStep) {
    std::memcpy(words, text.data() + at, kStep);
    if ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

// --- Runs

// Bytes that are to be normalized: from a character that begins anew up to the next one. Empty: there are none left.
struct Run {
  size_t begin, end;
};

size_t end_of_run(std::string_view text, size_t at) {
  while (at < text.size()) {
    Symbol symbol = symbol_at(text, at);
    Traits traits = traits_of(symbol.code);
    if (traits.combining_class == 0 && !traits.doubtful) break;
    at += symbol.length;
  }
  return at;
}

Run next_run(std::string_view text, size_t at) {
  size_t begin = at;
  uint8_t class_before = 0;
  while (at < text.size()) {
    if (size_t end = end_of_ascii(text, at); end > at) {
      begin = end - 1, at = end, class_before = 0;
      continue;
    }
    Symbol symbol = symbol_at(text, at);
    Traits traits = traits_of(symbol.code);
    bool in_order = traits.combining_class == 0 || traits.combining_class >= class_before;
    if (traits.doubtful || !in_order) return {begin, end_of_run(text, at + symbol.length)};
    if (traits.combining_class == 0) begin = at;
    class_before = traits.combining_class;
    at += symbol.length;
  }
  return {text.size(), text.size()};
}

// --- A run in NFC

struct Part {
  unsigned code;
  uint8_t combining_class;
};
using Parts = std::vector<Part>;

void decompose(unsigned code, Parts* parts) {
  Traits traits = traits_of(code);
  if (unsigned i = code - kSyllable; i < kLeadings * kVowels * kTrailings) {
    parts->push_back({kLeading + i / kTrailings / kVowels, 0});
    parts->push_back({kVowel + i / kTrailings % kVowels, 0});
    if (i % kTrailings) parts->push_back({kTrailing + i % kTrailings, 0});
  } else if (traits.decomposition) {
    const Decomposition& d = kDecompositions[traits.decomposition - 1];
    decompose(d.first, parts);
    if (d.second) decompose(d.second, parts);
  } else {
    parts->push_back({code, traits.combining_class});
  }
}

void sort_marks(Parts* parts) {
  auto is_starter = [](const Part& part) { return part.combining_class == 0; };
  auto of_lower_class = [](const Part& a, const Part& b) { return a.combining_class < b.combining_class; };
  for (auto begin = parts->begin(); begin != parts->end();) {
    auto first = std::find_if_not(begin, parts->end(), is_starter);
    begin = std::find_if(first, parts->end(), is_starter);
    if (!std::is_sorted(first, begin, of_lower_class)) std::stable_sort(first, begin, of_lower_class);
  }
}

// The character of two parts; 0 where they are none.
unsigned composed(unsigned first, unsigned second) {
  if (first - kLeading < kLeadings && second - kVowel < kVowels)
    return kSyllable + ((first - kLeading) * kVowels + (second - kVowel)) * kTrailings;
  unsigned syllable = first - kSyllable, trailing = second - kTrailing;
  if (syllable < kLeadings * kVowels * kTrailings && syllable % kTrailings == 0 && trailing - 1 < kTrailings - 1)
    return first + trailing;
  auto before = [](const Decomposition& a, const Decomposition& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  };
  auto found = std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions),
                                Decomposition{first, second, 0, false}, before);
  bool is_there = found != std::end(kDecompositions) && found->first == first && found->second == second;
  return is_there && found->composes ? found->whole : 0;
}

// A part joins the last starter where no part of its own class, or of a higher one, and no starter is between them.
void compose(Parts* parts) {
  size_t kept = 0, starter = parts->size();
  for (const Part part : *parts) {
    bool adjacent = kept == starter + 1;
    bool reaches = starter < kept && (adjacent || (*parts)[kept - 1].combining_class < part.combining_class);
    if (unsigned whole = reaches ? composed((*parts)[starter].code, part.code) : 0) {
      (*parts)[starter].code = whole;
      continue;
    }
    if (part.combining_class == 0) starter = kept;
    (*parts)[kept++] = part;
  }
  parts->resize(kept);
}

class Normalizer {
 public:
  // The run's NFC, until the next call.
  const std::string& operator()(std::string_view run) {
    parts_.clear(), result_.clear();
    for (size_t at = 0; at < run.size();) {
      Symbol symbol = symbol_at(run, at);
      decompose(symbol.code, &parts_);
      at += symbol.length;
    }
    sort_marks(&parts_);
    compose(&parts_);
    for (const Part& part : parts_) append_symbol(&result_, part.code);
    return result_;
  }

 private:
  Parts parts_;
  std::string result_;
};

}  // namespace

std::string nfc(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  Normalizer normalized;
  size_t done = 0;
  for (Run run = next_run(text, 0); run.begin < run.end; run = next_run(text, done)) {
    result += text.substr(done, run.begin - done);
    result += normalized(text.substr(run.begin, run.end - run.begin));
    done = run.end;
  }
  return result += text.substr(done);
}

bool needs_nfc(std::string_view text) {
  Normalizer normalized;
  for (Run run = next_run(text, 0); run.begin < run.end; run = next_run(text, run.end)) {
    std::string_view bytes = text.substr(run.begin, run.end - run.begin);
    if (normalized(bytes) != bytes) return true;
  }
  return false;
}
