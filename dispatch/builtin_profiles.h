// builtin_profile_*.json as strings; CMake makes the source file.
#ifndef TEPAL_DISPATCH_BUILTIN_PROFILES_H_
#define TEPAL_DISPATCH_BUILTIN_PROFILES_H_

namespace tepal {

extern const char kAvx2ProfileJson[];
extern const char kAvx512ProfileJson[];

}  // namespace tepal

#endif  // TEPAL_DISPATCH_BUILTIN_PROFILES_H_
