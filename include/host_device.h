// For the few functions that kernels call too.
#pragma once

#ifdef __CUDACC__
#define FULLBAND_HOST_DEVICE __host__ __device__
#else
#define FULLBAND_HOST_DEVICE
#endif
