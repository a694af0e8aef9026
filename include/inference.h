// A checkpoint made ready to decode: its tokenizer, its weights on a device, and a decoder.
//
//   Inference model(find_checkpoint("out"), {});
//   generate(model.decoder(), model.tokenizer(), {model.tokenizer().encode("It was")}, 0, {}, say, interrupted);
#pragma once
#include <memory>
#include <string>

#include "checkpoint.h"
#include "decode.h"
#include "model.h"
#include "tokenizer.h"

struct InferenceOptions {
  std::string device = "auto";    // auto, cpu, cuda
  std::string weights = "f32";    // f32, or bf16: rounded, which decodes faster
  int sequences = 1;              // continued together
  TokenizerFlags tokenizer = {};  // where the model has none of its own
};

class Inference {
 public:
  // Fails where memory does not suffice, or something does not fit together.
  Inference(const Checkpoint&, const InferenceOptions&);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ModelConfig& config() const { return config_; }
  const Kernels& kernels() const { return kernels_; }
  const ModelParams& params() const { return weights_->params(); }
  Decoder& decoder() { return *decoder_; }

 private:
  ModelConfig config_;
  Tokenizer tokenizer_;
  const Kernels& kernels_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Decoder> decoder_;
};
