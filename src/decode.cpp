#include "decode.h"

#include <algorithm>

#include "error.h"
#include "exact.h"

static DecoderLimits resolved(DecoderLimits limits, const ModelConfig& c) {
  if (limits.context == 0) limits.context = c.context;
  int64_t all = int64_t(limits.sequences) * limits.context;
  limits.rows = int(std::max<int64_t>(1, std::min<int64_t>({limits.rows, all, GateCache::kRows})));
  return limits;
}

static size_t gate_rows(const ModelConfig& c) { return size_t(std::min(c.vocab, GateCache::kRows)); }

static void cut(Cutter& cutter, DecoderBuffers& b, const ModelConfig& c, DecoderLimits limits) {
  size_t D = c.width, sequences = limits.sequences;
  b.tape = cut_tape(cutter, c, TapeKind::inference, limits.rows, sequences * limits.context);
  b.tokens = cut_embedded_tokens(cutter, c, limits.rows, c.fusion != Fusion::none);
  b.feedback = c.fusion == Fusion::none ? FeedbackTape{} : cut_feedback_tape(cutter, c, limits.rows);
  b.carry = cutter.acts(sequences * D), b.logit_rows = cutter.acts(sequences * D);
  b.logits = cutter.acts(sequences * c.vocab);
  b.cached_gates = c.fusion == Fusion::gate ? cutter.acts(gate_rows(c) * D) : nullptr;
}

void require_mode(const ModelConfig& config, DecodeMode mode) {
  if (config.fusion == Fusion::none && mode != DecodeMode::standard)
    fail("mode %s needs a model with feedback; this one has none", name_of(mode));
}

void Decoder::plan_memory(Plan& plan, const Kernels& run, const ModelConfig& config, DecoderLimits limits) {
  DecoderBuffers unused;
  Cutter count(run);
  limits = resolved(limits, config);
  cut(count, unused, config, limits);
  double states =
      config.fusion == Fusion::none ? 0 : 2.0 * limits.sequences * limits.context * config.width;  // FUSED's prefill
  plan.add("decoding", double(count.used()) * sizeof(float) + states * run.element_bytes);
  if (limits.packed) plan.add("packed weights", PackedWeights::bytes(config, *limits.packed));
}

Decoder::Decoder(const Kernels& kernels, const ModelConfig& config, const ModelParams& params, DecoderLimits limits)
    : run_(kernels),
      config_(config),
      params_(params),
      limits_(resolved(limits, config)),
      rope_(rope_block(kernels, config, limits_.context)),
      packed_(limits.packed ? std::make_unique<PackedWeights>(kernels, config, params, *limits.packed) : nullptr),
      gate_cache_(config.vocab),
      stack_{kernels, config, rope_.data(), packed_.get()},
      feedback_{kernels, config, packed_.get()},
      positions_(limits.sequences) {
  Cutter count(run_);
  cut(count, b_, config, limits_);
  memory_ = Block(run_, count.used());
  Cutter cutter(run_, memory_.data());
  cut(cutter, b_, config, limits_);
}

std::vector<int> GateCache::find(const std::vector<int>& tokens, std::vector<int>* new_rows, std::vector<int>* new_at) {
  check(tokens.size() <= size_t(kRows), "%zu rows at a time", tokens.size());
  if (used_ + int(tokens.size()) > kRows) used_ = 0, std::fill(row_.begin(), row_.end(), -1);
  std::vector<int> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    int& row = row_[tokens[i]];
    if (row < 0) row = used_++, new_rows->push_back(row), new_at->push_back(int(i));
    rows.push_back(row);
  }
  return rows;
}

// The cache's rows of these tokens' gates, after computing those that were not there.
std::vector<int> Decoder::gates_of(const std::vector<int>& tokens) {
  std::vector<int> new_rows, new_at, new_tokens;
  std::vector<int> rows = gate_cache_.find(tokens, &new_rows, &new_at);
  for (int at : new_at) new_tokens.push_back(tokens[at]);
  if (new_tokens.empty()) return rows;
  int count = int(new_tokens.size());
  feedback_.embed(params_, b_.tokens, new_tokens.data(), count, true);
  run_.scatter_rows(b_.cached_gates, b_.tokens.gates, new_rows.data(), count, config_.width);
  return rows;
}

// At most limits_.rows rows; rows of one slot stand together at consecutive positions.
Decoder::Rows Decoder::prepare(const Row* rows, int count) {
  Rows r;
  std::vector<int> fused_tokens;
  for (int i = 0; i < count; ++i) {
    const Row& row = rows[i];
    check(row.position < limits_.context, "position %d in a context of %d", row.position, limits_.context);
    r.tokens.push_back(row.token);
    if (row.source < 0)
      r.input.add_plain(i, i);
    else
      r.input.add_fused(i, i, row.source), fused_tokens.push_back(row.token);
    int cache = row.slot * limits_.context;
    if (i > 0 && rows[i - 1].slot == row.slot)
      ++r.segments.back().rows;
    else
      r.segments.push_back({i, 1, row.position, cache, cache + row.position});
    positions_[row.slot] = row.position + 1;
  }
  if (config_.fusion == Fusion::gate && !fused_tokens.empty()) r.input.fused_token = gates_of(fused_tokens);
  return r;
}

