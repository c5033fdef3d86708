// What a person hands to the tool: numbers with units, and keys as text, integers or CSV. Nothing
// crashes; a reader goes on to the end or an error, gives as many keys when it starts again, and
// its rows are pieces of the input, in their order, however few bytes come at a time.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "tests/system_faults.h"
#include "tools/tepal/key_reader.h"
#include "tools/tepal/units.h"

namespace tepal::fuzz {
namespace {

using tool::InputOptions;
using tool::KeyBatch;
using tool::KeyFormat;
using tool::KeyReader;

// As the tool does: arguments end with a NUL, which std::from_chars of a long double reads
// (libstdc++ 12).
void ParseUnits(std::string_view bytes) {
  const std::string text(bytes);
  static_cast<void>(tool::ParseCount(text));
  static_cast<void>(tool::ParseBytes(text));
  static_cast<void>(tool::ParseNanoseconds(text));
  static_cast<void>(tool::ParseSeed(text));
  const Result<double> share = tool::ParseShare(text);
  TEPAL_FUZZ_EXPECT(!share.ok() || (*share >= 0 && *share <= 1));
  const Result<double> rate = tool::ParseRate(text);
  TEPAL_FUZZ_EXPECT(rate.ok() == (share.ok() && *share > 0));
}

// A file in memory. Readers open it by its name.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes) : descriptor_(memfd_create("keys", 0)) {
    TEPAL_FUZZ_EXPECT(write(descriptor_, bytes.data(), bytes.size()) ==
                      static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// What a reader gives up to the end, or to an error.
struct Answer {
  std::vector<std::string> rows;
  std::string preamble;
  bool is_whole = false;

  bool operator==(const Answer&) const = default;
};

Answer ReadRows(KeyReader& reader) {
  Answer answer;
  for (KeyBatch batch;;) {
    const Result<bool> more = reader.Next(batch);
    answer.preamble = reader.preamble();
    answer.is_whole = more.ok();
    if (!more.ok() || !*more) return answer;
    TEPAL_FUZZ_EXPECT(batch.size() > 0);
    for (size_t i = 0; i < batch.size(); ++i) answer.rows.emplace_back(batch.Row(i));
  }
}

void ExpectRowsOf(std::string_view text, const std::vector<std::string>& rows) {
  size_t row_end = 0;
  for (const std::string& row : rows) {
    const size_t row_begin = text.find(row, row_end);
    TEPAL_FUZZ_EXPECT(row_begin != std::string_view::npos);
    row_end = row_begin + row.size();
  }
}

// None if the reader cannot be opened, or cannot count.
std::optional<Answer> ReadKeys(const InputOptions& options) {
  Result<std::unique_ptr<KeyReader>> reader = KeyReader::Open(options);
  if (!reader.ok()) return std::nullopt;
  const Result<uint64_t> counted = (*reader)->CountAndRewind();
  if (!counted.ok()) return std::nullopt;
  Answer answer = ReadRows(**reader);
  // Of integers only the bytes were counted, and the last ones may be no key.
  const bool is_counted_by_size =
      options.format == KeyFormat::kU32 || options.format == KeyFormat::kU64;
  TEPAL_FUZZ_EXPECT(answer.is_whole ? answer.rows.size() == *counted : is_counted_by_size);
  return answer;
}

std::optional<Answer> ReadKeysPiecewise(const InputOptions& options, size_t max_bytes) {
  const testing::ScopedFault fault({.call = "read", .once = false, .max_bytes = max_bytes});
  return ReadKeys(options);
}

}  // namespace
}  // namespace tepal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tepal::fuzz;
  FuzzInput input(data, size);
  InputOptions options;
  options.format = static_cast<KeyFormat>(input.TakeBelow(4));
  const uint8_t flags = input.Take<uint8_t>();
  options.crlf = options.format == KeyFormat::kText && (flags & 1) != 0;
  if (options.format == KeyFormat::kCsv) {
    options.header = (flags & 2) != 0;
    options.delimiter = (flags & 4) != 0 ? ';' : ',';
    if ((flags & 8) != 0) options.column = "b";
  }
  const std::span<const uint8_t> rest = input.TakeBytes(size);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  ParseUnits(text);
  const MemoryFile file(rest);
  options.path = file.path();
  const std::optional<Answer> answer = ReadKeys(options);
  if (answer) ExpectRowsOf(text, answer->rows);
  const size_t max_bytes = 1 + flags / 16;
  TEPAL_FUZZ_EXPECT(ReadKeysPiecewise(options, max_bytes) == answer);
  return 0;
}
