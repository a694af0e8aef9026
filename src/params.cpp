#include "params.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/parallel.h"
#include "error.h"
#include "random.h"

std::vector<int64_t> Param::shape() const {
  if (kind == ParamKind::gain || kind == ParamKind::bias) return {columns};
  return {rows, columns};
}

int64_t ParamLayout::count() const {
  int64_t n = 0;
  for (const Param& p : params) n += int64_t(p.size());
  return n;
}

const Param* ParamLayout::find(const std::string& name) const {
  for (const Param& p : params)
    if (p.name == name) return &p;
  return nullptr;
}

namespace {

// Appends parameters; each group starts on a cache line, its members lie end to end.
struct Builder {
  ParamLayout& layout;
  void group(size_t padding = 0) { layout.floats = (layout.floats + padding + 15) / 16 * 16; }
  void member(const std::string& name, int rows, int columns, ParamKind kind, bool feedback = false) {
    layout.params.push_back({name, rows, columns, kind, feedback, layout.floats});
    layout.floats += size_t(rows) * columns;
  }
  void alone(const std::string& name, int rows, int columns, ParamKind kind, bool feedback = false) {
    group();
    member(name, rows, columns, kind, feedback);
  }
};

void add_layer(Builder& b, const ModelConfig& c, const std::string& layer) {
  using enum ParamKind;
  b.alone(layer + "input_layernorm.weight", 1, c.width, gain);
  b.alone(layer + "self_attn.q_proj.weight", c.heads_width(), c.width, matrix);
  b.member(layer + "self_attn.k_proj.weight", c.kv_heads * c.head_dim, c.width, matrix);
  b.member(layer + "self_attn.v_proj.weight", c.kv_heads * c.head_dim, c.width, matrix);
  b.alone(layer + "self_attn.q_norm.weight", 1, c.head_dim, gain);
  b.alone(layer + "self_attn.k_norm.weight", 1, c.head_dim, gain);
  if (c.head_gate) b.alone(layer + "self_attn.head_gate.weight", c.heads, c.width, matrix);
  b.alone(layer + "self_attn.o_proj.weight", c.width, c.heads_width(), matrix);
  if (c.branch_norm) b.alone(layer + "post_attn_norm.weight", 1, c.width, gain);
  b.alone(layer + "post_attention_layernorm.weight", 1, c.width, gain);
  b.alone(layer + "mlp.gate_proj.weight", c.ffn, c.width, matrix);
  b.member(layer + "mlp.up_proj.weight", c.ffn, c.width, matrix);
  b.alone(layer + "mlp.down_proj.weight", c.width, c.ffn, matrix);
  if (c.branch_norm) b.alone(layer + "post_mlp_norm.weight", 1, c.width, gain);
}

void add_feedback(Builder& b, const ModelConfig& c) {
  using enum ParamKind;
  const std::string name = "latent_feedback.";
  if (c.fusion == Fusion::gate) {
    b.alone(name + "value.weight", c.width, c.width, matrix, true);
    b.alone(name + "gate.weight", c.width, c.width, matrix, true);
  } else if (c.fusion == Fusion::concat) {
    b.alone(name + "concat_value.weight", c.width, 2 * c.width, matrix, true);
    b.alone(name + "concat_value.bias", 1, c.width, bias, true);
    b.alone(name + "concat_gate.weight", c.width, 2 * c.width, matrix, true);
    b.alone(name + "concat_gate.bias", 1, c.width, bias, true);
  } else if (c.fusion == Fusion::add) {
    b.alone(name + "add.weight", c.width, c.width, matrix, true);
  }
}

std::string layer_name(int l) { return "model.layers." + std::to_string(l) + "."; }

}  // namespace

ParamLayout param_layout(const ModelConfig& c) {
  ParamLayout layout;
  Builder b{layout};
  b.alone("model.embed_tokens.weight", c.vocab, c.width, ParamKind::embedding);
  b.group(size_t(c.padded_vocab() - c.vocab) * c.width);
  b.alone("model.input_norm.weight", 1, c.width, ParamKind::gain, c.plain_input == PlainInput::raw);
  for (int l = 0; l < c.layers; ++l) add_layer(b, c, layer_name(l));
  b.alone("model.norm.weight", 1, c.width, ParamKind::gain);
  add_feedback(b, c);
  b.group();
  return layout;
}

