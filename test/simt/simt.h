// The emulator: runs CUDA kernels on the CPU, for the tests. What a kernel sees of CUDA when g++ compiles it is here,
// in collectives.h, shared.h and intrinsics.h; the runtime's stand-ins for the host are in cuda_runtime.h.
//
//   threads    of a block are fibers; whose turn is next, and which block's, is drawn from a seed, so that a result
//              that depends on the order shows
//   barriers   __syncthreads waits for the block's living threads, a warp collective for the lanes of its mask; when
//              nobody can go on, the stuck threads and what they wait for are printed
//   memory     shared memory and the device's start as NaN; each byte of shared memory knows who wrote and read it, so
//              that a missing barrier is found in whatever order the threads run; behind and before each buffer of the
//              device lie guards (buffers.h)
//   mistakes   of a kernel end the process with what is wrong, where, in which kernel, launch, block and thread
//
// One host thread at a time may use it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace simt {

// The order of everything that CUDA leaves open is drawn from this seed; at first it is FULLBAND_SIMT_SEED from the
// environment, or else 1. Setting it begins the sequence anew.
void set_seed(uint64_t seed);
uint64_t seed();

// A place in the source, taken where a call is written: the last parameter of every collective.
#ifdef __cpp_lib_source_location
using Place = std::source_location;
#else  // clang 14 has no such thing, but what it would be made of
struct Place {
  const char *file = "", *function = "";
  unsigned at_line = 0, at_column = 0;
  static constexpr Place current(const char* file = __builtin_FILE(), const char* function = __builtin_FUNCTION(),
                                 unsigned line = __builtin_LINE(), unsigned column = __builtin_COLUMN()) {
    return {file, function, line, column};
  }
  constexpr const char* file_name() const { return file; }
  constexpr const char* function_name() const { return function; }
  constexpr unsigned line() const { return at_line; }
  constexpr unsigned column() const { return at_column; }
};
#endif

// A grid, and where it was launched.
struct Grid {
  dim3 size;
  Place where;
  Grid(dim3 size = {}, Place where = Place::current()) : size(size), where(where) {}
  Grid(unsigned x, Place where = Place::current()) : size(x), where(where) {}
};

// A piece of the host's code to be called with the memory of its captures: a reference to a callable that outlives it.
class Body {
 public:
  template <class F>
  Body(const F& f) : object_(&f), call_([](const void* object) { (*static_cast<const F*>(object))(); }) {}
  void operator()() const { call_(object_); }

 private:
  const void* object_;
  void (*call_)(const void*);
};

// Runs `thread` once for each thread of the grid; `kernel` is the function it calls, for reports.
void run(const void* kernel, const Grid& grid, dim3 block, size_t shared_bytes, Body thread);

}  // namespace simt

#include "collectives.h"
#include "intrinsics.h"
#include "shared.h"
