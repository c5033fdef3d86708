// The scalar oracle: defines every bit of every layout. Written from LAYOUTS.md in a style of its
// own (single bits addressed by position, 128-bit arithmetic), so that a mistake in a kernel is not
// repeated here. Slow on purpose.
#ifndef TEPAL_KERNELS_REFERENCE_H_
#define TEPAL_KERNELS_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "tepal/geometry.h"

namespace tepal::reference {

// The positions (bit p is bit p % 8 of byte p / 8) that a key of this hash sets, in the order of
// LAYOUTS.md. Precondition: geometry.Validate().ok().
std::vector<uint64_t> Positions(const Geometry& geometry, uint64_t hash);

void Insert(const Geometry& geometry, uint64_t hash, uint8_t* filter);
bool MayContain(const Geometry& geometry, uint64_t hash, const uint8_t* filter);

}  // namespace tepal::reference

#endif  // TEPAL_KERNELS_REFERENCE_H_
