// SPDX-License-Identifier: Apache-2.0
// Whole teams of threads on several nodes.
#include "omp/team/team.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "omp/team/thread_job.hpp"

namespace amasia::omp {
namespace {

class Teams : public testing::TestWithParam<Shape> {
 protected:
  std::uint32_t nodes() const { return GetParam().nodes; }
  std::uint32_t total() const { return GetParam().nodes * GetParam().threads; }
};

// Leaders count in the first run of a region, which finds out about its nodes, and not in those in
// which nothing is left to be found out.
TEST_P(Teams, CountWhileNodesAreFoundOutAboutOnly) {
  constexpr std::array kEvents = {os::PerfEvent::kTaskClock};
  if (!os::PerfGroup::open(kEvents).ok()) GTEST_SKIP() << "no performance events here";
  Job job(GetParam());
  const auto run = [&job] {
    job.run([](ThreadFrame&, void* const*) { compute(100 * base::kMicrosecond); }, {});
    return job.origin().region_records().at(0).counted;
  };
  const auto first = run(), second = run(), third = run();
  for (std::uint32_t id = 0; id < nodes(); ++id) {
    EXPECT_GE(first[id].cache_misses, 100u * base::kMicrosecond) << "node " << id;
    EXPECT_EQ(third[id].cache_misses, second[id].cache_misses) << "node " << id;
  }
}

// The last node may use a hundredth of a core: it has used its CPU time for long.
TEST_P(Teams, ANodeWithALimitOfCpuTimeIsBusyForAsLongAsThatTakes) {
  Job job(GetParam(), 32 * base::kKiB, 0.01);
  job.run([](ThreadFrame&, void* const*) { compute(base::kMillisecond); }, {});
  const Samples samples = job.origin().region_records().at(0).samples;
  EXPECT_GE(samples.nodes[nodes() - 1].time(), 90 * base::kMillisecond * GetParam().threads);
}

TEST_P(Teams, ShowEachThreadOnItsNodeWhereTheForkAsksForIt) {
  Job job(GetParam());
  for (const bool shows : {false, true, false}) {
    job.run([](ThreadFrame&, void* const*) {}, {}, 0, {}, shows);
  }
  for (std::uint32_t thread = 0; thread < total(); ++thread) {
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      const std::uint32_t expected = node == thread / GetParam().threads ? 1 : 0;
      EXPECT_EQ(job.runtime(node).times_shown(thread), expected) << thread << " on node " << node;
    }
  }
}

// Each node's run of iterations ends where the next one's begins; in the first execution, of which
// nothing is known yet, between pages.
TEST_P(Teams, AgreeOnWhereTheyMeet) {
  constexpr std::uint64_t kEach = 5000, kPage = 512;
  Job job(GetParam());
  std::vector<loops::Iterations> shares(total());
  for (int run = 0; run < 3; ++run) {
    job.run(
        [](ThreadFrame& frame, void* const* words) {
          auto& all = *static_cast<std::vector<loops::Iterations>*>(words[0]);
          const std::uint64_t count = kEach * frame.team->shares().size();
          all[frame.global_id] = frame.team->static_share(frame, {.count = count});
        },
        {&shares});
    std::uint64_t next = 0;
    for (std::uint32_t thread = 0; thread < total(); ++thread) {
      EXPECT_EQ(shares[thread].begin, next) << "run " << run;
      next = shares[thread].end;
    }
    EXPECT_EQ(next, kEach * nodes());
    for (std::uint32_t node = 0; run == 0 && node < nodes(); ++node) {
      EXPECT_EQ(shares[node * GetParam().threads].begin % kPage, 0u) << "node " << node;
    }
  }
}

TEST_P(Teams, NumberAllThreadsAndPassWordsAndExtra) {
  Job job(GetParam());
  std::vector<std::atomic<int>> seen(total());
  const std::byte extra[2] = {std::byte{4}, std::byte{2}};
  for (int run = 0; run < 20; ++run) {
    const auto plan = job.run(
        [](ThreadFrame& frame, void* const* words) {
          auto& counts = *static_cast<std::vector<std::atomic<int>>*>(words[1]);
          EXPECT_EQ(words[0], reinterpret_cast<void*>(7));
          EXPECT_EQ(frame.team->size(), counts.size());
          EXPECT_EQ(frame.team->extra().size(), 2u);
          EXPECT_EQ(frame.team->extra()[1], std::byte{2});
          EXPECT_EQ(current_frame(), &frame);
          EXPECT_EQ(current_node(), &frame.team->node());
          std::byte local{};
          EXPECT_TRUE(&local >= frame.stack_low && &local < frame.stack_top);
          counts[frame.global_id].fetch_add(1);
        },
        {reinterpret_cast<void*>(7), &seen}, 0, extra);
    ASSERT_TRUE(plan.global());
  }
  for (const auto& count : seen) EXPECT_EQ(count.load(), 20);
  EXPECT_EQ(current_frame(), nullptr);
  const auto records = job.origin().region_records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].runs, 20u);
  EXPECT_EQ(records[0].nodes, nodes());
  EXPECT_EQ(records[0].faults, 20u * total());
  EXPECT_GE(records[0].stall_ns, 200 * total());
}

