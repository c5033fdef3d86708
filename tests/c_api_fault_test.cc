// fault_test.cc for the C interface: every allocation of every call fails once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/c_api.h"
#include "tests/c_api_util.h"
#include "tests/failing_memory.h"
#include "tests/guarded_memory.h"
#include "tests/test_files.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

const std::vector<uint64_t> kKeys = RandomValues(1, 1000);

void Release(tepal_filter* filter) { tepal_filter_destroy(filter); }
void Release(tepal_builder* builder) { tepal_builder_destroy(builder); }
void Release(tepal_bytes bytes) { tepal_bytes_free(&bytes); }
template <class T>
void Release(const T& /*value*/) {}

// A C call that has written to `output`, which was like `before`, if and only if it says so.
template <class T>
StatusCode CheckOutput(tepal_status status, const T& before, const T& output) {
  if (status == TEPAL_OK) {
    Release(output);
  } else {
    EXPECT_EQ(std::memcmp(&output, &before, sizeof(T)), 0) << "a failure with an output";
  }
  const bool no_memory = status == TEPAL_OUT_OF_MEMORY;
  EXPECT_EQ(std::strstr(tepal_last_error_message(), "memory") != nullptr, no_memory);
  return CodeOf(status);
}

// One row of a table: `run` with an output that is like `before`.
template <class T, class Run>
NamedCall WithOutput(const char* name, T before, const Run& run) {
  return {name, [before, run] {
            T output;
            std::memcpy(&output, &before, sizeof(T));
            static_cast<void>(tepal_layout_name(0, nullptr));  // another message, without memory
            return CheckOutput(run(&output), before, output);
          }};
}

template <class Run>
NamedCall MakesFilter(const char* name, const Run& run) {
  return WithOutput(name, static_cast<tepal_filter*>(nullptr), run);
}

template <class Run>
NamedCall MakesBytes(const char* name, const Run& run) {
  return WithOutput(name, tepal_bytes TEPAL_BYTES_INIT, run);
}

template <class Run>
NamedCall WithoutOutput(const char* name, const Run& run) {
  return WithOutput(name, 0, [run](int*) { return run(); });
}

// The names are listed once a process, and no other test asks for them: each call must be the
// first.
TEST(NoMemoryTest, IsReportedByTheFirstListsOfTargetsInC) {
  for (const auto list : {tepal_compiled_targets, tepal_available_targets}) {
    int64_t num_good = 0;
    for (;; ++num_good) {
      const char* const* names = nullptr;
      size_t num_names = 0;
      const int64_t num_live = NumLiveAllocations();
      tepal_status status;
      {
        const FailingMemory failing(num_good, /*once=*/false);
        status = list(&names, &num_names);
      }
      if (status == TEPAL_OK) break;
      EXPECT_EQ(status, TEPAL_OUT_OF_MEMORY);
      EXPECT_TRUE(names == nullptr && num_names == 0 && NumLiveAllocations() == num_live)
          << num_good;
    }
    EXPECT_GT(num_good, 1);
  }
}

class NoMemoryInCTest : public ::testing::Test {
 protected:
  static tepal_filter* MakeFilterInC(const tepal_geometry& geometry) {
    tepal_filter* filter = nullptr;
    const tepal_column keys = tepal_u64_column(kKeys.data(), kKeys.size());
    EXPECT_EQ(tepal_filter_create(&geometry, nullptr, &filter), TEPAL_OK);
    EXPECT_EQ(tepal_filter_insert(filter, &keys), TEPAL_OK);
    return filter;
  }

  std::span<const uint8_t> Bytes() const {
    const uint8_t* bytes = nullptr;
    size_t num_bytes = 0;
    EXPECT_EQ(tepal_filter_bytes(filter_, &bytes, &num_bytes), TEPAL_OK);
    return {bytes, num_bytes};
  }

  ~NoMemoryInCTest() override {
    tepal_filter_destroy(filter_);
    tepal_filter_destroy(larger_);
  }

  const tepal_geometry geometry_ = GeometryOfBits(1 << 14);
  tepal_filter* const filter_ = MakeFilterInC(geometry_);
  tepal_filter* const larger_ = MakeFilterInC(GeometryOfBits(1 << 15));
  const tepal_column keys_ = tepal_u64_column(kKeys.data(), kKeys.size());
};

