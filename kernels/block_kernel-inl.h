// One key per vector: all bits of a key lie in one block, which is one or two vectors wide. A
// policy says how a key is inserted into its block and tested; the loops, the addressing and the
// reduction to result bits are the same for all. (A block of `register` is one word, so its policy
// tests one key per lane.)

#if defined(TEPAL_KERNELS_BLOCK_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TEPAL_KERNELS_BLOCK_KERNEL_INL_H_
#undef TEPAL_KERNELS_BLOCK_KERNEL_INL_H_
#else
#define TEPAL_KERNELS_BLOCK_KERNEL_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/hwy_compat-inl.h"
#include "kernels/kernel_tables.h"
#include "kernels/layout_traits.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Keys that become one byte of the bitmap.
constexpr size_t kUnit = 8;

// At most 256 bits: the reduction below is made for them, and so are Parquet's blocks.
using Words32 = hn::CappedTag<uint32_t, 8>;

// 1 << (product >> kBitShift) % 32 in each word. The mask, where one is needed, is cheaper than a
// second shift: shifts and shuffles share two of the four vector units (Zen 3).
template <int kBitShift, class D32, class V32 = hn::Vec<D32>>
HWY_INLINE V32 BitOfProduct(D32 d, V32 product) {
  V32 bit = hn::ShiftRight<kBitShift>(product);
  if constexpr (kBitShift < 32 - 5) bit = hn::And(bit, hn::Set(d, 31u));
  return LittleEndian32(d, hn::Shl(hn::Set(d, 1u), bit));
}

class Split256Policy {
 public:
  static constexpr uint32_t kBlockBytes = Split256::kBlockBits / 8;

  explicit Split256Policy(const FilterShape&) {}

  // Sets the bits of a key in its block.
  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    const Words32 d;
    uint32_t* words = reinterpret_cast<uint32_t*>(block);
    for (size_t i = 0; i < Split256::kWordsPerBlock; i += hn::Lanes(d)) {
      hn::StoreU(hn::Or(hn::LoadU(d, words + i), Mask(d, hash, i)), d, words + i);
    }
  }

  // Not zero in any lane if and only if the block has all bits of the key.
  HWY_INLINE hn::Vec<Words32> Present(const uint64_t* hash, const uint8_t* block) const {
    const Words32 d;
    const uint32_t* words = reinterpret_cast<const uint32_t*>(block);
    auto present = hn::And(Mask(d, hash, 0), hn::LoadU(d, words));
    for (size_t i = hn::Lanes(d); i < Split256::kWordsPerBlock; i += hn::Lanes(d)) {
      present = hn::Min(present, hn::And(Mask(d, hash, i), hn::LoadU(d, words + i)));
    }
    return present;
  }

 private:
  static HWY_INLINE hn::Vec<Words32> Mask(Words32 d, const uint64_t* hash, size_t first_word) {
    const auto key = hn::Set(d, LowHalf(hash));
    return BitOfProduct<Split256::kBitShift>(d, hn::Mul(key, hn::LoadU(d, kSalts + first_word)));
  }
};

// Each word has a half in either half of the line, at the same lane: the top bit of the product
// says which one the key's bit lies in.
class Split512Policy {
 public:
  static constexpr uint32_t kBlockBytes = Split512::kBlockBits / 8;

