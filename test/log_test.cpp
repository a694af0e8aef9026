// Logs: the forms of numbers, the bar on a terminal and in a pipe, tables, JSON lines.
#include "log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "files.h"
#include "scratch.h"
#include "terminal_of_tests.h"
#include "trainer.h"

namespace {

std::string in_pipe(double plain_seconds, void (*use)(Progress&)) {
  Scratch folder;
  FILE* out = fopen((folder / "out").c_str(), "w");
  {
    Progress progress(out, plain_seconds);
    use(progress);
  }
  fclose(out);
  return contents(folder / "out");
}

TEST(Forms, OfBytes) {
  EXPECT_EQ(show_bytes(0), "0 B");
  EXPECT_EQ(show_bytes(1023), "1023 B");
  EXPECT_EQ(show_bytes(1024), "1.0 KiB");
  EXPECT_EQ(show_bytes(1.5 * 1048576), "1.5 MiB");
  EXPECT_EQ(show_bytes(1048575), "1.0 MiB");
  EXPECT_EQ(show_bytes(3e12), "2.7 TiB");
  EXPECT_EQ(show_bytes(1e30), "888178419700125.2 PiB");
}

TEST(Forms, OfCounts) {
  EXPECT_EQ(show_count(0), "0");
  EXPECT_EQ(show_count(950), "950");
  EXPECT_EQ(show_count(1.25), "1.2");
  EXPECT_EQ(show_count(12345), "12.3 k");
  EXPECT_EQ(show_count(999999), "1.0 M");
  EXPECT_EQ(show_count(999.7), "1.0 k");
  EXPECT_EQ(show_count(4e6), "4.0 M");
  EXPECT_EQ(show_count(1.5e9), "1.5 G");
  EXPECT_EQ(show_count(-12345), "-12.3 k");
}

TEST(Forms, OfDurations) {
  EXPECT_EQ(show_duration(0), "0.0 s");
  EXPECT_EQ(show_duration(4.21), "4.2 s");
  EXPECT_EQ(show_duration(9.99), "10 s");
  EXPECT_EQ(show_duration(42), "42 s");
  EXPECT_EQ(show_duration(59.7), "1 min 00 s");
  EXPECT_EQ(show_duration(185), "3 min 05 s");
  EXPECT_EQ(show_duration(7620), "2 h 07 min");
  EXPECT_EQ(show_duration(3599.9), "1 h 00 min");
  EXPECT_EQ(show_duration(76 * 3600), "3 d 04 h");
  EXPECT_EQ(show_duration(24 * 3600 - 1), "1 d 00 h");
  for (double bad : {-1.0, double(NAN), double(INFINITY), 1e300}) EXPECT_EQ(show_duration(bad), "?");
}

TEST(Forms, ColumnsCountCharactersNotBytes) {
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("é…"), 2u);
  EXPECT_EQ(columns_of("e\xCC\x81"), 1u);  // an accent of its own
  EXPECT_EQ(columns_of("漢字"), 4u);
  EXPECT_EQ(columns_of("😀"), 2u);
  EXPECT_EQ(columns_of("\xFF\xC3"), 2u);  // not UTF-8
}

TEST(Page, IsAsWideAsColumnsSaysWhereThereIsNoTerminal) {
  if (isatty(1)) GTEST_SKIP() << "standard output is a terminal";
  const char* before = getenv("COLUMNS");
  std::string kept = before ? before : "";
  for (auto [said, width] : std::vector<std::pair<const char*, size_t>>{{"60", 60},
                                                                        {"100", 100},
                                                                        {"7", 40},
                                                                        {"1000", 120},
                                                                        {"", 80},
                                                                        {"wide", 80},
                                                                        {"-3", 80},
                                                                        {"0", 80},
                                                                        {"9x", 80}}) {
    setenv("COLUMNS", said, 1);
    EXPECT_EQ(page_width(), width) << said;
  }
  setenv("COLUMNS", "40", 1);
  EXPECT_EQ(wrapped({"parts stay together", "where they", "fit"}, 9), "parts stay together where they\n         fit\n");
  EXPECT_EQ(wrapped({"a part that is longer than a line, at its spaces"}, 9),
            "a part that is longer than a\n         line, at its spaces\n");
  EXPECT_EQ(wrapped({}, 9), "\n");
  before ? setenv("COLUMNS", kept.c_str(), 1) : unsetenv("COLUMNS");
}

