// Runs the `tepal` tool as people do: lines for a shell, in a directory of their own.
#ifndef TEPAL_TESTS_TOOL_RUNNER_H_
#define TEPAL_TESTS_TOOL_RUNNER_H_

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/test_files.h"

namespace tepal::tool {

struct Answer {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class ToolRunner : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return temporary_.PathOf(name); }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  std::string Read(const std::string& name) {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(directory_ / name); }

  // What a shell is to do. "tepal" in the line is the tool. Profiles of this machine do not count.
  std::string Shell(const std::string& line) const {
    return "cd '" + directory_.string() + "' && export XDG_CACHE_HOME='" + directory_.string() +
           "' PATH='" TEPAL_TOOL_DIRECTORY ":'\"$PATH\" && " + line;
  }

  Answer Run(const std::string& line) {
    const int status = std::system(Shell("( " + line + " ) > .out 2> .err").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read(".out"), Read(".err")};
  }

  // Must succeed, and say nothing on stderr.
  std::string Out(const std::string& line) {
    const Answer answer = Run(line);
    EXPECT_EQ(answer.exit_code, 0) << line << "\n" << answer.err;
    EXPECT_EQ(answer.err, "") << line;
    return answer.out;
  }

  // Must fail with this code, one line about it on stderr, and nothing on stdout.
  void ExpectFailure(const std::string& line, int exit_code, const std::string& message) {
    const Answer answer = Run(line);
    EXPECT_EQ(answer.exit_code, exit_code) << line << "\n" << answer.err;
    EXPECT_THAT(answer.err, ::testing::HasSubstr(message)) << line;
    EXPECT_EQ(answer.out, "") << line;
  }

  const testing::TemporaryDirectory temporary_;
  const std::filesystem::path& directory_ = temporary_.path();
};

}  // namespace tepal::tool

#endif  // TEPAL_TESTS_TOOL_RUNNER_H_
