// Attention on the device against the CPU's; and a row against itself, computed alone, in chunks and in a prefill.
// bfloat16: y and dq are rounded once, and dk and dv, which are added to, once. Backward gets the CPU's y, rounded, and its
// statistics.
#include "attention.cuh"
#include "device.h"

namespace {

struct Shape {
  int heads, kv_heads, head_dim, window;
};

// Inputs; NaN in the key/value rows that no segment has.
struct Inputs {
  std::vector<float> q, k, v, dy, dk, dv;
  Inputs(const Device& d, Shape s, const Layout& layout) {
    size_t rows = size_t(layout.rows) * s.heads * s.head_dim, width = size_t(s.kv_heads) * s.head_dim;
    q = d.rounded(noise(rows, 1)), dy = d.rounded(noise(rows, 2));
    k = d.rounded(noise(layout.kv_rows * width, 3)), v = d.rounded(noise(k.size(), 4));
    dk = d.rounded(noise(k.size(), 5)), dv = d.rounded(noise(k.size(), 6));
    std::vector<bool> used(layout.kv_rows);
    for (const Segment& segment : layout.segments)
      for (int j = 0; j < segment.position + segment.rows; ++j) used[segment.kv_row(j)] = true;
    for (size_t i = 0; i < k.size(); ++i)
      if (!used[i / width]) k[i] = v[i] = NAN;
  }
};

// What the results sum, in absolute values.
struct Terms {
  std::vector<double> y, row_max, dq, dk, dv;
  Terms(Shape s, const Layout& layout, const Inputs& in, const std::vector<float>& y_cpu,
        const std::vector<float>& row_max_cpu, const std::vector<float>& row_scale)
      : y(in.q.size()), row_max(row_scale.size()), dq(in.q.size()), dk(in.k.size()), dv(in.k.size()) {
    int d = s.head_dim;
    for (size_t i = 0; i < dk.size(); ++i) dk[i] = std::abs(in.dk[i]), dv[i] = std::abs(in.dv[i]);
    for (const Segment& segment : layout.segments)
      for (int r = 0; r < segment.rows; ++r)
        for (int h = 0; h < s.heads; ++h) {
          int t = segment.position + r, first = s.window > 0 ? std::max(0, t - s.window + 1) : 0;
          size_t row = size_t(segment.row + r) * s.heads + h, at = row * d;
          double root = 1 / std::sqrt(double(d)), delta = 0;
          for (int i = 0; i < d; ++i) delta += std::abs(double(in.dy[at + i]) * y_cpu[at + i]);
          for (int j = first; j <= t; ++j) {
            size_t key = (size_t(segment.kv_row(j)) * s.kv_heads + h / (s.heads / s.kv_heads)) * d;
            double score = 0, size = 0, dp = 0;
            for (int i = 0; i < d; ++i) {
              double term = double(in.q[at + i]) * in.k[key + i] * root;
              score += term, size += std::abs(term);
              dp += std::abs(double(in.dy[at + i]) * in.v[key + i]);
            }
            row_max[row] = std::max(row_max[row], size);
            double p = std::exp(score - row_max_cpu[row]) * row_scale[row], ds = p * (dp + delta) * root;
            for (int i = 0; i < d; ++i) {
              y[at + i] += p * std::abs(in.v[key + i]);
              dq[at + i] += ds * std::abs(in.k[key + i]);
              dk[key + i] += ds * std::abs(in.q[at + i]);
              dv[key + i] += p * std::abs(in.dy[at + i]);
            }
          }
        }
  }
};

void compare(const Device& d, Shape shape, const Layout& layout) {
  auto [H, G, head_dim, window] = shape;
  SCOPED_TRACE(testing::Message() << H << " heads, " << G << " kv heads of " << head_dim << ", window " << window
                                  << ", " << layout.rows << " rows");
  Inputs in(d, shape, layout);
  size_t n = in.q.size(), rows = size_t(layout.rows) * H;
  std::vector<float> y(n), row_max(rows), row_scale(rows), dq(n), dk = in.dk, dv = in.dv;
  const Segment* segments = layout.segments.data();
  const Kernels& cpu = cpu_kernels();
  cpu.attention_forward(y.data(), row_max.data(), row_scale.data(), in.q.data(), in.k.data(), in.v.data(), segments,
                        layout.count(), H, G, head_dim, window);
  OnDevice q_on = acts(d, in.q), k_on = acts(d, in.k), v_on = acts(d, in.v), y_on = acts(d, dq);
  OnDevice max_on = floats(d, row_max), scale_on = floats(d, row_scale);
  std::vector<float> zeros(rows);
  OnDevice got_max = floats(d, zeros), got_scale = floats(d, zeros);
  d.run.attention_forward(y_on.data(), got_max.data(), got_scale.data(), q_on.data(), k_on.data(), v_on.data(),
                          segments, layout.count(), H, G, head_dim, window);
  Terms terms(shape, layout, in, y, row_max, row_scale);
  std::vector<double> scale_terms(row_scale.begin(), row_scale.end());
  EXPECT_TRUE(close(y_on.values(), y, terms.y, d.tolerance(1)));
  EXPECT_TRUE(close(got_max.values(), row_max, terms.row_max, kFloatTolerance));
  EXPECT_TRUE(close(got_scale.values(), row_scale, scale_terms, kFloatTolerance));

  y = d.rounded(y);
  cpu.attention_backward(dq.data(), dk.data(), dv.data(), in.dy.data(), y.data(), in.q.data(), in.k.data(), in.v.data(),
                         row_max.data(), row_scale.data(), segments, layout.count(), H, G, head_dim, window);
  OnDevice rounded_y = acts(d, y), dy_on = acts(d, in.dy), dq_on = acts(d, in.dy), dk_on = acts(d, in.dk),
           dv_on = acts(d, in.dv);
  d.run.attention_backward(dq_on.data(), dk_on.data(), dv_on.data(), dy_on.data(), rounded_y.data(), q_on.data(),
                           k_on.data(), v_on.data(), max_on.data(), scale_on.data(), segments, layout.count(), H, G,
                           head_dim, window);
  EXPECT_TRUE(close(dq_on.values(), dq, terms.dq, d.tolerance(1)));
  EXPECT_TRUE(close(dk_on.values(), dk, terms.dk, d.tolerance(1)));
  EXPECT_TRUE(close(dv_on.values(), dv, terms.dv, d.tolerance(1)));
}

TEST(CudaAttention, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (int head_dim : {2, 6, 18, 64})
      for (Shape heads : {Shape{1, 1, 0, 0}, Shape{3, 1, 0, 5}, Shape{4, 2, 0, 1}}) {
        Shape shape = {heads.heads, heads.kv_heads, head_dim, heads.window};
        compare(d, shape, {{1, 0}});
        if (head_dim != 64) compare(d, shape, {{13, 0}, {5, 20}, {0, 7}, {1, 17}});
      }
    compare(d, {2, 1, 64, 0}, {{70, 3}, {2, 20}});
  });
}

