// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>

#include "devices/policy/placement.hpp"

namespace amasia::devices::policy {
namespace {

class Delay final : public PlacementPolicy {
 public:
  PlacementAnswer choose(PlacementQuestion question) override {
    const auto home = device_with_most(question);
    if (home && contains(question.fitting, *home)) return {home};
    Nanos until = -1;
    if (home && still_waits(question, *home, until)) return {std::nullopt, until};
    return {turns_.choose(question.fitting, question.ledger)};
  }

 private:
  TwoLevelRoundRobin turns_;
};

// Where most of a task's input is on one device, there; else where least is queued, by what the
// devices can take.
class Hybrid final : public PlacementPolicy {
 public:
  PlacementAnswer choose(PlacementQuestion question) override {
    const auto home = device_with_most(question);
    const Ledger& ledger = question.ledger;
    if (home && ledger.present(question.task, *home) >= ledger.missing(question.task, *home)) {
      if (contains(question.fitting, *home)) return {home};
      Nanos until = -1;
      if (still_waits(question, *home, until)) return {std::nullopt, until};
    }
    double least = std::numeric_limits<double>::infinity();
    DeviceSet best = 0;
    for (DeviceSet rest = question.fitting; rest != 0; rest &= rest - 1) {
      const DeviceId id(static_cast<std::uint16_t>(std::countr_zero(rest)));
      const DeviceUse& device = ledger.device(id);
      const double load = static_cast<double>(device.in_flight) / device.terms.depth;
      if (load < least) best = 0;
      if (load <= least) best |= set_of(id);
      least = std::min(least, load);
    }
    return {turns_.choose(best, ledger)};
  }

 private:
  TwoLevelRoundRobin turns_;
};

}  // namespace

std::optional<DeviceId> device_with_most(const PlacementQuestion& question) {
  if (question.task.resident.empty()) return std::nullopt;
  std::optional<DeviceId> best;
  Bytes most = 0;
  for (DeviceSet rest = question.eligible; rest != 0; rest &= rest - 1) {
    const DeviceId id(static_cast<std::uint16_t>(std::countr_zero(rest)));
    const Bytes present = question.ledger.present(question.task, id);
    // Of several that have as much, one that has room.
    const bool better =
        present > most || (present == most && present > 0 && !contains(question.fitting, *best) &&
                           contains(question.fitting, id));
    if (better) best = id;
    most = std::max(most, present);
  }
  return best;
}

bool still_waits(const PlacementQuestion& question, DeviceId home, Nanos& until) {
  if (question.waits_since < 0) question.waits_since = question.now;
  const Nanos saved = question.estimates.copy(question.ledger.present(question.task, home), home);
  until = question.waits_since + saved;
  return question.now < until;
}

const Placement kDelayPlacement = {
    .name = "delay",
    .description = "where the data is, waiting for as long as its copy would take; else two-level",
    .make = [] { return std::unique_ptr<PlacementPolicy>(std::make_unique<Delay>()); }};

const Placement kHybridPlacement = {
    .name = "hybrid",
    .description = "as delay where most of the data is on one device, else the least loaded",
    .make = [] { return std::unique_ptr<PlacementPolicy>(std::make_unique<Hybrid>()); }};

}  // namespace amasia::devices::policy
