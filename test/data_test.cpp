// The way from tokens to batches: targets, windows, packing, shards, ranks, order, resumption; and text files.
#include "data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "error.h"
#include "random.h"
#include "tokenizer.h"

namespace {

TextSplit read_text(const std::string& path, const Tokenizer& tokenizer, const std::string& format = "") {
  return tokenize(read_text_file(path, format), tokenizer);
}

constexpr int kEndOfText = 256;
constexpr Vocabulary kVocabulary = {1 << 16, kEndOfText};

// Documents end to end, and the shard that they make. An empty one is two end-of-texts side by side.
struct Written {
  std::vector<int> tokens;
  std::vector<uint8_t> predictable, end_predictable;
  std::vector<int64_t> starts = {0};
  int count() const { return int(starts.size()) - 1; }
  int64_t length(int document) const { return starts[document + 1] - starts[document]; }

  template <class Id>
  Tokens as() const {
    std::vector<Id> ids = {Id(kEndOfText)};
    std::vector<uint8_t> mask = {0};
    for (int d = 0; d < count(); ++d) {
      ids.insert(ids.end(), tokens.begin() + starts[d], tokens.begin() + starts[d + 1]);
      mask.insert(mask.end(), predictable.begin() + starts[d], predictable.begin() + starts[d + 1]);
      ids.push_back(Id(kEndOfText));
      mask.push_back(end_predictable[d]);
    }
    return Tokens(std::move(ids), std::move(mask));
  }
  Tokens shard() const { return as<uint16_t>(); }
};

// Documents of these lengths; every token is another number, from `first` on, so that each can be told apart.
Written numbered(const std::vector<int>& lengths, int first = 1000) {
  Written documents;
  for (int length : lengths) {
    for (int i = 0; i < length; ++i) documents.tokens.push_back(first + int(documents.tokens.size()));
    documents.predictable.resize(documents.tokens.size(), 1);
    documents.end_predictable.push_back(1);
    documents.starts.push_back(int64_t(documents.tokens.size()));
  }
  return documents;
}

Loader loader_of(const Written& documents, Pack pack, int T, uint64_t seed) {
  return Loader({documents.shard()}, kVocabulary, pack, T, seed);
}

Tokens ids(const std::vector<uint16_t>& tokens, const std::vector<uint8_t>& mask = {}) { return Tokens(tokens, mask); }

std::vector<int> random_lengths(int count, int least, int most, uint64_t seed) {
  Random random(random_key(seed));
  std::vector<int> lengths(count);
  for (int& length : lengths) length = least + random.below(most - least + 1);
  return lengths;
}

// What follows each token in its document, written out: masks, then end-of-text.
std::map<int, int> expected_targets(const Written& documents) {
  std::map<int, int> target;
  for (int d = 0; d < documents.count(); ++d)
    for (int64_t i = documents.starts[d]; i < documents.starts[d + 1]; ++i) {
      bool last = i + 1 == documents.starts[d + 1];
      bool masked = last ? !documents.end_predictable[d] : !documents.predictable[i + 1];
      target[documents.tokens[i]] = masked ? -1 : last ? kEndOfText : documents.tokens[i + 1];
    }
  return target;
}

void mask_at_random(Written* documents, uint64_t seed) {
  Random random(random_key(seed));
  for (auto& p : documents->predictable) p = random.below(3) == 0;
  for (auto& p : documents->end_predictable) p = random.below(2) == 0;
}

// Segments lie end to end, start at position 0, and no row of T holds more than T.
void expect_well_formed(const Batch& batch, int T) {
  ASSERT_EQ(batch.tokens.size(), batch.targets.size());
  ASSERT_EQ(batch.segments.size(), batch.row_of_segment.size());
  std::vector<int> filled(batch.sequences);
  int row = 0, sequence = 0;
  for (size_t s = 0; s < batch.segments.size(); ++s) {
    const Segment& segment = batch.segments[s];
    EXPECT_EQ(segment.row, row);
    EXPECT_EQ(segment.own_kv, row);
    EXPECT_EQ(segment.position, 0);
    EXPECT_GT(segment.rows, 0);
    ASSERT_GE(batch.row_of_segment[s], sequence);
    sequence = batch.row_of_segment[s];
    ASSERT_LT(sequence, batch.sequences);
    filled[sequence] += segment.rows;
    row += segment.rows;
  }
  EXPECT_EQ(row, batch.rows());
  for (int n : filled) {
    EXPECT_GT(n, 0);
    EXPECT_LE(n, T);
  }
}

// The rows of T of the epoch at whose beginning the loader is.
std::vector<Batch> epoch_of(Loader* loader, int shards = 1) {
  DataPosition begin = loader->position();
  int64_t count = 0;
  for (int64_t shard = 0; shard < shards; ++shard) {
    loader->seek({begin.epoch, shard, 0});
    count += loader->shard_rows();
  }
  loader->seek(begin);
  std::vector<Batch> rows;
  while (count-- > 0) rows.push_back(loader->next(1));
  return rows;
}

std::vector<int> tokens_of(const std::vector<Batch>& batches) {
  std::vector<int> tokens;
  for (const Batch& batch : batches) tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
  return tokens;
}

bool same(const Batch& a, const Batch& b) {
  auto same_segment = [](const Segment& x, const Segment& y) {
    return x.row == y.row && x.rows == y.rows && x.position == y.position && x.own_kv == y.own_kv;
  };
  return a.tokens == b.tokens && a.targets == b.targets && a.sequences == b.sequences &&
         a.row_of_segment == b.row_of_segment &&
         std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(), same_segment);
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// --- Targets ---------------------------------------------------------------------------------------------------------

TEST(Loader, ATargetIsTheNextTokenOfTheDocumentAndEndOfTextIsTheLast) {
  Written documents = numbered({3, 1, 2});
  Loader loader = loader_of(documents, Pack::documents, 8, 1);
  EXPECT_EQ(loader.shard_rows(), 1);
  Batch batch = loader.next(1);
  std::map<int, int> target;
  for (int i = 0; i < batch.rows(); ++i) target[batch.tokens[i]] = batch.targets[i];
  EXPECT_EQ(target,
            (std::map<int, int>{
                {1000, 1001}, {1001, 1002}, {1002, kEndOfText}, {1003, kEndOfText}, {1004, 1005}, {1005, kEndOfText}}));
  EXPECT_EQ(batch.target_count(), 6);
}

TEST(Loader, WhatIsNotPredictableIsMasked) {
  Written documents = numbered({5});
  documents.predictable = {1, 0, 1, 0, 1};
  documents.end_predictable = {0};
  Loader loader = loader_of(documents, Pack::documents, 8, 1);
  Batch batch = loader.next(1);
  EXPECT_EQ(batch.targets, (std::vector<int>{-1, 1002, -1, 1004, -1}));
  EXPECT_EQ(batch.target_count(), 2);
}

TEST(Loader, EveryTokenStandsInAnEpochOnceWithItsTarget) {
  Written documents = numbered(random_lengths(150, 0, 70, 1));  // shorter and longer than T
  auto target = expected_targets(documents);
  Loader loader = loader_of(documents, Pack::documents, 16, 7);
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::map<int, int> seen;
    for (const Batch& batch : epoch_of(&loader)) {
      expect_well_formed(batch, 16);
      for (int i = 0; i < batch.rows(); ++i)
        ASSERT_TRUE(seen.emplace(batch.tokens[i], batch.targets[i]).second) << batch.tokens[i] << " stands twice";
    }
    EXPECT_EQ(seen, target);
  }
}

