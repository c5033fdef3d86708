// How often a filter says "maybe" to a key that is not in it, and how large a filter must be to say
// it rarely enough.
//
// Everything here assumes ideal hashing (every position uniform and independent) and is meant for 1
// <= num_bits <= 2^40. The functions named "exact" have at least 10 correct digits down to rates of
// 1e-30, in microseconds (a few milliseconds at worst): no sum over the bits of the filter, no
// alternating sums. (LineBlocked is meant for blocks of a cache line; with gigabits it takes
// seconds.) Rates below 1e-300 may come out as 0.
//
// Arguments that describe no filter (num_bits == 0, a block larger than the filter, more than
// kMaxProbes probes) give NaN. No keys give 0, no probes give 1; so a key of variable-paper that
// makes no probe at all always passes.
//
// "The paper" is Almeida, "A Case for Partitioned Bloom Filters", IEEE Transactions on Computers,
// 2022, doi:10.1109/TC.2022.3218995.
#ifndef TEPAL_FPR_H_
#define TEPAL_FPR_H_

#include <cstdint>

#include "tepal/export.h"
#include "tepal/geometry.h"
#include "tepal/status.h"

namespace tepal::fpr {

// Time and memory of the exact sums grow with the square of k. No filter of use comes near this: at
// the best size it would have a rate of 2^-256.
inline constexpr uint32_t kMaxProbes = 256;

// ---- One array of bits

// Fa, Eq. 5: the textbook formula (1 - (1 - 1/m)^(kn))^k. It is the rate at the mean fill, which is
// less than the mean rate (Jensen), so it is a strict lower bound of StandardExact for k > 1.
TEPAL_API double Classic(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes);

// Fs, Eq. 10: the mean of (fill ratio)^k over all ways in which n*k balls fall into m bins.
TEPAL_API double StandardExact(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes);

// Fs(n, m, k, d), Eq. 14: the rate for one given key whose k positions are `distinct_bits`
// different ones. Keys with distinct_bits < num_probes are the weak spots of a standard filter.
TEPAL_API double PerElement(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes,
                            uint32_t distinct_bits);

// B(k, m, k - c), Eq. 8 and Table 4: the probability that the k positions of a key are exactly
// num_probes - collisions different ones. Three equal positions count as two collisions.
TEPAL_API double CollisionProbability(uint64_t num_bits, uint32_t num_probes, uint32_t collisions);

// Eq. 1 and the column "some" of Table 4: the probability of one collision or more. Keeps its
// digits where 1 - CollisionProbability(num_bits, num_probes, 0) loses them.
TEPAL_API double AnyCollisionProbability(uint64_t num_bits, uint32_t num_probes);

// Fp, Eq. 11: (1 - (1 - k/m)^n)^k. Exact if k divides num_bits. Otherwise it is the rate for k
// parts of m/k bits, which differs from that of parts that are one bit shorter or longer by
// about k * (k/m)^2, relatively.
TEPAL_API double PartitionedExact(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes);

// A real number k of probes: floor(k), and one more for a share p = k - floor(k) of the keys. The
// rate is q^floor(k) * (1 - p + p*q) at the mean fill q, not q^k as published: a share p of the
// *queries* makes one probe more, so rates are averaged. Equals Classic for integer k, and like it
// lacks the O(k^2/m) that StandardExact adds.
TEPAL_API double Rational(uint64_t num_keys, uint64_t num_bits, double k);

// Blocks of powers of two with coordinated activation: every key makes k probes and every block has
// the same fill q, so the rate is q^k, averaged over the fill as in StandardExact. Exact if
// num_bits is a power of two (the layout is a standard filter then). Otherwise the truth lies
// between this and PartitionedExact, nearer to this: in simulations 0.0 to 0.3 % above it for 192
// to 1984 bits, where PartitionedExact is 0.3 to 1.4 % above it.
TEPAL_API double Variable(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes);

// Blocks of powers of two as published: block j makes k*m_j/m probes at the positions of the
// largest block modulo m_j, so a collision in a large block is one in the small blocks, too. There
// is no simple formula; this computes the probability of a chain of nested collisions (fpr.cc
// derives it). Assumes one activation number a key for all blocks and an odd h2; simulations agree
// within their noise of 1 %. With an activation number of its own for each block the rate is about
// 25 % lower.
TEPAL_API double VariablePaper(uint64_t num_keys, uint64_t num_bits, double k);

// ---- Blocks

// A key goes to one block, and to one bit in each of the block's words (split256: 8 words of 32
// bits, split512: 8 of 64). Given the load i of a block the rate is (1 - (1 - 1/w)^i)^words,
// exactly; loads are Binomial(n, 1/num_blocks).
TEPAL_API double SplitBlocked(uint64_t num_keys, uint64_t num_bits, uint32_t words_per_block,
                              uint32_t word_bits);

// A key goes to one block, and to k independent positions in it, which may coincide (line512: 512
// bits; register: 64). Given the load i of a block the rate is StandardExact(i, block_bits, k).
TEPAL_API double LineBlocked(uint64_t num_keys, uint64_t num_bits, uint32_t block_bits,
                             uint32_t num_probes);

// ---- Two filters

// Ps and Pp of section 6.2: the probability that the filters of two disjoint sets seem to overlap,
// that is, that their AND is not empty (standard), or is empty in none of the parts (partitioned).
// The paper treats the pairs of positions as independent. They are not quite, and Jensen's
// inequality makes both an upper bound of the truth, close where they are small.
TEPAL_API double FalseOverlapStandard(uint64_t num_keys_1, uint64_t num_keys_2, uint64_t num_bits,
                                      uint32_t num_probes);
TEPAL_API double FalseOverlapPartitioned(uint64_t num_keys_1, uint64_t num_keys_2,
                                         uint64_t num_bits, uint32_t num_probes);

// ---- What hashing adds

// Double hashing (position t is h1 + t*h2 mod m) tells m^2 keys apart and no more: a query that
// shares h1 and h2 (mod m) with one of the n keys is a false positive whatever k is. This is the
// probability of that, 1 - (1 - 1/m^2)^n, about n/m^2; it matters once 2^-k comes near it. It
// counts each pair once. In a filter of 2^c bits an odd h2 has half as many values (twice the
// floor), and a sequence read backwards sets the same bits (section 5, issue 2: twice again).
// Predict does not add it: Tepal's layouts take positions in another way (kernels/LAYOUTS.md),
// and have no such floor.
TEPAL_API double DoubleHashingFloor(uint64_t num_keys, uint64_t num_bits);

// ---- Any layout

// The rate of a filter of this geometry with this many different keys in it.
TEPAL_API double Predict(const Geometry& geometry, uint64_t num_keys);

// The k with the smallest predicted rate among those that the layout allows; the lowest of equals.
// 0 if num_bits is 0. For kVariablePaper, whose k is real, the rounded one.
TEPAL_API uint32_t BestProbes(Layout layout, uint64_t num_keys, uint64_t num_bits);

// The smallest filter of the layout, with BestProbes, whose predicted rate is at or below max_fpr.
// An error if max_fpr is not between 0 and 1, if no filter of kMaxBits is large enough, and for
// kVariablePaper, whose rate jumps up and down with num_bits.
TEPAL_API Result<Geometry> GeometryForRate(Layout layout, uint64_t num_keys, double max_fpr);

// The largest number of keys at which the predicted rate is at or below max_fpr; 0 if one key is
// too many. An error if max_fpr is not between 0 and 1 or the geometry describes no filter.
TEPAL_API Result<uint64_t> KeysForRate(const Geometry& geometry, double max_fpr);

}  // namespace tepal::fpr

#endif  // TEPAL_FPR_H_
