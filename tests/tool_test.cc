// The `tepal` tool from outside: every command, its output, its exit codes, and what it says when
// something is wrong. Commands are lines for a shell, in a directory of their own. Also see
// tool_fault_test.cc (the tool killed, the disk full).
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tepal/container.h"
#include "tepal/filter.h"
#include "tepal/targets.h"
#include "tests/tool_runner.h"

namespace tepal::tool {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ToolTest : public ToolRunner {
 protected:
  nlohmann::json JsonOut(const std::string& line) { return nlohmann::json::parse(Out(line)); }

  // 1000 lines "key 0" to "key 999", and a filter of them.
  void MakeFilter(const std::string& options = "") {
    std::string keys;
    for (int i = 0; i < 1000; ++i) keys += "key " + std::to_string(i) + "\n";
    Write("keys.txt", keys);
    Out("tepal build keys.txt -o seen.tpl " + options);
  }
};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string RawKeys(uint64_t first, uint64_t count) {
  std::string raw;
  for (uint64_t i = first; i < first + count; ++i) {
    const uint64_t key = i * 0x9E3779B97F4A7C15u;
    raw.append(reinterpret_cast<const char*>(&key), sizeof(key));
  }
  return raw;
}

// ---- build and query

TEST_F(ToolTest, EveryKeyIsFoundAgainAndFewOthersAre) {
  MakeFilter("--fpr 1%");
  EXPECT_EQ(Out("tepal query seen.tpl < keys.txt"), Read("keys.txt"));
  EXPECT_EQ(Out("tepal query seen.tpl keys.txt"), Read("keys.txt"));
  EXPECT_EQ(Out("tepal query seen.tpl keys.txt --count"), "1000\n");
  EXPECT_EQ(Out("tepal query seen.tpl keys.txt --invert"), "");
  std::string others;
  for (int i = 0; i < 10000; ++i) others += "other " + std::to_string(i) + "\n";
  Write("others.txt", others);
  const size_t found = std::stoul(Out("tepal query seen.tpl others.txt --count"));
  EXPECT_GT(found, 30u);
  EXPECT_LT(found, 170u);
  EXPECT_EQ(Lines(Out("tepal query seen.tpl others.txt")).size(), found);
  EXPECT_EQ(Lines(Out("tepal query seen.tpl others.txt -v")).size(), 10000 - found);
}

TEST_F(ToolTest, QueryPrintsLinesIndicesCountsOrJson) {
  MakeFilter("--fpr 1e-6");
  Write("mixed.txt", "nothing\nkey 5\nnor this\nkey 7");
  EXPECT_EQ(Out("tepal query seen.tpl mixed.txt"), "key 5\nkey 7\n");
  EXPECT_EQ(Out("tepal query seen.tpl mixed.txt --indices"), "1\n3\n");
  EXPECT_EQ(Out("tepal query seen.tpl mixed.txt --invert"), "nothing\nnor this\n");
  EXPECT_EQ(Out("tepal query seen.tpl mixed.txt --invert --indices"), "0\n2\n");
  EXPECT_EQ(Out("tepal query seen.tpl mixed.txt --count"), "2\n");
  const auto json = JsonOut("tepal query seen.tpl mixed.txt --json");
  EXPECT_EQ(json["num_keys"], 4);
  EXPECT_EQ(json["num_matches"], 2);
  Write("none.txt", "nothing\n");
  EXPECT_EQ(Out("tepal query seen.tpl none.txt"), "");
}

TEST_F(ToolTest, RawKeysGoThroughPipes) {
  Write("keys.u64", RawKeys(0, 50000));
  Write("others.u64", RawKeys(50000, 50000));
  Out("cat keys.u64 | tepal build - --format u64 --keys 50k --fpr 1e-6 -o raw.tpl");
  EXPECT_EQ(Out("cat others.u64 keys.u64 | tepal query raw.tpl"), Read("keys.u64"));
  EXPECT_EQ(Out("tepal query raw.tpl keys.u64 -c"), "50000\n");
  Out("tepal build keys.u64 --format u32 -o raw32.tpl");
  EXPECT_EQ(Out("tepal query raw32.tpl keys.u64 --count"), "100000\n");
  Out("tepal build keys.u64 --format u64 --fpr 1e-6 -o file.tpl");
  EXPECT_EQ(Read("file.tpl"), Read("raw.tpl"));
}

TEST_F(ToolTest, CsvComesOutAsCsv) {
  Write("people.csv", "id,name\n1,Ada\n2,\"Hopper, Grace\"\n3,Edsger\n");
  Write("wanted.txt", "Hopper, Grace\nEdsger\n");
  Out("tepal build wanted.txt -o wanted.tpl --fpr 1e-6");
  EXPECT_EQ(Out("tepal query wanted.tpl people.csv --format csv --column name"),
            "id,name\n2,\"Hopper, Grace\"\n3,Edsger\n");
  EXPECT_EQ(Out("tepal query wanted.tpl people.csv --format csv --column 2 --indices"), "1\n2\n");
  Out("tepal build people.csv --format csv --column name -o names.tpl --fpr 1e-6");
  EXPECT_EQ(Out("tepal query names.tpl wanted.txt"), Read("wanted.txt"));
  Write("header.csv", "id,name\n");
  EXPECT_EQ(Out("tepal query names.tpl header.csv --format csv --column name"), "id,name\n");
  Write("people.tsv", "1\tAda\n");
  EXPECT_EQ(Out("tepal query names.tpl people.tsv --format csv --column 2 --no-header "
                "--delimiter tab"),
            "1\tAda\n");
}

TEST_F(ToolTest, OddLinesAreKeysByteForByte) {
  const std::string odd("empty next\n\nnul \0 inside\nlast without newline", 45);
  Write("odd.txt", odd);
  EXPECT_THAT(Out("tepal build odd.txt -o odd.tpl --fpr 1e-6"), StartsWith("odd.tpl: 4 keys"));
  EXPECT_EQ(Out("tepal query odd.tpl odd.txt"), odd + "\n");
  Write("dos.txt", "one\r\ntwo\r\n");
  Out("tepal build dos.txt --crlf -o dos.tpl --fpr 1e-6");
  EXPECT_EQ(Out("printf 'one\\nthree\\n' | tepal query dos.tpl"), "one\n");
  EXPECT_EQ(Out("tepal query dos.tpl dos.txt --crlf"), "one\r\ntwo\r\n");
}

TEST_F(ToolTest, AllBytesOfALimitAreUsed) {
  for (int num_keys = 1; num_keys <= 50; num_keys += 7) {
    Write("few.txt", std::string(static_cast<size_t>(num_keys), '\n'));
    for (const std::string layout : {"standard", "split512", "register"}) {
      Out("tepal build few.txt -o few.tpl --bytes 128 --layout " + layout);
      EXPECT_EQ(JsonOut("tepal inspect few.tpl --json")["geometry"]["num_bytes"], 128) << num_keys;
    }
  }
}

TEST_F(ToolTest, KeysAreHashedAsTheLibraryHashesThem) {
  MakeFilter("--layout partitioned --fpr 0.1% --hash xxh64 --seed 7");
  const MappedFilter mapped = MappedFilter::Open((directory_ / "seen.tpl").string()).value();
  EXPECT_EQ(mapped.info().geometry.layout, Layout::kPartitioned);
  EXPECT_EQ(mapped.info().geometry.hash, HashKind::kXxh64);
  EXPECT_EQ(mapped.info().geometry.seed, 7u);
  EXPECT_EQ(mapped.info().num_keys, 1000u);
  EXPECT_EQ(mapped.info().key_kind, KeyKind::kBytes);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(mapped.view().MayContain("key " + std::to_string(i)));
  }
}

