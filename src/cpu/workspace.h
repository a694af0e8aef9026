// Scratch memory of one thread: grows to the largest request and stays, so that a step after the first allocates
// nothing.
#pragma once
#include <cstddef>

// At least `floats` floats, aligned to 64 bytes, valid until this thread's next call with the same slot.
float* thread_workspace(int slot, size_t floats);
