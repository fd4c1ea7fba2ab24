// SPDX-License-Identifier: Apache-2.0
// The origin's side: the dealers of loops under way, what came of them, and what the next runs
// begin with.
#include <algorithm>
#include <array>
#include <utility>

#include "omp/node.hpp"
#include "omp/work_sharing/work_sharing_state.hpp"

namespace amasia::omp {

// Regions come one after the other: what is left of the last one was cancelled. global_mutex_ held.
void WorkSharing::enter_region(std::uint32_t region) {
  if (region <= global_region_) return;
  global_.clear();
  advice_ = {};
  global_region_ = region;
}

WorkSharing::GlobalLoop& WorkSharing::global_loop(const WantBody& body,
                                                  std::span<const Sharer> sharers) {
  enter_region(body.region);
  if (const auto found = global_.find(body.number); found != global_.end()) return found->second;
  std::array<loops::Power, base::kMaxNodes> powers;
  Want want;
  want.body = body;
  for (std::size_t rank = 0; rank < sharers.size(); ++rank) {
    powers[rank] = {sharers[rank].threads, sharers[rank].speed, sharers[rank].seam};
    want.sharers[rank] = sharers[rank];
  }
  std::vector<loops::Report> told = std::exchange(told_after_end_[body.key], {});
  told.resize(sharers.size());
  GlobalLoop loop{loops::Dealer(terms_of(body), {powers.data(), sharers.size()}), want, body.nodes,
                  std::move(told)};
  loop.expected_ns = body.key != 0 ? cache_.expected_ns(body.key) : 0;
  return global_.emplace(body.number, std::move(loop)).first->second;
}

// What the next run begins with: fixed when the first node is told that there is no more, so that
// all are told the same.
const loops::NextRun& WorkSharing::next_run(GlobalLoop& loop) {
  if (loop.next.has_value()) return *loop.next;
  loop.next.emplace();
  if (loop.want.body.key == 0) {
    for (const Sharer& sharer : loop.want.all()) advice_.note(sharer.node, true);
    return *loop.next;
  }
  std::array<std::uint32_t, base::kMaxNodes> threads;
  for (std::size_t r = 0; r < loop.totals.size(); ++r) threads[r] = loop.want.sharers[r].threads;
  loop.next = cache_.finish(loop.want.body.key, {threads.data(), loop.totals.size()}, loop.totals);
  // Of other schedules data move in each run.
  const bool settles = loops::schedule_of(loop.want.body.kind).probes();
  for (std::size_t r = 0; r < loop.totals.size(); ++r) {
    const bool used = !loop.next->known || loop.next->speeds[r] > 0;
    const bool stays = loop.next->known && loop.want.body.known != 0 &&
                       loop.next->speeds[r] == loop.want.sharers[r].speed;
    advice_.moves = advice_.moves || (settles && !stays);
    advice_.note(loop.want.sharers[r].node, used);
  }
  return *loop.next;
}

std::vector<WorkSharing::Give> WorkSharing::ask_dealer(const WantBody& body,
                                                       std::span<const Sharer> sharers) {
  const std::lock_guard lock(global_mutex_);
  if (body.region < global_region_) return {};  // it was cancelled: who asked has left
  GlobalLoop& loop = global_loop(body, sharers);
  const bool agree = std::equal(
      sharers.begin(), sharers.end(), loop.want.sharers.begin(),
      [](const Sharer& a, const Sharer& b) { return a.node == b.node && a.speed == b.speed; });
  AMASIA_CHECK(agree && body.known == loop.want.body.known && body.count == loop.want.body.count,
               "all nodes begin a loop with the same terms (W4)");
  // Who asks when the first has been told that there is no more is mostly the slowest: what it has
  // to tell counts in the next run.
  const bool has_ended = loop.next.has_value() && body.key != 0;
  std::vector<loops::Report>& totals = has_ended ? told_after_end_[body.key] : loop.totals;
  totals.resize(body.nodes);
  totals[body.rank] += body.report;
  totals[body.rank] += body.late;
  std::vector<loops::Grant> grants;
  loop.dealer.ask(body.rank, body.report, grants);
  expect(loop);
  return answers(loop, grants);
}

// The other nodes' threads hold, so that they may come home once nothing is left of the loop that
// no node was given: what a thread of the origin waits for is there then. False: the loop is not
// under way.
bool WorkSharing::take_over(const NodeLoop& waits) {
  std::vector<Give> gives;
  {
    const std::lock_guard lock(global_mutex_);
    const auto found = global_.find(waits.want.body.number);
    if (waits.want.body.region != global_region_ || found == global_.end()) return false;
    std::vector<loops::Grant> grants;
    found->second.dealer.take_over(waits.want.body.rank, grants);
    gives = answers(found->second, grants);
  }
  hand_out(gives);
  return true;
}

// Under global_mutex_.
std::vector<WorkSharing::Give> WorkSharing::answers(GlobalLoop& loop,
                                                    std::span<const loops::Grant> grants) {
  const WantBody body = loop.want.body;
  std::vector<Give> gives;
  for (const loops::Grant& grant : grants) {
    Give give;
    give.to = NodeId{static_cast<std::uint16_t>(loop.want.sharers[grant.rank].node)};
    give.body = {body.region,
                 body.nodes,
                 grant.refill.more,
                 0,
                 body.number,
                 grant.refill.range.begin,
                 grant.refill.range.end,
                 grant.refill.piece};
    if (!grant.refill.more) {
      give.body.known = next_run(loop).known ? 1 : 0;
      give.speeds = next_run(loop).speeds;
      --loop.nodes_to_tell;
    }
    gives.push_back(give);
  }
  // A node that knows that there is no more does not ask again.
  if (loop.nodes_to_tell == 0 && loop.left != 0) {
    conclude(loop);
    global_.erase(body.number);
  }
  return gives;
}

void WorkSharing::hand_out(const std::vector<Give>& gives) {
  for (const Give& give : gives) {
    if (give.to == node_.self()) {
      receive(give.body, give.all());
    } else {
      node_.fabric().send(give.to, kGiveMessage, fabric::bytes_of(give.body),
                          std::as_bytes(give.all()));
    }
  }
}

// What the rest was expected to take when shares were decided for the first time.
void WorkSharing::expect(GlobalLoop& loop) {
  const loops::ProbeDealer* const probe = loop.dealer.probe();
  if (loop.expected_end != 0 || probe == nullptr || probe->decisions() == 0) return;
  loop.expected_end = os::monotonic_now() + static_cast<Nanos>(probe->expected_ns());
}

// The origin's last thread has left the loop; under loops_mutex_.
void WorkSharing::note_left(const NodeLoop& loop) {
  const Nanos now = os::monotonic_now();
  const std::lock_guard lock(global_mutex_);
  const auto found = global_.find(loop.want.body.number);
  if (loop.want.body.region != global_region_ || found == global_.end()) {
    return conclude_dealt_at_once(loop, now - loop.opened);
  }
  GlobalLoop& global = found->second;
  global.function = loop.function;
  global.code = loop.code;
  global.opened = loop.opened;
  global.left = now;
  if (global.nodes_to_tell > 0) return;
  conclude(global);
  global_.erase(found);
}

// Under global_mutex_; all nodes know that there is no more, and the origin's threads have left.
void WorkSharing::conclude(const GlobalLoop& loop) {
  note_spread(loop);
  if (loop.code == nullptr) return;
  const WantBody& body = loop.want.body;
  LoopRunOutcome run;
  run.count = body.count;
  run.elapsed = loop.left - loop.opened;
  if (loop.expected_ns > 0) {
    run.expected = static_cast<Nanos>(loop.expected_ns * static_cast<double>(body.count));
  } else if (loop.expected_end > loop.opened) {
    run.expected = loop.expected_end - loop.opened;
  }
  for (std::size_t r = 0; r < body.nodes; ++r) {
    LoopRunOutcome::Part part;
    part.node = NodeId{static_cast<NodeId::representation>(loop.want.sharers[r].node)};
    part.given = loop.dealer.given(r);
    part.speed = loop.dealer.speed(r);
    if (const auto* const told = cache_.find(body.key, r); told != nullptr) {
      part.cost = told->mean;
      part.probes = told->runs;
    }
    run.parts.push_back(part);
  }
  outcomes_.add(loop.function, loop.code, std::move(run));
}

// Under global_mutex_.
void WorkSharing::note_spread(const GlobalLoop& loop) {
  if (loop.want.body.by_region == 0) return;
  const loops::CostSketch& sketch = loop.dealer.probe()->sketch();
  advice_.spread = sketch.spread();
  if (!advice_.spread.has_value()) return;
  const std::vector<double> parts = sketch.parts_given(*advice_.spread);
  for (std::size_t r = 0; r < parts.size(); ++r) {
    advice_.parts[loop.want.sharers[r].node] = parts[r];
  }
}

// Nobody had to ask: the first deal was all.
void WorkSharing::conclude_dealt_at_once(const NodeLoop& loop, Nanos elapsed) {
  const WantBody& body = loop.want.body;
  enter_region(body.region);
  for (std::size_t r = 0; r < body.nodes; ++r) advice_.note(loop.want.sharers[r].node, true);
  if (loop.code == nullptr) return;
  const loops::Dealer dealt(terms_of(body), {loop.powers.data(), body.nodes});
  LoopRunOutcome run;
  run.count = body.count;
  run.elapsed = elapsed;
  for (std::size_t r = 0; r < body.nodes; ++r) {
    LoopRunOutcome::Part part;
    part.node = NodeId{static_cast<NodeId::representation>(loop.want.sharers[r].node)};
    part.given = dealt.given(r);
    part.speed = dealt.speed(r);
    run.parts.push_back(part);
  }
  outcomes_.add(loop.function, loop.code, std::move(run));
}

LoopAdvice WorkSharing::take_advice(std::uint32_t region) {
  const std::lock_guard lock(global_mutex_);
  return region == global_region_ ? std::exchange(advice_, {}) : LoopAdvice{};
}

std::optional<LoopOutcome> WorkSharing::outcome_of(const void* function, const void* code) const {
  const std::lock_guard lock(global_mutex_);
  const LoopOutcome* const found = outcomes_.find(function, code);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

}  // namespace amasia::omp
