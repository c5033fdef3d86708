#include "tests/system_faults.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace tepal::testing {
namespace {

thread_local ScopedFault* g_fault = nullptr;

void DieIf(bool now) {
  if (now) kill(getpid(), SIGKILL);
}

void NoteOpened(int descriptor) {
  if (g_fault != nullptr) g_fault->Opened(descriptor);
}

// `call`, which fails with -1 and errno, with the fault that is in force.
template <class Call>
auto WithFault(const SystemCall& noted, const Call& call) -> decltype(call()) {
  if (g_fault == nullptr) return call();
  const Fault fault = g_fault->Next(noted);
  DieIf(fault.death == Death::kBefore);
  if (fault.error != 0) {
    errno = fault.error;
    return -1;
  }
  const auto result = call();
  DieIf(fault.death == Death::kAfter);
  return result;
}

// The same for read and write, whose `call` takes the bytes that it may transfer.
template <class Call>
ssize_t TransferWithFault(const SystemCall& noted, const Call& call) {
  if (g_fault == nullptr) return call(noted.num_bytes);
  const Fault fault = g_fault->Next(noted);
  DieIf(fault.death == Death::kBefore);
  if (fault.error != 0) {
    errno = fault.error;
    return -1;
  }
  const size_t num_bytes = std::min(noted.num_bytes, fault.max_bytes);
  const ssize_t result = fault.pretend ? static_cast<ssize_t>(num_bytes) : call(num_bytes);
  DieIf(fault.death == Death::kAfter);
  return result;
}

}  // namespace

ScopedFault::ScopedFault(const Fault& fault) : fault_(fault), num_left_(fault.num_good) {
  g_fault = this;
}

ScopedFault::~ScopedFault() { g_fault = nullptr; }

Fault ScopedFault::Next(const SystemCall& call) {
  constexpr size_t kMaxCalls = 1'000'000;
  if (calls_.size() == kMaxCalls) {
    std::fputs("system calls without end\n", stderr);
    std::abort();
  }
  calls_.push_back(call);
  if (!fault_.call.empty() && fault_.call != call.name) return {};
  if (num_left_-- > 0 || (fault_.once && happened_)) return {};
  happened_ = true;
  return fault_;
}

}  // namespace tepal::testing

using tepal::testing::NoteOpened;
using tepal::testing::TransferWithFault;
using tepal::testing::WithFault;

// The linker (--wrap) turns calls of write into calls of __wrap_write, and __real_write into write:
// with AddressSanitizer into what that puts in its place.
extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker asks for.
int __real_close(int);
int __real_dup(int);
int __real_fcntl(int, int, ...);
int __real_fstat(int, struct stat*);
int __real_fsync(int);
off_t __real_lseek(int, off_t, int);
void* __real_mmap(void*, size_t, int, int, int, off_t);
int __real_open(const char*, int, ...);
ssize_t __real_read(int, void*, size_t);
int __real_rename(const char*, const char*);
int __real_stat(const char*, struct stat*);
int __real_unlink(const char*);
ssize_t __real_write(int, const void*, size_t);

// As Linux does, it frees the descriptor even if it fails.
int __wrap_close(int descriptor) {
  bool is_closed = false;
  const int result = WithFault({"close", 0, descriptor}, [&] {
    is_closed = true;
    return __real_close(descriptor);
  });
  const int error = errno;
  if (!is_closed) __real_close(descriptor);
  errno = error;
  return result;
}

int __wrap_dup(int descriptor) {
  return WithFault({"dup"}, [&] { return __real_dup(descriptor); });
}

// Whatever the command takes: an int, or a pointer (libgcov locks its files).
int __wrap_fcntl(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return WithFault({"fcntl"}, [&] { return __real_fcntl(descriptor, command, argument); });
}

int __wrap_fstat(int descriptor, struct stat* info) {
  return WithFault({"fstat"}, [&] { return __real_fstat(descriptor, info); });
}

int __wrap_fsync(int descriptor) {
  return WithFault({"fsync", 0, descriptor}, [&] { return __real_fsync(descriptor); });
}

off_t __wrap_lseek(int descriptor, off_t offset, int whence) {
  return WithFault({"lseek"}, [&] { return __real_lseek(descriptor, offset, whence); });
}

void* __wrap_mmap(void* at, size_t num_bytes, int protection, int flags, int file, off_t offset) {
  void* memory = MAP_FAILED;
  WithFault({"mmap"}, [&] {
    memory = __real_mmap(at, num_bytes, protection, flags, file, offset);
    return 0;
  });
  return memory;
}

int __wrap_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t permissions = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return WithFault({"open"}, [&] {
    const int descriptor = __real_open(path, flags, permissions);
    NoteOpened(descriptor);
    return descriptor;
  });
}

ssize_t __wrap_read(int descriptor, void* bytes, size_t num_bytes) {
  return TransferWithFault({"read", num_bytes, descriptor},
                           [&](size_t count) { return __real_read(descriptor, bytes, count); });
}

int __wrap_rename(const char* from, const char* to) {
  return WithFault({"rename"}, [&] { return __real_rename(from, to); });
}

int __wrap_stat(const char* path, struct stat* info) {
  return WithFault({"stat"}, [&] { return __real_stat(path, info); });
}

int __wrap_unlink(const char* path) {
  return WithFault({"unlink"}, [&] { return __real_unlink(path); });
}

ssize_t __wrap_write(int descriptor, const void* bytes, size_t num_bytes) {
  return TransferWithFault({"write", num_bytes, descriptor},
                           [&](size_t count) { return __real_write(descriptor, bytes, count); });
}

#ifdef __LP64__
// The names that code with _FILE_OFFSET_BITS=64 calls; where long has 64 bits they are the same
// functions.
int __wrap_fcntl64(int, int, ...) __attribute__((alias("__wrap_fcntl")));
int __wrap_fstat64(int, struct stat*) __attribute__((alias("__wrap_fstat")));
off_t __wrap_lseek64(int, off_t, int) __attribute__((alias("__wrap_lseek")));
void* __wrap_mmap64(void*, size_t, int, int, int, off_t) __attribute__((alias("__wrap_mmap")));
int __wrap_open64(const char*, int, ...) __attribute__((alias("__wrap_open")));
int __wrap_stat64(const char*, struct stat*) __attribute__((alias("__wrap_stat")));
#endif
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
