#include "signals.h"

#include <csignal>

static volatile std::sig_atomic_t asked = 0;

static void remember(int signal) {
  asked = signal;
  std::signal(signal, SIG_DFL);
}

void catch_stop_signals() {
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

int stop_signal() { return asked; }
