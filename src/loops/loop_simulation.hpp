// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: loops in virtual time on machines that there are not. Nodes of unlike
// speed, iterations whose cost varies along the loop, pages that a node waits for when another one
// touched them last, messages that take a while. Deterministic: no clock, no chance but by seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "loops/loops.hpp"

namespace amasia::loops::simulation {

struct Machine {
  std::string name;
  std::uint32_t threads = 2;   // of each node
  std::vector<double> speeds;  // of the nodes' cores
  double latency_ns = 20'000;  // of a message
};

// An iteration takes cost(i) / speed. `affinity`: a factor for a node's speed in iteration i.
struct Workload {
  std::string name;
  std::uint64_t count = 0;
  std::function<double(std::uint64_t)> cost;
  std::function<double(std::uint64_t, std::size_t)> affinity;  // unset: 1
  std::uint64_t page = 1;                                      // iterations that share a page
  double page_ns = 0;  // a node's wait for a page that another one has
  bool irregular = false;
};

class Simulation {
 public:
  Simulation(Machine machine, Workload work)
      : machine_(std::move(machine)), work_(std::move(work)) {
    for (std::size_t node = 0; node < machine_.speeds.size(); ++node) {
      std::vector<double> sums(work_.count + 1, 0);
      for (std::uint64_t i = 0; i < work_.count; ++i) {
        const double factor = work_.affinity ? work_.affinity(i, node) : 1;
        sums[i + 1] = sums[i] + work_.cost(i) / (machine_.speeds[node] * factor);
      }
      sums_.push_back(std::move(sums));
    }
  }

  // What the loop takes in its run number 1, 2, … `runs`, each of which finds all data on node 0.
  // `with_speeds`: the speeds of the nodes' cores are known beforehand, from the loop's region.
  std::vector<double> run(ScheduleKind kind, std::uint64_t chunk, ProbeRules rules, int runs,
                          bool with_speeds = false) {
    with_speeds_ = with_speeds;
    ProbeCache cache;
    NextRun next;
    late_.assign(nodes(), {});
    std::vector<double> out;
    for (int i = 0; i < runs; ++i) {
      owners_.assign(work_.count / work_.page + 1, 0);
      if (!schedule_of(kind).pooled()) {
        out.push_back(fixed_run(kind, chunk));
        continue;
      }
      LoopTerms terms;
      terms.schedule = {kind, chunk};
      terms.rules = rules;
      terms.count = work_.count;
      terms.known = next.known;
      out.push_back(pooled_run(terms, next, cache));
    }
    return out;
  }

  // What a static loop takes whose iterations are handed out in parts, by the nodes' speeds, or
  // evenly at first; and what that has told of its cost.
  double run_in_parts(bool with_speeds = true) {
    with_speeds_ = with_speeds;
    ProbeCache cache;
    NextRun next;
    late_.assign(nodes(), {});
    owners_.assign(work_.count / work_.page + 1, 0);
    LoopTerms terms;
    terms.schedule = {ScheduleKind::kHetProbeI, 0};
    terms.count = work_.count;
    terms.known = terms.by_region = true;
    return pooled_run(terms, next, cache);
  }
  const CostSketch& sketch() const { return sketch_; }

  // The best that is found with all costs known: one node alone, or neighbouring runs of iterations
  // for the threads of all nodes, or of the first ones, that all end at once.
  double ideal() {
    double best = 0;
    for (std::size_t node = 0; node < nodes(); ++node) {
      const double pages = static_cast<double>(work_.count) / static_cast<double>(work_.page);
      const double waits = node == 0 ? 0 : pages * work_.page_ns;
      const double alone = (sums_[node][work_.count] + waits) / machine_.threads;
      best = node == 0 ? alone : std::min(best, alone);
    }
    for (std::size_t used = 2; used <= nodes(); ++used) {
      double low = 0, high = best;
      if (!fits(used, high)) continue;
      for (int step = 0; step < 50; ++step) {
        const double middle = (low + high) / 2;
        (fits(used, middle) ? high : low) = middle;
      }
      best = high;
    }
    return best;
  }

 private:
  struct Event {
    double time;
    std::uint64_t order;
    std::function<void(double)> act;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Node {
    NodePool pool;
    Report news;
    std::vector<std::uint32_t> waiting;
  };

