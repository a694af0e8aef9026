// Memory is planned, then taken once: a Plan lists what will be taken by kind, is printed and checked against the
// machine before anything is allocated, and a Block is one such piece.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels.h"

// The host's memory, as a kernel table offers it (kernels.h). Large pieces ask for huge pages: reading them is up to half
// faster.
float* take_host_floats(size_t floats);
float* take_own_floats(size_t floats);  // the same by one thread alone, for its own use
void release_host_floats(float* memory);
void copy_bytes(void* to, const void* from, size_t bytes);

// Floats in the host's or a table's memory, aligned to 64 bytes, zeroed.
class Block {
 public:
  Block() = default;
  explicit Block(size_t floats) : memory_(take_host_floats(floats), release_host_floats), size_(floats) {}
  Block(const Kernels& run, size_t floats) : memory_(run.take(floats), run.release), size_(floats) {}
  float* data() { return memory_.get(); }
  const float* data() const { return memory_.get(); }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<float, void (*)(float*)> memory_{nullptr, release_host_floats};
  size_t size_ = 0;
};

// Floats that hold n elements of this table.
inline size_t floats_for(const Kernels& run, size_t n) { return (n * size_t(run.element_bytes) + 3) / 4; }

// n elements of a table's memory as floats that the host may read: in place, or a copy.
class OnHost {
 public:
  OnHost() = default;
  OnHost(const Kernels&, const act* from, size_t n);
  const float* data() const { return data_; }
  const float& operator[](size_t i) const { return data_[i]; }

 private:
  Block copy_;
  const float* data_ = nullptr;
};

struct Plan {
  std::vector<std::pair<std::string, double>> bytes;  // by kind
  void add(const std::string& kind, double bytes_of_kind) { bytes.push_back({kind, bytes_of_kind}); }
  double total() const;
};

// What this process may still take of the host's memory: the machine's available memory, or its control group's limit
// where that is less. 0: unknown.
double available_memory();
// Fails where a plan does not fit into the table's memory, saying by how much, which kind is largest, and what to do.
void require_memory(const Kernels&, const Plan&, const std::string& advice = "use a smaller model, batch or context");

// Cuts a block into named views: first counts, then hands out (the same calls in the same order). Each is rounded up to
// whole cache lines.
class Cutter {
 public:
  explicit Cutter(const Kernels& run, float* block = nullptr)
      : element_bytes_(size_t(run.element_bytes)), block_(block) {}
  float* floats(size_t n) { return cut(n * sizeof(float)); }
  act* acts(size_t n) { return cut(n * element_bytes_); }
  size_t used() const { return used_; }  // floats

 private:
  float* cut(size_t bytes) {
    float* p = block_ ? block_ + used_ : nullptr;
    used_ += (bytes + 63) / 64 * 16;
    return p;
  }

  size_t element_bytes_;
  float* block_;
  size_t used_ = 0;
};
