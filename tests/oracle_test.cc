// Every target, on every geometry, against the scalar reference: the same bytes after inserts and
// the same answers to probes, at every length of a batch, and not a byte more read or written.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference.h"
#include "tests/geometries.h"
#include "tests/guarded_memory.h"
#include "tests/oracle.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr size_t kMaxTail = 130;
constexpr uint64_t kSeed = kOracleSeed + 1000;  // for what is not in the Oracle

using OracleParam = std::tuple<std::string, GeometryCase>;

class OracleTest : public ::testing::TestWithParam<OracleParam> {
 protected:
  void SetUp() override {
    target_.emplace(std::get<0>(GetParam()));
    Result<Filter> filter = Filter::Create(geometry(), geometry_case().memory());
    // Only possible where address space is limited, and never for a filter of an ordinary size.
    if (!filter.ok() && geometry_case().sparse) GTEST_SKIP() << filter.status().message();
    filter_.emplace(std::move(filter).value());
    oracle_ = &Oracle::For(geometry_case());
  }

  const GeometryCase& geometry_case() const { return std::get<1>(GetParam()); }
  const Geometry& geometry() const { return geometry_case().geometry; }
  Filter EmptyFilter() const { return MakeFilter(geometry(), geometry_case().memory()); }
  const Oracle& oracle() const { return *oracle_; }

  // The filter with all keys of the oracle.
  Filter& filled() {
    if (!is_filled_) filter_->InsertHashes(oracle().keys());
    is_filled_ = true;
    return *filter_;
  }

  // Every length. In filters that are mostly pages never touched, where every access costs a page
  // fault, a selection with every tail.
  std::vector<size_t> Lengths() const {
    const bool few = geometry_case().sparse || kQuickTests;
    std::vector<size_t> lengths;
    for (size_t length = 0; length <= kMaxTail; ++length) {
      if (!few || length < 18 || length % 32 < 2) lengths.push_back(length);
    }
    return lengths;
  }

  // For tests that make a filter for each of many values. An emulator takes 0.1 s to map 1 GiB.
  template <typename T>
  std::vector<T> FewIfMappingIsSlow(std::vector<T> values) const {
    if (!kQuickTests || !geometry_case().sparse) return values;
    return {values.front(), values[1], values.back()};
  }

  // Calls check(probes, misalignment) for every length, with misses, hits and both. With both, a
  // quarter of all misalignments below `alignment` meets a length, and all of them meet every tail;
  // with the others, one of them.
  template <class Check>
  void ForEveryLength(size_t alignment, const Check& check) {
    for (const unsigned hit_percent : {0u, 50u, 100u}) {
      SCOPED_TRACE("hit rate " + std::to_string(hit_percent) + " %");
      for (const size_t length : Lengths()) {
        SCOPED_TRACE("length " + std::to_string(length));
        const Probes probes = oracle().probes(hit_percent).Slice(length * 7 % 800, length);
        for (size_t misalignment = 0; misalignment < alignment; ++misalignment) {
          const bool meets = hit_percent == 50 && !kQuickTests
                                 ? (misalignment + length / 8) % 4 == 0
                                 : misalignment == length % alignment;
          if (!meets && alignment > 1) continue;
          check(probes, misalignment);
          if (HasFailure()) return;
        }
      }
    }
  }

 private:
  ::testing::ScopedTrace seed_trace_{__FILE__, __LINE__, "seed " + std::to_string(kOracleSeed)};
  std::optional<ScopedTarget> target_;
  std::optional<Filter> filter_;
  const Oracle* oracle_ = nullptr;
  bool is_filled_ = false;
};

std::vector<uint32_t> RowsOf(const std::vector<bool>& expected) {
  std::vector<uint32_t> rows;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i]) rows.push_back(static_cast<uint32_t>(i));
  }
  return rows;
}

size_t CountOf(const std::vector<bool>& expected) {
  return static_cast<size_t>(std::count(expected.begin(), expected.end(), true));
}

// 0, all ones, and single bits: the first and the last block, the first and the last bit of a word.
std::vector<uint64_t> EdgeHashes() {
  std::vector<uint64_t> hashes = {0, ~uint64_t{0}, 0xFFFFFFFFu, 0xFFFFFFFF00000000u};
  for (int bit = 0; bit < 64; ++bit) {
    hashes.push_back(uint64_t{1} << bit);
    hashes.push_back(~(uint64_t{1} << bit));
  }
  return hashes;
}

// ---- Insert

TEST_P(OracleTest, InsertSetsTheBitsOfTheReference) {
  EXPECT_TRUE(oracle().filter().HasBytes(filled().bytes()));
}

