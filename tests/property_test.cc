// What holds for every layout, every kind of column and every set of keys: the bytes know neither
// the order of the keys, nor how they were cut into batches or parts, nor which target ran; answers
// know neither cuts nor owners.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/container.h"
#include "tepal/filter.h"
#include "tepal/sets.h"
#include "tests/column_kinds.h"
#include "tests/geometries.h"
#include "tests/guarded_memory.h"
#include "tests/test_files.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

// One chunk of a column is 1024 rows: more than two of them.
constexpr size_t kNumKeys = 2600;

constexpr uint64_t kSeed = 101;

GeometryCase PropertyCase(Layout layout, const char* name, uint64_t num_keys, double bits_per_key,
                          bool sparse = false) {
  return {.name = TestName(LayoutName(layout)) + "_" + name,
          .geometry = Geometry::For(layout, num_keys, bits_per_key),
          .sparse = sparse};
}

// Small sizes, and one at which the kernels prefetch.
std::vector<GeometryCase> PropertyGeometries() {
  std::vector<GeometryCase> cases;
  for (const Layout layout : kAllLayouts) {
    cases.push_back(PropertyCase(layout, "crowded", kNumKeys, 2));
    cases.push_back(PropertyCase(layout, "usual", kNumKeys, 11));
    cases.push_back(PropertyCase(layout, "above_prefetch_size", PrefetchFromBytes(layout), 9));
  }
  return cases;
}

// Sizes at which they prefetch in other ways. (Scattered layouts do not tell far from near.)
std::vector<GeometryCase> LargeGeometries() {
  std::vector<GeometryCase> cases;
  for (const Layout layout :
       {Layout::kRegister, Layout::kSplit256, Layout::kSplit512, Layout::kLine512}) {
    cases.push_back(PropertyCase(layout, "above_far_prefetch_size", FarPrefetchFromBytes(), 9));
  }
  if (kQuickTests) return cases;  // an emulator needs long to compare the bytes of an L3 cache
  for (const Layout layout : {Layout::kStandard, Layout::kSplit256}) {
    cases.push_back(PropertyCase(layout, "above_paced_prefetch_size", PacedPrefetchFromBytes(), 9,
                                 /*sparse=*/true));
  }
  return cases;
}

// Calls visit(begin, size) for consecutive pieces of so many rows, whose sizes are often those at
// which something begins or ends: a vector, a byte of a bitmap, a chunk.
template <class Visit>
void CutRows(size_t num_rows, std::mt19937_64& random, const Visit& visit) {
  constexpr size_t kSizes[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025};
  for (size_t begin = 0; begin < num_rows;) {
    const size_t size = std::min(kSizes[random() % std::size(kSizes)], num_rows - begin);
    visit(begin, size);
    begin += size;
  }
}

// Two thirds of the rows.
std::vector<bool> RandomValidity(size_t num_rows, std::mt19937_64& random) {
  std::vector<bool> valid(num_rows);
  for (size_t row = 0; row < num_rows; ++row) valid[row] = random() % 3 != 0;
  return valid;
}

const std::string& AnyTarget(std::mt19937_64& random) {
  static const std::vector<std::string> kTargets = AvailableTargets();
  return kTargets[random() % kTargets.size()];
}

