// What a file is that is no text, by its first bytes: magic numbers, the mark of UTF-16 or UTF-32, and zeros. Whether
// bytes are UTF-8 plays no part, for any bytes may be trained on.
#pragma once
#include <string_view>

// How text comes out of something: by a filter, a command from standard input to standard output; by a command on the
// file; by a table of Python's pandas; or not at all.
enum class Way { none, filter, command, table };

struct FileKind {
  const char* what = "";
  const char* advice = "";
  Way way = Way::none;
  const char* by = "";       // the filter, the command up to the file's name, or Python's expression for the table
  const char* becomes = "";  // how the name of what a filter or command writes ends
};

inline bool is_printable(char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t'; }
inline bool has_zero(std::string_view bytes) { return bytes.find('\0') != bytes.npos; }

// A `what` of "" where the file may be text.
FileKind file_kind(std::string_view head);
