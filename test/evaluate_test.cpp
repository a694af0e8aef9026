// What a model can do: losses by fused passes against the reference's; answers to puzzles, on a model made by hand and
// on one whose answers the reference gives.
#include "evaluate.h"

#include "automaton.h"
#include "bytes.h"
#include "engine.h"
#include "json.h"
#include "scratch.h"

namespace {

// --- Fused passes --------------------------------------------------------------------------------------------------

int best_token(const reference::Model<float>& model, const float* h) {
  int vocab = model.config.vocab;
  std::vector<float> logits(vocab);
  reference::matmul_forward(logits.data(), h, model.parameters.at("model.embed_tokens.weight").data(), 1,
                            model.config.width, vocab);
  return int(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// The table, from the reference's passes in which all but first rows are fused.
std::vector<PassResult> naive_passes(reference::Model<float>& model, const std::vector<Batch>& batches,
                                     const std::vector<int>& fused_passes) {
  std::vector<PassResult> results;
  int D = model.config.width;
  for (int n : fused_passes) {
    PassResult r = {n, 0, 0, 0, 0};
    int rows = 0;
    for (const Batch& batch : batches) {
      reference::Options options;
      options.backward = false;
      auto run = model.run(reference_batch(batch, n + 1, fully_fused(batch, n + 1)), options);
      double update = 0;
      for (int row = 0; row < batch.rows(); ++row) {
        double square = 0;
        for (int i = row * D; n > 0 && i < (row + 1) * D; ++i)
          square += std::pow(double(run.states[n][i]) - double(run.states[n - 1][i]), 2);
        update += std::sqrt(square);
        if (batch.targets[row] < 0) continue;
        r.loss += run.row_loss[n][row];
        r.accuracy += best_token(model, &run.states[n][row * D]) == batch.targets[row];
        ++r.targets;
      }
      r.update_norm += update, rows += batch.rows();
    }
    r.loss /= double(r.targets), r.accuracy /= double(r.targets), r.update_norm /= rows;
    results.push_back(r);
  }
  return results;
}

void expect_results(const std::vector<PassResult>& got, const std::vector<PassResult>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].fused_passes, want[i].fused_passes);
    EXPECT_EQ(got[i].targets, want[i].targets);
    EXPECT_EQ(got[i].loss, want[i].loss) << want[i].fused_passes << " passes";
    EXPECT_EQ(got[i].accuracy, want[i].accuracy) << want[i].fused_passes << " passes";
    EXPECT_DOUBLE_EQ(got[i].update_norm, want[i].update_norm) << want[i].fused_passes << " passes";
  }
}

TEST(EvaluatePasses, AreTheReferencesFullyFusedPasses) {
  for (auto [name, config] : tiny_configs()) {
    SCOPED_TRACE(name);
    Model model(config);
    fill_with_noise(model);
    std::vector<Batch> batches = {random_batch({7, 1, 5, 3}, 11, 1), random_batch({1}, 11, 2),
                                  random_batch({1, 1}, 11, 3), random_batch({7, 6}, 11, 4)};
    for (Batch& batch : batches)
      for (int row = 0; row < batch.rows(); row += 2)
        if (batch.targets[row] >= 0) batch.targets[row] = batch.tokens[row];  // more often right
    reference::Model<float> reference = reference_of(model);
    std::vector<int> fused_passes = {0, 1, 2, 5, 7};
    std::vector<PassResult> want = naive_passes(reference, batches, fused_passes);
    EXPECT_GT(want[0].accuracy, 0);
    EXPECT_LT(want[0].accuracy, 1);
    EXPECT_GT(want[1].update_norm, 1e-3);
    EXPECT_EQ(want[4].update_norm, 0) << "six fused passes make seven rows exact";
    for (const Kernels* kernels : every_table())
      expect_results(evaluate_passes(*kernels, config, model.params, batches, fused_passes), want);
  }
}

