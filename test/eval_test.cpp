// ./eval: the same table as at the end of training, for any checkpoint.
#include "program.h"

namespace {

Ran eval(const Words& words) { return run("eval", words + Words{"--threads", "1"}); }

Json parsed(const Words& words) {
  Ran ran = eval(words + Words{"--json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(lines_of(ran.out).size(), 1u) << "one object";
  return parse_json(ran.out, "eval");
}

}  // namespace

TEST(Eval, ShowsTheTableThatTrainingEndedWith) {
  Bench bench;
  Ran trained = bench.train(bench.tiny("out") + Words{"--passes", "0:50/50"});
  std::string table = trained.out.substr(trained.out.find("Held-out text"));
  table = table.substr(0, table.find("\ntrained"));
  EXPECT_TRUE(has(eval({"--model", bench / "out"}).out, table));
  EXPECT_TRUE(has(eval({"--model", bench.checkpoint("out", 30)}).out, table));
  EXPECT_EQ(write_json(parsed({"--model", bench / "out"})),
            write_json(parse_json(contents(bench / "out/evaluation.json"), "evaluation.json")));

  std::vector<Json> log = bench.log("out");
  Json passes = parsed({"--model", bench / "out"}).get("passes", "eval");
  const Json& losses = log.back().get("val_loss", "log");
  ASSERT_EQ(passes.items.size(), losses.items.size());
  for (size_t i = 0; i < losses.items.size(); ++i)
    EXPECT_EQ(passes.items[i].get_number("loss", "eval"), losses.items[i].number);
}

TEST(Eval, TheFinalEvaluationTakesATenthOfTheTrainingOrWhatItIsTold) {
  Bench bench;
  put(bench.text(), some_text(400'000));
  auto final = [&](const std::string& out, const Words& more) {
    bench.train(bench.tiny(out, 5) + Words{"--passes", "0:50/50"} + more);
    return parse_json(contents(bench / out + "/evaluation.json"), out).get("passes", out).items;
  };
  auto targets = [](const std::vector<Json>& passes) { return passes[0].get_number("targets", "e"); };
  std::vector<Json> short_run = final("short", {}), told = final("told", {"--final-eval", "10000"});
  EXPECT_NEAR(targets(short_run), 8 * 1024, 512) << "as much as the evaluations on the way read";
  EXPECT_NEAR(targets(told), 10000, 1024);
  EXPECT_NEAR(targets(final("bounded", {"--final-eval", "3000", "--val-tokens", "9000"})), 3000, 1024);

  std::vector<Json> two = final("two", {"--eval-passes", "0,2"});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].get_number("fused_passes", "e"), 2);
  EXPECT_EQ(two[1].get_number("loss", "e"), short_run[2].get_number("loss", "e"));
  Json shown = parsed({"--model", bench / "two", "--passes", "0,1,4", "--val-tokens", "2000"});
  EXPECT_EQ(shown.get("passes", "e").items[2].get_number("fused_passes", "e"), 4);
  expect_refused(eval({"--model", bench / "two", "--passes", "1,2"}), "eval", "--passes 1,2: give numbers");
  expect_refused(run("train", bench.tiny("three") + Words{"--eval-passes", "0,x"}), "train", "--eval-passes 0,x: give");
  EXPECT_FALSE(std::filesystem::exists(bench / "three"));
}

TEST(Eval, TakesOtherDataAndPuzzles) {
  Bench bench;
  bench.train(bench.tiny("out", 5));
  put(bench / "other.txt", some_text(2000));
  double own = parsed({"--model", bench / "out"}).get("passes", "e").items[0].get_number("targets", "e");
  double other = parsed({"--model", bench / "out", "--data", bench / "other.txt"})
                     .get("passes", "e")
                     .items[0]
                     .get_number("targets", "e");
  EXPECT_LT(other, own);
  EXPECT_GT(parsed({"--model", bench / "out", "--pack", "stream"}).get("passes", "e").items[0].get_number("loss", "e"),
            0);
  Json puzzles = parsed({"--model", bench / "out", "--data", "cups"});
  ASSERT_FALSE(puzzles.get("answers", "e").items.empty());
  const Json& row = puzzles.get("answers", "e").items[0];
  EXPECT_EQ(row.get_string("task", "e"), "cups");
  for (const char* mode : {"standard", "soft", "fused", "sequential"}) EXPECT_GE(row.get_number(mode, "e"), 0);
}

TEST(Eval, EveryMistakeIsOneLine) {
  Bench bench;
  bench.train(bench.tiny("out", 5));
  put(bench / "empty", "");
  auto refused = [&](const Words& words, const std::string& part) {
    Ran ran = eval(words);
    expect_refused(ran, "eval", part);
    EXPECT_EQ(ran.out, "");
  };
  refused({"--model", bench / "nosuch"}, "no such folder; ./train makes one, --model names another");
  refused({"--model", bench.text()}, "is a file");
  refused({"--modle", bench / "out"}, "did you mean --model?");
  refused({"--model", bench / "out", "--data", bench / "nosuch.txt"}, "No such file");
  refused({"--model", bench / "out", "--data", bench / "empty"}, "is empty");
  refused({"--model", bench / "out", "--data", "sumz"}, "did you mean sums?");
  refused({"--model", bench / "out", "--pack", "bag"}, "not one of");

  std::filesystem::rename(bench.text(), bench / "moved.txt");
  refused({"--model", bench / "out"}, "text.txt: No such file or directory (as " + bench.checkpoint("out", 5));
  EXPECT_EQ(eval({"--model", bench / "out", "--data", bench / "moved.txt"}).status, 0);
  std::filesystem::rename(bench / "moved.txt", bench.text());
  bench.train({"--data", bench.text(), "--seq", "16", "--steps", "2", "--threads", "1", "--out", bench / "short"});
  refused({"--model", bench / "short", "--data", "sums"}, "rows of 16 tokens (./train --seq) are too short");

  std::string config = bench.checkpoint("out", 5) + "/config.json", was = contents(config), changed = was;
  put(config, changed.replace(changed.find("\"num_hidden_layers\": 1"), 22, "\"num_hidden_layers\": 9"));
  refused({"--model", bench / "out"}, "config.json: its bytes have changed");
  put(config, was);
  std::string state = bench.checkpoint("out", 5) + "/state.json", text = contents(state);
  size_t at = text.find("\"seed\": \"1\"");
  ASSERT_NE(at, std::string::npos);
  put(state, text.replace(at, 11, "\"seed\": \"x\"")), reseal(bench.checkpoint("out", 5));
  refused({"--model", bench / "out"}, "`seed`");
  put(state, "nothing"), reseal(bench.checkpoint("out", 5));
  refused({"--model", bench / "out"}, "state.json");
  expect_refused(shell(program_path("eval") + " --help >/dev/full"), "eval", "cannot write to standard output");
}
