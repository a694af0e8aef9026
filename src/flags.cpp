// Flags: reading them from the command line and from files, and showing them.
#include "flags.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "error.h"
#include "file_kind.h"
#include "files.h"
#include "log.h"
#include "program.h"
#include "utf8.h"

static std::string normal(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// A whole string as a number; std::from_chars knows no leading plus, and is the same in every locale.
template <class Number>
static std::errc parse_number(const std::string& text, Number* value) {
  const char* first = text.data();
  const char* last = first + text.size();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') ++first;
  auto [end, error] = std::from_chars(first, last, *value);
  if (end != last || first == last) return std::errc::invalid_argument;
  return error;
}

static int64_t read_whole(const std::string& value, const std::string& where, int64_t least, int64_t most) {
  int64_t number = 0;
  std::errc error = parse_number(value, &number);
  if (error == std::errc::invalid_argument)
    fail("%s: `%s` is not a whole number, written in digits", where.c_str(), value.c_str());
  if (error != std::errc()) number = value[0] == '-' ? INT64_MIN : INT64_MAX;
  if (number < least || (error != std::errc() && number < 0))
    fail("%s: %s is too small; it should be at least %lld", where.c_str(), value.c_str(), (long long)least);
  if (number > most || error != std::errc())
    fail("%s: %s is too large; it should be at most %lld", where.c_str(), value.c_str(), (long long)most);
  return number;
}

// The shortest decimal that reads back as the same float: 0.1, 3e-4.
static std::string show_float(float value) {
  char digits[64];
  std::string shown(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  size_t exponent = shown.find('e');
  if (exponent == std::string::npos) return shown;
  std::string sign = shown[exponent + 1] == '-' ? "-" : "";
  return shown.substr(0, exponent + 1) + sign + std::to_string(std::abs(std::atoi(shown.c_str() + exponent + 1)));
}

static float read_float(const std::string& value, const std::string& where, float least, float most) {
  float number = 0;
  std::errc error = parse_number(value, &number);
  if (error == std::errc::invalid_argument || (error == std::errc() && !std::isfinite(number)))
    fail("%s: `%s` is not a finite number", where.c_str(), value.c_str());
  if (error != std::errc()) fail("%s: %s is out of a float's range", where.c_str(), value.c_str());
  if (number < least)
    fail("%s: %s is too small; it should be at least %s", where.c_str(), value.c_str(), show_float(least).c_str());
  if (number > most)
    fail("%s: %s is too large; it should be at most %s", where.c_str(), value.c_str(), show_float(most).c_str());
  return number;
}

static bool read_bool(const std::string& value, const std::string& where) {
  for (const char* word : {"true", "yes", "on", "1"})
    if (value == word) return true;
  for (const char* word : {"false", "no", "off", "0"})
    if (value == word) return false;
  fail("%s: `%s` is neither true nor false", where.c_str(), value.c_str());
}

static std::string join(const std::vector<std::string>& words, const char* between) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : between) + word;
  return joined;
}

void Flags::section(const std::string& title) { section_ = title; }

void Flags::words(const std::string& name, std::vector<std::string>* values, const std::string& help, size_t most) {
  words_name_ = name, words_help_ = help, words_ = values, most_words_ = most;
}

Flags::Flag Flags::named(const std::string& name, const std::string& kind, const std::string& help) {
  Flag flag;
  flag.name = name;
  flag.kind = kind;
  flag.help = as_started(help);
  return flag;
}

void Flags::add_flag(Flag flag) {
  bool taken = find(flag.name) || normal(flag.name) == "config" || normal(flag.name) == "help";
  check(!taken, "Flags: --%s is there twice", flag.name.c_str());
  flag.section = section_;
  flag.fallback = flag.show();
  flags_.push_back(std::move(flag));
}

