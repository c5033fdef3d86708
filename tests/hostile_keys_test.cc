// Somebody who knows the seed can choose keys that collide. A seed that they do not know makes such
// keys as good as any others, with one exception: strings under XXH64.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/hash.h"
#include "tests/geometries.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kKnownSeed = 0;
constexpr uint64_t kSecretSeeds[] = {0x8C9F04A1D3B7E265, 1, 0xFFFFFFFF00000000};
constexpr size_t kNumInserted = 8192;
constexpr size_t kNumProbed = 8192;

// The first `count` of the keys 0, 1, 2 ... whose hash is wanted.
std::vector<uint64_t> FindKeys(HashKind hash, size_t count,
                               const std::function<bool(uint64_t)>& wanted) {
  constexpr size_t kTries = 4096;
  std::vector<uint64_t> found;
  std::vector<uint64_t> keys(kTries);
  std::vector<uint64_t> hashes(kTries);
  for (uint64_t next = 0; found.size() < count;) {
    for (uint64_t& key : keys) key = next++;
    HashKeys(hash, kKnownSeed, std::span<const uint64_t>(keys), hashes.data());
    for (size_t i = 0; i < kTries && found.size() < count; ++i) {
      if (wanted(hashes[i])) found.push_back(keys[i]);
    }
  }
  return found;
}

template <class Column>
Filter FilterOf(Geometry geometry, uint64_t seed, const Column& keys) {
  geometry.seed = seed;
  Filter filter = MakeFilter(geometry);
  filter.Insert(keys);
  EXPECT_EQ(filter.Count(keys), keys.size());
  return filter;
}

// Within five standard deviations of what is predicted for any keys; a wrong alarm once in 10^6.
void ExpectPredicted(const Geometry& geometry, size_t num_false_positives) {
  const double rate = fpr::Predict(geometry, kNumInserted);
  const double expected = rate * static_cast<double>(kNumProbed);
  const double deviation = std::sqrt(expected * (1 - rate));
  ASSERT_GT(expected, 2 * 5 * deviation) << "too few probes to tell";
  EXPECT_NEAR(static_cast<double>(num_false_positives), expected, 5 * deviation);
}

// ---- All keys in one block

class OneBlockTest : public ::testing::TestWithParam<HashKind> {
 protected:
  static constexpr uint64_t kNumBlocks = 256;  // 8 bits a key

  // Half of the keys go into the filter, the others are absent.
  size_t NumFalsePositives(uint64_t seed) const {
    const std::span<const uint64_t> keys(keys_);
    return FilterOf(geometry_, seed, keys.first(kNumInserted)).Count(keys.subspan(kNumInserted));
  }

  const Geometry geometry_ = {.layout = Layout::kSplit256,
                              .num_bits = kNumBlocks * 256,
                              .num_probes = 8,
                              .hash = GetParam()};
  // Keys of block 0: those whose hash begins with log2(kNumBlocks) zeros. About kNumBlocks tries a
  // key, so an afternoon's work for anybody.
  const std::vector<uint64_t> keys_ =
      FindKeys(GetParam(), kNumInserted + kNumProbed,
               [](uint64_t hash) { return hash < (uint64_t{1} << 32) / kNumBlocks << 32; });
};

TEST_P(OneBlockTest, IsFilledIfTheSeedIsKnown) {
  EXPECT_EQ(NumFalsePositives(kKnownSeed), kNumProbed);
}

