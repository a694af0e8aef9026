// From tokens to batches: documents, pieces, packing, shuffling; and texts as tokens.
#include "data.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "error.h"
#include "files.h"
#include "random.h"
#include "text_input.h"
#include "tokenizer.h"
#include "utf8.h"

Vocabulary vocabulary_of(const Tokenizer& tokenizer) { return {tokenizer.vocab(), tokenizer.end_of_text()}; }

// --- Documents

Document Documents::first_from(int64_t from) const {
  while (from < tokens_.size() && tokens_[from] == end_of_text_) ++from;
  return {from, tokens_.find(end_of_text_, from)};
}

int64_t Documents::count() const {
  int64_t n = 0;
  for (Iterator i = begin(); i != end(); ++i) ++n;
  return n;
}

// --- Batches

namespace {

constexpr int kOpenRows = 32;  // more would fill rows hardly better, and cost a longer search
constexpr int kMasked = -1;

// A shard's tokens and what is to be predicted after each. As a stream it is a ring: its last token is followed by its
// first. Where an end-of-text stands at both ends, one of them is enough; the first is left out, because the last is
// what its document's end is predicted by, or not.
class Ring {
 public:
  Ring(const Tokens& tokens, int end_of_text) : tokens_(tokens), end_of_text_(end_of_text) {
    int64_t n = tokens.size();
    first_ = n > 1 && tokens[0] == end_of_text && tokens[n - 1] == end_of_text;
  }
  int64_t first() const { return first_; }
  int64_t length() const { return tokens_.size() - first_; }

  // What follows a document that the shard's end cuts is not known. Two end-of-texts side by side have no text between
  // them that could end.
  int target(int64_t i) const {
    int64_t next = i + 1;
    bool ends = tokens_[i] == end_of_text_;
    if (next == tokens_.size()) {
      if (!ends) return kMasked;
      next = first_;
    }
    if (!tokens_.may_be_target(next) || (ends && tokens_[next] == end_of_text_)) return kMasked;
    return tokens_[next];
  }

  bool has_target(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i)
      if (target(i) != kMasked) return true;
    return false;
  }

  // Appends the piece as a segment of row `sequence`.
  void append(Batch* batch, const Piece& piece, int sequence) const {
    int row = batch->rows();
    int64_t i = piece.start;
    for (int n = 0; n < piece.length; ++n) {
      batch->tokens.push_back(tokens_[i]);
      batch->targets.push_back(target(i));
      if (++i == tokens_.size()) i = first_;
    }
    batch->segments.push_back({row, piece.length, 0, 0, row});
    batch->row_of_segment.push_back(sequence);
  }

 private:
  const Tokens& tokens_;
  int end_of_text_;
  int64_t first_;
};

bool has_target(const Tokens& shard, int end_of_text, Pack pack) {
  Ring ring(shard, end_of_text);
  if (pack == Pack::stream) return ring.has_target(ring.first(), shard.size());
  for (Document document : Documents(shard, end_of_text))
    if (ring.has_target(document.begin, document.end)) return true;
  return false;
}

template <class T>
void shuffle(std::vector<T>* items, Random random) {
  for (size_t n = items->size(); n > 1; --n) std::swap((*items)[n - 1], (*items)[random.below(int(n))]);
}

