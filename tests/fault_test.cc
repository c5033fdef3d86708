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
#include <filesystem>
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

StatusCode CodeOf(const Status& status) { return status.code(); }
StatusCode CodeOf(tepal_status status) { return static_cast<StatusCode>(status); }
template <class T>
StatusCode CodeOf(const Result<T>& result) {
  return result.ok() ? StatusCode::kOk : result.status().code();
}

// `call` with its first, second ... allocation failing, until it makes no more of them: each time
// it says what it says with memory, or kOutOfMemory, throws nothing, and leaks nothing.
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
  }
}

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

class NoMemoryForLayoutTest : public ::testing::TestWithParam<Layout> {
 protected:
  const Geometry geometry_ = Geometry::For(GetParam(), kKeys.size(), 12);
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
  ExpectSurvives([&] { return Serialize(filter.View()); });
  ExpectSurvives([&] { return Inspect(container); });
  ExpectSurvives([&] { return Deserialize(container); });
}

TEST_P(NoMemoryForLayoutTest, IsReportedBySets) {
  const Filter a = FilterOf(geometry_);
  Filter b = FilterOf(geometry_);
  ExpectSurvives([&] { return Union(b, a.View()); });
  ExpectSurvives([&] { return Intersect(b, a.View()); });
  ExpectSurvives([&] { return Merge(a.View(), b.View()); });
  ExpectSurvives([&] { return Shrink(a.View(), geometry_); });
  ExpectSurvives([&] { return SurelyDisjoint(a.View(), b.View()); });
  ExpectSurvives([&] { return EstimateKeys(a.View()); });
}

TEST_P(NoMemoryForLayoutTest, IsReportedByBuilders) {
  for (const BuildStrategy strategy : {BuildStrategy::kAuto, BuildStrategy::kAtomic}) {
    ExpectSurvives([&]() -> Result<Filter> {
      Result<ParallelBuilder> builder = ParallelBuilder::Create(geometry_, {}, strategy);
      if (!builder.ok())
        return CodeOf(builder) == StatusCode::kOutOfMemory ? Status::OutOfMemory("")
                                                           : Status::IoError("");
      builder->Insert(kKeys);
      return std::move(*builder).Finish();
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

TEST(NoMemoryTest, WhileAnUnknownTargetIsExplainedIsReported) {
  ExpectSurvives([] { return ForceTarget("6502"); }, StatusCode::kInvalidArgument);
}

TEST(NoMemoryTest, IsReportedByThePlanner) {
  const MachineProfile& profile = MachineProfile::BuiltIn();
  ExpectSurvives([&] { return MakePlan(kWorkload, profile); });
  ExpectSurvives([&] { return profile.Validate(); });
}

TEST(NoMemoryTest, IsReportedWhileAProfileIsRead) {
  const std::string json = SmallProfile().ToJson();
  ExpectSurvives([&] { return MachineProfile::FromJson(json); });
  ExpectSurvives([] { return MachineProfile::FromJson("{"); }, StatusCode::kCorrupt);
  ExpectSurvives([] { return MachineProfile::FromJson("{}"); }, StatusCode::kCorrupt);
  ExpectSurvives([] { return MachineProfile().Validate(); }, StatusCode::kInvalidArgument);
}

TEST(NoMemoryTest, IsReportedByTheCApi) {
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  ASSERT_EQ(tepal_geometry_for(TEPAL_LAYOUT_VARIABLE, 1000, 12, &geometry), TEPAL_OK);
  tepal_filter* kept = nullptr;
  ASSERT_EQ(tepal_filter_create(&geometry, nullptr, &kept), TEPAL_OK);
  ExpectSurvives([&] {
    tepal_filter* filter = nullptr;
    const tepal_status status = tepal_filter_create(&geometry, nullptr, &filter);
    EXPECT_EQ(filter != nullptr, status == TEPAL_OK);
    tepal_filter_destroy(filter);
    return status;
  });
  ExpectSurvives([&] {
    tepal_bytes bytes = TEPAL_BYTES_INIT;
    const tepal_status status = tepal_filter_serialize(kept, 0, TEPAL_KEYS_UNKNOWN, &bytes);
    EXPECT_EQ(bytes.owner != nullptr, status == TEPAL_OK);
    tepal_bytes_free(&bytes);
    return status;
  });
  tepal_filter_destroy(kept);
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
