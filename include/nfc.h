// Unicode's canonical composition (NFC, UAX #15): "e" and the mark U+0301 become "é", marks get their canonical order.
// The tables are of Unicode 9.0, as those of Hugging Face's library: characters that came later stay as they are. Bytes
// that are not UTF-8 stay as well, and nothing composes across them.
#pragma once
#include <string>
#include <string_view>

// Linear in the text, n log n in the marks that follow one character.
std::string nfc(std::string_view text);

// Whether nfc(text) is another text. Most texts are their own NFC, and that is seen fast: ASCII at the memory's speed.
bool needs_nfc(std::string_view text);
