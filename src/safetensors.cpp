// Safetensors: writing tensors as a stream, and reading files that nobody vouches for.
#include "safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_set>

#include "error.h"
#include "files.h"
#include "json.h"

static int64_t element_bytes(const std::string& dtype) {
  static const std::pair<const char*, int64_t> kSizes[] = {
      {"F64", 8}, {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4},  {"U32", 4},     {"F16", 2},    {"BF16", 2},
      {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (auto [name, size] : kSizes)
    if (dtype == name) return size;
  return 0;
}

static std::string show_shape(const std::vector<int64_t>& shape) {
  std::string shown;
  for (int64_t n : shape) shown += (shown.empty() ? "" : ", ") + std::to_string(n);
  return "[" + shown + "]";
}

int64_t TensorView::bytes() const {
  int64_t total = element_bytes(dtype);
  if (total == 0) fail("tensor `%s` has the unknown dtype `%s`", name.c_str(), dtype.c_str());
  for (int64_t n : shape) {
    bool fits = n >= 0 && !__builtin_mul_overflow(total, n, &total);
    if (!fits) fail("tensor `%s` has the impossible shape %s", name.c_str(), show_shape(shape).c_str());
  }
  return total;
}

static Json header_of(const std::vector<TensorView>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) {
    Json texts = Json::object();
    for (const auto& [name, value] : metadata) texts.set(name, value);
    header.set("__metadata__", texts);
  }
  std::unordered_set<std::string> names = {"__metadata__"};
  int64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    check(names.insert(tensor.name).second, "write_safetensors: two tensors are named %s", tensor.name.c_str());
    Json shape = Json::array();
    for (int64_t n : tensor.shape) shape.items.push_back(n);
    int64_t end = offset + tensor.bytes();
    Json entry =
        Json::object({{"dtype", tensor.dtype}, {"shape", shape}, {"data_offsets", Json::array({offset, end})}});
    header.members.emplace_back(tensor.name, std::move(entry));
    offset = end;
  }
  return header;
}

static void write_tensors(NewFile& file, std::vector<TensorView> tensors, const Metadata& metadata) {
  constexpr size_t kAlignment = 64;
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return element_bytes(a.dtype) > element_bytes(b.dtype);
  });
  std::string header = write_json(header_of(tensors, metadata));
  while ((8 + header.size()) % kAlignment) header += ' ';
  uint64_t length = header.size();
  file.write(&length, 8);
  file.write(header);
  for (const TensorView& tensor : tensors) file.write(tensor.data, size_t(tensor.bytes()));
}

uint32_t write_safetensors_to(const std::string& path, const std::vector<TensorView>& tensors,
                              const Metadata& metadata) {
  NewFile file(path);
  write_tensors(file, tensors, metadata);
  file.finish();
  return file.crc();
}

void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors, const Metadata& metadata) {
  replace_file(path, [&](NewFile& file) { write_tensors(file, tensors, metadata); });
}

// A tensor as a header describes it, before it is believed.
struct PlacedTensor {
  TensorView view;
  int64_t begin, end;
};

static std::vector<int64_t> whole_numbers(const Json& entry, const char* member, const std::string& where) {
  constexpr double kMost = 9007199254740992.0;  // 2⁵³: the offsets of no real file reach it
  std::vector<int64_t> numbers;
  for (const Json& item : entry.get(member, where).items) {
    double n = item.number;
    bool whole = item.kind == Json::Kind::number && n >= 0 && n < kMost && n == double(int64_t(n));
    if (!whole) fail("%s: `%s` should hold whole numbers, none negative", where.c_str(), member);
    numbers.push_back(int64_t(n));
  }
  if (entry.find(member)->kind != Json::Kind::array) fail("%s: `%s` should be an array", where.c_str(), member);
  return numbers;
}

