// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/turns.hpp"

#include <algorithm>
#include <cstring>

#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {

// To the node that has the chunk which begins at `iteration`: all before it is over.
struct Turns::TurnBody {
  std::uint32_t region;
  std::uint32_t reserved;
  std::uint64_t number;
  std::uint64_t iteration;
};

Turns::Turns(Node& node) : node_(node) {
  node_.fabric().set_handler(kTurnMessage, kTurnMessage, this);
}

Turns::~Turns() = default;

OrderedLoop* Turns::open(const Team& team, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return &table_.open(team.region(), number, team.local_size());
}

void Turns::close(const Team& team, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  table_.close(team.region(), number);
}

void Turns::begin(ThreadFrame& frame, const loops::Space& space, loops::ScheduleRequest schedule,
                  const LoopSite& site) {
  frame.loop = ThreadLoop{};
  frame.loop.space = space;
  frame.loop.schedule = loops::in_turn(schedule);
  frame.loop.number = frame.loops_met++;
  frame.loop.ordered = true;
  if (space.count == 0) return;
  if (frame.book != nullptr) {
    frame.book->note(site, {LoopForm::kOrdered, schedule.kind, frame.loop.schedule.kind,
                            schedule.chunk, space.count});
  }
  on_native_stack([this, &frame] { frame.loop.slot = open(*frame.team, frame.loop.number); });
}

bool Turns::next(ThreadFrame& frame, loops::Iterations& range) {
  ThreadLoop& loop = frame.loop;
  if (loop.space.count == 0 || loop.slot == nullptr) return false;
  if (loop.has_turn_to_pass) {
    enter(frame);
    pass(frame);
  }
  const auto share = loops::schedule_of(loop.schedule.kind)
                         .share(loop.space.count, loop.schedule.chunk, frame.global_id,
                                frame.team->size(), loop.round);
  if (!share.has_value()) {
    loop.slot = nullptr;
    on_native_stack([this, &frame] { close(*frame.team, frame.loop.number); });
    return false;
  }
  ++loop.round;
  loop.chunk = *share;
  loop.ordered_parts = 0;
  loop.has_turn_to_pass = true;
  range = *share;
  return true;
}

void Turns::enter(ThreadFrame& frame) {
  ThreadLoop& loop = frame.loop;
  if (!loop.ordered || !loop.has_turn_to_pass) return;
  const std::atomic<std::uint64_t>& turn = static_cast<OrderedLoop*>(loop.slot)->turn;
  const std::uint64_t mine = loop.chunk.begin;
  const auto has_come = [&turn, mine] { return turn.load(std::memory_order_acquire) >= mine; };
  if (has_come()) return;
  on_native_stack([&] {
    node_.wait_until(has_come, node_.settings().spin_in_region, "the turn in an ordered loop");
  });
}

void Turns::leave(ThreadFrame& frame) {
  ThreadLoop& loop = frame.loop;
  if (!loop.ordered || !loop.has_turn_to_pass) return;
  // The turn goes on before the rest of the chunk's last iteration, if each iteration had its part.
  if (++loop.ordered_parts == loop.chunk.size()) pass(frame);
}

void Turns::pass(ThreadFrame& frame) {
  ThreadLoop& loop = frame.loop;
  loop.has_turn_to_pass = false;
  const std::uint64_t next = loop.chunk.end;
  if (next == loop.space.count) return;
  const Team& team = *frame.team;
  const std::uint32_t after =
      loops::thread_after(loop.schedule, loop.space.count, next, frame.global_id, loop.round - 1,
                          team.size());
  if (after - team.local_offset() < team.local_size()) {
    // Partner: enter.
    static_cast<OrderedLoop*>(loop.slot)->turn.store(next, std::memory_order_release);
    node_.wake();
    return;
  }
  const TurnBody turn{team.region(), 0, loop.number, next};
  on_native_stack([&, turn, after] { send(team, turn, after); });
}

void Turns::send(const Team& team, const TurnBody& turn, std::uint32_t thread) {
  const auto behind = std::ranges::find_if(
      team.shares(), [thread](const NodeShare& share) { return share.offset > thread; });
  node_.services().show_progress();
  // What was printed in turn comes out in turn.
  node_.services().publish_output();
  node_.fabric().send(std::prev(behind)->node, kTurnMessage, fabric::bytes_of(turn));
}

void Turns::on_message(const fabric::Incoming& message) {
  TurnBody body;
  AMASIA_CHECK(message.body.size() == sizeof body, "a turn's message has its type's length");
  std::memcpy(&body, message.body.data(), sizeof body);
  {
    const std::lock_guard lock(mutex_);
    table_.hear(body.region, body.number, body.iteration);
  }
  node_.wake();
}

bool next_iterations(ThreadFrame& frame, loops::Iterations& range) {
  Node& node = frame.team->node();
  return frame.loop.ordered ? node.turns()->next(frame, range)
                            : node.work_sharing()->next(frame, range);
}

}  // namespace amasia::omp
