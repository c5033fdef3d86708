// What differs between Highway versions, vector targets and the one-lane fallback. The only file
// with such branches.

// Per-target include guard, as in all -inl.h files.
#if defined(TEPAL_KERNELS_HWY_COMPAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TEPAL_KERNELS_HWY_COMPAT_INL_H_
#undef TEPAL_KERNELS_HWY_COMPAT_INL_H_
#else
#define TEPAL_KERNELS_HWY_COMPAT_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/select_table.h"

// Vectors of a size that the compiler knows, so that they can be members: not SVE and RVV. Highway
// 1.0.3 calls all of SVE scalable, newer versions not SVE_256 and SVE2_128.
#undef TEPAL_HAVE_SIZED_VECTORS
#if HWY_HAVE_SCALABLE || HWY_TARGET == HWY_SVE_256 || HWY_TARGET == HWY_SVE2_128
#define TEPAL_HAVE_SIZED_VECTORS 0
#else
#define TEPAL_HAVE_SIZED_VECTORS 1
#endif

// Vectors made of 128-bit blocks whose number is known at compile time: x86, NEON, WASM, PPC,
// EMU128. The others (SVE, RVV, SCALAR) take the plain path.
#undef TEPAL_HAVE_BLOCK_PACKS
#if !TEPAL_HAVE_SIZED_VECTORS || HWY_TARGET == HWY_SCALAR
#define TEPAL_HAVE_BLOCK_PACKS 0
#else
#define TEPAL_HAVE_BLOCK_PACKS 1
#endif

// Comparisons yield masks in registers of their own, and vectors have 512 bits: AVX-512.
#undef TEPAL_HAVE_MASK_REGISTERS
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
#define TEPAL_HAVE_MASK_REGISTERS 1
#else
#define TEPAL_HAVE_MASK_REGISTERS 0
#endif

// A test of two vectors of 256 bits leaves its answer in the carry flag, where our assembly takes
// it from.
#undef TEPAL_HAVE_CARRY_TEST
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
#define TEPAL_HAVE_CARRY_TEST 1
#else
#define TEPAL_HAVE_CARRY_TEST 0
#endif

// For lambdas in hot loops: compiled for the target, and inlined (clang otherwise calls some of
// them: 9.3 ns instead of 6.9 for an insert at 64 MiB).
#undef TEPAL_LAMBDA
#if HWY_COMPILER_MSVC
#define TEPAL_LAMBDA HWY_ATTR
#else
#define TEPAL_LAMBDA HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace tepal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One instruction counts the bits of a word, but none those of a vector.
constexpr bool kScalarPopCount = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4;

// a * b for u64 lanes that are both below 2^32: one multiplication where Mul() needs three on AVX2.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE V64 MulLow32(D64 /*d64*/, V64 a, V64 b) {
#if HWY_TARGET == HWY_SCALAR || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  // SCALAR has no BitCast between lanes of different sizes. Big-endian, the low halves are the odd
  // lanes, and Highway 1.0.3 has no MulOdd.
  return a * b;
#else
  const hn::Repartition<uint32_t, D64> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#endif
}

// Swaps the halves of each 64-bit lane: one shuffle instead of two shifts.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE V64 SwapHalves(D64 d64, V64 v) {
#if HWY_TARGET == HWY_SCALAR  // no BitCast between lanes of different sizes
  static_cast<void>(d64);
  return hn::RotateRight<32>(v);
#else
  const hn::Repartition<uint32_t, D64> d32;
  return hn::BitCast(d64, hn::Shuffle2301(hn::BitCast(d32, v)));
#endif
}

// Rotates each 64-bit lane left by three bytes: one shuffle where a rotation takes three
// instructions.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE V64 RotateLeft24(D64 d64, V64 v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  alignas(16) static constexpr uint8_t kFrom[16] = {5,  6,  7,  0, 1, 2,  3,  4,
                                                    13, 14, 15, 8, 9, 10, 11, 12};
  const hn::Repartition<uint8_t, D64> d8;
  const auto bytes = hn::TableLookupBytes(hn::BitCast(d8, v), hn::LoadDup128(d8, kFrom));
  return hn::BitCast(d64, bytes);
#else
  static_cast<void>(d64);
  return hn::RotateRight<64 - 24>(v);
#endif
}