TEST_F(ToolTest, EveryLayoutCanBeAskedFor) {
  for (const std::string layout : {"standard", "partitioned", "rational", "variable", "register",
                                   "split256", "split512", "line512"}) {
    MakeFilter("--layout " + layout);
    EXPECT_EQ(Out("tepal query seen.tpl keys.txt --count"), "1000\n") << layout;
    const auto json = JsonOut("tepal inspect seen.tpl --json");
    EXPECT_EQ(json["geometry"]["layout"], layout);
    EXPECT_LE(json["predicted_fpr"], 0.012) << layout;
  }
  MakeFilter("--layout split256 --bytes 4KiB");
  EXPECT_EQ(JsonOut("tepal inspect seen.tpl --json")["geometry"]["num_bytes"], 4096);
  MakeFilter("--bytes 4KiB");
  EXPECT_LE(JsonOut("tepal inspect seen.tpl --json")["geometry"]["num_bytes"], 4096);
}

TEST_F(ToolTest, AnOverfullFilterIsReported) {
  Write("keys.u64", RawKeys(0, 100000));
  const Answer answer = Run("tepal build keys.u64 --format u64 --keys 1000 -o small.tpl --json");
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_THAT(answer.err, HasSubstr("overfull: planned for 1,000 keys"));
  EXPECT_TRUE(nlohmann::json::parse(answer.out)["overfull"]);
  // The same key again and again takes no room.
  Out("yes same | head -n 100000 | tepal build - --keys 1000 -o same.tpl");
  EXPECT_FALSE(JsonOut("tepal build keys.u64 --format u64 -o right.tpl --json")["overfull"]);
}