// More targets in a batch than logits are held at a time.
TEST(EvaluatePasses, LargeBatchesAreScoredInChunks) {
  ModelConfig config = tiny_config();
  config.layers = 1, config.context = 64;
  Model model(config);
  fill_with_noise(model);
  std::vector<Batch> batches = {random_batch(std::vector<int>(9, 64), 11, 1)};
  reference::Model<float> reference = reference_of(model);
  expect_results(evaluate_passes(cpu_kernels(), config, model.params, batches, {0, 2}),
                 naive_passes(reference, batches, {0, 2}));
}

TEST(EvaluatePasses, AModelWithoutFeedbackHasThePlainPassAlone) {
  ModelConfig config = tiny_config();
  config.fusion = Fusion::none;
  Model model(config);
  fill_with_noise(model);
  auto results = evaluate_passes(cpu_kernels(), config, model.params, {random_batch({8, 3}, 11, 1)}, {0, 1, 2});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].fused_passes, 0);
  EXPECT_GT(results[0].loss, 0);
}

TEST(EvaluatePasses, NothingToScoreIsZero) {
  Model model(tiny_config());
  fill_with_noise(model);
  Batch masked = random_batch({5}, 11, 1);
  std::fill(masked.targets.begin(), masked.targets.end(), -1);
  for (const std::vector<Batch>& batches : {std::vector<Batch>{}, std::vector<Batch>{masked}}) {
    auto results = evaluate_passes(cpu_kernels(), model.config, model.params, batches, {0, 1});
    ASSERT_EQ(results.size(), 2u);
    for (const PassResult& r : results) {
      EXPECT_EQ(r.targets, 0);
      EXPECT_EQ(r.loss, 0);
      EXPECT_EQ(r.accuracy, 0);
    }
  }
}

TEST(BitsPerByte, AreOfTheTextThatTheTargetsAreWhateverTheTokens) {
  Tokenizer pairs(Pattern::none, {{'a', 'b'}}, {"<|endoftext|>"});  // ab is 256, the end of text 257
  Batch batch = random_batch({5}, 11, 1);
  batch.targets = {'a', 256, -1, 256, 257};
  EXPECT_EQ(target_bytes(pairs, {batch, batch}), 2 * 5) << "an end of text is no text";
  EXPECT_EQ(target_bytes(Tokenizer::ids_only(300, 257), {batch}), 0) << "ids' bytes are not known";
  PassResult r = {.fused_passes = 0, .loss = std::log(2.0), .accuracy = 0, .update_norm = 0, .targets = 4};
  EXPECT_DOUBLE_EQ(bits_per_byte(r, 5), 4.0 / 5) << "a bit for each of four targets";
  EXPECT_EQ(bits_per_byte(r, 0), 0);
}

// --- Puzzles -------------------------------------------------------------------------------------------------------

struct Answered {
  std::vector<bool> right;
  std::vector<std::string> said;
};

Answered ask(const Automaton& automaton, const std::vector<Puzzle>& puzzles, DecodeMode mode = DecodeMode::standard) {
  Answered a;
  a.right =
      answer_puzzles(cpu_kernels(), automaton.config(), automaton.params(), Tokenizer(), puzzles, mode, 1, &a.said);
  return a;
}

using Right = std::vector<bool>;
using Said = std::vector<std::string>;

// 'q' is followed by '?', '?' by '4', '4' by '2', '2' by the end.
struct Says42 : Automaton {
  Says42() : Automaton("q?42", 12) { follow('2', kEndOfText); }
};

TEST(AnswerPuzzles, AnAnswerIsRightOnlyToItsLastToken) {
  Says42 automaton;
  struct {
    const char* text;
    Right right;
    const char* said;
  } cases[] = {
      {"q?42", {true}, "q?42"},
      {"q?43", {false}, "q?[42≠43]"},
      {"q?52", {false}, "q?[42≠52]"},  // its own 4 was fed back, not the right 5
      {"q?24", {false}, "q?[42≠24]"},
  };
  for (const auto& [text, right, said] : cases) {
    Answered a = ask(automaton, {{Task::sums, text, {{2, 2, 1}}}});
    EXPECT_EQ(a.right, right) << text;
    EXPECT_EQ(a.said, Said{said});
  }
}

