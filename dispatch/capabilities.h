// What the host side knows about a layout besides its sizes: its family, and what can be done with
// its filters besides inserts and probes.
#ifndef TEPAL_DISPATCH_CAPABILITIES_H_
#define TEPAL_DISPATCH_CAPABILITIES_H_

#include "tepal/geometry.h"

namespace tepal {

// All bits of a key lie in one block of at most a cache line.
constexpr bool IsBlocked(Layout layout) {
  return layout == Layout::kSplit256 || layout == Layout::kSplit512 || layout == Layout::kLine512 ||
         layout == Layout::kRegister;
}

struct Capabilities {
  bool set_union;
  bool intersection;
  // A common key shows in every part or word, so that one empty one proves that there is none.
  // Without parts any two common bits look like a common key.
  bool disjointness;
  // By folding blocks, or by leaving out parts.
  bool shrink;
};

constexpr Capabilities CapabilitiesOf(Layout layout) {
  switch (layout) {
    case Layout::kStandard:
    case Layout::kRational:
      return {.set_union = true, .intersection = true, .disjointness = false, .shrink = false};
    case Layout::kVariable:
    case Layout::kVariablePaper:
    case Layout::kRegister:
    case Layout::kLine512:
      return {.set_union = true, .intersection = true, .disjointness = false, .shrink = true};
    case Layout::kPartitioned:
    case Layout::kSplit256:
    case Layout::kSplit512:
      return {.set_union = true, .intersection = true, .disjointness = true, .shrink = true};
  }
  return {};
}

}  // namespace tepal

#endif  // TEPAL_DISPATCH_CAPABILITIES_H_
