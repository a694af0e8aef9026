// What programs share: their standard streams, and text that is shown to people or pasted by them.
#include "program.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "devices.h"
#include "flags.h"
#include "kernels.h"
#include "signals.h"
#include "utf8.h"

static std::string argv0 = "./program";
static std::vector<std::string> typed;  // the words behind it

static std::string own_name() { return argv0.substr(argv0.rfind('/') + 1); }  // npos + 1 = 0
constexpr std::string_view kInstalled = "fullband-";                          // how installed programs begin

// What was printed may be waiting in a buffer, and what was written may have met a full disk: status 0 would be a lie.
// That a reader has gone away is no mistake.
static void finish_output() {
  bool failed = std::fflush(stdout) != 0;
  int reason = failed ? errno : 0;
  if ((!failed && !std::ferror(stdout)) || reason == EPIPE || stop_signal() == SIGPIPE) return;
  std::fprintf(stderr, "%s: cannot write to standard output%s%s\n", own_name().c_str(), reason ? ": " : "",
               reason ? std::strerror(reason) : "");
  _exit(1);
}

void begin_program(char** argv) {
  if (*argv) argv0 = *argv++;
  while (*argv) typed.push_back(*argv++);
  // Where one is closed, the next file that is opened would take its place, and be printed into.
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDWR);
#ifdef SIGXFSZ
  std::signal(SIGXFSZ, SIG_IGN);  // the write that goes too far fails, and is reported as any other
#endif
  std::atexit(finish_output);
}

void say_mistake(const std::string& what) {
  std::fprintf(stderr, "%s: %s%s\n", own_name().c_str(), as_started(what).c_str(), places_of_flags(what).c_str());
}

std::string version_line() {
#ifdef __clang__
  const char* compiler = __VERSION__;
#else
  const char* compiler = "GCC " __VERSION__;
#endif
  std::string sets;
#ifdef HAVE_ISA_avx512
  sets += "AVX-512, ";
#endif
#ifdef HAVE_ISA_avx2
  sets += "AVX2, ";
#endif
#ifdef HAVE_ISA_neon
  sets += "NEON, ";
#endif
#ifdef HAVE_ISA_plain
  sets += "plain C++, ";
#endif
  return text("Fullband %s for %s%s; built by %s\n", kVersion, sets.c_str(), kHasCudaKernels ? "CUDA" : "no CUDA",
              compiler);
}

int start_threads(int wanted) {
  constexpr int kMostPerCore = 4;
  int cores = int(std::max(1u, std::thread::hardware_concurrency()));
  if (wanted <= kMostPerCore * cores) return set_threads(wanted);
  std::fprintf(stderr, "note: --threads %d: this machine has %d core%s, so %d %s used; the results are the same\n",
               wanted, cores, cores == 1 ? "" : "s", cores, cores == 1 ? "is" : "are");
  return set_threads(cores);
}

std::string shell_word(const std::string& word) {
  bool plain = !word.empty();
  std::string quoted;
  for (char c : word) {
    bool harmless = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c && std::strchr("/._-+=:,@%", c));
    plain = plain && harmless;
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return plain ? word : "'" + quoted + "'";
}

std::string sibling(const std::string& name) {
  std::string folder = argv0.substr(0, argv0.rfind('/') + 1),
              prefix(own_name().starts_with(kInstalled) ? kInstalled : "");
  return shell_word(folder + prefix + name);
}

// Is what stands there a word of a sentence or of a command, and no beginning of a path such as ./train.txt?
static bool is_word(const std::string& text, size_t begin, size_t end) {
  auto at = [&](size_t i) { return i < text.size() ? text[i] : '\n'; };
  if (begin > 0 && !std::strchr(" \n(;|\"", text[begin - 1])) return false;
  return std::strchr(" \n,:;)\"", at(end)) || (at(end) == '.' && std::strchr(" \n", at(end + 1)));
}

// A file of the user's may have a program's name, too: what was typed is left alone.
static bool was_typed(const std::string& name) {
  return std::any_of(typed.begin(), typed.end(),
                     [&](const std::string& word) { return word == name || word.ends_with("=" + name); });
}

std::string as_started(std::string text) {
  if (!own_name().starts_with(kInstalled)) return text;
  for (std::string name : {"./train", "./sample", "./eval", "./tokenize"}) {
    if (was_typed(name)) continue;
    for (size_t at = 0; (at = text.find(name, at)) != text.npos; ++at)
      if (is_word(text, at, at + name.size())) text.replace(at, 2, kInstalled);
  }
  return text;
}

std::string visible(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t length = utf8_length(text, at);
    unsigned char lead = text[at];
    bool control = length == 1 && (lead < 0x20 || lead == 0x7f) && lead != '\n' && lead != '\t';
    bool c1 = length == 2 && lead == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0;
    out += length == 0 || control || c1 ? "·" : text.substr(at, length);
    at += length > 0 ? length : 1;
  }
  return out;
}
