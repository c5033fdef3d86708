// Every allocation of every call fails once: each call reports it, and loses and leaks nothing.
// Also see c_api_fault_test.cc, file_fault_test.cc (files) and memory_test.cc (the allocator hook).
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "dispatch/build_workers.h"
#include "dispatch/shape.h"
#include "tepal/tepal.h"
#include "tests/failing_memory.h"
#include "tests/geometries.h"
#include "tests/guarded_memory.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

const std::vector<uint64_t> kKeys = RandomValues(1, 1000);

Filter FilterOf(const Geometry& geometry) {
  Filter filter = MakeFilter(geometry);
  filter.Insert(kKeys);
  return filter;
}

const Workload kWorkload = {.num_keys = 10, .max_bytes = 64};

// How many allocations must succeed until MakePlan does. It must report all the failures before.
int64_t AllocationsOfMakePlan() {
  for (int64_t num_good = 0;; ++num_good) {
    StatusCode code;
    {
      const FailingMemory failing(num_good, /*once=*/false);
      code = CodeOf(MakePlan(kWorkload));
    }
    if (code == StatusCode::kOk) return num_good;
    EXPECT_EQ(code, StatusCode::kOutOfMemory) << "at allocation " << num_good;
  }
}

// This must be the first test: only the first plan of a process reads the built-in profile.
TEST(NoMemoryTest, IsReportedByTheFirstPlan) {
  ASSERT_EQ(setenv("XDG_CACHE_HOME", "/proc/nowhere", /*overwrite=*/1), 0);  // no other profile
  const int64_t first = AllocationsOfMakePlan();
  EXPECT_GT(first, AllocationsOfMakePlan() + 100);
}

// Twice as large, so that it can be made as small again.
Geometry Doubled(Geometry geometry) {
  geometry.num_bits *= 2;
  return geometry;
}

class NoMemoryForLayoutTest : public ::testing::TestWithParam<Layout> {
 protected:
  const Geometry geometry_ = Geometry::For(GetParam(), kKeys.size(), 12);
  const Geometry larger_ = Doubled(geometry_);
};

TEST_P(NoMemoryForLayoutTest, IsReportedByFilters) {
  const Filter filter = FilterOf(geometry_);
  ExpectSurvives([&] { return Filter::Create(geometry_); });
  ExpectSurvives([&] { return Filter::FromBytes(geometry_, filter.bytes()); });
  ExpectSurvives([&] { return FilterView::Over(geometry_, filter.bytes()); });
}

TEST_P(NoMemoryForLayoutTest, IsReportedByContainers) {
  const Filter filter = FilterOf(geometry_);
  const std::vector<uint8_t> container = Serialize(filter.View()).value();
  GuardedArray<uint8_t> aligned(container.size(), 0);
  std::ranges::copy(container, aligned.data());
  ExpectSurvives([&] { return Serialize(filter.View()); });
  ExpectSurvives([&] { return Inspect(container); });
  ExpectSurvives([&] { return Deserialize(container); });
  ExpectSurvives([&] { return FilterView::Open(aligned.used(container.size())); });
}

TEST_P(NoMemoryForLayoutTest, IsReportedBySets) {
  const Filter a = FilterOf(geometry_);
  const Filter larger = FilterOf(larger_);
  Filter b = FilterOf(geometry_);
  ExpectSurvives([&] { return Union(b, larger.View()); });
  ExpectSurvives([&] { return Intersect(b, larger.View()); });
  ExpectSurvives([&] { return Merge(a.View(), b.View()); });
  ExpectSurvives([&] { return Merge(a.View(), larger.View()); });
  ExpectSurvives([&] { return Merge(larger.View(), a.View()); });
  ExpectSurvives([&] { return Shrink(a.View(), geometry_); });
  ExpectSurvives([&] { return Shrink(larger.View(), geometry_); });
  ExpectSurvives([&] { return SurelyDisjoint(a.View(), larger.View()); });
  ExpectSurvives([&] { return SurelyDisjoint(larger.View(), a.View()); });
}

