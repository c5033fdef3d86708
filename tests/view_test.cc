// FilterView and Filter::FromBytes: borrowed and copied bits answer as the owner's do.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dispatch/filter_access.h"
#include "tepal/filter.h"
#include "tests/column_kinds.h"
#include "tests/geometries.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 71;
constexpr size_t kNumKeys = 1500;  // more than a chunk

// ---- Agreement, on every geometry

class ViewTest : public ::testing::TestWithParam<GeometryCase> {
 protected:
  void SetUp() override {
    Geometry geometry = GetParam().geometry;
    geometry.seed = 99;
    Result<Filter> filter = Filter::Create(geometry, GetParam().memory());
    if (!filter.ok() && GetParam().sparse) GTEST_SKIP() << filter.status().message();
    filter_.emplace(std::move(filter).value());
  }

  // Half of the column is in the filter, and every seventh row is null.
  template <class Kind>
  void ExpectAgreement(const ProbeCalls& other) {
    const typename Kind::Keys keys = Kind::Make(kSeed, kNumKeys);
    const auto column = Kind::Column(keys);
    const std::vector<uint64_t> hashes = HashesOf(filter_->geometry(), column);
    filter_->InsertHashes(std::span(hashes).first(kNumKeys / 2));
    std::vector<bool> valid(kNumKeys);
    for (size_t i = 0; i < kNumKeys; ++i) valid[i] = i % 7 != 0;
    const std::vector<uint8_t> bits = MakeBitmap(valid, 3);
    for (const Validity validity : {Validity{}, Validity{.bits = bits.data(), .offset = 3}}) {
      const Answers answers = Ask(*filter_, column, validity);
      EXPECT_GE(answers.count, kNumKeys / 2 - kNumKeys / 14 - 1);
      EXPECT_EQ(Ask(other, column, validity), answers);
      EXPECT_EQ(AskHashes(other, hashes, validity), answers);
    }
  }

  void ExpectAgreementOfAllKinds(const ProbeCalls& other) {
    EXPECT_EQ(other.geometry(), filter_->geometry());
    ExpectAgreement<EightByteKeys>(other);
    ExpectAgreement<FourByteKeys>(other);
    ExpectAgreement<StringKeys>(other);
    ExpectAgreement<LongOffsetStringKeys>(other);
  }

  std::optional<Filter> filter_;
};

TEST_P(ViewTest, TheViewOfAFilterSeesItsInsertsAndAgrees) {
  const FilterView view = filter_->View();
  EXPECT_EQ(view.bytes().data(), filter_->bytes().data());
  EXPECT_EQ(view.bytes().size(), filter_->bytes().size());
  ExpectAgreementOfAllKinds(view);
}

TEST_P(ViewTest, AViewOverTheBytesAgrees) {
  const FilterView view = FilterView::Over(filter_->geometry(), filter_->bytes()).value();
  EXPECT_EQ(view.bytes().data(), filter_->bytes().data());
  ExpectAgreementOfAllKinds(view);
}

class CopyTest : public ViewTest {};

TEST_P(CopyTest, ACopyFromBytesIsIndependentAndAgrees) {
  const std::vector<uint64_t> hashes = RandomValues(kSeed, kNumKeys);
  filter_->InsertHashes(hashes);
  std::vector<uint8_t> shifted(filter_->bytes().size() + 1);  // most likely not aligned
  std::copy(filter_->bytes().begin(), filter_->bytes().end(), shifted.begin() + 1);
  const Filter copy = Filter::FromBytes(filter_->geometry(), std::span(shifted).subspan(1)).value();
  std::fill(shifted.begin(), shifted.end(), uint8_t{0});
  EXPECT_EQ(BytesOf(copy), BytesOf(*filter_));
  EXPECT_EQ(AskHashes(copy, hashes), AskHashes(*filter_, hashes));
}

INSTANTIATE_TEST_SUITE_P(Geometries, ViewTest, ::testing::ValuesIn(OracleGeometries()),
                         [](const auto& test) { return test.param.name; });

// A copy would touch every page of a sparse filter.
INSTANTIATE_TEST_SUITE_P(Geometries, CopyTest, ::testing::ValuesIn(DenseGeometries()),
                         [](const auto& test) { return test.param.name; });

// ---- Lifetime

Filter SmallFilter() { return MakeFilter(Geometry::For(Layout::kStandard, kNumKeys, 10)); }

