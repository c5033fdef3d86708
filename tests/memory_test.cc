// Where a filter's memory comes from, that it is returned, and what happens if there is none.
#include "tepal/memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tepal/filter.h"
#include "tests/test_util.h"

namespace tepal::testing {
namespace {

using ::testing::HasSubstr;

Geometry OfBytes(uint64_t num_bytes) {
  return {.layout = Layout::kSplit256, .num_bits = num_bytes * 8, .num_probes = 8};
}

uintptr_t AddressOf(const Filter& filter) {
  return reinterpret_cast<uintptr_t>(filter.bytes().data());
}

bool IsZero(const Filter& filter) {
  return std::all_of(filter.bytes().begin(), filter.bytes().end(),
                     [](uint8_t byte) { return byte == 0; });
}

// Small, just below and at the threshold of huge pages, and not a multiple of one.
const std::vector<size_t> kSizes = {32,
                                    64,
                                    96,
                                    4096,
                                    100'000,
                                    kHugePageThreshold - 32,
                                    kHugePageThreshold,
                                    kHugePageThreshold + 32,
                                    (size_t{6} << 20) + 96};

TEST(MemoryTest, IsAlignedAndZeroed) {
  for (const size_t bytes : kSizes) {
    for (const HugePages huge_pages : {HugePages::kAdvise, HugePages::kNever}) {
      const Filter filter = MakeFilter(OfBytes(bytes), {.huge_pages = huge_pages});
      EXPECT_EQ(filter.bytes().size(), bytes);
      EXPECT_EQ(AddressOf(filter) % kFilterAlignment, 0u) << bytes;
      EXPECT_TRUE(IsZero(filter)) << bytes;
    }
  }
}

// Memory that another filter used before is zeroed, too.
TEST(MemoryTest, IsZeroedWhenReused) {
  for (const size_t bytes : kSizes) {
    for (int round = 0; round < 4; ++round) {
      Filter filter = MakeFilter(OfBytes(bytes));
      EXPECT_TRUE(IsZero(filter)) << bytes;
      filter.InsertHashes(RandomValues(1, 1000));
    }
  }
}

// ---- The allocator hook

// Remembers what it gave out. Fills memory with garbage and puts canaries around it.
class RecordingAllocator {
 public:
  ~RecordingAllocator() { EXPECT_TRUE(live_.empty()) << live_.size() << " not returned"; }

  MemoryOptions options() {
    return {.allocator = {.allocate = Allocate, .deallocate = Deallocate, .context = this}};
  }

  size_t num_allocations = 0;
  size_t num_live() const { return live_.size(); }
  bool owns(const void* memory) const { return live_.contains(memory); }
  size_t misalign_by = 0;  // breaks the promise of alignment

 private:
  static constexpr size_t kMargin = 128;
  static constexpr int kGarbage = 0xA5;

  static void* Allocate(size_t bytes, size_t alignment, void* context) {
    auto* self = static_cast<RecordingAllocator*>(context);
    ++self->num_allocations;
    EXPECT_EQ(alignment, kFilterAlignment);
    const size_t total = (bytes + 2 * kMargin + alignment - 1) / alignment * alignment;
    auto* block = static_cast<uint8_t*>(std::aligned_alloc(alignment, total));
    std::memset(block, kGarbage, total);
    uint8_t* memory = block + kMargin + self->misalign_by;
    self->live_[memory] = {block, bytes};
    return memory;
  }

  static void Deallocate(void* memory, size_t bytes, void* context) {
    auto* self = static_cast<RecordingAllocator*>(context);
    const auto found = self->live_.find(memory);
    ASSERT_NE(found, self->live_.end()) << "not allocated, or returned twice";
    EXPECT_EQ(bytes, found->second.bytes);
    const auto untouched = [](uint8_t byte) { return byte == kGarbage; };
    const uint8_t* begin = static_cast<uint8_t*>(memory);
    EXPECT_TRUE(std::all_of(begin - kMargin, begin, untouched)) << "written before the filter";
    EXPECT_TRUE(std::all_of(begin + bytes, begin + bytes + kMargin - self->misalign_by, untouched))
        << "written behind the filter";
    std::free(found->second.block);
    self->live_.erase(found);
  }

