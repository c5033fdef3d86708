// Somebody who knows the seed can choose keys that all fall into one block. A seed that they do not
// know makes such keys as good as any others.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/hash.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kKnownSeed = 0;
constexpr uint64_t kSecretSeed = 0x8C9F04A1D3B7E265;
constexpr uint64_t kNumBlocks = 256;
constexpr size_t kNumInserted = 8192;  // 8 bits a key
constexpr size_t kNumProbed = 8192;

Geometry GeometryOf(HashKind hash, uint64_t seed) {
  return {.layout = Layout::kSplit256,
          .num_bits = kNumBlocks * 256,
          .num_probes = 8,
          .hash = hash,
          .seed = seed};
}

// Keys of block 0: those whose hash begins with log2(kNumBlocks) zeros. About kNumBlocks tries a
// key, so an afternoon's work for anybody.
std::vector<uint64_t> KeysOfOneBlock(HashKind hash, size_t count) {
  constexpr size_t kTries = 4096;
  std::vector<uint64_t> found;
  std::vector<uint64_t> keys(kTries);
  std::vector<uint64_t> hashes(kTries);
  for (uint64_t next = 0; found.size() < count;) {
    for (uint64_t& key : keys) key = next++;
    HashKeys(hash, kKnownSeed, std::span<const uint64_t>(keys), hashes.data());
    for (size_t i = 0; i < kTries && found.size() < count; ++i) {
      if (hashes[i] < (uint64_t{1} << 32) / kNumBlocks << 32) found.push_back(keys[i]);
    }
  }
  return found;
}

class HostileKeysTest : public ::testing::TestWithParam<HashKind> {
 protected:
  // Half of the keys go into a filter with this seed, the others are absent.
  size_t NumFalsePositives(uint64_t seed) const {
    const std::span<const uint64_t> keys(keys_);
    Filter filter = MakeFilter(GeometryOf(GetParam(), seed));
    filter.Insert(keys.first(kNumInserted));
    EXPECT_EQ(filter.Count(keys.first(kNumInserted)), kNumInserted);
    return filter.Count(keys.subspan(kNumInserted));
  }

  const std::vector<uint64_t> keys_ = KeysOfOneBlock(GetParam(), kNumInserted + kNumProbed);
};

TEST_P(HostileKeysTest, FillOneBlockIfTheSeedIsKnown) {
  EXPECT_EQ(NumFalsePositives(kKnownSeed), kNumProbed);
}

// Within five standard deviations of what is predicted for any keys; a wrong alarm once in 10^6.
TEST_P(HostileKeysTest, AreAsGoodAsOthersIfTheSeedIsSecret) {
  const double rate = fpr::Predict(GeometryOf(GetParam(), kSecretSeed), kNumInserted);
  const double expected = rate * static_cast<double>(kNumProbed);
  const double deviation = std::sqrt(expected * (1 - rate));
  ASSERT_GT(expected, 2 * 5 * deviation) << "too few probes to tell";
  EXPECT_NEAR(static_cast<double>(NumFalsePositives(kSecretSeed)), expected, 5 * deviation);
}

INSTANTIATE_TEST_SUITE_P(Hashes, HostileKeysTest,
                         ::testing::Values(HashKind::kXxh3, HashKind::kXxh64),
                         [](const auto& hash) { return std::string(HashKindName(hash.param)); });

}  // namespace
}  // namespace tepal::testing
