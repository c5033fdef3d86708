// tepal demo: builds a filter of many keys, checks it against the scalar reference and against the
// predicted rate of false positives, and compares the CPU targets.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/reference.h"
#include "tepal/tepal.h"
#include "tools/tepal/command.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

constexpr double kMaxFpr = 0.01;
constexpr uint64_t kDefaultKeys = 10'000'000;
constexpr uint64_t kMinKeys = 1000;           // fewer give no false positives to count
constexpr uint64_t kMaxKeys = 1'000'000'000;  // 28 bytes of memory each
constexpr size_t kSampleKeys = 100'000;  // of each kind, compared one by one with the reference
constexpr int kRepetitions = 3;          // of a timing; the fastest counts

using Keys = std::vector<uint64_t>;
using Bitmap = std::vector<uint8_t>;

// ---- Reporting

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Says what `work` is, does it, and says how long it took.
void Step(const std::string& what, const std::function<void()>& work) {
  std::printf("%-76s", what.c_str());
  std::fflush(stdout);
  std::printf("%8.0f ms\n", SecondsOf(work) * 1e3);
}

// Prints whether a claim holds; returns it.
bool Check(bool holds, const std::string& claim) {
  std::printf("  %s  %s\n", holds ? "ok    " : "FAILED", claim.c_str());
  return holds;
}

// ---- Keys

// Multiples of an odd number differ from each other (mod 2^64): ranges that do not overlap give
// keys that do not.
Keys MakeKeys(size_t first, size_t count) {
  Keys keys(count);
  for (size_t i = 0; i < count; ++i) keys[i] = (first + i) * 0x9E3779B97F4A7C15u;
  return keys;
}

// Some keys of each column, alternating.
Keys Sample(const Keys& present, const Keys& absent) {
  const size_t count = std::min(kSampleKeys, present.size());
  Keys sample;
  for (size_t i = 0; i < count; ++i) {
    sample.push_back(present[i * (present.size() / count)]);
    sample.push_back(absent[i * (absent.size() / count)]);
  }
  return sample;
}

bool GetBit(const Bitmap& bitmap, size_t i) { return (bitmap[i / 8] >> (i % 8) & 1) != 0; }

Bitmap BitmapFor(const Keys& keys) { return Bitmap((keys.size() + 7) / 8); }

// ---- Checks

bool CheckNoFalseNegatives(const Filter& filter, const Keys& present) {
  Bitmap bitmap = BitmapFor(present);
  size_t found = 0;
  Step("Probing all of them again", [&] { found = filter.Probe(present, bitmap.data()); });
  return Check(found == present.size(), std::to_string(found) + " of " +
                                            std::to_string(present.size()) +
                                            " found: no false negatives");
}

bool CheckFalsePositives(const Filter& filter, const Keys& absent) {
  Bitmap bitmap = BitmapFor(absent);
  size_t found = 0;
  Step("Probing as many absent keys", [&] { found = filter.Probe(absent, bitmap.data()); });
  const auto probes = static_cast<double>(absent.size());
  const double measured = static_cast<double>(found) / probes;
  const double predicted = fpr::Predict(filter.geometry(), absent.size());
  const double sigma = std::sqrt(predicted * (1 - predicted) / probes);
  char claim[160];
  std::snprintf(claim, sizeof(claim),
                "false positives: measured %.4f %%, predicted %.4f %% (6 sigma: %.4f %%)",
                measured * 100, predicted * 100, 6 * sigma * 100);
  // The filter is a random one, too, and adds about a quarter to the variance: hence 6 sigma.
  return Check(std::abs(measured - predicted) <= 6 * sigma, claim);
}

// Every byte of the filter, built once more by the reference.
bool CheckBytes(const Filter& filter, const std::vector<uint64_t>& hashes) {
  const Geometry& geometry = filter.geometry();
  std::vector<uint8_t> expected(geometry.num_bytes());
  Step("Building the same filter with the scalar reference", [&] {
    for (const uint64_t hash : hashes) reference::Insert(geometry, hash, expected.data());
  });
  return Check(std::ranges::equal(filter.bytes(), expected),
               "all " + std::to_string(expected.size()) + " bytes agree");
}

// Bitmap, selection and single probes of a sample, key by key.
bool CheckAnswers(const Filter& filter, const Keys& sample) {
  const Geometry& geometry = filter.geometry();
  std::vector<uint64_t> hashes(sample.size());
  HashKeys(geometry.hash, geometry.seed, sample, hashes.data());
  Bitmap bitmap = BitmapFor(sample);
  std::vector<uint32_t> rows(sample.size());
  size_t differences = 0;
  Step("Probing a sample of both with filter and reference", [&] {
    const size_t num_found = filter.Probe(sample, bitmap.data());
    const size_t num_rows = filter.Select(sample, rows.data());
    if (num_rows != num_found) ++differences;
    size_t next = 0;  // in rows, which come in order
    for (size_t i = 0; i < sample.size(); ++i) {
      const bool expected = reference::MayContain(geometry, hashes[i], filter.bytes().data());
      const bool selected = next < num_rows && rows[next] == i;
      if (selected) ++next;
      if (GetBit(bitmap, i) != expected || selected != expected) ++differences;
      if (filter.MayContain(sample[i]) != expected) ++differences;
    }
  });
  return Check(differences == 0, std::to_string(sample.size()) + " keys, bitmap, selection and " +
                                     "single probes: " + std::to_string(differences) +
                                     " differences");
}

// ---- Targets

struct TargetRow {
  std::string name;
  double insert_ns = 0;
  double probe_ns = 0;
  bool agrees = false;  // with the bytes and answers of the filter that was checked above
};

