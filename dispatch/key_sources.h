// Columns as sources of hashes: Rows() gives those of rows begin .. begin + count, Gather() those
// of a selection. A source that is kBuffered fills the buffer of kChunkRows hashes that it is
// handed. All are made from a column, the geometry of the filter, and the kernels that hash.
#ifndef TEPAL_DISPATCH_KEY_SOURCES_H_
#define TEPAL_DISPATCH_KEY_SOURCES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "dispatch/active_kernels.h"
#include "tepal/columns.h"
#include "tepal/geometry.h"

namespace tepal {

// Rows that are hashed and probed together: their hashes (8 KiB) stay in L1.
inline constexpr size_t kChunkRows = 1024;

// Any bytes, by the xxHash library.
uint64_t HashString(HashKind hash, uint64_t seed, std::string_view bytes);

// A column of hashes that the caller already has.
struct HashSource {
  static constexpr bool kBuffered = false;

  HashSource(std::span<const uint64_t> hashes, const Geometry& /*geometry*/,
             const HashKernels& /*kernels*/)
      : column(hashes) {}

  const uint64_t* Rows(size_t begin, size_t /*count*/, uint64_t* /*buffer*/) const {
    return column.data() + begin;
  }
  const uint64_t* Gather(const uint32_t* rows, size_t count, uint64_t* buffer) const {
    for (size_t i = 0; i < count; ++i) buffer[i] = column[rows[i]];
    return buffer;
  }

  std::span<const uint64_t> column;
};

template <typename Key>
using HashFunction = std::conditional_t<sizeof(Key) == 8, Hash64Function, Hash32Function>;

template <typename Key>
HashFunction<Key> HashFunctionOf(const HashKernels& kernels, HashKind hash) {
  if constexpr (sizeof(Key) == 8) {
    return hash == HashKind::kXxh64 ? kernels.xxh64_u64 : kernels.xxh3_u64;
  } else {
    return hash == HashKind::kXxh64 ? kernels.xxh64_u32 : kernels.xxh3_u32;
  }
}

template <typename Key>
class KeySource {
 public:
  static constexpr bool kBuffered = true;

  KeySource(std::span<const Key> keys, const Geometry& geometry, const HashKernels& kernels)
      : column(keys), hash_(HashFunctionOf<Key>(kernels, geometry.hash)), seed_(geometry.seed) {}

  const uint64_t* Rows(size_t begin, size_t count, uint64_t* buffer) const {
    hash_(column.data() + begin, count, seed_, buffer);
    return buffer;
  }
  const uint64_t* Gather(const uint32_t* rows, size_t count, uint64_t* buffer) const {
    Key keys[kChunkRows];
    for (size_t i = 0; i < count; ++i) keys[i] = column[rows[i]];
    hash_(keys, count, seed_, buffer);
    return buffer;
  }

  std::span<const Key> column;

 private:
  HashFunction<Key> hash_;
  uint64_t seed_;
};

class StringSource {
 public:
  static constexpr bool kBuffered = true;

  StringSource(const StringColumn& strings, const Geometry& geometry,
               const HashKernels& /*kernels*/)
      : column(strings), hash_(geometry.hash), seed_(geometry.seed) {}

  const uint64_t* Rows(size_t begin, size_t count, uint64_t* buffer) const {
    for (size_t i = 0; i < count; ++i) buffer[i] = HashString(hash_, seed_, column[begin + i]);
    return buffer;
  }
  const uint64_t* Gather(const uint32_t* rows, size_t count, uint64_t* buffer) const {
    for (size_t i = 0; i < count; ++i) buffer[i] = HashString(hash_, seed_, column[rows[i]]);
    return buffer;
  }

  const StringColumn& column;

 private:
  HashKind hash_;
  uint64_t seed_;
};

}  // namespace tepal

#endif  // TEPAL_DISPATCH_KEY_SOURCES_H_
