#include "generate.h"

#include <algorithm>

#include "error.h"
#include "exact.h"
#include "random.h"
#include "utf8.h"

const char* describe(Ending ending) {
  switch (ending) {
    case Ending::end_of_text:
      return "end of text";
    case Ending::stop:
      return "stop";
    case Ending::tokens:
      return "all tokens generated";
    case Ending::context:
      return "end of the context";
    case Ending::interrupted:
      return "interrupted";
  }
  return "?";
}

namespace {

// One text on its way out: what could be the beginning of a stop waits.
class Speaker {
 public:
  explicit Speaker(const std::vector<std::string>& stops) : stops_(stops) {}

  // Adds a token's bytes; returns what may be shown. stopped() then says whether a stop was found.
  std::string push(const std::string& bytes) {
    waiting_ += bytes;
    size_t end = std::string::npos;
    for (const std::string& stop : stops_) end = std::min(end, waiting_.find(stop));
    if (end != std::string::npos) {
      stopped_ = true;
      waiting_.resize(end);
      return flush();
    }
    size_t safe = waiting_.size();
    for (const std::string& stop : stops_)
      for (size_t n = std::min(stop.size() - 1, waiting_.size()); n > 0; --n)
        if (waiting_.compare(waiting_.size() - n, n, stop, 0, n) == 0) {
          safe = std::min(safe, waiting_.size() - n);
          break;
        }
    std::string out = characters_.push(waiting_.substr(0, safe));
    waiting_.erase(0, safe);
    return out;
  }
  std::string flush() {
    std::string out = characters_.push(waiting_);
    waiting_.clear();
    return out + characters_.flush();
  }
  bool stopped() const { return stopped_; }

 private:
  const std::vector<std::string>& stops_;
  std::string waiting_;
  Utf8Stream characters_;
  bool stopped_ = false;
};

}  // namespace

// A token's bytes; the model may have more tokens than its tokenizer knows.
static std::string shown(const Tokenizer& tokenizer, int token) {
  return token < tokenizer.vocab() ? tokenizer.decode({token}) : text("<%d>", token);
}

// Flags and requests are in range; a program that calls the library may be wrong.
static void require_sampling(const Sampling& s) {
  if (!(s.temperature >= 0) || s.top_k < 0 || !(s.top_p >= 0 && s.top_p <= 1))
    fail("temperature %g, top_k %d and top_p %g: temperature and top_k are 0 or more, top_p is from 0 to 1",
         double(s.temperature), s.top_k, double(s.top_p));
}

static void require_ids(const std::vector<int>& tokens, const std::string& which, int vocab) {
  for (int id : tokens)
    if (id < 0 || id >= vocab) fail("%s has the id %d; this model's go from 0 to %d", which.c_str(), id, vocab - 1);
}

static void require_prompt(const std::vector<int>& tokens, const std::string& which, int vocab, int context) {
  if (tokens.empty()) fail("%s has no tokens; end-of-text begins a new text", which.c_str());
  require_ids(tokens, which, vocab);
  if (int(tokens.size()) > context)
    fail("%s has %zu tokens; this model's context is %d", which.c_str(), tokens.size(), context);
}

static void require_request(const Decoder& decoder, const std::vector<std::vector<int>>& prompts, const Generation& g) {
  if (prompts.size() > size_t(decoder.sequences()))
    fail("%zu prompts for a decoder of %d: give it as many `sequences`", prompts.size(), decoder.sequences());
  for (size_t i = 0; i < prompts.size(); ++i)
    require_prompt(prompts[i], prompts.size() == 1 ? "the prompt" : text("prompt %zu", i + 1), decoder.vocab(),
                   decoder.context());
  if (!g.most.empty() && g.most.size() != prompts.size())
    fail("`most` has %zu numbers for %zu prompts", g.most.size(), prompts.size());
  for (const std::string& stop : g.stops)
    if (stop.empty()) fail("a stop is empty: every text would end before it begins");
  require_sampling(g.sampling);
}

