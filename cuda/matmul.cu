// Matrix products on the GPU, by cuBLASLt. Bound by the tensor cores (bfloat16) or the fma units (float).
//
// cuBLASLt thinks in columns: a row-major matrix rows × width is to it a column-major one, width × rows. So
//   y  = x wᵀ    is  Y = Wᵀ X     (out × rows) = (in × out)ᵀ (in × rows)
//   dx = dy w    is  dX = W dY    (in × rows)  = (in × out)  (out × rows)
//   dw = dyᵀ x   is  dW = X dYᵀ   (in × out)   = (in × rows) (out × rows)ᵀ
// Which of its kernels runs is decided once for each shape, and kept: the same shape gives the same bits every time. Sums
// are in float throughout; nothing is computed in tf32.
#include <cublasLt.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "vec.cuh"

namespace {

void check_cublas(cublasStatus_t status, const char* call, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("%s:%d: %s: %s", __FILE__, line, call, cublasLtGetStatusString(status));
}
#define CUBLAS_CHECK(call) check_cublas(call, #call, __LINE__)

template <class T>
constexpr cudaDataType_t kType = CUDA_R_32F;
template <>
constexpr cudaDataType_t kType<bf16> = CUDA_R_16BF;

constexpr size_t kWorkspace = 32 << 20;  // what cuBLAS itself takes on the largest devices

struct Library {
  cublasLtHandle_t handle;
  void* workspace;
  Library() {
    CUBLAS_CHECK(cublasLtCreate(&handle));
    CUDA_CHECK(cudaMalloc(&workspace, kWorkspace));
  }
};
Library& library() {
  static Library* the_library = new Library;  // lives as long as the device does
  return *the_library;
}

// c (m × n) = a b + beta c, column-major; a is m × k and b is k × n, or stored transposed.
struct Shape {
  int64_t m, n, k;
  bool a_transposed, b_transposed, accumulate;
  cudaDataType_t factors, result;
  uint32_t a_alignment, b_alignment, c_alignment;  // bytes

  auto key() const {
    return std::tuple(m, n, k, a_transposed, b_transposed, accumulate, factors, result, a_alignment, b_alignment,
                      c_alignment);
  }
  bool operator<(const Shape& other) const { return key() < other.key(); }
};

// How cuBLASLt computes one shape.
struct Planned {
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulAlgo_t algorithm;
  bool possible;
};

cublasLtMatrixLayout_t matrix(cudaDataType_t type, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t layout;
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout, type, uint64_t(rows), uint64_t(columns), rows));
  return layout;
}

Planned choose(const Shape& s) {
  Planned p;
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&p.product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t a = s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, b = s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(p.product, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b));
  p.a = s.a_transposed ? matrix(s.factors, s.k, s.m) : matrix(s.factors, s.m, s.k);
  p.b = s.b_transposed ? matrix(s.factors, s.n, s.k) : matrix(s.factors, s.k, s.n);
  p.c = matrix(s.result, s.m, s.n);

  cublasLtMatmulPreference_t preference;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
    CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  // Where a product is split, its parts are added in float and not in what they are stored as.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s.a_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s.b_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, s.c_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, s.c_alignment);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(library().handle, p.product, p.a, p.b, p.c, p.c, preference, 1, &found, &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) CUBLAS_CHECK(status);
  p.possible = status == CUBLAS_STATUS_SUCCESS && count == 1;
  p.algorithm = found.algo;
  CUBLAS_CHECK(cublasLtMatmulPreferenceDestroy(preference));
  return p;
}

// More than 16 makes no difference to a kernel, and would to the choice: equal products lie on different addresses.
uint32_t alignment(const void* p) {
  uint32_t bytes = 16;
  while (reinterpret_cast<uintptr_t>(p) % bytes != 0) bytes /= 2;
  return bytes;
}

struct Factors {
  int64_t m, n, k;
  int64_t a_transposed, b_transposed;  // as wide as the rest: a launch's arguments have no gaps (graph.cu)
};

// For shapes that cuBLASLt does not take (rows of odd widths in bfloat16 may be among them): a thread an element.
template <class T, class C>
__global__ void plain_product_kernel(C* c, const T* a, const T* b, Factors f, bool accumulate) {
  int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= f.m * f.n) return;
  int64_t i = at % f.m, j = at / f.m;
  float sum = 0;
  for (int64_t p = 0; p < f.k; ++p) {
    float left = to_float(a[f.a_transposed ? p + i * f.k : i + p * f.m]);
    float right = to_float(b[f.b_transposed ? j + p * f.n : p + j * f.k]);
    sum = fmaf(left, right, sum);
  }
  c[at] = from_float<C>(accumulate ? to_float(c[at]) + sum : sum);
}

template <class T, class C>
void multiply(C* c, const T* a, const T* b, Factors f, bool accumulate) {
  if (f.m == 0 || f.n == 0) return;
  Shape s = {f.m,      f.n,      f.k,          f.a_transposed != 0, f.b_transposed != 0, accumulate,
             kType<T>, kType<C>, alignment(a), alignment(b),        alignment(c)};
  static std::map<Shape, Planned>& plans = *new std::map<Shape, Planned>;  // lives as long as the library
  auto known = plans.find(s);
  if (known == plans.end()) known = plans.emplace(s, choose(s)).first;
  const Planned& p = known->second;
  if (!p.possible)
    return launch(plain_product_kernel<T, C>, blocks_for(f.m * f.n, kMostThreads), kMostThreads, 0, stream(), c, a, b,
                  f, accumulate);
  if (!enters(c, a, b, &p)) return;
  float alpha = 1, beta = accumulate ? 1 : 0;
  CUBLAS_CHECK(cublasLtMatmul(library().handle, p.product, &alpha, a, p.a, b, p.b, &beta, c, p.c, c, p.c, &p.algorithm,
                              library().workspace, kWorkspace, stream()));
}

template <class T>
void matmul_forward(T* y, const T* x, const T* w, int rows, int in, int out) {
  multiply(y, w, x, {out, rows, in, true, false}, false);
}
template <class T>
void matmul_backward_input(T* dx, const T* dy, const T* w, int rows, int in, int out, bool accumulate) {
  multiply(dx, w, dy, {in, rows, out, false, false}, accumulate);
}
template <class T>
void matmul_backward_weight(float* dw, const T* dy, const T* x, int rows, int in, int out) {
  if (rows > 0) multiply(dw, x, dy, {in, out, rows, false, true}, true);
}

// What the tensor cores can do, for the benchmarks to compare with: some products that are large enough to fill the device.
double peak_products() {
  constexpr int kProducts = 8;
  int multiprocessors = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  int n = std::min(4096, 32 * multiprocessors);
  int64_t square = int64_t(n) * n;
  bf16* memory = scratch<bf16>(3 * square);
  for (int i = 0; i < kProducts; ++i) matmul_forward(memory, memory + square, memory + 2 * square, n, n, n);
  wait();
  return 2.0 * kProducts * double(n) * double(square);
}

}  // namespace

template <class T>
void add_matmul(Kernels& table) {
  if (std::is_same_v<T, bf16>) table.peak_fma = peak_products;
  table.matmul_forward = Fit<matmul_forward<T>>();
  table.matmul_backward_input = Fit<matmul_backward_input<T>>();
  table.matmul_backward_weight = Fit<matmul_backward_weight<T>>();
}
template void add_matmul<float>(Kernels&);
template void add_matmul<bf16>(Kernels&);
