// tepal build: keys in, a filter file out.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tepal/container.h"
#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/planner.h"
#include "tepal/sets.h"
#include "tools/tepal/command.h"
#include "tools/tepal/key_reader.h"
#include "tools/tepal/table.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

constexpr double kDefaultFpr = 0.01;
// More keys than this over the plan are worth a warning: the estimate itself is not better.
constexpr double kOverfullFactor = 1.01;

struct Options {
  InputOptions input;
  std::optional<KeyFormat> format;
  std::string output;
  std::optional<uint64_t> num_keys;
  std::optional<double> max_fpr;
  std::optional<uint64_t> max_bytes;
  std::optional<Layout> layout;
  std::optional<HashKind> hash;
  uint64_t seed = 0;
  bool json = false;
};

struct Built {
  uint64_t num_planned = 0;
  uint64_t num_inserted = 0;
  uint64_t num_different = 0;  // estimated, at most num_inserted
  double predicted_fpr = 0;    // with those

  bool overfull() const {
    return static_cast<double>(num_different) > kOverfullFactor * static_cast<double>(num_planned);
  }
};

// The first of: what the command line says, what the file has.
Result<uint64_t> NumKeys(const Options& options, KeyReader& reader) {
  if (options.num_keys.has_value()) return *options.num_keys;
  if (reader.input().size().has_value()) return reader.CountAndRewind();
  return Status::InvalidArgument(reader.input().name() +
                                 " cannot be read twice to count its keys; say with --keys how "
                                 "many there are at most");
}

// The largest one of at most so many bytes, or the smallest that there is.
Geometry GeometryOfBytes(Layout layout, uint64_t num_keys, uint64_t max_bytes) {
  const double bits_per_key = 8 * static_cast<double>(max_bytes) / static_cast<double>(num_keys);
  // The next number, since the quotient may be rounded down, and then a bit would be missing.
  return Geometry::For(layout, num_keys,
                       std::nextafter(bits_per_key, std::numeric_limits<double>::infinity()));
}

Result<Geometry> GeometryWithLayout(const Options& options, uint64_t num_keys) {
  const Layout layout = *options.layout;
  const uint64_t max_bytes = options.max_bytes.value_or(std::numeric_limits<uint64_t>::max());
  const bool has_only_bytes = options.max_bytes.has_value() && !options.max_fpr.has_value();
  Result<Geometry> geometry =
      has_only_bytes
          ? Result<Geometry>(GeometryOfBytes(layout, num_keys, max_bytes))
          : fpr::GeometryForRate(layout, num_keys, options.max_fpr.value_or(kDefaultFpr));
  if (geometry.status().code() == StatusCode::kUnsupported) {
    return Status::InvalidArgument(std::string(LayoutName(layout)) +
                                   " has no size for a rate: say with --bytes how large it may be, "
                                   "and leave --fpr out");
  }
  if (geometry.ok() && geometry->num_bytes() > max_bytes) {
    return Status::InvalidArgument(
        (has_only_bytes ? "the smallest filter has " : "that rate needs ") +
        FormatBytes(geometry->num_bytes()) + " with " + std::string(LayoutName(layout)) +
        ", more than " + FormatBytes(max_bytes));
  }
  return geometry;
}

Result<Geometry> ChooseGeometry(const Options& options, uint64_t num_keys) {
  num_keys = std::max<uint64_t>(num_keys, 1);  // a filter of nothing is a filter, too
  Geometry geometry;
  if (options.layout.has_value()) {
    const Result<Geometry> sized = GeometryWithLayout(options, num_keys);
    if (!sized.ok()) return sized.status();
    geometry = *sized;
  } else {
    Workload workload{.num_keys = num_keys};
    workload.max_bytes = options.max_bytes.value_or(0);
    workload.max_fpr = options.max_fpr.value_or(options.max_bytes.has_value() ? 0 : kDefaultFpr);
    const Result<FilterPlan> plan = MakePlan(workload);
    if (!plan.ok()) return plan.status();
    geometry = plan->geometry;
  }
  geometry.hash = options.hash.value_or(geometry.hash);
  geometry.seed = options.seed;
  return geometry;
}

Result<Built> Fill(KeyReader& reader, uint64_t num_planned, Filter& filter) {
  const Result<uint64_t> num_inserted =
      ForEachBatch(reader, "inserting", [&](const KeyBatch& batch) {
        std::visit([&](const auto& keys) { filter.Insert(keys); }, batch.keys);
        return Status::Ok();
      });
  if (!num_inserted.ok()) return num_inserted.status();
  // A key may come more than once, and then there is more room than the number of rows says.
  const Result<uint64_t> estimated = EstimateKeys(filter.View());
  Built built{.num_planned = num_planned, .num_inserted = *num_inserted};
  built.num_different = std::min(*num_inserted, estimated.ok() ? *estimated : *num_inserted);
  built.predicted_fpr = fpr::Predict(filter.geometry(), built.num_different);
  return built;
}

