// Status and Result: what an error carries, and what asking an error for its value does.
#include "tepal/status.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tepal {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(StatusTest, IsOkWithoutAMessageByDefault) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().code(), StatusCode::kOk);
  EXPECT_EQ(Status().message(), "");
  EXPECT_TRUE(Status::Ok().ok());
}

TEST(StatusTest, ErrorsCarryTheirCodeAndMessage) {
  const std::pair<Status, StatusCode> errors[] = {
      {Status::InvalidArgument("why"), StatusCode::kInvalidArgument},
      {Status::OutOfMemory("why"), StatusCode::kOutOfMemory},
      {Status::Unsupported("why"), StatusCode::kUnsupported},
      {Status::Corrupt("why"), StatusCode::kCorrupt},
      {Status::IoError("why"), StatusCode::kIoError},
  };
  for (const auto& [status, code] : errors) {
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message(), "why");
  }
}

TEST(ResultTest, OfAValueIsOkAndGivesTheValue) {
  Result<int> result = 42;
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(result);
  EXPECT_TRUE(result.status().ok());
  EXPECT_EQ(result.value(), 42);
  EXPECT_EQ(*result, 42);
  result.value() = 43;
  EXPECT_EQ(std::as_const(result).value(), 43);
  *result = 44;
  EXPECT_EQ(*std::as_const(result), 44);
}

TEST(ResultTest, OfAnErrorIsNotOkAndGivesTheStatus) {
  const Result<int> result = Status::OutOfMemory("why");
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(result);
  EXPECT_EQ(result.status().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(result.status().message(), "why");
}

TEST(ResultTest, TheValueOfAnErrorThrowsALogicErrorWithTheMessage) {
  Result<int> result = Status::InvalidArgument("num_bits is 7");
  EXPECT_THROW(result.value(), std::logic_error);
  EXPECT_THROW(std::as_const(result).value(), std::logic_error);
  EXPECT_THROW(std::move(result).value(), std::logic_error);
  EXPECT_THAT([] { Result<int>(Status::InvalidArgument("num_bits is 7")).value(); },
              ThrowsMessage<std::logic_error>(HasSubstr("num_bits is 7")));
}

TEST(ResultTest, HoldsTypesThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(42);
  EXPECT_EQ(*result->get(), 42);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 42);
}

TEST(ResultTest, ArrowReachesMembers) {
  Result<std::string> result = std::string("tepal");
  EXPECT_EQ(result->size(), 5u);
  EXPECT_EQ(std::as_const(result)->size(), 5u);
}

}  // namespace
}  // namespace tepal
