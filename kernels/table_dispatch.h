// Fetches a per-target table without touching Highway's own choice of target, which other code in
// the process may use. For *_kernels.cc only, after HWY_EXPORT(function).
#ifndef TEPAL_KERNELS_TABLE_DISPATCH_H_
#define TEPAL_KERNELS_TABLE_DISPATCH_H_

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

namespace tepal {

// Where HWY_EXPORT keeps the function for `target`.
static inline size_t DispatchTableIndex(int64_t target) {
#if HWY_IDE || ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0)  // one target: the table has one entry
  static_cast<void>(target);
  return 0;
#else
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return chosen.GetIndex();
#endif
}

}  // namespace tepal

// Calls `function` as compiled for `target`.
#define TEPAL_CALL_FOR_TARGET(function, target) \
  HWY_DISPATCH_TABLE(function)[tepal::DispatchTableIndex(target)]()

#endif  // TEPAL_KERNELS_TABLE_DISPATCH_H_
