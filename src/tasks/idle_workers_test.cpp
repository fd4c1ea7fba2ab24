// SPDX-License-Identifier: Apache-2.0
#include "tasks/idle_workers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <thread>

#include "tasks/interleavings.hpp"
#include "tasks/test_size.hpp"

namespace amasia::tasks {
namespace {

using model::Exploration;
using model::Explorer;
using model::ModelAtomics;
using model::Trial;

// A maker stores pieces of work, workers take one each: if any is left to sleep while a piece lies
// there, the run never ends. Workers begin where they have found nothing. The first piece may be
// there by then, which its maker has seen nobody to wake for.
template <Bug kBug>
struct Shared {
  using Atomics = ModelAtomics<kBug>;
  explicit Shared(std::uint32_t workers) : idle(workers) {}
  IdleWorkers<Atomics> idle;
  std::array<typename Atomics::template Atomic<std::uint32_t>, 2> work;

  bool take(std::uint32_t pieces) {
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
      std::uint32_t there = work[piece].load(std::memory_order_acquire);
      if (there == 1 && work[piece].compare_exchange_strong(there, 2, std::memory_order_seq_cst,
                                                            std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
};

const WorkerSet kAll{~std::uint64_t{0}};

template <Bug kBug>
bool found_at_last_look(Shared<kBug>& shared, std::uint32_t worker, std::uint32_t pieces) {
  const bool early = kBug == Bug::kLooksBeforeAnnouncing && shared.take(pieces);
  shared.idle.announce(worker);
  if (kBug == Bug::kLooksBeforeAnnouncing) return early;
  if (kBug != Bug::kSleepWithoutBarrier) Trial::current()->barrier();
  return shared.take(pieces);
}

template <Bug kBug>
void work(Shared<kBug>& shared, std::uint32_t worker, std::uint32_t pieces) {
  do {
    if (found_at_last_look(shared, worker, pieces)) {
      const bool claimed = !shared.idle.withdraw(worker);
      if (claimed && kBug != Bug::kDropsClaimedWakeUp) shared.idle.wake_one(kAll);  // S3
      return;
    }
    shared.idle.sleep(worker);
    shared.idle.withdraw(worker);
  } while (!shared.take(pieces));
}

template <Bug kBug = Bug::kNone>
Explorer explorer(std::uint32_t workers, std::uint32_t pieces, std::uint32_t there) {
  return Explorer([=](Trial& run) {
    auto shared = std::make_shared<Shared<kBug>>(workers);
    for (std::uint32_t piece = 0; piece < there; ++piece) {
      shared->work[piece].store(1, std::memory_order_relaxed);
    }
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      run.add_thread([=] { work(*shared, worker, pieces); });
    }
    run.add_thread([=] {
      for (std::uint32_t piece = there; piece < pieces; ++piece) {
        shared->work[piece].store(1, std::memory_order_release);
        if (shared->idle.any()) shared->idle.wake_one(kAll);
      }
    });
  });
}
template <Bug kBug = Bug::kNone>
Exploration explore(std::uint32_t workers, std::uint32_t pieces, std::uint32_t there) {
  return explorer<kBug>(workers, pieces, there).explore();
}

TEST(IdleWorkers, EveryOrderOfOneWorker) {
  const Exploration done = explore(1, 1, 0);
  EXPECT_TRUE(done.complete) << done.violation << ": " << done.order;
  EXPECT_GT(done.runs, 10u);
}

TEST(IdleWorkers, EveryOrderOfTwoWorkers) {
  const Exploration done = explore(2, 2, 1);
  EXPECT_EQ(done.violation, "") << done.order;
  EXPECT_TRUE(done.complete) << done.runs;
}

TEST(IdleWorkers, OrdersOfTwoWorkersAndTwoPiecesByChance) {
  const Exploration done = explorer<Bug::kNone>(2, 2, 0).sample(1, 20'000);
  EXPECT_EQ(done.violation, "") << done.order;
}

TEST(IdleWorkers, PlantedBugsAreCaught) {
  const std::string lost = "thread 0 never wakes";
  EXPECT_EQ(explore<Bug::kSleepWithoutBarrier>(1, 1, 0).violation, lost);
  EXPECT_EQ(explore<Bug::kLooksBeforeAnnouncing>(1, 1, 0).violation, lost);
  EXPECT_EQ(explore<Bug::kWakesWithoutRinging>(1, 1, 0).violation, lost);
  EXPECT_NE(explorer<Bug::kWakesWithoutClaiming>(2, 2, 0).sample(1, 20'000).violation, "");
  EXPECT_NE(explore<Bug::kDropsClaimedWakeUp>(2, 2, 1).violation, "");
}

// Places: each worker serves some, and a piece lies at one. A worker that has taken a piece is busy
// for ever. At the end nobody sleeps while a piece lies at a place that it serves.
struct Served {
  std::vector<std::vector<std::uint32_t>> by;  // of each place, workers
  std::vector<std::uint32_t> pieces;           // of each piece, its place; in the order of making
  std::uint32_t workers = 0;

  bool serves(std::uint32_t worker, std::uint32_t piece) const {
    const auto& all = by[pieces[piece]];
    return std::find(all.begin(), all.end(), worker) != all.end();
  }
  WorkerSet set_of(std::uint32_t piece) const {
    WorkerSet set{0};
    for (const std::uint32_t worker : by[pieces[piece]]) set[0] |= std::uint64_t{1} << worker;
    return set;
  }
};

template <Bug kBug>
struct AtPlaces {
  using Atomics = ModelAtomics<kBug>;
  explicit AtPlaces(Served from)
      : served(std::move(from)), idle(served.workers), work(served.pieces.size()) {}
  const Served served;
  IdleWorkers<Atomics> idle;
  std::deque<typename Atomics::template Atomic<std::uint32_t>> work;

  bool take(std::uint32_t worker) {
    // The newest first, so that who was woken for one may come to take another.
    for (auto piece = static_cast<std::uint32_t>(work.size()); piece-- > 0;) {
      if (!served.serves(worker, piece)) continue;
      std::uint32_t there = work[piece].load(std::memory_order_acquire);
      if (there == 1 && work[piece].compare_exchange_strong(there, 2, std::memory_order_seq_cst,
                                                            std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  void wake_for(std::uint32_t piece, Bug planted) {
    idle.wake_one(Atomics::has(planted) ? kAll : served.set_of(piece));
  }
  void pass_on(std::uint32_t worker) {
    for (std::uint32_t piece = 0; piece < work.size(); ++piece) {
      if (served.serves(worker, piece) && work[piece].load(std::memory_order_acquire) == 1) {
        wake_for(piece, Bug::kPassesOnToAnyone);
      }
    }
  }
  void run_worker(std::uint32_t worker) {
    for (;;) {
      idle.announce(worker);
      Trial::current()->barrier();
      if (take(worker)) {
        if (!idle.withdraw(worker)) pass_on(worker);
        return;
      }
      idle.sleep(worker);
      idle.withdraw(worker);
      if (take(worker)) return pass_on(worker);
    }
  }
};

template <Bug kBug = Bug::kNone>
Explorer at_places(const Served& served) {
  return Explorer([=](Trial& run) {
    auto shared = std::make_shared<AtPlaces<kBug>>(served);
    for (std::uint32_t worker = 0; worker < served.workers; ++worker) {
      run.add_thread([=] { shared->run_worker(worker); });
    }
    run.add_thread([=] {
      for (std::uint32_t piece = 0; piece < served.pieces.size(); ++piece) {
        shared->work[piece].store(1, std::memory_order_release);
        if (shared->idle.any()) shared->wake_for(piece, Bug::kWakesAnyone);
      }
    });
    run.at_rest([=](std::uint32_t thread) -> std::string {
      for (std::uint32_t piece = 0; piece < served.pieces.size(); ++piece) {
        const bool lies = shared->work[piece].load(std::memory_order_relaxed) == 1;
        if (lies && served.serves(thread, piece)) return "sleeps while there is work";
      }
      return "";
    });
  });
}

// Worker 0 serves both places, 1 and 2 one each.
const Served kOverlapping{.by = {{0, 1}, {0, 2}}, .pieces = {0, 1}, .workers = 3};
// Worker 0 serves a place alone, worker 1 another.
const Served kApart{.by = {{0}, {1}}, .pieces = {1, 0}, .workers = 2};

TEST(IdleWorkers, EveryOrderOfTwoWorkersWithPlacesOfTheirOwn) {
  const Exploration done = at_places({.by = {{0}, {1}}, .pieces = {1}, .workers = 2}).explore();
  EXPECT_EQ(done.violation, "") << done.order;
  EXPECT_TRUE(done.complete) << done.runs;
}

TEST(IdleWorkers, OrdersOfWorkersWithPlacesByChance) {
  for (const Served& served : {kOverlapping, kApart}) {
    const Exploration done = at_places(served).sample(1, 5'000);
    EXPECT_EQ(done.violation, "") << done.order;
  }
}

TEST(IdleWorkers, PlantedBugsAtPlacesAreCaught) {
  EXPECT_EQ(at_places<Bug::kWakesAnyone>(kApart).sample(1, 20'000).violation,
            "sleeps while there is work");
  EXPECT_EQ(at_places<Bug::kPassesOnToAnyone>(kOverlapping).sample(1, 200'000).violation,
            "sleeps while there is work");
}

TEST(IdleWorkers, OnlyThoseAskedForAreWoken) {
  IdleWorkers<> idle(130);
  WorkerSet odd(3);
  odd[2] = 2;  // worker 129
  EXPECT_FALSE(idle.any());
  idle.announce(128);
  EXPECT_TRUE(idle.any());
  EXPECT_FALSE(idle.wake_one(odd));
  idle.announce(129);
  EXPECT_TRUE(idle.wake_one(odd));
  idle.sleep(129);  // returns at once: it was woken
  EXPECT_FALSE(idle.withdraw(129));
  EXPECT_TRUE(idle.withdraw(128));
  EXPECT_FALSE(idle.any());
}

TEST(IdleWorkers, NoWakeUpIsLostUnderLoad) {
  ASSERT_TRUE(os::register_process_barrier());
  constexpr std::uint32_t kWorkers = 3;
  constexpr int kPieces = sized(3000, 300);
  IdleWorkers<> idle(kWorkers);
  std::atomic<int> work{0}, taken{0};
  std::vector<std::thread> workers;
  const auto take = [&] {
    int there = work.load(std::memory_order_relaxed);
    while (there > 0) {
      if (work.compare_exchange_weak(there, there - 1)) return true;
    }
    return false;
  };
  for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      while (taken.load() < kPieces) {
        if (take()) {
          if (taken.fetch_add(1) + 1 == kPieces) {
            for (std::uint32_t other = 0; other < kWorkers; ++other) idle.wake(other);
          }
          continue;
        }
        idle.announce(worker);
        os::process_barrier();
        const bool found = work.load() > 0 || taken.load() >= kPieces;
        if (!found) idle.sleep(worker);
        if (!idle.withdraw(worker) && found) idle.wake_one(kAll);
      }
    });
  }
  for (int piece = 0; piece < kPieces; ++piece) {
    work.fetch_add(1, std::memory_order_relaxed);
    if (idle.any()) idle.wake_one(kAll);
    if (piece % 16 == 0) std::this_thread::yield();
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(taken.load(), kPieces);
}

}  // namespace
}  // namespace amasia::tasks
