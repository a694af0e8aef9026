// Captures and graphs: what a stream is given between begin and end is kept instead of done, and can be done as often
// as wanted. Arguments are kept by value; the memory that they point to is read whenever the graph runs.
#include <memory>
#include <set>
#include <utility>

#include "report.h"
#include "streams.h"

using namespace simt;

struct CUgraph_st {
  std::vector<Operation> operations;
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<Operation>> operations;  // which launches that are still to be done share
};

namespace {
std::set<CUgraph_st*> graphs;
std::set<CUgraphExec_st*> executables;
cudaError_t known(cudaGraph_t g) { return graphs.count(g) ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t known(cudaGraphExec_t g) { return executables.count(g) ? cudaSuccess : cudaErrorInvalidValue; }

cudaGraphExecUpdateResult compare(const std::vector<Operation>& a, const std::vector<Operation>& b) {
  if (a.size() != b.size()) return cudaGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::string(a[i].kind) != b[i].kind) return cudaGraphExecUpdateErrorNodeTypeChanged;
  return cudaGraphExecUpdateSuccess;
}
}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return answer([&] {
    if (!stream)
      return refuse(cudaErrorStreamCaptureUnsupported, "cudaStreamBeginCapture", "not on the default stream");
    CUstream_st* s = find_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (s->capture != cudaStreamCaptureStatusNone)
      return refuse(cudaErrorInvalidValue, "cudaStreamBeginCapture", "the stream captures already");
    s->capture = cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  return answer([&] {
    CUstream_st* s = find_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    auto status = std::exchange(s->capture, cudaStreamCaptureStatusNone);
    auto captured = std::exchange(s->captured, {});
    if (status == cudaStreamCaptureStatusNone) return cudaErrorStreamCaptureUnmatched;
    if (status == cudaStreamCaptureStatusInvalidated) return cudaErrorStreamCaptureInvalidated;
    *graph = *graphs.insert(new CUgraph_st{std::move(captured)}).first;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return answer([&] {
    CUstream_st* s = find_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    *status = s->capture;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return answer([&] {
    if (cudaError_t error = known(graph)) return error;
    auto operations = std::make_shared<const std::vector<Operation>>(graph->operations);
    *executable = *executables.insert(new CUgraphExec_st{operations}).first;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return answer([&] {
    if (cudaError_t error = known(executable)) return error;
    if (cudaError_t error = known(graph)) return error;
    *info = {compare(*executable->operations, graph->operations), nullptr, nullptr};
    if (info->result != cudaGraphExecUpdateSuccess) return cudaErrorGraphExecUpdateFailure;
    executable->operations = std::make_shared<const std::vector<Operation>>(graph->operations);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return answer([&] {
    if (cudaError_t error = known(executable)) return error;
    return enqueue(stream, {"graph", [operations = executable->operations] {
                              for (const Operation& o : *operations) o.run();
                            }});
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return answer([&] {
    if (cudaError_t error = known(graph)) return error;
    graphs.erase(graph);
    delete graph;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return answer([&] {
    if (cudaError_t error = known(executable)) return error;
    executables.erase(executable);
    delete executable;
    return cudaSuccess;
  });
}
