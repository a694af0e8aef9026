// What the CPU kernels of every instruction set share: the number of threads, and each thread's scratch memory.
#include <omp.h>

#include <cstdlib>
#include <memory>

#include "cpu/workspace.h"
#include "kernels.h"

int set_threads(int threads) {
  if (threads <= 0) threads = omp_get_num_procs();
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  return threads;
}

float* thread_workspace(int slot, size_t floats) {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  struct Slot {
    std::unique_ptr<float, Free> memory;
    size_t floats = 0;
  };
  thread_local Slot slots[4];
  Slot& s = slots[slot];
  if (s.floats < floats) {
    s.floats = (floats + 15) / 16 * 16;
    s.memory.reset(static_cast<float*>(std::aligned_alloc(64, s.floats * sizeof(float))));
  }
  return s.memory.get();
}
