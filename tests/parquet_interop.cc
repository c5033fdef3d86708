// Filters that other engines wrote into Parquet files, against what DuckDB says about them (see
// tests/duckdb/answers.mjs). For every filter: its bytes are read, the probes get DuckDB's answers,
// and a filter of the same size that we make of the same values has the same bytes, header
// included.
//
//   parquet_interop DIRECTORY        with answers.txt and the files; tools/duckdb-test makes it
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tepal/parquet.h"

namespace tepal::parquet {
namespace {

using Bytes = std::vector<uint8_t>;

struct FilterCase {
  std::string file;
  size_t offset = 0;
  size_t length = 0;
  std::string type;
  std::vector<std::string> values;  // plain encodings
  std::vector<std::string> probes;
  std::vector<bool> answers;  // of DuckDB: may probe i be there?
};

struct Totals {
  size_t filters = 0, values = 0, probes = 0, maybes = 0, false_positives = 0, odd_sizes = 0;
  size_t failures = 0;
  std::map<std::string, size_t> filters_of_type;
};

std::string FromHex(const std::string& hex) {
  std::string bytes;
  if (hex == "-") return bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::vector<FilterCase> ReadAnswers(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path);
  std::vector<FilterCase> cases;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind, hex;
    words >> kind;
    if (kind == "filter") {
      FilterCase& added = cases.emplace_back();
      words >> added.file >> added.offset >> added.length >> added.type;
    } else if (kind == "value") {
      words >> hex;
      cases.back().values.push_back(FromHex(hex));
    } else if (kind == "probe") {
      int maybe = -1;
      words >> hex >> maybe;
      cases.back().probes.push_back(FromHex(hex));
      cases.back().answers.push_back(maybe == 1);
    }
    if (!words) throw std::runtime_error("a line that makes no sense: " + line);
  }
  return cases;
}

Bytes ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// ---- Values of plain encodings

template <typename T, typename Bits>
std::vector<uint64_t> HashNumbers(const std::vector<std::string>& encodings) {
  std::vector<T> values;
  for (const std::string& bytes : encodings) {
    if (bytes.size() != sizeof(T)) throw std::runtime_error("a value of a wrong length");
    Bits bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i) bits |= Bits{static_cast<uint8_t>(bytes[i])} << (8 * i);
    values.push_back(std::bit_cast<T>(bits));
  }
  std::vector<uint64_t> hashes(values.size());
  HashValues(std::span<const T>(values), hashes.data());
  return hashes;
}

std::vector<uint64_t> HashByteArrays(const std::vector<std::string>& values, bool fixed) {
  std::string data;
  std::vector<int64_t> offsets = {0};
  for (const std::string& value : values) {
    data += value;
    offsets.push_back(static_cast<int64_t>(data.size()));
  }
  std::vector<uint64_t> hashes(values.size());
  if (fixed) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
    const size_t width_bytes = values.empty() ? 0 : values.front().size();
    HashValues(FixedColumn{bytes, width_bytes, values.size()}, hashes.data());
  } else {
    HashValues(StringColumn(data.data(), offsets.data(), values.size()), hashes.data());
  }
  return hashes;
}

std::vector<uint64_t> Hash(const std::string& type, const std::vector<std::string>& encodings) {
  if (type == "INT32") return HashNumbers<int32_t, uint32_t>(encodings);
  if (type == "INT64") return HashNumbers<int64_t, uint64_t>(encodings);
  if (type == "FLOAT") return HashNumbers<float, uint32_t>(encodings);
  if (type == "DOUBLE") return HashNumbers<double, uint64_t>(encodings);
  if (type == "BYTE_ARRAY") return HashByteArrays(encodings, false);
  if (type == "FIXED_LEN_BYTE_ARRAY") return HashByteArrays(encodings, true);
  throw std::runtime_error("unexpected type " + type);
}

// ---- The comparison

