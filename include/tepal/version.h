// The version of the headers (compile time) and of the library that is linked (run time).
#ifndef TEPAL_VERSION_H_
#define TEPAL_VERSION_H_

#include "tepal/export.h"

#define TEPAL_VERSION_MAJOR 0
#define TEPAL_VERSION_MINOR 1
#define TEPAL_VERSION_PATCH 0

#ifdef __cplusplus
namespace tepal {

// "major.minor.patch" of the linked library.
TEPAL_API const char* Version();

}  // namespace tepal
#endif

#endif  // TEPAL_VERSION_H_
