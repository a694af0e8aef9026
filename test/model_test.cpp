// What a model is and what it is made of: configuration, parameters, their layout, initial values and files; and the
// small rooms below: exact functions, random numbers, memory.
#include "model.h"

#include <cstring>
#include <set>

#include "checkpoint.h"
#include "engine.h"
#include "exact.h"
#include "json.h"
#include "random.h"
#include "scratch.h"

namespace {

// --- Configuration -------------------------------------------------------------------------------------------------

TEST(ModelConfig, DerivesWidths) {
  ModelConfig c = tiny_config();
  EXPECT_EQ(c.padded_vocab(), 128);
  EXPECT_EQ(c.heads_width(), 16);
  EXPECT_EQ(c.qkv_width(), 32);
  c.vocab = 128;
  EXPECT_EQ(c.padded_vocab(), 128);
  c.vocab = 129;
  EXPECT_EQ(c.padded_vocab(), 256);
}

TEST(ModelConfig, EveryNthLayerSeesAll) {
  ModelConfig c = tiny_config();
  EXPECT_EQ(c.layer_window(0), 0);
  c.window = 5;
  EXPECT_EQ(c.layer_window(0), 5);
  EXPECT_EQ(c.layer_window(7), 5);
  c.full_attention_every = 3;
  for (int layer = 0; layer < 12; ++layer) EXPECT_EQ(c.layer_window(layer), (layer + 1) % 3 == 0 ? 0 : 5);
}

TEST(ModelConfig, ResolvesTheResidualScaleFromTheDepth) {
  ModelConfig c;
  c.layers = 8;
  c.resolve();
  EXPECT_EQ(c.residual_scale, 0.25f);
  c.residual_scale = 1, c.resolve();
  EXPECT_EQ(c.residual_scale, 1);
}

TEST(ModelConfig, NamesTheFieldThatContradicts) {
  struct {
    void (*change)(ModelConfig&);
    const char* message;
  } cases[] = {
      {[](ModelConfig& c) { c.vocab = 0; }, "vocabulary must be positive, not 0"},
      {[](ModelConfig& c) { c.layers = -1; }, "layers must be positive, not -1"},
      {[](ModelConfig& c) { c.width = 0; }, "width must be positive, not 0"},
      {[](ModelConfig& c) { c.heads = 0; }, "heads must be positive, not 0"},
      {[](ModelConfig& c) { c.kv_heads = 0; }, "kv-heads must be positive, not 0"},
      {[](ModelConfig& c) { c.head_dim = 0; }, "head-dim must be positive, not 0"},
      {[](ModelConfig& c) { c.ffn = -5; }, "ffn must be positive, not -5"},
      {[](ModelConfig& c) { c.context = 0; }, "context must be positive, not 0"},
      {[](ModelConfig& c) { c.width = 1 << 25; }, "width is 33554432: larger than anything this engine is made for"},
      {[](ModelConfig& c) { c.layers = 4097; }, "layers is 4097; this engine is made for at most 4096"},
      {[](ModelConfig& c) { c.heads = 6, c.kv_heads = 4; }, "heads (6) must be a multiple of kv-heads (4)"},
      {[](ModelConfig& c) { c.heads = 2, c.kv_heads = 4; }, "heads (2) must be a multiple of kv-heads (4)"},
      {[](ModelConfig& c) { c.head_dim = 5; }, "head-dim must be even (rotary embedding turns pairs), not 5"},
      {[](ModelConfig& c) { c.heads = 1 << 20, c.head_dim = 1 << 20; }, "heads × head-dim or ffn is too large"},
      {[](ModelConfig& c) { c.window = -1; }, "window must be 0 (none) or positive, not -1"},
      {[](ModelConfig& c) { c.full_attention_every = -2; }, "full-attention-every must be 0 or positive, not -2"},
      {[](ModelConfig& c) { c.rope_theta = 0.5f; }, "rope-theta must be at least 1, not 0.5"},
      {[](ModelConfig& c) { c.rope_theta = NAN; }, "rope-theta must be at least 1, not nan"},
      {[](ModelConfig& c) { c.norm_eps = 0; }, "rms_norm_eps must be positive, not 0"},
      {[](ModelConfig& c) { c.norm_eps = kInfinity; }, "rms_norm_eps must be positive, not inf"},
      {[](ModelConfig& c) { c.residual_scale = -1; }, "residual-scale must be positive (0: 1/sqrt(2 layers)), not -1"},
      {[](ModelConfig& c) { c.residual_scale = NAN; },
       "residual-scale must be positive (0: 1/sqrt(2 layers)), not nan"},
  };
  for (const auto& [change, message] : cases) {
    ModelConfig c;
    change(c);
    EXPECT_EQ(message_of([&] { c.resolve(); }), message);
  }
}

TEST(Presets, AreTheSizesTheyAreNamedFor) {
  struct {
    const char* name;
    int width, layers, heads;
  } ladder[] = {{"d12", 768, 12, 12}, {"d24", 1024, 24, 16}, {"d36", 1280, 36, 20}, {"d48", 1600, 48, 25}};
  for (auto [name, width, layers, heads] : ladder) {
    ModelConfig c = preset(name);
    EXPECT_EQ(c.width, width);
    EXPECT_EQ(c.layers, layers);
    EXPECT_EQ(c.heads, heads);
    EXPECT_EQ(c.kv_heads, heads);
    EXPECT_EQ(c.head_dim, 64);
    EXPECT_EQ(c.ffn, (8 * width / 3 + 63) / 64 * 64) << name;
  }
  ModelConfig paper = preset("fbt-1b");
  EXPECT_EQ(paper.width, 1536);
  EXPECT_EQ(paper.layers, 24);
  EXPECT_EQ(paper.heads, 16);
  EXPECT_EQ(paper.kv_heads, 8);
  EXPECT_EQ(paper.head_dim, 96);
  EXPECT_EQ(paper.ffn, 6656);
  EXPECT_EQ(paper.context, 8192);
  EXPECT_EQ(paper.window, 2048);
  EXPECT_EQ(paper.full_attention_every, 6);
}

TEST(Presets, AreAllSound) {
  std::string names = preset_names() + ", ";
  int count = 0;
  for (size_t begin = 0, end; (end = names.find(", ", begin)) != std::string::npos; begin = end + 2, ++count) {
    ModelConfig c = preset(names.substr(begin, end - begin));
    EXPECT_EQ(message_of([&] { c.resolve(); }), "");
    EXPECT_EQ(c.heads * c.head_dim % 2, 0);
  }
  EXPECT_GE(count, 6);
  EXPECT_EQ(message_of([] { preset("d13"); }), "--model d13: no such preset; there are: " + preset_names());
}

TEST(ModelConfig, D12WithGpt2sVocabularyIsOfThe124MillionClass) {
  ModelConfig c = preset("d12");
  c.vocab = 50257, c.fusion = Fusion::none;
  EXPECT_NEAR(double(param_layout(c).count()), 124e6, 1e6);
  int64_t plain = param_layout(c).count();
  c.fusion = Fusion::gate;
  EXPECT_EQ(param_layout(c).count() - plain, 2 * 768 * 768);
}

bool same(const ModelConfig& a, const ModelConfig& b) { return write_json(to_json(a)) == write_json(to_json(b)); }

TEST(ModelConfig, ComesBackFromJson) {
  for (auto [name, config] : tiny_configs())
    for (Fusion fusion : {Fusion::none, Fusion::gate, Fusion::concat, Fusion::add}) {
      config.fusion = fusion, config.rope_theta = 12345.678f, config.norm_eps = 1e-6f, config.residual_scale = 1 / 3.0f;
      std::string text = write_json_indented(to_json(config));
      ModelConfig back = config_from_json(parse_json(text, "c"), "c");
      EXPECT_TRUE(same(back, config)) << text;
      EXPECT_EQ(back.rope_theta, config.rope_theta);
      EXPECT_EQ(back.norm_eps, config.norm_eps);
      EXPECT_EQ(back.residual_scale, config.residual_scale);
      EXPECT_EQ(back.fusion, fusion);
      EXPECT_EQ(back.window, config.window);
      EXPECT_EQ(back.full_attention_every, config.full_attention_every);
      EXPECT_EQ(back.plain_input, config.plain_input);
      EXPECT_EQ(back.head_gate, config.head_gate);
      EXPECT_EQ(back.branch_norm, config.branch_norm);
      EXPECT_EQ(back.kv_heads, config.kv_heads);
      EXPECT_EQ(back.head_dim, config.head_dim);
      EXPECT_EQ(back.context, config.context);
    }
}

TEST(ModelConfig, NamesTheFileAndTheFieldWhereJsonIsWrong) {
  auto message = [](const char* name, Json value) {
    Json json = to_json(tiny_config());
    json.set(name, value);
    return message_of([&] { config_from_json(json, "c.json"); });
  };
  EXPECT_EQ(message("hidden_size", "8"), "c.json: `hidden_size` should be a whole number");
  EXPECT_EQ(message("hidden_size", 8.5), "c.json: `hidden_size` should be a whole number");
  EXPECT_EQ(message("hidden_size", -8), "c.json: `hidden_size` is -8, which is out of range");
  EXPECT_EQ(message("hidden_size", 1e12), "c.json: `hidden_size` is 1000000000000, which is out of range");
  EXPECT_EQ(message("hidden_size", 0), "c.json: width must be positive, not 0");
  EXPECT_EQ(message("num_key_value_heads", 3), "c.json: heads (4) must be a multiple of kv-heads (3)");
  EXPECT_EQ(message("eos_token_id", -2), "c.json: `eos_token_id` is -2, which is out of range");
  EXPECT_EQ(message("eos_token_id", -1), "") << "there is none";
  EXPECT_EQ(message("model_type", "qwen3"), "c.json: `model_type` is \"qwen3\", not \"fullband\"");
  EXPECT_EQ(message("fusion", "sum"), "c.json: fusion is gate, concat, add or none, not \"sum\"");
  EXPECT_EQ(message("plain_input", ""), "c.json: plain input is normed or raw, not \"\"");
  EXPECT_EQ(message("head_gate", 1), "c.json: `head_gate` should be true or false");
  EXPECT_EQ(message("rope_theta", Json()), "c.json: `rope_theta` should be a number");
  EXPECT_EQ(message_of([] { config_from_json(Json::array(), "c.json"); }), "c.json: should hold one JSON object");
  Json json = to_json(tiny_config());
  for (const auto& named : json.members) {
    const std::string& name = named.first;
    if (name == "tie_word_embeddings") continue;  // there for other engines
    if (name == "eos_token_id") continue;         // the last id, where it is not there
    Json without = json;
    std::erase_if(without.members, [&](const auto& member) { return member.first == name; });
    EXPECT_EQ(message_of([&] { config_from_json(without, "c.json"); }), "c.json: `" + name + "` is missing");
  }
}

// --- Layout --------------------------------------------------------------------------------------------------------

using Shapes = std::map<std::string, std::vector<int64_t>>;

TEST(ParamLayout, HasTheNamesAndShapesOfTheModel) {
  ModelConfig c = tiny_config();  // D 8, H·d 16, G·d 8, F 12
  c.layers = 1, c.head_gate = c.branch_norm = true;
  Shapes want = {
      {"model.embed_tokens.weight", {11, 8}},
      {"model.input_norm.weight", {8}},
      {"model.layers.0.input_layernorm.weight", {8}},
      {"model.layers.0.self_attn.q_proj.weight", {16, 8}},
      {"model.layers.0.self_attn.k_proj.weight", {8, 8}},
      {"model.layers.0.self_attn.v_proj.weight", {8, 8}},
      {"model.layers.0.self_attn.q_norm.weight", {4}},
      {"model.layers.0.self_attn.k_norm.weight", {4}},
      {"model.layers.0.self_attn.head_gate.weight", {4, 8}},
      {"model.layers.0.self_attn.o_proj.weight", {8, 16}},
      {"model.layers.0.post_attn_norm.weight", {8}},
      {"model.layers.0.post_attention_layernorm.weight", {8}},
      {"model.layers.0.mlp.gate_proj.weight", {12, 8}},
      {"model.layers.0.mlp.up_proj.weight", {12, 8}},
      {"model.layers.0.mlp.down_proj.weight", {8, 12}},
      {"model.layers.0.post_mlp_norm.weight", {8}},
      {"model.norm.weight", {8}},
  };
  std::map<Fusion, Shapes> feedback = {
      {Fusion::none, {}},
      {Fusion::gate, {{"latent_feedback.value.weight", {8, 8}}, {"latent_feedback.gate.weight", {8, 8}}}},
      {Fusion::concat,
       {{"latent_feedback.concat_value.weight", {8, 16}},
        {"latent_feedback.concat_value.bias", {8}},
        {"latent_feedback.concat_gate.weight", {8, 16}},
        {"latent_feedback.concat_gate.bias", {8}}}},
      {Fusion::add, {{"latent_feedback.add.weight", {8, 8}}}},
  };
  for (auto& [fusion, more] : feedback) {
    c.fusion = fusion;
    Shapes all = want, got;
    all.insert(more.begin(), more.end());
    ParamLayout layout = param_layout(c);
    int64_t count = 0;
    for (const Param& p : layout.params) {
      EXPECT_TRUE(got.emplace(p.name, p.shape()).second) << p.name << " twice";
      EXPECT_EQ(p.feedback, p.name.find("latent_feedback.") == 0);
      EXPECT_EQ(layout.find(p.name), &p);
      bool gain = p.name.find("norm") != std::string::npos, bias = p.name.find("bias") != std::string::npos;
      ParamKind kind = gain ? ParamKind::gain : bias ? ParamKind::bias : ParamKind::matrix;
      EXPECT_EQ(p.kind, p.name == "model.embed_tokens.weight" ? ParamKind::embedding : kind) << p.name;
      count += int64_t(p.size());
    }
    EXPECT_EQ(got, all);
    EXPECT_EQ(layout.count(), count);
    EXPECT_EQ(layout.find("model.layers.1.input_layernorm.weight"), nullptr);
  }
}

TEST(ParamLayout, FusedMatricesLieEndToEndAndNothingOverlaps) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    ParamLayout layout = param_layout(config);
    auto end_of = [&](const Param* p) { return p->offset + p->size(); };
    for (int l = 0; l < config.layers; ++l) {
      std::string layer = "model.layers." + std::to_string(l) + ".";
      const Param *q = layout.find(layer + "self_attn.q_proj.weight"),
                  *k = layout.find(layer + "self_attn.k_proj.weight"),
                  *v = layout.find(layer + "self_attn.v_proj.weight"),
                  *gate = layout.find(layer + "mlp.gate_proj.weight"), *up = layout.find(layer + "mlp.up_proj.weight");
      EXPECT_EQ(end_of(q), k->offset);
      EXPECT_EQ(end_of(k), v->offset);
      EXPECT_EQ(end_of(gate), up->offset);
      EXPECT_EQ(q->offset % 16, 0u);
      EXPECT_EQ(gate->offset % 16, 0u);
    }
    size_t end = 0;
    for (const Param& p : layout.params) {
      EXPECT_GE(p.offset, end) << p.name;
      end = end_of(&p);
      if (p.kind == ParamKind::embedding) end = p.offset + size_t(config.padded_vocab()) * config.width;
    }
    EXPECT_GE(layout.floats, end);
  }
}

