// QK-norm and rotary embedding on the GPU; formulas beside the CPU's (src/cpu/rotary.cpp).
//
// Bound by memory. A head is short, so a group of lanes takes it, a lane a piece of 16 bytes of its first half and the
// piece of the second half that is turned with it; a block takes the heads of q, k and v of a row together, which share
// the row's angles. Backward's blocks take a slab of rows and sum their part of the gains' gradients in shared memory,
// each group by itself, so q, k and their gradients are read once for all that is computed from them.
//
// Where a row belongs is found in the staged segments: positions are data, never arguments, so that a captured launch
// serves every token.
#include <algorithm>
#include <vector>

#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "pieces.cuh"
#include "segments.h"
#include "slabs.cuh"

namespace {

// --- Rows of segments

// A segment as the kernels read it; `before` counts the rows of the segments before it.
struct alignas(16) Run {
  int before, row, position, kv_row;
};

struct Runs {
  std::vector<Run> runs;  // none is empty
  int rows = 0;

  Runs(const Segment* segments, int count) {
    for (const Segment* g = segments; g < segments + count; rows += g++->rows)
      if (g->rows > 0) runs.push_back({rows, g->row, g->position, g->own_kv});
  }
  int count() const { return int(runs.size()); }
  const Run* staged() const { return stage(runs.data(), count()); }
};

struct Place {
  int64_t row, position, kv_row;
};

// Of the n-th row of all runs. A run has a row at least, so the n-th run is the last that it can be in, and in
// decoding, where runs are of one row, it is the one.
__device__ Place place_of(const Run* runs, int count, int n) {
  int low = 0, high = min(n, count - 1);
  for (int probe = high; low < high; probe = (low + high + 1) / 2)
    if (runs[probe].before <= n)
      low = probe;
    else
      high = probe - 1;
  Run run = runs[low];
  int64_t ahead = n - run.before;
  return {run.row + ahead, run.position + ahead, run.kv_row + ahead};
}

// --- Heads

struct Shape {
  int heads, kv_heads, head_dim;
  int lanes, threads;  // of a head's group; of a block

