// From documents to batches: pieces, packing, shuffling, and text files as documents.
#include "data.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "error.h"
#include "files.h"
#include "random.h"
#include "tokenizer.h"

namespace {

constexpr int kOpenRows = 32;  // more would fill rows hardly better, and cost a longer search
constexpr int kMasked = -1;

// What follows token i of a document, as a target.
int target_after(const Documents& documents, int document, int64_t i) {
  if (i + 1 == documents.starts[document + 1]) return documents.end_predictable[document] ? kEndOfText : kMasked;
  return documents.predictable[i + 1] ? documents.tokens[i + 1] : kMasked;
}

bool has_target(const Documents& documents, const Piece& piece) {
  for (int64_t i = piece.start; i < piece.start + piece.length; ++i)
    if (target_after(documents, piece.document, i) != kMasked) return true;
  return false;
}

bool has_target(const Documents& documents, Pack pack) {
  for (int d = 0; d < documents.count(); ++d) {
    if (documents.length(d) == 0) continue;
    if (pack == Pack::stream && documents.predictable[documents.starts[d]]) return true;
    for (int64_t i = documents.starts[d]; i < documents.starts[d + 1]; ++i)
      if (target_after(documents, d, i) != kMasked) return true;
  }
  return false;
}

// Cuts a document at `offset`, offset + T, …; nothing for an empty one.
void append_windows(std::vector<Piece>* pieces, const Documents& documents, int document, int T, int offset) {
  int64_t end = documents.starts[document + 1];
  int64_t cut = documents.starts[document] + (offset > 0 ? offset : T);
  for (int64_t start = documents.starts[document]; start < end; start = cut, cut += T)
    pieces->push_back({document, start, int(std::min(cut, end) - start)});
}

template <class T>
void shuffle(std::vector<T>* items, Random random) {
  for (size_t n = items->size(); n > 1; --n) std::swap((*items)[n - 1], (*items)[random.below(int(n))]);
}

// The row of each piece, rows numbered from 0 as they are opened. A piece goes into the fullest open row that has room
// for it; where none has, a row is opened, and where too many are, the fullest is closed.
std::vector<int> pack_into_rows(const std::vector<Piece>& pieces, int T, int* rows) {
  struct OpenRow {
    int row, left;
  };
  std::vector<OpenRow> open;
  std::vector<int> row_of(pieces.size());
  *rows = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    size_t fullest = 0, best = open.size();
    for (size_t o = 0; o < open.size(); ++o) {
      if (open[o].left < open[fullest].left) fullest = o;
      if (open[o].left >= pieces[i].length && (best == open.size() || open[o].left < open[best].left)) best = o;
    }
    if (best == open.size()) {
      if (open.size() == kOpenRows) open.erase(open.begin() + fullest);
      best = open.size();
      open.push_back({(*rows)++, T});
    }
    row_of[i] = open[best].row;
    open[best].left -= pieces[i].length;
    if (open[best].left == 0) open.erase(open.begin() + best);
  }
  return row_of;
}

// Ends a segment that started at the batch's row `first`.
void add_segment(Batch* batch, int first, int sequence) {
  batch->segments.push_back({first, batch->rows() - first, 0, 0, first});
  batch->row_of_segment.push_back(sequence);
}

void append_piece(Batch* batch, const Documents& documents, const Piece& piece) {
  for (int64_t i = piece.start; i < piece.start + piece.length; ++i) {
    batch->tokens.push_back(documents.tokens[i]);
    batch->targets.push_back(target_after(documents, piece.document, i));
  }
}

}  // namespace

int Batch::target_count() const { return int(targets.size() - std::count(targets.begin(), targets.end(), kMasked)); }

JoinedDocuments::JoinedDocuments(const Documents& documents) : documents_(documents) {
  for (int d = 0; d < documents.count(); ++d) {
    if (documents.length(d) == 0) continue;
    kept_.push_back(d);
    starts_.push_back(starts_.back() + documents.length(d) + 1);
  }
}

void JoinedDocuments::append(Batch* batch, int64_t position, int64_t length) const {
  position %= this->length();
  size_t k = std::upper_bound(starts_.begin(), starts_.end(), position) - starts_.begin() - 1;
  int64_t offset = position - starts_[k];
  for (int64_t n = 0; n < length; ++n, ++offset) {
    int document = kept_[k];
    if (offset < documents_.length(document)) {
      int64_t i = documents_.starts[document] + offset;
      batch->tokens.push_back(documents_.tokens[i]);
      batch->targets.push_back(target_after(documents_, document, i));
    } else {
      k = (k + 1) % kept_.size();
      offset = -1;
      int64_t first = documents_.starts[kept_[k]];
      batch->tokens.push_back(kEndOfText);
      batch->targets.push_back(documents_.predictable[first] ? documents_.tokens[first] : kMasked);
    }
  }
}

