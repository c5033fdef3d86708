// The kernels for whole filters, on every target, against plain loops over bytes.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "dispatch/active_kernels.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kSeed = 77;
constexpr size_t kMaxWords = 130;  // more than two rounds of any loop, with every tail
constexpr size_t kMaxShiftWords = 9;

// Bytes at a multiple of 8 that is no multiple of a vector, between canaries.
class Operand {
 public:
  Operand(uint64_t seed, size_t num_bytes, size_t shift_words)
      : words_(RandomValues(seed, num_bytes / 8 + shift_words + kCanaryWords)),
        before_(words_),
        begin_(8 * shift_words),
        num_bytes_(num_bytes) {}

  uint8_t* data() { return reinterpret_cast<uint8_t*>(words_.data()) + begin_; }
  size_t size() const { return num_bytes_; }
  void Fill(uint8_t byte) { std::fill_n(data(), num_bytes_, byte); }
  std::vector<uint8_t> bytes() { return {data(), data() + num_bytes_}; }

  // Nothing around the bytes has changed.
  bool CanariesAlive() const {
    const size_t first = begin_ / 8;
    return std::equal(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(first),
                      before_.begin()) &&
           std::equal(words_.end() - kCanaryWords, words_.end(), before_.end() - kCanaryWords);
  }

 private:
  static constexpr std::ptrdiff_t kCanaryWords = 9;
  std::vector<uint64_t> words_;
  std::vector<uint64_t> before_;
  size_t begin_;
  size_t num_bytes_;
};

// Calls visit(num_bytes, shift_words) for all lengths in `step_words`, at several alignments.
template <class Visit>
void ForEachLength(size_t step_words, const Visit& visit) {
  for (size_t num_words = 0; num_words <= kMaxWords; num_words += step_words) {
    for (const size_t shift_words : {size_t{0}, size_t{1}, num_words % kMaxShiftWords}) {
      SCOPED_TRACE(std::to_string(num_words) + " words, shifted by " + std::to_string(shift_words));
      visit(8 * num_words, shift_words);
    }
  }
}

class SetKernelsTest : public TargetTest {
 protected:
  const SetKernels& kernels() const { return *ActiveKernels().sets; }
};

TEPAL_TEST_ON_EVERY_TARGET(SetKernelsTest);

TEST_P(SetKernelsTest, OrAndAndCombineEveryByteAndNoOther) {
  ForEachLength(1, [&](size_t num_bytes, size_t shift_words) {
    Operand from(kSeed, num_bytes, shift_words);
    Operand ored(kSeed + 1, num_bytes, kMaxShiftWords - shift_words);
    Operand anded(kSeed + 1, num_bytes, kMaxShiftWords - shift_words);
    std::vector<uint8_t> expected_or = ored.bytes();
    std::vector<uint8_t> expected_and = ored.bytes();
    for (size_t i = 0; i < num_bytes; ++i) {
      expected_or[i] = static_cast<uint8_t>(expected_or[i] | from.data()[i]);
      expected_and[i] = static_cast<uint8_t>(expected_and[i] & from.data()[i]);
    }
    kernels().or_bytes(from.data(), num_bytes, ored.data());
    kernels().and_bytes(from.data(), num_bytes, anded.data());
    EXPECT_EQ(ored.bytes(), expected_or);
    EXPECT_EQ(anded.bytes(), expected_and);
    EXPECT_TRUE(ored.CanariesAlive() && anded.CanariesAlive());
  });
}

TEST_P(SetKernelsTest, CountBitsCountsAllOfThem) {
  ForEachLength(1, [&](size_t num_bytes, size_t shift_words) {
    Operand operand(kSeed, num_bytes, shift_words);
    uint64_t expected = 0;
    for (const uint8_t byte : operand.bytes())
      expected += static_cast<unsigned>(std::popcount(byte));
    EXPECT_EQ(kernels().count_bits(operand.data(), num_bytes), expected);
    operand.Fill(0xFF);
    EXPECT_EQ(kernels().count_bits(operand.data(), num_bytes), 8 * num_bytes);
  });
}

