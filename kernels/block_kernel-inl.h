// One key per vector: all bits of a key lie in one block. A policy says how a key is inserted into
// its block and tested; the loops, the addressing and the reduction to result bits are the same for
// all. (A block of `register` is one word, so its policy tests one key per lane.)

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
constexpr size_t kByteKeys = 8;

// Keys that are tested together: packs bring the answers of 16 into one vector.
constexpr size_t kUnit = 2 * kByteKeys;

// A key, its block, and vectors of at most 256 bits, which is what Parquet's blocks have. Vectors
// of 512 bits with two keys each, tested to mask registers, took 0.59 to 0.61 ns a key where this
// takes 0.48 (split256, AVX3_DL, Zen 4, 16 KiB); llvm-mca has them 7% ahead on Sapphire Rapids.
class OneKey {
 public:
  using D = hn::CappedTag<uint32_t, 8>;
  using V = hn::Vec<D>;

  // How many words of a key one vector holds.
  static HWY_INLINE size_t Lanes() { return hn::Lanes(D()); }

  HWY_INLINE OneKey(const uint64_t* hash, const uint8_t* block) : hash_(hash), block_(block) {}

  // The key times each of the factors.
  HWY_INLINE V Product(const uint32_t* factors) const {
    return hn::Mul(hn::Set(D(), LowHalf(hash_)), hn::LoadU(D(), factors));
  }
  // The words of the block from the given one on.
  HWY_INLINE V Words(size_t first) const {
    return hn::LoadU(D(), reinterpret_cast<const uint32_t*>(block_) + first);
  }
  // In each lane, the word of 16 that the top bits of the product say.
  HWY_INLINE V Word16(V product) const {
    return LookupWord16(D(), reinterpret_cast<const uint32_t*>(block_), product);
  }

 private:
  const uint64_t* hash_;
  const uint8_t* block_;
};

// 1 << (product >> kBitShift) % 32 in each word.
template <int kBitShift, class D32, class V32 = hn::Vec<D32>>
HWY_INLINE V32 BitOfProduct(D32 d, V32 product) {
  constexpr bool kIsBelow32 = kBitShift == 32 - 5;
  return LittleEndian32(d, BitAt<kIsBelow32>(d, hn::ShiftRight<kBitShift>(product)));
}

class Split256Policy {
 public:
  static constexpr uint32_t kBlockBytes = Split256::kBlockBits / 8;
  static constexpr size_t kKeyBits = Split256::kWordsPerBlock;

  explicit Split256Policy(const FilterShape&) {}

  // Sets the bits of a key in its block.
  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    const OneKey key(hash, block);
    uint32_t* words = reinterpret_cast<uint32_t*>(block);
    for (size_t i = 0; i < Split256::kWordsPerBlock; i += OneKey::Lanes()) {
      hn::StoreU(hn::Or(key.Words(i), Bits(key, i)), OneKey::D(), words + i);
    }
  }

  // Calls test(words, bits) with a vector of the kKeyBits bits of a key, from the given one on, and
  // the words of its block that they belong into.
  template <class Test>
  HWY_INLINE auto TestBits(const OneKey& key, size_t first, const Test& test) const {
    return test(key.Words(first), Bits(key, first));
  }

 private:
  static HWY_INLINE OneKey::V Bits(const OneKey& key, size_t first_word) {
    return BitOfProduct<Split256::kBitShift>(OneKey::D(), key.Product(kSalts + first_word));
  }
};

// Each word has a half in either half of the line, at the same lane: the top bit of the product
// says which one the key's bit lies in.
class Split512Policy {
 public:
  static constexpr uint32_t kBlockBytes = Split512::kBlockBits / 8;
  static constexpr size_t kKeyBits = Split512::kWordsPerBlock;

  explicit Split512Policy(const FilterShape&) {}

  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    const OneKey::D d;
    const auto none = hn::Zero(d);
    const OneKey key(hash, block);
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