TEST(AnswerPuzzles, TheWorldsWordsAreGivenAndTheModelsOwnAreFedBack) {
  Automaton automaton("q?42", 20);
  automaton.follow('2', '?');
  // Three answers of one token: after '?', after '4' as given by the world, and after a wrong answer of its own.
  Answered a = ask(automaton, {{Task::sums, "?4 4x?7q", {{1, 1, 1}, {4, 1, 2}, {6, 2, 3}}}});
  EXPECT_EQ(a.right, (Right{true, false, false}));
  EXPECT_EQ(a.said, Said{"?4 4[2≠x]?[42≠7q]"});
}

TEST(AnswerPuzzles, AnEndOfTextMayBelongToTheAnswer) {
  Says42 automaton;
  EXPECT_EQ(ask(automaton, {{Task::sums, "q?42", {{2, 3, 1}}}}).right, Right{true});
  EXPECT_EQ(ask(automaton, {{Task::sums, "q?4", {{2, 2, 1}}}}).right, Right{false}) << "it went on";
  EXPECT_EQ(ask(automaton, {{Task::sums, "q?421", {{2, 3, 1}}}}).right, Right{false}) << "it ended too early";
  EXPECT_EQ(ask(automaton, {{Task::sums, "q?4", {{2, 2, 1}}}}).said, Said{"q?[42≠4]"});
  EXPECT_EQ(ask(automaton, {{Task::sums, "2", {{1, 1, 1}}}}).right, Right{true}) << "the end alone";
}

TEST(AnswerPuzzles, AWrongAnswerIsMarkedEvenWhereItsTextIsTheSame) {
  Automaton automaton("?4", 12);
  automaton.follow('?', kEndOfText), automaton.follow(kEndOfText, '4');
  Answered a = ask(automaton, {{Task::sums, "?4", {{1, 2, 1}}}});
  EXPECT_EQ(a.right, Right{false});
  EXPECT_EQ(a.said, Said{"?[4≠4]"});
}

TEST(AnswerPuzzles, APuzzleMayFillTheContext) {
  Automaton automaton("q?42", 4);
  automaton.follow('2', kEndOfText);
  EXPECT_EQ(ask(automaton, {{Task::sums, "q?42", {{2, 3, 1}}}}).right, Right{true});
}

TEST(AnswerPuzzles, EachModeAnswersInItsOwnWay) {
  // The state says what the token before should be followed by: "x?" is no such pair, so that modes which fuse the
  // prompt answer for x, and SOFT answers its second token from the state.
  Says42 automaton;
  Puzzle puzzle = {Task::sums, "x?42", {{2, 2, 1}}};
  EXPECT_EQ(ask(automaton, {puzzle}, DecodeMode::standard).said, Said{"x?42"});
  EXPECT_EQ(ask(automaton, {puzzle}, DecodeMode::soft).said, Said{"x?42"});
  EXPECT_EQ(ask(automaton, {puzzle}, DecodeMode::fused).said, Said{"x?[xx≠42]"});
  EXPECT_EQ(ask(automaton, {puzzle}, DecodeMode::sequential).said, Said{"x?[xx≠42]"});
}

TEST(AnswerPuzzles, PuzzlesWithoutAnswersAreLeftOut) {
  Says42 automaton;
  Puzzle story = {Task::stories, "q?42 once upon", {}}, puzzle = {Task::sums, "q?42", {{2, 2, 1}}};
  Answered a = ask(automaton, {story, puzzle, story, puzzle, story});
  EXPECT_EQ(a.right, (Right{true, true}));
  EXPECT_EQ(a.said.size(), 2u);
  EXPECT_TRUE(ask(automaton, {}).right.empty());
  EXPECT_TRUE(ask(automaton, {story}).right.empty());
}

// The answers of a model of the reference's, token by token.
Right naive_answers(reference::Model<float>& model, const Puzzle& puzzle, DecodeMode mode, int prefill_passes) {
  PuzzleTokens told = tokenize(puzzle, Tokenizer());
  std::vector<int> tokens = encode(puzzle.text);
  int begin = puzzle.answers[0].start, D = model.config.width;
  Right right;
  for (const Answer& answer : puzzle.answers) {
    std::vector<int> expected(told.tokens.begin() + answer.start, told.tokens.begin() + answer.start + answer.length);
    bool all = true;
    for (int i = 0; i < answer.length; ++i) {
      size_t at = answer.start + i;
      std::vector<int> before(tokens.begin(), tokens.begin() + at);
      auto states = decoded_states(model, before, begin, mode, prefill_passes);
      int said = best_token(model, &states[(at - 1) * D]);
      all &= said == expected[i];
      if (at < tokens.size())
        tokens[at] = said;
      else
        tokens.push_back(said);
    }
    right.push_back(all);
  }
  return right;
}

