#include "bench/ratio_report.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace tepal::bench {
namespace {

// Collects the time of each repetition instead of printing it.
class Collector : public benchmark::BenchmarkReporter {
 public:
  explicit Collector(Timings* timings) : timings_(timings) {}

  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      const double seconds_per_call =
          run.cpu_accumulated_time / static_cast<double>(run.iterations);
      const double keys = run.counters.at("keys");
      (*timings_)[run.run_name.function_name].push_back(seconds_per_call * 1e9 / keys);
    }
  }

 private:
  Timings* timings_;
};

void PrintGroup(const std::vector<Case>& cases, const std::string& group, const Timings& timings) {
  double reference = 0;
  for (const Case& row : cases) {
    const auto found = timings.find(row.group + "/" + row.name);
    if (row.group != group || found == timings.end()) continue;
    const double minimum = Minimum(found->second);
    if (reference == 0) {
      reference = minimum;
      std::printf("\n%-44s %10s %10s %8s\n", group.c_str(), "min ns/key", "median", "ratio");
    }
    std::printf("  %-42s %10.3f %10.3f %7.2fx\n", row.name.c_str(), minimum, Median(found->second),
                minimum / reference);
  }
}

}  // namespace

double Minimum(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

double Median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

int RunCases(int argc, char** argv, const std::vector<Case>& cases, Timings* timings) {
  // Defaults; the command line comes later and wins.
  std::vector<std::string> defaults = {"--benchmark_enable_random_interleaving=true",
                                       "--benchmark_repetitions=60", "--benchmark_min_time=0.005"};
  std::vector<char*> arguments = {argv[0]};
  for (std::string& flag : defaults) arguments.push_back(flag.data());
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;

  for (const Case& row : cases) {
    const std::string name = row.group + "/" + row.name;
    benchmark::RegisterBenchmark(name.c_str(), [&row](benchmark::State& state) {
      for (auto _ : state) row.run();
      state.counters["keys"] = static_cast<double>(row.keys_per_call);
    });
  }
  Collector collector(timings);
  benchmark::RunSpecifiedBenchmarks(&collector);

  std::vector<std::string> printed;
  for (const Case& row : cases) {
    if (std::find(printed.begin(), printed.end(), row.group) != printed.end()) continue;
    printed.push_back(row.group);
    PrintGroup(cases, row.group, *timings);
  }
  return 0;
}

}  // namespace tepal::bench