TEST_F(NoMemoryInCTest, IsReportedByFilters) {
  const std::span<const uint8_t> bytes = Bytes();
  ExpectAllSurvive({
      MakesFilter("create",
                  [&](tepal_filter** f) { return tepal_filter_create(&geometry_, nullptr, f); }),
      MakesFilter("from_bytes",
                  [&](tepal_filter** f) {
                    return tepal_filter_from_bytes(&geometry_, bytes.data(), bytes.size(), nullptr,
                                                   f);
                  }),
      MakesFilter("view",
                  [&](tepal_filter** f) {
                    return tepal_filter_view(&geometry_, bytes.data(), bytes.size(), f);
                  }),
      MakesFilter(
          "merge",
          [&](tepal_filter** f) { return tepal_filter_merge(filter_, larger_, nullptr, f); }),
      MakesFilter(
          "shrink",
          [&](tepal_filter** f) { return tepal_filter_shrink(larger_, &geometry_, nullptr, f); }),
      WithoutOutput("union", [&] { return tepal_filter_union(filter_, larger_); }),
      WithoutOutput("intersect", [&] { return tepal_filter_intersect(filter_, larger_); }),
      WithOutput("surely_disjoint", true,
                 [&](bool* out) { return tepal_filter_surely_disjoint(filter_, larger_, out); }),
  });
}

TEST_F(NoMemoryInCTest, IsReportedByGeometriesAndPlans) {
  tepal_workload work = TEPAL_WORKLOAD_INIT;
  work.num_keys = 10;
  work.max_bytes = 64;
  struct Explained {
    tepal_plan plan = TEPAL_PLAN_INIT;
    tepal_bytes text = TEPAL_BYTES_INIT;
  };
  ExpectAllSurvive({
      WithOutput("geometry_for", geometry_,
                 [](tepal_geometry* out) {
                   return tepal_geometry_for(TEPAL_LAYOUT_VARIABLE, 1000, 12, out);
                 }),
      WithOutput("geometry_for_rate", geometry_,
                 [](tepal_geometry* out) {
                   return tepal_geometry_for_rate(TEPAL_LAYOUT_STANDARD, 10, 0.01, out);
                 }),
      WithoutOutput("geometry_validate", [&] { return tepal_geometry_validate(&geometry_); }),
      WithOutput("predict_fpr", -1.0,
                 [&](double* out) { return tepal_predict_fpr(&geometry_, 1000, out); }),
      WithOutput("parse_layout", tepal_layout{-1},
                 [](tepal_layout* out) { return tepal_parse_layout("line512", out); }),
      WithOutput("make_plan", tepal_plan TEPAL_PLAN_INIT,
                 [&](tepal_plan* out) { return tepal_make_plan(&work, out, nullptr); }),
      WithOutput("make_plan, explained", Explained(),
                 [&](Explained* out) {
                   const tepal_status status = tepal_make_plan(&work, &out->plan, &out->text);
                   if (status == TEPAL_OK) tepal_bytes_free(&out->text);
                   return status;
                 }),
  });
}

TEST_F(NoMemoryInCTest, IsReportedByContainersAndParquet) {
  tepal_bytes container = TEPAL_BYTES_INIT;
  tepal_bytes parquet = TEPAL_BYTES_INIT;
  ASSERT_EQ(tepal_filter_serialize(filter_, 0, TEPAL_KEYS_UNKNOWN, &container), TEPAL_OK);
  ASSERT_EQ(tepal_parquet_write(filter_, &parquet), TEPAL_OK);
  GuardedArray<uint8_t> aligned(container.size, 0);
  std::copy_n(container.data, container.size, aligned.data());
  ExpectAllSurvive({
      MakesBytes("serialize",
                 [&](tepal_bytes* out) {
                   return tepal_filter_serialize(filter_, 0, TEPAL_KEYS_UNKNOWN, out);
                 }),
      WithOutput("inspect", tepal_container_info TEPAL_CONTAINER_INFO_INIT,
                 [&](tepal_container_info* out) {
                   return tepal_container_inspect(container.data, container.size, out);
                 }),
      MakesFilter("deserialize",
                  [&](tepal_filter** f) {
                    return tepal_filter_deserialize(container.data, container.size, nullptr, f);
                  }),
      MakesFilter(
          "open",
          [&](tepal_filter** f) { return tepal_filter_open(aligned.data(), container.size, f); }),
      MakesBytes("parquet_write",
                 [&](tepal_bytes* out) { return tepal_parquet_write(filter_, out); }),
      MakesFilter("parquet_read",
                  [&](tepal_filter** f) {
                    return tepal_parquet_read(parquet.data, parquet.size, nullptr, f);
                  }),
      MakesFilter("parquet_read_exactly",
                  [&](tepal_filter** f) {
                    return tepal_parquet_read_exactly(parquet.data, parquet.size, nullptr, f);
                  }),
  });
  tepal_bytes_free(&container);
  tepal_bytes_free(&parquet);
}

