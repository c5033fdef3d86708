// What holds for every layout and every set of keys: the bytes know neither the order of the keys,
// nor how they were cut into batches, nor which target ran; answers know neither cuts nor owners.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/container.h"
#include "tepal/filter.h"
#include "tests/column_kinds.h"
#include "tests/geometries.h"
#include "tests/guarded_memory.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

// One chunk of a column is 1024 rows: more than two of them.
constexpr size_t kNumKeys = 2600;

// Small sizes, and one at which the kernels prefetch.
std::vector<GeometryCase> PropertyGeometries() {
  std::vector<GeometryCase> cases;
  for (const Layout layout : kAllLayouts) {
    const auto add = [&](const char* name, uint64_t num_keys, double bits_per_key) {
      cases.push_back({.name = TestName(LayoutName(layout)) + "_" + name,
                       .geometry = Geometry::For(layout, num_keys, bits_per_key)});
    };
    add("crowded", kNumKeys, 2);
    add("usual", kNumKeys, 11);
    add("above_prefetch_size", PrefetchFromBytes(layout), 9);
  }
  return cases;
}

class PropertyTest : public ::testing::TestWithParam<GeometryCase> {
 protected:
  Filter Make() const { return MakeFilter(GetParam().geometry); }

  Filter MakeOf(std::span<const uint64_t> hashes) const {
    Filter filter = Make();
    filter.InsertHashes(hashes);
    return filter;
  }

  // Calls visit(piece) for consecutive pieces, whose sizes are often those at which something
  // begins or ends: a vector, a byte of a bitmap, a chunk.
  template <class Visit>
  void Cut(std::span<const uint64_t> hashes, const Visit& visit) {
    constexpr size_t kSizes[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025};
    while (!hashes.empty()) {
      const size_t size = std::min(kSizes[random_() % std::size(kSizes)], hashes.size());
      visit(hashes.first(size));
      hashes = hashes.subspan(size);
    }
  }

  static constexpr uint64_t kSeed = 101;
  ::testing::ScopedTrace seed_trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
  std::mt19937_64 random_{kSeed};
  std::vector<uint64_t> keys_ = RandomValues(kSeed, kNumKeys);
  std::vector<uint64_t> others_ = RandomValues(kSeed + 1, kNumKeys);
};

// ---- Bytes

TEST_P(PropertyTest, OrderAndBatchesOfInsertsDoNotMatter) {
  const std::vector<uint8_t> expected = BytesOf(MakeOf(keys_));
  for (int round = 0; round < 3; ++round) {
    std::shuffle(keys_.begin(), keys_.end(), random_);
    Filter filter = Make();
    Cut(keys_, [&](std::span<const uint64_t> batch) { filter.InsertHashes(batch); });
    ASSERT_EQ(BytesOf(filter), expected);
  }
}

TEST_P(PropertyTest, InsertingAgainChangesNothing) {
  Filter filter = MakeOf(keys_);
  const std::vector<uint8_t> expected = BytesOf(filter);
  Cut(keys_, [&](std::span<const uint64_t> batch) { filter.InsertHashes(batch); });
  EXPECT_EQ(BytesOf(filter), expected);
}

TEST_P(PropertyTest, NullsAmongTheKeysAreAsIfAbsent) {
  std::vector<uint64_t> present;
  std::vector<bool> valid;
  for (const uint64_t key : keys_) {
    valid.push_back(random_() % 3 != 0);
    if (valid.back()) present.push_back(key);
  }
  const std::vector<uint8_t> bits = MakeBitmap(valid, 5);
  Filter filter = Make();
  filter.InsertHashes(keys_, {.bits = bits.data(), .offset = 5});
  EXPECT_EQ(BytesOf(filter), BytesOf(MakeOf(present)));
}

TEST_P(PropertyTest, BitsOfTwoSetsOfKeysAreTheBitsOfTheirUnion) {
  Filter both = MakeOf(keys_);
  both.InsertHashes(others_);
  std::vector<uint8_t> bits = BytesOf(MakeOf(keys_));
  const std::vector<uint8_t> more = BytesOf(MakeOf(others_));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint8_t>(bits[i] | more[i]);
  EXPECT_EQ(BytesOf(both), bits);
}

TEST_P(PropertyTest, ATargetMayGoOnWhereAnotherOneStopped) {
  const std::vector<uint8_t> expected = BytesOf(MakeOf(keys_));
  const std::vector<std::string> targets = AvailableTargets();
  Filter filter = Make();
  Cut(keys_, [&](std::span<const uint64_t> batch) {
    const ScopedTarget target(targets[random_() % targets.size()]);
    filter.InsertHashes(batch);
  });
  EXPECT_EQ(BytesOf(filter), expected);
}

// ---- Answers

TEST_P(PropertyTest, InsertedKeysAlwaysMatch) {
  const Filter filter = MakeOf(keys_);
  Cut(keys_,
      [&](std::span<const uint64_t> batch) { ASSERT_EQ(filter.CountHashes(batch), batch.size()); });
}

TEST_P(PropertyTest, AnswersDoNotDependOnTheBatch) {
  const Filter filter = MakeOf(keys_);
  std::vector<uint64_t> probes = others_;
  probes.insert(probes.end(), keys_.begin(), keys_.begin() + kNumKeys / 4);
  std::shuffle(probes.begin(), probes.end(), random_);
  const Answers at_once = AskHashes(filter, probes);
  const std::vector<bool> expected = BitsOf(at_once.bitmap.data(), probes.size());
  size_t begin = 0;
  Cut(probes, [&](std::span<const uint64_t> batch) {
    const Answers answers = AskHashes(filter, batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      ASSERT_EQ(GetBit(answers.bitmap.data(), i), expected[begin + i]) << begin + i;
    }
    ASSERT_EQ(answers.count, answers.rows.size());
    ASSERT_EQ(answers.probed, answers.rows.size());
    begin += batch.size();
  });
}

// Not only for the owner: also for its view, a copy, and a container of it.
TEST_P(PropertyTest, WhoeverHoldsTheBitsGivesTheSameAnswers) {
  const Filter filter = MakeOf(keys_);
  const Answers expected = AskHashes(filter, others_);
  EXPECT_EQ(AskHashes(filter.View(), others_), expected);
  EXPECT_EQ(AskHashes(Filter::FromBytes(filter.geometry(), filter.bytes()).value(), others_),
            expected);
  const std::vector<uint8_t> container = Serialize(filter.View()).value();
  EXPECT_EQ(AskHashes(Deserialize(container).value(), others_), expected);
  GuardedArray<uint8_t> aligned(container.size(), 0);
  std::copy(container.begin(), container.end(), aligned.data());
  const FilterView view = FilterView::Open(aligned.used(container.size())).value();
  EXPECT_EQ(AskHashes(view, others_), expected);
}

INSTANTIATE_TEST_SUITE_P(Geometries, PropertyTest, ::testing::ValuesIn(PropertyGeometries()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tepal::testing
