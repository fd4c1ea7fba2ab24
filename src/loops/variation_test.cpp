// SPDX-License-Identifier: Apache-2.0
#include "loops/variation.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace amasia::loops {
namespace {

using Part = Variation::Part;

TEST(Variation, NeedsSomeExecutions) {
  Variation variation;
  const std::vector<Part> parts = {{0.5, 1000}, {0.5, 3000}};
  for (int run = 0; run < 3; ++run) {
    variation.note(parts, 3100);
    EXPECT_EQ(variation.expected(), 0);
  }
  variation.note(parts, 3100);
  EXPECT_NEAR(variation.expected(), 1600, 1e-9) << "in balance: 0.75 of it in 1500 by each";
  variation.restart();
  variation.note(std::vector<Part>{{0.75, 1500}, {0.25, 1500}}, 9000);
  EXPECT_NEAR(variation.expected(), 1600, 1e-9) << "one execution with other shares";
}

TEST(Variation, CostsWhatTheSlowestOfTheMomentTakesLonger) {
  Variation variation;
  for (int run = 0; run < 100; ++run) {
    const bool odd = run % 2 != 0;
    const std::vector<Part> parts = {{0.5, odd ? 1000.0 : 2000.0}, {0.5, odd ? 2000.0 : 1000.0}};
    variation.note(parts, 2000);
  }
  EXPECT_NEAR(variation.expected(), 2000, 40) << "each execution takes that, in balance as it is";
}

TEST(Variation, CountsWhatIsInNoNodesTime) {
  Variation variation;
  const std::vector<Part> parts = {{0.7, 2000}, {0.3, 2000}};
  for (int run = 0; run < 300; ++run) variation.note(parts, run % 3 == 0 ? 4000 : 2000);
  EXPECT_NEAR(variation.expected(), 2000 + 2000 / 3.0, 120);
}

// The machine does something else once: that is not what executions take from then on.
TEST(Variation, CountsTwiceAtMostWhatIsLongOnce) {
  const std::vector<Part> parts = {{0.5, 2000}, {0.5, 2000}};
  for (const int longs : {1, 2}) {
    Variation variation;
    for (int run = 0; run < 8; ++run) variation.note(parts, run >= 8 - longs ? 16000 : 2000);
    EXPECT_NEAR(variation.expected(), longs == 1 ? 2250 : 3143, 1);
  }
}

// Against shares tried out: the best division that stays takes no less than is expected, and not
// much more.
TEST(Variation, ExpectsWhatTheBestSharesThatStayTake) {
  std::mt19937_64 random(7);
  for (int machine = 0; machine < 50; ++machine) {
    std::uniform_real_distribution<> some(0.5, 3.0);
    const double slow = some(random), spread = some(random) / 3.2;
    std::vector<double> own, other;  // times for all of the work
    for (int run = 0; run < 400; ++run) {
      std::uniform_real_distribution<> factor(1 - spread, 1 + spread);
      own.push_back(1000);
      other.push_back(1000 * slow * factor(random));
    }
    const auto taken = [&](double part) {
      double sum = 0;
      for (std::size_t run = 0; run < own.size(); ++run) {
        sum += std::max(own[run] * (1 - part), other[run] * part);
      }
      return sum / static_cast<double>(own.size());
    };
    double best = 1e300;
    for (double part = 0; part < 1; part += 0.002) best = std::min(best, taken(part));
    const double part = 1 / (1 + slow);  // shares by mean speed
    Variation variation;
    double expected = 0;
    for (std::size_t run = 0; run < own.size(); ++run) {
      const std::vector<Part> parts = {{1 - part, own[run] * (1 - part)},
                                       {part, other[run] * part}};
      variation.note(parts, std::max(parts[0].time, parts[1].time));
      if (run >= 50) expected += variation.expected() / static_cast<double>(own.size() - 50);
    }
    EXPECT_GT(expected, 0.95 * best) << "slow " << slow << " spread " << spread;
    EXPECT_LT(expected, 1.10 * best) << "slow " << slow << " spread " << spread;
  }
}

}  // namespace
}  // namespace amasia::loops
