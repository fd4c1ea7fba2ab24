// SPDX-License-Identifier: Apache-2.0
// Which regions are carried across nodes, and what they take along.
#include <gtest/gtest.h>

#include "omp/team/thread_job.hpp"

namespace amasia::omp {
namespace {

void nothing(ThreadFrame&, void* const*) {}

TEST(Plan, SaysWhyARegionStays) {
  Job job({2, 2});
  const auto reason = [&](std::uint32_t threads = 0) {
    return job.run(nothing, {}, threads).reason;
  };
  EXPECT_EQ(reason(), SingleReason::kNone);
  EXPECT_EQ(reason(1), SingleReason::kOneThread);
  EXPECT_EQ(reason(2), SingleReason::kFitsOneNode);
  EXPECT_EQ(reason(3), SingleReason::kNone);
  job.services().late_ = true;
  EXPECT_EQ(reason(), SingleReason::kLateLibrary);
  job.services().late_ = false;
  EXPECT_EQ(job.run(nothing, std::vector<void*>(kMaxRegionWords + 1)).reason,
            SingleReason::kManyArguments);
  enter_serialized();
  EXPECT_EQ(reason(), SingleReason::kNested);
  leave_serialized();
  EXPECT_EQ(reason(), SingleReason::kNone);
  const auto records = job.origin().region_records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].runs, 7u);
  EXPECT_EQ(records[0].runs_single, 4u);
}

// A thread of another node has not got what copyin gave to the origin's.
TEST(Plan, RegionsAfterCopyinStayWithTheThreadprivateValues) {
  Job job({2, 2});
  thread_local int here = 0;
  EXPECT_EQ(job.run(nothing, {}).reason, SingleReason::kNone);
  EXPECT_EQ(job.run(nothing, {&here}).reason, SingleReason::kThreadLocal);
  EXPECT_EQ(job.run(nothing, {}).reason, SingleReason::kAfterCopyin);
  EXPECT_EQ(job.run(nothing, {}, 2).reason, SingleReason::kFitsOneNode);
}

TEST(Plan, RegionsStayWithMemoryThatOthersCannotReach) {
  Job job({2, 2});
  static int own = 0;
  int shared = 0;
  EXPECT_EQ(job.run(nothing, {&shared}).reason, SingleReason::kNone);
  job.services().private_ = &own;
  EXPECT_EQ(job.run(nothing, {&shared, &own}).reason, SingleReason::kPrivateMemory);
  EXPECT_EQ(job.run(nothing, {&shared}).reason, SingleReason::kNone);
  job.services().own_mappings_ = true;
  EXPECT_EQ(job.run(nothing, {&shared}).reason, SingleReason::kOwnMappings);
  job.services().own_mappings_ = false;
  EXPECT_EQ(job.run(nothing, {&shared}).reason, SingleReason::kNone);
}

TEST(Plan, AJobOfOneNodeKeepsMoreThreadsThanItHasCores) {
  Job job({1, 2});
  EXPECT_EQ(job.run(nothing, {}, 3).reason, SingleReason::kFitsOneNode);
}

TEST(Plan, OneRegionRunsAcrossNodesAtATime) {
  Job job({2, 1});
  RegionRequest request;
  request.outlined = {reinterpret_cast<void*>(nothing), {}};
  const RegionPlan first = job.origin().plan_region(request);
  ASSERT_TRUE(first.global());
  EXPECT_EQ(job.origin().plan_region(request).reason, SingleReason::kConcurrent);
  job.origin().run_region(request, first);
  EXPECT_TRUE(job.run(nothing, {}).global());
}

