// SPDX-License-Identifier: Apache-2.0
#include "tasks/statistics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "amasia/module.h"
#include "os/os.hpp"
#include "tasks/trace.hpp"

namespace amasia::tasks {
namespace {

detail::Statistics sample() {
  return {.workers = {{.run = 3, .spawned = 2, .stolen = 1, .suspended = 4, .slept = 5,
                       .idle_ns = 1'500'000}},
          .places = {{"memory", 0, 0, 0, 3, 2'000'000}, {"gpu \"0\"", 6, 7, 8, 0, 0}},
          .modules = {{"mpi", 9, 10, 11'000'000, 12, 13'000'000}},
          .spans = {{"mpi", "wait", "memory", 14, 15'000'000}}};
}

TEST(Statistics, AsJson) {
  EXPECT_EQ(detail::json_of(sample()),
            R"({"workers":[{"worker":0,"run":3,"created":2,"stolen":1,"suspended":4,"slept":5,)"
            R"("idle_ns":1500000}],
"places":[{"place":"memory","created":0,"copies":0,"bytes":0,"run":3,"time_ns":2000000},
  {"place":"gpu \"0\"","created":6,"copies":7,"bytes":8,"run":0,"time_ns":0}],
"modules":[{"module":"mpi","operations":9,"calls":10,"calls_ns":11000000,"polls":12,)"
            R"("polls_ns":13000000}],
"spans":[{"category":"mpi","name":"wait","place":"memory","times":14,"time_ns":15000000}]}
)");
  EXPECT_EQ(detail::json_of({}),
            "{\"workers\":[],\n\"places\":[],\n\"modules\":[],\n\"spans\":[]}\n");
}

TEST(Statistics, AsText) {
  const std::vector<std::vector<std::string>> wanted = {
      {"worker", "tasks", "run", "created", "stolen", "suspended", "slept", "idle", "ms"},
      {"0", "3", "2", "1", "4", "5", "1.500"},
      {"place", "tasks", "run", "time", "ms", "created", "copies", "bytes"},
      {"memory", "3", "2.000", "0", "0", "0"},
      {"gpu", "\"0\"", "0", "0.000", "6", "7", "8"},
      {"module", "operations", "calls", "ms", "polls", "ms"},
      {"mpi", "9", "10", "11.000", "12", "13.000"},
      {"span", "of", "times", "ms", "name,", "place"},
      {"mpi", "14", "15.000", "wait,", "memory"}};
  std::vector<std::vector<std::string>> got;
  std::istringstream lines(detail::text_of(sample()));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    got.emplace_back(std::istream_iterator<std::string>(words),
                     std::istream_iterator<std::string>());
  }
  EXPECT_EQ(got, wanted);
}

// An operation is a call, and over with the poll after that.
class Echo : public module {
 public:
  explicit Echo(runtime& of) : runtime_(of) { runtime_.attach(*this); }
  ~Echo() override { runtime_.detach(*this); }
  const char* name() const noexcept override { return "echo"; }
  void initialise(module_host& host) override { host_ = &host; }
  void finalise() noexcept override {}
  future<void> operation() {
    promise<void> result;
    future<void> value = result.get_future();
    host_->call([this, result = std::move(result), held = host_->hold_scope()]() mutable {
      pending_.push_back({std::move(result), std::move(held)});
      host_->poll_me();
    });
    return value;
  }
  poll_result poll() noexcept override {
    ++polls;
    for (auto& [result, held] : pending_) result.put();
    pending_.clear();
    return poll_result::nothing_left;
  }
  std::uint64_t polls = 0;

 private:
  runtime& runtime_;
  module_host* host_ = nullptr;
  std::vector<std::pair<promise<void>, hold>> pending_;
};

class Counts : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Workers, Counts, ::testing::Values(1u, 2u, 4u));

TEST_P(Counts, OperationsCallsAndPollsOfModules) {
  runtime workers({.workers = GetParam()});
  EXPECT_TRUE(workers.statistics_of_modules().empty());
  std::uint64_t polls = 0;
  for (int attached = 0; attached < 2; ++attached) {  // they are one module to the statistics
    Echo echo(workers);
    workers.run([&] {
      forasync(range<1>{{0}, {500}, {1}}, [&](std::ptrdiff_t) { echo.operation().get(); });
    });
    polls += echo.polls;
  }
  const auto all = workers.statistics_of_modules();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].module, "echo");
  EXPECT_EQ(all[0].operations, 1000u);
  EXPECT_EQ(all[0].calls, 1000u);
  EXPECT_EQ(all[0].polls, polls);
  EXPECT_EQ(all[0].calls_ns, 0) << "calls are timed only where statistics are asked for";
  EXPECT_GT(all[0].polls_ns, 0);
}

