#include "shared.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "block.h"
#include "buffers.h"
#include "report.h"

namespace simt {
namespace {

constexpr size_t kMostBytes = 256 << 10, kAlignment = 128;

// A moment and who: the stamp's upper bits and the thread's number.
class Stamp {
 public:
  Stamp() = default;
  Stamp(uint64_t time, int who) : bits_(time << 16 | uint64_t(who)) {}
  uint64_t time() const { return bits_ >> 16; }
  int who() const { return int(bits_ & 0xffff); }

 private:
  uint64_t bits_ = 0;
};

constexpr int kSeveralWarps = 0x7fff, kCopying = 0x8000;  // in place of a reader's warp; added to a writer

// The history of a byte. Places are the low halves of code addresses, enough within one program.
struct Byte {
  Stamp written;         // by a thread; kCopying: by its copy, which has not landed
  Stamp read;            // the latest time, and the warp of those who read since the last write
  unsigned readers = 0;  // its lanes
  unsigned write_place = 0, read_place = 0;
};

char* memory = nullptr;  // begins anywhere behind a guard and ends at one
size_t bytes_asked = 0;
std::vector<Byte> history;

const char* from_place(unsigned place) {
  uintptr_t here = reinterpret_cast<uintptr_t>(&note_read);
  return reinterpret_cast<const char*>(here + uintptr_t(intptr_t(int32_t(place - unsigned(here)))));
}
unsigned to_place(const void* code) { return unsigned(reinterpret_cast<uintptr_t>(code)); }

// What the current thread does to some bytes.
struct Access {
  const char* verb;  // "reads", "writes"
  size_t offset, bytes;
  const char* code;  // who asks
  uint64_t clock = block.threads[block.current].clock;
};

// --- Mistakes

std::string show_access(const Access& a) {
  return form("thread %d %s bytes %zu-%zu of the shared memory", block.current, a.verb, a.offset,
              a.offset + a.bytes - 1);
}

[[noreturn, gnu::noinline]] void die_of_race(const Access& a, const std::string& other, unsigned place) {
  die("race: " + show_access(a) + ", which " + other + " at " + show_code(from_place(place)) +
          ", and no barrier of both lies between",
      show_code(a.code));
}

[[noreturn, gnu::noinline]] void die_of_state(const Access& a, const Byte& b) {
  if (b.written.time() < block.started)
    die("unwritten: " + show_access(a) + ", which nobody has written", show_code(a.code));
  die("unwaited copy: " + show_access(a) +
          form(", to which a copy by thread %d is under way", b.written.who() & ~kCopying),
      show_code(a.code));
}

[[noreturn, gnu::noinline]] void die_outside(const char* verb, const void* at, const char* code) {
  if (block.current < 0) die("outside: a Shared<T> is accessed outside of a kernel", show_code(code));
  die(form("outside: thread %d %s a Shared<T> at byte %td, but the launch asked for %zu bytes of shared memory",
           block.current, verb, static_cast<const char*>(at) - memory, bytes_asked),
      show_code(code));
}

// --- The rules

Access access(const char* verb, const void* at, size_t bytes, const char* code) {
  size_t offset = size_t(static_cast<const char*>(at) - memory);  // huge where it lies before
  if (block.current < 0 || offset >= bytes_asked || bytes > bytes_asked - offset) die_outside(verb, at, code);
  return {verb, offset, bytes, code};
}

// Lanes among the byte's readers, all in this thread's warp, whose reading may still be going on.
unsigned unordered_readers(const Byte& b) {
  int first = b.read.who() * kLanes;
  unsigned unordered = 0;
  each_lane(b.readers, [&](int i) {
    if (!before_now(b.read.time(), first + i)) unordered |= 1u << i;
  });
  return unordered;
}

// Earlier readings that a barrier has put behind us need not be remembered: who writes after ours writes after them.
void add_reader(Byte& b, const Access& a) {
  int me = block.current, warp = me / kLanes;
  uint64_t time = a.clock;
  unsigned others = 0;
  if (b.readers && b.read.time() >= block.synced) {
    if (b.read.who() != warp)
      warp = kSeveralWarps;
    else
      others = unordered_readers(b);
    if (others || warp == kSeveralWarps) time = std::max(time, b.read.time());
  }
  b.read = Stamp(time, warp);
  b.readers = others | 1u << me % kLanes;
  b.read_place = to_place(a.code);
}

void read_byte(Byte& b, const Access& a) {
  if (b.written.time() < block.started || b.written.who() & kCopying) die_of_state(a, b);
  if (!before_now(b.written.time(), b.written.who()))
    die_of_race(a, form("thread %d wrote", b.written.who()), b.write_place);
  add_reader(b, a);
}

void check_readers(const Byte& b, const Access& a) {
  if (!b.readers || b.read.time() < block.synced) return;
  int warp = b.read.who();
  if (warp == kSeveralWarps) die_of_race(a, "threads of several warps read, one of them", b.read_place);
  unsigned others = warp == block.current / kLanes ? unordered_readers(b) : b.readers;
  if (others) die_of_race(a, form("thread %d read", warp * kLanes + __builtin_ctz(others)), b.read_place);
}

void write_byte(Byte& b, const Access& a, int writer) {
  if (b.written.time() >= block.started) {
    if (b.written.who() & kCopying) die_of_state(a, b);
    if (!before_now(b.written.time(), b.written.who()))
      die_of_race(a, form("thread %d wrote", b.written.who()), b.write_place);
  }
  check_readers(b, a);
  b.written = Stamp(a.clock, writer);
  b.readers = 0;
  b.write_place = to_place(a.code);
}

void write_bytes(const void* at, size_t bytes, const char* code, int writer) {
  Access a = access("writes", at, bytes, code);
  for (size_t i = 0; i < bytes; ++i) write_byte(history[a.offset + i], a, writer);
}

// --- Copies under way

struct Copy {
  char* to;
  alignas(16) unsigned char data[16];
};
struct Copies {                // of a thread
  std::vector<Copy> all;       // the oldest first
  std::vector<size_t> groups;  // how many of them each committed group has
  size_t uncommitted = 0;
};
std::vector<Copies> copies;
bool copied = false;  // any, in this block

Copies& my_copies() {
  copied = true;
  if (copies.size() < block.threads.size()) copies.resize(block.threads.size());
  return copies[block.current];
}

void land(const Copy& copy) {
  std::memcpy(copy.to, copy.data, 16);
  Stamp now(block.threads[block.current].clock, block.current);
  for (size_t i = 0; i < 16; ++i) history[size_t(copy.to - memory) + i].written = now;
}

}  // namespace

// --- What a launch does

void shape_shared_memory(size_t bytes) {
  static char* end = nullptr;
  if (!end) {
    size_t page = size_t(sysconf(_SC_PAGESIZE));
    void* region = mmap(nullptr, kMostBytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* begin = static_cast<char*>(region) + page;
    if (region == MAP_FAILED || mprotect(begin, kMostBytes, PROT_READ | PROT_WRITE)) die("no memory", std::string());
    end = begin + kMostBytes;
  }
  if (bytes > kMostBytes) die(form("%zu bytes of shared memory", bytes), std::string());
  bytes_asked = bytes;
  memory = end - (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (history.size() < bytes) history.resize(bytes);
}

void begin_shared_memory() {
  fill_with_nan(memory, (bytes_asked + 1) / 2 * 2);
  if (copied)
    for (Copies& c : copies) c.all.clear(), c.groups.clear(), c.uncommitted = 0;
  copied = false;
}

std::string show_shared_memory(const void* address) {
  ptrdiff_t offset = static_cast<const char*>(address) - memory;
  if (!memory || offset < -65536 || offset > ptrdiff_t(bytes_asked + 65536)) return {};
  return form("at byte %td of the block's %zu bytes of shared memory", offset, bytes_asked);
}

void* shared_memory(size_t bytes, Place where) {
  if (bytes > bytes_asked)
    die(form("shared<T>() is of %zu bytes, but the launch asked for %zu bytes of shared memory", bytes, bytes_asked),
        where);
  return memory;
}

// --- Accesses

void note_read(const void* at, size_t bytes) {
  Access a = access("reads", at, bytes, static_cast<const char*>(__builtin_return_address(0)));
  for (size_t i = 0; i < bytes; ++i) read_byte(history[a.offset + i], a);
}

void note_write(const void* at, size_t bytes) {
  write_bytes(at, bytes, static_cast<const char*>(__builtin_return_address(0)), block.current);
}

void note_vector(const void* at, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(at) % bytes)
    die(form("misaligned: an access to %zu bytes at once begins at byte %td of the shared memory", bytes,
             static_cast<const char*>(at) - memory),
        show_code(__builtin_return_address(0)));
}

void begin_copy(void* to, const void* from, Place where) {
  auto code = static_cast<const char*>(__builtin_return_address(0));
  if (reinterpret_cast<uintptr_t>(to) % 16 || reinterpret_cast<uintptr_t>(from) % 16)
    die(form("misaligned: an asynchronous copy from %p to %p, which have to be multiples of 16", from, to), where);
  write_bytes(to, 16, code, block.current | kCopying);
  Copy copy = {static_cast<char*>(to), {}};
  if (from) std::memcpy(copy.data, from, 16);
  Copies& mine = my_copies();
  mine.all.push_back(copy);
  ++mine.uncommitted;
}

void commit_copies() {
  Copies& mine = my_copies();
  mine.groups.push_back(mine.uncommitted);
  mine.uncommitted = 0;
}

void land_copies(int pending) {
  Copies& mine = my_copies();
  if (mine.groups.size() <= size_t(pending)) return;
  auto landed = mine.groups.end() - pending;
  size_t count = std::accumulate(mine.groups.begin(), landed, size_t(0));
  std::for_each(mine.all.begin(), mine.all.begin() + ptrdiff_t(count), land);
  mine.all.erase(mine.all.begin(), mine.all.begin() + ptrdiff_t(count));
  mine.groups.erase(mine.groups.begin(), landed);
}

}  // namespace simt
