// ./train --dump: one step, written out for other implementations to check (scripts/check_dump.py).
#include <cmath>
#include <cstring>

#include "program.h"

namespace {

std::string value_of(const SafetensorsFile& file, const std::string& name) {
  for (const auto& [key, value] : file.metadata())
    if (key == name) return value;
  return "";
}

std::vector<int> whole_numbers(const SafetensorsFile& file, const std::string& name) {
  const TensorView* t = file.find(name);
  EXPECT_NE(t, nullptr) << name;
  if (!t) return {};
  EXPECT_EQ(t->dtype, "I32") << name;
  const int* first = static_cast<const int*>(t->data);
  return {first, first + t->bytes() / 4};
}

int passes_of(const SafetensorsFile& file) {
  int passes = 0;
  while (file.find("loss." + std::to_string(passes + 1))) ++passes;
  return passes;
}

struct DumpTest : testing::Test {
  Bench bench;
  std::string path = bench / "step.safetensors";
  Ran dump(const Words& words) { return bench.train(bench.sizes() + words + Words{"--dump", path}); }
};

}  // namespace

TEST_F(DumpTest, HoldsParametersGradientsTheBatchAndTheLosses) {
  for (const char* fusion : {"gate", "concat", "add"})
    for (int passes : {1, 2, 3}) {
      SCOPED_TRACE(std::string(fusion) + " " + std::to_string(passes));
      dump({"--fusion", fusion, "--passes", std::to_string(passes)});
      SafetensorsFile file(path);
      EXPECT_EQ(passes_of(file), passes);
      int parameters = 0;
      for (const TensorView& t : file.tensors()) {
        if (t.name.rfind("model.", 0) != 0 && t.name.rfind("latent_feedback.", 0) != 0) continue;
        ++parameters;
        const float* grad = file.floats("grad." + t.name, t.shape);
        double size = 0;
        for (int64_t i = 0; i < t.bytes() / 4; ++i) size += double(grad[i]) * double(grad[i]);
        EXPECT_TRUE(std::isfinite(size)) << t.name;
        // A raw plain input meets neither the feedback nor its norm.
        bool of_feedback = t.name.rfind("latent_feedback.", 0) == 0 || t.name == "model.input_norm.weight";
        bool takes_part = passes > 1 || !of_feedback;
        EXPECT_EQ(size > 0, takes_part) << t.name;
      }
      EXPECT_GT(parameters, 12);
      std::vector<int> tokens = whole_numbers(file, "tokens"), targets = whole_numbers(file, "targets");
      ASSERT_EQ(file.find("tokens")->shape, (std::vector<int64_t>{2, 32}));
      ASSERT_EQ(tokens.size(), targets.size());
      for (size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_TRUE(tokens[i] >= 0 && tokens[i] < 512 && targets[i] >= -1 && targets[i] < 512);
        bool inside = i % 32 != 31 && targets[i] >= 0 && !file.find("segment_ids");
        EXPECT_TRUE(!inside || targets[i] == tokens[i + 1]) << i;
      }
      for (int k = 2; k <= passes; ++k)
        for (int p : whole_numbers(file, "prefix." + std::to_string(k))) EXPECT_TRUE(p >= 1 && p <= 32) << p;
      EXPECT_EQ(value_of(file, "fusion"), fusion);
      EXPECT_EQ(value_of(file, "hidden_size"), "16");
      EXPECT_EQ(value_of(file, "num_hidden_layers"), "1");
      EXPECT_EQ(value_of(file, "num_attention_heads"), "2");
      EXPECT_EQ(value_of(file, "feedback_lambda"), "1");
    }
  EXPECT_EQ(list_folder(bench.folder.path), (Words{"step.safetensors", "text.txt"})) << "a dump is all that it writes";
}

