// The hashes that filters use, for engines that hash once and probe many filters.
#ifndef TEPAL_HASH_H_
#define TEPAL_HASH_H_

#include <cstdint>
#include <span>

#include "tepal/columns.h"
#include "tepal/export.h"
#include "tepal/geometry.h"

namespace tepal {

// hashes[i] becomes the hash of key i: what Filter::Insert and Probe use for a Geometry with this
// `hash` and `seed`. `hashes` has room for all keys; for 8-byte keys it may be the array of the
// keys.
TEPAL_API void HashKeys(HashKind hash, uint64_t seed, std::span<const uint64_t> keys,
                        uint64_t* hashes);
TEPAL_API void HashKeys(HashKind hash, uint64_t seed, std::span<const uint32_t> keys,
                        uint64_t* hashes);
TEPAL_API void HashKeys(HashKind hash, uint64_t seed, const StringColumn& keys, uint64_t* hashes);

}  // namespace tepal

#endif  // TEPAL_HASH_H_
