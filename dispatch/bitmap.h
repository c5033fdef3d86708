// Bitmaps in Arrow's order (least significant bit first), 64 bits at a time.
#ifndef TEPAL_DISPATCH_BITMAP_H_
#define TEPAL_DISPATCH_BITMAP_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tepal {

inline bool GetBit(const uint8_t* bits, size_t i) { return (bits[i / 8] >> (i % 8) & 1) != 0; }

// The first `num_bytes` bytes (at most 8) as a little-endian word.
inline uint64_t LoadWord(const uint8_t* bytes, size_t num_bytes) {
  uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    if (num_bytes == 8) {
      std::memcpy(&word, bytes, 8);
      return word;
    }
  }
  for (size_t i = 0; i < num_bytes; ++i) word |= uint64_t{bytes[i]} << (8 * i);
  return word;
}

inline void StoreWord(uint64_t word, size_t num_bytes, uint8_t* bytes) {
  for (size_t i = 0; i < num_bytes; ++i) bytes[i] = static_cast<uint8_t>(word >> (8 * i));
}

// `num_bits` bits (1 to 64) from bit `begin` on. Reads no byte that has none of them.
inline uint64_t LoadBits(const uint8_t* bits, size_t begin, size_t num_bits) {
  const size_t shift = begin % 8;
  const size_t num_bytes = (shift + num_bits + 7) / 8;
  const uint8_t* first = bits + begin / 8;
  uint64_t word = LoadWord(first, num_bytes < 8 ? num_bytes : 8) >> shift;
  if (num_bytes > 8) word |= uint64_t{first[8]} << (64 - shift);
  return num_bits == 64 ? word : word & ((uint64_t{1} << num_bits) - 1);
}

// Calls visit(first_bit, num_bits) for each word of a bitmap of `num_bits` bits.
template <class Visit>
void ForEachWord(size_t num_bits, const Visit& visit) {
  for (size_t i = 0; i < num_bits; i += 64) visit(i, num_bits - i < 64 ? num_bits - i : 64);
}

// bitmap &= mask[mask_begin ...]
inline void AndBits(const uint8_t* mask, size_t mask_begin, size_t num_bits, uint8_t* bitmap) {
  ForEachWord(num_bits, [&](size_t i, size_t n) {
    const uint64_t both = LoadBits(bitmap, i, n) & LoadBits(mask, mask_begin + i, n);
    StoreWord(both, (n + 7) / 8, bitmap + i / 8);
  });
}

// bitmap = bits[begin ...]
inline void CopyBits(const uint8_t* bits, size_t begin, size_t num_bits, uint8_t* bitmap) {
  ForEachWord(num_bits, [&](size_t i, size_t n) {
    StoreWord(LoadBits(bits, begin + i, n), (n + 7) / 8, bitmap + i / 8);
  });
}

}  // namespace tepal

#endif  // TEPAL_DISPATCH_BITMAP_H_
