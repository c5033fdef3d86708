// The `tepal` tool when it is killed, when the disk is full, and when its input cannot be read.
// Also see input_fault_test.cc (every system call of the input).
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/child_process.h"
#include "tests/tool_runner.h"

namespace tepal::tool {
namespace {

namespace fs = std::filesystem;
using testing::MakeReadOnly;
using testing::MountSmallFileSystem;
using testing::RunInChild;

// Asks again and again; false if it did not become true in time.
bool WaitUntil(const std::function<bool()>& condition) {
  constexpr int kTries = 100'000;  // at least 10 seconds
  for (int i = 0; i < kTries; ++i) {
    if (condition()) return true;
    usleep(100);
  }
  return false;
}

bool HasEnded(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

class ToolFaultTest : public ToolRunner {
 protected:
  // Begins a command, which is the tool and nothing else, and does not wait for it.
  pid_t Start(const std::string& line) {
    const std::string shell = Shell("exec " + line + " > .out 2> .err");
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", shell.c_str(), nullptr);
      _exit(127);
    }
    EXPECT_GT(child, 0);
    return child;
  }

  // Whether it has killed the command; otherwise that was done already, and must have succeeded.
  bool Kill(pid_t child) {
    EXPECT_EQ(kill(child, SIGKILL), 0);
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    const bool is_killed = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    EXPECT_TRUE(is_killed || how == 0) << Read(".err");
    return is_killed;
  }

  // Temporary files of writers that are still there, or were killed.
  std::vector<fs::path> TemporaryFiles() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().filename().string().find(".tmp-") != std::string::npos) {
        files.push_back(entry.path());
      }
    }
    return files;
  }

  bool HasBytesOf(const std::string& a, const std::string& b) {
    return Run("cmp -s " + a + " " + b).exit_code == 0;
  }

  // Ends a build while it waits for more keys from this input.
  void KillWaitingBuild(const std::string& input) {
    const pid_t child = Start("tepal build " + input + " --keys 1M -o seen.tpl");
    int pipe = -1;
    EXPECT_TRUE(WaitUntil([&] {
      pipe = open(Path("fifo").c_str(), O_WRONLY | O_NONBLOCK);
      return pipe >= 0;
    })) << "nobody reads the pipe";
    EXPECT_EQ(write(pipe, "key\n", 4), 4);
    EXPECT_TRUE(WaitUntil([&] {
      int num_unread = -1;
      return ioctl(pipe, FIONREAD, &num_unread) == 0 && num_unread == 0;
    })) << "the key was not read";
    EXPECT_TRUE(Kill(child));
    close(pipe);
  }
};

