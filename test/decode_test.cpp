// Decoding: each mode against passes of the reference, position by position and bit for bit; and nothing depends on
// chunks, batch mates or slots.
#include "decode.h"

#include "engine.h"
#include "random.h"
#include "scratch.h"

namespace {

constexpr DecodeMode kModes[] = {DecodeMode::standard, DecodeMode::soft, DecodeMode::fused, DecodeMode::sequential};

std::vector<int> some_tokens(int count, int vocab, unsigned seed) { return random_batch({count}, vocab, seed).tokens; }

std::vector<int> slice(const std::vector<int>& v, int begin, int end) { return {v.begin() + begin, v.begin() + end}; }

std::vector<float> carry_of(const Decoder& decoder, int slot, int width) {
  return {decoder.carry(slot), decoder.carry(slot) + width};
}

// Decodes a document whose first `prompt` tokens are its prompt; h from the prompt's last position on.
std::vector<float> decode_alone(Decoder& decoder, const std::vector<int>& tokens, int prompt, DecodeMode mode,
                                int prefill_passes, int width) {
  decoder.prefill({slice(tokens, 0, prompt)}, mode, prefill_passes);
  std::vector<float> states = carry_of(decoder, 0, width);
  for (size_t t = prompt; t < tokens.size(); ++t) {
    EXPECT_EQ(decoder.position(0), int(t));
    decoder.advance({0}, {tokens[t]});
    std::vector<float> h = carry_of(decoder, 0, width);
    states.insert(states.end(), h.begin(), h.end());
  }
  return states;
}

// --- Each mode against the reference -------------------------------------------------------------------------------

void compare_mode(DecodeMode mode, const std::vector<int>& prefill_passes = {1}) {
  for (auto [name, config] : tiny_configs()) {
    Model model(config);
    fill_with_noise(model);
    reference::Model<float> reference = reference_of(model);
    std::vector<int> tokens = some_tokens(8, config.vocab, 1);
    for (int prompt : {1, 2, 5, 8})
      for (int k : prefill_passes) {
        std::vector<float> all = decoded_states(reference, tokens, prompt, mode, k);
        std::vector<float> want(all.begin() + size_t(prompt - 1) * config.width, all.end());
        for (const Kernels* kernels : every_table())
          for (int rows : {1, 3, 256}) {
            SCOPED_TRACE(testing::Message() << name << ", " << kernels->name << ", prompt of " << prompt
                                            << ", chunks of " << rows << ", " << k << " prefill passes");
            Decoder decoder(*kernels, config, model.params, {1, rows, 0});
            ASSERT_SAME_BITS(decode_alone(decoder, tokens, prompt, mode, k, config.width), want);
          }
      }
  }
}

TEST(Decode, StandardIsOneLongForwardPass) { compare_mode(DecodeMode::standard); }

TEST(Decode, SoftContinuesAPlainPromptByTheRecurrence) { compare_mode(DecodeMode::soft); }

TEST(Decode, SequentialIsTheExactRecurrence) { compare_mode(DecodeMode::sequential); }

TEST(Decode, FusedRebuildsThePromptInPassesAndThenRecurs) { compare_mode(DecodeMode::fused, {0, 1, 2, 3}); }

TEST(Decode, ThreadsChangeNothing) {
  ModelConfig config = tiny_config();
  config.width = 96, config.ffn = 200, config.context = 40;
  Model model(config);
  fill_with_noise(model);
  std::vector<int> tokens = some_tokens(40, config.vocab, 1);
  set_threads(1);
  for (DecodeMode mode : kModes) {
    Decoder decoder(cpu_kernels(), config, model.params, {});
    std::vector<float> want = decode_alone(decoder, tokens, 36, mode, 1, config.width);
    for (int threads : {2, 3}) {
      set_threads(threads);
      EXPECT_SAME_BITS(decode_alone(decoder, tokens, 36, mode, 1, config.width), want) << name_of(mode);
    }
    set_threads(1);
  }
  set_threads(0);
}

// --- Packed weights and cached gates -------------------------------------------------------------------------------

TEST(Decode, PackedWeightsGiveTheSameBits) {
  for (const auto& named : tiny_configs()) {
    const ModelConfig& config = named.second;
    Model model(config), rounded(config);
    fill_with_noise(model), fill_with_noise(rounded);
    round_to_bf16(rounded);
    std::vector<int> tokens = some_tokens(8, config.vocab, 1);
    for (const Kernels* kernels : every_table())
      for (DecodeMode mode : kModes) {
        SCOPED_TRACE(testing::Message() << named.first << ", " << kernels->name << ", " << name_of(mode));
        auto states_and_logits = [&](const Model& m, std::optional<WeightFormat> format) {
          Decoder decoder(*kernels, m.config, m.params, {1, 256, 0, format});
          std::vector<float> all = decode_alone(decoder, tokens, 3, mode, 1, config.width);
          all.insert(all.end(), decoder.logits({0}), decoder.logits({0}) + config.vocab);
          return all;
        };
        EXPECT_SAME_BITS(states_and_logits(model, WeightFormat::f32), states_and_logits(model, {}));
        EXPECT_SAME_BITS(states_and_logits(rounded, WeightFormat::bf16), states_and_logits(rounded, {}));
      }
  }
}

TEST(Decode, GatesAreKeptByTokenUntilThereAreTooMany) {
  GateCache cache(3 * GateCache::kRows);
  std::vector<int> rows, at;
  auto find = [&](const std::vector<int>& tokens) {
    rows.clear(), at.clear();
    return cache.find(tokens, &rows, &at);
  };
  EXPECT_EQ(find({5, 9, 5}), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(rows, (std::vector<int>{0, 1}));
  EXPECT_EQ(at, (std::vector<int>{0, 1}));
  EXPECT_EQ(find({9, 7}), (std::vector<int>{1, 2}));
  EXPECT_EQ(at, (std::vector<int>{1}));
  for (int token = 0; token < 2 * GateCache::kRows - 9; ++token) ASSERT_LT(find({token})[0], GateCache::kRows);
  EXPECT_EQ(find({2 * GateCache::kRows - 10}).size(), 1u);
  EXPECT_TRUE(rows.empty()) << "the last one is still there";
  find({5});
  EXPECT_EQ(rows.size(), 1u) << "an old one is not";
}

// --- Between the modes ---------------------------------------------------------------------------------------------

struct OneDecoder {
  explicit OneDecoder(const ModelConfig& config, DecoderLimits limits = {1, 256, 0})
      : model(config), decoder(cpu_kernels(), model.config, model.params, limits) {
    fill_with_noise(model);
  }
  std::vector<float> decode(const std::vector<int>& tokens, int prompt, DecodeMode mode, int prefill_passes = 1) {
    return decode_alone(decoder, tokens, prompt, mode, prefill_passes, model.config.width);
  }
  std::vector<float> logits(const std::vector<int>& slots) {
    const float* all = decoder.logits(slots);
    return {all, all + slots.size() * model.config.vocab};
  }
  Model model;
  Decoder decoder;
};

TEST(Decode, ADecodedTokenEqualsItsPrefill) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    OneDecoder s(config);
    std::vector<int> tokens = some_tokens(8, config.vocab, 2);
    for (DecodeMode mode : {DecodeMode::standard, DecodeMode::sequential})
      for (int end = 2; end <= 8; ++end) {
        s.decoder.prefill({slice(tokens, 0, end)}, mode);
        std::vector<float> carry = carry_of(s.decoder, 0, config.width), logits = s.logits({0});
        for (int prompt = 1; prompt < end; ++prompt) {
          s.decode(slice(tokens, 0, end), prompt, mode);
          EXPECT_SAME_BITS(carry_of(s.decoder, 0, config.width), carry)
              << name_of(mode) << ", " << prompt << " of " << end;
          EXPECT_SAME_BITS(s.logits({0}), logits);
        }
      }
  }
}

