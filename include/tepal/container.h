// Filters as files and messages: a checked header, then the bits, ready to be probed where they
// lie. dispatch/FORMAT.md is the normative byte table. The bytes are the same on every machine.
#ifndef TEPAL_CONTAINER_H_
#define TEPAL_CONTAINER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tepal/export.h"
#include "tepal/filter.h"
#include "tepal/geometry.h"
#include "tepal/memory.h"
#include "tepal/status.h"

namespace tepal {

class MappedFile;

// The version that is written. Older ones are read, newer ones refused (kUnsupported).
inline constexpr uint32_t kContainerVersion = 1;

// What was inserted, for whoever probes; the numbers are part of the format.
enum class KeyKind : uint8_t {
  kUnknown = 0,
  kUint64 = 1,
  kUint32 = 2,
  kBytes = 3,   // strings and binaries
  kHashes = 4,  // hashes that the engine made by itself
};

// "unknown", "uint64", "uint32", "bytes", "hashes".
TEPAL_API std::string_view KeyKindName(KeyKind key_kind);

struct ContainerInfo {
  uint32_t version = kContainerVersion;
  Geometry geometry;
  uint64_t num_keys = 0;  // inserted; 0 if unknown
  KeyKind key_kind = KeyKind::kUnknown;

  bool operator==(const ContainerInfo&) const = default;
};

TEPAL_API Result<std::vector<uint8_t>> Serialize(const FilterView& filter, uint64_t num_keys = 0,
                                                 KeyKind key_kind = KeyKind::kUnknown);

// What the header says. Checks everything but the bits, so its time does not grow with the filter.
// Whatever is wrong with the bytes is kCorrupt.
TEPAL_API Result<ContainerInfo> Inspect(std::span<const uint8_t> container);

// A copy of the filter. Checks everything; any alignment will do. FilterView::Open does the same
// without a copy.
TEPAL_API Result<Filter> Deserialize(std::span<const uint8_t> container,
                                     const MemoryOptions& memory = {});

// Replaces the file at `path`, or leaves it as it was: writes to a temporary name in the same
// directory, then renames. Readers see the old or the new file, never a part, and those that have
// mapped the old one keep it. The new file has the permission bits of the old one, less those that
// the umask takes; its owner, group and ACL are those of any new file. A symbolic link is replaced,
// not followed. A file without permission to write is replaced, too: what counts is the permission
// to write to the directory. Survives a power failure once it has returned, if the file system
// keeps its promises.
TEPAL_API Status WriteFile(const std::string& path, const FilterView& filter, uint64_t num_keys = 0,
                           KeyKind key_kind = KeyKind::kUnknown);

// A filter that is probed in a file mapped into memory; processes that map the same file share its
// memory. Open() reads all of the file once, to check it.
//
// Files must be replaced (WriteFile, or any rename), never changed in place: a mapping sees the
// change, unchecked, and if the file has shrunk, the system ends the process with SIGBUS. For files
// that others may touch, copy: Filter::FromBytes(view().geometry(), view().bytes()).
class TEPAL_API MappedFilter {
 public:
  static Result<MappedFilter> Open(const std::string& path);

  MappedFilter(MappedFilter&&) noexcept;
  MappedFilter& operator=(MappedFilter&&) noexcept;
  ~MappedFilter();

  // Valid, as are its copies, until the MappedFilter is destroyed or assigned to.
  const FilterView& view() const { return view_; }
  const ContainerInfo& info() const { return info_; }

 private:
  MappedFilter(std::unique_ptr<MappedFile> file, FilterView view, const ContainerInfo& info);

  std::unique_ptr<MappedFile> file_;
  FilterView view_;
  ContainerInfo info_;
};

}  // namespace tepal

#endif  // TEPAL_CONTAINER_H_
