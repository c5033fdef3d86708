#include "bench/baselines.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bench/pace.h"
#include "kernels/layout_traits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TEPAL_BENCH_AVX2 1
#define TEPAL_AVX2_FUNCTION __attribute__((target("avx2")))
#else
#define TEPAL_BENCH_AVX2 0
#endif

namespace tepal::bench {
namespace {

// The best of 64, 112 and 128 on Zen 4.
constexpr size_t kPrefetchDistance = 128;

inline uint8_t* Block(const Split256View& view, uint64_t hash) {
  // The same as (... >> 32) * 32, without the second shift: 0.64 -> 0.42 ns for the limit kernel
  // with g++.
  return view.filter + ((hash >> 32) * view.num_blocks >> 27 & ~uint64_t{31});
}

inline bool ScalarTest(const uint32_t* block, uint32_t key) {
  for (uint32_t i = 0; i < Split256::kWordsPerBlock; ++i) {
    const uint32_t mask = 1u << (key * kSalts[i] >> Split256::kBitShift);
    if ((block[i] & mask) == 0) return false;
  }
  return true;
}

// Calls test(i) for each key and joins the answers to bytes of the bitmap.
template <class Test>
inline __attribute__((always_inline)) void FillBitmap(size_t num_keys, uint8_t* bitmap,
                                                      const Test& test) {
  for (size_t i = 0; i < num_keys; i += 8) {
    unsigned bits = 0;
    const size_t end = num_keys - i < 8 ? num_keys - i : 8;
    for (size_t j = 0; j < end; ++j) bits |= unsigned{test(i + j)} << j;
    bitmap[i / 8] = static_cast<uint8_t>(bits);
  }
}

}  // namespace

#if TEPAL_BENCH_AVX2

bool HaveAvx2() { return __builtin_cpu_supports("avx2"); }

namespace {

TEPAL_AVX2_FUNCTION inline __m256i Load(const uint8_t* block) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block));
}

TEPAL_AVX2_FUNCTION inline uint64_t Reduce(__m256i v) {
  return static_cast<uint64_t>(_mm256_movemask_epi8(v));
}

TEPAL_AVX2_FUNCTION inline __m256i Mask(uint64_t hash) {
  const __m256i salts = _mm256_load_si256(reinterpret_cast<const __m256i*>(kSalts));
  const __m256i key = _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(hash)));
  const __m256i bit = _mm256_srli_epi32(_mm256_mullo_epi32(key, salts), Split256::kBitShift);
  return _mm256_sllv_epi32(_mm256_set1_epi32(1), bit);
}

}  // namespace

TEPAL_AVX2_FUNCTION uint64_t Avx2Limit(const Split256View& view, const uint64_t* hashes,
                                       size_t num_keys) {
  const Split256View local = view;
  __m256i sums[4] = {};
  for (size_t i = 0; i + 4 <= num_keys; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      sums[j] = _mm256_xor_si256(sums[j], Load(Block(local, hashes[i + j])));
    }
  }
  return Reduce(
      _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3])));
}

namespace {

// Calls touch(block) for each key, with the blocks of the next keys on their way into L2, and their
// hashes into L1.
template <class Touch>
TEPAL_AVX2_FUNCTION inline __attribute__((always_inline)) void ForEachPrefetched(
    const Split256View& view, const uint64_t* hashes, size_t num_keys, const Touch& touch) {
  const Split256View local = view;
  uint8_t* ring[kPrefetchDistance];
  const auto request = [&](size_t i) TEPAL_AVX2_FUNCTION {
    uint8_t* block = Block(local, hashes[i]);
    __builtin_prefetch(block, 0, 2);
    ring[i % kPrefetchDistance] = block;
    Pace<36>();
  };
  const size_t ahead = num_keys < kPrefetchDistance ? num_keys : kPrefetchDistance;
  for (size_t i = 0; i < ahead; ++i) request(i);
  for (size_t i = 0; i < num_keys - ahead; ++i) {
    if (i % 8 == 0) __builtin_prefetch(hashes + std::min(i + 2 * kPrefetchDistance, num_keys - 1));
    touch(ring[i % kPrefetchDistance]);
    request(i + kPrefetchDistance);
  }
  for (size_t i = num_keys - ahead; i < num_keys; ++i) touch(ring[i % kPrefetchDistance]);
}

}  // namespace

