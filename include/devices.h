// Which kernel table computes: --device and --dtype.
#pragma once
#include <string>

#include "kernels.h"

// device: auto (a GPU where this build and this machine have one), cpu, cuda. dtype, of activations and of the matrices
// in products: fp32, or bf16, which only GPUs have here. Fails with what is missing.
const Kernels& kernels_for(const std::string& device, const std::string& dtype = "fp32");

extern const bool kHasCudaKernels;  // in this build
// The GPU's table; null where there is none, and why not.
const Kernels* cuda_kernels(bool bf16, std::string* why_not);
