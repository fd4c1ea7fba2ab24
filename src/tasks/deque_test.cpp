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

// What the owner does, a letter a call: u push, o pop; U push before the thieves begin. Each
// element is to be had once, by somebody; what nobody took is still there at the end.
template <Bug kBug>
struct Shared {
  explicit Shared(std::int64_t capacity) : deque(capacity) {}
  Deque<int, ModelAtomics<kBug>> deque;
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
};

template <Bug kBug = Bug::kNone>
Exploration explore(const std::string& owner, int thieves, int steals, std::int64_t capacity) {
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
           for (int thief = 0; thief < thieves; ++thief) {
             run.add_thread([shared, steals] {
               for (int n = 0; n < steals; ++n) shared->take(shared->deque.steal());
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
         })
      .explore();
}

void expect_right(const Exploration& done) {
  EXPECT_TRUE(done.complete) << done.violation << ": " << done.order;
  EXPECT_GT(done.runs, 10u);
}

TEST(Deque, EveryOrderOfOneThief) {
  expect_right(explore("Uuoo", 1, 2, 4));
  expect_right(explore("UUouo", 1, 2, 4));
  expect_right(explore("uouo", 1, 1, 1));
}

TEST(Deque, EveryOrderOfTwoThieves) {
  expect_right(explore("UUo", 2, 1, 4));
  expect_right(explore("uo", 2, 1, 1));
}

TEST(Deque, EveryOrderWhileItGrows) {
  expect_right(explore("Uuo", 1, 1, 1));
  expect_right(explore("UUuo", 1, 1, 2));
}

TEST(Deque, PlantedBugsAreCaught) {
  EXPECT_EQ(explore<Bug::kPopWithoutFence>("UUo", 1, 2, 4).violation, "gave an element to two");
  EXPECT_EQ(explore<Bug::kPopTakesLastFreely>("Uo", 1, 1, 4).violation, "gave an element to two");
  EXPECT_NE(explore<Bug::kStealReadsAfterClaim>("Uuu", 1, 1, 2).violation, "");
  EXPECT_EQ(explore<Bug::kGrowthForgets>("Uuo", 1, 1, 1).violation, "dropped an element");
}

TEST(Deque, AgainstAnOrdinaryOne) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Deque<int> deque(1);
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
  Deque<int> deque(2);
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
    if (random() % 3 == 0) {
      if (int* element = deque.pop()) take(element);
    }
  }
  while (int* element = deque.pop()) take(element);
  while (!deque.empty()) std::this_thread::yield();
  over.store(true);
  for (std::thread& thief : thieves) thief.join();
  for (const auto& times : taken) ASSERT_EQ(times.load(), 1);
}

}  // namespace
}  // namespace amasia::tasks