TEST(Progress, OnATerminalIsOneLineRedrawn) {
  Terminal terminal(80);
  Progress progress(terminal.out);
  progress.update(0.425, "step 3");
  EXPECT_EQ(terminal.seen(), "\r[###>    ]  42 %  step 3\x1b[K");
  usleep(110000);
  progress.update(1, "step 4");
  EXPECT_EQ(terminal.seen(), "\r[########] 100 %  step 4\x1b[K");
  progress.finish();
  EXPECT_EQ(terminal.seen(), "\n");
  progress.finish();
  EXPECT_EQ(terminal.seen(), "");
}

TEST(Progress, ShowsTheLastStateAtItsEnd) {
  Terminal terminal(80);
  Progress progress(terminal.out);
  progress.update(0, "first");
  progress.update(1, "last");
  progress.finish();
  std::string seen = terminal.seen();
  EXPECT_TRUE(has(seen, "100 %  last\x1b[K\n")) << seen;
}

TEST(Progress, IsDrawnAtMostTenTimesASecond) {
  Terminal terminal(80);
  Progress progress(terminal.out);
  double start = seconds_now();
  for (int i = 0; i < 5000; ++i) progress.update(i / 5000.0, "s");
  std::string seen = terminal.seen();
  EXPECT_LE(std::count(seen.begin(), seen.end(), '\r'), 1 + int((seconds_now() - start) / 0.1));
}

TEST(Progress, IsCutToTheTerminalsWidthAtEachDraw) {
  Terminal terminal(40);
  Progress progress(terminal.out);
  auto drawn = [&](double fraction, const std::string& status) {
    usleep(110000);
    progress.update(fraction, status);
    std::string seen = terminal.seen();
    EXPECT_EQ(seen.substr(seen.size() - 3), "\x1b[K");
    return seen.substr(1, seen.size() - 4);
  };
  terminal.resize(40);
  std::string line = drawn(0.5, std::string(100, 'x'));
  EXPECT_EQ(columns_of(line), 39u) << line;
  EXPECT_EQ(line.substr(line.size() - 3), "…");
  terminal.resize(20);
  EXPECT_EQ(drawn(0.5, "éééééééééééééééééééé"), " 50 %  ééééééééééé…");
  terminal.resize(2);
  EXPECT_EQ(columns_of(drawn(0.5, "漢字")), 1u);
  terminal.resize(1);
  EXPECT_EQ(drawn(0.5, "x"), "");
}

TEST(Progress, LosesItsBarAndThenTheLastPartsOfItsStatusWhereTheyDoNotFit) {
  Terminal terminal(80);
  Progress progress(terminal.out);
  const StepNumbers step = {26936, 40000, "2 min 10 s", {0.748, 0.634, 0.624}, 38100, 0.41, 1.44};
  for (auto [columns, line] : std::vector<std::pair<int, std::string>>{
           {108,
            "[#####>     ]  50 %  26936/40000  2 min 10 s left  loss 0.748 0.634 0.624  38.1 k tok/s  MFU 41 %  |g| "
            "1.44"},
           {94, " 50 %  26936/40000  2 min 10 s left  loss 0.748 0.634 0.624  38.1 k tok/s  MFU 41 %  |g| 1.44"},
           {84, " 50 %  26936/40000  2 min 10 s left  loss 0.748 0.634 0.624  38.1 k tok/s  MFU 41 %"},
           {80, " 50 %  26936/40000  2 min 10 s left  loss 0.748 0.634 0.624  38.1 k tok/s"},
           {60, " 50 %  26936/40000  2 min 10 s left  loss 0.748 0.634 0.624"},
           {59, " 50 %  26936/40000  2 min 10 s left  loss 0.748 0.634"},
           {50, " 50 %  26936/40000  2 min 10 s left  loss 0.748"},
           {40, " 50 %  26936/40000  2 min 10 s left"},
           {30, " 50 %  26936/40000"},
           {15, " 50 %  26936/…"}}) {
    terminal.resize((unsigned short)columns);
    usleep(110000);
    progress.update(0.5, show_step(step));
    EXPECT_EQ(terminal.seen(), "\r" + line + "\x1b[K") << columns;
  }
}

TEST(Progress, AStatusCannotMoveTheCursor) {
  Terminal terminal(80);
  Progress progress(terminal.out);
  progress.update(0, "a\nb\x1b[2Jc\td");
  EXPECT_TRUE(has(terminal.seen(), "a b [2Jc d\x1b[K"));
}

TEST(Progress, FractionsOutsideTheirRangeAreHarmless) {
  Terminal terminal(80);
  for (double fraction : {2.0, double(NAN), double(INFINITY)}) {
    Progress progress(terminal.out);
    progress.update(fraction, "");
    EXPECT_TRUE(has(terminal.seen(), fraction > 1 ? "100 %" : "  0 %"));
  }
}

