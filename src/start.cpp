// What a run starts from: its flags and those recorded, the checkpoint it continues, its data, its memory, and the
// plan.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "checkpoint.h"
#include "devices.h"
#include "error.h"
#include "flops.h"
#include "program.h"
#include "recipe.h"
#include "shards.h"
#include "trainer.h"
#include "utf8.h"

namespace {

// Flags that a resumed run may not change: the model …
constexpr const char* kModelFlags[] = {"model",       "layers",         "width",
                                       "heads",       "kv-heads",       "head-dim",
                                       "ffn",         "window",         "full-attention-every",
                                       "rope-theta",  "residual-scale", "fusion",
                                       "plain-input", "head-gate",      "branch-norm"};
// … and what its data, their order and its state depend on.
constexpr const char* kDataFlags[] = {"data", "format", "tokenizer", "pattern",      "end-token", "vocab",
                                      "pack", "seq",    "batch",     "batch-tokens", "optimizer", "seed"};
// Flags that belong to one start of the program, not to the run.
constexpr const char* kOfOneStart[] = {"resume", "init-from", "dump", "out", "threads", "device"};

// Flags that say how long a run is; one of them does.
constexpr const char* kLengths[] = {"steps", "epochs", "tokens"};

void keep_one_length(Flags& flags) {
  for (auto [a, b] : {std::pair("steps", "epochs"), {"steps", "tokens"}, {"epochs", "tokens"}})
    if (flags.value(a) != "0" && flags.value(b) != "0") flags.exclude(a, b);
}

template <size_t n>
bool is_one_of(const std::string& name, const char* const (&names)[n]) {
  return std::any_of(names, names + n, [&](const char* other) { return name == other; });
}

std::string conf_path(const std::string& out) { return out + "/run.conf"; }

// The flags that are the run's. It is as long as --steps, --epochs or --tokens says; --vocab is there where the run trains a
// tokenizer.
std::vector<std::pair<std::string, std::string>> flags_of_run(const Flags& flags, bool trains_tokenizer) {
  auto values = flags.values();
  bool by_epochs = flags.value("epochs") != "0", by_tokens = flags.value("tokens") != "0";
  std::erase_if(values, [&](const auto& flag) {
    return is_one_of(flag.first, kOfOneStart) || (flag.first == "steps" && (by_epochs || by_tokens)) ||
           (flag.first == "epochs" && !by_epochs) || (flag.first == "tokens" && !by_tokens) ||
           (!trains_tokenizer && flag.first == "vocab");
  });
  return values;
}

// They as a file for --config, in which the others follow from those that were given.
std::string conf_text(const Flags& flags, const std::set<std::string>& given, bool trains_tokenizer) {
  std::string lines = as_started(
      "# The flags of this run; ./train --config takes this file. What stands behind a # was not given, but "
      "follows.\n");
  for (const auto& [name, value] : flags_of_run(flags, trains_tokenizer)) {
    std::string quoted;
    for (char c : value)
      quoted += c == '"' || c == '\\' ? std::string("\\") + c : c == '\n' ? "\\n" : std::string(1, c);
    lines += (given.count(name) ? "" : "# ") + name + " = \"" + quoted + "\"\n";
  }
  return lines;
}

Json flags_record(const Flags& flags, bool trains_tokenizer) {
  Json record = Json::object();
  for (const auto& [name, value] : flags_of_run(flags, trains_tokenizer)) record.set(name, value);
  return record;
}

// A set of flags of ./train apart from those of the command line.
struct OtherFlags {
  TrainOptions options;
  Flags flags{"", ""};
  OtherFlags() { add_train_flags(flags, options); }
};

// The lines of a run's run.conf; a mistake in it is said with a way out.
std::vector<Flags::Line> lines_of_conf(const std::string& path, const std::string& way_out) {
  try {
    OtherFlags checked;
    std::vector<Flags::Line> lines = checked.flags.lines_of(path);
    for (const Flags::Line& line : lines) {
      if (is_one_of(line.name, kOfOneStart))
        fail("%s: %s belongs on the command line", line.place.c_str(), line.name.c_str());
      checked.flags.set(line.name, line.value, line.place);
    }
    return lines;
  } catch (const Error& e) {
    fail("%s; %s", e.what(), way_out.c_str());
  }
}

// Flags of the run of which a run.conf says nothing, not even behind a #.
std::string lost_lines(const std::string& path, const Flags& flags) {
  constexpr int kMost = 4;
  std::string conf = "\n" + read_file(path), names;
  int lost = 0;
  for (const auto& [name, value] : flags_of_run(flags, false)) {
    bool is_there = conf.find("\n" + name + " = ") != conf.npos || conf.find("\n# " + name + " = ") != conf.npos;
    if (is_there || flags.typed(name)) continue;
    if (++lost <= kMost) names += (names.empty() ? "" : ", ") + name;
  }
  return names + (lost > kMost ? text(" and %d more", lost - kMost) : "");
}

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// A folder's own name: without slashes behind it, and not through a link or a dot, whose parent is another.
std::string own_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  std::string last = path.substr(path.rfind('/') + 1);
  if (last != "." && last != ".." && !std::filesystem::is_symlink(path, error)) return path;
  std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

// A count that state.json holds.
int64_t count_in(const Json& record, const char* name, const std::string& path) {
  int64_t count = record.get_int(name, path);
  if (count < 0) fail("%s: `%s` should be 0 or more, not %lld", path.c_str(), name, (long long)count);
  return count;
}

// Steps of the folders named as checkpoints, whole or not.
bool holds_checkpoints(const std::string& out) {
  std::vector<std::string> names = list_folder(out);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return checkpoint_step(name) >= 0 && folder_exists(out + "/" + name);
  });
}

