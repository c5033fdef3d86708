#include "tepal/planner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/capabilities.h"
#include "dispatch/no_memory.h"
#include "dispatch/plan_text.h"
#include "dispatch/sizing.h"
#include "kernels/layout_traits.h"
#include "tepal/fpr.h"

namespace tepal {
namespace {

// Equal costs: the first wins. variable-paper is not here: its rate jumps up and down with its
// size.
constexpr std::array kCompared = {Layout::kSplit256, Layout::kRegister, Layout::kSplit512,
                                  Layout::kLine512,  Layout::kStandard, Layout::kPartitioned,
                                  Layout::kVariable};

// Readers accept 32 bytes to 128 MiB (parquet-mr and Arrow), and some only powers of two.
constexpr uint64_t kMaxParquetBits = uint64_t{128} << 23;

// A filter that can be shrunk has a multiple of this many blocks: it can be halved four times.
constexpr uint64_t kShrinkBlocks = 16;

// Times that differ by less are the same: what the measurements scatter.
constexpr double kSameTime = 0.05;

bool WantsPowerOfTwo(const Needs& needs) { return needs.power_of_two || needs.parquet; }

uint64_t MaxBits(const Workload& workload) {
  return workload.max_bytes == 0 ? kMaxBits : std::min(workload.max_bytes, kMaxBits / 8) * 8;
}

bool Fits(const Workload& workload, const Geometry& geometry) {
  return geometry.num_bits <= MaxBits(workload);
}

// Empty, or the need that the layout does not satisfy.
std::string UnmetNeed(const Needs& needs, Layout layout) {
  const Capabilities can = CapabilitiesOf(layout);
  if (needs.parquet && layout != Layout::kSplit256) return "Parquet has no such filters";
  if (needs.set_union && !can.set_union) return "has no union";
  if (needs.intersection && !can.intersection) return "has no intersection";
  if (needs.disjointness && !can.disjointness) return "its bits prove no disjointness";
  if (needs.shrink && !can.shrink) return "cannot be shrunk";
  return {};
}

// ---- Sizes of one layout

class Sizes {
 public:
  Sizes(const Workload& workload, Layout layout)
      : needs_(workload.needs),
        num_keys_(workload.num_keys),
        layout_(layout),
        rules_(RulesOf(layout)),
        max_bits_(workload.needs.parquet ? kMaxParquetBits : rules_.max_bits) {}

  // The largest filter of at most `num_bits` with `num_probes`, but at least the smallest one.
  Geometry AtMost(uint64_t num_bits, uint32_t num_probes) const {
    const uint64_t unit = Unit(std::min(num_bits, max_bits_), num_probes);
    uint64_t bits = std::max({std::min(num_bits, max_bits_), rules_.min_bits, unit});
    bits = WantsPowerOfTwo(needs_) ? std::bit_floor(bits) : bits / unit * unit;
    return With(bits, num_probes);
  }

  // The same with the k of the lowest rate.
  Geometry BestAtMost(uint64_t num_bits) const {
    uint32_t probes = fpr::BestProbes(layout_, num_keys_, std::max(num_bits, rules_.min_bits));
    // Parts of a power of two are powers of two, and their number is one, too.
    if (WantsPowerOfTwo(needs_) && layout_ == Layout::kPartitioned) {
      const uint32_t below = std::bit_floor(probes);
      const double rate_below = fpr::Predict(AtMost(num_bits, below), num_keys_);
      const double rate_above = fpr::Predict(AtMost(num_bits, 2 * below), num_keys_);
      probes = 2 * below <= rules_.max_probes && rate_above < rate_below ? 2 * below : below;
    }
    return AtMost(num_bits, probes);
  }

  // The smallest filter with at most this rate.
  std::optional<Geometry> ForRate(double max_fpr) const {
    if (WantsPowerOfTwo(needs_)) return PowerOfTwoForRate(max_fpr);
    const Result<Geometry> smallest = fpr::GeometryForRate(layout_, num_keys_, max_fpr);
    // No memory for the sum is not the same as no such size.
    if (smallest.status().code() == StatusCode::kOutOfMemory) throw std::bad_alloc();
    if (!smallest.ok()) return std::nullopt;
    const uint64_t unit = Unit(smallest->num_bits, smallest->num_probes);
    const uint64_t bits = (smallest->num_bits + unit - 1) / unit * unit;
    if (bits > max_bits_) return std::nullopt;
    return With(bits, smallest->num_probes);
  }

  // The largest k worth a look at a size: more are slower, and have more false positives. Fewer are
  // faster.
  uint32_t MaxProbes(uint64_t num_bits) const {
    const double bits_per_key = static_cast<double>(num_bits) / std::max(1.0, Keys());
    return static_cast<uint32_t>(std::clamp(std::ceil(0.7 * bits_per_key) + 1,
                                            static_cast<double>(rules_.min_probes),
                                            static_cast<double>(rules_.max_probes)));
  }

