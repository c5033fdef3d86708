// Tables for a terminal.
#ifndef TEPAL_TOOLS_TEPAL_TABLE_H_
#define TEPAL_TOOLS_TEPAL_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace tepal::tool {

// The first column is a name and stands on the left, all others are numbers and stand on the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}

  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Two spaces before every line.
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// printf of one number: Digits("%.2f", 1.234).
std::string Digits(const char* format, double value);

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_TABLE_H_
