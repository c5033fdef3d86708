// What probes and inserts cost on a machine: the numbers behind MakePlan. `tepal calibrate`
// measures them; a built-in profile serves until then.
#ifndef TEPAL_PROFILE_H_
#define TEPAL_PROFILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tepal/export.h"
#include "tepal/geometry.h"
#include "tepal/status.h"

namespace tepal {

enum class Operation : uint8_t { kProbe = 0, kInsert = 1 };

// ns per key of one operation at each size of MachineProfile::filter_bytes.
struct TimeCurve {
  Layout layout = Layout::kSplit256;
  Operation operation = Operation::kProbe;
  // How many bits of the filter a key looks at or sets, on average. A scattered layout stops at the
  // first missing bit, so that absent keys of a half-full filter look at 2 of k.
  double bits_per_key_touched = 0;
  std::vector<double> ns = {};

  bool operator==(const TimeCurve&) const = default;
};

// Times are for 64-bit hashes in batches of 2048 (Filter::ProbeHashes, InsertHashes), one thread;
// hashing the keys costs the same for all layouts.
struct TEPAL_API MachineProfile {
  std::string name;       // where it comes from: "built-in", or the path of a file
  std::string cpu;        // for people
  std::string target;     // what ActiveTarget() said
  uint64_t l1_bytes = 0;  // data caches of one core, and what it shares; 0 if not known
  uint64_t l2_bytes = 0;
  uint64_t l3_bytes = 0;
  std::vector<uint64_t> filter_bytes;  // ascending
  std::vector<TimeCurve> curves;

  // ns per key in a filter of `num_keys` keys, if a share `hit_rate` of the probes finds its key.
  // Between the measured sizes linear in log(size), beyond them constant; linear in the bits
  // touched. A partitioned filter counts as a smaller one if its last parts are hardly looked at.
  // NaN if the profile has no curve for the layout.
  double ProbeNs(const Geometry& geometry, uint64_t num_keys, double hit_rate) const;
  double InsertNs(const Geometry& geometry) const;

  // Ok, or what is wrong. A valid profile knows every layout that MakePlan compares.
  Status Validate() const;

  // For AVX-512 targets (AVX3, AVX3_DL, ...) measured on an Intel Xeon of model 207 (Emerald
  // Rapids), for all others on an AMD EPYC of family 25 (Zen 3) with AVX2.
  static const MachineProfile& BuiltIn(std::string_view target = "AVX2");

  // Everything is checked: the text may come from anywhere. The name is not part of it.
  static Result<MachineProfile> FromJson(std::string_view json);
  std::string ToJson() const;

  // Files. Save makes the directory, and replaces the file in one step.
  static Result<MachineProfile> Load(const std::string& path);
  Status Save(const std::string& path) const;

  // $XDG_CACHE_HOME/tepal/profile-AVX2.json and so on, or the same in $HOME/.cache; empty if
  // neither is set.
  static std::string DefaultPath(std::string_view target);

  // The file at DefaultPath(ActiveTarget()); the built-in one if there is none, or if it is not
  // valid (the name says so then). Reads the file each time: an engine may want to keep it.
  static MachineProfile ForThisMachine();

  bool operator==(const MachineProfile&) const = default;
};

// The number of bits that a key looks at, on average over hits and misses.
TEPAL_API double MeanBitsTouched(const Geometry& geometry, uint64_t num_keys, double hit_rate);

}  // namespace tepal

#endif  // TEPAL_PROFILE_H_
