// From a bitmap of matches to a count or a selection vector.

#if defined(TEPAL_KERNELS_RESULT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TEPAL_KERNELS_RESULT_INL_H_
#undef TEPAL_KERNELS_RESULT_INL_H_
#else
#define TEPAL_KERNELS_RESULT_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/hwy_compat-inl.h"
#include "kernels/select_table.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Here rather than on the host side, because only a kernel may use the CPU's instruction for it.
HWY_INLINE size_t CountRows(const uint8_t* bitmap, size_t num_rows) {
  size_t count = 0;
  size_t i = 0;
  for (; i + 64 <= num_rows; i += 64) {
    uint64_t word;
    memcpy(&word, bitmap + i / 8, sizeof(word));
    count += hwy::PopCount(word);
  }
  for (; i < num_rows; i += 8) {
    const unsigned in_use = num_rows - i < 8 ? (1u << (num_rows - i)) - 1 : 0xFFu;
    count += hwy::PopCount(uint64_t{bitmap[i / 8] & in_use});
  }
  return count;
}

// The rows that a bitmap's bits stand for: either first_row + i ...
struct CountedRows {
  uint32_t first_row;

  template <class D32, class V32 = hn::Vec<D32>>
  HWY_INLINE V32 Get(D32 d, size_t begin, V32 index) const {
    return hn::Add(index, hn::Set(d, first_row + static_cast<uint32_t>(begin)));
  }
  HWY_INLINE uint32_t Get(size_t i) const { return first_row + static_cast<uint32_t>(i); }
};

// ... or entry i of a selection.
struct SelectedRows {
  const uint32_t* selection;

  template <class D32, class V32 = hn::Vec<D32>>
  HWY_INLINE V32 Get(D32 d, size_t begin, V32 index) const {
    const hn::RebindToSigned<D32> di;
    return hn::GatherIndex(d, selection + begin, hn::BitCast(di, index));
  }
  HWY_INLINE uint32_t Get(size_t i) const { return selection[i]; }
};

// Eight rows at a time: a table says which of them are kept, and eight entries are written, the
// kept ones first. The rest is overwritten later. It stays within `rows` because no more rows were
// kept than read, and within the part of `selection` already read if both are the same array.
// (Highway's CompressBitsStore with g++ 12 copies its 1 KiB table to the stack for each vector: 3.6
// ns a key.)
template <class Source>
HWY_INLINE size_t SelectByTable(uint8_t byte, size_t i, const Source& source, uint32_t* rows) {
  const hn::CappedTag<uint32_t, 8> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const uint8_t* set_bits = kSelectTable.set_bits[byte];
  for (size_t part = 0; part < 8; part += hn::Lanes(d)) {
    const auto index = hn::PromoteTo(d, hn::LoadU(d8, set_bits + part));
    hn::StoreU(source.Get(d, i, index), d, rows + part);
  }
  return hwy::PopCount(uint64_t{byte});
}

// One row after the other.
template <class Source>
HWY_INLINE size_t SelectByBit(uint64_t bits, size_t i, const Source& source, uint32_t* rows) {
  size_t count = 0;
  for (; bits != 0; bits &= bits - 1) {
    rows[count++] = source.Get(i + hwy::Num0BitsBelowLS1Bit_Nonzero64(bits));
  }
  return count;
}

// Few of 64 rows are faster one by one, for one mispredicted branch: where 0.5% match, a selection
// takes 0.03 to 0.04 ns a key more than a bitmap, with the table alone 0.16 to 0.19 (AVX2, Zen 3).
template <class Source>
HWY_INLINE size_t SelectMatches(const uint8_t* bitmap, size_t num_rows, const Source source,
                                uint32_t* rows) {
  constexpr size_t kFew = 8;
  size_t count = 0;
  size_t i = 0;
  for (; i + 64 <= num_rows; i += 64) {
    const uint64_t bits = LoadLittleEndian64(bitmap + i / 8);
    if (hwy::PopCount(bits) <= kFew) {
      count += SelectByBit(bits, i, source, rows + count);
      continue;
    }
    for (size_t j = i; j < i + 64; j += 8) {
      count += SelectByTable(bitmap[j / 8], j, source, rows + count);
    }
  }
  for (; i < num_rows; i += 8) {
    const unsigned in_use = num_rows - i < 8 ? (1u << (num_rows - i)) - 1 : 0xFFu;
    count += SelectByBit(bitmap[i / 8] & in_use, i, source, rows + count);
  }
  return count;
}

HWY_INLINE size_t SelectRows(const uint8_t* bitmap, size_t num_rows, uint32_t first_row,
                             uint32_t* rows) {
  return SelectMatches(bitmap, num_rows, CountedRows{first_row}, rows);
}

HWY_INLINE size_t SelectFromRows(const uint8_t* bitmap, size_t num_rows, const uint32_t* selection,
                                 uint32_t* rows) {
  return SelectMatches(bitmap, num_rows, SelectedRows{selection}, rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#endif  // TEPAL_KERNELS_RESULT_INL_H_