TEST_P(Teams, WriteTheOutputOfAllNodesBeforeTheRegionEnds) {
  Job job(GetParam());
  std::atomic<std::uint32_t> flushes{0};
  job.count_flushes(flushes);
  job.run(
      [](ThreadFrame& frame, void* const*) {
        if (!frame.team->on_origin()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      },
      {});
  EXPECT_EQ(job.services().seen_by_origin_, nodes() - 1);
}

TEST_P(Teams, BarriersKeepAllThreadsTogether) {
  Job job(GetParam());
  std::atomic<std::uint32_t> arrivals{0};
  job.run(
      [](ThreadFrame& frame, void* const* words) {
        auto& count = *static_cast<std::atomic<std::uint32_t>*>(words[0]);
        for (std::uint32_t round = 1; round <= 50; ++round) {
          count.fetch_add(1);
          frame.team->barrier(frame);
          EXPECT_EQ(count.load(), round * frame.team->size());
          frame.team->barrier(frame);
        }
      },
      {&arrivals});
}

TEST_P(Teams, OneThreadExecutesASingleAndCopiesPrivately) {
  Job job(GetParam());
  std::atomic<int> winners{0};
  job.run(
      [](ThreadFrame& frame, void* const* words) {
        auto& count = *static_cast<std::atomic<int>*>(words[0]);
        for (int round = 0; round < 30; ++round) {
          int value = -1;
          const bool mine = frame.team->single(frame);
          if (mine) {
            value = round;
            count.fetch_add(1);
          }
          frame.team->copy_private(
              frame, {&value},
              [](void* to, void* from) { *static_cast<int*>(to) = *static_cast<int*>(from); },
              mine);
          EXPECT_EQ(value, round);
        }
      },
      {&winners});
  EXPECT_EQ(winners.load(), 30);
}

thread_local int given_number;
thread_local std::string given_text;

TEST_P(Teams, ThreadLocalCopiesReachOtherNodesThroughSharedMemory) {
  Job job(GetParam());
  job.manage_all_but_thread_locals();
  std::atomic<bool> thread_local_given{false};
  job.run(
      [](ThreadFrame& frame, void* const* words) {
        for (int round = 0; round < 10; ++round) {
          int* target = nullptr;
          void* list[] = {&given_number, &given_text, &target, words[0]};
          const bool mine = frame.team->single(frame);
          if (mine) {
            given_number = round;
            given_text = "round " + std::to_string(round);  // short: it points into itself
            target = &given_number;  // who takes can see on which thread it was
          }
          frame.team->copy_private(
              frame, {list, std::size(list)},
              [](void* to, void* from) {
                void** const target_list = static_cast<void**>(to);
                void** const source = static_cast<void**>(from);
                *static_cast<int*>(target_list[0]) = *static_cast<int*>(source[0]);
                *static_cast<std::string*>(target_list[1]) = *static_cast<std::string*>(source[1]);
                *static_cast<int**>(target_list[2]) = *static_cast<int**>(source[2]);
                const bool same_node = source[0] == *static_cast<int**>(source[2]);
                if (same_node) static_cast<std::atomic<bool>*>(target_list[3])->store(true);
              },
              mine);
          EXPECT_EQ(given_number, round);
          EXPECT_EQ(given_text, "round " + std::to_string(round));
        }
      },
      {&thread_local_given});
  // Only threads of the giver's own node may see its thread-local memory.
  if (GetParam().threads == 1) {
    EXPECT_FALSE(thread_local_given.load());
  }
}

TEST_P(Teams, WhatGccGivesReachesOtherNodesThroughSharedMemory) {
  // As its code has it: a scalar by value, the others by address.
  struct Given {
    int* number;
    std::string* text;
    int round;
    std::uintptr_t own;  // the giver's address of the number, not to be known as an address
  };
  Job job(GetParam());
  job.manage_all_but_thread_locals();
  job.run([](ThreadFrame& frame, void* const*) {
    for (int round = 0; round < 10; ++round) {
      const bool mine = frame.team->single(frame);
      Given given{&given_number, &given_text, round,
                  ~reinterpret_cast<std::uintptr_t>(&given_number)};
      if (mine) {
        given_number = round;
        given_text = "round " + std::to_string(round);
      }
      auto* const taken =
          static_cast<Given*>(frame.team->give_or_take(frame, mine ? &given : nullptr));
      // Threads of the giver's node read its variables, others an image.
      const bool own = ~reinterpret_cast<std::uintptr_t>(taken->number) == taken->own;
      if (mine) {
        EXPECT_EQ(taken, &given);
      } else if (frame.team->local_size() == 1) {
        EXPECT_FALSE(own);
      }
      if (!mine) {
        given_number = *taken->number;
        given_text = *taken->text;
      }
      EXPECT_EQ(taken->round, round);
      EXPECT_EQ(given_number, round);
      EXPECT_EQ(given_text, "round " + std::to_string(round));
      frame.team->barrier(frame);
    }
  }, {});
}

TEST(GivenCopies, RefusesPointersToThreadLocals) {
  thread_local int* pointer = nullptr;
  const auto give = [] {
    const auto network = fabric::make_loopback(1);
    TestServices services(network->fabric(base::kOrigin));
    services.thread_locals_unmanaged_ = true;
    pointer = reinterpret_cast<int*>(&pointer);
    const GivenCopies given(services, {&pointer});
    given.take(services, {&pointer},
               [](void* to, void* from) { *static_cast<int**>(to) = *static_cast<int**>(from); });
  };
  EXPECT_DEATH(give(), "copyprivate has copied a pointer to a thread-local");
}

TEST_P(Teams, ThreadsGoPastSinglesThatOthersWaitIn) {
  Job job(GetParam());
  std::atomic<std::uint32_t> inside{0};
  job.run(
      [](ThreadFrame& frame, void* const* words) {
        auto& count = *static_cast<std::atomic<std::uint32_t>*>(words[0]);
        // As many singles as threads: each thread executes one, and waits in it for all others.
        for (std::uint32_t i = 0; i < frame.team->size(); ++i) {
          if (!frame.team->single(frame)) continue;
          count.fetch_add(1);
          while (count.load() % frame.team->size() != 0) std::this_thread::yield();
        }
      },
      {&inside});
  EXPECT_EQ(inside.load(), total());
}

// Order matters to this one: the result tells in which order the copies were combined.
void append_digits(void* to_list, void* from_list) {
  auto& to = *static_cast<std::uint64_t*>(static_cast<void**>(to_list)[0]);
  const auto from = *static_cast<std::uint64_t*>(static_cast<void**>(from_list)[0]);
  to = to * 31 + from;
  auto& size = *static_cast<std::uint64_t*>(static_cast<void**>(to_list)[2]);
  EXPECT_EQ(static_cast<void**>(to_list)[1], reinterpret_cast<void*>(3));
  EXPECT_EQ(static_cast<void**>(from_list)[1], reinterpret_cast<void*>(3));
  size += *static_cast<std::uint64_t*>(static_cast<void**>(from_list)[2]);
}

struct Reduced {
  std::uint64_t order = 0;
  std::uint64_t sum = 0;
};

template <bool nowait>
void reduce_twenty_times(ThreadFrame& frame, void* const* words) {
  auto& result = *static_cast<Reduced*>(words[0]);
  auto& heap = *static_cast<std::vector<std::uint64_t>*>(words[1]);
  for (std::uint64_t round = 0; round < 20; ++round) {
    alignas(64) std::uint64_t order = frame.global_id + 1;
    // One copy in the frame, one size instead of an address, one copy elsewhere.
    heap[frame.global_id] = frame.global_id + round;
    void* list[3] = {&order, reinterpret_cast<void*>(3), &heap[frame.global_id]};
    if (frame.team->reduce(frame, {list, append_digits}, nowait)) {
      EXPECT_EQ(frame.global_id, 0u);
      result.order = order;
      result.sum += heap[0];
      frame.team->reduce_end(frame, nowait);
    }
    order = 999;  // a copy may be reused at once
    heap[frame.global_id] = 999;
  }
}

TEST_P(Teams, ReductionsCombineInTheOrderOfThreads) {
  std::uint64_t order = 0, sum = 0;
  for (std::uint64_t id = 0; id < total(); ++id) sum += 20 * id + 190;
  // Node by node: threads of a node first, then the nodes' results.
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    std::uint64_t own = 0;
    for (std::uint32_t id = 0; id < GetParam().threads; ++id) {
      own = own * 31 + node * GetParam().threads + id + 1;
    }
    order = node == 0 ? own : order * 31 + own;
  }
  for (const Bytes window : {Bytes{32 * base::kKiB}, Bytes{0}}) {
    for (const Work work : {reduce_twenty_times<true>, reduce_twenty_times<false>}) {
      Job job(GetParam(), window);
      Reduced result;
      std::vector<std::uint64_t> heap(total());
      job.run(work, {&result, &heap});
      EXPECT_EQ(result.order, order) << "window " << window;
      EXPECT_EQ(result.sum, sum) << "window " << window;
    }
  }
}

