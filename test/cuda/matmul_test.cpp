// Matrix products on the device against the CPU's. bfloat16: a result is rounded once; sums are in float.
#include "device.h"

namespace {

struct Product {
  int rows, in, out;
};

// Σ|terms| of y = x wᵀ.
std::vector<double> terms(const std::vector<float>& x, const std::vector<float>& w, int rows, int in, int out) {
  std::vector<double> sum(size_t(rows) * out);
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < out; ++o)
      for (int i = 0; i < in; ++i)
        sum[size_t(r) * out + o] += std::abs(double(x[size_t(r) * in + i]) * w[size_t(o) * in + i]);
  return sum;
}

std::vector<float> transposed(const std::vector<float>& x, int rows, int columns) {
  std::vector<float> out(x.size());
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) out[size_t(c) * rows + r] = x[size_t(r) * columns + c];
  return out;
}

std::vector<double> plus(std::vector<double> sum, const std::vector<float>& start) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += std::abs(double(start[i]));
  return sum;
}

void compare(const Device& d, Product p) {
  auto [rows, in, out] = p;
  SCOPED_TRACE(testing::Message() << rows << " rows, " << in << " → " << out);
  const Kernels& cpu = cpu_kernels();
  auto x = d.rounded(noise(size_t(rows) * in, 1)), w = d.rounded(noise(size_t(out) * in, 2));
  auto dy = d.rounded(noise(size_t(rows) * out, 3)), dx = d.rounded(noise(x.size(), 4)), dw = noise(w.size(), 5);
  OnDevice x_on = acts(d, x), w_on = acts(d, w), dy_on = acts(d, dy), dx_on = acts(d, dx), dw_on = floats(d, dw);
  std::vector<float> y(dy.size());

  OnDevice y_on = acts(d, y);
  d.run.matmul_forward(y_on.data(), x_on.data(), w_on.data(), rows, in, out);
  cpu.matmul_forward(y.data(), x.data(), w.data(), rows, in, out);
  EXPECT_TRUE(close(y_on.values(), y, terms(x, w, rows, in, out), d.tolerance(1)));

  auto dx_terms = terms(dy, transposed(w, out, in), rows, out, in);
  for (bool accumulate : {true, false}) {
    std::vector<double> all = accumulate ? plus(dx_terms, dx) : dx_terms;
    d.run.matmul_backward_input(dx_on.data(), dy_on.data(), w_on.data(), rows, in, out, accumulate);
    cpu.matmul_backward_input(dx.data(), dy.data(), w.data(), rows, in, out, accumulate);
    EXPECT_TRUE(close(dx_on.values(), dx, all, d.tolerance(1)));
  }

  auto dw_terms = plus(terms(transposed(dy, rows, out), transposed(x, rows, in), out, rows, in), dw);
  d.run.matmul_backward_weight(dw_on.data(), dy_on.data(), x_on.data(), rows, in, out);
  cpu.matmul_backward_weight(dw.data(), dy.data(), x.data(), rows, in, out);
  EXPECT_TRUE(close(dw_on.values(), dw, dw_terms, kFloatTolerance));
}

TEST(CudaMatmul, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (Product p : {Product{1, 1, 1}, Product{1, 8, 24}, Product{5, 7, 3}, Product{16, 64, 96}, Product{33, 40, 257},
                      Product{128, 96, 64}})
      compare(d, p);
  });
}

TEST(CudaMatmul, MultipliesWhatLiesOnOddAddresses) {
  with_cuda_tables([](const Device& d) {
    auto x = d.rounded(noise(1 + 3 * 5, 1)), w = d.rounded(noise(3 + 7 * 5, 2));
    std::vector<float> y(1 + 3 * 7);
    OnDevice x_on = acts(d, x), w_on = acts(d, w), y_on = acts(d, y);
    d.run.matmul_forward(d.run.at(y_on.data(), 1), d.run.at(x_on.data(), 1), d.run.at(w_on.data(), 3), 3, 5, 7);
    cpu_kernels().matmul_forward(&y[1], &x[1], &w[3], 3, 5, 7);
    EXPECT_TRUE(close(y_on.values(), y, {20.0}, d.tolerance(1)));
  });
}

TEST(CudaMatmul, TakesNoRows) {
  with_cuda_tables([](const Device& d) {
    OnDevice w = floats(d, {1, 2, 3, 4});
    d.run.matmul_forward(nullptr, nullptr, w.data(), 0, 2, 2);
    d.run.matmul_backward_input(nullptr, nullptr, w.data(), 0, 2, 2, false);
    d.run.matmul_backward_weight(w.data(), nullptr, nullptr, 0, 2, 2);
    EXPECT_EQ(w.values(), (std::vector<float>{1, 2, 3, 4}));
  });
}

}  // namespace
