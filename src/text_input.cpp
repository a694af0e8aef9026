// Telling text from what is none by its first bytes.
#include "text_input.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <vector>

#include "error.h"
#include "json.h"
#include "program.h"
#include "shards.h"
#include "utf8.h"

using namespace std::string_view_literals;

namespace {

// --- Kinds of files

// How text comes out of something: by a filter, a command from standard input to standard output; by a command on the
// file; by a table of Python's pandas; or not at all.
enum class Way { none, filter, command, table };

struct Kind {
  const char* what = "";
  const char* advice = "";
  Way way = Way::none;
  const char* by = "";       // the filter, the command up to the file's name, or Python's expression for the table
  const char* becomes = "";  // how the name of what a filter or command writes ends
};

constexpr Kind packed(const char* what, const char* filter) { return {what, "unpack it", Way::filter, filter, ""}; }
constexpr Kind archive(const char* what, const char* command) { return {what, "unpack it", Way::command, command, ""}; }
constexpr Kind table(const char* what, const char* frame) {
  return {what, "make it .jsonl first", Way::table, frame, ".jsonl"};
}
constexpr Kind encoded(const char* what, const char* filter) {
  return {what, "make it UTF-8", Way::filter, filter, ".utf8"};
}

struct Magic {
  std::string_view bytes;
  size_t at;
  Kind kind;
};

// Of two that begin alike the longer one comes first.
const Magic kMagics[] = {
    {"\xff\xfe\0\0"sv, 0, encoded("UTF-32", "iconv -f UTF-32 -t UTF-8")},
    {"\0\0\xfe\xff"sv, 0, encoded("UTF-32", "iconv -f UTF-32 -t UTF-8")},
    {"\xff\xfe"sv, 0, encoded("UTF-16", "iconv -f UTF-16 -t UTF-8")},
    {"\xfe\xff"sv, 0, encoded("UTF-16", "iconv -f UTF-16 -t UTF-8")},
    {"\x1f\x8b"sv, 0, packed("packed (gzip)", "gzip -dc")},
    {"\x1f\x9d"sv, 0, packed("packed (compress)", "gzip -dc")},
    {"\x28\xb5\x2f\xfd"sv, 0, packed("packed (Zstandard)", "zstd -dc")},
    {"\xfd\x37zXZ\0"sv, 0, packed("packed (xz)", "xz -dc")},
    {"\x5d\0\0"sv, 0, packed("packed (LZMA)", "xz -dc")},
    {"LZIP\x01"sv, 0, packed("packed (lzip)", "lzip -dc")},
    {"\x04\x22\x4d\x18"sv, 0, packed("packed (LZ4)", "lz4 -dc")},
    {"\x02\x21\x4c\x18"sv, 0, packed("packed (LZ4)", "lz4 -dc")},
    {"1AY&SY"sv, 4, packed("packed (bzip2)", "bzip2 -dc")},
    {"7z\xbc\xaf\x27\x1c"sv, 0, archive("an archive (7z)", "7z x")},
    {"Rar!\x1a\x07"sv, 0, archive("an archive (RAR)", "unrar x")},
    {"ustar"sv, 257, archive("an archive (tar)", "tar -xf")},
    {"PAR1"sv, 0, table("Parquet", "pandas.read_parquet(sys.argv[1])")},
    {"ARROW1\0\0"sv, 0, table("an Arrow file", "pandas.read_feather(sys.argv[1])")},
    {"FEA1"sv, 0, table("a Feather file", "pandas.read_feather(sys.argv[1])")},
    {"ORC"sv, 0, table("ORC", "pandas.read_orc(sys.argv[1])")},
    {"%PDF-1."sv, 0, {"PDF", "take the text out of it", Way::command, "pdftotext", ".txt"}},
    {"Obj\x01"sv, 0, {"Avro"}},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, 0, {"an Office document", "save it as plain text"}},
    {"\x89HDF\r\n\x1a\n"sv, 0, {"HDF5"}},
    {"SQLite format 3\0"sv, 0, {"a database (SQLite)"}},
    {"GGUF"sv, 0, {"a model (GGUF)"}},
    {"\x89PNG\r\n\x1a\n"sv, 0, {"a picture (PNG)"}},
    {"\xff\xd8\xff"sv, 0, {"a picture (JPEG)"}},
    {"GIF8"sv, 0, {"a picture (GIF)"}},
    {"II*\0"sv, 0, {"a picture (TIFF)"}},
    {"MM\0*"sv, 0, {"a picture (TIFF)"}},
    {"RIFF"sv, 0, {"a sound, a picture or a film (RIFF)"}},
    {"ID3"sv, 0, {"a sound (MP3)"}},
    {"OggS"sv, 0, {"a sound (Ogg)"}},
    {"fLaC"sv, 0, {"a sound (FLAC)"}},
    {"ftyp"sv, 4, {"a film (MP4)"}},
    {"\x1a\x45\xdf\xa3"sv, 0, {"a film (Matroska)"}},
    {"\x7f\x45LF"sv, 0, {"a program"}},
};

