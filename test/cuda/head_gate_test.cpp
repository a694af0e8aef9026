// A gate per head on the device against the CPU's. bfloat16: each result is rounded once.
#include "device.h"

namespace {

void compare(const Device& d, int rows, int heads, int head_dim, bool in_place) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << heads << " heads of " << head_dim
                                  << (in_place ? ", in place" : ""));
  size_t gates = size_t(rows) * heads, n = gates * head_dim;
  auto x = d.rounded(noise(n, 1)), dy = d.rounded(noise(n, 2)), z = d.rounded(noise(gates, 3, 2));
  std::vector<float> y(n, -77.0f), dx(n, -77.0f), dz(gates, -77.0f);
  OnDevice x_on = acts(d, x), dy_on = acts(d, dy), z_on = acts(d, z), y_on = acts(d, in_place ? x : y),
           dx_on = acts(d, in_place ? dy : dx), dz_on = acts(d, dz);
  d.run.head_gate_forward(y_on.data(), in_place ? y_on.data() : x_on.data(), z_on.data(), rows, heads, head_dim);
  d.run.head_gate_backward(dx_on.data(), dz_on.data(), in_place ? dx_on.data() : dy_on.data(), x_on.data(), z_on.data(),
                           rows, heads, head_dim);

  const Kernels& cpu = cpu_kernels();
  cpu.head_gate_forward(y.data(), x.data(), z.data(), rows, heads, head_dim);
  cpu.head_gate_backward(dx.data(), dz.data(), dy.data(), x.data(), z.data(), rows, heads, head_dim);
  std::vector<double> y_terms(y.begin(), y.end()), dx_terms(dx.begin(), dx.end()), dz_terms(gates);
  for (double& t : y_terms) t = std::abs(t);
  for (double& t : dx_terms) t = std::abs(t);
  for (size_t head = 0; head < gates; ++head) {
    double g = 1 / (1 + std::exp(-double(z[head])));
    for (int i = 0; i < head_dim; ++i)
      dz_terms[head] += std::abs(double(dy[head * head_dim + i]) * x[head * head_dim + i]) * g * (1 + g);
  }
  EXPECT_TRUE(close(y_on.values(), y, y_terms, d.tolerance(1)));
  EXPECT_TRUE(close(dx_on.values(), dx, dx_terms, d.tolerance(1)));
  EXPECT_TRUE(close(dz_on.values(), dz, dz_terms, d.tolerance(1)));
}

TEST(CudaHeadGate, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (int head_dim : {1, 6, 9, 16, 64, 100, 320})
      for (int heads : {1, 3}) compare(d, 7, heads, head_dim, false);
    compare(d, 1, 1, 64, false);
  });
}

TEST(CudaHeadGate, WorksInPlace) {
  with_cuda_tables([](const Device& d) {
    compare(d, 5, 4, 64, true);
    compare(d, 5, 3, 7, true);
  });
}

TEST(CudaHeadGate, DoesNothingWithoutRows) {
  with_cuda_tables([](const Device& d) {
    d.run.head_gate_forward(nullptr, nullptr, nullptr, 0, 4, 8);
    d.run.head_gate_backward(nullptr, nullptr, nullptr, nullptr, nullptr, 0, 4, 8);
  });
}

}  // namespace
