// What a process sees of TEPAL_TARGET: environment_test runs this with several values.
#include <cstdio>

#include "tepal/tepal.h"

int main() {
  const tepal::Status environment = tepal::CheckEnvironment();
  const auto filter =
      tepal::Filter::Create(tepal::Geometry::For(tepal::Layout::kSplit256, 100, 16));
  std::printf("active: %s\n", tepal::ActiveTarget().c_str());
  std::printf("environment: %s\n", environment.ok() ? "ok" : environment.message().c_str());
  std::printf("create: %s\n", filter.ok() ? "ok" : filter.status().message().c_str());
  if (tepal::ForceTarget(tepal::AvailableTargets().back()).ok()) {
    std::printf("forced: %s\n", tepal::ActiveTarget().c_str());
  }
  return 0;
}
