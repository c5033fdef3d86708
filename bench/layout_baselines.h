// What the other layouts are compared with. Written here for comparison only.
#ifndef TEPAL_BENCH_LAYOUT_BASELINES_H_
#define TEPAL_BENCH_LAYOUT_BASELINES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_tables.h"

namespace tepal::bench {

// The plain loop of a standard filter, one key at a time with early exit: positions by `%`, by
// multiply-high or by mask. The bits are not those of Tepal's layouts, but as many, and as random.
enum class Reduction { kModulo, kMultiplyHigh, kMask };

struct ScalarFilter {
  uint8_t* bits;
  uint64_t num_bits;  // kMask: a power of two
  uint32_t num_probes;
};

void ScalarInsert(Reduction reduction, const ScalarFilter& filter, const uint64_t* hashes,
                  size_t num_keys);
void ScalarProbe(Reduction reduction, const ScalarFilter& filter, const uint64_t* hashes,
                 size_t num_keys, uint8_t* bitmap);

// Loads of kBytes (8, 32 or 64) at kTouches random places per key, with prefetch (kFar or kPaced)
// if asked for, and nothing else. num_keys is a multiple of 4.
template <uint32_t kBytes, uint32_t kTouches>
uint64_t TouchLimit(const uint8_t* bits, uint64_t num_bytes, Prefetch prefetch,
                    const uint64_t* hashes, size_t num_keys);

// line512 with AVX2, one key at a time, eight probes in a vector and a test per key. k is at most
// 8, num_keys a multiple of 8.
void Avx2OneKeyLine512(const uint8_t* bits, uint64_t num_lines, uint32_t num_probes,
                       const uint64_t* hashes, size_t num_keys, uint8_t* bitmap);

}  // namespace tepal::bench

#endif  // TEPAL_BENCH_LAYOUT_BASELINES_H_
