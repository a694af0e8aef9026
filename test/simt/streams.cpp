#include "streams.h"

#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "report.h"

using namespace simt;

struct CUevent_st {
  CUstream_st* stream = nullptr;        // where it was recorded last and has not happened yet
  uint64_t recorded = 0, happened = 0;  // counts
  std::chrono::steady_clock::time_point when;
};

namespace {

constexpr size_t kMostPending = 4096;  // then the device starts by itself

CUstream_st default_stream;
std::set<CUstream_st*> streams = {&default_stream};
std::set<CUevent_st*> events;

void run_next(CUstream_st& s) {
  Operation operation = std::move(s.pending.front());
  s.pending.pop_front();
  operation.run();
}

// The default stream and those that block on it wait for each other.
void drain_before(CUstream_st& s) {
  if (&s != &default_stream) {
    if (s.blocking) drain(default_stream);
    return;
  }
  for (CUstream_st* other : streams)
    if (other != &s && other->blocking) drain(*other);
}

void await(CUevent_st& e, uint64_t count) {
  while (e.happened < count && e.stream && !e.stream->pending.empty()) run_next(*e.stream);
}

cudaError_t known(cudaEvent_t e) { return events.count(e) ? cudaSuccess : cudaErrorInvalidResourceHandle; }

}  // namespace

namespace simt {

CUstream_st* find_stream(cudaStream_t stream) {
  if (!stream) return &default_stream;
  return streams.count(stream) ? stream : nullptr;
}

void drain(CUstream_st& s) {
  while (!s.pending.empty()) run_next(s);
}

void drain_all() {
  for (CUstream_st* s : streams) drain(*s);
}

bool any_captures() {
  for (CUstream_st* s : streams)
    if (s->capture != cudaStreamCaptureStatusNone) return true;
  return false;
}

cudaError_t forbid_capture(const char* call) {
  if (!any_captures()) return cudaSuccess;
  for (CUstream_st* s : streams)
    if (s->capture == cudaStreamCaptureStatusActive) s->capture = cudaStreamCaptureStatusInvalidated;
  return refuse(cudaErrorStreamCaptureUnsupported, call, "not while a stream captures");
}

cudaError_t enqueue(cudaStream_t stream, Operation operation) {
  CUstream_st* s = find_stream(stream);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s->capture == cudaStreamCaptureStatusInvalidated) return cudaErrorStreamCaptureInvalidated;
  if (s->capture == cudaStreamCaptureStatusActive) {
    s->captured.push_back(std::move(operation));
    return cudaSuccess;
  }
  drain_before(*s);
  s->pending.push_back(std::move(operation));
  if (s->pending.size() > kMostPending) drain(*s);
  return cudaSuccess;
}

}  // namespace simt

// --- Streams

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return answer([&] {
    *stream = *streams.insert(new CUstream_st).first;
    (*stream)->blocking = !(flags & cudaStreamNonBlocking);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer([&] {
    CUstream_st* s = find_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (s->capture != cudaStreamCaptureStatusNone) return forbid_capture("cudaStreamSynchronize");
    drain_before(*s);
    drain(*s);
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSynchronize() {
  return answer([&] {
    if (cudaError_t error = forbid_capture("cudaDeviceSynchronize")) return error;
    drain_all();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return answer([&] {
    CUstream_st* s = stream ? find_stream(stream) : nullptr;
    if (!s) return cudaErrorInvalidResourceHandle;
    drain(*s);
    streams.erase(s);
    delete s;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return answer([&] {
    if (cudaError_t error = known(event)) return error;
    return enqueue(stream, {"wait", [event, count = event->recorded] { await(*event, count); }});
  });
}

// --- Events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return answer([&] { return *event = *events.insert(new CUevent_st).first, cudaSuccess; });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer([&] {
    if (cudaError_t error = known(event)) return error;
    event->stream = find_stream(stream);
    return enqueue(stream, {"event", [event, count = ++event->recorded] {
                              event->happened = count;
                              event->when = std::chrono::steady_clock::now();
                            }});
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer([&] {
    if (cudaError_t error = known(event)) return error;
    await(*event, event->recorded);
    return cudaSuccess;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return answer([&] {
    if (known(begin) != cudaSuccess || known(end) != cudaSuccess) return cudaErrorInvalidResourceHandle;
    if (!begin->recorded || !end->recorded) return cudaErrorInvalidResourceHandle;
    if (begin->happened < begin->recorded || end->happened < end->recorded) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(end->when - begin->when).count();
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return answer([&] {
    if (cudaError_t error = known(event)) return error;
    if (event->happened < event->recorded) await(*event, event->recorded);
    events.erase(event);
    delete event;
    return cudaSuccess;
  });
}
