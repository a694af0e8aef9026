// Steps whose loss or gradient is far outside of what the run has lately seen. A bad batch makes one now and then in a long
// run, and an update by it can undo days.
#pragma once
#include <cstdint>
#include <vector>

#include "json.h"

// The last values of one quantity. z(x) is how many standard deviations x lies above their mean.
class RecentValues {
 public:
  static constexpr size_t kWindow = 128;
  double z(double x) const;  // 0 until the window is full
  void add(double x);
  Json record() const;                                      // the values in order, for a checkpoint
  void load(const Json& record, const std::string& where);  // fails where it is none

 private:
  // In the order in which they came, so that a sum has the same bits before and after a checkpoint.
  double at(size_t i) const { return values_[(next_ + i) % values_.size()]; }
  std::vector<double> values_;  // a ring once it is full
  size_t next_ = 0;
};

// The loss and the gradient's norm of steps, apart for each number of passes, which differ in both.
class SpikeWatch {
 public:
  // Is a step a spike, by more than `threshold` deviations of its loss or its gradient? It is remembered in any case: what
  // lasts is no spike, and training must go on.
  bool is_spike(int passes, double loss, double gradient_norm, double threshold);
  Json record() const;
  void load(const Json& record, const std::string& where);

 private:
  struct Steps {
    RecentValues loss, gradient_norm;
  };
  std::vector<Steps> steps_;  // by the number of passes, less 1
};
