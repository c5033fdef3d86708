// Machine profiles from anywhere: FromJson never crashes, and what it accepts survives ToJson and
// makes a plan.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tepal/planner.h"
#include "tepal/profile.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const tepal::Result<tepal::MachineProfile> profile = tepal::MachineProfile::FromJson(text);
  if (!profile.ok()) {
    TEPAL_FUZZ_EXPECT(profile.status().code() == tepal::StatusCode::kCorrupt);
    return 0;
  }
  const auto again = tepal::MachineProfile::FromJson(profile->ToJson());
  TEPAL_FUZZ_EXPECT(again.ok() && *again == *profile);
  TEPAL_FUZZ_EXPECT(tepal::MakePlan({.num_keys = 1000, .max_fpr = 0.01}, *profile).ok());
  return 0;
}
