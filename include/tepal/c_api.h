// Tepal for C, and for every language that can call C. docs/c_api.md is the guide.
//
// Every function that can fail returns a tepal_status; tepal_last_error_message() then says what is
// wrong and what would be right. Results come through pointers, which are written only on success,
// and may not be null. Nothing here aborts, prints or throws.
//
// A null handle, or a null pointer to a column that is not empty, is TEPAL_INVALID_ARGUMENT. Only
// destroy and free functions take null, and do nothing.
//
// Structs begin with struct_size, which the caller sets to sizeof the struct, also if the call
// fills the rest (the *_INIT macros do it): later versions may append fields. Threads as in C++:
// any number may read a filter at once, an insert needs it for itself.
#ifndef TEPAL_C_API_H_
#define TEPAL_C_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tepal/export.h"
#include "tepal/version.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Status

typedef int32_t tepal_status;
enum {
  TEPAL_OK = 0,
  TEPAL_INVALID_ARGUMENT = 1,  // the request can never work: fix the arguments
  TEPAL_OUT_OF_MEMORY = 2,
  TEPAL_UNSUPPORTED = 3,  // valid elsewhere: another CPU, another build, another layout
  TEPAL_CORRUPT = 4,      // the bytes are not what they claim to be
  TEPAL_IO_ERROR = 5      // the operating system said no
};

// What the last failed call of this thread complained about, cut off at 511 bytes; empty if none
// has failed. Valid until the next call that fails.
TEPAL_API const char* tepal_last_error_message(void);

// "major.minor.patch" of the linked library. TEPAL_VERSION_MAJOR ... are those of the header.
TEPAL_API const char* tepal_version(void);

// Bytes that a call has made, and keeps until tepal_bytes_free.
typedef struct tepal_bytes {
  size_t struct_size;
  const uint8_t* data;
  size_t size;
  void* owner;  // do not touch
} tepal_bytes;
#define TEPAL_BYTES_INIT \
  { sizeof(tepal_bytes), NULL, 0, NULL }

// Makes it as TEPAL_BYTES_INIT does. Null is fine.
TEPAL_API void tepal_bytes_free(tepal_bytes* bytes);

// ---- Geometry: tepal/geometry.h and kernels/LAYOUTS.md say more

typedef int32_t tepal_layout;
enum {
  TEPAL_LAYOUT_STANDARD = 0,
  TEPAL_LAYOUT_PARTITIONED = 1,
  TEPAL_LAYOUT_RATIONAL = 2,
  TEPAL_LAYOUT_VARIABLE = 3,
  TEPAL_LAYOUT_VARIABLE_PAPER = 4,
  TEPAL_LAYOUT_REGISTER = 5,
  TEPAL_LAYOUT_SPLIT256 = 6,  // the default choice
  TEPAL_LAYOUT_SPLIT512 = 7,
  TEPAL_LAYOUT_LINE512 = 8
};

typedef int32_t tepal_hash_kind;
enum {
  TEPAL_HASH_XXH3 = 0,
  TEPAL_HASH_XXH64 = 1  // with seed 0: what Parquet uses
};

typedef struct tepal_geometry {
  size_t struct_size;
  tepal_layout layout;
  tepal_hash_kind hash;
  uint64_t num_bits;
  uint64_t seed;
  double rational_k;  // RATIONAL and VARIABLE_PAPER: the real k; otherwise 0
  uint32_t num_probes;
} tepal_geometry;
#define TEPAL_GEOMETRY_INIT \
  { sizeof(tepal_geometry), TEPAL_LAYOUT_SPLIT256, TEPAL_HASH_XXH3, 0, 0, 0, 0 }

// A good geometry of at most `bits_per_key` bits a key.
TEPAL_API tepal_status tepal_geometry_for(tepal_layout layout, uint64_t num_keys,
                                          double bits_per_key, tepal_geometry* geometry);

