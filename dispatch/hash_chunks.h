// A column chunk by chunk, and the hashes of its rows that are not null.
#ifndef TEPAL_DISPATCH_HASH_CHUNKS_H_
#define TEPAL_DISPATCH_HASH_CHUNKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dispatch/active_kernels.h"
#include "dispatch/bitmap.h"
#include "dispatch/key_sources.h"
#include "tepal/columns.h"

namespace tepal {

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
inline size_t KeepValid(const KernelSet& kernels, const Validity& validity, size_t begin,
                        size_t count, const uint64_t* hashes, uint64_t* buffer) {
  ChunkBitmap valid;
  uint32_t rows[kChunkRows];
  CopyBits(validity.bits, validity.offset + begin, count, valid);
  const size_t num_valid = kernels.result->select(valid, count, 0, rows);
  for (size_t i = 0; i < num_valid; ++i) buffer[i] = hashes[rows[i]];
  return num_valid;
}

// Calls visit(hashes, count) for the valid rows of each chunk: what an insert needs.
template <class Source, class Visit>
void ForEachHashChunk(const KernelSet& kernels, const Source& source, const Validity& validity,
                      const Visit& visit) {
  ForEachChunk(source.column.size(), ChunkRows<Source>(validity), [&](size_t begin, size_t count) {
    uint64_t hash_buffer[kChunkRows];
    const uint64_t* hashes = source.Rows(begin, count, hash_buffer);
    if (validity.bits != nullptr) {
      count = KeepValid(kernels, validity, begin, count, hashes, hash_buffer);
      hashes = hash_buffer;
    }
    visit(hashes, count);
  });
}

}  // namespace tepal

#endif  // TEPAL_DISPATCH_HASH_CHUNKS_H_