void Flags::add(const std::string& name, int* value, const std::string& help, int least, int most) {
  Flag flag = named(name, "N", help);
  flag.show = [=] { return std::to_string(*value); };
  flag.read = [=](const std::string& text, const std::string& where) {
    *value = int(read_whole(text, where, least, most));
  };
  add_flag(std::move(flag));
}

void Flags::add(const std::string& name, int64_t* value, const std::string& help, int64_t least, int64_t most) {
  Flag flag = named(name, "N", help);
  flag.show = [=] { return std::to_string(*value); };
  flag.read = [=](const std::string& text, const std::string& where) { *value = read_whole(text, where, least, most); };
  add_flag(std::move(flag));
}

void Flags::add(const std::string& name, float* value, const std::string& help, float least, float most) {
  Flag flag = named(name, "X", help);
  flag.show = [=] { return show_float(*value); };
  flag.read = [=](const std::string& text, const std::string& where) { *value = read_float(text, where, least, most); };
  add_flag(std::move(flag));
}

void Flags::add(const std::string& name, bool* value, const std::string& help) {
  Flag flag = named(name, "", help);
  flag.is_bool = true;
  flag.show = [=] { return *value ? "true" : "false"; };
  flag.read = [=](const std::string& text, const std::string& where) { *value = read_bool(text, where); };
  add_flag(std::move(flag));
}

void Flags::add(const std::string& name, std::string* value, const std::string& help) {
  Flag flag = named(name, "TEXT", help);
  flag.show = [=] { return *value; };
  flag.read = [=](const std::string& text, const std::string&) { *value = text; };
  add_flag(std::move(flag));
}

void Flags::add_optional(const std::string& name, std::string* value, const std::string& alone,
                         const std::string& help) {
  add(name, value, help);
  flags_.back().kind = "[TEXT]";
  flags_.back().alone = alone;
}

void Flags::choice(const std::string& name, std::string* value, const std::vector<std::string>& words,
                   const std::string& help) {
  choice(
      name, words, help, [=] { return *value; }, [=](const std::string& word) { *value = word; });
}

void Flags::choice(const std::string& name, const std::vector<std::string>& words, const std::string& help,
                   std::function<std::string()> show, std::function<void(const std::string&)> take) {
  Flag flag = named(name, join(words, "|"), help);
  flag.show = std::move(show);
  flag.read = [=](const std::string& text, const std::string& where) {
    if (std::find(words.begin(), words.end(), text) == words.end())
      fail("%s: `%s` is not one of %s", where.c_str(), text.c_str(), join(words, ", ").c_str());
    take(text);
  };
  add_flag(std::move(flag));
}

Flags::Flag* Flags::find(const std::string& name) {
  for (Flag& flag : flags_)
    if (normal(flag.name) == normal(name)) return &flag;
  return nullptr;
}

bool Flags::has(const std::string& name) const { return const_cast<Flags*>(this)->find(name) != nullptr; }

const Flags::Flag& Flags::at(const std::string& name) const {
  const Flag* flag = const_cast<Flags*>(this)->find(name);
  check(flag, "Flags: no flag is named %s", name.c_str());
  return *flag;
}

bool Flags::given(const std::string& name) const { return at(name).given; }

bool Flags::typed(const std::string& name) const { return at(name).given && at(name).place.empty(); }

std::string Flags::place(const std::string& name) const { return at(name).place; }

// Of the program's flags, those that a file has given: the messages of all that happens later may name them.
static std::map<std::string, std::string> places_in_files;

static bool names_flag(const std::string& message, const std::string& flag) {
  for (size_t at = message.find(flag); at != message.npos; at = message.find(flag, at + 1)) {
    unsigned char next = at + flag.size() < message.size() ? message[at + flag.size()] : ' ';
    if (!std::isalnum(next) && next != '-') return true;
  }
  return false;
}

std::string places_of_flags(const std::string& message) {
  std::string places;
  for (const auto& [name, place] : places_in_files) {
    if (!names_flag(message, "--" + name)) continue;
    places += (places.empty() ? " (--" : ", --") + name + (places.empty() ? " stands in " : " in ") + place;
  }
  return places + (places.empty() ? "" : ")");
}

