// The C interface, used from C11: every function, what it does and what it refuses.
#define _XOPEN_SOURCE 700  // setrlimit
#include "tepal/c_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int num_failures = 0;

static void Expect(bool condition, const char* text, int line) {
  if (condition) return;
  ++num_failures;
  fprintf(stderr, "c_api_test.c:%d: not true: %s\n  last error: %s\n", line, text,
          tepal_last_error_message());
}

// Refused with this status, and a message that contains `part`.
static void ExpectError(tepal_status expected, const char* part, tepal_status status,
                        const char* text, int line) {
  if (status == expected && strstr(tepal_last_error_message(), part) != NULL) return;
  ++num_failures;
  fprintf(stderr, "c_api_test.c:%d: %s\n  gave %d, not %d; or \"%s\" has no \"%s\"\n", line, text,
          status, expected, tepal_last_error_message(), part);
}

#define EXPECT(condition) Expect(condition, #condition, __LINE__)
#define EXPECT_OK(call) Expect((call) == TEPAL_OK, #call, __LINE__)
#define EXPECT_ERROR(status, part, call) ExpectError(status, part, call, #call, __LINE__)
#define EXPECT_INVALID(part, call) EXPECT_ERROR(TEPAL_INVALID_ARGUMENT, part, call)

enum { kNumKeys = 1000, kNumRows = 2000 };  // the first kNumKeys of the rows are inserted

typedef struct Columns {
  uint64_t u64[kNumRows];
  uint32_t u32[kNumRows];
  char text[kNumRows * 8];
  int32_t offsets32[kNumRows + 1];
  int64_t offsets64[kNumRows + 1];
  tepal_column all[5];
} Columns;

static const Columns* GetColumns(void) {
  static Columns columns;
  int32_t end = 0;
  for (int i = 0; i < kNumRows; ++i) {
    columns.u64[i] = (uint64_t)i * 0x9E3779B97F4A7C15u;
    columns.u32[i] = (uint32_t)i * 0x9E3779B1u;
    end += sprintf(columns.text + end, "s%d", i);
    columns.offsets32[i + 1] = end;
    columns.offsets64[i + 1] = end;
  }
  columns.all[0] = tepal_u64_column(columns.u64, kNumRows);
  columns.all[1] = tepal_u32_column(columns.u32, kNumRows);
  columns.all[2] = tepal_strings32_column(columns.text, columns.offsets32, kNumRows);
  columns.all[3] = tepal_strings64_column(columns.text, columns.offsets64, kNumRows);
  columns.all[4] = tepal_hashes_column(columns.u64, kNumRows);
  return &columns;
}

static tepal_geometry SomeGeometry(void) {
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  EXPECT_OK(tepal_geometry_for(TEPAL_LAYOUT_SPLIT256, kNumKeys, 20, &geometry));
  return geometry;
}

static tepal_filter* SomeFilter(void) {
  const tepal_geometry geometry = SomeGeometry();
  tepal_filter* filter = NULL;
  EXPECT_OK(tepal_filter_create(&geometry, NULL, &filter));
  return filter;
}

static tepal_filter* FilterWithKeys(void) {
  tepal_filter* filter = SomeFilter();
  const tepal_column keys = tepal_u64_column(GetColumns()->u64, kNumKeys);
  EXPECT_OK(tepal_filter_insert(filter, &keys));
  return filter;
}

static void VersionIsThatOfTheHeader(void) {
  char version[32];
  sprintf(version, "%d.%d.%d", TEPAL_VERSION_MAJOR, TEPAL_VERSION_MINOR, TEPAL_VERSION_PATCH);
  EXPECT(strcmp(tepal_version(), version) == 0);
}

static void GeometriesAreMadeAndChecked(void) {
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  double fpr = -1;
  EXPECT_OK(tepal_geometry_for_rate(TEPAL_LAYOUT_STANDARD, 1000, 0.01, &geometry));
  EXPECT(geometry.layout == TEPAL_LAYOUT_STANDARD && geometry.num_probes >= 6);
  EXPECT_OK(tepal_predict_fpr(&geometry, 1000, &fpr));
  EXPECT(fpr > 0.005 && fpr <= 0.01);
  EXPECT_OK(tepal_geometry_for(TEPAL_LAYOUT_RATIONAL, 1000, 10, &geometry));
  EXPECT(geometry.rational_k > 6 && geometry.rational_k < 7);
  geometry.seed = 7;
  geometry.hash = TEPAL_HASH_XXH64;
  EXPECT_OK(tepal_geometry_validate(&geometry));

  EXPECT_INVALID("layout", tepal_geometry_for(99, 1000, 10, &geometry));
  EXPECT_INVALID("layout", tepal_geometry_for(-1, 1000, 10, &geometry));
  EXPECT_INVALID("layout", tepal_geometry_for(256 + TEPAL_LAYOUT_LINE512, 1000, 10, &geometry));
  EXPECT_INVALID("num_bits", tepal_geometry_for(TEPAL_LAYOUT_LINE512, 1000, -1, &geometry));
  EXPECT_INVALID("geometry is null", tepal_geometry_for(TEPAL_LAYOUT_LINE512, 1000, 10, NULL));
  EXPECT_INVALID("", tepal_geometry_for_rate(TEPAL_LAYOUT_LINE512, 1000, 2, &geometry));
  EXPECT_INVALID("geometry is null", tepal_geometry_for_rate(TEPAL_LAYOUT_LINE512, 1, 0.1, NULL));
  EXPECT_INVALID("geometry is null", tepal_geometry_validate(NULL));
  EXPECT_INVALID("geometry is null", tepal_predict_fpr(NULL, 1, &fpr));
  EXPECT_INVALID("fpr is null", tepal_predict_fpr(&geometry, 1, NULL));
  geometry.num_bits += 1;
  fpr = -1;
  EXPECT_INVALID("multiple", tepal_geometry_validate(&geometry));
  EXPECT_INVALID("multiple", tepal_predict_fpr(&geometry, 1, &fpr));
  EXPECT(fpr == -1);
  geometry.struct_size = 8;
  EXPECT_INVALID("struct_size is 8", tepal_geometry_validate(&geometry));
}

