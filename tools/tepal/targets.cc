// tepal targets: checks every CPU target that can run here against the scalar reference, and
// compares their speed.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/cpu_caches.h"
#include "kernels/reference.h"
#include "tepal/filter.h"
#include "tepal/targets.h"
#include "tools/calibrate.h"
#include "tools/tepal/chart.h"
#include "tools/tepal/command.h"
#include "tools/tepal/measured_rate.h"
#include "tools/tepal/progress.h"
#include "tools/tepal/table.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

struct Options {
  bool quick = false;
  bool json = false;
  std::string svg;
};

struct TimedLayout {
  Layout layout;
  double k;

  Geometry WithBytes(uint64_t num_bytes) const {
    const uint64_t line_bits = layout == Layout::kPartitioned ? 512 * 8 : 512;
    const bool rational = layout == Layout::kRational || layout == Layout::kVariablePaper;
    return {.layout = layout,
            .num_bits = num_bytes * 8 / line_bits * line_bits,
            .num_probes = static_cast<uint32_t>(std::ceil(k)),
            .rational_k = rational ? k : 0};
  }
};

// k of about 12 bits per key.
constexpr TimedLayout kLayouts[] = {
    {Layout::kRegister, 4}, {Layout::kSplit256, 8},   {Layout::kSplit512, 8},
    {Layout::kLine512, 6},  {Layout::kStandard, 8},   {Layout::kPartitioned, 8},
    {Layout::kVariable, 8}, {Layout::kRational, 7.5}, {Layout::kVariablePaper, 7.5}};

// ---- Checks

// A filter as the reference makes it, and its answers.
struct Expected {
  Geometry geometry;
  std::vector<uint64_t> keys = {};
  std::vector<uint64_t> probes = {};
  std::vector<uint8_t> bytes = {};
  std::vector<uint8_t> bitmap = {};
};

constexpr size_t kNumProbes = 2039;  // a prime: the last vector and the last byte are not full

