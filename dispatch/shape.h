// A Geometry as the kernels want it.
#ifndef TEPAL_DISPATCH_SHAPE_H_
#define TEPAL_DISPATCH_SHAPE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "dispatch/active_kernels.h"
#include "dispatch/cpu_caches.h"
#include "kernels/kernel_tables.h"
#include "tepal/geometry.h"
#include "tepal/status.h"

namespace tepal {

// Layouts with a SlotTable; the others have blocks.
constexpr bool IsScattered(Layout layout) { return layout <= Layout::kVariablePaper; }

// The powers of two that add up to num_bits, largest first, as visit(offset, size): the blocks of
// the variable layouts.
template <class Visit>
void ForEachBlock(uint64_t num_bits, const Visit& visit) {
  for (uint64_t offset = 0; offset < num_bits;) {
    const uint64_t size = std::bit_floor(num_bits - offset);
    visit(offset, size);
    offset += size;
  }
}

// The size above which a filter is prefetched. The more work a key is, the fewer loads a core finds
// ahead by itself, so that line512 takes 0.8 times the time with prefetching from 1.5 MiB on, where
// split256 and register gain nothing before 2 MiB. Of the scattered loads it finds enough as long
// as L3 answers them: at 3 to 16 MiB prefetching made `standard` 1.2 to 1.35 times slower, from 32
// to 48 MiB on up to 1.35 times faster (all AVX3_DL, Emerald Rapids, 2 MiB L2, 260 MiB L3). With an
// L3 of 32 MiB it took 0.98 times the time at 2 MiB, 0.85 at 6 MiB, 0.81 at 8 MiB and 0.3 at 12 MiB
// (AVX2, Zen 4).
inline size_t PrefetchFromBytes(Layout layout) {
  if (IsScattered(layout)) return std::min(16 * L2CacheBytes(), L3CacheBytes() / 8);
  return layout == Layout::kLine512 ? L2CacheBytes() / 8 * 5 : L2CacheBytes();
}

// The size above which it is prefetched kFarPrefetchKeys ahead, and that above which the requests
// are paced: with an L3 of 32 MiB, pacing made a prototype of split256 slower at 24 MiB (2.2 -> 2.6
// ns a key), the same at 32 MiB (2.7) and faster at 48 MiB (3.2 -> 2.8; AVX2, Zen 4).
inline size_t FarPrefetchFromBytes() { return 4 * L2CacheBytes(); }
inline size_t PacedPrefetchFromBytes() { return L3CacheBytes(); }

// Owns the slot table that the shape points to, if there is one.
struct OwnedShape {
  FilterShape shape;
  std::unique_ptr<SlotTable> table;
};

// Precondition: geometry.Validate().ok(). Fails only without memory.
Result<OwnedShape> MakeShape(const Geometry& geometry);

// The kernels that serve a layout.
const LayoutKernels& KernelsFor(const KernelSet& kernels, Layout layout);

}  // namespace tepal

#endif  // TEPAL_DISPATCH_SHAPE_H_
