#include "inference.h"

#include "devices.h"
#include "error.h"

// On a GPU matrices of bfloat16 are multiplied by activations of bfloat16; the CPU's table unpacks them.
static const Kernels& kernels_for_weights(const InferenceOptions& o) {
  std::string why_not;
  bool on_gpu = o.device != "cpu" && cuda_kernels(false, &why_not);
  return kernels_for(o.device, on_gpu && o.weights == WeightFormat::bf16 ? "bf16" : "fp32");
}

Inference::Inference(const Checkpoint& checkpoint, const InferenceOptions& o)
    : config_(read_config(checkpoint)),
      best_mode_(feedback_is_trained(checkpoint, config_) ? DecodeMode::soft : DecodeMode::standard),
      tokenizer_(read_tokenizer(checkpoint, config_.vocab, config_.end_of_text, o.tokenizer)),
      kernels_(kernels_for_weights(o)) {
  if (o.sequences < 1) fail("a decoder of %d sequences continues nothing: 1 or more", o.sequences);
  DecoderLimits limits{o.sequences, 256, config_.context};
  if (kernels_.pack_weight) limits.packed = o.weights;
  Plan plan;
  Weights::plan_memory(plan, kernels_, param_layout(config_));
  Decoder::plan_memory(plan, kernels_, config_, limits);
  require_memory(kernels_, plan);
  model_ = std::make_unique<Model>(config_);
  read_params(*model_, checkpoint);
  if (o.weights == WeightFormat::bf16) round_to_bf16(*model_);
  weights_ = std::make_unique<Weights>(kernels_, *model_);
  decoder_ = std::make_unique<Decoder>(kernels_, config_, weights_->params(), limits);
}

Inference::Inference(const std::string& path, const InferenceOptions& o) : Inference(find_checkpoint(path), o) {}

Continuation Inference::continue_text(const std::string& prompt, const Generation& g, const Say& say) {
  return generate(decoder(), tokenizer_, {prompt_tokens(prompt, "the prompt", tokenizer_, config_)}, 0, g, say,
                  nullptr)[0];
}

std::vector<double> Inference::score_text(const std::string& prompt, const std::string& continuation, DecodeMode mode) {
  std::vector<int> before = prompt_tokens(prompt, "the prompt", tokenizer_, config_);
  return score(decoder(), before, tokenizer_.encode(continuation), mode);
}
