// What stands in for cuda/table.cu in a build for CPUs alone.
#include "devices.h"

const bool kHasCudaKernels = false;

const Kernels* cuda_kernels(bool, std::string* why_not) {
  *why_not = "this build has no CUDA kernels (make CUDA=1 builds them)";
  return nullptr;
}
