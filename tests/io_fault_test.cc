// Every system call of the library's files made to fail, to be interrupted, to do half, and to be
// the last of the process; and the one that gets the memory of large filters. Also see
// file_fault_test.cc (memory, real file systems), files_test.cc (permissions, damaged files) and
// input_fault_test.cc (the tool's input).
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dispatch/files.h"
#include "tepal/container.h"
#include "tepal/memory.h"
#include "tepal/parallel_builder.h"
#include "tepal/profile.h"
#include "tepal/sets.h"
#include "tests/system_faults.h"
#include "tests/test_files.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What is to come of a fault in the first, the second ... of these calls. There are no more.
struct Case {
  std::string_view call;
  int error;
  std::vector<StatusCode> codes;
};

constexpr StatusCode kOk = StatusCode::kOk;
constexpr StatusCode kIoError = StatusCode::kIoError;

// The second open, fsync and close are those of the directory: best effort. An open that fails with
// EEXIST has found the temporary file of somebody else.
const std::vector<Case> kReplaceCases = {
    {"stat", ENOENT, {kOk}},
    {"stat", EIO, {kIoError}},
    {"open", EINTR, {kOk, kOk}},
    {"open", EEXIST, {kOk, kOk}},
    {"open", EMFILE, {kIoError, kOk}},
    {"open", EROFS, {kIoError, kOk}},
    {"fsync", EINTR, {kOk, kOk}},
    {"fsync", EIO, {kIoError, kOk}},
    {"fsync", ENOSPC, {kIoError, kOk}},
    {"close", EINTR, {kOk, kOk}},
    {"close", EIO, {kIoError, kOk}},
    {"close", ENOSPC, {kIoError, kOk}},
    {"rename", EINTR, {kIoError}},
    {"rename", EIO, {kIoError}},
    {"rename", ENOSPC, {kIoError}},
    {"unlink", EIO, {}},
};

const std::vector<Case> kMapCases = {
    {"open", EINTR, {kOk}},       {"open", EMFILE, {kIoError}}, {"open", EIO, {kIoError}},
    {"fstat", EIO, {kIoError}},   {"mmap", EIO, {kIoError}},    {"mmap", ENOMEM, {kIoError}},
    {"mmap", ENODEV, {kIoError}}, {"close", EINTR, {kOk}},      {"close", EIO, {kOk}},
};

// The second read finds the end.
const std::vector<Case> kReadCases = {
    {"open", EINTR, {kOk}},
    {"open", EMFILE, {kIoError}},
    {"open", EIO, {kIoError}},
    {"fstat", EIO, {kIoError}},
    {"read", EINTR, {kOk, kOk}},
    {"close", EIO, {kOk}},
    {"read", EIO, {kIoError, kIoError}},
};

std::vector<std::string_view> NamesOf(const std::vector<SystemCall>& calls) {
  std::vector<std::string_view> names;
  for (const SystemCall& call : calls) names.push_back(call.name);
  return names;
}

class IoFaultTest : public ::testing::Test {
 protected:
  using Call = std::function<Status()>;

  Call Write(const Filter& filter) {
    return [this, &filter] { return WriteFile(path_, filter.View()); };
  }

  // `call` with this fault, which must not cost a descriptor, nor leave a second file.
  Status Try(const Call& call, const Fault& fault, bool& happened) {
    const size_t num_descriptors = NumDescriptors();
    Status status;
    {
      const ScopedFault scoped(fault);
      status = call();
      happened = scoped.happened();
    }
    EXPECT_EQ(NumDescriptors(), num_descriptors);
    EXPECT_EQ(NumEntries(directory_.path()), 1u);
    return status;
  }

