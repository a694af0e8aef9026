// NCCL for the emulator: the collectives, with NCCL's own signatures. All ranks of a communicator live in this process and are
// driven by one thread, so their calls stand in a group (ncclGroupStart, ncclGroupEnd), as NCCL wants it of one thread with
// several devices. Sums are added in the order of the ranks.
#pragma once
#include "cuda_runtime.h"

enum ncclResult_t { ncclSuccess = 0, ncclInvalidArgument = 4, ncclInvalidUsage = 5 };
enum ncclDataType_t { ncclInt32 = 2, ncclFloat32 = 7, ncclFloat64 = 8, ncclBfloat16 = 9 };
constexpr ncclDataType_t ncclInt = ncclInt32, ncclFloat = ncclFloat32, ncclDouble = ncclFloat64;
enum ncclRedOp_t { ncclSum = 0, ncclMax = 2, ncclAvg = 4 };
struct ncclUniqueId {
  char internal[128];
};
using ncclComm_t = struct ncclComm*;

const char* ncclGetErrorString(ncclResult_t);
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int ranks, ncclUniqueId, int rank);
ncclResult_t ncclCommInitAll(ncclComm_t*, int devices, const int* list);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommCount(ncclComm_t, int* ranks);
ncclResult_t ncclCommUserRank(ncclComm_t, int* rank);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();

// Counts are in elements; receive may be send (of ReduceScatter and AllGather: at the rank's own part).
ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t, int root, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t received, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t, cudaStream_t);
ncclResult_t ncclAllGather(const void* send, void* receive, size_t sent, ncclDataType_t, ncclComm_t, cudaStream_t);
