// ./train --dump: one step's forward and backward, written out so that any other implementation can check every
// gradient.
#include <algorithm>

#include "error.h"
#include "trainer.h"

namespace {

// The batch as B × T matrices: rows padded with masked tokens, which form a segment of their own.
struct Padded {
  std::vector<int> tokens, targets, segment_ids;
  std::vector<std::vector<int>> prefix;  // of pass k ≥ 2: one entry a segment, padding included
  bool packed = false;                   // some row holds more than one segment
};

Padded pad(const Batch& batch, const PassPlan& plan, int T) {
  Padded p;
  p.prefix.resize(plan.prefix.size());
  int id = 0;
  auto close_row = [&] {
    int rest = int((p.tokens.size() + T - 1) / T * T - p.tokens.size());
    if (rest == 0) return;
    p.packed = true;
    p.tokens.resize(p.tokens.size() + rest, 0), p.targets.resize(p.targets.size() + rest, -1);
    p.segment_ids.resize(p.segment_ids.size() + rest, id++);
    for (auto& prefix : p.prefix) prefix.push_back(rest);
  };
  for (size_t s = 0; s < batch.segments.size(); ++s) {
    if (s > 0 && batch.row_of_segment[s] != batch.row_of_segment[s - 1]) close_row();
    const Segment& segment = batch.segments[s];
    p.tokens.insert(p.tokens.end(), batch.tokens.begin() + segment.row,
                    batch.tokens.begin() + segment.row + segment.rows);
    p.targets.insert(p.targets.end(), batch.targets.begin() + segment.row,
                     batch.targets.begin() + segment.row + segment.rows);
    p.segment_ids.resize(p.segment_ids.size() + segment.rows, id++);
    for (size_t k = 0; k < p.prefix.size(); ++k) p.prefix[k].push_back(plan.prefix[k][s]);
    if (segment.rows < T) p.packed = true;
  }
  close_row();
  return p;
}

Metadata metadata_of(const TrainOptions& o, float z_loss) {
  const ModelConfig& c = o.model;
  auto number = [](float x) { return write_json(Json(x)); };
  Metadata m = {{"num_hidden_layers", std::to_string(c.layers)},
                {"hidden_size", std::to_string(c.width)},
                {"num_attention_heads", std::to_string(c.heads)},
                {"num_key_value_heads", std::to_string(c.kv_heads)},
                {"head_dim", std::to_string(c.head_dim)},
                {"intermediate_size", std::to_string(c.ffn)},
                {"rope_theta", number(c.rope_theta)},
                {"rms_norm_eps", number(c.norm_eps)},
                {"residual_scale", number(c.residual_scale)},
                {"feedback_lambda", number(o.pass.lambda)},
                {"plain_input", name_of(c.plain_input)},
                {"fusion", name_of(c.fusion)}};
  if (c.window > 0) m.push_back({"sliding_window", std::to_string(c.window)});
  if (c.full_attention_every > 0) m.push_back({"full_attention_every", std::to_string(c.full_attention_every)});
  if (o.pass.gradient == GradientMode::detach) m.push_back({"detach", "true"});
  if (o.pass.gradient == GradientMode::last) m.push_back({"gradient", "last"});
  if (z_loss > 0) m.push_back({"z_loss", number(z_loss)});
  if (c.head_gate) m.push_back({"head_gate", "true"});
  if (c.branch_norm) m.push_back({"branch_norm", "true"});
  return m;
}

}  // namespace

void Trainer::dump() {
  int T = o_.model.context;
  o_.pass.jitter = 0;
  accumulation_ = 1;
  Step step;
  begin_step(step);
  if (step.targets == 0) fail("--dump: the step's batch has no target; use a larger --batch");
  loader_->seek(step.start);
  Batch batch = loader_->next(o_.batch);
  PassPlan plan = plan_micro_batch(step, batch, 0);
  kernels_->floats->zero(grads_.data(), int64_t(grads_.size()));
  add_gradients(step, batch, plan);

  Padded p = pad(batch, plan, T);
  int64_t B = int64_t(p.tokens.size()) / T;
  std::vector<TensorView> tensors = tensor_views(model_->layout, model_->block.data());
  OnHost grads(*kernels_->floats, grads_.data(), grads_.size());
  for (TensorView& grad : tensor_views(model_->layout, grads.data(), "grad.")) tensors.push_back(grad);
  tensors.push_back({"tokens", "I32", {B, T}, p.tokens.data()});
  tensors.push_back({"targets", "I32", {B, T}, p.targets.data()});
  if (p.packed) tensors.push_back({"segment_ids", "I32", {B, T}, p.segment_ids.data()});
  std::vector<double> means;
  for (int k = 0; k < step.passes; ++k) means.push_back(step.losses.mean(k));
  for (int k = 0; k < step.passes; ++k) tensors.push_back({"loss." + std::to_string(k + 1), "F64", {1}, &means[k]});
  for (int k = 2; k <= step.passes; ++k)
    tensors.push_back(
        {"prefix." + std::to_string(k), "I32", {int64_t(p.prefix[k - 2].size())}, p.prefix[k - 2].data()});
  write_safetensors(o_.dump, tensors, metadata_of(o_, step.z_loss));
  if (step.passes == 1 && schedule_->most_passes() > 1)
    notes_.push_back(text("note: step %lld has one pass by --passes %s: the feedback takes no part; --passes 2 has two",
                          (long long)step_ + 1, o_.passes.c_str()));
  show_notes();
  std::printf("wrote %s: %d pass%s over %lld × %d tokens, loss", o_.dump.c_str(), step.passes,
              step.passes == 1 ? "" : "es", (long long)B, T);
  for (double mean : means) std::printf(" %.6f", mean);
  std::printf("\n");
}