  struct Allocation {
    uint8_t* block;
    size_t bytes;
  };
  std::map<const void*, Allocation> live_;
};

TEST(AllocatorTest, IsUsedForFiltersOfEverySizeAndItsMemoryIsZeroed) {
  for (const size_t bytes : kSizes) {
    RecordingAllocator allocator;
    const Filter filter = MakeFilter(OfBytes(bytes), allocator.options());
    EXPECT_EQ(allocator.num_allocations, 1u);
    EXPECT_TRUE(allocator.owns(filter.bytes().data()));
    EXPECT_TRUE(IsZero(filter));
  }
}

using AllocatorOnEveryTargetTest = TargetTest;

// The canaries around the memory say whether a kernel wrote outside of the filter.
TEST_P(AllocatorOnEveryTargetTest, NothingOutsideItsMemoryIsWritten) {
  for (const size_t bytes : {32u, 64u, 96u, 4096u, 1u << 20}) {
    RecordingAllocator allocator;
    Filter filter = MakeFilter(OfBytes(bytes), allocator.options());
    for (size_t count = 0; count < 70; ++count) filter.InsertHashes(RandomValues(count, count));
    filter.InsertHashes(std::vector<uint64_t>(100, ~uint64_t{0}));
    filter.InsertHashes(std::vector<uint64_t>(100, 0));
  }
}

TEPAL_TEST_ON_EVERY_TARGET(AllocatorOnEveryTargetTest);

TEST(AllocatorTest, GetsItsMemoryBackOnceAfterMoves) {
  RecordingAllocator allocator;
  {
    Filter first = MakeFilter(OfBytes(4096), allocator.options());
    Filter second = std::move(first);
    std::optional<Filter> third = std::move(second);
    EXPECT_EQ(allocator.num_live(), 1u);
    third.reset();
    EXPECT_EQ(allocator.num_live(), 0u);
  }
  EXPECT_EQ(allocator.num_allocations, 1u);
}

TEST(AllocatorTest, GetsTheMemoryOfAFilterThatIsAssignedToBack) {
  RecordingAllocator allocator;
  RecordingAllocator other;
  Filter filter = MakeFilter(OfBytes(4096), allocator.options());
  filter = MakeFilter(OfBytes(64), other.options());
  EXPECT_EQ(allocator.num_live(), 0u);
  EXPECT_EQ(other.num_live(), 1u);
}

TEST(AllocatorTest, WithoutMemoryGivesOutOfMemory) {
  const Allocator allocator = {
      .allocate = [](size_t, size_t, void*) -> void* { return nullptr; },
      .deallocate = [](void*, size_t, void*) { ADD_FAILURE() << "nothing to return"; }};
  const Result<Filter> filter = Filter::Create(OfBytes(4096), {.allocator = allocator});
  EXPECT_EQ(filter.status().code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(filter.status().message(), HasSubstr("4096 bytes"));
}

TEST(AllocatorTest, WithMisalignedMemoryIsRefusedAndGetsItBack) {
  for (const size_t misalign_by : {1u, 8u, 16u, 32u}) {
    RecordingAllocator allocator;
    allocator.misalign_by = misalign_by;
    const Result<Filter> filter = Filter::Create(OfBytes(4096), allocator.options());
    EXPECT_EQ(filter.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(filter.status().message(), HasSubstr("aligned to 64 bytes"));
    EXPECT_EQ(allocator.num_allocations, 1u);
    EXPECT_EQ(allocator.num_live(), 0u);
  }
}

TEST(AllocatorTest, WithOneFunctionOnlyIsRefused) {
  RecordingAllocator allocator;
  MemoryOptions options = allocator.options();
  options.allocator.deallocate = nullptr;
  EXPECT_EQ(Filter::Create(OfBytes(64), options).status().code(), StatusCode::kInvalidArgument);
  options = allocator.options();
  options.allocator.allocate = nullptr;
  const Result<Filter> filter = Filter::Create(OfBytes(64), options);
  EXPECT_EQ(filter.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(filter.status().message(), HasSubstr("both functions"));
  EXPECT_EQ(allocator.num_allocations, 0u);
}

TEST(AllocatorTest, IsNotAskedForAFilterThatIsNotValid) {
  RecordingAllocator allocator;
  EXPECT_FALSE(Filter::Create(Geometry{}, allocator.options()).ok());
  EXPECT_EQ(allocator.num_allocations, 0u);
}

// ---- Large filters

// 128 GiB. Few machines have them; all must say so in the same way.
TEST(LargeFilterTest, AnAbsurdSizeIsCreatedOrOutOfMemory) {
  const Geometry geometry = OfBytes((uint64_t{1} << 37) - 32);
  const Result<Filter> filter = Filter::Create(geometry);
  if (filter.ok()) {
    EXPECT_EQ(filter->bytes().size(), geometry.num_bytes());
  } else {
    EXPECT_EQ(filter.status().code(), StatusCode::kOutOfMemory);
    EXPECT_THAT(filter.status().message(), HasSubstr(std::to_string(geometry.num_bytes())));
  }
}

#if defined(__linux__)

constexpr size_t kHugePageBytes = size_t{2} << 20;

// The line "VmFlags: ..." of the mapping that holds `address`; empty if the kernel does not say.
std::string MappingFlags(uintptr_t address) {
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> begin >> dash >> end && dash == '-') {
      inside = begin <= address && address < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return {};
}

bool KernelHasHugePages() {
  return std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good();
}

TEST(HugePagesTest, LargeFiltersStartOnAHugePage) {
  for (const HugePages huge_pages : {HugePages::kAdvise, HugePages::kNever}) {
    for (int round = 0; round < 5; ++round) {
      const Filter filter =
          MakeFilter(OfBytes(kHugePageThreshold + 32), {.huge_pages = huge_pages});
      EXPECT_EQ(AddressOf(filter) % kHugePageBytes, 0u);
    }
  }
}

TEST(HugePagesTest, AreAdvisedForLargeFiltersOnly) {
  if (!KernelHasHugePages()) GTEST_SKIP() << "this kernel has no transparent huge pages";
  const Filter large = MakeFilter(OfBytes(kHugePageThreshold));
  const Filter never = MakeFilter(OfBytes(kHugePageThreshold), {.huge_pages = HugePages::kNever});
  const Filter small = MakeFilter(OfBytes(kHugePageThreshold - 32));
  if (MappingFlags(AddressOf(large)).empty()) GTEST_SKIP() << "this kernel shows no VmFlags";
  EXPECT_THAT(MappingFlags(AddressOf(large)), HasSubstr(" hg "));
  EXPECT_THAT(MappingFlags(AddressOf(never)), HasSubstr(" nh "));
  EXPECT_THAT(MappingFlags(AddressOf(small)), ::testing::Not(HasSubstr(" hg ")));
}

// Bytes of address space in use.
size_t MappedBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  statm >> pages;
  return pages * 4096;
}

TEST(HugePagesTest, LargeFiltersGiveBackAllTheyMapped) {
  for (int round = 0; round < 3; ++round) MakeFilter(OfBytes(64 << 20));  // warm up
  const size_t before = MappedBytes();
  for (int round = 0; round < 400; ++round) MakeFilter(OfBytes((64 << 20) + 32));
  EXPECT_LT(MappedBytes(), before + 400 * 4096) << "a page or more of each filter is left";
}

TEST(HugePagesTest, NeverMakesFiltersThatCostOnlyWhatIsTouched) {
  const Geometry geometry = OfBytes(uint64_t{1} << 36);  // 64 GiB
  Result<Filter> filter = Filter::Create(geometry, {.huge_pages = HugePages::kNever});
  if (!filter.ok()) {
    EXPECT_EQ(filter.status().code(), StatusCode::kOutOfMemory);
    GTEST_SKIP() << filter.status().message();
  }
  const std::vector<uint64_t> hashes = RandomValues(1, 1000);
  filter->InsertHashes(hashes);
  EXPECT_EQ(filter->CountHashes(hashes), hashes.size());
}

#endif  // __linux__

}  // namespace
}  // namespace tepal::testing
