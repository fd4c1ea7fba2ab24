// SPDX-License-Identifier: Apache-2.0
#include "tasks/waiter_list.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "tasks/interleavings.hpp"

namespace amasia::tasks {
namespace {

using model::Exploration;
using model::Explorer;
using model::ModelAtomics;
using model::Trial;

struct Node {
  Node* next = nullptr;
  int woken = 0;
};

// Each waiter links itself, or learns that the word is set; the value is there in both cases.
template <Bug kBug>
struct Shared {
  WaiterList<Node, ModelAtomics<kBug>> list;
  typename ModelAtomics<kBug>::template Atomic<int> value{0};
  std::array<Node, 3> nodes;
  std::array<int, 3> told{};
  std::string wrong;
};

template <Bug kBug = Bug::kNone>
Exploration explore(int waiters) {
  return Explorer([=](Trial& run) {
           auto shared = std::make_shared<Shared<kBug>>();
           run.add_thread([shared] {
             if (kBug != Bug::kValueAfterSet) shared->value.store(7, std::memory_order_relaxed);
             for (Node* node = shared->list.set(); node != nullptr; node = node->next) {
               ++node->woken;
             }
             if (kBug == Bug::kValueAfterSet) shared->value.store(7, std::memory_order_relaxed);
           });
           for (int waiter = 0; waiter < waiters; ++waiter) {
             run.add_thread([shared, waiter] {
               const auto index = static_cast<std::size_t>(waiter);
               if (shared->list.add(&shared->nodes[index])) return;
               ++shared->told[index];
               if (!shared->list.is_set()) shared->wrong = "is_set() disagrees";
               if (shared->value.load(std::memory_order_relaxed) != 7) {
                 shared->wrong = "told before the value is there";
               }
             });
           }
           run.at_end([shared, waiters]() -> std::string {
             if (!shared->wrong.empty()) return shared->wrong;
             for (int waiter = 0; waiter < waiters; ++waiter) {
               const auto index = static_cast<std::size_t>(waiter);
               const int heard = shared->nodes[index].woken + shared->told[index];
               if (heard == 0) return "a waiter waits for ever";
               if (heard > 1) return "a waiter was told twice";
             }
             return "";
           });
         })
      .explore();
}

TEST(WaiterList, EveryOrder) {
  for (const int waiters : {1, 2, 3}) {
    const Exploration done = explore(waiters);
    EXPECT_TRUE(done.complete) << done.violation << ": " << done.order;
  }
}

TEST(WaiterList, PlantedBugsAreCaught) {
  EXPECT_EQ(explore<Bug::kSetLeavesLateWaiters>(1).violation, "a waiter waits for ever");
  EXPECT_EQ(explore<Bug::kAddWithoutLooking>(1).violation, "a waiter waits for ever");
  EXPECT_EQ(explore<Bug::kValueAfterSet>(1).violation, "told before the value is there");
}

TEST(WaiterList, WaitersComeOutInTheirOrder) {
  WaiterList<Node> list;
  std::array<Node, 4> nodes;
  EXPECT_FALSE(list.is_set());
  for (Node& node : nodes) EXPECT_TRUE(list.add(&node));
  Node* next = list.set();
  for (Node& node : nodes) {
    ASSERT_EQ(next, &node);
    next = node.next;
  }
  EXPECT_EQ(next, nullptr);
  EXPECT_TRUE(list.is_set());
  EXPECT_FALSE(list.add(&nodes[0]));
}

TEST(WaiterList, ManyWaitersUnderLoad) {
  for (int round = 0; round < 200; ++round) {
    WaiterList<Node> list;
    int value = 0;
    std::array<Node, 4> nodes;
    std::atomic<int> told{0};
    std::vector<std::thread> waiters;
    for (Node& node : nodes) {
      waiters.emplace_back([&] {
        if (list.add(&node)) return;
        EXPECT_EQ(value, round);
        told.fetch_add(1);
      });
    }
    value = round;
    int woken = 0;
    for (Node* node = list.set(); node != nullptr; node = node->next) ++woken;
    for (std::thread& waiter : waiters) waiter.join();
    ASSERT_EQ(woken + told.load(), 4);
  }
}

}  // namespace
}  // namespace amasia::tasks
