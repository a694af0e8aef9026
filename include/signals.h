// Ctrl-C, SIGTERM and a closed terminal ask a run to stop at the next good moment; one more ends it at once. So does the
// end of whoever reads our output (./train | head -1), as often as it is told.
#pragma once

// What is said on standard error as soon as a signal comes. Without a second sentence, the second signal ends the
// program; with one, the third does.
struct StopAnswers {
  const char* first = nullptr;
  const char* second = nullptr;
};

// wake_reads: a read that waits for input ends, too. The sentences must stay where they are.
void catch_stop_signals(bool wake_reads = false, StopAnswers answers = {});
void release_stop_signals();  // from here on they end the program at once
int stop_signal();            // the signal that asked, or 0