TEST(ModelParams, PointAtTheirTensors) {
  ModelConfig c = tiny_config();
  for (bool options : {false, true})
    for (Fusion fusion : {Fusion::none, Fusion::gate, Fusion::concat, Fusion::add}) {
      c.fusion = fusion, c.head_gate = c.branch_norm = options;
      Model model(c);
      std::map<std::string, float*> want;
      const ModelParams& m = model.params;
      want["model.embed_tokens.weight"] = m.embedding, want["model.input_norm.weight"] = m.input_norm;
      want["model.norm.weight"] = m.final_norm;
      want["latent_feedback.value.weight"] = m.value, want["latent_feedback.gate.weight"] = m.gate;
      want["latent_feedback.concat_value.weight"] = m.concat_value;
      want["latent_feedback.concat_value.bias"] = m.concat_value_bias;
      want["latent_feedback.concat_gate.weight"] = m.concat_gate;
      want["latent_feedback.concat_gate.bias"] = m.concat_gate_bias, want["latent_feedback.add.weight"] = m.add;
      ASSERT_EQ(m.layers.size(), 2u);
      for (int l = 0; l < 2; ++l) {
        std::string layer = "model.layers." + std::to_string(l) + ".";
        const LayerParams& w = m.layers[l];
        want[layer + "input_layernorm.weight"] = w.input_norm, want[layer + "self_attn.q_proj.weight"] = w.qkv;
        want[layer + "self_attn.q_norm.weight"] = w.q_norm, want[layer + "self_attn.k_norm.weight"] = w.k_norm;
        want[layer + "self_attn.head_gate.weight"] = w.head_gate, want[layer + "self_attn.o_proj.weight"] = w.o;
        want[layer + "post_attn_norm.weight"] = w.post_attn_norm, want[layer + "mlp.gate_proj.weight"] = w.gate_up;
        want[layer + "post_attention_layernorm.weight"] = w.mlp_norm, want[layer + "mlp.down_proj.weight"] = w.down;
        want[layer + "post_mlp_norm.weight"] = w.post_mlp_norm;
      }
      for (auto [name, pointer] : want) {
        const Param* p = model.layout.find(name);
        EXPECT_EQ(pointer, p ? model.block.data() + p->offset : nullptr) << name;
      }
    }
}

