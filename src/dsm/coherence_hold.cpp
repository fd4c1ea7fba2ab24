// SPDX-License-Identifier: Apache-2.0
// The part of Coherence that takes turns: which revocations are put off, and until when, and what
// is collected in a turn.
#include "dsm/coherence.hpp"

#include <bit>
#include <cstring>

namespace amasia::dsm {
namespace {

using protocol::CacheEventKind;
using protocol::CachePage;
using protocol::CacheState;

// A page that its node has had for this many turns of all nodes is not being fought over: the
// policy is for pages that bounce, and would only delay the others for it.
constexpr Nanos kTurnsUntilSettled = 2;

}  // namespace

// Whether a revocation that could be held should be, for now; if so, a deadline is set and a probe
// is armed if the policy wants one.
bool Coherence::keep_for_now(PageIndex page, CacheEventKind revocation) {
  const bool home = is_home(page);
  const CachePage& entry = pages_[page.value];
  if (!protocol::can_hold(entry, home, revocation)) return false;
  const Nanos now = job_time(now_);
  const protocol::Turn turn = turns_.at(now);
  // Who sweeps comes back to all that it has, whenever and however that came.
  const bool sweeps = turn.stretched && turn.owner == space_.self();
  PageUse* use = uses_.find(page);
  if (use == nullptr && sweeps && waiting_.count() > 0) use = uses_.renew(page, now);
  if (use == nullptr) return false;
  if (!use->held) {
    const Nanos settled = kTurnsUntilSettled * space_.node_count() * turn.length();
    if (!sweeps && now - use->installed_at > settled) return false;
    use->hold = protocol::begin_hold(hold_settings_);
  }
  const protocol::HoldInput input{
      .now = now,
      .installed_at = use->installed_at,
      .cpu_used = cpu_used_since_install(*use),
      .paused_since = all_paused_since_install(*use),
      .self = space_.self(),
      .turn = turn,
      .exclusive = entry.state(home) == CacheState::kExclusive,
      .collecting = waiting_.count() > 0 || now_ - last_install_ < hold_settings_.recheck};
  const protocol::HoldDecision decision = protocol::decide(use->hold, input, hold_settings_);
  const bool keep = decision.action != protocol::HoldAction::kRelease &&
                    deadlines_.set(page, now_ + decision.after);
  if (keep && !use->held) ++counts_.requests_held;
  use->held = keep;
  if (keep && decision.action == protocol::HoldAction::kProbe) {
    require(access_.protect({page, 1}), "protect", {page, 1});
  }
  return keep;
}

void Coherence::on_pause(Nanos now) {
  now_ = now;
  for (std::size_t i = 0; i < deadlines_.size() && release_count_ < releases_.size(); ++i) {
    const PageIndex page = deadlines_.page_at(i);
    const PageUse* const use = uses_.find(page);
    if (!pages_[page.value].has_pending() || use == nullptr) continue;
    if (all_paused_since_install(*use)) releases_[release_count_++] = page;
  }
  finish_events();
}

// A thread waited for a page that it had lost while it used it.
void Coherence::measure_wait(const WaitingThread& thread, Nanos idle_before) {
  const Nanos now = job_time(now_);
  const protocol::Turn turn = turns_.at(now);
  if (turn.owner != space_.self()) return;
  tell_wish(turn_meter_.on_wait({.had_at = thread.had_at,
                                 .begin = job_time(thread.since),
                                 .end = now,
                                 .idle_before = idle_before},
                                turn));
}

// A thread waits to write this page, and no walk was seen to come by.
void Coherence::collect_around(PageIndex page) {
  const protocol::Turn turn = turns_.at(job_time(now_));
  if (!turn.stretched) return;
  const PageUse* const last = uses_.find_last(page);
  BlockInTurn block{.own = turn.owner == space_.self(),
                    .had = last != nullptr && last->installed_at < turn.begin,
                    .scattered = fill_around_.on_fault(page)};
  const std::uint64_t first = page.value - page.value % FillAround::kBlock;
  const auto page_of = [first](int i) { return PageIndex{first + static_cast<std::uint64_t>(i)}; };
  for (int i = 0; i < static_cast<int>(FillAround::kBlock); ++i) {
    if (uses_.find_last(page_of(i)) != nullptr) block.known |= std::uint64_t{1} << i;
  }
  PageCount asked = 0;
  for (std::uint64_t rest = block.wanted(); rest != 0; rest &= rest - 1) {
    const PageIndex other = page_of(std::countr_zero(rest));
    // Not before the first page of the program's variables.
    if (space_.is_valid(other) && ask_for(other, true)) ++asked;
  }
  if (block.own && asked > 0) tell_wish(turn_meter_.on_collected(asked, turn));
}

void Coherence::tell_wish(std::optional<Nanos> wish) {
  if (!wish.has_value()) return;
  if (space_.self() == base::kOrigin) return wish_for_turns(space_.self(), *wish);
  fabric_.send(base::kOrigin, kTurnWish, fabric::bytes_of(TurnWish{*wish}));
}

void Coherence::on_turn_wish(NodeId from, std::span<const std::byte> body, Nanos now) {
  now_ = now;
  TurnWish wish;
  if (space_.self() != base::kOrigin || body.size() != sizeof wish) {
    return fail_for(from, "sent a malformed wish for turns");
  }
  std::memcpy(&wish, body.data(), sizeof wish);
  wish_for_turns(from, wish.length);
}

void Coherence::wish_for_turns(NodeId from, Nanos length) {
  const std::optional<protocol::Stretch> stretch =
      turn_arbiter_.on_wish(from, length, job_time(now_));
  if (!stretch.has_value()) return;
  turns_.adopt(*stretch);
  for (std::uint16_t node = 1; node < space_.node_count(); ++node) {
    fabric_.send(NodeId{node}, kTurnStretch, fabric::bytes_of(*stretch));
  }
}

void Coherence::on_turn_stretch(NodeId from, std::span<const std::byte> body, Nanos now) {
  now_ = now;
  protocol::Stretch stretch;
  if (from != base::kOrigin || body.size() != sizeof stretch) {
    return fail_for(from, "sent a malformed stretch of turns");
  }
  std::memcpy(&stretch, body.data(), sizeof stretch);
  if (!protocol::is_valid(stretch, space_.node_count())) {
    return fail_for(from, "sent a stretch of turns that cannot be");
  }
  turns_.adopt(stretch);
}

// Revocations that are held, or that were waiting for the copy which has just come.
void Coherence::consider_pending(PageRun run) {
  for (PageCount i = 0; i < run.count; ++i) {
    const PageIndex page{run.first.value + i};
    if (deadlines_.contains(page)) continue;  // decided when it arrived
    if (keep_for_now(page, pages_[page.value].pending())) continue;
    AMASIA_CHECK(release_count_ < releases_.size(),
                 "more holds end at once than there is room for");
    releases_[release_count_++] = page;
  }
}

void Coherence::report_long_waits() {
  for (std::size_t i = 0; i < waiting_.count(); ++i) {
    WaitingThread& thread = waiting_[i];
    if (now_ - thread.since < settings_.watchdog_period) continue;
    if (thread.reported != 0 && now_ - thread.reported < settings_.watchdog_period) continue;
    thread.reported = now_;
    const NodeId home = space_.home_of(thread.page);
    const CachePage& entry = pages_[thread.page.value];
    base::log_line(
        base::LogLevel::kWarning,
        "thread {} has waited {} ms to {} page {} at {} (home: node {}, here: {}{}, directory: {})",
        thread.thread_id, (now_ - thread.since) / base::kMillisecond,
        thread.kind == FaultKind::kRead ? "read" : "write", thread.page.value,
        fmt::ptr(space_.address_of(thread.page)), home.value,
        protocol::name_of(entry.state(is_home(thread.page))),
        entry.has_pending() ? ", asked to give it up" : "",
        is_home(thread.page) ? (directory_[thread.page.value].idle() ? "idle" : "busy")
                             : "elsewhere");
  }
}

}  // namespace amasia::dsm
