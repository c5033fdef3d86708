// A reader of Thrift's compact protocol, for bytes that nobody vouches for. It never reads past its
// span, nests at most kMaxDepth values, and takes time linear in the bytes, whatever they say.
//
// The encoding: Apache Thrift, doc/specs/thrift-compact-protocol.md. Only what the Parquet code
// needs is decoded (fields and i32); values of all other types can be skipped.
#ifndef TEPAL_DISPATCH_THRIFT_COMPACT_H_
#define TEPAL_DISPATCH_THRIFT_COMPACT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tepal/status.h"

namespace tepal::thrift {

enum class Type : uint8_t {
  kStop = 0,  // no field: the end of a struct
  kTrue = 1,  // the value of a field is in its type; in lists and maps a boolean is a byte
  kFalse = 2,
  kI8 = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
  kUuid = 13,
};

struct Field {
  Type type = Type::kStop;
  int32_t id = 0;
};

// The first error stays in status(). From then on every read gives 0, which also ends every struct,
// so that callers need to look at status() only at the end.
class CompactReader {
 public:
  static constexpr int kMaxDepth = 32;

  explicit CompactReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // Calls visit(field) for each field of a struct. It must read or skip the field's value.
  template <class Visit>
  void ForEachField(const Visit& visit) {
    Field field;
    while ((field = NextField(field.id)).type != Type::kStop) visit(field);
  }

  int32_t ReadI32();

  // Passes over the value of a field of this type.
  void SkipValue(Type type);

  // Makes `status` the error, unless there is one already.
  void Fail(Status status);

  const Status& status() const { return status_; }
  // Bytes read so far.
  size_t position() const { return position_; }

 private:
  Field NextField(int32_t previous_id);
  void FailAtEnd();
  uint8_t ReadByte();
  uint64_t ReadVarint(int num_bits);
  // For sizes of values that take at least `min_value_bytes` each: more than there are bytes for is
  // an error.
  size_t ReadSize(size_t min_value_bytes);
  void SkipBytes(size_t count);
  void SkipElement(Type type);
  void SkipList();
  void SkipMap();
  size_t remaining() const { return bytes_.size() - position_; }

  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  int depth_ = 0;  // structs, lists and maps around the value that is being skipped
  Status status_;
};

// Writes an i32 as ReadI32 reads it.
void AppendI32(int32_t value, std::vector<uint8_t>& out);

}  // namespace tepal::thrift

#endif  // TEPAL_DISPATCH_THRIFT_COMPACT_H_
