// Every layout at five sizes: probes at 0, 50 and 100% hits and inserts, beside the memory limit of
// the same touch pattern and the plain scalar loop of a standard filter.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/baselines.h"
#include "bench/fixture.h"
#include "bench/layout_baselines.h"
#include "bench/ratio_report.h"
#include "dispatch/cpu_caches.h"
#include "kernels/layout_traits.h"
#include "tepal/tepal.h"

namespace tepal::bench {
namespace {

constexpr uint32_t kLineProbes = 6;
constexpr uint32_t kScatteredProbes = 8;  // 12 ln 2 = 8.3

// The size of a group's filters; layouts that need other sizes stay within 1%.
Geometry GeometryOf(Layout layout, uint64_t num_bits) {
  switch (layout) {
    case Layout::kSplit256:
    case Layout::kSplit512:
      return {.layout = layout, .num_bits = num_bits, .num_probes = 8};
    case Layout::kLine512:
      return {.layout = layout, .num_bits = num_bits, .num_probes = kLineProbes};
    case Layout::kRegister:
      return {.layout = layout, .num_bits = num_bits, .num_probes = 4};
    case Layout::kRational:
    case Layout::kVariablePaper:
      return {.layout = layout, .num_bits = num_bits, .num_probes = 9, .rational_k = 8.3};
    case Layout::kVariable:  // two blocks: the power of two has one, and would be a standard filter
      return {.layout = layout, .num_bits = num_bits / 4 * 3, .num_probes = kScatteredProbes};
    default:
      return {.layout = layout, .num_bits = num_bits, .num_probes = kScatteredProbes};
  }
}

class Group {
 public:
  Group(std::string name, std::vector<Case>* cases) : name_(std::move(name)), cases_(cases) {}
  void Add(const std::string& row, std::function<void()> run) {
    cases_->push_back({name_, row, kBatchKeys, std::move(run)});
  }

 private:
  std::string name_;
  std::vector<Case>* cases_;
};

constexpr Layout kLayouts[] = {Layout::kRegister,    Layout::kSplit256, Layout::kSplit512,
                               Layout::kLine512,     Layout::kStandard, Layout::kVariable,
                               Layout::kPartitioned, Layout::kRational, Layout::kVariablePaper};

// Layouts that are measured together, and with the scalar loops if `standard` is among them.
using Layouts = std::span<const Layout>;

// All of them, if they fit into memory with ease. A dozen of 512 MiB took up to eight times as long
// as one alone (Emerald Rapids, in a virtual machine with 23 GiB).
std::vector<Layouts> Together(uint64_t num_bytes) {
  if (num_bytes < size_t{256} << 20) return {kLayouts};
  std::vector<Layouts> each;
  for (const Layout& layout : kLayouts) each.push_back({&layout, 1});
  return each;
}

bool HasStandard(Layouts layouts) {
  return std::find(layouts.begin(), layouts.end(), Layout::kStandard) != layouts.end();
}

class Suite {
 public:
  void AddProbes(Layouts layouts, uint64_t num_bytes, unsigned hit_percent) {
    Group group("probe " + SizeName(num_bytes) + ", " + std::to_string(hit_percent) + "% hits",
                &cases_);
    AddLimits(num_bytes, hit_percent, group);
    for (const Layout layout : layouts) AddProbe(layout, num_bytes, hit_percent, group);
    if (HasStandard(layouts)) AddScalarProbes(num_bytes, hit_percent, group);
  }

  void AddInserts(Layouts layouts, uint64_t num_bytes) {
    Group group("insert " + SizeName(num_bytes), &cases_);
    for (const Layout layout : layouts) AddInsert(layout, num_bytes, group);
    if (HasStandard(layouts)) AddScalarInserts(num_bytes, group);
  }

  const std::vector<Case>& cases() const { return cases_; }

 private:
  Fixture& Make(const Geometry& geometry, unsigned hit_percent) {
    return *fixtures_.emplace_back(std::make_unique<Fixture>(geometry, hit_percent));
  }

  void AddLimits(uint64_t num_bytes, unsigned hit_percent, Group& group) {
    Fixture& f = Make(GeometryOf(Layout::kSplit512, num_bytes * 8), hit_percent);
    const Prefetch prefetch = num_bytes <= size_t{1} << 20  ? Prefetch::kNone
                              : num_bytes <= L3CacheBytes() ? Prefetch::kFar
                                                            : Prefetch::kPaced;
    const auto add = [&](const char* row, auto limit) {
      group.Add(row, [=, &f] {
        benchmark::DoNotOptimize(
            limit(f.bits(), num_bytes, prefetch, f.Next(kBatchKeys).data(), kBatchKeys));
      });
    };
    add("limit: 1 x 8 bytes", TouchLimit<8, 1>);
    add("limit: 1 x 32 bytes", TouchLimit<32, 1>);
    add("limit: 1 x 64 bytes", TouchLimit<64, 1>);
    if (hit_percent == 0) add("limit: 2 x 8 bytes", TouchLimit<8, 2>);
    if (hit_percent == 100) add("limit: 8 x 8 bytes", TouchLimit<8, 8>);
  }

