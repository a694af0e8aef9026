#include "fibers.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Switching is what a barrier costs, so it is written by hand where we can: save the registers that a function must
// preserve, change stacks, restore. swapcontext() does the same with two system calls more.
extern "C" void simt_switch(void** save,
                            void* next);  // leaves this stack, notes in *save how to come back, goes to next

#if defined(__x86_64__)

asm(R"(
.text
.globl simt_switch
.type simt_switch, @function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx  # and a jump; a return would be predicted to go to the other stack's caller
  jmp *%rcx
.size simt_switch, .-simt_switch
)");

static void* prepare_stack(char*, char* top, void (*entry)()) {
  void** frame = reinterpret_cast<void**>(top - 64);
  std::memset(frame, 0, 64);                  // six registers, and no caller of entry's
  frame[6] = reinterpret_cast<void*>(entry);  // where the switch goes
  return frame;
}

#elif defined(__aarch64__)

asm(R"(
.text
.globl simt_switch
.type simt_switch, %function
simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size simt_switch, .-simt_switch
)");

static void* prepare_stack(char*, char* top, void (*entry)()) {
  void** frame = reinterpret_cast<void**>(top - 160);
  std::memset(frame, 0, 160);
  frame[11] = reinterpret_cast<void*>(entry);  // x30, where the switch goes
  return frame;
}

#else
#include <ucontext.h>

void simt_switch(void** save, void* next) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(next));
}
static void* prepare_stack(char* bottom, char* top, void (*entry)()) {
  auto* context = reinterpret_cast<ucontext_t*>(top - (sizeof(ucontext_t) + 63) / 64 * 64);
  getcontext(context);
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = size_t(reinterpret_cast<char*>(context) - bottom);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

#endif

namespace simt {
namespace {

constexpr size_t kStackBytes = 128 << 10, kGuardBytes = 64 << 10;

void* outside = nullptr;  // how to come back to who resumed
Fiber* current = nullptr;

// AddressSanitizer must hear of every change of stacks. `shadow` keeps what it knows of the one that is left; without
// one, that stack is at its end.
struct Announced {
#if defined(__SANITIZE_ADDRESS__)
  static inline const void* outer_bottom = nullptr;
  static inline size_t outer_bytes = 0;
  static void forget(char* stack) { __asan_unpoison_memory_region(stack, kStackBytes); }
  static void leave_for(const void* bottom, size_t bytes, void** shadow) {
    __sanitizer_start_switch_fiber(shadow, bottom, bytes);
  }
  static void leave_for_outer(void** shadow) { leave_for(outer_bottom, outer_bytes, shadow); }
  static void arrive(void* shadow) { __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr); }
  static void arrive_from_outer(void* shadow) { __sanitizer_finish_switch_fiber(shadow, &outer_bottom, &outer_bytes); }
#else
  static void forget(char*) {}
  static void leave_for(const void*, size_t, void**) {}
  static void leave_for_outer(void**) {}
  static void arrive(void*) {}
  static void arrive_from_outer(void*) {}
#endif
};

}  // namespace

Fiber::Fiber() {
  // Tops of stacks at the same offset in their pages would all compete for the same few lines of the first cache.
  static size_t made = 0;
  colour_ = made++ % 16 * 192;
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE)) {
    std::perror("simt: no memory for a fiber's stack");
    std::abort();
  }
  stack_ = static_cast<char*>(memory) + kGuardBytes;
}

Fiber::~Fiber() { munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes); }

bool Fiber::guards(const void* address) const {
  auto at = reinterpret_cast<uintptr_t>(address), stack = reinterpret_cast<uintptr_t>(stack_);
  return at < stack && stack - at <= kGuardBytes;
}

void Fiber::start(void (*function)()) {
  function_ = function;
  Announced::forget(stack_);
  resume_point_ = prepare_stack(stack_, stack_ + kStackBytes - colour_, run);
}

void Fiber::resume() {
  void* shadow = nullptr;
  current = this;
  Announced::leave_for(stack_, kStackBytes, &shadow);
  simt_switch(&outside, resume_point_);
  Announced::arrive(shadow);
}

void Fiber::yield() {
  void* shadow = nullptr;
  Announced::leave_for_outer(&shadow);
  simt_switch(&current->resume_point_, outside);
  Announced::arrive_from_outer(shadow);
}

void Fiber::run() {
  Announced::arrive_from_outer(nullptr);
  current->function_();
  Announced::leave_for_outer(nullptr);
  simt_switch(&current->resume_point_, outside);
  std::abort();  // nobody resumes a fiber whose function has returned
}

}  // namespace simt