TEST_F(ToolTest, AnEmptyInputMakesAnEmptyFilter) {
  Write("empty.txt", "");
  EXPECT_THAT(Out("tepal build empty.txt -o empty.tpl"), StartsWith("empty.tpl: 0 keys"));
  EXPECT_EQ(Out("echo anything | tepal query empty.tpl"), "");
  EXPECT_EQ(Out("tepal query empty.tpl empty.txt"), "");
}

TEST_F(ToolTest, AFileOnStandardInputIsCountedToo) {
  MakeFilter();
  EXPECT_EQ(Out("tepal build - -o stdin.tpl < keys.txt"),
            "stdin" + Out("tepal build keys.txt -o seen.tpl").substr(4));
  EXPECT_EQ(Read("stdin.tpl"), Read("seen.tpl"));
}

TEST_F(ToolTest, ABrokenPipeEndsQuietly) {
  Write("keys.u64", RawKeys(0, 200000));
  Out("tepal build keys.u64 --format u64 -o raw.tpl");
  const Answer answer = Run("tepal query raw.tpl keys.u64 --indices | head -n 1");
  EXPECT_EQ(answer.out, "0\n");
  EXPECT_EQ(answer.err, "");
}

// ---- inspect and verify

TEST_F(ToolTest, InspectTellsWhatIsInTheFilter) {
  MakeFilter("--fpr 1%");
  const auto json = JsonOut("tepal inspect seen.tpl --json");
  EXPECT_EQ(json["num_keys"], 1000);
  EXPECT_EQ(json["key_kind"], "bytes");
  EXPECT_NEAR(json["estimated_keys"], 1000, 60);
  EXPECT_NEAR(json["predicted_fpr"], 0.01, 0.004);
  EXPECT_GT(json["fill_ratio"], 0.2);
  EXPECT_LT(json["fill_ratio"], 0.8);
  EXPECT_EQ(json["geometry"]["num_bits"], 8 * json["geometry"]["num_bytes"].get<uint64_t>());
  const std::string text = Out("tepal inspect seen.tpl");
  EXPECT_THAT(text, HasSubstr("1,000 inserted, kind bytes"));
  EXPECT_THAT(text, HasSubstr("estimated keys"));
}

