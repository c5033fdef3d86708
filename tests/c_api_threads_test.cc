// threads_test.cc for the C interface: every call that only reads, from several threads at once,
// and a builder that they share.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/c_api.h"
#include "tests/c_api_util.h"
#include "tests/guarded_memory.h"
#include "tests/many_threads.h"
#include "tests/test_files.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

constexpr uint64_t kSeed = 32;
constexpr size_t kNumKeys = 2500;
const std::vector<uint64_t> kKeys = RandomValues(kSeed, kNumKeys);
const std::vector<uint64_t> kOtherKeys = RandomValues(kSeed + 1, kNumKeys);

tepal_column ColumnOf(const std::vector<uint64_t>& keys) {
  return tepal_u64_column(keys.data(), keys.size());
}

using Handle = std::unique_ptr<tepal_filter, decltype(&tepal_filter_destroy)>;

// What make(&filter) has made.
template <class Make>
Handle Made(const Make& make) {
  tepal_filter* filter = nullptr;
  EXPECT_EQ(make(&filter), TEPAL_OK) << tepal_last_error_message();
  return {filter, tepal_filter_destroy};
}

Handle FilterOf(const tepal_geometry& geometry, const std::vector<uint64_t>& keys) {
  Handle filter = Made([&](auto** out) { return tepal_filter_create(&geometry, nullptr, out); });
  const tepal_column column = ColumnOf(keys);
  EXPECT_EQ(tepal_filter_insert(filter.get(), &column), TEPAL_OK);
  return filter;
}

std::vector<uint8_t> BytesOf(const Handle& filter) {
  const uint8_t* bytes = nullptr;
  size_t num_bytes = 0;
  EXPECT_EQ(tepal_filter_bytes(filter.get(), &bytes, &num_bytes), TEPAL_OK);
  return {bytes, bytes + num_bytes};
}

// The same for bytes.
template <class Make>
std::vector<uint8_t> MadeBytes(const Make& make) {
  tepal_bytes bytes = TEPAL_BYTES_INIT;
  EXPECT_EQ(make(&bytes), TEPAL_OK) << tepal_last_error_message();
  const std::vector<uint8_t> copy(bytes.data, bytes.data + bytes.size);
  tepal_bytes_free(&bytes);
  return copy;
}

// What read(&output) has written to a T.
template <class T, class Read>
T Got(const Read& read, T output = {}) {
  EXPECT_EQ(read(&output), TEPAL_OK) << tepal_last_error_message();
  return output;
}

class CApiThreadsTest : public ::testing::Test {
 protected:
  const tepal_geometry geometry_ = GeometryOfBits(1 << 15);
  const tepal_geometry larger_geometry_ = GeometryOfBits(1 << 16);
  const Handle shared_ = FilterOf(geometry_, kKeys);
  const Handle larger_ = FilterOf(larger_geometry_, kOtherKeys);
  const tepal_filter* const filter_ = shared_.get();
};

TEST_F(CApiThreadsTest, ThreadsMayProbeOneFilterWithEveryKindOfColumn) {
  const std::vector<uint32_t> halves = RandomValues<uint32_t>(kSeed, kNumKeys);
  const std::string text(kNumKeys, 'x');
  std::vector<int32_t> offsets32(kNumKeys + 1);
  for (size_t i = 0; i <= kNumKeys; ++i) offsets32[i] = static_cast<int32_t>(i);
  const std::vector<int64_t> offsets64(offsets32.begin(), offsets32.end());
  std::vector<uint32_t> selection;
  for (uint32_t row = 0; row < kNumKeys; row += 3) selection.push_back(row);
  const tepal_column columns[] = {
      ColumnOf(kKeys),
      tepal_u32_column(halves.data(), kNumKeys),
      tepal_strings32_column(text.data(), offsets32.data(), kNumKeys),
      tepal_strings64_column(text.data(), offsets64.data(), kNumKeys),
      tepal_hashes_column(kOtherKeys.data(), kNumKeys),
  };
  for (const tepal_column& column : columns) {
    ExpectThreadsAgree([&] {
      std::vector<uint8_t> bitmap((kNumKeys + 7) / 8);
      std::vector<uint32_t> rows(kNumKeys), fewer(selection.size());
      std::vector<uint64_t> hashes(kNumKeys);
      if (column.kind == TEPAL_COLUMN_HASHES) {
        EXPECT_EQ(tepal_filter_prefetch(filter_, &column), TEPAL_OK);
      } else {
        EXPECT_EQ(tepal_hash_keys(TEPAL_HASH_XXH64, 0, &column, hashes.data()), TEPAL_OK);
      }
      const std::vector<size_t> counts = {
          Got<size_t>(
              [&](auto* out) { return tepal_filter_probe(filter_, &column, bitmap.data(), out); }),
          Got<size_t>(
              [&](auto* out) { return tepal_filter_select(filter_, &column, rows.data(), out); }),
          Got<size_t>([&](auto* out) {
            return tepal_filter_select_from(filter_, &column, selection.data(), selection.size(),
                                            fewer.data(), out);
          }),
          Got<size_t>([&](auto* out) { return tepal_filter_count(filter_, &column, out); }),
      };
      return std::tuple(bitmap, rows, fewer, hashes, counts);
    });
  }
}

