// What the fuzzers share: an input that is eaten from the front, and what a violated claim does.
#ifndef TEPAL_TESTS_FUZZ_FUZZ_INPUT_H_
#define TEPAL_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "kernels/layout_traits.h"
#include "tepal/geometry.h"
#include "tepal/memory.h"

namespace tepal::fuzz {

// libFuzzer takes an abort for a finding, and keeps the input.
#define TEPAL_FUZZ_EXPECT(claim)                                                 \
  do {                                                                           \
    if (!(claim)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #claim); \
      std::abort();                                                              \
    }                                                                            \
  } while (false)

// Bytes to be read one after the other; zeros once there are no more.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : bytes_(data, size) {}

  bool empty() const { return bytes_.empty(); }

  template <typename T>
  T Take() {
    T value{};
    const size_t count = std::min(sizeof(T), bytes_.size());
    if (count != 0) std::memcpy(&value, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return value;
  }

  // 0 to bound - 1.
  uint32_t TakeBelow(uint32_t bound) { return Take<uint16_t>() % bound; }

  std::span<const uint8_t> TakeBytes(size_t count) {
    const std::span<const uint8_t> taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> bytes_;
};

// A copy at a multiple of kFilterAlignment and not a byte longer, so that AddressSanitizer sees
// every read behind it.
class AlignedCopy {
 public:
  explicit AlignedCopy(std::span<const uint8_t> bytes)
      : memory_(static_cast<uint8_t*>(::operator new(bytes.size(), kAlignment))),
        size_(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), memory_.get());
  }
  std::span<uint8_t> bytes() const { return {memory_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{kFilterAlignment};
  struct Delete {
    void operator()(uint8_t* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<uint8_t, Delete> memory_;
  size_t size_;
};

// Mostly a k that the layout allows, each of them, and small ones more often: the others are slow.
inline uint32_t TakeProbes(FuzzInput& input, const SizeRules& rules) {
  constexpr uint32_t kTooMany = Scattered::kMaxProbes + 10;
  if (input.TakeBelow(32) == 1) return input.TakeBelow(kTooMany);
  const uint32_t more = input.TakeBelow(rules.max_probes - rules.min_probes + 1);
  return rules.min_probes + (more >> input.TakeBelow(4));
}

// Any small geometry, valid or not, and far more often valid than random fields would be.
inline Geometry TakeGeometry(FuzzInput& input) {
  const uint32_t hash = input.TakeBelow(33);
  Geometry geometry{.layout = static_cast<Layout>(input.TakeBelow(10)),
                    .num_bits = uint64_t{64} * input.TakeBelow(4096),
                    .hash = static_cast<HashKind>(hash < 32 ? hash % 2 : hash),
                    .seed = input.TakeBelow(2) == 1 ? input.Take<uint64_t>() : 0};
  const SizeRules rules = RulesOf(geometry.layout);
  geometry.num_probes = TakeProbes(input, rules);
  if (geometry.layout == Layout::kRational || geometry.layout == Layout::kVariablePaper) {
    geometry.rational_k = geometry.num_probes - input.TakeBelow(256) / 256.0;
  }
  const bool in_parts = geometry.layout == Layout::kPartitioned;
  const uint64_t unit =
      std::max(rules.granule_bits * (in_parts ? geometry.num_probes : 1), uint64_t{1});
  uint64_t num_units = geometry.num_bits / unit;
  if (input.TakeBelow(4) == 1) num_units = std::bit_floor(num_units);
  geometry.num_bits = num_units * unit;
  return geometry;
}

}  // namespace tepal::fuzz

#endif  // TEPAL_TESTS_FUZZ_FUZZ_INPUT_H_
