// Filters in real files: written whole or not at all, mapped, and errors that name the file.
#include "dispatch/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tepal/container.h"
#include "tepal/profile.h"
#include "tests/child_process.h"
#include "tests/column_kinds.h"
#include "tests/test_files.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 91;
const std::vector<uint64_t> kKeys = RandomValues(kSeed, 1000);

class FilesTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return temporary_.PathOf(name); }
  size_t NumFiles() const { return NumEntries(directory_); }

  const TemporaryDirectory temporary_;
  const fs::path& directory_ = temporary_.path();
};

Filter FilterOf(const std::vector<uint64_t>& keys, Layout layout = Layout::kSplit512) {
  Filter filter = MakeFilter(Geometry::For(layout, keys.size(), 12));
  filter.Insert(keys);
  return filter;
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void ExpectError(const Status& status, StatusCode code, const std::string& message_part,
                 const std::string& path) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(message_part));
  EXPECT_THAT(status.message(), HasSubstr(path));
}

// ---- Writing and mapping

TEST_F(FilesTest, AWrittenFileIsTheSerializedContainer) {
  const Filter filter = FilterOf(kKeys);
  ASSERT_TRUE(WriteFile(Path("a"), filter.View(), kKeys.size(), KeyKind::kUint64).ok());
  EXPECT_EQ(ReadAll(Path("a")), Serialize(filter.View(), kKeys.size(), KeyKind::kUint64).value());
  EXPECT_EQ(NumFiles(), 1u) << "the temporary file is gone";
}

TEST_F(FilesTest, AMappedFilterAnswersAsTheOneThatWasWritten) {
  const std::vector<uint64_t> others = RandomValues(kSeed + 1, 5000);
  for (const Layout layout : {Layout::kSplit256, Layout::kVariable, Layout::kRegister}) {
    const Filter filter = FilterOf(kKeys, layout);
    ASSERT_TRUE(WriteFile(Path("a"), filter.View(), kKeys.size(), KeyKind::kUint64).ok());
    const MappedFilter mapped = MappedFilter::Open(Path("a")).value();
    const std::span<const uint64_t> column(others);
    EXPECT_EQ(Ask(mapped.view(), column), Ask(filter, column));
    EXPECT_EQ(mapped.view().Count(kKeys), kKeys.size());
    const ContainerInfo info{.version = 1,
                             .geometry = filter.geometry(),
                             .num_keys = kKeys.size(),
                             .key_kind = KeyKind::kUint64};
    EXPECT_EQ(mapped.info(), info);
  }
}

TEST_F(FilesTest, MappedFiltersCanBeMoved) {
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf(kKeys).View()).ok());
  ASSERT_TRUE(WriteFile(Path("b"), FilterOf({1, 2, 3}).View()).ok());
  std::optional<MappedFilter> first = MappedFilter::Open(Path("a")).value();
  MappedFilter second = std::move(*first);
  first.reset();
  EXPECT_EQ(second.view().Count(kKeys), kKeys.size());
  second = MappedFilter::Open(Path("b")).value();
  EXPECT_TRUE(second.view().MayContain(uint64_t{3}));
}

TEST_F(FilesTest, AReplacedFileLeavesOldMappingsAsTheyWere) {
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf(kKeys).View()).ok());
  const MappedFilter before = MappedFilter::Open(Path("a")).value();
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf({1, 2, 3}).View()).ok());
  const MappedFilter after = MappedFilter::Open(Path("a")).value();
  EXPECT_EQ(before.view().Count(kKeys), kKeys.size());
  EXPECT_LT(after.view().Count(kKeys), kKeys.size());
  EXPECT_TRUE(after.view().MayContain(uint64_t{2}));
}

TEST_F(FilesTest, PathsWithoutADirectoryAreInTheCurrentOne) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  EXPECT_TRUE(WriteFile("a", FilterOf(kKeys).View()).ok());
  EXPECT_TRUE(MappedFilter::Open("a").ok());
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(directory_ / "a"));
}

TEST_F(FilesTest, PermissionsFollowTheUmask) {
  const mode_t before = umask(027);
  EXPECT_TRUE(WriteFile(Path("a"), FilterOf(kKeys).View()).ok());
  umask(before);
  EXPECT_EQ(fs::status(Path("a")).permissions(), static_cast<fs::perms>(0640));
}

