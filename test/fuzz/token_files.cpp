// Token files and their masks: as they come, and as training and validation rows.
#include <cstring>

#include "data.h"
#include "fuzz.h"
#include "inspect.h"
#include "shards.h"
#include "targets.h"

namespace {

constexpr int kEndOfText = 2;

void require_rows(const Batch& batch, int T, Vocabulary vocabulary) {
  require(batch.targets.size() == batch.tokens.size(), "each row has a target, if a masked one");
  require(batch.row_of_segment.size() == batch.segments.size(), "each segment is in a row");
  std::vector<int> filled(size_t(batch.sequences));
  int row = 0, last = 0;
  for (size_t s = 0; s < batch.segments.size(); ++s) {
    const Segment& segment = batch.segments[s];
    require(segment.row == row && segment.rows > 0, "segments lie end to end");
    int sequence = batch.row_of_segment[s];
    require(sequence >= last && sequence < batch.sequences, "rows are numbered as they come");
    row += segment.rows, last = sequence, filled[size_t(sequence)] += segment.rows;
  }
  require(row == batch.rows(), "segments hold all tokens");
  for (int n : filled) require(n > 0 && n <= T, "a row has one to T tokens");
  for (int token : batch.tokens) require(token >= 0 && token < vocabulary.size, "a token is below the vocabulary");
  for (int target : batch.targets) require(target >= -1 && target < vocabulary.size, "so is a target");
}

bool same(const Batch& a, const Batch& b) { return a.tokens == b.tokens && a.targets == b.targets; }

struct Rows {
  Vocabulary vocabulary;
  Pack pack;
  int T, sequences;
};

int64_t target_count(const std::vector<Batch>& batches) {
  int64_t total = 0;
  for (const Batch& batch : batches) total += batch.target_count();
  return total;
}

// An epoch, row by row: its targets are those of validation; the place of each row leads to it; two ranks share it.
void require_epoch(const std::vector<Tokens>& shards, Rows o, int64_t targets) {
  constexpr uint64_t kSeed = 7;
  Loader loader(shards, o.vocabulary, o.pack, o.T, kSeed), other(shards, o.vocabulary, o.pack, o.T, kSeed);
  Loader halves[] = {Loader(shards, o.vocabulary, o.pack, o.T, kSeed, 0, 2),
                     Loader(shards, o.vocabulary, o.pack, o.T, kSeed, 1, 2)};
  int64_t seen = 0;
  for (int step = 0; loader.position().epoch == 0; ++step) {
    DataPosition before = loader.position(), next_epoch = {1, 0, 0};
    Batch batch = loader.next(1);
    require_rows(batch, o.T, o.vocabulary);
    bool is_of_next = loader.position().epoch > 0 && loader.position() != next_epoch;  // no row was left
    if (!is_of_next) seen += batch.target_count();
    other.seek(before);
    require(same(other.next(1), batch), "a position leads to its row");
    require(same(halves[step % 2].next(1), batch), "ranks take rows by turns");
  }
  require(o.pack == Pack::stream || seen == targets, "each target is there once an epoch");
  require_rows(loader.next(o.sequences), o.T, o.vocabulary);
}

void fuzz_rows(const std::vector<Tokens>& shards, Rows o) {
  std::vector<Batch> validation;
  bool sound = accepts([&] { validation = validation_batches(shards, o.vocabulary, o.pack, o.T, o.sequences * o.T); });
  for (const Batch& batch : validation) require_rows(batch, o.T, o.vocabulary);
  bool loads = accepts([&] { require_epoch(shards, o, target_count(validation)); });
  require(!loads || sound, "where there are rows to train on, there are rows to validate with");
}

}  // namespace

// Bytes that are a token file, and perhaps its mask: choices, how many of the bytes are the mask, the bytes.
void fuzz_token_file(std::string_view bytes) {
  bool has_mask = take_choice(&bytes, 2), stream = take_choice(&bytes, 2);
  size_t masked = has_mask ? size_t(take_choice(&bytes, 256)) : 0;
  masked = std::min(masked, bytes.size());
  std::string path = put_file("x.bin", bytes.substr(0, bytes.size() - masked));
  if (has_mask)
    put_file("x.mask", bytes.substr(bytes.size() - masked));
  else
    std::remove(file_path("x.mask").c_str());
  Tokens tokens;
  if (!accepts([&] { tokens = Tokens::map(path); })) return;
  int64_t sum = 0;
  for (int64_t i = 0; i < tokens.size(); ++i) sum += tokens[i] + tokens.may_be_target(i);
  require(read_shard_header(path).tokens == tokens.size(), "a header says how many tokens there are");
  Tokenizer known;
  accepts([&] { describe_shard(path, nullptr); });
  accepts([&] { describe_shard(path, &known); });
  fuzz_rows({tokens}, {{300, sum % 2 ? 256 : -1}, stream ? Pack::stream : Pack::documents, 5, 3});
}

// A sound token file of every byte as a token, small ids for the most part; the upper half of the bytes is masked.
void fuzz_loader(std::string_view bytes) {
  Pack pack = take_choice(&bytes, 2) ? Pack::stream : Pack::documents;
  int T = 2 + take_choice(&bytes, 30), sequences = 1 + take_choice(&bytes, 8);
  bool wide = take_choice(&bytes, 2), divided = take_choice(&bytes, 2);
  constexpr size_t kMost = 4000;
  bytes = bytes.substr(0, kMost);
  std::vector<uint16_t> narrow_ids;
  std::vector<uint32_t> wide_ids;
  std::vector<uint8_t> mask;
  for (unsigned char byte : bytes) {
    narrow_ids.push_back(byte % 128), wide_ids.push_back(byte % 128);
    mask.push_back(byte < 128);
  }
  auto part = [&](size_t begin, size_t end) {
    std::vector<uint8_t> m(mask.begin() + int64_t(begin), mask.begin() + int64_t(end));
    if (wide)
      return Tokens(std::vector<uint32_t>(wide_ids.begin() + int64_t(begin), wide_ids.begin() + int64_t(end)), m);
    return Tokens(std::vector<uint16_t>(narrow_ids.begin() + int64_t(begin), narrow_ids.begin() + int64_t(end)), m);
  };
  size_t half = divided ? bytes.size() / 2 : bytes.size();
  std::vector<Tokens> shards = {part(0, half)};
  if (divided) shards.push_back(part(half, bytes.size()));
  fuzz_rows(shards, {{128, kEndOfText}, pack, T, sequences});
}
