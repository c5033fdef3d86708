// Zeroed memory for one filter, or for a thread that builds one, aligned to kFilterAlignment.
#ifndef TEPAL_DISPATCH_BUFFER_H_
#define TEPAL_DISPATCH_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "tepal/memory.h"
#include "tepal/status.h"

namespace tepal {

class Buffer {
 public:
  static Result<Buffer> Allocate(uint64_t num_bytes, const MemoryOptions& options);

  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~Buffer() { allocator_.deallocate(data_, bytes_, allocator_.context); }

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  Buffer() = default;
  void Swap(Buffer& other) noexcept;

  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
  Allocator allocator_ = {.deallocate = [](void*, size_t, void*) {}};
};

}  // namespace tepal

#endif  // TEPAL_DISPATCH_BUFFER_H_