TEST_F(ToolTest, VerifyFindsEveryKeyAndEveryMissingOne) {
  MakeFilter("--fpr 1e-6");
  EXPECT_EQ(Out("tepal verify seen.tpl"), "seen.tpl: checksum and geometry are right\n");
  EXPECT_EQ(Out("tepal verify seen.tpl --keys keys.txt"),
            "seen.tpl: checksum and geometry are right, all 1,000 keys are found\n");
  EXPECT_EQ(JsonOut("tepal verify seen.tpl --keys keys.txt --json")["num_missing"], 0);
  ExpectFailure("printf 'key 1\\nkey 2\\nnew\\nkey 3\\nnewer\\n' | tepal verify seen.tpl --keys -",
                1, "2 of 5 keys are not in the filter, first key 2");
}

TEST_F(ToolTest, EveryCommandFindsDamagedBytes) {
  MakeFilter();
  const std::string good = Read("seen.tpl");
  // Every single bit is in container_test.cc and files_test.cc.
  for (size_t at = 0; at < good.size(); at += 1 + good.size() / 40) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    Write("bad.tpl", bad);
    for (const std::string command :
         {"verify bad.tpl", "inspect bad.tpl --json", "query bad.tpl keys.txt"}) {
      ExpectFailure("tepal " + command, 1, "bad.tpl");
    }
  }
  for (const size_t size : {size_t{0}, size_t{1}, good.size() / 2, good.size() - 1}) {
    Write("bad.tpl", good.substr(0, size));
    ExpectFailure("tepal verify bad.tpl", 1, "bad.tpl");
  }
  Write("bad.tpl", "this is no filter");
  ExpectFailure("tepal query bad.tpl keys.txt", 1, "bad.tpl");
}

// ---- plan, targets, calibrate, reproduce, demo

TEST_F(ToolTest, PlanExplainsItself) {
  EXPECT_THAT(Out("tepal plan --keys 10M --fpr 1%"), HasSubstr("split256"));
  const auto json = JsonOut("tepal plan --keys 10M --fpr 1% --work-saved 100ns --json");
  EXPECT_LE(json["predicted_fpr"], 0.01);
  EXPECT_TRUE(json["pays_off"]);
  EXPECT_GT(json["candidates"].size(), 3u);
  EXPECT_FALSE(JsonOut("tepal plan --keys 10M --work-saved 0.1ns --json")["pays_off"]);
  const auto small = JsonOut("tepal plan --keys 10M --bytes 8MiB --json");
  EXPECT_LE(small["geometry"]["num_bytes"], 8 << 20);
  const auto parquet = JsonOut("tepal plan --keys 1M --fpr 1% --needs parquet,union --json");
  EXPECT_EQ(parquet["geometry"]["layout"], "split256");
}

TEST_F(ToolTest, TargetsAgreeWithTheReference) {
  const auto json = JsonOut("tepal targets --quick --json");
  std::set<std::string> layouts;
  for (const auto& row : json["rows"]) {
    EXPECT_TRUE(row["agrees_with_reference"]) << row;
    EXPECT_EQ(row["times"].size(), 4u);
    for (const auto& time : row["times"]) EXPECT_GT(time["ns_per_probe"], 0);
    layouts.insert(row["layout"]);
  }
  EXPECT_EQ(layouts.size(), 9u);
  EXPECT_EQ(json["rows"].size(), 9 * json["targets"].size());
}

TEST_F(ToolTest, CalibrateWritesAProfileThatPlanUses) {
  Out("tepal calibrate --time 10ms --bytes 1MiB -o here.json");
  EXPECT_TRUE(nlohmann::json::accept(Read("here.json")));
  const auto plan = JsonOut("tepal plan --keys 1M --fpr 1% --profile here.json --json");
  EXPECT_THAT(plan["profile"].get<std::string>(), HasSubstr("here.json"));
  Write("bad.json", "{}");
  ExpectFailure("tepal plan --keys 1M --fpr 1% --profile bad.json", 1, "bad.json");
}

TEST_F(ToolTest, CalibrateWritesAProfileForEachTarget) {
  Out("tepal calibrate --all-targets --time 10ms --bytes 64KiB");
  for (const std::string& target : AvailableTargets()) {
    const auto profile = nlohmann::json::parse(Read("tepal/profile-" + target + ".json"));
    EXPECT_EQ(profile["target"], target);
  }
  ExpectFailure("tepal calibrate --all-targets -o here.json", 2, "--output");
}

