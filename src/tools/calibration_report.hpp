// SPDX-License-Identifier: Apache-2.0
// What `amasia calibrate` makes of the figures of its program: break-even values, a table, a plot.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "machine/machine.hpp"

namespace amasia::tools {

struct MeasuredNode {
  std::uint32_t threads = 1;
  double peak_ops_per_s = 0;  // of the whole node, without transfers
  double fault_latency_ns = 0;
  double page_stream_ns = 0;
  // Without any work, all of the node's threads: what a thread pays for a page, and for a fault.
  double bare_page_ns = 0;
  double bare_fault_ns = 0;
  std::vector<machine::CurvePoint> points;
};

struct Measurements {
  std::optional<machine::Identity> identity;  // none where the program ran by itself
  std::vector<MeasuredNode> nodes;            // the origin is the first
};

// What the calibration program printed.
Result<Measurements> parse_measurements(std::string_view text);

// Of a node other than the origin. The model has two bounds, see machine/break_even.hpp.
struct Evaluation {
  std::optional<machine::BreakEven> measured;
  machine::BreakEven overlapped, in_turns;
  // Whether what was measured lies between the bounds, give or take one step of the curve, a factor
  // of two.
  bool agrees() const;
};
Evaluation evaluate(const MeasuredNode& node);

// What is kept. Without a measured break-even the model's upper bound is.
machine::Calibration calibration_of(const Measurements& measured, machine::Method method,
                                    std::int64_t now_s);

std::string table_of(const Measurements& measured, const machine::Identity& identity);

// For gnuplot 5, which writes a PNG to `path`.
std::string plot_script(const Measurements& measured, const machine::Identity& identity,
                        const std::string& path);

}  // namespace amasia::tools
