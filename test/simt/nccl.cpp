#include "nccl.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda_bf16.h"
#include "runtime.h"

namespace {

enum class Kind { all_reduce, broadcast, reduce_scatter, all_gather };

// One rank's part in a collective.
struct Call {
  Kind kind;
  const void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  int choice;  // the operation, or the root
  cudaStream_t stream;

  bool fits(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && choice == other.choice;
  }
};

struct Clique {
  explicit Clique(int ranks) : calls(size_t(ranks)) {}
  std::vector<std::deque<Call>> calls;  // of each rank, those that wait for the others'
};

int group_depth = 0;
std::map<std::string, std::shared_ptr<Clique>> cliques;  // by id

size_t bytes_of(ncclDataType_t type) { return type == ncclBfloat16 ? 2 : type == ncclFloat64 ? 8 : 4; }

double get(const void* x, size_t i, ncclDataType_t type) {
  if (type == ncclInt32) return static_cast<const int*>(x)[i];
  if (type == ncclFloat32) return static_cast<const float*>(x)[i];
  if (type == ncclFloat64) return static_cast<const double*>(x)[i];
  return __bfloat162float(static_cast<const __nv_bfloat16*>(x)[i]);
}

void set(void* x, size_t i, ncclDataType_t type, double value) {
  if (type == ncclInt32) static_cast<int*>(x)[i] = int(value);
  if (type == ncclFloat32) static_cast<float*>(x)[i] = float(value);
  if (type == ncclFloat64) static_cast<double*>(x)[i] = value;
  if (type == ncclBfloat16) static_cast<__nv_bfloat16*>(x)[i] = __float2bfloat16(float(value));
}

// What all ranks send, combined in their order; rounded as each addition's type says.
double combined(const std::vector<Call>& ranks, size_t i) {
  ncclDataType_t type = ranks[0].type;
  auto rounded = [&](double x) {
    if (type == ncclFloat64 || type == ncclInt32) return x;
    return double(type == ncclFloat32 ? float(x) : __bfloat162float(__float2bfloat16(float(x))));
  };
  double all = get(ranks[0].send, i, type);
  for (size_t r = 1; r < ranks.size(); ++r) {
    double x = get(ranks[r].send, i, type);
    all = ranks[0].choice == ncclMax ? std::max(all, x) : rounded(all + x);
  }
  return ranks[0].choice == ncclAvg ? rounded(all / double(ranks.size())) : all;
}

void run_collective(const std::vector<Call>& ranks) {
  const Call& first = ranks[0];
  size_t n = first.count, bytes = n * bytes_of(first.type);
  if (first.kind == Kind::broadcast) {
    for (const Call& c : ranks) std::memmove(c.receive, ranks[size_t(first.choice)].send, bytes);
    return;
  }
  // Results first, then where they go: a rank may receive where it sends.
  bool reduces = first.kind != Kind::all_gather, all_of_it = first.kind != Kind::reduce_scatter;
  size_t whole = first.kind == Kind::all_reduce ? n : n * ranks.size();
  std::vector<char> result(whole * bytes_of(first.type));
  for (size_t i = 0; reduces && i < whole; ++i) set(result.data(), i, first.type, combined(ranks, i));
  for (size_t r = 0; !reduces && r < ranks.size(); ++r) std::memcpy(&result[r * bytes], ranks[r].send, bytes);
  for (size_t r = 0; r < ranks.size(); ++r)
    std::memcpy(ranks[r].receive, all_of_it ? result.data() : &result[r * bytes], all_of_it ? result.size() : bytes);
}

// On the first rank's stream, after what is before it in all of them; the others go on when it is done.
void enqueue(const std::vector<Call>& ranks) {
  cudaStream_t stream = ranks[0].stream;
  cudaEvent_t event;
  cudaEventCreate(&event);
  for (const Call& c : ranks)
    if (c.stream != stream) cudaEventRecord(event, c.stream), cudaStreamWaitEvent(stream, event, 0);
  simt::enqueue(stream, {"collective", [ranks] { run_collective(ranks); }});
  cudaEventRecord(event, stream);
  for (const Call& c : ranks)
    if (c.stream != stream) cudaStreamWaitEvent(c.stream, event, 0);
  cudaEventDestroy(event);
}

ncclResult_t refuse(const std::string& why) {
  std::fprintf(stderr, "simt: nccl: %s\n", why.c_str());
  return ncclInvalidUsage;
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank;
};

static ncclResult_t post(ncclComm_t comm, const Call& call) {
  std::vector<std::deque<Call>>& calls = comm->clique->calls;
  if (!call.send || !call.receive) return ncclInvalidArgument;
  if (call.kind == Kind::broadcast && (call.choice < 0 || size_t(call.choice) >= calls.size()))
    return ncclInvalidArgument;
  if (calls.size() > 1 && group_depth == 0)
    return refuse("rank " + std::to_string(comm->rank) + " would wait forever: one thread's ranks call in a group");
  calls[size_t(comm->rank)].push_back(call);
  std::vector<Call> ranks;
  for (auto& of_rank : calls) {
    if (of_rank.empty()) return ncclSuccess;  // a later one completes it
    ranks.push_back(of_rank.front());
  }
  for (auto& of_rank : calls) of_rank.pop_front();
  for (size_t r = 1; r < ranks.size(); ++r)
    if (!ranks[r].fits(ranks[0])) return refuse("ranks 0 and " + std::to_string(r) + " call different collectives");
  enqueue(ranks);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : result == ncclInvalidArgument ? "invalid argument" : "invalid usage";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int next = 0;
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "clique %d", next++);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  std::shared_ptr<Clique>& clique = cliques[id.internal];
  if (!clique) clique = std::make_shared<Clique>(ranks);
  if (clique->calls.size() != size_t(ranks)) return refuse("ranks disagree on how many they are");
  *comm = new ncclComm{clique, rank};
  return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int*) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  for (int rank = 0; rank < devices; ++rank) ncclCommInitRank(&comms[rank], devices, id, rank);
  return devices < 1 ? ncclInvalidArgument : ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return delete comm, ncclSuccess; }
ncclResult_t ncclCommCount(ncclComm_t comm, int* ranks) {
  return *ranks = int(comm->clique->calls.size()), ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) { return *rank = comm->rank, ncclSuccess; }

ncclResult_t ncclGroupStart() { return ++group_depth, ncclSuccess; }

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return refuse("ncclGroupEnd without ncclGroupStart");
  if (--group_depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (auto& [id, clique] : cliques) {
    bool waits = false;
    for (auto& calls : clique->calls) waits |= !calls.empty();
    for (size_t r = 0; waits && r < clique->calls.size(); ++r)
      if (clique->calls[r].empty()) result = refuse("rank " + std::to_string(r) + " did not call what others wait for");
    for (auto& calls : clique->calls) calls.clear();
  }
  return result;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Kind::all_reduce, send, receive, count, type, op, stream});
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Kind::broadcast, send, receive, count, type, root, stream});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t received, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return post(comm, {Kind::reduce_scatter, send, receive, received, type, op, stream});
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t sent, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return post(comm, {Kind::all_gather, send, receive, sent, type, 0, stream});
}
