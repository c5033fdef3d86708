// MachineProfile: JSON round trips, nothing but good profiles gets in, and times in between.
#include "tepal/profile.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tepal/targets.h"

namespace tepal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// `text` with its first `from` replaced.
std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& json) {
  const Result<MachineProfile> profile = MachineProfile::FromJson(json);
  EXPECT_EQ(profile.status().code(), StatusCode::kCorrupt);
  return profile.status().message();
}

std::string GoodJson() { return MachineProfile::BuiltIn().ToJson(); }

Geometry Split256(uint64_t bytes) {
  return {.layout = Layout::kSplit256, .num_bits = bytes * 8, .num_probes = 8};
}

// A directory of its own for a test.
class ProfileFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ("tepal_profile_" +
                  std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
};

// ---- JSON

TEST(ProfileTest, TheBuiltInProfileIsValidAndNamed) {
  const MachineProfile& profile = MachineProfile::BuiltIn();
  EXPECT_TRUE(profile.Validate().ok()) << profile.Validate().message();
  EXPECT_EQ(profile.name, "built-in");
  EXPECT_EQ(profile.target, "AVX2");
}

TEST(ProfileTest, Avx512TargetsHaveABuiltInProfileOfTheirOwn) {
  const MachineProfile& profile = MachineProfile::BuiltIn("AVX3_DL");
  EXPECT_TRUE(profile.Validate().ok()) << profile.Validate().message();
  EXPECT_EQ(profile.name, "built-in");
  EXPECT_EQ(profile.target, "AVX3_DL");
  for (const char* other : {"AVX3", "AVX3_ZEN4", "AVX3_SPR", "AVX10_2"}) {
    EXPECT_EQ(&MachineProfile::BuiltIn(other), &profile) << other;
  }
  EXPECT_EQ(&MachineProfile::BuiltIn("NEON"), &MachineProfile::BuiltIn("AVX2"));
}

TEST(ProfileTest, JsonRoundTripsAllButTheName) {
  MachineProfile expected = MachineProfile::BuiltIn();
  expected.cpu = "a \"quoted\" CPU \\ with\nlines";
  expected.curves[3].ns[2] = 1.0 / 3;
  const Result<MachineProfile> read = MachineProfile::FromJson(expected.ToJson());
  ASSERT_TRUE(read.ok()) << read.status().message();
  expected.name.clear();
  EXPECT_EQ(*read, expected);
}

TEST(ProfileTest, TheBuiltInProfilesAreWrittenAsTheirFilesAre) {
  const auto file = [](const std::string& name) {
    std::ifstream in(TEPAL_SOURCE_DIR "/dispatch/builtin_profile_" + name + ".json");
    return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  };
  EXPECT_EQ(MachineProfile::BuiltIn("AVX2").ToJson(), file("avx2"));
  EXPECT_EQ(MachineProfile::BuiltIn("AVX3_DL").ToJson(), file("avx512"));
}

TEST(ProfileTest, UnknownMembersAreIgnoredAndTheLastOfTwoCounts) {
  const std::string more = "{\"cpu\": 1, \"other\": {\"a\": [null, true, -1, 0.5, \"x\"]}, ";
  const Result<MachineProfile> read = MachineProfile::FromJson(Replaced(GoodJson(), "{", more));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->cpu, MachineProfile::BuiltIn().cpu);
  EXPECT_EQ(read->curves, MachineProfile::BuiltIn().curves);
}

