// ./bench: how fast the kernels are, beside what the machine can do. Every ceiling is measured in the same run, in turns
// with the work, since machines drift; the best of both counts.
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "decode.h"
#include "devices.h"
#include "error.h"
#include "flags.h"
#include "flops.h"
#include "json.h"
#include "log.h"
#include "model.h"
#include "optim.h"
#include "passes.h"
#include "program.h"
#include "random.h"

namespace {

struct Options {
  std::string shape, model = "d12", mixin = "uniform", recompute = "none";
  std::string mode = "standard", weights = "f32", device = "auto", dtype = "fp32";
  int vocab = 50257, batch = 0, seq = 0, passes = 1, threads = 0;
  float seconds = 2;
  bool json = false;
};

// All that can be wrong has been looked for: now the header, and then the work.
void begin(const Kernels& run, const Options& o, const Plan& plan) {
  require_memory(run, plan);
  if (o.json) return;
  std::string where = text("%s, %d thread%s", run.name, o.threads, o.threads == 1 ? "" : "s");
  std::fputs(wrapped({where}, 0).c_str(), stdout);
  std::fflush(stdout);
}

// --- Measuring

// The shortest time of `work`, and of what it is compared with, over some seconds of taking turns.
struct Times {
  double work = 1e30, ceiling = 1e30;
};

Times take_turns(const Kernels& run, double seconds, const std::function<void()>& work,
                 const std::function<void()>& ceiling) {
  Times best;
  auto time = [&](const std::function<void()>& f, double* least) {
    double start = seconds_now();
    f();
    run.wait();
    *least = std::min(*least, seconds_now() - start);
  };
  double start = seconds_now();
  work(), ceiling();  // memory is touched, caches, threads and clocks are warm
  do {
    time(ceiling, &best.ceiling);
    time(work, &best.work);
  } while (seconds_now() - start < seconds);
  time(ceiling, &best.ceiling);
  return best;
}

// Work in operations or bytes a second, beside its ceiling.
struct Rate {
  double seconds, work, peak;
  std::string share() const { return text("%.0f %%", 100 * work / peak); }
};

Rate beside_fma(const Kernels& run, double seconds, double operations, const std::function<void()>& work) {
  double peak = 0;
  Times t = take_turns(run, seconds, work, [&] { peak = std::max(peak, peak_rate(run)); });
  return {t.work, operations / t.work, peak};
}

// Floats to stream: far more than any cache, and on a GPU enough to take a millisecond.
int64_t stream_floats(const Kernels& run) { return int64_t(1) << (run.in_host_memory ? 26 : 30); }

// n elements of noise in [−1, 1).
void fill(const Kernels& run, act* x, size_t n, uint64_t seed) {
  Block on_host(n), floats(run, n);
  uint64_t key = random_key(1, seed);
  for (size_t i = 0; i < n; ++i) on_host.data()[i] = random_symmetric(key, i);
  run.upload(floats.data(), on_host.data(), n * sizeof(float));
  run.from_floats(x, floats.data(), int64_t(n));
}

void plan_floats(Plan& plan, const char* kind, double floats) { plan.add(kind, floats * sizeof(float)); }

// One object a line, or all rows as a table at the end.
class Results {
 public:
  Results(bool json, std::vector<std::string> head) : json_(json), table_{std::move(head)} {}
  ~Results() {
    if (!json_) std::printf("%s", show_table(table_).c_str());
  }
  void add(const Json& object, std::vector<std::string> row) {
    if (json_) std::printf("%s\n", write_json(object).c_str()), std::fflush(stdout);
    table_.push_back(std::move(row));
  }

