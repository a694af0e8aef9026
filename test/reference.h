// The model written out naively: the definition that everything else is compared with. It shares no kernel with the
// engine, only the vocabulary: segments, the configuration and the random numbers.
//
//   float    the engine's bits: every sum in the order that include/kernels.h fixes, and the engine's own exp
//   double   the same lines, whose gradients meet central differences at 1e-7
//
// First the operations, one function each, with the arguments and the order of include/kernels.h; then the whole model:
// a Batch and Options go into Model::run(), a Result comes out, gradients are added to Model::gradients.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config.h"
#include "exact.h"
#include "random.h"
#include "segments.h"

namespace reference {

// --- Numbers -------------------------------------------------------------------------------------------------------

template <class T>
using Same = std::type_identity_t<T>;  // a scalar argument that follows the arrays' type

inline float power_of_two(int k) { return std::bit_cast<float>(uint32_t(k + 127) << 23); }

// The engine's exponential: n = round(x / ln 2), r = x − n ln 2 in two steps, a polynomial in r, and 2ⁿ in two factors,
// so that results below the normal range are rounded once and those above become infinite.
inline float exponential(float x) {
  x = x > 89 ? 89 : x;
  x = x < -104 ? -104 : x;
  float n = std::fma(x, 1.44269504f, 12582912.f) - 12582912.f;  // adding 1.5 · 2²³ rounds to a whole number
  float r = std::fma(n, -0.693359375f, x);
  r = std::fma(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    p = std::fma(p, r, c);
  p = std::fma(p, r * r, r);
  p = p + 1;
  int i = std::isnan(x) ? 0 : int(n), half = i >> 1;
  return p * power_of_two(half) * power_of_two(i - half);
}
inline double exponential(double x) { return std::exp(x); }

template <class T>
T sigmoid_of(T x) {
  return T(1) / (T(1) + exponential(-x));
}

template <class T>
double logarithm(double x) {
  return std::is_same_v<T, float> ? exact_log(x) : std::log(x);
}

// A sum along a row: term i goes to lane i % 16, then the lanes meet in a fixed tree.
template <class T>
struct Lanes {
  T lane[16] = {};
  void add(int i, T term) { lane[i % 16] = lane[i % 16] + term; }
  void add_product(int i, T a, T b) { lane[i % 16] = std::fma(a, b, lane[i % 16]); }
  T sum() {
    for (int half = 8; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
    return lane[0];
  }
};

template <class T>
T lanes_dot(const T* a, const T* b, int n) {
  Lanes<T> lanes;
  for (int i = 0; i < n; ++i) lanes.add_product(i, a[i], b[i]);
  return lanes.sum();
}

template <class T>
T chain_dot(const T* a, const T* b, int n) {
  T acc = 0;
  for (int i = 0; i < n; ++i) acc = std::fma(a[i], b[i], acc);
  return acc;
}

// --- Matrix products -----------------------------------------------------------------------------------------------

template <class T>
void matmul_forward(T* y, const T* x, const T* w, int rows, int in, int out) {
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < out; ++o) y[size_t(r) * out + o] = chain_dot(x + size_t(r) * in, w + size_t(o) * in, in);
}

template <class T>
void matmul_backward_input(T* dx, const T* dy, const T* w, int rows, int in, int out, bool accumulate) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < in; ++i) {
      T acc = accumulate ? dx[size_t(r) * in + i] : T(0);
      for (int o = 0; o < out; ++o) acc = std::fma(dy[size_t(r) * out + o], w[size_t(o) * in + i], acc);
      dx[size_t(r) * in + i] = acc;
    }
}

// Sums over rows, for parameters' gradients, are cut in blocks; add(row, &sum) adds a row's terms to a block's sum.
constexpr int kRowBlock = 256;

template <class T, class Add>
void add_in_blocks(T& total, int rows, Add add) {
  for (int begin = 0; begin < rows; begin += kRowBlock) {
    T block = 0;
    for (int r = begin; r < rows && r < begin + kRowBlock; ++r) add(r, block);
    total = total + block;
  }
}

template <class T>
void matmul_backward_weight(T* dw, const T* dy, const T* x, int rows, int in, int out) {
  for (int o = 0; o < out; ++o)
    for (int i = 0; i < in; ++i)
      add_in_blocks(dw[size_t(o) * in + i], rows,
                    [&](int r, T& sum) { sum = std::fma(dy[size_t(r) * out + o], x[size_t(r) * in + i], sum); });
}

// --- Rows and elements ---------------------------------------------------------------------------------------------

template <class T>
void gather_rows(T* out, const T* in, const int* source, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) out[size_t(r) * width + i] = in[size_t(source[r]) * width + i];
}

template <class T>
void scatter_rows(T* out, const T* in, const int* to, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) out[size_t(to[r]) * width + i] = in[size_t(r) * width + i];
}

template <class T>
void scatter_add_rows(T* out, const T* in, const int* source, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) {
      T& sum = out[size_t(source[r]) * width + i];
      sum = sum + in[size_t(r) * width + i];
    }
}

// Of a block, only the tokens that are in it are added to.
template <class T>
void embedding_backward(T* dembedding, const T* de, const int* token, int rows, int width) {
  for (int begin = 0; begin < rows; begin += kRowBlock) {
    std::map<int, std::vector<T>> sums;
    for (int r = begin; r < rows && r < begin + kRowBlock; ++r) {
      std::vector<T>& sum = sums[token[r]];
      sum.resize(width);
      for (int i = 0; i < width; ++i) sum[i] = sum[i] + de[size_t(r) * width + i];
    }
    for (const auto& [id, sum] : sums)
      for (int i = 0; i < width; ++i) dembedding[size_t(id) * width + i] = dembedding[size_t(id) * width + i] + sum[i];
  }
}

template <class T>
void scale(T* y, const T* x, Same<T> alpha, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
}

template <class T>
void add(T* y, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] + x[i];
}

template <class T>
void sigmoid(T* y, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = sigmoid_of(x[i]);
}

template <class T>
void bias_forward(T* y, const T* bias, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) y[size_t(r) * width + i] = y[size_t(r) * width + i] + bias[i];
}

template <class T>
void bias_backward(T* dbias, const T* dy, int rows, int width) {
  for (int i = 0; i < width; ++i)
    add_in_blocks(dbias[i], rows, [&](int r, T& sum) { sum = sum + dy[size_t(r) * width + i]; });
}

template <class T>
void residual_forward(T* y, const T* x, const T* branch, Same<T> alpha, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::fma(alpha, branch[i], x[i]);
}

// --- Root-mean-square norm -----------------------------------------------------------------------------------------

template <class T>
void rmsnorm_forward(T* y, T* rrms, const T* x, const T* gain, int rows, int width, Same<T> eps) {
  for (int r = 0; r < rows; ++r, x += width, y += width) {
    rrms[r] = T(1) / std::sqrt(lanes_dot(x, x, width) / T(width) + eps);
    for (int i = 0; i < width; ++i) y[i] = gain[i] * (x[i] * rrms[r]);
  }
}

