// What a serious run has: defaults that follow from the model's size and the data, other schedules and lengths, spikes that
// are left out, checkpoints that stay.
#include "recipe.h"

#include <sstream>

#include "log.h"
#include "program.h"

TEST(UsualDefaults, IsForModelsOfMinisSizeAndUp) {
  for (const char* name : {"nano", "micro"}) EXPECT_FALSE(has_recipe(preset(name))) << name;
  for (const char* name : {"mini", "d12", "d24", "d36", "d48", "fbt-1b"}) EXPECT_TRUE(has_recipe(preset(name))) << name;
  EXPECT_EQ(recipe_for(preset("mini")).batch, 8);
  EXPECT_EQ(recipe_for(preset("d12")).batch, 4);
  EXPECT_EQ(recipe_for(preset("d48")).batch, 2);
}

TEST(UsualDefaults, TheTableOfPresetsSaysWhatTheyAre) {
  if (!file_exists("docs/training.md")) GTEST_SKIP() << "needs the project's root, where it is run";
  std::string page = contents("docs/training.md"), name;
  for (std::istringstream names(preset_names()); std::getline(names >> std::ws, name, ',');) {
    ModelConfig c = preset(name);
    std::string row = text("| `%s` | %s | %d | %d | %d/%d of %d | %d | %d |", name.c_str(),
                           show_count(double(preset_parameters(name))).c_str(), c.layers, c.width, c.heads, c.kv_heads,
                           c.head_dim, c.ffn, c.context);
    EXPECT_TRUE(has(page, row)) << row;
  }
}

TEST(UsualDefaults, AStepHasAsManyTokensAsIsUsualButTheRunHasTwoHundredStepsWhereItCan) {
  EXPECT_EQ(usual_step_tokens(124e6, 1e10, 4096), 1 << 19);
  EXPECT_EQ(usual_step_tokens(1.5e9, 1e11, 4096), 1 << 20);
  EXPECT_EQ(usual_step_tokens(5e6, 1e9, 8192), 1 << 16);
  EXPECT_EQ(usual_step_tokens(124e6, 200 * 3 * 4096.0, 4096), 3 * 4096);
  EXPECT_EQ(usual_step_tokens(124e6, 1000, 4096), 4096) << "one micro-batch at least";
  EXPECT_EQ(usual_warmup(19560), 700);
  EXPECT_EQ(usual_warmup(1000), 40);
  EXPECT_EQ(usual_warmup(3), 1);
}

TEST(SeriousRun, TakesWhatIsUsualForItsSizeAndThePlanSaysSo) {
  Bench bench;
  Words words = {"--data", bench.text(), "--model", "mini", "--seq", "64", "--batch", "2", "--threads", "1", "--out"};
  Ran ran = bench.train(words + Words{bench / "out"});
  std::string plan = unwrapped(ran.out);
  EXPECT_TRUE(has(plan, "recipe   --clip 1, --passes paper, --prefix-mixin uniform, --jitter 0.02, ")) << plan;
  EXPECT_TRUE(has(plan, "--batch-tokens 128, --steps ") && has(plan, " (one epoch), --warmup ")) << plan;
  std::string conf = contents(bench / "out/run.conf");
  EXPECT_TRUE(has(conf, "clip = \"1\"") && has(conf, "passes = \"paper\"")) << conf;

  ran = bench.train(words + Words{bench / "given", "--clip", "0.5", "--passes", "1", "--steps", "2", "--warmup", "0",
                                  "--batch-tokens", "256"});
  plan = unwrapped(ran.out);
  EXPECT_TRUE(has(plan, "recipe   --eval-every 250, ") && has(plan, "2 steps of 256 tokens")) << plan;
  EXPECT_TRUE(has(plan, "clip 0.5")) << plan;
  ran = bench.train({"--resume", bench / "given", "--steps", "3", "--threads", "1"});
  EXPECT_FALSE(has(ran.out, "recipe")) << "a resumed run has what was recorded";
}

TEST(SeriousRun, IsAsLongAsItsTokens) {
  Bench bench;
  Ran ran = bench.train({"--data", bench.text(), "--seq", "32", "--batch", "2", "--width", "16", "--heads", "2",
                         "--tokens", "1000", "--threads", "1", "--out", bench / "out"});
  EXPECT_TRUE(has(ran.out, "16 steps of 64 tokens")) << ran.out;
  EXPECT_FALSE(has(contents(bench / "out/run.conf"), "\nsteps")) << "the tokens say it";
  ran = bench.train({"--resume", bench / "out", "--tokens", "1280", "--threads", "1"});
  EXPECT_TRUE(has(ran.out, "20 steps of 64 tokens")) << ran.out;
  ran = bench.train({"--resume", bench / "out", "--steps", "21", "--threads", "1"});
  EXPECT_TRUE(has(ran.out, "--steps 21 takes the place of --tokens 1280, which were 20 steps")) << ran.out;
  expect_refused(run("train", bench.tiny("two") + Words{"--tokens", "1000"}), "train",
                 "--steps and --tokens exclude each other");
}

TEST(SeriousRun, FollowsACosineDownToTheLeastLearningRate) {
  Bench bench;
  Ran ran = bench.train(bench.tiny("out", 40) + Words{"--schedule", "cosine", "--lr", "0.01", "--min-lr", "0.001"});
  EXPECT_TRUE(has(unwrapped(ran.out), "lr 0.01, warm-up 5 steps, cosine, weight decay")) << ran.out;
  EXPECT_TRUE(has(unwrapped(ran.out), "least lr 0.001")) << ran.out;
  std::vector<double> rates;
  for (const Json& line : bench.log("out"))
    if (line.find("lr")) rates.push_back(line.find("lr")->number);
  ASSERT_EQ(rates.size(), 40u);
  EXPECT_FLOAT_EQ(float(rates[4]), 0.01f);
  EXPECT_NEAR(rates[22], 0.0055, 3e-4) << "half-way";
  EXPECT_NEAR(rates[39], 0.001, 2e-5);
  expect_refused(run("train", bench.tiny("bad") + Words{"--lr", "0.01", "--min-lr", "0.1"}), "train",
                 "--min-lr 0.1 is more than the peak, --lr 0.01");
}

TEST(SeriousRun, LeavesSpikesOutAndGoesOnWithTheSameBitsAfterACheckpoint) {
  Bench bench;
  bench.train(bench.tiny("out", 220) +
              Words{"--skip-spikes", "1", "--passes", "1", "--lr", "0.0001", "--save-every", "180", "--keep", "0"});
  int skipped = 0;
  for (const Json& line : bench.log("out")) skipped += line.find("skipped") != nullptr;
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, 60);
  Ran ran = bench.train({"--resume", bench.checkpoint("out", 180), "--out", bench / "again", "--threads", "1"});
  EXPECT_EQ(bench.model("out", 220), bench.model("again", 220));
  EXPECT_EQ(bench.optimizer("out", 220), bench.optimizer("again", 220));
  EXPECT_TRUE(has(unwrapped(ran.out), std::to_string(skipped) + " spikes left out")) << ran.out;
}

TEST(SeriousRun, KeepsCheckpointsForGood) {
  Bench bench;
  bench.train(bench.tiny("out", 20) + Words{"--save-every", "3", "--keep", "1", "--keep-every", "8"});
  Words kept;
  for (const std::string& path : list_checkpoints(bench / "out")) kept.push_back(path.substr(path.rfind('/') + 1));
  EXPECT_EQ(kept, (Words{"step_00000008", "step_00000016", "step_00000020"}));
}
