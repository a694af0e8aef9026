#include "feedback.h"

FeedbackTape cut_feedback_tape(Cutter& cutter, const ModelConfig& c, size_t rows) {
  size_t D = c.width;
  FeedbackTape t = {};
  t.carried = cutter.acts(rows * D), t.value = cutter.acts(rows * D), t.fused = cutter.acts(rows * D);
  t.rrms = cutter.floats(rows);
  if (c.fusion == Fusion::concat) t.pair = cutter.acts(rows * 2 * D), t.gate = cutter.acts(rows * D);
  return t;
}

FeedbackTape Feedback::from_row(FeedbackTape t, size_t row) const {
  size_t D = config.width;
  for (act** p : {&t.carried, &t.value, &t.fused, &t.gate}) *p = kernels.at(*p, row * D);
  t.pair = kernels.at(t.pair, row * 2 * D), t.rrms += row;
  return t;
}

FeedbackGradient cut_feedback_gradient(Cutter& cutter, const ModelConfig& c, size_t rows) {
  size_t D = c.width;
  FeedbackGradient g = {};
  g.dfused = cutter.acts(rows * D), g.dvalue = cutter.acts(rows * D), g.dcarried = cutter.acts(rows * D);
  if (c.fusion == Fusion::concat) g.dgate = cutter.acts(rows * D), g.dpair = cutter.acts(rows * 2 * D);
  return g;
}

EmbeddedTokens cut_embedded_tokens(Cutter& cutter, const ModelConfig& c, size_t tokens, bool feedback) {
  size_t n = tokens * c.width;
  EmbeddedTokens t = {};
  t.e = cutter.acts(n), t.embedded = cutter.acts(n), t.rrms = cutter.floats(tokens);
  if (feedback) t.mixed = cutter.acts(n);
  if (feedback && c.fusion == Fusion::gate) t.gates = cutter.acts(n);
  return t;
}

void Feedback::embed(const ModelParams& params, const EmbeddedTokens& t, const int* tokens, int count,
                     bool fused) const {
  int D = config.width;
  kernels.gather_rows(t.e, params.embedding, tokens, count, D);
  kernels.rmsnorm_forward(t.embedded, t.rrms, t.e, params.input_norm, count, D, config.norm_eps);
  if (fused && config.fusion == Fusion::gate) gates(params, t.gates, t.embedded, count);
}

void Feedback::gates(const ModelParams& params, act* gates, const act* embedded, int rows) const {
  multiply(kernels, packed, gates, embedded, params.gate, rows, config.width, config.width);
  kernels.sigmoid(gates, gates, int64_t(rows) * config.width);
}

void Feedback::forward(const ModelParams& params, const FeedbackTape& tape, act* u, const EmbeddedTokens& tokens,
                       const act* h, const InputRows& rows) const {
  int D = config.width, plain = int(rows.plain.size()), fused = int(rows.fused.size());
  if (fused == 0) return kernels.gather_rows(u, plain_input(tokens), rows.plain_token.data(), plain, D);
  if (plain == 0) return fuse(params, tape, u, tokens, h, rows);
  fuse(params, tape, tokens.mixed, tokens, h, rows);
  kernels.scatter_rows(u, tokens.mixed, rows.fused.data(), fused, D);
  kernels.gather_rows(tokens.mixed, plain_input(tokens), rows.plain_token.data(), plain, D);
  kernels.scatter_rows(u, tokens.mixed, rows.plain.data(), plain, D);
}

