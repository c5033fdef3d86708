#include "dispatch/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace tepal {
namespace {

// "cannot open /a/b: No such file or directory".
Status SystemError(const std::string& action, const std::string& path, int error) {
  return Status::IoError("cannot " + action + " " + path + ": " +
                         std::generic_category().message(error));
}

Status NotRegular(const std::string& path) {
  return Status::IoError(path + " is not a regular file");
}

// Repeats a call that a signal has interrupted before it did anything, as happens on slow file
// systems (NFS, FUSE). Not for close, which frees the descriptor all the same, nor for rename,
// which may have happened.
template <class Call>
auto UntilNotInterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (is_open()) close(descriptor_);
  }

  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

  // For written files: some file systems report a failed write only now. What fsync has stored is
  // not lost if a signal interrupts this.
  bool Close() { return close(std::exchange(descriptor_, -1)) == 0 || errno == EINTR; }

 private:
  int descriptor_;
};

Descriptor OpenFile(const std::string& path, int flags, mode_t permissions = 0) {
  return Descriptor(
      UntilNotInterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC, permissions); }));
}

bool Sync(const Descriptor& file) {
  return UntilNotInterrupted([&] { return fsync(file.get()); }) == 0;
}

struct RegularFile {
  Descriptor descriptor;
  size_t size;
};

Result<RegularFile> OpenToRead(const std::string& path) {
  if (Status status = CheckPath(path); !status.ok()) return status;
  // O_NONBLOCK: without it, opening a FIFO waits for somebody to write.
  Descriptor descriptor = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (!descriptor.is_open()) return SystemError("open", path, errno);
  struct stat info;
  if (fstat(descriptor.get(), &info) != 0) return SystemError("read", path, errno);
  if (!S_ISREG(info.st_mode)) return NotRegular(path);
  // More than 4 GiB on a 32-bit machine.
  if (!std::in_range<size_t>(info.st_size)) return SystemError("read", path, EFBIG);
  return RegularFile{std::move(descriptor), static_cast<size_t>(info.st_size)};
}

// A new file next to `path`, which it replaces in Commit(). Without that it disappears.
class TemporaryFile {
 public:
  static Result<TemporaryFile> Beside(const std::string& path, mode_t permissions);

  TemporaryFile(TemporaryFile&& other) noexcept
      : descriptor_(std::move(other.descriptor_)), name_(std::exchange(other.name_, {})) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) unlink(name_.c_str());
  }

  Status Write(std::span<const uint8_t> bytes) { return WriteAll(descriptor_.get(), bytes, name_); }
  Status Commit(const std::string& path);

 private:
  TemporaryFile(Descriptor descriptor, std::string name)
      : descriptor_(std::move(descriptor)), name_(std::move(name)) {}

  Descriptor descriptor_;
  std::string name_;  // empty once the file has its final name
};

// `path` with `suffix`, and less of the name of the file if that became too long.
std::string WithSuffix(const std::string& path, const std::string& suffix) {
  const size_t name_size = path.size() - (path.rfind('/') + 1);  // npos + 1 is 0
  const size_t room = NAME_MAX - suffix.size();
  return path.substr(0, path.size() - (name_size > room ? name_size - room : 0)) + suffix;
}

// mkstemp would do, were it not for its permissions, which ignore the umask.
Result<TemporaryFile> TemporaryFile::Beside(const std::string& path, mode_t permissions) {
  static std::atomic<uint64_t> next_number = 0;
  for (;;) {
    std::string name =
        WithSuffix(path, ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(next_number++));
    Descriptor file = OpenFile(name, O_WRONLY | O_CREAT | O_EXCL, permissions);
    if (file.is_open()) return TemporaryFile(std::move(file), std::move(name));
    if (errno != EEXIST) return SystemError("create", name, errno);
  }
}

Status TemporaryFile::Commit(const std::string& path) {
  if (!Sync(descriptor_)) return SystemError("write", name_, errno);
  if (!descriptor_.Close()) return SystemError("write", name_, errno);
  if (std::rename(name_.c_str(), path.c_str()) != 0) return SystemError("replace", path, errno);
  name_.clear();
  return Status::Ok();
}

// To let the new name survive a power failure. Best effort: a directory may be writable and not
// readable, and without this the worst is that the old file comes back.
Descriptor OpenDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return OpenFile(directory, O_RDONLY | O_DIRECTORY);
}

// /dev/stdout and its like: were one of them replaced, every process would miss it.
bool IsLinkToDescriptor(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).native().starts_with("/proc/");
}

// The permissions for a new file at `path`, before the umask: those of the old one, so that it does
// not become readable for all. What is not known to be a regular file, or to be missing, is not
// replaced.
Result<mode_t> PermissionsToReplace(const std::string& path) {
  constexpr mode_t kAll = 0777, kNew = 0666;
  if (Status status = CheckPath(path); !status.ok()) return status;
  // Also if that descriptor is closed, so that there seems to be no file.
  if (IsLinkToDescriptor(path)) return NotRegular(path);
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return kNew;
    return SystemError("replace", path, errno);
  }
  if (!S_ISREG(info.st_mode)) return NotRegular(path);
  return info.st_mode & kAll;
}

}  // namespace

Status CheckPath(const std::string& path) {
  if (path.find('\0') == std::string::npos) return Status::Ok();
  return Status::InvalidArgument("a path with a NUL in it, behind " + std::string(path.c_str()));
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const Result<RegularFile> file = OpenToRead(path);
  if (!file.ok()) return file.status();
  if (file->size == 0) return MappedFile({});  // which mmap refuses
  void* memory = mmap(nullptr, file->size, PROT_READ, MAP_SHARED, file->descriptor.get(), 0);
  if (memory == MAP_FAILED) return SystemError("map", path, errno);
  return MappedFile({static_cast<uint8_t*>(memory), file->size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const Result<RegularFile> file = OpenToRead(path);
  if (!file.ok()) return file.status();
  std::string text(max_bytes, '\0');
  size_t size = 0;
  while (size < max_bytes) {
    const ssize_t num_read = UntilNotInterrupted(
        [&] { return read(file->descriptor.get(), text.data() + size, max_bytes - size); });
    if (num_read < 0) return SystemError("read", path, errno);
    if (num_read == 0) break;
    size += static_cast<size_t>(num_read);
  }
  text.resize(size);
  return text;
}

Status WriteAll(int descriptor, std::span<const uint8_t> bytes, const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 30;  // Linux writes at most 2 GiB at once
  while (!bytes.empty()) {
    const ssize_t written = UntilNotInterrupted(
        [&] { return write(descriptor, bytes.data(), std::min(bytes.size(), kMaxBytes)); });
    if (written < 0) return SystemError("write", path, errno);
    // Drivers have been seen that say so at the end of a device.
    if (written == 0) return SystemError("write", path, ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return Status::Ok();
}

Status ReplaceFile(const std::string& path,
                   std::initializer_list<std::span<const uint8_t>> pieces) {
  const Result<mode_t> permissions = PermissionsToReplace(path);
  if (!permissions.ok()) return permissions.status();
  Result<TemporaryFile> file = TemporaryFile::Beside(path, *permissions);
  if (!file.ok()) return file.status();
  for (const std::span<const uint8_t> piece : pieces) {
    if (Status status = file->Write(piece); !status.ok()) return status;
  }
  // Opened before the file is replaced: from then on nothing may fail, not even for lack of memory.
  const Descriptor directory = OpenDirectoryOf(path);
  if (Status status = file->Commit(path); !status.ok()) return status;
  if (directory.is_open()) static_cast<void>(Sync(directory));
  return Status::Ok();
}

}  // namespace tepal
