// A folder of token files that ./tokenize made, and its data.json, which says what has to be in it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "json.h"
#include "tokenizer.h"

// What data.json says of the token files.
struct TokenFolder {
  bool complete = true;
  bool imported = false;                                       // by ./tokenize import
  bool masked = false;                                         // each has a mask
  std::string tokenizer;                                       // "257 ids, checksum 89503bc4"; empty: none was named
  std::string end_token;                                       // empty: not recorded
  std::vector<std::pair<std::string, int64_t>> files;          // name and tokens
  std::vector<std::pair<std::string, std::string>> checksums;  // of these and of masks: CRC-32C; empty: not recorded
};

// Fails where data.json is damaged. A folder without one, as of llm.c's files, has an empty list of files.
TokenFolder read_token_folder(const std::string& folder);
std::string describe_tokenizer(const Tokenizer&);  // as data.json has it

// Holds the folder against its data.json: fails where its preparation was not finished, where a file is missing, has
// another number of tokens, or lies there that is not listed. Folders without data.json are taken as they are.
void require_as_prepared(const std::string& folder);
// Reads all files of a folder that is finished, and puts their checksums into its data.json.
void record_checksums(const std::string& folder);
// Reads them again: fails where one has other bytes. What has no checksums is taken as it is.
void require_same_bytes(const std::string& folder);
// Fails where the tokens of a folder were made by another tokenizer. `name` is what it is called in messages.
void require_tokenizer_of(const std::string& folder, const Tokenizer&, const std::string& name);