TEST(Loader, ASegmentIsARunOfOneDocument) {
  Written documents = numbered(random_lengths(100, 1, 40, 2));
  Loader loader = loader_of(documents, Pack::documents, 16, 7);
  std::set<int> firsts;
  for (int64_t start : documents.starts) firsts.insert(1000 + int(start));
  for (const Batch& batch : epoch_of(&loader))
    for (const Segment& s : batch.segments)
      for (int i = s.row + 1; i < s.row + s.rows; ++i) {
        ASSERT_EQ(batch.tokens[i], batch.tokens[i - 1] + 1);
        ASSERT_FALSE(firsts.count(batch.tokens[i])) << "a segment crosses into another document";
      }
}

TEST(Loader, PiecesWithoutATargetAreLeftOut) {
  Written documents = numbered({4, 4, 4});
  documents.predictable = {1, 0, 0, 0, /**/ 0, 0, 0, 1, /**/ 0, 0, 0, 0};
  documents.end_predictable = {0, 0, 0};
  Loader loader = loader_of(documents, Pack::documents, 8, 1);
  EXPECT_EQ(tokens_of(epoch_of(&loader)), (std::vector<int>{1004, 1005, 1006, 1007}));
}

// --- Windows and packing ---------------------------------------------------------------------------------------------

TEST(Loader, WindowsOfALongDocumentMoveFromEpochToEpoch) {
  Written documents = numbered({100});
  Loader loader = loader_of(documents, Pack::documents, 10, 3);
  std::set<int> offsets;
  for (int epoch = 0; epoch < 60; ++epoch) {
    std::set<int> starts;
    for (const Batch& batch : epoch_of(&loader))
      for (const Segment& segment : batch.segments) starts.insert(batch.tokens[segment.row] - 1000);
    int offset = *starts.rbegin() % 10;
    offsets.insert(offset);
    for (int start : starts) EXPECT_TRUE(start == 0 || start % 10 == offset) << start;
    EXPECT_EQ(starts.size(), offset == 0 ? 10u : 11u);
  }
  EXPECT_EQ(offsets.size(), 10u);
}

TEST(Loader, DocumentsThatFitAreNeverCut) {
  Written documents = numbered(random_lengths(200, 1, 32, 3));
  Loader loader = loader_of(documents, Pack::documents, 32, 3);
  size_t segments = 0;
  for (const Batch& batch : epoch_of(&loader)) segments += batch.segments.size();
  EXPECT_EQ(segments, 200u);
}

double filled(const std::vector<int>& lengths, int T) {
  Written documents = numbered(lengths);
  Loader loader = loader_of(documents, Pack::documents, T, 5);
  return double(documents.tokens.size()) / double(loader.shard_rows() * T);
}

TEST(Loader, RowsAreFilledWherePiecesAllow) {
  EXPECT_EQ(filled(std::vector<int>(500, 64), 64), 1);
  EXPECT_GE(filled(random_lengths(2000, 1, 40, 4), 64), 0.97);
  EXPECT_GE(filled(random_lengths(1000, 5, 100, 5), 256), 0.97);
  EXPECT_GE(filled(random_lengths(60, 100, 1500, 6), 64), 0.97);
  // Full rows and halves, as the built-in corpus has them.
  std::vector<int> lengths(300, 64);
  for (size_t i = 0; i < lengths.size(); i += 3) lengths[i] = 32;
  EXPECT_EQ(filled(lengths, 64), 1);
}

TEST(Loader, NoTwoRowsOfAnEpochWouldFitIntoOneWhereAllAreOpen) {
  Written documents = numbered(random_lengths(30, 1, 60, 8));
  Loader loader = loader_of(documents, Pack::documents, 64, 5);
  std::vector<int> rows;
  for (const Batch& batch : epoch_of(&loader)) rows.push_back(batch.rows());
  std::sort(rows.begin(), rows.end());
  EXPECT_GT(rows[0] + rows[1], 64);
}

// --- Order and resumption --------------------------------------------------------------------------------------------

TEST(Loader, OrderDependsOnSeedAndEpochAlone) {
  Written documents = numbered(random_lengths(200, 1, 50, 9));
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader a = loader_of(documents, pack, 32, 1), b = loader_of(documents, pack, 32, 1);
    Loader c = loader_of(documents, pack, 32, 2);
    auto first = tokens_of(epoch_of(&a)), second = tokens_of(epoch_of(&a));
    EXPECT_NE(first, second);
    EXPECT_NE(first, tokens_of(epoch_of(&c)));
    b.seek({1, 0, 0});
    EXPECT_EQ(tokens_of(epoch_of(&b)), second);
    b.seek({0, 0, 0});
    EXPECT_EQ(tokens_of(epoch_of(&b)), first);
  }
}

TEST(Loader, TheOrderIsShuffled) {
  Written documents = numbered(std::vector<int>(1000, 8));
  Loader loader = loader_of(documents, Pack::documents, 8, 1);
  auto tokens = tokens_of(epoch_of(&loader));
  int ascents = 0;
  for (size_t i = 8; i < tokens.size(); i += 8) ascents += tokens[i] > tokens[i - 8];
  EXPECT_NEAR(ascents, 500, 60);
}