TEST_P(SetKernelsTest, CommonBitFindsASingleOneAnywhere) {
  ForEachLength(1, [&](size_t num_bytes, size_t shift_words) {
    Operand a(kSeed, num_bytes, shift_words);
    Operand b(kSeed, num_bytes, kMaxShiftWords - shift_words);
    for (size_t i = 0; i < num_bytes; ++i) b.data()[i] = static_cast<uint8_t>(~a.data()[i]);
    EXPECT_FALSE(kernels().common_bit(a.data(), b.data(), num_bytes));
    for (size_t bit = 0; bit < 8 * num_bytes; bit += 37) {
      uint8_t& byte = (GetBit(a.data(), bit) ? b : a).data()[bit / 8];
      const uint8_t before = byte;
      byte = static_cast<uint8_t>(byte | 1u << bit % 8);
      EXPECT_TRUE(kernels().common_bit(a.data(), b.data(), num_bytes)) << bit;
      byte = before;
    }
  });
}

// Blocks of 8 words, each with 32 bits in each half (or all) of the block.
void ExpectCommonBlockIsFound(CommonFunction common, size_t num_halves) {
  ForEachLength(4 * num_halves, [&](size_t num_bytes, size_t shift_words) {
    Operand a(kSeed, num_bytes, shift_words);
    Operand b(kSeed, num_bytes, kMaxShiftWords - shift_words);
    const size_t num_words = num_bytes / (4 * num_halves);
    // One bit of each word, in all of its bytes by turns.
    const auto byte_of = [&](size_t word) -> uint8_t& {
      const size_t half = word / 3 % num_halves;
      const size_t lane = word / 8 * 8 * num_halves + half * 8 + word % 8;
      return b.data()[4 * lane + word / 5 % 4];
    };
    // All words of a block have it but one, which is another one in each block.
    const auto lacks = [](size_t word) { return word % 8 == word / 8 % 8; };
    a.Fill(0xFF);
    b.Fill(0);
    for (size_t word = 0; word < num_words; ++word) {
      if (!lacks(word)) byte_of(word) = static_cast<uint8_t>(1u << word % 7);
    }
    EXPECT_FALSE(common(a.data(), b.data(), num_bytes));
    for (size_t word = 0; word < num_words; ++word) {
      if (!lacks(word)) continue;
      byte_of(word) = 0x80;
      EXPECT_TRUE(common(a.data(), b.data(), num_bytes)) << "block " << word / 8;
      byte_of(word) = 0;
    }
  });
}

TEST_P(SetKernelsTest, CommonBlockNeedsACommonBitInEachWordOfOneBlock) {
  ExpectCommonBlockIsFound(kernels().common_split256, 1);
  ExpectCommonBlockIsFound(kernels().common_split512, 2);
}

TEST_P(SetKernelsTest, FoldJoinsNeighbouringUnitsAndKeepsWhatWasThere) {
  for (const size_t unit_bytes : {8u, 16u, 32u, 64u, 72u, 128u, 8192u, 8200u, 16384u}) {
    for (const size_t divisor : {1u, 2u, 3u, 5u, 8u}) {
      for (const size_t num_units : {0u, 1u, 2u, 3u, 7u}) {
        SCOPED_TRACE(std::to_string(num_units) + " units of " + std::to_string(unit_bytes) +
                     " bytes, divisor " + std::to_string(divisor));
        Operand from(kSeed, num_units * divisor * unit_bytes, divisor);
        Operand into(kSeed + 1, num_units * unit_bytes, 1);
        // Few bits, so that a unit too many or too few shows.
        for (size_t i = 0; i < from.size(); ++i) from.data()[i] &= uint8_t{0x12};
        for (size_t i = 0; i < into.size(); ++i) into.data()[i] &= uint8_t{0x81};
        std::vector<uint8_t> expected = into.bytes();
        for (size_t i = 0; i < from.size(); ++i) {
          uint8_t& byte = expected[i / (divisor * unit_bytes) * unit_bytes + i % unit_bytes];
          byte = static_cast<uint8_t>(byte | from.data()[i]);
        }
        kernels().fold(from.data(), divisor, unit_bytes, num_units, into.data());
        EXPECT_EQ(into.bytes(), expected);
        EXPECT_TRUE(into.CanariesAlive());
      }
    }
  }
}

}  // namespace
}  // namespace tepal::testing
