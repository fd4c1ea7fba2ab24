// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/turn_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "loops/loops.hpp"
#include "omp/every_order.hpp"
#include "omp/work_sharing/coming_home_model.hpp"

namespace amasia::omp {
namespace {

// Every order of what threads and messages can do in ordered loops, one behind the other without a
// barrier between them, and in a second region. The threads' steps are those of Turns; which thread
// has which chunk is said by loops::thread_after. Once in a region the other nodes' threads may
// come home to node 0, wherever they stand.

enum class Bug {
  kNone,
  kDoesNotWait,     // a thread enters its ordered part before its turn
  kPassesAtEntry,   // the turn goes on when the part begins
  kSkipsWithout,    // a chunk without ordered parts, or with few, does not pass its turn
  kPassesUnawaited,  // the same chunk passes a turn that it has not got
  kAlwaysHere,      // the next chunk is taken for one of this node
  kForgetsEarly,    // a message about a loop that no thread here has begun is dropped
  kPassesTwice,     // the turn goes on after the chunk, too
  kForgetsPassed,   // who passes the turn to another node does not note it
  kLeavesTurn,      // who comes home does not say how far the turn has come
  kFallsBack,       // news of an earlier turn counts, too
};

struct Loop {
  std::uint64_t count;
  std::uint64_t chunk;  // 0: a block for each thread
  std::uint64_t every;  // which iterations have an ordered part
};

struct Shape {
  std::uint32_t nodes, threads;
  std::vector<std::vector<Loop>> regions;
  bool comes_home;
  std::size_t states;  // pinned: another number says that the explored behaviour has changed
};

enum class At : std::uint8_t { kBegin, kNext, kIterate, kInside, kJoined };

struct Thread {
  At at = At::kBegin;
  std::uint32_t loop = 0;
  std::uint64_t round = 0;
  std::uint64_t iteration = 0;
  std::uint64_t parts = 0;
  bool has_turn_to_pass = false;
  loops::Iterations chunk;
};

struct Message {
  std::uint32_t region;
  std::uint64_t number;
  std::uint64_t iteration;
};

class World {
 public:
  World(const Shape& shape, Bug bug)
      : shape_(&shape),
        bug_(bug),
        tables_(shape.nodes),
        threads_(shape.nodes * shape.threads),
        channels_(shape.nodes * shape.nodes) {
    begin_region();
  }
  // Its threads know its own tables.
  World(const World& other)
      : shape_(other.shape_),
        bug_(other.bug_),
        region_(other.region_),
        at_home_(other.at_home_),
        tables_(other.tables_),
        threads_(other.threads_),
        slot_of_(threads_.size(), nullptr),
        channels_(other.channels_),
        done_(other.done_),
        fault_(other.fault_) {
    for (std::uint32_t id = 0; id < threads_.size(); ++id) {
      if (other.slot_of_[id] == nullptr) continue;
      slot_of_[id] = tables_[node_of(id)].find(threads_[id].loop);
    }
  }
  World(World&&) = default;
  World& operator=(const World&) = delete;

  const std::string& fault() const { return fault_; }
  bool over() const { return region_ > shape_->regions.size(); }
  std::vector<StepOrArrival> choices() const { return steps_and_arrivals(*this); }
  void take(StepOrArrival choice) {
    return choice.arrives ? deliver(choice.which) : act(choice.which);
  }
  // At last that all come home.
  std::size_t thread_count() const { return threads_.size() + 1; }
  std::size_t channel_count() const { return channels_.size(); }
  bool can_deliver(std::size_t channel) const { return !channels_[channel].empty(); }

  bool can_act(std::uint32_t id) const {
    if (id == threads_.size()) return can_come_home();
    const Thread& self = threads_[id];
    switch (self.at) {
      case At::kJoined:
        return false;
      case At::kNext:
        return !self.has_turn_to_pass || bug_ == Bug::kSkipsWithout ||
               bug_ == Bug::kPassesUnawaited || has_turn(id);
      case At::kIterate:
        return !is_ordered(self) || !self.has_turn_to_pass || bug_ == Bug::kDoesNotWait ||
               has_turn(id);
      case At::kBegin:
      case At::kInside:
        return true;
    }
    return false;
  }

  void act(std::uint32_t id) {
    if (id == threads_.size()) return come_home();
    Thread& self = threads_[id];
    switch (self.at) {
      case At::kBegin:
        slot_of_[id] = &tables_[node_of(id)].open(region_, self.loop, threads_of_node());
        self.at = At::kNext;
        return;
      case At::kNext:
        return next(id);
      case At::kIterate:
        if (self.iteration == self.chunk.end) {
          self.at = At::kNext;
        } else if (is_ordered(self)) {
          enter(id);
        } else {
          ++self.iteration;
        }
        return;
      case At::kInside:
        return leave(id);
      case At::kJoined:
        return;
    }
  }

