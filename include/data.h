// From tokens to batches.
//
// Training data is a list of token arrays, shards (shards.h): mapped files, or texts tokenized in memory, which lie as
// end-of-text, document, end-of-text, document, …, end-of-text. A document is a run of tokens between end-of-texts; its
// targets are its own tokens shifted by one, end-of-text last. A target may be masked: what nobody could predict is not
// a target. Where a shard ends within a document, the last token has no target: the next one is in another file.
//
// The loader goes through the shards in an order drawn each epoch, one at a time: it cuts a shard into pieces (whole
// documents, and windows of those longer than T), shuffles and packs them into rows of at most T tokens, and hands out
// batches. The rows of a shard depend on (seed, epoch, shard) alone, so a position is three numbers and is resumed
// exactly.
#pragma once
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "segments.h"
#include "shards.h"
#include "words.h"

class Tokenizer;

// What one must know of a tokenizer to read its tokens.
struct Vocabulary {
  int size;         // ids are below it
  int end_of_text;  // −1: none, so that a shard is one document
};
Vocabulary vocabulary_of(const Tokenizer&);

// --- Documents

struct Document {
  int64_t begin, end;  // its tokens, without end-of-text
  int64_t length() const { return end - begin; }
};

// for (Document d : Documents(tokens, end_of_text)): found as one goes; none is empty.
class Documents {
 public:
  Documents(Tokens tokens, int end_of_text) : tokens_(std::move(tokens)), end_of_text_(end_of_text) {}
  class Iterator {
   public:
    Iterator(const Documents* documents) : documents_(documents), document_(documents->first_from(0)) {}
    Document operator*() const { return document_; }
    Iterator& operator++() {
      document_ = documents_->first_from(document_.end);
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return document_.length() == 0; }

   private:
    const Documents* documents_;
    Document document_;
  };
  Iterator begin() const { return this; }
  std::default_sentinel_t end() const { return {}; }
  int64_t count() const;

 private:
  Document first_from(int64_t from) const;  // empty where there is none
  Tokens tokens_;
  int end_of_text_;
};

// --- Batches

// One step's (or micro-batch's) worth of rows, packed without padding: segments lie end to end.
struct Batch {
  std::vector<int> tokens, targets;  // one a row; a target of −1 is masked
  std::vector<Segment> segments;     // of pass 1: position 0, own_kv = row
  std::vector<int> row_of_segment;   // which of the `sequences` rows of T each segment was packed into, increasing
  int sequences = 0;                 // rows of T
  int rows() const { return int(tokens.size()); }
  int target_count() const;
};

// How rows of T come from a shard.
//   documents: every piece that has a target once an epoch, in shuffled order, each packed into the fullest of a few
//     open rows that has room for it; the rows are shuffled again.
//   stream: the tokens as they lie (as llm.c), cut into rows of T whose segment is the whole row: attention and feedback
//     cross documents; masks hold. Rows are shuffled; what is left over is dropped, but never the only row.
// Windows of long documents and rows of a stream start at an offset drawn each epoch from 0 … T − 1, so borders move.
enum class Pack { documents, stream };
template <>
struct WordTable<Pack> {
  static constexpr const char* what = "a packing";
  static constexpr Word<Pack> all[] = {{Pack::documents, "documents"}, {Pack::stream, "stream"}};
};

// A run of tokens as a training segment. Of a stream, where the run may go on at the shard's beginning.
struct Piece {
  int64_t start;
  int length;
};

// A shard's rows in one epoch: row r is pieces[starts[r]] … pieces[starts[r + 1] − 1].
struct ShardRows {
  std::vector<Piece> pieces;
  std::vector<int64_t> starts = {0};
  int64_t count() const { return int64_t(starts.size()) - 1; }
};

struct DataPosition {
  // `shard` is a place in the epoch's order, `row` counts the rows of T that were taken from that shard, by all ranks.
  int64_t epoch = 0, shard = 0, row = 0;
  bool operator==(const DataPosition&) const = default;
};

