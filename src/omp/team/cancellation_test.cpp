// SPDX-License-Identifier: Apache-2.0
#include "omp/team/cancellation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "omp/every_order.hpp"

namespace amasia::omp {
namespace {

// Every order of what a team can do: threads of several nodes run a region of two constructs, each
// with a cancellation point and a barrier behind it, and then a second region of one construct in
// which one thread waits at a cancellation point until it hears. Which thread cancels what is the
// explorer's choice at each point. Messages take as long as they like; a meeting is one step here,
// since meeting_test and board_meeting_test have its own.

enum class Bug {
  kNone,
  kForgetsEarly,      // a message for a region that has not begun here is dropped
  kAnyEpoch,          // a construct's flag does not say which construct
  kTakesBack,         // what comes late replaces what is newer
  kNobodyTold,        // the first to cancel tells no node
  kOwnWord,           // a node goes by its own word instead of the team's
  kEndsAlone,         // a thread that has come to the end does not meet again
  kLooksBeforeAll,    // the leader looks at the flags before its threads have come
};

enum class At : std::uint8_t { kPoint, kBarrier, kEnd };
constexpr std::uint32_t kConstructs = 2;

struct Thread {
  At at = At::kPoint;
  std::uint8_t construct = 0;
  bool arrived = false;
  bool gone = false;  // for kEndsAlone
};

struct Message {
  Cancels what;
  Epoch epoch;
};

struct NodeState {
  CancelFlags flags;
  Epoch epoch{1, 0};
  std::uint64_t word_before = 0;  // for kLooksBeforeAll
  std::uint64_t agreed = 0;
  bool leaving = false;  // the meeting is over, and this node does not know yet
  std::vector<Thread> threads;
};

class World {
 public:
  World(std::uint32_t nodes, std::uint32_t threads, Bug bug)
      : bug_(bug), nodes_(nodes), channels_(nodes * nodes) {
    for (NodeState& node : nodes_) node.threads.resize(threads);
  }

  struct Choice {
    std::uint32_t node = 0, thread = 0;
    int action = 0;  // 0: goes on; 1: cancels the construct; 2: the region; 3, 4: see take()
    int channel = -1;
  };

  const std::string& fault() const { return fault_; }
  bool over() const {
    for (const NodeState& node : nodes_) {
      if (node.epoch.region <= 2) return false;
    }
    return true;
  }

