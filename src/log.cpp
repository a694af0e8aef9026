// Progress for people, JSON lines for programs.
#include "log.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>

#include "error.h"
#include "files.h"

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string time_of_day() {
  std::time_t now = std::time(nullptr);
  std::tm utc;
  char shown[32];
  std::strftime(shown, sizeof shown, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  return shown;
}

std::string show_bytes(double bytes) {
  const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (!(std::fabs(bytes) >= 1024)) return text("%.0f B", bytes);
  int unit = 0;
  bytes /= 1024;
  for (; std::fabs(bytes) >= 1023.95 && unit < 4; ++unit) bytes /= 1024;  // 1023.95 would be shown as 1024.0
  return text("%.1f %s", bytes, units[unit]);
}

std::string show_count(double n) {
  const char* units[] = {"k", "M", "G", "T", "P"};
  double size = std::fabs(n);
  if (!(size >= 999.5)) return text(size < 100 && n != std::floor(n) ? "%.1f" : "%.0f", n);
  int unit = 0;
  n /= 1000;
  for (; std::fabs(n) >= 999.95 && unit < 4; ++unit) n /= 1000;
  return text("%.1f %s", n, units[unit]);
}

std::string show_count(double n, const std::string& things) {
  return show_count(n) + " " + things + (n == 1 ? "" : "s");
}

std::string show_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e12)) return "?";
  if (seconds < 9.95) return text("%.1f s", seconds);
  long long whole = std::llround(seconds);
  if (whole < 60) return text("%lld s", whole);
  if (whole < 3600) return text("%lld min %02lld s", whole / 60, whole % 60);
  long long minutes = std::llround(seconds / 60), hours = std::llround(seconds / 3600);
  if (minutes < 24 * 60) return text("%lld h %02lld min", minutes / 60, minutes % 60);
  return text("%lld d %02lld h", hours / 24, hours % 24);
}

// The code point at `at`, which moves past it; a byte that is not UTF-8 stands for itself.
static uint32_t next_code(const std::string& s, size_t* at) {
  unsigned char lead = s[(*at)++];
  int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  uint32_t code = more ? lead & (0x3F >> more) : lead;
  for (; more > 0 && *at < s.size() && (s[*at] & 0xC0) == 0x80; --more) code = code << 6 | (s[(*at)++] & 0x3F);
  return code;
}

// Accents that join the letter before them take no column; the scripts of East Asia and pictures take two.
static size_t columns_of_code(uint32_t code) {
  constexpr uint32_t kNone[][2] = {{0x0300, 0x036F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}};
  constexpr uint32_t kTwo[][2] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                  {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                  {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  for (auto [first, last] : kNone)
    if (code >= first && code <= last) return 0;
  for (auto [first, last] : kTwo)
    if (code >= first && code <= last) return 2;
  return 1;
}

size_t columns_of(const std::string& text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) columns += columns_of_code(next_code(text, &at));
  return columns;
}

// As much of a line as fits, with an ellipsis where something is cut. Control characters would move the cursor.
static std::string cut_to(std::string line, size_t most) {
  for (char& c : line)
    if ((unsigned char)c < 0x20 || c == 0x7F) c = ' ';
  if (columns_of(line) <= most) return line;
  size_t columns = 0, end = 0;
  while (true) {
    size_t next = end;
    columns += columns_of_code(next_code(line, &next));
    if (columns + 1 > most) break;
    end = next;
  }
  return line.substr(0, end) + (most > 0 ? "…" : "");
}

// 0 where `out` is no terminal that knows.
static size_t terminal_columns(FILE* out) {
  winsize size = {};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// As the environment says; 0 where it says nothing, or no number of columns.
static size_t columns_said() {
  const char* said = std::getenv("COLUMNS");
  const char* end = said ? said + std::strlen(said) : nullptr;
  size_t columns = 0;
  auto [read, error] = std::from_chars(said, end, columns);
  return said && read == end && error == std::errc() ? columns : 0;
}

constexpr size_t kUsualColumns = 80;

size_t page_width(FILE* out) {
  constexpr size_t kLeast = 40, kMost = 120;
  size_t columns = terminal_columns(out);
  if (columns == 0) columns = columns_said();
  return columns == 0 ? kUsualColumns : std::clamp(columns, kLeast, kMost);
}

std::string wrapped(const std::vector<std::string>& parts, size_t indent, FILE* out) {
  size_t room = page_width(out) - std::min(page_width(out) / 2, indent);
  std::string result, line;
  auto add = [&](const std::string& word) {
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > room) {
      result += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  };
  for (const std::string& part : parts) {
    if (columns_of(part) <= room) {
      add(part);
      continue;
    }
    for (size_t start = 0, end; start < part.size(); start = end + 1) {
      end = std::min(part.find(' ', start), part.size());
      add(part.substr(start, end - start));
    }
  }
  return result + line + "\n";
}

std::string named_line(const std::string& name, std::vector<std::string> parts) {
  constexpr size_t kIndent = 9;
  for (size_t i = 0; i + 1 < parts.size(); ++i) parts[i] += ",";
  return text("%-*s", int(kIndent), name.c_str()) + wrapped(parts, kIndent);
}

static bool is_terminal(FILE* out) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(out)) && !(term && std::strcmp(term, "dumb") == 0);
}

