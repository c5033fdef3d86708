// Any sequence of C calls, with null pointers and nonsense among the arguments: nothing crashes or
// leaks, a failure leaves the outputs alone and says why, and no inserted key is ever denied.
#include "tepal/c_api.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace tepal::fuzz {
namespace {

constexpr uint64_t kMaxBits = uint64_t{1} << 18;  // larger filters only cost time
constexpr uint32_t kMaxRows = 200;

// The rows of one call, of any kind; offsets of strings do not decrease, as C requires.
struct Column {
  explicit Column(FuzzInput& input) {
    const size_t num_rows = input.TakeBelow(kMaxRows);
    const std::span<const uint8_t> bytes = input.TakeBytes(input.TakeBelow(8 * kMaxRows));
    values.assign(num_rows, input.Take<uint32_t>());
    if (!bytes.empty() && num_rows != 0) {
      std::memcpy(values.data(), bytes.data(), std::min(bytes.size(), num_rows * sizeof(uint64_t)));
    }
    offsets32.assign(num_rows + 1, 0);
    for (size_t i = 0; i < num_rows; ++i) {
      offsets32[i + 1] = offsets32[i] + static_cast<int32_t>(values[i] % (sizeof(uint64_t) + 1));
    }
    offsets64.assign(offsets32.begin(), offsets32.end());
    column = tepal_make_column(static_cast<tepal_column_kind>(input.TakeBelow(7)), values.data(),
                               nullptr, num_rows);
    if (column.kind == TEPAL_COLUMN_STRINGS32) column.offsets = offsets32.data();
    if (column.kind == TEPAL_COLUMN_STRINGS64) column.offsets = offsets64.data();
    const uint32_t nonsense = input.TakeBelow(64);
    if (nonsense == 1) column.values = nullptr;
    if (nonsense == 2) column.offsets = nullptr;
    if (nonsense == 3) column.struct_size = input.Take<uint8_t>();
    if (nonsense < 32) return;
    validity.assign((num_rows + 8 + 7) / 8, input.Take<uint8_t>());
    column.validity = validity.data();
    column.validity_offset = nonsense % 8;
  }

  std::vector<uint64_t> values;  // also the bytes of the strings
  std::vector<int32_t> offsets32;
  std::vector<int64_t> offsets64;
  std::vector<uint8_t> validity;
  tepal_column column;
};

class Session {
 public:
  Session(const uint8_t* data, size_t size) : input_(data, size) {}
  ~Session() {
    for (tepal_filter* filter : filters_) tepal_filter_destroy(filter);
    tepal_bytes_free(&bytes_);
  }

  void Run() {
    while (!input_.empty()) Step();
  }

 private:
  void Step() {
    switch (input_.TakeBelow(12)) {
      case 0:
      case 1:
        return Create();
      case 2:
      case 3:
        return Insert();
      case 4:
        return Ask();
      case 5:
        return AskForOne();
      case 6:
        return WriteBytes();
      case 7:
      case 8:
        return ReadBytes();
      case 9:
        return Predict();
      case 10:
        return Copy();
      default:
        return Plan();
    }
  }

  // Every status has its number, and every failure a message.
  bool Ok(tepal_status status) {
    TEPAL_FUZZ_EXPECT(status >= TEPAL_OK && status <= TEPAL_IO_ERROR);
    TEPAL_FUZZ_EXPECT(status == TEPAL_OK || *tepal_last_error_message() != '\0');
    return status == TEPAL_OK;
  }

  tepal_filter* AnyFilter() { return filters_[input_.TakeBelow(kNumFilters)]; }

  // Puts the filter that a call has made into a slot. A call that fails must leave `made` alone.
  void Keep(tepal_status status, tepal_filter* made) {
    TEPAL_FUZZ_EXPECT(Ok(status) == (made != nullptr));
    if (made == nullptr) return;
    tepal_filter*& slot = filters_[input_.TakeBelow(kNumFilters)];
    tepal_filter_destroy(slot);
    slot = made;
  }

  tepal_geometry AnyGeometry() {
    const Geometry small = TakeGeometry(input_);
    tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
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
    Keep(tepal_filter_create(&geometry, nullptr, &made), made);
  }

