#include "dispatch/plan_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "tepal/fpr.h"

namespace tepal {
namespace {

template <typename... Args>
std::string Format(const char* format, Args... args) {
  const int size = std::snprintf(nullptr, 0, format, args...);
  std::string text(static_cast<size_t>(std::max(size, 0)), '\0');
  std::snprintf(text.data(), text.size() + 1, format, args...);
  return text;
}

std::string Name(const Geometry& geometry) { return std::string(LayoutName(geometry.layout)); }

// 1.23%, 0.0012%.
std::string RateText(double rate) { return Format("%.3g%%", rate * 100); }

std::string BytesText(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 10'000) return Format("%.0f bytes", value);
  if (bytes < 10'000'000) return Format("%.1f KiB", value / 1024);
  return Format("%.1f MiB", value / 1024 / 1024);
}

double BitsPerKey(uint64_t num_bits, uint64_t num_keys) {
  return static_cast<double>(num_bits) / static_cast<double>(std::max<uint64_t>(num_keys, 1));
}

std::string ProbesText(const Geometry& geometry) {
  return geometry.rational_k > 0 ? Format("%.2f", geometry.rational_k)
                                 : std::to_string(geometry.num_probes);
}

std::string NeedsText(const Needs& needs) {
  std::string text;
  const auto add = [&](bool needed, const char* name) {
    if (needed) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(needs.set_union, "union");
  add(needs.intersection, "intersection");
  add(needs.disjointness, "disjointness");
  add(needs.shrink, "shrink");
  add(needs.parquet, "Parquet");
  add(needs.power_of_two, "a power of two");
  return text;
}

std::string WorkloadText(const Workload& workload) {
  std::string text = Format("%llu keys", static_cast<unsigned long long>(workload.num_keys));
  if (workload.max_fpr > 0) text += ", at most " + RateText(workload.max_fpr) + " false positives";
  if (workload.max_bytes > 0) text += ", at most " + BytesText(workload.max_bytes);
  text += ", " + RateText(workload.hit_rate) + " hits";
  if (workload.work_saved_ns > 0) {
    text += Format(", a true negative saves %.4g ns", workload.work_saved_ns);
  }
  if (workload.num_probes > 0) {
    text += Format(", %llu probes", static_cast<unsigned long long>(workload.num_probes));
  }
  const std::string needs = NeedsText(workload.needs);
  return needs.empty() ? text : text + "; needs " + needs;
}

std::string CandidateLine(const PlanCandidate& candidate) {
  const Geometry& geometry = candidate.geometry;
  const std::string name = Name(geometry);
  if (geometry.num_bits == 0) {
    return Format("  %-12s %5s %9s %12s %10s %9s %9s  %s\n", name.c_str(), "-", "-", "-", "-", "-",
                  "-", candidate.verdict.c_str());
  }
  return Format("  %-12s %5s %9.2f %12s %10s %9.2f %9.2f  %s\n", name.c_str(),
                ProbesText(geometry).c_str(), candidate.bits_per_key,
                BytesText(geometry.num_bytes()).c_str(), RateText(candidate.predicted_fpr).c_str(),
                candidate.ns_per_probe, candidate.cost_ns, candidate.verdict.c_str());
}

// Against the next one in the table, which may be cheaper by less than the measurements scatter.
std::string ComparisonText(const FilterPlan& plan) {
  const PlanCandidate& best = plan.candidates[0];
  if (plan.candidates.size() < 2 || !plan.candidates[1].allowed) {
    return Name(best.geometry) + " is the only layout that satisfies the request";
  }
  const PlanCandidate& next = plan.candidates[1];
  if (best.cost_ns > next.cost_ns) {
    return Format("%s is as fast as %s up to the noise (%.2f and %.2f ns) and %.1f%% smaller",
                  Name(best.geometry).c_str(), Name(next.geometry).c_str(), best.cost_ns,
                  next.cost_ns,
                  100 - 100 * static_cast<double>(best.geometry.num_bits) /
                            static_cast<double>(next.geometry.num_bits));
  }
  return Format("%s wins with %.2f ns per row in all, %.2f ns (%.1f%%) less than %s",
                Name(best.geometry).c_str(), best.cost_ns, next.cost_ns - best.cost_ns,
                100 * (next.cost_ns - best.cost_ns) / next.cost_ns, Name(next.geometry).c_str());
}

std::string ReasonText(const FilterPlan& plan) {
  const double false_positives_ns =
      (1 - plan.workload.hit_rate) * plan.predicted_fpr *
      (plan.no_filter_ns > 0 ? plan.workload.work_saved_ns : kAssumedWorkNs);
  std::string text = ComparisonText(plan);
  if (plan.workload.work_saved_ns > 0 || plan.workload.max_fpr == 0) {
    text += Format(": %.2f ns for the probe, %.2f ns for false positives", plan.ns_per_probe,
                   false_positives_ns);
  } else {
    text += Format(": the cheapest probe at the rate asked for, %.2f ns", plan.ns_per_probe);
  }
  return text + ".\n";
}

std::string PayOffText(const FilterPlan& plan) {
  const std::string from =
      std::isinf(plan.break_even_ns)
          ? std::string("no filter would ever: no row can be removed")
          : Format("a filter pays if a true negative saves more than %.3g ns", plan.break_even_ns);
  if (plan.workload.work_saved_ns == 0) {
    return "What a true negative saves was not given: " + from + ".\n";
  }
  if (plan.pays_off) {
    return Format("It pays off: %.2f ns per row instead of %.2f ns without a filter; ",
                  plan.cost_ns, plan.no_filter_ns) +
           from + ".\n";
  }
  return Format(
             "No filter pays off: the cheapest one costs %.2f ns per row, doing the work of all "
             "rows that it could remove costs %.2f ns; ",
             plan.cost_ns, plan.no_filter_ns) +
         from + ".\n";
}

}  // namespace

std::string ProfileText(const MachineProfile& profile) {
  return profile.name + " (" + profile.cpu + ", " + profile.target + ")";
}

std::string VerdictText(const PlanCandidate& best, const PlanCandidate& candidate) {
  if (&best == &candidate) return "chosen";
  const double more_ns = candidate.cost_ns - best.cost_ns;
  if (more_ns < 0) return "as fast up to the noise, but larger";
  const double probe_ns = candidate.ns_per_probe - best.ns_per_probe;
  const bool probe_decides = probe_ns > more_ns / 2;
  return Format("+%.2f ns: %s", more_ns,
                probe_decides                                          ? "a slower probe"
                : candidate.predicted_fpr > best.predicted_fpr         ? "more false positives"
                : candidate.geometry.num_bits > best.geometry.num_bits ? "more memory"
                                                                       : "slower inserts");
}

std::string RationalVerdict(const Geometry& rational, uint64_t num_keys) {
  const auto below = static_cast<uint32_t>(rational.rational_k);
  // Classic has the precision that Rational has.
  const auto rate = [&](uint32_t k) { return fpr::Classic(num_keys, rational.num_bits, k); };
  const uint32_t whole = rate(below) <= rate(below + 1) ? below : below + 1;
  return Format("never: k = %u has fewer false positives, %s", whole,
                RateText(rate(whole)).c_str());
}

std::string InfeasibleText(const Workload& workload, const std::optional<Geometry>& smallest,
                           const std::optional<Geometry>& lowest) {
  std::string text = "no filter satisfies the request (" + WorkloadText(workload) + ")";
  if (lowest) {
    text += Format(
        "; at most %s (%.2f bits per key) gives a rate of %s (%s)",
        BytesText(lowest->num_bytes()).c_str(), BitsPerKey(lowest->num_bits, workload.num_keys),
        RateText(fpr::Predict(*lowest, workload.num_keys)).c_str(), Name(*lowest).c_str());
  }
  if (smallest) {
    text += Format("; the smallest filter%s has %llu bytes, %.2f bits per key (%s)",
                   workload.max_fpr > 0 ? " with this rate" : "",
                   static_cast<unsigned long long>(smallest->num_bytes()),
                   BitsPerKey(smallest->num_bits, workload.num_keys), Name(*smallest).c_str());
  } else {
    text += "; no size up to 2^40 bits reaches the rate";
  }
  return text;
}

std::string FilterPlan::Explain() const {
  if (candidates.empty()) return "An empty plan.\n";
  std::string text = "Plan for " + WorkloadText(workload) + ".\nTimes: profile " + profile + ".\n";
  text += Format("  %-12s %5s %9s %12s %10s %9s %9s\n", "layout", "k", "bits/key", "size", "FPR",
                 "ns/probe", "cost ns");
  for (const PlanCandidate& candidate : candidates) text += CandidateLine(candidate);
  return text + ReasonText(*this) + PayOffText(*this);
}

}  // namespace tepal
