// Causal attention over segments on the GPU; formulas beside the CPU's (src/cpu/attention.cpp). Forward is the running
// softmax of Milakov & Gimelshein (2018, arXiv:1805.02867) over blocks of keys, as in FlashAttention (Dao et al. 2022,
// arXiv:2205.14135), so scores exist only as tiles: 64 keys at a time, m the maximum so far, l and y the sums so far,
//
//   m' = max(m, max s_j);  p_j = exp(s_j − m');  l = l · exp(m − m') + Σ p_j;  y = y · exp(m − m') + Σ p_j v_j
//
// Bound by arithmetic: two products of rows × keys × d forward, seven backward (two of them computed twice). A block of
// 128 threads takes a tile of queries, which are (row, head of the group) pairs, so that keys and values are loaded once
// for the heads that share them; the keys, and then the values, of a step pass through one shared buffer. Thread (x, y) of
// 16 × 8 has the queries y, y + 8, … and of each the four scores 4x … 4x + 3, then the features 4x …, 4x + 64 …, of the sum.
// Backward does the same for dq; for dk and dv a block takes a tile of keys, and queries pass through the buffer, head by
// head in increasing rows: no atomics, and every run gives the same bits.
//
// A decoded token has one row and thousands of keys. Where there are too few tiles to fill a GPU, a row's parts (at most
// 32) go to blocks of their own, and a second kernel joins their sums. So that a row has the same bits, whether it is
// decoded alone or computed in a chunk or a prefill, all sums follow positions: keys come in 64s from position 0, and
// sums are cut into parts and joined at the same positions where one block computes them all.
#include "attention.cuh"

#include <vector>

#include "device.cuh"
#include "fit.cuh"
#include "ops.cuh"
#include "reduce.cuh"
#include "vec.cuh"

