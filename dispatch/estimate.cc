// How many keys a filter holds, from the number of bits that are set.
//
// Keys fall independently, so that a bit that one key misses with probability p is still zero after
// n keys with probability p^n, exactly, whatever the loads of the blocks are: the mixture over
// binomial loads of a block, sum of Binomial(n, 1/B)(i) * miss^i, is (1 - (1 - miss)/B)^n. So each
// layout is a few areas of bits of equal p, and the expected number of bits,
//
//   sum over areas of bits * (1 - p^n),
//
// grows with n and can be inverted. (The maximum-likelihood estimate for one area, and close to it
// for several.)
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dispatch/active_kernels.h"
#include "dispatch/no_memory.h"
#include "dispatch/shape.h"
#include "kernels/layout_traits.h"
#include "tepal/sets.h"

namespace tepal {
namespace {

// Bits that a key misses with the same probability.
struct Area {
  double num_bits;
  double log_miss;
};

// `probes` positions among `num_bits`, which may coincide. A fraction is the share of the keys that
// make one more.
double LogMiss(double probes, double num_bits) {
  const double whole = std::floor(probes);
  return whole * std::log1p(-1 / num_bits) + std::log1p(-(probes - whole) / num_bits);
}

class Areas {
 public:
  explicit Areas(const Geometry& geometry) { AddAll(geometry); }

  double ExpectedBits(double num_keys) const {
    double sum = 0;
    for (size_t i = 0; i < count_; ++i) {
      sum -= areas_[i].num_bits * std::expm1(num_keys * areas_[i].log_miss);
    }
    return sum;
  }

 private:
  void AddAll(const Geometry& geometry) {
    const auto num_bits = static_cast<double>(geometry.num_bits);
    const double probes = geometry.num_probes;
    switch (geometry.layout) {
      case Layout::kStandard:
        return Add(num_bits, LogMiss(probes, num_bits));
      case Layout::kRational:
        return Add(num_bits, LogMiss(geometry.rational_k, num_bits));
      case Layout::kPartitioned:
      case Layout::kSplit256:  // one bit in each of k ranges: the parts, or word i of all blocks
      case Layout::kSplit512:
        return Add(num_bits, std::log1p(-probes / num_bits));
      case Layout::kLine512:
        return AddLines(num_bits, Line512::kBlockBits, probes);
      case Layout::kRegister:
        return AddLines(num_bits, Register64::kBlockBits, probes);
      case Layout::kVariable:
        return AddBlocks(geometry, probes, LogMiss);
      case Layout::kVariablePaper:  // equal odd steps: the positions in a block differ
        return AddBlocks(geometry, geometry.rational_k,
                         [](double k, double size) { return std::log1p(-k / size); });
    }
  }

  void Add(double num_bits, double log_miss) { areas_[count_++] = {num_bits, log_miss}; }

  // k positions in one of the lines.
  void AddLines(double num_bits, double line_bits, double probes) {
    const double hit_in_line = -std::expm1(LogMiss(probes, line_bits));
    Add(num_bits, std::log1p(-hit_in_line * line_bits / num_bits));
  }

  // Each block receives its share of the probes, rounded up or down.
  template <class LogMissOf>
  void AddBlocks(const Geometry& geometry, double probes, const LogMissOf& log_miss) {
    ForEachBlock(geometry.num_bits, [&](uint64_t /*offset*/, uint64_t size) {
      const auto bits = static_cast<double>(size);
      Add(bits, log_miss(probes * bits / static_cast<double>(geometry.num_bits), bits));
    });
  }

  std::array<Area, 40> areas_;  // the blocks of a variable filter of kMaxBits
  size_t count_ = 0;
};

// The number of keys after which `num_set` bits are expected, by bisection: 0 <= num_set <
// num_bits.
double KeysForBits(const Areas& areas, double num_set) {
  double low = 0;
  double high = 1;
  while (areas.ExpectedBits(high) < num_set) high *= 2;
  for (int i = 0; i < 60; ++i) {  // as many digits as a double has
    const double middle = (low + high) / 2;
    (areas.ExpectedBits(middle) < num_set ? low : high) = middle;
  }
  return high;
}

}  // namespace

Result<uint64_t> EstimateKeys(const FilterView& filter) try {
  const std::span<const uint8_t> bytes = filter.bytes();
  const uint64_t num_set = ActiveKernels().sets->count_bits(bytes.data(), bytes.size());
  if (num_set == filter.geometry().num_bits) {
    return Status::InvalidArgument(
        "every bit of the filter is set: it may hold any large number of keys");
  }
  const double num_keys = KeysForBits(Areas(filter.geometry()), static_cast<double>(num_set));
  if (!(num_keys < 0x1p63)) {  // a k of next to nothing, and yet bits are set
    return Status::InvalidArgument("no number of keys explains the bits of the filter");
  }
  return static_cast<uint64_t>(std::llround(num_keys));
} catch (const std::exception&) {
  return NoMemory();
}

}  // namespace tepal
