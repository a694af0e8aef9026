// The safetensors format: 8 bytes little-endian header length, a JSON header {name: {dtype, shape, data_offsets},
// "__metadata__"}, then the tensors' bytes, row-major and little-endian. https://github.com/huggingface/safetensors
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// A tensor to write, or one found in a file.
struct TensorView {
  std::string name;
  std::string dtype;  // "F32", "F64", "I32", "I64", "U8", "BF16", …
  std::vector<int64_t> shape;
  const void* data = nullptr;  // while the file's owner lives
  int64_t bytes() const;       // from dtype and shape; fails for an unknown dtype and for a shape that no memory holds
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Writes to a new file at exactly `path` (no rename: see write_safetensors for a whole file), syncs it, and returns the
// CRC-32C of all that was written. A failure leaves no file. Tensors are streamed, not copied. The first tensor's data
// is aligned to 64 bytes by padding the header; wider dtypes come first, so that every tensor is aligned to its
// elements.
uint32_t write_safetensors_to(const std::string& path, const std::vector<TensorView>& tensors,
                              const Metadata& metadata);
// The same, beside the target and renamed over it when it is whole.
void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors, const Metadata& metadata);

// Maps a file; checks that the header is sane, that shapes and offsets agree, that tensors lie end to end and that the
// file is exactly as long as its header says: every defect is one line that names the file and the tensor. A tensor
// whose place in the file is not aligned to its elements is copied to one that is.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::vector<TensorView>& tensors() const { return tensors_; }  // in the file's order
  const Metadata& metadata() const { return metadata_; }
  const TensorView* find(const std::string& name) const;
  // The tensor's floats, after checking that it exists and has this shape and dtype F32.
  const float* floats(const std::string& name, const std::vector<int64_t>& shape) const;
  const std::string& path() const { return path_; }
  uint32_t crc() const;  // of the whole file

 private:
  void map();
  void read_header();
  void place(struct PlacedTensor&, int64_t data_start);
  std::string path_;
  void* mapping_ = nullptr;
  size_t size_ = 0;
  std::vector<TensorView> tensors_;
  std::vector<std::unique_ptr<char[]>> aligned_copies_;
  Metadata metadata_;
};
