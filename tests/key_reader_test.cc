// Keys from files and pipes: every byte counts, wherever the reads happen to end.
#include "tools/tepal/key_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/test_files.h"

namespace tepal::tool {
namespace {

// A file that is gone after the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  const std::string& path() const { return path_; }

 private:
  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.PathOf("keys");
};

struct Answer {
  std::vector<std::string> keys;  // integers as their bytes, little-endian
  std::vector<std::string> rows;
  std::string preamble;
  Status status;
};

std::vector<std::string> KeysOf(const KeyBatch& batch) {
  std::vector<std::string> keys;
  std::visit(
      [&](const auto& column) {
        for (size_t i = 0; i < column.size(); ++i) {
          if constexpr (std::is_same_v<decltype(column), const StringColumn&>) {
            keys.emplace_back(column[i]);
          } else {
            std::string& bytes = keys.emplace_back();
            for (size_t at = 0; at < sizeof(column[i]); ++at) {
              bytes += static_cast<char>(column[i] >> (8 * at));
            }
          }
        }
      },
      batch.keys);
  return keys;
}

Answer ReadAll(KeyReader& reader) {
  Answer answer;
  for (KeyBatch batch;;) {
    const Result<bool> more = reader.Next(batch);
    answer.preamble = reader.preamble();
    if (!more.ok()) answer.status = more.status();
    if (!more.ok() || !*more) return answer;
    EXPECT_GT(batch.size(), 0u);
    for (std::string& key : KeysOf(batch)) answer.keys.push_back(std::move(key));
    for (size_t i = 0; i < batch.size(); ++i) answer.rows.emplace_back(batch.Row(i));
  }
}

Answer ReadFile(const std::string& content, InputOptions options) {
  const TemporaryFile file(content);
  options.path = file.path();
  return ReadAll(*KeyReader::Open(options).value());
}

// Through a pipe, `chunk` bytes at a time.
Answer ReadPipe(const std::string& content, InputOptions options, size_t chunk) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  std::thread writer([&] {
    for (size_t at = 0; at < content.size();) {
      const ssize_t written =
          write(ends[1], content.data() + at, std::min(chunk, content.size() - at));
      if (written <= 0) break;
      at += static_cast<size_t>(written);
      std::this_thread::yield();
    }
    close(ends[1]);
  });
  options.path = "/dev/fd/" + std::to_string(ends[0]);
  Answer answer = ReadAll(*KeyReader::Open(options).value());
  writer.join();
  close(ends[0]);
  return answer;
}

// All ways to read it give the same.
void ExpectKeys(const std::string& content, const InputOptions& options,
                const std::vector<std::string>& keys) {
  for (const size_t chunk : {size_t{0}, size_t{1}, size_t{3}, size_t{1} << 16}) {
    const Answer answer =
        chunk == 0 ? ReadFile(content, options) : ReadPipe(content, options, chunk);
    EXPECT_TRUE(answer.status.ok()) << answer.status.message();
    EXPECT_EQ(answer.keys, keys) << "in chunks of " << chunk;
  }
}

void ExpectError(const std::string& content, const InputOptions& options, const std::string& part) {
  const Answer answer = ReadFile(content, options);
  ASSERT_FALSE(answer.status.ok()) << content;
  EXPECT_NE(answer.status.message().find(part), std::string::npos) << answer.status.message();
}

using Strings = std::vector<std::string>;

// ---- Text

const InputOptions kText = {.format = KeyFormat::kText};

TEST(TextReaderTest, LinesAreKeysByteForByte) {
  ExpectKeys("", kText, {});
  ExpectKeys("\n", kText, {""});
  ExpectKeys("one\ntwo\n", kText, {"one", "two"});
  ExpectKeys("one\n\n\ntwo\n", kText, {"one", "", "", "two"});
  ExpectKeys("no newline", kText, {"no newline"});
  ExpectKeys("one\ntwo", kText, {"one", "two"});
  ExpectKeys("a\r\nb\r\n", kText, {"a\r", "b\r"});
  ExpectKeys(std::string("a\0b\n\0\n", 6), kText, {std::string("a\0b", 3), std::string(1, '\0')});
  ExpectKeys("\xFF\xFE\n\xC3\xA9\n", kText, {"\xFF\xFE", "\xC3\xA9"});
}

