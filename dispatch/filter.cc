#include "tepal/filter.h"

#include <algorithm>
#include <new>
#include <utility>

#include "dispatch/active_kernels.h"
#include "dispatch/bitmap.h"
#include "dispatch/buffer.h"
#include "dispatch/key_sources.h"
#include "dispatch/shape.h"
#include "tepal/targets.h"

namespace tepal {
namespace {

// A bitmap of one chunk.
using ChunkBitmap = uint8_t[kChunkRows / 8];

// Calls visit(begin, count) for each chunk of `num_rows` rows.
template <class Visit>
void ForEachChunk(size_t num_rows, size_t chunk_rows, const Visit& visit) {
  for (size_t begin = 0; begin < num_rows; begin += chunk_rows) {
    visit(begin, std::min(chunk_rows, num_rows - begin));
  }
}

// A chunk for which nothing must be buffered may be longer: each one starts the kernels'
// prefetching anew.
template <class Source>
size_t ChunkRows(const Validity& validity) {
  constexpr size_t kUnbufferedRows = size_t{1} << 16;
  return Source::kBuffered || validity.bits != nullptr ? kChunkRows : kUnbufferedRows;
}

// Moves the hashes of valid rows to the front of `buffer`; returns how many.
size_t KeepValid(const KernelSet& kernels, const Validity& validity, size_t begin, size_t count,
                 const uint64_t* hashes, uint64_t* buffer) {
  ChunkBitmap valid;
  uint32_t rows[kChunkRows];
  CopyBits(validity.bits, validity.offset + begin, count, valid);
  const size_t num_valid = kernels.result->select(valid, count, 0, rows);
  for (size_t i = 0; i < num_valid; ++i) buffer[i] = hashes[rows[i]];
  return num_valid;
}

}  // namespace

struct Filter::Impl {
  Geometry geometry;
  OwnedShape owned_shape;
  Buffer buffer;

  template <class Source>
  void Insert(const KernelSet& kernels, const Source& source, const Validity& validity) {
    const InsertFunction insert = KernelsFor(kernels, geometry.layout).insert;
    ForEachChunk(source.column.size(), ChunkRows<Source>(validity),
                 [&](size_t begin, size_t count) {
                   uint64_t hash_buffer[kChunkRows];
                   const uint64_t* hashes = source.Rows(begin, count, hash_buffer);
                   if (validity.bits != nullptr) {
                     count = KeepValid(kernels, validity, begin, count, hashes, hash_buffer);
                     hashes = hash_buffer;
                   }
                   insert(owned_shape.shape, hashes, count, buffer.data());
                 });
  }

  // The bitmap of one chunk of rows.
  template <class Source>
  void ProbeChunk(const KernelSet& kernels, const Source& source, const Validity& validity,
                  size_t begin, size_t count, uint8_t* bitmap) const {
    uint64_t hash_buffer[kChunkRows];
    const uint64_t* hashes = source.Rows(begin, count, hash_buffer);
    KernelsFor(kernels, geometry.layout)
        .probe(owned_shape.shape, buffer.data(), hashes, count, bitmap);
    if (validity.bits != nullptr) AndBits(validity.bits, validity.offset + begin, count, bitmap);
  }

  template <class Source>
  size_t Probe(const KernelSet& kernels, const Source& source, const Validity& validity,
               uint8_t* bitmap) const {
    size_t matches = 0;
    ForEachChunk(source.column.size(), ChunkRows<Source>(validity),
                 [&](size_t begin, size_t count) {
                   ProbeChunk(kernels, source, validity, begin, count, bitmap + begin / 8);
                   matches += kernels.result->count(bitmap + begin / 8, count);
                 });
    return matches;
  }

  template <class Source>
  size_t Count(const KernelSet& kernels, const Source& source, const Validity& validity) const {
    size_t matches = 0;
    ForEachChunk(source.column.size(), kChunkRows, [&](size_t begin, size_t count) {
      ChunkBitmap bitmap;
      ProbeChunk(kernels, source, validity, begin, count, bitmap);
      matches += kernels.result->count(bitmap, count);
    });
    return matches;
  }

  template <class Source>
  size_t Select(const KernelSet& kernels, const Source& source, const Validity& validity,
                uint32_t* rows) const {
    size_t matches = 0;
    ForEachChunk(source.column.size(), kChunkRows, [&](size_t begin, size_t count) {
      ChunkBitmap bitmap;
      ProbeChunk(kernels, source, validity, begin, count, bitmap);
      matches +=
          kernels.result->select(bitmap, count, static_cast<uint32_t>(begin), rows + matches);
    });
    return matches;
  }

