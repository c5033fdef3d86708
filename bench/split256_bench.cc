// split256 beside its limit kernels and the loops that engines ship: probes, inserts, selections,
// small batches, and hashing.
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/baselines.h"
#include "bench/ratio_report.h"
#include "kernels/layout_traits.h"
#include "tepal/tepal.h"

namespace tepal::bench {
namespace {

constexpr size_t kBatchKeys = 2048;
constexpr double kBitsPerKey = 12;

std::vector<uint64_t> RandomHashes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = random();
  return hashes;
}

std::string SizeName(size_t bytes) {
  return bytes >= size_t{1} << 20 ? std::to_string(bytes >> 20) + " MiB"
                                  : std::to_string(bytes >> 10) + " KiB";
}

// A filter at its design load, and hashes to probe it with: few enough to stay in L2 where the
// filter stays in cache, many enough not to touch the same lines again where it does not.
struct Fixture {
  explicit Fixture(size_t filter_bytes)
      : size_name(SizeName(filter_bytes)),
        filter(Filter::Create(
                   {.layout = Layout::kSplit256, .num_bits = filter_bytes * 8, .num_probes = 8})
                   .value()),
        probes(RandomHashes(filter_bytes > size_t{1} << 20 ? size_t{1} << 22 : size_t{1} << 16, 2)),
        bitmap(probes.size() / 8),
        rows(kBatchKeys),
        // The baselines write to the filter as the library does; the bytes are ours, the constness
        // is the API's.
        view{const_cast<uint8_t*>(filter.bytes().data()), filter_bytes / Split256::kBlockBytes} {
    const auto keys = static_cast<size_t>(static_cast<double>(filter_bytes) * 8 / kBitsPerKey);
    filter.InsertHashes(RandomHashes(keys, 1));
  }

  // The next batch; all probes in turn.
  std::span<const uint64_t> Next(size_t count) {
    if (next + count > probes.size()) next = 0;
    next += count;
    return {probes.data() + next - count, count};
  }

  std::string size_name;
  Filter filter;
  std::vector<uint64_t> probes;
  std::vector<uint8_t> bitmap;
  std::vector<uint32_t> rows;
  Split256View view;
  size_t next = 0;
};

void AddProbeCases(Fixture& f, std::vector<Case>* cases) {
  const std::string group = "probe " + f.size_name;
  const auto add = [&](const char* name, size_t keys, std::function<void()> run) {
    cases->push_back({group, name, keys, std::move(run)});
  };
  if (HaveAvx2()) {
    add("limit", kBatchKeys, [&f] {
      benchmark::DoNotOptimize(Avx2Limit(f.view, f.Next(kBatchKeys).data(), kBatchKeys));
    });
    add("limit, prefetch", kBatchKeys, [&f] {
      benchmark::DoNotOptimize(Avx2LimitPrefetch(f.view, f.Next(kBatchKeys).data(), kBatchKeys));
    });
    add("AVX2 one key at a time", kBatchKeys,
        [&f] { Avx2OneKeyProbe(f.view, f.Next(kBatchKeys).data(), kBatchKeys, f.bitmap.data()); });
  }
  add("scalar loop", kBatchKeys,
      [&f] { ScalarProbe(f.view, f.Next(kBatchKeys).data(), kBatchKeys, f.bitmap.data()); });
  add("tepal hashes to bitmap", kBatchKeys,
      [&f] { f.filter.ProbeHashes(f.Next(kBatchKeys), f.bitmap.data()); });
  add("tepal hashes to selection", kBatchKeys,
      [&f] { f.filter.SelectHashes(f.Next(kBatchKeys), f.rows.data()); });
  add("tepal hashes to count", kBatchKeys,
      [&f] { benchmark::DoNotOptimize(f.filter.CountHashes(f.Next(kBatchKeys))); });
  add("tepal uint64 keys to bitmap", kBatchKeys,
      [&f] { f.filter.Probe(f.Next(kBatchKeys), f.bitmap.data()); });
  add("tepal hashes to bitmap, 64 a batch", 64,
      [&f] { f.filter.ProbeHashes(f.Next(64), f.bitmap.data()); });
  add("AVX2 one key at a time, 64 a batch", 64,
      [&f] { Avx2OneKeyProbe(f.view, f.Next(64).data(), 64, f.bitmap.data()); });
}

void AddInsertCases(Fixture& f, std::vector<Case>* cases) {
  const std::string group = "insert " + f.size_name;
  const auto add = [&](const char* name, std::function<void()> run) {
    cases->push_back({group, name, kBatchKeys, std::move(run)});
  };
  if (HaveAvx2()) {
    add("limit, prefetch",
        [&f] { Avx2WriteLimitPrefetch(f.view, f.Next(kBatchKeys).data(), kBatchKeys); });
    add("AVX2 one key at a time",
        [&f] { Avx2OneKeyInsert(f.view, f.Next(kBatchKeys).data(), kBatchKeys); });
  }
  add("scalar loop", [&f] { ScalarInsert(f.view, f.Next(kBatchKeys).data(), kBatchKeys); });
  add("tepal hashes", [&f] { f.filter.InsertHashes(f.Next(kBatchKeys)); });
}

void AddHashCases(std::vector<Case>* cases) {
  static std::vector<uint64_t> keys = RandomHashes(kBatchKeys, 3);
  static std::vector<uint64_t> hashes(kBatchKeys);
  for (const HashKind kind : {HashKind::kXxh3, HashKind::kXxh64}) {
    const std::string group = "hash uint64 " + std::string(HashKindName(kind));
    cases->push_back({group, "xxHash library, inlined", kBatchKeys, [kind] {
                        (kind == HashKind::kXxh3 ? LibraryXxh3 : LibraryXxh64)(
                            keys.data(), kBatchKeys, hashes.data());
                        benchmark::ClobberMemory();
                      }});
    cases->push_back({group, "tepal", kBatchKeys, [kind] {
                        HashKeys(kind, 0, keys, hashes.data());
                        benchmark::ClobberMemory();
                      }});
  }
}

int Main(int argc, char** argv) {
  std::printf("target %s, batches of %zu, %g bits per key, all probes of absent keys\n",
              ActiveTarget().c_str(), kBatchKeys, kBitsPerKey);
  std::vector<std::unique_ptr<Fixture>> probe_fixtures;
  std::vector<std::unique_ptr<Fixture>> insert_fixtures;
  std::vector<Case> cases;
  AddHashCases(&cases);
  // The first large regions of a process run slower on some systems: let them go unused.
  { Fixture warm_up(size_t{64} << 20); }
  for (const size_t kib : {16u, 256u, 4u << 10, 64u << 10, 512u << 10}) {
    AddProbeCases(*probe_fixtures.emplace_back(std::make_unique<Fixture>(kib << 10)), &cases);
  }
  for (const size_t kib : {16u, 256u, 64u << 10}) {
    AddInsertCases(*insert_fixtures.emplace_back(std::make_unique<Fixture>(kib << 10)), &cases);
  }
  Timings timings;
  return RunCases(argc, argv, cases, &timings);
}

}  // namespace
}  // namespace tepal::bench

int main(int argc, char** argv) { return tepal::bench::Main(argc, argv); }