  // Each fault of `one` in turn, then none; `check` is called after each of them.
  void TryAll(const Case& one, const Call& before, const Call& call,
              const std::function<void(const Status&)>& check) {
    for (size_t i = 0;; ++i) {
      SCOPED_TRACE(std::string(one.call) + " " + std::to_string(i) + ": " + ErrorText(one.error));
      ASSERT_TRUE(before().ok());
      const Fault fault{.call = one.call, .num_good = static_cast<int64_t>(i), .error = one.error};
      bool happened = false;
      const Status status = Try(call, fault, happened);
      ASSERT_EQ(happened, i < one.codes.size()) << "another number of calls than expected";
      if (!happened) {
        EXPECT_TRUE(status.ok()) << status.message();
        return;
      }
      EXPECT_EQ(status.code(), one.codes[i]) << status.message();
      if (!status.ok()) {
        EXPECT_THAT(status.message(), HasSubstr(path_));
        EXPECT_THAT(status.message(), HasSubstr(ErrorText(one.error)));
      }
      check(status);
    }
  }

  // The file has the bytes of `write_new` if that said so, and otherwise those of `write_old`.
  void ExpectReplacedOrNot(const std::vector<Case>& cases, const Call& write_old,
                           const Call& write_new) {
    ASSERT_TRUE(write_new().ok());
    const std::vector<uint8_t> new_bytes = ReadAll(path_);
    ASSERT_TRUE(write_old().ok());
    const std::vector<uint8_t> old_bytes = ReadAll(path_);
    ASSERT_NE(old_bytes, new_bytes);
    for (const Case& one : cases) {
      TryAll(one, write_old, write_new, [&](const Status& status) {
        EXPECT_EQ(ReadAll(path_), status.ok() ? new_bytes : old_bytes);
      });
    }
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.PathOf("file");
  const Filter old_ = FilterOf(1000, 1);
  const Filter new_ = FilterOf(3000, 2);

 private:
  static Filter FilterOf(size_t num_keys, uint64_t seed) {
    Filter filter = MakeFilter(Geometry::For(Layout::kSplit256, num_keys, 12));
    filter.Insert(RandomValues(seed, num_keys));
    return filter;
  }
};

// ---- Writing

TEST_F(IoFaultTest, AFilterIsReplacedOrNotWhicheverCallFails) {
  std::vector<Case> cases = kReplaceCases;
  cases.push_back({"write", EINTR, {kOk, kOk}});  // the header, and the bits
  cases.push_back({"write", EIO, {kIoError, kIoError}});
  cases.push_back({"write", ENOSPC, {kIoError, kIoError}});
  ExpectReplacedOrNot(cases, Write(old_), Write(new_));
}

TEST_F(IoFaultTest, AProfileIsReplacedOrNotWhicheverCallFails) {
  MachineProfile old_profile = MachineProfile::BuiltIn();
  old_profile.cpu = "another";
  std::vector<Case> cases = kReplaceCases;
  cases.push_back({"write", EINTR, {kOk}});
  cases.push_back({"write", EIO, {kIoError}});
  ExpectReplacedOrNot(
      cases, [&] { return old_profile.Save(path_); },
      [&] { return MachineProfile::BuiltIn().Save(path_); });
}

TEST_F(IoFaultTest, ShortWritesAreContinued) {
  const std::vector<uint8_t> new_bytes = Serialize(new_.View()).value();
  for (const size_t max_bytes : {size_t{1}, size_t{7}, new_bytes.size() / 2}) {
    for (const bool once : {true, false}) {
      for (int64_t num_good = 0; num_good < 2; ++num_good) {
        SCOPED_TRACE(std::to_string(max_bytes) + " bytes at write " + std::to_string(num_good));
        ASSERT_TRUE(WriteFile(path_, old_.View()).ok());
        const Fault fault{
            .call = "write", .num_good = num_good, .once = once, .max_bytes = max_bytes};
        bool happened = false;
        const Status status = Try(Write(new_), fault, happened);
        EXPECT_TRUE(happened);
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(ReadAll(path_), new_bytes);
      }
    }
  }
}

// Not a loop without end.
TEST_F(IoFaultTest, AWriteOfNothingIsAFullDevice) {
  ASSERT_TRUE(WriteFile(path_, old_.View()).ok());
  bool happened = false;
  const Status status =
      Try(Write(new_), {.call = "write", .once = false, .max_bytes = 0}, happened);
  EXPECT_TRUE(happened);
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_THAT(status.message(), HasSubstr(ErrorText(ENOSPC)));
  EXPECT_EQ(ReadAll(path_), Serialize(old_.View()).value());
}

// No Linux writes 2 GiB at once. Nothing is written here, nor is there so much memory.
TEST_F(IoFaultTest, HugeWritesAreSplit) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  constexpr size_t kBytes = 3 * kMaxBytes + 17;
  void* memory =
      mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  {
    const ScopedFault scoped({.call = "write", .once = false, .pretend = true});
    EXPECT_TRUE(WriteAll(-1, {static_cast<const uint8_t*>(memory), kBytes}, path_).ok());
    const SystemCall full{"write", kMaxBytes};
    EXPECT_THAT(scoped.calls(), ElementsAre(full, full, full, SystemCall{"write", 17}));
  }
  munmap(memory, kBytes);
}