TEST(TextReaderTest, CrlfOptionTakesTheCarriageReturnOffTheEndOnly) {
  InputOptions options = kText;
  options.crlf = true;
  ExpectKeys("a\r\nb\n\r\nc\rd\r\n\re\r\r\n", options, {"a", "b", "", "c\rd", "\re\r"});
  EXPECT_EQ(KeyReader::Open({.path = "/dev/null", .crlf = true}).value()->row_end(), "\r\n");
}

TEST(TextReaderTest, LinesMayBeLongerThanTheWindow) {
  const std::string line(3 * Input::kWindowBytes + 17, 'x');
  for (const Answer& answer : {ReadFile("a\n" + line + "\nb\n", kText),
                               ReadPipe("a\n" + line + "\nb\n", kText, 1 << 16)}) {
    EXPECT_EQ(answer.keys, (Strings{"a", line, "b"}));
  }
}

TEST(TextReaderTest, ManyLinesSurviveEveryEndOfAWindow) {
  std::mt19937 random(1);
  std::string content;
  Strings keys;
  while (content.size() < 2 * Input::kWindowBytes) {
    keys.push_back(std::string(random() % 40, static_cast<char>('a' + random() % 26)));
    content += keys.back() + "\n";
  }
  EXPECT_EQ(ReadFile(content, kText).keys, keys);
  EXPECT_EQ(ReadPipe(content, kText, 4093).keys, keys);
  EXPECT_EQ(ReadFile(content, kText).rows, keys);
}

// The window has grown with the first one, and what is known of the others must not.
TEST(TextReaderTest, ShortLinesBehindALongOneComeInBatches) {
  constexpr size_t kNumLines = 5 * kMaxRowsPerBatch / 2;
  const TemporaryFile file(std::string(2 * Input::kWindowBytes, 'x') +
                           std::string(kNumLines + 1, '\n'));
  const auto reader = KeyReader::Open({.path = file.path()}).value();
  size_t num_lines = 0;
  for (KeyBatch batch; reader->Next(batch).value(); num_lines += batch.size()) {
    ASSERT_LE(batch.size(), kMaxRowsPerBatch);
  }
  EXPECT_EQ(num_lines, kNumLines + 1);
}

// ---- Raw integers