  void deliver(std::size_t channel) {
    const Message message = channels_[channel].front();
    channels_[channel].pop_front();
    const auto to = static_cast<std::uint32_t>(channel % shape_->nodes);
    if (bug_ == Bug::kForgetsEarly && !has_begun(to, message.number)) return;
    tables_[to].hear(message.region, message.number, message.iteration);
    OrderedLoop* const loop = tables_[to].find(message.number);
    if (bug_ == Bug::kFallsBack && loop != nullptr) loop->turn = message.iteration;
  }

  std::string name() const {
    std::string name;
    const auto add = [&name](std::uint64_t value) { name.push_back(static_cast<char>(value)); };
    add(region_);
    add(at_home_ ? 1 : 0);
    for (std::uint32_t id = 0; id < threads_.size(); ++id) {
      const Thread& self = threads_[id];
      add(static_cast<std::uint64_t>(self.at));
      add(self.loop);
      add(self.round);
      add(self.iteration);
      add(self.parts);
      add(self.has_turn_to_pass);
      add(slot_of_[id] != nullptr ? 1 + slot_of_[id]->turn.load() : 0);
    }
    for (const auto& table : tables_) add(table.size());
    for (const auto& channel : channels_) {
      for (const Message& message : channel) {
        add(message.region);
        add(message.number);
        add(message.iteration);
      }
      add(255);
    }
    for (const std::uint64_t done : done_) add(done);
    return name;
  }

 private:
  std::uint32_t node_of(std::uint32_t id) const { return at_home_ ? 0 : id / shape_->threads; }
  std::uint32_t threads_of_node() const {
    return at_home_ ? static_cast<std::uint32_t>(threads_.size()) : shape_->threads;
  }
  bool can_come_home() const {
    auto& home = const_cast<TurnTable&>(tables_[0]);
    const auto is_open = [&](std::uint64_t loop) { return home.is_open(region_, loop); };
    return shape_->comes_home && !at_home_ && may_come_home(threads_, shape_->threads, is_open);
  }
  void come_home() {
    for (std::uint32_t id = shape_->threads; id < threads_.size(); ++id) {
      if (!is_inside(threads_[id])) continue;
      const std::uint64_t turn = bug_ == Bug::kLeavesTurn ? 0 : slot_of_[id]->turn.load();
      tables_[node_of(id)].close(region_, threads_[id].loop);
      slot_of_[id] = &tables_[0].join(region_, threads_[id].loop, turn);
    }
    at_home_ = true;
  }
  const Loop& loop_of(const Thread& thread) const {
    return shape_->regions[region_ - 1][thread.loop];
  }
  loops::ScheduleRequest schedule_of(const Thread& thread) const {
    return {loops::ScheduleKind::kStatic, loop_of(thread).chunk};
  }
  bool is_ordered(const Thread& thread) const {
    return thread.iteration < thread.chunk.end &&
           thread.iteration % loop_of(thread).every == 0;
  }
  bool has_turn(std::uint32_t id) const {
    return slot_of_[id]->turn.load() >= threads_[id].chunk.begin;
  }
  bool has_begun(std::uint32_t node, std::uint64_t number) const {
    for (std::uint32_t t = 0; t < shape_->threads; ++t) {
      const Thread& thread = threads_[node * shape_->threads + t];
      if (thread.loop > number || (thread.loop == number && thread.at != At::kBegin)) return true;
    }
    return false;
  }

  void begin_region() {
    ++region_;
    at_home_ = false;
    if (over()) return;
    for (Thread& thread : threads_) thread = Thread{};
    slot_of_.assign(threads_.size(), nullptr);
    done_.assign(shape_->regions[region_ - 1].size(), 0);
  }

  void next(std::uint32_t id) {
    Thread& self = threads_[id];
    if (self.has_turn_to_pass) {
      self.has_turn_to_pass = false;
      if (bug_ != Bug::kSkipsWithout) pass(id);
      return;
    }
    const auto share =
        loops::schedule_of(loops::ScheduleKind::kStatic)
            .share(loop_of(self).count, loop_of(self).chunk, id,
                   static_cast<std::uint32_t>(threads_.size()), self.round);
    if (!share.has_value()) return end_loop(id);
    ++self.round;
    self.chunk = *share;
    self.iteration = share->begin;
    self.parts = 0;
    self.has_turn_to_pass = true;
    self.at = At::kIterate;
  }

