// Training in passes: a Jacobi iteration of the recurrence, each pass parallel over positions (docs/passes.md).
//
//   pass 1       u_t plain                                          h¹ = stack(u)
//   pass k ≥ 2   u_t plain for the first p rows, fused(e_t, h~^{k−1}_{t−1}) after them
//   loss = NTP(1) + λ/(K−1) Σ_{k≥2} NTP(k)
//
// The plain prefix of pass k has pass 1's inputs, so its states, keys and values are pass 1's: pass k runs the suffix
// alone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data.h"
#include "feedback.h"
#include "stack.h"
#include "words.h"

// last: passes before the last run without gradient or loss (the textbook's)
enum class GradientMode { through, detach, last };
enum class PrefixMixin { uniform, half, off };
template <>
struct WordTable<GradientMode> {
  static constexpr const char* what = "gradient";
  static constexpr Word<GradientMode> all[] = {
      {GradientMode::through, "through"}, {GradientMode::detach, "detach"}, {GradientMode::last, "last"}};
};
template <>
struct WordTable<PrefixMixin> {
  static constexpr const char* what = "prefix mix-in";
  static constexpr Word<PrefixMixin> all[] = {
      {PrefixMixin::half, "half"}, {PrefixMixin::uniform, "uniform"}, {PrefixMixin::off, "off"}};
};

struct PassOptions {
  float lambda = 1;
  GradientMode gradient = GradientMode::through;
  PrefixMixin mixin = PrefixMixin::half;
  float jitter = 0.1f;       // the paper: 0.02
  bool reuse_prefix = true;  // false computes every pass's prefix again: the same objective at a higher cost, for tests
  uint64_t seed = 0;
};

// One pass of one micro-batch.
struct Pass {
  int first = 0, rows = 0;        // its rows of the tape
  std::vector<Segment> segments;  // `row` counts from `first`
  std::vector<int> token_row;     // of each row: the pass-1 row of the same token
  std::vector<float> weight;      // of each row in the loss; 0 where it has none
  InputRows input;                // tokens are pass-1 rows, states tape rows
  int first_fused = 0;            // the fused rows' first in the feedback's tape
  // Of each pass-1 row: the tape row that holds this pass's state for its token (pass 1's in a prefix).
  std::vector<int> state_row;
  bool trained = true;  // takes part in the backward pass; not where the objective gives it no weight
};

struct PassPlan {
  std::vector<Pass> passes;
  std::vector<std::vector<int>> prefix;  // [k − 2][segment]: plain rows of pass k, 1 … the segment's rows
  bool carry_gradient = true;
  int rows() const { return passes.back().first + passes.back().rows; }
  bool fuses() const;            // some row's input is fused
  bool trains_feedback() const;  // some such row is trained: the feedback's parameters have a gradient
};

// Draws the prefix lengths of every pass k ≥ 2 for segments numbered from `first_segment` within the step.
std::vector<std::vector<int>> draw_prefixes(const Batch&, int passes, const PassOptions&, int64_t step,
                                            int first_segment);
// `target_count`: of the whole optimizer step.
PassPlan plan_passes(const Batch&, int passes, std::vector<std::vector<int>> prefix, const PassOptions&, int64_t step,
                     int first_segment, int64_t target_count);

// Sums over a step's micro-batches, one entry a pass, over all positions that have a target (the prefix's from pass 1).
struct PassLosses {
  std::vector<double> loss, z_squared;
  int64_t targets = 0;
  double mean(int pass) const { return mean_of(loss, pass); }
  double mean_of(const std::vector<double>& sums, int pass) const {
    return targets > 0 ? sums[pass] / double(targets) : 0;
  }
};

// What a step minimizes, of a mean over targets in each pass: NTP(1) + λ/(K−1) Σ_{k≥2} NTP(k); of GradientMode::last the
// last pass's alone.
struct Objective {
  double loss, z_loss;  // of the cross-entropy; of the z-loss, its coefficient times lse²
  double total() const { return loss + z_loss; }
};
Objective objective_of(const PassLosses&, const PassOptions&, float z_loss);

// How large a micro-batch may be.
struct PassLimits {
  int rows, passes;
  Recompute recompute = Recompute::none;
};

// All that a micro-batch's passes write, as views into blocks.
struct PassBuffers {
  Tape tape;              // rows of all passes
  EmbeddedTokens tokens;  // pass 1's rows
  FeedbackTape feedback;  // fused rows of all passes
  GradientTape gradient;
  FeedbackGradient feedback_gradient;
  act *dh, *de, *dembedded, *dgates_in, *dmixed;  // dh: a tape row
  act *logits, *h_chunk, *dh_chunk;               // the classifier's rows of one chunk
  double *loss, *z_squared;                       // of each row with a target, in the order of classification
};

class PassRunner {
 public:
  PassRunner(const Kernels&, const ModelConfig&, PassLimits);
  static void plan_memory(Plan&, const Kernels&, const ModelConfig&, PassLimits);

  void forward(const ModelParams&, const Batch&, const PassPlan&);
  // Losses and their gradients, which are added to what `grads` views; z_loss: the coefficient of lse².
  void backward(const ModelParams&, const ModelParams& grads, const Batch&, const PassPlan&, float z_loss, PassLosses&);

  // The top-layer state of a tape row, and after backward() its gradient.
  const act* h(int tape_row) const { return at_row(buffers_.tape.h, tape_row); }
  const act* dh(int tape_row) const { return at_row(buffers_.dh, tape_row); }
  double row_loss(int tape_row) const { return row_loss_[tape_row]; }

 private:
  act* at_row(act* rows, int row) const { return run_.at(rows, size_t(row) * config_.width); }
  void classify(const ModelParams&, const ModelParams& grads, const Batch&, const Pass&, float z_loss);
  void read_losses();
  void input_backward(const ModelParams&, const ModelParams& grads, const PassPlan&, const Pass&);

  const Kernels& run_;
  const ModelConfig& config_;
  Block rope_, activations_, gradients_, classifier_;
  PassBuffers buffers_;
  Stack stack_;
  Feedback feedback_;
  std::vector<int> scored_;                       // the tape rows that have been classified
  std::vector<double> row_loss_, row_z_squared_;  // a tape row
};

// How K is drawn, a function of how far training is: "1", "3", "paper", "two-pass" or "fraction:p1/p2/p3,…" with p in
// percent.
class PassSchedule {
 public:
  explicit PassSchedule(const std::string& text);
  int draw(uint64_t seed, int64_t step, int64_t steps) const;
  int most_passes() const;
  int most_passes(int64_t step, int64_t steps) const;           // in the first `step` of the steps
  double share(int passes, int64_t step, int64_t steps) const;  // the probability of K = passes
  const std::string& text() const { return text_; }

 private:
  struct Stage {
    double from;
    std::vector<double> share;
  };
  std::string text_;
  std::vector<Stage> stages_;
};