// One row's dx.
template <class T>
void norm_backward(T* dx, const T* dy, const T* x, const T* gain, T rrms, int width) {
  Lanes<T> dot;
  for (int i = 0; i < width; ++i) dot.add_product(i, gain[i] * dy[i], x[i]);
  T s = -dot.sum() * rrms * rrms * rrms / T(width);
  for (int i = 0; i < width; ++i) dx[i] = dx[i] + std::fma(x[i], s, gain[i] * dy[i] * rrms);
}

template <class T>
void rmsnorm_backward(T* dx, T* dgain, const T* dy, const T* x, const T* gain, const T* rrms, int rows, int width) {
  for (int r = 0; r < rows; ++r) {
    size_t at = size_t(r) * width;
    norm_backward(dx + at, dy + at, x + at, gain, rrms[r], width);
  }
  for (int i = 0; i < width; ++i)
    add_in_blocks(dgain[i], rows, [&](int r, T& sum) {
      sum = std::fma(dy[size_t(r) * width + i], x[size_t(r) * width + i] * rrms[r], sum);
    });
}

// --- QK-norm and rotary embedding ----------------------------------------------------------------------------------

template <class T>
void rotate(T* out, const T* n, const T* angle, int head_dim) {
  int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    T c = angle[i], s = angle[half + i];
    out[i] = std::fma(n[i], c, -(n[i + half] * s));
    out[i + half] = std::fma(n[i + half], c, n[i] * s);
  }
}

template <class T>
void rotate_back(T* dn, const T* dout, const T* angle, int head_dim) {
  int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    T c = angle[i], s = angle[half + i];
    dn[i] = std::fma(dout[i], c, dout[i + half] * s);
    dn[i + half] = std::fma(dout[i + half], c, -(dout[i] * s));
  }
}

template <class T>
void qk_norm_rope_forward(T* q, T* k, T* v, T* rrms, const T* qkv, const T* q_gain, const T* k_gain, const T* rope,
                          const Segment* segments, int segment_count, int heads, int kv_heads, int head_dim,
                          Same<T> eps) {
  int d = head_dim;
  std::vector<T> n(d);
  for (int s = 0; s < segment_count; ++s)
    for (int i = 0; i < segments[s].rows; ++i) {
      size_t row = segments[s].row + i, kv_row = segments[s].own_kv + i;
      const T* angle = rope + size_t(segments[s].position + i) * d;
      for (int head = 0; head < heads + kv_heads; ++head) {
        bool is_q = head < heads;
        T* out = is_q ? q + (row * heads + head) * d : k + (kv_row * kv_heads + head - heads) * d;
        rmsnorm_forward(n.data(), rrms + row * (heads + kv_heads) + head,
                        qkv + (row * (heads + 2 * kv_heads) + head) * d, is_q ? q_gain : k_gain, 1, d, eps);
        rotate(out, n.data(), angle, d);
      }
      const T* v_in = qkv + (row * (heads + 2 * kv_heads) + heads + kv_heads) * d;
      for (int j = 0; j < kv_heads * d; ++j) v[kv_row * kv_heads * d + j] = v_in[j];
    }
}

template <class T>
void qk_norm_rope_backward(T* dqkv, T* dq_gain, T* dk_gain, const T* dq, const T* dk, const T* dv, const T* qkv,
                           const T* rrms, const T* q_gain, const T* k_gain, const T* rope, const Segment* segments,
                           int segment_count, int heads, int kv_heads, int head_dim) {
  int d = head_dim, both = heads + kv_heads;
  std::vector<T> dn(d);
  std::vector<T>
      terms[2];  // the factors of the gains' gradients, [row in the segments' order][head][d][2]; of q, then of k
  for (int s = 0; s < segment_count; ++s)
    for (int i = 0; i < segments[s].rows; ++i) {
      size_t row = segments[s].row + i, kv_row = segments[s].own_kv + i;
      const T* angle = rope + size_t(segments[s].position + i) * d;
      for (int head = 0; head < both; ++head) {
        bool is_q = head < heads;
        const T* dout = is_q ? dq + (row * heads + head) * d : dk + (kv_row * kv_heads + head - heads) * d;
        size_t at = (row * (both + kv_heads) + head) * d;
        T r = rrms[row * both + head];
        rotate_back(dn.data(), dout, angle, d);
        for (int j = 0; j < d; ++j) dqkv[at + j] = 0;
        norm_backward(dqkv + at, dn.data(), qkv + at, is_q ? q_gain : k_gain, r, d);
        for (int j = 0; j < d; ++j) terms[!is_q].push_back(dn[j]), terms[!is_q].push_back(qkv[at + j] * r);
      }
      T* dv_out = dqkv + (row * (both + kv_heads) + both) * d;
      for (int j = 0; j < kv_heads * d; ++j) dv_out[j] = dv[kv_row * kv_heads * d + j];
    }
  for (bool is_k : {false, true}) {
    int count = is_k ? kv_heads : heads, rows = int(terms[is_k].size() / (2 * size_t(count) * d));
    for (int j = 0; j < d; ++j)
      add_in_blocks((is_k ? dk_gain : dq_gain)[j], rows, [&](int r, T& sum) {
        for (int head = 0; head < count; ++head) {
          const T* factors = &terms[is_k][2 * ((size_t(r) * count + head) * d + j)];
          sum = std::fma(factors[0], factors[1], sum);
        }
      });
  }
}

// --- Attention -----------------------------------------------------------------------------------------------------

inline int first_visible(int position, int window) {
  return window > 0 && position - window + 1 > 0 ? position - window + 1 : 0;
}

// Where head `head` of key/value row `row` starts.
inline size_t kv_at(int row, int head, int heads, int kv_heads, int head_dim) {
  return (size_t(row) * kv_heads + head / (heads / kv_heads)) * head_dim;
}

template <class T>
void attention_forward(T* y, T* row_max, T* row_scale, const T* q, const T* k, const T* v, const Segment* segments,
                       int segment_count, int heads, int kv_heads, int head_dim, int window) {
  const T scale = T(1) / std::sqrt(T(head_dim));
  for (int n = 0; n < segment_count; ++n)
    for (int i = 0; i < segments[n].rows; ++i)
      for (int head = 0; head < heads; ++head) {
        const Segment& segment = segments[n];
        int t = segment.position + i, first = first_visible(t, window);
        size_t at = size_t(segment.row + i) * heads + head;
        std::vector<T> s(t + 1);
        auto kv = [&](int j) { return kv_at(segment.kv_row(j), head, heads, kv_heads, head_dim); };
        for (int j = first; j <= t; ++j) s[j] = chain_dot(q + at * head_dim, k + kv(j), head_dim) * scale;
        T m = s[first];
        for (int j = first; j <= t; ++j) m = m > s[j] ? m : s[j];
        Lanes<T> l;
        for (int j = first; j <= t; ++j) l.add(j, s[j] = exponential(s[j] - m));
        row_max[at] = m;
        row_scale[at] = T(1) / l.sum();
        for (int c = 0; c < head_dim; ++c) {
          T acc = 0;
          for (int j = first; j <= t; ++j) acc = std::fma(s[j], v[kv(j) + c], acc);
          y[at * head_dim + c] = acc * row_scale[at];
        }
      }
}

