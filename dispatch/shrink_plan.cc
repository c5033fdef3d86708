#include "dispatch/shrink_plan.h"

#include <bit>
#include <optional>
#include <string>

#include "dispatch/shape.h"
#include "kernels/layout_traits.h"

namespace tepal {
namespace {

__extension__ using uint128_t = unsigned __int128;

Status Cannot(const Geometry& from, const Geometry& into, const std::string& why) {
  return Status::InvalidArgument(
      "a " + std::string(LayoutName(from.layout)) + " filter of " + std::to_string(from.num_bits) +
      " bits, k = " + std::to_string(from.num_probes) + ", cannot become one of " +
      std::to_string(into.num_bits) + " bits, k = " + std::to_string(into.num_probes) + ": " + why);
}

// What both filters must share: otherwise a key has unrelated bits in them.
Status CheckSameHashing(const Geometry& from, const Geometry& into) {
  if (from.layout != into.layout) {
    return Status::InvalidArgument(
        "the filters have different layouts: " + std::string(LayoutName(from.layout)) + " and " +
        std::string(LayoutName(into.layout)));
  }
  if (from.hash != into.hash || from.seed != into.seed) {
    return Status::InvalidArgument(
        "the filters hash keys in different ways: " + std::string(HashKindName(from.hash)) +
        " with seed " + std::to_string(from.seed) + ", and " +
        std::string(HashKindName(into.hash)) + " with seed " + std::to_string(into.seed));
  }
  return Status::Ok();
}

Status CheckSameProbes(const Geometry& from, const Geometry& into) {
  if (from.num_probes == into.num_probes && from.rational_k == into.rational_k) return Status::Ok();
  return Cannot(from, into, "the number of probes must stay the same");
}

Status CheckDivides(const Geometry& from, const Geometry& into, uint64_t from_bits,
                    uint64_t into_bits, const char* what) {
  if (from_bits % into_bits == 0) return Status::Ok();
  return Cannot(from, into,
                std::string(what) + " can only be divided by whole numbers, and " +
                    std::to_string(from_bits) + " / " + std::to_string(into_bits) + " is none");
}

// block = high(h) * num_blocks >> 32, and so floor(block / d) is the block among num_blocks / d.
Result<ShrinkPlan> PlanBlocked(const Geometry& from, const Geometry& into) {
  if (Status status = CheckSameProbes(from, into); !status.ok()) return status;
  if (Status status =
          CheckDivides(from, into, from.num_bits, into.num_bits, "the number of blocks");
      !status.ok()) {
    return status;
  }
  const uint64_t block_bytes = RulesOf(from.layout).granule_bits / 8;
  ShrinkPlan plan{.divisor = from.num_bits / into.num_bits};
  plan.Add({0, 0, block_bytes, into.num_bytes() / block_bytes});
  return plan;
}

// Ranges of LAYOUTS.md, reduce(). By mask, a position modulo s is one modulo s/d: the range is cut
// into d pieces, one over the other. By multiply-high it is as with blocks, with lines for blocks.
// There is no way from one to the other.
Result<ShrinkPlan> PlanRanges(const Geometry& from, const Geometry& into, uint64_t from_bits,
                              uint64_t into_bits, uint32_t num_ranges) {
  const char* what = from.layout == Layout::kPartitioned ? "the size of a part" : "the size";
  if (Status status = CheckDivides(from, into, from_bits, into_bits, what); !status.ok()) {
    return status;
  }
  const bool by_mask = std::has_single_bit(from_bits);
  if (by_mask != std::has_single_bit(into_bits)) {
    return Cannot(from, into,
                  std::string(what) +
                      " must not become a power of two, which chooses"
                      " bits by a mask; take another divisor");
  }
  const uint64_t unit_bytes = (by_mask ? into_bits : uint64_t{Scattered::kLineBits}) / 8;
  ShrinkPlan plan{.divisor = from_bits / into_bits};
  plan.Add({0, 0, unit_bytes, num_ranges * (into_bits / 8 / unit_bytes)});
  return plan;
}

Result<ShrinkPlan> PlanWholeRange(const Geometry& from, const Geometry& into) {
  if (Status status = CheckSameProbes(from, into); !status.ok()) return status;
  return PlanRanges(from, into, from.num_bits, into.num_bits, 1);
}

// Probe t depends neither on the number of parts nor on the parts before: the first k' parts are a
// filter.
Result<ShrinkPlan> PlanParts(const Geometry& from, const Geometry& into) {
  if (into.num_probes > from.num_probes) {
    return Cannot(from, into, "it has only " + std::to_string(from.num_probes) + " parts");
  }
  return PlanRanges(from, into, from.num_bits / from.num_probes, into.num_bits / into.num_probes,
                    into.num_probes);
}

// Folds each block of the first `kept_bits` bits by itself, by masks.
ShrinkPlan PlanBlocks(uint64_t kept_bits, uint64_t into_bits) {
  ShrinkPlan plan{.divisor = kept_bits / into_bits};
  ForEachBlock(into_bits, [&](uint64_t offset, uint64_t size) {
    plan.Add({offset / 8 * plan.divisor, offset / 8, size / 8, 1});
  });
  return plan;
}

bool IsPowerOfTwoTimes(uint64_t larger, uint64_t smaller) {
  return larger % smaller == 0 && std::has_single_bit(larger / smaller);
}

// Do the first `kept_bits` bits (whole blocks) hold every probe that a filter of so many bits and
// `kept_probes` would make? Boundaries are floor(2^32 * k * prefix / m). If k/m stays the same, so
// do they, and the bytes are those of a filter built so. Otherwise the probes of all blocks but the
// first would be expected elsewhere. In the first, largest one, every key makes the probes 0 to
// floor(k * s(0) / m) - 1, and some keys one more, whose bits remain.
bool KeepsProbes(const Geometry& from, uint64_t kept_bits, uint64_t kept_probes) {
  const uint128_t wanted = uint128_t{from.num_probes} * kept_bits;
  if (uint128_t{kept_probes} * from.num_bits == wanted) return true;
  return std::has_single_bit(kept_bits) && kept_probes == wanted / from.num_bits;
}

Result<ShrinkPlan> PlanVariable(const Geometry& from, const Geometry& into) {
  std::optional<ShrinkPlan> plan;
  ForEachBlock(from.num_bits, [&](uint64_t offset, uint64_t size) {
    const uint64_t kept_bits = offset + size;
    if (!IsPowerOfTwoTimes(kept_bits, into.num_bits)) return;
    if (KeepsProbes(from, kept_bits, into.num_probes)) plan = PlanBlocks(kept_bits, into.num_bits);
  });
  if (plan.has_value()) return *plan;
  return Cannot(from, into,
                "the first blocks may be kept, with the same number of probes per bit (for the "
                "largest block alone: rounded down), and divided by a power of two");
}

// Halving each block changes no k(j).
Result<ShrinkPlan> PlanVariablePaper(const Geometry& from, const Geometry& into) {
  if (Status status = CheckSameProbes(from, into); !status.ok()) return status;
  if (!IsPowerOfTwoTimes(from.num_bits, into.num_bits)) {
    return Cannot(from, into, "the size can only be divided by powers of two");
  }
  return PlanBlocks(from.num_bits, into.num_bits);
}

}  // namespace

Result<ShrinkPlan> PlanShrink(const Geometry& from, const Geometry& into) {
  if (Status status = into.Validate(); !status.ok()) return status;
  if (Status status = CheckSameHashing(from, into); !status.ok()) return status;
  switch (from.layout) {
    case Layout::kStandard:
    case Layout::kRational:
      return PlanWholeRange(from, into);
    case Layout::kPartitioned:
      return PlanParts(from, into);
    case Layout::kVariable:
      return PlanVariable(from, into);
    case Layout::kVariablePaper:
      return PlanVariablePaper(from, into);
    default:
      return PlanBlocked(from, into);
  }
}

}  // namespace tepal
