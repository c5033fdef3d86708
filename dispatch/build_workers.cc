#include "dispatch/build_workers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "dispatch/buffer.h"
#include "kernels/layout_traits.h"
#include "kernels/slot_walk.h"

namespace tepal {
namespace {

// A filter for each worker; the first one has that of the builder.
class PrivateWorker : public BuildWorker {
 public:
  PrivateWorker(SharedBuild& shared, std::optional<Filter> own)
      : shared_(shared),
        own_(std::move(own)),
        bytes_(own_.has_value() ? FilterAccess::MutableBytes(*own_).data() : shared.bytes) {}

  void Add(const KernelSet& kernels, const uint64_t* hashes, size_t num_keys) override {
    shared_.InsertKernel(kernels)(shared_.shape, hashes, num_keys, bytes_);
  }

  void Finish(const KernelSet& kernels) override {
    if (own_.has_value()) kernels.sets->or_bytes(bytes_, own_->bytes().size(), shared_.bytes);
  }

 private:
  SharedBuild& shared_;
  std::optional<Filter> own_;
  uint8_t* bytes_;
};

// Collects hashes by range of blocks and inserts a bufferful under the lock of the range, with the
// ordinary kernel.
class PartitionWorker : public BuildWorker {
 public:
  static Result<Buffer> AllocateHashes(const SharedBuild& shared) {
    return Buffer::Allocate(sizeof(RangeHashes) * BlockRanges::kMaxRanges,
                            {.allocator = shared.memory.allocator});
  }

  PartitionWorker(SharedBuild& shared, Buffer hashes)
      : shared_(shared),
        memory_(std::move(hashes)),
        hashes_(reinterpret_cast<RangeHashes*>(memory_.data())) {}

  void Add(const KernelSet& kernels, const uint64_t* hashes, size_t num_keys) override {
    const BlockRanges ranges = shared_.ranges;  // in registers: nothing stored below changes it
    for (size_t i = 0; i < num_keys; ++i) {
      const size_t range = ranges.RangeOf(hashes[i]);
      const uint32_t count = counts_[range];
      hashes_[range][count] = hashes[i];
      counts_[range] = count + 1;
      if (count + 1 == kBufferKeys) Flush(kernels, range);
    }
  }

  void Finish(const KernelSet& kernels) override {
    for (size_t range = 0; range < BlockRanges::kMaxRanges; ++range) Flush(kernels, range);
  }

 private:
  // Two threads build 64 MiB 1.7 to 2 times as fast as one; with 256 keys 1.35 to 1.67 times, with
  // 1024 1.5 to 1.7 times (medians of several runs; Emerald Rapids). All buffers take 4 MiB, from
  // where on there are huge pages.
  static constexpr size_t kBufferKeys = 8192;
  // Spreads the lines that are being filled over all sets of L1.
  static constexpr size_t kPaddingKeys = 8;
  using RangeHashes = uint64_t[kBufferKeys + kPaddingKeys];
  static_assert(sizeof(RangeHashes) * BlockRanges::kMaxRanges >= kHugePageThreshold);

  void Flush(const KernelSet& kernels, size_t range) {
    const std::lock_guard lock(shared_.locks[range].mutex);
    shared_.InsertKernel(kernels)(shared_.shape, hashes_[range], counts_[range], shared_.bytes);
    counts_[range] = 0;
  }

  SharedBuild& shared_;
  uint32_t counts_[BlockRanges::kMaxRanges] = {};
  Buffer memory_;
  RangeHashes* hashes_;  // in it
};

// Sets bits that are not yet set. Reading first is worth it: an atomic OR costs as much as 10 to 20
// loads, and takes the line away from the other cores. (Built-ins, because libc++ lacks
// std::atomic_ref before version 19.)
void AtomicOr(uint64_t* word, uint64_t bits) {
  if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bits) == bits) return;
  __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

uint64_t* WordsOf(const SharedBuild& shared) { return reinterpret_cast<uint64_t*>(shared.bytes); }

void PrefetchToWrite(const uint64_t* address) { __builtin_prefetch(address, /*rw=*/1); }

// Bit `position` of a filter, in the 64-bit word in memory that has it. (Not in its byte: g++ 12
// calls libatomic for bytes on RISC-V.)
uint64_t BitInWord(uint64_t position) {
  const uint64_t bit = uint64_t{1} << position % 64;
  return std::endian::native == std::endian::little ? bit : __builtin_bswap64(bit);
}

// One bit at a time.
class AtomicScatteredWorker : public BuildWorker {
 public:
  explicit AtomicScatteredWorker(SharedBuild& shared) : shared_(shared) {}

