// Token ids without a header, as numpy.tofile and nanoGPT write them, made token files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer_flags.h"

struct ImportOptions {
  std::vector<std::string> files;
  std::string bits = "16";  // of an id
  std::string
      format;  // "ids": they are such, whatever they look like; empty: what seems to be something else is refused
  std::string out;
  int64_t shard_tokens = 100'000'000;
  TokenizerFlags tokenizer;  // which made the ids; without a path: GPT-2's, or Llama 3's where an id has 32 bits
};

// Writes OUT/NAME_000000.bin … for each file NAME.bin, tokenizer.json where one is named, and data.json. Everything that can
// be wrong with the inputs is found before anything is written. Cut short, the same command begins anew. Another import into
// the folder adds to it, and replaces files of the same names. Shows its progress on standard output.
void import_token_ids(const ImportOptions&);
