// Work that is done again and again with the same shapes, such as a decoded token's hundreds of small kernels, as one CUDA
// graph. Its calls run as they are the first time (memory is taken then), are captured into a graph the second time, and
// from the third time on are only compared with what the graph holds, while the host's arrays go to the same places in its
// staging memory; then the graph is launched as a whole. Where a call differs, all calls run as they are again.
#include <vector>

#include "device.cuh"
#include "ops.cuh"
#include "staging.cuh"

struct Graph {
  cudaGraphExec_t executable = nullptr;
  Staging staging;
  bool has_run = false;
  size_t staged_bytes = 0;           // of its last direct run
  std::vector<unsigned char> calls;  // their identities
  ~Graph() {
    if (executable) cudaGraphExecDestroy(executable);
  }
};

namespace {

enum class Mode { direct, captured, compared };
struct {
  Mode mode = Mode::direct;
  Graph* graph = nullptr;
  size_t at = 0;  // of the graph's calls, compared so far
  bool same = true;
} now;

void run_calls(Mode mode, Graph* graph, void (*body)(void*), void* context) {
  struct Directly {
    ~Directly() { staging_of_graph() = nullptr, now.mode = Mode::direct; }
  } behind;  // also where the body throws
  now = {mode, graph, 0, true};
  staging_of_graph() = mode == Mode::direct ? nullptr : &graph->staging;
  graph->staging.used = 0;
  body(context);
}

void run_directly(Graph* graph, void (*body)(void*), void* context) {
  size_t before = bytes_staged();
  run_calls(Mode::direct, graph, body, context);
  graph->staged_bytes = bytes_staged() - before, graph->has_run = true;
}

// False where the work was not the one that ran before, so that its memory does not suffice.
bool capture(Graph* graph, void (*body)(void*), void* context) {
  graph->staging.resize(graph->staged_bytes);
  graph->calls.clear();
  CUDA_CHECK(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
  Staging& s = graph->staging;
  if (s.bytes > 0) CUDA_CHECK(cudaMemcpyAsync(s.device, s.host, s.bytes, cudaMemcpyHostToDevice, stream()));
  cudaGraph_t captured = nullptr;
  try {
    run_calls(Mode::captured, graph, body, context);
  } catch (...) {
    cudaStreamEndCapture(stream(), &captured);
    if (captured) cudaGraphDestroy(captured);
    throw;
  }
  CUDA_CHECK(cudaStreamEndCapture(stream(), &captured));
  if (now.same) CUDA_CHECK(cudaGraphInstantiate(&graph->executable, captured, 0));
  CUDA_CHECK(cudaGraphDestroy(captured));
  return now.same;
}

bool is_same(Graph* graph, void (*body)(void*), void* context) {
  wait();  // the staging memory of the last launch has been read
  run_calls(Mode::compared, graph, body, context);
  return now.same && now.at == graph->calls.size();
}

Graph* new_graph() { return new Graph; }
void delete_graph(Graph* graph) { delete graph; }

void run_graph(Graph* graph, void (*body)(void*), void* context) {
  bool ready = graph->executable ? is_same(graph, body, context)
               : graph->has_run  ? capture(graph, body, context)
                                 : false;
  if (ready) return CUDA_CHECK(cudaGraphLaunch(graph->executable, stream()));
  if (graph->executable) CUDA_CHECK(cudaGraphExecDestroy(graph->executable));
  graph->executable = nullptr;
  run_directly(graph, body, context);
}

}  // namespace

bool enters(const unsigned char* identity, size_t bytes) {
  if (now.mode == Mode::direct) return true;
  std::vector<unsigned char>& calls = now.graph->calls;
  if (now.mode == Mode::captured) {
    calls.insert(calls.end(), identity, identity + bytes);
    return true;
  }
  now.same = now.same && calls.size() - now.at >= bytes && std::memcmp(&calls[now.at], identity, bytes) == 0;
  now.at += now.same ? bytes : 0;
  return false;
}

void work_differs() { now.same = false; }

void add_graphs(Kernels& table) {
  table.new_graph = new_graph, table.delete_graph = delete_graph, table.run_graph = run_graph;
}
