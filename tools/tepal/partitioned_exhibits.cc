// Almeida, "A Case for Partitioned Bloom Filters": Tables 1 to 4 and Figures 3 and 4.
//
// Measured columns simulate ideal hashing: balls are thrown into bins, and the rate of the filter
// that results is computed from its fill, which needs no queries and leaves little noise.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tepal/fpr.h"
#include "tools/tepal/exhibit.h"
#include "tools/tepal/measured_rate.h"
#include "tools/tepal/paper_tables.h"
#include "tools/tepal/table.h"
#include "tools/tepal/units.h"

namespace tepal::tool {
namespace {

using paper::NominalKeys;

constexpr uint64_t kFilters = 20'000;  // per row, times Effort::factor

std::string NameOf(uint64_t num_bits, uint32_t num_probes) {
  return "m = " + std::to_string(num_bits) + ", k = " + std::to_string(num_probes);
}

// Uniform below `bound`, from the upper half of a hash.
uint64_t Below(uint64_t bound, Hashes& random) { return (random() >> 32) * bound >> 32; }

// Throws balls into bins; returns how many bins are hit.
class Bins {
 public:
  uint64_t Throw(uint64_t num_balls, uint64_t num_bins, Hashes& random) {
    words_.assign(num_bins / 64 + 1, 0);
    for (uint64_t ball = 0; ball < num_balls; ++ball) {
      const uint64_t bin = Below(num_bins, random);
      words_[bin / 64] |= uint64_t{1} << bin % 64;
    }
    uint64_t num_hit = 0;
    for (const uint64_t word : words_) num_hit += static_cast<uint64_t>(std::popcount(word));
    return num_hit;
  }

 private:
  std::vector<uint64_t> words_;
};

struct SimulatedRates {
  double standard = 0;
  double partitioned = 0;
  std::array<double, 4> per_element{};  // with 0 to 3 collisions
};

SimulatedRates Simulate(uint64_t num_keys, uint64_t num_bits, uint32_t num_probes, Effort effort) {
  Hashes random(num_bits * 1000 + num_probes * 10 + num_keys);
  Bins bins;
  SimulatedRates rates;
  const uint64_t num_filters = kFilters * effort.factor;
  const double share = 1 / static_cast<double>(num_filters);
  for (uint64_t i = 0; i < num_filters; ++i) {
    const auto hit = static_cast<double>(bins.Throw(num_keys * num_probes, num_bits, random));
    const auto all = static_cast<double>(num_bits);
    rates.standard += share * std::pow(hit / all, num_probes);
    for (uint32_t c = 0; c < rates.per_element.size(); ++c) {
      double all_set = 1;
      for (uint32_t j = 0; j + c < num_probes; ++j) {
        all_set *= std::max(0.0, (hit - j) / (all - j));
      }
      rates.per_element[c] += share * all_set;
    }
    double partitioned = 1;
    for (uint32_t part = 0; part < num_probes; ++part) {
      partitioned *= static_cast<double>(bins.Throw(num_keys, num_bits / num_probes, random)) *
                     num_probes / all;
    }
    rates.partitioned += share * partitioned;
  }
  return rates;
}

// ---- Counting digits

// Whether `value` has the printed digits.
bool HasDigits(double value, const std::string& printed) {
  const std::string format = "%." + std::to_string(printed.size() - printed.find('.') - 1) + "f";
  return Digits(format.c_str(), value) == printed;
}

struct Agreement {
  size_t agree = 0;
  size_t all = 0;

