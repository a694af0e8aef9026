// The programs with --device cuda, on the emulated GPU.
#include "../program.h"

namespace {

const Words kCuda = {"--device", "cuda"};

// The emulator is slow: little to evaluate at the end of a run.
struct EmulatedBench : Bench {
  EmulatedBench() { put(text(), some_text(700)); }
  Ran on_gpu(const std::string& program, const Words& words) const {
    Ran ran = Running(Words{emulated_path(program)} + words + kCuda).wait();
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_EQ(ran.err, "");
    return ran;
  }
  Words small(const std::string& out, int steps) const {
    return tiny(out, steps) + Words{"--passes", "0:60/20/20", "--eval-every", "0", "--sample-every", "0"};
  }
  std::vector<double> losses(const std::string& out) const {
    std::vector<double> all;
    for (const Json& line : log(out))
      if (line.find("passes")) all.push_back(line.get("loss", out).number);
    return all;
  }
};

TEST(OnAGpu, TrainShowsItsDeviceAndItsLossesAreTheCpus) {
  EmulatedBench bench;
  bench.train(bench.small("cpu", 8));
  Ran ran = bench.on_gpu("train", bench.small("gpu", 8));
  EXPECT_TRUE(has(ran.out, "cuda-fp32")) << ran.out;
  std::vector<double> cpu = bench.losses("cpu"), gpu = bench.losses("gpu");
  ASSERT_EQ(cpu.size(), 8u);
  ASSERT_EQ(gpu.size(), 8u);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(gpu[i], cpu[i], 1e-5 * cpu[i]);
}

TEST(OnAGpu, ARunGoesFromCpuToGpuAndBack) {
  EmulatedBench bench;
  bench.train(bench.small("cpu", 9));
  // Three steps here, three there, three here.
  bench.train(bench.small("three", 9) + Words{"--save-every", "3", "--keep", "0"});
  std::vector<double> want = bench.losses("cpu");
  Ran ran = bench.on_gpu(
      "train", {"--resume", bench.checkpoint("three", 3), "--out", bench / "gpu", "--save-every", "3", "--keep", "0"});
  EXPECT_TRUE(has(ran.out, "cuda-fp32")) << ran.out;
  bench.train({"--resume", bench.checkpoint("gpu", 6), "--out", bench / "back", "--device", "cpu"});
  for (const char* out : {"gpu", "back"}) {
    std::vector<double> got = bench.losses(out);
    ASSERT_FALSE(got.empty());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[got.size() - 1 - i], want[want.size() - 1 - i], 1e-5 * want[0]) << out;
  }
}

TEST(OnAGpu, TrainingInBfloat16KeepsItsParametersInFloat) {
  EmulatedBench bench;
  bench.on_gpu("train", bench.small("half", 6) + Words{"--dtype", "bf16"});
  bench.on_gpu("train", bench.small("whole", 6));
  std::vector<double> half = bench.losses("half"), whole = bench.losses("whole");
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(half[i], whole[i], 0.02 * whole[i]);
  SafetensorsFile file(bench.checkpoint("half", 6) + "/model.safetensors");
  bool finer = false;  // than bfloat16: the low bits are used
  for (const TensorView& t : file.tensors()) {
    EXPECT_EQ(t.dtype, "F32");
    const uint32_t* bits = static_cast<const uint32_t*>(t.data);
    for (int64_t i = 0; i < t.bytes() / 4; ++i) finer |= (bits[i] & 0xffff) != 0;
  }
  EXPECT_TRUE(finer);
}

TEST(OnAGpu, SampleAndEvalSayWhatTheCpuSays) {
  EmulatedBench bench;
  bench.train(bench.small("out", 30));
  Words words = {"--model", bench / "out", "--prompt", "the cat", "--tokens", "20", "--temperature", "0.7"};
  for (const char* mode : {"standard", "soft", "fused", "sequential"}) {
    Words all = words + Words{"--mode", mode};
    EXPECT_EQ(bench.on_gpu("sample", all).out, run("sample", all).out) << mode;
  }
  Words eval = {"--model", bench / "out"};
  Words gpu = lines_of(bench.on_gpu("eval", eval).out), cpu = lines_of(run("eval", eval).out);
  EXPECT_EQ(gpu, cpu);
}

TEST(OnAGpu, BfloatOnACpuIsRefused) {
  EmulatedBench bench;
  expect_refused(run("train", bench.small("out", 3) + Words{"--device", "cpu", "--dtype", "bf16"}), "train",
                 "--dtype bf16 is for GPUs, and this runs on the CPU");
}

}  // namespace
