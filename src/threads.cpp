// The threads that the CPU kernels share, and each thread's scratch memory.
//
// A training step wakes them some hundred times, mostly for some ten microseconds: so they wait for work by spinning,
// but briefly. Then they offer their core to others before they look again, and at last they sleep: on a busy machine a
// thread that spins on takes the time of the one that it waits for, and on a quiet one waking a sleeper takes longer
// than most of the work here.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "cpu/parallel.h"
#include "cpu/workspace.h"
#include "error.h"
#include "kernels.h"
#include "memory.h"

namespace {

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` is no longer `old`.
void await_change(const std::atomic<uint32_t>& value, uint32_t old) {
  using std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::microseconds(30), kPatience = std::chrono::microseconds(500);
  steady_clock::duration waited = {};
  for (auto start = steady_clock::now(); waited < kPatience; waited = steady_clock::now() - start) {
    for (int i = 0; i < 64; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause_briefly();
    }
    if (waited > kSpin) std::this_thread::yield();
  }
  value.wait(old, std::memory_order_acquire);
}

class Pool {
 public:
  explicit Pool(int threads) : threads_(threads) {
    try {
      for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
    } catch (const std::system_error&) {
      dismiss();
      fail("the system refuses more than %zu threads; give a smaller --threads", workers_.size() + 1);
    }
  }
  ~Pool() { dismiss(); }
  int threads() const { return threads_; }

  void run(void (*task)(void*, int, int), void* context) {
    task_ = task, context_ = context;
    running_.store(uint32_t(threads_ - 1), std::memory_order_relaxed);
    start();
    task(context, 0, threads_);
    for (uint32_t left; (left = running_.load(std::memory_order_acquire)) != 0;) await_change(running_, left);
  }

 private:
  void dismiss() {
    task_ = nullptr;
    start();
    for (std::thread& worker : workers_) worker.join();
  }
  void start() {
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  void work(int thread) {
    for (uint32_t round = 0;; ++round) {
      await_change(round_, round);
      if (!task_) return;
      task_(context_, thread, threads_);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
    }
  }

  int threads_;
  void (*task_)(void*, int, int) = nullptr;
  void* context_ = nullptr;
  std::atomic<uint32_t> round_ = 0, running_ = 0;  // counts run() calls; workers that are not done
  std::vector<std::thread> workers_;
};

std::unique_ptr<Pool>& pool() {
  static std::unique_ptr<Pool> instance = std::make_unique<Pool>(1);
  return instance;
}

}  // namespace

int set_threads(int threads) {
  if (threads <= 0) threads = int(std::max(1u, std::thread::hardware_concurrency()));
  if (threads != pool()->threads()) {
    pool().reset();
    pool() = std::make_unique<Pool>(threads);
  }
  return threads;
}

int thread_count() { return pool()->threads(); }

void run_on_threads(void (*task)(void*, int, int), void* context) { pool()->run(task, context); }

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
    s.floats = 0;
    s.memory.reset();
    s.memory.reset(take_own_floats(floats));
    s.floats = floats;
  }
  return s.memory.get();
}
