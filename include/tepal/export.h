// TEPAL_API marks what the shared library exports. All else in it is hidden.
#ifndef TEPAL_EXPORT_H_
#define TEPAL_EXPORT_H_

#if defined(__GNUC__)
#define TEPAL_API __attribute__((visibility("default")))
#else
#define TEPAL_API
#endif

#endif  // TEPAL_EXPORT_H_
