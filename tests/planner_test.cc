// MakePlan: it keeps every limit and need, takes the cheapest, and says why.
#include "tepal/planner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/layout_traits.h"
#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tests/test_util.h"

namespace tepal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The built-in profile: the same answers on every machine.
Result<FilterPlan> Plan(const Workload& workload) {
  return MakePlan(workload, MachineProfile::BuiltIn());
}

FilterPlan GoodPlan(const Workload& workload) {
  Result<FilterPlan> plan = Plan(workload);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : FilterPlan{};
}

std::string ErrorOf(const Workload& workload) {
  const Result<FilterPlan> plan = Plan(workload);
  EXPECT_FALSE(plan.ok());
  return plan.status().message();
}

const PlanCandidate& CandidateOf(const FilterPlan& plan, Layout layout) {
  const auto found = std::find_if(
      plan.candidates.begin(), plan.candidates.end(),
      [&](const PlanCandidate& candidate) { return candidate.geometry.layout == layout; });
  EXPECT_NE(found, plan.candidates.end()) << LayoutName(layout);
  return *found;
}

// Workloads of all kinds.
std::vector<Workload> Grid() {
  std::vector<Workload> grid;
  for (const uint64_t num_keys : {1000u, 100'000u, 10'000'000u, 1'000'000'000u}) {
    for (const double max_fpr : {0.0, 0.03, 1e-3, 1e-5}) {
      for (const double work_saved_ns : {0.0, 2.0, 100.0, 10'000.0}) {
        for (const double hit_rate : {0.0, 0.6}) {
          if (max_fpr == 0 && work_saved_ns == 0) continue;
          if (testing::kQuickTests && (work_saved_ns != 100 || hit_rate == 0)) continue;
          grid.push_back({.num_keys = num_keys,
                          .max_fpr = max_fpr,
                          .hit_rate = hit_rate,
                          .work_saved_ns = work_saved_ns});
        }
      }
    }
  }
  return grid;
}

// ---- Limits

TEST(PlannerTest, PlansAreValidKeepTheRateAndAreReportedAsTheyAre) {
  for (const Workload& workload : Grid()) {
    const FilterPlan plan = GoodPlan(workload);
    EXPECT_TRUE(plan.geometry.Validate().ok()) << plan.geometry.Validate().message();
    EXPECT_EQ(plan.predicted_fpr, fpr::Predict(plan.geometry, workload.num_keys));
    EXPECT_DOUBLE_EQ(plan.bits_per_key, static_cast<double>(plan.geometry.num_bits) /
                                            static_cast<double>(workload.num_keys));
    if (workload.max_fpr > 0) {
      EXPECT_LE(plan.predicted_fpr, workload.max_fpr);
    }
  }
}

TEST(PlannerTest, RatesAreReachedWithTheSmallestFilterOfTheLayout) {
  const FilterPlan plan = GoodPlan({.num_keys = 1'000'000, .max_fpr = 0.01});
  for (const PlanCandidate& candidate : plan.candidates) {
    if (!candidate.allowed || candidate.geometry.layout == Layout::kVariable) continue;
    const auto smallest = fpr::GeometryForRate(candidate.geometry.layout, 1'000'000, 0.01);
    EXPECT_EQ(candidate.geometry, *smallest) << LayoutName(candidate.geometry.layout);
  }
}

TEST(PlannerTest, SizesAreNotRoundedToPowersOfTwo) {
  for (const Workload& workload : Grid()) {
    if (workload.num_keys < 100'000) continue;  // may be one by chance
    EXPECT_FALSE(std::has_single_bit(GoodPlan(workload).geometry.num_bits));
  }
}

TEST(PlannerTest, ABudgetIsUsedUpToOneBlock) {
  for (const uint64_t max_bytes : {100'000u, 1'234'567u, 98'765'432u}) {
    const FilterPlan plan = GoodPlan({.num_keys = max_bytes, .max_bytes = max_bytes});
    for (const PlanCandidate& candidate : plan.candidates) {
      const Geometry& geometry = candidate.geometry;
      if (!candidate.allowed) continue;
      const bool partitioned = geometry.layout == Layout::kPartitioned;
      const uint64_t block_bytes = geometry.layout == Layout::kVariable
                                       ? max_bytes / 128  // its smallest block
                                       : 64 * (partitioned ? geometry.num_probes : 1u);
      EXPECT_LE(geometry.num_bytes(), max_bytes) << LayoutName(geometry.layout);
      EXPECT_GT(geometry.num_bytes() + block_bytes, max_bytes) << LayoutName(geometry.layout);
    }
  }
}

TEST(PlannerTest, RateAndBudgetAreBothKept) {
  const Workload workload{.num_keys = 1'000'000, .max_fpr = 1e-3, .max_bytes = 1'900'000};
  for (const double work_saved_ns : {0.0, 5.0, 5000.0}) {
    Workload with_work = workload;
    with_work.work_saved_ns = work_saved_ns;
    const FilterPlan plan = GoodPlan(with_work);
    EXPECT_LE(plan.predicted_fpr, 1e-3);
    EXPECT_LE(plan.geometry.num_bytes(), 1'900'000u);
    EXPECT_FALSE(CandidateOf(plan, Layout::kSplit256).allowed);  // needs 16.8 bits per key
  }
}

TEST(PlannerTest, InfeasibleRequestsNameWhatCanBeHad) {
  const std::string error = ErrorOf({.num_keys = 1'000'000, .max_fpr = 1e-9, .max_bytes = 500'000});
  // 4 bits per key: 14.7% at best. 1e-9: 43.1 bits per key at least.
  EXPECT_THAT(error, AllOf(HasSubstr("14.7%"), HasSubstr("4.00 bits per key"), HasSubstr("43.1"),
                           HasSubstr("standard"), HasSubstr("bytes")));
  EXPECT_THAT(ErrorOf({.num_keys = 10, .max_bytes = 7}), HasSubstr("8 bytes"));
  EXPECT_THAT(ErrorOf({.num_keys = 1'000'000'000'000, .max_fpr = 0.01}),
              HasSubstr("no size up to 2^40 bits"));
}

TEST(PlannerTest, NearestFeasibleChoicesAreFeasible) {
  const Workload asked{.num_keys = 1'000'000, .max_fpr = 1e-4, .max_bytes = 1'000'000};
  const std::string error = ErrorOf(asked);
  const size_t at = error.find("with this rate has ");
  ASSERT_NE(at, std::string::npos) << error;
  Workload larger = asked;
  larger.max_bytes = std::stoull(error.substr(at + std::string("with this rate has ").size()));
  EXPECT_TRUE(Plan(larger).ok());
  larger.max_bytes -= 64;
  EXPECT_FALSE(Plan(larger).ok());
}

TEST(PlannerTest, BadRequestsAreNamed) {
  EXPECT_THAT(ErrorOf({.num_keys = 5}), HasSubstr("one of max_fpr, max_bytes and work_saved_ns"));
  for (const double bad : {-0.1, 1.0, 2.0, kNan, kInfinity}) {
    EXPECT_THAT(ErrorOf({.num_keys = 5, .max_fpr = bad}), HasSubstr("max_fpr"));
  }
  for (const double bad : {-0.1, 1.1, kNan}) {
    EXPECT_THAT(ErrorOf({.num_keys = 5, .max_fpr = 0.1, .hit_rate = bad}), HasSubstr("hit_rate"));
  }
  for (const double bad : {-1.0, kNan, kInfinity}) {
    EXPECT_THAT(ErrorOf({.num_keys = 5, .work_saved_ns = bad}), HasSubstr("work_saved_ns"));
  }
  EXPECT_THAT(ErrorOf({.num_keys = uint64_t{1} << 60, .max_fpr = 0.1}), HasSubstr("num_keys"));
  EXPECT_THAT(ErrorOf({.num_keys = 1'000'000'000'000'000, .max_bytes = 1000}),
              HasSubstr("num_keys"));
  EXPECT_FALSE(MakePlan({.num_keys = 5, .max_fpr = 0.1}, MachineProfile()).ok());
}

TEST(PlannerTest, NoKeysGetTheSmallestFilter) {
  for (const Workload& workload :
       {Workload{.max_fpr = 0.01}, Workload{.work_saved_ns = 100}, Workload{.max_bytes = 64}}) {
    const FilterPlan plan = GoodPlan(workload);
    EXPECT_TRUE(Filter::Create(plan.geometry).ok());
    EXPECT_LE(plan.geometry.num_bits, 512u);
    EXPECT_EQ(plan.predicted_fpr, 0);
  }
}

// ---- Needs

TEST(PlannerTest, ParquetGetsWhatEveryReaderAccepts) {
  for (const double work_saved_ns : {0.0, 10.0, 10'000.0}) {
    const FilterPlan plan = GoodPlan({.num_keys = 1'000'000,
                                      .max_fpr = 0.001,
                                      .work_saved_ns = work_saved_ns,
                                      .needs = {.parquet = true}});
    EXPECT_EQ(plan.geometry.layout, Layout::kSplit256);
    EXPECT_EQ(plan.geometry.hash, HashKind::kXxh64);
    EXPECT_EQ(plan.geometry.seed, 0u);
    EXPECT_TRUE(std::has_single_bit(plan.geometry.num_bits));
    EXPECT_LE(plan.geometry.num_bytes(), uint64_t{128} << 20);
  }
  // 10^9 keys at 0.1% need more than the 128 MiB that readers accept.
  EXPECT_THAT(ErrorOf({.num_keys = 1'000'000'000, .max_fpr = 0.001, .needs = {.parquet = true}}),
              HasSubstr("128.0 MiB"));
}

TEST(PlannerTest, PowersOfTwoAreGivenWhereAskedFor) {
  for (Workload workload : Grid()) {
    if (workload.num_keys > 10'000'000) continue;
    workload.needs.power_of_two = true;
    const FilterPlan plan = GoodPlan(workload);
    for (const PlanCandidate& candidate : plan.candidates) {
      if (!candidate.allowed) continue;
      EXPECT_TRUE(std::has_single_bit(candidate.geometry.num_bits));
      EXPECT_TRUE(candidate.geometry.Validate().ok()) << candidate.geometry.Validate().message();
    }
    // Half of the size misses the rate.
    if (workload.work_saved_ns > 0) continue;
    Geometry half = Geometry::For(plan.geometry.layout, workload.num_keys, plan.bits_per_key / 2);
    EXPECT_GT(fpr::Predict(half, workload.num_keys), workload.max_fpr);
  }
}

TEST(PlannerTest, LayoutsWithoutANeededOperationAreNotAllowed) {
  const auto allowed = [](const Needs& needs) {
    std::vector<std::string> names;
    for (const PlanCandidate& candidate :
         GoodPlan({.num_keys = 100'000, .max_fpr = 0.01, .needs = needs}).candidates) {
      if (candidate.allowed) names.emplace_back(LayoutName(candidate.geometry.layout));
    }
    return names;
  };
  EXPECT_THAT(allowed({.set_union = true}), ::testing::SizeIs(7));
  EXPECT_THAT(allowed({.intersection = true}), ::testing::SizeIs(7));
  EXPECT_THAT(allowed({.disjointness = true}),
              ::testing::UnorderedElementsAre("partitioned", "split256", "split512"));
  EXPECT_THAT(allowed({.shrink = true}), Not(::testing::Contains("standard")));
}

TEST(PlannerTest, FiltersToShrinkCanBeHalvedFourTimes) {
  for (const double work_saved_ns : {0.0, 100.0}) {
    for (const PlanCandidate& candidate : GoodPlan({.num_keys = 1'000'003,
                                          .max_fpr = 0.01,
                                          .work_saved_ns = work_saved_ns,
                                          .needs = {.shrink = true}})
                                              .candidates) {
      const Geometry& geometry = candidate.geometry;
      if (!candidate.allowed || geometry.layout == Layout::kPartitioned ||
          geometry.layout == Layout::kVariable) {
        continue;
      }
      EXPECT_EQ(geometry.num_bits % (16 * RulesOf(geometry.layout).granule_bits), 0u)
          << LayoutName(geometry.layout);
      EXPECT_LE(candidate.predicted_fpr, 0.01);
    }
  }
}

// ---- Costs

TEST(PlannerTest, TheCheapestCandidateIsChosen) {
  for (const Workload& workload : Grid()) {
    if (workload.work_saved_ns == 0) continue;
    const FilterPlan plan = GoodPlan(workload);
    for (const PlanCandidate& candidate : plan.candidates) {
      if (candidate.allowed) {
        EXPECT_GE(candidate.cost_ns, plan.cost_ns);
      }
    }
    const double expected =
        plan.ns_per_probe + (1 - workload.hit_rate) * plan.predicted_fpr * workload.work_saved_ns;
    EXPECT_NEAR(plan.cost_ns, expected, kMemoryRentNs * 65);
  }
}

TEST(PlannerTest, NoOtherSizeOrProbeCountOfALayoutIsCheaper) {
  const Workload workload{.num_keys = 300'000, .hit_rate = 0.2, .work_saved_ns = 40};
  const FilterPlan plan = GoodPlan(workload);
  const MachineProfile& profile = MachineProfile::BuiltIn();
  for (const Layout layout : {Layout::kStandard, Layout::kPartitioned, Layout::kRegister,
                              Layout::kSplit256, Layout::kSplit512, Layout::kLine512}) {
    const SizeRules rules = RulesOf(layout);
    const PlanCandidate& best = CandidateOf(plan, layout);
    for (double bits_per_key = 2; bits_per_key < 40; bits_per_key += 0.25) {
      for (uint32_t k = rules.min_probes; k <= std::min(rules.max_probes, 20u); ++k) {
        const uint64_t unit = rules.granule_bits * (layout == Layout::kPartitioned ? k : 1);
        const auto bits = static_cast<uint64_t>(bits_per_key * 300'000) / unit * unit;
        const Geometry geometry{.layout = layout, .num_bits = bits, .num_probes = k};
        const double cost_ns = profile.ProbeNs(geometry, workload.num_keys, workload.hit_rate) +
                               0.8 * fpr::Predict(geometry, workload.num_keys) * 40 +
                               kMemoryRentNs * bits_per_key;
        EXPECT_GE(cost_ns, best.cost_ns * 0.998)  // between two of the planner's sizes
            << LayoutName(layout) << " " << bits_per_key << " " << k;
      }
    }
  }
}

TEST(PlannerTest, MoreWorkSavedNeverMeansMoreFalsePositives) {
  for (const uint64_t num_keys : {10'000u, 1'000'000u, 100'000'000u}) {
    double previous = 1;
    for (double work_saved_ns = 1; work_saved_ns < 1e5; work_saved_ns *= 1.5) {
      const FilterPlan plan = GoodPlan({.num_keys = num_keys, .work_saved_ns = work_saved_ns});
      EXPECT_LE(plan.predicted_fpr, previous) << num_keys << " keys, " << work_saved_ns << " ns";
      previous = plan.predicted_fpr;
    }
  }
}

TEST(PlannerTest, MoreBytesNeverMeanMoreCost) {
  double previous = kInfinity;
  for (uint64_t max_bytes = 100'000; max_bytes < 100'000'000; max_bytes *= 2) {
    const FilterPlan plan =
        GoodPlan({.num_keys = 1'000'000, .max_bytes = max_bytes, .work_saved_ns = 500});
    EXPECT_LE(plan.cost_ns, previous * 1.002) << max_bytes;  // the sizes tried are 4.4% apart
    previous = plan.cost_ns;
  }
}

TEST(PlannerTest, LooserRatesNeverCostMore) {
  double previous = kInfinity;
  for (double max_fpr = 1e-6; max_fpr < 0.5; max_fpr *= 2) {
    const FilterPlan plan =
        GoodPlan({.num_keys = 1'000'000, .max_fpr = max_fpr, .work_saved_ns = 20});
    EXPECT_LE(plan.cost_ns, previous * 1.002) << max_fpr;
    previous = plan.cost_ns;
  }
}

TEST(PlannerTest, InsertsCountIfTheProbesAreFew) {
  Workload workload{.num_keys = 1'000'000, .max_fpr = 1e-4, .work_saved_ns = 1000};
  const FilterPlan many = GoodPlan(workload);
  workload.num_probes = 100'000;
  const FilterPlan few = GoodPlan(workload);
  const double insert_ns = MachineProfile::BuiltIn().InsertNs(few.geometry);
  EXPECT_GT(few.cost_ns, many.cost_ns + 5 * insert_ns);
  EXPECT_LE(insert_ns, MachineProfile::BuiltIn().InsertNs(many.geometry));
  EXPECT_GT(few.break_even_ns, many.break_even_ns);
}

// ---- Does it pay?

TEST(PlannerTest, NoFilterPaysForLittleWork) {
  const FilterPlan plan = GoodPlan({.num_keys = 100'000'000, .max_fpr = 0.01, .work_saved_ns = 1});
  EXPECT_FALSE(plan.pays_off);
  EXPECT_EQ(plan.no_filter_ns, 1);
  EXPECT_GT(plan.cost_ns, 1);
  EXPECT_TRUE(plan.geometry.Validate().ok());
  EXPECT_THAT(plan.Explain(), AllOf(HasSubstr("No filter pays off"), HasSubstr("1.00 ns")));
}

TEST(PlannerTest, NoFilterPaysIfAllRowsMatch) {
  const FilterPlan plan = GoodPlan({.num_keys = 1000, .hit_rate = 1, .work_saved_ns = 1e6});
  EXPECT_FALSE(plan.pays_off);
  EXPECT_EQ(plan.no_filter_ns, 0);
  EXPECT_EQ(plan.break_even_ns, kInfinity);
  EXPECT_THAT(plan.Explain(), HasSubstr("no row can be removed"));
}

TEST(PlannerTest, AFilterPaysFromItsBreakEvenPointOn) {
  const Workload workload{.num_keys = 10'000'000, .max_fpr = 0.01, .hit_rate = 0.3};
  const FilterPlan plan = GoodPlan(workload);
  EXPECT_TRUE(plan.pays_off);  // the work is not known
  for (const double factor : {0.9, 1.1}) {
    Workload known = workload;
    known.work_saved_ns = plan.break_even_ns * factor;
    EXPECT_EQ(GoodPlan(known).pays_off, factor > 1) << factor;
  }
}

// ---- Explain

TEST(PlannerTest, ExplainShowsAllCandidatesAndTheReason) {
  const FilterPlan plan = GoodPlan({.num_keys = 10'000'000, .max_fpr = 0.01, .work_saved_ns = 100});
  const std::string text = plan.Explain();
  for (const char* layout : {"standard", "partitioned", "rational", "variable", "register",
                             "split256", "split512", "line512"}) {
    EXPECT_THAT(text, HasSubstr(layout));
  }
  EXPECT_THAT(text, AllOf(HasSubstr("10000000 keys"), HasSubstr("at most 1% false positives"),
                          HasSubstr("saves 100 ns"), HasSubstr("chosen"), HasSubstr("built-in"),
                          HasSubstr("AVX2")));
  EXPECT_THAT(text, HasSubstr(std::string(LayoutName(plan.geometry.layout)) + " wins"));
  EXPECT_THAT(text, HasSubstr("It pays off"));
}

TEST(PlannerTest, ExplainSaysWhatIsMissing) {
  EXPECT_THAT(GoodPlan({.num_keys = 1000, .max_fpr = 0.01, .needs = {.shrink = true}}).Explain(),
              AllOf(HasSubstr("needs shrink"), HasSubstr("cannot be shrunk")));
  EXPECT_THAT(GoodPlan({.num_keys = 1000, .max_fpr = 0.01, .needs = {.parquet = true}}).Explain(),
              AllOf(HasSubstr("only layout"), HasSubstr("Parquet has no such filters")));
  EXPECT_THAT(GoodPlan({.num_keys = 1000, .max_fpr = 0.01}).Explain(),
              HasSubstr("a filter pays if a true negative saves more than"));
  EXPECT_FALSE(FilterPlan().Explain().empty());
}

TEST(PlannerTest, ExplainNamesTheNumberOfProbesIfItIsKnown) {
  EXPECT_THAT(GoodPlan({.num_keys = 1000, .max_fpr = 0.01, .num_probes = 123'456}).Explain(),
              HasSubstr(", 123456 probes"));
}

// Nothing but the rate is asked for: 3% of time are noise, so that the smallest filter wins.
TEST(PlannerTest, AmongLayoutsThatAreEquallyFastTheSmallestWins) {
  MachineProfile profile = MachineProfile::BuiltIn();
  for (TimeCurve& curve : profile.curves) {
    std::fill(curve.ns.begin(), curve.ns.end(), curve.layout == Layout::kSplit256 ? 97.0 : 100.0);
  }
  const FilterPlan plan = MakePlan({.num_keys = 100'000, .max_fpr = 0.001}, profile).value();
  for (const PlanCandidate& candidate : plan.candidates) {
    if (candidate.allowed) {
      EXPECT_GE(candidate.geometry.num_bits, plan.geometry.num_bits);
    }
  }
  EXPECT_GT(plan.cost_ns, CandidateOf(plan, Layout::kSplit256).cost_ns);
  EXPECT_THAT(plan.Explain(), AllOf(HasSubstr("is as fast as"), HasSubstr("smaller")));
}

TEST(PlannerTest, RationalIsListedWithItsReasonAndNeverWins) {
  for (const Workload& workload : Grid()) {
    const FilterPlan plan = GoodPlan(workload);
    EXPECT_NE(plan.geometry.layout, Layout::kRational);
    const PlanCandidate& rational = CandidateOf(plan, Layout::kRational);
    EXPECT_FALSE(rational.allowed);
    EXPECT_THAT(rational.verdict, HasSubstr("has fewer false positives"));
    // As the verdict says, by the formula of the same kind.
    EXPECT_TRUE(rational.geometry.Validate().ok());
    const uint64_t num_bits = rational.geometry.num_bits;
    const auto k = static_cast<uint32_t>(rational.geometry.rational_k);
    EXPECT_LE(std::min(fpr::Classic(workload.num_keys, num_bits, k),
                       fpr::Classic(workload.num_keys, num_bits, k + 1)),
              rational.predicted_fpr);
  }
}

TEST(PlannerTest, ThePlanIsTheSameEachTime) {
  const Workload workload{.num_keys = 123'456, .max_fpr = 0.002, .work_saved_ns = 33};
  EXPECT_EQ(GoodPlan(workload).Explain(), GoodPlan(workload).Explain());
}

TEST(PlannerTest, WithoutAProfileItIsThatOfThisMachine) {
  const Workload workload{.num_keys = 1000, .max_fpr = 0.01};
  EXPECT_EQ(MakePlan(workload).value().Explain(),
            MakePlan(workload, MachineProfile::ForThisMachine()).value().Explain());
}

}  // namespace
}  // namespace tepal
