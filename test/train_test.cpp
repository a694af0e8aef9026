// ./train: what it prints, writes and refuses; that a run that was stopped, however and whenever, ends with the same
// bits as one that was not; that threads and instruction sets change nothing.
#include <cmath>
#include <random>

#include "program.h"
#include "trainer.h"

namespace {

const Words kAllPasses = {"--passes", "0:60/20/20"};

// Trains to the end, again from the latest checkpoint each time it is killed: `kills` times, at random moments.
void train_under_fire(const Bench& bench, const Words& words, int kills, double longest_life) {
  std::random_device device;
  uint32_t seed = device();
  SCOPED_TRACE("random seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> life(0.001, longest_life);
  for (int i = 0; i < kills; ++i) {
    Running running(Words{program_path("train")} + words + Words{"--resume", "auto"});
    std::this_thread::sleep_for(std::chrono::duration<double>(life(random)));
    running.kill(SIGKILL);
    Ran ran = running.wait();
    EXPECT_TRUE(ran.status == 0 || ran.status == 128 + SIGKILL) << ran.out << ran.err;
  }
  bench.train(words + Words{"--resume", "auto"});  // all may have been killed before there was a run
}

// One line for each step, in order, and evaluations where they belong.
void expect_whole_log(const Bench& bench, const std::string& out, int steps) {
  int next = 1, finals = 0;
  for (const Json& line : bench.log(out)) {
    int64_t step = line.get_int("step", "log");
    if (!line.find("passes")) {
      EXPECT_EQ(step, next - 1) << "an evaluation after its step";
      finals += line.find("final") != nullptr;
      continue;
    }
    EXPECT_EQ(step, next++) << "of " << out;
  }
  EXPECT_EQ(next, steps + 1);
  EXPECT_EQ(finals, 1);
}

void copy_run(const Bench& bench, const std::string& from, const std::string& to) {
  std::filesystem::remove_all(bench / to);
  std::filesystem::copy(bench / from, bench / to, std::filesystem::copy_options::recursive);
}

// A run that has come to step 10 of 20.
void train_half(const Bench& bench, const std::string& out) {
  bench.train(bench.tiny(out, 20) + kAllPasses + Words{"--save-every", "10", "--keep", "0"});
  remove_folder(bench.checkpoint(out, 20));
}

// What a program printed as one line, with one blank where there were more.
std::string one_line_of(const std::string& page) {
  std::string line;
  for (char c : page)
    if (c != ' ' && c != '\n')
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  return line;
}

// The lines of a run's run.conf that are not behind a #.
Words given_lines(const Bench& bench, const std::string& out) {
  Words lines = lines_of(contents(bench / out + "/run.conf"));
  std::erase_if(lines, [](const std::string& line) { return line[0] == '#'; });
  return lines;
}

void expect_same_end(const Bench& bench, const std::string& a, const std::string& b, int step) {
  EXPECT_NE(bench.model(a, step), "");
  EXPECT_TRUE(bench.model(a, step) == bench.model(b, step)) << "the models of " << a << " and " << b << " differ";
  EXPECT_TRUE(bench.optimizer(a, step) == bench.optimizer(b, step))
      << "the moments of " << a << " and " << b << " differ";
}

}  // namespace

// --- What it prints and writes

TEST(Train, ShowsItsPlanThenItsStepsThenATableAndHowToTalkToTheModel) {
  Bench bench;
  Ran ran = bench.train(bench.tiny("out") + kAllPasses + Words{"--eval-every", "10", "--sample-every", "10"});
  for (const char* part : {"model    ",
                           "parameters",
                           "data     ",
                           "run      30 steps",
                           "passes   ",
                           "rows a token",
                           "optimize adamw",
                           "memory   ",
                           "activations",
                           "device   cpu",
                           "step 10: held-out loss after",
                           "step 20: soft says",
                           "30/30  ",
                           "tok/s",
                           "left",
                           "|g| ",
                           "fused passes",
                           "trained  ",
                           "token-equivalents",
                           "took     ",
                           "talk     "})
    EXPECT_TRUE(has(ran.out, part)) << part << " is missing in:\n" << ran.out;
  for (const std::string& line : lines_of(ran.out)) {
    bool holds_a_path = has(line, bench / "out");  // as long as the folder's name is
    EXPECT_TRUE(columns_of(line) <= 80 || has(line, "says") || holds_a_path) << line;
  }
  EXPECT_FALSE(has(ran.out, "\r")) << "a pipe gets plain lines";

  std::string talk = ran.out.substr(ran.out.find("talk     ") + 9);
  Ran said = shell(talk.substr(0, talk.find('\n')));
  EXPECT_EQ(said.status, 0) << talk << said.err;
  EXPECT_NE(said.out, "");
}

// "12.3 k" in front of a word.
static double count_before(const std::string& text, const std::string& word) {
  size_t end = text.find(word), begin = text.find_last_of("(,\n", end - 1);
  std::string number = text.substr(begin + 1, end - begin - 1);
  number = number.substr(number.find_first_of("0123456789"));
  return std::strtod(number.c_str(), nullptr) * (has(number, " k") ? 1e3 : has(number, " M") ? 1e6 : 1);
}

TEST(Train, PlansTheTokensAndRowsThatItRuns) {
  Bench bench;
  const Words kTwo = {"--passes", "2"};
  for (const Words& words : {kTwo + Words{"--data", "all", "--prefix-mixin", "uniform"},
                             kTwo + Words{"--pack", "stream"}, Words{"--passes", "3", "--gradient", "last"}}) {
    SCOPED_TRACE(words[2] + " " + words[3]);
    std::filesystem::remove_all(bench / "out");
    std::string said =
        bench
            .train(Words{"--steps",        "300", "--width", "16",         "--heads",      "2",   "--ffn",     "24",
                         "--seq",          "64",  "--batch", "4",          "--val-tokens", "200", "--threads", "1",
                         "--sample-every", "0",   "--out",   bench / "out"} +
                   words)
            .out;
    said = unwrapped(said);
    size_t plan = said.find("run      "), end = said.find("trained  ");
    double tokens = count_before(said.substr(end), " tokens, ");
    EXPECT_NEAR(count_before(said.substr(plan), " tokens, 0"), tokens, 0.03 * tokens) << said;
    double rows = count_before(said.substr(end), " row-equivalents");
    EXPECT_NEAR(count_before(said.substr(plan), " rows in all"), rows, 0.04 * rows) << said;
  }
}

TEST(Train, ShowsHeldOutLossesOfThePassesThatWereTrainedAndLogsAll) {
  Bench bench;
  Words words = bench.tiny("out", 40) + Words{"--passes", "0:100,0.5:0/50/50", "--eval-every", "10"};
  std::string shown = bench.train(words).out;
  EXPECT_TRUE(has(shown, "step 10: held-out loss: ")) << shown;
  EXPECT_TRUE(has(shown, "step 20: held-out loss: ")) << shown;
  EXPECT_TRUE(has(shown, "step 30: held-out loss after 0, 1, 2 fused passes: ")) << shown;
  int evaluations = 0;
  for (const Json& line : bench.log("out")) {
    if (!line.find("val_loss") || line.find("final")) continue;
    EXPECT_EQ(line.get("val_loss", "log").items.size(), 4u);
    ++evaluations;
  }
  EXPECT_EQ(evaluations, 3);
}

TEST(Train, DrawsABarOnATerminal) {
  Bench bench;
  Setting setting;
  setting.terminal = true, setting.columns = 120;
  Ran ran = run("train", bench.tiny("out", 60), setting);
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.out, "\r[") && has(ran.out, "] 100 %") && has(ran.out, " tok/s") && has(ran.out, "\x1b[K"))
      << ran.out;
}

TEST(Train, ThatNeedsMoreMemoryThanThereIsSaysWhichFlagsTakeLess) {
  Bench bench;
  Words large = {"--model", "fbt-1b", "--width", "262144"};
  for (const auto& [more, part] : std::vector<std::pair<Words, std::string>>{
           {{},
            "take a smaller --batch (with --batch-tokens 64 the steps stay the same), --recompute block, a smaller"},
           {{"--recompute", "block"}, "the steps stay the same), a smaller --model or --seq"}}) {
    Words words = {"--data", bench.text(), "--seq", "32", "--batch", "2", "--vocab", "300", "--out", bench / "out"};
    expect_refused(run("train", words + large + more), "train", part);
  }
}

TEST(Train, LogsEveryStepAndEveryEvaluationAsOneObject) {
  Bench bench;
  bench.train(bench.tiny("out") + kAllPasses + Words{"--eval-every", "10"});
  expect_whole_log(bench, "out", 30);
  size_t evaluations = 0;
  int64_t tokens = 0;
  double flops = 0;
  for (const Json& line : bench.log("out")) {
    if (const Json* losses = line.find("val_loss")) {
      ++evaluations;
      EXPECT_GE(losses->items.size(), 4u) << "by number of fused passes";
      EXPECT_EQ(line.get("val_bits_per_byte", "log").items.size(), losses->items.size());
      EXPECT_EQ(line.find("peak_memory_bytes") != nullptr, line.find("final") != nullptr);
      continue;
    }
    EXPECT_EQ(line.get("loss_per_pass", "log").items.size(), size_t(line.get_int("passes", "log")));
    for (const char* name : {"loss", "objective", "grad_norm", "lr", "tokens_per_s", "ms", "mfu", "memory_bytes"})
      EXPECT_GT(line.get_number(name, "log"), 0) << name;
    EXPECT_TRUE(has(line.get_string("device", "log"), "cpu-")) << "what it ran on";
    EXPECT_EQ(line.get_string("time", "log").size(), std::string("2026-01-31T23:59:59Z").size());
    EXPECT_GT(line.get_number("flops", "log"), flops) << "so are operations";
    flops = line.get_number("flops", "log");
    EXPECT_GE(line.get_number("z_loss", "log"), 0);
    EXPECT_GT(line.get_int("tokens", "log"), tokens) << "tokens are counted over the run";
    tokens = line.get_int("tokens", "log");
  }
  EXPECT_EQ(evaluations, 3u) << "at steps 10 and 20 and at the end";
}

