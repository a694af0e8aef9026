// Work shared by the threads. Every loop here is over independent tasks: no result depends on who does which, or when.
#pragma once
#include <cstdint>

// Runs task(context, t, threads) for t = 0 … threads − 1, at the same time; the caller is thread 0. Returns when all
// are done.
void run_on_threads(void (*task)(void* context, int thread, int threads), void* context);
int thread_count();

namespace ISA {

// f(thread, threads) on every thread; or f(0, 1) where the work is not worth waking the others.
template <class F>
inline void parallel(bool worthwhile, F f) {
  if (!worthwhile || thread_count() == 1) return f(0, 1);
  run_on_threads([](void* context, int thread, int threads) { (*static_cast<F*>(context))(thread, threads); }, &f);
}

// f(i) for i in [0, count): each thread takes one range of neighbours, the same range in every loop of this length.
template <class F>
inline void parallel_for(int64_t count, bool worthwhile, F f) {
  parallel(worthwhile, [&](int thread, int threads) {
    int64_t end = count * (thread + 1) / threads;
    for (int64_t i = count * thread / threads; i < end; ++i) f(i);
  });
}

// The same where tasks differ in size: each thread takes the next one when it is free.
template <class F>
inline void parallel_tasks(int64_t count, bool worthwhile, F f) {
  int64_t next = 0;
  parallel(worthwhile, [&](int, int) {
    for (int64_t i; (i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < count;) f(i);
  });
}

// Whether work of so many elementary operations is worth waking the other threads.
inline bool worth_threads(int64_t operations) { return operations > 16384; }

}  // namespace ISA
