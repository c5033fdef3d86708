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
HWY_INLINE V RotateLeft64(V v) {
  return hn::RotateRight<64 - kBits>(v);
}
template <int kBits, class V>
HWY_INLINE V XorShiftRight(V v) {
  return hn::Xor(v, hn::ShiftRight<kBits>(v));
}

// Calls step(v) for a vector, or for each of several.
template <class V, class Step>
HWY_INLINE V ForEach(V v, const Step& step) {
  return step(v);
}

#if TEPAL_HAVE_SIZED_VECTORS

// Each step of a hash waits for the one before it, so that a CPU that sees the steps of one vector
// runs out of work: XXH64 takes 1.68 ns a key, and 1.40 if each step is for four vectors (AVX2,
// Emerald Rapids). Vectors of a size unknown to the compiler cannot be members.
template <class V>
struct FourVectors {
  V v[4];
};
template <class V, class Step>
HWY_INLINE FourVectors<V> ForEach(FourVectors<V> four, const Step& step) {
  for (V& v : four.v) v = step(v);
  return four;
}

#endif

template <class D64, class Vectors>
HWY_INLINE Vectors Times(D64 d, Vectors vectors, uint64_t factor) {
  return ForEach(vectors, [=](hn::Vec<D64> v) TEPAL_LAMBDA { return Mul64(d, v, factor); });
}

class Xxh64 {
 public:
  explicit Xxh64(uint64_t seed) : seed_(seed) {}

  template <typename Key, class D64, class Vectors>
  HWY_INLINE Vectors Hash(D64 d, Vectors keys) const {
    using V = hn::Vec<D64>;
    const uint64_t start = seed_ + kPrime5 + sizeof(Key);
    if constexpr (sizeof(Key) == 8) {
      Vectors h = Times(d, keys, kPrime2);
      h = Times(d, ForEach(h, [](V v) TEPAL_LAMBDA { return RotateLeft64<31>(v); }), kPrime1);
      h = ForEach(h, [=](V v) TEPAL_LAMBDA { return hn::Xor(hn::Set(d, start), v); });
      h = Times(d, ForEach(h, [](V v) TEPAL_LAMBDA { return RotateLeft64<27>(v); }), kPrime1);
      h = ForEach(h, [=](V v) TEPAL_LAMBDA { return hn::Add(v, hn::Set(d, kPrime4)); });
      return Avalanche(d, h);
    } else {
      Vectors h = Times(d, keys, kPrime1);
      h = ForEach(h, [=](V v) TEPAL_LAMBDA { return hn::Xor(hn::Set(d, start), v); });
      h = Times(d, ForEach(h, [](V v) TEPAL_LAMBDA { return RotateLeft64<23>(v); }), kPrime2);
      h = ForEach(h, [=](V v) TEPAL_LAMBDA { return hn::Add(v, hn::Set(d, kPrime3)); });
      return Avalanche(d, h);
    }
  }

 private:
  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
  static constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
  static constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
  static constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
  static constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

  template <class D64, class Vectors>
  static HWY_INLINE Vectors Avalanche(D64 d, Vectors h) {
    using V = hn::Vec<D64>;
    h = Times(d, ForEach(h, [](V v) TEPAL_LAMBDA { return XorShiftRight<33>(v); }), kPrime2);
    h = Times(d, ForEach(h, [](V v) TEPAL_LAMBDA { return XorShiftRight<29>(v); }), kPrime3);
    return ForEach(h, [](V v) TEPAL_LAMBDA { return XorShiftRight<32>(v); });
  }

  uint64_t seed_;
};

class Xxh3 {
 public:
  explicit Xxh3(uint64_t seed)
      : flip_(kSecret - (seed ^ (uint64_t{ByteSwap32(static_cast<uint32_t>(seed))} << 32))) {}

  template <typename Key, class D64, class Vectors>
  HWY_INLINE Vectors Hash(D64 d, Vectors keys) const {
    using V = hn::Vec<D64>;
    const uint64_t flip = flip_;
    Vectors h = ForEach(keys, [=](V key) TEPAL_LAMBDA {
      // The library reads the first and the last 4 bytes of the key and joins them the other way
      // round.
      const V input = sizeof(Key) == 8 ? SwapHalves(d, key) : hn::Or(key, hn::ShiftLeft<32>(key));
      const V x = hn::Xor(input, hn::Set(d, flip));
      return hn::Xor(x, hn::Xor(RotateLeft64<49>(x), RotateLeft24(d, x)));
    });
    h = ForEach(Times(d, h, kPrimeMx2), [=](V v) TEPAL_LAMBDA {
      return hn::Xor(v, hn::Add(hn::ShiftRight<35>(v), hn::Set(d, uint64_t{sizeof(Key)})));
    });
    h = Times(d, h, kPrimeMx2);
    return ForEach(h, [](V v) TEPAL_LAMBDA { return XorShiftRight<28>(v); });
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
#if TEPAL_HAVE_SIZED_VECTORS
  for (; i + 4 * lanes <= num_keys; i += 4 * lanes) {
    const auto load = [&](size_t j) TEPAL_LAMBDA { return LoadKeys(d, keys + i + j * lanes); };
    const FourVectors<hn::Vec<decltype(d)>> four{{load(0), load(1), load(2), load(3)}};
    const auto hashed = hasher.template Hash<Key>(d, four);
    for (size_t j = 0; j < 4; ++j) hn::StoreU(hashed.v[j], d, hashes + i + j * lanes);
  }
#endif
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
