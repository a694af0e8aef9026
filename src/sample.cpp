// ./sample: continues prompts, converses, asks puzzles, or answers a program's requests.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "evaluate.h"
#include "files.h"
#include "flags.h"
#include "inference.h"
#include "log.h"
#include "program.h"
#include "questions.h"
#include "quiz.h"
#include "requests.h"
#include "signals.h"
#include "text_input.h"
#include "utf8.h"

namespace {

struct SampleOptions {
  std::string model = "out", prompt, prompts;
  int threads = 0, batch = 16;
  bool echo = true, json = false, serve = false;
  InferenceOptions inference;
  Request request;
  std::string source() const { return prompts == "-" ? "standard input" : prompts; }
};

void add_flags(Flags& f, SampleOptions& o) {
  f.section("Model");
  f.add("model", &o.model, "a checkpoint's folder, or an --out folder whose latest is meant");
  o.inference.tokenizer.add(f, "as for ./train, where the model has none of its own; empty: its own");
  f.choice("weights", &o.inference.weights,
           "matrices as they are, or rounded to bfloat16, which decodes faster");
  f.choice("device", &o.inference.device, {"auto", "cpu", "cuda"}, "where the kernels run");
  f.add("threads", &o.threads, "CPU threads (0: all cores)", 0, 4096);
  f.section("Prompts");
  f.add("prompt", &o.prompt, "the text to continue; empty: end-of-text, from which a new text begins");
  f.add("prompts", &o.prompts, "a file of prompts, one a line, continued together (-: standard input)");
  f.add("batch", &o.batch, "prompts continued at a time", 1, 4096);
  f.add("echo", &o.echo, "print the prompt, too");
  f.add("json", &o.json, "print each text as a JSON object, a line each");
  f.add("serve", &o.serve, "answer requests on standard input, a JSON object a line each way (docs/formats.md)");
  f.section("Text");
  add_text_flags(f, o.request);
}

// A file or a pipe gets the bytes as they are; a terminal would take some of them for commands.
void show(const std::string& piece) {
  static const bool terminal = isatty(1);
  std::string out = terminal ? visible(piece) : piece;
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

bool interrupted() { return stop_signal() != 0; }

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

// Continues texts with a model, and shows them.
class Speaker {
 public:
  // answers: a text that ends with a question of the corpus ends after its answer.
  Speaker(const SampleOptions& o, Inference& model, bool answers) : o_(o), model_(model), answers_(answers) {}

  // Streams one text.
  void one(const std::string& prompt, const std::string& which) {
    std::vector<int> tokens = tokens_of(prompt, which);
    if (o_.echo) show(prompt);
    Continuation text = stream(prompt, tokens, 0);
    show("\n");
    tell_of_context(text.ending, which);
    if (answers_) tell_what_is_right(prompt, text.text);
  }

  // Many prompts, some at a time; each text is printed when its group is done, in the file's order.
  void many(const std::vector<std::string>& prompts) {
    std::vector<std::vector<int>> tokens;
    auto which = [&](size_t i) { return text("prompt %zu of %s", i + 1, o_.source().c_str()); };
    for (size_t i = 0; i < prompts.size(); ++i) tokens.push_back(tokens_of(prompts[i], which(i)));
    for (size_t first = 0; first < prompts.size() && !interrupted(); first += size_t(o_.batch)) {
      size_t end = std::min(prompts.size(), first + size_t(o_.batch));
      Generation g = o_.request.generation;
      for (size_t i = first; i < end; ++i) g.most.push_back(most_tokens(prompts[i]));
      std::vector<Continuation> texts =
          generate(model_.decoder(), model_.tokenizer(), {tokens.begin() + first, tokens.begin() + end}, int64_t(first),
                   g, nullptr, interrupted);
      for (size_t i = first; i < end; ++i) {
        print(prompts[i], texts[i - first], int64_t(i));
        tell_of_context(texts[i - first].ending, which(i));
      }
    }
  }

  // Each line is a prompt of its own; the model has been trained on single texts.
  void converse() {
    std::vector<std::string> welcome = {o_.model + ",", text("mode %s,", name_of(o_.request.generation.mode)),
                                        text("context %d tokens.", model_.config().context),
                                        "Type the beginning of a text; Ctrl-D ends."};
    std::fputs(wrapped(welcome, 0, stderr).c_str(), stderr);
    std::string line;
    for (int64_t number = 0; std::fputs("> ", stderr), std::getline(std::cin, line) && !interrupted(); ++number) {
      if (size_t length = model_.tokenizer().encode(line).size(); length > size_t(model_.config().context)) {
        std::fprintf(stderr, "[too long: %zu tokens; the context is %d]\n", length, model_.config().context);
        continue;
      }
      Continuation text = stream(line, tokens_of(line, "the line"), number);
      show("\n");
      std::fprintf(stderr, "[%s]\n", describe(text.ending));
    }
    std::fputs("\n", stderr);
  }

 private:
  std::vector<int> tokens_of(const std::string& prompt, const std::string& which) const {
    return prompt_tokens(prompt, which, model_.tokenizer(), model_.config());
  }
  int most_tokens(const std::string& prompt) const {
    std::optional<Puzzle> puzzle;
    if (answers_) puzzle = read_question(prompt);
    return puzzle ? tokenize(*puzzle, model_.tokenizer()).answers[0].length : o_.request.generation.tokens;
  }
  Continuation stream(const std::string& prompt, const std::vector<int>& tokens, int64_t number) {
    Generation g = o_.request.generation;
    g.most = {most_tokens(prompt)};
    auto say = [](int, const std::string& piece) { show(piece); };
    return generate(model_.decoder(), model_.tokenizer(), {tokens}, number, g, say, interrupted)[0];
  }
  void print(const std::string& prompt, const Continuation& text, int64_t number) const {
    if (!o_.json) return show((o_.echo ? prompt : "") + text.text + "\n");
    Json json = to_json(text, o_.request.generation);
    std::vector<std::pair<std::string, Json>> first = {{"number", number}};
    if (o_.echo) first.push_back({"prompt", prompt});
    json.members.insert(json.members.begin(), first.begin(), first.end());
    show(write_json(json) + "\n");
  }
  // A text that ends there is cut; one that ends elsewhere ends as it was asked to.
  void tell_of_context(Ending ending, const std::string& which) const {
    if (ending != Ending::context) return;
    std::fprintf(stderr, "[%s: %s, %d tokens]\n", which.c_str(), describe(ending), model_.config().context);
  }
  // Of a model that answers puzzles.
  void tell_what_is_right(const std::string& prompt, const std::string& said) const {
    std::optional<Puzzle> puzzle = read_question(prompt);
    std::string answer = puzzle ? puzzle->text.substr(prompt.size()) : "";
    std::string note = !puzzle          ? "this model was trained to answer puzzles: other texts make it say anything"
                       : said == answer ? "right"
                                        : "wrong: " + answer + " is right";
    std::fprintf(stderr, "[%s]\n", note.c_str());
  }

  const SampleOptions& o_;
  Inference& model_;
  bool answers_;
};

// A terminal is asked for questions; anything else gets one held-out puzzle.
void ask(Quiz& quiz, bool terminal) {
  show(quiz.held_out());
  if (!terminal) return;
  std::fputs(quiz.welcome().c_str(), stderr);
  std::string line;
  while (std::fputs("> ", stderr), std::getline(std::cin, line) && !interrupted())
    show(line.empty() ? quiz.held_out() : quiz.answer(line));
  std::fputs("\n", stderr);
}

void serve(Inference& model, const Request& defaults, DecodeMode best) {
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line) && !interrupted(); ++number) {
    std::string where = text("line %lld", (long long)number);
    show(write_json(answer_request(model, line, defaults, best, where, interrupted)) + "\n");
  }
}

