// Where filters get their memory from.
#ifndef TEPAL_MEMORY_H_
#define TEPAL_MEMORY_H_

#include <cstddef>

namespace tepal {

// Filters start on a cache line.
inline constexpr size_t kFilterAlignment = 64;

// An engine's own allocator. `allocate` returns memory at a multiple of `alignment`, or null; it
// need not be zeroed. Calls may come from any thread that creates or destroys a filter.
struct Allocator {
  void* (*allocate)(size_t bytes, size_t alignment, void* context) = nullptr;
  void (*deallocate)(void* memory, size_t bytes, void* context) = nullptr;
  void* context = nullptr;
};

enum class HugePages {
  kAdvise,  // filters of at least kHugePageThreshold bytes ask the kernel for 2 MiB pages: 1.15x
            // to 1.45x in memory
  kNever,   // for large filters that stay nearly empty
};

inline constexpr size_t kHugePageThreshold = size_t{4} << 20;

struct MemoryOptions {
  HugePages huge_pages = HugePages::kAdvise;
  Allocator allocator =
      {};  // both functions set: used instead of the system's memory, without huge pages
};

}  // namespace tepal

#endif  // TEPAL_MEMORY_H_