 private:
  bool json_;
  std::vector<std::vector<std::string>> table_;
};

std::string giga(double x) { return text(x < 10e9 ? "%.1f" : "%.0f", x / 1e9); }

// --- The machine

// Bytes a second, read in long runs, and read and written as AdamW does.
struct Bandwidth {
  double read, update;
};

Bandwidth bandwidth(const Kernels& run, double seconds) {
  int64_t all = stream_floats(run), n = all / 4;
  Block memory(run, size_t(all));
  float* p = memory.data();
  Times t = take_turns(
      run, seconds, [&] { run.stream_update(p, p + n, p + 2 * n, p + 3 * n, n); }, [&] { run.stream_read(p, all); });
  return {4.0 * double(all) / t.ceiling, 28.0 * double(n) / t.work};
}

void bench_peak(const Kernels& run, const Options& o) {
  Plan plan;
  plan.add("memory to stream", 4.0 * double(stream_floats(run)));
  begin(run, o, plan);
  double fma = 0;
  for (double start = seconds_now(); seconds_now() - start < o.seconds;) fma = std::max(fma, peak_rate(run));
  Bandwidth b = bandwidth(run, o.seconds);
  Results results(o.json, {"ceiling", ""});
  results.add(Json::object({{"bench", "peak"},
                            {"kernels", run.name},
                            {"peak_gflops", fma / 1e9},
                            {"stream_gb_per_s", b.read / 1e9},
                            {"update_gb_per_s", b.update / 1e9}}),
              {"fma, GFLOP/s", giga(fma)});
  if (o.json) return;
  results.add({}, {"memory read, GB/s", giga(b.read)});
  results.add({}, {"memory read and written as by AdamW, GB/s", giga(b.update)});
}

// --- Matrix products

struct Shape {
  int rows, in, out;
};

// "256x768x2304", or where none is named, those of the default run and of d12.
std::vector<Shape> shapes_of(const std::string& name) {
  if (name.empty())
    return {{384, 64, 192},    {384, 64, 384},   {384, 192, 64},    {256, 768, 2304},
            {256, 768, 768},   {256, 768, 4096}, {256, 2048, 768},  {256, 768, 50257},
            {1024, 768, 2304}, {1024, 768, 768}, {1024, 768, 4096}, {1024, 2048, 768}};
  Shape s;
  char rest;
  if (std::sscanf(name.c_str(), "%dx%dx%d%c", &s.rows, &s.in, &s.out, &rest) != 3 || s.rows < 1 || s.in < 1 ||
      s.out < 1 || s.rows > 1 << 20 || s.in > 1 << 20 || s.out > 1 << 20)
    fail("--shape %s: give rows x inputs x outputs, like 256x768x2304", name.c_str());
  return {s};
}

void bench_matmul(const Kernels& run, const Options& o) {
  std::vector<Shape> shapes = shapes_of(o.shape);
  double most = 0;
  for (auto [rows, in, out] : shapes) most = std::max(most, double(rows) * in + double(in) * out + double(rows) * out);
  Plan plan;
  plan_floats(plan, "the factors and the product", most);
  begin(run, o, plan);
  Results results(o.json, {"product", "rows", "in", "out", "GFLOP/s", "of the fma peak"});
  for (auto [rows, in, out] : shapes) {
    size_t nx = size_t(rows) * in, nw = size_t(in) * out, ny = size_t(rows) * out;
    Block x(run, nx), w(run, nw), y(run, ny);
    for (const char* form : {"forward", "dinput", "dweight"}) {
      fill(run, x.data(), nx, 1), fill(run, w.data(), nw, 2), fill(run, y.data(), ny, 3);
      Rate r = beside_fma(run, o.seconds / 8, 2.0 * rows * in * out, [&, rows = rows, in = in, out = out] {
        if (form[1] == 'o') run.matmul_forward(y.data(), x.data(), w.data(), rows, in, out);
        if (form[1] == 'i') run.matmul_backward_input(x.data(), y.data(), w.data(), rows, in, out, false);
        if (form[1] == 'w') run.matmul_backward_weight(w.data(), y.data(), x.data(), rows, in, out);
      });
      results.add(Json::object({{"bench", "matmul"},
                                {"form", form},
                                {"rows", rows},
                                {"in", in},
                                {"out", out},
                                {"gflops", r.work / 1e9},
                                {"peak_gflops", r.peak / 1e9}}),
                  {form, std::to_string(rows), std::to_string(in), std::to_string(out), giga(r.work), r.share()});
    }
  }
}

// --- Attention

void bench_attention(const Kernels& run, const Options& o) {
  constexpr int kHeads = 12, kHeadDim = 64;
  std::vector<int> lengths = o.seq > 0 ? std::vector<int>{o.seq} : std::vector<int>{64, 256, 1024, 4096};
  Plan plan;
  plan_floats(plan, "queries, keys, values and their gradients", 8.0 * lengths.back() * kHeads * kHeadDim);
  begin(run, o, plan);
  Results results(o.json, {"attention", "T", "heads", "d", "GFLOP/s", "of the fma peak"});
  for (int T : lengths) {
    size_t n = size_t(T) * kHeads * kHeadDim;
    Block q(run, n), k(run, n), v(run, n), y(run, n), dy(run, n), dq(run, n), dk(run, n), dv(run, n);
    Block most(run, size_t(T) * kHeads), scale(run, most.size());
    uint64_t seed = 0;
    for (Block* b : {&q, &k, &v, &dy}) fill(run, b->data(), n, ++seed);
    Segment all{0, T, 0, 0, 0};
    auto forward = [&] {
      run.attention_forward(y.data(), most.data(), scale.data(), q.data(), k.data(), v.data(), &all, 1, kHeads, kHeads,
                            kHeadDim, 0);
    };
    auto both = [&] {
      forward();
      run.attention_backward(dq.data(), dk.data(), dv.data(), dy.data(), y.data(), q.data(), k.data(), v.data(),
                             most.data(), scale.data(), &all, 1, kHeads, kHeads, kHeadDim, 0);
    };
    double product = 2.0 * T * (T + 1) / 2 * kHeads * kHeadDim;
    auto report = [&](const char* form, Rate r) {
      results.add(Json::object({{"bench", "attention"},
                                {"form", form},
                                {"seq", T},
                                {"heads", kHeads},
                                {"head_dim", kHeadDim},
                                {"gflops", r.work / 1e9},
                                {"peak_gflops", r.peak / 1e9}}),
                  {form, std::to_string(T), std::to_string(kHeads), std::to_string(kHeadDim), giga(r.work), r.share()});
    };
    report("forward", beside_fma(run, o.seconds / 2, 2 * product, forward));
    report("forward+backward", beside_fma(run, o.seconds, 7 * product, both));
  }
}

// --- Whole steps

Batch random_batch(int batch, int seq, int vocab) {
  Batch b;
  Random random(random_key(1, 2));
  for (b.sequences = 0; b.sequences < batch; ++b.sequences) {
    b.segments.push_back({b.rows(), seq, 0, 0, b.rows()});
    b.row_of_segment.push_back(b.sequences);
    for (int t = 0; t < seq; ++t) b.tokens.push_back(random.below(vocab)), b.targets.push_back(random.below(vocab));
  }
  return b;
}

ModelConfig model_of(const Options& o, int context) {
  ModelConfig config = preset(o.model);
  config.vocab = o.vocab, config.context = context;
  config.resolve();
  return config;
}

// The rows of a batch, as many as ./train takes at once.
int rows_of(int batch, int seq) {
  int64_t rows = int64_t(batch) * seq;
  if (rows > 1 << 26)
    fail("--batch × --seq is %lld rows, more than this engine takes at once; use fewer", (long long)rows);
  return int(rows);
}

void bench_step(const Kernels& run, const Options& o) {
  int batch = o.batch > 0 ? o.batch : 4, seq = o.seq > 0 ? o.seq : 64, passes = o.passes, tokens = rows_of(batch, seq);
  ModelConfig config = model_of(o, seq);
  if (passes == 1) config.fusion = Fusion::none;
  PassLimits limits{tokens, passes, value_named<Recompute>(o.recompute)};
  OptimizerOptions optim;
  optim.resolve(config.width);
  ParamLayout layout = param_layout(config);
  Plan plan;
  Weights::plan_memory(plan, run, layout);
  plan.add("gradients", double(layout.floats) * sizeof(float));
  Optimizer::plan_memory(plan, layout, optim);
  PassRunner::plan_memory(plan, run, config, limits);
  begin(run, o, plan);

  Model model(config);
  init_params(model.layout, model.block.data(), 1);
  Weights weights(run, model);
  Block grads(run, model.layout.floats);
  ModelParams grad_views = view_params(config, model.layout, grads.data());
  Optimizer optimizer(run, model.layout, optim);
  PassRunner runner(run, model.config, limits);
  Batch data = random_batch(batch, seq, config.vocab);
  PassOptions options;

  double operations = 0, rows = 0, gradient_seconds = 1e30, update_seconds = 1e30;
  int64_t steps = 0;
  auto step = [&] {
    double start = seconds_now();
    // The median prefix: a drawn one would make steps differ.
    auto prefix = draw_prefixes(data, passes, options, 0, 0);
    for (auto& pass : prefix)
      for (int& p : pass) p = o.mixin == "off" ? 1 : (seq + 1) / 2;
    PassPlan plan_of_step = plan_passes(data, passes, prefix, options, steps, 0, data.target_count());
    PassLosses losses;
    run.floats->zero(grads.data(), int64_t(grads.size()));
    runner.forward(weights.params(), data, plan_of_step);
    runner.backward(weights.params(), grad_views, data, plan_of_step, 0, losses);
    gradient_seconds = std::min(gradient_seconds, seconds_now() - start);
    start = seconds_now();
    bool feedback = plan_of_step.trains_feedback();
    optimizer.step(weights.floats(), grads.data(), optimizer.gradient_norm(grads.data(), feedback), feedback, steps++,
                   1000000);
    weights.changed();
    run.wait();
    update_seconds = std::min(update_seconds, seconds_now() - start);
    operations = step_flops(config, data, plan_of_step), rows = plan_of_step.rows();
  };
  step();
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);  // before the ceilings' own memory
  double peak_rss = double(usage.ru_maxrss) * 1024;
  Rate r = beside_fma(run, o.seconds * 3, 1, step);
  // AdamW reads and writes 28 bytes a parameter; before it, the gradient's norm reads 4.
  Bandwidth b = bandwidth(run, o.seconds);
  double floats = double(layout.floats), update_rate = 32 * floats / update_seconds;
  double update_peak = 32 / (28 / b.update + 4 / b.read), gflops = operations / gradient_seconds / 1e9;
  Results results(o.json, {"step", ""});
  results.add(Json::object({{"bench", "step"},
                            {"model", o.model},
                            {"batch", batch},
                            {"seq", seq},
                            {"passes", passes},
                            {"recompute", o.recompute},
                            {"rows_per_token", rows / tokens},
                            {"ms", 1000 * r.seconds},
                            {"gradient_ms", 1000 * gradient_seconds},
                            {"optimizer_ms", 1000 * update_seconds},
                            {"tokens_per_s", tokens / r.seconds},
                            {"gflops", gflops},
                            {"peak_gflops", r.peak / 1e9},
                            {"optimizer_gb_per_s", update_rate / 1e9},
                            {"update_gb_per_s", update_peak / 1e9},
                            {"plan_mib", plan.total() / (1 << 20)},
                            {"peak_rss_mib", peak_rss / (1 << 20)}}),
              {"model, batch × tokens, passes", text("%s, %d × %d, %d", o.model.c_str(), batch, seq, passes)});
  if (o.json) return;
  results.add({}, {"whole step", text("%.1f ms, %s tok/s", 1000 * r.seconds, show_count(tokens / r.seconds).c_str())});
  results.add({}, {"forward and backward", text("%.1f ms, %.0f GFLOP/s, %.0f %% of the fma peak",
                                                1000 * gradient_seconds, gflops, 1e11 * gflops / r.peak)});
  results.add({}, {"optimizer", text("%.1f ms, %.1f GB/s, %.0f %% of the bandwidth", 1000 * update_seconds,
                                     update_rate / 1e9, 100 * update_rate / update_peak)});
  results.add({}, {"rows a token", text("%.2f", rows / tokens)});
  results.add({}, {"memory, planned and peak", show_bytes(plan.total()) + ", " + show_bytes(peak_rss)});
}

