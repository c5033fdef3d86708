#include "dispatch/thrift_compact.h"

#include <limits>
#include <string>
#include <utility>

namespace tepal::thrift {
namespace {

constexpr size_t kDoubleBytes = 8;
constexpr size_t kUuidBytes = 16;

}  // namespace

void CompactReader::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void CompactReader::FailAtEnd() {
  Fail(Status::Corrupt("the bytes end in the middle of a value, after " +
                       std::to_string(bytes_.size())));
}

uint8_t CompactReader::ReadByte() {
  if (remaining() == 0) FailAtEnd();
  return status_.ok() ? bytes_[position_++] : uint8_t{0};
}

// Groups of 7 bits, the lowest first; the top bit of a byte says that more follow. Longer encodings
// than needed are allowed, as in Thrift, but not more bytes than the largest value takes.
uint64_t CompactReader::ReadVarint(int num_bits) {
  uint64_t value = 0;
  for (int shift = 0; shift < num_bits; shift += 7) {
    const uint8_t byte = ReadByte();
    const uint64_t group = byte & 0x7F;
    if (num_bits - shift < 7 && group >> (num_bits - shift) != 0) break;
    value |= group << shift;
    if ((byte & 0x80) == 0) return value;
  }
  Fail(Status::Corrupt("an integer has more than " + std::to_string(num_bits) + " bits"));
  return 0;
}

// Zigzag: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
int32_t CompactReader::ReadI32() {
  const auto bits = static_cast<uint32_t>(ReadVarint(32));
  return static_cast<int32_t>((bits >> 1) ^ (0 - (bits & 1)));
}

size_t CompactReader::ReadSize(size_t min_value_bytes) {
  const uint64_t size = ReadVarint(32);
  if (size <= remaining() / min_value_bytes) return static_cast<size_t>(size);
  Fail(Status::Corrupt("a value says that it has " + std::to_string(size) + " elements, but only " +
                       std::to_string(remaining()) + " bytes follow"));
  return 0;
}

// A byte holds the type (low half) and the distance from the previous id; distance 0 means that the
// id follows.
Field CompactReader::NextField(int32_t previous_id) {
  const uint8_t head = ReadByte();
  if (head == 0) return {};
  const int32_t id = head >> 4 != 0 ? previous_id + (head >> 4) : ReadI32();
  const int32_t type = head & 0x0F;
  if (id < std::numeric_limits<int16_t>::min() || id > std::numeric_limits<int16_t>::max()) {
    Fail(Status::Corrupt("field id " + std::to_string(id) + " has more than 16 bits"));
  }
  if (type == 0 || type > static_cast<int32_t>(Type::kUuid)) {
    Fail(Status::Corrupt("field " + std::to_string(id) + " has the unknown type " +
                         std::to_string(type)));
  }
  if (!status_.ok()) return {};
  return {static_cast<Type>(type), id};
}

void CompactReader::SkipBytes(size_t count) {
  if (count > remaining()) FailAtEnd();
  if (status_.ok()) position_ += count;
}

void CompactReader::SkipValue(Type type) {
  if (type != Type::kTrue && type != Type::kFalse) SkipElement(type);
}

void CompactReader::SkipElement(Type type) {
  if (depth_ == kMaxDepth) {
    return Fail(
        Status::Corrupt("values are nested more than " + std::to_string(kMaxDepth) + " deep"));
  }
  ++depth_;
  switch (type) {
    case Type::kTrue:
    case Type::kFalse:
    case Type::kI8:
      SkipBytes(1);
      break;
    case Type::kI16:
    case Type::kI32:
      ReadVarint(32);
      break;
    case Type::kI64:
      ReadVarint(64);
      break;
    case Type::kDouble:
      SkipBytes(kDoubleBytes);
      break;
    case Type::kBinary:
      SkipBytes(ReadSize(1));
      break;
    case Type::kList:
    case Type::kSet:
      SkipList();
      break;
    case Type::kMap:
      SkipMap();
      break;
    case Type::kStruct:
      ForEachField([this](const Field& field) { SkipValue(field.type); });
      break;
    case Type::kUuid:
      SkipBytes(kUuidBytes);
      break;
    case Type::kStop:
    default:
      Fail(Status::Corrupt("a list or map has elements of the unknown type " +
                           std::to_string(static_cast<int>(type))));
  }
  --depth_;
}

// A byte holds the element type (low half) and the size, or 15 if the size follows.
void CompactReader::SkipList() {
  const uint8_t head = ReadByte();
  const size_t size = head >> 4 == 0x0F ? ReadSize(1) : head >> 4;
  for (size_t i = 0; i < size && status_.ok(); ++i) SkipElement(static_cast<Type>(head & 0x0F));
}

// The size, then a byte with the types of keys (high half) and values; an empty map has no types.
void CompactReader::SkipMap() {
  const size_t size = ReadSize(2);
  if (size == 0) return;
  const uint8_t types = ReadByte();
  for (size_t i = 0; i < size && status_.ok(); ++i) {
    SkipElement(static_cast<Type>(types >> 4));
    SkipElement(static_cast<Type>(types & 0x0F));
  }
}

void AppendI32(int32_t value, std::vector<uint8_t>& out) {
  uint32_t bits = (static_cast<uint32_t>(value) << 1) ^ static_cast<uint32_t>(value >> 31);
  for (; bits >= 0x80; bits >>= 7) out.push_back(static_cast<uint8_t>(bits | 0x80));
  out.push_back(static_cast<uint8_t>(bits));
}

}  // namespace tepal::thrift