TEST(Train, LogsTheCrossEntropyTheZLossAndTheirSum) {
  Bench bench;
  bench.train(bench.tiny("out") + Words{"--passes", "2", "--lambda", "0.5", "--z-loss", "0.01"});
  int with_z_loss = 0;
  for (const Json& line : bench.log("out")) {
    if (line.find("val_loss")) continue;
    double loss = line.get_number("loss", "log"), z_loss = line.get_number("z_loss", "log");
    const std::vector<Json>& passes = line.get("loss_per_pass", "log").items;
    EXPECT_DOUBLE_EQ(loss, passes[0].number + 0.5 * passes[1].number);
    EXPECT_DOUBLE_EQ(line.get_number("objective", "log"), loss + z_loss);
    EXPECT_EQ(z_loss > 0, line.get_int("step", "log") > 23) << "in the cooldown, the last quarter of 30 steps";
    with_z_loss += z_loss > 0;
  }
  EXPECT_EQ(with_z_loss, 7);
}

// A parameter that no row of a step reads keeps its bits and its number of updates.
TEST(Train, WhatFusedInputsAloneReadIsLeftAloneInStepsWithoutAny) {
  Bench bench;
  auto state_of = [&](const std::string& out, int step, size_t* updates) {
    SafetensorsFile file(bench.checkpoint(out, step) + "/model.safetensors");
    const float* g = file.floats("model.input_norm.weight", {16});
    std::string path = bench.checkpoint(out, step) + "/state.json";
    *updates = size_t(parse_json(contents(path), path).get("update_counts", path).items[1].number);
    return std::vector<float>(g, g + 16);
  };
  const std::vector<float> ones(16, 1.0f);
  const Words kHalf = {"--passes", "0:0/100,0.5:100"};
  struct {
    const char* out;
    Words words;
    bool moves_before, moves_after;  // in the first half of the run and in the second
  } runs[] = {{"raw", kHalf + Words{"--plain-input", "raw"}, true, false},
              {"normuon", kHalf + Words{"--plain-input", "raw", "--optimizer", "normuon"}, true, false},
              {"normed", kHalf + Words{"--plain-input", "normed"}, true, true},
              {"none", {"--plain-input", "raw", "--passes", "1"}, false, false},
              {"lambda0", {"--plain-input", "raw", "--passes", "2", "--lambda", "0"}, false, false},
              {"last", {"--plain-input", "raw", "--passes", "2", "--gradient", "last"}, true, true}};
  for (const auto& [out, words, moves_before, moves_after] : runs) {
    SCOPED_TRACE(out);
    bench.train(bench.tiny(out, 10) + words + Words{"--save-every", "5"});
    size_t half, all;
    std::vector<float> at_half = state_of(out, 5, &half), at_end = state_of(out, 10, &all);
    EXPECT_EQ(half, moves_before ? 5u : 0u);
    EXPECT_EQ(all - half, moves_after ? 5u : 0u);
    EXPECT_EQ(at_half != ones, moves_before);
    EXPECT_EQ(at_end != at_half, moves_after);
  }
}

TEST(Train, KeepsTheNewestCheckpointsOrAll) {
  Bench bench;
  bench.train(bench.tiny("two") + Words{"--save-every", "7", "--keep", "2"});
  EXPECT_EQ(list_checkpoints(bench / "two"), (Words{bench.checkpoint("two", 28), bench.checkpoint("two", 30)}));
  bench.train(bench.tiny("all") + Words{"--save-every", "7", "--keep", "0"});
  EXPECT_EQ(list_checkpoints(bench / "all").size(), 5u);
  bench.train(bench.tiny("end") + Words{"--save-every", "0", "--keep", "1"});
  EXPECT_EQ(list_checkpoints(bench / "end").size(), 1u);
  expect_same_end(bench, "two", "end", 30);
}

TEST(Train, TakesItsFlagsFromAFileAndWritesSuchAFile) {
  Bench bench;
  bench.train(bench.tiny("a") + kAllPasses + Words{"--optimizer", "normuon", "--kv-heads", "1"});
  bench.train({"--config", bench / "a/run.conf", "--out", bench / "b", "--threads", "1"});
  expect_same_end(bench, "a", "b", 30);
  put(bench / "own.conf", "# a comment\nwidth = 16\nheads: 2\n");
  expect_refused(run("train", {"--config", bench / "own.conf", "--out", bench / "c"}), "train", "own.conf:3");
}

TEST(Train, TheFileOfItsFlagsHoldsThoseThatWereGivenAndTheOthersBehindAHash) {
  Bench bench;
  bench.train(bench.tiny("a", 10));
  EXPECT_EQ(given_lines(bench, "a"),
            (Words{"data = \"" + bench.text() + "\"", "seq = \"32\"", "batch = \"2\"", "layers = \"1\"",
                   "width = \"16\"", "heads = \"2\"", "warmup = \"5\"", "steps = \"10\""}));
  for (const char* line :
       {"# head-dim = \"8\"\n", "# lr = \"0.024\"\n", "# vocab = \"512\"\n", "# fusion = \"gate\"\n"})
    EXPECT_TRUE(has(contents(bench / "a/run.conf"), line)) << line;

  // What follows from other flags follows from those on the command line.
  Words words = {"--config", bench / "a/run.conf", "--threads", "1"};
  Ran ran = bench.train(words + Words{"--width", "32", "--out", bench / "wide"});
  EXPECT_TRUE(has(ran.out, "2 heads of 16") && has(ran.out, "lr 0.012")) << ran.out;
  EXPECT_TRUE(has(bench.train(words + Words{"--passes", "1", "--out", bench / "plain"}).out, "fusion none"));
  words[1] = bench / "plain/run.conf";
  EXPECT_TRUE(has(bench.train(words + Words{"--passes", "2", "--out", bench / "two"}).out, "fusion gate"));
  ran = bench.train(words + Words{"--epochs", "0.1", "--out", bench / "part"});
  EXPECT_FALSE(has(ran.out, "run      10 steps")) << "the epochs say how long";
  words[1] = bench / "part/run.conf";
  EXPECT_TRUE(has(bench.train(words + Words{"--steps", "3", "--out", bench / "three"}).out, "run      3 steps"));

  // A resumed run has given what it had given before, and what it changes.
  bench.train({"--resume", bench / "a", "--steps", "12", "--clip", "1", "--threads", "1"});
  Words lines = given_lines(bench, "a");
  EXPECT_EQ(lines.size(), 9u);
  EXPECT_TRUE(has(contents(bench / "a/run.conf"), "\nclip = \"1\"\n"));
  std::filesystem::remove(bench / "a/run.conf");
  bench.train({"--resume", bench / "a", "--threads", "1"});
  EXPECT_EQ(given_lines(bench, "a"), lines) << "the checkpoint knows";
}

TEST(Train, ARefusalOfWhatAFileSaysNamesItsLine) {
  Bench bench;
  put(bench / "own.conf", "heads = 3\nvocab = 300\nsteps = 3\nepochs = 2\n");
  Words words = {"--config", bench / "own.conf", "--data", bench.text(), "--out", bench / "out"};
  expect_refused(run("train", words), "train",
                 "--steps and --epochs exclude each other (--epochs stands in " + (bench / "own.conf:4") +
                     ", --steps in " + (bench / "own.conf:3") + ")");
  expect_refused(run("train", words + Words{"--steps", "3", "--width", "16"}), "train",
                 "--width 16 is not a multiple of --heads 3; choose others, or give --head-dim (--heads stands in " +
                     (bench / "own.conf:1") + ")");
  put(bench / "own.conf", "model = \"no\"\n");
  expect_refused(run("eval", {"--config", bench / "own.conf"}), "eval", "--model names another (--model stands in ");
  EXPECT_FALSE(folder_exists(bench / "out"));
}

TEST(Train, HelpShowsEveryFlagWithItsDefault) {
  Ran ran = run("train", {"--help"});
  EXPECT_EQ(ran.status, 0);
  for (const char* flag : {"data",         "pack",
                           "model",        "layers",
                           "width",        "heads",
                           "kv-heads",     "head-dim",
                           "ffn",          "seq",
                           "batch",        "batch-tokens",
                           "steps",        "passes",
                           "lambda",       "prefix-mixin",
                           "jitter",       "gradient",
                           "fusion",       "plain-input",
                           "window",       "full-attention-every",
                           "rope-theta",   "residual-scale",
                           "optimizer",    "lr",
                           "warmup",       "cooldown",
                           "weight-decay", "clip",
                           "z-loss",       "seed",
                           "threads",      "device",
                           "out",          "eval-every",
                           "sample-every", "save-every",
                           "keep",         "resume",
                           "init-from",    "dump",
                           "config",       "help, -h",
                           "tokenizer",    "vocab",
                           "format",       "val-tokens",
                           "epochs"})
    EXPECT_TRUE(has(ran.out, std::string("--") + flag + " ") || has(ran.out, std::string("--") + flag + "\n")) << flag;
  EXPECT_TRUE(has(ran.out, "[12000]") && has(ran.out, "[0.1]"));
  EXPECT_EQ(run("train", {"--width", "16", "--help"}).out, ran.out) << "defaults, not what is given";
  EXPECT_EQ(run("sample", {"--help"}).status, 0);
  EXPECT_EQ(run("eval", {"--help"}).status, 0);
}

