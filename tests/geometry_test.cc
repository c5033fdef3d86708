// Geometry: good sizes, and a message that names what is wrong for everything else.
#include "tepal/geometry.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tepal/filter.h"
#include "tests/geometries.h"

namespace tepal {
namespace {

using ::tepal::testing::kAllLayouts;

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr uint64_t kManyKeys = std::numeric_limits<uint64_t>::max();

// Those of kAllLayouts that this build has kernels for.
std::vector<Layout> SupportedLayouts() {
  std::vector<Layout> layouts(std::begin(kAllLayouts), std::end(kAllLayouts));
  std::erase_if(layouts, [](Layout layout) {
    return Geometry::For(layout, 1000, 10).Validate().code() == StatusCode::kUnsupported;
  });
  return layouts;
}

Geometry Good() { return {.layout = Layout::kSplit256, .num_bits = 512, .num_probes = 8}; }

// ---- Geometry::For

class GeometryForTest : public ::testing::TestWithParam<Layout> {
 protected:
  static Geometry For(uint64_t num_keys, double bits_per_key) {
    return Geometry::For(GetParam(), num_keys, bits_per_key);
  }
};

TEST_P(GeometryForTest, GivesValidGeometriesOfAtMostTheBitsAskedFor) {
  for (const double bits_per_key : {0.5, 1.0, 7.99, 8.0, 12.0, 16.5, 100.0}) {
    for (const uint64_t num_keys : {100u, 333u, 1000u, 4096u, 99999u, 10'000'000u}) {
      const Geometry geometry = For(num_keys, bits_per_key);
      EXPECT_TRUE(geometry.Validate().ok()) << geometry.Validate().message();
      EXPECT_EQ(geometry.layout, GetParam());
      const double bits = static_cast<double>(num_keys) * bits_per_key;
      const auto num_bits = static_cast<double>(geometry.num_bits);
      if (bits < 512) continue;  // a block of the largest kind
      EXPECT_LE(num_bits, bits) << num_keys << " keys of " << bits_per_key << " bits";
    }
  }
}

TEST_P(GeometryForTest, GivesAtLeastOneBlock) {
  for (const Geometry& geometry : {For(0, 10), For(1, 1), For(1, 1e-300), For(1000, 1e-9)}) {
    EXPECT_TRUE(geometry.Validate().ok()) << geometry.Validate().message();
    EXPECT_GT(geometry.num_bits, 0u);
    EXPECT_LE(geometry.num_bits, 512u);
  }
}

TEST_P(GeometryForTest, ClampsHugeFilters) {
  for (const Geometry& geometry : {For(kManyKeys, 10), For(kManyKeys, 1e300), For(1, 1e300),
                                   For(uint64_t{1} << 37, 64), For(1, kInfinity)}) {
    EXPECT_TRUE(geometry.Validate().ok()) << geometry.Validate().message();
    EXPECT_LE(geometry.num_bits, kMaxBits);
    Geometry twice = geometry;
    twice.num_bits *= 2;
    EXPECT_FALSE(twice.Validate().ok()) << "clamped too early: " << geometry.num_bits;
  }
}

// 0 * infinity is not a number.
TEST_P(GeometryForTest, NoKeysOfInfinitelyManyBitsStayWithinTheLimits) {
  EXPECT_LE(For(0, kInfinity).num_bits, kMaxBits);
}

TEST_P(GeometryForTest, RefusesBitsThatAreNotAPositiveNumber) {
  for (const double bits_per_key : {0.0, -0.0, -1.0, -1e300, -kInfinity, kNan}) {
    const Geometry geometry = For(1000, bits_per_key);
    EXPECT_EQ(geometry.num_bits, 0u) << bits_per_key;
    EXPECT_EQ(geometry.Validate().code(), StatusCode::kInvalidArgument) << bits_per_key;
    EXPECT_FALSE(Filter::Create(geometry).ok()) << bits_per_key;
  }
}

std::string LayoutTestName(const ::testing::TestParamInfo<Layout>& info) {
  std::string name(LayoutName(info.param));
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Layouts, GeometryForTest, ::testing::ValuesIn(SupportedLayouts()),
                         LayoutTestName);

TEST(GeometryTest, Split256UsesAllBlocksThatFit) {
  const Geometry geometry = Geometry::For(Layout::kSplit256, 1000, 12);
  EXPECT_EQ(geometry.num_bits, 12000u / 256 * 256);
  EXPECT_EQ(geometry.num_bytes(), geometry.num_bits / 8);
  EXPECT_EQ(geometry.num_probes, 8u);
}

TEST(GeometryTest, DefaultsAreXxh3WithSeedZero) {
  const Geometry geometry = Geometry::For(Layout::kSplit256, 1000, 12);
  EXPECT_EQ(geometry.hash, HashKind::kXxh3);
  EXPECT_EQ(geometry.seed, 0u);
  EXPECT_EQ(geometry.rational_k, 0);
}

TEST(GeometryTest, IsEqualOnlyIfEveryFieldIs) {
  EXPECT_EQ(Good(), Good());
  std::vector<Geometry> others(6, Good());
  others[0].layout = Layout::kSplit512;
  others[1].num_bits = 256;
  others[2].num_probes = 7;
  others[3].rational_k = 1;
  others[4].hash = HashKind::kXxh64;
  others[5].seed = 1;
  for (const Geometry& other : others) EXPECT_NE(other, Good());
}

// ---- Validate

// Validate() and Filter::Create() refuse `geometry` with a message that has all of `parts`.
template <class... Part>
void ExpectRefused(const Geometry& geometry, StatusCode code, const Part&... parts) {
  const Status status = geometry.Validate();
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_THAT(status.message(), AllOf(HasSubstr(parts)...));
  const Result<Filter> filter = Filter::Create(geometry);
  EXPECT_EQ(filter.status().code(), code);
  EXPECT_EQ(filter.status().message(), status.message());
}

TEST(GeometryValidateTest, AcceptsAGoodOne) {
  EXPECT_TRUE(Good().Validate().ok());
  EXPECT_TRUE(Filter::Create(Good()).ok());
}

TEST(GeometryValidateTest, RefusesAnEmptyFilter) {
  ExpectRefused(Geometry{}, StatusCode::kInvalidArgument, "num_bits is 0", "at least 256");
}

TEST(GeometryValidateTest, RefusesPartsOfBlocks) {
  Geometry geometry = Good();
  for (const uint64_t num_bits : {257u, 300u, 511u, 513u}) {
    geometry.num_bits = num_bits;
    ExpectRefused(geometry, StatusCode::kInvalidArgument, "split256",
                  "num_bits is " + std::to_string(num_bits), "multiple of 256");
  }
}

TEST(GeometryValidateTest, RefusesLessThanOneBlock) {
  Geometry geometry = Good();
  for (const uint64_t num_bits : {1u, 255u}) {
    geometry.num_bits = num_bits;
    ExpectRefused(geometry, StatusCode::kInvalidArgument, "split256",
                  "num_bits is " + std::to_string(num_bits), "at least 256");
  }
}

TEST(GeometryValidateTest, RefusesFiltersThatAreTooLarge) {
  Geometry geometry = Good();
  for (const uint64_t num_bits : {kMaxBits, kMaxBits + 256, uint64_t{1} << 63, ~uint64_t{255}}) {
    geometry.num_bits = num_bits;  // 2^40 are 2^32 blocks: one too many for a 32-bit factor
    ExpectRefused(geometry, StatusCode::kInvalidArgument, "num_bits is " + std::to_string(num_bits),
                  "at most " + std::to_string(kMaxBits - 256));
  }
  geometry.num_bits = kMaxBits - 256;
  EXPECT_TRUE(geometry.Validate().ok());
}

TEST(GeometryValidateTest, RefusesTheWrongNumberOfProbes) {
  Geometry geometry = Good();
  for (const uint32_t num_probes : {0u, 7u, 9u, ~0u}) {
    geometry.num_probes = num_probes;
    ExpectRefused(geometry, StatusCode::kInvalidArgument, "split256",
                  "num_probes is " + std::to_string(num_probes), "must be 8");
  }
}

TEST(GeometryValidateTest, RefusesARationalKWhereThereIsNone) {
  Geometry geometry = Good();
  for (const double rational_k : {1.0, -1.0, -0.0, kNan, kInfinity}) {
    geometry.rational_k = rational_k;
    ExpectRefused(geometry, StatusCode::kInvalidArgument, "split256", "rational_k must be 0");
  }
}

TEST(GeometryValidateTest, RefusesAnUnknownLayoutOrHash) {
  Geometry geometry = Good();
  geometry.layout = static_cast<Layout>(9);
  ExpectRefused(geometry, StatusCode::kInvalidArgument, "layout");
  geometry.layout = static_cast<Layout>(255);
  ExpectRefused(geometry, StatusCode::kInvalidArgument, "layout");
  geometry = Good();
  geometry.hash = static_cast<HashKind>(2);
  ExpectRefused(geometry, StatusCode::kInvalidArgument, "hash");
}

// ---- Names

TEST(LayoutNameTest, NamesRoundTrip) {
  for (const Layout layout : kAllLayouts) {
    const Result<Layout> parsed = ParseLayout(LayoutName(layout));
    ASSERT_TRUE(parsed.ok()) << LayoutName(layout);
    EXPECT_EQ(*parsed, layout);
  }
}

TEST(LayoutNameTest, NamesAreThoseOfTheDesign) {
  const std::vector<std::string> names = {"standard", "partitioned",    "rational",
                                          "variable", "variable-paper", "register",
                                          "split256", "split512",       "line512"};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(LayoutName(kAllLayouts[i]), names[i]);
    EXPECT_EQ(static_cast<size_t>(kAllLayouts[i]), i) << "numbers are part of the format";
  }
  EXPECT_EQ(LayoutName(static_cast<Layout>(names.size())), "");
}

TEST(LayoutNameTest, UnknownNamesListTheAlternatives) {
  for (const std::string name : {"", "Split256", "split", "split256 ", "bloom"}) {
    const Result<Layout> layout = ParseLayout(name);
    EXPECT_EQ(layout.status().code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(layout.status().message(), HasSubstr('"' + name + '"'));
    EXPECT_THAT(layout.status().message(), HasSubstr("variable-paper, register, split256"));
  }
}

TEST(HashKindNameTest, NamesAreThoseOfTheDesign) {
  EXPECT_EQ(HashKindName(HashKind::kXxh3), "xxh3");
  EXPECT_EQ(HashKindName(HashKind::kXxh64), "xxh64");
  EXPECT_EQ(HashKindName(static_cast<HashKind>(2)), "");
}

}  // namespace
}  // namespace tepal
