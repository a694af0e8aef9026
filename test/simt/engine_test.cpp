// What the engine promises on the emulator alone: a decoded token's bits are its prefill's, and no order of threads and
// blocks changes a bit.
#include "../cuda/training.h"
#include "simt.h"

namespace {

TEST(EmulatedEngine, ADecodedTokenEqualsItsPrefillBitForBit) {
  with_cuda_tables([](const Device& d) {
    Model model(small_config());
    fill_with_noise(model);
    std::vector<int> tokens;
    for (int t = 0; t < 24; ++t) tokens.push_back(t * 5 % model.config.vocab);
    size_t vocab = size_t(model.config.vocab);
    std::vector<float> one_by_one = decoded_logits(d.run, model, tokens, 1, DecodeMode::standard);
    for (int prompt : {2, 9, 17, 24})
      for (int rows : {256, 5}) {
        std::vector<float> last(one_by_one.begin() + ptrdiff_t(vocab * size_t(prompt - 1)), one_by_one.end());
        EXPECT_SAME_BITS(decoded_logits(d.run, model, tokens, prompt, DecodeMode::standard, rows), last);
      }
  });
}

TEST(EmulatedEngine, GivesTheSameBitsInTenOrdersOfThreads) {
  int seeds = test_long() ? 100 : 10, steps = test_long() ? 3 : 1;
  with_cuda_tables([&](const Device& d) {
    std::vector<float> want;
    for (uint64_t seed = 1; seed <= uint64_t(seeds); ++seed) {
      simt::set_seed(seed);
      Training training(d.run, small_config());
      for (int step = 0; step < steps; ++step) training.step(3);
      if (want.empty()) want = training.parameters();
      EXPECT_SAME_BITS(training.parameters(), want) << "seed " << seed;
    }
    simt::set_seed(1);
  });
}

// A table that counts how often the steps of its graphs are walked through.
int steps_walked = 0;
const Kernels* counted = nullptr;
Kernels counting(const Kernels& run) {
  Kernels table = run;
  counted = &run, steps_walked = 0;
  table.run_graph = [](Graph* graph, void (*body)(void*), void* context) {
    struct Step {
      void (*body)(void*);
      void* context;
    } step{body, context};
    counted->run_graph(
        graph,
        [](void* s) {
          ++steps_walked;
          static_cast<Step*>(s)->body(static_cast<Step*>(s)->context);
        },
        &step);
  };
  return table;
}

TEST(EmulatedEngine, ReplaysOneGraphForEveryDecodedToken) {
  with_cuda_tables([](const Device& d) {
    Model model(small_config());
    fill_with_noise(model);
    std::vector<int> tokens;
    for (int t = 0; t < 24; ++t) tokens.push_back(t * 5 % model.config.vocab);
    for (DecodeMode mode : {DecodeMode::standard, DecodeMode::soft}) {
      Kernels table = counting(d.run);
      decoded_logits(table, model, tokens, 4, mode);
      EXPECT_EQ(steps_walked, 20) << "more: a step differed from the graph's";
    }
  });
}

}  // namespace
