// Matrix products: every table against the naive chains, bit for bit; and the chains' gradients against differences.
#include "bits.h"
#include "reference.h"

namespace {

struct Shape {
  int rows, in, out;
};

// Odd sizes around the registers' widths; long inner and outer dimensions that cross the blocks, also where the left
// factor is packed; enough work for threads.
constexpr Shape kShapes[] = {{1, 1, 1},     {1, 2, 15},      {5, 15, 2},      {13, 16, 17},   {12, 33, 32},
                             {64, 17, 33},  {1, 100, 100},   {3, 1, 257},     {65, 100, 16},  {13, 33, 100},
                             {2, 1100, 35}, {1100, 3, 33},   {7, 35, 1100},   {37, 64, 129},  {256, 9, 40},
                             {257, 140, 7}, {410, 800, 140}, {790, 140, 400}, {1800, 33, 100}};

void compare(Shape shape, const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& dy,
             const std::vector<float>& there) {
  auto [rows, in, out] = shape;
  SCOPED_TRACE(testing::Message() << rows << " rows, " << in << " in, " << out << " out");
  std::vector<float> y(size_t(rows) * out), dx(x.size()), dw(there.begin(), there.begin() + w.size());
  std::vector<float> onto(there.begin(), there.begin() + x.size());
  std::vector<float> dx_start = onto, dw_start = dw;
  reference::matmul_forward(y.data(), x.data(), w.data(), rows, in, out);
  reference::matmul_backward_input(dx.data(), dy.data(), w.data(), rows, in, out, false);
  reference::matmul_backward_input(onto.data(), dy.data(), w.data(), rows, in, out, true);
  reference::matmul_backward_weight(dw.data(), dy.data(), x.data(), rows, in, out);
  with_every_table([&, rows = rows, in = in, out = out](const Kernels& kernels) {
    Guarded<float> got_y(y.size(), 7.0f), got_dx(dx.size(), 7.0f), got_onto(dx_start), got_dw(dw_start);
    kernels.matmul_forward(got_y.data(), x.data(), w.data(), rows, in, out);
    kernels.matmul_backward_input(got_dx.data(), dy.data(), w.data(), rows, in, out, false);
    kernels.matmul_backward_input(got_onto.data(), dy.data(), w.data(), rows, in, out, true);
    kernels.matmul_backward_weight(got_dw.data(), dy.data(), x.data(), rows, in, out);
    EXPECT_SAME_BITS(got_y, y);
    EXPECT_SAME_BITS(got_dx, dx);
    EXPECT_SAME_BITS(got_onto, onto);
    EXPECT_SAME_BITS(got_dw, dw);
  });
}

TEST(Matmul, HasTheBitsOfItsChains) {
  for (Shape s : kShapes)
    compare(s, noise(size_t(s.rows) * s.in, 1), noise(size_t(s.out) * s.in, 2), noise(size_t(s.rows) * s.out, 3),
            noise(size_t(s.rows + s.out) * s.in, 4));
}

TEST(Matmul, HandlesDenormalsZerosAndExtremes) {
  for (Shape s : {Shape{5, 17, 3}, Shape{13, 40, 33}, Shape{1, 100, 2}})
    compare(s, awkward(size_t(s.rows) * s.in, 1), awkward(size_t(s.out) * s.in, 2), awkward(size_t(s.rows) * s.out, 3),
            awkward(size_t(s.rows + s.out) * s.in, 4));
}

TEST(Matmul, CarriesInfinitiesAndNothingElse) {
  Shape s = {3, 17, 5};
  auto x = noise(s.rows * s.in, 1), w = noise(s.out * s.in, 2), dy = noise(s.rows * s.out, 3), there = noise(500, 4);
  x[3] = kInfinity, x[20] = -kInfinity, w[40] = kInfinity, dy[7] = -kInfinity, there[1] = kInfinity;
  compare(s, x, w, dy, there);
}

TEST(Matmul, SubnormalSumsAreRoundedOnce) {
  Shape s = {4, 30, 6};
  compare(s, noise(s.rows * s.in, 1, 1e-20), noise(s.out * s.in, 2, 1e-21), noise(s.rows * s.out, 3, 1e-20),
          noise(500, 4, 1e-41));
}

TEST(Matmul, RowsDoNotDependOnTheirCompany) {
  int rows = 40, in = 70, out = 50;
  auto x = noise(size_t(rows) * in, 1), w = noise(size_t(out) * in, 2);
  with_every_table([&](const Kernels& kernels) {
    std::vector<float> together(size_t(rows) * out), alone(together.size());
    kernels.matmul_forward(together.data(), x.data(), w.data(), rows, in, out);
    for (int r = 0; r < rows; ++r)
      kernels.matmul_forward(&alone[size_t(r) * out], &x[size_t(r) * in], w.data(), 1, in, out);
    EXPECT_SAME_BITS(alone, together);
  });
}

// To nearest, ties to even.
float rounded_to_bf16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x), below = bits & 0xffff0000, above = below + 0x10000;
  double low = std::bit_cast<float>(below), high = std::bit_cast<float>(above), middle = (low + high) / 2;
  if (x == middle) return float(below >> 16 & 1 ? high : low);
  return float((x < middle) == (x > 0) ? low : high);
}

TEST(Matmul, PackedWeightsGiveTheSameBits) {
  for (Shape s : {Shape{1, 1, 1}, Shape{1, 70, 50}, Shape{3, 33, 100}, Shape{8, 100, 31}, Shape{12, 64, 64},
                  Shape{13, 17, 33}, Shape{40, 900, 140}}) {
    auto [rows, in, out] = s;
    SCOPED_TRACE(testing::Message() << rows << " rows, " << in << " in, " << out << " out");
    std::vector<float> x = noise(size_t(rows) * in, 1), w = noise(size_t(out) * in, 2), rounded, y(size_t(rows) * out);
    w[0] = 1.00390625f;  // a tie
    for (float v : w) rounded.push_back(rounded_to_bf16(v));
    EXPECT_EQ(rounded[0], 1.0f);
    for (bool bf16 : {false, true}) {
      reference::matmul_forward(y.data(), x.data(), bf16 ? rounded.data() : w.data(), rows, in, out);
      with_every_table([&, rows = rows, in = in, out = out](const Kernels& kernels) {
        Guarded<float> packed(size_t(in) * ((out + 31) / 32 * 32), 7.0f), got(y.size(), 7.0f);
        kernels.pack_weight(packed.data(), w.data(), in, out, bf16);
        kernels.matmul_packed(got.data(), x.data(), packed.data(), rows, in, out, bf16);
        EXPECT_SAME_BITS(got, y) << (bf16 ? "bf16" : "f32");
      });
    }
  }
}

TEST(Matmul, BackwardIsTheDerivativeOfForward) {
  int rows = 3, in = 5, out = 4;
  auto x = noise<double>(rows * in, 1), w = noise<double>(out * in, 2), dy = noise<double>(rows * out, 3);
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
  reference::matmul_backward_input(dx.data(), dy.data(), w.data(), rows, in, out, false);
  reference::matmul_backward_weight(dw.data(), dy.data(), x.data(), rows, in, out);
  auto objective = [&] {
    reference::matmul_forward(y.data(), x.data(), w.data(), rows, in, out);
    return weighted(dy, y);
  };
  expect_gradient("dx", dx, x, objective);
  expect_gradient("dw", dw, w, objective);
}

}  // namespace
