// The latent feedback's operations, carry, concat and gate: every table against the definition, bit for bit.
#include <algorithm>

#include "bits.h"
#include "reference.h"

namespace {

// `n` different row numbers below `limit`, in no order.
std::vector<int> different_rows(int n, int limit, unsigned seed) {
  std::vector<int> all(limit);
  for (int i = 0; i < limit; ++i) all[i] = i;
  std::shuffle(all.begin(), all.end(), std::mt19937(seed));
  return {all.begin(), all.begin() + n};
}

TEST(Carry, TakesTheNamedStatesAndJittersThem) {
  for (int width : {1, 2, 15, 16, 17, 33, 100})
    for (int rows : {1, 5, 13, 200})
      for (float delta : {0.0f, 0.02f}) {
        auto h = awkward(size_t(rows + 3) * width, 1);
        std::vector<int> source = different_rows(rows, rows + 3, 2);
        std::vector<uint64_t> key(rows);
        for (int r = 0; r < rows; ++r) key[r] = random_key(5, Purpose::jitter, 1, 2, 0, r);
        std::vector<float> out(size_t(rows) * width);
        reference::carry_forward(out.data(), h.data(), source.data(), key.data(), delta, rows, width);
        with_every_table([&](const Kernels& kernels) {
          Guarded<float> got(out.size(), 7.0f);
          kernels.carry_forward(got.data(), h.data(), source.data(), key.data(), delta, rows, width);
          EXPECT_SAME_BITS(got, out);
        });
      }
}

TEST(Carry, JitterIsUniformWithinDelta) {
  std::vector<double> h(10000), out(h.size());
  int source = 0;
  uint64_t key = random_key(1, Purpose::jitter, 7);
  reference::carry_forward(out.data(), h.data(), &source, &key, 0.02, 1, int(h.size()));
  double sum = 0, square = 0;
  for (double x : out) {
    ASSERT_LE(std::abs(x), 0.02);
    sum += x, square += x * x;
  }
  EXPECT_NEAR(sum / 10000, 0, 5e-4);
  EXPECT_NEAR(square / 10000, 0.02 * 0.02 / 3, 1e-5);
}

TEST(Concat, PairsATokensRowWithItsState) {
  for (int width : {1, 2, 15, 16, 17, 33, 100})
    for (int rows : {1, 5, 13, 200}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
      size_t n = size_t(rows) * width;
      auto e = awkward(n + 4 * width, 1), h = awkward(n, 2), dpair = awkward(2 * n, 3), de_start = awkward(e.size(), 4);
      auto index = different_rows(rows, rows + 4, 5);
      std::vector<float> pair(2 * n), de = de_start, dh(n);
      reference::concat_forward(pair.data(), e.data(), index.data(), h.data(), rows, width);
      reference::concat_backward(de.data(), index.data(), dh.data(), dpair.data(), rows, width);
      with_every_table([&](const Kernels& kernels) {
        Guarded<float> got_pair(2 * n, 7.0f), got_de(de_start), got_dh(n, 7.0f);
        kernels.concat_forward(got_pair.data(), e.data(), index.data(), h.data(), rows, width);
        kernels.concat_backward(got_de.data(), index.data(), got_dh.data(), dpair.data(), rows, width);
        EXPECT_SAME_BITS(got_pair, pair);
        EXPECT_SAME_BITS(got_de, de);
        EXPECT_SAME_BITS(got_dh, dh);
      });
    }
}

void compare_gate(int rows, int width, const std::vector<float>& a, const std::vector<float>& z, const int* index,
                  const std::vector<float>& df) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << width << (index ? ", indexed" : ""));
  std::vector<float> s(z.size()), f(a.size()), da(a.size()), dz_start = awkward(z.size(), 9), dz = dz_start;
  reference::sigmoid(s.data(), z.data(), z.size());
  reference::gate_forward(f.data(), a.data(), s.data(), index, rows, width);
  reference::gate_backward(da.data(), dz.data(), df.data(), a.data(), s.data(), index, rows, width);
  with_every_table([&](const Kernels& kernels) {
    Guarded<float> got_f(f.size(), 7.0f), got_da(da.size(), 7.0f), got_dz(dz_start);
    kernels.gate_forward(got_f.data(), a.data(), s.data(), index, rows, width);
    kernels.gate_backward(got_da.data(), got_dz.data(), df.data(), a.data(), s.data(), index, rows, width);
    EXPECT_SAME_BITS(got_f, f);
    EXPECT_SAME_BITS(got_da, da);
    EXPECT_SAME_BITS(got_dz, dz);
  });
}

TEST(Gate, HasTheBitsOfItsDefinition) {
  for (int width : {1, 2, 15, 16, 17, 33, 100})
    for (int rows : {1, 5, 13, 200}) {
      size_t n = size_t(rows) * width;
      compare_gate(rows, width, noise(n, 1), noise(n, 2, 3), nullptr, noise(n, 3));
      compare_gate(rows, width, noise(n, 1), noise(n + 4 * width, 2, 3), different_rows(rows, rows + 4, 4).data(),
                   noise(n, 3));
    }
}

TEST(Gate, HandlesDenormalsZerosAndExtremes) {
  compare_gate(9, 33, awkward(297, 1), awkward(297, 2), different_rows(9, 9, 4).data(), awkward(297, 3));
}

TEST(Gate, BackwardIsTheDerivativeOfForward) {
  int rows = 3, width = 4, index[] = {4, 0, 2};
  auto a = noise<double>(12, 1), z = noise<double>(20, 2), df = noise<double>(12, 3);
  std::vector<double> s(20), f(12), da(12), dz(20);
  auto objective = [&] {
    reference::sigmoid(s.data(), z.data(), 20);
    reference::gate_forward(f.data(), a.data(), s.data(), index, rows, width);
    return weighted(df, f);
  };
  objective();
  reference::gate_backward(da.data(), dz.data(), df.data(), a.data(), s.data(), index, rows, width);
  expect_gradient("da", da, a, objective);
  expect_gradient("dz", dz, z, objective);  // through the sigmoid
}

}  // namespace
