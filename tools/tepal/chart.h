// Charts as SVG files, drawn by gnuplot.
#ifndef TEPAL_TOOLS_TEPAL_CHART_H_
#define TEPAL_TOOLS_TEPAL_CHART_H_

#include <string>
#include <vector>

#include "tepal/status.h"

namespace tepal::tool {

struct Series {
  enum class Style { kLine, kDashed, kPoints };

  std::string name = {};
  Style style = Style::kLine;
  std::vector<double> x = {};  // empty in a chart with categories
  std::vector<double> y = {};  // NaN: nothing there
  size_t color = 0;            // series of one color belong together
};

struct Chart {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};
  bool log_x = false;
  bool log_y = false;
  // If there are any: bars, one for each series, at each of these places.
  std::vector<std::string> categories = {};
  std::vector<Series> series = {};
};

// What gnuplot draws to its standard output.
std::string GnuplotScript(const Chart& chart);

// Ok if there is a gnuplot; otherwise what to install. To be asked before long work.
Status CheckGnuplot();

Status WriteSvg(const Chart& chart, const std::string& path);

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_CHART_H_
