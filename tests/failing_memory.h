// Memory that fails at the allocation that a test chooses, and what must come of it. A test that
// links failing_memory.cc (tepal_test_with_failing_memory in CMakeLists.txt) has its operator new.
#ifndef TEPAL_TESTS_FAILING_MEMORY_H_
#define TEPAL_TESTS_FAILING_MEMORY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/c_api.h"
#include "tepal/memory.h"
#include "tepal/profile.h"
#include "tepal/status.h"

namespace tepal::testing {

// While it lives, the allocation of this thread after `num_good` ones fails: only this one, or all
// from then on.
class FailingMemory {
 public:
  FailingMemory(int64_t num_good, bool once);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  // Whether an allocation of this thread has failed since the last one was made.
  static bool HasFailed();
};

// What operator new has given out, and was not given back.
int64_t NumLiveAllocations();

// Memory that counts and fails however large it is. Without it, large buffers are mapped.
extern const MemoryOptions kCountedMemory;

inline StatusCode CodeOf(StatusCode code) { return code; }
inline StatusCode CodeOf(const Status& status) { return status.code(); }
inline StatusCode CodeOf(tepal_status status) { return static_cast<StatusCode>(status); }
template <class T>
StatusCode CodeOf(const Result<T>& result) {
  return result.ok() ? StatusCode::kOk : result.status().code();
}

// `call` with its first, second ... allocation failing, until it makes no more of them: each time
// it says what it says with memory, or kOutOfMemory, throws nothing, and leaks nothing. A call that
// makes none at all proves nothing here, and fails: see ExpectNeedsNoMemory.
template <class Call>
void ExpectSurvives(const Call& call, StatusCode expected = StatusCode::kOk) {
  ASSERT_EQ(CodeOf(call()), expected);  // also makes what is made once a process
  for (const bool once : {true, false}) {
    int64_t num_good = 0;
    do {
      ASSERT_LT(num_good, 100'000) << "does not end";
      const int64_t num_live = NumLiveAllocations();
      StatusCode code = StatusCode::kOutOfMemory;
      try {
        const FailingMemory failing(num_good, once);
        code = CodeOf(call());
      } catch (...) {
        ADD_FAILURE() << "an exception, at allocation " << num_good;
      }
      EXPECT_TRUE(code == StatusCode::kOutOfMemory || code == expected)
          << static_cast<int>(code) << " at allocation " << num_good;
      EXPECT_EQ(NumLiveAllocations(), num_live) << "a leak, at allocation " << num_good;
      ++num_good;
    } while (FailingMemory::HasFailed() && !::testing::Test::HasFailure());
    EXPECT_GT(num_good, 1) << "no allocation has failed";
  }
}

// `call` asks for no memory, once what is made once a process is there.
template <class Call>
void ExpectNeedsNoMemory(const Call& call, StatusCode expected = StatusCode::kOk) {
  ASSERT_EQ(CodeOf(call()), expected);
  StatusCode code = StatusCode::kOutOfMemory;
  try {
    const FailingMemory failing(0, /*once=*/false);
    code = CodeOf(call());
  } catch (...) {
    ADD_FAILURE() << "an exception";
  }
  EXPECT_EQ(code, expected);
  EXPECT_FALSE(FailingMemory::HasFailed()) << "it does ask for memory";
}

// One row of a table of calls that may fail, also for reasons other than memory.
struct NamedCall {
  const char* name;
  std::function<StatusCode()> run;
  StatusCode expected = StatusCode::kOk;
};

inline void ExpectAllSurvive(const std::vector<NamedCall>& calls) {
  for (const NamedCall& call : calls) {
    SCOPED_TRACE(call.name);
    ExpectSurvives(call.run, call.expected);
  }
}

// The built-in profile with two sizes: each of its allocations fails once in ExpectSurvives.
inline MachineProfile SmallProfile() {
  MachineProfile profile = MachineProfile::BuiltIn();
  profile.filter_bytes.resize(2);
  for (TimeCurve& curve : profile.curves) curve.ns.resize(2);
  return profile;
}

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_FAILING_MEMORY_H_
