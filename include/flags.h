// Command lines: long flags bound to variables, whose values at that time are the defaults that --help shows.
//
//   Flags flags("train", "Trains a full-bandwidth transformer.");
//   flags.section("Model");
//   flags.add("width", &config.width, "model width D");
//   flags.parse(argc, argv);
//
// Accepted: --name value, --name=value, --name alone for bool (and --no-name), names with - or _ alike, --help, --version, and
// --config FILE of `name = value` lines; the command line wins over the file. In the file, # starts a comment, quotes
// around a value are optional, and in double quotes \\ \" \n \t are escapes. A mistake is one line: an unknown flag
// with the nearest known one, a value that does not parse or is out of range, a flag given twice, a stray word, a flag that
// has no effect beside the others.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "words.h"

class Flags {
 public:
  Flags(std::string program, std::string summary) : program_(std::move(program)), summary_(std::move(summary)) {}

  void section(const std::string& title);
  void add(const std::string& name, int* value, const std::string& help, int least = -2147483647,
           int most = 2147483647);
  void add(const std::string& name, int64_t* value, const std::string& help, int64_t least = INT64_MIN,
           int64_t most = INT64_MAX);
  void add(const std::string& name, float* value, const std::string& help, float least = -3e38f,
           float most = 3e38f);  // finite
  void add(const std::string& name, bool* value, const std::string& help);
  void add(const std::string& name, std::string* value, const std::string& help);
  // A text that may be left out: --name alone gives `alone`.
  void add_optional(const std::string& name, std::string* value, const std::string& alone, const std::string& help);
  // One of an enum's words (words.h); or one of a few others, where `value` must be among them.
  template <HasWords E>
  void choice(const std::string& name, E* value, const std::string& help) {
    choice(
        name, words_of<E>(), help, [=] { return std::string(name_of(*value)); },
        [=](const std::string& word) { *value = *find_word<E>(word); });
  }
  void choice(const std::string& name, std::string* value, const std::vector<std::string>& words,
              const std::string& help);
  // Words that belong to no flag, as inputs do: at most so many, as they stand ("-" is one; after "--" all are). `name` is
  // for --help: "INPUT...", "[FILE]".
  void words(const std::string& name, std::vector<std::string>* values, const std::string& help,
             size_t most = SIZE_MAX);
  // Commands that --help begins with, to be pasted: they are not wrapped.
  void examples(std::vector<std::string> commands) { examples_ = std::move(commands); }

  // Prints --help and exits 0; fails on mistakes.
  void parse(int argc, char** argv);
  bool has(const std::string& name) const;           // is there such a flag?
  bool given(const std::string& name) const;         // on the command line or in a file
  bool typed(const std::string& name) const;         // on the command line
  std::string place(const std::string& name) const;  // FILE:LINE where it was given in a file, else empty
  // Of two flags that exclude each other, where both were given: the command line's holds, and the other, from a file, is
  // as if not given. Fails where both are from the same; `why` ends the line.
  void exclude(const std::string& a, const std::string& b, const std::string& why = "");

  // The lines of a file as --config reads it, with the flags' names as they were added. Fails on an unknown or doubled one.
  struct Line {
    std::string name, value, place;
  };
  std::vector<Line> lines_of(const std::string& path);
  void take(const Line&);                            // as --config does
  std::string value(const std::string& name) const;  // as text
  // Every flag and its value as text, in the order added: for a checkpoint's record and for `--config` files.
  std::vector<std::pair<std::string, std::string>> values() const;
  // Sets a flag to a value that a resumed run recorded; `given` stays as it was.
  void set(const std::string& name, const std::string& value, const std::string& where);
  std::string help() const;  // wrapped to the page (log.h), sections, defaults

  // Flags that have no effect beside the others, where `idle` holds, and why: a sentence without its full stop.
  struct Idle {
    std::vector<std::string> flags;
    bool idle;
    std::string why;
  };
  // Fails where one of them was typed: it was meant to do something. A file may hold every flag, as run.conf does.
  void refuse_idle(const std::vector<Idle>& rules) const;

 private:
  struct Flag {
    std::string name, section, help, kind, fallback, alone, place;
    bool given = false, is_bool = false;
    std::function<std::string()> show;
    std::function<void(const std::string& text, const std::string& where)> read;
  };
  void choice(const std::string& name, const std::vector<std::string>& words, const std::string& help,
              std::function<std::string()> show, std::function<void(const std::string&)> take);
  static Flag named(const std::string& name, const std::string& kind, const std::string& help);
  void add_flag(Flag flag);
  Flag* find(const std::string& name);
  const Flag& at(const std::string& name) const;
  bool asks_for(const std::vector<std::string>& words, const std::string& word, const std::string& short_form);
  bool take_word(const std::string& word, bool flags_may_follow);
  std::string unknown(const std::string& name, bool in_file) const;
  // What a flag is to be set to; without a flag: the file that --config names. `place`: as above.
  struct Setting {
    Flag* flag;
    std::string value, where, place = {};
  };
  void apply(const Setting&);
  void refuse_other_dash(const std::string& word);
  Setting setting_at(const std::vector<std::string>& words, size_t* at);
  Setting setting_in(const std::string& line, const std::string& where);
  std::string program_, summary_, section_;
  std::vector<std::string> examples_;
  std::vector<Flag> flags_;
  std::string words_name_, words_help_;
  std::vector<std::string>* words_ = nullptr;
  size_t most_words_ = 0;
};

// Where the flags that a message names as --name stand, of those that a file has given: " (--vocab stands in run.conf:3)",
// else empty. Nobody has typed them.
std::string places_of_flags(const std::string& message);

// The part of a --help that shows commands to paste; "" where there are none.
std::string show_examples(const std::vector<std::string>& commands);
// The candidate nearest to `word` by edit distance, or "" where none is near.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);
