// What tests of programs share: starting them, ending them, and what they said. The programs lie in the folder
// FULLBAND_PROGRAMS, "." where it is not set.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint.h"
#include "files.h"
#include "json.h"
#include "scratch.h"

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline std::string program_path(const std::string& name) {
  const char* folder = std::getenv("FULLBAND_PROGRAMS");
  return std::filesystem::absolute(folder && *folder ? folder : ".").string() + "/" + name;
}

// The same program, in which an emulated GPU is a device.
inline std::string emulated_path(const std::string& name) {
  const char* folder = std::getenv("FULLBAND_EMULATED");
  return std::filesystem::absolute(folder && *folder ? folder : "build/emulated").string() + "/" + name;
}

struct Ran {
  int status = -1;  // exit status; 128 + n where signal n ended it
  std::string out, err;
  double peak_bytes = 0;
};

struct Setting {
  std::string input;                                           // standard input; empty: /dev/null
  std::vector<std::pair<std::string, std::string>> variables;  // of the environment
  std::string folder;                                          // where it runs
  size_t largest_file = 0;                                     // as on a full disk
  bool terminal = false;                                       // output (and input) is a terminal
  unsigned short columns = 90;                                 // of the terminal
  double seconds = 120;                                        // then it is killed, and the test fails
};

// A program that runs. Its output goes to files, or through a terminal.
class Running {
 public:
  Running(const Words& words, const Setting& setting = {}) : setting_(setting) {
    put(folder_ / "in", setting.input);
    int slave = setting.terminal ? open_terminal() : -1;
    start_ = std::chrono::steady_clock::now();
    pid_ = fork();
    if (pid_ == 0) become(words, slave);
    if (slave >= 0) close(slave);
  }
  ~Running() {
    if (!reaped_) kill(SIGKILL), wait();
    if (master_ >= 0) close(master_);
  }
  Running(const Running&) = delete;

  void kill(int signal) const { ::kill(pid_, signal); }
  void type(const std::string& keys) { EXPECT_EQ(write(master_, keys.data(), keys.size()), ssize_t(keys.size())); }
  bool runs() { return !reaped_ && !reap(WNOHANG); }

  // Waits until something holds; false where the program ended before.
  bool until(const std::function<bool()>& holds) {
    while (!holds()) {
      if (!runs() || late()) return holds();
      pause();
    }
    return true;
  }

  Ran wait() {
    while (runs()) {
      if (late()) {
        ADD_FAILURE() << "still running after " << setting_.seconds << " s: killed";
        kill(SIGKILL);
      }
      pause();
    }
    read_terminal();
    ran_.out = setting_.terminal ? shown_ : contents(folder_ / "out");
    ran_.err = contents(folder_ / "err");
    return ran_;
  }

  const std::string& shown() {
    read_terminal();
    return shown_;
  }

