// How many floating-point operations the reports count: multiplications and additions of the model's products and of
// attention, as they are run. Not counted are elementwise work, the optimizer's own, and what `--recompute` runs a
// second time, so that rates can be compared whatever is kept.
#pragma once
#include <vector>

#include "config.h"
#include "data.h"
#include "kernels.h"
#include "passes.h"
#include "segments.h"

// How often a row goes through a product: once forward; backward once for the weights' gradient, once for the input's.
enum class Work { forward, both };

// The pairs of a query and a key that it sees; window as in the kernels' contract.
double visible_pairs(const Segment&, int window);
// One pass of the stack over these segments.
double stack_flops(const ModelConfig&, const std::vector<Segment>&, Work);
// A micro-batch's passes: inputs, stack and classifier.
double step_flops(const ModelConfig&, const Batch&, const PassPlan&);

// What the device does at most, a second, as it shows in one call of its peak_fma(), which takes milliseconds; and the best
// in so many seconds.
double peak_rate(const Kernels&);
double peak_rate(const Kernels&, double seconds);
