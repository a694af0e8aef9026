// QK-norm and rotary embedding on the device against the CPU's. What is copied has the CPU's bits. bfloat16: q, k and
// dqkv are rounded once; all between is in float, as are rrms and the gains' gradients.
#include "indexed.h"

namespace {

constexpr float kEps = 1e-6f;

struct Shape {
  int heads, kv_heads, head_dim;
  int q_width() const { return heads * head_dim; }
  int kv_width() const { return kv_heads * head_dim; }
  int qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

// Inputs and results of forward and backward in the host's memory; at first what the results have to begin with.
struct Tensors {
  std::vector<float> qkv, q_gain, k_gain, rope, dq, dk, dv;  // in
  std::vector<float> q, k, v, rrms, dqkv, dq_gain, dk_gain;  // out
  Tensors(const Device& d, Shape s, int rows, int kv_rows, int positions)
      : qkv(d.rounded(noise(size_t(rows) * s.qkv_width(), 1))),
        q_gain(noise(s.head_dim, 2)),
        k_gain(noise(s.head_dim, 3)),
        rope(size_t(positions) * s.head_dim),
        dq(d.rounded(noise(size_t(rows) * s.q_width(), 4))),
        dk(d.rounded(noise(size_t(kv_rows) * s.kv_width(), 5))),
        dv(d.rounded(noise(size_t(kv_rows) * s.kv_width(), 6))),
        q(junk(dq.size())),
        k(junk(dk.size())),
        v(junk(dv.size())),
        rrms(size_t(rows) * (s.heads + s.kv_heads)),
        dqkv(junk(qkv.size())),
        dq_gain(noise(s.head_dim, 7)),
        dk_gain(noise(s.head_dim, 8)) {
    int half = s.head_dim / 2;
    for (int t = 0; t < positions; ++t)
      for (int i = 0; i < half; ++i) {
        double angle = t * std::pow(100.0, -double(i) / half);
        rope[size_t(t) * s.head_dim + i] = float(std::cos(angle));
        rope[size_t(t) * s.head_dim + half + i] = float(std::sin(angle));
      }
  }

  void run_on_cpu(Shape s, const std::vector<Segment>& segments) {
    const Kernels& cpu = cpu_kernels();
    int count = int(segments.size());
    cpu.qk_norm_rope_forward(q.data(), k.data(), v.data(), rrms.data(), qkv.data(), q_gain.data(), k_gain.data(),
                             rope.data(), segments.data(), count, s.heads, s.kv_heads, s.head_dim, kEps);
    cpu.qk_norm_rope_backward(dqkv.data(), dq_gain.data(), dk_gain.data(), dq.data(), dk.data(), dv.data(), qkv.data(),
                              rrms.data(), q_gain.data(), k_gain.data(), rope.data(), segments.data(), count, s.heads,
                              s.kv_heads, s.head_dim);
  }

