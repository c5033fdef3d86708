// std::bit_cast, which libc++ lacks before version 14: Emscripten in Debian 12 has an older one.
#ifndef TEPAL_DISPATCH_BIT_CAST_H_
#define TEPAL_DISPATCH_BIT_CAST_H_

namespace tepal {

template <class To, class From>
constexpr To BitCast(const From& from) {
  return __builtin_bit_cast(To, from);  // g++ 11, clang 9 and MSVC 19.27 have it
}

}  // namespace tepal

#endif  // TEPAL_DISPATCH_BIT_CAST_H_
