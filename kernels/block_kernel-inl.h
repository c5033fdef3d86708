// One key per vector, or two where vectors have 512 bits: all bits of a key lie in one block. A
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
#include <type_traits>
#include <utility>

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

// A key, its block, and vectors of at most 256 bits, which is what Parquet's blocks have.
class OneKey {
 public:
  using D = hn::CappedTag<uint32_t, 8>;
  using V = hn::Vec<D>;
  using Present = V;  // a lane that is zero says that the key has not been inserted

  // How many words of a key one vector holds.
  static HWY_INLINE size_t Lanes() { return hn::Lanes(D()); }

  template <class BlockOf>
  HWY_INLINE OneKey(const uint64_t* hash, const BlockOf& block) : hash_(hash), block_(block(0)) {}

  // The key times each of the factors.
  HWY_INLINE V Product(const uint32_t* factors) const {
    return hn::Mul(hn::Set(D(), LowHalf(hash_)), Spread(factors));
  }
  // The words of the block from the given one on.
  HWY_INLINE V Words(size_t first) const {
    return hn::LoadU(D(), reinterpret_cast<const uint32_t*>(block_) + first);
  }
  // In each lane, the word of 16 that the top bits of the product say.
  HWY_INLINE V Word16(V product) const {
    return LookupWord16(D(), reinterpret_cast<const uint32_t*>(block_), product);
  }
  // What each key gets: one value for each of its words.
  static HWY_INLINE V Spread(const uint32_t* of_key) { return hn::LoadU(D(), of_key); }

  static HWY_INLINE Present Test(V words, V bits) { return hn::And(words, bits); }
  static HWY_INLINE Present Both(Present a, Present b) { return hn::Min(a, b); }
  static HWY_INLINE Present Either(Present a, V not_zero) { return hn::Or(a, not_zero); }

 private:
  const uint64_t* hash_;
  const uint8_t* block_;
};

#if TEPAL_HAVE_MASK_REGISTERS

// The same for two keys; the first one has the lower half of each vector.
class KeyPair {
 public:
  using D = hn::CappedTag<uint32_t, 16>;
  using V = hn::Vec<D>;
  using Present = hn::Mask<D>;

  static HWY_INLINE size_t Lanes() { return hn::Lanes(D()) / 2; }

  template <class BlockOf>
  HWY_INLINE KeyPair(const uint64_t* hashes, const BlockOf& block)
      : hashes_(hashes), block0_(block(0)), block1_(block(1)) {}

  HWY_INLINE V Product(const uint32_t* factors) const {
    const auto keys = hn::ConcatUpperLower(D(), hn::Set(D(), LowHalf(hashes_ + 1)),
                                           hn::Set(D(), LowHalf(hashes_)));
    return hn::Mul(keys, Spread(factors));
  }
  HWY_INLINE V Words(size_t first) const {
    return Join(WordsOf(block0_, first), WordsOf(block1_, first));
  }
  HWY_INLINE V Word16(V product) const {
    const auto index = hn::IndicesFromVec(D(), hn::ShiftRight<28>(product));
    return hn::ConcatUpperLower(D(), hn::TableLookupLanes(Line(block1_), index),
                                hn::TableLookupLanes(Line(block0_), index));
  }
  static HWY_INLINE V Spread(const uint32_t* of_key) {
    const auto half = hn::LoadU(Half(), of_key);
    return Join(half, half);
  }

  static HWY_INLINE Present Test(V words, V bits) { return hn::TestBit(words, bits); }
  static HWY_INLINE Present Both(Present a, Present b) { return hn::And(a, b); }
  static HWY_INLINE Present Either(Present a, V not_zero) {
    return hn::Or(a, hn::Ne(not_zero, hn::Zero(D())));
  }

 private:
  using Half = hn::Half<D>;

  static HWY_INLINE hn::Vec<Half> WordsOf(const uint8_t* block, size_t first) {
    return hn::LoadU(Half(), reinterpret_cast<const uint32_t*>(block) + first);
  }
  static HWY_INLINE V Line(const uint8_t* block) {
    return hn::LoadU(D(), reinterpret_cast<const uint32_t*>(block));
  }
  static HWY_INLINE V Join(hn::Vec<Half> lower, hn::Vec<Half> upper) {
    return hn::Combine(D(), upper, lower);
  }

  const uint64_t* hashes_;
  const uint8_t* block0_;
  const uint8_t* block1_;
};

#endif  // TEPAL_HAVE_MASK_REGISTERS

// 1 << (product >> kBitShift) % 32 in each word.
template <int kBitShift, class D32, class V32 = hn::Vec<D32>>
HWY_INLINE V32 BitOfProduct(D32 d, V32 product) {
  constexpr bool kIsBelow32 = kBitShift == 32 - 5;
  return LittleEndian32(d, BitAt<kIsBelow32>(d, hn::ShiftRight<kBitShift>(product)));
}

