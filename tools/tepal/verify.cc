// tepal verify: is a filter file whole, and does it have all the keys that it should?
#include <cstdio>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tepal/container.h"
#include "tepal/filter.h"
#include "tools/tepal/command.h"
#include "tools/tepal/key_reader.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

struct Options {
  LookupOptions lookup;
  bool has_keys = false;
  bool json = false;
};

struct KeyCheck {
  uint64_t num_keys = 0;
  uint64_t num_missing = 0;
  uint64_t first_missing = 0;  // its index in the input, from 0
};

Result<KeyCheck> CheckKeys(const Options& options, const MappedFilter& filter) {
  const Result<std::unique_ptr<KeyReader>> reader = OpenKeys(options.lookup, filter.info());
  if (!reader.ok()) return reader.status();
  KeyCheck check;
  std::vector<uint32_t> rows;
  const Result<uint64_t> num_keys = ForEachBatch(**reader, "probing", [&](const KeyBatch& batch) {
    rows.resize(batch.size());
    const size_t found = std::visit(
        [&](const auto& keys) { return filter.view().Select(keys, rows.data()); }, batch.keys);
    if (found < batch.size() && check.num_missing == 0) {
      size_t first = 0;  // rows come in order
      while (first < found && rows[first] == first) ++first;
      check.first_missing = check.num_keys + first;
    }
    check.num_missing += batch.size() - found;
    check.num_keys += batch.size();
    return Status::Ok();
  });
  if (!num_keys.ok()) return num_keys.status();
  return check;
}

Status Missing(const Options& options, const KeyCheck& check) {
  return Status::Corrupt(options.lookup.filter + ": " + FormatCount(check.num_missing) + " of " +
                         FormatCount(check.num_keys) + " keys are not in the filter, first key " +
                         FormatCount(check.first_missing) + " (counted from 0)");
}

Status Verify(const Options& options) {
  const Result<MappedFilter> filter = MappedFilter::Open(options.lookup.filter);
  if (!filter.ok()) return filter.status();
  KeyCheck check;
  if (options.has_keys) {
    const Result<KeyCheck> checked = CheckKeys(options, *filter);
    if (!checked.ok()) return checked.status();
    check = *checked;
  }
  if (options.json) {
    PrintJson({{"file", options.lookup.filter},
               {"file_is_whole", true},
               {"num_keys", check.num_keys},
               {"num_missing", check.num_missing}});
  }
  if (check.num_missing > 0) return Missing(options, check);
  if (!options.json) {
    std::printf("%s: checksum and geometry are right", options.lookup.filter.c_str());
    if (options.has_keys)
      std::printf(", all %s keys are found", FormatCount(check.num_keys).c_str());
    std::printf("\n");
  }
  return Status::Ok();
}

}  // namespace

Command AddVerify(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("verify", "Check a filter file: every byte, and optionally every key");
  command->footer(
      "Exits with 1 if the file is corrupt or a key is missing.\n"
      "Example: tepal verify seen.tpl --keys keys.txt");
  AddLookupOptions(*command, options->lookup);
  CLI::Option* const keys = command
                                ->add_option_function<std::string>(
                                    "--keys",
                                    [options](const std::string& path) {
                                      options->lookup.input.path = path;
                                      options->has_keys = true;
                                    },
                                    "File with keys that must all be found; - for standard input")
                                ->type_name("FILE");
  for (const char* of_keys : {"--format", "--crlf", "--column", "--no-header", "--delimiter"}) {
    command->get_option(of_keys)->needs(keys);
  }
  AddJson(*command, options->json);
  return {command, [options] { return Verify(*options); }};
}

}  // namespace tepal::tool