  void Add(const KernelSet& /*kernels*/, const uint64_t* hashes, size_t num_keys) override {
    for (size_t begin = 0; begin < num_keys; begin += kGroupKeys) {
      AddGroup(hashes + begin, std::min(kGroupKeys, num_keys - begin));
    }
  }

 private:
  // Keys whose lines are asked for together.
  static constexpr size_t kGroupKeys = 16;

  void AddGroup(const uint64_t* hashes, size_t num_keys) {
    uint64_t* const words = WordsOf(shared_);
    uint64_t positions[kGroupKeys * SlotTable::kMaxSlots];
    size_t count = 0;
    for (size_t i = 0; i < num_keys; ++i) {
      ForEachPosition(*shared_.shape.table, hashes[i], [&](uint64_t position) {
        PrefetchToWrite(words + position / 64);
        positions[count++] = position;
      });
    }
    for (size_t i = 0; i < count; ++i) {
      AtomicOr(words + positions[i] / 64, BitInWord(positions[i]));
    }
  }

  SharedBuild& shared_;
};

// The ordinary kernel makes the masks, in a small filter with one block for each key of a group;
// their words are then OR-ed into the shared filter.
class AtomicBlockedWorker : public BuildWorker {
 public:
  explicit AtomicBlockedWorker(SharedBuild& shared)
      : shared_(shared),
        block_words_(RulesOf(shared.filter.geometry().layout).granule_bits / 64),
        group_shape_(shared.shape) {
    group_shape_.num_blocks = kGroupKeys;
    group_shape_.prefetch = Prefetch::kNone;
  }

  void Add(const KernelSet& kernels, const uint64_t* hashes, size_t num_keys) override {
    const InsertFunction insert = shared_.InsertKernel(kernels);
    for (size_t begin = 0; begin < num_keys; begin += kGroupKeys) {
      AddGroup(insert, hashes + begin, std::min(kGroupKeys, num_keys - begin));
    }
  }

 private:
  static constexpr unsigned kLogGroupKeys = 5;
  static constexpr size_t kGroupKeys = size_t{1} << kLogGroupKeys;
  static constexpr size_t kMaxBlockWords = 8;

  uint64_t* BlockOf(uint64_t hash) const {
    const uint64_t block = (hash >> 32) * shared_.shape.num_blocks >> 32;
    return WordsOf(shared_) + block * block_words_;
  }

  void AddGroup(InsertFunction insert, const uint64_t* hashes, size_t num_keys) {
    alignas(64) uint64_t masks[kGroupKeys * kMaxBlockWords] = {};
    uint64_t in_order[kGroupKeys];  // the low half chooses the bits, the high one block i of masks
    for (uint64_t i = 0; i < num_keys; ++i) {
      PrefetchToWrite(BlockOf(hashes[i]));
      in_order[i] = i << (64 - kLogGroupKeys) | (hashes[i] & 0xFFFFFFFF);
    }
    insert(group_shape_, in_order, num_keys, reinterpret_cast<uint8_t*>(masks));
    for (size_t i = 0; i < num_keys; ++i) {
      uint64_t* block = BlockOf(hashes[i]);
      for (size_t word = 0; word < block_words_; ++word) {
        AtomicOr(block + word, masks[i * block_words_ + word]);
      }
    }
  }

  SharedBuild& shared_;
  size_t block_words_;
  FilterShape group_shape_;
};

std::unique_ptr<BuildWorker> MakePrivateWorker(SharedBuild& shared, bool is_first) {
  std::optional<Filter> own;
  if (!is_first) {
    Result<Filter> filter = Filter::Create(shared.filter.geometry(), shared.memory);
    if (!filter.ok()) return nullptr;
    own.emplace(std::move(*filter));
  }
  return std::make_unique<PrivateWorker>(shared, std::move(own));
}

std::unique_ptr<BuildWorker> MakePartitionWorker(SharedBuild& shared) {
  Result<Buffer> hashes = PartitionWorker::AllocateHashes(shared);
  if (!hashes.ok()) return nullptr;
  return std::make_unique<PartitionWorker>(shared, std::move(*hashes));
}

std::unique_ptr<BuildWorker> MakeAtomicWorker(SharedBuild& shared) {
  if (shared.shape.table != nullptr) return std::make_unique<AtomicScatteredWorker>(shared);
  return std::make_unique<AtomicBlockedWorker>(shared);
}

}  // namespace

std::unique_ptr<BuildWorker> MakeWorker(SharedBuild& shared, bool is_first) try {
  switch (shared.strategy) {
    case BuildStrategy::kPartitioned:
      return MakePartitionWorker(shared);
    case BuildStrategy::kAtomic:
      return MakeAtomicWorker(shared);
    default:
      return MakePrivateWorker(shared, is_first);
  }
} catch (const std::exception&) {
  return nullptr;
}

}  // namespace tepal