TEST(Decode, SequentialEqualsAsManyFusedPassesAsTokens) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    OneDecoder s(config);
    int T = 8;
    Batch batch = random_batch({T}, config.vocab, 3);
    EngineRun run(cpu_kernels(), s.model, batch, T);
    run.forward(plan_passes(batch, T, fully_fused(batch, T), {.jitter = 0}, 1, 0, T));
    EXPECT_SAME_BITS(s.decode(batch.tokens, 1, DecodeMode::sequential), run.states(T));
  }
}

TEST(Decode, FusedWithAsManyPassesAsThePromptNeedsIsSequential) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    OneDecoder s(config);
    std::vector<int> tokens = some_tokens(8, config.vocab, 4);
    std::vector<float> exact = s.decode(tokens, 5, DecodeMode::sequential);
    EXPECT_SAME_BITS(s.decode(tokens, 5, DecodeMode::fused, 4), exact);
    EXPECT_SAME_BITS(s.decode(tokens, 5, DecodeMode::fused, 7), exact) << "a fixed point";
    EXPECT_NE(s.decode(tokens, 5, DecodeMode::fused, 3), exact);
    EXPECT_NE(s.decode(tokens, 5, DecodeMode::fused, 1), s.decode(tokens, 5, DecodeMode::fused, 2));
  }
}

