// SPDX-License-Identifier: Apache-2.0
// Places on real workers: who runs what, in which order, and that nothing is left lying.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include "amasia/tasks.hpp"
#include "support/temporary_folder.hpp"
#include "tasks/scheduler.hpp"
#include "tasks/test_size.hpp"

namespace amasia::tasks {
namespace {

// A platform file that lives as long as the test.
class PlatformFile {
 public:
  explicit PlatformFile(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return folder_ / "platform.json"; }

 private:
  const tests::TemporaryFolder folder_{"places"};
};

std::string joined(const std::vector<place>& places) {
  std::string names;
  for (const place one : places) names += one.name() + " ";
  return names;
}

class Places : public ::testing::TestWithParam<unsigned> {
 protected:
  runtime workers{{.workers = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Workers, Places, ::testing::Values(1u, 2u, 4u));

TEST_P(Places, ThereIsAPlainPlatform) {
  EXPECT_EQ(joined(workers.places()), "memory interconnect storage ");
  const place network = workers.find_place("interconnect");
  EXPECT_EQ(network.type(), place_type::interconnect);
  EXPECT_STREQ(name_of(network.type()), "interconnect");
  EXPECT_EQ(joined(network.neighbours()), "memory ");
  EXPECT_EQ(network.workers(), std::vector<unsigned>{0});
  EXPECT_EQ(workers.find_place("memory").workers().size(), GetParam());
  EXPECT_EQ(joined(workers.places(place_type::storage)), "storage ");
  try {
    workers.find_place("moon");
    FAIL();
  } catch (const std::out_of_range& failure) {
    EXPECT_STREQ(failure.what(),
                 "there is no place 'moon'; there are memory, interconnect, storage");
  }
  workers.run([&] {
    EXPECT_EQ(here(), find_place("memory"));
    EXPECT_EQ(places(), workers.places());
    EXPECT_EQ(places(place_type::interconnect), std::vector<place>{network});
    finish([&] { async_at(network, [&] { EXPECT_EQ(here(), network); }); });
    EXPECT_EQ(here(), find_place("memory"));
  });
}

// A library that wants one thread gets it: the one that called run(), after waits, too.
TEST_P(Places, TheInterconnectBelongsToTheThreadOfRun) {
  const auto caller = std::this_thread::get_id();
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    workers.run([&] {
      EXPECT_EQ(std::this_thread::get_id(), caller) << "the body begins on the caller's thread";
      const place network = find_place("interconnect");
      const auto check = [&, network] {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_EQ(here(), network);
      };
      for (int n = 0; n < 20; ++n) {
        async([&, check, network] {
          const auto value = async_future_at(network, [&, check] {
            check();
            finish([] { async([] { yield(); }); });
            check();
            yield();
            check();
            const int seven = async_future([] {
                                yield();
                                return 7;
                              }).get();
            check();
            return seven;
          });
          async_await_at(
              network,
              [&, check, value] {
                check();
                EXPECT_EQ(value.get(), 7);
                ran.fetch_add(1);
              },
              value);
        });
      }
    });
    EXPECT_EQ(ran.load(), 20);
  }
}

TEST_P(Places, FuturesAtPlaces) {
  workers.run([&] {
    const place store = find_place("storage");
    promise<int> late;
    const auto sum = async_await_future_at(
        store, [awaited = late.get_future()] { return awaited.get() + 1; }, late.get_future());
    const auto bad = async_future_at(store, []() -> int { throw std::domain_error("there"); });
    EXPECT_THROW(bad.get(), std::domain_error);
    late.put(41);
    EXPECT_EQ(sum.get(), 42);
    EXPECT_THROW(finish([&] { async_at(store, [] { throw std::length_error("there"); }); }),
                 std::length_error);
  });
}

// Every worker has a place that nobody else serves. Each of them is sent there and back while the
// others sleep, or are about to.
TEST(PlacesOfWorkers, WhoServesAPlaceIsWoken) {
  std::string places, list;
  for (int n = 0; n < 4; ++n) {
    const std::string name = "\"core" + std::to_string(n) + "\"";
    places += ", {\"name\": " + name + ", \"type\": \"cache\"}";
    list += std::string(n == 0 ? "" : ", ") + "{\"home\": \"memory\", \"pop\": [" + name +
            ", \"memory\"], \"steal\": [" + name + ", \"memory\"]}";
  }
  const PlatformFile file("{\"amasia_platform\": 1, \"places\": [{\"name\": \"memory\"," +
                          std::string(" \"type\": \"memory\"}") + places +
                          "], \"workers\": [" + list + "]}");
  runtime workers({.platform = file.path()});
  int hops = 0;
  workers.run([&] {
    for (unsigned n = 0; n < unsigned{sized(2000, 300)}; ++n) {
      const unsigned to = n * 7 % 4;
      const unsigned ran =
          async_future_at(find_place("core" + std::to_string(to)), [] {
            return detail::this_worker()->id;
          }).get();
      ASSERT_EQ(ran, to);
      ++hops;
    }
  });
  EXPECT_EQ(hops, sized(2000, 300));
}

constexpr const char* kTwoQueues = R"({"amasia_platform": 1,
  "places": [{"name": "x", "type": "memory"}, {"name": "y", "type": "memory"},
             {"name": "mine", "type": "cache"}, {"name": "yours", "type": "cache"}],
  "workers": [{"pop": ["mine", "x", "y"], "steal": ["x", "y"]},
              {"pop": ["yours"], "steal": ["yours"]}]})";

TEST(PlacesOfWorkers, OwnTasksAreTakenAlongThePopPath) {
  const PlatformFile file(kTwoQueues);
  runtime workers({.workers = 1, .platform = file.path()});
  std::string order;
  workers.run([&] {
    EXPECT_EQ(here(), find_place("mine"));
    finish([&] {
      for (const char* name : {"y", "x", "mine", "y", "x", "mine"}) {
        async_at(find_place(name), [&order, name] { order += name; });
      }
    });
  });
  EXPECT_EQ(order, "mineminexxyy");
}

TEST(PlacesOfWorkers, TasksOfOthersAreTakenAlongTheStealPath) {
  const PlatformFile file(kTwoQueues);
  for (int round = 0; round < 20; ++round) {
    runtime workers({.platform = file.path()});
    std::string order;
    workers.run([&] {
      std::atomic<bool> created{false};
      async_at(find_place("yours"), [&] {
        for (const char* name : {"y1", "x1", "y2", "x2"}) {
          async_at(find_place(std::string(name, 1)), [&order, name] { order += name; });
        }
        created.store(true);
      });
      while (!created.load()) std::this_thread::yield();  // worker 0 is busy meanwhile
    });
    ASSERT_EQ(order, "x1x2y1y2");
  }
}

TEST(PlacesOfWorkers, FilesAreHonouredAndMistakesNamed) {
  const PlatformFile file(kTwoQueues);
  runtime both({.platform = file.path()});
  EXPECT_EQ(both.statistics().size(), 2u);
  EXPECT_EQ(joined(both.places()), "x y mine yours ");
  EXPECT_THROW(runtime({.workers = 3, .platform = file.path()}), std::runtime_error);
  ::setenv("AMASIA_TASKS_PLATFORM", file.path().c_str(), 1);
  EXPECT_EQ(joined(runtime().places()), "x y mine yours ");
  ::unsetenv("AMASIA_TASKS_PLATFORM");
  const PlatformFile wrong("{\"amasia_platform\": 1,\n\"places\": [{\"name\": 3}]}");
  try {
    runtime never({.platform = wrong.path()});
    FAIL();
  } catch (const std::runtime_error& failure) {
    EXPECT_EQ(failure.what(), "the platform file '" + wrong.path() +
                                  "', line 2: places[0].name is 3, and a text is wanted");
  }
}

TEST(PlacesOfWorkers, WhatNobodyWouldRunIsRefused) {
  const PlatformFile file(R"({"amasia_platform": 1,
    "places": [{"name": "memory", "type": "memory"}, {"name": "attic", "type": "storage"},
               {"name": "node1", "type": "node"}],
    "workers": [{"pop": ["memory"], "steal": ["memory"]}]})");
  runtime workers({.platform = file.path()});
  runtime others({.workers = 1});
  const place foreign = others.find_place("memory");
  EXPECT_THROW(async_at(foreign, [] {}), std::logic_error);
  workers.run([&] {
    EXPECT_THROW(async_at(foreign, [] {}), std::logic_error);
    EXPECT_THROW(async_at(place(), [] {}), std::logic_error);
    try {
      async_await_future_at(find_place("attic"), [] {});
      FAIL();
    } catch (const std::logic_error& failure) {
      EXPECT_STREQ(failure.what(),
                   "no worker has the place 'attic' (storage) on a path: its tasks would never "
                   "run");
    }
    try {
      async_at(find_place("node1"), [] {});
      FAIL();
    } catch (const std::logic_error& failure) {
      EXPECT_STREQ(failure.what(),
                   "no worker has the place 'node1' (node) on a path: its tasks would never run "
                   "(amasia::nodes::async_at() sends tasks there)");
    }
  });
}

