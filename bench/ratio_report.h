// Runs benchmarks interleaved and reports, for each, the minimum and the median time per key over
// all repetitions and the ratio to the others of its group. Google Benchmark does the timing;
// absolute times on a shared machine move, ratios taken in one run hold.
#ifndef TEPAL_BENCH_RATIO_REPORT_H_
#define TEPAL_BENCH_RATIO_REPORT_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tepal::bench {

// One row: `run` handles `keys_per_call` keys. Rows of a group are compared with its first row.
struct Case {
  std::string group;
  std::string name;
  size_t keys_per_call;
  std::function<void()> run;
};

// Times per key in ns, one per repetition.
using Timings = std::map<std::string, std::vector<double>>;  // "group/name" -> times

double Minimum(const std::vector<double>& times);
double Median(std::vector<double> times);

// Registers the cases with Google Benchmark, runs them with its command line (filters,
// --benchmark_out=... work) and prints a table per group. Returns what main should return.
int RunCases(int argc, char** argv, const std::vector<Case>& cases, Timings* timings);

}  // namespace tepal::bench

#endif  // TEPAL_BENCH_RATIO_REPORT_H_
