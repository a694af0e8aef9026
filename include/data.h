// Documents and the way from them to batches.
//
// A document is a run of tokens; its targets are its own tokens shifted by one, end-of-text last. A target may be masked: what nobody
// could predict is not a target. Documents longer than T are cut into windows (the last token's target is then the next window's first).
// The loader shuffles pieces (whole documents and windows), packs them into rows of at most T tokens and hands out batches. An
// epoch's order depends on (seed, epoch) alone, so a position is two numbers and is resumed exactly.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "segments.h"

// Documents, end to end.
struct Documents {
  std::vector<uint16_t> tokens;     // of all documents
  std::vector<uint8_t> predictable; // as long as tokens: may this token be a target? (a document's first token never is one)
  std::vector<uint8_t> end_predictable;  // a document: is its end-of-text a target?
  std::vector<int64_t> starts = {0};     // starts[i] … starts[i + 1] are document i
  int count() const { return int(starts.size()) - 1; }
  int64_t length(int document) const { return starts[document + 1] - starts[document]; }
};

// One piece of a document as a training segment: inputs tokens[start, start + length).
struct Piece {
  int document;
  int64_t start;   // index into Documents::tokens
  int length;
};

// One step's (or micro-batch's) worth of rows, packed without padding: segments lie end to end.
struct Batch {
  std::vector<int> tokens, targets;    // one a row; a target of −1 is masked
  std::vector<Segment> segments;       // of pass 1: position 0, own_kv = row
  std::vector<int> row_of_segment;     // which of the `sequences` rows of T each segment was packed into
  int sequences = 0;                   // rows of T
  int rows() const { return int(tokens.size()); }
  int target_count() const;
};

enum class Pack { documents, stream };

struct DataPosition {
  int64_t epoch = 0, row = 0;  // rows of T already taken from this epoch
  bool operator==(const DataPosition&) const = default;
};

class Loader {
 public:
  // pack documents: pieces are packed into rows by first fit among the open rows (a few), in shuffled order.
  // pack stream: documents joined by end-of-text (as llm.c), cut into rows of T whose segment is the whole row: attention and
  // feedback cross documents; masks hold. Rows are shuffled as well; the last partial row is dropped, but never the only one.
  // Windows of long documents start at an offset drawn a epoch (0 in epoch 0 … T − 1), so that borders move.
  Loader(const Documents& documents, Pack pack, int T, uint64_t seed);
  // The next `sequences` rows of T as one batch; crosses into the next epoch as needed.
  Batch next(int sequences);
  DataPosition position() const { return position_; }
  void seek(DataPosition position);
  int64_t rows_per_epoch();  // of the current epoch

 private:
  struct Row { std::vector<Piece> pieces; };
  void load_epoch(int64_t epoch);
  const Documents& documents_;
  Pack pack_;
  int T_;
  uint64_t seed_;
  DataPosition position_;
  int64_t loaded_epoch_ = -1;
  std::vector<Row> rows_;
};

// Validation: every piece once, in order, in batches of about `rows` rows; documents longer than T in non-overlapping windows of T from
// their first token.
std::vector<Batch> validation_batches(const Documents& documents, Pack pack, int T, int rows);

struct TextSplit { Documents train, validation; };
// A text file as documents: split at lines that hold only "<|endoftext|>", else one document. The last tenth of the bytes is the
// validation split (cut at the document border nearest to it where there are several documents, so that none is in both and neither is
// empty). Fails for missing, empty or tiny files (fewer than 2 tokens on either side) by name.
TextSplit read_text(const std::string& path);