TEST_P(Places, ModulesAddPlacesBeforeTheFirstRun) {
  const place device = workers.add_place({.name = "gpu0", .type = place_type::gpu, .number = 0});
  EXPECT_EQ(device.workers(), std::vector<unsigned>{0});
  EXPECT_EQ(workers.add_place({.name = "gpu0", .type = place_type::gpu}), device);
  EXPECT_THROW(workers.add_place({.name = "gpu0", .type = place_type::node}), std::logic_error);
  const place all = workers.add_place({.name = "all", .first_worker_only = false});
  const place nobodys = workers.add_place(
      {.name = "nobody's", .next_to = {}, .without_workers = true});
  EXPECT_TRUE(nobodys.workers().empty());
  EXPECT_EQ(all.workers().size(), GetParam());
  EXPECT_EQ(joined(workers.find_place("memory").neighbours()), "interconnect storage gpu0 all ");
  const auto caller = std::this_thread::get_id();
  workers.run([&] {
    async_at(device, [&] { EXPECT_EQ(std::this_thread::get_id(), caller); });
    EXPECT_THROW(workers.add_place({.name = "late"}), std::logic_error);
    EXPECT_THROW(async_at(nobodys, [] {}), std::logic_error);
  });
  EXPECT_THROW(workers.add_place({.name = "late"}), std::logic_error);
}

