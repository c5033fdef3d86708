#include "tools/tepal/key_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tools/tepal/csv_reader.h"

namespace tepal::tool {
namespace {

template <typename Integer>
class RawReader : public KeyReader {
 public:
  explicit RawReader(Input input) : KeyReader(std::move(input)) {}

  Result<bool> Next(KeyBatch& batch) override {
    size_t num_keys = 0;
    while (num_keys == 0) {
      const Result<bool> more = input_.Fill();
      if (!more.ok()) return more.status();
      if (!*more) return End();
      num_keys = input_.num_unread() / sizeof(Integer);
    }
    if constexpr (std::endian::native == std::endian::little) {
      // Aligned, because Fill() moves what was left over to the front of the buffer.
      batch.keys = std::span(reinterpret_cast<const Integer*>(input_.unread()), num_keys);
    } else {
      batch.keys = Convert(num_keys, batch.records);
    }
    input_.Consume(num_keys * sizeof(Integer));
    return true;
  }

  std::string_view row_end() const override { return ""; }

  Result<uint64_t> CountAndRewind() override { return input_.size().value() / sizeof(Integer); }

 private:
  // For big-endian machines, where the bytes of the input are not those of the integers.
  std::span<const Integer> Convert(size_t num_keys, std::vector<std::string_view>& records) {
    integers_.resize(num_keys);
    records.clear();
    for (size_t i = 0; i < num_keys; ++i) {
      const char* const bytes = input_.unread() + i * sizeof(Integer);
      std::reverse_copy(bytes, bytes + sizeof(Integer), reinterpret_cast<char*>(&integers_[i]));
      records.emplace_back(bytes, sizeof(Integer));
    }
    return integers_;
  }

  Result<bool> End() const {
    if (input_.num_unread() == 0) return false;
    return Status::Corrupt(input_.name() + ": the last " + std::to_string(input_.num_unread()) +
                           " bytes, at offset " + std::to_string(input_.bytes_consumed()) +
                           ", are no key; keys have " + std::to_string(sizeof(Integer)) +
                           " bytes each");
  }

  std::vector<Integer> integers_;
};

class LineReader : public KeyReader {
 public:
  LineReader(Input input, bool crlf) : KeyReader(std::move(input)), crlf_(crlf) {}

  Result<bool> Next(KeyBatch& batch) override {
    for (;;) {
      TakeLines();
      if (offsets_.size() > 1) break;
      const size_t num_before = input_.num_unread();
      const Result<bool> more = input_.Fill();
      if (!more.ok()) return more.status();
      if (*more) continue;
      if (num_before == 0) return false;
      // The last line, which has no '\n'.
      data_ = input_.unread();
      offsets_.push_back(static_cast<int64_t>(num_before));
      input_.Consume(num_before);
      break;
    }
    batch.keys = StringColumn(data_, offsets_.data(), offsets_.size() - 1);
    return true;
  }

  std::string_view row_end() const override { return crlf_ ? "\r\n" : "\n"; }

 private:
  // A StringColumn has no gaps, so lines move to the left, over the ends of the lines before.
  void TakeLines() {
    data_ = input_.unread();
    offsets_.assign(1, 0);
    char* to = input_.unread();
    const char* from = to;
    const char* const end = from + input_.num_unread();
    while (offsets_.size() <= kMaxRowsPerBatch) {
      const void* found = std::memchr(from, '\n', static_cast<size_t>(end - from));
      if (found == nullptr) break;
      const char* const newline = static_cast<const char*>(found);
      auto length = static_cast<size_t>(newline - from);
      if (crlf_ && length > 0 && newline[-1] == '\r') --length;
      std::memmove(to, from, length);
      to += length;
      from = newline + 1;
      offsets_.push_back(to - data_);
    }
    input_.Consume(static_cast<size_t>(from - data_));
  }

  bool crlf_;
  const char* data_ = nullptr;  // in the window of the input
  std::vector<int64_t> offsets_;
};

}  // namespace

std::string_view KeyBatch::Row(size_t i) const {
  if (!records.empty()) return records[i];
  return std::visit(
      [i](const auto& column) -> std::string_view {
        if constexpr (std::is_same_v<decltype(column), const StringColumn&>) {
          return column[i];
        } else {
          return {reinterpret_cast<const char*>(&column[i]), sizeof(column[i])};
        }
      },
      keys);
}

Status InputOptions::Validate() const {
  const InputOptions defaults;
  if (format != KeyFormat::kText && crlf) {
    return Status::InvalidArgument("--crlf is for --format text");
  }
  const bool is_about_csv =
      column != defaults.column || header != defaults.header || delimiter != defaults.delimiter;
  if (format != KeyFormat::kCsv && is_about_csv) {
    return Status::InvalidArgument("--column, --no-header and --delimiter are for --format csv");
  }
  return Status::Ok();
}

Result<std::unique_ptr<KeyReader>> KeyReader::Open(const InputOptions& options) {
  if (Status status = options.Validate(); !status.ok()) return status;
  Result<Input> input = Input::Open(options.path);
  if (!input.ok()) return input.status();
  std::unique_ptr<KeyReader> reader;
  switch (options.format) {
    case KeyFormat::kText:
      reader = std::make_unique<LineReader>(std::move(*input), options.crlf);
      break;
    case KeyFormat::kU32:
      reader = std::make_unique<RawReader<uint32_t>>(std::move(*input));
      break;
    case KeyFormat::kU64:
      reader = std::make_unique<RawReader<uint64_t>>(std::move(*input));
      break;
    case KeyFormat::kCsv:
      reader = std::make_unique<CsvReader>(std::move(*input), options);
      break;
  }
  return reader;
}

Result<uint64_t> KeyReader::CountAndRewind() {
  uint64_t num_keys = 0;
  for (KeyBatch batch;;) {
    const Result<bool> more = Next(batch);
    if (!more.ok()) return more.status();
    if (!*more) break;
    num_keys += batch.size();
  }
  Reset();
  if (Status status = input_.Rewind(); !status.ok()) return status;
  return num_keys;
}

}  // namespace tepal::tool