  std::size_t nodes() const { return machine_.speeds.size(); }

  double compute(std::size_t node, Iterations range) const {
    return sums_[node][range.end] - sums_[node][range.begin];
  }
  double stall(std::size_t node, Iterations range) {
    double out = 0;
    if (range.empty()) return 0;
    for (std::uint64_t page = range.begin / work_.page; page <= (range.end - 1) / work_.page;
         ++page) {
      if (owners_[page] == node) continue;
      owners_[page] = node;
      out += work_.page_ns;
    }
    return out;
  }

  double fixed_run(ScheduleKind kind, std::uint64_t chunk) {
    const auto threads = static_cast<std::uint32_t>(nodes() * machine_.threads);
    double longest = 0;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      const std::size_t node = thread / machine_.threads;
      double time = 0;
      for (std::uint64_t round = 0;; ++round) {
        const auto range = schedule_of(kind).share(work_.count, chunk, thread, threads, round);
        if (!range) break;
        time += compute(node, *range) + stall(node, *range);
      }
      longest = std::max(longest, time);
    }
    return longest;
  }

  void at(double time, std::function<void(double)> act) {
    events_.push({time, order_++, std::move(act)});
  }

  std::vector<Power> begin_with(const LoopTerms& terms, const NextRun& next) const {
    std::vector<Power> powers;
    for (std::size_t r = 0; r < nodes(); ++r) {
      const double speed = with_speeds_ ? machine_.speeds[r] : 1;
      const auto first = static_cast<std::uint32_t>(speed * kEvenSpeed);
      const bool measured = terms.known && !terms.by_region;
      powers.push_back({machine_.threads, measured ? next.speeds[r] : first});
    }
    return powers;
  }

  double pooled_run(const LoopTerms& terms, NextRun& next, ProbeCache& cache) {
    const std::vector<Power> powers = begin_with(terms, next);
    Dealer dealer(terms, powers);
    std::vector<Node> team(nodes());
    std::vector<Report> totals = std::exchange(late_, std::vector<Report>(nodes()));
    bool ended = false;
    double finished = 0;
    const std::vector<std::uint32_t> threads(nodes(), machine_.threads);
    const auto latency = [this](std::size_t r) { return r == 0 ? 0 : machine_.latency_ns; };
    std::function<void(double, std::size_t, std::uint32_t, bool)> step;
    const auto receive = [&](double now, Grant grant) {
      Node& node = team[grant.rank];
      node.pool.deliver(grant.refill);
      const auto waiting = std::exchange(node.waiting, {});
      for (const std::uint32_t thread : waiting) step(now, grant.rank, thread, false);
    };
    const auto ask = [&](double now, std::size_t rank, const Report& report) {
      std::vector<Grant> grants;
      (ended ? late_ : totals)[rank] += report;
      dealer.ask(rank, report, grants);
      for (const Grant& grant : grants) {
        if (!grant.refill.more && !ended) {
          ended = true;
          next = cache.finish(1, threads, totals);
        }
        at(now + latency(grant.rank), [&, grant](double then) { receive(then, grant); });
      }
    };
    step = [&](double now, std::size_t rank, std::uint32_t thread, bool returns) {
      Node& node = team[rank];
      const NodePool::Taken taken = node.pool.take(returns);
      using Answer = NodePool::Answer;
      if (taken.answer == Answer::kAsk || taken.answer == Answer::kIterationsAndAsk) {
        const Report report = std::exchange(node.news, {});
        at(now + latency(rank), [&, rank, report](double then) { ask(then, rank, report); });
      }
      if (taken.answer == Answer::kDone) {
        finished = std::max(finished, now);
      } else if (!taken.range.empty()) {
        const double works = compute(rank, taken.range), waits = stall(rank, taken.range);
        const auto compute = static_cast<std::uint64_t>(works);
        const Report report{taken.range.size(), compute, static_cast<std::uint64_t>(waits), 0,
                            compute};
        at(now + works + waits, [&, rank, thread, report](double then) {
          team[rank].news += report;
          step(then, rank, thread, true);
        });
      } else {
        node.waiting.push_back(thread);
      }
    };
    for (std::size_t r = 0; r < nodes(); ++r) {
      team[r].pool =
          NodePool(terms.schedule, terms.count, machine_.threads, first_refill(terms, powers, r));
    }
    for (std::uint32_t thread = 0; thread < machine_.threads; ++thread) {
      for (std::size_t r = 0; r < nodes(); ++r) {
        at(0, [&, r, thread](double now) { step(now, r, thread, false); });
      }
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      event.act(event.time);
    }
    AMASIA_CHECK(dealer.remaining() == 0, "the whole loop was given out");
    if (dealer.probe() != nullptr) sketch_ = dealer.probe()->sketch();
    for (std::size_t r = 0; r < nodes(); ++r) late_[r] += team[r].news;
    return finished;
  }

