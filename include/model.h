// A model in memory: what it is, and its parameters.
#pragma once
#include <string>
#include <vector>

#include "config.h"
#include "kernels.h"
#include "memory.h"
#include "params.h"

class Checkpoint;

struct Model {
  explicit Model(const ModelConfig& c)
      : config(c), layout(param_layout(c)), block(layout.floats), params(view_params(c, layout, block.data())) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  ModelConfig config;
  ParamLayout layout;
  Block block;
  ModelParams params;
};

// A model's parameters where a table's kernels read them: the model's own memory, or floats on the device, and beside them
// matrices and embedding rounded to the table's elements where those are not float.
class Weights {
 public:
  Weights(const Kernels&, Model&);  // as the model is now
  static void plan_memory(Plan&, const Kernels&, const ParamLayout&);

  const ModelParams& params() const { return params_; }
  float* floats() { return floats_.size() > 0 ? floats_.data() : model_.block.data(); }
  void changed();    // after floats() were
  void write();      // from the model, after it has changed
  void read_back();  // to the model

 private:
  const Kernels& run_;
  Model& model_;
  Block floats_, elements_;  // empty where the model's own memory serves
  ModelParams params_;
};

// The model's description in a checkpoint's folder.
ModelConfig read_config(const Checkpoint&);
// Reads a checkpoint's parameters into a model of that description. Fails where one is not a finite number: such a model
// computes nothing.
void read_params(Model&, const Checkpoint&);
// Takes over the weights of another model: all that this one has, but that feedback parameters may be missing there (an
// ordinary transformer gets feedback, or another fusion); they keep their initial values. Returns the names of those that
// were not taken, for this model has other feedback or none, and of those that keep their initial values.
struct TakenOver {
  std::vector<std::string> left, fresh;
};
TakenOver init_from(Model&, const Checkpoint&);

// Rounds matrices and the embedding to bfloat16, to nearest, ties to even; their values stay floats.
void round_to_bf16(Model&);

// Has the feedback of a checkpoint's model ever been trained? A run of one-pass steps leaves it as it was drawn.
bool feedback_is_trained(const Checkpoint&, const ModelConfig&);
// The model as it is to be shown: without its feedback where that was never trained.
ModelConfig as_trained(ModelConfig, bool feedback_trained);
// The first tensor that holds a number which is not finite; null where all are.
const Param* find_not_finite(const Model&);