TEST_P(OracleTest, InsertOfEveryLengthSetsTheBitsOfTheReference) {
  const std::vector<uint64_t> hashes = RandomValues(kSeed, 2 * kMaxTail);
  std::vector<std::vector<uint64_t>> positions;
  for (const uint64_t hash : hashes) positions.push_back(reference::Positions(geometry(), hash));
  for (const size_t length : FewIfMappingIsSlow(Lengths())) {
    const size_t begin = length * 7 % kMaxTail;  // every start modulo a cache line
    Filter filter = EmptyFilter();
    filter.InsertHashes(std::span(hashes).subspan(begin, length));
    ReferenceFilter expected(geometry_case());
    for (size_t i = 0; i < length; ++i) expected.SetBits(positions[begin + i]);
    ASSERT_TRUE(expected.HasBytes(filter.bytes())) << "length " << length;
  }
}

TEST_P(OracleTest, InsertOfEdgeHashesSetsTheBitsOfTheReference) {
  for (const uint64_t hash : FewIfMappingIsSlow(EdgeHashes())) {
    Filter filter = EmptyFilter();
    filter.InsertHashes({&hash, 1});
    ReferenceFilter expected(geometry_case());
    expected.Insert({&hash, 1});
    ASSERT_TRUE(expected.HasBytes(filter.bytes())) << "hash " << hash;
  }
}

// ---- Probe

TEST_P(OracleTest, InsertedHashesAlwaysMatch) {
  EXPECT_EQ(filled().CountHashes(oracle().keys()), oracle().keys().size());
}

TEST_P(OracleTest, BitmapsOfEveryLengthEqualTheReferenceAndNothingElseIsWritten) {
  ForEveryLength(64, [&](const Probes& probes, size_t misalignment) {
    const size_t num_bytes = (probes.hashes.size() + 7) / 8;
    std::vector<uint8_t> expected(num_bytes);  // unused bits are zero
    for (const uint32_t row : RowsOf(probes.expected)) expected[row / 8] |= uint8_t(1u << row % 8);
    GuardedArray<uint8_t> bitmap(num_bytes, misalignment);
    ASSERT_EQ(filled().ProbeHashes(probes.hashes, bitmap.data()), CountOf(probes.expected));
    ASSERT_TRUE(bitmap.StartsWith(expected)) << misalignment;
    ASSERT_TRUE(bitmap.OnlyWrote(num_bytes)) << misalignment;
  });
}

TEST_P(OracleTest, SelectionsOfEveryLengthEqualTheReferenceAndNothingElseIsWritten) {
  ForEveryLength(16, [&](const Probes& probes, size_t misalignment) {
    const std::vector<uint32_t> expected = RowsOf(probes.expected);
    GuardedArray<uint32_t> rows(probes.hashes.size(), misalignment);
    ASSERT_EQ(filled().SelectHashes(probes.hashes, rows.data()), expected.size());
    ASSERT_TRUE(rows.StartsWith(expected)) << misalignment;
    ASSERT_TRUE(rows.OnlyWrote(probes.hashes.size())) << misalignment;
  });
}

// Every second row goes in, last row first.
TEST_P(OracleTest, SelectionsFromSelectionsEqualTheReferenceAndNothingElseIsWritten) {
  ForEveryLength(16, [&](const Probes& probes, size_t misalignment) {
    std::vector<uint32_t> selection;
    for (size_t row = probes.hashes.size(); row-- > 0;) {
      if (row % 2 == 0) selection.push_back(static_cast<uint32_t>(row));
    }
    std::vector<uint32_t> expected = selection;
    std::erase_if(expected, [&](uint32_t row) { return !probes.expected[row]; });
    GuardedArray<uint32_t> rows(selection.size(), misalignment);
    ASSERT_EQ(filled().SelectHashes(probes.hashes, selection, rows.data()), expected.size());
    ASSERT_TRUE(rows.StartsWith(expected)) << misalignment;
    ASSERT_TRUE(rows.OnlyWrote(selection.size())) << misalignment;
  });
}

TEST_P(OracleTest, CountsOfEveryLengthEqualTheReference) {
  ForEveryLength(1, [&](const Probes& probes, size_t /*misalignment*/) {
    ASSERT_EQ(filled().CountHashes(probes.hashes), CountOf(probes.expected));
  });
}

TEST_P(OracleTest, SingleProbesEqualTheReference) {
  const Probes& probes = oracle().probes(50);
  for (size_t i = 0; i < probes.hashes.size(); ++i) {
    ASSERT_EQ(filled().MayContainHash(probes.hashes[i]), probes.expected[i]) << probes.hashes[i];
  }
}

TEST_P(OracleTest, ProbesOfEdgeHashesEqualTheReference) {
  const std::vector<uint64_t> hashes = EdgeHashes();
  std::vector<uint8_t> bitmap((hashes.size() + 7) / 8);
  filled().ProbeHashes(hashes, bitmap.data());
  EXPECT_EQ(BitsOf(bitmap.data(), hashes.size()), oracle().filter().MayContain(hashes));
}