// Filters may be as large as an L3 cache, too large to copy and to print.
bool HaveSameBytes(const Filter& a, const Filter& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

// `ask` gets the answers of a filter. Its owner, a view, a copy, and containers of it in memory and
// in a file give the same ones.
template <class AskIt>
void ExpectThatAllHoldersAgree(const Filter& filter, const AskIt& ask) {
  const Answers expected = ask(filter);
  EXPECT_EQ(ask(filter.View()), expected);
  EXPECT_EQ(ask(Filter::FromBytes(filter.geometry(), filter.bytes()).value()), expected);
  EXPECT_EQ(ask(FilterView::Over(filter.geometry(), filter.bytes()).value()), expected);
  const std::vector<uint8_t> container = Serialize(filter.View()).value();
  EXPECT_EQ(ask(Deserialize(container).value()), expected);
  GuardedArray<uint8_t> aligned(container.size(), 0);
  std::copy(container.begin(), container.end(), aligned.data());
  EXPECT_EQ(ask(FilterView::Open(aligned.used(container.size())).value()), expected);
  const TemporaryDirectory directory;
  const std::string path = directory.PathOf("filter.tpl");
  ASSERT_TRUE(WriteFile(path, filter.View()).ok());
  const MappedFilter mapped = MappedFilter::Open(path).value();
  EXPECT_EQ(ask(mapped.view()), expected);
}

// ---- Hashes

class PropertyTest : public ::testing::TestWithParam<GeometryCase> {
 protected:
  Filter Make() const { return MakeFilter(GetParam().geometry, GetParam().memory()); }

  Filter MakeOf(std::span<const uint64_t> hashes) const {
    Filter filter = Make();
    filter.InsertHashes(hashes);
    return filter;
  }

  template <class Visit>
  void Cut(std::span<const uint64_t> hashes, const Visit& visit) {
    CutRows(hashes.size(), random_,
            [&](size_t begin, size_t size) { visit(hashes.subspan(begin, size)); });
  }

  ::testing::ScopedTrace seed_trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
  std::mt19937_64 random_{kSeed};
  std::vector<uint64_t> keys_ = RandomValues(kSeed, kNumKeys);
  std::vector<uint64_t> others_ = RandomValues(kSeed + 1, kNumKeys);
};

TEST_P(PropertyTest, OrderAndBatchesOfInsertsDoNotMatter) {
  const Filter expected = MakeOf(keys_);
  for (int round = 0; round < 3; ++round) {
    std::shuffle(keys_.begin(), keys_.end(), random_);
    Filter filter = Make();
    Cut(keys_, [&](std::span<const uint64_t> batch) { filter.InsertHashes(batch); });
    ASSERT_TRUE(HaveSameBytes(filter, expected));
  }
}

TEST_P(PropertyTest, InsertingAgainChangesNothing) {
  Filter filter = MakeOf(keys_);
  Cut(keys_, [&](std::span<const uint64_t> batch) { filter.InsertHashes(batch); });
  EXPECT_TRUE(HaveSameBytes(filter, MakeOf(keys_)));
}

TEST_P(PropertyTest, NullsAmongTheKeysAreAsIfAbsent) {
  const std::vector<bool> valid = RandomValidity(kNumKeys, random_);
  std::vector<uint64_t> present;
  for (size_t row = 0; row < kNumKeys; ++row) {
    if (valid[row]) present.push_back(keys_[row]);
  }
  const std::vector<uint8_t> bits = MakeBitmap(valid, 5);
  Filter filter = Make();
  filter.InsertHashes(keys_, {.bits = bits.data(), .offset = 5});
  EXPECT_TRUE(HaveSameBytes(filter, MakeOf(present)));
}

TEST_P(PropertyTest, ATargetMayGoOnWhereAnotherOneStopped) {
  Filter filter = Make();
  Cut(keys_, [&](std::span<const uint64_t> batch) {
    const ScopedTarget target(AnyTarget(random_));
    filter.InsertHashes(batch);
  });
  EXPECT_TRUE(HaveSameBytes(filter, MakeOf(keys_)));
}

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
  ExpectOneAnswer(at_once, probes.size());
  const std::vector<bool> expected = BitsOf(at_once.bitmap.data(), probes.size());
  size_t begin = 0;
  Cut(probes, [&](std::span<const uint64_t> batch) {
    const Answers answers = AskHashes(filter, batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      ASSERT_EQ(GetBit(answers.bitmap.data(), i), expected[begin + i]) << begin + i;
      ASSERT_TRUE(i >= answers.single.size() || answers.single[i] == expected[begin + i]);
    }
    ExpectOneAnswer(answers, batch.size());
    begin += batch.size();
  });
}