// The smallest one whose predicted rate of false positives is at most `max_fpr`.
TEPAL_API tepal_status tepal_geometry_for_rate(tepal_layout layout, uint64_t num_keys,
                                               double max_fpr, tepal_geometry* geometry);

TEPAL_API tepal_status tepal_geometry_validate(const tepal_geometry* geometry);

// The rate of false positives with this many different keys in the filter.
TEPAL_API tepal_status tepal_predict_fpr(const tepal_geometry* geometry, uint64_t num_keys,
                                         double* fpr);

// "split256" and so on, and back. Names live as long as the program.
TEPAL_API tepal_status tepal_layout_name(tepal_layout layout, const char** name);
TEPAL_API tepal_status tepal_parse_layout(const char* name, tepal_layout* layout);

// ---- Columns, in Arrow's memory layout

typedef int32_t tepal_column_kind;
enum {
  TEPAL_COLUMN_U64 = 1,
  TEPAL_COLUMN_U32 = 2,
  TEPAL_COLUMN_STRINGS32 = 3,  // int32_t offsets
  TEPAL_COLUMN_STRINGS64 = 4,  // int64_t offsets
  TEPAL_COLUMN_HASHES = 5      // uint64_t hashes that the caller already has
};

typedef struct tepal_column {
  size_t struct_size;
  tepal_column_kind kind;
  size_t num_rows;
  const void* values;       // num_rows keys or hashes; strings: the bytes
  const void* offsets;      // strings: num_rows + 1 offsets into values, which do not decrease
  const uint8_t* validity;  // null, or one bit a row, least significant first: 0 is a null row
  size_t validity_offset;   // in bits
} tepal_column;

static inline tepal_column tepal_make_column(tepal_column_kind kind, const void* values,
                                             const void* offsets, size_t num_rows) {
  tepal_column column = {sizeof(tepal_column), 0, 0, NULL, NULL, NULL, 0};
  column.kind = kind;
  column.num_rows = num_rows;
  column.values = values;
  column.offsets = offsets;
  return column;
}
static inline tepal_column tepal_u64_column(const uint64_t* keys, size_t num_rows) {
  return tepal_make_column(TEPAL_COLUMN_U64, keys, NULL, num_rows);
}
static inline tepal_column tepal_u32_column(const uint32_t* keys, size_t num_rows) {
  return tepal_make_column(TEPAL_COLUMN_U32, keys, NULL, num_rows);
}
static inline tepal_column tepal_strings32_column(const char* data, const int32_t* offsets,
                                                  size_t num_rows) {
  return tepal_make_column(TEPAL_COLUMN_STRINGS32, data, offsets, num_rows);
}
static inline tepal_column tepal_strings64_column(const char* data, const int64_t* offsets,
                                                  size_t num_rows) {
  return tepal_make_column(TEPAL_COLUMN_STRINGS64, data, offsets, num_rows);
}
static inline tepal_column tepal_hashes_column(const uint64_t* hashes, size_t num_rows) {
  return tepal_make_column(TEPAL_COLUMN_HASHES, hashes, NULL, num_rows);
}

// hashes[i] becomes the hash of row i, as filters with this `hash` and `seed` use it. Validity is
// not looked at.
TEPAL_API tepal_status tepal_hash_keys(tepal_hash_kind hash, uint64_t seed,
                                       const tepal_column* keys, uint64_t* hashes);

// ---- Filters

// Owns its bits, or only reads bits that lie elsewhere (tepal_filter_view, _open, _map_file): then
// what would change it is TEPAL_UNSUPPORTED.
typedef struct tepal_filter tepal_filter;

