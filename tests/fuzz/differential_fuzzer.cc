// Random geometry, columns, batches, nulls, selections, prefetching and target: kernels and scalar
// reference make the same bytes and give the same answers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "dispatch/bitmap.h"
#include "dispatch/c_api_convert.h"
#include "dispatch/filter_access.h"
#include "kernels/kernel_tables.h"
#include "kernels/reference.h"
#include "tepal/c_api.h"
#include "tepal/filter.h"
#include "tepal/hash.h"
#include "tepal/targets.h"
#include "tests/fuzz/fuzz_input.h"

namespace tepal::fuzz {
namespace {

constexpr uint32_t kMaxKeys = 300;       // different ones in a column: the reference is slow
constexpr uint32_t kMaxManyRows = 5000;  // now and then they are repeated to fill several chunks

uint64_t LibraryHash(const Geometry& geometry, const void* bytes, size_t size) {
  return geometry.hash == HashKind::kXxh3 ? XXH3_64bits_withSeed(bytes, size, geometry.seed)
                                          : XXH64(bytes, size, geometry.seed);
}

// A string that only depends on the value: mostly short, and now and then longer than any case that
// xxHash distinguishes.
std::string TextOf(uint64_t value) {
  std::string text(value % 32 == 0 ? value % 301 : value % 19, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(value >> 8 * (i % 8));
  return text;
}

// Keys of one kind from a random sequence. Some are bytes of the input, for its mutations, and some
// are known from an earlier column, to be found again.
class Keys {
 public:
  Keys(FuzzInput& input, tepal_column_kind kind, std::span<const uint64_t> known,
       std::mt19937_64& engine)
      : kind_(kind), values_(input.TakeBelow(kMaxKeys)) {
    const uint32_t known_share = known.empty() ? 0 : input.TakeBelow(5);  // in quarters
    for (uint64_t& value : values_) {
      const uint64_t random = engine();
      value = random % 4 < known_share ? known[random / 4 % known.size()] : random;
    }
    const size_t num_given = std::min<size_t>(input.TakeBelow(8), values_.size());
    for (size_t i = 0; i < num_given; ++i) values_[i] = input.Take<uint64_t>();
  }

  tepal_column_kind kind() const { return kind_; }
  const std::vector<uint64_t>& values() const { return values_; }

  uint64_t Hash(const Geometry& geometry, uint64_t value) const {
    if (kind_ == TEPAL_COLUMN_HASHES) return value;
    if (kind_ == TEPAL_COLUMN_U64) return LibraryHash(geometry, &value, sizeof(value));
    const auto half = static_cast<uint32_t>(value);
    if (kind_ == TEPAL_COLUMN_U32) return LibraryHash(geometry, &half, sizeof(half));
    const std::string text = TextOf(value);
    return LibraryHash(geometry, text.data(), text.size());
  }

  // One key at a time.
  bool MayContain(const Filter& filter, uint64_t value) const {
    if (kind_ == TEPAL_COLUMN_HASHES) return filter.MayContainHash(value);
    if (kind_ == TEPAL_COLUMN_U64) return filter.MayContain(value);
    if (kind_ == TEPAL_COLUMN_U32) return filter.MayContain(static_cast<uint32_t>(value));
    return filter.MayContain(std::string_view(TextOf(value)));
  }

 private:
  tepal_column_kind kind_;
  std::vector<uint64_t> values_;
};

// Which key is in which row: each key once, or many rows of a few keys.
std::vector<uint32_t> TakeRows(FuzzInput& input, size_t num_keys, std::mt19937_64& engine) {
  std::vector<uint32_t> rows(num_keys);
  for (uint32_t i = 0; i < num_keys; ++i) rows[i] = i;
  if (num_keys == 0 || input.TakeBelow(16) != 1) return rows;
  rows.resize(num_keys + input.TakeBelow(kMaxManyRows));
  for (size_t i = num_keys; i < rows.size(); ++i) {
    rows[i] = static_cast<uint32_t>(engine() % num_keys);
  }
  return rows;
}

// The rows as an engine would hand them over. Each array ends with its last row, so that
// AddressSanitizer sees every read behind it.
class ColumnData {
 public:
  ColumnData(const Keys& keys, std::span<const uint32_t> rows) : kind_(keys.kind()) {
    if (kind_ == TEPAL_COLUMN_STRINGS32 || kind_ == TEPAL_COLUMN_STRINGS64) {
      FillStrings(keys, rows);
    } else if (kind_ == TEPAL_COLUMN_U32) {
      halves_.reserve(rows.size());
      for (const uint32_t row : rows) halves_.push_back(static_cast<uint32_t>(keys.values()[row]));
    } else {
      words_.reserve(rows.size());
      for (const uint32_t row : rows) words_.push_back(keys.values()[row]);
    }
  }

  // Rows begin .. begin + count.
  tepal_column Slice(size_t begin, size_t count, const Validity& validity) const {
    tepal_column column = tepal_make_column(kind_, nullptr, nullptr, count);
    switch (kind_) {
      case TEPAL_COLUMN_U32:
        column.values = halves_.data() + begin;
        break;
      case TEPAL_COLUMN_STRINGS32:
        column.values = text_.data();
        column.offsets = offsets32_.data() + begin;
        break;
      case TEPAL_COLUMN_STRINGS64:
        column.values = text_.data();
        column.offsets = offsets64_.data() + begin;
        break;
      default:
        column.values = words_.data() + begin;
    }
    column.validity = validity.bits;
    column.validity_offset = validity.offset + begin;
    return column;
  }

 private:
  void FillStrings(const Keys& keys, std::span<const uint32_t> rows) {
    std::string text = "not of the first row";
    offsets64_.reserve(rows.size() + 1);
    offsets64_.push_back(static_cast<int64_t>(text.size()));
    for (const uint32_t row : rows) {
      text += TextOf(keys.values()[row]);
      offsets64_.push_back(static_cast<int64_t>(text.size()));
    }
    text_.assign(text.begin(), text.end());
    for (const int64_t offset : offsets64_) offsets32_.push_back(static_cast<int32_t>(offset));
  }

  tepal_column_kind kind_;
  std::vector<uint64_t> words_;
  std::vector<uint32_t> halves_;
  std::vector<char> text_;
  std::vector<int32_t> offsets32_;
  std::vector<int64_t> offsets64_;
};

// Which rows are not null: all, or as a bitmap of the input's bytes and of random ones says.
class Nulls {
 public:
  Nulls(FuzzInput& input, size_t num_rows, std::mt19937_64& engine) : offset_(input.TakeBelow(9)) {
    if (input.TakeBelow(2) == 0) return;
    constexpr size_t kMaxGiven = 32;
    const auto always_valid = input.Take<uint8_t>();  // these bits of each byte
    bits_.resize((offset_ + num_rows + 7) / 8);
    for (uint8_t& byte : bits_) byte = static_cast<uint8_t>(engine() | always_valid);
    const auto given = input.TakeBytes(std::min(bits_.size() / 2, kMaxGiven));
    std::copy(given.begin(), given.end(), bits_.begin());
  }
  Validity validity() const { return {bits_.empty() ? nullptr : bits_.data(), offset_}; }
  bool IsValid(size_t row) const { return bits_.empty() || GetBit(bits_.data(), offset_ + row); }

 private:
  size_t offset_;
  std::vector<uint8_t> bits_;
};

// Rows of keys, some of them null, and the hash that the xxHash library has for each.
struct Column {
  Column(FuzzInput& input, const Geometry& geometry, tepal_column_kind kind,
         std::span<const uint64_t> known, std::mt19937_64& engine)
      : keys(input, kind, known, engine),
        rows(TakeRows(input, keys.values().size(), engine)),
        data(keys, rows),
        nulls(input, rows.size(), engine) {
    std::vector<uint64_t> key_hashes;
    for (const uint64_t value : keys.values()) key_hashes.push_back(keys.Hash(geometry, value));
    hashes.reserve(rows.size());
    for (const uint32_t row : rows) hashes.push_back(key_hashes[row]);
  }

  size_t size() const { return rows.size(); }
  tepal_column all() const { return data.Slice(0, size(), nulls.validity()); }

  Keys keys;
  std::vector<uint32_t> rows;  // which of the keys
  ColumnData data;
  Nulls nulls;
  std::vector<uint64_t> hashes;
};

// What the reference says.
struct Answers {
  Answers(const Column& column, const Filter& filter) : bitmap((column.size() + 7) / 8) {
    std::vector<bool> key_answers;
    for (size_t key = 0; key < column.keys.values().size(); ++key) {  // rows begin with each key
      key_answers.push_back(
          reference::MayContain(filter.geometry(), column.hashes[key], filter.bytes().data()));
    }
    for (uint32_t row = 0; row < column.size(); ++row) {
      maybe.push_back(key_answers[column.rows[row]]);
      if (!maybe[row] || !column.nulls.IsValid(row)) continue;
      bitmap[row / 8] = static_cast<uint8_t>(bitmap[row / 8] | 1u << row % 8);
      rows.push_back(row);
    }
  }
  std::vector<bool> maybe;      // of rows that are null, too
  std::vector<uint8_t> bitmap;  // not of those
  std::vector<uint32_t> rows;
};

class Session {
 public:
  Session(FuzzInput& input, Filter filter)
      : input_(input),
        filter_(std::move(filter)),
        engine_(input.Take<uint32_t>()),
        expected_(filter_.bytes().size()) {}

  void Run() {
    constexpr int kMaxRounds = 3;
    for (int round = 0; round < kMaxRounds && (round == 0 || !input_.empty()); ++round) {
      ForcePrefetch();
      Insert();
      ForcePrefetch();
      Probe();
    }
    ExpectBytes();
  }

 private:
  const Geometry& geometry() const { return filter_.geometry(); }

  void ExpectBytes() const {
    const std::span<const uint8_t> bytes = filter_.bytes();
    TEPAL_FUZZ_EXPECT(std::equal(expected_.begin(), expected_.end(), bytes.begin(), bytes.end()));
  }

  // Kernels ask for memory ahead of its use as they otherwise do for filters of many MiB. Only the
  // filter's pointer to its shape is const, the object is not.
  void ForcePrefetch() {
    auto& shape = const_cast<FilterShape&>(FilterAccess::Shape(filter_));
    shape.prefetch = static_cast<Prefetch>(input_.TakeBelow(4));
    if (shape.table == nullptr) return;
    const_cast<SlotTable*>(shape.table)->prefetch_first = input_.TakeBelow(2) == 1;
  }

  // Half the time of the kind before.
  Column TakeColumn() {
    if (input_.TakeBelow(2) == 1) kind_ = static_cast<tepal_column_kind>(1 + input_.TakeBelow(5));
    return Column(input_, geometry(), kind_, known_, engine_);
  }

  // Inserts into both, in batches of any size.
  void Insert() {
    const Column column = TakeColumn();
    for (size_t begin = 0; begin < column.size();) {
      const auto left = static_cast<uint32_t>(column.size() - begin);
      const size_t count = left - input_.TakeBelow(left);
      InsertBatch(column, begin, count);
      begin += count;
    }
    std::vector<bool> inserted(column.keys.values().size());
    for (size_t row = 0; row < column.size(); ++row) {
      if (!column.nulls.IsValid(row) || inserted[column.rows[row]]) continue;
      inserted[column.rows[row]] = true;
      reference::Insert(geometry(), column.hashes[row], expected_.data());
    }
    known_ = column.keys.values();
    ExpectBytes();
  }

  void InsertBatch(const Column& column, size_t begin, size_t count) {
    if (input_.TakeBelow(4) == 1) {
      const Validity all = column.nulls.validity();
      const auto hashes = std::span(column.hashes).subspan(begin, count);
      return filter_.InsertHashes(hashes, {all.bits, all.offset + begin});
    }
    VisitColumn(
        column.data.Slice(begin, count, column.nulls.validity()),
        [&](const auto& keys, Validity valid) { filter_.Insert(keys, valid); },
        [&](auto hashes, Validity valid) { filter_.InsertHashes(hashes, valid); });
  }

  void Probe() {
    const Column column = TakeColumn();
    const Answers answers(column, filter_);
    ProbeKeys(column, answers);
    ProbeHashes(column, answers);
    SelectFrom(column, answers);
    ProbeSingleKeys(column, answers);
  }

  void ProbeKeys(const Column& column, const Answers& answers) const {
    std::vector<uint8_t> bitmap(answers.bitmap.size());
    std::vector<uint32_t> rows(column.size());
    std::vector<uint64_t> hashes(column.size());
    size_t num_set = 0;
    size_t num_counted = 0;
    VisitColumn(
        column.all(),
        [&](const auto& keys, Validity valid) {
          num_set = filter_.Probe(keys, bitmap.data(), valid);
          num_counted = filter_.Count(keys, valid);
          rows.resize(filter_.Select(keys, rows.data(), valid));
          HashKeys(geometry().hash, geometry().seed, keys, hashes.data());
        },
        [&](auto given, Validity valid) {
          num_set = filter_.ProbeHashes(given, bitmap.data(), valid);
          num_counted = filter_.CountHashes(given, valid);
          rows.resize(filter_.SelectHashes(given, rows.data(), valid));
          hashes.assign(given.begin(), given.end());
        });
    TEPAL_FUZZ_EXPECT(num_set == answers.rows.size() && num_counted == num_set);
    TEPAL_FUZZ_EXPECT(bitmap == answers.bitmap);
    TEPAL_FUZZ_EXPECT(rows == answers.rows);
    TEPAL_FUZZ_EXPECT(hashes == column.hashes);
  }

  void ProbeHashes(const Column& column, const Answers& answers) const {
    const Validity valid = column.nulls.validity();
    filter_.PrefetchHashes(column.hashes);
    std::vector<uint8_t> bitmap(answers.bitmap.size());
    TEPAL_FUZZ_EXPECT(filter_.ProbeHashes(column.hashes, bitmap.data(), valid) ==
                      answers.rows.size());
    TEPAL_FUZZ_EXPECT(bitmap == answers.bitmap);
    TEPAL_FUZZ_EXPECT(filter_.CountHashes(column.hashes, valid) == answers.rows.size());
    std::vector<uint32_t> rows(column.size());
    rows.resize(filter_.SelectHashes(column.hashes, rows.data(), valid));
    TEPAL_FUZZ_EXPECT(rows == answers.rows);
  }

  // From a selection in any order, with rows that are null, do not match, or come twice.
  void SelectFrom(const Column& column, const Answers& answers) {
    if (column.size() == 0) return;
    const auto num_rows = static_cast<uint32_t>(column.size());
    std::vector<uint32_t> selection(input_.TakeBelow(num_rows + num_rows / 2 + 1));
    for (uint32_t& row : selection) row = static_cast<uint32_t>(engine_() % num_rows);
    std::vector<uint32_t> expected = selection;
    std::erase_if(expected,
                  [&](uint32_t row) { return !answers.maybe[row] || !column.nulls.IsValid(row); });
    std::vector<uint32_t> rows(selection.size());
    VisitColumn(
        column.all(),
        [&](const auto& keys, Validity valid) {
          rows.resize(filter_.Select(keys, selection, rows.data(), valid));
        },
        [&](auto hashes, Validity valid) {
          rows.resize(filter_.SelectHashes(hashes, selection, rows.data(), valid));
        });
    TEPAL_FUZZ_EXPECT(rows == expected);
    // In place.
    selection.resize(
        filter_.SelectHashes(column.hashes, selection, selection.data(), column.nulls.validity()));
    TEPAL_FUZZ_EXPECT(selection == expected);
  }

  void ProbeSingleKeys(const Column& column, const Answers& answers) {
    if (column.size() == 0) return;
    for (uint32_t i = input_.TakeBelow(6); i > 0; --i) {
      const size_t row = engine_() % column.size();
      const uint64_t value = column.keys.values()[column.rows[row]];
      TEPAL_FUZZ_EXPECT(column.keys.MayContain(filter_, value) == answers.maybe[row]);
      TEPAL_FUZZ_EXPECT(filter_.MayContainHash(column.hashes[row]) == answers.maybe[row]);
    }
  }

  FuzzInput& input_;
  Filter filter_;
  std::mt19937_64 engine_;         // expands few bytes of the input to many
  std::vector<uint8_t> expected_;  // the bytes, as the reference makes them
  std::vector<uint64_t> known_;    // what was inserted last
  tepal_column_kind kind_ = TEPAL_COLUMN_U64;
};

}  // namespace
}  // namespace tepal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tepal;
  fuzz::FuzzInput input(data, size);
  static const std::vector<std::string> kTargets = AvailableTargets();
  const std::string& target = kTargets[input.TakeBelow(static_cast<uint32_t>(kTargets.size()))];
  TEPAL_FUZZ_EXPECT(ForceTarget(target).ok() && ActiveTarget() == target);
  const Geometry geometry = fuzz::TakeGeometry(input);
  Result<Filter> filter = Filter::Create(geometry);
  TEPAL_FUZZ_EXPECT(filter.ok() == geometry.Validate().ok());
  if (filter.ok()) fuzz::Session(input, std::move(*filter)).Run();
  return 0;
}