INSTANTIATE_TEST_SUITE_P(Geometries, PropertyTest, ::testing::ValuesIn(PropertyGeometries()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Large, PropertyTest, ::testing::ValuesIn(LargeGeometries()),
                         [](const auto& test) { return test.param.name; });

// What runs no prefetching kernels of its own: not for the largest filters.
class WholeFilterPropertyTest : public PropertyTest {
 protected:
  // Each key is in one of the parts, and every eighth one in another one, too.
  std::vector<std::vector<uint64_t>> RandomParts(size_t num_parts) {
    std::vector<std::vector<uint64_t>> parts(num_parts);
    for (const uint64_t key : keys_) {
      const size_t part = random_() % num_parts;
      parts[part].push_back(key);
      if (random_() % 8 == 0) parts[(part + 1) % num_parts].push_back(key);
    }
    return parts;
  }
};

TEST_P(WholeFilterPropertyTest, BitsOfTwoSetsOfKeysAreTheBitsOfTheirUnion) {
  Filter both = MakeOf(keys_);
  both.InsertHashes(others_);
  std::vector<uint8_t> bits = BytesOf(MakeOf(keys_));
  const std::vector<uint8_t> more = BytesOf(MakeOf(others_));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint8_t>(bits[i] | more[i]);
  EXPECT_EQ(BytesOf(both), bits);
}

TEST_P(WholeFilterPropertyTest, UnionOfPartsBuiltAndJoinedOnAnyTargetsIsTheWhole) {
  const Filter whole = MakeOf(keys_);
  for (size_t num_parts = 3; num_parts <= 5; ++num_parts) {
    Filter into = Make();
    for (const std::vector<uint64_t>& part : RandomParts(num_parts)) {
      Filter filter = Make();
      {
        const ScopedTarget target(AnyTarget(random_));
        filter.InsertHashes(part);
      }
      const ScopedTarget target(AnyTarget(random_));
      ASSERT_TRUE(Union(into, filter.View()).ok());
    }
    EXPECT_TRUE(HaveSameBytes(into, whole)) << num_parts << " parts";
  }
}

TEST_P(WholeFilterPropertyTest, WhoeverHoldsTheBitsGivesTheSameAnswers) {
  ExpectThatAllHoldersAgree(MakeOf(keys_),
                            [&](const ProbeCalls& filter) { return AskHashes(filter, others_); });
}

INSTANTIATE_TEST_SUITE_P(Geometries, WholeFilterPropertyTest,
                         ::testing::ValuesIn(PropertyGeometries()),
                         [](const auto& test) { return test.param.name; });

// ---- Keys: the same for every kind of column

template <class Kind>
class KeyPropertyTest : public ::testing::Test {
 protected:
  using Keys = typename Kind::Keys;

  static Filter MakeOf(const Geometry& geometry, const Keys& keys, const Validity& validity = {}) {
    Filter filter = MakeFilter(geometry);
    filter.Insert(Kind::Column(keys), validity);
    return filter;
  }

  // A twentieth of foreign keys matches. The hashes take turns.
  template <class Check>
  static void ForEachLayout(const Check& check) {
    HashKind hash = HashKind::kXxh3;
    for (const Layout layout : kAllLayouts) {
      SCOPED_TRACE(LayoutName(layout));
      Geometry geometry = Geometry::For(layout, kNumKeys, 6);
      geometry.seed = kSeed;
      geometry.hash = hash;
      check(geometry);
      hash = hash == HashKind::kXxh3 ? HashKind::kXxh64 : HashKind::kXxh3;
    }
  }

  // Calls visit(batch, begin).
  template <class Visit>
  void Cut(const Keys& keys, std::span<const uint32_t> rows, const Visit& visit) {
    CutRows(rows.size(), random_, [&](size_t begin, size_t size) {
      visit(Gather(keys, rows.subspan(begin, size)), begin);
    });
  }

  ::testing::ScopedTrace seed_trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
  std::mt19937_64 random_{kSeed};
  const Keys keys_ = Kind::Make(kSeed, kNumKeys);
  const Keys others_ = Kind::Make(kSeed + 1, kNumKeys);
  std::vector<uint32_t> all_rows_ = [] {
    std::vector<uint32_t> rows(kNumKeys);
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
  }();
};

using KeyKinds = ::testing::Types<EightByteKeys, FourByteKeys, StringKeys, LongOffsetStringKeys>;
TYPED_TEST_SUITE(KeyPropertyTest, KeyKinds);

TYPED_TEST(KeyPropertyTest, OrderAndBatchesOfInsertsDoNotMatter) {
  std::vector<uint32_t> rows = this->all_rows_;
  this->ForEachLayout([&](const Geometry& geometry) {
    std::shuffle(rows.begin(), rows.end(), this->random_);
    Filter filter = MakeFilter(geometry);
    this->Cut(this->keys_, rows, [&](const auto& batch, size_t) {
      const ScopedTarget target(AnyTarget(this->random_));
      filter.Insert(TypeParam::Column(batch));
      EXPECT_EQ(filter.Count(TypeParam::Column(batch)), TypeParam::Column(batch).size());
    });
    EXPECT_EQ(BytesOf(filter), BytesOf(this->MakeOf(geometry, this->keys_)));
  });
}

TYPED_TEST(KeyPropertyTest, NullsAmongTheKeysAreAsIfAbsentHoweverTheyAreCut) {
  const std::vector<bool> valid = RandomValidity(kNumKeys, this->random_);
  const std::vector<uint8_t> bits = MakeBitmap(valid, 5);
  std::vector<uint32_t> present = this->all_rows_;
  std::erase_if(present, [&](uint32_t row) { return !valid[row]; });
  this->ForEachLayout([&](const Geometry& geometry) {
    const Filter expected = this->MakeOf(geometry, Gather(this->keys_, present));
    const Validity validity{.bits = bits.data(), .offset = 5};
    EXPECT_EQ(BytesOf(this->MakeOf(geometry, this->keys_, validity)), BytesOf(expected));
    Filter in_batches = MakeFilter(geometry);
    this->Cut(this->keys_, this->all_rows_, [&](const auto& batch, size_t begin) {
      in_batches.Insert(TypeParam::Column(batch), {.bits = bits.data(), .offset = 5 + begin});
    });
    EXPECT_EQ(BytesOf(in_batches), BytesOf(expected));
  });
}

TYPED_TEST(KeyPropertyTest, AnswersDependNeitherOnTheBatchNorOnNullsAround) {
  const std::vector<bool> valid = RandomValidity(kNumKeys, this->random_);
  const std::vector<uint8_t> bits = MakeBitmap(valid, 5);
  this->ForEachLayout([&](const Geometry& geometry) {
    const Filter filter = this->MakeOf(geometry, this->keys_);
    const Answers at_once = Ask(filter, TypeParam::Column(this->others_));
    ExpectOneAnswer(at_once, kNumKeys);
    EXPECT_GT(at_once.count, 0u) << "the test needs a false positive";
    this->Cut(this->others_, this->all_rows_, [&](const auto& batch, size_t begin) {
      const Validity validity{.bits = bits.data(), .offset = 5 + begin};
      const Answers all = Ask(filter, TypeParam::Column(batch));
      const Answers some = Ask(filter, TypeParam::Column(batch), validity);
      for (size_t i = 0; i < TypeParam::Column(batch).size(); ++i) {
        const bool match = GetBit(at_once.bitmap.data(), begin + i);
        ASSERT_EQ(GetBit(all.bitmap.data(), i), match) << begin + i;
        ASSERT_EQ(GetBit(some.bitmap.data(), i), match && valid[begin + i]) << begin + i;
        ASSERT_TRUE(i >= all.single.size() || all.single[i] == match) << begin + i;
      }
      ExpectOneAnswer(all, TypeParam::Column(batch).size());
      ExpectOneAnswer(some, TypeParam::Column(batch).size());
    });
  });
}

TYPED_TEST(KeyPropertyTest, WhoeverHoldsTheBitsGivesTheSameAnswers) {
  this->ForEachLayout([&](const Geometry& geometry) {
    ExpectThatAllHoldersAgree(this->MakeOf(geometry, this->keys_), [&](const ProbeCalls& filter) {
      return Ask(filter, TypeParam::Column(this->others_));
    });
  });
}

}  // namespace
}  // namespace tepal::testing
