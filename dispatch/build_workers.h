// The strategies of ParallelBuilder. A worker belongs to one thread at a time; what all workers of
// a builder share is in SharedBuild.
#ifndef TEPAL_DISPATCH_BUILD_WORKERS_H_
#define TEPAL_DISPATCH_BUILD_WORKERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "dispatch/active_kernels.h"
#include "dispatch/filter_access.h"
#include "tepal/filter.h"
#include "tepal/memory.h"
#include "tepal/parallel_builder.h"

namespace tepal {

// Which of at most kMaxRanges ranges of blocks a key belongs to. Ranges are whole blocks, so that
// no two of them share a word.
class BlockRanges {
 public:
  static constexpr size_t kMaxRanges = 64;

  explicit BlockRanges(uint64_t num_blocks) : num_blocks_(num_blocks) {
    while ((num_blocks - 1) >> shift_ >= kMaxRanges) ++shift_;
  }

  size_t RangeOf(uint64_t hash) const {
    return static_cast<size_t>(((hash >> 32) * num_blocks_ >> 32) >> shift_);
  }

 private:
  uint64_t num_blocks_;
  unsigned shift_ = 0;
};

// One per range, on a cache line of its own.
struct alignas(kFilterAlignment) RangeLock {
  std::mutex mutex;
};

struct SharedBuild {
  SharedBuild(Filter empty, BuildStrategy chosen, const MemoryOptions& options)
      : filter(std::move(empty)),
        shape(FilterAccess::Shape(filter)),
        bytes(FilterAccess::MutableBytes(filter).data()),
        strategy(chosen),
        memory(options),
        ranges(shape.table == nullptr ? shape.num_blocks : 1) {}

  InsertFunction InsertKernel(const KernelSet& kernels) const {
    return KernelsFor(kernels, filter.geometry().layout).insert;
  }

  Filter filter;
  const FilterShape& shape;
  uint8_t* bytes;
  BuildStrategy strategy;
  MemoryOptions memory;
  BlockRanges ranges;
  std::array<RangeLock, BlockRanges::kMaxRanges> locks;
};

class BuildWorker {
 public:
  virtual ~BuildWorker() = default;
  virtual void Add(const KernelSet& kernels, const uint64_t* hashes, size_t num_keys) = 0;
  // Brings what still waits into the filter. Only when no other thread inserts any more.
  virtual void Finish(const KernelSet& /*kernels*/) {}

  std::unique_ptr<BuildWorker> next;  // in the list of idle workers
};

// Null if there is no memory. The first worker of a builder may use the filter itself.
std::unique_ptr<BuildWorker> MakeWorker(SharedBuild& shared, bool is_first);

}  // namespace tepal

#endif  // TEPAL_DISPATCH_BUILD_WORKERS_H_
