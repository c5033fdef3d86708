#include "tepal/version.h"

#define TEPAL_STRINGIFY_(x) #x
#define TEPAL_STRINGIFY(x) TEPAL_STRINGIFY_(x)

namespace tepal {

const char* Version() {
  return TEPAL_STRINGIFY(TEPAL_VERSION_MAJOR) "." TEPAL_STRINGIFY(
      TEPAL_VERSION_MINOR) "." TEPAL_STRINGIFY(TEPAL_VERSION_PATCH);
}

}  // namespace tepal
