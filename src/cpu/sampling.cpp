// The next token of each row of logits; threads share rows.
#include "parallel.h"
#include "tables.h"

namespace ISA {

void sample(int* token, const float* logits, int rows, int vocab, const Sampling& sampling, const uint64_t* key) {
  parallel_for(rows, worth_threads(int64_t(rows) * vocab), [&](int64_t row) {
    token[row] = sample_token(logits + size_t(row) * vocab, vocab, sampling, key[row]);
  });
}

}  // namespace ISA