TEST_F(DumpTest, PackedRowsSayWhichSegmentTheyBelongTo) {
  put(bench.text(),
      "the cat sat\n<|endoftext|>\non a mat\n<|endoftext|>\nand then\n<|endoftext|>\nit went\n<|endoftext|>\nback "
      "home\n");
  dump({"--passes", "2", "--gradient", "detach", "--lambda", "0.25"});
  SafetensorsFile file(path);
  std::vector<int> segments = whole_numbers(file, "segment_ids");
  ASSERT_EQ(segments.size(), whole_numbers(file, "tokens").size());
  EXPECT_TRUE(std::is_sorted(segments.begin(), segments.end()));
  EXPECT_EQ(whole_numbers(file, "prefix.2").size(), size_t(segments.back()) + 1);
  EXPECT_EQ(value_of(file, "detach"), "true");
  EXPECT_EQ(value_of(file, "feedback_lambda"), "0.25");
}

TEST_F(DumpTest, AStepWithoutWhatOthersHaveSaysSo) {
  Words no_feedback = {"--passes", "paper"}, z_loss = {"--passes", "2", "--z-loss", "0.1"};
  EXPECT_TRUE(has(dump(no_feedback).out, "note: step 1 has one pass by --passes paper"));
  expect_refused(run("train", bench.sizes() + z_loss + Words{"--dump", path}), "train",
                 "--z-loss: step 1 is before the cooldown, and with --cooldown 1 in it; leave it out");
  EXPECT_FALSE(has(dump(z_loss + Words{"--cooldown", "1"}).out, "note:"));
  EXPECT_EQ(value_of(SafetensorsFile(path), "z_loss"), "0.1");
  EXPECT_FALSE(has(dump({"--passes", "1"}).out, "note:")) << "no step has another pass";

  bench.train(bench.tiny("run", 10) + Words{"--passes", "two-pass", "--save-every", "9", "--keep", "0"});
  Words late = {"--resume", bench.checkpoint("run", 9), "--dump", path, "--threads", "1"};
  bench.train(late + Words{"--z-loss", "0.1"});
  EXPECT_EQ(value_of(SafetensorsFile(path), "z_loss"), "0.1") << "it is in the cooldown";
}

