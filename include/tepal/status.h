// How Tepal reports errors: `Status` (what went wrong, and what would be right) and `Result<T>` (a
// value or a Status). Calls that return one of them never throw, and the library never aborts or
// prints. Others throw std::bad_alloc if they need memory that cannot be had: those that return
// strings, vectors or a MachineProfile, Geometry::For, fpr::BestProbes, and the rates of
// tepal::fpr.
#ifndef TEPAL_STATUS_H_
#define TEPAL_STATUS_H_

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tepal {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument,  // the request can never work: fix the arguments
  kOutOfMemory,      // the request is valid, but this much memory cannot be had now
  kUnsupported,      // valid elsewhere: another CPU, another build, another layout
  kCorrupt,          // the bytes are not what they claim to be
  kIoError,          // the operating system said no
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return Status(); }
  static Status InvalidArgument(std::string message) {
    return {StatusCode::kInvalidArgument, std::move(message)};
  }
  static Status OutOfMemory(std::string message) {
    return {StatusCode::kOutOfMemory, std::move(message)};
  }
  static Status Unsupported(std::string message) {
    return {StatusCode::kUnsupported, std::move(message)};
  }
  static Status Corrupt(std::string message) { return {StatusCode::kCorrupt, std::move(message)}; }
  static Status IoError(std::string message) { return {StatusCode::kIoError, std::move(message)}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  // Empty if ok; otherwise a sentence for a person.
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// A T, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  // The value. Asking an error for its value is a mistake of the caller and throws std::logic_error
  // with the message of the Status (without exceptions: traps). Code that must not throw checks
  // ok() first.
  T& value() & { return Checked(), *value_; }
  const T& value() const& { return Checked(), *value_; }
  T&& value() && { return Checked(), std::move(*value_); }

  // Precondition: ok().
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  void Checked() const {
    if (ok()) return;
#if defined(__cpp_exceptions)
    throw std::logic_error("tepal: value() of an error: " + status_.message());
#else
    __builtin_trap();
#endif
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace tepal

#endif  // TEPAL_STATUS_H_
