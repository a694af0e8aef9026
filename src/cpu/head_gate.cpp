// A gate per head: each head's output times the sigmoid of one number, computed from the layer's input.
//
//   forward    y = x σ(z)
//   backward   dx = dy σ(z);   dz = (dy·x) σ(z) (1 − σ(z))
//
// Bound by memory; threads share rows.
#include "elementary.h"
#include "tables.h"

namespace ISA {

void head_gate_forward(float* y, const float* x, const float* z, int rows, int heads, int head_dim) {
  parallel_for(int64_t(rows) * heads, worth_threads(int64_t(rows) * heads * head_dim), [&](int64_t head) {
    Lanes gate = splat(sigmoid(z[head]));
    const float* xh = x + head * head_dim;
    float* yh = y + head * head_dim;
    each_piece(head_dim, [&](int i, int n) { store(yh + i, load(xh + i, n) * gate, n); });
  });
}

void head_gate_backward(float* dx, float* dz, const float* dy, const float* x, const float* z, int rows, int heads,
                        int head_dim) {
  parallel_for(int64_t(rows) * heads, worth_threads(int64_t(rows) * heads * head_dim), [&](int64_t head) {
    float gate = sigmoid(z[head]);
    const float *dyh = dy + head * head_dim, *xh = x + head * head_dim;
    float* dxh = dx + head * head_dim;
    Lanes dot = {};
    each_piece(head_dim, [&](int i, int n) {
      Lanes g = load(dyh + i, n);
      dot = fma(g, load(xh + i, n), dot);
      store(dxh + i, g * splat(gate), n);
    });
    dz[head] = sum(dot) * (gate * (1.0f - gate));
  });
}

}  // namespace ISA
