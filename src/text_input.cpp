// Telling text from what is none by its first bytes.
#include "text_input.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <vector>

#include "error.h"
#include "file_kind.h"
#include "json.h"
#include "program.h"
#include "shards.h"
#include "utf8.h"

using namespace std::string_view_literals;

namespace {

// --- Commands

std::string shown(const std::string& path) { return path == "-" ? "standard input" : path; }

// Where the name's last part begins to be an ending; its size where there is none.
size_t ending_of(const std::string& path) {
  size_t name = path.rfind('/') + 1, dot = path.rfind('.');  // npos + 1 = 0
  return dot == path.npos || dot <= name ? path.size() : dot;
}

std::string lower_ending(const std::string& path) {
  std::string ending = path.substr(ending_of(path));
  for (char& c : ending) c = char(std::tolower((unsigned char)c));
  return ending;
}

std::string stem_of(const std::string& path) { return path.substr(0, ending_of(path)); }

// The name of what comes out of a file.
std::string result_name(const FileKind& kind, const std::string& path) {
  std::string stem = stem_of(path), ending = path.substr(stem.size());
  if (kind.way != Way::filter) return stem + kind.becomes;
  if (*kind.becomes) return stem + kind.becomes + ending;
  for (const char* known : {".gz", ".Z", ".zst", ".zstd", ".xz", ".lzma", ".lz", ".lz4", ".bz2"})
    if (ending == known) return stem;
  return path + ".txt";
}

// What to type, or ""; of standard input only what to put before it is known.
std::string command_for(const FileKind& kind, const std::string& path) {
  std::string file = shell_word(path), result = shell_word(result_name(kind, path));
  bool piped = path == "-";
  switch (kind.way) {
    case Way::filter:
      return piped ? text("through %s", kind.by) : text("%s <%s >%s", kind.by, file.c_str(), result.c_str());
    case Way::command:
      return piped ? "" : text("%s %s", kind.by, file.c_str()) + (*kind.becomes ? " " + result : "");
    case Way::table:
      if (piped) return "";
      return text(
          "python3 -c 'import pandas,pyarrow.ipc,sys;%s.to_json(sys.argv[2],orient=\"records\",lines=True)' %s %s",
          kind.by, file.c_str(), result.c_str());
    case Way::none:
      return "";
  }
  return "";
}

std::string advice_for(const FileKind& kind, const std::string& path) {
  if (!*kind.advice) return "";
  std::string command = command_for(kind, path);
  return text(": %s%s", kind.advice, command.empty() ? "" : ((path == "-" ? " " : ", ") + command).c_str());
}

// --- Token ids

// The bits of ids without a header, as numpy.tofile writes them: below the size of GPT-2's vocabulary, or of a large
// one, and not mostly letters, which are such numbers, too. 0: it does not look like ids.
int bits_of_raw_ids(std::string_view head) {
  constexpr uint32_t kGpt2 = 50257, kLarge = 1 << 18;
  if (std::count_if(head.begin(), head.end(), is_printable) * 4 > int64_t(head.size()) * 3) return 0;
  auto all_below = [&](auto zero, uint32_t most) {
    using Id = decltype(zero);
    if (head.size() < 4 * sizeof(Id) || (head.size() < kTextHead && head.size() % sizeof(Id) != 0)) return false;
    bool any = false;
    for (size_t at = 0; at + sizeof(Id) <= head.size(); at += sizeof(Id)) {
      Id id;
      std::memcpy(&id, &head[at], sizeof id);
      if (id >= most) return false;
      any |= id > 0;
    }
    return any;
  };
  return all_below(uint32_t(), kLarge) ? 32 : all_below(uint16_t(), kGpt2) ? 16 : 0;
}

std::string import_command(int bits, const std::string& path) {
  return "./tokenize import " + (path == "-" ? "FILE" : shell_word(path)) + (bits == 32 ? " --bits 32" : "") +
         " --out FOLDER";
}

// An array of NumPy in a file of its own; its header names the kind of its numbers.
std::string describe_numpy(std::string_view head, const std::string& path) {
  if (!head.starts_with("\x93NUMPY"sv)) return "";
  std::string_view header = head.substr(0, 128);
  auto is_of = [&](std::initializer_list<const char*> kinds) {
    return std::any_of(kinds.begin(), kinds.end(), [&](const char* kind) { return header.find(kind) != header.npos; });
  };
  bool narrow = is_of({"'<u2'", "'<i2'"}), wide = is_of({"'<u4'", "'<i4'"}), longer = is_of({"'<u8'", "'<i8'"});
  if (path == "-" || (!narrow && !wide && !longer)) return "an array of NumPy";
  std::string raw = stem_of(path) + ".raw";
  return text(
      "an array of NumPy: if it holds token ids, python3 -c 'import numpy,sys;numpy.load(sys.argv[1])%s.tofile(sys."
      "argv[2])' %s %s && %s",
      longer ? ".astype(\"u4\")" : "", shell_word(path).c_str(), shell_word(raw).c_str(),
      import_command(narrow ? 16 : 32, raw).c_str());
}

// As a clause for a message; "" where it does not look like ids.
std::string describe_ids(std::string_view head, const std::string& path) {
  int bits = bits_of_raw_ids(head);
  if (bits == 0) return "";
  return text("perhaps raw token ids of %d bits without a header, as nanoGPT has them: ", bits) +
         import_command(bits, path) + " gives them one";
}

bool is_token_file(std::string_view head) {
  for (int bits : {16, 32})
    if (head.starts_with(shard_header(bits, 0).substr(0, 8))) return true;
  return false;
}

// --- JSON

constexpr std::string_view kSpace = " \t\r\n";

std::string_view without_space(std::string_view bytes) {
  bytes.remove_prefix(std::min(bytes.find_first_not_of(kSpace), bytes.size()));
  return bytes;
}

// An array of objects, by its beginning; of strings where the name says that it is JSON.
bool is_array_of_documents(std::string_view head, bool named_json) {
  head = without_space(head);
  if (!head.starts_with('[')) return false;
  head = without_space(head.substr(1));
  if (head.starts_with('{')) return without_space(head.substr(1)).starts_with('"');
  return named_json && head.starts_with('"');
}

// A string or a value that is neither a string nor ended in the head: `*at` is behind it, npos where the head ends before.
std::string take_string(std::string_view head, size_t* at) {
  size_t begin = ++*at;
  while (*at < head.size() && head[*at] != '"') *at += head[*at] == '\\' ? 2 : 1;
  std::string string(head.substr(begin, *at - begin));
  *at = *at < head.size() ? *at + 1 : head.npos;
  return string;
}
void skip_value(std::string_view head, size_t* at) {
  for (int depth = 0; *at < head.size();) {
    char c = head[*at];
    if (c == '"') {
      take_string(head, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}')) return;
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    ++*at;
  }
  *at = head.npos;
}

// The strings of an object that goes on behind the head, as far as they are seen; false where it is none.
bool begins_object(std::string_view head, Json* strings) {
  *strings = Json::object();
  auto next_is = [&](char c, size_t* at) {
    *at = head.find_first_not_of(kSpace, *at);
    return *at < head.size() && head[*at] == c;
  };
  size_t at = 0;
  if (!next_is('{', &at)) return false;
  do {
    if (!next_is('"', &++at)) return at == head.npos;
    std::string name = take_string(head, &at);
    if (at == head.npos) return true;
    if (!next_is(':', &at)) return at == head.npos;
    if (next_is('"', &++at))
      strings->members.emplace_back(name, take_string(head, &at));
    else
      skip_value(head, &at);
    if (at == head.npos) return true;
  } while (next_is(',', &at));
  return at == head.npos;
}

bool parses(std::string_view line, Json* value) {
  try {
    *value = parse_json(std::string(line), "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The first line, which begins with `bracket`, if it is JSON and the next one begins alike; or its beginning, where an
// object is longer than the head. A line may end in a carriage return alone.
bool is_json_a_line(std::string_view head, char bracket, Json* first) {
  std::string_view rest = without_space(head);
  if (!rest.starts_with(bracket)) return false;
  size_t end = rest.find_first_of("\r\n");
  if (end == rest.npos) return bracket == '{' && head.size() == kTextHead && begins_object(rest, first);
  return without_space(rest.substr(end)).starts_with(bracket) && parses(rest.substr(0, end), first);
}

// Does the first line hold a brace alone, and the next one begin with a member's name?
bool is_object_of_lines(std::string_view head) {
  head = without_space(head);
  size_t line = head.find_first_not_of(" \t", 1), name = head.find_first_not_of(kSpace, 1);
  if (!head.starts_with('{') || name == head.npos || name == line || head[name] != '"') return false;
  take_string(head, &name);
  name = name == head.npos ? name : head.find_first_not_of(kSpace, name);
  return name != head.npos && head[name] == ':';
}

// The member that most likely is the text: `text`, else the longest string.
std::string likely_field(const Json& object) {
  std::string best = "text";
  size_t longest = 0;
  for (const auto& [name, value] : object.members) {
    if (value.kind != Json::Kind::string) continue;
    if (name == "text") return name;
    if (value.string.size() > longest) best = name, longest = value.string.size();
  }
  return best;
}

// What makes token files of JSONL.
std::string data_command(const std::string& path, const Json& first, const std::string& flags) {
  std::string command = "./tokenize data " + shell_word(path), field = likely_field(first);
  if (!is_named_jsonl(path)) command += " --format jsonl";
  if (field != "text") command += " --field " + shell_word(field);
  return command + flags + " --out " + shell_word(stem_of(path.substr(path.rfind('/') + 1)) + "_tokens");
}

Json first_object(std::string_view head) {
  Json first;
  std::string_view line = without_space(head);
  return parses(line.substr(0, line.find('\n')), &first) || begins_object(line, &first) ? first : Json();
}

constexpr const char* kAsItIs = "; --format text takes it as it is";

// JSON that has documents in another form than an object a line.
void refuse_other_json(std::string_view head, const std::string& path) {
  std::string name = shown(path), stem = stem_of(path), file = shell_word(path);
  bool named_json = lower_ending(path) == ".json", piped = path == "-";
  if (is_array_of_documents(head, named_json))
    fail(
        "%s is a JSON array: make it JSONL, an object a line, with python3 -c 'import json,sys;[print(json.dumps(x if "
        "isinstance(x,dict) else {\"text\":x})) for x in json.load(sys.stdin)]'%s%s",
        name.c_str(), piped ? "" : text(" <%s >%s", file.c_str(), shell_word(stem + ".jsonl").c_str()).c_str(),
        kAsItIs);
  Json first;
  if (is_json_a_line(head, '[', &first))
    fail("%s holds a JSON array a line: make it JSONL, an object a line, whose text is one of its strings%s",
         name.c_str(), kAsItIs);
  if (is_object_of_lines(head) && !named_json)
    fail("%s is JSON whose objects take several lines: make it JSONL, an object a line, with jq -c .%s%s", name.c_str(),
         piped ? "" : text(" <%s >%s", file.c_str(), shell_word(stem + ".lines.jsonl").c_str()).c_str(), kAsItIs);
}

void refuse_json(std::string_view head, const std::string& path, TextUse use, const std::string& flags) {
  std::string name = shown(path);
  refuse_other_json(head, path);
  Json first;
  bool structured = is_json_a_line(head, '{', &first);
  if (structured && use != TextUse::training && head.find('\n') == head.npos && head.find('\r') != head.npos)
    fail("%s is JSONL whose lines end in a carriage return alone: make these newlines, with tr '\\r' '\\n'%s%s",
         name.c_str(),
         path == "-"
             ? ""
             : text(" <%s >%s", shell_word(path).c_str(), shell_word(stem_of(path) + ".lines.jsonl").c_str()).c_str(),
         kAsItIs);
  if (use == TextUse::documents && structured)
    fail("%s seems to be JSONL, an object a line: say --format jsonl%s%s", name.c_str(),
         likely_field(first) == "text" ? "" : (" --field " + shell_word(likely_field(first))).c_str(), kAsItIs);
  if (use != TextUse::training) return;
  if (structured || is_named_jsonl(path))
    fail("%s is JSONL, an object a line: make token files of it to train on, %s%s", name.c_str(),
         data_command(path, structured ? first : first_object(head), flags).c_str(), kAsItIs);
  if (lower_ending(path) == ".json" && without_space(head).starts_with('{'))
    fail("%s is JSON, not text: write its texts to a file of text, or to JSONL, an object a line%s", name.c_str(),
         kAsItIs);
}

}  // namespace

bool is_named_jsonl(const std::string& path) {
  return lower_ending(path) == ".jsonl" || lower_ending(path) == ".ndjson";
}

void require_text(std::string_view head, const std::string& path, TextUse use, const std::string& flags) {
  head = without_mark(head.substr(0, kTextHead));
  std::string name = shown(path), as_it_is = use == TextUse::prompts ? "" : kAsItIs;
  if (FileKind kind = file_kind(head); *kind.what)
    fail("%s is %s%s%s%s", name.c_str(), kind.what, *kind.advice ? "" : ", not text", advice_for(kind, path).c_str(),
         as_it_is.c_str());
  if (is_token_file(head))
    fail("%s is a token file, not text: ./train --data reads it under a name that ends in .bin", name.c_str());
  if (std::string numpy = describe_numpy(head, path); !numpy.empty())
    fail("%s is %s%s", name.c_str(), numpy.c_str(), as_it_is.c_str());
  if (use == TextUse::prompts) return;
  if (use != TextUse::json_lines && has_zero(head)) {
    std::string ids = describe_ids(head, path);
    fail("%s is %s%s", name.c_str(),
         ids.empty() ? text("not text: byte %zu is zero", head.find('\0')).c_str() : ("not text, but " + ids).c_str(),
         kAsItIs);
  }
  refuse_json(head, path, use, flags);
}

std::string describe_no_token_file(std::string_view head, const std::string& path) {
  FileKind kind = file_kind(head);
  if (*kind.what) return text("it is %s", kind.what);
  if (std::string numpy = describe_numpy(head, path); !numpy.empty()) return "it is " + numpy;
  if (!has_zero(head)) return head.empty() ? "" : "it looks like text, which ./tokenize data makes token files of";
  std::string ids = describe_ids(head, path);
  return ids.empty() ? "" : "it is " + ids;
}

std::string describe_no_raw_ids(std::string_view head, const std::string& path) {
  FileKind kind = file_kind(head);
  if (*kind.what) return text("it is %s%s", kind.what, advice_for(kind, path).c_str());
  if (std::string numpy = describe_numpy(head, path); !numpy.empty()) return "it is " + numpy;
  bool all_letters = std::all_of(head.begin(), head.end(), [](char c) { return is_printable(c) || (c & 0x80); });
  if (!all_letters ||
      !is_utf8(head.substr(0, head.size() < kTextHead ? head.size() : character_border(head, head.size() - 1))))
    return "";
  return "it looks like text, which ./tokenize data makes token files of";
}
