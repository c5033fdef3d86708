#include "tools/tepal/csv_reader.h"

#include <algorithm>

namespace tepal::tool {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Field {
  std::string_view value = {};  // without quotes; in the text or in `scratch`
  size_t end = 0;         // where the delimiter, the end of the line or the end of the text is
  bool complete = false;  // false: it goes on behind the text
  const char* error = nullptr;
};

bool EndsLine(std::string_view text, size_t at) { return at < text.size() && text[at] == '\n'; }

Field ParsePlain(std::string_view text, size_t begin, char delimiter, bool at_end) {
  size_t end = begin;
  while (end < text.size() && text[end] != delimiter && text[end] != '\n') ++end;
  std::string_view value = text.substr(begin, end - begin);
  if (EndsLine(text, end) && value.ends_with('\r')) value.remove_suffix(1);
  return {.value = value, .end = end, .complete = at_end || end < text.size()};
}

// `begin` is behind the opening quote. Two quotes stand for one.
Field ParseQuoted(std::string_view text, size_t begin, char delimiter, bool at_end,
                  std::string& scratch) {
  scratch.clear();
  size_t quote = text.find('"', begin);
  while (quote != std::string_view::npos && quote + 1 < text.size() && text[quote + 1] == '"') {
    scratch.append(text, begin, quote + 1 - begin);
    begin = quote + 2;
    quote = text.find('"', begin);
  }
  if (quote == std::string_view::npos) {
    return {.error = at_end ? "a quote is opened and never closed" : nullptr};
  }
  scratch.append(text, begin, quote - begin);
  size_t end = quote + 1;
  if (end + 1 < text.size() && text[end] == '\r' && text[end + 1] == '\n') ++end;
  // What follows decides: another quote, '\r' with or without '\n'.
  if (end + 1 >= text.size() && !at_end && !(end < text.size() && text[end] == delimiter) &&
      !EndsLine(text, end)) {
    return {};
  }
  if (end < text.size() && text[end] != delimiter && text[end] != '\n') {
    return {.error = "there is text between a closing quote and the next delimiter"};
  }
  return {.value = scratch, .end = end, .complete = true};
}

struct Record {
  size_t num_bytes = 0;  // with the end of the line; 0: it goes on behind the text
  size_t num_fields = 0;
  const char* error = nullptr;
};

// Calls visit(index, value) for each field of the record at the beginning of `text`.
template <typename Visit>
Record ParseRecord(std::string_view text, char delimiter, bool at_end, std::string& scratch,
                   const Visit& visit) {
  Record record;
  for (size_t begin = 0;;) {
    const bool quoted = begin < text.size() && text[begin] == '"';
    const Field field = quoted ? ParseQuoted(text, begin + 1, delimiter, at_end, scratch)
                               : ParsePlain(text, begin, delimiter, at_end);
    record.error = field.error;
    if (!field.complete) return record;
    visit(record.num_fields++, field.value);
    begin = field.end + 1;
    if (field.end < text.size() && text[field.end] == delimiter) continue;
    record.num_bytes = std::min(begin, text.size());
    return record;
  }
}

std::string_view WithoutLineEnd(std::string_view text) {
  if (!text.ends_with('\n')) return text;
  text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return '0' <= c && c <= '9'; });
}

