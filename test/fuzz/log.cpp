// A log that is cut back to a step: whole lines of it stay, and a second cut finds nothing to do.
#include "log.h"

#include <cstdio>

#include "files.h"
#include "fuzz.h"
#include "targets.h"

void fuzz_log(std::string_view bytes) {
  constexpr int64_t kStep = 5;
  std::string path = put_file("log.jsonl", bytes);
  LogDamage damage = cut_log(path, kStep);
  std::remove((path + ".damaged").c_str());
  std::string kept = read_file(path);
  require(kept.size() <= bytes.size() + 1, "nothing is added but a line's end");
  require(kept.empty() || kept == bytes || kept.back() == '\n', "lines are whole");
  LogDamage again = cut_log(path, kStep);
  require(read_file(path) == kept && again.lines == 0, "what was cut once stays as it is");
  require(again.missing == damage.missing, "steps that are lost stay so");
}