template <class T>
void attention_backward(T* dq, T* dk, T* dv, const T* dy, const T* y, const T* q, const T* k, const T* v,
                        const T* row_max, const T* row_scale, const Segment* segments, int segment_count, int heads,
                        int kv_heads, int head_dim, int window) {
  const T scale = T(1) / std::sqrt(T(head_dim));
  for (int n = 0; n < segment_count; ++n)
    for (int head = 0; head < heads;
         ++head)  // before the rows: a key's chain runs over the group's heads, then over rows
      for (int i = 0; i < segments[n].rows; ++i) {
        const Segment& segment = segments[n];
        int t = segment.position + i, first = first_visible(t, window);
        size_t at = size_t(segment.row + i) * heads + head, row = at * head_dim;
        T delta = lanes_dot(dy + row, y + row, head_dim);
        for (int c = 0; c < head_dim; ++c) dq[row + c] = 0;
        for (int j = first; j <= t; ++j) {
          size_t kv = kv_at(segment.kv_row(j), head, heads, kv_heads, head_dim);
          T p = exponential(chain_dot(q + row, k + kv, head_dim) * scale - row_max[at]) * row_scale[at];
          T ds = p * (chain_dot(dy + row, v + kv, head_dim) - delta) * scale;
          for (int c = 0; c < head_dim; ++c) {
            dq[row + c] = std::fma(ds, k[kv + c], dq[row + c]);
            dk[kv + c] = std::fma(ds, q[row + c], dk[kv + c]);
            dv[kv + c] = std::fma(p, dy[row + c], dv[kv + c]);
          }
        }
      }
}

template <class T>
void head_gate_forward(T* y, const T* x, const T* z, int rows, int heads, int head_dim) {
  for (size_t h = 0; h < size_t(rows) * heads; ++h)
    for (int i = 0; i < head_dim; ++i) y[h * head_dim + i] = x[h * head_dim + i] * sigmoid_of(z[h]);
}

template <class T>
void head_gate_backward(T* dx, T* dz, const T* dy, const T* x, const T* z, int rows, int heads, int head_dim) {
  for (size_t h = 0; h < size_t(rows) * heads; ++h) {
    T g = sigmoid_of(z[h]);
    dz[h] = lanes_dot(dy + h * head_dim, x + h * head_dim, head_dim) * (g * (T(1) - g));
    for (int i = 0; i < head_dim; ++i) dx[h * head_dim + i] = dy[h * head_dim + i] * g;
  }
}

// --- SwiGLU --------------------------------------------------------------------------------------------------------

template <class T>
void swiglu_forward(T* y, const T* gate_up, int rows, int ffn) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < ffn; ++i) {
      T g = gate_up[size_t(r) * 2 * ffn + i], u = gate_up[size_t(r) * 2 * ffn + ffn + i];
      y[size_t(r) * ffn + i] = (g * sigmoid_of(g)) * u;
    }
}

template <class T>
void swiglu_backward(T* dgate_up, const T* dy, const T* gate_up, int rows, int ffn) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < ffn; ++i) {
      size_t at = size_t(r) * 2 * ffn + i;
      T g = gate_up[at], u = gate_up[at + ffn], s = sigmoid_of(g), d = dy[size_t(r) * ffn + i];
      dgate_up[at] = d * u * (s * (T(1) + g * (T(1) - s)));
      dgate_up[at + ffn] = d * (g * s);
    }
}

// --- Latent feedback -----------------------------------------------------------------------------------------------

template <class T>
void carry_forward(T* out, const T* h, const int* source, const uint64_t* noise_key, Same<T> delta, int rows,
                   int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) {
      T state = h[size_t(source[r]) * width + i];
      out[size_t(r) * width + i] = delta > 0 ? std::fma(delta, T(random_symmetric(noise_key[r], i)), state) : state;
    }
}

template <class T>
void concat_forward(T* pair, const T* e, const int* index, const T* h, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) {
      pair[size_t(r) * 2 * width + i] = e[size_t(index[r]) * width + i];
      pair[size_t(r) * 2 * width + width + i] = h[size_t(r) * width + i];
    }
}

template <class T>
void concat_backward(T* de, const int* index, T* dh, const T* dpair, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) {
      T& sum = de[size_t(index[r]) * width + i];
      sum = sum + dpair[size_t(r) * 2 * width + i];
      dh[size_t(r) * width + i] = dpair[size_t(r) * 2 * width + width + i];
    }
}

template <class T>
void gate_forward(T* f, const T* a, const T* s, const int* index, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i)
      f[size_t(r) * width + i] = a[size_t(r) * width + i] * s[size_t(index ? index[r] : r) * width + i];
}

template <class T>
void gate_backward(T* da, T* dz, const T* df, const T* a, const T* s, const int* index, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) {
      size_t at = size_t(r) * width + i, gate = size_t(index ? index[r] : r) * width + i;
      da[at] = df[at] * s[gate];
      dz[gate] = dz[gate] + df[at] * a[at] * (s[gate] * (T(1) - s[gate]));
    }
}

// --- Loss ----------------------------------------------------------------------------------------------------------

template <class T>
void cross_entropy(double* loss, double* z_squared, int* best, T* logits, const int* target, const T* weight,
                   Same<T> z_loss, int rows, int vocab) {
  for (int r = 0; r < rows; ++r) {
    T* x = logits + size_t(r) * vocab;
    T m = x[0];
    for (int i = 0; i < vocab; ++i) m = m > x[i] ? m : x[i];
    Lanes<T> lanes;
    for (int i = 0; i < vocab; ++i) lanes.add(i, exponential(x[i] - m));
    T l = lanes.sum();
    double lse = double(m) + logarithm<T>(double(l));
    loss[r] = lse - double(x[target[r]]);
    if (z_squared) z_squared[r] = lse * lse;
    if (best)
      for (best[r] = 0; best[r] < vocab - 1 && x[best[r]] != m;) ++best[r];
    if (!weight) continue;
    T inverse = T(1) / l, pull = T(2) * z_loss * T(lse) * weight[r];
    for (int i = 0; i < vocab; ++i) {
      T p = exponential(x[i] - m) * inverse;
      x[i] = (p - T(i == target[r])) * weight[r];
      if (z_loss > 0) x[i] = std::fma(pull, p, x[i]);
    }
  }
}

// --- Optimizer -----------------------------------------------------------------------------------------------------

template <class T>
double sum_squares(const T* x, int64_t n) {
  double total = 0;
  for (int64_t first = 0; first < n; first += 4096) {
    int block = int(n - first < 4096 ? n - first : 4096);
    total += double(lanes_dot(x + first, x + first, block));
  }
  return total;
}

template <class T>
struct AdamNumbers {
  T lr, beta1, beta2, eps, decay, grad_scale, correction1, correction2;
};

template <class T>
void adamw(T* p, T* m, T* v, const T* g, int64_t n, const AdamNumbers<T>& step) {
  for (int64_t i = 0; i < n; ++i) {
    T scaled = g[i] * step.grad_scale;
    m[i] = std::fma(step.beta1, m[i], (T(1) - step.beta1) * scaled);
    v[i] = std::fma(step.beta2, v[i], (T(1) - step.beta2) * (scaled * scaled));
    p[i] = p[i] - step.lr * (step.decay * p[i]) -
           step.lr * ((m[i] * step.correction1) / (std::sqrt(v[i] * step.correction2) + step.eps));
  }
}

