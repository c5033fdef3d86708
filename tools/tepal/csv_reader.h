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
  std::string_view row_end() const override { return has_crlf_.value_or(false) ? "\r\n" : "\n"; }
  std::string_view preamble() const override { return preamble_; }

 private:
  void Reset() override;
  // Skips what Excel begins its files with.
  Status SkipByteOrderMark();
  // Of a header, what is needed: it may have millions of columns.
  struct Header {
    std::optional<size_t> column;  // that has the wanted name
    std::string names;             // the first ones, for people

    void Add(size_t index, std::string_view name, const std::string& wanted);
  };
  // Takes the header: the first record that is not empty, if there is one.
  Status ReadHeader(Header& header);
  Status FindColumn(const Header& header);
  Result<bool> FillForRecord();
  // The records that are complete, up to the size of a batch.
  Status TakeRecords(KeyBatch& batch, bool at_end);
  // The text of a record or of an empty line has been taken.
  void Take(std::string_view text);
  Status Wrong(const std::string& what) const;

  InputOptions options_;
  std::optional<size_t> column_;  // counted from 0; not known before the header
  std::string preamble_;
  std::optional<bool> has_crlf_;  // at its end, the first line that is not empty
  uint64_t line_ = 1;             // of the next record
  // The keys of a batch, one behind the other.
  std::string data_;
  std::vector<int64_t> offsets_;
  std::string scratch_;
};

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_CSV_READER_H_
