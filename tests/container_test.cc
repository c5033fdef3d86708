// The container format: golden bytes, a reader of its own, round trips, and what damaged, crafted
// or newer containers get: an error, never a crash or a wrong answer.
#include "tepal/container.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/reference.h"
#include "tests/column_kinds.h"
#include "tests/geometries.h"
#include "tests/guarded_memory.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Bytes = std::vector<uint8_t>;
constexpr uint64_t kSeed = 81;

// At a multiple of 64 bytes, or as many bytes behind one as one likes.
class Placed {
 public:
  explicit Placed(const Bytes& bytes, size_t misalignment = 0)
      : array_(bytes.size(), misalignment), size_(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), array_.data());
  }
  std::span<const uint8_t> bytes() { return array_.used(size_); }

 private:
  GuardedArray<uint8_t> array_;
  size_t size_;
};

// ---- Golden bytes

// Five keys in a filter whose fields are all different, and none has its default. Written by a
// program of its own from FORMAT.md.
constexpr std::string_view kVersion1 =
    "89544550414c0d0a010000008000000040000000000000000002000000000000"
    "0000000000000440efcdab896745230105000000000000000300000002010100"
    "0000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000b5575e16f84dc1c7f1f98b59f439123f"
    "0080500400000000000002080000000000020400000000000000000000000000"
    "0000000100000000000000000000000000000002000000000004000000000000";
const Geometry kGoldenGeometry{.layout = Layout::kRational,
                               .num_bits = 512,
                               .num_probes = 3,
                               .rational_k = 2.5,
                               .hash = HashKind::kXxh64,
                               .seed = 0x0123456789ABCDEF};
const std::vector<uint64_t> kGoldenKeys = {1, 2, 3, 4, 5};

