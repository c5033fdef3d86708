// split256 beside its limit kernels and the loops that engines ship: probes, inserts, selections,
// small batches, and hashing.
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/baselines.h"
#include "bench/fixture.h"
#include "bench/ratio_report.h"
#include "kernels/layout_traits.h"
#include "tepal/tepal.h"

namespace tepal::bench {
namespace {

struct Split256Fixture : Fixture {
  explicit Split256Fixture(size_t filter_bytes)
      : Fixture({.layout = Layout::kSplit256, .num_bits = filter_bytes * 8, .num_probes = 8}),
        size_name(SizeName(filter_bytes)),
        view{bits(), filter_bytes * 8 / Split256::kBlockBits} {}

  std::string size_name;
  Split256View view;
};

void AddProbeCases(Split256Fixture& f, std::vector<Case>* cases) {
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
  add("tepal, 64 a batch, the next one prefetched", 64, [&f] {
    const std::span<const uint64_t> batch = f.Next(64);
    f.filter.PrefetchHashes(f.Peek(64));
    f.filter.ProbeHashes(batch, f.bitmap.data());
  });
  if (HaveAvx2()) {
    add("limit, prefetch, 64 a batch", 64,
        [&f] { benchmark::DoNotOptimize(Avx2LimitPrefetch(f.view, f.Next(64).data(), 64)); });
    add("AVX2 one key at a time, 64 a batch", 64,
        [&f] { Avx2OneKeyProbe(f.view, f.Next(64).data(), 64, f.bitmap.data()); });
  }
}

void AddInsertCases(Split256Fixture& f, std::vector<Case>* cases) {
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
  std::vector<std::unique_ptr<Split256Fixture>> probe_fixtures;
  std::vector<std::unique_ptr<Split256Fixture>> insert_fixtures;
  std::vector<Case> cases;
  AddHashCases(&cases);
  WarmUpMemory();
  for (const size_t kib : {16u, 256u, 4u << 10, 64u << 10, 512u << 10}) {
    AddProbeCases(*probe_fixtures.emplace_back(std::make_unique<Split256Fixture>(kib << 10)),
                  &cases);
  }
  for (const size_t kib : {16u, 256u, 64u << 10}) {
    AddInsertCases(*insert_fixtures.emplace_back(std::make_unique<Split256Fixture>(kib << 10)),
                   &cases);
  }
  Timings timings;
  return RunCases(argc, argv, cases, &timings);
}

}  // namespace
}  // namespace tepal::bench

int main(int argc, char** argv) { return tepal::bench::Main(argc, argv); }
