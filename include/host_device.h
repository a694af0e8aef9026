// Marks a function that CUDA kernels call too; for a C++ compiler it says nothing.
#pragma once

#ifdef __CUDACC__
#define FULLBAND_HOST_DEVICE __host__ __device__
#else
#define FULLBAND_HOST_DEVICE
#endif
