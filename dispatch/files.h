// Whole files: mapped or read, and replaced as one. Errors name the file and say what the system
// said.
#ifndef TEPAL_DISPATCH_FILES_H_
#define TEPAL_DISPATCH_FILES_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "tepal/status.h"

namespace tepal {

// An error if there is a NUL in it: the system would take what stands before that for the path.
// Whatever opens a file here asks this first.
Status CheckPath(const std::string& path);

// The bytes of a regular file, read-only. An empty file has none.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<uint8_t> bytes) : bytes_(bytes) {}

  std::span<uint8_t> bytes_;
};

// A regular file, or its first `max_bytes` bytes. A copy: for files that others may change.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

// Writes all of `bytes`, in as many pieces as the system wants. `path` is for the message.
Status WriteAll(int descriptor, std::span<const uint8_t> bytes, const std::string& path);

// Makes `path` a file of these pieces, one behind the other, or leaves it as it was. What is there
// already must be a regular file.
Status ReplaceFile(const std::string& path, std::initializer_list<std::span<const uint8_t>> pieces);

}  // namespace tepal

#endif  // TEPAL_DISPATCH_FILES_H_
