// The way from documents to batches: targets, windows, packing, order, resumption, and text files.
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

// Documents of these lengths; every token is another number, from 1000 on, so that each can be told apart.
Documents numbered(const std::vector<int>& lengths) {
  Documents documents;
  for (int length : lengths) {
    for (int i = 0; i < length; ++i) documents.tokens.push_back(uint16_t(1000 + documents.tokens.size()));
    documents.predictable.resize(documents.tokens.size(), 1);
    documents.end_predictable.push_back(1);
    documents.starts.push_back(int64_t(documents.tokens.size()));
  }
  return documents;
}

std::vector<int> random_lengths(int count, int least, int most, uint64_t seed) {
  Random random(random_key(seed));
  std::vector<int> lengths(count);
  for (int& length : lengths) length = least + random.below(most - least + 1);
  return lengths;
}

// What follows each token in its document, written out: masks, then end-of-text.
std::map<int, int> expected_targets(const Documents& documents) {
  std::map<int, int> target;
  for (int d = 0; d < documents.count(); ++d)
    for (int64_t i = documents.starts[d]; i < documents.starts[d + 1]; ++i) {
      bool last = i + 1 == documents.starts[d + 1];
      bool masked = last ? !documents.end_predictable[d] : !documents.predictable[i + 1];
      target[documents.tokens[i]] = masked ? -1 : last ? kEndOfText : documents.tokens[i + 1];
    }
  return target;
}

void mask_at_random(Documents* documents, uint64_t seed) {
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

std::vector<Batch> epoch_of(Loader* loader) {
  std::vector<Batch> rows;
  for (int64_t n = loader->rows_per_epoch(); n > 0; --n) rows.push_back(loader->next(1));
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
  Documents documents = numbered({3, 1, 2});
  Loader loader(documents, Pack::documents, 8, 1);
  EXPECT_EQ(loader.rows_per_epoch(), 1);
  Batch batch = loader.next(1);
  std::map<int, int> target;
  for (int i = 0; i < batch.rows(); ++i) target[batch.tokens[i]] = batch.targets[i];
  EXPECT_EQ(target,
            (std::map<int, int>{
                {1000, 1001}, {1001, 1002}, {1002, kEndOfText}, {1003, kEndOfText}, {1004, 1005}, {1005, kEndOfText}}));
  EXPECT_EQ(batch.target_count(), 6);
}

TEST(Loader, WhatIsNotPredictableIsMasked) {
  Documents documents = numbered({5});
  documents.predictable = {1, 0, 1, 0, 1};
  documents.end_predictable = {0};
  Loader loader(documents, Pack::documents, 8, 1);
  Batch batch = loader.next(1);
  EXPECT_EQ(batch.targets, (std::vector<int>{-1, 1002, -1, 1004, -1}));
  EXPECT_EQ(batch.target_count(), 2);
}

TEST(Loader, EveryTokenStandsInAnEpochOnceWithItsTarget) {
  Documents documents = numbered(random_lengths(150, 0, 70, 1));  // shorter and longer than T
  auto target = expected_targets(documents);
  Loader loader(documents, Pack::documents, 16, 7);
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
  Documents documents = numbered(random_lengths(100, 1, 40, 2));
  Loader loader(documents, Pack::documents, 16, 7);
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
  Documents documents = numbered({4, 4, 4});
  documents.predictable = {1, 0, 0, 0, /**/ 0, 0, 0, 1, /**/ 0, 0, 0, 0};
  documents.end_predictable = {0, 0, 0};
  Loader loader(documents, Pack::documents, 8, 1);
  EXPECT_EQ(tokens_of(epoch_of(&loader)), (std::vector<int>{1004, 1005, 1006, 1007}));
}

// --- Windows and packing ---------------------------------------------------------------------------------------------

TEST(Loader, WindowsOfALongDocumentMoveFromEpochToEpoch) {
  Documents documents = numbered({100});
  Loader loader(documents, Pack::documents, 10, 3);
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
  Documents documents = numbered(random_lengths(200, 1, 32, 3));
  Loader loader(documents, Pack::documents, 32, 3);
  size_t segments = 0;
  for (const Batch& batch : epoch_of(&loader)) segments += batch.segments.size();
  EXPECT_EQ(segments, 200u);
}

double filled(const std::vector<int>& lengths, int T) {
  Documents documents = numbered(lengths);
  Loader loader(documents, Pack::documents, T, 5);
  return double(documents.tokens.size()) / double(loader.rows_per_epoch() * T);
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
  Documents documents = numbered(random_lengths(30, 1, 60, 8));
  Loader loader(documents, Pack::documents, 64, 5);
  std::vector<int> rows;
  for (const Batch& batch : epoch_of(&loader)) rows.push_back(batch.rows());
  std::sort(rows.begin(), rows.end());
  EXPECT_GT(rows[0] + rows[1], 64);
}

// --- Order and resumption --------------------------------------------------------------------------------------------

TEST(Loader, OrderDependsOnSeedAndEpochAlone) {
  Documents documents = numbered(random_lengths(200, 1, 50, 9));
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader a(documents, pack, 32, 1), b(documents, pack, 32, 1), c(documents, pack, 32, 2);
    auto first = tokens_of(epoch_of(&a)), second = tokens_of(epoch_of(&a));
    EXPECT_NE(first, second);
    EXPECT_NE(first, tokens_of(epoch_of(&c)));
    b.seek({1, 0});
    EXPECT_EQ(tokens_of(epoch_of(&b)), second);
    b.seek({0, 0});
    EXPECT_EQ(tokens_of(epoch_of(&b)), first);
  }
}