// A task that serves all: the finish that it was created in ends without it, run() does not.
TEST_P(Places, BackgroundTasksAreThoseOfRun) {
  std::atomic<bool> ended{false};
  workers.run([&] {
    promise<void> go;
    finish([&] {
      async_background_at(find_place("interconnect"), [&, until = go.get_future()] {
        until.wait();
        for (int n = 0; n < 5; ++n) yield();
        ended.store(true);
      });
    });
    EXPECT_FALSE(ended.load());
    go.put();
  });
  EXPECT_TRUE(ended.load());
  EXPECT_THROW(workers.run([&] {
    finish([&] {
      async_background_at(find_place("memory"), [] { throw std::range_error("behind"); });
    });
  }),
               std::range_error);
}

TEST_P(Places, CopiesBetweenMemories) {
  workers.run([&] {
    const place memory = find_place("memory");
    for (const std::size_t bytes : {0ul, 1ul, 4097ul, 3ul << 20, (5ul << 20) + 7}) {
      buffer from(memory, bytes), to(memory, bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(from.data()) % 64, 0u);
      std::mt19937_64 random(bytes);
      for (std::size_t at = 0; at < bytes; ++at) from.as<char>()[at] = static_cast<char>(random());
      promise<void> later;
      std::atomic<bool> may_begin{false};
      const auto copied = async_copy_await(to.data(), memory, from.data(), memory, bytes,
                                           later.get_future());
      EXPECT_FALSE(copied.ready());
      may_begin.store(true);
      later.put();
      copied.get();
      EXPECT_TRUE(std::equal(from.as<char>(), from.as<char>() + bytes, to.as<char>()));
    }
    int source = 5, target = 0;
    finish([&] { async_copy(&target, memory, &source, memory, sizeof source); });
    EXPECT_EQ(target, 5);
    try {
      async_copy(&target, memory, &source, find_place("storage"), sizeof source);
      FAIL();
    } catch (const std::logic_error& failure) {
      EXPECT_STREQ(failure.what(),
                   "no module copies from 'storage' (storage) to 'memory' (memory)");
    }
  });
}

// What a module registers is used, and the caller's finish waits for it.
TEST_P(Places, CopiesAndMemoryOfModules) {
  const place device = workers.add_place({.name = "gpu0", .type = place_type::gpu});
  int allocated = 0, released = 0;
  workers.memory_by(place_type::gpu,
                    {.allocate = [&](place at, std::size_t bytes) {
                       EXPECT_EQ(at, device);
                       ++allocated;
                       return async_future([bytes] { return ::operator new(bytes); });
                     },
                     .release = [&](place, void* block, std::size_t) {
                       ::operator delete(block);
                       ++released;
                       promise<void> done;
                       done.put();
                       return done.get_future();
                     }});
  workers.copies_by(place_type::gpu, place_type::memory,
                    [](void* to, place, const void* from, place, std::size_t bytes) {
                      auto done = std::make_shared<promise<void>>();
                      async_background_at(find_place("memory"), [=] {
                        for (int n = 0; n < 3; ++n) yield();
                        std::memcpy(to, from, bytes);
                        done->put();
                      });
                      return done->get_future();
                    });
  buffer outlives;
  workers.run([&] {
    buffer there(device, 8);
    const long value = 42;
    finish([&] { async_copy(there.data(), device, &value, find_place("memory"), 8); });
    EXPECT_EQ(*there.as<long>(), 42);
    EXPECT_THROW(async_copy(there.data(), find_place("memory"), &value, device, 8),
                 std::logic_error);
    EXPECT_THROW(allocate_at(find_place("storage"), 8), std::logic_error);
    outlives = std::move(there);
    void* const block = allocate_at(device, 16).get();
    free_at(device, block, 16).get();
  });
  EXPECT_EQ(allocated, 2);
  EXPECT_EQ(released, 1);
  outlives = buffer();
  EXPECT_EQ(released, 2);
}