void Feedback::fuse(const ModelParams& params, const FeedbackTape& t, act* u, const EmbeddedTokens& tokens,
                    const act* h, const InputRows& f) const {
  const Kernels& run = kernels;
  int D = config.width, rows = int(f.fused.size());
  const int* token = f.fused_token.data();
  run.carry_forward(t.carried, h, f.source.data(), f.noise_key.data(), f.jitter, rows, D);
  if (config.fusion == Fusion::gate) {
    multiply(run, packed, t.value, t.carried, params.value, rows, D, D);
    run.gate_forward(t.fused, t.value, tokens.gates, token, rows, D);
  } else if (config.fusion == Fusion::concat) {
    run.concat_forward(t.pair, tokens.embedded, token, t.carried, rows, D);
    multiply(run, packed, t.value, t.pair, params.concat_value, rows, 2 * D, D);
    run.bias_forward(t.value, params.concat_value_bias, rows, D);
    multiply(run, packed, t.gate, t.pair, params.concat_gate, rows, 2 * D, D);
    run.bias_forward(t.gate, params.concat_gate_bias, rows, D);
    run.sigmoid(t.gate, t.gate, int64_t(rows) * D);
    run.gate_forward(t.fused, t.value, t.gate, nullptr, rows, D);
  } else {
    run.gather_rows(t.value, tokens.embedded, token, rows, D);
    multiply(run, packed, t.fused, t.carried, params.add, rows, D, D);
    run.add(t.fused, t.value, int64_t(rows) * D);
  }
  run.rmsnorm_forward(u, t.rrms, t.fused, params.input_norm, rows, D, config.norm_eps);
}

void Feedback::backward(const ModelParams& params, const ModelParams& grads, const FeedbackTape& t,
                        const FeedbackGradient& g, act* dh, act* dembedded, act* dgates_in, const act* du,
                        const act* gates, const InputRows& f) const {
  const Kernels& run = kernels;
  int D = config.width, rows = int(f.fused.size());
  const int* token = f.fused_token.data();
  int64_t n = int64_t(rows) * D;
  run.zero(g.dfused, n);
  run.rmsnorm_backward(g.dfused, grads.input_norm, du, t.fused, params.input_norm, t.rrms, rows, D);
  if (config.fusion == Fusion::gate) {
    run.gate_backward(g.dvalue, dgates_in, g.dfused, t.value, gates, token, rows, D);
    run.matmul_backward_weight(grads.value, g.dvalue, t.carried, rows, D, D);
    if (dh) run.matmul_backward_input(g.dcarried, g.dvalue, params.value, rows, D, D, false);
  } else if (config.fusion == Fusion::concat) {
    run.zero(g.dgate, n);
    run.gate_backward(g.dvalue, g.dgate, g.dfused, t.value, t.gate, nullptr, rows, D);
    run.bias_backward(grads.concat_value_bias, g.dvalue, rows, D);
    run.bias_backward(grads.concat_gate_bias, g.dgate, rows, D);
    run.matmul_backward_weight(grads.concat_value, g.dvalue, t.pair, rows, 2 * D, D);
    run.matmul_backward_weight(grads.concat_gate, g.dgate, t.pair, rows, 2 * D, D);
    run.matmul_backward_input(g.dpair, g.dvalue, params.concat_value, rows, 2 * D, D, false);
    run.matmul_backward_input(g.dpair, g.dgate, params.concat_gate, rows, 2 * D, D, true);
    run.concat_backward(dembedded, token, g.dcarried, g.dpair, rows, D);
  } else {
    run.scatter_add_rows(dembedded, g.dfused, token, rows, D);
    run.matmul_backward_weight(grads.add, g.dfused, t.carried, rows, D, D);
    if (dh) run.matmul_backward_input(g.dcarried, g.dfused, params.add, rows, D, D, false);
  }
  if (dh) run.scatter_add_rows(dh, g.dcarried, f.source.data(), rows, D);
}

void Feedback::gates_backward(const ModelParams& params, const ModelParams& grads, act* dembedded, const act* dgates_in,
                              const act* embedded, int rows) const {
  kernels.matmul_backward_input(dembedded, dgates_in, params.gate, rows, config.width, config.width, true);
  kernels.matmul_backward_weight(grads.gate, dgates_in, embedded, rows, config.width, config.width);
}
