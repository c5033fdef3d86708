// Whole filters as operands: OR, AND, counting bits, looking for common bits, folding. Bits are
// combined with bits at the same place of a byte, so nothing here depends on the order of bytes.

#if defined(TEPAL_KERNELS_SET_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TEPAL_KERNELS_SET_INL_H_
#undef TEPAL_KERNELS_SET_INL_H_
#else
#define TEPAL_KERNELS_SET_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/hwy_compat-inl.h"
#include "kernels/layout_traits.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct OrOperator {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Or(a, b);
  }
};

struct AndOperator {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::And(a, b);
  }
};

template <class Operator, class D>
HWY_INLINE void CombineVector(D d, const uint64_t* from, uint64_t* into) {
  hn::StoreU(Operator()(hn::LoadU(d, into), hn::LoadU(d, from)), d, into);
}

template <class Operator>
void CombineBytes(const uint8_t* from, size_t num_bytes, uint8_t* into) {
  const hn::ScalableTag<uint64_t> d;
  const hn::CappedTag<uint64_t, 1> one;
  const size_t lanes = hn::Lanes(d);
  const size_t num_words = num_bytes / sizeof(uint64_t);
  const uint64_t* from_words = reinterpret_cast<const uint64_t*>(from);
  uint64_t* into_words = reinterpret_cast<uint64_t*>(into);
  size_t i = 0;
  for (; i + 2 * lanes <= num_words; i += 2 * lanes) {
    CombineVector<Operator>(d, from_words + i, into_words + i);
    CombineVector<Operator>(d, from_words + i + lanes, into_words + i + lanes);
  }
  for (; i < num_words; ++i) CombineVector<Operator>(one, from_words + i, into_words + i);
}

HWY_INLINE uint64_t CountBits(const uint8_t* bytes, size_t num_bytes) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  const size_t num_words = num_bytes / sizeof(uint64_t);
  const uint64_t* words = reinterpret_cast<const uint64_t*>(bytes);
  uint64_t count = 0;
  size_t i = 0;
  if constexpr (!kScalarPopCount) {
    auto even = hn::Zero(d);
    auto odd = hn::Zero(d);
    for (; i + 2 * lanes <= num_words; i += 2 * lanes) {
      even = hn::Add(even, hn::PopulationCount(hn::LoadU(d, words + i)));
      odd = hn::Add(odd, hn::PopulationCount(hn::LoadU(d, words + i + lanes)));
    }
    count = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  }
  for (; i + 4 <= num_words; i += 4) {
    count += hwy::PopCount(words[i]) + hwy::PopCount(words[i + 1]) + hwy::PopCount(words[i + 2]) +
             hwy::PopCount(words[i + 3]);
  }
  for (; i < num_words; ++i) count += hwy::PopCount(words[i]);
  return count;
}

// Is any bit set in both?
HWY_INLINE bool AnyCommonBit(const uint8_t* a, const uint8_t* b, size_t num_bytes) {
  constexpr size_t kVectors = 4;  // looked at together: testing costs more than combining
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  const size_t num_words = num_bytes / sizeof(uint64_t);
  const uint64_t* a_words = reinterpret_cast<const uint64_t*>(a);
  const uint64_t* b_words = reinterpret_cast<const uint64_t*>(b);
  size_t i = 0;
  for (; i + kVectors * lanes <= num_words; i += kVectors * lanes) {
    auto common = hn::Zero(d);
    for (size_t j = i; j < i + kVectors * lanes; j += lanes) {
      common = hn::Or(common, hn::And(hn::LoadU(d, a_words + j), hn::LoadU(d, b_words + j)));
    }
    if (!hn::AllTrue(d, hn::Eq(common, hn::Zero(d)))) return true;
  }
  for (; i < num_words; ++i) {
    if ((a_words[i] & b_words[i]) != 0) return true;
  }
  return false;
}

