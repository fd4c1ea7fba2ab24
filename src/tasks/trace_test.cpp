// SPDX-License-Identifier: Apache-2.0
#include "tasks/trace.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>

#include "amasia/tasks.hpp"

namespace amasia::tasks {
namespace {

using detail::WorkerLog;

TEST(Trace, EventsAreWrittenAsJson) {
  WorkerLog first, second;
  first.record({.category = "task", .name = "a \"b\"\n", .worker = 0, .place = "memory",
                .begin_ns = 5'000, .duration_ns = 1'500});
  second.record({.kind = event_kind::mark, .category = "user", .name = "here", .worker = 1,
                 .place = "x", .begin_ns = 4'000});
  second.record({.kind = event_kind::counter, .category = "user", .name = "bytes", .worker = 1,
                 .begin_ns = 6'000, .value = 2.5});
  EXPECT_EQ(detail::trace_text({&first, &second}, 7),
            R"({"displayTimeUnit":"ns","traceEvents":[
{"name":"thread_name","ph":"M","pid":7,"tid":0,"args":{"name":"worker 0"}},
{"name":"a \"b\"\u000a","cat":"task","pid":7,"tid":0,"ts":1.000,)"
            R"("ph":"X","dur":1.500,"args":{"place":"memory"}},
{"name":"thread_name","ph":"M","pid":7,"tid":1,"args":{"name":"worker 1"}},
{"name":"here","cat":"user","pid":7,"tid":1,"ts":0.000,"ph":"i","s":"t","args":{"place":"x"}},
{"name":"bytes","cat":"user","pid":7,"tid":1,"ts":2.000,"ph":"C","args":{"value":2.5}}
],"otherData":{"events left out":"0"}}
)");
  EXPECT_EQ(detail::trace_path("a-%p.json", 12), "a-12.json");
  EXPECT_EQ(detail::trace_path("a.json", 12), "a.json");
}

class Traces : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Workers, Traces, ::testing::Values(1u, 2u, 4u));

std::uint64_t times_of(const runtime& workers, const std::string& name, const std::string& at) {
  for (const span_statistics& one : workers.spans()) {
    if (one.name == name && one.place == at) return one.times;
  }
  return 0;
}

// Spans are counted without a trace; time in them is that of workers, not of waits.
TEST_P(Traces, SpansAreCountedByPlace) {
  runtime workers({.workers = GetParam()});
  workers.run([] {
    const place network = find_place("interconnect");
    for (int n = 0; n < 10; ++n) {
      async([] {
        const span outer("outer");
        yield();
        const span inner("test", "inner");
      });
      async_at(network, [] { const span sent("test", "send"); });
    }
  });
  EXPECT_EQ(times_of(workers, "outer", "memory"), 10u);
  EXPECT_EQ(times_of(workers, "inner", "memory"), 10u);
  EXPECT_EQ(times_of(workers, "send", "interconnect"), 10u);
  EXPECT_EQ(times_of(workers, "send", "memory"), 0u);
  for (const span_statistics& one : workers.spans()) EXPECT_GE(one.time_ns, 0);
}

// Every task is in the trace; no worker does two things at once that are not within each other.
TEST_P(Traces, AreOfAllTasksAndNestOnEachWorker) {
  std::mutex mutex;
  std::vector<trace_event> events;
  std::uint64_t run = 0;
  {
    runtime workers({.workers = GetParam(), .on_event = [&](const trace_event& event) {
                       const std::lock_guard lock(mutex);
                       events.push_back(event);
                     }});
    workers.run([] {
      mark("begun");
      for (int n = 0; n < 50; ++n) {
        async([n] {
          const span outer("outer");
          finish([] { async([] { yield(); }); });
          async_future([] { count("value", 4); }).get();
          if (n % 3 == 0) yield();
        });
      }
    });
    for (const worker_statistics& one : workers.statistics()) run += one.run;
  }
  const auto ended = [](const trace_event& event) { return event.begin_ns + event.duration_ns; };
  std::uint64_t tasks = 0, marks = 0, counters = 0;
  for (const trace_event& event : events) {
    tasks += std::string_view(event.category) == "task" ? 1 : 0;
    marks += event.kind == event_kind::mark ? 1 : 0;
    counters += event.kind == event_kind::counter ? 1 : 0;
  }
  EXPECT_GE(tasks, run);  // those that were suspended are there in slices
  EXPECT_EQ(marks, 1u);
  EXPECT_EQ(counters, 50u);
  for (const trace_event& one : events) {
    for (const trace_event& other : events) {
      if (one.worker != other.worker || one.kind != event_kind::slice) continue;
      const bool overlap = one.begin_ns < other.begin_ns && other.begin_ns < ended(one) &&
                           ended(one) < ended(other);
      ASSERT_FALSE(overlap) << one.category << " " << one.name << " and " << other.name;
    }
  }
}

TEST(Trace, IsWrittenWhereTheVariableSays) {
  const std::string path =
      testing::TempDir() + "amasia-trace-" + std::to_string(::getpid()) + "-%p.json";
  ::setenv("AMASIA_TASKS_TRACE", path.c_str(), 1);
  {
    runtime workers({.workers = 2});
    ::unsetenv("AMASIA_TASKS_TRACE");
    workers.run([] { async([] { const span here("a span of mine"); }); });
  }
  const std::string written = detail::trace_path(path, ::getpid());
  std::stringstream text;
  text << std::ifstream(written).rdbuf();
  ::unlink(written.c_str());
  EXPECT_NE(text.str().find("\"a span of mine\""), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("\"worker 1\""), std::string::npos);
}

}  // namespace
}  // namespace amasia::tasks
