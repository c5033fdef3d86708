// tepal query: which keys may be in a filter?
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tepal/container.h"
#include "tepal/filter.h"
#include "tools/tepal/command.h"
#include "tools/tepal/key_reader.h"

namespace tepal::tool {
namespace {

struct Options {
  LookupOptions lookup;
  bool invert = false;
  bool count = false;
  bool indices = false;
  bool json = false;

  bool prints_rows() const { return !count && !json; }
};

// Selects rows of a batch.
class Selector {
 public:
  Selector(const FilterView& filter, bool invert) : filter_(filter), invert_(invert) {}

  const std::vector<uint32_t>& Rows(const KeyBatch& batch) {
    rows_.resize(batch.size());
    rows_.resize(std::visit([&](const auto& keys) { return filter_.Select(keys, rows_.data()); },
                            batch.keys));
    return invert_ ? Others(batch.size()) : rows_;
  }

 private:
  const std::vector<uint32_t>& Others(size_t num_rows) {
    others_.clear();
    auto next = rows_.begin();
    for (uint32_t row = 0; row < num_rows; ++row) {
      if (next != rows_.end() && *next == row) {
        ++next;
      } else {
        others_.push_back(row);
      }
    }
    return others_;
  }

  FilterView filter_;
  bool invert_;
  std::vector<uint32_t> rows_;
  std::vector<uint32_t> others_;
};

// Whoever reads a pipe gets the rows of a batch as soon as they are known.
Status Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return Status::Ok();
  }
  return Status::IoError(std::string("cannot write to standard output: ") + std::strerror(errno));
}

struct Matches {
  uint64_t num_keys = 0;
  uint64_t num_matches = 0;
};

void AppendRows(const KeyBatch& batch, const std::vector<uint32_t>& rows, const KeyReader& reader,
                std::string& text) {
  for (const uint32_t row : rows) {
    text += batch.Row(row);
    text += reader.row_end();
  }
}

// `first_row` is the index of the batch's first key in the input.
void AppendIndices(const std::vector<uint32_t>& rows, uint64_t first_row, std::string& text) {
  for (const uint32_t row : rows) text += std::to_string(first_row + row) + "\n";
}

Result<Matches> Run(const Options& options, const FilterView& filter, KeyReader& reader) {
  Selector selector(filter, options.invert);
  Matches matches;
  std::string text;
  const auto visit = [&](const KeyBatch& batch) {
    const std::vector<uint32_t>& rows = selector.Rows(batch);
    const uint64_t first_row = matches.num_keys;
    matches.num_keys += batch.size();
    matches.num_matches += rows.size();
    if (!options.prints_rows()) return Status::Ok();
    text = first_row == 0 && !options.indices ? reader.preamble() : "";
    options.indices ? AppendIndices(rows, first_row, text) : AppendRows(batch, rows, reader, text);
    return Write(text);
  };
  const Result<uint64_t> num_keys = ForEachBatch(reader, "probing", visit);
  if (!num_keys.ok()) return num_keys.status();
  if (*num_keys == 0 && options.prints_rows() && !options.indices) {
    if (Status status = Write(reader.preamble()); !status.ok()) return status;
  }
  return matches;
}

Status Query(const Options& options) {
  const Result<MappedFilter> filter = MappedFilter::Open(options.lookup.filter);
  if (!filter.ok()) return filter.status();
  const Result<std::unique_ptr<KeyReader>> reader = OpenKeys(options.lookup, filter->info());
  if (!reader.ok()) return reader.status();
  struct stat output = {};
  if (fstat(STDOUT_FILENO, &output) == 0) {
    if (Status status = (*reader)->input().CheckIsNot(output); !status.ok()) return status;
  }
  const Result<Matches> matches = Run(options, filter->view(), **reader);
  if (!matches.ok()) return matches.status();
  if (options.json) {
    PrintJson({{"num_keys", matches->num_keys}, {"num_matches", matches->num_matches}});
  } else if (options.count) {
    std::printf("%llu\n", static_cast<unsigned long long>(matches->num_matches));
  }
  return Status::Ok();
}

}  // namespace

Command AddQuery(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("query", "Print the keys of the input that may be in a filter");
  command->footer(
      "Prints lines as they are, CSV records with their header, raw integers as raw integers.\n"
      "Exits with 0 whether or not anything matches; --count tells.\n"
      "Example: tepal query seen.tpl < candidates.txt");
  AddLookupOptions(*command, options->lookup);
  command
      ->add_option("INPUT", options->lookup.input.path, "File with the keys; - for standard input")
      ->capture_default_str();
  command->add_flag("-v,--invert", options->invert,
                    "Print the keys that are surely not in the filter instead");
  CLI::Option* const indices = command->add_flag("-n,--indices", options->indices,
                                                 "Print the indices of the keys, from 0, instead");
  command->add_flag("-c,--count", options->count, "Print how many there are instead")
      ->excludes(indices);
  AddJson(*command, options->json)->excludes(indices);
  return {command, [options] { return Query(*options); }};
}

}  // namespace tepal::tool