TEST_P(Places, MoreMemoryThanThereAreAddressesIsRefused) {
  const place node = workers.add_place({.name = "numa0", .type = place_type::numa_node,
                                        .number = 0, .first_worker_only = false});
  workers.add_place({.name = "gpu0", .type = place_type::gpu});
  workers.memory_by(place_type::gpu, {.allocate = [](place, std::size_t) -> future<void*> {
                                        ADD_FAILURE() << "a module is asked for it";
                                        return {};
                                      },
                                      .release = {}});
  workers.run([&] {
    for (const place at : {find_place("memory"), node, find_place("gpu0")}) {
      constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
      for (const std::size_t bytes : {kMost, kMost - 62, kMost / 2 + 1}) {
        EXPECT_THROW(buffer(at, bytes), std::bad_alloc) << at.name() << " " << bytes;
      }
    }
  });
}

TEST_P(Places, MemoryOfANumaNode) {
  const place node = workers.add_place({.name = "numa0", .type = place_type::numa_node,
                                        .number = 0, .first_worker_only = false});
  workers.run([&] {
    buffer pages(node, 100'000);
    std::fill_n(pages.as<char>(), pages.bytes(), 'x');
    buffer copy(find_place("memory"), pages.bytes());
    async_copy(copy.data(), copy.at(), pages.data(), node, pages.bytes()).get();
    EXPECT_EQ(copy.as<char>()[99'999], 'x');
  });
}

// Paths by chance, each place on somebody's: every task runs, at its place, by one who serves it,
// before and after it waits.
void run_at_random(unsigned seed) {
  std::mt19937 random(seed);
  machine::Platform platform;
  const std::uint32_t places = 2 + random() % 5, workers = 1 + random() % 4;
  for (std::uint32_t n = 0; n < places; ++n) {
    platform.places.push_back({"p" + std::to_string(n), machine::PlaceType::kMemory});
  }
  for (std::uint32_t n = 0; n < workers; ++n) {
    machine::PlatformWorker worker;
    for (std::uint32_t place = 0; place < places; ++place) {
      if (random() % 2 == 0 || (place % workers == n && random() % 2 == 0)) {
        worker.pop.push_back(place);
      }
      if (random() % 2 == 0 || place % workers == n) worker.steal.push_back(place);
    }
    if (worker.pop.empty()) worker.pop.push_back(n % places);
    std::shuffle(worker.pop.begin(), worker.pop.end(), random);
    std::shuffle(worker.steal.begin(), worker.steal.end(), random);
    worker.home = worker.pop.back();
    platform.workers.push_back(std::move(worker));
  }
  const PlatformFile file(machine::to_json(platform));
  runtime all({.platform = file.path(), .detect_deadlock = true});
  std::atomic<int> ran{0};
  const auto serves = [&] {
    if (detail::this_worker()->here == 0) return true;
    const std::vector<unsigned> servers = here().workers();
    return std::count(servers.begin(), servers.end(), detail::this_worker()->id) == 1;
  };
  all.run([&] {
    const std::vector<place> everywhere = tasks::places();
    for (unsigned n = 0; n < 300; ++n) {
      const place one = everywhere[random() % places], other = everywhere[random() % places];
      const unsigned kind = random() % 4;
      async_at(one, [&, one, other, kind] {
        ASSERT_EQ(here(), one);
        ASSERT_TRUE(serves());
        if (kind == 0) yield();
        if (kind == 1) finish([&] { async_at(other, [&] { ASSERT_TRUE(serves()); }); });
        if (kind == 2) async_future_at(other, [] { yield(); }).get();
        if (kind == 3) async_await_at(other, [] {}, async_future([] { yield(); }));
        ASSERT_EQ(here(), one);
        ASSERT_TRUE(serves());
        ran.fetch_add(1);
      });
      if (n % 50 == 0) yield();
    }
  });
  ASSERT_EQ(ran.load(), 300) << "seed " << seed;
}
TEST(PlacesOfWorkers, AnyPathsRunEverything) {
  for (unsigned seed = 1; seed <= unsigned{sized(100, 15)}; ++seed) run_at_random(seed);
}

}  // namespace
}  // namespace amasia::tasks