void WarnIfOverfull(const Geometry& geometry, const Built& built) {
  if (!built.overfull()) return;
  std::fprintf(stderr,
               "tepal: the filter is overfull: planned for %s keys, about %s different ones came. "
               "False positives: %s instead of %s. Build it again with --keys %llu\n",
               FormatCount(built.num_planned).c_str(), FormatCount(built.num_different).c_str(),
               FormatShare(built.predicted_fpr).c_str(),
               FormatShare(fpr::Predict(geometry, built.num_planned)).c_str(),
               static_cast<unsigned long long>(built.num_inserted));
}

void Print(const Options& options, const Geometry& geometry, const Built& built) {
  const double bits_per_key = static_cast<double>(geometry.num_bits) /
                              static_cast<double>(std::max<uint64_t>(built.num_inserted, 1));
  if (options.json) {
    PrintJson({{"file", options.output},
               {"geometry", ToJson(geometry)},
               {"num_keys", built.num_inserted},
               {"planned_keys", built.num_planned},
               {"bits_per_key", bits_per_key},
               {"predicted_fpr", built.predicted_fpr},
               {"overfull", built.overfull()}});
    return;
  }
  std::printf("%s: %s keys in %s (%s, k = %u, %s bits per key), false positives %s\n",
              options.output.c_str(), FormatCount(built.num_inserted).c_str(),
              FormatBytes(geometry.num_bytes()).c_str(),
              std::string(LayoutName(geometry.layout)).c_str(), geometry.num_probes,
              Digits("%.3g", bits_per_key).c_str(), FormatShare(built.predicted_fpr).c_str());
}

Status Build(const Options& options) {
  InputOptions input = options.input;
  input.format = options.format.value_or(KeyFormat::kText);
  const Result<std::unique_ptr<KeyReader>> reader = KeyReader::Open(input);
  if (!reader.ok()) return reader.status();
  // A link would be replaced, and not what it leads to.
  struct stat output = {};
  if (lstat(options.output.c_str(), &output) == 0) {
    if (Status status = (*reader)->input().CheckIsNot(output); !status.ok()) return status;
  }
  const Result<uint64_t> num_keys = NumKeys(options, **reader);
  if (!num_keys.ok()) return num_keys.status();
  const Result<Geometry> geometry = ChooseGeometry(options, *num_keys);
  if (!geometry.ok()) return geometry.status();
  Result<Filter> filter = Filter::Create(*geometry);
  if (!filter.ok()) return filter.status();
  const Result<Built> built = Fill(**reader, *num_keys, *filter);
  if (!built.ok()) return built.status();
  const Status written =
      WriteFile(options.output, filter->View(), built->num_inserted, KeyKindOf(input.format));
  if (!written.ok()) return written;
  Print(options, *geometry, *built);
  WarnIfOverfull(*geometry, *built);
  return Status::Ok();
}

Result<HashKind> ParseHash(std::string_view text) {
  for (const HashKind hash : {HashKind::kXxh3, HashKind::kXxh64}) {
    if (HashKindName(hash) == text) return hash;
  }
  return Status::InvalidArgument("'" + std::string(text) + "' is not xxh3 or xxh64");
}

}  // namespace

Command AddBuild(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("build", "Make a filter file from keys");
  command->footer(
      "Files are read twice, to count their keys first. Pipes need --keys.\n"
      "Example: tepal build keys.txt -o seen.tpl --fpr 1%");
  command->add_option("INPUT", options->input.path, "File with the keys; - for standard input")
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "The filter file; replaced if it is there")
      ->required()
      ->type_name("FILE");
  AddFormatOptions(*command, options->input, options->format);
  AddParsed(*command, "--keys", options->num_keys, ParseCount, "Most keys to expect, such as 10M");
  AddParsed(*command, "--fpr", options->max_fpr, ParseRate,
            "Most false positives; 1% if neither this nor --bytes is given");
  AddParsed(*command, "--bytes", options->max_bytes, ParseBytes, "Largest filter, such as 8MiB");
  AddParsed(*command, "--layout", options->layout, ParseLayout,
            "Use this layout (split256, partitioned, ...) instead of a planned one");
  AddParsed(*command, "--hash", options->hash, ParseHash, "xxh3, or xxh64 as Parquet has it");
  AddParsed(*command, "--seed", options->seed, ParseSeed, "Seed of the hash; 0 if not given");
  AddJson(*command, options->json);
  return {command, [options] { return Build(*options); }};
}

}  // namespace tepal::tool
