// Two kinds of mistakes. The user's: fail() throws an Error whose one line says what is wrong, where, and what to do;
// main() prints it and exits with status 1. Ours: check() prints the values that broke a contract and aborts.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

template <class... Values>
inline void check(bool holds, const char* message, Values... values) {
  if (holds) return;
  std::fprintf(stderr, message, values...);
  std::fputc('\n', stderr);
  std::abort();
}
inline void check(bool holds, const char* message) { check(holds, "%s", message); }
