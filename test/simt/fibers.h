// Fibers: functions that can stop in the middle and go on later, each on a stack of its own. A kernel's threads are
// fibers (block.h). One operating-system thread runs them all, one at a time.
#pragma once
#include <cstddef>

namespace simt {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void start(void (*function)());          // resume() will begin with it
  void resume();                           // called outside of fibers: runs until the function yields or returns
  static void yield();                     // called by the function: back to whoever resumed it
  bool guards(const void* address) const;  // true just below the stack: where one that is too deep ends up

 private:
  static void run();

  void* resume_point_ = nullptr;
  char* stack_;
  size_t colour_;  // how far below its end the stack begins
  void (*function_)() = nullptr;
};

}  // namespace simt
