#include "tokenizer_kind.h"

#include <algorithm>
#include <cstring>

#include "byte_characters.h"
#include "error.h"
#include "files.h"

namespace {

using Kind = TokenizerKind;

// --- JSON

bool has(const Json& object, const char* name, Json::Kind kind) {
  const Json* member = object.find(name);
  return member && member->kind == kind;
}

// A byte-level vocabulary names most bytes.
bool names_bytes(const Json& object) {
  auto is_byte = [](const auto& member) {
    std::optional<std::string> bytes = member.first.size() <= 2 ? from_characters(member.first) : std::nullopt;
    return bytes && bytes->size() == 1 && member.second.kind == Json::Kind::number;
  };
  return std::count_if(object.members.begin(), object.members.end(), is_byte) >= 128;
}

bool has_special_token(const Json& object) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token", "additional_special_tokens"})
    for (Json::Kind kind : {Json::Kind::string, Json::Kind::object, Json::Kind::array})
      if (has(object, name, kind)) return true;
  return false;
}

Kind kind_of_object(const Json& root) {
  auto has = [&](const char* name, Json::Kind kind) { return ::has(root, name, kind); };
  auto is_number = [](const auto& member) { return member.second.kind == Json::Kind::number; };
  if (has("model", Json::Kind::object)) return Kind::tokenizer_json;
  if (names_bytes(root)) return Kind::vocabulary;
  if (has("pre_tokenizer", Json::Kind::object) || has("added_tokens", Json::Kind::array)) return Kind::tokenizer_json;
  if (has("tokenizer_class", Json::Kind::string) || has("added_tokens_decoder", Json::Kind::object) ||
      has("model_max_length", Json::Kind::number))
    return Kind::tokenizer_config;
  if (has("model_type", Json::Kind::string) || has("architectures", Json::Kind::array)) return Kind::model_config;
  if (has("weight_map", Json::Kind::object)) return Kind::weights_index;
  if (has("transformers_version", Json::Kind::string)) return Kind::generation_config;
  if (has_special_token(root)) return Kind::special_tokens_map;
  if (has("vocab", Json::Kind::array)) return Kind::tekken;
  if (!root.members.empty() && std::all_of(root.members.begin(), root.members.end(), is_number))
    return Kind::added_tokens;
  return Kind::json_object;
}

