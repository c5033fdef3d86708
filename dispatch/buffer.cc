#include "dispatch/buffer.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tepal {
namespace {

// Small filters, and all filters where there is no mmap.
Allocator HeapAllocator() {
  return {
      .allocate = [](size_t bytes, size_t alignment, void*) -> void* {
        return ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
      },
      .deallocate = [](void* memory, size_t,
                       void*) { ::operator delete (memory, std::align_val_t{kFilterAlignment}); }};
}

#if defined(__linux__)

constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Whole huge pages, zeroed by the kernel when first touched. Maps more than needed and gives back
// what lies before and behind the aligned part.
void* MapPages(size_t bytes, HugePages huge_pages) {
  const size_t size = RoundUp(bytes, kHugePageBytes);
  // A filter that stays nearly empty may be larger than memory; any other should fail here rather
  // than when filled.
  const int flags =
      MAP_PRIVATE | MAP_ANONYMOUS | (huge_pages == HugePages::kNever ? MAP_NORESERVE : 0);
  void* mapped = mmap(nullptr, size + kHugePageBytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<uint8_t*>(mapped);
  auto* aligned =
      reinterpret_cast<uint8_t*>(RoundUp(reinterpret_cast<uintptr_t>(begin), kHugePageBytes));
  const size_t before = static_cast<size_t>(aligned - begin);
  if (before != 0) munmap(begin, before);
  if (before != kHugePageBytes) munmap(aligned + size, kHugePageBytes - before);
  // Only advice: without huge pages the filter works, more slowly.
  madvise(aligned, size, huge_pages == HugePages::kAdvise ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return aligned;
}

Allocator PageAllocator(HugePages huge_pages) {
  return {.allocate =
              huge_pages == HugePages::kAdvise
                  ? [](size_t bytes, size_t, void*) { return MapPages(bytes, HugePages::kAdvise); }
                  : [](size_t bytes, size_t, void*) { return MapPages(bytes, HugePages::kNever); },
          .deallocate = [](void* memory, size_t bytes,
                           void*) { munmap(memory, RoundUp(bytes, kHugePageBytes)); }};
}

#endif  // __linux__

// An allocator, and whether its memory comes zeroed.
std::pair<Allocator, bool> ChooseAllocator(size_t bytes, const MemoryOptions& options) {
  if (options.allocator.allocate != nullptr) return {options.allocator, false};
#if defined(__linux__)
  if (bytes >= kHugePageThreshold) return {PageAllocator(options.huge_pages), true};
#endif
  static_cast<void>(bytes);
  return {HeapAllocator(), false};
}

}  // namespace

Result<Buffer> Buffer::Allocate(uint64_t num_bytes, const MemoryOptions& options) {
  if ((options.allocator.allocate == nullptr) != (options.allocator.deallocate == nullptr)) {
    return Status::InvalidArgument("an Allocator needs both functions, or neither");
  }
  const auto bytes = static_cast<size_t>(num_bytes);
  const auto [allocator, zeroed] = ChooseAllocator(bytes, options);
  void* memory = nullptr;
  if (bytes == num_bytes) {  // on a 32-bit machine it may not be
    memory = allocator.allocate(bytes, kFilterAlignment, allocator.context);
  }
  if (memory == nullptr) {
    return Status::OutOfMemory("no memory for a filter of " + std::to_string(num_bytes) + " bytes");
  }
  Buffer buffer;
  buffer.data_ = static_cast<uint8_t*>(memory);
  buffer.bytes_ = bytes;
  buffer.allocator_ = allocator;
  if (reinterpret_cast<uintptr_t>(memory) % kFilterAlignment != 0) {
    return Status::InvalidArgument("the Allocator returned memory that is not aligned to " +
                                   std::to_string(kFilterAlignment) + " bytes");
  }
  if (!zeroed) std::memset(memory, 0, bytes);
  return buffer;
}

void Buffer::Swap(Buffer& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(allocator_, other.allocator_);
}

}  // namespace tepal
