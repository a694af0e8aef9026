// Ctrl-C, SIGTERM and a closed terminal ask a run to stop at the next good moment; a second one ends it at once. So
// does the end of whoever reads our output (./train | head -1), as often as it is told.
#pragma once

// wake_reads: a read that waits for input ends, too.
void catch_stop_signals(bool wake_reads = false);
void release_stop_signals();  // from here on they end the program at once
int stop_signal();            // the signal that asked, or 0
