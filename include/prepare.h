// From text to shards: documents out of files, folders or standard input, tokenized on all threads, written as token
// files of equal size, the validation split by a hash of the document. Can be stopped at any moment and goes on with the
// same bytes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer.h"

struct PrepareOptions {
  std::vector<std::string> inputs;  // .txt, .jsonl, any other text file, folders of these; "-" is standard input
  std::string out;                  // folder: train_000000.bin …, val_000000.bin …, tokenizer.json, data.json
  std::string field = "text";       // of .jsonl: the string that is a document
  std::string prompt_field;         // .jsonl: put before it, and no target (the shards get masks)
  std::string separator = "<|endoftext|>";  // a line of a text file that ends a document; empty: none, a file is one
  std::string format;                       // "text", "jsonl", or empty: by the name's end
  int64_t shard_tokens = 100'000'000;
  double validation = 0.005;  // share of the documents that are held out; the first document never is
  bool deduplicate = false;   // leave out documents that were there before, byte for byte
};

struct PrepareResult {
  int64_t documents = 0, duplicates = 0, empty = 0, bytes = 0, train_tokens = 0, validation_tokens = 0;
  bool complete = true;  // false where a signal stopped it
};

PrepareResult prepare_data(const PrepareOptions&, const Tokenizer&);
