// The kernels of the target that is in force. Fetched once a batch.
#ifndef TEPAL_DISPATCH_ACTIVE_KERNELS_H_
#define TEPAL_DISPATCH_ACTIVE_KERNELS_H_

#include "kernels/kernel_tables.h"

namespace tepal {

struct KernelSet {
  int64_t target = 0;
  const HashKernels* hash = nullptr;
  const BlockKernels* block = nullptr;
  const LaneKernels* lane = nullptr;
  const ResultKernels* result = nullptr;
  const SetKernels* sets = nullptr;
};

const KernelSet& ActiveKernels();

}  // namespace tepal

#endif  // TEPAL_DISPATCH_ACTIVE_KERNELS_H_