static void LayoutsHaveNames(void) {
  for (tepal_layout layout = TEPAL_LAYOUT_STANDARD; layout <= TEPAL_LAYOUT_LINE512; ++layout) {
    const char* name = NULL;
    tepal_layout parsed = -1;
    EXPECT_OK(tepal_layout_name(layout, &name));
    EXPECT_OK(tepal_parse_layout(name, &parsed));
    EXPECT(parsed == layout);
  }
  const char* name = NULL;
  tepal_layout layout = -1;
  EXPECT_INVALID("TEPAL_LAYOUT", tepal_layout_name(9, &name));
  EXPECT_INVALID("name is null", tepal_layout_name(TEPAL_LAYOUT_LINE512, NULL));
  EXPECT_INVALID("split1024", tepal_parse_layout("split1024", &layout));
  EXPECT_INVALID("name is null", tepal_parse_layout(NULL, &layout));
  EXPECT_INVALID("layout is null", tepal_parse_layout("split256", NULL));
}

// All calls agree, for one kind of column.
static void CheckColumnKind(const tepal_column* rows) {
  static uint8_t bitmap[kNumRows / 8];
  static uint32_t selected[kNumRows];
  tepal_column keys = *rows;
  keys.num_rows = kNumKeys;
  size_t probed = 0, counted = 0, num_selected = 0, again = 0;
  tepal_filter* filter = SomeFilter();
  EXPECT_OK(tepal_filter_insert(filter, &keys));

  if (rows->kind == TEPAL_COLUMN_HASHES) {
    EXPECT_OK(tepal_filter_prefetch(filter, rows));
  } else {
    EXPECT_INVALID("only hashes", tepal_filter_prefetch(filter, rows));
  }
  EXPECT_OK(tepal_filter_probe(filter, rows, bitmap, &probed));
  EXPECT_OK(tepal_filter_probe(filter, rows, bitmap, NULL));
  EXPECT_OK(tepal_filter_count(filter, rows, &counted));
  EXPECT_OK(tepal_filter_select(filter, rows, selected, &num_selected));
  EXPECT(probed >= kNumKeys && probed < kNumKeys + 20);
  EXPECT(counted == probed && num_selected == probed);
  for (size_t i = 0; i < num_selected; ++i) {
    if (i < kNumKeys) EXPECT(selected[i] == i);
    EXPECT((bitmap[selected[i] / 8] >> (selected[i] % 8) & 1) == 1);
  }
  EXPECT_OK(tepal_filter_select_from(filter, rows, selected, num_selected, selected, &again));
  EXPECT(again == num_selected);

  // Every other row is null, from bit 3 of the bitmap on.
  static uint8_t validity[kNumRows / 8 + 1];
  memset(validity, 0xAA, sizeof(validity));
  tepal_column nulls = *rows;
  nulls.validity = validity;
  nulls.validity_offset = 3;
  EXPECT_OK(tepal_filter_select(filter, &nulls, selected, &num_selected));
  EXPECT(num_selected >= kNumKeys / 2 && selected[0] == 0 && selected[1] == 2);
  tepal_filter_destroy(filter);
}

static void EveryKindOfColumnWorks(void) {
  for (int kind = 0; kind < 5; ++kind) CheckColumnKind(&GetColumns()->all[kind]);
}

static void EmptyColumnsDoNothing(void) {
  tepal_filter* filter = SomeFilter();
  for (tepal_column_kind kind = TEPAL_COLUMN_U64; kind <= TEPAL_COLUMN_HASHES; ++kind) {
    const tepal_column none = tepal_make_column(kind, NULL, NULL, 0);
    size_t matches = 1;
    EXPECT_OK(tepal_filter_insert(filter, &none));
    EXPECT_OK(tepal_filter_probe(filter, &none, NULL, &matches));
    EXPECT_OK(tepal_filter_select(filter, &none, NULL, &matches));
    EXPECT_OK(tepal_filter_select_from(filter, &none, NULL, 0, NULL, &matches));
    EXPECT(matches == 0);
  }
  const int32_t offsets[3] = {0, 0, 0};
  const tepal_column empty_strings = tepal_strings32_column(NULL, offsets, 2);
  size_t matches = 0;
  EXPECT_OK(tepal_filter_insert(filter, &empty_strings));
  EXPECT_OK(tepal_filter_count(filter, &empty_strings, &matches));
  EXPECT(matches == 2);
  tepal_filter_destroy(filter);
}

static void WrongColumnsAreRefused(void) {
  tepal_filter* filter = SomeFilter();
  tepal_column column = tepal_make_column(TEPAL_COLUMN_U64, NULL, NULL, 5);
  EXPECT_INVALID("values is null", tepal_filter_insert(filter, &column));
  const int64_t offsets[2] = {0, 1};
  column = tepal_strings64_column(NULL, offsets, 1);
  EXPECT_INVALID("values is null", tepal_filter_insert(filter, &column));
  column = tepal_strings32_column("a", NULL, 1);
  EXPECT_INVALID("offsets is null", tepal_filter_insert(filter, &column));
  column = GetColumns()->all[0];
  column.kind = 0;
  EXPECT_INVALID("kind is 0", tepal_filter_insert(filter, &column));
  column.kind = 6;
  EXPECT_INVALID("kind is 6", tepal_filter_insert(filter, &column));
  column.struct_size = 0;
  EXPECT_INVALID("struct_size is 0", tepal_filter_insert(filter, &column));
  EXPECT_INVALID("keys is null", tepal_filter_insert(filter, NULL));
  tepal_filter_destroy(filter);
}

