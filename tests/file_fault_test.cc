// Files when memory, disk space or the process itself ends at the worst moment. Also see
// io_fault_test.cc (system calls) and files_test.cc (limits, permissions, damaged files).
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tepal/tepal.h"
#include "tests/child_process.h"
#include "tests/failing_memory.h"
#include "tests/test_files.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

using ::testing::HasSubstr;

Filter FilterOf(const Geometry& geometry) {
  Filter filter = MakeFilter(geometry);
  filter.Insert(RandomValues(1, 1000));
  return filter;
}

class FileFaultTest : public ::testing::Test {
 protected:
  size_t NumFiles() const { return NumEntries(directory_); }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path().string();
  const std::string path_ = temporary_.PathOf("filter");
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
    if (!FailingMemory::HasFailed()) break;
  }
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