TEST(Train, OnePassTrainsAnOrdinaryTransformer) {
  Bench bench;
  Ran ran = bench.train(bench.tiny("plain", 10) + Words{"--passes", "1"});
  EXPECT_TRUE(has(ran.out, "fusion none"));
  Ran gate = bench.train(bench.tiny("gate", 10) + Words{"--passes", "1", "--fusion", "gate", "--eval-every", "5"});
  for (const Json& line : bench.log("gate"))
    EXPECT_TRUE(!line.find("val_loss") || line.find("val_loss")->items.size() == 1) << "its feedback is not trained";
  EXPECT_TRUE(has(gate.out, "--mode standard"));
  Ran eval = run("eval", {"--model", bench / "gate", "--json", "--threads", "1"});
  EXPECT_EQ(parse_json(eval.out, "eval").get("passes", "eval").items.size(), 1u);

  // With feedback trained afterwards, there is something to show.
  bench.train({"--resume", bench / "gate", "--steps", "20", "--passes", "2", "--threads", "1"});
  eval = run("eval", {"--model", bench / "gate", "--json", "--threads", "1"});
  EXPECT_EQ(parse_json(eval.out, "eval").get("passes", "eval").items.size(), 7u);
}

TEST(Train, StartsFromTheWeightsOfAnotherRun) {
  Bench bench;
  bench.train(bench.tiny("plain", 10) + Words{"--passes", "1", "--plain-input", "raw"});
  Words with_feedback = {
      "--init-from", bench / "plain", "--data", bench.text(), "--seq",  "32",       "--batch", "2",        "--threads",
      "1",           "--steps",       "3",      "--lr",       "0.0001", "--passes", "2",       "--warmup", "100"};
  Ran ran = bench.train(with_feedback + Words{"--out", bench / "more"});
  EXPECT_TRUE(has(ran.out, "width 16") && has(ran.out, "fusion gate")) << "sizes are those of the weights\n" << ran.out;
  SafetensorsFile before(bench.checkpoint("plain", 10) + "/model.safetensors");
  SafetensorsFile after(bench.checkpoint("more", 3) + "/model.safetensors");
  for (const TensorView& t : before.tensors()) {
    const float *a = before.floats(t.name, t.shape), *b = after.floats(t.name, t.shape);
    for (int64_t i = 0; i < t.bytes() / 4; ++i) EXPECT_NEAR(a[i], b[i], 0.001) << t.name;
  }
  expect_refused(run("train", with_feedback + Words{"--out", bench / "no", "--width", "32", "--head-dim", "8"}),
                 "train", "model.embed_tokens.weight");
  EXPECT_FALSE(std::filesystem::exists(bench / "no"));
}

TEST(Train, SaysWhichWeightsItStartsFromAndWhatOfThemItLeavesOrDrawsAnew) {
  Bench bench;
  Words with_feedback = {"--passes", "2", "--head-gate", "--save-every", "2", "--keep", "0"};
  bench.train(bench.tiny("base", 4) + with_feedback);
  bench.train(bench.tiny("plain", 4) + Words{"--passes", "1"});
  Words words = {"--data", bench.text(), "--seq", "32",   "--batch", "2",     "--threads",
                 "1",      "--steps",    "2",     "--lr", "1e-9",    "--out", bench / "new"};
  auto started = [&](const Words& more) {
    std::filesystem::remove_all(bench / "new");
    return unwrapped(bench.train(words + more).out);
  };
  auto trained_feedback = [&] {
    return parse_json(contents(bench.checkpoint("new", 2) + "/state.json"), "state").get_bool("feedback_trained", "s");
  };
  const std::string value = "latent_feedback.value.weight", gate = "latent_feedback.gate.weight";
  std::string base = bench.checkpoint("base", 4), plain = bench.checkpoint("plain", 4);
  std::string out = started({"--init-from", bench / "base", "--passes", "1"});
  EXPECT_TRUE(has(out, "\nweights  those of " + base + "\n") && has(out, "fusion gate")) << out;
  EXPECT_TRUE(trained_feedback()) << "it is the base's";
  SafetensorsFile before(base + "/model.safetensors"), after(bench.checkpoint("new", 2) + "/model.safetensors");
  for (const std::string& name : {value, gate}) {
    const float *a = before.floats(name, {16, 16}), *b = after.floats(name, {16, 16});
    EXPECT_TRUE(std::equal(a, a + 256, b)) << name;
  }
  out = started({"--init-from", bench.checkpoint("base", 2)});
  EXPECT_TRUE(has(out, "\nweights  those of " + bench.checkpoint("base", 2) + "\n")) << out;
  out = started({"--init-from", bench / "base", "--passes", "1", "--fusion", "none"});
  EXPECT_TRUE(has(out, "weights  those of " + base + "; not taken: " + value + ", " + gate + "\n")) << out;
  out = started({"--init-from", bench / "base", "--fusion", "add", "--passes", "0:100"});
  EXPECT_TRUE(has(out, "; not taken: " + value + ", " + gate + "; new: latent_feedback.add.weight\n")) << out;
  EXPECT_FALSE(trained_feedback()) << "what is new is not trained";
  std::filesystem::remove_all(bench / "new");
  expect_refused(run("train", words + Words{"--init-from", bench / "base", "--fusion", "add", "--passes", "1",
                                            "--eval-passes", "0,1"}),
                 "train", "--eval-passes");
  out = started({"--init-from", bench / "plain", "--passes", "2"});
  EXPECT_TRUE(has(out, "weights  those of " + plain + "; new: " + value + ", " + gate + "\n")) << out;
  out = started({"--init-from", bench / "base", "--model", "nano", "--width", "16", "--heads", "2", "--layers", "1"});
  EXPECT_TRUE(has(out, "those of " + base + "\n")) << "sizes by name, the rest from the weights\n" << out;
}

TEST(Train, AFileOfFlagsMakesTheRunOfItsWeightsAgain) {
  Bench bench;
  bench.train(bench.tiny("base", 4) + Words{"--vocab", "270", "--fusion", "concat"});
  Words words = {"--config", bench / "base/run.conf", "--threads", "1"};
  std::string out = bench.train(words + Words{"--init-from", bench / "base", "--out", bench / "next"}).out;
  EXPECT_TRUE(has(out, "vocabulary 270") && has(out, "fusion concat")) << out;
  put(bench / "own.conf", "vocab = 300\n");
  expect_refused(run("train", {"--config", bench / "own.conf", "--data", bench.text(), "--init-from", bench / "base",
                               "--out", bench / "no"}),
                 "train", "the weights bring theirs; leave --vocab out (--vocab stands in " + (bench / "own.conf:1"));
  // Sizes that came from the weights follow from no flag of the run.
  bench.train({"--init-from", bench / "base", "--data", bench.text(), "--steps", "2", "--batch", "2", "--threads", "1",
               "--out", bench / "short"});
  words[1] = bench / "short/run.conf";
  out = bench.train(words + Words{"--out", bench / "again"}).out;
  EXPECT_TRUE(has(out, "width 16") && has(out, "2 heads of 8") && has(out, "(2 × 32)") && has(out, "fusion concat"))
      << out;
}

// --- The same bits

TEST(Train, ThreadsAndInstructionSetsDoNotChangeABit) {
  Bench bench;
  Words words = kAllPasses + Words{"--eval-every", "10"};
  bench.train(bench.tiny("one") + words);
  for (int threads : {2, 3}) {
    std::string out = "threads" + std::to_string(threads);
    Words tiny = bench.tiny(out) + words;
    *(std::find(tiny.begin(), tiny.end(), "--threads") + 1) = std::to_string(threads);
    bench.train(tiny);
    expect_same_end(bench, "one", out, 30);
  }
  const Kernels* tables[8];
  for (int i = cpu_kernel_tables(tables, 8) - 1; i >= 0; --i) {
    std::string isa = tables[i]->name + 4;  // behind "cpu-"
    Setting setting;
    setting.variables = {{"FULLBAND_ISA", isa}};
    EXPECT_TRUE(has(bench.train(bench.tiny(isa) + words, setting).out, "cpu-" + isa));
    expect_same_end(bench, "one", isa, 30);
  }
  Setting setting;
  setting.variables = {{"FULLBAND_ISA", "mmx"}};
  expect_refused(run("train", bench.tiny("mmx"), setting), "train", "FULLBAND_ISA=mmx");
}

TEST(Train, FarMoreThreadsThanCoresAreNotStarted) {
  Bench bench;
  Words words = bench.tiny("many", 10);
  *(std::find(words.begin(), words.end(), "--threads") + 1) = "4096";
  Ran ran = run("train", words);
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  EXPECT_EQ(ran.err.rfind("note: --threads 4096: this machine has ", 0), 0u) << ran.err;
  EXPECT_FALSE(has(ran.out, "4096 threads"));
  bench.train(bench.tiny("one", 10));
  expect_same_end(bench, "one", "many", 10);
}

TEST(Train, KilledAndResumedItEndsWithTheSameBits) {
  struct Variant {
    const char* name;
    Words words;
  };
  const Variant variants[] = {
      {"all", kAllPasses},
      {"accumulated", kAllPasses + Words{"--batch-tokens", "192"}},
      {"normuon", kAllPasses + Words{"--optimizer", "normuon"}},
      {"stream", Words{"--passes", "paper", "--pack", "stream"}},
      {"two", Words{"--passes", "two-pass", "--prefix-mixin", "uniform", "--fusion", "concat"}},
      {"last", Words{"--passes", "3", "--gradient", "last", "--prefix-mixin", "off", "--fusion", "add"}},
      {"plain", Words{"--passes", "1", "--window", "8"}},
  };
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.name);
    Bench bench;
    bench.train(bench.tiny("whole", 40) + variant.words);
    Words words = bench.tiny("killed", 40) + variant.words + Words{"--save-every", "4"};
    for (size_t lines : {10, 25}) {
      Running running(Words{program_path("train")} + words + Words{"--resume", "auto"});
      running.until([&] { return bench.logged("killed") >= lines; });
      running.kill(SIGKILL);
    }
    bench.train({"--resume", "--out", bench / "killed", "--threads", "2"});
    expect_same_end(bench, "whole", "killed", 40);
    expect_whole_log(bench, "killed", 40);
  }
}

