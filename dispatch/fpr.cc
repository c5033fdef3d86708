// The formulas. Sizing, which inverts them, is in sizing.cc.
#include "tepal/fpr.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "kernels/layout_traits.h"

namespace tepal::fpr {
namespace {

constexpr double kNoFilter = std::numeric_limits<double>::quiet_NaN();

// Exact below 2^53, and a relative 1e-16 off above, which no rate feels.
double Balls(uint64_t num_keys, uint32_t num_probes) {
  return static_cast<double>(num_keys) * num_probes;
}

// The mean share of `bins` that `balls` balls hit, 1 - (1 - 1/bins)^balls (Eq. 4). `bins` need not
// be whole.
double MeanFill(double balls, double bins) {
  if (balls == 0) return 0;  // not 0 * log(0) for a single bin
  return -std::expm1(balls * std::log1p(-1 / bins));
}

// ---- Balls into bins
//
// Watch d of the m bins, and let P(d) be the probability that N balls hit them all. P(d) is
// PerElement, and since the k positions of a random query are d different ones with probability
// B(k, m, d), StandardExact is their mixture:
//
//   Fs(n, m, k) = sum over d of B(k, m, d) * P(d),    N = n*k.
//
// That needs k values in place of the m terms of Eq. 10. Eq. 7 would give P(d) as an alternating
// sum that cancels to nothing; the two ways below add positive numbers only.
//
// Few balls: the first ball hits a watched bin or it does not, so
//
//   P_(N+1)(d) = d/m * P_N(d - 1) + (1 - d/m) * P_N(d).
//
// Many balls: throw a Poisson number of balls of mean z, and the bins are independent: a bin is hit
// with probability 1 - exp(-z/m). Hence P_N(d) = N! [z^N] exp(z) * (1 - exp(-z/m))^d, and the
// coefficient is Cauchy's integral over a circle around 0. See HitByContour.

// mixture[d]: how much weight P(d) has.
using Mixture = std::vector<double>;

// B(balls, bins, d) for d = 0 .. balls, Eq. 8, by throwing one ball after the other.
Mixture DistinctBins(uint32_t balls, double bins) {
  Mixture probability(size_t{balls} + 1, 0.0);
  probability[0] = 1;
  for (uint32_t thrown = 0; thrown < balls; ++thrown) {
    for (size_t d = size_t{thrown} + 1; d > 0; --d) {
      const auto before = static_cast<double>(d - 1);
      const double fresh_bin = (bins - before) / bins;  // 0 before it could turn negative
      probability[d] =
          probability[d] * (static_cast<double>(d) / bins) + probability[d - 1] * fresh_bin;
    }
    probability[0] = 0;
  }
  return probability;
}

// Weight on d different bins only; none if there are not so many.
Mixture ExactlyWatched(uint32_t d, double bins) {
  Mixture mixture(size_t{d} + 1, 0.0);
  mixture[d] = d <= bins ? 1 : 0;
  return mixture;
}

// P(0), P(1), ... while balls are being thrown.
class WatchedBins {
 public:
  WatchedBins(size_t max_watched, double bins)
      : all_hit_(static_cast<size_t>(std::min(static_cast<double>(max_watched), bins)) + 1, 0.0),
        bins_(bins) {
    all_hit_[0] = 1;
  }

  void ThrowBall() {
    for (size_t d = all_hit_.size() - 1; d > 0; --d) {
      const double hits_watched = static_cast<double>(d) / bins_;
      all_hit_[d] = hits_watched * all_hit_[d - 1] + (1 - hits_watched) * all_hit_[d];
    }
  }

  // The mixture has no weight where there are fewer bins than watched ones.
  double AllHit(const Mixture& mixture) const {
    double sum = 0;
    for (size_t d = 0; d < std::min(all_hit_.size(), mixture.size()); ++d) {
      sum += mixture[d] * all_hit_[d];
    }
    return std::min(sum, 1.0);
  }