  uint32_t MinProbes() const { return rules_.min_probes; }

  bool Allows(uint32_t num_probes) const {
    return layout_ != Layout::kPartitioned || !WantsPowerOfTwo(needs_) ||
           std::has_single_bit(num_probes);
  }

 private:
  double Keys() const { return static_cast<double>(num_keys_); }

  uint64_t Unit(uint64_t num_bits, uint32_t num_probes) const {
    const uint64_t unit = SizeUnitBits(layout_, num_bits, num_probes);
    return needs_.shrink && IsBlocked(layout_) ? unit * kShrinkBlocks : unit;
  }

  Geometry With(uint64_t num_bits, uint32_t num_probes) const {
    return {.layout = layout_,
            .num_bits = num_bits,
            .num_probes = num_probes,
            .hash = needs_.parquet ? HashKind::kXxh64 : HashKind::kXxh3};
  }

  std::optional<Geometry> PowerOfTwoForRate(double max_fpr) const {
    for (uint64_t bits = std::bit_ceil(rules_.min_bits); bits <= max_bits_; bits *= 2) {
      const Geometry geometry = BestAtMost(bits);
      if (fpr::Predict(geometry, num_keys_) <= max_fpr) return geometry;
    }
    return std::nullopt;
  }

  Needs needs_;
  uint64_t num_keys_;
  Layout layout_;
  SizeRules rules_;
  uint64_t max_bits_;
};

// ---- Costs

class Costs {
 public:
  Costs(const Workload& workload, const MachineProfile& profile)
      : workload_(workload), profile_(profile) {
    const bool only_bytes = workload.max_fpr == 0 && workload.work_saved_ns == 0;
    work_ns_ = only_bytes ? kAssumedWorkNs : workload.work_saved_ns;
  }

  double ProbeNs(const Geometry& geometry) const {
    return profile_.ProbeNs(geometry, workload_.num_keys, workload_.hit_rate);
  }

  // All but false positives.
  double FixedNs(const Geometry& geometry, double probe_ns) const {
    const auto keys = static_cast<double>(workload_.num_keys);
    const double bits_per_key = static_cast<double>(geometry.num_bits) / std::max(keys, 1.0);
    const double insert_ns =
        workload_.num_probes == 0
            ? 0
            : profile_.InsertNs(geometry) * keys / static_cast<double>(workload_.num_probes);
    return probe_ns + insert_ns + kMemoryRentNs * bits_per_key;
  }

  double FalsePositiveNs(double rate) const { return (1 - workload_.hit_rate) * rate * work_ns_; }

  PlanCandidate Of(const Geometry& geometry) const {
    const auto keys = static_cast<double>(workload_.num_keys);
    PlanCandidate candidate{.geometry = geometry};
    candidate.predicted_fpr = fpr::Predict(geometry, workload_.num_keys);
    candidate.bits_per_key = static_cast<double>(geometry.num_bits) / std::max(keys, 1.0);
    candidate.ns_per_probe = ProbeNs(geometry);
    candidate.cost_ns =
        FixedNs(geometry, candidate.ns_per_probe) + FalsePositiveNs(candidate.predicted_fpr);
    return candidate;
  }

