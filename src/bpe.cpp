// Counting pieces on all threads, and merging the most frequent pair until there are tokens enough. Each merge looks only
// at the pieces that hold the pair, and changes the counts only around it.
#include "bpe.h"

#include <algorithm>
#include <cstring>
#include <queue>
#include <unordered_map>

#include "byte_characters.h"
#include "cpu/parallel.h"
#include "error.h"
#include "program.h"
#include "tokenizer_tables.h"
#include "utf8.h"

// --- Pieces

namespace {

constexpr size_t kBlock = 1 << 20;     // bytes of text that one thread counts at a time
constexpr size_t kAtOnce = 16 << 20;   // between two looks at how many different pieces there are
constexpr size_t kLongestPiece = 128;  // bytes of a piece that are looked at together
constexpr int64_t kLeastCount = 2;     // a pair that occurs once is no token

// A place at or behind `at` where a piece ends whatever stands before: a line's end before an ASCII letter. Else `at`.
size_t certain_border(std::string_view text, size_t at) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  size_t last = std::min(text.size(), at + kBlock);
  for (size_t i = std::max<size_t>(at, 1); i < last; ++i)
    if (text[i - 1] == '\n' && letter(text[i])) return i;
  return last < text.size() ? at : last;
}

// Piece → count, by open addressing; the pieces' bytes lie end to end.
class Counts {
 public:
  struct Entry {
    uint64_t hash;
    size_t start;
    uint32_t length;
    int64_t count;
  };

  void add(std::string_view piece, int64_t count) { add(piece, hash_bytes(piece), count); }
  void add(const Counts& other) {
    for (const Entry& e : other.entries_) add(other.bytes(e), e.hash, e.count);
  }
  int64_t size() const { return int64_t(entries_.size()); }
  const std::vector<Entry>& entries() const { return entries_; }
  std::string_view bytes(const Entry& e) const { return std::string_view(bytes_).substr(e.start, e.length); }

  // Forgets the rarest, so that at most `most` are left; returns how often they occurred.
  int64_t keep_most_frequent(int64_t most) {
    std::vector<int64_t> counts;
    for (const Entry& e : entries_) counts.push_back(e.count);
    std::nth_element(counts.begin(), counts.end() - most, counts.end());
    int64_t least = *(counts.end() - most) + 1, forgotten = 0;
    Counts kept;
    for (const Entry& e : entries_) {
      if (e.count >= least)
        kept.add(bytes(e), e.hash, e.count);
      else
        forgotten += e.count;
    }
    *this = std::move(kept);
    return forgotten;
  }

 private:
  void add(std::string_view piece, uint64_t hash, int64_t count) {
    if (2 * entries_.size() >= slots_.size()) grow();
    size_t at = hash >> shift_;
    for (; slots_[at] >= 0; at = (at + 1) & (slots_.size() - 1)) {
      Entry& e = entries_[slots_[at]];
      if (e.hash != hash || bytes(e) != piece) continue;
      e.count += count;
      return;
    }
    slots_[at] = int(entries_.size());
    entries_.push_back({hash, bytes_.size(), uint32_t(piece.size()), count});
    bytes_ += piece;
  }
  void grow() {
    slots_.assign(std::max<size_t>(1024, 2 * slots_.size()), -1);
    shift_ = 64;
    for (size_t n = slots_.size(); n > 1; n /= 2) --shift_;
    for (size_t i = 0; i < entries_.size(); ++i) {
      size_t at = entries_[i].hash >> shift_;
      while (slots_[at] >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = int(i);
    }
  }
  std::vector<Entry> entries_;
  std::vector<int> slots_;
  std::string bytes_;
  int shift_ = 64;
};

void count_pieces(Pattern pattern, std::string_view text, Counts* counts) {
  PieceEnd piece_end = piece_end_of(pattern);
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = piece_end(text, at);
    std::string_view piece = text.substr(at, end - at);
    for (; piece.size() > kLongestPiece; piece.remove_prefix(character_border(piece, kLongestPiece)))
      counts->add(piece.substr(0, character_border(piece, kLongestPiece)), 1);
    counts->add(piece, 1);
  }
}

}  // namespace

