#include <type_traits>

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

// Calls run(policy) with the policy for the number of probes.
template <class Run>
void WithRegisterPolicy(const FilterShape& shape, const Run& run) {
  switch (shape.num_probes) {
    case 3:
      return run(RegisterPolicy<3>(shape));
    case 4:
      return run(RegisterPolicy<4>(shape));
    case 5:
      return run(RegisterPolicy<5>(shape));
    default:
      return run(RegisterPolicy<6>(shape));
  }
}

void InsertRegister(const FilterShape& shape, const uint64_t* hashes, size_t num_keys,
                    uint8_t* filter) {
  WithRegisterPolicy(shape, [&](const auto& policy) {
    InsertColumn<std::decay_t<decltype(policy)>>(shape, hashes, num_keys, filter);
  });
}

void ProbeRegister(const FilterShape& shape, const uint8_t* filter, const uint64_t* hashes,
                   size_t num_keys, uint8_t* bitmap) {
  WithRegisterPolicy(shape, [&](const auto& policy) {
    ProbeColumn<std::decay_t<decltype(policy)>>(shape, filter, hashes, num_keys, bitmap);
  });
}

const BlockKernels* GetBlockKernels() {
  static constexpr BlockKernels kTable = {HWY_TARGET,
                                          KernelsOf<Split256Policy>(),
                                          KernelsOf<Split512Policy>(),
                                          KernelsOf<Line512Policy>(),
                                          {InsertRegister, ProbeRegister}};
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
