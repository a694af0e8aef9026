#include "streams.h"

#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "report.h"

using namespace simt;

// One recording of an event; who waits for it keeps it, whatever becomes of the event.
struct Moment {
  CUstream_st* stream;
  bool happened = false;
  std::chrono::steady_clock::time_point when = {};
};
struct CUevent_st {
  std::shared_ptr<Moment> last;  // null: never recorded
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

void await(const Moment& m) {
  while (!m.happened && !m.stream->pending.empty()) run_next(*m.stream);
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
    if (!event->last) return cudaSuccess;
    return enqueue(stream, {"wait", [moment = event->last] { await(*moment); }});
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
    event->last = std::make_shared<Moment>(Moment{find_stream(stream)});
    return enqueue(stream, {"event", [moment = event->last] {
                              moment->happened = true;
                              moment->when = std::chrono::steady_clock::now();
                            }});
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer([&] {
    if (cudaError_t error = known(event)) return error;
    if (event->last) await(*event->last);
    return cudaSuccess;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return answer([&] {
    if (known(begin) != cudaSuccess || known(end) != cudaSuccess) return cudaErrorInvalidResourceHandle;
    if (!begin->last || !end->last) return cudaErrorInvalidResourceHandle;
    if (!begin->last->happened || !end->last->happened) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(end->last->when - begin->last->when).count();
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return answer([&] {
    if (cudaError_t error = known(event)) return error;
    events.erase(event);
    delete event;
    return cudaSuccess;
  });
}
