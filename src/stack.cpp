#include "stack.h"

#include "error.h"
#include "exact.h"

Block rope_block(const Kernels& run, const ModelConfig& c, int positions) {
  size_t floats = size_t(positions) * c.head_dim;
  Block on_host(floats), block(run, floats);
  rope_table(on_host.data(), positions, c.head_dim, c.rope_theta);
  run.upload(block.data(), on_host.data(), floats * sizeof(float));
  return block;
}

Tape cut_tape(Cutter& cutter, const ModelConfig& c, TapeKind kind, size_t rows, size_t kv_rows, Recompute recompute) {
  Tape tape;
  tape.recompute = recompute;
  size_t D = c.width, Hd = c.heads_width(), Gd = size_t(c.kv_heads) * c.head_dim, F = c.ffn;
  bool inference = kind == TapeKind::inference, share_all = inference || recompute == Recompute::block;
  auto take = [&](size_t width) { return cutter.acts(rows * width); };
  auto floats = [&](size_t width) { return cutter.floats(rows * width); };
  for (int l = 0; l < c.layers; ++l) {
    LayerTape t = l > 0 ? tape.layers[0] : LayerTape{};
    if (l == 0 || !inference) t.x = take(D);
    if (l == 0 || !share_all) {
      t.rrms1 = floats(1), t.qkv = take(c.qkv_width()), t.qk_rrms = floats(c.heads + c.kv_heads), t.q = take(Hd);
      t.attended = take(Hd), t.row_max = floats(c.heads), t.row_scale = floats(c.heads);
      if (c.head_gate) t.head_z = take(c.heads), t.gated = take(Hd);
      if (c.branch_norm) t.o = take(D), t.o_rrms = floats(1), t.down = take(D), t.down_rrms = floats(1);
      t.mid = inference ? t.x : take(D);
      t.rrms2 = floats(1), t.gate_up = take(2 * F);
    }
    if (l == 0 || (!share_all && recompute == Recompute::none))
      t.norm1 = take(D), t.norm2 = take(D), t.swiglu = take(F);
    t.k = cutter.acts(kv_rows * Gd), t.v = cutter.acts(kv_rows * Gd);
    tape.layers.push_back(t);
  }
  tape.x_last = inference ? tape.layers[0].x : take(D);
  tape.h = take(D), tape.rrms_last = floats(1), tape.branch = take(D);
  return tape;
}

GradientTape cut_gradient_tape(Cutter& cutter, const ModelConfig& c, size_t pass_rows, size_t kv_rows,
                               bool several_passes) {
  GradientTape g;
  size_t D = c.width, Hd = c.heads_width(), Gd = size_t(c.kv_heads) * c.head_dim, F = c.ffn;
  auto take = [&](size_t width) { return cutter.acts(pass_rows * width); };
  g.dx = take(D), g.dbranch = take(D), g.dnorm = take(D), g.dswiglu = take(F), g.dgate_up = take(2 * F);
  g.dattended = take(Hd), g.dq = take(Hd), g.dqkv = take(c.qkv_width());
  g.dgated = c.head_gate ? take(Hd) : g.dattended;
  g.dhead_z = c.head_gate ? take(c.heads) : nullptr;
  g.several_passes = several_passes;
  for (int l = 0; l < c.layers; ++l) {
    bool own = l == 0 || several_passes;
    g.dk.push_back(own ? cutter.acts(kv_rows * Gd) : g.dk[0]);
    g.dv.push_back(own ? cutter.acts(kv_rows * Gd) : g.dv[0]);
  }
  return g;
}

LayerTape Stack::from_row(LayerTape t, size_t row) const {
  const ModelConfig& c = config;
  auto advance = [&](act*& p, size_t width) { p = kernels.at(p, row * width); };
  auto advance_floats = [&](float*& p, size_t width) { p = p ? p + row * width : nullptr; };
  size_t D = c.width, Hd = c.heads_width(), H = c.heads, F = c.ffn;
  advance(t.x, D), advance(t.norm1, D), advance(t.qkv, c.qkv_width()), advance(t.q, Hd), advance(t.attended, Hd);
  advance(t.head_z, H), advance(t.gated, Hd), advance(t.o, D), advance(t.mid, D), advance(t.norm2, D);
  advance(t.gate_up, 2 * F), advance(t.swiglu, F), advance(t.down, D);
  advance_floats(t.rrms1, 1), advance_floats(t.qk_rrms, H + c.kv_heads), advance_floats(t.row_max, H);
  advance_floats(t.row_scale, H), advance_floats(t.o_rrms, 1), advance_floats(t.rrms2, 1);
  advance_floats(t.down_rrms, 1);
  return t;
}