TEST(Train, KilledAtRandomMomentsItEndsWithTheSameBits) {
  Bench bench;
  Words words = kAllPasses + Words{"--eval-every", "20", "--save-every", "5", "--keep", "1"};
  bench.train(bench.tiny("whole", 80) + words);
  train_under_fire(bench, bench.tiny("killed", 80) + words, 5, 0.06);
  expect_same_end(bench, "whole", "killed", 80);
  expect_whole_log(bench, "killed", 80);
}

TEST(Train, KilledTenTimesOnALongerRunItEndsWithTheSameBits) {
  if (!std::getenv("FULLBAND_TEST_LONG")) GTEST_SKIP() << "set FULLBAND_TEST_LONG";
  Scratch folder;
  Bench bench;
  auto words = [&](const std::string& out) {
    return Words{"--data",         "all",
                 "--seq",          "64",
                 "--steps",        "400",
                 "--warmup",       "20",
                 "--passes",       "0:100,0.3:30/40/30",
                 "--save-every",   "25",
                 "--eval-every",   "60",
                 "--sample-every", "90",
                 "--keep",         "2",
                 "--threads",      "2",
                 "--batch-tokens", "1024",
                 "--out",          bench / out};
  };
  bench.train(words("whole"));
  train_under_fire(bench, words("killed"), 10, 4);
  expect_same_end(bench, "whole", "killed", 400);
  expect_whole_log(bench, "killed", 400);
}

TEST(Train, KilledBeforeItsFirstCheckpointItStartsAgain) {
  Bench bench;
  bench.train(bench.tiny("whole", 60) + kAllPasses);
  {
    Running running(Words{program_path("train")} + bench.tiny("killed", 60) + kAllPasses);
    ASSERT_TRUE(running.until([&] { return bench.logged("killed") >= 3; }));
    running.kill(SIGKILL);
  }
  for (const std::string& path : list_checkpoints(bench / "killed")) remove_folder(path);  // where it was quicker
  Ran ran = bench.train({"--resume", bench / "killed", "--threads", "1"});
  EXPECT_TRUE(has(ran.out, "has no checkpoint yet")) << ran.out;
  expect_same_end(bench, "whole", "killed", 60);
  expect_whole_log(bench, "killed", 60);
}

TEST(Train, CtrlCAndSigtermSaveAndSayHowToResume) {
  Bench bench;
  bench.train(bench.tiny("whole", 2500) + kAllPasses);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::string out = "stopped" + std::to_string(signal);
    Running running(Words{program_path("train")} + bench.tiny(out, 2500) + kAllPasses);
    ASSERT_TRUE(running.until([&] { return bench.logged(out) >= 5; }));
    running.kill(signal);
    Ran ran = running.wait();
    EXPECT_EQ(ran.status, 128 + signal);
    EXPECT_EQ(ran.err, "stopping: the run is saved as soon as the work at hand is done\n");
    size_t at = ran.out.find("continue with: ");
    ASSERT_NE(at, std::string::npos) << ran.out;
    std::string command = ran.out.substr(at + 15);
    Ran again = shell(command.substr(0, command.find('\n')));
    EXPECT_EQ(again.status, 0) << command << again.err;
    expect_same_end(bench, "whole", out, 2500);
    expect_whole_log(bench, out, 2500);
  }
}

TEST(Train, ASecondSignalAsksAndAThirdEndsItAtOnce) {
  Bench bench;
  std::string shown = bench / "shown", err = bench / "err";
  // One micro-batch of seconds.
  std::string train = program_path("train") + " --data " + bench.text() + " --out " + (bench / "out") +
                      " --layers 2 --width 128 --heads 2 --seq 512 --batch 48 --threads 1";
  Ran ran = shell(train + " >" + shown + " 2>" + err + " & for i in $(seq 1000); do grep -q device " + shown +
                  " && break; sleep 0.02; done; sleep 0.1; kill -TERM $!; sleep 0.1; kill -TERM $!; sleep 0.1; " +
                  "kill -TERM $!; wait $!; echo $?");
  EXPECT_EQ(ran.out, std::to_string(128 + SIGTERM) + "\n") << ran.err;
  EXPECT_EQ(contents(err),
            "stopping: the run is saved as soon as the work at hand is done\n"
            "not yet done; once more ends it at once, and loses the steps since the last checkpoint\n");
}

