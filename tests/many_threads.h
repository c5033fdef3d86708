// Several threads that ask the same at once.
#ifndef TEPAL_TESTS_MANY_THREADS_H_
#define TEPAL_TESTS_MANY_THREADS_H_

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tepal::testing {

// Runs `ask` in several threads at once; all must get what one thread alone gets.
template <class Ask>
void ExpectThreadsAgree(const Ask& ask) {
  std::vector<decltype(ask())> answers(4);
  std::vector<std::thread> threads;
  for (auto& mine : answers) threads.emplace_back([&ask, &mine] { mine = ask(); });
  for (std::thread& thread : threads) thread.join();
  const auto expected = ask();
  for (const auto& mine : answers) EXPECT_EQ(mine, expected);
}

}  // namespace tepal::testing

#endif  // TEPAL_TESTS_MANY_THREADS_H_