  void AddProbe(Layout layout, uint64_t num_bytes, unsigned hit_percent, Group& group) {
    const Geometry geometry = GeometryOf(layout, num_bytes * 8);
    Fixture& f = Make(geometry, hit_percent);
    group.Add(std::string(LayoutName(layout)),
              [&f] { f.filter.ProbeHashes(f.Next(kBatchKeys), f.bitmap.data()); });
    if (layout == Layout::kLine512 && HaveAvx2()) {
      group.Add("line512, AVX2 one key at a time", [&f, geometry] {
        Avx2OneKeyLine512(f.bits(), geometry.num_bits / Line512::kBlockBits, geometry.num_probes,
                          f.Next(kBatchKeys).data(), kBatchKeys, f.bitmap.data());
      });
    }
    if (layout == Layout::kStandard) {  // the same k and load, but not a power of two
      const uint64_t num_bits = num_bytes * 8 / 16 * 15;
      Fixture& high = Make(GeometryOf(layout, num_bits), hit_percent);
      group.Add("standard, multiply-high",
                [&high] { high.filter.ProbeHashes(high.Next(kBatchKeys), high.bitmap.data()); });
    }
  }

  void AddInsert(Layout layout, uint64_t num_bytes, Group& group) {
    Fixture& f = Make(GeometryOf(layout, num_bytes * 8), 0);
    group.Add(std::string(LayoutName(layout)), [&f] { f.filter.InsertHashes(f.Next(kBatchKeys)); });
  }

  // A scalar filter in a buffer of the same kind, with its own bits.
  Fixture& MakeScalar(Reduction reduction, uint64_t num_bytes, unsigned hit_percent) {
    const auto insert = [=](uint8_t* bits, std::span<const uint64_t> hashes) {
      ScalarInsert(reduction, {bits, num_bytes * 8, kScatteredProbes}, hashes.data(),
                   hashes.size());
    };
    return *fixtures_.emplace_back(std::make_unique<Fixture>(
        GeometryOf(Layout::kSplit512, num_bytes * 8), hit_percent, insert));
  }

  static ScalarFilter ViewOf(Fixture& f, uint64_t num_bytes) {
    return {f.bits(), num_bytes * 8, kScatteredProbes};
  }

  void AddScalarProbes(uint64_t num_bytes, unsigned hit_percent, Group& group) {
    ForEachReduction([&](Reduction reduction, const char* name) {
      Fixture& f = MakeScalar(reduction, num_bytes, hit_percent);
      group.Add(name, [=, &f] {
        ScalarProbe(reduction, ViewOf(f, num_bytes), f.Next(kBatchKeys).data(), kBatchKeys,
                    f.bitmap.data());
      });
    });
  }

  void AddScalarInserts(uint64_t num_bytes, Group& group) {
    ForEachReduction([&](Reduction reduction, const char* name) {
      Fixture& f = Make(GeometryOf(Layout::kSplit512, num_bytes * 8), 0);
      group.Add(name, [=, &f] {
        ScalarInsert(reduction, ViewOf(f, num_bytes), f.Next(kBatchKeys).data(), kBatchKeys);
      });
    });
  }

  template <class Visit>
  static void ForEachReduction(const Visit& visit) {
    visit(Reduction::kModulo, "scalar standard, %");
    visit(Reduction::kMultiplyHigh, "scalar standard, multiply-high");
    visit(Reduction::kMask, "scalar standard, mask");
  }

  std::vector<Case> cases_;
  std::vector<std::unique_ptr<Fixture>> fixtures_;
};

int Main(int argc, char** argv) {
  // Arguments without a dash are sizes in KiB; the others are Google Benchmark's.
  std::vector<uint64_t> sizes;
  std::vector<char*> options = {argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') {
      options.push_back(argv[i]);
    } else {
      sizes.push_back(std::strtoull(argv[i], nullptr, 10));
    }
  }
  if (sizes.empty()) sizes = {16, 256, 4 << 10, 64 << 10, 512 << 10};
  std::printf("target %s, batches of %zu, %g bits per key, k = %u (line512: %u, register: 4)\n",
              ActiveTarget().c_str(), kBatchKeys, kBitsPerKey, kScatteredProbes, kLineProbes);
  WarmUpMemory();
  int result = 0;
  // Fixtures live as long as their suite: memory for all of them would not fit.
  const auto run = [&](const auto& add) {
    Suite suite;
    add(suite);
    Timings timings;
    result |= RunCases(static_cast<int>(options.size()), options.data(), suite.cases(), &timings);
    benchmark::ClearRegisteredBenchmarks();
  };
  for (const uint64_t kib : sizes) {
    for (const Layouts layouts : Together(kib << 10)) {
      for (const unsigned hit_percent : {0u, 50u, 100u}) {
        run([&](Suite& suite) { suite.AddProbes(layouts, kib << 10, hit_percent); });
      }
      run([&](Suite& suite) { suite.AddInserts(layouts, kib << 10); });
    }
  }
  return result;
}

}  // namespace
}  // namespace tepal::bench

int main(int argc, char** argv) { return tepal::bench::Main(argc, argv); }
