// SPDX-License-Identifier: Apache-2.0
// Question: what does a task on another node cost? Expected of two nodes on one machine: a value
// from there in two messages through shared memory and four wake-ups of sleeping threads, some
// 40 us, and with 64 under way at once far less each; a task that any node may do, where nobody
// takes it, some 200 ns more than an ordinary one, for its record and two turns of a mutex.
//
// amasia run -n 2 nodes_costs [rounds]. Each way in turns, as harness.hpp has it.
// nodes_costs --quick: one round of each.
#include <atomic>
#include <string>

#include "../tasks/harness.hpp"
#include "amasia/nodes.hpp"

namespace {

namespace nodes = amasia::nodes;
namespace tasks = amasia::tasks;

constexpr long kCalls = 1000, kTasks = 20'000;

long one(long n) { return n + 1; }

void one_by_one(unsigned node) {
  const tasks::place where = nodes::at(node);
  for (long n = 0; n < kCalls; ++n) {
    if (nodes::async_future_at(where, [n] { return one(n); }).get() != n + 1) std::abort();
  }
}

void in_batches(unsigned node) {
  const tasks::place where = nodes::at(node);
  for (long n = 0; n < kCalls; n += 50) {
    tasks::finish([&] {
      for (int k = 0; k < 50; ++k) nodes::async_at(where, [] {});
    });
  }
}

std::atomic<long> done{0};

// The others are kept busy, so that none takes a task.
void any_here() {
  tasks::finish([] {
    for (long n = 0; n < kTasks; ++n) nodes::async_any([] { done.fetch_add(1); });
  });
}
void ordinary() {
  tasks::finish([] {
    for (long n = 0; n < kTasks; ++n) tasks::async([] { done.fetch_add(1); });
  });
}

std::atomic<bool> stop{false};

void measure(int rounds) {
  const unsigned other = nodes::count() - 1;
  bench::compare("task on another node", 1, kCalls, "task",
                 {{"value, one by one", [&] { one_by_one(other); }},
                  {"50 at once", [&] { in_batches(other); }},
                  {"this node, one by one", [] { one_by_one(0); }}},
                 rounds);
  // A task on each other node that does not end has its one worker never look for others.
  tasks::finish([&] {
    for (unsigned node = 1; node < nodes::count(); ++node) {
      nodes::async_future_at(nodes::at(node), [] {
        tasks::async([] {
          while (!stop.load()) amasia::tasks::yield();
        });
      }).get();
    }
    bench::compare("task that any node may do", 1, kTasks, "task",
                   {{"async_any", any_here}, {"async", ordinary}}, rounds);
    for (unsigned node = 1; node < nodes::count(); ++node) {
      nodes::async_at(nodes::at(node), [] { stop.store(true); });
    }
  });
}

}  // namespace

int main(int count, char** words) {
  const std::string word = count > 1 ? words[1] : "7";
  tasks::runtime workers({.workers = 1});
  nodes::library job(workers);
  job.run([&] { measure(word == "--quick" ? 1 : std::max(1, std::atoi(word.c_str()))); });
  return 0;
}