namespace {

using namespace attention;
using Four = Vec<float, 4>;

constexpr int kAcross = 16, kDown = 8, kThreads = kAcross * kDown;
constexpr int kStep = 4 * kAcross;  // keys, or in the backward of keys queries, that pass through the buffer at a time
// Tiles for few rows, and for many; with wide heads shared memory holds fewer.
constexpr int kFew = kDown;
constexpr int forward_rows(int features) { return features > 128 ? 2 * kDown : 4 * kDown; }
constexpr int backward_rows(int features) { return features > 128 ? kDown : 4 * kDown; }
// So many queries in tiles fill a GPU without parts.
constexpr int64_t kEnoughQueries = 4096;

__device__ int across() { return int(threadIdx.x) % kAcross; }
__device__ int down() { return int(threadIdx.x) / kAcross; }

// --- Tiles in shared memory

// Rows of up to `features` floats; the four behind spread the rows over the banks.
template <int rows, int features>
using Rows = Shared<Four>[rows][features / 4 + 1];

template <int M, int features>
struct ForwardTile {
  Rows<M, features> q;
  Rows<kStep, features> step;
  Rows<M, kStep> weights;
};
template <int M, int features>
struct BackwardTile {
  Rows<M, features> a, b;  // q and dy, or k and v
  Rows<kStep, features> step;
  Rows<M, kStep> weights;
};

// Four features from i on, zeros behind the last. A row's features are even in number, and where they are a multiple of
// four every row is aligned to four.
template <class T>
__device__ Four load_four(const T* row, int i, int head_dim) {
  Four x = {};
  if (head_dim % 4 == 0) {
    auto piece = load<4>(row + i);
    for (int v = 0; v < 4; ++v) x.element[v] = piece[v];
  } else {
    for (int h = 0; h < 4 && i + h < head_dim; h += 2) {
      auto piece = load<2>(row + i + h);
      for (int v = 0; v < 2; ++v) x.element[h + v] = piece[v];
    }
  }
  return x;
}

template <class T>
__device__ void store_four(T* row, int i, int head_dim, Four x) {
  if (head_dim % 4 == 0) {
    Vec<T, 4> piece;
    for (int v = 0; v < 4; ++v) piece.set(v, x[v]);
    store(row + i, piece);
  } else {
    for (int h = 0; h < 4 && i + h < head_dim; h += 2) {
      Vec<T, 2> piece;
      for (int v = 0; v < 2; ++v) piece.set(v, x[h + v]);
      store(row + i + h, piece);
    }
  }
}

// rows[r] = the features at source(r), which may be null: zeros.
template <int M, class T, class R, class Source>
__device__ void fill(R& rows, const Shape& shape, Source source) {
  for (int r = down(); r < M; r += kDown) {
    const T* from = source(r);
    for (int i = across(); i < shape.fours(); i += kAcross)
      rows[r][i] = from ? load_four(from, 4 * i, shape.head_dim) : Four{};
  }
}

// The same for the buffer's first `count` entries, and zeros up to a multiple of four. Entry 4x + e lies in row 16e + x, so
// that the threads of a row, which have four entries each, read neighbouring rows.
template <class T, class R, class Source>
__device__ void fill_step(R& rows, int count, const Shape& shape, Source source) {
  for (int e = 0; e < 4; ++e)
    for (int x = down(); 4 * x < count; x += kDown) {
      const T* from = 4 * x + e < count ? source(4 * x + e) : nullptr;
      for (int i = across(); i < shape.fours(); i += kAcross)
        rows[kAcross * e + x][i] = from ? load_four(from, 4 * i, shape.head_dim) : Four{};
    }
}

// dot[r][e] = a chain over the features: row y + 8r of the tile · entry 4x + e of the buffer
template <int R, class Tile, class Step>
__device__ void multiply(float (&dot)[R][4], const Tile& tile, const Step& step, int count, int fours) {
  for (auto& row : dot)
    for (float& x : row) x = 0;
  if (4 * across() >= count) return;
  for (int i = 0; i < fours; ++i) {
    Four b[4];
    for (int e = 0; e < 4; ++e) b[e] = step[kAcross * e + across()][i];
    for (int r = 0; r < R; ++r) {
      Four a = tile[down() + kDown * r][i];
      for (int e = 0; e < 4; ++e)
        for (int v = 0; v < 4; ++v) dot[r][e] = fmaf(a[v], b[e][v], dot[r][e]);
    }
  }
}

// sum[r] continues a chain over the buffer's first `count` entries: weights[y + 8r][entry] · its features 4x …, 4x + 64 …
template <int R, int C, class Weights, class Step>
__device__ void accumulate(Four (&sum)[R][C], const Weights& weights, const Step& step, int count, int fours) {
  if (across() >= fours) return;
  for (int x = 0; 4 * x < count; ++x) {
    Four w[R];
    for (int r = 0; r < R; ++r) w[r] = weights[down() + kDown * r][x];
    for (int e = 0; e < 4; ++e)
      for (int c = 0; c < C; ++c) {
        int i = across() + kAcross * c;
        if (i >= fours) continue;
        Four b = step[kAcross * e + x][i];
        for (int r = 0; r < R; ++r)
          for (int v = 0; v < 4; ++v) sum[r][c].element[v] = fmaf(w[r][e], b[v], sum[r][c][v]);
      }
  }
}

// --- Work

// Some queries of a segment, or in the backward of keys some keys: from which on.
struct Work {
  int segment, first;
};

// The queries of a block, i = 0, 1, …: all heads of a group at one position, then those at the next.
struct Queries {
  Segment segment;
  int first, group, kv_head, heads;
  __device__ Queries(const Work& work, const Segment* segments, int kv_head, const Shape& shape)
      : segment(segments[work.segment]),
        first(work.first),
        group(shape.group()),
        kv_head(kv_head),
        heads(shape.heads) {}
  __device__ bool has(int i) const { return first + i < segment.rows * group; }
  __device__ int position(int i) const { return segment.position + (first + i) / group; }
  __device__ int last_position(int tile) const { return position(min(tile, segment.rows * group - first) - 1); }
  // row · heads + head
  __device__ int64_t index(int i) const {
    return (int64_t(segment.row) + (first + i) / group) * heads + kv_head * group + (first + i) % group;
  }
};

// The features of position j's key or value.
template <class T>
__device__ T* kv_at(T* kv, const Segment& s, int j, int kv_head, const Shape& shape) {
  int64_t row = j < s.position ? int64_t(s.prefix_kv) + j : int64_t(s.own_kv) + (j - s.position);
  return kv + head_at(row, shape.kv_heads, kv_head, shape.head_dim);
}

// Tiles of so many queries, of all segments that `takes` says; the last, which have the most keys, first.
template <class Takes>
std::vector<Work> tiles_of(const Segment* segments, int segment_count, int queries, const Shape& shape, Takes takes) {
  std::vector<Work> tiles;
  for (int s = 0; s < segment_count; ++s) {
    int all = segments[s].rows * shape.group();
    if (takes(all))
      for (int tile = int(ceil_div(all, queries)); tile-- > 0;) tiles.push_back({s, tile * queries});
  }
  return tiles;
}

// Calls f with the least compiled number of features that holds head_dim.
template <class F>
void with_features(int head_dim, F f) {
  check(head_dim > 0 && head_dim % 2 == 0 && head_dim <= 256, "attention with heads of %d", head_dim);
  if (head_dim <= 64)
    f(Count<64>());
  else if (head_dim <= 128)
    f(Count<128>());
  else
    f(Count<256>());
}

template <int features>
constexpr int kColumns = features / kStep;  // fours of a sum that a thread has

// --- Forward

// A softmax so far: the maximum, and the sum of exp(s − max).
struct Running {
  float max = -INFINITY, sum = 0;
};

// What is subtracted from scores: their maximum, or where there is none yet, anything that is a number.
__device__ float base(float max) { return max == -INFINITY ? 0 : max; }
__device__ float greater(float a, float b) { return a > b ? a : b; }

// Over the 16 threads of a row.
template <class F>
__device__ float reduce_across(float x, F combine) {
  for (int offset = kAcross / 2; offset > 0; offset /= 2) x = combine(x, __shfl_xor_sync(kAllLanes, x, offset));
  return x;
}

// Continues with the scores of a step, four of them this thread's, and makes weights of them. Returns what multiplies the
// sums so far.
__device__ float take_scores(Running& so_far, Four& scores) {
  float most = -INFINITY;
  for (float s : scores.element) most = greater(most, s);
  float max = greater(so_far.max, reduce_across(most, greater)), old = expf(so_far.max - base(max)), sum = 0;
  for (float& s : scores.element) s = expf(s - base(max)), sum += s;
  sum = reduce_across(sum, [](float a, float b) { return a + b; });
  so_far = {max, fmaf(so_far.sum, old, sum)};
  return old;
}

// Joins a part to those before it; their sums of values are to be joined with the same factors. All begin with +0, so a
// part's −0 becomes +0, as it may have before by the weights 0 of keys that only other rows of the tile see.
struct Factors {
  float old, part;
  __device__ Four join(Four all, Four x) const {
    for (int v = 0; v < 4; ++v) all.element[v] = fmaf(x[v], part, all[v] * old);
    return all;
  }
};
__device__ Factors join(Running& all, Running part) {
  float max = greater(all.max, part.max);
  Factors f = {expf(all.max - base(max)), expf(part.max - base(max))};
  all = {max, fmaf(part.sum, f.part, all.sum * f.old)};
  return f;
}

template <class T>
struct Forward {
  T* y;
  float *row_max, *row_scale;
  const T *q, *k, *v;
  const Segment* segments;
  const Work* tiles;
  Shape shape;
  // Sums of parts that blocks of their own compute, [block][query of its tile][part]; null: each block computes all.
  Running* part_running;
  Four* part_sums;  // [fours]

