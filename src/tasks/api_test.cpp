// SPDX-License-Identifier: Apache-2.0
// The interface on real workers: each test with one, two and four of them.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "amasia/tasks.hpp"
#include "tasks/test_size.hpp"

namespace amasia::tasks {
namespace {

class Tasks : public ::testing::TestWithParam<unsigned> {
 protected:
  runtime workers{{.workers = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Workers, Tasks, ::testing::Values(1u, 2u, 4u));

long fib_finish(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
  finish([&] {
    async([&] { a = fib_finish(n - 1); });
    b = fib_finish(n - 2);
  });
  return a + b;
}

long fib_future(int n) {
  if (n < 2) return n;
  const auto a = async_future([n] { return fib_future(n - 1); });
  const long b = fib_future(n - 2);
  return a.get() + b;
}

TEST_P(Tasks, FibByFinishAndByFutures) {
  EXPECT_EQ(workers.run([] { return fib_finish(20); }), 6765);
  EXPECT_EQ(workers.run([] { return fib_future(20); }), 6765);
}

TEST_P(Tasks, RunsAgainAndAgain) {
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(workers.run([&] { return async_future([&] { return round; }).get(); }), round);
  }
}

// All of them exist before the first is run, on one worker; the original dropped what did not fit.
TEST_P(Tasks, AMillionOutstanding) {
  constexpr int kTasks = sized(1'000'000, 20'000);
  std::atomic<int> ran{0};
  workers.run([&] {
    finish([&] {
      for (int n = 0; n < kTasks; ++n) {
        async([&] { ran.fetch_add(1, std::memory_order_relaxed); });
      }
    });
    EXPECT_EQ(ran.load(), kTasks);
  });
}

TEST_P(Tasks, StatisticsAddUp) {
  workers.run([] {
    for (int n = 0; n < 1000; ++n) async([] { async([] {}); });
  });
  std::uint64_t run = 0, spawned = 0;
  for (const worker_statistics& one : workers.statistics()) {
    run += one.run;
    spawned += one.spawned;
  }
  EXPECT_EQ(spawned, 2000u);
  EXPECT_EQ(run, 2001u);  // and the body of run()
}

TEST_P(Tasks, FinishWaitsForTasksOfTasks) {
  std::atomic<int> ended{0};
  workers.run([&] {
    finish([&] {
      for (int n = 0; n < 10; ++n) {
        async([&] {
          async([&] {
            yield();
            async([&] { ended.fetch_add(1); });
          });
        });
      }
    });
    EXPECT_EQ(ended.load(), 10);
  });
}

// Deeper than any stack: what waits is suspended where its stack ends.
long nested(int depth) {
  long below = 0;
  if (depth == 0) return 0;
  finish([&] { async([&, depth] { below = nested(depth - 1); }); });
  return below + 1;
}
TEST_P(Tasks, DeepNesting) {
  constexpr int kDepth = sized(20'000, 300);
  EXPECT_EQ(workers.run([] { return nested(kDepth); }), kDepth);
}

// Every one of them holds a stack while the value is not there.
TEST_P(Tasks, ManySuspendedTasks) {
  constexpr int kTasks = sized(5000, 300);
  std::atomic<long> sum{0};
  workers.run([&] {
    promise<int> value;
    const future<int> awaited = value.get_future();
    async([&value] { value.put(3); });  // first in, last out
    for (int n = 0; n < kTasks; ++n) async([&sum, awaited] { sum.fetch_add(awaited.get()); });
    awaited.wait();
  });
  EXPECT_EQ(sum.load(), 3L * kTasks);
}

// The original deadlocked.
TEST_P(Tasks, AsyncAndYieldAndWait) {
  workers.run([] {
    std::atomic<bool> flag{false};
    const auto patient = async_future([&] {
      while (!flag.load()) yield();
      return 1;
    });
    async([&] {
      for (int n = 0; n < 3; ++n) yield();
      flag.store(true);
    });
    EXPECT_EQ(patient.get(), 1);
  });
}

TEST_P(Tasks, AWaitDoesNotRunWhatWaitsForItsOwnEnd) {
  // The task below waits for what its creator puts after the finish: done within that wait, on the
  // same stack, it would never end.
  workers.run([] {
    promise<int> later;
    async([awaited = later.get_future()] { EXPECT_EQ(awaited.get(), 5); });
    finish([] { async([] {}); });
    later.put(5);
  });
}

TEST_P(Tasks, ExceptionsTravel) {
  EXPECT_THROW(workers.run([] { throw std::out_of_range("of the body"); }), std::out_of_range);
  workers.run([] {
    const auto bad = async_future([]() -> int { throw std::domain_error("of a task"); });
    EXPECT_THROW(bad.get(), std::domain_error);
    EXPECT_THROW(bad.get(), std::domain_error);
    std::atomic<int> others{0};
    EXPECT_THROW(finish([&] {
                   for (int n = 0; n < 10; ++n) {
                     async([&, n] {
                       if (n == 3) throw std::length_error("of one of many");
                       others.fetch_add(1);
                     });
                   }
                 }),
                 std::length_error);
    EXPECT_EQ(others.load(), 9);
    EXPECT_THROW(finish_future([] { async([] { throw std::range_error("later"); }); }).get(),
                 std::range_error);
  });
}

TEST_P(Tasks, WaitsInsideOfCatchBlocks) {
  workers.run([] {
    for (int n = 0; n < 20; ++n) {
      async([n] {
        try {
          throw n;
        } catch (int caught) {
          yield();
          try {
            throw caught + 100;
          } catch (int inner) {
            yield();
            EXPECT_EQ(inner, n + 100);
          }
          EXPECT_EQ(caught, n);
          EXPECT_NE(std::current_exception(), nullptr);
        }
        EXPECT_EQ(std::current_exception(), nullptr);
      });
    }
  });
}

TEST_P(Tasks, FuturesThatStandForNothingAreRefused) {
  workers.run([] {
    const future<int> none;
    EXPECT_FALSE(none.valid());
    EXPECT_THROW(none.ready(), std::logic_error);
    EXPECT_THROW(none.wait(), std::logic_error);
    EXPECT_THROW(none.get(), std::logic_error);
    const future<int> some = async_future([] { return 3; });
    EXPECT_THROW(async_await([] {}, some, none), std::logic_error);
    EXPECT_THROW(async_await_future([] { return 1; }, some, none), std::logic_error);
    const auto asks = [](future<int> which) -> future<int> { co_return co_await which; };
    EXPECT_THROW(asks(none).get(), std::logic_error);
    EXPECT_EQ(asks(some).get(), 3);
  });
}

TEST(Runtime, OptionsOutOfRangeAreRefused) {
  const auto refusal_of = [](const options& chosen) -> std::string {
    try {
      runtime never(chosen);
    } catch (const std::invalid_argument& refusal) {
      return refusal.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal_of({.stack_bytes = 0}),
            "options::stack_bytes is 0 (it may be 16384 to 68719476736)");
  EXPECT_NE(refusal_of({.stack_bytes = ~std::size_t{0}}), "none");
  EXPECT_EQ(refusal_of({.workers = 1025}), "options::workers is 1025 (it may be at most 1024)");
  EXPECT_EQ(refusal_of({.workers = 1024}), "none");
  runtime small({.workers = 2, .stack_bytes = 16384});
  small.run([] {
    for (int n = 0; n < 10; ++n) {
      async([] {
        EXPECT_THROW(async_future([]() -> int { throw std::runtime_error("caught"); }).get(),
                     std::runtime_error);
      });
    }
  });
}

TEST_P(Tasks, PromisesBreakAndTakeOneValue) {
  workers.run([] {
    future<int> orphan;
    {
      promise<int> never;
      orphan = never.get_future();
      async([orphan] { EXPECT_THROW(orphan.get(), broken_promise); });
    }
    EXPECT_THROW(orphan.get(), broken_promise);
    promise<void> once;
    once.put();
    EXPECT_THROW(once.put(), std::logic_error);
    once.get_future().get();
  });
}

TEST_P(Tasks, AsyncAwait) {
  workers.run([] {
    promise<int> a, b;
    std::atomic<int> order{0};
    const auto sum = async_await_future(
        [&, x = a.get_future(), y = b.get_future()] {
          EXPECT_EQ(order.load(), 2);
          return x.get() + y.get();
        },
        a.get_future(), b.get_future());
    async_await([&, sum] { EXPECT_EQ(sum.get(), 42); }, sum);
    async([&] {
      order.fetch_add(1);
      b.put(40);
      order.fetch_add(1);
      a.put(2);
    });
    EXPECT_EQ(sum.get(), 42);
  });
}

future<int> add_slowly(future<int> a, future<int> b) { co_return co_await a + co_await b; }
future<void> fails(future<int> a) {
  co_await a;
  throw std::underflow_error("in a coroutine");
}
TEST_P(Tasks, Coroutines) {
  workers.run([] {
    promise<int> late;
    const auto sum = add_slowly(late.get_future(), async_future([] { return 2; }));
    const auto bad = fails(late.get_future());
    async([&] { late.put(5); });
    EXPECT_EQ(sum.get(), 7);
    EXPECT_THROW(bad.get(), std::underflow_error);
  });
}

future<int> counts_letters(future<std::string> text) {
  const std::string& kept = co_await text;  // by reference while the future lives
  const auto pointer = co_await async_future([] { return std::make_unique<int>(1); });
  co_return static_cast<int>(kept.size()) + *pointer;
}
TEST_P(Tasks, ValuesThatCannotBeCopiedMoveOut) {
  workers.run([] {
    const std::unique_ptr<int> value = async_future([] { return std::make_unique<int>(7); }).get();
    EXPECT_EQ(*value, 7);
    const auto kept = async_future([] { return std::make_unique<int>(8); });
    EXPECT_EQ(*kept.get() + *kept.get(), 16);
    promise<std::string> text;
    const auto letters = counts_letters(text.get_future());
    async([&] { text.put("four"); });
    EXPECT_EQ(letters.get(), 5);
    // A copy is one: what others have stays.
    const auto word = text.get_future();
    EXPECT_EQ(future<std::string>(word).get(), "four");
    EXPECT_EQ(word.get(), "four");
  });
}

TEST_P(Tasks, OtherThreadsPutAndWait) {
  promise<int> from_outside, to_outside;
  std::thread other([&] {
    from_outside.put(1);
    EXPECT_EQ(to_outside.get_future().get(), 2);
  });
  workers.run([&] {
    const int value = from_outside.get_future().get();
    to_outside.put(value + 1);
  });
  other.join();
}

TEST_P(Tasks, ParallelLoops) {
  for (const std::ptrdiff_t tile : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> times(1001);
    workers.run([&] {
      forasync(range<1>{{1}, {1001}, {tile}},
               [&](std::ptrdiff_t i) { times[static_cast<std::size_t>(i)].fetch_add(1); });
    });
    EXPECT_EQ(times[0].load(), 0);
    for (std::size_t i = 1; i <= 1000; ++i) ASSERT_EQ(times[i].load(), 1);
  }
  workers.run([&] {
    std::vector<std::atomic<int>> cells(5 * 6 * 7);
    const auto cell = [](auto i, auto j, auto k) {
      return static_cast<std::size_t>((i * 6 + j) * 7 + k);
    };
    forasync(range<3>{{0, 0, 0}, {5, 6, 7}, {2, 4, 3}},
             [&](auto i, auto j, auto k) { cells[cell(i, j, k)].fetch_add(1); });
    const auto again = forasync_future(range<2>{{0, 0}, {5, 6}, {}}, [&](auto i, auto j) {
      for (int k = 0; k < 7; ++k) cells[cell(i, j, k)].fetch_add(1);
    });
    again.get();
    forasync_future(0, 5 * 6 * 7, [&](std::ptrdiff_t n) {
      cells[static_cast<std::size_t>(n)].fetch_add(1);
    }).get();
    for (const auto& times : cells) EXPECT_EQ(times.load(), 3);
    forasync(3, 3, [](std::ptrdiff_t) { ADD_FAILURE() << "an empty range"; });
    EXPECT_THROW(forasync(0, 9,
                          [](std::ptrdiff_t i) {
                            if (i == 4) throw i;
                          }),
                 std::ptrdiff_t);
  });
}

// The half that is kept is never farther from the worker's own place than the other.
TEST(Loops, AreDividedByWhereWorkersStand) {
  const auto distance = [](std::ptrdiff_t low, std::ptrdiff_t high, double at) {
    return std::max({0.0, static_cast<double>(low) - at, at - static_cast<double>(high)});
  };
  for (unsigned workers = 2; workers <= 9; ++workers) {
    for (unsigned worker = 0; worker < workers; ++worker) {
      for (std::ptrdiff_t total = 2; total <= 40; ++total) {
        const double at = static_cast<double>(total) * worker / (workers - 1);
        for (std::ptrdiff_t first = 0, last = total; last - first > 1;) {
          const std::ptrdiff_t middle = first + (last - first) / 2;
          const bool upper = detail::keeps_upper(middle, total, worker, workers);
          const double below = distance(first, middle, at), above = distance(middle, last, at);
          ASSERT_LE(upper ? above : below, upper ? below : above);
          (upper ? first : last) = middle;
        }
      }
    }
  }
  EXPECT_FALSE(detail::keeps_upper(1, 2, 0, 1));
}

TEST(Loops, TilesComeToTheSameWorkersWhoeverBegins) {
  runtime workers({.workers = 2});
  workers.run([] {
    for (int n = 0; n < 200; ++n) {
      std::array<unsigned, 2> by{};
      std::atomic<int> begun{0};
      // Neither ends before the other has begun: they are with two workers.
      forasync(range<1>{{0}, {2}, {1}}, [&](std::ptrdiff_t tile) {
        by[static_cast<std::size_t>(tile)] = detail::worker_number();
        begun.fetch_add(1);
        while (begun.load() < 2) std::this_thread::yield();
      });
      ASSERT_EQ(by[0], 0u);
      ASSERT_EQ(by[1], 1u);
    }
  });
}

TEST_P(Tasks, StoppedScopesDoNotBeginTasks) {
  workers.run([] {
    std::stop_source source;
    std::atomic<int> ran{0};
    future<int> skipped;
    finish(source.get_token(), [&] {
      finish([&] {  // ends before the request: a task that has begun may be interrupted anywhere
        async([&] {
          EXPECT_FALSE(stop_requested());
          ran.fetch_add(1);
        });
      });
      source.request_stop();
      EXPECT_TRUE(stop_requested());
      skipped = async_future([&] { return ran.fetch_add(1); });
      finish([&] { async([&] { ran.fetch_add(1); }); });  // inherited
    });
    EXPECT_EQ(ran.load(), 1);
    EXPECT_THROW(skipped.get(), cancelled);
    finish([&] { async([&] { ran.fetch_add(1); }); });  // outside of it
    EXPECT_EQ(ran.load(), 2);
  });
}

// Whatever is nested how: a scope stops when any token of it or around it says so, and no other.
TEST_P(Tasks, ScopesWithTokensOfTheirOwnStopWithThoseAround) {
  workers.run([] {
    for (int stopped = 0; stopped < 3; ++stopped) {
      std::array<std::stop_source, 3> sources;
      std::array<std::atomic<int>, 4> ran{};
      const auto nest = [&](auto& self, std::size_t depth) -> void {
        async([&, depth] { ran[depth].fetch_add(1); });
        EXPECT_EQ(stop_requested(), static_cast<int>(depth) > stopped);
        if (depth == 3) return;
        finish([&] {  // one without a token between them
          const auto inner = finish_future(
              [&] {
                if (static_cast<int>(depth) == stopped) sources[depth].request_stop();
                self(self, depth + 1);
              },
              sources[depth].get_token());
          finish(sources[depth].get_token(), [] {});
          inner.get();
        });
      };
      finish([&] { nest(nest, 0); });
      for (int depth = 0; depth < 4; ++depth) {
        EXPECT_EQ(ran[static_cast<std::size_t>(depth)].load(), depth > stopped ? 0 : 1);
      }
    }
  });
}

TEST_P(Tasks, MisuseIsTold) {
  EXPECT_THROW(async([] {}), std::logic_error);
  EXPECT_THROW(yield(), std::logic_error);
  EXPECT_THROW(finish([] {}), std::logic_error);
  workers.run([&] { EXPECT_THROW(workers.run([] {}), std::logic_error); });
}

// Suspended in every way at once, by chance, for ThreadSanitizer.
TEST_P(Tasks, AMixtureUnderLoad) {
  std::atomic<long> sum{0};
  workers.run([&] {
    for (int round = 0; round < sized(200, 50); ++round) {
      auto value = std::make_shared<promise<int>>();
      const auto awaited = value->get_future();
      for (int n = 0; n < 4; ++n) {
        async([&sum, awaited] { sum.fetch_add(awaited.get()); });
        async_await([&sum, awaited] { sum.fetch_add(awaited.get()); }, awaited);
      }
      async([value] {
        yield();
        value->put(1);
      });
      if (round % 8 == 0) finish([] { async([] { yield(); }); });
    }
  });
  EXPECT_EQ(sum.load(), 8 * sized(200, 50));
}

// Returns only if all workers sleep while they have nothing to do.
TEST_P(Tasks, IdleWorkersSleep) {
  workers.run([] {});
  const auto all_slept = [&] {
    const auto counts = workers.statistics();
    return std::all_of(counts.begin() + 1, counts.end(),
                       [](const worker_statistics& one) { return one.slept > 0; });
  };
  while (!all_slept()) std::this_thread::yield();
}

future<void> fails_never(future<int> awaited) { co_await awaited; }

TEST(Deadlock, EndsTheProgramAndSaysWhatToDoAboutAFalseAlarm) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wait_for_nobody = [] {
    runtime workers({.workers = 2, .detect_deadlock = true});
    workers.run([] { promise<void>().get_future().wait(); });  // broken at once: no deadlock
    workers.run([] {
      const promise<void> never;
      never.get_future().wait();
    });
  };
  EXPECT_DEATH(wait_for_nobody(), "1 task waits\n.*api_test.cpp.*\n.*detect_deadlock = false");
}

// One worker alone: what the report's receiver puts lies in its own deque, where nobody steals.
TEST(Deadlock, TheOnlyWorkerGoesOnWithWhatWasPutOnTheReport) {
  promise<void> never;
  int reports = 0;
  runtime workers(
      {.workers = 1, .detect_deadlock = true, .on_deadlock = [&](const std::string& text) {
         EXPECT_NE(text.find("1 task waits\n  a task waits for a future at "), text.npos) << text;
         ++reports;
         never.put();
       }});
  workers.run([&] { never.get_future().wait(); });
  EXPECT_EQ(reports, 1);
}

TEST(Deadlock, IsReportedWithWhoWaits) {
  std::string report;
  promise<int>* stuck = nullptr;
  runtime workers(
      {.workers = 2, .detect_deadlock = true, .on_deadlock = [&](const std::string& text) {
         report = text;
         stuck->put(1);  // from within a worker: the program goes on
       }});
  int began = 0;
  workers.run([&] {
    promise<int> never;
    promise<void> early;
    early.put();
    stuck = &never;
    finish([&] {
      async([awaited = never.get_future()] { awaited.wait(); });
      async_await([&] { ++began; }, early.get_future(), never.get_future());
      fails_never(never.get_future());
    });
  });
  EXPECT_EQ(began, 1);
  EXPECT_NE(report.find("a task is to begin after 1 of 2 futures: "), std::string::npos) << report;
  EXPECT_NE(report.find("lambda"), std::string::npos) << report;  // gcc and clang name it each
  EXPECT_NE(report.find("a task is to begin after 1 of 1 futures: a coroutine"), std::string::npos)
      << report;
  EXPECT_NE(report.find("deadlock: no task can run, and "), std::string::npos) << report;
  EXPECT_NE(report.find("waits for a future at "), std::string::npos) << report;
  EXPECT_NE(report.find("waits in finish at "), std::string::npos) << report;
  EXPECT_NE(report.find("api_test.cpp:"), std::string::npos) << report;
}

}  // namespace
}  // namespace amasia::tasks
