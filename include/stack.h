// The transformer stack, written once against the kernel table: rows of inputs u in, rows of top-layer states h out,
// and the way back. It knows nothing of passes, feedback or decoding: it sees rows and segments.
#pragma once
#include <string>
#include <vector>

#include "config.h"
#include "kernels.h"
#include "memory.h"
#include "packed.h"
#include "params.h"
#include "segments.h"

// What the stack writes down, for `rows` rows (and kv_rows rows of keys and values). While training each layer has its
// own, but for what is computed again on the way back; for inference all layers share one set, but for keys and values,
// and the residual stream is updated in place.
struct LayerTape {
  float* x;                                 // rows × D: the residual stream at the layer's entry
  float *norm1, *rrms1;                     // rows × D, rows
  float *qkv, *qk_rrms, *q;                 // rows × (H+2G)d, rows × (H+G), rows × Hd
  float *k, *v;                             // kv rows × Gd
  float *attended, *row_max, *row_scale;    // rows × Hd, rows × H, rows × H
  float *head_z, *gated;                    // rows × H, rows × Hd       (head_gate)
  float *o, *o_rrms;                        // rows × D, rows            (branch_norm: the branch before its norm)
  float* mid;                               // rows × D: the residual stream after attention
  float *norm2, *rrms2, *gate_up, *swiglu;  // rows × D, rows, rows × 2F, rows × F
  float *down, *down_rrms;                  // rows × D, rows            (branch_norm)
};

// What backward computes again instead of keeping it, with the same bits: nothing; both norms' and SwiGLU's outputs,
// which are cheap; or whole layers from their entries, so that a row keeps its stream, keys and values alone.
enum class Recompute { none, norms, block };
const char* name_of(Recompute);
Recompute recompute_named(const std::string&);

struct Tape {
  std::vector<LayerTape> layers;
  float *x_last, *h, *rrms_last;  // rows × D: the stream after the last layer; the top-layer states; rows
  float* branch;                  // rows × D: scratch
  Recompute recompute;
};
enum class TapeKind { training, inference };
Tape cut_tape(Cutter&, const ModelConfig&, TapeKind, size_t rows, size_t kv_rows, Recompute = Recompute::none);

// What the backward pass needs beside the tape.
struct GradientTape {
  // Of the pass that is going back, row 0 being its first: the gradient of the residual stream (at the end that of u),
  // and scratch.
  float *dx, *dbranch, *dnorm, *dswiglu, *dgate_up;  // D, D, D, F, 2F
  float *dattended, *dgated, *dhead_z, *dq, *dqkv;   // Hd, Hd, H, Hd, (H+2G)d
  // A layer: kv rows × Gd. With several passes every layer has its own, which collects what later passes send to a
  // prefix; else one pair serves all.
  std::vector<float*> dk, dv;
  bool several_passes;
};
GradientTape cut_gradient_tape(Cutter&, const ModelConfig&, size_t pass_rows, size_t kv_rows, bool several_passes);

struct Stack {
  const Kernels& kernels;
  const ModelConfig& config;
  const float* rope;                      // context × d, from rope_table
  const PackedWeights* packed = nullptr;  // where forward finds the matrices, if not where they lie

  // One pass: rows [first, first + rows) of the tape, listed by `segments`, whose `row` counts from `first` (their
  // key/value rows count from the tape's start). Reads layers[0].x; writes h, keys and values.
  void forward(const ModelParams&, const Tape&, int first, int rows, const std::vector<Segment>& segments) const;
  // From dh (rows × D, the pass's first row first) to gradient.dx; adds to the parameters' gradients and to dk, dv of
  // prefixes. With several passes, dk and dv at the pass's own rows hold what later passes sent them (zero before any).
  void backward(const ModelParams&, const ModelParams& grads, const Tape&, const GradientTape& gradient,
                const float* dh, int first, int rows, const std::vector<Segment>& segments) const;

 private:
  void attention_half(const ModelParams&, const Tape&, int layer, int first, int rows,
                      const std::vector<Segment>&) const;
  void feed_forward_half(const ModelParams&, const Tape&, int layer, int first, int rows) const;
  void branch_product(const Tape&, float* before_norm, float* rrms, const float* gain, const float* x, const float* w,
                      int first, int rows, int in) const;
};
