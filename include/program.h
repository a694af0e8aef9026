// What every program's main() does: a user's mistake becomes one line on stderr and exit status 1.
#pragma once
#include <cstdio>
#include <exception>
#include <new>

#include "error.h"

template <class Body>
int run_program(const char* name, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory\n", name);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
  }
  return 1;
}
