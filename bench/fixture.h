// Filters at their design load and hashes to probe them with, for all benchmarks.
#ifndef TEPAL_BENCH_FIXTURE_H_
#define TEPAL_BENCH_FIXTURE_H_

#include <cstddef>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tepal/tepal.h"

namespace tepal::bench {

inline constexpr size_t kBatchKeys = 2048;
inline constexpr double kBitsPerKey = 12;

inline std::vector<uint64_t> RandomHashes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = random();
  return hashes;
}

inline std::string SizeName(size_t bytes) {
  return bytes >= size_t{1} << 20 ? std::to_string(bytes >> 20) + " MiB"
                                  : std::to_string(bytes >> 10) + " KiB";
}

// A filter with kBitsPerKey bits per key. The probes are many enough for a branch predictor not to
// learn them, few enough to stay in L2 or L3 where the filter stays in cache, and many enough not
// to touch the same lines again where it does not.
struct Fixture {
  // `insert` replaces filter.InsertHashes, for baselines with bits of their own.
  using InsertFunction = std::function<void(uint8_t* bits, std::span<const uint64_t> hashes)>;

  explicit Fixture(const Geometry& geometry, unsigned hit_percent = 0,
                   const InsertFunction& insert = nullptr)
      : filter(Filter::Create(geometry).value()), bitmap(kBatchKeys / 8), rows(kBatchKeys) {
    const size_t filter_bytes = geometry.num_bytes();
    probes = RandomHashes(filter_bytes > size_t{1} << 20 ? size_t{1} << 22 : size_t{1} << 16, 2);
    const auto num_keys = static_cast<size_t>(static_cast<double>(geometry.num_bits) / kBitsPerKey);
    const auto insert_all = [&](std::span<const uint64_t> hashes) {
      if (insert) {
        insert(bits(), hashes);
      } else {
        filter.InsertHashes(hashes);
      }
    };
    std::vector<uint64_t> keys = RandomHashes(std::min(num_keys, kMaxKeys), 1);
    insert_all(keys);
    if (num_keys > kMaxKeys) FillHalf();
    std::mt19937_64 random(3);
    for (uint64_t& probe : probes) {
      if (random() % 100 < hit_percent) probe = keys[random() % keys.size()];
    }
  }

  // The next batch; all probes in turn.
  std::span<const uint64_t> Next(size_t count) {
    const std::span<const uint64_t> batch = Peek(count);
    next += count;
    return batch;
  }
  // What Next() will return.
  std::span<const uint64_t> Peek(size_t count) {
    if (next + count > probes.size()) next = 0;
    return {probes.data() + next, count};
  }

  // The baselines write to the filter as the library does; the bytes are ours, the constness is the
  // API's.
  uint8_t* bits() { return const_cast<uint8_t*>(filter.bytes().data()); }

  // Sets bits until about half of them are set: what many more keys would do, in a fraction of the
  // time.
  void FillHalf() {
    std::mt19937_64 random(4);
    for (size_t i = 0; i + 8 <= filter.bytes().size(); i += 8) {
      const uint64_t noise = random();
      for (size_t j = 0; j < 8; ++j) bits()[i + j] |= static_cast<uint8_t>(noise >> 8 * j);
    }
  }

  static constexpr size_t kMaxKeys = size_t{4} << 20;

  Filter filter;
  std::vector<uint64_t> probes;
  std::vector<uint8_t> bitmap;
  std::vector<uint32_t> rows;
  size_t next = 0;
};

// The first large regions of a process run slower on some systems: let one go unused.
inline void WarmUpMemory() {
  Fixture warm_up({.layout = Layout::kSplit256, .num_bits = uint64_t{512} << 20, .num_probes = 8});
}

}  // namespace tepal::bench

#endif  // TEPAL_BENCH_FIXTURE_H_
