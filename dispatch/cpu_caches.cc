#include "dispatch/cpu_caches.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#if defined(__linux__)
#include <unistd.h>
#endif

namespace tepal {
namespace {

constexpr size_t kKib = 1024;

// What Linux knows about a cache of the first CPU: number 0 is the L1 for data, and from 2 on
// numbers are levels. 0 if it does not say.
size_t BytesFromLinux([[maybe_unused]] int number) {
#if defined(__linux__)
  char path[64];
  std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", number);
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  char text[32];
  const size_t length = std::fread(text, 1, sizeof(text), file);
  std::fclose(file);
  std::string_view size(text, length);
  if (size.ends_with('\n')) size.remove_suffix(1);
  return ParseCacheSize(size);
#else
  return 0;
#endif
}

// The same from the C library, whose word on L3 is the second best: on AMD's CPUs glibc gives the
// sum of all L3 caches of the package (320 MiB on a Zen 4, of which a core can use 32).
size_t BytesFromLibrary([[maybe_unused]] int number) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const int name = number == 0   ? _SC_LEVEL1_DCACHE_SIZE
                   : number == 2 ? _SC_LEVEL2_CACHE_SIZE
                                 : _SC_LEVEL3_CACHE_SIZE;
  return static_cast<size_t>(std::max(0L, sysconf(name)));
#else
  return 0;
#endif
}

size_t CacheBytes(int number, size_t otherwise) {
  if (const size_t bytes = BytesFromLinux(number); bytes != 0) return bytes;
  if (const size_t bytes = BytesFromLibrary(number); bytes != 0) return bytes;
  return otherwise;
}

}  // namespace

size_t ParseCacheSize(std::string_view text) {
  size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || end - unit != 1) return 0;
  const size_t unit_bytes = *unit == 'K' ? kKib : *unit == 'M' ? kKib * kKib : 0;
  const bool fits = unit_bytes != 0 && number <= static_cast<size_t>(-1) / unit_bytes;
  return fits ? number * unit_bytes : 0;
}

// Where nobody says: what most cores have at least.
size_t L1CacheBytes() {
  static const size_t kBytes = CacheBytes(0, 32 * kKib);
  return kBytes;
}

size_t L2CacheBytes() {
  static const size_t kBytes = CacheBytes(2, 512 * kKib);
  return kBytes;
}

size_t L3CacheBytes() {
  static const size_t kBytes = std::max(CacheBytes(3, 32 * L2CacheBytes()), L2CacheBytes());
  return kBytes;
}

}  // namespace tepal