static std::string percent_text(double fraction) { return fraction < 0 ? "" : text("%3d %%  ", int(fraction * 100)); }

static std::string bar_text(double fraction, size_t columns) {
  constexpr size_t kLongest = 30, kShortest = 8;
  std::string percent = percent_text(fraction);
  if (fraction < 0 || columns < 4 * kShortest) return percent;
  size_t length = std::clamp(columns / 9, kShortest, kLongest);  // the status says more
  size_t full = size_t(fraction * double(length));
  std::string bar = std::string(full, '#') + (full < length ? ">" : "");
  return "[" + bar + std::string(length - bar.size(), ' ') + "] " + percent;
}

static std::string joined(const std::vector<std::string>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::string());
}

// Where all does not fit, the bar goes first, and then the status's last parts, one by one.
static std::string fitted(double fraction, std::vector<std::string> status, size_t columns) {
  std::string line = bar_text(fraction, columns) + joined(status), percent = percent_text(fraction);
  if (columns_of(line) <= columns) return cut_to(line, columns);
  while (status.size() > 1 && columns_of(percent + joined(status)) > columns) status.pop_back();
  return cut_to(percent + joined(status), columns);
}

// Without a terminal the wait for the first line starts here; on one, the first update is drawn at once.
Progress::Progress(FILE* out, double plain_seconds)
    : out_(out),
      terminal_(is_terminal(out)),
      plain_seconds_(plain_seconds),
      last_drawn_(terminal_ ? -1 : seconds_now()) {}

Progress::~Progress() {
  if (!bar_on_screen_) return;
  std::fputc('\n', out_);
  std::fflush(out_);
}

void Progress::update(double fraction, const std::string& status) { update(fraction, std::vector{status}); }

void Progress::update(double fraction, const std::vector<std::string>& status) {
  constexpr double kShortestWait = 0.1;
  fraction_ = fraction < 0 ? -1 : fraction >= 0 ? std::min(fraction, 1.0) : 0;  // NaN: nothing is known to be done
  status_ = status;
  undrawn_ = true;
  double now = seconds_now();
  if (last_drawn_ < 0 || now - last_drawn_ >= (terminal_ ? kShortestWait : plain_seconds_)) draw(now);
}

void Progress::draw(double now) {
  if (terminal_) {
    size_t known = terminal_columns(out_),
           columns = (known ? known : kUsualColumns) - 1;  // in the last column some terminals wrap
    std::fprintf(out_, "\r%s\x1b[K", fitted(fraction_, status_, columns).c_str());
    bar_on_screen_ = true;
  } else {
    std::fprintf(out_, "%s%s\n", percent_text(fraction_).c_str(), cut_to(joined(status_), SIZE_MAX).c_str());
  }
  std::fflush(out_);
  last_drawn_ = now;
  undrawn_ = false;
}