  template <class Source>
  size_t SelectFrom(const KernelSet& kernels, const Source& source,
                    std::span<const uint32_t> selection, const Validity& validity,
                    uint32_t* rows) const {
    size_t matches = 0;
    ForEachChunk(selection.size(), kChunkRows, [&](size_t begin, size_t count) {
      ChunkBitmap bitmap;
      uint64_t hash_buffer[kChunkRows];
      const uint32_t* chunk = selection.data() + begin;
      const uint64_t* hashes = source.Gather(chunk, count, hash_buffer);
      KernelsFor(kernels, geometry.layout)
          .probe(owned_shape.shape, buffer.data(), hashes, count, bitmap);
      if (validity.bits != nullptr) AndSelectedValidity(validity, chunk, count, bitmap);
      matches += kernels.result->select_from(bitmap, count, chunk, rows + matches);
    });
    return matches;
  }

  static void AndSelectedValidity(const Validity& validity, const uint32_t* chunk, size_t count,
                                  uint8_t* bitmap) {
    for (size_t i = 0; i < count; ++i) {
      if (GetBit(validity.bits, validity.offset + chunk[i])) continue;
      bitmap[i / 8] = static_cast<uint8_t>(bitmap[i / 8] & ~(1u << (i % 8)));
    }
  }
};

Result<Filter> Filter::Create(const Geometry& geometry, const MemoryOptions& memory) {
  if (Status status = CheckEnvironment(); !status.ok()) return status;
  if (Status status = geometry.Validate(); !status.ok()) return status;
  Result<OwnedShape> shape = MakeShape(geometry);
  if (!shape.ok()) return shape.status();
  Result<Buffer> buffer = Buffer::Allocate(geometry.num_bytes(), memory);
  if (!buffer.ok()) return buffer.status();
  std::unique_ptr<Impl> impl(new (std::nothrow)
                                 Impl{geometry, std::move(*shape), std::move(*buffer)});
  if (impl == nullptr) return Status::OutOfMemory("no memory for a Filter object");
  return Filter(std::move(impl));
}

Filter::Filter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;
Filter::~Filter() = default;

const Geometry& Filter::geometry() const { return impl_->geometry; }

std::span<const uint8_t> Filter::bytes() const {
  return {impl_->buffer.data(), impl_->buffer.size()};
}

bool Filter::MayContainHash(uint64_t hash) const {
  return CountHashes(std::span<const uint64_t>(&hash, 1)) == 1;
}

bool Filter::MayContain(uint64_t key) const {
  return Count(std::span<const uint64_t>(&key, 1)) == 1;
}

bool Filter::MayContain(uint32_t key) const {
  return Count(std::span<const uint32_t>(&key, 1)) == 1;
}

bool Filter::MayContain(std::string_view key) const {
  return MayContainHash(HashString(impl_->geometry.hash, impl_->geometry.seed, key));
}

// The four kinds of column differ only in their source of hashes.
#define TEPAL_DEFINE_COLUMN_CALLS(Suffix, Column, make_source)                            \
  void Filter::Insert##Suffix(Column column, Validity validity) {                         \
    const KernelSet& kernels = ActiveKernels();                                           \
    impl_->Insert(kernels, make_source, validity);                                        \
  }                                                                                       \
  size_t Filter::Probe##Suffix(Column column, uint8_t* bitmap, Validity validity) const { \
    const KernelSet& kernels = ActiveKernels();                                           \
    return impl_->Probe(kernels, make_source, validity, bitmap);                          \
  }                                                                                       \
  size_t Filter::Select##Suffix(Column column, uint32_t* rows, Validity validity) const { \
    const KernelSet& kernels = ActiveKernels();                                           \
    return impl_->Select(kernels, make_source, validity, rows);                           \
  }                                                                                       \
  size_t Filter::Select##Suffix(Column column, std::span<const uint32_t> selection,       \
                                uint32_t* rows, Validity validity) const {                \
    const KernelSet& kernels = ActiveKernels();                                           \
    return impl_->SelectFrom(kernels, make_source, selection, validity, rows);            \
  }                                                                                       \
  size_t Filter::Count##Suffix(Column column, Validity validity) const {                  \
    const KernelSet& kernels = ActiveKernels();                                           \
    return impl_->Count(kernels, make_source, validity);                                  \
  }

TEPAL_DEFINE_COLUMN_CALLS(, std::span<const uint64_t>,
                          KeySource(column, impl_->geometry, *kernels.hash))
TEPAL_DEFINE_COLUMN_CALLS(, std::span<const uint32_t>,
                          KeySource(column, impl_->geometry, *kernels.hash))
TEPAL_DEFINE_COLUMN_CALLS(, const StringColumn&, StringSource(column, impl_->geometry))
TEPAL_DEFINE_COLUMN_CALLS(Hashes, std::span<const uint64_t>, HashSource{column})

#undef TEPAL_DEFINE_COLUMN_CALLS

}  // namespace tepal
