#include "tools/tepal/command.h"

#include <cstdio>
#include <map>

#include "tools/tepal/progress.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

const std::map<std::string, KeyFormat>& FormatNames() {
  static const std::map<std::string, KeyFormat> kNames = {{"text", KeyFormat::kText},
                                                          {"u32", KeyFormat::kU32},
                                                          {"u64", KeyFormat::kU64},
                                                          {"csv", KeyFormat::kCsv}};
  return kNames;
}

Result<KeyFormat> ParseFormat(std::string_view text) {
  const auto found = FormatNames().find(std::string(text));
  if (found != FormatNames().end()) return found->second;
  return Status::InvalidArgument("'" + std::string(text) + "' is not text, u32, u64 or csv");
}

Result<char> ParseDelimiter(std::string_view text) {
  if (text == "tab") return '\t';
  if (text.size() == 1 && text != "\"" && text != "\n") return text[0];
  return Status::InvalidArgument("'" + std::string(text) + "' is not one character, or tab");
}

// The given format, if it fits, or the filter's own.
Result<KeyFormat> FormatFor(const ContainerInfo& info, std::optional<KeyFormat> given) {
  const KeyKind kind = info.key_kind;
  if (given.has_value()) {
    if (kind == KeyKind::kUnknown || kind == KeyKindOf(*given)) return *given;
    return Status::InvalidArgument("the filter has keys of kind " + std::string(KeyKindName(kind)) +
                                   ", and --format asks for " +
                                   std::string(KeyKindName(KeyKindOf(*given))));
  }
  if (kind == KeyKind::kUint64) return KeyFormat::kU64;
  if (kind == KeyKind::kUint32) return KeyFormat::kU32;
  if (kind == KeyKind::kBytes) return KeyFormat::kText;
  return Status::InvalidArgument("the filter has keys of kind " + std::string(KeyKindName(kind)) +
                                 (kind == KeyKind::kUnknown
                                      ? ": say with --format what to look up"
                                      : ", which only their own program can look up"));
}

}  // namespace

std::vector<Command> AddCommands(CLI::App& app) {
  return {AddPlan(app),    AddBuild(app),     AddQuery(app),     AddInspect(app), AddVerify(app),
          AddTargets(app), AddCalibrate(app), AddReproduce(app), AddDemo(app)};
}

void PrintJson(const Json& json) {
  // Text from outside need not be UTF-8.
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

Json ToJson(const Geometry& geometry) {
  Json json = {{"layout", LayoutName(geometry.layout)},
               {"num_bits", geometry.num_bits},
               {"num_bytes", geometry.num_bytes()},
               {"num_probes", geometry.num_probes}};
  if (geometry.rational_k > 0) json["rational_k"] = geometry.rational_k;
  json["hash"] = HashKindName(geometry.hash);
  json["seed"] = geometry.seed;
  return json;
}

CLI::Option* AddJson(CLI::App& app, bool& json) {
  return app.add_flag("--json", json, "Print JSON, for programs");
}

void AddFormatOptions(CLI::App& app, InputOptions& input, std::optional<KeyFormat>& format) {
  AddParsed(app, "--format", format, ParseFormat,
            "text: a key per line; u32, u64: raw little-endian integers; csv: a column")
      ->type_name("FORMAT");
  app.add_flag("--crlf", input.crlf, "Text: lines end with CR LF");
  app.add_option("--column", input.column, "CSV: name of the column, or its number from 1")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("!--no-header", input.header, "CSV: the first record has no names, but keys");
  AddParsed(app, "--delimiter", input.delimiter, ParseDelimiter,
            "CSV: a character, or 'tab'; ',' if not given")
      ->type_name("CHAR");
}

KeyKind KeyKindOf(KeyFormat format) {
  switch (format) {
    case KeyFormat::kText:
    case KeyFormat::kCsv:
      return KeyKind::kBytes;
    case KeyFormat::kU32:
      return KeyKind::kUint32;
    case KeyFormat::kU64:
      return KeyKind::kUint64;
  }
  return KeyKind::kUnknown;
}

void AddLookupOptions(CLI::App& app, LookupOptions& options) {
  app.add_option("FILTER", options.filter, "The filter file")->required();
  AddFormatOptions(app, options.input, options.format);
}

Result<std::unique_ptr<KeyReader>> OpenKeys(const LookupOptions& options,
                                            const ContainerInfo& info) {
  const Result<KeyFormat> format = FormatFor(info, options.format);
  if (!format.ok()) return format.status();
  InputOptions input = options.input;
  input.format = *format;
  return KeyReader::Open(input);
}

Result<uint64_t> ForEachBatch(KeyReader& reader, const std::string& what,
                              const std::function<Status(const KeyBatch&)>& visit) {
  Progress progress(what, reader.input().size().value_or(0), FormatBytes);
  uint64_t num_keys = 0;
  for (KeyBatch batch;;) {
    const Result<bool> more = reader.Next(batch);
    if (!more.ok()) return more.status();
    if (!*more) return num_keys;
    if (Status status = visit(batch); !status.ok()) return status;
    num_keys += batch.size();
    progress.Update(reader.input().bytes_consumed());
  }
}

}  // namespace tepal::tool
