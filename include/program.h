// What every program's main() does: a user's mistake becomes one line on stderr and exit status 1.
#pragma once
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "error.h"

constexpr const char* kVersion = "0.1.0";
// For --version: one line, with the kernels that were built.
std::string version_line();

// Makes ready what a program relies on: standard streams that are open, a full disk that is an error and not a signal,
// and output that is known to have been written when the program ends with status 0.
void begin_program(char** argv);
// A user's mistake as a line on stderr, with where the flags stand that it names and nobody typed.
void say_mistake(const std::string& what);

template <class Body>
int run_program(char** argv, Body body) {
  begin_program(argv);
  try {
    return body();
  } catch (const std::bad_alloc&) {
    say_mistake("out of memory");
  } catch (const std::exception& e) {
    say_mistake(e.what());
  }
  return 1;
}

// Starts the kernels' threads, as --threads asks for them, and returns their number. Of far more than there are cores
// each would wait for others, and nothing seem to go on: then there are as many as cores, with a note.
int start_threads(int wanted);

// A word as a shell takes it: 'it'\''s'; words of plain characters stay as they are.
std::string shell_word(const std::string& word);
// The command that starts another program of ours, which lies beside the one that was started.
std::string sibling(const std::string& name);
// Our text, which calls a program ./train, as the user has to: where they are installed it is fullband-train. Paths in it
// stay as they are.
std::string as_started(std::string text);
// Text for a terminal: control characters but \n and \t, and bytes that are not UTF-8, become ·.
std::string visible(const std::string& text);
