// builtin_profile.json as a string; CMake makes the source file.
#ifndef TEPAL_DISPATCH_BUILTIN_PROFILE_H_
#define TEPAL_DISPATCH_BUILTIN_PROFILE_H_

namespace tepal {

extern const char kBuiltInProfileJson[];

}  // namespace tepal

#endif  // TEPAL_DISPATCH_BUILTIN_PROFILE_H_
