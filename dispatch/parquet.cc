#include "tepal/parquet.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "dispatch/bit_cast.h"
#include "dispatch/bitmap.h"
#include "dispatch/key_sources.h"
#include "dispatch/no_memory.h"
#include "dispatch/thrift_compact.h"
#include "kernels/layout_traits.h"
#include "tepal/fpr.h"
#include "tepal/hash.h"

namespace tepal::parquet {
namespace {

using thrift::CompactReader;
using thrift::Field;
using thrift::Type;

static_assert(kBlockBytes == Split256::kBlockBits / 8);
static_assert(kMaxBitsetBytes <= std::numeric_limits<int32_t>::max());

constexpr HashKind kHash = HashKind::kXxh64;
constexpr uint64_t kSeed = 0;

// Known writers need 19 bytes at most. Bounds the time that hostile bytes can take.
constexpr size_t kMaxHeaderBytes = size_t{1} << 16;

// ---- The header. struct BloomFilterHeader in Parquet's thrift definition:
//
//   1: required i32 numBytes
//   2: required BloomFilterAlgorithm algorithm      union { 1: SplitBlockAlgorithm BLOCK }
//   3: required BloomFilterHash hash                union { 1: XxHash XXHASH }
//   4: required BloomFilterCompression compression  union { 1: Uncompressed UNCOMPRESSED }
//
// All three alternatives are empty structs.
constexpr int32_t kNumBytesId = 1;
constexpr int32_t kAlternativeId = 1;

struct HeaderField {
  int32_t id;
  Type type;
  const char* name;
  const char* only_alternative;
};

constexpr std::array<HeaderField, 4> kHeaderFields = {{
    {kNumBytesId, Type::kI32, "numBytes", nullptr},
    {2, Type::kStruct, "algorithm", "BLOCK"},
    {3, Type::kStruct, "hash", "XXHASH"},
    {4, Type::kStruct, "compression", "UNCOMPRESSED"},
}};

class HeaderReader {
 public:
  explicit HeaderReader(std::span<const uint8_t> bytes)
      : reader_(bytes.first(std::min(bytes.size(), kMaxHeaderBytes))) {}

  Result<Header> Read() {
    reader_.ForEachField([this](const Field& field) { ReadField(field); });
    for (const HeaderField& known : kHeaderFields) {
      if (!seen_[static_cast<size_t>(known.id)]) Corrupt(known, "is missing");
    }
    if (reader_.status().ok()) CheckNumBytes();
    const Status& status = reader_.status();
    if (!status.ok()) return Status(status.code(), "BloomFilterHeader: " + status.message());
    return Header{reader_.position(), static_cast<size_t>(num_bytes_)};
  }

 private:
  void Corrupt(const HeaderField& known, const std::string& what) {
    reader_.Fail(Status::Corrupt(std::string(known.name) + " " + what));
  }

  void ReadField(const Field& field) {
    if (field.id < kNumBytesId || field.id > kHeaderFields.back().id) {
      return reader_.SkipValue(field.type);  // of a version of the format to come
    }
    const HeaderField& known = kHeaderFields[static_cast<size_t>(field.id - kNumBytesId)];
    bool& seen = seen_[static_cast<size_t>(field.id)];
    if (seen) Corrupt(known, "is there twice");
    if (field.type != known.type) Corrupt(known, "has the wrong type");
    seen = true;
    if (field.id == kNumBytesId) {
      num_bytes_ = reader_.ReadI32();
    } else {
      ReadUnion(known);
    }
  }

  void ReadUnion(const HeaderField& known) {
    int num_alternatives = 0;
    reader_.ForEachField([&](const Field& alternative) {
      if (++num_alternatives > 1) Corrupt(known, "has two alternatives, but must have one");
      if (alternative.id != kAlternativeId) {
        reader_.Fail(Status::Unsupported(std::string(known.name) + " is alternative " +
                                         std::to_string(alternative.id) + ", but only 1 (" +
                                         known.only_alternative + ") is known"));
      }
      if (alternative.type != Type::kStruct) Corrupt(known, "has an alternative of a wrong type");
      reader_.SkipValue(alternative.type);
    });
    if (num_alternatives == 0) Corrupt(known, "has no alternative, but must have one");
  }

  void CheckNumBytes() {
    if (num_bytes_ > 0 && static_cast<size_t>(num_bytes_) % kBlockBytes == 0) return;
    Corrupt(kHeaderFields[0], "is " + std::to_string(num_bytes_) +
                                  ", but must be a positive multiple of " +
                                  std::to_string(kBlockBytes));
  }

