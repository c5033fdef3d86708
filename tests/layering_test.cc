// Who may include whom (the table of "The rooms" in CONTRIBUTING.md), include guards, and ASCII.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tepal {
namespace {

namespace fs = std::filesystem;

struct Source {
  std::string path;  // from the root of the project
  std::string text;
};

constexpr std::array<std::string_view, 6> kRooms = {"include", "kernels", "dispatch",
                                                    "tests",   "bench",   "tools"};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// All C++ sources of all rooms.
std::vector<Source> Sources() {
  const fs::path root(TEPAL_SOURCE_DIR);
  std::vector<Source> sources;
  for (const std::string_view room : kRooms) {
    for (const auto& entry : fs::recursive_directory_iterator(
             root / room, fs::directory_options::follow_directory_symlink)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc" && extension != ".c") continue;
      sources.push_back(
          {entry.path().lexically_relative(root).generic_string(), ReadFile(entry.path())});
    }
  }
  return sources;
}

// ---- Includes

std::vector<std::string> IncludesOf(const std::string& text) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<std::string> includes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::smatch match; std::regex_search(line, match, kInclude)) includes.push_back(match[1]);
  }
  return includes;
}

template <class... Name>
bool IsOneOf(std::string_view text, Name... names) {
  return ((text == names) || ...);
}

// <vector> and so on: the C++ library's headers have neither dot nor slash.
bool IsStd(std::string_view name) {
  return name.find_first_of("./") == std::string_view::npos ||
         IsOneOf(name, "stddef.h", "stdint.h", "stdbool.h");
}

// Kernels do not allocate, throw or print.
bool IsStdForKernels(std::string_view name) {
  return IsStd(name) && !IsOneOf(name, "iostream", "cstdio", "cstdlib", "memory", "vector",
                                 "string", "map", "new", "stdexcept", "functional");
}

// What is made for the kernel files alone. table_dispatch.h is not compiled once per target, so it
// is no -inl.h.
bool IsKernelPart(std::string_view name) {
  return name.ends_with("-inl.h") || name == "kernels/table_dispatch.h";
}

// kernels/*.h that the host side may see.
bool IsKernelInterface(std::string_view name) {
  return name.starts_with("kernels/") && !IsKernelPart(name);
}

bool IsHighway(std::string_view name) { return name.starts_with("hwy/"); }
bool IsPublic(std::string_view name) { return name.starts_with("tepal/"); }

bool ReferenceMayInclude(std::string_view name) {
  return IsStd(name) || IsPublic(name) ||
         IsOneOf(name, "kernels/reference.h", "kernels/layout_traits.h");
}

bool KernelFileMayInclude(std::string_view name) {
  return IsStdForKernels(name) || IsHighway(name) || name == "tepal/geometry.h" ||
         (name.starts_with("kernels/") && name != "kernels/reference.h");
}

bool KernelInterfaceMayInclude(std::string_view name) {
  return IsStdForKernels(name) || name == "tepal/geometry.h" || IsKernelInterface(name);
}

bool DispatchMayInclude(std::string_view name) {
  if (IsHighway(name)) return name == "hwy/targets.h";
  return IsStd(name) || IsPublic(name) || IsKernelInterface(name) ||
         name.starts_with("dispatch/") || name.starts_with("sys/") ||
         IsOneOf(name, "fcntl.h", "nlohmann/json.hpp", "unistd.h", "xxhash.h");
}

bool ToolsMayInclude(std::string_view name) { return !IsHighway(name) && !IsKernelPart(name); }

bool MayInclude(std::string_view path, std::string_view name) {
  if (path.starts_with("include/")) return IsStd(name) || IsPublic(name);
  if (path.starts_with("kernels/reference.")) return ReferenceMayInclude(name);
  if (path.starts_with("kernels/")) {
    return path.ends_with(".cc") || IsKernelPart(path) ? KernelFileMayInclude(name)
                                                       : KernelInterfaceMayInclude(name);
  }
  if (path.starts_with("dispatch/")) return DispatchMayInclude(name);
  if (path.starts_with("bench/") || path.starts_with("tools/")) return ToolsMayInclude(name);
  return !IsKernelPart(name);  // tests go through the tables, too
}

TEST(LayeringTest, EveryIncludeIsAllowed) {
  for (const Source& source : Sources()) {
    for (const std::string& name : IncludesOf(source.text)) {
      EXPECT_TRUE(MayInclude(source.path, name)) << source.path << " includes " << name;
    }
  }
}

TEST(LayeringTest, SourcesOfEveryRoomAreRead) {
  const std::vector<Source> sources = Sources();
  for (const std::string path :
       {"include/tepal/filter.h", "kernels/block_kernel-inl.h", "kernels/reference.cc",
        "dispatch/filter.cc", "tests/layering_test.cc"}) {
    const auto found = std::find_if(sources.begin(), sources.end(),
                                    [&](const Source& source) { return source.path == path; });
    ASSERT_NE(found, sources.end()) << path;
    EXPECT_FALSE(IncludesOf(found->text).empty()) << path;
  }
}