template <class T>
void blend(T* y, const T* x, Same<T> alpha, Same<T> beta, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::fma(alpha, x[i], beta * y[i]);
}

template <class T>
void row_normalize(T* x, T* v, Same<T> beta2, Same<T> eps, int rows, int width) {
  for (int r = 0; r < rows; ++r, x += width) {
    v[r] = std::fma(beta2, v[r], (T(1) - beta2) * (lanes_dot(x, x, width) / T(width)));
    for (int i = 0; i < width; ++i) x[i] = x[i] / (std::sqrt(v[r]) + eps);
  }
}

// --- The whole model -----------------------------------------------------------------------------------------------

template <class T>
using Tensors = std::map<std::string, std::vector<T>>;  // by the names of docs/model.md

// One micro-batch: segments packed end to end, each a document from its first token.
struct Batch {
  std::vector<int> tokens, targets;  // one a row; a negative target is none
  std::vector<int> lengths;          // rows of each segment
  int passes = 1;                    // K
  // [k − 2][segment]: the segment's first p rows are plain in pass k, 1 ≤ p ≤ rows.
  std::vector<std::vector<int>> prefix;
  int first_segment = 0;  // the number of its first segment within the step (a key of the jitter)

  int rows() const { return int(tokens.size()); }
  int segments() const { return int(lengths.size()); }
};

enum class GradientMode { through, detach, last };

struct Options {
  double lambda = 1;
  float jitter = 0, z_loss = 0;
  GradientMode gradient = GradientMode::through;
  bool reuse = true;  // pass k computes its suffixes only, and reads pass 1's keys and values before them
  uint64_t seed = 0;  // keys of the jitter
  int step = 0;
  int64_t step_targets = 0;  // M, all targets of the optimizer's step; 0: those of this batch
  bool backward = true;
  double pass_weight[8] = {1, 1, 1, 1, 1, 1, 1, 1};  // for experiments on single losses: multiplies pass k's at [k − 1]
};

// What one run computed, in the order of pass 1's rows. Where pass k reused its prefix, its rows hold pass 1's values.
template <class T>
struct Result {
  std::vector<std::vector<T>> states;           // [k − 1]: rows × D, h of pass k
  std::vector<std::vector<T>> state_gradients;  // [k − 1]: own rows × D: all that reached h of pass k (after backward)
  std::vector<std::vector<double>> row_loss;    // [k − 1]: one a row, 0 where there is no target
  std::vector<std::vector<double>> z_squared;  // [k − 1]: lse², likewise
  std::vector<double> loss;                    // [k − 1]: Σ row_loss / M
  std::vector<std::vector<T>> carried;         // [k − 2]: fused rows × D, h~
  double objective = 0;                        // Σ weight · (loss + z_loss · lse²): what the gradients belong to
};

// What a layer keeps for its backward pass.
template <class T>
struct LayerTrace {
  std::vector<T> x, norm1, rrms1, qkv, q, qk_rrms, attended, row_max, row_scale, head_z, gated, branch1, branch1_rrms;
  std::vector<T> middle, norm2, rrms2, gate_up, activated, branch2, branch2_rrms;
};

// One pass over some rows. Rows are counted twice: within the pass, and among all passes' rows ("stored": where its
// states and its keys and values stand).
template <class T>
struct PassTrace {
  int first = 0, rows = 0;          // its stored rows are [first, first + rows)
  std::vector<Segment> segments;    // row: within the pass; prefix_kv, own_kv: stored
  std::vector<int> token_row;       // pass 1's row of the same token
  std::vector<int> fused, plain;    // its rows, by their kind of input
  std::vector<int> source;          // per fused row: the stored row of the state it carries
  std::vector<uint64_t> noise_key;  // per fused row
  std::vector<T> carried, concat, value, gate, mixed, mixed_rrms;  // per fused row: h~, [ê | h~], a, σ(b), f
  std::vector<LayerTrace<T>> layers;
  std::vector<T> top, top_rrms;  // the last layer's output

  int fused_rows() const { return int(fused.size()); }
  std::vector<int> fused_token_row() const {
    std::vector<int> of;
    for (int row : fused) of.push_back(token_row[row]);
    return of;
  }
  std::vector<int> plain_token_row() const {
    std::vector<int> of;
    for (int row : plain) of.push_back(token_row[row]);
    return of;
  }
};

template <class T>
class Run;

template <class T>
class Model {
 public:
  explicit Model(const ModelConfig& resolved) : config(resolved) {
    auto both = [&](const std::string& name, size_t n) { parameters[name].resize(n), gradients[name].resize(n); };
    size_t D = config.width, F = config.ffn, q = config.heads_width(), kv = config.kv_heads * config.head_dim;
    both("model.embed_tokens.weight", config.vocab * D);
    both("model.input_norm.weight", D);
    both("model.norm.weight", D);
    for (int l = 0; l < config.layers; ++l) {
      std::string layer = "model.layers." + std::to_string(l) + ".";
      for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) both(layer + norm + ".weight", D);
      both(layer + "self_attn.q_proj.weight", q * D);
      for (const char* name : {"k_proj", "v_proj"}) both(layer + "self_attn." + name + ".weight", kv * D);
      for (const char* name : {"q_norm", "k_norm"}) both(layer + "self_attn." + name + ".weight", config.head_dim);
      both(layer + "self_attn.o_proj.weight", D * q);
      for (const char* name : {"gate_proj", "up_proj", "down_proj"}) both(layer + "mlp." + name + ".weight", F * D);
      if (config.head_gate) both(layer + "self_attn.head_gate.weight", config.heads * D);
      if (!config.branch_norm) continue;
      for (const char* norm : {"post_attn_norm", "post_mlp_norm"}) both(layer + norm + ".weight", D);
    }
    std::string feedback = "latent_feedback.";
    if (config.fusion == Fusion::gate)
      for (const char* name : {"value", "gate"}) both(feedback + name + ".weight", D * D);
    if (config.fusion == Fusion::concat)
      for (const char* name : {"concat_value", "concat_gate"})
        both(feedback + name + ".weight", D * 2 * D), both(feedback + name + ".bias", D);
    if (config.fusion == Fusion::add) both(feedback + "add.weight", D * D);
  }

  // Adds the batch's gradients to `gradients`. With `carried` (a Result's), the states that pass k ≥ 2 takes are those
  // instead of earlier passes': what is differentiated where h~ carries no gradient.
  Result<T> run(const Batch& batch, const Options& options = {}, const std::vector<std::vector<T>>* carried = nullptr) {
    return Run<T>(*this, batch, options, carried).passes();
  }
  // The exact recurrence over one document, token by token: h_1 from a plain input, h_t from fused(e_t, h_{t−1}).
  std::vector<T> recurrence(const std::vector<int>& tokens) {
    return Run<T>(*this, {tokens, tokens, {int(tokens.size())}, 1, {}, 0}, {}, nullptr).sequential();
  }
  void clear_gradients() {
    for (auto& [name, gradient] : gradients) gradient.assign(gradient.size(), T(0));
  }

  ModelConfig config;
  Tensors<T> parameters, gradients;
};

