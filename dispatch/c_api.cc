// C calls become C++ calls: checks what C++ knows by its types, and turns every Status and
// exception into a code and a message.
#include "tepal/c_api.h"

#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tepal/columns.h"
#include "tepal/container.h"
#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tepal/geometry.h"
#include "tepal/hash.h"
#include "tepal/memory.h"
#include "tepal/parallel_builder.h"
#include "tepal/parquet.h"
#include "tepal/planner.h"
#include "tepal/sets.h"
#include "tepal/status.h"
#include "tepal/targets.h"
#include "tepal/version.h"

struct tepal_filter {
  std::optional<tepal::Filter> owned;         // none if the bits lie elsewhere
  std::optional<tepal::MappedFilter> mapped;  // if they lie in a file
  tepal::FilterView view;
};

struct tepal_builder {
  std::optional<tepal::ParallelBuilder> builder;  // none once finished
};

namespace tepal {
namespace {

// ---- Status

static_assert(TEPAL_OK == static_cast<int>(StatusCode::kOk));
static_assert(TEPAL_INVALID_ARGUMENT == static_cast<int>(StatusCode::kInvalidArgument));
static_assert(TEPAL_OUT_OF_MEMORY == static_cast<int>(StatusCode::kOutOfMemory));
static_assert(TEPAL_UNSUPPORTED == static_cast<int>(StatusCode::kUnsupported));
static_assert(TEPAL_CORRUPT == static_cast<int>(StatusCode::kCorrupt));
static_assert(TEPAL_IO_ERROR == static_cast<int>(StatusCode::kIoError));

// No std::string: to report that there is no memory must not need any.
thread_local char last_error_message[512] = "";

template <class... Values>
void SetErrorMessage(const char* format, Values... values) {
  std::snprintf(last_error_message, sizeof(last_error_message), format, values...);
}

// ---- Arguments

// Remembers the first thing that is wrong.
class Check {
 public:
  bool ok() const { return ok_; }

  Check& NotNull(const char* name, const void* pointer) {
    return Require(pointer != nullptr, "%s is null", name);
  }

  // A pointer to `size` elements, or anything if there are none.
  Check& Array(const char* name, const void* pointer, size_t size) {
    return Require(pointer != nullptr || size == 0, "%s is null, but its size is %zu", name, size);
  }

  template <class T>
  Check& Struct(const char* name, const T* pointer) {
    if (!NotNull(name, pointer).ok()) return *this;
    return Require(pointer->struct_size == sizeof(T),
                   "%s->struct_size is %zu, but must be %zu: use the macro that ends in _INIT",
                   name, pointer->struct_size, sizeof(T));
  }

  Check& Column(const tepal_column* column) {
    if (!Struct("keys", column).ok()) return *this;
    Require(column->kind >= TEPAL_COLUMN_U64 && column->kind <= TEPAL_COLUMN_HASHES,
            "keys->kind is %d, but must be one of TEPAL_COLUMN_*", column->kind);
    if (!ok_) return *this;
    if (IsStrings(*column)) Array("keys->offsets", column->offsets, column->num_rows);
    return ok_ && HasValues(*column) ? NotNull("keys->values", column->values) : *this;
  }

  // A column, and an output with room for something for each row.
  Check& ColumnTo(const tepal_column* column, const char* name, const void* output) {
    return Column(column).ok() ? Array(name, output, column->num_rows) : *this;
  }

  Check& Filter(const tepal_filter* filter) { return NotNull("filter", filter); }

  // `memory` may be null.
  Check& Memory(const tepal_memory* memory) {
    return memory == nullptr ? *this : Struct("memory", memory);
  }

  template <class... Values>
  Check& Require(bool condition, const char* format, Values... values) {
    if (ok_ && !condition) SetErrorMessage(format, values...);
    ok_ = ok_ && condition;
    return *this;
  }

 private:
  static bool IsStrings(const tepal_column& column) {
    return column.kind == TEPAL_COLUMN_STRINGS32 || column.kind == TEPAL_COLUMN_STRINGS64;
  }

