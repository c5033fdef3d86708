// What the commands have in common.
#ifndef TEPAL_TOOLS_TEPAL_COMMAND_H_
#define TEPAL_TOOLS_TEPAL_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tepal/container.h"
#include "tepal/geometry.h"
#include "tepal/status.h"
#include "tools/tepal/key_reader.h"

namespace tepal::tool {

// A subcommand: CLI11 says whether it was asked for, and then `run` does it.
struct Command {
  CLI::App* app = nullptr;
  std::function<Status()> run;
};

Command AddBuild(CLI::App& app);
Command AddCalibrate(CLI::App& app);
Command AddDemo(CLI::App& app);
Command AddInspect(CLI::App& app);
Command AddPlan(CLI::App& app);
Command AddQuery(CLI::App& app);
Command AddReproduce(CLI::App& app);
Command AddTargets(CLI::App& app);
Command AddVerify(CLI::App& app);

// All of them, in the order of the help text.
std::vector<Command> AddCommands(CLI::App& app);

// Members keep the order in which they were added.
using Json = nlohmann::ordered_json;

void PrintJson(const Json& json);
Json ToJson(const Geometry& geometry);

// An option whose text `parse` understands, such as one of units.h.
template <typename Value, typename Parsed>
CLI::Option* AddParsed(CLI::App& app, const std::string& name, Value& value,
                       Result<Parsed> (*parse)(std::string_view), const std::string& help) {
  return app.add_option_function<std::string>(
      name,
      [&value, parse, name](const std::string& text) {
        const Result<Parsed> parsed = parse(text);
        if (!parsed.ok()) throw CLI::ValidationError(name, parsed.status().message());
        value = *parsed;
      },
      help);
}

CLI::Option* AddJson(CLI::App& app, bool& json);

// --format and what belongs to it. Where the keys come from is up to the command. `format` stays
// empty if it is not given.
void AddFormatOptions(CLI::App& app, InputOptions& input, std::optional<KeyFormat>& format);

// How keys of a format are hashed, and so which filters they may be looked up in.
KeyKind KeyKindOf(KeyFormat format);

// A filter file, and keys to look up in it.
struct LookupOptions {
  std::string filter;
  InputOptions input;
  std::optional<KeyFormat> format;
};

// FILTER, --format and what belongs to it.
void AddLookupOptions(CLI::App& app, LookupOptions& options);

// The keys to look up: in the given format, if it fits this filter, or in the filter's own.
Result<std::unique_ptr<KeyReader>> OpenKeys(const LookupOptions& options,
                                            const ContainerInfo& info);

// Calls `visit(batch)` for all batches; shows progress. Returns the number of keys.
Result<uint64_t> ForEachBatch(KeyReader& reader, const std::string& what,
                              const std::function<Status(const KeyBatch&)>& visit);

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_COMMAND_H_
