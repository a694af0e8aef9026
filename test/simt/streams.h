// Streams, between the files that stand in for the runtime: queues of work, done when somebody waits.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "runtime.h"

struct CUstream_st {
  bool blocking = true;  // in order with the default stream
  std::deque<simt::Operation> pending;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  std::vector<simt::Operation> captured;
};

namespace simt {

// Runs a call of the runtime's: gives the error that a test has asked for or that the lack of a device causes, or else
// that of the call itself, and remembers it.
cudaError_t answer(const std::function<cudaError_t()>& call);
cudaError_t refuse(cudaError_t, const char* call, const std::string& why);  // says so on stderr

CUstream_st* find_stream(cudaStream_t);  // null: there is none such; the default stream's is nullptr
void drain(CUstream_st&);                // does what is pending
void drain_all();
bool any_captures();
// For what is not allowed during a capture, which it spoils: an error then.
cudaError_t forbid_capture(const char* call);

}  // namespace simt