// Where filters get their memory from. Null functions: the system's memory.
typedef struct tepal_memory {
  size_t struct_size;
  bool no_huge_pages;  // for large filters that stay nearly empty
  // At a multiple of `alignment`, or null; need not be zeroed. Must not unwind.
  void* (*allocate)(size_t bytes, size_t alignment, void* context);
  void (*deallocate)(void* memory, size_t bytes, void* context);
  void* context;
} tepal_memory;
#define TEPAL_MEMORY_INIT \
  { sizeof(tepal_memory), false, NULL, NULL, NULL }

// An empty filter. `memory` may be null.
TEPAL_API tepal_status tepal_filter_create(const tepal_geometry* geometry,
                                           const tepal_memory* memory, tepal_filter** filter);

// A copy of the bytes of another filter.
TEPAL_API tepal_status tepal_filter_from_bytes(const tepal_geometry* geometry, const uint8_t* bytes,
                                               size_t num_bytes, const tepal_memory* memory,
                                               tepal_filter** filter);

// Reads `bytes` where they are: at a multiple of 64, and there until the filter is destroyed.
TEPAL_API tepal_status tepal_filter_view(const tepal_geometry* geometry, const uint8_t* bytes,
                                         size_t num_bytes, tepal_filter** filter);

TEPAL_API void tepal_filter_destroy(tepal_filter* filter);

TEPAL_API tepal_status tepal_filter_geometry(const tepal_filter* filter, tepal_geometry* geometry);

// The bits: valid as long as the filter.
TEPAL_API tepal_status tepal_filter_bytes(const tepal_filter* filter, const uint8_t** bytes,
                                          size_t* num_bytes);

TEPAL_API tepal_status tepal_filter_insert(tepal_filter* filter, const tepal_column* keys);

// Sets bit i of `bitmap`, (num_rows + 7) / 8 bytes, if row i may be in the filter, and clears it if
// not. `num_matches` may be null.
TEPAL_API tepal_status tepal_filter_probe(const tepal_filter* filter, const tepal_column* keys,
                                          uint8_t* bitmap, size_t* num_matches);

// Asks for the memory that a later call with these rows will need, and does not wait for it: for
// the next batch, before this one is probed, if batches are small (filter.h). Only for columns of
// hashes; validity is not looked at.
TEPAL_API tepal_status tepal_filter_prefetch(const tepal_filter* filter, const tepal_column* keys);

// Writes the indices of the rows that may be in the filter, in order. `rows` has room for num_rows
// of them. At most 2^32 rows.
TEPAL_API tepal_status tepal_filter_select(const tepal_filter* filter, const tepal_column* keys,
                                           uint32_t* rows, size_t* num_matches);

// The same for the rows in `selection` only, each of them below num_rows: chained filters. `rows`
// has room for `selection_size` entries, and may be `selection` itself.
TEPAL_API tepal_status tepal_filter_select_from(const tepal_filter* filter,
                                                const tepal_column* keys, const uint32_t* selection,
                                                size_t selection_size, uint32_t* rows,
                                                size_t* num_matches);

TEPAL_API tepal_status tepal_filter_count(const tepal_filter* filter, const tepal_column* keys,
                                          size_t* num_matches);

// One key: convenient, and several times slower per key than a batch.
TEPAL_API tepal_status tepal_filter_may_contain_u64(const tepal_filter* filter, uint64_t key,
                                                    bool* maybe);
TEPAL_API tepal_status tepal_filter_may_contain_u32(const tepal_filter* filter, uint32_t key,
                                                    bool* maybe);
TEPAL_API tepal_status tepal_filter_may_contain_string(const tepal_filter* filter,
                                                       const char* bytes, size_t num_bytes,
                                                       bool* maybe);
TEPAL_API tepal_status tepal_filter_may_contain_hash(const tepal_filter* filter, uint64_t hash,
                                                     bool* maybe);

// ---- Sets: tepal/sets.h says more

// Puts all keys of `other` into `into`, or keeps what both have. The geometries must be equal, or
// `other` larger and such that tepal_filter_shrink could make it as small as `into`.
TEPAL_API tepal_status tepal_filter_union(tepal_filter* into, const tepal_filter* other);
TEPAL_API tepal_status tepal_filter_intersect(tepal_filter* into, const tepal_filter* other);

