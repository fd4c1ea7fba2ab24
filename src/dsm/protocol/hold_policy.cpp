// SPDX-License-Identifier: Apache-2.0
#include "dsm/protocol/hold_policy.hpp"

#include <algorithm>

namespace amasia::dsm::protocol {
namespace {

HoldDecision recheck_after(Nanos wish, const HoldInput& input, const HoldSettings& settings) {
  // The reason to keep the page ends with the turn.
  const Nanos to_turn_end = input.turn.end - input.now;
  return {HoldAction::kRecheck, std::max(settings.recheck, std::min(wish, to_turn_end))};
}

bool floor_reached(const HoldInput& input, const HoldSettings& settings) {
  return input.cpu_used < 0 || input.faulted_since || input.cpu_used >= settings.floor_cpu ||
         input.now - input.installed_at >= settings.floor_limit;
}

HoldDecision probe(HoldRecord& record, const HoldInput& input, const HoldSettings& settings) {
  const Nanos cpu = std::max<Nanos>(input.cpu_used, 0);
  if (record.armed && record.hit) {
    record.armed = record.hit = false;
    record.probe_base_cpu = cpu;
    record.probe_interval = std::min(2 * record.probe_interval, settings.probe_last);
  }
  if (record.armed) {
    const bool quiet = cpu - record.armed_cpu >= settings.probe_quiet_cpu ||
                       input.now - record.armed_at >= settings.probe_quiet;
    return quiet ? HoldDecision{HoldAction::kRelease}
                 : recheck_after(settings.recheck, input, settings);
  }
  const Nanos since = cpu - record.probe_base_cpu;
  const bool thread_runs_no_more = input.now - input.installed_at - cpu >= settings.floor_limit;
  if (since < record.probe_interval && !thread_runs_no_more)
    return recheck_after(record.probe_interval - since, input, settings);
  record.armed = true;
  record.hit = false;
  record.armed_cpu = cpu;
  record.armed_at = input.now;
  return {HoldAction::kProbe, settings.recheck};
}

}  // namespace

HoldRecord begin_hold(const HoldSettings& settings) {
  HoldRecord record;
  record.probe_interval = settings.probe_first;
  return record;
}

HoldDecision decide(HoldRecord& record, const HoldInput& input, const HoldSettings& settings) {
  AMASIA_CHECK(input.now >= input.turn.begin && input.now < input.turn.end,
               "the holding policy is asked about another turn");
  if (input.paused_since) return {HoldAction::kRelease};
  if (!floor_reached(input, settings)) return {HoldAction::kRecheck, settings.recheck};
  if (input.turn.owner != input.self) return {HoldAction::kRelease};
  if (input.turn.stretched && input.exclusive && input.cpu_used >= 0) {
    const bool sleeps = !input.collecting && input.cpu_used == record.seen_cpu;
    record.seen_cpu = input.cpu_used;
    if (!sleeps) return recheck_after(settings.floor_limit, input, settings);
  }
  if (input.collecting) return recheck_after(settings.recheck, input, settings);
  if (!input.exclusive || input.cpu_used < 0) return {HoldAction::kRelease};
  return probe(record, input, settings);
}

void note_probe_hit(HoldRecord& record) { record.hit = record.armed; }

}  // namespace amasia::dsm::protocol
