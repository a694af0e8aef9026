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
  int tokens = 256;       // at most
  std::vector<int> most;  // at most, of each prompt; empty: `tokens` for all
  bool logprobs = false;  // whether they are wanted
  Sampling sampling;
  uint64_t seed = 1;
  std::vector<std::string> stops;  // a text ends before the first of these that it contains
};

enum class Ending { end_of_text, stop, tokens, context, interrupted };
const char* describe(Ending);

// What was said to a prompt.
struct Continuation {
  std::string text;  // bytes; before a stop, and without an end of text
  Ending ending = Ending::tokens;
  std::vector<int> tokens;  // all that were drawn: an end-of-text, and those of a stop, too
  // Natural logarithms of their probabilities, by the model as it is (temperature 1, all tokens): where they are wanted.
  std::vector<double> logprobs;
};

// Where a text is to be shown while it comes about: say(i, piece) gets prompt i's new text in pieces of whole characters; a
// piece that could begin a stop is held back.
using Say = std::function<void(int, const std::string&)>;

// A prompt's tokens; of nothing: end-of-text, from which a new text begins. `which` names it in messages. Fails where it is
// longer than the context.
std::vector<int> prompt_tokens(const std::string& prompt, const std::string& which, const Tokenizer&,
                               const ModelConfig&);

// `prompts` (at most the decoder's sequences, each of 1 … context ids) are numbered from `first_number`. A token that the
// tokenizer lacks is <its id> in the text. `interrupted` is asked before each token. Fails, before anything is computed,
// where something is out of range, or where the model has no feedback for the mode.
std::vector<Continuation> generate(Decoder&, const Tokenizer&, const std::vector<std::vector<int>>& prompts,
                                   int64_t first_number, const Generation&, const Say& say,
                                   const std::function<bool()>& interrupted);

// The logarithm of a token's probability.
double log_probability(const float* logits, int vocab, int token);
// Those of a continuation's tokens, each after the prompt and the tokens before it. Fails where together they are more than
// the context and one, where the model lacks an id, or feedback for the mode. Slot 0 of the decoder is used.
std::vector<double> score(Decoder&, const std::vector<int>& prompt, const std::vector<int>& continuation, DecodeMode,
                          int prefill_passes = 1);
