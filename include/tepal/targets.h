// Which CPU target the kernels run on. The best one is chosen at first use; a test or benchmark may
// force another, with ForceTarget() or with TEPAL_TARGET in the environment. Names are Highway's:
// "AVX2", "NEON", "SCALAR" ...
#ifndef TEPAL_TARGETS_H_
#define TEPAL_TARGETS_H_

#include <string>
#include <string_view>
#include <vector>

#include "tepal/export.h"
#include "tepal/status.h"

namespace tepal {

// The target that the next batch runs on.
TEPAL_API std::string ActiveTarget();

// Targets in this build, best first, and those of them that this CPU can run.
TEPAL_API std::vector<std::string> CompiledTargets();
TEPAL_API std::vector<std::string> AvailableTargets();

// Runs all later batches of the process on `name` (upper or lower case). "" or "auto" returns to
// the best target. Other users of Highway in the process are not affected.
TEPAL_API Status ForceTarget(std::string_view name);

// Ok, or what is wrong with TEPAL_TARGET. Filter::Create reports it too.
TEPAL_API Status CheckEnvironment();

}  // namespace tepal

#endif  // TEPAL_TARGETS_H_
