#include "requests.h"

#include <algorithm>
#include <numeric>

#include "error.h"

void add_text_flags(Flags& f, Request& r) {
  f.choice("mode", &r.mode, {"", "standard", "soft", "fused", "sequential"},
           "how states are fed back; empty: soft, or standard where the model has no trained feedback");
  f.add("prefill-passes", &r.generation.prefill_passes, "fused passes over the prompt in mode fused", 1, 1000);
  f.add("tokens", &r.generation.tokens, "most tokens to generate", 0, 1 << 30);
  f.add("stop", &r.stop, "end before this text; several are separated by |, and \\n is a line's end");
  f.add("temperature", &r.generation.sampling.temperature,
        "0: the likeliest token, as for puzzles where nothing is said", 0, 100);
  f.add("top-k", &r.generation.sampling.top_k, "only the k likeliest tokens (0: all)", 0, 1 << 30);
  f.add("top-p", &r.generation.sampling.top_p, "only the likeliest tokens that together reach p", 0, 1);
  f.add("seed", &r.seed, "the same seed and prompt number give the same text", 0, INT64_MAX);
  f.add("logprobs", &r.logprobs, "in JSON, give each token's log-probability, too");
}

std::vector<Flags::Idle> idle_text_flags(const Request& r) {
  const Generation& g = r.generation;
  const Sampling& s = g.sampling;
  return {{{"prefill-passes"}, g.mode != DecodeMode::fused, text("mode %s has no such passes", name_of(g.mode))},
          {{"top-k", "top-p"},
           s.temperature == 0 && (s.top_k > 0 || s.top_p < 1),
           "temperature 0 takes the likeliest token, whatever the others are"},
          {{"stop"}, !r.stop.empty() && g.stops.empty(), "no text stands in it"}};
}

std::vector<std::string> split_stops(const std::string& stops) {
  std::vector<std::string> out;
  std::string now;
  for (size_t i = 0; i <= stops.size(); ++i) {
    if (i < stops.size() && stops[i] == '\\' && i + 1 < stops.size() &&
        (stops[i + 1] == 'n' || stops[i + 1] == '\\' || stops[i + 1] == '|')) {
      ++i;
      now += stops[i] == 'n' ? '\n' : stops[i];
    } else if (i == stops.size() || stops[i] == '|') {
      if (!now.empty()) out.push_back(now);
      now.clear();
    } else {
      now += stops[i];
    }
  }
  return out;
}

void resolve(Request& r, const ModelConfig& config, DecodeMode best) {
  Generation& g = r.generation;
  g.mode = r.mode.empty() ? best : value_named<DecodeMode>(r.mode);
  require_mode(config, g.mode);
  g.seed = uint64_t(r.seed), g.logprobs = r.logprobs;
  if (!r.stop.empty()) g.stops = split_stops(r.stop);
}

// --- JSON

namespace {

template <class Number>
Json array_of(const std::vector<Number>& numbers) {
  Json array = Json::array();
  for (Number n : numbers) array.items.push_back(n);
  return array;
}

// Why a text ends, in the words that programs know.
const char* finish_reason(Ending ending) {
  switch (ending) {
    case Ending::end_of_text:
      return "end_of_text";
    case Ending::stop:
      return "stop";
    case Ending::tokens:
      return "length";
    case Ending::context:
      return "context";
    case Ending::interrupted:
      return "interrupted";
  }
  return "?";
}

std::vector<int> ids_in(const Json& array, const std::string& where) {
  std::vector<int> ids;
  for (const Json& id : array.items) {
    bool whole = id.kind == Json::Kind::number && id.number >= 0 && id.number < 1 << 30;
    if (!whole || id.number != double(int(id.number)))
      fail("%s: `prompt` should be a text or a list of ids", where.c_str());
    ids.push_back(int(id.number));
  }
  return ids;
}

std::string string_in(const Json& value, const std::string& name, const std::string& where) {
  if (value.kind != Json::Kind::string) fail("%s: `%s` should be a string", where.c_str(), name.c_str());
  return value.string;
}

// One stop or a list of them, as they are.
std::vector<std::string> stops_in(const Json& value, const std::string& where) {
  std::vector<std::string> stops;
  for (const Json& stop : value.kind == Json::Kind::array ? value.items : std::vector<Json>{value})
    if (stops.push_back(string_in(stop, "stop", where)); stops.back().empty()) stops.pop_back();
  return stops;
}

std::vector<int> tokens_of(const Request& r, const Inference& model) {
  if (!r.prompt_ids.empty()) return r.prompt_ids;
  return prompt_tokens(r.prompt, "the prompt", model.tokenizer(), model.config());
}

Json score_of(Inference& model, const Request& r, const std::vector<int>& prompt) {
  std::vector<int> tokens = model.tokenizer().encode(r.continuation);
  std::vector<double> each = score(model.decoder(), prompt, tokens, r.generation.mode, r.generation.prefill_passes);
  return Json::object({{"logprob", std::accumulate(each.begin(), each.end(), 0.0)},
                       {"tokens", array_of(tokens)},
                       {"logprobs", array_of(each)},
                       {"mode", name_of(r.generation.mode)}});
}

}  // namespace

