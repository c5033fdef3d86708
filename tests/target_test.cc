// Which target runs: what is there, what is forced, and that it is the one that runs.
#include "tepal/targets.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dispatch/active_kernels.h"
#include "hwy/targets.h"
#include "kernels/kernel_tables.h"
#include "tepal/filter.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::vector<std::string> NotRunnableTargets() {
  std::vector<std::string> names;
  for (const std::string& name : CompiledTargets()) {
    const std::vector<std::string> available = AvailableTargets();
    if (std::count(available.begin(), available.end(), name) == 0) names.push_back(name);
  }
  return names;
}

// ---- Names

TEST(TargetNames, AreUnique) {
  const std::vector<std::string> names = CompiledTargets();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(TargetNames, AreHighwaysNamesOfTheCompiledTargetsBestFirst) {
  std::vector<std::string> expected;
  for (int bit = 0; bit < 63; ++bit) {  // Highway gives better targets lower bits
    const int64_t target = int64_t{1} << bit;
    if ((CompiledTargetMask() & target) != 0) expected.push_back(hwy::TargetName(target));
  }
  EXPECT_EQ(CompiledTargets(), expected);
  EXPECT_THAT(expected, Each(Not("Unknown")));
}

TEST(TargetNames, AvailableTargetsAreTheCompiledOnesThatTheCpuSupports) {
  std::vector<std::string> expected;
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t target = int64_t{1} << bit;
    const bool fallback = target > CompiledTargetMask() / 2;  // the last one
    if ((CompiledTargetMask() & target) == 0) continue;
    if (fallback || (hwy::SupportedTargets() & target) != 0) {
      expected.push_back(hwy::TargetName(target));
    }
  }
  EXPECT_EQ(AvailableTargets(), expected);
}

// Without a test of the CPU: what the compiler may use anyway.
TEST(TargetNames, SomeTargetRunsEverywhere) {
  EXPECT_THAT(AvailableTargets(), Contains(hwy::TargetName(HWY_STATIC_TARGET)));
}

// ---- Forcing

// ScopedTarget forces the target and fails if ActiveTarget() disagrees.
using ForcedTarget = TargetTest;

TEST_P(ForcedTarget, IsTheTargetOfEveryKernelTable) {
  const KernelSet& kernels = ActiveKernels();
  EXPECT_EQ(hwy::TargetName(kernels.target), GetParam());
  EXPECT_EQ(hwy::TargetName(kernels.hash->target), GetParam());
  EXPECT_EQ(hwy::TargetName(kernels.block->target), GetParam());
  EXPECT_EQ(hwy::TargetName(kernels.lane->target), GetParam());
  EXPECT_EQ(hwy::TargetName(kernels.result->target), GetParam());
  EXPECT_EQ(hwy::TargetName(kernels.sets->target), GetParam());
}

TEST_P(ForcedTarget, IsFoundInLowerCase) {
  EXPECT_TRUE(ForceTarget(Lower(GetParam())).ok());
  EXPECT_EQ(ActiveTarget(), GetParam());
}

TEST_P(ForcedTarget, StaysInForceAfterARefusedOne) {
  EXPECT_FALSE(ForceTarget("no such target").ok());
  EXPECT_EQ(ActiveTarget(), GetParam());
}

TEST_P(ForcedTarget, AppliesToFiltersThatExist) {
  Filter filter = MakeFilter(Geometry::For(Layout::kSplit256, 1000, 12));
  const std::vector<uint64_t> keys = RandomValues(1, 1000);
  ASSERT_TRUE(ForceTarget("auto").ok());
  filter.Insert(keys);
  ASSERT_TRUE(ForceTarget(GetParam()).ok());
  EXPECT_EQ(filter.Count(keys), keys.size());
}

TEST_P(ForcedTarget, YieldsToAuto) {
  for (const std::string_view name : {"auto", "AUTO", ""}) {
    ASSERT_TRUE(ForceTarget(GetParam()).ok());
    EXPECT_TRUE(ForceTarget(name).ok()) << name;
    EXPECT_EQ(ActiveTarget(), AvailableTargets().front()) << name;
  }
}

TEST_P(ForcedTarget, LeavesHighwaysOwnChoiceAlone) {
  const size_t highways_index = hwy::GetChosenTarget().GetIndex();
  const int64_t highways_targets = hwy::SupportedTargets();
  ASSERT_TRUE(ForceTarget(GetParam()).ok());
  MakeFilter(Geometry::For(Layout::kSplit256, 1, 256)).Insert(RandomValues(1, 100));
  EXPECT_EQ(hwy::GetChosenTarget().GetIndex(), highways_index);
  EXPECT_EQ(hwy::SupportedTargets(), highways_targets);
}

TEPAL_TEST_ON_EVERY_TARGET(ForcedTarget);

TEST(ForceTarget, OfAnUnknownNameListsTheAlternatives) {
  for (const std::string name : {"AVX9", "avx", "AVX2 ", " ", "AVX2,SSE4", "autos", "au"}) {
    const Status status = ForceTarget(name);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr('"' + name + '"'));
    EXPECT_THAT(status.message(), HasSubstr("\"auto\""));
    for (const std::string& available : AvailableTargets()) {
      EXPECT_THAT(status.message(), HasSubstr(available));
    }
  }
}

TEST(ForceTarget, OfATargetThatThisCpuLacksListsTheAlternatives) {
  if (NotRunnableTargets().empty()) GTEST_SKIP() << "this CPU runs every compiled target";
  for (const std::string& name : NotRunnableTargets()) {
    const Status status = ForceTarget(Lower(name));
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << name;
    EXPECT_THAT(status.message(), HasSubstr(name));
    for (const std::string& available : AvailableTargets()) {
      EXPECT_THAT(status.message(), HasSubstr(available));
    }
  }
}

// ---- Tables

std::vector<const void*> FunctionsOf(const KernelSet& kernels) {
  std::vector<const void*> functions;
  const auto add = [&](auto... function) {
    (functions.push_back(reinterpret_cast<const void*>(function)), ...);
  };
  const HashKernels& hash = *kernels.hash;
  add(hash.xxh3_u64, hash.xxh64_u64, hash.xxh3_u32, hash.xxh64_u32);
  const BlockKernels& block = *kernels.block;
  for (const LayoutKernels& layout :
       {block.split256, block.split512, block.line512, block.register64, kernels.lane->scattered}) {
    add(layout.insert, layout.probe);
  }
  add(kernels.result->count, kernels.result->select, kernels.result->select_from);
  return functions;
}

// A table with the right number and another target's functions would pass everything above.
TEST(KernelTables, OfDifferentTargetsShareNoFunction) {
  std::set<const void*> different;
  size_t num_functions = 0;
  for (const std::string& name : AvailableTargets()) {
    const ScopedTarget target(name);
    const std::vector<const void*> functions = FunctionsOf(ActiveKernels());
    different.insert(functions.begin(), functions.end());
    num_functions += functions.size();
  }
  EXPECT_EQ(different.size(), num_functions);
}

}  // namespace
}  // namespace tepal::testing