Expected MakeExpected(const Geometry& geometry) {
  Hashes random(geometry.num_bits);
  Expected expected{.geometry = geometry};
  const size_t num_keys = std::min<uint64_t>(geometry.num_bits / 12, 20'000);
  expected.keys = random.Next(num_keys);
  expected.bytes.resize(geometry.num_bytes());
  for (const uint64_t hash : expected.keys) {
    reference::Insert(geometry, hash, expected.bytes.data());
  }
  expected.probes = random.Next(kNumProbes);
  for (size_t i = 0; i < kNumProbes; i += 2) expected.probes[i] = expected.keys[i % num_keys];
  expected.bitmap.resize((kNumProbes + 7) / 8);
  for (size_t i = 0; i < kNumProbes; ++i) {
    if (!reference::MayContain(geometry, expected.probes[i], expected.bytes.data())) continue;
    expected.bitmap[i / 8] = static_cast<uint8_t>(expected.bitmap[i / 8] | 1u << i % 8);
  }
  return expected;
}

// Small, not a power of two, a power of two, and large enough for prefetching.
std::vector<Expected> MakeAllExpected() {
  std::vector<Expected> all;
  for (const TimedLayout& layout : kLayouts) {
    for (const uint64_t num_bytes :
         {uint64_t{512}, uint64_t{512} * 53, uint64_t{1} << 15, uint64_t{6} << 20}) {
      all.push_back(MakeExpected(layout.WithBytes(num_bytes)));
    }
  }
  return all;
}

// On the target that is in force.
Result<bool> Agrees(const Expected& expected) {
  Result<Filter> filter = Filter::Create(expected.geometry);
  if (!filter.ok()) return filter.status();
  filter->InsertHashes(expected.keys);
  std::vector<uint8_t> bitmap(expected.bitmap.size());
  filter->ProbeHashes(expected.probes, bitmap.data());
  return std::ranges::equal(filter->bytes(), expected.bytes) && bitmap == expected.bitmap;
}

// ---- Times

struct Level {
  std::string name;
  uint64_t filter_bytes;
};

// Filters that fit well into a cache, and not into the next smaller one. Virtual machines may
// report an L3 that they have only a part of, hence 8 times L2.
std::vector<Level> Levels() {
  const uint64_t l2_bytes = L2CacheBytes();
  const uint64_t l3_bytes = L3CacheBytes();
  return {{"L1", L1CacheBytes() / 2},
          {"L2", l2_bytes / 2},
          {"L3", std::min(8 * l2_bytes, l3_bytes / 2)},
          {"memory", std::clamp(4 * l3_bytes, uint64_t{64} << 20, uint64_t{256} << 20)}};
}

struct TargetRow {
  std::string target;
  const TimedLayout* layout = nullptr;
  bool agrees = true;
  std::vector<tools::BestTime> times = {};  // one per level
};

struct Report {
  std::vector<Level> levels;
  std::vector<std::string> targets;            // that can run here, best first
  std::vector<std::string> not_runnable = {};  // in this build, but not on this CPU
  std::vector<TargetRow> rows = {};            // layout by layout, the targets in order

  // The slowest target is the scalar one, or what the compiler has in its place.
  double SpeedUp(size_t row, size_t level) const {
    const size_t scalar = row / targets.size() * targets.size() + targets.size() - 1;
    return rows[scalar].times[level].ns_per_key / rows[row].times[level].ns_per_key;
  }
  bool AllAgree() const {
    return std::ranges::all_of(rows, [](const TargetRow& row) { return row.agrees; });
  }
};

Report EmptyReport() {
  Report report{.levels = Levels(), .targets = AvailableTargets()};
  for (const std::string& target : CompiledTargets()) {
    if (std::ranges::find(report.targets, target) == report.targets.end()) {
      report.not_runnable.push_back(target);
    }
  }
  for (const TimedLayout& layout : kLayouts) {
    for (const std::string& target : report.targets) {
      report.rows.push_back({.target = target, .layout = &layout});
      report.rows.back().times.resize(report.levels.size());
    }
  }
  return report;
}

Status CheckTargets(Report& report) {
  const std::vector<Expected> all = MakeAllExpected();
  for (TargetRow& row : report.rows) {
    if (Status status = ForceTarget(row.target); !status.ok()) return status;
    for (const Expected& expected : all) {
      if (expected.geometry.layout != row.layout->layout) continue;
      const Result<bool> agrees = Agrees(expected);
      if (!agrees.ok()) return agrees.status();
      row.agrees = row.agrees && *agrees && ActiveTarget() == row.target;
    }
  }
  return Status::Ok();
}

// One sample of each time. Absent keys, half-full filters, hashes ready.
Status SampleTimes(const tools::ProbeArena& arena, tools::HashStream& hashes, Report& report) {
  std::array<uint8_t, tools::HashStream::kBatchKeys / 8> bitmap{};
  for (size_t level = 0; level < report.levels.size(); ++level) {
    const uint64_t bytes = report.levels[level].filter_bytes;
    for (TargetRow& row : report.rows) {
      if (Status status = ForceTarget(row.target); !status.ok()) return status;
      const Result<FilterView> filter =
          arena.View(tools::ProbeArena::Fill::kHalf, row.layout->WithBytes(bytes));
      if (!filter.ok()) return filter.status();
      row.times[level].Sample([&] { filter->ProbeHashes(hashes.Next(bytes), bitmap.data()); });
    }
  }
  return Status::Ok();
}

Status TimeTargets(const Options& options, Report& report) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::seconds duration(options.quick ? 1 : 20);
  const Result<tools::ProbeArena> arena =
      tools::ProbeArena::Make(report.levels.back().filter_bytes);
  if (!arena.ok()) return arena.status();
  tools::HashStream hashes(1);
  Progress progress("measuring", static_cast<uint64_t>(duration.count()), FormatCount);
  for (const auto start = Clock::now();;) {
    if (Status status = SampleTimes(*arena, hashes, report); !status.ok()) return status;
    const auto elapsed = Clock::now() - start;
    progress.Update(static_cast<uint64_t>(elapsed / std::chrono::seconds(1)));
    if (elapsed >= duration) return Status::Ok();
  }
}

