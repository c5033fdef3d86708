// Sizes for rates: the formulas of fpr.cc, inverted by bisection. Textbook sizes come from formulas
// that are wrong by up to 5x for blocked layouts at low rates.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "kernels/layout_traits.h"
#include "tepal/fpr.h"
#include "tepal/geometry.h"
#include "tepal/status.h"

namespace tepal::fpr {
namespace {

// Which sizes and which k a layout allows.
struct SizeRules {
  uint64_t granule_bits;  // num_bits is a multiple of it
  uint64_t max_granules;
  uint32_t min_probes;
  uint32_t max_probes;
};

constexpr SizeRules RulesOf(Layout layout) {
  constexpr uint64_t kWordBits = 64;
  constexpr uint64_t kLineBits = 512;
  constexpr uint64_t kMaxWords = kMaxBits / kWordBits;
  constexpr uint64_t kMaxLines = kMaxBits / kLineBits;
  switch (layout) {
    case Layout::kStandard:
    case Layout::kRational:
    case Layout::kVariable:
    case Layout::kVariablePaper:
      return {kWordBits, kMaxWords, 1, kMaxProbes};
    case Layout::kPartitioned:  // every part has at least one bit
      return {kWordBits, kMaxWords, 1, kWordBits};
    case Layout::kRegister:
      return {kWordBits, kMaxWords, 3, 6};
    case Layout::kSplit256:
      return {Split256::kBlockBits, Split256::kMaxBlocks, Split256::kNumProbes,
              Split256::kNumProbes};
    case Layout::kSplit512:
      return {kLineBits, kMaxLines, 8, 8};
    case Layout::kLine512:
      return {kLineBits, kMaxLines, 1, 16};
  }
  return {kWordBits, 0, 0, 0};
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
                                     static_cast<double>(rules.max_granules));
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

}  // namespace

// The rate falls with k to a single minimum and rises again, so walking downhill from a good guess
// finds it.
uint32_t BestProbes(Layout layout, uint64_t num_keys, uint64_t num_bits) {
  if (num_bits == 0) return 0;
  const SizeRules rules = RulesOf(layout);
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

Result<uint64_t> BitsForRate(Layout layout, uint64_t num_keys, double max_fpr) {
  if (!IsRate(max_fpr)) return NotARate(max_fpr);
  if (layout == Layout::kVariablePaper) {
    return Status::Unsupported(
        "the rate of this layout jumps up and down with its size; ask Predict for the sizes in "
        "question");
  }
  const SizeRules rules = RulesOf(layout);
  const auto is_too_small = [&](uint64_t granules) {
    const uint64_t num_bits = granules * rules.granule_bits;
    const uint32_t probes = BestProbes(layout, num_keys, num_bits);
    return !(RateWithProbes(layout, num_keys, num_bits, probes) <= max_fpr);
  };
  if (rules.max_granules == 0) return Status::InvalidArgument("layout is not one of Layout");
  uint64_t enough = HalfFullGranules(rules, num_keys, max_fpr);
  uint64_t too_few = 0;
  while (is_too_small(enough)) {
    if (enough == rules.max_granules) {
      return Status::InvalidArgument("no filter of at most 2^40 bits is large enough for " +
                                     std::to_string(num_keys) + " keys at this max_fpr");
    }
    too_few = enough;
    enough = std::min(2 * enough, rules.max_granules);
  }
  return (LastGood(too_few, enough, is_too_small) + 1) * rules.granule_bits;
}

Result<uint64_t> KeysForRate(const Geometry& geometry, double max_fpr) {
  if (!IsRate(max_fpr)) return NotARate(max_fpr);
  if (std::isnan(Predict(geometry, 1))) {
    return Status::InvalidArgument("the geometry describes no filter");
  }
  const auto has_room = [&](uint64_t num_keys) { return Predict(geometry, num_keys) <= max_fpr; };
  uint64_t too_many = 1;
  while (has_room(too_many) && too_many < uint64_t{1} << 62) too_many *= 2;
  return LastGood(too_many / 2, too_many, has_room);
}

}  // namespace tepal::fpr
