// A training run from its flags to its table: the plan, the steps, evaluations, samples, checkpoints, and how it is
// stopped and resumed.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "disk.h"
#include "evaluate.h"
#include "files.h"
#include "flags.h"
#include "log.h"
#include "model.h"
#include "optim.h"
#include "passes.h"
#include "spikes.h"
#include "training_data.h"

struct TrainOptions {
  // Model
  std::string preset = "nano";
  ModelConfig model = {.plain_input = PlainInput::raw};
  // Data
  std::string data = "sums", format;
  Pack pack = Pack::documents;
  TokenizerFlags tokenizer;
  int vocab = 512;
  int64_t val_tokens = 8192;  // of an evaluation on the way
  int64_t final_eval = 0;     // tokens of the final evaluation; 0: what takes about a tenth of the training
  std::string eval_passes = kReportedPasses;
  float epochs = 0;
  int64_t tokens = 0;  // of the run; 0: --steps or --epochs says
  int batch = 16, batch_tokens = 0;
  // Passes
  std::string passes = "0:100,0.2:20/50/30";
  PassOptions pass;
  // Optimizer
  float skip_spikes = 0;  // standard deviations; 0: none
  OptimizerOptions optim = {.clip = 0};
  int64_t steps = 12000, seed = 1;
  // Run
  Recompute recompute = Recompute::none;
  std::string device = "auto", dtype = "fp32", out = "out", resume, init_from, dump;
  int threads = 0, eval_every = 2000, sample_every = 2000, save_every = 2000, keep = 2, keep_every = 0;
};

// Binds all flags of ./train. `options` must outlive the flags.
void add_train_flags(Flags&, TrainOptions& options);
// Those of them that have no effect beside the others, of flags that are resolved. `had_feedback`: the weights that the run
// starts from have trained feedback.
std::vector<Flags::Idle> idle_train_flags(const TrainOptions&, bool had_feedback);

// A current rate: sums over about the last `memory` seconds of steps.
struct Pace {
  double memory = 10, steps = 0, tokens = 0, rows = 0, flops = 0, seconds = 0;
  void add(double new_tokens, double new_rows, double new_flops, double new_seconds);
};

// What the status line shows of a step, in the order of its weight.
struct StepNumbers {
  int64_t step, steps;
  std::string time_left;
  std::vector<double> loss;  // of each pass
  double tokens_per_second, utilization, gradient_norm;
};
std::vector<std::string> show_step(const StepNumbers&);
// The held-out losses of as many passes as have been trained, and the last one's by bytes of the text, where there are any.
std::string show_held_out(int64_t step, const std::vector<PassResult>&, int passes_trained, int64_t bytes);

class Trainer {
 public:
  // Resolves the flags (of a resumed run: with those recorded), reads the data, plans and takes memory, loads what is
  // resumed. Everything that can be wrong is found here, and only then is anything written.
  Trainer(TrainOptions&, Flags&);
  ~Trainer();

  void dump();  // --dump
  // Trains to the last step, or until a signal asks to stop; false then.
  bool run();
  void report();  // the final table

 private:
  struct Costs {  // cumulative over the run
    int64_t tokens = 0;
    double token_passes = 0, rows = 0, flops = 0, seconds = 0;
  };
  struct Step {  // its sums over micro-batches
    DataPosition start;
    int64_t targets = 0, tokens = 0;
    int passes = 1;
    float z_loss = 0;              // the coefficient
    bool trains_feedback = false;  // some micro-batch does
    bool skipped = false;          // it was a spike: the weights stay as they were
    PassLosses losses;
    double rows = 0, flops = 0;
  };