// Whether the claim of an exhibit that begins with `claim` holds.
bool Holds(const nlohmann::json& exhibits, const std::string& id, const std::string& claim) {
  for (const auto& exhibit : exhibits) {
    if (exhibit["id"] != id) continue;
    for (const auto& candidate : exhibit["claims"]) {
      if (candidate["claim"].get<std::string>().starts_with(claim)) return candidate["holds"];
    }
  }
  ADD_FAILURE() << id << " has no claim '" << claim << "'";
  return false;
}

TEST_F(ToolTest, ReproduceStatesWhichClaimsHold) {
  const auto exhibits = JsonOut("tepal reproduce --json")["exhibits"];
  for (const auto& exhibit : exhibits) EXPECT_FALSE(exhibit["rows"].empty()) << exhibit["id"];
  EXPECT_FALSE(Holds(exhibits, "rational-figure-1", "a rational k* has fewer"));
  EXPECT_FALSE(Holds(exhibits, "rational-figure-3", "a rational k* has fewer"));
  EXPECT_TRUE(Holds(exhibits, "rational-figure-3", "the minima lie at integers"));
  EXPECT_FALSE(Holds(exhibits, "variable-rates", "rates of false positives are similar"));
  EXPECT_TRUE(Holds(exhibits, "variable-rates", "a filter of any length"));
  EXPECT_TRUE(Holds(exhibits, "partitioned-table-1", "the entries of Table 1"));
  EXPECT_FALSE(Holds(exhibits, "partitioned-table-2", "the entries of Table 2"));
  EXPECT_FALSE(Holds(exhibits, "partitioned-table-3", "the entries of Table 3"));
  EXPECT_TRUE(Holds(exhibits, "partitioned-table-3", "elements with collisions"));
  EXPECT_TRUE(Holds(exhibits, "partitioned-table-4", "the entries of Table 4"));
  EXPECT_TRUE(Holds(exhibits, "partitioned-figure-4", "m = 512, k = 16"));
}

TEST_F(ToolTest, ChartsNeedGnuplotAndSaySo) {
  // A PATH that has the tool and nothing else.
  ExpectFailure("PATH=" TEPAL_TOOL_DIRECTORY " tepal targets --quick --svg t.svg", 1,
                "charts need gnuplot");
  if (std::system("gnuplot --version > /dev/null 2>&1") != 0) return;
  Run("tepal targets --quick --svg t.svg");
  EXPECT_THAT(Read("t.svg"), HasSubstr("</svg>"));
  EXPECT_EQ(Run("tepal targets --quick --svg missing/t.svg").exit_code, 1);
}

TEST_F(ToolTest, DemoChecksItself) {
  EXPECT_THAT(Out("tepal demo 20k"), HasSubstr("Everything agrees."));
  ExpectFailure("tepal demo 10", 2, "1,000 to 1,000,000,000 keys");
}

// ---- Usage

TEST_F(ToolTest, EveryCommandHasHelpWithAnExample) {
  const std::string help = Out("tepal --help");
  for (const std::string command : {"plan", "build", "query", "inspect", "verify", "targets",
                                    "calibrate", "reproduce", "demo"}) {
    EXPECT_THAT(help, HasSubstr("\n  " + command + " "));
    EXPECT_THAT(Out("tepal " + command + " --help"), HasSubstr("Example: tepal " + command));
  }
  EXPECT_THAT(help, HasSubstr("Exit codes: 0 done; 1 failed"));
  EXPECT_THAT(Out("tepal --version"), StartsWith("tepal "));
}

