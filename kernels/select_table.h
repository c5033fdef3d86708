// Which bits of a byte are set, in order: what turns a byte of a bitmap into a selection.
#ifndef TEPAL_KERNELS_SELECT_TABLE_H_
#define TEPAL_KERNELS_SELECT_TABLE_H_

#include <cstddef>
#include <cstdint>

namespace tepal {

struct SelectTable {
  // set_bits[byte] lists the set bits of `byte`, filled up with zeros.
  alignas(64) uint8_t set_bits[256][8];
};

constexpr SelectTable MakeSelectTable() {
  SelectTable table = {};
  for (size_t byte = 0; byte < 256; ++byte) {
    size_t count = 0;
    for (uint8_t bit = 0; bit < 8; ++bit) {
      if (byte >> bit & 1) table.set_bits[byte][count++] = bit;
    }
  }
  return table;
}

inline constexpr SelectTable kSelectTable = MakeSelectTable();

// The same for a vector of `kLanes` 64-bit lanes, as indices of its 32-bit halves.
template <size_t kLanes>
struct CompressTable {
  alignas(64) uint32_t halves[size_t{1} << kLanes][2 * kLanes];
};

template <size_t kLanes>
constexpr CompressTable<kLanes> MakeCompressTable() {
  CompressTable<kLanes> table = {};
  for (size_t bits = 0; bits < size_t{1} << kLanes; ++bits) {
    size_t count = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((bits >> lane & 1) == 0) continue;
      table.halves[bits][count++] = 2 * lane;
      table.halves[bits][count++] = 2 * lane + 1;
    }
  }
  return table;
}

template <size_t kLanes>
inline constexpr CompressTable<kLanes> kCompressTable = MakeCompressTable<kLanes>();

}  // namespace tepal

#endif  // TEPAL_KERNELS_SELECT_TABLE_H_
