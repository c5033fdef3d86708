#include "kernels/kernel_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/hash_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "kernels/hash-inl.h"
#include "kernels/table_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {

template <class Hasher, typename Key>
void HashKeys(const Key* keys, size_t num_keys, uint64_t seed, uint64_t* hashes) {
  HashColumn(Hasher(seed), keys, num_keys, hashes);
}

const HashKernels* GetHashKernels() {
  static constexpr HashKernels kTable = {HWY_TARGET, HashKeys<Xxh3, uint64_t>,
                                         HashKeys<Xxh64, uint64_t>, HashKeys<Xxh3, uint32_t>,
                                         HashKeys<Xxh64, uint32_t>};
  return &kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tepal {

HWY_EXPORT(GetHashKernels);

const HashKernels& HashKernelsFor(int64_t target) {
  return *TEPAL_CALL_FOR_TARGET(GetHashKernels, target);
}

int64_t CompiledTargetMask() { return HWY_TARGETS; }

}  // namespace tepal
#endif  // HWY_ONCE
