// Any sequence of C calls, with null pointers and nonsense among the arguments: nothing crashes or
// leaks, a failure leaves the outputs alone and says why, and no inserted key is ever denied, also
// not by copies, joins and files.
#include "tepal/c_api.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "tests/fuzz/fuzz_input.h"

namespace tepal::fuzz {
namespace {

constexpr uint64_t kMaxBits = uint64_t{1} << 18;  // larger filters only cost time
constexpr uint32_t kMaxRows = 200;
constexpr size_t kMaxKnown = 1000;  // hashes to be found again, of one filter
constexpr size_t kUntouched = SIZE_MAX;

using Hashes = std::vector<uint64_t>;

// The rows of one call, of any kind; offsets of strings do not decrease, as C requires.
struct Column {
  explicit Column(FuzzInput& input) : values(input.TakeBelow(kMaxRows)) {
    std::mt19937_64 engine(input.TakeBelow(8));  // few seeds: the same keys come again
    for (uint64_t& value : values) value = engine();
    const size_t num_rows = values.size();
    const std::span<const uint8_t> given = input.TakeBytes(input.TakeBelow(100));
    if (!given.empty() && num_rows != 0) {
      std::memcpy(values.data(), given.data(), std::min(given.size(), num_rows * sizeof(uint64_t)));
    }
    offsets32.assign(num_rows + 1, 0);
    for (size_t i = 0; i < num_rows; ++i) {
      offsets32[i + 1] = offsets32[i] + static_cast<int32_t>(values[i] % (sizeof(uint64_t) + 1));
    }
    offsets64.assign(offsets32.begin(), offsets32.end());
    const uint32_t nonsense = input.TakeBelow(64);
    const auto kind = nonsense == 0 ? input.Take<tepal_column_kind>()
                                    : static_cast<tepal_column_kind>(1 + input.TakeBelow(5));
    column = tepal_make_column(kind, values.data(), nullptr, num_rows);
    if (column.kind == TEPAL_COLUMN_STRINGS32) column.offsets = offsets32.data();
    if (column.kind == TEPAL_COLUMN_STRINGS64) column.offsets = offsets64.data();
    if (nonsense == 1) column.values = nullptr;
    if (nonsense == 2) column.offsets = nullptr;
    if (nonsense == 3) column.struct_size = input.Take<uint8_t>();
    if (nonsense < 32) return;
    const auto always_valid = input.Take<uint8_t>();  // these rows of eight
    validity.resize((num_rows + 8 + 7) / 8);
    for (uint8_t& byte : validity) byte = static_cast<uint8_t>(engine() | always_valid);
    column.validity = validity.data();
    column.validity_offset = nonsense % 8;
  }

  bool IsValid(size_t row) const {
    const size_t bit = column.validity_offset + row;
    return column.validity == nullptr || (validity[bit / 8] >> bit % 8 & 1) != 0;
  }

  std::vector<uint64_t> values;  // also the bytes of the strings
  std::vector<int32_t> offsets32;
  std::vector<int64_t> offsets64;
  std::vector<uint8_t> validity;
  tepal_column column;
};

// Hashes of keys that are in both.
Hashes Common(Hashes a, Hashes b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  Hashes common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common;
}

Hashes Joined(Hashes a, const Hashes& b) {
  a.insert(a.end(), b.begin(),
           b.begin() + static_cast<std::ptrdiff_t>(std::min(b.size(), kMaxKnown - a.size())));
  return a;
}

// Not zeroed, as an engine's.
void* AllocateDirty(size_t bytes, size_t alignment, void* /*context*/) {
  TEPAL_FUZZ_EXPECT(alignment == kFilterAlignment);
  void* memory = ::operator new(bytes, std::align_val_t(kFilterAlignment));
  std::memset(memory, 0xA5, bytes);
  return memory;
}
void* AllocateNothing(size_t /*bytes*/, size_t /*alignment*/, void* /*context*/) { return nullptr; }
void Deallocate(void* memory, size_t /*bytes*/, void* /*context*/) {
  ::operator delete(memory, std::align_val_t(kFilterAlignment));
}

constexpr std::array<tepal_memory, 6> kMemories = {{
    TEPAL_MEMORY_INIT,
    {sizeof(tepal_memory), true, nullptr, nullptr, nullptr},
    {sizeof(tepal_memory), false, AllocateDirty, Deallocate, nullptr},
    {sizeof(tepal_memory), false, AllocateNothing, Deallocate, nullptr},
    {sizeof(tepal_memory), false, AllocateDirty, nullptr, nullptr},  // one without the other
    {0, false, nullptr, nullptr, nullptr},
}};

class Session {
 public:
  Session(const uint8_t* data, size_t size) : input_(data, size) {}
  ~Session() {
    for (const Slot& slot : slots_) tepal_filter_destroy(slot.filter);
    tepal_bytes_free(&bytes_);
  }

