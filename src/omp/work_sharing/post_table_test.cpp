// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/post_table.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "omp/every_order.hpp"

namespace amasia::omp {
namespace {

// Every order of what threads and messages can do in doacross loops, one behind the other without a
// barrier between them, and in a second region that begins while messages of the first are still
// under way. Each iteration waits for the one `distance` before it; places in the row are those of
// loops::row_place.

enum class Bug {
  kNone,
  kDoesNotWait,    // an iteration does not wait for the other
  kPostsFirst,     // it posts itself before it waits
  kTellsOneLess,   // one node hears of nothing
  kForgetsEarly,   // a message about a loop that no thread here has begun is dropped
  kNextPlace,      // the bit of the iteration after is set
  kAnyRegion,      // a message does not say which region it is about
};

struct Loop {
  std::uint64_t count;
  std::int64_t distance;
};

struct Shape {
  std::uint32_t nodes, threads;
  std::vector<std::vector<Loop>> regions;
  std::size_t states;  // pinned: another number says that the explored behaviour has changed
};

enum class At : std::uint8_t { kBegin, kNext, kWait, kPost, kJoined };

struct Thread {
  At at = At::kBegin;
  std::uint32_t loop = 0;
  std::uint64_t round = 0;
  std::uint64_t iteration = 0;
};

struct Message {
  std::uint32_t region;
  std::uint64_t number, length, place;
};

class World {
 public:
  World(const Shape& shape, Bug bug)
      : shape_(&shape),
        bug_(bug),
        tables_(shape.nodes),
        threads_(shape.nodes * shape.threads),
        slots_(threads_.size(), nullptr),
        channels_(shape.nodes * shape.nodes) {
    begin_region();
  }
  World(const World& other)
      : shape_(other.shape_),
        bug_(other.bug_),
        region_(other.region_),
        tables_(other.tables_),
        threads_(other.threads_),
        slots_(threads_.size(), nullptr),
        channels_(other.channels_),
        done_(other.done_),
        fault_(other.fault_) {
    for (std::uint32_t id = 0; id < threads_.size(); ++id) {
      if (other.slots_[id] != nullptr) slots_[id] = tables_[node_of(id)].find(threads_[id].loop);
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
  std::size_t thread_count() const { return threads_.size(); }
  std::size_t channel_count() const { return channels_.size(); }
  bool can_deliver(std::size_t channel) const { return !channels_[channel].empty(); }
  bool can_act(std::uint32_t id) const {
    const Thread& self = threads_[id];
    if (self.at == At::kJoined) return false;
    return self.at != At::kWait || bug_ == Bug::kDoesNotWait || is_free(id);
  }

  void act(std::uint32_t id) {
    Thread& self = threads_[id];
    switch (self.at) {
      case At::kBegin:
        slots_[id] = &tables_[node_of(id)].open(region_, self.loop, loop_of(self).count,
                                                nest_of(self), shape_->threads);
        self.at = At::kNext;
        return;
      case At::kNext:
        return next(id);
      case At::kWait:
        work(self);
        self.at = At::kPost;
        return;
      case At::kPost:
        if (bug_ != Bug::kPostsFirst) post(id);
        self.at = At::kNext;
        return;
      case At::kJoined:
        return;
    }
  }

  void deliver(std::size_t channel) {
    const Message message = channels_[channel].front();
    channels_[channel].pop_front();
    const auto to = static_cast<std::uint32_t>(channel % shape_->nodes);
    if (bug_ == Bug::kForgetsEarly && tables_[to].find(message.number) == nullptr) return;
    const std::uint32_t region = bug_ == Bug::kAnyRegion ? 1 : message.region;
    tables_[to].hear(region, message.number, message.length, message.place);
  }

  std::string name() const {
    std::string name;
    const auto add = [&name](std::uint64_t value) { name.push_back(static_cast<char>(value)); };
    add(region_);
    for (std::uint32_t id = 0; id < threads_.size(); ++id) {
      const Thread& self = threads_[id];
      add(static_cast<std::uint64_t>(self.at));
      add(self.loop);
      add(self.round);
      add(self.iteration);
    }
    for (const PostTable& table : tables_) {
      for (std::uint64_t number = 0; number < 2; ++number) {
        const PostLoop* const loop = const_cast<PostTable&>(table).find(number);
        std::uint64_t bits = 0;
        for (std::uint64_t place = 0; loop != nullptr && place < loop->length; ++place) {
          bits |= std::uint64_t{loop->is_set(place)} << place;
        }
        add(loop != nullptr ? 1 + loop->threads_left : 0);
        add(bits);
      }
    }
    for (const auto& channel : channels_) {
      for (const Message& message : channel) {
        add(message.region * 64 + message.number * 16 + message.place);
      }
      add(255);
    }
    for (const std::uint64_t done : done_) add(done);
    return name;
  }

 private:
  std::uint32_t node_of(std::uint32_t id) const { return id / shape_->threads; }
  const Loop& loop_of(const Thread& thread) const {
    return shape_->regions[region_ - 1][thread.loop];
  }
  std::vector<loops::Space> nest_of(const Thread& thread) const {
    return {{0, 1, loop_of(thread).count}};
  }
  std::optional<std::uint64_t> awaited(const Thread& thread) const {
    const std::int64_t value =
        static_cast<std::int64_t>(thread.iteration) - loop_of(thread).distance;
    return loops::row_place(nest_of(thread), std::vector<std::int64_t>{value});
  }
  bool is_free(std::uint32_t id) const {
    const auto place = awaited(threads_[id]);
    return !place.has_value() || slots_[id]->is_set(*place);
  }

  void begin_region() {
    ++region_;
    if (over()) return;
    for (Thread& thread : threads_) thread = Thread{};
    done_.assign(shape_->regions[region_ - 1].size(), 0);
  }

  void next(std::uint32_t id) {
    Thread& self = threads_[id];
    const auto share = loops::schedule_of(loops::ScheduleKind::kStatic)
                           .share(loop_of(self).count, 1, id,
                                  static_cast<std::uint32_t>(threads_.size()), self.round);
    if (!share.has_value()) return end_loop(id);
    ++self.round;
    self.iteration = share->begin;
    if (bug_ == Bug::kPostsFirst) post(id);
    self.at = At::kWait;
  }

  // What the iteration depends on is done.
  void work(const Thread& self) {
    const auto before = awaited(self);
    if (before.has_value() && (done_[self.loop] >> *before & 1) == 0) fault_ = "out of order";
    done_[self.loop] |= std::uint64_t{1} << self.iteration;
  }

  void post(std::uint32_t id) {
    const Thread& self = threads_[id];
    const std::uint64_t count = loop_of(self).count;
    const std::uint64_t place =
        bug_ == Bug::kNextPlace ? (self.iteration + 1) % count : self.iteration;
    slots_[id]->set(place);
    for (std::uint32_t to = 0; to < shape_->nodes; ++to) {
      if (to == node_of(id) || (bug_ == Bug::kTellsOneLess && to + 1 == shape_->nodes)) continue;
      channels_[node_of(id) * shape_->nodes + to].push_back({region_, self.loop, count, place});
    }
  }

  void end_loop(std::uint32_t id) {
    Thread& self = threads_[id];
    tables_[node_of(id)].close(region_, self.loop);
    slots_[id] = nullptr;
    const std::uint32_t following = self.loop + 1;
    self = Thread{};
    self.loop = following;
    if (following < shape_->regions[region_ - 1].size()) return;
    self.at = At::kJoined;
    for (const Thread& thread : threads_) {
      if (thread.at != At::kJoined) return;
    }
    for (const PostTable& table : tables_) {
      if (table.size() != 0) fault_ = "a loop is left over";
    }
    begin_region();
  }

  const Shape* shape_;
  Bug bug_;
  std::uint32_t region_ = 0;
  std::vector<PostTable> tables_;
  std::vector<Thread> threads_;
  std::vector<PostLoop*> slots_;
  std::vector<std::deque<Message>> channels_;  // from * nodes + to
  std::vector<std::uint64_t> done_;            // bits of iterations, of each loop
  std::string fault_;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {1, 2, {{{4, 1}, {3, 2}}, {{2, 1}}}, 149},
      {2, 1, {{{4, 1}, {3, 2}}, {{3, 1}}}, 582},
      {2, 2, {{{4, 1}, {4, 2}}, {{3, 1}}}, 17484},
      {3, 1, {{{3, 1}, {3, -1}}, {{3, 1}}}, 8264},
  };
  return all;
}

TEST(PostTable, EveryOrderLetsEachIterationWaitForTheOther) {
  for (const Shape& shape : shapes()) {
    const Outcome outcome = explore(World(shape, Bug::kNone));
    EXPECT_EQ(outcome.fault, "") << shape.nodes << " x " << shape.threads;
    EXPECT_GE(outcome.ends, 1u);
    EXPECT_EQ(outcome.states, shape.states) << shape.nodes << " x " << shape.threads;
  }
}

TEST(PostTable, TheExplorerFindsPlantedBugs) {
  for (const Bug bug : {Bug::kDoesNotWait, Bug::kPostsFirst, Bug::kTellsOneLess,
                        Bug::kForgetsEarly, Bug::kNextPlace, Bug::kAnyRegion}) {
    bool found = false;
    for (const Shape& shape : shapes()) found = found || !explore(World(shape, bug)).fault.empty();
    EXPECT_TRUE(found) << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace amasia::omp