// What a power failure leaves depends on this order, and no test can cut the power.
TEST_F(IoFaultTest, BytesAreStoredBeforeTheirNameAndThatBeforeTheCallReturns) {
  const ScopedFault none({.call = "no such call"});
  ASSERT_TRUE(WriteFile(path_, new_.View()).ok());
  const std::vector<SystemCall>& calls = none.calls();
  ASSERT_THAT(NamesOf(calls), ElementsAre("stat", "open", "write", "write", "open", "fsync",
                                          "close", "rename", "fsync", "close"));
  const int file = calls[1].descriptor;
  const int directory = calls[4].descriptor;
  EXPECT_NE(file, directory);
  for (const size_t of_file : {2u, 3u, 5u, 6u})
    EXPECT_EQ(calls[of_file].descriptor, file) << of_file;
  for (const size_t of_directory : {8u, 9u}) EXPECT_EQ(calls[of_directory].descriptor, directory);
}

// Whatever it is, it might be a device, which root would lose.
TEST_F(IoFaultTest, WhatCannotBeExaminedIsNotReplaced) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  bool happened = false;
  EXPECT_FALSE(Try(Write(new_), {.call = "stat", .error = EIO}, happened).ok());
  EXPECT_TRUE(happened);
  EXPECT_TRUE(fs::is_fifo(path_));
}

// They are from a process that had the same id, and was killed.
TEST_F(IoFaultTest, TemporaryFilesOfOthersAreLeftAlone) {
  std::string message;
  {
    const ScopedFault scoped({.call = "open", .error = EMFILE});
    message = WriteFile(path_, new_.View()).message();
  }
  const std::string used = path_ + ".tmp-" + std::to_string(getpid()) + "-";
  const size_t at = message.find(used);
  ASSERT_NE(at, std::string::npos) << message;
  const std::string next = used + std::to_string(std::stoul(message.substr(at + used.size())) + 1);
  std::ofstream(next) << "theirs";
  ASSERT_TRUE(WriteFile(path_, new_.View()).ok());
  EXPECT_EQ(ReadAll(path_), Serialize(new_.View()).value());
  EXPECT_EQ(ReadAll(next), (std::vector<uint8_t>{'t', 'h', 'e', 'i', 'r', 's'}));
  EXPECT_EQ(NumEntries(directory_.path()), 2u);
}

// ---- The end of the process

// Whether the fault has killed a child that wrote `filter`.
bool KillsWriter(const std::string& path, const Filter& filter, const Fault& fault) {
  const pid_t child = fork();
  if (child == 0) {
    const ScopedFault scoped(fault);
    _exit(WriteFile(path, filter.View()).ok() ? 0 : 1);
  }
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  const bool is_killed = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
  EXPECT_TRUE(is_killed || how == 0) << "the writer has failed: " << how;
  return is_killed;
}

TEST_F(IoFaultTest, AWriterKilledAtAnyCallLeavesTheOldFileOrTheNewOne) {
  const std::vector<uint8_t> old_bytes = Serialize(old_.View()).value();
  const std::vector<uint8_t> new_bytes = Serialize(new_.View()).value();
  constexpr int64_t kRename = 7;  // the calls are those of the test above
  constexpr int64_t kNumCalls = 10;
  for (const Death death : {Death::kBefore, Death::kAfter}) {
    for (int64_t i = 0; i <= kNumCalls; ++i) {
      SCOPED_TRACE((death == Death::kBefore ? "before call " : "after call ") + std::to_string(i));
      ASSERT_TRUE(WriteFile(path_, old_.View()).ok());
      ASSERT_EQ(KillsWriter(path_, new_, {.num_good = i, .death = death}), i < kNumCalls);
      const bool is_new = death == Death::kBefore ? i > kRename : i >= kRename;
      EXPECT_EQ(ReadAll(path_), is_new ? new_bytes : old_bytes);
      EXPECT_TRUE(MappedFilter::Open(path_).ok());
    }
  }
}

