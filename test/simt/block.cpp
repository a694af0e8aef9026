#include "block.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "buffers.h"
#include "order.h"
#include "report.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace simt {
namespace {

uint64_t first_seed() {
  const char* text = std::getenv("FULLBAND_SIMT_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 1;
}
uint64_t the_seed = first_seed();
Random order(the_seed);

std::optional<Launch> launched;
std::vector<int> ready;    // threads that can run
std::vector<Fiber*> idle;  // the last one used comes first: its stack is in the cache
std::vector<std::unique_ptr<Fiber>> fibers;

Thread& me() { return block.threads[block.current]; }

// --- Waiting

void note_call(const char* call, unsigned mask, Place where) {
  Thread& t = me();
  t.call = call, t.mask = mask, t.where = where;
}

void wait() {
  me().waits = true;
  Fiber::yield();
}

void wake(int thread) {
  Thread& t = block.threads[thread];
  if (!t.waits) return;
  t.waits = false;
  ready.push_back(thread);
}

void complete_barrier() {
  block.synced = ++block.time;
  block.at_barrier = 0;
  for (size_t i = 0; i < block.threads.size(); ++i) {
    if (block.threads[i].left) continue;
    block.threads[i].clock = block.time;
    wake(int(i));
  }
}

// A barrier of some lanes: what any of them knows, all know from now on; and what each of them has done.
void learn(Warp& warp, int first_thread, unsigned mask) {
  ++block.time;
  each_lane(mask, [&](int i) { block.threads[first_thread + i].clock = block.time; });
  if (mask == warp.existing) {
    warp.synced = block.time;
    return;
  }
  uint64_t all[kLanes] = {};
  each_lane(mask, [&](int i) {
    for (int other = 0; other < kLanes; ++other) all[other] = std::max(all[other], warp.knows[i][other]);
  });
  each_lane(mask, [&](int i) { all[i] = block.time; });
  each_lane(mask, [&](int i) { std::copy_n(all, kLanes, warp.knows[i]); });
}

void complete(Warp& warp, int first_thread, unsigned mask, Combine combine) {
  if (combine)
    combine(warp.lanes, mask);
  else
    learn(warp, first_thread, mask);
  each_lane(mask, [&](int i) { wake(first_thread + i); });
}

// --- Mistakes

// "threads 0-31, 40"
std::string show_threads(const std::vector<int>& threads) {
  std::string list = threads.size() > 1 ? "threads " : "thread ";
  for (size_t i = 0; i < threads.size();) {
    size_t end = i + 1;
    while (end < threads.size() && threads[end] == threads[end - 1] + 1) ++end;
    list += form(i ? ", %d" : "%d", threads[i]);
    if (end - i > 1) list += form("-%d", threads[end - 1]);
    i = end;
  }
  return list;
}

std::string show_wait(const Thread& t) {
  std::string lanes = t.mask ? form(" of lanes 0x%08x", t.mask) : "";
  return std::string(t.call) + lanes + " at " + show(t.where);
}

[[noreturn]] void die_of_deadlock() {
  std::string report = "deadlock: no thread of the block can go on";
  std::vector<bool> told(block.threads.size());
  for (size_t i = 0; i < told.size(); ++i) {
    if (told[i] || block.threads[i].left) continue;
    std::vector<int> alike;
    std::string wait = show_wait(block.threads[i]);
    for (size_t j = i; j < told.size(); ++j)
      if (!told[j] && !block.threads[j].left && show_wait(block.threads[j]) == wait)
        alike.push_back(int(j)), told[j] = true;
    report += "\n  " + show_threads(alike) + (alike.size() > 1 ? " wait in " : " waits in ") + wait;
  }
  std::vector<int> left;
  for (size_t i = 0; i < told.size(); ++i)
    if (block.threads[i].left) left.push_back(int(i));
  if (!left.empty()) report += "\n  " + show_threads(left) + (left.size() > 1 ? " have" : " has") + " returned";
  die_as(-1, report, std::string());
}

void check_mask(const char* call, unsigned mask, const Warp& warp, int lane, Place where) {
  if (!(mask >> lane & 1))
    die(form("%s: lane %d calls with the mask 0x%08x, in which it is not itself", call, lane, mask), where);
  if (unsigned gone = mask & ~warp.living) {
    int other = __builtin_ctz(gone);
    const char* why = warp.existing >> other & 1 ? "has returned" : "does not exist in this block";
    die(form("%s: lane %d of the mask 0x%08x %s", call, other, mask, why), where);
  }
}

// --- Threads

// A thread that returns no longer counts at barriers, and must not be waited for by lanes of its warp.
void leave() {
  Thread& t = me();
  Warp& warp = block.warps[block.current / kLanes];
  int lane = block.current % kLanes;
  t.left = true;
  warp.living &= ~(1u << lane);
  for (const Meeting& m : warp.meetings)
    if (m.mask >> lane & 1)
      die(form("lane %d returns while lanes 0x%08x wait for it in a warp collective of mask 0x%08x", lane, m.there,
               m.mask),
          m.where);
  if (--block.living && block.at_barrier == block.living) complete_barrier();
}

void run_thread() {
  launched->thread();
  leave();
}

Fiber* take_fiber() {
  if (idle.empty()) idle.push_back(fibers.emplace_back(new Fiber).get());
  Fiber* fiber = idle.back();
  idle.pop_back();
  return fiber;
}

void resume(int thread) {
  Thread& t = block.threads[thread];
  block.current = thread;
  threadIdx = t.index;
  if (!t.fiber) {
    t.fiber = take_fiber();
    t.fiber->start(run_thread);
  }
  t.fiber->resume();
  if (t.left) {
    idle.push_back(t.fiber);
    t.fiber = nullptr;
  }
}

// --- Blocks and grids

void begin_block() {
  block.started = block.synced = ++block.time;
  block.living = int(block.threads.size());
  block.at_barrier = 0;
  ready.clear();
  for (size_t i = 0; i < block.threads.size(); ++i) {
    block.threads[i].clock = block.time;
    block.threads[i].left = false;
    ready.push_back(int(i));
  }
  for (Warp& warp : block.warps) warp.living = warp.existing;
  begin_shared_memory();
}

void run_block(uint3 index) {
  blockIdx = index;
  begin_block();
  while (block.living > 0) {
    if (ready.empty()) die_of_deadlock();
    std::swap(ready[order.below(unsigned(ready.size()))], ready.back());
    int thread = ready.back();
    ready.pop_back();
    resume(thread);
  }
  block.current = -1;
}

void shape_blocks(dim3 size) {
  static dim3 last(0);
  if (size.x == last.x && size.y == last.y && size.z == last.z) return;
  last = size;
  int threads = int(size.x * size.y * size.z);
  block.threads.assign(size_t(threads), Thread());
  block.warps.assign(size_t((threads + kLanes - 1) / kLanes), Warp());
  for (int i = 0; i < threads; ++i) {
    unsigned flat = unsigned(i);
    block.threads[i].index = {flat % size.x, flat / size.x % size.y, flat / size.x / size.y};
    block.warps[i / kLanes].existing |= 1u << i % kLanes;
  }
}

}  // namespace

void set_seed(uint64_t seed) {
  the_seed = seed;
  order = Random(seed);
}
uint64_t seed() { return the_seed; }

const Launch* launch_running() { return launched ? &*launched : nullptr; }
int lane() { return block.current % kLanes; }

void meet_block(Place where) {
  note_call("__syncthreads", 0, where);
  if (block.at_barrier == 0)
    block.barrier = where;
  else if (!same_place(block.barrier, where))
    die("divergent barriers: one thread is at this __syncthreads while another waits in that at " + show(block.barrier),
        where);
  if (++block.at_barrier == block.living)
    complete_barrier();
  else
    wait();
}

void meet_warp(const char* call, unsigned mask, Lane lane, Combine combine, Place where) {
  int at = block.current % kLanes, first_thread = block.current - at;
  Warp& warp = block.warps[block.current / kLanes];
  check_mask(call, mask, warp, at, where);
  note_call(call, mask, where);
  warp.lanes[at] = lane;
  auto meeting = warp.meetings.begin();
  while (meeting != warp.meetings.end() && !(same_place(meeting->where, where) && (meeting->mask & mask))) ++meeting;
  if (meeting == warp.meetings.end()) {
    warp.meetings.push_back({where, mask, 0});
    meeting = warp.meetings.end() - 1;
  }
  if (meeting->mask != mask)
    die(form("%s: lane %d calls with the mask 0x%08x while lanes 0x%08x wait here with 0x%08x", call, at, mask,
             meeting->there, meeting->mask),
        where);
  meeting->there |= 1u << at;
  if (meeting->there != mask) return wait();
  warp.meetings.erase(meeting);
  complete(warp, first_thread, mask, combine);
}

void check_source(unsigned mask, int reader, int from) {
  if (mask >> from & 1) return;
  int thread = block.current - block.current % kLanes + reader;
  die_as(thread, form("%s: lane %d reads from lane %d, which is not in the mask 0x%08x", me().call, reader, from, mask),
         show(me().where));
}

void run(const void* kernel, const Grid& grid, dim3 threads, size_t shared_bytes, Body thread) {
  launched.emplace(Launch{kernel, grid, shared_bytes, thread});
  gridDim = grid.size, blockDim = threads;
  watch_memory();
  shape_blocks(threads);
  shape_shared_memory(shared_bytes);
  std::vector<uint32_t> turns(size_t(gridDim.x) * gridDim.y * gridDim.z);
  for (size_t i = 0; i < turns.size(); ++i) turns[i] = uint32_t(i);
  order.shuffle(turns);
  for (uint32_t i : turns) run_block({i % gridDim.x, i / gridDim.x % gridDim.y, i / gridDim.x / gridDim.y});
  check_guards();
  launched.reset();
}

}  // namespace simt