// ---- Output

void PrintAsText(const Report& report) {
  std::vector<std::string> header = {"layout", "target"};
  for (const Level& level : report.levels) {
    header.push_back(level.name + ", " + FormatBytes(level.filter_bytes));
    header.push_back("");
  }
  header.push_back("reference");
  Table table(std::move(header));
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const TargetRow& row = report.rows[i];
    std::vector<std::string> cells = {std::string(LayoutName(row.layout->layout)), row.target};
    for (size_t level = 0; level < report.levels.size(); ++level) {
      cells.push_back(Digits("%.2f", row.times[level].ns_per_key));
      cells.push_back(Digits("%.1fx", report.SpeedUp(i, level)));
    }
    cells.push_back(row.agrees ? "agrees" : "DIFFERS");
    table.Add(std::move(cells));
  }
  std::printf("ns per probe of an absent key, and how many times as fast as %s\n\n%s",
              report.targets.back().c_str(), table.Text().c_str());
  for (const std::string& target : report.not_runnable) {
    std::printf("  %s is compiled, but this CPU cannot run it\n", target.c_str());
  }
}

void PrintAsJson(const Report& report) {
  Json rows = Json::array();
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const TargetRow& row = report.rows[i];
    Json times = Json::array();
    for (size_t level = 0; level < report.levels.size(); ++level) {
      times.push_back({{"level", report.levels[level].name},
                       {"filter_bytes", report.levels[level].filter_bytes},
                       {"ns_per_probe", row.times[level].ns_per_key},
                       {"speed_up", report.SpeedUp(i, level)}});
    }
    rows.push_back({{"layout", LayoutName(row.layout->layout)},
                    {"num_probes", row.layout->k},
                    {"target", row.target},
                    {"agrees_with_reference", row.agrees},
                    {"times", std::move(times)}});
  }
  PrintJson({{"targets", report.targets},
             {"not_runnable_here", report.not_runnable},
             {"baseline", report.targets.back()},
             {"rows", std::move(rows)}});
}

Chart MakeChart(const Report& report) {
  Chart chart{.title = "ns per probe of an absent key, filter in L1 (" +
                       FormatBytes(report.levels[0].filter_bytes) + ")",
              .y_label = "ns per probe",
              .log_y = true};
  for (const TimedLayout& layout : kLayouts) {
    chart.categories.emplace_back(LayoutName(layout.layout));
  }
  for (size_t target = 0; target < report.targets.size(); ++target) {
    Series series{.name = report.targets[target], .color = target};
    for (size_t i = target; i < report.rows.size(); i += report.targets.size()) {
      series.y.push_back(report.rows[i].times[0].ns_per_key);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Status Targets(const Options& options) {
  if (!options.svg.empty()) {
    if (Status status = CheckGnuplot(); !status.ok()) return status;
  }
  Report report = EmptyReport();
  if (Status status = CheckTargets(report); !status.ok()) return status;
  if (Status status = TimeTargets(options, report); !status.ok()) return status;
  options.json ? PrintAsJson(report) : PrintAsText(report);
  if (!options.svg.empty()) {
    if (Status status = WriteSvg(MakeChart(report), options.svg); !status.ok()) return status;
  }
  return report.AllAgree() ? Status::Ok() : Status::Corrupt("a target differs from the reference");
}

}  // namespace

Command AddTargets(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "targets", "Check the CPU targets against the scalar reference, and compare their speed");
  command->footer(
      "Takes half a minute; leave the machine alone meanwhile.\n"
      "Example: tepal targets --svg targets.svg");
  command->add_flag("--quick", options->quick, "A few seconds, and more noise");
  command->add_option("--svg", options->svg, "Write a chart to this file")->type_name("FILE");
  AddJson(*command, options->json);
  return {command, [options] { return Targets(*options); }};
}

}  // namespace tepal::tool