template <class T>
class Run {
 public:
  Run(Model<T>& model, const Batch& batch, const Options& options, const std::vector<std::vector<T>>* given)
      : model_(model),
        config_(model.config),
        batch_(batch),
        options_(options),
        given_(given),
        N(batch.rows()),
        D(config_.width),
        L(config_.layers),
        H(config_.heads),
        G(config_.kv_heads),
        d(config_.head_dim),
        F(config_.ffn),
        alpha(config_.residual_scale),
        eps(config_.norm_eps) {
    targets_ = options.step_targets;
    if (!targets_)
      for (int target : batch.targets) targets_ += target >= 0;
    make_rope();
    embed();
  }

  Result<T> passes() {
    int K = batch_.passes;
    for (int k = 1; k <= K; ++k) plan(k);
    allocate(K == 1 ? N : trace_[K - 1].first + trace_[K - 1].rows);
    if (K > 1) compute_gates();
    for (int k = 1; k <= K; ++k) forward(trace_[k - 1], k);
    result_.row_loss.assign(K, std::vector<double>(N)), result_.z_squared = result_.row_loss;
    for (int k = K; k >= 1; --k) readout(k, options_.backward && k >= first_trained());
    for (int k = K; k >= first_trained() && options_.backward; --k) backward(trace_[k - 1], k);
    if (options_.backward) finish_inputs();
    return report();
  }

  std::vector<T> sequential() {
    allocate(N);
    compute_gates();
    for (int t = 0; t < N; ++t) {
      PassTrace<T> one;
      one.first = t, one.rows = 1, one.segments = {{0, 1, t, 0, t}}, one.token_row = {t};
      (t == 0 ? one.plain : one.fused).push_back(0);
      if (t > 0) one.source = {t - 1}, one.noise_key = {0};
      forward(one, /*pass=*/1);
    }
    return states_;
  }

 private:
  using Vector = std::vector<T>;

  // --- What is run ---

  bool reuses(int pass) const {
    return options_.reuse && pass > 1 && !(options_.gradient == GradientMode::last && pass == batch_.passes);
  }
  int first_trained() const { return options_.gradient == GradientMode::last ? batch_.passes : 1; }
  int prefix(int pass, int segment) const {
    return pass == 1 ? batch_.lengths[segment] : batch_.prefix[pass - 2][segment];
  }
  // The stored row of pass k's state (and key, value) at position t of a segment that starts at pass 1's row `start`.
  int stored_row(int pass, int segment, int start, int t) const {
    if (pass == 1 || (reuses(pass) && t < prefix(pass, segment))) return start + t;
    const Segment& own = trace_[pass - 1].segments[segment];
    return own.own_kv + t - own.position;
  }

  void plan(int pass) {
    PassTrace<T> trace;
    if (pass > 1) trace.first = trace_.back().first + trace_.back().rows;
    for (int s = 0, start = 0; s < batch_.segments(); start += batch_.lengths[s++]) {
      int length = batch_.lengths[s], p = prefix(pass, s), begin = reuses(pass) ? p : 0, own = trace.first + trace.rows;
      trace.segments.push_back({trace.rows, length - begin, begin, reuses(pass) ? start : own, own});
      for (int t = begin; t < length; ++t) {
        trace.token_row.push_back(start + t);
        (t < p ? trace.plain : trace.fused).push_back(trace.rows++);
        if (t < p) continue;
        trace.source.push_back(stored_row(pass - 1, s, start, t - 1));
        trace.noise_key.push_back(
            random_key(options_.seed, Purpose::jitter, options_.step, pass, batch_.first_segment + s, t));
      }
    }
    trace_.push_back(trace);
  }

  void allocate(int stored) {
    states_.assign(size_t(stored) * D, 0), dstates_ = states_;
    keys_.assign(L, Vector(size_t(stored) * G * d)), values_ = dkeys_ = dvalues_ = keys_;
  }

  void make_rope() {
    int positions = 0;
    for (int length : batch_.lengths) positions = length > positions ? length : positions;
    rope_.resize(size_t(positions) * d);
    if constexpr (std::is_same_v<T, float>) {
      rope_table(rope_.data(), positions, d, config_.rope_theta);
      return;
    }
    for (int t = 0; t < positions; ++t)
      for (int i = 0; i < d / 2; ++i) {
        double angle = t * std::pow(double(config_.rope_theta), -2.0 * i / d);
        rope_[size_t(t) * d + i] = T(std::cos(angle)), rope_[size_t(t) * d + d / 2 + i] = T(std::sin(angle));
      }
  }

  // --- Parameters ---

  const T* weight(const std::string& name) { return model_.parameters.at(name).data(); }
  T* gradient(const std::string& name) { return model_.gradients.at(name).data(); }
  static std::string layer_name(int l, const std::string& name) {
    return "model.layers." + std::to_string(l) + "." + name + ".weight";
  }
  static std::vector<std::string> qkv_names(int l) {
    return {layer_name(l, "self_attn.q_proj"), layer_name(l, "self_attn.k_proj"), layer_name(l, "self_attn.v_proj")};
  }
  static std::vector<std::string> gate_up_names(int l) {
    return {layer_name(l, "mlp.gate_proj"), layer_name(l, "mlp.up_proj")};
  }
  // Matrices with equal columns on top of each other, as one.
  static Vector stacked(const Tensors<T>& tensors, const std::vector<std::string>& names) {
    Vector all;
    for (const std::string& name : names) all.insert(all.end(), tensors.at(name).begin(), tensors.at(name).end());
    return all;
  }
  static void unstack(Tensors<T>& tensors, const std::vector<std::string>& names, const Vector& all) {
    auto from = all.begin();
    for (const std::string& name : names) {
      Vector& tensor = tensors.at(name);
      tensor.assign(from, from + tensor.size());
      from += tensor.size();
    }
  }
  // dw += dyᵀ x, where w is a stack.
  void stacked_backward_weight(const std::vector<std::string>& names, const Vector& dy, const Vector& x, int rows,
                               int out) {
    Vector dw = stacked(model_.gradients, names);
    matmul_backward_weight(dw.data(), dy.data(), x.data(), rows, D, out);
    unstack(model_.gradients, names, dw);
  }

  // --- Inputs ---

  void embed() {
    embedding_.resize(size_t(N) * D), normed_.resize(embedding_.size()), normed_rrms_.resize(N);
    dembedding_.resize(embedding_.size()), dnormed_.resize(embedding_.size());
    gather_rows(embedding_.data(), weight("model.embed_tokens.weight"), batch_.tokens.data(), N, D);
    rmsnorm_forward(normed_.data(), normed_rrms_.data(), embedding_.data(), weight("model.input_norm.weight"), N, D,
                    eps);
  }

  void compute_gates() {
    if (config_.fusion != Fusion::gate) return;
    Vector z(size_t(N) * D);
    gates_.resize(z.size()), dgates_.resize(z.size());
    matmul_forward(z.data(), normed_.data(), weight("latent_feedback.gate.weight"), N, D, D);
    sigmoid(gates_.data(), z.data(), z.size());
  }