TEST(AnswerPuzzles, AreTheReferencesInEveryModeAndBatch) {
  ModelConfig config = tiny_config();
  config.vocab = kByteVocab, config.layers = 1, config.context = 24;
  Model model(config);
  fill_with_noise(model);
  reference::Model<float> reference = reference_of(model);
  std::mt19937 random(1);
  std::vector<Puzzle> puzzles;
  for (int i = 0; i < 24; ++i) {
    // Random words; some answers are made what STANDARD would say, or what SEQUENTIAL would.
    Puzzle puzzle = {Task::sums, "", {}};
    for (int t = 0, length = 8 + int(random() % 16); t < length; ++t) puzzle.text += char('a' + random() % 8);
    for (int start = 1 + int(random() % 3); start + 3 < int(puzzle.text.size()); start += 3 + int(random() % 4))
      puzzle.answers.push_back({start, 1 + int(random() % 3), 1});
    DecodeMode mode = i % 3 == 0 ? DecodeMode::standard : DecodeMode::sequential;
    for (const Answer& answer : puzzle.answers)
      for (int t = answer.start; i % 3 < 2 && t < answer.start + answer.length; ++t) {
        std::vector<int> before = encode(puzzle.text.substr(0, t));
        auto states = decoded_states(reference, before, puzzle.answers[0].start, mode);
        int said = best_token(reference, &states[(t - 1) * config.width]);
        if (said < 256) puzzle.text[t] = char(said);
      }
    puzzles.push_back(puzzle);
  }
  for (DecodeMode mode : {DecodeMode::standard, DecodeMode::soft, DecodeMode::fused, DecodeMode::sequential})
    for (int k : {1, 2}) {
      if (k > 1 && mode != DecodeMode::fused) continue;
      Right want, alone;
      for (const Puzzle& puzzle : puzzles)
        for (bool right : naive_answers(reference, puzzle, mode, k)) want.push_back(right);
      EXPECT_EQ(answer_puzzles(cpu_kernels(), config, model.params, Tokenizer(), puzzles, mode, k), want)
          << name_of(mode);
      for (const Puzzle& puzzle : puzzles)
        for (bool right : answer_puzzles(cpu_kernels(), config, model.params, Tokenizer(), {puzzle}, mode, k))
          alone.push_back(right);
      EXPECT_EQ(alone, want) << name_of(mode);
      int count = int(std::count(want.begin(), want.end(), true));
      EXPECT_GT(count, 0) << name_of(mode);
      EXPECT_LT(count, int(want.size()));
    }
}

TEST(AnswerPuzzles, MorePuzzlesThanAreHeldAtATimeComeInGroups) {
  ModelConfig config = tiny_config();
  config.vocab = kByteVocab, config.layers = 1, config.context = 12;
  Model model(config);
  fill_with_noise(model);
  std::mt19937 random(1);
  std::vector<Puzzle> puzzles;
  Said alone, together;
  for (int i = 0; i < 600; ++i) {
    std::string text;
    for (int t = 0; t < 10; ++t) text += char('a' + random() % 26);
    puzzles.push_back({Task::sums, text, {{3 + i % 3, 2, 1}}});
    if (i % 37 == 0) puzzles.push_back({Task::stories, text, {}});
  }
  answer_puzzles(cpu_kernels(), config, model.params, Tokenizer(), puzzles, DecodeMode::soft, 1, &together);
  ASSERT_EQ(together.size(), 600u);
  size_t i = 0;
  for (const Puzzle& puzzle : puzzles) {
    if (puzzle.answers.empty()) continue;
    if (i % 20 == 0 || (i > 250 && i < 260) || (i > 505 && i < 515)) {
      alone.clear();
      answer_puzzles(cpu_kernels(), config, model.params, Tokenizer(), {puzzle}, DecodeMode::soft, 1, &alone);
      EXPECT_EQ(together[i], alone[0]) << i;
    }
    ++i;
  }
}

