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
#include "words.h"

// What the stack writes down, for `rows` rows (and kv_rows rows of keys and values). While training each layer has its
// own, but for what is computed again on the way back; for inference all layers share one set, but for keys and values,
// and the residual stream is updated in place.
struct LayerTape {
  act* x;                         // rows × D: the residual stream at the layer's entry
  act *norm1, *qkv, *q;           // rows × D, rows × (H+2G)d, rows × Hd
  act *k, *v;                     // kv rows × Gd
  act* attended;                  // rows × Hd
  act *head_z, *gated;            // rows × H, rows × Hd       (head_gate)
  act* o;                         // rows × D                  (branch_norm: the branch before its norm)
  act* mid;                       // rows × D: the residual stream after attention
  act *norm2, *gate_up, *swiglu;  // rows × D, rows × 2F, rows × F
  act* down;                      // rows × D                  (branch_norm)
  // Statistics: rows each; of heads rows × (H+G), rows × H, rows × H
  float *rrms1, *rrms2, *o_rrms, *down_rrms, *qk_rrms, *row_max, *row_scale;
};

// What backward computes again instead of keeping it, with the same bits: nothing; both norms' and SwiGLU's outputs,
// which are cheap; or whole layers from their entries, so that a row keeps its stream, keys and values alone.
enum class Recompute { none, norms, block };
template <>
struct WordTable<Recompute> {
  static constexpr const char* what = "recompute";
  static constexpr Word<Recompute> all[] = {
      {Recompute::none, "none"}, {Recompute::norms, "norms"}, {Recompute::block, "block"}};
};

struct Tape {
  std::vector<LayerTape> layers;
  act *x_last, *h;   // rows × D: the stream after the last layer; the top-layer states
  act* branch;       // rows × D: scratch
  float* rrms_last;  // rows
  Recompute recompute;
};
enum class TapeKind { training, inference };
Tape cut_tape(Cutter&, const ModelConfig&, TapeKind, size_t rows, size_t kv_rows, Recompute = Recompute::none);

// What the backward pass needs beside the tape.
struct GradientTape {
  // Of the pass that is going back, row 0 being its first: the gradient of the residual stream (at the end that of u),
  // and scratch.
  act *dx, *dbranch, *dnorm, *dswiglu, *dgate_up;  // D, D, D, F, 2F
  act *dattended, *dgated, *dhead_z, *dq, *dqkv;   // Hd, Hd, H, Hd, (H+2G)d
  // A layer: kv rows × Gd. With several passes every layer has its own, which collects what later passes send to a
  // prefix; else one pair serves all.
  std::vector<act*> dk, dv;
  bool several_passes;
};
GradientTape cut_gradient_tape(Cutter&, const ModelConfig&, size_t pass_rows, size_t kv_rows, bool several_passes);

// Rotary angles of this many positions, in the table's memory.
Block rope_block(const Kernels&, const ModelConfig&, int positions);

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
  void backward(const ModelParams&, const ModelParams& grads, const Tape&, const GradientTape& gradient, const act* dh,
                int first, int rows, const std::vector<Segment>& segments) const;

 private:
  // The tape as it looks from one row on; keys and values stay where they are.
  LayerTape from_row(LayerTape, size_t row) const;
  void attention_half(const ModelParams&, const Tape&, int layer, int first, int rows,
                      const std::vector<Segment>&) const;
  void feed_forward_half(const ModelParams&, const Tape&, int layer, int first, int rows) const;
  void branch_product(const Tape&, act* before_norm, float* rrms, const float* gain, const act* x, const act* w,
                      int first, int rows, int in) const;
};