TEST_F(DumpTest, FlagsOfARunThatAStepHasNoUseForAreRefusedTogether) {
  Ran ran = run("train", bench.tiny("out") + Words{"--keep", "1", "--jitter", "0.2", "--dump", path});
  expect_refused(ran, "train",
                 "--warmup, --keep, --out, --steps, --jitter: --dump runs one micro-batch forward and back, without "
                 "jitter or update; leave them out");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(DumpTest, OfAResumedRunHasItsWeightsAndMayHaveOtherPasses) {
  bench.train(bench.tiny("run", 10) + Words{"--passes", "2", "--optimizer", "normuon"});
  auto before = everything_in(bench / "run");
  const Words changes[] = {{},
                           {"--passes", "3", "--prefix-mixin", "uniform", "--gradient", "last", "--batch", "5"},
                           {"--passes", "1", "--pack", "stream", "--seq", "16", "--seed", "8"}};
  const int passes[] = {2, 3, 1};
  SafetensorsFile model(bench.checkpoint("run", 10) + "/model.safetensors");
  for (int i = 0; i < 3; ++i) {
    bench.train(Words{"--resume", bench / "run", "--threads", "1", "--dump", path} + changes[i]);
    SafetensorsFile file(path);
    EXPECT_EQ(passes_of(file), passes[i]);
    for (const TensorView& t : model.tensors())
      EXPECT_EQ(std::memcmp(model.floats(t.name, t.shape), file.floats(t.name, t.shape), size_t(t.bytes())), 0)
          << t.name;
  }
  expect_refused(run("train", {"--resume", bench / "run", "--dump", path, "--width", "32"}), "train", "--width");
  put(bench / "other.txt", some_text(3000));
  expect_refused(run("train", {"--resume", bench / "run", "--dump", path, "--data", bench / "other.txt"}), "train",
                 "--data");
  expect_refused(run("train", {"--resume", bench / "nosuch", "--dump", path}), "train", "is not there");
  EXPECT_EQ(everything_in(bench / "run"), before);
}

namespace {

struct IndependentImplementation : DumpTest {
  std::string script = std::filesystem::absolute("scripts/check_dump.py").string();
  void SetUp() override {
    if (!std::getenv("FULLBAND_TEST_LONG")) GTEST_SKIP() << "set FULLBAND_TEST_LONG";
    if (shell("python3 -c 'import torch, numpy'").status != 0 || !file_exists(script))
      GTEST_SKIP() << "needs python3 with torch, and scripts/check_dump.py";
  }
  Ran check() { return shell("python3 '" + script + "' '" + path + "'"); }

  // Moves one tensor of the dump by `size`, in norm.
  void move(const std::string& name, double size) {
    std::vector<std::vector<float>> moved;
    {
      SafetensorsFile file(path);
      std::vector<TensorView> tensors = file.tensors();
      for (TensorView& t : tensors) {
        if (t.name != name) continue;
        const float* x = file.floats(t.name, t.shape);
        moved.emplace_back(x, x + t.bytes() / 4);
        for (float& value : moved.back()) value += float(size / std::sqrt(double(moved.back().size())));
        t.data = moved.back().data();
      }
      write_safetensors(path + ".moved", tensors, file.metadata());
    }
    std::filesystem::rename(path + ".moved", path);
    EXPECT_EQ(moved.size(), 1u) << name;
  }
  double norm(const std::string& name) {
    SafetensorsFile file(path);
    const TensorView* t = file.find(name);
    const float* x = file.floats(name, t->shape);
    double square = 0;
    for (int64_t i = 0; i < t->bytes() / 4; ++i) square += double(x[i]) * double(x[i]);
    return std::sqrt(square);
  }
};

const std::string kAttention = "grad.model.layers.0.self_attn.";

}  // namespace

TEST_F(IndependentImplementation, AgreesForEveryFusionAndGradient) {
  for (const char* fusion : {"gate", "concat", "add"})
    for (const char* gradient : {"through", "detach", "last"}) {
      dump({"--fusion", fusion, "--passes", "3", "--gradient", gradient});
      Ran ran = check();
      EXPECT_EQ(ran.status, 0) << fusion << " " << gradient << "\n" << ran.out << ran.err;
    }
}

// A query that sees one key has no gradient; what rounding leaves of it is no error, and anything more is.
TEST_F(IndependentImplementation, AgreesWhereTheExactGradientIsZeroAndFindsErrorsThere) {
  const Words one_key = {"--window", "1", "--passes", "3"};
  dump(one_key);
  EXPECT_GT(norm(kAttention + "q_proj.weight"), 0) << "the case is there";
  Ran ran = check();
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  double beside = norm(kAttention + "v_proj.weight");
  for (const char* name : {"q_proj.weight", "k_proj.weight", "q_norm.weight", "k_norm.weight"}) {
    dump(one_key);
    move(kAttention + name, 1e-5 * beside);
    ran = check();
    EXPECT_EQ(ran.status, 1) << name << "\n" << ran.out << ran.err;
    EXPECT_TRUE(has(ran.out, "1 above") && has(ran.out, kAttention + name + "   ABOVE")) << ran.out;
  }
}

TEST_F(IndependentImplementation, FindsAnErrorOfThreeTenThousandthsInAnyGradient) {
  dump({"--passes", "2"});
  std::vector<std::string> names;
  SafetensorsFile file(path);
  for (const TensorView& t : file.tensors())
    if (t.name.rfind("grad.", 0) == 0) names.push_back(t.name);
  for (const std::string& name : names) {
    dump({"--passes", "2"});
    move(name, 3e-4 * norm(name));
    Ran ran = check();
    EXPECT_EQ(ran.status, 1) << name << "\n" << ran.out << ran.err;
    EXPECT_TRUE(has(ran.out, "1 above") && has(ran.out, name + "   ABOVE")) << ran.out;
  }
}