TEST(RawReaderTest, IntegersAreLittleEndian) {
  const TemporaryFile file(std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\x80", 16));
  KeyBatch batch;
  const auto u64 = KeyReader::Open({.path = file.path(), .format = KeyFormat::kU64}).value();
  ASSERT_TRUE(u64->Next(batch).value());
  const auto longs = std::get<std::span<const uint64_t>>(batch.keys);
  EXPECT_EQ(std::vector<uint64_t>(longs.begin(), longs.end()),
            (std::vector<uint64_t>{1, 0x8000000000000002}));
  const auto u32 = KeyReader::Open({.path = file.path(), .format = KeyFormat::kU32}).value();
  ASSERT_TRUE(u32->Next(batch).value());
  const auto ints = std::get<std::span<const uint32_t>>(batch.keys);
  EXPECT_EQ(std::vector<uint32_t>(ints.begin(), ints.end()),
            (std::vector<uint32_t>{1, 0, 2, 0x80000000}));
}

TEST(RawReaderTest, KeysSurviveEveryEndOfARead) {
  std::mt19937_64 random(2);
  for (const KeyFormat format : {KeyFormat::kU32, KeyFormat::kU64}) {
    const size_t width = format == KeyFormat::kU32 ? 4 : 8;
    std::string content;
    while (content.size() < Input::kWindowBytes + 8 * 1021) {
      const uint64_t value = random();
      content.append(reinterpret_cast<const char*>(&value), 8);
    }
    Strings keys;
    for (size_t at = 0; at < content.size(); at += width) keys.push_back(content.substr(at, width));
    EXPECT_EQ(ReadFile(content, {.format = format}).keys, keys);
    EXPECT_EQ(ReadPipe(content, {.format = format}, 4093).keys, keys);
    EXPECT_EQ(ReadFile(content, {.format = format}).rows, keys);
  }
}

TEST(RawReaderTest, AKeyThatIsCutOffIsAnErrorWithItsOffset) {
  ExpectError(std::string(20, 'x'), {.format = KeyFormat::kU64}, "last 4 bytes, at offset 16");
  ExpectError(std::string(3, 'x'), {.format = KeyFormat::kU32}, "last 3 bytes, at offset 0");
  EXPECT_EQ(ReadFile(std::string(20, 'x'), {.format = KeyFormat::kU64}).keys.size(), 2u);
}

// ---- CSV

InputOptions Csv(const std::string& column, bool header = true) {
  return {.format = KeyFormat::kCsv, .column = column, .header = header};
}

TEST(CsvReaderTest, ColumnsHaveNamesOrNumbers) {
  const std::string content = "id,name,city\n1,Ada,London\n2,Grace,New York\n";
  ExpectKeys(content, Csv("name"), {"Ada", "Grace"});
  ExpectKeys(content, Csv("3"), {"London", "New York"});
  ExpectKeys(content, Csv("1", false), {"id", "1", "2"});
  EXPECT_EQ(ReadFile(content, Csv("name")).preamble, "id,name,city\n");
  EXPECT_EQ(ReadFile(content, Csv("name")).rows, (Strings{"1,Ada,London", "2,Grace,New York"}));
}

TEST(CsvReaderTest, QuotesFollowRfc4180) {
  ExpectKeys("a,b\n\"x,y\",1\n\"say \"\"hi\"\"\",2\n\"two\nlines\",3\n\"\",4\n\"\"\"\",5\n",
             Csv("a"), {"x,y", "say \"hi\"", "two\nlines", "", "\""});
  ExpectKeys("a,b\n1,\"x\"\n2,\"y\"", Csv("b"), {"x", "y"});
  ExpectKeys("\"a,1\",b\nx,y\n", Csv("a,1"), {"x"});
  ExpectKeys("a,b\n5\" pipe,1\n", Csv("a"), {"5\" pipe"});
  EXPECT_EQ(ReadFile("a\n\"two\r\nlines\"\r\n", Csv("a")).rows, (Strings{"\"two\r\nlines\""}));
}

TEST(CsvReaderTest, RecordsEndWithEitherLineEnd) {
  ExpectKeys("a,b\r\n1,x\r\n2,\"y\"\r\n3,z", Csv("b"), {"x", "y", "z"});
  ExpectKeys("a,b\r\n1,\"x\"\r\n", Csv("a"), {"1"});
  ExpectKeys("a,b\n\n1,x\n\r\n2,y\n\n", Csv("b"), {"x", "y"});
  ExpectKeys("a,b\n1,\n2,", Csv("b"), {"", ""});
}

TEST(CsvReaderTest, RowsEndAsTheFirstLineDoes) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"a,b\n1,x\r\n", "\n"}, {"a,b\r\n1,x\n", "\r\n"}, {"a,b\r\n", "\r\n"}, {"a,b", "\n"}};
  for (const auto& [content, row_end] : cases) {
    for (const bool header : {true, false}) {
      const TemporaryFile file(content);
      InputOptions options = Csv("1", header);
      options.path = file.path();
      const auto reader = KeyReader::Open(options).value();
      ReadAll(*reader);
      EXPECT_EQ(reader->row_end(), row_end) << content;
    }
  }
}

TEST(CsvReaderTest, EmptyLinesBeforeTheHeaderAreSkipped) {
  ExpectKeys("\n\r\n\na,b\n1,x\n", Csv("b"), {"x"});
  ExpectKeys("\n\na,b\n1,x\n", Csv("1"), {"1"});
  ExpectKeys("\n\n", Csv("1"), {});
  EXPECT_EQ(ReadFile("\n\na,b\n1,x\n", Csv("b")).preamble, "a,b\n");
  ExpectError("\n\na,b\n1\n", Csv("b"), ":4: the record has 1 fields");
}

TEST(CsvReaderTest, TabsAreDelimitersIfAskedFor) {
  InputOptions options = Csv("b");
  options.delimiter = '\t';
  ExpectKeys("a\tb\n1,5\tx y\n", options, {"x y"});
}

TEST(CsvReaderTest, AByteOrderMarkIsSkippedWhateverFollows) {
  const std::string mark = "\xEF\xBB\xBF";
  ExpectKeys(mark + "key,b\nx,1\n", Csv("key"), {"x"});
  ExpectKeys(mark + "x,1\ny,2\n", Csv("1", false), {"x", "y"});
  ExpectKeys(mark + "\"x\",1", Csv("1", false), {"x"});
  ExpectKeys(mark, Csv("1"), {});
  ExpectKeys(mark, Csv("1", false), {});
  ExpectKeys(mark + mark + "\n", Csv("1", false), {mark});
  ExpectKeys(mark.substr(0, 2), Csv("1", false), {mark.substr(0, 2)});
}

TEST(CsvReaderTest, NothingButAHeaderHasNoKeys) {
  ExpectKeys("a,b\n", Csv("b"), {});
  ExpectKeys("a,b", Csv("b"), {});
  ExpectKeys("", Csv("1", false), {});
  ExpectKeys("", Csv("1"), {});
}

