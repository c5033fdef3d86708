// No exception leaves the library. Public calls that return a Status or a Result are function try
// blocks, which end in `catch (const std::exception&) { return NoMemory(); }`: all that the
// standard library throws in them is for lack of memory.
#ifndef TEPAL_DISPATCH_NO_MEMORY_H_
#define TEPAL_DISPATCH_NO_MEMORY_H_

#include <exception>

#include "tepal/status.h"

namespace tepal {

// Short enough for a std::string without memory of its own.
inline Status NoMemory() { return Status::OutOfMemory("out of memory"); }

}  // namespace tepal

#endif  // TEPAL_DISPATCH_NO_MEMORY_H_
