// Every system call of the tool's input made to fail, to be interrupted, and to read less than it
// was asked to. Also see key_reader_test.cc (what is in the input) and tool_fault_test.cc.

#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/system_faults.h"
#include "tests/test_files.h"
#include "tools/tepal/key_reader.h"

namespace tepal::tool {
namespace {

using testing::ErrorText;
using testing::Fault;
using ::testing::HasSubstr;
using testing::NumDescriptors;
using testing::ScopedFault;

using Rows = std::vector<std::string>;

// All rows, the way `tepal build` reads them: a file is counted first.
Result<Rows> ReadRows(const InputOptions& options) {
  Result<std::unique_ptr<KeyReader>> opened = KeyReader::Open(options);
  if (!opened.ok()) return opened.status();
  KeyReader& reader = **opened;
  if (reader.input().size().has_value()) {
    if (const Result<uint64_t> count = reader.CountAndRewind(); !count.ok()) return count.status();
  }
  Rows rows;
  for (KeyBatch batch;;) {
    const Result<bool> more = reader.Next(batch);
    if (!more.ok()) return more.status();
    if (!*more) return rows;
    for (size_t i = 0; i < batch.size(); ++i) rows.emplace_back(batch.Row(i));
  }
}

// A file of 24 bytes: eight-byte integers, lines, or records, which are the same.
class InputFaultTest : public ::testing::TestWithParam<KeyFormat> {
 protected:
  InputFaultTest() {
    std::ofstream(path_, std::ios::binary) << kContent;
    options_ = {.path = path_, .format = GetParam()};
    options_.header = GetParam() != KeyFormat::kCsv;
  }

  // The input with this error in the first, the second ... `call`, until there are no more: how
  // many there were. Each time all rows are read, or else it is an error with the name of the file.
  int64_t TryAll(std::string_view call, int error, bool is_survived) {
    const Rows all_rows = ReadRows(options_).value();
    for (int64_t i = 0;; ++i) {
      SCOPED_TRACE(std::string(call) + " " + std::to_string(i) + ": " + ErrorText(error));
      const size_t num_descriptors = NumDescriptors();
      bool happened = false;
      const Result<Rows> rows = [&] {
        const ScopedFault scoped({.call = call, .num_good = i, .error = error});
        Result<Rows> result = ReadRows(options_);
        happened = scoped.happened();
        return result;
      }();
      EXPECT_EQ(NumDescriptors(), num_descriptors);
      EXPECT_EQ(rows.ok(), is_survived || !happened);
      if (rows.ok()) {
        EXPECT_EQ(*rows, all_rows);
      } else {
        EXPECT_EQ(rows.status().code(), StatusCode::kIoError);
        EXPECT_THAT(rows.status().message(), HasSubstr(path_));
        EXPECT_THAT(rows.status().message(), HasSubstr(ErrorText(error)));
      }
      if (!happened || HasFailure()) return i;
    }
  }

  static constexpr std::string_view kContent = "line 1,\nline 2\n\nline 3!\n";
  testing::TemporaryDirectory directory_;
  std::string path_ = directory_.PathOf("input");
  InputOptions options_;
};

TEST_P(InputFaultTest, InterruptedCallsAreRepeated) {
  EXPECT_EQ(TryAll("open", EINTR, /*is_survived=*/true), 1);
  EXPECT_GE(TryAll("read", EINTR, /*is_survived=*/true), 2);
}

TEST_P(InputFaultTest, CallsThatFailAreErrorsThatNameTheFile) {
  EXPECT_EQ(TryAll("open", EMFILE, /*is_survived=*/false), 1);
  EXPECT_EQ(TryAll("open", EIO, /*is_survived=*/false), 1);
  EXPECT_EQ(TryAll("fstat", EIO, /*is_survived=*/false), 1);
  EXPECT_GE(TryAll("lseek", EIO, /*is_survived=*/false), 1);
  EXPECT_GE(TryAll("read", EIO, /*is_survived=*/false), 2);
}

TEST_P(InputFaultTest, AFailedCloseLosesNothing) {
  EXPECT_EQ(TryAll("close", EIO, /*is_survived=*/true), 1);
}

TEST_P(InputFaultTest, ShortReadsAreContinued) {
  const Rows all_rows = ReadRows(options_).value();
  for (const size_t max_bytes : {size_t{1}, size_t{7}}) {
    const ScopedFault scoped({.call = "read", .once = false, .max_bytes = max_bytes});
    EXPECT_EQ(ReadRows(options_).value(), all_rows);
    EXPECT_GT(scoped.calls().size(), kContent.size() / max_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, InputFaultTest,
                         ::testing::Values(KeyFormat::kText, KeyFormat::kU64, KeyFormat::kCsv),
                         [](const auto& format) {
                           return format.param == KeyFormat::kText  ? "text"
                                  : format.param == KeyFormat::kU64 ? "u64"
                                                                    : "csv";
                         });

TEST(StandardInputFaultTest, WithoutADescriptorIsAnError) {
  const ScopedFault scoped({.call = "dup", .error = EMFILE});
  const Result<Input> input = Input::Open(std::string(kStandardInput));
  EXPECT_EQ(input.status().code(), StatusCode::kIoError);
  EXPECT_EQ(input.status().message(), "cannot open standard input: " + ErrorText(EMFILE));
}

TEST(PipeFaultTest, APipeThatCannotBeEnlargedIsRead) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_EQ(write(ends[1], "a\nb\n", 4), 4);
  close(ends[1]);
  {
    const ScopedFault scoped({.call = "fcntl", .error = EPERM});
    EXPECT_EQ(ReadRows({.path = "/dev/fd/" + std::to_string(ends[0])}).value(), (Rows{"a", "b"}));
    EXPECT_TRUE(scoped.happened());
  }
  close(ends[0]);
}

}  // namespace
}  // namespace tepal::tool
