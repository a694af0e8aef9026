// The small change between the large operations, on the GPU: gathering and scattering rows, sums, scalings, biases,
// sigmoids, residuals; formulas in kernels.h.
//
// All are bound by memory and read and write everything once, a thread a piece of 16 bytes. Where rows are summed, a
// thread sums its columns of all of them in order, with the loads of several rows under way at once.
#include <algorithm>
#include <vector>

#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "pieces.cuh"
#include "slabs.cuh"

namespace {

// --- Elements

template <class T, int N, class F, class... In>
__device__ Vec<T, N> mapped(F f, const In&... in) {
  Vec<T, N> out;
  for (int v = 0; v < N; ++v) out.set(v, f(in[v]...));
  return out;
}

// y = f(in…); y may be one of them.
template <class T, class F, class... In>
__global__ void map_kernel(T* y, int64_t n, F f, const In*... in) {
  each_piece_of(stretch_of_block<T>(n), together(y, in...), y,
                [&](int64_t i, auto count) { store(y + i, mapped<T, count>(f, load<count>(in + i)...)); });
}

template <class T, class F, class... In>
void map(T* y, int64_t n, F f, const In*... in) {
  if (n > 0) launch(map_kernel<T, F, In...>, count_stretches<T>(1, n), kStretchThreads, 0, stream(), y, n, f, in...);
}

template <class T>
void zero(T* x, int64_t n) {
  set_zero(x, size_t(n) * sizeof(T));
}

struct Scale {
  float alpha;
  __device__ float operator()(float x) const { return alpha * x; }
};
template <class T>
void scale(T* y, const T* x, float alpha, int64_t n) {
  map(y, n, Scale{alpha}, x);
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
template <class T>
void add(T* y, const T* x, int64_t n) {
  map(y, n, Add(), static_cast<const T*>(y), x);
}

struct Sigmoid {
  __device__ float operator()(float x) const { return sigmoid_of(x); }
};
template <class T>
void sigmoid(T* y, const T* x, int64_t n) {
  map(y, n, Sigmoid(), x);
}

struct Residual {
  float alpha;
  __device__ float operator()(float x, float branch) const { return fmaf(alpha, branch, x); }
};
template <class T>
void residual_forward(T* y, const T* x, const T* branch, float alpha, int64_t n) {
  map(y, n, Residual{alpha}, x, branch);
}

// --- Rows

template <class T>
__device__ void copy(Stretch s, T* to, const T* from) {
  each_piece_of(s, together(to, from), to, [&](int64_t i, auto n) { store(to + i, load<n>(from + i)); });
}

template <class T, class X>
__device__ void add_to(Stretch s, T* to, const X* from) {
  each_piece_of(s, together(to, from), to,
                [&](int64_t i, auto n) { store(to + i, mapped<T, n>(Add(), load<n>(to + i), load<n>(from + i))); });
}

template <class T>
__global__ void gather_rows_kernel(T* out, const T* in, const int* source, int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  copy(s, out + s.row * width, in + source[s.row] * width);
}

template <class T>
void gather_rows(T* out, const T* in, const int* source, int rows, int width) {
  if (rows == 0) return;
  launch(gather_rows_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), out, in,
         stage(source, rows), width);
}

template <class T>
__global__ void scatter_rows_kernel(T* out, const T* in, const int* to, int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  copy(s, out + to[s.row] * width, in + s.row * width);
}

template <class T>
void scatter_rows(T* out, const T* in, const int* to, int rows, int width) {
  if (rows == 0) return;
  launch(scatter_rows_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), out, in,
         stage(to, rows), width);
}

template <class T>
__global__ void scatter_add_rows_kernel(T* out, const T* in, const int* to, int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  add_to(s, out + to[s.row] * width, in + s.row * width);
}

template <class T>
void scatter_add_rows(T* out, const T* in, const int* to, int rows, int width) {
  if (rows == 0) return;
  launch(scatter_add_rows_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), out, in,
         stage(to, rows), width);
}

template <class T>
__global__ void bias_forward_kernel(T* y, const float* bias, int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  add_to(s, y + s.row * width, bias);
}

template <class T>
void bias_forward(T* y, const float* bias, int rows, int width) {
  if (rows == 0) return;
  launch(bias_forward_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), y, bias, width);
}

// --- Sums over rows

