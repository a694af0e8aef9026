// Instructions that CUDA C++ has no name for: asynchronous copies, loads of matrix fragments, products on tensor cores.
// They are PTX under nvcc and test/simt/ptx_emulated.h under g++; no other file knows PTX.
//
// Names of a fragment's parts, as in the PTX ISA: a lane is 4 · group + member, with 8 groups of 4.
//   a, 16 × 16 (16-bit)   a[0] (row group, columns 2·member, +1)   a[1] (row group + 8, same columns)
//                         a[2] (row group, columns 2·member + 8, +9)   a[3] (row group + 8, the latter)
//   b, 16 × 8 (16-bit)    b[0] (rows 2·member, +1, column group)   b[1] (rows 2·member + 8, +9, column group)
//   a, 16 × 8 (tf32)      a[0] (row group, column member)   a[1] (group + 8, member)
//                         a[2] (group, member + 4)   a[3] (group + 8, member + 4)
//   b, 8 × 8 (tf32)       b[0] (row member, column group)   b[1] (row member + 4, column group)
//   c, 16 × 8 (float)     c[0], c[1] (row group, columns 2·member, +1)   c[2], c[3] (row group + 8, same columns)
// Of two 16-bit elements in a register the first is in the lower half.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "launch.cuh"

#ifndef __CUDACC__
#include "ptx_emulated.h"
#else

namespace ptx {
template <class T>
__device__ unsigned shared_address(const T* p) {
  return unsigned(__cvta_generic_to_shared(p));
}
}  // namespace ptx

// Copies 16 bytes, both ends aligned to as many, without waiting; writes zeros and reads nothing where `holds` is
// false.
template <class T>
__device__ void copy_async16(T* to, const T* from, bool holds = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(ptx::shared_address(to)), "l"(from),
               "r"(holds ? 16 : 0)
               : "memory");
}
// The copies since the last commit become a group.
__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for this thread's groups but the last `pending`. Other threads see them after a barrier behind this.
template <int pending>
__device__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Four 8 × 8 matrices of 16-bit elements: lane l names row l % 8 of matrix l / 8, 16 bytes that are aligned to as many;
// r[i] is (row group, columns 2·member, +1) of matrix i. All 32 lanes take part.
template <class T>
__device__ void ldmatrix_x4(uint32_t (&r)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(ptx::shared_address(row))
               : "memory");
}
// r[i] is (rows 2·member, +1, column group).
template <class T>
__device__ void ldmatrix_x4_transposed(uint32_t (&r)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(ptx::shared_address(row))
               : "memory");
}

// c += a · b over 16 columns of a; T is __nv_bfloat16 or __half. All 32 lanes take part.
template <class T>
__device__ void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
template <>
__device__ inline void mma_m16n8k16<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ inline void mma_m16n8k16<__half>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// c += a · b over 8 columns of a, in tf32: floats of which the lower 13 bits are ignored.
__device__ inline void mma_m16n8k8_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// x as tf32: to nearest, ties away from zero.
__device__ inline uint32_t to_tf32(float x) {
  uint32_t result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
  return result;
}

#endif