// Cuts a document at `offset`, offset + T, …
void append_windows(std::vector<Piece>* pieces, Document document, int T, int offset) {
  int64_t cut = document.begin + (offset > 0 ? offset : T);
  for (int64_t start = document.begin; start < document.end; start = cut, cut += T)
    pieces->push_back({start, int(std::min(cut, document.end) - start)});
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

ShardRows rows_of_documents(const Tokens& shard, int end_of_text, int T, uint64_t key) {
  Ring ring(shard, end_of_text);
  std::vector<Piece> pieces;
  Random offsets(random_key(key, 0));
  for (Document document : Documents(shard, end_of_text))
    append_windows(&pieces, document, T, document.length() > T ? offsets.below(T) : 0);
  std::erase_if(pieces, [&](const Piece& piece) { return !ring.has_target(piece.start, piece.start + piece.length); });
  shuffle(&pieces, Random(random_key(key, 1)));

  int count = 0;
  std::vector<int> row_of = pack_into_rows(pieces, T, &count);
  // Full rows were closed early, so opening order says something of a row's filling: shuffle.
  std::vector<int> place(count);
  std::iota(place.begin(), place.end(), 0);
  shuffle(&place, Random(random_key(key, 2)));

  ShardRows rows;
  rows.starts.assign(count + 1, 0);
  for (int row : row_of) ++rows.starts[place[row] + 1];
  std::partial_sum(rows.starts.begin(), rows.starts.end(), rows.starts.begin());
  std::vector<int64_t> end(rows.starts.begin(), rows.starts.end() - 1);
  rows.pieces.resize(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) rows.pieces[end[place[row_of[i]]]++] = pieces[i];
  return rows;
}

ShardRows rows_of_stream(const Tokens& shard, int end_of_text, int T, uint64_t key) {
  ShardRows rows;
  if (!has_target(shard, end_of_text, Pack::stream)) return rows;
  Ring ring(shard, end_of_text);
  int64_t count = std::max<int64_t>(1, ring.length() / T), offset = Random(random_key(key, 0)).below(T);
  int length = int(std::min<int64_t>(T, ring.length()));
  for (int64_t row = 0; row < count; ++row)
    rows.pieces.push_back({ring.first() + (offset + row * T) % ring.length(), length});
  shuffle(&rows.pieces, Random(random_key(key, 1)));
  for (int64_t row = 0; row < count; ++row) rows.starts.push_back(row + 1);
  return rows;
}

void require_context(int T) {
  if (T < 2) fail("the context must be at least 2 tokens, not %d", T);
}

}  // namespace

int Batch::target_count() const { return int(targets.size() - std::count(targets.begin(), targets.end(), kMasked)); }

// --- The loader

Loader::Loader(std::vector<Tokens> shards, Vocabulary vocabulary, Pack pack, int T, uint64_t seed, int rank, int ranks)
    : shards_(std::move(shards)), vocabulary_(vocabulary), pack_(pack), T_(T), seed_(seed), rank_(rank), ranks_(ranks) {
  check(0 <= rank && rank < ranks, "rank %d of %d", rank, ranks);
  require_context(T);
  // Most often the first shard's first token is followed by one, so this looks at gigabytes only where all is masked.
  for (const Tokens& shard : shards_)
    if (has_target(shard, vocabulary.end_of_text, pack)) return;
  fail("nothing to train on: no token of the training data is a target");
}

int64_t Loader::tokens() const {
  int64_t total = 0;
  for (const Tokens& shard : shards_) total += shard.size();
  return total;
}