// sum + x[row_of(first)] + … + x[row_of(end − 1)], one after another, for N columns; x is the first of them.
template <int N, class T, class F>
__device__ Vec<float, N> sum_rows(Vec<float, N> sum, const T* x, int64_t width, int first, int end, F row_of) {
  constexpr int kAhead = 8;  // rows whose loads are under way together
  auto add = [&](const Vec<T, N>& piece) { sum = mapped<float, N>(Add(), sum, piece); };
  int r = first;
  for (; r + kAhead <= end; r += kAhead) {
    Vec<T, N> pieces[kAhead];
    for (int a = 0; a < kAhead; ++a) pieces[a] = load<N>(x + row_of(r + a) * width);
    for (int a = 0; a < kAhead; ++a) add(pieces[a]);
  }
  for (; r < end; ++r) add(load<N>(x + row_of(r) * width));
  return sum;
}

// A block a slab of rows (y) and a stretch of columns (x).
template <class T>
__global__ void bias_slabs_kernel(float* partial, const T* dy, int rows, int64_t width, int slab) {
  int first = int(blockIdx.y) * slab, end = min(rows, first + slab);
  partial += blockIdx.y * width;
  each_piece_of(stretch_of_block<T>(width), together(dy, dy + width, partial), dy, [&](int64_t i, auto n) {
    store(partial + i, sum_rows(Vec<float, n>{}, dy + i, width, first, end, [](int row) { return int64_t(row); }));
  });
}

template <class T>
void bias_backward(float* dbias, const T* dy, int rows, int width) {
  if (rows == 0) return;
  Slabs slabs(rows);
  float* partial = scratch<float>(int64_t(slabs.count) * width);
  launch(bias_slabs_kernel<T>, dim3(count_stretches<T>(1, width), slabs.count), kStretchThreads, 0, stream(), partial,
         dy, rows, width, slabs.rows);
  add_slabs(dbias, partial, slabs.count, width);
}

// The rows of one token, in increasing order: order[first] … order[end − 1].
struct TokenRows {
  int token, first, end;
};

// One block a token, and a stretch of columns; there are as many as rows, so some have nothing to do. The rows are
// summed by blocks of kSummedRows, as on the CPU.
template <class T>
__global__ void embedding_backward_kernel(float* dembedding, const T* de, const int* order, const TokenRows* tokens,
                                          int64_t width) {
  Stretch s = stretch_of_block<T>(width);
  TokenRows t = tokens[s.row];
  if (t.first == t.end) return;
  float* total = dembedding + t.token * width;
  auto row_of = [&](int r) { return int64_t(order[r]); };
  each_piece_of(s, together(de, de + width, total), de, [&](int64_t i, auto n) {
    auto sum = load<n>(total + i);
    for (int r = t.first, end; r < t.end; r = end) {
      for (end = r; end < t.end && order[end] / kSummedRows == order[r] / kSummedRows;) ++end;
      sum = mapped<float, n>(Add(), sum, sum_rows(Vec<float, n>{}, de + i, width, r, end, row_of));
    }
    store(total + i, sum);
  });
}

// The rows sorted by token: a counting sort keeps the order of those of one token.
struct ByToken {
  std::vector<int> order;
  std::vector<TokenRows> tokens;  // as many as rows, so that no launch depends on the tokens' values

  ByToken(const int* token, int rows) : order(rows), tokens(rows) {
    std::vector<int> next(size_t(*std::max_element(token, token + rows)) + 2);
    for (int r = 0; r < rows; ++r) ++next[token[r] + 1];
    auto used = tokens.begin();
    for (size_t t = 1; t < next.size(); ++t) {
      int count = next[t], first = next[t - 1];
      if (count > 0) *used++ = {int(t - 1), first, first + count};
      next[t] += first;
    }
    for (int r = 0; r < rows; ++r) order[next[token[r]]++] = r;
  }
};

template <class T>
void embedding_backward(float* dembedding, const T* de, const int* token, int rows, int width) {
  if (rows == 0) return;
  ByToken by_token(token, rows);
  const TokenRows* tokens = stage(by_token.tokens.data(), rows);  // first: the larger of the two
  const int* order = stage(by_token.order.data(), rows);
  launch(embedding_backward_kernel<T>, count_stretches<T>(rows, width), kStretchThreads, 0, stream(), dembedding, de,
         order, tokens, width);
}

}  // namespace

template <class T>
void add_rows(Kernels& table) {
  table.gather_rows = Fit<gather_rows<T>>();
  table.scatter_rows = Fit<scatter_rows<T>>();
  table.scatter_add_rows = Fit<scatter_add_rows<T>>();
  table.embedding_backward = Fit<embedding_backward<T>>();
  table.zero = Fit<zero<T>>();
  table.scale = Fit<scale<T>>();
  table.add = Fit<add<T>>();
  table.sigmoid = Fit<sigmoid<T>>();
  table.bias_forward = Fit<bias_forward<T>>();
  table.bias_backward = Fit<bias_backward<T>>();
  table.residual_forward = Fit<residual_forward<T>>();
}
template void add_rows<float>(Kernels&);
template void add_rows<bf16>(Kernels&);
