// Latent feedback: how a carried state h~ and a token's embedding become an input row u.
//
//   gate     f = (W_U h~) ⊙ σ(W_G ê)                      the state is the value, the token gates it (the paper's)
//   concat   f = (W_a [ê;h~] + b_a) ⊙ σ(W_b [ê;h~] + b_b)
//   add      f = ê + W h~
//   u = rmsnorm(f; g_in)
//
// Which rows are fused, and from which states, is the caller's business: training passes (passes.h) and decoding
// (decode.h).
#pragma once
#include "config.h"
#include "kernels.h"
#include "memory.h"
#include "params.h"

struct FeedbackTape {
  float *carried, *value, *fused, *rrms;  // rows × D: h~, the value before its gate, f; rows: of f's norm
  float *pair, *gate;                     // concat: rows × 2D, rows × D
};
FeedbackTape cut_feedback_tape(Cutter&, const ModelConfig&, size_t rows);
FeedbackTape from_row(FeedbackTape, const ModelConfig&, size_t row);

struct FeedbackGradient {
  float *dfused, *dvalue, *dgate, *dpair, *dcarried;  // scratch, rows × D (dpair: 2D)
};
FeedbackGradient cut_feedback_gradient(Cutter&, const ModelConfig&, size_t rows);

// The rows to fuse. Arrays have one entry a row.
struct FusedRows {
  int rows;
  const int* token_row;       // its token's row in `embedded` and `gates`
  const int* source;          // the carried state's row in h
  const uint64_t* noise_key;  // of the jitter
  float jitter;
};

struct Feedback {
  const Kernels& kernels;
  const ModelConfig& config;

  // σ(W_G ê) of token rows: depends on the token alone, so that all passes share it. Only for fusion gate.
  void gates(const ModelParams&, float* gates, const float* embedded, int rows) const;
  // u (rows × D) from embedded (ê, token rows × D), gates, and states h.
  void forward(const ModelParams&, const FeedbackTape&, float* u, const float* embedded, const float* gates,
               const float* h, const FusedRows&) const;
  // From du: parameters' gradients, dembedded += (concat, add), dgates_in += the gradient before the sigmoid (gate),
  // and dh[source] += unless dh is null (a detached state).
  void backward(const ModelParams&, const ModelParams& grads, const FeedbackTape&, const FeedbackGradient&, float* dh,
                float* dembedded, float* dgates_in, const float* du, const float* gates, const FusedRows&) const;
  // Once, after all passes: through the gates' product to ê.
  void gates_backward(const ModelParams&, const ModelParams& grads, float* dembedded, const float* dgates_in,
                      const float* embedded, int rows) const;
};