std::string_view first_line(std::string_view bytes) {
  size_t begin = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
  std::string_view line = bytes.substr(begin, bytes.find('\n', begin) - begin);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_json(std::string_view bytes) {
  try {
    parse_json(std::string(bytes), "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Is the first line JSON, and is there another one?
bool is_json_lines(const std::string& bytes) {
  std::string_view line = first_line(bytes);
  size_t behind = size_t(line.data() - bytes.data()) + line.size();
  return bytes.find_first_not_of(" \t\r\n", behind) != bytes.npos && is_json(line);
}

void look_at_object(TokenizerFile* file) {
  try {
    file->json = parse_json(file->bytes, file->path);
    file->kind = kind_of_object(file->json);
  } catch (const Error&) {
    file->kind = Kind::json_lines;
    if (!is_json_lines(file->bytes)) throw;
  }
}

// --- Lines

bool is_number(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return !word.empty() && word.find_first_not_of("0123456789") == word.npos;
}

bool is_base64(std::string_view word) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  return !word.empty() && word.size() % 4 == 0 && word.find_first_not_of(digits) == word.npos;
}

bool is_rank(std::string_view line) {
  size_t space = std::min(line.find(' '), line.size());
  return is_base64(line.substr(0, space)) && space < line.size() && is_number(line.substr(space + 1));
}

// The first merge that is learnt is of two bytes.
bool is_first_merge(std::string_view line) {
  size_t space = std::min(line.find(' '), line.size());
  auto is_byte = [](std::string_view name) {
    return name.size() <= 2 && from_characters(name).value_or("").size() == 1;
  };
  return space < line.size() && is_byte(line.substr(0, space)) && is_byte(line.substr(space + 1));
}

// Most of the first lines are ranks: one that is damaged is named as what it is.
bool has_ranks(std::string_view bytes) {
  constexpr int kLines = 32;
  int ranks = 0, lines = 0;
  for (; lines < kLines; ++lines) {
    std::string_view line = first_line(bytes);
    if (line.empty()) break;
    ranks += is_rank(line);
    bytes.remove_prefix(size_t(line.data() - bytes.data()) + line.size());
  }
  return 2 * ranks > lines;
}

Kind kind_of_lines(std::string_view bytes) {
  std::string_view line = first_line(bytes);
  if (line.starts_with("#version") || is_first_merge(line)) return Kind::merges;
  if (has_ranks(bytes)) return Kind::ranks;
  if (line.starts_with("version https://git-lfs")) return Kind::lfs_pointer;
  if (line == "[PAD]" || line == "[UNK]") return Kind::wordpiece;
  for (const char* tag : {"<!doctype html", "<!DOCTYPE html", "<html"})
    if (line.starts_with(tag)) return Kind::web_page;
  return Kind::text;
}

// --- Bytes

// The first piece, a message whose first field is a string and whose second is a float.
bool is_sentencepiece(std::string_view bytes) {
  if (bytes.size() < 8 || bytes[0] != 0x0a || bytes[2] != 0x0a) return false;
  size_t piece = 4 + size_t(static_cast<unsigned char>(bytes[3]));
  return piece < bytes.size() && bytes[piece] == 0x15;
}

void look_at_bytes(TokenizerFile* file) {
  if (file->bytes.starts_with("\xef\xbb\xbf")) file->bytes.erase(0, 3);
  size_t first = file->bytes.find_first_not_of(" \t\r\n");
  std::string_view head = std::string_view(file->bytes).substr(0, 64 << 10);
  file->kind = first == std::string::npos      ? Kind::empty
               : is_sentencepiece(file->bytes) ? Kind::sentencepiece
               : *file_kind(head).what         ? Kind::no_text
               : has_zero(head)                ? Kind::binary
                                               : Kind::text;
  if (file->kind == Kind::no_text) file->no_text = file_kind(head);
  if (file->kind != Kind::text) return;
  if (file->bytes[first] == '{') return look_at_object(file);
  file->kind = kind_of_lines(file->bytes);
  if (file->kind == Kind::text && file->bytes[first] == '[' && is_json(file->bytes)) file->kind = Kind::json_array;
}

// --- What to say

struct Named {
  Kind kind;
  const char *name, *instead;
};
constexpr const char kBeside[] = "give the tokenizer.json beside it, or their folder";
constexpr const char kAny[] = "give a tokenizer.json, tiktoken's ranks, or GPT-2's vocab.bpe and encoder.json";
constexpr const char kOfModel[] = "give the tokenizer.json that its model came with";
constexpr const char kAgain[] = "download the file itself";
constexpr Named kNames[] = {
    {Kind::tokenizer_json, "a tokenizer.json", ""},
    {Kind::vocabulary, "GPT-2's encoder.json, or a vocab.json", ""},
    {Kind::merges, "GPT-2's vocab.bpe, or a merges.txt", ""},
    {Kind::ranks, "tiktoken's ranks", ""},
    {Kind::empty, "empty", kAny},
    {Kind::tokenizer_config, "a tokenizer_config.json", kBeside},
    {Kind::special_tokens_map, "a special_tokens_map.json", kBeside},
    {Kind::added_tokens, "names and numbers, such as an added_tokens.json, and no byte-level vocabulary", kBeside},
    {Kind::model_config, "a model's config.json", kBeside},
    {Kind::generation_config, "a generation_config.json", kBeside},
    {Kind::weights_index, "an index of a model's weights", kBeside},
    {Kind::tekken, "Mistral's tekken.json", kOfModel},
    {Kind::json_object, "JSON, but no tokenizer", kAny},
    {Kind::json_array, "a JSON array, and no tokenizer", kAny},
    {Kind::json_lines, "JSON lines, such as documents to train on", kAny},
    {Kind::wordpiece, "a vocabulary of WordPiece, as BERT has it, and not byte-level BPE", kAny},
    {Kind::sentencepiece, "a model of SentencePiece, and not byte-level BPE", kAny},
    {Kind::web_page, "a web page", kAgain},
    {Kind::lfs_pointer, "a pointer of Git LFS", "fetch the file itself: git lfs pull"},
    {Kind::no_text, "no text", kAny},
    {Kind::binary, "binary data, and no tokenizer", kAny},
    {Kind::text, "text, and no tokenizer", kAny},
};

const Named& named(Kind kind) {
  return *std::find_if(std::begin(kNames), std::end(kNames), [&](const Named& n) { return n.kind == kind; });
}

}  // namespace

const char* name_of(TokenizerKind kind) { return named(kind).name; }

TokenizerFile look_at_tokenizer(const std::string& path) {
  TokenizerFile file = {.path = path, .bytes = read_file(path), .kind = TokenizerKind::text, .json = {}, .no_text = {}};
  look_at_bytes(&file);
  return file;
}

Json read_beside_tokenizer(const std::string& path) {
  TokenizerFile file = look_at_tokenizer(path);
  if (file.json.kind != Json::Kind::object)
    fail("%s should hold an object in JSON, but seems to be %s", path.c_str(),
         file.kind == TokenizerKind::no_text ? file.no_text.what : name_of(file.kind));
  return file.json;
}

void refuse_tokenizer(const TokenizerFile& file) {
  if (file.kind == TokenizerKind::empty) fail("%s is empty: there is no tokenizer in it", file.path.c_str());
  const char* line = file.kind == TokenizerKind::text ? ":1" : "";
  const char *name = named(file.kind).name, *instead = named(file.kind).instead;
  if (file.kind == TokenizerKind::no_text) name = file.no_text.what;
  if (*file.no_text.advice) instead = file.no_text.advice;
  fail("%s%s: this seems to be %s: %s", file.path.c_str(), line, name, instead);
}
