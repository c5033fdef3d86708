// split256 is Apache Parquet's split-block filter, bit for bit: examples worked by hand from
// BloomFilter.md of parquet-format, a file from parquet-testing, and golden bytes.
//
// The specification, for a hash h and z blocks:
//   block    i = ((h >> 32) * z) >> 32
//   word j of the block, for x = the low 32 bits of h: bit (x * salt[j] mod 2^32) >> 27
// Filters are little-endian: bit b of word j of block i is bit b % 8 of byte 32 i + 4 j + b / 8.
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/layout_traits.h"
#include "kernels/reference.h"
#include "tepal/filter.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

Geometry Blocks(uint64_t num_blocks, HashKind hash = HashKind::kXxh3, uint64_t seed = 0) {
  return {.layout = Layout::kSplit256,
          .num_bits = num_blocks * 256,
          .num_probes = 8,
          .hash = hash,
          .seed = seed};
}

struct Example {
  const char* why;
  uint64_t hash;
  uint64_t num_blocks;
  uint64_t block;
  std::array<uint32_t, 8> bits;  // in words 0 .. 7
};

// The top five bits of the salts (47 44 88 a2 70 2d 9e 5c in the top byte) are
//   01000 01000 10001 10100 01110 00101 10011 01011  =  8 8 17 20 14 5 19 11.
constexpr std::array<uint32_t, 8> kBitsOfOne = {8, 8, 17, 20, 14, 5, 19, 11};
// One bit further to the right: the top bytes of the doubled salts are 8f 89 10 45 e0 5b 3d b8.
constexpr std::array<uint32_t, 8> kBitsOfTwo = {17, 17, 2, 8, 28, 11, 7, 23};
// x = -1: the product is 2^32 - salt, whose top five bits are those of the salt inverted, because
// no salt ends in 27 zeros.
constexpr std::array<uint32_t, 8> kBitsOfAllOnes = {23, 23, 14, 11, 17, 26, 12, 20};
// x = 2^31: salts are odd, so only the top bit of the product is left: 10000.
constexpr std::array<uint32_t, 8> kBitsOfTopBit = {16, 16, 16, 16, 16, 16, 16, 16};

