// Filters made on one CPU are read on another, bit for bit. tools/cross-test runs this program on
// both:
//
//   filter_exchange write DIRECTORY    one file for each layout and size
//   filter_exchange check DIRECTORY    reads them on every target that this CPU can run
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tepal/tepal.h"
#include "tests/geometries.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kSeed = 20260401;

// All that are of the same size on every machine, and fit into its memory.
std::vector<GeometryCase> ExchangedFilters() {
  std::vector<GeometryCase> cases = OracleGeometries();
  std::erase_if(cases, [](const GeometryCase& c) { return c.name.find("above_") != c.name.npos; });
  return cases;
}

std::vector<uint64_t> KeysOf(const Geometry& geometry) {
  return RandomValues(kSeed, geometry.num_bits / 16);
}

std::filesystem::path FileOf(const std::string& directory, const GeometryCase& geometry_case) {
  return std::filesystem::path(directory) / (geometry_case.name + ".bits");
}

std::vector<uint8_t> MakeBytes(const Geometry& geometry) {
  Filter filter = MakeFilter(geometry);
  filter.Insert(KeysOf(geometry));
  return BytesOf(filter);
}

bool Write(const std::string& directory, const GeometryCase& geometry_case) {
  const std::vector<uint8_t> bytes = MakeBytes(geometry_case.geometry);
  std::ofstream file(FileOf(directory, geometry_case), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file.good();
}

// Does the file hold the filter that this target makes, and does it find all keys in it?
bool Check(const std::string& directory, const GeometryCase& geometry_case) {
  std::ifstream file(FileOf(directory, geometry_case), std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  const Result<Filter> filter = Filter::FromBytes(geometry_case.geometry, bytes);
  if (!filter.ok()) return false;
  const std::vector<uint64_t> keys = KeysOf(geometry_case.geometry);
  return filter->Count(keys) == keys.size() && bytes == MakeBytes(geometry_case.geometry);
}

template <class Handle>
int ForEachFilter(const std::string& directory, const Handle& handle) {
  int num_wrong = 0;
  for (const GeometryCase& geometry_case : ExchangedFilters()) {
    if (handle(directory, geometry_case)) continue;
    std::fprintf(stderr, "wrong: %s\n", FileOf(directory, geometry_case).c_str());
    ++num_wrong;
  }
  std::printf("%s: %zu filters, %d of them wrong\n", ActiveTarget().c_str(),
              ExchangedFilters().size(), num_wrong);
  return num_wrong == 0 ? 0 : 1;
}

int Run(std::string_view command, const std::string& directory) {
  if (command == "write") {
    std::filesystem::create_directories(directory);
    return ForEachFilter(directory, Write);
  }
  int exit_code = command == "check" ? 0 : 2;
  for (const std::string& target : AvailableTargets()) {
    if (!ForceTarget(target).ok() || ForEachFilter(directory, Check) != 0) exit_code = 1;
  }
  return exit_code;
}

}  // namespace
}  // namespace tepal::testing

int main(int argc, char** argv) {
  if (argc == 3) return tepal::testing::Run(argv[1], argv[2]);
  std::fprintf(stderr, "usage: filter_exchange write|check DIRECTORY\n");
  return 2;
}