TEST(ProfileTest, TimesMayBeWholeNumbers) {
  MachineProfile expected = MachineProfile::BuiltIn();
  expected.curves[0].bits_per_key_touched = 1;
  const Result<MachineProfile> read =
      MachineProfile::FromJson(Replaced(expected.ToJson(), "touched\":1.0,", "touched\":1,"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->curves, expected.curves);
}

TEST(ProfileTest, TextThatIsNoProfileIsRefused) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("{\"format\": "), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(GoodJson().substr(0, 2000)), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("\"format\" must be"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("\"format\" must be"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[') + std::string(100000, ']')),
              HasSubstr("nested too deeply"));
}

TEST(ProfileTest, EveryPrefixOfAProfileIsRefused) {
  const std::string json = GoodJson();
  for (size_t length = 0; length + 2 < json.size(); length += 97) {
    EXPECT_FALSE(MachineProfile::FromJson(json.substr(0, length)).ok()) << length;
  }
}

TEST(ProfileTest, MissingMembersAreNamed) {
  for (const std::string member : {"cpu", "target", "l1_bytes", "l2_bytes", "l3_bytes",
                                   "filter_bytes", "curves", "version", "format"}) {
    EXPECT_THAT(ErrorOf(Replaced(GoodJson(), "\"" + member + "\"", "\"other\"")),
                HasSubstr(member));
  }
  for (const std::string member : {"layout", "operation", "bits_per_key_touched", "ns"}) {
    EXPECT_THAT(ErrorOf(Replaced(GoodJson(), "\"" + member + "\"", "\"other\"")),
                AllOf(HasSubstr("curves[0]"), HasSubstr(member)));
  }
}

TEST(ProfileTest, WrongKindsOfValuesAreRefused) {
  const std::string json = GoodJson();
  EXPECT_THAT(ErrorOf(Replaced(json, "\"version\": 1", "\"version\": 2")), HasSubstr("calibrate"));
  EXPECT_THAT(ErrorOf(Replaced(json, "\"target\": \"AVX2\"", "\"target\": 2")),
              HasSubstr("target"));
  EXPECT_THAT(ErrorOf(Replaced(json, "\"l1_bytes\": ", "\"l1_bytes\": -")), HasSubstr("l1_bytes"));
  EXPECT_THAT(ErrorOf(Replaced(json, "\"operation\":\"probe\"", "\"operation\":\"erase\"")),
              HasSubstr("erase"));
  EXPECT_THAT(ErrorOf(Replaced(json, "\"layout\":\"standard\"", "\"layout\":\"cuckoo\"")),
              HasSubstr("cuckoo"));
  EXPECT_THAT(ErrorOf(Replaced(json, "\"ns\":[", "\"ns\":[null,")), HasSubstr("curves[0]"));
}

// ---- Validate

TEST(ProfileTest, BadTimesAreRefused) {
  for (const double bad : {0.0, -1.0, 1e7, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    MachineProfile profile = MachineProfile::BuiltIn();
    profile.curves[1].ns[1] = bad;
    EXPECT_THAT(profile.Validate().message(), HasSubstr("time")) << bad;
    profile = MachineProfile::BuiltIn();
    profile.curves[1].bits_per_key_touched = bad;
    EXPECT_FALSE(profile.Validate().ok()) << bad;
  }
}

// They would make lines so steep that plans cost infinitely many ns, or no number.
TEST(ProfileTest, CurvesOfTooFewBitsOrTooCloseToEachOtherAreRefused) {
  MachineProfile profile = MachineProfile::BuiltIn();
  ASSERT_EQ(profile.curves[0].bits_per_key_touched, 1);
  profile.curves[1].bits_per_key_touched = std::nextafter(1, 2);
  EXPECT_THAT(profile.Validate().message(), HasSubstr("too close to 1"));
  profile.curves[1].bits_per_key_touched = 1.5;
  EXPECT_TRUE(profile.Validate().ok());
  profile.curves[0].bits_per_key_touched = 5e-324;
  EXPECT_THAT(profile.Validate().message(), HasSubstr("between 0.01 and 64"));
}

TEST(ProfileTest, BadSizesAreRefused) {
  const auto message_with = [](std::vector<uint64_t> sizes) {
    MachineProfile profile = MachineProfile::BuiltIn();
    profile.filter_bytes = std::move(sizes);
    return profile.Validate().message();
  };
  EXPECT_THAT(message_with({}), HasSubstr("filter_bytes"));
  EXPECT_THAT(message_with({0, 5}), HasSubstr("between"));
  EXPECT_THAT(message_with({5, kMaxBits}), HasSubstr("between"));
  EXPECT_THAT(message_with({5, 5}), HasSubstr("ascend"));
  EXPECT_THAT(message_with({5, 6}), HasSubstr("times"));
  EXPECT_THAT(message_with(std::vector<uint64_t>(1000, 1)), HasSubstr("1000 sizes"));
}

TEST(ProfileTest, CurvesMustBeOrderedAndComplete) {
  MachineProfile profile = MachineProfile::BuiltIn();
  std::swap(profile.curves[0], profile.curves[1]);
  EXPECT_THAT(profile.Validate().message(), HasSubstr("ordered"));
  profile = MachineProfile::BuiltIn();
  profile.curves.push_back(profile.curves.back());
  EXPECT_THAT(profile.Validate().message(), HasSubstr("different"));
  profile = MachineProfile::BuiltIn();
  std::erase_if(profile.curves, [](const TimeCurve& curve) {
    return curve.layout == Layout::kLine512 && curve.operation == Operation::kInsert;
  });
  EXPECT_THAT(profile.Validate().message(), HasSubstr("line512, insert"));
  profile.curves.resize(257, profile.curves[0]);
  EXPECT_THAT(profile.Validate().message(), HasSubstr("more than 256 curves"));
}

// ---- Times

TEST(ProfileTest, MeasuredTimesComeBackAndOthersLieBetween) {
  const MachineProfile& profile = MachineProfile::BuiltIn();
  for (const TimeCurve& curve : profile.curves) {
    if (curve.layout != Layout::kSplit256 || curve.operation != Operation::kProbe) continue;
    for (size_t i = 0; i + 1 < curve.ns.size(); ++i) {
      const uint64_t bytes = profile.filter_bytes[i];
      EXPECT_DOUBLE_EQ(profile.ProbeNs(Split256(bytes), 1, 0.5), curve.ns[i]);
      // The middle of the logarithms, up to a block.
      const double middle =
          std::sqrt(static_cast<double>(bytes) * static_cast<double>(profile.filter_bytes[i + 1]));
      const double between =
          profile.ProbeNs(Split256(static_cast<uint64_t>(middle) / 32 * 32), 1, 0);
      EXPECT_NEAR(between, (curve.ns[i] + curve.ns[i + 1]) / 2, 0.01 * curve.ns[i + 1]);
    }
    EXPECT_DOUBLE_EQ(profile.ProbeNs(Split256(32), 1, 0), curve.ns.front());
    EXPECT_DOUBLE_EQ(profile.ProbeNs(Split256(kMaxBits / 8), 1, 0), curve.ns.back());
  }
}

TEST(ProfileTest, ScatteredLayoutsCostMoreForHits) {
  const Geometry geometry = Geometry::For(Layout::kStandard, 1'000'000, 12);
  const MachineProfile& profile = MachineProfile::BuiltIn();
  double previous = 0;
  for (const double hit_rate : {0.0, 0.1, 0.5, 1.0}) {
    const double ns = profile.ProbeNs(geometry, 1'000'000, hit_rate);
    EXPECT_GT(ns, previous);
    previous = ns;
  }
}

TEST(ProfileTest, AbsentKeysOfAHalfFullFilterLookAtTwoBits) {
  const Geometry standard = Geometry::For(Layout::kStandard, 1'000'000, 20);
  EXPECT_NEAR(MeanBitsTouched(standard, 1'000'000, 0), 2, 0.05);
  EXPECT_EQ(MeanBitsTouched(standard, 1'000'000, 1), standard.num_probes);
  EXPECT_EQ(MeanBitsTouched(standard, 0, 0), 1);  // the first bit is missing
  EXPECT_EQ(MeanBitsTouched(Split256(1024), 100, 0), 8);
}

// Its absent keys hardly leave the first part.
TEST(ProfileTest, ASparsePartitionedFilterCountsAsASmallerOne) {
  const MachineProfile& profile = MachineProfile::BuiltIn();
  const Geometry geometry{
      .layout = Layout::kPartitioned, .num_bits = uint64_t{16} << 23, .num_probes = 16};
  const Geometry eighth{// (1/16)^(3/4) of it
                        .layout = Layout::kPartitioned,
                        .num_bits = uint64_t{2} << 23,
                        .num_probes = 1};
  EXPECT_NEAR(profile.ProbeNs(geometry, 0, 0), profile.ProbeNs(eighth, 0, 0), 1e-5);
  EXPECT_GT(profile.ProbeNs(geometry, 0, 1), 4 * profile.ProbeNs(geometry, 0, 0));
}

TEST(ProfileTest, RationalIsTimedAsStandardIs) {
  Geometry rational{
      .layout = Layout::kRational, .num_bits = 1 << 20, .num_probes = 7, .rational_k = 7};
  Geometry standard{.layout = Layout::kStandard, .num_bits = 1 << 20, .num_probes = 7};
  const MachineProfile& profile = MachineProfile::BuiltIn();
  EXPECT_EQ(profile.ProbeNs(rational, 1000, 0.5), profile.ProbeNs(standard, 1000, 0.5));
  EXPECT_EQ(profile.InsertNs(rational), profile.InsertNs(standard));
  EXPECT_TRUE(std::isnan(MachineProfile().InsertNs(standard)));
}

// ---- Files

TEST_F(ProfileFileTest, SavedProfilesLoadUnderTheNameOfTheirFile) {
  const std::string path = (directory_ / "a" / "b" / "profile.json").string();
  ASSERT_TRUE(MachineProfile::BuiltIn().Save(path).ok());
  ASSERT_TRUE(MachineProfile::BuiltIn().Save(path).ok());  // again, over itself
  const Result<MachineProfile> loaded = MachineProfile::Load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->name, path);
  EXPECT_EQ(loaded->curves, MachineProfile::BuiltIn().curves);
}

TEST_F(ProfileFileTest, UnreadableAndUnwritableFilesAreErrorsThatNameThem) {
  const std::string path = (directory_ / "none.json").string();
  EXPECT_THAT(MachineProfile::Load(path).status().message(), HasSubstr(path));
  std::filesystem::create_directories(directory_ / "directory.json");
  const std::string directory = (directory_ / "directory.json").string();
  EXPECT_THAT(MachineProfile::Load(directory).status().message(), HasSubstr(directory));
  EXPECT_THAT(MachineProfile::BuiltIn().Save(directory).message(), HasSubstr(directory));
  EXPECT_FALSE(MachineProfile().Save(path).ok());  // not valid
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ProfileFileTest, ThisMachineUsesItsOwnFileAndSaysWhyIfNot) {
  ASSERT_EQ(setenv("XDG_CACHE_HOME", directory_.c_str(), 1), 0);
  EXPECT_EQ(MachineProfile::ForThisMachine(), MachineProfile::BuiltIn(ActiveTarget()));
  const std::string path = MachineProfile::DefaultPath(ActiveTarget());
  EXPECT_EQ(path, (directory_ / "tepal" / ("profile-" + ActiveTarget() + ".json")).string());

  MachineProfile mine = MachineProfile::BuiltIn();
  mine.target = ActiveTarget();
  ASSERT_TRUE(mine.Save(path).ok());
  EXPECT_EQ(MachineProfile::ForThisMachine().name, path);

  mine.target = "OTHER";
  ASSERT_TRUE(mine.Save(path).ok());
  EXPECT_THAT(MachineProfile::ForThisMachine().name,
              AllOf(HasSubstr("built-in"), HasSubstr(path), HasSubstr("OTHER")));

  std::ofstream(path) << "{";
  EXPECT_THAT(MachineProfile::ForThisMachine().name,
              AllOf(HasSubstr("built-in"), HasSubstr(path), HasSubstr("not JSON")));
  ASSERT_EQ(unsetenv("XDG_CACHE_HOME"), 0);
}

}  // namespace
}  // namespace tepal
