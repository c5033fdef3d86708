// Walther, Mansour, Zollner and Werner, "Extending the Applicability of Bloom Filters by Relaxing
// their Parameter Constraints": Figures 1 and 3 (3 and 7 of the long version), and the comparison
// of Variably-Sized Block Bloom filters with standard ones.
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "tepal/filter.h"
#include "tepal/fpr.h"
#include "tools/tepal/exhibit.h"
#include "tools/tepal/measured_rate.h"
#include "tools/tepal/table.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

double BestRationalK(uint64_t num_keys, uint64_t num_bits) {
  return static_cast<double>(num_bits) / static_cast<double>(num_keys) * std::numbers::ln2;
}

double Fill(uint64_t num_keys, uint64_t num_bits, double k) {
  return -std::expm1(-k * static_cast<double>(num_keys) / static_cast<double>(num_bits));
}

// As published: the fill to the power of k.
double PublishedRate(uint64_t num_keys, uint64_t num_bits, double k) {
  return std::pow(Fill(num_keys, num_bits, k), k);
}

Geometry RationalGeometry(Layout layout, uint64_t num_bits, double k) {
  return {.layout = layout,
          .num_bits = num_bits,
          .num_probes = static_cast<uint32_t>(std::ceil(k)),
          .rational_k = k};
}

Geometry IntegerGeometry(Layout layout, uint64_t num_bits, uint32_t num_probes) {
  return {.layout = layout, .num_bits = num_bits, .num_probes = num_probes};
}

double MeasuredRate(const Geometry& geometry, uint64_t num_keys, uint64_t num_filters,
                    double num_probes, uint64_t seed) {
  return Measure(geometry, num_keys, num_filters, static_cast<uint64_t>(num_probes), seed).rate();
}

// ---- Figures of the rate over k

// The three series of one number of keys, in one color: published, corrected, measured.
void AddCurves(uint64_t num_keys, uint64_t num_bits, double num_probes, size_t color,
               std::vector<Series>& series) {
  const std::string name = FormatCount(num_keys) + " keys";
  Series published{.name = "", .style = Series::Style::kDashed, .color = color};
  Series corrected{.name = name, .style = Series::Style::kLine, .color = color};
  Series measured{.name = "", .style = Series::Style::kPoints, .color = color};
  for (double k = 1; k <= 6.001; k += 0.05) {
    published.x.push_back(k);
    published.y.push_back(PublishedRate(num_keys, num_bits, k));
    corrected.x.push_back(k);
    corrected.y.push_back(fpr::Rational(num_keys, num_bits, k));
  }
  for (double k = 1; k <= 6; k += 0.25) {
    measured.x.push_back(k);
    measured.y.push_back(MeasuredRate(RationalGeometry(Layout::kRational, num_bits, k), num_keys,
                                      16, num_probes, num_keys + static_cast<uint64_t>(k * 4)));
  }
  for (Series* curve : {&published, &corrected, &measured}) series.push_back(std::move(*curve));
}

