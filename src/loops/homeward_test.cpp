// SPDX-License-Identifier: Apache-2.0
#include "loops/homeward.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace amasia::loops {
namespace {

constexpr Nanos kMs = base::kMillisecond;

// A region of ten seconds with a barrier each millisecond.
struct Region {
  double allowance_ms = 250;
  // What the origin alone would need for what is done in one ms, ms; by the time.
  std::function<double(int ms)> alone;
  std::function<int(int ms)> place = [](int ms) { return ms % 10; };
  int answer_takes = 1;  // barriers
  std::uintptr_t code = 0x40'1234, apart = 8;  // where the first place is, and the next ones

  // When it goes home, ms; 0: never.
  int goes_home() const {
    Homeward homeward(allowance_ms * kMs);
    double done = 0, at_question = 0;
    int asked = 0;
    for (int now = 1; now < 10'000; ++now) {
      done += alone(now) * kMs;
      const auto offset = apart * static_cast<std::uintptr_t>(place(now));
      homeward.come_to(reinterpret_cast<const void*>(code + offset));
      if (homeward.asked() && now >= asked + answer_takes) {
        if (homeward.hear(at_question)) return now;
      }
      if (homeward.is_due(now * kMs)) {
        homeward.ask(now * kMs);
        asked = now;
        at_question = done;
      }
    }
    return 0;
  }
};

TEST(Homeward, GoesOnceItHasLostMoreThanItMay) {
  const int went = Region{.allowance_ms = 400, .alone = [](int) { return 0.2; }}.goes_home();
  EXPECT_GT(went, 500);
  EXPECT_LT(went, 650) << "it looks often enough";
}

TEST(Homeward, StaysWhereSharingPays) {
  EXPECT_EQ((Region{.allowance_ms = 0, .alone = [](int) { return 1.8; }}.goes_home()), 0);
  EXPECT_EQ((Region{.allowance_ms = 0, .alone = [](int) { return 1.01; }}.goes_home()), 0);
}

// What alone would take is overrated, so an eighth lost in each look is enough, and little is not.
TEST(Homeward, GoesIfALittleIsLostAllTheTime) {
  EXPECT_GT((Region{.allowance_ms = 50, .alone = [](int) { return 0.87; }}.goes_home()), 0);
  EXPECT_EQ((Region{.allowance_ms = 50, .alone = [](int) { return 0.95; }}.goes_home()), 0);
}

TEST(Homeward, GoesLateIfItStopsToPay) {
  const auto alone = [](int now) { return now < 5000 ? 1.8 : 0.2; };
  const int went = Region{.alone = alone}.goes_home();
  EXPECT_GT(went, 5250);
  EXPECT_LT(went, 6500);
}

TEST(Homeward, StaysWhereOnlyTheBeginningWasDear) {
  // Each barrier is new for two seconds, as in the first step of a time loop, wherever the code is.
  for (std::uintptr_t page = 1; page <= 64; ++page) {
    for (std::uintptr_t apart = 1; apart <= 8; ++apart) {
      const Region region{.alone = [](int now) { return now < 2000 ? 0.01 : 1.8; },
                          .place = [](int now) { return now < 2000 ? now / 20 : now % 100; },
                          .code = 0x5555'0000'0000 + page * 4096 - 50 * apart,
                          .apart = apart};
      ASSERT_EQ(region.goes_home(), 0) << "across page " << page << ", " << apart << " apart";
    }
  }
  // A little that is lost later is within what it may lose.
  EXPECT_EQ((Region{.alone = [](int now) { return now < 200 ? 0.0 : 1.8; }}.goes_home()), 0);
}

TEST(Homeward, GoesAfterAFirstStepThatIsRepeatedAsDear) {
  const Region region{.alone = [](int) { return 0.1; },
                      .place = [](int now) { return now % 500 / 5; }};
  const int went = region.goes_home();
  EXPECT_GT(went, 500 + 250);
  EXPECT_LT(went, 1000);
}

TEST(Homeward, MorePlacesThanItHasRoomForAreNoReasonToStay) {
  const Region region{.alone = [](int) { return 0.1; },
                      .place = [](int now) { return now % 997; }};
  EXPECT_GT(region.goes_home(), 0);
}

TEST(Homeward, WaitsForAnswers) {
  const Region region{.alone = [](int) { return 0.2; }, .answer_takes = 50};
  EXPECT_GT(region.goes_home(), 0);
  Homeward homeward(0);
  homeward.ask(20 * kMs);
  EXPECT_FALSE(homeward.is_due(10'000 * kMs));
}

TEST(Homeward, TellsAllThatWasLost) {
  Homeward homeward(1000.0 * kMs);
  const char place = 0;
  homeward.come_to(&place);
  homeward.ask(100 * kMs);
  EXPECT_FALSE(homeward.hear(10.0 * kMs));
  EXPECT_EQ(homeward.lost(), 90.0 * kMs);
  homeward.ask(300 * kMs);
  EXPECT_FALSE(homeward.hear(400.0 * kMs));
  EXPECT_EQ(homeward.lost(), 0);
}

TEST(Homeward, NeverAsksUnlessItIsToBeFoundOut) {
  EXPECT_FALSE(Homeward().is_due(10'000 * kMs));
}

}  // namespace
}  // namespace amasia::loops
