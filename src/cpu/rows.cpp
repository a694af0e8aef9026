// The small change between the large operations: gathering and scattering rows, sums, scalings, biases, sigmoids,
// residuals.
//
// All are bound by memory and read and write everything once. Threads share rows, or elements; where rows are summed
// they share the columns, and each column is summed in row order, for parameters by blocks (kernels.h).
#include "elementary.h"
#include "tables.h"
#include "workspace.h"

namespace ISA {

void gather_rows(float* out, const float* in, const int* source, int rows, int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    std::memcpy(out + size_t(row) * width, in + size_t(source[row]) * width, width * sizeof(float));
  });
}

void scatter_rows(float* out, const float* in, const int* to, int rows, int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    std::memcpy(out + size_t(to[row]) * width, in + size_t(row) * width, width * sizeof(float));
  });
}

// f(first, columns) for blocks of columns, shared by the threads, for sums over rows in order: whole cache lines, so that
// threads do not share one.
constexpr int kColumns = 32;
template <class F>
static void each_block_of_columns(int rows, int width, F f) {
  parallel_for((width + kColumns - 1) / kColumns, worth_threads(int64_t(rows) * width), [&](int64_t block) {
    int first = int(block) * kColumns;
    f(first, width - first < kColumns ? width - first : kColumns);
  });
}

void scatter_add_rows(float* out, const float* in, const int* source, int rows, int width) {
  each_block_of_columns(rows, width, [&](int first, int columns) {
    for (int row = 0; row < rows; ++row) {
      float* to = out + size_t(source[row]) * width + first;
      const float* from = in + size_t(row) * width + first;
      each_piece(columns, [&](int i, int n) { store(to + i, load(to + i, n) + load(from + i, n), n); });
    }
  });
}

// A block's rows of the same token meet in `sums`, at the first of them, before they are added to the table.
void embedding_backward(float* dembedding, const float* de, const int* token, int rows, int width) {
  auto* first_of = reinterpret_cast<int*>(thread_workspace(1, size_t(rows)));  // by row: the block's first of its token
  parallel_for((rows + kSummedRows - 1) / kSummedRows, worth_threads(int64_t(rows) * width), [&](int64_t block) {
    int begin = int(block) * kSummedRows, end = rows - begin < kSummedRows ? rows : begin + kSummedRows;
    for (int row = begin, same; row < end; ++row) {
      for (same = begin; token[same] != token[row];) ++same;
      first_of[row] = same;
    }
  });
  each_block_of_columns(rows, width, [&](int first, int columns) {
    each_block_of_rows(rows, [&](int begin, int end) {
      float sums[kSummedRows][kColumns];
      for (int row = begin; row < end; ++row) {
        const float* from = de + size_t(row) * width + first;
        float* to = sums[first_of[row] - begin];
        bool is_first = first_of[row] == row;
        each_piece(columns,
                   [&](int i, int n) { store(to + i, (is_first ? Lanes{} : load(to + i, n)) + load(from + i, n), n); });
      }
      for (int row = begin; row < end; ++row) {
        if (first_of[row] != row) continue;
        float* to = dembedding + size_t(token[row]) * width + first;
        const float* from = sums[row - begin];
        each_piece(columns, [&](int i, int n) { store(to + i, load(to + i, n) + load(from + i, n), n); });
      }
    });
  });
}

void zero(float* x, int64_t n) {
  each_piece_in_parallel(n, [&](int64_t i, int count) { store(x + i, Lanes{}, count); });
}

void copy(float* y, const float* x, int64_t n) {
  each_piece_in_parallel(n, [&](int64_t i, int count) { store(y + i, load(x + i, count), count); });
}

void scale(float* y, const float* x, float alpha, int64_t n) {
  each_piece_in_parallel(n, [&](int64_t i, int count) { store(y + i, splat(alpha) * load(x + i, count), count); });
}

void add(float* y, const float* x, int64_t n) {
  each_piece_in_parallel(n,
                         [&](int64_t i, int count) { store(y + i, load(y + i, count) + load(x + i, count), count); });
}

void sigmoid(float* y, const float* x, int64_t n) {
  each_piece_in_parallel(n, [&](int64_t i, int count) { store(y + i, sigmoid(load(x + i, count)), count); });
}

void residual_forward(float* y, const float* x, const float* branch, float alpha, int64_t n) {
  each_piece_in_parallel(n, [&](int64_t i, int count) {
    store(y + i, fma(splat(alpha), load(branch + i, count), load(x + i, count)), count);
  });
}

void bias_forward(float* y, const float* bias, int rows, int width) {
  parallel_for(rows, worth_threads(int64_t(rows) * width), [&](int64_t row) {
    float* yr = y + size_t(row) * width;
    each_piece(width, [&](int i, int n) { store(yr + i, load(yr + i, n) + load(bias + i, n), n); });
  });
}

void bias_backward(float* dbias, const float* dy, int rows, int width) {
  each_block_of_columns(rows, width, [&](int first, int columns) {
    each_piece(columns, [&](int i, int n) {
      Lanes total = load(dbias + first + i, n);
      each_block_of_rows(rows, [&](int row, int end) {
        Lanes block = {};
        for (; row < end; ++row) block = block + load(dy + size_t(row) * width + first + i, n);
        total = total + block;
      });
      store(dbias + first + i, total, n);
    });
  });
}

}  // namespace ISA
