// Keys from text lines, raw integers or a CSV column, a batch at a time. Memory stays that of the
// Input's window, however long the input is.
#ifndef TEPAL_TOOLS_TEPAL_KEY_READER_H_
#define TEPAL_TOOLS_TEPAL_KEY_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tepal/columns.h"
#include "tepal/status.h"
#include "tools/tepal/input.h"

namespace tepal::tool {

enum class KeyFormat {
  kText,  // a key is a line, without its '\n'; every other byte counts, NUL and '\r' too
  kU32,   // raw little-endian integers
  kU64,
  kCsv,  // RFC 4180; a key is a field of one column, without its quotes
};

struct InputOptions {
  std::string path{kStandardInput};
  KeyFormat format = KeyFormat::kText;
  bool crlf = false;  // kText: '\r' before '\n' belongs to the end of the line
  // kCsv. Records may end with '\n' or '\r\n'; empty lines are no records.
  std::string column = "1";  // a name, or a number from 1
  bool header = true;        // the first record has the names
  char delimiter = ',';

  // An error if there is something that has no meaning for the format.
  Status Validate() const;
};

using KeyColumn = std::variant<std::span<const uint64_t>, std::span<const uint32_t>, StringColumn>;

// Some keys of the input. Valid until the reader's next Next().
struct KeyBatch {
  KeyColumn keys;
  // Where the keys stand in the input, if their rows are not `keys` as they are: kCsv, and integers
  // on big-endian machines.
  std::vector<std::string_view> records;

  size_t size() const {
    return std::visit([](const auto& column) { return column.size(); }, keys);
  }
  // What stands in the input for a key: the line or record, without the end of the line, or the
  // bytes of the integer.
  std::string_view Row(size_t i) const;
};

// In a batch of lines or records. It bounds what is known of each of them: the input's window grows
// with the longest one, and may then hold millions of short ones.
inline constexpr size_t kMaxRowsPerBatch = 65536;

class KeyReader {
 public:
  static Result<std::unique_ptr<KeyReader>> Open(const InputOptions& options);
  virtual ~KeyReader() = default;

  // The next keys, one or more; false at the end of the input.
  virtual Result<bool> Next(KeyBatch& batch) = 0;

  // What follows Row() in the input ("" for integers; that of the first line, if lines differ), and
  // what stands before the first key (the header of a CSV file, with its end of line). The latter
  // is known after the first Next().
  virtual std::string_view row_end() const { return "\n"; }
  virtual std::string_view preamble() const { return ""; }

  const Input& input() const { return input_; }

  // How many keys the input has. Reads text and CSV to their end, and goes back. Only for files.
  virtual Result<uint64_t> CountAndRewind();

 protected:
  explicit KeyReader(Input input) : input_(std::move(input)) {}

  // Forgets where it was, for Input::Rewind().
  virtual void Reset() {}

  Input input_;
};

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_KEY_READER_H_
