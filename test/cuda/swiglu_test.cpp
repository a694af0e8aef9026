// SwiGLU on the device against the CPU's. bfloat16: each result is rounded once.
#include "device.h"

namespace {

void compare(const Device& d, int rows, int ffn, double size) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << ffn << ", size " << size);
  size_t n = size_t(rows) * ffn;
  auto gate_up = d.rounded(noise(2 * n, 1, size)), dy = d.rounded(noise(n, 2));
  std::vector<float> y(n, -77.0f), dgate_up(2 * n, -77.0f);
  OnDevice gate_up_on = acts(d, gate_up), dy_on = acts(d, dy), y_on = acts(d, y), dgate_up_on = acts(d, dgate_up);
  d.run.swiglu_forward(y_on.data(), gate_up_on.data(), rows, ffn);
  d.run.swiglu_backward(dgate_up_on.data(), dy_on.data(), gate_up_on.data(), rows, ffn);

  const Kernels& cpu = cpu_kernels();
  cpu.swiglu_forward(y.data(), gate_up.data(), rows, ffn);
  cpu.swiglu_backward(dgate_up.data(), dy.data(), gate_up.data(), rows, ffn);
  std::vector<double> y_terms(y.begin(), y.end()), terms(2 * n);
  for (double& t : y_terms) t = std::abs(t);
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < ffn; ++i) {
      size_t at = size_t(row) * 2 * ffn + i;
      double g = gate_up[at], u = gate_up[at + ffn], s = 1 / (1 + std::exp(-g)), dyi = dy[size_t(row) * ffn + i];
      terms[at] = std::abs(dyi * u) * s * (1 + std::abs(g) * (1 + s));
      terms[at + ffn] = std::abs(dyi * g * s);
    }
  EXPECT_TRUE(close(y_on.values(), y, y_terms, d.tolerance(1)));
  EXPECT_TRUE(close(dgate_up_on.values(), dgate_up, terms, d.tolerance(1)));
}

TEST(CudaSwiglu, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (int ffn : {1, 7, 8, 12, 33, 256, 1026, 2056})
      for (int rows : {1, 5}) compare(d, rows, ffn, 1);
  });
}

TEST(CudaSwiglu, StandsLargeAndSmallGates) {
  with_cuda_tables([](const Device& d) { compare(d, 3, 100, 20); });
}

TEST(CudaSwiglu, DoesNothingWithoutRows) {
  with_cuda_tables([](const Device& d) {
    d.run.swiglu_forward(nullptr, nullptr, 0, 8);
    d.run.swiglu_backward(nullptr, nullptr, nullptr, 0, 8);
  });
}

}  // namespace