static void NullArgumentsAreRefused(void) {
  const tepal_column* keys = &GetColumns()->all[0];
  tepal_filter* filter = SomeFilter();
  uint8_t bitmap[kNumRows / 8];
  uint32_t rows[kNumRows];
  size_t matches = 0;
  bool maybe = false;
  EXPECT_INVALID("filter is null", tepal_filter_insert(NULL, keys));
  EXPECT_INVALID("filter is null", tepal_filter_probe(NULL, keys, bitmap, &matches));
  EXPECT_INVALID("filter is null", tepal_filter_prefetch(NULL, keys));
  EXPECT_INVALID("keys is null", tepal_filter_prefetch(filter, NULL));
  EXPECT_INVALID("keys is null", tepal_filter_probe(filter, NULL, bitmap, &matches));
  EXPECT_INVALID("bitmap is null", tepal_filter_probe(filter, keys, NULL, &matches));
  EXPECT_INVALID("filter is null", tepal_filter_select(NULL, keys, rows, &matches));
  EXPECT_INVALID("keys is null", tepal_filter_select(filter, NULL, rows, &matches));
  EXPECT_INVALID("rows is null", tepal_filter_select(filter, keys, NULL, &matches));
  EXPECT_INVALID("num_matches is null", tepal_filter_select(filter, keys, rows, NULL));
  EXPECT_INVALID("filter is null", tepal_filter_select_from(NULL, keys, rows, 1, rows, &matches));
  EXPECT_INVALID("keys is null", tepal_filter_select_from(filter, NULL, rows, 1, rows, &matches));
  EXPECT_INVALID("selection is null",
                 tepal_filter_select_from(filter, keys, NULL, 1, rows, &matches));
  EXPECT_INVALID("rows is null", tepal_filter_select_from(filter, keys, rows, 1, NULL, &matches));
  EXPECT_INVALID("num_matches is null",
                 tepal_filter_select_from(filter, keys, rows, 1, rows, NULL));
  EXPECT_INVALID("filter is null", tepal_filter_count(NULL, keys, &matches));
  EXPECT_INVALID("keys is null", tepal_filter_count(filter, NULL, &matches));
  EXPECT_INVALID("num_matches is null", tepal_filter_count(filter, keys, NULL));
  EXPECT_INVALID("filter is null", tepal_filter_may_contain_u64(NULL, 1, &maybe));
  EXPECT_INVALID("filter is null", tepal_filter_may_contain_u32(NULL, 1, &maybe));
  EXPECT_INVALID("filter is null", tepal_filter_may_contain_hash(NULL, 1, &maybe));
  EXPECT_INVALID("filter is null", tepal_filter_may_contain_string(NULL, "a", 1, &maybe));
  EXPECT_INVALID("bytes is null", tepal_filter_may_contain_string(filter, NULL, 1, &maybe));
  EXPECT_INVALID("maybe is null", tepal_filter_may_contain_u64(filter, 1, NULL));
  EXPECT_INVALID("maybe is null", tepal_filter_may_contain_u32(filter, 1, NULL));
  EXPECT_INVALID("maybe is null", tepal_filter_may_contain_hash(filter, 1, NULL));
  EXPECT_INVALID("maybe is null", tepal_filter_may_contain_string(filter, "a", 1, NULL));
  tepal_column too_long = *keys;
  too_long.num_rows = ((size_t)1 << 32) + 1;
  EXPECT_INVALID("at most 2^32", tepal_filter_select(filter, &too_long, rows, &matches));
  tepal_filter_destroy(filter);
  tepal_filter_destroy(NULL);
  tepal_bytes_free(NULL);
}

static void SingleKeysAreFound(void) {
  const Columns* columns = GetColumns();
  const tepal_column strings = {sizeof(tepal_column),
                                TEPAL_COLUMN_STRINGS32,
                                kNumKeys,
                                columns->text,
                                columns->offsets32,
                                NULL,
                                0};
  const tepal_column u32 = tepal_u32_column(columns->u32, kNumKeys);
  tepal_filter* filter = FilterWithKeys();
  EXPECT_OK(tepal_filter_insert(filter, &u32));
  EXPECT_OK(tepal_filter_insert(filter, &strings));
  bool maybe = false;
  EXPECT_OK(tepal_filter_may_contain_u64(filter, columns->u64[5], &maybe));
  EXPECT(maybe);
  maybe = false;
  EXPECT_OK(tepal_filter_may_contain_u32(filter, columns->u32[5], &maybe));
  EXPECT(maybe);
  maybe = false;
  EXPECT_OK(tepal_filter_may_contain_string(filter, "s999", 4, &maybe));
  EXPECT(maybe);
  tepal_filter_destroy(filter);

  filter = SomeFilter();
  EXPECT_OK(tepal_filter_may_contain_string(filter, NULL, 0, &maybe));
  EXPECT(!maybe);
  EXPECT_OK(tepal_filter_may_contain_hash(filter, 1, &maybe));
  EXPECT(!maybe);
  const tepal_column hashes = tepal_hashes_column(columns->u64, 10);
  EXPECT_OK(tepal_filter_insert(filter, &hashes));
  EXPECT_OK(tepal_filter_may_contain_hash(filter, columns->u64[9], &maybe));
  EXPECT(maybe);
  tepal_filter_destroy(filter);
}

