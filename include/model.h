// A model in memory: what it is, and its parameters.
#pragma once
#include <string>

#include "config.h"
#include "kernels.h"
#include "memory.h"
#include "params.h"

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

// The model's description in a checkpoint's folder.
ModelConfig read_config(const std::string& checkpoint);
// Reads a checkpoint's parameters into a model of that description, after checking the checkpoint's sums.
void read_params(Model&, const std::string& checkpoint);
// Takes over the weights of another model: all that this one has, but that feedback parameters may be missing there (an
// ordinary

void init_from(Model&, const std::string& checkpoint);

// The kernel table for --device auto|cpu|cuda.
const Kernels& kernels_for(const std::string& device);
