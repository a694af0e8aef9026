// Continues a text with a trained model, and says how likely another one is.
#include <cmath>
#include <cstdio>
#include <exception>
#include <fullband/inference.h>
#include <numeric>

int main(int argc, char** argv) try {
  set_threads(0);                               // all cores; without it, one
  Inference model(argc > 1 ? argv[1] : "out");  // a run's newest checkpoint, or one by its folder

  Generation how;
  how.mode = model.best_mode();
  how.tokens = 40;
  how.sampling.temperature = 0;  // the likeliest token; the same seed gives the same text at any temperature
  std::string prompt = argc > 2 ? argv[2] : "It was";
  std::printf("%s", prompt.c_str());
  Continuation more = model.continue_text(prompt, how, [](int, const std::string& piece) {
    std::fputs(piece.c_str(), stdout);
    std::fflush(stdout);
  });
  std::printf("\n%zu tokens, then %s\n", more.tokens.size(), describe(more.ending));

  std::string other = argc > 3 ? argv[3] : " not so.";
  std::vector<double> each = model.score_text(prompt, other, how.mode);
  double nats = -std::accumulate(each.begin(), each.end(), 0.0);
  std::printf("\"%s\" instead: %.4f nats in %zu tokens, %.4f bits a byte\n", other.c_str(), nats, each.size(),
              nats / std::log(2.0) / double(other.size()));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "example: %s\n", e.what());
  return 1;
}
