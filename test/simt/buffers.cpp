#include "buffers.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "block.h"
#include "report.h"
#include "runtime.h"

namespace simt {
namespace {

constexpr size_t kRounding = 16, kCheckedBefore = 256, kRemembered = 256, kGuardBytes = 64 << 10, kNear = 1 << 20;
constexpr uint16_t kNan = 0x7fff, kCanary = 0x7ff5;  // which is NaN as well

struct Buffer {
  char* begin;
  size_t bytes;
  Kind kind;
  char* region;
  size_t region_bytes;

  char* end() const { return begin + bytes; }
  char* rounded_end() const { return region + region_bytes - kGuardBytes; }
  char* checked() const { return std::max(region + kGuardBytes, begin - kCheckedBefore); }
  bool spans(const char* at) const { return region <= at && at < region + region_bytes; }
};

std::map<const char*, Buffer> buffers;  // by the region's end
std::deque<Buffer> freed;               // the last few, whose addresses stay reserved
size_t used = 0, limit = size_t(8) << 30;

// What kCheckedBefore bytes of canaries from `at` on look like.
const char* canaries(const char* at) {
  static const std::vector<uint16_t> pattern(kCheckedBefore / 2 + 1, kCanary);
  return reinterpret_cast<const char*>(pattern.data()) + reinterpret_cast<uintptr_t>(at) % 2;
}
void set_canaries(char* begin, char* end) { std::memcpy(begin, canaries(begin), size_t(end - begin)); }
const char* first_change(const char* begin, const char* end) {
  const char* wanted = canaries(begin);
  if (!std::memcmp(begin, wanted, size_t(end - begin))) return nullptr;
  return std::mismatch(begin, end, wanted).first;
}

const char* show_kind(Kind kind) { return kind == Kind::device ? "device" : "pinned"; }

std::string show_offset(const Buffer& b, const char* at) {
  std::string buffer = form("a %s buffer of %zu bytes", show_kind(b.kind), b.bytes);
  if (at < b.begin) return form("%td bytes before the beginning of ", b.begin - at) + buffer;
  if (at >= b.end()) return form("%td bytes behind the end of ", at - b.end()) + buffer;
  return form("at byte %td of ", at - b.begin) + buffer;
}

void check_guards_of(const Buffer& b) {
  const char* changed = first_change(b.checked(), b.begin);
  if (!changed) changed = first_change(b.end(), b.rounded_end());
  if (changed) die("out of bounds: something was written " + show_offset(b, changed), std::string());
}

const Buffer* find(const void* address) {
  auto at = static_cast<const char*>(address);
  auto it = buffers.upper_bound(at);
  return it != buffers.end() && it->second.spans(at) ? &it->second : nullptr;
}

size_t distance(const Buffer& b, const char* at) {
  return at < b.begin ? size_t(b.begin - at) : at >= b.end() ? size_t(at - b.end()) + 1 : 0;
}

}  // namespace

void fill_with_nan(void* begin, size_t bytes) {
  auto p = static_cast<uint16_t*>(begin);
  std::fill(p, p + bytes / 2, kNan);
}

void* allocate(size_t bytes, Kind kind) {
  if (bytes > (kind == Kind::device ? limit - std::min(limit, used) : limit)) return nullptr;
  auto round_up = [](size_t n, size_t unit) { return std::max((n + unit - 1) / unit, size_t(1)) * unit; };
  size_t rounded = round_up(bytes, kRounding), inner = round_up(rounded, size_t(sysconf(_SC_PAGESIZE)));
  size_t region_bytes = inner + 2 * kGuardBytes;
  void* region = mmap(nullptr, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) return nullptr;
  Buffer b = {nullptr, bytes, kind, static_cast<char*>(region), region_bytes};
  if (mprotect(b.region + kGuardBytes, inner, PROT_READ | PROT_WRITE)) return nullptr;
  b.begin = b.rounded_end() - rounded;
  set_canaries(b.checked(), b.begin);
  fill_with_nan(b.begin, rounded);
  set_canaries(b.end(), b.rounded_end());
  buffers.emplace(b.region + region_bytes, b);
  if (kind == Kind::device) used += bytes;
  return b.begin;
}

bool release(void* begin, Kind kind) {
  const Buffer* found = find(begin);
  if (!found || found->begin != begin || found->kind != kind) return false;
  Buffer b = *found;
  check_guards_of(b);
  if (kind == Kind::device) used -= b.bytes;
  buffers.erase(b.region + b.region_bytes);
  // Replaced by memory that holds nothing and faults.
  mmap(b.region, b.region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed.push_back(b);
  if (freed.size() > kRemembered) {
    munmap(freed.front().region, freed.front().region_bytes);
    freed.pop_front();
  }
  return true;
}

Where where_is(const void* address) {
  const Buffer* b = find(address);
  return !b ? Where::nowhere : b->kind == Kind::device ? Where::device : Where::pinned;
}

bool inside_buffer(const void* address, size_t bytes) {
  const Buffer* b = find(address);
  auto at = static_cast<const char*>(address);
  return b && b->begin <= at && at <= b->end() && bytes <= size_t(b->end() - at);
}

std::string describe_address(const void* address) {
  auto at = static_cast<const char*>(address);
  if (const Buffer* b = find(at)) return show_offset(*b, at);
  for (const Buffer& b : freed)
    if (b.spans(at)) return show_offset(b, at) + ", which was freed";
  std::string shared = show_shared_memory(address);
  if (!shared.empty()) return shared;
  const Buffer* nearest = nullptr;
  for (const auto& [end, b] : buffers)
    if (!nearest || distance(b, at) < distance(*nearest, at)) nearest = &b;
  return nearest && distance(*nearest, at) < kNear ? show_offset(*nearest, at) : "far from any buffer";
}

size_t device_bytes_used() { return used; }
size_t device_bytes() { return limit; }
void set_device_memory(size_t bytes) { limit = bytes; }

void check_guards() {
  for (const auto& [end, b] : buffers) check_guards_of(b);
}

namespace {

std::string code_of(const void* context) {
  auto machine = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  return show_code(reinterpret_cast<const char*>(machine->uc_mcontext.gregs[REG_RIP]) + 1);
#elif defined(__aarch64__)
  return show_code(reinterpret_cast<const char*>(machine->uc_mcontext.pc) + 1);
#else
  return machine ? std::string() : std::string();
#endif
}

void on_fault(int number, siginfo_t* info, void* context) {
  signal(number, SIG_DFL);
  if (block.current < 0) return;  // the host's own mistake: it faults again, in the ordinary way
  const Fiber* fiber = block.threads[block.current].fiber;
  if (fiber && fiber->guards(info->si_addr)) die("the thread's stack is too small", std::string());
  if (info->si_code == SI_KERNEL)
    die("misaligned: an access to an address that is no multiple of its size", code_of(context));
  die(form("out of bounds: an access to %p, ", info->si_addr) + describe_address(info->si_addr), code_of(context));
}

}  // namespace

void watch_memory() {
  static bool watching = false;
  if (watching) return;
  watching = true;
  static char stack[256 << 10];  // its own: a thread's may be what has run out
  stack_t alternative = {};
  alternative.ss_sp = stack, alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace simt
