// Continuing prompts, several at once; each text depends on its own prompt, number and seed alone.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "decode.h"
#include "sampler.h"
#include "tokenizer.h"

struct Generation {
  DecodeMode mode = DecodeMode::soft;
  int prefill_passes = 1;
  int tokens = 256;  // at most
  Sampling sampling;
  uint64_t seed = 1;
  std::vector<std::string> stops;  // a text ends before the first of these that it contains
};

enum class Ending { end_of_text, stop, tokens, context, interrupted };
const char* describe(Ending);

// `prompts` (at most the decoder's sequences) are numbered from `first_number`. say(i, text) gets prompt i's new text
// in pieces of whole characters; a piece that could begin a stop is held back. `interrupted` is asked before each
// token.
std::vector<Ending> generate(Decoder&, const Tokenizer&, const std::vector<std::vector<int>>& prompts,
                             int64_t first_number, const Generation&,
                             const std::function<void(int, const std::string&)>& say,
                             const std::function<bool()>& interrupted);