void Flags::apply(const Setting& setting) {
  Flag& flag = *setting.flag;
  flag.read(setting.value, setting.where);
  flag.given = true;
  flag.place = setting.place;
  if (flag.place.empty())
    places_in_files.erase(normal(flag.name));
  else
    places_in_files[normal(flag.name)] = flag.place;
}

void Flags::take(const Line& line) { apply({find(line.name), line.value, line.place + ": " + line.name, line.place}); }

void Flags::exclude(const std::string& a, const std::string& b, const std::string& why) {
  if (!given(a) || !given(b)) return;
  if (typed(a) == typed(b)) fail("--%s and --%s exclude each other%s", a.c_str(), b.c_str(), why.c_str());
  Flag& loses = *find(typed(a) ? b : a);
  apply({&loses, loses.fallback, loses.name});
  loses.given = false;
}

std::string Flags::value(const std::string& name) const { return at(name).show(); }

void Flags::refuse_idle(const std::vector<Idle>& rules) const {
  for (const Idle& rule : rules) {
    std::vector<std::string> refused;
    for (const std::string& name : rule.flags)
      if (typed(name) && rule.idle) refused.push_back("--" + name);
    if (!refused.empty())
      fail("%s: %s; leave %s out", join(refused, ", ").c_str(), rule.why.c_str(), refused.size() == 1 ? "it" : "them");
  }
}

std::vector<std::pair<std::string, std::string>> Flags::values() const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const Flag& flag : flags_) result.emplace_back(flag.name, flag.show());
  return result;
}

void Flags::set(const std::string& name, const std::string& value, const std::string& where) {
  Flag* flag = find(name);
  if (!flag) fail("%s: %s", where.c_str(), unknown(name, true).c_str());
  flag->read(value, where + ": " + flag->name);
}

// Our flag for what other trainers call so.
static std::string name_elsewhere(const std::string& name) {
  constexpr const char* kNames[][2] = {{"learning-rate", "lr"},
                                       {"max-lr", "lr"},
                                       {"batch-size", "batch"},
                                       {"total-batch-size", "batch-tokens"},
                                       {"max-steps", "steps"},
                                       {"max-iters", "steps"},
                                       {"num-iterations", "steps"},
                                       {"num-epochs", "epochs"},
                                       {"num-train-epochs", "epochs"},
                                       {"seq-len", "seq"},
                                       {"seq-length", "seq"},
                                       {"sequence-length", "seq"},
                                       {"block-size", "seq"},
                                       {"context", "seq"},
                                       {"context-length", "seq"},
                                       {"warmup-steps", "warmup"},
                                       {"warmup-iters", "warmup"},
                                       {"grad-clip", "clip"},
                                       {"max-grad-norm", "clip"},
                                       {"n-layer", "layers"},
                                       {"num-layers", "layers"},
                                       {"n-head", "heads"},
                                       {"num-heads", "heads"},
                                       {"n-embd", "width"},
                                       {"hidden-size", "width"},
                                       {"d-model", "width"},
                                       {"dim", "width"},
                                       {"vocab-size", "vocab"},
                                       {"output-dir", "out"},
                                       {"out-dir", "out"},
                                       {"output", "out"},
                                       {"dataset", "data"},
                                       {"input", "data"},
                                       {"checkpoint", "model"},
                                       {"ckpt", "model"},
                                       {"model-dir", "model"},
                                       {"max-tokens", "tokens"},
                                       {"max-new-tokens", "tokens"},
                                       {"temp", "temperature"},
                                       {"special-tokens", "special"}};
  for (auto [theirs, ours] : kNames)
    if (name == theirs) return ours;
  return "";
}

