#include "fuzz.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "targets.h"

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> targets = {
      {"json", fuzz_json},
      {"tokenizer_json", fuzz_tokenizer_json},
      {"ranks", fuzz_ranks},
      {"gpt2", fuzz_gpt2},
      {"encode", fuzz_encode},
      {"decode", fuzz_decode},
      {"nfc", fuzz_nfc},
      {"train_bpe", fuzz_train_bpe},
      {"token_file", fuzz_token_file},
      {"loader", fuzz_loader},
      {"documents", fuzz_documents},
      {"text_file", fuzz_text_file},
      {"safetensors", fuzz_safetensors},
      {"checkpoint", fuzz_checkpoint},
      {"config_file", fuzz_config_file},
      {"task_mix", fuzz_task_mix},
      {"passes", fuzz_passes},
      {"data_json", fuzz_data_json},
      {"log", fuzz_log},
  };
  return targets;
}

void require_plain_line(const std::string& message) {
  constexpr size_t kLongest = 4100;
  require(!message.empty(), "a refusal says why");
  require(message.size() <= kLongest, "a refusal is no longer than a person reads");
  for (unsigned char c : message) require(c >= 0x20 && c != 0x7f, "a refusal is one line without control characters");
}

int take_choice(std::string_view* bytes, int n) {
  if (bytes->empty()) return 0;
  int choice = static_cast<unsigned char>(bytes->front() - '0') % n;
  bytes->remove_prefix(1);
  return choice;
}

namespace {

struct Folder {
  std::string path =
      std::filesystem::exists("/dev/shm") ? "/dev/shm/fullband_fuzz_XXXXXX" : "/tmp/fullband_fuzz_XXXXXX";
  Folder() { check(mkdtemp(path.data()), "cannot make %s", path.c_str()); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

std::string file_path(const std::string& name) {
  static const Folder folder;
  return folder.path + "/" + name;
}

std::string put_file(const std::string& name, std::string_view bytes) {
  std::string path = file_path(name);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), std::streamsize(bytes.size()));
  check(bool(file.flush()), "cannot write %s", path.c_str());
  return path;
}

std::string replaced(std::string_view text, std::string_view word, const std::string& meaning) {
  std::string result(text);
  size_t at = result.find(word);
  return at == result.npos ? result : result.replace(at, word.size(), meaning);
}
