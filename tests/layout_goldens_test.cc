// The bits of every layout, pinned down twice: positions worked out by hand from
// kernels/LAYOUTS.md, and a checksum of small filters that a program of its own computed from that
// text and the xxHash library.
#include <xxhash.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference.h"
#include "tepal/filter.h"
#include "tepal/geometry.h"
#include "tests/geometries.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

Geometry Make(Layout layout, uint64_t num_bits, double probes) {
  return LayoutCase(layout, "", num_bits, probes).geometry;
}

// ---- Positions worked out by hand

struct Example {
  const char* why;
  Geometry geometry;
  uint64_t hash;
  std::vector<uint64_t> positions;
};

// The blocked layouts: low(h) is 1, 2 or -1, so that the products are the salts, twice the salts
// and the salts negated. With b bits to choose, the top b bits of the salts
//   47b6137b 44974d91 8824ad5b a2b7289d 705495c7 2df1424b 9efc4947 5c6bfb31 243f6a89 85a308d3
// are, for b = 6 (47 = 010001'11 ...) 17 17 34 40 28 11 39 23,
// and for b = 9 (47b = 010001111'011 ...) 143 137 272 325 224 91 317 184 72 267;
// those of twice the salts (8f6c26f6 892e9b22 10495ab6 456e513a e0a92b8e 5be28496 3df8928e b8d7f662
// 487ed512 0b4611a6) 35 34 4 17 56 22 15 46 and 286 274 32 138 449 183 123 369 144 22;
// those of the negated ones 63 - or 511 - the first, since no salt ends in 23 zeros.
// h >> 32 is 0 (block 0), 2^31 (half of three blocks is 1.5: block 1), 2^32 - 1 (the last block).
constexpr uint64_t kLowOne = 1;
constexpr uint64_t kLowTwo = 0x80000000'00000002u;
constexpr uint64_t kLowMinusOne = ~uint64_t{0};

// The scattered layouts.
//
// h = 0: r = 0, h2 = 0 | 1 = 1, u = 0. g(t) = c(t) * 2^12: 0, 2^12, 6 * 2^12, of which no position
// reads a bit.
constexpr uint64_t kZero = 0;
// h = 2^24: h1 = 2^12. x = 2^24, whose upper half is 0, so y = 0x9E3779B97F4A7C15 << 24 =
// 0xB97F4A7C15000000 and r = 0xB97F4A7C'AC7F4A7C. h2 = 0xB97F4A7CAC7F5, u = 0xB97F4A7C (0.725).
//   g(0) = 0x00000000'01000000
//   g(1) = 0xB97F4A7C'AD7F5000
//   g(2) = 0x58FBBEEC'0BFBE000 (six times h2 << 12, plus g(0))
// The bits from 24 on: 0x1, 0x..4A7CAD, 0x..BEEC0B. The 9 bits from 23 on: 0x2, 0x15A, 0x017.
// Thirds of 2^32, since 3 * 0x55555555 = 2^32 - 1: lines 0, 2, 1.
constexpr uint64_t kBit24 = uint64_t{1} << 24;
// h = 2^63: h1 = 2^51. x ^ (x >> 32) = 2^63 + 2^31. Times the factor F, which is odd: 2^63 F =
// 2^63, 2^31 F = 0xBFA53E0A80000000, the sum is y = 0x3FA53E0A80000000, r = 0x3FA53E0A'BFA53E0A.
// h2 = 0x3FA53E0ABFA53, u = 0x3FA53E0A (0.249).
//   g(0) = 0x80000000'00000000
//   g(1) = 0xBFA53E0A'BFA53000
//   g(2) = 0xFDDF7440'7DDF2000
// The bits from 24 on: 0, 0x..3E0ABF, 0x..74407D. The 9 bits from 23 on: 0, 0x17F, 0x0FB.
// Lines of three: 1, 2, 2.
constexpr uint64_t kBit63 = uint64_t{1} << 63;