  explicit Split512Policy(const FilterShape&) {}

  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    const Words32 d;
    const auto none = hn::Zero(d);
    uint32_t* first = reinterpret_cast<uint32_t*>(block);
    uint32_t* second = first + Split512::kWordsPerBlock;
    for (size_t i = 0; i < Split512::kWordsPerBlock; i += hn::Lanes(d)) {
      const auto product = Product(d, hash, i);
      const auto bit = BitOfProduct<Split512::kBitShift>(d, product);
      const auto in_first = IfTopBitThenElse(d, product, none, bit);
      const auto in_second = IfTopBitThenElse(d, product, bit, none);
      hn::StoreU(hn::Or(hn::LoadU(d, first + i), in_first), d, first + i);
      hn::StoreU(hn::Or(hn::LoadU(d, second + i), in_second), d, second + i);
    }
  }

  HWY_INLINE hn::Vec<Words32> Present(const uint64_t* hash, const uint8_t* block) const {
    const Words32 d;
    auto present = PresentWords(d, hash, block, 0);
    for (size_t i = hn::Lanes(d); i < Split512::kWordsPerBlock; i += hn::Lanes(d)) {
      present = hn::Min(present, PresentWords(d, hash, block, i));
    }
    return present;
  }

 private:
  static HWY_INLINE hn::Vec<Words32> Product(Words32 d, const uint64_t* hash, size_t first_word) {
    return hn::Mul(hn::Set(d, LowHalf(hash)), hn::LoadU(d, kSalts + first_word));
  }

  static HWY_INLINE hn::Vec<Words32> PresentWords(Words32 d, const uint64_t* hash,
                                                  const uint8_t* block, size_t first_word) {
    const auto product = Product(d, hash, first_word);
    const uint32_t* words = reinterpret_cast<const uint32_t*>(block) + first_word;
    const auto half = IfTopBitThenElse(d, product, hn::LoadU(d, words + Split512::kWordsPerBlock),
                                       hn::LoadU(d, words));
    return hn::And(half, BitOfProduct<Split512::kBitShift>(d, product));
  }
};

// kProbeLimit (8 or 16) is k rounded up, so that the loop has a fixed length.
template <size_t kProbeLimit>
class Line512Policy {
 public:
  static constexpr uint32_t kBlockBytes = Line512::kBlockBits / 8;

  explicit Line512Policy(const FilterShape& shape) : num_probes_(shape.num_probes) {}

  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    for (size_t i = 0; i < num_probes_; ++i) {
      const uint32_t bit = LowHalf(hash) * kSalts[i] >> Line512::kBitShift;
      block[bit / 8] = static_cast<uint8_t>(block[bit / 8] | 1u << (bit % 8));
    }
  }

  // One probe per lane.
  HWY_INLINE hn::Vec<Words32> Present(const uint64_t* hash, const uint8_t* block) const {
    const Words32 d;
    auto present = PresentProbes(d, hash, block, 0);
    for (size_t i = hn::Lanes(d); i < kProbeLimit; i += hn::Lanes(d)) {
      present = hn::Min(present, PresentProbes(d, hash, block, i));
    }
    return present;
  }

 private:
  // kUnused + kMaxProbes - k has k zeros, then ones.
  static constexpr uint32_t kUnused[2 * Line512::kMaxProbes] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                                                0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1,
                                                                1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

  HWY_INLINE hn::Vec<Words32> PresentProbes(Words32 d, const uint64_t* hash, const uint8_t* block,
                                            size_t first_probe) const {
    const auto product = hn::Mul(hn::Set(d, LowHalf(hash)), hn::LoadU(d, kSalts + first_probe));
    const auto word = LookupWord16(d, reinterpret_cast<const uint32_t*>(block), product);
    // Bits 31..28 of the product choose the word, bits 27..23 the bit.
    const auto bit = BitOfProduct<Line512::kBitShift>(d, product);
    const auto unused = hn::LoadU(d, kUnused + Line512::kMaxProbes - num_probes_ + first_probe);
    return hn::Or(hn::And(word, bit), unused);
  }

  size_t num_probes_;
};

// k is a template argument because the loop over it is all there is to this layout.
template <size_t kProbes>
class RegisterPolicy {
 public:
  static constexpr uint32_t kBlockBytes = Register64::kBlockBits / 8;