TEST_P(Teams, SectionsGoToOneThreadEach) {
  Job job(GetParam());
  std::vector<std::atomic<int>> runs(7);
  job.run(
      [](ThreadFrame& frame, void* const* words) {
        auto& counts = *static_cast<std::vector<std::atomic<int>>*>(words[0]);
        frame.team->begin_sections(frame);
        for (std::uint32_t section; (section = frame.team->next_section(frame, 7)) < 7;) {
          counts[section].fetch_add(1);
        }
        EXPECT_EQ(frame.team->next_section(frame, 7), 7u);
      },
      {&runs});
  for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
}

struct Cancelling {
  static constexpr std::uint32_t kSteps = 6;
  std::uint32_t step;    // in which
  std::uint32_t thread;  // who cancels
  std::array<std::atomic<std::uint32_t>, kSteps> passed{};
};

TEST_P(Teams, ACancelledRegionEndsForAllAtTheSameBarrier) {
  const auto [nodes, threads, host] = GetParam();
  Job job(GetParam());
  job.allow_cancelling();
  for (std::uint32_t round = 0; round < 40; ++round) {
    Cancelling cancelling{round % Cancelling::kSteps, round * 7 % (nodes * threads)};
    job.run(
        [](ThreadFrame& frame, void* const* words) {
          auto& about = *static_cast<Cancelling*>(words[0]);
          Team& team = *frame.team;
          for (std::uint32_t step = 0; step < Cancelling::kSteps; ++step) {
            if (step == about.step && frame.global_id == about.thread) {
              EXPECT_TRUE(team.cancel(frame, Cancels::kParallel));
              return;
            }
            if (frame.global_id % 2 == 0 && team.cancellation_point(frame, Cancels::kParallel)) {
              EXPECT_EQ(step, about.step);
              return;
            }
            if (team.barrier_or_cancelled(frame)) return;
            about.passed[step].fetch_add(1);
          }
        },
        {&cancelling});
    for (std::uint32_t step = 0; step < Cancelling::kSteps; ++step) {
      EXPECT_EQ(cancelling.passed[step], step < cancelling.step ? nodes * threads : 0) << step;
    }
  }
}

