#include "flops.h"

#include <algorithm>

#include "log.h"

// A multiplication and an addition for each weight that a row meets.
static double product(double rows, double in, double out) { return 2 * rows * in * out; }

double visible_pairs(const Segment& s, int window) {
  // Of the positions before `end`: position t sees t + 1 keys, at most the window's.
  auto up_to = [&](double end) {
    double ragged = window > 0 ? std::min(end, double(window)) : end;
    return ragged * (ragged + 1) / 2 + (end - ragged) * window;
  };
  return up_to(double(s.position) + s.rows) - up_to(s.position);
}

double stack_flops(const ModelConfig& c, const std::vector<Segment>& segments, Work work) {
  double D = c.width, Hd = c.heads_width(), rows = 0, flops = 0;
  for (const Segment& s : segments) rows += s.rows;
  double gate = c.head_gate ? c.heads : 0;
  double layer = product(rows, D, c.qkv_width() + gate) + product(rows, Hd, D) + product(rows, D, 3.0 * c.ffn);
  // Scores and sums of values; backward the scores again, and the gradients of p, q, k and v.
  double attentions = work == Work::both ? 7 : 2, products = work == Work::both ? 3 : 1;
  for (int l = 0; l < c.layers; ++l) {
    double pairs = 0;
    for (const Segment& s : segments) pairs += visible_pairs(s, c.layer_window(l));
    flops += products * layer + attentions * product(pairs, 1, Hd);
  }
  return flops;
}

// The fused rows' products. Without a gradient for the carried state its product is left out; that of a concatenation
// stays, for the token's half.
static double fusion_flops(const ModelConfig& c, const PassPlan& plan, const Pass& pass) {
  double rows = double(pass.input.fused.size()), D = c.width;
  bool concat = c.fusion == Fusion::concat;
  double once = concat ? 2 * product(rows, 2 * D, D) : product(rows, D, D);
  return once * (!pass.trained ? 1 : plan.carry_gradient || concat ? 3 : 2);
}

double step_flops(const ModelConfig& c, const Batch& batch, const PassPlan& plan) {
  double D = c.width, flops = 0;
  for (const Pass& pass : plan.passes) {
    double targets = 0;
    for (int token_row : pass.token_row) targets += batch.targets[token_row] >= 0;
    flops += stack_flops(c, pass.segments, pass.trained ? Work::both : Work::forward) + fusion_flops(c, plan, pass) +
             product(targets, D, c.vocab) * (pass.trained ? 3 : 1);
  }
  if (c.fusion == Fusion::gate && plan.fuses())  // the gates, once for all passes
    flops += product(batch.rows(), D, D) * (plan.trains_feedback() ? 3 : 1);
  return flops;
}

double peak_rate(const Kernels& run) {
  double start = seconds_now(), operations = run.peak_fma();
  return operations / (seconds_now() - start);
}

double peak_rate(const Kernels& run, double seconds) {
  double best = 0, start = seconds_now();
  do best = std::max(best, peak_rate(run));
  while (seconds_now() - start < seconds);
  return best;
}