void Progress::print(const std::string& lines) {
  if (bar_on_screen_) std::fputs("\r\x1b[K", out_);
  std::fwrite(lines.data(), 1, lines.size(), out_);
  if (lines.empty() || lines.back() != '\n') std::fputc('\n', out_);
  if (bar_on_screen_) draw(seconds_now());
  std::fflush(out_);
}

void Progress::finish() {
  if (undrawn_) draw(seconds_now());
  if (bar_on_screen_) std::fputc('\n', out_);
  std::fflush(out_);
  bar_on_screen_ = false;
}

void Progress::erase() {
  if (bar_on_screen_) std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  bar_on_screen_ = undrawn_ = false;
}

std::string show_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string result;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      std::string padding(widths[i] - columns_of(rows[r][i]), ' ');
      line += i == 0 ? rows[r][i] + padding : "  " + padding + rows[r][i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
    if (r > 0) continue;
    size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
    for (size_t width : widths) total += width;
    result += std::string(total, '-') + "\n";
  }
  return result;
}

[[noreturn]] static void fail_to(const char* what, const std::string& path) {
  fail("cannot %s %s: %s", what, path.c_str(), std::strerror(errno));
}

static void write_all(int fd, const std::string& bytes, const std::string& path) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);  // all of it, unless the disk is full
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to("write", path);
    done += size_t(written);
  }
}

JsonLog::JsonLog(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_to("write", path);
  char last = '\n';
  off_t size = lseek(fd_, 0, SEEK_END);
  bool torn = size > 0 && pread(fd_, &last, 1, size - 1) == 1 && last != '\n';
  try {
    if (torn) write_all(fd_, "\n", path_);
  } catch (...) {
    close(fd_);
    throw;
  }
}

JsonLog::~JsonLog() { close(fd_); }

void JsonLog::write(const Json& object) { write_all(fd_, write_json(object) + "\n", path_); }

namespace {

enum class Line { empty, torn, without_step, with_step, of_a_step };

Line read_log_line(const std::string& line, double* step) {
  if (line.find_first_not_of(" \t\r") == line.npos) return Line::empty;
  try {
    Json json = parse_json(line, "log");
    const Json* member = json.find("step");
    if (!member || member->kind != Json::Kind::number) return Line::without_step;
    *step = member->number;
    bool whole = *step == std::floor(*step);
    return json.find("val_loss") || !whole ? Line::with_step : Line::of_a_step;
  } catch (const Error&) {
    return Line::torn;
  }
}

// Steps that should follow one another, and those left out between them.
class StepsInOrder {
 public:
  explicit StepsInOrder(int64_t first) : next_(double(first)) {}
  void add(double step) {
    if (step > next_) left_out(next_, step - 1);
    next_ = std::max(next_, step + 1);
  }
  std::string missing_to(int64_t last) {
    add(double(last) + 1);
    return missing_;
  }

 private:
  void left_out(double from, double to) {
    missing_ += (missing_.empty() ? "" : ", ") + text(from == to ? "step %.0f" : "steps %.0f to %.0f", from, to);
  }
  double next_;
  std::string missing_;
};

}  // namespace

LogDamage cut_log(const std::string& path, int64_t last_step, int64_t first_step) {
  LogDamage found;
  StepsInOrder steps(first_step);
  std::string log = file_exists(path) ? read_file(path) : "", kept, damaged;
  bool keep = true;
  for (size_t start = 0; start < log.size();) {
    size_t end = std::min(log.find('\n', start), log.size());
    std::string line = log.substr(start, end - start);
    start = end + 1;
    double step = 0;
    Line kind = read_log_line(line, &step);
    if (kind >= Line::with_step) keep = step <= double(last_step);
    bool torn_by_a_kill = kind == Line::torn && end == log.size();
    if (kind == Line::empty || torn_by_a_kill || !keep) continue;
    (kind == Line::torn ? damaged : kept) += line + "\n";
    found.lines += kind == Line::torn;
    if (kind == Line::of_a_step) steps.add(step);
  }
  std::string aside = path + ".damaged";
  if (!damaged.empty()) write_file(aside, (file_exists(aside) ? read_file(aside) : "") + damaged);
  if (kept != log) write_file(path, kept);
  found.missing = steps.missing_to(last_step);
  return found;
}
