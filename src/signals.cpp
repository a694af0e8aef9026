#include "signals.h"

#include <csignal>

static volatile std::sig_atomic_t asked = 0;
static constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

static void remember(int signal) {
  asked = signal;
  if (signal != SIGPIPE) std::signal(signal, SIG_DFL);
}

void catch_stop_signals(bool wake_reads) {
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
