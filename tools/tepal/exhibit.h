// A table or figure of a paper, computed and measured again: what `tepal reproduce` shows.
#ifndef TEPAL_TOOLS_TEPAL_EXHIBIT_H_
#define TEPAL_TOOLS_TEPAL_EXHIBIT_H_

#include <optional>
#include <string>
#include <vector>

#include "tools/tepal/chart.h"

namespace tepal::tool {

// What a paper says, and what we find.
struct Claim {
  std::string text;
  bool holds;
  std::string finding;
};

struct Exhibit {
  struct Column {
    std::string name;
    const char* format;  // of printf, for one double
  };
  struct Row {
    std::string name;
    std::vector<double> values;  // NaN: the paper gives none
  };

  std::string id = {};      // for file names and programs: "partitioned-table-1"
  std::string title = {};   // with the source
  std::string method = {};  // how the columns came about
  std::vector<Column> columns = {};
  std::vector<Row> rows = {};
  std::vector<Claim> claims = {};
  std::optional<Chart> chart = {};
};

// How long to measure: 1 for seconds in all, more for less noise.
struct Effort {
  unsigned factor = 1;
};

// "Relaxing constraints on Bloom filter parameters": rational k, and blocks of variable size.
std::vector<Exhibit> RationalExhibits(Effort effort);
std::vector<Exhibit> VariableExhibits(Effort effort);
// "A Case for Partitioned Bloom Filters".
std::vector<Exhibit> PartitionedExhibits(Effort effort);

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_EXHIBIT_H_