  // Strings may all be empty.
  static bool HasValues(const tepal_column& column) {
    if (column.num_rows == 0 || !IsStrings(column)) return column.num_rows != 0;
    const auto spans_bytes = [&](const auto* offsets) {
      return offsets[0] != offsets[column.num_rows];
    };
    return column.kind == TEPAL_COLUMN_STRINGS32
               ? spans_bytes(static_cast<const int32_t*>(column.offsets))
               : spans_bytes(static_cast<const int64_t*>(column.offsets));
  }

  bool ok_ = true;
};

// Runs `body`, which returns a Status, if the arguments are fine. What the standard library throws
// in it is for lack of memory.
template <class Body>
tepal_status Call(const Check& check, const Body& body) noexcept {
  if (!check.ok()) return TEPAL_INVALID_ARGUMENT;
  try {
    const Status status = body();
    if (!status.ok()) SetErrorMessage("%s", status.message().c_str());
    return static_cast<tepal_status>(status.code());
  } catch (...) {
    SetErrorMessage("%s", "out of memory");
    return TEPAL_OUT_OF_MEMORY;
  }
}

// ---- Structs

static_assert(TEPAL_LAYOUT_STANDARD == static_cast<int>(Layout::kStandard));
static_assert(TEPAL_LAYOUT_PARTITIONED == static_cast<int>(Layout::kPartitioned));
static_assert(TEPAL_LAYOUT_RATIONAL == static_cast<int>(Layout::kRational));
static_assert(TEPAL_LAYOUT_VARIABLE == static_cast<int>(Layout::kVariable));
static_assert(TEPAL_LAYOUT_VARIABLE_PAPER == static_cast<int>(Layout::kVariablePaper));
static_assert(TEPAL_LAYOUT_REGISTER == static_cast<int>(Layout::kRegister));
static_assert(TEPAL_LAYOUT_SPLIT256 == static_cast<int>(Layout::kSplit256));
static_assert(TEPAL_LAYOUT_SPLIT512 == static_cast<int>(Layout::kSplit512));
static_assert(TEPAL_LAYOUT_LINE512 == static_cast<int>(Layout::kLine512));
static_assert(TEPAL_HASH_XXH3 == static_cast<int>(HashKind::kXxh3));
static_assert(TEPAL_HASH_XXH64 == static_cast<int>(HashKind::kXxh64));

static_assert(TEPAL_KEYS_UNKNOWN == static_cast<int>(KeyKind::kUnknown));
static_assert(TEPAL_KEYS_U64 == static_cast<int>(KeyKind::kUint64));
static_assert(TEPAL_KEYS_U32 == static_cast<int>(KeyKind::kUint32));
static_assert(TEPAL_KEYS_STRINGS == static_cast<int>(KeyKind::kBytes));
static_assert(TEPAL_KEYS_HASHES == static_cast<int>(KeyKind::kHashes));

// An enumerator, or for a number that does not fit one that nobody has.
template <class Enum>
Enum ToEnum(int32_t value) {
  return static_cast<Enum>(value >= 0 && value < 255 ? value : 255);
}

Geometry ToGeometry(const tepal_geometry& geometry) {
  return {.layout = ToEnum<Layout>(geometry.layout),
          .num_bits = geometry.num_bits,
          .num_probes = geometry.num_probes,
          .rational_k = geometry.rational_k,
          .hash = ToEnum<HashKind>(geometry.hash),
          .seed = geometry.seed};
}

tepal_geometry FromGeometry(const Geometry& geometry) {
  tepal_geometry result = TEPAL_GEOMETRY_INIT;
  result.layout = static_cast<tepal_layout>(geometry.layout);
  result.hash = static_cast<tepal_hash_kind>(geometry.hash);
  result.num_bits = geometry.num_bits;
  result.seed = geometry.seed;
  result.rational_k = geometry.rational_k;
  result.num_probes = geometry.num_probes;
  return result;
}

MemoryOptions ToMemory(const tepal_memory* memory) {
  if (memory == nullptr) return {};
  return {.huge_pages = memory->no_huge_pages ? HugePages::kNever : HugePages::kAdvise,
          .allocator = {memory->allocate, memory->deallocate, memory->context}};
}

tepal_container_info FromInfo(const ContainerInfo& info) {
  tepal_container_info result = TEPAL_CONTAINER_INFO_INIT;
  result.geometry = FromGeometry(info.geometry);
  result.num_keys = info.num_keys;
  result.version = info.version;
  result.key_kind = static_cast<tepal_key_kind>(info.key_kind);
  return result;
}

Workload ToWorkload(const tepal_workload& work) {
  const auto needs = [&](uint32_t need) { return (work.needs & need) != 0; };
  return {.num_keys = work.num_keys,
          .max_fpr = work.max_fpr,
          .max_bytes = work.max_bytes,
          .hit_rate = work.hit_rate,
          .work_saved_ns = work.work_saved_ns,
          .num_probes = work.num_probes,
          .needs = {.set_union = needs(TEPAL_NEEDS_UNION),
                    .intersection = needs(TEPAL_NEEDS_INTERSECTION),
                    .disjointness = needs(TEPAL_NEEDS_DISJOINTNESS),
                    .shrink = needs(TEPAL_NEEDS_SHRINK),
                    .parquet = needs(TEPAL_NEEDS_PARQUET),
                    .power_of_two = needs(TEPAL_NEEDS_POWER_OF_TWO)}};
}

tepal_plan FromPlan(const FilterPlan& plan) {
  tepal_plan result = TEPAL_PLAN_INIT;
  result.geometry = FromGeometry(plan.geometry);
  result.predicted_fpr = plan.predicted_fpr;
  result.bits_per_key = plan.bits_per_key;
  result.ns_per_probe = plan.ns_per_probe;
  result.cost_ns = plan.cost_ns;
  result.no_filter_ns = plan.no_filter_ns;
  result.break_even_ns = plan.break_even_ns;
  result.pays_off = plan.pays_off;
  return result;
}

// ---- Columns

template <typename T>
std::span<const T> Values(const tepal_column& column) {
  return {static_cast<const T*>(column.values), column.num_rows};
}

template <typename Offset>
StringColumn Strings(const tepal_column& column) {
  return {static_cast<const char*>(column.values), static_cast<const Offset*>(column.offsets),
          column.num_rows};
}

// Calls keys(column, validity) with the type that C++ wants, or hashes(column, validity).
template <class Keys, class Hashes>
auto VisitColumn(const tepal_column& column, const Keys& keys, const Hashes& hashes) {
  const Validity validity{column.validity, column.validity_offset};
  switch (column.kind) {
    case TEPAL_COLUMN_U64:
      return keys(Values<uint64_t>(column), validity);
    case TEPAL_COLUMN_U32:
      return keys(Values<uint32_t>(column), validity);
    case TEPAL_COLUMN_STRINGS32:
      return keys(Strings<int32_t>(column), validity);
    case TEPAL_COLUMN_STRINGS64:
      return keys(Strings<int64_t>(column), validity);
    default:
      return hashes(Values<uint64_t>(column), validity);
  }
}

// ---- Results

Status Give(Result<Filter> made, tepal_filter** filter) {
  if (!made.ok()) return made.status();
  FilterView view = made->View();
  *filter = new tepal_filter{std::move(*made), std::nullopt, std::move(view)};
  return Status::Ok();
}

Status Give(Result<FilterView> made, tepal_filter** filter) {
  if (!made.ok()) return made.status();
  *filter = new tepal_filter{std::nullopt, std::nullopt, std::move(*made)};
  return Status::Ok();
}

// Keeps `bytes` until tepal_bytes_free.
void Give(std::vector<uint8_t> made, size_t num_bytes, tepal_bytes* bytes) {
  auto* owner = new std::vector<uint8_t>(std::move(made));
  *bytes = {sizeof(tepal_bytes), owner->data(), num_bytes, owner};
}

Status Give(Result<std::vector<uint8_t>> made, tepal_bytes* bytes) {
  if (!made.ok()) return made.status();
  const size_t num_bytes = made->size();
  Give(std::move(*made), num_bytes, bytes);
  return Status::Ok();
}

// Gives a geometry that works, or says why it does not.
Status Give(const Geometry& made, tepal_geometry* geometry) {
  Status status = made.Validate();
  if (status.ok()) *geometry = FromGeometry(made);
  return status;
}

template <class T>
Status GiveValue(const Result<T>& made, T* value) {
  if (made.ok()) *value = *made;
  return made.status();
}

Status Finished() { return Status::InvalidArgument("the builder is finished"); }

Status ReadOnly() {
  return Status::Unsupported("the filter only reads bits that lie elsewhere; copy it first");
}

// Names as C wants them. Never destroyed: callers may keep the pointers.
class Names {
 public:
  explicit Names(std::vector<std::string> names) : names_(std::move(names)) {
    for (const std::string& name : names_) pointers_.push_back(name.c_str());
  }
  std::span<const char* const> all() const { return pointers_; }

