// Bytes at a bloom_filter_offset: ReadHeader, Read and ReadExactly never crash and agree with each
// other, and what they accept survives Write.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tepal/parquet.h"
#include "tests/fuzz/fuzz_input.h"

namespace tepal::fuzz {
namespace {

bool IsBadInput(StatusCode code) {
  return code == StatusCode::kCorrupt || code == StatusCode::kUnsupported;
}

void CheckAccepted(std::span<const uint8_t> bytes, const parquet::Header& header,
                   const Filter& filter) {
  const std::span<const uint8_t> bitset = bytes.subspan(header.header_bytes, header.bitset_bytes);
  TEPAL_FUZZ_EXPECT(
      std::equal(bitset.begin(), bitset.end(), filter.bytes().begin(), filter.bytes().end()));
  const Result<std::vector<uint8_t>> written = parquet::Write(filter);
  TEPAL_FUZZ_EXPECT(written.ok());
  const Result<Filter> again = parquet::ReadExactly(*written);
  TEPAL_FUZZ_EXPECT(again.ok() && again->geometry() == filter.geometry());
  TEPAL_FUZZ_EXPECT(
      std::equal(bitset.begin(), bitset.end(), again->bytes().begin(), again->bytes().end()));
}

void Read(std::span<const uint8_t> bytes) {
  const Result<parquet::Header> header = parquet::ReadHeader(bytes);
  const Result<Filter> filter = parquet::Read(bytes);
  const Result<Filter> exact = parquet::ReadExactly(bytes);
  TEPAL_FUZZ_EXPECT(filter.ok() || IsBadInput(filter.status().code()));
  TEPAL_FUZZ_EXPECT(exact.ok() || IsBadInput(exact.status().code()));
  if (!header.ok()) {
    TEPAL_FUZZ_EXPECT(!filter.ok() && !exact.ok());
    return;
  }
  TEPAL_FUZZ_EXPECT(filter.ok() == (header->total_bytes() <= bytes.size()));
  TEPAL_FUZZ_EXPECT(exact.ok() == (header->total_bytes() == bytes.size()));
  if (filter.ok()) CheckAccepted(bytes, *header, *filter);
}

}  // namespace
}  // namespace tepal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tepal::fuzz::AlignedCopy copy({data, size});  // not a byte longer
  tepal::fuzz::Read(copy.bytes());
  return 0;
}
