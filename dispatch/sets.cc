#include "tepal/sets.h"

#include <cstddef>
#include <span>
#include <string>

#include "dispatch/active_kernels.h"
#include "dispatch/filter_access.h"
#include "dispatch/no_memory.h"
#include "dispatch/shrink_plan.h"
#include "kernels/layout_traits.h"

namespace tepal {
namespace {

const SetKernels& Kernels() { return *ActiveKernels().sets; }

// Why `other` cannot be joined into `into`, with the way out if there is one.
Status ExplainOrder(const Status& status, const Geometry& into, const Geometry& other) {
  if (!PlanShrink(into, other).ok()) return status;
  return Status::InvalidArgument(
      "the filter to be changed is the larger one (" + std::to_string(into.num_bits) +
      " bits, the other one " + std::to_string(other.num_bits) +
      "): Shrink it to the geometry of the other one first, or Merge both");
}

// The bytes that every key with the slot has a bit in: all ranges that the probe may fall into,
// which follow one another.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  bool operator==(const ByteRange&) const = default;
};

ByteRange BytesOfSlot(const SlotTable& table, const Slot& slot) {
  const SlotRange& first = table.ranges[slot.first_range];
  const SlotRange& last = table.ranges[slot.first_range + slot.num_ranges - 1];
  const uint64_t last_bits =
      table.use_masks ? last.reducer + 1 : last.reducer * Scattered::kLineBits;
  return {first.offset / 8, (last.offset + last_bits - first.offset) / 8};
}

// A probe that every key makes finds a common bit for a common key.
bool ScatteredDisjoint(const FilterView& a, const FilterView& b) {
  const SlotTable& table = *FilterAccess::Shape(a).table;
  ByteRange seen;
  for (size_t i = 0; i < table.num_slots; ++i) {
    if (table.slots[i].active_below != kAlwaysActive) continue;
    const ByteRange range = BytesOfSlot(table, table.slots[i]);
    if (range == seen) continue;  // all probes of a standard filter, for example
    if (!Kernels().common_bit(a.bytes().data() + range.begin, b.bytes().data() + range.begin,
                              range.size)) {
      return true;
    }
    seen = range;
  }
  return false;
}

// Precondition: equal geometries.
bool Disjoint(const FilterView& a, const FilterView& b) {
  const uint8_t* a_bytes = a.bytes().data();
  const uint8_t* b_bytes = b.bytes().data();
  switch (a.geometry().layout) {
    case Layout::kSplit256:
      return !Kernels().common_split256(a_bytes, b_bytes, a.bytes().size());
    case Layout::kSplit512:
      return !Kernels().common_split512(a_bytes, b_bytes, a.bytes().size());
    case Layout::kLine512:  // all bits of a key may coincide, so that one common bit is enough
    case Layout::kRegister:
      return !Kernels().common_bit(a_bytes, b_bytes, a.bytes().size());
    default:
      return ScatteredDisjoint(a, b);
  }
}

}  // namespace

Status Union(Filter& into, const FilterView& other) try {
  const std::span<uint8_t> bytes = FilterAccess::MutableBytes(into);
  if (into.geometry() == other.geometry()) {
    Kernels().or_bytes(other.bytes().data(), bytes.size(), bytes.data());
    return Status::Ok();
  }
  const Result<ShrinkPlan> plan = PlanShrink(other.geometry(), into.geometry());
  if (!plan.ok()) return ExplainOrder(plan.status(), into.geometry(), other.geometry());
  plan->Run(Kernels(), other.bytes().data(), bytes.data());
  return Status::Ok();
} catch (const std::exception&) {
  return NoMemory();
}

Status Intersect(Filter& into, const FilterView& other) try {
  const std::span<uint8_t> bytes = FilterAccess::MutableBytes(into);
  if (into.geometry() == other.geometry()) {
    Kernels().and_bytes(other.bytes().data(), bytes.size(), bytes.data());
    return Status::Ok();
  }
  const Result<Filter> shrunk = Shrink(other, into.geometry());
  if (!shrunk.ok()) return ExplainOrder(shrunk.status(), into.geometry(), other.geometry());
  Kernels().and_bytes(shrunk->bytes().data(), bytes.size(), bytes.data());
  return Status::Ok();
} catch (const std::exception&) {
  return NoMemory();
}

Result<Filter> Shrink(const FilterView& filter, const Geometry& smaller,
                      const MemoryOptions& memory) try {
  const Result<ShrinkPlan> plan = PlanShrink(filter.geometry(), smaller);
  if (!plan.ok()) return plan.status();
  Result<Filter> shrunk = Filter::Create(smaller, memory);
  if (!shrunk.ok()) return shrunk;
  plan->Run(Kernels(), filter.bytes().data(), FilterAccess::MutableBytes(*shrunk).data());
  return shrunk;
} catch (const std::exception&) {
  return NoMemory();
}

Result<Filter> Merge(const FilterView& a, const FilterView& b, const MemoryOptions& memory) try {
  const bool a_is_larger = a.geometry().num_bits > b.geometry().num_bits;
  const FilterView& larger = a_is_larger ? a : b;
  const FilterView& smaller = a_is_larger ? b : a;
  Result<Filter> merged = Shrink(larger, smaller.geometry(), memory);
  if (!merged.ok()) return merged;
  if (Status status = Union(*merged, smaller); !status.ok()) return status;
  return merged;
} catch (const std::exception&) {
  return NoMemory();
}

Result<bool> SurelyDisjoint(const FilterView& a, const FilterView& b) try {
  if (a.geometry() == b.geometry()) return Disjoint(a, b);
  const bool a_is_larger = a.geometry().num_bits > b.geometry().num_bits;
  const FilterView& larger = a_is_larger ? a : b;
  const FilterView& smaller = a_is_larger ? b : a;
  const Result<Filter> shrunk = Shrink(larger, smaller.geometry());
  if (!shrunk.ok()) return shrunk.status();
  return Disjoint(shrunk->View(), smaller);
} catch (const std::exception&) {
  return NoMemory();
}

double FillRatio(const FilterView& filter) {
  return static_cast<double>(Kernels().count_bits(filter.bytes().data(), filter.bytes().size())) /
         static_cast<double>(filter.geometry().num_bits);
}

}  // namespace tepal
