// Plans in words. FilterPlan::Explain is in plan_text.cc, too.
#ifndef TEPAL_DISPATCH_PLAN_TEXT_H_
#define TEPAL_DISPATCH_PLAN_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tepal/planner.h"

namespace tepal {

// "built-in (AMD EPYC, AVX2)".
std::string ProfileText(const MachineProfile& profile);

// "chosen" for the best itself; otherwise by how much the candidate lost, and at what.
std::string VerdictText(const PlanCandidate& best, const PlanCandidate& candidate);

// Why a rational k never wins: a whole one, and its rate.
std::string RationalVerdict(const Geometry& rational, uint64_t num_keys);

// Why there is no plan, and what could be had: `smallest` reaches the rate, `lowest` fits into the
// bytes.
std::string InfeasibleText(const Workload& workload, const std::optional<Geometry>& smallest,
                           const std::optional<Geometry>& lowest);

}  // namespace tepal

#endif  // TEPAL_DISPATCH_PLAN_TEXT_H_