std::vector<int> prompt_tokens(const std::string& prompt, const std::string& which, const Tokenizer& tokenizer,
                               const ModelConfig& config) {
  std::vector<int> tokens;
  if (!prompt.empty()) tokens = tokenizer.encode(prompt);
  if (tokens.empty() && config.end_of_text < 0)
    fail("%s is empty, and this model has no end-of-text to begin with: give it some text", which.c_str());
  if (tokens.empty()) tokens = {config.end_of_text};
  require_prompt(tokens, which, config.vocab, config.context);
  return tokens;
}

std::vector<Continuation> generate(Decoder& decoder, const Tokenizer& tokenizer,
                                   const std::vector<std::vector<int>>& prompts, int64_t first_number,
                                   const Generation& g, const Say& say, const std::function<bool()>& interrupted) {
  require_request(decoder, prompts, g);
  std::vector<Continuation> said(prompts.size());
  auto add = [&](int i, const std::string& piece) {
    said[i].text += piece;
    if (say) say(i, piece);
  };
  std::vector<Speaker> speakers(prompts.size(), Speaker(g.stops));
  auto most = [&](int i) { return g.most.empty() ? g.tokens : g.most[size_t(i)]; };
  std::vector<int> live;
  for (size_t i = 0; i < prompts.size(); ++i)
    if (most(int(i)) > 0) live.push_back(int(i));
  decoder.prefill(prompts, g.mode, g.prefill_passes);
  for (int n = 0; !live.empty(); ++n) {
    std::vector<uint64_t> keys;
    for (int i : live) keys.push_back(random_key(g.seed, Purpose::sampling, first_number + i, decoder.position(i)));
    std::vector<int> sampled = decoder.sample(live, g.sampling, keys), next, tokens;
    const float* logits = g.logprobs ? decoder.logits(live) : nullptr;
    bool stop_now = interrupted && interrupted();
    for (size_t j = 0; j < live.size(); ++j) {
      int i = live[j], position = decoder.position(i), token = sampled[j];
      Continuation& text = said[i];
      text.tokens.push_back(token);
      if (logits)
        text.logprobs.push_back(log_probability(logits + j * size_t(decoder.vocab()), decoder.vocab(), token));
      bool ended = token == decoder.end_of_text();
      if (!ended) add(i, speakers[i].push(shown(tokenizer, token)));
      bool done = true;
      if (ended)
        text.ending = Ending::end_of_text;
      else if (speakers[i].stopped())
        text.ending = Ending::stop;
      else if (n + 1 == most(i))
        text.ending = Ending::tokens;
      else if (stop_now)
        text.ending = Ending::interrupted;
      else if (position >= decoder.context())
        text.ending = Ending::context;
      else
        done = false;
      if (done)
        add(i, speakers[i].flush());
      else
        next.push_back(i), tokens.push_back(token);
    }
    live = next;
    if (!live.empty()) decoder.advance(live, tokens);
  }
  return said;
}

double log_probability(const float* logits, int vocab, int token) {
  double most = *std::max_element(logits, logits + vocab), total = 0;
  for (int i = 0; i < vocab; ++i) total += exact_exp(double(logits[i]) - most);
  return double(logits[token]) - most - exact_log(total);
}

std::vector<double> score(Decoder& decoder, const std::vector<int>& prompt, const std::vector<int>& continuation,
                          DecodeMode mode, int prefill_passes) {
  require_prompt(prompt, "the prompt", decoder.vocab(), decoder.context());
  require_ids(continuation, "the continuation", decoder.vocab());
  if (prompt.size() + continuation.size() > size_t(decoder.context()) + 1)
    fail("prompt and continuation have %zu tokens; this model's context is %d", prompt.size() + continuation.size(),
         decoder.context());
  std::vector<double> scores;
  decoder.prefill({prompt}, mode, prefill_passes);
  for (size_t i = 0; i < continuation.size(); ++i) {
    if (i > 0) decoder.advance({0}, {continuation[i - 1]});
    scores.push_back(log_probability(decoder.logits({0}), decoder.vocab(), continuation[i]));
  }
  return scores;
}
