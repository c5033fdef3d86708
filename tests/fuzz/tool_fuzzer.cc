// What a person hands to the tool: numbers with units, and keys as text, integers or CSV. Nothing
// crashes; a reader goes on to the end or an error, gives as many keys when it starts again, and
// its rows are pieces of the input, in their order.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_input.h"
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
  const Result<double> share = tool::ParseShare(text);
  TEPAL_FUZZ_EXPECT(!share.ok() || (*share >= 0 && *share <= 1));
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

// The number of keys up to the end; none if there is an error.
std::optional<uint64_t> CountKeys(KeyReader& reader, std::string_view text) {
  uint64_t num_keys = 0;
  for (size_t row_end = 0;;) {
    KeyBatch batch;
    const Result<bool> more = reader.Next(batch);
    if (!more.ok()) return std::nullopt;
    if (!*more) return num_keys;
    TEPAL_FUZZ_EXPECT(batch.size() > 0);
    num_keys += batch.size();
    for (size_t i = 0; i < batch.size(); ++i) {
      const std::string_view row = batch.Row(i);
      const size_t row_begin = text.find(row, row_end);
      TEPAL_FUZZ_EXPECT(row_begin != std::string_view::npos);
      row_end = row_begin + row.size();
    }
  }
}

void ReadKeys(const InputOptions& options, std::string_view text) {
  Result<std::unique_ptr<KeyReader>> reader = KeyReader::Open(options);
  if (!reader.ok()) return;
  const Result<uint64_t> counted = (*reader)->CountAndRewind();
  if (!counted.ok()) return;
  const std::optional<uint64_t> read = CountKeys(**reader, text);
  // Of integers only the bytes were counted, and the last ones may be no key.
  const bool is_counted_by_size =
      options.format == KeyFormat::kU32 || options.format == KeyFormat::kU64;
  TEPAL_FUZZ_EXPECT(read ? *read == *counted : is_counted_by_size);
}

}  // namespace
}  // namespace tepal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tepal::fuzz;
  FuzzInput input(data, size);
  InputOptions options;
  options.format = static_cast<KeyFormat>(input.TakeBelow(4));
  const uint8_t flags = input.Take<uint8_t>();
  options.crlf = (flags & 1) != 0;
  options.header = (flags & 2) != 0;
  options.delimiter = (flags & 4) != 0 ? ';' : ',';
  if ((flags & 8) != 0) options.column = "b";
  const std::span<const uint8_t> rest = input.TakeBytes(size);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  ParseUnits(text);
  const MemoryFile file(rest);
  options.path = file.path();
  ReadKeys(options, text);
  return 0;
}