// --- The whole -----------------------------------------------------------------------------------------------------

TEST(Evaluate, TakesEveryModeThatTheModelHas) {
  Says42 automaton;
  std::vector<Puzzle> puzzles = {{Task::sums, "q?42", {{2, 2, 1}}}, {Task::cups, "x?42", {{2, 2, 5}}}};
  Batch batch = random_batch({5, 3}, kByteVocab, 1, 0);
  Evaluation e =
      evaluate(cpu_kernels(), automaton.config(), automaton.params(), Tokenizer(), {batch}, puzzles, {0, 1, 3});
  ASSERT_EQ(e.passes.size(), 3u);
  EXPECT_EQ(e.modes, (std::vector<DecodeMode>{DecodeMode::standard, DecodeMode::soft, DecodeMode::fused,
                                              DecodeMode::sequential}));
  EXPECT_EQ(e.answers, (std::vector<Right>{{true, true}, {true, true}, {true, false}, {true, false}}));
  ModelConfig ordinary = automaton.config();
  ordinary.fusion = Fusion::none;
  e = evaluate(cpu_kernels(), ordinary, automaton.params(), Tokenizer(), {batch}, puzzles, {0, 1, 3});
  EXPECT_EQ(e.modes, std::vector<DecodeMode>{DecodeMode::standard});
  EXPECT_EQ(e.passes.size(), 1u);
  EXPECT_TRUE(evaluate(cpu_kernels(), ordinary, automaton.params(), Tokenizer(), {batch}, {}, {0}).answers[0].empty());
}

TEST(Evaluate, TellsHowFarItIs) {
  Says42 automaton;
  std::vector<Puzzle> puzzles = {{Task::sums, "q?42", {{2, 2, 1}}}, {Task::cups, "x?42", {{2, 2, 5}}}};
  Batch batch = random_batch({5, 3}, kByteVocab, 1, 0);
  std::map<std::string, std::vector<double>> told;
  evaluate(cpu_kernels(), automaton.config(), automaton.params(), Tokenizer(), {batch, batch}, puzzles, {0, 1, 3},
           [&](double done, const std::string& what) { told[what].push_back(done); });
  EXPECT_EQ(told["held-out text"], (std::vector<double>{0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1}));
  for (const char* mode : {"standard", "soft", "fused", "sequential"})
    EXPECT_EQ(told[std::string("puzzles, ") + mode], std::vector<double>{1}) << mode;
  EXPECT_EQ(told.size(), 5u);
}

TEST(Evaluate, NumbersOfFusedPassesIncreaseFrom0) {
  EXPECT_EQ(parse_fused_passes("passes", kReportedPasses), (std::vector<int>{0, 1, 2, 3, 5, 10, 30}));
  EXPECT_EQ(parse_fused_passes("passes", "0"), std::vector<int>{0});
  EXPECT_EQ(parse_fused_passes("passes", "0,7,1000"), (std::vector<int>{0, 7, 1000}));
  for (const char* list :
       {"", "1", "0,", ",0", "0,2,2", "0,3,1", "0,1001", "0;1", "0,1 ", "0,x", "-1", "0,99999999999"})
    EXPECT_EQ(message_of([&] { parse_fused_passes("passes", list); }),
              std::string("--passes ") + list +
                  ": give numbers of fused passes from 0 up to 1000, increasing, such as 0,1,2,3,5,10,30");
}

// Three puzzles of two tasks, five answers of lengths 1, 2, 3, 4 and 9.
struct Table {
  std::vector<Puzzle> puzzles = {{Task::sums, "", {{1, 1, 1}, {2, 1, 2}, {3, 1, 3}}},
                                 {Task::stories, "", {}},
                                 {Task::cups, "", {{1, 1, 4}}},
                                 {Task::sums, "", {{1, 1, 9}}}};
  Evaluation e;
  Table() {
    e.passes = {{0, 1.25, 0.5, 0, 40}, {3, 1.125, 0.75, 0.0625, 40}};
    e.modes = {DecodeMode::standard, DecodeMode::fused};
    e.answers = {{true, true, false, false, true}, {false, true, true, true, true}};
  }
};

