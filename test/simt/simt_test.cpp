// The emulator: legal kernels give the right results, whatever the order of threads; each kind of mistake is found, by
// name and by place.
#include "simt.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "ptx.cuh"
#include "reduce.cuh"
#include "runtime.h"
#include "vec.cuh"

namespace {

// --- Running

// A buffer on the device.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(size_t count) : count_(count) { EXPECT_EQ(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess); }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~OnDevice() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  OnDevice(const OnDevice&) = delete;
  T* data() const { return data_; }
  size_t bytes() const { return count_ * sizeof(T); }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

void finish() { EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); }

// What a kernel of one block writes for each of its threads.
template <class T>
std::vector<T> results(void (*kernel)(T*), int threads, size_t shared_bytes = 0) {
  OnDevice<T> out{size_t(threads)};
  launch(kernel, 1, unsigned(threads), shared_bytes, nullptr, out.data());
  finish();
  return out.values();
}

void run(void (*kernel)(float*), int threads, size_t shared_bytes = 0) { results(kernel, threads, shared_bytes); }

// "…simt_test.cpp:123…" for an EXPECT_DEATH; then what follows in the report.
std::string at(int line) { return "simt_test\\.cpp:" + std::to_string(line) + "(, called from .*)?\n"; }
std::string in(const char* kernel) {
  return std::string("(.|\n)*kernel .*") + kernel + "(.|\n)*launched at .*simt_test\\.cpp";
}

template <class T>
std::vector<T> iota(int n) {
  std::vector<T> v(n);
  std::iota(v.begin(), v.end(), T(0));
  return v;
}

// --- Barriers

struct Row {
  Shared<float> value[1024];
};
constexpr size_t kRow = sizeof(Row);

__global__ void reverse(float* out) {
  auto& row = shared<Row>();
  unsigned me = threadIdx.x;
  row.value[me] = float(me);
  __syncthreads();
  out[me] = row.value[blockDim.x - 1 - me];
}

TEST(SimtBarrier, PutsWritesBeforeTheReadsBehindIt) {
  for (int threads : {1, 31, 32, 100, 1024}) {
    OnDevice<float> out(threads);
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(unsigned(threads)), config.dynamicSmemBytes = kRow;
    EXPECT_EQ(cudaLaunchKernelEx(&config, reverse, out.data()), cudaSuccess);
    std::vector<float> values = out.values();
    for (int i = 0; i < threads; ++i) EXPECT_EQ(values[i], float(threads - 1 - i));
  }
}

TEST(SimtBarrierDeathTest, LaunchKeepsBlocksToWhatHasRegistersOnEveryGpu) {
  OnDevice<float> out(257);
  EXPECT_DEATH(launch(reverse, 1, 257, kRow, nullptr, out.data()), "a block of 257 × 1 × 1 threads");
}

constexpr int kReadsTooEarly = __LINE__ + 5;
__global__ void reverse_without_barrier(float* out) {
  auto& row = shared<Row>();
  unsigned me = threadIdx.x;
  row.value[me] = float(me);
  out[me] = row.value[me ^ 32];
}

TEST(SimtBarrier, IsMissedInEveryOrder) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    simt::set_seed(seed);
    EXPECT_DEATH(run(reverse_without_barrier, 64, kRow),
                 "(race|unwritten): thread [0-9]+ reads bytes [0-9]+-[0-9]+ of the shared memory, which (.|\n)*at .*" +
                     at(kReadsTooEarly) + in("reverse_without_barrier") + "(.|\n)*seed " + std::to_string(seed));
  }
}

constexpr int kOverwrites = __LINE__ + 8;
__global__ void reuse_without_barrier(float* out) {
  auto& row = shared<Row>();
  unsigned me = threadIdx.x;
  row.value[me] = float(me);
  __syncthreads();
  float other = row.value[me ^ 32];
  // here one is missing
  row.value[me] = other;
  out[me] = other;
}

TEST(SimtBarrier, IsMissedBeforeSharedMemoryIsReused) {
  EXPECT_DEATH(run(reuse_without_barrier, 64, kRow),
               "race: thread (.|\n)*simt_test\\.cpp:" + std::to_string(kOverwrites));
}

constexpr int kFirstBarrier = __LINE__ + 3, kSecondBarrier = kFirstBarrier + 2;
__global__ void diverge(float*) {
  if (threadIdx.x < 40)
    __syncthreads();
  else
    __syncthreads();
}

TEST(SimtBarrier, IsOneForTheWholeBlock) {
  std::string one = std::to_string(kFirstBarrier), other = std::to_string(kSecondBarrier);
  EXPECT_DEATH(run(diverge, 64), "divergent barriers: .*simt_test\\.cpp:(" + one + "|" + other + ")\n  at .*:(" + one +
                                     "|" + other + ")\n" + in("diverge"));
}

__global__ void barrier_of_those_left(float* out) {
  auto& row = shared<Row>();
  row.value[threadIdx.x] = 1;
  if (threadIdx.x >= 40) return;
  __syncthreads();
  out[threadIdx.x] = row.value[threadIdx.x + 20];
}

TEST(SimtBarrier, DoesNotWaitForThreadsThatHaveReturned) {
  auto out = results(barrier_of_those_left, 64, kRow);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(out[i], 1);
}

constexpr int kStuckInBlock = __LINE__ + 2, kStuckInWarp = __LINE__ + 3;
__global__ void get_stuck(float*) {
  if (threadIdx.x < 10) __syncthreads();
  __shfl_sync(~0u, 1, 0);
}