// v * factor, the low 64 bits.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE V64 Mul64(D64 d64, V64 v, uint64_t factor) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_NEON || HWY_TARGET_IS_NEON
  // The low 64 bits of (high * 2^32 + low) * factor, by halves. One multiplication of 32-bit lanes
  // computes both cross products, whose sum belongs into the upper half.
  const hn::Repartition<uint32_t, D64> d32;
  const auto swapped = hn::BitCast(d32, hn::Set(d64, factor << 32 | factor >> 32));
  const auto cross = hn::BitCast(d64, hn::Mul(hn::BitCast(d32, v), swapped));
  const auto both = hn::Add(cross, hn::ShiftLeft<32>(cross));
  const auto high = hn::And(both, hn::Set(d64, 0xFFFFFFFF00000000u));
  return hn::Add(high, MulLow32(d64, v, hn::Set(d64, factor)));
#else
  return hn::Mul(v, hn::Set(d64, factor));
#endif
}

// 1 << (v * factor % 2^32 >> kShift) in each 64-bit lane, where kShift leaves 6 bits.
template <int kShift, class D64, class V64 = hn::Vec<D64>>
HWY_INLINE V64 BitOfProduct64(D64 d64, V64 v, uint32_t factor) {
  static_assert(kShift == 32 - 6);
  const V64 one = hn::Set(d64, 1);
#if HWY_TARGET == HWY_SCALAR
  const V64 product = hn::And(v * hn::Set(d64, factor), hn::Set(d64, 0xFFFFFFFFu));
  return hn::Shl(one, hn::ShiftRight<kShift>(product));
#elif TEPAL_HAVE_MASK_REGISTERS
  // A rotation looks at six bits of the index, so that the upper half of the product does not
  // matter. Highway 1.0.3 has none by vector.
  V64 product = MulLow32(d64, v, hn::Set(d64, factor));
#if HWY_COMPILER_CLANG
  // It sees that as well, and multiplies 64 by 64 bits instead, which is slower: `register` took
  // 0.83 ns a key, so 0.73 (AVX3_DL, Emerald Rapids, 16 KiB).
  asm("" : "+v"(product.raw));
#endif
  return V64{_mm512_rolv_epi64(one.raw, hn::ShiftRight<kShift>(product).raw)};
#else
  const hn::Repartition<uint32_t, D64> d32;
  const auto factors = hn::BitCast(d32, hn::Set(d64, factor));  // upper halves times 0
  const V64 product = hn::BitCast(d64, hn::Mul(hn::BitCast(d32, v), factors));
  return hn::Shl(one, hn::ShiftRight<kShift>(product));
#endif
}

// 1 << index % 32 in each lane; kIsBelow32: the index is.
template <bool kIsBelow32, class D32, class V32 = hn::Vec<D32>>
HWY_INLINE V32 BitAt(D32 d, V32 index) {
#if TEPAL_HAVE_MASK_REGISTERS  // here, too, a rotation
  return V32{_mm256_rolv_epi32(hn::Set(d, 1u).raw, index.raw)};
#endif
  if constexpr (!kIsBelow32) {
    // Cheaper than a second shift: shifts and shuffles share two of the four vector units (Zen 3).
    index = hn::And(index, hn::Set(d, 31u));
  }
  return hn::Shl(hn::Set(d, 1u), index);
}

// yes where v, taken as signed, is negative.
template <class D32, class V32 = hn::Vec<D32>>
HWY_INLINE V32 IfTopBitThenElse(D32 d, V32 v, V32 yes, V32 no) {
  const hn::RebindToSigned<D32> di;
#if HWY_TARGET == HWY_SSSE3  // Highway 1.0.3's IfNegativeThenElse looks at all bits of v there
  return hn::IfVecThenElse(hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, v))), yes, no);
#else
  return hn::BitCast(
      d, hn::IfNegativeThenElse(hn::BitCast(di, v), hn::BitCast(di, yes), hn::BitCast(di, no)));
#endif
}

// words[index[i]] in lane i, for 16 words and index = top 4 bits of `hash`.
template <class D32, class V32 = hn::Vec<D32>>
HWY_INLINE V32 LookupWord16(D32 d, const uint32_t* words, V32 hash) {
#if TEPAL_HAVE_MASK_REGISTERS
  return V32{_mm256_permutex2var_epi32(hn::LoadU(d, words).raw, hn::ShiftRight<28>(hash).raw,
                                       hn::LoadU(d, words + 8).raw)};
#elif HWY_TARGET == HWY_AVX2
  // Two lookups in registers: the instruction ignores all but the lowest 3 bits of an index.
  const hn::Indices256<uint32_t> index{hn::ShiftRight<28>(hash).raw};
  const V32 low = hn::TableLookupLanes(hn::LoadU(d, words), index);
  const V32 high = hn::TableLookupLanes(hn::LoadU(d, words + 8), index);
  return IfTopBitThenElse(d, hash, high, low);
#else
  const hn::RebindToSigned<D32> di;
  return hn::GatherIndex(d, words, hn::BitCast(di, hn::ShiftRight<28>(hash)));
#endif
}