  __device__ void put_statistics(int64_t index, Running all) const {
    row_max[index] = all.max, row_scale[index] = 1 / all.sum;
  }
  __device__ void put(int64_t index, int i, Four sum, Running all) const {
    for (float& x : sum.element) x = x * (1 / all.sum);
    store_four(y + index * shape.head_dim, 4 * i, shape.head_dim, sum);
  }
};

// A block a tile and key/value head; with parts, x counts these and y the parts.
template <class T, int features, int M>
__global__ void __launch_bounds__(kThreads) forward_kernel(Forward<T> a) {
  constexpr int R = M / kDown, C = kColumns<features>;
  auto& tile = shared<ForwardTile<M, features>>();
  Shape shape = a.shape;
  int kv_head = int(blockIdx.x) % shape.kv_heads, fours = shape.fours();
  Queries queries(a.tiles[blockIdx.x / shape.kv_heads], a.segments, kv_head, shape);
  auto keys_of = [&](int t) { return a.part_sums ? shape.part(t, int(blockIdx.y)) : Keys{shape.first(t), t + 1}; };
  Keys all = {keys_of(queries.position(0)).begin, keys_of(queries.last_position(M)).end};
  if (all.begin >= all.end) return;

  float scale = 1 / sqrtf(float(shape.head_dim));
  Keys keys[R];
  int part_keys[R];
  Running part[R], total[R];
  Four part_sum[R][C] = {}, total_sum[R][C] = {};
  for (int r = 0; r < R; ++r) {
    int t = queries.position(down() + kDown * r);
    keys[r] = keys_of(t), part_keys[r] = shape.part_keys(t);
  }
  auto join_part = [&](int r) {
    Factors f = join(total[r], part[r]);
    part[r] = {};
    for (int c = 0; c < C; ++c) total_sum[r][c] = f.join(total_sum[r][c], part_sum[r][c]), part_sum[r][c] = {};
  };
  auto row_of = [&](const T* kv, int j) {
    return j < all.end ? kv_at(kv, queries.segment, j, kv_head, shape) : nullptr;
  };

  fill<M, T>(tile.q, shape, [&](int i) { return queries.has(i) ? a.q + queries.index(i) * shape.head_dim : nullptr; });
  for (int start = all.begin / kStep * kStep; start < all.end; start += kStep) {
    int count = min(kStep, all.end - start);
    fill_step<T>(tile.step, count, shape, [&](int j) { return row_of(a.k, start + j); });
    __syncthreads();
    float dot[R][4];
    multiply(dot, tile.q, tile.step, count, fours);
    for (int r = 0; r < R; ++r) {
      if (start % part_keys[r] == 0) join_part(r);
      Four scores;
      for (int e = 0; e < 4; ++e) {
        int j = start + 4 * across() + e;
        scores.element[e] = j >= keys[r].begin && j < keys[r].end ? dot[r][e] * scale : -INFINITY;
      }
      float old = take_scores(part[r], scores);
      for (Four& sum : part_sum[r])
        for (float& x : sum.element) x *= old;
      tile.weights[down() + kDown * r][across()] = scores;
    }
    __syncthreads();
    fill_step<T>(tile.step, count, shape, [&](int j) { return row_of(a.v, start + j); });
    __syncthreads();
    accumulate(part_sum, tile.weights, tile.step, count, fours);
    __syncthreads();
  }
  for (int r = 0; r < R; ++r) {
    int i = down() + kDown * r;
    if (!queries.has(i)) continue;
    join_part(r);
    int64_t index = queries.index(i), at = (int64_t(blockIdx.x) * M + i) * kParts + blockIdx.y;
    if (across() == 0 && a.part_sums) a.part_running[at] = total[r];
    if (across() == 0 && !a.part_sums) a.put_statistics(index, total[r]);
    for (int c = 0; c < C; ++c) {
      int f = across() + kAcross * c;
      if (f >= fours) continue;
      if (a.part_sums)
        a.part_sums[at * fours + f] = total_sum[r][c];
      else
        a.put(index, f, total_sum[r][c], total[r]);
    }
  }
}

// A warp a query joins its parts, in order.
template <class T>
__global__ void join_parts_kernel(Forward<T> a, int tile, int64_t count) {
  int lane = threadIdx.x % kWarp;
  int64_t query = int64_t(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp, block = query / tile;
  if (query >= count) return;
  Queries queries(a.tiles[block / a.shape.kv_heads], a.segments, int(block % a.shape.kv_heads), a.shape);
  int i = int(query % tile), fours = a.shape.fours();
  if (!queries.has(i)) return;
  int parts = a.shape.parts(queries.position(i));
  for (int f = lane; f < fours; f += kWarp) {
    Running all;
    Four sum = {};
    for (int64_t at = query * kParts; at < query * kParts + parts; ++at)
      sum = join(all, a.part_running[at]).join(sum, a.part_sums[at * fours + f]);
    a.put(queries.index(i), f, sum, all);
    if (f == 0) a.put_statistics(queries.index(i), all);
  }
}

template <class T, int features, int M>
void run_forward(Forward<T> a, const std::vector<Work>& tiles) {
  if (tiles.empty()) return;
  a.tiles = stage(tiles.data(), int64_t(tiles.size()));
  int64_t blocks = int64_t(tiles.size()) * a.shape.kv_heads, queries = blocks * M;
  bool in_parts = queries <= kEnoughQueries;
  if (in_parts) {
    int64_t n = queries * kParts;  // a multiple of what keeps the sums aligned
    a.part_running = reinterpret_cast<Running*>(scratch<float>(n * (2 + 4 * a.shape.fours())));
    a.part_sums = reinterpret_cast<Four*>(a.part_running + n);
  }
  launch(forward_kernel<T, features, M>, dim3(blocks_for(blocks, 1), in_parts ? kParts : 1), kThreads,
         sizeof(ForwardTile<M, features>), stream(), a);
  if (in_parts)
    launch(join_parts_kernel<T>, blocks_for(queries, kThreads / kWarp), kThreads, 0, stream(), a, M, queries);
}

template <class T>
void attention_forward(T* y, float* row_max, float* row_scale, const T* q, const T* k, const T* v,
                       const Segment* segments, int segment_count, int heads, int kv_heads, int head_dim, int window) {
  if (segment_count == 0) return;
  Shape shape = {heads, kv_heads, head_dim, window};
  Forward<T> a = {y, row_max, row_scale, q, k, v, stage(segments, segment_count), nullptr, shape, nullptr, nullptr};
  with_features(head_dim, [&](auto features) {
    constexpr int many = forward_rows(features);
    run_forward<T, features, many>(a, tiles_of(segments, segment_count, many, shape, [](int n) { return n > kFew; }));
    run_forward<T, features, kFew>(a, tiles_of(segments, segment_count, kFew, shape, [](int n) { return n <= kFew; }));
  });
}

// --- Backward

template <class T>
struct Backward {
  T *dq, *dk, *dv;
  const T *dy, *q, *k, *v;
  const float *row_max, *row_scale, *delta;  // by row · heads + head
  const Segment* segments;
  const Work* tiles;
  Shape shape;
};

// What the query of this index gives to the key j that it sees, or not: p, and ds.
struct Query {
  float max, scale, delta;
  Keys keys;
  template <class T>
  __device__ Query(const Backward<T>& a, int64_t index, int t)
      : max(a.row_max[index]), scale(a.row_scale[index]), delta(a.delta[index]), keys{a.shape.first(t), t + 1} {}
  __device__ Query() : max(0), scale(0), delta(0), keys{0, 0} {}  // sees nothing
  __device__ float p(int j, float dot, float root) const {
    return j >= keys.begin && j < keys.end ? expf(dot * root - max) * scale : 0;
  }
  __device__ float ds(float p, float dp, float root) const { return p == 0 ? 0 : p * (dp - delta) * root; }
};

// delta = dy · y, a warp a row and head
template <class T>
__global__ void delta_kernel(float* delta, const T* dy, const T* y, int64_t count, int head_dim) {
  int64_t index = int64_t(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (index >= count) return;
  dy += index * head_dim, y += index * head_dim;
  float sum = 0;
  each_piece(dy, head_dim, int(threadIdx.x) % kWarp, kWarp, [&](int64_t i, auto n) {
    auto dys = load<n>(dy + i), ys = load<n>(y + i);
    for (int v = 0; v < n; ++v) sum = fmaf(dys[v], ys[v], sum);
  });
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) delta[index] = sum;
}

// A block a tile of queries and key/value head.
template <class T, int features, int M>
__global__ void __launch_bounds__(kThreads) dq_kernel(Backward<T> a) {
  constexpr int R = M / kDown, C = kColumns<features>;
  auto& tile = shared<BackwardTile<M, features>>();
  Shape shape = a.shape;
  int kv_head = int(blockIdx.x) % shape.kv_heads, fours = shape.fours(), d = shape.head_dim;
  float root = 1 / sqrtf(float(d));
  Queries queries(a.tiles[blockIdx.x / shape.kv_heads], a.segments, kv_head, shape);
  Keys all = {shape.first(queries.position(0)), queries.last_position(M) + 1};
  Query query[R];
  for (int r = 0; r < R; ++r) {
    int i = down() + kDown * r;
    if (queries.has(i)) query[r] = Query(a, queries.index(i), queries.position(i));
  }
  Four dq[R][C] = {};
  auto row_of = [&](const T* kv, int j) {
    return j < all.end ? kv_at(kv, queries.segment, j, kv_head, shape) : nullptr;
  };

  fill<M, T>(tile.a, shape, [&](int i) { return queries.has(i) ? a.q + queries.index(i) * d : nullptr; });
  fill<M, T>(tile.b, shape, [&](int i) { return queries.has(i) ? a.dy + queries.index(i) * d : nullptr; });
  for (int start = all.begin; start < all.end; start += kStep) {
    int count = min(kStep, all.end - start);
    float dot[R][4], dp[R][4];
    fill_step<T>(tile.step, count, shape, [&](int j) { return row_of(a.v, start + j); });
    __syncthreads();
    multiply(dp, tile.b, tile.step, count, fours);
    __syncthreads();
    fill_step<T>(tile.step, count, shape, [&](int j) { return row_of(a.k, start + j); });
    __syncthreads();
    multiply(dot, tile.a, tile.step, count, fours);
    for (int r = 0; r < R; ++r) {
      Four ds;
      for (int e = 0; e < 4; ++e)
        ds.element[e] = query[r].ds(query[r].p(start + 4 * across() + e, dot[r][e], root), dp[r][e], root);
      tile.weights[down() + kDown * r][across()] = ds;
    }
    __syncthreads();
    accumulate(dq, tile.weights, tile.step, count, fours);
    __syncthreads();
  }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) {
      int i = down() + kDown * r, f = across() + kAcross * c;
      if (queries.has(i) && f < fours) store_four(a.dq + queries.index(i) * d, 4 * f, d, dq[r][c]);
    }
}

// A block a tile of keys and key/value head.
template <class T, int features, int M>
__global__ void __launch_bounds__(kThreads) dkv_kernel(Backward<T> a) {
  constexpr int R = M / kDown, C = kColumns<features>;
  auto& tile = shared<BackwardTile<M, features>>();
  Shape shape = a.shape;
  int kv_head = int(blockIdx.x) % shape.kv_heads, fours = shape.fours(), d = shape.head_dim;
  float root = 1 / sqrtf(float(d));
  Work work = a.tiles[blockIdx.x / shape.kv_heads];
  Segment s = a.segments[work.segment];
  Keys keys = {work.first, min(work.first + M, s.position + s.rows)};
  // The rows that see some of them.
  int first = max(keys.begin - s.position, 0), end = s.rows;
  if (shape.window > 0) end = int(min(int64_t(end), int64_t(keys.end) + shape.window - 1 - s.position));
  Four dk[R][C] = {}, dv[R][C] = {};

  fill<M, T>(tile.a, shape, [&](int i) {
    return keys.begin + i < keys.end ? kv_at(a.k, s, keys.begin + i, kv_head, shape) : nullptr;
  });
  fill<M, T>(tile.b, shape, [&](int i) {
    return keys.begin + i < keys.end ? kv_at(a.v, s, keys.begin + i, kv_head, shape) : nullptr;
  });
  for (int head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); ++head)
    for (int start = first; start < end; start += kStep) {
      auto row_of = [&](const T* x, int i) { return x + head_at(int64_t(s.row) + start + i, shape.heads, head, d); };
      int count = min(kStep, end - start);
      float dot[R][4], dp[R][4];
      fill_step<T>(tile.step, count, shape, [&](int i) { return row_of(a.dy, i); });
      __syncthreads();
      multiply(dp, tile.b, tile.step, count, fours);
      __syncthreads();
      fill_step<T>(tile.step, count, shape, [&](int i) { return row_of(a.q, i); });
      __syncthreads();
      multiply(dot, tile.a, tile.step, count, fours);
      Four p[R];
      for (int e = 0; e < 4; ++e) {
        int row = start + 4 * across() + e;
        Query query;
        if (row < end) query = Query(a, (int64_t(s.row) + row) * shape.heads + head, s.position + row);
        for (int r = 0; r < R; ++r) {
          p[r].element[e] = query.p(keys.begin + down() + kDown * r, dot[r][e], root);
          dp[r][e] = query.ds(p[r][e], dp[r][e], root);
        }
      }
      for (int r = 0; r < R; ++r)
        tile.weights[down() + kDown * r][across()] = Four{dp[r][0], dp[r][1], dp[r][2], dp[r][3]};
      __syncthreads();
      accumulate(dk, tile.weights, tile.step, count, fours);
      __syncthreads();
      fill_step<T>(tile.step, count, shape, [&](int i) { return row_of(a.dy, i); });
      for (int r = 0; r < R; ++r) tile.weights[down() + kDown * r][across()] = p[r];
      __syncthreads();
      accumulate(dv, tile.weights, tile.step, count, fours);
      __syncthreads();
    }
  for (int r = 0; r < R; ++r) {
    int j = keys.begin + down() + kDown * r;
    if (j >= keys.end) continue;
    auto add = [&](T* to, int f, Four x) {
      Four sum = load_four(to, 4 * f, d);
      for (int v = 0; v < 4; ++v) sum.element[v] += x[v];
      store_four(to, 4 * f, d, sum);
    };
    for (int c = 0; c < C; ++c) {
      int f = across() + kAcross * c;
      if (f >= fours) continue;
      add(kv_at(a.dk, s, j, kv_head, shape), f, dk[r][c]);
      add(kv_at(a.dv, s, j, kv_head, shape), f, dv[r][c]);
    }
  }
}

