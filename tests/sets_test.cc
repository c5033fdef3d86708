// Set operations: no key is ever lost, results are those of filters built directly, and what cannot
// work is an error.
#include "tepal/sets.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/layout_traits.h"
#include "tepal/container.h"
#include "tests/geometries.h"
#include "tests/test_files.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kSeed = 4711;

// Random hashes, and those at the ends of all ranges.
std::vector<uint64_t> SomeHashes(uint64_t seed, size_t count) {
  std::vector<uint64_t> hashes = RandomValues(seed, count);
  for (const uint64_t edge : {uint64_t{0}, ~uint64_t{0}, uint64_t{0xFFFFFFFF}, uint64_t{1} << 63}) {
    hashes.push_back(edge);
  }
  return hashes;
}

Filter Build(const Geometry& geometry, std::span<const uint64_t> hashes) {
  Filter filter = MakeFilter(geometry);
  filter.InsertHashes(hashes);
  return filter;
}

// A number of keys that fills about half of the bits, or `percent` of so many.
size_t HalfFull(const Geometry& geometry, size_t percent = 100) {
  return std::max<size_t>(geometry.num_bits * 69 / 100 / geometry.num_probes * percent / 100, 1);
}

Geometry With(Geometry geometry, uint64_t num_bits, uint32_t num_probes) {
  geometry.num_bits = num_bits;
  geometry.num_probes = num_probes;
  return geometry;
}

// A small filter of each layout, and of each way to choose bits.
std::vector<GeometryCase> SmallGeometries() {
  return {LayoutCase(Layout::kStandard, "mask", 1 << 14, 5),
          LayoutCase(Layout::kStandard, "multiply_high", 512 * 36, 5),
          LayoutCase(Layout::kPartitioned, "mask", 6 << 12, 6),
          LayoutCase(Layout::kPartitioned, "multiply_high", 512 * 6 * 12, 6),
          LayoutCase(Layout::kRational, "mask", 1 << 14, 5.3),
          LayoutCase(Layout::kRational, "multiply_high", 512 * 36, 5.3),
          LayoutCase(Layout::kVariable, "one_block", 1 << 14, 6),
          LayoutCase(Layout::kVariable, "two_blocks", 3 << 13, 6),
          LayoutCase(Layout::kVariable, "four_blocks", 29 * 1024, 7),
          LayoutCase(Layout::kVariablePaper, "three_blocks", 13 * 2048, 6.7),
          LayoutCase(Layout::kRegister, "360_words", 64 * 360, 4),
          LayoutCase(Layout::kSplit256, "60_blocks", 256 * 60, 8),
          LayoutCase(Layout::kSplit512, "60_lines", 512 * 60, 8),
          LayoutCase(Layout::kLine512, "60_lines", 512 * 60, 6)};
}

class SetsTest : public ::testing::TestWithParam<GeometryCase> {
 protected:
  const Geometry& geometry() const { return GetParam().geometry; }
};

INSTANTIATE_TEST_SUITE_P(Layouts, SetsTest, ::testing::ValuesIn(SmallGeometries()),
                         [](const auto& test) { return test.param.name; });

// ---- Equal geometries

TEST_P(SetsTest, UnionHasTheBytesOfOneFilterWithAllKeys) {
  const std::vector<uint64_t> keys = SomeHashes(kSeed, HalfFull(geometry()));
  const size_t cut = keys.size() / 3;
  Filter into = Build(geometry(), std::span(keys).first(cut));
  const Filter other = Build(geometry(), std::span(keys).subspan(cut));
  ASSERT_TRUE(Union(into, other.View()).ok());
  EXPECT_EQ(BytesOf(into), BytesOf(Build(geometry(), keys)));
}

TEST_P(SetsTest, IntersectKeepsEveryCommonKeyAndNoForeignBit) {
  const std::vector<uint64_t> keys = SomeHashes(kSeed, HalfFull(geometry()));
  const auto common = std::span(keys).last(keys.size() / 4);
  const Filter a = Build(geometry(), std::span(keys).last(keys.size() / 2));
  const Filter b = Build(geometry(), RandomValues(kSeed + 1, keys.size() / 4));
  Filter both = Build(geometry(), common);
  ASSERT_TRUE(Union(both, b.View()).ok());
  std::vector<uint8_t> expected = BytesOf(a);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] &= both.bytes()[i];
  ASSERT_TRUE(Intersect(both, a.View()).ok());
  EXPECT_EQ(both.CountHashes(common), common.size());
  EXPECT_EQ(BytesOf(both), expected);
}