void check_flags(const Flags& flags, const SampleOptions& o) {
  if (flags.given("prompt") && flags.given("prompts")) fail("--prompt and --prompts exclude each other");
  for (const char* flag : {"prompt", "prompts", "batch", "echo", "json"})
    if (o.serve && flags.given(flag)) fail("--serve takes its texts from requests: leave out --%s", flag);
  if (o.request.logprobs && !o.json && !o.serve)
    fail("--logprobs goes with --json or --serve: texts have no room for them");
}

// What is said before the first text, of flags that have an effect that may surprise.
void tell_of_model(const SampleOptions& o, const Inference& model, DecodeMode best) {
  const Generation& g = o.request.generation;
  if (best == DecodeMode::standard && g.mode != best)
    std::fprintf(stderr, "note: the feedback of %s was never trained, so that mode %s feeds back noise\n",
                 o.model.c_str(), name_of(g.mode));
  int known = model.tokenizer().vocab(), all = model.config().vocab;
  if (known < all)
    std::fprintf(stderr, "note: the tokenizer has %d of the model's %d ids; another shows as its number, like <%d>\n",
                 known, all, known);
}

bool samples(const Flags& flags) {
  for (const char* flag : {"temperature", "top-k", "top-p", "seed"})
    if (flags.given(flag)) return true;
  return false;
}

