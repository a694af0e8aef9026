// A gate per head on the GPU; formulas beside the CPU's (src/cpu/head_gate.cpp).
//
// Bound by memory: x, and in backward dy, are read and written once. A head is short, so it is a group of lanes' with a
// piece of 16 bytes each; backward's sum over the head goes through the group's registers.
#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "pieces.cuh"

namespace {

constexpr int kThreads = 128;

template <class T>
int head_lanes(int head_dim) {
  return lanes_for(ceil_div(head_dim, kVec<T>));
}

__device__ int64_t head_of_group(int lanes) {
  return int64_t(blockIdx.x) * (kThreads / lanes) + int(threadIdx.x) / lanes;
}

template <class T>
__global__ void head_gate_forward_kernel(T* y, const T* x, const T* z, int64_t all_heads, int head_dim, int lanes) {
  int64_t head = head_of_group(lanes);
  if (head >= all_heads) return;
  y += head * head_dim, x += head * head_dim;
  float gate = sigmoid_of(to_float(z[head]));
  each_piece_if(together(x, y), x, head_dim, int(threadIdx.x) % lanes, lanes, [&](int64_t i, auto n) {
    auto piece = load<n>(x + i);
    for (int v = 0; v < n; ++v) piece.set(v, piece[v] * gate);
    store(y + i, piece);
  });
}

template <class T>
void head_gate_forward(T* y, const T* x, const T* z, int rows, int heads, int head_dim) {
  if (rows == 0) return;
  int lanes = head_lanes<T>(head_dim);
  int64_t all_heads = int64_t(rows) * heads;
  launch(head_gate_forward_kernel<T>, blocks_for(all_heads, kThreads / lanes), kThreads, 0, stream(), y, x, z,
         all_heads, head_dim, lanes);
}

template <class T>
__global__ void head_gate_backward_kernel(T* dx, T* dz, const T* dy, const T* x, const T* z, int64_t all_heads,
                                          int head_dim, int lanes) {
  int64_t head = head_of_group(lanes);
  int lane = int(threadIdx.x) % lanes, width = head < all_heads ? head_dim : 0;  // all lanes meet in the sum
  dx += head * head_dim, dy += head * head_dim, x += head * head_dim;
  float gate = width > 0 ? sigmoid_of(to_float(z[head])) : 0, dot = 0;
  each_piece_if(together(dy, x, dx), dy, width, lane, lanes, [&](int64_t i, auto n) {
    auto dys = load<n>(dy + i), xs = load<n>(x + i);
    for (int v = 0; v < n; ++v) {
      dot = fmaf(dys[v], xs[v], dot);
      dys.set(v, dys[v] * gate);
    }
    store(dx + i, dys);  // where dx is dy, this thread alone has read it
  });
  dot = group_sum(dot, lanes);
  if (width > 0 && lane == 0) dz[head] = from_float<T>(dot * (gate * (1 - gate)));
}

template <class T>
void head_gate_backward(T* dx, T* dz, const T* dy, const T* x, const T* z, int rows, int heads, int head_dim) {
  if (rows == 0) return;
  int lanes = head_lanes<T>(head_dim);
  int64_t all_heads = int64_t(rows) * heads;
  launch(head_gate_backward_kernel<T>, blocks_for(all_heads, kThreads / lanes), kThreads, 0, stream(), dx, dz, dy, x, z,
         all_heads, head_dim, lanes);
}

}  // namespace

template <class T>
void add_head_gate(Kernels& table) {
  table.head_gate_forward = Fit<head_gate_forward<T>>();
  table.head_gate_backward = Fit<head_gate_backward<T>>();
}
template void add_head_gate<float>(Kernels&);
template void add_head_gate<bf16>(Kernels&);
