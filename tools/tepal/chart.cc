#include "tools/tepal/chart.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "tools/tepal/table.h"

namespace tepal::tool {
namespace {

// Of Okabe and Ito: all eyes can tell them apart.
constexpr const char* kColors[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                   "#E69F00", "#56B4E9", "#000000", "#999999"};

// Quoted for gnuplot. Between double quotes it would run what stands in backquotes.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

// gnuplot takes what follows a '|' for a command.
std::string QuotedPath(const std::string& path) {
  return Quoted(path.starts_with('|') ? "./" + path : path);
}

std::string Number(double value) { return std::isnan(value) ? "NaN" : Digits("%.10g", value); }

std::string StyleOf(const Series& series) {
  const std::string color =
      std::string(" lc rgb '") + kColors[series.color % std::size(kColors)] + "'";
  switch (series.style) {
    case Series::Style::kLine:
      return "with lines lw 2" + color;
    case Series::Style::kDashed:
      return "with lines dt 2 lw 1.5" + color;
    case Series::Style::kPoints:
      return "with points pt 7 ps 0.6" + color;
  }
  return "";
}

void WriteData(const Chart& chart, const Series& series, size_t index, std::ostream& out) {
  out << "$data" << index << " << EOD\n";
  for (size_t i = 0; i < series.y.size(); ++i) {
    // In data only double quotes are quotes, and nothing is run.
    out << (chart.categories.empty() ? Number(series.x[i]) : '"' + chart.categories[i] + '"') << " "
        << Number(series.y[i]) << "\n";
  }
  out << "EOD\n";
}

}  // namespace

std::string GnuplotScript(const Chart& chart) {
  std::ostringstream out;
  out << "set terminal svg size 860,520 background 'white' font 'sans,13' noenhanced\n"
      << "set title " << Quoted(chart.title) << "\n"
      << "set xlabel " << Quoted(chart.x_label) << "\n"
      << "set ylabel " << Quoted(chart.y_label) << "\n"
      << "set key outside below\nset grid lc rgb '#dddddd'\n";
  if (chart.log_x) out << "set logscale x\n";
  if (chart.log_y) out << "set logscale y\n";
  const bool bars = !chart.categories.empty();
  if (bars) {
    out << "set style data histograms\nset style histogram clustered gap 1\n"
        << "set style fill solid 0.9 noborder\nset xtics nomirror rotate by -30\n";
    if (!chart.log_y) out << "set yrange [0:*]\n";
  }
  for (size_t i = 0; i < chart.series.size(); ++i) WriteData(chart, chart.series[i], i, out);
  out << "plot ";
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    out << (i == 0 ? "" : ", ") << "$data" << i;
    if (bars) {
      out << " using 2:xtic(1) lc rgb '" << kColors[series.color % std::size(kColors)] << "'";
    } else {
      out << " using 1:2 " << StyleOf(series);
    }
    out << (series.name.empty() ? " notitle" : " title " + Quoted(series.name));
  }
  out << "\n";
  return out.str();
}

Status CheckGnuplot() {
  if (std::system("gnuplot --version > /dev/null 2>&1") == 0) return Status::Ok();
  return Status::Unsupported(
      "charts need gnuplot, and there is none; on Debian: apt-get install gnuplot-nox");
}

Status WriteSvg(const Chart& chart, const std::string& path) {
  if (path.find('\n') != std::string::npos) {
    return Status::InvalidArgument("gnuplot cannot write to a path with a line break in it");
  }
  std::FILE* const gnuplot = popen("gnuplot", "w");
  if (gnuplot == nullptr) return CheckGnuplot();
  // Under another name until it is complete.
  const std::string unfinished = path + ".part";
  const std::string script = "set output " + QuotedPath(unfinished) + "\n" + GnuplotScript(chart);
  const bool written = std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
  const int exit_status = pclose(gnuplot);
  if (written && exit_status == 0 && std::rename(unfinished.c_str(), path.c_str()) == 0) {
    return Status::Ok();
  }
  std::remove(unfinished.c_str());
  return Status::IoError("gnuplot could not write " + path);
}

}  // namespace tepal::tool
