// The gate per head: every table against the definition, bit for bit, and the definition's gradient against
// differences.
#include "bits.h"
#include "reference.h"

namespace {

void compare(int rows, int heads, int head_dim, const std::vector<float>& x, const std::vector<float>& z,
             const std::vector<float>& dy) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << heads << " heads of " << head_dim);
  std::vector<float> y(x.size()), dx(x.size()), dz(z.size());
  reference::head_gate_forward(y.data(), x.data(), z.data(), rows, heads, head_dim);
  reference::head_gate_backward(dx.data(), dz.data(), dy.data(), x.data(), z.data(), rows, heads, head_dim);
  with_every_table([&](const Kernels& kernels) {
    Guarded<float> got_y(y.size(), 7.0f), got_dx(dx.size(), 7.0f), got_dz(dz.size(), 7.0f);
    kernels.head_gate_forward(got_y.data(), x.data(), z.data(), rows, heads, head_dim);
    kernels.head_gate_backward(got_dx.data(), got_dz.data(), dy.data(), x.data(), z.data(), rows, heads, head_dim);
    EXPECT_SAME_BITS(got_y, y);
    EXPECT_SAME_BITS(got_dx, dx);
    EXPECT_SAME_BITS(got_dz, dz);
    Guarded<float> in_place_y(x), in_place_dx(dy), other_dz(dz.size(), 7.0f);  // y may be x, dx may be dy
    kernels.head_gate_forward(in_place_y.data(), in_place_y.data(), z.data(), rows, heads, head_dim);
    kernels.head_gate_backward(in_place_dx.data(), other_dz.data(), in_place_dx.data(), x.data(), z.data(), rows, heads,
                               head_dim);
    EXPECT_SAME_BITS(in_place_y, y);
    EXPECT_SAME_BITS(in_place_dx, dx);
    EXPECT_SAME_BITS(other_dz, dz);
  });
}

TEST(HeadGate, HasTheBitsOfItsDefinition) {
  for (int head_dim : {2, 6, 16, 18, 64})
    for (int heads : {1, 3, 17})
      for (int rows : {1, 5, 13}) {
        size_t n = size_t(rows) * heads * head_dim;
        compare(rows, heads, head_dim, noise(n, 1), noise(rows * heads, 2, 3), noise(n, 3));
      }
  compare(200, 4, 64, noise(200 * 4 * 64, 1), noise(200 * 4, 2), noise(200 * 4 * 64, 3));
}

TEST(HeadGate, HandlesDenormalsZerosAndExtremes) {
  compare(9, 3, 18, awkward(9 * 3 * 18, 1), awkward(27, 2), awkward(9 * 3 * 18, 3));
}

TEST(HeadGate, BackwardIsTheDerivativeOfForward) {
  int rows = 2, heads = 3, head_dim = 4;
  auto x = noise<double>(24, 1), z = noise<double>(6, 2), dy = noise<double>(24, 3);
  std::vector<double> y(24), dx(24), dz(6);
  reference::head_gate_backward(dx.data(), dz.data(), dy.data(), x.data(), z.data(), rows, heads, head_dim);
  auto objective = [&] {
    reference::head_gate_forward(y.data(), x.data(), z.data(), rows, heads, head_dim);
    return weighted(dy, y);
  };
  expect_gradient("dx", dx, x, objective);
  expect_gradient("dz", dz, z, objective);
}

}  // namespace