TEST(Progress, WithoutAKnownEndNoPartIsShown) {
  for (double fraction : {-1.0, -double(INFINITY)}) {
    Terminal terminal(80);
    Progress progress(terminal.out);
    progress.update(fraction, "3 documents");
    std::string seen = terminal.seen();
    EXPECT_TRUE(has(seen, "3 documents")) << seen;
    EXPECT_FALSE(has(seen, "%") || has(seen, "[>")) << seen;
  }
}

TEST(Progress, PrintsWholeLinesAboveTheBar) {
  Terminal terminal(80);
  Progress progress(terminal.out);
  progress.print("before");
  EXPECT_EQ(terminal.seen(), "before\n");
  progress.update(0, "s");
  terminal.seen();
  progress.print("one\ntwo\n");
  EXPECT_EQ(terminal.seen(), "\r\x1b[Kone\ntwo\n\r[>       ]   0 %  s\x1b[K");
}

TEST(Progress, AnErasedBarLeavesNothing) {
  Terminal terminal(80);
  Progress progress(terminal.out);
  progress.update(0.5, "half");
  progress.erase();
  std::string shown = terminal.seen();
  EXPECT_TRUE(shown.ends_with("\r\x1b[K")) << shown;
  EXPECT_EQ(in_pipe(1000, [](Progress& p) { p.update(1, "done"), p.erase(); }), "");
}

TEST(Progress, AnAbandonedBarEndsItsLine) {
  Terminal terminal(80);
  {
    Progress progress(terminal.out);
    progress.update(0, "s");
    terminal.seen();
  }
  EXPECT_EQ(terminal.seen(), "\n");
}

TEST(Progress, InAPipeIsPlainLinesNowAndThenAndAtTheEnd) {
  EXPECT_EQ(in_pipe(10,
                    [](Progress& p) {
                      for (int i = 0; i <= 100; ++i) p.update(i / 100.0, "step " + std::to_string(i));
                      p.print("a line");
                      p.finish();
                      p.finish();
                    }),
            "a line\n100 %  step 100\n");
  EXPECT_EQ(in_pipe(0,
                    [](Progress& p) {
                      p.update(0.25, "a");
                      p.update(0.5, "b");
                      p.finish();
                    }),
            " 25 %  a\n 50 %  b\n");
  EXPECT_EQ(in_pipe(10, [](Progress& p) { p.finish(); }), "");
}

TEST(Table, ColumnsArePaddedAndTheHeadRuled) {
  EXPECT_EQ(show_table({{"task", "loss"}, {"sums", "1.5"}, {"fé", "10.25"}}),
            "task   loss\n-----------\nsums    1.5\nfé    10.25\n");
  EXPECT_EQ(show_table({{"a"}, {"b", "c"}, {}}), "a\n----\nb  c\n\n");
  EXPECT_EQ(show_table({}), "");
}

TEST(JsonLog, AppendsWholeLines) {
  Scratch folder;
  {
    JsonLog log(folder / "log.jsonl");
    log.write(Json::object({{"step", 1}, {"text", "a\nb"}}));
    EXPECT_EQ(contents(folder / "log.jsonl"), "{\"step\": 1, \"text\": \"a\\nb\"}\n");
  }
  JsonLog(folder / "log.jsonl").write(Json::object({{"step", 2}}));
  EXPECT_EQ(contents(folder / "log.jsonl"), "{\"step\": 1, \"text\": \"a\\nb\"}\n{\"step\": 2}\n");
}

TEST(JsonLog, ATornLastLineSpoilsNoOther) {
  Scratch folder;
  put(folder / "log", "{\"step\": 1}\n{\"st");
  JsonLog(folder / "log").write(Json::object({{"step", 2}}));
  EXPECT_EQ(contents(folder / "log"), "{\"step\": 1}\n{\"st\n{\"step\": 2}\n");
}

TEST(JsonLog, AFullDiskIsNamed) {
  JsonLog log("/dev/full");
  EXPECT_EQ(message_of([&] { log.write(Json::object()); }), "cannot write /dev/full: No space left on device");
  Scratch folder;
  JsonLog cut(folder / "log");
  cut.write(Json::object({{"step", 1}}));
  FullDisk disk(20);
  EXPECT_TRUE(has(message_of([&] {
                    cut.write(Json::object({{"step", 2}, {"text", std::string(50, 'x')}}));
                  }),
                  folder / "log"));
  EXPECT_EQ(contents(folder / "log").substr(0, 12), "{\"step\": 1}\n");
}

