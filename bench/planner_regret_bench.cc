// How good are the planner's choices? Plans a grid of workloads, measures the filters that it
// considered and others, and reports its regret: the measured cost of its choice over that of the
// best filter that was measured (or of no filter at all), minus 1.
//
//   planner_regret_bench [--profile FILE | --built-in] [--all] [number of keys ...]
//
// Calibrates first (40 s) if it is not given a profile. Prints the worst cases, or all of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/fixture.h"
#include "dispatch/filter_access.h"
#include "tepal/tepal.h"
#include "tools/calibrate.h"

namespace tepal::bench {
namespace {

constexpr double kHitRates[] = {0, 0.5};
constexpr double kMaxFprs[] = {3e-2, 1e-3, 1e-5};
constexpr double kWorkSavedNs[] = {1, 10, 100, 1000, 10'000};
constexpr double kOtherBitsPerKey[] = {8, 12, 16, 24};

// A slow moment of the machine may last for seconds, so that many short rounds are better than a
// long one. The filters that come close to winning get more rounds: of many noisy times the least
// is too small.
constexpr int kSamplesPerRound = 4;
constexpr int kRounds = 3;
constexpr int kFinalRounds = 10;
constexpr size_t kFinalistsPerWorkload = 3;

constexpr size_t kWorstCases = 12;

// Filters of more keys get random bits instead of the keys beyond these: the same density and the
// same time, made faster.
constexpr uint64_t kMaxRealKeys = uint64_t{1} << 20;

// ---- Filters

std::string NameOf(const Geometry& geometry, uint64_t num_keys) {
  char name[64];
  std::snprintf(name, sizeof(name), "%s k=%u %.2f bits",
                std::string(LayoutName(geometry.layout)).c_str(), geometry.num_probes,
                static_cast<double>(geometry.num_bits) / static_cast<double>(num_keys));
  return name;
}

// 64 bits, each set with a probability of `density` rounded to 1/64.
uint64_t RandomBits(std::mt19937_64& random, double density) {
  const auto parts = static_cast<uint64_t>(std::lround(density * 64));
  if (parts >= 64) return ~uint64_t{0};
  uint64_t bits = 0;  // a binary fraction, from its last digit on: 1 doubles back, 0 halves
  for (int digit = 0; digit < 6; ++digit) {
    bits = (parts >> digit & 1) != 0 ? bits | random() : bits & random();
  }
  return bits;
}

void FillAtRandom(std::span<uint8_t> bytes, double density) {
  std::mt19937_64 random(4);
  // A page of random bits, repeated: the hashes that ask for them are random enough.
  std::vector<uint64_t> page(size_t{1} << 13);
  for (uint64_t& bits : page) bits = RandomBits(random, density);
  const size_t page_bytes = page.size() * sizeof(uint64_t);
  for (size_t i = 0; i < bytes.size(); i += page_bytes) {
    std::memcpy(&bytes[i], page.data(), std::min(page_bytes, bytes.size() - i));
  }
}

struct Measured {
  Geometry geometry;
  double predicted_fpr = 0;
  std::map<double, tools::BestTime> times = {};  // by hit rate
  double fpr_error =
      0;  // of the measured rate, relative, if the keys are real and there are enough
};

// All filters for one number of keys, one after the other in the same memory.
class Pool {
 public:
  Pool(uint64_t num_keys, std::span<uint8_t> memory)
      : num_keys_(num_keys),
        memory_(memory),
        keys_(RandomHashes(std::min(num_keys, kMaxRealKeys), 1)),
        absent_(RandomHashes(size_t{1} << 22, 2)),
        bitmap_(kBatchKeys / 8) {
    std::mt19937_64 random(3);
    for (const double hit_rate : kHitRates) {
      std::vector<uint64_t> probes = absent_;
      for (uint64_t& probe : probes) {
        const double dice = static_cast<double>(random() >> 11) * 0x1p-53;
        if (dice < hit_rate) probe = keys_[random() % keys_.size()];
      }
      streams_.emplace(hit_rate, std::move(probes));
    }
  }

  void Add(const Geometry& geometry) {
    if (!geometry.Validate().ok() || geometry.num_bytes() > memory_.size()) return;
    const auto same = [&](const Measured& other) { return other.geometry == geometry; };
    if (std::ranges::any_of(filters_, same)) return;
    filters_.push_back({geometry, fpr::Predict(geometry, num_keys_)});
  }

  template <typename Predicate>
  void MeasureWhere(const Predicate& wanted, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      std::fprintf(stderr, "\r%llu keys: round %d of %d   ",
                   static_cast<unsigned long long>(num_keys_), round + 1, rounds);
      for (const size_t i : BySize()) {
        if (wanted(filters_[i])) Measure(filters_[i]);
      }
    }
    std::fprintf(stderr, "\r%50s\r", "");
  }

  const std::vector<Measured>& filters() const { return filters_; }
  uint64_t num_keys() const { return num_keys_; }

 private:
  // The one before leaves the caches as the next one needs them.
  std::vector<size_t> BySize() const {
    std::vector<size_t> order(filters_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t i) { return filters_[i].geometry.num_bits; });
    return order;
  }