 private:
  std::vector<double> all_hit_;
  double bins_;
};

double HitByRecurrence(const Mixture& mixture, double balls, double bins) {
  WatchedBins watched(mixture.size() - 1, bins);
  const auto num_balls = static_cast<uint64_t>(balls);
  for (uint64_t thrown = 0; thrown < num_balls; ++thrown) watched.ThrowBall();
  return watched.AllHit(mixture);
}

// The polynomial sum of mixture[d] * fill^d, by Horner's rule.
std::complex<double> AllHit(const Mixture& mixture, std::complex<double> fill) {
  std::complex<double> sum = 0;
  for (size_t d = mixture.size(); d-- > 0;) sum = sum * fill + mixture[d];
  return sum;
}

// 1 - exp(-x) with all digits where x is small.
std::complex<double> PoissonFill(std::complex<double> x) {
  const double decay = std::exp(-x.real());
  const double half_sine = std::sin(x.imag() / 2);
  return {-std::expm1(-x.real()) + 2 * decay * half_sine * half_sine, decay * std::sin(x.imag())};
}

// sin(x) - x with all digits where x is small (|x| < 0.4), where the subtraction has none.
double SineMinusAngle(double x) {
  const double x2 = x * x;
  return -x * x2 / 6 * (1 - x2 / 20 * (1 - x2 / 42 * (1 - x2 / 72 * (1 - x2 / 110))));
}

// The contour needs a bell narrower than the circle, and few watched bins among many balls.
constexpr double kContourBalls = 1024;
constexpr double kContourBallsPerProbe = 64;

// With f(w) = sum of mixture[d] * w^d and the circle z = N*exp(i*angle):
//
//   P = N! / (2 pi) * integral of exp(z) * z^-N * f(1 - exp(-z/m)) d(angle)
//     = N! e^N N^-N / (2 pi) * integral of exp(N (cos(angle) - 1) + i N (sin(angle) - angle)) *
//     f(...) d(angle)
//
// The factor before the integral is sqrt(2 pi N) and Stirling's series; all large terms have been
// cancelled on paper. The integrand is a bell of width 1/sqrt(N), for which the trapezoidal rule is
// exact but for exp(-(2 pi / kStep)^2 / 2) < 1e-34 (the steps alias) and exp(-(kSteps * kStep)^2 /
// 2) < 1e-21 (the ends). f turns by at most k * angle, so cancellation costs a factor of exp(k^2 /
// 2N) at most, which is e^2 at the limits above. (It would cost nothing on the circle through the
// saddle point, which is not worth finding.)
double HitByContour(const Mixture& mixture, double balls, double bins) {
  constexpr double kStep = 0.5;  // widths of the bell
  constexpr int kSteps = 20;
  const double width = 1 / std::sqrt(balls);
  double sum = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const double angle = step * kStep * width;
    const double half_sine = std::sin(angle / 2);
    const std::complex<double> exponent(-2 * balls * half_sine * half_sine,
                                        balls * SineMinusAngle(angle));
    const std::complex<double> fill = PoissonFill(std::polar(balls / bins, angle));
    // Only half of the bell, as the other half is its conjugate; its top belongs to both.
    sum += (step == 0 ? 0.5 : 1.0) * (std::exp(exponent) * AllHit(mixture, fill)).real();
  }
  const double stirling = 1 / (12 * balls) - 1 / (360 * balls * balls * balls);
  return std::min(std::sqrt(2 / std::numbers::pi) * kStep * std::exp(stirling) * sum, 1.0);
}

// The probability that `balls` balls hit all of d watched bins, averaged over d.
double Hit(const Mixture& mixture, double balls, double bins) {
  const double many_balls =
      std::max(kContourBalls, kContourBallsPerProbe * static_cast<double>(mixture.size()));
  return balls < many_balls ? HitByRecurrence(mixture, balls, bins)
                            : HitByContour(mixture, balls, bins);
}

// ---- Loads of blocks

// Binomial(n, 1/num_blocks): the number of keys in one block. Not the Poisson distribution of the
// literature, because the exact one costs the same and is right for few blocks, too. weight[i]
// belongs to a load of first + i.
struct Loads {
  uint64_t first = 0;
  std::vector<double> weight;
};

// Loads that are less probable than the most probable one by this factor are left out. They could
// add at most about as much to a rate, so rates down to 1e-45 keep 15 digits.
constexpr double kNegligibleWeight = 1e-60;

// Ratios of neighbours, outwards from the most probable load, then scaled to a sum of 1: no
// factorials, which lose as many digits as n has.
Loads BlockLoads(uint64_t num_keys, uint64_t num_blocks) {
  if (num_blocks == 1) return {num_keys, {1.0}};
  const auto keys = static_cast<double>(num_keys);
  const auto other_blocks = static_cast<double>(num_blocks - 1);
  const uint64_t mode = num_keys / num_blocks;
  std::vector<double> below;
  double weight = 1;
  for (auto load = static_cast<double>(mode); load > 0; --load) {
    weight *= load * other_blocks / (keys - load + 1);
    if (weight < kNegligibleWeight) break;
    below.push_back(weight);
  }
  Loads loads{mode - below.size(), {below.rbegin(), below.rend()}};
  weight = 1;
  for (auto load = static_cast<double>(mode); weight >= kNegligibleWeight; ++load) {
    loads.weight.push_back(weight);
    weight *= (keys - load) / ((load + 1) * other_blocks);
  }
  double total = 0;
  for (const double w : loads.weight) total += w;
  for (double& w : loads.weight) w /= total;
  return loads;
}

// Whether practically every block is so full that each query is a false positive: watched *
// exp(-balls/bins) < 1e-17 even 17 standard deviations below the mean load. Bounds the number of
// loads that a sum has to visit.
bool Saturated(double mean_load, uint32_t balls_per_key, double bins, uint32_t watched) {
  const double light_load = mean_load - 17 * std::sqrt(mean_load);
  return light_load * balls_per_key > bins * (40 + std::log(watched));
}

// ---- Blocks as published: nested collisions

// Blocks 0, 1, ... from the largest (the binary digits of num_bits), and the k of each.
struct NestedBlocks {
  explicit NestedBlocks(uint64_t num_bits, double k) {
    for (int digit = 63; digit >= 0; --digit) {
      const uint64_t block_bits = uint64_t{1} << digit;
      if ((num_bits & block_bits) == 0) continue;
      bits.push_back(static_cast<double>(block_bits));
      probes.push_back(k * bits.back() / static_cast<double>(num_bits));
    }
  }
  std::vector<double> bits;
  std::vector<double> probes;
};

// A position of a query in block 0, and the same modulo the size of each smaller block: the
// probability that the first `depth` blocks all have it set.
//
// Probe number t of an inserted key is made in the blocks 0 .. g-1, those with k_j > t. It agrees
// with the query modulo m_l, hence modulo all smaller sizes, but not modulo m_(l-1), with
// probability 1/m_l - 1/m_(l-1); then it sets the query's bits in the blocks l .. g-1. The numbers
// of such probes are independent Poisson variables of mean n * (k_(g-1) - k_g) * (1/m_l -
// 1/m_(l-1)), also for real k_j if one activation number u is added to t for all blocks. All blocks
// are set if these intervals cover them. reach[e] is the probability that the intervals which start
// in the blocks so far cover all blocks so far, and that the farthest of them ends just before
// block e.
double AllNestedBlocksSet(const NestedBlocks& blocks, size_t depth, double num_keys) {
  std::vector<double> reach(depth + 1, 0.0);
  reach[0] = 1;
  for (size_t start = 0; start < depth; ++start) {
    const double agree = 1 / blocks.bits[start] - (start == 0 ? 0.0 : 1 / blocks.bits[start - 1]);
    // Mean number of intervals from `start` that end behind block `end` - 1.
    const auto longer = [&](size_t end) {
      return end == depth ? 0.0 : num_keys * blocks.probes[end] * agree;
    };
    double shorter_reach = 0;  // of all e < end
    for (size_t end = 0; end <= start; ++end) shorter_reach += reach[end];
    std::vector<double> next(depth + 1, 0.0);
    for (size_t end = start + 1; end <= depth; ++end) {
      const double longest_ends_here =
          std::exp(-longer(end)) * -std::expm1(longer(end) - longer(end - 1));
      next[end] = reach[end] * std::exp(-longer(end)) + shorter_reach * longest_ends_here;
      shorter_reach += reach[end];
    }
    reach = std::move(next);
  }
  return reach[depth];
}

// The rate for queries whose activation number is u: probe t reaches the blocks with k_j > t + u.
double NestedRate(const NestedBlocks& blocks, const std::vector<double>& all_set, double u) {
  double rate = 1;
  for (double t = u; t < blocks.probes[0]; ++t) {
    const auto depth = std::count_if(blocks.probes.begin(), blocks.probes.end(),
                                     [t](double probes) { return probes > t; });
    rate *= all_set[static_cast<size_t>(depth)];
  }
  return rate;
}

}  // namespace

