// How the bytes of a filter become those of a smaller one. Scalar arithmetic on geometries; the
// kernels do the folding.
#ifndef TEPAL_DISPATCH_SHRINK_PLAN_H_
#define TEPAL_DISPATCH_SHRINK_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/kernel_tables.h"
#include "tepal/geometry.h"
#include "tepal/status.h"

namespace tepal {

// Every unit of the smaller filter is the OR of `divisor` neighbouring units of the larger one.
struct Fold {
  uint64_t from_byte;
  uint64_t into_byte;
  uint64_t unit_bytes;
  uint64_t num_units;
};

struct ShrinkPlan {
  static constexpr size_t kMaxFolds = 40;  // blocks of a variable filter of kMaxBits

  uint64_t divisor = 1;
  std::array<Fold, kMaxFolds> folds = {};
  size_t num_folds = 0;

  void Add(const Fold& fold) { folds[num_folds++] = fold; }

  // into |= from, made smaller.
  void Run(const SetKernels& kernels, const uint8_t* from, uint8_t* into) const {
    for (size_t i = 0; i < num_folds; ++i) {
      const Fold& f = folds[i];
      kernels.fold(from + f.from_byte, divisor, f.unit_bytes, f.num_units, into + f.into_byte);
    }
  }
};

// An error if no key could be found again, or if it is not known that all would be. Precondition:
// from.Validate().ok().
Result<ShrinkPlan> PlanShrink(const Geometry& from, const Geometry& into);

}  // namespace tepal

#endif  // TEPAL_DISPATCH_SHRINK_PLAN_H_