// Does somebody want texts, rather than to see what the model can do?
bool wants_texts(const Flags& flags) {
  for (const char* flag : {"prompt", "tokens", "stop", "json", "echo"})
    if (flags.given(flag)) return true;
  return samples(flags);
}

Quiz quiz_for(const TaskMix& mix, const Checkpoint& checkpoint, const Inference& model, const Request& request) {
  Quiz::Setting setting{mix, recorded_seed(checkpoint), {request.generation.mode}, request.generation.prefill_passes};
  if (request.mode.empty())
    setting.modes = modes_of(as_trained(model.config(), feedback_is_trained(checkpoint, model.config())));
  return Quiz(model.kernels(), model.config(), model.params(), model.tokenizer(), setting);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argv, [&] {
    SampleOptions o;
    Flags flags("./sample",
                "Continues prompts with a trained model. On a terminal without a prompt it converses, or asks puzzles "
                "where the model was trained on the built-in corpus.");
    flags.examples({"./sample  # asks the model in out/ puzzles",
                    "./sample --model runs/book --prompt \"It was\" --tokens 100",
                    "echo \"It was\" | ./sample --model runs/book --json"});
    add_flags(flags, o);
    flags.parse(argc, argv);
    check_flags(flags, o);

    start_threads(o.threads);
    Checkpoint checkpoint = find_checkpoint(o.model, kTrainOrNameAModel);
    ModelConfig config = read_config(checkpoint);
    DecodeMode best = feedback_is_trained(checkpoint, config) ? DecodeMode::soft : DecodeMode::standard;
    resolve(o.request, config, best);

    std::vector<std::string> prompts = {o.prompt};
    if (!flags.given("prompt") && !flags.given("prompts") && !isatty(0) && !o.serve) o.prompts = "-";
    if (!o.prompts.empty()) prompts = read_prompts(o.prompts);
    if (prompts.empty() && flags.given("prompts")) fail("--prompts: %s holds no prompts", o.source().c_str());
    bool nothing_asked = !flags.given("prompt") && !o.serve && (prompts.empty() || o.prompts.empty());
    if (prompts.empty()) prompts = {""};  // where there is nothing, a new text begins
    bool terminal = isatty(0) && isatty(1);

    std::optional<TaskMix> mix = mix_of(checkpoint);
    if (mix && !samples(flags)) o.request.generation.sampling.temperature = 0;  // the answer that is likeliest
    bool quizzes = nothing_asked && mix && !wants_texts(flags);
    bool converses = nothing_asked && terminal && !o.json && !quizzes;
    bool takes_any_mode = o.serve || (quizzes && o.request.mode.empty() && best != DecodeMode::standard);
    if (!takes_any_mode) flags.refuse_idle(idle_text_flags(o.request));
    flags.refuse_idle({{{"echo"}, converses, "what is typed stands on the terminal already"}});
    o.inference.sequences = std::clamp(int(prompts.size()), 1, o.batch);
    Inference model(checkpoint, o.inference);
    tell_of_model(o, model, best);
    catch_stop_signals((nothing_asked && terminal) || o.serve);
    Speaker speaker(o, model, mix && !flags.given("tokens"));
    if (o.serve) {
      serve(model, o.request, best);
    } else if (quizzes) {
      Quiz quiz = quiz_for(*mix, checkpoint, model, o.request);
      ask(quiz, terminal);
    } else if (converses) {
      speaker.converse();
    } else if (prompts.size() > 1 || o.json) {
      speaker.many(prompts);
    } else {
      speaker.one(prompts[0], o.prompts.empty() ? "--prompt" : "the prompt of " + o.source());
    }
    return stop_signal() ? 128 + stop_signal() : 0;
  });
}