TEST(ViewLifetimeTest, ViewsSurviveMovesOfTheirFilter) {
  Filter filter = SmallFilter();
  const FilterView view = filter.View();
  Filter moved = std::move(filter);
  moved.InsertHashes(RandomValues(kSeed, 100));
  EXPECT_EQ(view.CountHashes(RandomValues(kSeed, 100)), 100u);
}

TEST(ViewLifetimeTest, CopiesOfViewsOutliveTheViewTheyCameFrom) {
  Filter filter = SmallFilter();
  filter.InsertHashes(RandomValues(kSeed, 100));
  std::optional<FilterView> first = FilterView::Over(filter.geometry(), filter.bytes()).value();
  FilterView second = *first;
  FilterView third = SmallFilter().View();  // dangles until it is assigned
  third = second;
  first.reset();
  EXPECT_EQ(second.CountHashes(RandomValues(kSeed, 100)), 100u);
  EXPECT_EQ(third.CountHashes(RandomValues(kSeed, 100)), 100u);
}

// ---- Refusals

template <class T>
void ExpectInvalid(const Result<T>& result, const std::string& message_part) {
  ASSERT_FALSE(result.ok()) << message_part;
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(result.status().message(), HasSubstr(message_part));
}

TEST(ViewRefusalTest, BytesOfAWrongSizeAreRefused) {
  const Filter filter = SmallFilter();
  const std::vector<uint8_t> longer(filter.bytes().size() + 1);
  for (const std::span<const uint8_t> bytes :
       {filter.bytes().first(0), filter.bytes().first(1),
        filter.bytes().first(filter.bytes().size() - 1), std::span<const uint8_t>(longer),
        std::span<const uint8_t>()}) {
    const std::string message = "there are " + std::to_string(bytes.size()) + " bytes";
    ExpectInvalid(FilterView::Over(filter.geometry(), bytes), message);
    ExpectInvalid(Filter::FromBytes(filter.geometry(), bytes), message);
  }
}

TEST(ViewRefusalTest, MisalignedBytesAreRefused) {
  const Filter filter = SmallFilter();
  Geometry shorter = filter.geometry();
  shorter.num_bits -= 512;
  for (size_t shift = 1; shift < kFilterAlignment; ++shift) {
    const auto bytes = filter.bytes().subspan(shift, shorter.num_bytes());
    ExpectInvalid(FilterView::Over(shorter, bytes), "the bytes start " + std::to_string(shift));
  }
  EXPECT_TRUE(FilterView::Over(shorter, filter.bytes().subspan(64)).ok());
}

TEST(ViewRefusalTest, InvalidGeometriesAreRefused) {
  const Filter filter = SmallFilter();
  Geometry geometry = filter.geometry();
  geometry.num_probes = 0;
  ExpectInvalid(FilterView::Over(geometry, filter.bytes()), "num_probes is 0");
  ExpectInvalid(Filter::FromBytes(geometry, filter.bytes()), "num_probes is 0");
}

// The length is compared before memory is asked for.
TEST(ViewRefusalTest, AHugeGeometryDoesNotAllocateForAFewBytes) {
  size_t allocations = 0;
  const MemoryOptions memory{.allocator = {.allocate = [](size_t, size_t, void* context) -> void* {
                                             ++*static_cast<size_t*>(context);
                                             return nullptr;
                                           },
                                           .deallocate = [](void*, size_t, void*) {},
                                           .context = &allocations}};
  const Geometry geometry{
      .layout = Layout::kSplit512, .num_bits = uint64_t{1} << 40, .num_probes = 8};
  const std::vector<uint8_t> bytes(64);
  ExpectInvalid(Filter::FromBytes(geometry, bytes, memory), "there are 64 bytes");
  EXPECT_EQ(allocations, 0u);
}

// ---- Access for library code

TEST(FilterAccessTest, MutableBytesAreTheBytes) {
  Filter filter = SmallFilter();
  const std::span<uint8_t> bytes = FilterAccess::MutableBytes(filter);
  EXPECT_EQ(bytes.data(), filter.bytes().data());
  EXPECT_EQ(bytes.size(), filter.bytes().size());
  std::fill(bytes.begin(), bytes.end(), uint8_t{0xFF});
  EXPECT_EQ(filter.CountHashes(RandomValues(kSeed, 100)), 100u);
}

TEST(FilterAccessTest, AFilterAndItsViewShareOneShape) {
  const Filter filter = SmallFilter();
  EXPECT_NE(FilterAccess::Shape(filter).table, nullptr);
  EXPECT_EQ(&FilterAccess::Shape(filter), &FilterAccess::Shape(filter.View()));
}

}  // namespace
}  // namespace tepal::testing