// --- Initial values ------------------------------------------------------------------------------------------------

TEST(InitParams, HaveTheirVariance) {
  ModelConfig c = tiny_config();
  c.vocab = 257, c.width = 96, c.ffn = 160, c.heads = 6, c.kv_heads = 3, c.head_dim = 20, c.head_gate = true;
  for (Fusion fusion : {Fusion::gate, Fusion::concat, Fusion::add}) {
    c.fusion = fusion;
    Model model(c);
    init_params(model.layout, model.block.data(), 1);
    for (const Param& p : model.layout.params) {
      std::vector<float> values = tensor(model.block.data(), p);
      if (p.kind == ParamKind::gain || p.kind == ParamKind::bias) {
        EXPECT_EQ(values, std::vector<float>(p.size(), p.kind == ParamKind::gain ? 1.0f : 0.0f)) << p.name;
        continue;
      }
      double mean = 0, square = 0, n = double(p.size());
      for (float x : values) mean += double(x) / n, square += double(x) * double(x) / n;
      double variance = p.kind == ParamKind::embedding ? 0.02 * 0.02 : 1.0 / p.columns;
      EXPECT_NEAR(mean, 0, 5 * std::sqrt(variance / n)) << p.name;
      EXPECT_NEAR(square / variance, 1, 5 * std::sqrt(2 / n)) << p.name;
    }
  }
}

