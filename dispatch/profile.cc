#include "tepal/profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dispatch/capabilities.h"
#include "dispatch/no_memory.h"

namespace tepal {
namespace {

constexpr size_t kMaxSizes = 64;
constexpr size_t kMaxCurves = 256;
constexpr double kMaxNs = 1e6;
// The fewest bits touched, and the least distance of two curves: beyond them, lines become too
// steep for numbers.
constexpr double kMinTouched = 0.01;
constexpr double kNoCurve = std::numeric_limits<double>::quiet_NaN();

// A share of the keys makes one probe more or less; otherwise these run as their models do.
Layout MeasuredAs(Layout layout) {
  if (layout == Layout::kRational) return Layout::kStandard;
  if (layout == Layout::kVariablePaper) return Layout::kVariable;
  return layout;
}

double Probes(const Geometry& geometry) {
  return geometry.rational_k > 0 ? geometry.rational_k : geometry.num_probes;
}

double Between(double x, double x0, double y0, double x1, double y1) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

// Linear in log(size), constant beyond the ends.
double AtSize(const std::vector<uint64_t>& sizes, const std::vector<double>& ns, uint64_t bytes) {
  const auto above = std::upper_bound(sizes.begin(), sizes.end(), bytes);
  if (above == sizes.begin()) return ns.front();
  if (above == sizes.end()) return ns.back();
  const auto i = static_cast<size_t>(above - sizes.begin());
  const auto log_of = [](uint64_t size) { return std::log2(static_cast<double>(size)); };
  return Between(log_of(bytes), log_of(sizes[i - 1]), ns[i - 1], log_of(sizes[i]), ns[i]);
}

// Linear in the bits touched, and beyond the last curve along the line of the last two.
double Time(const MachineProfile& profile, Layout layout, Operation operation, uint64_t bytes,
            double touched) {
  const TimeCurve* below = nullptr;  // the two curves around `touched`, or the last two
  const TimeCurve* above = nullptr;
  for (const TimeCurve& curve : profile.curves) {
    if (curve.layout != MeasuredAs(layout) || curve.operation != operation) continue;
    if (above != nullptr && above->bits_per_key_touched >= touched) break;
    below = std::exchange(above, &curve);
  }
  if (above == nullptr) return kNoCurve;
  const double above_ns = AtSize(profile.filter_bytes, above->ns, bytes);
  if (below == nullptr) return above_ns;
  const double below_ns = AtSize(profile.filter_bytes, below->ns, bytes);
  const double ns = Between(touched, below->bits_per_key_touched, below_ns,
                            above->bits_per_key_touched, above_ns);
  return std::max(ns, std::min(below_ns, above_ns));  // noise may slope downwards
}

// The probability that a bit is set.
double FillOf(const Geometry& geometry, uint64_t num_keys) {
  return -std::expm1(-static_cast<double>(num_keys) * Probes(geometry) /
                     static_cast<double>(geometry.num_bits));
}

Status Wrong(const std::string& what) { return Status::InvalidArgument("profile: " + what); }

std::string NameOf(const TimeCurve& curve) {
  return "curve of " + std::string(LayoutName(curve.layout)) +
         (curve.operation == Operation::kProbe ? ", probe, " : ", insert, ") +
         std::to_string(curve.bits_per_key_touched) + " bits touched";
}

Status CheckCurve(const TimeCurve& curve, size_t num_sizes) {
  if (LayoutName(curve.layout).empty()) return Wrong("a curve's layout is not one of Layout");
  const double touched = curve.bits_per_key_touched;
  if (!(touched >= kMinTouched && touched <= 64)) {
    return Wrong(NameOf(curve) + ": must lie between 0.01 and 64");
  }
  if (curve.ns.size() != num_sizes) {
    return Wrong(NameOf(curve) + " has " + std::to_string(curve.ns.size()) +
                 " times, but there are " + std::to_string(num_sizes) + " sizes in filter_bytes");
  }
  for (const double ns : curve.ns) {
    if (!(ns > 0 && ns <= kMaxNs)) {
      return Wrong(NameOf(curve) + " has a time of " + std::to_string(ns) +
                   " ns; times lie above 0 and are at most 1000000");
    }
  }
  return Status::Ok();
}

// Of two neighbours.
Status CheckOrder(const TimeCurve& before, const TimeCurve& curve) {
  const auto line = [](const TimeCurve& c) { return std::tuple(c.layout, c.operation); };
  const double distance = curve.bits_per_key_touched - before.bits_per_key_touched;
  if (line(before) > line(curve) || (line(before) == line(curve) && distance <= 0)) {
    return Wrong(NameOf(curve) +
                 ": curves must be different, and ordered by layout, operation, bits touched");
  }
  if (line(before) == line(curve) && distance < kMinTouched) {
    return Wrong(NameOf(curve) + ": too close to " + std::to_string(before.bits_per_key_touched));
  }
  return Status::Ok();
}

Status CheckSizes(const std::vector<uint64_t>& sizes) {
  if (sizes.empty() || sizes.size() > kMaxSizes) {
    return Wrong("filter_bytes has " + std::to_string(sizes.size()) +
                 " sizes, but must have 1 to " + std::to_string(kMaxSizes));
  }
  if (sizes.front() == 0 || sizes.back() > kMaxBits / 8) {
    return Wrong("filter_bytes must lie between 1 and " + std::to_string(kMaxBits / 8));
  }
  if (std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) != sizes.end()) {
    return Wrong("filter_bytes must ascend");
  }
  return Status::Ok();
}

}  // namespace