Chart RateOverK(uint64_t num_bits, const std::vector<uint64_t>& numbers_of_keys, Effort effort) {
  Chart chart{.title = "False positives over k, " + FormatCount(num_bits) +
                       " bits (dashed: as published, lines: corrected, dots: measured)",
              .x_label = "k",
              .y_label = "rate of false positives",
              .log_y = true};
  for (size_t i = 0; i < numbers_of_keys.size(); ++i) {
    AddCurves(numbers_of_keys[i], num_bits, 200'000.0 * effort.factor, i, chart.series);
  }
  return chart;
}

Exhibit RateTable(uint64_t num_bits, uint64_t num_keys, Effort effort) {
  Exhibit exhibit{.columns = {{"k", "%.3f"},
                              {"q^k (paper)", "%.4f"},
                              {"corrected", "%.4f"},
                              {"measured", "%.4f"},
                              {"zero bits", "%.3f"}}};
  const double best = BestRationalK(num_keys, num_bits);
  uint64_t seed = 1;
  for (const double k : {std::floor(best), best, std::ceil(best), std::ceil(best) + 0.5}) {
    const Geometry geometry = RationalGeometry(Layout::kRational, num_bits, k);
    exhibit.rows.push_back(
        {std::string(k == best ? "k* = m/n ln 2" : ""),
         {k, PublishedRate(num_keys, num_bits, k), fpr::Rational(num_keys, num_bits, k),
          MeasuredRate(geometry, num_keys, 16, 2e6 * effort.factor, ++seed),
          1 - Fill(num_keys, num_bits, k)}});
  }
  return exhibit;
}

constexpr size_t kMeasuredColumn = 3;

std::vector<Claim> RateClaims(const Exhibit& exhibit) {
  const auto rate = [&](size_t row) { return exhibit.rows[row].values[kMeasuredColumn]; };
  const double at_best = rate(1);
  return {{"a rational k* has fewer false positives than both neighbouring integers",
           at_best < rate(0) && at_best < rate(2),
           "measured " + Digits("%.4f", rate(0)) + " below, " + Digits("%.4f", at_best) +
               " at and " + Digits("%.4f", rate(2)) +
               " above k*. A share p of the queries makes one probe more, so rates are averaged: "
               "q^floor(k) (1 - p + p q), which is never below q^k (Jensen)"},
          {"the minima lie at integers, not at k* (the artifact of Fig. 3)",
           rate(2) < at_best || rate(0) < at_best,
           "it is no artifact of a hash function, but what the corrected formula says"},
          {"a rational k* sets half of the bits", std::abs(exhibit.rows[1].values[4] - 0.5) < 0.01,
           Digits("%.3f", exhibit.rows[1].values[4]) +
               " of the bits are zero; the rate just does not depend on that alone"}};
}

Exhibit FigureExhibit(std::string id, std::string title, uint64_t num_bits, uint64_t num_keys,
                      const std::vector<uint64_t>& numbers_of_keys, Effort effort) {
  Exhibit exhibit = RateTable(num_bits, num_keys, effort);
  exhibit.id = std::move(id);
  exhibit.title = std::move(title);
  exhibit.method = FormatCount(num_bits) + " bits, " + FormatCount(num_keys) +
                   " keys; measured with `rational` filters of random hashes";
  exhibit.claims = RateClaims(exhibit);
  exhibit.chart = RateOverK(num_bits, numbers_of_keys, effort);
  return exhibit;
}

// ---- Blocks of variable size

struct VariableCase {
  uint64_t num_bits;
  double bits_per_key;
};

// 3 and 11 blocks.
constexpr VariableCase kVariableCases[] = {
    {212992, 8}, {212992, 14.4}, {1048064, 8}, {1048064, 10}, {1048064, 14.4}};

// Measured rates over the ideal 2^-(m/n ln 2).
Exhibit::Row VariableRow(const VariableCase& test, Effort effort) {
  const auto num_keys =
      static_cast<uint64_t>(static_cast<double>(test.num_bits) / test.bits_per_key);
  const double best_k = BestRationalK(num_keys, test.num_bits);
  const auto integer_k = static_cast<uint32_t>(std::lround(best_k));
  const double ideal = std::exp2(-best_k);
  const double num_probes = 10'000 * effort.factor / ideal;
  const auto ratio = [&](const Geometry& geometry) {
    return MeasuredRate(geometry, num_keys, 16, num_probes, test.num_bits) / ideal;
  };
  return {FormatCount(test.num_bits) + " bits, " + Digits("%g", test.bits_per_key) + " per key",
          {static_cast<double>(std::popcount(test.num_bits)), ideal,
           ratio(IntegerGeometry(Layout::kStandard, test.num_bits, integer_k)),
           ratio(RationalGeometry(Layout::kVariablePaper, test.num_bits, best_k)),
           fpr::VariablePaper(num_keys, test.num_bits, best_k) / ideal,
           ratio(IntegerGeometry(Layout::kVariable, test.num_bits, integer_k))}};
}

double LargestOf(const Exhibit& exhibit, size_t column) {
  double largest = 0;
  for (const auto& row : exhibit.rows) largest = std::max(largest, row.values[column]);
  return largest;
}

double SmallestOf(const Exhibit& exhibit, size_t column) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const auto& row : exhibit.rows) smallest = std::min(smallest, row.values[column]);
  return smallest;
}

