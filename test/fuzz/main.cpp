// The targets under libFuzzer: the program's name says which one it runs (make fuzz).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "targets.h"

static void (*run)(std::string_view) = nullptr;

extern "C" int LLVMFuzzerInitialize(int*, char*** argv) {
  std::string program = (*argv)[0], name = program.substr(program.rfind('/') + 1);
  for (const FuzzTarget& target : fuzz_targets())
    if (name == target.name) run = target.run;
  if (run) return 0;
  std::fprintf(stderr, "%s is no fuzz target; run build/fuzz/NAME\n", name.c_str());
  std::exit(1);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
