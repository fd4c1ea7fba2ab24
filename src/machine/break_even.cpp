// SPDX-License-Identifier: Apache-2.0
#include "machine/break_even.hpp"

#include <algorithm>
#include <cmath>

namespace amasia::machine {
namespace {

constexpr double kPageBytes = static_cast<double>(base::kPageSize);

double between(double low, double high, double fraction) {
  return low * std::pow(high / low, fraction);
}

}  // namespace

BreakEven model_break_even(double core_ops_per_s, double page_cost_ns, double fault_cost_ns,
                           Transfers transfers) {
  AMASIA_CHECK(core_ops_per_s > 0, "a core that does nothing has no break-even");
  AMASIA_CHECK(page_cost_ns >= 0 && fault_cost_ns >= 0, "a transfer takes some time");
  constexpr double kWaits = 1 - kBreakEvenPart;
  const bool turns = transfers == Transfers::kInTurns;
  const double work_ns = page_cost_ns * (turns ? kBreakEvenPart / kWaits : kBreakEvenPart);
  return {.ops_per_byte = work_ns * core_ops_per_s / 1e9 / kPageBytes,
          .fault_period_ns = turns ? fault_cost_ns / kWaits : fault_cost_ns};
}

double model_part(double core_ops_per_s, double page_cost_ns, double ops_per_byte,
                  Transfers transfers) {
  AMASIA_CHECK(core_ops_per_s > 0 && ops_per_byte > 0, "there is some work, which takes time");
  const double work_ns = ops_per_byte * kPageBytes / core_ops_per_s * 1e9;
  const double wait_ns =
      transfers == Transfers::kInTurns ? page_cost_ns : std::max(0.0, page_cost_ns - work_ns);
  return work_ns / (work_ns + wait_ns);
}

std::optional<BreakEven> measured_break_even(std::span<const CurvePoint> points, double peak) {
  AMASIA_CHECK(peak > 0, "a node without any throughput is not calibrated");
  const double enough = peak * kBreakEvenPart;
  std::size_t first = points.size();  // from here on all are above
  while (first > 0 && points[first - 1].ops_per_s >= enough) --first;
  if (first == points.size()) return std::nullopt;
  const CurvePoint& above = points[first];
  if (first == 0) return BreakEven{above.ops_per_byte, above.fault_period_ns};
  const CurvePoint& below = points[first - 1];
  AMASIA_CHECK(below.ops_per_byte > 0 && below.ops_per_s > 0 && below.fault_period_ns > 0,
               "a curve on log axes has positive values");
  const double fraction =
      std::log(enough / below.ops_per_s) / std::log(above.ops_per_s / below.ops_per_s);
  return BreakEven{between(below.ops_per_byte, above.ops_per_byte, fraction),
                   between(below.fault_period_ns, above.fault_period_ns, fraction)};
}

}  // namespace amasia::machine