  explicit RegisterPolicy(const FilterShape&) {}

  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    for (size_t i = 0; i < kProbes; ++i) {
      const uint32_t bit = LowHalf(hash) * kSalts[i] >> Register64::kBitShift;
      block[bit / 8] = static_cast<uint8_t>(block[bit / 8] | 1u << (bit % 8));
    }
  }

  // Bit i: is key i in its word, which starts at block(i)?
  template <class BlockOf>
  HWY_INLINE uint8_t TestKeys(const uint64_t* hashes, const BlockOf& block) const {
    const hn::CappedTag<uint64_t, 4> d;
    uint64_t bits = 0;
    for (size_t i = 0; i < kUnit; i += hn::Lanes(d)) {
      const auto words = CollectWords(d, [&](size_t j) TEPAL_LAMBDA {
        uint64_t word;
        memcpy(&word, block(i + j), sizeof(word));
        return word;
      });
      const auto mask = LittleEndian64(d, Mask(d, hn::LoadU(d, hashes + i)));
      const auto present = hn::Eq(hn::And(words, mask), mask);
      bits |= TopBits(d, hn::VecFromMask(d, present)) << i;
    }
    return static_cast<uint8_t>(bits);
  }

 private:
  template <class D64, class V64 = hn::Vec<D64>>
  static HWY_INLINE V64 Mask(D64 d, V64 hashes) {
    const V64 one = hn::Set(d, 1);
    V64 mask = hn::Shl(one, hn::ShiftRight<Register64::kBitShift>(MulTo32(d, hashes, kSalts[0])));
    for (size_t i = 1; i < kProbes; ++i) {
      const V64 bit = hn::ShiftRight<Register64::kBitShift>(MulTo32(d, hashes, kSalts[i]));
      mask = hn::Or(mask, hn::Shl(one, bit));
    }
    return mask;
  }
};

constexpr int Log2(uint64_t power_of_two) {
  return power_of_two == 1 ? 0 : 1 + Log2(power_of_two / 2);
}

// Where a key's block starts, in bytes: ((h >> 32) * num_blocks >> 32) * kBlockBytes. Scalar code
// beside the vectors (0.65 to 0.67 ns a key) beats vector code that stores the offsets (0.75; AVX2,
// Zen 3, 16 KiB), and a mask beats a second shift, which would compete with the multiplication.
template <uint32_t kBlockBytes>
class MultiplyHigh {
 public:
  explicit MultiplyHigh(uint64_t num_blocks) : num_blocks_(num_blocks) {}

  HWY_INLINE size_t operator()(const uint64_t* hash) const {
    if constexpr (kBlockBytes <= 8) {  // the CPU multiplies by 8 when it adds up an address
      return static_cast<size_t>(HighHalf(hash) * num_blocks_ >> 32) * kBlockBytes;
    }
    constexpr uint64_t kBlockMask = ~uint64_t{kBlockBytes - 1};
    return static_cast<size_t>(HighHalf(hash) * num_blocks_ >> (32 - Log2(kBlockBytes)) &
                               kBlockMask);
  }

 private:
  uint64_t num_blocks_;
};

// The same for filters of 2^c bytes, up to 4 GiB: the top c bits of the hash, which takes two
// instructions instead of four (0.63 ns a key instead of 0.67; AVX2, Zen 3, 16 KiB, clang 14).
template <uint32_t kBlockBytes>
class TopBitsOffset {
 public:
  static bool Serves(uint64_t num_blocks) {
    return (num_blocks & (num_blocks - 1)) == 0 && num_blocks <= (uint64_t{1} << 32) / kBlockBytes;
  }

  explicit TopBitsOffset(uint64_t num_blocks) : shift_(32 - Log2(kBlockBytes) - Log2(num_blocks)) {}

  HWY_INLINE size_t operator()(const uint64_t* hash) const {
    return HighHalf(hash) >> shift_ & ~(kBlockBytes - 1);
  }

 private:
  int shift_;
};

#if TEPAL_HAVE_BLOCK_PACKS