struct PieceCounts::Table {
  Table(Pattern pattern, int64_t most) : pattern(pattern), most(most) {}
  Pattern pattern;
  int64_t most, forgotten = 0;
  Counts counts;
  std::string waiting;                // texts end to end, to be counted together
  std::vector<size_t> borders = {0};  // where each of them ends

  void add(std::string_view text) {
    waiting += text;
    borders.push_back(waiting.size());
    if (waiting.size() >= kAtOnce) count_waiting();
  }

  void count_waiting() {
    std::vector<Counts> counted(thread_count());
    ISA::parallel(waiting.size() > kBlock, [&](int thread, int threads) {
      for (size_t i = thread; i + 1 < borders.size(); i += threads) {
        std::string_view text = std::string_view(waiting).substr(borders[i], borders[i + 1] - borders[i]);
        count_pieces(pattern, text, &counted[thread]);
      }
    });
    for (const Counts& part : counted) counts.add(part);
    if (counts.size() > most) forgotten += counts.keep_most_frequent(most / 2);
    waiting.clear(), borders = {0};
  }
};

PieceCounts::PieceCounts(Pattern pattern, int64_t most_pieces) : table_(new Table(pattern, most_pieces)) {}
PieceCounts::~PieceCounts() = default;
PieceCounts::PieceCounts(PieceCounts&&) noexcept = default;
Pattern PieceCounts::pattern() const { return table_->pattern; }

void PieceCounts::add(std::string_view text) {
  while (text.size() > kBlock) {
    size_t cut = certain_border(text, kBlock);
    table_->add(text.substr(0, cut));
    text.remove_prefix(cut);
  }
  table_->add(text);
}

void PieceCounts::count_all() { table_->count_waiting(); }
int64_t PieceCounts::pieces() const { return table_->counts.size(); }
int64_t PieceCounts::forgotten() const { return table_->forgotten; }

// --- Merges

namespace {

using Pair = uint64_t;  // left, right
Pair pair_of(int left, int right) { return uint64_t(left) << 32 | uint32_t(right); }

class Merger {
 public:
  explicit Merger(const Counts& counts) {
    starts_.reserve(counts.entries().size() + 1);
    for (const Counts::Entry& e : counts.entries()) {
      for (unsigned char byte : counts.bytes(e)) symbols_.push_back(byte);
      lengths_.push_back(int(symbols_.size() - starts_.back()));
      starts_.push_back(symbols_.size());
      counts_.push_back(e.count);
    }
    for (size_t piece = 0; piece < counts_.size(); ++piece) count_pairs(piece, 0, lengths_[piece], 1);
    for (const auto& [pair, state] : pairs_) candidates_.push({state.count, pair});
  }

  // The most frequent pair, the smallest of equals; false where none occurs twice.
  bool most_frequent(Pair* pair) {
    while (!candidates_.empty()) {
      Candidate best = candidates_.top();
      candidates_.pop();
      int64_t count = pairs_[best.pair].count;
      if (count < kLeastCount) continue;
      if (count == best.count) return *pair = best.pair, true;
      candidates_.push({count, best.pair});  // it has become rarer since it was put there
    }
    return false;
  }

  void merge(Pair pair, int id) {
    std::vector<uint32_t> pieces = std::move(pairs_[pair].pieces);
    for (uint32_t piece : pieces) merge_in(piece, int(pair >> 32), int(uint32_t(pair)), id);
    pairs_.erase(pair);
    for (Pair made : made_)
      if (auto found = pairs_.find(made); found != pairs_.end()) candidates_.push({found->second.count, made});
    made_.clear();
  }

