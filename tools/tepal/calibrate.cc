// tepal calibrate: measures this machine for the planner.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tepal/profile.h"
#include "tepal/targets.h"
#include "tools/calibrate.h"
#include "tools/tepal/command.h"
#include "tools/tepal/progress.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

struct Options {
  std::string output;
  double duration_ns = 40e9;
  uint64_t max_filter_bytes = tools::CalibrateOptions().max_filter_bytes;
  bool all_targets = false;
  bool json = false;
};

std::string FormatPerMille(uint64_t share) {
  return FormatShare(static_cast<double>(share) / 1000);
}

// Measures the active target and writes its profile to `path`.
Status CalibrateTarget(const Options& options, double seconds, const std::string& path) {
  if (path.empty()) {
    return Status::InvalidArgument(
        "neither XDG_CACHE_HOME nor HOME is set; say with -o where to "
        "write the profile");
  }
  Progress progress("measuring " + ActiveTarget(), 1000, FormatPerMille);
  tools::CalibrateOptions calibrate_options;
  calibrate_options.seconds = seconds;
  calibrate_options.max_filter_bytes = options.max_filter_bytes;
  calibrate_options.progress = [&](double share) {
    progress.Update(static_cast<uint64_t>(share * 1000));
  };
  Result<MachineProfile> profile = tools::Calibrate(calibrate_options);
  if (!profile.ok()) return profile.status();
  profile->name = path;
  if (Status status = profile->Save(path); !status.ok()) return status;
  if (options.json) {
    std::printf("%s\n", profile->ToJson().c_str());
  } else {
    std::printf("%s: %zu curves of %zu filter sizes on %s, %s\n", path.c_str(),
                profile->curves.size(), profile->filter_bytes.size(), profile->target.c_str(),
                profile->cpu.c_str());
  }
  return Status::Ok();
}

Status Calibrate(const Options& options) {
  const double seconds = options.duration_ns / 1e9;
  if (!options.all_targets) {
    return CalibrateTarget(
        options, seconds,
        options.output.empty() ? MachineProfile::DefaultPath(ActiveTarget()) : options.output);
  }
  const std::vector<std::string> targets = AvailableTargets();
  for (const std::string& target : targets) {
    Status status = ForceTarget(target);
    if (status.ok()) {
      status = CalibrateTarget(options, seconds / static_cast<double>(targets.size()),
                               MachineProfile::DefaultPath(target));
    }
    if (!status.ok()) return status;
  }
  return ForceTarget("auto");
}

}  // namespace

Command AddCalibrate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("calibrate", "Measure what probes cost on this machine, for plan");
  command->footer(
      "Leave the machine alone meanwhile. plan and build use the file from then on.\n"
      "Example: tepal calibrate --time 40s");
  CLI::Option* const output =
      command->add_option("-o,--output", options->output, "Where to write the profile")
          ->type_name("FILE");
  AddParsed(*command, "--time", options->duration_ns, ParseNanoseconds,
            "How long to measure, about; 40s if not given");
  AddParsed(*command, "--bytes", options->max_filter_bytes, ParseBytes,
            "Largest filter to measure, 384MiB if not given; needs three times the memory");
  AddJson(*command, options->json);
  command
      ->add_flag("--all-targets", options->all_targets,
                 "Every CPU target, each for its share of the time, to a file of its own")
      ->excludes(output)
      ->excludes(command->get_option("--json"));
  return {command, [options] { return Calibrate(*options); }};
}

}  // namespace tepal::tool
