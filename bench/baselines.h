// What Tepal is compared with, for the split256 layout: how fast memory alone would be (limit
// kernels), and the loops that engines usually ship. Written here from the layout, for comparison
// only.
#ifndef TEPAL_BENCH_BASELINES_H_
#define TEPAL_BENCH_BASELINES_H_

#include <cstddef>
#include <cstdint>

namespace tepal::bench {

struct Split256View {
  uint8_t* filter;
  uint64_t num_blocks;
};

// Is the CPU able to run the Avx2* functions? False on other architectures, where they do nothing.
bool HaveAvx2();

// One 32-byte load per key at the address of its block, nothing else. The return value keeps the
// loads alive.
uint64_t Avx2Limit(const Split256View& view, const uint64_t* hashes, size_t num_keys);
// The same, with a prefetch into L2 some keys ahead.
uint64_t Avx2LimitPrefetch(const Split256View& view, const uint64_t* hashes, size_t num_keys);
// The same for inserts: load, change and store one block per key.
void Avx2WriteLimitPrefetch(const Split256View& view, const uint64_t* hashes, size_t num_keys);

// One key at a time with AVX2: mask, test, set a bit of the bitmap. The loop of Impala's
// descendants. num_keys is a multiple of 8, as for the limits.
void Avx2OneKeyProbe(const Split256View& view, const uint64_t* hashes, size_t num_keys,
                     uint8_t* bitmap);
void Avx2OneKeyInsert(const Split256View& view, const uint64_t* hashes, size_t num_keys);

// Word by word with early exit, as in Arrow's Parquet reader.
void ScalarProbe(const Split256View& view, const uint64_t* hashes, size_t num_keys,
                 uint8_t* bitmap);
void ScalarInsert(const Split256View& view, const uint64_t* hashes, size_t num_keys);

// The xxHash library, inlined by this compiler.
void LibraryXxh3(const uint64_t* keys, size_t num_keys, uint64_t* hashes);
void LibraryXxh64(const uint64_t* keys, size_t num_keys, uint64_t* hashes);

}  // namespace tepal::bench

#endif  // TEPAL_BENCH_BASELINES_H_
