#include "tools/tepal/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tepal::tool {
namespace {

Status Failed(const std::string& what, const std::string& name) {
  return Status::IoError("cannot " + what + " " + name + ": " + std::strerror(errno));
}

// Opening a FIFO waits for its writer, and a signal may come first.
int OpenToRead(const std::string& path) {
  int descriptor = -1;
  do {
    descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

}  // namespace

Result<Input> Input::Open(const std::string& path) {
  const bool standard = path == kStandardInput;
  const std::string name = standard ? "standard input" : path;
  // Of a duplicate both have one position: Rewind() and a later Open() agree about it.
  const int descriptor = standard ? dup(STDIN_FILENO) : OpenToRead(path);
  if (descriptor < 0) return Failed("open", name);
  Input input(name, descriptor);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return Failed("examine", name);
  if (S_ISDIR(status.st_mode)) return Status::IoError("cannot read " + name + ": is a directory");
  if (S_ISREG(status.st_mode)) {
    const off_t start = lseek(descriptor, 0, SEEK_CUR);
    if (start < 0) return Failed("find the position in", name);
    input.start_ = static_cast<uint64_t>(start);
    input.size_ = start < status.st_size ? static_cast<uint64_t>(status.st_size - start) : 0;
  }
#if defined(F_SETPIPE_SZ)
  // Fewer and larger reads. Not all kernels allow it, and all work without.
  if (S_ISFIFO(status.st_mode))
    (void)fcntl(descriptor, F_SETPIPE_SZ, static_cast<int>(kWindowBytes));
#endif
  return input;
}

Input::Input(std::string name, int descriptor)
    : name_(std::move(name)), descriptor_(descriptor), buffer_(kWindowBytes) {}

Input::Input(Input&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      start_(other.start_),
      bytes_consumed_(other.bytes_consumed_),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      end_(other.end_) {}

Input::~Input() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status Input::CheckIsNot(const struct stat& output) const {
  struct stat mine = {};
  const bool is_output = S_ISREG(output.st_mode) && fstat(descriptor_, &mine) == 0 &&
                         mine.st_dev == output.st_dev && mine.st_ino == output.st_ino;
  return is_output ? Status::InvalidArgument(name_ + " is the output as well") : Status::Ok();
}

void Input::Consume(size_t num_bytes) {
  begin_ += num_bytes;
  bytes_consumed_ += num_bytes;
}

Result<bool> Input::Fill() {
  // To the front of the buffer, which keeps raw keys aligned.
  std::memmove(buffer_.data(), unread(), num_unread());
  end_ -= std::exchange(begin_, 0);
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kMaxWindowBytes) {
      return Status::Unsupported(name_ + ": a line or record of " +
                                 std::to_string(kMaxWindowBytes >> 20) + " MiB or more at byte " +
                                 std::to_string(bytes_consumed_));
    }
    buffer_.resize(2 * buffer_.size());
  }
  ssize_t num_read = 0;
  do {
    num_read = read(descriptor_, buffer_.data() + end_, buffer_.size() - end_);
  } while (num_read < 0 && errno == EINTR);
  if (num_read < 0) return Failed("read", name_);
  end_ += static_cast<size_t>(num_read);
  return num_read > 0;
}

Status Input::Rewind() {
  if (lseek(descriptor_, static_cast<off_t>(start_), SEEK_SET) < 0) return Failed("rewind", name_);
  begin_ = end_ = 0;
  bytes_consumed_ = 0;
  return Status::Ok();
}

}  // namespace tepal::tool