static void HashesAreThoseOfTheFilter(void) {
  const Columns* columns = GetColumns();
  static uint64_t hashes[kNumRows];
  const tepal_geometry geometry = SomeGeometry();
  tepal_filter* filter = FilterWithKeys();
  size_t of_keys = 0, of_hashes = 0;
  EXPECT_OK(tepal_hash_keys(geometry.hash, geometry.seed, &columns->all[0], hashes));
  const tepal_column column = tepal_hashes_column(hashes, kNumRows);
  EXPECT_OK(tepal_filter_count(filter, &columns->all[0], &of_keys));
  EXPECT_OK(tepal_filter_count(filter, &column, &of_hashes));
  EXPECT(of_keys == of_hashes && of_keys >= kNumKeys);
  EXPECT_INVALID("these are hashes", tepal_hash_keys(TEPAL_HASH_XXH3, 0, &column, hashes));
  EXPECT_INVALID("TEPAL_HASH", tepal_hash_keys(2, 0, &columns->all[0], hashes));
  EXPECT_INVALID("keys is null", tepal_hash_keys(TEPAL_HASH_XXH3, 0, NULL, hashes));
  EXPECT_INVALID("hashes is null", tepal_hash_keys(TEPAL_HASH_XXH3, 0, &columns->all[0], NULL));
  tepal_filter_destroy(filter);
}

static void BytesCanBeCopiedAndViewed(void) {
  tepal_filter* filter = FilterWithKeys();
  tepal_filter *copy = NULL, *view = NULL, *refused = NULL;
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  const uint8_t *bytes = NULL, *copied = NULL, *viewed = NULL;
  size_t num_bytes = 0, num_copied = 0, num_viewed = 0;
  EXPECT_OK(tepal_filter_geometry(filter, &geometry));
  EXPECT_OK(tepal_filter_bytes(filter, &bytes, &num_bytes));
  EXPECT(num_bytes * 8 == geometry.num_bits && geometry.layout == TEPAL_LAYOUT_SPLIT256);
  EXPECT_OK(tepal_filter_from_bytes(&geometry, bytes, num_bytes, NULL, &copy));
  EXPECT_OK(tepal_filter_view(&geometry, bytes, num_bytes, &view));
  EXPECT_OK(tepal_filter_bytes(copy, &copied, &num_copied));
  EXPECT_OK(tepal_filter_bytes(view, &viewed, &num_viewed));
  EXPECT(copied != bytes && num_copied == num_bytes && memcmp(copied, bytes, num_bytes) == 0);
  EXPECT(viewed == bytes && num_viewed == num_bytes);

  const tepal_column* keys = &GetColumns()->all[0];
  EXPECT_OK(tepal_filter_insert(copy, keys));
  EXPECT_ERROR(TEPAL_UNSUPPORTED, "only reads", tepal_filter_insert(view, keys));
  EXPECT_INVALID("", tepal_filter_view(&geometry, bytes + 1, num_bytes, &refused));
  EXPECT_INVALID("", tepal_filter_view(&geometry, bytes, num_bytes - 1, &refused));
  EXPECT_INVALID("bytes is null", tepal_filter_view(&geometry, NULL, num_bytes, &refused));
  EXPECT_INVALID("geometry is null", tepal_filter_view(NULL, bytes, num_bytes, &refused));
  EXPECT_INVALID("filter is null", tepal_filter_view(&geometry, bytes, num_bytes, NULL));
  EXPECT_INVALID("", tepal_filter_from_bytes(&geometry, NULL, 0, NULL, &refused));
  EXPECT_INVALID("bytes is null", tepal_filter_from_bytes(&geometry, NULL, 9, NULL, &refused));
  EXPECT_INVALID("geometry is null", tepal_filter_from_bytes(NULL, bytes, 9, NULL, &refused));
  EXPECT_INVALID("filter is null",
                 tepal_filter_from_bytes(&geometry, bytes, num_bytes, NULL, NULL));
  EXPECT_INVALID("filter is null", tepal_filter_geometry(NULL, &geometry));
  EXPECT_INVALID("geometry is null", tepal_filter_geometry(filter, NULL));
  EXPECT_INVALID("filter is null", tepal_filter_bytes(NULL, &bytes, &num_bytes));
  EXPECT_INVALID("bytes is null", tepal_filter_bytes(filter, NULL, &num_bytes));
  EXPECT_INVALID("num_bytes is null", tepal_filter_bytes(filter, &bytes, NULL));
  EXPECT(refused == NULL);
  tepal_filter_destroy(view);
  tepal_filter_destroy(copy);
  tepal_filter_destroy(filter);
}

static void SetsCanBeCombined(void) {
  const Columns* columns = GetColumns();
  const tepal_column second = tepal_u64_column(columns->u64 + kNumKeys, kNumKeys);
  tepal_filter *a = FilterWithKeys(), *b = SomeFilter(), *made = NULL;
  size_t matches = 0;
  uint64_t num_keys = 0;
  double fill_ratio = 0;
  bool disjoint = true;
  EXPECT_OK(tepal_filter_surely_disjoint(a, b, &disjoint));
  EXPECT(disjoint);  // b is empty
  EXPECT_OK(tepal_filter_insert(b, &second));
  EXPECT_OK(tepal_filter_merge(a, b, NULL, &made));
  EXPECT_OK(tepal_filter_count(made, &columns->all[0], &matches));
  EXPECT(matches == kNumRows);
  EXPECT_OK(tepal_filter_estimate_keys(made, &num_keys));
  EXPECT(num_keys > 1800 && num_keys < 2200);
  EXPECT_OK(tepal_filter_fill_ratio(made, &fill_ratio));
  EXPECT(fill_ratio > 0.4 && fill_ratio < 0.8);
  EXPECT_OK(tepal_filter_surely_disjoint(a, made, &disjoint));
  EXPECT(!disjoint);
  EXPECT_OK(tepal_filter_intersect(made, a));
  EXPECT_OK(tepal_filter_count(made, &columns->all[0], &matches));
  EXPECT(matches >= kNumKeys && matches < kNumRows);
  EXPECT_OK(tepal_filter_union(made, b));
  EXPECT_OK(tepal_filter_count(made, &columns->all[0], &matches));
  EXPECT(matches == kNumRows);
  tepal_filter_destroy(made);
  tepal_filter_destroy(b);
  tepal_filter_destroy(a);
}