  void Run() {
    TEPAL_FUZZ_EXPECT(Ok(tepal_force_target("auto")));
    Create();
    while (!input_.empty()) Step();
    for (const Slot& slot : slots_) ExpectFound(slot.filter, slot.hashes);
  }

 private:
  // A filter, or none, and the hashes of some keys that are surely in it.
  struct Slot {
    tepal_filter* filter = nullptr;
    Hashes hashes;
  };

  void Step() {
    switch (input_.TakeBelow(24)) {
      case 0:
      case 1:
      case 2:
        return Create();
      case 3:
      case 4:
      case 5:
        return Insert();
      case 6:
      case 7:
        return Ask();
      case 8:
        return AskForOne();
      case 9:
      case 10:
        return WriteBytes();
      case 11:
      case 12:
        return ReadBytes();
      case 13:
        return Predict();
      case 14:
        return Copy();
      case 15:
        return View();
      case 16:
      case 17:
        return Join();
      case 18:
        return Merge();
      case 19:
        return Shrink();
      case 20:
        return Compare();
      case 21:
        return Build();
      case 22:
        return Names();
      default:
        return RareStep();
    }
  }

  void RareStep() {
    switch (input_.TakeBelow(8)) {
      case 0:
        return Plan();
      case 1:
        return WriteFile();
      case 2:
        return GeometryForRate();
      default:
        return PassNulls();
    }
  }

  // Every status has its number, and every failure a message.
  static bool Ok(tepal_status status) {
    TEPAL_FUZZ_EXPECT(status >= TEPAL_OK && status <= TEPAL_IO_ERROR);
    TEPAL_FUZZ_EXPECT(status == TEPAL_OK || *tepal_last_error_message() != '\0');
    return status == TEPAL_OK;
  }

  // Mostly one with a filter, if there is any.
  Slot& AnySlot() {
    const uint32_t choice = input_.TakeBelow(64);
    Slot& slot = slots_[choice % kNumSlots];
    if (slot.filter != nullptr || choice >= 60) return slot;
    const auto found = std::find_if(slots_.begin(), slots_.end(),
                                    [](const Slot& other) { return other.filter != nullptr; });
    return found == slots_.end() ? slot : *found;
  }
  tepal_filter* AnyFilter() { return AnySlot().filter; }

  const tepal_memory* AnyMemory() {
    const uint32_t choice = input_.TakeBelow(32);
    return choice < kMemories.size() ? &kMemories[choice] : nullptr;
  }

  // Puts the filter that a call has made, of keys with these hashes, into a slot. A call that fails
  // must leave `made` alone.
  void Keep(tepal_status status, tepal_filter* made, Hashes hashes) {
    TEPAL_FUZZ_EXPECT(Ok(status) == (made != nullptr));
    if (made == nullptr) return;
    ExpectFound(made, hashes);
    Slot& slot = slots_[input_.TakeBelow(kNumSlots)];
    tepal_filter_destroy(slot.filter);
    slot = {made, std::move(hashes)};
  }

  static void ExpectFound(const tepal_filter* filter, const Hashes& hashes) {
    if (filter == nullptr) return;
    const tepal_column column = tepal_hashes_column(hashes.data(), hashes.size());
    size_t num_found = kUntouched;
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_count(filter, &column, &num_found)));
    TEPAL_FUZZ_EXPECT(num_found == hashes.size());
  }