double MeanBitsTouched(const Geometry& geometry, uint64_t num_keys, double hit_rate) {
  const double probes = Probes(geometry);
  if (IsBlocked(geometry.layout) || geometry.num_bits == 0) return probes;
  // An absent key goes on to the next bit with the probability q that a bit is set:
  // 1 + q + ... + q^(k-1).
  const double q = FillOf(geometry, num_keys);
  const double absent = q < 1 ? (1 - std::pow(q, probes)) / (1 - q) : probes;
  return hit_rate * probes + (1 - hit_rate) * absent;
}

double MachineProfile::ProbeNs(const Geometry& geometry, uint64_t num_keys, double hit_rate) const {
  const double touched = MeanBitsTouched(geometry, num_keys, hit_rate);
  const auto time = [&](double bytes) {
    return Time(*this, geometry.layout, Operation::kProbe, static_cast<uint64_t>(bytes), touched);
  };
  const auto bytes = static_cast<double>(geometry.num_bytes());
  if (geometry.layout != Layout::kPartitioned || geometry.num_bits == 0) return time(bytes);
  // Fewer and fewer absent keys look at the parts of a partitioned filter, so that caches hold the
  // first ones rather than the last. A touch of part t, which a share of the keys makes, meets
  // lines that are as busy as those of a smaller filter. But the other parts take room, too: a
  // quarter of the way (of the logarithm) to the whole filter came nearest to measured times.
  const double q = FillOf(geometry, num_keys);
  const double part_bytes = bytes / geometry.num_probes;
  double ns = 0;
  for (uint32_t t = 0; t < geometry.num_probes; ++t) {
    const double share = hit_rate + (1 - hit_rate) * std::pow(q, t);
    const double as_busy = std::min(part_bytes * touched / share, bytes);
    ns += share / touched * time(std::pow(as_busy, 0.75) * std::pow(bytes, 0.25));
  }
  return ns;
}

double MachineProfile::InsertNs(const Geometry& geometry) const {
  return Time(*this, geometry.layout, Operation::kInsert, geometry.num_bytes(), Probes(geometry));
}

Status MachineProfile::Validate() const try {
  if (Status status = CheckSizes(filter_bytes); !status.ok()) return status;
  if (curves.size() > kMaxCurves)
    return Wrong("more than " + std::to_string(kMaxCurves) + " curves");
  for (const TimeCurve& curve : curves) {
    if (Status status = CheckCurve(curve, filter_bytes.size()); !status.ok()) return status;
  }
  for (size_t i = 1; i < curves.size(); ++i) {
    if (Status status = CheckOrder(curves[i - 1], curves[i]); !status.ok()) return status;
  }
  for (const Layout layout :
       {Layout::kStandard, Layout::kPartitioned, Layout::kVariable, Layout::kRegister,
        Layout::kSplit256, Layout::kSplit512, Layout::kLine512}) {
    for (const Operation operation : {Operation::kProbe, Operation::kInsert}) {
      if (std::isnan(Time(*this, layout, operation, 1, 1))) {
        return Wrong("no curve for " + std::string(LayoutName(layout)) +
                     (operation == Operation::kProbe ? ", probe" : ", insert"));
      }
    }
  }
  return Status::Ok();
} catch (const std::exception&) {
  return NoMemory();
}

}  // namespace tepal
