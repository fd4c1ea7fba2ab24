// SPDX-License-Identifier: Apache-2.0
#include "tasks/stall_watch.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tasks/idle_workers.hpp"
#include "tasks/interleavings.hpp"

namespace amasia::tasks {
namespace {

using model::Exploration;
using model::Explorer;
using model::ModelAtomics;
using model::Trial;

// Workers do pieces of work; pieces create others, as many as the scene says; an operation may end
// on a thread of its own, with a piece or without. Whoever says that all is stalled must be right:
// every piece there will ever be is done. At rest somebody must have said so.
struct Scene {
  std::uint32_t workers = 1;
  std::uint32_t first_pieces = 0;  // there at the beginning
  std::uint32_t created = 0;       // by who does the first
  bool has_operation = false;
  bool operation_makes_piece = false;
  bool has_observer = false;       // a thread that is no worker, and asks once
};

const WorkerSet kAll{~std::uint64_t{0}};

template <Bug kBug>
struct World {
  using Atomics = ModelAtomics<kBug>;
  explicit World(const Scene& from) : scene(from), idle(from.workers) {
    for (std::uint32_t piece = 0; piece < scene.first_pieces; ++piece) {
      lies[piece].store(1, std::memory_order_relaxed);
    }
    if (scene.has_operation) watch.operation_began();
  }

  std::uint32_t all_pieces() const {
    return scene.first_pieces + scene.created + (scene.operation_makes_piece ? 1 : 0);
  }
  void make(std::uint32_t piece) {
    lies[piece].store(1, std::memory_order_release);
    if (idle.any()) idle.wake_one(kAll);
  }
  bool work_lies_there() const {
    for (const auto& piece : lies) {
      if (piece.load(std::memory_order_acquire) == 1) return true;
    }
    return false;
  }
  bool take() {
    for (std::uint32_t piece = 0; piece < lies.size(); ++piece) {
      std::uint32_t there = lies[piece].load(std::memory_order_acquire);
      if (there != 1 || !lies[piece].compare_exchange_strong(
                            there, 2, std::memory_order_seq_cst, std::memory_order_relaxed)) {
        continue;
      }
      if (piece == 0 && scene.first_pieces != 0 && scene.created != 0) make(scene.first_pieces);
      done.fetch_add(1, std::memory_order_seq_cst);  // a step of its own: doing it takes a while
      return true;
    }
    return false;
  }
  bool all_sleep() const {
    for (std::uint32_t worker = 0; worker < scene.workers; ++worker) {
      if (!idle.is_idle(worker)) return false;
    }
    return true;
  }
  void ask() {
    if (!watch.is_stalled([&] { return all_sleep(); }, [&] { return work_lies_there(); })) return;
    told = true;
    if (done.load(std::memory_order_seq_cst) != all_pieces()) told_wrongly = true;
  }
  void run_worker(std::uint32_t worker) {
    for (;;) {
      while (take()) {
      }
      idle.announce(worker);
      Trial::current()->barrier();
      const bool found = work_lies_there();
      if (!found) {
        ask();
        idle.sleep(worker);
      }
      watch.woke();
      if (!idle.withdraw(worker) && found) idle.wake_one(kAll);
    }
  }
  void run_operation() {
    if (scene.operation_makes_piece) make(scene.first_pieces + scene.created);
    if (watch.operation_ended() && all_sleep()) idle.wake(0);
  }

  const Scene scene;
  IdleWorkers<Atomics> idle;
  StallWatch<Atomics> watch;
  std::array<typename Atomics::template Atomic<std::uint32_t>, 2> lies;
  typename Atomics::template Atomic<std::uint32_t> done;
  bool told = false, told_wrongly = false;
};

template <Bug kBug = Bug::kNone>
Explorer explorer(const Scene& scene) {
  return Explorer([=](Trial& run) {
    auto world = std::make_shared<World<kBug>>(scene);
    for (std::uint32_t worker = 0; worker < scene.workers; ++worker) {
      run.add_thread([=] { world->run_worker(worker); });
    }
    if (scene.has_operation) run.add_thread([=] { world->run_operation(); });
    if (scene.has_observer) run.add_thread([=] { world->ask(); });
    run.at_rest([=](std::uint32_t) -> std::string {
      if (world->told_wrongly) return "told while there was work";
      return world->told ? "" : "all sleep, and nobody tells";
    });
  });
}

// Worker 0 sleeps; worker 1 makes a piece, which wakes it, and goes to sleep itself, while a thread
// asks that saw worker 0 asleep before: the shortest way to see both asleep, and one at work.
template <Bug kBug = Bug::kNone>
Explorer one_after_the_other() {
  return Explorer([](Trial& run) {
    const Scene scene{.workers = 2, .created = 1};
    auto world = std::make_shared<World<kBug>>(scene);
    world->idle.announce(0);
    run.add_thread([=] {
      world->idle.sleep(0);
      world->watch.woke();
      world->idle.withdraw(0);
      world->take();
    });
    run.add_thread([=] {
      world->make(0);
      world->idle.announce(1);
    });
    run.add_thread([=] { world->ask(); });
    run.at_end([=] { return world->told_wrongly ? "told while there was work" : std::string(); });
  });
}

const Scene kEndsLate{.workers = 1, .has_operation = true};
const Scene kEndsWithWork{.workers = 1, .has_operation = true, .operation_makes_piece = true};
const Scene kObserved{.workers = 2, .first_pieces = 1, .created = 1, .has_observer = true};
const Scene kObservedAlone{.workers = 1, .first_pieces = 1, .has_observer = true};
const Scene kAllOfIt{.workers = 2,
                     .first_pieces = 1,
                     .has_operation = true,
                     .operation_makes_piece = true,
                     .has_observer = true};

TEST(StallWatch, EveryOrderOfOneWorker) {
  for (const Scene& scene : {kEndsLate, kEndsWithWork, kObservedAlone}) {
    const Exploration done = explorer(scene).explore();
    EXPECT_EQ(done.violation, "") << done.order;
    EXPECT_TRUE(done.complete) << done.runs;
    EXPECT_GT(done.runs, 5u);
  }
}

TEST(StallWatch, OrdersOfTwoWorkersByChance) {
  const Exploration all = one_after_the_other().explore();
  EXPECT_EQ(all.violation, "") << all.order;
  EXPECT_TRUE(all.complete) << all.runs;
  for (const Scene& scene : {kObserved, kAllOfIt}) {
    const Exploration done = explorer(scene).sample(1, 10'000);
    EXPECT_EQ(done.violation, "") << done.order;
  }
}

TEST(StallWatch, PlantedBugsAreCaught) {
  EXPECT_EQ(explorer<Bug::kLastOperationIsSilent>(kEndsLate).explore().violation,
            "all sleep, and nobody tells");
  EXPECT_EQ(explorer<Bug::kLooksBeforeOperations>(kEndsWithWork).explore().violation,
            "told while there was work");
  EXPECT_EQ(one_after_the_other<Bug::kWakesUncounted>().explore().violation,
            "told while there was work");
}

}  // namespace
}  // namespace amasia::tasks
