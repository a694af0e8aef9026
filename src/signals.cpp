#include "signals.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

static volatile std::sig_atomic_t asked = 0;
static StopAnswers answers;
static bool on_terminal = false;
static constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// In a handler: no more than write().
static void say(const char* sentence) {
  int before = errno;
  if (on_terminal && write(2, "\n", 1) < 0) return;  // behind ^C and a progress bar
  if (write(2, sentence, std::strlen(sentence)) > 0 && write(2, "\n", 1) > 0) errno = before;
}

static void remember(int signal) {
  bool again = asked && asked != SIGPIPE, last = again || !answers.second;
  if (signal != SIGPIPE) {
    const char* sentence = again ? answers.second : answers.first;
    if (sentence) say(sentence);
    for (int stop : kStops)
      if (last && stop != SIGPIPE) std::signal(stop, SIG_DFL);
  }
  asked = signal;
}

void catch_stop_signals(bool wake_reads, StopAnswers said) {
  answers = said, on_terminal = isatty(2);
  for (int signal : kStops) {
    struct sigaction action = {}, old;
    sigaction(signal, nullptr, &old);
    if (signal == SIGHUP && old.sa_handler == SIG_IGN) continue;  // nohup
    action.sa_handler = remember;
    action.sa_flags = wake_reads ? 0 : SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

void release_stop_signals() {
  for (int signal : kStops) {
    struct sigaction old;
    sigaction(signal, nullptr, &old);
    if (old.sa_handler == remember) std::signal(signal, SIG_DFL);
  }
}

int stop_signal() { return asked; }
