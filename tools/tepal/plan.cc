// tepal plan: which filter, how large, and does it pay?
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tepal/planner.h"
#include "tepal/profile.h"
#include "tools/tepal/command.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

struct Options {
  Workload workload;
  std::vector<std::string> needs;
  std::string profile;
  bool json = false;
};

constexpr std::pair<const char*, bool Needs::*> kNeeds[] = {
    {"union", &Needs::set_union},           {"intersection", &Needs::intersection},
    {"disjointness", &Needs::disjointness}, {"shrink", &Needs::shrink},
    {"parquet", &Needs::parquet},           {"power-of-two", &Needs::power_of_two}};

Status SetNeed(const std::string& name, Needs& needs) {
  std::string known;
  for (const auto& [need, member] : kNeeds) {
    if (name == need) {
      needs.*member = true;
      return Status::Ok();
    }
    known += (known.empty() ? "" : ", ") + std::string(need);
  }
  return Status::InvalidArgument("--needs: '" + name + "' is none of " + known);
}

// Infinite and unknown numbers are null.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json CandidateToJson(const PlanCandidate& candidate) {
  return {{"geometry", ToJson(candidate.geometry)},
          {"allowed", candidate.allowed},
          {"predicted_fpr", Number(candidate.predicted_fpr)},
          {"bits_per_key", Number(candidate.bits_per_key)},
          {"ns_per_probe", Number(candidate.ns_per_probe)},
          {"cost_ns", Number(candidate.cost_ns)},
          {"verdict", candidate.verdict}};
}

void PrintAsJson(const FilterPlan& plan) {
  Json candidates = Json::array();
  for (const PlanCandidate& candidate : plan.candidates)
    candidates.push_back(CandidateToJson(candidate));
  PrintJson({{"geometry", ToJson(plan.geometry)},
             {"predicted_fpr", plan.predicted_fpr},
             {"bits_per_key", plan.bits_per_key},
             {"ns_per_probe", plan.ns_per_probe},
             {"cost_ns", plan.cost_ns},
             {"no_filter_ns", plan.no_filter_ns},
             {"break_even_ns", Number(plan.break_even_ns)},
             {"pays_off", plan.pays_off},
             {"profile", plan.profile},
             {"candidates", std::move(candidates)}});
}

Status Plan(Options options) {
  for (const std::string& need : options.needs) {
    if (Status status = SetNeed(need, options.workload.needs); !status.ok()) return status;
  }
  Result<MachineProfile> profile = options.profile.empty() ? MachineProfile::ForThisMachine()
                                                           : MachineProfile::Load(options.profile);
  if (!profile.ok()) return profile.status();
  const Result<FilterPlan> plan = MakePlan(options.workload, *profile);
  if (!plan.ok()) return plan.status();
  if (options.json) {
    PrintAsJson(*plan);
  } else {
    std::printf("%s", plan->Explain().c_str());
  }
  return Status::Ok();
}

}  // namespace

Command AddPlan(CLI::App& app) {
  auto options = std::make_shared<Options>();
  Workload& workload = options->workload;
  CLI::App* const command =
      app.add_subcommand("plan", "Find the filter that costs least, and say whether it pays");
  command->footer(
      "Give at least one of --fpr, --bytes and --work-saved.\n"
      "Example: tepal plan --keys 10M --fpr 1% --work-saved 100ns");
  AddParsed(*command, "--keys", workload.num_keys, ParseCount, "Number of keys, such as 10M")
      ->required();
  AddParsed(*command, "--fpr", workload.max_fpr, ParseRate, "Most false positives, such as 1%");
  AddParsed(*command, "--bytes", workload.max_bytes, ParseBytes, "Largest filter, such as 8MiB");
  AddParsed(*command, "--hit-rate", workload.hit_rate, ParseShare,
            "Share of the probes whose key is there");
  AddParsed(*command, "--work-saved", workload.work_saved_ns, ParseNanoseconds,
            "What a removed row saves, such as 100ns");
  AddParsed(*command, "--probes", workload.num_probes, ParseCount,
            "Rows probed in all; they share the cost of the inserts");
  command
      ->add_option("--needs", options->needs,
                   "union, intersection, disjointness, shrink, "
                   "parquet, power-of-two; several with commas")
      ->delimiter(',')
      ->type_name("NEED");
  command
      ->add_option("--profile", options->profile,
                   "Times to plan with, as tepal calibrate writes them")
      ->type_name("FILE");
  AddJson(*command, options->json);
  return {command, [options] { return Plan(*options); }};
}

}  // namespace tepal::tool