  CompactReader reader_;
  int32_t num_bytes_ = 0;
  std::array<bool, kHeaderFields.size() + 1> seen_ = {};  // by field id
};

void AppendFieldHead(Type type, std::vector<uint8_t>& out) {
  // All ids here are one more than the one before.
  out.push_back(static_cast<uint8_t>(0x10 | static_cast<int>(type)));
}

void AppendStop(std::vector<uint8_t>& out) { out.push_back(static_cast<uint8_t>(Type::kStop)); }

void AppendHeader(int32_t num_bytes, std::vector<uint8_t>& out) {
  for (const HeaderField& field : kHeaderFields) {
    AppendFieldHead(field.type, out);
    if (field.id == kNumBytesId) {
      thrift::AppendI32(num_bytes, out);
    } else {
      AppendFieldHead(Type::kStruct, out);
      AppendStop(out);  // of the alternative
      AppendStop(out);  // of the union
    }
  }
  AppendStop(out);
}

Status CheckWritable(const Geometry& geometry) {
  if (geometry.layout != Layout::kSplit256 || geometry.hash != kHash || geometry.seed != kSeed) {
    return Status::Unsupported(
        "Parquet has filters of layout split256 with xxh64 and seed 0, but "
        "this one is " +
        std::string(LayoutName(geometry.layout)) + " with " +
        std::string(HashKindName(geometry.hash)) + " and seed " + std::to_string(geometry.seed));
  }
  return GeometryOfBytes(geometry.num_bytes()).status();
}

// ---- Floats

// The bits of floats as integers, a chunk at a time, through memory that is an array of integers.
template <typename Key, typename Float>
void HashFloats(std::span<const Float> values, uint64_t* hashes) {
  static_assert(sizeof(Key) == sizeof(Float));
  Key bits[kChunkRows];
  for (size_t begin = 0; begin < values.size(); begin += kChunkRows) {
    const size_t count = std::min(kChunkRows, values.size() - begin);
    std::memcpy(bits, values.data() + begin, count * sizeof(Key));
    HashKeys(kHash, kSeed, std::span<const Key>(bits, count), hashes + begin);
  }
}

template <typename Float>
bool MayContainFloat(const ProbeCalls& filter, Float value) {
  if (std::isnan(value)) return true;
  return filter.MayContainHash(HashValue(value)) ||
         (value == 0 && filter.MayContainHash(HashValue(-value)));
}

template <typename Float>
size_t ProbeFloats(const ProbeCalls& filter, std::span<const Float> values, uint8_t* bitmap,
                   const Validity& validity) {
  const bool has_zero = MayContainFloat(filter, Float{0});
  uint64_t hashes[kChunkRows];
  size_t matches = 0;
  for (size_t begin = 0; begin < values.size(); begin += kChunkRows) {
    const auto chunk = values.subspan(begin, std::min(kChunkRows, values.size() - begin));
    HashValues(chunk, hashes);
    matches += filter.ProbeHashes({hashes, chunk.size()}, bitmap + begin / 8,
                                  {validity.bits, validity.offset + begin});
    for (size_t row = begin; row < begin + chunk.size(); ++row) {
      const bool maybe = std::isnan(values[row]) || (values[row] == 0 && has_zero);
      if (!maybe || GetBit(bitmap, row)) continue;
      if (validity.bits != nullptr && !GetBit(validity.bits, validity.offset + row)) continue;
      bitmap[row / 8] = static_cast<uint8_t>(bitmap[row / 8] | 1u << (row % 8));
      ++matches;
    }
  }
  return matches;
}

}  // namespace

// ---- Sizes

Result<Geometry> GeometryOfBytes(uint64_t bitset_bytes) try {
  if (bitset_bytes == 0 || bitset_bytes > kMaxBitsetBytes || bitset_bytes % kBlockBytes != 0) {
    return Status::InvalidArgument("a Parquet filter of " + std::to_string(bitset_bytes) +
                                   " bytes: must be a multiple of " + std::to_string(kBlockBytes) +
                                   ", from " + std::to_string(kBlockBytes) + " to " +
                                   std::to_string(kMaxBitsetBytes));
  }
  return Geometry{.layout = Layout::kSplit256,
                  .num_bits = 8 * bitset_bytes,
                  .num_probes = Split256::kWordsPerBlock,
                  .hash = kHash,
                  .seed = kSeed};
} catch (const std::exception&) {
  return NoMemory();
}

Result<Geometry> GeometryFor(uint64_t num_keys, double max_fpr, BlockCount blocks) try {
  const Result<Geometry> smallest = fpr::GeometryForRate(Layout::kSplit256, num_keys, max_fpr);
  if (!smallest.ok()) return smallest.status();
  const uint64_t bytes = smallest->num_bytes();
  return GeometryOfBytes(blocks == BlockCount::kPowerOfTwo ? std::bit_ceil(bytes) : bytes);
} catch (const std::exception&) {
  return NoMemory();
}

// ---- Bytes

Result<Header> ReadHeader(std::span<const uint8_t> bytes) try {
  return HeaderReader(bytes).Read();
} catch (const std::exception&) {
  return NoMemory();
}

Result<Filter> Read(std::span<const uint8_t> bytes, const MemoryOptions& memory) try {
  const Result<Header> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  const std::span<const uint8_t> rest = bytes.subspan(header->header_bytes);
  if (header->bitset_bytes > rest.size()) {
    return Status::Corrupt("BloomFilterHeader: numBytes is " +
                           std::to_string(header->bitset_bytes) + ", but only " +
                           std::to_string(rest.size()) + " bytes follow the header");
  }
  const Result<Geometry> geometry = GeometryOfBytes(header->bitset_bytes);
  if (!geometry.ok()) return geometry.status();
  return Filter::FromBytes(*geometry, rest.first(header->bitset_bytes), memory);
} catch (const std::exception&) {
  return NoMemory();
}

Result<Filter> ReadExactly(std::span<const uint8_t> bytes, const MemoryOptions& memory) try {
  const Result<Header> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  if (header->total_bytes() != bytes.size()) {
    return Status::Corrupt("BloomFilterHeader: header and bitset have " +
                           std::to_string(header->total_bytes()) + " bytes, but there are " +
                           std::to_string(bytes.size()));
  }
  return Read(bytes, memory);
} catch (const std::exception&) {
  return NoMemory();
}

Result<std::vector<uint8_t>> Write(const ProbeCalls& filter) try {
  if (Status status = CheckWritable(filter.geometry()); !status.ok()) return status;
  const std::span<const uint8_t> bitset = filter.bytes();
  try {
    std::vector<uint8_t> out;
    AppendHeader(static_cast<int32_t>(bitset.size()), out);
    out.reserve(out.size() + bitset.size());
    out.insert(out.end(), bitset.begin(), bitset.end());
    return out;
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory("no memory for a copy of " + std::to_string(bitset.size()) +
                               " bytes");
  }
} catch (const std::exception&) {
  return NoMemory();
}

// ---- Hashes

uint64_t HashValue(int32_t value) {
  uint64_t hash;
  return HashValues(std::span(&value, 1), &hash), hash;
}
uint64_t HashValue(int64_t value) {
  uint64_t hash;
  return HashValues(std::span(&value, 1), &hash), hash;
}
uint64_t HashValue(float value) { return HashValue(BitCast<int32_t>(value)); }
uint64_t HashValue(double value) { return HashValue(BitCast<int64_t>(value)); }
uint64_t HashValue(std::string_view value) { return HashString(kHash, kSeed, value); }

// An array may be read as one of the unsigned integers of the same size.
void HashValues(std::span<const int32_t> values, uint64_t* hashes) {
  const auto* keys = reinterpret_cast<const uint32_t*>(values.data());
  HashKeys(kHash, kSeed, std::span<const uint32_t>(keys, values.size()), hashes);
}
void HashValues(std::span<const int64_t> values, uint64_t* hashes) {
  const auto* keys = reinterpret_cast<const uint64_t*>(values.data());
  HashKeys(kHash, kSeed, std::span<const uint64_t>(keys, values.size()), hashes);
}
void HashValues(std::span<const float> values, uint64_t* hashes) {
  HashFloats<uint32_t>(values, hashes);
}
void HashValues(std::span<const double> values, uint64_t* hashes) {
  HashFloats<uint64_t>(values, hashes);
}
void HashValues(const StringColumn& values, uint64_t* hashes) {
  HashKeys(kHash, kSeed, values, hashes);
}
void HashValues(const FixedColumn& values, uint64_t* hashes) {
  const auto* data = reinterpret_cast<const char*>(values.data);
  for (size_t i = 0; i < values.size; ++i) {
    hashes[i] = HashValue(std::string_view(data + i * values.width_bytes, values.width_bytes));
  }
}

// ---- Floats

bool MayContain(const ProbeCalls& filter, float value) { return MayContainFloat(filter, value); }
bool MayContain(const ProbeCalls& filter, double value) { return MayContainFloat(filter, value); }

size_t Probe(const ProbeCalls& filter, std::span<const float> values, uint8_t* bitmap,
             Validity validity) {
  return ProbeFloats(filter, values, bitmap, validity);
}
size_t Probe(const ProbeCalls& filter, std::span<const double> values, uint8_t* bitmap,
             Validity validity) {
  return ProbeFloats(filter, values, bitmap, validity);
}

}  // namespace tepal::parquet
