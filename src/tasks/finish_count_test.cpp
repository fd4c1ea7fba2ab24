// SPDX-License-Identifier: Apache-2.0
#include "tasks/finish_count.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "tasks/interleavings.hpp"
#include "tasks/test_size.hpp"

namespace amasia::tasks {
namespace {

using model::Exploration;
using model::Explorer;
using model::ModelAtomics;
using model::Trial;

// An owner opens a scope and creates tasks; each lies in a slot that one participant takes. A task
// may create one more. Said to be over must be the scope once, and when no task is left.
template <Bug kBug>
struct Shared {
  using Atomics = ModelAtomics<kBug>;
  FinishCount<Atomics> count;
  // 0: no task yet, 1: a task that creates none, 2: one that creates one, in the next slot; 3:
  // taken
  std::array<typename Atomics::template Atomic<std::uint32_t>, 3> slots;
  int created = 0, ended = 0, said_over = 0;
  std::string wrong;

  void create(std::size_t slot, std::uint32_t what) {
    ++created;
    slots[slot].store(what, std::memory_order_release);
  }
  std::uint32_t take(std::size_t slot) {
    std::uint32_t what = slots[slot].load(std::memory_order_acquire);
    if (what == 0 || what == 3) return 0;
    return slots[slot].compare_exchange_strong(what, 3, std::memory_order_acq_rel,
                                               std::memory_order_relaxed)
               ? what
               : 0;
  }
  // What it adds to the participant's sum.
  std::int64_t execute(std::size_t slot, std::uint32_t what) {
    std::int64_t net = 0;
    if (what == 2) {
      create(slot + 1, 1);
      ++net;
    }
    ++ended;
    return net - 1;
  }
  void touch() {
    if (said_over != 0) wrong = "touched when it was over";
  }
  void over() {
    if (++said_over > 1) wrong = "said twice to be over";
    if (ended != created) wrong = "said to be over while a task is left";
  }
};

template <Bug kBug>
void work(Shared<kBug>& shared, std::size_t slot) {
  const std::uint32_t what = shared.take(slot);
  if (what == 0) return;
  if (kBug == Bug::kWorksWithoutEntering) {
    const std::int64_t made = shared.execute(slot, what) + 1;
    if (made != 0 && shared.count.add(-1)) shared.over();
    if (shared.count.add(made != 0 ? made : -1)) shared.over();
    return;
  }
  shared.touch();
  shared.count.enter();
  const std::int64_t net = shared.execute(slot, what);
  const bool last = shared.count.leave(net);
  shared.touch();
  if (last) shared.over();
}

template <Bug kBug = Bug::kNone>
Exploration explore(std::uint32_t first, std::uint32_t second, int thieves, bool owner_helps) {
  return Explorer([=](Trial& run) {
           auto shared = std::make_shared<Shared<kBug>>();
           run.add_thread([=] {
             std::int64_t net = 0;
             shared->create(0, first);
             ++net;
             if (second != 0) {
               shared->create(1, second);
               ++net;
             }
             if (owner_helps) {
               if (const std::uint32_t what = shared->take(0)) net += shared->execute(0, what);
             }
             if (shared->count.is_quiet(net)) return shared->over();
             if (shared->count.leave(net)) shared->over();
           });
           for (int thief = 0; thief < thieves; ++thief) {
             run.add_thread([=] {
               for (std::size_t slot = 0; slot < 3; ++slot) work(*shared, slot);
             });
           }
           run.at_end([=]() -> std::string {
             if (!shared->wrong.empty()) return shared->wrong;
             // Thieves may have come too early: then tasks are left, and it must not be over.
             if (shared->ended == shared->created && shared->said_over == 0) return "never over";
             return "";
           });
         })
      .explore();
}

void expect_right(const Exploration& done) {
  EXPECT_TRUE(done.complete) << done.violation << ": " << done.order;
  EXPECT_GT(done.runs, 10u);
}

TEST(FinishCount, EveryOrder) {
  expect_right(explore(1, 0, 1, true));
  expect_right(explore(1, 1, 1, true));
  expect_right(explore(2, 0, 1, false));
  expect_right(explore(2, 0, 1, true));
  expect_right(explore(2, 0, 2, true));
}

TEST(FinishCount, PlantedBugsAreCaught) {
  EXPECT_NE(explore<Bug::kWorksWithoutEntering>(2, 0, 1, false).violation, "");
  EXPECT_NE(explore<Bug::kLeavesInTwoSteps>(2, 0, 2, false).violation, "");
  EXPECT_NE(explore<Bug::kOwnerIgnoresOthers>(2, 0, 2, false).violation, "");
}

TEST(FinishCount, OneWhoIsToldOnlyCountsWithoutEntering) {
  FinishCount<> count;
  EXPECT_FALSE(count.is_quiet(1));
  EXPECT_FALSE(count.leave(1));
  EXPECT_TRUE(count.add(-1));
}

TEST(FinishCount, ManyParticipantsUnderLoad) {
  constexpr int kThreads = 4, kRounds = sized(5000, 500);
  FinishCount<> count;
  std::atomic<int> over{0};
  std::vector<std::thread> threads;
  // The tasks' last effects must be seen by who ends the scope.
  std::array<int, kThreads> effects{};
  for (int thread = 0; thread < kThreads; ++thread) count.enter();
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::int64_t net = 0;
      for (int round = 0; round < kRounds; ++round) {
        count.enter();
        EXPECT_FALSE(count.leave(round % 2 == 0 ? 1 : -1));
        ++net;
        --net;
      }
      effects[static_cast<std::size_t>(thread)] = 1;
      if (count.leave(net)) over.fetch_add(effects[0] + effects[1] + effects[2] + effects[3]);
    });
  }
  if (count.leave(0)) over.fetch_add(effects[0] + effects[1] + effects[2] + effects[3]);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(over.load(), kThreads);
}

}  // namespace
}  // namespace amasia::tasks
