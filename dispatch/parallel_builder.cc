#include "tepal/parallel_builder.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "dispatch/active_kernels.h"
#include "dispatch/build_workers.h"
#include "dispatch/hash_chunks.h"
#include "dispatch/key_sources.h"
#include "dispatch/no_memory.h"
#include "dispatch/shape.h"

namespace tepal {
namespace {

// What all private filters but the builder's may take. Beyond that, kPartitioned is faster, or for
// scattered layouts the memory, and the time to join them (about 6 ms), too much: docs/sets.md.
constexpr uint64_t kPrivateBytesBlocked = uint64_t{16} << 20;
constexpr uint64_t kPrivateBytesScattered = uint64_t{64} << 20;

// More would only take memory. At least 2, also where the cores cannot be counted.
size_t MaxWorkers() { return std::max(std::thread::hardware_concurrency(), 2u); }

// Would a filter for each core but the first, which has the builder's, be the best way?
bool PrivateIsBest(const Geometry& geometry) {
  const uint64_t others = MaxWorkers() - 1;
  const uint64_t limit =
      IsScattered(geometry.layout) ? kPrivateBytesScattered : kPrivateBytesBlocked;
  return geometry.num_bytes() <= limit / others;
}

Result<BuildStrategy> Choose(const Geometry& geometry, BuildStrategy wanted) {
  if (wanted == BuildStrategy::kPartitioned && IsScattered(geometry.layout)) {
    return Status::Unsupported("BuildStrategy::kPartitioned needs a layout with blocks; " +
                               std::string(LayoutName(geometry.layout)) +
                               " spreads the bits of a key: use kPrivate, kAtomic or kAuto");
  }
  if (wanted != BuildStrategy::kAuto) return wanted;
  if (PrivateIsBest(geometry)) return BuildStrategy::kPrivate;
  return IsScattered(geometry.layout) ? BuildStrategy::kAtomic : BuildStrategy::kPartitioned;
}

// Idle workers. There is always at least one worker, so that a thread may wait for it, and there
// are no more than cores, however many threads insert.
class WorkerPool {
 public:
  explicit WorkerPool(SharedBuild& shared) : shared_(shared) {}

  bool AddFirst() {
    idle_ = MakeWorker(shared_, /*is_first=*/true);
    num_workers_ = 1;
    return idle_ != nullptr;
  }

  std::unique_ptr<BuildWorker> Take() {
    std::unique_lock lock(mutex_);
    if (idle_ == nullptr && num_workers_ < max_workers_) {
      ++num_workers_;
      lock.unlock();
      if (auto worker = MakeWorker(shared_, /*is_first=*/false)) return worker;
      lock.lock();
      --num_workers_;
    }
    returned_.wait(lock, [this] { return idle_ != nullptr; });
    return PopIdle();
  }

  void Give(std::unique_ptr<BuildWorker> worker) {
    {
      const std::lock_guard lock(mutex_);
      worker->next = std::move(idle_);
      idle_ = std::move(worker);
    }
    returned_.notify_one();
  }

  void Finish(const KernelSet& kernels) {
    const std::lock_guard lock(mutex_);
    while (idle_ != nullptr) PopIdle()->Finish(kernels);
  }

 private:
  std::unique_ptr<BuildWorker> PopIdle() {
    std::unique_ptr<BuildWorker> worker = std::move(idle_);
    idle_ = std::move(worker->next);
    return worker;
  }

  SharedBuild& shared_;
  const size_t max_workers_ = MaxWorkers();
  std::mutex mutex_;
  std::condition_variable returned_;
  std::unique_ptr<BuildWorker> idle_;
  size_t num_workers_ = 0;
};

}  // namespace

struct ParallelBuilder::Impl {
  Impl(Filter empty, BuildStrategy strategy, const MemoryOptions& memory)
      : shared(std::move(empty), strategy, memory) {}

  template <class Source, class Column>
  void Insert(const Column& column, const Validity& validity) {
    const KernelSet& kernels = ActiveKernels();
    const Source source(column, shared.filter.geometry(), *kernels.hash);
    if (source.column.size() == 0) return;
    std::unique_ptr<BuildWorker> worker = pool.Take();
    ForEachHashChunk(kernels, source, validity, [&](const uint64_t* hashes, size_t count) {
      worker->Add(kernels, hashes, count);
    });
    pool.Give(std::move(worker));
  }

  SharedBuild shared;
  WorkerPool pool{shared};
};

Result<ParallelBuilder> ParallelBuilder::Create(const Geometry& geometry,
                                                const MemoryOptions& memory,
                                                BuildStrategy strategy) try {
  Result<Filter> filter = Filter::Create(geometry, memory);
  if (!filter.ok()) return filter.status();
  const Result<BuildStrategy> chosen = Choose(geometry, strategy);
  if (!chosen.ok()) return chosen.status();
  std::unique_ptr<Impl> impl(new (std::nothrow) Impl(std::move(*filter), *chosen, memory));
  if (impl == nullptr || !impl->pool.AddFirst()) {
    return Status::OutOfMemory("no memory for the buffers of a ParallelBuilder");
  }
  return ParallelBuilder(std::move(impl));
} catch (const std::exception&) {
  return NoMemory();
}

ParallelBuilder::ParallelBuilder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ParallelBuilder::ParallelBuilder(ParallelBuilder&&) noexcept = default;
ParallelBuilder& ParallelBuilder::operator=(ParallelBuilder&&) noexcept = default;
ParallelBuilder::~ParallelBuilder() = default;

const Geometry& ParallelBuilder::geometry() const { return impl_->shared.filter.geometry(); }
BuildStrategy ParallelBuilder::strategy() const { return impl_->shared.strategy; }

void ParallelBuilder::Insert(std::span<const uint64_t> keys, Validity validity) {
  impl_->Insert<KeySource<uint64_t>>(keys, validity);
}
void ParallelBuilder::Insert(std::span<const uint32_t> keys, Validity validity) {
  impl_->Insert<KeySource<uint32_t>>(keys, validity);
}
void ParallelBuilder::Insert(const StringColumn& keys, Validity validity) {
  impl_->Insert<StringSource>(keys, validity);
}
void ParallelBuilder::InsertHashes(std::span<const uint64_t> hashes, Validity validity) {
  impl_->Insert<HashSource>(hashes, validity);
}

Result<Filter> ParallelBuilder::Finish() && try {
  if (impl_ == nullptr) return Status::InvalidArgument("the ParallelBuilder has been finished");
  const std::unique_ptr<Impl> impl = std::move(impl_);
  impl->pool.Finish(ActiveKernels());
  return std::move(impl->shared.filter);
} catch (const std::exception&) {
  return NoMemory();
}

}  // namespace tepal