TEST_F(CApiThreadsTest, ThreadsMayAskOneFilterForSingleKeysAndForWhatItIs) {
  ExpectThreadsAgree([&] {
    std::vector<bool> maybe;
    for (const uint64_t key : kOtherKeys) {
      const auto text = std::to_string(key);
      const auto half = static_cast<uint32_t>(key);
      maybe.push_back(
          Got<bool>([&](auto* out) { return tepal_filter_may_contain_u64(filter_, key, out); }));
      maybe.push_back(
          Got<bool>([&](auto* out) { return tepal_filter_may_contain_u32(filter_, half, out); }));
      maybe.push_back(Got<bool>([&](auto* out) {
        return tepal_filter_may_contain_string(filter_, text.data(), text.size(), out);
      }));
      maybe.push_back(
          Got<bool>([&](auto* out) { return tepal_filter_may_contain_hash(filter_, key, out); }));
    }
    const auto geometry = Got<tepal_geometry>(
        [&](auto* out) { return tepal_filter_geometry(filter_, out); }, TEPAL_GEOMETRY_INIT);
    const auto fill = Got<double>([&](auto* out) { return tepal_filter_fill_ratio(filter_, out); });
    const auto num_keys =
        Got<uint64_t>([&](auto* out) { return tepal_filter_estimate_keys(filter_, out); });
    return std::tuple(maybe, geometry.num_bits, BytesOf(shared_), fill, num_keys);
  });
}

// A filter may be read while others are made from it; each thread changes only its own.
TEST_F(CApiThreadsTest, ThreadsMayMakeFiltersFromTwo) {
  ExpectThreadsAgree([&] {
    const std::vector<uint8_t> bytes = BytesOf(shared_);
    const Handle copy = Made([&](auto** out) {
      return tepal_filter_from_bytes(&geometry_, bytes.data(), bytes.size(), nullptr, out);
    });
    const Handle both = FilterOf(geometry_, kKeys);
    EXPECT_EQ(tepal_filter_union(both.get(), larger_.get()), TEPAL_OK);
    EXPECT_EQ(tepal_filter_intersect(copy.get(), larger_.get()), TEPAL_OK);
    const Handle merged =
        Made([&](auto** out) { return tepal_filter_merge(filter_, larger_.get(), nullptr, out); });
    const Handle shrunk = Made(
        [&](auto** out) { return tepal_filter_shrink(larger_.get(), &geometry_, nullptr, out); });
    const bool disjoint = Got<bool>(
        [&](auto* out) { return tepal_filter_surely_disjoint(filter_, larger_.get(), out); });
    return std::tuple(BytesOf(copy), BytesOf(both), BytesOf(merged), BytesOf(shrunk), disjoint);
  });
}

TEST_F(CApiThreadsTest, ThreadsMayWriteAndReadBytesAndFiles) {
  const TemporaryDirectory directory;
  const std::string path = directory.PathOf("filter");
  const auto write = [&] {
    return tepal_filter_write_file(filter_, kNumKeys, TEPAL_KEYS_U64, path.c_str());
  };
  ASSERT_EQ(write(), TEPAL_OK);
  ExpectThreadsAgree([&] {
    const auto container = MadeBytes(
        [&](auto* out) { return tepal_filter_serialize(filter_, kNumKeys, TEPAL_KEYS_U64, out); });
    GuardedArray<uint8_t> aligned(container.size(), 0);
    std::copy(container.begin(), container.end(), aligned.data());
    const auto parquet = MadeBytes([&](auto* out) { return tepal_parquet_write(filter_, out); });
    const auto info = Got<tepal_container_info>(
        [&](auto* out) { return tepal_container_inspect(container.data(), container.size(), out); },
        TEPAL_CONTAINER_INFO_INIT);
    EXPECT_EQ(info.num_keys, kNumKeys);
    EXPECT_EQ(write(), TEPAL_OK);
    const auto expect_same = [&](const auto& make) {
      EXPECT_EQ(BytesOf(Made(make)), BytesOf(shared_));
    };
    expect_same([&](auto** out) { return tepal_filter_map_file(path.c_str(), nullptr, out); });
    expect_same([&](auto** out) {
      return tepal_filter_deserialize(container.data(), container.size(), nullptr, out);
    });
    expect_same(
        [&](auto** out) { return tepal_filter_open(aligned.data(), container.size(), out); });
    expect_same([&](auto** out) {
      return tepal_parquet_read(parquet.data(), parquet.size(), nullptr, out);
    });
    expect_same([&](auto** out) {
      return tepal_parquet_read_exactly(parquet.data(), parquet.size(), nullptr, out);
    });
    return std::tuple(container, parquet);
  });
}

