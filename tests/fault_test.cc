// What must not happen when memory, disk space or the process itself ends at the worst moment. Also
// see io_fault_test.cc (system calls), files_test.cc (limits, permissions, damaged files) and
// memory_test.cc (the allocator hook).
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <new>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dispatch/shape.h"
#include "tepal/c_api.h"
#include "tepal/tepal.h"
#include "tests/child_process.h"
#include "tests/geometries.h"
#include "tests/test_util.h"

namespace {

// Counts what operator new gives out, and lets it fail.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
std::atomic<int64_t> g_num_live{0};
thread_local int64_t g_fail_after = kNever;  // allocations that still succeed
thread_local bool g_fail_once = false;
thread_local bool g_has_failed = false;

void* Allocate(size_t bytes, size_t alignment) {
  if (g_fail_after == 0) {
    g_has_failed = true;
    if (g_fail_once) g_fail_after = kNever;
    return nullptr;
  }
  if (g_fail_after != kNever) --g_fail_after;
  ++g_num_live;
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}

void* AllocateOrThrow(size_t bytes, size_t alignment) {
  void* memory = Allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void Free(void* memory) {
  if (memory != nullptr) --g_num_live;
  std::free(memory);
}

constexpr size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
constexpr size_t ToSize(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace

void* operator new(size_t n) { return AllocateOrThrow(n, kDefault); }
void* operator new(size_t n, std::align_val_t a) { return AllocateOrThrow(n, ToSize(a)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return Allocate(n, kDefault); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return Allocate(n, ToSize(a));
}
void* operator new[](size_t n) { return AllocateOrThrow(n, kDefault); }
void operator delete(void* p) noexcept { Free(p); }
void operator delete(void* p, size_t) noexcept { Free(p); }
void operator delete(void* p, std::align_val_t) noexcept { Free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { Free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { Free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { Free(p); }
void operator delete[](void* p) noexcept { Free(p); }
void operator delete[](void* p, size_t) noexcept { Free(p); }

namespace tepal::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// While it lives, the allocation after `num_good` ones fails: only this one, or all from then on.
class FailingMemory {
 public:
  FailingMemory(int64_t num_good, bool once) {
    g_has_failed = false;
    g_fail_once = once;
    g_fail_after = num_good;
  }
  ~FailingMemory() { g_fail_after = kNever; }
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
};

StatusCode CodeOf(StatusCode code) { return code; }
StatusCode CodeOf(const Status& status) { return status.code(); }
StatusCode CodeOf(tepal_status status) { return static_cast<StatusCode>(status); }
template <class T>
StatusCode CodeOf(const Result<T>& result) {
  return result.ok() ? StatusCode::kOk : result.status().code();
}

// `call` with its first, second ... allocation failing, until it makes no more of them: each time
// it says what it says with memory, or kOutOfMemory, throws nothing, and leaks nothing. A call that
// makes none at all proves nothing here, and fails: see ExpectNeedsNoMemory.
template <class Call>
void ExpectSurvives(const Call& call, StatusCode expected = StatusCode::kOk) {
  ASSERT_EQ(CodeOf(call()), expected);  // also makes what is made once a process
  for (const bool once : {true, false}) {
    int64_t num_good = 0;
    do {
      ASSERT_LT(num_good, 100'000) << "does not end";
      const int64_t num_live = g_num_live;
      StatusCode code = StatusCode::kOutOfMemory;
      try {
        const FailingMemory failing(num_good, once);
        code = CodeOf(call());
      } catch (...) {
        ADD_FAILURE() << "an exception, at allocation " << num_good;
      }
      EXPECT_TRUE(code == StatusCode::kOutOfMemory || code == expected)
          << static_cast<int>(code) << " at allocation " << num_good;
      EXPECT_EQ(g_num_live, num_live) << "a leak, at allocation " << num_good;
      ++num_good;
    } while (g_has_failed && !::testing::Test::HasFailure());
    EXPECT_GT(num_good, 1) << "no allocation has failed";
  }
}

// `call` asks for no memory, once what is made once a process is there.
template <class Call>
void ExpectNeedsNoMemory(const Call& call, StatusCode expected = StatusCode::kOk) {
  ASSERT_EQ(CodeOf(call()), expected);
  StatusCode code = StatusCode::kOutOfMemory;
  try {
    const FailingMemory failing(0, /*once=*/false);
    code = CodeOf(call());
  } catch (...) {
    ADD_FAILURE() << "an exception";
  }
  EXPECT_EQ(code, expected);
  EXPECT_FALSE(g_has_failed) << "it does ask for memory";
}

// One row of a table of calls that may fail, also for reasons other than memory.
struct NamedCall {
  const char* name;
  std::function<StatusCode()> run;
  StatusCode expected = StatusCode::kOk;
};

void ExpectAllSurvive(const std::vector<NamedCall>& calls) {
  for (const NamedCall& call : calls) {
    SCOPED_TRACE(call.name);
    ExpectSurvives(call.run, call.expected);
  }
}

// Memory that counts and fails however large it is. Without it, large buffers are mapped.
constexpr MemoryOptions kCountedMemory = {
    .allocator = {.allocate = [](size_t bytes, size_t alignment,
                                 void*) { return Allocate(bytes, alignment); },
                  .deallocate = [](void* memory, size_t, void*) { Free(memory); }}};

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
  const int64_t first = AllocationsOfMakePlan();
  EXPECT_GT(first, AllocationsOfMakePlan() + 100);
}

// The built-in profile with two sizes: each of its allocations fails once in ExpectSurvives.
MachineProfile SmallProfile() {
  MachineProfile profile = MachineProfile::BuiltIn();
  profile.filter_bytes.resize(2);
  for (TimeCurve& curve : profile.curves) curve.ns.resize(2);
  return profile;
}

// A copy of bytes where FilterView wants them.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::span<const uint8_t> bytes)
      : lines_(bytes.size() / sizeof(Line) + 1), size_(bytes.size()) {
    std::memcpy(lines_.data(), bytes.data(), size_);
  }
  std::span<const uint8_t> bytes() const { return {lines_.front().bytes, size_}; }

 private:
  struct alignas(kFilterAlignment) Line {
    uint8_t bytes[kFilterAlignment];
  };
  std::vector<Line> lines_;
  size_t size_;
};

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
  const AlignedBytes aligned(container);
  ExpectSurvives([&] { return Serialize(filter.View()); });
  ExpectSurvives([&] { return Inspect(container); });
  ExpectSurvives([&] { return Deserialize(container); });
  ExpectSurvives([&] { return FilterView::Open(aligned.bytes()); });
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
    if (!g_has_failed) break;
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

// Most of these threads come while another one has the first worker, and must wait for it.
TEST(NoMemoryTest, ForMoreWorkersMakesThreadsShareTheFirst) {
  const std::vector<uint64_t> keys = RandomValues(2, 1'000'000);
  const Geometry geometry = Geometry::For(Layout::kSplit256, keys.size(), 12);
  Filter expected = MakeFilter(geometry);
  expected.Insert(keys);
  for (const BuildStrategy strategy :
       {BuildStrategy::kPrivate, BuildStrategy::kPartitioned, BuildStrategy::kAtomic}) {
    ParallelBuilder builder = ParallelBuilder::Create(geometry, {}, strategy).value();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const FailingMemory failing(0, /*once=*/false);
        builder.Insert(keys);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(BytesOf(std::move(builder).Finish().value()), BytesOf(expected));
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
  ExpectSurvives([&] { return FilterView::Over(geometry_, filter.bytes().first(8)); }, kWrong);
  ExpectSurvives([&] { return Shrink(filter.View(), wrong); }, kWrong);
  ExpectSurvives([&] { return fpr::KeysForRate(geometry_, 2); }, kWrong);
  const AlignedBytes bytes(filter.bytes());
  const std::vector<uint8_t> ones(filter.bytes().size(), 0xFF);
  const Filter full = Filter::FromBytes(geometry_, ones).value();
  ExpectSurvives([&] { return FilterView::Over(geometry_, bytes.bytes().subspan(1)); }, kWrong);
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

TEST(NoMemoryTest, IsReportedByThePlanner) {
  const MachineProfile& profile = MachineProfile::BuiltIn();
  ExpectSurvives([&] { return MakePlan(kWorkload, profile); });
  ExpectNeedsNoMemory([&] { return profile.Validate(); });
}

// A layout whose sizes could not be computed must not be left out in silence.
TEST(NoMemoryTest, NeverChangesAPlan) {
  const MachineProfile profile = SmallProfile();
  for (const uint64_t max_bytes : {uint64_t{0}, uint64_t{8}}) {
    const Workload workload = {.num_keys = 100, .max_fpr = 0.01, .max_bytes = max_bytes};
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
      {.num_keys = 10, .max_fpr = 1e-9, .max_bytes = 8},  // cannot be had
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

// ---- The C interface

void Release(tepal_filter* filter) { tepal_filter_destroy(filter); }
void Release(tepal_builder* builder) { tepal_builder_destroy(builder); }
void Release(tepal_bytes bytes) { tepal_bytes_free(&bytes); }
template <class T>
void Release(const T& /*value*/) {}

// A C call that has written to `output`, which was like `before`, if and only if it says so.
template <class T>
StatusCode CheckOutput(tepal_status status, const T& before, const T& output) {
  if (status == TEPAL_OK) {
    Release(output);
  } else {
    EXPECT_EQ(std::memcmp(&output, &before, sizeof(T)), 0) << "a failure with an output";
  }
  const bool no_memory = status == TEPAL_OUT_OF_MEMORY;
  EXPECT_EQ(std::strstr(tepal_last_error_message(), "memory") != nullptr, no_memory);
  return CodeOf(status);
}

// One row of a table: `run` with an output that is like `before`.
template <class T, class Run>
NamedCall WithOutput(const char* name, T before, const Run& run) {
  return {name, [before, run] {
            T output;
            std::memcpy(&output, &before, sizeof(T));
            static_cast<void>(tepal_layout_name(0, nullptr));  // another message, without memory
            return CheckOutput(run(&output), before, output);
          }};
}

template <class Run>
NamedCall MakesFilter(const char* name, const Run& run) {
  return WithOutput(name, static_cast<tepal_filter*>(nullptr), run);
}

template <class Run>
NamedCall MakesBytes(const char* name, const Run& run) {
  return WithOutput(name, tepal_bytes TEPAL_BYTES_INIT, run);
}

template <class Run>
NamedCall WithoutOutput(const char* name, const Run& run) {
  return WithOutput(name, 0, [run](int*) { return run(); });
}

// The names are listed once a process, and no other test asks for them: each call must be the
// first.
TEST(NoMemoryTest, IsReportedByTheFirstListsOfTargetsInC) {
  for (const auto list : {tepal_compiled_targets, tepal_available_targets}) {
    int64_t num_good = 0;
    for (;; ++num_good) {
      const char* const* names = nullptr;
      size_t num_names = 0;
      const int64_t num_live = g_num_live;
      tepal_status status;
      {
        const FailingMemory failing(num_good, /*once=*/false);
        status = list(&names, &num_names);
      }
      if (status == TEPAL_OK) break;
      EXPECT_EQ(status, TEPAL_OUT_OF_MEMORY);
      EXPECT_TRUE(names == nullptr && num_names == 0 && g_num_live == num_live) << num_good;
    }
    EXPECT_GT(num_good, 1);
  }
}

class NoMemoryInCTest : public ::testing::Test {
 protected:
  static tepal_filter* MakeFilterInC(const tepal_geometry& geometry) {
    tepal_filter* filter = nullptr;
    const tepal_column keys = tepal_u64_column(kKeys.data(), kKeys.size());
    EXPECT_EQ(tepal_filter_create(&geometry, nullptr, &filter), TEPAL_OK);
    EXPECT_EQ(tepal_filter_insert(filter, &keys), TEPAL_OK);
    return filter;
  }

  // The smaller filter is one that Parquet can have.
  static tepal_geometry GeometryOfBits(uint64_t num_bits) {
    tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
    geometry.hash = TEPAL_HASH_XXH64;
    geometry.num_bits = num_bits;
    geometry.num_probes = 8;
    return geometry;
  }

  std::span<const uint8_t> Bytes() const {
    const uint8_t* bytes = nullptr;
    size_t num_bytes = 0;
    EXPECT_EQ(tepal_filter_bytes(filter_, &bytes, &num_bytes), TEPAL_OK);
    return {bytes, num_bytes};
  }

  ~NoMemoryInCTest() override {
    tepal_filter_destroy(filter_);
    tepal_filter_destroy(larger_);
  }

  const tepal_geometry geometry_ = GeometryOfBits(1 << 14);
  tepal_filter* const filter_ = MakeFilterInC(geometry_);
  tepal_filter* const larger_ = MakeFilterInC(GeometryOfBits(1 << 15));
  const tepal_column keys_ = tepal_u64_column(kKeys.data(), kKeys.size());
};

TEST_F(NoMemoryInCTest, IsReportedByFilters) {
  const std::span<const uint8_t> bytes = Bytes();
  ExpectAllSurvive({
      MakesFilter("create",
                  [&](tepal_filter** f) { return tepal_filter_create(&geometry_, nullptr, f); }),
      MakesFilter("from_bytes",
                  [&](tepal_filter** f) {
                    return tepal_filter_from_bytes(&geometry_, bytes.data(), bytes.size(), nullptr,
                                                   f);
                  }),
      MakesFilter("view",
                  [&](tepal_filter** f) {
                    return tepal_filter_view(&geometry_, bytes.data(), bytes.size(), f);
                  }),
      MakesFilter(
          "merge",
          [&](tepal_filter** f) { return tepal_filter_merge(filter_, larger_, nullptr, f); }),
      MakesFilter(
          "shrink",
          [&](tepal_filter** f) { return tepal_filter_shrink(larger_, &geometry_, nullptr, f); }),
      WithoutOutput("union", [&] { return tepal_filter_union(filter_, larger_); }),
      WithoutOutput("intersect", [&] { return tepal_filter_intersect(filter_, larger_); }),
      WithOutput("surely_disjoint", true,
                 [&](bool* out) { return tepal_filter_surely_disjoint(filter_, larger_, out); }),
  });
}

TEST_F(NoMemoryInCTest, IsReportedByGeometriesAndPlans) {
  tepal_workload work = TEPAL_WORKLOAD_INIT;
  work.num_keys = kWorkload.num_keys;
  work.max_bytes = kWorkload.max_bytes;
  struct Explained {
    tepal_plan plan = TEPAL_PLAN_INIT;
    tepal_bytes text = TEPAL_BYTES_INIT;
  };
  ExpectAllSurvive({
      WithOutput("geometry_for", geometry_,
                 [](tepal_geometry* out) {
                   return tepal_geometry_for(TEPAL_LAYOUT_VARIABLE, 1000, 12, out);
                 }),
      WithOutput("geometry_for_rate", geometry_,
                 [](tepal_geometry* out) {
                   return tepal_geometry_for_rate(TEPAL_LAYOUT_STANDARD, 10, 0.01, out);
                 }),
      WithoutOutput("geometry_validate", [&] { return tepal_geometry_validate(&geometry_); }),
      WithOutput("predict_fpr", -1.0,
                 [&](double* out) { return tepal_predict_fpr(&geometry_, 1000, out); }),
      WithOutput("parse_layout", tepal_layout{-1},
                 [](tepal_layout* out) { return tepal_parse_layout("line512", out); }),
      WithOutput("make_plan", tepal_plan TEPAL_PLAN_INIT,
                 [&](tepal_plan* out) { return tepal_make_plan(&work, out, nullptr); }),
      WithOutput("make_plan, explained", Explained(),
                 [&](Explained* out) {
                   const tepal_status status = tepal_make_plan(&work, &out->plan, &out->text);
                   if (status == TEPAL_OK) tepal_bytes_free(&out->text);
                   return status;
                 }),
  });
}

TEST_F(NoMemoryInCTest, IsReportedByContainersAndParquet) {
  tepal_bytes container = TEPAL_BYTES_INIT;
  tepal_bytes parquet = TEPAL_BYTES_INIT;
  ASSERT_EQ(tepal_filter_serialize(filter_, 0, TEPAL_KEYS_UNKNOWN, &container), TEPAL_OK);
  ASSERT_EQ(tepal_parquet_write(filter_, &parquet), TEPAL_OK);
  const AlignedBytes aligned({container.data, container.size});
  ExpectAllSurvive({
      MakesBytes("serialize",
                 [&](tepal_bytes* out) {
                   return tepal_filter_serialize(filter_, 0, TEPAL_KEYS_UNKNOWN, out);
                 }),
      WithOutput("inspect", tepal_container_info TEPAL_CONTAINER_INFO_INIT,
                 [&](tepal_container_info* out) {
                   return tepal_container_inspect(container.data, container.size, out);
                 }),
      MakesFilter("deserialize",
                  [&](tepal_filter** f) {
                    return tepal_filter_deserialize(container.data, container.size, nullptr, f);
                  }),
      MakesFilter("open",
                  [&](tepal_filter** f) {
                    return tepal_filter_open(aligned.bytes().data(), container.size, f);
                  }),
      MakesBytes("parquet_write",
                 [&](tepal_bytes* out) { return tepal_parquet_write(filter_, out); }),
      MakesFilter("parquet_read",
                  [&](tepal_filter** f) {
                    return tepal_parquet_read(parquet.data, parquet.size, nullptr, f);
                  }),
      MakesFilter("parquet_read_exactly",
                  [&](tepal_filter** f) {
                    return tepal_parquet_read_exactly(parquet.data, parquet.size, nullptr, f);
                  }),
  });
  tepal_bytes_free(&container);
  tepal_bytes_free(&parquet);
}

TEST_F(NoMemoryInCTest, IsReportedByBuilders) {
  ExpectAllSurvive({
      WithOutput("create", static_cast<tepal_builder*>(nullptr),
                 [&](tepal_builder** b) { return tepal_builder_create(&geometry_, nullptr, b); }),
      MakesFilter("create, insert, finish",
                  [&](tepal_filter** f) {
                    tepal_builder* builder = nullptr;
                    tepal_status status = tepal_builder_create(&geometry_, nullptr, &builder);
                    if (status == TEPAL_OK) status = tepal_builder_insert(builder, &keys_);
                    if (status == TEPAL_OK) status = tepal_builder_finish(builder, f);
                    tepal_builder_destroy(builder);
                    return status;
                  }),
  });
}

// Nothing is lost: more keys may come, and a later call gives the filter with all of them.
TEST_F(NoMemoryInCTest, LeavesABuilderThatCanBeFinishedLater) {
  const std::vector<uint8_t> expected(Bytes().begin(), Bytes().end());
  const tepal_column first = tepal_u64_column(kKeys.data(), kKeys.size() / 2);
  const tepal_column rest = tepal_u64_column(kKeys.data() + kKeys.size() / 2, kKeys.size() / 2);
  tepal_builder* builder = nullptr;
  tepal_filter* built = nullptr;
  ASSERT_EQ(tepal_builder_create(&geometry_, nullptr, &builder), TEPAL_OK);
  ASSERT_EQ(tepal_builder_insert(builder, &first), TEPAL_OK);
  const int64_t num_live = g_num_live;
  for (int i = 0; i < 2; ++i) {
    const FailingMemory failing(0, /*once=*/false);
    EXPECT_EQ(tepal_builder_finish(builder, &built), TEPAL_OUT_OF_MEMORY);
  }
  EXPECT_TRUE(built == nullptr && g_num_live == num_live);
  EXPECT_EQ(tepal_builder_insert(builder, &rest), TEPAL_OK);
  ASSERT_EQ(tepal_builder_finish(builder, &built), TEPAL_OK) << tepal_last_error_message();
  const uint8_t* bytes = nullptr;
  size_t num_bytes = 0;
  ASSERT_EQ(tepal_filter_bytes(built, &bytes, &num_bytes), TEPAL_OK);
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + num_bytes), expected);
  tepal_filter_destroy(built);
  tepal_builder_destroy(builder);
}

// What fails needs memory for its message.
TEST_F(NoMemoryInCTest, WhileAnErrorIsExplainedIsReported) {
  const std::span<const uint8_t> bytes = Bytes();
  tepal_geometry wrong = geometry_;
  wrong.num_bits += 8;
  tepal_workload work = TEPAL_WORKLOAD_INIT;
  std::vector<NamedCall> calls = {
      MakesFilter("create",
                  [&](tepal_filter** f) { return tepal_filter_create(&wrong, nullptr, f); }),
      MakesFilter("view",
                  [&](tepal_filter** f) {
                    return tepal_filter_view(&geometry_, bytes.data(), bytes.size() - 1, f);
                  }),
      MakesFilter(
          "shrink",
          [&](tepal_filter** f) { return tepal_filter_shrink(larger_, &wrong, nullptr, f); }),
      WithoutOutput("union", [&] { return tepal_filter_union(larger_, filter_); }),
      WithOutput("builder_create", static_cast<tepal_builder*>(nullptr),
                 [&](tepal_builder** b) { return tepal_builder_create(&wrong, nullptr, b); }),
      WithOutput("parse_layout", tepal_layout{-1},
                 [](tepal_layout* out) { return tepal_parse_layout("split1024", out); }),
      WithOutput("make_plan", tepal_plan TEPAL_PLAN_INIT,
                 [&](tepal_plan* out) { return tepal_make_plan(&work, out, nullptr); }),
      WithoutOutput("force_target", [] { return tepal_force_target("6502"); }),
  };
  for (NamedCall& call : calls) call.expected = StatusCode::kInvalidArgument;
  ExpectAllSurvive(calls);
}

TEST_F(NoMemoryInCTest, DoesNotMatterToTheseCalls) {
  tepal_builder* builder = nullptr;
  ASSERT_EQ(tepal_builder_create(&geometry_, nullptr, &builder), TEPAL_OK);
  std::vector<uint32_t> rows(kKeys.size());
  std::vector<uint64_t> hashes(kKeys.size());
  auto* bitmap = reinterpret_cast<uint8_t*>(hashes.data());
  const char* name = nullptr;
  const char* const* names = nullptr;
  size_t count = 0;
  uint64_t num_keys = 0;
  const NamedCall calls[] = {
      WithoutOutput("insert", [&] { return tepal_filter_insert(filter_, &keys_); }),
      WithoutOutput("builder_insert", [&] { return tepal_builder_insert(builder, &keys_); }),
      WithoutOutput("probe", [&] { return tepal_filter_probe(filter_, &keys_, bitmap, nullptr); }),
      WithoutOutput("select",
                    [&] { return tepal_filter_select(filter_, &keys_, rows.data(), &count); }),
      WithoutOutput("count", [&] { return tepal_filter_count(filter_, &keys_, &count); }),
      WithoutOutput("hash_keys",
                    [&] { return tepal_hash_keys(TEPAL_HASH_XXH3, 0, &keys_, hashes.data()); }),
      WithoutOutput("union", [&] { return tepal_filter_union(filter_, filter_); }),
      WithoutOutput("estimate_keys",
                    [&] { return tepal_filter_estimate_keys(filter_, &num_keys); }),
      WithoutOutput("active_target", [&] { return tepal_active_target(&name); }),
      WithoutOutput("available_targets", [&] { return tepal_available_targets(&names, &count); }),
      WithoutOutput("compiled_targets", [&] { return tepal_compiled_targets(&names, &count); }),
      WithoutOutput("force_target", [] { return tepal_force_target("auto"); }),
  };
  for (const NamedCall& call : calls) {
    SCOPED_TRACE(call.name);
    ExpectNeedsNoMemory(call.run);
  }
  tepal_builder_destroy(builder);
}

// ---- Files

class FileFaultTest : public ::testing::Test {
 protected:
  FileFaultTest() {
    std::string name = (fs::temp_directory_path() / "tepal-fault-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    path_ = directory_ + "/filter";
  }
  ~FileFaultTest() override { fs::remove_all(directory_); }

  size_t NumFiles() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  std::string directory_;
  std::string path_;
  const Filter old_ = FilterOf(Geometry::For(Layout::kSplit256, 1000, 12));
  const Filter new_ = FilterOf(Geometry::For(Layout::kLine512, 100'000, 12));
};

bool HasBytesOf(const MappedFilter& mapped, const Filter& filter) {
  return mapped.view().geometry() == filter.geometry() &&
         std::equal(filter.bytes().begin(), filter.bytes().end(), mapped.view().bytes().begin());
}

// The file is replaced if and only if the call says so, and no other file is left behind.
TEST_F(FileFaultTest, NoMemoryIsReportedAndLeavesTheOldFileOrTheNewOne) {
  ExpectSurvives([&] { return WriteFile(path_, old_.View()); });
  ExpectSurvives([&] { return MappedFilter::Open(path_); });
  for (int64_t num_good = 0;; ++num_good) {
    ASSERT_TRUE(WriteFile(path_, old_.View()).ok());
    StatusCode code;
    {
      const FailingMemory failing(num_good, /*once=*/false);
      code = CodeOf(WriteFile(path_, new_.View()));
    }
    const MappedFilter mapped = MappedFilter::Open(path_).value();
    EXPECT_TRUE(HasBytesOf(mapped, code == StatusCode::kOk ? new_ : old_)) << num_good;
    EXPECT_EQ(NumFiles(), 1u);
    if (!g_has_failed) break;
  }
}

TEST_F(FileFaultTest, NoMemoryIsReportedInCToo) {
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  ASSERT_EQ(tepal_geometry_for(TEPAL_LAYOUT_LINE512, 1000, 12, &geometry), TEPAL_OK);
  tepal_filter* filter = nullptr;
  ASSERT_EQ(tepal_filter_create(&geometry, nullptr, &filter), TEPAL_OK);
  struct Mapped {
    tepal_container_info info = TEPAL_CONTAINER_INFO_INIT;
    tepal_filter* filter = nullptr;
  };
  const auto write = [&] {
    return tepal_filter_write_file(filter, 0, TEPAL_KEYS_UNKNOWN, path_.c_str());
  };
  const auto map = [&](Mapped* out) {
    const tepal_status status = tepal_filter_map_file(path_.c_str(), &out->info, &out->filter);
    if (status == TEPAL_OK) tepal_filter_destroy(out->filter);
    return status;
  };
  ExpectAllSurvive({WithoutOutput("write_file", write), WithOutput("map_file", Mapped(), map)});
  EXPECT_EQ(NumFiles(), 1u);
  tepal_filter_destroy(filter);
}

TEST_F(FileFaultTest, NoMemoryWhileAnErrorIsExplainedIsReported) {
  const std::string missing = directory_ + "/a name that is long enough for the heap";
  const std::string below = missing + "/filter";
  const std::string below_file = path_ + "/filter";
  std::ofstream(path_) << "neither a container nor a profile";
  const MachineProfile profile = SmallProfile();
  constexpr StatusCode kIo = StatusCode::kIoError;
  constexpr StatusCode kCorrupt = StatusCode::kCorrupt;
  constexpr auto kNoKind = static_cast<KeyKind>(77);
  const auto codes = [](const auto& call) { return [call] { return CodeOf(call()); }; };
  ExpectAllSurvive({
      {"open a missing file", codes([&] { return MappedFilter::Open(missing); }), kIo},
      {"open a directory", codes([&] { return MappedFilter::Open(directory_); }), kIo},
      {"open a damaged file", codes([&] { return MappedFilter::Open(path_); }), kCorrupt},
      {"write below nothing", codes([&] { return WriteFile(below, old_.View()); }), kIo},
      {"write below a file", codes([&] { return WriteFile(below_file, old_.View()); }), kIo},
      {"write over a directory", codes([&] { return WriteFile(directory_, old_.View()); }), kIo},
      {"write no key kind", codes([&] { return WriteFile(path_, old_.View(), 0, kNoKind); }),
       StatusCode::kInvalidArgument},
      {"load a missing profile", codes([&] { return MachineProfile::Load(missing); }), kIo},
      {"load a damaged profile", codes([&] { return MachineProfile::Load(path_); }), kCorrupt},
      {"save below a file", codes([&] { return profile.Save(below_file); }), kIo},
      {"save over a directory", codes([&] { return profile.Save(directory_); }), kIo},
  });
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(FileFaultTest, NoMemoryForAProfileIsReported) {
  const MachineProfile profile = SmallProfile();
  ExpectSurvives([&] { return profile.Save(path_); });
  ExpectSurvives([&] { return MachineProfile::Load(path_); });
  EXPECT_EQ(MachineProfile::Load(path_).value().curves, profile.curves);
  EXPECT_EQ(NumFiles(), 1u);
}

// Writes one filter over the other for ever.
[[noreturn]] void WriteInALoop(const std::string& path, const Filter& a, const Filter& b) {
  for (;;) {
    if (!WriteFile(path, a.View()).ok() || !WriteFile(path, b.View()).ok()) _exit(1);
  }
}

TEST_F(FileFaultTest, AWriterThatIsKilledLeavesAWholeFile) {
  constexpr int kRounds = 20;
  std::mt19937 engine(1);
  ASSERT_TRUE(WriteFile(path_, old_.View()).ok());
  for (int round = 0; round < kRounds; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) WriteInALoop(path_, old_, new_);
    usleep(static_cast<useconds_t>(engine() % 20'000));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how)) << "the writer ended by itself";
    const Result<MappedFilter> mapped = MappedFilter::Open(path_);
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    EXPECT_TRUE(HasBytesOf(*mapped, old_) || HasBytesOf(*mapped, new_));
  }
}

TEST_F(FileFaultTest, AFullFileSystemLeavesTheOldFile) {
  RunInChild([this] { return MountSmallFileSystem(directory_); },
             [this] {
               ASSERT_TRUE(WriteFile(path_, old_.View()).ok());
               const Status status = WriteFile(path_, new_.View());  // 150 KB
               EXPECT_EQ(status.code(), StatusCode::kIoError);
               EXPECT_THAT(status.message(), HasSubstr("No space left"));
               EXPECT_TRUE(HasBytesOf(MappedFilter::Open(path_).value(), old_));
               EXPECT_EQ(NumFiles(), 1u);
             });
}

TEST_F(FileFaultTest, AReadOnlyFileSystemIsReadAndNotWritten) {
  const auto prepare = [this] {
    if (!MountSmallFileSystem(directory_)) return false;
    EXPECT_TRUE(WriteFile(path_, old_.View()).ok());
    return MakeReadOnly(directory_);
  };
  RunInChild(prepare, [this] {
    for (const std::string& path : {path_, directory_ + "/another"}) {
      const Status status = WriteFile(path, new_.View());
      EXPECT_EQ(status.code(), StatusCode::kIoError);
      EXPECT_THAT(status.message(), HasSubstr(path));
      EXPECT_THAT(status.message(), HasSubstr("Read-only file system"));
    }
    EXPECT_TRUE(HasBytesOf(MappedFilter::Open(path_).value(), old_));
    EXPECT_EQ(NumFiles(), 1u);
  });
}

}  // namespace
}  // namespace tepal::testing