  // The printed number as a value; counts whether ours has the same digits.
  double Compare(const char* printed, double ours) {
    ++all;
    if (HasDigits(ours, printed)) ++agree;
    return std::strtod(printed, nullptr);
  }
  std::string Text() const { return std::to_string(agree) + " of " + std::to_string(all); }
};

const char* const kMissingTerm =
    " entries have every printed digit. The others lack the term i = nk of Eq. 10 and 14 (no two "
    "balls meet): without it our code prints the paper's digits, with it the simulation agrees";

// ---- Tables

Exhibit TableOne(Effort effort) {
  Exhibit exhibit{.id = "partitioned-table-1",
                  .title = "Partitioned filters, Table 1: rates at nominal occupation",
                  .method = "n = floor(m/k ln 2); Fa classic, Fs standard, Fp partitioned",
                  .columns = {{"Fa paper", "%.8f"},
                              {"Fa", "%.8f"},
                              {"Fs paper", "%.8f"},
                              {"Fs", "%.8f"},
                              {"Fs measured", "%.8f"},
                              {"Fp paper", "%.8f"},
                              {"Fp", "%.8f"},
                              {"Fp measured", "%.8f"},
                              {"Fp/Fs paper", "%.8f"},
                              {"Fp/Fs", "%.8f"}}};
  Agreement agreement;
  double largest_ratio_from_512 = 0;
  for (const auto& [m, k, fa, fs, fp, ratio] : paper::kTableOne) {
    const uint64_t n = NominalKeys(m, k);
    const double classic = fpr::Classic(n, m, k);
    const double standard = fpr::StandardExact(n, m, k);
    const double partitioned = fpr::PartitionedExact(n, m, k);
    const SimulatedRates measured = Simulate(n, m, k, effort);
    exhibit.rows.push_back(
        {NameOf(m, k),
         {agreement.Compare(fa, classic), classic, agreement.Compare(fs, standard), standard,
          measured.standard, agreement.Compare(fp, partitioned), partitioned, measured.partitioned,
          agreement.Compare(ratio, partitioned / standard), partitioned / standard}});
    if (m >= 512) largest_ratio_from_512 = std::max(largest_ratio_from_512, partitioned / standard);
  }
  exhibit.claims = {
      {"the entries of Table 1", agreement.agree + 1 >= agreement.all,
       agreement.Text() + " have every printed digit; the last digits of the ratio for m = 64, "
                          "k = 8 lack a term (see Table 2)"},
      {"partitioned filters have practically no more false positives from 512 bits on",
       largest_ratio_from_512 < 1.1,
       "at most " + Digits("%.3f", largest_ratio_from_512) + " times as many (512 bits, k = 16)"}};
  return exhibit;
}

Exhibit TableTwo(Effort effort) {
  Exhibit exhibit{.id = "partitioned-table-2",
                  .title = "Partitioned filters, Table 2: Fp/Fs at parts of the nominal occupation",
                  .method = "as Table 1, with 1/4, 1/2 and all of the keys",
                  .columns = {}};
  for (const std::string part : {"1/4", "1/2", "1/1"}) {
    exhibit.columns.push_back({part + " paper", "%.8f"});
    exhibit.columns.push_back({part, "%.8f"});
    exhibit.columns.push_back({part + " measured", "%.5f"});
  }
  Agreement agreement;
  Agreement as_printed;
  for (const auto& [m, k, printed, exact] : paper::kTableTwo) {
    std::vector<double> values;
    for (size_t i = 0; i < printed.size(); ++i) {
      const uint64_t n = NominalKeys(m, k) >> (2 - i);
      const double partitioned = fpr::PartitionedExact(n, m, k);
      const double ratio = partitioned / fpr::StandardExact(n, m, k);
      const SimulatedRates measured = Simulate(n, m, k, effort);
      values.insert(values.end(), {agreement.Compare(printed[i], ratio), ratio,
                                   measured.partitioned / measured.standard});
      as_printed.Compare(printed[i], partitioned / paper::StandardAsInTables(n, m, k));
    }
    exhibit.rows.push_back({NameOf(m, k), std::move(values)});
  }
  exhibit.claims = {{"the entries of Table 2", agreement.agree == agreement.all,
                     agreement.Text() + kMissingTerm + " (" + as_printed.Text() + ")"}};
  return exhibit;
}

Exhibit TableThree(Effort effort) {
  Exhibit exhibit{.id = "partitioned-table-3",
                  .title = "Partitioned filters, Table 3: weak spots of standard filters",
                  .method =
                      "rate of an element with 0 to 3 collisions among its k positions, over "
                      "the mean rate",
                  .columns = {}};
  for (const std::string c : {"0", "1", "2", "3"}) {
    exhibit.columns.push_back({c + " paper", "%.2f"});
    exhibit.columns.push_back({c, "%.2f"});
    exhibit.columns.push_back({c + " measured", "%.2f"});
  }
  Agreement agreement;
  Agreement as_printed;
  bool weak = true;
  for (const auto& [occupation, m, k, printed, exact] : paper::kTableThree) {
    const uint64_t n = NominalKeys(m, k) / occupation;
    const SimulatedRates measured = Simulate(n, m, k, effort);
    std::vector<double> values;
    for (uint32_t c = 0; c < printed.size(); ++c) {
      const double ratio = fpr::PerElement(n, m, k, k - c) / fpr::StandardExact(n, m, k);
      values.insert(values.end(), {agreement.Compare(printed[c], ratio), ratio,
                                   measured.per_element[c] / measured.standard});
      as_printed.Compare(printed[c], paper::PerElementAsInTables(n, m, k, k - c) /
                                         paper::StandardAsInTables(n, m, k));
    }
    weak = weak && measured.per_element[3] > 6 * measured.standard;
    exhibit.rows.push_back({"1/" + std::to_string(occupation) + ", " + NameOf(m, k), values});
  }
  exhibit.claims = {
      {"the entries of Table 3", agreement.agree == agreement.all,
       agreement.Text() + kMissingTerm + " (" + as_printed.Text() + ")"},
      {"elements with collisions are false positives far more often (weak spots)", weak,
       "with three collisions more than 6 times as often in every row, up to hundreds of times in "
       "filters that are not full"}};
  return exhibit;
}

// How often k random positions have 0 to 3 collisions.
std::array<double, 4> SimulateCollisions(uint64_t num_bits, uint32_t num_probes, Effort effort) {
  Hashes random(num_bits + num_probes);
  Bins bins;
  std::array<double, 4> share{};
  const uint64_t num_elements = 20 * kFilters * effort.factor;
  for (uint64_t i = 0; i < num_elements; ++i) {
    const uint64_t collisions = num_probes - bins.Throw(num_probes, num_bits, random);
    if (collisions < share.size()) share[collisions] += 1 / static_cast<double>(num_elements);
  }
  return share;
}

Exhibit TableFour(Effort effort) {
  Exhibit exhibit{.id = "partitioned-table-4",
                  .title = "Partitioned filters, Table 4: how probable collisions are",
                  .method = "of the k positions of one element",
                  .columns = {{"some paper", "%.4f"}, {"some", "%.4f"}, {"some measured", "%.4f"}}};
  for (const std::string c : {"0", "1", "2", "3"}) {
    exhibit.columns.push_back({c + " paper", "%.4f"});
    exhibit.columns.push_back({c, "%.4f"});
    exhibit.columns.push_back({c + " measured", "%.4f"});
  }
  Agreement agreement;
  for (const auto& [m, k, some, exactly] : paper::kTableFour) {
    const std::array<double, 4> measured = SimulateCollisions(m, k, effort);
    const double any = fpr::AnyCollisionProbability(m, k);
    std::vector<double> values = {agreement.Compare(some, any), any, 1 - measured[0]};
    for (uint32_t c = 0; c < exactly.size(); ++c) {
      const double ours = fpr::CollisionProbability(m, k, c);
      values.insert(values.end(), {agreement.Compare(exactly[c], ours), ours, measured[c]});
    }
    exhibit.rows.push_back({NameOf(m, k), std::move(values)});
  }
  exhibit.claims = {{"the entries of Table 4", agreement.agree == agreement.all,
                     agreement.Text() + " have every printed digit"}};
  return exhibit;
}

// ---- Figures

Exhibit FigureThree(Effort effort) {
  Exhibit exhibit{
      .id = "partitioned-figure-3",
      .title = "Partitioned filters, Fig. 3: Fp/Fs over m",
      .method = "n = floor(m/k ln 2), which makes the steps; the figure gives no numbers",
      .columns = {{"Fp/Fs", "%.4f"}, {"Fp/Fs measured", "%.4f"}}};
  Chart chart{.title = "Partitioned over standard filters at nominal occupation (dots: measured)",
              .x_label = "m, bits",
              .y_label = "Fp / Fs",
              .log_x = true};
  size_t color = 0;
  for (const uint32_t k : {4u, 8u, 16u}) {
    Series exact{.name = "k = " + std::to_string(k), .color = color};
    Series measured{.style = Series::Style::kPoints, .color = color++};
    for (uint64_t m = 64; m <= 4096; m += m / 32 + k - (m + m / 32) % k) {
      const uint64_t n = NominalKeys(m, k);
      exact.x.push_back(static_cast<double>(m));
      exact.y.push_back(fpr::PartitionedExact(n, m, k) / fpr::StandardExact(n, m, k));
    }
    for (uint64_t m = 128; m <= 4096; m *= 2) {
      const uint64_t n = NominalKeys(m, k);
      const SimulatedRates rates = Simulate(n, m, k, effort);
      measured.x.push_back(static_cast<double>(m));
      measured.y.push_back(rates.partitioned / rates.standard);
      exhibit.rows.push_back(
          {NameOf(m, k),
           {fpr::PartitionedExact(n, m, k) / fpr::StandardExact(n, m, k), measured.y.back()}});
    }
    chart.series.push_back(std::move(exact));
    chart.series.push_back(std::move(measured));
  }
  exhibit.chart = std::move(chart);
  return exhibit;
}

Exhibit FigureFour() {
  Exhibit exhibit{
      .id = "partitioned-figure-4",
      .title = "Partitioned filters, Fig. 4: how weak the weakest elements are",
      .method = "one element in ... has at least this ratio of its own rate to the mean",
      .columns = {{"collisions", "%.0f"}, {"one in", "%.4g"}, {"ratio", "%.2f"}}};
  Chart chart{.title = "The weakest elements of standard filters at nominal occupation",
              .x_label = "one element in ...",
              .y_label = "its rate / mean rate",
              .log_x = true,
              .log_y = true};
  for (const auto& [m, k, some, exactly] : paper::kTableFour) {
    const uint64_t n = NominalKeys(m, k);
    Series series{.name = NameOf(m, k), .color = chart.series.size()};
    double tail = 1;  // the share of elements with at least c collisions
    for (uint32_t c = 0; c < k && tail > 1e-8; ++c) {
      const double ratio = fpr::PerElement(n, m, k, k - c) / fpr::StandardExact(n, m, k);
      exhibit.rows.push_back({NameOf(m, k), {static_cast<double>(c), 1 / tail, ratio}});
      series.x.push_back(1 / tail);
      series.y.push_back(ratio);
      tail -= fpr::CollisionProbability(m, k, c);
    }
    chart.series.push_back(std::move(series));
  }
  const auto ratio_at = [&](size_t collisions) { return chart.series.back().y[collisions]; };
  exhibit.claims = {
      {"m = 512, k = 16: for one element in a thousand the rate is more than 6 times "
       "the mean, for almost one in a million almost 30 times",
       ratio_at(3) > 6 && std::abs(ratio_at(5) - 28.5) < 1.5,
       "three collisions, one element in " + Digits("%.0f", chart.series.back().x[3]) + ": " +
           Digits("%.2f", ratio_at(3)) + "; five, one in " +
           Digits("%.2g", chart.series.back().x[5]) + ": " + Digits("%.1f", ratio_at(5))}};
  exhibit.chart = std::move(chart);
  return exhibit;
}

}  // namespace

std::vector<Exhibit> PartitionedExhibits(Effort effort) {
  return {TableOne(effort),  TableTwo(effort),    TableThree(effort),
          TableFour(effort), FigureThree(effort), FigureFour()};
}

}  // namespace tepal::tool
