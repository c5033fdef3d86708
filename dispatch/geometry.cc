#include "tepal/geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "dispatch/no_memory.h"
#include "dispatch/sizing.h"
#include "kernels/layout_traits.h"
#include "tepal/fpr.h"

namespace tepal {
namespace {

struct LayoutNameRow {
  Layout layout;
  std::string_view name;
};

constexpr std::array<LayoutNameRow, 9> kLayoutNames = {{
    {Layout::kStandard, "standard"},
    {Layout::kPartitioned, "partitioned"},
    {Layout::kRational, "rational"},
    {Layout::kVariable, "variable"},
    {Layout::kVariablePaper, "variable-paper"},
    {Layout::kRegister, "register"},
    {Layout::kSplit256, "split256"},
    {Layout::kSplit512, "split512"},
    {Layout::kLine512, "line512"},
}};

uint32_t RationalProbeCount(double k) { return static_cast<uint32_t>(std::ceil(k)); }

Status Wrong(const Geometry& geometry, const std::string& what) {
  return Status::InvalidArgument(std::string(LayoutName(geometry.layout)) + ": " + what);
}

bool HasRationalProbes(Layout layout) {
  return layout == Layout::kRational || layout == Layout::kVariablePaper;
}

Status CheckSize(const Geometry& geometry, const SizeRules& rules) {
  const std::string is = "num_bits is " + std::to_string(geometry.num_bits) + ", but must be ";
  if (geometry.num_bits < rules.min_bits) {
    return Wrong(geometry, is + "at least " + std::to_string(rules.min_bits));
  }
  if (geometry.num_bits > rules.max_bits) {
    return Wrong(geometry, is + "at most " + std::to_string(rules.max_bits));
  }
  const bool in_parts = geometry.layout == Layout::kPartitioned;
  const uint64_t unit = rules.granule_bits * (in_parts ? geometry.num_probes : 1);
  if (geometry.num_bits % unit != 0) {
    return Wrong(geometry, is + "a multiple of " + std::to_string(unit) +
                               (in_parts ? " (num_probes parts of whole lines)" : ""));
  }
  return Status::Ok();
}

Status CheckProbes(const Geometry& geometry, const SizeRules& rules) {
  if (geometry.num_probes >= rules.min_probes && geometry.num_probes <= rules.max_probes) {
    return Status::Ok();
  }
  const std::string range =
      rules.min_probes == rules.max_probes
          ? std::to_string(rules.min_probes)
          : std::to_string(rules.min_probes) + " to " + std::to_string(rules.max_probes);
  return Wrong(geometry,
               "num_probes is " + std::to_string(geometry.num_probes) + ", but must be " + range);
}

// rational: every key makes at least one probe. variable-paper: a block may well have less.
Status CheckRationalProbes(const Geometry& geometry, const SizeRules& rules) {
  const double k = geometry.rational_k;
  const bool large_enough = geometry.layout == Layout::kRational ? k >= 1 : k > 0;
  if (!large_enough || !(k <= rules.max_probes)) {  // also NaN
    return Wrong(geometry, "rational_k is " + std::to_string(k) + ", but must be " +
                               (geometry.layout == Layout::kRational ? "1" : "above 0") + " to " +
                               std::to_string(rules.max_probes));
  }
  if (geometry.num_probes != RationalProbeCount(k)) {
    return Wrong(geometry, "num_probes is " + std::to_string(geometry.num_probes) +
                               ", but must be rational_k rounded up: " +
                               std::to_string(RationalProbeCount(k)));
  }
  return Status::Ok();
}

// Rounds down to a size that the layout allows, but not below its smallest.
uint64_t RoundBits(Layout layout, uint64_t num_bits, uint32_t num_probes) {
  const uint64_t unit = SizeUnitBits(layout, num_bits, num_probes);
  return std::max(num_bits / unit * unit, std::max(unit, RulesOf(layout).min_bits));
}

}  // namespace

Geometry Geometry::For(Layout layout, uint64_t num_keys, double bits_per_key) {
  Geometry geometry{.layout = layout};
  const SizeRules rules = RulesOf(layout);
  if (!(bits_per_key > 0) || rules.max_bits == 0) return geometry;  // also NaN
  const double wanted_bits = static_cast<double>(num_keys) * bits_per_key;
  uint64_t num_bits = rules.min_bits;  // also if wanted_bits is 0 * infinity
  if (wanted_bits >= static_cast<double>(rules.max_bits)) {
    num_bits = rules.max_bits;
  } else if (wanted_bits > static_cast<double>(rules.min_bits)) {
    num_bits = static_cast<uint64_t>(wanted_bits);
  }
  const uint32_t probes = fpr::BestProbes(layout, num_keys, num_bits);
  geometry.num_bits = RoundBits(layout, num_bits, probes);
  geometry.num_probes = probes;
  if (HasRationalProbes(layout)) {
    // The optimum of the papers, m/n ln 2.
    const double keys = static_cast<double>(std::max<uint64_t>(num_keys, 1));
    geometry.rational_k =
        std::clamp(static_cast<double>(geometry.num_bits) / keys * std::numbers::ln2, 1.0,
                   static_cast<double>(rules.max_probes));
    geometry.num_probes = RationalProbeCount(geometry.rational_k);
  }
  return geometry;
}

Status Geometry::Validate() const try {
  if (LayoutName(layout).empty()) return Status::InvalidArgument("layout is not one of Layout");
  if (HashKindName(hash).empty()) return Status::InvalidArgument("hash is not one of HashKind");
  const SizeRules rules = RulesOf(layout);
  if (num_bits == 0) {
    return Wrong(*this, "num_bits is 0, but must be at least " + std::to_string(rules.min_bits));
  }
  if (HasRationalProbes(layout)) {
    if (Status status = CheckRationalProbes(*this, rules); !status.ok()) return status;
  } else {
    if (rational_k != 0 || std::signbit(rational_k)) {  // -0 would be a second form of the same
      return Wrong(*this, "rational_k must be 0: num_probes says it all");
    }
    if (Status status = CheckProbes(*this, rules); !status.ok()) return status;
  }
  return CheckSize(*this, rules);
} catch (const std::exception&) {
  return NoMemory();
}

std::string_view LayoutName(Layout layout) {
  for (const LayoutNameRow& row : kLayoutNames) {
    if (row.layout == layout) return row.name;
  }
  return {};
}

Result<Layout> ParseLayout(std::string_view name) try {
  std::string known;
  for (const LayoutNameRow& row : kLayoutNames) {
    if (row.name == name) return row.layout;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return Status::InvalidArgument("unknown layout \"" + std::string(name) + "\"; there are " +
                                 known);
} catch (const std::exception&) {
  return NoMemory();
}

std::string_view HashKindName(HashKind hash) {
  switch (hash) {
    case HashKind::kXxh3:
      return "xxh3";
    case HashKind::kXxh64:
      return "xxh64";
  }
  return {};
}

}  // namespace tepal