TEST_F(ToolTest, WrongUsageExitsWithTwo) {
  MakeFilter();
  ExpectFailure("tepal", 2, "subcommand is required");
  ExpectFailure("tepal no-such-command", 2, "");
  ExpectFailure("tepal build keys.txt", 2, "--output is required");
  ExpectFailure("tepal build keys.txt -o x.tpl --no-such-option", 2, "--no-such-option");
  ExpectFailure("tepal build keys.txt -o x.tpl --fpr 200%", 2, "'200%' is not a share");
  ExpectFailure("tepal build keys.txt -o x.tpl --fpr 0", 2, "'0' is not a rate above 0");
  ExpectFailure("tepal build keys.txt -o x.tpl --fpr 0 --bytes 1KiB", 2, "--fpr");
  ExpectFailure("tepal build keys.txt -o x.tpl --fpr 1% --bytes 0", 2, "--bytes");
  ExpectFailure("tepal build keys.txt -o x.tpl --seed -1", 2, "'-1' is not a whole number");
  ExpectFailure("tepal build keys.txt -o x.tpl --layout nonsense", 2, "nonsense");
  ExpectFailure("tepal build keys.txt -o x.tpl --format nonsense", 2, "text, u32, u64 or csv");
  ExpectFailure("tepal build keys.txt -o x.tpl --layout split256 --fpr 1% --bytes 32", 2,
                "more than 32 B");
  ExpectFailure("tepal build keys.txt -o x.tpl --layout split512 --bytes 10", 2,
                "the smallest filter has 64 B with split512, more than 10 B");
  ExpectFailure("tepal build keys.txt -o x.tpl --layout variable-paper", 2, "say with --bytes");
  ExpectFailure("cat keys.txt | tepal build - -o x.tpl", 2, "--keys");
  ExpectFailure("tepal query seen.tpl keys.txt --format u64", 2,
                "keys of kind bytes, and --format asks for uint64");
  ExpectFailure("tepal query seen.tpl keys.txt --count --indices", 2, "excludes");
  ExpectFailure("tepal plan --keys 10M", 2, "");
  ExpectFailure("tepal plan --keys 10M --fpr 1% --needs magic", 2, "'magic' is none of");
  ExpectFailure("tepal calibrate --bytes 2305843009213759488", 2, "between");  // 2^61 + 64 KiB
  EXPECT_FALSE(Exists("x.tpl"));
}

TEST_F(ToolTest, UnknownWordsAreNamedBeforeWhatIsMissingWithThem) {
  ExpectFailure("tepal biuld keys.txt -o seen.tpl", 2, "'biuld' is no command or option");
  ExpectFailure("tepal --jsn plan", 2, "'--jsn' is no command or option");
  ExpectFailure("tepal plan --kys 10M", 2, "'--kys' is no command or option");
}

TEST_F(ToolTest, OptionsThatWouldDoNothingAreRefused) {
  MakeFilter();
  ExpectFailure("tepal verify seen.tpl --format text", 2, "--keys");
  ExpectFailure("tepal query seen.tpl keys.txt --column key", 2, "--format csv");
  ExpectFailure("tepal query seen.tpl keys.txt --no-header", 2, "--format csv");
  ExpectFailure("tepal build keys.txt -o x.tpl --delimiter tab", 2, "--format csv");
  ExpectFailure("tepal build keys.txt -o x.tpl --format csv --crlf", 2, "--format text");
}

TEST_F(ToolTest, EveryCommandRefusesAnUnknownTarget) {
  MakeFilter();
  for (const char* command : {"plan --keys 1M --fpr 1%", "build keys.txt -o x.tpl", "demo 1k",
                              "query seen.tpl keys.txt", "inspect seen.tpl", "verify seen.tpl",
                              "targets --quick", "reproduce", "calibrate --time 1ms"}) {
    ExpectFailure(std::string("TEPAL_TARGET=6502 tepal ") + command, 2, "TEPAL_TARGET");
  }
  EXPECT_THAT(Out("TEPAL_TARGET=6502 tepal --help"), HasSubstr("Usage"));
}

