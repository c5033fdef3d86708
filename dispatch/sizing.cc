// Sizes for rates: the formulas of fpr.cc, inverted by bisection. Textbook sizes come from formulas
// that are wrong by up to 5x for blocked layouts at low rates.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "dispatch/no_memory.h"
#include "kernels/layout_traits.h"
#include "tepal/fpr.h"
#include "tepal/geometry.h"
#include "tepal/status.h"

namespace tepal::fpr {
namespace {

uint64_t MaxGranules(const SizeRules& rules) { return rules.max_bits / rules.granule_bits; }

// The parts of a partitioned filter are whole granules, so that a small one has few parts, ...
SizeRules RulesFor(Layout layout, uint64_t num_bits) {
  SizeRules rules = RulesOf(layout);
  if (layout == Layout::kPartitioned) {
    const uint64_t granules = std::max<uint64_t>(num_bits / rules.granule_bits, 1);
    rules.max_probes = static_cast<uint32_t>(std::min<uint64_t>(rules.max_probes, granules));
  }
  return rules;
}

// ... and a rest that does not go into all parts is left out.
uint64_t RoundBits(Layout layout, uint64_t num_bits, uint32_t num_probes) {
  const SizeRules rules = RulesOf(layout);
  const uint64_t unit = rules.granule_bits * (layout == Layout::kPartitioned ? num_probes : 1);
  return std::max(num_bits / unit * unit, rules.min_bits);
}

Geometry WithProbes(Layout layout, uint64_t num_bits, uint32_t num_probes) {
  const bool is_rational = layout == Layout::kRational;
  return {.layout = layout,
          .num_bits = num_bits,
          .num_probes = num_probes,
          .rational_k = is_rational ? static_cast<double>(num_probes) : 0.0};
}

double RateWithProbes(Layout layout, uint64_t num_keys, uint64_t num_bits, uint32_t num_probes) {
  return Predict(WithProbes(layout, num_bits, num_probes), num_keys);
}

// k = m/n ln 2, which fills half of the bits: the best k of a large standard filter, and close to
// that of the others.
uint32_t HalfFullProbes(const SizeRules& rules, uint64_t num_keys, uint64_t num_bits) {
  if (num_keys == 0) return rules.min_probes;
  const double probes =
      std::numbers::ln2 * static_cast<double>(num_bits) / static_cast<double>(num_keys);
  const double allowed = std::clamp(std::round(probes), static_cast<double>(rules.min_probes),
                                    static_cast<double>(rules.max_probes));
  return static_cast<uint32_t>(allowed);
}

// m = n log2(1/rate) / ln 2: the size at which HalfFullProbes reaches the rate, which no layout
// betters by much. At least 1. A place to start a search near the answer, where the formulas are
// fast.
uint64_t HalfFullGranules(const SizeRules& rules, uint64_t num_keys, double rate) {
  const double bits = static_cast<double>(num_keys) * -std::log2(rate) / std::numbers::ln2;
  const double granules = std::clamp(bits / static_cast<double>(rules.granule_bits), 1.0,
                                     static_cast<double>(MaxGranules(rules)));
  return static_cast<uint64_t>(granules);
}

bool IsRate(double rate) { return rate > 0 && rate < 1; }

Status NotARate(double rate) {
  return Status::InvalidArgument("max_fpr is " + std::to_string(rate) +
                                 ", but must lie between 0 and 1");
}

// The last x in [low, high) with is_good(x), which must hold for low, fail for high, and change
// once.
template <typename Predicate>
uint64_t LastGood(uint64_t low, uint64_t high, const Predicate& is_good) {
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (is_good(middle) ? low : high) = middle;
  }
  return low;
}

// With the sizes of whole parts the rate has many minima: tries all k. Each one is a closed
// formula.
uint32_t BestParts(uint64_t num_keys, uint64_t num_bits) {
  const SizeRules rules = RulesFor(Layout::kPartitioned, num_bits);
  uint32_t best = rules.min_probes;
  double best_rate = 1;
  for (uint32_t k = rules.min_probes; k <= rules.max_probes; ++k) {
    const uint64_t rounded = RoundBits(Layout::kPartitioned, num_bits, k);
    const double rate = PartitionedExact(num_keys, rounded, k);
    if (rate >= best_rate) continue;
    best = k;
    best_rate = rate;
  }
  return best;
}

}  // namespace

// The rate falls with k to a single minimum and rises again, so walking downhill from a good guess
// finds it.
uint32_t BestProbes(Layout layout, uint64_t num_keys, uint64_t num_bits) {
  if (num_bits == 0) return 0;
  if (layout == Layout::kPartitioned) return BestParts(num_keys, num_bits);
  const SizeRules rules = RulesFor(layout, num_bits);
  uint32_t best = HalfFullProbes(rules, num_keys, num_bits);
  if (layout == Layout::kVariablePaper) return best;
  double best_rate = RateWithProbes(layout, num_keys, num_bits, best);
  const auto try_probes = [&](uint32_t probes, bool even_if_equal) {
    const double rate = RateWithProbes(layout, num_keys, num_bits, probes);
    if (!(rate < best_rate || (even_if_equal && rate == best_rate))) return false;
    best = probes;
    best_rate = rate;
    return true;
  };
  while (best < rules.max_probes && try_probes(best + 1, false)) {
  }
  while (best > rules.min_probes && try_probes(best - 1, true)) {
  }
  return best;
}

Result<Geometry> GeometryForRate(Layout layout, uint64_t num_keys, double max_fpr) try {
  if (!IsRate(max_fpr)) return NotARate(max_fpr);
  if (layout == Layout::kVariablePaper) {
    return Status::Unsupported(
        "the rate of this layout jumps up and down with its size; ask Predict for the sizes in "
        "question");
  }
  const SizeRules rules = RulesOf(layout);
  if (rules.max_bits == 0) return Status::InvalidArgument("layout is not one of Layout");
  const auto geometry_of = [&](uint64_t granules) {
    const uint64_t num_bits = granules * rules.granule_bits;
    const uint32_t probes = BestProbes(layout, num_keys, num_bits);
    return WithProbes(layout, RoundBits(layout, num_bits, probes), probes);
  };
  const auto is_too_small = [&](uint64_t granules) {
    return !(Predict(geometry_of(granules), num_keys) <= max_fpr);
  };
  uint64_t enough = HalfFullGranules(rules, num_keys, max_fpr);
  uint64_t too_few = 0;
  while (is_too_small(enough)) {
    if (enough == MaxGranules(rules)) {
      return Status::InvalidArgument("no filter of at most 2^40 bits is large enough for " +
                                     std::to_string(num_keys) + " keys at this max_fpr");
    }
    too_few = enough;
    enough = std::min(2 * enough, MaxGranules(rules));
  }
  return geometry_of(LastGood(too_few, enough, is_too_small) + 1);
} catch (const std::exception&) {
  return NoMemory();
}

Result<uint64_t> KeysForRate(const Geometry& geometry, double max_fpr) try {
  if (!IsRate(max_fpr)) return NotARate(max_fpr);
  if (std::isnan(Predict(geometry, 1))) {
    return Status::InvalidArgument("the geometry describes no filter");
  }
  const auto has_room = [&](uint64_t num_keys) { return Predict(geometry, num_keys) <= max_fpr; };
  uint64_t too_many = 1;
  while (has_room(too_many) && too_many < uint64_t{1} << 62) too_many *= 2;
  return LastGood(too_many / 2, too_many, has_room);
} catch (const std::exception&) {
  return NoMemory();
}

}  // namespace tepal::fpr