// Leaves the rows' states in tape.h.
void Decoder::compute(const Rows& r, const act* carried) {
  EmbeddedTokens embedded = b_.tokens;
  embedded.gates = b_.cached_gates;
  feedback_.embed(params_, b_.tokens, r.tokens.data(), int(r.tokens.size()), false);
  feedback_.forward(params_, b_.feedback, b_.tape.layers[0].x, embedded, carried, r.input);
  stack_.forward(params_, b_.tape, 0, int(r.tokens.size()), r.segments);
}

// All prompts, chunk by chunk: plain where `previous` is null, else fused with the previous pass's states. `states`
// (null: not kept) and `previous` hold one row for each prompt token, end to end.
void Decoder::prefill_pass(const std::vector<std::vector<int>>& prompts, const act* previous, act* states) {
  std::vector<Row> rows;
  for (size_t slot = 0; slot < prompts.size(); ++slot)
    for (size_t t = 0; t < prompts[slot].size(); ++t)
      rows.push_back({int(slot), int(t), prompts[slot][t], previous && t > 0 ? int(rows.size()) - 1 : -1});
  for (size_t first = 0; first < rows.size(); first += limits_.rows) {
    int count = int(std::min(rows.size() - first, size_t(limits_.rows)));
    compute(prepare(&rows[first], count), previous);
    std::vector<int> all, last, slots;
    for (int i = 0; i < count; ++i) {
      const Row& row = rows[first + i];
      all.push_back(int(first) + i);
      if (row.position + 1 == int(prompts[row.slot].size())) last.push_back(i), slots.push_back(row.slot);
    }
    if (states) run_.scatter_rows(states, b_.tape.h, all.data(), count, config_.width);
    if (last.empty()) continue;
    run_.gather_rows(b_.tokens.e, b_.tape.h, last.data(), int(last.size()), config_.width);
    run_.scatter_rows(b_.carry, b_.tokens.e, slots.data(), int(slots.size()), config_.width);
  }
}

void Decoder::prefill(const std::vector<std::vector<int>>& prompts, DecodeMode mode, int prefill_passes) {
  require_mode(config_, mode);
  check(int(prompts.size()) <= limits_.sequences, "%zu prompts for %d slots", prompts.size(), limits_.sequences);
  mode_ = mode;
  positions_.assign(limits_.sequences, 0);
  size_t total = 0, longest = 0;
  for (const auto& prompt : prompts) {
    check(!prompt.empty(), "an empty prompt");
    total += prompt.size(), longest = std::max(longest, prompt.size());
  }
  if (mode == DecodeMode::sequential) {
    std::vector<std::vector<int>> first;
    for (const auto& prompt : prompts) first.push_back({prompt[0]});
    prefill_pass(first, nullptr, nullptr);
    for (size_t t = 1; t < longest; ++t) {
      std::vector<int> slots, tokens;
      for (size_t slot = 0; slot < prompts.size(); ++slot)
        if (t < prompts[slot].size()) slots.push_back(int(slot)), tokens.push_back(prompts[slot][t]);
      advance(slots, tokens);
    }
    return;
  }
  if (mode != DecodeMode::fused) return prefill_pass(prompts, nullptr, nullptr);
  size_t floats = floats_for(run_, total * config_.width);
  Block previous(run_, floats), current(run_, floats);
  prefill_pass(prompts, nullptr, previous.data());
  for (int pass = 0; pass < prefill_passes; ++pass) {
    prefill_pass(prompts, previous.data(), current.data());
    std::swap(previous, current);
  }
}

// Steps of as many rows call the same operations.
template <class Step>
void Decoder::as_graph(int rows, Step step) {
  GraphPointer& graph = graphs_.try_emplace(rows, nullptr, run_.delete_graph).first->second;
  if (!graph) graph.reset(run_.new_graph());
  run_.run_graph(
      graph.get(), [](void* body) { (*static_cast<Step*>(body))(); }, &step);
}

void Decoder::advance(const std::vector<int>& slots, const std::vector<int>& tokens) {
  std::vector<Row> rows;
  for (size_t i = 0; i < slots.size(); ++i)
    rows.push_back({slots[i], positions_[slots[i]], tokens[i], mode_ == DecodeMode::standard ? -1 : slots[i]});
  for (size_t first = 0; first < rows.size(); first += limits_.rows) {
    int count = int(std::min(rows.size() - first, size_t(limits_.rows)));
    Rows r = prepare(&rows[first], count);
    as_graph(count, [&] {
      compute(r, b_.carry);
      run_.scatter_rows(b_.carry, b_.tape.h, &slots[first], count, config_.width);
    });
  }
}

void Decoder::compute_logits(const std::vector<int>& slots) {
  int count = int(slots.size());
  run_.gather_rows(b_.logit_rows, b_.carry, slots.data(), count, config_.width);
  multiply(run_, packed_.get(), b_.logits, b_.logit_rows, params_.embedding, count, config_.width, config_.vocab);
}

const float* Decoder::logits(const std::vector<int>& slots) {
  compute_logits(slots);
  logits_ = OnHost(run_, b_.logits, slots.size() * size_t(config_.vocab));
  return logits_.data();
}

std::vector<int> Decoder::sample(const std::vector<int>& slots, const Sampling& sampling,
                                 const std::vector<uint64_t>& keys) {
  compute_logits(slots);
  std::vector<int> tokens(slots.size());
  run_.sample(tokens.data(), b_.logits, int(slots.size()), config_.vocab, sampling, keys.data());
  return tokens;
}

std::string capitals_of(DecodeMode mode) {
  std::string name = name_of(mode);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return char(c - 'a' + 'A'); });
  return name;
}
