// What several tests need: forced targets, random data, columns, bitmaps.
#ifndef TEPAL_TESTS_TEST_UTIL_H_
#define TEPAL_TESTS_TEST_UTIL_H_

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tepal/columns.h"
#include "tepal/filter.h"
#include "tepal/targets.h"

namespace tepal::testing {

// Under an emulator, which is ten to a hundred times slower, tests take fewer sizes and keys. All
// of them run, and on every target.
#ifdef TEPAL_QUICK_TESTS
inline constexpr bool kQuickTests = true;
#else
inline constexpr bool kQuickTests = false;
#endif

// Runs a scope on one target, and fails the test if that target is not the one in force.
class ScopedTarget {
 public:
  explicit ScopedTarget(std::string_view name) : previous_(ActiveTarget()) {
    const Status status = ForceTarget(name);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(ActiveTarget(), name);
  }
  ~ScopedTarget() { EXPECT_TRUE(ForceTarget(previous_).ok()); }
  ScopedTarget(const ScopedTarget&) = delete;
  ScopedTarget& operator=(const ScopedTarget&) = delete;

 private:
  std::string previous_;
};

// For fixtures that run every test on every target.
class TargetTest : public ::testing::TestWithParam<std::string> {
 private:
  ScopedTarget target_{GetParam()};
};

// GoogleTest wants letters, digits and underscores.
inline std::string TestName(std::string_view text) {
  std::string name(text);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

inline std::string TargetTestName(const ::testing::TestParamInfo<std::string>& info) {
  return TestName(info.param);
}

#define TEPAL_TEST_ON_EVERY_TARGET(Fixture)                                                    \
  INSTANTIATE_TEST_SUITE_P(Targets, Fixture, ::testing::ValuesIn(::tepal::AvailableTargets()), \
                           ::tepal::testing::TargetTestName)

// Says which seed a failure belongs to.
#define TEPAL_TRACE_SEED(seed) SCOPED_TRACE("seed " + std::to_string(seed))

// The engine's output is the same everywhere; that of std's distributions is not.
template <typename T = uint64_t>
std::vector<T> RandomValues(uint64_t seed, size_t count) {
  std::mt19937_64 engine(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(engine());
  return values;
}

inline bool GetBit(const uint8_t* bits, size_t i) { return (bits[i / 8] >> (i % 8) & 1) != 0; }

// A bitmap in Arrow's order, `offset` bits behind its beginning. The bits around it are random.
inline std::vector<uint8_t> MakeBitmap(const std::vector<bool>& bits, size_t offset = 0) {
  std::vector<uint8_t> bitmap = RandomValues<uint8_t>(offset, (offset + bits.size() + 7) / 8);
  for (size_t i = 0; i < bits.size(); ++i) {
    const auto bit = static_cast<uint8_t>(1u << ((offset + i) % 8));
    uint8_t& byte = bitmap[(offset + i) / 8];
    byte = static_cast<uint8_t>(bits[i] ? byte | bit : byte & ~bit);
  }
  return bitmap;
}

inline std::vector<bool> BitsOf(const uint8_t* bitmap, size_t count) {
  std::vector<bool> bits(count);
  for (size_t i = 0; i < count; ++i) bits[i] = GetBit(bitmap, i);
  return bits;
}

// Strings in Arrow's layout. The first string does not start at the first byte, as in a slice.
class StringRows {
 public:
  explicit StringRows(const std::vector<std::string>& strings)
      : data_("before"), size_(strings.size()) {
    offsets_.push_back(static_cast<int64_t>(data_.size()));
    for (const std::string& string : strings) {
      data_ += string;
      offsets_.push_back(static_cast<int64_t>(data_.size()));
    }
    short_offsets_.assign(offsets_.begin(), offsets_.end());
  }

  StringColumn column32() const { return {data_.data(), short_offsets_.data(), size_}; }
  StringColumn column64() const { return {data_.data(), offsets_.data(), size_}; }

 private:
  std::string data_;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> short_offsets_;
  size_t size_;
};

// Random bytes, zeros among them, of lengths from 0 to `max_length`.
inline std::vector<std::string> RandomStrings(uint64_t seed, size_t count, size_t max_length) {
  std::mt19937_64 engine(seed);
  std::vector<std::string> strings(count);
  for (std::string& string : strings) {
    string.resize(engine() % (max_length + 1));
    for (char& c : string) c = static_cast<char>(engine());
  }
  return strings;
}

inline Filter MakeFilter(const Geometry& geometry, const MemoryOptions& memory = {}) {
  return Filter::Create(geometry, memory).value();
}

inline std::vector<uint8_t> BytesOf(const Filter& filter) {
  return {filter.bytes().begin(), filter.bytes().end()};
}

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_TEST_UTIL_H_
