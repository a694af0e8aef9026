// Optimizers and the schedule of their learning rate (docs/training.md).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels.h"
#include "memory.h"
#include "params.h"
#include "words.h"

enum class OptimizerKind { adamw, normuon };
// After the warm-up: constant, then a linear fall over the last part of the run; or half a cosine over all of it.
enum class ScheduleKind { wsd, cosine };
template <>
struct WordTable<OptimizerKind> {
  static constexpr const char* what = "an optimizer";
  static constexpr Word<OptimizerKind> all[] = {{OptimizerKind::adamw, "adamw"}, {OptimizerKind::normuon, "normuon"}};
};
template <>
struct WordTable<ScheduleKind> {
  static constexpr const char* what = "a schedule";
  static constexpr Word<ScheduleKind> all[] = {{ScheduleKind::wsd, "wsd"}, {ScheduleKind::cosine, "cosine"}};
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  float lr = 0;  // 0: adamw 0.384 / width, normuon 1e-2 (there Adam's tensors take lr / 20, the paper's 5e-4)
  float weight_decay = -1;  // below 0: adamw 0.1, normuon 0.01; on matrices other than the embedding
  float clip = 1;           // largest gradient norm; 0: none
  int warmup = 200;         // steps of linear warm-up
  ScheduleKind schedule = ScheduleKind::wsd;
  float cooldown = 0.25f;  // of wsd: the last part of the run, in which lr falls linearly to min_lr
  float min_lr = 0;        // where lr ends
  float z_loss = 1e-5f;    // during the cooldown

  void resolve(int width);  // fills in the kind's own defaults
};

// The share of the peak learning rate at a step, in (0, 1].
double schedule(const OptimizerOptions&, int64_t step, int64_t steps);
bool in_cooldown(const OptimizerOptions&, int64_t step, int64_t steps);

class Optimizer {
 public:
  Optimizer(const Kernels&, const ParamLayout&, const OptimizerOptions&);
  static void plan_memory(Plan&, const ParamLayout&, const OptimizerOptions&);
  static double state_bytes(const ParamLayout&, const OptimizerOptions&);  // of what state() gives

  // The gradient's norm over the tensors that take part: all, or without the feedback's in a step that trains none.
  double gradient_norm(const float* grads, bool with_feedback);
  // One update; leaves tensors that do not take part alone, as if absent.
  void step(float* params, const float* grads, double norm, bool with_feedback, int64_t step, int64_t steps);

  // The state by name ("m.<parameter>", "v.<parameter>"), valid until the next call, and each tensor's step count.
  std::vector<TensorView> state();
  std::vector<int64_t> step_counts() const { return counts_; }
  void load(const SafetensorsFile& file, const std::vector<int64_t>& step_counts);

 private:
  bool by_normuon(const Param&) const;
  void adamw(const Param&, size_t index, float* params, const float* grads, float grad_scale, float lr, float decay);
  void normuon(const Param&, float* params, const float* grads, float grad_scale, float lr, float decay);
  void orthogonalize(float* x, int rows, int columns);

  const Kernels& run_;
  const ParamLayout& layout_;
  OptimizerOptions options_;
  double sum_squares(const float* x, int64_t n);
  std::vector<TensorView> views(const float* m, const float* v) const;

  Block m_, v_, scratch_;  // v: of a NorMuon matrix, its first `rows` floats
  Block sums_;             // doubles, one a tensor
  OnHost m_on_host_, v_on_host_;
  std::vector<int64_t> counts_;  // updates each tensor has had
};
