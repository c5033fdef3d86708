#include "tepal/filter.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "dispatch/active_kernels.h"
#include "dispatch/bitmap.h"
#include "dispatch/buffer.h"
#include "dispatch/filter_access.h"
#include "dispatch/hash_chunks.h"
#include "dispatch/key_sources.h"
#include "dispatch/no_memory.h"
#include "dispatch/shape.h"
#include "tepal/targets.h"

namespace tepal {
namespace {

void AndSelectedValidity(const Validity& validity, const uint32_t* selection, size_t count,
                         uint8_t* bitmap) {
  for (size_t i = 0; i < count; ++i) {
    if (GetBit(validity.bits, validity.offset + selection[i])) continue;
    bitmap[i / 8] = static_cast<uint8_t>(bitmap[i / 8] & ~(1u << (i % 8)));
  }
}

// One column and one filter, on the target that is in force when the call begins.
template <class Source>
class Batch {
 public:
  template <class Column>
  Batch(const FilterCore& core, const Column& column, const Validity& validity)
      : kernels_(ActiveKernels()),
        layout_kernels_(KernelsFor(kernels_, core.geometry.layout)),
        shape_(core.owned_shape.shape),
        source_(column, core.geometry, *kernels_.hash),
        validity_(validity) {}

  void Insert(uint8_t* filter) const {
    ForEachHashChunk(kernels_, source_, validity_, [&](const uint64_t* hashes, size_t count) {
      layout_kernels_.insert(shape_, hashes, count, filter);
    });
  }

  size_t Probe(const uint8_t* filter, uint8_t* bitmap) const {
    size_t matches = 0;
    ForEachChunk(num_rows(), ChunkRows<Source>(validity_), [&](size_t begin, size_t count) {
      matches += ProbeChunk(filter, begin, count, bitmap + begin / 8);
    });
    return matches;
  }

  size_t Count(const uint8_t* filter) const {
    size_t matches = 0;
    ForEachChunk(num_rows(), kChunkRows, [&](size_t begin, size_t count) {
      ChunkBitmap bitmap;
      matches += ProbeChunk(filter, begin, count, bitmap);
    });
    return matches;
  }

  size_t Select(const uint8_t* filter, uint32_t* rows) const {
    size_t matches = 0;
    ForEachChunk(num_rows(), kChunkRows, [&](size_t begin, size_t count) {
      ChunkBitmap bitmap;
      ProbeChunk(filter, begin, count, bitmap);
      matches +=
          kernels_.result->select(bitmap, count, static_cast<uint32_t>(begin), rows + matches);
    });
    return matches;
  }

  size_t SelectFrom(const uint8_t* filter, std::span<const uint32_t> selection,
                    uint32_t* rows) const {
    size_t matches = 0;
    ForEachChunk(selection.size(), kChunkRows, [&](size_t begin, size_t count) {
      ChunkBitmap bitmap;
      uint64_t hash_buffer[kChunkRows];
      const uint32_t* chunk = selection.data() + begin;
      const uint64_t* hashes = source_.Gather(chunk, count, hash_buffer);
      layout_kernels_.probe(shape_, filter, hashes, count, bitmap);
      if (validity_.bits != nullptr) AndSelectedValidity(validity_, chunk, count, bitmap);
      matches += kernels_.result->select_from(bitmap, count, chunk, rows + matches);
    });
    return matches;
  }

 private:
  size_t num_rows() const { return source_.column.size(); }

  // The bitmap of rows begin .. begin + count; returns the number of matches.
  size_t ProbeChunk(const uint8_t* filter, size_t begin, size_t count, uint8_t* bitmap) const {
    uint64_t hash_buffer[kChunkRows];
    const uint64_t* hashes = source_.Rows(begin, count, hash_buffer);
    const size_t matches = layout_kernels_.probe(shape_, filter, hashes, count, bitmap);
    if (validity_.bits == nullptr) return matches;
    AndBits(validity_.bits, validity_.offset + begin, count, bitmap);
    return kernels_.result->count(bitmap, count);
  }