 private:
  std::vector<std::string> names_;
  std::vector<const char*> pointers_;
};

std::span<const char* const> CompiledNames() {
  static const Names& kNames = *new Names(CompiledTargets());
  return kNames.all();
}

std::span<const char* const> AvailableNames() {
  static const Names& kNames = *new Names(AvailableTargets());
  return kNames.all();
}

// Calls `get` for the names.
template <class Get>
tepal_status GiveNames(const Get& get, const char* const** names, size_t* num_names) {
  return Call(Check().NotNull("names", names).NotNull("num_names", num_names), [&] {
    const std::span<const char* const> all = get();
    *names = all.data();
    *num_names = all.size();
    return Status::Ok();
  });
}

// Calls `ask` for a bool about the filter.
template <class Ask>
tepal_status GiveAnswer(const Check& check, bool* maybe, const Ask& ask) {
  return Call(Check(check).NotNull("maybe", maybe), [&] {
    *maybe = ask();
    return Status::Ok();
  });
}

}  // namespace
}  // namespace tepal

using namespace tepal;  // NOLINT(google-build-using-namespace): only C functions follow

const char* tepal_last_error_message(void) { return last_error_message; }
const char* tepal_version(void) { return Version(); }

void tepal_bytes_free(tepal_bytes* bytes) {
  if (bytes == nullptr) return;
  delete static_cast<std::vector<uint8_t>*>(bytes->owner);
  *bytes = TEPAL_BYTES_INIT;
}