TEST(InitParams, AreAFunctionOfTheSeedAndTheNameAlone) {
  ModelConfig small = tiny_config(), large = small;
  large.layers = 4, large.fusion = Fusion::concat, large.head_gate = true, large.context = 99;
  Model a(small), b(large), c(small);
  init_params(a.layout, a.block.data(), 5), init_params(b.layout, b.block.data(), 5);
  init_params(c.layout, c.block.data(), 6);
  int matrices = 0;
  std::set<float> firsts;
  for (const Param& p : a.layout.params) {
    if (p.kind == ParamKind::gain) continue;
    if (const Param* there = b.layout.find(p.name)) {
      EXPECT_EQ(tensor(a.block.data(), p), tensor(b.block.data(), *there)) << p.name;
    }
    EXPECT_NE(tensor(a.block.data(), p), tensor(c.block.data(), p)) << p.name;
    firsts.insert(a.block.data()[p.offset]);
    ++matrices;
  }
  EXPECT_EQ(int(firsts.size()), matrices) << "two tensors begin alike";
}

TEST(InitParams, LeaveThePaddingZero) {
  Model model(tiny_config());
  init_params(model.layout, model.block.data(), 1);
  for (int i = 11 * 8; i < 128 * 8; ++i) ASSERT_EQ(model.params.embedding[i], 0);
}

