// From text to shards: documents out of files, folders or standard input, tokenized on all threads and written as token
// files of equal size, some of them held out by a hash of the document. A split is one stream, an end-of-text token
// before each document and one at the end, cut where a shard is full. The folder's data.json says what it was made of,
// and how far: stopped at any moment, killed too, the same call goes on, and the shards hold the same bytes.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "documents.h"
#include "tokenizer.h"

struct PrepareOptions {
  DocumentOptions documents;  // with a prompt field, prompts are no targets: the shards get masks
  std::string out;            // folder: train_000000.bin …, val_000000.bin …, tokenizer.json, data.json
  int64_t shard_tokens = 100'000'000;
  float validation = 0.005f;      // share of the documents that are held out; the first document never is
  bool deduplicate = false;       // leave out documents that were there before, byte for byte
  int64_t batch_bytes = 8 << 20;  // of documents that are tokenized together; nothing depends on it
  float save_seconds = 5;         // work that a kill may cost
};

struct PrepareResult {
  int64_t documents = 0, validation_documents = 0;  // of the documents so many are held out
  int64_t duplicates = 0, empty = 0;                // left out
  BadLines bad_lines;                               // left out, too
  int64_t bytes = 0;                                // of the documents
  int64_t train_tokens = 0, validation_tokens = 0;  // with end-of-text tokens
  int64_t train_shards = 0, validation_shards = 0;
  bool complete = false;  // false where a signal stopped it
  bool found = false;     // all was there already
};

// Is told what there is so far, once before work begins, and the share of the input that is read: −1 where unknown.
using PrepareWatch = std::function<void(const PrepareResult&, double fraction, int64_t input_bytes)>;

// Stops at a signal (signals.h), with all saved. Fails where there is nothing to tokenize, and where the folder was
// begun with another tokenizer, other options or other inputs.
PrepareResult prepare_data(const PrepareOptions&, const Tokenizer&, const PrepareWatch& watch = {});