// A new filter with the keys of both, with the geometry of the smaller one. `memory` may be null.
TEPAL_API tepal_status tepal_filter_merge(const tepal_filter* a, const tepal_filter* b,
                                          const tepal_memory* memory, tepal_filter** filter);

// True if no key is in both; always right. False says nothing.
TEPAL_API tepal_status tepal_filter_surely_disjoint(const tepal_filter* a, const tepal_filter* b,
                                                    bool* disjoint);

// The share of bits that are set, and how many different keys that makes.
TEPAL_API tepal_status tepal_filter_fill_ratio(const tepal_filter* filter, double* fill_ratio);
TEPAL_API tepal_status tepal_filter_estimate_keys(const tepal_filter* filter, uint64_t* num_keys);

// A new filter of a smaller geometry with the same keys. `memory` may be null.
TEPAL_API tepal_status tepal_filter_shrink(const tepal_filter* filter,
                                           const tepal_geometry* smaller,
                                           const tepal_memory* memory, tepal_filter** shrunk);

// ---- One filter, built by many threads: tepal/parallel_builder.h says more

typedef struct tepal_builder tepal_builder;

// `memory` may be null.
TEPAL_API tepal_status tepal_builder_create(const tepal_geometry* geometry,
                                            const tepal_memory* memory, tepal_builder** builder);

// Any number of threads may do this at once.
TEPAL_API tepal_status tepal_builder_insert(tepal_builder* builder, const tepal_column* keys);

// The filter, once all inserts have returned. The builder can then only be destroyed; but after
// TEPAL_OUT_OF_MEMORY it has all of its keys, and may be finished later.
TEPAL_API tepal_status tepal_builder_finish(tepal_builder* builder, tepal_filter** filter);

TEPAL_API void tepal_builder_destroy(tepal_builder* builder);

// ---- Containers: filters as files and messages; tepal/container.h says more

typedef int32_t tepal_key_kind;
enum {
  TEPAL_KEYS_UNKNOWN = 0,
  TEPAL_KEYS_U64 = 1,
  TEPAL_KEYS_U32 = 2,
  TEPAL_KEYS_STRINGS = 3,
  TEPAL_KEYS_HASHES = 4
};

typedef struct tepal_container_info {
  size_t struct_size;
  tepal_geometry geometry;
  uint64_t num_keys;  // inserted; 0 if unknown
  uint32_t version;
  tepal_key_kind key_kind;
} tepal_container_info;
#define TEPAL_CONTAINER_INFO_INIT \
  { sizeof(tepal_container_info), TEPAL_GEOMETRY_INIT, 0, 0, TEPAL_KEYS_UNKNOWN }

TEPAL_API tepal_status tepal_filter_serialize(const tepal_filter* filter, uint64_t num_keys,
                                              tepal_key_kind key_kind, tepal_bytes* container);

// Replaces the file at `path`, or leaves it as it was.
TEPAL_API tepal_status tepal_filter_write_file(const tepal_filter* filter, uint64_t num_keys,
                                               tepal_key_kind key_kind, const char* path);

// What the header says. Checks everything but the bits.
TEPAL_API tepal_status tepal_container_inspect(const uint8_t* container, size_t num_bytes,
                                               tepal_container_info* info);

// A copy of the filter. `memory` may be null.
TEPAL_API tepal_status tepal_filter_deserialize(const uint8_t* container, size_t num_bytes,
                                                const tepal_memory* memory, tepal_filter** filter);

// Reads the container where it is: at a multiple of 64, and there until the filter is destroyed.
TEPAL_API tepal_status tepal_filter_open(const uint8_t* container, size_t num_bytes,
                                         tepal_filter** filter);