// Names the runs that lie where one was looked for.
[[noreturn]] void fail_to_resume(const std::string& run, bool latest) {
  std::string parent = parent_of(run), beside;
  for (const std::string& name : list_folder(parent)) {
    std::string path = parent == "." ? name : parent + "/" + name;
    if (name[0] != '.' && folder_exists(path) && (file_exists(conf_path(path)) || holds_checkpoints(path)))
      beside += (beside.empty() ? "" : ", ") + path;
  }
  fail("--resume: %s %s%s%s", run.c_str(), folder_exists(run) ? "holds no run" : "is not there",
       beside.empty() ? "" : ("; runs are in " + beside).c_str(),
       latest ? "; without --resume, or with --resume auto, a new run starts" : "");
}

}  // namespace

// --- Names

namespace {

// A checkpoint's record is JSON, and JSON is UTF-8: another name could not be found again.
void require_utf8(const char* flag, const std::string& name) {
  if (!is_utf8(name))
    fail("--%s %s: the name is not UTF-8, so that no checkpoint can record it; rename it", flag, visible(name).c_str());
}

// Files in the way of checkpoints, which would be met only when the first is saved.
void require_room_for_checkpoints(const std::string& out) {
  if (file_exists(out)) fail("%s is a file; a run needs a folder", out.c_str());
  for (const std::string& name : list_folder(out))
    if ((checkpoint_step(name) >= 0 || is_partial_checkpoint(name)) && file_exists(out + "/" + name))
      fail("%s/%s: a file has the name of a checkpoint's folder; move it away", out.c_str(), name.c_str());
}

}  // namespace

// What flags of text may name, before anything is looked for.
void Trainer::check_names(Flags& flags) const {
  const std::pair<const char*, const std::string*> files[] = {
      {"resume", &o_.resume}, {"init-from", &o_.init_from}, {"dump", &o_.dump}};
  for (auto [flag, name] : files)
    if (flags.given(flag) && name->empty()) fail("--%s is empty; name a file or folder, or leave the flag out", flag);
  if (!o_.resume.empty() && !o_.init_from.empty()) fail("--resume and --init-from exclude each other");
  if (!o_.tokenizer.path.empty()) flags.exclude("vocab", "tokenizer", ": a tokenizer has as many ids as it has");
  keep_one_length(flags);
  if (flags.given("out")) require_utf8("out", o_.out);
}

// --- What is resumed

// The latest checkpoint in --out is meant, of `auto` if there is a run.
bool Trainer::resumes_out() const { return o_.resume == "latest" || o_.resume == "auto"; }

// Where the run lives, and whether what is resumed lives there, too: --resume names a checkpoint, or a run's folder.
void Trainer::find_folders(Flags& flags) {
  while (o_.out.size() > 1 && o_.out.back() == '/') o_.out.pop_back();
  if (o_.resume.empty() || resumes_out()) return;
  if (file_exists(o_.resume)) fail("--resume %s is a file; name a run's folder, or a checkpoint's", o_.resume.c_str());
  o_.resume = own_name(o_.resume);
  bool is_checkpoint = names_checkpoint(o_.resume);
  std::string run = is_checkpoint ? parent_of(o_.resume) : o_.resume;
  if (!flags.given("out")) o_.out = run;
  in_place_ = same_folder(run, o_.out);
  if (is_checkpoint && checkpoint_step(o_.resume) < 0 && in_place_ && o_.dump.empty())
    fail("--resume %s: a checkpoint that is not in its run's folder; say with --out where the run is to continue",
         o_.resume.c_str());
}

// Finds what --resume means and takes that run's flags; or finds what --init-from means.
void Trainer::find_resumed(Flags& flags) {
  if (!o_.init_from.empty()) init_from_ = find_checkpoint(o_.init_from);
  if (o_.resume.empty()) return;
  bool latest = resumes_out();
  std::string run = latest ? o_.out : o_.resume;
  if ((!latest && names_checkpoint(run)) || holds_checkpoints(run)) {
    resumed_from_ = find_checkpoint(run);
  } else if (file_exists(conf_path(run)) && o_.dump.empty()) {
    start_again(flags, run);
    return;
  } else if (o_.resume == "auto" && o_.dump.empty()) {
    o_.resume = "";
    return;
  } else {
    fail_to_resume(run, latest);
  }
  std::string path = resumed_from_.path("state.json");
  record_ = resumed_from_.read_json("state.json");
  step_ = first_step_ = count_in(record_, "step", path);
  take_record(flags);
}

// A run that has no checkpoint yet: run.conf has all that is known of it.
void Trainer::start_again(Flags& flags, const std::string& run) {
  std::string conf = conf_path(run);
  notes_.push_back(text("%s has no checkpoint yet: starting its run again from the first step", run.c_str()));
  OtherFlags before;
  for (const Flags::Line& line : lines_of_conf(conf, "mend it, or start the run anew without --resume")) {
    before.flags.set(line.name, line.value, line.place);
    if (!flags.given(line.name)) flags.take(line);
  }
  auto now = flags.values(), was = before.flags.values();
  for (size_t i = 0; i < now.size(); ++i)
    if (now[i] != was[i] && !is_one_of(now[i].first, kOfOneStart))
      notes_.push_back(
          text("--%s is now %s, was %s", now[i].first.c_str(), now[i].second.c_str(), was[i].second.c_str()));
  keep_one_length(flags);
  if (std::string lost = lost_lines(conf, flags); !lost.empty())
    notes_.push_back(
        text("note: %s has lost its lines of %s: they are as without these flags", conf.c_str(), lost.c_str()));
  o_.resume = "";
}