TEST_P(SetsTest, ASharedKeyIsNeverDisjoint) {
  for (uint64_t round = 0; round < 300; ++round) {
    const std::vector<uint64_t> keys = RandomValues(kSeed + round, 1 + 2 * (round % 20));
    const size_t half = keys.size() / 2;  // the key in the middle is in both
    const Filter a = Build(geometry(), std::span(keys).first(half + 1));
    const Filter b = Build(geometry(), std::span(keys).subspan(half));
    EXPECT_FALSE(SurelyDisjoint(a.View(), b.View()).value()) << "round " << round;
  }
}

TEST_P(SetsTest, FewDifferentKeysAreSurelyDisjoint) {
  const Filter empty = MakeFilter(geometry());
  const Filter full = Build(geometry(), SomeHashes(kSeed, 20 * HalfFull(geometry())));
  EXPECT_TRUE(SurelyDisjoint(empty.View(), full.View()).value());
  EXPECT_FALSE(SurelyDisjoint(full.View(), full.View()).value());
  size_t num_disjoint = 0;
  for (uint64_t round = 0; round < 100; ++round) {
    const Filter a = Build(geometry(), RandomValues(kSeed + 2 * round, 2));
    const Filter b = Build(geometry(), RandomValues(kSeed + 2 * round + 1, 2));
    num_disjoint += SurelyDisjoint(a.View(), b.View()).value() ? 1 : 0;
  }
  EXPECT_GT(num_disjoint, 80u);
}

TEST_P(SetsTest, FillRatioCountsBits) {
  EXPECT_EQ(FillRatio(MakeFilter(geometry()).View()), 0);
  const std::vector<uint8_t> ones(geometry().num_bytes(), 0xFF);
  EXPECT_EQ(FillRatio(Filter::FromBytes(geometry(), ones).value().View()), 1);
  std::vector<uint8_t> some = ones;
  std::fill_n(some.begin(), some.size() / 4, uint8_t{0x01});
  EXPECT_DOUBLE_EQ(FillRatio(Filter::FromBytes(geometry(), some).value().View()), 0.75 + 0.25 / 8);
}

