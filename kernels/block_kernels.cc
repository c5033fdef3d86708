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
  return {InsertColumn<Policy>, ProbeColumn<Policy>, RequestBlocks<Policy::kBlockBytes>};
}

// Layouts whose policy depends on k: calls run(policy) with the right one.
struct RegisterPolicies {
  static constexpr uint32_t kBlockBytes = Register64::kBlockBits / 8;

  template <class Run>
  static auto With(const FilterShape& shape, const Run& run) {
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
};

struct Line512Policies {
  static constexpr uint32_t kBlockBytes = Line512::kBlockBits / 8;

  template <class Run>
  static auto With(const FilterShape& shape, const Run& run) {
    if (shape.num_probes <= 8) return run(Line512Policy<8>(shape));
    return run(Line512Policy<16>(shape));
  }
};

template <class Policies>
void InsertByProbes(const FilterShape& shape, const uint64_t* hashes, size_t num_keys,
                    uint8_t* filter) {
  Policies::With(shape, [&](const auto& policy) {
    InsertColumn<std::decay_t<decltype(policy)>>(shape, hashes, num_keys, filter);
  });
}

template <class Policies>
size_t ProbeByProbes(const FilterShape& shape, const uint8_t* filter, const uint64_t* hashes,
                     size_t num_keys, uint8_t* bitmap) {
  return Policies::With(shape, [&](const auto& policy) {
    return ProbeColumn<std::decay_t<decltype(policy)>>(shape, filter, hashes, num_keys, bitmap);
  });
}

template <class Policies>
constexpr LayoutKernels KernelsByProbes() {
  return {InsertByProbes<Policies>, ProbeByProbes<Policies>, RequestBlocks<Policies::kBlockBytes>};
}

const BlockKernels* GetBlockKernels() {
  static constexpr BlockKernels kTable = {
      HWY_TARGET, KernelsOf<Split256Policy>(), KernelsOf<Split512Policy>(),
      KernelsByProbes<Line512Policies>(), KernelsByProbes<RegisterPolicies>()};
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
