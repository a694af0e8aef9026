// Documents and the way from them to batches.
//
// A document is a run of tokens; its targets are its own tokens shifted by one, end-of-text last. A target may be
// masked: what nobody could predict is not a target. Documents longer than T are cut into windows (the last token's
// target is then the next window's first). The loader shuffles pieces (whole documents and windows), packs them into
// rows of at most T tokens and hands out batches. An epoch's order depends on (seed, epoch) alone, so a position is two
// numbers and is resumed exactly.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "segments.h"

// Documents, end to end.
struct Documents {
  std::vector<uint16_t> tokens;      // of all documents
  std::vector<uint8_t> predictable;  // as long as tokens: may this token be a target? (a first token: in a stream only)
  std::vector<uint8_t> end_predictable;  // a document: is its end-of-text a target?
  std::vector<int64_t> starts = {0};     // starts[i] … starts[i + 1] are document i
  int count() const { return int(starts.size()) - 1; }
  int64_t length(int document) const { return starts[document + 1] - starts[document]; }
};

// A piece of a document as a training segment: inputs tokens[start, start + length).
struct Piece {
  int document;
  int64_t start;  // index into Documents::tokens
  int length;
};

// One step's (or micro-batch's) worth of rows, packed without padding: segments lie end to end.
struct Batch {
  std::vector<int> tokens, targets;  // one a row; a target of −1 is masked
  std::vector<Segment> segments;     // of pass 1: position 0, own_kv = row
  std::vector<int> row_of_segment;   // which of the `sequences` rows of T each segment was packed into, increasing
  int sequences = 0;                 // rows of T
  int rows() const { return int(tokens.size()); }
  int target_count() const;
};

enum class Pack { documents, stream };

// The documents joined, each followed by an end-of-text token; empty ones are left out. An end-of-text is a target
// where its document says so; the token after it is a target where it is predictable (in texts; a puzzle's first token
// is not).
class JoinedDocuments {
 public:
  explicit JoinedDocuments(const Documents& documents);
  int64_t length() const { return starts_.back(); }
  // Appends tokens and targets [position, position + length) to the batch. The stream is a ring: its last end-of-text
  // is followed by its first token.
  void append(Batch* batch, int64_t position, int64_t length) const;

 private:
  const Documents& documents_;
  std::vector<int> kept_;              // the documents that are not empty
  std::vector<int64_t> starts_ = {0};  // where each of them starts in the stream
};

struct DataPosition {
  int64_t epoch = 0, row = 0;  // rows of T already taken from this epoch
  bool operator==(const DataPosition&) const = default;
};

class Loader {
 public:
  // pack documents: every piece that has a target once an epoch, in shuffled order, each packed into the fullest of a
  // few open rows that has room for it; the rows are shuffled again. pack stream: documents joined by end-of-text (as
  // llm.c), cut into rows of T whose segment is the whole row: attention and feedback cross documents; masks hold. Rows
  // are shuffled; what is left over is dropped, but never the only row. Windows of long documents and rows of a stream
  // start at an offset drawn each epoch from 0 … T − 1, so borders move. Fails for T < 2 and where nothing is a target.
  // Keeps a reference: the documents must outlive the loader.
  Loader(const Documents& documents, Pack pack, int T, uint64_t seed);
  // The next `sequences` rows of T as one batch; crosses into the next epoch as needed.
  Batch next(int sequences);
  DataPosition position() const { return position_; }  // row < rows_per_epoch(): an epoch's end is the next one's start
  void seek(DataPosition position);                    // fails where the epoch has no such row: it is other data
  int64_t rows_per_epoch();                            // of the current epoch

 private:
  void load_epoch(int64_t epoch);
  void load_pieces(uint64_t key);
  void load_stream(uint64_t key);
  const Documents& documents_;
  JoinedDocuments joined_;
  Pack pack_;
  int T_;
  uint64_t seed_;
  DataPosition position_;
  int64_t loaded_epoch_ = -1;
  // Row r of the loaded epoch is pieces_[row_starts_[r]] … pieces_[row_starts_[r + 1] − 1]; for a stream, one piece
  // whose `start` is a position in the stream.
  std::vector<Piece> pieces_;
  std::vector<int64_t> row_starts_;
};

// Validation: every piece once, in order, in batches of at most `rows` rows (one piece at least); documents longer than
// T in non-overlapping windows of T from their first token, a stream likewise. Each segment is a row of its own. A
// stream's final end-of-text is not an input: nothing follows.
std::vector<Batch> validation_batches(const Documents& documents, Pack pack, int T, int rows);

struct TextSplit {
  Documents train, validation;
};
// A text file as documents: split at lines that hold only "<|endoftext|>", else one document. The last tenth of the
// bytes is the validation split (cut at the document border nearest to it where there are several documents, so that
// none is in both and neither is empty). Every token is predictable, and each document's end-of-text; but not at the
// cut of an undivided text, where no text ends, nor at the end of a file without any marker, so that its targets are
// its bytes. Fails for missing, empty or tiny files (fewer than 2 tokens on either side) by name.
TextSplit read_text(const std::string& path);