double BestNsPerKey(size_t num_keys, const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepetitions; ++i) best = std::min(best, SecondsOf(work));
  return best * 1e9 / static_cast<double>(num_keys);
}

// Builds and probes the filter anew on one target.
Result<TargetRow> MeasureTarget(const std::string& name, const Filter& checked, const Keys& present,
                                const Keys& absent, const Bitmap& expected) {
  if (Status status = ForceTarget(name); !status.ok()) return status;
  Result<Filter> filter = Filter::Create(checked.geometry());
  if (!filter.ok()) return filter.status();
  Bitmap bitmap = BitmapFor(absent);
  TargetRow row{.name = ActiveTarget()};
  // Inserting a key again changes nothing, so repetitions need no new filter.
  row.insert_ns = BestNsPerKey(present.size(), [&] { filter->Insert(present); });
  row.probe_ns = BestNsPerKey(absent.size(), [&] { filter->Probe(absent, bitmap.data()); });
  row.agrees = row.name == name && bitmap == expected &&
               std::ranges::equal(filter->bytes(), checked.bytes());
  return row;
}

void PrintTargets(const std::vector<TargetRow>& rows) {
  double slowest_insert = 0;
  double slowest_probe = 0;
  for (const TargetRow& row : rows) {
    slowest_insert = std::max(slowest_insert, row.insert_ns);
    slowest_probe = std::max(slowest_probe, row.probe_ns);
  }
  std::printf("\n  %-10s %12s %10s %12s %10s   %s\n", "target", "ns/insert", "speed-up", "ns/probe",
              "speed-up", "bytes and answers");
  for (const TargetRow& row : rows) {
    std::printf("  %-10s %12.2f %9.1fx %12.2f %9.1fx   %s\n", row.name.c_str(), row.insert_ns,
                slowest_insert / row.insert_ns, row.probe_ns, slowest_probe / row.probe_ns,
                row.agrees ? "agree" : "DIFFER");
  }
}

void PrintOtherTargets(const std::vector<std::string>& available) {
  for (const std::string& name : CompiledTargets()) {
    if (std::ranges::find(available, name) != available.end()) continue;
    std::printf("  %-10s compiled, but this CPU cannot run it\n", name.c_str());
  }
}

// Times of 8-byte keys, hashing included.
bool CompareTargets(const Filter& checked, const Keys& present, const Keys& absent) {
  const std::string active = ActiveTarget();
  const std::vector<std::string> available = AvailableTargets();
  Bitmap expected = BitmapFor(absent);
  checked.Probe(absent, expected.data());
  std::vector<TargetRow> rows;
  bool agree = true;
  Step("Inserting and probing on each target, hashing included", [&] {
    for (const std::string& name : available) {
      Result<TargetRow> row = MeasureTarget(name, checked, present, absent, expected);
      if (!row.ok()) std::printf("\n  %s: %s\n", name.c_str(), row.status().message().c_str());
      agree = agree && row.ok() && row->agrees;
      if (row.ok()) rows.push_back(*std::move(row));
    }
  });
  PrintTargets(rows);
  PrintOtherTargets(available);
  return ForceTarget(active).ok() && agree;
}

// ---- The demo

bool CheckAgainstReference(const Filter& filter, const Keys& present, const Keys& absent) {
  const Geometry& geometry = filter.geometry();
  std::vector<uint64_t> hashes(present.size());
  HashKeys(geometry.hash, geometry.seed, present, hashes.data());
  const bool bytes_agree = CheckBytes(filter, hashes);
  return CheckAnswers(filter, Sample(present, absent)) && bytes_agree;
}

bool Run(Filter filter, size_t num_keys) {
  Keys present;
  Keys absent;
  Step("Making " + std::to_string(num_keys) + " keys, and as many that are absent", [&] {
    present = MakeKeys(0, num_keys);
    absent = MakeKeys(num_keys, num_keys);
  });
  Step("Inserting the keys", [&] { filter.Insert(present); });
  bool good = CheckNoFalseNegatives(filter, present);
  good = CheckFalsePositives(filter, absent) && good;
  good = CheckAgainstReference(filter, present, absent) && good;
  good = CompareTargets(filter, present, absent) && good;
  std::printf("\n%s\n", good ? "Everything agrees." : "Something does NOT agree, see above.");
  return good;
}

Status Demo(uint64_t num_keys) {
  if (num_keys < kMinKeys || num_keys > kMaxKeys) {
    return Status::InvalidArgument("the demo takes " + FormatCount(kMinKeys) + " to " +
                                   FormatCount(kMaxKeys) + " keys");
  }
  const Result<FilterPlan> plan = MakePlan({.num_keys = num_keys, .max_fpr = kMaxFpr});
  if (!plan.ok()) return plan.status();
  Result<Filter> filter = Filter::Create(plan->geometry);
  if (!filter.ok()) return filter.status();
  std::printf("Tepal %s on %s. The plan for %s keys:\n\n%s\n", Version(), ActiveTarget().c_str(),
              FormatCount(num_keys).c_str(), plan->Explain().c_str());
  return Run(std::move(*filter), num_keys) ? Status::Ok()
                                           : Status::Corrupt("the demo found a difference");
}

}  // namespace

Command AddDemo(CLI::App& app) {
  auto num_keys = std::make_shared<uint64_t>(kDefaultKeys);
  CLI::App* const command =
      app.add_subcommand("demo", "Build and check a large filter, compare the CPU targets");
  command->footer("Example: tepal demo 1M");
  AddParsed(*command, "KEYS", *num_keys, ParseCount, "How many keys; 10M if not given");
  return {command, [num_keys] { return Demo(*num_keys); }};
}

}  // namespace tepal::tool