// Tiles of so many keys, of all that some row sees.
std::vector<Work> key_tiles_of(const Segment* segments, int segment_count, int keys, const Shape& shape) {
  std::vector<Work> tiles;
  for (int s = 0; s < segment_count; ++s)
    if (segments[s].rows > 0)
      for (int j = shape.first(segments[s].position); j < segments[s].position + segments[s].rows; j += keys)
        tiles.push_back({s, j});
  return tiles;
}

template <class T>
void attention_backward(T* dq, T* dk, T* dv, const T* dy, const T* y, const T* q, const T* k, const T* v,
                        const float* row_max, const float* row_scale, const Segment* segments, int segment_count,
                        int heads, int kv_heads, int head_dim, int window) {
  int64_t rows = 0;
  for (int s = 0; s < segment_count; ++s)
    if (segments[s].rows > 0) rows = std::max(rows, int64_t(segments[s].row) + segments[s].rows);
  if (rows == 0) return;
  Shape shape = {heads, kv_heads, head_dim, window};
  float* delta = scratch<float>(rows * heads);
  launch(delta_kernel<T>, blocks_for(rows * heads, kThreads / kWarp), kThreads, 0, stream(), delta, dy, y, rows * heads,
         head_dim);
  Backward<T> a = {dq, dk, dv, dy, q, k, v, row_max, row_scale, delta, stage(segments, segment_count), nullptr, shape};
  with_features(head_dim, [&](auto features) {
    constexpr int M = backward_rows(features);
    auto run = [&](auto kernel, const std::vector<Work>& tiles) {
      a.tiles = stage(tiles.data(), int64_t(tiles.size()));
      launch(kernel, blocks_for(int64_t(tiles.size()) * kv_heads, 1), kThreads, sizeof(BackwardTile<M, features>),
             stream(), a);
    };
    run(dq_kernel<T, features, M>, tiles_of(segments, segment_count, M, shape, [](int n) { return n > 0; }));
    run(dkv_kernel<T, features, M>, key_tiles_of(segments, segment_count, M, shape));
  });
}

}  // namespace

template <class T>
void add_attention(Kernels& table) {
  table.attention_forward = Fit<attention_forward<T>>();
  table.attention_backward = Fit<attention_backward<T>>();
}
template void add_attention<float>(Kernels&);
template void add_attention<bf16>(Kernels&);
