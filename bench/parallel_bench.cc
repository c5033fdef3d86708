// Filter::Insert on one thread against ParallelBuilder on one and two, for whole builds of uint64
// keys at 12 bits a key: Create, Insert by calls of 64 Ki keys, Finish. Memory is fresh each time,
// so that page faults are part of it. Arguments: sizes in MiB (0: 16 KiB), default 0 4 64.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/fixture.h"
#include "bench/ratio_report.h"
#include "tepal/parallel_builder.h"
#include "tepal/tepal.h"

namespace tepal::bench {
namespace {

constexpr size_t kCallKeys = size_t{1} << 16;

struct Row {
  std::string name;
  std::function<void()> build;
  std::vector<double> seconds;
};

// All threads take the next call's keys until there are none.
void InsertOnThreads(ParallelBuilder& builder, std::span<const uint64_t> keys, int num_threads) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t begin; (begin = next.fetch_add(kCallKeys)) < keys.size();) {
      builder.Insert(keys.subspan(begin, std::min(kCallKeys, keys.size() - begin)));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

void BuildParallel(const Geometry& geometry, std::span<const uint64_t> keys, BuildStrategy strategy,
                   int num_threads) {
  ParallelBuilder builder = ParallelBuilder::Create(geometry, {}, strategy).value();
  InsertOnThreads(builder, keys, num_threads);
  benchmark::DoNotOptimize(std::move(builder).Finish().value().bytes().data());
}

void BuildSerial(const Geometry& geometry, std::span<const uint64_t> keys) {
  Filter filter = Filter::Create(geometry).value();
  for (size_t begin = 0; begin < keys.size(); begin += kCallKeys) {
    filter.Insert(keys.subspan(begin, std::min(kCallKeys, keys.size() - begin)));
  }
  benchmark::DoNotOptimize(filter.bytes().data());
}

std::vector<Row> RowsFor(const Geometry& geometry, std::span<const uint64_t> keys) {
  std::vector<Row> rows;
  rows.push_back({"serial", [=] { BuildSerial(geometry, keys); }, {}});
  const auto add = [&](const char* name, BuildStrategy strategy) {
    for (const int num_threads : {1, 2}) {
      rows.push_back({std::string(name) + ", " + std::to_string(num_threads) + " threads",
                      [=] { BuildParallel(geometry, keys, strategy, num_threads); },
                      {}});
    }
  };
  add("private", BuildStrategy::kPrivate);
  if (geometry.layout >= Layout::kRegister) add("partitioned", BuildStrategy::kPartitioned);
  add("atomic", BuildStrategy::kAtomic);
  return rows;
}

void Report(const std::string& title, const std::vector<Row>& rows, size_t num_keys) {
  const double per_key = 1e9 / static_cast<double>(num_keys);
  std::printf("\n%-32s min ns/key     median    speed-up (of the median)\n", title.c_str());
  for (const Row& row : rows) {
    std::printf("  %-30s %10.3f %10.3f %8.2fx\n", row.name.c_str(), Minimum(row.seconds) * per_key,
                Median(row.seconds) * per_key, Median(rows[0].seconds) / Median(row.seconds));
  }
}

void Run(Layout layout, uint64_t num_bytes) {
  const auto design_keys = static_cast<size_t>(static_cast<double>(num_bytes * 8) / kBitsPerKey);
  // A small filter gets its keys many times over, or there would be nothing to measure.
  const std::vector<uint64_t> keys = RandomHashes(std::max(design_keys, size_t{1} << 20), 1);
  const bool split = layout == Layout::kSplit256;
  const Geometry geometry = {
      .layout = layout, .num_bits = num_bytes * 8, .num_probes = split ? 8u : 7u};
  std::vector<Row> rows = RowsFor(geometry, keys);
  const int rounds = num_bytes > size_t{32} << 20 ? 9 : 15;
  for (int round = 0; round < rounds; ++round) {  // interleaved: see ratio_report.h
    for (Row& row : rows) {
      const auto begin = std::chrono::steady_clock::now();
      row.build();
      row.seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  Report(std::string(LayoutName(layout)) + " " + SizeName(num_bytes), rows, keys.size());
}

int Main(int argc, char** argv) {
  std::vector<uint64_t> sizes_mib;
  for (int i = 1; i < argc; ++i) sizes_mib.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes_mib.empty()) sizes_mib = {0, 4, 64};
  std::printf("target %s, %u cores\n", ActiveTarget().c_str(), std::thread::hardware_concurrency());
  WarmUpMemory();
  for (const uint64_t mib : sizes_mib) {
    for (const Layout layout : {Layout::kSplit256, Layout::kStandard}) {
      Run(layout, mib == 0 ? size_t{16} << 10 : mib << 20);
    }
  }
  return 0;
}

}  // namespace
}  // namespace tepal::bench

int main(int argc, char** argv) { return tepal::bench::Main(argc, argv); }
