// SPDX-License-Identifier: Apache-2.0
// Goes through all that a small world can do, for tests of protocols. A world says what can happen
// next, and what is wrong with it; every world is looked at once. A run that could go on for ever
// is a finding too: all that these worlds do is bounded but for what nodes say to each other.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace amasia::nodes::model {

struct Outcome {
  std::string finding;  // "": nothing is wrong
  std::size_t worlds = 0;
};

// World: key() tells worlds apart; successors() are those after one more event; flaw() is what is
// wrong with it, "" if nothing; flaw_at_end() the same for one after which nothing can happen.
template <typename World>
Outcome explore(const World& first, std::size_t most_worlds) {
  enum class Mark : std::uint8_t { kOpen, kClosed };
  struct Frame {
    std::string key;
    std::vector<World> next;
    std::size_t at = 0;
  };
  std::unordered_map<std::string, Mark> seen;
  std::vector<Frame> path;
  const auto enter = [&](const World& world) -> std::string {
    const std::string key = world.key();
    const auto [found, is_new] = seen.try_emplace(key, Mark::kOpen);
    if (!is_new) return found->second == Mark::kOpen ? "it can go on for ever" : "";
    if (std::string flaw = world.flaw(); !flaw.empty()) return flaw;
    path.push_back({key, world.successors()});
    return path.back().next.empty() ? world.flaw_at_end() : "";
  };
  Outcome outcome;
  outcome.finding = enter(first);
  while (!path.empty() && outcome.finding.empty() && seen.size() <= most_worlds) {
    if (path.back().at == path.back().next.size()) {
      seen[path.back().key] = Mark::kClosed;
      path.pop_back();
    } else {
      const World next = std::move(path.back().next[path.back().at++]);
      outcome.finding = enter(next);
    }
  }
  if (seen.size() > most_worlds) outcome.finding = "there are more worlds than expected";
  outcome.worlds = seen.size();
  return outcome;
}

}  // namespace amasia::nodes::model
