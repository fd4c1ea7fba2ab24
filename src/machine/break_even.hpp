// SPDX-License-Identifier: Apache-2.0
// When a node is worth sharing with (libHetMP, section 3.4). Pure.
//
// A node that makes K operations for each byte that it takes from another node works for
//
//     work(K) = K * page size / core speed          ns a page, and waits for
//     wait(K) = cost                                if transfers and work take turns, or
//     wait(K) = max(0, cost - work(K))              if they overlap completely.
//
// Its throughput is the part work / (work + wait) of what it reaches without transfers, its peak.
// Break-even is the K from which on that part is at least kBreakEvenPart. With it comes the fault
// period, the mean time from one fault to the next, that a thread sees there:
//
//     turns:    work = cost * part / (1 - part)     period = cost / (1 - part)
//     overlap:  work = cost * part                  period = cost
//
// A real node lies between the two, because read-ahead overlaps some of the transfers. 0.7 is where
// the paper put its faster link: a fault costs 30 us there, and sharing pays from 100 us a fault.
#pragma once

#include <optional>
#include <span>

#include "base/base.hpp"

namespace amasia::machine {

inline constexpr double kBreakEvenPart = 0.7;

enum class Transfers { kInTurns, kOverlapped };

struct BreakEven {
  double ops_per_byte = 0;
  double fault_period_ns = 0;
};

// For a thread on a core of `core_ops_per_s` to which a page costs `page_cost_ns` and a fault
// `fault_cost_ns` (a fault may bring several pages). Speed > 0, costs >= 0.
BreakEven model_break_even(double core_ops_per_s, double page_cost_ns, double fault_cost_ns,
                           Transfers transfers);
// The part of the peak that the model gives at `ops_per_byte`.
double model_part(double core_ops_per_s, double page_cost_ns, double ops_per_byte,
                  Transfers transfers);

// What was measured at one number of operations per byte.
struct CurvePoint {
  double ops_per_byte = 0;
  double ops_per_s = 0;        // of the whole node
  double fault_period_ns = 0;  // of a thread: its time by its faults
};

// Where a measured curve comes to stay at kBreakEvenPart of `peak` or above, interpolated on log
// axes. `points` by rising ops_per_byte, all values > 0. The first point, if all are above; nothing
// where even the last one is below.
std::optional<BreakEven> measured_break_even(std::span<const CurvePoint> points, double peak);

}  // namespace amasia::machine