// branch = x wᵀ (w: D × in), and its norm where the model has one.
void Stack::branch_product(const Tape& tape, act* before_norm, float* rrms, const float* gain, const act* x,
                           const act* w, int first, int rows, int in) const {
  int D = config.width;
  act* branch = kernels.at(tape.branch, size_t(first) * D);
  multiply(kernels, packed, config.branch_norm ? before_norm : branch, x, w, rows, in, D);
  if (config.branch_norm) kernels.rmsnorm_forward(branch, rrms, before_norm, gain, rows, D, config.norm_eps);
}

// From a layer's x to mid.
void Stack::attention_half(const ModelParams& params, const Tape& tape, int layer, int first, int rows,
                           const std::vector<Segment>& segments) const {
  const ModelConfig& c = config;
  const Kernels& run = kernels;
  const LayerParams& w = params.layers[layer];
  LayerTape t = from_row(tape.layers[layer], first);
  int D = c.width, H = c.heads, G = c.kv_heads, d = c.head_dim, count = int(segments.size());
  run.rmsnorm_forward(t.norm1, t.rrms1, t.x, w.input_norm, rows, D, c.norm_eps);
  multiply(run, packed, t.qkv, t.norm1, w.qkv, rows, D, c.qkv_width());
  run.qk_norm_rope_forward(t.q, t.k, t.v, t.qk_rrms, t.qkv, w.q_norm, w.k_norm, rope, segments.data(), count, H, G, d,
                           c.norm_eps);
  run.attention_forward(t.attended, t.row_max, t.row_scale, t.q, t.k, t.v, segments.data(), count, H, G, d,
                        c.layer_window(layer));
  if (c.head_gate) {
    multiply(run, packed, t.head_z, t.norm1, w.head_gate, rows, D, H);
    run.head_gate_forward(t.gated, t.attended, t.head_z, rows, H, d);
  }
  branch_product(tape, t.o, t.o_rrms, w.post_attn_norm, c.head_gate ? t.gated : t.attended, w.o, first, rows,
                 c.heads_width());
  run.residual_forward(t.mid, t.x, run.at(tape.branch, size_t(first) * D), c.residual_scale, int64_t(rows) * D);
}

// From a layer's mid to the input of its last product.
void Stack::feed_forward_half(const ModelParams& params, const Tape& tape, int layer, int first, int rows) const {
  const LayerParams& w = params.layers[layer];
  LayerTape t = from_row(tape.layers[layer], first);
  kernels.rmsnorm_forward(t.norm2, t.rrms2, t.mid, w.mlp_norm, rows, config.width, config.norm_eps);
  multiply(kernels, packed, t.gate_up, t.norm2, w.gate_up, rows, config.width, 2 * config.ffn);
  kernels.swiglu_forward(t.swiglu, t.gate_up, rows, config.ffn);
}

void Stack::forward(const ModelParams& params, const Tape& tape, int first, int rows,
                    const std::vector<Segment>& segments) const {
  if (rows == 0) return;
  int D = config.width;
  size_t at = size_t(first) * D;
  for (int l = 0; l < config.layers; ++l) {
    const LayerParams& w = params.layers[l];
    LayerTape t = from_row(tape.layers[l], first);
    attention_half(params, tape, l, first, rows, segments);
    feed_forward_half(params, tape, l, first, rows);
    branch_product(tape, t.down, t.down_rrms, w.post_mlp_norm, t.swiglu, w.down, first, rows, config.ffn);
    act* next = kernels.at(l + 1 < config.layers ? tape.layers[l + 1].x : tape.x_last, at);
    kernels.residual_forward(next, t.mid, kernels.at(tape.branch, at), config.residual_scale, int64_t(rows) * D);
  }
  kernels.rmsnorm_forward(kernels.at(tape.h, at), tape.rrms_last + first, kernels.at(tape.x_last, at),
                          params.final_norm, rows, D, config.norm_eps);
}

