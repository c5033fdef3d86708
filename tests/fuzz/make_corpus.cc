// Writes the seeds of all fuzzers: make_corpus DIRECTORY. They are committed; run this again when a
// format or the way a fuzzer reads its input changes. Seeds whose names are hashes come from
// fuzzing: the fewest that reach every branch which it had reached (-set_cover_merge=1).
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tepal/container.h"
#include "tepal/parquet.h"
#include "tepal/profile.h"

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

class Corpus {
 public:
  explicit Corpus(fs::path directory) : directory_(std::move(directory)) {}

  void Add(const std::string& fuzzer, const std::string& name, const Bytes& bytes) {
    fs::create_directories(directory_ / fuzzer);
    std::ofstream file(directory_ / fuzzer / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    good_ = good_ && file.good();
  }
  bool good() const { return good_; }

 private:
  fs::path directory_;
  bool good_ = true;
};

tepal::Filter SmallFilter(tepal::Geometry geometry) {
  tepal::Filter filter = tepal::Filter::Create(geometry).value();
  filter.Insert(std::vector<uint64_t>{1, 2, 3, 5, 8, 13, 21});
  return filter;
}

void AddContainers(Corpus& corpus) {
  for (int i = 0; i <= static_cast<int>(tepal::Layout::kLine512); ++i) {
    const auto layout = static_cast<tepal::Layout>(i);
    const tepal::Filter filter = SmallFilter(tepal::Geometry::For(layout, 50, 12));
    corpus.Add("container_fuzzer", std::string(tepal::LayoutName(layout)),
               tepal::Serialize(filter.View(), 7, tepal::KeyKind::kUint64).value());
  }
}

void AddParquetFilters(Corpus& corpus) {
  for (const uint64_t bitset_bytes : {32u, 96u, 1024u}) {
    const auto geometry = tepal::parquet::GeometryOfBytes(bitset_bytes).value();
    corpus.Add("parquet_fuzzer", std::to_string(bitset_bytes) + "_bytes",
               tepal::parquet::Write(SmallFilter(geometry)).value());
  }
  // A field that is not known (5, a list of two strings) behind the known ones.
  corpus.Add("parquet_fuzzer", "unknown_field",
             {0x15, 0x40, 0x1C, 0x1C, 0x00, 0x00, 0x1C, 0x1C, 0x00, 0x00, 0x1C,
              0x1C, 0x00, 0x00, 0x19, 0x28, 0x01, 'a',  0x01, 'b',  0x00});
}

void AddProfiles(Corpus& corpus) {
  tepal::MachineProfile profile = tepal::MachineProfile::BuiltIn();
  profile.filter_bytes.resize(2);
  for (tepal::TimeCurve& curve : profile.curves) curve.ns.resize(2);
  const std::string json = profile.ToJson();
  corpus.Add("profile_fuzzer", "two_sizes", {json.begin(), json.end()});
}

// Two bytes of format, one of flags, then the keys.
void AddToolInputs(Corpus& corpus) {
  const auto add = [&](const std::string& name, uint8_t format, uint8_t flags,
                       std::string_view keys) {
    Bytes bytes = {format, 0, flags};
    bytes.insert(bytes.end(), keys.begin(), keys.end());
    corpus.Add("tool_fuzzer", name, bytes);
  };
  add("text", 0, 0, "one\ntwo\n\nthree");
  add("text_crlf", 0, 1, "one\r\ntwo\r\n");
  add("u32", 1, 0, "abcdefgh");
  add("u64", 2, 0, "abcdefghabcdefgh");
  add("csv", 3, 2 | 8, "a,b\n1,\"x, \"\"y\"\"\nz\"\n2,\n");
  add("csv_semicolon", 3, 4, "1;2\r\n\r\n3;4");
  add("count", 0, 0, "1.5k");
  add("bytes", 0, 0, "64 MiB");
  add("share", 0, 0, "1e-3%");
  add("time", 0, 0, "100ns");
}

// For fuzzers whose input is a program: a few random ones of different lengths.
void AddPrograms(const std::string& fuzzer, Corpus& corpus) {
  std::mt19937 engine(1);
  for (const size_t size : {16u, 64u, 256u, 1024u, 4096u}) {
    Bytes bytes(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(engine());
    corpus.Add(fuzzer, std::to_string(size) + "_random_bytes", bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_corpus DIRECTORY\n";
    return 2;
  }
  Corpus corpus(argv[1]);
  AddContainers(corpus);
  AddParquetFilters(corpus);
  AddProfiles(corpus);
  AddToolInputs(corpus);
  AddPrograms("c_api_fuzzer", corpus);
  AddPrograms("differential_fuzzer", corpus);
  return corpus.good() ? 0 : 1;
}
