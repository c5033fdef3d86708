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

}  // namespace tepal

#endif  // TEPAL_KERNELS_SELECT_TABLE_H_