// --- Decoding

Plan plan_of_decoding(const Kernels& run, const ModelConfig& config, const DecoderLimits& limits) {
  Plan plan;
  Weights::plan_memory(plan, run, param_layout(config));
  Decoder::plan_memory(plan, run, config, limits);
  plan_floats(plan, "memory to be read", double(stream_floats(run)));
  return plan;
}

void bench_decode(const Kernels& run, const Options& o) {
  int batch = o.batch > 0 ? o.batch : 1, context = o.seq > 0 ? o.seq : 128;
  if (context < 2) fail("--seq %d: to decode, a context holds at least 2 tokens, the prompt's and a new one", context);
  rows_of(batch, context);
  ModelConfig config = model_of(o, context);
  DecodeMode mode = value_named<DecodeMode>(o.mode);
  DecoderLimits limits;
  limits.sequences = batch;
  if (run.pack_weight) limits.packed = value_named<WeightFormat>(o.weights);
  begin(run, o, plan_of_decoding(run, config, limits));
  Model model(config);
  init_params(model.layout, model.block.data(), 1);
  Weights weights(run, model);
  Decoder decoder(run, model.config, weights.params(), limits);
  Random random(random_key(3, 1));
  std::vector<std::vector<int>> prompts;
  std::vector<int> slots, tokens(batch);
  for (int i = 0; i < batch; ++i) prompts.push_back({random.below(config.vocab)}), slots.push_back(i);
  // The shortest time of a token, of some after a prompt.
  auto token_seconds = [&](DecodeMode m) {
    double least = 1e30;
    decoder.prefill(prompts, m);
    for (int i = 1; i < std::min(context, 17); ++i) {
      for (int& t : tokens) t = random.below(std::min(config.vocab, 64));  // as in a text, tokens come again
      double start = seconds_now();
      decoder.advance(slots, tokens);
      decoder.sample(slots, Sampling{0}, std::vector<uint64_t>(slots.size()));
      least = std::min(least, seconds_now() - start);
    }
    return least;
  };
  // What a token must read: every matrix of the stack, and E for the logits.
  double bytes = 0;
  double width = !run.pack_weight ? run.element_bytes : o.weights == "f32" ? 4 : 2;
  for (const ProductWeight& p : product_weights(config))
    if (!p.feedback || mode != DecodeMode::standard) bytes += double(p.in) * p.out * width;
  if (mode != DecodeMode::standard) bytes -= double(config.width) * config.width * width;  // W_G: gates are cached
  int64_t streamed = stream_floats(run);
  Block stream(run, size_t(streamed));
  double seconds = 1e30, standard = 1e30, read = 1e30;
  double begun = seconds_now();
  do {
    seconds = std::min(seconds, token_seconds(mode));
    standard = std::min(standard, mode == DecodeMode::standard ? seconds : token_seconds(DecodeMode::standard));
    double start = seconds_now();
    run.stream_read(stream.data(), streamed);
    read = std::min(read, seconds_now() - start);
  } while (seconds_now() - begun < o.seconds * 2);
  double rate = bytes / seconds, peak = 4.0 * double(streamed) / read;
  Results results(o.json, {"decode", "weights", "batch", "tokens/s", "GB/s", "of the bandwidth", "× STANDARD's time"});
  results.add(Json::object({{"bench", "decode"},
                            {"mode", o.mode},
                            {"weights", o.weights},
                            {"batch", batch},
                            {"tokens_per_s", batch / seconds},
                            {"standard_tokens_per_s", batch / standard},
                            {"gb_per_s", rate / 1e9},
                            {"stream_gb_per_s", peak / 1e9}}),
              {o.mode, o.weights, std::to_string(batch), text("%.1f", batch / seconds), giga(rate),
               text("%.0f %%", 100 * rate / peak), text("%.3f", seconds / standard)});
}

