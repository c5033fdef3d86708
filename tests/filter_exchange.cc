// Filters made on one CPU are read on another, bit for bit: containers of every layout, and the
// bytes of Parquet's filters. tools/cross-test runs this program on both:
//
//   filter_exchange write DIRECTORY    one file for each filter
//   filter_exchange check DIRECTORY    reads them on every target that this CPU can run
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tepal/tepal.h"
#include "tests/geometries.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kSeed = 20260401;

struct ExchangedFilter {
  std::string file_name;
  Geometry geometry;
  bool is_parquet;
};

// All that are of the same size on every machine, and fit into its memory.
std::vector<ExchangedFilter> ExchangedFilters() {
  std::vector<ExchangedFilter> filters;
  for (const GeometryCase& geometry_case : OracleGeometries()) {
    if (geometry_case.name.find("above_") != std::string::npos) continue;
    filters.push_back({geometry_case.name + ".tepal", geometry_case.geometry, false});
    if (geometry_case.geometry.layout != Layout::kSplit256) continue;
    Geometry geometry = geometry_case.geometry;
    geometry.hash = HashKind::kXxh64;
    filters.push_back({geometry_case.name + ".parquet_filter", geometry, true});
  }
  return filters;
}

std::vector<uint64_t> KeysOf(const Geometry& geometry) {
  return RandomValues(kSeed, static_cast<size_t>(geometry.num_bits / 16));
}

// The file, as the target in force makes it.
std::vector<uint8_t> MakeFile(const ExchangedFilter& exchanged) {
  Filter filter = MakeFilter(exchanged.geometry);
  const std::vector<uint64_t> keys = KeysOf(exchanged.geometry);
  filter.Insert(keys);
  if (exchanged.is_parquet) return parquet::Write(filter).value();
  return Serialize(filter.View(), keys.size(), KeyKind::kUint64).value();
}

bool Write(const std::filesystem::path& path, const ExchangedFilter& exchanged) {
  const std::vector<uint8_t> bytes = MakeFile(exchanged);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file.good();
}

// Can the file be read, are all keys found in it, and is it what this target would have written?
bool Check(const std::filesystem::path& path, const ExchangedFilter& exchanged) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  const Result<Filter> filter =
      exchanged.is_parquet ? parquet::ReadExactly(bytes) : Deserialize(bytes);
  if (!filter.ok()) return false;
  const std::vector<uint64_t> keys = KeysOf(exchanged.geometry);
  return filter->geometry() == exchanged.geometry && filter->Count(keys) == keys.size() &&
         bytes == MakeFile(exchanged);
}

template <class Handle>
bool ForEachFilter(const std::filesystem::path& directory, const Handle& handle) {
  size_t num_wrong = 0;
  const std::vector<ExchangedFilter> filters = ExchangedFilters();
  for (const ExchangedFilter& exchanged : filters) {
    const std::filesystem::path path = directory / exchanged.file_name;
    if (handle(path, exchanged)) continue;
    std::fprintf(stderr, "wrong: %s\n", path.c_str());
    ++num_wrong;
  }
  std::printf("%s: %zu filters, %zu of them wrong\n", ActiveTarget().c_str(), filters.size(),
              num_wrong);
  return num_wrong == 0;
}

bool CheckOnEveryTarget(const std::filesystem::path& directory) {
  bool ok = true;
  for (const std::string& target : AvailableTargets()) {
    ok = ForceTarget(target).ok() && ForEachFilter(directory, Check) && ok;
  }
  return ok;
}

}  // namespace
}  // namespace tepal::testing

int main(int argc, char** argv) {
  using namespace tepal::testing;
  const std::string_view command = argc == 3 ? argv[1] : "";
  if (command == "write") {
    std::filesystem::create_directories(argv[2]);
    return ForEachFilter(argv[2], Write) ? 0 : 1;
  }
  if (command == "check") return CheckOnEveryTarget(argv[2]) ? 0 : 1;
  std::fprintf(stderr, "usage: filter_exchange write|check DIRECTORY\n");
  return 2;
}
