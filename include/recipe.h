// Defaults of a run that follow from the model's size and from the data: what the field uses for such a model
// (docs/training.md has the sources). Models below kLargeMatrices are for trying things out; they keep the flags' own.
#pragma once
#include <cstdint>
#include <string>

#include "config.h"
#include "passes.h"

// Parameters of the stack's matrices from which a model is trained by these rules: mini has 4.4 million, micro 0.9.
constexpr int64_t kLargeMatrices = 2'000'000;
bool has_recipe(const ModelConfig&);

struct Recipe {
  int context = 1024;  // --seq
  int batch = 8;       // rows computed together
  float clip = 1, jitter = 0.02f;
  std::string passes = "paper";
  PrefixMixin mixin = PrefixMixin::uniform;
  int eval_every = 250, sample_every = 250, save_every = 500;
  int64_t val_tokens = 131072;
};
Recipe recipe_for(const ModelConfig&);

// "nano (94.5 k), micro …": the presets' parameters, with the feedback and with as many ids as is usual for the size: 512 for
// those that try things out, else GPT-2's.
std::string preset_sizes();
int64_t preset_parameters(const std::string& preset);

constexpr double kTokensAParameter = 20;
// Tokens of an optimizer step: of a model with so many parameters, in a run of so many tokens, in micro-batches of so many.
int64_t usual_step_tokens(double parameters, double run_tokens, int64_t micro_batch);
int usual_warmup(int64_t steps);  // steps
