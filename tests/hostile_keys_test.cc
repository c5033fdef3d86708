// Somebody who knows the seed can choose keys that collide. A seed that they do not know makes such
// keys as good as any others, with one exception: strings under XXH64. Twins that collide whatever
// the seed is are made here for strings of 64 bytes and more, and for those of 16 to 31 bytes after
// a multiple of 32 (16 to 31, 48 to 63, 80 to 95 ...).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/layout_traits.h"
#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/hash.h"
#include "tests/column_kinds.h"
#include "tests/geometries.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kKnownSeed = 0;
constexpr uint64_t kSecretSeeds[] = {0x8C9F04A1D3B7E265, 1, 0xFFFFFFFF00000000};
constexpr size_t kNumInserted = 8192;
constexpr size_t kNumProbed = 8192;

constexpr HashKind kBothHashes[] = {HashKind::kXxh3, HashKind::kXxh64};

// Word i of a string, in little-endian order.
uint64_t WordAt(const std::string& bytes, size_t i) {
  uint64_t word = 0;
  for (size_t b = 0; b < 8; ++b) {
    word |= uint64_t{static_cast<uint8_t>(bytes[8 * i + b])} << (8 * b);
  }
  return word;
}

void PutWordAt(std::string& bytes, size_t i, uint64_t word) {
  for (size_t b = 0; b < 8; ++b) bytes[8 * i + b] = static_cast<char>(word >> (8 * b));
}

// Keys with numbers.
struct NumberedLongs : EightByteKeys {
  static Keys Make(std::span<const uint64_t> numbers) { return {numbers.begin(), numbers.end()}; }
};

struct NumberedInts : FourByteKeys {
  static Keys Make(std::span<const uint64_t> numbers) {
    Keys keys;
    for (const uint64_t number : numbers) keys.push_back(static_cast<uint32_t>(number));
    return keys;
  }
};

template <size_t kBytes>
struct NumberedStrings : StringKeys {
  static Keys Make(std::span<const uint64_t> numbers) {
    std::vector<std::string> strings(numbers.size(), std::string(kBytes, 'x'));
    for (size_t i = 0; i < numbers.size(); ++i) PutWordAt(strings[i], 0, numbers[i]);
    return Keys(strings);
  }
};