  std::vector<Choice> choices() const {
    std::vector<Choice> out;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].epoch.region > 2) continue;
      if (nodes_[n].leaving) {
        out.push_back({.node = n, .action = 4});
        continue;
      }
      for (std::uint32_t t = 0; t < nodes_[n].threads.size(); ++t) add_choices(n, t, out);
    }
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      if (!channels_[c].empty()) out.push_back({.channel = static_cast<int>(c)});
    }
    if (all_have_arrived()) out.push_back({.action = 3});
    return out;
  }

  void take(const Choice& choice) {
    if (choice.channel >= 0) return deliver(static_cast<std::size_t>(choice.channel));
    if (choice.action == 3) return meet();
    if (choice.action == 4) return leave_meeting(nodes_[choice.node]);
    Thread& self = nodes_[choice.node].threads[choice.thread];
    if (self.at != At::kPoint) return arrive(choice.node, self);
    pass_point(choice);
  }

  std::string name() const {
    std::string name;
    const auto add = [&name](std::uint64_t value) { name.push_back(static_cast<char>(value)); };
    for (const NodeState& node : nodes_) {
      add(node.epoch.region);
      add(node.epoch.number);
      add(node.word_before >> 56);
      add(node.leaving ? 1 + (node.agreed >> 56) : 0);
      for (std::uint32_t region = 1; region <= 2; ++region) {
        add(node.flags.is_raised(Cancels::kParallel, {region, 0}));
        for (std::uint32_t m = 0; m < 4; ++m) {
          add(node.flags.is_raised(Cancels::kWorkshare, {region, m}));
        }
      }
      for (const Thread& thread : node.threads) {
        add(static_cast<std::uint64_t>(thread.at));
        add(thread.construct);
        add(thread.arrived);
        add(thread.gone);
      }
    }
    for (const auto& channel : channels_) {
      for (const Message& message : channel) {
        add(static_cast<std::uint64_t>(message.what) * 64 + message.epoch.region * 8 +
            message.epoch.number);
      }
      add(255);
    }
    add(cancelled_.size());
    for (const std::uint64_t one : cancelled_) add(one);
    return name;
  }

 private:
  // The second region's thread that waits to hear is the last one; the first cancels.
  bool waits_to_hear(std::uint32_t n, std::uint32_t t) const {
    return nodes_[n].epoch.region == 2 && n + 1 == nodes_.size() &&
           t + 1 == nodes_[n].threads.size() && n + t > 0;
  }
  bool must_cancel(std::uint32_t n, std::uint32_t t) const {
    return nodes_[n].epoch.region == 2 && n == 0 && t == 0;
  }

  void add_choices(std::uint32_t n, std::uint32_t t, std::vector<Choice>& out) const {
    const Thread& self = nodes_[n].threads[t];
    if (self.arrived || self.gone) return;
    if (self.at != At::kPoint) return out.push_back({n, t});
    if (must_cancel(n, t)) return out.push_back({n, t, 2});
    const bool hears = nodes_[n].flags.is_raised(Cancels::kParallel, nodes_[n].epoch);
    if (waits_to_hear(n, t)) {
      if (hears) out.push_back({n, t});
      return;
    }
    out.push_back({n, t});
    // Few may cancel, so that the space stays small: one thread of each of two nodes.
    if (t != 0 || n > 1 || nodes_[n].epoch.region != 1) return;
    out.push_back({n, t, 1});
    out.push_back({n, t, 2});
  }

  bool is_raised(const NodeState& node, Cancels what) const {
    if (bug_ == Bug::kAnyEpoch && what == Cancels::kWorkshare) {
      for (std::uint32_t m = 0; m <= node.epoch.number; ++m) {
        if (node.flags.is_raised(what, {node.epoch.region, m})) return true;
      }
    }
    return node.flags.is_raised(what, node.epoch);
  }

  // What was truly cancelled: so that nobody leaves for another reason.
  static std::uint64_t truth_of(Cancels what, Epoch epoch) {
    const std::uint64_t construct = what == Cancels::kWorkshare ? epoch.number + 1 : 0;
    return epoch.region * 16 + construct;
  }
  bool truly(Cancels what, Epoch epoch) const {
    for (const std::uint64_t one : cancelled_) {
      if (one == truth_of(what, epoch)) return true;
    }
    return false;
  }

  void pass_point(const Choice& choice) {
    NodeState& node = nodes_[choice.node];
    Thread& self = node.threads[choice.thread];
    if (choice.action != 0) {
      const Cancels what = choice.action == 1 ? Cancels::kWorkshare : Cancels::kParallel;
      if (!truly(what, node.epoch)) cancelled_.push_back(truth_of(what, node.epoch));
      if (node.flags.raise(what, node.epoch) && bug_ != Bug::kNobodyTold) tell(choice.node, what);
      self.at = what == Cancels::kParallel ? At::kEnd : At::kBarrier;
      return;
    }
    for (const Cancels what : {Cancels::kParallel, Cancels::kWorkshare}) {
      if (!is_raised(node, what)) continue;
      if (!truly(what, node.epoch)) fault_ = "left what nobody has cancelled";
      self.at = what == Cancels::kParallel ? At::kEnd : At::kBarrier;
      return;
    }
    self.at = At::kBarrier;
  }

  void tell(std::uint32_t from, Cancels what) {
    for (std::uint32_t to = 0; to < nodes_.size(); ++to) {
      if (to != from) channels_[from * nodes_.size() + to].push_back({what, nodes_[from].epoch});
    }
  }

  void deliver(std::size_t channel) {
    const Message message = channels_[channel].front();
    channels_[channel].pop_front();
    NodeState& node = nodes_[channel % nodes_.size()];
    if (bug_ == Bug::kForgetsEarly && message.epoch.region > node.epoch.region) return;
    if (bug_ == Bug::kTakesBack) node.flags = CancelFlags();
    node.flags.raise(message.what, message.epoch);
  }

  void arrive(std::uint32_t n, Thread& self) {
    NodeState& node = nodes_[n];
    const auto arrived = [](const Thread& thread) { return thread.arrived; };
    if (std::ranges::none_of(node.threads, arrived)) {
      node.word_before = node.flags.word(node.epoch, all_at_end(node));
    }
    self.arrived = true;
  }

  static bool all_at_end(const NodeState& node) {
    for (const Thread& thread : node.threads) {
      if (thread.at != At::kEnd) return false;
    }
    return true;
  }

  bool all_have_arrived() const {
    for (const NodeState& node : nodes_) {
      if (node.leaving) return false;
      for (const Thread& thread : node.threads) {
        if (!thread.arrived) return false;
      }
    }
    return true;
  }

  // All threads of all nodes have come: each node's leader has said its word, all have them joined.
  void meet() {
    std::uint64_t joined = 0;
    for (NodeState& node : nodes_) {
      const std::uint64_t word = node.flags.word(node.epoch, all_at_end(node));
      node.agreed = bug_ == Bug::kLooksBeforeAll ? node.word_before : word;
      joined |= node.agreed;
    }
    for (NodeState& node : nodes_) {
      if (bug_ != Bug::kOwnWord) node.agreed = joined;
      const bool cancelled = truly(Cancels::kParallel, node.epoch);
      if (((node.agreed & kCancelled) != 0) != cancelled) fault_ = "agreed on what is not so";
      node.leaving = true;
    }
  }

  void leave_meeting(NodeState& node) const {
    const std::uint64_t agreed = node.agreed;
    node.leaving = false;
    ++node.epoch.number;
    for (Thread& thread : node.threads) {
      thread.arrived = false;
      if (thread.at == At::kEnd) {
        thread.gone = bug_ == Bug::kEndsAlone;
        continue;
      }
      const bool last = ++thread.construct == (node.epoch.region == 1 ? kConstructs : 1);
      thread.at = (agreed & kCancelled) != 0 || last ? At::kEnd : At::kPoint;
    }
    if ((agreed & kGoesOn) != 0) return;
    node.epoch = {node.epoch.region + 1, 0};
    for (Thread& thread : node.threads) thread = Thread{};
  }

  Bug bug_;
  std::vector<NodeState> nodes_;
  std::vector<std::deque<Message>> channels_;  // from * nodes + to
  std::vector<std::uint64_t> cancelled_;
  std::string fault_;
};

