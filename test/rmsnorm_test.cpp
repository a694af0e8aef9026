// RMSNorm: every table against the definition, bit for bit, and the definition's gradient against differences.
#include "bits.h"
#include "reference.h"

namespace {

constexpr float kEps = 1e-6f;

void compare(int rows, int width, const std::vector<float>& x, const std::vector<float>& gain,
             const std::vector<float>& dy) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
  std::vector<float> y(x.size()), rrms(rows), dx = noise(x.size(), 8), dgain = noise(width, 9);
  std::vector<float> dx_start = dx, dgain_start = dgain;
  reference::rmsnorm_forward(y.data(), rrms.data(), x.data(), gain.data(), rows, width, kEps);
  reference::rmsnorm_backward(dx.data(), dgain.data(), dy.data(), x.data(), gain.data(), rrms.data(), rows, width);
  with_every_table([&](const Kernels& kernels) {
    Guarded<float> got_y(x.size(), 7.0f), got_rrms(rows, 7.0f), got_dx(dx_start), got_dgain(dgain_start);
    kernels.rmsnorm_forward(got_y.data(), got_rrms.data(), x.data(), gain.data(), rows, width, kEps);
    kernels.rmsnorm_backward(got_dx.data(), got_dgain.data(), dy.data(), x.data(), gain.data(), rrms.data(), rows,
                             width);
    EXPECT_SAME_BITS(got_y, y);
    EXPECT_SAME_BITS(got_rrms, rrms);
    EXPECT_SAME_BITS(got_dx, dx);
    EXPECT_SAME_BITS(got_dgain, dgain);
  });
}

TEST(Rmsnorm, HasTheBitsOfItsDefinition) {
  for (int width : {1, 2, 15, 16, 17, 33, 100, 768})
    for (int rows : {1, 5, 13, 64, 256, 257, 700})
      compare(rows, width, noise(size_t(rows) * width, 1), noise(width, 2), noise(size_t(rows) * width, 3));
}

TEST(Rmsnorm, HandlesDenormalsZerosAndExtremes) {
  for (int width : {1, 17, 40}) compare(6, width, awkward(6 * width, 1), awkward(width, 2), awkward(6 * width, 3));
  compare(2, 20, std::vector<float>(40, 0.0f), noise(20, 2), noise(40, 3));
}

TEST(Rmsnorm, BackwardIsTheDerivativeOfForward) {
  for (int width : {1, 5, 18}) {
    int rows = 3;
    auto x = noise<double>(rows * width, 1), gain = noise<double>(width, 2), dy = noise<double>(rows * width, 3);
    std::vector<double> y(x.size()), rrms(rows), dx(x.size()), dgain(width);
    auto objective = [&] {
      reference::rmsnorm_forward(y.data(), rrms.data(), x.data(), gain.data(), rows, width, 1e-3);
      return weighted(dy, y);
    };
    objective();
    reference::rmsnorm_backward(dx.data(), dgain.data(), dy.data(), x.data(), gain.data(), rrms.data(), rows, width);
    expect_gradient("dx", dx, x, objective);
    expect_gradient("dgain", dgain, gain, objective);
  }
}

}  // namespace