static void FiltersCanShrink(void) {
  tepal_geometry large = SomeGeometry(), small = SomeGeometry();
  large.num_bits = (uint64_t)256 << 10;
  small.num_bits = large.num_bits / 2;
  tepal_filter *filter = NULL, *shrunk = NULL;
  const tepal_column* rows = &GetColumns()->all[0];
  size_t matches = 0;
  EXPECT_OK(tepal_filter_create(&large, NULL, &filter));
  EXPECT_OK(tepal_filter_insert(filter, rows));
  EXPECT_OK(tepal_filter_shrink(filter, &small, NULL, &shrunk));
  EXPECT_OK(tepal_filter_count(shrunk, rows, &matches));
  EXPECT(matches == kNumRows);
  tepal_filter_destroy(shrunk);
  shrunk = NULL;
  small.num_bits += 256;
  EXPECT(tepal_filter_shrink(filter, &small, NULL, &shrunk) != TEPAL_OK && shrunk == NULL);
  EXPECT_INVALID("filter is null", tepal_filter_shrink(NULL, &small, NULL, &shrunk));
  EXPECT_INVALID("smaller is null", tepal_filter_shrink(filter, NULL, NULL, &shrunk));
  EXPECT_INVALID("shrunk is null", tepal_filter_shrink(filter, &small, NULL, NULL));
  tepal_filter_destroy(filter);
}

static void WrongSetsAreRefused(void) {
  tepal_filter *a = FilterWithKeys(), *view = NULL, *made = NULL;
  const tepal_geometry geometry = SomeGeometry();
  const uint8_t* bytes = NULL;
  size_t num_bytes = 0;
  uint64_t num_keys = 0;
  double fill_ratio = 0;
  bool disjoint = false;
  EXPECT_OK(tepal_filter_bytes(a, &bytes, &num_bytes));
  EXPECT_OK(tepal_filter_view(&geometry, bytes, num_bytes, &view));
  EXPECT_ERROR(TEPAL_UNSUPPORTED, "only reads", tepal_filter_union(view, a));
  EXPECT_ERROR(TEPAL_UNSUPPORTED, "only reads", tepal_filter_intersect(view, a));
  tepal_geometry other = SomeGeometry();
  other.seed = 5;
  tepal_filter* b = NULL;
  EXPECT_OK(tepal_filter_create(&other, NULL, &b));
  EXPECT_INVALID("", tepal_filter_union(a, b));
  EXPECT_INVALID("into is null", tepal_filter_union(NULL, a));
  EXPECT_INVALID("other is null", tepal_filter_union(a, NULL));
  EXPECT_INVALID("into is null", tepal_filter_intersect(NULL, a));
  EXPECT_INVALID("other is null", tepal_filter_intersect(a, NULL));
  EXPECT_INVALID("a is null", tepal_filter_merge(NULL, b, NULL, &made));
  EXPECT_INVALID("b is null", tepal_filter_merge(a, NULL, NULL, &made));
  EXPECT_INVALID("filter is null", tepal_filter_merge(a, b, NULL, NULL));
  EXPECT_INVALID("a is null", tepal_filter_surely_disjoint(NULL, b, &disjoint));
  EXPECT_INVALID("b is null", tepal_filter_surely_disjoint(a, NULL, &disjoint));
  EXPECT_INVALID("disjoint is null", tepal_filter_surely_disjoint(a, b, NULL));
  EXPECT_INVALID("filter is null", tepal_filter_fill_ratio(NULL, &fill_ratio));
  EXPECT_INVALID("fill_ratio is null", tepal_filter_fill_ratio(a, NULL));
  EXPECT_INVALID("filter is null", tepal_filter_estimate_keys(NULL, &num_keys));
  EXPECT_INVALID("num_keys is null", tepal_filter_estimate_keys(a, NULL));
  tepal_filter_destroy(b);
  tepal_filter_destroy(view);
  tepal_filter_destroy(a);
}

