// SPDX-License-Identifier: Apache-2.0
// What was measured of each node of a job, and its form as JSON (docs/calibration.md has the
// schema).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "machine/identity.hpp"

namespace amasia::machine {

// Of one node, and of its link to the origin. The origin's own link is none: its costs are 0.
struct NodeCalibration {
  double core_ops_per_s = 0;  // of one of its cores, while all of its threads work
  // A thread's wait for a page of the origin that nobody could foresee; for one in a row of pages.
  double fault_latency_ns = 0;
  double page_stream_ns = 0;
  // From here on the node reaches kBreakEvenPart of its peak; 0 on the origin, and where the
  // largest measured number of operations per byte was not enough (never, in practice).
  double break_even_ops_per_byte = 0;
  double break_even_ns_per_fault = 0;
  bool operator==(const NodeCalibration&) const = default;
};

enum class Method {
  kBrief,  // by a run itself at its start: latencies and speeds; break-even from the model
  kQuick,  // amasia calibrate --quick
  kFull,   // amasia calibrate
};

struct Calibration {
  Identity identity;
  Method method = Method::kBrief;
  std::int64_t measured_s = 0;         // since 1970
  std::vector<NodeCalibration> nodes;  // one for each of identity.nodes
  bool operator==(const Calibration&) const = default;

  // How much faster a core of the node is than one of the origin.
  double core_speed_ratio(NodeId node) const {
    return nodes[node.value].core_ops_per_s / nodes[0].core_ops_per_s;
  }
};

// What a node's measurements imply by the model, for a page that nobody could foresee. Pure.
void fill_break_even_from_model(NodeCalibration& node);

// An identity alone, as it stands in a calibration.
std::string to_json(const Identity& identity);
Result<Identity> parse_identity(std::string_view text);

// Several of them, the newest first.
std::string to_json(const std::vector<Calibration>& calibrations);
// The error is the rest of a sentence that begins with the file's name: "is no JSON: …", "has no
// number above 0 for calibrations[1].nodes[0].core_ops_per_s".
Result<std::vector<Calibration>> parse_calibrations(std::string_view text);

// What is used for this job, at this time: of the same identity, and not a brief one that is older
// than a day (a busy moment may have spoilt it). nullptr: none.
const Calibration* find_calibration(const std::vector<Calibration>& all, const Identity& identity,
                                    std::int64_t now_s);
// Takes the place of what there is of the same identity; the oldest beyond kMostCalibrations go.
void add_calibration(std::vector<Calibration>& all, Calibration calibration);

inline constexpr std::size_t kMostCalibrations = 32;
inline constexpr std::int64_t kBriefLifetime_s = 86400;

}  // namespace amasia::machine
