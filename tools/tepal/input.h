// Bytes from a file or a pipe, through a buffer of fixed size.
#ifndef TEPAL_TOOLS_TEPAL_INPUT_H_
#define TEPAL_TOOLS_TEPAL_INPUT_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tepal/status.h"

namespace tepal::tool {

inline constexpr std::string_view kStandardInput = "-";

// A window over the input: the bytes that were read and not yet consumed. Bytes that were consumed
// stay where they are until the next Fill().
class Input {
 public:
  // `path` may be kStandardInput.
  static Result<Input> Open(const std::string& path);

  Input(Input&& other) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  // An error if the output is this regular file: what is written there would be lost, or read here.
  Status CheckIsNot(const struct stat& output) const;

  // "standard input", or the path: the beginning of every error message.
  const std::string& name() const { return name_; }
  // The bytes of the input, if it is a file. Pipes do not say.
  std::optional<uint64_t> size() const { return size_; }
  uint64_t bytes_consumed() const { return bytes_consumed_; }

  char* unread() { return buffer_.data() + begin_; }
  size_t num_unread() const { return end_ - begin_; }
  void Consume(size_t num_bytes);

  // Reads at least one byte more, behind the unread ones; false at the end of the input. The window
  // grows if it has no room, up to kMaxWindowBytes: for lines as long as that, an error.
  Result<bool> Fill();

  // Back to where the input stood at Open(). Only for files (size() has a value).
  Status Rewind();

  static constexpr size_t kWindowBytes = size_t{1} << 20;
  static constexpr size_t kMaxWindowBytes = size_t{256} << 20;

 private:
  Input(std::string name, int descriptor);

  std::string name_;
  int descriptor_;
  std::optional<uint64_t> size_;
  uint64_t start_ = 0;  // of a file, where it stood at Open()
  uint64_t bytes_consumed_ = 0;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_INPUT_H_
