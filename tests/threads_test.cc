// What several threads may do at once. Meant for ThreadSanitizer, and useful without it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/filter.h"
#include "tepal/targets.h"
#include "tests/column_kinds.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kSeed = 32;
constexpr size_t kNumKeys = 2500;
const Geometry kGeometry = Geometry::For(Layout::kSplit256, kNumKeys, 12);

// This must be the first test: the library chooses its target when first used.
TEST(ThreadsTest, TheFirstUseMayComeFromManyThreadsAtOnce) {
  std::vector<std::string> targets(4);
  std::vector<std::thread> threads;
  for (std::string& mine : targets) {
    threads.emplace_back([&mine] {
      Filter filter = MakeFilter(kGeometry);
      filter.Insert(RandomValues(kSeed, 100));
      mine = ActiveTarget();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& mine : targets) EXPECT_EQ(mine, ActiveTarget());
}

TEST(ThreadsTest, ConstCallsFromManyThreadsAgree) {
  Filter filter = MakeFilter(kGeometry);
  filter.Insert(RandomValues(kSeed, kNumKeys));
  const std::vector<uint64_t> probes = RandomValues(kSeed + 1, 20000);
  std::vector<Answers> answers(4);
  std::vector<std::thread> threads;
  for (Answers& mine : answers) {
    threads.emplace_back(
        [&filter, &probes, &mine] { mine = Ask(filter, std::span<const uint64_t>(probes)); });
  }
  for (std::thread& thread : threads) thread.join();
  const Answers expected = Ask(filter, std::span<const uint64_t>(probes));
  EXPECT_GT(expected.count, 0u);
  for (const Answers& mine : answers) EXPECT_EQ(mine, expected);
}

TEST(ThreadsTest, ThreadsMayFillFiltersOfTheirOwnWhileTheTargetChanges) {
  const std::vector<uint64_t> keys = RandomValues(kSeed, kNumKeys);
  std::vector<std::optional<Filter>> filters(3);
  std::vector<std::thread> threads;
  for (std::optional<Filter>& mine : filters) {
    threads.emplace_back([&keys, &mine] {
      mine.emplace(MakeFilter(kGeometry));
      for (const uint64_t& key : keys) mine->Insert(std::span(&key, 1));
    });
  }
  for (const std::string& name : AvailableTargets()) EXPECT_TRUE(ForceTarget(name).ok());
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(ForceTarget("auto").ok());
  for (const std::optional<Filter>& mine : filters) {
    EXPECT_EQ(BytesOf(*mine), BytesOf(*filters[0]));
    EXPECT_EQ(mine->Count(keys), kNumKeys);
  }
}

}  // namespace
}  // namespace tepal::testing
