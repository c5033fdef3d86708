// A line that says how far long work has come, if somebody watches (stderr is a terminal).
#ifndef TEPAL_TOOLS_TEPAL_PROGRESS_H_
#define TEPAL_TOOLS_TEPAL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace tepal::tool {

class Progress {
 public:
  // `total` is 0 if it is not known.
  Progress(std::string what, uint64_t total, std::string (*format)(uint64_t));
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // May be called as often as one likes; prints ten times a second.
  void Update(uint64_t done);

 private:
  std::string what_;
  uint64_t total_;
  std::string (*format_)(uint64_t);
  bool visible_;
  bool printed_ = false;
  std::chrono::steady_clock::time_point last_print_;
};

}  // namespace tepal::tool

#endif  // TEPAL_TOOLS_TEPAL_PROGRESS_H_