// Large batches are cut into chunks of 1024 or 65536. filter_test has the lengths around the cuts.
TEST_P(OracleTest, LongBatchesEqualTheReference) {
  const Probes& pool = oracle().probes(50);
  for (const size_t length : {2053u, kQuickTests ? 4099u : 66571u}) {
    Probes probes;
    for (size_t i = 0; i < length; ++i) {
      probes.hashes.push_back(pool.hashes[i % Oracle::kNumProbes]);
      probes.expected.push_back(pool.expected[i % Oracle::kNumProbes]);
    }
    const std::vector<uint32_t> expected = RowsOf(probes.expected);
    std::vector<uint8_t> bitmap((length + 7) / 8);
    std::vector<uint32_t> rows(length);
    ASSERT_EQ(filled().ProbeHashes(probes.hashes, bitmap.data()), expected.size()) << length;
    ASSERT_EQ(BitsOf(bitmap.data(), length), probes.expected) << length;
    ASSERT_EQ(filled().SelectHashes(probes.hashes, rows.data()), expected.size()) << length;
    rows.resize(expected.size());
    ASSERT_EQ(rows, expected) << length;
    ASSERT_EQ(filled().CountHashes(probes.hashes), expected.size()) << length;
  }
}

// Filters that can be filled.
class DenseOracleTest : public OracleTest {};

// A kernel that ignores one of a key's bits passes nearly every other test. A hash most often lacks
// exactly one of k bits if a share of 1/k of all bits is not set.
TEST_P(DenseOracleTest, AHashThatLacksAnyOneBitDoesNotMatch) {
  const size_t num_probes = reference::Positions(geometry(), kSeed).size();
  const double k = static_cast<double>(std::max<size_t>(num_probes, 2));
  Filter filter = EmptyFilter();
  const double num_keys = static_cast<double>(geometry().num_bits) * std::log(k) / k;
  filter.InsertHashes(RandomValues(kSeed, static_cast<size_t>(num_keys)));

  std::set<size_t> lacking;  // which of the bits was the missing one
  for (const uint64_t hash : RandomValues(kSeed + 1, 10'000)) {
    if (lacking.size() >= num_probes) return;
    const std::vector<uint64_t> positions = reference::Positions(geometry(), hash);
    std::vector<size_t> missing;
    for (size_t t = 0; t < positions.size(); ++t) {
      if (!GetBit(filter.bytes().data(), positions[t])) missing.push_back(t);
    }
    if (missing.size() != 1) continue;
    lacking.insert(missing.front());
    ASSERT_FALSE(filter.MayContainHash(hash)) << "lacks its bit " << missing.front();
  }
  FAIL() << "only " << lacking.size() << " of " << num_probes << " bits were ever the missing one";
}

TEST_P(OracleTest, NothingPastTheEndOfAColumnIsReadOrWritten) {
  const Probes& probes = oracle().probes(50);
  ArrayBeforeHole<uint64_t> hashes(kMaxTail);
  ArrayBeforeHole<uint32_t> rows(kMaxTail);
  ArrayBeforeHole<uint8_t> bitmap(kMaxTail);
  hashes.Fill(std::span(probes.hashes).first(kMaxTail));
  for (const size_t length : Lengths()) {
    const std::span<const uint64_t> column(hashes.Last(length), length);
    filled().PrefetchHashes(column);
    filled().InsertHashes(column);
    EXPECT_EQ(filled().ProbeHashes(column, bitmap.Last((length + 7) / 8)), length);
    EXPECT_EQ(filled().SelectHashes(column, rows.Last(length)), length);
    const std::span<const uint32_t> selection(rows.Last(length), length);
    EXPECT_EQ(filled().SelectHashes(column, selection, rows.Last(length)), length);
    EXPECT_EQ(filled().CountHashes(column), length);
  }
}

std::string OracleTestName(const ::testing::TestParamInfo<OracleParam>& info) {
  return TestName(std::get<0>(info.param) + "_" + std::get<1>(info.param).name);
}

INSTANTIATE_TEST_SUITE_P(Targets, OracleTest,
                         ::testing::Combine(::testing::ValuesIn(AvailableTargets()),
                                            ::testing::ValuesIn(OracleGeometries())),
                         OracleTestName);
INSTANTIATE_TEST_SUITE_P(Targets, DenseOracleTest,
                         ::testing::Combine(::testing::ValuesIn(AvailableTargets()),
                                            ::testing::ValuesIn(DenseGeometries())),
                         OracleTestName);

}  // namespace
}  // namespace tepal::testing
