#include "kernels/kernel_tables.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lane_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "kernels/lane_kernel-inl.h"
#include "kernels/table_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {

template <Prefetch kPrefetch>
void InsertWith(const SlotTable& table, const uint64_t* hashes, size_t num_keys, uint8_t* filter) {
  const auto insert =
      table.use_masks ? InsertLanes<true, kPrefetch> : InsertLanes<false, kPrefetch>;
  insert(table, hashes, num_keys, filter);
}

void InsertScattered(const FilterShape& shape, const uint64_t* hashes, size_t num_keys,
                     uint8_t* filter) {
  const auto insert = shape.prefetch == Prefetch::kNone    ? InsertWith<Prefetch::kNone>
                      : shape.prefetch == Prefetch::kPaced ? InsertWith<Prefetch::kPaced>
                                                           : InsertWith<Prefetch::kFar>;
  insert(*shape.table, hashes, num_keys, filter);
}

template <Prefetch kPrefetch>
size_t ProbeWith(const SlotTable& table, const uint8_t* filter, const uint64_t* hashes,
                 size_t num_keys, uint8_t* bitmap) {
  const auto probe = table.use_masks ? ProbeLanes<true, kPrefetch> : ProbeLanes<false, kPrefetch>;
  return probe(table, filter, hashes, num_keys, bitmap);
}

size_t ProbeScattered(const FilterShape& shape, const uint8_t* filter, const uint64_t* hashes,
                      size_t num_keys, uint8_t* bitmap) {
  const auto probe = shape.prefetch == Prefetch::kNone    ? ProbeWith<Prefetch::kNone>
                     : shape.prefetch == Prefetch::kPaced ? ProbeWith<Prefetch::kPaced>
                                                          : ProbeWith<Prefetch::kFar>;
  return probe(*shape.table, filter, hashes, num_keys, bitmap);
}

const LaneKernels* GetLaneKernels() {
  static constexpr LaneKernels kTable = {HWY_TARGET, {InsertScattered, ProbeScattered, nullptr}};
  return &kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tepal {

HWY_EXPORT(GetLaneKernels);

const LaneKernels& LaneKernelsFor(int64_t target) {
  return *TEPAL_CALL_FOR_TARGET(GetLaneKernels, target);
}

}  // namespace tepal
#endif  // HWY_ONCE