static void BuildersBuildTheSameFilter(void) {
  const tepal_geometry geometry = SomeGeometry();
  const Columns* columns = GetColumns();
  tepal_builder* builder = NULL;
  tepal_filter *filter = FilterWithKeys(), *built = NULL;
  EXPECT_OK(tepal_builder_create(&geometry, NULL, &builder));
  const tepal_column keys = tepal_u64_column(columns->u64, kNumKeys);
  EXPECT_OK(tepal_builder_insert(builder, &keys));
  EXPECT_OK(tepal_builder_finish(builder, &built));
  const uint8_t *bytes = NULL, *built_bytes = NULL;
  size_t num_bytes = 0, num_built = 0;
  EXPECT_OK(tepal_filter_bytes(filter, &bytes, &num_bytes));
  EXPECT_OK(tepal_filter_bytes(built, &built_bytes, &num_built));
  EXPECT(num_bytes == num_built && memcmp(bytes, built_bytes, num_bytes) == 0);
  tepal_filter_destroy(built);

  built = NULL;
  EXPECT_INVALID("finished", tepal_builder_finish(builder, &built));
  EXPECT_INVALID("finished", tepal_builder_insert(builder, &keys));
  tepal_builder_destroy(builder);
  tepal_builder_destroy(NULL);
  builder = NULL;
  EXPECT_INVALID("geometry is null", tepal_builder_create(NULL, NULL, &builder));
  EXPECT_INVALID("builder is null", tepal_builder_create(&geometry, NULL, NULL));
  EXPECT_INVALID("builder is null", tepal_builder_insert(NULL, &keys));
  EXPECT_INVALID("builder is null", tepal_builder_finish(NULL, &built));
  EXPECT_OK(tepal_builder_create(&geometry, NULL, &builder));
  EXPECT_INVALID("filter is null", tepal_builder_finish(builder, NULL));
  EXPECT_INVALID("keys is null", tepal_builder_insert(builder, NULL));
  tepal_builder_destroy(builder);
  tepal_filter_destroy(filter);
}

static void ContainersKeepFilters(void) {
  tepal_filter* filter = FilterWithKeys();
  tepal_filter *copy = NULL, *view = NULL, *refused = NULL;
  tepal_bytes made = TEPAL_BYTES_INIT;
  tepal_container_info info = TEPAL_CONTAINER_INFO_INIT;
  EXPECT_OK(tepal_filter_serialize(filter, kNumKeys, TEPAL_KEYS_U64, &made));
  uint8_t* aligned = aligned_alloc(64, (made.size + 63) / 64 * 64);
  memcpy(aligned, made.data, made.size);
  EXPECT_OK(tepal_container_inspect(made.data, made.size, &info));
  EXPECT(info.num_keys == kNumKeys && info.key_kind == TEPAL_KEYS_U64 && info.version == 1);
  EXPECT(info.geometry.num_bits == SomeGeometry().num_bits);
  EXPECT_OK(tepal_filter_deserialize(made.data, made.size, NULL, &copy));
  EXPECT_OK(tepal_filter_open(aligned, made.size, &view));
  size_t in_copy = 0, in_view = 0;
  const tepal_column* rows = &GetColumns()->all[0];
  EXPECT_OK(tepal_filter_insert(copy, rows));
  EXPECT_OK(tepal_filter_count(copy, rows, &in_copy));
  EXPECT_OK(tepal_filter_count(view, rows, &in_view));
  EXPECT(in_copy == kNumRows && in_view >= kNumKeys && in_view < kNumKeys + 20);
  EXPECT_ERROR(TEPAL_UNSUPPORTED, "only reads", tepal_filter_insert(view, rows));

  aligned[made.size - 1] ^= 1;
  EXPECT_ERROR(TEPAL_CORRUPT, "", tepal_filter_open(aligned, made.size, &refused));
  EXPECT_ERROR(TEPAL_CORRUPT, "", tepal_filter_deserialize(aligned, made.size, NULL, &refused));
  EXPECT_ERROR(TEPAL_CORRUPT, "", tepal_container_inspect(NULL, 0, &info));
  EXPECT_INVALID("container is null", tepal_container_inspect(NULL, 9, &info));
  EXPECT_INVALID("info is null", tepal_container_inspect(aligned, made.size, NULL));
  EXPECT_INVALID("container is null", tepal_filter_open(NULL, 9, &refused));
  EXPECT_INVALID("filter is null", tepal_filter_open(aligned, made.size, NULL));
  EXPECT_INVALID("container is null", tepal_filter_deserialize(NULL, 9, NULL, &refused));
  EXPECT_INVALID("filter is null", tepal_filter_deserialize(aligned, made.size, NULL, NULL));
  EXPECT_INVALID("filter is null", tepal_filter_serialize(NULL, 0, TEPAL_KEYS_U64, &made));
  EXPECT_INVALID("container is null", tepal_filter_serialize(filter, 0, TEPAL_KEYS_U64, NULL));
  EXPECT_INVALID("", tepal_filter_serialize(filter, 0, 77, &made));
  EXPECT(refused == NULL);
  tepal_bytes_free(&made);
  tepal_filter_destroy(view);
  tepal_filter_destroy(copy);
  tepal_filter_destroy(filter);
  free(aligned);
}

static void FilesKeepFilters(void) {
  const char* path = "c_api_test.tepal";
  tepal_filter* filter = FilterWithKeys();
  tepal_filter* mapped = NULL;
  tepal_container_info info = TEPAL_CONTAINER_INFO_INIT;
  EXPECT_OK(tepal_filter_write_file(filter, kNumKeys, TEPAL_KEYS_U64, path));
  EXPECT_OK(tepal_filter_map_file(path, &info, &mapped));
  EXPECT(info.num_keys == kNumKeys && info.geometry.layout == TEPAL_LAYOUT_SPLIT256);
  size_t matches = 0;
  EXPECT_OK(tepal_filter_count(mapped, &GetColumns()->all[0], &matches));
  EXPECT(matches >= kNumKeys && matches < kNumKeys + 20);
  tepal_filter_destroy(mapped);
  mapped = NULL;
  EXPECT_OK(tepal_filter_map_file(path, NULL, &mapped));
  tepal_filter_destroy(mapped);
  remove(path);

  mapped = NULL;
  EXPECT_ERROR(TEPAL_IO_ERROR, path, tepal_filter_map_file(path, NULL, &mapped));
  EXPECT_ERROR(TEPAL_IO_ERROR, "no/such",
               tepal_filter_write_file(filter, 0, TEPAL_KEYS_UNKNOWN, "no/such/directory"));
  EXPECT_INVALID("filter is null", tepal_filter_write_file(NULL, 0, TEPAL_KEYS_UNKNOWN, path));
  EXPECT_INVALID("path is null", tepal_filter_write_file(filter, 0, TEPAL_KEYS_UNKNOWN, NULL));
  EXPECT_INVALID("path is null", tepal_filter_map_file(NULL, NULL, &mapped));
  EXPECT_INVALID("filter is null", tepal_filter_map_file(path, NULL, NULL));
  EXPECT(mapped == NULL);
  tepal_filter_destroy(filter);
}

