// Products of shapes that cuBLASLt does not take.
#include "../cuda/device.h"
#include "cublasLt.h"

namespace {

TEST(CudaMatmul, MultipliesWhatTheLibraryRefuses) {
  simt::refuse_products(true);
  with_cuda_tables([](const Device& d) {
    int rows = 19, in = 23, out = 29;  // no other test's
    auto x = d.rounded(noise(rows * in, 1)), w = d.rounded(noise(out * in, 2)), dy = d.rounded(noise(rows * out, 3));
    auto dx = d.rounded(noise(rows * in, 4)), dw = noise(out * in, 5);
    std::vector<float> y(rows * out);
    OnDevice x_on = acts(d, x), w_on = acts(d, w), dy_on = acts(d, dy), dx_on = acts(d, dx), y_on = acts(d, y);
    OnDevice dw_on = floats(d, dw);
    d.run.matmul_forward(y_on.data(), x_on.data(), w_on.data(), rows, in, out);
    d.run.matmul_backward_input(dx_on.data(), dy_on.data(), w_on.data(), rows, in, out, true);
    d.run.matmul_backward_weight(dw_on.data(), dy_on.data(), x_on.data(), rows, in, out);
    const Kernels& cpu = cpu_kernels();
    cpu.matmul_forward(y.data(), x.data(), w.data(), rows, in, out);
    cpu.matmul_backward_input(dx.data(), dy.data(), w.data(), rows, in, out, true);
    cpu.matmul_backward_weight(dw.data(), dy.data(), x.data(), rows, in, out);
    // The kernel's order is the CPU's: y has its bits, but for what bfloat16 rounds; the others add what was there last.
    EXPECT_SAME_BITS(y_on.values(), d.rounded(y));
    EXPECT_TRUE(close(dx_on.values(), dx, {20.0}, d.tolerance(1)));
    EXPECT_TRUE(close(dw_on.values(), dw, {20.0}, kFloatTolerance));
  });
  simt::refuse_products(false);
}

}  // namespace