 private:
  const Workload& workload_;
  const MachineProfile& profile_;
  double work_ns_;
};

// ---- One layout at its best

struct Bounded {
  double least_cost_ns;
  Geometry geometry;
};

// Classic is below the true rate, up to some percent where most answers are wrong anyway.
double LeastRate(const Geometry& geometry, uint64_t num_keys) {
  return 0.8 * fpr::Classic(num_keys, geometry.num_bits, geometry.num_probes);
}

// Sizes from 1 to 64 bits per key in steps of 4.4%, the budget, and the smallest one for the rate:
// the same whatever the work is, so that more work never means more false positives.
std::vector<uint64_t> SizesToTry(const Workload& workload, const Sizes& sizes) {
  constexpr int kStepsPerDoubling = 16;
  const uint64_t max_bits = MaxBits(workload);
  std::vector<uint64_t> tries;
  for (int step = 0; step <= 6 * kStepsPerDoubling; ++step) {
    const double bits = static_cast<double>(workload.num_keys) *
                        std::exp2(static_cast<double>(step) / kStepsPerDoubling);
    if (bits <= static_cast<double>(max_bits)) tries.push_back(static_cast<uint64_t>(bits));
  }
  if (workload.max_bytes != 0) tries.push_back(max_bits);
  if (workload.max_fpr != 0) {
    if (const auto smallest = sizes.ForRate(workload.max_fpr)) tries.push_back(smallest->num_bits);
  }
  return tries;
}

// The cheapest size and k. Exact rates are slow, so the candidates come in the order of a lower
// bound of their cost, and those that cannot win any more are left out.
std::optional<PlanCandidate> Cheapest(const Workload& workload, const Costs& costs,
                                      const Sizes& sizes) {
  const double max_fpr = workload.max_fpr == 0 ? 1 : workload.max_fpr;
  std::vector<Bounded> tries;
  for (const uint64_t num_bits : SizesToTry(workload, sizes)) {
    for (uint32_t probes = sizes.MinProbes(); probes <= sizes.MaxProbes(num_bits); ++probes) {
      if (!sizes.Allows(probes)) continue;
      const Geometry geometry = sizes.AtMost(num_bits, probes);
      const double rate = LeastRate(geometry, workload.num_keys);
      if (rate > max_fpr || !Fits(workload, geometry)) continue;
      const double fixed_ns = costs.FixedNs(geometry, costs.ProbeNs(geometry));
      tries.push_back({fixed_ns + costs.FalsePositiveNs(rate), geometry});
    }
  }
  std::stable_sort(tries.begin(), tries.end(), [](const Bounded& a, const Bounded& b) {
    return a.least_cost_ns < b.least_cost_ns;
  });
  std::optional<PlanCandidate> best;
  for (const Bounded& bounded : tries) {
    if (best && bounded.least_cost_ns >= best->cost_ns) break;
    const PlanCandidate candidate = costs.Of(bounded.geometry);
    if (candidate.predicted_fpr > max_fpr) continue;
    if (!best || candidate.cost_ns < best->cost_ns) best = candidate;
  }
  return best;
}

// The layout at its best, or a candidate that is not allowed, with the reason.
PlanCandidate BestOf(const Workload& workload, const Costs& costs, Layout layout) {
  PlanCandidate none{.geometry = {.layout = layout}};
  none.verdict = UnmetNeed(workload.needs, layout);
  if (!none.verdict.empty()) return none;
  const Sizes sizes(workload, layout);
  std::optional<PlanCandidate> best;
  if (workload.work_saved_ns > 0) {
    best = Cheapest(workload, costs, sizes);
  } else if (workload.max_fpr > 0) {
    if (const auto geometry = sizes.ForRate(workload.max_fpr)) best = costs.Of(*geometry);
  } else {
    best = costs.Of(sizes.BestAtMost(MaxBits(workload)));
  }
  if (!best) {
    none.verdict = "no size reaches the rate";
    return none;
  }
  best->allowed = Fits(workload, best->geometry);
  if (!best->allowed) best->verdict = "too large";
  return *best;
}

// The k that the papers give, m/n ln 2, at the size of the standard filter: listed for comparison.
// Adding a fraction to a whole k always makes the rate worse (fpr.h, Rational), so that one of the
// two whole neighbours is better.
PlanCandidate RationalBeside(const Workload& workload, const Costs& costs,
                             const PlanCandidate& standard) {
  if (standard.geometry.num_bits == 0) {
    return {.geometry = {.layout = Layout::kRational}, .verdict = standard.verdict};
  }
  const double keys = std::max(1.0, static_cast<double>(workload.num_keys));
  Geometry geometry = standard.geometry;
  geometry.layout = Layout::kRational;
  geometry.rational_k =
      std::clamp(static_cast<double>(geometry.num_bits) / keys * std::numbers::ln2, 1.0,
                 static_cast<double>(Scattered::kMaxProbes));
  geometry.num_probes = static_cast<uint32_t>(std::ceil(geometry.rational_k));
  PlanCandidate rational = costs.Of(geometry);
  rational.verdict = RationalVerdict(geometry, workload.num_keys);
  return rational;
}

// ---- The plan

Status Wrong(const std::string& what) { return Status::InvalidArgument("plan: " + what); }

Status Check(const Workload& workload) {
  if (workload.num_keys > kMaxBits) {
    return Wrong("num_keys is " + std::to_string(workload.num_keys) +
                 ", but the largest filter has 2^40 bits");
  }
  if (!(workload.max_fpr >= 0 && workload.max_fpr < 1)) {  // also NaN
    return Wrong("max_fpr is " + std::to_string(workload.max_fpr) +
                 ", but must lie between 0 (any rate) and 1");
  }
  if (!(workload.hit_rate >= 0 && workload.hit_rate <= 1)) {
    return Wrong("hit_rate is " + std::to_string(workload.hit_rate) +
                 ", but must lie between 0 and 1");
  }
  if (!(workload.work_saved_ns >= 0 && std::isfinite(workload.work_saved_ns))) {
    return Wrong("work_saved_ns is " + std::to_string(workload.work_saved_ns) +
                 ", but must be 0 (not known) or a positive time");
  }
  if (workload.max_fpr == 0 && workload.max_bytes == 0 && workload.work_saved_ns == 0) {
    return Wrong("one of max_fpr, max_bytes and work_saved_ns must be given");
  }
  return Status::Ok();
}

// What can be had instead: the smallest filter with the rate, and the lowest rate in the bytes.
Status Infeasible(const Workload& workload) {
  std::optional<Geometry> smallest;
  std::optional<Geometry> lowest;
  for (const Layout layout : kCompared) {
    if (!UnmetNeed(workload.needs, layout).empty()) continue;
    const Sizes sizes(workload, layout);
    const auto for_rate =
        workload.max_fpr > 0 ? sizes.ForRate(workload.max_fpr) : std::optional<Geometry>();
    if (for_rate && (!smallest || for_rate->num_bits < smallest->num_bits)) smallest = for_rate;
    const Geometry largest = sizes.BestAtMost(MaxBits(workload));
    if (Fits(workload, largest) && (!lowest || fpr::Predict(largest, workload.num_keys) <
                                                   fpr::Predict(*lowest, workload.num_keys))) {
      lowest = largest;
    }
    if (workload.max_fpr == 0 && (!smallest || largest.num_bits < smallest->num_bits)) {
      smallest = largest;
    }
  }
  return Wrong(InfeasibleText(workload, smallest, lowest));
}

// The index of the winner among candidates that are ordered by cost.
size_t Winner(const Workload& workload, const std::vector<PlanCandidate>& candidates) {
  size_t winner = 0;
  if (workload.work_saved_ns > 0 || workload.max_fpr == 0) return winner;
  const double limit = candidates[0].cost_ns * (1 + kSameTime);
  for (size_t i = 1; i < candidates.size() && candidates[i].allowed; ++i) {
    if (candidates[i].cost_ns > limit) break;
    if (candidates[i].geometry.num_bits < candidates[winner].geometry.num_bits) winner = i;
  }
  return winner;
}

FilterPlan PlanOf(const Workload& workload, const MachineProfile& profile,
                  std::vector<PlanCandidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const PlanCandidate& a, const PlanCandidate& b) {
                     return a.allowed != b.allowed ? a.allowed : a.allowed && a.cost_ns < b.cost_ns;
                   });
  const size_t winner = Winner(workload, candidates);
  std::rotate(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(winner),
              candidates.begin() + static_cast<std::ptrdiff_t>(winner) + 1);
  const PlanCandidate& best = candidates.front();
  FilterPlan plan{.geometry = best.geometry,
                  .predicted_fpr = best.predicted_fpr,
                  .bits_per_key = best.bits_per_key,
                  .ns_per_probe = best.ns_per_probe,
                  .cost_ns = best.cost_ns,
                  .workload = workload,
                  .profile = ProfileText(profile)};
  const double misses = 1 - workload.hit_rate;
  const double removed = misses * (1 - best.predicted_fpr);
  const double fixed_ns = Costs(workload, profile).FixedNs(best.geometry, best.ns_per_probe);
  plan.no_filter_ns = misses * workload.work_saved_ns;
  plan.break_even_ns = removed > 0 ? fixed_ns / removed : std::numeric_limits<double>::infinity();
  plan.pays_off = workload.work_saved_ns == 0 || plan.cost_ns < plan.no_filter_ns;
  for (PlanCandidate& candidate : candidates) {
    if (candidate.verdict.empty()) candidate.verdict = VerdictText(best, candidate);
  }
  plan.candidates = std::move(candidates);
  return plan;
}

}  // namespace

Result<FilterPlan> MakePlan(const Workload& workload, const MachineProfile& profile) try {
  if (Status status = Check(workload); !status.ok()) return status;
  if (Status status = profile.Validate(); !status.ok()) return status;
  const Costs costs(workload, profile);
  std::vector<PlanCandidate> candidates;
  bool any_allowed = false;
  for (const Layout layout : kCompared) {
    candidates.push_back(BestOf(workload, costs, layout));
    any_allowed = any_allowed || candidates.back().allowed;
    if (layout == Layout::kStandard) {
      const PlanCandidate standard = candidates.back();
      candidates.push_back(RationalBeside(workload, costs, standard));
    }
  }
  if (!any_allowed) return Infeasible(workload);
  return PlanOf(workload, profile, std::move(candidates));
} catch (const std::exception&) {
  return NoMemory();
}

Result<FilterPlan> MakePlan(const Workload& workload) try {
  return MakePlan(workload, MachineProfile::ForThisMachine());
} catch (const std::exception&) {
  return NoMemory();
}

}  // namespace tepal
