#include "kernels/kernel_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/set_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "kernels/layout_traits.h"
#include "kernels/set-inl.h"
#include "kernels/table_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {

const SetKernels* GetSetKernels() {
  static constexpr SetKernels kTable = {
      HWY_TARGET,   CombineBytes<OrOperator>, CombineBytes<AndOperator>, CountBits,
      AnyCommonBit, AnyCommonBlock<Split256>, AnyCommonBlock<Split512>,  FoldUnits};
  return &kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tepal {

HWY_EXPORT(GetSetKernels);

const SetKernels& SetKernelsFor(int64_t target) {
  return *TEPAL_CALL_FOR_TARGET(GetSetKernels, target);
}

}  // namespace tepal
#endif  // HWY_ONCE
