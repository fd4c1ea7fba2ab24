// SPDX-License-Identifier: Apache-2.0
#include "omp/thread_locals/thread_values.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <thread>

#include "omp/thread_locals/thread_homes.hpp"

namespace amasia::omp {
namespace {

struct Variables {
  int executions = 7;
  char unaligned[3] = {};
  int* own = nullptr;
  long table[40] = {};
};
thread_local Variables variables;
thread_local long further = 1;

template <typename T>
ThreadBlock block_of(T& variable) {
  return {reinterpret_cast<std::byte*>(&variable) -
              static_cast<std::byte*>(__builtin_thread_pointer()),
          sizeof variable};
}

std::vector<ThreadBlock> blocks() { return {block_of(variables), block_of(further)}; }

// Both are as a new thread has them: in any other thread.
TEST(ThreadLocalsTest, AreChangedOnceAByteIs) {
  const Variables begin;
  ThreadLocals locals;
  // What a linker puts into an image, and the zeroes behind it.
  const auto image = std::as_bytes(std::span(&begin, 1)).first(offsetof(Variables, table));
  locals.watched = {{block_of(variables), image}};
  const auto changed_by = [&](const std::function<void()>& part) {
    return std::async(std::launch::async, [&] {
             ThreadLocals here = locals;
             here.watched[0].block = block_of(variables);
             EXPECT_FALSE(here.are_changed());
             part();
             return here.are_changed();
           }).get();
  };
  EXPECT_FALSE(changed_by([] {}));
  EXPECT_FALSE(changed_by([] { variables.executions = 7; }));
  EXPECT_TRUE(changed_by([] { variables.executions = 8; }));
  EXPECT_TRUE(changed_by([] { variables.table[39] = 1; }));
  EXPECT_FALSE(changed_by([] { further = 5; })) << "of another block";
}

// A thread that lives as long as this object, as those of an OpenMP runtime's pool do.
class Worker {
 public:
  void run(std::function<void()> part) {
    std::packaged_task<void()> task(std::move(part));
    std::future<void> done = task.get_future();
    next_.set_value(std::move(task));
    done.get();
  }
  ~Worker() {
    next_.set_value({});
    thread_.join();
  }

