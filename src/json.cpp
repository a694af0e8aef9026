// JSON: a recursive-descent parser that says where and what, and a writer whose numbers read back as the same bits.
#include "json.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "error.h"
#include "utf8.h"

Json::Json(float v) : kind(Kind::number), number(v) {
  if (!std::isfinite(v)) return;
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  std::from_chars(digits, end, number);  // the double nearest to the float's shortest decimal prints as that decimal
}

Json Json::array(std::vector<Json> items) {
  Json result;
  result.kind = Kind::array;
  result.items = std::move(items);
  return result;
}

Json Json::object(std::vector<std::pair<std::string, Json>> members) {
  Json result;
  result.kind = Kind::object;
  result.members = std::move(members);
  return result;
}

const Json* Json::find(const std::string& name) const {
  for (const auto& [key, value] : members)
    if (key == name) return &value;
  return nullptr;
}

void Json::set(const std::string& name, Json value) {
  check(kind == Kind::object, "Json::set(\"%s\"): not an object", name.c_str());
  for (auto& [key, old] : members) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  members.emplace_back(name, std::move(value));
}

const Json& Json::get(const std::string& name, const std::string& path) const {
  if (kind != Kind::object) fail("%s: should be an object with a member `%s`", path.c_str(), name.c_str());
  const Json* member = find(name);
  if (!member) fail("%s: `%s` is missing", path.c_str(), name.c_str());
  return *member;
}

static const Json& get_kind(const Json& object, Json::Kind kind, const char* should_be, const std::string& name,
                            const std::string& path) {
  const Json& member = object.get(name, path);
  if (member.kind != kind) fail("%s: `%s` should be %s", path.c_str(), name.c_str(), should_be);
  return member;
}

int64_t Json::get_int(const std::string& name, const std::string& path) const {
  double value = get_kind(*this, Kind::number, "a whole number", name, path).number;
  // At 2⁵³ and beyond a double may stand for several whole numbers: none of them was surely meant.
  if (value != std::floor(value)) fail("%s: `%s` should be a whole number", path.c_str(), name.c_str());
  if (!(std::fabs(value) < 9007199254740992.0))
    fail("%s: `%s` should be a whole number below 2^53", path.c_str(), name.c_str());
  return int64_t(value);
}

double Json::get_number(const std::string& name, const std::string& path) const {
  return get_kind(*this, Kind::number, "a number", name, path).number;
}

std::string Json::get_string(const std::string& name, const std::string& path) const {
  return get_kind(*this, Kind::string, "a string", name, path).string;
}

bool Json::get_bool(const std::string& name, const std::string& path) const {
  return get_kind(*this, Kind::boolean, "true or false", name, path).boolean;
}

namespace {

class Parser {
 public:
  Parser(const std::string& source, const std::string& path) : source_(source), path_(path) {}

  Json document() {
    at_ = source_.size() - without_mark(source_).size();
    Json result = value(0);
    skip_space();
    if (at_ < source_.size()) expected("the end of the file");
    return result;
  }

 private:
  static constexpr int kDeepest = 100;

