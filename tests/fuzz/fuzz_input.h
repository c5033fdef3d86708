// What the fuzzers share: an input that is eaten from the front, and what a violated claim does.
#ifndef TEPAL_TESTS_FUZZ_FUZZ_INPUT_H_
#define TEPAL_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

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

// Any small geometry, valid or not, and far more often valid than random fields would be.
inline Geometry TakeGeometry(FuzzInput& input) {
  Geometry geometry{.layout = static_cast<Layout>(input.TakeBelow(10)),
                    .num_bits = uint64_t{64} * input.TakeBelow(4096),
                    .num_probes = input.TakeBelow(18),
                    .hash = static_cast<HashKind>(input.TakeBelow(3)),
                    .seed = input.Take<uint64_t>()};
  const uint32_t fraction = input.TakeBelow(256);
  switch (geometry.layout) {
    case Layout::kRational:
    case Layout::kVariablePaper:
      geometry.rational_k = geometry.num_probes - fraction / 256.0;
      break;
    case Layout::kPartitioned:
      geometry.num_bits = geometry.num_bits / 64 % 64 * 512 * geometry.num_probes;
      break;
    case Layout::kSplit256:
    case Layout::kSplit512:
      geometry.num_probes = fraction == 0 ? geometry.num_probes : 8;
      break;
    default:
      break;
  }
  if (geometry.layout != Layout::kVariable && geometry.layout != Layout::kVariablePaper) {
    geometry.num_bits = geometry.num_bits / 512 * 512;
  }
  return geometry;
}

}  // namespace tepal::fuzz

#endif  // TEPAL_TESTS_FUZZ_FUZZ_INPUT_H_