// Tests all words or probes of a key, kCount of them; test(i) is about those from i on.
template <class Keys, size_t kCount, class Test>
HWY_INLINE typename Keys::Present TestAll(const Test& test) {
  auto present = test(0);
  for (size_t i = Keys::Lanes(); i < kCount; i += Keys::Lanes()) {
    present = Keys::Both(present, test(i));
  }
  return present;
}

class Split256Policy {
 public:
  static constexpr uint32_t kBlockBytes = Split256::kBlockBits / 8;

  explicit Split256Policy(const FilterShape&) {}

  // Sets the bits of a key in its block.
  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    const OneKey key(hash, [=](size_t) TEPAL_LAMBDA { return block; });
    uint32_t* words = reinterpret_cast<uint32_t*>(block);
    for (size_t i = 0; i < Split256::kWordsPerBlock; i += OneKey::Lanes()) {
      hn::StoreU(hn::Or(key.Words(i), Bits(key, i)), OneKey::D(), words + i);
    }
  }

  // Has the block all bits of the key?
  template <class Keys>
  HWY_INLINE typename Keys::Present Test(const Keys& keys) const {
    return TestAll<Keys, Split256::kWordsPerBlock>(
        [&](size_t i) TEPAL_LAMBDA { return Keys::Test(keys.Words(i), Bits(keys, i)); });
  }

 private:
  template <class Keys>
  static HWY_INLINE typename Keys::V Bits(const Keys& keys, size_t first_word) {
    return BitOfProduct<Split256::kBitShift>(typename Keys::D(), keys.Product(kSalts + first_word));
  }
};

// Each word has a half in either half of the line, at the same lane: the top bit of the product
// says which one the key's bit lies in.
class Split512Policy {
 public:
  static constexpr uint32_t kBlockBytes = Split512::kBlockBits / 8;

