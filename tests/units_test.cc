// Numbers with units, as the command line reads and prints them.
#include "tools/tepal/units.h"

#include <cmath>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace tepal::tool {
namespace {

TEST(UnitsTest, CountsTakePowersOfAThousand) {
  EXPECT_EQ(ParseCount("0").value(), 0u);
  EXPECT_EQ(ParseCount("42").value(), 42u);
  EXPECT_EQ(ParseCount("10M").value(), 10'000'000u);
  EXPECT_EQ(ParseCount("1.5k").value(), 1500u);
  EXPECT_EQ(ParseCount("64K").value(), 64'000u);
  EXPECT_EQ(ParseCount("0.1G").value(), 100'000'000u);
  EXPECT_EQ(ParseCount("2T").value(), 2'000'000'000'000u);
  EXPECT_EQ(ParseCount("1e6").value(), 1'000'000u);
  EXPECT_EQ(ParseCount("10 M").value(), 10'000'000u);
  EXPECT_EQ(ParseCount("9007199254740993").value(), 9007199254740993u);  // no double has it
}

// Most decimal fractions are no binary ones.
TEST(UnitsTest, EveryDecimalFractionOfAUnitIsAWholeNumber) {
  for (uint64_t thousandths = 0; thousandths < 20'000; ++thousandths) {
    const std::string digits = std::to_string(1000 + thousandths % 1000).substr(1);
    const std::string number = std::to_string(thousandths / 1000) + "." + digits;
    ASSERT_EQ(ParseCount(number + "k").value(), thousandths) << number;
    ASSERT_EQ(ParseCount(number + "T").value(), thousandths * 1'000'000'000) << number;
    ASSERT_FALSE(ParseCount(number + "5k").ok()) << number;
  }
  EXPECT_EQ(ParseBytes("0.001MB").value(), 1000u);
  EXPECT_FALSE(ParseCount("0.0001k").ok());
  EXPECT_FALSE(ParseCount("1000000.0000001M").ok());
}

TEST(UnitsTest, SeedsAreAllNumbersOf64Bits) {
  EXPECT_EQ(ParseSeed("0").value(), 0u);
  EXPECT_EQ(ParseSeed("010").value(), 10u);
  EXPECT_EQ(ParseSeed("18446744073709551615").value(), ~uint64_t{0});
  for (const char* text : {"", "-1", "+1", "0x10", "1k", "1 ", "18446744073709551616"}) {
    EXPECT_EQ(ParseSeed(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(UnitsTest, LimitsOfZeroAreErrors) {
  EXPECT_EQ(ParseRate("1%").value(), 0.01);
  for (const char* text : {"0", "0%", "1e-400", "-1%", "2"}) {
    EXPECT_EQ(ParseRate(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ParseBytes("0").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseBytes("0KiB").status().code(), StatusCode::kInvalidArgument);
}

TEST(UnitsTest, SizesTellDecimalFromBinaryUnits) {
  EXPECT_EQ(ParseBytes("4096").value(), 4096u);
  EXPECT_EQ(ParseBytes("64B").value(), 64u);
  EXPECT_EQ(ParseBytes("64KiB").value(), 65536u);
  EXPECT_EQ(ParseBytes("64kB").value(), 64000u);
  EXPECT_EQ(ParseBytes("8 MiB").value(), 8388608u);
  EXPECT_EQ(ParseBytes("1.5GiB").value(), 1610612736u);
  EXPECT_EQ(ParseBytes("1TiB").value(), uint64_t{1} << 40);
  EXPECT_FALSE(ParseBytes("8M").ok());
}

TEST(UnitsTest, SharesAreFractionsOrPercent) {
  EXPECT_EQ(ParseShare("1%").value(), 0.01);
  EXPECT_EQ(ParseShare("0.01").value(), 0.01);
  EXPECT_EQ(ParseShare("1e-9").value(), 1e-9);
  EXPECT_EQ(ParseShare("0").value(), 0.0);
  EXPECT_EQ(ParseShare("100%").value(), 1.0);
  EXPECT_FALSE(ParseShare("1.5").ok());
  EXPECT_FALSE(ParseShare("101%").ok());
}

TEST(UnitsTest, TimesNeedTheirUnit) {
  EXPECT_EQ(ParseNanoseconds("100ns").value(), 100.0);
  EXPECT_EQ(ParseNanoseconds("1.5us").value(), 1500.0);
  EXPECT_EQ(ParseNanoseconds("2ms").value(), 2e6);
  EXPECT_EQ(ParseNanoseconds("1s").value(), 1e9);
  EXPECT_FALSE(ParseNanoseconds("100").ok());
}

TEST(UnitsTest, WhatIsNoNumberIsAnErrorThatSaysWhatWouldBeOne) {
  for (const char* text : {"", "M", "-1", "+1", "1.5", "10X", "10M ", " 10M", "nan", "inf", "1e30",
                           "10MM", "0x10", "10,000"}) {
    const Result<uint64_t> count = ParseCount(text);
    ASSERT_FALSE(count.ok()) << text;
    EXPECT_EQ(count.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(count.status().message().find("10M"), std::string::npos) << count.status().message();
  }
  EXPECT_FALSE(ParseBytes("0.3").ok());
  EXPECT_FALSE(ParseShare("%").ok());
  EXPECT_FALSE(ParseShare("-1%").ok());
  EXPECT_FALSE(ParseNanoseconds("ns").ok());
}

TEST(UnitsTest, NumbersArePrintedWithThreeDigitsAndTheirUnit) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567890), "1,234,567,890");
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "0.977 KiB");
  EXPECT_EQ(FormatBytes(1 << 20), "1 MiB");
  EXPECT_EQ(FormatBytes(12'500'000), "11.9 MiB");
  EXPECT_EQ(FormatBytes(uint64_t{5000} << 40), "5000 TiB");
  EXPECT_EQ(FormatShare(0.00987), "0.987 %");
  EXPECT_EQ(FormatShare(1), "100 %");
  EXPECT_EQ(FormatShare(1e-9), "1.00e-07 %");
  EXPECT_EQ(FormatNanoseconds(0.707), "0.707 ns");
  EXPECT_EQ(FormatNanoseconds(1250), "1.25 us");
  EXPECT_EQ(FormatNanoseconds(999.7), "1 us");
  EXPECT_EQ(FormatNanoseconds(5e12), "5000 s");
}

}  // namespace
}  // namespace tepal::tool