TEST(Decode, FusedPromptOfOneTokenIsSoft) {
  for (auto [name, config] : tiny_configs()) {
    OneDecoder s(config);
    std::vector<int> tokens = some_tokens(8, config.vocab, 5);
    std::vector<float> soft = s.decode(tokens, 1, DecodeMode::soft);
    for (int k : {1, 2, 5}) EXPECT_SAME_BITS(s.decode(tokens, 1, DecodeMode::fused, k), soft) << name;
    EXPECT_NE(s.decode(tokens, 2, DecodeMode::fused), s.decode(tokens, 2, DecodeMode::soft)) << name;
  }
}

TEST(Decode, SoftsFirstLogitsAreStandardsAndTheNextAreNot) {
  for (auto [name, config] : tiny_configs()) {
    OneDecoder s(config);
    std::vector<int> tokens = some_tokens(6, config.vocab, 6);
    s.decoder.prefill({slice(tokens, 0, 5)}, DecodeMode::standard);
    std::vector<float> first = s.logits({0});
    s.decoder.advance({0}, {tokens[5]});
    std::vector<float> second = s.logits({0});
    s.decoder.prefill({slice(tokens, 0, 5)}, DecodeMode::soft);
    EXPECT_SAME_BITS(s.logits({0}), first) << name;
    s.decoder.advance({0}, {tokens[5]});
    EXPECT_NE(s.logits({0}), second) << name;
  }
}

// --- Batches, chunks and slots -------------------------------------------------------------------------------------

// Documents of unequal prompts in one batch, advanced in orders that change from step to step, some of them pausing.
TEST(Decode, NothingDependsOnChunksBatchMatesOrSlots) {
  auto configs = tiny_configs();
  for (const char* name : {"gate", "concat", "all options"}) {
    ModelConfig config = configs[name];
    int D = config.width;
    OneDecoder alone(config);
    std::vector<std::vector<int>> documents;
    std::vector<int> prompts = {3, 1, 7, 4, 8};
    for (unsigned i = 0; i < 5; ++i) documents.push_back(some_tokens(8, config.vocab, 10 + i));
    for (DecodeMode mode : kModes)
      for (int k : {1, 2}) {
        if (k > 1 && mode != DecodeMode::fused) continue;
        std::vector<std::vector<float>> want;
        for (int i = 0; i < 5; ++i) want.push_back(alone.decode(documents[i], prompts[i], mode, k));
        for (int rows : {1, 2, 3, 5, 7, 256})
          for (unsigned order = 0; order < 3; ++order) {
            SCOPED_TRACE(testing::Message() << name << ", " << name_of(mode) << ", " << k << ", chunks of " << rows
                                            << ", order " << order);
            std::mt19937 random(order);
            std::vector<int> slot_of = {0, 1, 2, 3, 4};  // of each document
            std::shuffle(slot_of.begin(), slot_of.end(), random);
            std::vector<std::vector<int>> of_slots(5);
            for (int i = 0; i < 5; ++i) of_slots[slot_of[i]] = slice(documents[i], 0, prompts[i]);
            Decoder decoder(cpu_kernels(), config, alone.model.params, {6, rows, 0});
            decoder.prefill(of_slots, mode, k);
            std::vector<std::vector<float>> got;
            for (int i = 0; i < 5; ++i) got.push_back(carry_of(decoder, slot_of[i], D));
            for (;;) {
              std::vector<int> live, slots, tokens;
              for (int i = 0; i < 5; ++i)
                if (decoder.position(slot_of[i]) < 8 && (random() % 3 || order == 0)) live.push_back(i);
              bool finished = true;
              for (int i = 0; i < 5; ++i) finished &= decoder.position(slot_of[i]) == 8;
              if (finished) break;
              std::shuffle(live.begin(), live.end(), random);
              for (int i : live) {
                slots.push_back(slot_of[i]);
                tokens.push_back(documents[i][decoder.position(slot_of[i])]);
              }
              if (live.empty()) continue;
              decoder.advance(slots, tokens);
              for (int i : live) {
                std::vector<float> h = carry_of(decoder, slot_of[i], D);
                got[i].insert(got[i].end(), h.begin(), h.end());
              }
            }
            for (int i = 0; i < 5; ++i) ASSERT_SAME_BITS(got[i], want[i]) << "document " << i;
          }
      }
  }
}

