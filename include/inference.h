// A checkpoint made ready to decode: its tokenizer, its weights on a device, and a decoder. What programs that link the
// library begin with (docs/library.md).
//
//   Inference model("out");
//   std::string more = model.continue_text("It was", {.mode = model.best_mode()}).text;
#pragma once
#include <memory>
#include <string>

#include "checkpoint.h"
#include "decode.h"
#include "generate.h"
#include "model.h"
#include "tokenizer.h"

struct InferenceOptions {
  std::string device = "auto";               // auto, cpu, cuda
  WeightFormat weights = WeightFormat::f32;  // or bf16: rounded, which decodes faster
  int sequences = 1;                         // continued together
  TokenizerFlags tokenizer = {};             // where the model has none of its own
};

class Inference {
 public:
  // Fails where memory does not suffice, the device is not there, or something does not fit together.
  explicit Inference(const Checkpoint&, const InferenceOptions& = {});
  // A checkpoint's folder, or a run's, of which the newest sound one is meant.
  explicit Inference(const std::string& path, const InferenceOptions& = {});
  // Stays where it was made, for its decoder refers to it; a std::unique_ptr of one can be moved.
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  DecodeMode best_mode() const { return best_mode_; }  // soft, or standard where no feedback is trained
  // A prompt's new text; say(0, piece) gets it while it comes about. Fails where the prompt is longer than the context.
  Continuation continue_text(const std::string& prompt, const Generation&, const Say& say = nullptr);
  // Natural logarithms of the probabilities of the continuation's tokens, each after the prompt and the tokens before it.
  // They are encoded apart from the prompt's, and together at most the context and one.
  std::vector<double> score_text(const std::string& prompt, const std::string& continuation, DecodeMode);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ModelConfig& config() const { return config_; }
  const Kernels& kernels() const { return kernels_; }
  const ModelParams& params() const { return weights_->params(); }
  Decoder& decoder() { return *decoder_; }

 private:
  ModelConfig config_;
  DecodeMode best_mode_;
  Tokenizer tokenizer_;
  const Kernels& kernels_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Decoder> decoder_;
};