  // The arrays' first rows and positions are then number `ahead` of the device's, and so have to be the segments'.
  void run_on(const Device& d, Shape s, const std::vector<Segment>& segments, int64_t ahead = 0) {
    OnDevice qkv_on = acts(d, qkv), q_gain_on = floats(d, q_gain), k_gain_on = floats(d, k_gain),
             rope_on = floats(d, rope), dq_on = acts(d, dq), dk_on = acts(d, dk), dv_on = acts(d, dv),
             q_on = acts(d, q), k_on = acts(d, k), v_on = acts(d, v), rrms_on = floats(d, rrms),
             dqkv_on = acts(d, dqkv), dq_gain_on = floats(d, dq_gain), dk_gain_on = floats(d, dk_gain);
    auto act_rows = [&](OnDevice& x, int width) { return beginning(d.run, x.data(), ahead * width); };
    float* all_rrms = beginning(*d.run.floats, rrms_on.data(), ahead * (s.heads + s.kv_heads));
    float* angles = beginning(*d.run.floats, rope_on.data(), ahead * s.head_dim);
    int count = int(segments.size()), q_width = s.q_width(), kv_width = s.kv_width(), qkv_width = s.qkv_width();
    d.run.qk_norm_rope_forward(act_rows(q_on, q_width), act_rows(k_on, kv_width), act_rows(v_on, kv_width), all_rrms,
                               act_rows(qkv_on, qkv_width), q_gain_on.data(), k_gain_on.data(), angles, segments.data(),
                               count, s.heads, s.kv_heads, s.head_dim, kEps);
    d.run.qk_norm_rope_backward(act_rows(dqkv_on, qkv_width), dq_gain_on.data(), dk_gain_on.data(),
                                act_rows(dq_on, q_width), act_rows(dk_on, kv_width), act_rows(dv_on, kv_width),
                                act_rows(qkv_on, qkv_width), all_rrms, q_gain_on.data(), k_gain_on.data(), angles,
                                segments.data(), count, s.heads, s.kv_heads, s.head_dim);
    q = q_on.values(), k = k_on.values(), v = v_on.values(), rrms = rrms_on.values(), dqkv = dqkv_on.values();
    dq_gain = dq_gain_on.values(), dk_gain = dk_gain_on.values();
  }
};

// Σ|terms| of each result, given what the CPU computed.
struct Terms {
  std::vector<double> q, k, dqkv, dq_gain, dk_gain;
  Terms(const Tensors& t, Shape s, const std::vector<Segment>& segments)
      : q(magnitudes(t.q)), k(magnitudes(t.k)), dqkv(magnitudes(t.dqkv)) {
    dq_gain.assign(s.head_dim, 0), dk_gain.assign(s.head_dim, 0);
    for (const Segment& g : segments)
      for (int r = 0; r < g.rows; ++r)
        for (int h = 0; h < s.heads + s.kv_heads; ++h) add_head(t, s, g.row + r, g.own_kv + r, g.position + r, h);
  }

