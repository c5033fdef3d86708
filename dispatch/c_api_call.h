// How a C call runs: its arguments are checked, and what goes wrong becomes a code and a message.
#ifndef TEPAL_DISPATCH_C_API_CALL_H_
#define TEPAL_DISPATCH_C_API_CALL_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "tepal/c_api.h"
#include "tepal/status.h"

namespace tepal {

static_assert(TEPAL_OK == static_cast<int>(StatusCode::kOk));
static_assert(TEPAL_INVALID_ARGUMENT == static_cast<int>(StatusCode::kInvalidArgument));
static_assert(TEPAL_OUT_OF_MEMORY == static_cast<int>(StatusCode::kOutOfMemory));
static_assert(TEPAL_UNSUPPORTED == static_cast<int>(StatusCode::kUnsupported));
static_assert(TEPAL_CORRUPT == static_cast<int>(StatusCode::kCorrupt));
static_assert(TEPAL_IO_ERROR == static_cast<int>(StatusCode::kIoError));

// No std::string: to report that there is no memory must not need any.
inline thread_local char last_error_message[512] = "";

template <class... Values>
void SetErrorMessage(const char* format, Values... values) {
  std::snprintf(last_error_message, sizeof(last_error_message), format, values...);
}

// Remembers the first thing that is wrong.
class Check {
 public:
  bool ok() const { return ok_; }

  Check& NotNull(const char* name, const void* pointer) {
    return Require(pointer != nullptr, "%s is null", name);
  }

  // A pointer to `size` elements, or anything if there are none.
  Check& Array(const char* name, const void* pointer, size_t size) {
    return Require(pointer != nullptr || size == 0, "%s is null, but its size is %zu", name, size);
  }

  template <class T>
  Check& Struct(const char* name, const T* pointer) {
    if (!NotNull(name, pointer).ok()) return *this;
    return Require(pointer->struct_size == sizeof(T),
                   "%s->struct_size is %zu, but must be %zu: use the macro that ends in _INIT",
                   name, pointer->struct_size, sizeof(T));
  }

  Check& Column(const tepal_column* column) {
    if (!Struct("keys", column).ok()) return *this;
    Require(column->kind >= TEPAL_COLUMN_U64 && column->kind <= TEPAL_COLUMN_HASHES,
            "keys->kind is %d, but must be one of TEPAL_COLUMN_*", column->kind);
    if (!ok_) return *this;
    if (IsStrings(*column)) Array("keys->offsets", column->offsets, column->num_rows);
    return ok_ && HasValues(*column) ? NotNull("keys->values", column->values) : *this;
  }

  // A column, and an output with room for something for each row.
  Check& ColumnTo(const tepal_column* column, const char* name, const void* output) {
    return Column(column).ok() ? Array(name, output, column->num_rows) : *this;
  }

  Check& Filter(const tepal_filter* filter) { return NotNull("filter", filter); }

  // `memory` may be null.
  Check& Memory(const tepal_memory* memory) {
    return memory == nullptr ? *this : Struct("memory", memory);
  }

  template <class... Values>
  Check& Require(bool condition, const char* format, Values... values) {
    if (ok_ && !condition) SetErrorMessage(format, values...);
    ok_ = ok_ && condition;
    return *this;
  }

 private:
  static bool IsStrings(const tepal_column& column) {
    return column.kind == TEPAL_COLUMN_STRINGS32 || column.kind == TEPAL_COLUMN_STRINGS64;
  }

  // Strings may all be empty.
  static bool HasValues(const tepal_column& column) {
    if (column.num_rows == 0 || !IsStrings(column)) return column.num_rows != 0;
    const auto spans_bytes = [&](const auto* offsets) {
      return offsets[0] != offsets[column.num_rows];
    };
    return column.kind == TEPAL_COLUMN_STRINGS32
               ? spans_bytes(static_cast<const int32_t*>(column.offsets))
               : spans_bytes(static_cast<const int64_t*>(column.offsets));
  }

  bool ok_ = true;
};

// Runs `body`, which returns a Status, if the arguments are fine. What the standard library throws
// in it is for lack of memory.
template <class Body>
tepal_status Call(const Check& check, const Body& body) noexcept {
  if (!check.ok()) return TEPAL_INVALID_ARGUMENT;
  try {
    const Status status = body();
    if (!status.ok()) SetErrorMessage("%s", status.message().c_str());
    return static_cast<tepal_status>(status.code());
  } catch (...) {
    SetErrorMessage("%s", "out of memory");
    return TEPAL_OUT_OF_MEMORY;
  }
}

}  // namespace tepal

#endif  // TEPAL_DISPATCH_C_API_CALL_H_