// What has changed since the checkpoint was written stands in run.conf, from the run's latest start. A checkpoint that
// is named itself goes by its own flags.
bool Trainer::goes_by_run_conf() const {
  bool named = !resumes_out() && checkpoint_step(o_.resume) >= 0;
  return !named && file_exists(conf_path(parent_of(resumed_from_.folder())));
}

// Takes the checkpoint's flags where none were given. What the command line or run.conf says otherwise is noted, or
// refused where it would make it another run.
void Trainer::take_record(Flags& flags) {
  std::string path = resumed_from_.path("state.json"), conf = conf_path(parent_of(resumed_from_.folder()));
  const Json& recorded = record_.get("flags", path);
  recorded_vocab_ = recorded.find("vocab") != nullptr;
  OtherFlags before;
  for (const auto& [name, value] : recorded.members) {
    if (value.kind != Json::Kind::string)
      fail("%s: flag `%s` should be recorded as a string", path.c_str(), name.c_str());
    if (!flags.has(name))
      fail("%s: flag `%s` is unknown to this ./train; was the run made by another version?", path.c_str(),
           name.c_str());
    before.flags.set(name, value.string, path);
    if (!record_.find("given")) given_.insert(name);
  }
  if (const Json* given = record_.find("given"))
    for (const Json& name : given->items) given_.insert(name.string);
  for (const auto& [name, was] : before.flags.values())
    if (!is_one_of(name, kOfOneStart) && !flags.given(name)) flags.set(name, was, path);
  if (goes_by_run_conf())
    for (const Flags::Line& line : lines_of_conf(conf, "mend or delete it: the checkpoint has the run's flags"))
      if (!flags.given(line.name)) flags.take(line);
  keep_one_length(flags);
  for (const auto& [name, was] : before.flags.values()) {
    bool went_by_it = recorded.find(name) || (name != "steps" && name != "vocab");
    if (flags.given(name) && went_by_it && !is_one_of(name, kOfOneStart)) note_change(flags, name, was);
  }
}

bool Trainer::may_change(const std::string& flag, const std::string& value) const {
  if (is_one_of(flag, kModelFlags)) return false;
  // Files may have moved; their checksum decides.
  if (flag == "data") return file_exists(value) || names_shards(value);
  return !o_.dump.empty() || !is_one_of(flag, kDataFlags);
}

void Trainer::note_change(const Flags& flags, const std::string& name, const std::string& was) {
  std::string now = flags.value(name), place = flags.place(name);
  if (now == was) return;
  if (!may_change(name, now))
    fail(
        "--%s %s: the run in %s %s; leave the flag out to continue it, or start another run (--init-from takes its "
        "weights)",
        name.c_str(), now.c_str(), resumed_from_.folder().c_str(),
        was.empty() ? "was started without it" : ("has " + was).c_str());
  other_order_ |= name == "pack" || name == "seq" || name == "seed";
  notes_.push_back(text("--%s is now %s, was %s%s", name.c_str(), now.c_str(), was.c_str(),
                        place.empty() ? "" : (" (" + place + ")").c_str()));
}

// --- From words to values

// The model: as given, else that of the weights that are taken over, else its sizes from the preset. What comes from
// weights follows from no other flag, so that it counts as given.
void Trainer::take_sizes(Flags& flags) {
  bool takes_over = !init_from_.empty(), takes_sizes = takes_over && !flags.given("model");
  ModelConfig w = takes_over ? read_config(init_from_) : ModelConfig();
  ModelConfig p = takes_sizes ? w : preset(o_.preset);
  auto take = [&](const char* name, auto& value, auto other) {
    if (flags.given(name)) return;
    value = other;
    if (takes_over) given_.insert(name);
  };
  ModelConfig& m = o_.model;
  take("layers", m.layers, p.layers), take("width", m.width, p.width), take("heads", m.heads, p.heads);
  take("kv-heads", m.kv_heads, flags.given("heads") ? m.heads : p.kv_heads);
  take("head-dim", m.head_dim,
       std::max(2, flags.given("width") || flags.given("heads") ? m.width / m.heads : p.head_dim));
  take("ffn", m.ffn, flags.given("width") ? (m.width * 8 / 3 + 63) / 64 * 64 : p.ffn);
  take("seq", m.context, has_recipe(m) ? std::max(p.context, recipe_for(m).context) : p.context);
  take("window", m.window, p.window);
  take("full-attention-every", m.full_attention_every, p.full_attention_every);
  if (!flags.given("head-dim") && m.width % m.heads != 0)
    fail("--width %d is not a multiple of --heads %d; choose others, or give --head-dim", m.width, m.heads);
  if (takes_over) {
    take("rope-theta", m.rope_theta, w.rope_theta), take("residual-scale", m.residual_scale, w.residual_scale);
    take("plain-input", m.plain_input, w.plain_input);
    take("head-gate", m.head_gate, w.head_gate), take("branch-norm", m.branch_norm, w.branch_norm);
  }
}