  // Adds the hashes of a column that was inserted.
  static void Remember(const tepal_geometry& geometry, const Column& keys, Hashes* known) {
    Hashes hashes = keys.values;
    if (keys.column.kind != TEPAL_COLUMN_HASHES) {
      TEPAL_FUZZ_EXPECT(
          Ok(tepal_hash_keys(geometry.hash, geometry.seed, &keys.column, hashes.data())));
    }
    for (size_t row = 0; row < hashes.size() && known->size() < kMaxKnown; ++row) {
      if (keys.IsValid(row)) known->push_back(hashes[row]);
    }
  }

  static std::vector<uint8_t> BytesOf(const tepal_filter* filter) {
    const uint8_t* bytes = nullptr;
    size_t num_bytes = 0;
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_bytes(filter, &bytes, &num_bytes)) == (filter != nullptr));
    return {bytes, bytes + num_bytes};
  }

  // Some of them are such that filters of both geometries can be joined.
  static void Resize(FuzzInput& input, tepal_geometry* geometry) {
    const uint64_t factor = 1 + input.TakeBelow(4);
    const uint64_t num_parts = std::max(geometry->num_probes, 1u);
    switch (input.TakeBelow(4)) {
      case 0:
        geometry->num_bits *= factor;
        return;
      case 1:
        geometry->num_bits /= factor;
        return;
      case 2:  // partitioned: fewer parts
        geometry->num_probes -= factor < num_parts ? static_cast<uint32_t>(factor) : 0;
        geometry->num_bits = geometry->num_bits / num_parts * geometry->num_probes;
        return;
      default:  // variable: the largest block
        const uint64_t num_bits = std::bit_floor(geometry->num_bits);
        geometry->num_probes =
            static_cast<uint32_t>(geometry->num_probes * num_bits / geometry->num_bits);
        geometry->num_bits = num_bits / std::bit_floor(factor);
    }
  }

  // A new one, or one like that of a filter.
  tepal_geometry AnyGeometry() {
    tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
    if (input_.TakeBelow(2) == 1 && tepal_filter_geometry(AnyFilter(), &geometry) == TEPAL_OK) {
      if (input_.TakeBelow(3) != 0) Resize(input_, &geometry);
      return geometry;
    }
    const Geometry small = TakeGeometry(input_);
    geometry.layout = static_cast<tepal_layout>(small.layout);
    geometry.hash = static_cast<tepal_hash_kind>(small.hash);
    geometry.num_bits = small.num_bits;
    geometry.seed = small.seed;
    geometry.rational_k = small.rational_k;
    geometry.num_probes = small.num_probes;
    const uint32_t nonsense = input_.TakeBelow(32);
    if (nonsense == 1) geometry.layout = input_.Take<int32_t>();
    if (nonsense == 2) geometry.rational_k = input_.Take<double>();
    if (nonsense == 3) geometry.struct_size = input_.Take<uint8_t>();
    if (nonsense == 4) geometry.num_probes = input_.Take<uint32_t>();
    return geometry;
  }

  void Create() {
    const tepal_geometry geometry = AnyGeometry();
    if (geometry.num_bits > kMaxBits) return;
    tepal_filter* made = nullptr;
    const tepal_status status = tepal_filter_create(&geometry, AnyMemory(), &made);
    Keep(status, made, {});
  }

  void Insert() {
    Slot& slot = AnySlot();
    const Column keys(input_);
    if (!Ok(tepal_filter_insert(slot.filter, &keys.column))) return;
    size_t num_valid = 0;
    for (size_t row = 0; row < keys.column.num_rows; ++row) num_valid += keys.IsValid(row) ? 1 : 0;
    size_t num_matches = 0;
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_count(slot.filter, &keys.column, &num_matches)));
    TEPAL_FUZZ_EXPECT(num_matches == num_valid);
    tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_geometry(slot.filter, &geometry)));
    Remember(geometry, keys, &slot.hashes);
    ExpectFound(slot.filter, slot.hashes);
  }

  // Probe, select and count say the same.
  void Ask() {
    const tepal_filter* filter = AnyFilter();
    const Column keys(input_);
    const size_t num_rows = keys.column.num_rows;
    std::vector<uint8_t> bitmap((num_rows + 7) / 8);
    std::vector<uint32_t> rows(num_rows);
    size_t num_set = kUntouched;
    size_t num_found = kUntouched;
    size_t num_counted = kUntouched;
    const bool ok = Ok(tepal_filter_probe(filter, &keys.column, bitmap.data(), &num_set));
    TEPAL_FUZZ_EXPECT(ok == Ok(tepal_filter_select(filter, &keys.column, rows.data(), &num_found)));
    TEPAL_FUZZ_EXPECT(ok == Ok(tepal_filter_count(filter, &keys.column, &num_counted)));
    TEPAL_FUZZ_EXPECT(ok == (num_set != kUntouched));
    TEPAL_FUZZ_EXPECT(num_set == num_found && num_set == num_counted);
    const bool are_hashes = keys.column.kind == TEPAL_COLUMN_HASHES;
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_prefetch(filter, &keys.column)) == (ok && are_hashes));
    if (!ok) return;
    for (size_t i = 0; i < num_found; ++i) {
      TEPAL_FUZZ_EXPECT((bitmap[rows[i] / 8] >> rows[i] % 8 & 1) != 0);
    }
    SelectFrom(filter, keys.column, bitmap);
  }

  // Some rows, in any order, in place.
  void SelectFrom(const tepal_filter* filter, const tepal_column& keys,
                  const std::vector<uint8_t>& bitmap) {
    std::vector<uint32_t> rows(keys.num_rows == 0 ? 0 : input_.TakeBelow(20));
    for (uint32_t& row : rows) row = input_.TakeBelow(static_cast<uint32_t>(keys.num_rows));
    std::vector<uint32_t> expected = rows;
    std::erase_if(expected, [&](uint32_t row) { return (bitmap[row / 8] >> row % 8 & 1) == 0; });
    size_t num_found = 0;
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_select_from(filter, &keys, rows.data(), rows.size(),
                                                  rows.data(), &num_found)));
    rows.resize(num_found);
    TEPAL_FUZZ_EXPECT(rows == expected);
  }

  void AskForOne() {
    const Slot& slot = AnySlot();
    const tepal_filter* filter = slot.filter;
    const auto key = input_.Take<uint64_t>();
    bool maybe = false;
    const bool ok = Ok(tepal_filter_may_contain_u64(filter, key, &maybe));
    TEPAL_FUZZ_EXPECT(ok == (filter != nullptr));
    Ok(tepal_filter_may_contain_u32(filter, static_cast<uint32_t>(key), &maybe));
    Ok(tepal_filter_may_contain_hash(filter, key, &maybe));
    const std::span<const uint8_t> text = input_.TakeBytes(input_.TakeBelow(300));
    Ok(tepal_filter_may_contain_string(filter, reinterpret_cast<const char*>(text.data()),
                                       text.size(), &maybe));
    if (slot.hashes.empty()) return;
    maybe = false;
    Ok(tepal_filter_may_contain_hash(filter, slot.hashes[key % slot.hashes.size()], &maybe));
    TEPAL_FUZZ_EXPECT(maybe);
  }

  // Into bytes_, as a container or for Parquet.
  void WriteBytes() {
    const Slot& slot = AnySlot();
    tepal_bytes made = TEPAL_BYTES_INIT;
    const bool parquet = input_.TakeBelow(2) == 0;
    const auto key_kind = static_cast<tepal_key_kind>(input_.TakeBelow(6));
    const bool ok =
        Ok(parquet ? tepal_parquet_write(slot.filter, &made)
                   : tepal_filter_serialize(slot.filter, input_.Take<uint64_t>(), key_kind, &made));
    TEPAL_FUZZ_EXPECT(ok == (made.owner != nullptr));
    if (!ok) return;
    tepal_bytes_free(&bytes_);
    bytes_ = made;
    bytes_hashes_ = slot.hashes;
  }

  // From bytes_, now and then damaged, or from the input.
  void ReadBytes() {
    std::vector<uint8_t> bytes(bytes_.data, bytes_.data + bytes_.size);
    const uint32_t damage = input_.TakeBelow(8);
    if (damage == 1 && !bytes.empty()) bytes[input_.Take<uint32_t>() % bytes.size()] ^= 1;
    if (damage == 2) bytes.resize(bytes.size() / 2);
    if (damage == 3) {
      const std::span<const uint8_t> given = input_.TakeBytes(input_.TakeBelow(400));
      bytes.assign(given.begin(), given.end());
    }
    const bool is_damaged = damage >= 1 && damage <= 3;
    const Hashes hashes = is_damaged ? Hashes() : bytes_hashes_;
    tepal_container_info info = TEPAL_CONTAINER_INFO_INIT;
    Ok(tepal_container_inspect(bytes.data(), bytes.size(), &info));
    const std::array readers = {tepal_filter_deserialize, tepal_parquet_read,
                                tepal_parquet_read_exactly};
    const auto reader = readers[input_.TakeBelow(readers.size())];
    tepal_filter* made = nullptr;
    const tepal_status status = reader(bytes.data(), bytes.size(), AnyMemory(), &made);
    Keep(status, made, hashes);
    OpenBytes(bytes, hashes);
  }

  // A view, which lives no longer than the bytes.
  void OpenBytes(const std::vector<uint8_t>& bytes, const Hashes& hashes) {
    const AlignedCopy aligned(bytes);
    tepal_filter* view = nullptr;
    const bool ok = Ok(tepal_filter_open(aligned.bytes().data(), bytes.size(), &view));
    TEPAL_FUZZ_EXPECT(ok == (view != nullptr));
    if (ok) UseView(view, hashes);
  }

  // Nothing can change it, but all else works.
  void UseView(tepal_filter* view, const Hashes& hashes) {
    const Column keys(input_);
    const std::vector<uint8_t> before = BytesOf(view);
    TEPAL_FUZZ_EXPECT(!Ok(tepal_filter_insert(view, &keys.column)));
    TEPAL_FUZZ_EXPECT(!Ok(tepal_filter_union(view, AnyFilter())));
    TEPAL_FUZZ_EXPECT(!Ok(tepal_filter_intersect(view, view)));
    TEPAL_FUZZ_EXPECT(BytesOf(view) == before);
    ExpectFound(view, hashes);
    size_t num_matches = 0;
    Ok(tepal_filter_count(view, &keys.column, &num_matches));
    Ok(tepal_filter_union(AnyFilter(), view));  // what is known to be in there still is
    tepal_filter_destroy(view);
  }

  tepal_layout AnyLayout() {
    const uint32_t choice = input_.TakeBelow(32);
    return choice == 31 ? input_.Take<int32_t>() : static_cast<tepal_layout>(choice % 9);
  }

  void Predict() {
    tepal_geometry geometry = AnyGeometry();
    double fpr = -1;
    if (Ok(tepal_predict_fpr(&geometry, input_.Take<uint16_t>(), &fpr))) {
      TEPAL_FUZZ_EXPECT(fpr >= 0 && fpr <= 1);
    }
    const tepal_layout layout = AnyLayout();
    const uint64_t num_keys = input_.Take<uint64_t>() >> input_.TakeBelow(64);
    const double bits_per_key =
        input_.TakeBelow(8) == 7 ? input_.Take<double>() : input_.TakeBelow(1024) / 16.0;
    if (Ok(tepal_geometry_for(layout, num_keys, bits_per_key, &geometry))) {
      TEPAL_FUZZ_EXPECT(tepal_geometry_validate(&geometry) == TEPAL_OK);
    }
  }

  // At most once a run, because it takes as long as all the rest.
  void GeometryForRate() {
    const tepal_layout layout = AnyLayout();
    const uint64_t num_keys = input_.Take<uint64_t>() >> input_.TakeBelow(64);
    const double max_fpr =
        input_.TakeBelow(8) == 7 ? input_.Take<double>() : 1.0 / (1 + input_.Take<uint16_t>());
    if (std::exchange(has_sized_, true)) return;
    tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
    if (!Ok(tepal_geometry_for_rate(layout, num_keys, max_fpr, &geometry))) return;
    double fpr = -1;
    TEPAL_FUZZ_EXPECT(Ok(tepal_predict_fpr(&geometry, num_keys, &fpr)) && fpr <= max_fpr);
  }

  // Of layouts and targets, and back.
  void Names() {
    TEPAL_FUZZ_EXPECT(*tepal_version() != '\0');
    const tepal_layout layout = AnyLayout();
    const char* name = nullptr;
    tepal_layout parsed = -1;
    const bool is_layout = Ok(tepal_layout_name(layout, &name));
    TEPAL_FUZZ_EXPECT(is_layout == (name != nullptr));
    TEPAL_FUZZ_EXPECT(Ok(tepal_parse_layout(name, &parsed)) == is_layout);
    TEPAL_FUZZ_EXPECT(parsed == (is_layout ? layout : -1));
    const std::span<const uint8_t> bytes = input_.TakeBytes(input_.TakeBelow(20));
    const std::string text(bytes.begin(), bytes.end());
    Ok(tepal_parse_layout(text.c_str(), &parsed));
    Ok(tepal_force_target(text.c_str()));
    Ok(tepal_check_environment());
    ForceTarget();
  }

  // For all steps from here on.
  void ForceTarget() {
    const char* const* available = nullptr;
    const char* const* compiled = nullptr;
    size_t num_available = 0;
    size_t num_compiled = 0;
    TEPAL_FUZZ_EXPECT(Ok(tepal_available_targets(&available, &num_available)));
    TEPAL_FUZZ_EXPECT(Ok(tepal_compiled_targets(&compiled, &num_compiled)));
    const std::string_view target =
        available[input_.TakeBelow(static_cast<uint32_t>(num_available))];
    TEPAL_FUZZ_EXPECT(std::count(compiled, compiled + num_compiled, target) == 1);
    TEPAL_FUZZ_EXPECT(Ok(tepal_force_target(target.data())));
    const char* active = nullptr;
    TEPAL_FUZZ_EXPECT(Ok(tepal_active_target(&active)) && active == target);
  }

  void Copy() {
    const Slot& slot = AnySlot();
    tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
    if (!Ok(tepal_filter_geometry(slot.filter, &geometry))) return;
    const std::vector<uint8_t> bytes = BytesOf(slot.filter);
    const size_t num_bytes = bytes.size() - input_.TakeBelow(8) / 7;
    tepal_filter* made = nullptr;
    const tepal_status status =
        tepal_filter_from_bytes(&geometry, bytes.data(), num_bytes, AnyMemory(), &made);
    Keep(status, made, slot.hashes);
  }

  // Of the bytes of a filter, now and then not all of them, not aligned, or of another geometry.
  void View() {
    const Slot& slot = AnySlot();
    tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
    if (!Ok(tepal_filter_geometry(slot.filter, &geometry))) return;
    const std::vector<uint8_t> bytes = BytesOf(slot.filter);
    const AlignedCopy aligned(bytes);
    const size_t num_skipped = input_.TakeBelow(8) / 7;
    const bool other_geometry = input_.TakeBelow(8) == 7;
    if (other_geometry) geometry = AnyGeometry();
    tepal_filter* view = nullptr;
    const bool ok = Ok(tepal_filter_view(&geometry, aligned.bytes().data() + num_skipped,
                                         bytes.size() - num_skipped, &view));
    TEPAL_FUZZ_EXPECT(ok == (view != nullptr));
    TEPAL_FUZZ_EXPECT(other_geometry || ok == (num_skipped == 0));
    if (ok) UseView(view, other_geometry ? Hashes() : slot.hashes);
  }

  // Also with itself.
  void Join() {
    Slot& into = AnySlot();
    const Slot& other = AnySlot();
    const bool intersect = input_.TakeBelow(2) == 1;
    const std::vector<uint8_t> before = BytesOf(into.filter);
    const auto join = intersect ? tepal_filter_intersect : tepal_filter_union;
    if (!Ok(join(into.filter, other.filter))) {
      TEPAL_FUZZ_EXPECT(BytesOf(into.filter) == before);
      return;
    }
    into.hashes = intersect ? Common(into.hashes, other.hashes) : Joined(into.hashes, other.hashes);
    ExpectFound(into.filter, into.hashes);
  }

  void Merge() {
    const Slot& a = AnySlot();
    const Slot& b = AnySlot();
    tepal_filter* made = nullptr;
    const tepal_status status = tepal_filter_merge(a.filter, b.filter, AnyMemory(), &made);
    Keep(status, made, Joined(a.hashes, b.hashes));
  }

  void Shrink() {
    const Slot& slot = AnySlot();
    tepal_geometry smaller = TEPAL_GEOMETRY_INIT;
    if (input_.TakeBelow(4) == 3 || tepal_filter_geometry(slot.filter, &smaller) != TEPAL_OK) {
      smaller = AnyGeometry();
    } else {
      Resize(input_, &smaller);
    }
    tepal_filter* made = nullptr;
    const tepal_status status = tepal_filter_shrink(slot.filter, &smaller, AnyMemory(), &made);
    Keep(status, made, slot.hashes);
  }

  void Compare() {
    const Slot& a = AnySlot();
    const Slot& b = AnySlot();
    bool disjoint = false;
    const bool ok = Ok(tepal_filter_surely_disjoint(a.filter, b.filter, &disjoint));
    TEPAL_FUZZ_EXPECT(!disjoint || (ok && Common(a.hashes, b.hashes).empty()));
    double fill_ratio = -1;
    if (Ok(tepal_filter_fill_ratio(a.filter, &fill_ratio))) {
      TEPAL_FUZZ_EXPECT(fill_ratio >= 0 && fill_ratio <= 1);
    }
    TEPAL_FUZZ_EXPECT((fill_ratio == -1) == (a.filter == nullptr));
    uint64_t num_keys = kUntouched;
    const bool estimated = Ok(tepal_filter_estimate_keys(a.filter, &num_keys));
    TEPAL_FUZZ_EXPECT(estimated == (num_keys != kUntouched));
    // Of some bits there is no estimate: no number of keys makes them.
    TEPAL_FUZZ_EXPECT(!estimated || (a.filter != nullptr && fill_ratio < 1));
  }

  void Build() {
    const tepal_geometry geometry = AnyGeometry();
    if (geometry.num_bits > kMaxBits) return;
    tepal_builder* builder = nullptr;
    const bool ok = Ok(tepal_builder_create(&geometry, AnyMemory(), &builder));
    TEPAL_FUZZ_EXPECT(ok == (builder != nullptr));
    Hashes hashes;
    for (uint32_t i = input_.TakeBelow(3); i > 0; --i) {
      const Column keys(input_);
      if (Ok(tepal_builder_insert(builder, &keys.column))) Remember(geometry, keys, &hashes);
    }
    tepal_filter* made = nullptr;
    const tepal_status status = tepal_builder_finish(builder, &made);
    TEPAL_FUZZ_EXPECT(ok == (status == TEPAL_OK));
    Keep(status, made, std::move(hashes));
    const Column late(input_);
    tepal_filter* again = nullptr;
    TEPAL_FUZZ_EXPECT(!Ok(tepal_builder_insert(builder, &late.column)));
    TEPAL_FUZZ_EXPECT(!Ok(tepal_builder_finish(builder, &again)) && again == nullptr);
    tepal_builder_destroy(builder);
  }

  // At most once a run, too. A mapping outlives the name of its file.
  void WriteFile() {
    const Slot& slot = AnySlot();
    const auto num_keys = input_.Take<uint64_t>();
    const auto key_kind = static_cast<tepal_key_kind>(input_.TakeBelow(6));
    const bool nowhere = input_.TakeBelow(8) == 7;
    if (std::exchange(has_written_, true)) return;
    const std::string path = nowhere ? "/proc/nowhere/filter" : TemporaryPath();
    const bool written = Ok(tepal_filter_write_file(slot.filter, num_keys, key_kind, path.c_str()));
    TEPAL_FUZZ_EXPECT(!written || (slot.filter != nullptr && !nowhere));
    tepal_container_info info = TEPAL_CONTAINER_INFO_INIT;
    tepal_filter* mapped = nullptr;
    const tepal_status status = tepal_filter_map_file(path.c_str(), &info, &mapped);
    std::remove(path.c_str());
    TEPAL_FUZZ_EXPECT(written == (status == TEPAL_OK));
    TEPAL_FUZZ_EXPECT(!written || (info.num_keys == num_keys && info.key_kind == key_kind));
    Keep(status, mapped, slot.hashes);
  }

  // In memory, where there is such a directory: fsync takes longer on disks than all the rest.
  static std::string TemporaryPath() {
    const std::string directory = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    return directory + "/tepal_c_api_fuzzer." + std::to_string(::getpid());
  }

  // Null where something must be.
  void PassNulls() {
    const tepal_filter* filter = AnyFilter();
    const tepal_column empty = tepal_hashes_column(nullptr, 0);
    const tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
    tepal_filter* made = nullptr;
    for (const tepal_status status : {tepal_filter_create(nullptr, nullptr, &made),
                                      tepal_filter_create(&geometry, nullptr, nullptr),
                                      tepal_filter_view(&geometry, nullptr, 1, &made),
                                      tepal_filter_probe(filter, nullptr, nullptr, nullptr),
                                      tepal_filter_select(filter, &empty, nullptr, nullptr),
                                      tepal_filter_count(filter, &empty, nullptr),
                                      tepal_filter_prefetch(filter, nullptr),
                                      tepal_filter_may_contain_hash(filter, 0, nullptr),
                                      tepal_filter_union(nullptr, filter),
                                      tepal_filter_intersect(nullptr, filter),
                                      tepal_filter_merge(filter, nullptr, nullptr, &made),
                                      tepal_filter_merge(filter, filter, nullptr, nullptr),
                                      tepal_filter_surely_disjoint(filter, filter, nullptr),
                                      tepal_filter_fill_ratio(filter, nullptr),
                                      tepal_filter_estimate_keys(filter, nullptr),
                                      tepal_filter_shrink(filter, nullptr, nullptr, &made),
                                      tepal_builder_create(&geometry, nullptr, nullptr),
                                      tepal_builder_insert(nullptr, &empty),
                                      tepal_builder_finish(nullptr, &made),
                                      tepal_filter_serialize(filter, 0, TEPAL_KEYS_U64, nullptr),
                                      tepal_filter_write_file(filter, 0, TEPAL_KEYS_U64, nullptr),
                                      tepal_filter_map_file(nullptr, nullptr, &made),
                                      tepal_layout_name(TEPAL_LAYOUT_LINE512, nullptr),
                                      tepal_parse_layout(nullptr, nullptr),
                                      tepal_hash_keys(TEPAL_HASH_XXH3, 0, nullptr, nullptr),
                                      tepal_active_target(nullptr),
                                      tepal_available_targets(nullptr, nullptr),
                                      tepal_compiled_targets(nullptr, nullptr),
                                      tepal_force_target(nullptr)}) {
      TEPAL_FUZZ_EXPECT(!Ok(status) && status == TEPAL_INVALID_ARGUMENT && made == nullptr);
    }
    tepal_filter_destroy(nullptr);
    tepal_builder_destroy(nullptr);
    tepal_bytes_free(nullptr);
  }

  // At most once a run, too.
  void Plan() {
    tepal_workload workload = TEPAL_WORKLOAD_INIT;
    workload.num_keys = input_.Take<uint64_t>() >> input_.TakeBelow(64);
    workload.max_fpr = input_.Take<double>();
    workload.max_bytes = input_.Take<uint64_t>() >> input_.TakeBelow(64);
    workload.hit_rate = input_.TakeBelow(17) / 16.0;
    workload.work_saved_ns = input_.TakeBelow(2) == 0 ? 0 : input_.Take<float>();
    workload.needs = input_.TakeBelow(TEPAL_NEEDS_END + 1);
    if (std::exchange(has_planned_, true)) return;
    tepal_plan plan = TEPAL_PLAN_INIT;
    tepal_bytes explanation = TEPAL_BYTES_INIT;
    if (Ok(tepal_make_plan(&workload, &plan, &explanation))) {
      TEPAL_FUZZ_EXPECT(tepal_geometry_validate(&plan.geometry) == TEPAL_OK);
      TEPAL_FUZZ_EXPECT(plan.predicted_fpr >= 0 && plan.predicted_fpr <= 1);
      TEPAL_FUZZ_EXPECT(std::strlen(reinterpret_cast<const char*>(explanation.data)) ==
                        explanation.size);
    }
    tepal_bytes_free(&explanation);
  }

  static constexpr uint32_t kNumSlots = 3;

  FuzzInput input_;
  std::array<Slot, kNumSlots> slots_;
  tepal_bytes bytes_ = TEPAL_BYTES_INIT;
  Hashes bytes_hashes_;  // of the filter in them
  bool has_planned_ = false;
  bool has_sized_ = false;
  bool has_written_ = false;
};

}  // namespace
}  // namespace tepal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tepal::fuzz::Session(data, size).Run();
  return 0;
}
