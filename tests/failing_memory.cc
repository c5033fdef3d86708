#include "tests/failing_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

// Counts what operator new gives out, and lets it fail.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
std::atomic<int64_t> g_num_live{0};
thread_local int64_t g_fail_after = kNever;  // allocations that still succeed
thread_local bool g_fail_once = false;
thread_local bool g_has_failed = false;

void* Allocate(size_t bytes, size_t alignment) {
  if (g_fail_after == 0) {
    g_has_failed = true;
    if (g_fail_once) g_fail_after = kNever;
    return nullptr;
  }
  if (g_fail_after != kNever) --g_fail_after;
  ++g_num_live;
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}

void* AllocateOrThrow(size_t bytes, size_t alignment) {
  void* memory = Allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void Free(void* memory) {
  if (memory != nullptr) --g_num_live;
  std::free(memory);
}

constexpr size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
constexpr size_t ToSize(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace

void* operator new(size_t n) { return AllocateOrThrow(n, kDefault); }
void* operator new(size_t n, std::align_val_t a) { return AllocateOrThrow(n, ToSize(a)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return Allocate(n, kDefault); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return Allocate(n, ToSize(a));
}
void* operator new[](size_t n) { return AllocateOrThrow(n, kDefault); }
void operator delete(void* p) noexcept { Free(p); }
void operator delete(void* p, size_t) noexcept { Free(p); }
void operator delete(void* p, std::align_val_t) noexcept { Free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { Free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { Free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { Free(p); }
void operator delete[](void* p) noexcept { Free(p); }
void operator delete[](void* p, size_t) noexcept { Free(p); }

namespace tepal::testing {

FailingMemory::FailingMemory(int64_t num_good, bool once) {
  g_has_failed = false;
  g_fail_once = once;
  g_fail_after = num_good;
}

FailingMemory::~FailingMemory() { g_fail_after = kNever; }

bool FailingMemory::HasFailed() { return g_has_failed; }

int64_t NumLiveAllocations() { return g_num_live; }

const MemoryOptions kCountedMemory = {
    .allocator = {.allocate = [](size_t bytes, size_t alignment,
                                 void*) { return Allocate(bytes, alignment); },
                  .deallocate = [](void* memory, size_t, void*) { Free(memory); }}};

}  // namespace tepal::testing