std::string Flags::unknown(const std::string& name, bool in_file) const {
  std::string dashes = in_file ? "" : "--";
  std::vector<std::string> names;
  if (!in_file) names = {"config", "help", "version"};
  for (const Flag& flag : flags_) {
    names.push_back(normal(flag.name));
    if (flag.is_bool && !in_file) names.push_back("no-" + normal(flag.name));
  }
  std::string nearest = name_elsewhere(normal(name));
  if (nearest.empty() || std::find(names.begin(), names.end(), nearest) == names.end())
    nearest = nearest_word(normal(name), names);
  std::string hint = nearest.empty() ? "--help lists the flags" : "did you mean " + dashes + nearest + "?";
  return "unknown flag " + dashes + name + "; " + hint;
}

// A word anywhere, whatever else is wrong; its short form where it is not the value of the flag before it.
bool Flags::asks_for(const std::vector<std::string>& words, const std::string& word, const std::string& short_form) {
  auto takes_a_value = [&](const std::string& word) {
    if (word.compare(0, 2, "--") != 0) return false;
    Flag* flag = find(word.substr(2));
    return normal(word) == "--config" || (flag && !flag->is_bool && flag->alone.empty());
  };
  for (size_t i = 0; i < words.size() && !(words_ && words[i] == "--"); ++i)
    if (words[i] == word || (!short_form.empty() && words[i] == short_form && !(i > 0 && takes_a_value(words[i - 1]))))
      return true;
  return false;
}

// Takes a word that is no flag; false where it is one.
bool Flags::take_word(const std::string& word, bool flags_may_follow) {
  bool plain = !flags_may_follow || word == "-" || word.compare(0, 1, "-") != 0;
  if (!words_ || !plain) return false;
  if (words_->size() >= most_words_)
    fail("stray word `%s`: at most %zu %s here", word.c_str(), most_words_, most_words_ == 1 ? "stands" : "stand");
  words_->push_back(word);
  return true;
}

void Flags::parse(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  bool version = asks_for(words, "--version", "");
  if (version || asks_for(words, "--help", "-h")) {
    std::fputs((version ? version_line() : help()).c_str(), stdout);
    std::exit(0);
  }
  std::vector<Setting> settings;
  std::set<Flag*> seen;
  bool flags_may_follow = true;
  for (size_t i = 0; i < words.size(); ++i) {
    if (take_word(words[i], flags_may_follow)) continue;
    if (words_ && words[i] == "--") {
      flags_may_follow = false;
      continue;
    }
    settings.push_back(setting_at(words, &i));
    if (!seen.insert(settings.back().flag).second) fail("%s is given twice", settings.back().where.c_str());
  }
  for (const Setting& setting : settings)  // first, so that the command line wins
    if (!setting.flag)
      for (const Line& line : lines_of(setting.value)) take(line);
  for (const Setting& setting : settings)
    if (setting.flag) apply(setting);
}

// A flag written with one dash, or with a long one, as text editors make of two.
void Flags::refuse_other_dash(const std::string& word) {
  for (const char* dash : {"-", "–", "—", "−"}) {
    if (!word.starts_with(dash) || word == dash) continue;
    std::string typed = word.substr(std::strlen(dash)), name = typed.substr(0, typed.find('='));
    bool negated = normal(name).starts_with("no-") && find(name.substr(3));
    if (find(name) || negated || normal(name) == "config" || name == "help")
      fail("%s: flags have two dashes: --%s", word.c_str(), typed.c_str());
    if (word[0] == '-') fail("%s", unknown(name, false).c_str());
  }
}

