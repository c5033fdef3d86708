#include "bench/layout_baselines.h"

#include <cstring>

#include "bench/pace.h"
#include "kernels/layout_traits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tepal::bench {
namespace {

__extension__ using uint128_t = unsigned __int128;

template <Reduction kReduction>
inline uint64_t Reduce(uint64_t g, uint64_t num_bits) {
  if constexpr (kReduction == Reduction::kModulo) return g % num_bits;
  if constexpr (kReduction == Reduction::kMultiplyHigh) {
    return static_cast<uint64_t>(uint128_t{g} * num_bits >> 64);
  }
  return g >> 20 & (num_bits - 1);
}

inline uint64_t SecondHash(uint64_t hash) {
  const uint64_t x = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15u;
  return (x ^ x >> 32) | 1;
}

template <Reduction kReduction>
void Insert(const ScalarFilter& filter, const uint64_t* hashes, size_t num_keys) {
  const ScalarFilter local = filter;
  for (size_t i = 0; i < num_keys; ++i) {
    const uint64_t h2 = SecondHash(hashes[i]);
    uint64_t g = hashes[i];
    for (uint32_t t = 0; t < local.num_probes; ++t, g += h2) {
      const uint64_t position = Reduce<kReduction>(g, local.num_bits);
      local.bits[position / 8] =
          static_cast<uint8_t>(local.bits[position / 8] | 1u << position % 8);
    }
  }
}

template <Reduction kReduction>
inline bool Contains(const ScalarFilter& filter, uint64_t hash) {
  const uint64_t h2 = SecondHash(hash);
  for (uint32_t t = 0; t < filter.num_probes; ++t, hash += h2) {
    const uint64_t position = Reduce<kReduction>(hash, filter.num_bits);
    if ((filter.bits[position / 8] >> position % 8 & 1) == 0) return false;
  }
  return true;
}

template <Reduction kReduction>
void Probe(const ScalarFilter& filter, const uint64_t* hashes, size_t num_keys, uint8_t* bitmap) {
  const ScalarFilter local = filter;
  for (size_t i = 0; i + 8 <= num_keys; i += 8) {
    unsigned bits = 0;
    for (size_t j = 0; j < 8; ++j) {
      bits |= unsigned{Contains<kReduction>(local, hashes[i + j])} << j;
    }
    bitmap[i / 8] = static_cast<uint8_t>(bits);
  }
}

// Where touch t of a key falls: blocks of kBytes, chosen by multiply-high of another hash for each
// touch.
template <uint32_t kBytes>
inline const uint8_t* TouchAddress(const uint8_t* bits, uint64_t num_blocks, uint64_t hash,
                                   uint32_t t) {
  constexpr uint64_t kFactors[8] = {1,
                                    0x9E3779B97F4A7C15u,
                                    0xC2B2AE3D27D4EB4Fu,
                                    0x165667B19E3779F9u,
                                    0x85EBCA77C2B2AE63u,
                                    0x27D4EB2F165667C5u,
                                    0x9FB21C651E98DF25u,
                                    0xD6E8FEB86659FD93u};
  const uint64_t scaled = (hash * kFactors[t] >> 32) * num_blocks;
  return bits + (scaled / ((uint64_t{1} << 32) / kBytes) & ~uint64_t{kBytes - 1});
}

// One load per 32 bytes; four sums, so that the loads do not wait for each other.
template <uint32_t kBytes, uint32_t kTouches, Prefetch kPrefetch>
uint64_t Touch(const uint8_t* bits, uint64_t num_blocks, const uint64_t* hashes, size_t num_keys) {
  // 128 lines under way. With 8 touches a key: 24 ns, with 512 lines 27, with 1024 34 (64 MiB, not
  // paced, Zen 4).
  constexpr size_t kAhead = 128 / kTouches;
  // Computing the addresses of eight touches twice is pace enough: 24 ns, with 8 fillers 26.
  constexpr int kFillers = kTouches <= 2 ? 24 : 0;
  uint64_t sums[4] = {};
  for (size_t i = 0; i + 4 <= num_keys; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      for (uint32_t t = 0; t < kTouches; ++t) {
        if (kPrefetch != Prefetch::kNone && i + j + kAhead < num_keys) {
          __builtin_prefetch(TouchAddress<kBytes>(bits, num_blocks, hashes[i + j + kAhead], t), 0,
                             2);
          if (kPrefetch == Prefetch::kPaced) Pace<kFillers>();
        }
        const uint8_t* address = TouchAddress<kBytes>(bits, num_blocks, hashes[i + j], t);
        for (uint32_t offset = 0; offset < kBytes; offset += 32) {
          uint64_t word;
          std::memcpy(&word, address + offset, sizeof(word));
          sums[j] ^= word;
        }
      }
    }
  }
  return sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}

}  // namespace