TEST(SimtBarrier, TellsWhatEachThreadWaitsFor) {
  EXPECT_DEATH(run(get_stuck, 32),
               "deadlock: no thread of the block can go on\n"
               "  threads 0-9 wait in __syncthreads at .*simt_test\\.cpp:" +
                   std::to_string(kStuckInBlock) + "\n  threads 10-31 wait in __shfl_sync of lanes 0xffffffff at .*" +
                   at(kStuckInWarp) + in("get_stuck") + "(.|\n)*seed " + std::to_string(simt::seed()) + "\n");
}

// --- Warp collectives

__global__ void shuffle_in_all_ways(int* out) {
  int me = int(threadIdx.x);
  out[me] = __shfl_sync(~0u, me, 5);
  out[32 + me] = __shfl_sync(~0u, me, 1, 8);
  out[64 + me] = __shfl_up_sync(~0u, me, 3, 16);
  out[96 + me] = __shfl_down_sync(~0u, me, 3, 16);
  out[128 + me] = __shfl_xor_sync(~0u, me, 9);
  out[160 + me] = __shfl_xor_sync(~0u, me, 8, 8);
}

TEST(SimtWarp, ShufflesAsDocumented) {
  OnDevice<int> out(192);
  launch(shuffle_in_all_ways, 1, 32, 0, nullptr, out.data());
  auto got = out.values();
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(got[i], 5);
    EXPECT_EQ(got[32 + i], i / 8 * 8 + 1);
    EXPECT_EQ(got[64 + i], i % 16 < 3 ? i : i - 3);
    EXPECT_EQ(got[96 + i], i % 16 > 12 ? i : i + 3);
    EXPECT_EQ(got[128 + i], i ^ 9);
    EXPECT_EQ(got[160 + i], i & 8 ? i - 8 : i);  // segments before its own, but not those behind, can be read
  }
}

__global__ void vote_and_reduce(int* out) {
  int me = int(threadIdx.x);
  out[me] = int(__ballot_sync(~0u, me % 3 == 0));
  out[32 + me] = __any_sync(~0u, me == 7) + 2 * __any_sync(~0u, me == 40);
  out[64 + me] = __all_sync(~0u, me < 32) + 2 * __all_sync(~0u, me < 31);
  out[96 + me] = __reduce_add_sync(~0u, me - 16);
  out[128 + me] = __reduce_min_sync(~0u, me - 16);
  out[160 + me] = int(__reduce_max_sync(~0u, unsigned(me - 16)) == ~0u);
}

TEST(SimtWarp, VotesAndReducesAsDocumented) {
  OnDevice<int> out(192);
  launch(vote_and_reduce, 1, 32, 0, nullptr, out.data());
  auto got = out.values();
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(got[i], 0x49249249);
    EXPECT_EQ(got[32 + i], 1);
    EXPECT_EQ(got[64 + i], 1);
    EXPECT_EQ(got[96 + i], -16);
    EXPECT_EQ(got[128 + i], -16);
    EXPECT_EQ(got[160 + i], 1);
  }
}

struct Sixteen {
  double a, b;
};
__global__ void shuffle_sizes(double* out) {
  int me = int(threadIdx.x);
  Sixteen s = __shfl_xor_sync(~0u, Sixteen{me + 0.25, me + 0.5}, 1);
  bf16 h = __shfl_xor_sync(~0u, __float2bfloat16(float(me)), 1);
  char c = __shfl_xor_sync(~0u, char(me), 1);
  out[me] = s.a + s.b + to_float(h) + c + __shfl_xor_sync(~0u, double(me), 1);
}

TEST(SimtWarp, ShufflesValuesOfAllSizes) {
  auto out = results(shuffle_sizes, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 5 * (i ^ 1) + 0.75);
}

__global__ void shuffle_in_halves(float* out) {
  unsigned me = threadIdx.x, half = me / 16;
  float x = float(me);
  for (int offset = 8; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffu << 16 * half, x, offset);
  out[me] = x;
}

TEST(SimtWarp, MeetsInPartsOfAWarp) {
  auto out = results(shuffle_in_halves, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 16 ? 120 : 376);
}

constexpr int kNotInMask = __LINE__ + 1;
__global__ void call_outside_of_mask(float* out) { out[threadIdx.x] = __shfl_sync(0xffff, 1.0f, 0); }
TEST(SimtWarp, WantsALaneInItsOwnMask) {
  EXPECT_DEATH(run(call_outside_of_mask, 32),
               "__shfl_sync: lane [0-9]+ calls with the mask 0x0000ffff, in which it is not "
               "itself\n  at .*" +
                   at(kNotInMask) + in("call_outside_of_mask"));
}

constexpr int kReadsFromOutside = __LINE__ + 2;
__global__ void read_from_outside(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(0xffff, 1.0f, 16);
}
TEST(SimtWarp, ReadsOnlyFromLanesThatTakePart) {
  EXPECT_DEATH(run(read_from_outside, 32),
               "__shfl_xor_sync: lane [0-9]+ reads from lane [0-9]+, which is not in the mask 0x0000ffff\n  at .*" +
                   at(kReadsFromOutside) + in("read_from_outside"));
}

constexpr int kDifferentMasks = __LINE__ + 2;
__global__ void name_different_masks(float* out) {
  out[threadIdx.x] = __shfl_sync(threadIdx.x < 16 ? ~0u : 0xffff0000u, 1.0f, 16);
}
TEST(SimtWarp, WantsTheSameMaskFromAll) {
  EXPECT_DEATH(run(name_different_masks, 32),
               "calls with the mask 0x[0-9a-f]+ while lanes 0x[0-9a-f]+ wait here with 0x[0-9a-f]+\n  at .*" +
                   at(kDifferentMasks));
}