void Loader::load(int64_t epoch, int64_t place) {
  if (epoch == loaded_epoch_ && place == loaded_place_) return;
  loaded_epoch_ = -1;  // nothing, where it fails
  rows_ = {};
  std::vector<int> order(shards_.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle(&order, Random(random_key(seed_, Purpose::shuffle, epoch)));
  shard_ = shards_[order[place]];
  require_ids_below(vocabulary_.size, shard_);
  uint64_t key = random_key(seed_, Purpose::shuffle, epoch, order[place]);
  rows_ = (pack_ == Pack::stream ? rows_of_stream : rows_of_documents)(shard_, vocabulary_.end_of_text, T_, key);
  loaded_epoch_ = epoch, loaded_place_ = place;
}

// Takes rows of the loaded shard, all that are left at most.
void Loader::advance(int64_t rows) {
  position_.row += rows;
  if (position_.row < rows_.count()) return;
  position_.row = 0;
  if (++position_.shard < int64_t(shards_.size())) return;
  position_.shard = 0;
  ++position_.epoch;
}

// Loads the shard where the next row is. There is one: the constructor found a target.
void Loader::load_next_row() {
  for (load(position_.epoch, position_.shard); rows_.count() == 0; load(position_.epoch, position_.shard)) advance(0);
}

void Loader::skip(int64_t rows) {
  while (rows > 0) {
    load_next_row();
    int64_t n = std::min(rows, rows_.count() - position_.row);
    advance(n);
    rows -= n;
  }
}

Batch Loader::next(int sequences) {
  check(sequences > 0, "a batch of %d sequences", sequences);
  skip(int64_t(rank_) * sequences);
  Batch batch;
  batch.tokens.reserve(size_t(sequences) * T_);
  batch.targets.reserve(size_t(sequences) * T_);
  for (; batch.sequences < sequences; ++batch.sequences) {
    load_next_row();
    Ring ring(shard_, vocabulary_.end_of_text);
    for (int64_t p = rows_.starts[position_.row]; p < rows_.starts[position_.row + 1]; ++p)
      ring.append(&batch, rows_.pieces[p], batch.sequences);
    advance(1);
  }
  skip(int64_t(ranks_ - 1 - rank_) * sequences);
  return batch;
}

int64_t Loader::shard_rows() {
  load(position_.epoch, position_.shard);
  return rows_.count();
}

double Loader::expected_rows(int64_t most_tokens) {
  double rows = 0, looked = 0;
  int64_t shards = int64_t(shards_.size());
  for (int64_t place = 0; place < shards && (rows == 0 || looked < double(most_tokens)); ++place) {
    load(0, place);
    rows += double(rows_.count()), looked += double(shard_.size());
  }
  return rows * double(tokens()) / looked;
}

void Loader::seek(DataPosition position) {
  auto [epoch, shard, row] = position;
  check(epoch >= 0 && shard >= 0 && row >= 0, "sought row %lld of shard %lld in epoch %lld", (long long)row,
        (long long)shard, (long long)epoch);
  constexpr const char* kOtherData = "this is not the data that the position was taken from";
  if (shard >= int64_t(shards_.size()))
    fail("no shard %lld in the data, which has %zu: %s", (long long)shard, shards_.size(), kOtherData);
  if (row > 0) {  // row 0 is a position in any shard
    load(epoch, shard);
    if (row >= rows_.count())
      fail("no row %lld in shard %lld of epoch %lld, which has %lld rows: %s", (long long)row, (long long)shard,
           (long long)epoch, (long long)rows_.count(), kOtherData);
  }
  position_ = position;
}

// --- Validation

std::vector<Batch> validation_batches(const std::vector<Tokens>& shards, Vocabulary vocabulary, Pack pack, int T,
                                      int rows, int64_t most_tokens) {
  require_context(T);
  std::vector<Batch> batches;
  int64_t tokens = 0;
  // Appends windows of a document, or of a stream; false where they would be too many tokens.
  auto append = [&](const Ring& ring, Document document) {
    for (int64_t start = document.begin; start < document.end; start += T) {
      int length = int(std::min<int64_t>(T, document.end - start));
      if (tokens > 0 && tokens + length > most_tokens) return false;
      if (batches.empty() || batches.back().rows() + length > rows) batches.emplace_back();
      ring.append(&batches.back(), {start, length}, batches.back().sequences++);
      tokens += length;
    }
    return true;
  };
  for (const Tokens& shard : shards) {
    if (tokens > 0 && tokens >= most_tokens) break;
    require_ids_below(vocabulary.size, shard);
    Ring ring(shard, vocabulary.end_of_text);
    if (pack == Pack::stream) {
      if (!append(ring, {ring.first(), shard.size() - 1})) return batches;
    } else {
      for (Document document : Documents(shard, vocabulary.end_of_text))
        if (!append(ring, document)) return batches;
    }
  }
  return batches;
}

void require_targets(const std::vector<Batch>& batches) {
  for (const Batch& batch : batches)
    if (batch.target_count() > 0) return;
  fail("none of the held-out tokens is a target: give more --val-tokens, or other files to hold out");
}

// --- Text

namespace {

template <class Id>
Tokens tokenize_as(const std::vector<TextDocument>& documents, const Tokenizer& tokenizer) {
  const Id end_of_text = Id(tokenizer.end_of_text());
  Encoder encoder(tokenizer);
  std::vector<Id> tokens = {end_of_text};
  std::vector<uint8_t> mask = {1};
  std::vector<int> part_tokens;
  for (const TextDocument& document : documents) {
    size_t begin = tokens.size();
    for (const TextPart& part : document.parts) {
      part_tokens.clear();
      encoder.encode(part.text, &part_tokens);
      tokens.insert(tokens.end(), part_tokens.begin(), part_tokens.end());
      mask.resize(tokens.size(), part.predictable);
    }
    if (tokens.size() == begin) continue;
    tokens.push_back(end_of_text);
    mask.push_back(document.end_predictable);
  }
  if (std::find(mask.begin(), mask.end(), 0) == mask.end()) mask.clear();
  return Tokens(std::move(tokens), std::move(mask));
}

}  // namespace

Tokens tokenize(const std::vector<TextDocument>& documents, const Tokenizer& tokenizer) {
  if (tokenizer.end_of_text() < 0) fail("the tokenizer has no end-of-text token, which stands between documents");
  return (bits_for_vocab(tokenizer.vocab()) == 16 ? tokenize_as<uint16_t> : tokenize_as<uint32_t>)(documents,
                                                                                                   tokenizer);
}

namespace {

// The texts between lines that hold only the marker; empty ones are left out. The newline before a marker is part of
// its line, not of the text.
std::vector<std::string_view> split_at_markers(std::string_view bytes, bool* marked) {
  constexpr std::string_view marker = "<|endoftext|>";
  std::vector<std::string_view> texts;
  auto add = [&](size_t begin, size_t end) {
    if (begin < end) texts.push_back(bytes.substr(begin, end - begin));
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
  return texts;
}

// The border between documents that lies nearest to `place`: the number of documents before it, neither none nor all.
size_t nearest_border(const std::vector<std::string_view>& texts, const char* place) {
  auto distance = [&](size_t k) { return std::max(texts[k].data(), place) - std::min(texts[k].data(), place); };
  size_t best = 1;
  for (size_t k = 2; k < texts.size(); ++k)
    if (distance(k) < distance(best)) best = k;
  return best;
}

// Where to cut a text for its last tenth: at the line's end nearest to it, so that no word is cut, unless the share
// would be quite another one; else between two characters of UTF-8.
size_t last_tenth(std::string_view text) {
  size_t tenth = text.size() * 9 / 10, far = std::min<size_t>(1000, text.size() / 20);
  for (size_t distance = 0; distance <= far; ++distance)
    for (size_t cut : {tenth - distance, tenth + distance})
      if (0 < cut && cut < text.size() && text[cut - 1] == '\n') return cut;
  return character_border(text, tenth);
}

TextDocument whole_document(std::string_view text, bool end_predictable) { return {{{text, true}}, end_predictable}; }

void require_enough(const std::string& path, int64_t trained, int64_t held_out, const char* unit) {
  if (trained < 2 || held_out < 2)
    fail("%s is too small: %lld %s to train on and %lld to validate with; each takes at least 2", path.c_str(),
         (long long)trained, unit, (long long)held_out);
}

int64_t bytes_of(const std::vector<TextDocument>& documents) {
  int64_t total = 0;
  for (const TextDocument& document : documents)
    for (const TextPart& part : document.parts) total += int64_t(part.text.size());
  return total;
}

}  // namespace

TextFile read_text_file(const std::string& path, const std::string& format, const std::string& flags) {
  TextFile file{path, std::make_shared<const std::string>(read_file(path)), {}, {}};
  if (format != "text") require_text(*file.bytes, path, TextUse::training, flags);
  std::string_view bytes = without_mark(*file.bytes);
  if (bytes.empty()) fail("%s is empty: there is no text in it", path.c_str());
  bool marked;
  std::vector<std::string_view> texts = split_at_markers(bytes, &marked);
  if (texts.size() > 1) {
    size_t border = nearest_border(texts, bytes.data() + bytes.size() / 10 * 9);
    for (size_t k = 0; k < texts.size(); ++k)
      (k < border ? file.train : file.validation).push_back(whole_document(texts[k], true));
  } else if (texts.size() == 1) {
    size_t cut = last_tenth(texts[0]);
    file.train.push_back(whole_document(texts[0].substr(0, cut), false));
    file.validation.push_back(whole_document(texts[0].substr(cut), marked));
  }
  require_enough(path, bytes_of(file.train), bytes_of(file.validation), "bytes");
  return file;
}

TextSplit tokenize(const TextFile& file, const Tokenizer& tokenizer) {
  TextSplit split = {tokenize(file.train, tokenizer), tokenize(file.validation, tokenizer)};
  auto without_ends = [](const Tokens& tokens, const std::vector<TextDocument>& documents) {
    return tokens.size() - 1 - int64_t(documents.size());
  };
  require_enough(file.path, without_ends(split.train, file.train), without_ends(split.validation, file.validation),
                 "tokens");
  return split;
}