Loader::Loader(const Documents& documents, Pack pack, int T, uint64_t seed)
    : documents_(documents), joined_(documents), pack_(pack), T_(T), seed_(seed) {
  if (T < 2) fail("the context must be at least 2 tokens, not %d", T);
  if (!has_target(documents, pack))
    fail("nothing to train on: the %d documents hold no token that is a target", documents.count());
}

Batch Loader::next(int sequences) {
  check(sequences > 0, "a batch of %d sequences", sequences);
  Batch batch;
  batch.tokens.reserve(size_t(sequences) * T_);
  batch.targets.reserve(size_t(sequences) * T_);
  for (batch.sequences = 0; batch.sequences < sequences; ++batch.sequences) {
    load_epoch(position_.epoch);
    for (int64_t p = row_starts_[position_.row]; p < row_starts_[position_.row + 1]; ++p) {
      int first = batch.rows();
      if (pack_ == Pack::stream)
        joined_.append(&batch, pieces_[p].start, pieces_[p].length);
      else
        append_piece(&batch, documents_, pieces_[p]);
      add_segment(&batch, first, batch.sequences);
    }
    if (++position_.row == rows_per_epoch()) position_ = {position_.epoch + 1, 0};
  }
  return batch;
}

int64_t Loader::rows_per_epoch() {
  load_epoch(position_.epoch);
  return int64_t(row_starts_.size()) - 1;
}

void Loader::seek(DataPosition position) {
  check(position.epoch >= 0 && position.row >= 0, "sought row %lld of epoch %lld", (long long)position.row,
        (long long)position.epoch);
  load_epoch(position.epoch);
  int64_t rows = int64_t(row_starts_.size()) - 1;
  if (position.row >= rows)
    fail("no row %lld in epoch %lld, which has %lld rows: this is not the data that the position was taken from",
         (long long)position.row, (long long)position.epoch, (long long)rows);
  position_ = position;
}

void Loader::load_epoch(int64_t epoch) {
  if (epoch == loaded_epoch_) return;
  uint64_t key = random_key(seed_, Purpose::shuffle, epoch);
  pieces_.clear();
  row_starts_.assign(1, 0);
  if (pack_ == Pack::stream)
    load_stream(key);
  else
    load_pieces(key);
  loaded_epoch_ = epoch;
}

void Loader::load_stream(uint64_t key) {
  int64_t rows = std::max<int64_t>(1, joined_.length() / T_), length = std::min<int64_t>(T_, joined_.length());
  int64_t offset = Random(random_key(key, 0)).below(T_);
  for (int64_t row = 0; row < rows; ++row) pieces_.push_back({0, offset + row * T_, int(length)});
  shuffle(&pieces_, Random(random_key(key, 1)));
  for (int64_t row = 0; row < rows; ++row) row_starts_.push_back(row + 1);
}

void Loader::load_pieces(uint64_t key) {
  std::vector<Piece> pieces;
  Random offsets(random_key(key, 0));
  for (int d = 0; d < documents_.count(); ++d)
    append_windows(&pieces, documents_, d, T_, documents_.length(d) > T_ ? offsets.below(T_) : 0);
  std::erase_if(pieces, [&](const Piece& piece) { return !has_target(documents_, piece); });
  shuffle(&pieces, Random(random_key(key, 1)));

  int rows = 0;
  std::vector<int> row_of = pack_into_rows(pieces, T_, &rows);
  // Full rows were closed early, so opening order says something of a row's filling: shuffle.
  std::vector<int> place(rows);
  std::iota(place.begin(), place.end(), 0);
  shuffle(&place, Random(random_key(key, 2)));

  row_starts_.assign(rows + 1, 0);
  for (int row : row_of) ++row_starts_[place[row] + 1];
  std::partial_sum(row_starts_.begin(), row_starts_.end(), row_starts_.begin());
  std::vector<int64_t> end(row_starts_.begin(), row_starts_.end() - 1);
  pieces_.resize(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) pieces_[end[place[row_of[i]]]++] = pieces[i];
}