TEST_F(NoMemoryInCTest, IsReportedByBuilders) {
  ExpectAllSurvive({
      WithOutput("create", static_cast<tepal_builder*>(nullptr),
                 [&](tepal_builder** b) { return tepal_builder_create(&geometry_, nullptr, b); }),
      MakesFilter("create, insert, finish",
                  [&](tepal_filter** f) {
                    tepal_builder* builder = nullptr;
                    tepal_status status = tepal_builder_create(&geometry_, nullptr, &builder);
                    if (status == TEPAL_OK) status = tepal_builder_insert(builder, &keys_);
                    if (status == TEPAL_OK) status = tepal_builder_finish(builder, f);
                    tepal_builder_destroy(builder);
                    return status;
                  }),
  });
}

// Nothing is lost: more keys may come, and a later call gives the filter with all of them.
TEST_F(NoMemoryInCTest, LeavesABuilderThatCanBeFinishedLater) {
  const std::vector<uint8_t> expected(Bytes().begin(), Bytes().end());
  const tepal_column first = tepal_u64_column(kKeys.data(), kKeys.size() / 2);
  const tepal_column rest = tepal_u64_column(kKeys.data() + kKeys.size() / 2, kKeys.size() / 2);
  tepal_builder* builder = nullptr;
  tepal_filter* built = nullptr;
  ASSERT_EQ(tepal_builder_create(&geometry_, nullptr, &builder), TEPAL_OK);
  ASSERT_EQ(tepal_builder_insert(builder, &first), TEPAL_OK);
  const int64_t num_live = NumLiveAllocations();
  for (int i = 0; i < 2; ++i) {
    const FailingMemory failing(0, /*once=*/false);
    EXPECT_EQ(tepal_builder_finish(builder, &built), TEPAL_OUT_OF_MEMORY);
  }
  EXPECT_TRUE(built == nullptr && NumLiveAllocations() == num_live);
  EXPECT_EQ(tepal_builder_insert(builder, &rest), TEPAL_OK);
  ASSERT_EQ(tepal_builder_finish(builder, &built), TEPAL_OK) << tepal_last_error_message();
  const uint8_t* bytes = nullptr;
  size_t num_bytes = 0;
  ASSERT_EQ(tepal_filter_bytes(built, &bytes, &num_bytes), TEPAL_OK);
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + num_bytes), expected);
  tepal_filter_destroy(built);
  tepal_builder_destroy(builder);
}

// What fails needs memory for its message.
TEST_F(NoMemoryInCTest, WhileAnErrorIsExplainedIsReported) {
  const std::span<const uint8_t> bytes = Bytes();
  tepal_geometry wrong = geometry_;
  wrong.num_bits += 8;
  tepal_workload work = TEPAL_WORKLOAD_INIT;
  std::vector<NamedCall> calls = {
      MakesFilter("create",
                  [&](tepal_filter** f) { return tepal_filter_create(&wrong, nullptr, f); }),
      MakesFilter("view",
                  [&](tepal_filter** f) {
                    return tepal_filter_view(&geometry_, bytes.data(), bytes.size() - 1, f);
                  }),
      MakesFilter(
          "shrink",
          [&](tepal_filter** f) { return tepal_filter_shrink(larger_, &wrong, nullptr, f); }),
      WithoutOutput("union", [&] { return tepal_filter_union(larger_, filter_); }),
      WithOutput("builder_create", static_cast<tepal_builder*>(nullptr),
                 [&](tepal_builder** b) { return tepal_builder_create(&wrong, nullptr, b); }),
      WithOutput("parse_layout", tepal_layout{-1},
                 [](tepal_layout* out) { return tepal_parse_layout("split1024", out); }),
      WithOutput("make_plan", tepal_plan TEPAL_PLAN_INIT,
                 [&](tepal_plan* out) { return tepal_make_plan(&work, out, nullptr); }),
      WithoutOutput("force_target", [] { return tepal_force_target("6502"); }),
  };
  for (NamedCall& call : calls) call.expected = StatusCode::kInvalidArgument;
  ExpectAllSurvive(calls);
}

