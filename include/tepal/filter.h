// Filters: insert keys, then ask which of other keys may be among them. "Maybe" can be wrong with a
// small probability; "no" is always right. A Filter owns its bits, a FilterView borrows them.
#ifndef TEPAL_FILTER_H_
#define TEPAL_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tepal/columns.h"
#include "tepal/export.h"
#include "tepal/geometry.h"
#include "tepal/memory.h"
#include "tepal/status.h"

namespace tepal {

class Buffer;
struct FilterAccess;
struct FilterCore;

// What can be asked of a filter, whoever owns its bits.
//
// All calls take a column of keys, which Tepal hashes (Geometry::hash, Geometry::seed), or a column
// of 64-bit hashes that the engine already has; a filter should see one or the other. A 4-byte key
// and an 8-byte key of the same value are different keys.
//
// Empty columns, also with null pointers, do nothing. Outputs: `bitmap` has (size + 7) / 8 bytes,
// one bit a row, least significant first, unused bits of the last byte zero; `rows` has room for as
// many entries as rows go in.
//
// Any number of threads may call these functions at once.
class TEPAL_API ProbeCalls {
 public:
  const Geometry& geometry() const;

  // The bits, as little-endian words, exactly geometry().num_bytes() long. Aligned to
  // kFilterAlignment.
  std::span<const uint8_t> bytes() const;

  // Sets bit i of `bitmap` if row i may be in the filter. Returns the number of bits set.
  size_t Probe(std::span<const uint64_t> keys, uint8_t* bitmap, Validity validity = {}) const;
  size_t Probe(std::span<const uint32_t> keys, uint8_t* bitmap, Validity validity = {}) const;
  size_t Probe(const StringColumn& keys, uint8_t* bitmap, Validity validity = {}) const;
  size_t ProbeHashes(std::span<const uint64_t> hashes, uint8_t* bitmap,
                     Validity validity = {}) const;

  // Writes the indices of the rows that may be in the filter, in order, to `rows`; returns how
  // many. At most 2^32 rows.
  size_t Select(std::span<const uint64_t> keys, uint32_t* rows, Validity validity = {}) const;
  size_t Select(std::span<const uint32_t> keys, uint32_t* rows, Validity validity = {}) const;
  size_t Select(const StringColumn& keys, uint32_t* rows, Validity validity = {}) const;
  size_t SelectHashes(std::span<const uint64_t> hashes, uint32_t* rows,
                      Validity validity = {}) const;

  // The same for the rows in `selection` only: chained filters. `rows` may be `selection` itself.
  // Each entry of `selection` is an index into the column (and into `validity`).
  size_t Select(std::span<const uint64_t> keys, std::span<const uint32_t> selection, uint32_t* rows,
                Validity validity = {}) const;
  size_t Select(std::span<const uint32_t> keys, std::span<const uint32_t> selection, uint32_t* rows,
                Validity validity = {}) const;
  size_t Select(const StringColumn& keys, std::span<const uint32_t> selection, uint32_t* rows,
                Validity validity = {}) const;
  size_t SelectHashes(std::span<const uint64_t> hashes, std::span<const uint32_t> selection,
                      uint32_t* rows, Validity validity = {}) const;

  // Asks for the memory that these rows will need, and does not wait for it. For engines with
  // batches of 32 to 128 rows: called for the next batch before this one is probed, it saves the
  // next call its wait. Does nothing for filters that are small enough for a cache, nor for
  // scattered layouts, which wait for one probe after the other anyway. Measure it on your CPU: it
  // saved a third to a half of the time of such batches on Zen 4 and Zen 5, and added up to a tenth
  // on Emerald Rapids.
  void PrefetchHashes(std::span<const uint64_t> hashes) const;

  // How many rows may be in the filter, without saying which.
  size_t Count(std::span<const uint64_t> keys, Validity validity = {}) const;
  size_t Count(std::span<const uint32_t> keys, Validity validity = {}) const;
  size_t Count(const StringColumn& keys, Validity validity = {}) const;
  size_t CountHashes(std::span<const uint64_t> hashes, Validity validity = {}) const;

  // One key at a time: convenient, and several times slower per key than a batch.
  bool MayContain(uint64_t key) const;
  bool MayContain(uint32_t key) const;
  bool MayContain(std::string_view key) const;
  bool MayContainHash(uint64_t hash) const;

 protected:
  ProbeCalls(std::shared_ptr<const FilterCore> core, const uint8_t* bytes);
  ProbeCalls(const ProbeCalls&) = default;
  ProbeCalls(ProbeCalls&&) noexcept = default;
  ProbeCalls& operator=(const ProbeCalls&) = default;
  ProbeCalls& operator=(ProbeCalls&&) noexcept = default;
  ~ProbeCalls() = default;

  std::shared_ptr<const FilterCore> core_;  // a filter and its views share one
  const uint8_t* bytes_;

 private:
  friend struct FilterAccess;
};

// Bits that somebody else owns: another Filter, a mapped file. They must outlive the view and its
// copies; a copy costs a reference count. While somebody changes the bits, no view may read them.
class TEPAL_API FilterView : public ProbeCalls {
 public:
  // Fails if the geometry is not valid, `bytes` are not geometry.num_bytes() bytes at a multiple of
  // kFilterAlignment, or TEPAL_TARGET names no target that can run here.
  static Result<FilterView> Over(const Geometry& geometry, std::span<const uint8_t> bytes);

  // The filter in a container (container.h), all of which is checked first. `container` must start
  // at a multiple of kFilterAlignment.
  static Result<FilterView> Open(std::span<const uint8_t> container);

 private:
  friend class Filter;
  FilterView(std::shared_ptr<const FilterCore> core, const uint8_t* bytes);
};

// Bits of its own. An Insert needs the filter for itself: no other call at the same time.
class TEPAL_API Filter : public ProbeCalls {
 public:
  // An empty filter. Fails if the geometry is not valid, the memory cannot be had, or TEPAL_TARGET
  // names no target that can run here.
  static Result<Filter> Create(const Geometry& geometry, const MemoryOptions& memory = {});

  // A copy of the bytes() of another filter. Fails as Create does, and if there are not exactly
  // geometry.num_bytes() of them; any alignment will do.
  static Result<Filter> FromBytes(const Geometry& geometry, std::span<const uint8_t> bytes,
                                  const MemoryOptions& memory = {});

  Filter(Filter&&) noexcept;
  Filter& operator=(Filter&&) noexcept;
  ~Filter();

  // Sees later inserts. Survives moves of the filter, but not its end.
  FilterView View() const;

  void Insert(std::span<const uint64_t> keys, Validity validity = {});
  void Insert(std::span<const uint32_t> keys, Validity validity = {});
  void Insert(const StringColumn& keys, Validity validity = {});
  void InsertHashes(std::span<const uint64_t> hashes, Validity validity = {});

 private:
  friend struct FilterAccess;
  Filter(std::shared_ptr<const FilterCore> core, std::unique_ptr<Buffer> buffer);

  std::unique_ptr<Buffer> buffer_;
};

}  // namespace tepal

#endif  // TEPAL_FILTER_H_
