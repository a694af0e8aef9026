// Memory is planned, then taken once: a Plan lists what will be taken by kind, is printed and checked against the
// machine before anything is allocated, and a Block is one such piece.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Uninitialised floats, aligned to 64 bytes, to be freed by std::free. Large ones ask for huge pages: reading them is up
// to half faster. Fails where there is no memory.
float* take_floats(size_t floats);

// Floats, aligned to 64 bytes, zeroed.
class Block {
 public:
  Block() = default;
  explicit Block(size_t floats);
  float* data() { return memory_.get(); }
  const float* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  void zero();

 private:
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float, Free> memory_;
  size_t size_ = 0;
};

struct Plan {
  std::vector<std::pair<std::string, double>> bytes;  // by kind
  void add(const std::string& kind, double bytes_of_kind) { bytes.push_back({kind, bytes_of_kind}); }
  double total() const;
};

// What this process may still take: the machine's available memory, or its control group's limit where that is less. 0:
// unknown.
double available_memory();
// Fails where a plan does not fit, saying by how much and which kind is largest.
void require_memory(const Plan&);

// Cuts a block into named views: first counts, then hands out (the same calls in the same order).
class Cutter {
 public:
  explicit Cutter(float* block = nullptr) : block_(block) {}
  // rows × width floats; rounded up to whole cache lines.
  float* take(size_t floats) {
    float* p = block_ ? block_ + used_ : nullptr;
    used_ += (floats + 15) / 16 * 16;
    return p;
  }
  size_t used() const { return used_; }

 private:
  float* block_;
  size_t used_ = 0;
};