  template <class Test>
  HWY_INLINE auto TestBits(const OneKey& key, size_t first, const Test& test) const {
    const OneKey::D d;
    const auto product = key.Product(kSalts + first);
    const auto second_half = key.Words(first + Split512::kWordsPerBlock);
    return test(IfTopBitThenElse(d, product, second_half, key.Words(first)),
                BitOfProduct<Split512::kBitShift>(d, product));
  }
};

// kProbeLimit (8 or 16) is k rounded up, so that the loop has a fixed length.
template <size_t kProbeLimit>
class Line512Policy {
 public:
  static constexpr uint32_t kBlockBytes = Line512::kBlockBits / 8;
  static constexpr size_t kKeyBits = kProbeLimit;

  explicit Line512Policy(const FilterShape& shape) : num_probes_(shape.num_probes) {
    for (size_t i = 0; i < kProbeLimit; ++i) factors_[i] = kSalts[i < num_probes_ ? i : 0];
  }

  HWY_INLINE void Insert(const uint64_t* hash, uint8_t* block) const {
    for (size_t i = 0; i < num_probes_; ++i) {
      const uint32_t bit = LowHalf(hash) * kSalts[i] >> Line512::kBitShift;
      block[bit / 8] = static_cast<uint8_t>(block[bit / 8] | 1u << (bit % 8));
    }
  }

  // One probe per lane; lanes that are left over repeat the first one.
  template <class Test>
  HWY_INLINE auto TestBits(const OneKey& key, size_t first, const Test& test) const {
    const auto product = key.Product(factors_ + first);
    // Bits 31..28 of the product choose the word, bits 27..23 the bit.
    return test(key.Word16(product), BitOfProduct<Line512::kBitShift>(OneKey::D(), product));
  }

 private:
  size_t num_probes_;
  uint32_t factors_[kProbeLimit];
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

  // The same for a unit of keys, whose words start at block(0), block(1) ... 0.6 ns a key instead
  // of 2.9 (AVX2, Zen 4, 16 KiB).
  template <class BlockOf>
  HWY_INLINE void InsertKeys(const uint64_t* hashes, const BlockOf& block) const {
    const hn::CappedTag<uint64_t, kByteKeys> d;
    uint64_t masks[kUnit];
    for (size_t i = 0; i < kUnit; i += hn::Lanes(d)) {
      hn::StoreU(LittleEndian64(d, Mask(d, hn::LoadU(d, hashes + i))), d, masks + i);
    }
    for (size_t i = 0; i < kUnit; ++i) {
      uint8_t* bytes = block(i);
      uint64_t word;
      memcpy(&word, bytes, sizeof(word));
      word |= masks[i];
      memcpy(bytes, &word, sizeof(word));
    }
  }

