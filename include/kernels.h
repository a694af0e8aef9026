// The kernel table: every operation the engine needs, once, with its contract. The stack is written against this table;
// a device is one table.
//
// Names   rows = tokens computed together; width = features of a row; in, out = widths of a product's two sides;
//         heads (H) query heads, kv_heads (G) key/value heads: query head h reads kv head h / (H/G); head_dim (d).
// Shapes  matrices are row-major and dense. Index arrays (tokens, source, …) have one entry a row.
// Types   act: an element of activations and of the matrices in products: float, or bfloat16 in a table whose
//         element_bytes is 2. Pointers to them are typed act*, a float*, all the same; only kernels look into them, and
//         at() goes along them. What is typed float is float everywhere: parameters to be updated, their gradients,
//         gains, statistics of rows, rotary angles.
// Memory  act*, float* and double* point into the table's memory (take); int*, uint64_t* and Segment* to the host's, as
//         does what is marked so. Calls are done in order; download() waits, other calls may return before.
// Writes  "=" outputs are overwritten, "+=" outputs are added to. No output aliases an input unless said.
// Bits    every result has one right bit pattern, whatever the threads, tiles, batch composition or instruction set
//         (docs/kernels.md). The words used here:
//           chain(a·b)    one accumulator, fma(a, b, acc) in increasing index; from 0 for "=", from the stored value
//                         for "+="
//           lanes(t)      term i goes to lane i % 16 of 16 accumulators (fma where the term is a product), each from
//                         0; then the fixed tree: for half = 8, 4, 2, 1: lane[l] = lane[l] + lane[l + half], l < half
//           exp, sigmoid  the engine's own (src/cpu/elementary.h); fma is one rounding; max(a, b) is a > b ? a : b
//           blocks(rows)  a sum over rows for a parameter's gradient: the call's rows are cut in blocks of kSummedRows, each
//                         is summed from 0 in increasing row, and what is stored gets one block after the other added.
//                         So the rounding error grows with the root of the number of blocks, not of rows.
//         All else is plain float arithmetic in the order written, left to right.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sampler.h"
#include "segments.h"

using act = float;
struct Graph;

constexpr int kSummedRows = 256;  // in a block of a sum over rows

struct AdamStep {
  float lr, beta1, beta2, eps;
  float decay;        // decoupled weight decay: p loses lr · decay · p
  float grad_scale;   // the gradient is multiplied by this first (clipping)
  float correction1;  // 1 / (1 − beta1^t), t = this tensor's own step count
  float correction2;  // 1 / (1 − beta2^t)
};

struct Kernels {
  const char* name;       // "cpu-avx512", "cuda-bf16", …
  const char* device;     // a GPU's name; of a CPU empty
  int element_bytes;      // of an act
  bool in_host_memory;    // take()'s memory may be read and written by the host
  const Kernels* floats;  // the same device's table whose act is float: for parameters and optimizers

