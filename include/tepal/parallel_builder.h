// One filter, built by many threads.
#ifndef TEPAL_PARALLEL_BUILDER_H_
#define TEPAL_PARALLEL_BUILDER_H_

#include <cstdint>
#include <memory>
#include <span>

#include "tepal/columns.h"
#include "tepal/export.h"
#include "tepal/filter.h"
#include "tepal/geometry.h"
#include "tepal/memory.h"
#include "tepal/status.h"

namespace tepal {

// How threads keep out of each other's way. The bytes of the filter are the same with all of them.
enum class BuildStrategy {
  kAuto,         // the fastest one for the layout and the size
  kPrivate,      // each thread fills a filter of its own, of which there are at most as many as
                 // cores, and Finish joins them: while all but the first take at most 16 MiB
                 // (layouts with blocks) or 64 MiB
  kPartitioned,  // keys are sorted into ranges of blocks, each with a lock: large blocked layouts;
                 // 4 MiB a thread
  kAtomic,       // every bit is set by an atomic OR: the other large ones; several times slower a
                 // key, so that it takes that many threads to gain anything
};

// Any number of threads may call Insert at once. When all of them have returned, Finish gives the
// filter; nobody can probe one that is half built.
class TEPAL_API ParallelBuilder {
 public:
  // Fails as Filter::Create does, and if the strategy is kPartitioned for a layout that spreads the
  // bits of a key over the whole filter.
  static Result<ParallelBuilder> Create(const Geometry& geometry, const MemoryOptions& memory = {},
                                        BuildStrategy strategy = BuildStrategy::kAuto);

  ParallelBuilder(ParallelBuilder&&) noexcept;
  ParallelBuilder& operator=(ParallelBuilder&&) noexcept;
  ~ParallelBuilder();

  const Geometry& geometry() const;
  // The strategy in use, never kAuto.
  BuildStrategy strategy() const;

  // As Filter::Insert. Large columns are best: each call costs about as much as 100 keys. A thread
  // for whose buffers there is no memory waits for those of another.
  void Insert(std::span<const uint64_t> keys, Validity validity = {});
  void Insert(std::span<const uint32_t> keys, Validity validity = {});
  void Insert(const StringColumn& keys, Validity validity = {});
  void InsertHashes(std::span<const uint64_t> hashes, Validity validity = {});

  // The filter with all keys: byte for byte what a Filter would be after the same Inserts. The
  // builder is used up; a second Finish is an error.
  Result<Filter> Finish() &&;

 private:
  struct Impl;
  explicit ParallelBuilder(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tepal

#endif  // TEPAL_PARALLEL_BUILDER_H_
