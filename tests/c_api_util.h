// What several tests of the C interface need.
#ifndef TEPAL_TESTS_C_API_UTIL_H_
#define TEPAL_TESTS_C_API_UTIL_H_

#include <cstdint>

#include "tepal/c_api.h"

namespace tepal::testing {

// One that Parquet can have, if that is a multiple of 256.
inline tepal_geometry GeometryOfBits(uint64_t num_bits) {
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  geometry.hash = TEPAL_HASH_XXH64;
  geometry.num_bits = num_bits;
  geometry.num_probes = 8;
  return geometry;
}

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_C_API_UTIL_H_
