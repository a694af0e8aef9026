// Which table computes, on machines with and without a GPU.
#include <gtest/gtest.h>

#include "../scratch.h"
#include "devices.h"
#include "memory.h"
#include "runtime.h"

namespace {

TEST(Devices, AreChosenByNameAndByWhatTheMachineHas) {
  EXPECT_EQ(&kernels_for("cpu"), &cpu_kernels());
  EXPECT_STREQ(kernels_for("cuda").name, "cuda-fp32");
  EXPECT_STREQ(kernels_for("auto").name, "cuda-fp32");
  EXPECT_STREQ(kernels_for("cuda", "bf16").name, "cuda-bf16");
  EXPECT_EQ(kernels_for("cuda", "bf16").floats, &kernels_for("cuda"));
}

TEST(Devices, ThatAreMissingAreRefusedInOneLine) {
  simt::set_devices(0);
  EXPECT_EQ(&kernels_for("auto"), &cpu_kernels());
  EXPECT_EQ(message_of([] { kernels_for("cuda"); }),
            "--device cuda: this machine has no NVIDIA GPU; use --device cpu or auto");
  EXPECT_EQ(message_of([] { kernels_for("auto", "bf16"); }),
            "--dtype bf16 is for GPUs, and this runs on the CPU: this machine has no NVIDIA GPU");
  simt::set_devices(1);
}

TEST(Devices, WithATooOldDriverAreRefusedInOneLine) {
  simt::set_driver_version(11040);
  EXPECT_EQ(
      message_of([] { kernels_for("cuda"); }),
      "--device cuda: this machine's driver is for CUDA 11.4 and this build needs 13.0; use --device cpu or auto");
  simt::set_driver_version(13000);
}

TEST(Devices, ThatThisBuildHasNoKernelsForAreRefusedInOneLine) {
  simt::fail_next(cudaErrorNoKernelImageForDevice, 1);  // the first call counts the devices
  EXPECT_EQ(
      message_of([] { kernels_for("cuda"); }),
      "--device cuda: this build's kernels are not for this machine's GPU, Emulated GPU (make clean && make); use "
      "--device cpu or auto");
}

TEST(Devices, OfTooLittleMemoryAreFoundOutByThePlan) {
  const Kernels& run = kernels_for("cuda");
  Plan plan;
  plan.add("parameters", double(size_t(3) << 30)), plan.add("activations", double(size_t(4) << 30));
  EXPECT_EQ(message_of([&] { require_memory(run, plan); }), "");
  simt::set_device_memory(size_t(6) << 30);
  std::string message = message_of([&] { require_memory(run, plan); });
  EXPECT_TRUE(has(message, "this needs 7.0 GiB of the GPU's memory and 5.")) << message;
  EXPECT_TRUE(has(message, " GiB are available; the largest part is activations (4.0 GiB)")) << message;
  EXPECT_EQ(message_of([&] { run.take(size_t(2) << 30); }), "out of memory: the GPU could not give 8.0 GiB");
  simt::set_device_memory(size_t(8) << 30);
}

}  // namespace
