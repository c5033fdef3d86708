// Which filter, how large, and whether it pays at all: MakePlan compares the layouts by what a
// probe costs in all, and explains its choice. docs/planner.md is the guide.
#ifndef TEPAL_PLANNER_H_
#define TEPAL_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tepal/export.h"
#include "tepal/geometry.h"
#include "tepal/profile.h"
#include "tepal/status.h"

namespace tepal {

// What the filter must be able to do besides inserts and probes.
struct Needs {
  bool set_union = false;
  bool intersection = false;
  bool disjointness = false;  // SurelyDisjoint that says more than "maybe"
  bool shrink = false;        // blocked layouts: in halves, four times
  bool parquet = false;       // readable by every Parquet implementation; implies power_of_two
  bool power_of_two = false;  // num_bits

  bool operator==(const Needs&) const = default;
};

// At least one of max_fpr, max_bytes and work_saved_ns must be given.
struct Workload {
  uint64_t num_keys = 0;
  double max_fpr = 0;        // largest rate of false positives; 0: any
  uint64_t max_bytes = 0;    // largest filter; 0: any
  double hit_rate = 0;       // share of the probes whose key is in the set
  double work_saved_ns = 0;  // what a true negative saves; 0: not known
  uint64_t num_probes = 0;   // rows probed in all; they share the cost of the inserts. 0: many
  Needs needs = {};

  bool operator==(const Workload&) const = default;
};

// One layout at its best for the workload.
struct PlanCandidate {
  Geometry geometry;  // num_bits == 0 if there is none
  double predicted_fpr = 0;
  double bits_per_key = 0;
  double ns_per_probe = 0;
  double cost_ns = 0;        // what MakePlan compares, see FilterPlan
  bool allowed = false;      // satisfies the needs and limits
  std::string verdict = {};  // "chosen", or why not
};

struct TEPAL_API FilterPlan {
  Geometry geometry;
  double predicted_fpr = 0;
  double bits_per_key = 0;
  double ns_per_probe = 0;

  // Per probed row: ns_per_probe + (inserts) / num_probes + (1 - hit_rate) * FPR * work_saved_ns +
  // kMemoryRentNs * bits_per_key.
  double cost_ns = 0;
  // What the rows that the filter could remove cost without one: (1 - hit_rate) * work_saved_ns.
  // 0 if work_saved_ns is not known.
  double no_filter_ns = 0;
  // The filter pays from this work_saved_ns on. Infinite if it never does.
  double break_even_ns = 0;
  // False: the work is known, and no filter costs less than doing it. The geometry is still the
  // best there is.
  bool pays_off = true;

  Workload workload = {};
  std::string profile = {};                    // name, CPU and target of the profile that was used
  std::vector<PlanCandidate> candidates = {};  // cheapest first; those that are not allowed last

  // All of the above for a person: a table of the candidates, and why the winner won.
  std::string Explain() const;
};

// A bit per key costs this much per probe. Without a rent a filter that lies in memory anyway would
// grow for gains that nobody can measure.
inline constexpr double kMemoryRentNs = 0.001;

// Bytes without a rate: this is what a true negative saves if work_saved_ns does not say it, about
// a hash table lookup that misses the caches.
inline constexpr double kAssumedWorkNs = 100;

// The filter of the lowest cost_ns among those that satisfy the needs and the limits.
//
// work_saved_ns given: size and k are free within the limits, and found together with the layout.
// Only max_fpr, or max_fpr and max_bytes: each layout gets the smallest size that reaches the rate.
//   The fastest probe wins; below 5% of difference, the smaller filter.
// Only max_bytes: each layout gets all of it, up to one block; cost_ns uses kAssumedWorkNs.
//
// Fails if no filter satisfies the request; the message names the nearest rate and size that can be
// had.
TEPAL_API Result<FilterPlan> MakePlan(const Workload& workload, const MachineProfile& profile);

// The same with MachineProfile::ForThisMachine().
TEPAL_API Result<FilterPlan> MakePlan(const Workload& workload);

}  // namespace tepal

#endif  // TEPAL_PLANNER_H_
