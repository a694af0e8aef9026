#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "exact.h"
#include "random.h"

int sample_token(const float* logits, int vocab, const Sampling& s, uint64_t key) {
  int best = int(std::max_element(logits, logits + vocab) - logits);
  if (s.temperature == 0 || s.top_k == 1 || !std::isfinite(logits[best])) return best;
  std::vector<int> order(vocab);
  std::iota(order.begin(), order.end(), 0);
  int kept = s.top_k > 0 ? std::min(s.top_k, vocab) : vocab;
  auto better = [&](int a, int b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  if (kept < vocab || s.top_p < 1) std::partial_sort(order.begin(), order.begin() + kept, order.end(), better);
  std::vector<double> weight(kept);
  double total = 0, reached = 0;
  for (int i = 0; i < kept; ++i)
    total += weight[i] = exact_exp((double(logits[order[i]]) - double(logits[best])) / double(s.temperature));
  if (s.top_p < 1) {
    int count = 0;
    while (count < kept && reached < double(s.top_p) * total) reached += weight[count++];
    kept = std::max(count, 1), total = kept == 1 ? weight[0] : reached;
  }
  double left = random_uniform(key, 0) * total;
  for (int i = 0; i < kept; ++i)
    if ((left -= weight[i]) < 0) return order[i];
  return order[kept - 1];
}