TEPAL_AVX2_FUNCTION uint64_t Avx2LimitPrefetch(const Split256View& view, const uint64_t* hashes,
                                               size_t num_keys) {
  __m256i sum = _mm256_setzero_si256();
  ForEachPrefetched(view, hashes, num_keys, [&](const uint8_t* block) TEPAL_AVX2_FUNCTION {
    sum = _mm256_xor_si256(sum, Load(block));
  });
  return Reduce(sum);
}

TEPAL_AVX2_FUNCTION void Avx2WriteLimitPrefetch(const Split256View& view, const uint64_t* hashes,
                                                size_t num_keys) {
  const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(hashes[0]));
  ForEachPrefetched(view, hashes, num_keys, [&](uint8_t* block) TEPAL_AVX2_FUNCTION {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block), _mm256_or_si256(Load(block), bits));
  });
}

TEPAL_AVX2_FUNCTION void Avx2OneKeyProbe(const Split256View& view, const uint64_t* hashes,
                                         size_t num_keys, uint8_t* bitmap) {
  const Split256View local = view;
  for (size_t i = 0; i + 8 <= num_keys; i += 8) {
    unsigned bits = 0;
    for (size_t j = 0; j < 8; ++j) {
      const uint64_t hash = hashes[i + j];
      bits |= static_cast<unsigned>(_mm256_testc_si256(Load(Block(local, hash)), Mask(hash))) << j;
    }
    bitmap[i / 8] = static_cast<uint8_t>(bits);
  }
}

TEPAL_AVX2_FUNCTION void Avx2OneKeyInsert(const Split256View& view, const uint64_t* hashes,
                                          size_t num_keys) {
  const Split256View local = view;
  for (size_t i = 0; i < num_keys; ++i) {
    uint8_t* block = Block(local, hashes[i]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block),
                        _mm256_or_si256(Load(block), Mask(hashes[i])));
  }
}

#else

bool HaveAvx2() { return false; }
uint64_t Avx2Limit(const Split256View&, const uint64_t*, size_t) { return 0; }
uint64_t Avx2LimitPrefetch(const Split256View&, const uint64_t*, size_t) { return 0; }
void Avx2WriteLimitPrefetch(const Split256View&, const uint64_t*, size_t) {}
void Avx2OneKeyProbe(const Split256View&, const uint64_t*, size_t, uint8_t*) {}
void Avx2OneKeyInsert(const Split256View&, const uint64_t*, size_t) {}

#endif  // TEPAL_BENCH_AVX2

void ScalarProbe(const Split256View& view, const uint64_t* hashes, size_t num_keys,
                 uint8_t* bitmap) {
  const Split256View local = view;
  FillBitmap(num_keys, bitmap, [&](size_t i) {
    const auto* block = reinterpret_cast<const uint32_t*>(Block(local, hashes[i]));
    return ScalarTest(block, static_cast<uint32_t>(hashes[i]));
  });
}

void ScalarInsert(const Split256View& view, const uint64_t* hashes, size_t num_keys) {
  const Split256View local = view;
  for (size_t i = 0; i < num_keys; ++i) {
    auto* block = reinterpret_cast<uint32_t*>(Block(local, hashes[i]));
    const uint32_t key = static_cast<uint32_t>(hashes[i]);
    for (uint32_t j = 0; j < Split256::kWordsPerBlock; ++j) {
      block[j] |= 1u << (key * kSalts[j] >> Split256::kBitShift);
    }
  }
}

void LibraryXxh3(const uint64_t* keys, size_t num_keys, uint64_t* hashes) {
  for (size_t i = 0; i < num_keys; ++i) hashes[i] = XXH3_64bits_withSeed(&keys[i], 8, 0);
}

void LibraryXxh64(const uint64_t* keys, size_t num_keys, uint64_t* hashes) {
  for (size_t i = 0; i < num_keys; ++i) hashes[i] = XXH64(&keys[i], 8, 0);
}

}  // namespace tepal::bench
