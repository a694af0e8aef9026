// The door that every text goes through, whichever program reads it: what its first bytes show it to be, if that is not
// text. They are judged by magic numbers, by the mark of UTF-16 or UTF-32, by a zero byte and by the structure of JSON;
// never by whether they are UTF-8, for any bytes may be trained on.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

constexpr size_t kTextHead = 64 << 10;  // bytes of a text that are looked at, or all where it is shorter

// Who reads it, which decides what is refused and what a refusal says to do.
enum class TextUse {
  training,    // ./train and ./eval: one text
  documents,   // ./tokenize: documents between separators
  json_lines,  // ./tokenize: an object a line, in which a line with a zero byte is a bad line like any other
  prompts  // ./sample: a prompt may be any bytes, so only what is something else by its magic number or mark is refused
};

// Fails where a text that begins so is something else: names what, and a command that makes text of it. `path` "-" is
// standard input; `flags`, such as " --vocab 4096", are those of the tokenizer in the command that makes token files.
void require_text(std::string_view head, const std::string& path, TextUse, const std::string& flags = "");

// Does the name say that it has an object a line (.jsonl, .ndjson)?
bool is_named_jsonl(const std::string& path);

// What a file that should hold tokens seems to be instead, as a clause that ends in what to do; empty: unknown.
std::string describe_no_token_file(std::string_view head, const std::string& path);
// What a file that should hold ids without a header seems to be instead, as a clause; empty: it may be ids.
std::string describe_no_raw_ids(std::string_view head, const std::string& path);
