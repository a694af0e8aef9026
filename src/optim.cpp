#include "optim.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "error.h"
#include "exact.h"

void OptimizerOptions::resolve(int width) {
  bool adam = kind == OptimizerKind::adamw;
  if (lr == 0) lr = adam ? 0.384f / float(width) : 1e-2f;  // 6e-3 at width 64, 5e-4 at 768
  if (weight_decay < 0) weight_decay = adam ? 0.1f : 0.01f;
}

bool in_cooldown(const OptimizerOptions& o, int64_t step, int64_t steps) {
  return o.schedule == ScheduleKind::wsd && o.cooldown > 0 && double(step) >= double(steps) * (1 - double(o.cooldown));
}

// How much of the way from the peak down to min_lr is left, after the warm-up.
static double height(const OptimizerOptions& o, int64_t step, int64_t steps) {
  if (o.schedule == ScheduleKind::cosine) {
    constexpr double kPi = 3.14159265358979323846;
    double done = double(step - o.warmup) / double(std::max<int64_t>(1, steps - o.warmup));
    return 0.5 * (1 + exact_cos(kPi * std::clamp(done, 0.0, 1.0)));
  }
  double left = double(steps - step), falling = double(steps) * double(o.cooldown);
  return in_cooldown(o, step, steps) ? std::clamp(left / falling, 0.0, 1.0) : 1;
}

double schedule(const OptimizerOptions& o, int64_t step, int64_t steps) {
  double rise = o.warmup > 0 ? std::min(1.0, double(step + 1) / o.warmup) : 1;
  double least = o.lr > 0 ? double(o.min_lr) / double(o.lr) : 0;
  return rise * (least + (1 - least) * height(o, step, steps));
}

namespace {

constexpr float kBeta1 = 0.9f, kBeta2 = 0.95f, kEps = 1e-8f;  // AdamW's
constexpr float kMuonBeta1 = 0.95f, kMuonBeta2 = 0.95f, kMuonEps = 1e-8f;
constexpr float kAdamShare = 0.05f;  // of NorMuon's learning rate, for what AdamW updates beside it

// Newton–Schulz works on the smaller of the two Gram matrices.
size_t scratch_floats(const Param& p) {
  size_t small = std::min(p.rows, p.columns);
  return p.size() * 2 + small * small * 2;
}

}  // namespace

static bool is_by_normuon(const Param& p, const OptimizerOptions& options) {
  return options.kind == OptimizerKind::normuon && p.kind == ParamKind::matrix;
}

static size_t largest_scratch(const ParamLayout& layout, const OptimizerOptions& options) {
  size_t most = 0;
  for (const Param& p : layout.params)
    if (is_by_normuon(p, options)) most = std::max(most, scratch_floats(p));
  return most;
}

void Optimizer::plan_memory(Plan& plan, const ParamLayout& layout, const OptimizerOptions& options) {
  plan.add("optimizer", double(2 * layout.floats + largest_scratch(layout, options)) * sizeof(float));
}

bool Optimizer::by_normuon(const Param& p) const { return is_by_normuon(p, options_); }

double Optimizer::state_bytes(const ParamLayout& layout, const OptimizerOptions& options) {
  double floats = 0;
  for (const Param& p : layout.params)
    floats += double(p.size()) + double(is_by_normuon(p, options) ? p.rows : p.size());
  return floats * sizeof(float);
}

Optimizer::Optimizer(const Kernels& kernels, const ParamLayout& layout, const OptimizerOptions& options)
    : run_(*kernels.floats),
      layout_(layout),
      options_(options),
      m_(run_, layout.floats),
      v_(run_, layout.floats),
      scratch_(run_, largest_scratch(layout, options)),
      sums_(run_, 2 * layout.params.size()),
      counts_(layout.params.size()) {}

double Optimizer::gradient_norm(const float* grads, bool with_feedback) {
  double* sums = reinterpret_cast<double*>(sums_.data());
  std::vector<double> squares(layout_.params.size());
  size_t n = 0;
  for (const Param& p : layout_.params)
    if (with_feedback || !p.feedback) run_.sum_squares(sums + n++, grads + p.offset, int64_t(p.size()));
  run_.download(squares.data(), sums, n * sizeof(double));
  return std::sqrt(std::accumulate(squares.begin(), squares.begin() + ptrdiff_t(n), 0.0));
}

double Optimizer::sum_squares(const float* x, int64_t n) {
  double sum, *on_device = reinterpret_cast<double*>(sums_.data());
  run_.sum_squares(on_device, x, n);
  run_.download(&sum, on_device, sizeof sum);
  return sum;
}

