// What the host side knows about the caches of this CPU.
#ifndef TEPAL_DISPATCH_CPU_CACHES_H_
#define TEPAL_DISPATCH_CPU_CACHES_H_

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

}  // namespace tepal

#endif  // TEPAL_DISPATCH_CPU_CACHES_H_
