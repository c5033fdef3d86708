#include "dispatch/key_sources.h"

#include <xxhash.h>

#include "tepal/hash.h"

namespace tepal {

uint64_t HashString(HashKind hash, uint64_t seed, std::string_view bytes) {
  return hash == HashKind::kXxh64 ? XXH64(bytes.data(), bytes.size(), seed)
                                  : XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

void HashKeys(HashKind hash, uint64_t seed, std::span<const uint64_t> keys, uint64_t* hashes) {
  HashFunctionOf<uint64_t>(*ActiveKernels().hash, hash)(keys.data(), keys.size(), seed, hashes);
}

void HashKeys(HashKind hash, uint64_t seed, std::span<const uint32_t> keys, uint64_t* hashes) {
  HashFunctionOf<uint32_t>(*ActiveKernels().hash, hash)(keys.data(), keys.size(), seed, hashes);
}

void HashKeys(HashKind hash, uint64_t seed, const StringColumn& keys, uint64_t* hashes) {
  for (size_t i = 0; i < keys.size(); ++i) hashes[i] = HashString(hash, seed, keys[i]);
}

}  // namespace tepal
