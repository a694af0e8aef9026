// The benchmarks' ceilings on the device: that they do what they count.
#include "indexed.h"

namespace {

TEST(CudaPeak, CountsItsOperations) {
  with_cuda_tables([](const Device& d) { EXPECT_GE(d.run.peak_fma(), 1e6); });
}

TEST(CudaPeak, ReadsAnyNumberOfFloats) {
  with_cuda_tables([](const Device& d) {
    for (int64_t n : {1, 7, 4096, 9001}) {
      OnDevice x_on = floats(d, std::vector<float>(n, 1.0f));
      EXPECT_EQ(d.run.stream_read(x_on.data(), n), float(std::min<int64_t>(n, 4096)));
    }
    EXPECT_EQ(d.run.stream_read(nullptr, 0), 0);
  });
}

TEST(CudaPeak, UpdatesAnyNumberOfFloats) {
  with_cuda_tables([](const Device& d) {
    d.run.stream_update(nullptr, nullptr, nullptr, nullptr, 0);
    for (int64_t n : {1, 7, 512, 1030}) {
      auto a = noise(n, 1), b = noise(n, 2), c = noise(n, 3), term = noise(n, 4);
      OnDevice a_on = floats(d, a), b_on = floats(d, b), c_on = floats(d, c), term_on = floats(d, term);
      d.run.stream_update(a_on.data(), b_on.data(), c_on.data(), term_on.data(), n);
      cpu_kernels().stream_update(a.data(), b.data(), c.data(), term.data(), n);
      EXPECT_SAME_BITS(a_on.values(), a);
      EXPECT_SAME_BITS(b_on.values(), b);
      EXPECT_SAME_BITS(c_on.values(), c);
    }
  });
}

}  // namespace
