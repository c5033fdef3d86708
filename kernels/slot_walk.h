// The bits of one key of a scattered layout, one after another, in scalar code: for inserts that
// must not share a word with another thread's. The lane kernel does the same for a vector of keys.
#ifndef TEPAL_KERNELS_SLOT_WALK_H_
#define TEPAL_KERNELS_SLOT_WALK_H_

#include <cstdint>

#include "kernels/kernel_tables.h"
#include "kernels/layout_traits.h"

namespace tepal {

inline uint64_t ReduceToRange(const SlotTable& table, const SlotRange& range, uint64_t g) {
  if (table.use_masks) return range.offset + (g >> table.mask_shift & range.reducer);
  const uint64_t line = (g >> 32) * range.reducer >> 32;
  const uint64_t bit = g >> Scattered::kLineShift & (Scattered::kLineBits - 1);
  return range.offset + line * Scattered::kLineBits + bit;
}

// Calls visit(position) for each bit that a key of this hash sets.
template <class Visit>
void ForEachPosition(const SlotTable& table, uint64_t hash, const Visit& visit) {
  constexpr uint64_t kOne = uint64_t{1} << Scattered::kRowBits;  // of h1 and h2
  uint64_t g = hash & ~(kOne - 1);
  const uint64_t y = (g ^ g >> 32) * Scattered::kRemixFactor;
  const uint64_t r = y ^ y >> 32;
  const uint64_t u = r >> 32;
  uint64_t step = (r & ~(kOne - 1)) | kOne;
  for (uint32_t i = 0; i < table.num_slots; ++i) {
    const Slot& slot = table.slots[i];
    if (slot.advance) {
      g += step;
      if (table.steps_grow) step *= Scattered::kStepGrowth;
    }
    if (u >= slot.active_below) continue;
    const SlotRange* range = table.ranges + slot.first_range;
    const SlotRange* last = range + slot.num_ranges - 1;
    while (range < last && u >= range[1].from_u) ++range;
    visit(ReduceToRange(table, *range, g));
  }
}

}  // namespace tepal

#endif  // TEPAL_KERNELS_SLOT_WALK_H_
