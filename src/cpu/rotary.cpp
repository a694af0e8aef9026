// QK-norm and rotary embedding: what lies between the qkv product and attention.
//
//   forward    n = rmsnorm(head of q or k; gain);  (n_i, n_{i+d/2}) turned by the angle of the row's position
//   backward   the turn's transpose is the turn back; then the norm's backward
//
// Bound by memory. Threads share rows; the gains' gradients, d wide, are sums over all rows and heads in order,
// by blocks of rows.
#include "rmsnorm.h"
#include "tables.h"
#include "workspace.h"

namespace ISA {

// (a, b) → (a cos − b sin, b cos + a sin), for the pairs of one head.
static void turn(float* out, const float* in, const float* rope, int head_dim) {
  int half = head_dim / 2;
  each_piece(half, [&](int i, int n) {
    Lanes a = load(in + i, n), b = load(in + half + i, n), c = load(rope + i, n), s = load(rope + half + i, n);
    store(out + i, fma(a, c, negative(b * s)), n);
    store(out + half + i, fma(b, c, a * s), n);
  });
}

static void turn_back(float* out, const float* in, const float* rope, int head_dim) {
  int half = head_dim / 2;
  each_piece(half, [&](int i, int n) {
    Lanes a = load(in + i, n), b = load(in + half + i, n), c = load(rope + i, n), s = load(rope + half + i, n);
    store(out + i, fma(a, c, b * s), n);
    store(out + half + i, fma(b, c, negative(a * s)), n);
  });
}

static int64_t count_rows(const Segment* segments, int segment_count) {
  int64_t rows = 0;
  for (int s = 0; s < segment_count; ++s) rows += segments[s].rows;
  return rows;
}

// Calls f(row, position, key/value row, count of the rows before) for each row of the segments, shared evenly by the
// threads.
template <class F>
static void each_row(const Segment* segments, int segment_count, int width, F f) {
  int64_t total = count_rows(segments, segment_count);
  parallel(worth_threads(total * width), [&](int thread, int threads) {
    int64_t begin = total * thread / threads, end = total * (thread + 1) / threads, before = 0;
    for (int s = 0; s < segment_count; before += segments[s++].rows) {
      const Segment& g = segments[s];
      for (int64_t i = begin > before ? begin - before : 0; i < g.rows && before + i < end; ++i)
        f(g.row + i, g.position + i, g.own_kv + i, before + i);
    }
  });
}

void qk_norm_rope_forward(float* q, float* k, float* v, float* rrms, const float* qkv, const float* q_gain,
                          const float* k_gain, const float* rope, const Segment* segments, int segment_count, int heads,
                          int kv_heads, int head_dim, float eps) {
  int d = head_dim, width = (heads + 2 * kv_heads) * d;
  each_row(segments, segment_count, width, [&](int64_t row, int64_t position, int64_t kv_row, int64_t) {
    const float* in = qkv + row * width;
    float* normed = thread_workspace(1, d);
    for (int h = 0; h < heads + kv_heads; ++h) {
      float r = reciprocal_rms(in + h * d, d, eps);
      rrms[row * (heads + kv_heads) + h] = r;
      normalize_row(normed, in + h * d, h < heads ? q_gain : k_gain, r, d);
      turn(h < heads ? q + (row * heads + h) * d : k + (kv_row * kv_heads + h - heads) * d, normed, rope + position * d,
           d);
    }
    std::memcpy(v + kv_row * kv_heads * d, in + (heads + kv_heads) * d, kv_heads * d * sizeof(float));
  });
}

void qk_norm_rope_backward(float* dqkv, float* dq_gain, float* dk_gain, const float* dq, const float* dk,
                           const float* dv, const float* qkv, const float* rrms, const float* q_gain,
                           const float* k_gain, const float* rope, const Segment* segments, int segment_count,
                           int heads, int kv_heads, int head_dim) {
  int d = head_dim, both = heads + kv_heads, width = (both + kv_heads) * d;
  float* turned = thread_workspace(2, count_rows(segments, segment_count) * both * d);  // all rows' dn, for the gains
  each_row(segments, segment_count, width, [&](int64_t row, int64_t position, int64_t kv_row, int64_t before) {
    const float* in = qkv + row * width;
    float* out = dqkv + row * width;
    std::memset(out, 0, size_t(both) * d * sizeof(float));
    for (int h = 0; h < both; ++h) {
      float* dn = turned + (before * both + h) * d;
      turn_back(dn, h < heads ? dq + (row * heads + h) * d : dk + (kv_row * kv_heads + h - heads) * d,
                rope + position * d, d);
      normalize_row_backward(out + h * d, dn, in + h * d, h < heads ? q_gain : k_gain, rrms[row * both + h], d);
    }
    std::memcpy(out + both * d, dv + kv_row * kv_heads * d, kv_heads * d * sizeof(float));
  });

  int pieces = (d + kLanes - 1) / kLanes;
  parallel_for(2 * pieces, worth_threads(count_rows(segments, segment_count) * width), [&](int64_t task) {
    bool is_q = task < pieces;
    int i = task % pieces * kLanes, n = d - i < kLanes ? d - i : kLanes;
    float* dgain = (is_q ? dq_gain : dk_gain) + i;
    Lanes total = load(dgain, n), block = {};
    int64_t before = 0;  // rows
    for (int s = 0; s < segment_count; ++s)
      for (int64_t row = segments[s].row; row < segments[s].row + segments[s].rows; ++row) {
        for (int h = is_q ? 0 : heads; h < (is_q ? heads : both); ++h) {
          Lanes normed = load(qkv + row * width + h * d + i, n) * splat(rrms[row * both + h]);
          block = fma(load(turned + (before * both + h) * d + i, n), normed, block);
        }
        if (++before % kSummedRows == 0) total = total + block, block = {};
      }
    if (before % kSummedRows != 0) total = total + block;
    store(dgain, total, n);
  });
}

}  // namespace ISA
