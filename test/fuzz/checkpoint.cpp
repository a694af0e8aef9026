// A checkpoint's folder: three texts with lines "---" between them are manifest.json, config.json and tokenizer.json; in
// the manifest "$FILES" stands for what is true of the files.
#include "checkpoint.h"

#include <sys/stat.h>

#include "config.h"
#include "files.h"
#include "fuzz.h"
#include "model.h"
#include "targets.h"

namespace {

std::string_view take_part(std::string_view* bytes) {
  constexpr std::string_view kBorder = "\n---\n";
  size_t end = std::min(bytes->find(kBorder), bytes->size());
  std::string_view part = bytes->substr(0, end);
  bytes->remove_prefix(std::min(bytes->size(), end + kBorder.size()));
  return part;
}

std::string entry(const std::string& name, std::string_view bytes) {
  return text(R"("%s": {"bytes": %zu, "crc32c": "%08x"})", name.c_str(), bytes.size(),
              crc32c(0, bytes.data(), bytes.size()));
}

void read_all(const std::string& folder) {
  Checkpoint checkpoint = find_checkpoint(folder);
  ModelConfig config = read_config(checkpoint);
  Json json = to_json(config);
  require(write_json(to_json(config_from_json(json, "again"))) == write_json(json), "a configuration reads back");
  checkpoint.read_json("state.json");
  Tokenizer tokenizer = read_tokenizer(checkpoint, config.vocab, config.end_of_text);
  require(tokenizer.vocab() <= config.vocab, "the model has a row for each of the tokenizer's ids");
}

}  // namespace

void fuzz_checkpoint(std::string_view bytes) {
  std::string folder = file_path("step_00000001");
  mkdir(folder.c_str(), 0700);
  std::string_view manifest = take_part(&bytes), config = take_part(&bytes), tokenizer = bytes;
  std::string files;
  auto put = [&](const std::string& name, std::string_view contents) {
    put_file("step_00000001/" + name, contents);
    files += (files.empty() ? "" : ", ") + entry(name, contents);
  };
  put("model.safetensors", "weights"), put("optimizer.safetensors", "moments"), put("state.json", R"({"step": 1})");
  put("config.json", config);
  if (!tokenizer.empty()) put("tokenizer.json", tokenizer);
  put_file("step_00000001/manifest.json", replaced(manifest, "$FILES", files));
  accepts([&] { read_all(folder); });
}
