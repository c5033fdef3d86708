// Calibrate: a small one gives a profile that MakePlan can use. Says nothing about times.
#include "tools/calibrate.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/planner.h"
#include "tests/test_util.h"

namespace tepal::tools {
namespace {

constexpr uint64_t kSmall = 24 << 10;

TEST(CalibrateTest, GivesAValidProfileForEveryTarget) {
  for (const std::string& target : AvailableTargets()) {
    const testing::ScopedTarget forced(target);
    std::vector<double> shares;
    const Result<MachineProfile> profile =
        Calibrate({.seconds = 0.01, .max_filter_bytes = kSmall, .progress = [&](double share) {
                     shares.push_back(share);
                   }});
    ASSERT_TRUE(profile.ok()) << profile.status().message();
    EXPECT_EQ(profile->target, target);
    EXPECT_EQ(profile->filter_bytes, (std::vector<uint64_t>{12 << 10, 17 << 10, 24 << 10}));
    EXPECT_FALSE(profile->cpu.empty());
    EXPECT_TRUE(MakePlan({.num_keys = 1000, .max_fpr = 0.01}, *profile).ok());
    ASSERT_FALSE(shares.empty());
    for (size_t i = 0; i < shares.size(); ++i) {
      EXPECT_GE(shares[i], i == 0 ? 0 : shares[i - 1]);
      EXPECT_LE(shares[i], 1);
    }
  }
}

TEST(CalibrateTest, RefusesOptionsThatMeasureNothing) {
  EXPECT_FALSE(Calibrate({.seconds = 0}).ok());
  EXPECT_FALSE(Calibrate({.max_filter_bytes = 100}).ok());
}

TEST(ProbeArenaTest, EmptyHalfFullAndFullFiltersAreWhatTheySay) {
  Result<ProbeArena> arena = ProbeArena::Make(kSmall);
  ASSERT_TRUE(arena.ok());
  const std::vector<uint64_t> hashes = testing::RandomValues(1, 100'000);
  const Geometry geometry{.layout = Layout::kStandard, .num_bits = kSmall * 8, .num_probes = 3};
  const auto matches = [&](ProbeArena::Fill fill) {
    return arena->View(fill, geometry)->CountHashes(hashes);
  };
  EXPECT_EQ(matches(ProbeArena::Fill::kEmpty), 0u);
  // Half of the bits are set: 1/8 of the probes find three of them.
  EXPECT_NEAR(static_cast<double>(matches(ProbeArena::Fill::kHalf)), 12'500, 1000);
  EXPECT_EQ(matches(ProbeArena::Fill::kFull), hashes.size());
  Result<Filter> filter = arena->ToInsert(geometry);
  EXPECT_EQ(matches(ProbeArena::Fill::kFull), 0u);
  arena->Refill();
  filter->InsertHashes(hashes);
  EXPECT_EQ(matches(ProbeArena::Fill::kFull), hashes.size());
}

}  // namespace
}  // namespace tepal::tools