// A filter that only its owner may read does not become public because it was made again.
TEST_F(FilesTest, ANewFileHasNoMorePermissionsThanTheOldOne) {
  const mode_t before = umask(022);
  for (const int old : {0600, 0640, 0444, 0755}) {
    ASSERT_TRUE(WriteFile(Path("a"), FilterOf(kKeys).View()).ok());
    fs::permissions(Path("a"), static_cast<fs::perms>(old));
    EXPECT_TRUE(WriteFile(Path("a"), FilterOf(kKeys).View()).ok());
    EXPECT_EQ(fs::status(Path("a")).permissions(), static_cast<fs::perms>(old));
  }
  umask(before);
}

TEST_F(FilesTest, ANameMayBeAsLongAsTheSystemAllows) {
  for (const size_t size : {size_t{230}, size_t{243}, size_t{255}}) {
    const std::string path = Path(std::string(size, 'n'));
    EXPECT_TRUE(WriteFile(path, FilterOf(kKeys).View()).ok()) << size;
    EXPECT_TRUE(WriteFile(path, FilterOf(kKeys).View()).ok()) << size;
    EXPECT_TRUE(MappedFilter::Open(path).ok()) << size;
  }
  EXPECT_EQ(NumFiles(), 3u);
  ExpectError(WriteFile(Path(std::string(256, 'n')), FilterOf(kKeys).View()), StatusCode::kIoError,
              "File name too long", Path("nnn"));
}

TEST_F(FilesTest, WritersOfTheSameFileDoNotMixTheirBytes) {
  std::vector<Filter> filters;
  for (uint64_t i = 0; i < 4; ++i) filters.push_back(FilterOf(RandomValues(kSeed + i, 1000)));
  std::vector<std::thread> threads;
  for (const Filter& filter : filters) {
    threads.emplace_back([this, &filter] {
      for (int round = 0; round < 10; ++round) {
        EXPECT_TRUE(WriteFile(Path("a"), filter.View()).ok());
        EXPECT_TRUE(MappedFilter::Open(Path("a")).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(NumFiles(), 1u);
}

// ---- Files that cannot be opened

TEST_F(FilesTest, AMissingFileIsAnIoErrorWithItsPath) {
  ExpectError(MappedFilter::Open(Path("nothing")).status(), StatusCode::kIoError,
              "No such file or directory", Path("nothing"));
}

TEST_F(FilesTest, DirectoriesAndDevicesAreNotOpened) {
  ExpectError(MappedFilter::Open(directory_.string()).status(), StatusCode::kIoError,
              "not a regular file", directory_.string());
  ExpectError(MappedFilter::Open("/dev/null").status(), StatusCode::kIoError, "not a regular file",
              "/dev/null");
}

TEST_F(FilesTest, AFifoIsRefusedWithoutWaitingForAWriter) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  ExpectError(MappedFilter::Open(Path("fifo")).status(), StatusCode::kIoError, "not a regular file",
              Path("fifo"));
}

TEST_F(FilesTest, AnUnreadableFileIsAnIoError) {
  for (const std::string name : {"readable", "unreadable"}) {
    ASSERT_TRUE(WriteFile(Path(name), FilterOf(kKeys).View()).ok());
  }
  fs::permissions(Path("readable"), static_cast<fs::perms>(0444));
  fs::permissions(Path("unreadable"), fs::perms::none);
  fs::permissions(directory_, static_cast<fs::perms>(0755));
  RunInChild([this] { return EnterAsNobody(directory_.string()); },
             [] {
               EXPECT_TRUE(MappedFilter::Open("readable").ok());
               ExpectError(MappedFilter::Open("unreadable").status(), StatusCode::kIoError,
                           "Permission denied", "unreadable");
             });
}

TEST_F(FilesTest, FilesThatAreNoContainersAreCorrupt) {
  WriteText(Path("empty"), "");
  ExpectError(MappedFilter::Open(Path("empty")).status(), StatusCode::kCorrupt, "there are 0",
              Path("empty"));
  WriteText(Path("text"), std::string(1000, 'x'));
  ExpectError(MappedFilter::Open(Path("text")).status(), StatusCode::kCorrupt, "begin",
              Path("text"));
}

TEST_F(FilesTest, DamagedAndTruncatedFilesAreCorrupt) {
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf(kKeys).View()).ok());
  const std::vector<uint8_t> bytes = ReadAll(Path("a"));
  for (const size_t size : {size_t{1}, size_t{127}, size_t{128}, bytes.size() - 1}) {
    WriteText(Path("b"), std::string(bytes.begin(), bytes.begin() + static_cast<int>(size)));
    ExpectError(MappedFilter::Open(Path("b")).status(), StatusCode::kCorrupt, "", Path("b"));
  }
  std::string damaged(bytes.begin(), bytes.end());
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  WriteText(Path("b"), damaged);
  ExpectError(MappedFilter::Open(Path("b")).status(), StatusCode::kCorrupt, "payload", Path("b"));
}

// The same for bytes in memory is in container_test.cc.
TEST_F(FilesTest, EveryFlippedBitOfASmallFileIsFound) {
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf({1, 2, 3}).View()).ok());
  const std::vector<uint8_t> bytes = ReadAll(Path("a"));
  std::fstream file(Path("a"), std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t offset, uint8_t byte) {
    file.seekp(static_cast<std::streamoff>(offset)).put(static_cast<char>(byte)).flush();
  };
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const uint8_t good = bytes[bit / 8];
    put(bit / 8, static_cast<uint8_t>(good ^ 1u << (bit % 8)));
    const Status status = MappedFilter::Open(Path("a")).status();
    // A version that is not known is none of ours, rather than damaged.
    ASSERT_TRUE(status.code() == StatusCode::kCorrupt || status.code() == StatusCode::kUnsupported)
        << "bit " << bit << ": " << status.message();
    put(bit / 8, good);
  }
  EXPECT_TRUE(MappedFilter::Open(Path("a")).ok());
}

