// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/post_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "omp/every_order.hpp"
#include "omp/work_sharing/coming_home_model.hpp"

namespace amasia::omp {
namespace {

// Every order of what threads and messages can do in doacross loops, one behind the other without a
// barrier between them, and in a second region that begins while messages of the first are still
// under way. Each iteration waits for the one `distance` before it; places in the row are those of
// loops::row_place. A thread tells what it has posted at any time, or as late as it may; one that
// waits asks for it at any time, once; and threads may wait by other means than doacross, before
// they go on, for the iteration that waits for what they have posted. Once in a region the other
// nodes' threads may come home to node 0, wherever they stand.

enum class Bug {
  kNone,
  kDoesNotWait,    // an iteration does not wait for the other
  kPostsFirst,     // it posts itself before it waits
  kTellsOneLess,   // one node hears of nothing
  kForgetsEarly,   // a message about a loop that no thread here has begun is dropped
  kNextPlace,      // the bit of the iteration after is set
  kAnyRegion,      // a message does not say which region it is about
  kNeverAsks,
  kIsDeaf,         // a thread does not look whether what it posts is wanted
  kAnswersMore,    // an answer has an iteration more than have been posted
  kLeavesUntold,   // who comes home does not tell what it has not told
  kLeavesOpen,     // who comes home does not end the loop on its node
};

struct Loop {
  std::uint64_t count;
  std::int64_t distance;
};

struct Shape {
  std::uint32_t nodes, threads;
  std::vector<std::vector<Loop>> regions;
  bool is_late;  // threads tell as late as they may, and wait by other means
  bool comes_home;
  std::size_t states;  // pinned: another number says that the explored behaviour has changed
};

enum class At : std::uint8_t { kBegin, kNext, kWait, kPost, kJoined };

struct Thread {
  At at = At::kBegin;
  std::uint32_t loop = 0;
  std::uint64_t round = 0;
  std::uint64_t iteration = 0;
  UntoldPosts untold;
  bool asked = false;  // for what it waits for
};

struct Message {
  std::uint32_t region;
  std::uint64_t number, length;
  PostRun run;  // of a question: the iteration
  bool asks = false;
  std::uint32_t from = 0;
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
        at_home_(other.at_home_),
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
  // A thread's steps; that it tells in time; that it asks. At last that all come home.
  std::size_t thread_count() const { return 3 * threads_.size() + 1; }
  std::size_t channel_count() const { return channels_.size(); }
  bool can_deliver(std::size_t channel) const { return !channels_[channel].empty(); }
  bool can_act(std::uint32_t actor) const {
    if (actor == 3 * threads_.size()) return can_come_home();
    const std::uint32_t id = actor % static_cast<std::uint32_t>(threads_.size());
    const Thread& self = threads_[id];
    const bool waits = self.at == At::kWait && bug_ != Bug::kDoesNotWait && !is_free(id);
    switch (actor / threads_.size()) {
      case 0:
        return self.at != At::kJoined && !waits && !(self.at == At::kNext && awaits_other(id));
      case 1:
        return !shape_->is_late && self.untold.run.count > 0;
      default:
        return waits && !self.asked && bug_ != Bug::kNeverAsks;
    }
  }

