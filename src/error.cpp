// Messages as text, and the user's mistakes as one line.
#include "error.h"

#include "words.h"

#include <cstdarg>

static std::string format_text(const char* format, va_list values) {
  va_list again;
  va_copy(again, values);
  int length = std::vsnprintf(nullptr, 0, format, values);
  std::string result(length > 0 ? length : 0, '\0');
  std::vsnprintf(result.data(), result.size() + 1, format, again);
  va_end(again);
  return result;
}

std::string text(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::string result = format_text(format, values);
  va_end(values);
  return result;
}

// Names that come from files may hold anything: line breaks, terminal escapes, megabytes. The message stays one
// readable line.
static std::string one_line(const std::string& message) {
  constexpr size_t kLongest = 4000;
  std::string line;
  for (unsigned char c : message) {
    bool within_character = (c & 0xC0) == 0x80 && line.size() < kLongest + 3;
    if (line.size() >= kLongest && !within_character) return line + "…";
    if (c == '\n') {
      line += "\\n";
    } else if (c < 0x20 || c == 0x7F) {
      line += text("\\x%02x", c);
    } else {
      line += char(c);
    }
  }
  return line;
}

void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::string message = format_text(format, values);
  va_end(values);
  throw Error(one_line(message));
}

std::string join_or(const std::vector<std::string>& words) {
  std::string joined;
  for (size_t i = 0; i < words.size(); ++i) joined += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i];
  return joined;
}
