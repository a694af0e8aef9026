#include "packed.h"

#include <algorithm>


std::vector<ProductWeight> product_weights(const ModelConfig& c, const ModelParams& p) {
  int D = c.width;
  std::vector<ProductWeight> all = {{p.embedding, D, c.vocab, false}};
  for (size_t i = 0; i < size_t(c.layers); ++i) {
    LayerParams l = i < p.layers.size() ? p.layers[i] : LayerParams{};
    all.push_back({l.qkv, D, c.qkv_width(), false});
    if (c.head_gate) all.push_back({l.head_gate, D, c.heads, false});
    all.push_back({l.o, c.heads_width(), D, false});
    all.push_back({l.gate_up, D, 2 * c.ffn, false});
    all.push_back({l.down, c.ffn, D, false});
  }
  if (c.fusion == Fusion::gate) all.push_back({p.value, D, D, true}), all.push_back({p.gate, D, D, true});
  if (c.fusion == Fusion::add) all.push_back({p.add, D, D, true});
  if (c.fusion == Fusion::concat)
    for (const act* w : {p.concat_value, p.concat_gate}) all.push_back({w, 2 * D, D, true});
  return all;
}

// Floats of memory that one packed matrix takes: whole cache lines.
static size_t packed_floats(int in, int out, bool bf16) {
  size_t elements = size_t(in) * ((out + 31) / 32 * 32);
  return ((bf16 ? (elements + 1) / 2 : elements) + 15) / 16 * 16;
}

double PackedWeights::bytes(const ModelConfig& c, WeightFormat format) {
  size_t floats = 0;
  for (const ProductWeight& p : product_weights(c)) floats += packed_floats(p.in, p.out, format == WeightFormat::bf16);
  return double(floats) * sizeof(float);
}

PackedWeights::PackedWeights(const Kernels& run, const ModelConfig& c, const ModelParams& params, WeightFormat format)
    : run_(run), bf16_(format == WeightFormat::bf16), memory_(run, size_t(bytes(c, format)) / sizeof(float)) {
  size_t floats = 0;
  for (const ProductWeight& p : product_weights(c, params)) {
    float* place = memory_.data() + floats;
    run.pack_weight(place, p.w, p.in, p.out, bf16_);
    places_.push_back({p.w, place});
    floats += packed_floats(p.in, p.out, bf16_);
  }
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.w < b.w; });
}

void PackedWeights::multiply(act* y, const act* x, const act* w, int rows, int in, int out) const {
  auto place =
      std::lower_bound(places_.begin(), places_.end(), w, [](const Place& p, const act* at) { return p.w < at; });
  check(place != places_.end() && place->w == w, "a matrix that was not packed");
  run_.matmul_packed(y, x, place->packed, rows, in, out, bf16_);
}
