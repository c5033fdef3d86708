// The CSV part of key_reader.h.
#ifndef TEPAL_TOOLS_TEPAL_CSV_READER_H_
#define TEPAL_TOOLS_TEPAL_CSV_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tepal/status.h"
#include "tools/tepal/key_reader.h"

namespace tepal::tool {

class CsvReader : public KeyReader {
 public:
  CsvReader(Input input, InputOptions options)
      : KeyReader(std::move(input)), options_(std::move(options)) {}

  Result<bool> Next(KeyBatch& batch) override;
  std::string_view preamble() const override { return preamble_; }

 private:
  void Reset() override;
  // Takes the header, if there is one, and finds the column.
  Status ReadHeader();
  Status FindColumn(const std::vector<std::string>& names);
  // The records that are complete, up to the size of a batch.
  Status TakeRecords(KeyBatch& batch, bool at_end);
  Status Wrong(const std::string& what) const;

  InputOptions options_;
  std::optional<size_t> column_;  // counted from 0; not known before the header
  std::string preamble_;
  uint64_t line_ = 1;  // of the next record
  // The keys of a batch, one behind the other.
  std::string data_;
  std::vector<int64_t> offsets_;
  std::string scratch_;
};

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_CSV_READER_H_
