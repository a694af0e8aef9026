// Decoding: the same stack and the same kernels as training, over a cache of keys and values.
//
//   STANDARD     every token plain
//   SOFT         prompt plain; later tokens fused with the previous position's state, the carry
//   FUSED        prompt plain, then again with fused inputs (once, or prefill_passes times), which rebuilds the whole cache; then as SOFT
//   SEQUENTIAL   the exact recurrence from the first token
#pragma once
#include <string>
#include <vector>

#include "feedback.h"
#include "stack.h"

enum class DecodeMode { standard, soft, fused, sequential };
const char* name_of(DecodeMode);
DecodeMode decode_mode_named(const std::string&);

struct DecoderLimits {
  int sequences = 1;
  int rows = 256;          // computed together: longer prompts go in chunks
  int context = 0;         // positions a sequence may take; 0: the model's
};

// Several sequences, each in a slot of its own, with its cache and its carry.
class Decoder {
 public:
  Decoder(const Kernels&, const ModelConfig&, const ModelParams&, DecoderLimits);
  static void plan_memory(Plan&, const ModelConfig&, DecoderLimits);

  // Starts slots 0 … prompts.size() − 1 with these prompts (each at least one token, at most context). Other slots become empty.
  void prefill(const std::vector<std::vector<int>>& prompts, DecodeMode, int prefill_passes = 1);
  // One more token for each of these (distinct) slots.
  void advance(const std::vector<int>& slots, const std::vector<int>& tokens);
  // Logits after the last token of each of these slots: slots × vocab, valid until the next call.
  const float* logits(const std::vector<int>& slots);

  int position(int slot) const { return positions_[slot]; }  // tokens taken so far
  int context() const { return context_; }
  const float* state(int slot) const { return carry_ + size_t(slot) * config_.width; }  // h of the last token

 private:
  struct Buffers {
    Tape tape;
    float *e, *embedded, *rrms, *gates;
    FeedbackTape feedback;
    float *carry, *logits, *logit_rows;
    float *previous, *current;   // FUSED's prefill: h of all prompt rows, of two passes
  };
  static void cut(Cutter&, Buffers&, const ModelConfig&, DecoderLimits, bool fused_prefill);
  struct Chunk;
  void run_chunk(const Chunk&, const float* carried);
  void prefill_pass(const std::vector<std::vector<int>>& prompts, bool fused);

  const Kernels& run_;
  const ModelConfig& config_;
  const ModelParams& params_;
  DecoderLimits limits_;
  int context_;
  DecodeMode mode_ = DecodeMode::standard;
  Block rope_, memory_;
  Buffers b_;
  float* carry_ = nullptr;
  Stack stack_;
  Feedback feedback_;
  std::vector<int> positions_;
};
