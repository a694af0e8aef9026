// Latent feedback on the device against the CPU's. What is copied, and the jitter in float, has the CPU's bits.
// bfloat16: each result is rounded once; those which are added to, too.
#include "indexed.h"
#include "random.h"

namespace {

void compare_carry(const Device& d, int rows, int width, float delta) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width << ", delta " << delta);
  auto h = d.rounded(noise(size_t(rows + 3) * width, 1)), out = junk(size_t(rows) * width);
  auto source = different_rows(rows, rows + 3, 2);
  std::vector<uint64_t> key(rows);
  for (int r = 0; r < rows; ++r) key[r] = random_key(5, Purpose::jitter, 1, 2, 0, r);
  OnDevice h_on = acts(d, h), out_on = acts(d, out);
  d.run.carry_forward(out_on.data(), h_on.data(), source.data(), delta > 0 ? key.data() : nullptr, delta, rows, width);
  cpu_kernels().carry_forward(out.data(), h.data(), source.data(), key.data(), delta, rows, width);
  EXPECT_SAME_BITS(out_on.values(), d.rounded(out));
}

TEST(CudaCarry, HasTheCpusBitsAndNoise) {
  with_cuda_tables([](const Device& d) {
    for (int width : {1, 7, 8, 33, 256, 1032})
      for (float delta : {0.0f, 0.02f}) compare_carry(d, 5, width, delta);
    compare_carry(d, 200, 100, 0.5f);
  });
}

TEST(CudaCarry, ReadsRowsBeyond32Bits) {
  with_cuda_tables([](const Device& d) {
    auto h = d.rounded(noise(kFarWidth, 1)), out = junk(kFarWidth);
    OnDevice h_on = acts(d, h), out_on = acts(d, out);
    float* begins = beginning(d.run, h_on.data(), int64_t(kFarRow) * kFarWidth);
    d.run.carry_forward(out_on.data(), begins, &kFarRow, nullptr, 0, 1, kFarWidth);
    EXPECT_SAME_BITS(out_on.values(), h);
  });
}

void compare_concat(const Device& d, int rows, int width) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
  size_t n = size_t(rows) * width;
  auto e = d.rounded(noise(n + 4 * width, 1)), h = d.rounded(noise(n, 2)), dpair = d.rounded(noise(2 * n, 3));
  auto de = d.rounded(noise(e.size(), 4)), pair = junk(2 * n), dh = junk(n);
  auto index = different_rows(rows, rows + 4, 5);
  OnDevice e_on = acts(d, e), h_on = acts(d, h), dpair_on = acts(d, dpair), de_on = acts(d, de),
           pair_on = acts(d, pair), dh_on = acts(d, dh);
  d.run.concat_forward(pair_on.data(), e_on.data(), index.data(), h_on.data(), rows, width);
  d.run.concat_backward(de_on.data(), index.data(), dh_on.data(), dpair_on.data(), rows, width);
  const Kernels& cpu = cpu_kernels();
  cpu.concat_forward(pair.data(), e.data(), index.data(), h.data(), rows, width);
  cpu.concat_backward(de.data(), index.data(), dh.data(), dpair.data(), rows, width);
  EXPECT_SAME_BITS(pair_on.values(), pair);
  EXPECT_SAME_BITS(de_on.values(), d.rounded(de));
  EXPECT_SAME_BITS(dh_on.values(), dh);
}

TEST(CudaConcat, HasTheCpusBits) {
  with_cuda_tables([](const Device& d) {
    for (int width : {1, 7, 8, 33, 256, 1032}) compare_concat(d, 5, width);
    compare_concat(d, 150, 4);
  });
}

TEST(CudaConcat, ReadsAndWritesRowsBeyond32Bits) {
  with_cuda_tables([](const Device& d) {
    size_t width = kFarWidth;
    auto e = d.rounded(noise(width, 1)), h = d.rounded(noise(width, 2)), pair = junk(2 * width), dh = junk(width);
    OnDevice e_on = acts(d, e), h_on = acts(d, h), pair_on = acts(d, pair), de_on = acts(d, std::vector<float>(width)),
             dh_on = acts(d, dh);
    auto begins = [&](OnDevice& x) { return beginning(d.run, x.data(), int64_t(kFarRow) * kFarWidth); };
    d.run.concat_forward(pair_on.data(), begins(e_on), &kFarRow, h_on.data(), 1, kFarWidth);
    d.run.concat_backward(begins(de_on), &kFarRow, dh_on.data(), pair_on.data(), 1, kFarWidth);
    EXPECT_SAME_BITS(de_on.values(), e);
    EXPECT_SAME_BITS(dh_on.values(), h);
  });
}