// As given, else that of the weights that are taken over; of a run of one pass, none.
void Trainer::take_fusion(Flags& flags) {
  if (flags.given("fusion")) return;
  Fusion of_weights = init_from_.empty() ? Fusion::none : read_config(init_from_).fusion;
  if (of_weights != Fusion::none) {
    o_.model.fusion = of_weights;
    given_.insert("fusion");
  } else if (schedule_->most_passes() == 1) {
    o_.model.fusion = Fusion::none;
  }
}

void Trainer::resolve(Flags& flags) {
  bool resumed = !resumed_from_.empty();
  if (!resumed) take_sizes(flags);
  parse_fused_passes("eval-passes", o_.eval_passes);  // may be wrong
  if (!resumed) follow_size(flags);
  schedule_ = std::make_unique<PassSchedule>(o_.passes);
  if (!resumed) take_fusion(flags);
  o_.model.resolve();
  if (schedule_->most_passes() > 1 && !has_feedback())
    fail("--passes %s needs a model with feedback; --fusion none has none", o_.passes.c_str());
  o_.pass.seed = uint64_t(o_.seed);
  o_.optim.resolve(o_.model.width);
  if (!o_.dump.empty()) o_.batch_tokens = 0;  // a dump is one micro-batch
  accumulate();
  if (double(o_.optim.min_lr) > double(o_.optim.lr))
    fail("--min-lr %g is more than the peak, --lr %g", double(o_.optim.min_lr), double(o_.optim.lr));
}

// The micro-batches of a step.
void Trainer::accumulate() {
  int64_t micro = int64_t(o_.batch) * o_.model.context, wanted = o_.batch_tokens > 0 ? o_.batch_tokens : micro;
  if (wanted % micro != 0)
    fail("--batch-tokens %lld is not a multiple of --batch × --seq = %lld", (long long)wanted, (long long)micro);
  if (micro > 1 << 26)
    fail("--batch × --seq is %lld rows, more than this engine takes at once; use --batch-tokens to accumulate",
         (long long)micro);
  accumulation_ = wanted / micro;
}

// What a model of this size is trained with, where the flags do not say.
void Trainer::follow_size(Flags& flags) {
  if (!has_recipe(o_.model)) return;
  Recipe usual = recipe_for(o_.model);
  auto follow = [&](const char* name, auto& value, auto from_recipe) {
    if (flags.given(name)) return;
    value = from_recipe;
    followed_.push_back(text("--%s %s", name, flags.value(name).c_str()));
  };
  if (!flags.given("seq")) followed_.push_back(text("--seq %d", o_.model.context));
  follow("batch", o_.batch, std::max(1, usual.batch * usual.context / std::max(usual.context, o_.model.context)));
  follow("clip", o_.optim.clip, usual.clip);
  follow("passes", o_.passes, usual.passes);
  if (PassSchedule(o_.passes).most_passes() > 1)
    follow("prefix-mixin", o_.pass.mixin, usual.mixin), follow("jitter", o_.pass.jitter, usual.jitter);
  follow("eval-every", o_.eval_every, usual.eval_every);
  follow("sample-every", o_.sample_every, usual.sample_every);
  follow("save-every", o_.save_every, usual.save_every);
  follow("val-tokens", o_.val_tokens, usual.val_tokens);
}

// How long such a run is, and what follows from that: the data is read by now.
void Trainer::follow_length(Flags& flags) {
  if (!has_recipe(o_.model) || !o_.dump.empty()) return;
  bool by_steps = flags.given("steps"), says = by_steps || o_.epochs > 0 || o_.tokens > 0;
  double parameters = double(param_layout(o_.model).count()), epoch = double(loader_->tokens());
  double most = kTokensAParameter * parameters, tokens = data_.made ? most : std::min(most, epoch);
  if (says) tokens = o_.tokens > 0 ? double(o_.tokens) : double(o_.epochs) * epoch;
  if (!flags.given("batch-tokens")) {
    int64_t micro = int64_t(o_.batch) * o_.model.context;
    o_.batch_tokens = int(usual_step_tokens(parameters, by_steps ? HUGE_VAL : tokens, micro));
    accumulate();
    followed_.push_back(text("--batch-tokens %d", o_.batch_tokens));
  }
  double step_tokens = double(accumulation_) * o_.batch * o_.model.context;
  if (!says) {
    o_.steps = std::max<int64_t>(1, int64_t(tokens / step_tokens));
    followed_.push_back(text("--steps %lld (%s)", (long long)o_.steps,
                             tokens < most ? "one epoch" : text("%g tokens a parameter", kTokensAParameter).c_str()));
  }
  if (!flags.given("warmup")) {
    o_.optim.warmup = usual_warmup(steps_of(o_));
    followed_.push_back(text("--warmup %d", o_.optim.warmup));
  }
}

// The checkpoint that is continued, or whose weights are taken over, if there is one.
const Checkpoint& Trainer::weights_from() const { return resumed_from_.empty() ? init_from_ : resumed_from_; }

DataOptions Trainer::data_options(const Flags& flags, const std::optional<Tokenizer>& of_weights) const {
  DataOptions o{.data = o_.data, .tokenizer = o_.tokenizer, .vocab = o_.vocab, .context = o_.model.context};
  o.seed = o_.seed, o.of_model = of_weights ? &*of_weights : nullptr;
  o.format = o_.format;
  std::string own = weights_from().empty() ? "" : weights_from().path("tokenizer.json");
  TokenizerFlags same = o.tokenizer;
  if (file_exists(own)) same.path = own;
  o.data_flags = same.words();
  if (same.path.empty() && flags.given("vocab")) o.data_flags += text(" --vocab %d", o_.vocab);
  return o;
}