  void end_loop(std::uint32_t id) {
    Thread& self = threads_[id];
    tables_[node_of(id)].close(region_, self.loop);
    slot_of_[id] = nullptr;
    const std::uint32_t following = self.loop + 1;
    self = Thread{};
    self.loop = following;
    if (following < shape_->regions[region_ - 1].size()) return;
    self.at = At::kJoined;
    for (const Thread& thread : threads_) {
      if (thread.at != At::kJoined) return;
    }
    // Once all are at home, news is of a turn that they know.
    const auto is_of_now = [this](const Message& it) { return it.region == region_; };
    for (const auto& channel : channels_) {
      const bool is_late = std::any_of(channel.begin(), channel.end(), is_of_now);
      if (is_late && !at_home_) fault_ = "a message is under way when all have left";
    }
    for (const auto& table : tables_) {
      if (table.size() != 0 && !at_home_) fault_ = "a loop is left over";
    }
    begin_region();
  }

  void enter(std::uint32_t id) {
    Thread& self = threads_[id];
    for (std::uint32_t other = 0; other < threads_.size(); ++other) {
      const Thread& thread = threads_[other];
      if (thread.at == At::kInside && thread.loop == self.loop) fault_ = "two are inside";
    }
    // All ordered parts of iterations before are over.
    if (done_[self.loop] * loop_of(self).every != self.iteration) fault_ = "out of order";
    self.at = At::kInside;
    if (bug_ == Bug::kPassesAtEntry && self.parts + 1 == self.chunk.size()) pass(id);
  }

  void leave(std::uint32_t id) {
    Thread& self = threads_[id];
    ++done_[self.loop];
    ++self.iteration;
    self.at = At::kIterate;
    if (++self.parts != self.chunk.size() || !self.has_turn_to_pass) return;
    self.has_turn_to_pass = bug_ == Bug::kPassesTwice;
    if (bug_ != Bug::kPassesAtEntry) pass(id);
  }

  void pass(std::uint32_t id) {
    const Thread& self = threads_[id];
    const std::uint64_t next = self.chunk.end;
    if (next == loop_of(self).count) return;
    const std::uint32_t after =
        loops::thread_after(schedule_of(self), loop_of(self).count, next, id, self.round - 1,
                            static_cast<std::uint32_t>(threads_.size()));
    const bool is_here = node_of(after) == node_of(id) || bug_ == Bug::kAlwaysHere;
    if (is_here || bug_ != Bug::kForgetsPassed) slot_of_[id]->raise(next);
    if (is_here) return;
    channels_[node_of(id) * shape_->nodes + node_of(after)].push_back(
        {region_, self.loop, next});
  }

  const Shape* shape_;
  Bug bug_;
  std::uint32_t region_ = 0;
  bool at_home_ = false;
  std::vector<TurnTable> tables_;
  std::vector<Thread> threads_;
  std::vector<OrderedLoop*> slot_of_;
  std::vector<std::deque<Message>> channels_;  // from * nodes + to
  std::vector<std::uint64_t> done_;            // ordered parts of each loop
  std::string fault_;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {1, 2, {{{4, 1, 1}, {3, 2, 2}}, {{2, 0, 1}}}, false, 175},
      {2, 1, {{{4, 1, 1}, {5, 2, 2}}, {{3, 1, 2}}}, false, 297},
      {2, 2, {{{5, 1, 1}, {4, 2, 1}}, {{3, 1, 2}}}, false, 4025},
      {3, 1, {{{5, 1, 1}, {4, 1, 3}}, {{3, 0, 1}}}, false, 1734},
      {2, 1, {{{4, 1, 1}, {5, 2, 2}}, {{3, 1, 2}}}, true, 1879},
      {2, 2, {{{5, 1, 1}, {4, 2, 1}}, {{3, 1, 2}}}, true, 18151},
      {3, 1, {{{5, 1, 1}, {4, 1, 3}}, {{3, 0, 1}}}, true, 11759},
  };
  return all;
}

TEST(TurnTable, EveryOrderKeepsTheOrderOfIterations) {
  for (const Shape& shape : shapes()) {
    const Outcome outcome = explore(World(shape, Bug::kNone));
    EXPECT_EQ(outcome.fault, "") << shape.nodes << " x " << shape.threads;
    EXPECT_GE(outcome.ends, 1u);
    EXPECT_EQ(outcome.states, shape.states) << shape.nodes << " x " << shape.threads;
  }
}

TEST(TurnTable, TheExplorerFindsPlantedBugs) {
  for (const Bug bug : {Bug::kDoesNotWait, Bug::kPassesAtEntry, Bug::kSkipsWithout,
                        Bug::kPassesUnawaited, Bug::kAlwaysHere, Bug::kForgetsEarly,
                        Bug::kPassesTwice, Bug::kForgetsPassed, Bug::kLeavesTurn,
                        Bug::kFallsBack}) {
    bool found = false;
    for (const Shape& shape : shapes()) found = found || !explore(World(shape, bug)).fault.empty();
    EXPECT_TRUE(found) << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace amasia::omp