// Between backquotes gnuplot runs commands, and behind a '|' too. This one writes down what it is
// told, but only says its version if it is asked for that.
TEST_F(ToolTest, ThePathOfAChartIsNoCommand) {
  Write("gnuplot", "#!/bin/sh\n[ $# -gt 0 ] || cat > told.txt\n");
  fs::permissions(directory_ / "gnuplot", fs::perms::owner_all);
  Run("PATH=$PWD:$PATH; tepal targets --quick --svg '|a `date` \\ \"b\".svg'");
  EXPECT_EQ(Lines(Read("told.txt")).at(0), "set output './|a `date` \\ \"b\".svg.part'");
}

TEST_F(ToolTest, WhatCannotBeReadOrWrittenExitsWithOne) {
  MakeFilter();
  fs::create_directories(directory_ / "folder");
  ExpectFailure("tepal build missing.txt -o x.tpl", 1, "missing.txt: No such file");
  ExpectFailure("tepal build folder -o x.tpl", 1, "folder: is a directory");
  ExpectFailure("tepal build keys.txt -o missing/x.tpl", 1, "missing/x.tpl");
  ExpectFailure("tepal build keys.txt -o folder", 1, "folder");
  ExpectFailure("tepal query missing.tpl keys.txt", 1, "missing.tpl");
  ExpectFailure("tepal query folder keys.txt", 1, "folder");
  ExpectFailure("tepal query seen.tpl missing.txt", 1, "missing.txt: No such file");
  ExpectFailure("printf 12345 | tepal build - --format u32 --keys 10 -o x.tpl", 1,
                "standard input: the last 1 bytes, at offset 4");
  Write("bad.csv", "a,b\n1,2\n3\n");
  ExpectFailure("tepal build bad.csv --format csv --column b -o x.tpl", 1, "bad.csv:3:");
  EXPECT_FALSE(Exists("x.tpl"));
  EXPECT_TRUE(fs::is_empty(directory_ / "folder"));
  // A limit of this process for the size of files is no reason to die without a word.
  EXPECT_THAT(Out("(ulimit -f 1; tepal build keys.txt -o x.tpl 2>&1; echo exit $?) | cat"),
              HasSubstr("File too large\nexit 1\n"));
  EXPECT_FALSE(Exists("x.tpl"));
  if (fs::exists("/dev/full")) {
    const Answer full = Run("tepal query seen.tpl keys.txt > /dev/full");
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_THAT(full.err, HasSubstr("cannot write to standard output"));
    EXPECT_EQ(Run("tepal inspect seen.tpl > /dev/full").exit_code, 1);
    EXPECT_EQ(Run("tepal --help > /dev/full").exit_code, 1);
    EXPECT_EQ(Run("tepal plan --help > /dev/full").exit_code, 1);
    EXPECT_EQ(Run("tepal --version > /dev/full").exit_code, 1);
  }
}

TEST_F(ToolTest, TheOutputIsNeverTheInput) {
  MakeFilter();
  const std::string keys = Read("keys.txt");
  for (const char* build :
       {"tepal build keys.txt -o keys.txt", "tepal build ./keys.txt -o keys.txt",
        "tepal build - -o keys.txt < keys.txt"}) {
    ExpectFailure(build, 2, "is the output as well");
  }
  for (const char* query : {"tepal query seen.tpl keys.txt >> keys.txt",
                            "tepal query seen.tpl - < keys.txt >> keys.txt"}) {
    ExpectFailure(query, 2, "is the output as well");
  }
  EXPECT_EQ(Read("keys.txt"), keys);
  fs::create_symlink("keys.txt", directory_ / "link.tpl");  // only the link is replaced
  Out("tepal build keys.txt -o link.tpl");
  EXPECT_EQ(Read("keys.txt"), keys);
}

TEST_F(ToolTest, AFailedBuildLeavesTheOldFilter) {
  MakeFilter();
  const std::string before = Read("seen.tpl");
  Write("bad.u64", "12345");
  ExpectFailure("tepal build bad.u64 --format u64 -o seen.tpl", 1, "bad.u64");
  EXPECT_EQ(Read("seen.tpl"), before);
  EXPECT_EQ(testing::NumEntries(directory_), 5u);  // keys.txt, seen.tpl, bad.u64, .out, .err
}

}  // namespace
}  // namespace tepal::tool
