#include "config.h"

#include <cmath>

#include "error.h"
#include "flags.h"
#include "json.h"

namespace {

struct Preset {
  const char* name;
  int width, layers, heads, kv_heads, head_dim, ffn, vocab, context, window, full_every;
};

// F = 8D/3 rounded up to 64 on the GPT-2 ladder.
constexpr Preset kPresets[] = {
    {"nano", 64, 1, 4, 4, 16, 192, 257, 48, 0, 0},        {"micro", 128, 4, 4, 4, 32, 384, 257, 64, 0, 0},
    {"mini", 256, 6, 8, 4, 32, 704, 257, 1024, 0, 0},     {"d12", 768, 12, 12, 12, 64, 2048, 257, 1024, 0, 0},
    {"d24", 1024, 24, 16, 16, 64, 2752, 257, 1024, 0, 0}, {"d36", 1280, 36, 20, 20, 64, 3456, 257, 1024, 0, 0},
    {"d48", 1600, 48, 25, 25, 64, 4288, 257, 1024, 0, 0}, {"fbt-1b", 1536, 24, 16, 8, 96, 6656, 257, 8192, 2048, 6},
};

}  // namespace

ModelConfig preset(const std::string& name) {
  for (const Preset& p : kPresets) {
    if (name != p.name) continue;
    ModelConfig c;
    c.vocab = p.vocab, c.layers = p.layers, c.width = p.width, c.heads = p.heads, c.kv_heads = p.kv_heads;
    c.head_dim = p.head_dim, c.ffn = p.ffn, c.context = p.context;
    c.window = p.window, c.full_attention_every = p.full_every;
    return c;
  }
  fail("--model %s: no such preset; there are: %s", name.c_str(), preset_names().c_str());
}

std::string preset_names() {
  std::string names;
  for (const Preset& p : kPresets) names += std::string(names.empty() ? "" : ", ") + p.name;
  return names;
}

void ModelConfig::resolve() {
  auto positive = [](const char* name, int value) {
    if (value <= 0) fail("%s must be positive, not %d", name, value);
    if (value > 1 << 24) fail("%s is %d: larger than anything this engine is made for", name, value);
  };
  positive("vocabulary", vocab), positive("layers", layers), positive("width", width), positive("heads", heads);
  positive("kv-heads", kv_heads), positive("head-dim", head_dim), positive("ffn", ffn), positive("context", context);
  if (layers > kMostLayers) fail("layers is %d; this engine is made for at most %d", layers, kMostLayers);
  if (heads % kv_heads != 0) fail("heads (%d) must be a multiple of kv-heads (%d)", heads, kv_heads);
  if (head_dim % 2 != 0) fail("head-dim must be even (rotary embedding turns pairs), not %d", head_dim);
  if (int64_t(heads) * head_dim > 1 << 24 || int64_t(2) * ffn > 1 << 24) fail("heads × head-dim or ffn is too large");
  if (window < 0) fail("window must be 0 (none) or positive, not %d", window);
  if (full_attention_every < 0) fail("full-attention-every must be 0 or positive, not %d", full_attention_every);
  if (!(rope_theta >= 1) || !std::isfinite(rope_theta))
    fail("rope-theta must be at least 1, not %g", double(rope_theta));
  if (!(norm_eps > 0) || !std::isfinite(norm_eps)) fail("rms_norm_eps must be positive, not %g", double(norm_eps));
  if (residual_scale == 0) residual_scale = float(1 / std::sqrt(2.0 * layers));
  if (!(residual_scale > 0) || !std::isfinite(residual_scale))
    fail("residual-scale must be positive (0: 1/sqrt(2 layers)), not %g", double(residual_scale));
}

Json to_json(const ModelConfig& c) {
  return Json::object({{"model_type", "fullband"},
                       {"vocab_size", c.vocab},
                       {"eos_token_id", c.end_of_text},
                       {"hidden_size", c.width},
                       {"num_hidden_layers", c.layers},
                       {"num_attention_heads", c.heads},
                       {"num_key_value_heads", c.kv_heads},
                       {"head_dim", c.head_dim},
                       {"intermediate_size", c.ffn},
                       {"max_position_embeddings", c.context},
                       {"sliding_window", c.window},
                       {"full_attention_every", c.full_attention_every},
                       {"rope_theta", c.rope_theta},
                       {"rms_norm_eps", c.norm_eps},
                       {"residual_scale", c.residual_scale},
                       {"fusion", name_of(c.fusion)},
                       {"plain_input", name_of(c.plain_input)},
                       {"head_gate", c.head_gate},
                       {"branch_norm", c.branch_norm},
                       {"tie_word_embeddings", true}});
}

ModelConfig config_from_json(const Json& json, const std::string& path) {
  auto whole = [&](const char* name) {
    int64_t n = json.get_int(name, path);
    if (n < 0 || n > 1 << 30) fail("%s: `%s` is %lld, which is out of range", path.c_str(), name, (long long)n);
    return int(n);
  };
  if (json.kind != Json::Kind::object) fail("%s: should hold one JSON object", path.c_str());
  if (json.get_string("model_type", path) != "fullband")
    fail("%s: `model_type` is \"%s\", not \"fullband\"", path.c_str(), json.get_string("model_type", path).c_str());
  ModelConfig c;
  c.vocab = whole("vocab_size"), c.end_of_text = c.vocab - 1;
  if (json.find("eos_token_id")) c.end_of_text = json.get_int("eos_token_id", path) == -1 ? -1 : whole("eos_token_id");
  c.width = whole("hidden_size"), c.layers = whole("num_hidden_layers");
  c.heads = whole("num_attention_heads"), c.kv_heads = whole("num_key_value_heads"), c.head_dim = whole("head_dim");
  c.ffn = whole("intermediate_size"), c.context = whole("max_position_embeddings");
  c.window = whole("sliding_window"), c.full_attention_every = whole("full_attention_every");
  c.rope_theta = float(json.get_number("rope_theta", path)), c.norm_eps = float(json.get_number("rms_norm_eps", path));
  c.residual_scale = float(json.get_number("residual_scale", path));
  c.head_gate = json.get_bool("head_gate", path), c.branch_norm = json.get_bool("branch_norm", path);
  std::string fusion = json.get_string("fusion", path), plain_input = json.get_string("plain_input", path);
  try {
    c.fusion = value_named<Fusion>(fusion), c.plain_input = value_named<PlainInput>(plain_input);
    c.resolve();
  } catch (const Error& e) {
    fail("%s: %s", path.c_str(), e.what());
  }
  return c;
}
