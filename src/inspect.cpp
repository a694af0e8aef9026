// Statistics of a token file.
#include "inspect.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "error.h"
#include "json.h"
#include "log.h"
#include "shards.h"
#include "utf8.h"

namespace {

std::string quoted(const std::string& bytes) { return write_json(Json(bytes)); }

// How often each id occurs.
std::vector<int64_t> count_ids(const Tokens& tokens, const std::string& path) {
  constexpr uint32_t kMostIds = 1 << 24;
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < tokens.size(); ++i) {
    uint32_t id = uint32_t(tokens[i]);
    if (id >= kMostIds) fail("%s: token %lld is %u, which no vocabulary has", path.c_str(), (long long)i, id);
    if (id >= counts.size()) counts.resize(id + 1);
    ++counts[id];
  }
  return counts;
}

// Where end-of-text stands and a document follows.
std::vector<int64_t> find_documents(const Tokens& tokens, int end_of_text) {
  std::vector<int64_t> starts;
  for (int64_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i] == end_of_text && tokens[i + 1] != end_of_text) starts.push_back(i);
  return starts;
}

int64_t document_end(const Tokens& tokens, int64_t start, int end_of_text) {
  int64_t end = start + 1;
  while (end < tokens.size() && tokens[end] != end_of_text) ++end;
  return end;
}

std::string describe_documents(const Tokens& tokens, const std::vector<int64_t>& starts, int end_of_text) {
  if (starts.empty()) return "none begins here";
  std::vector<int64_t> lengths;
  for (int64_t start : starts) lengths.push_back(document_end(tokens, start, end_of_text) - start - 1);
  std::sort(lengths.begin(), lengths.end());
  double mean = double(std::accumulate(lengths.begin(), lengths.end(), int64_t(0))) / double(lengths.size());
  return text("%zu begin here; tokens: mean %.1f, median %lld, longest %lld", starts.size(), mean,
              (long long)lengths[lengths.size() / 2], (long long)lengths.back());
}

std::vector<std::string> describe_frequent(const std::vector<int64_t>& counts, int64_t total,
                                           const Tokenizer* tokenizer) {
  constexpr size_t kMost = 8;
  std::vector<int> ids;
  for (size_t id = 0; id < counts.size(); ++id)
    if (counts[id] > 0) ids.push_back(int(id));
  size_t shown = std::min(kMost, ids.size());
  std::partial_sort(ids.begin(), ids.begin() + shown, ids.end(),
                    [&](int a, int b) { return counts[a] != counts[b] ? counts[a] > counts[b] : a < b; });
  std::vector<std::string> parts;
  for (size_t i = 0; i < shown; ++i)
    parts.push_back((tokenizer ? quoted(std::string(tokenizer->bytes_of(ids[i]))) : "id " + std::to_string(ids[i])) +
                    text(" %.1f %%", 100.0 * double(counts[ids[i]]) / double(total)) + (i + 1 < shown ? "," : ""));
  return parts;
}

std::string beginning(const Tokens& tokens, int64_t start, const Tokenizer& tokenizer) {
  constexpr int64_t kMostTokens = 24;
  int64_t end = document_end(tokens, start, tokenizer.end_of_text()), cut = std::min(end, start + 1 + kMostTokens);
  std::string bytes;
  Utf8Stream whole;  // so that no character is cut
  for (int64_t i = start + 1; i < cut; ++i) bytes += whole.push(tokenizer.bytes_of(tokens[i]));
  return quoted(bytes + (cut < end ? " …" : whole.flush()));
}

}  // namespace

std::string describe_shard(const std::string& path, const Tokenizer* tokenizer) {
  constexpr size_t kSamples = 3;
  Tokens tokens = Tokens::map(path);
  int64_t size = tokens.size();
  if (tokenizer) require_ids_below(tokenizer->vocab(), tokens);
  std::vector<int64_t> counts = count_ids(tokens, path);
  int64_t different = std::count_if(counts.begin(), counts.end(), [](int64_t n) { return n > 0; });
  std::string out = path + "\n";
  auto line = [&](const char* name, const std::string& what) {
    out += text("  %-10s %s", name, wrapped({what}, 13).c_str());
  };
  line("tokens", text("%lld of %d bits, %s", (long long)size, tokens.bits(),
                      show_bytes(double(kShardHeaderBytes + size * tokens.bits() / 8)).c_str()));
  line("ids", text("%lld different", (long long)different) + (tokenizer ? text(" of %d", tokenizer->vocab()) : ""));
  if (tokens.has_mask()) {
    int64_t targets = 0;
    for (int64_t i = 0; i < size; ++i) targets += tokens.may_be_target(i);
    line("masked", text("%.1f %% are no targets", 100.0 * double(size - targets) / double(std::max<int64_t>(size, 1))));
  }
  out += text("  %-10s %s", "frequent", wrapped(describe_frequent(counts, size, tokenizer), 13).c_str());
  if (!tokenizer) return out;
  if (tokenizer->end_of_text() < 0) {
    line("documents", "which token ends one is not known; --end-token says so");
    return out;
  }
  std::vector<int64_t> starts = find_documents(tokens, tokenizer->end_of_text());
  line("documents", describe_documents(tokens, starts, tokenizer->end_of_text()));
  for (size_t i = 0; i < std::min(kSamples, starts.size()); ++i)
    line(i == 0 ? "beginning" : "", beginning(tokens, starts[i], *tokenizer));
  return out;
}