// bits & ~words: those of the bits that the words lack.
template <class D32, class V32 = hn::Vec<D32>>
HWY_INLINE V32 MissingBits(D32 /*d*/, V32 words, V32 bits) {
#if TEPAL_HAVE_MASK_REGISTERS  // this one takes the words from memory, and-not does not
  return V32{_mm256_ternarylogic_epi32(bits.raw, bits.raw, words.raw, 0x44)};
#else
  return hn::AndNot(words, bits);
#endif
}

// 2 * answers + 1 if all of `bits` are in `words`, else 2 * answers.
template <class D32, class V32 = hn::Vec<D32>>
HWY_INLINE unsigned AppendContains(D32 d, unsigned answers, V32 words, V32 bits) {
#if TEPAL_HAVE_CARRY_TEST  // two instructions where compilers make four
  static_cast<void>(d);
  asm("vptest %2, %1\n\tadc %0, %0" : "+r"(answers) : "x"(words.raw), "x"(bits.raw) : "cc");
  return answers;
#else
  const bool contains = hn::AllTrue(d, hn::Eq(MissingBits(d, words, bits), hn::Zero(d)));
  return 2 * answers + unsigned{contains};
#endif
}

// The halves of a hash, each loaded by itself: one load feeds a broadcast and the other the
// address, so that nothing moves between integer and vector registers. 0.91 -> 0.70 ns a key
// against one 64-bit load (AVX2, Zen 3, 16 KiB).
constexpr size_t kLowHalfByte = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;

HWY_INLINE uint32_t HalfAt(const uint64_t* hash, size_t byte) {
  uint32_t half;
  memcpy(&half, reinterpret_cast<const uint8_t*>(hash) + byte, sizeof(half));
  return half;
}
HWY_INLINE uint32_t LowHalf(const uint64_t* hash) { return HalfAt(hash, kLowHalfByte); }
HWY_INLINE uint32_t HighHalf(const uint64_t* hash) { return HalfAt(hash, 4 - kLowHalfByte); }

#if TEPAL_HAVE_BLOCK_PACKS

// Narrows the lanes of `a`, then those of `b`, within each 128-bit block, with signed saturation:
// what is not zero stays so.
template <class V32>
HWY_INLINE auto PackTo16(V32 a, V32 b) {
  const hn::Repartition<int16_t, hn::DFromV<V32>> d16;
  return hn::ReorderDemote2To(d16, a, b);
}

// Highway has no ReorderDemote2To to 8 bits before 1.0.5, and its parts cost three instructions for
// one on x86.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
HWY_INLINE hn::Vec128<int8_t> PackTo8(hn::Vec128<int16_t> a, hn::Vec128<int16_t> b) {
  return hn::Vec128<int8_t>{_mm_packs_epi16(a.raw, b.raw)};
}
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE hn::Vec256<int8_t> PackTo8(hn::Vec256<int16_t> a, hn::Vec256<int16_t> b) {
  return hn::Vec256<int8_t>{_mm256_packs_epi16(a.raw, b.raw)};
}
#endif
#else
template <class V16>
HWY_INLINE auto PackTo8(V16 a, V16 b) {
  const hn::Repartition<int8_t, hn::DFromV<V16>> d8;
  const hn::Half<decltype(d8)> half;
  return hn::Combine(d8, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
}
#endif

#endif  // TEPAL_HAVE_BLOCK_PACKS

// Filters are little-endian words. Kernels turn the mask of a key, not the filter, so this costs
// nothing elsewhere.
template <class D32, class V32 = hn::Vec<D32>>
HWY_INLINE V32 LittleEndian32(D32 d, V32 v) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  const V32 even_bytes = hn::Set(d, 0x00FF00FFu);
  const V32 even = hn::And(v, even_bytes);                    // 0x00BB00DD of 0xAABBCCDD
  const V32 odd = hn::And(hn::ShiftRight<8>(v), even_bytes);  // 0x00AA00CC
  return hn::Or(hn::RotateRight<8>(even), hn::RotateRight<16>(odd));
#else
  (void)d;
  return v;
#endif
}