  void act(std::uint32_t actor) {
    if (actor == 3 * threads_.size()) return come_home();
    const std::uint32_t id = actor % static_cast<std::uint32_t>(threads_.size());
    Thread& self = threads_[id];
    if (actor / threads_.size() == 1) return tell(id);
    if (actor / threads_.size() == 2) return ask(id);
    switch (self.at) {
      case At::kBegin:
        slots_[id] = &tables_[node_of(id)].open(region_, self.loop, loop_of(self).count,
                                                nest_of(self), threads_of_node());
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
    if (!message.asks) {
      tables_[to].hear(region, message.number, message.length, message.run);
      return;
    }
    auto run = tables_[to].ask(region, message.number, message.length, message.run.first);
    if (!run.has_value()) return;
    const bool has_more = run->first + run->count < message.length;
    if (bug_ == Bug::kAnswersMore && has_more) ++run->count;
    channels_[to * shape_->nodes + message.from].push_back(
        {message.region, message.number, message.length, *run});
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
      add(self.untold.run.first * 16 + self.untold.run.count);
      add(self.asked ? 1 : 0);
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
        for (std::size_t slot = 0; loop != nullptr && slot < PostLoop::kWants; ++slot) {
          add(loop->wanted(slot));
        }
      }
    }
    for (const auto& channel : channels_) {
      for (const Message& message : channel) {
        add(message.region * 64 + message.number * 16 + message.run.first);
        add(message.run.count * 2 + (message.asks ? 1 : 0));
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
    auto& home = const_cast<PostTable&>(tables_[0]);
    const auto is_open = [&](std::uint64_t loop) { return home.is_open(region_, loop); };
    return shape_->comes_home && !at_home_ && may_come_home(threads_, shape_->threads, is_open);
  }
  void come_home() {
    for (std::uint32_t id = shape_->threads; id < threads_.size(); ++id) {
      if (!is_inside(threads_[id])) continue;
      if (bug_ != Bug::kLeavesUntold) tell(id);
      if (bug_ != Bug::kLeavesOpen) tables_[node_of(id)].close(region_, threads_[id].loop);
      slots_[id] = &tables_[0].join(region_, threads_[id].loop);
      threads_[id].untold = {};
    }
    at_home_ = true;
  }
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

  // By other means: an iteration that waits for the one that it has posted, and is another's.
  bool awaits_other(std::uint32_t id) const {
    const Thread& self = threads_[id];
    if (!shape_->is_late || self.round == 0) return false;
    const std::int64_t other =
        static_cast<std::int64_t>(self.iteration) + loop_of(self).distance;
    const auto place = loops::row_place(nest_of(self), std::vector<std::int64_t>{other});
    const bool is_own = place.has_value() && *place % threads_.size() == id;
    return place.has_value() && !is_own && (done_[self.loop] >> *place & 1) == 0;
  }

  void begin_region() {
    ++region_;
    at_home_ = false;
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
    self.asked = false;
    if (!is_free(id)) tell(id);
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
    UntoldPosts& untold = threads_[id].untold;
    slots_[id]->set(place);
    if (!untold.extends(place)) tell(id);
    untold.add(place);
    if (bug_ != Bug::kIsDeaf && slots_[id]->take_want(place)) tell(id);
  }

  void tell(std::uint32_t id) {
    const PostRun run = std::exchange(threads_[id].untold, {}).run;
    if (run.count > 0) send_to_others(id, {region_, threads_[id].loop, length_of(id), run});
  }
  void ask(std::uint32_t id) {
    threads_[id].asked = true;
    const PostRun wanted{*awaited(threads_[id]), 1};
    send_to_others(id, {region_, threads_[id].loop, length_of(id), wanted, true, node_of(id)});
  }
  std::uint64_t length_of(std::uint32_t id) const { return loop_of(threads_[id]).count; }
  void send_to_others(std::uint32_t id, const Message& message) {
    if (at_home_) return;
    for (std::uint32_t to = 0; to < shape_->nodes; ++to) {
      if (to == node_of(id) || (bug_ == Bug::kTellsOneLess && to + 1 == shape_->nodes)) continue;
      channels_[node_of(id) * shape_->nodes + to].push_back(message);
    }
  }

  void end_loop(std::uint32_t id) {
    tell(id);
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
  bool at_home_ = false;
  std::vector<PostTable> tables_;
  std::vector<Thread> threads_;
  std::vector<PostLoop*> slots_;
  std::vector<std::deque<Message>> channels_;  // from * nodes + to
  std::vector<std::uint64_t> done_;            // bits of iterations, of each loop
  std::string fault_;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {1, 2, {{{4, 1}, {3, 2}}, {{2, 1}}}, false, false, 493},
      {2, 1, {{{4, 1}, {3, 2}}, {{3, 1}}}, false, false, 4685},
      {2, 1, {{{4, 1}, {3, 2}}, {{3, 1}}}, true, false, 694},
      {2, 2, {{{4, 1}}, {{2, 1}}}, false, false, 46828},
      {2, 2, {{{4, 1}, {4, 2}}, {{3, 1}}}, true, false, 109841},
      {3, 1, {{{3, 1}, {3, -1}}, {{3, 1}}}, true, false, 200813},
      {2, 1, {{{4, 1}, {3, 2}}, {{2, 1}}}, false, true, 39165},
      {2, 2, {{{4, 1}}, {{2, 1}}}, true, true, 58580},
      {3, 1, {{{3, 1}}, {{2, 1}}}, true, true, 152937},
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

TEST(PostTable, WhatIsAskedForIsAnsweredOrWanted) {
  PostTable table;
  const loops::Space row{0, 1, 100};
  PostLoop& loop = table.open(1, 0, 100, {&row, 1}, 1);
  EXPECT_EQ(table.ask(1, 0, 100, 7), std::nullopt);
  EXPECT_FALSE(loop.take_want(6));
  EXPECT_TRUE(loop.take_want(7));
  EXPECT_FALSE(loop.take_want(7)) << "it is told once";
  EXPECT_TRUE(table.hear(1, 0, 100, {7, 3}));
  EXPECT_EQ(table.ask(1, 0, 100, 8), (PostRun{8, 2}));
  EXPECT_FALSE(loop.take_want(8));
  // More than can be noted: all is told from then on.
  for (std::uint64_t place = 20; place < 20 + PostLoop::kWants; ++place) {
    EXPECT_EQ(table.ask(1, 0, 100, place), std::nullopt);
  }
  EXPECT_FALSE(loop.take_want(50));
  EXPECT_EQ(table.ask(1, 0, 100, 40), std::nullopt);
  EXPECT_TRUE(loop.take_want(50));
}

TEST(PostTable, WhatIsUntoldIsOneRun) {
  UntoldPosts untold;
  EXPECT_TRUE(untold.extends(5));
  untold.add(5);
  EXPECT_TRUE(untold.extends(6));
  EXPECT_FALSE(untold.extends(5));
  EXPECT_FALSE(untold.extends(4));
  untold.add(6);
  EXPECT_EQ(untold.run, (PostRun{5, 2}));
  untold.run.count = UntoldPosts::kMost;
  EXPECT_FALSE(untold.extends(5 + UntoldPosts::kMost));
}

TEST(PostTable, TheExplorerFindsPlantedBugs) {
  for (const Bug bug : {Bug::kDoesNotWait, Bug::kPostsFirst, Bug::kTellsOneLess,
                        Bug::kForgetsEarly, Bug::kNextPlace, Bug::kAnyRegion, Bug::kNeverAsks,
                        Bug::kIsDeaf, Bug::kAnswersMore, Bug::kLeavesUntold, Bug::kLeavesOpen}) {
    bool found = false;
    for (const Shape& shape : shapes()) found = found || !explore(World(shape, bug)).fault.empty();
    EXPECT_TRUE(found) << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace amasia::omp
