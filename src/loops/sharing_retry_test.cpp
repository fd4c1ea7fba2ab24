// SPDX-License-Identifier: Apache-2.0
// When the sharing model tries again what it has left alone, within a run and over several.
#include <gtest/gtest.h>

#include <vector>

#include "loops/sharing_model.hpp"

namespace amasia::loops {
namespace {

using Phase = SharingModel::Phase;
constexpr double kMs = base::kMillisecond;
constexpr Nanos kMillis = base::kMillisecond;
const std::vector<double> kLike{1, 1};

// It took 15 ms shared, 5 ms more than alone.
SharingModel left_alone() {
  SharingModel model(kLike);
  model.observe_come_home(15 * kMillis, 5 * kMs);
  EXPECT_EQ(model.phase(), Phase::kAlone);
  return model;
}

TEST(SharingRetry, ComesWhenTheTryIsASmallPartOfTheTimeAlone) {
  SharingModel model = left_alone();
  const double all = model.until_retried();
  EXPECT_GT(all, 100 * 5 * kMs);
  double spent = 0;
  while (model.phase() == Phase::kAlone) {
    EXPECT_NEAR(model.until_retried(), all - spent, 1e-6 * all);
    model.observe_alone(10 * kMillis, 0);
    spent += 10 * kMs;
  }
  EXPECT_EQ(model.phase(), Phase::kCold);
  EXPECT_EQ(model.until_retried(), 0);
  EXPECT_NEAR(spent, all, 10 * kMs);
}

// Each run of the program begins with what the last one found: all of them together pay back the
// try of the first.
TEST(SharingRetry, ComesAfterSeveralRunsThatBeganAlone) {
  const double all = left_alone().until_retried();
  double until_retried = all, spent = 0;
  while (until_retried > 0) {
    SharingModel model(kLike);
    model.begin_alone(until_retried);
    EXPECT_FALSE(model.shares());
    EXPECT_NEAR(model.until_retried(), until_retried, 1e-6 * all);
    for (int i = 0; i < 20 && model.phase() == Phase::kAlone; ++i) {
      model.observe_alone(10 * kMillis, 0);
      spent += 10 * kMs;
    }
    EXPECT_TRUE(model.phase() == Phase::kAlone || model.shares());
    ASSERT_LT(model.until_retried(), until_retried);
    until_retried = model.until_retried();
  }
  EXPECT_NEAR(spent, all, 10 * kMs);
}

// A try in vain is made less often.
TEST(SharingRetry, TakesLongerAfterEachTryInVain) {
  SharingModel model = left_alone();
  const double first = model.until_retried();
  while (model.phase() == Phase::kAlone) model.observe_alone(10 * kMillis, 0);
  model.observe_come_home(15 * kMillis, 5 * kMs);
  EXPECT_GT(model.until_retried(), 1.5 * first);
}

// The first try may lose what the program can afford, a further one what time alone has earned.
TEST(SharingRetry, MayLoseWhatWasPutByForIt) {
  SharingModel model = left_alone();
  EXPECT_GT(SharingModel(kLike).may_lose(), 1e9 * kMs);
  double spent = 0;
  for (; model.phase() == Phase::kAlone; spent += 10 * kMs) model.observe_alone(10 * kMillis, 0);
  EXPECT_NEAR(model.may_lose(), spent / 100, 1);
  EXPECT_GT(model.may_lose(), 5 * kMs) << "what the first try has cost";
}

}  // namespace
}  // namespace amasia::loops
