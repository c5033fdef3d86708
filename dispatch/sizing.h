// Which sizes a layout is given: by Geometry::For and by the planner.
#ifndef TEPAL_DISPATCH_SIZING_H_
#define TEPAL_DISPATCH_SIZING_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/layout_traits.h"
#include "tepal/geometry.h"

namespace tepal {

// A good filter of about `num_bits` is a multiple of this many bits.
inline uint64_t SizeUnitBits(Layout layout, uint64_t num_bits, uint32_t num_probes) {
  uint64_t unit = RulesOf(layout).granule_bits;
  if (layout == Layout::kPartitioned) unit *= num_probes;
  // A block costs a comparison in each vector that may reach it: leave out those below 1/128 of the
  // largest. At most 8 blocks remain, and less than 0.8% of the bits is given up.
  if (layout == Layout::kVariable) unit = std::max(unit, std::bit_floor(num_bits) / 128);
  return unit;
}

}  // namespace tepal

#endif  // TEPAL_DISPATCH_SIZING_H_
