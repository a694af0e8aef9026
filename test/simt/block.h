// The block that runs: its threads, what they wait for, and who has synchronised with whom.
//
// Time counts barriers. A thread's clock is the time of the last one it took part in, and what it does is stamped with
// its clock; so whatever bears a stamp earlier than a barrier that two threads share comes, for both, before what
// follows that barrier. Time never starts anew, so stamps of earlier blocks are in the past of all.
#pragma once
#include <vector>

#include "fibers.h"
#include "simt.h"

namespace simt {

constexpr int kLanes = 32, kMostThreads = 1024;

struct Thread {
  uint3 index;             // its threadIdx
  Fiber* fiber = nullptr;  // while it has begun and not returned
  uint64_t clock = 0;
  const char* call = nullptr;  // its last barrier or collective, "__syncthreads", …
  Place where;                 // of that call
  unsigned mask = 0;           // and its lanes; 0: the block
  bool waits = false, left = false;
};

// Lanes that have come to a collective, which is complete when all of the mask have.
struct Meeting {
  Place where;
  unsigned mask = 0, there = 0;
};

struct Warp {
  unsigned living = 0;  // lanes that exist and have not returned
  unsigned existing = 0;
  std::vector<Meeting> meetings;
  Lane lanes[kLanes];
  uint64_t synced = 0;                  // its last barrier of all lanes
  uint64_t knows[kLanes][kLanes] = {};  // [a][b]: what b did before this time comes before what a does now
};

struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  int current = -1;  // the thread that runs, −1: none
  int living = 0, at_barrier = 0;
  Place barrier;
  uint64_t time = 1, started = 1;  // now, and when the block began
  uint64_t synced = 1;             // the time of its last __syncthreads
};
inline Block block;

struct Launch {
  const void* kernel;
  Grid grid;
  size_t shared_bytes;
  Body thread;
};
const Launch* launch_running();  // null outside of kernels

// True where what `thread` did at `stamp` comes before what the current thread does now.
inline bool before_now(uint64_t stamp, int thread) {
  if (stamp < block.synced || thread == block.current) return true;
  int me = block.current;
  if (thread / kLanes != me / kLanes) return false;
  const Warp& warp = block.warps[me / kLanes];
  return stamp < warp.synced || stamp < warp.knows[me % kLanes][thread % kLanes];
}

}  // namespace simt
