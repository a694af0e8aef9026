#include "disk.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "error.h"
#include "log.h"

// Multiples of `every` behind `step` and before `steps`.
static int64_t multiples(int64_t every, int64_t step, int64_t steps) {
  return every > 0 && steps > step ? (steps - 1) / every - step / every : 0;
}

DiskPlan plan_disk(double bytes_each, int64_t step, int64_t steps, int64_t save_every, Keep keep, int64_t present) {
  int64_t for_good = multiples(keep.every, step, steps);
  int64_t both = save_every > 0 && keep.every > 0 ? std::lcm(save_every, keep.every) : 0;
  int64_t passing = multiples(save_every, step, steps) - multiples(both, step, steps) + 1;  // and the last one
  if (keep.newest > 0) passing = std::min<int64_t>(passing, keep.newest + 1 - std::min<int64_t>(present, keep.newest));
  return {bytes_each, for_good + passing};
}

double free_disk(const std::string& path) {
  std::error_code unseen;
  std::filesystem::path there = std::filesystem::absolute(path, unseen);
  while (!std::filesystem::exists(there, unseen) && there.has_relative_path()) there = there.parent_path();
  struct statvfs disk;
  if (statvfs(there.c_str(), &disk) < 0) return 0;
  return double(disk.f_bavail) * double(disk.f_frsize);
}

void require_disk(const DiskPlan& plan, const std::string& out) {
  double available = free_disk(out);
  if (available == 0 || plan.total() <= available) return;
  fail(
      "the checkpoints take %s (%s of %s) and %s are free where %s is: give --out a larger disk, or save fewer with "
      "--keep, --keep-every and --save-every",
      show_bytes(plan.total()).c_str(), show_count(double(plan.checkpoints)).c_str(),
      show_bytes(plan.bytes_each).c_str(), show_bytes(available).c_str(), out.c_str());
}
