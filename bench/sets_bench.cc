// Set operations beside memcpy of the same filter. "Keys" of the report are cache lines: 64 bytes
// of the filter, or of the larger one where two sizes meet.
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/fixture.h"
#include "bench/ratio_report.h"
#include "tepal/sets.h"
#include "tepal/tepal.h"

namespace tepal::bench {
namespace {

constexpr size_t kLineBytes = 64;

struct Operands {
  Operands(Layout layout, uint64_t num_bytes, uint32_t num_probes)
      : into({.layout = layout, .num_bits = num_bytes * 8, .num_probes = num_probes}),
        other(into.filter.geometry()),
        half({.layout = layout, .num_bits = num_bytes * 4, .num_probes = num_probes}) {}

  Fixture into;
  Fixture other;
  Fixture half;
};

// Two filters of which the second has no bit that the first has: the whole must be read.
struct DisjointOperands {
  explicit DisjointOperands(const Geometry& geometry)
      : full(geometry), empty(Filter::Create(geometry).value()) {}

  Fixture full;
  Filter empty;
};

void MustBeOk(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
}

void AddSize(uint64_t num_bytes, std::vector<std::shared_ptr<void>>* owned,
             std::vector<Case>* cases) {
  const auto add = [&](const char* name, std::function<void()> run) {
    cases->push_back({SizeName(num_bytes), name, num_bytes / kLineBytes, std::move(run)});
  };
  const auto make = [&](Layout layout, uint32_t num_probes) -> Operands& {
    auto operands = std::make_shared<Operands>(layout, num_bytes, num_probes);
    owned->push_back(operands);
    return *operands;
  };
  Operands& f = make(Layout::kSplit256, 8);
  Operands& words = make(Layout::kRegister, 4);
  Operands& scattered = make(Layout::kStandard, 8);
  const auto disjoint = std::make_shared<DisjointOperands>(f.into.filter.geometry());
  owned->push_back(disjoint);
  add("memcpy", [&f, num_bytes] {
    std::memcpy(f.into.bits(), f.other.bits(), num_bytes);
    benchmark::ClobberMemory();
  });
  add("union", [&f] { MustBeOk(Union(f.into.filter, f.other.filter.View())); });
  add("intersect", [&f] { MustBeOk(Intersect(f.into.filter, f.other.filter.View())); });
  add("fill ratio", [&f] { benchmark::DoNotOptimize(FillRatio(f.into.filter.View())); });
  add("disjoint, split256", [disjoint] {
    benchmark::DoNotOptimize(SurelyDisjoint(disjoint->full.filter.View(), disjoint->empty.View()));
  });
  add("union folded by 2, split256",
      [&f] { MustBeOk(Union(f.half.filter, f.other.filter.View())); });
  add("union folded by 2, register",
      [&words] { MustBeOk(Union(words.half.filter, words.other.filter.View())); });
  add("union folded by 2, standard",
      [&scattered] { MustBeOk(Union(scattered.half.filter, scattered.other.filter.View())); });
}

int Main(int argc, char** argv) {
  std::printf("target %s; times are for a line of 64 bytes\n", ActiveTarget().c_str());
  WarmUpMemory();
  std::vector<std::shared_ptr<void>> owned;
  std::vector<Case> cases;
  for (const size_t kib : {16u, 4u << 10, 64u << 10}) AddSize(kib << 10, &owned, &cases);
  Timings timings;
  return RunCases(argc, argv, cases, &timings);
}

}  // namespace
}  // namespace tepal::bench

int main(int argc, char** argv) { return tepal::bench::Main(argc, argv); }
