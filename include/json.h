// JSON, as much of it as configuration files, manifests and logs need (RFC 8259; numbers are doubles, objects keep
// their order).
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

struct Json {
  enum class Kind { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0;
  std::string string;
  std::vector<Json> items;                            // of an array
  std::vector<std::pair<std::string, Json>> members;  // of an object

  Json() = default;
  Json(bool v) : kind(Kind::boolean), boolean(v) {}
  Json(int v) : kind(Kind::number), number(v) {}
  Json(int64_t v) : kind(Kind::number), number(double(v)) {}  // exact below 2⁵³
  Json(double v) : kind(Kind::number), number(v) {}
  Json(float v);  // shortest decimal that reads back as the same float
  Json(const char* v) : kind(Kind::string), string(v) {}
  Json(std::string v) : kind(Kind::string), string(std::move(v)) {}
  static Json array(std::vector<Json> items = {});
  static Json object(std::vector<std::pair<std::string, Json>> members = {});

  const Json* find(const std::string& name) const;  // a member, or null
  void set(const std::string& name, Json value);    // replaces or appends a member

  // Members by type; fail with "path: `name` is missing" or "path: `name` should be a whole number". A whole number is
  // one below 2⁵³ in size: larger ones are kept as strings.
  const Json& get(const std::string& name, const std::string& path) const;
  int64_t get_int(const std::string& name, const std::string& path) const;
  double get_number(const std::string& name, const std::string& path) const;
  std::string get_string(const std::string& name, const std::string& path) const;
  bool get_bool(const std::string& name, const std::string& path) const;
};

// Fails with "path:line:column: expected …". Refused as well: nesting deeper than 100, a member that is there twice,
// numbers that no double holds, text that is not UTF-8.
Json parse_json(const std::string& source, const std::string& path);
// One line; non-finite numbers are written as null, bytes that are not UTF-8 as U+FFFD.
std::string write_json(const Json&);
// Indented by two and ended by a newline, for files that people read.
std::string write_json_indented(const Json&);
