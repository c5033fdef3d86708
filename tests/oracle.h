// The scalar reference as a filter, with keys, probes and the right answers for a geometry.
#ifndef TEPAL_TESTS_ORACLE_H_
#define TEPAL_TESTS_ORACLE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "dispatch/buffer.h"
#include "kernels/reference.h"
#include "tests/geometries.h"
#include "tests/test_util.h"

namespace tepal::testing {

inline constexpr uint64_t kOracleSeed = 20240229;

// A filter as the reference fills it.
class ReferenceFilter {
 public:
  explicit ReferenceFilter(const GeometryCase& geometry_case)
      : geometry_(geometry_case.geometry),
        bytes_(Buffer::Allocate(geometry_.num_bytes(), geometry_case.memory()).value()) {}

  void Insert(std::span<const uint64_t> hashes) {
    for (const uint64_t hash : hashes) SetBits(reference::Positions(geometry_, hash));
  }

  void SetBits(std::span<const uint64_t> positions) {
    for (const uint64_t position : positions) {
      uint8_t& byte = bytes_.data()[position / 8];
      byte = static_cast<uint8_t>(byte | 1u << position % 8);
      if (bytes_.size() > kCompareAllBytes) touched_pages_.insert(position / 8 / kPageBytes);
    }
  }

  std::vector<bool> MayContain(std::span<const uint64_t> hashes) const {
    std::vector<bool> answers(hashes.size());
    for (size_t i = 0; i < hashes.size(); ++i) {
      answers[i] = reference::MayContain(geometry_, hashes[i], bytes_.data());
    }
    return answers;
  }

  // Small filters are compared byte for byte; of larger ones only the pages with a key.
  bool HasBytes(std::span<const uint8_t> bytes) const {
    if (bytes.size() != bytes_.size()) return false;
    if (bytes.size() <= kCompareAllBytes) return SameBytes(bytes, 0, bytes.size());
    return std::all_of(touched_pages_.begin(), touched_pages_.end(), [&](size_t page) {
      const size_t begin = page * kPageBytes;
      return SameBytes(bytes, begin, std::min(kPageBytes, bytes.size() - begin));
    });
  }

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kCompareAllBytes = size_t{16} << 20;

  bool SameBytes(std::span<const uint8_t> bytes, size_t begin, size_t count) const {
    return std::memcmp(bytes.data() + begin, bytes_.data() + begin, count) == 0;
  }

  Geometry geometry_;
  Buffer bytes_;
  std::set<size_t> touched_pages_;
};

// A column of probes and what the reference says to each.
struct Probes {
  std::vector<uint64_t> hashes;
  std::vector<bool> expected;

  Probes Slice(size_t begin, size_t count) const {
    const auto hash = hashes.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto answer = expected.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto size = static_cast<std::ptrdiff_t>(count);
    return {{hash, hash + size}, {answer, answer + size}};
  }
};

// Keys, the reference that holds them, and probes. The reference is slow on purpose, so that an
// Oracle is made once for all targets.
class Oracle {
 public:
  explicit Oracle(const GeometryCase& geometry_case)
      : keys_(RandomValues(kOracleSeed, NumKeys(geometry_case))), filter_(geometry_case) {
    keys_.front() = 0;  // a kernel that fills up a tail with zeros must not report them
    filter_.Insert(keys_);
    for (const unsigned hit_percent : {0u, 50u, 100u}) {
      probes_[hit_percent] = MakeProbes(hit_percent);
    }
  }

  static const Oracle& For(const GeometryCase& geometry_case) {
    static std::map<std::string, Oracle> oracles;
    return oracles.try_emplace(geometry_case.name, geometry_case).first->second;
  }

  const std::vector<uint64_t>& keys() const { return keys_; }
  const ReferenceFilter& filter() const { return filter_; }
  // kNumProbes probes, of which 0, 50 or 100 percent are keys.
  const Probes& probes(unsigned hit_percent) const { return probes_.at(hit_percent); }

  static constexpr size_t kNumProbes = 1021;  // a prime: no length of a chunk divides it

 private:
  // As many as make the filter about half full.
  static size_t NumKeys(const GeometryCase& geometry_case) {
    if (geometry_case.sparse) return 300;
    const Geometry& geometry = geometry_case.geometry;
    const uint64_t half_full = geometry.num_bits * 69 / 100 / std::max(geometry.num_probes, 1u);
    return std::clamp<size_t>(half_full, 1, kQuickTests ? 10'000 : 100'000);
  }

  Probes MakeProbes(unsigned hit_percent) const {
    Probes probes{.hashes = RandomValues(kOracleSeed + 1 + hit_percent, kNumProbes),
                  .expected = {}};
    const std::vector<uint64_t> dice = RandomValues(kOracleSeed + 2, kNumProbes);
    for (size_t i = 0; i < kNumProbes; ++i) {
      if (dice[i] % 100 < hit_percent) probes.hashes[i] = keys_[dice[i] / 100 % keys_.size()];
    }
    probes.expected = filter_.MayContain(probes.hashes);
    return probes;
  }

  std::vector<uint64_t> keys_;
  ReferenceFilter filter_;
  std::map<unsigned, Probes> probes_;
};

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_ORACLE_H_
