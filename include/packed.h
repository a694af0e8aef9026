// A model's matrices for decoding: packed once, in the order in which a product with few rows reads them, as float32 or
// as bfloat16, half the bytes. Decoding one token reads every matrix once, so its speed is the memory's.
#pragma once
#include <string>
#include <vector>

#include "kernels.h"
#include "memory.h"
#include "params.h"
#include "words.h"

enum class WeightFormat { f32, bf16 };
template <>
struct WordTable<WeightFormat> {
  static constexpr const char* what = "weights";
  static constexpr Word<WeightFormat> all[] = {{WeightFormat::f32, "f32"}, {WeightFormat::bf16, "bf16"}};
};

// A matrix that a product reads, out × in; all of a model (of its shapes alone, where no parameters are given).
struct ProductWeight {
  const act* w;
  int in, out;
  bool feedback;
};
std::vector<ProductWeight> product_weights(const ModelConfig&, const ModelParams& = {});

class PackedWeights {
 public:
  PackedWeights(const Kernels&, const ModelConfig&, const ModelParams&, WeightFormat);
  static double bytes(const ModelConfig&, WeightFormat);
  // y = x wᵀ, where w is one of the model's matrices.
  void multiply(act* y, const act* x, const act* w, int rows, int in, int out) const;

 private:
  struct Place {
    const act* w;
    const void* packed;
  };
  const Kernels& run_;
  bool bf16_;
  std::vector<Place> places_;  // by address
  Block memory_;
};

// The product as the weights are at hand: packed, or (null) where they lie.
inline void multiply(const Kernels& run, const PackedWeights* packed, act* y, const act* x, const act* w, int rows,
                     int in, int out) {
  if (packed)
    packed->multiply(y, x, w, rows, in, out);
  else
    run.matmul_forward(y, x, w, rows, in, out);
}
