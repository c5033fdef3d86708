// The reader of Thrift's compact protocol, on good, cut and hostile bytes.
#include "dispatch/thrift_compact.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/guarded_memory.h"
#include "tests/test_util.h"

namespace tepal::thrift {
namespace {

using testing::ArrayBeforeHole;
using Bytes = std::vector<uint8_t>;

Bytes Repeat(size_t count, uint8_t byte) { return Bytes(count, byte); }

Bytes Join(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Skips a value that ends where memory ends: a byte too many is a crash.
struct Skipped {
  Skipped(Type type, const Bytes& bytes) {
    ArrayBeforeHole<uint8_t> memory(bytes.size());
    memory.Fill(bytes);
    CompactReader reader({memory.Last(bytes.size()), bytes.size()});
    reader.SkipValue(type);
    status = reader.status();
    position = reader.position();
  }
  Status status;
  size_t position;
};

struct Value {
  const char* name;
  Type type;
  Bytes bytes;
};

// One byte is one element or a part of one in all of these: no prefix is a value, too.
std::vector<Value> OneOfEachType() {
  return {
      {"true", Type::kTrue, {}},
      {"false", Type::kFalse, {}},
      {"i8", Type::kI8, {0xFF}},
      {"i16", Type::kI16, {0x80, 0x01}},
      {"i32", Type::kI32, {0xFF, 0xFF, 0xFF, 0xFF, 0x0F}},
      {"i64", Type::kI64, Join(Repeat(9, 0xFF), {0x01})},
      {"double", Type::kDouble, Repeat(8, 0x3F)},
      {"binary", Type::kBinary, {3, 'a', 'b', 'c'}},
      {"list of two i32", Type::kList, {0x25, 0x01, 0x80, 0x01}},
      {"list of 16 booleans", Type::kList, Join({0xF2, 16}, Repeat(16, 1))},
      {"set of two strings", Type::kSet, {0x28, 1, 'a', 0}},
      {"empty list", Type::kList, {0x0C}},
      {"map of i32 to string", Type::kMap, {2, 0x58, 1, 1, 'a', 2, 0}},
      {"empty map", Type::kMap, {0}},
      {"empty struct", Type::kStruct, {0}},
      // 1: true, 2: i32, 3: struct {}, 300: list of 1 struct {1: false}
      {"struct", Type::kStruct, {0x11, 0x15, 0x02, 0x1C, 0, 0x09, 0xD8, 0x04, 0x1C, 0x12, 0, 0}},
      {"uuid", Type::kUuid, Repeat(16, 0xAB)},
  };
}

TEST(ThriftCompactTest, ValuesOfEveryTypeAreSkippedToTheirLastByte) {
  for (const Value& value : OneOfEachType()) {
    const Skipped skipped(value.type, value.bytes);
    EXPECT_TRUE(skipped.status.ok()) << value.name << ": " << skipped.status.message();
    EXPECT_EQ(skipped.position, value.bytes.size()) << value.name;
    const Skipped followed(value.type, Join(value.bytes, {1, 2, 3}));
    EXPECT_TRUE(followed.status.ok()) << value.name;
    EXPECT_EQ(followed.position, value.bytes.size()) << value.name;
  }
}

TEST(ThriftCompactTest, EveryTruncationOfEveryTypeIsRefused) {
  for (const Value& value : OneOfEachType()) {
    for (size_t length = 0; length < value.bytes.size(); ++length) {
      const Skipped skipped(value.type, Bytes(value.bytes.data(), value.bytes.data() + length));
      EXPECT_EQ(skipped.status.code(), StatusCode::kCorrupt) << value.name << ": " << length;
      EXPECT_LE(skipped.position, length) << value.name;
    }
  }
}

TEST(ThriftCompactTest, NestingIsSkippedUpToItsLimit) {
  // `levels` containers, the innermost one empty.
  struct Nest {
    const char* name;
    Type type;
    Bytes begin, innermost, end;
  };
  const std::vector<Nest> nests = {
      {"structs", Type::kStruct, {0x1C}, {0}, {0}},
      {"lists", Type::kList, {0x19}, {0x09}, {}},
      {"maps", Type::kMap, {1, 0x3B, 7}, {0}, {}},
  };
  for (const Nest& nest : nests) {
    for (const size_t levels : {size_t{CompactReader::kMaxDepth},
                                size_t{CompactReader::kMaxDepth} + 1, size_t{100'000}}) {
      Bytes bytes;
      for (size_t i = 1; i < levels; ++i) bytes = Join(std::move(bytes), nest.begin);
      bytes = Join(std::move(bytes), nest.innermost);
      for (size_t i = 1; i < levels; ++i) bytes = Join(std::move(bytes), nest.end);
      const Skipped skipped(nest.type, bytes);
      EXPECT_EQ(skipped.status.ok(), levels == CompactReader::kMaxDepth)
          << nest.name << " " << levels << ": " << skipped.status.message();
    }
  }
}

// Without a look at the size these would take minutes, or memory.
TEST(ThriftCompactTest, SizesThatTheBytesCannotHoldAreRefusedAtOnce) {
  const Bytes huge = {0xFF, 0xFF, 0xFF, 0xFF, 0x0F};
  const Bytes zeros = Repeat(1000, 0);
  EXPECT_FALSE(Skipped(Type::kBinary, Join(huge, zeros)).status.ok());
  EXPECT_FALSE(Skipped(Type::kList, Join(Join({0xFC}, huge), zeros)).status.ok());
  EXPECT_FALSE(Skipped(Type::kMap, Join(Join(huge, {0xCC}), zeros)).status.ok());
  const Skipped skipped(Type::kList,
                        Join({0xF3, 0xE9, 0x07}, zeros));  // 1001 bytes, but 1000 follow
  EXPECT_EQ(skipped.position, 3u) << skipped.status.message();
  EXPECT_EQ(skipped.status.code(), StatusCode::kCorrupt);
}

TEST(ThriftCompactTest, IntegersOfTooManyBitsAreRefused) {
  EXPECT_FALSE(Skipped(Type::kI32, {0xFF, 0xFF, 0xFF, 0xFF, 0x10}).status.ok());
  EXPECT_FALSE(Skipped(Type::kI32, {0xFF, 0xFF, 0xFF, 0xFF, 0x8F, 0x00}).status.ok());
  EXPECT_FALSE(Skipped(Type::kI64, Join(Repeat(9, 0xFF), {0x02})).status.ok());
  EXPECT_FALSE(Skipped(Type::kI64, Join(Repeat(10, 0x80), {0x00})).status.ok());
}

TEST(ThriftCompactTest, IntegersAreReadAsTheyAreWritten) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  for (const int32_t value : {0, -1, 1, 63, 64, -64, -65, 8191, 8192, kMin, kMin + 1, kMax}) {
    Bytes bytes;
    AppendI32(value, bytes);
    CompactReader reader(bytes);
    EXPECT_EQ(reader.ReadI32(), value);
    EXPECT_EQ(reader.position(), bytes.size());
    EXPECT_TRUE(reader.status().ok());
  }
  Bytes bytes;
  AppendI32(-25200, bytes);  // zigzag 50399, the example of Thrift's specification
  EXPECT_EQ(bytes, (Bytes{0xDF, 0x89, 0x03}));
}

std::vector<int32_t> IdsOf(const Bytes& bytes, Status* status) {
  std::vector<int32_t> ids;
  CompactReader reader(bytes);
  reader.ForEachField([&](const Field& field) {
    ids.push_back(field.id);
    reader.SkipValue(field.type);
  });
  *status = reader.status();
  return ids;
}

TEST(ThriftCompactTest, FieldIdsAreDistancesOrWrittenOut) {
  Status status;
  // 1, 16, then 5 and -2 written out, 3 further.
  EXPECT_EQ(IdsOf({0x11, 0xF1, 0x01, 0x0A, 0x01, 0x03, 0x51, 0x00}, &status),
            (std::vector<int32_t>{1, 16, 5, -2, 3}));
  EXPECT_TRUE(status.ok()) << status.message();
  IdsOf({0x01, 0xFE, 0xFF, 0x03, 0x00}, &status);  // 32767
  EXPECT_TRUE(status.ok()) << status.message();
  IdsOf({0x01, 0xFE, 0xFF, 0x03, 0x11, 0x00}, &status);  // and one more
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  IdsOf({0x01, 0x80, 0x80, 0x04, 0x00}, &status);  // 32768
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
}

TEST(ThriftCompactTest, UnknownTypesAreRefused) {
  Status status;
  for (const uint8_t head : std::initializer_list<uint8_t>{0x10, 0x1E, 0x1F}) {
    EXPECT_TRUE(IdsOf({head, 0, 0, 0, 0, 0}, &status).empty());
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << int{head};
    EXPECT_FALSE(Skipped(Type::kList, {head, 0, 0, 0}).status.ok()) << int{head};
    EXPECT_FALSE(Skipped(Type::kMap, {1, head, 0, 0}).status.ok()) << int{head};
  }
}

TEST(ThriftCompactTest, TheFirstErrorStaysAndEndsEverything) {
  const Bytes bytes = {1, 2, 3};
  CompactReader reader(bytes);
  reader.Fail(Status::Unsupported("first"));
  reader.Fail(Status::Corrupt("second"));
  EXPECT_EQ(reader.ReadI32(), 0);
  reader.ForEachField([](const Field&) { FAIL() << "a field after an error"; });
  reader.SkipValue(Type::kI8);
  EXPECT_EQ(reader.status().message(), "first");
  EXPECT_EQ(reader.position(), 0u);
}

TEST(ThriftCompactTest, RandomBytesAreSkippedOrRefusedWithinTheirEnd) {
  constexpr uint64_t kSeed = 20;
  TEPAL_TRACE_SEED(kSeed);
  constexpr size_t kMaxLength = 64;
  ArrayBeforeHole<uint8_t> memory(kMaxLength);
  const Bytes random = testing::RandomValues<uint8_t>(kSeed, 1 << 18);
  size_t num_ok = 0;
  for (size_t i = 0; i + kMaxLength < random.size(); ++i) {
    memory.Fill(std::span(random).subspan(i, kMaxLength));
    const size_t length = i % (kMaxLength + 1);
    CompactReader reader({memory.Last(length), length});
    reader.SkipValue(static_cast<Type>(1 + i % 13));
    ASSERT_LE(reader.position(), length);
    num_ok += reader.status().ok() ? 1 : 0;
  }
  EXPECT_GT(num_ok, random.size() / 4);  // both ways are taken
  EXPECT_LT(num_ok, random.size() - random.size() / 4);
}

}  // namespace
}  // namespace tepal::thrift
