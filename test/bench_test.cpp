// ./bench: every benchmark says something, as a table and as JSON, and every mistake is found before it begins.
#include "program.h"

namespace {

Ran bench(const Words& words) { return run("bench", words + Words{"--threads", "1", "--seconds", "0.01"}); }

const Words kNano = {"--model", "nano", "--vocab", "257"};

// Small, where sizes can be chosen.
const Words kBenchmarks[] = {{"peak"},
                             {"matmul", "--shape", "8x16x24"},
                             {"attention", "--seq", "16"},
                             Words{"step", "--seq", "16", "--passes", "2"} + kNano,
                             Words{"decode", "--seq", "2"} + kNano,
                             Words{"prefill", "--seq", "16"} + kNano};

}  // namespace

TEST(Benchmarks, ShowATableOrOneObjectALine) {
  for (const Words& words : kBenchmarks) {
    SCOPED_TRACE(words[0]);
    Ran table = bench(words);
    EXPECT_EQ(table.status, 0) << table.err;
    EXPECT_EQ(table.err, "");
    EXPECT_TRUE(has(table.out, "cpu-") && has(table.out, "1 thread\n") && has(table.out, "-----")) << table.out;

    Ran json = bench(words + Words{"--json"});
    EXPECT_EQ(json.status, 0) << json.err;
    EXPECT_NE(json.out, "");
    for (const std::string& line : lines_of(json.out))
      EXPECT_EQ(parse_json(line, "bench").get_string("bench", "bench"), words[0]);
  }
}

TEST(Benchmarks, DecodingTakesEveryModeAndFormat) {
  for (const char* mode : {"standard", "soft", "fused", "sequential"})
    EXPECT_EQ(bench(Words{"decode", "--seq", "3", "--batch", "2", "--mode", mode, "--weights", "bf16"} + kNano).status,
              0)
        << mode;
}

TEST(Benchmarks, HelpSaysWhatSeqIsForEach) {
  std::string help = run("bench", {"--help"}).out;
  for (const char* part : {"peak|matmul|attention|step|decode|prefill", "attention: T (0: several)", "decode: the",
                           "prefill: in the prompt"})
    EXPECT_TRUE(has(help, part)) << part << "\n" << help;
}

TEST(Benchmarks, EveryMistakeIsOneLineAndNothingIsBegun) {
  const std::pair<Words, const char*> mistakes[] = {
      {{}, "name a benchmark first: peak, matmul"},
      {{"speed"}, "there is no benchmark `speed`; there are peak"},
      {{"peak", "--model", "foo"}, "no such preset"},
      {{"matmul", "--model", "foo"}, "no such preset"},
      {{"matmul", "--shape", "8x16"}, "--shape 8x16: give rows x inputs x outputs"},
      {{"matmul", "--shape", "1048576x1048576x1048576"}, "of memory and"},
      {{"step", "--passes", "0"}, "--passes: 0 is too small; it should be at least 1"},
      {{"step", "--passes", "paper"}, "--passes: `paper` is not a whole number"},
      {{"step", "--prefix-mixin", "off"}, "--prefix-mixin: --passes 1 has no later pass; leave it out"},
      {{"step", "--mode", "soft", "--weights", "bf16"},
       "--weights, --mode: step has no use for such a flag; leave them"},
      {{"peak", "--shape", "8x8x8", "--model", "nano", "--batch", "3", "--seq", "5"},
       "--shape, --seq, --model, --batch: peak has no use"},
      {{"matmul", "--model", "nano"}, "--model: matmul has no use"},
      {{"attention", "--shape", "8x8x8", "--passes", "3"}, "--shape, --passes: attention has no use"},
      {{"decode", "--passes", "3", "--recompute", "block"}, "--passes, --recompute: decode has no use"},
      {{"prefill", "--batch", "4", "--mode", "fused"}, "--batch, --mode: prefill has no use"},
      {{"step", "--batch", "65536", "--seq", "65536", "--vocab", "2", "--model", "nano"}, "is 4294967296 rows"},
      {{"step", "--batch", "65536", "--seq", "1024", "--model", "d48"}, "of memory and"},
      {{"decode", "--seq", "1"}, "--seq 1: to decode"},
      {{"decode", "--batch", "65536", "--seq", "65536", "--model", "nano"}, "is 4294967296 rows"},
      {{"decode", "--batch", "65536", "--seq", "1024", "--model", "d48"}, "of memory and"},
      {{"prefill", "--seq", "1048576", "--model", "d48"}, "of memory and"},
      {{"decode", "--mode", "hard"}, "not one of"},
      {{"decode", "--batch", "65537"}, "too large"},
  };
  for (const auto& [words, part] : mistakes) {
    Ran ran = run("bench", words);
    expect_refused(ran, "bench", part);
    EXPECT_EQ(ran.out, "") << part;
  }
}