static PlacedTensor read_entry(const std::string& name, const Json& entry, const std::string& path) {
  std::string where = path + ": tensor `" + name + "`";
  PlacedTensor tensor = {};
  tensor.view.name = name;
  tensor.view.dtype = entry.get_string("dtype", where);
  tensor.view.shape = whole_numbers(entry, "shape", where);
  std::vector<int64_t> offsets = whole_numbers(entry, "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    fail("%s: `data_offsets` should be two numbers, begin and end", where.c_str());
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  int64_t bytes = 0;
  try {
    bytes = tensor.view.bytes();
  } catch (const Error& error) {
    fail("%s: %s", path.c_str(), error.what());
  }
  if (bytes != tensor.end - tensor.begin)
    fail("%s: shape %s of %s takes %lld bytes, but the offsets leave %lld", where.c_str(),
         show_shape(tensor.view.shape).c_str(), tensor.view.dtype.c_str(), (long long)bytes,
         (long long)(tensor.end - tensor.begin));
  return tensor;
}

static Metadata read_metadata(const Json& texts, const std::string& path) {
  if (texts.kind != Json::Kind::object) fail("%s: `__metadata__` should be an object", path.c_str());
  Metadata metadata;
  for (const auto& [name, value] : texts.members) {
    if (value.kind != Json::Kind::string)
      fail("%s: `__metadata__`: `%s` should be a string", path.c_str(), name.c_str());
    metadata.emplace_back(name, value.string);
  }
  return metadata;
}

// End to end, as the format demands: no overlap, no hole, nothing before and nothing after.
static void check_layout(const std::vector<PlacedTensor>& tensors, int64_t data_bytes, const std::string& path) {
  int64_t end = 0;
  for (const PlacedTensor& tensor : tensors) {
    const char* name = tensor.view.name.c_str();
    if (tensor.end > data_bytes)
      fail(
          "%s: tensor `%s` ends at byte %lld of the data, but the file has only %lld: it is truncated or not a "
          "safetensors file",
          path.c_str(), name, (long long)tensor.end, (long long)data_bytes);
    if (tensor.begin < end) fail("%s: tensor `%s` overlaps the one before it", path.c_str(), name);
    if (tensor.begin > end)
      fail("%s: %lld bytes before tensor `%s` belong to no tensor", path.c_str(), (long long)(tensor.begin - end),
           name);
    end = tensor.end;
  }
  if (end < data_bytes)
    fail("%s: %lld bytes follow the last tensor: the file is longer than its header says", path.c_str(),
         (long long)(data_bytes - end));
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  map();
  try {
    read_header();
  } catch (...) {  // a constructor that throws has no destructor
    munmap(mapping_, size_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { munmap(mapping_, size_); }

void SafetensorsFile::map() {
  int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // not to wait for a pipe's writer
  if (fd < 0) fail("cannot read %s: %s", path_.c_str(), std::strerror(errno));
  struct stat status;
  bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  size_ = regular ? size_t(status.st_size) : 0;
  if (size_ >= 8) mapping_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  int reason = errno;
  close(fd);
  if (!regular) fail("cannot read %s: it is not a file", path_.c_str());
  if (size_ < 8) fail("%s: %zu bytes are too few for a safetensors file", path_.c_str(), size_);
  if (mapping_ == MAP_FAILED) fail("cannot map %s: %s", path_.c_str(), std::strerror(reason));
}

void SafetensorsFile::read_header() {
  constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit
  const char* bytes = static_cast<const char*>(mapping_);
  uint64_t length;
  std::memcpy(&length, bytes, 8);
  if (length > kLongestHeader || length > size_ - 8)
    fail("%s: its header is said to have %llu bytes, and the file has %zu: it is truncated or not a safetensors file",
         path_.c_str(), (unsigned long long)length, size_);
  std::string where = path_ + " (header)";
  Json header = parse_json(std::string(bytes + 8, length), where);
  if (header.kind != Json::Kind::object) fail("%s: should be an object", where.c_str());

  std::vector<PlacedTensor> placed;
  for (const auto& [name, entry] : header.members) {
    if (name == "__metadata__") {
      metadata_ = read_metadata(entry, path_);
    } else {
      placed.push_back(read_entry(name, entry, path_));
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const PlacedTensor& a, const PlacedTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t data_start = 8 + int64_t(length);
  check_layout(placed, int64_t(size_) - data_start, path_);
  for (PlacedTensor& tensor : placed) place(tensor, data_start);
}

void SafetensorsFile::place(PlacedTensor& tensor, int64_t data_start) {
  const char* data = static_cast<const char*>(mapping_) + data_start + tensor.begin;
  size_t bytes = size_t(tensor.end - tensor.begin);
  if (reinterpret_cast<uintptr_t>(data) % size_t(element_bytes(tensor.view.dtype))) {
    aligned_copies_.emplace_back(new char[bytes]);  // new aligns to 16
    data = static_cast<const char*>(std::memcpy(aligned_copies_.back().get(), data, bytes));
  }
  tensor.view.data = data;
  tensors_.push_back(std::move(tensor.view));
}

const TensorView* SafetensorsFile::find(const std::string& name) const {
  for (const TensorView& tensor : tensors_)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

const float* SafetensorsFile::floats(const std::string& name, const std::vector<int64_t>& shape) const {
  const TensorView* tensor = find(name);
  if (!tensor) fail("%s: tensor `%s` is missing", path_.c_str(), name.c_str());
  if (tensor->dtype != "F32")
    fail("%s: tensor `%s` is %s; only F32 can be read here", path_.c_str(), name.c_str(), tensor->dtype.c_str());
  if (tensor->shape != shape)
    fail("%s: tensor `%s` has the shape %s, but the model's is %s", path_.c_str(), name.c_str(),
         show_shape(tensor->shape).c_str(), show_shape(shape).c_str());
  return static_cast<const float*>(tensor->data);
}

uint32_t SafetensorsFile::crc() const { return crc32c(0, mapping_, size_); }
