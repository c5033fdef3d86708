// What the library believes about the caches.
#include "dispatch/cpu_caches.h"

#include <gtest/gtest.h>

namespace tepal {
namespace {

TEST(CpuCachesTest, SizesAreReadAsLinuxWritesThem) {
  EXPECT_EQ(ParseCacheSize("32K"), size_t{32} << 10);
  EXPECT_EQ(ParseCacheSize("32768K"), size_t{32} << 20);
  EXPECT_EQ(ParseCacheSize("2M"), size_t{2} << 20);
}

TEST(CpuCachesTest, AnythingElseIsNoSize) {
  for (const char* text : {"", "K", "32", "32k", "32KB", "-1K", " 32K", "32K ", "x32K", "3.5M",
                           "99999999999999999999K", "18446744073709551615K"}) {
    EXPECT_EQ(ParseCacheSize(text), 0u) << '"' << text << '"';
  }
}

TEST(CpuCachesTest, CachesGrowWithTheirLevel) {
  EXPECT_GE(L1CacheBytes(), size_t{4} << 10);
  EXPECT_GT(L2CacheBytes(), L1CacheBytes());
  EXPECT_GE(L3CacheBytes(), L2CacheBytes());
}

}  // namespace
}  // namespace tepal