  void put_rows(Vector& out, const Vector& in, const std::vector<int>& rows) {
    scatter_rows(out.data(), in.data(), rows.data(), int(rows.size()), D);
  }
  Vector take_rows(const Vector& in, const std::vector<int>& rows) {
    Vector out(rows.size() * D);
    gather_rows(out.data(), in.data(), rows.data(), int(rows.size()), D);
    return out;
  }

  Vector inputs(PassTrace<T>& pass, int k) {
    Vector u(size_t(pass.rows) * D);
    put_rows(u, take_rows(config_.plain_input == PlainInput::raw ? embedding_ : normed_, pass.plain_token_row()),
             pass.plain);
    if (!pass.fused_rows()) return u;
    carry(pass, k);
    fuse(pass);
    Vector normed(pass.mixed.size());
    pass.mixed_rrms.resize(pass.fused_rows());
    rmsnorm_forward(normed.data(), pass.mixed_rrms.data(), pass.mixed.data(), weight("model.input_norm.weight"),
                    pass.fused_rows(), D, eps);
    put_rows(u, normed, pass.fused);
    return u;
  }

  void carry(PassTrace<T>& pass, int k) {
    pass.carried.resize(size_t(pass.fused_rows()) * D);
    carry_forward(pass.carried.data(), states_.data(), pass.source.data(), pass.noise_key.data(), T(options_.jitter),
                  pass.fused_rows(), D);
    if (given_) pass.carried = (*given_)[k - 2];
  }

  // f from h~ and the token; the three forms are those of docs/model.md.
  void fuse(PassTrace<T>& pass) {
    int n = pass.fused_rows();
    std::vector<int> tokens = pass.fused_token_row();
    pass.value.resize(size_t(n) * D), pass.mixed.resize(pass.value.size());
    if (config_.fusion == Fusion::gate) {
      matmul_forward(pass.value.data(), pass.carried.data(), weight("latent_feedback.value.weight"), n, D, D);
      gate_forward(pass.mixed.data(), pass.value.data(), gates_.data(), tokens.data(), n, D);
    } else if (config_.fusion == Fusion::add) {
      matmul_forward(pass.mixed.data(), pass.carried.data(), weight("latent_feedback.add.weight"), n, D, D);
      add(pass.mixed.data(), take_rows(normed_, tokens).data(), int64_t(n) * D);
    } else {
      pass.concat.resize(size_t(n) * 2 * D), pass.gate.resize(pass.value.size());
      concat_forward(pass.concat.data(), normed_.data(), tokens.data(), pass.carried.data(), n, D);
      affine(pass.value, pass.concat, "latent_feedback.concat_value", n);
      affine(pass.gate, pass.concat, "latent_feedback.concat_gate", n);
      sigmoid(pass.gate.data(), pass.gate.data(), int64_t(n) * D);
      gate_forward(pass.mixed.data(), pass.value.data(), pass.gate.data(), nullptr, n, D);
    }
  }

  void affine(Vector& y, const Vector& x, const std::string& name, int rows) {
    matmul_forward(y.data(), x.data(), weight(name + ".weight"), rows, 2 * D, D);
    bias_forward(y.data(), weight(name + ".bias"), rows, D);
  }

  // --- The stack ---

  void forward(PassTrace<T>& pass, int k) {
    Vector x = inputs(pass, k);
    pass.layers.resize(L);
    for (int l = 0; l < L; ++l) {
      attention_block(pass, pass.layers[l], l, x);
      mlp_block(pass, pass.layers[l], l, x);
    }
    pass.top = x, pass.top_rrms.resize(pass.rows);
    rmsnorm_forward(&states_[size_t(pass.first) * D], pass.top_rrms.data(), x.data(), weight("model.norm.weight"),
                    pass.rows, D, eps);
  }

  // x = x + α · Attention(rmsnorm(x))
  void attention_block(const PassTrace<T>& pass, LayerTrace<T>& at, int l, Vector& x) {
    int n = pass.rows, qkv_width = config_.qkv_width(), y_width = H * d, segments = int(pass.segments.size());
    at.x = x;
    norm(at.norm1, at.rrms1, x, layer_name(l, "input_layernorm"), n);
    at.qkv.resize(size_t(n) * qkv_width), at.q.resize(size_t(n) * y_width), at.qk_rrms.resize(size_t(n) * (H + G));
    matmul_forward(at.qkv.data(), at.norm1.data(), stacked(model_.parameters, qkv_names(l)).data(), n, D, qkv_width);
    qk_norm_rope_forward(at.q.data(), keys_[l].data(), values_[l].data(), at.qk_rrms.data(), at.qkv.data(),
                         weight(layer_name(l, "self_attn.q_norm")), weight(layer_name(l, "self_attn.k_norm")),
                         rope_.data(), pass.segments.data(), segments, H, G, d, eps);
    at.attended.resize(at.q.size()), at.row_max.resize(size_t(n) * H), at.row_scale.resize(at.row_max.size());
    attention_forward(at.attended.data(), at.row_max.data(), at.row_scale.data(), at.q.data(), keys_[l].data(),
                      values_[l].data(), pass.segments.data(), segments, H, G, d, config_.layer_window(l));
    at.gated = at.attended;
    if (config_.head_gate) {
      at.head_z.resize(size_t(n) * H);
      matmul_forward(at.head_z.data(), at.norm1.data(), weight(layer_name(l, "self_attn.head_gate")), n, D, H);
      head_gate_forward(at.gated.data(), at.attended.data(), at.head_z.data(), n, H, d);
    }
    at.branch1.resize(size_t(n) * D);
    matmul_forward(at.branch1.data(), at.gated.data(), weight(layer_name(l, "self_attn.o_proj")), n, y_width, D);
    add_branch(x, at.branch1, at.branch1_rrms, layer_name(l, "post_attn_norm"), n);
  }

  // x = x + α · SwiGLU(rmsnorm(x))
  void mlp_block(const PassTrace<T>& pass, LayerTrace<T>& at, int l, Vector& x) {
    int n = pass.rows;
    at.middle = x;
    norm(at.norm2, at.rrms2, x, layer_name(l, "post_attention_layernorm"), n);
    at.gate_up.resize(size_t(n) * 2 * F), at.activated.resize(size_t(n) * F), at.branch2.resize(size_t(n) * D);
    matmul_forward(at.gate_up.data(), at.norm2.data(), stacked(model_.parameters, gate_up_names(l)).data(), n, D,
                   2 * F);
    swiglu_forward(at.activated.data(), at.gate_up.data(), n, F);
    matmul_forward(at.branch2.data(), at.activated.data(), weight(layer_name(l, "mlp.down_proj")), n, F, D);
    add_branch(x, at.branch2, at.branch2_rrms, layer_name(l, "post_mlp_norm"), n);
  }

  void norm(Vector& y, Vector& rrms, const Vector& x, const std::string& gain, int rows) {
    y.resize(size_t(rows) * D), rrms.resize(rows);
    rmsnorm_forward(y.data(), rrms.data(), x.data(), weight(gain), rows, D, eps);
  }

