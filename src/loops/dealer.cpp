// SPDX-License-Identifier: Apache-2.0
#include "loops/dealer.hpp"

namespace amasia::loops {

ScheduleRequest carried_out(ScheduleRequest asked) {
  if (!asked.monotonic || !schedule_of(asked.kind).probes()) return asked;
  return {ScheduleKind::kAwf, asked.chunk, true};
}

Refill first_refill(const LoopTerms& loop, std::span<const Power> powers, std::size_t rank) {
  if (schedule_of(loop.schedule.kind).probes()) return first_probe(loop, powers, rank);
  GlobalPool pool(loop.schedule, loop.count, powers);
  return first_deal(pool, powers.size(), rank);
}

Dealer::Dealer(const LoopTerms& loop, std::span<const Power> powers)
    : probes_(schedule_of(loop.schedule.kind).probes()) {
  if (probes_) {
    probe_ = ProbeDealer(loop, powers);
  } else {
    pool_ = GlobalPool(loop.schedule, loop.count, powers);
    first_deal(pool_, powers.size(), 0);
  }
}

void Dealer::ask(std::size_t rank, const Report& report, std::vector<Grant>& grants) {
  if (probes_) return probe_.ask(rank, report, grants);
  pool_.note(rank, report);
  grants.push_back({rank, pool_.take(rank)});
}

}  // namespace amasia::loops