 private:
  void add_head(const Tensors& t, Shape s, size_t row, size_t kv_row, size_t position, int h) {
    int dim = s.head_dim, half = dim / 2;
    bool is_q = h < s.heads;
    size_t out = is_q ? row * s.q_width() + h * dim : kv_row * s.kv_width() + (h - s.heads) * dim;
    const float *x = &t.qkv[row * s.qkv_width() + h * dim], *dy = &(is_q ? t.dq : t.dk)[out];
    const float *angles = &t.rope[position * dim], *gain = (is_q ? t.q_gain : t.k_gain).data();
    double r = t.rrms[row * (s.heads + s.kv_heads) + h], sum = 0;
    std::vector<double> n(dim), dn(dim);
    for (int i = 0; i < dim; ++i) {
      n[i] = std::abs(double(gain[i]) * x[i] * r);
      dn[i] = std::abs(dy[i] * angles[i % half]) + std::abs(dy[(i + half) % dim] * angles[half + i % half]);
      sum += std::abs(gain[i] * x[i]) * dn[i];
    }
    for (int i = 0; i < dim; ++i) {
      (is_q ? q : k)[out + i] =
          n[i] * std::abs(angles[i % half]) + n[(i + half) % dim] * std::abs(angles[half + i % half]);
      dqkv[row * s.qkv_width() + h * dim + i] = std::abs(x[i]) * sum * r * r * r / dim + std::abs(gain[i]) * dn[i] * r;
      (is_q ? dq_gain : dk_gain)[i] += dn[i] * std::abs(x[i]) * r;
    }
  }
};

void compare(const Device& d, Shape s, const Layout& layout) {
  SCOPED_TRACE(testing::Message() << s.heads << " heads, " << s.kv_heads << " kv heads of " << s.head_dim << ", "
                                  << layout.rows << " rows");
  Tensors want(d, s, layout.rows, layout.kv_rows, layout.positions), got = want;
  std::vector<float> dq_gain = want.dq_gain, dk_gain = want.dk_gain;
  got.run_on(d, s, layout.segments);
  want.run_on_cpu(s, layout.segments);
  Terms terms(want, s, layout.segments);
  for (int i = 0; i < s.head_dim; ++i)
    terms.dq_gain[i] += std::abs(dq_gain[i]), terms.dk_gain[i] += std::abs(dk_gain[i]);
  EXPECT_TRUE(close(got.q, want.q, terms.q, d.tolerance(1)));
  EXPECT_TRUE(close(got.k, want.k, terms.k, d.tolerance(1)));
  EXPECT_SAME_BITS(got.v, want.v);
  EXPECT_TRUE(close(got.rrms, want.rrms, magnitudes(want.rrms), kFloatTolerance));
  EXPECT_TRUE(close(got.dqkv, want.dqkv, terms.dqkv, d.tolerance(1)));
  EXPECT_TRUE(close(got.dq_gain, want.dq_gain, terms.dq_gain, kFloatTolerance));
  EXPECT_TRUE(close(got.dk_gain, want.dk_gain, terms.dk_gain, kFloatTolerance));
}

TEST(CudaRotary, IsTheCpus) {
  with_cuda_tables([](const Device& d) {
    for (int head_dim : {2, 6, 16, 18, 64})
      for (Shape shape : {Shape{1, 1, head_dim}, Shape{4, 2, head_dim}})
        for (const Layout& layout : {Layout{{1, 0}}, Layout{{1, 9}, {1, 0}, {1, 4}}, Layout{{5, 3}, {20, 0}, {13, 7}}})
          compare(d, shape, layout);
  });
}

TEST(CudaRotary, TakesMoreHeadsThanABlockHasGroupsAndWideOnes) {
  with_cuda_tables([](const Device& d) {
    compare(d, {12, 4, 128}, {{3, 0}});
    compare(d, {2, 1, 640}, {{3, 5}});
  });
}

TEST(CudaRotary, FindsRowsAmongSegmentsOfAllLengths) {
  with_cuda_tables([](const Device& d) {
    compare(d, {1, 1, 4}, {{9, 0}, {1, 5}, {1, 0}, {4, 2}, {1, 1}, {30, 0}, {2, 3}, {1, 0}});
    compare(d, {1, 1, 4}, {{2, 0}, {0, 3}, {2, 0}});  // an empty one
  });
}

TEST(CudaRotary, RowsAndPositionsGoBeyond32Bits) {
  with_cuda_tables([](const Device& d) {
    Shape s = {4, 2, 64};
    int far = 700'000'000;  // even rrms, six floats a row, has 4.2 · 10⁹ before
    Tensors near_tensors(d, s, 3, 3, 3), far_tensors = near_tensors;
    near_tensors.run_on(d, s, {{0, 3, 0, 0, 0}});
    far_tensors.run_on(d, s, {{far, 3, far, 0, far}}, far);
    EXPECT_SAME_BITS(far_tensors.q, near_tensors.q);
    EXPECT_SAME_BITS(far_tensors.k, near_tensors.k);
    EXPECT_SAME_BITS(far_tensors.v, near_tensors.v);
    EXPECT_SAME_BITS(far_tensors.rrms, near_tensors.rrms);
    EXPECT_SAME_BITS(far_tensors.dqkv, near_tensors.dqkv);
    EXPECT_SAME_BITS(far_tensors.dq_gain, near_tensors.dq_gain);
    EXPECT_SAME_BITS(far_tensors.dk_gain, near_tensors.dk_gain);
  });
}

TEST(CudaRotary, DoesNothingWithoutRows) {
  with_cuda_tables([](const Device& d) {
    d.run.qk_norm_rope_forward(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 4, 2,
                               64, kEps);
    d.run.qk_norm_rope_backward(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                nullptr, nullptr, nullptr, 0, 4, 2, 64);
  });
}

}  // namespace
