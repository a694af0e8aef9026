// Decoding: the same stack and the same kernels as training, over a cache of keys and values.
//
//   STANDARD     every token plain
//   SOFT         prompt plain; later tokens fused with the previous position's state, the carry
//   FUSED        prompt plain, then again with fused inputs (once, or prefill_passes times), which rebuilds the whole
//                cache; then as SOFT
//   SEQUENTIAL   the exact recurrence from the first token
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feedback.h"
#include "stack.h"
#include "words.h"

enum class DecodeMode { standard, soft, fused, sequential };
template <>
struct WordTable<DecodeMode> {
  static constexpr const char* what = "a mode";
  static constexpr Word<DecodeMode> all[] = {{DecodeMode::standard, "standard"},
                                             {DecodeMode::soft, "soft"},
                                             {DecodeMode::fused, "fused"},
                                             {DecodeMode::sequential, "sequential"}};
};
std::string capitals_of(DecodeMode);                // its name as tables have it
void require_mode(const ModelConfig&, DecodeMode);  // fails where the model has no feedback for it

struct DecoderLimits {
  int sequences = 1;
  int rows = 256;                           // computed together; longer prompts go in chunks
  int context = 0;                          // positions a sequence may take; 0: the model's
  std::optional<WeightFormat> packed = {};  // none: products read the weights where they lie
};

// The gates σ(W_G ê) of tokens that have been seen, one row of D each: they depend on the token alone.
class GateCache {
 public:
  explicit GateCache(int vocab) : row_(size_t(vocab), -1) {}
  static constexpr int kRows = 4096;  // most tokens kept
  // The rows of these tokens (at most kRows); of those that were not there, rows and positions in `tokens` are appended.
  std::vector<int> find(const std::vector<int>& tokens, std::vector<int>* new_rows, std::vector<int>* new_at);

 private:
  std::vector<int> row_;  // of a token, −1: not there
  int used_ = 0;
};

struct DecoderBuffers {
  Tape tape;              // keys and values: sequences × context rows a layer
  EmbeddedTokens tokens;  // rows
  FeedbackTape feedback;
  act *carry, *logit_rows, *logits;  // a sequence
  act* cached_gates;                 // GateCache::kRows × D, at most the vocabulary's
};

// Several sequences, each in a slot of its own, with its cache and its carry. The weights must not change while it lives:
// gates, and packed weights, are computed from them once.
class Decoder {
 public:
  Decoder(const Kernels&, const ModelConfig&, const ModelParams&, DecoderLimits);
  static void plan_memory(Plan&, const Kernels&, const ModelConfig&, DecoderLimits);

  // Starts slots 0 … prompts.size() − 1 with these prompts, each of 1 … context tokens; other slots become empty. Fails
  // where the model has no feedback for the mode.
  void prefill(const std::vector<std::vector<int>>& prompts, DecodeMode, int prefill_passes = 1);
  // One more token for each of these (distinct) slots; their positions must be below context().
  void advance(const std::vector<int>& slots, const std::vector<int>& tokens);
  // A next token for each of these slots, drawn by its own key. Does not move on.
  std::vector<int> sample(const std::vector<int>& slots, const Sampling&, const std::vector<uint64_t>& keys);
  // Logits after the last token of each of these slots: slots × vocab in the host's memory, valid until the next call.
  const float* logits(const std::vector<int>& slots);

  int position(int slot) const { return positions_[slot]; }  // tokens taken so far
  int context() const { return limits_.context; }
  int sequences() const { return limits_.sequences; }
  int vocab() const { return config_.vocab; }
  int end_of_text() const { return config_.end_of_text; }
  const act* carry(int slot) const { return run_.at(b_.carry, size_t(slot) * config_.width); }  // h of the last token

 private:
  struct Row {
    int slot, position, token;
    int source;  // the row of the carried state, −1: plain input
  };
  // What the stack is to compute together.
  struct Rows {
    std::vector<int> tokens;
    InputRows input;
    std::vector<Segment> segments;
  };
  using GraphPointer = std::unique_ptr<Graph, void (*)(Graph*)>;
  std::vector<int> gates_of(const std::vector<int>& tokens);
  Rows prepare(const Row* rows, int count);
  void compute(const Rows&, const act* carried);
  template <class Step>
  void as_graph(int rows, Step);
  void prefill_pass(const std::vector<std::vector<int>>& prompts, const act* previous, act* states);
  void compute_logits(const std::vector<int>& slots);

  const Kernels& run_;
  const ModelConfig& config_;
  const ModelParams& params_;
  DecoderLimits limits_;
  DecodeMode mode_ = DecodeMode::standard;
  Block rope_, memory_;
  OnHost logits_;
  DecoderBuffers b_;
  std::unique_ptr<PackedWeights> packed_;
  GateCache gate_cache_;
  Stack stack_;
  Feedback feedback_;
  std::vector<int> positions_;
  std::map<int, GraphPointer> graphs_;  // of a step, by its rows
};