static void ParquetFiltersAreReadAndWritten(void) {
  tepal_geometry geometry = SomeGeometry();
  geometry.hash = TEPAL_HASH_XXH64;
  tepal_filter *filter = NULL, *read = NULL, *refused = NULL;
  tepal_bytes bytes = TEPAL_BYTES_INIT;
  size_t matches = 0;
  const tepal_column* keys = &GetColumns()->all[0];
  EXPECT_OK(tepal_filter_create(&geometry, NULL, &filter));
  EXPECT_OK(tepal_filter_insert(filter, keys));
  EXPECT_OK(tepal_parquet_write(filter, &bytes));
  EXPECT_OK(tepal_parquet_read(bytes.data, bytes.size, NULL, &read));
  EXPECT_OK(tepal_filter_count(read, keys, &matches));
  EXPECT(matches == kNumRows);
  tepal_filter_destroy(read);
  EXPECT_OK(tepal_parquet_read_exactly(bytes.data, bytes.size, NULL, &read));
  tepal_filter_destroy(read);

  EXPECT_ERROR(TEPAL_CORRUPT, "", tepal_parquet_read(bytes.data, bytes.size - 1, NULL, &refused));
  EXPECT_ERROR(TEPAL_CORRUPT, "",
               tepal_parquet_read_exactly(bytes.data, bytes.size - 1, NULL, &refused));
  EXPECT_INVALID("bytes is null", tepal_parquet_read(NULL, 9, NULL, &refused));
  EXPECT_INVALID("bytes is null", tepal_parquet_read_exactly(NULL, 9, NULL, &refused));
  EXPECT_INVALID("filter is null", tepal_parquet_read(bytes.data, bytes.size, NULL, NULL));
  EXPECT_INVALID("filter is null", tepal_parquet_read_exactly(bytes.data, bytes.size, NULL, NULL));
  EXPECT_INVALID("filter is null", tepal_parquet_write(NULL, &bytes));
  EXPECT_INVALID("bytes is null", tepal_parquet_write(filter, NULL));
  EXPECT(refused == NULL);
  tepal_filter_destroy(filter);
  tepal_bytes_free(&bytes);

  filter = SomeFilter();  // with XXH3
  EXPECT(tepal_parquet_write(filter, &bytes) != TEPAL_OK && bytes.data == NULL);
  tepal_filter_destroy(filter);
}

static int num_live_blocks = 0;

static void* Allocate(size_t bytes, size_t alignment, void* context) {
  if (context == NULL) return NULL;  // a full machine
  ++num_live_blocks;
  return aligned_alloc(alignment, bytes);
}

static void Deallocate(void* memory, size_t bytes, void* context) {
  (void)bytes;
  (void)context;
  --num_live_blocks;
  free(memory);
}

static void MemoryComesFromTheHook(void) {
  const tepal_geometry geometry = SomeGeometry();
  tepal_memory memory = TEPAL_MEMORY_INIT;
  tepal_filter* filter = NULL;
  memory.no_huge_pages = true;
  EXPECT_OK(tepal_filter_create(&geometry, &memory, &filter));
  tepal_filter_destroy(filter);
  memory.allocate = Allocate;
  filter = NULL;
  EXPECT_INVALID("both", tepal_filter_create(&geometry, &memory, &filter));
  memory.deallocate = Deallocate;
  EXPECT_ERROR(TEPAL_OUT_OF_MEMORY, "no memory", tepal_filter_create(&geometry, &memory, &filter));
  EXPECT(filter == NULL);
  memory.context = &memory;
  EXPECT_OK(tepal_filter_create(&geometry, &memory, &filter));
  EXPECT(num_live_blocks == 1);
  tepal_filter_destroy(filter);
  EXPECT(num_live_blocks == 0);
  memory.struct_size = 1;
  EXPECT_INVALID("memory->struct_size", tepal_filter_create(&geometry, &memory, &filter));
  EXPECT_INVALID("geometry is null", tepal_filter_create(NULL, NULL, &filter));
  EXPECT_INVALID("filter is null", tepal_filter_create(&geometry, NULL, NULL));
}

// The sanitizers' allocators end the process instead, and qemu takes no notice of the limit.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(TEPAL_QUICK_TESTS)
#define CAN_LIMIT_MEMORY
#endif

#ifdef CAN_LIMIT_MEMORY
typedef struct Block {
  struct Block* next;
} Block;

// Takes whatever malloc still has in blocks of this size.
static Block* Exhaust(size_t bytes, Block* taken) {
  for (Block* block = malloc(bytes); block != NULL; block = malloc(bytes)) {
    block->next = taken;
    taken = block;
  }
  return taken;
}