TEST_P(OneBlockTest, IsOneOfManyIfTheSeedIsSecret) {
  for (const uint64_t seed : kSecretSeeds) {
    TEPAL_TRACE_SEED(seed);
    ExpectPredicted(geometry_, NumFalsePositives(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Hashes, OneBlockTest, ::testing::Values(HashKind::kXxh3, HashKind::kXxh64),
                         [](const auto& hash) { return std::string(HashKindName(hash.param)); });

// ---- Absent keys that a filter is known to let through

struct ReplayCase {
  Layout layout;
  HashKind hash;
};

class ReplayTest : public ::testing::TestWithParam<ReplayCase> {
 protected:
  Geometry geometry() const {
    Geometry geometry = Geometry::For(GetParam().layout, kNumInserted, 6);
    geometry.hash = GetParam().hash;
    return geometry;
  }

  const std::vector<uint64_t> inserted_ = RandomValues(77, kNumInserted);
};

TEST_P(ReplayTest, FalsePositivesOfAKnownSeedAreNoneOfASecretOne) {
  const Filter known = FilterOf(geometry(), kKnownSeed, std::span<const uint64_t>(inserted_));
  const std::vector<uint64_t> probes = FindKeys(
      GetParam().hash, kNumProbed, [&](uint64_t hash) { return known.MayContainHash(hash); });
  EXPECT_EQ(known.Count(probes), kNumProbed);
  for (const uint64_t seed : kSecretSeeds) {
    TEPAL_TRACE_SEED(seed);
    ExpectPredicted(geometry(),
                    FilterOf(geometry(), seed, std::span<const uint64_t>(inserted_)).Count(probes));
  }
}

std::vector<ReplayCase> ReplayCases() {
  std::vector<ReplayCase> cases;
  for (const Layout layout : kAllLayouts) {
    for (const HashKind hash : {HashKind::kXxh3, HashKind::kXxh64}) cases.push_back({layout, hash});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Layouts, ReplayTest, ::testing::ValuesIn(ReplayCases()),
                         [](const auto& test) {
                           return TestName(LayoutName(test.param.layout)) + "_" +
                                  std::string(HashKindName(test.param.hash));
                         });

// ---- Strings under XXH64

// XXH64 reads strings of 32 bytes and more in four lanes, each v = rotl(v + word * prime2, 31) *
// prime1. Flipping bit 63 of word 0 moves the lane by 2^30 * prime1, up or down as a bit of the sum
// says; a change of word 4, which the lane reads next, takes it back.
struct Xxh64Twins {
  std::string up, down;
};

Xxh64Twins TwinsOf(const std::string& key) {
  constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
  constexpr uint64_t kInverseOfPrime2 = 0x0BA79078168D4BAFu;
  static_assert(0xC2B2AE3D27D4EB4Fu * kInverseOfPrime2 == 1);
  constexpr uint64_t kBack = (uint64_t{1} << 30) * kPrime1 * kInverseOfPrime2;
  const auto changed = [&](uint64_t difference) {
    std::string twin = key;
    twin[7] = static_cast<char>(twin[7] ^ 0x80);  // little-endian: bit 63 of word 0
    uint64_t word = 0;
    for (size_t i = 0; i < 8; ++i) word |= uint64_t{static_cast<uint8_t>(key[32 + i])} << (8 * i);
    word += difference;
    for (size_t i = 0; i < 8; ++i) twin[32 + i] = static_cast<char>(word >> (8 * i));
    return twin;
  };
  return {changed(kBack), changed(0 - kBack)};
}

// 64 random bytes each.
std::vector<std::string> LongStrings(size_t count) {
  const std::vector<uint64_t> words = RandomValues(78, 8 * count);
  std::vector<std::string> strings(count, std::string(64, '\0'));
  for (size_t i = 0; i < count; ++i) std::memcpy(strings[i].data(), words.data() + 8 * i, 64);
  return strings;
}

std::vector<uint64_t> HashesOf(HashKind hash, uint64_t seed,
                               const std::vector<std::string>& strings) {
  std::vector<uint64_t> hashes(strings.size());
  HashKeys(hash, seed, StringRows(strings).column32(), hashes.data());
  return hashes;
}

class HostileStringsTest : public ::testing::Test {
 protected:
  HostileStringsTest() {
    for (const std::string& key : keys_) {
      const Xxh64Twins twins = TwinsOf(key);
      up_.push_back(twins.up);
      down_.push_back(twins.down);
    }
  }

  const std::vector<std::string> keys_ = LongStrings(kNumInserted);
  std::vector<std::string> up_, down_;
};

// That is why docs/guide.md says XXH3.
TEST_F(HostileStringsTest, UnderXxh64OneOfTwoTwinsCollidesWhateverTheSeed) {
  for (const uint64_t seed : kSecretSeeds) {
    TEPAL_TRACE_SEED(seed);
    const std::vector<uint64_t> of_keys = HashesOf(HashKind::kXxh64, seed, keys_);
    const std::vector<uint64_t> of_up = HashesOf(HashKind::kXxh64, seed, up_);
    const std::vector<uint64_t> of_down = HashesOf(HashKind::kXxh64, seed, down_);
    for (size_t i = 0; i < keys_.size(); ++i) {
      ASSERT_NE(of_up[i] == of_keys[i], of_down[i] == of_keys[i]);
    }
  }
}

TEST_F(HostileStringsTest, UnderXxh3TwinsAreAsGoodAsOthers) {
  const Geometry geometry = Geometry::For(Layout::kSplit256, kNumInserted, 6);
  for (const uint64_t seed : kSecretSeeds) {
    TEPAL_TRACE_SEED(seed);
    const Filter filter = FilterOf(geometry, seed, StringRows(keys_).column32());
    for (const std::vector<std::string>& twins : {up_, down_}) {
      ExpectPredicted(geometry, filter.Count(StringRows(twins).column32()));
    }
  }
}

}  // namespace
}  // namespace tepal::testing