// Is there a block of which every word has a common bit? Words of split512 lie half in the first
// 256 bits of a line and half in the second, in the same lane.
template <class Split>
bool AnyCommonBlock(const uint8_t* a, const uint8_t* b, size_t num_bytes) {
  constexpr size_t kBlockLanes = Split::kBlockBits / 32;
  const hn::CappedTag<uint32_t, Split::kWordsPerBlock> d;
  const uint32_t* a_lanes = reinterpret_cast<const uint32_t*>(a);
  const uint32_t* b_lanes = reinterpret_cast<const uint32_t*>(b);
  for (size_t block = 0; block < num_bytes / sizeof(uint32_t); block += kBlockLanes) {
    bool in_every_word = true;
    for (size_t word = block; word < block + Split::kWordsPerBlock; word += hn::Lanes(d)) {
      auto common = hn::Zero(d);
      for (size_t i = word; i < word + kBlockLanes; i += Split::kWordsPerBlock) {
        common = hn::Or(common, hn::And(hn::LoadU(d, a_lanes + i), hn::LoadU(d, b_lanes + i)));
      }
      in_every_word &= hn::AllFalse(d, hn::Eq(common, hn::Zero(d)));
    }
    if (in_every_word) return true;
  }
  return false;
}

// Units of at most one cache line: each result stays in a register.
template <size_t kUnitWords>
HWY_INLINE void FoldSmallUnits(const uint64_t* from, size_t divisor, size_t num_units,
                               uint64_t* into) {
  const hn::CappedTag<uint64_t, kUnitWords> d;
  for (size_t unit = 0; unit < num_units; ++unit, into += kUnitWords) {
    for (size_t i = 0; i < kUnitWords; i += hn::Lanes(d)) {
      auto sum = hn::LoadU(d, into + i);
      for (size_t j = 0; j < divisor; ++j) {
        sum = hn::Or(sum, hn::LoadU(d, from + j * kUnitWords + i));
      }
      hn::StoreU(sum, d, into + i);
    }
    from += divisor * kUnitWords;
  }
}

// The most frequent divisor as a constant, so that the compiler unrolls the loop over it.
template <size_t kUnitWords>
HWY_INLINE void FoldBlocks(const uint64_t* from, size_t divisor, size_t num_units, uint64_t* into) {
  if (divisor == 2) return FoldSmallUnits<kUnitWords>(from, 2, num_units, into);
  FoldSmallUnits<kUnitWords>(from, divisor, num_units, into);
}

// Long units: a piece of the result stays in L1 while all its sources run past it.
HWY_INLINE void FoldLongUnits(const uint8_t* from, size_t divisor, size_t unit_bytes,
                              size_t num_units, uint8_t* into) {
  constexpr size_t kPieceBytes = 8192;
  for (size_t unit = 0; unit < num_units; ++unit, into += unit_bytes) {
    for (size_t begin = 0; begin < unit_bytes; begin += kPieceBytes) {
      const size_t piece_bytes = HWY_MIN(kPieceBytes, unit_bytes - begin);
      for (size_t j = 0; j < divisor; ++j) {
        CombineBytes<OrOperator>(from + j * unit_bytes + begin, piece_bytes, into + begin);
      }
    }
    from += divisor * unit_bytes;
  }
}

void FoldUnits(const uint8_t* from, size_t divisor, size_t unit_bytes, size_t num_units,
               uint8_t* into) {
  const uint64_t* from_words = reinterpret_cast<const uint64_t*>(from);
  uint64_t* into_words = reinterpret_cast<uint64_t*>(into);
  if (divisor == 1) return CombineBytes<OrOperator>(from, unit_bytes * num_units, into);
  switch (unit_bytes) {  // the block sizes of the layouts
    case 8:
      return FoldBlocks<1>(from_words, divisor, num_units, into_words);
    case 32:
      return FoldBlocks<4>(from_words, divisor, num_units, into_words);
    case 64:
      return FoldBlocks<8>(from_words, divisor, num_units, into_words);
    default:
      return FoldLongUnits(from, divisor, unit_bytes, num_units, into);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#endif  // TEPAL_KERNELS_SET_INL_H_
