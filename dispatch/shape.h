// A Geometry as the kernels want it.
#ifndef TEPAL_DISPATCH_SHAPE_H_
#define TEPAL_DISPATCH_SHAPE_H_

#include <memory>

#include "dispatch/active_kernels.h"
#include "kernels/kernel_tables.h"
#include "tepal/geometry.h"
#include "tepal/status.h"

namespace tepal {

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
