// JSON: what is read is written and read again.
#include "json.h"

#include "fuzz.h"
#include "targets.h"

void fuzz_json(std::string_view bytes) {
  Json json;
  if (!accepts([&] { json = parse_json(std::string(bytes), "x.json"); })) return;
  std::string line = write_json(json);
  require(line.find('\n') == line.npos, "JSON is written as one line");
  require(write_json(parse_json(line, "written")) == line, "what is written reads back");
  require(write_json(parse_json(write_json_indented(json), "indented")) == line, "and so does the indented form");
}
