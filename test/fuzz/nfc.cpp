// Canonical composition of any bytes: done once it is done, alone in what it changes, and at home in every part.
#include "nfc.h"

#include "fuzz.h"
#include "targets.h"
#include "utf8.h"

void fuzz_nfc(std::string_view bytes) {
  std::string once = nfc(bytes);
  require(nfc(once) == once, "a text in NFC stays as it is");
  require(needs_nfc(bytes) == (once != bytes), "what needs NFC is what it changes");
  require(is_utf8(once) == is_utf8(bytes), "characters become characters, and other bytes stay");
  std::string_view before = bytes.substr(0, bytes.size() / 2), behind = bytes.substr(before.size());
  require(nfc(std::string(before) + "\n" + std::string(behind)) == nfc(before) + "\n" + nfc(behind),
          "nothing composes across a line's end");
}
