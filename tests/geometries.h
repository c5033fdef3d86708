// The filters that the oracle tests run over. A new layout is tested on every target once it has
// its lines here.
#ifndef TEPAL_TESTS_GEOMETRIES_H_
#define TEPAL_TESTS_GEOMETRIES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "dispatch/shape.h"
#include "tepal/geometry.h"
#include "tepal/memory.h"
#include "tests/test_util.h"

namespace tepal::testing {

inline constexpr Layout kAllLayouts[] = {
    Layout::kStandard, Layout::kPartitioned,   Layout::kRational,
    Layout::kVariable, Layout::kVariablePaper, Layout::kRegister,
    Layout::kSplit256, Layout::kSplit512,      Layout::kLine512};

struct GeometryCase {
  std::string name;
  Geometry geometry;
  // Filters far larger than their keys need stay nearly empty, and cost only the pages touched.
  bool sparse = false;

  MemoryOptions memory() const {
    return {.huge_pages = sparse ? HugePages::kNever : HugePages::kAdvise};
  }
};

inline void PrintTo(const GeometryCase& geometry, std::ostream* out) { *out << geometry.name; }

inline GeometryCase Split256Case(const std::string& name, uint64_t num_blocks,
                                 bool sparse = false) {
  return {.name = "split256_" + name,
          .geometry = {.layout = Layout::kSplit256, .num_bits = num_blocks * 256, .num_probes = 8},
          .sparse = sparse};
}

inline GeometryCase LayoutCase(Layout layout, const std::string& name, uint64_t num_bits,
                               double probes, bool sparse = false) {
  const bool rational = layout == Layout::kRational || layout == Layout::kVariablePaper;
  std::string layout_name(LayoutName(layout));
  std::replace(layout_name.begin(), layout_name.end(), '-', '_');
  return {.name = layout_name + "_" + name,
          .geometry = {.layout = layout,
                       .num_bits = num_bits,
                       .num_probes = static_cast<uint32_t>(std::ceil(probes)),
                       .rational_k = rational ? probes : 0},
          .sparse = sparse};
}

// Sizes at which a scattered layout does something different: one block, two, eleven, powers of two
// (masks) and not (multiply-high), prefetched, and positions above 2^32.
inline void AddScatteredCases(Layout layout, double probes, std::vector<GeometryCase>* cases) {
  const auto add = [&](const std::string& name, uint64_t num_bits, bool sparse = false) {
    const uint64_t unit =
        512 * static_cast<uint64_t>(layout == Layout::kPartitioned ? std::ceil(probes) : 1);
    cases->push_back(LayoutCase(layout, name, num_bits / unit * unit, probes, sparse));
  };
  add("smallest", 512 * 16);
  add("power_of_two", uint64_t{1} << 15);
  add("3_blocks", 212992);
  add("11_blocks", 1048064);
  add("prime", 512 * 1031);
  add("above_prefetch_size", PrefetchFromBytes(layout) * 8 + 512 * 77, /*sparse=*/true);
  add("above_paced_prefetch_size", PacedPrefetchFromBytes() * 8 + 512 * 77, /*sparse=*/true);
  add("above_2e32_bits", (uint64_t{1} << 33) + 512 * 12345, /*sparse=*/true);
}

// Every number of probes that a layout allows, at a small size.
inline void AddProbeCounts(Layout layout, uint32_t first, uint32_t last,
                           std::vector<GeometryCase>* cases) {
  for (uint32_t k = first; k <= last; ++k) {
    const uint64_t num_bits = layout == Layout::kPartitioned ? uint64_t{1536} * k : 13824;
    cases->push_back(LayoutCase(layout, std::string("k").append(std::to_string(k)), num_bits, k));
  }
}

inline std::vector<GeometryCase> OracleGeometries() {
  const uint64_t prefetched_bits = (PrefetchFromBytes(Layout::kSplit256) + 512) * 8;
  const uint64_t far_prefetched_bits = (FarPrefetchFromBytes() + 512) * 8;
  const uint64_t paced_bits = (PacedPrefetchFromBytes() + 512) * 8;
  std::vector<GeometryCase> cases = {
      Split256Case("1_block", 1),
      Split256Case("2_blocks", 2),
      Split256Case("3_blocks", 3),
      Split256Case("7_blocks", 7),
      Split256Case("1024_blocks", 1024),
      Split256Case("1031_blocks", 1031),  // prime
      Split256Case("above_prefetch_size", prefetched_bits / 256),
      Split256Case("above_far_prefetch_size", far_prefetched_bits / 256, /*sparse=*/true),
      Split256Case("above_paced_prefetch_size", paced_bits / 256, /*sparse=*/true),
      Split256Case("above_2e32_bits", (uint64_t{1} << 24) + 12345, /*sparse=*/true),
      Split256Case("above_2e32_bytes", (uint64_t{1} << 27) + 12345, /*sparse=*/true),
  };
  for (const Layout layout : {Layout::kSplit512, Layout::kLine512, Layout::kRegister}) {
    const double probes = layout == Layout::kSplit512 ? 8 : layout == Layout::kLine512 ? 6 : 4;
    cases.push_back(LayoutCase(layout, "1_line", 512, probes));
    cases.push_back(LayoutCase(layout, "3_lines", 3 * 512, probes));
    cases.push_back(LayoutCase(layout, "1031_lines", 1031 * 512, probes));
    cases.push_back(LayoutCase(layout, "above_prefetch_size", prefetched_bits, probes));
    cases.push_back(LayoutCase(layout, "above_far_prefetch_size", far_prefetched_bits, probes,
                               /*sparse=*/true));
    cases.push_back(
        LayoutCase(layout, "above_paced_prefetch_size", paced_bits, probes, /*sparse=*/true));
    cases.push_back(LayoutCase(layout, "above_2e32_bytes", (uint64_t{1} << 36) + 512 * 12345,
                               probes, /*sparse=*/true));
  }
  AddProbeCounts(Layout::kLine512, 1, 16, &cases);
  AddProbeCounts(Layout::kRegister, 3, 6, &cases);
  AddScatteredCases(Layout::kStandard, 7, &cases);
  AddScatteredCases(Layout::kPartitioned, 7, &cases);
  AddScatteredCases(Layout::kRational, 5.3, &cases);
  AddScatteredCases(Layout::kVariable, 7, &cases);
  AddScatteredCases(Layout::kVariablePaper, 6.7, &cases);
  cases.push_back(LayoutCase(Layout::kStandard, "above_2e32_bytes_power_of_two", uint64_t{1} << 36,
                             7, /*sparse=*/true));
  AddProbeCounts(Layout::kVariable, 64, 64, &cases);
  for (const uint32_t k : {1u, 2u, 11u}) {
    AddProbeCounts(Layout::kStandard, k, k, &cases);
    AddProbeCounts(Layout::kPartitioned, k, k, &cases);
    AddProbeCounts(Layout::kRational, k, k, &cases);
    AddProbeCounts(Layout::kVariable, k, k, &cases);
    AddProbeCounts(Layout::kVariablePaper, k, k, &cases);
  }
  cases.push_back(LayoutCase(Layout::kVariable, "words", 64 * 1021, 9));  // blocks down to one word
  cases.push_back(LayoutCase(Layout::kVariablePaper, "words", 64 * 1021, 9.9));
  cases.push_back(LayoutCase(Layout::kVariablePaper, "sparse_probes", 1048064, 0.4));
  if (kQuickTests) {  // emulators need minutes to map many GiB, and guests have no such memory
    std::erase_if(cases, [](const GeometryCase& c) { return c.geometry.num_bytes() >> 32 != 0; });
  }
  return cases;
}

// Those of which every page may be touched.
inline std::vector<GeometryCase> DenseGeometries() {
  std::vector<GeometryCase> cases = OracleGeometries();
  std::erase_if(cases, [](const GeometryCase& geometry_case) { return geometry_case.sparse; });
  return cases;
}

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_GEOMETRIES_H_
