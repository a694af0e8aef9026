// Work that is repeated as one CUDA graph: whatever changes from time to time, the results are right.
#include <functional>
#include <stdexcept>

#include "../cuda/device.h"

namespace {

struct Repeated {
  explicit Repeated(const Kernels& run) : run(run), graph(run.new_graph()) {}
  ~Repeated() { run.delete_graph(graph); }
  void operator()(std::function<void()> body) {
    run.run_graph(
        graph, [](void* b) { (*static_cast<std::function<void()>*>(b))(); }, &body);
  }
  const Kernels& run;
  Graph* graph;
};

// Gathers some of ten rows; the rows' numbers lie in host memory and change each time.
struct Rows {
  explicit Rows(const Device& d)
      : d(d), repeated(d.run), in(acts(d, numbers())), out(acts(d, std::vector<float>(40))) {}
  static std::vector<float> numbers() {
    std::vector<float> v(40);
    for (size_t i = 0; i < 40; ++i) v[i] = float(i);
    return v;
  }
  void expect_gathered(std::vector<int> source, int times = 1) {
    int walked = 0;
    repeated([&] {
      d.run.gather_rows(out.data(), in.data(), source.data(), int(source.size()), 4);
      ++walked;
    });
    EXPECT_EQ(walked, times);
    std::vector<float> got = out.values();
    for (size_t i = 0; i < source.size(); ++i) EXPECT_EQ(got[4 * i], float(4 * source[i]));
  }
  const Device& d;
  Repeated repeated;
  OnDevice in, out;
};

TEST(CudaGraph, ReadsTheHostsArraysAnewEachTime) {
  with_cuda_tables([](const Device& d) {
    Rows rows(d);
    for (int first = 0; first < 8; ++first) rows.expect_gathered({first, first + 1});
  });
}

TEST(CudaGraph, OfOtherWorkIsMadeAnew) {
  with_cuda_tables([](const Device& d) {
    Rows rows(d);
    rows.expect_gathered({1, 2});                 // as it is
    rows.expect_gathered({1, 2, 3, 4, 5, 6}, 1);  // captured, though other work
    rows.expect_gathered({2, 1, 4, 3, 6, 5});     // launched
    rows.expect_gathered({7}, 2);                 // differs: as it is
    rows.expect_gathered({8});                    // captured
    rows.expect_gathered({9});                    // launched
    std::vector<int> many(200, 3);
    OnDevice wide = acts(d, std::vector<float>(800));
    for (int time = 0; time < 3; ++time)  // more than the staging memory that was enough so far
      rows.repeated([&] { d.run.gather_rows(wide.data(), rows.in.data(), many.data(), 200, 4); });
    EXPECT_EQ(wide.values()[799], 15);
    rows.expect_gathered({4}, 2);
  });
}

TEST(CudaGraph, WhoseWorkThrowsLeavesEverythingAsItWas) {
  with_cuda_tables([](const Device& d) {
    for (int before : {0, 1, 2, 3}) {  // direct, captured, compared
      Rows rows(d);
      for (int i = 0; i < before; ++i) rows.expect_gathered({i, 1});
      EXPECT_THROW(rows.repeated([&] {
        d.run.zero(rows.out.data(), 40);
        throw std::runtime_error("enough");
      }),
                   std::runtime_error);
      int source[] = {3};
      d.run.gather_rows(rows.out.data(), rows.in.data(), source, 1, 4);
      EXPECT_EQ(rows.out.values()[0], 12);
    }
  });
}

TEST(CudaGraph, OfMoreThanWasStagedBeforeIsNotCaptured) {
  with_cuda_tables([](const Device& d) {
    Rows rows(d);
    rows.expect_gathered({1});
    std::vector<int> many(2000, 3);
    OnDevice wide = acts(d, std::vector<float>(8000));
    for (int time = 0; time < 3; ++time) {
      rows.repeated([&] { d.run.gather_rows(wide.data(), rows.in.data(), many.data(), 2000, 4); });
      EXPECT_EQ(wide.values()[7999], 15);
    }
  });
}

}  // namespace
