// Attention: every table against the definition, bit for bit, and the definition's gradient against differences.
#include "bits.h"
#include "reference.h"

namespace {

struct Shape {
  int heads, kv_heads, head_dim, window;
};

template <class T>
struct Tensors {
  std::vector<T> q, k, v, dy;
  Tensors(Shape s, const Layout& layout, auto fill)
      : q(fill(layout.rows * s.heads * s.head_dim, 1)),
        k(fill(layout.kv_rows * s.kv_heads * s.head_dim, 2)),
        v(fill(k.size(), 3)),
        dy(fill(q.size(), 4)) {}
};

std::vector<float> normal(size_t n, unsigned seed) { return noise(n, seed); }

void compare(Shape shape, const Layout& layout, const Tensors<float>& in) {
  auto [H, G, d, window] = shape;
  SCOPED_TRACE(testing::Message() << H << " heads, " << G << " kv heads of " << d << ", window " << window << ", "
                                  << layout.rows << " rows");
  const Segment* segments = layout.segments.data();
  std::vector<float> y(in.q.size()), row_max(layout.rows * H), row_scale(row_max.size()), dq(in.q.size());
  std::vector<float> dk = noise(in.k.size(), 8), dv = noise(in.v.size(), 9), dk_start = dk, dv_start = dv;
  reference::attention_forward(y.data(), row_max.data(), row_scale.data(), in.q.data(), in.k.data(), in.v.data(),
                               segments, layout.count(), H, G, d, window);
  reference::attention_backward(dq.data(), dk.data(), dv.data(), in.dy.data(), y.data(), in.q.data(), in.k.data(),
                                in.v.data(), row_max.data(), row_scale.data(), segments, layout.count(), H, G, d,
                                window);
  with_every_table([&, H = H, G = G, d = d, window = window](const Kernels& kernels) {
    Guarded<float> got_y(y.size(), 7), got_max(row_max.size(), 7), got_scale(row_scale.size(), 7);
    Guarded<float> got_dq(dq.size(), 7), got_dk(dk_start), got_dv(dv_start);
    kernels.attention_forward(got_y.data(), got_max.data(), got_scale.data(), in.q.data(), in.k.data(), in.v.data(),
                              segments, layout.count(), H, G, d, window);
    kernels.attention_backward(got_dq.data(), got_dk.data(), got_dv.data(), in.dy.data(), y.data(), in.q.data(),
                               in.k.data(), in.v.data(), row_max.data(), row_scale.data(), segments, layout.count(), H,
                               G, d, window);
    EXPECT_SAME_BITS(got_y, y);
    EXPECT_SAME_BITS(got_max, row_max);
    EXPECT_SAME_BITS(got_scale, row_scale);
    EXPECT_SAME_BITS(got_dq, dq);
    EXPECT_SAME_BITS(got_dk, dk);
    EXPECT_SAME_BITS(got_dv, dv);
  });
}

TEST(Attention, HasTheBitsOfItsDefinition) {
  for (int head_dim : {2, 6, 16, 18, 64})
    for (Shape heads : {Shape{1, 1, 0, 0}, Shape{4, 2, 0, 0}, Shape{3, 1, 0, 0}})
      for (int window : {0, 1, 5})
        for (const Layout& layout : {Layout{{1, 0}}, Layout{{13, 0}, {5, 20}, {1, 17}}}) {
          Shape shape = {heads.heads, heads.kv_heads, head_dim, window};
          compare(shape, layout, Tensors<float>(shape, layout, normal));
        }
}

TEST(Attention, HasTheBitsOfItsDefinitionOverManyRows) {
  for (int window : {0, 7, 40, 1000})
    for (int head_dim : {6, 16}) {
      Layout layout = {{64, 0}, {33, 50}, {1, 90}, {17, 1}};
      Shape shape = {4, 2, head_dim, window};
      compare(shape, layout, Tensors<float>(shape, layout, normal));
    }
  Layout layout = {{20, 300}};
  Shape shape = {2, 1, 16, 0};
  compare(shape, layout, Tensors<float>(shape, layout, normal));
}

TEST(Attention, HasTheBitsOfItsDefinitionAcrossBlocksOfRows) {
  for (int window : {0, 3, 48, 60, 100}) {
    Layout layout = {{130, 30}};
    Shape shape = {2, 1, 16, window};
    compare(shape, layout, Tensors<float>(shape, layout, normal));
  }
  for (int window : {0, 2000}) {  // so many keys that a block holds fewer rows
    Layout layout = {{40, 3000}};
    Shape shape = {1, 1, 2, window};
    compare(shape, layout, Tensors<float>(shape, layout, normal));
  }
}

TEST(Attention, DecodesOneRowOfManyDocuments) {
  Layout layout = {{1, 0}, {1, 1}, {1, 15}, {1, 16}, {1, 33}, {1, 63}, {1, 64}, {1, 130}};
  for (int window : {0, 17}) {
    Shape shape = {6, 2, 18, window};
    compare(shape, layout, Tensors<float>(shape, layout, normal));
  }
}

TEST(Attention, EmptySegmentsAreSkipped) {
  Layout layout = {{3, 2}, {0, 5}, {2, 0}};
  Shape shape = {2, 1, 6, 0};
  compare(shape, layout, Tensors<float>(shape, layout, normal));
}

TEST(Attention, HandlesDenormalsZerosAndSharpScores) {
  Layout layout = {{9, 0}, {5, 12}};
  Shape shape = {4, 2, 18, 0};
  auto tame = [](size_t n, unsigned seed) {
    auto v = awkward(n, seed);
    for (float& x : v) x = std::abs(x) > 100 ? 100.0f : x;  // scores beyond the exponential's range, but not NaN
    return v;
  };
  compare(shape, layout, Tensors<float>(shape, layout, tame));
  compare(shape, layout, Tensors<float>(shape, layout, [](size_t n, unsigned) { return std::vector<float>(n, 0.0f); }));
}

TEST(Attention, ARowDoesNotDependOnChunksOrCompany) {
  int H = 4, G = 2, d = 16, rows = 40;
  auto q = noise(rows * H * d, 1), k = noise(rows * G * d, 2), v = noise(rows * G * d, 3);
  with_every_table([&](const Kernels& kernels) {
    for (int window : {0, 9}) {
      std::vector<float> whole(q.size()), row_max(rows * H), row_scale(rows * H), alone(q.size());
      Segment all = {0, rows, 0, 0, 0};
      kernels.attention_forward(whole.data(), row_max.data(), row_scale.data(), q.data(), k.data(), v.data(), &all, 1,
                                H, G, d, window);
      for (int t = 0, n = 1; t < rows; t += n, n = n % 7 + 1) {  // chunks of 1, 2, 3, …
        n = std::min(n, rows - t);
        Segment chunk = {0, n, t, 0, t};
        kernels.attention_forward(&alone[t * H * d], row_max.data(), row_scale.data(), &q[t * H * d], k.data(),
                                  v.data(), &chunk, 1, H, G, d, window);
      }
      EXPECT_SAME_BITS(alone, whole);
    }
  });
}

TEST(Attention, BackwardIsTheDerivativeOfForward) {
  Layout layout = {{3, 2}, {2, 0}};
  for (int window : {0, 2}) {
    Shape shape = {4, 2, 4, window};
    auto [H, G, d, w] = shape;
    Tensors<double> in(shape, layout, [](size_t n, unsigned seed) { return noise<double>(n, seed); });
    std::vector<double> y(in.q.size()), row_max(layout.rows * H), row_scale(row_max.size());
    std::vector<double> dq(in.q.size()), dk(in.k.size()), dv(in.v.size());
    auto objective = [&, H = H, G = G, d = d, w = w] {
      reference::attention_forward(y.data(), row_max.data(), row_scale.data(), in.q.data(), in.k.data(), in.v.data(),
                                   layout.segments.data(), layout.count(), H, G, d, w);
      return weighted(in.dy, y);
    };
    objective();
    reference::attention_backward(dq.data(), dk.data(), dv.data(), in.dy.data(), y.data(), in.q.data(), in.k.data(),
                                  in.v.data(), row_max.data(), row_scale.data(), layout.segments.data(), layout.count(),
                                  H, G, d, w);
    expect_gradient("dq", dq, in.q, objective);
    expect_gradient("dk", dk, in.k, objective);
    expect_gradient("dv", dv, in.v, objective);
  }
}

}  // namespace