  explicit Split512Policy(const FilterShape&) {}

  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    const OneKey::D d;
    const auto none = hn::Zero(d);
    const OneKey key(hash, [=](size_t) TEPAL_LAMBDA { return block; });
    uint32_t* words = reinterpret_cast<uint32_t*>(block);
    for (size_t i = 0; i < Split512::kWordsPerBlock; i += OneKey::Lanes()) {
      const size_t second = i + Split512::kWordsPerBlock;
      const auto product = key.Product(kSalts + i);
      const auto bit = BitOfProduct<Split512::kBitShift>(d, product);
      const auto in_first = IfTopBitThenElse(d, product, none, bit);
      const auto in_second = IfTopBitThenElse(d, product, bit, none);
      hn::StoreU(hn::Or(key.Words(i), in_first), d, words + i);
      hn::StoreU(hn::Or(key.Words(second), in_second), d, words + second);
    }
  }

  template <class Keys>
  HWY_INLINE typename Keys::Present Test(const Keys& keys) const {
    const typename Keys::D d;
    return TestAll<Keys, Split512::kWordsPerBlock>([&](size_t i) TEPAL_LAMBDA {
      const auto product = keys.Product(kSalts + i);
      const auto half =
          IfTopBitThenElse(d, product, keys.Words(i + Split512::kWordsPerBlock), keys.Words(i));
      return Keys::Test(half, BitOfProduct<Split512::kBitShift>(d, product));
    });
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
  template <class Keys>
  HWY_INLINE typename Keys::Present Test(const Keys& keys) const {
    const typename Keys::D d;
    return TestAll<Keys, kProbeLimit>([&](size_t i) TEPAL_LAMBDA {
      const auto product = keys.Product(kSalts + i);
      // Bits 31..28 of the product choose the word, bits 27..23 the bit.
      const auto bit = BitOfProduct<Line512::kBitShift>(d, product);
      const auto unused = Keys::Spread(kUnused + Line512::kMaxProbes - num_probes_ + i);
      return Keys::Either(Keys::Test(keys.Word16(product), bit), unused);
    });
  }

 private:
  // kUnused + kMaxProbes - k has k zeros, then ones.
  static constexpr uint32_t kUnused[2 * Line512::kMaxProbes] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                                                0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1,
                                                                1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

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
  HWY_INLINE unsigned TestKeys(const uint64_t* hashes, const BlockOf& block) const {
    const hn::CappedTag<uint64_t, kUnit> d;
    uint64_t bits = 0;
    for (size_t i = 0; i < kUnit; i += hn::Lanes(d)) {
      const auto words = CollectWords(d, [&](size_t j) TEPAL_LAMBDA {
        uint64_t word;
        memcpy(&word, block(i + j), sizeof(word));
        return word;
      });
      const auto mask = LittleEndian64(d, Mask(d, hn::LoadU(d, hashes + i)));
      bits |= AllBitsSet(d, words, mask) << i;
    }
    return static_cast<unsigned>(bits);
  }

 private:
  template <class D64, class V64 = hn::Vec<D64>>
  static HWY_INLINE V64 Mask(D64 d, V64 hashes) {
    V64 mask = BitOfProduct64<Register64::kBitShift>(d, hashes, kSalts[0]);
    for (size_t i = 1; i < kProbes; ++i) {
      mask = hn::Or(mask, BitOfProduct64<Register64::kBitShift>(d, hashes, kSalts[i]));
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

#if TEPAL_HAVE_MASK_REGISTERS

// Of eight keys, two at a time: which words, or probes, have their bit?
struct UnitMasks {
  hn::Mask<KeyPair::D> pairs[kUnit / 2];
};

template <class Policy, class BlockOf>
HWY_INLINE UnitMasks TestBlocks(const Policy& policy, const uint64_t* hashes,
                                const BlockOf& block) {
  const auto test = [&](size_t i) TEPAL_LAMBDA {
    const KeyPair keys(hashes + i, [&](size_t j) TEPAL_LAMBDA { return block(i + j); });
    return policy.Test(keys);
  };
  return {{test(0), test(2), test(4), test(6)}};
}

#elif TEPAL_HAVE_BLOCK_PACKS

// Bit i: has key i all of its bits? `keys0123` has, in each 128-bit block, four bytes per key that
// are all not zero if so.
template <class D32, class V8>
HWY_INLINE unsigned KeysPresent(D32 d, V8 keys0123, V8 keys4567) {
  const hn::Repartition<uint8_t, D32> d8;
  const auto low = hn::BitCast(d8, keys0123);
  const auto high = hn::BitCast(d8, keys4567);
  // A byte that is zero makes its key's 32-bit lane not zero.
  const auto present = [&](auto v) TEPAL_LAMBDA {
    const auto absent = hn::BitCast(d, hn::VecFromMask(d8, hn::Eq(v, hn::Zero(d8))));
    return TopBits32(d, hn::VecFromMask(d, hn::Eq(absent, hn::Zero(d))));
  };
  if constexpr (hn::MaxLanes(D32()) == 8) {  // each 128-bit half knows one half of each key
    return present(
        hn::Min(hn::ConcatLowerLower(d8, high, low), hn::ConcatUpperUpper(d8, high, low)));
  } else {
    return present(low) | present(high) << 4;
  }
}

// Bit i: is key i in its block, which starts at block(i)? A tree of packs and one movemask for 8
// keys takes 0.65 to 0.67 ns a key; one test and set per key 0.96 to 1.09 (AVX2, Zen 3, 16 KiB).
template <class Policy, class BlockOf>
HWY_INLINE unsigned TestBlocks(const Policy& policy, const uint64_t* hashes, const BlockOf& block) {
  const hn::RebindToSigned<OneKey::D> d;
  const auto present = [&](size_t i) TEPAL_LAMBDA {
    const OneKey key(hashes + i, [&](size_t) TEPAL_LAMBDA { return block(i); });
    return hn::BitCast(d, policy.Test(key));
  };
  const auto keys01 = PackTo16(present(0), present(1));
  const auto keys23 = PackTo16(present(2), present(3));
  const auto keys45 = PackTo16(present(4), present(5));
  const auto keys67 = PackTo16(present(6), present(7));
  return KeysPresent(OneKey::D(), PackTo8(keys01, keys23), PackTo8(keys45, keys67));
}

#else

template <class Policy, class BlockOf>
HWY_INLINE unsigned TestBlocks(const Policy& policy, const uint64_t* hashes, const BlockOf& block) {
  const OneKey::D d;
  unsigned bits = 0;
  for (size_t i = 0; i < kUnit; ++i) {
    const OneKey key(hashes + i, [&](size_t) TEPAL_LAMBDA { return block(i); });
    bits |= unsigned{hn::AllFalse(d, hn::Eq(policy.Test(key), hn::Zero(d)))} << i;
  }
  return bits;
}

#endif

template <class Policy, class BlockOf>
HWY_INLINE auto TestUnit(const Policy& policy, const uint64_t* hashes, const BlockOf& block) {
  return TestBlocks(policy, hashes, block);
}
template <size_t kProbes, class BlockOf>
HWY_INLINE unsigned TestUnit(const RegisterPolicy<kProbes>& policy, const uint64_t* hashes,
                             const BlockOf& block) {
  return policy.TestKeys(hashes, block);
}

// What it returns.
template <class Policy>
using UnitResult = decltype(TestUnit(std::declval<const Policy&>(), nullptr,
                                     std::declval<const uint8_t* (*)(size_t)>()));

// Takes the results of units, in order, and makes the bitmap of them. The last unit may have more
// keys than there are.
template <class UnitResult>
class BitmapWriter {
 public:
  static_assert(std::is_same_v<UnitResult, unsigned>);  // a byte; none of the rest is set

  HWY_INLINE BitmapWriter(uint8_t* bitmap, size_t num_keys)
      : next_(bitmap), num_tail_(num_keys % kUnit) {}

  HWY_INLINE void Write(size_t /*i*/, unsigned present) {
    *next_++ = static_cast<uint8_t>(present);
    matches_ += hwy::PopCount(present);
  }

  // Returns how many keys are present.
  HWY_INLINE size_t Finish() {
    if (num_tail_ == 0) return matches_;
    uint8_t& last = next_[-1];
    const auto extra = static_cast<uint8_t>(last >> num_tail_ << num_tail_);
    last = static_cast<uint8_t>(last - extra);
    return matches_ - hwy::PopCount(extra);
  }

 private:
  uint8_t* next_;
  size_t num_tail_;
  size_t matches_ = 0;
};

#if TEPAL_HAVE_MASK_REGISTERS

// The masks wait until one instruction can test those of 64 keys. A loop of this alone took 0.54 ns
// a key, and 0.66 with a test for every 8 keys (AVX3_DL, Emerald Rapids, 16 KiB).
template <>
class BitmapWriter<UnitMasks> {
 public:
  HWY_INLINE BitmapWriter(uint8_t* bitmap, size_t num_keys)
      : bitmap_(bitmap), num_keys_(num_keys) {}

  HWY_INLINE void Write(size_t i, const UnitMasks& present) {
    // Volatile, or g++ 12 joins the masks in integer registers first: 1.72 to 1.86 times the limit
    // kernel's time, so 1.67 to 1.71.
    volatile uint16_t* masks = masks_ + i % kBatch / 2;
    for (size_t j = 0; j < kUnit / 2; ++j) masks[j] = present.pairs[j].raw;
    const size_t end = i + kUnit;
    if (end % kBatch == 0 && end <= num_keys_) WriteBatch(end - kBatch, kBatch);
  }

  HWY_INLINE size_t Finish() {
    const size_t num_tail = num_keys_ % kBatch;
    if (num_tail == 0) return matches_;
    memset(reinterpret_cast<uint8_t*>(masks_) + num_tail, 0, kBatch - num_tail);
    WriteBatch(num_keys_ - num_tail, num_tail);
    return matches_;
  }

 private:
  static constexpr size_t kBatch = 64;

  // A key is present if its mask has all eight bits.
  HWY_INLINE void WriteBatch(size_t begin, size_t num_keys) {
    const hn::CappedTag<uint8_t, kBatch> d;
    const auto masks = hn::Load(d, reinterpret_cast<const uint8_t*>(masks_));
    const uint64_t present = MaskToBits(d, hn::Eq(masks, hn::Set(d, 0xFF)));
    memcpy(bitmap_ + begin / 8, &present, (num_keys + 7) / 8);
    matches_ += hwy::PopCount(present);
  }

  alignas(64) uint16_t masks_[kBatch / 2];  // of two keys each
  uint8_t* bitmap_;
  size_t num_keys_;
  size_t matches_ = 0;
};

#endif  // TEPAL_HAVE_MASK_REGISTERS

// Calls touch(i, block) for each whole unit of keys; block(j) is where the block of key i + j
// starts.
template <class OffsetOf, class Byte, class Touch>
HWY_INLINE void ForEachUnit(const OffsetOf& offset_of, Byte* filter, const uint64_t* hashes,
                            size_t num_keys, const Touch& touch) {
  const size_t num_whole = num_keys / kUnit * kUnit;
  for (size_t i = 0; i < num_whole; i += kUnit) {
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
  BitmapWriter<UnitResult<Policy>> writer(bitmap, num_keys);
  ForEachUnit<kBlockBytes>(shape, filter, hashes, num_keys,
                           [&](size_t i, const auto& block) TEPAL_LAMBDA {
                             writer.Write(i, TestUnit(policy, hashes + i, block));
                           });
  if (const size_t num_tail = num_keys % kUnit; num_tail != 0) {
    uint64_t tail[kUnit] = {};  // any hash will do for the rest: each has a block
    memcpy(tail, hashes + num_keys - num_tail, num_tail * sizeof(uint64_t));
    const MultiplyHigh<kBlockBytes> offset_of(shape.num_blocks);
    const auto block = [&](size_t i) TEPAL_LAMBDA { return filter + offset_of(tail + i); };
    writer.Write(num_keys - num_tail, TestUnit(policy, tail, block));
  }
  return writer.Finish();
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#endif  // TEPAL_KERNELS_BLOCK_KERNEL_INL_H_