  // p, n elements on
  template <class T>
  T* at(T* p, size_t n) const {
    return p ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) + n * size_t(element_bytes)) : nullptr;
  }

  // --- Memory
  // At least this many floats, zeroed, aligned to 64 bytes; fails where there are none. Freed by release (null: nothing).
  float* (*take)(size_t floats);
  void (*release)(float* memory);
  // Bytes that take() may still give; 0: unknown.
  double (*available)();
  // Between the host's memory and the table's: bytes. download waits for all that was called before.
  void (*upload)(void* to, const void* host, size_t bytes);
  void (*download)(void* host, const void* from, size_t bytes);
  void (*wait)();  // for all that was called before
  // Runs body(context), which calls operations, with the same shapes time after time; a GPU keeps them as one graph. They
  // read and write the table's memory alone; body may be called twice for one run.
  Graph* (*new_graph)();
  void (*delete_graph)(Graph*);
  void (*run_graph)(Graph*, void (*body)(void* context), void* context);
  // y = x, rounded to the nearest, ties to even
  void (*from_floats)(act* y, const float* x, int64_t n);
  void (*to_floats)(float* y, const act* x, int64_t n);

  // --- Matrix products
  // y = x wᵀ                    y rows×out, x rows×in, w out×in;   y[r][o] = chain over i of x[r][i]·w[o][i]
  void (*matmul_forward)(act* y, const act* x, const act* w, int rows, int in, int out);
  // dx = dy w, or dx += dy w    dx rows×in, dy rows×out;           dx[r][i] chain over o of dy[r][o]·w[o][i]
  void (*matmul_backward_input)(act* dx, const act* dy, const act* w, int rows, int in, int out, bool accumulate);
  // dw += dyᵀ x, dw float                                          dw[o][i] blocks(r) of the chain dy[r][o]·x[r][i]
  void (*matmul_backward_weight)(float* dw, const act* dy, const act* x, int rows, int in, int out);

  // --- Weights packed for decoding: laid out as a product with few rows reads them, in a way of this table's own
  // (null: this table has none). It takes in · (out rounded up to a multiple of 32) elements, floats or bfloat16 (the nearest, ties to even).
  void (*pack_weight)(void* packed, const act* w, int in, int out, bool bf16);
  // y = x wᵀ as matmul_forward, with the packed values.
  void (*matmul_packed)(act* y, const act* x, const void* packed, int rows, int in, int out, bool bf16);

  // --- Rows and elements
  // out[r] = in[source[r]]      rows × width
  void (*gather_rows)(act* out, const act* in, const int* source, int rows, int width);
  // out[to[r]] = in[r]      No index repeats.
  void (*scatter_rows)(act* out, const act* in, const int* to, int rows, int width);
  // out[to[r]] += in[r]     No index repeats.
  void (*scatter_add_rows)(act* out, const act* in, const int* to, int rows, int width);
  // dembedding[token[r]] += de[r], by blocks(r) of the rows that have this token
  void (*embedding_backward)(float* dembedding, const act* de, const int* token, int rows, int width);
  // x = 0
  void (*zero)(act* x, int64_t n);
  // y = alpha · x      y may be x
  void (*scale)(act* y, const act* x, float alpha, int64_t n);
  // y = y + x
  void (*add)(act* y, const act* x, int64_t n);
  // y = sigmoid(x) = 1 / (1 + exp(−x))      y may be x
  void (*sigmoid)(act* y, const act* x, int64_t n);
  // y[r] = y[r] + bias; and dbias[i] += blocks(r) of dy[r][i]
  void (*bias_forward)(act* y, const float* bias, int rows, int width);
  void (*bias_backward)(float* dbias, const act* dy, int rows, int width);

  // --- Root-mean-square norm of each row (Zhang & Sennrich 2019, arXiv:1910.07467)
  //   rrms = 1 / sqrt(lanes(x·x) / width + eps);   y[i] = gain[i] · (x[i] · rrms)
  void (*rmsnorm_forward)(act* y, float* rrms, const act* x, const float* gain, int rows, int width, float eps);
  //   s = −lanes((gain·dy)·x) · rrms · rrms · rrms / width          (the product gain·dy rounded, then fma with x)
  //   dx[i]    += fma(x[i], s, gain[i]·dy[i]·rrms)                  (one addition to what is there)
  //   dgain[i] += blocks(r) of the chain dy[r][i] · (x[r][i]·rrms[r])
  void (*rmsnorm_backward)(act* dx, float* dgain, const act* dy, const act* x, const float* gain, const float* rrms,
                           int rows, int width);

  // --- QK-norm and rotary embedding (Henry et al. 2020, arXiv:2010.04245; Su et al. 2021, arXiv:2104.09864)
  // qkv is rows × (H + 2G)·d: [q | k | v]. Each head of q and k is rmsnorm'ed as above (gain d wide), giving n; then
  // pairs (n[i], n[i + d/2]) are turned by the position's angle; c = rope[position][i], s = rope[position][d/2 + i]:
  //   out[i] = fma(n[i], c, −(n[i + d/2]·s));   out[i + d/2] = fma(n[i + d/2], c, n[i]·s)
  // q = rows × H·d at the segments' rows, k, v = kv rows × G·d at their own_kv rows; rrms = rows × (H + G): q's heads,
  // then k's.
  void (*qk_norm_rope_forward)(act* q, act* k, act* v, float* rrms, const act* qkv, const float* q_gain,
                               const float* k_gain, const float* rope, const Segment* segments, int segment_count,
                               int heads, int kv_heads, int head_dim, float eps);
  // dq at the segments' rows, dk, dv at their own_kv rows are turned back,
  //   dn[i] = fma(dout[i], c, dout[i + d/2]·s);   dn[i + d/2] = fma(dout[i + d/2], c, −(dout[i]·s))
  // and go through the norm's backward (dqkv = 0 + what rmsnorm_backward adds; v's part is copied).
  // dq_gain, dk_gain += blocks(r) of the chain over rows, in the segments' order, then heads.
  void (*qk_norm_rope_backward)(act* dqkv, float* dq_gain, float* dk_gain, const act* dq, const act* dk, const act* dv,
                                const act* qkv, const float* rrms, const float* q_gain, const float* k_gain,
                                const float* rope, const Segment* segments, int segment_count, int heads, int kv_heads,
                                int head_dim);

  // --- Attention
  // Per query row at position t and head; j are positions of the segment's document, visible are first ≤ j ≤ t with
  // first = window > 0 ? max(0, t − window + 1) : 0:
  //   s_j = chain(q·k_j) · scale, scale = 1 / sqrt(d);   m = max over visible j;   p_j = exp(s_j − m)
  //   l = lanes(p_j), lane j % 16;   y = chain over visible j of p_j·v_j, times (1 / l)
  // y, q = rows × H·d; k, v are kv rows × G·d; row_max = m and row_scale = 1 / l, both rows × H, are kept for backward.
  void (*attention_forward)(act* y, float* row_max, float* row_scale, const act* q, const act* k, const act* v,
                            const Segment* segments, int segment_count, int heads, int kv_heads, int head_dim,
                            int window);
  //   delta = lanes(dy·y);  p_j = exp(s_j − m) · row_scale;  ds_j = p_j · (chain(dy·v_j) − delta) · scale
  //   dq  = chain over visible j of ds_j·k_j
  //   dk_j += chain over the group's heads, then query rows, of ds_j·q;   dv_j += the same of p_j·dy
  // dk and dv are added to, also at the prefix's rows. No two segments may share key/value rows here.
  void (*attention_backward)(act* dq, act* dk, act* dv, const act* dy, const act* y, const act* q, const act* k,
                             const act* v, const float* row_max, const float* row_scale, const Segment* segments,
                             int segment_count, int heads, int kv_heads, int head_dim, int window);
  // A gate per head: y[h] = x[h] · sigmoid(z[h]);  dx[h] = dy[h] · sigmoid(z[h]);  with g = sigmoid(z),
  // dz[h] = lanes(dy·x) · (g · (1 − g)).      y, x = rows × H·d; z = rows × H. y may be x, dx may be dy.
  void (*head_gate_forward)(act* y, const act* x, const act* z, int rows, int heads, int head_dim);
  void (*head_gate_backward)(act* dx, act* dz, const act* dy, const act* x, const act* z, int rows, int heads,
                             int head_dim);

  // --- SwiGLU (Shazeer 2020, arXiv:2002.05202)
  // gate_up is rows × 2F: [g | u].   y = (g·sigmoid(g)) · u
  void (*swiglu_forward)(act* y, const act* gate_up, int rows, int ffn);
  // s = sigmoid(g):  dg = dy·u·(s·(1 + g·(1 − s)));  du = dy·(g·s)
  void (*swiglu_backward)(act* dgate_up, const act* dy, const act* gate_up, int rows, int ffn);

  // --- Residual: y = fma(alpha, branch, x)        y may be x
  void (*residual_forward)(act* y, const act* x, const act* branch, float alpha, int64_t n);

  // --- Latent feedback (Wang et al. 2026, arXiv:2608.08888)
  // The carried state: out[r] = h[source[r]], and with jitter delta > 0  fma(delta, noise, h), noise in [−1, 1) from
  // random_symmetric(noise_key[r], feature) (random.h). rows × width
  void (*carry_forward)(act* out, const act* h, const int* source, const uint64_t* noise_key, float delta, int rows,
                        int width);
  // For fusion by concatenation: pair[r] = [e[index[r]] | h[r]] (rows × 2 width); backward: de[index[r]] += the first
  // half, dh[r] = the second.  No index repeats.
  void (*concat_forward)(act* pair, const act* e, const int* index, const act* h, int rows, int width);
  void (*concat_backward)(act* de, const int* index, act* dh, const act* dpair, int rows, int width);
  // The gate: f[r] = a[r] · s[index[r]];   backward: da[r] = df·s,  dz[index[r]] += df·a·(s·(1 − s)); s is a sigmoid's
  // value. index may be null: then it is r itself.  No index repeats.
  void (*gate_forward)(act* f, const act* a, const act* s, const int* index, int rows, int width);
  void (*gate_backward)(act* da, act* dz, const act* df, const act* a, const act* s, const int* index, int rows,
                        int width);

  // --- Loss
  // Softmax cross-entropy of each row of logits (rows × vocab), all in float but where said:
  //   m = max;  l = lanes(exp(x_i − m));  lse = double(m) + log(double(l));  loss[r] = lse − x[target]   (double)
  //   z_squared[r] = lse²  (double);  best[r] = the first index that attains m
  // and where weight is given, logits are replaced by their gradient: p_i = exp(x_i − m) · (1 / l);
  //   dx_i = (p_i − [i = target]) · weight[r], and with z_loss > 0 then fma(2·z_loss·float(lse)·weight[r], p_i, that)
  // weight lies in host memory and may be null; best lies in the table's; z_squared and best may be null.
  void (*cross_entropy)(double* loss, double* z_squared, int* best, act* logits, const int* target, const float* weight,
                        float z_loss, int rows, int vocab);

  // --- Sampling: the next token of each row of logits, as sample_token (sampler.h). token lies in host memory; waits.
  void (*sample)(int* token, const act* logits, int rows, int vocab, const Sampling& sampling, const uint64_t* key);

  // --- Optimizer, in the table `floats` alone
  // sum = x·x: blocks of 4096 elements by lanes(x·x) in float, blocks added in order in double.
  void (*sum_squares)(double* sum, const float* x, int64_t n);
  //   g' = g·grad_scale;  m = fma(beta1, m, (1 − beta1)·g');  v = fma(beta2, v, (1 − beta2)·(g'·g'))
  //   p = p − lr·(decay·p) − lr·((m·correction1) / (sqrt(v·correction2) + eps))          left to right
  void (*adamw)(float* p, float* m, float* v, const float* g, int64_t n, AdamStep step);
  // y = fma(alpha, x, beta·y)
  void (*blend)(float* y, const float* x, float alpha, float beta, int64_t n);
  // NorMuon's second moment, per row of x (rows × width):  v = fma(beta2, v, (1 − beta2)·(lanes(x·x) / width));
  // x = x / (sqrt(v) + eps)
  void (*row_normalize)(float* x, float* v, float beta2, float eps, int rows, int width);

  // --- The ceilings, for the benchmarks
  // fma chains in registers on every thread, for some milliseconds; in a table of bfloat16 large products on tensor cores.
  // Returns the operations done.
  double (*peak_fma)();
  // Reads n floats once, and returns something of them: bandwidth is 4 n bytes.
  float (*stream_read)(const float* x, int64_t n);
  // a, b, c += d, as an optimizer reads and writes: 28 n bytes.
  void (*stream_update)(float* a, float* b, float* c, const float* d, int64_t n);
};

// The CPU's kernels for the best instruction set this machine has, or for the one named by FULLBAND_ISA
// (avx512, avx2, plain, neon); fails with the list of those available.
const Kernels& cpu_kernels();
// All that this build has and this machine can run, best first.
int cpu_kernel_tables(const Kernels** tables, int capacity);

// Threads used by the CPU kernels from now on; 0 asks for all cores. Returns the number set.
int set_threads(int threads);