struct Size {
  std::uint32_t nodes, threads;
  std::size_t states;  // pinned: another number says that the explored behaviour has changed
};

TEST(Cancellation, EveryOrderEndsTheRegionForAll) {
  for (const Size& size : {Size{1, 2, 227}, Size{2, 1, 4850},
                            Size{2, 2, 86026}, Size{3, 1, 234799}}) {
    const Outcome outcome = explore(World(size.nodes, size.threads, Bug::kNone));
    EXPECT_EQ(outcome.fault, "") << size.nodes << " nodes";
    EXPECT_GE(outcome.ends, 1u);
    EXPECT_EQ(outcome.states, size.states) << size.nodes << " x " << size.threads;
  }
}

TEST(Cancellation, TheExplorerFindsPlantedBugs) {
  for (const Bug bug : {Bug::kForgetsEarly, Bug::kAnyEpoch, Bug::kTakesBack, Bug::kNobodyTold,
                        Bug::kOwnWord, Bug::kEndsAlone, Bug::kLooksBeforeAll}) {
    EXPECT_NE(explore(World(2, 2, bug)).fault, "") << static_cast<int>(bug);
  }
}

TEST(Cancellation, OnlyTheFirstOfANodeTells) {
  CancelFlags flags;
  EXPECT_FALSE(flags.is_raised(Cancels::kParallel, {1, 0}));
  EXPECT_TRUE(flags.raise(Cancels::kParallel, {1, 3}));
  EXPECT_FALSE(flags.raise(Cancels::kParallel, {1, 4}));
  EXPECT_TRUE(flags.is_raised(Cancels::kParallel, {1, 9}));
  EXPECT_FALSE(flags.is_raised(Cancels::kParallel, {2, 0}));
  EXPECT_TRUE(flags.raise(Cancels::kWorkshare, {1, 0}));
  EXPECT_FALSE(flags.is_raised(Cancels::kWorkshare, {1, 1}));
  EXPECT_TRUE(flags.raise(Cancels::kWorkshare, {2, 0}));
  EXPECT_FALSE(flags.raise(Cancels::kWorkshare, {1, 7})) << "what comes late changes nothing";
  EXPECT_EQ(flags.word({1, 0}, false), kGoesOn | kCancelled);
  EXPECT_EQ(flags.word({2, 0}, true), 0u);
}

}  // namespace
}  // namespace amasia::omp