  // Whether the threads of the first `used` nodes, one after the other, get through in `time`.
  bool fits(std::size_t used, double time) const {
    std::uint64_t next = 0;
    for (std::size_t node = 0; node < used; ++node) {
      for (std::uint32_t thread = 0; thread < machine_.threads; ++thread) {
        const double waits = node == 0 ? 0 : work_.page_ns / static_cast<double>(work_.page);
        std::uint64_t low = next, high = work_.count;
        while (low < high) {
          const std::uint64_t middle = high - (high - low) / 2;
          const double takes = compute(node, {next, middle}) +
                               waits * static_cast<double>(middle - next);
          if (takes <= time) {
            low = middle;
          } else {
            high = middle - 1;
          }
        }
        next = low;
      }
    }
    return next == work_.count;
  }

  Machine machine_;
  Workload work_;
  std::vector<std::vector<double>> sums_;  // by node: what the first i iterations take
  std::vector<std::size_t> owners_;        // of the pages
  bool with_speeds_ = false;
  CostSketch sketch_;                      // of the last run in parts
  std::vector<Report> late_;               // what nodes told when the loop had ended, or not at all
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
};

// The machines and loops that schedules are held against each other on.
inline std::vector<Machine> machines() {
  std::vector<Machine> out = {{"2 alike", 2, {1, 1}},
                              {"2, 1:0.5", 2, {1, 0.5}},
                              {"2, 1:0.33", 2, {1, 0.33}},
                              {"2, 0.1:1", 2, {0.1, 1}},
                              {"4 unlike", 2, {1, 0.5, 0.33, 0.25}},
                              {"8, half slow", 2, {1, 1, 1, 1, 0.3, 0.3, 0.3, 0.3}}};
  Machine steps{"10, 10:1", 2, {}};
  for (int i = 10; i > 0; --i) steps.speeds.push_back(i / 10.0);
  out.push_back(steps);
  Machine many{"64 unlike", 1, {}};
  for (int i = 0; i < 64; ++i) many.speeds.push_back(1.0 / (1 + i % 4));
  out.push_back(many);
  return out;
}

// A number from 0 to 1 that looks like chance.
inline double scatter(std::uint64_t i) {
  std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull;
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 29;
  return static_cast<double>(x >> 11) / 9007199254740992.0;
}

// `dear`: a page takes twice as long to come as to compute on; else a fiftieth.
inline std::vector<Workload> workloads(bool dear) {
  constexpr std::uint64_t kCount = 12'000, kPage = 10;
  constexpr double kCost = 20'000;
  const double page_ns = kPage * kCost * (dear ? 2.0 : 0.02);
  const auto even = [](std::uint64_t) { return kCost; };
  const auto rising = [](std::uint64_t i) { return 2 * kCost * double(i) / double(kCount); };
  const auto random = [](std::uint64_t i) {
    const double cube = scatter(i) * scatter(i) * scatter(i);
    return 0.1 * kCost + 10 * kCost * cube * cube * cube;
  };
  // What the first half computes suits the even nodes, the second half the odd ones.
  const auto phases = [](std::uint64_t i, std::size_t node) {
    return (i < kCount / 2) == (node % 2 == 0) ? 1.0 : 0.25;
  };
  return {{"regular", kCount, even, {}, kPage, page_ns, false},
          {"linear", kCount, rising, {}, kPage, page_ns, true},
          {"random", kCount, random, {}, kPage, page_ns, true},
          {"phases", kCount, even, phases, kPage, page_ns, true}};
}

}  // namespace amasia::loops::simulation
