// What a run shows: a progress bar on a terminal, plain lines in a pipe, JSON lines in a file; and the forms of
// numbers.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "json.h"

double seconds_now();                                         // monotonic
std::string time_of_day();                                    // "2026-01-31T23:59:59Z"
std::string show_bytes(double bytes);                         // "1.5 MiB"
std::string show_count(double n);                             // "950", "12.3 k", "4.0 M", "1.5 G"
std::string show_count(double n, const std::string& things);  // "1 file", "12.3 k files"
// "4.2 s", "42 s", "3 min 05 s", "2 h 07 min", "3 d 04 h"; "?" where unknown
std::string show_duration(double seconds);
size_t columns_of(const std::string& text);  // how many columns of a terminal UTF-8 text takes

// Columns that text is laid out for: as many as the terminal has that it is written to, from 40 to 120; without one as
// the environment's COLUMNS says, else 80.
size_t page_width(FILE* out = stdout);
// Parts with spaces between them in lines that fit the page, `indent` columns from its left edge, where the first line
// begins already. A part that is longer than a line is divided at its spaces.
std::string wrapped(const std::vector<std::string>& parts, size_t indent, FILE* out = stdout);
// "name     part, part", as a plan has it.
std::string named_line(const std::string& name, std::vector<std::string> parts);

// The bar is one line redrawn at most ten times a second, which fits the terminal as wide as it is then: the bar itself
// goes first, and then the last parts of the status. Without a terminal, a line appears every `plain_seconds` seconds
// and at the end. print() writes whole lines above the bar. Without finish(), the destructor ends the bar's line, so
// that an error's message starts on a line of its own.
class Progress {
 public:
  explicit Progress(FILE* out, double plain_seconds = 10);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(double fraction, const std::string& status);  // fraction done, in [0, 1]; below 0: unknown
  // Parts in the order of their weight, each with the space before it.
  void update(double fraction, const std::vector<std::string>& parts);
  void print(const std::string& lines);  // also when no bar is shown
  void finish();                         // leaves the last state on the screen, ends its line
  void erase();                          // takes the bar off the screen

 private:
  void draw(double now);
  FILE* out_;
  bool terminal_;
  double plain_seconds_, last_drawn_, fraction_ = 0;
  std::vector<std::string> status_;
  bool bar_on_screen_ = false, undrawn_ = false;
};

// A text table: columns padded to their widest cell (UTF-8 aware), the first left-aligned, the others right; a rule
// under the head.
std::string show_table(const std::vector<std::vector<std::string>>& rows);

// JSON lines, appended; each is on its way to the disk before write() returns (O_APPEND, no buffering). A torn last
// line that a kill left is ended first, so that it spoils no other.
class JsonLog {
 public:
  explicit JsonLog(const std::string& path);
  ~JsonLog();
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;
  void write(const Json& object);

 private:
  std::string path_;
  int fd_ = -1;
};

// What a log has lost: lines of steps (in words: "step 4, steps 6 to 10"), and lines that are no JSON.
struct LogDamage {
  std::string missing;
  int lines = 0;
};
// Cuts a log back to the lines whose "step" is at most `last_step`, dropping a torn last line and empty ones; does nothing
// where there is no file. A line without a step goes with the line before it. Lines that are no JSON go to the end of
// PATH.damaged, so that what is left is JSON lines. From `first_step` on each step should have a line.
LogDamage cut_log(const std::string& path, int64_t last_step, int64_t first_step = 1);