  void add_branch(Vector& x, const Vector& branch, Vector& rrms, const std::string& branch_norm, int rows) {
    Vector normed = branch;
    if (config_.branch_norm) norm(normed, rrms, branch, branch_norm, rows);
    residual_forward(x.data(), x.data(), normed.data(), alpha, x.size());
  }

  // --- Loss ---

  // The weight of a row's loss. With reuse, pass 1's rows stand for all passes in which they are prefix.
  double row_weight(int k, int segment, int t) const {
    int K = batch_.passes;
    double base = 1.0 / double(targets_), share = K > 1 ? options_.lambda / (K - 1) : 0;
    if (options_.gradient == GradientMode::last) return base * options_.pass_weight[k - 1];
    if (k > 1) return base * share * options_.pass_weight[k - 1];
    double prefix_passes = 0;
    for (int j = 2; j <= K; ++j)
      if (reuses(j) && t < prefix(j, segment)) prefix_passes += options_.pass_weight[j - 1];
    return base * (options_.pass_weight[0] + share * prefix_passes);
  }

  // Losses of pass k; where it is trained, their gradients in dstates_ and E's.
  void readout(int k, bool trained) {
    const PassTrace<T>& pass = trace_[k - 1];
    std::vector<int> rows, targets, stored;
    Vector weights;
    std::vector<double> exact_weights;
    for (size_t s = 0; s < pass.segments.size(); ++s)
      for (int i = 0; i < pass.segments[s].rows; ++i) {
        int row = pass.segments[s].row + i, target = batch_.targets[pass.token_row[row]];
        if (target < 0) continue;
        rows.push_back(row), targets.push_back(target), stored.push_back(pass.first + row);
        exact_weights.push_back(row_weight(k, int(s), pass.segments[s].position + i));
        weights.push_back(T(exact_weights.back()));
      }
    int n = int(rows.size()), V = config_.vocab;
    const T* readout_weight = weight("model.embed_tokens.weight");
    Vector h = take_rows(states_, stored), logits(size_t(n) * V), dh(h.size());
    std::vector<double> loss(n), z_squared(n);
    matmul_forward(logits.data(), h.data(), readout_weight, n, D, V);
    cross_entropy(loss.data(), z_squared.data(), nullptr, logits.data(), targets.data(),
                  trained ? weights.data() : nullptr, T(options_.z_loss), n, V);
    for (int r = 0; r < n; ++r) {
      result_.row_loss[k - 1][pass.token_row[rows[r]]] = loss[r];
      result_.z_squared[k - 1][pass.token_row[rows[r]]] = z_squared[r];
      if (k >= first_trained())
        result_.objective += exact_weights[r] * (loss[r] + double(options_.z_loss) * z_squared[r]);
    }
    if (!trained) return;
    matmul_backward_input(dh.data(), logits.data(), readout_weight, n, D, V, false);
    matmul_backward_weight(gradient("model.embed_tokens.weight"), logits.data(), h.data(), n, D, V);
    put_rows(dstates_, dh, stored);
  }

  // --- Backward ---

  void backward(PassTrace<T>& pass, int k) {
    Vector dx(size_t(pass.rows) * D);
    rmsnorm_backward(dx.data(), gradient("model.norm.weight"), &dstates_[size_t(pass.first) * D], pass.top.data(),
                     weight("model.norm.weight"), pass.top_rrms.data(), pass.rows, D);
    for (int l = L - 1; l >= 0; --l) {
      mlp_backward(pass, pass.layers[l], l, dx);
      attention_block_backward(pass, pass.layers[l], l, dx);
    }
    inputs_backward(pass, k, dx);
  }

  // The gradient of a branch's output, from the residual stream's.
  Vector branch_backward(const Vector& dx, const Vector& branch, const Vector& rrms, const std::string& branch_norm,
                         int rows) {
    Vector dbranch(dx.size());
    scale(dbranch.data(), dx.data(), alpha, dx.size());
    if (!config_.branch_norm) return dbranch;
    Vector before(dx.size());
    rmsnorm_backward(before.data(), gradient(branch_norm), dbranch.data(), branch.data(), weight(branch_norm),
                     rrms.data(), rows, D);
    return before;
  }

  void mlp_backward(const PassTrace<T>& pass, const LayerTrace<T>& at, int l, Vector& dx) {
    int n = pass.rows;
    Vector dd = branch_backward(dx, at.branch2, at.branch2_rrms, layer_name(l, "post_mlp_norm"), n);
    Vector da(at.activated.size()), dgate_up(at.gate_up.size()), dnorm2(dx.size());
    std::string down = layer_name(l, "mlp.down_proj"), gain = layer_name(l, "post_attention_layernorm");
    matmul_backward_input(da.data(), dd.data(), weight(down), n, F, D, false);
    matmul_backward_weight(gradient(down), dd.data(), at.activated.data(), n, F, D);
    swiglu_backward(dgate_up.data(), da.data(), at.gate_up.data(), n, F);
    matmul_backward_input(dnorm2.data(), dgate_up.data(), stacked(model_.parameters, gate_up_names(l)).data(), n, D,
                          2 * F, false);
    stacked_backward_weight(gate_up_names(l), dgate_up, at.norm2, n, 2 * F);
    rmsnorm_backward(dx.data(), gradient(gain), dnorm2.data(), at.middle.data(), weight(gain), at.rrms2.data(), n, D);
  }

  void attention_block_backward(const PassTrace<T>& pass, const LayerTrace<T>& at, int l, Vector& dx) {
    int n = pass.rows, qkv_width = config_.qkv_width(), segments = int(pass.segments.size());
    Vector d_out = branch_backward(dx, at.branch1, at.branch1_rrms, layer_name(l, "post_attn_norm"), n);
    std::string o = layer_name(l, "self_attn.o_proj"), head_gate = layer_name(l, "self_attn.head_gate");
    std::string q_norm = layer_name(l, "self_attn.q_norm"), k_norm = layer_name(l, "self_attn.k_norm");
    std::string gain = layer_name(l, "input_layernorm");
    Vector dy(at.q.size()), dz(at.head_z.size()), dq(at.q.size()), dqkv(at.qkv.size()), dnorm1(dx.size());
    matmul_backward_input(dy.data(), d_out.data(), weight(o), n, H * d, D, false);
    matmul_backward_weight(gradient(o), d_out.data(), at.gated.data(), n, H * d, D);
    if (config_.head_gate)
      head_gate_backward(dy.data(), dz.data(), dy.data(), at.attended.data(), at.head_z.data(), n, H, d);
    attention_backward(dq.data(), dkeys_[l].data(), dvalues_[l].data(), dy.data(), at.attended.data(), at.q.data(),
                       keys_[l].data(), values_[l].data(), at.row_max.data(), at.row_scale.data(), pass.segments.data(),
                       segments, H, G, d, config_.layer_window(l));
    qk_norm_rope_backward(dqkv.data(), gradient(q_norm), gradient(k_norm), dq.data(), dkeys_[l].data(),
                          dvalues_[l].data(), at.qkv.data(), at.qk_rrms.data(), weight(q_norm), weight(k_norm),
                          rope_.data(), pass.segments.data(), segments, H, G, d);
    matmul_backward_input(dnorm1.data(), dqkv.data(), stacked(model_.parameters, qkv_names(l)).data(), n, D, qkv_width,
                          false);
    if (config_.head_gate) {
      matmul_backward_input(dnorm1.data(), dz.data(), weight(head_gate), n, D, H, true);
      matmul_backward_weight(gradient(head_gate), dz.data(), at.norm1.data(), n, D, H);
    }
    stacked_backward_weight(qkv_names(l), dqkv, at.norm1, n, qkv_width);
    rmsnorm_backward(dx.data(), gradient(gain), dnorm1.data(), at.x.data(), weight(gain), at.rrms1.data(), n, D);
  }