TEST(CudaAttention, IsTheCpusForWideHeads) {
  with_cuda_tables([](const Device& d) {
    compare(d, {2, 1, 66, 9}, {{3, 20}});
    compare(d, {1, 1, 128, 0}, {{34, 33}});
    compare(d, {2, 1, 250, 0}, {{5, 1}});
    compare(d, {1, 1, 256, 20}, {{9, 62}, {1, 30}});
  });
}

TEST(CudaAttention, IsTheCpusOverManyRows) {
  with_cuda_tables([](const Device& d) {
    for (int window : {0, 7, 64}) compare(d, {2, 1, 6, window}, {{70, 0}, {33, 100}, {1, 290}});
    compare(d, {40, 1, 2, 0}, {{1, 5}, {1, 130}});  // one row's heads are more than a tile
  });
}

TEST(CudaAttention, IsTheCpusForEachOfManyDecodedTokens) {
  with_cuda_tables([](const Device& d) {
    for (int window : {0, 128})
      compare(d, {4, 2, 2, window}, {{1, 0}, {1, 1}, {1, 63}, {1, 64}, {1, 127}, {1, 128}, {1, 129}, {1, 300}});
  });
}

TEST(CudaAttention, NothingIsDoneWithoutRows) {
  with_cuda_tables([](const Device& d) {
    compare(d, {2, 1, 6, 0}, {});
    compare(d, {2, 1, 6, 0}, {{0, 0}, {0, 5}});
  });
}

// Rows [begin, end) of one document, in chunks of sizes[0], sizes[1], … and again from the first, all of them one batch
// where `together` (else a batch each); the document's keys begin at kv_row. Each row's y, then its statistics.
std::vector<float> in_chunks(const Device& d, Shape shape, int begin, int end, std::vector<int> sizes, bool together,
                             int kv_row) {
  auto [H, G, head_dim, window] = shape;
  size_t q_width = size_t(H) * head_dim, kv_width = size_t(G) * head_dim, rows = size_t(end - begin);
  auto q = d.rounded(noise(end * q_width, 1)), k = d.rounded(noise(end * kv_width, 2)),
       v = d.rounded(noise(k.size(), 3));
  q.erase(q.begin(), q.begin() + ptrdiff_t(begin * q_width));
  std::vector<float> before(kv_row * kv_width, NAN), statistics(rows * H);
  k.insert(k.begin(), before.begin(), before.end()), v.insert(v.begin(), before.begin(), before.end());
  OnDevice q_on = acts(d, q), k_on = acts(d, k), v_on = acts(d, v), y_on = acts(d, q);
  OnDevice max_on = floats(d, statistics), scale_on = floats(d, statistics);
  std::vector<Segment> chunks;
  for (int t = begin, i = 0; t < end; t += sizes[i++ % sizes.size()])
    chunks.push_back({t - begin, std::min(sizes[i % sizes.size()], end - t), t, kv_row, kv_row + t});
  int batch = together ? int(chunks.size()) : 1;
  for (size_t i = 0; i < chunks.size(); i += batch)
    d.run.attention_forward(y_on.data(), max_on.data(), scale_on.data(), q_on.data(), k_on.data(), v_on.data(),
                            &chunks[i], batch, H, G, head_dim, window);
  std::vector<float> all;
  for (size_t r = 0; r < rows; ++r)
    for (auto [on, width] :
         {std::pair(&y_on, q_width), std::pair(&max_on, size_t(H)), std::pair(&scale_on, size_t(H))}) {
      auto values = on->values();
      all.insert(all.end(), &values[r * width], &values[r * width] + width);
    }
  return all;
}

