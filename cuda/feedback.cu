// Latent feedback between its matrix products, on the GPU; formulas beside the CPU's (src/cpu/feedback.cpp).
//
// Bound by memory: everything is read and written once, a thread a piece of 16 bytes. Only the jitter is bound by
// arithmetic: some fifty integer instructions an element, for the noise that the CPU adds, bit for bit.
#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "pieces.cuh"
#include "random.h"

namespace {

template <class T>
__global__ void carry_forward_kernel(T* out, const T* h, const int* source, const uint64_t* noise_key, float delta,
                                     int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  out += s.row * width, h += source[s.row] * width;
  uint64_t key = noise_key ? noise_key[s.row] : 0;
  each_piece_of(s, together(out, h), out, [&](int64_t i, auto n) {
    auto piece = load<n>(h + i);
    if (noise_key)
      for (int v = 0; v < n; ++v) piece.set(v, fmaf(delta, random_symmetric(key, uint64_t(i + v)), piece[v]));
    store(out + i, piece);
  });
}

template <class T>
void carry_forward(T* out, const T* h, const int* source, const uint64_t* noise_key, float delta, int rows, int width) {
  if (rows == 0) return;
  const uint64_t* keys = delta > 0 ? stage(noise_key, rows) : nullptr;  // first: the larger of the two
  const int* sources = stage(source, rows);
  launch(carry_forward_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), out, h, sources, keys,
         delta, width);
}

template <class T>
__global__ void concat_forward_kernel(T* pair, const T* e, const int* index, const T* h, int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  T *first = pair + s.row * 2 * width, *second = first + width;
  e += index[s.row] * width, h += s.row * width;
  each_piece_of(s, together(first, second, e, h), first, [&](int64_t i, auto n) {
    store(first + i, load<n>(e + i));
    store(second + i, load<n>(h + i));
  });
}

template <class T>
void concat_forward(T* pair, const T* e, const int* index, const T* h, int rows, int width) {
  if (rows == 0) return;
  launch(concat_forward_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), pair, e,
         stage(index, rows), h, width);
}

template <class T>
__global__ void concat_backward_kernel(T* de, const int* index, T* dh, const T* dpair, int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  const T *first = dpair + s.row * 2 * width, *second = first + width;
  de += index[s.row] * width, dh += s.row * width;
  each_piece_of(s, together(first, second, de, dh), first, [&](int64_t i, auto n) {
    auto total = load<n>(de + i), more = load<n>(first + i);
    for (int v = 0; v < n; ++v) total.set(v, total[v] + more[v]);
    store(de + i, total);
    store(dh + i, load<n>(second + i));
  });
}

template <class T>
void concat_backward(T* de, const int* index, T* dh, const T* dpair, int rows, int width) {
  if (rows == 0) return;
  launch(concat_backward_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), de,
         stage(index, rows), dh, dpair, width);
}

__device__ int64_t indexed(const int* index, int64_t row) { return index ? index[row] : row; }

template <class T>
__global__ void gate_forward_kernel(T* f, const T* a, const T* gate, const int* index, int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  f += s.row * width, a += s.row * width, gate += indexed(index, s.row) * width;
  each_piece_of(s, together(f, a, gate), f, [&](int64_t i, auto n) {
    auto piece = load<n>(a + i), gates = load<n>(gate + i);
    for (int v = 0; v < n; ++v) piece.set(v, piece[v] * gates[v]);
    store(f + i, piece);
  });
}

template <class T>
void gate_forward(T* f, const T* a, const T* s, const int* index, int rows, int width) {
  if (rows == 0) return;
  launch(gate_forward_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), f, a, s,
         stage(index, rows), width);
}

template <class T>
__global__ void gate_backward_kernel(T* da, T* dz, const T* df, const T* a, const T* gate, const int* index,
                                     int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  da += s.row * width, df += s.row * width, a += s.row * width;
  dz += indexed(index, s.row) * width, gate += indexed(index, s.row) * width;
  each_piece_of(s, together(da, df, a, dz, gate), da, [&](int64_t i, auto n) {
    auto dfs = load<n>(df + i), as = load<n>(a + i), gates = load<n>(gate + i), dzs = load<n>(dz + i);
    for (int v = 0; v < n; ++v) {
      float d = dfs[v], g = gates[v];
      dzs.set(v, dzs[v] + d * as[v] * (g * (1 - g)));
      dfs.set(v, d * g);
    }
    store(dz + i, dzs), store(da + i, dfs);
  });
}

template <class T>
void gate_backward(T* da, T* dz, const T* df, const T* a, const T* s, const int* index, int rows, int width) {
  if (rows == 0) return;
  launch(gate_backward_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), da, dz, df, a, s,
         stage(index, rows), width);
}

}  // namespace

template <class T>
void add_feedback(Kernels& table) {
  table.carry_forward = Fit<carry_forward<T>>();
  table.concat_forward = Fit<concat_forward<T>>();
  table.concat_backward = Fit<concat_backward<T>>();
  table.gate_forward = Fit<gate_forward<T>>();
  table.gate_backward = Fit<gate_backward<T>>();
}
template void add_feedback<float>(Kernels&);
template void add_feedback<bf16>(Kernels&);
