// What the kernels offer to the host side: one table of functions per CPU target and per kernel
// file. The functions are pure: pointers and counts in, bytes out.
#ifndef TEPAL_KERNELS_KERNEL_TABLES_H_
#define TEPAL_KERNELS_KERNEL_TABLES_H_

#include <cstddef>
#include <cstdint>

namespace tepal {

// A filter as the kernels see it; made from a Geometry once, when the filter is created.
struct FilterShape {
  uint64_t num_blocks = 0;
  // Touch memory ahead of its use. Pays above the size of the L2 cache; below it costs 0.2 to 0.4
  // ns a key.
  bool prefetch = false;
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
// unused bits zero.
using ProbeFunction = void (*)(const FilterShape& shape, const uint8_t* filter,
                               const uint64_t* hashes, size_t num_keys, uint8_t* bitmap);

struct LayoutKernels {
  InsertFunction insert;
  ProbeFunction probe;
};

struct BlockKernels {
  int64_t target;
  LayoutKernels split256;
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

// The targets in this build, as a mask of Highway targets (the best one has the lowest bit).
int64_t CompiledTargetMask();

// The table compiled for `target`, one bit of CompiledTargetMask(). The caller makes sure that the
// CPU can run it.
const HashKernels& HashKernelsFor(int64_t target);
const BlockKernels& BlockKernelsFor(int64_t target);
const ResultKernels& ResultKernelsFor(int64_t target);

}  // namespace tepal

#endif  // TEPAL_KERNELS_KERNEL_TABLES_H_