TEST(CudaAttention, ARowHasTheSameBitsAloneInAChunkAndInAPrefill) {
  with_cuda_tables([](const Device& d) {
    for (Shape shape : {Shape{4, 2, 6, 0}, Shape{2, 2, 2, 150}, Shape{1, 1, 66, 3}}) {
      int begin = 245, end = 265;
      SCOPED_TRACE(testing::Message() << "heads of " << shape.head_dim << ", window " << shape.window);
      auto whole = in_chunks(d, shape, begin, end, {end - begin}, true, 0);
      EXPECT_SAME_BITS(in_chunks(d, shape, begin, end, {1, 9, 2}, false, 5), whole);
      EXPECT_SAME_BITS(in_chunks(d, shape, begin, end, {1}, true, 1), whole);
    }
  });
}

// Small weights of the least denormals give −0, to which a prefill adds 0 · v of the key behind.
TEST(CudaAttention, ARowHasTheSameZerosAloneAndInAPrefill) {
  with_cuda_tables([](const Device& d) {
    float least = d.bf16 ? 0x1p-133f : 0x1p-149f;
    std::vector<float> q(5 * 2, 1), k = {9, 9, 0, 0, 0, 0, 0, 0, 0, 0},
                                    v = {0, 0, -least, -least, -least, -least, -least, -least, 1, 1};
    std::vector<float> zeros(5);
    OnDevice q_on = acts(d, q), k_on = acts(d, k), v_on = acts(d, v), whole = acts(d, v), alone = acts(d, v);
    OnDevice row_max = floats(d, zeros), row_scale = floats(d, zeros);
    Segment all = {0, 5, 0, 0, 0}, fourth = {3, 1, 3, 0, 3};
    for (auto [y, segment] : {std::pair(&whole, &all), std::pair(&alone, &fourth)})
      d.run.attention_forward(y->data(), row_max.data(), row_scale.data(), q_on.data(), k_on.data(), v_on.data(),
                              segment, 1, 1, 1, 2, 0);
    for (int i : {6, 7}) EXPECT_EQ(bits_of(alone.values()[i]), bits_of(whole.values()[i]));
  });
}

TEST(CudaAttention, ARowHasTheSameBitsWhereOneBlockComputesAllItsKeys) {
  with_cuda_tables([](const Device& d) {
    Shape shape = {26, 26, 2, d.bf16 ? 120 : 0};
    int begin = 122, end = 140;  // 5 tiles of 32 queries, of 26 heads: enough to fill a GPU
    auto whole = in_chunks(d, shape, 0, end, {end}, true, 0);
    auto last = in_chunks(d, shape, begin, end, {17, 1}, true, 3);
    whole.erase(whole.begin(), whole.end() - ptrdiff_t(last.size()));
    EXPECT_SAME_BITS(last, whole);
  });
}

TEST(CudaAttention, ARowHasTheSameBitsAcrossAChangeOfThePartsSize) {
  int begin = attention::kPartKeys * (attention::kParts - 1) - 2;
  with_cuda_tables([&](const Device& d) {
    Shape shape = {2, 1, 2, 0};
    auto whole = in_chunks(d, shape, begin, begin + 3, {3}, true, 0);
    EXPECT_SAME_BITS(in_chunks(d, shape, begin, begin + 3, {1}, true, 3), whole);
    if (!d.bf16) compare(d, shape, {{3, begin}});
  });
}

TEST(CudaAttention, EveryVisibleKeyIsInOneOfARowsParts) {
  for (int window : {0, 1, 127, 128, 5000, 1 << 20})
    for (int64_t t = 0, last = 0; t < 1 << 30; last = t, t += 1 + t / 7) {
      attention::Shape shape = {1, 1, 2, window};
      int next = shape.first(int(t)), parts = shape.parts(int(t));
      ASSERT_LE(parts, attention::kParts);
      for (int n = 0; n < attention::kParts; ++n) {
        attention::Keys keys = shape.part(int(t), n), before = shape.part(int(last), n);
        ASSERT_LE(before.begin, keys.begin);
        ASSERT_LE(before.end, keys.end);
        ASSERT_EQ(keys.begin < keys.end, n < parts);
        if (n >= parts) continue;
        ASSERT_EQ(keys.begin, next);
        next = keys.end;
      }
      ASSERT_EQ(next, t + 1);
    }
}

TEST(CudaAttention, IndicesMayExceed32Bits) {
  EXPECT_EQ(attention::head_at(3'000'000, 32, 31, 128), (3'000'000ll * 32 + 31) * 128);
}

}  // namespace