TEST(Loader, BatchesAreTheSameRowsHoweverManyAreAskedFor) {
  Written documents = numbered(random_lengths(50, 1, 50, 10));
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader one = loader_of(documents, pack, 32, 1), many = loader_of(documents, pack, 32, 1);
    Random random(random_key(11));
    for (int i = 0; i < 60; ++i) {
      int n = 1 + random.below(9);
      Batch batch = many.next(n);
      expect_well_formed(batch, 32);
      EXPECT_EQ(batch.sequences, n);
      std::vector<Batch> singles;
      for (int j = 0; j < n; ++j) singles.push_back(one.next(1));
      EXPECT_EQ(batch.tokens, tokens_of(singles));
      EXPECT_EQ(one.position(), many.position());
    }
    EXPECT_GT(one.position().epoch, 3);
  }
}

TEST(Loader, ALoaderSoughtToAnothersPositionGivesTheSameFurtherBatches) {
  Written documents = numbered(random_lengths(80, 0, 90, 12));
  mask_at_random(&documents, 13);
  for (Pack pack : {Pack::documents, Pack::stream})
    for (uint64_t trial = 0; trial < 25; ++trial) {
      Random random(random_key(14, trial));
      Loader whole = loader_of(documents, pack, 32, trial);
      for (int i = random.below(60); i > 0; --i) whole.next(1 + random.below(7));
      Loader resumed = loader_of(documents, pack, 32, trial);
      resumed.seek(whole.position());
      for (int i = 0; i < 40; ++i) {
        int n = 1 + random.below(7);
        ASSERT_TRUE(same(whole.next(n), resumed.next(n)));
        ASSERT_EQ(whole.position(), resumed.position());
      }
    }
}

TEST(Loader, AnEpochsEndIsTheNextOnesStart) {
  Written documents = numbered({8, 8, 8});
  Loader loader = loader_of(documents, Pack::documents, 8, 1);
  loader.next(2);
  EXPECT_EQ(loader.position(), (DataPosition{0, 0, 2}));
  loader.next(1);
  EXPECT_EQ(loader.position(), (DataPosition{1, 0, 0}));
  loader.next(7);
  EXPECT_EQ(loader.position(), (DataPosition{3, 0, 1}));
}

// --- Shards ----------------------------------------------------------------------------------------------------------

// Shards of unequal sizes, of which some hold no row: empty, without a document, masked. Tokens differ everywhere.
struct ManyShards {
  std::vector<Written> written;
  std::vector<Tokens> shards;
  ManyShards() {
    int first = 1000;
    for (int count : {40, 1, 0, 13, 3, 25}) {
      written.push_back(numbered(random_lengths(count, 0, 70, uint64_t(first)), first));
      first += int(written.back().tokens.size());
    }
    mask_at_random(&written[3], 21);
    std::fill(written[4].predictable.begin(), written[4].predictable.end(), 0);
    std::fill(written[4].end_predictable.begin(), written[4].end_predictable.end(), 0);
    for (const Written& documents : written) shards.push_back(documents.shard());
    shards.push_back(Tokens());
  }
  // The shard that holds the token.
  int shard_of(int token) const {
    for (size_t s = 0; s < written.size(); ++s)
      if (std::count(written[s].tokens.begin(), written[s].tokens.end(), token)) return int(s);
    return -1;
  }
  Loader loader(Pack pack, int rank = 0, int ranks = 1) const {
    return Loader(shards, kVocabulary, pack, 16, 3, rank, ranks);
  }
  std::vector<Batch> epoch(Loader* loader, int64_t number) const {
    loader->seek({number, 0, 0});
    return epoch_of(loader, int(shards.size()));
  }
};

// The shards in the order in which an epoch's rows come.
std::vector<int> order_of(const ManyShards& data, const std::vector<Batch>& epoch) {
  std::vector<int> order;
  for (int token : tokens_of(epoch)) {
    int shard = token == kEndOfText ? -1 : data.shard_of(token);
    if (shard >= 0 && (order.empty() || order.back() != shard)) order.push_back(shard);
  }
  return order;
}

TEST(Shards, EveryTokenThatHasATargetStandsInAnEpochOnceWithIt) {
  ManyShards data;
  std::map<int, int> target;
  for (const Written& documents : data.written) target.merge(expected_targets(documents));
  Loader loader = data.loader(Pack::documents);
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::map<int, int> seen;
    for (const Batch& batch : data.epoch(&loader, epoch))
      for (int i = 0; i < batch.rows(); ++i)
        ASSERT_TRUE(seen.emplace(batch.tokens[i], batch.targets[i]).second) << batch.tokens[i] << " stands twice";
    for (auto [token, next] : seen) ASSERT_EQ(next, target.at(token));
    for (auto [token, next] : target) ASSERT_TRUE(next == -1 || seen.count(token)) << token << " is missing";
  }
}

TEST(Shards, ComeOneAfterAnotherInAnOrderDrawnEachEpoch) {
  ManyShards data;
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader loader = data.loader(pack);
    std::set<std::vector<int>> orders;
    for (int epoch = 0; epoch < 30; ++epoch) {
      std::vector<int> order = order_of(data, data.epoch(&loader, epoch));
      orders.insert(order);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, (std::vector<int>{0, 1, 3, 5})) << "a shard's rows do not come together";
    }
    EXPECT_GT(orders.size(), 12u);  // of 24
  }
}

TEST(Shards, AShardsRowsDependOnSeedEpochAndItsNumberAlone) {
  ManyShards data;
  auto rows_of_first = [&](const std::vector<Tokens>& shards, uint64_t seed, int64_t epoch) {
    Loader loader(shards, kVocabulary, Pack::documents, 16, seed);
    loader.seek({epoch, 0, 0});
    std::vector<int> tokens = tokens_of(epoch_of(&loader, int(shards.size())));
    std::erase_if(tokens, [&](int token) { return data.shard_of(token) != 0; });
    return tokens;
  };
  std::vector<Tokens> alone = {data.shards[0]}, others = {data.shards[0], data.shards[5], data.shards[3]};
  std::set<std::vector<int>> different;
  for (uint64_t seed : {1, 2})
    for (int64_t epoch : {0, 1}) {
      EXPECT_EQ(rows_of_first(alone, seed, epoch), rows_of_first(others, seed, epoch));
      different.insert(rows_of_first(alone, seed, epoch));
    }
  EXPECT_EQ(different.size(), 4u);
  Loader twice({data.shards[0], data.shards[0]}, kVocabulary, Pack::documents, 16, 1);
  auto rows = epoch_of(&twice, 2);
  std::vector<Batch> second(rows.begin() + std::ptrdiff_t(rows.size() / 2), rows.end());
  rows.resize(rows.size() / 2);
  EXPECT_NE(tokens_of(rows), tokens_of(second));
}