TEST(Decode, LogitsAreTheReadoutOfTheCarryInAnyOrderOfSlots) {
  ModelConfig config = tiny_config();
  OneDecoder s(config, {4, 256, 0});
  s.decoder.prefill({{1, 2, 3}, {4}, {5, 6}, {7, 8, 9, 10}}, DecodeMode::soft);
  std::vector<float> want(4 * config.vocab);
  for (int slot = 0; slot < 4; ++slot)
    reference::matmul_forward(&want[slot * config.vocab], s.decoder.carry(slot), s.model.params.embedding, 1,
                              config.width, config.vocab);
  EXPECT_SAME_BITS(s.logits({0, 1, 2, 3}), want);
  std::vector<float> turned = s.logits({3, 1});
  EXPECT_SAME_BITS(row_of(turned, 0, config.vocab), row_of(want, 3, config.vocab));
  EXPECT_SAME_BITS(row_of(turned, 1, config.vocab), row_of(want, 1, config.vocab));
}

TEST(Decode, APrefillStartsAfresh) {
  for (DecodeMode mode : kModes) {
    OneDecoder used(tiny_config(), {3, 4, 0}), fresh(tiny_config(), {3, 4, 0});
    used.decoder.prefill({{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 1}, {2, 2}}, DecodeMode::fused, 2);
    used.decoder.advance({1, 2}, {3, 4});
    for (OneDecoder* s : {&used, &fresh}) {
      s->decoder.prefill({{5, 4, 3}, {2}}, mode);
      EXPECT_EQ(s->decoder.position(0), 3);
      EXPECT_EQ(s->decoder.position(1), 1);
      EXPECT_EQ(s->decoder.position(2), 0) << "an empty slot";
      s->decoder.advance({1, 0}, {6, 7});
    }
    for (int slot : {0, 1})
      EXPECT_SAME_BITS(carry_of(used.decoder, slot, 8), carry_of(fresh.decoder, slot, 8)) << name_of(mode);
  }
}

TEST(Decode, AShorterContextThanTheModelsIsTheSameUpToItsEnd) {
  for (DecodeMode mode : kModes) {
    OneDecoder s(tiny_config()), shorter(tiny_config(), {1, 256, 5});
    EXPECT_EQ(s.decoder.context(), 8);
    EXPECT_EQ(shorter.decoder.context(), 5);
    std::vector<int> tokens = some_tokens(5, 11, 7);
    EXPECT_SAME_BITS(shorter.decode(tokens, 2, mode), s.decode(tokens, 2, mode));
  }
}

TEST(Decode, MemoryGrowsWithSequencesAndContext) {
  ModelConfig config = tiny_config();
  auto bytes = [&](DecoderLimits limits) {
    Plan plan;
    Decoder::plan_memory(plan, cpu_kernels(), config, limits);
    return plan.total();
  };
  // Keys and values, and the states of two passes that a fused prefill holds.
  double cache_row = 4.0 * (config.layers * 2 * config.kv_heads * config.head_dim + 2 * config.width);
  EXPECT_NEAR(bytes({16, 16, 100}) - bytes({16, 16, 50}), 16 * 50 * cache_row, 64 * 4);
  EXPECT_GT(bytes({32, 16, 100}), bytes({16, 16, 100}) + 16 * 100 * cache_row);
  EXPECT_EQ(bytes({16, 16, 0}), bytes({16, 16, 8})) << "0: the model's";
  EXPECT_EQ(bytes({1, 1000, 0}), bytes({1, 8, 0})) << "no more rows than there can be";
  double f32 = bytes({1, 8, 0, WeightFormat::f32}) - bytes({1, 8, 0}), matrices = 0;
  for (const ProductWeight& p : product_weights(config)) matrices += 4.0 * p.in * ((p.out + 31) / 32 * 32);
  EXPECT_EQ(f32, matrices);
  EXPECT_EQ(bytes({1, 8, 0, WeightFormat::bf16}) - bytes({1, 8, 0}), matrices / 2);
}

TEST(DecodeMode, HasTheNamesOfTheFlags) {
  for (DecodeMode mode : kModes) EXPECT_EQ(value_named<DecodeMode>(name_of(mode)), mode);
  EXPECT_EQ(message_of([] { value_named<DecodeMode>("SOFT"); }),
            "a mode is standard, soft, fused or sequential, not \"SOFT\"");
}

}  // namespace