double Classic(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes) {
  if (num_bits == 0 || num_probes > kMaxProbes) return kNoFilter;
  return std::pow(MeanFill(Balls(num_keys, num_probes), static_cast<double>(num_bits)), num_probes);
}

double StandardExact(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes) {
  if (num_bits == 0 || num_probes > kMaxProbes) return kNoFilter;
  const auto bins = static_cast<double>(num_bits);
  return Hit(DistinctBins(num_probes, bins), Balls(num_keys, num_probes), bins);
}

double PerElement(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes,
                  uint32_t distinct_bits) {
  if (num_bits == 0 || num_probes > kMaxProbes || distinct_bits > kMaxProbes) return kNoFilter;
  const auto bins = static_cast<double>(num_bits);
  return Hit(ExactlyWatched(distinct_bits, bins), Balls(num_keys, num_probes), bins);
}

double CollisionProbability(uint64_t num_bits, uint32_t num_probes, uint32_t collisions) {
  if (num_bits == 0 || num_probes > kMaxProbes) return kNoFilter;
  if (collisions > num_probes) return 0;
  return DistinctBins(num_probes, static_cast<double>(num_bits))[num_probes - collisions];
}

double AnyCollisionProbability(uint64_t num_bits, uint32_t num_probes) {
  if (num_bits == 0 || num_probes > kMaxProbes) return kNoFilter;
  if (num_probes > num_bits) return 1;
  double log_all_differ = 0;
  for (uint32_t probe = 1; probe < num_probes; ++probe) {
    log_all_differ += std::log1p(-static_cast<double>(probe) / static_cast<double>(num_bits));
  }
  return -std::expm1(log_all_differ);
}

