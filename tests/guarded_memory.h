// Memory that notices when something outside of it is touched.
#ifndef TEPAL_TESTS_GUARDED_MEMORY_H_
#define TEPAL_TESTS_GUARDED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace tepal::testing {

// `size` entries, `misalignment` entries behind a multiple of 64 bytes, with canaries before and
// behind.
template <typename T>
class GuardedArray {
 public:
  GuardedArray(size_t size, size_t misalignment)
      : memory_(kCanaries + misalignment + size + kCanaries + kLine, kCanary), size_(size) {
    const size_t start = reinterpret_cast<uintptr_t>(memory_.data()) / sizeof(T) % kLine;
    begin_ = kCanaries + (kLine - start) % kLine + misalignment;
  }

  T* data() { return memory_.data() + begin_; }
  std::span<const T> used(size_t count) { return {data(), count}; }
  bool StartsWith(std::span<const T> values) {
    return std::equal(values.begin(), values.end(), data());
  }

  // Are all entries but the first `written` as they were?
  bool OnlyWrote(size_t written) const {
    const auto untouched = [](T entry) { return entry == kCanary; };
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return written <= size_ && std::all_of(memory_.begin(), begin, untouched) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(written), memory_.end(), untouched);
  }

 private:
  static constexpr size_t kLine = 64 / sizeof(T);
  static constexpr size_t kCanaries = kLine;
  // No bitmap of a short column and no row number looks like this.
  static constexpr T kCanary = static_cast<T>(0xA5A5A5A5A5A5A5A5u);

  std::vector<T> memory_;
  size_t size_;
  size_t begin_ = 0;
};

// Entries that end where memory ends: reading or writing one more is a segmentation fault.
template <typename T>
class ArrayBeforeHole {
 public:
  explicit ArrayBeforeHole(size_t size) : size_(size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    hole_ = (size * sizeof(T) + page - 1) / page * page;
    mapped_ = hole_ + page;
    void* memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    begin_ = static_cast<uint8_t*>(memory);
    if (mprotect(begin_ + hole_, page, PROT_NONE) != 0) std::abort();
  }
  ~ArrayBeforeHole() { munmap(begin_, mapped_); }
  ArrayBeforeHole(const ArrayBeforeHole&) = delete;
  ArrayBeforeHole& operator=(const ArrayBeforeHole&) = delete;

  // The last `count` entries.
  T* Last(size_t count) { return reinterpret_cast<T*>(begin_ + hole_) - count; }
  void Fill(std::span<const T> values) { std::copy(values.begin(), values.end(), Last(size_)); }

 private:
  size_t size_;
  size_t hole_ = 0;
  size_t mapped_ = 0;
  uint8_t* begin_ = nullptr;
};

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_GUARDED_MEMORY_H_