bool is_printable(char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t'; }
bool has_zero(std::string_view head) { return head.find('\0') != head.npos; }

bool holds(std::string_view head, size_t at, std::string_view bytes) {
  return head.size() >= at && head.substr(at).starts_with(bytes);
}

// Of a magic number that is a few printable characters a text may begin with them, too: then a zero byte has to follow.
bool matches(const Magic& magic, std::string_view head) {
  constexpr size_t kTooLongForChance = 6;
  if (!holds(head, magic.at, magic.bytes)) return false;
  bool may_be_text = std::all_of(magic.bytes.begin(), magic.bytes.end(), is_printable);
  return !may_be_text || magic.bytes.size() >= kTooLongForChance || has_zero(head);
}

// What the first file in a .zip says about it.
Kind kind_of_zip(std::string_view head) {
  constexpr size_t kNameAt = 30, kLengthAt = 26;
  size_t length = head.size() > kNameAt ? (unsigned char)head[kLengthAt] : 0;
  std::string_view name = head.substr(std::min(kNameAt, head.size()), length);
  if (name.ends_with(".npy")) return {"arrays of NumPy"};
  if (name.ends_with("/data.pkl") || name.find("/.") != name.npos) return {"a model of PyTorch"};
  if (name == "mimetype" || name == "[Content_Types].xml")
    return {"a document (.docx, .odt, .epub)", "save it as plain text"};
  return archive("an archive (zip)", "unzip");
}

// Text of two bytes a character without a mark: Latin letters at one of the two places, zeros at the other.
Kind kind_of_zeros(std::string_view head) {
  auto is_latin = [](char c) { return is_printable(c) || (unsigned char)c >= 0xa0; };
  int64_t zeros[2] = {}, latin[2] = {};
  for (size_t i = 0; i + 1 < head.size(); i += 2)
    for (int place : {0, 1}) {
      zeros[place] += head[i + place] == 0;
      latin[place] += head[i + 1 - place] == 0 && is_latin(head[i + place]);
    }
  for (int zero : {0, 1})
    if (zeros[1 - zero] == 0 && zeros[zero] == latin[1 - zero] && zeros[zero] * 4 > int64_t(head.size()))
      return zero ? encoded("UTF-16 (little-endian, without a mark)", "iconv -f UTF-16LE -t UTF-8")
                  : encoded("UTF-16 (big-endian, without a mark)", "iconv -f UTF-16BE -t UTF-8");
  return {};
}

// By its magic number, its mark or its zeros; a `what` of "" where it may be text.
Kind kind_of(std::string_view head) {
  for (const Magic& magic : kMagics)
    if (matches(magic, head)) return magic.kind;
  if (head.starts_with("PK\x03\x04"sv) || head.starts_with("PK\x05\x06"sv)) return kind_of_zip(head);
  if (head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return {"a pickle of Python"};
  if (holds(head, 5, "\0\0\0{"sv)) return {"a model (safetensors)"};
  if (holds(head, 0, "\xff\xff\xff\xff"sv) && holds(head, 8, "\x10\0\0\0"sv))
    return table("a stream of Arrow", "pyarrow.ipc.open_stream(open(sys.argv[1],\"rb\")).read_pandas()");
  return has_zero(head) ? kind_of_zeros(head) : Kind{};
}

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
std::string result_name(const Kind& kind, const std::string& path) {
  std::string stem = stem_of(path), ending = path.substr(stem.size());
  if (kind.way != Way::filter) return stem + kind.becomes;
  if (*kind.becomes) return stem + kind.becomes + ending;
  for (const char* known : {".gz", ".Z", ".zst", ".zstd", ".xz", ".lzma", ".lz", ".lz4", ".bz2"})
    if (ending == known) return stem;
  return path + ".txt";
}

// What to type, or ""; of standard input only what to put before it is known.
std::string command_for(const Kind& kind, const std::string& path) {
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

std::string advice_for(const Kind& kind, const std::string& path) {
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
  bool narrow = header.find("'<u2'") != header.npos;
  bool wide = header.find("'<u4'") != header.npos || header.find("'<i4'") != header.npos;
  if (path == "-" || (!narrow && !wide)) return "an array of NumPy";
  std::string raw = stem_of(path) + ".raw";
  return text(
      "an array of NumPy: if it holds token ids, python3 -c 'import numpy,sys;numpy.load(sys.argv[1]).tofile(sys."
      "argv[2])' %s %s && %s",
      shell_word(path).c_str(), shell_word(raw).c_str(), import_command(narrow ? 16 : 32, raw).c_str());
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

// The first line, if it is an object and the next one begins as an object does.
bool is_object_a_line(std::string_view head, Json* first) {
  head = without_space(head);
  size_t end = head.find('\n');
  if (!head.starts_with('{') || end == head.npos || !without_space(head.substr(end)).starts_with('{')) return false;
  try {
    *first = parse_json(std::string(head.substr(0, end)), "");
    return true;
  } catch (const Error&) {
    return false;
  }
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
std::string data_command(const std::string& path, const Json& first, const std::string& tokenizer) {
  std::string command = "./tokenize data " + shell_word(path), field = likely_field(first);
  if (!is_named_jsonl(path)) command += " --format jsonl";
  if (field != "text") command += " --field " + shell_word(field);
  if (!tokenizer.empty()) command += " --tokenizer " + shell_word(tokenizer);
  return command + " --out " + shell_word(stem_of(path.substr(path.rfind('/') + 1)) + "_tokens");
}

Json first_object(std::string_view head) {
  std::string_view line = without_space(head);
  try {
    return parse_json(std::string(line.substr(0, line.find('\n'))), "");
  } catch (const Error&) {
    return {};
  }
}

constexpr const char* kAsItIs = "; --format text takes it as it is";

void refuse_json(std::string_view head, const std::string& path, TextUse use, const std::string& tokenizer) {
  std::string name = shown(path);
  bool named_json = lower_ending(path) == ".json";
  if (is_array_of_documents(head, named_json)) {
    std::string lines = stem_of(path) + ".jsonl";
    std::string how = path == "-" ? "" : text(" <%s >%s", shell_word(path).c_str(), shell_word(lines).c_str());
    fail(
        "%s is a JSON array: make it JSONL, an object a line, with python3 -c 'import json,sys;[print(json.dumps(x if "
        "isinstance(x,dict) else {\"text\":x})) for x in json.load(sys.stdin)]'%s%s",
        name.c_str(), how.c_str(), kAsItIs);
  }
  Json first;
  bool structured = is_object_a_line(head, &first);
  if (use == TextUse::documents && structured)
    fail("%s seems to be JSONL, an object a line: say --format jsonl%s%s", name.c_str(),
         likely_field(first) == "text" ? "" : (" --field " + shell_word(likely_field(first))).c_str(), kAsItIs);
  if (use != TextUse::training) return;
  if (structured || is_named_jsonl(path))
    fail("%s is JSONL, an object a line: make token files of it to train on, %s%s", name.c_str(),
         data_command(path, structured ? first : first_object(head), tokenizer).c_str(), kAsItIs);
  if (named_json && without_space(head).starts_with('{'))
    fail("%s is JSON, not text: write its texts to a file of text, or to JSONL, an object a line%s", name.c_str(),
         kAsItIs);
}

}  // namespace

bool is_named_jsonl(const std::string& path) {
  return lower_ending(path) == ".jsonl" || lower_ending(path) == ".ndjson";
}

void require_text(std::string_view head, const std::string& path, TextUse use, const std::string& tokenizer) {
  head = without_mark(head.substr(0, kTextHead));
  std::string name = shown(path), as_it_is = use == TextUse::prompts ? "" : kAsItIs;
  if (Kind kind = kind_of(head); *kind.what)
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
  refuse_json(head, path, use, tokenizer);
}

std::string describe_no_token_file(std::string_view head, const std::string& path) {
  Kind kind = kind_of(head);
  if (*kind.what) return text("it is %s", kind.what);
  if (std::string numpy = describe_numpy(head, path); !numpy.empty()) return "it is " + numpy;
  if (!has_zero(head)) return head.empty() ? "" : "it looks like text, which ./tokenize data makes token files of";
  std::string ids = describe_ids(head, path);
  return ids.empty() ? "" : "it is " + ids;
}
