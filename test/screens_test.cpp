// Screens: what the programs show on terminals of 60, 80 and 120 columns, as the files of test/screens/ have it, and how
// wide a screen is taken to be. FULLBAND_REWRITE_SCREENS=1 writes the files anew: read what changed before it is kept.
#include <unistd.h>

#include <regex>

#include "evaluate.h"
#include "log.h"
#include "program.h"
#include "terminal_of_tests.h"
#include "trainer.h"

namespace {

constexpr unsigned short kWidths[] = {60, 80, 120};

// Terminals end lines with \r\n; what was drawn over is not there any more.
std::string on_screen(const std::string& shown) {
  std::string screen;
  for (std::string line : lines_of(shown)) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    line = line.substr(line.rfind('\r') + 1);  // npos + 1 = 0
    screen += std::regex_replace(line, std::regex("\x1b\\[K"), "") + "\n";
  }
  return screen;
}

// The screen as its file has it; every line fits, but for the command that a run ends with, which is copied.
void expect_screen(const std::string& name, unsigned short columns, const std::string& screen) {
  std::string path = "test/screens/" + name + "." + std::to_string(columns) + ".txt";
  for (const std::string& line : lines_of(screen))
    EXPECT_TRUE(columns_of(line) <= columns || line.starts_with("talk ")) << path << ": " << line;
  if (std::getenv("FULLBAND_REWRITE_SCREENS")) {
    make_folder("test/screens");
    put(path, screen);
  }
  EXPECT_EQ(screen, file_exists(path) ? contents(path) : "") << path << " (FULLBAND_REWRITE_SCREENS=1 writes it anew)";
}

std::string shown_by(const Words& words, unsigned short columns) {
  Setting setting;
  setting.terminal = true, setting.columns = columns;
  Ran ran = Running(words, setting).wait();
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  return on_screen(ran.out);
}

std::string masked(const std::string& screen, const std::string& pattern, const std::string& mask) {
  return std::regex_replace(screen, std::regex(pattern), mask);
}

TEST(Screens, OfHelpFitTheTerminal) {
  const Words kPrograms[] = {{"train"},
                             {"sample"},
                             {"eval"},
                             {"tokenize"},
                             {"tokenize", "train"},
                             {"tokenize", "encode"},
                             {"tokenize", "decode"},
                             {"tokenize", "data"},
                             {"tokenize", "import"},
                             {"tokenize", "inspect"}};
  for (unsigned short columns : kWidths)
    for (Words words : kPrograms) {
      std::string name = words[0] + (words.size() > 1 ? "_" + words[1] : "");
      words[0] = program_path(words[0]);
      expect_screen("help_" + name, columns, shown_by(words + Words{"--help"}, columns));
    }
}

TEST(Screens, OfHelpOfBenchFitTheTerminal) {
  if (!file_exists(program_path("bench"))) GTEST_SKIP() << "make bench builds it";
  for (unsigned short columns : kWidths)
    expect_screen("help_bench", columns, shown_by({program_path("bench"), "--help"}, columns));
}

// What differs between machines, as a word: memory, the device, times and rates.
std::string machine_masked(std::string screen) {
  screen = masked(screen, "(\nmemory   )[^\n]*(\n [^\n]*)*", "$1MEMORY");
  screen = masked(screen, "(\ndisk     )[^\n]*(\n [^\n]*)*", "$1DISK");
  screen = masked(screen, "(\ndevice   )[^\n]*(\n [^\n]*)*", "$1DEVICE");
  screen = masked(screen, "(\ntook     )[^\n]*(\n [^\n]*)*", "$1TIMES");
  return masked(screen, "\n[^\n]*30/30  [^\n]*", "\nSTATUS");
}

TEST(Screens, OfAPlanAndAnEvaluationFitTheTerminal) {
  for (unsigned short columns : kWidths) {
    Bench bench;
    Setting setting;
    setting.folder = bench / "";
    setting.terminal = true, setting.columns = columns;
    Words tiny = bench.tiny("out");
    tiny[1] = "text.txt", tiny.back() = "out";
    Ran ran = Running(Words{program_path("train")} + tiny + Words{"--device", "cpu"}, setting).wait();
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    std::string screen = on_screen(ran.out);
    for (const std::string& line : lines_of(screen))
      EXPECT_TRUE(columns_of(line) <= columns || line.starts_with("talk ")) << line;
    screen = masked(machine_masked(screen), "talk     [^ ]*sample", "talk     ./sample");
    expect_screen("train", columns, screen);

    ran = Running({program_path("eval"), "--model", "out", "--threads", "1", "--device", "cpu"}, setting).wait();
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    expect_screen("eval", columns, on_screen(ran.out));
  }
}

void draw(const Terminal& terminal, double fraction, const StepNumbers& step) {
  Progress progress(terminal.out);
  progress.update(fraction, show_step(step));
  progress.finish();
}

TEST(Screens, OfTheStatusLineFitTheTerminal) {
  for (unsigned short columns : kWidths) {
    Terminal terminal(columns);
    draw(terminal, 0.42, {16800, 40000, "2 h 07 min", {2.3141}, 12345, 0.41, 0.351});
    draw(terminal, 0.42, {16800, 40000, "2 h 07 min", {2.3141, 2.281, 2.2774}, 12345, 0.41, 0.351});
    draw(terminal, 0.999, {999123, 1000000, "59 min 05 s", {10.25, 9.125, 9.0625}, 1.25e6, 0.41, 123.45});
    expect_screen("status", columns, on_screen(terminal.seen()));
  }
}

}  // namespace
