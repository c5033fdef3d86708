// Rates of false positives, counted: filters of random hashes, asked for other random hashes. Used
// by `tepal reproduce` and by the statistical tests.
#ifndef TEPAL_TOOLS_TEPAL_MEASURED_RATE_H_
#define TEPAL_TOOLS_TEPAL_MEASURED_RATE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tepal/filter.h"
#include "tepal/geometry.h"

namespace tepal::tool {

// ---- Random hashes, several times faster than std::mt19937_64

class Hashes {
 public:
  explicit Hashes(uint64_t seed) : state_(seed * 0xD1342543DE82EF95u) {}

  uint64_t operator()() {  // SplitMix64
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  const std::vector<uint64_t>& Next(size_t count) {
    values_.resize(count);
    for (uint64_t& value : values_) value = (*this)();
    return values_;
  }

 private:
  uint64_t state_;
  std::vector<uint64_t> values_;
};

// ---- Counting

inline constexpr size_t kBatch = size_t{1} << 14;

struct Measured {
  uint64_t hits = 0;
  uint64_t probes = 0;

  double rate() const { return static_cast<double>(hits) / static_cast<double>(probes); }
  // Of the measured rate, if the true one is `rate`.
  double Sigma(double rate) const {
    return std::sqrt(rate * (1 - rate) / static_cast<double>(probes));
  }
};

inline void Insert(Filter& filter, uint64_t num_keys, Hashes& hashes) {
  for (uint64_t done = 0; done < num_keys;) {
    const uint64_t count = std::min<uint64_t>(kBatch, num_keys - done);
    filter.InsertHashes(hashes.Next(count));
    done += count;
  }
}

// Random hashes are in a filter with a probability of 2^-40 or so.
inline void Probe(const Filter& filter, uint64_t num_probes, Hashes& hashes, Measured& measured) {
  for (uint64_t done = 0; done < num_probes;) {
    const uint64_t count = std::min<uint64_t>(kBatch, num_probes - done);
    measured.hits += filter.CountHashes(hashes.Next(count));
    done += count;
  }
  measured.probes += num_probes;
}

// Over several filters, because the fill of one differs from the mean.
inline Measured Measure(const Geometry& geometry, uint64_t num_keys, uint64_t num_filters,
                        uint64_t num_probes, uint64_t seed) {
  Hashes hashes(seed);
  Measured measured;
  for (uint64_t i = 0; i < num_filters; ++i) {
    Filter filter = Filter::Create(geometry).value();
    Insert(filter, num_keys, hashes);
    Probe(filter, num_probes / num_filters, hashes, measured);
  }
  return measured;
}

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_MEASURED_RATE_H_
