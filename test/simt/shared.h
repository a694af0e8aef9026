// Shared memory. A kernel asks for its block's as one struct, shared<Tile>(), whose members are Shared<T>: under nvcc a
// T, here a T that reports each access. Behind every byte stand its last writer and the readers since, with their
// clocks (block.h). Errors, in whatever order the threads run:
//   unwritten  a byte is read that nobody has written in this block
//   race       two threads access a byte, at least one writes it, and no barrier of both lies between: a __syncthreads,
//              or in a warp a __syncwarp; shuffles and votes order no memory
//   unwaited   a byte is accessed to which an asynchronous copy is under way
//   outside    an access beyond the bytes that the launch asked for
// A Shared<T> can't be copied into an `auto`: name the type, as in `float x = tile.row[i]`.
#pragma once
#include <cstddef>
#include <cstring>

#include "simt.h"

template <class T, int N>
struct Vec;  // vec.cuh

namespace simt {

void* shared_memory(size_t bytes, Place where);  // the block's; it has to have as many bytes

// What the current thread is about to do.
void note_read(const void* at, size_t bytes);
void note_write(const void* at, size_t bytes);
void note_vector(const void* at, size_t bytes);  // one instruction: the address has to be a multiple of the size

template <class T>
T& shared(Place where = Place::current()) {
  return *static_cast<T*>(shared_memory(sizeof(T), where));
}

template <class T>
class Shared {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Shared() = default;
  Shared(const Shared&) = delete;

  [[gnu::always_inline]] operator T() const {
    note_read(this, sizeof(T));
    return value_;
  }
  [[gnu::always_inline]] Shared& operator=(const T& x) {
    note_write(this, sizeof(T));
    value_ = x;
    return *this;
  }
  [[gnu::always_inline]] Shared& operator=(const Shared& x) { return *this = T(x); }

  template <class U>
  [[gnu::always_inline]] Shared& operator+=(const U& x) {
    return *this = T(T(*this) + x);
  }
  template <class U>
  [[gnu::always_inline]] Shared& operator-=(const U& x) {
    return *this = T(T(*this) - x);
  }
  template <class U>
  [[gnu::always_inline]] Shared& operator*=(const U& x) {
    return *this = T(T(*this) * x);
  }
  template <class U>
  [[gnu::always_inline]] Shared& operator/=(const U& x) {
    return *this = T(T(*this) / x);
  }
  template <class U>
  [[gnu::always_inline]] Shared& operator|=(const U& x) {
    return *this = T(T(*this) | x);
  }
  template <class U>
  [[gnu::always_inline]] Shared& operator&=(const U& x) {
    return *this = T(T(*this) & x);
  }
  [[gnu::always_inline]] Shared& operator++() { return *this += 1; }
  [[gnu::always_inline]] Shared& operator--() { return *this -= 1; }

 private:
  T value_;
};

// load and store of vec.cuh, found through their argument.
template <int N, class T>
[[gnu::always_inline]] inline Vec<T, N> load(const Shared<T>* p) {
  note_vector(p, N * sizeof(T));
  note_read(p, N * sizeof(T));
  Vec<T, N> v;
  std::memcpy(&v, static_cast<const void*>(p), sizeof v);
  return v;
}
template <class T, int N>
[[gnu::always_inline]] inline void store(Shared<T>* p, const Vec<T, N>& v) {
  note_vector(p, N * sizeof(T));
  note_write(p, N * sizeof(T));
  std::memcpy(static_cast<void*>(p), &v, sizeof v);
}

// --- Asynchronous copies of 16 bytes (ptx.cuh), read at once
void begin_copy(void* to, const void* from, Place where);  // from null: zeros
void commit_copies();
void land_copies(int pending);  // of this thread's groups, all but the last `pending`

}  // namespace simt