TEST_P(Counts, TheTimeOfCallsWhereItIsAskedFor) {
  const std::string path =
      testing::TempDir() + "amasia-calls-" + std::to_string(::getpid()) + ".json";
  {
    runtime workers({.workers = GetParam(), .statistics = path});
    {
      Echo echo(workers);
      workers.run([&] {
        forasync(range<1>{{0}, {100}, {1}}, [&](std::ptrdiff_t) { echo.operation().get(); });
      });
    }
    const auto all = workers.statistics_of_modules();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].calls, 100u);
    EXPECT_GT(all[0].calls_ns, 0);
  }
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST_P(Counts, TasksAndCopiesOfPlaces) {
  runtime workers({.workers = GetParam()});
  EXPECT_TRUE(workers.statistics_of_places().empty());
  workers.run([] {
    const place network = find_place("interconnect"), memory = find_place("memory");
    std::vector<char> from(1000), to(1000);
    for (int n = 0; n < 10; ++n) {
      async_at(network, [] {});
      const auto made = async_future_at(network, [] { return 1; });
      async_await_at(network, [] {}, made);
      async_background_at(network, [] {});
      async([] {});
      async_copy(to.data(), memory, from.data(), memory, 100).get();
    }
  });
  for (const place_statistics& one : workers.statistics_of_places()) {
    EXPECT_EQ(one.created, one.place == "interconnect" ? 40u : 0u) << one.place;
    EXPECT_EQ(one.copies, one.place == "memory" ? 10u : 0u) << one.place;
    EXPECT_EQ(one.bytes, one.place == "memory" ? 1000u : 0u) << one.place;
    EXPECT_EQ(one.time_ns, 0);  // it was not asked for
  }
}

long fib(int n) {
  if (n < 2) return n;
  long left = 0, right = 0;
  finish([&] {
    async([&] { left = fib(n - 1); });
    async([&] { right = fib(n - 2); });
  });
  return left + right;
}

// All numbers of that field, as they stand.
std::vector<std::int64_t> numbers_of(const std::string& json, const std::string& field) {
  std::vector<std::int64_t> all;
  const std::string name = '"' + field + "\":";
  for (auto at = json.find(name); at != std::string::npos; at = json.find(name, at + 1)) {
    all.push_back(std::atoll(json.c_str() + at + name.size()));
  }
  return all;
}

// Tasks that run on the stack of others that wait for them are counted once: workers cannot have
// been in tasks for longer than there was time. The file is written when all workers have ended.
TEST_P(Counts, TimesOfTasksDoNotOverlap) {
  const std::string path =
      testing::TempDir() + "amasia-statistics-" + std::to_string(::getpid()) + "-%p.json";
  const Nanos began = os::monotonic_now();
  {
    runtime workers({.workers = GetParam(), .statistics = path});
    workers.run([] {
      EXPECT_EQ(fib(15), 610);
      const place network = find_place("interconnect");
      finish([&] {
        for (int n = 0; n < 50; ++n) async_at(network, [] { yield(); });
      });
    });
    EXPECT_NE(workers.statistics_text().find("interconnect "), std::string::npos);
  }
  const Nanos elapsed = os::monotonic_now() - began;
  const std::string written = detail::trace_path(path, ::getpid());
  std::stringstream content;
  content << std::ifstream(written).rdbuf();
  ::unlink(written.c_str());
  const std::string json = content.str();
  const std::string workers = json.substr(0, json.find("places"));
  const std::string places = json.substr(std::min(json.find("places"), json.size()));
  const auto sum = [](const std::vector<std::int64_t>& all) {
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  };
  EXPECT_EQ(numbers_of(workers, "run").size(), GetParam());
  EXPECT_EQ(sum(numbers_of(workers, "run")), sum(numbers_of(places, "run")));
  EXPECT_EQ(numbers_of(places, "run").at(1), 50);  // the interconnect
  EXPECT_GT(sum(numbers_of(places, "time_ns")), 0);
  EXPECT_LE(sum(numbers_of(places, "time_ns")), elapsed * GetParam());
}

}  // namespace
}  // namespace amasia::tasks