void bench_prefill(const Kernels& run, const Options& o) {
  int tokens = o.seq > 0 ? o.seq : 1024;
  ModelConfig config = model_of(o, tokens);
  DecoderLimits limits{1, 256};
  if (run.pack_weight) limits.packed = WeightFormat::f32;
  begin(run, o, plan_of_decoding(run, config, limits));
  Model model(config);
  init_params(model.layout, model.block.data(), 1);
  Weights weights(run, model);
  Decoder decoder(run, model.config, weights.params(), limits);
  Batch data = random_batch(1, tokens, config.vocab);
  double operations = stack_flops(config, data.segments, Work::forward);
  Rate r = beside_fma(run, o.seconds * 3, operations, [&] { decoder.prefill({data.tokens}, DecodeMode::standard); });
  Results results(o.json, {"prefill", "tokens", "ms", "tokens/s", "GFLOP/s", "of the fma peak"});
  results.add(Json::object({{"bench", "prefill"},
                            {"model", o.model},
                            {"tokens", tokens},
                            {"ms", 1000 * r.seconds},
                            {"tokens_per_s", tokens / r.seconds},
                            {"gflops", r.work / 1e9},
                            {"peak_gflops", r.peak / 1e9}}),
              {o.model, std::to_string(tokens), text("%.0f", 1000 * r.seconds), text("%.0f", tokens / r.seconds),
               giga(r.work), r.share()});
}