std::vector<Example> Examples() {
  const Geometry register_ = Make(Layout::kRegister, 3 * 64, 4);
  const Geometry split256 = Make(Layout::kSplit256, 3 * 256, 8);
  const Geometry split512 = Make(Layout::kSplit512, 3 * 512, 8);
  const Geometry line512 = Make(Layout::kLine512, 3 * 512, 10);
  const Geometry standard_mask = Make(Layout::kStandard, 32768, 3);
  const Geometry standard_lines = Make(Layout::kStandard, 3 * 512, 3);
  const Geometry partitioned_mask = Make(Layout::kPartitioned, 3 * 4096, 3);
  const Geometry partitioned_lines = Make(Layout::kPartitioned, 3 * 1536, 3);
  const Geometry rational_mask = Make(Layout::kRational, 32768, 2.5);
  const Geometry rational_lines = Make(Layout::kRational, 3 * 512, 2.5);
  const Geometry variable_one = Make(Layout::kVariable, 1024, 3);
  // Blocks of 1024, 512, 64 bits at 0, 1024, 1536. Of three probes, 1024 * 3 / 1600 = 1.92 fall in
  // block 0 and 0.96 in block 1: b(0) = 1.92, b(1) = 2.88 (times 2^32), b(2) = 3.
  const Geometry variable_three = Make(Layout::kVariable, 1600, 3);
  const Geometry paper_one = Make(Layout::kVariablePaper, 1024, 2.5);
  // The same three blocks, with k = 3.125 * 1024 / 1600 = 2, 1 and 0.125 probes.
  const Geometry paper_three = Make(Layout::kVariablePaper, 1600, 3.125);
  return {
      {"salts, 6 bits each", register_, kLowOne, {17, 17, 34, 40}},
      {"from bit 64 on", register_, kLowTwo, {64 + 35, 64 + 34, 64 + 4, 64 + 17}},
      {"from bit 128 on", register_, kLowMinusOne, {128 + 46, 128 + 46, 128 + 29, 128 + 23}},

      // split256_test.cc has these and more.
      {"salts, 5 bits each", split256, kLowOne, {8, 40, 81, 116, 142, 165, 211, 235}},
      {"from bit 256 on", split256, kLowTwo, {273, 305, 322, 360, 412, 427, 455, 503}},

      {"salts, 6 bits each: half, then bit of 32",
       split512,
       kLowOne,
       {17, 32 + 17, 256 + 64 + 2, 256 + 96 + 8, 128 + 28, 160 + 11, 256 + 192 + 7, 224 + 23}},
      {"from bit 512 on",
       split512,
       kLowTwo,
       {768 + 3, 768 + 32 + 2, 512 + 64 + 4, 512 + 96 + 17, 768 + 128 + 24, 512 + 160 + 22,
        512 + 192 + 15, 768 + 224 + 14}},
      {"from bit 1024 on",
       split512,
       kLowMinusOne,
       {1280 + 14, 1280 + 32 + 14, 1024 + 64 + 29, 1024 + 96 + 23, 1280 + 128 + 3, 1280 + 160 + 20,
        1024 + 192 + 24, 1280 + 224 + 8}},

      {"salts, 9 bits each", line512, kLowOne, {143, 137, 272, 325, 224, 91, 317, 184, 72, 267}},
      {"from bit 512 on",
       line512,
       kLowTwo,
       {512 + 286, 512 + 274, 512 + 32, 512 + 138, 512 + 449, 512 + 183, 512 + 123, 512 + 369,
        512 + 144, 512 + 22}},
      {"from bit 1024 on",
       line512,
       kLowMinusOne,
       {1024 + 368, 1024 + 374, 1024 + 239, 1024 + 186, 1024 + 287, 1024 + 420, 1024 + 194,
        1024 + 327, 1024 + 439, 1024 + 244}},

      {"h2 = 1 changes no bit that is read", standard_mask, kZero, {0, 0, 0}},
      {"the low 15 of the bits from 24 on", standard_mask, kBit24, {1, 0x7CAD, 0x6C0B}},
      {"the low 15 of the bits from 24 on", standard_mask, kBit63, {0, 0x0ABF, 0x407D}},
      {"the low 12 bits of h are not read", standard_mask, kBit63 + 0xFFF, {0, 0x0ABF, 0x407D}},
      {"lines 0, 2, 1", standard_lines, kBit24, {0x002, 0x400 + 0x15A, 0x200 + 0x017}},
      {"lines 1, 2, 2", standard_lines, kBit63, {0x200 + 0, 0x400 + 0x17F, 0x400 + 0x0FB}},

      {"the low 12 of the bits, in parts", partitioned_mask, kZero, {0, 4096, 8192}},
      {"the low 12 of the bits, in parts",
       partitioned_mask,
       kBit24,
       {1, 4096 + 0xCAD, 8192 + 0xC0B}},
      {"the low 12 of the bits, in parts",
       partitioned_mask,
       kBit63,
       {0, 4096 + 0xABF, 8192 + 0x07D}},
      {"lines 0, 2, 1 of parts of 3",
       partitioned_lines,
       kBit24,
       {2, 1536 + 1024 + 0x15A, 3072 + 512 + 0x017}},
      {"lines 1, 2, 2 of parts of 3",
       partitioned_lines,
       kBit63,
       {512, 1536 + 1024 + 0x17F, 3072 + 1024 + 0x0FB}},

      {"u = 0 is below one half: three", rational_mask, kZero, {0, 0, 0}},
      {"u = 0.725 is not below one half: two", rational_mask, kBit24, {1, 0x7CAD}},
      {"u = 0.249 is below one half: three", rational_mask, kBit63, {0, 0x0ABF, 0x407D}},
      {"u = 0.725: two, in lines 0, 2", rational_lines, kBit24, {2, 0x400 + 0x15A}},
      {"u = 0.249: three", rational_lines, kBit63, {0x200, 0x400 + 0x17F, 0x400 + 0x0FB}},

      {"one block: the low 10 of the bits", variable_one, kBit24, {1, 0x0AD, 0x00B}},
      {"one block: the low 10 of the bits", variable_one, kBit63, {0, 0x2BF, 0x07D}},
      {"0, 1, 2 fall in blocks 0, 0, 1", variable_three, kZero, {0, 0, 1024}},
      {"0.725, 1.725, 2.725 fall in blocks 0, 0, 1: 10, 10 and 9 of the bits",
       variable_three,
       kBit24,
       {1, 0x0AD, 1024 + 0x00B}},
      {"0.249, 1.249, 2.249 fall in blocks 0, 0, 1",
       variable_three,
       kBit63,
       {0, 0x2BF, 1024 + 0x07D}},

      // Positions are h1 + i * h2 here, without the shift: h1 = 0, h2 = 1.
      {"u = 0: three in one block", paper_one, kZero, {0, 1, 2}},
      {"u = 0.725: two. 0x1000, 0x...AD7F5", paper_one, kBit24, {0, 0x3F5}},
      // 2 * 0x253 = 0x4A6.
      {"u = 0.249: three. 0, 0x...253, 0x...4A6", paper_one, kBit63, {0, 0x253, 0x0A6}},
      {"u = 0: two, one and one", paper_three, kZero, {0, 1, 1024, 1536}},
      {"u = 0.725: two and one", paper_three, kBit24, {0, 0x3F5, 1024}},
      {"u = 0.249: two and one", paper_three, kBit63, {0, 0x253, 1024}},
  };
}

