// Filters built by many threads: bit for bit those of one thread, with every strategy. Meant for
// ThreadSanitizer, too.
#include "tepal/parallel_builder.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dispatch/shape.h"
#include "kernels/reference.h"
#include "kernels/slot_walk.h"
#include "tests/column_kinds.h"
#include "tests/geometries.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kSeed = 99;
constexpr size_t kNumThreads = 4;

struct BuildCase {
  std::string name;
  Geometry geometry;
  BuildStrategy strategy;
};

void PrintTo(const BuildCase& build, std::ostream* out) { *out << build.name; }

// Every layout with every strategy that it has. Small filters: threads meet in every block.
std::vector<BuildCase> BuildCases() {
  std::vector<BuildCase> cases;
  const auto add = [&](Layout layout, const std::string& name, uint64_t num_bits, double k) {
    const GeometryCase geometry_case = LayoutCase(layout, name, num_bits, k);
    const auto with = [&](const char* strategy_name, BuildStrategy strategy) {
      cases.push_back({geometry_case.name + "_" + strategy_name, geometry_case.geometry, strategy});
    };
    with("private", BuildStrategy::kPrivate);
    with("atomic", BuildStrategy::kAtomic);
    if (layout >= Layout::kRegister) with("partitioned", BuildStrategy::kPartitioned);
  };
  add(Layout::kStandard, "mask", 1 << 16, 7);
  add(Layout::kStandard, "multiply_high", 512 * 100, 7);
  add(Layout::kPartitioned, "parts", 512 * 7 * 15, 7);
  add(Layout::kRational, "real", 512 * 100, 5.3);
  add(Layout::kVariable, "blocks", 512 * 109, 7);
  add(Layout::kVariablePaper, "blocks", 512 * 109, 6.7);
  add(Layout::kRegister, "one_word", 64, 4);
  add(Layout::kRegister, "words", 64 * 1031, 5);
  add(Layout::kSplit256, "one_block", 256, 8);
  add(Layout::kSplit256, "blocks", 256 * 257, 8);
  add(Layout::kSplit512, "lines", 512 * 129, 8);
  add(Layout::kLine512, "lines", 512 * 129, 11);
  return cases;
}

