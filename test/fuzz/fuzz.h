// What fuzz targets share. A target takes any bytes: what its parser refuses has to be refused in one plain line, what it
// accepts has to keep the parser's promises, and nothing may crash, hang or take much memory.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

#include "error.h"

// A promise that does not hold: a bug, which neither libFuzzer nor a test overlooks.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, const char* promise) {
  if (!holds) throw Broken(promise);
}

void require_plain_line(const std::string& message);

// Runs a parser; false where it refuses the bytes.
template <class Parser>
bool accepts(Parser parse) {
  try {
    parse();
    return true;
  } catch (const Error& refusal) {
    require_plain_line(refusal.what());
    return false;
  }
}

// Takes the first byte off as a choice of 0 … n − 1; the digits '0', '1', … stand for themselves.
int take_choice(std::string_view* bytes, int n);

// Writes a file into a folder of this process, which is in memory where it can be; returns its path.
std::string put_file(const std::string& name, std::string_view bytes);
std::string file_path(const std::string& name);

// The first `word` in a text, which stands for something long, replaced by that.
std::string replaced(std::string_view text, std::string_view word, const std::string& meaning);
