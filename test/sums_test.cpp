// Sums over rows, which parameters' gradients are: cut in blocks, they stay near the exact ones however many rows there
// are, and where a call ends on a block's border does not matter.
#include "bits.h"
#include "reference.h"

namespace {

constexpr int kRows = 1 << 17, kBlock = 256;

// The parameters' gradients that an operation computes of rows [begin, end) and adds to `sums`.
struct Operation {
  const char* name;
  size_t size;
  std::function<void(const Kernels&, int begin, int end, float* sums)> add;
  std::function<void(double* sums)> exact;  // of all kRows
};

struct Inputs {
  int in = 5, out = 18, vocab = 7, heads = 3;
  std::vector<float> x = noise(size_t(kRows) * in, 1), dy = noise(size_t(kRows) * out, 2);
  std::vector<float> ones = std::vector<float>(kRows * 4, 1.0f), gain = std::vector<float>(out, 1.0f);
  std::vector<float> qkv = noise(size_t(kRows) * 5 * 2, 3), dq = noise(size_t(kRows) * 3 * 2, 4);
  std::vector<float> kv = std::vector<float>(size_t(kRows) * 2), rope = std::vector<float>{1, 0};
  std::vector<int> token = std::vector<int>(kRows);
  std::vector<Segment> segments;
  Inputs() {
    for (float& v : dy) v += 0.1f;  // sums that grow
    for (float& v : x) v += 0.1f;
    for (float& v : dq) v += 0.1f;
    for (float& v : qkv) v += 0.1f;
    for (int r = 0; r < kRows; ++r) token[r] = int(int64_t(r) * r % vocab);
    for (int r = 0; r < kRows; ++r) segments.push_back({r, 1, 0, r, r});
  }
};

std::vector<Operation> operations(const Inputs& a) {
  auto weight = [&](const Kernels& run, int begin, int end, float* dw) {
    run.matmul_backward_weight(dw, &a.dy[size_t(begin) * a.out], &a.x[size_t(begin) * a.in], end - begin, a.in, a.out);
  };
  auto exact_weight = [&](double* dw) {
    for (int r = 0; r < kRows; ++r)
      for (int o = 0; o < a.out; ++o)
        for (int i = 0; i < a.in; ++i)
          dw[o * a.in + i] += double(a.dy[size_t(r) * a.out + o]) * a.x[size_t(r) * a.in + i];
  };
  auto bias = [&](const Kernels& run, int begin, int end, float* dbias) {
    run.bias_backward(dbias, &a.dy[size_t(begin) * a.out], end - begin, a.out);
  };
  auto exact_bias = [&](double* dbias) {
    for (size_t i = 0; i < a.dy.size(); ++i) dbias[i % a.out] += a.dy[i];
  };
  auto norm = [&](const Kernels& run, int begin, int end, float* dgain) {
    std::vector<float> dx(size_t(end - begin) * a.out);
    const float* dy = &a.dy[size_t(begin) * a.out];
    run.rmsnorm_backward(dx.data(), dgain, dy, dy, a.gain.data(), &a.ones[begin], end - begin, a.out);
  };
  auto exact_norm = [&](double* dgain) {
    for (size_t i = 0; i < a.dy.size(); ++i) dgain[i % a.out] += double(a.dy[i]) * a.dy[i];
  };
  auto qk_norm = [&](const Kernels& run, int begin, int end, float* dgains) {
    std::vector<float> dqkv(a.qkv.size());
    run.qk_norm_rope_backward(dqkv.data(), dgains, dgains + 2, a.dq.data(), a.dq.data(), a.kv.data(), a.qkv.data(),
                              a.ones.data(), a.gain.data(), a.gain.data(), a.rope.data(), &a.segments[begin],
                              end - begin, 3, 1, 2);
  };
  auto exact_qk_norm = [&](double* dgains) {
    for (int r = 0; r < kRows; ++r)
      for (int h = 0; h < 4; ++h)
        for (int i = 0; i < 2; ++i)
          dgains[2 * (h == 3) + i] += double(a.qkv[(size_t(r) * 5 + h) * 2 + i]) *
                                      (h < 3 ? a.dq[(size_t(r) * 3 + h) * 2 + i] : a.dq[2 * r + i]);
  };
  auto embedding = [&](const Kernels& run, int begin, int end, float* table) {
    run.embedding_backward(table, &a.dy[size_t(begin) * a.out], &a.token[begin], end - begin, a.out);
  };
  auto exact_embedding = [&](double* table) {
    for (int r = 0; r < kRows; ++r)
      for (int i = 0; i < a.out; ++i) table[a.token[r] * a.out + i] += a.dy[size_t(r) * a.out + i];
  };
  return {{"weight", size_t(a.in * a.out), weight, exact_weight},
          {"bias", size_t(a.out), bias, exact_bias},
          {"norm", size_t(a.out), norm, exact_norm},
          {"qk norm", 4, qk_norm, exact_qk_norm},
          {"embedding", size_t(a.vocab * a.out), embedding, exact_embedding}};
}

TEST(SumsOverRows, StayNearTheExactOnesHoweverManyRowsThereAre) {
  Inputs inputs;
  for (const Operation& operation : operations(inputs)) {
    std::vector<float> sums(operation.size);
    std::vector<double> exact(operation.size);
    operation.add(cpu_kernels(), 0, kRows, sums.data());
    operation.exact(exact.data());
    double error = 0, size = 0;
    for (size_t i = 0; i < sums.size(); ++i) error += std::pow(sums[i] - exact[i], 2), size += std::pow(exact[i], 2);
    EXPECT_LT(std::sqrt(error / size), 1e-6) << operation.name;
  }
}

TEST(SumsOverRows, HaveTheSameBitsWhereACallEndsOnABlocksBorder) {
  Inputs inputs;
  for (const Operation& operation : operations(inputs))
    with_every_table([&](const Kernels& kernels) {
      SCOPED_TRACE(operation.name);
      std::vector<float> whole = noise(operation.size, 9), parts = whole;
      operation.add(kernels, 0, 7 * kBlock + 5, whole.data());
      for (int begin : {0, kBlock, 3 * kBlock})
        operation.add(kernels, begin,
                      begin == 0        ? kBlock
                      : begin == kBlock ? 3 * kBlock
                                        : 7 * kBlock + 5,
                      parts.data());
      EXPECT_SAME_BITS(parts, whole);
    });
}

}  // namespace