  char peek() const { return at_ < source_.size() ? source_[at_] : '\0'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void skip_space() {
    while (at_ < source_.size() && std::strchr(" \t\r\n", source_[at_]) && source_[at_]) ++at_;
  }

  bool take(char c) {
    if (at_ >= source_.size() || source_[at_] != c) return false;
    ++at_;
    return true;
  }

  [[noreturn]] void wrong(size_t at, const std::string& what) const {
    int line = 1, column = 1;
    for (size_t i = 0; i < at; ++i) {
      if (source_[i] == '\n') {
        ++line;
        column = 1;
      } else if ((source_[i] & 0xC0) != 0x80) {
        ++column;
      }
    }
    fail("%s:%d:%d: %s", path_.c_str(), line, column, what.c_str());
  }

  [[noreturn]] void expected(const std::string& what) const {
    if (at_ >= source_.size()) wrong(at_, "expected " + what + ", but the file ends here");
    if (!source_[at_]) wrong(at_, "expected " + what + ", found a zero byte");
    size_t length = utf8_length(source_, at_);
    wrong(at_, "expected " + what + (length ? ", found `" + source_.substr(at_, length) + "`" : ""));
  }

  Json value(int depth) {
    skip_space();
    char c = peek();
    if (c == '{') return object(depth);
    if (c == '[') return array(depth);
    if (c == '"') return Json(string());
    if (c == '-' || is_digit(c)) return number();
    if (take_word("true")) return Json(true);
    if (take_word("false")) return Json(false);
    if (take_word("null")) return Json();
    expected("a value");
  }

  bool take_word(const char* word) {
    size_t length = std::strlen(word);
    if (source_.compare(at_, length, word) != 0) return false;
    at_ += length;
    return true;
  }

  void enter(int depth) {
    if (depth >= kDeepest) wrong(at_, text("nested deeper than %d", kDeepest));
    ++at_;
    skip_space();
  }

  Json array(int depth) {
    enter(depth);
    Json result = Json::array();
    if (take(']')) return result;
    while (true) {
      result.items.push_back(value(depth + 1));
      skip_space();
      if (take(']')) return result;
      if (!take(',')) expected("`,` or `]`");
    }
  }

  Json object(int depth) {
    enter(depth);
    Json result = Json::object();
    std::unordered_set<std::string> names;
    if (take('}')) return result;
    while (true) {
      skip_space();
      size_t start = at_;
      if (peek() != '"') expected("a member's name in double quotes");
      std::string name = string();
      if (!names.insert(name).second) wrong(start, "the member `" + name + "` is there twice");
      skip_space();
      if (!take(':')) expected("`:`");
      result.members.emplace_back(std::move(name), value(depth + 1));
      skip_space();
      if (take('}')) return result;
      if (!take(',')) expected("`,` or `}`");
    }
  }

  std::string string() {
    size_t start = at_++;
    std::string result;
    while (true) {
      if (at_ >= source_.size()) wrong(start, "expected a closing `\"` for the string that starts here");
      unsigned char c = source_[at_];
      if (take('"')) return result;
      if (c == '\\') {
        append_utf8(&result, escape());
        continue;
      }
      if (c < 0x20) wrong(at_, text("expected an escape in place of the control character 0x%02x in a string", c));
      size_t length = utf8_length(source_, at_);
      if (!length) wrong(at_, text("expected UTF-8, found the byte 0x%02x", c));
      result.append(source_, at_, length);
      at_ += length;
    }
  }

  unsigned escape() {
    size_t start = at_++;
    const char* names = "\"\\/bfnrt";
    const char* meanings = "\"\\/\b\f\n\r\t";
    char c = peek();
    const char* known = c ? std::strchr(names, c) : nullptr;
    if (known) {
      ++at_;
      return meanings[known - names];
    }
    if (!take('u')) wrong(start, "expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    unsigned code = four_hex(start);
    if (code < 0xD800 || code > 0xDFFF) return code;
    unsigned low = 0;
    if (code < 0xDC00 && take('\\') && take('u')) low = four_hex(start);
    if (low < 0xDC00 || low > 0xDFFF) wrong(start, "expected a whole surrogate pair, \\uD800-\\uDBFF \\uDC00-\\uDFFF");
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }

  unsigned four_hex(size_t start) {
    unsigned code = 0;
    const char* first = source_.data() + at_;
    if (at_ + 4 > source_.size() || std::from_chars(first, first + 4, code, 16).ptr != first + 4)
      wrong(start, "expected four hexadecimal digits after \\u");
    at_ += 4;
    return code;
  }

  void digits() {
    if (!is_digit(peek())) expected("a digit");
    while (is_digit(peek())) ++at_;
  }

  // from_chars would take more than the grammar does, so the grammar is walked first.
  Json number() {
    size_t start = at_;
    take('-');
    if (!take('0')) digits();
    if (take('.')) digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits();
    }
    double result = 0;
    auto [end, error] = std::from_chars(source_.data() + start, source_.data() + at_, result);
    if (error != std::errc()) wrong(start, "expected a number that a double can hold");
    return Json(result);
  }

  const std::string& source_;
  const std::string& path_;
  size_t at_ = 0;
};

}  // namespace

Json parse_json(const std::string& source, const std::string& path) { return Parser(source, path).document(); }

static void write_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[64];
  bool whole =
      value == std::floor(value) && std::fabs(value) < 9007199254740992.0 && !(value == 0 && std::signbit(value));
  auto end = whole ? std::to_chars(digits, digits + sizeof digits, int64_t(value)).ptr
                   : std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

static void write_string(std::string& out, const std::string& s) {
  const char* escaped = "\"\\\b\f\n\r\t";
  out += '"';
  for (size_t i = 0; i < s.size();) {
    unsigned char c = s[i];
    size_t length = utf8_length(s, i);
    const char* found = c ? std::strchr(escaped, c) : nullptr;
    if (found) {
      out += '\\';
      out += "\"\\bfnrt"[found - escaped];
    } else if (c < 0x20) {
      out += text("\\u%04x", c);
    } else if (length) {
      out.append(s, i, length);
    } else {
      out += "\xEF\xBF\xBD";  // U+FFFD
    }
    i += length ? length : 1;
  }
  out += '"';
}

// indent < 0: all on one line.
static void write_value(std::string& out, const Json& json, int indent) {
  auto line = [&](int level) {
    if (indent >= 0) (out += '\n').append(size_t(2 * level), ' ');
  };
  int inner = indent >= 0 ? indent + 1 : -1;
  bool first = true;
  auto next = [&] {
    if (!first) out += indent >= 0 ? "," : ", ";
    first = false;
    line(inner);
  };
  switch (json.kind) {
    case Json::Kind::null:
      out += "null";
      break;
    case Json::Kind::boolean:
      out += json.boolean ? "true" : "false";
      break;
    case Json::Kind::number:
      write_number(out, json.number);
      break;
    case Json::Kind::string:
      write_string(out, json.string);
      break;
    case Json::Kind::array:
      out += '[';
      for (const Json& item : json.items) next(), write_value(out, item, inner);
      if (!first) line(indent);
      out += ']';
      break;
    case Json::Kind::object:
      out += '{';
      for (const auto& [name, member] : json.members) {
        next();
        write_string(out, name);
        out += ": ";
        write_value(out, member, inner);
      }
      if (!first) line(indent);
      out += '}';
      break;
  }
}

std::string write_json(const Json& json) {
  std::string out;
  write_value(out, json, -1);
  return out;
}

std::string write_json_indented(const Json& json) {
  std::string out;
  write_value(out, json, 0);
  return out + "\n";
}