uint64_t NumLines(std::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

Status CsvReader::Wrong(const std::string& what) const {
  return Status::Corrupt(input_.name() + ":" + std::to_string(line_) + ": " + what);
}

void CsvReader::Take(std::string_view text) {
  if (!has_crlf_.has_value() && !WithoutLineEnd(text).empty()) has_crlf_ = text.ends_with("\r\n");
  line_ += NumLines(text);
  input_.Consume(text.size());
}

Status CsvReader::FindColumn(const Header& header) {
  column_ = header.column;
  if (IsNumber(options_.column)) {
    const size_t number = std::stoul(options_.column);
    if (number == 0) return Status::InvalidArgument("columns are counted from 1");
    column_ = number - 1;
  }
  if (column_.has_value()) return Status::Ok();
  const std::string& names = header.names;
  return Status::InvalidArgument(input_.name() + ": there is no column '" + options_.column +
                                 "'; there " + (names.empty() ? "is no header" : "are: " + names));
}

Status CsvReader::SkipByteOrderMark() {
  for (;;) {
    const std::string_view text(input_.unread(), input_.num_unread());
    if (text.starts_with(kByteOrderMark)) input_.Consume(kByteOrderMark.size());
    if (text.size() >= kByteOrderMark.size() || !kByteOrderMark.starts_with(text)) break;
    const Result<bool> more = input_.Fill();
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  return Status::Ok();
}

// More than one read may bring: a pipe has only pieces of a long record, and looking at all of it
// after each of them would take quadratic time.
Result<bool> CsvReader::FillForRecord() {
  const size_t num_seen = input_.num_unread();
  const size_t enough = num_seen < Input::kWindowBytes ? num_seen + 1 : 2 * num_seen;
  while (input_.num_unread() < enough) {
    const Result<bool> more = input_.Fill();
    if (!more.ok() || !*more) return more;
  }
  return true;
}

void CsvReader::Header::Add(size_t index, std::string_view name, const std::string& wanted) {
  constexpr size_t kMaxShown = 500;
  if (!column.has_value() && name == wanted) column = index;
  if (names.size() > kMaxShown) return;
  names += (names.empty() ? "" : ", ") + std::string(name.substr(0, kMaxShown));
  if (names.size() > kMaxShown) names += " ...";
}

Status CsvReader::ReadHeader(Header& header) {
  for (bool at_end = false;;) {
    const std::string_view text(input_.unread(), input_.num_unread());
    header = {};
    const Record record = ParseRecord(
        text, options_.delimiter, at_end, data_,
        [&](size_t index, std::string_view name) { header.Add(index, name, options_.column); });
    if (record.error != nullptr) return Wrong(record.error);
    const std::string_view taken = text.substr(0, record.num_bytes);
    preamble_ = taken;
    Take(taken);
    if (!WithoutLineEnd(taken).empty() || at_end) return Status::Ok();
    if (!taken.empty()) continue;  // an empty line
    const Result<bool> more = FillForRecord();
    if (!more.ok()) return more.status();
    at_end = !*more;
  }
}

Status CsvReader::TakeRecords(KeyBatch& batch, bool at_end) {
  while (input_.num_unread() > 0 && batch.records.size() < kMaxRowsPerBatch) {
    const std::string_view text(input_.unread(), input_.num_unread());
    const size_t data_size = data_.size();
    const Record record = ParseRecord(text, options_.delimiter, at_end, scratch_,
                                      [&](size_t index, std::string_view value) {
                                        if (index == *column_) data_ += value;
                                      });
    if (record.error != nullptr) return Wrong(record.error);
    if (record.num_bytes == 0) {  // it comes again, with more behind it
      data_.resize(data_size);
      break;
    }
    const std::string_view content = WithoutLineEnd(text.substr(0, record.num_bytes));
    if (!content.empty() && record.num_fields <= *column_) {
      return Wrong("the record has " + std::to_string(record.num_fields) + " fields, and column " +
                   std::to_string(*column_ + 1) + " is asked for");
    }
    if (!content.empty()) {
      batch.records.push_back(content);
      offsets_.push_back(static_cast<int64_t>(data_.size()));
    }
    Take(text.substr(0, record.num_bytes));
  }
  batch.keys = StringColumn(data_.data(), offsets_.data(), batch.records.size());
  return Status::Ok();
}

Result<bool> CsvReader::Next(KeyBatch& batch) {
  if (!column_.has_value()) {
    Header header;
    if (Status status = SkipByteOrderMark(); !status.ok()) return status;
    if (options_.header) {
      if (Status status = ReadHeader(header); !status.ok()) return status;
    }
    if (Status status = FindColumn(header); !status.ok()) return status;
  }
  batch.records.clear();
  data_.clear();
  offsets_.assign(1, 0);
  for (bool at_end = false;;) {
    if (Status status = TakeRecords(batch, at_end); !status.ok()) return status;
    if (!batch.records.empty()) return true;
    if (at_end) return false;
    const Result<bool> more = FillForRecord();
    if (!more.ok()) return more.status();
    at_end = !*more;
  }
}

void CsvReader::Reset() {
  column_.reset();
  preamble_.clear();
  has_crlf_.reset();
  line_ = 1;
}

}  // namespace tepal::tool
