// Tables 1 to 4 of Almeida, "A Case for Partitioned Bloom Filters", as printed, and what is wrong
// with some entries. The test of the mathematics and `tepal reproduce` read them from here.
#ifndef TEPAL_TOOLS_TEPAL_PAPER_TABLES_H_
#define TEPAL_TOOLS_TEPAL_PAPER_TABLES_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "tepal/fpr.h"

namespace tepal::paper {

// n = floor(m/k ln 2): the tables round down, which Fa and Fp of Table 1 prove.
inline uint64_t NominalKeys(uint64_t num_bits, uint32_t num_probes) {
  return static_cast<uint64_t>(static_cast<double>(num_bits) / num_probes * std::numbers::ln2);
}

// The term i = nk of Eq. 10 and Eq. 14: the probability that no two of all n*k balls meet, times
// the probability that the query's bits are among the nk set ones.
//
// The paper's tables left it out. At nominal occupation it is nothing, and Table 1 is right but for
// the last digits of one ratio. In small, nearly empty filters it is most of the sum, and the
// entries of Tables 2 and 3 for 1/4 and 1/2 of the occupation are wrong: with the term they have
// the digits under `exact` below (checked in rational arithmetic), and without it every printed
// digit comes out.
inline double NoTwoBallsMeet(uint64_t balls, uint64_t num_bits) {
  double probability = 1;
  for (uint64_t ball = 0; ball < balls; ++ball) {
    probability *= 1 - static_cast<double>(ball) / static_cast<double>(num_bits);
  }
  return probability;
}

inline double StandardAsInTables(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes) {
  const uint64_t balls = num_keys * num_probes;
  const double fill = static_cast<double>(balls) / static_cast<double>(num_bits);
  return fpr::StandardExact(num_keys, num_bits, num_probes) -
         NoTwoBallsMeet(balls, num_bits) * std::pow(fill, num_probes);
}

inline double PerElementAsInTables(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes,
                                   uint32_t distinct_bits) {
  const uint64_t balls = num_keys * num_probes;
  double all_set = 1;
  for (uint32_t j = 0; j < distinct_bits; ++j) {
    all_set *= (static_cast<double>(balls) - j) / (static_cast<double>(num_bits) - j);
  }
  return fpr::PerElement(num_keys, num_bits, num_probes, distinct_bits) -
         NoTwoBallsMeet(balls, num_bits) * all_set;
}

struct TableOneRow {
  uint64_t num_bits;
  uint32_t num_probes;
  const char *fa, *fs, *fp, *ratio;
};

inline constexpr TableOneRow kTableOne[] = {
    {64, 4, "0.06244514", "0.06423247", "0.06676410", "1.03941360"},
    {64, 8, "0.00227672", "0.00260362", "0.00316870", "1.21703762"},
    {512, 4, "0.06126247", "0.06148344", "0.06176528", "1.00458411"},
    {512, 8, "0.00375309", "0.00381650", "0.00389940", "1.02172097"},
    {512, 16, "0.00001409", "0.00001513", "0.00001661", "1.09783475"},
    {4096, 4, "0.06233016", "0.06235819", "0.06239353", "1.00056676"},
    {4096, 8, "0.00385474", "0.00386284", "0.00387308", "1.00265094"},
    {4096, 16, "0.00001486", "0.00001499", "0.00001516", "1.01143019"},
};

struct TableTwoRow {
  uint64_t num_bits;
  uint32_t num_probes;
  std::array<const char*, 3> printed, exact;  // at 1/4, 1/2 and 1/1 of the nominal keys
};

// clang-format off
inline constexpr TableTwoRow kTableTwo[] = {
    {64, 4, {"4.42059447", "1.11720759", "1.03941360"},
     {"1.05697493", "1.04791623", "1.03941360"}},
    {64, 8, {"8.91227883", "1.77601565", "1.21703762"},
     {"1.34006467", "1.28326972", "1.21703636"}},
    {512, 4, {"1.00616297", "1.00527287", "1.00458411"},
     {"1.00566592", "1.00527287", "1.00458411"}},
    {512, 8, {"1.02790590", "1.02512045", "1.02172097"},
     {"1.02720888", "1.02512045", "1.02172097"}},
    {512, 16, {"1.13309283", "1.11474124", "1.09783475"},
     {"1.12796716", "1.11474124", "1.09783475"}},
    {4096, 4, {"1.00069246", "1.00064963", "1.00056676"},
     {"1.00069246", "1.00064963", "1.00056676"}},
    {4096, 8, {"1.00324437", "1.00303940", "1.00265094"},
     {"1.00324437", "1.00303940", "1.00265094"}},
    {4096, 16, {"1.01404449", "1.01313731", "1.01143019"},
     {"1.01404449", "1.01313731", "1.01143019"}},
};
// clang-format on

struct TableThreeRow {
  uint64_t occupation;  // 1 / the share of the nominal keys
  uint64_t num_bits;
  uint32_t num_probes;
  std::array<const char*, 4> printed, exact;  // for 0 to 3 collisions
};

// clang-format off
inline constexpr TableThreeRow kTableThree[] = {
    {1, 64, 4, {"0.91", "1.88", "3.85", "7.78"}, {"0.91", "1.88", "3.85", "7.78"}},
    {1, 64, 8, {"0.59", "1.39", "3.25", "7.47"}, {"0.59", "1.39", "3.25", "7.47"}},
    {1, 512, 8, {"0.95", "1.92", "3.89", "7.88"}, {"0.95", "1.92", "3.89", "7.88"}},
    {1, 512, 16, {"0.79", "1.62", "3.31", "6.78"}, {"0.79", "1.62", "3.31", "6.78"}},
    {2, 64, 4, {"0.76", "3.21", "12.92", "50.00"}, {"0.76", "3.19", "12.74", "48.93"}},
    {2, 64, 8, {"0.14", "1.09", "7.50", "47.38"}, {"0.16", "1.12", "7.36", "44.65"}},
    {2, 512, 8, {"0.87", "3.09", "10.87", "38.10"}, {"0.87", "3.09", "10.87", "38.10"}},
    {2, 512, 16, {"0.56", "2.03", "7.41", "26.86"}, {"0.56", "2.03", "7.41", "26.86"}},
    {4, 64, 4, {"0.38", "5.90", "74.86", "804.25"}, {"0.43", "5.60", "61.18", "581.88"}},
    {4, 64, 8, {"0.00", "0.07", "4.45", "134.33"}, {"0.00", "0.19", "5.99", "124.89"}},
    {4, 512, 8, {"0.74", "5.03", "33.76", "224.42"}, {"0.74", "5.03", "33.76", "224.39"}},
    {4, 512, 16, {"0.23", "1.87", "15.28", "123.08"}, {"0.23", "1.87", "15.28", "123.02"}},
};
// clang-format on

struct TableFourRow {
  uint64_t num_bits;
  uint32_t num_probes;
  const char* some;
  std::array<const char*, 4> exactly;
};

inline constexpr TableFourRow kTableFour[] = {
    {64, 4, "0.0911", {"0.9089", "0.0894", "0.0017", "0.0000"}},
    {64, 8, "0.3660", {"0.6340", "0.3115", "0.0510", "0.0034"}},
    {512, 8, "0.0535", {"0.9465", "0.0525", "0.0010", "0.0000"}},
    {512, 16, "0.2108", {"0.7892", "0.1905", "0.0192", "0.0011"}},
};

}  // namespace tepal::paper

#endif  // TEPAL_TOOLS_TEPAL_PAPER_TABLES_H_