// The same for 64-bit words, which the scattered layouts read.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE V64 LittleEndian64(D64 d, V64 v) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  const auto swap = [&](V64 x, uint64_t low_fields, auto shift) HWY_ATTR {
    const V64 fields = hn::Set(d, low_fields);
    return hn::Or(hn::And(hn::ShiftRight<shift.value>(x), fields),
                  hn::ShiftLeft<shift.value>(hn::And(x, fields)));
  };
  const V64 bytes = swap(v, 0x00FF00FF00FF00FFu, std::integral_constant<int, 8>());
  const V64 pairs = swap(bytes, 0x0000FFFF0000FFFFu, std::integral_constant<int, 16>());
  return hn::RotateRight<32>(pairs);
#else
  static_cast<void>(d);
  return v;
#endif
}

// Lane i is words(i): 64-bit words from anywhere. Broadcasts and blends cost a third of a gather
// (AVX2, Zen 3).
template <class D64, class WordOf>
HWY_INLINE hn::Vec<D64> CollectWords(D64 d, const WordOf& word) {
#if TEPAL_HAVE_BLOCK_PACKS
  if constexpr (hn::MaxLanes(D64()) == 2) {
    return hn::OddEven(hn::Set(d, word(1)), hn::Set(d, word(0)));
  } else if constexpr (hn::MaxLanes(D64()) == 4) {
    const auto low = hn::OddEven(hn::Set(d, word(1)), hn::Set(d, word(0)));
    const auto high = hn::OddEven(hn::Set(d, word(3)), hn::Set(d, word(2)));
    return hn::ConcatUpperLower(d, high, low);
  } else if constexpr (hn::MaxLanes(D64()) == 8) {
    const hn::Half<D64> half;
    const auto high = [&](size_t i) TEPAL_LAMBDA { return word(4 + i); };
    return hn::Combine(d, CollectWords(half, high), CollectWords(half, word));
  }
#endif
  uint64_t words[hn::MaxLanes(D64())];
  for (size_t i = 0; i < hn::Lanes(d); ++i) words[i] = word(i);
  return hn::LoadU(d, words);
}

// The 64-bit words of `bytes` with these numbers.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE V64 WordsAt(D64 d, const uint8_t* bytes, V64 numbers) {
#if TEPAL_HAVE_MASK_REGISTERS
  const hn::RebindToSigned<D64> di;
  return hn::GatherIndex(d, reinterpret_cast<const uint64_t*>(bytes), hn::BitCast(di, numbers));
#else
  alignas(64) uint64_t number[hn::MaxLanes(D64())];
  hn::Store(numbers, d, number);
  return CollectWords(d, [&](size_t i) TEPAL_LAMBDA {
    uint64_t word;
    memcpy(&word, bytes + number[i] * sizeof(word), sizeof(word));
    return word;
  });
#endif
}

// Writes the lanes of 64-bit vectors whose bit is set, one after another. Writes whole vectors: the
// output needs room for the other lanes, too.
template <class D64>
class Compressor {
 public:
  HWY_INLINE Compressor(D64 d, uint64_t bits) : d_(d), bits_(bits) {}

  HWY_INLINE void Store(hn::Vec<D64> v, uint64_t* out) const {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
    // Highway's CompressStore with g++ 12 copies its table to the stack for each vector.
    const hn::Repartition<uint32_t, D64> d32;
    const auto& table = kCompressTable<hn::MaxLanes(D64())>;
    const auto indices = hn::IndicesFromVec(d32, hn::LoadU(d32, table.halves[bits_]));
    hn::StoreU(hn::BitCast(d_, hn::TableLookupLanes(hn::BitCast(d32, v), indices)), d_, out);
#elif TEPAL_HAVE_MASK_REGISTERS
    // Highway's Compress has the same problem. Not to memory at once: said to be slow on Zen 4.
    const auto mask = static_cast<__mmask8>(bits_);
    hn::StoreU(hn::Vec<D64>{_mm512_maskz_compress_epi64(mask, v.raw)}, d_, out);
#else
    uint8_t bytes[8];
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(bits_ >> (8 * i));
    hn::CompressBitsStore(v, bytes, d_, out);
#endif
  }

  HWY_INLINE size_t count() const { return hwy::PopCount(bits_); }

 private:
  D64 d_;
  uint64_t bits_;
};

