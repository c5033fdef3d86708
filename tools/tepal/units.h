// Numbers as people write and read them: 10M, 64MiB, 1%, 100ns.
#ifndef TEPAL_TOOLS_TEPAL_UNITS_H_
#define TEPAL_TOOLS_TEPAL_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "tepal/status.h"

namespace tepal::tool {

// A whole number; k, M, G and T are powers of 1000. "1.5k" is 1500, "1.5" is an error.
Result<uint64_t> ParseCount(std::string_view text);

// kB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB powers of 1024; without a unit:
// bytes. A bare "M" is an error, because it would mean either to somebody. Not 0.
Result<uint64_t> ParseBytes(std::string_view text);

// Any number of 64 bits, in decimal digits only.
Result<uint64_t> ParseSeed(std::string_view text);

// "1%" or "0.01". From 0 to 1, both included.
Result<double> ParseShare(std::string_view text);

// A share above 0.
Result<double> ParseRate(std::string_view text);

// ns, us, ms or s; the unit is required.
Result<double> ParseNanoseconds(std::string_view text);

std::string FormatCount(uint64_t count);        // 10,000,000
std::string FormatBytes(uint64_t bytes);        // 11.9 MiB
std::string FormatShare(double share);          // 0.987 %, three digits
std::string FormatNanoseconds(double time_ns);  // 1.25 us, three digits

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_UNITS_H_