TEST_P(NoMemoryForLayoutTest, DoesNotMatterToSetsOfOneSize) {
  const Filter a = FilterOf(geometry_);
  Filter b = FilterOf(geometry_);
  ExpectNeedsNoMemory([&] { return Union(b, a.View()); });
  ExpectNeedsNoMemory([&] { return Intersect(b, a.View()); });
  ExpectNeedsNoMemory([&] { return SurelyDisjoint(a.View(), b.View()); });
  ExpectNeedsNoMemory([&] { return EstimateKeys(a.View()); });
}

// A filter that is to be changed is changed if and only if the call says so.
TEST_P(NoMemoryForLayoutTest, LeavesTheOperandsOfSetsAsTheyWere) {
  const Filter larger = FilterOf(larger_);
  const Filter empty = MakeFilter(larger_);
  Filter full = FilterOf(geometry_);
  Filter none = MakeFilter(geometry_);
  const std::vector<uint8_t> before = BytesOf(full);
  for (int64_t num_good = 0;; ++num_good) {
    StatusCode joined;
    StatusCode met;
    {
      const FailingMemory failing(num_good, /*once=*/false);
      joined = CodeOf(Union(none, larger.View()));
    }
    {
      const FailingMemory failing(num_good, /*once=*/false);
      met = CodeOf(Intersect(full, empty.View()));
    }
    EXPECT_EQ(FillRatio(none.View()) > 0, joined == StatusCode::kOk) << num_good;
    EXPECT_EQ(BytesOf(full) != before, met == StatusCode::kOk) << num_good;
    if (!FailingMemory::HasFailed()) break;
  }
}

std::vector<BuildStrategy> StrategiesFor(Layout layout) {
  std::vector<BuildStrategy> strategies = {BuildStrategy::kAuto, BuildStrategy::kPrivate,
                                           BuildStrategy::kAtomic};
  if (!IsScattered(layout)) strategies.push_back(BuildStrategy::kPartitioned);
  return strategies;
}

TEST_P(NoMemoryForLayoutTest, IsReportedByBuilders) {
  const Filter expected = FilterOf(geometry_);
  for (const BuildStrategy strategy : StrategiesFor(GetParam())) {
    SCOPED_TRACE(static_cast<int>(strategy));
    ExpectSurvives([&] {
      Result<ParallelBuilder> builder =
          ParallelBuilder::Create(geometry_, kCountedMemory, strategy);
      if (!builder.ok()) return CodeOf(builder);
      builder->Insert(kKeys);
      const Result<Filter> built = std::move(*builder).Finish();
      EXPECT_TRUE(built.ok() && std::ranges::equal(built->bytes(), expected.bytes()));
      return CodeOf(built);
    });
  }
}