TEST_F(IoFaultTest, AWriterKilledAmidAWriteLeavesTheOldFileAndIsNotInTheWayOfTheNext) {
  for (const int64_t num_good : {0, 1}) {
    ASSERT_TRUE(WriteFile(path_, old_.View()).ok());
    const Fault fault{
        .call = "write", .num_good = num_good, .max_bytes = 100, .death = Death::kAfter};
    ASSERT_TRUE(KillsWriter(path_, new_, fault));
    EXPECT_EQ(ReadAll(path_), Serialize(old_.View()).value());
    EXPECT_EQ(NumEntries(directory_.path()), static_cast<size_t>(2 + num_good))
        << "temporary files";
    EXPECT_TRUE(WriteFile(path_, new_.View()).ok());
    EXPECT_EQ(ReadAll(path_), Serialize(new_.View()).value());
  }
}

// ---- Reading

TEST_F(IoFaultTest, AFilterIsMappedOrNotWhicheverCallFails) {
  for (const Case& one : kMapCases) {
    const Call open = [this]() -> Status {
      const Result<MappedFilter> mapped = MappedFilter::Open(path_);
      if (!mapped.ok()) return mapped.status();
      const std::span<const uint8_t> bytes = mapped->view().bytes();
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), old_.bytes().begin()));
      return Status::Ok();
    };
    TryAll(one, Write(old_), open, [](const Status&) {});
  }
}

TEST_F(IoFaultTest, AProfileIsLoadedOrNotWhicheverCallFails) {
  const Call save = [this] { return MachineProfile::BuiltIn().Save(path_); };
  const Call load = [this]() -> Status {
    const Result<MachineProfile> profile = MachineProfile::Load(path_);
    if (!profile.ok()) return profile.status();
    EXPECT_EQ(profile->curves, MachineProfile::BuiltIn().curves);
    return Status::Ok();
  };
  for (const Case& one : kReadCases) TryAll(one, save, load, [](const Status&) {});
  bool happened = false;
  const Status status = Try(load, {.call = "read", .once = false, .max_bytes = 1}, happened);
  EXPECT_TRUE(happened);
  EXPECT_TRUE(status.ok()) << status.message();
}

// ---- Memory: large filters are mapped

TEST(MapFaultTest, AFilterThatCannotBeMappedIsOutOfMemory) {
  const Geometry large = {
      .layout = Layout::kSplit256, .num_bits = kHugePageThreshold * 8, .num_probes = 8};
  Geometry larger = large;
  larger.num_bits *= 2;
  const Filter filter = MakeFilter(large);
  const Filter larger_filter = MakeFilter(larger);
  const std::vector<uint8_t> container = Serialize(filter.View()).value();
  const auto build = [&] {
    Result<ParallelBuilder> builder = ParallelBuilder::Create(large);
    return builder.ok() ? std::move(*builder).Finish().status() : builder.status();
  };
  const std::vector<std::function<Status()>> calls = {
      [&] { return Filter::Create(large).status(); },
      [&] { return Filter::Create(large, {.huge_pages = HugePages::kNever}).status(); },
      [&] { return Filter::FromBytes(large, filter.bytes()).status(); },
      [&] { return Deserialize(container).status(); },
      [&] { return Merge(filter.View(), filter.View()).status(); },
      [&] { return Shrink(larger_filter.View(), large).status(); },
      build,
  };
  for (const std::function<Status()>& call : calls) {
    SCOPED_TRACE(&call - calls.data());
    EXPECT_TRUE(call().ok());
    const ScopedFault scoped({.call = "mmap", .error = ENOMEM});
    EXPECT_EQ(call().code(), StatusCode::kOutOfMemory);
    EXPECT_TRUE(scoped.happened());
  }
}

}  // namespace
}  // namespace tepal::testing
