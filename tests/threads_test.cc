// What several threads may do at once. Meant for ThreadSanitizer, and useful without it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/container.h"
#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/parallel_builder.h"
#include "tepal/parquet.h"
#include "tepal/planner.h"
#include "tepal/profile.h"
#include "tepal/sets.h"
#include "tepal/targets.h"
#include "tepal/version.h"
#include "tests/column_kinds.h"
#include "tests/geometries.h"
#include "tests/many_threads.h"
#include "tests/test_files.h"
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
  const TemporaryDirectory directory;
  const std::string path = directory.PathOf("filter.tpl");
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

TEST(ThreadsTest, NamesAndTargetsMayBeAskedFromManyThreads) {
  ExpectThreadsAgree([] {
    return std::tuple(
        ActiveTarget(), AvailableTargets(), CompiledTargets(), CheckEnvironment().ok(),
        std::string(Version()), ParseLayout("line512").value(), LayoutName(Layout::kVariable),
        HashKindName(HashKind::kXxh64), KeyKindName(KeyKind::kUint32), kGeometry.Validate().ok());
  });
}

TEST(ThreadsTest, HashesAndPlansMayBeAskedFromManyThreads) {
  const std::vector<uint64_t> keys = RandomValues(kSeed, kNumKeys);
  ExpectThreadsAgree([&] { return HashesOf(kGeometry, std::span(keys)); });
  ExpectThreadsAgree([] { return MakePlan({.num_keys = 1000, .max_fpr = 0.01})->Explain(); });
}

TEST(ThreadsTest, RatesMayBeAskedFromManyThreads) {
  for (const Layout layout : kAllLayouts) {
    ExpectThreadsAgree([layout] {
      const Geometry geometry = Geometry::For(layout, 1000, 10);
      const Result<Geometry> smallest = fpr::GeometryForRate(layout, 1000, 0.1);  // not for all
      return std::tuple(fpr::Predict(geometry, 1000), fpr::KeysForRate(geometry, 0.1).value(),
                        fpr::BestProbes(layout, 1000, 10240), MeanBitsTouched(geometry, 1000, 0.5),
                        smallest.ok() ? *smallest : geometry);
    });
  }
  constexpr uint64_t kBits = 8192;
  ExpectThreadsAgree([] {
    return std::vector<double>{
        fpr::Classic(1000, kBits, 4),
        fpr::StandardExact(1000, kBits, 4),
        fpr::PerElement(1000, kBits, 4, 2),
        fpr::CollisionProbability(kBits, 4, 1),
        fpr::AnyCollisionProbability(kBits, 4),
        fpr::PartitionedExact(1000, kBits, 4),
        fpr::Rational(1000, kBits, 4.5),
        fpr::Variable(1000, kBits + 512, 4),
        fpr::VariablePaper(1000, kBits + 512, 4.5),
        fpr::SplitBlocked(1000, kBits, 8, 32),
        fpr::LineBlocked(1000, kBits, 512, 6),
        fpr::FalseOverlapStandard(1000, 10, kBits, 4),
        fpr::FalseOverlapPartitioned(1000, 10, kBits, 4),
        fpr::DoubleHashingFloor(1000, kBits),
    };
  });
}

TEST(ThreadsTest, ProfilesMayBeAskedReadAndReplacedFromManyThreads) {
  const TemporaryDirectory directory;
  const std::string path = directory.PathOf("profile.json");
  const MachineProfile& profile = MachineProfile::BuiltIn(ActiveTarget());
  ASSERT_TRUE(profile.Save(path).ok());
  ExpectThreadsAgree([&] {
    EXPECT_TRUE(profile.Save(path).ok());
    EXPECT_TRUE(profile.Validate().ok());
    EXPECT_EQ(MachineProfile::FromJson(profile.ToJson()).value().curves, profile.curves);
    return std::tuple(profile.ProbeNs(kGeometry, kNumKeys, 0.5), profile.InsertNs(kGeometry),
                      MachineProfile::Load(path).value().ToJson(),
                      MachineProfile::DefaultPath("AVX2"), MachineProfile::ForThisMachine().name,
                      MachineProfile::BuiltIn().ToJson());
  });
}

