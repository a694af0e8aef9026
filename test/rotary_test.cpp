// QK-norm and rotary embedding: every table against the definition, bit for bit, and its gradient against differences.
#include "bits.h"
#include "reference.h"

namespace {

struct Shape {
  int heads, kv_heads, head_dim;
  int q_width() const { return heads * head_dim; }
  int kv_width() const { return kv_heads * head_dim; }
  int qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

std::vector<float> angles(int positions, int head_dim) {
  std::vector<float> rope(size_t(positions) * head_dim);
  rope_table(rope.data(), positions, head_dim, 10000);
  return rope;
}

TEST(RopeTable, HoldsTheAnglesCosinesThenSines) {
  int head_dim = 6, positions = 2100;
  auto rope = angles(positions, head_dim);
  for (int t = 0; t < positions; ++t)
    for (int i = 0; i < head_dim / 2; ++i) {
      double angle = t * std::pow(10000.0, -2.0 * i / head_dim);
      ASSERT_NEAR(rope[t * head_dim + i], std::cos(angle), 1e-7) << t << ", " << i;
      ASSERT_NEAR(rope[t * head_dim + head_dim / 2 + i], std::sin(angle), 1e-7) << t << ", " << i;
    }
}

template <class T>
struct Tensors {
  std::vector<T> qkv, q_gain, k_gain, dq, dk, dv;
  Tensors(Shape s, const Layout& layout, auto fill)
      : qkv(fill(layout.rows * s.qkv_width(), 1)),
        q_gain(fill(s.head_dim, 2)),
        k_gain(fill(s.head_dim, 3)),
        dq(fill(layout.rows * s.q_width(), 4)),
        dk(fill(layout.kv_rows * s.kv_width(), 5)),
        dv(fill(layout.kv_rows * s.kv_width(), 6)) {}
};

void compare(Shape shape, const Layout& layout, const Tensors<float>& in) {
  auto [H, G, d] = shape;
  SCOPED_TRACE(testing::Message() << H << " heads, " << G << " kv heads of " << d << ", " << layout.rows << " rows");
  auto rope = angles(layout.positions, d);
  const Segment* segments = layout.segments.data();
  std::vector<float> q(in.dq.size(), 7), k(in.dk.size(), 7), v(k), rrms(layout.rows * (H + G)), dqkv(in.qkv.size());
  std::vector<float> dq_gain = noise(d, 8), dk_gain = noise(d, 9), q_start = dq_gain, k_start = dk_gain;
  reference::qk_norm_rope_forward(q.data(), k.data(), v.data(), rrms.data(), in.qkv.data(), in.q_gain.data(),
                                  in.k_gain.data(), rope.data(), segments, layout.count(), H, G, d, 1e-6f);
  reference::qk_norm_rope_backward(dqkv.data(), dq_gain.data(), dk_gain.data(), in.dq.data(), in.dk.data(),
                                   in.dv.data(), in.qkv.data(), rrms.data(), in.q_gain.data(), in.k_gain.data(),
                                   rope.data(), segments, layout.count(), H, G, d);
  with_every_table([&, H = H, G = G, d = d](const Kernels& kernels) {
    Guarded<float> got_q(q.size(), 7), got_k(k.size(), 7), got_v(v.size(), 7), got_rrms(rrms.size(), 7);
    Guarded<float> got_dqkv(dqkv.size(), 7), got_dq_gain(q_start), got_dk_gain(k_start);
    kernels.qk_norm_rope_forward(got_q.data(), got_k.data(), got_v.data(), got_rrms.data(), in.qkv.data(),
                                 in.q_gain.data(), in.k_gain.data(), rope.data(), segments, layout.count(), H, G, d,
                                 1e-6f);
    kernels.qk_norm_rope_backward(got_dqkv.data(), got_dq_gain.data(), got_dk_gain.data(), in.dq.data(), in.dk.data(),
                                  in.dv.data(), in.qkv.data(), rrms.data(), in.q_gain.data(), in.k_gain.data(),
                                  rope.data(), segments, layout.count(), H, G, d);
    EXPECT_SAME_BITS(got_q, q);
    EXPECT_SAME_BITS(got_k, k);  // also the rows of prefixes and gaps, which are not its to write
    EXPECT_SAME_BITS(got_v, v);
    EXPECT_SAME_BITS(got_rrms, rrms);
    EXPECT_SAME_BITS(got_dqkv, dqkv);
    EXPECT_SAME_BITS(got_dq_gain, dq_gain);
    EXPECT_SAME_BITS(got_dk_gain, dk_gain);
  });
}

TEST(Rotary, HasTheBitsOfItsDefinition) {
  auto normal = [](size_t n, unsigned seed) { return noise(n, seed); };
  for (int head_dim : {2, 6, 16, 18, 64})
    for (Shape shape : {Shape{1, 1, head_dim}, Shape{4, 2, head_dim}, Shape{3, 1, head_dim}})
      for (const Layout& layout : {Layout{{1, 0}}, Layout{{1, 9}, {1, 0}, {1, 4}}, Layout{{5, 3}, {64, 0}, {13, 7}},
                                   Layout{{200, 0}, {56, 0}, {270, 4}}})
        compare(shape, layout, Tensors<float>(shape, layout, normal));
}

TEST(Rotary, HandlesDenormalsZerosAndExtremes) {
  Layout layout = {{5, 2}, {3, 0}};
  Shape shape = {4, 2, 18};
  compare(shape, layout, Tensors<float>(shape, layout, awkward));
}

TEST(Rotary, BackwardIsTheDerivativeOfForward) {
  Layout layout = {{2, 3}, {2, 0}};
  Shape shape = {2, 1, 6};
  auto [H, G, d] = shape;
  auto rope_bits = angles(layout.positions, d);
  std::vector<double> rope(rope_bits.begin(), rope_bits.end());
  Tensors<double> in(shape, layout, [](size_t n, unsigned seed) { return noise<double>(n, seed); });
  std::vector<double> q(in.dq.size()), k(in.dk.size()), v(in.dv.size()), rrms(layout.rows * (H + G));
  std::vector<double> dqkv(in.qkv.size()), dq_gain(d), dk_gain(d);
  auto objective = [&, H = H, G = G, d = d] {
    reference::qk_norm_rope_forward(q.data(), k.data(), v.data(), rrms.data(), in.qkv.data(), in.q_gain.data(),
                                    in.k_gain.data(), rope.data(), layout.segments.data(), layout.count(), H, G, d,
                                    1e-3);
    return weighted(in.dq, q) + weighted(in.dk, k) + weighted(in.dv, v);
  };
  objective();
  reference::qk_norm_rope_backward(dqkv.data(), dq_gain.data(), dk_gain.data(), in.dq.data(), in.dk.data(),
                                   in.dv.data(), in.qkv.data(), rrms.data(), in.q_gain.data(), in.k_gain.data(),
                                   rope.data(), layout.segments.data(), layout.count(), H, G, d);
  expect_gradient("dqkv", dqkv, in.qkv, objective);
  expect_gradient("dq_gain", dq_gain, in.q_gain, objective);
  expect_gradient("dk_gain", dk_gain, in.k_gain, objective);
}

}  // namespace
