// Bloom filters of Apache Parquet files: the bytes at a column chunk's bloom_filter_offset, and the
// hashes of values of Parquet's physical types. docs/parquet.md is the guide.
//
// Such a filter is a Filter of layout kSplit256 with XXH64 and seed 0; everything else that Filter
// and FilterView can do works with it.
#ifndef TEPAL_PARQUET_H_
#define TEPAL_PARQUET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tepal/columns.h"
#include "tepal/export.h"
#include "tepal/filter.h"
#include "tepal/geometry.h"
#include "tepal/memory.h"
#include "tepal/status.h"

namespace tepal::parquet {

// ---- Sizes

// The bitset is a whole number of blocks, and its size an int32.
inline constexpr size_t kBlockBytes = 32;
inline constexpr size_t kMaxBitsetBytes = (size_t{1} << 31) - kBlockBytes;

enum class BlockCount {
  kPowerOfTwo,  // read by everybody
  kAny,         // up to half the size; allowed, but not every engine reads it (docs/parquet.md)
};

// The geometry of a bitset of this many bytes: a multiple of kBlockBytes, at most kMaxBitsetBytes.
TEPAL_API Result<Geometry> GeometryOfBytes(uint64_t bitset_bytes);

// The smallest geometry with a predicted rate of false positives of at most max_fpr.
TEPAL_API Result<Geometry> GeometryFor(uint64_t num_keys, double max_fpr,
                                       BlockCount blocks = BlockCount::kPowerOfTwo);

// ---- Bytes

// What the BloomFilterHeader says.
struct Header {
  size_t header_bytes = 0;  // the bitset begins behind them
  size_t bitset_bytes = 0;
  size_t total_bytes() const { return header_bytes + bitset_bytes; }
};

// A header in front of `bytes`; the bitset need not be there. For files without bloom_filter_length
// (before format version 2.10): 64 bytes hold the header of every known writer, and total_bytes()
// is how much to read.
//
// kUnsupported: an algorithm, hash or compression that is not BLOCK, XXHASH and UNCOMPRESSED.
// kCorrupt: everything else that is no header. Fields that are not known are passed over.
TEPAL_API Result<Header> ReadHeader(std::span<const uint8_t> bytes);

// The filter in front of `bytes`: header and bitset of any number of blocks, copied. What follows
// it is ignored.
TEPAL_API Result<Filter> Read(std::span<const uint8_t> bytes, const MemoryOptions& memory = {});

// The same if bloom_filter_length is known: `bytes` are all of it. Prefer this one: a header that
// gives too small a size makes a filter that denies keys it has, and only the length tells.
TEPAL_API Result<Filter> ReadExactly(std::span<const uint8_t> bytes,
                                     const MemoryOptions& memory = {});

// Header and bitset: what goes to bloom_filter_offset. Fails unless the filter is of layout
// kSplit256 with XXH64, seed 0, and at most kMaxBitsetBytes long.
TEPAL_API Result<std::vector<uint8_t>> Write(const ProbeCalls& filter);

// ---- Hashes of values, for InsertHashes, ProbeHashes, SelectHashes, CountHashes

// XXH64 with seed 0 of the plain encoding, bit for bit: 0.0 and -0.0 are different values, and so
// are NaNs of different bits. Logical types have the hash of the physical type that stores them.
TEPAL_API uint64_t HashValue(int32_t value);
TEPAL_API uint64_t HashValue(int64_t value);
TEPAL_API uint64_t HashValue(float value);
TEPAL_API uint64_t HashValue(double value);
TEPAL_API uint64_t HashValue(std::string_view value);  // BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT96

// FIXED_LEN_BYTE_ARRAY (and INT96, of 12 bytes): value i is the `width_bytes` bytes from
// data + i * width_bytes on.
struct FixedColumn {
  const uint8_t* data = nullptr;
  size_t width_bytes = 0;
  size_t size = 0;
};

// hashes[i] becomes the hash of value i. `hashes` has room for all of them.
TEPAL_API void HashValues(std::span<const int32_t> values, uint64_t* hashes);
TEPAL_API void HashValues(std::span<const int64_t> values, uint64_t* hashes);
TEPAL_API void HashValues(std::span<const float> values, uint64_t* hashes);
TEPAL_API void HashValues(std::span<const double> values, uint64_t* hashes);
TEPAL_API void HashValues(const StringColumn& values, uint64_t* hashes);
TEPAL_API void HashValues(const FixedColumn& values, uint64_t* hashes);

// ---- Probes with floats

// May a value that equals `value` be in the filter? As SQL compares floats: 0.0 equals -0.0, so
// both are tried; and all NaNs equal each other, so the answer to a NaN is always true. Without
// this a filter over -0.0 would deny 0.0, and rows would be lost.
TEPAL_API bool MayContain(const ProbeCalls& filter, float value);
TEPAL_API bool MayContain(const ProbeCalls& filter, double value);

// The same for a column; arguments and result as in Filter::Probe.
TEPAL_API size_t Probe(const ProbeCalls& filter, std::span<const float> values, uint8_t* bitmap,
                       Validity validity = {});
TEPAL_API size_t Probe(const ProbeCalls& filter, std::span<const double> values, uint8_t* bitmap,
                       Validity validity = {});

}  // namespace tepal::parquet

#endif  // TEPAL_PARQUET_H_
