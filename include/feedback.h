// The stack's input rows: plain ones from a token alone, and fused ones from a token and a carried state h~.
//
//   ê = rmsnorm(E[token]; g_in);   plain  u = ê, or with --plain-input raw E[token];   fused, with one of
//   gate     f = (W_U h~) ⊙ σ(W_G ê)                      the state is the value, the token gates it (the paper's)
//   concat   f = (W_a [ê;h~] + b_a) ⊙ σ(W_b [ê;h~] + b_b)
//   add      f = ê + W h~
//   u = rmsnorm(f; g_in)
//
// Which rows are fused, and from which states, is the caller's business: training passes (passes.h) and decoding
// (decode.h).
#pragma once
#include <vector>

#include "config.h"
#include "kernels.h"
#include "memory.h"
#include "packed.h"
#include "params.h"

struct FeedbackTape {
  act *carried, *value, *fused;  // rows × D: h~, the value before its gate, f
  float* rrms;                   // rows: of f's norm
  act *pair, *gate;              // concat: rows × 2D, rows × D
};
FeedbackTape cut_feedback_tape(Cutter&, const ModelConfig&, size_t rows);

struct FeedbackGradient {
  act *dfused, *dvalue, *dgate, *dpair, *dcarried;  // scratch, rows × D (dpair: 2D)
};
FeedbackGradient cut_feedback_gradient(Cutter&, const ModelConfig&, size_t rows);

// What depends on tokens alone, so that all passes share it: E[token], ê, its norm's 1/rms, σ(W_G ê) (fusion gate).
struct EmbeddedTokens {
  act *e, *embedded, *gates;  // tokens × D
  float* rrms;                // tokens
  act* mixed;                 // scratch, rows × D, for inputs of both kinds
};
EmbeddedTokens cut_embedded_tokens(Cutter&, const ModelConfig&, size_t tokens, bool feedback);

// Which rows of an input u are plain and which fused, in increasing order; one entry a row of that kind.
struct InputRows {
  std::vector<int> plain, plain_token;          // the row in u; its token's row in EmbeddedTokens
  std::vector<int> fused, fused_token, source;  // and the carried state's row in h
  std::vector<uint64_t> noise_key;              // of the jitter; none where jitter is 0
  float jitter = 0;

  void add_plain(int row, int token) { plain.push_back(row), plain_token.push_back(token); }
  void add_fused(int row, int token, int state) {
    fused.push_back(row), fused_token.push_back(token), source.push_back(state);
  }
};

struct Feedback {
  const Kernels& kernels;
  const ModelConfig& config;
  const PackedWeights* packed = nullptr;  // where forward finds the matrices, if not where they lie

  FeedbackTape from_row(FeedbackTape, size_t row) const;
  // Everything of EmbeddedTokens for these tokens; the gates only where rows will be fused.
  void embed(const ModelParams&, const EmbeddedTokens&, const int* tokens, int count, bool fused) const;
  // σ(W_G ê), rows × D; embed's part of it.
  void gates(const ModelParams&, act* gates, const act* embedded, int rows) const;
  // u (rows × D) from embedded tokens and states h.
  void forward(const ModelParams&, const FeedbackTape&, act* u, const EmbeddedTokens&, const act* h,
               const InputRows&) const;
  const act* plain_input(const EmbeddedTokens& t) const {
    return config.plain_input == PlainInput::raw ? t.e : t.embedded;
  }
  // Of the fused rows alone, from their du (fused rows × D): parameters' gradients, dembedded += (concat, add),
  // dgates_in += the gradient before the sigmoid (gate), and dh[source] += unless dh is null (a detached state).
  void backward(const ModelParams&, const ModelParams& grads, const FeedbackTape&, const FeedbackGradient&, act* dh,
                act* dembedded, act* dgates_in, const act* du, const act* gates, const InputRows&) const;
  // Once, after all passes: through the gates' product to ê.
  void gates_backward(const ModelParams&, const ModelParams& grads, act* dembedded, const act* dgates_in,
                      const act* embedded, int rows) const;

 private:
  void fuse(const ModelParams&, const FeedbackTape&, act* u, const EmbeddedTokens&, const act* h,
            const InputRows&) const;
};