constexpr Example kExamples[] = {
    {"x = 0 gives bit 0", 0, 3, 0, {}},
    {"x = 1 gives the salts", 1, 3, 0, kBitsOfOne},
    {"half of 3 is 1.5: block 1", 0x80000000'00000002u, 3, 1, kBitsOfTwo},
    {"the last block", 0xFFFFFFFF'FFFFFFFFu, 3, 2, kBitsOfAllOnes},
    {"3 * 0x55555555 = 2^32 - 1: still block 0", 0x55555555'80000000u, 3, 0, kBitsOfTopBit},
    {"3 * 0x55555556 = 2^32 + 2: block 1", 0x55555556'80000000u, 3, 1, kBitsOfTopBit},
    {"3 * 0xAAAAAAAA = 2^33 - 2: still block 1", 0xAAAAAAAA'00000001u, 3, 1, kBitsOfOne},
    {"3 * 0xAAAAAAAB = 2^33 + 1: block 2", 0xAAAAAAAB'00000001u, 3, 2, kBitsOfOne},
    {"one block takes every hash", 0xFFFFFFFF'00000001u, 1, 0, kBitsOfOne},
    {"16 blocks: the top four bits", 0xB0000000'00000002u, 16, 11, kBitsOfTwo},
    {"2^32 - 1 blocks: almost h >> 32", 0x12345678'00000001u, 0xFFFFFFFFu, 0x12345677, kBitsOfOne},
};

std::vector<uint64_t> PositionsOf(const Example& example) {
  std::vector<uint64_t> positions;
  for (uint64_t word = 0; word < 8; ++word) {
    positions.push_back(example.block * 256 + word * 32 + example.bits[word]);
  }
  return positions;
}

TEST(Split256ReferenceTest, ComputesTheExamplesWorkedByHand) {
  for (const Example& example : kExamples) {
    EXPECT_EQ(reference::Positions(Blocks(example.num_blocks), example.hash), PositionsOf(example))
        << example.why;
  }
}

TEST(Split256ReferenceTest, InsertSetsThePositionsAndNothingElse) {
  std::vector<uint8_t> bytes(96);
  reference::Insert(Blocks(3), kExamples[2].hash, bytes.data());
  std::vector<uint64_t> set_bits;
  for (uint64_t position = 0; position < 96 * 8; ++position) {
    if (GetBit(bytes.data(), position)) set_bits.push_back(position);
  }
  EXPECT_EQ(set_bits, PositionsOf(kExamples[2]));
}

TEST(Split256ReferenceTest, MatchesExactlyIfAllEightBitsAreSet) {
  const std::vector<uint64_t> positions = PositionsOf(kExamples[2]);
  for (const uint64_t left_out : positions) {
    std::vector<uint8_t> bytes(96, 0xFF);
    EXPECT_TRUE(reference::MayContain(Blocks(3), kExamples[2].hash, bytes.data()));
    bytes[left_out / 8] = static_cast<uint8_t>(bytes[left_out / 8] & ~(1u << left_out % 8));
    EXPECT_FALSE(reference::MayContain(Blocks(3), kExamples[2].hash, bytes.data())) << left_out;
  }
}

TEST(Split256TraitsTest, SaltsAreThoseOfTheSpecification) {
  const std::array<uint32_t, 8> salts = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
                                         0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
  EXPECT_TRUE(std::equal(salts.begin(), salts.end(), kSalts, kSalts + 8));
}

using Split256Test = TargetTest;

TEST_P(Split256Test, SetsTheBitsOfTheExamplesWorkedByHand) {
  for (const Example& example : kExamples) {
    if (example.num_blocks > 1000) continue;  // too large to allocate
    Filter filter = MakeFilter(Blocks(example.num_blocks));
    filter.InsertHashes({&example.hash, 1});
    std::vector<uint8_t> expected(example.num_blocks * 32);
    for (const uint64_t position : PositionsOf(example)) {
      expected[position / 8] = static_cast<uint8_t>(1u << position % 8);
    }
    EXPECT_EQ(BytesOf(filter), expected) << example.why;
  }
}

// Three blocks with the hashes 1, 0x80000000'00000002 and ~0 of the table above, byte for byte.
TEST_P(Split256Test, SmallFilterHasTheBytesWorkedByHand) {
  const std::vector<uint64_t> hashes = {1, 0x80000000'00000002u, ~uint64_t{0}};
  Filter filter = MakeFilter(Blocks(3));
  filter.InsertHashes(hashes);
  const std::vector<uint8_t> expected = {// block 0: bits 8, 8, 17, 20, 14, 5, 19, 11
                                         0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,  //
                                         0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x10, 0x00,  //
                                         0x00, 0x40, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00,  //
                                         0x00, 0x00, 0x08, 0x00, 0x00, 0x08, 0x00, 0x00,
                                         // block 1: bits 17, 17, 2, 8, 28, 11, 7, 23
                                         0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x00,  //
                                         0x04, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,  //
                                         0x00, 0x00, 0x00, 0x10, 0x00, 0x08, 0x00, 0x00,  //
                                         0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x00,
                                         // block 2: bits 23, 23, 14, 11, 17, 26, 12, 20
                                         0x00, 0x00, 0x80, 0x00, 0x00, 0x00, 0x80, 0x00,  //
                                         0x00, 0x40, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00,  //
                                         0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x04,  //
                                         0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00};
  EXPECT_EQ(BytesOf(filter), expected);
}

// ---- Another implementation's bytes

// data/bloom_filter.xxhash.bin of parquet-testing, written by parquet-mr: after a header of 16
// bytes, 32 blocks with the strings below. All other blocks are empty.
const std::vector<std::string> kParquetStrings = {"hello", "parquet", "bloom", "filter"};

std::vector<uint8_t> ParquetBytes() {
  constexpr struct {
    size_t block;
    std::array<uint8_t, 32> bytes;
  } kBlocks[] = {{4, {0x00, 0x00, 0x10, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x04, 0x00,
                      0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00,
                      0x00, 0x80, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x08}},
                 {5, {0x00, 0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x10, 0x01, 0x00, 0x00,
                      0x00, 0x00, 0x00, 0x00, 0x10, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00,
                      0x20, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x08, 0x00}},
                 {7, {0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x40,
                      0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x20,
                      0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00}},
                 {10, {0x00, 0x00, 0x20, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x01, 0x00,
                       0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x80, 0x00, 0x00, 0x00,
                       0x00, 0x08, 0x00, 0x01, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00}}};
  std::vector<uint8_t> bytes(32 * 32);
  for (const auto& [block, block_bytes] : kBlocks) {
    std::copy(block_bytes.begin(), block_bytes.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(block * 32));
  }
  return bytes;
}

TEST_P(Split256Test, WritesTheBytesOfParquetsTestFile) {
  Filter filter = MakeFilter(Blocks(32, HashKind::kXxh64));
  filter.Insert(StringRows(kParquetStrings).column32());
  EXPECT_EQ(BytesOf(filter), ParquetBytes());
}

// ---- Golden bytes. A change here is a change of format: never edit them to make a test pass.
// Computed by a program of its own from the specification's text and the xxHash library.

uint64_t Checksum(const Filter& filter) {
  return XXH64(filter.bytes().data(), filter.bytes().size(), 0);
}

template <typename Key>
std::vector<Key> FirstTenThousand() {
  std::vector<Key> keys(10000);
  std::iota(keys.begin(), keys.end(), Key{0});
  return keys;
}

TEST_P(Split256Test, EightByteKeysHaveTheirGoldenBytes) {
  Filter filter = MakeFilter(Blocks(1031, HashKind::kXxh64));
  filter.Insert(FirstTenThousand<uint64_t>());
  EXPECT_EQ(Checksum(filter), 0xdef1293c696c98d3u);
}

TEST_P(Split256Test, FourByteKeysHaveTheirGoldenBytes) {
  Filter filter = MakeFilter(Blocks(1000, HashKind::kXxh3, 42));
  filter.Insert(FirstTenThousand<uint32_t>());
  EXPECT_EQ(Checksum(filter), 0xe9f2b61873a7c536u);
}

TEST_P(Split256Test, StringsHaveTheirGoldenBytes) {
  std::vector<std::string> strings;
  for (int i = 0; i < 10000; ++i) strings.push_back("key" + std::to_string(i));
  Filter filter = MakeFilter(Blocks(777, HashKind::kXxh3, 7));
  filter.Insert(StringRows(strings).column64());
  EXPECT_EQ(Checksum(filter), 0xcf202aa1556d7150u);
}

// "A filter that uses 1024 blocks and has had 26,214 hash values inserted will have a false
// positive probability of around 1.26%."
TEST_P(Split256Test, HasTheFalsePositiveRateOfTheSpecification) {
  constexpr uint64_t kSeed = 4;
  TEPAL_TRACE_SEED(kSeed);
  Filter filter = MakeFilter(Blocks(1024));
  filter.InsertHashes(RandomValues(kSeed, 26214));
  const size_t false_positives = filter.CountHashes(RandomValues(kSeed + 1, 1'000'000));
  EXPECT_NEAR(static_cast<double>(false_positives) / 1e6, 0.0126, 0.0005);
}

TEPAL_TEST_ON_EVERY_TARGET(Split256Test);

}  // namespace
}  // namespace tepal::testing