// The setting that starts at words[*at]; moves *at to its last word.
Flags::Setting Flags::setting_at(const std::vector<std::string>& words, size_t* at) {
  const std::string& word = words[*at];
  bool two_dashes = word.compare(0, 2, "--") == 0 && word.size() > 2;
  if (!two_dashes && word != "--") refuse_other_dash(word);
  if (!two_dashes) fail("stray word `%s`; a value follows its flag, as in --name value", word.c_str());
  size_t equals = word.find('=');
  bool has_value = equals != std::string::npos;
  std::string name = word.substr(2, has_value ? equals - 2 : equals), where = "--" + name;
  Flag* flag = find(name);
  bool is_config = normal(name) == "config";

  Flag* negated = !flag && normal(name).compare(0, 3, "no-") == 0 ? find(name.substr(3)) : nullptr;
  if (negated && !negated->is_bool)
    fail("%s: --%s has a value and cannot be turned off", where.c_str(), negated->name.c_str());
  if (negated && has_value) fail("%s takes no value", where.c_str());
  if (negated) return {negated, "false", where};
  if (!flag && !is_config) fail("%s", unknown(name, false).c_str());

  if (has_value) return {flag, word.substr(equals + 1), where};
  std::string next = *at + 1 < words.size() ? words[*at + 1] : "--";
  bool is_bool = flag && flag->is_bool;
  if (is_bool && next != "true" && next != "false") return {flag, "true", where};
  bool alone = *at + 1 == words.size() || next.compare(0, 2, "--") == 0;
  if (alone && flag && !flag->alone.empty()) return {flag, flag->alone, where};
  if (*at + 1 == words.size()) fail("%s needs a value", where.c_str());
  if (next.compare(0, 2, "--") == 0)
    fail("%s needs a value (if `%s` is meant, write %s=%s)", where.c_str(), next.c_str(), where.c_str(),
         shell_word(next).c_str());
  ++*at;
  return {flag, next, where};
}

static std::string trim(const std::string& s) {
  const char* space = " \t\r";
  size_t first = s.find_first_not_of(space);
  return first == std::string::npos ? "" : s.substr(first, s.find_last_not_of(space) - first + 1);
}

// A value in quotes, and after it nothing but a comment. In single quotes every character stands for itself.
static std::string unquote(const std::string& s, const std::string& where) {
  char quote = s[0];
  std::string value;
  size_t i = 1;
  for (; i < s.size() && s[i] != quote; ++i) {
    if (quote == '\'' || s[i] != '\\') {
      value += s[i];
      continue;
    }
    char c = ++i < s.size() ? s[i] : ' ';
    if (c != '\\' && c != '"' && c != 'n' && c != 't')
      fail("%s: expected \\\\ \\\" \\n or \\t after \\", where.c_str());
    value += c == 'n' ? '\n' : c == 't' ? '\t' : c;
  }
  if (i >= s.size()) fail("%s: the closing %c is missing", where.c_str(), quote);
  std::string rest = trim(s.substr(i + 1));
  if (!rest.empty() && rest[0] != '#') fail("%s: `%s` follows the closing %c", where.c_str(), rest.c_str(), quote);
  return value;
}

// Up to a comment: a # that starts the value or follows a space.
static std::string without_comment(const std::string& s) {
  for (size_t i = 0; i < s.size(); ++i)
    if (s[i] == '#' && (i == 0 || s[i - 1] == ' ' || s[i - 1] == '\t')) return trim(s.substr(0, i));
  return s;
}

// A line of a configuration file that is neither empty nor a comment.
Flags::Setting Flags::setting_in(const std::string& line, const std::string& where) {
  size_t equals = line.find('=');
  if (equals == std::string::npos || equals == 0) fail("%s: expected `name = value`", where.c_str());
  std::string name = trim(line.substr(0, equals)), value = trim(line.substr(equals + 1));
  Flag* flag = find(name);
  if (!flag && normal(name) == "config") fail("%s: a file cannot name another --config", where.c_str());
  if (!flag && normal(name) == "help") fail("%s: --help belongs on the command line", where.c_str());
  Flag* negated = !flag && normal(name).compare(0, 3, "no-") == 0 ? find(name.substr(3)) : nullptr;
  if (negated && negated->is_bool)
    fail("%s: --%s belongs on the command line; here, write %s = false", where.c_str(), name.c_str(),
         negated->name.c_str());
  if (!flag) fail("%s: %s", where.c_str(), unknown(name, true).c_str());
  bool quoted = !value.empty() && (value[0] == '"' || value[0] == '\'');
  return {flag, quoted ? unquote(value, where) : without_comment(value), where + ": " + flag->name};
}

