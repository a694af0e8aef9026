// A folder of token files that ./tokenize made, and its data.json, which says what has to be in it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "json.h"
#include "shards.h"
#include "tokenizer.h"

// What data.json says of the token files.
struct TokenFolder {
  bool complete = true;
  bool imported = false;                               // by ./tokenize import
  bool masked = false;                                 // each has a mask
  std::string tokenizer;                               // "257 ids, checksum 89503bc4"; empty: none was named
  std::string end_token;                               // empty: not recorded
  std::vector<std::pair<std::string, int64_t>> files;  // name and tokens
  Checksums checksums;                                 // of these and of masks; those that lack are not recorded
  std::vector<std::string> command;  // that goes on: ./tokenize's words but --out; empty: not recorded
};

// Fails where data.json is damaged. A folder without one, as of llm.c's files, has an empty list of files.
TokenFolder read_token_folder(const std::string& folder);
// As data.json has them.
std::string describe_tokenizer(const Tokenizer&);
std::string write_crc(uint32_t);  // "89abcdef"
uint32_t read_crc(const Json&, const std::string& name, const std::string& path);
Json write_checksums(const Checksums&);
Json write_command(const std::vector<std::string>& words);
Checksums read_checksums(const Json& data_json, const std::string& path);  // empty where there are none
// Adds a flag to the words of a command.
void add_flag(std::vector<std::string>& command, const std::string& name, const std::string& value);

// Holds the folder against its data.json: fails where its preparation was not finished, where a file is missing, has
// another number of tokens, or lies there that is not listed, and where none is. Folders without data.json are taken as
// they are.
void require_as_prepared(const std::string& folder);
// Reads all files, and returns the paths of those that have other bytes than data.json has checksums of.
std::vector<std::string> files_with_other_bytes(const std::string& folder);
// Fails where a folder's tokens were made by a tokenizer, and none lies in it.
void require_tokenizer_in(const std::string& folder);
// Fails where the tokens of a folder were made by another tokenizer. `name` is what it is called in messages.
void require_tokenizer_of(const std::string& folder, const Tokenizer&, const std::string& name);