// ---- Geometry

tepal_status tepal_geometry_for(tepal_layout layout, uint64_t num_keys, double bits_per_key,
                                tepal_geometry* geometry) {
  return Call(Check().Struct("geometry", geometry), [&] {
    return Give(Geometry::For(ToEnum<Layout>(layout), num_keys, bits_per_key), geometry);
  });
}

tepal_status tepal_geometry_for_rate(tepal_layout layout, uint64_t num_keys, double max_fpr,
                                     tepal_geometry* geometry) {
  return Call(Check().Struct("geometry", geometry), [&] {
    const auto made = fpr::GeometryForRate(ToEnum<Layout>(layout), num_keys, max_fpr);
    return made.ok() ? Give(*made, geometry) : made.status();
  });
}

tepal_status tepal_geometry_validate(const tepal_geometry* geometry) {
  return Call(Check().Struct("geometry", geometry),
              [&] { return ToGeometry(*geometry).Validate(); });
}

tepal_status tepal_predict_fpr(const tepal_geometry* geometry, uint64_t num_keys, double* fpr) {
  return Call(Check().Struct("geometry", geometry).NotNull("fpr", fpr), [&] {
    const Geometry checked = ToGeometry(*geometry);
    Status status = checked.Validate();
    if (status.ok()) *fpr = fpr::Predict(checked, num_keys);
    return status;
  });
}

tepal_status tepal_layout_name(tepal_layout layout, const char** name) {
  return Call(Check().NotNull("name", name), [&] {
    const std::string_view found = LayoutName(ToEnum<Layout>(layout));
    if (found.empty()) return Status::InvalidArgument("layout is not one of TEPAL_LAYOUT_*");
    *name = found.data();  // a literal, which ends in zero
    return Status::Ok();
  });
}