  // Bit i: is key i in its word, which starts at block(i)?
  template <size_t kKeys, class BlockOf>
  HWY_INLINE unsigned TestKeys(const uint64_t* hashes, const BlockOf& block) const {
    const hn::CappedTag<uint64_t, kByteKeys> d;
    uint64_t bits = 0;
    for (size_t i = 0; i < kKeys; i += hn::Lanes(d)) {
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

// Does a vector hold all bits of a key? (Not if the compiler does not know how long vectors are.)
template <class Policy>
constexpr bool kIsOneVector =
    (Policy::kKeyBits <= hn::MaxLanes(OneKey::D())) && TEPAL_HAVE_SIZED_VECTORS;

// The bits of the key that its block lacks: all lanes are zero if there are none.
template <class Policy>
HWY_INLINE OneKey::V Missing(const Policy& policy, const OneKey& key) {
  const auto missing = [](OneKey::V words, OneKey::V bits)
                           TEPAL_LAMBDA { return MissingBits(OneKey::D(), words, bits); };
  OneKey::V all = policy.TestBits(key, 0, missing);
  for (size_t i = OneKey::Lanes(); i < Policy::kKeyBits; i += OneKey::Lanes()) {
    all = hn::Or(all, policy.TestBits(key, i, missing));
  }
  return all;
}

#if TEPAL_HAVE_BLOCK_PACKS

// Bit i: is key i in its block, which starts at block(i)? A tree of packs narrows the outcomes of
// 16 keys to one byte per key and 128-bit block of the vector, and packs have a unit to themselves
// where Intel's multiplications and shifts share two. 0.77 ns a key; eight keys 0.81 to 0.83; one
// test and set per key 1.21 (AVX2, Emerald Rapids, 16 KiB; prototypes that do not count matches).
// On Zen 4 (AVX2) 0.55, with eight keys 0.59, with 32 0.58.
template <size_t kKeys, class Policy, class BlockOf>
HWY_INLINE unsigned TestByPacks(const Policy& policy, const uint64_t* hashes,
                                const BlockOf& block) {
  static_assert(kKeys == kByteKeys || kKeys == 2 * kByteKeys);
  const hn::RebindToSigned<OneKey::D> d32;
  const hn::Repartition<uint8_t, OneKey::D> d8;
  // Which bits are there, if a vector holds all of a key: lanes that are zero lack theirs. AVX2's
  // "and" takes the block from memory, as its and-not cannot: 0.54 ns a key instead of 0.56 with
  // g++ and 0.57 with clang (split256, Zen 4, 16 KiB). It takes a comparison more per four keys,
  // which cost a prototype 5% on Emerald Rapids; but servers with AVX2 and no AVX-512 are mostly
  // AMD's.
  constexpr bool kPresent = HWY_TARGET == HWY_AVX2 && kIsOneVector<Policy>;
  const auto of1 = [&](size_t i) TEPAL_LAMBDA {
    const OneKey key(hashes + i, block(i));
    if constexpr (kPresent) {
      return hn::BitCast(d32, policy.TestBits(key, 0,
                                              [](OneKey::V words, OneKey::V bits)
                                                  TEPAL_LAMBDA { return hn::And(words, bits); }));
    }
    return hn::BitCast(d32, Missing(policy, key));
  };
  const auto of2 = [&](size_t i) TEPAL_LAMBDA {
    const auto first = of1(i);
    return PackTo16(first, of1(i + 1));
  };
  const auto of4 = [&](size_t i) TEPAL_LAMBDA {  // a 32-bit lane per key, zero if it lacks nothing
    const auto first = of2(i);
    auto bytes = PackTo8(first, of2(i + 2));
    if constexpr (kPresent) {
      bytes = hn::VecFromMask(hn::Eq(bytes, hn::Zero(hn::DFromV<decltype(bytes)>())));
    }
    return hn::BitCast(d32, bytes);
  };
  const auto of8 = [&](size_t i) TEPAL_LAMBDA {
    const auto first = of4(i);
    return PackTo16(first, of4(i + 4));
  };
  const auto first = of8(0);
  const auto of_all = hn::BitCast(d8, PackTo8(first, kKeys == kByteKeys ? first : of8(kByteKeys)));
  return ZeroBytes16(d8, of_all) & ((1u << kKeys) - 1);
}

#endif

// The same for one key after the other.
template <size_t kKeys, class Policy, class BlockOf>
HWY_INLINE unsigned TestOneByOne(const Policy& policy, const uint64_t* hashes,
                                 const BlockOf& block) {
  const OneKey::D d;
  unsigned present = 0;
  HWY_UNROLL(16)  // line512, AVX2: 0.86 ns a key, else 0.91
  for (size_t n = 0; n < kKeys; ++n) {
    const size_t i = kKeys - 1 - n;
    const OneKey key(hashes + i, block(i));
    if constexpr (kIsOneVector<Policy>) {
      present = policy.TestBits(key, 0, [=](OneKey::V words, OneKey::V bits) TEPAL_LAMBDA {
        return AppendContains(d, present, words, bits);
      });
    } else {
      present = AppendContains(d, present, hn::Zero(d), Missing(policy, key));
    }
  }
  return present;
}

// Where a test answers by the carry flag, blocks of more than one vector do better one by one. ns a
// key at 16 KiB (Zen 4, g++), one by one and with packs: line512 0.86 and 0.97 (AVX2), 0.69 and
// 0.74 (AVX3_DL); split512 0.71 and 0.74, 0.62 and 0.68; but split256 0.59 and 0.54 (AVX2). On
// Emerald Rapids neither is better: line512 1.76 and 1.76 (AVX2), 1.22 and 1.13 (AVX3_DL); split512
// 1.45 and 1.44, 1.17 and 1.21.
template <size_t kKeys, class Policy, class BlockOf>
HWY_INLINE unsigned TestUnit(const Policy& policy, const uint64_t* hashes, const BlockOf& block) {
#if TEPAL_HAVE_BLOCK_PACKS
  if constexpr (!TEPAL_HAVE_CARRY_TEST || Policy::kBlockBytes <= 32) {
    return TestByPacks<kKeys>(policy, hashes, block);
  }
#endif
  return TestOneByOne<kKeys>(policy, hashes, block);
}
template <size_t kKeys, size_t kProbes, class BlockOf>
HWY_INLINE unsigned TestUnit(const RegisterPolicy<kProbes>& policy, const uint64_t* hashes,
                             const BlockOf& block) {
  return policy.template TestKeys<kKeys>(hashes, block);
}

template <class Policy, class BlockOf>
HWY_INLINE void InsertUnit(const Policy& policy, const uint64_t* hashes, const BlockOf& block) {
  for (size_t i = 0; i < kUnit; ++i) policy.Insert(hashes + i, block(i));
}
template <size_t kProbes, class BlockOf>
HWY_INLINE void InsertUnit(const RegisterPolicy<kProbes>& policy, const uint64_t* hashes,
                           const BlockOf& block) {
  policy.InsertKeys(hashes, block);
}

// Takes the results of kKeys keys at a time, one bit a key and in order, and makes the bitmap of
// them. The last byte may have more keys than there are.
class BitmapWriter {
 public:
  HWY_INLINE BitmapWriter(uint8_t* bitmap, size_t num_keys)
      : next_(bitmap), num_tail_(num_keys % kByteKeys) {}

  template <size_t kKeys>
  HWY_INLINE void Write(unsigned present) {
    for (size_t bit = 0; bit < kKeys; bit += 8) *next_++ = static_cast<uint8_t>(present >> bit);
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

// How many keys before its test the hash of a key is asked for.
constexpr size_t kHashPrefetchKeys = 256;

// Asks for a unit of hashes. CPUs do so by themselves for arrays that are read in order, but too
// late between so many requests for blocks: 3.9 -> 3.5 ns a key (64 MiB), 1.3 -> 1.1 (4 MiB; AVX2,
// Zen 4, hashes in memory).
HWY_INLINE void PrefetchHashes(const uint64_t* hashes) {
  constexpr size_t kLineHashes = 64 / sizeof(uint64_t);
  for (size_t i = 0; i < kUnit; i += kLineHashes) hwy::Prefetch(hashes + i);
}

// The same for filters in memory: whoever takes a block also asks for the block of the key `ahead`
// keys later. Offsets wait in a ring; computing them twice costs 0.08 ns (4 MiB, Zen 4).
template <Prefetch kPrefetch, class OffsetOf, class Byte, class Touch>
HWY_INLINE void ForEachUnitPrefetched(const OffsetOf& offset_of, Byte* filter,
                                      const uint64_t* hashes, size_t num_keys, const Touch& touch) {
  constexpr size_t kAhead = kPrefetch == Prefetch::kNear ? kNearPrefetchKeys : kFarPrefetchKeys;
  static_assert(kAhead % kUnit == 0);
  size_t ring[kAhead];
  const auto request = [&](const uint64_t* hash, size_t* offset) TEPAL_LAMBDA {
    *offset = offset_of(hash);
    RequestLine<kPrefetch>(filter + *offset);
  };
  const size_t num_whole = num_keys / kUnit * kUnit;
  for (size_t i = 0; i < HWY_MIN(kAhead, num_whole); ++i) request(hashes + i, ring + i);
  size_t i = 0;
  for (; i + kAhead < num_whole; i += kUnit) {
    PrefetchHashes(hashes + HWY_MIN(i + kHashPrefetchKeys, num_whole - kUnit));
    size_t* offsets = ring + i % kAhead;
    touch(i, [&](size_t j) TEPAL_LAMBDA {
      Byte* block = filter + offsets[j];
      request(hashes + i + kAhead + j, offsets + j);
      return block;
    });
  }
  for (; i < num_whole; i += kUnit) {
    const size_t* offsets = ring + i % kAhead;
    touch(i, [=](size_t j) TEPAL_LAMBDA { return filter + offsets[j]; });
  }
}

// Calls touch(i, block) for each whole unit of keys, in the way that suits the filter.
template <uint32_t kBlockBytes, class Byte, class Touch>
HWY_INLINE void ForEachUnit(const FilterShape& shape, Byte* filter, const uint64_t* hashes,
                            size_t num_keys, const Touch& touch) {
  const MultiplyHigh<kBlockBytes> offset_of(shape.num_blocks);
  switch (shape.prefetch) {
    case Prefetch::kNear:
      return ForEachUnitPrefetched<Prefetch::kNear>(offset_of, filter, hashes, num_keys, touch);
    case Prefetch::kPaced:
      if (num_keys > kUnpacedKeys) {
        return ForEachUnitPrefetched<Prefetch::kPaced>(offset_of, filter, hashes, num_keys, touch);
      }
      [[fallthrough]];
    case Prefetch::kFar:
      return ForEachUnitPrefetched<Prefetch::kFar>(offset_of, filter, hashes, num_keys, touch);
    case Prefetch::kNone:
      break;
  }
  if (TopBitsOffset<kBlockBytes>::Serves(shape.num_blocks)) {
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
                           [&](size_t i, const auto& block)
                               TEPAL_LAMBDA { InsertUnit(policy, hashes + i, block); });
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
  BitmapWriter writer(bitmap, num_keys);
  ForEachUnit<kBlockBytes>(shape, filter, hashes, num_keys,
                           [&](size_t i, const auto& block) TEPAL_LAMBDA {
                             writer.Write<kUnit>(TestUnit<kUnit>(policy, hashes + i, block));
                           });
  const MultiplyHigh<kBlockBytes> offset_of(shape.num_blocks);
  for (size_t i = num_keys / kUnit * kUnit; i < num_keys; i += kByteKeys) {
    const uint64_t* keys = hashes + i;
    uint64_t tail[kByteKeys] = {};  // any hash will do for the rest: each has a block
    if (num_keys - i < kByteKeys) {
      memcpy(tail, keys, num_keys % kByteKeys * sizeof(uint64_t));
      keys = tail;
    }
    const auto block = [&](size_t j) TEPAL_LAMBDA { return filter + offset_of(keys + j); };
    writer.Write<kByteKeys>(TestUnit<kByteKeys>(policy, keys, block));
  }
  return writer.Finish();
}

template <uint32_t kBlockBytes>
void RequestBlocks(const FilterShape& shape, const uint8_t* filter, const uint64_t* hashes,
                   size_t num_keys) {
  const MultiplyHigh<kBlockBytes> offset_of(shape.num_blocks);
  if (shape.prefetch == Prefetch::kPaced) {
    for (size_t i = 0; i < num_keys; ++i) {
      RequestLine<Prefetch::kPaced>(filter + offset_of(hashes + i));
    }
  } else {
    for (size_t i = 0; i < num_keys; ++i) {
      RequestLine<Prefetch::kFar>(filter + offset_of(hashes + i));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#endif  // TEPAL_KERNELS_BLOCK_KERNEL_INL_H_