Bytes FromHex(std::string_view hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(ContainerGoldenTest, Version1IsWrittenByteForByte) {
  Filter filter = MakeFilter(kGoldenGeometry);
  filter.Insert(kGoldenKeys);
  EXPECT_EQ(Serialize(filter.View(), 5, KeyKind::kUint64).value(), FromHex(kVersion1));
}

// Holds for as long as there are versions.
TEST(ContainerGoldenTest, Version1Opens) {
  Placed golden(FromHex(kVersion1));
  const ContainerInfo info{
      .version = 1, .geometry = kGoldenGeometry, .num_keys = 5, .key_kind = KeyKind::kUint64};
  EXPECT_EQ(Inspect(golden.bytes()).value(), info);
  EXPECT_EQ(FilterView::Open(golden.bytes()).value().Count(kGoldenKeys), kGoldenKeys.size());
  EXPECT_EQ(Deserialize(golden.bytes()).value().Count(kGoldenKeys), kGoldenKeys.size());
}

// Reads by the offsets in FORMAT.md, and by nothing else of the library than its reference.
TEST(ContainerGoldenTest, AReaderWrittenFromTheFormatTableFindsTheKeys) {
  const Bytes golden = FromHex(kVersion1);
  const auto number = [&](size_t offset, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value * 256 + golden[offset + i];
    return value;
  };
  EXPECT_EQ(std::memcmp(golden.data(), "\x89TEPAL\r\n", 8), 0);
  EXPECT_EQ(number(8, 4), 1u);
  EXPECT_EQ(number(12, 4), 128u);
  EXPECT_EQ(number(16, 8) + 128, golden.size());
  EXPECT_EQ(number(48, 8), kGoldenKeys.size());
  EXPECT_EQ(number(62, 1), 1u) << "keys of 8 bytes";
  EXPECT_EQ(number(112, 8), XXH3_64bits(golden.data() + 128, number(16, 8)));
  EXPECT_EQ(number(120, 8), XXH3_64bits(golden.data(), 120));
  Geometry geometry{.layout = static_cast<Layout>(number(60, 1)),
                    .num_bits = number(24, 8),
                    .num_probes = static_cast<uint32_t>(number(56, 4)),
                    .hash = static_cast<HashKind>(number(61, 1)),
                    .seed = number(40, 8)};
  const uint64_t rational_k_bits = number(32, 8);
  std::memcpy(&geometry.rational_k, &rational_k_bits, 8);
  EXPECT_EQ(geometry, kGoldenGeometry);
  for (const uint64_t key : kGoldenKeys) {
    const uint8_t key_bytes[8] = {static_cast<uint8_t>(key)};  // little-endian
    const uint64_t hash = XXH64(key_bytes, 8, geometry.seed);
    EXPECT_TRUE(reference::MayContain(geometry, hash, golden.data() + 128)) << key;
  }
}

// ---- Round trips

class RoundTripTest : public ::testing::TestWithParam<GeometryCase> {};

TEST_P(RoundTripTest, BytesInfoAndAnswersComeBack) {
  Geometry geometry = GetParam().geometry;
  geometry.seed = ~uint64_t{0};
  geometry.hash = geometry.num_bits % 3 == 0 ? HashKind::kXxh64 : HashKind::kXxh3;
  Filter filter = MakeFilter(geometry);
  const std::vector<uint64_t> keys = RandomValues(kSeed, 2000);
  const std::span<const uint64_t> column(keys);
  filter.Insert(column.first(1000));

  Placed container(Serialize(filter.View(), 1000, KeyKind::kUint64).value());
  const ContainerInfo info{
      .version = 1, .geometry = geometry, .num_keys = 1000, .key_kind = KeyKind::kUint64};
  EXPECT_EQ(Inspect(container.bytes()).value(), info);
  const FilterView view = FilterView::Open(container.bytes()).value();
  EXPECT_EQ(view.geometry(), geometry);
  EXPECT_EQ(view.bytes().data(), container.bytes().data() + 128) << "borrowed, not copied";
  EXPECT_EQ(Ask(view, column), Ask(filter, column));
  EXPECT_EQ(BytesOf(Deserialize(container.bytes()).value()), BytesOf(filter));
}

INSTANTIATE_TEST_SUITE_P(Geometries, RoundTripTest, ::testing::ValuesIn(DenseGeometries()),
                         [](const auto& test) { return test.param.name; });

TEST(ContainerTest, EveryKeyKindComesBack) {
  const Filter filter = MakeFilter(kGoldenGeometry);
  for (const KeyKind key_kind :
       {KeyKind::kUnknown, KeyKind::kUint64, KeyKind::kUint32, KeyKind::kBytes, KeyKind::kHashes}) {
    EXPECT_FALSE(KeyKindName(key_kind).empty());
    const Bytes container = Serialize(filter.View(), ~uint64_t{0}, key_kind).value();
    EXPECT_EQ(Inspect(container).value().key_kind, key_kind);
    EXPECT_EQ(Inspect(container).value().num_keys, ~uint64_t{0});
  }
}

TEST(ContainerTest, KeyKindsThatDoNotExistAreNotWritten) {
  const Filter filter = MakeFilter(kGoldenGeometry);
  const auto wrong = static_cast<KeyKind>(5);
  EXPECT_EQ(KeyKindName(wrong), "");
  EXPECT_EQ(Serialize(filter.View(), 0, wrong).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteFile("/nowhere/x", filter.View(), 0, wrong).code(), StatusCode::kInvalidArgument);
}

TEST(ContainerTest, MisalignedContainersCanBeCopiedButNotOpened) {
  for (const size_t misalignment : {1u, 8u, 32u, 63u}) {
    Placed container(FromHex(kVersion1), misalignment);
    const Result<FilterView> view = FilterView::Open(container.bytes());
    ASSERT_FALSE(view.ok());
    EXPECT_EQ(view.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(view.status().message(), HasSubstr("Deserialize"));
    EXPECT_EQ(Deserialize(container.bytes()).value().Count(kGoldenKeys), kGoldenKeys.size());
  }
}

// ---- Damage, everywhere in small containers of every layout

void ExpectCorrupt(std::span<const uint8_t> container) {
  const Result<FilterView> view = FilterView::Open(container);
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.status().code(), StatusCode::kCorrupt) << view.status().message();
  EXPECT_FALSE(view.status().message().empty());
  const Result<Filter> filter = Deserialize(container);
  ASSERT_FALSE(filter.ok());
  EXPECT_EQ(filter.status().code(), StatusCode::kCorrupt) << filter.status().message();
}

class DamageTest : public ::testing::TestWithParam<Layout> {
 protected:
  Bytes MakeContainer() {
    Geometry geometry = Geometry::For(GetParam(), 20, 30);
    geometry.seed = kSeed;
    Filter filter = MakeFilter(geometry);
    filter.Insert(RandomValues(kSeed, 20));
    return Serialize(filter.View(), 20, KeyKind::kUint64).value();
  }
};

TEST_P(DamageTest, EveryFlippedBitIsFound) {
  const Bytes container = MakeContainer();
  EXPECT_TRUE(FilterView::Open(Placed(container).bytes()).ok());
  for (size_t bit = 0; bit < container.size() * 8; ++bit) {
    Bytes damaged = container;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ 1u << (bit % 8));
    SCOPED_TRACE("bit " + std::to_string(bit));
    ASSERT_NO_FATAL_FAILURE(ExpectCorrupt(Placed(damaged).bytes()));
    EXPECT_EQ(Inspect(damaged).ok(), bit >= 128 * 8) << "Inspect reads the header only";
  }
}

