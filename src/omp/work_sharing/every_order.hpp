// SPDX-License-Identifier: Apache-2.0
// For tests: every order of what threads and messages can do in a small model of a loop.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>

namespace amasia::omp {

struct Outcome {
  std::size_t states = 0;
  std::size_t ends = 0;
  std::string fault;  // of the first world that has one, or "stuck"
};

// A World is a value: copies share nothing. name() tells worlds apart; act(id) is thread id's next
// step, deliver(channel) the arrival of that channel's first message; over() when all is done.
template <typename World>
Outcome explore(World first) {
  Outcome outcome;
  std::unordered_set<std::string> seen;
  std::deque<World> open;
  const auto reach = [&](World world) {
    if (!world.fault().empty()) outcome.fault = world.fault();
    if (seen.insert(world.name()).second) open.push_back(std::move(world));
  };
  reach(std::move(first));
  while (!open.empty() && outcome.fault.empty()) {
    const World world = std::move(open.back());
    open.pop_back();
    ++outcome.states;
    if (world.over()) {
      ++outcome.ends;
      continue;
    }
    bool stuck = true;
    for (std::uint32_t id = 0; id < world.thread_count(); ++id) {
      if (!world.can_act(id)) continue;
      stuck = false;
      World next = world;
      next.act(id);
      reach(std::move(next));
    }
    for (std::size_t channel = 0; channel < world.channel_count(); ++channel) {
      if (!world.can_deliver(channel)) continue;
      stuck = false;
      World next = world;
      next.deliver(channel);
      reach(std::move(next));
    }
    if (stuck) outcome.fault = "stuck";
  }
  return outcome;
}

}  // namespace amasia::omp