// The tokenizer of the weights that are there already: their own, unless they are taken over and it is named.
std::optional<Tokenizer> Trainer::tokenizer_of_weights(const Flags& flags) const {
  const Checkpoint& from = weights_from();
  if (from.empty()) return std::nullopt;
  ModelConfig config = read_config(from);
  TokenizerFlags given = o_.tokenizer;
  if (!resumed_from_.empty() && !flags.typed("tokenizer")) given.path = "";  // as it was then, and may be gone
  return read_tokenizer(from, config.vocab, config.end_of_text, given);
}

// The steps to come must find the data of those before. The held-out part changes no step, but what its losses say.
void Trainer::require_same_data() {
  std::string path = resumed_from_.path("state.json");
  if (uint32_t(record_.get_int("data_checksum", path)) != data_.checksum)
    fail(
        "--data %s: the run in %s was trained on other data; has the file changed? If it has moved, say where to with "
        "--data",
        o_.data.c_str(), resumed_from_.folder().c_str());
  if (record_.find("held_out_checksum") &&
      uint32_t(record_.get_int("held_out_checksum", path)) != data_.held_out_checksum)
    notes_.push_back(
        text("note: the held-out part of %s has changed: losses on it compare no longer with those up to step %lld",
             o_.data.c_str(), (long long)step_));
}

void Trainer::read_data(Flags& flags) {
  require_utf8("data", o_.data);
  std::optional<Tokenizer> of_weights = tokenizer_of_weights(flags);
  DataOptions from = data_options(flags, of_weights);
  bool resumed = !resumed_from_.empty(), are_tokens = names_token_files(from);
  trains_tokenizer_ = resumed ? recorded_vocab_ : !are_tokens && !of_weights && from.tokenizer.path.empty();
  // Where the weights' own tokenizer was trained for as many ids, the flag holds.
  bool holds = !init_from_.empty() && recorded_flag(init_from_, "vocab") == flags.value("vocab");
  if (flags.given("vocab") && !trains_tokenizer_ && !holds)
    fail("--vocab %d: no tokenizer is trained here, %s; leave --vocab out", o_.vocab,
         are_tokens ? "token files have the ids of theirs" : "the weights bring theirs");
  Pack pack = o_.pack;
  data_ = resumed && !flags.typed("data") ? read_recorded_data(from, resumed_from_.folder()) : read_training_data(from);
  if (resumed && !other_order_) require_same_data();
  if (const Checkpoint& from = weights_from(); !from.empty())
    require_vocabulary(data_, read_config(from), from.folder());
  // Where a file was named, what it was found beside may be another the next time.
  if (resumed_from_.empty() && !o_.tokenizer.path.empty() && data_.tokenizer.end_of_text() >= 0) {
    o_.tokenizer.end_token = data_.tokenizer.bytes_of(data_.tokenizer.end_of_text());
    given_.insert("end-token");
  }
  o_.model.vocab = data_.vocabulary.size, o_.model.end_of_text = data_.vocabulary.end_of_text;
  loader_ = std::make_unique<Loader>(data_.train, data_.vocabulary, pack, o_.model.context, uint64_t(o_.seed));
  auto held_out = [&](int rows) {
    return validation_batches(data_.validation, data_.vocabulary, pack, o_.model.context, rows,
                              std::max({kHeldOutTokens, o_.val_tokens, o_.final_eval}));
  };
  validation_ = held_out(kEvaluationRows);
  if (o_.dump.empty()) require_targets(validation_);
  probe_ = held_out(o_.model.context);
  probe_.resize(std::min<size_t>(probe_.size(), 1));
}

// How long a run of these flags is.
int64_t Trainer::steps_of(const TrainOptions& o) const {
  double step_rows = double(accumulation_) * o.batch;
  if (o.tokens > 0) return std::max<int64_t>(1, std::llround(double(o.tokens) / (step_rows * o_.model.context)));
  if (!(o.epochs > 0)) return o.steps;
  return std::max<int64_t>(1, std::llround(double(o.epochs) * rows_per_epoch_ / step_rows));
}

// An epoch's rows, and with --epochs or --tokens the steps of all.
void Trainer::count_steps(Flags& flags) {
  rows_per_epoch_ = loader_->expected_rows();
  for (const char* said : kLengths) {  // at most one, which replaces those recorded
    if (!flags.given(said) || flags.value(said) == "0") continue;
    if (said != std::string("epochs")) o_.epochs = 0;
    if (said != std::string("tokens")) o_.tokens = 0;
  }
  if (resumed_from_.empty()) follow_length(flags);
  o_.steps = steps_of(o_);
  if (step_ > o_.steps)
    fail("--steps %lld: %s is already at step %lld", (long long)o_.steps, resumed_from_.folder().c_str(),
         (long long)step_);
  if (!o_.dump.empty()) return;  // one step, without an update: nothing to note
  if (!resumed_from_.empty() && step_ > 0) note_learning_rate();
  double step_rows = double(accumulation_) * o_.batch, epochs = double(o_.steps) * step_rows / rows_per_epoch_;
  if (!data_.made && epochs > 1.05)
    notes_.push_back(text("note: every text is seen about %.2g times; after %lld steps the data begins again", epochs,
                          (long long)std::ceil(rows_per_epoch_ / step_rows)));
}