// Bit i: has key i all of its bits? `keys0123` has, in each 128-bit block, four bytes per key that
// are all not zero if so.
template <class D32, class V8>
HWY_INLINE uint8_t KeysPresent(D32 d, V8 keys0123, V8 keys4567) {
  const hn::Repartition<uint8_t, D32> d8;
  const auto low = hn::BitCast(d8, keys0123);
  const auto high = hn::BitCast(d8, keys4567);
  // A byte that is zero makes its key's 32-bit lane not zero.
  const auto absent = [&](auto v) TEPAL_LAMBDA {
    return hn::BitCast(d, hn::VecFromMask(d8, hn::Eq(v, hn::Zero(d8))));
  };
  if constexpr (hn::MaxLanes(D32()) == 8) {  // each 128-bit half knows one half of each key
    const auto keys =
        hn::Min(hn::ConcatLowerLower(d8, high, low), hn::ConcatUpperUpper(d8, high, low));
    return static_cast<uint8_t>(MaskToBits(d, hn::Eq(absent(keys), hn::Zero(d))));
  } else {
    return static_cast<uint8_t>(MaskToBits(d, hn::Eq(absent(low), hn::Zero(d))) |
                                MaskToBits(d, hn::Eq(absent(high), hn::Zero(d))) << 4);
  }
}

// Bit i: is key i in its block, which starts at block(i)? A tree of packs and one movemask for 8
// keys takes 0.65 to 0.67 ns a key; one test and set per key 0.96 to 1.09 (AVX2, Zen 3, 16 KiB).
template <class Policy, class BlockOf>
HWY_INLINE uint8_t TestBlocks(const Policy& policy, const uint64_t* hashes, const BlockOf& block) {
  const hn::RebindToSigned<Words32> d;
  const auto present = [&](size_t i) TEPAL_LAMBDA {
    return hn::BitCast(d, policy.Present(hashes + i, block(i)));
  };
  const auto keys01 = PackTo16(present(0), present(1));
  const auto keys23 = PackTo16(present(2), present(3));
  const auto keys45 = PackTo16(present(4), present(5));
  const auto keys67 = PackTo16(present(6), present(7));
  return KeysPresent(Words32(), PackTo8(keys01, keys23), PackTo8(keys45, keys67));
}

#else

template <class Policy, class BlockOf>
HWY_INLINE uint8_t TestBlocks(const Policy& policy, const uint64_t* hashes, const BlockOf& block) {
  const Words32 d;
  unsigned bits = 0;
  for (size_t i = 0; i < kUnit; ++i) {
    const auto present = policy.Present(hashes + i, block(i));
    bits |= unsigned{hn::AllFalse(d, hn::Eq(present, hn::Zero(d)))} << i;
  }
  return static_cast<uint8_t>(bits);
}

#endif  // TEPAL_HAVE_BLOCK_PACKS

template <class Policy, class BlockOf>
HWY_INLINE uint8_t TestUnit(const Policy& policy, const uint64_t* hashes, const BlockOf& block) {
  return TestBlocks(policy, hashes, block);
}
template <size_t kProbes, class BlockOf>
HWY_INLINE uint8_t TestUnit(const RegisterPolicy<kProbes>& policy, const uint64_t* hashes,
                            const BlockOf& block) {
  return policy.TestKeys(hashes, block);
}

// Calls touch(i, block) for each whole unit of keys; block(j) is where the block of key i + j
// starts.
template <class OffsetOf, class Byte, class Touch>
HWY_INLINE void ForEachUnit(const OffsetOf& offset_of, Byte* filter, const uint64_t* hashes,
                            size_t num_keys, const Touch& touch) {
  for (size_t i = 0; i + kUnit <= num_keys; i += kUnit) {
    touch(i, [=](size_t j) TEPAL_LAMBDA { return filter + offset_of(hashes + i + j); });
  }
}