TEST(CsvReaderTest, ManyRecordsSurviveEveryEndOfAWindow) {
  std::mt19937 random(3);
  std::string content = "n,text\n";
  Strings keys;
  while (content.size() < 2 * Input::kWindowBytes) {
    const std::string word(random() % 30, static_cast<char>('a' + random() % 26));
    keys.push_back(random() % 2 == 0 ? word : word + ",\"\n" + word);
    content +=
        std::to_string(keys.size()) +
        (keys.back() == word ? "," + word + "\r\n" : ",\"" + word + ",\"\"\n" + word + "\"\n");
  }
  EXPECT_EQ(ReadFile(content, Csv("text")).keys, keys);
  EXPECT_EQ(ReadPipe(content, Csv("2"), 4093).keys, keys);
}

TEST(CsvReaderTest, LongRecordsComeThroughPipesInPieces) {
  const std::string value(3 * Input::kWindowBytes + 5, '"');
  std::string quoted = "\"";
  for (const char c : value) quoted += std::string(2, c);
  quoted += '"';
  const std::string content = "a," + quoted + "\n1," + quoted + "\n2,x\n3,y";
  const Strings expected = {value, "x", "y"};
  EXPECT_EQ(ReadPipe(content, Csv("2"), 65536).keys, expected);
  EXPECT_EQ(ReadPipe(content, Csv(value), 65536).keys, expected);
}

TEST(CsvReaderTest, AnErrorShowsTheBeginningOfALongHeader) {
  std::string header = "first";
  for (int i = 0; i < 100'000; ++i) header += ",column " + std::to_string(i);
  const std::string message = ReadFile(header + "\n", Csv("missing")).status.message();
  EXPECT_NE(message.find("there are: first, column 0, column 1"), std::string::npos) << message;
  EXPECT_TRUE(message.ends_with(" ...")) << message;
  EXPECT_LT(message.size(), 1000u);
  EXPECT_EQ(ReadFile(header + "\n", Csv("column 99999")).status.message(), "");
}

TEST(CsvReaderTest, ErrorsNameFileAndLine) {
  ExpectError("a,b\n1,x\n2\n", Csv("b"), ":3: the record has 1 fields, and column 2 is asked for");
  ExpectError("a,b\n\"1\n1\",x\n\"2,y\n", Csv("b"), ":4: a quote is opened and never closed");
  ExpectError("a,b\n\"1\"x,y\n", Csv("b"), ":2: there is text between a closing quote");
  ExpectError("a,b\n1,x\n", Csv("c"), "no column 'c'; there are: a, b");
  ExpectError("a,b\n1,x\n", Csv("0"), "counted from 1");
  ExpectError("a,b\n1,x\n", Csv("00"), "counted from 1");
  ExpectError("", Csv("0"), "counted from 1");
  ExpectError("", Csv("c"), "there is no header");
}

// ---- All

TEST(KeyReaderTest, CountingAFileLeavesItAtItsBeginning) {
  const std::pair<InputOptions, std::string> cases[] = {
      {kText, "one\ntwo\n\nfour"},
      {{.format = KeyFormat::kU64}, std::string(32, 'x')},
      {{.format = KeyFormat::kU32}, std::string(16, 'x')},
      {Csv("b"), "a,b\n1,x\n\n2,y\n3,\"z\nz\"\n4,"},
  };
  for (auto [options, content] : cases) {
    const TemporaryFile file(content);
    options.path = file.path();
    const auto reader = KeyReader::Open(options).value();
    EXPECT_EQ(reader->CountAndRewind().value(), 4u);
    EXPECT_EQ(ReadAll(*reader).keys.size(), 4u);
    EXPECT_EQ(reader->input().bytes_consumed(), content.size());
    EXPECT_EQ(reader->input().size(), content.size());
  }
}

TEST(KeyReaderTest, WhatCannotBeReadIsAnErrorThatNamesIt) {
  const auto missing = KeyReader::Open({.path = "/nonexistent/keys"});
  EXPECT_EQ(missing.status().code(), StatusCode::kIoError);
  EXPECT_EQ(missing.status().message(), "cannot open /nonexistent/keys: No such file or directory");
  const auto directory = KeyReader::Open({.path = "/"});
  EXPECT_EQ(directory.status().code(), StatusCode::kIoError);
  EXPECT_EQ(directory.status().message(), "cannot read /: is a directory");
}

}  // namespace
}  // namespace tepal::tool