constexpr int kLaneLeft = __LINE__ + 3;
__global__ void leave_a_warp(float* out) {
  if (threadIdx.x == 7) return;
  out[threadIdx.x] = warp_sum(__shfl_sync(~0u, 1.0f, 0));
}
TEST(SimtWarp, MissesALaneThatLeft) {
  for (int seed : {1, 2, 3, 4}) {
    simt::set_seed(seed);
    EXPECT_DEATH(run(leave_a_warp, 32),
                 "(lane 7 of the mask 0xffffffff has returned|lane 7 returns while lanes 0x[0-9a-f]+ "
                 "wait for it .*)\n  at .*" +
                     at(kLaneLeft) + in("leave_a_warp"));
  }
}
TEST(SimtWarp, MissesALaneThatNeverWas) {
  EXPECT_DEATH(run([](float* out) { *out = warp_sum(1.0f); }, 16), "lane 16 of the mask 0xffffffff does not exist");
}

// --- Shared memory

constexpr int kReadsUnwritten = __LINE__ + 4;
__global__ void read_unwritten(float* out) {
  auto& row = shared<Row>();
  if (threadIdx.x == 3) row.value[5] = 1;
  out[threadIdx.x] = threadIdx.x == 3 ? row.value[6] : 0.0f;
}
TEST(SimtShared, IsUnwrittenAtFirst) {
  EXPECT_DEATH(run(read_unwritten, 32, kRow),
               "unwritten: thread 3 reads bytes 24-27 of the shared memory, which nobody has "
               "written\n  at .*" +
                   at(kReadsUnwritten) + in("read_unwritten") + "(.|\n)*thread \\(3, 0, 0\\)");
}

__global__ void read_of_the_last_block(float* out) {
  auto& row = shared<Row>();
  if (*out == 0) row.value[0] = 1;
  *out += row.value[0];
}
TEST(SimtShared, IsUnwrittenInEachBlock) {
  OnDevice<float> out(std::vector<float>{0});
  auto two_blocks = [&] {
    launch(read_of_the_last_block, 2, 1, kRow, nullptr, out.data());
    finish();
  };
  EXPECT_DEATH(two_blocks(), "unwritten: thread 0 reads bytes 0-3");
}

__global__ void race_in_warp(float* out) {
  auto& row = shared<Row>();
  row.value[threadIdx.x] = 1;
  __syncwarp(threadIdx.x < 16 ? 0xffff : 0xffff0000);
  out[threadIdx.x] = row.value[31 - threadIdx.x];
}
TEST(SimtShared, IsNotOrderedByABarrierOfOthers) {
  EXPECT_DEATH(run(race_in_warp, 32, kRow), "(race|unwritten): thread");
}

__global__ void race_of_writes(float* out) {
  auto& row = shared<Row>();
  row.value[threadIdx.x / 2] = 1;
  out[threadIdx.x] = 0;
}
TEST(SimtShared, IsWrittenByOneThreadAtATime) {
  EXPECT_DEATH(run(race_of_writes, 32, kRow),
               "race: thread [0-9]+ writes bytes .*, which thread [0-9]+ wrote at .*simt_test");
}

__global__ void race_of_warps(float* out) {
  auto& row = shared<Row>();
  row.value[threadIdx.x] = 1;
  __syncwarp();
  out[threadIdx.x] = row.value[threadIdx.x ^ 32];
}
TEST(SimtShared, IsNotOrderedBetweenWarpsByAWarpsBarrier) {
  EXPECT_DEATH(run(race_of_warps, 64, kRow), "(race|unwritten): thread");
}

__global__ void write_after_broadcast(float* out) {
  auto& row = shared<Row>();
  if (threadIdx.x == 0) row.value[0] = 1;
  __syncthreads();
  float first = row.value[0];
  if (threadIdx.x == 33) row.value[0] = 2;
  out[threadIdx.x] = first;
}
TEST(SimtShared, IsNotWrittenWhileOthersRead) {
  for (int seed : {1, 2, 3}) {
    simt::set_seed(seed);
    EXPECT_DEATH(run(write_after_broadcast, 64, kRow),
                 "race: thread [0-9]+ (reads|writes) bytes 0-3 of the shared memory, "
                 "which threads? .* at .*simt_test\\.cpp");
  }
}

__global__ void warp_synchronous(float* out) {
  auto& row = shared<Row>();
  unsigned me = threadIdx.x, first = me / 32 * 32;
  float sum = 0;
  for (int round = 0; round < 4; ++round) {
    row.value[me] = float(me + round);
    __syncwarp();
    for (unsigned i = 0; i < 32; ++i) sum += row.value[first + i];
    __syncwarp();
  }
  for (int round = 0; round < 4; ++round) {  // and pairs of lanes, which only meet each other
    unsigned pair = 3u << (me % 32 & ~1u);
    row.value[me] = float(me + round);
    __syncwarp(pair);
    sum += row.value[me ^ 1];
    __syncwarp(pair);
  }
  out[me] = sum;
}
TEST(SimtShared, IsOrderedInAWarpByItsBarriers) {
  auto out = results(warp_synchronous, 64, kRow);
  EXPECT_EQ(out[0], 4 * 496 + 6 * 32 + 4 * 1 + 6);
  EXPECT_EQ(out[63], 4 * 1520 + 6 * 32 + 4 * 62 + 6);
}

__global__ void order_by_shuffle(float* out) {
  auto& row = shared<Row>();
  row.value[threadIdx.x] = float(threadIdx.x);
  float zero = __shfl_xor_sync(~0u, 0.0f, 1);
  out[threadIdx.x] = row.value[31 - threadIdx.x] + zero;
}
TEST(SimtShared, IsNotOrderedByAShuffle) { EXPECT_DEATH(run(order_by_shuffle, 32, kRow), "race: thread [0-9]+ reads"); }

