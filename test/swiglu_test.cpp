// SwiGLU: every table against the definition, bit for bit, and the definition's gradient against differences.
#include "bits.h"
#include "reference.h"

namespace {

void compare(int rows, int ffn, const std::vector<float>& gate_up, const std::vector<float>& dy) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << ffn);
  std::vector<float> y(dy.size()), dgate_up(gate_up.size());
  reference::swiglu_forward(y.data(), gate_up.data(), rows, ffn);
  reference::swiglu_backward(dgate_up.data(), dy.data(), gate_up.data(), rows, ffn);
  with_every_table([&](const Kernels& kernels) {
    Guarded<float> got_y(y.size(), 7.0f), got_dgate_up(dgate_up.size(), 7.0f);
    kernels.swiglu_forward(got_y.data(), gate_up.data(), rows, ffn);
    kernels.swiglu_backward(got_dgate_up.data(), dy.data(), gate_up.data(), rows, ffn);
    EXPECT_SAME_BITS(got_y, y);
    EXPECT_SAME_BITS(got_dgate_up, dgate_up);
  });
}

TEST(Swiglu, HasTheBitsOfItsDefinition) {
  for (int ffn : {1, 2, 15, 16, 17, 33, 100, 515})
    for (int rows : {1, 5, 13, 64})
      compare(rows, ffn, noise(size_t(rows) * 2 * ffn, 1, 3), noise(size_t(rows) * ffn, 2));
}

TEST(Swiglu, HandlesDenormalsZerosAndExtremes) {
  for (int ffn : {1, 17, 40}) compare(7, ffn, awkward(14 * ffn, 1), awkward(7 * ffn, 2));
}

TEST(Swiglu, BackwardIsTheDerivativeOfForward) {
  int rows = 3, ffn = 5;
  auto gate_up = noise<double>(rows * 2 * ffn, 1, 2), dy = noise<double>(rows * ffn, 2);
  std::vector<double> y(dy.size()), dgate_up(gate_up.size());
  reference::swiglu_backward(dgate_up.data(), dy.data(), gate_up.data(), rows, ffn);
  expect_gradient("dgate_up", dgate_up, gate_up, [&] {
    reference::swiglu_forward(y.data(), gate_up.data(), rows, ffn);
    return weighted(dy, y);
  });
}

}  // namespace
