// SPDX-License-Identifier: Apache-2.0
// Random clusters against one global memory. A failing run prints the line that replays it.
#include "dsm/protocol/cluster_simulation.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace amasia::dsm::protocol {
namespace {

// A seed from the environment replays one run.
std::vector<std::uint64_t> seeds(int count) {
  if (const char* seed = std::getenv("AMASIA_SIMULATION_SEED"))
    return {std::strtoull(seed, nullptr, 10)};
  std::vector<std::uint64_t> all;
  for (int i = 1; i <= count; ++i) all.push_back(static_cast<std::uint64_t>(i));
  return all;
}

std::string replay_line(std::uint64_t seed) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return "AMASIA_SIMULATION_SEED=" + std::to_string(seed) +
         " dsm_test --gtest_filter=" + test->test_suite_name() + "." + test->name();
}

SimulationSettings random_settings(std::uint64_t seed) {
  std::mt19937_64 random(seed * 7919);
  SimulationSettings settings;
  settings.seed = seed;
  settings.nodes = 2 + static_cast<int>(random() % 7);
  settings.pages = 1 + static_cast<int>(random() % 40);
  settings.hold = random() % 4 != 0;
  settings.delay_min = static_cast<Nanos>(random() % 10'000);
  settings.delay_max = settings.delay_min + static_cast<Nanos>(random() % 300'000);
  settings.slow_node = random() % 3 == 0 ? static_cast<int>(random() % settings.nodes) : -1;
  if (random() % 2 == 0) settings.evict_every = 20'000 + static_cast<Nanos>(random() % 500'000);
  if (random() % 2 == 0) settings.offer_every = 40'000 + static_cast<Nanos>(random() % 400'000);
  settings.end = 60 * base::kSecond;
  return settings;
}

// Loads, stores and additions anywhere: racy, but each access is atomic.
Program racy(int accesses, int pages) {
  return [left = accesses, pages](std::uint64_t, std::mt19937_64& random) mutable -> Access {
    if (left-- == 0) return {};
    Access access;
    access.kind = static_cast<Access::Kind>(random() % 3);
    access.page = static_cast<int>(random() % pages);
    access.word = static_cast<int>(random() % kWords);
    access.value = random() % 1000;
    return access;
  };
}

TEST(ClusterSimulation, RacyAccessesSeeOneMemory) {
  for (const std::uint64_t seed : seeds(25)) {
    const SimulationSettings settings = random_settings(seed);
    ClusterSimulation simulation(settings);
    for (int i = 0; i < 2 * settings.nodes; ++i) simulation.add_thread(racy(200, settings.pages));
    ASSERT_EQ(simulation.run(), "") << replay_line(seed);
    ASSERT_TRUE(simulation.all_done()) << replay_line(seed);
  }
}

TEST(ClusterSimulation, NoAdditionIsLost) {
  for (const std::uint64_t seed : seeds(20)) {
    const SimulationSettings settings = random_settings(seed);
    ClusterSimulation simulation(settings);
    constexpr int kAdditions = 150;
    for (int i = 0; i < settings.nodes; ++i)
      simulation.add_thread([left = kAdditions, pages = settings.pages](
                                std::uint64_t, std::mt19937_64& random) mutable -> Access {
        if (left-- == 0) return {};
        return {Access::kAdd, static_cast<int>(random() % pages), 0, 1};
      });
    ASSERT_EQ(simulation.run(), "") << replay_line(seed);
    ASSERT_TRUE(simulation.all_done()) << replay_line(seed);
    std::uint64_t sum = 0;
    for (int p = 0; p < settings.pages; ++p) sum += simulation.word(p, 0);
    ASSERT_EQ(sum, static_cast<std::uint64_t>(kAdditions) * settings.nodes) << replay_line(seed);
  }
}

// Phases with a barrier that spins on a word of page 0. In each phase a thread writes its share of
// the pages, which rotates, then reads all: every value is known.
class PhasedThread {
 public:
  PhasedThread(int self, int threads, int pages, std::vector<std::string>* errors)
      : self_(self), threads_(threads), pages_(pages), errors_(errors) {}