  Shape(int heads, int kv_heads, int head_dim, int piece)
      : heads(heads), kv_heads(kv_heads), head_dim(head_dim), lanes(lanes_for(ceil_div(head_dim / 2, piece))) {
    threads = std::min(256, int(ceil_div(all() * lanes, kWarp)) * kWarp);
  }
  __host__ __device__ int half() const { return head_dim / 2; }
  __host__ __device__ int normed() const { return heads + kv_heads; }  // a row's heads of q and k
  __host__ __device__ int all() const { return heads + 2 * kv_heads; }
  __host__ __device__ int64_t width() const { return int64_t(all()) * head_dim; }
  __host__ __device__ int groups() const { return threads / lanes; }
};

// Where a row's head lies; h counts those of q, then k's, then v's.
template <class T>
struct Heads {
  T *q, *k, *v;
  __device__ T* at(Shape s, Place place, int h) const {
    if (h < s.heads) return q + (place.row * s.heads + h) * s.head_dim;
    if (h < s.normed()) return k + (place.kv_row * s.kv_heads + h - s.heads) * s.head_dim;
    return v + (place.kv_row * s.kv_heads + h - s.normed()) * s.head_dim;
  }
};

// N elements of a head's first half, then those of the second half that are turned with them.
template <int N>
struct Pairs {
  float x[2 * N];
};
template <int N, class T>
__device__ Pairs<N> load_pairs(const T* first, int half) {
  auto a = load<N>(first), b = load<N>(first + half);
  Pairs<N> pairs;
  for (int v = 0; v < N; ++v) pairs.x[v] = a[v], pairs.x[N + v] = b[v];
  return pairs;
}
template <int N, class T>
__device__ void store_pairs(T* first, int half, const Pairs<N>& pairs) {
  Vec<T, N> a, b;
  for (int v = 0; v < N; ++v) a.set(v, pairs.x[v]), b.set(v, pairs.x[N + v]);
  store(first, a), store(first + half, b);
}

// By the angles whose cosines, then sines, are `turn`; forward, or back where `sign` is −1.
template <int N>
__device__ Pairs<N> turned(const Pairs<N>& in, const Pairs<N>& turn, float sign) {
  Pairs<N> out;
  for (int v = 0; v < N; ++v) {
    float a = in.x[v], b = in.x[N + v], c = turn.x[v], s = sign * turn.x[N + v];
    out.x[v] = fmaf(a, c, -(b * s));
    out.x[N + v] = fmaf(b, c, a * s);
  }
  return out;
}

// f(i, n) for the pairs of which this lane of the group has the first n at i, the same ones in every head.
template <class T, class F>
__device__ void each_pairs(Shape s, bool whole, const T* qkv, F f) {
  each_piece_if(whole, qkv, s.half(), int(threadIdx.x) % s.lanes, s.lanes, f);
}

// f(h) for the heads of a row that are this group's, and for some beyond the last: all lanes of a warp meet in the
// sums.
template <class F>
__device__ void each_head(Shape s, F f) {
  for (int first = 0; first < s.all(); first += s.groups()) f(first + int(threadIdx.x) / s.lanes);
}

// --- Forward

template <class T>
__global__ void qk_norm_rope_forward_kernel(Heads<T> out, float* rrms, const T* qkv, const float* q_gain,
                                            const float* k_gain, const float* rope, const Run* runs, int run_count,
                                            Shape s, float eps) {
  bool whole = together(qkv, qkv + s.half(), out.q, out.k, out.v, q_gain, k_gain, rope);
  Place place = place_of(runs, run_count, int(blockIdx.x));
  const float* angles = rope + place.position * s.head_dim;
  each_head(s, [&](int h) {
    bool normed = h < s.normed();
    const T* x = qkv + place.row * s.width() + h * s.head_dim;
    const float* gain = h < s.heads ? q_gain : k_gain;
    float sum = 0;
    if (normed)
      each_pairs(s, whole, qkv, [&](int64_t i, auto n) {
        auto xs = load_pairs<n>(x + i, s.half());
        for (float one : xs.x) sum = fmaf(one, one, sum);
      });
    float r = 1 / sqrtf(group_sum(sum, s.lanes) / float(s.head_dim) + eps);
    if (h >= s.all()) return;
    T* y = out.at(s, place, h);
    each_pairs(s, whole, qkv, [&](int64_t i, auto n) {
      auto xs = load_pairs<n>(x + i, s.half());
      if (normed) {
        auto gains = load_pairs<n>(gain + i, s.half());
        for (int v = 0; v < 2 * n; ++v) xs.x[v] = gains.x[v] * (xs.x[v] * r);
        xs = turned(xs, load_pairs<n>(angles + i, s.half()), 1);
      }
      store_pairs(y + i, s.half(), xs);
    });
    if (normed && int(threadIdx.x) % s.lanes == 0) rrms[place.row * s.normed() + h] = r;
  });
}

template <class T>
void qk_norm_rope_forward(T* q, T* k, T* v, float* rrms, const T* qkv, const float* q_gain, const float* k_gain,
                          const float* rope, const Segment* segments, int segment_count, int heads, int kv_heads,
                          int head_dim, float eps) {
  Runs r(segments, segment_count);
  if (r.rows == 0) return;
  Shape s(heads, kv_heads, head_dim, kVec<T>);
  launch(qk_norm_rope_forward_kernel<T>, r.rows, s.threads, 0, stream(), Heads<T>{q, k, v}, rrms, qkv, q_gain, k_gain,
         rope, r.staged(), r.count(), s, eps);
}

// --- Backward

// A group's sums for q's gain, then for k's; an odd number of floats, so that a warp's groups use different banks.
__host__ __device__ constexpr int group_sums(int head_dim) { return 2 * head_dim + 1; }

template <class T>
__global__ void qk_norm_rope_backward_kernel(T* dqkv, float* partial, Heads<const T> dout, const T* qkv,
                                             const float* rrms, const float* q_gain, const float* k_gain,
                                             const float* rope, const Run* runs, int run_count, int rows, int slab,
                                             Shape s) {
  bool whole = together(qkv, qkv + s.half(), dqkv, dout.q, dout.k, dout.v, q_gain, k_gain, rope);
  Shared<float>* sums = &shared<Shared<float>>();
  Shared<float>* own = sums + int(threadIdx.x) / s.lanes * group_sums(s.head_dim);
  each_pairs(s, whole, qkv, [&](int64_t i, auto n) {
    for (int v = 0; v < n; ++v)
      for (int part = 0; part < 4; ++part) own[part * s.half() + i + v] = 0;
  });
  int first = int(blockIdx.x) * slab, end = min(rows, first + slab);
  for (int row = first; row < end; ++row) {
    Place place = place_of(runs, run_count, row);
    const float* angles = rope + place.position * s.head_dim;
    each_head(s, [&](int h) {
      bool normed = h < s.normed();
      int64_t at = place.row * s.width() + h * s.head_dim;
      const T *x = qkv + at, *dy = dout.at(s, place, h);
      const float* gain = h < s.heads ? q_gain : k_gain;
      Shared<float>* dgain = own + (h < s.heads ? 0 : s.head_dim);
      float r = normed ? rrms[place.row * s.normed() + h] : 0, sum = 0;
      if (normed)
        each_pairs(s, whole, qkv, [&](int64_t i, auto n) {
          auto xs = load_pairs<n>(x + i, s.half()), gains = load_pairs<n>(gain + i, s.half());
          auto dn = turned(load_pairs<n>(dy + i, s.half()), load_pairs<n>(angles + i, s.half()), -1);
          for (int v = 0; v < 2 * n; ++v) sum = fmaf(gains.x[v] * dn.x[v], xs.x[v], sum);
        });
      float slope = -group_sum(sum, s.lanes) * r * r * r / float(s.head_dim);
      if (h >= s.all()) return;
      each_pairs(s, whole, qkv, [&](int64_t i, auto n) {
        auto dx = load_pairs<n>(dy + i, s.half());
        if (normed) {
          auto xs = load_pairs<n>(x + i, s.half()), gains = load_pairs<n>(gain + i, s.half());
          auto dn = turned(dx, load_pairs<n>(angles + i, s.half()), -1);
          for (int v = 0; v < 2 * n; ++v) dx.x[v] = fmaf(xs.x[v], slope, gains.x[v] * dn.x[v] * r);
          for (int v = 0; v < n; ++v) {
            dgain[i + v] += dn.x[v] * (xs.x[v] * r);
            dgain[s.half() + i + v] += dn.x[n + v] * (xs.x[n + v] * r);
          }
        }
        store_pairs(dqkv + at + i, s.half(), dx);
      });
    });
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < 2 * s.head_dim; i += s.threads) {
    float total = 0;
    for (int g = 0; g < s.groups(); ++g) total += sums[g * group_sums(s.head_dim) + i];
    int of_k = i >= s.head_dim;  // q's slabs come before k's
    partial[int64_t(of_k * gridDim.x + blockIdx.x) * s.head_dim + i - of_k * s.head_dim] = total;
  }
}

template <class T>
void qk_norm_rope_backward(T* dqkv, float* dq_gain, float* dk_gain, const T* dq, const T* dk, const T* dv, const T* qkv,
                           const float* rrms, const float* q_gain, const float* k_gain, const float* rope,
                           const Segment* segments, int segment_count, int heads, int kv_heads, int head_dim) {
  Runs r(segments, segment_count);
  if (r.rows == 0) return;
  Shape s(heads, kv_heads, head_dim, kVec<T>);
  Slabs slabs(r.rows);
  float *partial = scratch<float>(2 * int64_t(slabs.count) * head_dim), *k_partial = partial + slabs.count * head_dim;
  launch(qk_norm_rope_backward_kernel<T>, slabs.count, s.threads,
         size_t(s.groups() * group_sums(head_dim)) * sizeof(float), stream(), dqkv, partial, Heads<const T>{dq, dk, dv},
         qkv, rrms, q_gain, k_gain, rope, r.staged(), r.count(), r.rows, slabs.rows, s);
  add_slabs(dq_gain, partial, slabs.count, head_dim);
  add_slabs(dk_gain, k_partial, slabs.count, head_dim);
}

}  // namespace

template <class T>
void add_rotary(Kernels& table) {
  table.qk_norm_rope_forward = Fit<qk_norm_rope_forward<T>>();
  table.qk_norm_rope_backward = Fit<qk_norm_rope_backward<T>>();
}
template void add_rotary<float>(Kernels&);
template void add_rotary<bf16>(Kernels&);
