// The flags of ./train: names, defaults, ranges and help; and which have no effect beside which others.
#include "error.h"
#include "recipe.h"
#include "trainer.h"

void add_train_flags(Flags& f, TrainOptions& o) {
  f.section("Data");
  f.add("data", &o.data,
        "token files (a folder of *.bin, or a pattern like 'd/*.bin'; those with the word val, valid or validation in "
        "their name are held out), a text file (its last tenth held out), or the built-in corpus: sums, all, or a mix "
        "like sums=8,cups=1");
  o.tokenizer.add(
      f,
      "tokenizer.json, tiktoken's ranks, GPT-2's folder, or bytes; empty: the one beside token files, else a "
      "BPE trained on the text",
      "how a BPE that is trained cuts text (empty: llama3, and qwen2 for the built-in corpus)");
  f.add("vocab", &o.vocab, "ids of a BPE that is trained, at most (257: bytes)", 257, 1 << 20);
  f.choice("format", &o.format, {"", "text"},
           "empty: what is no text is refused by what it is; text: --data is a file of text, whatever it looks like");
  f.choice("pack", &o.pack, "documents are segments that see only themselves, or one stream across borders");
  f.add("seq", &o.model.context, "tokens in a row, T: the most that attention sees", 2, 1 << 20);
  f.add("batch", &o.batch, "rows computed together", 1, 1 << 20);
  f.add("batch-tokens", &o.batch_tokens, "tokens in an optimizer step, a multiple of batch × seq (0: batch × seq)", 0,
        1 << 30);

  f.section("Model");
  f.add("model", &o.preset, "sizes by name, which the flags below override, with their parameters: " + preset_sizes());
  f.add("layers", &o.model.layers, "layers, L", 1, kMostLayers);
  f.add("width", &o.model.width, "model width, D", 1, 1 << 20);
  f.add("heads", &o.model.heads, "query heads, H", 1, 4096);
  f.add("kv-heads", &o.model.kv_heads, "key/value heads, G; divides heads", 1, 4096);
  f.add("head-dim", &o.model.head_dim, "head width, d; even", 2, 4096);
  f.add("ffn", &o.model.ffn, "feed-forward width, F", 1, 1 << 22);
  f.add("window", &o.model.window, "positions that attention sees, the query's own included (0: all)", 0, 1 << 30);
  f.add("full-attention-every", &o.model.full_attention_every,
        "every n-th layer sees all, the others the window (0: none does)", 0, 4096);
  f.add("rope-theta", &o.model.rope_theta, "base of the rotary angles", 1, 1e12f);
  f.add("residual-scale", &o.model.residual_scale, "alpha on each branch (0: 1/sqrt(2 layers))", 0, 100);
  f.choice("fusion", &o.model.fusion,
           "how state and token become an input; none: an ordinary transformer (the default where --passes is 1)");
  f.choice("plain-input", &o.model.plain_input, "the plain input: the embedding normed, or as it is");
  f.add("head-gate", &o.model.head_gate, "a sigmoid gate on each head's output");
  f.add("branch-norm", &o.model.branch_norm, "a second norm on each branch's output");

  f.section("Passes");
  f.add("passes", &o.passes,
        "passes over a batch: a number, paper, two-pass, or a schedule `fraction of the run:percent of one/two/… pass "
        "steps,…`");
  f.add("lambda", &o.pass.lambda, "weight of the later passes' mean loss", 0, 1000);
  f.choice("prefix-mixin", &o.pass.mixin,
           "length of a later pass's plain prefix: uniform, uniform for half of the segments and else 1, or 1");
  f.add("jitter", &o.pass.jitter, "half-width of the uniform noise on a carried state", 0, 10);
  f.choice("gradient", &o.pass.gradient, "through carried states, cut at them, or of the last pass alone");

  f.section("Optimizer");
  f.choice("optimizer", &o.optim.kind,
           "normuon: on the stack's and the feedback's matrices, with AdamW at lr/20 on the rest");
  f.add("lr", &o.optim.lr, "peak learning rate (0: adamw 0.384 / width, normuon 1e-2)", 0, 10);
  f.choice("schedule", &o.optim.schedule,
           "after the warm-up: constant, then a linear fall over the cooldown; or half a cosine");
  f.add("min-lr", &o.optim.min_lr, "where the learning rate ends", 0, 10);
  f.add("warmup", &o.optim.warmup, "steps of linear warm-up", 0, 1 << 30);
  f.add("cooldown", &o.optim.cooldown, "last part of the run, in which the learning rate falls to zero", 0, 1);
  f.add("weight-decay", &o.optim.weight_decay, "on matrices other than the embedding (-1: adamw 0.1, normuon 0.01)", -1,
        10);
  f.add("clip", &o.optim.clip, "largest gradient norm (0: none)", 0, 1e9f);
  f.add("z-loss", &o.optim.z_loss, "weight of the squared logsumexp during the cooldown", 0, 1);
  f.add("steps", &o.steps, "optimizer steps", 1, int64_t(1) << 40);
  f.add("epochs", &o.epochs, "times through the data, in place of --steps (0: --steps says how long)", 0, 1e6f);
  f.add("tokens", &o.tokens, "tokens to train on, in place of --steps (0: --steps says how long)", 0, INT64_MAX);
  f.add("skip-spikes", &o.skip_spikes,
        "leave out updates whose loss or gradient is so many standard deviations above the last 128 steps' (0: none)",
        0, 1000);
  f.add("seed", &o.seed, "of everything random: weights, data order, passes, prefixes, jitter", 0, INT64_MAX);

  f.section("Run");
  f.add("out", &o.out, "folder for checkpoints, log.jsonl and run.conf");
  f.choice("device", &o.device, {"auto", "cpu", "cuda"}, "where the kernels run");
  f.choice(
      "dtype", &o.dtype, {"fp32", "bf16"},
      "activations and the matrices in products; bf16 (GPUs only) keeps parameters, gradients and moments in float32");
  f.add("threads", &o.threads, "CPU threads (0: all cores)", 0, 4096);
  f.choice(
      "recompute", &o.recompute,
      "what the backward pass computes again instead of keeping it, with the same bits: nothing, norms and SwiGLU, "
      "or whole layers");
  f.add("eval-every", &o.eval_every, "steps between evaluations on held-out text (0: only at the end)", 0, 1 << 30);
  f.add("val-tokens", &o.val_tokens, "held-out tokens in each of these", 2, INT64_MAX);
  f.add("final-eval", &o.final_eval,
        "held-out tokens of the final evaluation (0: as many as take about a tenth of the training)", 0, INT64_MAX);
  f.add("eval-passes", &o.eval_passes, "numbers of fused passes in the final evaluation");
  f.add("sample-every", &o.sample_every, "steps between samples (0: none)", 0, 1 << 30);
  f.add("save-every", &o.save_every, "steps between checkpoints (0: only at the end)", 0, 1 << 30);
  f.add("keep", &o.keep, "newest checkpoints to keep (0: all)", 0, 1 << 30);
  f.add("keep-every", &o.keep_every, "keep checkpoints of every n-th step for good (0: none), saving there, too", 0,
        1 << 30);
  f.add_optional("resume", &o.resume, "latest",
                 "continue a run from a checkpoint's folder or an --out folder; alone: the latest in --out; auto: "
                 "that, or a new run "
                 "where there is none");
  f.add("init-from", &o.init_from, "take the weights of a checkpoint and start a new run");
  f.add("dump", &o.dump,
        "run one step's forward and backward (jitter 0) and write everything to this .safetensors file");
}

