// SPDX-License-Identifier: Apache-2.0
#include "tasks/deque.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>
#include <thread>

#include "tasks/interleavings.hpp"
#include "tasks/test_size.hpp"

namespace amasia::tasks {
namespace {

using model::Exploration;
using model::Explorer;
using model::ModelAtomics;
using model::Trial;

// What the owner does, a letter a call: u push, o pop; U push before the thieves begin. And each of
// the thieves: s steal, m steal_some, of two at most. Each element is to be had once, by somebody;
// what nobody took is still there at the end.
template <Bug kBug>
struct Shared {
  explicit Shared(std::int64_t capacity) : deque(capacity) {}
  Deque<int, ModelAtomics<kBug>, 2> deque;
  std::array<int, 8> elements{};  // how often each was taken
  std::string wrong;
  void take(int* element) {
    if (element == nullptr) return;
    if (element < &elements[0] || element >= &elements[8]) {
      wrong = "took what nobody pushed";
    } else {
      ++*element;
    }
  }
  void steal(char act) {
    if (act == 's') return take(deque.steal());
    int* several[2] = {};
    const std::int64_t count = deque.steal_some(several);
    for (std::int64_t n = 0; n < count; ++n) take(several[n]);
  }
};

template <Bug kBug>
Explorer explorer(const std::string& owner, const std::vector<std::string>& thieves,
                  std::int64_t capacity) {
  return Explorer([=](Trial& run) {
    auto shared = std::make_shared<Shared<kBug>>(capacity);
    std::size_t pushes = 0;
    std::size_t before = 0;
    for (const char act : owner) {
      pushes += act == 'o' ? 0 : 1;
      if (act == 'U') shared->deque.push(&shared->elements[before++]);
    }
    run.add_thread([shared, owner, before] {
      std::size_t next = before;
      for (const char act : owner) {
        if (act == 'u') shared->deque.push(&shared->elements[next++]);
        if (act == 'o') shared->take(shared->deque.pop());
      }
    });
    for (const std::string& thief : thieves) {
      run.add_thread([shared, thief] {
        for (const char act : thief) shared->steal(act);
      });
    }
    run.at_end([shared, pushes]() -> std::string {
      while (int* rest = shared->deque.pop()) shared->take(rest);
      if (!shared->wrong.empty()) return shared->wrong;
      for (std::size_t index = 0; index < pushes; ++index) {
        if (shared->elements[index] == 0) return "dropped an element";
        if (shared->elements[index] > 1) return "gave an element to two";
      }
      return "";
    });
  });
}
template <Bug kBug = Bug::kNone>
Exploration explore(const std::string& owner, const std::vector<std::string>& thieves,
                    std::int64_t capacity) {
  return explorer<kBug>(owner, thieves, capacity).explore();
}

void expect_right(const Exploration& done) {
  EXPECT_TRUE(done.complete) << done.violation << ": " << done.order;
  EXPECT_GT(done.runs, 10u);
}

TEST(Deque, EveryOrderOfOneThief) {
  expect_right(explore("Uuoo", {"ss"}, 4));
  expect_right(explore("UUouo", {"ss"}, 4));
  expect_right(explore("uouo", {"s"}, 1));
}

TEST(Deque, EveryOrderOfTwoThieves) {
  expect_right(explore("UUo", {"s", "s"}, 4));
  expect_right(explore("uo", {"s", "s"}, 1));
}

TEST(Deque, EveryOrderWhileItGrows) {
  expect_right(explore("Uuo", {"s"}, 1));
  expect_right(explore("UUuo", {"s"}, 2));
}

TEST(Deque, EveryOrderOfAThiefOfSeveral) {
  expect_right(explore("UUUUooo", {"m"}, 4));
  expect_right(explore("UUUUUoooo", {"m"}, 8));
  expect_right(explore("UUUUoouu", {"m"}, 4));
  expect_right(explore("UUUUu", {"m"}, 4));  // grows
  expect_right(explore("UUUUo", {"mm"}, 4));
}

TEST(Deque, EveryOrderOfAThiefOfSeveralAndAnother) {
  expect_right(explore("UUUUo", {"m", "s"}, 4));
  expect_right(explore("UUUUUo", {"m", "m"}, 8));
  expect_right(explore("UUUUooo", {"m", "s"}, 4));
  expect_right(explore("UUUUooo", {"m", "m"}, 4));
}

TEST(Deque, OrdersByChanceOfThievesOfSeveral) {
  for (const char* const owner : {"UUUUUooooo", "UUUUuuooouo", "UUUUUUoooouu"}) {
    const Exploration done =
        explorer<Bug::kNone>(owner, {"ms", "mm"}, 4).sample(1, sized(20'000, 2000));
    EXPECT_EQ(done.violation, "") << owner << ": " << done.order;
  }
}

TEST(Deque, PlantedBugsAreCaught) {
  EXPECT_EQ(explore<Bug::kPopWithoutFence>("UUo", {"ss"}, 4).violation, "gave an element to two");
  EXPECT_EQ(explore<Bug::kPopTakesLastFreely>("Uo", {"s"}, 4).violation, "gave an element to two");
  EXPECT_NE(explore<Bug::kStealReadsAfterClaim>("Uuu", {"s"}, 2).violation, "");
  EXPECT_EQ(explore<Bug::kPopIgnoresTaking>("UUUUooo", {"m"}, 4).violation,
            "gave an element to two");
  EXPECT_EQ(explore<Bug::kPopLooksAtTopFirst>("UUUUooo", {"m"}, 4).violation,
            "gave an element to two");
  EXPECT_EQ(explore<Bug::kPopTakesNearOnes>("UUUUooo", {"m"}, 4).violation,
            "gave an element to two");
  EXPECT_EQ(explore<Bug::kGrowthForgets>("Uuo", {"s"}, 1).violation, "dropped an element");
}

TEST(Deque, AgainstAnOrdinaryOne) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Deque<int, RealAtomics, 4> deque(1);
    std::deque<int*> oracle;
    std::vector<int> elements(500);
    for (int& element : elements) {
      if (random() % 3 != 0) {
        deque.push(&element);
        oracle.push_back(&element);
      } else if (random() % 2 == 0) {
        int* const wanted = oracle.empty() ? nullptr : oracle.back();
        if (wanted != nullptr) oracle.pop_back();
        ASSERT_EQ(deque.pop(), wanted) << "seed " << seed;
      } else if (random() % 8 == 0) {
        int* several[4] = {};
        const std::int64_t count = deque.steal_some(several);
        ASSERT_EQ(count, oracle.size() < 8 ? 0 : 4) << "seed " << seed;
        for (std::int64_t n = 0; n < count; ++n) {
          ASSERT_EQ(several[n], oracle.front()) << "seed " << seed;
          oracle.pop_front();
        }
      } else {
        int* const wanted = oracle.empty() ? nullptr : oracle.front();
        if (wanted != nullptr) oracle.pop_front();
        ASSERT_EQ(deque.steal(), wanted) << "seed " << seed;
      }
      ASSERT_EQ(deque.empty(), oracle.empty());
    }
  }
}

// The original's deque dropped what did not fit, without a word.
TEST(Deque, AMillionElementsWithoutADrop) {
  Deque<int> deque;
  std::vector<int> elements(sized(1'000'000, 50'000));
  for (int& element : elements) deque.push(&element);
  std::uint64_t taken = 0;
  while (int* element = deque.pop()) {
    ++*element;
    ++taken;
  }
  EXPECT_EQ(taken, elements.size());
}

TEST(Deque, ThievesAndOwnerUnderLoad) {
  constexpr int kElements = sized(20'000, 3000);
  Deque<int, RealAtomics, 4> deque(2);
  std::vector<int> elements(kElements);
  std::vector<std::atomic<int>> taken(kElements);
  std::atomic<bool> over{false};
  const auto take = [&](int* element) {
    // What the owner wrote before it pushed is there.
    EXPECT_EQ(*element, 1 + (element - elements.data()));
    taken[static_cast<std::size_t>(element - elements.data())].fetch_add(1);
  };
  std::vector<std::thread> thieves;
  for (int thief = 0; thief < 3; ++thief) {
    thieves.emplace_back([&] {
      while (!over.load()) {
        int* several[4] = {};
        const std::int64_t count = deque.steal_some(several);
        for (std::int64_t n = 0; n < count; ++n) take(several[n]);
        if (count > 0) continue;
        if (int* element = deque.steal()) {
          take(element);
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::mt19937 random(1);
  for (int index = 0; index < kElements; ++index) {
    elements[static_cast<std::size_t>(index)] = 1 + index;
    deque.push(&elements[static_cast<std::size_t>(index)]);
    // Now and then it takes nearly all that is there, close to the thieves.
    for (unsigned pops = random() % 16 == 0 ? 8 : random() % 2; pops > 0; --pops) {
      if (int* element = deque.pop()) take(element);
    }
  }
  while (int* element = deque.pop()) take(element);
  while (!deque.empty()) std::this_thread::yield();
  over.store(true);
  for (std::thread& thief : thieves) thief.join();
  for (const auto& times : taken) ASSERT_EQ(times.load(), 1);
}

// Whatever else comes and goes: the number stays while the oldest element does, and no longer.
TEST(Deque, NumbersTheOldestUntilItIsTaken) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Deque<int> deque(2);
    std::deque<int*> model;
    std::array<int, 64> elements{};
    EXPECT_EQ(deque.oldest(), kNothing);
    int* oldest = nullptr;
    std::int64_t number = kNothing;
    for (int& element : elements) {
      if (random() % 2 == 0) {
        deque.push(&element);
        model.push_back(&element);
      } else if (random() % 2 == 0) {
        int* const popped = deque.pop();
        EXPECT_EQ(popped, model.empty() ? nullptr : model.back());
        if (!model.empty()) model.pop_back();
      } else {
        int* const stolen = deque.steal();
        EXPECT_EQ(stolen, model.empty() ? nullptr : model.front());
        if (!model.empty()) model.pop_front();
      }
      if (oldest != nullptr) {
        const bool there = !model.empty() && model.front() == oldest;
        ASSERT_EQ(deque.top().load() == number, there);
      }
      oldest = model.empty() ? nullptr : model.front();
      number = deque.oldest();
      ASSERT_EQ(number == kNothing, model.empty());
    }
  }
}

}  // namespace
}  // namespace amasia::tasks
