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

// --- Numbers
// ----------------------------------------------------------------------------------------------------------------

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

// --- Matrix products
// ----------------------------------------------------------------------------------------------------------

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

template <class T>
void matmul_backward_weight(T* dw, const T* dy, const T* x, int rows, int in, int out) {
  for (int o = 0; o < out; ++o)
    for (int i = 0; i < in; ++i)
      for (int r = 0; r < rows; ++r) {
        T& sum = dw[size_t(o) * in + i];
        sum = std::fma(dy[size_t(r) * out + o], x[size_t(r) * in + i], sum);
      }
}

// --- Rows and elements
// --------------------------------------------------------------------------------------------------------

template <class T>
void gather_rows(T* out, const T* in, const int* source, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) out[size_t(r) * width + i] = in[size_t(source[r]) * width + i];
}

template <class T>
void scatter_add_rows(T* out, const T* in, const int* source, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) {
      T& sum = out[size_t(source[r]) * width + i];
      sum = sum + in[size_t(r) * width + i];
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
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) dbias[i] = dbias[i] + dy[size_t(r) * width + i];
}

template <class T>
void residual_forward(T* y, const T* x, const T* branch, Same<T> alpha, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::fma(alpha, branch[i], x[i]);
}

// --- Root-mean-square norm
// ----------------------------------------------------------------------------------------------------

template <class T>
void rmsnorm_forward(T* y, T* rrms, const T* x, const T* gain, int rows, int width, Same<T> eps) {
  for (int r = 0; r < rows; ++r, x += width, y += width) {
    rrms[r] = T(1) / std::sqrt(lanes_dot(x, x, width) / T(width) + eps);
    for (int i = 0; i < width; ++i) y[i] = gain[i] * (x[i] * rrms[r]);
  }
}

template <class T>
void rmsnorm_backward(T* dx, T* dgain, const T* dy, const T* x, const T* gain, const T* rrms, int rows, int width) {
  for (int r = 0; r < rows; ++r, dx += width, dy += width, x += width) {
    Lanes<T> dot;
    for (int i = 0; i < width; ++i) dot.add_product(i, gain[i] * dy[i], x[i]);
    T s = -dot.sum() * rrms[r] * rrms[r] * rrms[r] / T(width);
    for (int i = 0; i < width; ++i) dx[i] = dx[i] + std::fma(x[i], s, gain[i] * dy[i] * rrms[r]);
    for (int i = 0; i < width; ++i) dgain[i] = std::fma(dy[i], x[i] * rrms[r], dgain[i]);
  }
}

// --- QK-norm and rotary embedding
// ---------------------------------------------------------------------------------------------

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
  int d = head_dim;
  std::vector<T> dn(d);
  for (int s = 0; s < segment_count; ++s)
    for (int i = 0; i < segments[s].rows; ++i) {
      size_t row = segments[s].row + i, kv_row = segments[s].own_kv + i;
      const T* angle = rope + size_t(segments[s].position + i) * d;
      for (int head = 0; head < heads + kv_heads; ++head) {
        bool is_q = head < heads;
        const T* dout = is_q ? dq + (row * heads + head) * d : dk + (kv_row * kv_heads + head - heads) * d;
        size_t at = (row * (heads + 2 * kv_heads) + head) * d;
        rotate_back(dn.data(), dout, angle, d);
        for (int j = 0; j < d; ++j) dqkv[at + j] = 0;
        rmsnorm_backward(dqkv + at, is_q ? dq_gain : dk_gain, dn.data(), qkv + at, is_q ? q_gain : k_gain,
                         rrms + row * (heads + kv_heads) + head, 1, d);
      }
      T* dv_out = dqkv + (row * (heads + 2 * kv_heads) + heads + kv_heads) * d;
      for (int j = 0; j < kv_heads * d; ++j) dv_out[j] = dv[kv_row * kv_heads * d + j];
    }
}

// --- Attention
// ----------------------------------------------------------------------------------------------------------------

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

// --- SwiGLU
// -------------------------------------------------------------------------------------------------------------------

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

// --- Latent feedback
// ----------------------------------------------------------------------------------------------------------

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

// --- Loss
// ---------------------------------------------------------------------------------------------------------------------

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

// --- Optimizer
// ----------------------------------------------------------------------------------------------------------------

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

}  // namespace reference
