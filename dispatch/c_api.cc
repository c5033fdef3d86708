// C calls become C++ calls.
#include "tepal/c_api.h"

#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dispatch/c_api_call.h"
#include "dispatch/c_api_convert.h"
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

// ---- Results

// Memory for a tepal_filter. With it, giving a filter cannot fail.
struct FreeRoom {
  void operator()(void* room) const { ::operator delete(room); }
};
using FilterRoom = std::unique_ptr<void, FreeRoom>;

FilterRoom MakeRoom() { return FilterRoom(::operator new(sizeof(tepal_filter))); }

Status Give(Result<Filter> made, tepal_filter** filter, FilterRoom room = MakeRoom()) {
  if (!made.ok()) return made.status();
  FilterView view = made->View();
  *filter = new (room.release()) tepal_filter{std::move(*made), std::nullopt, std::move(view)};
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

tepal_status tepal_filter_prefetch(const tepal_filter* filter, const tepal_column* keys) {
  Check check;
  if (check.Filter(filter).Column(keys).ok()) {
    check.Require(keys->kind == TEPAL_COLUMN_HASHES,
                  "keys->kind is %d, but only hashes can be prefetched", keys->kind);
  }
  return Call(check, [&] {
    filter->view.PrefetchHashes(Values<uint64_t>(*keys));
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
    // First of all: a builder that is finished without it would lose its keys.
    FilterRoom room = MakeRoom();
    Result<Filter> made = std::move(*builder->builder).Finish();
    builder->builder.reset();
    return Give(std::move(made), filter, std::move(room));
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
