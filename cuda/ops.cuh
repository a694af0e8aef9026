// The operations of each .cu file, put into a table; T is float or bf16.
#pragma once
#include "kernels.h"

void add_graphs(Kernels&);
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
template <class T>
void add_rows(Kernels&);
template <class T>
void add_rotary(Kernels&);
template <class T>
void add_swiglu(Kernels&);
template <class T>
void add_head_gate(Kernels&);
template <class T>
void add_feedback(Kernels&);
void add_optimizer(Kernels& floats);
void add_peak(Kernels&);
