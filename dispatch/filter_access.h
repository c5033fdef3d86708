// What library code may do with filters and users may not: write their bits, and see them as the
// kernels do.
#ifndef TEPAL_DISPATCH_FILTER_ACCESS_H_
#define TEPAL_DISPATCH_FILTER_ACCESS_H_

#include <cstdint>
#include <span>

#include "dispatch/shape.h"
#include "kernels/kernel_tables.h"
#include "tepal/filter.h"
#include "tepal/geometry.h"

namespace tepal {

// All that is known of a filter without its bits.
struct FilterCore {
  Geometry geometry;
  OwnedShape owned_shape;
};

struct FilterAccess {
  static std::span<uint8_t> MutableBytes(Filter& filter);
  static const FilterShape& Shape(const ProbeCalls& filter);
};

}  // namespace tepal

#endif  // TEPAL_DISPATCH_FILTER_ACCESS_H_