// The first region loses half a second by being shared: the second one may not find out, too.
TEST(Plan, PutsOffTriesOnceTheseHaveCostMuch) {
  Job job({2, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
  job.services().kind_ = ThreadLocals::Kind::kNone;
  const RegionPlan first = job.run(
      [](ThreadFrame& frame, void* const*) {
        if (frame.global_id == 0) return compute(base::kMillisecond);
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
      },
      {});
  EXPECT_TRUE(first.global());
  const RegionPlan second = job.run(nothing, {});
  EXPECT_EQ(second.reason, SingleReason::kPutOff);
  EXPECT_EQ(second.threads, 1u) << "one for each core of the origin";
}

// Loops of schedule(runtime), once: then they are static ones, as they are where somebody has said
// so.
TEST(Plan, LetsLoopsAskThatNobodyHasSetAtFirst) {
  const auto work = [](ThreadFrame&, void* const*) { compute(base::kMillisecond); };
  Job job({2, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
  job.services().kind_ = ThreadLocals::Kind::kNone;
  EXPECT_EQ(job.run(work, {}).reentry, Reentry::kAsks);
  EXPECT_EQ(job.run(work, {}).reentry, Reentry::kNever);
  Job set({2, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
  set.services().kind_ = ThreadLocals::Kind::kNone;
  set.origin().note_schedule_set();
  EXPECT_EQ(set.run(work, {}).reentry, Reentry::kNever);
}

// And some times more, when it is known what it takes alone.
RegionPlan run_until_dearer(Job& job, std::uint32_t threads) {
  RegionPlan plan;
  for (int run = 0; run < 50 && plan.reason != SingleReason::kDearer; ++run) {
    plan = job.run(nothing, {}, threads);
  }
  EXPECT_EQ(plan.reason, SingleReason::kDearer);
  for (int run = 0; run < 10; ++run) plan = job.run(nothing, {}, threads);
  return plan;
}

// A team of threads that find variables again has its size; others go by the origin's cores.
TEST(Plan, KeepsTeamsWhoseThreadsMayUseTheirVariables) {
  for (const bool use : {false, true}) {
    Job job({3, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
    job.services().kind_ = ThreadLocals::Kind::kMovable;
    job.runtime().reached_.uses_thread_locals = use;
    EXPECT_EQ(run_until_dearer(job, 0).threads, use ? 0U : 1U);
  }
}

// A program that says how large its teams are finds them so where it could tell, or might wait.
TEST(Plan, KeepsTeamsOfASizeThatTheProgramGaveAndCanTell) {
  for (const Reentry code : {Reentry::kNever, Reentry::kAsks, Reentry::kPlain, Reentry::kReduces}) {
    for (const bool asks : {false, true}) {
      for (const std::uint32_t threads : {0U, 3U}) {
        Job job({3, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
        job.services().kind_ = ThreadLocals::Kind::kNone;
        job.runtime().reentry_ = code;
        job.runtime().reached_.asks_for_numbers = asks;
        if (threads == 0) job.origin().fix_team_size();
        const RegionPlan plan = run_until_dearer(job, threads);
        const bool tells = asks || code == Reentry::kNever || code == Reentry::kAsks;
        EXPECT_EQ(plan.threads, tells ? threads : 1U);
        EXPECT_FALSE(plan.stands_in());
      }
    }
  }
}

// However brief: where threads wait for each other one cannot do the part of another.
TEST(Plan, KeepsTeamsWhoseThreadsAreSeenToWait) {
  for (const Reentry code : {Reentry::kPlain, Reentry::kReduces, Reentry::kNumbered}) {
    Job job({3, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
    job.services().kind_ = ThreadLocals::Kind::kNone;
    job.runtime().reentry_ = code;
    job.runtime().reached_.waits = true;
    job.origin().fix_team_size();
    EXPECT_EQ(job.run(nothing, {}).reentry, Reentry::kNever);
    const RegionPlan plan = run_until_dearer(job, 0);
    EXPECT_EQ(plan.threads, 0U);
    EXPECT_FALSE(plan.stands_in());
  }
}

TEST(Plan, KeepsTeamsWhoseRegionsAreNotBrief) {
  for (const Reentry code : {Reentry::kPlain, Reentry::kNumbered}) {
    Job job({3, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
    job.services().kind_ = ThreadLocals::Kind::kNone;
    job.runtime().reentry_ = code;
    job.origin().fix_team_size();
    EXPECT_EQ(run_until_dearer(job, 0).reason, SingleReason::kDearer);
    RegionRequest request;
    request.outlined = {reinterpret_cast<void*>(nothing), {}};
    RegionPlan plan = job.origin().plan_region(request);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // as if it waited
    if (plan.stands_in()) {
      job.origin().run_here(request, plan);
    } else {
      job.origin().finish_single(plan);
    }
    plan = job.run(nothing, {});
    EXPECT_EQ(plan.reason, SingleReason::kDearer);
    EXPECT_EQ(plan.threads, 0U);
    EXPECT_FALSE(plan.stands_in());
  }
}

std::atomic<int> executions{0};

// On the origin its cores' threads stand in for them all, one after the other.
TEST(Plan, LetsThreadsStandInForATeamOfASizeThatTheProgramGave) {
  Job job({3, 2}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
  job.services().kind_ = ThreadLocals::Kind::kNone;
  job.runtime().reentry_ = Reentry::kNumbered;
  job.origin().fix_team_size();
  const Work count = [](ThreadFrame& frame, void* const*) {
    ++executions;
    EXPECT_EQ(frame.team->size(), frame.team->shares().size() * 2);
  };
  RegionPlan plan;
  for (int run = 0; run < 100 && !plan.stands_in(); ++run) {
    executions = 0;
    plan = job.run(count, {});
  }
  ASSERT_TRUE(plan.stands_in());
  EXPECT_EQ(plan.reason, SingleReason::kDearer);
  EXPECT_EQ(plan.numbered.threads, 6U);
  EXPECT_TRUE(plan.numbered.stay);
  EXPECT_EQ(executions, 2) << "one for each core";
  // Another region finds the team.
  EXPECT_TRUE(job.run(nothing, {}).global());
}

// What only a library keeps binds threads to their nodes once one of them has kept anything.
TEST(Plan, RegionsMayStayUntilAThreadElsewhereHasChangedWhatCannotMove) {
  Job job({3, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
  job.watch_variables();
  job.runtime().reached_.uses_thread_locals = true;
  EXPECT_EQ(run_until_dearer(job, 0).threads, 1U) << "nobody can tell yet";
  job.change_variables(2);
  const Work other = [](ThreadFrame&, void* const*) { compute(base::kMicrosecond); };
  ASSERT_TRUE(job.run(other, {}).global()) << "it is new";
  for (int run = 0; run < 50; ++run) {
    EXPECT_TRUE(job.run(nothing, {}).global());
    EXPECT_TRUE(job.run(other, {}).global());
  }
}

TEST(Plan, RegionsStayOnceOneThatStayedHasChangedWhatCannotMove) {
  Job job({3, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
  job.watch_variables();
  run_until_dearer(job, 0);
  job.origin().look_at_values();
  EXPECT_TRUE(job.origin().watches_values()) << "it has changed none";
  job.services().changed_ = true;
  job.origin().look_at_values();
  EXPECT_FALSE(job.origin().watches_values());
  EXPECT_EQ(job.run(nothing, {}).reason, SingleReason::kAfterChange);
}

class PlanByNumbers : public testing::Test {
 protected:
  PlanByNumbers() {
    job_.services().kind_ = ThreadLocals::Kind::kNone;
    job_.runtime().reentry_ = Reentry::kNumbered;
    job_.runtime().idle_ = IdleThread{.iterations = 1000};
  }
  RegionPlan run() { return job_.run(work, {}); }
  static void work(ThreadFrame&, void* const*) { compute(20 * base::kMillisecond); }

  Job job_{{2, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto};
};

TEST_F(PlanByNumbers, HandsThemOutAtFirstAndLetsThemStayThen) {
  const RegionPlan first = run();
  EXPECT_EQ(first.reentry, Reentry::kNumbered);
  EXPECT_EQ(first.numbered.threads, 128u);
  EXPECT_FALSE(first.numbered.stay);
  const RegionPlan second = run();
  EXPECT_EQ(second.reentry, Reentry::kNumbered);
  EXPECT_TRUE(second.numbered.stay);
}

TEST_F(PlanByNumbers, EndsOnceAThreadWithoutIterationsChangesAnything) {
  run();
  job_.runtime().idle_.reset();
  EXPECT_EQ(run().reentry, Reentry::kNever);
  job_.runtime().idle_ = IdleThread{.iterations = 1000};
  EXPECT_EQ(run().reentry, Reentry::kNever) << "its data are where threads have them by now";
}

TEST_F(PlanByNumbers, IsOfNoUseToReductionsThatRunAgain) {
  job_.runtime().idle_->reduces = true;
  const RegionPlan first = run();
  EXPECT_EQ(first.numbered.threads, 64u) << "each part moves a page";
  EXPECT_EQ(run().reentry, Reentry::kNever);
}

TEST_F(PlanByNumbers, NeedsIterationsForEach) {
  job_.runtime().idle_->iterations = 100;
  EXPECT_EQ(run().numbered.threads, 100u);
  Job another({2, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
  another.runtime().reentry_ = Reentry::kNumbered;
  another.runtime().idle_ = IdleThread{.iterations = 31};
  EXPECT_EQ(another.run(work, {}).reentry, Reentry::kNever);
}

// What it took counts, and while other programs have the cores that is more.
TEST(PlanOfBriefRegions, IsNotByNumbers) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    Job job({2, 1}, 32 * base::kKiB, 0, base::SharePolicy::kAuto);
    job.services().kind_ = ThreadLocals::Kind::kNone;
    job.runtime().reentry_ = Reentry::kNumbered;
    job.runtime().idle_ = IdleThread{.iterations = 1000};
    EXPECT_EQ(job.run(nothing, {}).reentry, Reentry::kNumbered);
    if (job.origin().region_records().at(0).elapsed_ns > 2 * base::kMillisecond) continue;
    EXPECT_EQ(job.run(nothing, {}).reentry, Reentry::kNever);
    return;
  }
  GTEST_SKIP() << "other programs have the cores";
}

TEST(Plan, IcvsReachTheOtherNodes) {
  Job job({2, 1});
  job.run(nothing, {});
  job.runtime().icvs_.schedule_kind = 3;
  job.runtime().icvs_.schedule_chunk = 11;
  job.runtime().icvs_.dynamic = 1;
  job.run(
      [](ThreadFrame& frame, void* const*) {
        const Icvs icvs = frame.team->runtime().icvs();
        EXPECT_EQ(icvs.schedule_kind, 3);
        EXPECT_EQ(icvs.schedule_chunk, 11);
        EXPECT_EQ(icvs.nested_threads, 2);
        EXPECT_EQ(icvs.dynamic, 1);
      },
      {});
  EXPECT_EQ(job.runtime().icvs().dynamic, 1);
}

TEST(Plan, TheAffinityFormatReachesTheOtherNodes) {
  Job job({1, 1});
  job.run(nothing, {});
  job.origin().affinity_format().set("%n of %N");
  job.run(
      [](ThreadFrame& frame, void* const*) {
        if (frame.global_id == 0) return;  // the program has set it there itself
        const auto& runtime = static_cast<const ThreadRuntime&>(frame.team->runtime());
        EXPECT_EQ(runtime.affinity_format(), "%n of %N");
      },
      {});
}

// Threads of other nodes would only be in each other's way on the origin's cores.
TEST(Plan, TeamsAreTheOriginsWhereNothingIsToBeShared) {
  Job never({3, 2}, 32 * base::kKiB, 0, base::SharePolicy::kNever);
  Job always({3, 2});
  for (const Abi abi : {Abi::kKmpc, Abi::kGomp}) {
    EXPECT_EQ(never.origin().default_threads(abi), 2u);
    EXPECT_EQ(always.origin().default_threads(abi), 6u);
  }
}

}  // namespace
}  // namespace amasia::omp