TEST(LayoutExamplesTest, ReferenceComputesThePositionsWorkedByHand) {
  for (const Example& example : Examples()) {
    SCOPED_TRACE(LayoutName(example.geometry.layout));
    ASSERT_TRUE(example.geometry.Validate().ok()) << example.geometry.Validate().message();
    EXPECT_EQ(reference::Positions(example.geometry, example.hash), example.positions)
        << example.why;
  }
}

using LayoutExamplesOnTargetTest = TargetTest;

TEST_P(LayoutExamplesOnTargetTest, KernelsSetThePositionsWorkedByHand) {
  for (const Example& example : Examples()) {
    SCOPED_TRACE(LayoutName(example.geometry.layout));
    Filter filter = MakeFilter(example.geometry);
    filter.InsertHashes({&example.hash, 1});
    std::vector<uint8_t> expected(example.geometry.num_bytes());
    for (const uint64_t position : example.positions) {
      uint8_t& byte = expected[position / 8];
      byte = static_cast<uint8_t>(byte | 1u << position % 8);
    }
    EXPECT_EQ(BytesOf(filter), expected) << example.why;
  }
}

TEPAL_TEST_ON_EVERY_TARGET(LayoutExamplesOnTargetTest);

// ---- Golden bytes. A change here is a change of format: never edit them to make a test pass.

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014, from state 0.
std::vector<uint64_t> SplitMix64(size_t count) {
  std::vector<uint64_t> values(count);
  uint64_t state = 0;
  for (uint64_t& value : values) {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    value = z ^ (z >> 31);
  }
  return values;
}

