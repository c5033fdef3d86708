// What several threads may do at once. Meant for ThreadSanitizer, and useful without it.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/container.h"
#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/parquet.h"
#include "tepal/planner.h"
#include "tepal/sets.h"
#include "tepal/targets.h"
#include "tests/column_kinds.h"
#include "tests/geometries.h"
#include "tests/many_threads.h"
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

// Every const call, with every kind of column, and with nulls.
std::vector<Answers> AskEverything(const ProbeCalls& filter) {
  static const std::vector<uint64_t> kLong = EightByteKeys::Make(kSeed + 1, kNumKeys);
  static const std::vector<uint32_t> kShort = FourByteKeys::Make(kSeed + 1, kNumKeys);
  static const StringRows kStrings = StringKeys::Make(kSeed + 1, kNumKeys);
  static const std::vector<uint8_t> kBits = RandomValues<uint8_t>(kSeed, kNumKeys);
  std::vector<Answers> answers;
  for (const Validity validity : {Validity{}, Validity{.bits = kBits.data(), .offset = 3}}) {
    answers.push_back(Ask(filter, EightByteKeys::Column(kLong), validity));
    answers.push_back(Ask(filter, FourByteKeys::Column(kShort), validity));
    answers.push_back(Ask(filter, kStrings.column32(), validity));
    answers.push_back(Ask(filter, kStrings.column64(), validity));
    answers.push_back(AskHashes(filter, kLong, validity));
    filter.PrefetchHashes(kLong);
  }
  return answers;
}

class SharedFilterTest : public ::testing::TestWithParam<Layout> {
 protected:
  SharedFilterTest() { filter_.Insert(RandomValues(kSeed, kNumKeys)); }

  Filter filter_ = MakeFilter(Geometry::For(GetParam(), kNumKeys, 8));
};

TEST_P(SharedFilterTest, ConstCallsFromManyThreadsAgree) {
  EXPECT_GT(AskEverything(filter_)[0].count, 0u);
  ExpectThreadsAgree([&] { return AskEverything(filter_); });
}

TEST_P(SharedFilterTest, ThreadsMayMakeCopyAndDropViewsOfOneFilter) {
  const FilterView shared = filter_.View();
  ExpectThreadsAgree([&] {
    FilterView mine = filter_.View();
    mine = shared;
    return AskEverything(FilterView(mine));
  });
}

TEST_P(SharedFilterTest, ThreadsMayCopyAndSerializeOneFilter) {
  ExpectThreadsAgree([&] {
    const std::vector<uint8_t> container = Serialize(filter_.View(), kNumKeys).value();
    EXPECT_EQ(Inspect(container).value().geometry, filter_.geometry());
    EXPECT_EQ(BytesOf(Filter::FromBytes(filter_.geometry(), filter_.bytes()).value()),
              BytesOf(filter_));
    return BytesOf(Deserialize(container).value());
  });
}

// Two filters that several threads combine, each into one of its own.
TEST_P(SharedFilterTest, ThreadsMayUseTwoFiltersAsSets) {
  Filter other = MakeFilter(filter_.geometry());
  other.Insert(RandomValues(kSeed + 1, kNumKeys));
  const auto copy = [&] { return Filter::FromBytes(filter_.geometry(), filter_.bytes()).value(); };
  ExpectThreadsAgree([&] {
    Filter both = copy(), common = copy();
    EXPECT_TRUE(Union(both, other.View()).ok());
    EXPECT_TRUE(Intersect(common, other.View()).ok());
    const Filter merged = Merge(filter_.View(), other.View()).value();
    const Filter shrunk = Shrink(filter_.View(), filter_.geometry()).value();
    return std::tuple(BytesOf(both), BytesOf(common), BytesOf(merged), BytesOf(shrunk),
                      SurelyDisjoint(filter_.View(), other.View()).value(), FillRatio(other.View()),
                      EstimateKeys(filter_.View()).value());
  });
}

TEST_P(SharedFilterTest, ThreadsMayReadAMappedFileThatOneOfThemReplaces) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tepal_threads_test_" + std::to_string(getpid())))
          .string();
  ASSERT_TRUE(WriteFile(path, filter_.View()).ok());
  const MappedFilter shared = MappedFilter::Open(path).value();
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(WriteFile(path, filter_.View()).ok());
  });
  ExpectThreadsAgree([&] {
    EXPECT_EQ(AskEverything(MappedFilter::Open(path).value().view()), AskEverything(shared.view()));
    return AskEverything(shared.view());
  });
  writer.join();
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Layouts, SharedFilterTest, ::testing::ValuesIn(kAllLayouts),
                         [](const auto& test) { return TestName(LayoutName(test.param)); });

TEST(ThreadsTest, ThreadsMayAskAFilterWhoseBlocksAreRequestedInAdvance) {
  for (const uint64_t num_bytes : {FarPrefetchFromBytes(), PacedPrefetchFromBytes()}) {
    const GeometryCase large = Split256Case("large", num_bytes / 32 + 7, /*sparse=*/true);
    Filter filter = MakeFilter(large.geometry, large.memory());
    filter.Insert(RandomValues(kSeed, kNumKeys));
    ExpectThreadsAgree([&] { return AskEverything(filter); });
  }
}

TEST(ThreadsTest, HashesRatesAndPlansMayBeAskedFromManyThreads) {
  const std::vector<uint64_t> keys = RandomValues(kSeed, kNumKeys);
  ExpectThreadsAgree([&] { return HashesOf(kGeometry, std::span(keys)); });
  for (const Layout layout : kAllLayouts) {
    const Geometry geometry = Geometry::For(layout, 1000, 10);
    ExpectThreadsAgree([&] {
      const Result<Geometry> smallest = fpr::GeometryForRate(layout, 1000, 0.1);  // not for all
      return std::tuple(fpr::Predict(geometry, 1000), fpr::KeysForRate(geometry, 0.1).value(),
                        smallest.ok() ? *smallest : geometry);
    });
  }
  ExpectThreadsAgree([] { return MakePlan({.num_keys = 1000, .max_fpr = 0.01})->Explain(); });
}

TEST(ThreadsTest, ThreadsMayReadWriteAndAskOneParquetFilter) {
  const std::vector<uint32_t> numbers = RandomValues<uint32_t>(kSeed, kNumKeys);
  const std::vector<double> values(numbers.begin(), numbers.end());
  const Geometry geometry = parquet::GeometryFor(kNumKeys, 0.01).value();
  Filter filter = MakeFilter(geometry);
  std::vector<uint64_t> hashes(values.size());
  parquet::HashValues(values, hashes.data());
  filter.InsertHashes(hashes);
  const std::vector<uint8_t> written = parquet::Write(filter).value();
  ExpectThreadsAgree([&] {
    EXPECT_EQ(parquet::Write(filter).value(), written);
    EXPECT_TRUE(parquet::MayContain(filter, values[0]));
    std::vector<uint8_t> bitmap((values.size() + 7) / 8);
    EXPECT_EQ(parquet::Probe(filter, values, bitmap.data()), kNumKeys);
    std::vector<uint64_t> mine(values.size());
    parquet::HashValues(values, mine.data());
    return std::tuple(BytesOf(parquet::Read(written).value()), bitmap, mine);
  });
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
