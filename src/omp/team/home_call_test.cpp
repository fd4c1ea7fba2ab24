// SPDX-License-Identifier: Apache-2.0
// Threads that go on as other ones from the middle of a loop.
#include "omp/team/home_call.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <optional>

#include "omp/team/thread_job.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

// What the threads of a region note, by number.
struct Notes {
  explicit Notes(std::uint32_t threads) : ended_on(threads), numbers(threads), sums(threads) {}
  std::vector<std::uint32_t> ended_on, numbers;
  std::vector<double> sums;
  std::atomic<std::uint32_t> came{0};
  bool orderly = true;
};

std::uint32_t node_here() { return current_frame()->team->node().self().value; }

// The program's loop: without a call, with what it knows in registers. Its steps follow each other,
// so the sum is wrong where one is done twice, or not at all.
AMASIA_TEST_PROGRAM double go_on_from(double sum, int steps) {
  for (int i = 0; i < steps; ++i) sum = 0.999 * sum + 1.0 / (1 + i % 1000);
  return sum;
}

// A part of the origin's threads, and of the others', which are eight times as long.
double own_part(std::uint32_t node) {
  constexpr int kSteps = 5'000'000;  // some 25 ms
  double sum = 0;
  for (int part = 0; part < (node == 0 ? 1 : 8); ++part) sum = go_on_from(sum, kSteps);
  return sum;
}

void note_end(Notes& notes, double sum) {
  const ThreadFrame& frame = *current_frame();
  notes.sums[frame.global_id] = sum;
  notes.numbers[frame.global_id] = frame.global_id;
  notes.ended_on[frame.global_id] = node_here();
}

Team& team_here() { return *current_frame()->team; }

void loop_and_barrier(ThreadFrame&, void* const* words) {
  Notes& notes = *static_cast<Notes*>(words[0]);
  const double sum = own_part(node_here());
  ++notes.came;
  team_here().barrier_of_program(*current_frame(), &notes);
  if (notes.came != team_here().size()) notes.orderly = false;
  team_here().barrier(*current_frame());
  note_end(notes, sum);
}

void loop_only(ThreadFrame&, void* const* words) {
  note_end(*static_cast<Notes*>(words[0]), own_part(node_here()));
}

void add(void* to, void* from) {
  *static_cast<double*>(static_cast<void**>(to)[0]) +=
      *static_cast<double*>(static_cast<void**>(from)[0]);
}

template <bool nowait>
void loop_and_reduction(ThreadFrame& first, void* const* words) {
  double& result = *static_cast<double*>(words[1]);
  loop_only(first, words);
  ThreadFrame& frame = *current_frame();
  double own = frame.global_id + 1;
  void* list[1] = {&own};
  if (frame.team->reduce(frame, {list, add}, nowait)) {
    result += own;
    frame.team->reduce_end(frame, nowait);
  }
}

// The last thread gives all a value, and each has its sections.
void loop_and_value(ThreadFrame& first, void* const* words) {
  Notes& notes = *static_cast<Notes*>(words[0]);
  constexpr std::uint32_t kSections = 40;
  auto& executed = *static_cast<std::array<std::atomic<int>, kSections>*>(words[1]);
  first.team->begin_sections(first);
  const double sum = own_part(node_here());
  for (std::uint32_t section = 0; section < kSections;) {
    section = team_here().next_section(*current_frame(), kSections);
    if (section < kSections) ++executed[section];
  }
  std::optional<std::uint64_t> given;
  if (current_frame()->global_id + 1 == team_here().size()) given = 4711;
  if (team_here().barrier_with(*current_frame(), given) != 4711) notes.orderly = false;
  note_end(notes, sum);
}

// Iterations that each wait for the one before, of which the threads have one after the other. They
// wait, send, or are in the program when they are called.
struct Chain {
  std::uint64_t length = 0;
  int steps = 0;  // of an iteration; on other nodes than the origin so many times
  int times = 0;
  std::vector<std::uint64_t> order{};
  double sum = 0;
};