// --- Files ---------------------------------------------------------------------------------------------------------

TEST(LoadParams, GivesBackWhatWasSaved) {
  Scratch folder;
  for (auto [name, config] : tiny_configs()) {
    Model saved(config), loaded(config);
    fill_with_noise(saved);
    write_safetensors(folder / "m", tensor_views(saved.layout, saved.block.data()), {});
    SafetensorsFile file(folder / "m");
    load_params(loaded.layout, loaded.block.data(), file);
    EXPECT_SAME_BITS(std::vector<float>(loaded.block.data(), loaded.block.data() + loaded.block.size()),
                     std::vector<float>(saved.block.data(), saved.block.data() + saved.block.size()));
  }
}

TEST(LoadParams, NamesTheTensorThatIsMissingStrangeOrOfAnotherShape) {
  Scratch folder;
  Model model(tiny_config());
  auto message = [&](const std::vector<TensorView>& tensors) {
    write_safetensors(folder / "m", tensors, {});
    SafetensorsFile file(folder / "m");
    return message_of([&] { load_params(model.layout, model.block.data(), file); });
  };
  std::vector<TensorView> tensors = tensor_views(model.layout, model.block.data()), changed = tensors;
  changed.erase(changed.begin() + 3);
  EXPECT_EQ(message(changed), (folder / "m") + ": tensor `" + tensors[3].name + "` is missing");
  changed = tensors, changed[0].shape = {8, 11};
  EXPECT_TRUE(has(message(changed), tensors[0].name)) << message(changed);
  EXPECT_TRUE(has(message(changed), "shape")) << message(changed);
  changed = tensors, changed[2].name = "model.layers.7.input_layernorm.weight";
  EXPECT_EQ(message(changed),
            (folder / "m") + ": tensor model.layers.7.input_layernorm.weight has no place in this model");
  changed = tensor_views(model.layout, model.block.data(), "grad.");
  EXPECT_TRUE(has(message(changed), "grad.model.embed_tokens.weight has no place")) << message(changed);
}

// A checkpoint of a model; the optimizer's part does not matter here.
Checkpoint save(const Scratch& folder, Model& model, const Json& state = Json::object()) {
  CheckpointContents contents;
  contents.model = tensor_views(model.layout, model.block.data());
  contents.config = to_json(model.config), contents.state = state;
  return find_checkpoint(save_checkpoint(folder.path, 1, contents, {}));
}

TEST(ReadParams, BringsBackAModelWithItsDescription) {
  Scratch folder;
  ModelConfig all_options = tiny_configs()["all options"];
  all_options.end_of_text = all_options.vocab - 1;
  Model saved(all_options);
  fill_with_noise(saved);
  Checkpoint checkpoint = save(folder, saved);
  ModelConfig config = read_config(checkpoint);
  EXPECT_TRUE(same(config, saved.config));
  Model loaded(config);
  read_params(loaded, checkpoint);
  for (const Param& p : saved.layout.params)
    EXPECT_SAME_BITS(tensor(loaded.block.data(), p), tensor(saved.block.data(), p));
}

TEST(ReadConfig, RefusesAnEndOfTextThatIsNoToken) {
  Scratch folder;
  ModelConfig config = tiny_config();
  config.end_of_text = config.vocab;
  Model model(config);
  Checkpoint checkpoint = save(folder, model);
  EXPECT_EQ(message_of([&] { read_config(checkpoint); }),
            checkpoint.path("config.json") + ": `eos_token_id` is 11, which a `vocab_size` of 11 does not have");
}

