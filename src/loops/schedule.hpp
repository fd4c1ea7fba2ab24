// SPDX-License-Identifier: Apache-2.0
// The loop schedules, a file and a registry line each (schedule.cpp).
//
// A schedule either fixes every thread's share beforehand (`share`), or draws from pools: the
// team's global pool gives a node iterations, the node's pool gives a thread `thread_take` of them
// (libHetMP, ACM TOCS 2022, 3.1). What a node gets is `node_take` of what is left, or, where that
// is unset, what the probes tell (probe_dealer.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "loops/space.hpp"

namespace amasia::loops {

enum class ScheduleKind : std::uint8_t {
  kStatic,
  kDynamic,
  kGuided,
  kAuto,
  kFac2,
  kWf,
  kAwf,
  kHetProbe,
  kHetProbeI,
};
inline constexpr std::size_t kScheduleKinds = 9;

// What the program asked for. chunk 0: not given. monotonic: it wants rising numbers per thread.
struct ScheduleRequest {
  ScheduleKind kind = ScheduleKind::kStatic;
  bool monotonic = false;
  std::uint64_t chunk = 0;

  constexpr ScheduleRequest() = default;
  constexpr ScheduleRequest(ScheduleKind asked, std::uint64_t size, bool rising = false)
      : kind(asked), monotonic(rising), chunk(size) {}
};

// A node that takes from the global pool: how many threads it has and what part of the team's
// power; both are also known of the whole team.
struct Taker {
  std::uint32_t threads = 1;
  std::uint32_t all_threads = 1;
  std::uint64_t power = 1;
  std::uint64_t all_power = 1;
};

// What factoring schedules give out in equal parts before they look at what is left again.
struct Batch {
  std::uint64_t size = 0;
  std::uint64_t left = 0;
};

// What a node has of its last refill.
struct Stock {
  std::uint64_t remaining = 0;
  std::uint64_t refill = 0;  // its size when it came
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
  std::uint64_t (*node_take)(std::uint64_t remaining, std::uint64_t chunk, const Taker& taker,
                             Batch& batch);
  // How many of stock.remaining > 0 iterations to take; 1 … stock.remaining.
  std::uint64_t (*thread_take)(const Stock& stock, std::uint64_t chunk);
  // Weights follow what is measured while the loop runs.
  bool adapts = false;

  constexpr bool pooled() const { return share == nullptr; }
  constexpr bool probes() const { return pooled() && node_take == nullptr; }
};

// Each is defined in the file of its name.
extern const Schedule kStaticSchedule;
extern const Schedule kDynamicSchedule;
extern const Schedule kGuidedSchedule;
extern const Schedule kAutoSchedule;
extern const Schedule kFac2Schedule;
extern const Schedule kWfSchedule;
extern const Schedule kAwfSchedule;
extern const Schedule kHetProbeSchedule;
extern const Schedule kHetProbeISchedule;

// The schedule that carries out a request. Any thread; never fails.
const Schedule& schedule_of(ScheduleKind kind);
// For options and statistics; nullptr when no schedule has the name.
const Schedule* schedule_named(std::string_view name);

}  // namespace amasia::loops