// Where the schedule is another than that of the steps up to the checkpoint, the learning rate may jump.
void Trainer::note_learning_rate() {
  OtherFlags recorded;
  TrainOptions& then = recorded.options;
  std::string path = resumed_from_.path("state.json");
  for (const auto& [name, value] : record_.get("flags", path).members) recorded.flags.set(name, value.string, path);
  then.optim.resolve(o_.model.width);
  int64_t steps = steps_of(then);
  if (then.epochs > 0 && o_.epochs == 0)
    notes_.push_back(text("--steps %lld takes the place of --epochs %g, which were %lld steps", (long long)o_.steps,
                          double(then.epochs), (long long)steps));
  if (then.tokens > 0 && o_.tokens == 0)
    notes_.push_back(text("--steps %lld takes the place of --tokens %lld, which were %lld steps", (long long)o_.steps,
                          (long long)then.tokens, (long long)steps));
  auto schedule_in = [](const OptimizerOptions& o, int64_t steps) {
    return std::make_tuple(o.lr, o.min_lr, o.schedule, o.warmup, o.cooldown, steps);
  };
  if (step_ == o_.steps || schedule_in(then.optim, steps) == schedule_in(o_.optim, o_.steps)) return;
  auto rate = [](const OptimizerOptions& o, int64_t step, int64_t steps) {
    return double(float(double(o.lr) * schedule(o, step, steps)));
  };
  if (rate(then.optim, step_, steps) == rate(o_.optim, step_, o_.steps)) return;
  notes_.push_back(text("note: the learning rate was %g in step %lld and is %g in step %lld",
                        rate(then.optim, step_ - 1, steps), (long long)step_, rate(o_.optim, step_, o_.steps),
                        (long long)step_ + 1));
}

std::string Trainer::memory_advice() const {
  std::string advice = "take ";
  if (o_.batch > 1)
    advice += text("a smaller --batch (with --batch-tokens %lld the steps stay the same), ",
                   (long long)accumulation_ * o_.batch * o_.model.context);
  if (o_.recompute != Recompute::block) advice += "--recompute block, ";
  return advice + "a smaller --model or --seq";
}

void Trainer::take_memory(const std::function<void(const std::string&)>& tell) {
  ParamLayout layout = param_layout(o_.model);
  PassLimits limits{o_.batch * o_.model.context, schedule_->most_passes(), o_.recompute};
  Weights::plan_memory(plan_, *kernels_, layout);
  plan_.add("gradients", double(layout.floats) * sizeof(float));
  if (o_.dump.empty()) Optimizer::plan_memory(plan_, layout, o_.optim);
  PassRunner::plan_memory(plan_, *kernels_, o_.model, limits);
  if (o_.dump.empty())
    plan_evaluation_memory(plan_, *kernels_, o_.model, std::max(kEvaluationRows, o_.model.context),
                           !data_.puzzles.empty());
  require_memory(*kernels_, plan_, memory_advice());
  tell("taking " + show_bytes(plan_.total()) + " of memory");

  model_ = std::make_unique<Model>(o_.model);
  weights_ = std::make_unique<Weights>(*kernels_, *model_);
  grads_ = Block(*kernels_, layout.floats);
  grad_views_ = view_params(o_.model, model_->layout, grads_.data());
  if (o_.dump.empty()) optimizer_ = std::make_unique<Optimizer>(*kernels_, model_->layout, o_.optim);
  runner_ = std::make_unique<PassRunner>(*kernels_, model_->config, limits);
}

DiskPlan Trainer::disk_plan() const {
  constexpr double kRecords = 1 << 16;  // config.json, state.json, headers
  std::string tokenizer = data_.tokenizer.reads_text() ? data_.tokenizer.to_json() : "";
  double bytes = double(model_->layout.count()) * sizeof(float) + Optimizer::state_bytes(model_->layout, o_.optim) +
                 double(tokenizer.size()) + kRecords;
  int64_t present = in_place_ && !resumed_from_.empty() ? int64_t(list_checkpoints(o_.out).size()) : 0;
  return plan_disk(bytes, step_, o_.steps, o_.save_every, {o_.keep, o_.keep_every}, present);
}

Trainer::Trainer(TrainOptions& options, Flags& flags) : o_(options) {
  bool dumping = !o_.dump.empty();
  check_names(flags);
  find_folders(flags);
  if (!dumping) require_room_for_checkpoints(o_.out);
  if (!dumping && (holds_checkpoints(o_.out) || file_exists(conf_path(o_.out))))
    lock_ = std::make_unique<FolderLock>(o_.out);
  find_resumed(flags);
  bool goes_elsewhere = o_.resume.empty() || !in_place_;
  if (!dumping && goes_elsewhere && holds_checkpoints(o_.out))
    fail("%s holds a run: continue it with --resume, or give this one another --out", o_.out.c_str());
  resolve(flags);
  const Checkpoint& from = weights_from();
  bool takes_feedback = has_feedback() && !from.empty() && read_config(from).fusion == o_.model.fusion;
  feedback_started_ = takes_feedback && feedback_is_trained(from, read_config(from));
  flags.refuse_idle(idle_train_flags(o_, feedback_started_));
  o_.threads = start_threads(o_.threads);
  kernels_ = &kernels_for(o_.device, o_.dtype);
  read_data(flags);
  count_steps(flags);
  flags.refuse_idle({{{"z-loss"},
                      dumping && o_.optim.z_loss > 0 && !in_cooldown(o_.optim, step_, o_.steps),
                      text("step %lld is before the cooldown, and with --cooldown 1 in it", (long long)step_ + 1)}});
  expect_rows();
  Progress preparing(stdout);
  auto tell = [&](const std::string& what) { preparing.update(-1, what); };
  take_memory(tell);
  tell(weights_from().empty() ? "drawing the weights" : "reading the weights");
  if (!resumed_from_.empty()) {
    load_state();
  } else {
    init_params(model_->layout, model_->block.data(), uint64_t(o_.seed));
    if (!init_from_.empty()) {
      taken_over_ = init_from(*model_, init_from_);
      feedback_started_ =
          has_feedback() && taken_over_.fresh.empty() && feedback_is_trained(init_from_, read_config(init_from_));
    }
  }
  weights_->write();
  preparing.erase();
  if (dumping) return;
  measure_peak();
  disk_ = disk_plan();
  require_disk(disk_, o_.out);
  claim_out(flags);
}

