// Measures what probes and inserts cost on this machine, for MakePlan.
#ifndef TEPAL_TOOLS_CALIBRATE_H_
#define TEPAL_TOOLS_CALIBRATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tepal/filter.h"
#include "tepal/profile.h"
#include "tepal/status.h"

namespace tepal::tools {

struct CalibrateOptions {
  double seconds = 40;  // about; the largest filters and slow targets may need a few more
  uint64_t max_filter_bytes = uint64_t{384} << 20;  // three times as much memory is needed
  // Called about ten times a second, from the same thread.
  std::function<void(double share_done)> progress = {};
};

// Every layout at every cache level, on ActiveTarget(). The name of the profile is left to the
// caller, who may Save() it at MachineProfile::DefaultPath(). One thread; other work on the machine
// makes the result worse, but only if it goes on all the time: each number is the best of many
// samples that are spread over the whole run.
Result<MachineProfile> Calibrate(const CalibrateOptions& options = {});

// An empty filter in memory of the caller, which must outlive it: aligned to kFilterAlignment and
// geometry.num_bytes() long or longer. Saves the time that fresh pages cost.
Result<Filter> FilterIn(std::span<uint8_t> memory, const Geometry& geometry);

// Memory with bits that cost nothing to make: views of any size and layout over it behave as
// filters of which absent keys see no bit, or half of the bits, or as ones that have all the keys.
class ProbeArena {
 public:
  enum class Fill { kEmpty, kHalf, kFull };
  static constexpr Fill kFills[] = {Fill::kEmpty, Fill::kHalf, Fill::kFull};

  static Result<ProbeArena> Make(uint64_t max_filter_bytes);

  Result<FilterView> View(Fill fill, const Geometry& geometry) const;

  // Shares the memory of kFull, and clears its part of it. Refill repairs that; inserts do no harm.
  Result<Filter> ToInsert(const Geometry& geometry);
  void Refill();

 private:
  explicit ProbeArena(std::vector<Filter> memory);  // one of each Fill

  static size_t Index(Fill fill) { return static_cast<size_t>(fill); }
  std::span<uint8_t> Bytes(Fill fill);

  std::vector<Filter> memory_;
};

// Random hashes that are handed out in batches, again and again: four for each cache line of the
// filter, but at least 64 Ki. They take half of its memory, so that they stay in the caches if the
// filter does, and each line is touched.
class HashStream {
 public:
  static constexpr size_t kBatchKeys = 2048;

  explicit HashStream(uint64_t seed);
  explicit HashStream(std::vector<uint64_t> hashes);  // at least kBatchKeys

  std::span<const uint64_t> Next(uint64_t filter_bytes);

 private:
  std::vector<uint64_t> hashes_;
  size_t next_ = 0;
};

// Probes a filter until the caches hold what they will hold of it when it is in use.
void Settle(const FilterView& filter, HashStream& hashes);

// The best of all samples of one operation.
struct BestTime {
  double ns_per_key = std::numeric_limits<double>::infinity();

  // Takes samples for about two milliseconds; `run_batch` works on kBatchKeys keys.
  void Sample(const std::function<void()>& run_batch);
};

}  // namespace tepal::tools

#endif  // TEPAL_TOOLS_CALIBRATE_H_
