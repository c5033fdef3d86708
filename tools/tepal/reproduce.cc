// tepal reproduce: the tables and figures of the papers, again.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "tools/tepal/command.h"
#include "tools/tepal/exhibit.h"
#include "tools/tepal/progress.h"
#include "tools/tepal/table.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

struct Options {
  bool full = false;
  bool json = false;
  std::string svg_directory;
};

constexpr unsigned kFullFactor = 30;

std::vector<Exhibit> MakeExhibits(Effort effort) {
  std::vector<Exhibit> exhibits;
  std::vector<Exhibit> (*const papers[])(Effort) = {RationalExhibits, VariableExhibits,
                                                    PartitionedExhibits};
  Progress progress("measuring", std::size(papers), FormatCount);
  for (const auto& paper : papers) {
    for (Exhibit& exhibit : paper(effort)) exhibits.push_back(std::move(exhibit));
    progress.Update(static_cast<uint64_t>(&paper - papers) + 1);
  }
  return exhibits;
}

Json ToJson(const Exhibit& exhibit) {
  Json rows = Json::array();
  for (const Exhibit::Row& row : exhibit.rows) {
    Json json_row = {{"name", row.name}};
    for (size_t i = 0; i < row.values.size(); ++i) {
      json_row[exhibit.columns[i].name] = row.values[i];
    }
    rows.push_back(std::move(json_row));
  }
  Json claims = Json::array();
  for (const Claim& claim : exhibit.claims) {
    claims.push_back({{"claim", claim.text}, {"holds", claim.holds}, {"finding", claim.finding}});
  }
  return {{"id", exhibit.id},
          {"title", exhibit.title},
          {"method", exhibit.method},
          {"rows", std::move(rows)},
          {"claims", std::move(claims)}};
}

void Print(const Exhibit& exhibit) {
  std::vector<std::string> header = {""};
  for (const Exhibit::Column& column : exhibit.columns) header.push_back(column.name);
  Table table(std::move(header));
  for (const Exhibit::Row& row : exhibit.rows) {
    std::vector<std::string> cells = {row.name};
    for (size_t i = 0; i < row.values.size(); ++i) {
      cells.push_back(Digits(exhibit.columns[i].format, row.values[i]));
    }
    table.Add(std::move(cells));
  }
  std::printf("%s\n  %s.\n\n%s\n", exhibit.title.c_str(), exhibit.method.c_str(),
              table.Text().c_str());
  for (const Claim& claim : exhibit.claims) {
    std::printf("  %s: %s.\n      %s.\n", claim.holds ? "HOLDS" : "DOES NOT HOLD",
                claim.text.c_str(), claim.finding.c_str());
  }
  std::printf("\n");
}

Status WriteCharts(const std::vector<Exhibit>& exhibits, const std::string& directory) {
  for (const Exhibit& exhibit : exhibits) {
    if (!exhibit.chart.has_value()) continue;
    const std::string path = directory + "/" + exhibit.id + ".svg";
    if (Status status = WriteSvg(*exhibit.chart, path); !status.ok()) return status;
    std::fprintf(stderr, "wrote %s\n", path.c_str());
  }
  return Status::Ok();
}

Status Reproduce(const Options& options) {
  if (!options.svg_directory.empty()) {
    if (Status status = CheckGnuplot(); !status.ok()) return status;
    std::error_code error;
    std::filesystem::create_directories(options.svg_directory, error);
    if (error) {
      return Status::IoError("cannot make " + options.svg_directory + ": " + error.message());
    }
  }
  const std::vector<Exhibit> exhibits = MakeExhibits({options.full ? kFullFactor : 1});
  if (options.json) {
    Json json = Json::array();
    for (const Exhibit& exhibit : exhibits) json.push_back(ToJson(exhibit));
    PrintJson({{"exhibits", std::move(json)}});
  } else {
    for (const Exhibit& exhibit : exhibits) Print(exhibit);
  }
  return options.svg_directory.empty() ? Status::Ok()
                                       : WriteCharts(exhibits, options.svg_directory);
}

}  // namespace

Command AddReproduce(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("reproduce", "Compute and measure the papers' tables and figures again");
  command->footer("Example: tepal reproduce --svg charts");
  command->add_flag("--full", options->full, "Measure for minutes instead of seconds");
  command->add_option("--svg", options->svg_directory, "Write charts into this directory")
      ->type_name("DIR");
  AddJson(*command, options->json);
  return {command, [options] { return Reproduce(*options); }};
}

}  // namespace tepal::tool