// 32 instructions that do nothing, so that the core sees fewer requests at a time.
//
// It seems that memory serves requests for lines better if they do not come in bursts. A short loop
// sends bursts: the core looks some 300 instructions ahead, and has the requests of 20 keys at hand
// whenever it gets on. (docs/benchmarks.md has what does not fit.) Filled up like this, split256
// takes 2.8 ns a key instead of 3.5 at 64 MiB, and 4.1 instead of 5.1 at 512 MiB. 16 or 40
// instructions are not as good, eight multiplications are, and what does not help: `pause` (4.4
// and 6.3), `nop` (4.7 and 6.3), and requests that wait for the tests before them (3.6 and 5.1). In
// L3 it would be slower. (All AVX2, Zen 4. Emerald Rapids, 512 MiB: 9.0 instead of 10.1. On Zen 5
// it costs: 2.7 instead of 2.3 at 64 MiB, 3.6 instead of 3.3 at 512 MiB.)
HWY_INLINE void PaceRequests() {
#if HWY_ARCH_X86_64 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  uint32_t zero;  // needs no unit of the core, only a place in its window
  asm volatile(".rept 32\n\txor %0, %0\n\t.endr" : "=r"(zero) : : "cc");
#endif
}

// Asks for a cache line, into L2. Not into L1 (prefetcht0): 512 MiB with huge pages took 8.9 ns a
// key against 6.3, and 9.5 without prefetch (Zen 4, 32 keys ahead). hwy::Prefetch is prefetcht0.
template <Prefetch kPrefetch>
HWY_INLINE void RequestLine(const uint8_t* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address, /*rw=*/0, /*locality=*/2);
#else
  hwy::Prefetch(address);
#endif
  if constexpr (kPrefetch == Prefetch::kPaced) PaceRequests();
}

// The first byte becomes the lowest.
HWY_INLINE uint64_t LoadLittleEndian64(const uint8_t* bytes) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  uint64_t word = 0;
  for (size_t i = 0; i < 8; ++i) word |= uint64_t{bytes[i]} << (8 * i);
#else
  uint64_t word;
  memcpy(&word, bytes, sizeof(word));
#endif
  return word;
}

// Eight bytes of 0 or 1 become the bits of one byte, the first one lowest.
HWY_INLINE uint8_t JoinFlags(const uint8_t* flags) {
  return static_cast<uint8_t>(LoadLittleEndian64(flags) * 0x0102040810204080u >>
                              56);  // each flag lands in another bit
}

// The lanes of a mask as the low bits of an integer. StoreMaskBits may write 8 bytes whatever the
// number of lanes.
template <class D, class M = hn::Mask<D>>
HWY_INLINE uint64_t MaskToBits(D d, M mask) {
  uint8_t bytes[HWY_MAX(8, (hn::MaxLanes(D()) + 7) / 8)] = {};
  hn::StoreMaskBits(d, mask, bytes);
  return LoadLittleEndian64(bytes);
}

// The top bit of each 64-bit lane.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE uint64_t TopBits(D64 /*d*/, V64 v) {
#if HWY_TARGET == HWY_AVX2  // one instruction; with MaskToBits, g++ 12 compares first
  return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(v.raw)));
#else
  const hn::RebindToSigned<D64> di;
  return MaskToBits(di, hn::Lt(hn::BitCast(di, v), hn::Zero(di)));
#endif
}

#if TEPAL_HAVE_BLOCK_PACKS

// Bit i: are byte i, and its counterpart in the upper half of vectors of 256 bits, zero?
template <class D8, class V8 = hn::Vec<D8>>
HWY_INLINE unsigned ZeroBytes16(D8 d8, V8 v) {
  auto zero = static_cast<unsigned>(MaskToBits(d8, hn::Eq(v, hn::Zero(d8))));
  if constexpr (hn::MaxLanes(D8()) == 32) zero &= zero >> 16;
  return zero;
}

#endif  // TEPAL_HAVE_BLOCK_PACKS

// Which lanes of `words` have all bits of their lane of `mask`, one bit a lane.
template <class D64, class V64 = hn::Vec<D64>>
HWY_INLINE uint64_t AllBitsSet(D64 d, V64 words, V64 mask) {
#if TEPAL_HAVE_MASK_REGISTERS
  return MaskToBits(d, hn::Eq(hn::AndNot(words, mask), hn::Zero(d)));
#else
  return TopBits(d, hn::VecFromMask(d, hn::Eq(hn::And(words, mask), mask)));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tepal
HWY_AFTER_NAMESPACE();

#endif  // TEPAL_KERNELS_HWY_COMPAT_INL_H_