class Loader {
 public:
  // Rank `rank` of `ranks` that train together, each with the same shards and seed: a step of all takes consecutive
  // rows, of which each rank gets its part, so that no row is given twice or left out. Fails for T < 2, and where
  // nothing in any shard is a target.
  Loader(std::vector<Tokens> shards, Vocabulary, Pack, int T, uint64_t seed, int rank = 0, int ranks = 1);

  // This rank's part of the next `sequences` × ranks rows of T, as one batch; crosses into the next shard and epoch as
  // needed. Shards without targets are passed over. Fails where a shard holds an id that the vocabulary lacks.
  Batch next(int sequences);

  // The same for all ranks. The end of a shard is the beginning of the next one (even if that holds no row), the end of
  // an epoch that of the next one.
  DataPosition position() const { return position_; }
  void seek(DataPosition position);  // fails where there is no such row: it is other data

  int64_t tokens() const;  // in all shards
  int64_t shard_rows();    // of T, in the shard where position() is
  // Rows of an epoch: those of the first one's first shards, and as many a token in the others. Looks at shards of so
  // many tokens, and on until there is a row.
  double expected_rows(int64_t most_tokens = 10'000'000);

 private:
  void load(int64_t epoch, int64_t place);
  void load_next_row();
  void advance(int64_t rows);
  void skip(int64_t rows);
  std::vector<Tokens> shards_;
  Vocabulary vocabulary_;
  Pack pack_;
  int T_;
  uint64_t seed_;
  int rank_, ranks_;
  DataPosition position_;
  // What is loaded: the shard at this place of this epoch.
  int64_t loaded_epoch_ = -1, loaded_place_ = -1;
  Tokens shard_;
  ShardRows rows_;
};

// Validation: every piece once, in order, in batches of at most `rows` rows (one piece at least); documents longer than
// T in non-overlapping windows of T from their first token, a stream likewise. Each segment is a row of its own. Ends
// before the piece that would be beyond `most_tokens`, but not before the first. A stream's last token is not an input:
// what follows is not known.
std::vector<Batch> validation_batches(const std::vector<Tokens>& shards, Vocabulary, Pack, int T, int rows,
                                      int64_t most_tokens = INT64_MAX);
// Fails where nothing is to be predicted in them, and a loss would mean nothing.
void require_targets(const std::vector<Batch>&);

// --- Text

// A document before it is tokens. Each part is encoded on its own, so that borders of the mask are borders of tokens.
struct TextPart {
  std::string_view text;
  bool predictable;  // are its tokens targets?
};
struct TextDocument {
  std::vector<TextPart> parts;
  bool end_predictable;  // is its end-of-text?
};

// In memory, as shards lie: end-of-text, document, …, document, end-of-text. Empty documents are left out. 16 bits a
// token where the vocabulary fits them; a mask where there is anything to mask. Fails for a tokenizer without an
// end-of-text.
Tokens tokenize(const std::vector<TextDocument>&, const Tokenizer&);

// A text file as documents: split at lines that hold only "<|endoftext|>", else one document. The last tenth of the
// bytes is the validation split, cut at the document border nearest to it where there are several documents, so that
// none is in both and neither is empty; in an undivided text at the line's end nearest to it, where one is near, else
// between two characters. All is predictable, and each document's end-of-text; but not at the cut of an undivided text,
// where no text ends, nor at the end of a file without any marker, so that its targets are its own tokens.
struct TextFile {
  std::string path;
  std::shared_ptr<const std::string> bytes;  // what the documents are parts of
  std::vector<TextDocument> train, validation;
};
// A byte-order mark before it is left out. Fails for missing, empty or tiny files (fewer than 2 bytes on either side) by
// name, and, unless the format is "text", for what is no text (text_input.h, to which `flags` go).
TextFile read_text_file(const std::string& path, const std::string& format = "", const std::string& flags = "");

struct TextSplit {
  Tokens train, validation;
};
// The same as tokens. Fails for fewer than 2 on either side.
TextSplit tokenize(const TextFile&, const Tokenizer&);