TEST_P(DamageTest, EveryTruncationIsFoundAndNothingBehindIsRead) {
  const Bytes container = MakeContainer();
  for (size_t size = 0; size < container.size(); ++size) {
    SCOPED_TRACE("size " + std::to_string(size));
    ArrayBeforeHole<uint8_t> truncated(size);
    truncated.Fill(std::span(container).first(size));
    const std::span<const uint8_t> bytes(truncated.Last(size), size);
    ASSERT_NO_FATAL_FAILURE(ExpectCorrupt(bytes));
    EXPECT_EQ(Inspect(bytes).status().code(), StatusCode::kCorrupt);
  }
}

TEST_P(DamageTest, TrailingBytesAreFound) {
  Bytes container = MakeContainer();
  for (size_t extra = 1; extra <= 130; ++extra) {
    container.push_back(0);
    ASSERT_NO_FATAL_FAILURE(ExpectCorrupt(Placed(container).bytes())) << extra;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, DamageTest, ::testing::ValuesIn(kAllLayouts),
                         [](const auto& test) { return TestName(LayoutName(test.param)); });

TEST(ContainerDamageTest, NoBytesAreCorrupt) {
  ExpectCorrupt({});
  EXPECT_EQ(Inspect({}).status().code(), StatusCode::kCorrupt);
}

// ---- Crafted headers, whose checksums are right

void Put(Bytes* container, size_t offset, size_t size, uint64_t value) {
  for (size_t i = 0; i < size; ++i) {
    (*container)[offset + i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

void FixChecksum(Bytes* container, size_t header_bytes = 128) {
  Put(container, header_bytes - 8, 8, XXH3_64bits(container->data(), header_bytes - 8));
}

struct Craft {
  const char* name;
  size_t offset;
  size_t size;
  uint64_t value;
  StatusCode code;
  const char* message_part;
};

void PrintTo(const Craft& craft, std::ostream* out) { *out << craft.name; }

class CraftTest : public ::testing::TestWithParam<Craft> {};

TEST_P(CraftTest, IsRefusedWithAReason) {
  Bytes container = FromHex(kVersion1);
  Put(&container, GetParam().offset, GetParam().size, GetParam().value);
  FixChecksum(&container);
  Placed placed(container);
  for (const Status& status :
       {Inspect(placed.bytes()).status(), FilterView::Open(placed.bytes()).status(),
        Deserialize(placed.bytes()).status()}) {
    EXPECT_EQ(status.code(), GetParam().code);
    EXPECT_THAT(status.message(), HasSubstr(GetParam().message_part));
  }
}

constexpr StatusCode kCorrupt = StatusCode::kCorrupt;
constexpr StatusCode kUnsupported = StatusCode::kUnsupported;
constexpr uint64_t kNan = 0x7FF8000000000000;
constexpr uint64_t kInfinity = 0x7FF0000000000000;
const Craft kCrafts[] = {
    {"magic", 0, 8, 0, kCorrupt, "begin"},
    {"version_0", 8, 4, 0, kCorrupt, "version is 0"},
    {"version_2", 8, 4, 2, kUnsupported, "version 2"},
    {"version_max", 8, 4, 0xFFFFFFFF, kUnsupported, "version 4294967295"},
    {"header_0", 12, 4, 0, kCorrupt, "0 bytes"},
    {"header_64", 12, 4, 64, kCorrupt, "64 bytes"},
    {"header_129", 12, 4, 129, kCorrupt, "129 bytes"},
    {"header_of_all", 12, 4, 192, kCorrupt, "checksum"},
    {"header_256", 12, 4, 256, kCorrupt, "256 bytes"},
    {"header_max", 12, 4, 0xFFFFFFC0, kCorrupt, "4294967232 bytes"},
    {"payload_0", 16, 8, 0, kCorrupt, "0 bytes, but has 64"},
    {"payload_63", 16, 8, 63, kCorrupt, "63 bytes, but has 64"},
    {"payload_wraps_around", 16, 8, uint64_t{0} - 64, kCorrupt, "but has 64"},
    {"bits_0", 24, 8, 0, kCorrupt, "0 bits"},
    {"bits_511", 24, 8, 511, kCorrupt, "511 bits"},
    {"bits_513", 24, 8, 513, kCorrupt, "513 bits"},
    {"bits_1024", 24, 8, 1024, kCorrupt, "1024 bits"},
    {"bits_2e40", 24, 8, uint64_t{1} << 40, kCorrupt, "1099511627776 bits"},
    {"bits_max", 24, 8, ~uint64_t{0}, kCorrupt, "18446744073709551615 bits"},
    {"rational_k_nan", 32, 8, kNan, kCorrupt, "rational_k"},
    {"rational_k_infinite", 32, 8, kInfinity, kCorrupt, "rational_k"},
    {"rational_k_negative", 32, 8, 0xC004000000000000, kCorrupt, "rational_k"},
    {"rational_k_0", 32, 8, 0, kCorrupt, "rational_k"},
    {"probes_0", 56, 4, 0, kCorrupt, "num_probes"},
    {"probes_max", 56, 4, 0xFFFFFFFF, kCorrupt, "num_probes"},
    {"layout_9", 60, 1, 9, kUnsupported, "layout 9"},
    {"layout_255", 60, 1, 255, kUnsupported, "layout 255"},
    {"layout_of_other_probes", 60, 1, 7, kCorrupt, "split512: rational_k"},
    {"hash_2", 61, 1, 2, kUnsupported, "hash 2"},
    {"key_kind_5", 62, 1, 5, kUnsupported, "key kind 5"},
    {"first_reserved_byte", 63, 1, 1, kCorrupt, "reserved"},
    {"last_reserved_byte", 111, 1, 0x80, kCorrupt, "reserved"},
};
INSTANTIATE_TEST_SUITE_P(Headers, CraftTest, ::testing::ValuesIn(kCrafts),
                         [](const auto& test) { return std::string(test.param.name); });

// A newer header may be longer, and hold what it likes.
TEST(ContainerVersionTest, NewerVersionsAreRefusedAndBothVersionsNamed) {
  Bytes container(256 + 64, 0xEE);
  const Bytes golden = FromHex(kVersion1);
  std::copy(golden.begin(), golden.begin() + 8, container.begin());
  Put(&container, 8, 4, 7);
  Put(&container, 12, 4, 256);
  FixChecksum(&container, 256);
  const Result<FilterView> view = FilterView::Open(Placed(container).bytes());
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(view.status().message(), AllOf(HasSubstr("version 7"), HasSubstr("up to 1")));
  container[100] = 0;
  EXPECT_EQ(Inspect(container).status().code(), StatusCode::kCorrupt) << "damaged, not newer";
}

TEST(ContainerVersionTest, ALongerHeaderOfVersion1IsCorrupt) {
  Bytes container = FromHex(kVersion1);
  Put(&container, 12, 4, 192);
  FixChecksum(&container, 192);
  const Status status = Inspect(container).status();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("192 bytes"));
}

// Headers of random fields and right checksums: each is refused, or is a filter that stays within
// its bytes (which sanitizers and the canaries of Placed watch).
TEST(ContainerFuzzTest, RandomHeadersWithRightChecksumsAreRefusedOrSound) {
  TEPAL_TRACE_SEED(kSeed);
  std::mt19937_64 random(kSeed);
  const std::vector<uint64_t> hashes = RandomValues(kSeed, 100);
  size_t sound = 0;
  for (int round = 0; round < 20000; ++round) {
    const size_t payload_bytes = random() % 40 * 32;
    Bytes container = RandomValues<uint8_t>(random(), 128 + payload_bytes);
    const Bytes golden = FromHex(kVersion1);
    std::copy(golden.begin(), golden.begin() + 128, container.begin());
    Put(&container, 16, 8, payload_bytes);
    Put(&container, 24, 8, payload_bytes * 8);
    Put(&container, 32, 8, random() % 2 == 0 ? 0 : 0x3FF0000000000000 + (random() >> 12));
    Put(&container, 56, 4, random() % 12);
    Put(&container, 60, 1, random() % 10);
    Put(&container, 112, 8, XXH3_64bits(container.data() + 128, payload_bytes));
    FixChecksum(&container);
    Placed placed(container);
    const Result<FilterView> view = FilterView::Open(placed.bytes());
    EXPECT_EQ(Inspect(placed.bytes()).ok(), view.ok());
    if (!view.ok()) continue;
    ++sound;
    EXPECT_EQ(view->bytes().size(), payload_bytes);
    EXPECT_TRUE(view->geometry().Validate().ok());
    EXPECT_LE(view->CountHashes(hashes), hashes.size());
  }
  EXPECT_GT(sound, 1000u);
  EXPECT_LT(sound, 19000u);
}

}  // namespace
}  // namespace tepal::testing
