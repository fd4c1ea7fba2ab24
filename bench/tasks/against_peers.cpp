// SPDX-License-Identifier: Apache-2.0
// Question: what does a task cost, against oneTBB and OpenMP tasks (libgomp)? Aim: at most 60 ns a
// task on one worker, and at or ahead of oneTBB on each. A task here is an allocation from a
// worker's own shelf, two stores into its deque, one exchange to take it back and an indirect call:
// some 20 ns on one core.
//
// against_peers [rounds [text]]: all questions, or those with the text in their name, with 1 and 2
// workers. Results are compared with the serial program's; a wrong one ends with 1.
#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "peers.hpp"

namespace {

namespace tasks = amasia::tasks;
using bench::Peers;
using bench::Way;

void expect(long got, long wanted, const char* what) {
  if (got == wanted) return;
  std::fprintf(stderr, "%s: %ld instead of %ld\n", what, got, wanted);
  std::exit(1);
}

// One task in a scope of its own, 100,000 times over.
constexpr long kPairs = 100'000;
std::vector<Way> spawn_join(Peers& peers) {
  return {{"amasia",
           [&] {
             peers.amasia.run([] {
               for (long n = 0; n < kPairs; ++n) tasks::finish([] { tasks::async([] {}); });
             });
           }},
          {"oneTBB",
           [&] {
             peers.in_tbb([] {
               for (long n = 0; n < kPairs; ++n) {
                 tbb::task_group group;
                 group.run([] {});
                 group.wait();
               }
             });
           }},
          {"OpenMP", [&] {
             peers.in_openmp([] {
               for (long n = 0; n < kPairs; ++n) {
#pragma omp task
                 {}
#pragma omp taskwait
               }
             });
           }}};
}

constexpr int kFib = 24;
constexpr double kFibTasks = 75024;  // fib(24): calls that create a task
long fib_amasia(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
  tasks::finish([&] {
    tasks::async([&] { a = fib_amasia(n - 1); });
    b = fib_amasia(n - 2);
  });
  return a + b;
}
long fib_tbb(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
  tbb::task_group group;
  group.run([&] { a = fib_tbb(n - 1); });
  b = fib_tbb(n - 2);
  group.wait();
  return a + b;
}
long fib_openmp(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
#pragma omp task shared(a)
  a = fib_openmp(n - 1);
  b = fib_openmp(n - 2);
#pragma omp taskwait
  return a + b;
}
std::vector<Way> fib(Peers& peers) {
  constexpr long kValue = 46368;
  return {
      {"amasia", [&] { expect(peers.amasia.run([] { return fib_amasia(kFib); }), kValue, "fib"); }},
      {"oneTBB", [&] { peers.in_tbb([] { expect(fib_tbb(kFib), kValue, "fib"); }); }},
      {"OpenMP", [&] { peers.in_openmp([] { expect(fib_openmp(kFib), kValue, "fib"); }); }}};
}

// A tree of ten children a node, six levels: sums its leaves' numbers.
constexpr double kSkynetTasks = 111'110;
constexpr long kSkynetLeaves = 100'000;
long skynet_amasia(long first, long leaves) {
  if (leaves == 1) return first;
  std::array<long, 10> sums;
  tasks::finish([&] {
    for (int child = 0; child < 10; ++child) {
      tasks::async([&sums, child, first, leaves] {
        sums[static_cast<std::size_t>(child)] =
            skynet_amasia(first + child * (leaves / 10), leaves / 10);
      });
    }
  });
  long sum = 0;
  for (const long part : sums) sum += part;
  return sum;
}
long skynet_tbb(long first, long leaves) {
  if (leaves == 1) return first;
  std::array<long, 10> sums;
  tbb::task_group group;
  for (int child = 0; child < 10; ++child) {
    group.run([&sums, child, first, leaves] {
      sums[static_cast<std::size_t>(child)] =
          skynet_tbb(first + child * (leaves / 10), leaves / 10);
    });
  }
  group.wait();
  long sum = 0;
  for (const long part : sums) sum += part;
  return sum;
}
long skynet_openmp(long first, long leaves) {
  if (leaves == 1) return first;
  std::array<long, 10> sums;
  for (int child = 0; child < 10; ++child) {
#pragma omp task shared(sums) firstprivate(child)
    sums[static_cast<std::size_t>(child)] =
        skynet_openmp(first + child * (leaves / 10), leaves / 10);
  }
#pragma omp taskwait
  long sum = 0;
  for (const long part : sums) sum += part;
  return sum;
}
std::vector<Way> skynet(Peers& peers) {
  constexpr long kSum = kSkynetLeaves * (kSkynetLeaves - 1) / 2;
  return {
      {"amasia",
       [&] { peers.amasia.run([] { expect(skynet_amasia(0, kSkynetLeaves), kSum, "skynet"); }); }},
      {"oneTBB",
       [&] { peers.in_tbb([] { expect(skynet_tbb(0, kSkynetLeaves), kSum, "skynet"); }); }},
      {"OpenMP",
       [&] { peers.in_openmp([] { expect(skynet_openmp(0, kSkynetLeaves), kSum, "skynet"); }); }}};
}

// All solutions of ten queens, a task for each queen that is set.
constexpr int kQueens = 10;
constexpr double kQueensTasks = 35'538;
struct Board {
  std::array<signed char, kQueens> row{};
  int set = 0;
  bool takes(int at) const {
    for (int n = 0; n < set; ++n) {
      const int other = row[static_cast<std::size_t>(n)];
      if (other == at || std::abs(other - at) == set - n) return false;
    }
    return true;
  }
  Board with(int at) const {
    Board next = *this;
    next.row[static_cast<std::size_t>(next.set++)] = static_cast<signed char>(at);
    return next;
  }
};
void queens_amasia(const Board& board, std::atomic<long>& solutions) {
  if (board.set == kQueens) {
    solutions.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  tasks::finish([&] {
    for (int at = 0; at < kQueens; ++at) {
      if (!board.takes(at)) continue;
      tasks::async([next = board.with(at), &solutions] { queens_amasia(next, solutions); });
    }
  });
}
void queens_tbb(const Board& board, std::atomic<long>& solutions) {
  if (board.set == kQueens) {
    solutions.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  tbb::task_group group;
  for (int at = 0; at < kQueens; ++at) {
    if (!board.takes(at)) continue;
    group.run([next = board.with(at), &solutions] { queens_tbb(next, solutions); });
  }
  group.wait();
}
void queens_openmp(const Board& board, std::atomic<long>& solutions) {
  if (board.set == kQueens) {
    solutions.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (int at = 0; at < kQueens; ++at) {
    if (!board.takes(at)) continue;
    const Board next = board.with(at);
#pragma omp task firstprivate(next) shared(solutions)
    queens_openmp(next, solutions);
  }
#pragma omp taskwait
}
std::vector<Way> queens(Peers& peers) {
  const auto count = [](auto all) {
    std::atomic<long> solutions{0};
    all(Board{}, solutions);
    expect(solutions.load(), 724, "queens");
  };
  return {{"amasia", [=, &peers] { peers.amasia.run([=] { count(queens_amasia); }); }},
          {"oneTBB", [=, &peers] { peers.in_tbb([=] { count(queens_tbb); }); }},
          {"OpenMP", [=, &peers] { peers.in_openmp([=] { count(queens_openmp); }); }}};
}

// Half a million short iterations.
constexpr long kIterations = 500'000;
std::vector<double>& loop_data() {
  static std::vector<double> data(kIterations, 1.0);
  return data;
}
std::vector<Way> loop(Peers& peers) {
  double* const data = loop_data().data();
  return {{"amasia",
           [=, &peers] {
             peers.amasia.run([=] {
               tasks::forasync(0, kIterations,
                               [=](std::ptrdiff_t i) { data[i] = data[i] * 0.5 + 1.0; });
             });
           }},
          {"oneTBB",
           [=, &peers] {
             peers.in_tbb([=] {
               tbb::parallel_for(0L, kIterations, [=](long i) { data[i] = data[i] * 0.5 + 1.0; });
             });
           }},
          {"OpenMP", [=, &peers] {
#pragma omp parallel for num_threads(peers.workers) schedule(dynamic, 4096)
             for (long i = 0; i < kIterations; ++i) data[i] = data[i] * 0.5 + 1.0;
           }}};
}

// A million tasks in one scope, all created by one.
constexpr long kMillion = 1'000'000;
std::vector<Way> million(Peers& peers) {
  return {{"amasia",
           [&] {
             peers.amasia.run([] {
               tasks::finish([] {
                 for (long n = 0; n < kMillion; ++n) tasks::async([] {});
               });
             });
           }},
          {"oneTBB",
           [&] {
             peers.in_tbb([] {
               tbb::task_group group;
               for (long n = 0; n < kMillion; ++n) group.run([] {});
               group.wait();
             });
           }},
          {"OpenMP", [&] {
             peers.in_openmp([] {
               for (long n = 0; n < kMillion; ++n) {
#pragma omp task
                 {}
               }
#pragma omp taskwait
             });
           }}};
}

// From the making of a task to its begin on a worker that sleeps, while its maker goes on. The
// pause before each, which is not timed, is longer than any way's threads search before they sleep
// (OpenMP's where OMP_WAIT_POLICY is passive, else they spin for milliseconds).
constexpr int kWakes = 50;
constexpr auto kPause = std::chrono::milliseconds(3);
class Wakes {
 public:
  template <typename Make>
  void measure(Make make) {
    std::chrono::nanoseconds total{0};
    for (int n = 0; n < kWakes; ++n) {
      std::this_thread::sleep_for(kPause);
      begun_.store(false);
      const auto made = std::chrono::steady_clock::now();
      make(*this);
      while (!begun_.load(std::memory_order_acquire)) {
      }
      total += began_ - made;
    }
    each_ = std::chrono::duration<double, std::nano>(total).count() / kWakes;
  }
  void begin() {
    began_ = std::chrono::steady_clock::now();
    begun_.store(true, std::memory_order_release);
  }
  double each_ns() const { return each_; }

 private:
  std::chrono::steady_clock::time_point began_;
  std::atomic<bool> begun_{false};
  double each_ = 0;
};
std::vector<bench::TimedWay> wake_up(Peers& peers) {
  return {{"amasia",
           [&] {
             return peers.amasia.run([] {
               Wakes wakes;
               wakes.measure([](Wakes& of) { tasks::async([&of] { of.begin(); }); });
               return wakes.each_ns();
             });
           }},
          {"oneTBB",
           [&] {
             Wakes wakes;
             peers.in_tbb([&] {
               tbb::task_group group;
               wakes.measure([&](Wakes& of) { group.run([&of] { of.begin(); }); });
               group.wait();
             });
             return wakes.each_ns();
           }},
          {"OpenMP", [&] {
             Wakes wakes;
             peers.in_openmp([&] {
               wakes.measure([](Wakes& of) {
                 Wakes* const at = &of;
#pragma omp task firstprivate(at)
                 at->begin();
               });
             });
             return wakes.each_ns();
           }}};
}

// There and back between two tasks, each waiting for the other's promise. The others have none.
constexpr long kTrips = 50'000;
std::vector<Way> round_trip(Peers& peers) {
  return {{"amasia", [&] {
             peers.amasia.run([] {
               std::vector<tasks::promise<long>> there(kTrips), back(kTrips);
               tasks::async([&] {
                 for (std::size_t n = 0; n < kTrips; ++n) {
                   back[n].put(there[n].get_future().get() + 1);
                 }
               });
               for (std::size_t n = 0; n < kTrips; ++n) {
                 there[n].put(static_cast<long>(n));
                 expect(back[n].get_future().get(), static_cast<long>(n) + 1, "round trip");
               }
             });
           }}};
}

}  // namespace

int main(int count, char** words) {
  const int rounds = count > 1 ? std::max(1, std::atoi(words[1])) : 15;
  const std::string asked = count > 2 ? words[2] : "";
  for (const unsigned workers : {1u, 2u}) {
    Peers peers(workers);
    const auto compare = [&](const std::string& question, double times, const char* unit,
                             const std::vector<Way>& ways) {
      if (question.find(asked) == std::string::npos) return;
      bench::compare(question, workers, times, unit, ways, rounds, bench::Threads::kAwake);
    };
    compare("spawn and join", kPairs, "task", spawn_join(peers));
    compare("fib(24)", kFibTasks, "task", fib(peers));
    compare("skynet", kSkynetTasks, "task", skynet(peers));
    compare("ten queens", kQueensTasks, "task", queens(peers));
    compare("parallel loop", kIterations, "iteration", loop(peers));
    compare("a million in a finish", kMillion, "task", million(peers));
    compare("promise round trip", kTrips, "trip", round_trip(peers));
    if (workers > 1 && std::string("wake-up").find(asked) != std::string::npos) {
      bench::compare_timed("wake-up", workers, "task", wake_up(peers), rounds);
    }
  }
  return 0;
}
