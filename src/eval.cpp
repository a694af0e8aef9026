// ./eval: the final table for any checkpoint.
#include "checkpoint.h"
#include "devices.h"
#include "evaluate.h"
#include "files.h"
#include "flags.h"
#include "log.h"
#include "model.h"
#include "program.h"
#include "training_data.h"

// `given`: --data, or empty where what the model was trained on is meant, as it was read then.
static TrainingData read_data(const std::string& given, const std::string& format, const TokenizerFlags& flags,
                              const Checkpoint& checkpoint, const ModelConfig& config) {
  Tokenizer tokenizer = read_tokenizer(checkpoint, config.vocab, config.end_of_text, flags);
  DataOptions o;
  o.of_model = &tokenizer;
  o.data = given, o.context = config.context, o.seed = recorded_seed(checkpoint);
  o.format = format;
  TokenizerFlags own = flags;
  if (file_exists(checkpoint.path("tokenizer.json"))) own.path = checkpoint.path("tokenizer.json");
  o.data_flags = own.words();
  if (!given.empty()) return read_training_data(o);
  o.data = recorded_flag(checkpoint, "data");
  if (format.empty()) o.format = recorded_flag(checkpoint, "format");
  return read_recorded_data(o, checkpoint.folder());
}

int main(int argc, char** argv) {
  return run_program(argv, [&] {
    std::string model_path = "out", data, format, pack, device = "auto", passes = kReportedPasses;
    int threads = 0;
    TokenizerFlags tokenizer;
    int64_t held_out = kHeldOutTokens;
    bool json = false;
    Flags flags(
        "./eval",
        "Shows what a model can do on held-out text and puzzles: losses by fused passes, answers by decoding mode.");
    flags.examples({"./eval  # the model in out/", "./eval --model runs/book --data another.txt",
                    "./eval --model runs/book --passes 0,1,2 --json"});
    flags.section("Evaluation");
    flags.add("model", &model_path, "a checkpoint's folder, or an --out folder whose latest is meant");
    flags.add("data", &data, "as for ./train; empty: what the model was trained on");
    tokenizer.add(flags, "as for ./train, where the model has none of its own; empty: its own");
    flags.choice("format", &format, {"", "text"}, "as for ./train");
    flags.choice("pack", &pack, {"", "documents", "stream"}, "as for ./train; empty: as it was trained");
    flags.add("val-tokens", &held_out, "held-out tokens to look at, at most", 2, INT64_MAX);
    flags.add("passes", &passes, "numbers of fused passes after which losses are shown");
    flags.choice("device", &device, {"auto", "cpu", "cuda"}, "where the kernels run");
    flags.add("threads", &threads, "CPU threads (0: all cores)", 0, 4096);
    flags.add("json", &json, "print one JSON object instead of tables");
    flags.parse(argc, argv);
    parse_fused_passes("passes", passes);

    start_threads(threads);
    Checkpoint checkpoint = find_checkpoint(model_path, kTrainOrNameAModel);
    ModelConfig config = read_config(checkpoint);
    bool feedback_trained = feedback_is_trained(checkpoint, config);
    flags.refuse_idle(
        {{{"passes"},
          !feedback_trained && parse_fused_passes("passes", passes).back() > 0,
          checkpoint.folder() + " has no trained feedback, so that there are no fused passes to look at"}});
    if (pack.empty()) pack = recorded_flag(checkpoint, "pack");
    TrainingData split = read_data(data, format, tokenizer, checkpoint, config);
    require_vocabulary(split, config, checkpoint.folder());
    Plan plan;
    const Kernels& kernels = kernels_for(device);
    Weights::plan_memory(plan, kernels, param_layout(config));
    plan_evaluation_memory(plan, kernels, config, std::max(kEvaluationRows, config.context), !split.puzzles.empty());
    require_memory(kernels, plan);
    Model model(config);
    read_params(model, checkpoint);
    Weights weights(kernels, model);
    std::vector<Batch> batches =
        validation_batches(split.validation, split.vocabulary, pack == "stream" ? Pack::stream : Pack::documents,
                           config.context, kEvaluationRows, held_out);
    require_targets(batches);
    ModelConfig shown_as = as_trained(config, feedback_trained);
    Evaluation e = evaluate(kernels, shown_as, weights.params(), split.tokenizer, batches, split.puzzles,
                            parse_fused_passes("passes", passes), EvaluationProgress(stderr).watch());
    if (json)
      std::printf("%s\n", write_json(to_json(e, split.puzzles)).c_str());
    else
      std::printf("%s%s\n%s", named_line("model", {checkpoint.folder()}).c_str(),
                  named_line("data", split.description).c_str(), show_evaluation(e, split.puzzles).c_str());
    return 0;
  });
}
