// Bloom filters of Parquet files: bytes, sizes, hashes, and floats. parquet_interop.cc asks other
// engines.
#include "tepal/parquet.h"

#include <sys/mman.h>
#include <xxhash.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "dispatch/bit_cast.h"
#include "tepal/fpr.h"
#include "tests/guarded_memory.h"
#include "tests/test_util.h"

namespace tepal::parquet {
namespace {

using testing::ArrayBeforeHole;
using testing::BytesOf;
using testing::GetBit;
using testing::RandomValues;
using Bytes = std::vector<uint8_t>;

Bytes Join(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// ---- Headers by hand

// The fields of a header, as every known writer writes them (DuckDB 1.5.6, hyparquet-writer 0.16).
const Bytes kNumBytes32 = {0x15, 0x40};
const Bytes kUnion = {0x1C, 0x1C, 0x00, 0x00};
const Bytes kStop = {0x00};
const Bytes kHeader32 = Join({kNumBytes32, kUnion, kUnion, kUnion, kStop});

Bytes RandomBitset(size_t num_bytes) { return RandomValues<uint8_t>(num_bytes, num_bytes); }

// Reads from memory that ends behind `bytes`.
Result<Filter> ReadAtHole(const Bytes& bytes) {
  ArrayBeforeHole<uint8_t> memory(bytes.size());
  memory.Fill(bytes);
  return Read({memory.Last(bytes.size()), bytes.size()});
}

StatusCode CodeOf(const Bytes& header) {
  return ReadAtHole(Join({header, RandomBitset(kBlockBytes)})).status().code();
}

// A filter of this many blocks with some values in it.
Filter SomeFilter(size_t num_blocks) {
  Filter filter = testing::MakeFilter(GeometryOfBytes(num_blocks * kBlockBytes).value());
  filter.InsertHashes(RandomValues(num_blocks, 8 * num_blocks));
  return filter;
}

// ---- Reading and writing

TEST(ParquetTest, HeadersAreThoseOfOtherWriters) {
  const Bytes small = Write(SomeFilter(1)).value();
  EXPECT_EQ(Bytes(small.begin(), small.end() - 32), kHeader32);
  const Bytes large = Write(SomeFilter(128)).value();  // as DuckDB 1.5.6 writes 4096 bytes
  EXPECT_EQ(Bytes(large.begin(), large.end() - 4096),
            (Bytes{0x15, 0x80, 0x40, 0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0}));
}

TEST(ParquetTest, AnyNumberOfBlocksIsReadAsItWasWritten) {
  for (const size_t num_blocks : {1u, 2u, 3u, 5u, 7u, 8u, 31u, 64u, 100u, 1000u, 1024u}) {
    const Filter filter = SomeFilter(num_blocks);
    const Bytes written = Write(filter).value();
    const Header header = ReadHeader(written).value();
    EXPECT_EQ(header.bitset_bytes, num_blocks * kBlockBytes);
    EXPECT_EQ(header.total_bytes(), written.size());
    for (const size_t offset : {0u, 1u, 7u, 33u}) {  // nothing is aligned in a file
      Bytes shifted = Join({Bytes(offset, 0xEE), written});
      const Filter read = ReadExactly(std::span(shifted).subspan(offset)).value();
      EXPECT_EQ(read.geometry(), filter.geometry());
      EXPECT_EQ(BytesOf(read), BytesOf(filter));
    }
  }
}

TEST(ParquetTest, ReadTakesWhatFollowsAndReadExactlyDoesNot) {
  const Filter filter = SomeFilter(3);
  const Bytes followed = Join({Write(filter.View()).value(), Bytes(1, 0)});
  EXPECT_EQ(BytesOf(Read(followed).value()), BytesOf(filter));
  EXPECT_EQ(ReadExactly(followed).status().code(), StatusCode::kCorrupt);
}

TEST(ParquetTest, AHeaderIsReadWithoutItsBitset) {
  const Header header = ReadHeader(kHeader32).value();
  EXPECT_EQ(header.header_bytes, kHeader32.size());
  EXPECT_EQ(header.bitset_bytes, 32u);
}

TEST(ParquetTest, EveryTruncationIsRefused) {
  const Bytes written = Write(SomeFilter(4)).value();
  for (size_t length = 0; length < written.size(); ++length) {
    const Bytes cut(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(ReadAtHole(cut).status().code(), StatusCode::kCorrupt) << length;
  }
}

// Whatever a header says: an error, or the filter that it describes and that the bytes hold.
void ExpectConsistent(const Bytes& bytes) {
  const Result<Filter> read = ReadAtHole(bytes);
  if (!read.ok()) {
    EXPECT_TRUE(read.status().code() == StatusCode::kCorrupt ||
                read.status().code() == StatusCode::kUnsupported);
    EXPECT_FALSE(read.status().message().empty());
    return;
  }
  const Header header = ReadHeader(bytes).value();
  ASSERT_LE(header.total_bytes(), bytes.size());
  EXPECT_EQ(read->geometry(), GeometryOfBytes(header.bitset_bytes).value());
  const auto bitset = std::span(bytes).subspan(header.header_bytes, header.bitset_bytes);
  EXPECT_EQ(BytesOf(*read), Bytes(bitset.begin(), bitset.end()));
}

TEST(ParquetTest, HeadersWithOneOrTwoBitsFlippedAreRefusedOrConsistent) {
  const Bytes bitset = RandomBitset(512);
  for (const Bytes& header :
       {kHeader32, Join({{0x15, 0x80, 0x08}, kUnion, kUnion, kUnion, kStop})}) {
    const Bytes good = Join({header, bitset});
    for (size_t a = 0; a < 8 * header.size(); ++a) {
      for (size_t b = a; b < 8 * header.size(); ++b) {
        Bytes bad = good;
        bad[a / 8] = static_cast<uint8_t>(bad[a / 8] ^ 1u << (a % 8));
        if (b != a) bad[b / 8] = static_cast<uint8_t>(bad[b / 8] ^ 1u << (b % 8));
        SCOPED_TRACE("bits " + std::to_string(a) + " and " + std::to_string(b));
        ExpectConsistent(bad);
      }
    }
  }
}

TEST(ParquetTest, RandomBytesBehindTheFirstFieldAreRefusedOrConsistent) {
  constexpr uint64_t kSeed = 21;
  TEPAL_TRACE_SEED(kSeed);
  const Bytes random = RandomValues<uint8_t>(kSeed, 20'000);
  for (size_t i = 0; i + 100 < random.size(); ++i) {
    const auto tail = std::span(random).subspan(i, i % 100);
    ExpectConsistent(Join({kNumBytes32, Bytes(tail.begin(), tail.end())}));
  }
}

// ---- Lies about the size

void* CountedAllocate(size_t bytes, size_t alignment, void* calls) {
  ++*static_cast<int*>(calls);
  return std::aligned_alloc(alignment, bytes);
}
void* RefuseToAllocate(size_t, size_t, void*) { return nullptr; }
void Free(void* memory, size_t, void*) { std::free(memory); }

TEST(ParquetTest, LiesAboutNumBytesAreCaughtBeforeAnythingIsAllocated) {
  struct Case {
    const char* name;
    Bytes num_bytes;  // a zigzag varint
  };
  const std::vector<Case> lies = {
      {"0", {0x00}},
      {"-1", {0x01}},
      {"-32", {0x3F}},
      {"33", {0x42}},
      {"16", {0x20}},
      {"96, but 64 follow", {0xC0, 0x01}},
      {"2^31 - 1", {0xFE, 0xFF, 0xFF, 0xFF, 0x0F}},
      {"2^31 - 32, but 64 follow", {0xC0, 0xFF, 0xFF, 0xFF, 0x0F}},
      {"-2^31", {0xFF, 0xFF, 0xFF, 0xFF, 0x0F}},
      {"2^32", {0x80, 0x80, 0x80, 0x80, 0x20}},
  };
  int calls = 0;
  const MemoryOptions memory{.allocator = {CountedAllocate, Free, &calls}};
  const auto read = [&](const Bytes& num_bytes) {
    const Bytes header = Join({{0x15}, num_bytes, kUnion, kUnion, kUnion, kStop});
    return Read(Join({header, RandomBitset(64)}), memory);
  };
  for (const Case& lie : lies) {
    EXPECT_EQ(read(lie.num_bytes).status().code(), StatusCode::kCorrupt) << lie.name;
  }
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(read({0x80, 0x01}).ok());  // 64: the truth
  EXPECT_EQ(calls, 1);
}

TEST(ParquetTest, WithoutMemoryReadSaysSo) {
  const MemoryOptions memory{.allocator = {RefuseToAllocate, Free, nullptr}};
  EXPECT_EQ(Read(Write(SomeFilter(2)).value(), memory).status().code(), StatusCode::kOutOfMemory);
}

// ---- Other headers

TEST(ParquetTest, FieldsInAnyOrderAreRead) {
  // 4, 3, 2, 1, with their ids written out.
  const Bytes header = Join({{0x0C, 0x08, 0x1C, 0, 0},
                             {0x0C, 0x06, 0x1C, 0, 0},
                             {0x0C, 0x04, 0x1C, 0, 0},
                             {0x05, 0x02, 0x40},
                             kStop});
  EXPECT_EQ(CodeOf(header), StatusCode::kOk);
}

TEST(ParquetTest, UnknownFieldsArePassedOver) {
  // Fields 5 to 13 of all types, then field 7000, then those of the header with ids written out.
  const Bytes unknown = Join({{0x51},                           // 5: true
                              {0x13, 0xFF},                     // 6: i8
                              {0x16, 0x80, 0x01},               // 7: i64
                              {0x17, 1, 2, 3, 4, 5, 6, 7, 8},   // 8: double
                              {0x18, 2, 'h', 'i'},              // 9: binary
                              {0x19, 0x2C, 0x15, 2, 0, 0},      // 10: two structs
                              {0x1A, 0x15, 2},                  // 11: set of i32
                              {0x1B, 1, 0x88, 1, 'k', 1, 'v'},  // 12: map
                              {0x1C, 0x1C, 0x1C, 0, 0, 0},      // 13: structs
                              {0x0D, 0xB0, 0x6D},               // 7000: uuid
                              Bytes(16, 0xAA)});
  const Bytes known = Join({{0x05, 0x02, 0x40}, kUnion, kUnion, kUnion});
  EXPECT_EQ(CodeOf(Join({unknown, known, kStop})), StatusCode::kOk);
  const Bytes at_end = Join({kNumBytes32, kUnion, kUnion, kUnion, {0x11}, unknown, kStop});
  EXPECT_EQ(ReadHeader(Join({known, {0x25, 0x02}, kStop}))->header_bytes, known.size() + 3);
  EXPECT_EQ(CodeOf(at_end), StatusCode::kOk);
}

TEST(ParquetTest, AlternativesMayGrowFields) {
  const Bytes grown = {0x1C, 0x1C, 0x15, 0x02, 0x00, 0x00};  // BLOCK {1: i32}
  EXPECT_EQ(CodeOf(Join({kNumBytes32, grown, kUnion, kUnion, kStop})), StatusCode::kOk);
}

TEST(ParquetTest, UnknownAlgorithmsHashesAndCompressionsAreUnsupported) {
  const Bytes second = {0x1C, 0x2C, 0x00, 0x00};  // alternative 2: Murmur, snappy, ...
  for (size_t field = 0; field < 3; ++field) {
    std::array<Bytes, 3> unions = {kUnion, kUnion, kUnion};
    unions[field] = second;
    const Bytes header = Join({kNumBytes32, unions[0], unions[1], unions[2], kStop});
    const Status status = ReadHeader(header).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    const std::array<std::string, 3> names = {"algorithm", "hash", "compression"};
    EXPECT_NE(status.message().find(names[field]), std::string::npos) << status.message();
  }
}

TEST(ParquetTest, BrokenHeadersAreCorrupt) {
  const Bytes skip_field = {0x2C, 0x1C, 0x00, 0x00};  // the field after the next one
  const std::vector<std::pair<const char*, Bytes>> cases = {
      {"nothing", {}},
      {"no fields", kStop},
      {"no numBytes", Join({skip_field, kUnion, kUnion, kStop})},
      {"no algorithm", Join({kNumBytes32, skip_field, kUnion, kStop})},
      {"no hash", Join({kNumBytes32, kUnion, skip_field, kStop})},
      {"no compression", Join({kNumBytes32, kUnion, kUnion, kStop})},
      {"numBytes twice", Join({kNumBytes32, {0x05, 0x02, 0x40}, kUnion, kUnion, kUnion, kStop})},
      {"hash twice", Join({kNumBytes32, kUnion, kUnion, {0x0C, 0x06, 0x1C, 0, 0}, kUnion, kStop})},
      {"numBytes an i64", Join({{0x16, 0x40}, kUnion, kUnion, kUnion, kStop})},
      {"numBytes an i16", Join({{0x14, 0x40}, kUnion, kUnion, kUnion, kStop})},
      {"algorithm an i32", Join({kNumBytes32, {0x15, 0x02}, kUnion, kUnion, kStop})},
      {"algorithm true", Join({kNumBytes32, {0x11}, kUnion, kUnion, kStop})},
      {"hash without alternative", Join({kNumBytes32, kUnion, {0x1C, 0}, kUnion, kStop})},
      {"hash with two", Join({kNumBytes32, kUnion, {0x1C, 0x1C, 0, 0x1C, 0, 0}, kUnion, kStop})},
      {"BLOCK an i32", Join({kNumBytes32, {0x1C, 0x15, 2, 0}, kUnion, kUnion, kStop})},
      {"BLOCK true", Join({kNumBytes32, {0x1C, 0x11, 0}, kUnion, kUnion, kStop})},
  };
  for (const auto& [name, header] : cases) {
    EXPECT_EQ(ReadHeader(header).status().code(), StatusCode::kCorrupt) << name;
    EXPECT_EQ(CodeOf(header), StatusCode::kCorrupt) << name;
  }
}

TEST(ParquetTest, HeadersOfMoreThan64KiBAreRefused) {
  const auto with_string = [](uint32_t length) {  // 5: binary
    const Bytes size = {static_cast<uint8_t>(length | 0x80),
                        static_cast<uint8_t>(length >> 7 | 0x80),
                        static_cast<uint8_t>(length >> 14)};
    return Join({kNumBytes32, kUnion, kUnion, kUnion, {0x18}, size, Bytes(length, 'x'), kStop});
  };
  EXPECT_EQ(CodeOf(with_string(65536 - 19)), StatusCode::kOk);
  EXPECT_EQ(CodeOf(with_string(65536 - 18)), StatusCode::kCorrupt);
}

// ---- What can be written

TEST(ParquetTest, OnlyParquetsOwnKindOfFilterIsWritten) {
  const Geometry good = GeometryOfBytes(64).value();
  Geometry xxh3 = good, seeded = good;
  xxh3.hash = HashKind::kXxh3;
  seeded.seed = 1;
  for (const Geometry& geometry : {xxh3, seeded, Geometry::For(Layout::kSplit512, 10, 10)}) {
    EXPECT_EQ(Write(testing::MakeFilter(geometry)).status().code(), StatusCode::kUnsupported);
  }
  EXPECT_TRUE(Write(testing::MakeFilter(good)).ok());
}

TEST(ParquetTest, FiltersWhoseSizeIsNoInt32AreNotWritten) {
  constexpr size_t kBytes = kMaxBitsetBytes + kBlockBytes;
  void* memory =
      mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (sizeof(void*) == 4 && memory == MAP_FAILED) GTEST_SKIP() << "not enough addresses for 2 GiB";
  ASSERT_NE(memory, MAP_FAILED);
  Geometry geometry = GeometryOfBytes(32).value();
  geometry.num_bits = 8 * kBytes;
  const auto view = FilterView::Over(geometry, {static_cast<const uint8_t*>(memory), kBytes});
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_EQ(Write(*view).status().code(), StatusCode::kInvalidArgument);
  munmap(memory, kBytes);
}

// ---- Sizes

TEST(ParquetTest, SizesArePowersOfTwoUnlessAskedOtherwise) {
  for (const uint64_t num_keys : {0u, 1u, 10u, 1000u, 123'456u, 1'000'000u}) {
    for (const double max_fpr : {0.1, 0.01, 0.001}) {
      const Geometry pow2 = GeometryFor(num_keys, max_fpr).value();
      const Geometry any = GeometryFor(num_keys, max_fpr, BlockCount::kAny).value();
      EXPECT_TRUE(std::has_single_bit(pow2.num_bits));
      EXPECT_LE(any.num_bits, pow2.num_bits);
      EXPECT_LT(pow2.num_bits, 2 * any.num_bits);
      EXPECT_LE(fpr::Predict(any, num_keys), max_fpr);
      for (const Geometry& geometry : {pow2, any}) {
        EXPECT_EQ(geometry, GeometryOfBytes(geometry.num_bytes()).value());
        EXPECT_TRUE(geometry.Validate().ok());
      }
    }
  }
}

// "Sizing an SBBF" in the specification.
TEST(ParquetTest, SizesAreThoseOfTheSpecification) {
  constexpr uint64_t kKeys = 1'000'000;
  const std::vector<std::pair<double, double>> bits_for_rate = {
      {0.1, 6.0}, {0.01, 10.5}, {0.001, 16.9}, {0.0001, 26.4}, {0.00001, 41}};
  for (const auto& [rate, bits_per_key] : bits_for_rate) {
    const Geometry any = GeometryFor(kKeys, rate, BlockCount::kAny).value();
    EXPECT_NEAR(static_cast<double>(any.num_bits) / kKeys, bits_per_key, 0.02 * bits_per_key);
  }
}

TEST(ParquetTest, SizesOutOfBoundsAreRefused) {
  EXPECT_TRUE(GeometryOfBytes(32).ok());
  EXPECT_TRUE(GeometryOfBytes(kMaxBitsetBytes).ok());
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{31}, uint64_t{33}, uint64_t{48},
                               uint64_t{kMaxBitsetBytes + kBlockBytes}, ~uint64_t{31}}) {
    EXPECT_EQ(GeometryOfBytes(bytes).status().code(), StatusCode::kInvalidArgument) << bytes;
  }
  EXPECT_FALSE(GeometryFor(10, 0).ok());
  EXPECT_FALSE(GeometryFor(10, std::numeric_limits<double>::quiet_NaN()).ok());
  constexpr uint64_t kKeys = 1'300'000'000;  // 1.7 GB at 1 %: not as a power of two
  EXPECT_TRUE(GeometryFor(kKeys, 0.01, BlockCount::kAny).ok());
  EXPECT_EQ(GeometryFor(kKeys, 0.01).status().code(), StatusCode::kInvalidArgument);
}

// ---- Hashes

template <typename T>
uint64_t HashOfLittleEndian(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const auto bits = BitCast<Bits>(value);
  std::array<uint8_t, sizeof(T)> bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<uint8_t>(bits >> (8 * i));
  return XXH64(bytes.data(), bytes.size(), 0);
}

using ParquetHashTest = testing::TargetTest;

template <typename T>
void ExpectPlainHashes() {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (const size_t count : {0u, 1u, 7u, 1023u, 1024u, 1025u, 2600u}) {
    std::vector<T> values;
    for (const Bits bits : RandomValues<Bits>(count, count)) values.push_back(BitCast<T>(bits));
    testing::GuardedArray<uint64_t> hashes(count, 1);
    HashValues(std::span<const T>(values), hashes.data());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(hashes.data()[i], HashOfLittleEndian(values[i])) << i << " of " << count;
      ASSERT_EQ(hashes.data()[i], HashValue(values[i]));
    }
    EXPECT_TRUE(hashes.OnlyWrote(count));
  }
}

TEST_P(ParquetHashTest, NumbersHaveTheHashOfTheirPlainEncoding) {
  ExpectPlainHashes<int32_t>();
  ExpectPlainHashes<int64_t>();
  ExpectPlainHashes<float>();
  ExpectPlainHashes<double>();
}

TEST_P(ParquetHashTest, BytesAreHashedWithoutTheirLength) {
  const std::vector<std::string> strings = testing::RandomStrings(3, 500, 80);
  std::vector<uint64_t> hashes(strings.size());
  HashValues(testing::StringRows(strings).column32(), hashes.data());
  for (size_t i = 0; i < strings.size(); ++i) {
    EXPECT_EQ(hashes[i], XXH64(strings[i].data(), strings[i].size(), 0));
    EXPECT_EQ(hashes[i], HashValue(strings[i]));
  }
}

TEST_P(ParquetHashTest, FixedColumnsAreCutIntoTheirWidth) {
  for (const size_t width : {0u, 1u, 2u, 4u, 8u, 12u, 16u, 33u}) {
    const Bytes data = RandomValues<uint8_t>(width, 100 * width);
    std::vector<uint64_t> hashes(100);
    HashValues(FixedColumn{data.data(), width, 100}, hashes.data());
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(hashes[i], XXH64(data.data() + i * width, width, 0));
    }
  }
}

// XXH64 of the bytes 01 00 00 00, and so on: from another implementation (hyparquet 1.31).
TEST_P(ParquetHashTest, HashesAreTheseNumbers) {
  EXPECT_EQ(HashValue(int32_t{1}), 0xF42F94001FCB5351u);
  EXPECT_EQ(HashValue(int64_t{-1}), 0x85D136ADB773C6C9u);
  EXPECT_EQ(HashValue(1.5f), 0x4F2D82595C483A0Du);
  EXPECT_EQ(HashValue(-0.0), 0x3F425EACF01544E0u);
  EXPECT_EQ(HashValue("Tepal"), 0x1053929CB9A7D3CAu);
}

TEST_P(ParquetHashTest, IntegerKeysOfAFilterAreHashedInTheSameWay) {
  Filter filter = testing::MakeFilter(GeometryOfBytes(1024).value());
  filter.Insert(std::span<const uint32_t>({0xFFFFFFF9u}));
  filter.Insert(std::span<const uint64_t>({42}));
  EXPECT_TRUE(filter.MayContainHash(HashValue(int32_t{-7})));
  EXPECT_TRUE(filter.MayContainHash(HashValue(int64_t{42})));
  EXPECT_FALSE(filter.MayContainHash(HashValue(int64_t{-7})));
}

TEPAL_TEST_ON_EVERY_TARGET(ParquetHashTest);

// ---- Floats

template <typename Float>
class ParquetFloatTest : public ::testing::Test {
 protected:
  static constexpr Float kNan = std::numeric_limits<Float>::quiet_NaN();