static void LackOfMemoryIsAStatus(void) {
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  tepal_filter *filter = NULL, *copy = NULL;
  tepal_bytes container = TEPAL_BYTES_INIT;
  const uint8_t* bytes = NULL;
  size_t num_bytes = 0;
  EXPECT_OK(tepal_geometry_for(TEPAL_LAYOUT_SPLIT256, 1 << 25, 16, &geometry));
  EXPECT_OK(tepal_filter_create(&geometry, NULL, &filter));
  EXPECT_OK(tepal_filter_bytes(filter, &bytes, &num_bytes));

  struct rlimit before, tight;
  EXPECT(getrlimit(RLIMIT_AS, &before) == 0);
  tight = before;
  tight.rlim_cur = num_bytes;  // of which the filter takes all
  EXPECT(setrlimit(RLIMIT_AS, &tight) == 0);
  EXPECT_ERROR(TEPAL_OUT_OF_MEMORY, "memory",
               tepal_filter_serialize(filter, 0, TEPAL_KEYS_UNKNOWN, &container));
  EXPECT_ERROR(TEPAL_OUT_OF_MEMORY, "memory",
               tepal_filter_from_bytes(&geometry, bytes, num_bytes, NULL, &copy));
  // Now not even a short string can be made, and what C++ throws then must not come out.
  Block* taken = NULL;
  for (size_t size = (size_t)1 << 20; size > 1024; size /= 2) taken = Exhaust(size, taken);
  for (size_t size = 1024; size > 0; size -= 16) taken = Exhaust(size, taken);
  tepal_layout layout = -1;
  const tepal_status status = tepal_parse_layout("a name of more than fifteen bytes", &layout);
  while (taken != NULL) {
    Block* next = taken->next;
    free(taken);
    taken = next;
  }
  EXPECT_ERROR(TEPAL_OUT_OF_MEMORY, "out of memory", status);
  EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
  EXPECT(container.data == NULL && copy == NULL);
  tepal_filter_destroy(filter);
}
#endif

static void PlansAreMadeAndExplained(void) {
  tepal_workload work = TEPAL_WORKLOAD_INIT;
  tepal_plan plan = TEPAL_PLAN_INIT;
  tepal_bytes text = TEPAL_BYTES_INIT;
  EXPECT_INVALID("", tepal_make_plan(&work, &plan, NULL));
  work.num_keys = 1000000;
  work.max_fpr = 0.01;
  EXPECT_OK(tepal_make_plan(&work, &plan, NULL));
  EXPECT(plan.predicted_fpr > 0 && plan.predicted_fpr <= 0.01 && plan.pays_off);
  EXPECT(plan.bits_per_key > 8 && plan.bits_per_key < 20);
  work.needs = TEPAL_NEEDS_PARQUET;
  EXPECT_OK(tepal_make_plan(&work, &plan, &text));
  EXPECT(plan.geometry.layout == TEPAL_LAYOUT_SPLIT256 && plan.geometry.hash == TEPAL_HASH_XXH64);
  EXPECT(text.size > 0 && strlen((const char*)text.data) == text.size);
  EXPECT(strstr((const char*)text.data, "split256") != NULL);
  tepal_bytes_free(&text);
  EXPECT(text.data == NULL && text.size == 0);
  tepal_bytes_free(&text);
  EXPECT_INVALID("workload is null", tepal_make_plan(NULL, &plan, NULL));
  EXPECT_INVALID("plan is null", tepal_make_plan(&work, NULL, NULL));
  work.needs = TEPAL_NEEDS_END;
  EXPECT_INVALID("TEPAL_NEEDS", tepal_make_plan(&work, &plan, NULL));
}

static void TargetsCanBeListedAndForced(void) {
  const char* const* available = NULL;
  const char* const* compiled = NULL;
  const char* active = NULL;
  size_t num_available = 0, num_compiled = 0;
  EXPECT_OK(tepal_check_environment());
  EXPECT_OK(tepal_available_targets(&available, &num_available));
  EXPECT_OK(tepal_compiled_targets(&compiled, &num_compiled));
  EXPECT(num_available >= 1 && num_compiled >= num_available);
  for (size_t i = 0; i < num_available; ++i) {
    EXPECT_OK(tepal_force_target(available[i]));
    EXPECT_OK(tepal_active_target(&active));
    EXPECT(strcmp(active, available[i]) == 0);
  }
  EXPECT_OK(tepal_force_target("auto"));
  EXPECT_INVALID("unknown target", tepal_force_target("AVX1024"));
  EXPECT_INVALID("name is null", tepal_force_target(NULL));
  EXPECT_INVALID("name is null", tepal_active_target(NULL));
  EXPECT_INVALID("names is null", tepal_available_targets(NULL, &num_available));
  EXPECT_INVALID("num_names is null", tepal_available_targets(&available, NULL));
  EXPECT_INVALID("names is null", tepal_compiled_targets(NULL, &num_compiled));
  EXPECT_INVALID("num_names is null", tepal_compiled_targets(&compiled, NULL));
}

int main(void) {
  EXPECT(strcmp(tepal_last_error_message(), "") == 0);
  VersionIsThatOfTheHeader();
  GeometriesAreMadeAndChecked();
  LayoutsHaveNames();
  EveryKindOfColumnWorks();
  EmptyColumnsDoNothing();
  WrongColumnsAreRefused();
  NullArgumentsAreRefused();
  SingleKeysAreFound();
  HashesAreThoseOfTheFilter();
  BytesCanBeCopiedAndViewed();
  SetsCanBeCombined();
  FiltersCanShrink();
  WrongSetsAreRefused();
  BuildersBuildTheSameFilter();
  ContainersKeepFilters();
  FilesKeepFilters();
  ParquetFiltersAreReadAndWritten();
  MemoryComesFromTheHook();
#ifdef CAN_LIMIT_MEMORY
  LackOfMemoryIsAStatus();
#endif
  PlansAreMadeAndExplained();
  TargetsCanBeListedAndForced();
  if (num_failures != 0) fprintf(stderr, "%d checks failed\n", num_failures);
  return num_failures == 0 ? 0 : 1;
}
