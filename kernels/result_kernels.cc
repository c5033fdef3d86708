#include "kernels/kernel_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/result_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "kernels/result-inl.h"
#include "kernels/table_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {

const ResultKernels* GetResultKernels() {
  static constexpr ResultKernels kTable = {HWY_TARGET, CountRows, SelectRows, SelectFromRows};
  return &kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tepal {

HWY_EXPORT(GetResultKernels);

const ResultKernels& ResultKernelsFor(int64_t target) {
  return *TEPAL_CALL_FOR_TARGET(GetResultKernels, target);
}

}  // namespace tepal
#endif  // HWY_ONCE
