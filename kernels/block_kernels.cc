#include "kernels/kernel_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "kernels/block_kernel-inl.h"
#include "kernels/table_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {

template <class Policy>
constexpr LayoutKernels KernelsOf() {
  return {InsertColumn<Policy>, ProbeColumn<Policy>};
}

const BlockKernels* GetBlockKernels() {
  static constexpr BlockKernels kTable = {HWY_TARGET, KernelsOf<Split256Policy>()};
  return &kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tepal {

HWY_EXPORT(GetBlockKernels);

const BlockKernels& BlockKernelsFor(int64_t target) {
  return *TEPAL_CALL_FOR_TARGET(GetBlockKernels, target);
}

}  // namespace tepal
#endif  // HWY_ONCE
