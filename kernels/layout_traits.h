// The one description of each layout: constants only. LAYOUTS.md explains them; kernels, reference
// and host side read them.
#ifndef TEPAL_KERNELS_LAYOUT_TRAITS_H_
#define TEPAL_KERNELS_LAYOUT_TRAITS_H_

#include <cstddef>
#include <cstdint>

#include "tepal/geometry.h"

namespace tepal {

// Multipliers of low(h). The first 8 are those of Apache Parquet's split-block filter
// (parquet-format, BloomFilter.md), the others 32-bit words of the fraction of pi, made odd.
alignas(64) inline constexpr uint32_t kSalts[16] = {
    0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du, 0x705495c7u, 0x2df1424bu,
    0x9efc4947u, 0x5c6bfb31u, 0x243f6a89u, 0x85a308d3u, 0x13198a2fu, 0x03707345u,
    0xa4093823u, 0x299f31d1u, 0x082efa99u, 0xec4e6c89u};

// A key's block: high(h) * num_blocks >> 32. The factor must fit into 32 bits.
inline constexpr uint64_t kMaxBlocks = 0xFFFFFFFFu;

// kBitShift: multiply-shift (Dietzfelbinger 1997), the top bits of low(h) * salt choose a bit.
// Lower product bits never see the upper bits of the key; do not use them.
struct Split256 {
  static constexpr uint32_t kBlockBits = 256;
  static constexpr uint32_t kWordBits = 32;
  static constexpr uint32_t kWordsPerBlock = 8;
  static constexpr uint32_t kBitShift = 32 - 5;
};

struct Split512 {
  static constexpr uint32_t kBlockBits = 512;
  static constexpr uint32_t kWordBits = 64;
  static constexpr uint32_t kWordsPerBlock = 8;
  static constexpr uint32_t kBitShift = 32 - 6;
};

struct Line512 {
  static constexpr uint32_t kBlockBits = 512;
  static constexpr uint32_t kMaxProbes = 16;
  static constexpr uint32_t kBitShift = 32 - 9;
};

struct Register64 {
  static constexpr uint32_t kBlockBits = 64;
  static constexpr uint32_t kMaxProbes = 6;
  static constexpr uint32_t kBitShift = 32 - 6;
};

// Double hashing, for the scattered layouts.
struct Scattered {
  static constexpr uint32_t kMaxProbes = 64;
  static constexpr uint64_t kRemixFactor = 0x9E3779B97F4A7C15u;
  // h1 and h2 are the bits of h and r above these.
  static constexpr uint32_t kRowBits = 12;
  // Each step is this many times the one before. A shift and an addition.
  static constexpr uint64_t kStepGrowth = 5;
  static constexpr uint64_t kStepGrowthInverse = 0xCCCCCCCCCCCCCCCDu;
  static_assert(kStepGrowth * kStepGrowthInverse == 1);
  // reduce() by mask takes the bits above these, ...
  static constexpr uint32_t kMaskShift = 24;
  // ... by multiply-high a line of 512 bits from the upper half, and the bit in it from the 9 bits
  // below.
  static constexpr uint32_t kLineBits = 512;
  static constexpr uint32_t kLineShift = 23;
  // Blocks of `variable` hold whole words.
  static constexpr uint32_t kMinBlockBits = 64;
};

// Which sizes and numbers of probes a layout allows.
struct SizeRules {
  uint64_t granule_bits;  // num_bits is a multiple of it (partitioned: of num_probes times it)
  uint64_t min_bits;
  uint64_t max_bits;
  uint32_t min_probes;
  uint32_t max_probes;
};

constexpr SizeRules RulesOf(Layout layout) {
  switch (layout) {
    case Layout::kStandard:
    case Layout::kPartitioned:
    case Layout::kRational:
      return {Scattered::kLineBits, Scattered::kLineBits, kMaxBits, 1, Scattered::kMaxProbes};
    case Layout::kVariable:
    case Layout::kVariablePaper:
      return {Scattered::kMinBlockBits, 512, kMaxBits, 1, Scattered::kMaxProbes};
    case Layout::kRegister:
      return {Register64::kBlockBits, Register64::kBlockBits, kMaxBlocks * Register64::kBlockBits,
              3, Register64::kMaxProbes};
    case Layout::kSplit256:
      return {Split256::kBlockBits, Split256::kBlockBits, kMaxBlocks * Split256::kBlockBits,
              Split256::kWordsPerBlock, Split256::kWordsPerBlock};
    case Layout::kSplit512:
      return {Split512::kBlockBits, Split512::kBlockBits, kMaxBits, Split512::kWordsPerBlock,
              Split512::kWordsPerBlock};
    case Layout::kLine512:
      return {Line512::kBlockBits, Line512::kBlockBits, kMaxBits, 1, Line512::kMaxProbes};
  }
  return {};
}

}  // namespace tepal

#endif  // TEPAL_KERNELS_LAYOUT_TRAITS_H_
