#include "model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint.h"
#include "error.h"
#include "json.h"

Weights::Weights(const Kernels& run, Model& model) : run_(run), model_(model), params_(model.params) {
  if (run.in_host_memory) return;
  floats_ = Block(run, model.layout.floats);
  if (run.element_bytes != sizeof(float)) elements_ = Block(run, floats_for(run, model.layout.floats));
  params_ = view_params(run, model.config, model.layout, floats_.data(),
                        elements_.size() > 0 ? elements_.data() : floats_.data());
  write();
}

void Weights::plan_memory(Plan& plan, const Kernels& run, const ParamLayout& layout) {
  size_t elements = run.element_bytes != sizeof(float) ? floats_for(run, layout.floats) : 0;
  plan.add("parameters", double(layout.floats + elements) * sizeof(float));
}

void Weights::changed() {
  if (elements_.size() > 0) run_.from_floats(elements_.data(), floats_.data(), int64_t(floats_.size()));
}

void Weights::write() {
  if (floats_.size() == 0) return;
  run_.upload(floats_.data(), model_.block.data(), floats_.size() * sizeof(float));
  changed();
}

void Weights::read_back() {
  if (floats_.size() > 0) run_.download(model_.block.data(), floats_.data(), floats_.size() * sizeof(float));
}

ModelConfig read_config(const Checkpoint& checkpoint) {
  std::string path = checkpoint.path("config.json");
  ModelConfig config = config_from_json(checkpoint.read_json("config.json"), path);
  if (config.end_of_text >= config.vocab)
    fail("%s: `eos_token_id` is %d, which a `vocab_size` of %d does not have", path.c_str(), config.end_of_text,
         config.vocab);
  return config;
}

static void require_finite(const Model& model, const std::string& path) {
  if (const Param* p = find_not_finite(model))
    fail("%s: tensor %s holds numbers that are not finite: this model is broken, take an earlier one", path.c_str(),
         p->name.c_str());
}

void read_params(Model& model, const Checkpoint& checkpoint) {
  SafetensorsFile file(checkpoint.path("model.safetensors"));
  load_params(model.layout, model.block.data(), file);
  require_finite(model, file.path());
}

TakenOver init_from(Model& model, const Checkpoint& checkpoint) {
  TakenOver taken;
  SafetensorsFile file(checkpoint.path("model.safetensors"));
  for (const TensorView& t : file.tensors()) {
    if (model.layout.find(t.name)) continue;
    if (t.name.rfind("latent_feedback.", 0) != 0)
      fail("--init-from %s: tensor %s has no place in this model", file.path().c_str(), t.name.c_str());
    taken.left.push_back(t.name);
  }
  for (const Param& p : model.layout.params) {
    if (p.feedback && !file.find(p.name)) {
      taken.fresh.push_back(p.name);
    } else {
      std::memcpy(model.block.data() + p.offset, file.floats(p.name, p.shape()), p.size() * sizeof(float));
    }
  }
  require_finite(model, file.path());
  return taken;
}

bool feedback_is_trained(const Checkpoint& checkpoint, const ModelConfig& config) {
  if (config.fusion == Fusion::none) return false;
  std::string path = checkpoint.path("state.json");
  Json state = checkpoint.read_json("state.json");
  if (state.find("feedback_trained")) return state.get_bool("feedback_trained", path);
  std::vector<int64_t> counts;
  for (const Json& n : state.get("update_counts", path).items) counts.push_back(n.number > 0);
  return feedback_has_updates(param_layout(config), counts);
}

ModelConfig as_trained(ModelConfig config, bool feedback_trained) {
  if (!feedback_trained) config.fusion = Fusion::none;
  return config;
}

const Param* find_not_finite(const Model& model) {
  for (const Param& p : model.layout.params)
    for (size_t i = 0; i < p.size(); ++i)
      if (!std::isfinite(model.block.data()[p.offset + i])) return &p;
  return nullptr;
}

void round_to_bf16(Model& model) {
  for (const Param& p : model.layout.params) {
    if (p.kind != ParamKind::matrix && p.kind != ParamKind::embedding) continue;
    float* w = model.block.data() + p.offset;
    for (size_t i = 0; i < p.size(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, w + i, sizeof bits);
      bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;  // finite: read_params has looked
      std::memcpy(w + i, &bits, sizeof bits);
    }
  }
}
