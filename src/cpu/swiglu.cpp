// SwiGLU's elementwise part; the products around it are matmuls.
//
//   forward    y = g σ(g) u
//   backward   du = dy g σ(g);   dg = dy u σ(g) (1 + g (1 − σ(g)))
//
// Bound by memory and by exp; threads share rows.
#include "elementary.h"
#include "tables.h"

namespace ISA {

void swiglu_forward(float* y, const float* gate_up, int rows, int ffn) {
  parallel_for(rows, worth_threads(int64_t(rows) * ffn), [&](int64_t row) {
    const float* gr = gate_up + size_t(row) * 2 * ffn;
    float* yr = y + size_t(row) * ffn;
    each_piece(ffn, [&](int i, int n) {
      Lanes g = load(gr + i, n);
      store(yr + i, g * sigmoid(g) * load(gr + ffn + i, n), n);
    });
  });
}

void swiglu_backward(float* dgate_up, const float* dy, const float* gate_up, int rows, int ffn) {
  parallel_for(rows, worth_threads(int64_t(rows) * ffn), [&](int64_t row) {
    const float* gr = gate_up + size_t(row) * 2 * ffn;
    const float* dyr = dy + size_t(row) * ffn;
    float* dgr = dgate_up + size_t(row) * 2 * ffn;
    each_piece(ffn, [&](int i, int n) {
      Lanes g = load(gr + i, n), u = load(gr + ffn + i, n), d = load(dyr + i, n), s = sigmoid(g), one = splat(1.0f);
      store(dgr + i, d * u * (s * (one + g * (one - s))), n);
      store(dgr + ffn + i, d * (g * s), n);
    });
  });
}

}  // namespace ISA