  Access operator()(std::uint64_t last, std::mt19937_64&) {
    switch (step_) {
      case kWriting:
        while (++page_ < pages_)
          if ((page_ + phase_) % threads_ == self_)
            return {Access::kStore, page_, 1, expected(page_)};
        page_ = 0;
        return arrive(kAwaitsWriters);
      case kReading:
        if (page_ > 0 && last != expected(page_))
          errors_->push_back("a wrong value after a barrier");
        if (++page_ < pages_) return {Access::kLoad, page_, 1};
        page_ = 0;
        return arrive(kAwaitsReaders);
      case kAwaitsWriters:
      case kAwaitsReaders:
        if (!arrived_ || last < static_cast<std::uint64_t>(barriers_ * threads_)) {
          arrived_ = true;
          return {Access::kLoad, 0, 0, 0, -1, 5000};
        }
        if (step_ == kAwaitsReaders && ++phase_ == kPhases) return {};
        step_ = step_ == kAwaitsWriters ? kReading : kWriting;
        return operator()(0, unused_);
    }
    return {};
  }

 private:
  static constexpr int kPhases = 4;
  enum Step { kWriting, kAwaitsWriters, kReading, kAwaitsReaders };
  std::uint64_t expected(int page) const {
    return static_cast<std::uint64_t>(phase_) * 1000 + static_cast<std::uint64_t>(page) + 1;
  }
  Access arrive(Step next) {
    step_ = next;
    arrived_ = false;
    ++barriers_;
    return {Access::kAdd, 0, 0, 1};
  }
  int self_, threads_, pages_;
  std::vector<std::string>* errors_;
  Step step_ = kWriting;
  int page_ = 0, phase_ = 0, barriers_ = 0;
  bool arrived_ = false;
  std::mt19937_64 unused_;
};

TEST(ClusterSimulation, RaceFreePhasesReadWhatWasWritten) {
  for (const std::uint64_t seed : seeds(16)) {
    SimulationSettings settings = random_settings(seed);
    settings.pages += 2;
    settings.hold = true;  // without, many spinning readers can steal a page before use for ever
    ClusterSimulation simulation(settings);
    std::vector<std::string> errors;
    for (int i = 0; i < settings.nodes; ++i)
      simulation.add_thread(PhasedThread(i, settings.nodes, settings.pages, &errors));
    ASSERT_EQ(simulation.run(), "") << replay_line(seed);
    ASSERT_TRUE(simulation.all_done()) << replay_line(seed);
    ASSERT_TRUE(errors.empty()) << errors.front() << "; " << replay_line(seed);
  }
}

TEST(ClusterSimulation, ThreadsComeToAnEndThoughPagesAreEvictedAllTheTime) {
  for (const std::uint64_t seed : seeds(12)) {
    SimulationSettings settings = random_settings(seed);
    settings.hold = true;
    settings.evict_every = 40'000;  // longer than a slow node needs for it
    ClusterSimulation simulation(settings);
    for (int i = 0; i < settings.nodes; ++i) simulation.add_thread(racy(200, settings.pages));
    ASSERT_EQ(simulation.run(), "") << replay_line(seed);
    ASSERT_TRUE(simulation.all_done()) << replay_line(seed);
    ASSERT_GT(simulation.evictions(), 0U) << replay_line(seed);
  }
}

TEST(ClusterSimulation, NobodySeesAnOldValueThoughPagesAreOfferedAllTheTime) {
  std::uint64_t returns = 0;
  for (const std::uint64_t seed : seeds(20)) {
    SimulationSettings settings = random_settings(seed);
    settings.hold = true;
    settings.offer_every = 40'000;  // longer than a slow node needs for it
    ClusterSimulation simulation(settings);
    for (int i = 0; i < settings.nodes; ++i) simulation.add_thread(racy(200, settings.pages));
    ASSERT_EQ(simulation.run(), "") << replay_line(seed);
    ASSERT_TRUE(simulation.all_done()) << replay_line(seed);
    returns += simulation.returns();
  }
  EXPECT_TRUE(returns > 20 || std::getenv("AMASIA_SIMULATION_SEED") != nullptr) << returns;
}

TEST(ClusterSimulation, TwoNodesNeedAtMostTwoAndAHalfMessagesAFault) {
  SimulationSettings settings;
  settings.pages = 32;
  settings.end = 60 * base::kSecond;
  ClusterSimulation simulation(settings);
  for (int i = 0; i < settings.nodes; ++i) simulation.add_thread(racy(4000, settings.pages));
  ASSERT_EQ(simulation.run(), "");
  ASSERT_TRUE(simulation.all_done());
  EXPECT_LE(static_cast<double>(simulation.messages()),
            2.5 * static_cast<double>(simulation.faults()));
}

}  // namespace
}  // namespace amasia::dsm::protocol