// What tepal/container.h warns of.
TEST_F(FilesTest, AMappedFileThatIsShortenedEndsTheProcessWithSigbus) {
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf(RandomValues(kSeed, 100'000)).View()).ok());
  const auto probe_shortened = [this] {
    std::signal(SIGBUS, SIG_DFL);  // sanitizers have a handler
    const MappedFilter mapped = MappedFilter::Open(Path("a")).value();
    fs::resize_file(Path("a"), 4096);
    _exit(mapped.view().Count(kKeys) > 0 ? 0 : 1);
  };
  EXPECT_EXIT(probe_shortened(), ::testing::KilledBySignal(SIGBUS), "");
}

// ---- Files that cannot be written

TEST_F(FilesTest, AMissingDirectoryIsAnIoError) {
  ExpectError(WriteFile(Path("no/where"), FilterOf(kKeys).View()), StatusCode::kIoError,
              "No such file or directory", Path("no/where"));
}

// A FIFO stands for devices: were one replaced by mistake, root would lose it.
TEST_F(FilesTest, OnlyRegularFilesAreReplaced) {
  fs::create_directory(Path("directory"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const std::string& path : {Path("directory"), Path("fifo")}) {
    ExpectError(WriteFile(path, FilterOf(kKeys).View()), StatusCode::kIoError, "not a regular file",
                path);
  }
  EXPECT_TRUE(fs::is_fifo(Path("fifo")));
  EXPECT_EQ(NumFiles(), 2u);
}

// As /dev/stdout is, while that goes to a file.
TEST_F(FilesTest, ALinkToADescriptorIsNotReplaced) {
  WriteText(Path("out"), "old");
  const int out = open(Path("out").c_str(), O_RDONLY);
  ASSERT_GE(out, 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(out), Path("link"));
  for (const char* descriptor_is : {"open", "closed"}) {
    SCOPED_TRACE(descriptor_is);
    ExpectError(WriteFile(Path("link"), FilterOf(kKeys).View()), StatusCode::kIoError,
                "not a regular file", Path("link"));
    EXPECT_TRUE(fs::is_symlink(Path("link")));
    close(out);
  }
  // Any other link is replaced, and what it leads to stays.
  fs::create_symlink(Path("out"), Path("other"));
  EXPECT_TRUE(WriteFile(Path("other"), FilterOf(kKeys).View()).ok());
  EXPECT_FALSE(fs::is_symlink(Path("other")));
  EXPECT_EQ(ReadAll(Path("out")), (std::vector<uint8_t>{'o', 'l', 'd'}));
}

TEST_F(FilesTest, PathsWithANulAreRefused) {
  const std::string path = Path("victim") + std::string("\0.tpl", 5);
  WriteText(Path("victim"), "old");
  const StatusCode code = StatusCode::kInvalidArgument;
  ExpectError(WriteFile(path, FilterOf(kKeys).View()), code, "NUL", Path("victim"));
  ExpectError(MappedFilter::Open(path).status(), code, "NUL", Path("victim"));
  ExpectError(ReadFile(path, 10).status(), code, "NUL", Path("victim"));
  ExpectError(MachineProfile::BuiltIn().Save(path), code, "NUL", Path("victim"));
  const std::string below = Path("directory") + std::string("\0/profile.json", 14);
  ExpectError(MachineProfile::BuiltIn().Save(below), code, "NUL", Path("directory"));
  EXPECT_EQ(ReadAll(Path("victim")), (std::vector<uint8_t>{'o', 'l', 'd'}));
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(FilesTest, AnUnwritableDirectoryIsAnIoError) {
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf(kKeys).View()).ok());
  const std::vector<uint8_t> old = ReadAll(Path("a"));
  fs::permissions(directory_, static_cast<fs::perms>(0555));
  RunInChild([this] { return EnterAsNobody(directory_.string()); },
             [&old] {
               ExpectError(WriteFile("a", FilterOf({1, 2, 3}).View()), StatusCode::kIoError,
                           "Permission denied", "a");
               EXPECT_EQ(ReadAll("a"), old);
             });
  fs::permissions(directory_, fs::perms::owner_all);
  EXPECT_EQ(NumFiles(), 1u);
}

// That is what rename does: the rights that count are those of the directory.
TEST_F(FilesTest, AReadOnlyFileIsReplaced) {
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf(kKeys).View()).ok());
  fs::permissions(Path("a"), static_cast<fs::perms>(0444));
  fs::permissions(directory_, static_cast<fs::perms>(0777));
  RunInChild([this] { return EnterAsNobody(directory_.string()); },
             [] {
               EXPECT_NE(access("a", W_OK), 0);
               const Filter filter = FilterOf({1, 2, 3});
               EXPECT_TRUE(WriteFile("a", filter.View()).ok());
               EXPECT_EQ(ReadAll("a"), Serialize(filter.View()).value());
             });
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(FilesTest, AFullDeviceIsAnIoError) {
  const int full = open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full";
  ExpectError(WriteAll(full, std::vector<uint8_t>(100), "/dev/full"), StatusCode::kIoError,
              "No space left on device", "/dev/full");
  close(full);
}

// WriteFile while no file of this process can grow beyond `max_bytes`, as if the disk were full.
Status WriteFileLimited(const std::string& path, const FilterView& filter, rlim_t max_bytes) {
  rlimit before{};
  EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{max_bytes, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  Status status = WriteFile(path, filter);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  return status;
}

// The limit falls before and into the header, before, into and just before the end of the payload.
TEST_F(FilesTest, AWriteThatFailsLeavesTheOldFileAndNoTemporaryOne) {
  const Filter filter = FilterOf(kKeys);
  const size_t size = 128 + filter.bytes().size();
  ASSERT_TRUE(WriteFile(Path("a"), FilterOf({1, 2, 3}).View()).ok());
  const std::vector<uint8_t> old = ReadAll(Path("a"));
  for (const size_t limit : {size_t{0}, size_t{100}, size_t{128}, size_t{1000}, size - 1}) {
    ExpectError(WriteFileLimited(Path("a"), filter.View(), limit), StatusCode::kIoError,
                "File too large", Path("a"));
    EXPECT_EQ(ReadAll(Path("a")), old);
    EXPECT_EQ(NumFiles(), 1u);
  }
  EXPECT_TRUE(WriteFileLimited(Path("a"), filter.View(), size).ok());
}

TEST_F(FilesTest, PiecesAreWrittenOneBehindTheOther) {
  const std::vector<uint8_t> first = RandomValues<uint8_t>(1, 3000);
  const std::vector<uint8_t> second = RandomValues<uint8_t>(2, 1);
  ASSERT_TRUE(ReplaceFile(Path("a"), {first, {}, second}).ok());
  std::vector<uint8_t> both = first;
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(ReadAll(Path("a")), both);
  ASSERT_TRUE(ReplaceFile(Path("a"), {}).ok());
  EXPECT_TRUE(ReadAll(Path("a")).empty());
  EXPECT_TRUE(MappedFile::Open(Path("a")).value().bytes().empty());
}

}  // namespace
}  // namespace tepal::testing