tepal_status tepal_parse_layout(const char* name, tepal_layout* layout) {
  return Call(Check().NotNull("name", name).NotNull("layout", layout), [&] {
    const Result<Layout> parsed = ParseLayout(name);
    if (parsed.ok()) *layout = static_cast<tepal_layout>(*parsed);
    return parsed.status();
  });
}

tepal_status tepal_hash_keys(tepal_hash_kind hash, uint64_t seed, const tepal_column* keys,
                             uint64_t* hashes) {
  return Call(Check().ColumnTo(keys, "hashes", hashes), [&] {
    const auto kind = ToEnum<HashKind>(hash);
    if (HashKindName(kind).empty()) {
      return Status::InvalidArgument("hash is not one of TEPAL_HASH_*");
    }
    return VisitColumn(
        *keys,
        [&](const auto& column, Validity) {
          HashKeys(kind, seed, column, hashes);
          return Status::Ok();
        },
        [](auto, Validity) {
          return Status::InvalidArgument("keys->kind is TEPAL_COLUMN_HASHES: these are hashes");
        });
  });
}

// ---- Filters

tepal_status tepal_filter_create(const tepal_geometry* geometry, const tepal_memory* memory,
                                 tepal_filter** filter) {
  return Call(Check().Struct("geometry", geometry).Memory(memory).NotNull("filter", filter), [&] {
    return Give(Filter::Create(ToGeometry(*geometry), ToMemory(memory)), filter);
  });
}

tepal_status tepal_filter_from_bytes(const tepal_geometry* geometry, const uint8_t* bytes,
                                     size_t num_bytes, const tepal_memory* memory,
                                     tepal_filter** filter) {
  return Call(Check()
                  .Struct("geometry", geometry)
                  .Array("bytes", bytes, num_bytes)
                  .Memory(memory)
                  .NotNull("filter", filter),
              [&] {
                return Give(
                    Filter::FromBytes(ToGeometry(*geometry), {bytes, num_bytes}, ToMemory(memory)),
                    filter);
              });
}

tepal_status tepal_filter_view(const tepal_geometry* geometry, const uint8_t* bytes,
                               size_t num_bytes, tepal_filter** filter) {
  return Call(Check()
                  .Struct("geometry", geometry)
                  .Array("bytes", bytes, num_bytes)
                  .NotNull("filter", filter),
              [&] {
                return Give(FilterView::Over(ToGeometry(*geometry), {bytes, num_bytes}), filter);
              });
}

void tepal_filter_destroy(tepal_filter* filter) { delete filter; }

tepal_status tepal_filter_geometry(const tepal_filter* filter, tepal_geometry* geometry) {
  return Call(Check().Filter(filter).Struct("geometry", geometry),
              [&] { return Give(filter->view.geometry(), geometry); });
}

tepal_status tepal_filter_bytes(const tepal_filter* filter, const uint8_t** bytes,
                                size_t* num_bytes) {
  return Call(Check().Filter(filter).NotNull("bytes", bytes).NotNull("num_bytes", num_bytes), [&] {
    *bytes = filter->view.bytes().data();
    *num_bytes = filter->view.bytes().size();
    return Status::Ok();
  });
}

tepal_status tepal_filter_insert(tepal_filter* filter, const tepal_column* keys) {
  return Call(Check().Filter(filter).Column(keys), [&] {
    if (!filter->owned) return ReadOnly();
    VisitColumn(
        *keys, [&](const auto& column, Validity valid) { filter->owned->Insert(column, valid); },
        [&](auto hashes, Validity valid) { filter->owned->InsertHashes(hashes, valid); });
    return Status::Ok();
  });
}

tepal_status tepal_filter_probe(const tepal_filter* filter, const tepal_column* keys,
                                uint8_t* bitmap, size_t* num_matches) {
  return Call(Check().Filter(filter).ColumnTo(keys, "bitmap", bitmap), [&] {
    const FilterView& view = filter->view;
    const size_t matches = VisitColumn(
        *keys,
        [&](const auto& column, Validity valid) { return view.Probe(column, bitmap, valid); },
        [&](auto hashes, Validity valid) { return view.ProbeHashes(hashes, bitmap, valid); });
    if (num_matches != nullptr) *num_matches = matches;
    return Status::Ok();
  });
}