  void Insert() {
    tepal_filter* filter = AnyFilter();
    const Column keys(input_);
    if (!Ok(tepal_filter_insert(filter, &keys.column))) return;
    size_t num_matches = 0;
    size_t num_valid = keys.column.num_rows;
    if (keys.column.validity != nullptr) {
      num_valid = 0;
      for (size_t i = 0; i < keys.column.num_rows; ++i) {
        const size_t bit = keys.column.validity_offset + i;
        num_valid += keys.validity[bit / 8] >> bit % 8 & 1;
      }
    }
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_count(filter, &keys.column, &num_matches)));
    TEPAL_FUZZ_EXPECT(num_matches == num_valid);
  }

  // Probe, select and count say the same.
  void Ask() {
    tepal_filter* filter = AnyFilter();
    const Column keys(input_);
    const size_t num_rows = keys.column.num_rows;
    std::vector<uint8_t> bitmap((num_rows + 7) / 8);
    std::vector<uint32_t> rows(num_rows);
    size_t num_set = 0;
    size_t num_rows_found = 0;
    size_t num_counted = 0;
    const bool ok = Ok(tepal_filter_probe(filter, &keys.column, bitmap.data(), &num_set));
    TEPAL_FUZZ_EXPECT(ok ==
                      Ok(tepal_filter_select(filter, &keys.column, rows.data(), &num_rows_found)));
    TEPAL_FUZZ_EXPECT(ok == Ok(tepal_filter_count(filter, &keys.column, &num_counted)));
    TEPAL_FUZZ_EXPECT(num_set == num_rows_found && num_set == num_counted);
    for (size_t i = 0; i < num_rows_found; ++i) {
      TEPAL_FUZZ_EXPECT((bitmap[rows[i] / 8] >> rows[i] % 8 & 1) != 0);
    }
    size_t num_again = 0;
    if (!ok) return;
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_select_from(filter, &keys.column, rows.data(), num_rows_found,
                                                  rows.data(), &num_again)));
    TEPAL_FUZZ_EXPECT(num_again == num_rows_found);
  }

  void AskForOne() {
    const tepal_filter* filter = AnyFilter();
    const uint64_t key = input_.Take<uint64_t>();
    bool maybe = false;
    const bool ok = Ok(tepal_filter_may_contain_u64(filter, key, &maybe));
    TEPAL_FUZZ_EXPECT(ok == (filter != nullptr));
    Ok(tepal_filter_may_contain_u32(filter, static_cast<uint32_t>(key), &maybe));
    Ok(tepal_filter_may_contain_hash(filter, key, &maybe));
    Ok(tepal_filter_may_contain_hash(filter, key, nullptr));
    const std::span<const uint8_t> text = input_.TakeBytes(input_.TakeBelow(300));
    Ok(tepal_filter_may_contain_string(filter, reinterpret_cast<const char*>(text.data()),
                                       text.size(), &maybe));
  }

  // Into bytes_, as a container or for Parquet.
  void WriteBytes() {
    const tepal_filter* filter = AnyFilter();
    tepal_bytes made = TEPAL_BYTES_INIT;
    const bool parquet = input_.TakeBelow(2) == 0;
    const auto key_kind = static_cast<tepal_key_kind>(input_.TakeBelow(6));
    const bool ok =
        Ok(parquet ? tepal_parquet_write(filter, &made)
                   : tepal_filter_serialize(filter, input_.Take<uint64_t>(), key_kind, &made));
    TEPAL_FUZZ_EXPECT(ok == (made.owner != nullptr));
    if (!ok) return;
    tepal_bytes_free(&bytes_);
    bytes_ = made;
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
    tepal_container_info info = TEPAL_CONTAINER_INFO_INIT;
    Ok(tepal_container_inspect(bytes.data(), bytes.size(), &info));
    const std::array readers = {tepal_filter_deserialize, tepal_parquet_read,
                                tepal_parquet_read_exactly};
    const auto reader = readers[input_.TakeBelow(readers.size())];
    tepal_filter* made = nullptr;
    Keep(reader(bytes.data(), bytes.size(), nullptr, &made), made);
    // A view lives no longer than the bytes.
    const AlignedCopy aligned(bytes);
    tepal_filter* view = nullptr;
    if (!Ok(tepal_filter_open(aligned.bytes().data(), bytes.size(), &view))) return;
    const Column keys(input_);
    TEPAL_FUZZ_EXPECT(tepal_filter_insert(view, &keys.column) != TEPAL_OK);
    size_t num_matches = 0;
    Ok(tepal_filter_count(view, &keys.column, &num_matches));
    tepal_filter_destroy(view);
  }

  void Predict() {
    tepal_geometry geometry = AnyGeometry();
    double fpr = -1;
    if (Ok(tepal_predict_fpr(&geometry, input_.Take<uint16_t>(), &fpr))) {
      TEPAL_FUZZ_EXPECT(fpr >= 0 && fpr <= 1);
    }
    const auto layout = static_cast<tepal_layout>(input_.Take<int8_t>());
    if (Ok(tepal_geometry_for(layout, input_.Take<uint64_t>(), input_.Take<double>(), &geometry))) {
      TEPAL_FUZZ_EXPECT(tepal_geometry_validate(&geometry) == TEPAL_OK);
    }
    const std::span<const uint8_t> text = input_.TakeBytes(input_.TakeBelow(20));
    const std::string name(text.begin(), text.end());
    tepal_layout parsed = -1;
    Ok(tepal_parse_layout(name.c_str(), &parsed));
    if (Ok(tepal_force_target(name.c_str()))) Ok(tepal_force_target("auto"));
  }

  void Copy() {
    const tepal_filter* filter = AnyFilter();
    tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
    const uint8_t* bytes = nullptr;
    size_t num_bytes = 0;
    if (!Ok(tepal_filter_geometry(filter, &geometry))) return;
    TEPAL_FUZZ_EXPECT(Ok(tepal_filter_bytes(filter, &bytes, &num_bytes)));
    num_bytes -= std::min<size_t>(num_bytes, input_.TakeBelow(8) / 7);
    tepal_filter* made = nullptr;
    Keep(tepal_filter_from_bytes(&geometry, bytes, num_bytes, nullptr, &made), made);
  }

  // At most once a run: a plan takes as long as all the rest.
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

  static constexpr uint32_t kNumFilters = 3;

  FuzzInput input_;
  std::array<tepal_filter*, kNumFilters> filters_{};
  tepal_bytes bytes_ = TEPAL_BYTES_INIT;
  bool has_planned_ = false;
};

}  // namespace
}  // namespace tepal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tepal::fuzz::Session(data, size).Run();
  return 0;
}
