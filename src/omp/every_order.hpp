// SPDX-License-Identifier: Apache-2.0
// For tests: every order of what threads and messages can do in a small model of a protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace amasia::omp {

struct Outcome {
  std::size_t states = 0;
  std::size_t ends = 0;  // of these, in which nothing can happen any more, as all is done
  std::string fault;     // of the first world that has one, or "stuck"
};

// A World is a value: copies share nothing. name() tells worlds apart; choices() are what can
// happen next, and take() does one of them; over() when all is done. `at_end` is given each world
// that is over and in which nothing can happen any more.
template <typename World, typename AtEnd>
Outcome explore(World first, AtEnd at_end) {
  Outcome outcome;
  std::unordered_set<std::string> seen;
  std::vector<World> open;
  const auto reach = [&](World world) {
    if (!world.fault().empty()) outcome.fault = world.fault();
    if (seen.insert(world.name()).second) open.push_back(std::move(world));
  };
  reach(std::move(first));
  while (!open.empty() && outcome.fault.empty()) {
    const World world = std::move(open.back());
    open.pop_back();
    ++outcome.states;
    const auto choices = world.choices();
    for (const auto& choice : choices) {
      World next = world;
      next.take(choice);
      reach(std::move(next));
    }
    if (!choices.empty()) continue;
    if (world.over()) {
      ++outcome.ends;
      at_end(world);
    } else {
      outcome.fault = "stuck";
    }
  }
  return outcome;
}

template <typename World>
Outcome explore(World first) {
  return explore(std::move(first), [](const World&) {});
}

// A choice of models in which threads make steps, and channels deliver messages in their order.
struct StepOrArrival {
  bool arrives = false;
  std::uint32_t which = 0;  // thread, or channel
};

// In `world`, which has so many of both, until it is over.
template <typename World>
std::vector<StepOrArrival> steps_and_arrivals(const World& world) {
  std::vector<StepOrArrival> choices;
  if (world.over()) return choices;
  for (std::uint32_t id = 0; id < world.thread_count(); ++id) {
    if (world.can_act(id)) choices.push_back({false, id});
  }
  for (std::uint32_t channel = 0; channel < world.channel_count(); ++channel) {
    if (world.can_deliver(channel)) choices.push_back({true, channel});
  }
  return choices;
}

}  // namespace amasia::omp