// The same for filters in memory: whoever takes a block also asks for the block of the key
// kPrefetchKeys later. Offsets wait in a ring; computing them twice costs 0.08 ns (4 MiB, Zen 4).
template <class OffsetOf, class Byte, class Touch>
HWY_INLINE void ForEachUnitPrefetched(const OffsetOf& offset_of, Byte* filter,
                                      const uint64_t* hashes, size_t num_keys, const Touch& touch) {
  constexpr size_t kPrefetchKeys = 4 * kUnit;
  size_t ring[kPrefetchKeys];
  const auto request = [&](size_t i) TEPAL_LAMBDA {
    const size_t offset = offset_of(hashes + i);
    PrefetchBlock(filter + offset);
    ring[i % kPrefetchKeys] = offset;
  };
  const size_t num_whole = num_keys / kUnit * kUnit;
  for (size_t i = 0; i < HWY_MIN(kPrefetchKeys, num_whole); ++i) request(i);
  size_t i = 0;
  for (; i + kPrefetchKeys < num_whole; i += kUnit) {
    touch(i, [&](size_t j) TEPAL_LAMBDA {
      Byte* block = filter + ring[i % kPrefetchKeys + j];
      request(i + j + kPrefetchKeys);
      return block;
    });
  }
  for (; i < num_whole; i += kUnit) {
    touch(i, [&](size_t j) TEPAL_LAMBDA { return filter + ring[i % kPrefetchKeys + j]; });
  }
}

// Calls touch(i, block) for each whole unit of keys, in the way that suits the filter.
template <uint32_t kBlockBytes, class Byte, class Touch>
HWY_INLINE void ForEachUnit(const FilterShape& shape, Byte* filter, const uint64_t* hashes,
                            size_t num_keys, const Touch& touch) {
  const MultiplyHigh<kBlockBytes> offset_of(shape.num_blocks);
  if (shape.prefetch) {
    ForEachUnitPrefetched(offset_of, filter, hashes, num_keys, touch);
  } else if (TopBitsOffset<kBlockBytes>::Serves(shape.num_blocks)) {
    ForEachUnit(TopBitsOffset<kBlockBytes>(shape.num_blocks), filter, hashes, num_keys, touch);
  } else {
    ForEachUnit(offset_of, filter, hashes, num_keys, touch);
  }
}

template <class Policy>
void InsertColumn(const FilterShape& shape, const uint64_t* hashes, size_t num_keys,
                  uint8_t* filter) {
  constexpr uint32_t kBlockBytes = Policy::kBlockBytes;
  const Policy policy(shape);
  ForEachUnit<kBlockBytes>(shape, filter, hashes, num_keys,
                           [&](size_t i, const auto& block) TEPAL_LAMBDA {
                             for (size_t j = 0; j < kUnit; ++j)
                               policy.Insert(hashes + i + j, block(j));
                           });
  const MultiplyHigh<kBlockBytes> offset_of(shape.num_blocks);
  for (size_t i = num_keys / kUnit * kUnit; i < num_keys; ++i) {
    policy.Insert(hashes + i, filter + offset_of(hashes + i));
  }
}

template <class Policy>
size_t ProbeColumn(const FilterShape& shape, const uint8_t* filter, const uint64_t* hashes,
                   size_t num_keys, uint8_t* bitmap) {
  constexpr uint32_t kBlockBytes = Policy::kBlockBytes;
  const Policy policy(shape);
  size_t matches = 0;
  ForEachUnit<kBlockBytes>(shape, filter, hashes, num_keys,
                           [&](size_t i, const auto& block) TEPAL_LAMBDA {
                             const uint8_t present = TestUnit(policy, hashes + i, block);
                             bitmap[i / kUnit] = present;
                             matches += hwy::PopCount(present);
                           });
  const size_t num_tail = num_keys % kUnit;
  if (num_tail == 0) return matches;
  uint64_t tail[kUnit] = {};  // any hash will do for the rest: each has a block
  memcpy(tail, hashes + num_keys - num_tail, num_tail * sizeof(uint64_t));
  const MultiplyHigh<kBlockBytes> offset_of(shape.num_blocks);
  const uint8_t in_tail =
      TestUnit(policy, tail, [&](size_t i) TEPAL_LAMBDA { return filter + offset_of(tail + i); });
  const auto present = static_cast<uint8_t>(in_tail & ((1u << num_tail) - 1));
  bitmap[num_keys / kUnit] = present;
  return matches + hwy::PopCount(present);
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#endif  // TEPAL_KERNELS_BLOCK_KERNEL_INL_H_