void ScalarInsert(Reduction reduction, const ScalarFilter& filter, const uint64_t* hashes,
                  size_t num_keys) {
  switch (reduction) {
    case Reduction::kModulo:
      return Insert<Reduction::kModulo>(filter, hashes, num_keys);
    case Reduction::kMultiplyHigh:
      return Insert<Reduction::kMultiplyHigh>(filter, hashes, num_keys);
    case Reduction::kMask:
      return Insert<Reduction::kMask>(filter, hashes, num_keys);
  }
}

void ScalarProbe(Reduction reduction, const ScalarFilter& filter, const uint64_t* hashes,
                 size_t num_keys, uint8_t* bitmap) {
  switch (reduction) {
    case Reduction::kModulo:
      return Probe<Reduction::kModulo>(filter, hashes, num_keys, bitmap);
    case Reduction::kMultiplyHigh:
      return Probe<Reduction::kMultiplyHigh>(filter, hashes, num_keys, bitmap);
    case Reduction::kMask:
      return Probe<Reduction::kMask>(filter, hashes, num_keys, bitmap);
  }
}

template <uint32_t kBytes, uint32_t kTouches>
uint64_t TouchLimit(const uint8_t* bits, uint64_t num_bytes, Prefetch prefetch,
                    const uint64_t* hashes, size_t num_keys) {
  const auto touch = prefetch == Prefetch::kNone    ? Touch<kBytes, kTouches, Prefetch::kNone>
                     : prefetch == Prefetch::kPaced ? Touch<kBytes, kTouches, Prefetch::kPaced>
                                                    : Touch<kBytes, kTouches, Prefetch::kFar>;
  return touch(bits, num_bytes / kBytes, hashes, num_keys);
}

template uint64_t TouchLimit<8, 1>(const uint8_t*, uint64_t, Prefetch, const uint64_t*, size_t);
template uint64_t TouchLimit<8, 2>(const uint8_t*, uint64_t, Prefetch, const uint64_t*, size_t);
template uint64_t TouchLimit<8, 8>(const uint8_t*, uint64_t, Prefetch, const uint64_t*, size_t);
template uint64_t TouchLimit<32, 1>(const uint8_t*, uint64_t, Prefetch, const uint64_t*, size_t);
template uint64_t TouchLimit<64, 1>(const uint8_t*, uint64_t, Prefetch, const uint64_t*, size_t);

#if defined(__x86_64__)

__attribute__((target("avx2"))) void Avx2OneKeyLine512(const uint8_t* bits, uint64_t num_lines,
                                                       uint32_t num_probes, const uint64_t* hashes,
                                                       size_t num_keys, uint8_t* bitmap) {
  const __m256i salts = _mm256_load_si256(reinterpret_cast<const __m256i*>(kSalts));
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i used = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(num_probes)), lanes);
  const __m256i one = _mm256_and_si256(used, _mm256_set1_epi32(1));  // unused lanes ask for no bit
  for (size_t i = 0; i + 8 <= num_keys; i += 8) {
    unsigned result = 0;
    for (size_t j = 0; j < 8; ++j) {
      const uint64_t hash = hashes[i + j];
      const auto* line =
          reinterpret_cast<const __m256i*>(bits + ((hash >> 32) * num_lines >> 26 & ~uint64_t{63}));
      const __m256i key = _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(hash)));
      const __m256i product = _mm256_mullo_epi32(key, salts);
      const __m256i index = _mm256_srli_epi32(product, 28);
      const __m256i low = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(line), index);
      const __m256i high = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(line + 1), index);
      const __m256i words = _mm256_castps_si256(_mm256_blendv_ps(
          _mm256_castsi256_ps(low), _mm256_castsi256_ps(high), _mm256_castsi256_ps(product)));
      const __m256i bit = _mm256_srli_epi32(_mm256_slli_epi32(product, 4), 27);
      const __m256i mask = _mm256_sllv_epi32(one, bit);
      result |= static_cast<unsigned>(_mm256_testc_si256(words, mask)) << j;
    }
    bitmap[i / 8] = static_cast<uint8_t>(result);
  }
}

#else

void Avx2OneKeyLine512(const uint8_t*, uint64_t, uint32_t, const uint64_t*, size_t, uint8_t*) {}

#endif

}  // namespace tepal::bench
