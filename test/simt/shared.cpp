#include "shared.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "block.h"
#include "memory.h"
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

// --- Mistakes

enum class Access { read, write };

std::string show_access(Access access, size_t offset, size_t bytes) {
  const char* verb = access == Access::read ? "reads" : "writes";
  return form("thread %d %s bytes %zu-%zu of the shared memory", block.current, verb, offset, offset + bytes - 1);
}

[[noreturn, gnu::noinline]] void die_of_race(Access access, size_t offset, size_t bytes, const char* code,
                                             const char* other, int thread, unsigned place) {
  die("race: " + show_access(access, offset, bytes) + form(", which thread %d %s at ", thread, other) +
          show_code(from_place(place)) + ", and no barrier of both lies between",
      show_code(code));
}

[[noreturn, gnu::noinline]] void die_of_state(Access access, size_t offset, size_t bytes, const char* code,
                                              const Byte& b) {
  std::string what = show_access(access, offset, bytes);
  if (b.written.time() < block.started) die("unwritten: " + what + ", which nobody has written", show_code(code));
  die("unwaited copy: " + what + form(", to which a copy by thread %d is under way", b.written.who() & ~kCopying),
      show_code(code));
}

// --- The rules

size_t offset_of(const void* at, size_t bytes, Access access, const char* code) {
  size_t offset = size_t(static_cast<const char*>(at) - memory);  // huge where it lies before
  if (block.current < 0) die("outside: a Shared<T> is accessed outside of a kernel", show_code(code));
  if (offset >= bytes_asked || bytes > bytes_asked - offset)
    die(form("outside: thread %d %s a Shared<T> at byte %td, but the launch asked for %zu bytes of shared memory",
             block.current, access == Access::read ? "reads" : "writes", static_cast<const char*>(at) - memory,
             bytes_asked),
        show_code(code));
  return offset;
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

void read_byte(Byte& b, size_t offset, size_t bytes, const char* code) {
  int me = block.current;
  if (b.written.time() < block.started || b.written.who() & kCopying)
    die_of_state(Access::read, offset, bytes, code, b);
  if (!before_now(b.written.time(), b.written.who()))
    die_of_race(Access::read, offset, bytes, code, "wrote", b.written.who(), b.write_place);
  unsigned others = 0;
  int warp = me / kLanes;
  if (b.read.time() >= block.synced) {
    if (b.read.who() == warp)
      others = unordered_readers(b);
    else
      warp = kSeveralWarps;
  }
  b.read = Stamp(std::max(block.threads[me].clock, others || warp == kSeveralWarps ? b.read.time() : 0), warp);
  b.readers = others | 1u << me % kLanes;
  b.read_place = to_place(code);
}

void check_readers(const Byte& b, size_t offset, size_t bytes, const char* code) {
  if (b.read.time() < block.synced || b.readers == 0) return;
  int warp = b.read.who();
  if (warp == block.current / kLanes) {
    unsigned others = unordered_readers(b);
    if (others)
      die_of_race(Access::write, offset, bytes, code, "reads", warp * kLanes + __builtin_ctz(others), b.read_place);
  } else {
    int reader = warp == kSeveralWarps ? 0 : warp * kLanes;
    die_of_race(Access::write, offset, bytes, code, "or another reads", reader + __builtin_ctz(b.readers),
                b.read_place);
  }
}

void write_byte(Byte& b, size_t offset, size_t bytes, const char* code, int writer) {
  if (b.written.time() >= block.started) {
    if (b.written.who() & kCopying) die_of_state(Access::write, offset, bytes, code, b);
    if (!before_now(b.written.time(), b.written.who()))
      die_of_race(Access::write, offset, bytes, code, "wrote", b.written.who(), b.write_place);
  }
  check_readers(b, offset, bytes, code);
  b.written = Stamp(block.threads[block.current].clock, writer);
  b.readers = 0;
  b.write_place = to_place(code);
}

void write_bytes(const void* at, size_t bytes, const char* code, int writer) {
  size_t offset = offset_of(at, bytes, Access::write, code);
  for (size_t i = 0; i < bytes; ++i) write_byte(history[offset + i], offset, bytes, code, writer);
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
  auto code = static_cast<const char*>(__builtin_return_address(0));
  size_t offset = offset_of(at, bytes, Access::read, code);
  for (size_t i = 0; i < bytes; ++i) read_byte(history[offset + i], offset, bytes, code);
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
