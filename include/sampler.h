// From logits to a token. Computed in double from exact functions, so that a seed gives the same text on every machine.
#pragma once
#include <cstdint>

struct Sampling {
  float temperature = 1;  // 0: greedy, the first best token
  int top_k = 0;          // only the k best; 0: all
  float top_p = 1;        // only the smallest set of best tokens whose probabilities reach p
};

// `key` says which number is drawn: random_key(seed, Purpose::sampling, prompt, position).
int sample_token(const float* logits, int vocab, const Sampling&, uint64_t key);
