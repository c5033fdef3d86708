// Containers from anywhere: Inspect, FilterView::Open and Deserialize never crash, agree with each
// other, and what they accept is what Serialize writes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <xxhash.h>

#include "kernels/reference.h"
#include "tepal/container.h"
#include "tests/fuzz/fuzz_input.h"

namespace tepal::fuzz {
namespace {

// dispatch/FORMAT.md.
constexpr size_t kHeaderBytes = 128;
constexpr size_t kPayloadChecksumOffset = 112;
constexpr size_t kHeaderChecksumOffset = 120;

void StoreLittleEndian(uint64_t value, uint8_t* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(value >> 8 * i);
}

// Makes both checksums right: no mutation would ever get past them.
void RepairChecksums(std::span<uint8_t> container) {
  if (container.size() < kHeaderBytes) return;
  uint8_t* header = container.data();
  const size_t payload_bytes = container.size() - kHeaderBytes;
  StoreLittleEndian(XXH3_64bits(header + kHeaderBytes, payload_bytes),
                    header + kPayloadChecksumOffset);
  StoreLittleEndian(XXH3_64bits(header, kHeaderChecksumOffset), header + kHeaderChecksumOffset);
}

void CheckAccepted(std::span<const uint8_t> container, const ContainerInfo& info,
                   const FilterView& view, const Filter& copy) {
  TEPAL_FUZZ_EXPECT(view.geometry() == info.geometry && copy.geometry() == info.geometry);
  TEPAL_FUZZ_EXPECT(std::equal(view.bytes().begin(), view.bytes().end(), copy.bytes().begin(),
                               copy.bytes().end()));
  const auto again = Serialize(view, info.num_keys, info.key_kind);
  TEPAL_FUZZ_EXPECT(again.ok());
  TEPAL_FUZZ_EXPECT(std::equal(again->begin(), again->end(), container.begin(), container.end()));
  for (uint64_t hash : {uint64_t{0}, ~uint64_t{0}, uint64_t{0x9E3779B97F4A7C15}, info.num_keys}) {
    TEPAL_FUZZ_EXPECT(view.MayContainHash(hash) ==
                      reference::MayContain(info.geometry, hash, view.bytes().data()));
  }
}

void Read(std::span<const uint8_t> container) {
  const Result<ContainerInfo> info = Inspect(container);
  const Result<FilterView> view = FilterView::Open(container);
  const Result<Filter> copy = Deserialize(container);
  TEPAL_FUZZ_EXPECT(view.status().code() == copy.status().code());
  TEPAL_FUZZ_EXPECT(info.ok() || !view.ok());
  TEPAL_FUZZ_EXPECT(view.ok() || !view.status().message().empty());
  if (view.ok()) CheckAccepted(container, *info, *view, *copy);
}

}  // namespace
}  // namespace tepal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tepal::fuzz::AlignedCopy copy({data, size});
  tepal::fuzz::Read(copy.bytes());
  tepal::fuzz::RepairChecksums(copy.bytes());
  tepal::fuzz::Read(copy.bytes());
  return 0;
}
