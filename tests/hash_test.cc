// The hash kernels against the xxHash library and against constants.
#include "tepal/hash.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/guarded_memory.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr std::array<HashKind, 2> kKinds = {HashKind::kXxh3, HashKind::kXxh64};

// Keys are hashed as little-endian bytes on every machine.
template <typename Key>
uint64_t LibraryHash(HashKind kind, uint64_t seed, Key key) {
  std::array<uint8_t, sizeof(Key)> bytes;
  for (size_t i = 0; i < sizeof(Key); ++i) bytes[i] = static_cast<uint8_t>(key >> (8 * i));
  return kind == HashKind::kXxh64 ? XXH64(bytes.data(), bytes.size(), seed)
                                  : XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t LibraryHash(HashKind kind, uint64_t seed, const std::string& key) {
  return kind == HashKind::kXxh64 ? XXH64(key.data(), key.size(), seed)
                                  : XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

template <typename Keys>
std::vector<uint64_t> LibraryHashes(HashKind kind, uint64_t seed, const Keys& keys) {
  std::vector<uint64_t> hashes;
  for (const auto& key : keys) hashes.push_back(LibraryHash(kind, seed, key));
  return hashes;
}

template <typename Column>
std::vector<uint64_t> Hashes(HashKind kind, uint64_t seed, const Column& keys) {
  std::vector<uint64_t> hashes(keys.size());
  HashKeys(kind, seed, keys, hashes.data());
  return hashes;
}

template <typename Key>
void ExpectLibraryHashes(uint64_t seed, std::span<const Key> keys) {
  for (const HashKind kind : kKinds) {
    const std::vector<uint64_t> hashes = Hashes(kind, seed, keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(hashes[i], LibraryHash(kind, seed, keys[i]))
          << HashKindName(kind) << " of the " << sizeof(Key) << "-byte key " << keys[i]
          << " with seed " << seed << " in row " << i << " of " << keys.size();
    }
  }
}

// 0, 1, all ones, every single bit, everything but one bit, every byte alone.
std::vector<uint64_t> EdgeValues() {
  std::vector<uint64_t> values = {0, ~uint64_t{0}, 0xFFFFFFFFu, 0xFFFFFFFF00000000u};
  for (int bit = 0; bit < 64; ++bit) {
    values.push_back(uint64_t{1} << bit);
    values.push_back(~(uint64_t{1} << bit));
    values.push_back((uint64_t{1} << bit) - 1);
    if (bit % 8 == 0) values.push_back(uint64_t{0xFF} << bit);
  }
  return values;
}

std::vector<uint32_t> LowHalves(const std::vector<uint64_t>& values) {
  std::vector<uint32_t> halves;
  for (const uint64_t value : values) halves.push_back(static_cast<uint32_t>(value));
  return halves;
}

using HashTest = TargetTest;

TEST_P(HashTest, EdgeKeysAndEdgeSeedsHashAsInTheLibrary) {
  const std::vector<uint64_t> keys = EdgeValues();
  const std::vector<uint32_t> short_keys = LowHalves(keys);
  for (const uint64_t seed : EdgeValues()) {
    ExpectLibraryHashes<uint64_t>(seed, keys);
    ExpectLibraryHashes<uint32_t>(seed, short_keys);
    if (HasFailure()) return;
  }
}

// A million pairs for each of the two widths and two hashes.
TEST_P(HashTest, RandomKeysAndSeedsHashAsInTheLibrary) {
  constexpr uint64_t kFirstSeed = 77;
  for (const uint64_t seed : RandomValues(kFirstSeed, 1000)) {
    ExpectLibraryHashes<uint64_t>(seed, RandomValues<uint64_t>(seed, 1003));
    ExpectLibraryHashes<uint32_t>(seed, RandomValues<uint32_t>(seed + 1, 1003));
    if (HasFailure()) return;
  }
}

template <typename Key>
void ExpectEveryLength() {
  const std::vector<Key> keys = RandomValues<Key>(5, 260);
  for (const HashKind kind : kKinds) {
    const std::vector<uint64_t> expected = LibraryHashes(kind, 9, keys);
    for (size_t length = 0; length <= 130; ++length) {
      const size_t begin = length * 7 % 130;
      GuardedArray<uint64_t> hashes(length, length % 8);
      HashKeys(kind, 9, std::span(keys).subspan(begin, length), hashes.data());
      ASSERT_TRUE(hashes.StartsWith(std::span(expected).subspan(begin, length)))
          << HashKindName(kind) << " length " << length;
      ASSERT_TRUE(hashes.OnlyWrote(length)) << HashKindName(kind) << " length " << length;
    }
  }
}

TEST_P(HashTest, EveryLengthOfEightByteKeysIsHashedAndNothingElseIsWritten) {
  ExpectEveryLength<uint64_t>();
}

TEST_P(HashTest, EveryLengthOfFourByteKeysIsHashedAndNothingElseIsWritten) {
  ExpectEveryLength<uint32_t>();
}

TEST_P(HashTest, HashesMayOverwriteEightByteKeys) {
  for (const HashKind kind : kKinds) {
    for (size_t length = 0; length <= 130; ++length) {
      std::vector<uint64_t> keys = RandomValues(length, length);
      const std::vector<uint64_t> expected = LibraryHashes(kind, 3, keys);
      HashKeys(kind, 3, std::span<const uint64_t>(keys), keys.data());
      ASSERT_EQ(keys, expected) << HashKindName(kind) << " length " << length;
    }
  }
}

TEST_P(HashTest, EmptyColumnsWriteNothing) {
  for (const HashKind kind : kKinds) {
    HashKeys(kind, 0, std::span<const uint64_t>(), nullptr);
    HashKeys(kind, 0, std::span<const uint32_t>(), nullptr);
    HashKeys(kind, 0, StringColumn(), nullptr);
  }
}

// ---- Constants, so that a new version of the library cannot change our bytes unnoticed

struct GoldenKey {
  uint64_t seed;
  uint64_t key;  // and its lower half as a 4-byte key
  uint64_t xxh3_u64;
  uint64_t xxh64_u64;
  uint64_t xxh3_u32;
  uint64_t xxh64_u32;
};

constexpr GoldenKey kGoldenKeys[] = {
    {0x0000000000000000u, 0x0000000000000000u, 0xc77b3abb6f87acd9u, 0x34c96acdcadb1bbbu,
     0x48b2c92616fc193du, 0x3aefa6fd5cf2deb4u},
    {0x0000000000000000u, 0x0000000000000001u, 0x2fbc593564db792eu, 0x9f29cb17a2a49995u,
     0xdb02334e96d65708u, 0xf42f94001fcb5351u},
    {0x0000000000000000u, 0x000000000000002au, 0xd5a6f8c838df27c8u, 0xb556806fb6d14353u,
     0x2132b64814a1ad5du, 0xd756d7b62fc50bf1u},
    {0x0000000000000000u, 0x0123456789abcdefu, 0xb78df414284277a6u, 0xea3c52081e9843ecu,
     0x622a1f0b2213b116u, 0xb80a02efdbe8080eu},
    {0x0000000000000000u, 0xffffffffffffffffu, 0x5111c7e47d784413u, 0x85d136adb773c6c9u,
     0xcd6b1c920d3f662cu, 0x7f78e4bda3addf93u},
    {0x0000000000000001u, 0x0000000000000000u, 0x9e51ad6d2f3e695cu, 0x22c76afd15f0110fu,
     0x1d1a1ef89529d430u, 0x2db113707a702ac0u},
    {0x0000000000000001u, 0x0000000000000001u, 0x85671091eda75eb5u, 0x8afb45d6a8b39709u,
     0x77f1460841dfd2b5u, 0x44602b440cddc382u},
    {0x0000000000000001u, 0x000000000000002au, 0x67572691c5abfc9cu, 0x602f275014cd5d53u,
     0xce99311a1476e21fu, 0x192bfe26d68442bfu},
    {0x0000000000000001u, 0x0123456789abcdefu, 0xd95750386d2d6e1du, 0x74a1a11854da1b5au,
     0x42d05ec2bd0aed46u, 0x3a1b7d5e2d148c01u},
    {0x0000000000000001u, 0xffffffffffffffffu, 0x7b016d4ccc01c9bfu, 0x0ad7f61289875125u,
     0xf9c9ded06ae77463u, 0x3c9630353226f169u},
    {0x9e3779b97f4a7c15u, 0x0000000000000000u, 0x1a006557206304f9u, 0x1722e35ebbc1e9a0u,
     0x9da71090cb4bd244u, 0x02ac7508ee87a069u},
    {0x9e3779b97f4a7c15u, 0x0000000000000001u, 0xa6cd8fc32994760fu, 0x163ea2ab8fe9fc28u,
     0x2d15ed848b3e896bu, 0x94368502823af0b3u},
    {0x9e3779b97f4a7c15u, 0x000000000000002au, 0xfc72f81e15616341u, 0xf92a4389bd62ee57u,
     0x845aeabeb858fe59u, 0xfe17f8421622fcd2u},
    {0x9e3779b97f4a7c15u, 0x0123456789abcdefu, 0x853d75dafb244901u, 0x6182f1fb3ce6afd9u,
     0xe085af53a9f190a4u, 0x1d73fc2ba068c441u},
    {0x9e3779b97f4a7c15u, 0xffffffffffffffffu, 0x8ae69d4026ba9e1eu, 0xab26e9f49dee09d0u,
     0x0e8d488bf17c5c6bu, 0x1739d35b6b693a0au},
    {0xffffffffffffffffu, 0x0000000000000000u, 0x278ee7fde0ba32ccu, 0x60b899029d747159u,
     0xa657599e77c25088u, 0x81f820cc105c91eau},
    {0xffffffffffffffffu, 0x0000000000000001u, 0x7928e38151286e3cu, 0x0cf2b890e8d9479fu,
     0xecd0da464999fae8u, 0x6ae81aaa906fa37fu},
    {0xffffffffffffffffu, 0x000000000000002au, 0x16144a8220efda1bu, 0xac39e833c7854947u,
     0x1a1d1578e9f6b5b8u, 0x3b73aa5265fae0cau},
    {0xffffffffffffffffu, 0x0123456789abcdefu, 0x515c4c5d8f7e70b5u, 0x3bc46d2bd1ffae1bu,
     0xcdfecfc9065b97a3u, 0xa874cfd4ad10d434u},
    {0xffffffffffffffffu, 0xffffffffffffffffu, 0xda8f77a4d5c399eau, 0x1a158c94abf6a8b1u,
     0x5957e93862e6f3ceu, 0x08ed5390d39689fdu},
};

TEST_P(HashTest, GoldenKeysHaveTheirHashes) {
  for (const GoldenKey& golden : kGoldenKeys) {
    const std::vector<uint64_t> key = {golden.key};
    const std::vector<uint32_t> short_key = LowHalves(key);
    const auto hash = [&](HashKind kind, const auto& keys) {
      return Hashes(kind, golden.seed, std::span(keys))[0];
    };
    EXPECT_EQ(hash(HashKind::kXxh3, key), golden.xxh3_u64) << golden.key;
    EXPECT_EQ(hash(HashKind::kXxh64, key), golden.xxh64_u64) << golden.key;
    EXPECT_EQ(hash(HashKind::kXxh3, short_key), golden.xxh3_u32) << golden.key;
    EXPECT_EQ(hash(HashKind::kXxh64, short_key), golden.xxh64_u32) << golden.key;
  }
}

TEPAL_TEST_ON_EVERY_TARGET(HashTest);

// ---- Strings: no kernel, one implementation for all targets

TEST(StringHashTest, GoldenStringsHaveTheirHashes) {
  const std::vector<std::string> words = {"", "a", "tepal", "hello", "parquet"};
  const StringRows rows(words);
  EXPECT_EQ(Hashes(HashKind::kXxh3, 0, rows.column32()),
            (std::vector<uint64_t>{0x2d06800538d394c2u, 0xe6c632b61e964e1fu, 0xcba078b7c133d2e3u,
                                   0x9555e8555c62dcfdu, 0x20642435cb35a755u}));
  EXPECT_EQ(Hashes(HashKind::kXxh64, 0, rows.column32()),
            (std::vector<uint64_t>{0xef46db3751d8e999u, 0xd24ec4f1a98c6e5bu, 0x444cb1f65f7c4c94u,
                                   0x26c7827d889f6da3u, 0x3c9d29275c52e429u}));
}

TEST(StringHashTest, StringsOfEveryLengthHashAsInTheLibraryWithBothOffsetTypes) {
  std::vector<std::string> strings;
  for (size_t length = 0; length <= 300; ++length) {
    const std::vector<char> bytes = RandomValues<char>(length, length);
    strings.emplace_back(bytes.begin(), bytes.end());
  }
  const StringRows rows(strings);
  for (const HashKind kind : kKinds) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      const std::vector<uint64_t> expected = LibraryHashes(kind, seed, strings);
      EXPECT_EQ(Hashes(kind, seed, rows.column32()), expected) << HashKindName(kind) << seed;
      EXPECT_EQ(Hashes(kind, seed, rows.column64()), expected) << HashKindName(kind) << seed;
    }
  }
}

TEST(StringHashTest, EightByteStringsHashLikeEightByteKeys) {
  const std::vector<uint64_t> keys = {0x0807060504030201u};
  const StringRows rows({std::string("\1\2\3\4\5\6\7\10", 8)});
  for (const HashKind kind : kKinds) {
    EXPECT_EQ(Hashes(kind, 5, rows.column32()), Hashes(kind, 5, std::span(keys)));
  }
}

}  // namespace
}  // namespace tepal::testing