tepal_status tepal_filter_select(const tepal_filter* filter, const tepal_column* keys,
                                 uint32_t* rows, size_t* num_matches) {
  Check check;
  check.Filter(filter).ColumnTo(keys, "rows", rows).NotNull("num_matches", num_matches);
  if (check.ok()) {
    check.Require(keys->num_rows <= uint64_t{1} << 32,
                  "keys->num_rows is %zu, but must be at most 2^32", keys->num_rows);
  }
  return Call(check, [&] {
    const FilterView& view = filter->view;
    *num_matches = VisitColumn(
        *keys, [&](const auto& column, Validity valid) { return view.Select(column, rows, valid); },
        [&](auto hashes, Validity valid) { return view.SelectHashes(hashes, rows, valid); });
    return Status::Ok();
  });
}

tepal_status tepal_filter_select_from(const tepal_filter* filter, const tepal_column* keys,
                                      const uint32_t* selection, size_t selection_size,
                                      uint32_t* rows, size_t* num_matches) {
  Check check;
  check.Filter(filter).Column(keys).Array("selection", selection, selection_size);
  check.Array("rows", rows, selection_size).NotNull("num_matches", num_matches);
  return Call(check, [&] {
    const FilterView& view = filter->view;
    const std::span<const uint32_t> selected(selection, selection_size);
    *num_matches = VisitColumn(
        *keys,
        [&](const auto& column, Validity valid) {
          return view.Select(column, selected, rows, valid);
        },
        [&](auto hashes, Validity valid) {
          return view.SelectHashes(hashes, selected, rows, valid);
        });
    return Status::Ok();
  });
}

tepal_status tepal_filter_count(const tepal_filter* filter, const tepal_column* keys,
                                size_t* num_matches) {
  return Call(Check().Filter(filter).Column(keys).NotNull("num_matches", num_matches), [&] {
    const FilterView& view = filter->view;
    *num_matches = VisitColumn(
        *keys, [&](const auto& column, Validity valid) { return view.Count(column, valid); },
        [&](auto hashes, Validity valid) { return view.CountHashes(hashes, valid); });
    return Status::Ok();
  });
}

tepal_status tepal_filter_may_contain_u64(const tepal_filter* filter, uint64_t key, bool* maybe) {
  return GiveAnswer(Check().Filter(filter), maybe, [&] { return filter->view.MayContain(key); });
}

tepal_status tepal_filter_may_contain_u32(const tepal_filter* filter, uint32_t key, bool* maybe) {
  return GiveAnswer(Check().Filter(filter), maybe, [&] { return filter->view.MayContain(key); });
}

tepal_status tepal_filter_may_contain_string(const tepal_filter* filter, const char* bytes,
                                             size_t num_bytes, bool* maybe) {
  return GiveAnswer(Check().Filter(filter).Array("bytes", bytes, num_bytes), maybe,
                    [&] { return filter->view.MayContain(std::string_view(bytes, num_bytes)); });
}

tepal_status tepal_filter_may_contain_hash(const tepal_filter* filter, uint64_t hash, bool* maybe) {
  return GiveAnswer(Check().Filter(filter), maybe,
                    [&] { return filter->view.MayContainHash(hash); });
}

// ---- Sets

tepal_status tepal_filter_union(tepal_filter* into, const tepal_filter* other) {
  return Call(Check().NotNull("into", into).NotNull("other", other),
              [&] { return into->owned ? Union(*into->owned, other->view) : ReadOnly(); });
}

tepal_status tepal_filter_intersect(tepal_filter* into, const tepal_filter* other) {
  return Call(Check().NotNull("into", into).NotNull("other", other),
              [&] { return into->owned ? Intersect(*into->owned, other->view) : ReadOnly(); });
}