TEST_P(SetsTest, AFullFilterHasNoEstimate) {
  const std::vector<uint8_t> ones(geometry().num_bytes(), 0xFF);
  const Filter full = Filter::FromBytes(geometry(), ones).value();
  EXPECT_EQ(EstimateKeys(full.View()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(EstimateKeys(MakeFilter(geometry()).View()).value(), 0u);
}

TEST_P(SetsTest, DifferentHashingIsAnError) {
  Filter into = MakeFilter(geometry());
  Geometry seeded = geometry();
  seeded.seed = 1;
  Geometry xxh64 = geometry();
  xxh64.hash = HashKind::kXxh64;
  for (const Geometry& other : {seeded, xxh64}) {
    const Filter filter = MakeFilter(other);
    EXPECT_EQ(Union(into, filter.View()).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Intersect(into, filter.View()).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Merge(into.View(), filter.View()).status().code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(SurelyDisjoint(into.View(), filter.View()).ok());
    EXPECT_THAT(Shrink(into.View(), other).status().message(), ::testing::HasSubstr("hash"));
  }
}

TEST(SetsDisjointTest, OneEmptyPartIsEnough) {
  const Geometry geometry = LayoutCase(Layout::kPartitioned, "", 512 * 8 * 64, 8).geometry;
  const Geometry standard = LayoutCase(Layout::kStandard, "", 512 * 8 * 64, 8).geometry;
  size_t parts = 0;
  size_t whole = 0;
  for (uint64_t round = 0; round < 50; ++round) {
    const std::vector<uint64_t> keys = RandomValues(kSeed + round, 400);
    const auto a = std::span(keys).first(200);
    const auto b = std::span(keys).last(200);
    parts += SurelyDisjoint(Build(geometry, a).View(), Build(geometry, b).View()).value();
    whole += SurelyDisjoint(Build(standard, a).View(), Build(standard, b).View()).value();
  }
  // On average 10 common bits, 1.2 in each part: a part is empty with a probability of 0.3.
  EXPECT_GT(parts, 35u);
  EXPECT_LT(whole, 5u);
}

TEST(SetsDisjointTest, OneWordOfEachBlockIsEnough) {
  for (const Layout layout : {Layout::kSplit256, Layout::kSplit512}) {
    const Geometry geometry = LayoutCase(layout, "", 512 * 64, 8).geometry;
    const std::vector<uint64_t> keys = RandomValues(kSeed, 200);
    const Filter a = Build(geometry, std::span(keys).first(100));
    const Filter b = Build(geometry, std::span(keys).last(100));
    EXPECT_TRUE(SurelyDisjoint(a.View(), b.View()).value());
    bool common = false;
    for (size_t i = 0; i < a.bytes().size(); ++i) common |= (a.bytes()[i] & b.bytes()[i]) != 0;
    EXPECT_TRUE(common) << "the test needs filters that are not disjoint bit by bit";
  }
}

TEST(SetsDisjointTest, KeysWithoutBitsAreNeverDisjoint) {
  const Geometry geometry = LayoutCase(Layout::kVariablePaper, "", 512, 0.1).geometry;
  const std::vector<uint64_t> keys = RandomValues(kSeed, 30);
  for (const uint64_t& key : keys) {
    const Filter filter = Build(geometry, std::span(&key, 1));
    EXPECT_FALSE(SurelyDisjoint(filter.View(), filter.View()).value());
  }
}

// ---- Estimates

TEST(SetsEstimateTest, EveryLayoutIsWithinTwoPercent) {
  for (const Layout layout : kAllLayouts) {
    for (const size_t num_keys : {20'000u, 300'000u}) {
      const Geometry geometry = Geometry::For(layout, num_keys, 12);
      Filter filter = MakeFilter(geometry);
      const std::vector<uint64_t> keys = RandomValues(kSeed, 2 * num_keys);
      size_t inserted = 0;
      for (const size_t load_percent : {10u, 100u, 200u}) {  // of the design load
        const size_t wanted = num_keys * load_percent / 100;
        filter.Insert(std::span(keys).subspan(inserted, wanted - inserted));
        inserted = wanted;
        const auto estimate = static_cast<double>(EstimateKeys(filter.View()).value());
        EXPECT_NEAR(estimate / static_cast<double>(wanted), 1, 0.02)
            << LayoutName(layout) << ", " << wanted << " keys";
      }
    }
  }
}

TEST(SetsEstimateTest, SmallNumbersOfKeysAreExactOrNearlySo) {
  for (const Layout layout : kAllLayouts) {
    for (const size_t num_keys : {1u, 2u, 10u}) {
      Filter filter = MakeFilter(Geometry::For(layout, 100'000, 12));
      filter.Insert(RandomValues(kSeed, num_keys));
      EXPECT_NEAR(static_cast<double>(EstimateKeys(filter.View()).value()),
                  static_cast<double>(num_keys), 1)
          << LayoutName(layout);
    }
  }
}

// ---- Smaller filters

struct ShrinkCase {
  std::string name;
  Geometry from;
  Geometry into;
};

void PrintTo(const ShrinkCase& shrink, std::ostream* out) { *out << shrink.name; }

// Every exact way to a smaller filter.
std::vector<ShrinkCase> ShrinkCases() {
  std::vector<ShrinkCase> cases;
  const auto add = [&](const Geometry& from, uint64_t num_bits, uint32_t num_probes) {
    std::string name = TestName(LayoutName(from.layout)) + "_" + std::to_string(from.num_bits) +
                       "_k" + std::to_string(from.num_probes) + "_to_" + std::to_string(num_bits) +
                       "_k" + std::to_string(num_probes);
    cases.push_back({std::move(name), from, With(from, num_bits, num_probes)});
  };
  const auto add_divided = [&](const Geometry& from, std::vector<uint64_t> divisors) {
    for (const uint64_t divisor : divisors) add(from, from.num_bits / divisor, from.num_probes);
  };
  for (const double k : {5.0, 5.3}) {
    const Layout layout = k == 5 ? Layout::kStandard : Layout::kRational;
    add_divided(LayoutCase(layout, "", 1 << 14, k).geometry, {1, 2, 4, 32});
    add_divided(LayoutCase(layout, "", 512 * 36, k).geometry, {1, 2, 3, 4, 6, 12});
  }
  add_divided(LayoutCase(Layout::kPartitioned, "", 6 << 12, 6).geometry, {1, 2, 8});
  add_divided(LayoutCase(Layout::kPartitioned, "", 512 * 6 * 36, 6).geometry, {2, 3, 12});
  add_divided(LayoutCase(Layout::kVariable, "", 1 << 14, 6).geometry, {1, 2, 32});
  add_divided(LayoutCase(Layout::kVariable, "", 29 * 1024, 7).geometry, {1, 2, 16});
  add_divided(LayoutCase(Layout::kVariablePaper, "", 13 * 2048, 6.7).geometry, {1, 2, 32});
  add_divided(LayoutCase(Layout::kRegister, "", 64 * 360, 4).geometry, {1, 2, 3, 5, 360});
  add_divided(LayoutCase(Layout::kSplit256, "", 256 * 420, 8).geometry, {1, 2, 3, 7, 420});
  add_divided(LayoutCase(Layout::kSplit512, "", 512 * 420, 8).geometry, {1, 2, 3, 7, 420});
  add_divided(LayoutCase(Layout::kLine512, "", 512 * 420, 6).geometry, {1, 2, 3, 7, 420});
  const Geometry mask_parts = LayoutCase(Layout::kPartitioned, "", 6 << 12, 6).geometry;
  const Geometry line_parts = LayoutCase(Layout::kPartitioned, "", 512 * 6 * 12, 6).geometry;
  for (const uint32_t k : {1u, 2u, 5u}) {
    add(mask_parts, uint64_t{k} << 12, k);
    add(mask_parts, uint64_t{k} << 10, k);  // and folded
    add(line_parts, uint64_t{512} * k * 12, k);
    add(line_parts, uint64_t{512} * k * 3, k);
  }
  // 2/3 of the bits, 4 of 6 probes: the first block; 28 of 29 units, 28 of 29 probes: three blocks.
  add(LayoutCase(Layout::kVariable, "", 3 << 13, 6).geometry, 2 << 13, 4);
  add(LayoutCase(Layout::kVariable, "", 3 << 13, 6).geometry, 1 << 12, 4);
  add(LayoutCase(Layout::kVariable, "", 29 << 12, 29).geometry, 28 << 12, 28);
  add(LayoutCase(Layout::kVariable, "", 29 << 12, 29).geometry, 24 << 10, 24);
  return cases;
}

class ShrinkTest : public ::testing::TestWithParam<ShrinkCase> {};

INSTANTIATE_TEST_SUITE_P(Exact, ShrinkTest, ::testing::ValuesIn(ShrinkCases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(ShrinkTest, BytesAreThoseOfADirectBuildOnEveryTarget) {
  const auto& [name, from, into] = GetParam();
  const std::vector<uint64_t> keys = SomeHashes(kSeed, HalfFull(from, 50));
  const Filter large = Build(from, keys);
  const std::vector<uint8_t> expected = BytesOf(Build(into, keys));
  for (const std::string& target : AvailableTargets()) {
    const ScopedTarget scope(target);
    const Result<Filter> shrunk = Shrink(large.View(), into);
    ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
    EXPECT_EQ(shrunk->geometry(), into);
    EXPECT_EQ(BytesOf(*shrunk), expected) << target;
  }
}

TEST_P(ShrinkTest, UnequalSizesMergeIntoTheSmallerOne) {
  const auto& [name, from, into] = GetParam();
  const std::vector<uint64_t> keys = SomeHashes(kSeed, HalfFull(into));
  const size_t cut = keys.size() / 2;
  const Filter large = Build(from, std::span(keys).first(cut));
  Filter small = Build(into, std::span(keys).subspan(cut));
  const std::vector<uint8_t> expected = BytesOf(Build(into, keys));
  EXPECT_EQ(BytesOf(Merge(large.View(), small.View()).value()), expected);
  EXPECT_EQ(BytesOf(Merge(small.View(), large.View()).value()), expected);
  ASSERT_TRUE(Union(small, large.View()).ok());
  EXPECT_EQ(BytesOf(small), expected);
}

TEST_P(ShrinkTest, UnequalSizesIntersectAndCompareAtTheSmallerOne) {
  const auto& [name, from, into] = GetParam();
  const std::vector<uint64_t> keys = SomeHashes(kSeed, HalfFull(into));
  const Filter large = Build(from, keys);
  const auto some = std::span(keys).first(keys.size() / 2);
  Filter small = Build(into, some);
  EXPECT_FALSE(SurelyDisjoint(large.View(), small.View()).value());
  EXPECT_FALSE(SurelyDisjoint(small.View(), large.View()).value());
  EXPECT_TRUE(SurelyDisjoint(small.View(), MakeFilter(from).View()).value());
  ASSERT_TRUE(Intersect(small, large.View()).ok());
  EXPECT_EQ(BytesOf(small), BytesOf(Build(into, some)));
}

TEST_P(ShrinkTest, UnionIntoTheLargerOneIsAnErrorThatChangesNothing) {
  const auto& [name, from, into] = GetParam();
  if (from == into) return;
  Filter large = Build(from, RandomValues(kSeed, 10));
  const std::vector<uint8_t> before = BytesOf(large);
  const Filter small = Build(into, RandomValues(kSeed + 1, 10));
  for (const Status& status : {Union(large, small.View()), Intersect(large, small.View())}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), ::testing::HasSubstr("Merge"));
  }
  EXPECT_EQ(BytesOf(large), before);
}

// A container may say so; no key of its own has ever set a bit there.
TEST(EstimateTest, BitsThatNoNumberOfKeysExplainsAreAnError) {
  const Geometry geometry = {
      .layout = Layout::kVariablePaper, .num_bits = 512, .num_probes = 1, .rational_k = 1e-300};
  std::vector<uint8_t> bytes(geometry.num_bytes(), 0);
  EXPECT_EQ(EstimateKeys(Filter::FromBytes(geometry, bytes).value().View()).value(), 0u);
  bytes[0] = 1;
  const Status status = EstimateKeys(Filter::FromBytes(geometry, bytes).value().View()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("no number of keys"));
}

// What docs/sets.md says of a smaller geometry.
enum class Promise {
  kNothing,  // an error
  kKeys,     // all keys, and bits that a direct build has not
  kBytes     // those of a direct build
};

bool IsPowerOfTwoTimes(uint64_t larger, uint64_t smaller) {
  return larger % smaller == 0 && std::has_single_bit(larger / smaller);
}

bool FoldsRange(uint64_t from_bits, uint64_t into_bits) {
  return from_bits % into_bits == 0 &&
         std::has_single_bit(from_bits) == std::has_single_bit(into_bits);
}

// The first blocks: the powers of two in num_bits, largest first.
Promise PromiseOfVariable(const Geometry& from, const Geometry& into) {
  uint64_t kept = 0;
  while (kept < from.num_bits) {
    kept += std::bit_floor(from.num_bits - kept);
    if (!IsPowerOfTwoTimes(kept, into.num_bits)) continue;
    const uint64_t probes = from.num_probes * kept;  // times from.num_bits
    if (into.num_probes * from.num_bits == probes) return Promise::kBytes;
    const bool largest = std::has_single_bit(kept);
    if (largest && into.num_probes == probes / from.num_bits) return Promise::kKeys;
  }
  return Promise::kNothing;
}

Promise PromiseOf(const Geometry& from, const Geometry& into) {
  const auto bytes_if = [](bool exact) { return exact ? Promise::kBytes : Promise::kNothing; };
  switch (from.layout) {
    case Layout::kStandard:
    case Layout::kRational:
      return bytes_if(FoldsRange(from.num_bits, into.num_bits));
    case Layout::kPartitioned:
      return bytes_if(FoldsRange(from.num_bits / from.num_probes, into.num_bits / into.num_probes));
    case Layout::kVariable:
      return PromiseOfVariable(from, into);
    case Layout::kVariablePaper:
      return bytes_if(IsPowerOfTwoTimes(from.num_bits, into.num_bits));
    default:
      return bytes_if(from.num_bits % into.num_bits == 0);
  }
}

// A part of `partitioned` is a unit for each probe.
uint64_t UnitBits(Layout layout, uint32_t num_probes) {
  return RulesOf(layout).granule_bits * (layout == Layout::kPartitioned ? num_probes : 1);
}

// Every size and number of probes up to those of `from`, whether it can be shrunk to them or not.
std::vector<Geometry> SmallerGeometries(const Geometry& from) {
  const bool fewer_probes = from.layout == Layout::kPartitioned || from.layout == Layout::kVariable;
  std::vector<Geometry> all;
  for (uint32_t k = fewer_probes ? 1 : from.num_probes; k <= from.num_probes; ++k) {
    const uint64_t unit = UnitBits(from.layout, k);
    for (uint64_t bits = unit; bits <= from.num_bits; bits += unit) {
      if (With(from, bits, k).Validate().ok()) all.push_back(With(from, bits, k));
    }
  }
  return all;
}

bool HasAllBitsOf(std::span<const uint8_t> larger, std::span<const uint8_t> smaller) {
  return std::equal(larger.begin(), larger.end(), smaller.begin(), smaller.end(),
                    [](uint8_t a, uint8_t b) { return (a & b) == b; });
}

class ShrinkPropertyTest : public ::testing::TestWithParam<Layout> {
 protected:
  static constexpr int kRounds = kQuickTests ? 3 : 8;
  static constexpr const char* kNeedsGeometries = "the test needs geometries that can be shrunk";

  // Up to 48 units. One of three sizes is a power of two, one has many divisors, one is any.
  Geometry RandomGeometry() {
    const SizeRules rules = RulesOf(GetParam());
    const uint64_t sizes[] = {uint64_t{1} << random_() % 6, 12 * (1 + random_() % 4),
                              1 + random_() % 48};
    const uint32_t max_probes = std::min(rules.max_probes, 9u);
    double probes =
        static_cast<double>(rules.min_probes + random_() % (max_probes - rules.min_probes + 1));
    const Geometry whole = LayoutCase(GetParam(), "", 0, probes).geometry;
    if (whole.rational_k != 0) probes += static_cast<double>(random_() % 10) / 10;
    const uint64_t unit = std::max(UnitBits(GetParam(), whole.num_probes), rules.min_bits / 4);
    return LayoutCase(GetParam(), "", std::max(unit * sizes[random_() % 3], rules.min_bits), probes)
        .geometry;
  }

  // Calls check(from, keys) with random geometries.
  template <class Check>
  void ForRandomGeometries(const Check& check) {
    for (int round = 0; round < kRounds; ++round) {
      const Geometry from = RandomGeometry();
      SCOPED_TRACE(TextOf(from));
      ASSERT_TRUE(from.Validate().ok()) << from.Validate().message();
      check(from, SomeHashes(random_(), HalfFull(from, 50)));
    }
  }

  static std::string TextOf(const Geometry& geometry) {
    return std::to_string(geometry.num_bits) + " bits, k = " + std::to_string(geometry.num_probes);
  }

  static void ExpectKept(Promise promise, const Filter& shrunk, std::span<const uint64_t> keys) {
    EXPECT_EQ(shrunk.CountHashes(keys), keys.size());
    const Filter direct = Build(shrunk.geometry(), keys);
    EXPECT_TRUE(HasAllBitsOf(shrunk.bytes(), direct.bytes()));
    EXPECT_TRUE(promise != Promise::kBytes || BytesOf(shrunk) == BytesOf(direct));
  }

  ::testing::ScopedTrace seed_trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
  std::mt19937_64 random_{kSeed};
};

INSTANTIATE_TEST_SUITE_P(Layouts, ShrinkPropertyTest, ::testing::ValuesIn(kAllLayouts),
                         [](const auto& test) { return TestName(LayoutName(test.param)); });

TEST_P(ShrinkPropertyTest, EverySmallerGeometryKeepsWhatIsPromisedOrIsRefused) {
  size_t num_exact = 0, num_inexact = 0;
  ForRandomGeometries([&](const Geometry& from, std::span<const uint64_t> keys) {
    const Filter large = Build(from, keys);
    for (const Geometry& into : SmallerGeometries(from)) {
      SCOPED_TRACE("to " + TextOf(into));
      const Promise promise = PromiseOf(from, into);
      const Result<Filter> shrunk = Shrink(large.View(), into);
      ASSERT_EQ(shrunk.ok(), promise != Promise::kNothing);
      if (!shrunk.ok()) continue;
      EXPECT_EQ(shrunk->geometry(), into);
      ExpectKept(promise, *shrunk, keys);
      if (into == from) continue;
      ++(promise == Promise::kBytes ? num_exact : num_inexact);
    }
  });
  EXPECT_GT(num_exact, kQuickTests ? 0u : 5u) << kNeedsGeometries;
  EXPECT_EQ(num_inexact > 0, GetParam() == Layout::kVariable) << kNeedsGeometries;
}

TEST_P(ShrinkPropertyTest, ShrinkingTwiceLosesNothingEither) {
  size_t num_shrunk = 0;
  ForRandomGeometries([&](const Geometry& from, std::span<const uint64_t> keys) {
    const Filter large = Build(from, keys);
    for (const Geometry& between : SmallerGeometries(from)) {
      const Promise first = PromiseOf(from, between);
      if (first == Promise::kNothing) continue;
      const Filter once = Shrink(large.View(), between).value();
      for (const Geometry& into : SmallerGeometries(between)) {
        const Promise second = PromiseOf(between, into);
        if (second == Promise::kNothing) continue;
        SCOPED_TRACE("to " + TextOf(between) + " to " + TextOf(into));
        ExpectKept(std::min(first, second), Shrink(once.View(), into).value(), keys);
        num_shrunk += into != between && between != from ? 1 : 0;
      }
    }
  });
  EXPECT_GT(num_shrunk, 0u) << kNeedsGeometries;
}

TEST_P(ShrinkPropertyTest, WhoeverHoldsTheBitsShrinksToTheSameBytes) {
  const TemporaryDirectory directory;
  const std::string path = directory.PathOf("filter.tpl");
  size_t num_shrunk = 0;
  ForRandomGeometries([&](const Geometry& from, std::span<const uint64_t> keys) {
    const Filter large = Build(from, keys);
    const FilterView over = FilterView::Over(from, large.bytes()).value();
    ASSERT_TRUE(WriteFile(path, large.View()).ok());
    const MappedFilter mapped = MappedFilter::Open(path).value();
    for (const Geometry& into : SmallerGeometries(from)) {
      if (PromiseOf(from, into) == Promise::kNothing) continue;
      SCOPED_TRACE("to " + TextOf(into));
      const std::vector<uint8_t> expected = BytesOf(Shrink(large.View(), into).value());
      EXPECT_EQ(BytesOf(Shrink(over, into).value()), expected);
      EXPECT_EQ(BytesOf(Shrink(mapped.view(), into).value()), expected);
      num_shrunk += into != from ? 1 : 0;
    }
    EXPECT_EQ(BytesOf(large), BytesOf(Build(from, keys))) << "the source changed";
  });
  EXPECT_GT(num_shrunk, 0u) << kNeedsGeometries;
}

TEST(ShrinkVariableTest, TheLargestBlockAloneLosesNoKey) {
  for (const auto& [num_bits, k] : {std::pair{13u << 12, 7u}, {29u << 10, 5u}, {3u << 12, 2u}}) {
    const Geometry from = LayoutCase(Layout::kVariable, "", num_bits, k).geometry;
    const uint64_t largest = std::bit_floor(uint64_t{num_bits});
    const auto probes = static_cast<uint32_t>(k * largest / num_bits);
    const std::vector<uint64_t> keys = SomeHashes(kSeed, HalfFull(from));
    const Filter large = Build(from, keys);
    for (const uint64_t divisor : {1u, 2u}) {
      const Geometry into = With(from, largest / divisor, probes);
      const Filter shrunk = Shrink(large.View(), into).value();
      EXPECT_EQ(shrunk.CountHashes(keys), keys.size());
      EXPECT_LT(FillRatio(shrunk.View()), divisor == 1 ? 0.55 : 0.8);
    }
    // With one probe more, keys that made it in another block would be lost.
    const Result<Filter> wrong = Shrink(large.View(), With(from, largest, probes + 1));
    EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
  }
}

struct Impossible {
  const char* why;
  Geometry from;
  Geometry into;
  const char* message;
};

TEST(ShrinkErrorTest, WhatWouldLoseKeysIsRefusedWithTheReason) {
  const auto geometry = [](Layout layout, uint64_t num_bits, double k) {
    return LayoutCase(layout, "", num_bits, k).geometry;
  };
  const Impossible cases[] = {
      {"other layout", geometry(Layout::kSplit512, 1024, 8), geometry(Layout::kLine512, 512, 8),
       "layouts"},
      {"no divisor", geometry(Layout::kSplit256, 256 * 5, 8), geometry(Layout::kSplit256, 512, 8),
       "whole numbers"},
      {"larger", geometry(Layout::kLine512, 512, 6), geometry(Layout::kLine512, 1024, 6),
       "whole numbers"},
      {"other k", geometry(Layout::kLine512, 1024, 6), geometry(Layout::kLine512, 512, 5),
       "probes"},
      {"other k", geometry(Layout::kRegister, 1024, 4), geometry(Layout::kRegister, 512, 3),
       "probes"},
      {"other real k", geometry(Layout::kRational, 1024, 4.3),
       geometry(Layout::kRational, 512, 4.4), "probes"},
      {"other k", geometry(Layout::kStandard, 4096, 4), geometry(Layout::kStandard, 2048, 3),
       "probes"},
      {"multiply-high to mask", geometry(Layout::kStandard, 512 * 6, 4),
       geometry(Layout::kStandard, 1024, 4), "power of two"},
      {"multiply-high to mask", geometry(Layout::kPartitioned, 3 * 512 * 6, 3),
       geometry(Layout::kPartitioned, 3 * 1024, 3), "power of two"},
      {"more parts", geometry(Layout::kPartitioned, 3 * 1024, 3),
       geometry(Layout::kPartitioned, 4 * 512, 4), "parts"},
      {"part is no divisor", geometry(Layout::kPartitioned, 3 * 512 * 6, 3),
       geometry(Layout::kPartitioned, 2 * 512 * 5, 2), "whole numbers"},
      {"third of a variable filter", geometry(Layout::kVariable, 3 * 4096, 6),
       geometry(Layout::kVariable, 4096, 6), "first blocks"},
      {"second block of a variable filter, with its probes",
       geometry(Layout::kVariable, 13 * 1024, 13), geometry(Layout::kVariable, 5 * 1024, 5),
       "first blocks"},
      {"two of three blocks, with fewer probes", geometry(Layout::kVariable, 13 * 1024, 7),
       geometry(Layout::kVariable, 12 * 1024, 6), "first blocks"},
      {"a third as printed", geometry(Layout::kVariablePaper, 3 * 4096, 6.5),
       geometry(Layout::kVariablePaper, 4096, 6.5), "powers of two"},
      {"not a geometry", geometry(Layout::kSplit256, 512, 8), geometry(Layout::kSplit256, 100, 8),
       "num_bits"},
  };
  for (const Impossible& c : cases) {
    const Filter filter = Build(c.from, RandomValues(kSeed, 10));
    const Status status = Shrink(filter.View(), c.into).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.why;
    EXPECT_THAT(status.message(), ::testing::HasSubstr(c.message)) << c.why;
  }
}

TEST(ShrinkErrorTest, MemoryThatCannotBeHadIsAStatus) {
  const Geometry from = LayoutCase(Layout::kSplit512, "", 1024, 8).geometry;
  const Filter filter = Build(from, RandomValues(kSeed, 10));
  MemoryOptions memory;
  memory.allocator = {.allocate = [](size_t, size_t, void*) -> void* { return nullptr; },
                      .deallocate = [](void*, size_t, void*) {}};
  EXPECT_EQ(Shrink(filter.View(), With(from, 512, 8), memory).status().code(),
            StatusCode::kOutOfMemory);
  EXPECT_EQ(Merge(filter.View(), filter.View(), memory).status().code(), StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace tepal::testing
