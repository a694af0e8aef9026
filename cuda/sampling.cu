// The next token of each row of logits on the GPU, as sample_token (src/sampler.cpp) draws it.
//
// The CPU sorts the row, best first and equals by index, keeps the first of it, and walks until the weights exp((x − best) /
// temperature) have passed a random share of their sum. Here nothing is sorted: a token's place is a number, its key, and
// each of the three questions (which are the top_k, which reach top_p, which is drawn) asks for the shortest prefix of keys
// that has enough, whose end is found bit by bit. A block a row; each bit is a sweep over the row, which stays in cache, and
// they end when one token is left: some twenty sweeps a question. Exponentials are in double, but are only taken of what is
// still in question. All sums have one order, so every run draws the same.
#include "best.cuh"
#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "random.h"
#include "vec.cuh"

namespace {

struct Tile {
  BestScratch best;
  Shared<double> sum[kWarp], total[kWarp];
  Shared<int> count[kWarp];
  Shared<uint64_t> key[kWarp];
};

// A number that decreases where the logit grows, in as many bits as T has; of both zeros the same.
template <class T>
__device__ uint64_t worse(float x) {
  unsigned bits = __float_as_uint(x + 0.0f), grows = bits >> 31 ? ~bits : bits | 0x80000000u;
  return ~grows >> (32 - 8 * sizeof(T));
}

template <class T>
struct Row {
  const T* logits;
  int vocab;
  int index_bits;
  bool sorted;  // keys go from the best to the worst, equals by index; else by index alone
  Best best;
  double temperature;

  __device__ int bits() const { return index_bits + (sorted ? 8 * int(sizeof(T)) : 0); }
  __device__ uint64_t key(float x, int i) const { return (sorted ? worse<T>(x) << index_bits : 0) | uint64_t(i); }
  __device__ int index(uint64_t key) const { return int(key & ((uint64_t(1) << index_bits) - 1)); }
  __device__ double weight(float x) const { return exp((double(x) - double(best.value)) / temperature); }

  // f(logit, index), each of them by one thread
  template <class F>
  __device__ void each(F f) const {
    each_piece(logits, vocab, int(threadIdx.x), int(blockDim.x), [&](int64_t i, auto n) {
      auto piece = load<n>(logits + i);
      for (int v = 0; v < n; ++v) f(piece[v], int(i) + v);
    });
  }
};

// Of the keys up to `last`, the end of the shortest prefix whose sum of measures is enough, or `last`.
template <class T, class Measure, class Enough>
__device__ uint64_t enough_of(const Row<T>& row, uint64_t last, Tile& tile, Measure measure, Enough enough) {
  uint64_t first = 0;  // in question are the keys [first, first + 2^bits); those before have not been enough
  double before = 0;
  int bits = row.bits();
  for (int tokens = row.vocab; bits > 0 && tokens > 1;) {
    uint64_t half = uint64_t(1) << --bits, end = min(first + half, last + 1);
    double sum = 0;
    int count = 0;
    row.each([&](float x, int i) {
      uint64_t key = row.key(x, i);
      if (key >= first && key < end) sum += measure(x), ++count;
    });
    sum = block_sum(sum, tile.sum);
    count = block_sum(count, tile.count);
    if (enough(before + sum))
      tokens = count;
    else
      tokens -= count, before += sum, first += half;
  }
  return min(last, first + (uint64_t(1) << bits) - 1);
}

template <class T>
__global__ void sample_kernel(int* token, const T* logits, int vocab, int index_bits, Sampling s, const uint64_t* key) {
  auto& tile = shared<Tile>();
  int64_t at = blockIdx.x;
  bool some = (s.top_k > 0 && s.top_k < vocab) || s.top_p < 1;
  Row<T> row = {logits + row_at(at, vocab), vocab, index_bits, some, {}, double(s.temperature)};
  Best mine;
  row.each([&](float x, int i) { mine.see(x, i); });
  row.best = block_best(mine, tile.best);
  float first = to_float(row.logits[0]);
  if (first != first) row.best = {first, 0};  // nothing is greater than a NaN with which one begins
  if (s.temperature == 0 || s.top_k == 1 || vocab == 1 || !std::isfinite(row.best.value)) {
    if (threadIdx.x == 0) token[at] = row.best.index;
    return;
  }

  uint64_t last = ~uint64_t(0) >> 1;  // of the keys that are kept
  auto weight = [&](float x) { return row.weight(x); };
  auto sum_of_kept = [&] {
    double sum = 0;
    row.each([&](float x, int i) { sum += row.key(x, i) <= last ? row.weight(x) : 0; });
    return block_sum(sum, tile.total);
  };
  if (s.top_k > 0 && s.top_k < vocab)
    last = enough_of(
        row, last, tile, [](float) { return 1.0; }, [&](double count) { return count >= s.top_k; });
  double total = sum_of_kept();
  if (s.top_p < 1) {
    double needed = double(s.top_p) * total;
    last = enough_of(row, last, tile, weight, [&](double sum) { return sum >= needed; });
    last = max(last, row.key(row.best.value, row.best.index));
    total = sum_of_kept();
  }
  double drawn = random_uniform(key[at], 0) * total;
  last = enough_of(row, last, tile, weight, [&](double sum) { return sum > drawn; });
  uint64_t greatest = 0;
  row.each([&](float x, int i) {
    if (row.key(x, i) <= last) greatest = max(greatest, row.key(x, i));
  });
  greatest = block_max(greatest, tile.key);
  if (threadIdx.x == 0) token[at] = row.index(greatest);
}

template <class T>
void sample(int* token, const T* logits, int rows, int vocab, const Sampling& sampling, const uint64_t* key) {
  if (rows == 0) return;
  int index_bits = 0;
  while (int64_t(1) << index_bits < vocab) ++index_bits;
  int threads = int(min(int64_t(kMostThreads), ceil_div(ceil_div(vocab, 16), kWarp) * kWarp));
  int* drawn = scratch<int>(rows);
  launch(sample_kernel<T>, blocks_for(rows, 1), threads, sizeof(Tile), stream(), drawn, logits, vocab, index_bits,
         sampling, stage(key, rows));
  CUDA_CHECK(cudaMemcpyAsync(token, drawn, size_t(rows) * sizeof(int), cudaMemcpyDeviceToHost, stream()));
  wait();
}

}  // namespace

template <class T>
void add_sampling(Kernels& table) {
  table.sample = Fit<sample<T>>();
}
template void add_sampling<float>(Kernels&);
template void add_sampling<bf16>(Kernels&);