  static Filter FilterOf(const std::vector<Float>& values) {
    Filter filter = testing::MakeFilter(GeometryOfBytes(1024).value());
    std::vector<uint64_t> hashes(values.size());
    HashValues(std::span<const Float>(values), hashes.data());
    filter.InsertHashes(hashes);
    return filter;
  }
};

using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ParquetFloatTest, Floats);

TYPED_TEST(ParquetFloatTest, EitherZeroFindsTheOther) {
  for (const TypeParam zero : {TypeParam{0}, -TypeParam{0}}) {
    const Filter filter = this->FilterOf({zero});
    EXPECT_FALSE(filter.MayContainHash(HashValue(-zero)));  // their bits differ
    EXPECT_TRUE(MayContain(filter, zero));
    EXPECT_TRUE(MayContain(filter.View(), -zero));
  }
  const Filter without = this->FilterOf({TypeParam{1}, this->kNan});
  EXPECT_FALSE(MayContain(without, TypeParam{0}));
  EXPECT_FALSE(MayContain(without, -TypeParam{0}));
}

TYPED_TEST(ParquetFloatTest, ANanMayAlwaysBeThere) {
  const Filter filter = this->FilterOf({TypeParam{1}});
  EXPECT_TRUE(MayContain(filter, this->kNan));
  EXPECT_TRUE(MayContain(filter, -this->kNan));
  EXPECT_TRUE(MayContain(filter, std::numeric_limits<TypeParam>::signaling_NaN()));
  EXPECT_FALSE(MayContain(filter, std::numeric_limits<TypeParam>::infinity()));
}

TYPED_TEST(ParquetFloatTest, ColumnsAreProbedAsSingleValues) {
  const TypeParam kinds[] = {0, -TypeParam{0}, this->kNan, 1, 2, -1, -this->kNan, 3};
  for (const bool has_zero : {false, true}) {
    const Filter filter = this->FilterOf({has_zero ? -TypeParam{0} : TypeParam{7}, 1});
    for (const size_t count : {0u, 1u, 9u, 1024u, 1025u, 3000u}) {
      std::vector<TypeParam> values;
      std::vector<bool> valid;
      for (const uint64_t random : RandomValues(count, count)) {
        values.push_back(kinds[random % 8]);
        valid.push_back(random >> 63 != 0);
      }
      constexpr size_t kOffset = 3;
      const Bytes validity = testing::MakeBitmap(valid, kOffset);
      for (const bool with_nulls : {false, true}) {
        testing::GuardedArray<uint8_t> bitmap((count + 7) / 8, 1);
        const size_t matches = Probe(filter, std::span<const TypeParam>(values), bitmap.data(),
                                     with_nulls ? Validity{validity.data(), kOffset} : Validity{});
        size_t expected_matches = 0;
        for (size_t i = 0; i < count; ++i) {
          const bool expected = MayContain(filter, values[i]) && (valid[i] || !with_nulls);
          ASSERT_EQ(GetBit(bitmap.data(), i), expected) << values[i] << " in row " << i;
          expected_matches += expected ? 1 : 0;
        }
        EXPECT_EQ(matches, expected_matches);
        EXPECT_TRUE(bitmap.OnlyWrote((count + 7) / 8));
      }
    }
  }
}

}  // namespace
}  // namespace tepal::parquet