// Inserts each part in a thread of its own, none of which gets memory. Whether one has asked for
// it, as they do if another one has the first worker.
bool InsertWithoutMemory(ParallelBuilder& builder, std::span<const uint64_t> keys) {
  constexpr size_t kNumParts = 4;
  std::atomic<bool> has_failed = false;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kNumParts; ++i) {
    const size_t begin = keys.size() * i / kNumParts, end = keys.size() * (i + 1) / kNumParts;
    threads.emplace_back([&builder, &has_failed, part = keys.subspan(begin, end - begin)] {
      const FailingMemory failing(0, /*once=*/false);
      builder.Insert(part);
      if (FailingMemory::HasFailed()) has_failed = true;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return has_failed;
}

TEST(NoMemoryTest, ForMoreWorkersMakesThreadsShareTheFirst) {
  constexpr int kMaxRounds = 200;
  const std::vector<uint64_t> keys = RandomValues(2, 1'000'000);
  const Geometry geometry = Geometry::For(Layout::kSplit256, keys.size(), 12);
  Filter expected = MakeFilter(geometry);
  expected.Insert(keys);
  for (const BuildStrategy strategy :
       {BuildStrategy::kPrivate, BuildStrategy::kPartitioned, BuildStrategy::kAtomic}) {
    SCOPED_TRACE(static_cast<int>(strategy));
    bool has_failed = false;
    for (int round = 0; round < kMaxRounds && !has_failed; ++round) {
      ParallelBuilder builder = ParallelBuilder::Create(geometry, {}, strategy).value();
      has_failed = InsertWithoutMemory(builder, keys);
      ASSERT_EQ(BytesOf(std::move(builder).Finish().value()), BytesOf(expected));
    }
    EXPECT_TRUE(has_failed) << "no thread has asked for a worker of its own";
  }
}

TEST_P(NoMemoryForLayoutTest, ForAFurtherWorkerIsNoException) {
  for (const BuildStrategy strategy : StrategiesFor(GetParam())) {
    SCOPED_TRACE(static_cast<int>(strategy));
    SharedBuild shared(FilterOf(geometry_), strategy, kCountedMemory);
    ExpectSurvives([&] {
      const bool is_made = MakeWorker(shared, /*is_first=*/false) != nullptr;
      return is_made ? StatusCode::kOk : StatusCode::kOutOfMemory;
    });
  }
}

// A message that cannot be made is no reason to throw, nor to say that all is well.
TEST_P(NoMemoryForLayoutTest, WhileAnErrorIsExplainedIsReported) {
  Geometry wrong = geometry_;
  wrong.num_bits += 8;
  const Filter filter = FilterOf(geometry_);
  constexpr StatusCode kWrong = StatusCode::kInvalidArgument;
  ExpectSurvives([&] { return wrong.Validate(); }, kWrong);
  ExpectSurvives([&] { return Filter::Create(wrong); }, kWrong);
  ExpectSurvives([&] { return Filter::FromBytes(geometry_, filter.bytes().first(8)); }, kWrong);
  ExpectSurvives([&] { return FilterView::Over(geometry_, filter.bytes().first(8)); }, kWrong);
  ExpectSurvives([&] { return Shrink(filter.View(), wrong); }, kWrong);
  ExpectSurvives([&] { return fpr::KeysForRate(geometry_, 2); }, kWrong);
  ExpectSurvives([&] { return fpr::GeometryForRate(GetParam(), 10, 2); }, kWrong);
  GuardedArray<uint8_t> misaligned(filter.bytes().size(), 1);
  std::ranges::copy(filter.bytes(), misaligned.data());
  const std::vector<uint8_t> ones(filter.bytes().size(), 0xFF);
  const Filter full = Filter::FromBytes(geometry_, ones).value();
  ExpectSurvives(
      [&] { return FilterView::Over(geometry_, misaligned.used(filter.bytes().size())); }, kWrong);
  ExpectSurvives([&] { return EstimateKeys(full.View()); }, kWrong);
  ExpectSurvives([&] { return Serialize(full.View(), 0, static_cast<KeyKind>(77)); }, kWrong);
}

TEST_P(NoMemoryForLayoutTest, WhileABuilderErrorIsExplainedIsReported) {
  ParallelBuilder finished = ParallelBuilder::Create(geometry_).value();
  ASSERT_TRUE(std::move(finished).Finish().ok());
  ExpectSurvives([&] { return std::move(finished).Finish(); }, StatusCode::kInvalidArgument);
  Geometry wrong = geometry_;
  wrong.num_bits += 8;
  ExpectSurvives([&] { return ParallelBuilder::Create(wrong); }, StatusCode::kInvalidArgument);
  if (!IsScattered(GetParam())) return;
  ExpectSurvives(
      [&] { return ParallelBuilder::Create(geometry_, {}, BuildStrategy::kPartitioned); },
      StatusCode::kUnsupported);
}

TEST(NoMemoryTest, WhileAWrongAllocatorIsExplainedIsReported) {
  const Geometry geometry = Geometry::For(Layout::kSplit256, 1000, 12);
  MemoryOptions half = kCountedMemory;
  half.allocator.deallocate = nullptr;
  MemoryOptions not_aligned;
  alignas(kFilterAlignment) static uint8_t room[4096];
  ASSERT_LT(geometry.num_bytes(), sizeof(room));
  not_aligned.allocator = {.allocate = [](size_t, size_t, void*) -> void* { return room + 1; },
                           .deallocate = [](void*, size_t, void*) {}};
  for (const MemoryOptions& memory : {half, not_aligned}) {
    ExpectSurvives([&] { return Filter::Create(geometry, memory); }, StatusCode::kInvalidArgument);
  }
}

TEST_P(NoMemoryForLayoutTest, WhileASetErrorIsExplainedIsReported) {
  Filter a = FilterOf(geometry_);
  Geometry seeded = geometry_;
  seeded.seed = 1;
  const Filter b = FilterOf(seeded);
  const StatusCode code = Union(a, b.View()).code();
  EXPECT_NE(code, StatusCode::kOk);
  ExpectSurvives([&] { return Union(a, b.View()); }, code);
  ExpectSurvives([&] { return Intersect(a, b.View()); }, code);
  ExpectSurvives([&] { return Merge(a.View(), b.View()); }, code);
  ExpectSurvives([&] { return SurelyDisjoint(a.View(), b.View()); }, code);
}

TEST_P(NoMemoryForLayoutTest, WhileADamagedContainerIsExplainedIsReported) {
  std::vector<uint8_t> container = Serialize(FilterOf(geometry_).View()).value();
  container[8] ^= 1;
  ExpectSurvives([&] { return Inspect(container); }, StatusCode::kCorrupt);
  ExpectSurvives([&] { return FilterView::Open(container); }, StatusCode::kCorrupt);
  ExpectSurvives([&] { return Deserialize(container); }, StatusCode::kCorrupt);
}

INSTANTIATE_TEST_SUITE_P(Layouts, NoMemoryForLayoutTest, ::testing::ValuesIn(kAllLayouts),
                         [](const auto& layout) { return TestName(LayoutName(layout.param)); });

TEST(NoMemoryTest, IsReportedByParquet) {
  const Geometry geometry = parquet::GeometryOfBytes(1024).value();
  const Filter filter = FilterOf(geometry);
  const std::vector<uint8_t> bytes = parquet::Write(filter).value();
  ExpectSurvives([&] { return parquet::Write(filter); });
  ExpectSurvives([&] { return parquet::Read(bytes); });
  ExpectSurvives([&] { return parquet::ReadExactly(bytes); });
  ExpectSurvives([&] { return parquet::GeometryFor(1000, 0.01); });
}

TEST(NoMemoryTest, WhileADamagedParquetFilterIsExplainedIsReported) {
  const std::vector<uint8_t> bytes =
      parquet::Write(FilterOf(parquet::GeometryOfBytes(1024).value())).value();
  const std::span<const uint8_t> cut(bytes.data(), bytes.size() - 1);
  ExpectSurvives([&] { return parquet::ReadHeader(cut.first(5)); }, StatusCode::kCorrupt);
  ExpectSurvives([&] { return parquet::Read(cut); }, StatusCode::kCorrupt);
  ExpectSurvives([&] { return parquet::ReadExactly(cut); }, StatusCode::kCorrupt);
  ExpectSurvives([] { return parquet::GeometryOfBytes(33); }, StatusCode::kInvalidArgument);
  ExpectSurvives([] { return parquet::GeometryFor(1000, 2); }, StatusCode::kInvalidArgument);
}

TEST(NoMemoryTest, WhileAFilterThatIsNotForParquetIsRefusedIsReported) {
  const Filter filter = FilterOf(Geometry::For(Layout::kSplit256, 1000, 12));  // with XXH3
  ExpectSurvives([&] { return parquet::Write(filter); }, StatusCode::kUnsupported);
}

TEST(NoMemoryTest, WhileAnUnknownNameIsExplainedIsReported) {
  ExpectSurvives([] { return ForceTarget("6502"); }, StatusCode::kInvalidArgument);
  ExpectSurvives([] { return ParseLayout("split1024"); }, StatusCode::kInvalidArgument);
}

// In a process of its own, which finds the variable when the library looks at it for the first
// time.
TEST(NoMemoryDeathTest, WhileAWrongEnvironmentIsExplainedIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto look = [] {
    StatusCode code = StatusCode::kOutOfMemory;
    int64_t num_good = 0;
    for (; code == StatusCode::kOutOfMemory; ++num_good) {
      const FailingMemory failing(num_good, /*once=*/false);
      code = CheckEnvironment().code();
    }
    EXPECT_EQ(code, StatusCode::kInvalidArgument);
    EXPECT_GT(num_good, 1);
    ExpectSurvives([] { return CheckEnvironment(); }, StatusCode::kInvalidArgument);
    const Geometry geometry = Geometry::For(Layout::kSplit256, 1, 8);
    ExpectSurvives([&] { return Filter::Create(geometry); }, StatusCode::kInvalidArgument);
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  ASSERT_EQ(setenv("TEPAL_TARGET", "6502", /*overwrite=*/1), 0);
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(0), "");
  unsetenv("TEPAL_TARGET");
}

TEST(NoMemoryTest, IsReportedBySizesForRates) {
  ExpectSurvives([] { return fpr::GeometryForRate(Layout::kStandard, 10, 0.01); });
}

TEST(NoMemoryTest, IsReportedByThePlanner) {
  const MachineProfile& profile = MachineProfile::BuiltIn();
  ExpectSurvives([&] { return MakePlan(kWorkload, profile); });
  ExpectNeedsNoMemory([&] { return profile.Validate(); });
}

// A layout whose sizes could not be computed must not be left out in silence.
TEST(NoMemoryTest, NeverChangesAPlan) {
  const MachineProfile profile = SmallProfile();
  for (const uint64_t max_bytes : {uint64_t{0}, uint64_t{8}}) {
    const Workload workload = {.num_keys = 10, .max_fpr = 0.01, .max_bytes = max_bytes};
    const Result<FilterPlan> expected = MakePlan(workload, profile);
    ASSERT_EQ(expected.ok(), max_bytes == 0);
    ExpectSurvives(
        [&] {
          const Result<FilterPlan> plan = MakePlan(workload, profile);
          if (CodeOf(plan) == CodeOf(expected)) {
            EXPECT_EQ(plan.status().message(), expected.status().message());
            EXPECT_TRUE(!plan.ok() || plan->geometry == expected->geometry);
          }
          return CodeOf(plan);
        },
        CodeOf(expected));
  }
}

TEST(NoMemoryTest, WhileAWrongWorkloadIsExplainedIsReported) {
  const MachineProfile profile = SmallProfile();
  const Workload wrong[] = {
      {.num_keys = kMaxBits + 1, .max_bytes = 64},
      {.num_keys = 10, .max_fpr = 1},
      {.num_keys = 10, .max_bytes = 64, .hit_rate = 2},
      {.num_keys = 10, .work_saved_ns = -1},
      {.num_keys = 10},
      {.num_keys = 10, .max_fpr = 0.01, .max_bytes = 8},  // cannot be had
  };
  for (const Workload& workload : wrong) {
    SCOPED_TRACE(&workload - wrong);
    ExpectSurvives([&] { return MakePlan(workload, profile); }, StatusCode::kInvalidArgument);
  }
  ExpectSurvives([] { return MakePlan(kWorkload, {}); }, StatusCode::kInvalidArgument);
}

TEST(NoMemoryTest, IsReportedWhileAProfileIsRead) {
  const std::string json = SmallProfile().ToJson();
  ExpectSurvives([&] { return MachineProfile::FromJson(json); });
  ExpectSurvives([] { return MachineProfile::FromJson("{"); }, StatusCode::kCorrupt);
  ExpectSurvives([] { return MachineProfile::FromJson("{}"); }, StatusCode::kCorrupt);
  ExpectSurvives([] { return MachineProfile().Validate(); }, StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tepal::testing