class HomeCallTest : public testing::TestWithParam<Shape> {
 protected:
  HomeCallTest()
      : job_(GetParam(), 32 * base::kKiB, 0, base::SharePolicy::kAuto,
             {.tick = 10 * base::kMillisecond, .insists = true}) {
    job_.move_threads();
  }
  std::uint32_t total() const { return GetParam().nodes * GetParam().threads; }
  std::uint64_t runs_come_home() { return job_.origin().region_records().at(0).runs_come_home; }
  void expect_all_done(const Notes& notes, bool at_home) {
    const double at_origin = own_part(0), elsewhere = own_part(1);
    for (std::uint32_t id = 0; id < total(); ++id) {
      EXPECT_EQ(notes.ended_on[id], at_home ? 0 : id / GetParam().threads);
      EXPECT_EQ(notes.numbers[id], id);
      EXPECT_EQ(notes.sums[id], id < GetParam().threads ? at_origin : elsewhere) << id;
    }
    EXPECT_TRUE(notes.orderly) << "a thread went past a barrier that others had not come to";
    EXPECT_EQ(runs_come_home(), at_home ? 1U : 0U);
  }
  // Two regions of two chains each, whose iterations are slow in the first and brief in the second:
  // of a chain's length so many have to come, in order. All threads end at home.
  void expect_in_order(Work slow, Work brief, std::uint64_t (*to_come)(std::uint64_t length)) {
    const std::pair<Work, Chain> regions[] = {
        {slow, {.length = 400, .steps = 50'000, .times = 20}},
        {brief, {.length = 200'000, .steps = 20, .times = 1}}};
    for (const auto& [work, kind] : regions) {
      Chain chain = kind, next{.length = 50, .steps = 10, .times = 1};
      Notes notes(total());
      ASSERT_TRUE(job_.run(work, {&notes, &chain, &next}).global());
      for (const Chain* it : {&chain, &next}) {
        ASSERT_EQ(it->order.size(), to_come(it->length));
        EXPECT_TRUE(std::ranges::is_sorted(it->order));
      }
      for (std::uint32_t id = 0; id < total(); ++id) EXPECT_EQ(notes.ended_on[id], 0U) << id;
    }
  }

  Job job_;
};

TEST_P(HomeCallTest, ThreadsGoOnAtHomeUpToTheNextBarrier) {
  Notes notes(total());
  ASSERT_TRUE(job_.run(loop_and_barrier, {&notes}).global());
  expect_all_done(notes, true);
}

TEST_P(HomeCallTest, ThreadsGoOnAtHomeUpToTheRegionsEnd) {
  Notes notes(total());
  ASSERT_TRUE(job_.run(loop_only, {&notes}).global());
  expect_all_done(notes, true);
}

// A library's function, in which the threads are nearly all the time, and which is left again after
// some hundred instructions.
[[gnu::noinline]] double in_library(double sum) {
  for (int i = 0; i < 50; ++i) sum = 0.999 * sum + 1.0 / (1 + i);
  return sum;
}
AMASIA_TEST_PROGRAM double mostly_in_library(double sum, int calls) {
  for (int call = 0; call < calls; ++call) sum = in_library(sum) + 1;
  return sum;
}

TEST_P(HomeCallTest, ThreadsGoOnAtHomeThatAreInALibraryWhenTheyAreCalled) {
  constexpr int kAtOrigin = 80'000, kElsewhere = 800'000;  // some 25 and 250 ms
  Notes notes(total());
  const auto work = [](ThreadFrame&, void* const* words) {
    note_end(*static_cast<Notes*>(words[0]),
             mostly_in_library(1, node_here() == 0 ? kAtOrigin : kElsewhere));
  };
  ASSERT_TRUE(job_.run(work, {&notes}).global());
  const double at_origin = mostly_in_library(1, kAtOrigin);
  const double elsewhere = mostly_in_library(1, kElsewhere);
  for (std::uint32_t id = 0; id < total(); ++id) {
    EXPECT_EQ(notes.ended_on[id], 0U) << id;
    EXPECT_EQ(notes.sums[id], id < GetParam().threads ? at_origin : elsewhere) << id;
  }
  EXPECT_EQ(runs_come_home(), 1U);
}

// Node 1 has little to do; the others need not wait for anything of it.
TEST_P(HomeCallTest, ANodeThatHasEndedTheRegionKeepsNobodyFromComingHome) {
  if (GetParam().nodes < 3) return;
  Notes notes(total());
  const auto work = [](ThreadFrame&, void* const* words) {
    const std::uint32_t node = node_here();
    note_end(*static_cast<Notes*>(words[0]), node == 1 ? 0 : own_part(node));
  };
  ASSERT_TRUE(job_.run(work, {&notes}).global());
  const double at_origin = own_part(0), elsewhere = own_part(2);
  for (std::uint32_t id = 0; id < total(); ++id) {
    const std::uint32_t node = id / GetParam().threads;
    EXPECT_EQ(notes.ended_on[id], node == 1 ? 1 : 0) << id;
    EXPECT_EQ(notes.numbers[id], id);
    EXPECT_EQ(notes.sums[id], node == 0 ? at_origin : node == 1 ? 0 : elsewhere) << id;
  }
  EXPECT_EQ(runs_come_home(), 1U);
  Notes again(total());
  job_.run(loop_only, {&again});
}

TEST_P(HomeCallTest, ThreadsGoOnAtHomeUpToAReduction) {
  for (const auto work : {loop_and_reduction<true>, loop_and_reduction<false>}) {
    Notes notes(total());
    double sum = 0;
    ASSERT_TRUE(job_.run(work, {&notes, &sum}).global());
    EXPECT_EQ(sum, total() * (total() + 1) / 2);
    for (std::uint32_t id = 0; id < total(); ++id) EXPECT_EQ(notes.ended_on[id], 0U);
  }
  for (const RegionRecord& record : job_.origin().region_records()) {
    EXPECT_EQ(record.runs_come_home, 1U);
  }
}

// Node 1 has reduced, and ended the region, when the others come home to the same reduction.
TEST_P(HomeCallTest, WhatANodeHasReducedBeforeCountsOnce) {
  if (GetParam().nodes < 3) return;
  Notes notes(total());
  double sum = 0;
  const auto work = [](ThreadFrame& first, void* const* words) {
    Notes& all = *static_cast<Notes*>(words[0]);
    if (node_here() != 1) return loop_and_reduction<true>(first, words);
    note_end(all, 0);
    double own = first.global_id + 1;
    void* list[1] = {&own};
    first.team->reduce(first, {list, add}, true);
  };
  ASSERT_TRUE(job_.run(work, {&notes, &sum}).global());
  EXPECT_EQ(sum, total() * (total() + 1) / 2);
  for (std::uint32_t id = 0; id < total(); ++id) {
    EXPECT_EQ(notes.ended_on[id], id / GetParam().threads == 1 ? 1U : 0U);
  }
  EXPECT_EQ(runs_come_home(), 1U);
}

TEST_P(HomeCallTest, WhatAThreadHasBegunGoesAlong) {
  Notes notes(total());
  std::array<std::atomic<int>, 40> executed{};
  ASSERT_TRUE(job_.run(loop_and_value, {&notes, &executed}).global());
  expect_all_done(notes, true);
  for (const auto& times : executed) EXPECT_EQ(times, 1);
}

constexpr std::uint64_t kIterations = 300, kChunk = 3;

// An iteration of a loop that is handed out; on other nodes than the origin it takes longer.
AMASIA_TEST_PROGRAM double iteration(double sum, std::uint32_t node) {
  return go_on_from(sum, node == 0 ? 50'000 : 1'000'000);  // some 0.25 and 5 ms
}

template <loops::ScheduleKind kind, bool monotonic, int region>
void loop_handed_out(ThreadFrame& first, void* const* words) {
  Notes& notes = *static_cast<Notes*>(words[0]);
  auto& executed = *static_cast<std::array<std::atomic<int>, kIterations>*>(words[1]);
  const std::uint32_t node = node_here();
  const LoopSite site{words[2], words[2]};
  first.team->node().work_sharing()->begin(first, {0, 1, kIterations}, {kind, kChunk, monotonic},
                                           site);
  std::uint64_t last = 0;
  double sum = 0;
  for (;;) {
    loops::Iterations range;
    if (!team_here().node().work_sharing()->next(*current_frame(), range)) break;
    if (monotonic && range.begin < last) notes.orderly = false;
    last = range.end;
    for (std::uint64_t i = range.begin; i < range.end; ++i) {
      sum = iteration(sum, node);
      ++executed[i];
    }
  }
  if (sum == 0) notes.sums[current_frame()->global_id] = 1;
  notes.numbers[current_frame()->global_id] = current_frame()->global_id;
  notes.ended_on[current_frame()->global_id] = node_here();
}

// Each iteration once; and in a second region the same loop, which all nodes have to begin with the
// same knowledge of the first one.
template <loops::ScheduleKind kind, bool monotonic>
void expect_once(Job& job, std::uint32_t threads) {
  const char site = 0;
  for (const auto work :
       {loop_handed_out<kind, monotonic, 0>, loop_handed_out<kind, monotonic, 1>}) {
    Notes notes(threads);
    std::array<std::atomic<int>, kIterations> executed{};
    ASSERT_TRUE(job.run(work, {&notes, &executed, const_cast<char*>(&site)}).global());
    for (const auto& times : executed) ASSERT_EQ(times, 1);
    EXPECT_TRUE(notes.orderly);
    for (std::uint32_t id = 0; id < threads; ++id) EXPECT_EQ(notes.numbers[id], id);
  }
}

TEST_P(HomeCallTest, ThreadsGoOnOutOfALoopThatIsHandedOut) {
  using Kind = loops::ScheduleKind;
  expect_once<Kind::kDynamic, true>(job_, total());
  expect_once<Kind::kGuided, false>(job_, total());
  expect_once<Kind::kAwf, true>(job_, total());
  expect_once<Kind::kHetProbeI, false>(job_, total());
  const auto records = job_.origin().region_records();
  const auto came_home = [](const RegionRecord& record) { return record.runs_come_home > 0; };
  EXPECT_GE(std::ranges::count_if(records, came_home), 1) << "of " << records.size();
}

// What is left of a loop takes far longer than it has taken when the others are called: they hold
// as long as the origin gets on.
TEST_P(HomeCallTest, TheOriginMayTakeLongForWhatIsHandedOut) {
  const auto work = [](ThreadFrame& first, void* const* words) {
    WorkSharing& loops = *first.team->node().work_sharing();
    loops.begin(first, {0, 1, kIterations}, {loops::ScheduleKind::kDynamic, 1}, nullptr);
    for (loops::Iterations range;
         team_here().node().work_sharing()->next(*current_frame(), range);) {
      const double sum = go_on_from(0, node_here() == 0 ? 1'000'000 : 30'000'000);
      *static_cast<std::atomic<int>*>(words[0]) += sum > 0 ? 1 : 0;
    }
  };
  std::atomic<int> executed{0};
  base::set_log_level(base::LogLevel::kDebug);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(job_.run(work, {&executed}).global());
  const std::string told = testing::internal::GetCapturedStderr();
  base::set_log_level(base::LogLevel::kWarning);
  EXPECT_EQ(executed, static_cast<int>(kIterations));
  EXPECT_EQ(runs_come_home(), 1U);
  EXPECT_EQ(told.find("stopped in vain"), std::string::npos) << told;
}

Doacross& doacross_here() { return *team_here().node().doacross(); }

void follow(Chain& chain) {
  const loops::Space space{0, 1, chain.length};
  doacross_here().begin(*current_frame(), {&space, 1});
  team_here().node().work_sharing()->begin(*current_frame(), space,
                                           {loops::ScheduleKind::kStatic, 1}, nullptr);
  for (loops::Iterations range;
       team_here().node().work_sharing()->next(*current_frame(), range);) {
    const auto own = static_cast<std::int64_t>(range.begin);
    const std::int64_t before = own - 1;
    doacross_here().wait(*current_frame(), {&before, 1});
    chain.sum = go_on_from(chain.sum, chain.steps * (node_here() == 0 ? 1 : chain.times));
    chain.order.push_back(range.begin);
    doacross_here().post(*current_frame(), {&own, 1});
  }
  doacross_here().end(*current_frame());
}

// Each `region` is one of its own: one that has come home once begins there.
template <int region>
void two_chains(ThreadFrame&, void* const* words) {
  Notes& notes = *static_cast<Notes*>(words[0]);
  follow(*static_cast<Chain*>(words[1]));
  team_here().barrier(*current_frame());
  follow(*static_cast<Chain*>(words[2]));
  note_end(notes, 0);
}

TEST_P(HomeCallTest, ThreadsGoOnOutOfADoacrossLoop) {
  expect_in_order(two_chains<0>, two_chains<1>, [](std::uint64_t length) { return length; });
}

// The same by an ordered part of each iteration. In some turns threads go on without one.
void follow_in_turn(Chain& chain) {
  const loops::Space space{0, 1, chain.length};
  team_here().node().turns()->begin(*current_frame(), space, {loops::ScheduleKind::kDynamic, 2},
                                    nullptr);
  for (loops::Iterations range; team_here().node().turns()->next(*current_frame(), range);) {
    for (std::uint64_t i = range.begin; i < range.end; ++i) {
      if (i % 7 == 6) continue;
      team_here().node().turns()->enter(*current_frame());
      chain.sum = go_on_from(chain.sum, chain.steps * (node_here() == 0 ? 1 : chain.times));
      chain.order.push_back(i);
      team_here().node().turns()->leave(*current_frame());
    }
  }
}

template <int region>
void two_ordered(ThreadFrame&, void* const* words) {
  Notes& notes = *static_cast<Notes*>(words[0]);
  follow_in_turn(*static_cast<Chain*>(words[1]));
  team_here().barrier(*current_frame());
  follow_in_turn(*static_cast<Chain*>(words[2]));
  note_end(notes, 0);
}

TEST_P(HomeCallTest, ThreadsGoOnOutOfAnOrderedLoop) {
  expect_in_order(two_ordered<0>, two_ordered<1>,
                  [](std::uint64_t length) { return length - length / 7; });
}

// Threads that have a lock of a few nearly all the time, or wait for one.
struct Counters {
  static constexpr std::size_t kCounters = 4;
  int times = 0, steps = 0;
  std::array<std::uint64_t, kCounters> counts{};
  double sum = 0;
};

LockService& locks_here() { return *team_here().node().locks(); }

template <int region>
void count_with_locks(ThreadFrame&, void* const* words) {
  constexpr LockKey kLocks = 1 << 20;
  Counters& all = *static_cast<Counters*>(words[1]);
  const int times = all.times * (team_here().on_origin() ? 1 : 4);
  for (int i = 0; i < times; ++i) {
    const LockKey counter = static_cast<LockKey>(i) % Counters::kCounters;
    locks_here().acquire(kLocks + 64 * counter);
    all.counts[counter] += go_on_from(1, all.steps) > 0 ? 1 : 0;
    locks_here().release(kLocks + 64 * counter);
  }
  note_end(*static_cast<Notes*>(words[0]), 0);
}

TEST_P(HomeCallTest, ThreadsGoOnThatUseLocksAllTheTime) {
  const Counters slow{.times = 100, .steps = 100'000}, brief{.times = 20'000, .steps = 20};
  const std::pair<Work, Counters> regions[] = {{count_with_locks<0>, slow},
                                               {count_with_locks<1>, brief}};
  const std::uint64_t away = GetParam().nodes - 1;
  for (const auto& [work, kind] : regions) {
    Counters counters = kind;
    Notes notes(total());
    ASSERT_TRUE(job_.run(work, {&notes, &counters}).global());
    const auto each = static_cast<std::uint64_t>(kind.times) / Counters::kCounters;
    for (const std::uint64_t count : counters.counts) {
      EXPECT_EQ(count, each * GetParam().threads * (1 + 4 * away));
    }
    // The brief ones may be done before they are called.
    const bool is_home = std::ranges::all_of(notes.ended_on, [](auto node) { return node == 0; });
    EXPECT_TRUE(is_home || kind.steps == brief.steps);
  }
}

// One of each node: where it has ended the region it keeps no other node's.
TEST_P(HomeCallTest, AThreadThatHasALockKeepsItsNodeFromGoing) {
  Notes notes(total());
  const auto locked = [](ThreadFrame& frame, void* const* words) {
    if (node_here() != 0 && frame.local_id == 0) ++frame.locks_held;
    loop_only(frame, words);
  };
  ASSERT_TRUE(job_.run(locked, {&notes}).global());
  expect_all_done(notes, false);
}

// The origin's threads have been to a construct that the others have yet to come to.
TEST_P(HomeCallTest, NobodyGoesWhoIsNotAsFarAsTheOrigin) {
  Notes notes(total());
  std::atomic<int> singles{0};
  const auto work = [](ThreadFrame& frame, void* const* words) {
    Notes& all = *static_cast<Notes*>(words[0]);
    const double sum = own_part(node_here());
    if (frame.team->single(frame)) ++*static_cast<std::atomic<int>*>(words[1]);
    frame.team->barrier(frame);
    note_end(all, sum);
  };
  ASSERT_TRUE(job_.run(work, {&notes, &singles}).global());
  expect_all_done(notes, false);
  EXPECT_EQ(singles, 1);
}

// A sleep is not cut short.
TEST_P(HomeCallTest, AThreadThatSleepsIsLeftAlone) {
  static std::atomic<int> cut_short;
  cut_short = 0;
  Notes notes(total());
  const auto sleeps = [](ThreadFrame&, void* const* words) {
    const timespec time{.tv_sec = 0, .tv_nsec = 150'000'000};
    if (node_here() != 0 && ::nanosleep(&time, nullptr) != 0) ++cut_short;
    note_end(*static_cast<Notes*>(words[0]), own_part(0));
  };
  ASSERT_TRUE(job_.run(sleeps, {&notes}).global());
  EXPECT_EQ(cut_short, 0);
}

TEST_P(HomeCallTest, ThreadsThatAreNotInTheProgramStay) {
  Notes notes(total());
  const auto in_a_library = [](ThreadFrame&, void* const* words) {
    if (node_here() != 0) compute(200 * base::kMillisecond);
    static_cast<Notes*>(words[0])->ended_on[current_frame()->global_id] = node_here();
  };
  ASSERT_TRUE(job_.run(in_a_library, {&notes}).global());
  EXPECT_EQ(runs_come_home(), 0U);
}

[[gnu::noinline]] void set_error(int error) { errno = error; }
[[gnu::noinline]] int get_error() { return errno; }

TEST_P(HomeCallTest, ErrnoGoesAlong) {
  job_.let_keep_own_addresses();
  Notes notes(total());
  const auto work = [](ThreadFrame& frame, void* const* words) {
    set_error(40 + static_cast<int>(frame.global_id));
    const double sum = own_part(node_here());
    Notes& all = *static_cast<Notes*>(words[0]);
    if (get_error() != 40 + static_cast<int>(current_frame()->global_id)) all.orderly = false;
    note_end(all, sum);
  };
  ASSERT_TRUE(job_.run(work, {&notes}).global());
  expect_all_done(notes, true);
}

TEST_P(HomeCallTest, AThreadThatKeepsTheAddressOfItsErrnoStays) {
  job_.let_keep_own_addresses();
  Notes notes(total());
  const auto work = [](ThreadFrame&, void* const* words) {
    int* volatile own = &errno;
    const double sum = own_part(node_here());
    *own = 7;
    Notes& all = *static_cast<Notes*>(words[0]);
    if (get_error() != 7) all.orderly = false;
    note_end(all, sum);
  };
  ASSERT_TRUE(job_.run(work, {&notes}).global());
  expect_all_done(notes, false);
}

AMASIA_TEST_PROGRAM void await_flag(const std::atomic<std::uint32_t>& flag, std::uint32_t value) {
  while (flag.load(std::memory_order_acquire) < value) {
  }
}

// The same by a library's function, in which the thread is nearly all the time.
[[gnu::noinline]] std::uint32_t look_in_library(const std::atomic<std::uint32_t>& flag) {
  for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
  return flag.load(std::memory_order_acquire);
}
AMASIA_TEST_PROGRAM void await_flag_by_calls(const std::atomic<std::uint32_t>& flag,
                                             std::uint32_t value) {
  while (look_in_library(flag) < value) {
  }
}

// Who holds does not set the flags that the origin's threads look at, by the function in `words`.
void await_and_meet(ThreadFrame& first, void* const* words) {
  auto& set = *static_cast<std::atomic<std::uint32_t>*>(words[1]);
  const auto await = reinterpret_cast<decltype(&await_flag)>(words[2]);
  const auto away = first.team->size() - first.team->shares()[0].threads;
  const double sum = own_part(node_here());
  if (first.team->on_origin() && !current_frame()->is_guest) {
    await(set, away);
  } else {
    ++set;
  }
  Notes& all = *static_cast<Notes*>(words[0]);
  ++all.came;
  team_here().barrier_of_program(*current_frame(), &all);
  if (all.came != team_here().size()) all.orderly = false;
  double own = current_frame()->global_id + 1;
  void* list[1] = {&own};
  if (team_here().reduce(*current_frame(), {list, add}, false)) {
    if (own != team_here().size() * (team_here().size() + 1) / 2) all.orderly = false;
    team_here().reduce_end(*current_frame(), false);
  }
  note_end(all, sum);
}

// There the origin's threads take the others in.
TEST_P(HomeCallTest, TheOriginMayWaitForAFlag) {
  Notes notes(total());
  std::atomic<std::uint32_t> flags{0};
  const auto await = reinterpret_cast<void*>(await_flag);
  ASSERT_TRUE(job_.run(await_and_meet, {&notes, &flags, await}).global());
  expect_all_done(notes, true);
  Notes again(total());
  ASSERT_TRUE(job_.run(loop_only, {&again}).global()) << "the next region is as any other";
}

TEST_P(HomeCallTest, TheOriginMayWaitForAFlagByCalls) {
  Notes notes(total());
  std::atomic<std::uint32_t> flags{0};
  const auto await = reinterpret_cast<void*>(await_flag_by_calls);
  ASSERT_TRUE(job_.run(await_and_meet, {&notes, &flags, await}).global());
  expect_all_done(notes, true);
}

// Node 1 has ended the region, so it passes no barrier that those who come would miss it at.
TEST_P(HomeCallTest, TheOriginMayWaitForAFlagOfSomeNodes) {
  if (GetParam().nodes < 3) return;
  Notes notes(total());
  std::atomic<std::uint32_t> flags{0};
  const auto work = [](ThreadFrame& first, void* const* words) {
    auto& set = *static_cast<std::atomic<std::uint32_t>*>(words[1]);
    const std::uint32_t node = node_here();
    const std::uint32_t away = first.team->size() - 2 * first.team->shares()[0].threads;
    const double sum = node == 1 ? 0 : own_part(node);
    if (node == 0) await_flag(set, away);
    if (node > 1) ++set;
    note_end(*static_cast<Notes*>(words[0]), sum);
  };
  ASSERT_TRUE(job_.run(work, {&notes, &flags}).global());
  for (std::uint32_t id = 0; id < total(); ++id) {
    EXPECT_EQ(notes.ended_on[id], id / GetParam().threads == 1 ? 1U : 0U) << id;
  }
  EXPECT_EQ(runs_come_home(), 1U);
}

// A lock of ours that a thread of the origin has is not asked about by those who come.
TEST_P(HomeCallTest, TheOriginTakesNobodyInWhereAThreadOfItsHasSomethingOpen) {
  Notes notes(total());
  std::atomic<std::uint32_t> flags{0};
  const auto work = [](ThreadFrame& frame, void* const* words) {
    auto& set = *static_cast<std::atomic<std::uint32_t>*>(words[1]);
    const auto away = frame.team->size() - frame.team->shares()[0].threads;
    const double sum = own_part(node_here());
    const bool at_home = node_here() == 0;
    if (at_home && frame.local_id == 0) ++frame.locks_held;
    if (at_home) await_flag(set, away);
    if (at_home && frame.local_id == 0) --frame.locks_held;
    if (!at_home) ++set;
    note_end(*static_cast<Notes*>(words[0]), sum);
  };
  ASSERT_TRUE(job_.run(work, {&notes, &flags}).global());
  expect_all_done(notes, false);
}

// Nodes hold for as long as the loop has taken, and go on, and are called again, while the origin
// computes. Whenever they are taken in, nothing is lost.
TEST_P(HomeCallTest, TheOriginMayTakeLong) {
  Notes notes(total());
  const auto work = [](ThreadFrame&, void* const* words) {
    note_end(*static_cast<Notes*>(words[0]), own_part(1) + own_part(1));
  };
  ASSERT_TRUE(job_.run(work, {&notes}).global());
  const double all = own_part(1) + own_part(1);
  for (std::uint32_t id = 0; id < total(); ++id) EXPECT_EQ(notes.sums[id], all) << id;
}

INSTANTIATE_TEST_SUITE_P(Shapes, HomeCallTest,
                         testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 2}, Shape{2, 1, 2},
                                         Shape{3, 2, 3}, Shape{4, 1, 2}));

}  // namespace
}  // namespace amasia::omp