TEST(Shards, ABatchTakesTheLastRowsOfOneAndTheFirstOfTheNext) {
  ManyShards data;
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader one = data.loader(pack), many = data.loader(pack);
    int crossing = 0;
    for (int i = 0; i < 120; ++i) {
      int64_t shard = many.position().shard;
      Batch batch = many.next(7);
      crossing += many.position().shard != shard;
      expect_well_formed(batch, 16);
      EXPECT_EQ(batch.sequences, 7);
      std::vector<Batch> singles;
      for (int j = 0; j < 7; ++j) singles.push_back(one.next(1));
      EXPECT_EQ(batch.tokens, tokens_of(singles));
      EXPECT_EQ(one.position(), many.position());
    }
    EXPECT_GT(crossing, 10);
  }
}

TEST(Shards, ResumptionAtEveryPositionGivesTheSameBatches) {
  ManyShards data;
  for (Pack pack : {Pack::documents, Pack::stream})
    for (int ranks : {1, 3}) {
      std::vector<DataPosition> positions;
      std::vector<Batch> batches;
      Loader whole = data.loader(pack, ranks - 1, ranks);
      while (whole.position().epoch < 3) {
        positions.push_back(whole.position());
        batches.push_back(whole.next(2));
      }
      for (size_t from = 0; from < positions.size(); ++from) {
        Loader resumed = data.loader(pack, ranks - 1, ranks);
        resumed.seek(positions[from]);
        EXPECT_EQ(resumed.position(), positions[from]);
        for (size_t i = from; i < std::min(from + 12, positions.size()); ++i) {
          ASSERT_EQ(resumed.position(), positions[i]);
          ASSERT_TRUE(same(resumed.next(2), batches[i]));
        }
        resumed.seek(positions[from]);  // and back again
        ASSERT_TRUE(same(resumed.next(2), batches[from]));
      }
    }
}

TEST(Shards, ADocumentThatGoesOnInTheNextShardIsTwo) {
  std::vector<Tokens> shards = {ids({256, 1, 2, 3}), ids({4, 5, 256, 6, 256})};
  Loader loader(shards, kVocabulary, Pack::documents, 8, 1);
  std::map<int, int> seen;
  for (const Batch& batch : epoch_of(&loader, 2))
    for (int i = 0; i < batch.rows(); ++i) seen[batch.tokens[i]] = batch.targets[i];
  EXPECT_EQ(seen, (std::map<int, int>{{1, 2}, {2, 3}, {3, -1}, {4, 5}, {5, 256}, {6, 256}}));
}

TEST(Shards, ThoseWithoutRowsArePassedOver) {
  Tokens nothing, end = ids({256}), masked = ids({256, 1, 2, 256}, {0, 0, 0, 0}), good = ids({256, 1, 2, 256});
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader loader({nothing, end, masked, good, masked, end}, kVocabulary, pack, 8, 1);
    for (int epoch = 0; epoch < 8; ++epoch) EXPECT_EQ(loader.next(1).rows(), pack == Pack::stream ? 3 : 2);
    EXPECT_GE(loader.position().epoch, 7);
    loader.seek({0, 0, 0});
    EXPECT_EQ(loader.next(100).sequences, 100);
  }
}

TEST(Shards, OfSixteenAndThirtyTwoBitsGiveTheSameBatches) {
  Written documents = numbered(random_lengths(80, 0, 60, 22));
  mask_at_random(&documents, 23);
  Tokens narrow = documents.as<uint16_t>(), wide = documents.as<uint32_t>();
  ASSERT_EQ(wide.bits(), 32);
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader a({narrow}, kVocabulary, pack, 16, 1), b({wide}, kVocabulary, pack, 16, 1);
    EXPECT_EQ(a.tokens(), narrow.size());
    EXPECT_EQ(b.tokens(), wide.size());
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(same(a.next(2), b.next(2)));
    }
  }
}

TEST(Shards, WithoutAnEndOfTextAreOneDocument) {
  Loader loader({ids({5, 6, 7, 8})}, {512, -1}, Pack::documents, 8, 1);
  EXPECT_EQ(loader.next(1).targets, (std::vector<int>{6, 7, 8, -1}));
}

// --- Documents -------------------------------------------------------------------------------------------------------

TEST(Documents, AreTheRunsBetweenEndOfTexts) {
  auto lengths = [](const Tokens& tokens) {
    std::vector<int64_t> found;
    for (Document document : Documents(tokens, kEndOfText)) {
      found.push_back(document.length());
      EXPECT_GT(document.length(), 0);
      for (int64_t i = document.begin; i < document.end; ++i) EXPECT_NE(tokens[i], kEndOfText);
    }
    EXPECT_EQ(Documents(tokens, kEndOfText).count(), int64_t(found.size()));
    return found;
  };
  using Lengths = std::vector<int64_t>;
  EXPECT_EQ(lengths(Tokens()), Lengths{});
  EXPECT_EQ(lengths(ids({256, 256})), Lengths{});
  EXPECT_EQ(lengths(ids({1, 2, 256, 256, 3, 256, 4, 5, 6})), (Lengths{2, 1, 3}));
  std::vector<int> written = random_lengths(300, 1, 300, 24);
  EXPECT_EQ(lengths(numbered(written).as<uint32_t>()), Lengths(written.begin(), written.end()));
}

// --- Ranks -----------------------------------------------------------------------------------------------------------

TEST(Ranks, TogetherGiveTheRowsOfOneInOrderWithoutOverlapOrGap) {
  ManyShards data;
  for (Pack pack : {Pack::documents, Pack::stream})
    for (int ranks : {1, 2, 3, 5})
      for (int sequences : {1, 2, 5}) {
        Loader alone = data.loader(pack);
        std::vector<Loader> loaders;
        for (int rank = 0; rank < ranks; ++rank) loaders.push_back(data.loader(pack, rank, ranks));
        while (alone.position().epoch < 3) {
          Batch whole = alone.next(sequences * ranks);
          std::vector<Batch> parts;
          for (Loader& loader : loaders) {
            parts.push_back(loader.next(sequences));
            expect_well_formed(parts.back(), 16);
            ASSERT_EQ(parts.back().sequences, sequences);
            ASSERT_EQ(loader.position(), alone.position()) << "ranks stand at different places";
          }
          ASSERT_EQ(tokens_of(parts), whole.tokens);
        }
      }
}