// The keys of the first `count` of the numbers 0, 1, 2 ... whose hash is wanted.
template <class Kind, class Wanted>
typename Kind::Keys FindKeys(HashKind hash, size_t count, const Wanted& wanted) {
  constexpr size_t kTries = 4096;
  std::vector<uint64_t> found;
  std::vector<uint64_t> numbers(kTries);
  std::vector<uint64_t> hashes(kTries);
  for (uint64_t next = 0; found.size() < count;) {
    for (uint64_t& number : numbers) number = next++;
    const typename Kind::Keys keys = Kind::Make(numbers);
    HashKeys(hash, kKnownSeed, Kind::Column(keys), hashes.data());
    for (size_t i = 0; i < kTries && found.size() < count; ++i) {
      if (wanted(hashes[i])) found.push_back(numbers[i]);
    }
  }
  return Kind::Make(found);
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

// ---- All keys in one block, or a few

struct HashedLayout {
  Layout layout;
  HashKind hash;
};

std::string HashedLayoutTestName(const ::testing::TestParamInfo<HashedLayout>& info) {
  return TestName(LayoutName(info.param.layout)) + "_" + std::string(HashKindName(info.param.hash));
}

std::vector<HashedLayout> WithBothHashes(std::span<const Layout> layouts) {
  std::vector<HashedLayout> cases;
  for (const Layout layout : layouts) {
    for (const HashKind hash : kBothHashes) cases.push_back({layout, hash});
  }
  return cases;
}

class FewBlocksTest : public ::testing::TestWithParam<HashedLayout> {
 protected:
  static constexpr uint64_t kBitsPerKey = 8;

  static Geometry MakeGeometry(const HashedLayout& hashed_layout) {
    Geometry geometry = Geometry::For(hashed_layout.layout, kNumInserted, kBitsPerKey);
    geometry.hash = hashed_layout.hash;
    return geometry;
  }

  // Half of the keys go into the filter, the others are absent.
  size_t NumFalsePositives(uint64_t seed) const {
    const std::span<const uint64_t> keys(keys_);
    return FilterOf(geometry_, seed, keys.first(kNumInserted)).Count(keys.subspan(kNumInserted));
  }

  const Geometry geometry_ = MakeGeometry(GetParam());
  const uint64_t num_blocks_ = geometry_.num_bits / RulesOf(geometry_.layout).granule_bits;
  // Keys of the first 256th of the blocks: one block, or four words of `register`. 128 or 256 tries
  // a key, so an afternoon's work for anybody.
  const uint64_t num_hit_ = std::max<uint64_t>(num_blocks_ / 256, 1);
  const std::vector<uint64_t> keys_ = FindKeys<NumberedLongs>(
      GetParam().hash, kNumInserted + kNumProbed,
      [this](uint64_t hash) { return (hash >> 32) * num_blocks_ >> 32 < num_hit_; });
};

TEST_P(FewBlocksTest, AreFilledIfTheSeedIsKnown) {
  EXPECT_EQ(NumFalsePositives(kKnownSeed), kNumProbed);
}

TEST_P(FewBlocksTest, AreSomeOfManyIfTheSeedIsSecret) {
  for (const uint64_t seed : kSecretSeeds) {
    TEPAL_TRACE_SEED(seed);
    ExpectPredicted(geometry_, NumFalsePositives(seed));
  }
}

constexpr Layout kBlockedLayouts[] = {Layout::kRegister, Layout::kSplit256, Layout::kSplit512,
                                      Layout::kLine512};

INSTANTIATE_TEST_SUITE_P(Layouts, FewBlocksTest,
                         ::testing::ValuesIn(WithBothHashes(kBlockedLayouts)),
                         HashedLayoutTestName);

// ---- Absent keys that a filter is known to let through

template <class Kind>
void ExpectThatReplayIsHarmless(Layout layout, HashKind hash) {
  Geometry geometry = Geometry::For(layout, kNumInserted, 6);
  geometry.hash = hash;
  std::vector<uint64_t> numbers = RandomValues(77, kNumInserted);
  for (uint64_t& number : numbers) number |= uint64_t{1} << 31;  // none that FindKeys tries
  const typename Kind::Keys inserted = Kind::Make(numbers);
  const Filter known = FilterOf(geometry, kKnownSeed, Kind::Column(inserted));
  const typename Kind::Keys probes =
      FindKeys<Kind>(hash, kNumProbed, [&](uint64_t found) { return known.MayContainHash(found); });
  EXPECT_EQ(known.Count(Kind::Column(probes)), kNumProbed);
  for (const uint64_t seed : kSecretSeeds) {
    TEPAL_TRACE_SEED(seed);
    const Filter secret = FilterOf(geometry, seed, Kind::Column(inserted));
    ExpectPredicted(geometry, secret.Count(Kind::Column(probes)));
  }
}

class ReplayTest : public ::testing::TestWithParam<HashedLayout> {};

TEST_P(ReplayTest, FalsePositivesOfAKnownSeedAreNoneOfASecretOne) {
  ExpectThatReplayIsHarmless<NumberedLongs>(GetParam().layout, GetParam().hash);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ReplayTest, ::testing::ValuesIn(WithBothHashes(kAllLayouts)),
                         HashedLayoutTestName);

// What comes after the hash is that of the layout, so that one will do.
template <class Kind>
class ReplayOfKindTest : public ::testing::Test {};

// XXH3 has other code for up to 8, 16, 128, 240 and more bytes.
using ReplayedKinds =
    ::testing::Types<NumberedInts, NumberedStrings<8>, NumberedStrings<12>, NumberedStrings<64>,
                     NumberedStrings<200>, NumberedStrings<300>>;
TYPED_TEST_SUITE(ReplayOfKindTest, ReplayedKinds);

TYPED_TEST(ReplayOfKindTest, FalsePositivesOfAKnownSeedAreNoneOfASecretOne) {
  for (const HashKind hash : kBothHashes) {
    SCOPED_TRACE(HashKindName(hash));
    ExpectThatReplayIsHarmless<TypeParam>(Layout::kSplit256, hash);
  }
}

// ---- Strings under XXH64

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kInverseOfPrime1 = 0x0887493432BADB37u;
constexpr uint64_t kInverseOfPrime2 = 0x0BA79078168D4BAFu;
static_assert(kPrime1 * kInverseOfPrime1 == 1 && kPrime2 * kInverseOfPrime2 == 1);

// XXH64 reads stripes of 32 bytes in four lanes, each v = rotl(v + word * prime2, 31) * prime1.
// Flipping bit 63 of word 0 moves the lane by 2^30 * prime1, up or down as a bit of the sum says; a
// change of word 4, which the lane reads next, takes it back. That needs a second stripe, so
// strings of 64 bytes and more.
struct Xxh64Twins {
  std::string up, down;
};

Xxh64Twins TwinsOf(const std::string& key) {
  constexpr uint64_t kBack = (uint64_t{1} << 30) * kPrime1 * kInverseOfPrime2;
  const auto changed = [&](uint64_t difference) {
    std::string twin = key;
    PutWordAt(twin, 0, WordAt(key, 0) ^ uint64_t{1} << 63);
    PutWordAt(twin, 4, WordAt(key, 4) + difference);
    return twin;
  };
  return {changed(kBack), changed(0 - kBack)};
}

// The words behind the last stripe are read one by one, h = rotl(h ^ round(word), 27) * prime1 +
// prime4 with round(word) = rotl(word * prime2, 31) * prime1. Flipping bit 36 of the first round
// flips bit 63 of the rotated h, and so of the next h: there are no carries above bit 63, and
// prime1 is odd. Flipping bit 63 of the second round takes it back. That needs two words behind the
// last stripe.
std::string TailTwinOf(const std::string& key) {
  std::string twin = key;
  const auto flip = [&](size_t i, int bit) {
    const uint64_t round = std::rotl(WordAt(key, i) * kPrime2, 31) * kPrime1;
    const uint64_t flipped = round ^ uint64_t { 1 } << bit;
    PutWordAt(twin, i, std::rotr(flipped * kInverseOfPrime1, 31) * kInverseOfPrime2);
  };
  const size_t first = key.size() / 32 * 4;
  flip(first, 36);
  flip(first + 1, 63);
  return twin;
}

// So many random bytes each.
std::vector<std::string> LongStrings(size_t count, size_t num_bytes) {
  std::mt19937_64 engine(78);
  std::vector<std::string> strings(count, std::string(num_bytes, '\0'));
  for (std::string& string : strings) {
    for (char& c : string) c = static_cast<char>(engine());
  }
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
  static constexpr size_t kTailBytes[] = {16, 31, 48, 63, 80};

  HostileStringsTest() {
    for (const std::string& key : keys_) {
      const Xxh64Twins twins = TwinsOf(key);
      up_.push_back(twins.up);
      down_.push_back(twins.down);
    }
  }

  static std::vector<std::string> TailTwinsOf(const std::vector<std::string>& keys) {
    std::vector<std::string> twins;
    for (const std::string& key : keys) twins.push_back(TailTwinOf(key));
    return twins;
  }

  // Keys are in the filter, twins are not.
  static void ExpectThatXxh3SeesNoTwins(const std::vector<std::string>& keys,
                                        const std::vector<std::string>& twins) {
    const Geometry geometry = Geometry::For(Layout::kSplit256, kNumInserted, 6);
    for (const uint64_t seed : kSecretSeeds) {
      TEPAL_TRACE_SEED(seed);
      const Filter filter = FilterOf(geometry, seed, StringRows(keys).column32());
      ExpectPredicted(geometry, filter.Count(StringRows(twins).column32()));
    }
  }

  const std::vector<std::string> keys_ = LongStrings(kNumInserted, 64);
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

TEST_F(HostileStringsTest, UnderXxh64TwinsOfStripesNeedTwoStripes) {
  for (const size_t num_bytes : {40u, 63u, 64u, 65u}) {
    SCOPED_TRACE(std::to_string(num_bytes) + " bytes");
    const std::vector<std::string> keys = LongStrings(1000, num_bytes);
    std::vector<std::string> up, down;
    for (const std::string& key : keys) {
      up.push_back(TwinsOf(key).up);
      down.push_back(TwinsOf(key).down);
    }
    const std::vector<uint64_t> of_keys = HashesOf(HashKind::kXxh64, kSecretSeeds[0], keys);
    const std::vector<uint64_t> of_up = HashesOf(HashKind::kXxh64, kSecretSeeds[0], up);
    const std::vector<uint64_t> of_down = HashesOf(HashKind::kXxh64, kSecretSeeds[0], down);
    size_t num_collisions = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      num_collisions += (of_up[i] == of_keys[i] || of_down[i] == of_keys[i]) ? 1 : 0;
    }
    EXPECT_EQ(num_collisions, num_bytes < 64 ? 0 : keys.size());
  }
}

TEST_F(HostileStringsTest, UnderXxh64TwinsOfTailsCollideWhateverTheSeed) {
  for (const size_t num_bytes : kTailBytes) {
    SCOPED_TRACE(std::to_string(num_bytes) + " bytes");
    const std::vector<std::string> keys = LongStrings(1000, num_bytes);
    const std::vector<std::string> twins = TailTwinsOf(keys);
    for (size_t i = 0; i < keys.size(); ++i) ASSERT_NE(twins[i], keys[i]);
    for (const uint64_t seed : kSecretSeeds) {
      TEPAL_TRACE_SEED(seed);
      EXPECT_EQ(HashesOf(HashKind::kXxh64, seed, twins), HashesOf(HashKind::kXxh64, seed, keys));
    }
  }
}

TEST_F(HostileStringsTest, UnderXxh3TwinsAreAsGoodAsOthers) {
  ExpectThatXxh3SeesNoTwins(keys_, up_);
  ExpectThatXxh3SeesNoTwins(keys_, down_);
  for (const size_t num_bytes : kTailBytes) {
    SCOPED_TRACE(std::to_string(num_bytes) + " bytes");
    const std::vector<std::string> keys = LongStrings(kNumInserted, num_bytes);
    ExpectThatXxh3SeesNoTwins(keys, TailTwinsOf(keys));
  }
}

}  // namespace
}  // namespace tepal::testing
