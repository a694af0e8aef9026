// SwiGLU's elementwise part on the GPU; formulas beside the CPU's (src/cpu/swiglu.cpp).
//
// Bound by memory: everything is read and written once, a thread a piece of 16 bytes. A row's g and u lie behind one
// another, so an odd ffn leaves them, and y, aligned differently: then single elements.
#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "pieces.cuh"

namespace {

template <class T>
__global__ void swiglu_forward_kernel(T* y, const T* gate_up, int64_t ffn) {
  Stretch s = stretch_of_block<T>(ffn);
  const T *g = gate_up + s.row * 2 * ffn, *u = g + ffn;
  y += s.row * ffn;
  each_piece_of(s, together(g, u, y), g, [&](int64_t i, auto n) {
    auto gs = load<n>(g + i), us = load<n>(u + i);
    for (int v = 0; v < n; ++v) gs.set(v, gs[v] * sigmoid_of(gs[v]) * us[v]);
    store(y + i, gs);
  });
}

template <class T>
void swiglu_forward(T* y, const T* gate_up, int rows, int ffn) {
  if (rows == 0) return;
  launch(swiglu_forward_kernel<T>, count_stretches<T>(rows, ffn), kStretchThreads, 0, stream(), y, gate_up, ffn);
}

template <class T>
__global__ void swiglu_backward_kernel(T* dgate_up, const T* dy, const T* gate_up, int64_t ffn) {
  Stretch s = stretch_of_block<T>(ffn);
  const T *g = gate_up + s.row * 2 * ffn, *u = g + ffn;
  T *dg = dgate_up + s.row * 2 * ffn, *du = dg + ffn;
  dy += s.row * ffn;
  each_piece_of(s, together(g, u, dg, du, dy), g, [&](int64_t i, auto n) {
    auto gs = load<n>(g + i), us = load<n>(u + i), dys = load<n>(dy + i);
    for (int v = 0; v < n; ++v) {
      float gate = gs[v], up = us[v], d = dys[v], sigma = sigmoid_of(gate);
      gs.set(v, d * up * (sigma * (1 + gate * (1 - sigma))));
      us.set(v, d * (gate * sigma));
    }
    store(dg + i, gs), store(du + i, us);
  });
}

template <class T>
void swiglu_backward(T* dgate_up, const T* dy, const T* gate_up, int rows, int ffn) {
  if (rows == 0) return;
  launch(swiglu_backward_kernel<T>, count_stretches<T>(rows, ffn), kStretchThreads, 0, stream(), dgate_up, dy, gate_up,
         ffn);
}

}  // namespace

template <class T>
void add_swiglu(Kernels& table) {
  table.swiglu_forward = Fit<swiglu_forward<T>>();
  table.swiglu_backward = Fit<swiglu_backward<T>>();
}
template void add_swiglu<float>(Kernels&);
template void add_swiglu<bf16>(Kernels&);
