// Random geometry, keys, batches, nulls and target: kernels and scalar reference make the same
// bytes and give the same answers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <xxhash.h>

#include "dispatch/bitmap.h"
#include "kernels/reference.h"
#include "tepal/filter.h"
#include "tepal/hash.h"
#include "tepal/targets.h"
#include "tests/fuzz/fuzz_input.h"

namespace tepal::fuzz {
namespace {

constexpr uint32_t kMaxRows = 300;

// Rows from a random sequence; some of them are bytes of the input, for its mutations.
std::vector<uint64_t> TakeKeys(FuzzInput& input) {
  std::vector<uint64_t> keys(input.TakeBelow(kMaxRows));
  std::mt19937_64 engine(input.Take<uint32_t>());
  for (uint64_t& key : keys) key = engine();
  const size_t num_given = std::min<size_t>(input.TakeBelow(8), keys.size());
  for (size_t i = 0; i < num_given; ++i) keys[i] = input.Take<uint64_t>();
  return keys;
}

std::vector<uint64_t> Hashes(const Geometry& geometry, const std::vector<uint64_t>& keys) {
  std::vector<uint64_t> hashes(keys.size());
  std::transform(keys.begin(), keys.end(), hashes.begin(), [&](uint64_t key) -> uint64_t {
    return geometry.hash == HashKind::kXxh3 ? XXH3_64bits_withSeed(&key, sizeof(key), geometry.seed)
                                            : XXH64(&key, sizeof(key), geometry.seed);
  });
  return hashes;
}

// Which rows are not null: all, or as a bitmap of the input's bytes says.
class Nulls {
 public:
  Nulls(FuzzInput& input, size_t num_rows) : offset_(input.TakeBelow(9)) {
    if (input.TakeBelow(2) == 0) return;
    bits_.resize((offset_ + num_rows + 7) / 8, input.Take<uint8_t>());
    const std::span<const uint8_t> given = input.TakeBytes(bits_.size() / 2);
    std::copy(given.begin(), given.end(), bits_.begin());
  }
  Validity validity() const { return {bits_.empty() ? nullptr : bits_.data(), offset_}; }
  bool IsValid(size_t row) const { return bits_.empty() || GetBit(bits_.data(), offset_ + row); }

 private:
  size_t offset_;
  std::vector<uint8_t> bits_;
};

// Inserts into both, in batches of any size.
void Insert(FuzzInput& input, Filter& filter, std::span<uint8_t> expected) {
  const std::vector<uint64_t> keys = TakeKeys(input);
  const std::vector<uint64_t> hashes = Hashes(filter.geometry(), keys);
  const Nulls nulls(input, keys.size());
  for (size_t begin = 0; begin < keys.size();) {
    const size_t count = std::min<size_t>(1 + input.TakeBelow(kMaxRows), keys.size() - begin);
    const Validity all = nulls.validity();
    const Validity validity{all.bits, all.offset + begin};
    if (input.TakeBelow(2) == 0) {
      filter.Insert(std::span(keys).subspan(begin, count), validity);
    } else {
      filter.InsertHashes(std::span(hashes).subspan(begin, count), validity);
    }
    begin += count;
  }
  for (size_t row = 0; row < keys.size(); ++row) {
    if (nulls.IsValid(row)) reference::Insert(filter.geometry(), hashes[row], expected.data());
  }
  TEPAL_FUZZ_EXPECT(
      std::equal(expected.begin(), expected.end(), filter.bytes().begin(), filter.bytes().end()));
}

void Probe(FuzzInput& input, const Filter& filter) {
  const std::vector<uint64_t> keys = TakeKeys(input);
  const std::vector<uint64_t> hashes = Hashes(filter.geometry(), keys);
  const Nulls nulls(input, keys.size());
  std::vector<uint8_t> expected_bitmap((keys.size() + 7) / 8);
  std::vector<uint32_t> expected_rows;
  for (uint32_t row = 0; row < keys.size(); ++row) {
    if (!nulls.IsValid(row)) continue;
    if (!reference::MayContain(filter.geometry(), hashes[row], filter.bytes().data())) continue;
    expected_bitmap[row / 8] = static_cast<uint8_t>(expected_bitmap[row / 8] | 1u << row % 8);
    expected_rows.push_back(row);
  }

  std::vector<uint8_t> bitmap(expected_bitmap.size());
  const size_t num_matches = filter.Probe(std::span(keys), bitmap.data(), nulls.validity());
  TEPAL_FUZZ_EXPECT(num_matches == expected_rows.size() && bitmap == expected_bitmap);
  TEPAL_FUZZ_EXPECT(filter.CountHashes(hashes, nulls.validity()) == num_matches);

  std::vector<uint32_t> rows(keys.size());
  rows.resize(filter.SelectHashes(hashes, rows.data(), nulls.validity()));
  TEPAL_FUZZ_EXPECT(rows == expected_rows);
  rows.resize(filter.Select(std::span(keys), rows, rows.data(), nulls.validity()));
  TEPAL_FUZZ_EXPECT(rows == expected_rows);
}

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
  if (!filter.ok()) return 0;
  std::vector<uint8_t> expected(geometry.num_bytes());
  constexpr int kMaxRounds = 3;  // the reference is slow
  for (int round = 0; round < kMaxRounds && (round == 0 || !input.empty()); ++round) {
    fuzz::Insert(input, *filter, expected);
    fuzz::Probe(input, *filter);
  }
  return 0;
}
