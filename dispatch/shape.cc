#include "dispatch/shape.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <new>
#include <utility>

#include "kernels/layout_traits.h"

namespace tepal {
namespace {

__extension__ using uint128_t = unsigned __int128;

constexpr uint64_t kTwo32 = uint64_t{1} << 32;

// Fills a SlotTable from LAYOUTS.md, "Scattered layouts".
class SlotTableBuilder {
 public:
  explicit SlotTableBuilder(SlotTable* table) : table_(*table) {
    table_ = {};
    table_.steps_grow = true;
  }

  // How positions are reduced: once for the whole filter, to ranges of `size` bits.
  void ReduceTo(uint64_t size) {
    table_.use_masks = std::has_single_bit(size);
    table_.mask_shift = Scattered::kMaskShift;
  }
  void ReduceByMask() {
    table_.use_masks = true;
    table_.mask_shift = Scattered::kMaskShift;
  }
  // As printed in the paper: all bits of h1, and equal steps.
  void ReduceAsPrinted() {
    table_.use_masks = true;
    table_.mask_shift = Scattered::kRowBits;
    table_.steps_grow = false;
  }

  // A further probe; AddRange() says where it may fall. Only the first one does not advance by
  // itself.
  void AddSlot(bool advance, uint64_t active_below = kAlwaysActive) {
    if (advance && table_.steps_grow) unstep_ *= Scattered::kStepGrowthInverse;
    table_.slots[table_.num_slots++] = {num_ranges_, 0, advance, active_below, unstep_};
  }
  void AddRange(uint64_t from_u, uint64_t offset, uint64_t size) {
    const uint64_t reducer = table_.use_masks ? size - 1 : size / Scattered::kLineBits;
    table_.ranges[num_ranges_++] = {from_u, reducer, offset};
    ++table_.slots[table_.num_slots - 1].num_ranges;
  }

  void AddStandard(uint64_t num_bits, uint32_t num_probes) {
    for (uint32_t t = 0; t < num_probes; ++t) {
      AddSlot(t != 0);
      AddRange(0, 0, num_bits);
    }
  }