// Its matrices tell: checkpoints of earlier versions count one-pass steps as updates of the input norm too.
bool feedback_has_updates(const ParamLayout& layout, const std::vector<int64_t>& update_counts) {
  for (size_t i = 0; i < std::min(update_counts.size(), layout.params.size()); ++i) {
    const Param& p = layout.params[i];
    if (p.feedback && p.kind == ParamKind::matrix && update_counts[i] > 0) return true;
  }
  return false;
}

// `place` says where a parameter lies.
template <class Place>
static ModelParams view(const ModelConfig& c, const ParamLayout& layout, Place place) {
  auto at = [&](const std::string& name) {
    const Param* p = layout.find(name);
    return p ? place(*p) : nullptr;
  };
  ModelParams m;
  m.embedding = at("model.embed_tokens.weight");
  m.input_norm = at("model.input_norm.weight");
  m.final_norm = at("model.norm.weight");
  for (int l = 0; l < c.layers; ++l) {
    std::string n = layer_name(l);
    m.layers.push_back(
        {at(n + "input_layernorm.weight"), at(n + "self_attn.q_proj.weight"), at(n + "self_attn.q_norm.weight"),
         at(n + "self_attn.k_norm.weight"), at(n + "self_attn.head_gate.weight"), at(n + "self_attn.o_proj.weight"),
         at(n + "post_attn_norm.weight"), at(n + "post_attention_layernorm.weight"), at(n + "mlp.gate_proj.weight"),
         at(n + "mlp.down_proj.weight"), at(n + "post_mlp_norm.weight")});
  }
  m.value = at("latent_feedback.value.weight");
  m.gate = at("latent_feedback.gate.weight");
  m.concat_value = at("latent_feedback.concat_value.weight");
  m.concat_value_bias = at("latent_feedback.concat_value.bias");
  m.concat_gate = at("latent_feedback.concat_gate.weight");
  m.concat_gate_bias = at("latent_feedback.concat_gate.bias");
  m.add = at("latent_feedback.add.weight");
  return m;
}

ModelParams view_params(const ModelConfig& c, const ParamLayout& layout, float* block) {
  return view(c, layout, [&](const Param& p) { return block + p.offset; });
}

ModelParams view_params(const Kernels& run, const ModelConfig& c, const ParamLayout& layout, float* floats,
                        act* elements) {
  return view(c, layout, [&](const Param& p) {
    bool multiplied = p.kind == ParamKind::matrix || p.kind == ParamKind::embedding;
    return multiplied ? run.at(elements, p.offset) : floats + p.offset;
  });
}

static uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0;
  for (char c : name) hash = scatter_bits(hash ^ uint64_t(uint8_t(c)));
  return hash;
}

namespace {

struct NormalValues {
  float* values;
  size_t count;
  uint64_t key;
  double deviation;
};

// One thread's share: a value depends on the key and its number alone.
void draw_normal_values(void* context, int thread, int threads) {
  const NormalValues& n = *static_cast<NormalValues*>(context);
  size_t begin = n.count * thread / threads, end = n.count * (thread + 1) / threads;
  Random random(n.key, 2 * begin);
  for (size_t i = begin; i < end; ++i) n.values[i] = float(n.deviation * random.normal());
}

}  // namespace

void init_params(const ParamLayout& layout, float* block, uint64_t seed) {
  for (const Param& p : layout.params) {
    float* values = block + p.offset;
    if (p.kind == ParamKind::gain || p.kind == ParamKind::bias) {
      std::fill(values, values + p.size(), p.kind == ParamKind::gain ? 1.0f : 0.0f);
      continue;
    }
    double deviation = p.kind == ParamKind::embedding ? 0.02 : 1 / std::sqrt(double(p.columns));
    NormalValues normal{values, p.size(), random_key(seed, Purpose::weights, hash_of(p.name)), deviation};
    run_on_threads(draw_normal_values, &normal);
  }
}

std::vector<TensorView> tensor_views(const ParamLayout& layout, const float* block, const std::string& prefix) {
  std::vector<TensorView> views;
  for (const Param& p : layout.params) views.push_back({prefix + p.name, "F32", p.shape(), block + p.offset});
  return views;
}

void load_params(const ParamLayout& layout, float* block, const SafetensorsFile& file) {
  for (const TensorView& t : file.tensors())
    if (!layout.find(t.name)) fail("%s: tensor %s has no place in this model", file.path().c_str(), t.name.c_str());
  for (const Param& p : layout.params)
    std::memcpy(block + p.offset, file.floats(p.name, p.shape()), p.size() * sizeof(float));
}