tepal_status tepal_filter_merge(const tepal_filter* a, const tepal_filter* b,
                                const tepal_memory* memory, tepal_filter** filter) {
  Check check;
  check.NotNull("a", a).NotNull("b", b).Memory(memory).NotNull("filter", filter);
  return Call(check, [&] { return Give(Merge(a->view, b->view, ToMemory(memory)), filter); });
}

tepal_status tepal_filter_surely_disjoint(const tepal_filter* a, const tepal_filter* b,
                                          bool* disjoint) {
  return Call(Check().NotNull("a", a).NotNull("b", b).NotNull("disjoint", disjoint),
              [&] { return GiveValue(SurelyDisjoint(a->view, b->view), disjoint); });
}

tepal_status tepal_filter_fill_ratio(const tepal_filter* filter, double* fill_ratio) {
  return Call(Check().Filter(filter).NotNull("fill_ratio", fill_ratio),
              [&] { return GiveValue(Result<double>(FillRatio(filter->view)), fill_ratio); });
}

tepal_status tepal_filter_estimate_keys(const tepal_filter* filter, uint64_t* num_keys) {
  return Call(Check().Filter(filter).NotNull("num_keys", num_keys),
              [&] { return GiveValue(EstimateKeys(filter->view), num_keys); });
}

tepal_status tepal_filter_shrink(const tepal_filter* filter, const tepal_geometry* smaller,
                                 const tepal_memory* memory, tepal_filter** shrunk) {
  Check check;
  check.Filter(filter).Struct("smaller", smaller).Memory(memory).NotNull("shrunk", shrunk);
  return Call(check, [&] {
    return Give(Shrink(filter->view, ToGeometry(*smaller), ToMemory(memory)), shrunk);
  });
}

// ---- Builders

tepal_status tepal_builder_create(const tepal_geometry* geometry, const tepal_memory* memory,
                                  tepal_builder** builder) {
  Check check;
  check.Struct("geometry", geometry).Memory(memory).NotNull("builder", builder);
  return Call(check, [&] {
    auto made = ParallelBuilder::Create(ToGeometry(*geometry), ToMemory(memory));
    if (made.ok()) *builder = new tepal_builder{std::move(*made)};
    return made.status();
  });
}

tepal_status tepal_builder_insert(tepal_builder* builder, const tepal_column* keys) {
  return Call(Check().NotNull("builder", builder).Column(keys), [&] {
    if (!builder->builder) return Finished();
    VisitColumn(
        *keys, [&](const auto& column, Validity valid) { builder->builder->Insert(column, valid); },
        [&](auto hashes, Validity valid) { builder->builder->InsertHashes(hashes, valid); });
    return Status::Ok();
  });
}

tepal_status tepal_builder_finish(tepal_builder* builder, tepal_filter** filter) {
  return Call(Check().NotNull("builder", builder).NotNull("filter", filter), [&] {
    if (!builder->builder) return Finished();
    Result<Filter> made = std::move(*builder->builder).Finish();
    builder->builder.reset();
    return Give(std::move(made), filter);
  });
}

void tepal_builder_destroy(tepal_builder* builder) { delete builder; }

// ---- Containers

tepal_status tepal_filter_serialize(const tepal_filter* filter, uint64_t num_keys,
                                    tepal_key_kind key_kind, tepal_bytes* container) {
  return Call(Check().Filter(filter).Struct("container", container), [&] {
    return Give(Serialize(filter->view, num_keys, ToEnum<KeyKind>(key_kind)), container);
  });
}

tepal_status tepal_filter_write_file(const tepal_filter* filter, uint64_t num_keys,
                                     tepal_key_kind key_kind, const char* path) {
  return Call(Check().Filter(filter).NotNull("path", path),
              [&] { return WriteFile(path, filter->view, num_keys, ToEnum<KeyKind>(key_kind)); });
}

tepal_status tepal_container_inspect(const uint8_t* container, size_t num_bytes,
                                     tepal_container_info* info) {
  return Call(Check().Array("container", container, num_bytes).Struct("info", info), [&] {
    const Result<ContainerInfo> found = Inspect({container, num_bytes});
    if (found.ok()) *info = FromInfo(*found);
    return found.status();
  });
}