void Optimizer::step(float* params, const float* grads, double norm, bool with_feedback, int64_t step, int64_t steps) {
  double share = schedule(options_, step, steps);
  float lr = float(options_.lr * share);
  // AdamC: during the cooldown decay falls with the learning rate once more.
  float decay = float(options_.weight_decay * (in_cooldown(options_, step, steps) ? share : 1));
  float grad_scale = options_.clip > 0 && norm > options_.clip ? float(options_.clip / norm) : 1.0f;
  for (size_t i = 0; i < layout_.params.size(); ++i) {
    const Param& p = layout_.params[i];
    if (p.feedback && !with_feedback) continue;
    ++counts_[i];
    if (by_normuon(p))
      normuon(p, params, grads, grad_scale, lr, decay);
    else if (options_.kind == OptimizerKind::normuon)
      adamw(p, i, params, grads, grad_scale, lr * kAdamShare, 0);
    else
      adamw(p, i, params, grads, grad_scale, lr, p.kind == ParamKind::matrix ? decay : 0);
  }
}

void Optimizer::adamw(const Param& p, size_t index, float* params, const float* grads, float grad_scale, float lr,
                      float decay) {
  // β^t by repeated multiplication, the same on every machine; past t = 1000 the corrections are 1 in float.
  double power1 = 1, power2 = 1;
  for (int64_t t = 0; t < std::min<int64_t>(counts_[index], 1000); ++t) power1 *= kBeta1, power2 *= kBeta2;
  AdamStep s{lr, kBeta1, kBeta2, kEps, decay, grad_scale, float(1 / (1 - power1)), float(1 / (1 - power2))};
  run_.adamw(params + p.offset, m_.data() + p.offset, v_.data() + p.offset, grads + p.offset, int64_t(p.size()), s);
}

// NorMuon: momentum, orthogonalised, its rows normalised by their running second moment, with AdamW-like size.
void Optimizer::normuon(const Param& p, float* params, const float* grads, float grad_scale, float lr, float decay) {
  int64_t n = int64_t(p.size());
  float *w = params + p.offset, *m = m_.data() + p.offset, *v = v_.data() + p.offset, *update = scratch_.data();
  run_.blend(m, grads + p.offset, (1 - kMuonBeta1) * grad_scale, kMuonBeta1, n);
  double norm = std::sqrt(sum_squares(m, n));
  if (!(norm > 0)) return;
  run_.scale(update, m, float(1 / norm), n);
  orthogonalize(update, p.rows, p.columns);
  run_.row_normalize(update, v, kMuonBeta2, kMuonEps, p.rows, p.columns);
  double size = std::sqrt(sum_squares(update, n));
  if (!(size > 0)) return;
  float move = float(0.2 * lr * std::sqrt(double(n)) / size);
  run_.blend(w, update, -move, 1 - lr * decay, n);
}

// Five Newton–Schulz steps, X ← aX + (bA + cA²)X with A = XXᵀ; for tall matrices X ← aX + X(bA + cA²) with A = XᵀX.
void Optimizer::orthogonalize(float* x, int rows, int columns) {
  constexpr float a = 3.4445f, b = -4.7750f, c = 2.0315f;
  int small = std::min(rows, columns);
  int64_t n = int64_t(rows) * columns, square = int64_t(small) * small;
  float *next = x + n, *gram = next + n, *polynomial = gram + square;
  for (int i = 0; i < 5; ++i) {
    if (rows <= columns) {
      run_.matmul_forward(gram, x, x, rows, columns, rows);
    } else {
      run_.zero(gram, square);
      run_.matmul_backward_weight(gram, x, x, rows, columns, columns);
    }
    run_.matmul_forward(polynomial, gram, gram, small, small, small);  // the Gram matrix is symmetric
    run_.blend(polynomial, gram, b, c, square);
    if (rows <= columns)
      run_.matmul_backward_input(next, polynomial, x, rows, columns, rows, false);
    else
      run_.matmul_backward_input(next, x, polynomial, rows, columns, columns, false);
    run_.blend(x, next, 1, a, n);
  }
}

std::vector<TensorView> Optimizer::state() {
  m_on_host_ = OnHost(run_, m_.data(), m_.size()), v_on_host_ = OnHost(run_, v_.data(), v_.size());
  return views(m_on_host_.data(), v_on_host_.data());
}

std::vector<TensorView> Optimizer::views(const float* m, const float* v) const {
  std::vector<TensorView> views;
  for (const Param& p : layout_.params) {
    views.push_back({"m." + p.name, "F32", p.shape(), m + p.offset});
    std::vector<int64_t> shape = by_normuon(p) ? std::vector<int64_t>{p.rows} : p.shape();
    views.push_back({"v." + p.name, "F32", shape, v + p.offset});
  }
  return views;
}

void Optimizer::load(const SafetensorsFile& file, const std::vector<int64_t>& step_counts) {
  if (step_counts.size() != counts_.size())
    fail("%s: %zu step counts for %zu tensors", file.path().c_str(), step_counts.size(), counts_.size());
  counts_ = step_counts;
  for (const TensorView& view : views(m_.data(), v_.data()))
    run_.upload(const_cast<void*>(view.data), file.floats(view.name, view.shape), size_t(view.bytes()));
}
