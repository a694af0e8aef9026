#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>

#include "cpu/parallel.h"
#include "error.h"
#include "log.h"

constexpr size_t kHugePage = 2 << 20;

// `size` becomes that of the whole, in bytes.
static char* take_bytes(size_t* size) {
  size_t unit = *size >= 2 * kHugePage ? kHugePage : 64;
  *size = (*size + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, *size);
  if (!memory) fail("out of memory: could not take %s", show_bytes(double(*size)).c_str());
#ifdef MADV_HUGEPAGE
  if (unit == kHugePage) madvise(memory, *size, MADV_HUGEPAGE);  // advice: where it is not taken, pages are small
#endif
  return static_cast<char*>(memory);
}

float* take_own_floats(size_t floats) {
  size_t bytes = std::max<size_t>(floats, 1) * sizeof(float);
  char* memory = take_bytes(&bytes);
  std::memset(memory, 0, bytes);
  return reinterpret_cast<float*>(memory);
}

// Gigabytes take seconds, for the system clears each page that is touched first: so all threads do.
float* take_host_floats(size_t floats) {
  constexpr size_t kPiece = 8 * kHugePage;
  size_t bytes = std::max<size_t>(floats, 1) * sizeof(float);
  char* memory = take_bytes(&bytes);
  ISA::parallel_tasks(int64_t((bytes + kPiece - 1) / kPiece), bytes > kPiece, [&](int64_t i) {
    size_t at = size_t(i) * kPiece;
    std::memset(memory + at, 0, std::min(kPiece, bytes - at));
  });
  return reinterpret_cast<float*>(memory);
}

void release_host_floats(float* memory) { std::free(memory); }

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

OnHost::OnHost(const Kernels& run, const act* from, size_t n) : data_(from) {
  if (run.in_host_memory) return;
  copy_ = Block(n);
  data_ = copy_.data();
  Block floats;  // in the table's memory
  if (run.element_bytes != sizeof(float)) {
    floats = Block(run, n);
    run.to_floats(floats.data(), from, int64_t(n));
    from = floats.data();
  }
  run.download(copy_.data(), from, n * sizeof(float));
}

double Plan::total() const {
  double sum = 0;
  for (const auto& [kind, n] : bytes) sum += n;
  return sum;
}

// The first number in a file, times `unit`, or 0.
static double number_in(const char* path, const std::string& after, double unit) {
  std::ifstream in(path);
  std::string word;
  if (after.empty()) return in >> word && word != "max" ? std::atof(word.c_str()) * unit : 0;
  while (in >> word)
    if (word == after && in >> word) return std::atof(word.c_str()) * unit;
  return 0;
}

double available_memory() {
  double machine = number_in("/proc/meminfo", "MemAvailable:", 1024);
  double limit = number_in("/sys/fs/cgroup/memory.max", "", 1),
         used = number_in("/sys/fs/cgroup/memory.current", "", 1);
  if (limit > 0 && (machine == 0 || limit - used < machine)) return std::max(limit - used, 1.0);
  return machine;
}

void require_memory(const Kernels& run, const Plan& plan, const std::string& advice) {
  double available = run.available();
  if (available == 0 || plan.total() <= available) return;
  auto largest = std::max_element(plan.bytes.begin(), plan.bytes.end(),
                                  [](const auto& a, const auto& b) { return a.second < b.second; });
  fail("this needs %s of %s and %s are available; the largest part is %s (%s): %s", show_bytes(plan.total()).c_str(),
       run.in_host_memory ? "memory" : "the GPU's memory", show_bytes(available).c_str(), largest->first.c_str(),
       show_bytes(largest->second).c_str(), advice.c_str());
}