void Fail(const FilterCase& c, const std::string& what, Totals& totals) {
  std::fprintf(stderr, "%s, filter at %zu (%s): %s\n", c.file.c_str(), c.offset, c.type.c_str(),
               what.c_str());
  ++totals.failures;
}

void CompareAnswers(const FilterCase& c, const Filter& filter, Totals& totals) {
  const std::vector<uint64_t> hashes = Hash(c.type, c.probes);
  Bytes bitmap((hashes.size() + 7) / 8);
  filter.ProbeHashes(hashes, bitmap.data());
  for (size_t i = 0; i < hashes.size(); ++i) {
    const bool maybe = (bitmap[i / 8] >> (i % 8) & 1) != 0;
    if (maybe != c.answers[i]) {
      Fail(c, "probe " + std::to_string(i) + ": DuckDB says " + (maybe ? "no" : "maybe"), totals);
    }
    const bool present = std::find(c.values.begin(), c.values.end(), c.probes[i]) != c.values.end();
    totals.maybes += maybe ? 1 : 0;
    totals.false_positives += maybe && !present ? 1 : 0;
  }
  totals.probes += hashes.size();
}

void CompareBytes(const FilterCase& c, std::span<const uint8_t> theirs, size_t bitset_bytes,
                  Totals& totals) {
  Filter ours = Filter::Create(GeometryOfBytes(bitset_bytes).value()).value();
  ours.InsertHashes(Hash(c.type, c.values));
  const Bytes written = Write(ours).value();
  if (!std::equal(written.begin(), written.end(), theirs.begin(), theirs.end())) {
    Fail(c, "the same values give other bytes", totals);
  }
}

void Compare(const FilterCase& c, std::span<const uint8_t> file, Totals& totals) {
  if (c.offset > file.size() || c.length > file.size() - c.offset) {
    return Fail(c, "lies outside of the file", totals);
  }
  const std::span<const uint8_t> bytes = file.subspan(c.offset, c.length);
  const Result<Filter> filter = ReadExactly(bytes);
  if (!filter.ok()) return Fail(c, filter.status().message(), totals);
  const size_t bitset_bytes = filter->bytes().size();
  CompareAnswers(c, *filter, totals);
  CompareBytes(c, bytes, bitset_bytes, totals);
  ++totals.filters;
  ++totals.filters_of_type[c.type];
  totals.values += c.values.size();
  totals.odd_sizes += std::has_single_bit(bitset_bytes) ? 0 : 1;
}

int Run(const std::string& directory) {
  Totals totals;
  std::string name;
  Bytes file;
  for (const FilterCase& c : ReadAnswers(directory + "/answers.txt")) {
    if (c.file != name) file = ReadFile(directory + "/" + (name = c.file));
    Compare(c, file, totals);
  }
  for (const auto& [type, count] : totals.filters_of_type) {
    std::printf("%-22s %3zu filters\n", type.c_str(), count);
  }
  std::printf(
      "%zu filters (%zu of them of no power of two) with %zu values; %zu probes: %zu maybe "
      "(%zu false positives), %zu excluded; %zu differences\n",
      totals.filters, totals.odd_sizes, totals.values, totals.probes, totals.maybes,
      totals.false_positives, totals.probes - totals.maybes, totals.failures);
  // A comparison in which one kind of answer never comes up would prove little.
  const bool all_kinds = totals.filters_of_type.size() == 6 && totals.odd_sizes != 0 &&
                         totals.false_positives != 0 && totals.maybes != totals.probes;
  if (!all_kinds) std::fprintf(stderr, "not all physical types, sizes or answers came up\n");
  return totals.failures == 0 && all_kinds ? 0 : 1;
}

}  // namespace
}  // namespace tepal::parquet

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: parquet_interop DIRECTORY\n");
    return 2;
  }
  try {
    return tepal::parquet::Run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parquet_interop: %s\n", error.what());
    return 1;
  }
}