Json to_json(const Continuation& c, const Generation& g) {
  Json json = Json::object({{"text", c.text},
                            {"finish_reason", finish_reason(c.ending)},
                            {"tokens", array_of(c.tokens)},
                            {"mode", name_of(g.mode)}});
  if (g.logprobs) json.set("logprobs", array_of(c.logprobs));
  return json;
}

// A request as JSON has it, where `defaults` has what it leaves out.
static Request request_of(const Json& json, const Request& defaults, const std::string& where) {
  if (json.kind != Json::Kind::object)
    fail("%s: a request is an object, such as {\"prompt\": \"It was\", \"tokens\": 20}", where.c_str());
  Request r = defaults;
  Flags flags("", "");
  add_text_flags(flags, r);
  flags.add("number", &r.number, "", 0, INT64_MAX);
  for (const auto& [name, value] : json.members) {
    if (name == "id") continue;
    if (name == "prompt" && value.kind == Json::Kind::array)
      r.prompt_ids = ids_in(value, where);
    else if (name == "prompt")
      r.prompt = string_in(value, name, where);
    else if (name == "continuation")
      r.continuation = string_in(value, name, where), r.scores = true;
    else if (name == "stop")
      r.generation.stops = stops_in(value, where), r.stop.clear();
    else if (value.kind == Json::Kind::string)
      flags.set(name, value.string, where);
    else
      flags.set(name, write_json(value), where);
  }
  return r;
}

// As for flags that are typed; what the defaults have may be idle.
static void refuse_idle_members(const Json& json, const Request& r, const std::string& where) {
  for (const Flags::Idle& rule : idle_text_flags(r))
    for (const std::string& flag : rule.flags)
      for (const auto& [name, value] : json.members)
        if (std::string plain = name; rule.idle && (std::replace(plain.begin(), plain.end(), '_', '-'), plain == flag))
          fail("%s: `%s`: %s; leave it out", where.c_str(), name.c_str(), rule.why.c_str());
}

Json answer_request(Inference& model, const std::string& line, const Request& defaults, DecodeMode best,
                    const std::string& where, const std::function<bool()>& interrupted) {
  Json id, answer;
  try {
    Json json = parse_json(line, where);
    if (const Json* given = json.find("id")) id = *given;
    Request r = request_of(json, defaults, where);
    resolve(r, model.config(), best);
    refuse_idle_members(json, r, where);
    std::vector<int> prompt = tokens_of(r, model);
    if (r.scores)
      answer = score_of(model, r, prompt);
    else
      answer = to_json(
          generate(model.decoder(), model.tokenizer(), {prompt}, r.number, r.generation, nullptr, interrupted)[0],
          r.generation);
  } catch (const Error& e) {
    answer = Json::object({{"error", e.what()}});
  }
  if (id.kind != Json::Kind::null) answer.members.insert(answer.members.begin(), {"id", id});
  return answer;
}
