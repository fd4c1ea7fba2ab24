// SPDX-License-Identifier: Apache-2.0
// Threads that go on as other ones in the middle of a region.
#include "omp/team/homecoming.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "loops/loops.hpp"
#include "omp/team/thread_job.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

using std::chrono::milliseconds;

constexpr int kRounds = 40;

// What the threads of a region note, by number.
struct Notes {
  explicit Notes(std::uint32_t threads)
      : began_on(threads), ended_on(threads), numbers(threads), sums(threads), shares(threads) {}
  std::vector<std::uint32_t> began_on, ended_on;  // nodes
  std::vector<std::uint32_t> numbers;             // at the end
  std::vector<double> sums;
  std::vector<std::vector<loops::Iterations>> shares;
  std::atomic<std::uint32_t> singles{0}, came{0};
  bool orderly = true;
};

std::uint32_t node_here() { return current_frame()->team->node().self().value; }

// Apart, since it looks at errno, whose address is not to be kept in the loop.
[[gnu::noinline]] void sleep_a_while() { std::this_thread::sleep_for(milliseconds(12)); }

// A time loop inside of a region. The origin's threads wait most of the time, so the region loses.
void time_loop(ThreadFrame& first, void* const* words) {
  Notes& notes = *static_cast<Notes*>(words[0]);
  const std::uint32_t id = first.global_id;
  notes.began_on[id] = node_here();
  double sum = 0;  // in this stack and its registers
  for (int round = 0; round < kRounds; ++round) {
    ThreadFrame& frame = *current_frame();
    const loops::Space space{0, 1, 1000};
    notes.shares[id].push_back(frame.team->static_share(frame, space));
    sum += id + round;
    if (frame.team->node().self() != base::kOrigin) sleep_a_while();
    if (frame.team->single(frame)) ++notes.singles;
    ++notes.came;
    frame.team->barrier_of_program(frame, &notes);
    const std::uint32_t all = current_frame()->team->size();
    if (notes.came.load() < static_cast<std::uint32_t>(round + 1) * all) notes.orderly = false;
    current_frame()->team->barrier(*current_frame());
  }
  notes.sums[id] = sum;
  notes.numbers[id] = current_frame()->global_id;
  notes.ended_on[id] = node_here();
}

// As time_loop, then combines all threads' numbers.
void add(void* to, void* from) {
  *static_cast<double*>(static_cast<void**>(to)[0]) +=
      *static_cast<double*>(static_cast<void**>(from)[0]);
}
void reducing_loop(ThreadFrame& first, void* const* words) {
  double& result = *static_cast<double*>(words[1]);
  time_loop(first, words);
  ThreadFrame& frame = *current_frame();
  double own = frame.global_id + 1;
  void* list[1] = {&own};
  if (frame.team->reduce(frame, {list, add}, false)) {
    result += own;
    frame.team->reduce_end(frame, false);
  }
}

class Homecoming : public testing::TestWithParam<Shape> {
 protected:
  Homecoming() : job_(GetParam(), 32 * base::kKiB, 0, base::SharePolicy::kAuto) {
    job_.move_threads();
  }
  std::uint32_t total() const { return GetParam().nodes * GetParam().threads; }
  std::uint64_t runs_come_home() {
    return job_.origin().region_records().at(0).runs_come_home;
  }
  void expect_all_done(const Notes& notes, bool at_home) {
    for (std::uint32_t id = 0; id < total(); ++id) {
      EXPECT_EQ(notes.began_on[id], id / GetParam().threads);
      EXPECT_EQ(notes.ended_on[id], at_home ? 0 : id / GetParam().threads);
      EXPECT_EQ(notes.numbers[id], id);
      EXPECT_EQ(notes.sums[id], kRounds * id + kRounds * (kRounds - 1) / 2);
      for (const loops::Iterations& share : notes.shares[id]) {
        EXPECT_EQ(share, notes.shares[id][0]) << "as promised within a region, thread " << id;
      }
    }
    EXPECT_EQ(notes.singles.load(), static_cast<std::uint32_t>(kRounds));
    EXPECT_TRUE(notes.orderly) << "a thread went past a barrier that others had not come to";
  }