// --- Flags without effect

namespace {

using Names = std::vector<std::string>;

std::vector<Flags::Idle> idle_pass_flags(const TrainOptions& o, bool had_feedback) {
  bool one_pass = PassSchedule(o.passes).most_passes() == 1, last = o.pass.gradient == GradientMode::last;
  bool trains_feedback = !one_pass && (last || o.pass.lambda > 0);
  bool looks_at_passes = parse_fused_passes("eval-passes", o.eval_passes).back() > 0;
  Names of_later = {"lambda", "prefix-mixin", "gradient"};
  if (o.pass.jitter > 0) of_later.push_back("jitter");
  return {
      {of_later, one_pass, text("--passes %s has no later pass", o.passes.c_str())},
      {{"lambda"}, last, "with --gradient last, no pass but the last has a loss"},
      {{"gradient"}, o.pass.lambda == 0 && !last, "with --lambda 0, later passes take no part in the backward pass"},
      {{"eval-passes"},
       looks_at_passes && !trains_feedback && !had_feedback,
       "no feedback is trained, so that there are no fused passes to look at"}};
}

std::vector<Flags::Idle> idle_window_flags(const ModelConfig& c) {
  bool some_full = c.full_attention_every > 0, windowed = c.window > 0;
  return {{{"window"}, windowed && c.full_attention_every == 1, "with --full-attention-every 1, every layer sees all"},
          {{"window", "full-attention-every"},
           windowed && c.window >= c.context,
           text("a window of %d positions holds every row, of --seq %d tokens", c.window, c.context)},
          {{"full-attention-every"}, some_full && !windowed, "without --window, every layer sees all"},
          {{"full-attention-every"},
           c.full_attention_every > c.layers,
           text("the model has %d layer%s, so that none sees all", c.layers, c.layers == 1 ? "" : "s")}};
}

std::vector<Flags::Idle> idle_schedule_flags(const TrainOptions& o) {
  const char* no_cooldown = "--schedule cosine has no cooldown";
  bool cosine = o.optim.schedule == ScheduleKind::cosine, z_loss = o.optim.z_loss > 0, cooldown = o.optim.cooldown > 0;
  return {{{"cooldown"}, cosine && cooldown, no_cooldown},
          {{"z-loss"}, cosine && z_loss, text("it is added in the cooldown, and %s", no_cooldown)},
          {{"z-loss"}, z_loss && !cooldown, "it is added in the cooldown, and --cooldown 0 leaves none"},
          {{"val-tokens"},
           o.eval_every == 0 && o.final_eval > 0,
           "--eval-every 0 leaves the final evaluation alone, and --final-eval says how much that reads"}};
}

Flags::Idle idle_dump_flags(const TrainOptions& o) {
  Names unused = {"batch-tokens", "optimizer",   "lr",         "min-lr",     "warmup",      "weight-decay",
                  "clip",         "skip-spikes", "val-tokens", "final-eval", "eval-passes", "eval-every",
                  "sample-every", "save-every",  "keep",       "keep-every"};
  bool goes_on_in_out = o.resume == "latest" || o.resume == "auto";
  if (!goes_on_in_out) unused.push_back("out");
  bool first_step = o.resume.empty();  // of however many
  if (first_step) unused.insert(unused.end(), {"steps", "epochs", "tokens"});
  if (o.optim.z_loss == 0 || (first_step && o.optim.cooldown < 1))
    unused.insert(unused.end(), {"schedule", "cooldown"});
  if (o.pass.jitter > 0) unused.push_back("jitter");
  return {unused, !o.dump.empty(), "--dump runs one micro-batch forward and back, without jitter or update"};
}

}  // namespace

std::vector<Flags::Idle> idle_train_flags(const TrainOptions& o, bool had_feedback) {
  std::vector<Flags::Idle> rules = idle_pass_flags(o, had_feedback);
  for (const Flags::Idle& rule : idle_window_flags(o.model)) rules.push_back(rule);
  for (const Flags::Idle& rule : idle_schedule_flags(o)) rules.push_back(rule);
  rules.push_back(idle_dump_flags(o));
  return rules;
}