TEST(Ranks, MayBecomeMoreOrFewerWhenARunIsResumed) {
  ManyShards data;
  Loader alone = data.loader(Pack::documents);
  alone.next(31);
  std::vector<Batch> parts;
  for (int rank = 0; rank < 2; ++rank) {
    Loader loader = data.loader(Pack::documents, rank, 2);
    loader.seek(alone.position());
    parts.push_back(loader.next(10));
  }
  EXPECT_EQ(tokens_of(parts), alone.next(20).tokens);
}

// --- Streams ---------------------------------------------------------------------------------------------------------

// The stream written out as a ring of (token, target).
std::vector<std::pair<int, int>> ring_of(const Tokens& shard) {
  std::vector<std::pair<int, bool>> tokens;
  for (int64_t i = 0; i < shard.size(); ++i) tokens.push_back({shard[i], shard.may_be_target(i)});
  bool end_at_both_ends = tokens.size() > 1 && tokens[0].first == kEndOfText && tokens.back().first == kEndOfText;
  if (end_at_both_ends) tokens.erase(tokens.begin());
  std::vector<std::pair<int, int>> ring;
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto [next, predictable] = tokens[(i + 1) % tokens.size()];
    int token = tokens[i].first;
    bool unknown = i + 1 == tokens.size() && token != kEndOfText;  // the document goes on in another file
    bool empty = token == kEndOfText && next == kEndOfText;
    ring.push_back({token, predictable && !unknown && !empty ? next : -1});
  }
  return ring;
}

TEST(Stream, RowsAreRunsOfTheRingOfDocuments) {
  Written documents = numbered(random_lengths(60, 0, 40, 15));
  mask_at_random(&documents, 16);
  Tokens whole = documents.shard();
  for (int cut = 0; cut < 4; ++cut) {  // a shard may begin and end within a document
    Tokens shard = whole.part(cut & 1 ? 20 : 0, whole.size() - (cut & 2 ? 20 : 0));
    auto ring = ring_of(shard);
    std::map<int, size_t> place;
    for (size_t i = 0; i < ring.size(); ++i)
      if (ring[i].first != kEndOfText) place[ring[i].first] = i;
    Loader loader({shard}, kVocabulary, Pack::stream, 16, 4);
    for (int epoch = 0; epoch < 5; ++epoch) {
      auto rows = epoch_of(&loader);
      EXPECT_EQ(rows.size(), ring.size() / 16);
      std::set<size_t> covered;
      for (const Batch& batch : rows) {
        expect_well_formed(batch, 16);
        ASSERT_EQ(batch.segments.size(), 1u);
        ASSERT_EQ(batch.rows(), 16);
        size_t shift = 0;
        while (batch.tokens[shift] == kEndOfText) ++shift;
        size_t start = (place.at(batch.tokens[shift]) + ring.size() - shift) % ring.size();
        for (int i = 0; i < 16; ++i) {
          auto [token, target] = ring[(start + i) % ring.size()];
          ASSERT_EQ(batch.tokens[i], token);
          ASSERT_EQ(batch.targets[i], target);
          covered.insert((start + i) % ring.size());
        }
      }
      EXPECT_EQ(covered.size(), rows.size() * 16) << "rows overlap";
    }
  }
}

// The only row of a shard, turned so that it begins with `first`.
std::vector<std::pair<int, int>> only_row(const Tokens& shard, int first) {
  Loader loader({shard}, kVocabulary, Pack::stream, int(shard.size()), 1);
  EXPECT_EQ(loader.shard_rows(), 1);
  Batch batch = loader.next(1);
  std::vector<std::pair<int, int>> row;
  for (int i = 0; i < batch.rows(); ++i) row.push_back({batch.tokens[i], batch.targets[i]});
  auto begin = std::find_if(row.begin(), row.end(), [&](auto pair) { return pair.first == first; });
  std::rotate(row.begin(), begin, row.end());
  return row;
}

TEST(Stream, EndOfTextIsFollowedByTheNextDocumentsFirstTokenWhereThatIsPredictable) {
  Written documents = numbered({2, 2});
  documents.predictable = {1, 1, 0, 1};
  std::vector<std::pair<int, int>> expected = {{1000, 1001}, {1001, kEndOfText}, {kEndOfText, -1},
                                               {1002, 1003}, {1003, kEndOfText}, {kEndOfText, 1000}};
  EXPECT_EQ(ring_of(documents.shard()), expected);
  EXPECT_EQ(only_row(documents.shard(), 1000), expected);
}

TEST(Stream, WhatFollowsADocumentThatTheShardsEndCutsIsNotATarget) {
  std::vector<std::pair<int, int>> expected = {{7, 8}, {8, 256}, {256, 9}, {9, -1}};
  EXPECT_EQ(only_row(ids({7, 8, 256, 9}), 7), expected);
  expected = {{7, 256}, {256, 9}, {9, -1}, {256, 7}};  // nor is the end-of-text with which the shard begins
  EXPECT_EQ(only_row(ids({256, 7, 256, 9}), 7), expected);
}

TEST(Stream, AnEndOfTextThatFollowsAnotherIsNotATarget) {
  std::vector<std::pair<int, int>> expected = {{7, 256}, {256, -1}, {256, 8}, {8, 256}, {256, 7}};
  EXPECT_EQ(only_row(ids({7, 256, 256, 8, 256}), 7), expected);
}

TEST(Stream, TheOnlyRowIsKeptThoughItIsShort) {
  Written documents = numbered({3, 4});
  auto ring = ring_of(documents.shard());
  std::sort(ring.begin(), ring.end());
  Loader loader = loader_of(documents, Pack::stream, 64, 4);
  EXPECT_EQ(loader.shard_rows(), 1);
  for (int epoch = 0; epoch < 20; ++epoch) {
    Batch batch = loader.next(1);
    std::vector<std::pair<int, int>> row;
    for (int i = 0; i < batch.rows(); ++i) row.push_back({batch.tokens[i], batch.targets[i]});
    std::sort(row.begin(), row.end());
    EXPECT_EQ(row, ring);
  }
}

// --- Mistakes --------------------------------------------------------------------------------------------------------