TEST_F(ToolFaultTest, ABuildKilledWhileItWaitsForKeysLeavesTheOldFilter) {
  Out("echo old | tepal build - --keys 1 -o seen.tpl");
  fs::copy_file(Path("seen.tpl"), Path("old.tpl"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const std::string input : {"fifo", "- < fifo"}) {
    KillWaitingBuild(input);
    EXPECT_TRUE(HasBytesOf("seen.tpl", "old.tpl"));
    EXPECT_TRUE(TemporaryFiles().empty());
  }
}

// Half of them is killed after some time, the other half some time after the temporary file was
// created. There must be some that were amid the file.
TEST_F(ToolFaultTest, ABuildKilledAtAnyTimeLeavesTheOldFilterOrTheNewOne) {
  constexpr int kRounds = 16;
  constexpr int kMaxRounds = 64;
  const std::string build = "tepal build keys.txt --layout split256 --bytes 24MiB -o ";
  Write("keys.txt", "a key\nanother\n");
  Out(build + "old.tpl --seed 1");
  Out(build + "new.tpl --seed 2");
  Out("cp old.tpl seen.tpl");
  int num_amid = 0;
  for (int round = 0; round < kRounds || (num_amid == 0 && round < kMaxRounds); ++round) {
    SCOPED_TRACE(round);
    const pid_t child = Start(build + "seen.tpl --seed 2");
    if (round % 2 == 0) {
      WaitUntil([&] { return !TemporaryFiles().empty() || HasEnded(child); });
    }
    usleep(static_cast<useconds_t>(round / 2 % 8 * 2000));
    Kill(child);
    const bool is_old = HasBytesOf("seen.tpl", "old.tpl");
    EXPECT_TRUE(is_old || HasBytesOf("seen.tpl", "new.tpl"));
    Out("tepal verify seen.tpl && tepal inspect seen.tpl");
    for (const fs::path& file : TemporaryFiles()) {
      EXPECT_TRUE(is_old);
      ++num_amid;
      fs::remove(file);
    }
    if (!is_old) Out("cp old.tpl seen.tpl");
  }
  EXPECT_GT(num_amid, 0);
}

TEST_F(ToolFaultTest, ABuildSucceedsBesideTheFileOfAKilledOne) {
  const std::string build = "tepal build keys.txt --layout split256 --bytes 24MiB -o seen.tpl";
  Write("keys.txt", "a key\nanother\n");
  for (int i = 0; i < 50 && TemporaryFiles().empty(); ++i) {
    const pid_t child = Start(build);
    WaitUntil([&] { return !TemporaryFiles().empty() || HasEnded(child); });
    Kill(child);
  }
  ASSERT_FALSE(TemporaryFiles().empty()) << "none was killed in time";
  Out(build);
  Out("tepal verify seen.tpl --keys keys.txt");
  EXPECT_EQ(TemporaryFiles().size(), 1u);
}

TEST_F(ToolFaultTest, AFullFileSystemIsReportedAndKeepsTheOldFilter) {
  fs::create_directory(Path("small"));
  Write("keys.txt", "a key\nanother\n");
  RunInChild([this] { return MountSmallFileSystem(Path("small")); },
             [this] {
               Out("tepal build keys.txt -o small/seen.tpl && cp small/seen.tpl old.tpl");
               ExpectFailure(
                   "tepal build keys.txt --bytes 1MiB --layout split256 -o small/seen.tpl", 1,
                   "No space left on device");
               EXPECT_TRUE(HasBytesOf("small/seen.tpl", "old.tpl"));
               EXPECT_EQ(Out("ls small"), "seen.tpl\n");
             });
}

TEST_F(ToolFaultTest, AReadOnlyFileSystemIsReported) {
  fs::create_directory(Path("small"));
  Write("keys.txt", "a key\nanother\n");
  RunInChild([this] { return MountSmallFileSystem(Path("small")); },
             [this] {
               Out("tepal build keys.txt -o small/seen.tpl");
               ASSERT_TRUE(MakeReadOnly(Path("small")));
               ExpectFailure("tepal build keys.txt -o small/seen.tpl", 1, "Read-only file system");
               Out("tepal verify small/seen.tpl --keys keys.txt");
             });
}

// Nothing is mapped at the address 0 of a process.
TEST_F(ToolFaultTest, AnInputThatCannotBeReadIsReported) {
  if (!fs::exists("/proc/self/mem")) GTEST_SKIP() << "there is no /proc/self/mem";
  Write("keys.txt", "a key\nanother\n");
  Out("tepal build keys.txt -o seen.tpl");
  const std::string error = "cannot read /proc/self/mem: Input/output error";
  ExpectFailure("tepal build /proc/self/mem -o x.tpl", 1, error);
  ExpectFailure("tepal build /proc/self/mem --keys 10 -o x.tpl", 1, error);
  ExpectFailure("tepal query seen.tpl /proc/self/mem", 1, error);
  ExpectFailure("tepal verify seen.tpl --keys /proc/self/mem", 1, error);
  ExpectFailure("tepal plan --keys 1M --fpr 1% --profile /proc/self/mem", 1, error);
  EXPECT_FALSE(Exists("x.tpl"));
}

}  // namespace
}  // namespace tepal::tool
