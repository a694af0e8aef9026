#include "devices.h"

#include "error.h"

const Kernels& kernels_for(const std::string& device, const std::string& dtype) {
  if (device != "auto" && device != "cpu" && device != "cuda")
    fail("there is no device %s: auto, cpu or cuda", device.c_str());
  bool bf16 = dtype == "bf16";
  std::string why_not;
  const Kernels* cuda = device == "cpu" ? nullptr : cuda_kernels(bf16, &why_not);
  if (cuda) return *cuda;
  if (device == "cuda") fail("--device cuda: %s; use --device cpu or auto", why_not.c_str());
  if (bf16)
    fail("--dtype bf16 is for GPUs, and this runs on the CPU%s%s", why_not.empty() ? "" : ": ", why_not.c_str());
  return cpu_kernels();
}
