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

void InsertScattered(const FilterShape& shape, const uint64_t* hashes, size_t num_keys,
                     uint8_t* filter) {
  const SlotTable& table = *shape.table;
  const bool prefetch = shape.prefetch_keys != 0;
  const auto insert = table.use_masks
                          ? (prefetch ? InsertLanes<true, true> : InsertLanes<true, false>)
                          : (prefetch ? InsertLanes<false, true> : InsertLanes<false, false>);
  insert(table, hashes, num_keys, filter);
}

size_t ProbeScattered(const FilterShape& shape, const uint8_t* filter, const uint64_t* hashes,
                      size_t num_keys, uint8_t* bitmap) {
  const SlotTable& table = *shape.table;
  const bool prefetch = shape.prefetch_keys != 0;
  const auto probe = table.use_masks
                         ? (prefetch ? ProbeLanes<true, true> : ProbeLanes<true, false>)
                         : (prefetch ? ProbeLanes<false, true> : ProbeLanes<false, false>);
  return probe(table, filter, hashes, num_keys, bitmap);
}

const LaneKernels* GetLaneKernels() {
  static constexpr LaneKernels kTable = {HWY_TARGET, {InsertScattered, ProbeScattered}};
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
