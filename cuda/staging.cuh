// What lies on the host on its way to the device: pinned memory and its place there, filled from the front.
#pragma once
#include "launch.cuh"

struct Staging {
  char *host = nullptr, *device = nullptr;
  size_t bytes = 0, used = 0;

  Staging() = default;
  Staging(const Staging&) = delete;
  ~Staging() { resize(0); }
  // Forgets what it holds.
  void resize(size_t wanted);
  // The device's place of a copy in `host`, which is not on its way yet; null: no room.
  char* put(const void* data, size_t size, size_t* at);
};

// While this is not null, stage_bytes() only puts its data there, and whoever set it sends all at once.
Staging*& staging_of_graph();
// What the graph at hand was made for does not fit: its work will be run anew, as it is.
void work_differs();
// Bytes that stage_bytes() has taken so far.
size_t bytes_staged();
