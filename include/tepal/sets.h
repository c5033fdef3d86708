// Filters as sets: join them, compare them, make them smaller, count what is in them. docs/sets.md
// has a table of what works for which layout.
//
// A key is lost by none of these: what the operands surely contain, the result does not deny. All
// of them run at the speed of the memory that they touch.
#ifndef TEPAL_SETS_H_
#define TEPAL_SETS_H_

#include <cstdint>

#include "tepal/export.h"
#include "tepal/filter.h"
#include "tepal/geometry.h"
#include "tepal/memory.h"
#include "tepal/status.h"

namespace tepal {

// Puts all keys of `other` into `into`. With equal geometries the bytes are then those of one
// filter with all keys. `other` may be larger, if Shrink could make it as small as `into`. If
// `into` is the larger one, this is an error and nothing changes: use Merge.
TEPAL_API Status Union(Filter& into, const FilterView& other);

// Keeps what both have: every key that is in both is still found. There may be more false positives
// than in a filter built from the common keys, but no more than in either operand. Sizes as in
// Union.
TEPAL_API Status Intersect(Filter& into, const FilterView& other);

// A new filter with the keys of both, with the geometry of the smaller one.
TEPAL_API Result<Filter> Merge(const FilterView& a, const FilterView& b,
                               const MemoryOptions& memory = {});

// True if no key is in both; always right. False says nothing. Partitioned and split layouts say
// true far more often, because one part (or, in each block, one word) without a common bit is
// enough.
TEPAL_API Result<bool> SurelyDisjoint(const FilterView& a, const FilterView& b);

// The share of bits that are set, 0 to 1.
TEPAL_API double FillRatio(const FilterView& filter);

// How many different keys are in the filter, from its fill ratio. The error is noise: a standard
// error of about 1 / sqrt(num_bits) at design load, 0.1% for a million bits. An error if every bit
// is set: any large number of keys does that.
TEPAL_API Result<uint64_t> EstimateKeys(const FilterView& filter);

// A new filter of a smaller geometry with the same keys, byte for byte as if they had been inserted
// into it. `smaller` is filter.geometry() with
//  - num_bits divided by a whole number: split256, split512, line512, register; also standard,
//    rational and partitioned (there the bits of a part), but sizes that are powers of two stay so,
//    and others do not become so;
//  - num_bits divided by a power of two: variable, variable-paper;
//  - partitioned: fewer probes, and num_bits reduced to as many parts;
//  - variable: the first blocks only (the powers of two in num_bits, largest first), if the number
//    of probes per bit can stay the same. The largest block alone may be taken with num_probes
//    rounded down; it then keeps bits that a filter built so would not have, and EstimateKeys
//    counts them.
// Anything else is an error, because keys would be lost.
TEPAL_API Result<Filter> Shrink(const FilterView& filter, const Geometry& smaller,
                                const MemoryOptions& memory = {});

}  // namespace tepal

#endif  // TEPAL_SETS_H_
