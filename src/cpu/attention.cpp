// Causal attention over segments, with grouped heads and an optional sliding window.
//
//   forward    s_j = (q·k_j) / sqrt(d);  p_j = exp(s_j − max);  y = Σ_j p_j v_j / Σ_j p_j
//   backward   p_j again, from the saved maximum and 1 / Σ;  δ = dy·y;  ds_j = p_j (dy·v_j − δ) / sqrt(d)
//              dq = Σ_j ds_j k_j;   dk_j += Σ_t ds_j q_t;   dv_j += Σ_t p_j dy_t
//
// Bound by arithmetic: two products of rows × keys × d forward, five backward. A task is one segment and one key/value
// head: its keys and values are packed once and serve every query row and every head of the group. Query rows go in
// blocks whose scores (a block × the keys) stay in the second-level cache, and in strips of kTileRows within a block. All
// sums are chains that visit exactly the visible keys, in order: the keys that a whole strip sees go through the tile
// kernel, the ragged ends row by row.
#include "elementary.h"
#include "tables.h"
#include "tile.h"
#include "workspace.h"

namespace ISA {

namespace {

struct Shape {
  int heads, kv_heads, head_dim, window;
  int group() const { return heads / kv_heads; }
  int wide() const { return round_up(head_dim, kWidth); }  // a packed row of head_dim floats
  int first(int t) const { return window > 0 && t - window + 1 > 0 ? t - window + 1 : 0; }
  float scale() const { return 1.0f / __builtin_sqrtf(float(head_dim)); }
};

// The keys that one segment sees: positions [base, end), base a multiple of 32 so that position j is in lane j % 16.
struct Keys {
  int base, end;
  int count() const { return end - base; }
  // Floats in a row of scores. An odd number of cache lines, so that the rows of a strip don't compete for the same sets.
  int padded() const { return round_up(count(), 32) + 16; }
};

Keys keys_of(const Segment& s, const Shape& shape) { return {shape.first(s.position) / 32 * 32, s.position + s.rows}; }

// Copies the head's rows of all keys, [key][wide], zeros behind head_dim.
void collect(float* out, const float* in, int kv_head, const Segment& s, Keys keys, const Shape& shape) {
  size_t row = size_t(shape.kv_heads) * shape.head_dim;
  for (int j = keys.base; j < keys.end; ++j)
    pack_rows(out + size_t(j - keys.base) * shape.wide(), in + s.kv_row(j) * row + kv_head * shape.head_dim, row, 1,
              shape.head_dim, shape.wide());
}

// One head's keys or values, from keys.base on.
struct KeyRows {
  const float* p;
  size_t step;
};

// Where they lie, for the few query rows of a decoded token, which read each of them once; else collected into `space`,
// which is null where that is not needed.
bool serve_in_place(const Segment& s, const Shape& shape) {
  bool in_one_piece = s.position == 0 || s.own_kv == s.prefix_kv + s.position;
  return in_one_piece && shape.head_dim % kWidth == 0 && s.rows * shape.group() < kTileRows;
}
KeyRows key_rows_of(const float* in, float* space, int kv_head, const Segment& s, Keys keys, const Shape& shape) {
  size_t row = size_t(shape.kv_heads) * shape.head_dim;
  if (!space) return {in + s.kv_row(keys.base) * row + kv_head * shape.head_dim, row};
  collect(space, in, kv_head, s, keys, shape);
  return {space, size_t(shape.wide())};
}

// And back.
void return_rows(float* out, const float* in, int kv_head, const Segment& s, Keys keys, const Shape& shape) {
  size_t row = size_t(shape.kv_heads) * shape.head_dim;
  for (int j = keys.base; j < keys.end; ++j)
    std::memcpy(out + s.kv_row(j) * row + kv_head * shape.head_dim, in + size_t(j - keys.base) * shape.wide(),
                shape.head_dim * sizeof(float));
}

// Strips of kTileColumns keys side by side, for products over head_dim.
void transpose(float* out, KeyRows rows, Keys keys, const Shape& shape) {
  for (int j = 0; j < keys.count(); j += kTileColumns) {
    int columns = keys.count() - j < kTileColumns ? keys.count() - j : kTileColumns;
    pack_transposed(out + size_t(j) * shape.head_dim, rows.p + size_t(j) * rows.step, rows.step, shape.head_dim,
                    columns, kTileColumns);
  }
}

// Query rows at positions [t0, t1], all of one head; their score matrices are rows × keys.padded().
struct Rows {
  int t0, t1, row;  // row: the batch row of t0
  int rows() const { return t1 - t0 + 1; }
};

// Calls f for each part of so many rows.
template <class F>
void each_part_of(Rows all, int rows, F f) {
  for (int t = all.t0; t <= all.t1; t += rows)
    f(Rows{t, t + rows <= all.t1 ? t + rows - 1 : all.t1, all.row + t - all.t0});
}

Rows rows_of(const Segment& s) { return {s.position, s.position + s.rows - 1, s.row}; }

// Rows of a block: as many as leave `matrices` of their scores in half of a second-level cache of a megabyte.
int block_rows(Keys keys, int matrices) {
  int rows = (512 << 10) / (matrices * keys.padded() * int(sizeof(float)));
  return rows < kTileRows ? kTileRows : rows > 4 * kTileRows ? 4 * kTileRows : rows / kTileRows * kTileRows;
}

// out[r][j] = a's row r · packed key j, for all keys that some row of the strip sees.
void score(float* out, Left a, const float* transposed, Rows strip, Keys keys, const Shape& shape) {
  int begin = (shape.first(strip.t0) - keys.base) / kTileColumns * kTileColumns;
  for (int j = begin; j <= strip.t1 - keys.base; j += kTileColumns)
    multiply_strip(out + j, keys.padded(), a, Strip{transposed + size_t(j) * shape.head_dim, kTileColumns},
                   strip.rows(), shape.head_dim, kTileColumns, Chain::anew);
}

// Calls f(j, n, mask) for the pieces of 16 keys (j counted from keys.base) that hold a visible one; mask is 1 or 0 a
// lane.
template <class F>
void each_visible_piece(int t, Keys keys, const Shape& shape, F f) {
  int first = shape.first(t) - keys.base, last = t - keys.base;
  for (int j = first / kLanes * kLanes; j <= last; j += kLanes) f(j, first - j, last - j);
}

// Lanes [first, last] of x, `other` elsewhere.
Lanes only(Lanes x, int first, int last, float other) {
  if (first <= 0 && last >= kLanes - 1) return x;
  return each_part([&](int i) {
    Ints lane = lane_numbers() + i * kWidth;
    return ((lane >= first) & (lane <= last)) ? x.part[i] : splat_vector(other);
  });
}

// out[r] (rows × wide) continues the chain over the keys visible to row r of weights[r][j] · b[j], in increasing j.
void sum_over_keys(float* out, const float* weights, KeyRows b, Rows strip, Keys keys, const Shape& shape) {
  int wide = shape.wide(), padded = keys.padded();
  auto continue_rows = [&](int r, int rows, int from, int to) {  // keys [from, to)
    if (from >= to) return;
    multiply(out + r * wide, wide, {weights + size_t(r) * padded + from - keys.base, size_t(padded), 1},
             b.p + size_t(from - keys.base) * b.step, b.step, rows, to - from, wide, Chain::continued);
  };
  int begin = shape.first(strip.t1), end = strip.t0 + 1;  // the keys that every row sees
  if (begin >= end) {
    for (int r = 0; r < strip.rows(); ++r) continue_rows(r, 1, shape.first(strip.t0 + r), strip.t0 + r + 1);
    return;
  }
  for (int r = 0; r < strip.rows(); ++r) continue_rows(r, 1, shape.first(strip.t0 + r), begin);
  continue_rows(0, strip.rows(), begin, end);
  for (int r = 1; r < strip.rows(); ++r) continue_rows(r, 1, end, strip.t0 + r + 1);
}

// out[j] (keys × wide) continues the chain over the block's rows that see j of weights[r][j] · b[r], in increasing r;
// keys in groups of a tile: first the rows that see only some of the group, then those that see all, then the rest.
void sum_over_rows(float* out, const float* weights, const float* b, Rows block, Keys keys, const Shape& shape) {
  int wide = shape.wide(), padded = keys.padded();
  auto first_row = [&](int j) { return j > block.t0 ? j - block.t0 : 0; };
  auto end_row = [&](int j) {
    return shape.window > 0 && j + shape.window <= block.t1 ? j + shape.window - block.t0 : block.rows();
  };
  auto continue_keys = [&](int j, int count, int from, int to) {  // rows [from, to)
    if (from >= to) return;
    multiply(out + size_t(j - keys.base) * wide, wide,
             {weights + size_t(from) * padded + j - keys.base, 1, size_t(padded)}, b + size_t(from) * wide, wide, count,
             to - from, wide, Chain::continued);
  };
  for (int begin = shape.first(block.t0); begin <= block.t1; begin += kTileRows) {
    int last = begin + kTileRows - 1 < block.t1 ? begin + kTileRows - 1 : block.t1;
    int from = first_row(last), to = end_row(begin);
    if (from > to) from = to = end_row(last);  // no row sees all
    for (int j = begin; j <= last; ++j) continue_keys(j, 1, first_row(j), from < end_row(j) ? from : end_row(j));
    continue_keys(begin, last - begin + 1, from, to);
    for (int j = begin; j <= last; ++j) continue_keys(j, 1, to, end_row(j));
  }
}

// Takes consecutive pieces of one allocation.
struct Pieces {
  float* next;
  float* take(size_t floats) {
    float* p = next;
    next += (floats + 15) / 16 * 16;
    return p;
  }
};

void forward_task(float* y, float* row_max, float* row_scale, const float* q, const float* k, const float* v,
                  const Segment& s, int kv_head, const Shape& shape) {
  Keys keys = keys_of(s, shape);
  int d = shape.head_dim, wide = shape.wide(), padded = keys.padded();
  size_t packed = size_t(padded) * (wide > d ? wide : d);
  bool in_place = serve_in_place(s, shape);
  Pieces pieces{thread_workspace(1, 3 * packed + size_t(kTileRows) * (padded + wide) + 128)};
  float *transposed = pieces.take(packed), *key_space = nullptr, *value_space = nullptr;
  if (!in_place) key_space = pieces.take(packed), value_space = pieces.take(packed);
  float *scores = pieces.take(size_t(kTileRows) * padded), *sums = pieces.take(size_t(kTileRows) * wide);
  transpose(transposed, key_rows_of(k, key_space, kv_head, s, keys, shape), keys, shape);
  KeyRows values = key_rows_of(v, value_space, kv_head, s, keys, shape);
  Lanes scale = splat(shape.scale());

  for (int head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); ++head)
    each_part_of(rows_of(s), kTileRows, [&](Rows strip) {
      score(scores, {q + (size_t(strip.row) * shape.heads + head) * d, size_t(shape.heads) * d, 1}, transposed, strip,
            keys, shape);
      std::memset(sums, 0, size_t(kTileRows) * wide * sizeof(float));
      float reciprocal[kTileRows];
      for (int r = 0; r < strip.rows(); ++r) {
        float* p = scores + size_t(r) * padded;
        Lanes most = splat(-__builtin_inff()), total = {};
        each_visible_piece(strip.t0 + r, keys, shape, [&](int j, int first, int last) {
          Lanes x = load(p + j) * scale;
          store(p + j, x);
          most = max(most, only(x, first, last, -__builtin_inff()));
        });
        float m = greatest(most);
        each_visible_piece(strip.t0 + r, keys, shape, [&](int j, int first, int last) {
          Lanes e = exp(load(p + j) - splat(m));
          store(p + j, e);
          total = total + only(e, first, last, 0);
        });
        reciprocal[r] = 1.0f / sum(total);
        row_max[size_t(strip.row + r) * shape.heads + head] = m;
        row_scale[size_t(strip.row + r) * shape.heads + head] = reciprocal[r];
      }
      sum_over_keys(sums, scores, values, strip, keys, shape);
      for (int r = 0; r < strip.rows(); ++r) {
        float* out = y + (size_t(strip.row + r) * shape.heads + head) * d;
        each_piece(d, [&](int i, int n) { store(out + i, load(sums + r * wide + i, n) * splat(reciprocal[r]), n); });
      }
    });
}

void backward_task(float* dq, float* dk, float* dv, const float* dy, const float* y, const float* q, const float* k,
                   const float* v, const float* row_max, const float* row_scale, const Segment& s, int kv_head,
                   const Shape& shape) {
  Keys keys = keys_of(s, shape);
  int d = shape.head_dim, wide = shape.wide(), padded = keys.padded();
  size_t packed = size_t(padded) * (wide > d ? wide : d);
  int block_most = block_rows(keys, 2);
  Pieces pieces{
      thread_workspace(1, 6 * packed + size_t(block_most) * (2 * padded + 2 * wide) + size_t(kTileRows) * wide + 256)};
  float *key_space = pieces.take(packed), *value_space = pieces.take(packed);
  float *keys_t = pieces.take(packed), *values_t = pieces.take(packed);
  float *dkeys = pieces.take(packed), *dvalues = pieces.take(packed);
  float *p = pieces.take(size_t(block_most) * padded), *ds = pieces.take(size_t(block_most) * padded);
  float *q_rows = pieces.take(size_t(block_most) * wide), *dy_rows = pieces.take(size_t(block_most) * wide);
  float* sums = pieces.take(size_t(kTileRows) * wide);
  KeyRows key_rows = key_rows_of(k, key_space, kv_head, s, keys, shape);
  transpose(keys_t, key_rows, keys, shape);
  transpose(values_t, key_rows_of(v, value_space, kv_head, s, keys, shape), keys, shape);
  collect(dkeys, dk, kv_head, s, keys, shape);
  collect(dvalues, dv, kv_head, s, keys, shape);
  Lanes scale = splat(shape.scale());

  for (int head = kv_head * shape.group(); head < (kv_head + 1) * shape.group(); ++head)
    each_part_of(rows_of(s), block_most, [&](Rows block) {
      size_t row_step = size_t(shape.heads) * d, block_at = (size_t(block.row) * shape.heads + head) * d;
      pack_rows(q_rows, q + block_at, row_step, block.rows(), d, wide);
      pack_rows(dy_rows, dy + block_at, row_step, block.rows(), d, wide);
      each_part_of(block, kTileRows, [&](Rows strip) {
        int first = strip.t0 - block.t0;
        size_t at = block_at + first * row_step;
        float *strip_p = p + size_t(first) * padded, *strip_ds = ds + size_t(first) * padded;
        const float* strip_dy = dy_rows + size_t(first) * wide;
        score(strip_p, {q_rows + size_t(first) * wide, size_t(wide), 1}, keys_t, strip, keys, shape);
        score(strip_ds, {strip_dy, size_t(wide), 1}, values_t, strip, keys, shape);
        for (int r = 0; r < strip.rows(); ++r) {
          size_t statistic = size_t(strip.row + r) * shape.heads + head;
          Lanes dot = {}, m = splat(row_max[statistic]), reciprocal = splat(row_scale[statistic]);
          each_piece(d, [&](int i, int n) {
            dot = fma(load(strip_dy + r * wide + i, n), load(y + at + r * row_step + i, n), dot);
          });
          Lanes delta = splat(sum(dot));
          each_visible_piece(strip.t0 + r, keys, shape, [&](int j, int, int) {
            float *pj = strip_p + size_t(r) * padded + j, *dsj = strip_ds + size_t(r) * padded + j;
            Lanes weight = exp(load(pj) * scale - m) * reciprocal;
            store(pj, weight);
            store(dsj, weight * (load(dsj) - delta) * scale);
          });
        }
        std::memset(sums, 0, size_t(kTileRows) * wide * sizeof(float));
        sum_over_keys(sums, strip_ds, key_rows, strip, keys, shape);
        for (int r = 0; r < strip.rows(); ++r) std::memcpy(dq + at + r * row_step, sums + r * wide, d * sizeof(float));
      });
      sum_over_rows(dkeys, ds, q_rows, block, keys, shape);
      sum_over_rows(dvalues, p, dy_rows, block, keys, shape);
    });
  return_rows(dk, dkeys, kv_head, s, keys, shape);
  return_rows(dv, dvalues, kv_head, s, keys, shape);
}

// The work of all segments, in multiplications: whether the other threads are worth waking.
int64_t work(const Segment* segments, int segment_count, const Shape& shape) {
  int64_t total = 0;
  for (int s = 0; s < segment_count; ++s)
    total += int64_t(segments[s].rows + 1) * (segments[s].position + segments[s].rows) * shape.heads * shape.head_dim;
  return total;
}

}  // namespace

void attention_forward(float* y, float* row_max, float* row_scale, const float* q, const float* k, const float* v,
                       const Segment* segments, int segment_count, int heads, int kv_heads, int head_dim, int window) {
  Shape shape{heads, kv_heads, head_dim, window};
  parallel_tasks(int64_t(segment_count) * kv_heads, worth_threads(work(segments, segment_count, shape)),
                 [&](int64_t task) {
                   forward_task(y, row_max, row_scale, q, k, v, segments[task / kv_heads], int(task % kv_heads), shape);
                 });
}

void attention_backward(float* dq, float* dk, float* dv, const float* dy, const float* y, const float* q,
                        const float* k, const float* v, const float* row_max, const float* row_scale,
                        const Segment* segments, int segment_count, int heads, int kv_heads, int head_dim, int window) {
  Shape shape{heads, kv_heads, head_dim, window};
  parallel_tasks(int64_t(segment_count) * kv_heads, worth_threads(work(segments, segment_count, shape)),
                 [&](int64_t task) {
                   backward_task(dq, dk, dv, dy, y, q, k, v, row_max, row_scale, segments[task / kv_heads],
                                 int(task % kv_heads), shape);
                 });
}

}  // namespace ISA