  Filter Build(const Geometry& geometry) const {
    Filter filter = std::move(tools::FilterIn(memory_, geometry).value());
    if (num_keys_ > keys_.size()) {
      const auto others = static_cast<double>(num_keys_ - keys_.size());
      FillAtRandom(
          FilterAccess::MutableBytes(filter),
          -std::expm1(-others * geometry.num_probes / static_cast<double>(geometry.num_bits)));
    }
    filter.InsertHashes(keys_);
    return filter;
  }

  void Measure(Measured& measured) {
    const Filter filter = Build(measured.geometry);
    for (auto& [hit_rate, stream] : streams_) {
      tools::Settle(filter.View(), stream);
      for (int i = 0; i < kSamplesPerRound; ++i) {
        measured.times[hit_rate].Sample([&, &hashes = stream] {
          filter.ProbeHashes(hashes.Next(measured.geometry.num_bytes()), bitmap_.data());
        });
      }
    }
    if (num_keys_ == keys_.size()) CheckRate(filter, measured);
  }

  void CheckRate(const Filter& filter, Measured& measured) const {
    const double expected = static_cast<double>(absent_.size()) * measured.predicted_fpr;
    if (expected < 10'000) return;  // noise of 1%
    measured.fpr_error = static_cast<double>(filter.CountHashes(absent_)) / expected - 1;
  }

  uint64_t num_keys_;
  std::span<uint8_t> memory_;
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> absent_;
  std::map<double, tools::HashStream> streams_;
  std::vector<uint8_t> bitmap_;
  std::vector<Measured> filters_;
};

// ---- Regret

struct Outcome {
  Workload workload;
  std::string choice;
  std::string best;
  double planned_ns = 0;
  double choice_ns = 0;
  double best_ns = 0;
  double regret() const { return choice_ns / best_ns - 1; }
};

// Free in size, and with so little memory that only the scattered layouts reach the rate.
std::vector<Workload> WorkloadsOf(uint64_t num_keys) {
  std::vector<Workload> workloads;
  for (const double hit_rate : kHitRates) {
    for (const double max_fpr : kMaxFprs) {
      Workload workload{.num_keys = num_keys, .max_fpr = max_fpr, .hit_rate = hit_rate};
      for (const double work_saved_ns : kWorkSavedNs) {
        workload.work_saved_ns = work_saved_ns;
        workloads.push_back(workload);
      }
      const Geometry standard = fpr::GeometryForRate(Layout::kStandard, num_keys, max_fpr).value();
      workload.max_bytes = standard.num_bytes() * 103 / 100;
      for (const double work_saved_ns : {100.0, 10'000.0}) {
        workload.work_saved_ns = work_saved_ns;
        workloads.push_back(workload);
      }
    }
  }
  return workloads;
}

bool Satisfies(const Measured& filter, const Workload& workload) {
  return filter.predicted_fpr <= workload.max_fpr &&
         (workload.max_bytes == 0 || filter.geometry.num_bytes() <= workload.max_bytes);
}

double MeasuredCost(const Workload& workload, const Measured& filter) {
  return filter.times.at(workload.hit_rate).ns_per_key +
         (1 - workload.hit_rate) * filter.predicted_fpr * workload.work_saved_ns;
}

// The choice, and the cheapest ones so far.
void AddFinalists(const FilterPlan& plan, const Pool& pool, std::set<const Measured*>* finalists) {
  std::vector<const Measured*> allowed;
  for (const Measured& filter : pool.filters()) {
    if (filter.geometry == plan.geometry) finalists->insert(&filter);
    if (Satisfies(filter, plan.workload)) allowed.push_back(&filter);
  }
  std::ranges::sort(allowed, {},
                    [&](const Measured* filter) { return MeasuredCost(plan.workload, *filter); });
  allowed.resize(std::min(allowed.size(), kFinalistsPerWorkload));
  finalists->insert(allowed.begin(), allowed.end());
}

Outcome Judge(const FilterPlan& plan, const Pool& pool) {
  const Workload& workload = plan.workload;
  Outcome outcome{
      .workload = workload,
      .choice = plan.pays_off ? "not measured" : "no filter",
      .best = "no filter",
      .planned_ns = plan.pays_off ? plan.cost_ns : plan.no_filter_ns,
      .choice_ns = plan.pays_off ? std::numeric_limits<double>::infinity() : plan.no_filter_ns,
      .best_ns = plan.no_filter_ns};
  for (const Measured& filter : pool.filters()) {
    if (!Satisfies(filter, workload)) continue;
    const double cost_ns = MeasuredCost(workload, filter);
    if (plan.pays_off && filter.geometry == plan.geometry) {
      outcome.choice = NameOf(filter.geometry, workload.num_keys);
      outcome.choice_ns = cost_ns;
    }
    if (cost_ns < outcome.best_ns) {
      outcome.best = NameOf(filter.geometry, workload.num_keys);
      outcome.best_ns = cost_ns;
    }
  }
  return outcome;
}

std::vector<Outcome> RunKeys(uint64_t num_keys, const MachineProfile& profile,
                             std::span<uint8_t> memory) {
  Pool pool(num_keys, memory);
  std::vector<FilterPlan> plans;
  for (const Workload& workload : WorkloadsOf(num_keys)) {
    plans.push_back(MakePlan(workload, profile).value());
    for (const PlanCandidate& candidate : plans.back().candidates) {
      if (candidate.allowed) pool.Add(candidate.geometry);
    }
  }
  for (const Layout layout : {Layout::kSplit256, Layout::kSplit512, Layout::kRegister,
                              Layout::kLine512, Layout::kStandard, Layout::kPartitioned}) {
    for (const double bits_per_key : kOtherBitsPerKey) {
      pool.Add(Geometry::For(layout, num_keys, bits_per_key));
    }
  }
  pool.MeasureWhere([](const Measured&) { return true; }, kRounds);
  std::set<const Measured*> finalists;
  for (const FilterPlan& plan : plans) AddFinalists(plan, pool, &finalists);
  pool.MeasureWhere([&](const Measured& filter) { return finalists.contains(&filter); },
                    kFinalRounds);
  std::vector<Outcome> outcomes;
  for (const FilterPlan& plan : plans) outcomes.push_back(Judge(plan, pool));
  double worst_error = 0;
  for (const Measured& filter : pool.filters()) {
    worst_error = std::max(worst_error, std::abs(filter.fpr_error));
  }
  std::printf("%11llu keys: %zu filters measured", static_cast<unsigned long long>(num_keys),
              pool.filters().size());
  if (num_keys <= kMaxRealKeys) std::printf(", rates within %.1f%%", 100 * worst_error);
  std::printf("\n");
  std::fflush(stdout);
  return outcomes;
}

// ---- Report

double Quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

void Report(std::vector<Outcome> outcomes, size_t num_lines) {
  std::ranges::sort(outcomes, {}, [](const Outcome& outcome) { return -outcome.regret(); });
  std::vector<double> regrets;
  for (const Outcome& outcome : outcomes) regrets.push_back(outcome.regret());
  std::ranges::sort(regrets);
  std::map<std::string, int> choices;
  for (const Outcome& outcome : outcomes) {
    ++choices[outcome.choice.substr(0, outcome.choice.find(" k="))];
  }
  std::printf("\n%zu workloads. Regret: median %.2f%%, 95th percentile %.2f%%, largest %.2f%%\n",
              outcomes.size(), 100 * Quantile(regrets, 0.5), 100 * Quantile(regrets, 0.95),
              100 * regrets.back());
  std::printf("Chosen:");
  for (const auto& [name, count] : choices) std::printf(" %s %d", name.c_str(), count);
  std::printf("\n\n%10s %7s %6s %5s %8s | %-28s %8s %8s | %-28s %8s %7s\n", "keys", "max FPR",
              "memory", "hits", "saved ns", "choice", "planned", "measured", "best measured", "ns",
              "regret");
  for (size_t i = 0; i < std::min(outcomes.size(), num_lines); ++i) {
    const Outcome& o = outcomes[i];
    std::printf("%10llu %7g %6s %4.0f%% %8g | %-28s %8.2f %8.2f | %-28s %8.2f %6.1f%%\n",
                static_cast<unsigned long long>(o.workload.num_keys), o.workload.max_fpr,
                o.workload.max_bytes == 0 ? "free" : "tight", 100 * o.workload.hit_rate,
                o.workload.work_saved_ns, o.choice.c_str(), o.planned_ns, o.choice_ns,
                o.best.c_str(), o.best_ns, 100 * o.regret());
  }
}

Result<MachineProfile> ProfileFor(const std::string& path, bool built_in) {
  if (built_in) return MachineProfile::BuiltIn();
  if (!path.empty()) return MachineProfile::Load(path);
  Result<MachineProfile> profile = tools::Calibrate({.progress = [](double share) {
    std::fprintf(stderr, "\rcalibrating: %.0f%% ", share * 100);
  }});
  if (profile.ok()) profile->name = "calibrated just now";
  return profile;
}

int Main(int argc, char** argv) {
  std::string path;
  bool built_in = false;
  bool all = false;
  std::vector<uint64_t> key_counts;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--profile" && i + 1 < argc) {
      path = argv[++i];
    } else if (argument == "--built-in") {
      built_in = true;
    } else if (argument == "--all") {
      all = true;
    } else if (const uint64_t count = std::strtoull(argv[i], nullptr, 10); count > 0) {
      key_counts.push_back(count);
    } else {
      std::fprintf(stderr, "usage: %s [--profile FILE | --built-in] [--all] [number of keys ...]\n",
                   argv[0]);
      return 2;
    }
  }
  if (key_counts.empty()) key_counts = {10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
  const Result<MachineProfile> profile = ProfileFor(path, built_in);
  if (!profile.ok()) {
    std::fprintf(stderr, "%s\n", profile.status().message().c_str());
    return 1;
  }
  std::printf("Profile %s (%s, %s); target %s\n", profile->name.c_str(), profile->cpu.c_str(),
              profile->target.c_str(), ActiveTarget().c_str());
  // Room for the largest filters that the planner tries, 64 bits per key.
  const uint64_t memory_bytes = std::ranges::max(key_counts) / 8 * 64 + 64;
  Filter memory = std::move(
      Filter::Create({.layout = Layout::kSplit512, .num_bits = memory_bytes * 8, .num_probes = 8})
          .value());
  std::vector<Outcome> outcomes;
  for (const uint64_t num_keys : key_counts) {
    const std::vector<Outcome> more =
        RunKeys(num_keys, *profile, FilterAccess::MutableBytes(memory));
    outcomes.insert(outcomes.end(), more.begin(), more.end());
  }
  Report(outcomes, all ? outcomes.size() : kWorstCases);
  return 0;
}

}  // namespace
}  // namespace tepal::bench

int main(int argc, char** argv) { return tepal::bench::Main(argc, argv); }
