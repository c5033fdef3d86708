// Columns as engines hold them, in Arrow's memory layout. Nothing here owns memory.
#ifndef TEPAL_COLUMNS_H_
#define TEPAL_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tepal {

// Strings or binaries: row i is data[offsets[i] .. offsets[i + 1]). There are size + 1 offsets,
// which do not decrease.
class StringColumn {
 public:
  StringColumn() = default;  // no rows
  StringColumn(const char* data, const int32_t* offsets, size_t size)
      : data_(data), offsets32_(offsets), size_(size) {}
  StringColumn(const char* data, const int64_t* offsets, size_t size)
      : data_(data), offsets64_(offsets), size_(size) {}

  size_t size() const { return size_; }

  std::string_view operator[](size_t row) const {
    return offsets32_ != nullptr ? Row(offsets32_, row) : Row(offsets64_, row);
  }

 private:
  template <typename Offset>
  std::string_view Row(const Offset* offsets, size_t row) const {
    return {data_ + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row])};
  }

  const char* data_ = nullptr;
  const int32_t* offsets32_ = nullptr;
  const int64_t* offsets64_ = nullptr;
  size_t size_ = 0;
};

// Which rows are not null: bit (offset + i) of `bits`, least significant bit first, is 1 if row i
// has a value. Without `bits` every row has one. A null is never inserted and never matches.
struct Validity {
  const uint8_t* bits = nullptr;
  size_t offset = 0;  // in bits, as in a sliced Arrow array
};

}  // namespace tepal

#endif  // TEPAL_COLUMNS_H_