// Reads a file that is mapped into memory. Replace such files, never change them. `info` may be
// null.
TEPAL_API tepal_status tepal_filter_map_file(const char* path, tepal_container_info* info,
                                             tepal_filter** filter);

// ---- Parquet: header and bitset, as they lie at a column chunk's bloom_filter_offset

// The filter in front of `bytes`, copied; what follows it is ignored. `memory` may be null.
TEPAL_API tepal_status tepal_parquet_read(const uint8_t* bytes, size_t num_bytes,
                                          const tepal_memory* memory, tepal_filter** filter);

// The same if bloom_filter_length is known, which tells more mistakes: `bytes` are all of it.
TEPAL_API tepal_status tepal_parquet_read_exactly(const uint8_t* bytes, size_t num_bytes,
                                                  const tepal_memory* memory,
                                                  tepal_filter** filter);

// Fails unless the filter is of layout SPLIT256 with XXH64 and seed 0.
TEPAL_API tepal_status tepal_parquet_write(const tepal_filter* filter, tepal_bytes* bytes);

// ---- Planner: tepal/planner.h says more

enum {  // what the filter must be able to do besides inserts and probes
  TEPAL_NEEDS_UNION = 1,
  TEPAL_NEEDS_INTERSECTION = 2,
  TEPAL_NEEDS_DISJOINTNESS = 4,
  TEPAL_NEEDS_SHRINK = 8,
  TEPAL_NEEDS_PARQUET = 16,
  TEPAL_NEEDS_POWER_OF_TWO = 32,
  TEPAL_NEEDS_END = 64  // none of the needs is this large
};

// At least one of max_fpr, max_bytes and work_saved_ns must be given.
typedef struct tepal_workload {
  size_t struct_size;
  uint64_t num_keys;
  double max_fpr;        // largest rate of false positives; 0: any
  uint64_t max_bytes;    // largest filter; 0: any
  double hit_rate;       // share of the probes whose key is in the set
  double work_saved_ns;  // what a true negative saves; 0: not known
  uint64_t num_probes;   // rows probed in all; 0: many
  uint32_t needs;        // a sum of TEPAL_NEEDS_*
} tepal_workload;
#define TEPAL_WORKLOAD_INIT \
  { sizeof(tepal_workload), 0, 0, 0, 0, 0, 0, 0 }

typedef struct tepal_plan {
  size_t struct_size;
  tepal_geometry geometry;
  double predicted_fpr;
  double bits_per_key;
  double ns_per_probe;
  double cost_ns;        // of a probed row, in all
  double no_filter_ns;   // the same without a filter; 0 if work_saved_ns is not known
  double break_even_ns;  // the filter pays from this work_saved_ns on; may be infinite
  bool pays_off;         // false: use no filter
} tepal_plan;
#define TEPAL_PLAN_INIT \
  { sizeof(tepal_plan), TEPAL_GEOMETRY_INIT, 0, 0, 0, 0, 0, 0, false }

// The filter of the lowest cost among those that satisfy the workload. `explanation` may be null;
// otherwise it gets a text for a person, with a zero behind its last byte.
TEPAL_API tepal_status tepal_make_plan(const tepal_workload* workload, tepal_plan* plan,
                                       tepal_bytes* explanation);

// ---- Targets: names are Highway's ("AVX2", "NEON") and live as long as the program

TEPAL_API tepal_status tepal_active_target(const char** name);

// Best first: those that this CPU can run, and all in this build.
TEPAL_API tepal_status tepal_available_targets(const char* const** names, size_t* num_names);
TEPAL_API tepal_status tepal_compiled_targets(const char* const** names, size_t* num_names);

// For all later batches of the process; "auto" is the best one.
TEPAL_API tepal_status tepal_force_target(const char* name);

// What is wrong with TEPAL_TARGET in the environment, if anything.
TEPAL_API tepal_status tepal_check_environment(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TEPAL_C_API_H_