double PartitionedExact(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes) {
  if (num_bits == 0 || num_probes > std::min<uint64_t>(num_bits, kMaxProbes)) return kNoFilter;
  if (num_probes == 0) return 1;
  const double part_bits = static_cast<double>(num_bits) / num_probes;
  return std::pow(MeanFill(static_cast<double>(num_keys), part_bits), num_probes);
}

double Rational(uint64_t num_keys, uint64_t num_bits, double k) {
  if (num_bits == 0 || !(k >= 0) || k > kMaxProbes) return kNoFilter;
  const auto keys = static_cast<double>(num_keys);
  const auto bits = static_cast<double>(num_bits);
  const double whole = std::floor(k);
  const double share = k - whole;
  // A key misses a given bit with probability (1 - 1/m)^floor(k) * (1 - p/m).
  const double hit_by_share = share == 0 ? 0 : MeanFill(keys, bits / share);
  const double hit_by_whole = MeanFill(keys * whole, bits);
  const double fill = hit_by_whole + (1 - hit_by_whole) * hit_by_share;
  return std::pow(fill, whole) * (1 - share + share * fill);
}

double Variable(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes) {
  return StandardExact(num_keys, num_bits, num_probes);
}

double VariablePaper(uint64_t num_keys, uint64_t num_bits, double k) {
  if (num_bits == 0 || !(k >= 0) || k > kMaxProbes) return kNoFilter;
  const NestedBlocks blocks(num_bits, k);
  std::vector<double> all_set = {1.0};
  std::vector<double> cuts = {0.0, 1.0};  // between two of them the rate does not depend on u
  for (size_t block = 0; block < blocks.bits.size(); ++block) {
    all_set.push_back(AllNestedBlocksSet(blocks, block + 1, static_cast<double>(num_keys)));
    cuts.push_back(blocks.probes[block] - std::floor(blocks.probes[block]));
  }
  std::sort(cuts.begin(), cuts.end());
  double rate = 0;
  for (size_t i = 1; i < cuts.size(); ++i) {
    const double length = cuts[i] - cuts[i - 1];
    rate += length * NestedRate(blocks, all_set, cuts[i - 1] + length / 2);
  }
  return rate;
}