 private:
  int open_terminal() {
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    grantpt(master_), unlockpt(master_);
    winsize size = {};
    size.ws_row = 24, size.ws_col = setting_.columns;
    ioctl(master_, TIOCSWINSZ, &size);
    return open(ptsname(master_), O_RDWR | O_NOCTTY);
  }
  [[noreturn]] void become(const Words& words, int slave) {
    int in = slave >= 0 ? slave : open((folder_ / "in").c_str(), O_RDONLY);
    int out = slave >= 0 ? slave : open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int err = open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(in, 0), dup2(out, 1), dup2(err, 2);
    for (int fd = 3; fd < 64; ++fd) close(fd);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
    for (const auto& [name, value] : setting_.variables) setenv(name.c_str(), value.c_str(), 1);
    if (slave >= 0) setenv("TERM", "xterm", 1);
    if (setting_.largest_file > 0) {
      rlimit limit = {setting_.largest_file, setting_.largest_file};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (!setting_.folder.empty() && chdir(setting_.folder.c_str()) != 0) _exit(126);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  bool late() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() > setting_.seconds;
  }
  void pause() {
    read_terminal();
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  bool reap(int options) {
    int status;
    struct rusage usage;
    if (wait4(pid_, &status, options, &usage) != pid_) return false;
    reaped_ = true;
    ran_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ran_.peak_bytes = double(usage.ru_maxrss) * 1024;
    return true;
  }
  void read_terminal() {
    if (master_ < 0) return;
    char piece[4096];
    for (pollfd ready = {master_, POLLIN, 0}; poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN);) {
      ssize_t got = read(master_, piece, sizeof piece);
      if (got <= 0) return;
      shown_.append(piece, size_t(got));
    }
  }

  Scratch folder_;
  Setting setting_;
  std::chrono::steady_clock::time_point start_;
  pid_t pid_ = -1;
  int master_ = -1;
  bool reaped_ = false;
  std::string shown_;
  Ran ran_;
};

inline Ran run(const std::string& program, const Words& words, const Setting& setting = {}) {
  return Running(Words{program_path(program)} + words, setting).wait();
}
inline Ran shell(const std::string& command, const Setting& setting = {}) {
  return Running({"sh", "-c", command}, setting).wait();
}

inline Words lines_of(const std::string& text) {
  Words lines;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

// A user's mistake: status 1, nothing but one line on stderr, which begins with the program's name and has `part`.
inline void expect_refused(const Ran& ran, const std::string& program, const std::string& part) {
  EXPECT_EQ(ran.status, 1) << part << "\n" << ran.out << ran.err;
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << part << "\n" << ran.err;
  EXPECT_EQ(ran.err.rfind(program + ": ", 0), 0u) << ran.err;
  EXPECT_TRUE(has(ran.err, part)) << "wanted: " << part << "\nsaid: " << ran.err;
}

// A text of some sentences, the same each time.
inline std::string some_text(size_t bytes = 6000) {
  const char* words[] = {"the ", "cat ", "sat ", "on ", "a ", "mat, ", "and ", "then ", "it ", "went.\n"};
  std::string text;
  for (uint32_t n = 1; text.size() < bytes; n = n * 1664525 + 1013904223) text += words[(n >> 16) % 10];
  return text;
}

// Lines as on a page so wide that none is divided.
inline std::string unwrapped(std::string page) {
  const std::string indent = "\n         ";
  for (size_t at; (at = page.find(indent)) != page.npos;)
    page.replace(at, page.find_first_not_of(' ', at + 1) - at, " ");
  return page;
}

// A folder with a text, and tiny models trained on it.
struct Bench {
  Scratch folder;
  Bench() { put(text(), some_text()); }
  std::string operator/(const std::string& name) const { return folder / name; }
  std::string text() const { return folder / "text.txt"; }
  Words sizes() const {
    return {"--data", text(),  "--width", "16",      "--heads", "2",         "--layers",
            "1",      "--seq", "32",      "--batch", "2",       "--threads", "1"};
  }
  Words tiny(const std::string& out, int steps = 30) const {
    return sizes() + Words{"--warmup", "5", "--steps", std::to_string(steps), "--out", folder / out};
  }
  // Trains and expects success.
  Ran train(const Words& words, const Setting& setting = {}) const {
    Ran ran = run("train", words, setting);
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_EQ(ran.err, "");
    return ran;
  }
  std::string checkpoint(const std::string& out, int step) const {
    char name[32];
    std::snprintf(name, sizeof name, "/step_%08d", step);
    return folder / out + name;
  }
  std::string model(const std::string& out, int step) const {
    return contents(checkpoint(out, step) + "/model.safetensors");
  }
  std::string optimizer(const std::string& out, int step) const {
    return contents(checkpoint(out, step) + "/optimizer.safetensors");
  }
  std::vector<Json> log(const std::string& out) const {
    std::vector<Json> lines;
    for (const std::string& line : lines_of(contents(folder / out + "/log.jsonl")))
      lines.push_back(parse_json(line, "log"));
    return lines;
  }
  size_t logged(const std::string& out) const { return lines_of(contents(folder / out + "/log.jsonl")).size(); }
};

// Every file of a folder with its bytes, but for locks.
inline std::vector<std::pair<std::string, std::string>> everything_in(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != "lock")
      files.emplace_back(entry.path().string(), contents(entry.path().string()));
  std::sort(files.begin(), files.end());
  return files;
}

// Makes a checkpoint's manifest fit its files again, after one was changed.
inline void reseal(const std::string& checkpoint) {
  std::string path = checkpoint + "/manifest.json";
  Json manifest = parse_json(contents(path), path);
  Json files = Json::object();
  for (const auto& [name, old] : manifest.get("files", path).members) {
    std::string file = checkpoint + "/" + name;
    char crc[16];
    std::snprintf(crc, sizeof crc, "%08x", crc32c_of_file(file));
    files.set(name, Json::object({{"bytes", int64_t(std::filesystem::file_size(file))}, {"crc32c", crc}}));
  }
  manifest.set("files", files);
  put(path, write_json_indented(manifest));
}

// Sets every weight of a checkpoint's model to a value.
inline void fill_weights(const std::string& checkpoint, float value) {
  std::string path = checkpoint + "/model.safetensors", bytes = contents(path);
  {
    SafetensorsFile file(path);
    std::vector<std::vector<float>> values;
    std::vector<TensorView> tensors;
    for (const TensorView& t : file.tensors()) {
      values.emplace_back(size_t(t.bytes()) / sizeof(float), value);
      tensors.push_back({t.name, t.dtype, t.shape, nullptr});
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = values[i].data();
    std::filesystem::remove(path + ".new");
    write_safetensors(path + ".new", tensors, file.metadata());
  }
  std::filesystem::rename(path + ".new", path);
  reseal(checkpoint);
}
