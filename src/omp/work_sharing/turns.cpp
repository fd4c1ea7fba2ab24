// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/turns.hpp"

#include <algorithm>
#include <cstring>

#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/team/leavable_call.hpp"
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
    const auto& turn = static_cast<OrderedLoop*>(loop.slot)->turn;
    if (turn.load(std::memory_order_acquire) < loop.chunk.begin) {
      on_native_stack([&] { await(frame, turn); });
    }
    if (const auto told = pass(frame)) on_native_stack([&, this] { send(*frame.team, *told); });
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
  while (turn.load(std::memory_order_acquire) < loop.chunk.begin) {
    if (!leavable_call(frame, [&, this] { await(frame, turn); })) return enter_at_home();
  }
}

void Turns::enter_at_home() {
  ThreadFrame& frame = *current_frame();
  frame.team->node().turns()->enter(frame);
}

// Until it has come, or the thread is asked to stop.
void Turns::await(const ThreadFrame& frame, const std::atomic<std::uint64_t>& turn) {
  const Halt& halt = frame.team->halt();
  const std::uint64_t mine = frame.loop.chunk.begin;
  const auto is_over = [&] {
    return turn.load(std::memory_order_acquire) >= mine || halt.is_asked(frame);
  };
  node_.wait_for_turn(is_over, frame.team->spin_here(), "the turn in an ordered loop");
}

void Turns::leave(ThreadFrame& frame) {
  ThreadLoop& loop = frame.loop;
  if (!loop.ordered || !loop.has_turn_to_pass) return;
  // The turn goes on before the rest of the chunk's last iteration, if each iteration had its part.
  if (++loop.ordered_parts != loop.chunk.size()) return;
  if (const auto told = pass(frame)) {
    leavable_call(frame, [&, this] { send(*frame.team, *told); });
  }
}

// nullopt: there is nobody to tell on another node.
std::optional<Turns::Told> Turns::pass(ThreadFrame& frame) {
  ThreadLoop& loop = frame.loop;
  loop.has_turn_to_pass = false;
  const std::uint64_t next = loop.chunk.end;
  if (next == loop.space.count) return std::nullopt;
  const Team& team = *frame.team;
  const std::uint32_t after =
      loops::thread_after(loop.schedule, loop.space.count, next, frame.global_id, loop.round - 1,
                          team.size());
  // Before it is sent: for a while that may be all that is known of it.
  static_cast<OrderedLoop*>(loop.slot)->raise(next);  // partner: await
  if (after - team.local_offset() < team.local_size()) {
    node_.wake();
    return std::nullopt;
  }
  return Told{loop.number, next, after};
}

void Turns::send(const Team& team, const Told& told) {
  const TurnBody turn{team.region(), 0, told.number, told.iteration};
  const auto behind = std::ranges::find_if(
      team.shares(), [&told](const NodeShare& share) { return share.offset > told.thread; });
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

std::uint64_t Turns::depart(const ThreadFrame& frame) {
  const auto& loop = *static_cast<OrderedLoop*>(frame.loop.slot);
  const std::uint64_t turn = loop.turn.load(std::memory_order_acquire);
  node_.services().publish_output();  // it may be in its turn, and print more
  close(*frame.team, frame.loop.number);
  return turn;
}

void* Turns::join(std::uint32_t region, std::uint64_t number, std::uint64_t turn) {
  const std::lock_guard lock(mutex_);
  return &table_.join(region, number, turn);
}

bool Turns::is_open(std::uint32_t region, std::uint64_t met) {
  const std::lock_guard lock(mutex_);
  return met != 0 && table_.is_open(region, met - 1);
}

bool next_iterations(ThreadFrame& frame, loops::Iterations& range) {
  Node& node = frame.team->node();
  return frame.loop.ordered ? node.turns()->next(frame, range)
                            : node.work_sharing()->next(frame, range);
}

}  // namespace amasia::omp
