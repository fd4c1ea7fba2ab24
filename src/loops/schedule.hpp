// SPDX-License-Identifier: Apache-2.0
// The loop schedules, a file and a registry line each (schedule.cpp).
//
// A schedule either fixes every thread's share beforehand (`share`), or draws from pools: the
// team's global pool gives a node `node_take` iterations, the node's pool gives a thread
// `thread_take` (libHetMP, ACM TOCS 2022, 3.1). Exactly one of the two ways is set.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "loops/space.hpp"

namespace amasia::loops {

enum class ScheduleKind : std::uint8_t { kStatic, kDynamic, kGuided, kAuto };
inline constexpr std::size_t kScheduleKinds = 4;

// What the program asked for. chunk 0: not given.
struct ScheduleRequest {
  ScheduleKind kind = ScheduleKind::kStatic;
  std::uint64_t chunk = 0;
};

// Who shares a loop: `threads` of the whole team, of which `node_threads` are on the node at hand.
struct Sharers {
  std::uint32_t node_threads = 1;
  std::uint32_t threads = 1;
};

struct Schedule {
  ScheduleKind kind;
  std::string_view name;
  // A thread's share number `round` (0, 1, …) of a loop of `count` iterations; nullopt: no more.
  std::optional<Iterations> (*share)(std::uint64_t count, std::uint64_t chunk,
                                     std::uint32_t thread, std::uint32_t threads,
                                     std::uint64_t round);
  // How many of `remaining` > 0 iterations to take; 1 … remaining.
  std::uint64_t (*node_take)(std::uint64_t remaining, std::uint64_t chunk, Sharers sharers);
  std::uint64_t (*thread_take)(std::uint64_t remaining, std::uint64_t chunk, Sharers sharers);

  constexpr bool pooled() const { return share == nullptr; }
};

// Each is defined in the file of its name.
extern const Schedule kStaticSchedule;
extern const Schedule kDynamicSchedule;
extern const Schedule kGuidedSchedule;
extern const Schedule kAutoSchedule;

// The schedule that carries out a request. Any thread; never fails.
const Schedule& schedule_of(ScheduleKind kind);
// For options and statistics; nullptr when no schedule has the name.
const Schedule* schedule_named(std::string_view name);

}  // namespace amasia::loops