struct Golden {
  Layout layout;
  uint64_t num_bits;
  double probes;
  uint64_t xxh3;
};

constexpr Golden kGoldens[] = {
    {Layout::kStandard, 16384, 7, 0x0020d959bca084c0u},
    {Layout::kStandard, 13824, 7, 0xdcba512ce24f9becu},
    {Layout::kPartitioned, 16384, 4, 0x07b4c8496317eb6eu},
    {Layout::kPartitioned, 7680, 5, 0xbc05f019c64c8a64u},
    {Layout::kRational, 16384, 5.25, 0x663c140f9f6e905cu},
    {Layout::kRational, 13824, 5.25, 0x016898d0af3f3bb2u},
    {Layout::kVariable, 16384, 7, 0x0020d959bca084c0u},
    {Layout::kVariable, 13888, 7, 0x46ef8aa7944946d0u},
    {Layout::kVariablePaper, 16384, 6.5, 0x09e1da08062f9f91u},
    {Layout::kVariablePaper, 13888, 6.5, 0xc35c74515c8d2842u},
    {Layout::kRegister, 6400, 4, 0x720cbe8666148012u},
    {Layout::kSplit256, 6912, 8, 0x87fa777347e5c0c7u},
    {Layout::kSplit512, 6656, 8, 0xac4dbb62e589fba1u},
    {Layout::kLine512, 6656, 6, 0x0680ab56666367a2u},
};

std::string Describe(const Golden& golden) {
  return std::string(LayoutName(golden.layout)) + ", " + std::to_string(golden.num_bits) + " bits";
}

TEST(LayoutGoldensTest, SplitMix64IsThePublishedGenerator) {
  const std::vector<uint64_t> hashes = SplitMix64(1000);
  EXPECT_EQ(hashes.front(), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(hashes.back(), 0x14E0ABB2BFCF7C3Eu);
}

TEST(LayoutGoldensTest, ReferenceWritesTheGoldenBytes) {
  for (const Golden& golden : kGoldens) {
    const Geometry geometry = Make(golden.layout, golden.num_bits, golden.probes);
    std::vector<uint8_t> bytes(geometry.num_bytes());
    for (const uint64_t hash : SplitMix64(1000)) reference::Insert(geometry, hash, bytes.data());
    EXPECT_EQ(XXH3_64bits(bytes.data(), bytes.size()), golden.xxh3) << Describe(golden);
  }
}

using LayoutGoldensOnTargetTest = TargetTest;

TEST_P(LayoutGoldensOnTargetTest, KernelsWriteTheGoldenBytes) {
  const std::vector<uint64_t> hashes = SplitMix64(1000);
  for (const Golden& golden : kGoldens) {
    Filter filter = MakeFilter(Make(golden.layout, golden.num_bits, golden.probes));
    filter.InsertHashes(hashes);
    EXPECT_EQ(XXH3_64bits(filter.bytes().data(), filter.bytes().size()), golden.xxh3)
        << Describe(golden);
    EXPECT_EQ(filter.CountHashes(hashes), hashes.size()) << Describe(golden);
  }
}

TEPAL_TEST_ON_EVERY_TARGET(LayoutGoldensOnTargetTest);

}  // namespace
}  // namespace tepal::testing
