// What the emulator says when a kernel is wrong, and how it names places.
#pragma once
#include <cstring>
#include <string>

#include "simt.h"

namespace simt {

bool same_text(const Place& a, const Place& b);
// The same place nearly always means the same object behind.
inline bool same_place(const Place& a, const Place& b) { return !std::memcmp(&a, &b, sizeof a) || same_text(a, b); }
std::string show(const Place& where);  // "file.cu:12"
// The line that the machine code before `address` comes from, and the callers of what was inlined there.
std::string show_code(const void* address);
std::string show(dim3 size);  // "(4, 1, 1)"
std::string show(uint3 index);

// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string form(const char* format, ...);

// Prints what is wrong and where, the kernel that runs, its launch, block and thread, and the seed; aborts.
[[noreturn]] void die(const std::string& what, const std::string& where);
[[noreturn]] void die(const std::string& what, const Place& where);
// The same, of another thread than the one that runs.
[[noreturn]] void die_as(int thread, const std::string& what, const std::string& where);

}  // namespace simt
