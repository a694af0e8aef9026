#include "recipe.h"

#include <algorithm>
#include <sstream>

#include "log.h"
#include "params.h"

static int64_t matrices_of(const ModelConfig& c) {
  int64_t width = c.width, layer = width * c.qkv_width() + int64_t(c.heads_width()) * width + 3 * width * c.ffn;
  return layer * c.layers;
}

bool has_recipe(const ModelConfig& c) { return matrices_of(c) >= kLargeMatrices; }

Recipe recipe_for(const ModelConfig& c) {
  // Rows whose activations fit where the parameters, gradients and moments do.
  constexpr int64_t kBatch4 = 50'000'000, kBatch2 = 500'000'000;
  Recipe r;
  int64_t matrices = matrices_of(c);
  r.batch = matrices >= kBatch2 ? 2 : matrices >= kBatch4 ? 4 : 8;
  return r;
}

int64_t preset_parameters(const std::string& name) {
  ModelConfig c = preset(name);
  c.vocab = has_recipe(c) ? 50257 : 512;
  c.resolve();
  return param_layout(c).count();
}

std::string preset_sizes() {
  std::string sizes, name;
  for (std::istringstream names(preset_names()); std::getline(names >> std::ws, name, ',');) {
    std::string count = show_count(double(preset_parameters(name)));
    if (size_t space = count.find(' '); space != count.npos) count.replace(space, 1, "\u00a0");  // stays on one line
    sizes += (sizes.empty() ? "" : ", ") + name + " (" + count + ")";
  }
  return sizes;
}

int64_t usual_step_tokens(double parameters, double run_tokens, int64_t micro_batch) {
  constexpr double kLeastSteps = 200;
  double usual = parameters < 50e6 ? 1 << 16 : parameters < 1e9 ? 1 << 19 : 1 << 20;
  return std::max<int64_t>(1, int64_t(std::min(usual, run_tokens / kLeastSteps)) / micro_batch) * micro_batch;
}

int usual_warmup(int64_t steps) { return int(std::clamp<int64_t>(steps / 25, 1, 700)); }