double SplitBlocked(uint64_t num_keys, uint64_t num_bits, uint32_t words_per_block,
                    uint32_t word_bits) {
  const uint64_t block_bits = uint64_t{words_per_block} * word_bits;
  if (block_bits == 0 || num_bits < block_bits || words_per_block > kMaxProbes) return kNoFilter;
  const uint64_t num_blocks = num_bits / block_bits;
  const double mean_load = static_cast<double>(num_keys) / static_cast<double>(num_blocks);
  if (Saturated(mean_load, 1, word_bits, words_per_block)) return 1;
  const Loads loads = BlockLoads(num_keys, num_blocks);
  double rate = 0;
  for (size_t i = 0; i < loads.weight.size(); ++i) {
    const auto load = static_cast<double>(loads.first + i);
    rate += loads.weight[i] * std::pow(MeanFill(load, word_bits), words_per_block);
  }
  return std::min(rate, 1.0);
}

double LineBlocked(uint64_t num_keys, uint64_t num_bits, uint32_t block_bits, uint32_t num_probes) {
  if (block_bits == 0 || num_bits < block_bits || num_probes > kMaxProbes) return kNoFilter;
  if (num_probes == 0) return 1;
  const uint64_t num_blocks = num_bits / block_bits;
  const double mean_load = static_cast<double>(num_keys) / static_cast<double>(num_blocks);
  if (Saturated(mean_load, num_probes, block_bits, num_probes)) return 1;
  const Loads loads = BlockLoads(num_keys, num_blocks);
  const Mixture mixture = DistinctBins(num_probes, block_bits);
  WatchedBins watched(num_probes, block_bits);
  // StandardExact for each load in turn: one run of the recurrence serves them all.
  for (uint64_t ball = 0; ball < loads.first * num_probes; ++ball) watched.ThrowBall();
  double rate = 0;
  for (const double weight : loads.weight) {
    rate += weight * watched.AllHit(mixture);
    for (uint32_t probe = 0; probe < num_probes; ++probe) watched.ThrowBall();
  }
  return std::min(rate, 1.0);
}

double FalseOverlapStandard(uint64_t num_keys_1, uint64_t num_keys_2, uint64_t num_bits,
                            uint32_t num_probes) {
  if (num_bits == 0 || num_probes > kMaxProbes) return kNoFilter;
  const double pairs = Balls(num_keys_1, num_probes) * Balls(num_keys_2, num_probes);
  return MeanFill(pairs, static_cast<double>(num_bits));
}

double FalseOverlapPartitioned(uint64_t num_keys_1, uint64_t num_keys_2, uint64_t num_bits,
                               uint32_t num_probes) {
  if (num_bits == 0 || num_probes > std::min<uint64_t>(num_bits, kMaxProbes)) return kNoFilter;
  if (num_probes == 0) return 0;  // no part, no overlap: as in a standard filter
  const double pairs = static_cast<double>(num_keys_1) * static_cast<double>(num_keys_2);
  const double part_bits = static_cast<double>(num_bits) / num_probes;
  return std::pow(MeanFill(pairs, part_bits), num_probes);
}

double DoubleHashingFloor(uint64_t num_keys, uint64_t num_bits) {
  if (num_bits == 0) return kNoFilter;
  const auto bits = static_cast<double>(num_bits);
  return MeanFill(static_cast<double>(num_keys), bits * bits);
}

double Predict(const Geometry& geometry, uint64_t num_keys) {
  const uint64_t bits = geometry.num_bits;
  const uint32_t probes = geometry.num_probes;
  switch (geometry.layout) {
    case Layout::kStandard:
      return StandardExact(num_keys, bits, probes);
    case Layout::kPartitioned:
      return PartitionedExact(num_keys, bits, probes);
    case Layout::kRational:
      return Rational(num_keys, bits, geometry.rational_k);
    case Layout::kVariable:
      return Variable(num_keys, bits, probes);
    case Layout::kVariablePaper:
      return VariablePaper(num_keys, bits, geometry.rational_k);
    case Layout::kRegister:
      return LineBlocked(num_keys, bits, Register64::kBlockBits, probes);
    case Layout::kSplit256:
      return SplitBlocked(num_keys, bits, Split256::kWordsPerBlock, Split256::kWordBits);
    case Layout::kSplit512:
      return SplitBlocked(num_keys, bits, Split512::kWordsPerBlock, Split512::kWordBits);
    case Layout::kLine512:
      return LineBlocked(num_keys, bits, Line512::kBlockBits, probes);
  }
  return kNoFilter;
}

}  // namespace tepal::fpr