TEST(LayeringTest, IncludesAreFoundHoweverTheyAreWritten) {
  EXPECT_EQ(IncludesOf("#include <a>\n  #  include \"b/c.h\"  // why\n#if X\n#include<d.h>\n"),
            (std::vector<std::string>{"a", "b/c.h", "d.h"}));
  EXPECT_TRUE(IncludesOf("// #include <a>\n#define A \"b.h\"\n").empty());
}

TEST(LayeringTest, ForbiddenIncludesAreFound) {
  struct Case {
    std::string_view path;
    std::string_view include;
  };
  const Case forbidden[] = {
      {"include/tepal/filter.h", "hwy/highway.h"},
      {"include/tepal/hash.h", "xxhash.h"},
      {"include/tepal/filter.h", "immintrin.h"},
      {"include/tepal/filter.h", "kernels/kernel_tables.h"},
      {"include/tepal/filter.h", "dispatch/buffer.h"},
      {"kernels/kernel_tables.h", "hwy/highway.h"},
      {"kernels/kernel_tables.h", "kernels/hash-inl.h"},
      {"kernels/layout_traits.h", "dispatch/buffer.h"},
      {"kernels/reference.cc", "hwy/highway.h"},
      {"kernels/reference.cc", "kernels/select_table.h"},
      {"kernels/reference.cc", "kernels/block_kernel-inl.h"},
      {"kernels/hash-inl.h", "xxhash.h"},
      {"kernels/hash-inl.h", "iostream"},
      {"kernels/hash_kernels.cc", "dispatch/active_kernels.h"},
      {"kernels/hash_kernels.cc", "vector"},
      {"kernels/block_kernel-inl.h", "kernels/reference.h"},
      {"dispatch/filter.cc", "hwy/highway.h"},
      {"dispatch/filter.cc", "kernels/block_kernel-inl.h"},
      {"dispatch/filter.cc", "kernels/table_dispatch.h"},
      {"dispatch/filter.cc", "bench/baselines.h"},
      {"bench/baselines.cc", "kernels/block_kernel-inl.h"},
      {"tools/demo.cc", "hwy/highway.h"},
  };
  for (const Case& c : forbidden) {
    EXPECT_FALSE(MayInclude(c.path, c.include)) << c.path << " includes " << c.include;
  }
}

// ---- Form

// include/tepal/filter.h: TEPAL_FILTER_H_; kernels/hash-inl.h: TEPAL_KERNELS_HASH_INL_H_.
std::string GuardOf(std::string path) {
  if (path.starts_with("include/tepal/")) path.erase(0, std::string("include/tepal/").size());
  std::string guard = "TEPAL_";
  for (const char c : path) {
    const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    guard += std::isalnum(static_cast<unsigned char>(c)) != 0 ? upper : '_';
  }
  return guard + "_";
}

TEST(SourceFormTest, HeadersHaveTheIncludeGuardOfTheirPath) {
  for (const Source& source : Sources()) {
    if (!source.path.ends_with(".h")) continue;
    const std::string guard = GuardOf(source.path);
    const std::string opening = source.path.ends_with("-inl.h")
                                    ? "#if defined(" + guard + ") == defined(HWY_TARGET_TOGGLE)\n"
                                    : "#ifndef " + guard + "\n#define " + guard + "\n";
    EXPECT_NE(source.text.find(opening), std::string::npos) << source.path << ": " << guard;
    EXPECT_TRUE(source.text.ends_with("#endif  // " + guard + "\n")) << source.path;
  }
}

TEST(SourceFormTest, SourcesAreAscii) {
  for (const Source& source : Sources()) {
    const auto found = std::find_if(source.text.begin(), source.text.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte > 126 || (byte < 32 && byte != '\n');
    });
    EXPECT_EQ(found, source.text.end())
        << source.path << ": byte " << std::distance(source.text.begin(), found);
  }
}

// Declarations of functions in namespaces: they begin in the first column.
std::vector<std::string> FunctionsNotExported(const std::string& header) {
  static const std::regex kFunction(R"(^(?!TEPAL_API |inline |static |template|#|//|\})[^(]+\()");
  std::vector<std::string> functions;
  std::istringstream lines(header);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(' ') || !std::regex_search(line, kFunction)) continue;
    functions.push_back(line);
  }
  return functions;
}

TEST(SourceFormTest, PublicFunctionsAreExported) {
  EXPECT_EQ(FunctionsNotExported("Status F(int x,\n         int (*y)());\nTEPAL_API void G();\n"),
            std::vector<std::string>{"Status F(int x,"});
  for (const Source& source : Sources()) {
    if (!source.path.starts_with("include/")) continue;
    for (const std::string& function : FunctionsNotExported(source.text)) {
      ADD_FAILURE() << source.path << ": TEPAL_API is missing: " << function;
    }
  }
}

}  // namespace
}  // namespace tepal
