// A model made by hand, whose greedy next token is a given function of the last one, in every decoding mode: one layer,
// one-hot embeddings, attention that sees its own position only and maps a token's direction to its successor's, large
// enough to drown the token itself; and a feed-forward part that does nothing. The feedback carries the state as it is,
// and the state points where the sampled token does.
#pragma once
#include <string>

#include "model.h"
#include "bytes.h"

class Automaton {
 public:
  // Each byte of `text` is followed by the next one; a token without a successor repeats itself.
  Automaton(const std::string& text, int context) : model_(form(context)) {
    init_params(model_.layout, model_.block.data(), 1);
    for (const Param& p : model_.layout.params)
      if (p.kind != ParamKind::gain) std::fill_n(model_.block.data() + p.offset, p.size(), 0.0f);
    int D = kWidth;
    const LayerParams& layer = model_.params.layers[0];
    float* value = layer.qkv + size_t(2) * D * D;  // behind q and k
    for (int i = 0; i < kByteVocab; ++i) {
      model_.params.embedding[size_t(i) * D + i] = 1;
      value[size_t(i) * D + i] = 1;
      model_.params.value[size_t(i) * D + i] = 1;
      follow(i, i);
    }
    for (size_t i = 0; i + 1 < text.size(); ++i) follow(uint8_t(text[i]), uint8_t(text[i + 1]));
  }
  void follow(int token, int next) {
    float* output = model_.params.layers[0].o;
    for (int i = 0; i < kWidth; ++i) output[size_t(i) * kWidth + token] = i == next ? 100 : 0;
  }
  const ModelConfig& config() const { return model_.config; }
  const ModelParams& params() const { return model_.params; }

 private:
  static constexpr int kWidth = kByteVocab + 1;  // even, as a head's width must be
  static ModelConfig form(int context) {
    ModelConfig c;
    c.layers = 1, c.width = kWidth, c.heads = c.kv_heads = 1, c.head_dim = kWidth, c.ffn = 2, c.context = context;
    c.window = 1;
    c.resolve();
    return c;
  }
  Model model_;
};
