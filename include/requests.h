// What is asked of a model for one text: by the flags of ./sample, or by a line of JSON.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "flags.h"
#include "generate.h"
#include "inference.h"
#include "json.h"

struct Request {
  std::string prompt, mode, stop;  // mode: empty is the model's best; stop: as the flag has it
  int64_t seed = 1, number = 0;    // number: of the prompt, which its random numbers depend on
  bool logprobs = false;
  Generation generation;
  // A line of JSON may have these, too.
  std::vector<int> prompt_ids;  // the prompt as ids, in place of its text
  bool scores = false;          // `continuation` is to be scored, and nothing generated
  std::string continuation;
};

// The flags of a text; `request` has their defaults and gets their values.
void add_text_flags(Flags&, Request& request);
// Those of them that have no effect beside the others, of a request that is resolved.
std::vector<Flags::Idle> idle_text_flags(const Request&);
// Works out what the flags say in words, for a model that decodes best in this mode; fails where it has no such mode.
void resolve(Request&, const ModelConfig&, DecodeMode best);
std::vector<std::string> split_stops(const std::string& stops);  // a|b, with \n, \\ and \|

// A text with all that is known of it, for programs.
Json to_json(const Continuation&, const Generation&);

// Answers a line of JSON that asks for a text, or for the score of one (docs/formats.md), by one object; `defaults` has
// what the line leaves out, `where` names it in messages. Whatever is wrong with it is said in the answer.
Json answer_request(Inference&, const std::string& line, const Request& defaults, DecodeMode best,
                    const std::string& where, const std::function<bool()>& interrupted);