TEST(Evaluate, CountsAnswersByTaskAndByClassesOfLength) {
  Table t;
  Json json = to_json(t.e, t.puzzles);
  std::vector<std::string> rows;
  for (const Json& row : json.get("answers", "").items) rows.push_back(write_json(row));
  EXPECT_EQ(rows, (std::vector<std::string>{
                      R"({"task": "sums", "count": 4, "standard": 0.75, "fused": 0.75})",
                      R"({"task": "sums", "count": 1, "length": "1", "standard": 1, "fused": 0})",
                      R"({"task": "sums", "count": 2, "length": "2-3", "standard": 0.5, "fused": 1})",
                      R"({"task": "sums", "count": 1, "length": "8-15", "standard": 1, "fused": 1})",
                      R"({"task": "cups", "count": 1, "standard": 0, "fused": 1})",
                      R"({"task": "cups", "count": 1, "length": "4-7", "standard": 0, "fused": 1})",
                  }));
  rows.clear();
  for (const Json& row : json.get("passes", "").items) rows.push_back(write_json(row));
  EXPECT_EQ(rows, (std::vector<std::string>{
                      R"({"fused_passes": 0, "loss": 1.25, "accuracy": 0.5, "update_norm": 0, "targets": 40})",
                      R"({"fused_passes": 3, "loss": 1.125, "accuracy": 0.75, "update_norm": 0.0625, "targets": 40})",
                  }));
}

TEST(Evaluate, ShowsTheTables) {
  Table t;
  std::string shown = show_evaluation(t.e, t.puzzles);
  for (const char* part : {"40 targets", "fused passes", "1.2500", "50.0 %", "0.0625", "STANDARD", "FUSED", "sums",
                           "of length 2-3", "of length 8-15", "cups", "of length 4-7", "75.0 %", "100.0 %"})
    EXPECT_TRUE(has(shown, part)) << part << " is not in\n" << shown;
  EXPECT_FALSE(has(shown, "stories"));
  t.e.answers = {{}, {}};
  EXPECT_FALSE(has(show_evaluation(t.e, {}), "puzzles"));
}

TEST(Score, IsTheShareOfWhatIsRight) {
  Score score;
  EXPECT_EQ(score.share(), 0);
  for (bool right : {true, false, true, true}) score.add(right);
  EXPECT_EQ(score.share(), 0.75);
  EXPECT_EQ(score.all, 4);
}

TEST(Evaluate, TheCorpussPuzzlesAreAnsweredWhateverTheModelSays) {
  ModelConfig config = tiny_config();
  config.vocab = kByteVocab, config.context = 64;
  Model model(config);
  init_params(model.layout, model.block.data(), 1);
  std::vector<Puzzle> puzzles = make_puzzles(parse_task_mix("all"), Split::validation, 1, 60, config.context);
  size_t answers = 0;
  for (const Puzzle& puzzle : puzzles) answers += puzzle.answers.size();
  EXPECT_GT(answers, 60u);
  for (DecodeMode mode : {DecodeMode::standard, DecodeMode::soft, DecodeMode::fused, DecodeMode::sequential})
    EXPECT_EQ(answer_puzzles(cpu_kernels(), config, model.params, Tokenizer(), puzzles, mode, 1).size(), answers);
}

TEST(EvaluationMemory, CoversPassesAndDecoding) {
  ModelConfig config = tiny_config();
  auto bytes = [&](int rows, bool puzzles) {
    Plan plan;
    plan_evaluation_memory(plan, cpu_kernels(), config, rows, puzzles);
    return plan.total();
  };
  Plan decoding;
  Decoder::plan_memory(decoding, cpu_kernels(), config, {1, 256, config.context});
  EXPECT_GE(bytes(16, false), decoding.total());
  EXPECT_GT(bytes(16, true), bytes(16, false));
  EXPECT_GT(bytes(1 << 20, true), 4.0 * (1 << 20) * config.width * 10);
}

}  // namespace