__global__ void handed_on_by_a_chain(float* out) {
  auto& row = shared<Row>();
  unsigned me = threadIdx.x;
  if (me == 0) row.value[0] = 5;
  if (me < 2) __syncwarp(3);
  if (me == 1 || me == 2) __syncwarp(6);
  out[me] = me == 2 ? row.value[0] : 0.0f;
}
TEST(SimtShared, IsOrderedByAChainOfBarriers) { EXPECT_EQ(results(handed_on_by_a_chain, 32, kRow)[2], 5); }

struct Pair {
  Shared<float> scratch[32];
  Shared<float> buffer[2][64];
};
__global__ void double_buffering(float* out) {
  auto& tile = shared<Pair>();
  unsigned me = threadIdx.x;
  float sum = 0;
  tile.buffer[0][me] = float(me);
  for (int step = 0; step < 8; ++step) {
    __syncthreads();
    if (step < 7) tile.buffer[(step + 1) % 2][me] = float(step + 1);
    for (int i = 0; i < 64; ++i) sum += tile.buffer[step % 2][i];
    __syncthreads();
  }
  out[me] = sum;
}
TEST(SimtShared, MayBeDoubleBuffered) { EXPECT_EQ(results(double_buffering, 64, sizeof(Pair))[9], 2016 + 64 * 28); }

__global__ void reduce_twice(float* out) {
  auto& tile = shared<Pair>();
  float sum = block_sum(float(threadIdx.x), tile.scratch);
  __syncthreads();
  out[threadIdx.x] = sum + block_max(float(threadIdx.x), tile.scratch);
}
TEST(SimtShared, MayBeUsedAgainBehindABarrier) { EXPECT_EQ(results(reduce_twice, 128, sizeof(Pair))[7], 8128 + 127); }

__global__ void reduce_twice_at_once(float* out) {
  auto& tile = shared<Pair>();
  float sum = block_sum(float(threadIdx.x), tile.scratch);
  out[threadIdx.x] = sum + block_max(float(threadIdx.x), tile.scratch);
}
TEST(SimtShared, MayNotBeUsedAgainWithoutABarrier) {
  EXPECT_DEATH(run(reduce_twice_at_once, 128, sizeof(Pair)), "race: thread [0-9]+ .*reduce\\.cuh:[0-9]+");
}

struct Mixed {
  Shared<int> count;
  Shared<double> sums[2][3];
  alignas(16) Shared<bf16> halves[16];
  Shared<float2> pairs[4];
  Shared<unsigned char> bytes[8];
};
__global__ void use_all_types(double* out) {
  auto& tile = shared<Mixed>();
  if (threadIdx.x != 0) return;
  tile.count = 3;
  tile.count += 4;
  tile.count *= 2;
  ++tile.count;
  tile.sums[1][2] = 0.5;
  tile.sums[0][1] = tile.sums[1][2];
  tile.sums[0][1] -= 1;
  tile.sums[0][1] /= 2.0;
  for (int i = 0; i < 16; ++i) tile.halves[i] = from_float<bf16>(float(i));
  auto piece = load<8>(tile.halves + 8);
  piece.set(0, 100);
  store(tile.halves + 0, piece);
  tile.pairs[2] = make_float2(1, 2);
  float2 pair = tile.pairs[2];
  tile.bytes[3] = 7;
  *out = tile.count + tile.sums[0][1] + to_float(tile.halves[0]) + to_float(tile.halves[7]) + pair.y + tile.bytes[3];
}
TEST(SimtShared, HoldsAllTypes) {
  EXPECT_EQ(results(use_all_types, 1, sizeof(Mixed))[0], 15 - 0.25 + 100 + 15 + 2 + 7);
}

TEST(SimtShared, IsAsLargeAsTheLaunchSays) {
  EXPECT_DEATH(run(reverse, 32, kRow - 4),
               "shared<T>.. is of 4096 bytes, but the launch asked for 4092 bytes of shared "
               "memory\n  at .*simt_test\\.cpp");
}

constexpr int kBehindShared = __LINE__ + 3;
__global__ void write_behind_shared(float* out) {
  auto& row = shared<Row>();
  row.value[1024 + threadIdx.x] = *out;
}
TEST(SimtShared, IsNotWrittenBehindItsEnd) {
  EXPECT_DEATH(run(write_behind_shared, 1, kRow),
               "outside: thread 0 writes a Shared<T> at byte 4096, but the launch asked "
               "for 4096 bytes of shared memory\n  at .*" +
                   at(kBehindShared));
}

struct Bare {
  float value[4];  // not Shared: nobody watches, but a guard stands behind
};
__global__ void write_behind_bare_shared(float*) { shared<Bare>().value[32 + threadIdx.x] = 1; }
TEST(SimtShared, HasAGuardBehindIt) {
  EXPECT_DEATH(run(write_behind_bare_shared, 1, sizeof(Bare)),
               "out of bounds: an access to .*, at byte 128 of the block's 16 bytes of shared memory");
}

__global__ void load_misaligned(float* out) {
  auto& row = shared<Row>();
  *out = load<4>(row.value + 1)[0];
}
TEST(SimtShared, IsLoadedInAlignedPieces) {
  EXPECT_DEATH(run(load_misaligned, 1, kRow), "misaligned: an access to 16 bytes at once begins at byte 4");
}

// --- The device's memory

