// What a filter looks like. A Geometry fully determines the bytes that a set of keys becomes, on
// every CPU.
#ifndef TEPAL_GEOMETRY_H_
#define TEPAL_GEOMETRY_H_

#include <cstdint>
#include <string_view>

#include "tepal/export.h"
#include "tepal/status.h"

namespace tepal {

// Where the bits of a key lie. kernels/LAYOUTS.md is normative; the numbers are part of the
// container format.
enum class Layout : uint8_t {
  kStandard = 0,       // k bits anywhere
  kPartitioned = 1,    // one bit in each of k parts
  kRational = 2,       // floor(k) bits, and one more for a share of the keys
  kVariable = 3,       // k bits over blocks of powers of two; any size, masks only
  kVariablePaper = 4,  // the same as printed in the paper, for comparison
  kRegister = 5,       // one 64-bit word, k bits in it
  kSplit256 = 6,       // Apache Parquet's split-block filter: one bit in each of 8 words of 32 bits
  kSplit512 = 7,       // one cache line, one bit in each of 8 words of 64 bits
  kLine512 = 8,        // one cache line, k bits anywhere in it
};

// The hash of a key. Both are bit-identical to the xxHash library.
enum class HashKind : uint8_t {
  kXxh3 = 0,   // XXH3_64bits_withSeed: the fast default
  kXxh64 = 1,  // XXH64: what Parquet uses, with seed 0
};

struct TEPAL_API Geometry {
  Layout layout = Layout::kSplit256;
  uint64_t num_bits = 0;
  uint32_t num_probes = 0;  // k; fixed at 8 for the split layouts
  double rational_k =
      0;  // kRational and kVariablePaper: the real k, and num_probes is k rounded up; otherwise 0
  HashKind hash = HashKind::kXxh3;
  uint64_t seed = 0;

  // A good geometry for `num_keys` keys of at most `bits_per_key` bits each, but at least one block
  // and at most kMaxBits. A `bits_per_key` that is not a positive number gives num_bits == 0, which
  // Validate() and Filter::Create refuse.
  static Geometry For(Layout layout, uint64_t num_keys, double bits_per_key);

  // Ok, or which field is wrong and what would be right.
  Status Validate() const;

  uint64_t num_bytes() const { return num_bits / 8; }

  bool operator==(const Geometry&) const = default;
};

// The largest filter of any layout.
inline constexpr uint64_t kMaxBits = uint64_t{1} << 40;

// "split256" and so on, and back.
TEPAL_API std::string_view LayoutName(Layout layout);
TEPAL_API Result<Layout> ParseLayout(std::string_view name);

// "xxh3", "xxh64".
TEPAL_API std::string_view HashKindName(HashKind hash);

}  // namespace tepal

#endif  // TEPAL_GEOMETRY_H_