void Stack::backward(const ModelParams& params, const ModelParams& grads, const Tape& tape, const GradientTape& g,
                     const act* dh, int first, int rows, const std::vector<Segment>& segments) const {
  if (rows == 0) return;
  const ModelConfig& c = config;
  const Kernels& run = kernels;
  int D = c.width, Hd = c.heads_width(), H = c.heads, G = c.kv_heads, d = c.head_dim, F = c.ffn;
  int count = int(segments.size());
  size_t at = size_t(first) * D, n = size_t(rows) * D, kv_at = size_t(first) * G * d, kv_n = size_t(rows) * G * d;

  // The gradient at a branch's last product: the stream's, scaled, and back through the branch's norm if it has one.
  auto into_branch = [&](const act* before_norm, const float* rrms, const float* gain, float* dgain) {
    run.scale(g.dbranch, g.dx, c.residual_scale, n);
    if (!c.branch_norm) return g.dbranch;
    run.zero(g.dnorm, n);
    run.rmsnorm_backward(g.dnorm, dgain, g.dbranch, before_norm, gain, rrms, rows, D);
    return g.dnorm;
  };

  run.zero(g.dx, n);
  run.rmsnorm_backward(g.dx, grads.final_norm, dh, run.at(tape.x_last, at), params.final_norm, tape.rrms_last + first,
                       rows, D);
  for (int l = c.layers - 1; l >= 0; --l) {
    const LayerParams &w = params.layers[l], &dw = grads.layers[l];
    LayerTape t = from_row(tape.layers[l], first);
    // The last layer's whole tape is still there.
    if (tape.recompute == Recompute::block && l + 1 < c.layers) {
      attention_half(params, tape, l, first, rows, segments);
      feed_forward_half(params, tape, l, first, rows);
      if (c.branch_norm) branch_product(tape, t.down, t.down_rrms, w.post_mlp_norm, t.swiglu, w.down, first, rows, F);
    } else if (tape.recompute == Recompute::norms) {
      run.rmsnorm_forward(t.norm1, t.rrms1, t.x, w.input_norm, rows, D, c.norm_eps);
      run.rmsnorm_forward(t.norm2, t.rrms2, t.mid, w.mlp_norm, rows, D, c.norm_eps);
      run.swiglu_forward(t.swiglu, t.gate_up, rows, F);
    }

    act* ddown = into_branch(t.down, t.down_rrms, w.post_mlp_norm, dw.post_mlp_norm);
    run.matmul_backward_input(g.dswiglu, ddown, w.down, rows, F, D, false);
    run.matmul_backward_weight(dw.down, ddown, t.swiglu, rows, F, D);
    run.swiglu_backward(g.dgate_up, g.dswiglu, t.gate_up, rows, F);
    run.matmul_backward_input(g.dnorm, g.dgate_up, w.gate_up, rows, D, 2 * F, false);
    run.matmul_backward_weight(dw.gate_up, g.dgate_up, t.norm2, rows, D, 2 * F);
    run.rmsnorm_backward(g.dx, dw.mlp_norm, g.dnorm, t.mid, w.mlp_norm, t.rrms2, rows, D);

    act* dout = into_branch(t.o, t.o_rrms, w.post_attn_norm, dw.post_attn_norm);
    run.matmul_backward_input(g.dgated, dout, w.o, rows, Hd, D, false);
    run.matmul_backward_weight(dw.o, dout, c.head_gate ? t.gated : t.attended, rows, Hd, D);
    if (c.head_gate) run.head_gate_backward(g.dattended, g.dhead_z, g.dgated, t.attended, t.head_z, rows, H, d);
    if (!g.several_passes) run.zero(run.at(g.dk[l], kv_at), kv_n), run.zero(run.at(g.dv[l], kv_at), kv_n);
    run.attention_backward(g.dq, g.dk[l], g.dv[l], g.dattended, t.attended, t.q, t.k, t.v, t.row_max, t.row_scale,
                           segments.data(), count, H, G, d, c.layer_window(l));
    run.qk_norm_rope_backward(g.dqkv, dw.q_norm, dw.k_norm, g.dq, g.dk[l], g.dv[l], t.qkv, t.qk_rrms, w.q_norm,
                              w.k_norm, rope, segments.data(), count, H, G, d);
    run.matmul_backward_input(g.dnorm, g.dqkv, w.qkv, rows, D, c.qkv_width(), false);
    run.matmul_backward_weight(dw.qkv, g.dqkv, t.norm1, rows, D, c.qkv_width());
    if (c.head_gate) {
      run.matmul_backward_input(g.dnorm, g.dhead_z, w.head_gate, rows, D, H, true);
      run.matmul_backward_weight(dw.head_gate, g.dhead_z, t.norm1, rows, D, H);
    }
    run.rmsnorm_backward(g.dx, dw.input_norm, g.dnorm, t.x, w.input_norm, t.rrms1, rows, D);
  }
}