// What is no text, or is JSON, is named as what it is, and not by its first line.
static void require_lines(const std::string& source, const std::string& path) {
  std::string_view head = std::string_view(source).substr(0, 64 << 10);
  size_t first = source.find_first_not_of(" \t\r\n");
  const char* lines = "a file of flags has lines `name = value`";
  if (FileKind kind = file_kind(head); *kind.what) fail("%s is %s: %s", path.c_str(), kind.what, lines);
  if (has_zero(head)) fail("%s is not text: byte %zu is zero; %s", path.c_str(), head.find('\0'), lines);
  if (first != source.npos && source[first] == '{')
    fail("%s seems to be JSON: %s (a run's is its run.conf)", path.c_str(), lines);
}

std::vector<Flags::Line> Flags::lines_of(const std::string& path) {
  std::string source(without_mark(read_file(path)));
  require_lines(source, path);
  std::vector<Line> lines;
  std::set<Flag*> seen;
  int number = 0;
  for (size_t start = 0; start < source.size();) {
    size_t end = std::min(source.find('\n', start), source.size());
    std::string line = trim(source.substr(start, end - start)), where = text("%s:%d", path.c_str(), ++number);
    start = end + 1;
    if (line.empty() || line[0] == '#') continue;
    Setting setting = setting_in(line, where);
    if (!seen.insert(setting.flag).second) fail("%s is given twice", setting.where.c_str());
    lines.push_back({setting.flag->name, setting.value, where});
  }
  return lines;
}

static std::string help_line(const std::string& left, const std::string& right) {
  const size_t indent = std::min<size_t>(28, page_width() * 7 / 20);
  std::string line = "  " + left;
  size_t columns = columns_of(line);
  bool fits = columns + 2 <= indent;
  line += fits ? std::string(indent - columns, ' ') : "\n" + std::string(indent, ' ');
  return line + wrapped({right}, indent);
}

std::string show_examples(const std::vector<std::string>& commands) {
  std::string shown = commands.empty() ? "" : "Examples\n";
  for (const std::string& command : commands) shown += "  " + as_started(command) + "\n";
  return shown + (commands.empty() ? "" : "\n");
}

std::string Flags::help() const {
  std::string words = words_ ? " " + words_name_ : "";
  std::string result = wrapped({"Usage:", as_started(program_) + words, "[--flag value | --flag=value]..."}, 7) + "\n" +
                       wrapped({as_started(summary_)}, 0);
  std::string section;
  result += "\n" + show_examples(examples_);
  if (words_) result += help_line(words_name_, words_help_) + "\n";
  for (const Flag& flag : flags_) {
    if (flag.section != section) result += (&flag == &flags_[0] ? "" : "\n") + flag.section + "\n";
    section = flag.section;
    std::string left =
        (flag.is_bool ? "--[no-]" : "--") + normal(flag.name) + (flag.kind.empty() ? "" : " " + flag.kind);
    result += help_line(left, flag.help + (flag.fallback.empty() ? "" : " [" + flag.fallback + "]"));
  }
  result += "\nGeneral\n";
  result += help_line("--config FILE", "reads flags from lines `name = value`; the command line wins over them");
  result += help_line("--help, -h", "shows this");
  result += help_line("--version", "shows which Fullband this is");
  return result;
}

// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours cost 1 each.
static size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;  // nobody's typing error, and not worth the time
  std::string nearest;
  size_t least = std::max(word.size() / 3, size_t(1)) + 1;
  if (word.size() < 2 || word.size() > kLongest) return nearest;
  for (const std::string& candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}