// Runs work(i) on thread i of kNumThreads.
template <class Work>
void OnThreads(const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kNumThreads; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

class ParallelBuilderTest : public ::testing::TestWithParam<BuildCase> {
 protected:
  const Geometry& geometry() const { return GetParam().geometry; }
  ParallelBuilder MakeBuilder() const {
    return ParallelBuilder::Create(geometry(), {}, GetParam().strategy).value();
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, ParallelBuilderTest, ::testing::ValuesIn(BuildCases()),
                         [](const auto& test) { return test.param.name; });

// Calls of all lengths, many of them empty or shorter than any buffer.
TEST_P(ParallelBuilderTest, ThreadsBuildTheSameBytesAsOneThread) {
  const std::vector<uint64_t> keys = RandomValues(kSeed, 40'000);
  Filter expected = MakeFilter(geometry());
  expected.Insert(keys);
  ParallelBuilder builder = MakeBuilder();
  EXPECT_EQ(builder.strategy(), GetParam().strategy);
  EXPECT_EQ(builder.geometry(), geometry());
  std::atomic<size_t> next = 0;
  OnThreads([&](size_t) {
    const size_t lengths[] = {0, 1, 7, 100, 3000};
    for (size_t call = 0;; ++call) {
      const size_t length = lengths[call % std::size(lengths)];
      const size_t begin = next.fetch_add(length);
      if (begin >= keys.size()) return;
      builder.Insert(std::span(keys).subspan(begin, std::min(length, keys.size() - begin)));
    }
  });
  const Result<Filter> built = std::move(builder).Finish();
  ASSERT_TRUE(built.ok()) << built.status().message();
  EXPECT_EQ(BytesOf(*built), BytesOf(expected));
  EXPECT_EQ(built->Count(keys), keys.size());
}

TEST_P(ParallelBuilderTest, EveryKindOfColumnAndNullsAreInserted) {
  constexpr size_t kNumKeys = 1500;
  const auto long_keys = EightByteKeys::Make(kSeed, kNumKeys);
  const auto short_keys = FourByteKeys::Make(kSeed + 1, kNumKeys);
  const auto strings = StringKeys::Make(kSeed + 2, kNumKeys);
  const auto hashes = RandomValues(kSeed + 3, kNumKeys);
  const auto bits = RandomValues<uint8_t>(kSeed + 4, kNumKeys / 8 + 2);
  const Validity validity{bits.data(), 3};
  const auto insert = [&](auto& target, size_t which) {
    if (which == 0) target.Insert(EightByteKeys::Column(long_keys), validity);
    if (which == 1) target.Insert(FourByteKeys::Column(short_keys), validity);
    if (which == 2) target.Insert(StringKeys::Column(strings), validity);
    if (which == 3) target.InsertHashes(hashes, validity);
  };
  Filter expected = MakeFilter(geometry());
  for (size_t which = 0; which < 4; ++which) insert(expected, which);
  ParallelBuilder builder = MakeBuilder();
  OnThreads([&](size_t thread) { insert(builder, thread); });
  EXPECT_EQ(BytesOf(std::move(builder).Finish().value()), BytesOf(expected));
}

TEST_P(ParallelBuilderTest, NoInsertGivesAnEmptyFilter) {
  ParallelBuilder builder = MakeBuilder();
  builder.Insert(std::span<const uint64_t>());
  const Filter filter = std::move(builder).Finish().value();
  EXPECT_EQ(BytesOf(filter), BytesOf(MakeFilter(geometry())));
}

// ---- Choice and errors

TEST(ParallelBuilderChoiceTest, StrategyFollowsLayoutAndSize) {
  const auto chosen = [](Layout layout, uint64_t num_bits) {
    const MemoryOptions sparse{.huge_pages = HugePages::kNever};
    const Geometry geometry =
        LayoutCase(layout, "", num_bits, layout == Layout::kSplit256 ? 8 : 5).geometry;
    return ParallelBuilder::Create(geometry, sparse).value().strategy();
  };
  constexpr uint64_t kSmall = uint64_t{1} << 15;
  constexpr uint64_t k64MiB = uint64_t{1} << 29;
  constexpr uint64_t kLarge = uint64_t{1} << 32;
  EXPECT_EQ(chosen(Layout::kSplit256, kSmall), BuildStrategy::kPrivate);
  EXPECT_EQ(chosen(Layout::kStandard, kSmall), BuildStrategy::kPrivate);
  EXPECT_EQ(chosen(Layout::kSplit256, k64MiB), BuildStrategy::kPartitioned);
  EXPECT_EQ(chosen(Layout::kSplit256, kLarge), BuildStrategy::kPartitioned);
  EXPECT_EQ(chosen(Layout::kRegister, kLarge), BuildStrategy::kPartitioned);
  EXPECT_EQ(chosen(Layout::kVariable, kLarge), BuildStrategy::kAtomic);
}

TEST(ParallelBuilderChoiceTest, RangesOfBlocksAreForBlockedLayoutsOnly) {
  const Geometry geometry = Geometry::For(Layout::kStandard, 1000, 12);
  const Status status = ParallelBuilder::Create(geometry, {}, BuildStrategy::kPartitioned).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("kAtomic"));
}

TEST(ParallelBuilderChoiceTest, InvalidGeometriesAndASecondFinishAreErrors) {
  EXPECT_EQ(ParallelBuilder::Create({}).status().code(), StatusCode::kInvalidArgument);
  ParallelBuilder builder =
      ParallelBuilder::Create(Geometry::For(Layout::kSplit256, 100, 12)).value();
  EXPECT_TRUE(std::move(builder).Finish().ok());
  EXPECT_EQ(std::move(builder).Finish().status().code(),  // NOLINT(bugprone-use-after-move)
            StatusCode::kInvalidArgument);
}

// Memory for one filter and no other.
struct OneFilter {
  std::atomic<int> left = 1;
  MemoryOptions memory() {
    MemoryOptions options;
    options.allocator = {.allocate = [](size_t bytes, size_t alignment, void* context) -> void* {
                           auto* self = static_cast<OneFilter*>(context);
                           return self->left.fetch_sub(1) > 0 ? std::aligned_alloc(alignment, bytes)
                                                              : nullptr;
                         },
                         .deallocate = [](void* memory, size_t, void*) { std::free(memory); },
                         .context = this};
    return options;
  }
};

TEST(ParallelBuilderMemoryTest, ThreadsWithoutMemoryWaitForOthersAndLoseNothing) {
  const Geometry geometry = LayoutCase(Layout::kSplit256, "", 256 * 64, 8).geometry;
  const std::vector<uint64_t> keys = RandomValues(kSeed, kNumThreads * 5000);
  Filter expected = MakeFilter(geometry);
  expected.Insert(keys);
  OneFilter one;
  ParallelBuilder builder =
      ParallelBuilder::Create(geometry, one.memory(), BuildStrategy::kPrivate).value();
  OnThreads([&](size_t thread) {
    const auto mine = std::span(keys).subspan(thread * 5000, 5000);
    for (size_t begin = 0; begin < 5000; begin += 100) builder.Insert(mine.subspan(begin, 100));
  });
  EXPECT_EQ(BytesOf(std::move(builder).Finish().value()), BytesOf(expected));
  OneFilter none{.left = 0};
  EXPECT_EQ(ParallelBuilder::Create(geometry, none.memory()).status().code(),
            StatusCode::kOutOfMemory);
}

// However many threads insert: the others wait for one of those.
TEST(ParallelBuilderMemoryTest, ThereIsAtMostOnePrivateFilterForEachCore) {
  constexpr size_t kManyThreads = 16;
  constexpr size_t kKeysEach = 100'000;
  static std::atomic<unsigned> num_filters;
  num_filters = 0;
  MemoryOptions counted;
  counted.allocator = {.allocate = [](size_t bytes, size_t alignment, void*) -> void* {
                         ++num_filters;
                         return std::aligned_alloc(alignment, bytes);
                       },
                       .deallocate = [](void* memory, size_t, void*) { std::free(memory); }};
  const std::vector<uint64_t> keys = RandomValues(kSeed, kManyThreads * kKeysEach);
  const Geometry geometry = Geometry::For(Layout::kSplit256, keys.size(), 12);
  Filter expected = MakeFilter(geometry);
  expected.Insert(keys);
  ParallelBuilder builder =
      ParallelBuilder::Create(geometry, counted, BuildStrategy::kPrivate).value();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kManyThreads; ++i) {
    const auto mine = std::span(keys).subspan(i * kKeysEach, kKeysEach);
    threads.emplace_back([&builder, mine] { builder.Insert(mine); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(num_filters, std::max(std::thread::hardware_concurrency(), 2u));
  EXPECT_EQ(BytesOf(std::move(builder).Finish().value()), BytesOf(expected));
}

// ---- The scalar walk over the slots

TEST(SlotWalkTest, PositionsAreThoseOfTheReference) {
  for (const GeometryCase& geometry_case : OracleGeometries()) {
    const Geometry& geometry = geometry_case.geometry;
    if (geometry.layout >= Layout::kRegister) continue;
    const OwnedShape shape = MakeShape(geometry).value();
    for (const uint64_t hash : RandomValues(kSeed, 300)) {
      std::vector<uint64_t> positions;
      ForEachPosition(*shape.table, hash, [&](uint64_t p) { positions.push_back(p); });
      std::vector<uint64_t> expected = reference::Positions(geometry, hash);
      std::sort(positions.begin(), positions.end());  // variable-paper: in another order
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(positions, expected) << geometry_case.name;
    }
  }
}

}  // namespace
}  // namespace tepal::testing