// In steps so long that signals meet them half-way.
TEST(Train, StoppedInTheMiddleOfAStepItEndsWithTheSameBits) {
  Bench bench;
  const Words words = kAllPasses + Words{"--batch-tokens", "192000", "--eval-every", "1"};
  bench.train(bench.tiny("whole", 3) + words);
  Setting setting;
  setting.terminal = true;  // what it shows is seen at once
  Running first(Words{program_path("train")} + bench.tiny("out", 3) + words, setting);
  ASSERT_TRUE(first.until([&] { return has(first.shown(), "device"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  first.kill(SIGINT);
  Ran ran = first.wait();
  EXPECT_EQ(ran.status, 128 + SIGINT);
  EXPECT_TRUE(has(ran.out, "stopped at step 0; continue with: ")) << ran.out;
  Running second({program_path("train"), "--resume", bench / "out", "--threads", "1"}, setting);
  ASSERT_TRUE(second.until([&] { return has(second.shown(), "held-out"); }));
  second.kill(SIGTERM);
  ran = second.wait();
  EXPECT_EQ(ran.status, 128 + SIGTERM);
  EXPECT_TRUE(has(ran.out, "stopped at step 1; continue with: ")) << ran.out;
  bench.train({"--resume", bench / "out", "--threads", "1"});
  expect_same_end(bench, "whole", "out", 3);
  expect_whole_log(bench, "out", 3);
}

TEST(Train, TheMicroBatchesOfAStepTakeNoMemory) {
  Bench bench;
  double least = run("train", {"--help"}).peak_bytes;  // the system counts the test's own memory at the fork, too
  Setting setting;
  setting.terminal = true;
  Running running(Words{program_path("train")} + bench.tiny("out") + Words{"--batch-tokens", "1073741824"}, setting);
  ASSERT_TRUE(running.until([&] { return has(running.shown(), "device"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  running.kill(SIGINT);
  Ran ran = running.wait();
  EXPECT_TRUE(has(ran.out, "stopped at step 0")) << ran.out;
  EXPECT_LT(ran.peak_bytes, least + 50e6);
}

TEST(Train, AReaderThatGoesAwayStopsItQuietlyAndItIsSaved) {
  Bench bench;
  std::string command = program_path("train");
  for (const std::string& word : bench.tiny("out", 3000) + Words{"--save-every", "50", "--eval-every", "50"})
    command += " '" + word + "'";
  Ran ran = shell("{ " + command + "; echo status $? >&2; } | head -1");
  EXPECT_EQ(ran.err, "status 141\n");
  EXPECT_EQ(lines_of(ran.out).size(), 1u);
  EXPECT_FALSE(list_checkpoints(bench / "out").empty());
  Ran full = shell(program_path("train") + " --help >/dev/full");
  expect_refused(full, "train", "cannot write to standard output");
  EXPECT_EQ(shell(command + " --steps=3 >&- 2>&- <&-").status, 1) << "--steps is given twice";
}

TEST(Train, ClosedStreamsAreNotTakenForFiles) {
  Bench bench;
  std::string command = program_path("train");
  for (const std::string& word : bench.tiny("out", 5)) command += " '" + word + "'";
  EXPECT_EQ(shell(command + " >&- 2>&- <&-").status, 0);
  expect_whole_log(bench, "out", 5);
  EXPECT_FALSE(has(contents(bench / "out/lock"), "model"));
}

// --- Resuming

TEST(Train, ResumesFromACheckpointARunOrTheLatestHoweverTheyAreNamed) {
  Bench bench;
  bench.train(bench.tiny("whole") + kAllPasses);
  bench.train(bench.tiny("run") + kAllPasses + Words{"--save-every", "10", "--keep", "0"});
  auto copy = [&](const std::string& name) {
    std::filesystem::copy(bench / "run", bench / name, std::filesystem::copy_options::recursive);
    remove_folder(bench.checkpoint(name, 30));
  };
  const char* forms[] = {"step_00000020", "step_00000020/", "", "/", "link", "step_00000010"};
  int n = 0;
  for (std::string form : forms) {
    std::string out = "copy" + std::to_string(n++);
    copy(out);
    if (form == "link") std::filesystem::create_symlink("step_00000020", bench / out + "/link");
    Ran ran = bench.train({"--resume", bench / out + (form == "/" ? "" : "/") + form, "--threads", "1"});
    EXPECT_TRUE(has(ran.out, form == "step_00000010" ? "at step 10" : "at step 20")) << form << "\n" << ran.out;
    expect_same_end(bench, "whole", out, 30);
    expect_whole_log(bench, out, 30);
    EXPECT_EQ(folder_exists(bench / out + "/aside_step_00000020"), form == "step_00000010") << "nothing is lost";
  }
  Setting inside;
  inside.folder = bench / "copy0";
  remove_folder(bench.checkpoint("copy0", 30));
  bench.train({"--resume", "step_00000020", "--threads", "1"}, inside);
  expect_same_end(bench, "whole", "copy0", 30);

  // Elsewhere: the old run stays as it was.
  auto before = everything_in(bench / "run");
  bench.train({"--resume", bench.checkpoint("run", 10), "--out", bench / "else", "--threads", "1"});
  expect_same_end(bench, "whole", "else", 30);
  EXPECT_EQ(everything_in(bench / "run"), before);
  expect_refused(run("train", {"--resume", bench.checkpoint("run", 10), "--out", bench / "else"}), "train",
                 "holds a run");
}

TEST(Train, ResumingNothingStartsNoRunButSaysWhereRunsAre) {
  Bench bench;
  expect_refused(
      run("train", bench.tiny("typo", 5) + Words{"--resume"}), "train",
      "--resume: " + (bench / "typo") + " is not there; without --resume, or with --resume auto, a new run starts");
  EXPECT_FALSE(folder_exists(bench / "typo"));
  bench.train(bench.tiny("out", 5));
  std::filesystem::create_directory(bench / "empty");
  std::string beside = "; runs are in " + (bench / "out");
  expect_refused(run("train", bench.tiny("typo") + Words{"--resume"}), "train", "is not there" + beside);
  expect_refused(run("train", bench.tiny("other") + Words{"--resume", bench / "nosuch"}), "train",
                 "--resume: " + (bench / "nosuch") + " is not there" + beside);
  expect_refused(run("train", {"--resume", bench / "nosuch", "--out", bench / "out"}), "train",
                 "--resume: " + (bench / "nosuch") + " is not there" + beside);
  expect_refused(run("train", {"--resume", bench.checkpoint("nosuch", 5), "--out", bench / "out"}), "train",
                 bench.checkpoint("nosuch", 5) + ": there is no such folder");
  expect_refused(run("train", {"--resume", bench.text(), "--out", bench / "new"}), "train",
                 "text.txt is a file; name a run's folder, or a checkpoint's");
  expect_refused(run("train", {"--resume", bench / "empty"}), "train", "empty holds no run" + beside);
  EXPECT_TRUE(std::filesystem::is_empty(bench / "empty"));
}

TEST(Train, AFinishedRunShowsItsTableAgainOrGoesOn) {
  Bench bench;
  bench.train(bench.tiny("out") + kAllPasses);
  std::string before = contents(bench / "out/log.jsonl"), model = bench.model("out", 30);
  Ran ran = bench.train({"--resume", "--out", bench / "out", "--threads", "1"});
  EXPECT_TRUE(has(ran.out, "Held-out text"));
  EXPECT_EQ(contents(bench / "out/log.jsonl"), before);
  EXPECT_TRUE(bench.model("out", 30) == model);
  for (const char* line : {"{\"final\": true}\n", "\n\n"}) {  // not ours
    put(bench / "out/log.jsonl", before + line);
    bench.train({"--resume", "--out", bench / "out", "--threads", "1"});
  }
  put(bench / "out/log.jsonl", before);
  bench.train({"--resume", "--out", bench / "out", "--steps", "40", "--threads", "1"});
  EXPECT_NE(bench.model("out", 40), "");
  expect_refused(run("train", {"--resume", "--out", bench / "out", "--steps", "20"}), "train", "already at step 40");
  expect_refused(run("train", bench.tiny("out")), "train", "continue it with --resume");
}

TEST(Train, AResumedRunWhoseScheduleHasChangedSaysWhatItsLearningRateWasAndIs) {
  Bench bench;
  Words by_epochs = bench.tiny("epochs") + Words{"--lr", "0.003", "--epochs", "0.1"};
  by_epochs.erase(std::find(by_epochs.begin(), by_epochs.end(), "--steps"),
                  std::find(by_epochs.begin(), by_epochs.end(), "--steps") + 2);
  bench.train(by_epochs);
  bench.train(bench.tiny("steps", 20) + Words{"--lr", "0.003", "--keep", "0"});
  auto logged_rate = [&](const std::string& out, int step) {
    for (const Json& line : bench.log(out))
      if (line.find("lr") && line.get_int("step", "log") == step) return text("%g", line.get_number("lr", "log"));
    return std::string("no such step");
  };
  auto resumed = [&](const std::string& from, const Words& words) {
    std::filesystem::remove_all(bench / "copy");
    std::filesystem::copy(bench / from, bench / "copy", std::filesystem::copy_options::recursive);
    return bench.train(Words{"--resume", bench / "copy", "--threads", "1"} + words).out;
  };
  std::string out = resumed("steps", {"--steps", "40"});
  EXPECT_TRUE(has(out, "--steps is now 40, was 20\n")) << out;
  EXPECT_TRUE(has(out, "note: the learning rate was 0.0006 in step 20 and is 0.003 in step 21\n")) << out;
  EXPECT_EQ(logged_rate("copy", 20), "0.0006");
  EXPECT_EQ(logged_rate("copy", 21), "0.003");
  const Words changes[] = {{"--lr", "0.001"}, {"--warmup", "100"}, {"--cooldown", "0.9"}, {"--epochs", "1"}};
  for (const Words& change : changes) {
    Words more = change[0] == "--epochs" ? Words{} : Words{"--steps", "40"};
    out = resumed("steps", change + more);
    std::string note = "the learning rate was 0.0006 in step 20 and is " + logged_rate("copy", 21) + " in step 21\n";
    EXPECT_TRUE(has(out, note)) << note << out;
  }
  int steps = int(bench.log("epochs").back().get_int("step", "log"));
  out = resumed("epochs", {"--steps", std::to_string(2 * steps)});
  EXPECT_TRUE(has(out, text("--steps %d takes the place of --epochs 0.1, which were %d steps\n", 2 * steps, steps)))
      << out;
  EXPECT_TRUE(has(out, text("in step %d and is ", steps))) << out;
  for (const Words& same : {Words{}, Words{"--steps", "20"}, Words{"--eval-every", "7"}})
    EXPECT_FALSE(has(resumed("steps", same), "learning rate was"));
}

TEST(Train, FlagsChangedOnceStayChanged) {
  Bench bench;
  bench.train(bench.tiny("out", 10));
  {
    Running running({program_path("train"), "--resume", bench / "out", "--steps", "900", "--threads", "1"});
    ASSERT_TRUE(running.until([&] { return bench.logged("out") >= 15; }));
    running.kill(SIGKILL);
  }
  bench.train({"--resume", bench / "out", "--threads", "1"});
  EXPECT_NE(bench.model("out", 900), "") << "the latest start said 900 steps";
}

TEST(Train, ARunConfThatIsCutOrGoneChangesNothing) {
  Bench bench;
  bench.train(bench.tiny("whole", 20) + kAllPasses);
  train_half(bench, "half");
  std::string conf = contents(bench / "half/run.conf");
  auto without = [&](const std::string& name) {
    size_t at = conf.find("\n" + name + " = ") + 1;
    return conf.substr(0, at) + conf.substr(conf.find('\n', at) + 1);
  };
  for (const std::string& damaged : {conf.substr(0, conf.find("\nlayers") + 1), without("steps"), without("passes"),
                                     without("seq"), std::string(), std::string("gone")}) {
    copy_run(bench, "half", "out");
    put(bench / "out/run.conf", damaged);
    if (damaged == "gone") std::filesystem::remove(bench / "out/run.conf");
    Ran ran = bench.train({"--resume", "--out", bench / "out", "--threads", "1"});
    EXPECT_FALSE(has(ran.out, " is now ")) << ran.out;
    expect_same_end(bench, "whole", "out", 20);
    EXPECT_EQ(contents(bench / "out/run.conf"), conf);
  }
}

TEST(Train, WhatRunConfSaysOtherwiseThanTheCheckpointIsSaidOrRefused) {
  Bench bench;
  train_half(bench, "half");
  std::string conf = contents(bench / "half/run.conf"), place = bench / "out/run.conf";
  size_t lines = lines_of(conf).size();
  auto with = [&](const std::string& line) {
    copy_run(bench, "half", "out");
    std::string name = line.substr(0, line.find(' ')), edited = conf;
    size_t at = edited.find("\n" + name + " = ");
    if (at != edited.npos) edited.replace(at + 1, 1, "# " + name.substr(0, 1));
    put(place, edited + line + "\n");
    return "(" + place + text(":%zu)", lines + 1);
  };
  std::string at = with("steps = 25");
  std::string said = one_line_of(bench.train({"--resume", bench / "out", "--threads", "1"}).out);
  EXPECT_TRUE(has(said, "--steps is now 25, was 20 ")) << said;
  EXPECT_TRUE(has(said, at)) << said;
  EXPECT_NE(bench.model("out", 25), "");
  with("lr = \"0.50\"");
  EXPECT_TRUE(has(bench.train({"--resume", bench / "out", "--threads", "1"}).out, "--lr is now 0.5, was 0.024 "));
  with("epochs = 0.5");
  expect_refused(run("train", {"--resume", bench / "out"}), "train", "--steps and --epochs exclude each other (");
  EXPECT_TRUE(has(bench.train({"--resume", bench / "out", "--epochs", "2", "--threads", "1"}).out, " 2 epochs"));
  with("steps = 25");
  said = bench.train({"--resume", bench / "out", "--steps", "22", "--threads", "1"}).out;
  EXPECT_TRUE(has(said, "--steps is now 22, was 20\n") && !has(said, "now 25")) << "the command line wins\n" << said;
  with("steps = 25");
  EXPECT_FALSE(has(bench.train({"--resume", bench.checkpoint("out", 10), "--threads", "1"}).out, " is now "))
      << "a checkpoint that is named goes by its own flags";

  for (const char* line : {"width = 99", "heads = 4", "fusion = add", "seed = 7", "batch = 3", "pack = stream",
                           "data = sums", "model = micro"}) {
    at = with(line);
    auto before = everything_in(bench / "out");
    std::string name = line, value = name.substr(name.find('=') + 2);
    name = "--" + name.substr(0, name.find(' '));
    Ran ran = run("train", {"--resume", bench / "out"});
    expect_refused(ran, "train", name + " " + value + ": the run in " + bench.checkpoint("out", 10));
    EXPECT_TRUE(has(ran.err, "(" + name + " stands in " + at.substr(1))) << ran.err;
    EXPECT_EQ(everything_in(bench / "out"), before);
  }
  const std::pair<const char*, const char*> mistakes[] = {{"garbage", "expected `name = value`"},
                                                          {"colour = red", "unknown flag colour"},
                                                          {"clip = x", "clip: `x` is not a finite number"},
                                                          {"threads = 3", "threads belongs on the command line"}};
  for (auto [line, part] : mistakes) {
    with(line);
    auto before = everything_in(bench / "out");
    Ran ran = run("train", {"--resume", bench / "out"});
    expect_refused(ran, "train", part);
    EXPECT_TRUE(has(ran.err, place + text(":%zu: ", lines + 1)) &&
                has(ran.err, "; mend or delete it: the checkpoint has the run's flags"))
        << ran.err;
    EXPECT_EQ(everything_in(bench / "out"), before);
  }
}

TEST(Train, ARunWithoutACheckpointStartsAgainFromWhatIsLeftOfItsRunConf) {
  Bench bench;
  bench.train(bench.tiny("half", 10) + Words{"--vocab", "270"});
  remove_folder(bench.checkpoint("half", 10));
  std::string conf = contents(bench / "half/run.conf");
  copy_run(bench, "half", "out");
  Ran ran = bench.train({"--resume", bench / "out", "--steps", "12", "--threads", "1"});
  EXPECT_TRUE(has(ran.out, "has no checkpoint yet") && has(ran.out, "--steps is now 12, was 10\n")) << ran.out;
  EXPECT_TRUE(has(ran.out, "vocabulary 270") && !has(ran.out, "has lost")) << ran.out;
  copy_run(bench, "half", "out");
  std::string cut;
  for (const std::string& line : lines_of(conf))
    if (line.rfind("width", 0) != 0 && line.rfind("# keep =", 0) != 0) cut += line + "\n";
  put(bench / "out/run.conf", cut);
  ran = bench.train({"--resume", bench / "out", "--steps", "3", "--threads", "1"});
  EXPECT_TRUE(has(one_line_of(ran.out), "run.conf has lost its lines of width, keep: ")) << ran.out;
  put(bench / "half/run.conf", "garbage\n");
  expect_refused(run("train", {"--resume", bench / "half"}), "train",
                 "run.conf:1: expected `name = value`; mend it, or start the run anew without --resume");
}

TEST(Train, ResumingSaysWhatTheLogHasLost) {
  Bench bench;
  train_half(bench, "half");
  std::string file = bench / "out/log.jsonl", log = contents(bench / "half/log.jsonl");
  Words lines = lines_of(log);
  auto resumed = [&](const std::string& left) {
    copy_run(bench, "half", "out");
    put(file, left);
    if (left == "gone") std::filesystem::remove(file);
    std::string said = one_line_of(bench.train({"--resume", bench / "out", "--threads", "1"}).out);
    for (const Json& line : bench.log("out")) EXPECT_TRUE(line.find("step"));
    return said.substr(0, said.find("model "));
  };
  auto joined = [&](size_t from, size_t to) {
    std::string some;
    for (size_t i = from; i < to; ++i) some += lines[i] + "\n";
    return some;
  };
  EXPECT_EQ(resumed(log), "");
  EXPECT_TRUE(has(resumed("gone"), "log.jsonl is gone, and with it steps 1 to 10 ")) << resumed("gone");
  EXPECT_TRUE(has(resumed(joined(0, 5)), " has lost steps 6 to 10 "));
  EXPECT_TRUE(has(resumed(joined(0, 5) + lines[5].substr(0, 9)), " has lost steps 6 to 10 "));
  EXPECT_TRUE(has(resumed(joined(0, 3) + joined(6, lines.size())), " has lost steps 4 to 6 "));
  EXPECT_TRUE(has(resumed(std::string(999, '\0')), " has lost steps 1 to 10 "));
  std::string said = resumed(joined(0, 3) + "garbage\n" + joined(4, lines.size()));
  EXPECT_TRUE(has(said, " has lost step 4; 1 damaged line is now in") && has(said, "log.jsonl.damaged")) << said;
  EXPECT_EQ(contents(file + ".damaged"), "garbage\n");

  // Where a run goes on elsewhere, its log begins there.
  Words elsewhere = {"--resume", bench.checkpoint("half", 10), "--out", bench / "else", "--threads", "1"};
  EXPECT_FALSE(has(bench.train(elsewhere).out, "log.jsonl"));
  EXPECT_FALSE(has(bench.train({"--resume", bench / "else", "--threads", "1"}).out, "log.jsonl"));
}

TEST(Train, ResumingNoticesAHeldOutTextThatHasChanged) {
  Bench bench;
  bench.train(bench.tiny("half", 10));
  std::string text = contents(bench.text());
  auto resumed = [&] {
    copy_run(bench, "half", "out");
    std::string said = one_line_of(bench.train({"--resume", bench / "out", "--steps", "12", "--threads", "1"}).out);
    return said;
  };
  EXPECT_FALSE(has(resumed(), "held-out part"));
  text[text.size() - 10] = text[text.size() - 10] == 't' ? 'a' : 't';
  put(bench.text(), text);
  EXPECT_TRUE(has(resumed(), "has changed: losses on it compare no")) << resumed();
  Json state = parse_json(contents(bench.checkpoint("half", 10) + "/state.json"), "state");
  std::erase_if(state.members, [](const auto& member) {
    return member.first == "held_out_checksum" || member.first == "log_begins" || member.first == "given";
  });
  put(bench.checkpoint("half", 10) + "/state.json", write_json_indented(state));
  reseal(bench.checkpoint("half", 10));
  EXPECT_FALSE(has(resumed(), "has changed")) << "an earlier version's checkpoint does not say what it was";
  EXPECT_EQ(given_lines(bench, "out").size(), lines_of(contents(bench / "out/run.conf")).size() - 1)
      << "nor what was given, so that all of it counts";
}

TEST(Train, ChangedModelAndDataFlagsAreRefusedByName) {
  Bench bench;
  bench.train(bench.tiny("out", 6));
  auto before = everything_in(bench / "out");
  const std::pair<const char*, const char*> changes[] = {{"model", "micro"},
                                                         {"layers", "2"},
                                                         {"width", "32"},
                                                         {"heads", "4"},
                                                         {"kv-heads", "1"},
                                                         {"head-dim", "4"},
                                                         {"ffn", "32"},
                                                         {"window", "4"},
                                                         {"full-attention-every", "2"},
                                                         {"rope-theta", "100"},
                                                         {"residual-scale", "1"},
                                                         {"fusion", "add"},
                                                         {"plain-input", "normed"},
                                                         {"data", "sums"},
                                                         {"pack", "stream"},
                                                         {"seq", "16"},
                                                         {"batch", "3"},
                                                         {"batch-tokens", "128"},
                                                         {"seed", "7"},
                                                         {"optimizer", "normuon"}};
  for (auto [name, value] : changes)
    expect_refused(run("train", {"--resume", bench / "out", std::string("--") + name, value}), "train",
                   std::string("--") + name);
  put(bench / "other.txt", some_text(3000));
  expect_refused(run("train", {"--resume", bench / "out", "--data", bench / "other.txt"}), "train", "--data");
  EXPECT_EQ(everything_in(bench / "out"), before);

  // The same text in another place is the same data; a text that has changed is not.
  std::filesystem::rename(bench.text(), bench / "moved.txt");
  expect_refused(run("train", {"--resume", bench / "out"}), "train", "say where to with --data");
  expect_refused(run("eval", {"--model", bench / "out"}), "eval", "say where to with --data");
  bench.train({"--resume", bench / "out", "--data", bench / "moved.txt", "--steps", "8", "--threads", "1"});
  put(bench / "moved.txt", some_text(5000));
  expect_refused(run("train", {"--resume", bench / "out"}), "train", "has the file changed?");
  put(bench / "moved.txt", "");
  Ran ran = run("train", {"--resume", bench / "out"});
  expect_refused(ran, "train", "moved.txt is empty");
  EXPECT_FALSE(has(ran.err, "has moved")) << "it is there";
}

TEST(Train, OneRunAtATimeInAFolder) {
  Bench bench;
  Running first(Words{program_path("train")} + bench.tiny("out", 100000));
  ASSERT_TRUE(first.until([&] { return bench.logged("out") >= 3; }));
  expect_refused(run("train", bench.tiny("out")), "train", "in use by another process");
  expect_refused(run("train", {"--resume", bench / "out"}), "train", "in use by another process");
  size_t lines = bench.logged("out");
  EXPECT_TRUE(first.until([&] { return bench.logged("out") > lines; })) << "the first goes on";
  first.kill(SIGTERM);
  EXPECT_EQ(first.wait().status, 128 + SIGTERM);
}

// --- Mistakes

TEST(Train, EveryMistakeIsOneLineAndNothingIsBegun) {
  Bench bench;
  put(bench / "empty", ""), put(bench / "two", "ab"), put(bench / "file", "x");
  put(bench / "markers", "<|endoftext|>\n<|endoftext|>\n");
  put(bench / "caf\xe9.txt", some_text());
  put(bench / "bad.conf", "widht = 3\n"), put(bench / "broken.conf", "width 3\n");
  const std::pair<Words, const char*> mistakes[] = {
      {{"--widht", "16"}, "did you mean --width?"},
      {{"--width"}, "--width needs a value"},
      {{"--width", "sixteen"}, "`sixteen` is not a whole number"},
      {{"--width", "-1"}, "too small"},
      {{"--width", "16", "--width", "16"}, "given twice"},
      {{"word"}, "stray word"},
      {{"--config", bench / "bad.conf"}, "did you mean width?"},
      {{"--config", bench / "broken.conf"}, "broken.conf:1"},
      {{"--config", bench / "nosuch"}, "No such file"},
      {{"--data", bench / "nosuch.txt"}, "nosuch.txt: No such file"},
      {{"--data", bench / "empty"}, "is empty"},
      {{"--data", bench / "two"}, "too small"},
      {{"--data", bench / "markers"}, "too small"},
      {{"--data", bench.folder.path}, "it is a folder"},
      {{"--data", ""}, "--data is empty"},
      {{"--data", bench / "caf\xe9.txt"}, "caf·.txt: the name is not UTF-8"},
      {{"--out", bench / "caf\xe9"}, "caf·: the name is not UTF-8"},
      {{"--resume="}, "--resume is empty"},
      {{"--init-from="}, "--init-from is empty"},
      {{"--dump="}, "--dump is empty"},
      {{"--data", "/dev/null"}, "/dev/null is empty"},
      {{"--data", "sumz"}, "did you mean sums?"},
      {{"--data", "sums", "--seq", "16"}, "at least 32 tokens"},
      {{"--width", "17", "--heads", "3"}, "--width 17 is not a multiple of --heads 3"},
      {{"--head-dim", "3"}, "head-dim must be even"},
      {{"--heads", "4", "--kv-heads", "3"}, "kv-heads"},
      {{"--model", "macro"}, "no such preset"},
      {{"--passes", "0"}, "from 1 to 16"},
      {{"--passes", "0:50/20"}, "add up to 100"},
      {{"--passes", "0:0x64"}, "add up to 100"},
      {{"--passes", "2", "--fusion", "none"}, "needs a model with feedback"},
      {{"--fusion", "sum"}, "not one of gate, concat, add, none"},
      {{"--batch-tokens", "100"}, "not a multiple"},
      {{"--optimizer", "sgd"}, "not one of"},
      {{"--lr", "nan"}, "not a finite number"},
      {{"--steps", "0"}, "too small"},
      {{"--device", "cuda"}, "--device cuda"},
      {{"--init-from", bench / "nosuch"}, "no such folder"},
      {{"--init-from", bench.text()}, "is a file"},
      {{"--resume", "--init-from", bench.text()}, "exclude each other"},
      {{"--out", ""}, "the path is empty"},
      {{"--out", bench / "file"}, "is a file; a run needs a folder"},
      {{"--out", bench / "file/below"}, "cannot"},
      {{"--out", "/proc/fullband"}, "cannot make the folder"},
      {{"--dump", bench / "nosuch/d.safetensors"}, "cannot write"},
      {{"--dump", bench.folder.path}, "it is a folder"},
  };
  for (const auto& [words, part] : mistakes) {
    Words all = {"--threads", "1"};  // a flag given in `words` replaces one of these
    auto given = [&words = words](const char* flag) {
      return std::find(words.begin(), words.end(), flag) != words.end();
    };
    for (const Words& usual :
         {Words{"--data", bench.text()}, Words{"--out", bench / "out"}, Words{"--seq", "32"}, Words{"--batch", "2"}})
      if (!given(usual[0].c_str()) && !(usual[0] == "--out" && given("--dump"))) all = all + usual;
    Ran ran = run("train", all + words);
    expect_refused(ran, "train", part);
    EXPECT_EQ(ran.out, "") << part;
    EXPECT_FALSE(std::filesystem::exists(bench / "out")) << part;
  }
  EXPECT_EQ(contents(bench / "file"), "x");
}

TEST(Train, ATypedFlagThatHasNoEffectBesideTheOthersIsRefused) {
  Bench bench;
  bench.train(bench.tiny("plain", 3) + Words{"--passes", "1"});
  const std::pair<Words, const char*> idle[] = {
      {{"--passes", "1", "--lambda", "0.5"}, "--lambda: --passes 1 has no later pass; leave it out"},
      {{"--passes", "0:100", "--gradient", "detach"}, "--gradient: --passes 0:100 has no later pass"},
      {{"--passes", "1", "--prefix-mixin", "off"}, "--prefix-mixin: --passes 1 has"},
      {{"--passes", "1", "--jitter", "0.3"}, "--jitter: --passes 1 has"},
      {{"--jitter", "0.3", "--lambda", "1", "--passes", "1"},
       "--lambda, --jitter: --passes 1 has no later pass; leave them"},
      {{"--passes", "2", "--gradient", "last", "--lambda", "0"},
       "--lambda: with --gradient last, no pass but the last"},
      {{"--passes", "2", "--gradient", "last", "--lambda", "3"}, "--lambda: with --gradient last"},
      {{"--passes", "2", "--gradient", "detach", "--lambda", "0"}, "--gradient: with --lambda 0, later passes take no"},
      {{"--passes", "1", "--eval-passes", "0,1"}, "--eval-passes: no feedback is trained"},
      {{"--passes", "2", "--lambda", "0", "--eval-passes", "0,1"}, "--eval-passes: no feedback is trained"},
      {{"--init-from", bench / "plain", "--passes", "1", "--eval-passes", "0,1"},
       "--eval-passes: no feedback is trained"},
      {{"--window", "32"}, "--window: a window of 32 positions holds every row, of --seq 32 tokens"},
      {{"--window", "64", "--full-attention-every", "1"},
       "--window: with --full-attention-every 1, every layer sees all"},
      {{"--window", "64", "--full-attention-every", "2"}, "--window, --full-attention-every: a window of 64 positions"},
      {{"--full-attention-every", "1"}, "--full-attention-every: without --window, every layer sees all"},
      {{"--window", "8", "--full-attention-every", "2"}, "--full-attention-every: the model has 1 layer, so that none"},
      {{"--cooldown", "0", "--z-loss", "0.1"}, "--z-loss: it is added in the cooldown, and --cooldown 0 leaves none"},
      {{"--schedule", "cosine", "--cooldown", "0.5"}, "--cooldown: --schedule cosine has no cooldown; leave it out"},
      {{"--schedule", "cosine", "--z-loss", "0.1"}, "--z-loss: it is added in the cooldown, and --schedule cosine has"},
      {{"--eval-every", "0", "--final-eval", "500", "--val-tokens", "300"},
       "--val-tokens: --eval-every 0 leaves the final"},
  };
  for (const auto& [words, part] : idle) {
    Ran ran = run("train", bench.tiny("out", 3) + words);
    expect_refused(ran, "train", part);
    EXPECT_EQ(ran.out, "") << part;
    EXPECT_FALSE(std::filesystem::exists(bench / "out")) << part;
  }
  // What turns something off says what is.
  bench.train(bench.tiny("off", 3) + Words{"--passes", "1", "--jitter", "0", "--full-attention-every", "0",
                                           "--eval-passes", "0", "--z-loss", "0", "--cooldown", "0"});
}

TEST(Train, WhatStandsInAFileOfARunHasAnEffectOrNot) {
  Bench bench;
  const Words kinds[] = {{"--passes", "1", "--window", "8"},
                         {"--passes", "2", "--gradient", "last"},
                         {"--passes", "2", "--lambda", "0", "--cooldown", "0"}};
  for (size_t i = 0; i < std::size(kinds); ++i) {
    std::string run = "run" + std::to_string(i), again = "again" + std::to_string(i);
    bench.train(bench.tiny(run, 3) + kinds[i]);
    bench.train({"--config", bench / run + "/run.conf", "--out", bench / again, "--threads", "1"});
    expect_same_end(bench, run, again, 3);
    bench.train({"--resume", bench / run, "--steps", "5", "--threads", "1"});
  }
  // On the way only what is typed now counts.
  bench.train(bench.tiny("weighed", 3) + Words{"--passes", "2", "--lambda", "0.5", "--gradient", "detach"});
  bench.train({"--resume", bench / "weighed", "--passes", "1", "--steps", "5", "--threads", "1"});
  bench.train({"--resume", bench / "weighed", "--passes", "2", "--lambda", "0", "--steps", "7", "--threads", "1"});
  expect_refused(run("train", {"--resume", bench / "weighed", "--gradient", "through", "--threads", "1"}), "train",
                 "--gradient: with --lambda 0");
}

TEST(Train, AFileInTheWayOfACheckpointIsFoundAtTheStart) {
  Bench bench;
  for (const char* name : {"step_00000030", ".step_00000030.partial", ".step_00000030.replaced"}) {
    std::string out = bench / "out";
    std::filesystem::create_directory(out);
    put(out + "/" + name, "mine");
    Ran ran = run("train", bench.tiny("out"));
    expect_refused(ran, "train", std::string(name) + ": a file has the name of a checkpoint's folder");
    EXPECT_EQ(list_folder(out), Words{name});
    remove_folder(out);
  }
}

TEST(Train, AModelThatDoesNotFitIsRefusedBeforeItIsTaken) {
  Bench bench;
  const Words sizes[] = {{"--model", "d48", "--seq", "100000"},
                         {"--batch", "1048576", "--seq", "64"},
                         {"--layers", "4096", "--width", "1048576", "--heads", "1024", "--seq", "64"},
                         {"--batch", "1048576", "--seq", "1048576"}};
  double least = run("train", {"--help"}).peak_bytes;  // the system counts the test's own memory at the fork, too
  for (const Words& words : sizes) {
    Ran ran = run("train", words + Words{"--data", bench.text(), "--out", bench / "out"});
    EXPECT_EQ(ran.status, 1);
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_TRUE(has(ran.err, "of memory and") || has(ran.err, "more than this engine takes at once")) << ran.err;
    EXPECT_LT(ran.peak_bytes, least + 200e6);
    EXPECT_FALSE(std::filesystem::exists(bench / "out"));
  }
}

TEST(Train, BrokenCheckpointsAreNamedAndNeverReplaced) {
  Bench bench;
  bench.train(bench.tiny("good", 10) + Words{"--save-every", "5"});
  struct Damage {
    const char *name, *part;
    std::function<void(const std::string&)> act;
  };
  auto cut = [](const std::string& path) { std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2); };
  auto flip = [](const std::string& path) {
    std::string bytes = contents(path);
    bytes[bytes.size() / 2] ^= 1;
    put(path, bytes);
  };
  auto record = [](const std::string& c, const char* name, Json value) {
    Json state = parse_json(contents(c + "/state.json"), "state.json");
    state.set(name, std::move(value));
    put(c + "/state.json", write_json_indented(state)), reseal(c);
  };
  const Damage damages[] = {
      {"missing", "is missing", [](const std::string& c) { std::filesystem::remove(c + "/model.safetensors"); }},
      {"truncated", "truncated", [&](const std::string& c) { cut(c + "/optimizer.safetensors"); }},
      {"flipped", "its bytes have changed", [&](const std::string& c) { flip(c + "/model.safetensors"); }},
      {"magic", "model.safetensors",
       [](const std::string& c) { put(c + "/model.safetensors", "PK\3\4" + std::string(500, 'x')), reseal(c); }},
      {"emptied", "model.safetensors", [](const std::string& c) { put(c + "/model.safetensors", ""), reseal(c); }},
      {"json", "state.json:", [](const std::string& c) { put(c + "/state.json", "{\"step\": "), reseal(c); }},
      {"fields", "state.json", [](const std::string& c) { put(c + "/state.json", "{}"), reseal(c); }},
      {"manifest", "manifest.json", [](const std::string& c) { put(c + "/manifest.json", "[]"); }},
      {"epoch", "state.json: `epoch` should be 0 or more, not -1",
       [&](const std::string& c) { record(c, "epoch", -1); }},
      {"row", "state.json: `epoch_row` should be 0 or more, not -7",
       [&](const std::string& c) { record(c, "epoch_row", -7); }},
      {"rows", "state.json: no row 1000000 in shard 0 of epoch 0",
       [&](const std::string& c) { record(c, "epoch_row", 1000000); }},
      {"step", "state.json: `step` should be 0 or more", [&](const std::string& c) { record(c, "step", -1); }},
      {"flag", "state.json: flag `colour` is unknown to this ./train",
       [&](const std::string& c) {
         record(c, "flags", Json::object({{"colour", "red"}}));
       }},
      {"nan", "not finite", [](const std::string& c) { fill_weights(c, NAN); }},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    std::string out = bench / damage.name;
    std::filesystem::copy(bench / "good", out, std::filesystem::copy_options::recursive);
    damage.act(bench.checkpoint(damage.name, 10));
    auto before = everything_in(out);
    expect_refused(run("train", {"--resume", bench.checkpoint(damage.name, 10), "--steps", "12"}), "train",
                   damage.part);
    expect_refused(run("train", bench.tiny(damage.name)), "train", "holds a run");
    EXPECT_EQ(everything_in(out), before);
  }
  // Without a name, the latest one that is whole; where none is, no new run is begun over them.
  Ran ran = run("train", {"--resume", "--out", bench / "flipped", "--threads", "1"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.err, "skipping a broken checkpoint") && has(ran.out, "at step 5")) << ran.err << ran.out;
  expect_same_end(bench, "good", "flipped", 10);
  remove_folder(bench.checkpoint("truncated", 5));
  auto before = everything_in(bench / "truncated");
  ran = run("train", {"--resume", "--out", bench / "truncated"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(has(ran.err, "none of its 1 checkpoints is whole")) << ran.err;
  EXPECT_EQ(everything_in(bench / "truncated"), before);
}

TEST(Train, EveryReaderOfARunSaysTheSameLineForABrokenNewestCheckpoint) {
  Bench bench;
  bench.train(bench.tiny("run", 10) + Words{"--save-every", "5"});
  std::string file = bench.checkpoint("run", 10) + "/model.safetensors", bytes = contents(file);
  bytes[bytes.size() / 2] ^= 1;
  put(file, bytes);
  std::string line = "warning: skipping a broken checkpoint: " + file + ": its bytes have changed";
  Words data = {"--data", bench.text(), "--seq", "32", "--batch", "2", "--steps", "2"};
  const std::pair<const char*, Words> readers[] = {
      {"sample", {"--model", bench / "run", "--prompt", "the", "--tokens", "3"}},
      {"eval", {"--model", bench / "run"}},
      {"train", data + Words{"--init-from", bench / "run", "--out", bench / "new"}},
      {"train", {"--resume", bench / "run", "--dump", bench / "dump.safetensors"}},
      {"train", {"--resume", bench / "run"}}};
  for (const auto& [program, words] : readers) {
    Ran ran = run(program, words + Words{"--threads", "1"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_EQ(ran.err.rfind(line, 0), 0u) << ran.err;
  }
}

TEST(Train, ARenamedCheckpointIsNoticedByEveryReaderAndKept) {
  Bench bench;
  bench.train(bench.tiny("run", 10) + Words{"--save-every", "5"});
  std::filesystem::rename(bench.checkpoint("run", 10), bench.checkpoint("run", 99));
  std::string line = "warning: skipping a broken checkpoint: " + bench.checkpoint("run", 99) + " holds step 10";
  Words data = {"--data", bench.text(), "--seq", "32", "--batch", "2", "--steps", "2"};
  const std::pair<const char*, Words> readers[] = {
      {"sample", {"--model", bench / "run", "--prompt", "the", "--tokens", "3"}},
      {"eval", {"--model", bench / "run"}},
      {"train", data + Words{"--init-from", bench / "run", "--out", bench / "new"}},
      {"train", {"--resume", bench / "run", "--keep", "1"}}};
  for (const auto& [program, words] : readers) {
    Ran ran = run(program, words + Words{"--threads", "1"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err.rfind(line, 0), 0u) << ran.err;
  }
  EXPECT_TRUE(folder_exists(bench / "run/aside_step_00000099"));
  EXPECT_EQ(list_checkpoints(bench / "run"), Words{bench.checkpoint("run", 10)});
}

TEST(Train, AFullDiskLosesNothing) {
  Bench bench;
  bench.train(bench.tiny("whole", 20));
  bench.train(bench.tiny("out", 10));
  std::string model = bench.model("out", 10);
  Setting full;
  full.largest_file = 20000;
  Ran ran = run("train", {"--resume", bench / "out", "--steps", "20", "--threads", "1"}, full);
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(has(ran.err, "model.safetensors: File too large")) << ran.err;
  EXPECT_EQ(lines_of(ran.err).size(), 1u);
  EXPECT_EQ(list_checkpoints(bench / "out"), Words{bench.checkpoint("out", 10)});
  EXPECT_TRUE(bench.model("out", 10) == model);
  for (const std::string& name : list_folder(bench / "out")) EXPECT_FALSE(has(name, "partial")) << name;
  bench.train({"--resume", bench / "out", "--threads", "1"});
  EXPECT_NE(bench.model("out", 20), "");

  full.largest_file = 6000;  // the tokenizer fits; the log is cut off in the middle of a line
  ran = run("train", bench.tiny("log"), full);
  expect_refused(ran, "train", "log.jsonl: File too large");
  bench.train({"--resume", bench / "log", "--threads", "1"});
  expect_whole_log(bench, "log", 30);
  expect_refused(run("train", bench.sizes() + Words{"--dump", bench / "d.safetensors"}, full), "train",
                 "d.safetensors");
  EXPECT_FALSE(std::filesystem::exists(bench / "d.safetensors"));
}

TEST(Train, ALossThatIsNotFiniteStopsItAndTheLastGoodCheckpointStays) {
  Bench bench;
  bench.train(bench.tiny("out", 10));
  // From weights so large that products overflow.
  fill_weights(bench.checkpoint("out", 10), 1e30f);
  std::string model = bench.model("out", 10);
  Ran ran = run("train", {"--resume", bench / "out", "--steps", "20", "--save-every", "1", "--threads", "1"});
  expect_refused(ran, "train", "stopped at step 11");
  EXPECT_TRUE(has(ran.err, "The last good checkpoint is " + bench.checkpoint("out", 10))) << ran.err;
  EXPECT_TRUE(has(ran.err, "or --clip, which is off (--clip 1 bounds the gradient), may help")) << ran.err;
  EXPECT_EQ(list_checkpoints(bench / "out"), Words{bench.checkpoint("out", 10)});
  EXPECT_TRUE(bench.model("out", 10) == model);
  ran = run("train", bench.tiny("new") + Words{"--init-from", bench / "out"});
  expect_refused(ran, "train", "There is no checkpoint yet");
  ran = run("train", bench.tiny("clipped") + Words{"--init-from", bench / "out", "--clip", "1"});
  expect_refused(ran, "train", "or a smaller --clip may help");

  // A step whose loss is finite may still leave weights that compute nothing: they are not saved.
  bench.train(bench.tiny("late", 10) + Words{"--keep", "1"});
  ran = run("train", {"--resume",       bench / "late",
                      "--steps",        "20",
                      "--save-every",   "1",
                      "--threads",      "1",
                      "--clip",         "0",
                      "--lr",           "10",
                      "--weight-decay", "10",
                      "--cooldown",     "0",
                      "--warmup",       "0",
                      "--lambda",       "1000",
                      "--passes",       "16"});
  EXPECT_TRUE(ran.status == 0 || has(ran.err, "The last good checkpoint is")) << ran.err;
  EXPECT_FALSE(list_checkpoints(bench / "late").empty());
}

TEST(Train, TheCorpusTrainsResumesAndIsAnswered) {
  Bench bench;
  auto words = [&](const std::string& out) {
    return Words{"--data",         "cups", "--seq",        "32", "--width", "16",       "--heads",   "2",
                 "--layers",       "1",    "--batch",      "2",  "--steps", "20",       "--threads", "1",
                 "--sample-every", "10",   "--save-every", "4",  "--out",   bench / out};
  };
  Ran ran = bench.train(words("whole"));
  EXPECT_TRUE(has(ran.out, "exact answers, greedy") && has(ran.out, "SEQUENTIAL") && has(ran.out, "answers"))
      << ran.out;
  {
    Running running(Words{program_path("train")} + words("killed"));
    running.until([&] { return bench.logged("killed") >= 9; });
    running.kill(SIGKILL);
  }
  bench.train(words("killed") + Words{"--resume"});
  expect_same_end(bench, "whole", "killed", 20);
}
