// Filter as an engine uses it: keys of every type, nulls, selections, empty columns, moves,
// threads.
#include "tepal/filter.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/column_kinds.h"
#include "tests/guarded_memory.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kSeed = 31;
constexpr size_t kNumKeys = 2500;  // more than two chunks, and not a multiple of anything

// A seed and a hash that are not the defaults.
Geometry TestGeometry(Layout layout = Layout::kSplit256) {
  Geometry geometry = Geometry::For(layout, kNumKeys, 12);
  geometry.hash = HashKind::kXxh64;
  geometry.seed = 1234567;
  return geometry;
}

std::vector<uint32_t> AllRows(size_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

// Which rows are in `bits`.
std::vector<uint32_t> RowsOf(const std::vector<bool>& bits) {
  std::vector<uint32_t> rows = AllRows(bits.size());
  std::erase_if(rows, [&](uint32_t row) { return !bits[row]; });
  return rows;
}

// Calls with keys differ by the kind of column; what comes after the hashes, by the layout.
template <class Kind, Layout kTheLayout>
struct KindAndLayout : Kind {
  static constexpr Layout kLayout = kTheLayout;
};

template <class Kind>
class FilterKeysTest : public ::testing::Test {
 protected:
  using Keys = typename Kind::Keys;
  auto Column(const Keys& keys) { return Kind::Column(keys); }

  ::testing::ScopedTrace seed_trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
  Geometry geometry_ = TestGeometry(Kind::kLayout);
  Filter filter_ = MakeFilter(geometry_);
  Keys keys_ = Kind::Make(kSeed, kNumKeys);
  Keys others_ = Kind::Make(kSeed + 1, kNumKeys);
};

using KeyKinds = ::testing::Types<
    KindAndLayout<EightByteKeys, Layout::kSplit256>, KindAndLayout<FourByteKeys, Layout::kSplit256>,
    KindAndLayout<StringKeys, Layout::kSplit256>,
    KindAndLayout<LongOffsetStringKeys, Layout::kSplit256>,
    KindAndLayout<EightByteKeys, Layout::kVariable>, KindAndLayout<FourByteKeys, Layout::kRegister>,
    KindAndLayout<StringKeys, Layout::kRational>>;
TYPED_TEST_SUITE(FilterKeysTest, KeyKinds);

TYPED_TEST(FilterKeysTest, InsertIsInsertHashesOfTheHashes) {
  this->filter_.Insert(this->Column(this->keys_));
  Filter by_hash = MakeFilter(this->geometry_);
  by_hash.InsertHashes(HashesOf(this->geometry_, this->Column(this->keys_)));
  EXPECT_EQ(BytesOf(this->filter_), BytesOf(by_hash));
}

TYPED_TEST(FilterKeysTest, InsertedKeysMatchAndMostOthersDoNot) {
  this->filter_.Insert(this->Column(this->keys_));
  EXPECT_EQ(this->filter_.Count(this->Column(this->keys_)), kNumKeys);
  EXPECT_LT(this->filter_.Count(this->Column(this->others_)), kNumKeys / 10);
}

TYPED_TEST(FilterKeysTest, ProbeSelectAndCountAgreeWithTheirHashesCalls) {
  this->filter_.Insert(this->Column(this->keys_));
  const auto column = this->Column(this->others_);
  const std::vector<uint64_t> hashes = HashesOf(this->geometry_, column);
  std::vector<uint8_t> bitmap((kNumKeys + 7) / 8);
  std::vector<uint8_t> hash_bitmap = bitmap;
  std::vector<uint32_t> rows(kNumKeys);
  const size_t count = this->filter_.CountHashes(hashes);
  EXPECT_GT(count, 0u) << "the test needs a false positive";
  EXPECT_EQ(this->filter_.Count(column), count);
  EXPECT_EQ(this->filter_.Probe(column, bitmap.data()), count);
  EXPECT_EQ(this->filter_.ProbeHashes(hashes, hash_bitmap.data()), count);
  EXPECT_EQ(bitmap, hash_bitmap);
  EXPECT_EQ(this->filter_.Select(column, rows.data()), count);
  rows.resize(count);
  EXPECT_EQ(rows, RowsOf(BitsOf(bitmap.data(), kNumKeys)));
}

TYPED_TEST(FilterKeysTest, NullsAreNotInsertedAndDoNotMatch) {
  const std::vector<uint8_t> random = RandomValues<uint8_t>(kSeed, kNumKeys);
  std::vector<bool> valid(kNumKeys);
  for (size_t i = 0; i < kNumKeys; ++i) valid[i] = random[i] % 2 == 0;
  const std::vector<uint32_t> valid_rows = RowsOf(valid);
  const std::vector<uint8_t> bits = MakeBitmap(valid, 3);
  const Validity validity{.bits = bits.data(), .offset = 3};
  const auto column = this->Column(this->keys_);

  this->filter_.Insert(column, validity);
  Filter expected = MakeFilter(this->geometry_);
  const std::vector<uint64_t> hashes = HashesOf(this->geometry_, column);
  for (const uint32_t row : valid_rows) expected.InsertHashes({&hashes[row], 1});
  EXPECT_EQ(BytesOf(this->filter_), BytesOf(expected));

  this->filter_.Insert(column);  // now every key is in, so only validity can stop a row
  std::vector<uint8_t> bitmap((kNumKeys + 7) / 8);
  std::vector<uint32_t> rows(kNumKeys);
  EXPECT_EQ(this->filter_.Probe(column, bitmap.data(), validity), valid_rows.size());
  EXPECT_EQ(BitsOf(bitmap.data(), kNumKeys), valid);
  EXPECT_EQ(this->filter_.Count(column, validity), valid_rows.size());
  EXPECT_EQ(this->filter_.Select(column, rows.data(), validity), valid_rows.size());
  rows.resize(valid_rows.size());
  EXPECT_EQ(rows, valid_rows);
}

TYPED_TEST(FilterKeysTest, SelectionsKeepTheirOrderAndTheirDuplicates) {
  const auto column = this->Column(this->keys_);
  const std::vector<uint64_t> hashes = HashesOf(this->geometry_, column);
  this->filter_.InsertHashes(std::span(hashes).first(kNumKeys / 2));
  std::vector<uint32_t> selection = RandomValues<uint32_t>(kSeed + 2, 2 * kNumKeys);
  for (uint32_t& row : selection)
    row = static_cast<uint32_t>(row % kNumKeys);  // any order, with duplicates

  std::vector<uint32_t> expected = selection;
  std::erase_if(expected, [&](uint32_t row) { return !this->filter_.MayContainHash(hashes[row]); });
  std::vector<uint32_t> rows(selection.size());
  EXPECT_EQ(this->filter_.Select(column, selection, rows.data()), expected.size());
  rows.resize(expected.size());
  EXPECT_EQ(rows, expected);

  // In place.
  const size_t count = this->filter_.Select(column, selection, selection.data());
  selection.resize(count);
  EXPECT_EQ(selection, expected);
}

TYPED_TEST(FilterKeysTest, SelectionsObeyValidity) {
  const auto column = this->Column(this->keys_);
  this->filter_.Insert(column);
  const std::vector<uint32_t> random = RandomValues<uint32_t>(kSeed + 3, kNumKeys);
  std::vector<bool> valid(kNumKeys);
  std::vector<uint32_t> selection(kNumKeys);
  for (size_t i = 0; i < kNumKeys; ++i) {
    valid[i] = random[i] % 3 != 0;
    selection[i] = static_cast<uint32_t>(random[i] / 3 % kNumKeys);
  }
  const std::vector<uint8_t> bits = MakeBitmap(valid, 13);
  std::vector<uint32_t> expected = selection;
  std::erase_if(expected, [&](uint32_t row) { return !valid[row]; });
  const size_t count = this->filter_.Select(column, selection, selection.data(),
                                            {.bits = bits.data(), .offset = 13});
  selection.resize(count);
  EXPECT_EQ(selection, expected);
}

TYPED_TEST(FilterKeysTest, EmptySelectionsSelectNothing) {
  this->filter_.Insert(this->Column(this->keys_));
  EXPECT_EQ(this->filter_.Select(this->Column(this->keys_), std::span<const uint32_t>(), nullptr),
            0u);
}

// ---- Nulls at every offset

// All rows are in the filter, so that only validity can stop one.
TEST(FilterValidityTest, EveryOffsetAndLengthOfABitmapIsRead) {
  const std::vector<uint64_t> hashes = RandomValues(kSeed, 200);
  Filter filter = MakeFilter(TestGeometry());
  filter.InsertHashes(hashes);
  for (size_t offset = 0; offset <= 70; ++offset) {
    for (const size_t length : {1u, 7u, 8u, 9u, 63u, 64u, 65u, 130u, 200u}) {
      std::vector<bool> valid(length);
      for (size_t i = 0; i < length; ++i) valid[i] = hashes[i] % 2 == 0;
      const std::vector<uint8_t> bits = MakeBitmap(valid, offset);
      const Validity validity{.bits = bits.data(), .offset = offset};
      const auto column = std::span(hashes).first(length);

      GuardedArray<uint8_t> bitmap((length + 7) / 8, offset % 64);
      std::vector<uint32_t> rows(length);
      const std::vector<uint32_t> expected = RowsOf(valid);
      ASSERT_EQ(filter.ProbeHashes(column, bitmap.data(), validity), expected.size());
      ASSERT_EQ(BitsOf(bitmap.data(), length), valid) << "offset " << offset;
      ASSERT_TRUE(bitmap.OnlyWrote((length + 7) / 8)) << "offset " << offset;
      ASSERT_EQ(filter.CountHashes(column, validity), expected.size());
      ASSERT_EQ(filter.SelectHashes(column, rows.data(), validity), expected.size());
      rows.resize(expected.size());
      ASSERT_EQ(rows, expected) << "offset " << offset;
      rows = AllRows(length);
      ASSERT_EQ(filter.SelectHashes(column, rows, rows.data(), validity), expected.size());
      rows.resize(expected.size());
      ASSERT_EQ(rows, expected) << "offset " << offset;
    }
  }
}

TEST(FilterValidityTest, InsertReadsEveryOffsetOfABitmap) {
  const std::vector<uint64_t> hashes = RandomValues(kSeed, 1100);  // more than a chunk
  std::vector<bool> valid(hashes.size());
  for (size_t i = 0; i < hashes.size(); ++i) valid[i] = hashes[i] % 2 == 0;
  Filter expected = MakeFilter(TestGeometry());
  for (const uint32_t row : RowsOf(valid)) expected.InsertHashes({&hashes[row], 1});
  for (size_t offset = 0; offset <= 70; ++offset) {
    const std::vector<uint8_t> bits = MakeBitmap(valid, offset);
    Filter filter = MakeFilter(TestGeometry());
    filter.InsertHashes(hashes, {.bits = bits.data(), .offset = offset});
    ASSERT_EQ(BytesOf(filter), BytesOf(expected)) << "offset " << offset;
  }
}

TEST(FilterValidityTest, WithoutABitmapTheOffsetIsIgnored) {
  const std::vector<uint64_t> hashes = RandomValues(kSeed, 100);
  Filter filter = MakeFilter(TestGeometry());
  filter.InsertHashes(hashes, {.bits = nullptr, .offset = 12345});
  EXPECT_EQ(filter.CountHashes(hashes, {.bits = nullptr, .offset = 12345}), hashes.size());
}

TEST(FilterValidityTest, ColumnsOfNullsInsertNothing) {
  const std::vector<uint64_t> keys = RandomValues(kSeed, 5000);
  const std::vector<uint8_t> bits(keys.size() / 8);
  Filter filter = MakeFilter(TestGeometry());
  filter.Insert(keys, {.bits = bits.data()});
  EXPECT_EQ(BytesOf(filter), std::vector<uint8_t>(filter.bytes().size()));
  EXPECT_EQ(filter.Count(keys, {.bits = bits.data()}), 0u);
}

// ---- Single keys

TEST(FilterTest, MayContainFindsSingleKeys) {
  Filter filter = MakeFilter(TestGeometry());
  const std::vector<uint64_t> keys = {42};
  const std::vector<uint32_t> short_keys = {4242};
  filter.Insert(keys);
  filter.Insert(short_keys);
  filter.Insert(StringRows({"tepal"}).column32());
  filter.InsertHashes(std::vector<uint64_t>{424242});
  EXPECT_TRUE(filter.MayContain(uint64_t{42}));
  EXPECT_TRUE(filter.MayContain(uint32_t{4242}));
  EXPECT_TRUE(filter.MayContain(std::string_view("tepal")));
  EXPECT_TRUE(filter.MayContain("tepal"));
  EXPECT_TRUE(filter.MayContainHash(424242));
}

TEST(FilterTest, KeysOfDifferentTypesAreDifferentKeys) {
  Filter filter = MakeFilter(TestGeometry());
  filter.Insert(std::vector<uint64_t>{42});
  EXPECT_FALSE(filter.MayContain(uint32_t{42}));
  EXPECT_FALSE(filter.MayContain("42"));
  EXPECT_FALSE(filter.MayContainHash(42));
}

TEST(FilterTest, SeedAndHashChangeTheBytes) {
  Geometry base = TestGeometry();
  Geometry other_seed = base;
  other_seed.seed = 1;
  Geometry other_hash = base;
  other_hash.hash = HashKind::kXxh3;
  std::vector<std::vector<uint8_t>> bytes;
  for (const Geometry& geometry : {base, other_seed, other_hash}) {
    Filter filter = MakeFilter(geometry);
    filter.Insert(RandomValues(kSeed, 100));
    bytes.push_back(BytesOf(filter));
  }
  EXPECT_NE(bytes[0], bytes[1]);
  EXPECT_NE(bytes[0], bytes[2]);
}

// ---- Nothing

TEST(FilterTest, IsEmptyWhenCreated) {
  const Filter filter = MakeFilter(TestGeometry());
  EXPECT_EQ(filter.geometry(), TestGeometry());
  EXPECT_EQ(BytesOf(filter), std::vector<uint8_t>(TestGeometry().num_bits / 8));
  EXPECT_EQ(filter.CountHashes(RandomValues(kSeed, 1000)), 0u);
}

template <class Column>
void ExpectNothingHappens(Filter& filter, const Column& empty) {
  const std::vector<uint8_t> before = BytesOf(filter);
  filter.Insert(empty);
  EXPECT_EQ(BytesOf(filter), before);
  EXPECT_EQ(filter.Probe(empty, nullptr), 0u);
  EXPECT_EQ(filter.Select(empty, nullptr), 0u);
  EXPECT_EQ(filter.Select(empty, std::span<const uint32_t>(), nullptr), 0u);
  EXPECT_EQ(filter.Count(empty), 0u);
}

TEST(FilterTest, EmptyColumnsWithNullPointersDoNothing) {
  Filter filter = MakeFilter(TestGeometry());
  filter.InsertHashes(RandomValues(kSeed, 100));
  ExpectNothingHappens(filter, std::span<const uint64_t>());
  ExpectNothingHappens(filter, std::span<const uint32_t>());
  ExpectNothingHappens(filter, StringColumn());
  const int32_t no_rows = 0;
  ExpectNothingHappens(filter, StringColumn(nullptr, &no_rows, 0));
  filter.InsertHashes({});
  EXPECT_EQ(filter.ProbeHashes({}, nullptr), 0u);
  EXPECT_EQ(filter.SelectHashes({}, nullptr), 0u);
  EXPECT_EQ(filter.SelectHashes({}, std::span<const uint32_t>(), nullptr), 0u);
  EXPECT_EQ(filter.CountHashes({}), 0u);
}

TEST(FilterTest, EmptyColumnsReadNoValidity) {
  Filter filter = MakeFilter(TestGeometry());
  const auto* unreadable = reinterpret_cast<const uint8_t*>(uintptr_t{1});
  const Validity validity{.bits = unreadable, .offset = 7};
  filter.InsertHashes({}, validity);
  EXPECT_EQ(filter.ProbeHashes({}, nullptr, validity), 0u);
  EXPECT_EQ(filter.SelectHashes({}, nullptr, validity), 0u);
  EXPECT_EQ(filter.CountHashes({}, validity), 0u);
}

// ---- Moves

TEST(FilterTest, MovesTakeTheBitsAlong) {
  const std::vector<uint64_t> keys = RandomValues(kSeed, kNumKeys);
  Filter filter = MakeFilter(TestGeometry());
  filter.Insert(keys);
  const std::vector<uint8_t> bytes = BytesOf(filter);
  const uint8_t* address = filter.bytes().data();

  Filter constructed = std::move(filter);
  EXPECT_EQ(BytesOf(constructed), bytes);
  EXPECT_EQ(constructed.bytes().data(), address) << "a move should not copy";

  Filter assigned = MakeFilter(Geometry::For(Layout::kSplit256, 1, 256));
  assigned = std::move(constructed);
  EXPECT_EQ(BytesOf(assigned), bytes);
  EXPECT_EQ(assigned.geometry(), TestGeometry());
  EXPECT_EQ(assigned.Count(keys), kNumKeys);
}

TEST(FilterTest, AMovedFromFilterCanBeAssignedTo) {
  Filter filter = MakeFilter(TestGeometry());
  const Filter other = std::move(filter);
  filter = MakeFilter(TestGeometry());
  filter.InsertHashes(RandomValues(kSeed, 10));
  EXPECT_EQ(filter.CountHashes(RandomValues(kSeed, 10)), 10u);
  EXPECT_EQ(other.CountHashes(RandomValues(kSeed, 10)), 0u);
}

// ---- Batches

// Large batches are cut into chunks of 1024 or 65536 rows.
TEST(FilterTest, LengthsAroundTheCutsOfLargeBatchesDoNotMatter) {
  Filter filter = MakeFilter(TestGeometry());
  filter.InsertHashes(RandomValues(kSeed, kNumKeys));
  const std::vector<uint64_t> probes = RandomValues(kSeed + 1, 140'000);
  std::vector<bool> one_by_one;
  for (const uint64_t probe : probes) one_by_one.push_back(filter.MayContainHash(probe));
  for (const size_t length : {1023u, 1024u, 1025u, 2047u, 2048u, 2049u, 65535u, 65536u, 65537u,
                              131071u, 131072u, 131073u}) {
    const std::vector<bool> expected(one_by_one.begin(),
                                     one_by_one.begin() + static_cast<std::ptrdiff_t>(length));
    const std::vector<uint32_t> expected_rows = RowsOf(expected);
    const auto column = std::span(probes).first(length);
    std::vector<uint8_t> bitmap((length + 7) / 8);
    std::vector<uint32_t> rows(length);
    EXPECT_EQ(filter.ProbeHashes(column, bitmap.data()), expected_rows.size()) << length;
    EXPECT_EQ(BitsOf(bitmap.data(), length), expected) << length;
    EXPECT_EQ(filter.CountHashes(column), expected_rows.size()) << length;
    rows.resize(filter.SelectHashes(column, rows.data()));
    EXPECT_EQ(rows, expected_rows) << length;
    rows = AllRows(length);
    rows.resize(filter.SelectHashes(column, rows, rows.data()));
    EXPECT_EQ(rows, expected_rows) << length;
  }
}

TEST(FilterTest, LengthsAroundTheCutsOfLargeInsertsDoNotMatter) {
  const std::vector<uint64_t> hashes = RandomValues(kSeed, 131'073);
  for (const size_t length : {1023u, 1024u, 1025u, 65535u, 65536u, 65537u, 131073u}) {
    const auto column = std::span(hashes).first(length);
    const Geometry geometry = Geometry::For(Layout::kSplit256, length, 16);
    Filter at_once = MakeFilter(geometry);
    at_once.InsertHashes(column);
    Filter one_by_one = MakeFilter(geometry);
    for (const uint64_t& hash : column) one_by_one.InsertHashes({&hash, 1});
    EXPECT_EQ(BytesOf(at_once), BytesOf(one_by_one)) << length;
  }
}

}  // namespace
}  // namespace tepal::testing
