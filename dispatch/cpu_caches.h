// What the system says about the caches of this CPU.
#ifndef TEPAL_DISPATCH_CPU_CACHES_H_
#define TEPAL_DISPATCH_CPU_CACHES_H_

#include <cstddef>
#include <string_view>

namespace tepal {

// Of one core: its data cache, and its L2.
size_t L1CacheBytes();
size_t L2CacheBytes();

// The L3 that a core can use, which it shares with others. At least the size of L2.
size_t L3CacheBytes();

// "32768K" or "2M", as Linux writes the size of a cache; 0 for anything else.
size_t ParseCacheSize(std::string_view text);

}  // namespace tepal

#endif  // TEPAL_DISPATCH_CPU_CACHES_H_