constexpr int kWritesBehind = __LINE__ + 1;
__global__ void write_at(float* p, int i) { p[i] = 1; }
__global__ void read_at(float* to, const float* p, int i) { *to = p[i]; }

void write_to_100_floats(int i) {
  OnDevice<float> buffer(100);
  launch(write_at, dim3(1, 2), 1, 0, nullptr, buffer.data(), i);
  finish();
}
void read_from_100_floats(int i) {
  OnDevice<float> buffer(100), to(1);
  launch(read_at, 1, 1, 0, nullptr, to.data(), buffer.data(), i);
  finish();
}

TEST(SimtMemory, EndsWhereItWasAskedTo) {
  write_to_100_floats(99);
  EXPECT_DEATH(write_to_100_floats(100),
               "out of bounds: an access to .*, 0 bytes behind the end of a device buffer of 400 "
               "bytes\n  at .*" +
                   at(kWritesBehind) + in("write_at") +
                   "(.|\n)*block \\(0, [01], 0\\) of \\(1, 2, 1\\), thread \\(0, 0, 0\\) of \\(1, 1, 1\\)");
  EXPECT_DEATH(write_to_100_floats(500), "1600 bytes behind the end of a device buffer of 400 bytes");
  EXPECT_DEATH(read_from_100_floats(100), "0 bytes behind the end of a device buffer of 400 bytes(.|\n)*read_at");
}

TEST(SimtMemory, BeginsWhereItIsSaidTo) {
  EXPECT_DEATH(write_to_100_floats(-1),
               "out of bounds: something was written 4 bytes before the beginning of a device "
               "buffer of 400 bytes\n" +
                   in("write_at"));
  EXPECT_DEATH(write_to_100_floats(-2000), "8000 bytes before the beginning of a device buffer of 400 bytes");
  EXPECT_DEATH(read_from_100_floats(-2000), "8000 bytes before the beginning of a device buffer of 400 bytes");
}

TEST(SimtMemory, IsWatchedInTheLastFewBytes) {
  auto write_byte_5_of_5 = [] {
    OnDevice<char> buffer(5);
    launch(
        +[](char* p) { p[5] = 1; }, 1, 1, 0, nullptr, buffer.data());
    finish();
  };
  EXPECT_DEATH(write_byte_5_of_5(),
               "out of bounds: something was written 0 bytes behind the end of a device buffer of 5 bytes");
}

TEST(SimtMemory, IsGoneWhenItIsFreed) {
  auto write_to_freed = [] {
    float* p;
    cudaMalloc(&p, 400);
    cudaFree(p);
    launch(write_at, 1, 1, 0, nullptr, p, 3);
    finish();
  };
  EXPECT_DEATH(write_to_freed(), "at byte 12 of a device buffer of 400 bytes, which was freed");
}

TEST(SimtMemory, StartsAsNan) {
  for (float x : OnDevice<float>(100).values()) EXPECT_TRUE(std::isnan(x));
  for (double x : OnDevice<double>(7).values()) EXPECT_TRUE(std::isnan(x));
  for (bf16 x : OnDevice<bf16>(7).values()) EXPECT_TRUE(std::isnan(to_float(x)));
  for (__half x : OnDevice<__half>(7).values()) EXPECT_TRUE(std::isnan(__half2float(x)));
}

TEST(SimtMemory, IsAligned) {
  for (size_t bytes = 1; bytes < 10000; bytes += 7) {
    OnDevice<char> buffer(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (bytes % 256 == 0 ? 256 : bytes % 64 == 0 ? 64 : 16), 0u);
  }
}