TEST_F(CApiThreadsTest, ThreadsMayShareTheBytesBelowTheirViews) {
  const uint8_t* bytes = nullptr;
  size_t num_bytes = 0;
  ASSERT_EQ(tepal_filter_bytes(filter_, &bytes, &num_bytes), TEPAL_OK);
  const tepal_column column = ColumnOf(kOtherKeys);
  ExpectThreadsAgree([&] {
    const Handle view =
        Made([&](auto** out) { return tepal_filter_view(&geometry_, bytes, num_bytes, out); });
    return Got<size_t>([&](auto* out) { return tepal_filter_count(view.get(), &column, out); });
  });
}

TEST_F(CApiThreadsTest, ThreadsMayShareABuilder) {
  tepal_builder* builder = nullptr;
  ASSERT_EQ(tepal_builder_create(&geometry_, nullptr, &builder), TEPAL_OK);
  constexpr size_t kNumThreads = 4;
  constexpr size_t kShare = kNumKeys / kNumThreads;
  static_assert(kNumKeys % kNumThreads == 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kNumThreads; ++i) {
    threads.emplace_back([&builder, i] {
      const tepal_column mine = tepal_u64_column(kKeys.data() + i * kShare, kShare);
      EXPECT_EQ(tepal_builder_insert(builder, &mine), TEPAL_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Handle built = Made([&](auto** out) { return tepal_builder_finish(builder, out); });
  EXPECT_EQ(BytesOf(built), BytesOf(shared_));
  tepal_builder_destroy(builder);
}

std::vector<std::string> Listed(decltype(tepal_available_targets)& list) {
  const char* const* names = nullptr;
  size_t num_names = 0;
  EXPECT_EQ(list(&names, &num_names), TEPAL_OK);
  return {names, names + num_names};
}

TEST_F(CApiThreadsTest, ThreadsMayAskForGeometriesPlansAndNames) {
  tepal_workload work = TEPAL_WORKLOAD_INIT;
  work.num_keys = 1000;
  work.max_fpr = 0.01;
  ExpectThreadsAgree([&] {
    const auto plain = Got<tepal_geometry>(
        [](auto* out) { return tepal_geometry_for(TEPAL_LAYOUT_LINE512, 1000, 12, out); },
        TEPAL_GEOMETRY_INIT);
    const auto smallest = Got<tepal_geometry>(
        [](auto* out) { return tepal_geometry_for_rate(TEPAL_LAYOUT_STANDARD, 1000, 0.01, out); },
        TEPAL_GEOMETRY_INIT);
    EXPECT_EQ(tepal_geometry_validate(&smallest), TEPAL_OK);
    EXPECT_EQ(tepal_check_environment(), TEPAL_OK);
    tepal_plan plan = TEPAL_PLAN_INIT;
    const auto explained = MadeBytes([&](auto* out) { return tepal_make_plan(&work, &plan, out); });
    const std::string layout =
        Got<const char*>([](auto* out) { return tepal_layout_name(TEPAL_LAYOUT_LINE512, out); });
    const auto parsed =
        Got<tepal_layout>([&](auto* out) { return tepal_parse_layout(layout.c_str(), out); });
    const std::string target = Got<const char*>(tepal_active_target);
    const auto fpr =
        Got<double>([&](auto* out) { return tepal_predict_fpr(&smallest, 1000, out); });
    return std::tuple(plain.num_bits, smallest.num_bits, plan.geometry.num_bits, explained, layout,
                      parsed, target, fpr, Listed(tepal_available_targets),
                      Listed(tepal_compiled_targets), std::string(tepal_version()));
  });
}

TEST_F(CApiThreadsTest, EachThreadHasItsOwnLastError) {
  ExpectThreadsAgree([] {
    int foreign_messages = 0;
    const auto mine = std::to_string(reinterpret_cast<uintptr_t>(&foreign_messages));
    for (int i = 0; i < 1000; ++i) {
      const std::string unknown = "layout-" + mine + "-" + std::to_string(i);
      tepal_layout layout = TEPAL_LAYOUT_SPLIT256;
      EXPECT_EQ(tepal_parse_layout(unknown.c_str(), &layout), TEPAL_INVALID_ARGUMENT);
      std::this_thread::yield();  // now another thread's call may fail
      const std::string message = tepal_last_error_message();
      foreign_messages += message.find(unknown) == std::string::npos;
    }
    EXPECT_EQ(foreign_messages, 0);
    return foreign_messages;
  });
}

}  // namespace
}  // namespace tepal::testing
