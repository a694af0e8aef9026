// Safetensors: what is read lies within the file, and is written and read again.
#include "safetensors.h"

#include <cstring>

#include "files.h"
#include "fuzz.h"
#include "targets.h"

namespace {

bool same(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         (a.bytes() == 0 || std::memcmp(a.data, b.data, size_t(a.bytes())) == 0);
}

void require_rewritable(const SafetensorsFile& file) {
  std::string path = file_path("again.safetensors");
  write_safetensors(path, file.tensors(), file.metadata());
  SafetensorsFile again(path);
  require(again.metadata() == file.metadata(), "metadata are written as they are read");
  require(again.tensors().size() == file.tensors().size(), "and so are all tensors");
  for (const TensorView& tensor : file.tensors())
    require(again.find(tensor.name) && same(*again.find(tensor.name), tensor), "and each of them");
}

}  // namespace

void fuzz_safetensors(std::string_view bytes) {
  std::string path = put_file("x.safetensors", bytes);
  accepts([&] {
    SafetensorsFile file(path);
    int64_t total = 0;
    uint32_t crc = 0;
    for (const TensorView& tensor : file.tensors()) {
      crc = crc32c(crc, tensor.data, size_t(tensor.bytes()));  // every byte can be read
      total += tensor.bytes();
      accepts([&] { file.floats(tensor.name, {2, 3}); });
    }
    require(total <= int64_t(bytes.size()), "tensors lie in the file");
    require_rewritable(file);
  });
}