tepal_status tepal_filter_deserialize(const uint8_t* container, size_t num_bytes,
                                      const tepal_memory* memory, tepal_filter** filter) {
  Check check;
  check.Array("container", container, num_bytes).Memory(memory).NotNull("filter", filter);
  return Call(check, [&] {
    return Give(Deserialize({container, num_bytes}, ToMemory(memory)), filter);
  });
}

tepal_status tepal_filter_open(const uint8_t* container, size_t num_bytes, tepal_filter** filter) {
  return Call(Check().Array("container", container, num_bytes).NotNull("filter", filter), [&] {
    return Give(FilterView::Open({container, num_bytes}), filter);
  });
}

tepal_status tepal_filter_map_file(const char* path, tepal_container_info* info,
                                   tepal_filter** filter) {
  Check check;
  check.NotNull("path", path).NotNull("filter", filter);
  if (info != nullptr) check.Struct("info", info);
  return Call(check, [&] {
    Result<MappedFilter> mapped = MappedFilter::Open(path);
    if (!mapped.ok()) return mapped.status();
    FilterView view = mapped->view();
    const tepal_container_info found = FromInfo(mapped->info());
    *filter = new tepal_filter{std::nullopt, std::move(*mapped), std::move(view)};
    if (info != nullptr) *info = found;
    return Status::Ok();
  });
}

// ---- Parquet

tepal_status tepal_parquet_read(const uint8_t* bytes, size_t num_bytes, const tepal_memory* memory,
                                tepal_filter** filter) {
  Check check;
  check.Array("bytes", bytes, num_bytes).Memory(memory).NotNull("filter", filter);
  return Call(check, [&] {
    return Give(parquet::Read({bytes, num_bytes}, ToMemory(memory)), filter);
  });
}

tepal_status tepal_parquet_read_exactly(const uint8_t* bytes, size_t num_bytes,
                                        const tepal_memory* memory, tepal_filter** filter) {
  Check check;
  check.Array("bytes", bytes, num_bytes).Memory(memory).NotNull("filter", filter);
  return Call(check, [&] {
    return Give(parquet::ReadExactly({bytes, num_bytes}, ToMemory(memory)), filter);
  });
}

tepal_status tepal_parquet_write(const tepal_filter* filter, tepal_bytes* bytes) {
  return Call(Check().Filter(filter).Struct("bytes", bytes),
              [&] { return Give(parquet::Write(filter->view), bytes); });
}

// ---- Planner

tepal_status tepal_make_plan(const tepal_workload* workload, tepal_plan* plan,
                             tepal_bytes* explanation) {
  Check check;
  check.Struct("workload", workload).Struct("plan", plan);
  if (explanation != nullptr) check.Struct("explanation", explanation);
  if (check.ok()) {
    check.Require(workload->needs < TEPAL_NEEDS_END,
                  "workload->needs is %u, but must be a sum of TEPAL_NEEDS_*", workload->needs);
  }
  return Call(check, [&] {
    const Result<FilterPlan> made = MakePlan(ToWorkload(*workload));
    if (!made.ok()) return made.status();
    if (explanation != nullptr) {
      const std::string text = made->Explain();
      Give({text.c_str(), text.c_str() + text.size() + 1}, text.size(), explanation);
    }
    *plan = FromPlan(*made);
    return Status::Ok();
  });
}

// ---- Targets

tepal_status tepal_active_target(const char** name) {
  return Call(Check().NotNull("name", name), [&] {
    const std::string active = ActiveTarget();
    for (const char* available : AvailableNames()) {
      if (active == available) *name = available;
    }
    return Status::Ok();
  });
}

tepal_status tepal_available_targets(const char* const** names, size_t* num_names) {
  return GiveNames(AvailableNames, names, num_names);
}

tepal_status tepal_compiled_targets(const char* const** names, size_t* num_names) {
  return GiveNames(CompiledNames, names, num_names);
}

tepal_status tepal_force_target(const char* name) {
  return Call(Check().NotNull("name", name), [&] { return ForceTarget(name); });
}

tepal_status tepal_check_environment(void) {
  return Call(Check(), [] { return CheckEnvironment(); });
}
