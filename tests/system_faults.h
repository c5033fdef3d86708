// System calls that fail, do less than they were asked to, or are the last thing that a process
// does. A test or fuzzer that links system_faults.cc (see system_faults.cmake) has the calls of the
// library, of the tool's parts and of itself go through it; they are as always unless a
// ScopedFault lives in the same thread.
#ifndef TEPAL_TESTS_SYSTEM_FAULTS_H_
#define TEPAL_TESTS_SYSTEM_FAULTS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace tepal::testing {

struct SystemCall {
  std::string_view name;
  size_t num_bytes = 0;  // that a read or a write was asked for
  int descriptor = -1;   // of read, write, fsync and close; the new one of open

  bool operator==(const SystemCall&) const = default;
};

enum class Death { kNone, kBefore, kAfter };

struct Fault {
  std::string_view call = {};  // "write"; empty for any
  int64_t num_good = 0;        // such calls that still work
  bool once = true;            // or every call from then on
  int error = 0;               // the call does nothing, and fails with this errno; 0 for success
  bool pretend = false;        // a write does nothing, and says that it did
  size_t max_bytes = std::numeric_limits<size_t>::max();  // of a read or a write; may be 0
  Death death = Death::kNone;                             // SIGKILL for this process
};

// While it lives, calls of this thread have this fault. There is at most one.
class ScopedFault {
 public:
  explicit ScopedFault(const Fault& fault);
  ~ScopedFault();
  ScopedFault(const ScopedFault&) = delete;
  ScopedFault& operator=(const ScopedFault&) = delete;

  // Whether a call was reached that had the fault.
  bool happened() const { return happened_; }
  // All calls since the constructor, in their order.
  const std::vector<SystemCall>& calls() const { return calls_; }

  // For system_faults.cc: notes the call. The fault if it is to have it, otherwise one that does
  // nothing.
  Fault Next(const SystemCall& call);
  // And what the last one, an open, has opened.
  void Opened(int descriptor) { calls_.back().descriptor = descriptor; }

 private:
  Fault fault_;
  int64_t num_left_;
  bool happened_ = false;
  std::vector<SystemCall> calls_;
};

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_SYSTEM_FAULTS_H_
