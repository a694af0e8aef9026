#include "spikes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "error.h"

double RecentValues::z(double x) const {
  if (values_.size() < kWindow) return 0;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < kWindow; ++i) sum += at(i);
  double mean = sum / double(kWindow);
  for (size_t i = 0; i < kWindow; ++i) squares += (at(i) - mean) * (at(i) - mean);
  double deviation = std::sqrt(squares / double(kWindow));
  return deviation > 0 ? (x - mean) / deviation : 0;
}

void RecentValues::add(double x) {
  if (values_.size() < kWindow)
    values_.push_back(x);
  else
    values_[next_] = x, next_ = (next_ + 1) % kWindow;
}

Json RecentValues::record() const {
  Json record = Json::array();
  for (size_t i = 0; i < values_.size(); ++i) record.items.push_back(at(i));
  return record;
}

void RecentValues::load(const Json& record, const std::string& where) {
  values_.clear(), next_ = 0;
  for (const Json& value : record.items) {
    if (value.kind != Json::Kind::number) fail("%s: `spikes` should hold numbers", where.c_str());
    add(value.number);
  }
}

bool SpikeWatch::is_spike(int passes, double loss, double gradient_norm, double threshold) {
  steps_.resize(std::max(steps_.size(), size_t(passes)));
  Steps& steps = steps_[size_t(passes) - 1];
  bool spike = steps.loss.z(loss) > threshold || steps.gradient_norm.z(gradient_norm) > threshold;
  steps.loss.add(loss), steps.gradient_norm.add(gradient_norm);
  return spike;
}

Json SpikeWatch::record() const {
  Json record = Json::array();
  for (const Steps& steps : steps_)
    record.items.push_back(Json::object({{"loss", steps.loss.record()}, {"grad_norm", steps.gradient_norm.record()}}));
  return record;
}

void SpikeWatch::load(const Json& record, const std::string& where) {
  steps_.clear();
  for (const Json& entry : record.items) {
    Steps steps;
    steps.loss.load(entry.get("loss", where), where);
    steps.gradient_norm.load(entry.get("grad_norm", where), where);
    steps_.push_back(steps);
  }
}
