// The kinds of columns: how to make keys, and how to pass them. And every const call of a filter,
// asked at once.
#ifndef TEPAL_TESTS_COLUMN_KINDS_H_
#define TEPAL_TESTS_COLUMN_KINDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tepal/columns.h"
#include "tepal/filter.h"
#include "tepal/hash.h"
#include "tests/test_util.h"

namespace tepal::testing {

struct EightByteKeys {
  using Keys = std::vector<uint64_t>;
  static Keys Make(uint64_t seed, size_t count) { return RandomValues<uint64_t>(seed, count); }
  static std::span<const uint64_t> Column(const Keys& keys) { return keys; }
};

struct FourByteKeys {
  using Keys = std::vector<uint32_t>;
  static Keys Make(uint64_t seed, size_t count) { return RandomValues<uint32_t>(seed, count); }
  static std::span<const uint32_t> Column(const Keys& keys) { return keys; }
};

struct StringKeys {
  using Keys = StringRows;
  static Keys Make(uint64_t seed, size_t count) { return Keys(RandomStrings(seed, count, 40)); }
  static StringColumn Column(const Keys& keys) { return keys.column32(); }
};

struct LongOffsetStringKeys : StringKeys {
  static StringColumn Column(const Keys& keys) { return keys.column64(); }
};

// A column of some of the rows, in the order of `rows`.
template <typename Key>
std::vector<Key> Gather(const std::vector<Key>& keys, std::span<const uint32_t> rows) {
  std::vector<Key> gathered;
  for (const uint32_t row : rows) gathered.push_back(keys[row]);
  return gathered;
}

inline StringRows Gather(const StringRows& keys, std::span<const uint32_t> rows) {
  const StringColumn column = keys.column32();
  std::vector<std::string> gathered;
  for (const uint32_t row : rows) gathered.emplace_back(column[row]);
  return StringRows(gathered);
}

template <class Column>
std::vector<uint64_t> HashesOf(const Geometry& geometry, const Column& column) {
  std::vector<uint64_t> hashes(column.size());
  HashKeys(geometry.hash, geometry.seed, column, hashes.data());
  return hashes;
}

// What a filter says about a column.
struct Answers {
  std::vector<uint8_t> bitmap;
  std::vector<uint32_t> rows;                 // of Select
  std::vector<uint32_t> rows_of_every_third;  // of Select with a selection
  std::vector<bool> single;                   // of MayContain, for the first rows
  size_t probed = 0;
  size_t count = 0;

  bool operator==(const Answers&) const = default;
};

// Whether all calls have said the same about the rows of one column. (MayContain knows no nulls.)
inline void ExpectOneAnswer(const Answers& answers, size_t num_rows) {
  std::vector<uint32_t> rows, rows_of_every_third;
  for (uint32_t row = 0; row < num_rows; ++row) {
    if (!GetBit(answers.bitmap.data(), row)) continue;
    rows.push_back(row);
    if (row % 3 == 0) rows_of_every_third.push_back(row);
    EXPECT_TRUE(row >= answers.single.size() || answers.single[row]) << row;
  }
  EXPECT_EQ(answers.rows, rows);
  EXPECT_EQ(answers.rows_of_every_third, rows_of_every_third);
  EXPECT_EQ(answers.count, rows.size());
  EXPECT_EQ(answers.probed, rows.size());
}

// The arguments are the calls of a filter. Those for hashes have other names than those for keys.
template <class Probe, class Select, class SelectFrom, class Count, class MayContain>
Answers Collect(size_t num_rows, const Probe& probe, const Select& select,
                const SelectFrom& select_from, const Count& count, const MayContain& may_contain) {
  Answers answers;
  answers.bitmap.resize((num_rows + 7) / 8);
  answers.probed = probe(answers.bitmap.data());
  answers.rows.resize(num_rows);
  answers.rows.resize(select(answers.rows.data()));
  for (uint32_t row = 0; row < num_rows; row += 3) answers.rows_of_every_third.push_back(row);
  std::vector<uint32_t>& third = answers.rows_of_every_third;
  third.resize(select_from(std::span<const uint32_t>(third), third.data()));
  answers.count = count();
  for (size_t row = 0; row < std::min<size_t>(num_rows, 50); ++row) {
    answers.single.push_back(may_contain(row));
  }
  return answers;
}

template <class Column>
Answers Ask(const ProbeCalls& filter, const Column& column, const Validity& validity = {}) {
  return Collect(
      column.size(), [&](uint8_t* bitmap) { return filter.Probe(column, bitmap, validity); },
      [&](uint32_t* rows) { return filter.Select(column, rows, validity); },
      [&](std::span<const uint32_t> selection, uint32_t* rows) {
        return filter.Select(column, selection, rows, validity);
      },
      [&] { return filter.Count(column, validity); },
      [&](size_t row) { return filter.MayContain(column[row]); });
}

inline Answers AskHashes(const ProbeCalls& filter, std::span<const uint64_t> hashes,
                         const Validity& validity = {}) {
  return Collect(
      hashes.size(), [&](uint8_t* bitmap) { return filter.ProbeHashes(hashes, bitmap, validity); },
      [&](uint32_t* rows) { return filter.SelectHashes(hashes, rows, validity); },
      [&](std::span<const uint32_t> selection, uint32_t* rows) {
        return filter.SelectHashes(hashes, selection, rows, validity);
      },
      [&] { return filter.CountHashes(hashes, validity); },
      [&](size_t row) { return filter.MayContainHash(hashes[row]); });
}

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_COLUMN_KINDS_H_
