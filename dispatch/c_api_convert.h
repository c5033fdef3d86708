// C structs and columns as C++ has them, and back.
#ifndef TEPAL_DISPATCH_C_API_CONVERT_H_
#define TEPAL_DISPATCH_C_API_CONVERT_H_

#include <cstdint>
#include <span>

#include "tepal/c_api.h"
#include "tepal/columns.h"
#include "tepal/container.h"
#include "tepal/geometry.h"
#include "tepal/memory.h"
#include "tepal/planner.h"

namespace tepal {

static_assert(TEPAL_LAYOUT_STANDARD == static_cast<int>(Layout::kStandard));
static_assert(TEPAL_LAYOUT_PARTITIONED == static_cast<int>(Layout::kPartitioned));
static_assert(TEPAL_LAYOUT_RATIONAL == static_cast<int>(Layout::kRational));
static_assert(TEPAL_LAYOUT_VARIABLE == static_cast<int>(Layout::kVariable));
static_assert(TEPAL_LAYOUT_VARIABLE_PAPER == static_cast<int>(Layout::kVariablePaper));
static_assert(TEPAL_LAYOUT_REGISTER == static_cast<int>(Layout::kRegister));
static_assert(TEPAL_LAYOUT_SPLIT256 == static_cast<int>(Layout::kSplit256));
static_assert(TEPAL_LAYOUT_SPLIT512 == static_cast<int>(Layout::kSplit512));
static_assert(TEPAL_LAYOUT_LINE512 == static_cast<int>(Layout::kLine512));
static_assert(TEPAL_HASH_XXH3 == static_cast<int>(HashKind::kXxh3));
static_assert(TEPAL_HASH_XXH64 == static_cast<int>(HashKind::kXxh64));

static_assert(TEPAL_KEYS_UNKNOWN == static_cast<int>(KeyKind::kUnknown));
static_assert(TEPAL_KEYS_U64 == static_cast<int>(KeyKind::kUint64));
static_assert(TEPAL_KEYS_U32 == static_cast<int>(KeyKind::kUint32));
static_assert(TEPAL_KEYS_STRINGS == static_cast<int>(KeyKind::kBytes));
static_assert(TEPAL_KEYS_HASHES == static_cast<int>(KeyKind::kHashes));

// An enumerator, or for a number that does not fit one that nobody has.
template <class Enum>
Enum ToEnum(int32_t value) {
  return static_cast<Enum>(value >= 0 && value < 255 ? value : 255);
}

inline Geometry ToGeometry(const tepal_geometry& geometry) {
  return {.layout = ToEnum<Layout>(geometry.layout),
          .num_bits = geometry.num_bits,
          .num_probes = geometry.num_probes,
          .rational_k = geometry.rational_k,
          .hash = ToEnum<HashKind>(geometry.hash),
          .seed = geometry.seed};
}

inline tepal_geometry FromGeometry(const Geometry& geometry) {
  tepal_geometry result = TEPAL_GEOMETRY_INIT;
  result.layout = static_cast<tepal_layout>(geometry.layout);
  result.hash = static_cast<tepal_hash_kind>(geometry.hash);
  result.num_bits = geometry.num_bits;
  result.seed = geometry.seed;
  result.rational_k = geometry.rational_k;
  result.num_probes = geometry.num_probes;
  return result;
}

inline MemoryOptions ToMemory(const tepal_memory* memory) {
  if (memory == nullptr) return {};
  return {.huge_pages = memory->no_huge_pages ? HugePages::kNever : HugePages::kAdvise,
          .allocator = {memory->allocate, memory->deallocate, memory->context}};
}

inline tepal_container_info FromInfo(const ContainerInfo& info) {
  tepal_container_info result = TEPAL_CONTAINER_INFO_INIT;
  result.geometry = FromGeometry(info.geometry);
  result.num_keys = info.num_keys;
  result.version = info.version;
  result.key_kind = static_cast<tepal_key_kind>(info.key_kind);
  return result;
}

inline Workload ToWorkload(const tepal_workload& work) {
  const auto needs = [&](uint32_t need) { return (work.needs & need) != 0; };
  return {.num_keys = work.num_keys,
          .max_fpr = work.max_fpr,
          .max_bytes = work.max_bytes,
          .hit_rate = work.hit_rate,
          .work_saved_ns = work.work_saved_ns,
          .num_probes = work.num_probes,
          .needs = {.set_union = needs(TEPAL_NEEDS_UNION),
                    .intersection = needs(TEPAL_NEEDS_INTERSECTION),
                    .disjointness = needs(TEPAL_NEEDS_DISJOINTNESS),
                    .shrink = needs(TEPAL_NEEDS_SHRINK),
                    .parquet = needs(TEPAL_NEEDS_PARQUET),
                    .power_of_two = needs(TEPAL_NEEDS_POWER_OF_TWO)}};
}

inline tepal_plan FromPlan(const FilterPlan& plan) {
  tepal_plan result = TEPAL_PLAN_INIT;
  result.geometry = FromGeometry(plan.geometry);
  result.predicted_fpr = plan.predicted_fpr;
  result.bits_per_key = plan.bits_per_key;
  result.ns_per_probe = plan.ns_per_probe;
  result.cost_ns = plan.cost_ns;
  result.no_filter_ns = plan.no_filter_ns;
  result.break_even_ns = plan.break_even_ns;
  result.pays_off = plan.pays_off;
  return result;
}

template <typename T>
std::span<const T> Values(const tepal_column& column) {
  return {static_cast<const T*>(column.values), column.num_rows};
}

template <typename Offset>
StringColumn Strings(const tepal_column& column) {
  return {static_cast<const char*>(column.values), static_cast<const Offset*>(column.offsets),
          column.num_rows};
}

// Calls keys(column, validity) with the type that C++ wants, or hashes(column, validity).
template <class Keys, class Hashes>
auto VisitColumn(const tepal_column& column, const Keys& keys, const Hashes& hashes) {
  const Validity validity{column.validity, column.validity_offset};
  switch (column.kind) {
    case TEPAL_COLUMN_U64:
      return keys(Values<uint64_t>(column), validity);
    case TEPAL_COLUMN_U32:
      return keys(Values<uint32_t>(column), validity);
    case TEPAL_COLUMN_STRINGS32:
      return keys(Strings<int32_t>(column), validity);
    case TEPAL_COLUMN_STRINGS64:
      return keys(Strings<int64_t>(column), validity);
    default:
      return hashes(Values<uint64_t>(column), validity);
  }
}

}  // namespace tepal

#endif  // TEPAL_DISPATCH_C_API_CONVERT_H_