TEST(ReadParams, RefusesNumbersThatAreNotFinite) {
  Scratch folder;
  Model model(tiny_config());
  fill_with_noise(model);
  EXPECT_EQ(find_not_finite(model), nullptr);
  model.params.final_norm[3] = NAN;
  EXPECT_EQ(find_not_finite(model)->name, "model.norm.weight");
  model.params.layers[0].o[0] = kInfinity;
  EXPECT_EQ(find_not_finite(model)->name, "model.layers.0.self_attn.o_proj.weight");
  Checkpoint checkpoint = save(folder, model);
  EXPECT_TRUE(has(message_of([&] { read_params(model, checkpoint); }), "model.layers.0.self_attn.o_proj.weight"));
  EXPECT_TRUE(has(message_of([&] { init_from(model, checkpoint); }), "model.layers.0.self_attn.o_proj.weight"));
}

TEST(InitFrom, TakesAllButFeedbackThatIsMissingThere) {
  Scratch folder;
  ModelConfig bare = tiny_config();
  bare.fusion = Fusion::none;
  Model ordinary(bare), with(tiny_config()), start(tiny_config());
  fill_with_noise(ordinary, 50), fill_with_noise(with), fill_with_noise(start);
  init_from(with, save(folder, ordinary));
  for (const Param& p : with.layout.params) {
    const Param* there = ordinary.layout.find(p.name);
    EXPECT_SAME_BITS(tensor(with.block.data(), p),
                     there ? tensor(ordinary.block.data(), *there) : tensor(start.block.data(), p))
        << p.name;
  }
  init_from(ordinary, save(folder, with));  // and back: the feedback is left behind
  EXPECT_SAME_BITS(tensor(ordinary.block.data(), ordinary.layout.params[0]),
                   tensor(with.block.data(), with.layout.params[0]));
}

TEST(InitFrom, NamesWhatDoesNotFit) {
  Scratch folder;
  ModelConfig other = tiny_config();
  other.layers = 3;
  Model three(other), two(tiny_config());
  Checkpoint checkpoint = save(folder, three);
  EXPECT_TRUE(has(message_of([&] { init_from(two, checkpoint); }), "has no place in this model"));
  checkpoint = save(folder, two);
  EXPECT_TRUE(has(message_of([&] { init_from(three, checkpoint); }), "is missing"));
  other = tiny_config(), other.width = 16;
  Model wide(other);
  EXPECT_TRUE(has(message_of([&] { init_from(wide, checkpoint); }), "shape"));
}

TEST(AsTrained, AModelWhoseFeedbackWasNeverTrainedIsShownWithoutIt) {
  ModelConfig config = tiny_config();
  EXPECT_EQ(as_trained(config, true).fusion, Fusion::gate);
  EXPECT_EQ(as_trained(config, false).fusion, Fusion::none);
  Scratch folder;
  Model model(config);
  for (bool trained : {false, true}) {
    Checkpoint checkpoint = save(folder, model, Json::object({{"feedback_trained", trained}}));
    EXPECT_EQ(feedback_is_trained(checkpoint, config), trained);
    EXPECT_FALSE(feedback_is_trained(checkpoint, as_trained(config, false)));
  }
}

// g_in is read by fused inputs alone where plain ones are raw.
TEST(ParamLayout, TheInputNormIsTheFeedbacksWherePlainInputsAreRaw) {
  for (Fusion fusion : {Fusion::none, Fusion::gate, Fusion::concat, Fusion::add})
    for (PlainInput plain : {PlainInput::raw, PlainInput::normed}) {
      ModelConfig config = tiny_config();
      config.fusion = fusion, config.plain_input = plain;
      EXPECT_EQ(param_layout(config).find("model.input_norm.weight")->feedback, plain == PlainInput::raw);
    }
}

TEST(FeedbackIsTrained, IsToldByItsMatricesInCheckpointsThatDoNotSay) {
  Scratch folder;
  for (Fusion fusion : {Fusion::gate, Fusion::concat, Fusion::add}) {
    ModelConfig config = tiny_config();
    config.fusion = fusion, config.plain_input = PlainInput::raw;
    Model model(config);
    for (int fused_steps : {0, 3}) {
      Json counts = Json::array();  // as they were when one-pass steps counted for g_in too
      for (const Param& p : model.layout.params)
        counts.items.push_back(p.name.rfind("latent_feedback.", 0) == 0 ? fused_steps : 10);
      Checkpoint checkpoint = save(folder, model, Json::object({{"update_counts", counts}}));
      EXPECT_EQ(feedback_is_trained(checkpoint, config), fused_steps > 0);
    }
  }
}

