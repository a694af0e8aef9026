// ./sample: continues prompts, or converses.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "checkpoint.h"
#include "devices.h"
#include "files.h"
#include "flags.h"
#include "generate.h"
#include "log.h"
#include "model.h"
#include "program.h"
#include "signals.h"
#include "text_input.h"
#include "tokenizer.h"
#include "utf8.h"

namespace {

struct SampleOptions {
  std::string model = "out", mode = "", weights = "f32", prompt, prompts, device = "auto", stop;
  int threads = 0, batch = 16;
  int64_t seed = 1;
  bool echo = true;
  TokenizerFlags tokenizer;
  Generation generation;
  std::string source() const { return prompts == "-" ? "standard input" : prompts; }
};

void add_flags(Flags& f, SampleOptions& o) {
  f.section("Model");
  f.add("model", &o.model, "a checkpoint's folder, or an --out folder whose latest is meant");
  o.tokenizer.add(f, "as for ./train, where the model has none of its own; empty: its own");
  f.choice("mode", &o.mode, {"", "standard", "soft", "fused", "sequential"},
           "how states are fed back; empty: soft, or standard where the model has no feedback");
  f.add("prefill-passes", &o.generation.prefill_passes, "fused passes over the prompt in mode fused", 1, 1000);
  f.choice("weights", &o.weights, {"f32", "bf16"},
           "matrices as they are, or rounded to bfloat16, which decodes faster");
  f.choice("device", &o.device, {"auto", "cpu", "cuda"}, "where the kernels run");
  f.add("threads", &o.threads, "CPU threads (0: all cores)", 0, 4096);
  f.section("Text");
  f.add("prompt", &o.prompt, "the text to continue; empty: end-of-text, from which a new text begins");
  f.add("prompts", &o.prompts, "a file of prompts, one a line, continued together (-: standard input)");
  f.add("tokens", &o.generation.tokens, "most tokens to generate", 0, 1 << 30);
  f.add("stop", &o.stop, "end before this text; several are separated by |, and \\n is a line's end");
  f.add("echo", &o.echo, "print the prompt, too");
  f.add("batch", &o.batch, "prompts continued at a time", 1, 4096);
  f.section("Sampling");
  f.add("temperature", &o.generation.sampling.temperature, "0: the likeliest token", 0, 100);
  f.add("top-k", &o.generation.sampling.top_k, "only the k likeliest tokens (0: all)", 0, 1 << 30);
  f.add("top-p", &o.generation.sampling.top_p, "only the likeliest tokens that together reach p", 0, 1);
  f.add("seed", &o.seed, "the same seed and prompt number give the same text", 0, INT64_MAX);
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

// A file or a pipe gets the bytes as they are; a terminal would take some of them for commands.
void show(const std::string& piece) {
  static const bool terminal = isatty(1);
  std::string out = terminal ? visible(piece) : piece;
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

// On a GPU matrices of bfloat16 are multiplied by activations of bfloat16; the CPU's table unpacks them.
const Kernels& kernels_for_weights(const SampleOptions& o) {
  std::string why_not;
  bool on_gpu = o.device != "cpu" && cuda_kernels(false, &why_not);
  return kernels_for(o.device, on_gpu && o.weights == "bf16" ? "bf16" : "fp32");
}

class Sampler {
 public:
  Sampler(const SampleOptions& o, const Kernels& kernels, Model& model, const Tokenizer& tokenizer, int sequences)
      : o_(o),
        tokenizer_(tokenizer),
        weights_(kernels, model),
        decoder_(kernels, model.config, weights_.params(), limits(o, kernels, model.config, sequences)) {}

  static DecoderLimits limits(const SampleOptions& o, const Kernels& kernels, const ModelConfig& config,
                              int sequences) {
    DecoderLimits limits{sequences, 256, config.context};
    if (kernels.pack_weight) limits.packed = weight_format_named(o.weights);
    return limits;
  }

  // Streams one text.
  void one(const std::string& prompt, const std::string& which) {
    std::vector<int> tokens = prompt_tokens(prompt, which);
    if (o_.echo) show(prompt);
    std::vector<Ending> endings = continue_({tokens}, 0, [](int, const std::string& piece) { show(piece); });
    show("\n");
    tell_of_context(endings[0], which);
  }

  // Many prompts, some at a time; each text is printed when its group is done, in the file's order.
  void many(const std::vector<std::string>& prompts) {
    std::vector<std::vector<int>> tokens;
    auto which = [&](size_t i) { return text("prompt %zu of %s", i + 1, o_.source().c_str()); };
    for (size_t i = 0; i < prompts.size(); ++i) tokens.push_back(prompt_tokens(prompts[i], which(i)));
    for (size_t first = 0; first < prompts.size() && !stop_signal(); first += o_.batch) {
      size_t end = std::min(prompts.size(), first + o_.batch);
      std::vector<std::string> said(end - first);
      std::vector<Ending> endings = continue_({tokens.begin() + first, tokens.begin() + end}, int64_t(first),
                                              [&](int i, const std::string& piece) { said[i] += piece; });
      for (size_t i = first; i < end; ++i) {
        show((o_.echo ? prompts[i] : "") + said[i - first] + "\n");
        tell_of_context(endings[i - first], which(i));
      }
    }
  }

  // Each line is a prompt of its own; the model has been trained on single texts.
  void converse() {
    std::vector<std::string> welcome = {o_.model + ",", text("mode %s,", name_of(o_.generation.mode)),
                                        text("context %d tokens.", decoder_.context()),
                                        "Type the beginning of a text; Ctrl-D ends."};
    std::fputs(wrapped(welcome, 0, stderr).c_str(), stderr);
    std::string line;
    for (int64_t number = 0; std::fputs("> ", stderr), std::getline(std::cin, line) && !stop_signal(); ++number) {
      if (size_t length = tokenizer_.encode(line).size(); length > size_t(decoder_.context())) {
        std::fprintf(stderr, "[too long: %zu tokens; the context is %d]\n", length, decoder_.context());
        continue;
      }
      std::vector<Ending> endings =
          continue_({prompt_tokens(line, "the line")}, number, [](int, const std::string& piece) { show(piece); });
      show("\n");
      std::fprintf(stderr, "[%s]\n", describe(endings[0]));
    }
    std::fputs("\n", stderr);
  }

 private:
  // An empty prompt is end-of-text.
  std::vector<int> prompt_tokens(const std::string& prompt, const std::string& which) const {
    std::vector<int> tokens;
    if (!prompt.empty()) tokens = tokenizer_.encode(prompt);
    if (tokens.empty() && decoder_.end_of_text() < 0)
      fail("%s is empty, and this model has no end-of-text to begin with: give it some text", which.c_str());
    if (tokens.empty()) tokens = {decoder_.end_of_text()};
    if (int(tokens.size()) > decoder_.context())
      fail("%s has %zu tokens; this model's context is %d", which.c_str(), tokens.size(), decoder_.context());
    return tokens;
  }

  // A text that ends there is cut; one that ends elsewhere ends as it was asked to.
  void tell_of_context(Ending ending, const std::string& which) const {
    if (ending != Ending::context) return;
    std::fprintf(stderr, "[%s: %s, %d tokens]\n", which.c_str(), describe(ending), decoder_.context());
  }

  std::vector<Ending> continue_(const std::vector<std::vector<int>>& prompts, int64_t first_number,
                                const std::function<void(int, const std::string&)>& say) {
    return generate(decoder_, tokenizer_, prompts, first_number, o_.generation, say, [] { return stop_signal() != 0; });
  }

  const SampleOptions& o_;
  const Tokenizer& tokenizer_;
  Weights weights_;
  Decoder decoder_;
};

// One prompt a line; a carriage return before the line's end is part of it.
std::vector<std::string> read_prompts(const std::string& path) {
  std::string all, line;
  if (path == "-")
    all.assign(std::istreambuf_iterator<char>(std::cin), {});
  else
    all = read_file(path);
  require_text(all, path, TextUse::prompts);
  std::vector<std::string> prompts;
  auto end_line = [&] {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    prompts.push_back(line);
    line.clear();
  };
  for (char c : without_mark(all)) {
    if (c == '\n')
      end_line();
    else
      line += c;
  }
  if (!line.empty()) end_line();
  return prompts;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("sample", [&] {
    SampleOptions o;
    Flags flags("./sample", "Continues prompts with a trained model; on a terminal without a prompt it converses.");
    add_flags(flags, o);
    flags.parse(argc, argv);
    if (flags.given("prompt") && flags.given("prompts")) fail("--prompt and --prompts exclude each other");

    start_threads(o.threads);
    Checkpoint checkpoint = find_checkpoint(o.model, kTrainOrNameAModel);
    ModelConfig config = read_config(checkpoint);
    Tokenizer tokenizer = read_tokenizer(checkpoint, config.vocab, config.end_of_text, o.tokenizer);
    bool feedback = config.fusion != Fusion::none;
    if (o.mode.empty()) o.mode = feedback_is_trained(checkpoint, config) ? "soft" : "standard";
    o.generation.mode = decode_mode_named(o.mode);
    if (!feedback && o.generation.mode != DecodeMode::standard)
      fail("--mode %s needs a model with feedback; %s has none", o.mode.c_str(), checkpoint.folder().c_str());
    o.generation.seed = uint64_t(o.seed), o.generation.stops = split_stops(o.stop);

    bool asked = flags.given("prompt") || flags.given("prompts"), converses = !asked && isatty(0) && isatty(1);
    std::vector<std::string> prompts;
    if (!o.prompts.empty()) {
      prompts = read_prompts(o.prompts);
      if (prompts.empty()) fail("--prompts: %s holds no prompts", o.source().c_str());
    } else if (!asked && !isatty(0)) {
      o.prompts = "-";
      prompts = read_prompts("-");  // where there is nothing, a new text begins
    }
    if (prompts.size() <= 1 && !converses) {
      if (!prompts.empty()) o.prompt = prompts[0];
      prompts.clear();
    }
    int sequences = std::max(1, std::min(o.batch, int(prompts.size())));
    Plan plan;
    const Kernels& kernels = kernels_for_weights(o);
    Weights::plan_memory(plan, kernels, param_layout(config));
    Decoder::plan_memory(plan, kernels, config, Sampler::limits(o, kernels, config, sequences));
    require_memory(kernels, plan);
    Model model(config);
    read_params(model, checkpoint);
    if (o.weights == "bf16") round_to_bf16(model);
    catch_stop_signals(converses);
    Sampler sampler(o, kernels, model, tokenizer, sequences);
    if (converses)
      sampler.converse();
    else if (!prompts.empty())
      sampler.many(prompts);
    else
      sampler.one(o.prompt, o.prompts.empty() ? "--prompt" : "the prompt of " + o.source());
    return stop_signal() ? 128 + stop_signal() : 0;
  });
}