TEST_F(NoMemoryInCTest, WhileDamagedBytesOrAMissingFileAreExplainedIsReported) {
  alignas(64) uint8_t damaged[256] = {};
  const auto corrupt = [](NamedCall call) {
    call.expected = StatusCode::kCorrupt;
    return call;
  };
  NamedCall map_file = MakesFilter("map_file", [&](tepal_filter** f) {
    return tepal_filter_map_file("no such directory, nor a file in it", nullptr, f);
  });
  map_file.expected = StatusCode::kIoError;
  ExpectAllSurvive({
      corrupt(WithOutput("inspect", tepal_container_info TEPAL_CONTAINER_INFO_INIT,
                         [&](tepal_container_info* out) {
                           return tepal_container_inspect(damaged, sizeof(damaged), out);
                         })),
      corrupt(MakesFilter("deserialize",
                          [&](tepal_filter** f) {
                            return tepal_filter_deserialize(damaged, sizeof(damaged), nullptr, f);
                          })),
      corrupt(MakesFilter(
          "open",
          [&](tepal_filter** f) { return tepal_filter_open(damaged, sizeof(damaged), f); })),
      corrupt(MakesFilter("parquet_read",
                          [&](tepal_filter** f) {
                            return tepal_parquet_read(damaged, sizeof(damaged), nullptr, f);
                          })),
      corrupt(MakesFilter("parquet_read_exactly",
                          [&](tepal_filter** f) {
                            return tepal_parquet_read_exactly(damaged, sizeof(damaged), nullptr, f);
                          })),
      map_file,
  });
}

TEST_F(NoMemoryInCTest, DoesNotMatterToTheseCalls) {
  tepal_builder* builder = nullptr;
  ASSERT_EQ(tepal_builder_create(&geometry_, nullptr, &builder), TEPAL_OK);
  std::vector<uint32_t> rows(kKeys.size());
  std::vector<uint64_t> hashes(kKeys.size());
  auto* bitmap = reinterpret_cast<uint8_t*>(hashes.data());
  const char* name = nullptr;
  const char* const* names = nullptr;
  size_t count = 0;
  uint64_t num_keys = 0;
  const NamedCall calls[] = {
      WithoutOutput("insert", [&] { return tepal_filter_insert(filter_, &keys_); }),
      WithoutOutput("builder_insert", [&] { return tepal_builder_insert(builder, &keys_); }),
      WithoutOutput("probe", [&] { return tepal_filter_probe(filter_, &keys_, bitmap, nullptr); }),
      WithoutOutput("select",
                    [&] { return tepal_filter_select(filter_, &keys_, rows.data(), &count); }),
      WithoutOutput("count", [&] { return tepal_filter_count(filter_, &keys_, &count); }),
      WithoutOutput("hash_keys",
                    [&] { return tepal_hash_keys(TEPAL_HASH_XXH3, 0, &keys_, hashes.data()); }),
      WithoutOutput("union", [&] { return tepal_filter_union(filter_, filter_); }),
      WithoutOutput("estimate_keys",
                    [&] { return tepal_filter_estimate_keys(filter_, &num_keys); }),
      WithoutOutput("active_target", [&] { return tepal_active_target(&name); }),
      WithoutOutput("available_targets", [&] { return tepal_available_targets(&names, &count); }),
      WithoutOutput("compiled_targets", [&] { return tepal_compiled_targets(&names, &count); }),
      WithoutOutput("force_target", [] { return tepal_force_target("auto"); }),
  };
  for (const NamedCall& call : calls) {
    SCOPED_TRACE(call.name);
    ExpectNeedsNoMemory(call.run);
  }
  tepal_builder_destroy(builder);
}

TEST(NoMemoryTest, IsReportedByFilesInC) {
  const TemporaryDirectory directory;
  const std::string path = directory.PathOf("filter");
  tepal_geometry geometry = TEPAL_GEOMETRY_INIT;
  ASSERT_EQ(tepal_geometry_for(TEPAL_LAYOUT_LINE512, 1000, 12, &geometry), TEPAL_OK);
  tepal_filter* filter = nullptr;
  ASSERT_EQ(tepal_filter_create(&geometry, nullptr, &filter), TEPAL_OK);
  struct Mapped {
    tepal_container_info info = TEPAL_CONTAINER_INFO_INIT;
    tepal_filter* filter = nullptr;
  };
  const auto write = [&] {
    return tepal_filter_write_file(filter, 0, TEPAL_KEYS_UNKNOWN, path.c_str());
  };
  const auto map = [&](Mapped* out) {
    const tepal_status status = tepal_filter_map_file(path.c_str(), &out->info, &out->filter);
    if (status == TEPAL_OK) tepal_filter_destroy(out->filter);
    return status;
  };
  ExpectAllSurvive({WithoutOutput("write_file", write), WithOutput("map_file", Mapped(), map)});
  EXPECT_EQ(NumEntries(directory.path()), 1u);
  tepal_filter_destroy(filter);
}

}  // namespace
}  // namespace tepal::testing
