// What a file is that is given as a tokenizer: by its structure, whatever its name and whatever tokens it holds.
#pragma once
#include <string>
#include <string_view>

#include "file_kind.h"
#include "json.h"

enum class TokenizerKind {
  tokenizer_json,  // Hugging Face's: a JSON object whose "model" is an object
  vocabulary,      // GPT-2's encoder.json or vocab.json: names and ids, most bytes' among them
  merges,          // GPT-2's vocab.bpe or merges.txt: a heading, or two bytes' names on the first line
  ranks,           // tiktoken's: lines of base64 and a number
  // No tokenizers, but what may be given in place of one:
  empty,
  tokenizer_config,
  special_tokens_map,
  added_tokens,
  model_config,
  generation_config,
  weights_index,
  tekken,
  json_object,
  json_array,
  json_lines,
  wordpiece,
  sentencepiece,
  web_page,
  lfs_pointer,
  no_text,  // known by its first bytes (file_kind.h)
  binary,
  text,
};
const char* name_of(TokenizerKind);  // "a tokenizer_config.json"

struct TokenizerFile {
  std::string path;
  std::string bytes;  // without a byte-order mark
  TokenizerKind kind;
  Json json;              // of an object
  FileKind no_text = {};  // of what is known to be none
};

TokenizerFile look_at_tokenizer(const std::string& path);  // fails where the file cannot be read, or is broken JSON
Json read_beside_tokenizer(const std::string& path);  // an object in JSON, such as a tokenizer_config.json
[[noreturn]] void refuse_tokenizer(const TokenizerFile&);  // of what is no tokenizer: says what it seems to be