TEST(SimtMemory, HasALimit) {
  void* p;
  EXPECT_EQ(cudaMalloc(&p, size_t(1) << 60), cudaErrorMemoryAllocation);
  EXPECT_EQ(p, nullptr);
  size_t free, total;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  size_t before = total - free;  // what other tests' operations keep
  simt::set_device_memory(before + (1 << 20));
  OnDevice<char> half(1 << 19);
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, size_t(1) << 19);
  EXPECT_EQ(total, before + (1 << 20));
  EXPECT_EQ(cudaMalloc(&p, (1 << 19) + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  simt::set_device_memory(size_t(8) << 30);
}

TEST(SimtMemory, KnowsItsBuffers) {
  OnDevice<float> buffer(100);
  std::vector<float> host(200);
  EXPECT_EQ(cudaFree(host.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(buffer.data() + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(buffer.data(), host.data(), 404, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), buffer.data() + 1, 400, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data() + 100, 400, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(buffer.data(), host.data(), 400, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(buffer.data(), host.data(), 400, cudaMemcpyDefault), cudaSuccess);
}

int deeper(int n) {
  volatile char frame[4096];
  frame[0] = char(n);
  int below = n == 0 ? 0 : deeper(n - 1);
  asm volatile("" : : "r"(frame) : "memory");  // the frame is used behind the call, so that it is no loop
  return below + frame[0];
}
__global__ void recurse(float* out) { *out = float(deeper(1000)); }
TEST(SimtMemory, IsNotEndlessOnTheStack) {
  EXPECT_DEATH(run(recurse, 1), "the thread's stack is too small\n" + in("recurse"));
}

#ifdef __SANITIZE_ADDRESS__
TEST(SimtMemory, OfTheHostIsWatchedByTheSanitizer) {
  auto read_behind = [] {
    std::vector<float> host(3);
    OnDevice<float> out(1);
    launch(read_at, 1, 1, 0, nullptr, out.data(), host.data(), 3);
    finish();
  };
  EXPECT_DEATH(read_behind(), "heap-buffer-overflow(.|\n)*read_at");
}
#endif

// --- Asynchronous copies

struct Landing {
  alignas(16) Shared<float> stage[2][128];
};
constexpr int kReadsUnwaited = __LINE__ + 8;
template <bool wait>
__global__ void copy_and_read(float* out, const float* in) {
  auto& tile = shared<Landing>();
  unsigned me = threadIdx.x;
  copy_async16(tile.stage[0] + 4 * me, in + 4 * me);
  copy_async_commit();
  if (wait) copy_async_wait<0>();
  out[me] = tile.stage[0][4 * me + 1];
}

std::vector<float> copied(void (*kernel)(float*, const float*)) {
  OnDevice<float> out(32), in(iota<float>(1024));
  launch(kernel, 1, 32, sizeof(Landing), nullptr, out.data(), in.data());
  finish();
  return out.values();
}

TEST(SimtCopy, LandsAtTheWait) { EXPECT_EQ(copied(copy_and_read<true>)[31], 125); }

TEST(SimtCopy, HasToBeWaitedFor) {
  EXPECT_DEATH(copied(copy_and_read<false>),
               "unwaited copy: thread [0-9]+ reads bytes [0-9]+-[0-9]+ of the shared memory, to "
               "which a copy by thread [0-9]+ is under way\n  at .*" +
                   at(kReadsUnwaited) + in("copy_and_read<false>"));
}

template <bool barrier>
__global__ void read_what_others_copied(float* out, const float* in) {
  auto& tile = shared<Landing>();
  unsigned me = threadIdx.x;
  copy_async16(tile.stage[0] + 4 * me, in + 4 * me);
  copy_async_commit();
  copy_async_wait<0>();
  if (barrier) __syncthreads();
  out[me] = tile.stage[0][4 * (31 - me)];
}

TEST(SimtCopy, IsSeenByOthersBehindABarrier) {
  EXPECT_EQ(copied(read_what_others_copied<true>)[0], 124);
  EXPECT_DEATH(copied(read_what_others_copied<false>), "(race|unwritten|unwaited copy): ");
}

template <int pending>
__global__ void pipeline(float* out, const float* in) {
  auto& tile = shared<Landing>();
  unsigned me = threadIdx.x;
  float sum = 0;
  auto fetch = [&](int step) {
    if (step < 8) copy_async16(tile.stage[step % 2] + 4 * me, in + 128 * step + 4 * me, step != 5);
    copy_async_commit();
  };
  fetch(0);
  for (int step = 0; step < 8; ++step) {
    fetch(step + 1);
    copy_async_wait<pending>();
    __syncthreads();
    for (int i = 0; i < 128; ++i) sum += tile.stage[step % 2][i];
    __syncthreads();
  }
  out[me] = sum;
}

TEST(SimtCopy, PipelinesInGroups) {
  float sum = 0;
  for (int i = 0; i < 1024; ++i) sum += i / 128 == 5 ? 0.0f : float(i);
  EXPECT_EQ(copied(pipeline<1>)[3], sum);
  EXPECT_DEATH(copied(pipeline<2>), "unwaited copy: ");
}

// --- Products on tensor cores

// The product of a (16 × k) and b (k × 8), loaded with ldmatrix: b lies row by row, and is transposed on the way.
template <class T>
struct Operands {
  alignas(16) Shared<T> a[16][16], b[16][8];
};
template <class T, bool swapped>
__global__ void multiply_tiles(float* c, const T* a, const T* b) {
  auto& tile = shared<Operands<T>>();
  int lane = int(threadIdx.x);
  for (int i = lane; i < 256; i += 32) tile.a[i / 16][i % 16] = a[i];
  for (int i = lane; i < 128; i += 32) tile.b[i / 8][i % 8] = b[i];
  __syncwarp();
  uint32_t left[4], right[4];
  ldmatrix_x4(left, &tile.a[lane % 16][lane / 16 * 8]);
  ldmatrix_x4_transposed(right, &tile.b[lane % 16][0]);  // twice the same two matrices
  uint32_t pair[2] = {right[swapped], right[!swapped]};
  float sums[4] = {1, 1, 1, 1};
  mma_m16n8k16<T>(sums, left, pair);
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2] = sums[i];
}

__global__ void multiply_tf32(float* c, const float* a, const float* b) {
  int lane = int(threadIdx.x), group = lane / 4, member = lane % 4;
  uint32_t left[4], right[2];
  for (int i = 0; i < 4; ++i) left[i] = to_tf32(a[(group + i % 2 * 8) * 8 + member + i / 2 * 4]);
  for (int i = 0; i < 2; ++i) right[i] = to_tf32(b[(member + i * 4) * 8 + group]);
  float sums[4] = {1, 1, 1, 1};
  mma_m16n8k8_tf32(sums, left, right);
  for (int i = 0; i < 4; ++i) c[(group + i / 2 * 8) * 8 + 2 * member + i % 2] = sums[i];
}

// Small integers, exact in every type.
std::vector<float> small_integers(int n, unsigned seed) {
  std::vector<float> values(n);
  for (float& x : values) x = float(int((seed = seed * 1664525 + 1013904223) >> 24) % 17 - 8);
  return values;
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, int depth) {
  std::vector<float> c(128, 1.0f);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      for (int k = 0; k < depth; ++k) c[row * 8 + column] += a[row * depth + k] * b[k * 8 + column];
  return c;
}

template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
  std::vector<T> result;
  for (float x : values) result.push_back(T(x));
  return result;
}

template <class T>
std::vector<float> multiplied(void (*kernel)(float*, const T*, const T*), const std::vector<float>& a,
                              const std::vector<float>& b) {
  OnDevice<T> left(rounded<T>(a)), right(rounded<T>(b));
  OnDevice<float> c(128);
  launch(kernel, 1, 32, sizeof(Operands<T>), nullptr, c.data(), left.data(), right.data());
  finish();
  return c.values();
}

TEST(SimtMma, IsTheMatrixProduct) {
  auto a = small_integers(256, 1), b = small_integers(128, 2);
  EXPECT_EQ(multiplied(multiply_tiles<bf16, false>, a, b), product(a, b, 16));
  EXPECT_EQ(multiplied(multiply_tiles<__half, false>, a, b), product(a, b, 16));
  a.resize(128), b.resize(64);
  EXPECT_EQ(multiplied(multiply_tf32, a, b), product(a, b, 8));
}

TEST(SimtMma, OfAWrongMappingIsWrong) {
  auto a = small_integers(256, 1), b = small_integers(128, 2);
  EXPECT_NE(multiplied(multiply_tiles<bf16, true>, a, b), product(a, b, 16));
}

TEST(SimtMma, RoundsToTf32) {
  EXPECT_EQ(std::bit_cast<float>(to_tf32(1 + 0x1p-11f)), 1 + 0x1p-10f);  // ties go away from zero
  EXPECT_EQ(std::bit_cast<float>(to_tf32(-1 - 0x1p-11f)), -1 - 0x1p-10f);
  EXPECT_EQ(std::bit_cast<float>(to_tf32(1 + 0x1.fep-12f)), 1);
}

// --- Half types

template <class Half>
void expect_rounding(Half (*from_float)(float), float (*to_float)(Half), unsigned infinity) {
  auto half = [](unsigned bits) { return std::bit_cast<Half>(uint16_t(bits)); };
  auto bits = [](Half x) { return unsigned(std::bit_cast<uint16_t>(x)); };
  for (unsigned i = 0; i < 0x10000; ++i) {
    float x = to_float(half(i));
    if ((i & 0x7fff) > infinity) {
      EXPECT_TRUE(std::isnan(x));
      EXPECT_EQ(bits(from_float(x)), 0x7fffu);
      continue;
    }
    ASSERT_EQ(bits(from_float(x)), i);
    if ((i & 0x7fff) + 1 >= infinity) continue;
    // Between this and the next there is a tie, which goes to the even one; what is beside goes to the nearer.
    float next = to_float(half(i + 1)), middle = float((double(x) + double(next)) / 2);
    ASSERT_EQ(bits(from_float(middle)), i + i % 2);
    ASSERT_EQ(bits(from_float(std::nextafter(middle, x))), i);
    ASSERT_EQ(bits(from_float(std::nextafter(middle, next))), i + 1);
  }
  EXPECT_EQ(bits(from_float(INFINITY)), infinity);
  EXPECT_EQ(bits(from_float(3.4e38f)), infinity);
  EXPECT_EQ(bits(from_float(-3.4e38f)), infinity | 0x8000);
  EXPECT_EQ(bits(from_float(-1e-45f)), 0x8000u);
}

TEST(SimtHalf, RoundsBfloat16ToNearest) { expect_rounding(__float2bfloat16, __bfloat162float, 0x7f80); }
TEST(SimtHalf, RoundsHalfToNearest) {
  expect_rounding(__float2half, __half2float, 0x7c00);
  EXPECT_EQ(__half_as_ushort(__float2half(65519.996f)), 0x7bff);  // up to halfway to the next power of two
  EXPECT_EQ(__half_as_ushort(__float2half(65520)), 0x7c00);
}

TEST(SimtHalf, KeepsTheOrderOfPairs) {
  EXPECT_EQ(std::bit_cast<uint32_t>(__floats2bfloat162_rn(1, 2)), 0x40003f80u);
  EXPECT_EQ(std::bit_cast<uint32_t>(__floats2half2_rn(1, 2)), 0x40003c00u);
  EXPECT_EQ(__high2float(__floats2half2_rn(1, 2)), 2);
  EXPECT_EQ(__bfloat1622float2(__floats2bfloat162_rn(1, 2)).x, 1);
}

// --- Order

// Which thread wrote last depends on the order, as it would on a device.
__global__ void last_one_wins(int* out) { *out = int(blockIdx.x * blockDim.x + threadIdx.x); }
int winner(uint64_t seed) {
  simt::set_seed(seed);
  OnDevice<int> out(1);
  launch(last_one_wins, 4, 64, 0, nullptr, out.data());
  return out.values()[0];
}
TEST(SimtOrder, IsDrawnFromTheSeed) {
  bool block_changes = false, thread_changes = false;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(winner(seed), winner(seed));
    block_changes |= winner(seed) / 64 != winner(1) / 64;
    thread_changes |= winner(seed) % 64 != winner(1) % 64;
  }
  EXPECT_TRUE(block_changes && thread_changes);
}

TEST(SimtOrder, DoesNotChangeWhatIsRight) {
  auto first = results(reduce_twice, 256, sizeof(Pair));
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    simt::set_seed(seed);
    EXPECT_EQ(results(reduce_twice, 256, sizeof(Pair)), first);
  }
}

