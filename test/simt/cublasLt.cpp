#include "cublasLt.h"

#include <cstring>
#include <vector>

#include "cuda_bf16.h"
#include "runtime.h"

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  int transposed[2] = {CUBLAS_OP_N, CUBLAS_OP_N};  // a, b
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  size_t rows, columns, leading;
  float at(const void* matrix, size_t row, size_t column) const {
    size_t i = row + column * leading;
    return type == CUDA_R_32F ? static_cast<const float*>(matrix)[i]
                              : __bfloat162float(static_cast<const __nv_bfloat16*>(matrix)[i]);
  }
  void set(void* matrix, size_t row, size_t column, float x) const {
    size_t i = row + column * leading;
    if (type == CUDA_R_32F)
      static_cast<float*>(matrix)[i] = x;
    else
      static_cast<__nv_bfloat16*>(matrix)[i] = __float2bfloat16(x);
  }
};
struct cublasLtMatmulPreferenceOpaque_t {
  size_t value[16] = {};
};

namespace {

cublasLtContext the_context;
bool no_algorithms = false;

// Rows × columns of a factor as floats, the rows of one column one after another.
std::vector<float> factor(const cublasLtMatrixLayoutOpaque_t& layout, const void* matrix, bool transposed) {
  size_t rows = transposed ? layout.columns : layout.rows, columns = transposed ? layout.rows : layout.columns;
  std::vector<float> out(rows * columns);
  for (size_t column = 0; column < columns; ++column)
    for (size_t row = 0; row < rows; ++row)
      out[row + column * rows] = transposed ? layout.at(matrix, column, row) : layout.at(matrix, row, column);
  return out;
}

}  // namespace

void simt::refuse_products(bool refuse) { no_algorithms = refuse; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "cuBLASLt does not take this";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = &the_context;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *product = new cublasLtMatmulDescOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t what,
                                              const void* value, size_t bytes) {
  if (bytes != sizeof(int)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&product->transposed[what == CUBLASLT_MATMUL_DESC_TRANSB], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  if (leading < int64_t(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new cublasLtMatrixLayoutOpaque_t{type, rows, columns, size_t(leading)};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what, const void* value,
                                                    size_t bytes) {
  size_t wanted = what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? sizeof(size_t) : sizeof(uint32_t);
  if (bytes != wanted) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&preference->value[what], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// The one algorithm there is remembers how its operands will be aligned, so that a plan used with others is noticed.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t found[], int* count) {
  *count = wanted > 0 && !no_algorithms ? 1 : 0;
  if (no_algorithms) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (*count == 0) return CUBLAS_STATUS_SUCCESS;
  found[0] = {};
  for (int i = 0; i < 4; ++i) found[0].algo.data[i] = preference->value[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i];
  found[0].workspaceSize = preference->value[CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES];
  return CUBLAS_STATUS_SUCCESS;
}

static void multiply(const cublasLtMatmulDescOpaque_t& product, float alpha, const void* a,
                     const cublasLtMatrixLayoutOpaque_t& la, const void* b, const cublasLtMatrixLayoutOpaque_t& lb,
                     float beta, void* c, const cublasLtMatrixLayoutOpaque_t& lc) {
  std::vector<float> left = factor(la, a, product.transposed[0] == CUBLAS_OP_T);
  std::vector<float> right = factor(lb, b, product.transposed[1] == CUBLAS_OP_T);
  size_t m = lc.rows, n = lc.columns, k = left.size() / m;
  std::vector<float> column(m);
  for (size_t j = 0; j < n; ++j) {
    std::fill(column.begin(), column.end(), 0.0f);
    for (size_t p = 0; p < k; ++p) {
      float x = right[p + j * k];
      for (size_t i = 0; i < m; ++i) column[i] += left[i + p * m] * x;
    }
    for (size_t i = 0; i < m; ++i) {
      float before = beta == 0 ? 0 : beta * lc.at(c, i, j);
      lc.set(c, i, j, alpha * column[i] + before);
    }
  }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb, const void* beta,
                              const void* c, cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t, cudaStream_t stream) {
  auto inner = [](bool transposed, const cublasLtMatrixLayoutOpaque_t& l, bool left) {
    return transposed == left ? l.rows : l.columns;
  };
  if (inner(product->transposed[0], *la, true) != inner(product->transposed[1], *lb, false))
    return CUBLAS_STATUS_INVALID_VALUE;
  const void* operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (algorithm->data[i] == 0 || reinterpret_cast<uintptr_t>(operands[i]) % algorithm->data[i] != 0)
      return CUBLAS_STATUS_INVALID_VALUE;
  if (c != d || !workspace) return CUBLAS_STATUS_NOT_SUPPORTED;
  simt::Operation work{"product", [=, p = *product, x = *static_cast<const float*>(alpha), la = *la, lb = *lb, lc = *lc,
                                   y = *static_cast<const float*>(beta)] { multiply(p, x, a, la, b, lb, y, d, lc); }};
  return simt::enqueue(stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