void compare_gate(const Device& d, int rows, int width, bool indexed) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width << (indexed ? ", indexed" : ""));
  size_t n = size_t(rows) * width, gates = n + (indexed ? 4 * size_t(width) : 0);
  auto a = d.rounded(noise(n, 1)), z = noise(gates, 2, 3), df = d.rounded(noise(n, 3)), dz = d.rounded(noise(gates, 4));
  auto f = junk(n), da = junk(n);
  const Kernels& cpu = cpu_kernels();
  cpu.sigmoid(z.data(), z.data(), int64_t(gates));
  auto s = d.rounded(z);
  auto rows_of_gates = different_rows(rows, rows + 4, 5);
  const int* index = indexed ? rows_of_gates.data() : nullptr;
  OnDevice a_on = acts(d, a), s_on = acts(d, s), df_on = acts(d, df), dz_on = acts(d, dz), f_on = acts(d, f),
           da_on = acts(d, da);
  d.run.gate_forward(f_on.data(), a_on.data(), s_on.data(), index, rows, width);
  d.run.gate_backward(da_on.data(), dz_on.data(), df_on.data(), a_on.data(), s_on.data(), index, rows, width);

  auto dz_terms = magnitudes(dz);
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < width; ++i) {
      size_t own = size_t(row) * width + i, of_gate = size_t(index ? index[row] : row) * width + i;
      dz_terms[of_gate] += std::abs(double(df[own]) * a[own] * s[of_gate]) * (1 + s[of_gate]);
    }
  cpu.gate_forward(f.data(), a.data(), s.data(), index, rows, width);
  cpu.gate_backward(da.data(), dz.data(), df.data(), a.data(), s.data(), index, rows, width);
  EXPECT_TRUE(close(f_on.values(), f, magnitudes(f), d.tolerance(1)));
  EXPECT_TRUE(close(da_on.values(), da, magnitudes(da), d.tolerance(1)));
  EXPECT_TRUE(close(dz_on.values(), dz, dz_terms, d.tolerance(1)));
}

TEST(CudaGate, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (int width : {1, 7, 8, 33, 256, 1032})
      for (bool indexed : {false, true}) compare_gate(d, 5, width, indexed);
    compare_gate(d, 150, 4, true);
  });
}

TEST(CudaGate, ReadsAndWritesRowsBeyond32Bits) {
  with_cuda_tables([](const Device& d) {
    std::vector<float> ones(kFarWidth, 1.0f), halves(kFarWidth, 0.5f);
    OnDevice a_on = acts(d, ones), s_on = acts(d, halves), f_on = acts(d, ones), dz_on = acts(d, ones),
             da_on = acts(d, ones);
    auto begins = [&](OnDevice& x) { return beginning(d.run, x.data(), int64_t(kFarRow) * kFarWidth); };
    d.run.gate_forward(f_on.data(), a_on.data(), begins(s_on), &kFarRow, 1, kFarWidth);
    d.run.gate_backward(da_on.data(), begins(dz_on), f_on.data(), a_on.data(), begins(s_on), &kFarRow, 1, kFarWidth);
    EXPECT_SAME_BITS(f_on.values(), halves);
    EXPECT_SAME_BITS(da_on.values(), std::vector<float>(kFarWidth, 0.25f));
    EXPECT_SAME_BITS(dz_on.values(), std::vector<float>(kFarWidth, 1.125f));
  });
}

TEST(CudaFeedback, DoesNothingWithoutRows) {
  with_cuda_tables([](const Device& d) {
    d.run.carry_forward(nullptr, nullptr, nullptr, nullptr, 0, 0, 8);
    d.run.concat_forward(nullptr, nullptr, nullptr, nullptr, 0, 8);
    d.run.concat_backward(nullptr, nullptr, nullptr, nullptr, 0, 8);
    d.run.gate_forward(nullptr, nullptr, nullptr, nullptr, 0, 8);
    d.run.gate_backward(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 8);
  });
}

}  // namespace
