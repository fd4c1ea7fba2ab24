// SPDX-License-Identifier: Apache-2.0
#include "omp/region/thread_deal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace amasia::omp {
namespace {

// Of two divisions the one with fewer threads is preferred unless the other is so much better. For
// the size of all teams it has to be a difference that no measurement makes up.
constexpr double kWorthMoreThreads = 0.98, kWorthLargerTeams = 0.9;

void check(const Deal& deal) {
  AMASIA_CHECK(deal.capacity.size() == deal.powers.size(), "every node has a capacity and a power");
  AMASIA_CHECK(!deal.powers.empty() && deal.capacity[0] > 0, "the origin has a core");
  AMASIA_CHECK(deal.threads > 0, "a team has a thread");
}

std::vector<NodeShare> shares_of(std::span<const std::uint32_t> threads) {
  std::vector<NodeShare> shares;
  std::uint32_t offset = 0;
  for (std::size_t node = 0; node < threads.size(); ++node) {
    if (threads[node] == 0) continue;
    shares.push_back(
        {NodeId{static_cast<NodeId::representation>(node)}, threads[node], offset});
    offset += threads[node];
  }
  return shares;
}

// `layers` threads on each core of the fastest node, and as many on the others' as is fair; a node
// that is of use has one.
std::vector<std::uint32_t> layered(std::span<const std::uint32_t> capacity,
                                   std::span<const double> core_speeds, std::uint32_t layers) {
  const double fastest = *std::max_element(core_speeds.begin(), core_speeds.end());
  std::vector<std::uint32_t> threads(capacity.size(), 0);
  for (std::size_t i = 0; i < capacity.size(); ++i) {
    if (core_speeds[i] <= 0) continue;
    const double wanted = std::round(layers * core_speeds[i] / fastest);
    threads[i] = capacity[i] * std::max<std::uint32_t>(1, static_cast<std::uint32_t>(wanted));
  }
  return threads;
}

// The time that a work takes which is divided by threads; 1 would be ideal.
double time_of(std::span<const std::uint32_t> threads, std::span<const double> powers) {
  double longest = 0, all = 0, power = 0;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    all += threads[i];
    power += powers[i];
    if (threads[i] > 0) longest = std::max(longest, threads[i] / powers[i]);
  }
  return longest / all * power;
}

std::vector<double> core_speeds_of(const Deal& deal) {
  std::vector<double> speeds(deal.powers.begin(), deal.powers.end());
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    speeds[i] = deal.capacity[i] > 0 ? speeds[i] / deal.capacity[i] : 0;
  }
  return speeds;
}

std::vector<std::uint32_t> best_layers(std::span<const std::uint32_t> capacity,
                                       std::span<const double> core_speeds,
                                       std::uint64_t most_threads, double worth) {
  std::vector<double> powers(core_speeds.begin(), core_speeds.end());
  for (std::size_t i = 0; i < powers.size(); ++i) powers[i] *= capacity[i];
  std::vector<std::uint32_t> best;
  double best_time = std::numeric_limits<double>::infinity();
  for (std::uint32_t layers = 1; layers <= kMostThreadsPerCore; ++layers) {
    std::vector<std::uint32_t> threads = layered(capacity, core_speeds, layers);
    const auto all = std::accumulate(threads.begin(), threads.end(), std::uint64_t{0});
    if (all > most_threads) break;
    const double time = time_of(threads, powers);
    if (time >= worth * best_time) continue;
    best_time = time;
    best = std::move(threads);
  }
  return best;
}

// Exactly `count` threads, one at a time to the node that is through with its share first.
std::vector<std::uint32_t> one_by_one(std::uint32_t count, std::span<const double> powers) {
  std::vector<std::uint32_t> threads(powers.size(), 0);
  for (std::uint32_t dealt = 0; dealt < count; ++dealt) {
    std::size_t least = 0;
    for (std::size_t i = 1; i < powers.size(); ++i) {
      if (powers[i] <= 0) continue;
      if ((threads[i] + 1) / powers[i] < (threads[least] + 1) / powers[least]) least = i;
    }
    // Thread 0 is the origin's, whose thread forks.
    if (threads[0] == 0 && dealt + 1 == count) least = 0;
    ++threads[least];
  }
  return threads;
}

}  // namespace

void set_speeds(std::span<NodeShare> shares, std::span<const double> powers, bool alone) {
  const auto speed_of = [&](const NodeShare& share) {
    if (alone && share.node != base::kOrigin) return 0.0;
    return powers[share.node.value] / share.threads;
  };
  double fastest = 0;
  for (const NodeShare& share : shares) fastest = std::max(fastest, speed_of(share));
  AMASIA_CHECK(fastest > 0, "some node takes part in what is shared");
  for (NodeShare& share : shares) {
    const double speed = speed_of(share) / fastest;
    const double scaled = std::round(speed * loops::kEvenSpeed);
    share.speed = speed > 0 ? std::max(1u, static_cast<std::uint32_t>(scaled)) : 0;
  }
}

std::vector<NodeShare> deal_by_core(const Deal& deal) {
  check(deal);
  std::vector<std::uint32_t> capacity(deal.capacity.begin(), deal.capacity.end());
  for (std::size_t i = 0; i < capacity.size(); ++i) {
    if (deal.powers[i] <= 0) capacity[i] = 0;
  }
  // Where another node does it all, the thread that forks still is the team's. Threads that have to
  // be there but are not to work are better on cores that have no work either.
  if (capacity[0] == 0) capacity[0] = deal.exact ? deal.capacity[0] : 1;
  const auto cores = std::accumulate(capacity.begin(), capacity.end(), std::uint64_t{0});
  const std::uint64_t threads =
      deal.exact ? deal.threads : std::min<std::uint64_t>(deal.threads, cores);
  std::vector<NodeShare> shares = pack_threads(static_cast<std::uint32_t>(threads), capacity);
  set_speeds(shares, deal.powers, false);
  return shares;
}

std::vector<NodeShare> deal_by_power(const Deal& deal) {
  check(deal);
  AMASIA_CHECK(deal.powers[0] > 0, "threads that are all alike include the origin's");
  if (!deal.exact) {
    const auto layers =
        best_layers(deal.capacity, core_speeds_of(deal), deal.threads, kWorthMoreThreads);
    if (!layers.empty()) return shares_of(layers);
  }
  return shares_of(one_by_one(deal.threads, deal.powers));
}

std::uint32_t threads_to_divide(std::span<const std::uint32_t> capacity,
                                std::span<const double> core_speeds) {
  const auto threads = best_layers(
      capacity, core_speeds, std::numeric_limits<std::uint32_t>::max(), kWorthLargerTeams);
  return std::accumulate(threads.begin(), threads.end(), std::uint32_t{0});
}

}  // namespace amasia::omp