TEST_P(Teams, ACancelledConstructIsThatOneOnly) {
  Job job(GetParam());
  job.allow_cancelling();
  for (int round = 0; round < 10; ++round) {
    job.run(
        [](ThreadFrame& frame, void* const*) {
          Team& team = *frame.team;
          for (std::uint32_t step = 0; step < 6; ++step) {
            const bool cancels = step % 2 == 0;
            if (cancels && frame.global_id == step % team.size()) {
              EXPECT_TRUE(team.cancel(frame, Cancels::kWorkshare));
            }
            // Whoever waits to hear of it does.
            while (cancels && !team.cancellation_point(frame, Cancels::kWorkshare)) {
              std::this_thread::yield();
            }
            EXPECT_EQ(team.cancellation_point(frame, Cancels::kWorkshare), cancels);
            EXPECT_FALSE(team.cancellation_point(frame, Cancels::kParallel));
            EXPECT_FALSE(team.barrier_or_cancelled(frame));
          }
        },
        {});
  }
}

TEST_P(Teams, NothingIsCancelledWhereThatIsOff) {
  Job job(GetParam());
  job.run(
      [](ThreadFrame& frame, void* const*) {
        EXPECT_FALSE(frame.team->cancel(frame, Cancels::kParallel));
        EXPECT_FALSE(frame.team->cancellation_point(frame, Cancels::kParallel));
        EXPECT_FALSE(frame.team->barrier_or_cancelled(frame));
      },
      {});
}

INSTANTIATE_TEST_SUITE_P(Shapes, Teams,
                         testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 1}, Shape{3, 2},
                                         Shape{4, 1}, Shape{5, 2}, Shape{2, 1, 2}, Shape{3, 2, 3},
                                         Shape{5, 1, 5}, Shape{4, 1, 2}, Shape{5, 2, 3}));

}  // namespace
}  // namespace amasia::omp
