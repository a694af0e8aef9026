// Chooses the CPU's kernel table: the best instruction set that this build has and this machine can run.
#include <cstdlib>
#include <cstring>

#include "error.h"
#include "kernels.h"

#ifdef HAVE_ISA_avx512
namespace avx512 {
extern const Kernels kernels;
}
#endif
#ifdef HAVE_ISA_avx2
namespace avx2 {
extern const Kernels kernels;
}
#endif
#ifdef HAVE_ISA_neon
namespace neon {
extern const Kernels kernels;
}
#endif
#ifdef HAVE_ISA_plain
namespace plain {
extern const Kernels kernels;
}
#endif

// x86-64-v3 and -v4, by those of their features that tell a machine with them: clang 14 knows neither by its name.
#ifdef HAVE_ISA_avx2
static bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
#endif
#ifdef HAVE_ISA_avx512
static bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

int cpu_kernel_tables(const Kernels** tables, int capacity) {
  int count = 0;
  auto offer = [&](bool runs, const Kernels& kernels) {
    if (runs && count < capacity) tables[count++] = &kernels;
  };
#ifdef HAVE_ISA_avx512
  offer(has_v4(), avx512::kernels);
#endif
#ifdef HAVE_ISA_avx2
  offer(has_v3(), avx2::kernels);
#endif
#ifdef HAVE_ISA_neon
  offer(true, neon::kernels);
#endif
#ifdef HAVE_ISA_plain
  offer(true, plain::kernels);
#endif
  return count;
}

const Kernels& cpu_kernels() {
  const Kernels* tables[8];
  int count = cpu_kernel_tables(tables, 8);
  const char* wanted = std::getenv("FULLBAND_ISA");
  if (!wanted || !*wanted) return *tables[0];
  std::string names;
  for (int i = 0; i < count; ++i) {
    const char* name = tables[i]->name + std::strlen("cpu-");
    if (!std::strcmp(name, wanted)) return *tables[i];
    names += std::string(names.empty() ? "" : ", ") + name;
  }
  fail("FULLBAND_ISA=%s: no such instruction set in this build or on this machine; there are: %s", wanted,
       names.c_str());
}