TEST(Loader, TheOrderIsShuffled) {
  Documents documents = numbered(std::vector<int>(1000, 8));
  Loader loader(documents, Pack::documents, 8, 1);
  auto tokens = tokens_of(epoch_of(&loader));
  int ascents = 0;
  for (size_t i = 8; i < tokens.size(); i += 8) ascents += tokens[i] > tokens[i - 8];
  EXPECT_NEAR(ascents, 500, 60);
}

TEST(Loader, BatchesAreTheSameRowsHoweverManyAreAskedFor) {
  Documents documents = numbered(random_lengths(50, 1, 50, 10));
  for (Pack pack : {Pack::documents, Pack::stream}) {
    Loader one(documents, pack, 32, 1), many(documents, pack, 32, 1);
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
  Documents documents = numbered(random_lengths(80, 0, 90, 12));
  mask_at_random(&documents, 13);
  for (Pack pack : {Pack::documents, Pack::stream})
    for (uint64_t trial = 0; trial < 25; ++trial) {
      Random random(random_key(14, trial));
      Loader whole(documents, pack, 32, trial);
      for (int i = random.below(60); i > 0; --i) whole.next(1 + random.below(7));
      Loader resumed(documents, pack, 32, trial);
      resumed.seek(whole.position());
      for (int i = 0; i < 40; ++i) {
        int n = 1 + random.below(7);
        ASSERT_TRUE(same(whole.next(n), resumed.next(n)));
        ASSERT_EQ(whole.position(), resumed.position());
      }
    }
}

TEST(Loader, AnEpochsEndIsTheNextOnesStart) {
  Documents documents = numbered({8, 8, 8});
  Loader loader(documents, Pack::documents, 8, 1);
  loader.next(2);
  EXPECT_EQ(loader.position(), (DataPosition{0, 2}));
  loader.next(1);
  EXPECT_EQ(loader.position(), (DataPosition{1, 0}));
  loader.next(7);
  EXPECT_EQ(loader.position(), (DataPosition{3, 1}));
}

// --- Streams ---------------------------------------------------------------------------------------------------------

// The stream written out as a ring of (token, target).
std::vector<std::pair<int, int>> ring_of(const Documents& documents) {
  std::vector<std::pair<int, int>> ring;
  for (int d = 0; d < documents.count(); ++d) {
    if (documents.length(d) == 0) continue;
    for (int64_t i = documents.starts[d]; i < documents.starts[d + 1]; ++i)
      ring.push_back({documents.tokens[i], documents.predictable[i]});
    ring.push_back({kEndOfText, documents.end_predictable[d]});
  }
  std::vector<int> targets(ring.size());
  for (size_t i = 0; i < ring.size(); ++i) {
    auto [next, predictable] = ring[(i + 1) % ring.size()];
    targets[i] = predictable ? next : -1;
  }
  for (size_t i = 0; i < ring.size(); ++i) ring[i].second = targets[i];
  return ring;
}

TEST(Stream, RowsAreRunsOfTheRingOfDocuments) {
  Documents documents = numbered(random_lengths(60, 0, 40, 15));
  mask_at_random(&documents, 16);
  auto ring = ring_of(documents);
  std::map<int, size_t> place;
  for (size_t i = 0; i < ring.size(); ++i)
    if (ring[i].first != kEndOfText) place[ring[i].first] = i;
  Loader loader(documents, Pack::stream, 16, 4);
  for (int epoch = 0; epoch < 5; ++epoch) {
    auto rows = epoch_of(&loader);
    EXPECT_EQ(rows.size(), ring.size() / 16);
    std::set<size_t> covered;
    for (const Batch& batch : rows) {
      expect_well_formed(batch, 16);
      ASSERT_EQ(batch.segments.size(), 1u);
      ASSERT_EQ(batch.rows(), 16);
      size_t shift = batch.tokens[0] == kEndOfText ? 1 : 0;
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

TEST(Stream, EndOfTextIsFollowedByTheNextDocumentsFirstTokenWhereThatIsPredictable) {
  Documents documents = numbered({2, 0, 2});
  documents.predictable = {1, 1, 0, 1};
  std::vector<std::pair<int, int>> expected = {{1000, 1001}, {1001, kEndOfText}, {kEndOfText, -1},
                                               {1002, 1003}, {1003, kEndOfText}, {kEndOfText, 1000}};
  EXPECT_EQ(ring_of(documents), expected);
  Batch batch;
  JoinedDocuments(documents).append(&batch, 0, 6);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(std::make_pair(batch.tokens[i], batch.targets[i]), expected[i]);
}

TEST(Stream, TheOnlyRowIsKeptThoughItIsShort) {
  Documents documents = numbered({3, 4});
  Loader loader(documents, Pack::stream, 64, 4);
  EXPECT_EQ(loader.rows_per_epoch(), 1);
  EXPECT_EQ(loader.next(1).rows(), 9);
}

// --- Mistakes --------------------------------------------------------------------------------------------------------

TEST(Loader, RefusesWhatCannotBeTrainedOn) {
  Documents good = numbered({4}), empty = numbered({0, 0}), none, masked = numbered({4, 4});
  std::fill(masked.predictable.begin(), masked.predictable.end(), 0);
  std::fill(masked.end_predictable.begin(), masked.end_predictable.end(), 0);
  for (Pack pack : {Pack::documents, Pack::stream}) {
    EXPECT_EQ(message_of([&] { Loader(good, pack, 1, 1); }), "the context must be at least 2 tokens, not 1");
    EXPECT_EQ(message_of([&] { Loader(masked, pack, 8, 1); }),
              "nothing to train on: the 2 documents hold no token that is a target");
    EXPECT_EQ(message_of([&] { Loader(empty, pack, 8, 1); }),
              "nothing to train on: the 2 documents hold no token that is a target");
    EXPECT_EQ(message_of([&] { Loader(none, pack, 8, 1); }),
              "nothing to train on: the 0 documents hold no token that is a target");
  }
}

TEST(Loader, RefusesAPositionThatIsNotInTheData) {
  Documents documents = numbered({8, 8});
  Loader loader(documents, Pack::documents, 8, 1);
  loader.seek({5, 1});
  EXPECT_EQ(message_of([&] {
              loader.seek({5, 2});
            }),
            "no row 2 in epoch 5, which has 2 rows: this is not the data that the position was taken from");
  EXPECT_EQ(loader.position(), (DataPosition{5, 1}));
}

// --- Validation ------------------------------------------------------------------------------------------------------

TEST(Validation, EveryTokenStandsOnceInOrderWithItsTarget) {
  Documents documents = numbered(random_lengths(100, 0, 70, 17));
  mask_at_random(&documents, 18);
  auto target = expected_targets(documents);
  for (int rows : {1, 40, 1000}) {
    auto batches = validation_batches(documents, Pack::documents, 32, rows);
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
  Documents documents = numbered({75, 64, 3});
  std::vector<int> lengths;
  for (const Batch& batch : validation_batches(documents, Pack::documents, 32, 100))
    for (const Segment& segment : batch.segments) lengths.push_back(segment.rows);
  EXPECT_EQ(lengths, (std::vector<int>{32, 32, 11, 32, 32, 3}));
}

TEST(Validation, AStreamStandsOnceInOrderWithoutItsFinalEndOfText) {
  Documents documents = numbered(random_lengths(40, 0, 40, 19));
  mask_at_random(&documents, 20);
  auto ring = ring_of(documents);
  std::vector<std::pair<int, int>> seen;
  for (const Batch& batch : validation_batches(documents, Pack::stream, 32, 100)) {
    expect_well_formed(batch, 32);
    for (int i = 0; i < batch.rows(); ++i) seen.push_back({batch.tokens[i], batch.targets[i]});
  }
  ring.pop_back();
  EXPECT_EQ(seen, ring);
}

// --- Text files ------------------------------------------------------------------------------------------------------

class TextFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& bytes) {
    std::string path = folder_ / "text.txt";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  TextSplit read(const std::string& bytes) { return read_text(write(bytes)); }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("fullband_data_test_" + std::to_string(getpid()));
};

std::vector<std::string> texts_of(const Documents& documents) {
  std::vector<std::string> texts;
  for (int d = 0; d < documents.count(); ++d)
    texts.push_back(
        decode({documents.tokens.begin() + documents.starts[d], documents.tokens.begin() + documents.starts[d + 1]}));
  return texts;
}

int targets_of(const Documents& documents, Pack pack) {
  int count = 0;
  for (const Batch& batch : validation_batches(documents, pack, 16, 64)) count += batch.target_count();
  return count;
}

std::string some_text(int length) {
  std::string text;
  for (int i = 0; i < length; ++i) text += i % 20 == 19 ? '\n' : char('a' + i % 23);
  return text;
}

TEST_F(TextFile, AnUndividedTextIsCutAtItsLastTenth) {
  std::string text = some_text(1007);
  TextSplit split = read(text);
  EXPECT_EQ(texts_of(split.train), std::vector<std::string>{text.substr(0, 906)});
  EXPECT_EQ(texts_of(split.validation), std::vector<std::string>{text.substr(906)});
}

TEST_F(TextFile, EveryTargetOfAnUndividedTextIsAByteOfIt) {
  TextSplit split = read(some_text(1000));
  EXPECT_EQ(split.train.end_predictable, std::vector<uint8_t>{0});
  EXPECT_EQ(split.validation.end_predictable, std::vector<uint8_t>{0});
  for (Pack pack : {Pack::documents, Pack::stream}) EXPECT_EQ(targets_of(split.validation, pack), 99);
}

TEST_F(TextFile, AMarkedTextsEndIsATargetButNotTheCutInIt) {
  TextSplit split = read(some_text(1000) + "\n<|endoftext|>\n");
  EXPECT_EQ(split.train.end_predictable, std::vector<uint8_t>{0});
  EXPECT_EQ(split.validation.end_predictable, std::vector<uint8_t>{1});
  for (Pack pack : {Pack::documents, Pack::stream}) EXPECT_EQ(targets_of(split.validation, pack), 100);
}

TEST_F(TextFile, MarkersOnLinesOfTheirOwnDivideTheText) {
  TextSplit split = read(
      "one\nline two\n<|endoftext|>\ntwo\n<|endoftext|>\n<|endoftext|>\r\nsay <|endoftext|> in a "
      "line\r\n<|endoftext|>\nlast\n");
  EXPECT_EQ(texts_of(split.train), (std::vector<std::string>{"one\nline two", "two", "say <|endoftext|> in a line"}));
  EXPECT_EQ(texts_of(split.validation), std::vector<std::string>{"last\n"});
  EXPECT_EQ(split.train.end_predictable, (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(split.validation.end_predictable, std::vector<uint8_t>{1});
}

TEST_F(TextFile, SeveralDocumentsAreSplitAtTheBorderNearestToTheLastTenth) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += some_text(50) + "\n<|endoftext|>\n";
  TextSplit split = read(text);
  EXPECT_EQ(split.train.count(), 36);
  EXPECT_EQ(split.validation.count(), 4);
  EXPECT_EQ(targets_of(split.validation, Pack::documents), 200);

  split = read("short\n<|endoftext|>\n" + some_text(5000));  // the only border there is
  EXPECT_EQ(split.train.count(), 1);
  EXPECT_EQ(split.validation.count(), 1);
  split = read(some_text(5000) + "\n<|endoftext|>\nshort");
  EXPECT_EQ(texts_of(split.validation), std::vector<std::string>{"short"});
}

TEST_F(TextFile, AllBytesAreKeptAndPredictable) {
  std::string bytes;
  for (int i = 0; i < 2560; ++i) bytes += char(i);
  TextSplit split = read(bytes);
  EXPECT_EQ(texts_of(split.train)[0] + texts_of(split.validation)[0], bytes);
  for (const Documents* side : {&split.train, &split.validation})
    EXPECT_EQ(side->predictable, std::vector<uint8_t>(side->tokens.size(), 1));
}

TEST_F(TextFile, TheSmallestTextHasTwoTokensOnEitherSide) {
  EXPECT_EQ(texts_of(read(std::string(20, 'x')).validation), std::vector<std::string>{"xx"});
  EXPECT_EQ(texts_of(read("ab\n<|endoftext|>\ncd").train), std::vector<std::string>{"ab"});
}

TEST_F(TextFile, MistakesNameTheFile) {
  std::string path = write("");
  auto message = [&](const std::string& name) { return message_of([&] { read_text(name); }); };
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

}  // namespace
