// What the host side knows about the caches of this CPU.
#ifndef TEPAL_DISPATCH_CPU_CACHES_H_
#define TEPAL_DISPATCH_CPU_CACHES_H_

#include <algorithm>
#include <cstddef>

#if defined(__linux__)
#include <unistd.h>
#endif

namespace tepal {

// The size of the L2 cache of one core.
inline size_t L2CacheBytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static const long kBytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (kBytes > 0) return static_cast<size_t>(kBytes);
#endif
  return size_t{512} << 10;  // what most cores have at least, where the system does not say
}

// The size of an L3 cache, which several cores share. At least that of L2.
inline size_t L3CacheBytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  static const long kBytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (kBytes > 0) return std::max(static_cast<size_t>(kBytes), L2CacheBytes());
#endif
  return 64 * L2CacheBytes();  // as on Zen 3; Zen 4 has 32 times, Emerald Rapids 130 times its L2
}

}  // namespace tepal

#endif  // TEPAL_DISPATCH_CPU_CACHES_H_
