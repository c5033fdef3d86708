// What an engine does with an installed Tepal. Says what went wrong and fails, or says nothing.
#include <tepal/tepal.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

int Fail(const std::string& what) {
  std::fprintf(stderr, "consumer: %s\n", what.c_str());
  return 1;
}

int main() {
  const std::string header_version = std::to_string(TEPAL_VERSION_MAJOR) + "." +
                                     std::to_string(TEPAL_VERSION_MINOR) + "." +
                                     std::to_string(TEPAL_VERSION_PATCH);
  if (header_version != tepal::Version()) return Fail("headers and library differ in version");

  std::vector<uint64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * i;
  // One layout of each kernel.
  for (const tepal::Layout layout : {tepal::Layout::kSplit256, tepal::Layout::kStandard}) {
    auto created = tepal::Filter::Create(tepal::Geometry::For(layout, keys.size(), 12));
    if (!created.ok()) return Fail(created.status().message());
    tepal::Filter filter = std::move(*created);
    filter.Insert(keys);
    if (filter.Count(keys) != keys.size()) return Fail("a key was lost");
    if (!filter.MayContain(uint64_t{49})) return Fail("49 was lost");
  }
  return 0;
}
