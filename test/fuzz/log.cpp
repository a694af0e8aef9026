// A log that is cut back to a step: whole lines of it stay, and a second cut may only find another torn one at the end.
#include "log.h"

#include "files.h"
#include "fuzz.h"
#include "targets.h"

void fuzz_log(std::string_view bytes) {
  constexpr int64_t kStep = 5;
  std::string path = put_file("log.jsonl", bytes);
  cut_log(path, kStep);
  std::string kept = read_file(path);
  require(kept.size() <= bytes.size() + 1, "nothing is added but a line's end");
  require(kept.empty() || kept == bytes || kept.back() == '\n', "lines are whole");
  cut_log(path, kStep);
  require(kept.starts_with(read_file(path)), "what was cut once stays as it is");
}
