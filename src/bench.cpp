// ./bench [peak|matmul]: how fast the kernels are, beside what the machine can do. The ceiling is measured in the same
// run, in turns with the kernel, since machines drift.
#include <algorithm>
#include <vector>

#include "cpu/parallel.h"
#include "error.h"
#include "flags.h"
#include "json.h"
#include "kernels.h"
#include "log.h"
#include "program.h"

namespace {

double measure(const Kernels& run, double seconds, void (*work)(const Kernels&, void*), void* context) {
  double start = seconds_now(), best = 1e30;
  do {
    double t = seconds_now();
    work(run, context);
    best = std::min(best, seconds_now() - t);
  } while (seconds_now() - start < seconds);
  return best;
}

// The peak: chains of fma that never leave the registers, on every thread.
double peak_gflops(const Kernels& run) {
  double operations = 0;
  double seconds = measure(
      run, 0.05, [](const Kernels& k, void* out) { *static_cast<double*>(out) = k.peak_fma(); }, &operations);
  return operations / seconds / 1e9;
}

struct Product {
  std::string form;
  int rows, in, out;
  std::vector<float> x, w, y;
  Product(std::string f, int r, int i, int o)
      : form(std::move(f)),
        rows(r),
        in(i),
        out(o),
        x(size_t(r) * i, 0.5f),
        w(size_t(i) * o, 0.25f),
        y(size_t(r) * o, 0.125f) {}
};

void multiply(const Kernels& k, void* context) {
  Product& p = *static_cast<Product*>(context);
  if (p.form == "forward") k.matmul_forward(p.y.data(), p.x.data(), p.w.data(), p.rows, p.in, p.out);
  if (p.form == "dinput") k.matmul_backward_input(p.x.data(), p.y.data(), p.w.data(), p.rows, p.in, p.out, false);
  if (p.form == "dweight") {
    std::fill(p.w.begin(), p.w.end(), 0.0f);
    k.matmul_backward_weight(p.w.data(), p.y.data(), p.x.data(), p.rows, p.in, p.out);
  }
}

void bench_matmul(const Kernels& run, bool json) {
  constexpr int kShapes[][3] = {{512, 64, 192},   {512, 64, 384},    {512, 192, 64},   {256, 768, 2304},
                                {256, 768, 768},  {256, 768, 4096},  {256, 2048, 768}, {1024, 768, 2304},
                                {1024, 768, 768}, {1024, 768, 4096}, {1024, 2048, 768}};
  std::vector<std::vector<std::string>> table = {{"product", "rows", "in", "out", "GFLOP/s", "of the fma peak"}};
  for (const auto& [rows, in, out] : kShapes)
    for (const char* form : {"forward", "dinput", "dweight"}) {
      Product p(form, rows, in, out);
      double before = peak_gflops(run);
      double gflops = 2.0 * rows * in * out / measure(run, 0.2, multiply, &p) / 1e9;
      double peak = std::max(before, peak_gflops(run));
      if (json)
        std::printf("%s\n", write_json(Json::object({{"bench", "matmul"},
                                                     {"form", form},
                                                     {"rows", rows},
                                                     {"in", in},
                                                     {"out", out},
                                                     {"gflops", gflops},
                                                     {"peak_gflops", peak}}))
                                .c_str());
      else
        table.push_back({form, std::to_string(rows), std::to_string(in), std::to_string(out), text("%.0f", gflops),
                         text("%.0f %%", 100 * gflops / peak)});
    }
  if (!json) std::printf("%s", show_table(table).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("bench", [&] {
    int threads = 0;
    bool json = false;
    std::string what = "matmul";
    if (argc > 1 && argv[1][0] != '-') what = argv[1], --argc, ++argv;
    if (what != "peak" && what != "matmul") fail("there is no benchmark `%s`; there are peak and matmul", what.c_str());
    Flags flags("./bench [peak|matmul]", "Measures matrix products beside the machine's fma peak, in one run.");
    flags.section("Benchmark");
    flags.add("threads", &threads, "CPU threads (0: all cores)", 0, 4096);
    flags.add("json", &json, "one JSON object a line instead of a table");
    flags.parse(argc, argv);
    threads = set_threads(threads);
    const Kernels& run = cpu_kernels();
    if (!json)
      std::printf("%s, %d thread%s, fma peak %.0f GFLOP/s\n", run.name, threads, threads == 1 ? "" : "s",
                  peak_gflops(run));
    if (json && what == "peak")
      std::printf("%s\n", write_json(Json::object({{"bench", "peak"}, {"peak_gflops", peak_gflops(run)}})).c_str());
    if (what == "matmul") bench_matmul(run, json);
    return 0;
  });
}
