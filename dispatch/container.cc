// The format is FORMAT.md; the checks below have its order and its numbers.
#include "tepal/container.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <utility>

#include "dispatch/bit_cast.h"
#include "dispatch/bitmap.h"
#include "dispatch/files.h"
#include "dispatch/no_memory.h"

namespace tepal {
namespace {

constexpr size_t kHeaderBytes = 128;
constexpr std::array<uint8_t, 8> kMagic = {0x89, 'T', 'E', 'P', 'A', 'L', '\r', '\n'};
using Header = std::array<uint8_t, kHeaderBytes>;
using Bytes = std::span<const uint8_t>;

// A little-endian number in the header.
struct Field {
  size_t offset;
  size_t bytes;
};
constexpr Field kVersion{8, 4};
constexpr Field kHeaderSize{12, 4};
constexpr Field kPayloadSize{16, 8};
constexpr Field kNumBits{24, 8};
constexpr Field kRationalK{32, 8};
constexpr Field kSeed{40, 8};
constexpr Field kNumKeys{48, 8};
constexpr Field kNumProbes{56, 4};
constexpr Field kLayout{60, 1};
constexpr Field kHash{61, 1};
constexpr Field kKeyKind{62, 1};
constexpr Field kReserved{63, 49};
constexpr Field kPayloadChecksum{112, 8};
constexpr size_t kChecksumBytes = 8;  // of the header: its last bytes, in every version

uint64_t Get(Bytes header, Field field) {
  return LoadWord(header.data() + field.offset, field.bytes);
}

void Put(Header& header, Field field, uint64_t value) {
  StoreWord(value, field.bytes, header.data() + field.offset);
}

uint64_t Checksum(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t HeaderChecksum(Bytes header) {
  return Checksum(header.first(header.size() - kChecksumBytes));
}

std::string Text(uint64_t number) { return std::to_string(number); }

// ---- Writing

Header MakeHeader(const FilterView& filter, uint64_t num_keys, KeyKind key_kind) {
  const Geometry& geometry = filter.geometry();
  Header header{};
  std::copy(kMagic.begin(), kMagic.end(), header.begin());
  Put(header, kVersion, kContainerVersion);
  Put(header, kHeaderSize, kHeaderBytes);
  Put(header, kPayloadSize, filter.bytes().size());
  Put(header, kNumBits, geometry.num_bits);
  Put(header, kRationalK, BitCast<uint64_t>(geometry.rational_k));
  Put(header, kSeed, geometry.seed);
  Put(header, kNumKeys, num_keys);
  Put(header, kNumProbes, geometry.num_probes);
  Put(header, kLayout, static_cast<uint64_t>(geometry.layout));
  Put(header, kHash, static_cast<uint64_t>(geometry.hash));
  Put(header, kKeyKind, static_cast<uint64_t>(key_kind));
  Put(header, kPayloadChecksum, Checksum(filter.bytes()));
  Put(header, {kHeaderBytes - kChecksumBytes, kChecksumBytes}, HeaderChecksum(header));
  return header;
}

Status CheckKeyKind(KeyKind key_kind) {
  if (!KeyKindName(key_kind).empty()) return Status::Ok();
  return Status::InvalidArgument("key_kind is not one of KeyKind");
}

// ---- Reading

// What every version keeps: steps 1 and 2.
Result<Bytes> FindHeader(Bytes container) {
  if (container.size() < kHeaderBytes) {
    return Status::Corrupt("a container has at least " + Text(kHeaderBytes) +
                           " bytes, but there are " + Text(container.size()));
  }
  if (!std::equal(kMagic.begin(), kMagic.end(), container.begin())) {
    return Status::Corrupt("the bytes do not begin as a Tepal container does");
  }
  const uint64_t stored_bytes = Get(container, kHeaderSize);
  if (stored_bytes < kHeaderBytes || stored_bytes > container.size() ||
      stored_bytes % kFilterAlignment != 0) {
    return Status::Corrupt("the header is damaged: it cannot be " + Text(stored_bytes) +
                           " bytes long");
  }
  const auto header_bytes = static_cast<size_t>(stored_bytes);
  const Bytes header = container.first(header_bytes);
  if (Get(header, {header_bytes - kChecksumBytes, kChecksumBytes}) != HeaderChecksum(header)) {
    return Status::Corrupt("the header is damaged: its checksum is wrong");
  }
  return header;
}

// Steps 3 and 4.
Status CheckVersion(Bytes header) {
  const uint64_t version = Get(header, kVersion);
  if (version > kContainerVersion) {
    return Status::Unsupported("the container has version " + Text(version) +
                               ", but this library reads versions up to " +
                               Text(kContainerVersion));
  }
  if (version == 0) return Status::Corrupt("the version is 0, but must be at least 1");
  if (header.size() != kHeaderBytes) {
    return Status::Corrupt("the header has " + Text(header.size()) + " bytes, but in version " +
                           Text(version) + " it has " + Text(kHeaderBytes));
  }
  const Bytes reserved = header.subspan(kReserved.offset, kReserved.bytes);
  if (std::any_of(reserved.begin(), reserved.end(), [](uint8_t byte) { return byte != 0; })) {
    return Status::Corrupt("reserved bytes of the header are not 0");
  }
  return Status::Ok();
}

// Step 5.
Status CheckSizes(Bytes header, uint64_t payload_bytes) {
  if (Get(header, kPayloadSize) != payload_bytes) {
    return Status::Corrupt("the payload should have " + Text(Get(header, kPayloadSize)) +
                           " bytes, but has " + Text(payload_bytes));
  }
  if (Get(header, kNumBits) % 8 != 0 || Get(header, kNumBits) / 8 != payload_bytes) {
    return Status::Corrupt("a filter of " + Text(Get(header, kNumBits)) +
                           " bits does not have a payload of " + Text(payload_bytes) + " bytes");
  }
  return Status::Ok();
}

ContainerInfo ReadInfo(Bytes header) {
  return {.version = static_cast<uint32_t>(Get(header, kVersion)),
          .geometry = {.layout = static_cast<Layout>(Get(header, kLayout)),
                       .num_bits = Get(header, kNumBits),
                       .num_probes = static_cast<uint32_t>(Get(header, kNumProbes)),
                       .rational_k = BitCast<double>(Get(header, kRationalK)),
                       .hash = static_cast<HashKind>(Get(header, kHash)),
                       .seed = Get(header, kSeed)},
          .num_keys = Get(header, kNumKeys),
          .key_kind = static_cast<KeyKind>(Get(header, kKeyKind))};
}

// Step 6. An unknown number has no name.
Status CheckKnown(std::string_view name, const char* what, Bytes header, Field field) {
  if (!name.empty()) return Status::Ok();
  return Status::Unsupported("this library does not know " + std::string(what) + " " +
                             Text(Get(header, field)) + "; a newer one may");
}

// Steps 6 and 7.
Status CheckInfo(const ContainerInfo& info, Bytes header) {
  Status status = CheckKnown(LayoutName(info.geometry.layout), "layout", header, kLayout);
  if (status.ok()) status = CheckKnown(HashKindName(info.geometry.hash), "hash", header, kHash);
  if (status.ok()) status = CheckKnown(KeyKindName(info.key_kind), "key kind", header, kKeyKind);
  if (!status.ok()) return status;
  status = info.geometry.Validate();
  if (status.code() != StatusCode::kInvalidArgument) return status;  // ok, or no memory
  return Status::Corrupt("the geometry is not valid: " + status.message());
}

// A container whose header is in order.
struct Parsed {
  ContainerInfo info;
  Bytes payload;
  uint64_t payload_checksum;
};

Result<Parsed> Parse(Bytes container) {
  const Result<Bytes> header = FindHeader(container);
  if (!header.ok()) return header.status();
  if (Status status = CheckVersion(*header); !status.ok()) return status;
  const Bytes payload = container.subspan(header->size());
  if (Status status = CheckSizes(*header, payload.size()); !status.ok()) return status;
  const ContainerInfo info = ReadInfo(*header);
  if (Status status = CheckInfo(info, *header); !status.ok()) return status;
  return Parsed{info, payload, Get(*header, kPayloadChecksum)};
}

// And its payload too: step 8.
Result<Parsed> ParseAll(Bytes container) {
  Result<Parsed> parsed = Parse(container);
  if (!parsed.ok() || Checksum(parsed->payload) == parsed->payload_checksum) return parsed;
  return Status::Corrupt("the payload is damaged: its checksum is wrong");
}

Status AtPath(const std::string& path, const Status& status) {
  return {status.code(), path + ": " + status.message()};
}

}  // namespace

std::string_view KeyKindName(KeyKind key_kind) {
  switch (key_kind) {
    case KeyKind::kUnknown:
      return "unknown";
    case KeyKind::kUint64:
      return "uint64";
    case KeyKind::kUint32:
      return "uint32";
    case KeyKind::kBytes:
      return "bytes";
    case KeyKind::kHashes:
      return "hashes";
  }
  return {};
}

Result<std::vector<uint8_t>> Serialize(const FilterView& filter, uint64_t num_keys,
                                       KeyKind key_kind) try {
  if (Status status = CheckKeyKind(key_kind); !status.ok()) return status;
  const size_t num_bytes = kHeaderBytes + filter.bytes().size();
  try {
    std::vector<uint8_t> container;
    container.reserve(num_bytes);
    const Header header = MakeHeader(filter, num_keys, key_kind);
    container.assign(header.begin(), header.end());
    container.insert(container.end(), filter.bytes().begin(), filter.bytes().end());
    return container;
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory("no memory for a container of " + Text(num_bytes) + " bytes");
  }
} catch (const std::exception&) {
  return NoMemory();
}

Result<ContainerInfo> Inspect(Bytes container) try {
  const Result<Parsed> parsed = Parse(container);
  if (!parsed.ok()) return parsed.status();
  return parsed->info;
} catch (const std::exception&) {
  return NoMemory();
}

Result<FilterView> FilterView::Open(Bytes container) try {
  const Result<Parsed> parsed = ParseAll(container);
  if (!parsed.ok()) return parsed.status();
  return Over(parsed->info.geometry, parsed->payload);
} catch (const std::exception&) {
  return NoMemory();
}

Result<Filter> Deserialize(Bytes container, const MemoryOptions& memory) try {
  const Result<Parsed> parsed = ParseAll(container);
  if (!parsed.ok()) return parsed.status();
  return Filter::FromBytes(parsed->info.geometry, parsed->payload, memory);
} catch (const std::exception&) {
  return NoMemory();
}

Status WriteFile(const std::string& path, const FilterView& filter, uint64_t num_keys,
                 KeyKind key_kind) try {
  if (Status status = CheckKeyKind(key_kind); !status.ok()) return status;
  const Header header = MakeHeader(filter, num_keys, key_kind);
  return ReplaceFile(path, {header, filter.bytes()});
} catch (const std::exception&) {
  return NoMemory();
}

Result<MappedFilter> MappedFilter::Open(const std::string& path) try {
  Result<MappedFile> mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  std::unique_ptr<MappedFile> file(new (std::nothrow) MappedFile(std::move(*mapped)));
  if (file == nullptr) return Status::OutOfMemory("no memory for a MappedFilter object");
  const Result<Parsed> parsed = ParseAll(file->bytes());
  if (!parsed.ok()) return AtPath(path, parsed.status());
  Result<FilterView> view = FilterView::Over(parsed->info.geometry, parsed->payload);
  if (!view.ok()) return AtPath(path, view.status());
  return MappedFilter(std::move(file), std::move(*view), parsed->info);
} catch (const std::exception&) {
  return NoMemory();
}

MappedFilter::MappedFilter(std::unique_ptr<MappedFile> file, FilterView view,
                           const ContainerInfo& info)
    : file_(std::move(file)), view_(std::move(view)), info_(info) {}
MappedFilter::MappedFilter(MappedFilter&&) noexcept = default;
MappedFilter& MappedFilter::operator=(MappedFilter&&) noexcept = default;
MappedFilter::~MappedFilter() = default;

}  // namespace tepal
