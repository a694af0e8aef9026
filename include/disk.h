// The disk that a run's checkpoints take, planned before the first of them is written.
#pragma once
#include <cstdint>
#include <string>

#include "checkpoint.h"

struct DiskPlan {
  double bytes_each = 0;    // of a checkpoint
  int64_t checkpoints = 0;  // new ones that lie there at once, at most; one of them is being written
  double total() const { return bytes_each * double(checkpoints); }
};

// For a run that goes on behind `step`, saves every `save_every` steps (0: never in between) and where `keep` says, and at
// its end. `present`: its checkpoints that are there already, whose place new ones take.
DiskPlan plan_disk(double bytes_each, int64_t step, int64_t steps, int64_t save_every, Keep keep, int64_t present);

// Bytes that this user may still write where a path lies, or will lie once it is made. 0: unknown.
double free_disk(const std::string& path);

// Fails where the checkpoints do not fit into `out`, saying by how much and which flags to change.
void require_disk(const DiskPlan&, const std::string& out);
