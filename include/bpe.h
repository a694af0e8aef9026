// Training of byte-level BPE: pieces of text are counted, then the most frequent pair of neighbours becomes a token,
// again and again. Ties go to the pair of the smallest ids, so the same text gives the same tokenizer, whatever the
// threads.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer.h"

// How often each piece occurs. Bounded: beyond `most_pieces` different ones the rarest are forgotten, at points that
// depend on the text alone. Pieces of more than 128 bytes count as several.
class PieceCounts {
 public:
  explicit PieceCounts(Pattern, int64_t most_pieces = 1 << 23);
  ~PieceCounts();
  PieceCounts(PieceCounts&&) noexcept;
  // Adds a text of any size; each text is cut into pieces on its own.
  void add(std::string_view text);
  // Counting is done some megabytes at a time, on all threads: what was added last may be waiting.
  void count_all();
  // Of what is counted: different pieces, and occurrences of those that were forgotten.
  int64_t pieces() const;
  int64_t forgotten() const;
  Pattern pattern() const;

 private:
  friend Tokenizer train_bpe(const PieceCounts&, int, const std::vector<std::string>&,
                             const std::function<void(int, int)>&);
  struct Table;
  std::unique_ptr<Table> table_;
};

// Fails where a text cannot be a special token of a trained tokenizer: tokens and special tokens share the names of a
// tokenizer.json, where a byte's name is one character, such as # or é. No merge gets a special token's name.
void require_special(const std::string& text);

// A tokenizer of at most `vocab` ids: 256 bytes, merges, specials. Fewer where no pair occurs twice any more. `progress`
// is told how many of how many merges are done.
Tokenizer train_bpe(const PieceCounts&, int vocab, const std::vector<std::string>& specials = {"<|endoftext|>"},
                    const std::function<void(int, int)>& progress = {});
