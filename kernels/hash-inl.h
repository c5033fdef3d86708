// XXH64 and XXH3_64bits of 4- and 8-byte keys, one key per lane. Bit-identical to the xxHash
// library (specification: xxhash_spec.md; XXH3 for inputs of 4 to 8 bytes). Two multiplications a
// key for XXH3, five for XXH64.

#if defined(TEPAL_KERNELS_HASH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TEPAL_KERNELS_HASH_INL_H_
#undef TEPAL_KERNELS_HASH_INL_H_
#else
#define TEPAL_KERNELS_HASH_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A key column's lanes, widened to 64 bits.
template <class D64>
HWY_INLINE hn::Vec<D64> LoadKeys(D64 d64, const uint64_t* keys) {
  return hn::LoadU(d64, keys);
}
template <class D64>
HWY_INLINE hn::Vec<D64> LoadKeys(D64 d64, const uint32_t* keys) {
  const hn::Rebind<uint32_t, D64> d32;
  return hn::PromoteTo(d64, hn::LoadU(d32, keys));
}

template <int kBits, class V>
HWY_INLINE V RotateLeft(V v) {
  return hn::RotateRight<64 - kBits>(v);
}

class Xxh64 {
 public:
  explicit Xxh64(uint64_t seed) : seed_(seed) {}

  template <typename Key, class D64, class V64 = hn::Vec<D64>>
  HWY_INLINE V64 Hash(D64 d, V64 key) const {
    const V64 start = hn::Set(d, seed_ + kPrime5 + sizeof(Key));
    if constexpr (sizeof(Key) == 8) {
      const V64 round = Mul64(d, RotateLeft<31>(Mul64(d, key, kPrime2)), kPrime1);
      const V64 mixed = Mul64(d, RotateLeft<27>(hn::Xor(start, round)), kPrime1);
      return Avalanche(d, hn::Add(mixed, hn::Set(d, kPrime4)));
    } else {
      const V64 round = Mul64(d, key, kPrime1);
      const V64 mixed = Mul64(d, RotateLeft<23>(hn::Xor(start, round)), kPrime2);
      return Avalanche(d, hn::Add(mixed, hn::Set(d, kPrime3)));
    }
  }

 private:
  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
  static constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
  static constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
  static constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
  static constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

  template <class D64, class V64 = hn::Vec<D64>>
  static HWY_INLINE V64 Avalanche(D64 d, V64 h) {
    h = Mul64(d, hn::Xor(h, hn::ShiftRight<33>(h)), kPrime2);
    h = Mul64(d, hn::Xor(h, hn::ShiftRight<29>(h)), kPrime3);
    return hn::Xor(h, hn::ShiftRight<32>(h));
  }

  uint64_t seed_;
};

class Xxh3 {
 public:
  explicit Xxh3(uint64_t seed)
      : flip_(kSecret - (seed ^ (uint64_t{ByteSwap32(static_cast<uint32_t>(seed))} << 32))) {}

  template <typename Key, class D64, class V64 = hn::Vec<D64>>
  HWY_INLINE V64 Hash(D64 d, V64 key) const {
    // The library reads the first and the last 4 bytes of the key and joins them the other way
    // round.
    const V64 input = sizeof(Key) == 8 ? SwapHalves(d, key) : hn::Or(key, hn::ShiftLeft<32>(key));
    const V64 x = hn::Xor(input, hn::Set(d, flip_));
    V64 h = hn::Xor(x, hn::Xor(RotateLeft<49>(x), RotateLeft<24>(x)));
    h = Mul64(d, h, kPrimeMx2);
    h = hn::Xor(h, hn::Add(hn::ShiftRight<35>(h), hn::Set(d, uint64_t{sizeof(Key)})));
    h = Mul64(d, h, kPrimeMx2);
    return hn::Xor(h, hn::ShiftRight<28>(h));
  }

 private:
  static constexpr uint64_t kPrimeMx2 = 0x9FB21C651E98DF25u;
  // Bytes 8..15 of the library's default secret, exclusive-or bytes 16..23.
  static constexpr uint64_t kSecret = 0x1CAD21F72C81017Cu ^ 0xDB979083E96DD4DEu;

  static constexpr uint32_t ByteSwap32(uint32_t x) {
    return x << 24 | (x << 8 & 0xFF0000u) | (x >> 8 & 0xFF00u) | x >> 24;
  }

  uint64_t flip_;
};

// Hashes a column. The tail goes through a buffer, so that there is one formula and nothing is read
// past the end.
template <class Hasher, typename Key>
HWY_INLINE void HashColumn(const Hasher hasher, const Key* keys, size_t num_keys,
                           uint64_t* hashes) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= num_keys; i += lanes) {
    hn::StoreU(hasher.template Hash<Key>(d, LoadKeys(d, keys + i)), d, hashes + i);
  }
  if (i == num_keys) return;
  Key tail[hn::MaxLanes(d)] = {};
  uint64_t tail_hashes[hn::MaxLanes(d)];
  memcpy(tail, keys + i, (num_keys - i) * sizeof(Key));
  hn::StoreU(hasher.template Hash<Key>(d, LoadKeys(d, tail)), d, tail_hashes);
  memcpy(hashes + i, tail_hashes, (num_keys - i) * sizeof(uint64_t));
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#endif  // TEPAL_KERNELS_HASH_INL_H_
