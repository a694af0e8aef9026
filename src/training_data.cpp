// What ./train and ./eval read: a text file, or the built-in corpus.
#include "training_data.h"

#include "error.h"
#include "files.h"
#include "log.h"

static bool names_corpus(const std::string& data) {
  return data.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789=,.") == std::string::npos &&
         data.find(".txt") == std::string::npos && data[0] >= 'a' && data[0] <= 'z';
}

static void describe(TrainingData& data, const std::string& what) {
  auto targets = [](const Documents& d) {
    double n = 0;
    for (uint8_t predictable : d.predictable) n += predictable;
    return n;
  };
  auto size_of = [](const Documents& d) {
    return text("%s document%s", show_count(d.count()).c_str(), d.count() == 1 ? "" : "s");
  };
  data.description = {what + ": " + size_of(data.train), show_count(double(data.train.tokens.size())) + " tokens",
                      text("%.0f %% of them targets", 100 * targets(data.train) / double(data.train.tokens.size())),
                      "held out " + size_of(data.validation),
                      show_count(double(data.validation.tokens.size())) + " tokens"};
  data.checksum = crc32c(0, data.train.tokens.data(), data.train.tokens.size() * sizeof(uint16_t));
}

TrainingData read_training_data(const std::string& name, int context, int64_t seed) {
  constexpr int kTrainingDocuments = 1 << 16, kHeldOutDocuments = 2048;
  TrainingData data;
  if (name.empty()) fail("--data is empty; give a text file, sums, all, or a mix like sums=8,cups=1");
  if (file_exists(name) || folder_exists(name) || !names_corpus(name)) {
    TextSplit split = read_text(name);
    data.train = std::move(split.train), data.validation = std::move(split.validation);
    describe(data, name);
    return data;
  }
  TaskMix mix;
  try {
    mix = parse_task_mix(name);
  } catch (const Error& e) {
    fail("--data %s: there is no such file, and as a mix of the built-in corpus: %s", name.c_str(), e.what());
  }
  if (context < kShortestPuzzle)
    fail("rows of %d tokens (./train --seq) are too short: the built-in corpus needs at least %d tokens", context,
         kShortestPuzzle);
  data.train = make_corpus(mix, Split::train, uint64_t(seed), kTrainingDocuments, context).documents;
  Corpus held_out = make_corpus(mix, Split::validation, uint64_t(seed), kHeldOutDocuments, context);
  data.validation = std::move(held_out.documents), data.puzzles = std::move(held_out.puzzles);
  describe(data, text("built-in corpus (%s)", name.c_str()));
  return data;
}