  void inputs_backward(PassTrace<T>& pass, int k, const Vector& du) {
    if (pass.fused_rows()) {
      Vector df(pass.mixed.size()), dh = fuse_backward(pass, mixed_backward(df, pass, du));
      bool flows = k > 1 && options_.gradient == GradientMode::through;
      if (flows) scatter_add_rows(dstates_.data(), dh.data(), pass.source.data(), pass.fused_rows(), D);
    }
    Vector& dplain = config_.plain_input == PlainInput::raw ? dembedding_ : dnormed_;
    scatter_add_rows(dplain.data(), take_rows(du, pass.plain).data(), pass.plain_token_row().data(),
                     int(pass.plain.size()), D);
  }

  const Vector& mixed_backward(Vector& df, const PassTrace<T>& pass, const Vector& du) {
    rmsnorm_backward(df.data(), gradient("model.input_norm.weight"), take_rows(du, pass.fused).data(),
                     pass.mixed.data(), weight("model.input_norm.weight"), pass.mixed_rrms.data(), pass.fused_rows(),
                     D);
    return df;
  }

  // dh~ from df; what reaches the tokens goes to dgates_ (gate) or dnormed_ (concat, add).
  Vector fuse_backward(const PassTrace<T>& pass, const Vector& df) {
    int n = pass.fused_rows();
    std::vector<int> tokens = pass.fused_token_row();
    Vector dh(df.size());
    if (config_.fusion == Fusion::concat) return concat_backward(pass, df);
    if (config_.fusion == Fusion::add) {
      scatter_add_rows(dnormed_.data(), df.data(), tokens.data(), n, D);
      matmul_backward_weight(gradient("latent_feedback.add.weight"), df.data(), pass.carried.data(), n, D, D);
      matmul_backward_input(dh.data(), df.data(), weight("latent_feedback.add.weight"), n, D, D, false);
      return dh;
    }
    Vector da(df.size());
    gate_backward(da.data(), dgates_.data(), df.data(), pass.value.data(), gates_.data(), tokens.data(), n, D);
    matmul_backward_weight(gradient("latent_feedback.value.weight"), da.data(), pass.carried.data(), n, D, D);
    matmul_backward_input(dh.data(), da.data(), weight("latent_feedback.value.weight"), n, D, D, false);
    return dh;
  }

  Vector concat_backward(const PassTrace<T>& pass, const Vector& df) {
    int n = pass.fused_rows();
    Vector da(df.size()), db(df.size()), dc(pass.concat.size()), dh(df.size());
    gate_backward(da.data(), db.data(), df.data(), pass.value.data(), pass.gate.data(), nullptr, n, D);
    affine_backward(dc, da, pass.concat, "latent_feedback.concat_value", n, false);
    affine_backward(dc, db, pass.concat, "latent_feedback.concat_gate", n, true);
    reference::concat_backward(dnormed_.data(), pass.fused_token_row().data(), dh.data(), dc.data(), n, D);
    return dh;
  }

  void affine_backward(Vector& dx, const Vector& dy, const Vector& x, const std::string& name, int rows,
                       bool accumulate) {
    bias_backward(gradient(name + ".bias"), dy.data(), rows, D);
    matmul_backward_weight(gradient(name + ".weight"), dy.data(), x.data(), rows, 2 * D, D);
    matmul_backward_input(dx.data(), dy.data(), weight(name + ".weight"), rows, 2 * D, D, accumulate);
  }

  // What all passes sent to the gates and to the embedding, once.
  void finish_inputs() {
    if (config_.fusion == Fusion::gate && batch_.passes > 1) {
      matmul_backward_input(dnormed_.data(), dgates_.data(), weight("latent_feedback.gate.weight"), N, D, D, true);
      matmul_backward_weight(gradient("latent_feedback.gate.weight"), dgates_.data(), normed_.data(), N, D, D);
    }
    bool normed_used = config_.plain_input == PlainInput::normed || batch_.passes > 1;
    if (normed_used)
      rmsnorm_backward(dembedding_.data(), gradient("model.input_norm.weight"), dnormed_.data(), embedding_.data(),
                       weight("model.input_norm.weight"), normed_rrms_.data(), N, D);
    embedding_backward(gradient("model.embed_tokens.weight"), dembedding_.data(), batch_.tokens.data(), N, D);
  }

  // --- Result ---

  Result<T> report() {
    int K = batch_.passes;
    for (int k = 1; k <= K; ++k) {
      const PassTrace<T>& pass = trace_[k - 1];
      Vector states(states_.begin(), states_.begin() + size_t(N) * D);  // pass 1's, where nothing newer is
      for (int r = 0; r < pass.rows; ++r)
        for (int i = 0; i < D; ++i) states[size_t(pass.token_row[r]) * D + i] = states_[size_t(pass.first + r) * D + i];
      auto begin = dstates_.begin() + size_t(pass.first) * D;
      result_.state_gradients.emplace_back(begin, begin + size_t(pass.rows) * D);
      result_.states.push_back(states);
      if (k > 1) result_.carried.push_back(pass.carried);
      if (reuses(k)) copy_prefix_losses(k);
      double sum = 0;
      for (double loss : result_.row_loss[k - 1]) sum += loss;
      result_.loss.push_back(sum / double(targets_));
    }
    return result_;
  }

  void copy_prefix_losses(int k) {
    for (int s = 0, start = 0; s < batch_.segments(); start += batch_.lengths[s++])
      for (int row = start; row < start + prefix(k, s); ++row) {
        result_.row_loss[k - 1][row] = result_.row_loss[0][row];
        result_.z_squared[k - 1][row] = result_.z_squared[0][row];
      }
  }

  Model<T>& model_;
  const ModelConfig& config_;
  Batch batch_;
  Options options_;
  const std::vector<std::vector<T>>* given_;
  int N, D, L, H, G, d, F;  // rows, width, layers, heads, kv heads, head width, feed-forward width
  T alpha, eps;
  int64_t targets_;
  Vector rope_, embedding_, normed_, normed_rrms_, gates_;  // e, ê and its 1/rms, σ(W_G ê)
  Vector dembedding_, dnormed_, dgates_;                    // dgates_: before the sigmoid
  Vector states_, dstates_;                                 // h of all passes' rows
  std::vector<Vector> keys_, values_, dkeys_, dvalues_;     // per layer, of all passes' rows
  std::vector<PassTrace<T>> trace_;
  Result<T> result_;
};

}  // namespace reference
