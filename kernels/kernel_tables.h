// What the kernels offer to the host side: one table of functions per CPU target and per kernel
// file. The functions are pure: pointers and counts in, bytes out.
#ifndef TEPAL_KERNELS_KERNEL_TABLES_H_
#define TEPAL_KERNELS_KERNEL_TABLES_H_

#include <cstddef>
#include <cstdint>

namespace tepal {

// A range of bits that a probe may fall into; see LAYOUTS.md, reduce().
struct SlotRange {
  uint64_t from_u;   // the range applies from this u on, up to that of the next range of the slot
  uint64_t reducer;  // by mask: size - 1; by multiply-high: size / 512
  uint64_t offset;   // where the range begins, in bits
};

// One probe of a key.
struct Slot {
  uint32_t first_range;
  uint32_t num_ranges;
  bool advance;           // to the next t of g(t), before this probe
  uint64_t active_below;  // keys with u at or above this do not make the probe; 2^32: all make it
  uint64_t unstep;        // what undoes the growth of the step up to here: step * unstep is h2
};

inline constexpr uint64_t kAlwaysActive = uint64_t{1} << 32;

// The probes of a scattered layout, in the order in which they are made.
struct SlotTable {
  static constexpr size_t kMaxSlots =
      64 + 40;  // probes, and a block of each size for variable-paper
  static constexpr size_t kMaxRanges = kMaxSlots + 40;

  bool use_masks;       // or multiply-high
  uint32_t mask_shift;  // bits of g that a mask does not see
  bool steps_grow;      // by kStepGrowth with each t; steps of variable-paper stay as they are
  bool prefetch_first;  // the first slot, too, where FilterShape asks for prefetching
  uint32_t num_slots;
  Slot slots[kMaxSlots];
  SlotRange ranges[kMaxRanges];
};

// How memory is asked for ahead of its use; MakeShape knows what pays. In L2 nothing does: asking
// costs 0.2 to 0.4 ns a key.
enum class Prefetch : uint8_t {
  kNone,
  kNear,   // kNearPrefetchKeys ahead
  kFar,    // kFarPrefetchKeys ahead
  kPaced,  // as far, but never many requests at once: see PaceRequests()
};

// In L3, and beyond. A core can have many more lines under way from memory than 32: at 16 and 64
// MiB split256 took 5.2 and 7.1 ns a key 32 keys ahead, 3.7 and 5.2 with 64, 2.7 and 4.4 with 128,
// no less with 256. At 2 and 4 MiB 128 was up to 1.05 times as slow as 32. (A prototype, AVX2,
// Zen 4. On Emerald Rapids all of them took the same time.)
inline constexpr size_t kNearPrefetchKeys = 32;
inline constexpr size_t kFarPrefetchKeys = 128;

// Batches of up to this many keys are not paced. A batch of 64 then takes 7.5 ns a key instead of
// 7.2 (64 MiB), but 3.9 instead of 5.2 if its lines were asked for during the batch before
// (split256, AVX2, Zen 4).
inline constexpr size_t kUnpacedKeys = 64;

// A filter as the kernels see it; made from a Geometry once, when the filter is created.
struct FilterShape {
  uint64_t num_blocks = 0;           // blocked layouts
  uint32_t num_probes = 0;           // blocked layouts
  const SlotTable* table = nullptr;  // scattered layouts
  Prefetch prefetch = Prefetch::kNone;
};

// `hashes[i]` becomes the hash of key i; it may be the array of the keys itself if keys are 8 bytes
// long.
using Hash64Function = void (*)(const uint64_t* keys, size_t num_keys, uint64_t seed,
                                uint64_t* hashes);
using Hash32Function = void (*)(const uint32_t* keys, size_t num_keys, uint64_t seed,
                                uint64_t* hashes);

struct HashKernels {
  int64_t target;  // the Highway target that this table was compiled for
  Hash64Function xxh3_u64;
  Hash64Function xxh64_u64;
  Hash32Function xxh3_u32;
  Hash32Function xxh64_u32;
};

using InsertFunction = void (*)(const FilterShape& shape, const uint64_t* hashes, size_t num_keys,
                                uint8_t* filter);
// Bit i of `bitmap` says whether key i may be in the filter. Writes (num_keys + 7) / 8 bytes,
// unused bits zero, and returns the number of bits set.
using ProbeFunction = size_t (*)(const FilterShape& shape, const uint8_t* filter,
                                 const uint64_t* hashes, size_t num_keys, uint8_t* bitmap);

// Asks for the memory that these keys will touch, and does not wait for it.
using RequestFunction = void (*)(const FilterShape& shape, const uint8_t* filter,
                                 const uint64_t* hashes, size_t num_keys);

struct LayoutKernels {
  InsertFunction insert;
  ProbeFunction probe;
  RequestFunction request;  // null for scattered layouts, where it does not pay
};

struct BlockKernels {
  int64_t target;
  LayoutKernels split256;
  LayoutKernels split512;
  LayoutKernels line512;
  LayoutKernels register64;
};

struct LaneKernels {
  int64_t target;
  LayoutKernels scattered;  // all layouts with a SlotTable
};

// How many of the first `num_rows` bits of `bitmap` are set.
using CountFunction = size_t (*)(const uint8_t* bitmap, size_t num_rows);
// Writes first_row + i for each set bit i of `bitmap`; returns how many. `rows` has room for
// `num_rows` entries.
using SelectFunction = size_t (*)(const uint8_t* bitmap, size_t num_rows, uint32_t first_row,
                                  uint32_t* rows);
// Writes selection[i] for each set bit i of `bitmap`. `rows` may be `selection`.
using SelectFromFunction = size_t (*)(const uint8_t* bitmap, size_t num_rows,
                                      const uint32_t* selection, uint32_t* rows);

struct ResultKernels {
  int64_t target;
  CountFunction count;
  SelectFunction select;
  SelectFromFunction select_from;
};

// Whole filters, or parts of them. Bytes come in multiples of 8 and start at multiples of 8.

// into |= from, or into &= from.
using CombineFunction = void (*)(const uint8_t* from, size_t num_bytes, uint8_t* into);
using CountBitsFunction = uint64_t (*)(const uint8_t* bytes, size_t num_bytes);
// Do a and b have something in common?
using CommonFunction = bool (*)(const uint8_t* a, const uint8_t* b, size_t num_bytes);
// Each unit of `into` |= the next `divisor` units of `from`, all of which follow one another.
using FoldFunction = void (*)(const uint8_t* from, size_t divisor, size_t unit_bytes,
                              size_t num_units, uint8_t* into);

struct SetKernels {
  int64_t target;
  CombineFunction or_bytes;
  CombineFunction and_bytes;
  CountBitsFunction count_bits;
  CommonFunction common_bit;
  CommonFunction common_split256;  // a block with a common bit in each of its words
  CommonFunction common_split512;
  FoldFunction fold;
};

// The targets in this build, as a mask of Highway targets (the best one has the lowest bit).
int64_t CompiledTargetMask();

// The table compiled for `target`, one bit of CompiledTargetMask(). The caller makes sure that the
// CPU can run it.
const HashKernels& HashKernelsFor(int64_t target);
const BlockKernels& BlockKernelsFor(int64_t target);
const LaneKernels& LaneKernelsFor(int64_t target);
const ResultKernels& ResultKernelsFor(int64_t target);
const SetKernels& SetKernelsFor(int64_t target);

}  // namespace tepal

#endif  // TEPAL_KERNELS_KERNEL_TABLES_H_