 private:
  struct State {
    int64_t count = 0;
    std::vector<uint32_t> pieces;  // that held it when it was made; some may no longer
  };
  struct Candidate {
    int64_t count;
    Pair pair;
    bool operator<(const Candidate& o) const { return count != o.count ? count < o.count : pair > o.pair; }
  };

  // Adds (sign 1) or takes away (−1) the pairs among symbols [begin, end) of a piece.
  void count_pairs(size_t piece, int begin, int end, int sign) {
    const int* s = &symbols_[starts_[piece]];
    for (int i = begin; i + 1 < end; ++i) {
      State& state = pairs_[pair_of(s[i], s[i + 1])];
      bool is_new = state.count == 0 && state.pieces.empty();
      state.count += sign * counts_[piece];
      if (sign < 0) continue;
      if (state.pieces.empty() || state.pieces.back() != piece) state.pieces.push_back(uint32_t(piece));
      if (is_new) made_.push_back(pair_of(s[i], s[i + 1]));
    }
  }

  void merge_in(size_t piece, int left, int right, int id) {
    int* s = &symbols_[starts_[piece]];
    int length = lengths_[piece], first = 0;
    while (first + 1 < length && !(s[first] == left && s[first + 1] == right)) ++first;
    if (first + 1 >= length) return;
    int last = length - 2;
    while (!(s[last] == left && s[last + 1] == right)) --last;
    int begin = std::max(first - 1, 0), end = std::min(last + 3, length);  // a neighbour on either side
    count_pairs(piece, begin, end, -1);
    int to = first;
    for (int from = first; from < length; ++to) {
      bool merges = from + 1 < length && s[from] == left && s[from + 1] == right;
      s[to] = merges ? id : s[from];
      from += merges ? 2 : 1;
    }
    lengths_[piece] = to;
    count_pairs(piece, begin, end - (length - to), 1);
  }

  std::vector<int> symbols_;
  std::vector<size_t> starts_ = {0};
  std::vector<int> lengths_;
  std::vector<int64_t> counts_;
  std::unordered_map<Pair, State> pairs_;
  std::vector<Pair> made_;
  std::priority_queue<Candidate> candidates_;
};

}  // namespace

void require_special(const std::string& text) {
  if (!is_utf8(text)) fail("the special token `%s` is not UTF-8", visible(text).c_str());
  std::optional<std::string> bytes = from_characters(text);
  if (!bytes || bytes->size() != 1) return;
  fail("`%s` cannot be a special token: it is the name of byte 0x%02x in a tokenizer.json; choose another, as <|%s|>",
       text.c_str(), static_cast<unsigned char>((*bytes)[0]), text.c_str());
}

Tokenizer train_bpe(const PieceCounts& counts, int vocab, const std::vector<std::string>& specials,
                    const std::function<void(int, int)>& progress) {
  int least = 256 + int(specials.size()), merges_wanted = vocab - least;
  if (merges_wanted < 0) fail("a vocabulary of %d ids is too small: bytes and special tokens take %d", vocab, least);
  for (const std::string& special : specials) require_special(special);
  counts.table_->count_waiting();
  Merger merger(counts.table_->counts);
  std::vector<Tokenizer::Merge> merges;
  std::vector<std::string> bytes;  // of each token
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(std::string(1, char(byte)));
  for (Pair pair; int(merges.size()) < merges_wanted && merger.most_frequent(&pair);) {
    int left = int(pair >> 32), right = int(uint32_t(pair));
    std::string both = bytes[left] + bytes[right];
    if (std::find(specials.begin(), specials.end(), to_characters(both)) != specials.end()) continue;  // a taken name
    merger.merge(pair, 256 + int(merges.size()));
    merges.push_back({left, right});
    bytes.push_back(std::move(both));
    if (progress) progress(int(merges.size()), merges_wanted);
  }
  return Tokenizer(counts.pattern(), merges, specials);
}