Trainer::~Trainer() = default;

void Trainer::seek_recorded(const std::string& path) {
  DataPosition position = {count_in(record_, "epoch", path), count_in(record_, "epoch_shard", path),
                           count_in(record_, "epoch_row", path)};
  try {
    loader_->seek(position);
  } catch (const Error& e) {
    fail("%s: %s", path.c_str(), e.what());
  }
}

void Trainer::load_state() {
  std::string path = resumed_from_.path("state.json");
  read_params(*model_, resumed_from_);
  if (!other_order_) seek_recorded(path);
  if (!o_.dump.empty()) return;
  std::vector<int64_t> counts;
  for (const Json& n : record_.get("update_counts", path).items) {
    if (n.kind != Json::Kind::number || n.number < 0)
      fail("%s: `update_counts` should hold whole numbers", path.c_str());
    counts.push_back(int64_t(n.number));
  }
  SafetensorsFile moments(resumed_from_.path("optimizer.safetensors"));
  optimizer_->load(moments, counts);
  if (in_place_) last_saved_ = step_;
  costs_.tokens = count_in(record_, "tokens", path);
  costs_.token_passes = record_.get_number("token_passes", path);
  costs_.rows = record_.get_number("rows", path);
  costs_.flops = record_.get_number("flops", path);
  costs_.seconds = record_.get_number("seconds", path);
  costs_before_ = costs_;
  if (const Json* spikes = record_.find("spikes")) spikes_.load(*spikes, path);
  if (record_.find("spikes_skipped")) spikes_skipped_ = count_in(record_, "spikes_skipped", path);
}

// From here on the run writes: its folder, its flags, its log.
void Trainer::claim_out(Flags& flags) {
  make_folder(o_.out);
  if (!lock_) {
    lock_ = std::make_unique<FolderLock>(o_.out);
    if (holds_checkpoints(o_.out)) fail("%s: another run has just been started there", o_.out.c_str());
  }
  set_later_checkpoints_aside();
  for (const auto& [name, value] : flags_of_run(flags, trains_tokenizer_))
    if (flags.given(name)) given_.insert(name);
  record_flags_ = flags_record(flags, trains_tokenizer_);
  write_file(conf_path(o_.out), conf_text(flags, given_, trains_tokenizer_));
  if (data_.tokenizer.reads_text()) write_file(o_.out + "/tokenizer.json", data_.tokenizer.to_json());
  take_up_log();
}

// The log up to the step that is resumed, of which steps may be missing and lines be no JSON; elsewhere it begins anew.
void Trainer::take_up_log() {
  std::string path = o_.out + "/log.jsonl";
  bool goes_on = !resumed_from_.empty() && in_place_, was_there = file_exists(path);
  if (goes_on && record_.find("log_begins"))
    log_begins_ = record_.get_int("log_begins", resumed_from_.path("state.json"));
  if (!goes_on) log_begins_ = step_ + 1;
  LogDamage damage = cut_log(path, goes_on ? step_ : -1, log_begins_);
  std::string lost;
  if (goes_on && !damage.missing.empty()) lost = (was_there ? " has lost " : " is gone, and with it ") + damage.missing;
  if (damage.lines > 0)
    lost += text("%s %d damaged line%s now in %s.damaged", lost.empty() ? ":" : ";", damage.lines,
                 damage.lines == 1 ? " is" : "s are", path.c_str());
  if (!lost.empty()) notes_.push_back("note: " + path + lost);
  log_ = std::make_unique<JsonLog>(path);
}

// Where a run goes on from an earlier checkpoint, what came after that is no longer its past; but it may be wanted.
void Trainer::set_later_checkpoints_aside() {
  if (resumed_from_.empty() || !in_place_) return;
  std::vector<std::string> names = list_folder(o_.out);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (checkpoint_step(*name) <= step_ || (*name)[0] == '.' || !folder_exists(o_.out + "/" + *name)) continue;
    std::string aside = o_.out + "/aside_" + *name;
    for (int n = 2; folder_exists(aside) || file_exists(aside); ++n) aside = o_.out + text("/aside_%d_", n) + *name;
    rename_path(o_.out + "/" + *name, aside);
    notes_.push_back(text("a later checkpoint is now %s: remove it when it is not wanted", aside.c_str()));
  }
}

// --- The plan

