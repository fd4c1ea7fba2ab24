// SPDX-License-Identifier: Apache-2.0
// The nodes module in a job, and what it says when things go wrong: run by nodes_test.py, which
// names what to do. The origin prints; NODES is how many nodes there should be.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "amasia/nodes.hpp"

namespace {

namespace nodes = amasia::nodes;
namespace tasks = amasia::tasks;

int failures = 0;

}  // namespace

// Of a library of which there are two builds.
int number_of_the_library();

namespace {

void expect(bool holds, const char* what, int line) {
  if (holds) return;
  std::fprintf(stderr, "nodes_program.cpp:%d: %s\n", line, what);
  ++failures;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

// Each node's own.
std::atomic<long> ran_here{0};
int set_in_main = 0;

template <typename Error, typename Body>
std::string text_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

struct Numbers {
  std::array<int, 5000> all;
};

long ran_on(unsigned node) {
  return nodes::async_future_at(nodes::at(node), [] { return ran_here.load(); }).get();
}
long ran_everywhere() {
  long sum = 0;
  for (unsigned node = 0; node < nodes::count(); ++node) sum += ran_on(node);
  return sum;
}

void values_come_back() {
  for (unsigned node = 0; node < nodes::count(); ++node) {
    const auto where = nodes::async_future_at(nodes::at(node), [] { return nodes::self(); });
    EXPECT(where.get() == node);
    const auto seen = nodes::async_future_at(nodes::at(node), [] { return set_in_main; });
    EXPECT(seen.get() == 42);
    Numbers sent{};
    for (int n = 0; n < 5000; ++n) sent.all[static_cast<std::size_t>(n)] = n;
    const auto doubled = nodes::async_future_at(nodes::at(node), [sent] {
      Numbers result = sent;
      for (int& one : result.all) one *= 2;
      return result;
    });
    EXPECT(doubled.get().all[4999] == 9998);
    const char small = static_cast<char>('a' + node);  // a callable of one byte
    EXPECT(nodes::async_future_at(nodes::at(node), [small] { return small; }).get() == small);
    EXPECT(nodes::async_future_any([node] { return node + 1; }).get() == node + 1);
  }
}

// A tree of tasks, each of which goes to the next node: the finish here waits for all.
void spread(int depth) {
  ran_here.fetch_add(1);
  if (depth == 0) return;
  for (unsigned n = 1; n <= 2; ++n) {
    const unsigned next = (nodes::self() + n) % nodes::count();
    nodes::async_at(nodes::at(next), [depth] {
      tasks::async([depth] { spread(depth - 1); });  // not of the callable itself
    });
  }
}

void finish_waits_everywhere() {
  for (int round = 0; round < 5; ++round) {
    const long before = ran_everywhere();
    tasks::finish([] { spread(9); });
    EXPECT(ran_everywhere() == before + 1023);
    const auto later = tasks::finish_future([] { spread(4); });
    later.get();
    EXPECT(ran_everywhere() == before + 1023 + 31);
  }
}

void errors_travel() {
  const unsigned last = nodes::count() - 1;
  const auto value = nodes::async_future_at(nodes::at(last),
                                            []() -> int { throw std::runtime_error("no value"); });
  const std::string prefix = last == 0 ? "" : "node " + std::to_string(last) + ": ";
  EXPECT(text_of<std::runtime_error>([&] { value.get(); }) == prefix + "no value");
  EXPECT(text_of<std::runtime_error>([&] {
           tasks::finish([&] {
             nodes::async_at(nodes::at(last), [] { throw std::runtime_error("at once"); });
           });
         }) == prefix + "at once");
  // From a task that the callable has created, and one more node away: node and text are kept.
  EXPECT(text_of<std::runtime_error>([&] {
           tasks::finish([&] {
             nodes::async_at(nodes::at(0), [last] {
               nodes::async_at(nodes::at(nodes::count() > 2 ? 1 : 0), [last] {
                 nodes::async_at(nodes::at(last), [] {
                   tasks::async([] { throw std::runtime_error("from far"); });
                 });
               });
             });
           });
         }) == prefix + "from far");
  EXPECT(text_of<std::exception>([&] {
           nodes::async_future_any([]() -> int { throw std::runtime_error("any"); }).get();
         }).ends_with("any"));
  if (last == 0) return;
  EXPECT(text_of<nodes::remote_error>([&] {
           nodes::async_future_at(nodes::at(last), [] { throw 7; }).get();
         }) == prefix + "an exception that is no std::exception");
}

void mistakes_are_named() {
  EXPECT(text_of<std::out_of_range>([] { nodes::at(99); }).starts_with("there is no node 99"));
  EXPECT(text_of<std::logic_error>([] { nodes::async_at(tasks::find_place("memory"), [] {}); }) ==
         "the place 'memory' stands for no node of this job");
  EXPECT(text_of<std::logic_error>([] {
           tasks::async_at(nodes::at(0), [] {});
         }).starts_with("no worker has the place 'node0'"));
}

void work_for(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

// Work that comes to be on the origin is done by the others, too. Of several rounds, as one could
// be over before the others have looked.
void idle_nodes_take_tasks() {
  const unsigned count = nodes::count();
  long elsewhere = 0;
  for (int round = 0; round < 100 && (round < 3 || elsewhere == 0); ++round) {
    std::vector<nodes::future<unsigned>> all;
    for (int n = 0; n < 200; ++n) {
      all.push_back(nodes::async_future_any([] {
        work_for(std::chrono::microseconds(100));
        return nodes::self();
      }));
    }
    for (auto& one : all) elsewhere += one.get() != 0;
    if (count == 1) break;
  }
  EXPECT((elsewhere > 0) == (count > 1));
}

// A chain of tasks that any node may do, each of which creates the next: what is stolen is stolen
// on, and the first finish waits for the last.
void bounce(int left) {
  ran_here.fetch_add(1);
  work_for(std::chrono::microseconds(20));
  if (left > 0) {
    nodes::async_any([left] { bounce(left - 1); });
    nodes::async_any([] { ran_here.fetch_add(1); });
  }
}
void what_is_stolen_creates_more() {
  for (int round = 0; round < 5; ++round) {
    const long before = ran_everywhere();
    tasks::finish([] {
      for (int n = 0; n < 8; ++n) nodes::async_any([] { bounce(50); });
    });
    EXPECT(ran_everywhere() == before + 8 * (51 + 50));
  }
}

void many_are_outstanding() {
  const long before = ran_everywhere();
  tasks::finish([] {
    for (int n = 0; n < 20'000; ++n) {
      const auto where = nodes::at(static_cast<unsigned>(n) % nodes::count());
      nodes::async_at(where, [] { ran_here.fetch_add(1); });
    }
  });
  EXPECT(ran_everywhere() == before + 20'000);
}

// A task on another node waits for one here: nobody's worker is blocked.
void waits_cross_nodes() {
  std::vector<nodes::future<int>> all;
  for (unsigned n = 0; n < 40; ++n) {
    all.push_back(nodes::async_future_at(nodes::at(n % nodes::count()), [n] {
      const auto back = nodes::async_future_at(nodes::at(0), [n] { return static_cast<int>(n); });
      return back.get() + 1;
    }));
  }
  for (int n = 0; n < 40; ++n) EXPECT(all[static_cast<std::size_t>(n)].get() == n + 1);
}

void all_tests() {
  values_come_back();
  finish_waits_everywhere();
  errors_travel();
  mistakes_are_named();
  idle_nodes_take_tasks();
  what_is_stolen_creates_more();
  many_are_outstanding();
  waits_cross_nodes();
}

// Tells the test who is where, then has all nodes idle until they are killed. That is a deadlock,
// which is reported; then nothing more is to be done about it.
void wait_to_be_killed() {
  for (unsigned node = 0; node < nodes::count(); ++node) {
    const auto process = nodes::async_future_at(nodes::at(node), [] { return ::getpid(); });
    std::printf("node %u is %d\n", node, static_cast<int>(process.get()));
  }
  std::fflush(stdout);
  tasks::promise<void> never;
  never.get_future().get();
}

// After work for all nodes, which is over by then, the origin waits for what nobody will put.
void wait_for_nobody() {
  all_tests();
  tasks::promise<void> never;
  never.get_future().get();
}

// On the last node a task does, and one of node 0, for which the other waits.
void wait_for_each_other() {
  tasks::finish([] {
    nodes::async_at(nodes::at(nodes::count() - 1), [] {
      nodes::async_future_at(nodes::at(0), [] {
        tasks::promise<void> never;
        never.get_future().get();
      }).get();
    });
  });
}

// What the report's receiver puts has the program go on, twice.
std::mutex stuck_mutex;
std::shared_ptr<tasks::promise<void>> stuck;
int reports = 0;
void go_on(const std::string& report) {
  const std::lock_guard lock(stuck_mutex);
  EXPECT(report.find("a task waits for a future at ") != report.npos);
  ++reports;
  std::exchange(stuck, nullptr)->put();
}
std::function<void(const std::string& report)> heard_by(const std::string& thing) {
  if (thing == "deadlock-ended") return go_on;
  if (thing == "wait") return [](const std::string&) {};
  return {};
}
void wait_for_the_report() {
  for (int times = 1; times <= 2; ++times) {
    const auto until_then = std::make_shared<tasks::promise<void>>();
    const auto reported = until_then->get_future();
    {
      const std::lock_guard lock(stuck_mutex);
      stuck = until_then;
    }
    reported.get();
    EXPECT(reports == times);
    all_tests();
  }
}

const std::map<std::string, std::function<void()>> kThings = {
    {"tests", all_tests},
    {"wait", wait_to_be_killed},
    {"deadlock", wait_for_nobody},
    {"deadlock-away", wait_for_each_other},
    {"deadlock-ended", wait_for_the_report},
    {"crash", [] { nodes::async_at(nodes::at(1), [] { std::raise(SIGSEGV); }); }},
    {"leave", [] { nodes::async_future_at(nodes::at(1), [] { std::exit(3); }).get(); }},
    {"exit", [] { std::exit(4); }},
    {"throw", [] { nodes::async_at(nodes::at(0), [] { throw std::runtime_error("thrown"); }); }},
};

}  // namespace

int main(int count, char** words) {
  const std::string thing = count > 1 ? words[1] : "tests";
  set_in_main = 42;
  if (thing == "swap") std::rename(words[2], words[3]);  // the next nodes find another library
  tasks::runtime workers(
      {.workers = count > 2 && thing != "swap" ? static_cast<unsigned>(std::atoi(words[2])) : 1,
       .detect_deadlock = true,
       .on_deadlock = heard_by(thing)});
  nodes::library job(workers);
  if (const char* expected = std::getenv("NODES")) {
    EXPECT(job.count() == static_cast<unsigned>(std::atoi(expected)));
  }
  if (thing == "swap") {
    std::printf("%u nodes, %d\n", job.run([] { return nodes::count(); }), number_of_the_library());
    return 0;
  }
  const auto found = kThings.find(thing);
  if (found == kThings.end()) return 64;
  try {
    job.run(found->second);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
  EXPECT(job.run([] { return nodes::self(); }) == 0);  // and again
  std::printf("%d failures on %u nodes\n", failures, job.count());
  return failures == 0 ? 0 : 1;
}
