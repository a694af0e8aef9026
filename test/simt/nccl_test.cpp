// The stand-in for NCCL: what each collective gives, in the order of streams, and what is refused.
#include "nccl.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

constexpr int kRanks = 3;

struct Ranks {
  Ranks() {
    EXPECT_EQ(ncclCommInitAll(comm, kRanks, nullptr), ncclSuccess);
    for (int r = 0; r < kRanks; ++r) {
      EXPECT_EQ(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking), cudaSuccess);
      EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&in[r]), sizeof(float) * 6), cudaSuccess);
      EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&out[r]), sizeof(float) * 6), cudaSuccess);
      for (int i = 0; i < 6; ++i) sent[r].push_back(float(10 * r + i));
      cudaMemcpyAsync(in[r], sent[r].data(), sizeof(float) * 6, cudaMemcpyHostToDevice, stream[r]);
    }
  }
  ~Ranks() {
    for (int r = 0; r < kRanks; ++r)
      cudaFree(in[r]), cudaFree(out[r]), cudaStreamDestroy(stream[r]), ncclCommDestroy(comm[r]);
  }
  template <class F>
  ncclResult_t each(F call) {
    ncclGroupStart();
    for (int r = kRanks - 1; r >= 0; --r) {
      ncclResult_t result = call(r);
      if (result != ncclSuccess) return ncclGroupEnd(), result;
    }
    return ncclGroupEnd();
  }
  // What rank r received, after waiting for its own stream alone.
  std::vector<float> received(int r, size_t n) {
    std::vector<float> got(n);
    cudaMemcpyAsync(got.data(), out[r], n * sizeof(float), cudaMemcpyDeviceToHost, stream[r]);
    cudaStreamSynchronize(stream[r]);
    return got;
  }
  ncclComm_t comm[kRanks];
  cudaStream_t stream[kRanks];
  float *in[kRanks], *out[kRanks];
  std::vector<float> sent[kRanks];
};

TEST(SimtNccl, AllReduceGivesEveryRankTheSum) {
  Ranks ranks;
  EXPECT_EQ(ranks.each([&](int r) {
    return ncclAllReduce(ranks.in[r], ranks.out[r], 6, ncclFloat, ncclSum, ranks.comm[r], ranks.stream[r]);
  }),
            ncclSuccess);
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.received(r, 6), (std::vector<float>{30, 33, 36, 39, 42, 45}));
}

TEST(SimtNccl, ReduceScatterAndAllGatherAreTheHalvesOfIt) {
  Ranks ranks;
  EXPECT_EQ(ranks.each([&](int r) {
    return ncclReduceScatter(ranks.in[r], ranks.out[r], 2, ncclFloat, ncclAvg, ranks.comm[r], ranks.stream[r]);
  }),
            ncclSuccess);
  EXPECT_EQ(ranks.received(1, 2), (std::vector<float>{12, 13}));
  EXPECT_EQ(ranks.each([&](int r) {
    return ncclAllGather(ranks.in[r], ranks.out[r], 2, ncclFloat, ranks.comm[r], ranks.stream[r]);
  }),
            ncclSuccess);
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.received(r, 6), (std::vector<float>{0, 1, 10, 11, 20, 21}));
}

TEST(SimtNccl, BroadcastSendsTheRootsAndMaxTheGreatest) {
  Ranks ranks;
  EXPECT_EQ(ranks.each([&](int r) {
    return ncclBroadcast(ranks.in[r], ranks.out[r], 6, ncclFloat, 1, ranks.comm[r], ranks.stream[r]);
  }),
            ncclSuccess);
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.received(r, 6), ranks.sent[1]);
  EXPECT_EQ(ranks.each([&](int r) {
    return ncclAllReduce(ranks.in[r], ranks.in[r], 6, ncclFloat, ncclMax, ranks.comm[r], ranks.stream[r]);
  }),
            ncclSuccess);
  std::swap(ranks.in[0], ranks.out[0]);
  EXPECT_EQ(ranks.received(0, 6), ranks.sent[2]);
}

TEST(SimtNccl, RefusesWhatWouldHang) {
  Ranks ranks;
  auto reduce = [&](int r, size_t n) {
    return ncclAllReduce(ranks.in[r], ranks.out[r], n, ncclFloat, ncclSum, ranks.comm[r], ranks.stream[r]);
  };
  EXPECT_EQ(reduce(0, 6), ncclInvalidUsage);  // no group
  EXPECT_EQ(ranks.each([&](int r) { return r == 1 ? ncclSuccess : reduce(r, 6); }),
            ncclInvalidUsage);                                                                // one is missing
  EXPECT_EQ(ranks.each([&](int r) { return reduce(r, r == 1 ? 5 : 6); }), ncclInvalidUsage);  // they differ
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

}  // namespace