struct Benchmark {
  const char* name;
  void (*run)(const Kernels&, const Options&);
  std::vector<std::string> flags;  // of those that not every benchmark has
};
const Benchmark kBenchmarks[] = {
    {"peak", bench_peak, {}},
    {"matmul", bench_matmul, {"shape"}},
    {"attention", bench_attention, {"seq"}},
    {"step", bench_step, {"model", "vocab", "batch", "seq", "passes", "prefix-mixin", "recompute"}},
    {"decode", bench_decode, {"model", "vocab", "batch", "seq", "weights", "mode"}},
    {"prefill", bench_prefill, {"model", "vocab", "seq"}}};

std::vector<Flags::Idle> idle_flags(const Benchmark& chosen, const Kernels& kernels, const Options& o) {
  auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> of_others;
  for (const Benchmark& b : kBenchmarks)
    for (const std::string& flag : b.flags)
      if (!holds(chosen.flags, flag) && !holds(of_others, flag)) of_others.push_back(flag);
  return {{of_others, true, text("%s has no use for such a flag", chosen.name)},
          {{"prefix-mixin"}, o.passes == 1, "--passes 1 has no later pass"},
          {{"weights"}, !kernels.pack_weight, "on a GPU --dtype says what the matrices are"}};
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argv, [&] {
    Options o;
    Flags flags("./bench peak|matmul|attention|step|decode|prefill",
                "Measures kernels, training steps and decoding beside what the machine can do, in one run.");
    flags.examples({"./bench peak                  # what the machine can do",
                    "./bench step --model d12      # a training step beside it",
                    "./bench decode --mode soft    # tokens a second"});
    flags.section("Benchmark");
    flags.choice("device", &o.device, {"auto", "cpu", "cuda"}, "where the kernels run");
    flags.choice("dtype", &o.dtype, {"fp32", "bf16"}, "activations and the matrices in products; bf16: GPUs only");
    flags.add("threads", &o.threads, "CPU threads (0: all cores)", 0, 4096);
    flags.add("seconds", &o.seconds, "about how long each measurement takes", 0.01f, 3600);
    flags.add("json", &o.json, "one JSON object a line instead of a table");
    flags.add("shape", &o.shape, "matmul: rows x inputs x outputs, like 256x768x2304 (empty: several)");
    flags.add("model", &o.model, "step, decode, prefill: sizes by name: " + preset_names());
    flags.add("vocab", &o.vocab, "their vocabulary", 2, 1 << 20);
    flags.add("batch", &o.batch, "step: rows (0: 4); decode: sequences (0: 1)", 0, 65536);
    flags.add("seq", &o.seq,
              "tokens. attention: T (0: several); step: in a row (0: 64); decode: the context, at least 2 (0: 128); "
              "prefill: in the prompt (0: 1024)",
              0, 1 << 20);
    flags.add("passes", &o.passes, "step: number of passes", 1, 16);
    flags.choice("prefix-mixin", &o.mixin, {"uniform", "off"}, "step: plain prefix of later passes, at its mean");
    flags.choice("recompute", &o.recompute, {"none", "norms", "block"}, "step: what backward computes again");
    flags.choice("weights", &o.weights, {"f32", "bf16"}, "decode on the CPU: format of the matrices");
    flags.choice("mode", &o.mode, {"standard", "soft", "fused", "sequential"}, "decode: mode");
    const Benchmark* chosen = nullptr;
    std::string names;
    for (const Benchmark& b : kBenchmarks) {
      names += std::string(names.empty() ? "" : ", ") + b.name;
      if (argc > 1 && argv[1] == std::string(b.name)) chosen = &b;
    }
    if (argc > 1 && argv[1][0] != '-' && !chosen)
      fail("there is no benchmark `%s`; there are %s", argv[1], names.c_str());
    if (chosen) --argc, ++argv;
    flags.parse(argc, argv);
    if (!chosen) fail("name a benchmark first: %s", names.c_str());
    preset(o.model);  // a name that is unknown is a mistake wherever it stands
    o.threads = start_threads(o.threads);
    const Kernels& kernels = kernels_for(o.device, o.dtype);
    flags.refuse_idle(idle_flags(*chosen, kernels, o));
    chosen->run(kernels, o);
    return 0;
  });
}