 private:
  std::promise<std::packaged_task<void()>> next_;
  std::thread thread_{[this] {
    for (;;) {
      std::packaged_task<void()> task = next_.get_future().get();
      if (!task.valid()) return;
      next_ = {};
      task();
    }
  }};
};

struct TestNode {
  ThreadValues values{blocks()};
  std::vector<std::unique_ptr<Worker>> pool;
  int earlier = 0;  // executions
};

// One execution by thread `id`, its `earlier`th: what it finds is what it left, wherever that was.
void execute(ThreadValues& values, std::uint32_t id, int earlier) {
  values.enter(id);
  EXPECT_EQ(variables.executions, 7 + earlier) << id;
  EXPECT_EQ(further, 1 + static_cast<long>(id) * earlier);
  if (earlier > 0) {
    EXPECT_EQ(variables.own, &variables.executions);
    EXPECT_EQ(variables.unaligned[2], static_cast<char>(id));
    EXPECT_EQ(variables.table[39], earlier);
  }
  variables.own = &variables.executions;
  variables.unaligned[2] = static_cast<char>(id);
  ++*variables.own;
  variables.table[39] = earlier + 1;
  further += id;
}

// What the nodes do, without the messages between.
void move(std::vector<TestNode>& nodes, std::span<const NodeShare> shares, ThreadHomes& homes) {
  struct Taken {
    ThreadHomes::Move move;
    std::uintptr_t thread_pointer;
    std::vector<std::byte> bytes;
  };
  std::vector<Taken> all;
  for (const ThreadHomes::Move& one : homes.follow(shares)) {
    const ThreadValues::Packed values = nodes[one.from.value].values.take(one.thread);
    all.push_back({one, values.thread_pointer, {values.bytes.begin(), values.bytes.end()}});
  }
  for (const NodeShare& share : shares) {
    nodes[share.node.value].values.begin(share.offset, share.threads);
  }
  for (const Taken& one : all) {
    nodes[one.move.to.value].values.keep(one.move.thread, {one.thread_pointer, one.bytes});
  }
}

// As libgomp does: threads that a smaller team has no use for end.
void fit(TestNode& node, std::uint32_t threads) {
  while (node.pool.size() > threads) node.pool.pop_back();
  while (node.pool.size() < threads) node.pool.push_back(std::make_unique<Worker>());
}

TEST(ThreadValues, FollowThreadsOverAnyNodes) {
  constexpr std::uint32_t kTeam = 4;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<TestNode> nodes(3);
    ThreadHomes homes;
    for (int round = 0; round < 12; ++round) {
      std::vector<NodeShare> shares;
      std::uint32_t offset = 0;
      for (std::uint16_t node = 0; node < nodes.size() && offset < kTeam; ++node) {
        const std::uint32_t left = kTeam - offset;
        const std::uint32_t some = node + 1u == nodes.size() ? left : random() % (left + 1);
        if (some > 0) shares.push_back({NodeId{node}, some, offset});
        offset += some;
      }
      move(nodes, shares, homes);
      for (const NodeShare& share : shares) {
        TestNode& node = nodes[share.node.value];
        fit(node, share.threads);
        for (std::uint32_t local = 0; local < share.threads; ++local) {
          const std::uint32_t id = share.offset + local;
          node.pool[local]->run([&] { execute(node.values, id, round); });
        }
      }
    }
  }
}

TEST(ThreadValues, ThatWereNotNeededAreHandedOn) {
  std::vector<TestNode> nodes(3);
  const auto begin = [&](std::size_t node) {
    fit(nodes[node], 1);
    nodes[node].values.begin(5, 1);
  };
  begin(0);
  nodes[0].pool[0]->run([&] { execute(nodes[0].values, 5, 0); });
  begin(1);
  nodes[1].values.keep(5, nodes[0].values.take(5));
  begin(2);
  nodes[2].values.keep(5, nodes[1].values.take(5));
  nodes[2].pool[0]->run([&] { execute(nodes[2].values, 5, 1); });
}

TEST(ThreadValues, OutliveASmallerTeam) {
  TestNode node;
  for (const std::uint32_t threads : {3u, 1u, 2u, 3u}) {
    node.values.begin(0, threads);
    fit(node, threads);
    if (threads < 3) continue;
    for (std::uint32_t id = 0; id < threads; ++id) {
      const int earlier = node.earlier;
      node.pool[id]->run([&] { execute(node.values, id, earlier); });
    }
    ++node.earlier;
  }
}

TEST(ThreadValues, OutliveATeamThatIsSmallerThanItWasToBe) {
  TestNode node;
  const auto run = [&node](std::uint32_t id, int earlier) {
    node.pool[id]->run([&node, id, earlier] { execute(node.values, id, earlier); });
  };
  fit(node, 3);
  node.values.begin(0, 3, true);
  for (const std::uint32_t id : {0u, 1u, 2u}) run(id, 0);
  node.values.begin(0, 3, true);
  fit(node, 2);
  for (const std::uint32_t id : {0u, 1u}) run(id, 1);
  node.values.begin(0, 3, true);
  fit(node, 3);
  for (const std::uint32_t id : {0u, 1u}) run(id, 2);
  run(2, 1);
}

TEST(ThreadValues, GoAlongInTheMiddleOfARegion) {
  constexpr std::uint32_t kThread = 3;
  std::vector<TestNode> nodes(2);
  TestNode& origin = nodes[0];
  TestNode& other = nodes[1];
  origin.values.begin(0, 2);
  origin.values.make_room(4);
  fit(other, 1);
  other.values.begin(kThread, 1);
  std::vector<std::byte> bytes;
  std::uintptr_t left = 0;
  other.pool[0]->run([&] {
    execute(other.values, kThread, 0);
    left = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
    bytes = other.values.leave(kThread);
  });
  EXPECT_TRUE(other.values.take(kThread).bytes.empty()) << "they have gone";
  origin.values.keep(kThread, {left, bytes});
  {
    Worker guest;
    guest.run([&] {
      execute(origin.values, kThread, 1);
      origin.values.keep_own(kThread);
    });
  }
  // It has ended, and the next region is as the one before.
  origin.values.begin(0, 2);
  other.values.begin(kThread, 1);
  other.values.keep(kThread, origin.values.take(kThread));
  other.pool[0]->run([&] { execute(other.values, kThread, 2); });
}

TEST(ThreadValues, ThatNoThreadHasAreNone) {
  ThreadValues values(blocks());
  values.begin(0, 2);
  values.enter(2);  // none of the team's
  for (const std::uint32_t id : {1u, 2u, 900u}) {
    EXPECT_EQ(values.take(id).thread_pointer, 0u);
    EXPECT_TRUE(values.take(id).bytes.empty());
  }
  values.enter(1);
  EXPECT_EQ(values.take(1).bytes.size(), values.size());
  EXPECT_TRUE(values.take(1).bytes.empty()) << "they have gone";
  EXPECT_FALSE(ThreadValues({}).any());
}

TEST(ThreadHomes, TellWhoMoves) {
  using Move = ThreadHomes::Move;
  ThreadHomes homes;
  const NodeId origin{0}, first{1}, second{2};
  const auto moves = [&](std::vector<NodeShare> shares) {
    const auto found = homes.follow(shares);
    return std::vector<Move>(found.begin(), found.end());
  };
  EXPECT_TRUE(moves({{origin, 2, 0}, {first, 2, 2}}).empty()) << "they have nothing yet";
  EXPECT_TRUE(moves({{origin, 2, 0}, {first, 2, 2}}).empty());
  EXPECT_TRUE(moves({{origin, 2, 0}}).empty()) << "2 and 3 stay where they are";
  EXPECT_EQ(moves({{origin, 4, 0}}), (std::vector<Move>{{2, first, origin}, {3, first, origin}}));
  EXPECT_EQ(moves({{origin, 1, 0}, {first, 1, 1}, {second, 2, 2}}),
            (std::vector<Move>{{1, origin, first}, {2, origin, second}, {3, origin, second}}));
  EXPECT_EQ(moves({{origin, 1, 0}, {first, 3, 1}}),
            (std::vector<Move>{{2, second, first}, {3, second, first}}));
  homes.come_home(2);
  EXPECT_EQ(moves({{origin, 1, 0}, {first, 3, 1}}), (std::vector<Move>{{2, origin, first}}));
}

}  // namespace
}  // namespace amasia::omp
