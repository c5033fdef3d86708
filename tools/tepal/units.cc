#include "tools/tepal/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <system_error>

namespace tepal::tool {
namespace {

struct Unit {
  std::string_view suffix;
  long double factor;
};

constexpr Unit kCountUnits[] = {{"", 1},    {"k", 1e3}, {"K", 1e3},
                                {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
constexpr Unit kByteUnits[] = {
    {"", 1},          {"B", 1},
    {"kB", 1e3},      {"MB", 1e6},
    {"GB", 1e9},      {"TB", 1e12},
    {"KiB", 1 << 10}, {"MiB", 1 << 20},
    {"GiB", 1 << 30}, {"TiB", 1024.0L * (1 << 30)},
};
constexpr Unit kShareUnits[] = {{"", 1}, {"%", 0.01L}};
constexpr Unit kTimeUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

// Whole numbers below this are exact in a long double, and no count or size comes near it.
constexpr long double kTooLarge = 9.2e18L;

Status Wrong(std::string_view text, std::string_view expected) {
  return Status::InvalidArgument("'" + std::string(text) + "' is not " + std::string(expected));
}

// A non-negative number and one of the units, with or without a space between them.
Result<long double> Parse(std::string_view text, std::span<const Unit> units,
                          std::string_view expected) {
  long double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !(number >= 0) || std::isinf(number)) return Wrong(text, expected);
  std::string_view suffix(rest, static_cast<size_t>(end - rest));
  if (suffix.starts_with(' ')) suffix.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.suffix == suffix) return number * unit.factor;
  }
  return Wrong(text, expected);
}

Result<uint64_t> ParseWhole(std::string_view text, std::span<const Unit> units,
                            std::string_view expected) {
  const Result<long double> number = Parse(text, units, expected);
  if (!number.ok()) return number.status();
  // 0.001k is not exactly 1: neither 0.001 nor the product is exact. What is off by more than the
  // last two bits was not meant to be whole.
  constexpr long double kTolerance = 4 * std::numeric_limits<long double>::epsilon();
  const long double whole = std::round(*number);
  if (*number >= kTooLarge || std::abs(*number - whole) > kTolerance * whole) {
    return Wrong(text, expected);
  }
  return static_cast<uint64_t>(whole);
}

// Three digits that count, and no more zeros than needed: 1.25, 12.5, 125.
std::string ThreeDigits(double value) {
  std::array<char, 32> text{};
  if (value != 0 && (std::abs(value) < 1e-4 || std::abs(value) >= 999.5)) {
    std::snprintf(text.data(), text.size(), value >= 999.5 ? "%.0f" : "%.2e", value);
  } else {
    std::snprintf(text.data(), text.size(), "%.3g", value);
  }
  return text.data();
}

}  // namespace

Result<uint64_t> ParseCount(std::string_view text) {
  return ParseWhole(text, kCountUnits, "a whole number such as 1000, 64k, 10M or 1.5G");
}

Result<uint64_t> ParseBytes(std::string_view text) {
  constexpr std::string_view kExpected = "a size such as 4096, 64KiB, 8MiB or 1.5GB";
  Result<uint64_t> bytes = ParseWhole(text, kByteUnits, kExpected);
  return bytes.ok() && *bytes == 0 ? Wrong(text, kExpected) : bytes;
}

Result<uint64_t> ParseSeed(std::string_view text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && rest == end) return seed;
  return Wrong(text, "a whole number from 0 to 18446744073709551615");
}

Result<double> ParseShare(std::string_view text) {
  constexpr std::string_view kExpected = "a share from 0 to 1 such as 1%, 0.01 or 1e-3";
  const Result<long double> share = Parse(text, kShareUnits, kExpected);
  if (!share.ok()) return share.status();
  if (*share > 1) return Wrong(text, kExpected);
  return static_cast<double>(*share);
}

Result<double> ParseRate(std::string_view text) {
  Result<double> rate = ParseShare(text);
  return rate.ok() && *rate == 0 ? Wrong(text, "a rate above 0 such as 1%, 0.01 or 1e-3") : rate;
}

Result<double> ParseNanoseconds(std::string_view text) {
  const Result<long double> time_ns =
      Parse(text, kTimeUnits, "a time with its unit such as 100ns, 1.5us, 2ms or 1s");
  if (!time_ns.ok()) return time_ns.status();
  return static_cast<double>(*time_ns);
}

std::string FormatCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, ",");
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  // From 999.5 on, three digits would round up to 1000.
  for (; size >= 999.5 && unit + 1 < kNames.size(); ++unit) size /= 1024;
  return ThreeDigits(size) + " " + kNames[unit];
}

std::string FormatShare(double share) { return ThreeDigits(share * 100) + " %"; }

std::string FormatNanoseconds(double time_ns) {
  constexpr std::array<const char*, 4> kNames = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  for (; time_ns >= 999.5 && unit + 1 < kNames.size(); ++unit) time_ns /= 1000;
  return ThreeDigits(time_ns) + " " + kNames[unit];
}

}  // namespace tepal::tool