  Job job_;
};

TEST_P(Homecoming, ThreadsGoOnAtHome) {
  Notes notes(total());
  double sum = 0;
  const RegionPlan plan = job_.run(reducing_loop, {&notes, &sum});
  ASSERT_TRUE(plan.global());
  expect_all_done(notes, true);
  EXPECT_EQ(sum, total() * (total() + 1) / 2);
  EXPECT_EQ(runs_come_home(), 1u);
  // Then it is known better, and the nodes are there for others.
  Notes again(total());
  EXPECT_EQ(job_.run(reducing_loop, {&again, &sum}).reason, SingleReason::kDearer);
}

// The origin's part of the work is small. While it waits for the others it would have to do theirs.
template <int attempt>
void others_compute(ThreadFrame& first, void* const* words) {
  auto& computed = *static_cast<std::atomic<Nanos>*>(words[0]);
  auto& passed = *static_cast<std::atomic<Nanos>*>(words[1]);
  for (int round = 0; round < 120; ++round) {
    if (current_frame()->team->node().self() != base::kOrigin) {
      const Nanos begin = os::monotonic_now();
      compute(3 * base::kMillisecond);
      computed += 3 * base::kMillisecond;
      passed += os::monotonic_now() - begin;
    }
    // As it should: if they do not stay, the test is to fail and not to hang.
    current_frame()->team->barrier_of_program(*current_frame(), &first);
  }
}

// Time for which other programs have the cores is lost, too: then once more, as another region.
TEST_P(Homecoming, StaysWhileTheOthersCompute) {
  const double others = total() - GetParam().threads;
  const double layers = std::max(1.0, others / std::max(1U, std::thread::hardware_concurrency()));
  for (const Work work : {others_compute<0>, others_compute<1>, others_compute<2>,
                          others_compute<3>, others_compute<4>}) {
    std::atomic<Nanos> computed{0}, passed{0};
    // No further one is tried once tries have lost enough.
    const bool is_shared = job_.run(work, {&computed, &passed}).global();
    ASSERT_TRUE(is_shared || work != others_compute<0>);
    if (!is_shared) break;
    if (job_.origin().region_records().back().runs_come_home == 0) return;
    const double slower = static_cast<double>(passed) / static_cast<double>(computed.load());
    ASSERT_GT(slower, 1.1 * layers) << "they came home, with the machine to themselves";
  }
  GTEST_SKIP() << "other programs have the cores";
}

TEST_P(Homecoming, AThreadThatHasALockStays) {
  static std::uint32_t holder;
  holder = total() - 1;
  Notes notes(total());
  const auto locked = [](ThreadFrame& frame, void* const* words) {
    if (frame.global_id == holder) ++frame.locks_held;
    time_loop(frame, words);
  };
  EXPECT_TRUE(job_.run(locked, {&notes}).global());
  expect_all_done(notes, false);
  EXPECT_EQ(runs_come_home(), 0u);
}

TEST_P(Homecoming, AThreadThatKeepsTheAddressOfItsErrnoStays) {
  for (const bool keeps : {false, true}) {
    Job job(GetParam(), 32 * base::kKiB, 0, base::SharePolicy::kAuto);
    job.move_threads();
    job.let_keep_own_addresses();
    Notes notes(total());
    const auto work = [](ThreadFrame& frame, void* const* words) {
      int* volatile own = words[1] != nullptr && frame.global_id != 0 ? &errno : nullptr;
      time_loop(frame, words);
      if (own != nullptr) *own = 0;
    };
    EXPECT_TRUE(job.run(work, {&notes, keeps ? &notes : nullptr}).global());
    EXPECT_EQ(job.origin().region_records().at(0).runs_come_home, keeps ? 0U : 1U);
  }
}