Chart VariableChart(const Exhibit& exhibit) {
  Chart chart{.title = "False positives of filters whose size is no power of two",
              .x_label = "",
              .y_label = "measured rate / ideal rate"};
  const std::pair<const char*, size_t> bars[] = {
      {"standard", 2}, {"blocks, as printed", 3}, {"blocks, corrected", 5}};
  for (const auto& row : exhibit.rows) chart.categories.push_back(row.name);
  for (size_t i = 0; i < std::size(bars); ++i) {
    Series series{.name = bars[i].first, .color = i};
    for (const auto& row : exhibit.rows) series.y.push_back(row.values[bars[i].second]);
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Exhibit VariableRates(Effort effort) {
  Exhibit exhibit{
      .id = "variable-rates",
      .title = "Variably-Sized Block Bloom filters (Algorithm 2) against standard ones",
      .method =
          "rates over the ideal 2^-(m/n ln 2), measured with `standard`, `variable-paper` "
          "(as printed) and `variable` (coordinated activation)",
      .columns = {{"blocks", "%.0f"},
                  {"ideal rate", "%.2e"},
                  {"standard", "%.2f"},
                  {"as printed", "%.2f"},
                  {"as printed, predicted", "%.2f"},
                  {"corrected", "%.2f"}}};
  for (const VariableCase& test : kVariableCases) exhibit.rows.push_back(VariableRow(test, effort));
  exhibit.claims = {
      {"rates of false positives are similar to those of a standard filter",
       LargestOf(exhibit, 3) < 1.1,
       "as printed they are " + Digits("%.1f", SmallestOf(exhibit, 3)) + " to " +
           Digits("%.1f", LargestOf(exhibit, 3)) +
           " times the ideal: (i + m_j) h2 = i h2 (mod m_j), so the positions in a small block are "
           "those of the large one, and a key that collides there collides everywhere"},
      {"a filter of any length with masks only need not lose anything (Corollary 1)",
       LargestOf(exhibit, 5) < 1.05,
       "with coordinated activation and a running index the ratio is at most " +
           Digits("%.2f", LargestOf(exhibit, 5))}};
  exhibit.chart = VariableChart(exhibit);
  return exhibit;
}

// ---- What masks gain

struct Times {
  double insert_ns;
  double probe_ns;
};

// The fastest of some repetitions, per key. Hashes are ready, so that the index arithmetic shows.
Times TimeOf(const Geometry& geometry, Effort effort) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kKeys = size_t{1} << 16;
  Filter filter = Filter::Create(geometry).value();
  Hashes hashes(7);
  const std::vector<uint64_t> present = hashes.Next(kKeys);
  const std::vector<uint64_t> absent = hashes.Next(kKeys);
  Times best{1e9, 1e9};
  for (unsigned i = 0; i < 20 * effort.factor; ++i) {
    const auto start = Clock::now();
    filter.InsertHashes(present);
    const auto middle = Clock::now();
    (void)filter.CountHashes(absent);
    const auto end = Clock::now();
    const auto ns = [](Clock::duration time) {
      return std::chrono::duration<double, std::nano>(time).count() / kKeys;
    };
    best = {std::min(best.insert_ns, ns(middle - start)),
            std::min(best.probe_ns, ns(end - middle))};
  }
  return best;
}

Exhibit MaskTimes(Effort effort) {
  constexpr uint64_t kPowerOfTwo = uint64_t{1} << 20;
  constexpr uint64_t kOther = kPowerOfTwo - 512;  // 11 blocks
  constexpr uint32_t kProbes = 8;
  Exhibit exhibit{.id = "variable-times",
                  .title = "Masks instead of a modulo (section 3)",
                  .method = "128 KiB, k = 8, 65,536 keys as ready hashes, the fastest of some runs",
                  .columns = {{"ns per insert", "%.2f"}, {"ns per probe", "%.2f"}}};
  const std::pair<const char*, Geometry> filters[] = {
      {"standard, mask (2^20 bits)", IntegerGeometry(Layout::kStandard, kPowerOfTwo, kProbes)},
      {"standard, multiply-high (2^20 - 512)", IntegerGeometry(Layout::kStandard, kOther, kProbes)},
      {"variable, masks (2^20 - 512)", IntegerGeometry(Layout::kVariable, kOther, kProbes)}};
  for (const auto& [name, geometry] : filters) {
    const Times times = TimeOf(geometry, effort);
    exhibit.rows.push_back({name, {times.insert_ns, times.probe_ns}});
  }
  const double gain = exhibit.rows[1].values[0] / exhibit.rows[2].values[0];
  exhibit.claims = {
      {"blocks with masks make inserts faster than a filter of the same size "
       "(the authors could not measure it, nor can we)",
       gain > 1.15,
       "inserts take " + Digits("%.2f", 1 / gain) +
           " times as long as with multiply-high, which needs no division either"}};
  return exhibit;
}

}  // namespace

std::vector<Exhibit> RationalExhibits(Effort effort) {
  return {FigureExhibit("rational-figure-1", "Rational k, Fig. 1 (Fig. 3 of the long version)",
                        8192, 4000, {1000, 2000, 4000, 8000}, effort),
          FigureExhibit("rational-figure-3", "Rational k, Fig. 3 (Fig. 7 of the long version)",
                        131072, 60000, {20000, 40000, 60000, 100000}, effort)};
}

std::vector<Exhibit> VariableExhibits(Effort effort) {
  return {VariableRates(effort), MaskTimes(effort)};
}

}  // namespace tepal::tool