TEST(Loader, RefusesWhatCannotBeTrainedOn) {
  Written good = numbered({4}), empty = numbered({0, 0}), masked = numbered({4, 4});
  std::fill(masked.predictable.begin(), masked.predictable.end(), 0);
  std::fill(masked.end_predictable.begin(), masked.end_predictable.end(), 0);
  for (Pack pack : {Pack::documents, Pack::stream}) {
    auto message = [&](const std::vector<Tokens>& shards, int T) {
      return message_of([&] { Loader(shards, kVocabulary, pack, T, 1); });
    };
    EXPECT_EQ(message({good.shard()}, 1), "the context must be at least 2 tokens, not 1");
    const char* nothing = "nothing to train on: no token of the training data is a target";
    EXPECT_EQ(message({}, 8), nothing);
    for (const Tokens& shard : {masked.shard(), empty.shard(), Tokens(), ids({256}), ids({7}), ids({256, 7})})
      EXPECT_EQ(message({shard, shard}, 8), pack == Pack::stream && shard.size() == 2 ? "no error" : nothing);
    EXPECT_EQ(message({Tokens(), masked.shard(), good.shard()}, 8), "no error");
  }
}

TEST(Loader, RefusesAPositionThatIsNotInTheData) {
  Written documents = numbered({8, 8});
  Loader loader = loader_of(documents, Pack::documents, 8, 1);
  loader.seek({5, 0, 1});
  EXPECT_EQ(message_of([&] {
              loader.seek({5, 0, 2});
            }),
            "no row 2 in shard 0 of epoch 5, which has 2 rows: this is not the data that the position was taken from");
  EXPECT_EQ(message_of([&] {
              loader.seek({5, 1, 0});
            }),
            "no shard 1 in the data, which has 1: this is not the data that the position was taken from");
  EXPECT_EQ(loader.position(), (DataPosition{5, 0, 1}));
  EXPECT_EQ(loader.next(1).rows(), 8);
}

TEST(Loader, RefusesAnIdThatTheTokenizerLacks) {
  Tokens good = ids({256, 1, 2, 256}), bad = ids({256, 1, 511, 512, 256}), wide(std::vector<uint32_t>{1, 0xFFFFFFFF});
  for (Pack pack : {Pack::documents, Pack::stream}) {
    auto message = [&](const Tokens& shard) {
      return message_of([&] {
        Loader loader({good, shard, good}, {512, 256}, pack, 4, 1);
        for (int i = 0; i < 3; ++i) loader.next(1);
      });
    };
    EXPECT_EQ(message(good), "no error");
    EXPECT_EQ(message(bad),
              "the data holds token 512 at position 3, but the tokenizer has 512 ids: it was made with another "
              "tokenizer");
    EXPECT_NE(message(wide).find("holds token 4294967295 at position 1"), std::string::npos) << message(wide);
    Loader loader({bad}, {512, 256}, pack, 4, 1);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(message_of([&] { loader.next(1); }), message(bad)) << "tried again";
    EXPECT_EQ(message_of([&] { validation_batches({good, bad}, {512, 256}, pack, 4, 4); }), message(bad));
    EXPECT_EQ(message_of([&] { validation_batches({good, bad}, {513, 256}, pack, 4, 4); }), "no error");
  }
}

// --- Validation ------------------------------------------------------------------------------------------------------

TEST(Validation, EveryTokenStandsOnceInOrderWithItsTarget) {
  Written documents = numbered(random_lengths(100, 0, 70, 17));
  mask_at_random(&documents, 18);
  auto target = expected_targets(documents);
  for (int rows : {1, 40, 1000}) {
    auto batches = validation_batches({documents.shard()}, kVocabulary, Pack::documents, 32, rows);
    auto tokens = tokens_of(batches);
    ASSERT_TRUE(std::equal(tokens.begin(), tokens.end(), documents.tokens.begin(), documents.tokens.end()));
    for (const Batch& batch : batches) {
      expect_well_formed(batch, 32);
      EXPECT_EQ(batch.sequences, int(batch.segments.size()));
      EXPECT_TRUE(batch.rows() <= rows || batch.segments.size() == 1);
      for (int i = 0; i < batch.rows(); ++i) ASSERT_EQ(batch.targets[i], target[batch.tokens[i]]);
    }
  }
}

TEST(Validation, WindowsStartAtTheDocumentsFirstTokenAndOnlyTheLastIsShort) {
  Written documents = numbered({75, 64, 3});
  std::vector<int> lengths;
  for (const Batch& batch : validation_batches({documents.shard()}, kVocabulary, Pack::documents, 32, 100))
    for (const Segment& segment : batch.segments) lengths.push_back(segment.rows);
  EXPECT_EQ(lengths, (std::vector<int>{32, 32, 11, 32, 32, 3}));
}

TEST(Validation, AStreamStandsOnceInOrderWithoutItsFinalEndOfText) {
  Written documents = numbered(random_lengths(40, 0, 40, 19));
  mask_at_random(&documents, 20);
  auto ring = ring_of(documents.shard());
  std::vector<std::pair<int, int>> seen;
  for (const Batch& batch : validation_batches({documents.shard()}, kVocabulary, Pack::stream, 32, 100)) {
    expect_well_formed(batch, 32);
    for (int i = 0; i < batch.rows(); ++i) seen.push_back({batch.tokens[i], batch.targets[i]});
  }
  ring.pop_back();
  EXPECT_EQ(seen, ring);
}

TEST(Validation, GoesOnFromShardToShardUpToALimit) {
  std::vector<Tokens> shards = {numbered({20, 30}).shard(), ids({256}), numbered({40, 50}, 2000).shard()};
  for (Pack pack : {Pack::documents, Pack::stream}) {
    auto read = [&](int64_t most) { return tokens_of(validation_batches(shards, kVocabulary, pack, 16, 64, most)); };
    std::vector<int> all = read(INT64_MAX);
    EXPECT_EQ(all.size(), pack == Pack::documents ? 140u : 142u);
    for (int64_t most = 0; most < 150; ++most) {
      std::vector<int> part = read(most);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin()));
      EXPECT_GE(part.size(), 16u) << "no piece at all";
      EXPECT_LE(int64_t(part.size()), std::max<int64_t>(16, most));
      EXPECT_GT(int64_t(part.size()), std::min<int64_t>(int64_t(all.size()), most) - 16);
    }
  }
}

TEST(Validation, DoesNotReadShardsBeyondTheLimit) {
  Tokens good = ids({256, 1, 2, 3, 256}), bad = ids({256, 600, 256});
  auto read = [&](int64_t most) {
    return message_of([&] { validation_batches({good, bad}, {512, 256}, Pack::documents, 8, 8, most); });
  };
  EXPECT_EQ(read(3), "no error");
  EXPECT_NE(read(4), "no error");
}

