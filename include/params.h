// A model's parameters: one block of floats with named views. Gradients and optimizer moments are blocks of the same
// layout.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config.h"
#include "kernels.h"
#include "memory.h"
#include "safetensors.h"

enum class ParamKind { embedding, matrix, gain, bias };

// A tensor as files hold it. In the block q, k, v (and gate, up) lie one after another, so that they are one fused
// matrix there; the embedding's rows are padded with zeros up to padded_vocab.
struct Param {
  std::string name;   // docs/model.md
  int rows, columns;  // of a vector: 1 × columns
  ParamKind kind;
  bool feedback;  // read by fused inputs alone: has no gradient in a step without any
  size_t offset;  // into the block, in floats
  size_t size() const { return size_t(rows) * columns; }
  std::vector<int64_t> shape() const;
};

struct ParamLayout {
  std::vector<Param> params;
  size_t floats = 0;      // of the block
  int64_t count() const;  // parameters, padding not counted
  const Param* find(const std::string& name) const;
};
ParamLayout param_layout(const ModelConfig&);

// Has the feedback been trained, by the number of updates that each tensor has had?
bool feedback_has_updates(const ParamLayout&, const std::vector<int64_t>& update_counts);

// Pointers into one block, by use. Absent ones are null.
struct LayerParams {
  float *input_norm, *qkv, *q_norm, *k_norm, *head_gate, *o, *post_attn_norm;
  float *mlp_norm, *gate_up, *down, *post_mlp_norm;
};
struct ModelParams {
  float *embedding, *input_norm, *final_norm;
  std::vector<LayerParams> layers;
  float *value, *gate;                                                       // fusion gate: W_U, W_G
  float *concat_value, *concat_value_bias, *concat_gate, *concat_gate_bias;  // concat
  float* add;                                                                // add
};
ModelParams view_params(const ModelConfig&, const ParamLayout&, float* block);
// As a table's kernels read them: gains and biases in `floats`, matrices and the embedding in `elements`, a block of the
// same layout in acts.
ModelParams view_params(const Kernels&, const ModelConfig&, const ParamLayout&, float* floats, act* elements);

// Initial values (docs/model.md), a function of the seed and each tensor's name alone.
void init_params(const ParamLayout&, float* block, uint64_t seed);

// As tensors to save, each name behind `prefix`.
std::vector<TensorView> tensor_views(const ParamLayout&, const float* block, const std::string& prefix = "");
// Copies from a file; fails where a tensor is missing, has another shape, or is not known to this model.
void load_params(const ParamLayout&, float* block, const SafetensorsFile& file);
