#include "tepal/geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/layout_traits.h"

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

Status Wrong(const Geometry& geometry, const std::string& what) {
  return Status::InvalidArgument(std::string(LayoutName(geometry.layout)) + ": " + what);
}

Status ValidateSplit256(const Geometry& geometry) {
  if (geometry.num_bits % Split256::kBlockBits != 0) {
    return Wrong(geometry, "num_bits is " + std::to_string(geometry.num_bits) +
                               ", but must be a multiple of " +
                               std::to_string(Split256::kBlockBits));
  }
  if (geometry.num_bits / Split256::kBlockBits > Split256::kMaxBlocks) {
    return Wrong(geometry, "num_bits must be below 2^40 (fewer than 2^32 blocks)");
  }
  if (geometry.num_probes != Split256::kNumProbes) {
    return Wrong(geometry, "num_probes is " + std::to_string(geometry.num_probes) +
                               ", but must be " + std::to_string(Split256::kNumProbes));
  }
  return Status::Ok();
}

}  // namespace

Geometry Geometry::For(Layout layout, uint64_t num_keys, double bits_per_key) {
  Geometry geometry{.layout = layout, .num_probes = Split256::kNumProbes};
  if (!(bits_per_key > 0)) return geometry;  // also catches NaN
  const double wanted_bits = static_cast<double>(num_keys) * bits_per_key;
  const double max_bits = static_cast<double>(Split256::kMaxBlocks * Split256::kBlockBits);
  const auto bits = static_cast<uint64_t>(std::min(wanted_bits, max_bits));
  geometry.num_bits = std::max<uint64_t>(bits / Split256::kBlockBits, 1) * Split256::kBlockBits;
  return geometry;
}

Status Geometry::Validate() const {
  if (LayoutName(layout).empty()) return Status::InvalidArgument("layout is not one of Layout");
  if (HashKindName(hash).empty()) return Status::InvalidArgument("hash is not one of HashKind");
  if (num_bits == 0) return Wrong(*this, "num_bits is 0, but a filter has at least one block");
  if (num_bits > kMaxBits) {
    return Wrong(*this, "num_bits is " + std::to_string(num_bits) + ", but at most 2^40 work");
  }
  if (rational_k != 0) return Wrong(*this, "rational_k must be 0");
  switch (layout) {
    case Layout::kSplit256:
      return ValidateSplit256(*this);
    default:
      return Status::Unsupported(std::string(LayoutName(layout)) + " is not in this build");
  }
}

std::string_view LayoutName(Layout layout) {
  for (const LayoutNameRow& row : kLayoutNames) {
    if (row.layout == layout) return row.name;
  }
  return {};
}

Result<Layout> ParseLayout(std::string_view name) {
  std::string known;
  for (const LayoutNameRow& row : kLayoutNames) {
    if (row.name == name) return row.layout;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return Status::InvalidArgument("unknown layout \"" + std::string(name) + "\"; there are " +
                                 known);
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
