// RMSNorm on the device against the CPU's. bfloat16: a result is rounded once; dx, which is added to, too.
#include "device.h"

namespace {

constexpr float kEps = 1e-6f;

void compare(const Device& d, int rows, int width) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
  size_t n = size_t(rows) * width;
  auto x = d.rounded(noise(n, 1)), dy = d.rounded(noise(n, 2)), dx = d.rounded(noise(n, 3));
  auto gain = noise(width, 4), dgain = noise(width, 5);
  std::vector<float> y(n), rrms(rows);
  OnDevice x_on = acts(d, x), y_on = acts(d, y), dy_on = acts(d, dy), dx_on = acts(d, dx), gain_on = floats(d, gain),
           dgain_on = floats(d, dgain), rrms_on = floats(d, rrms);
  d.run.rmsnorm_forward(y_on.data(), rrms_on.data(), x_on.data(), gain_on.data(), rows, width, kEps);
  d.run.rmsnorm_backward(dx_on.data(), dgain_on.data(), dy_on.data(), x_on.data(), gain_on.data(), rrms_on.data(), rows,
                         width);
  std::vector<double> dx_terms(n), dgain_terms(width);
  for (int i = 0; i < width; ++i) dgain_terms[i] = std::abs(dgain[i]);
  const Kernels& cpu = cpu_kernels();
  cpu.rmsnorm_forward(y.data(), rrms.data(), x.data(), gain.data(), rows, width, kEps);
  for (int row = 0; row < rows; ++row) {
    double sum = 0, r = rrms[row];
    auto at = [&](const std::vector<float>& v, int i) { return double(v[size_t(row) * width + i]); };
    for (int i = 0; i < width; ++i) sum += std::abs(gain[i] * at(dy, i) * at(x, i));
    for (int i = 0; i < width; ++i) {
      dx_terms[size_t(row) * width + i] =
          std::abs(at(dx, i)) + std::abs(at(x, i)) * sum * r * r * r / width + std::abs(gain[i] * at(dy, i) * r);
      dgain_terms[i] += std::abs(at(dy, i) * at(x, i) * r);
    }
  }
  cpu.rmsnorm_backward(dx.data(), dgain.data(), dy.data(), x.data(), gain.data(), rrms.data(), rows, width);
  std::vector<double> y_terms(y.begin(), y.end()), rrms_terms(rrms.begin(), rrms.end());
  for (double& t : y_terms) t = std::abs(t);
  EXPECT_TRUE(close(y_on.values(), y, y_terms, d.tolerance(1)));
  EXPECT_TRUE(close(rrms_on.values(), rrms, rrms_terms, kFloatTolerance));
  EXPECT_TRUE(close(dx_on.values(), dx, dx_terms, d.tolerance(1)));
  EXPECT_TRUE(close(dgain_on.values(), dgain, dgain_terms, kFloatTolerance));
}

TEST(CudaRmsnorm, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (int width : {1, 2, 7, 8, 33, 100, 256, 768})
      for (int rows : {1, 5, 70}) compare(d, rows, width);
  });
}

}  // namespace