  const KernelSet& kernels_;
  const LayoutKernels& layout_kernels_;
  const FilterShape& shape_;
  const Source source_;
  const Validity validity_;
};

Result<std::shared_ptr<const FilterCore>> MakeCore(const Geometry& geometry) {
  if (Status status = CheckEnvironment(); !status.ok()) return status;
  if (Status status = geometry.Validate(); !status.ok()) return status;
  Result<OwnedShape> shape = MakeShape(geometry);
  if (!shape.ok()) return shape.status();
  return std::shared_ptr<const FilterCore>(
      std::make_shared<FilterCore>(FilterCore{geometry, std::move(*shape)}));
}

Status CheckLength(const Geometry& geometry, std::span<const uint8_t> bytes) {
  if (bytes.size() == geometry.num_bytes()) return Status::Ok();
  return Status::InvalidArgument("there are " + std::to_string(bytes.size()) +
                                 " bytes, but a filter of " + std::to_string(geometry.num_bits) +
                                 " bits has " + std::to_string(geometry.num_bytes()));
}

Status CheckAlignment(std::span<const uint8_t> bytes) {
  const size_t excess = reinterpret_cast<uintptr_t>(bytes.data()) % kFilterAlignment;
  if (excess == 0) return Status::Ok();
  return Status::InvalidArgument(
      "the bytes start " + std::to_string(excess) + " bytes behind a multiple of " +
      std::to_string(kFilterAlignment) +
      ", but must start at one; a copy (Filter::FromBytes, Deserialize) always does");
}

}  // namespace

ProbeCalls::ProbeCalls(std::shared_ptr<const FilterCore> core, const uint8_t* bytes)
    : core_(std::move(core)), bytes_(bytes) {}

const Geometry& ProbeCalls::geometry() const { return core_->geometry; }

std::span<const uint8_t> ProbeCalls::bytes() const {
  return {bytes_, static_cast<size_t>(geometry().num_bytes())};
}

void ProbeCalls::PrefetchHashes(std::span<const uint64_t> hashes) const {
  const FilterShape& shape = core_->owned_shape.shape;
  // A batch of 64 from L3 takes 1.7 ns a key by itself, 2.3 asked for in advance; at 16 MiB 4.9 and
  // 3.0 (split256, AVX2, Zen 4).
  const bool far = shape.prefetch == Prefetch::kFar || shape.prefetch == Prefetch::kPaced;
  const RequestFunction request = KernelsFor(ActiveKernels(), geometry().layout).request;
  if (far && request != nullptr) request(shape, bytes_, hashes.data(), hashes.size());
}

bool ProbeCalls::MayContainHash(uint64_t hash) const {
  return CountHashes(std::span<const uint64_t>(&hash, 1)) == 1;
}

bool ProbeCalls::MayContain(uint64_t key) const {
  return Count(std::span<const uint64_t>(&key, 1)) == 1;
}

bool ProbeCalls::MayContain(uint32_t key) const {
  return Count(std::span<const uint32_t>(&key, 1)) == 1;
}

bool ProbeCalls::MayContain(std::string_view key) const {
  return MayContainHash(HashString(geometry().hash, geometry().seed, key));
}

FilterView::FilterView(std::shared_ptr<const FilterCore> core, const uint8_t* bytes)
    : ProbeCalls(std::move(core), bytes) {}

Result<FilterView> FilterView::Over(const Geometry& geometry, std::span<const uint8_t> bytes) try {
  Result<std::shared_ptr<const FilterCore>> core = MakeCore(geometry);
  if (!core.ok()) return core.status();
  if (Status status = CheckLength(geometry, bytes); !status.ok()) return status;
  if (Status status = CheckAlignment(bytes); !status.ok()) return status;
  return FilterView(std::move(*core), bytes.data());
} catch (const std::exception&) {
  return NoMemory();
}

Result<Filter> Filter::Create(const Geometry& geometry, const MemoryOptions& memory) try {
  Result<std::shared_ptr<const FilterCore>> core = MakeCore(geometry);
  if (!core.ok()) return core.status();
  Result<Buffer> allocated = Buffer::Allocate(geometry.num_bytes(), memory);
  if (!allocated.ok()) return allocated.status();
  std::unique_ptr<Buffer> buffer(new (std::nothrow) Buffer(std::move(*allocated)));
  if (buffer == nullptr) return Status::OutOfMemory("no memory for a Filter object");
  return Filter(std::move(*core), std::move(buffer));
} catch (const std::exception&) {
  return NoMemory();
}

Result<Filter> Filter::FromBytes(const Geometry& geometry, std::span<const uint8_t> bytes,
                                 const MemoryOptions& memory) try {
  if (Status status = geometry.Validate(); !status.ok()) return status;
  if (Status status = CheckLength(geometry, bytes); !status.ok()) return status;
  Result<Filter> filter = Create(geometry, memory);
  if (filter.ok()) std::memcpy(filter->buffer_->data(), bytes.data(), bytes.size());
  return filter;
} catch (const std::exception&) {
  return NoMemory();
}

Filter::Filter(std::shared_ptr<const FilterCore> core, std::unique_ptr<Buffer> buffer)
    : ProbeCalls(std::move(core), buffer->data()), buffer_(std::move(buffer)) {}
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;
Filter::~Filter() = default;

FilterView Filter::View() const { return FilterView(core_, bytes_); }

std::span<uint8_t> FilterAccess::MutableBytes(Filter& filter) {
  return {filter.buffer_->data(), filter.buffer_->size()};
}

const FilterShape& FilterAccess::Shape(const ProbeCalls& filter) {
  return filter.core_->owned_shape.shape;
}

// The four kinds of column differ only in their source of hashes.
#define TEPAL_DEFINE_COLUMN_CALLS(Suffix, Column, Source)                                     \
  void Filter::Insert##Suffix(Column column, Validity validity) {                             \
    Batch<Source>(*core_, column, validity).Insert(buffer_->data());                          \
  }                                                                                           \
  size_t ProbeCalls::Probe##Suffix(Column column, uint8_t* bitmap, Validity validity) const { \
    return Batch<Source>(*core_, column, validity).Probe(bytes_, bitmap);                     \
  }                                                                                           \
  size_t ProbeCalls::Select##Suffix(Column column, uint32_t* rows, Validity validity) const { \
    return Batch<Source>(*core_, column, validity).Select(bytes_, rows);                      \
  }                                                                                           \
  size_t ProbeCalls::Select##Suffix(Column column, std::span<const uint32_t> selection,       \
                                    uint32_t* rows, Validity validity) const {                \
    return Batch<Source>(*core_, column, validity).SelectFrom(bytes_, selection, rows);       \
  }                                                                                           \
  size_t ProbeCalls::Count##Suffix(Column column, Validity validity) const {                  \
    return Batch<Source>(*core_, column, validity).Count(bytes_);                             \
  }

TEPAL_DEFINE_COLUMN_CALLS(, std::span<const uint64_t>, KeySource<uint64_t>)
TEPAL_DEFINE_COLUMN_CALLS(, std::span<const uint32_t>, KeySource<uint32_t>)
TEPAL_DEFINE_COLUMN_CALLS(, const StringColumn&, StringSource)
TEPAL_DEFINE_COLUMN_CALLS(Hashes, std::span<const uint64_t>, HashSource)

#undef TEPAL_DEFINE_COLUMN_CALLS

}  // namespace tepal