// --- Exact functions -----------------------------------------------------------------------------------------------

// How many doubles lie between two.
int64_t steps_between(double a, double b) {
  auto place = [](double x) {
    int64_t bits = std::bit_cast<int64_t>(x);
    return bits < 0 ? std::numeric_limits<int64_t>::min() - bits : bits;
  };
  return std::abs(place(a) - place(b));
}

TEST(Exact, ExpIsWithinTwoUnitsInTheLastPlace) {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    double x = (random.uniform() - 0.5) * (i % 2 ? 1400 : 4);
    ASSERT_LE(steps_between(exact_exp(x), std::exp(x)), 2) << x;
  }
  for (double x : {0.0, -0.0, 1.0, -1.0, 1e-300, -1e-20, 709.78, 709.7827128933840, -708.39, -708.4, -745.13, -720.5})
    EXPECT_LE(steps_between(exact_exp(x), std::exp(x)), 2) << x;
}

TEST(Exact, ExpOfItsEdges) {
  EXPECT_EQ(exact_exp(0), 1);
  EXPECT_EQ(exact_exp(709.79), kInfinity);
  EXPECT_EQ(exact_exp(1e300), kInfinity);
  EXPECT_EQ(exact_exp(kInfinity), kInfinity);
  EXPECT_EQ(exact_exp(-kInfinity), 0);
  EXPECT_EQ(exact_exp(-1e300), 0);
  EXPECT_EQ(exact_exp(-745.2), 0);
  EXPECT_TRUE(std::isnan(exact_exp(NAN)));
}

TEST(Exact, LogIsWithinTwoUnitsInTheLastPlace) {
  Random random(2);
  for (int i = 0; i < 200000; ++i) {
    double x = i % 2 ? std::exp((random.uniform() - 0.5) * 1400) : 0.5 + random.uniform();
    ASSERT_LE(steps_between(exact_log(x), std::log(x)), 2) << x;
  }
  for (double x : {0x1p-1074, 3e-320, 0x1p-1022, 0x1.fffffffffffffp1023, 1 + 0x1p-52, 1 - 0x1p-53, 2.0,
                   1.4142135623730951, 1.4142135623730954, 0.70710678, 1e-308})
    EXPECT_LE(steps_between(exact_log(x), std::log(x)), 2) << x;
}

TEST(Exact, LogOfItsEdges) {
  EXPECT_EQ(exact_log(1), 0);
  EXPECT_EQ(exact_log(0), -kInfinity);
  EXPECT_EQ(exact_log(-0.0), -kInfinity);
  EXPECT_EQ(exact_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exact_log(-1)));
  EXPECT_TRUE(std::isnan(exact_log(-kInfinity)));
  EXPECT_TRUE(std::isnan(exact_log(NAN)));
}

// Angles are positions times frequencies of at most 1: 8192 is the longest context of a preset. Far beyond it the
// reduction by multiples of π/2 costs a little more.
TEST(Exact, SineAndCosineAreWithinTwoUnitsInTheLastPlace) {
  Random random(3);
  for (int i = 0; i < 200000; ++i) {
    double x = (2 * random.uniform() - 1) * (i % 4 == 0 ? 1 : i % 4 == 1 ? 100 : i % 4 == 2 ? 8192 : 0x1p20);
    int64_t most = std::abs(x) <= 8192 ? 2 : 3;
    ASSERT_LE(steps_between(exact_sin(x), std::sin(x)), most) << x;
    ASSERT_LE(steps_between(exact_cos(x), std::cos(x)), most) << x;
  }
  for (int n = 0; n < 5000; ++n)  // nearest to the zeros, where cancellation is worst
    for (double x : {n * 1.5707963267948966, std::nextafter(n * 1.5707963267948966, 1e9), double(n)}) {
      ASSERT_LE(steps_between(exact_sin(x), std::sin(x)), 2) << x;
      ASSERT_LE(steps_between(exact_cos(-x), std::cos(x)), 2) << x;
    }
  EXPECT_EQ(exact_sin(0), 0);
  EXPECT_EQ(exact_cos(0), 1);
  EXPECT_EQ(exact_sin(1e-300), 1e-300);
}

TEST(RopeTable, HoldsCosinesThenSinesOfEachPositionsAngles) {
  for (int head_dim : {2, 4, 18, 64})
    for (float theta : {1.0f, 100.0f, 10000.0f, 1e6f}) {
      constexpr int kPositions = 2100;
      std::vector<float> table(size_t(kPositions) * head_dim, 9.0f), start(size_t(5) * head_dim);
      rope_table(table.data(), kPositions, head_dim, theta);
      rope_table(start.data(), 5, head_dim, theta);
      for (int p : {0, 1, 2, 3, 17, 1024, 2099})
        for (int i = 0; i < head_dim / 2; ++i) {
          double angle = p * std::pow(double(theta), -2.0 * i / head_dim);
          EXPECT_NEAR(table[p * head_dim + i], std::cos(angle), 4e-8);
          EXPECT_NEAR(table[p * head_dim + head_dim / 2 + i], std::sin(angle), 4e-8);
        }
      EXPECT_SAME_BITS(start, std::vector<float>(table.begin(), table.begin() + start.size()));
    }
}