// Rows that a token costs on average in the steps from each thousandth of the run on.
void Trainer::expect_rows() {
  constexpr int kPoints = 1000;
  double length = std::min<double>(data_.document_length, o_.model.context);
  double off = (length - 1) / length, uniform = off / 2;
  double suffix = o_.pass.mixin == PrefixMixin::uniform ? uniform
                  : o_.pass.mixin == PrefixMixin::off   ? off
                                                        : (uniform + off) / 2;
  expected_rows_.assign(kPoints, 0);
  double total = 0;
  for (int i = kPoints - 1; i >= 0; --i) {
    for (int k = 1; k <= schedule_->most_passes(); ++k) {
      double rows = 1 + (k - 1) * suffix;
      if (o_.pass.gradient == GradientMode::last && k > 1) rows += 1 - suffix;  // the last pass runs whole
      total += schedule_->share(k, i, kPoints) * rows;
    }
    expected_rows_[i] = total / (kPoints - i);
  }
}

double Trainer::expected_rows(double from) const {
  return expected_rows_[std::min(size_t(from * double(expected_rows_.size())), expected_rows_.size() - 1)];
}

namespace {

std::string count_of(int n, const char* thing) { return text("%d %s%s", n, thing, n == 1 ? "" : "s"); }

std::vector<std::string> model_parts(const ModelConfig& c, int64_t parameters) {
  std::string window = c.window > 0 ? text("window %d", c.window) : "full attention";
  if (c.window > 0 && c.full_attention_every > 0) window += text(" (full every %d)", c.full_attention_every);
  return {show_count(double(parameters)) + " parameters: " + count_of(c.layers, "layer"),
          text("width %d", c.width),
          count_of(c.heads, "head") + text(" of %d (%d key/value)", c.head_dim, c.kv_heads),
          text("ffn %d", c.ffn),
          text("vocabulary %d", c.vocab),
          window,
          text("fusion %s", name_of(c.fusion))};
}

}  // namespace

void Trainer::show_notes() const {
  for (const std::string& note : notes_) std::fputs(wrapped({note}, 2).c_str(), stdout);
}

// Whose weights the run starts from, and what of them this model has no place for, or has beyond them.
std::string Trainer::weights_line() const {
  if (init_from_.empty()) return "";
  std::string line = "those of " + init_from_.folder();
  for (const auto& [what, names] : {std::pair("; not taken: ", &taken_over_.left), {"; new: ", &taken_over_.fresh}})
    for (const std::string& name : *names) line += (&name == &names->front() ? what : ", ") + name;
  return named_line("weights", {line});
}

std::string Trainer::plan_text() const {
  const ModelConfig& c = model_->config;
  double passes = 0, rows = expected_rows(0);
  for (int64_t i = 0; i < 1000; ++i)
    for (int k = 1; k <= schedule_->most_passes(); ++k) passes += schedule_->share(k, i, 1000) / 1000 * k;
  long long step_tokens = (long long)accumulation_ * o_.batch * c.context;
  double epochs = double(o_.steps) * double(accumulation_) * o_.batch / rows_per_epoch_;
  // Rows are not always full. Without the markers between documents, which only a stream has.
  double tokens = epochs * double(loader_->tokens()) * (o_.pack == Pack::stream ? 1 : 1 - 1 / data_.document_length);
  std::string micro = accumulation_ > 1 ? text(" × %lld micro-batches", (long long)accumulation_) : "";
  std::string mixin = schedule_->most_passes() > 1 ? text("mix-in %s: ", name_of(o_.pass.mixin)) : "";
  const OptimizerOptions& opt = o_.optim;

  std::string out = named_line("model", model_parts(c, model_->layout.count())) + weights_line();
  out += named_line("data", data_.description);
  out += named_line("run", {text("%lld step%s of %lld tokens at most (%d × %d%s)", (long long)o_.steps,
                                 o_.steps == 1 ? "" : "s", step_tokens, o_.batch, c.context, micro.c_str()),
                            "about " + show_count(tokens) + " tokens", text("%.2g epochs", epochs)});
  out += named_line("passes", {o_.passes, mixin + text("%.2f passes a token", passes),
                               text("about %.2f rows a token", rows), show_count(rows * tokens) + " rows in all"});
  out +=
      named_line("optimize", {name_of(opt.kind), text("lr %g", double(opt.lr)), text("warm-up %d steps", opt.warmup),
                              opt.schedule == ScheduleKind::wsd ? text("cooldown %g", double(opt.cooldown)) : "cosine",
                              text("weight decay %g", double(opt.weight_decay)), text("clip %g", double(opt.clip))});
  if (opt.min_lr > 0) out.insert(out.size() - 1, text(", least lr %g", double(opt.min_lr)));
  if (!followed_.empty()) out += named_line("recipe", followed_);
  std::vector<std::string> kinds;
  for (const auto& [kind, bytes] : plan_.bytes) kinds.push_back(kind + " " + show_bytes(bytes));
  kinds[0] = show_bytes(plan_.total()) + ": " + kinds[0];
  out += named_line("memory", kinds);
  if (step_ < o_.steps)
    out += named_line("disk", {"at most " + show_count(disk_.checkpoints, "checkpoint") + " of " +
                                   show_bytes(disk_.bytes_each) + " at a time",
                               show_bytes(free_disk(o_.out)) + " free"});
  out += named_line("device",
                    {kernels_->name, kernels_->in_host_memory ? count_of(o_.threads, "thread") : kernels_->device,
                     text("peak %.4g GFLOP/s, as measured", peak_ / 1e9)});
  return out;
}
