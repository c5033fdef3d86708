#include "tools/tepal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tepal::tool {
namespace {

constexpr std::chrono::milliseconds kInterval(100);
constexpr size_t kBarWidth = 30;
// Back to the beginning of the line, and clear it.
constexpr const char* kClearLine = "\r\x1B[K";

std::string Bar(double share) {
  const auto full = static_cast<size_t>(share * kBarWidth);
  return "[" + std::string(full, '=') + std::string(kBarWidth - full, ' ') + "]";
}

}  // namespace

Progress::Progress(std::string what, uint64_t total, std::string (*format)(uint64_t))
    : what_(std::move(what)),
      total_(total),
      format_(format),
      visible_(isatty(STDERR_FILENO) == 1),
      last_print_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (printed_) std::fputs(kClearLine, stderr);
}

void Progress::Update(uint64_t done) {
  if (!visible_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_print_ < kInterval) return;
  last_print_ = now;
  printed_ = true;
  std::string line = what_ + " ";
  if (total_ > 0) {
    const double share = static_cast<double>(std::min(done, total_)) / static_cast<double>(total_);
    line += Bar(share) + " " + format_(done) + " of " + format_(total_);
  } else {
    line += format_(done);
  }
  std::fprintf(stderr, "%s%s", kClearLine, line.c_str());
}

}  // namespace tepal::tool
