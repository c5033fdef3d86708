// What the filters promise in the mean: measured rates of false positives against tepal/fpr.h, for
// random hashes.
//
// Every bound is 5 standard deviations of the binomial distribution of the count (a correct program
// fails once in a million such bounds, and seeds are fixed), plus a stated tolerance for what the
// model leaves out: that a filter's own fill differs from the mean one, and that its hash functions
// are not ideal.
//
// TEPAL_LONG_TESTS=1 in the environment adds tests of several minutes.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <numbers>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference.h"
#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/geometry.h"
#include "tests/geometries.h"
#include "tests/test_util.h"
#include "tools/tepal/measured_rate.h"

namespace tepal::testing {
namespace {

Geometry Make(Layout layout, uint64_t num_bits, double probes) {
  return LayoutCase(layout, "", num_bits, probes).geometry;
}

using tool::Hashes;
using tool::Insert;
using tool::Measure;
using tool::Measured;

// ---- Expectations

// `tolerance` is relative.
void ExpectRate(const Measured& measured, double expected, double tolerance,
                const std::string& what) {
  EXPECT_NEAR(measured.rate(), expected, 5 * measured.Sigma(expected) + tolerance * expected)
      << what << ": " << measured.hits << " of " << measured.probes << ", that is "
      << measured.rate() / expected << " times the expected";
}

void ExpectFarFrom(const Measured& measured, double wrong, double sigmas, const std::string& what) {
  EXPECT_GT(std::abs(measured.rate() - wrong), sigmas * measured.Sigma(wrong))
      << what << ": " << measured.rate() << " is too near to " << wrong;
}

std::string Describe(const Geometry& geometry, double bits_per_key) {
  return std::string(LayoutName(geometry.layout)) + ", " + std::to_string(geometry.num_bits) +
         " bits, " + std::to_string(bits_per_key) + " per key";
}

double Tolerance(Layout layout) {
  switch (layout) {
    case Layout::kStandard:
    case Layout::kPartitioned:
    case Layout::kRational:
    case Layout::kVariable:
      return 0.01;
    case Layout::kVariablePaper:
      return 0.05;  // simulations of the formula had a noise of 1 %
    case Layout::kRegister:
    case Layout::kSplit256:
    case Layout::kSplit512:
    case Layout::kLine512:
      return 0.03;  // a few crowded blocks decide
  }
  return 0;
}

// ---- Every layout against its prediction

class PredictionTest : public ::testing::TestWithParam<Layout> {};

TEST_P(PredictionTest, HoldsFromFourToTwentyBitsPerKey) {
  constexpr uint64_t kKeys = uint64_t{1} << 20;
  uint64_t seed = 100;
  for (const double bits_per_key : {4.0, 8.0, 12.0, 16.0, 20.0}) {
    const Geometry geometry = Geometry::For(GetParam(), kKeys, bits_per_key);
    const double predicted = fpr::Predict(geometry, kKeys);
    // 20000 false positives make 5 sigma 3.5 %; the limit makes it 8 % at 20 bits per key.
    const auto probes = static_cast<uint64_t>(std::min(20000 / predicted, 6e7));
    ASSERT_GT(static_cast<double>(probes) * predicted, 3000);
    TEPAL_TRACE_SEED(++seed);
    ExpectRate(Measure(geometry, kKeys, 1, probes, seed), predicted, Tolerance(GetParam()),
               Describe(geometry, bits_per_key));
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, PredictionTest, ::testing::ValuesIn(kAllLayouts),
                         [](const auto& test) { return TestName(LayoutName(test.param)); });

// ---- Any size with masks only: `variable`, and the same as printed

struct VariableCase {
  uint64_t num_bits;
  double bits_per_key;
  // Measured over ideal for Algorithm 2 with rational k_j, from an earlier simulation. Ours, of
  // the formula of fpr::VariablePaper, gives 2.4, 3.6, 3.6, 4.7 and 7.3.
  double paper_ratio;
};

constexpr VariableCase kVariableCases[] = {
    {212992, 8, 2.48},  {212992, 14.4, 3.94},                         // 3 blocks
    {1048064, 8, 4.11}, {1048064, 10, 5.29},  {1048064, 14.4, 8.62},  // 11 blocks
};

uint64_t KeysOf(const VariableCase& test) {
  return static_cast<uint64_t>(static_cast<double>(test.num_bits) / test.bits_per_key);
}

// The best k: m/n ln 2.
double IdealProbes(const VariableCase& test) {
  return static_cast<double>(test.num_bits) / static_cast<double>(KeysOf(test)) * std::numbers::ln2;
}

double IdealRate(const VariableCase& test) { return std::exp2(-IdealProbes(test)); }

// 3 % is the promise; it covers k rounded to an integer (0.8 % at 8 bits per key).
TEST(VariableTest, IsWithinThreePercentOfTheIdeal) {
  uint64_t seed = 200;
  for (const VariableCase& test : kVariableCases) {
    TEPAL_TRACE_SEED(++seed);
    const Geometry geometry = Make(Layout::kVariable, test.num_bits, std::round(IdealProbes(test)));
    const auto probes = static_cast<uint64_t>(100000 / IdealRate(test));
    const Measured measured = Measure(geometry, KeysOf(test), 32, probes, seed);
    ExpectRate(measured, IdealRate(test), 0.03, Describe(geometry, test.bits_per_key));
    ExpectRate(measured, fpr::Predict(geometry, KeysOf(test)), 0.01,
               Describe(geometry, test.bits_per_key));
  }
}

TEST(VariablePaperTest, IsSeveralTimesTheIdeal) {
  uint64_t seed = 300;
  for (const VariableCase& test : kVariableCases) {
    TEPAL_TRACE_SEED(++seed);
    const Geometry geometry = Make(Layout::kVariablePaper, test.num_bits, IdealProbes(test));
    const auto probes = static_cast<uint64_t>(20000 / IdealRate(test));
    const Measured measured = Measure(geometry, KeysOf(test), 32, probes, seed);
    const std::string what = Describe(geometry, test.bits_per_key);
    ExpectRate(measured, fpr::VariablePaper(KeysOf(test), test.num_bits, geometry.rational_k), 0.05,
               what);
    const double ratio = measured.rate() / IdealRate(test);
    EXPECT_GT(ratio, 2) << what;
    EXPECT_NEAR(ratio, test.paper_ratio, 0.25 * test.paper_ratio) << what;
  }
}

// ---- A rational number of probes

// A share p of the queries makes one probe more, so their rates are averaged: q^floor(k) *
// (1 - p + p*q), not q^k as published. Both are equal for integer k.
TEST(RationalTest, IsOnTheCorrectedFormulaAndNotOnThePublishedOne) {
  constexpr uint64_t kBits = 131072;
  constexpr uint64_t kKeys = 60000;
  uint64_t seed = 400;
  for (const double k : {1.0, 1.514, 2.0}) {
    TEPAL_TRACE_SEED(++seed);
    const double fill = 1 - std::exp(-k * static_cast<double>(kKeys) / static_cast<double>(kBits));
    const double share = k - std::floor(k);
    const double corrected = std::pow(fill, std::floor(k)) * (1 - share + share * fill);
    const Geometry geometry = Make(Layout::kRational, kBits, k);
    EXPECT_NEAR(fpr::Predict(geometry, kKeys), corrected, 1e-4 * corrected);
    const Measured measured = Measure(geometry, kKeys, 16, 16'000'000, seed);
    ExpectRate(measured, corrected, 0.005, "k = " + std::to_string(k));
    if (share > 0) ExpectFarFrom(measured, std::pow(fill, k), 100, "q^k");
  }
}

// ---- Exact sums

struct SumCase {
  Layout layout;
  double probes;
  double bits_per_key;
  double above_textbook;  // the measured rate is at least so many times the textbook's
};

// The rate of a blocked filter is that of a mean over blocks of different loads, and the textbook
// formula, which knows nothing of blocks, is far below.
constexpr SumCase kSumCases[] = {
    {Layout::kSplit256, 8, 10, 1.3}, {Layout::kSplit256, 8, 16, 2},
    {Layout::kSplit512, 8, 10, 1.1}, {Layout::kSplit512, 8, 16, 1.4},
    {Layout::kLine512, 6, 10, 1.1},  {Layout::kLine512, 8, 16, 1.4},
    {Layout::kLine512, 11, 16, 1.6}, {Layout::kRegister, 4, 8, 1.3},
    {Layout::kRegister, 4, 16, 2},   {Layout::kRegister, 6, 16, 4},
};

TEST(BlockedTest, RatesAreThoseOfTheSumsAndNotOfTheTextbook) {
  constexpr uint64_t kKeys = uint64_t{1} << 20;
  uint64_t seed = 500;
  for (const SumCase& test : kSumCases) {
    TEPAL_TRACE_SEED(++seed);
    const auto bits = static_cast<uint64_t>(static_cast<double>(kKeys) * test.bits_per_key);
    const Geometry geometry = Make(test.layout, bits / 512 * 512, test.probes);
    const double predicted = fpr::Predict(geometry, kKeys);
    const Measured measured =
        Measure(geometry, kKeys, 1, static_cast<uint64_t>(20000 / predicted), seed);
    const std::string what = Describe(geometry, test.bits_per_key);
    ExpectRate(measured, predicted, Tolerance(test.layout), what);
    const double textbook = fpr::Classic(kKeys, geometry.num_bits, geometry.num_probes);
    EXPECT_GT(measured.rate(), test.above_textbook * textbook) << what;
    ExpectFarFrom(measured, textbook, 10, what);
  }
}

// `partitioned` differs from the textbook by less than 0.5 % at these sizes, so this shows only
// that it is on the exact formula; what its parts are good for is in WeakSpotsTest.
//
// With equal steps of double hashing small filters would be 2.4 % (`standard`, `variable`) to 3.3 %
// (`partitioned`) worse than predicted in 4096 bits.
TEST(SmallFiltersTest, FollowThePrediction) {
  uint64_t seed = 600;
  for (const Layout layout : {Layout::kStandard, Layout::kPartitioned, Layout::kVariable}) {
    for (const uint64_t num_bits : {4096u, 65536u}) {
      TEPAL_TRACE_SEED(++seed);
      const Geometry geometry = Make(layout, num_bits, 8);
      const auto keys =
          static_cast<uint64_t>(static_cast<double>(num_bits) / 8 * std::numbers::ln2);
      const double predicted = fpr::Predict(geometry, keys);
      const Measured measured = Measure(geometry, keys, 2'000'000 / keys, 20'000'000, seed);
      const std::string what = Describe(geometry, 8 / std::numbers::ln2);
      const double noise = 5 * measured.Sigma(predicted) / predicted;
      const double ratio = measured.rate() / predicted;
      EXPECT_LT(ratio, 1.005 + noise) << what;
      EXPECT_GT(ratio, 0.995 - noise) << what;
    }
  }
}

// At high accuracy equal steps have a floor: 3.2 times the predicted rate of `standard` here, and
// 3.4 times that of `variable`. LongTest measures it more closely.
TEST(SmallFiltersTest, HaveNoFloorAtHighAccuracy) {
  constexpr uint64_t kKeys = 1000;
  uint64_t seed = 650;
  for (const Layout layout : {Layout::kStandard, Layout::kPartitioned, Layout::kVariable}) {
    TEPAL_TRACE_SEED(++seed);
    const Geometry geometry = Make(layout, 512 * 20 * 3, 20);
    const Measured measured = Measure(geometry, kKeys, 100, 200'000'000, seed);
    ExpectRate(measured, fpr::Predict(geometry, kKeys), 0.05, Describe(geometry, 30.72));
  }
}

// ---- Weak spots: keys that are false positives far more often than others

// 44 keys of 8 bits half fill a line of 512.
constexpr uint64_t kLineKeys = 44;
constexpr uint32_t kLineProbes = 8;

// (h1 + i*h2) mod 512, with 9 bits of hash for each.
class NaiveLine {
 public:
  void Insert(uint32_t h1, uint32_t h2) {
    for (uint32_t i = 0; i < kLineProbes; ++i) bits_[(h1 + i * h2) % 512] = true;
  }
  bool MayContain(uint32_t h1, uint32_t h2) const {
    for (uint32_t i = 0; i < kLineProbes; ++i) {
      if (!bits_[(h1 + i * h2) % 512]) return false;
    }
    return true;
  }

 private:
  std::vector<bool> bits_ = std::vector<bool>(512);
};

TEST(WeakSpotsTest, NaiveDoubleHashingHasThem) {
  Hashes hashes(700);
  Measured all;
  Measured one_bit;    // h2 = 0: one element in 512
  Measured two_bits;   // h2 = 256
  Measured four_bits;  // h2 = 128
  for (int i = 0; i < 4000; ++i) {
    NaiveLine line;
    for (uint64_t key = 0; key < kLineKeys; ++key) {
      const uint64_t hash = hashes();
      line.Insert(hash & 511, hash >> 9 & 511);
    }
    const auto count = [&](Measured& measured, uint32_t h1, uint32_t h2) {
      ++measured.probes;
      measured.hits += line.MayContain(h1, h2) ? 1 : 0;
    };
    for (int probe = 0; probe < 1000; ++probe) {
      const uint64_t hash = hashes();
      count(all, hash & 511, hash >> 9 & 511);
    }
    for (uint32_t h1 = 0; h1 < 512; ++h1) {
      count(one_bit, h1, 0);
      count(two_bits, h1, 256);
      count(four_bits, h1, 128);
    }
  }
  // Not far above the rate of ideal hashing in the mean, ...
  const double ideal = fpr::StandardExact(kLineKeys, 512, kLineProbes);
  EXPECT_LT(all.rate(), 2 * ideal);
  EXPECT_GT(all.rate(), ideal);
  // ... but hopeless for some, and always for the same.
  EXPECT_GT(one_bit.rate(), 0.45);
  EXPECT_GT(two_bits.rate(), 0.2);
  EXPECT_GT(four_bits.rate(), 0.05);
  EXPECT_GT(one_bit.rate(), 60 * all.rate());
}

size_t DistinctBits(const Geometry& geometry, uint64_t hash) {
  const std::vector<uint64_t> positions = reference::Positions(geometry, hash);
  return std::set<uint64_t>(positions.begin(), positions.end()).size();
}

// By the number of different bits, 0 to 8.
std::vector<std::vector<uint64_t>> KeysByDistinctBits(const Geometry& geometry, size_t count,
                                                      uint64_t seed) {
  Hashes hashes(seed);
  std::vector<std::vector<uint64_t>> keys(kLineProbes + 1);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t hash = hashes();
    keys[DistinctBits(geometry, hash)].push_back(hash);
  }
  return keys;
}

TEST(WeakSpotsTest, KeysOfPartitionedAlwaysHaveAllTheirBits) {
  for (const uint64_t part : {512u, 1536u}) {
    const Geometry geometry = Make(Layout::kPartitioned, part * kLineProbes, kLineProbes);
    EXPECT_EQ(KeysByDistinctBits(geometry, 200'000, 800)[kLineProbes].size(), 200'000u);
  }
}

// Naive double hashing has a thousand keys with a single bit, and a thousand with two, among these.
TEST(WeakSpotsTest, KeysOfLine512CollideAsOftenAsChanceHasIt) {
  constexpr size_t kKeys = 500'000;
  const Geometry geometry = Make(Layout::kLine512, 512, kLineProbes);
  const auto keys = KeysByDistinctBits(geometry, kKeys, 801);
  for (uint32_t distinct = 0; distinct <= kLineProbes; ++distinct) {
    const double expected =
        distinct == 0 ? 0 : fpr::CollisionProbability(512, kLineProbes, kLineProbes - distinct);
    const double mean = expected * static_cast<double>(kKeys);
    EXPECT_NEAR(static_cast<double>(keys[distinct].size()), mean,
                5 * std::sqrt(mean) + 0.05 * mean + 1)
        << distinct << " different bits";
  }
  const size_t one_or_two = keys[1].size() + keys[2].size();
  EXPECT_EQ(one_or_two, 0u);
}

// The rates of keys with 8, 7 and 6 different bits, each of many filters of one line.
TEST(WeakSpotsTest, KeysOfLine512HaveTheirPerElementRates) {
  const Geometry geometry = Make(Layout::kLine512, 512, kLineProbes);
  auto keys = KeysByDistinctBits(geometry, 500'000, 802);
  std::vector<Measured> measured(kLineProbes + 1);
  Hashes hashes(803);
  for (int i = 0; i < 4000; ++i) {
    Filter filter = MakeFilter(geometry);
    Insert(filter, kLineKeys, hashes);
    for (uint32_t distinct = 6; distinct <= kLineProbes; ++distinct) {
      keys[distinct].resize(std::min<size_t>(keys[distinct].size(), 2000));
      measured[distinct].probes += keys[distinct].size();
      measured[distinct].hits += filter.CountHashes(keys[distinct]);
    }
  }
  for (uint32_t distinct = 6; distinct <= kLineProbes; ++distinct) {
    // 4000 filters have a mean fill of their own.
    ExpectRate(measured[distinct], fpr::PerElement(kLineKeys, 512, kLineProbes, distinct), 0.05,
               std::to_string(distinct) + " different bits");
  }
}

// The same of keys of `partitioned`, which are all alike: no group of one key in 512 is worse than
// the mean.
TEST(WeakSpotsTest, KeysOfPartitionedAreAllAlike) {
  constexpr uint64_t kBits = 8 * 512;
  constexpr uint64_t kKeys = 355;
  constexpr size_t kElements = 4096;
  constexpr int kFilters = 8000;
  const Geometry geometry = Make(Layout::kPartitioned, kBits, kLineProbes);
  const std::vector<uint64_t> elements = Hashes(810).Next(kElements);
  std::vector<uint32_t> rows(kElements);
  std::vector<uint64_t> hits(kElements);
  Hashes hashes(811);
  for (int i = 0; i < kFilters; ++i) {
    Filter filter = MakeFilter(geometry);
    Insert(filter, kKeys, hashes);
    const size_t found = filter.SelectHashes(elements, rows.data());
    for (size_t row = 0; row < found; ++row) ++hits[rows[row]];
  }
  const double mean = kFilters * fpr::PartitionedExact(kKeys, kBits, kLineProbes);
  // Of 4096 elements naive double hashing would have 8 with a count of half of kFilters.
  const double most = static_cast<double>(*std::max_element(hits.begin(), hits.end()));
  EXPECT_LT(most, mean + 6 * std::sqrt(mean) + 0.05 * mean);
  EXPECT_GT(most, mean);
}

// ---- No false negatives

// Sizes in and out of the caches, and full to very different degrees: whatever is in is found.
void ExpectNoFalseNegatives(uint64_t total_inserts, uint64_t seed) {
  struct Size {
    uint64_t num_keys;
    double bits_per_key;
  };
  constexpr Size kSizes[] = {{1000, 2}, {1000, 30}, {100'000, 10}, {1'000'000, 1}, {1'000'000, 13}};
  Hashes hashes(seed);
  uint64_t inserts = 0;
  while (inserts < total_inserts) {
    for (const Layout layout : kAllLayouts) {
      for (const Size& size : kSizes) {
        const Geometry geometry = Geometry::For(layout, size.num_keys, size.bits_per_key);
        Filter filter = MakeFilter(geometry);
        const std::vector<uint64_t>& keys = hashes.Next(size.num_keys);
        const std::span<const uint64_t> half(keys.data(), keys.size() / 2);
        filter.InsertHashes(half);
        filter.InsertHashes(std::span(keys).subspan(half.size()));
        ASSERT_EQ(filter.CountHashes(keys), keys.size()) << Describe(geometry, size.bits_per_key);
        // Keys that Tepal hashes, into the same filter, which forgets nothing.
        filter.Insert(half);
        ASSERT_EQ(filter.Count(half), half.size()) << Describe(geometry, size.bits_per_key);
        ASSERT_EQ(filter.CountHashes(keys), keys.size()) << Describe(geometry, size.bits_per_key);
        inserts += keys.size() + half.size();
      }
    }
  }
}

TEST(FalseNegativesTest, TwentyMillionInsertsHaveNone) { ExpectNoFalseNegatives(20'000'000, 900); }

// ---- Long

class LongTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* wanted = std::getenv("TEPAL_LONG_TESTS");
    if (wanted == nullptr || std::string_view(wanted) != "1") {
      GTEST_SKIP() << "set TEPAL_LONG_TESTS=1 to run this";
    }
  }
};

TEST_F(LongTest, HundredMillionInsertsHaveNoFalseNegative) {
  ExpectNoFalseNegatives(100'000'000, 901);
}

// Rates of a millionth: 5 sigma are about 20 % where 10^9 probes find 550 false positives.
TEST_F(LongTest, ThirtyBitsPerKeyHaveThePredictedRate) {
  constexpr uint64_t kKeys = 100'000;
  uint64_t seed = 1000;
  for (const Layout layout : kAllLayouts) {
    TEPAL_TRACE_SEED(++seed);
    const Geometry geometry = Geometry::For(layout, kKeys, 30);
    const double predicted = fpr::Predict(geometry, kKeys);
    const Measured measured = Measure(geometry, kKeys, 10, 1'000'000'000, seed);
    std::cout << Describe(geometry, 30) << ": " << measured.hits << " of 10^9, predicted "
              << predicted * 1e9 << std::endl;
    ExpectRate(measured, predicted, 0.05, Describe(geometry, 30));
  }
}

// The same in filters of 1000 keys, where double hashing is most easily found out. Over many of
// them, because the fill of each differs.
TEST_F(LongTest, ThirtyBitsPerKeyHaveThePredictedRateInSmallFilters) {
  constexpr uint64_t kKeys = 1000;
  constexpr uint64_t kBits = 512 * 20 * 3;
  uint64_t seed = 1050;
  for (const Layout layout : {Layout::kStandard, Layout::kPartitioned, Layout::kVariable}) {
    TEPAL_TRACE_SEED(++seed);
    const Geometry geometry = Make(layout, kBits, 20);
    const Measured measured = Measure(geometry, kKeys, 1000, 1'000'000'000, seed);
    ExpectRate(measured, fpr::Predict(geometry, kKeys), 0.05, Describe(geometry, 30.72));
  }
}

// The predicted rate is 3e-13 or less, so any false positive is the fault of the hash functions:
// keys whose step is nearly 0, or nearly a simple fraction of m, and so visit few bits, or keys and
// queries whose positions run together.
constexpr double kHighAccuracy = 60;
constexpr uint32_t kBestProbes = 42;
constexpr uint64_t kHighAccuracyProbes = 100'000'000;

TEST_F(LongTest, SixtyBitsPerKeyHaveNoFalsePositive) {
  uint64_t seed = 1100;
  for (const Layout layout : {Layout::kStandard, Layout::kPartitioned, Layout::kVariable}) {
    for (const uint64_t num_keys : {1000u, 100'000u}) {
      TEPAL_TRACE_SEED(++seed);
      const uint64_t granule = 512 * kBestProbes;  // what `partitioned` needs
      const uint64_t bits = (num_keys * 60 + granule - 1) / granule * granule;
      const Geometry geometry = Make(layout, bits, kBestProbes);
      const Measured measured = Measure(geometry, num_keys, 10, kHighAccuracyProbes, seed);
      EXPECT_EQ(measured.hits, 0u) << Describe(geometry, kHighAccuracy);
    }
  }
}

// The same with (h1 + i*h2) mod m in integers, which tells only m^2 keys apart.
TEST_F(LongTest, NaiveDoubleHashingHasAFloor) {
  constexpr uint64_t kKeys = 1000;
  constexpr uint64_t kBits = 60'000;
  constexpr uint64_t kProbes = 42;
  uint64_t hits = 0;
  Hashes hashes(1200);
  const auto first = [](uint64_t hash) { return (hash >> 32) % kBits; };
  const auto step = [](uint64_t hash) { return (hash & 0xFFFFFFFFu) % kBits; };
  for (int filter = 0; filter < 10; ++filter) {
    std::vector<bool> bits(kBits);
    for (uint64_t key = 0; key < kKeys; ++key) {
      const uint64_t hash = hashes();
      for (uint64_t i = 0; i < kProbes; ++i) bits[(first(hash) + i * step(hash)) % kBits] = true;
    }
    for (uint64_t probe = 0; probe < kHighAccuracyProbes / 10; ++probe) {
      const uint64_t hash = hashes();
      uint64_t i = 0;
      while (i < kProbes && bits[(first(hash) + i * step(hash)) % kBits]) ++i;
      hits += i == kProbes ? 1 : 0;
    }
  }
  const double floor =
      static_cast<double>(kHighAccuracyProbes) * fpr::DoubleHashingFloor(kKeys, kBits);
  std::cout << "naive double hashing: " << hits << " false positives, n/m^2 is " << floor
            << std::endl;
  EXPECT_GT(static_cast<double>(hits), floor / 2);
}

}  // namespace
}  // namespace tepal::testing