TEST(JsonLog, APathThatIsNoFileIsNamed) {
  Scratch folder;
  EXPECT_TRUE(has(message_of([&] { JsonLog log(folder.path); }), "cannot write " + folder.path));
  EXPECT_TRUE(has(message_of([&] { JsonLog log(folder / "no/log"); }), "No such file or directory"));
}

TEST(CutLog, KeepsTheLinesUpToAStep) {
  Scratch folder;
  std::string head = "{\"run\": \"a\"}\n{\"step\": 1}\n{\"note\": 0}\n{\"step\": 2, \"x\": [1]}\n";
  put(folder / "log", head + "{\"step\": 3}\n{\"note\": 1}\n{\"step\": 4}\n{\"ste");
  cut_log(folder / "log", 2);
  EXPECT_EQ(contents(folder / "log"), head);
  cut_log(folder / "log", 0);
  EXPECT_EQ(contents(folder / "log"), "{\"run\": \"a\"}\n");
  EXPECT_EQ(list_folder(folder.path).size(), 1u);
}

TEST(CutLog, DropsATornLastLineAndPutsOtherDamagedOnesAside) {
  Scratch folder;
  put(folder / "log", "{\"step\": 1}\nnot json\n\n{\"step\": 2}\n{\"step\": 2, \"x");
  EXPECT_EQ(cut_log(folder / "log", 9).lines, 1);
  EXPECT_EQ(contents(folder / "log"), "{\"step\": 1}\n{\"step\": 2}\n");
  EXPECT_EQ(contents(folder / "log.damaged"), "not json\n");
  put(folder / "log", "{\"step\": 1}\n{\"step\n");
  EXPECT_EQ(cut_log(folder / "log", 9).lines, 1) << "the last, but whole";
  EXPECT_EQ(contents(folder / "log.damaged"), "not json\n{\"step\n") << "what was aside stays";
  put(folder / "log", "{\"step\": 1}");  // whole but for its newline
  cut_log(folder / "log", 9);
  EXPECT_EQ(contents(folder / "log"), "{\"step\": 1}\n");
  put(folder / "log", std::string("{\"step\": 1}\n\0\0\0\0", 16));  // as after a loss of power
  cut_log(folder / "log", 9);
  EXPECT_EQ(contents(folder / "log"), "{\"step\": 1}\n");
}

TEST(CutLog, SaysWhichStepsHaveNoLine) {
  Scratch folder;
  auto missing = [&](const std::vector<int>& steps, int last, int first = 1) {
    std::string log = "{\"step\": 5, \"val_loss\": [1]}\n";
    for (int step : steps) log += text("{\"step\": %d, \"loss\": 1}\n", step);
    put(folder / "log", log);
    return cut_log(folder / "log", last, first).missing;
  };
  EXPECT_EQ(missing({1, 2, 3, 4, 5, 6}, 6), "");
  EXPECT_EQ(missing({1, 2, 3, 4, 5, 6}, 5), "") << "later steps are cut off";
  EXPECT_EQ(missing({1, 2, 3, 5, 6, 9}, 9), "step 4, steps 7 to 8") << "an evaluation is no step";
  EXPECT_EQ(missing({3}, 6), "steps 1 to 2, steps 4 to 6");
  EXPECT_EQ(missing({}, 6), "steps 1 to 6");
  EXPECT_EQ(missing({5, 6}, 6, 5), "");
  EXPECT_EQ(missing({}, -1, 1), "");
  EXPECT_EQ(cut_log(folder / "none", 3).missing, "steps 1 to 3");
}

TEST(CutLog, DoesNothingWithoutAFile) {
  Scratch folder;
  cut_log(folder / "no", 3);
  EXPECT_TRUE(list_folder(folder.path).empty());
}

TEST(CutLog, AFullDiskLosesNothing) {
  Scratch folder;
  std::string log;
  for (int i = 0; i < 2000; ++i) log += "{\"step\": " + std::to_string(i) + "}\n";
  put(folder / "log", log);
  FullDisk disk(4096);
  EXPECT_NE(message_of([&] { cut_log(folder / "log", 1500); }), "");
  EXPECT_EQ(contents(folder / "log"), log);
  EXPECT_EQ(list_folder(folder.path).size(), 1u);
}

TEST(Clock, OnlyGoesForward) {
  double before = seconds_now();
  usleep(2000);
  EXPECT_GE(seconds_now() - before, 0.002);
}

}  // namespace
