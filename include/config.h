// What a model is: its sizes and choices, by the names of docs/model.md, and their form in config.json.
#pragma once
#include <string>

#include "words.h"

struct Json;

enum class Fusion { none, gate, concat, add };  // none: an ordinary transformer, without feedback parameters
enum class PlainInput { normed, raw };          // u = rmsnorm(e; g_in), or e itself
template <>
struct WordTable<Fusion> {
  static constexpr const char* what = "fusion";
  static constexpr Word<Fusion> all[] = {
      {Fusion::gate, "gate"}, {Fusion::concat, "concat"}, {Fusion::add, "add"}, {Fusion::none, "none"}};
};
template <>
struct WordTable<PlainInput> {
  static constexpr const char* what = "plain input";
  static constexpr Word<PlainInput> all[] = {{PlainInput::normed, "normed"}, {PlainInput::raw, "raw"}};
};

constexpr int kMostLayers = 4096;  // more is no model, but a damaged file

struct ModelConfig {
  int vocab = 257;               // tokens: as many as the tokenizer has ids
  int end_of_text = 256;         // the one that ends a document; −1: none
  int layers = 1;                // L
  int width = 64;                // D
  int heads = 4;                 // H
  int kv_heads = 4;              // G
  int head_dim = 16;             // d
  int ffn = 192;                 // F
  int context = 48;              // T: most positions a document may have
  int window = 0;                // query t sees keys t − window + 1 … t; 0: all
  int full_attention_every = 0;  // layer l sees all where (l + 1) % n = 0; 0: none does (if there is a window)
  float rope_theta = 10000;
  float norm_eps = 1e-6f;
  float residual_scale = 0;  // α; 0 stands for 1 / sqrt(2 L) until resolve()
  Fusion fusion = Fusion::gate;
  PlainInput plain_input = PlainInput::normed;
  bool head_gate = false;    // a sigmoid gate on each head's output
  bool branch_norm = false;  // a second norm on each branch's output

  int padded_vocab() const { return (vocab + 127) / 128 * 128; }
  int qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  int heads_width() const { return heads * head_dim; }
  int layer_window(int layer) const {
    return full_attention_every > 0 && (layer + 1) % full_attention_every == 0 ? 0 : window;
  }

  // Fails, naming the field, where sizes contradict each other; sets residual_scale where it is 0.
  void resolve();
};

// The named sizes: d12, d24, d36, d48 (the GPT-2 ladder), fbt-1b (the paper's), and small ones. Fails with the list of
// names.
ModelConfig preset(const std::string& name);
std::string preset_names();

Json to_json(const ModelConfig&);
ModelConfig config_from_json(const Json&, const std::string& path);  // path: for the error's line
