// Each .cu file puts its operations into the table, once with T = float and once with T = bf16:
//   template <class T> void add_rmsnorm(Kernels& table) { table.rmsnorm_forward = Fit<rmsnorm_forward<T>>(); … }
// The table types its elements act*, which is float*, also where they are bfloat16 (kernels.h); Fit makes of an operation
// on T* the function that the table wants.
#pragma once
#include "kernels.h"

template <class A>
struct Passed {
  A value;
  operator A() const { return value; }
};
template <class A>
struct Passed<A*> {
  A* value;
  template <class T>
  operator T*() const {
    return reinterpret_cast<T*>(value);
  }
};

template <auto operation>
struct Fit {
  template <class R, class... A>
  using Function = R(A...);
  template <class R, class... A>
  operator Function<R, A...>*() const {
    return [](A... a) -> R { return operation(Passed<A>{a}...); };
  }
};