// --- Text files ------------------------------------------------------------------------------------------------------

class Text : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& bytes) {
    std::string path = folder_ / "text.txt";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  TextSplit read(const std::string& bytes, const std::string& format = "") {
    return read_text(write(bytes), Tokenizer(), format);
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("fullband_data_test_" + std::to_string(getpid()));
};

std::vector<std::string> texts_of(const Tokens& tokens) {
  std::vector<std::string> texts;
  for (Document document : Documents(tokens, kEndOfText)) {
    texts.emplace_back();
    for (int64_t i = document.begin; i < document.end; ++i) texts.back() += char(tokens[i]);
  }
  return texts;
}

// Of each document: is its end a target?
std::vector<uint8_t> ends_of(const Tokens& tokens) {
  std::vector<uint8_t> ends;
  for (Document document : Documents(tokens, kEndOfText)) ends.push_back(tokens.may_be_target(document.end));
  return ends;
}

int targets_of(const Tokens& tokens, Pack pack) {
  int count = 0;
  for (const Batch& batch : validation_batches({tokens}, kVocabulary, pack, 16, 64)) count += batch.target_count();
  return count;
}

std::string some_text(int length) {
  std::string text;
  for (int i = 0; i < length; ++i) text += i % 20 == 19 ? '\n' : char('a' + i % 23);
  return text;
}

// Where a text is cut; its parts are the whole.
size_t cut_of(const TextSplit& split, const std::string& text) {
  EXPECT_EQ(texts_of(split.train).size(), 1u);
  EXPECT_EQ(texts_of(split.validation).size(), 1u);
  EXPECT_EQ(texts_of(split.train).at(0) + texts_of(split.validation).at(0), text);
  return texts_of(split.train).at(0).size();
}

TEST_F(Text, AnUndividedTextIsCutAtTheLinesEndNearestToItsLastTenth) {
  for (auto [length, cut] : {std::pair(1007, 900), {1011, 900}, {1013, 920}, {1020, 920}}) {
    std::string text = some_text(length);  // lines of 20 bytes
    EXPECT_EQ(cut_of(read(text), text), size_t(cut));
  }
}

TEST_F(Text, AnUndividedTextWithoutALinesEndThereIsCutAtItsLastTenth) {
  std::string text = std::string(800, 'a') + "\n" + std::string(199, 'a');
  EXPECT_EQ(cut_of(read(text), text), 900u) << "a fifth was held out";
  text = std::string(60000, 'a');
  text[54000 - 1002] = text[54000 + 1000] = '\n';
  EXPECT_EQ(cut_of(read(text), text), 54000u);
  text[54000 - 1001] = '\n';
  EXPECT_EQ(cut_of(read(text), text), 53000u);
}

TEST_F(Text, NoCharacterIsCut) {
  for (const std::string character : {"é", "€", "😀"})
    for (size_t before = 0; before < 4; ++before) {
      std::string text = std::string(before, 'x');
      for (int i = 0; i < 100; ++i) text += character;
      size_t cut = cut_of(read(text), text), tenth = text.size() * 9 / 10;
      EXPECT_EQ((cut - before) % character.size(), 0u) << character;
      EXPECT_LE(cut, tenth);
      EXPECT_GT(cut + character.size(), tenth);
    }
  std::string no_character(100, '\x80');
  EXPECT_EQ(cut_of(read(no_character), no_character), 90u);
}

TEST_F(Text, EveryTargetOfAnUndividedTextIsAByteOfIt) {
  TextSplit split = read(some_text(1000));
  EXPECT_EQ(ends_of(split.train), std::vector<uint8_t>{0});
  EXPECT_EQ(ends_of(split.validation), std::vector<uint8_t>{0});
  for (Pack pack : {Pack::documents, Pack::stream}) EXPECT_EQ(targets_of(split.validation, pack), 99);
}

TEST_F(Text, AMarkedTextsEndIsATargetButNotTheCutInIt) {
  TextSplit split = read(some_text(1000) + "\n<|endoftext|>\n");
  EXPECT_EQ(ends_of(split.train), std::vector<uint8_t>{0});
  EXPECT_EQ(ends_of(split.validation), std::vector<uint8_t>{1});
  for (Pack pack : {Pack::documents, Pack::stream}) EXPECT_EQ(targets_of(split.validation, pack), 100);
}

TEST_F(Text, MarkersOnLinesOfTheirOwnDivideTheText) {
  TextSplit split = read(
      "one\nline two\n<|endoftext|>\ntwo\n<|endoftext|>\n<|endoftext|>\r\nsay <|endoftext|> in a "
      "line\r\n<|endoftext|>\nlast\n");
  EXPECT_EQ(texts_of(split.train), (std::vector<std::string>{"one\nline two", "two", "say <|endoftext|> in a line"}));
  EXPECT_EQ(texts_of(split.validation), std::vector<std::string>{"last\n"});
  EXPECT_EQ(ends_of(split.train), (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(ends_of(split.validation), std::vector<uint8_t>{1});
}

TEST_F(Text, SeveralDocumentsAreSplitAtTheBorderNearestToTheLastTenth) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += some_text(50) + "\n<|endoftext|>\n";
  TextSplit split = read(text);
  EXPECT_EQ(texts_of(split.train).size(), 36u);
  EXPECT_EQ(texts_of(split.validation).size(), 4u);
  EXPECT_EQ(targets_of(split.validation, Pack::documents), 200);

  split = read("short\n<|endoftext|>\n" + some_text(5000));  // the only border there is
  EXPECT_EQ(texts_of(split.train).size(), 1u);
  EXPECT_EQ(texts_of(split.validation).size(), 1u);
  split = read(some_text(5000) + "\n<|endoftext|>\nshort");
  EXPECT_EQ(texts_of(split.validation), std::vector<std::string>{"short"});
}

TEST_F(Text, AllBytesAreKeptAndPredictable) {
  std::string bytes;
  for (int i = 0; i < 2560; ++i) bytes += char(i);
  TextSplit split = read(bytes, "text");
  cut_of(split, bytes);
  for (const Tokens* side : {&split.train, &split.validation})
    for (Document document : Documents(*side, kEndOfText))
      for (int64_t i = document.begin; i < document.end; ++i) EXPECT_TRUE(side->may_be_target(i));
}

TEST_F(Text, AMarkBeforeItIsNoPartOfIt) {
  const std::string mark = "\xef\xbb\xbf";
  TextSplit split = read(mark + "<|endoftext|>\none\n<|endoftext|>\ntwo");
  EXPECT_EQ(texts_of(split.train), std::vector<std::string>{"one"});
  EXPECT_EQ(texts_of(split.validation), std::vector<std::string>{"two"});
  std::string text = some_text(1000);
  cut_of(read(mark + text), text);
  cut_of(read(mark + text, "text"), text);
  EXPECT_TRUE(message_of([&] { read(mark); }).ends_with("is empty: there is no text in it"));
}

TEST_F(Text, ThatIsSomethingElseIsRefusedUnlessItIsSaidToBeText) {
  std::string zero = some_text(1000);
  zero[7] = '\0';
  for (const std::string& bytes : {"\x1f\x8b" + some_text(1000), zero, "\xff\xfe" + some_text(1000)}) {
    EXPECT_TRUE(message_of([&] { read(bytes); }).ends_with("; --format text takes it as it is"));
    cut_of(read(bytes, "text"), bytes);
  }
}

TEST_F(Text, LiesInMemoryAsInAShard) {
  TextSplit split = read("ab\n<|endoftext|>\n\n<|endoftext|>\ncd\n<|endoftext|>\n" + std::string(9, 'x'));
  std::vector<int> tokens;
  for (int64_t i = 0; i < split.train.size(); ++i) tokens.push_back(split.train[i]);
  EXPECT_EQ(tokens, (std::vector<int>{256, 'a', 'b', 256, 'c', 'd', 256}));
  EXPECT_EQ(split.train.bits(), 16);
  EXPECT_FALSE(split.train.has_mask()) << "there is nothing to mask";
  EXPECT_TRUE(read(some_text(100)).train.has_mask());
}

TEST_F(Text, CanBeSeenBeforeItIsTokenized) {
  std::string text = some_text(1000);
  TextFile file = read_text_file(write(text));
  TextFile moved = std::move(file);
  ASSERT_EQ(moved.train.size(), 1u);
  EXPECT_EQ(moved.train[0].parts[0].text, text.substr(0, 900));
  EXPECT_EQ(moved.validation[0].parts[0].text, text.substr(900));
  // A vocabulary learned from it.
  Tokenizer pairs(Pattern::none, {{'a', 'b'}, {'c', 'd'}}, {"<|endoftext|>"});
  TextSplit split = tokenize(moved, pairs);
  std::vector<int> tokens;
  for (int64_t i = 1; i < split.train.size() - 1; ++i) tokens.push_back(split.train[i]);
  EXPECT_EQ(split.train[0], 258);
  EXPECT_EQ(pairs.decode(tokens), text.substr(0, 900));
  EXPECT_LT(tokens.size(), 900u);
}

TEST_F(Text, TheSmallestTextHasTwoTokensOnEitherSide) {
  EXPECT_EQ(texts_of(read(std::string(20, 'x')).validation), std::vector<std::string>{"xx"});
  EXPECT_EQ(texts_of(read("ab\n<|endoftext|>\ncd").train), std::vector<std::string>{"ab"});
}

TEST_F(Text, TooFewTokensAreTooFewThoughBytesWereEnough) {
  Tokenizer pairs(Pattern::none, {{'a', 'b'}}, {"<|endoftext|>"});
  std::string path = write("abab\n<|endoftext|>\nab");
  EXPECT_EQ(message_of([&] { read_text(path, pairs); }),
            path + " is too small: 2 tokens to train on and 1 to validate with; each takes at least 2");
}

TEST_F(Text, MistakesNameTheFile) {
  std::string path = write("");
  auto message = [&](const std::string& name) { return message_of([&] { read_text(name, Tokenizer()); }); };
  EXPECT_EQ(message(path), path + " is empty: there is no text in it");
  for (const char* tiny :
       {"x", "0123456789", "a\n<|endoftext|>\nbcd", "<|endoftext|>", "\n<|endoftext|>\n<|endoftext|>\n"}) {
    write(tiny);
    EXPECT_EQ(message(path).find(path + " is too small: "), 0u) << message(path);
  }
  for (const std::string& name : {std::string(folder_ / "missing.txt"), folder_.string()}) {
    EXPECT_NE(message(name).find(name), std::string::npos) << message(name);
    EXPECT_EQ(message(name).find('\n'), std::string::npos);
  }
}

// --- Texts with parts that are not predictable -----------------------------------------------------------------------

TEST(TextDocuments, BordersOfTheMaskAreBordersOfTokens) {
  Tokenizer pairs(Pattern::none, {{'a', 'b'}}, {"<|endoftext|>"});  // ab is 256
  Tokens tokens = tokenize(
      {{{{"aba", false}, {"bab", true}, {"", false}}, false}, {{{"", true}}, true}, {{{"ab", true}}, true}}, pairs);
  std::vector<std::pair<int, bool>> seen, expected = {{257, true}, {256, false}, {'a', false}, {'b', true},
                                                      {256, true}, {257, false}, {256, true},  {257, true}};
  for (int64_t i = 0; i < tokens.size(); ++i) seen.push_back({tokens[i], tokens.may_be_target(i)});
  EXPECT_EQ(seen, expected);
}

TEST(TextDocuments, WideTokensAreForLargeVocabularies) {
  std::vector<Tokenizer::Merge> merges;
  for (int i = 0; i < 65280; ++i) merges.push_back({i / 256, i % 256});
  for (size_t count : {65279u, 65280u}) {  // with bytes and end-of-text 65,536 ids, and one more
    Tokenizer tokenizer(Pattern::none, {merges.begin(), merges.begin() + std::ptrdiff_t(count)}, {"<|endoftext|>"});
    Tokens tokens = tokenize({{{{"abx", true}}, true}}, tokenizer);
    EXPECT_EQ(tokens.bits(), count == 65279 ? 16 : 32);
    EXPECT_EQ(tokens[0], tokenizer.end_of_text());
    EXPECT_EQ(tokens[1], 256 + 'a' * 256 + 'b');
    EXPECT_EQ(tokens[2], 'x');
  }
}

TEST(TextDocuments, NeedAnEndOfText) {
  Tokenizer none(Pattern::none, {}, {});
  EXPECT_EQ(message_of([&] {
              tokenize({{{{"ab", true}}, true}}, none);
            }),
            "the tokenizer has no end-of-text token, which stands between documents");
}

}  // namespace
