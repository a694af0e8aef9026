#include "byte_characters.h"

#include <array>

#include "utf8.h"

namespace {

struct ByteCharacters {
  std::array<std::string, 256> of_byte;
  std::array<int, 0x180> to_byte;  // of a character's code; −1: none
  ByteCharacters() {
    to_byte.fill(-1);
    for (int byte = 0, others = 0; byte < 256; ++byte) {
      bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      int code = printable ? byte : 256 + others++;
      append_utf8(&of_byte[byte], unsigned(code));
      to_byte[code] = byte;
    }
  }
};

const ByteCharacters& byte_characters() {
  static const ByteCharacters map;
  return map;
}

}  // namespace

std::string to_characters(std::string_view bytes) {
  std::string name;
  for (unsigned char byte : bytes) name += byte_characters().of_byte[byte];
  return name;
}

std::optional<std::string> from_characters(std::string_view name) {
  const auto& to_byte = byte_characters().to_byte;
  std::string bytes;
  for (size_t at = 0; at < name.size();) {
    unsigned code = static_cast<unsigned char>(name[at++]);
    if (code >= 0xc2 && code <= 0xc5 && at < name.size())
      code = (code & 0x1f) << 6 | (static_cast<unsigned char>(name[at++]) & 0x3f);
    else if (code >= 0x80)
      return std::nullopt;
    if (to_byte[code] < 0) return std::nullopt;
    bytes += char(to_byte[code]);
  }
  return bytes;
}
