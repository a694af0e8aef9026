// The operations of each .cu file, put into a table; T is float or bf16.
#pragma once
#include "kernels.h"

template <class T>
void add_attention(Kernels&);
template <class T>
void add_cross_entropy(Kernels&);
template <class T>
void add_sampling(Kernels&);
template <class T>
void add_memory(Kernels&);
template <class T>
void add_matmul(Kernels&);
template <class T>
void add_rmsnorm(Kernels&);
