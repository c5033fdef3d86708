// Tests in a process of their own, with other rights or another view of the file system.
#ifndef TEPAL_TESTS_CHILD_PROCESS_H_
#define TEPAL_TESTS_CHILD_PROCESS_H_

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace tepal::testing {

// Calls `body`, whose failures are those of the test, in a child in which `prepare` has returned
// true. Skips the test if it does not, for lack of rights, or fails it if TEPAL_EVERY_TEST is set.
// What follows in a test that was skipped is done all the same.
template <class Prepare, class Body>
void RunInChild(const Prepare& prepare, const Body& body) {
  enum ExitCode { kPassed = 0, kFailed = 1, kNoRights = 2 };
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!prepare()) _exit(::testing::Test::HasFailure() ? kFailed : kNoRights);
    try {
      body();
    } catch (...) {  // or else GoogleTest would go on with the other tests in here
      ADD_FAILURE() << "an exception";
    }
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? kFailed : kPassed);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFEXITED(how)) << "signal " << WTERMSIG(how);
  if (WEXITSTATUS(how) == kNoRights) {
    ASSERT_EQ(std::getenv("TEPAL_EVERY_TEST"), nullptr) << "no rights to change what a child sees";
    GTEST_SKIP() << "this needs the rights of root";
  }
  EXPECT_EQ(WEXITSTATUS(how), kPassed);
}

// To `directory`, which "nobody" may be unable to reach by its path; from then on, root is nobody.
inline bool EnterAsNobody(const std::string& directory) {
  constexpr uid_t kNobody = 65534;
  if (chdir(directory.c_str()) != 0) return false;
  if (geteuid() != 0) return true;  // somebody with no more rights than others
  return setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0;
}

// A file system of 64 KiB at `directory`, which only this process and its children see.
inline bool MountSmallFileSystem(const std::string& directory) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", directory.c_str(), "tmpfs", 0, "size=64k") == 0;
}

inline bool MakeReadOnly(const std::string& directory) {
  return mount("none", directory.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_CHILD_PROCESS_H_
