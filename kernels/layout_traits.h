// The one description of each layout: constants only. LAYOUTS.md explains them; kernels and
// reference both read them.
#ifndef TEPAL_KERNELS_LAYOUT_TRAITS_H_
#define TEPAL_KERNELS_LAYOUT_TRAITS_H_

#include <cstddef>
#include <cstdint>

namespace tepal {

// Apache Parquet's split-block filter (parquet-format, BloomFilter.md).
struct Split256 {
  static constexpr uint32_t kWordBits = 32;
  static constexpr uint32_t kWordsPerBlock = 8;
  static constexpr uint32_t kBlockBits = kWordBits * kWordsPerBlock;
  static constexpr uint32_t kBlockBytes = kBlockBits / 8;
  static constexpr int kLogBlockBytes = 5;
  static constexpr uint32_t kNumProbes = kWordsPerBlock;
  // The block index is (h >> 32) * num_blocks >> 32, and the factor must fit into 32 bits.
  static constexpr uint64_t kMaxBlocks = 0xFFFFFFFFu;
  // Multiply-shift (Dietzfelbinger 1997): the top 5 bits of hash * salt choose one of 32 bits.
  static constexpr uint32_t kBitShift = 27;
  alignas(32) static constexpr uint32_t kSalts[kWordsPerBlock] = {
      0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
      0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
};

}  // namespace tepal

#endif  // TEPAL_KERNELS_LAYOUT_TRAITS_H_