 private:
  SlotTable& table_;
  uint32_t num_ranges_ = 0;
  uint64_t unstep_ = 1;
};

// k = whole + share / 2^32.
struct RationalProbes {
  explicit RationalProbes(double k)
      : whole(static_cast<uint32_t>(std::floor(k))),
        share(
            static_cast<uint64_t>(std::floor((k - std::floor(k)) * static_cast<double>(kTwo32)))) {}
  uint32_t whole;
  uint64_t share;
};

void AddPartitioned(const Geometry& geometry, SlotTableBuilder& builder) {
  const uint64_t part_bits = geometry.num_bits / geometry.num_probes;
  builder.ReduceTo(part_bits);
  for (uint32_t t = 0; t < geometry.num_probes; ++t) {
    builder.AddSlot(t != 0);
    builder.AddRange(0, t * part_bits, part_bits);
  }
}

void AddRational(const Geometry& geometry, SlotTableBuilder& builder) {
  const RationalProbes probes(geometry.rational_k);
  builder.ReduceTo(geometry.num_bits);
  builder.AddStandard(geometry.num_bits, probes.whole);
  if (probes.share == 0) return;
  builder.AddSlot(true, probes.share);
  builder.AddRange(0, 0, geometry.num_bits);
}

void AddVariable(const Geometry& geometry, SlotTableBuilder& builder) {
  builder.ReduceByMask();
  uint64_t begin = 0;  // of the block, on the scale of t * 2^32 + u
  ForEachBlock(geometry.num_bits, [&](uint64_t offset, uint64_t size) {
    const auto end = static_cast<uint64_t>(uint128_t{kTwo32} * geometry.num_probes *
                                           (offset + size) / geometry.num_bits);
    for (uint64_t t = begin / kTwo32; t * kTwo32 < end; ++t) {
      if (t * kTwo32 >= begin) builder.AddSlot(t != 0);  // the block reaches into a new slot
      builder.AddRange(begin > t * kTwo32 ? begin - t * kTwo32 : 0, offset, size);
    }
    begin = end;
  });
}

// Algorithm 2 numbers the probes of each block from 0. Here all blocks' probes i come together,
// because the kernels know h + i * h2 for one i at a time.
void AddVariablePaper(const Geometry& geometry, SlotTableBuilder& builder) {
  builder.ReduceAsPrinted();
  bool found = true;
  for (uint32_t i = 0; found; ++i) {
    found = false;
    bool advance = i != 0;
    ForEachBlock(geometry.num_bits, [&](uint64_t offset, uint64_t size) {
      const RationalProbes probes(geometry.rational_k * static_cast<double>(size) /
                                  static_cast<double>(geometry.num_bits));
      if (i > probes.whole || (i == probes.whole && probes.share == 0)) return;
      builder.AddSlot(advance, i < probes.whole ? kAlwaysActive : probes.share);
      builder.AddRange(0, offset, size);
      advance = false;
      found = true;
    });
  }
}

void FillTable(const Geometry& geometry, SlotTable* table) {
  SlotTableBuilder builder(table);
  switch (geometry.layout) {
    case Layout::kPartitioned:
      return AddPartitioned(geometry, builder);
    case Layout::kRational:
      return AddRational(geometry, builder);
    case Layout::kVariable:
      return AddVariable(geometry, builder);
    case Layout::kVariablePaper:
      return AddVariablePaper(geometry, builder);
    default:
      builder.ReduceTo(geometry.num_bits);
      return builder.AddStandard(geometry.num_bits, geometry.num_probes);
  }
}

// What the first probe of a key can touch. It is the only one that absent keys make for sure, so
// the first part of a partitioned filter is often in the caches where the others are not. Without
// prefetching it, absent keys took 0.8 times the time in parts of 4 to 12 MiB and the same in 17
// MiB (33 and 59 MiB in all, AVX3_DL, Emerald Rapids, 2 MiB L2); present ones no longer than before
// (64 MiB).
uint64_t FirstSlotBytes(const Geometry& geometry) {
  const bool parts = geometry.layout == Layout::kPartitioned;
  return geometry.num_bytes() / (parts ? geometry.num_probes : 1);
}

Prefetch PrefetchFor(const Geometry& geometry) {
  const uint64_t bytes = geometry.num_bytes();
  if (bytes <= PrefetchFromBytes(geometry.layout)) return Prefetch::kNone;
  if (bytes <= FarPrefetchFromBytes()) return Prefetch::kNear;
  return bytes <= PacedPrefetchFromBytes() ? Prefetch::kFar : Prefetch::kPaced;
}

}  // namespace

Result<OwnedShape> MakeShape(const Geometry& geometry) {
  OwnedShape owned;
  owned.shape.prefetch = PrefetchFor(geometry);
  owned.shape.num_probes = geometry.num_probes;
  if (!IsScattered(geometry.layout)) {
    owned.shape.num_blocks = geometry.num_bits / RulesOf(geometry.layout).granule_bits;
    return owned;
  }
  owned.table.reset(new (std::nothrow) SlotTable);
  if (owned.table == nullptr) return Status::OutOfMemory("no memory for a table of slots");
  FillTable(geometry, owned.table.get());
  owned.table->prefetch_first = FirstSlotBytes(geometry) > PrefetchFromBytes(geometry.layout) / 2;
  owned.shape.table = owned.table.get();
  return owned;
}

const LayoutKernels& KernelsFor(const KernelSet& kernels, Layout layout) {
  switch (layout) {
    case Layout::kSplit256:
      return kernels.block->split256;
    case Layout::kSplit512:
      return kernels.block->split512;
    case Layout::kLine512:
      return kernels.block->line512;
    case Layout::kRegister:
      return kernels.block->register64;
    default:
      return kernels.lane->scattered;
  }
}

}  // namespace tepal