// Their tokens are on the node that the thread has left.
void use_many_locks() {
  LockService& locks = *current_frame()->team->node().locks();
  constexpr LockKey kFirst = 0x10000, kEach = 4, kLocks = 2000;
  for (LockKey number = 0; number < kLocks; ++number) {
    locks.acquire(kFirst + number * kEach);
    locks.release(kFirst + number * kEach);
  }
}

TEST_P(Homecoming, LocksOfThoseWhoHaveComeAreFetchedTogether) {
  Notes notes(total());
  const auto work = [](ThreadFrame& first, void* const* words) {
    const bool is_last = first.global_id + 1 == first.team->size();
    if (is_last) use_many_locks();
    time_loop(first, words);
    if (is_last) use_many_locks();
  };
  EXPECT_TRUE(job_.run(work, {&notes}).global());
  expect_all_done(notes, true);
  EXPECT_GT(job_.origin().locks()->statistics().asked_around, 1000U);
}

TEST_P(Homecoming, NobodyGoesWhereThreadsMayNot) {
  job_.move_threads(false);
  Notes notes(total());
  EXPECT_TRUE(job_.run(time_loop, {&notes}).global());
  expect_all_done(notes, false);
}

TEST_P(Homecoming, NobodyGoesWhoMayNeedItsThreadLocals) {
  job_.runtime().reached_.uses_thread_locals = true;
  Notes notes(total());
  EXPECT_TRUE(job_.run(time_loop, {&notes}).global());
  expect_all_done(notes, false);
}

// Apart, so that each look at it asks where it is.
thread_local std::uint64_t rounds_counted = 0;
[[gnu::noinline]] void count_round(std::uint64_t by) { rounds_counted += by; }
[[gnu::noinline]] bool has_counted(std::uint64_t so_far) { return rounds_counted == so_far; }

void counting_loop(ThreadFrame& first, void* const* words) {
  Notes& notes = *static_cast<Notes*>(words[0]);
  const std::uint64_t own = first.global_id + 1;
  count_round(own);
  time_loop(first, words);
  if (!has_counted(own)) notes.orderly = false;
  count_round(own);
}

TEST_P(Homecoming, ThreadLocalsFollowWhereNoAddressOfOneIsAnywhere) {
  const ThreadBlock block{reinterpret_cast<std::byte*>(&rounds_counted) -
                              static_cast<std::byte*>(__builtin_thread_pointer()),
                          sizeof rounds_counted};
  for (const bool takes_addresses : {true, false}) {
    Job job(GetParam(), 32 * base::kKiB, 0, base::SharePolicy::kAuto, {}, {&block, 1});
    job.move_threads_with_variables(takes_addresses);
    Notes notes(total());
    EXPECT_TRUE(job.run(counting_loop, {&notes}).global());
    expect_all_done(notes, !takes_addresses);
    rounds_counted = 0;  // this thread's, which is the origin's first
    if (takes_addresses) continue;
    // Those of the origin's own threads have ended with these.
    for (std::uint32_t id = GetParam().threads; id < total(); ++id) {
      const ThreadValues::Packed left = job.origin().thread_values().take(id);
      ASSERT_EQ(left.bytes.size(), sizeof rounds_counted);
      std::uint64_t counted = 0;
      std::memcpy(&counted, left.bytes.data(), sizeof counted);
      EXPECT_EQ(counted, 2 * (id + 1));
    }
  }
}

TEST_P(Homecoming, NobodyGoesOnceThreadsMayNoMore) {
  Notes notes(total());
  const auto opens_a_library = [](ThreadFrame& frame, void* const* words) {
    if (frame.global_id == 0) {
      static_cast<Job*>(words[1])->services().threads_move_ = false;  // the origin's
    }
    time_loop(frame, words);
  };
  EXPECT_TRUE(job_.run(opens_a_library, {&notes, &job_}).global());
  expect_all_done(notes, false);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Homecoming,
                         testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 2}, Shape{2, 1, 2},
                                         Shape{3, 2, 3}, Shape{4, 1, 2}));

}  // namespace
}  // namespace amasia::omp
