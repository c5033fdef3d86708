// TEPAL_TARGET in the environment. It is read once in a process, so each value gets a process of
// its own.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tepal/targets.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

using ::testing::HasSubstr;

// The output of environment_probe with TEPAL_TARGET set to `value`, or not set.
std::string RunProbe(const std::optional<std::string>& value) {
  const std::string command =
      (value ? "TEPAL_TARGET='" + *value + "' " : "env -u TEPAL_TARGET ") + TEPAL_ENVIRONMENT_PROBE;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "cannot run " + command;
  std::string output;
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) output += part.data();
  const int status = pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command << "\n" << output;
  return output;
}

void ExpectRunsOn(const std::string& output, const std::string& target) {
  EXPECT_THAT(output, HasSubstr("active: " + target + "\n"));
  EXPECT_THAT(output, HasSubstr("environment: ok\n"));
  EXPECT_THAT(output, HasSubstr("create: ok\n"));
}

class EnvironmentTarget : public ::testing::TestWithParam<std::string> {};

TEST_P(EnvironmentTarget, RunsIfTheEnvironmentNamesIt) {
  ExpectRunsOn(RunProbe(GetParam()), GetParam());
}

TEPAL_TEST_ON_EVERY_TARGET(EnvironmentTarget);

TEST(Environment, WithoutTepalTargetTheBestTargetRuns) {
  ExpectRunsOn(RunProbe(std::nullopt), AvailableTargets().front());
  ExpectRunsOn(RunProbe(""), AvailableTargets().front());
  ExpectRunsOn(RunProbe("auto"), AvailableTargets().front());
}

TEST(Environment, AnUnknownTargetFailsCreationWithTheAlternatives) {
  const std::string output = RunProbe("AVX9");
  for (const std::string call : {"environment", "create"}) {
    EXPECT_THAT(output, HasSubstr(call + ": TEPAL_TARGET: unknown target \"AVX9\""));
  }
  for (const std::string& available : AvailableTargets()) {
    EXPECT_THAT(output, HasSubstr(available));
  }
}

TEST(Environment, ATargetThatThisCpuLacksFailsCreation) {
  const std::vector<std::string> available = AvailableTargets();
  for (const std::string& name : CompiledTargets()) {
    if (std::count(available.begin(), available.end(), name) != 0) continue;
    EXPECT_THAT(RunProbe(name), HasSubstr("create: TEPAL_TARGET: target " + name));
  }
}

TEST(Environment, ForceTargetOverridesIt) {
  const std::string expected = "forced: " + AvailableTargets().back() + "\n";
  EXPECT_THAT(RunProbe(AvailableTargets().front()), HasSubstr(expected));
  EXPECT_THAT(RunProbe("AVX9"), HasSubstr(expected));
}

}  // namespace
}  // namespace tepal::testing
