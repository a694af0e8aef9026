#include "ops.cuh"
#include "vec.cuh"

template <class T>
static Kernels make_table(const char* name) {
  Kernels table = {};
  table.name = name;
  add_rmsnorm<T>(table);
  return table;
}
