// The memory of the emulated device, and the host's pinned memory: buffers that start as NaN and know where they end.
//
//   [ no access | canaries | the buffer | its end rounded to 16 bytes | no access ]
//
// The buffer is aligned to the right, so the first byte behind it faults and SIGSEGV's handler names buffer and thread;
// canaries before and in the rounding are checked after each launch. A buffer that was freed faults, too. As a
// consequence addresses are multiples of 256, 64 or 16 where the sizes are.
#pragma once
#include <cstddef>
#include <string>

namespace simt {

enum class Kind { device, pinned };

void* allocate(size_t bytes, Kind);  // null: there is not so much memory, see set_device_memory
bool release(void* begin, Kind);     // false: no such buffer
enum class Where { nowhere, device, pinned };
Where where_is(const void* address);                    // `nowhere`: the host's other memory
bool inside_buffer(const void* address, size_t bytes);  // all of it in one
std::string describe_address(const void* address);      // "12 bytes behind the end of a device buffer of 400 bytes"
size_t device_bytes_used();
size_t device_bytes();

void check_guards();                            // dies of a write beside a buffer
void watch_memory();                            // installs SIGSEGV's handler
void fill_with_nan(void* begin, size_t bytes);  // NaN as bf16, half, float and double, large as an integer

// Of shared.cpp, for launches and reports.
void shape_shared_memory(size_t bytes);
void begin_shared_memory();
std::string show_shared_memory(const void* address);  // empty: not there

}  // namespace simt