// --- Random numbers ------------------------------------------------------------------------------------------------

TEST(Random, NormalHasTheMomentsOfTheNormalDistribution) {
  Random random(4);
  constexpr int n = 200000;
  double moment[5] = {};
  int beyond_two = 0;
  for (int i = 0; i < n; ++i) {
    double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    for (int k = 1; k <= 4; ++k) moment[k] += std::pow(x, k) / n;
    beyond_two += std::abs(x) > 2;
  }
  EXPECT_NEAR(moment[1], 0, 0.01);
  EXPECT_NEAR(moment[2], 1, 0.015);
  EXPECT_NEAR(moment[3], 0, 0.04);
  EXPECT_NEAR(moment[4], 3, 0.1);
  EXPECT_NEAR(double(beyond_two) / n, 0.0455, 0.002);
}

TEST(Random, UniformNumbersFillTheirRange) {
  Random random(5);
  constexpr int n = 100000;
  double mean = 0, symmetric = 0;
  std::vector<int> below(7);
  for (int i = 0; i < n; ++i) {
    double u = random.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    mean += u / n;
    float s = random_symmetric(99, uint64_t(i));
    ASSERT_TRUE(s >= -1 && s < 1);
    symmetric += double(s) / n;
    ++below.at(random.below(7));
  }
  EXPECT_NEAR(mean, 0.5, 0.005);
  EXPECT_NEAR(symmetric, 0, 0.01);
  for (int count : below) EXPECT_NEAR(count, n / 7, 500);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0);
}

TEST(Random, KeysDependOnEveryPartAndItsPlace) {
  std::set<uint64_t> keys;
  for (uint64_t seed : {0, 1})
    for (Purpose purpose : {Purpose::weights, Purpose::jitter})
      for (uint64_t a : {0, 1, 2})
        for (uint64_t b : {0, 1, 2}) keys.insert(random_key(seed, purpose, a, b));
  EXPECT_EQ(keys.size(), 36u);
  EXPECT_NE(random_key(1, Purpose::jitter, 0), random_key(1, Purpose::jitter));
  Random first(random_key(1, Purpose::shuffle, 2)), again(random_key(1, Purpose::shuffle, 2));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(first.bits(), again.bits());
}

// --- Memory --------------------------------------------------------------------------------------------------------

TEST(Block, IsZeroAndAligned) {
  for (size_t n : {size_t(0), size_t(1), size_t(15), size_t(16), size_t(1001)}) {
    Block block(n);
    EXPECT_EQ(block.size(), n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % 64, 0u);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(block.data()[i], 0);
    std::fill_n(block.data(), n, 3.0f);
    block = Block(n);  // perhaps the same memory
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(block.data()[i], 0);
  }
  Block none;
  EXPECT_EQ(none.size(), 0u);
}

TEST(Cutter, CountsAndThenHandsOutWholeCacheLines) {
  auto cut = [](Cutter& cutter) {
    return std::vector<float*>{cutter.acts(3), cutter.floats(16), cutter.acts(0), cutter.acts(17), cutter.floats(1)};
  };
  Cutter count(cpu_kernels());
  for (float* p : cut(count)) EXPECT_EQ(p, nullptr);
  EXPECT_EQ(count.used(), 16u + 16 + 0 + 32 + 16);
  Block block(count.used());
  Cutter cutter(cpu_kernels(), block.data());
  std::vector<float*> views = cut(cutter);
  EXPECT_EQ(views, (std::vector<float*>{block.data(), block.data() + 16, block.data() + 32, block.data() + 32,
                                        block.data() + 64}));
  EXPECT_EQ(cutter.used(), block.size());
}

TEST(Plan, AddsUpAndIsHeldAgainstTheMachine) {
  Plan plan;
  EXPECT_EQ(plan.total(), 0);
  plan.add("parameters", 1000), plan.add("activations", 2500);
  EXPECT_EQ(plan.total(), 3500);
  EXPECT_EQ(message_of([&] { require_memory(cpu_kernels(), plan); }), "");
  if (available_memory() == 0) return;
  plan.add("a tape", 1e18);
  std::string message = message_of([&] { require_memory(cpu_kernels(), plan); });
  EXPECT_TRUE(has(message, "the largest part is a tape")) << message;
  EXPECT_TRUE(has(message, "use a smaller model, batch or context")) << message;
}

}  // namespace
