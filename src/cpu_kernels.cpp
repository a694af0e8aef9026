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

int cpu_kernel_tables(const Kernels** tables, int capacity) {
  int count = 0;
  auto offer = [&](bool runs, const Kernels& kernels) {
    if (runs && count < capacity) tables[count++] = &kernels;
  };
#ifdef HAVE_ISA_avx512
  offer(__builtin_cpu_supports("x86-64-v4"), avx512::kernels);
#endif
#ifdef HAVE_ISA_avx2
  offer(__builtin_cpu_supports("x86-64-v3"), avx2::kernels);
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