std::vector<Batch> validation_batches(const Documents& documents, Pack pack, int T, int rows) {
  if (T < 2) fail("the context must be at least 2 tokens, not %d", T);
  std::vector<Batch> batches;
  // The batch that has room for a segment of this length.
  auto batch_for = [&](int length) {
    if (batches.empty() || batches.back().rows() + length > rows) batches.emplace_back();
    return &batches.back();
  };
  auto append = [&](int length, auto append_rows) {
    Batch* batch = batch_for(length);
    int first = batch->rows();
    append_rows(batch);
    add_segment(batch, first, batch->sequences++);
  };

  if (pack == Pack::stream) {
    JoinedDocuments joined(documents);
    int64_t end = joined.length() - 1;
    for (int64_t start = 0; start < end; start += T) {
      int length = int(std::min<int64_t>(T, end - start));
      append(length, [&](Batch* batch) { joined.append(batch, start, length); });
    }
  } else {
    std::vector<Piece> pieces;
    for (int d = 0; d < documents.count(); ++d) append_windows(&pieces, documents, d, T, 0);
    for (const Piece& piece : pieces)
      append(piece.length, [&](Batch* batch) { append_piece(batch, documents, piece); });
  }
  return batches;
}

namespace {

struct Span {
  size_t begin, end;
};

// The texts between lines that hold only the marker; empty ones are left out. The newline before a marker is part of
// its line, not of the text.
std::vector<Span> split_at_markers(std::string_view bytes, bool* marked) {
  constexpr std::string_view marker = "<|endoftext|>";
  std::vector<Span> spans;
  auto add = [&](size_t begin, size_t end) {
    if (begin < end) spans.push_back({begin, end});
  };
  *marked = false;
  size_t begin = 0;
  for (size_t at = bytes.find(marker); at != bytes.npos; at = bytes.find(marker, at + 1)) {
    size_t line_end = at + marker.size();
    if (line_end < bytes.size() && bytes[line_end] == '\r') ++line_end;
    bool alone = (at == 0 || bytes[at - 1] == '\n') && (line_end == bytes.size() || bytes[line_end] == '\n');
    if (!alone) continue;
    size_t end = at;
    if (end > begin) --end;
    if (end > begin && bytes[end - 1] == '\r') --end;
    add(begin, end);
    begin = std::min(line_end + 1, bytes.size());
    *marked = true;
  }
  add(begin, bytes.size());
  return spans;
}

void append_document(Documents* documents, std::string_view bytes, bool end_predictable) {
  auto first = reinterpret_cast<const unsigned char*>(bytes.data());
  documents->tokens.insert(documents->tokens.end(), first, first + bytes.size());
  documents->predictable.resize(documents->tokens.size(), 1);
  documents->end_predictable.push_back(end_predictable);
  documents->starts.push_back(int64_t(documents->tokens.size()));
}

// The border between documents that lies nearest to `place`: the number of documents before it, neither none nor all.
size_t nearest_border(const std::vector<Span>& spans, size_t place) {
  auto distance = [&](size_t k) { return std::max(spans[k].begin, place) - std::min(spans[k].begin, place); };
  size_t best = 1;
  for (size_t k = 2; k < spans.size(); ++k)
    if (distance(k) < distance(best)) best = k;
  return best;
}

}  // namespace

TextSplit read_text(const std::string& path) {
  const std::string bytes = read_file(path);
  if (bytes.empty()) fail("%s is empty: there is no text in it", path.c_str());
  bool marked;
  std::vector<Span> spans = split_at_markers(bytes, &marked);
  auto text_of = [&](Span span) { return std::string_view(bytes).substr(span.begin, span.end - span.begin); };

  TextSplit split;
  split.train.tokens.reserve(bytes.size());
  split.train.predictable.reserve(bytes.size());
  if (spans.size() > 1) {
    size_t border = nearest_border(spans, bytes.size() / 10 * 9);
    for (size_t k = 0; k < spans.size(); ++k)
      append_document(k < border ? &split.train : &split.validation, text_of(spans[k]), true);
  } else if (spans.size() == 1) {
    auto [begin, end] = spans[0];
    size_t cut = begin + (end - begin) * 9 / 10;
    append_document(&split.train, text_of({begin, cut}), false);
    append_document(&split.validation, text_of({cut, end}), marked);
  }
  size_t trained = split.train.tokens.size(), held_out = split.validation.tokens.size();
  if (trained < 2 || held_out < 2)
    fail("%s is too small: %zu tokens to train on and %zu to validate with; each takes at least 2", path.c_str(),
         trained, held_out);
  return split;
}