__global__ void where_am_i(int* out) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = int(block * threads + thread);
}
TEST(SimtOrder, ReachesEveryThreadOfEveryBlock) {
  OnDevice<int> out(2 * 3 * 4 * 5 * 6 * 7);
  launch(where_am_i, dim3(2, 3, 4), dim3(5, 6, 7), 0, nullptr, out.data());
  EXPECT_EQ(out.values(), iota<int>(2 * 3 * 4 * 5 * 6 * 7));
}

// --- The runtime

__global__ void add_one(float* x) { x[threadIdx.x] += 1; }

// A stream of its own, out of order with all others.
struct Stream {
  cudaStream_t stream;
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess); }
  operator cudaStream_t() const { return stream; }
};

TEST(SimtRuntime, DoesNothingBeforeItIsWaitedFor) {
  Stream stream;
  float* host;
  ASSERT_EQ(cudaMallocHost(&host, 4), cudaSuccess);
  OnDevice<float> x(std::vector<float>{1});
  *host = 5;
  EXPECT_EQ(cudaMemcpyAsync(x.data(), host, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  launch(add_one, 1, 1, 0, stream, x.data());
  *host = 7;  // too early: the copy may still be to come
  EXPECT_EQ(x.values()[0], 1);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(x.values()[0], 8);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST(SimtRuntime, GivesPageableMemoryBackAtOnce) {
  Stream stream;
  float host = 5, back = 0;
  OnDevice<float> x(1);
  EXPECT_EQ(cudaMemcpyAsync(x.data(), &host, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  host = 7;
  EXPECT_EQ(cudaMemcpyAsync(&back, x.data(), 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(back, 5);
}

TEST(SimtRuntime, OrdersStreamsByEvents) {
  Stream first, second;
  cudaEvent_t done, end;
  ASSERT_EQ(cudaEventCreate(&done), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  OnDevice<float> x(std::vector<float>{0}), y(std::vector<float>{9});
  float milliseconds = -1;
  launch(add_one, 1, 1, 0, first, x.data());
  EXPECT_EQ(cudaEventRecord(done, first), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(second, done), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(y.data(), x.data(), 4, cudaMemcpyDeviceToDevice, second), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, second), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, done, end), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, done, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(y.values()[0], 1);
  EXPECT_EQ(cudaEventDestroy(done), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
}

TEST(SimtRuntime, RefusesImpossibleLaunches) {
  OnDevice<float> x(1);
  cudaLaunchConfig_t config = {};
  auto try_launch = [&](dim3 grid, dim3 block, size_t shared_bytes) {
    config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes;
    return cudaLaunchKernelEx(&config, add_one, x.data());
  };
  EXPECT_EQ(try_launch(1, 1025, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(try_launch(0, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(try_launch(dim3(1, 65536), 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(try_launch(1, 1, 60000), cudaErrorInvalidConfiguration);
  auto kernel = reinterpret_cast<const void*>(add_one);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000), cudaSuccess);
  EXPECT_EQ(try_launch(1, 1, 60000), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000), cudaErrorInvalidValue);
  finish();
}

TEST(SimtRuntime, FailsWhenATestWants) {
  void* p;
  simt::fail_next(cudaErrorMemoryAllocation, 1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");

  int count = 7;
  simt::set_devices(0);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorNoDevice);
  simt::set_devices(1);
  simt::set_driver_version(11000);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaDriverGetVersion(&count), cudaSuccess);
  EXPECT_EQ(count, 11000);
  simt::set_driver_version(13000);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaGetLastError();
}

TEST(SimtRuntime, DescribesItsDevice) {
  cudaDeviceProp properties;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Emulated GPU");
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.totalGlobalMem, size_t(8) << 30);
}

// --- Graphs

// Captures what `work` puts into the stream.
template <class F>
cudaGraph_t capture(cudaStream_t stream, F work) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  work();
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  return graph;
}

TEST(SimtGraph, ReplaysWhatWasCaptured) {
  Stream stream;
  float* host;
  ASSERT_EQ(cudaMallocHost(&host, 4), cudaSuccess);
  OnDevice<float> x(std::vector<float>{0});
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = capture(stream, [&] {
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    EXPECT_EQ(cudaMemcpyAsync(x.data(), host, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
    launch(add_one, 1, 1, 0, stream, x.data());
  });
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(x.values()[0], 0);  // nothing has been done
  for (float value : {10.0f, 20.0f}) {
    *host = value;  // read when the graph runs
    EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values()[0], value + 1);
  }
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST(SimtGraph, IsUpdatedByOneOfTheSameShape) {
  Stream stream;
  OnDevice<float> x(std::vector<float>{0}), y(std::vector<float>{0});
  auto add_to = [&](float* p) { return capture(stream, [&] { launch(add_one, 1, 1, 0, stream, p); }); };
  cudaGraph_t to_x = add_to(x.data()), to_y = add_to(y.data());
  cudaGraph_t other = capture(stream, [&] { cudaMemsetAsync(x.data(), 0, 4, stream); });
  cudaGraph_t longer = capture(stream, [] {});
  cudaGraphExec_t executable;
  cudaGraphExecUpdateResultInfo info;
  ASSERT_EQ(cudaGraphInstantiate(&executable, to_x, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphExecUpdate(executable, to_y, &info), cudaSuccess);
  EXPECT_EQ(cudaGraphExecUpdate(executable, other, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
  EXPECT_EQ(cudaGraphExecUpdate(executable, longer, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(x.values()[0], 0);
  EXPECT_EQ(y.values()[0], 1);
  for (cudaGraph_t graph : {to_x, to_y, other, longer}) EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  cudaGetLastError();
}

TEST(SimtGraph, IsSpoiltByWhatACaptureForbids) {
  Stream stream;
  cudaGraph_t graph;
  void* p;
  for (int forbidden : {0, 1, 2}) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    cudaError_t error = forbidden == 0   ? cudaMalloc(&p, 16)
                        : forbidden == 1 ? cudaStreamSynchronize(stream)
                                         : cudaDeviceSynchronize();
    EXPECT_EQ(error, cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  }
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnmatched);
  cudaGetLastError();
}

}  // namespace