  // What a run starts from: src/start.cpp.
  void check_names(Flags&) const;
  void find_folders(Flags&);
  bool resumes_out() const;
  void find_resumed(Flags&);
  void take_record(Flags&);
  bool goes_by_run_conf() const;
  void start_again(Flags&, const std::string& run);
  void note_change(const Flags&, const std::string& flag, const std::string& was);
  bool may_change(const std::string& flag, const std::string& value) const;
  void take_sizes(Flags&);
  void take_fusion(Flags&);
  void resolve(Flags&);
  void follow_size(Flags&);
  void follow_length(Flags&);
  void accumulate();
  void read_data(Flags&);
  void require_same_data();
  const Checkpoint& weights_from() const;
  std::optional<Tokenizer> tokenizer_of_weights(const Flags&) const;
  DataOptions data_options(const Flags& flags, const std::optional<Tokenizer>& of_weights) const;
  int64_t steps_of(const TrainOptions&) const;
  void count_steps(Flags&);
  void note_learning_rate();
  std::string memory_advice() const;
  void take_memory(const std::function<void(const std::string&)>& tell);
  DiskPlan disk_plan() const;
  void seek_recorded(const std::string& path);
  void load_state();
  void claim_out(Flags&);
  void take_up_log();
  void set_later_checkpoints_aside();
  void show_notes() const;
  std::string plan_text() const;
  std::string weights_line() const;
  void expect_rows();
  double expected_rows(double from) const;  // a token, on average over the steps from this fraction of the run on

  // Its steps: src/trainer.cpp.
  void measure_peak();
  bool read_step(DataPosition start, const std::function<void(const Batch&)>& show);
  bool begin_step(Step&);
  PassPlan plan_micro_batch(const Step&, const Batch&, int first_segment) const;
  void add_gradients(Step&, const Batch&, const PassPlan&);
  bool gradients(Step&);
  bool train_step();
  // The share of the device's measured peak (MFU): what is run twice by --recompute counts once.
  double utilization(double flops, double seconds) const { return flops / std::max(seconds, 1e-9) / peak_; }
  void log_step(const Step&, double norm, double seconds);
  std::string time_left() const;
  void evaluate_held_out();
  void show_sample();
  std::vector<Batch> final_batches(int fused_passes) const;
  std::string talk_line() const;
  std::string first_prompt() const;
  std::vector<int> sample_prompt(int64_t number, int most) const;
  void save();
  [[noreturn]] void fail_broken(const std::string& what) const;
  bool has_feedback() const { return o_.model.fusion != Fusion::none; }
  bool feedback_trained() const;
  int passes_trained() const;

  TrainOptions& o_;
  Checkpoint resumed_from_;            // what is continued, if anything is
  Checkpoint init_from_;               // whose weights are taken over
  bool in_place_ = true;               // what is resumed lies in --out
  bool recorded_vocab_ = false;        // it trained a tokenizer of --vocab ids
  bool trains_tokenizer_ = false;      // this run does, or the one that it goes on with: --vocab means something
  bool other_order_ = false;           // a dump with other data flags than the resumed run's: from the first row
  std::vector<std::string> notes_;     // to show before the plan
  std::vector<std::string> followed_;  // flags that were not given, with what the model's size and the data make them
  SpikeWatch spikes_;
  int64_t spikes_skipped_ = 0;
  Json record_, record_flags_;     // the resumed run's state.json; this run's flags
  std::set<std::string> given_;    // those of its flags that were given, now or before; the others follow from them
  TakenOver taken_over_;           // of the weights that --init-from names
  int64_t log_begins_ = 1;         // the first step that log.jsonl has
  bool feedback_started_ = false;  // the weights that this run started from had trained feedback
  TrainingData data_;
  std::unique_ptr<FolderLock> lock_;
  const Kernels* kernels_ = nullptr;
  Plan plan_;
  DiskPlan disk_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Weights> weights_;
  Block grads_;
  ModelParams grad_views_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<PassRunner> runner_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<PassSchedule> schedule_;
  std::vector<Batch> validation_, probe_;  // probe_: a few held-out rows, on which a model that is saved must compute
  std::unique_ptr<JsonLog> log_;
  std::unique_ptr<Progress> progress_;
  int64_t step_ = 0, first_step_ = 0, accumulation_ = 1, last_saved_ = -1;
  Costs costs_, costs_before_;       // of the whole run; up to the step that is resumed
  double peak_ = 0;                  // FLOP/s that the device was seen to do
  double rows_per_epoch_ = 1;        // of T, about
  std::vector<double> recent_loss_;  // of each pass, a running mean
  Pace pace_;
  std::vector<double> expected_rows_;
};
