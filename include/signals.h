// Ctrl-C and SIGTERM ask a run to stop at the next good moment; a second one ends it at once.
#pragma once

void catch_stop_signals();
int stop_signal();  // the signal that asked, or 0