TEST(ThreadsTest, ABuilderMayBeAskedWhileOthersInsert) {
  const std::vector<uint64_t> keys = RandomValues(kSeed, 100 * kNumKeys);
  ParallelBuilder builder = ParallelBuilder::Create(kGeometry).value();
  std::thread other([&] { builder.Insert(keys); });
  ExpectThreadsAgree([&] { return std::tuple(builder.geometry(), builder.strategy()); });
  other.join();
  EXPECT_EQ(std::move(builder).Finish().value().Count(keys), keys.size());
}

// For double or float, the types whose zeros and NaNs need care.
template <class Value>
auto AskParquetFilter(const Filter& filter, std::span<const Value> values) {
  std::vector<uint8_t> bitmap((values.size() + 7) / 8);
  EXPECT_EQ(parquet::Probe(filter, values, bitmap.data()), values.size());
  EXPECT_TRUE(parquet::MayContain(filter, values[0]));
  EXPECT_TRUE(filter.MayContainHash(parquet::HashValue(values[0])));
  return bitmap;
}

template <class Value>
std::vector<uint64_t> ParquetHashesOf(const std::vector<Value>& values) {
  std::vector<uint64_t> hashes(values.size());
  parquet::HashValues(std::span<const Value>(values), hashes.data());
  return hashes;
}

TEST(ThreadsTest, ThreadsMayReadWriteAndAskOneParquetFilter) {
  const std::vector<uint32_t> numbers = RandomValues<uint32_t>(kSeed, kNumKeys);
  const std::vector<double> doubles(numbers.begin(), numbers.end());
  const std::vector<float> floats(numbers.begin(), numbers.end());
  Filter filter = MakeFilter(parquet::GeometryFor(2 * kNumKeys, 0.01).value());
  filter.InsertHashes(ParquetHashesOf(doubles));
  filter.InsertHashes(ParquetHashesOf(floats));
  const std::vector<uint8_t> written = parquet::Write(filter).value();
  ExpectThreadsAgree([&] {
    EXPECT_EQ(parquet::Write(filter).value(), written);
    EXPECT_EQ(parquet::ReadHeader(written).value().total_bytes(), written.size());
    EXPECT_EQ(parquet::GeometryOfBytes(filter.bytes().size()).value(), filter.geometry());
    return std::tuple(
        BytesOf(parquet::Read(written).value()), BytesOf(parquet::ReadExactly(written).value()),
        AskParquetFilter<double>(filter, doubles), AskParquetFilter<float>(filter, floats));
  });
}

TEST(ThreadsTest, ValuesOfEveryParquetTypeMayBeHashedFromManyThreads) {
  const std::vector<uint64_t> numbers = RandomValues(kSeed, kNumKeys);
  const std::vector<int32_t> shorts(numbers.begin(), numbers.end());
  const std::vector<int64_t> longs(numbers.begin(), numbers.end());
  const parquet::FixedColumn fixed{.data = reinterpret_cast<const uint8_t*>(numbers.data()),
                                   .width_bytes = 12,
                                   .size = kNumKeys / 2};
  const StringRows strings = StringKeys::Make(kSeed, kNumKeys);
  ExpectThreadsAgree([&] {
    std::vector<uint64_t> of_fixed(fixed.size), of_strings(kNumKeys);
    parquet::HashValues(fixed, of_fixed.data());
    parquet::HashValues(strings.column32(), of_strings.data());
    EXPECT_EQ(of_strings[0], parquet::HashValue(strings.column32()[0]));
    return std::tuple(ParquetHashesOf(shorts), ParquetHashesOf(longs), of_fixed, of_strings,
                      parquet::HashValue(shorts[0]), parquet::HashValue(longs[0]));
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
