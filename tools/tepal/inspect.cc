// tepal inspect: what is in a filter file?
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "tepal/container.h"
#include "tepal/fpr.h"
#include "tepal/sets.h"
#include "tools/tepal/command.h"
#include "tools/tepal/table.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

struct Options {
  std::string filter;
  bool json = false;
};

// What the bits say, whatever the header says.
struct Contents {
  double fill_ratio = 0;
  std::optional<uint64_t> estimated_keys = {};  // none if every bit is set
  double predicted_fpr = 1;
};

Contents Examine(const FilterView& filter) {
  Contents contents{.fill_ratio = FillRatio(filter)};
  if (const Result<uint64_t> keys = EstimateKeys(filter); keys.ok()) {
    contents.estimated_keys = *keys;
    contents.predicted_fpr = fpr::Predict(filter.geometry(), *keys);
  }
  return contents;
}

void PrintAsJson(const Options& options, const ContainerInfo& info, const Contents& contents) {
  Json json = {{"file", options.filter},
               {"version", info.version},
               {"geometry", ToJson(info.geometry)},
               {"key_kind", KeyKindName(info.key_kind)},
               {"num_keys", info.num_keys},
               {"fill_ratio", contents.fill_ratio},
               {"estimated_keys", nullptr},
               {"predicted_fpr", contents.predicted_fpr}};
  if (contents.estimated_keys.has_value()) json["estimated_keys"] = *contents.estimated_keys;
  PrintJson(json);
}

void PrintAsText(const Options& options, const ContainerInfo& info, const Contents& contents) {
  const Geometry& geometry = info.geometry;
  const std::string k = geometry.rational_k > 0 ? Digits("%g", geometry.rational_k)
                                                : std::to_string(geometry.num_probes);
  const auto line = [](const char* name, const std::string& value) {
    std::printf("  %-18s %s\n", name, value.c_str());
  };
  std::printf("%s\n", options.filter.c_str());
  line("layout", std::string(LayoutName(geometry.layout)) + ", k = " + k);
  line("size", FormatBytes(geometry.num_bytes()) + ", " + FormatCount(geometry.num_bits) + " bits");
  line("hash",
       std::string(HashKindName(geometry.hash)) + ", seed " + std::to_string(geometry.seed));
  line("keys", (info.num_keys > 0 ? FormatCount(info.num_keys) : std::string("unknown")) +
                   " inserted, kind " + std::string(KeyKindName(info.key_kind)));
  line("fill", FormatShare(contents.fill_ratio));
  line("estimated keys", contents.estimated_keys.has_value()
                             ? FormatCount(*contents.estimated_keys)
                             : std::string("unknown, every bit is set"));
  line("false positives", FormatShare(contents.predicted_fpr));
  line("format version", std::to_string(info.version));
}

Status Inspect(const Options& options) {
  const Result<MappedFilter> filter = MappedFilter::Open(options.filter);
  if (!filter.ok()) return filter.status();
  const Contents contents = Examine(filter->view());
  options.json ? PrintAsJson(options, filter->info(), contents)
               : PrintAsText(options, filter->info(), contents);
  return Status::Ok();
}

}  // namespace

Command AddInspect(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("inspect", "Show what a filter file is like");
  command->footer(
      "Counts the bits, so that estimated keys and false positives are those of now.\n"
      "Example: tepal inspect seen.tpl --json");
  command->add_option("FILTER", options->filter, "The filter file")->required();
  AddJson(*command, options->json);
  return {command, [options] { return Inspect(*options); }};
}

}  // namespace tepal::tool
