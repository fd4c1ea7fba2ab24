// SPDX-License-Identifier: Apache-2.0
#include "omp/team/halt_vote.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "omp/every_order.hpp"

namespace amasia::omp {
namespace {

// Every order of what can be while the threads of some nodes run two regions and the origin calls
// them home: each thread comes to a construct that waits for nobody (a single), and then to the
// region's end. Its signal comes at any time, also when another attempt is under way; whether it
// finds the thread where it may hold, whether an answer comes in time and how long the origin is
// patient are the explorer's choices. A change of a word that is shared is a step of its own.

enum class Bug {
  kNone,
  kHoldsAfterRefusing,    // a thread of which another signal was under way counts after all
  kAnyAttempt,            // who holds counts for whatever attempt is under way
  kGivesUpWhileTaken,     // the watcher's patience ends without a look at what the leader does
  kForgetsVerdict,        // threads that did not all stop are not told to go on
  kAsksMeanwhile,         // the origin asks again without a verdict about what it has asked
  kTakesWhatIsElsewhere,  // the leader does not compare how far they have come
  kOneNodeIsEnough,       // an answer of one node stands for all
  kAsksAtTheEnd,          // the region goes on to its end while the watcher is at it
  kWaitsForAll,           // who has ended the region is waited for as if it came home
};

// A thread's place in a region.
enum class Place : std::uint8_t { kBeforeSingle, kBeforeEnd, kWaits, kIdle, kHome };
// What its signal handler does.
enum class Handler : std::uint8_t { kNone, kAsked, kRefuses, kHolds, kTells };

struct Thread {
  Place place = Place::kBeforeSingle;
  bool interrupted = false;  // the signal is on its way
  Handler handler = Handler::kNone;
  std::uint8_t number = 0;  // of the attempt that it knows
};

struct Message {
  enum class Kind : std::uint8_t { kHalt, kVerdict, kRelease, kRegion, kHalted, kArrived, kHome };
  Kind kind;
  std::uint8_t number = 0;  // of the attempt, or of the region
  bool yes = false;
  Place place = Place::kIdle;
};

struct NodeState {
  HaltVote vote;
  std::uint8_t region = 1;
  std::uint8_t to_interrupt = 0;  // the handler's loop over threads; 0: none left
  std::vector<Thread> threads;
  std::deque<Message> in, out;
};

enum class Phase : std::uint8_t { kIdle, kAsked, kHeld, kGivenUp, kTaking, kTaken, kOutOfStep };

struct Answer {
  bool has_come = false, holds = false;
  Place place = Place::kIdle;
  bool operator==(const Answer&) const = default;
};

struct Size {
  std::uint32_t nodes, threads;
  int attempts, regions;
};

class World {
 public:
  World(const Size& size, Bug bug)
      : bug_(bug),
        attempts_(size.attempts),
        regions_(size.regions),
        nodes_(size.nodes),
        answers_(size.nodes) {
    for (NodeState& node : nodes_) node.threads.resize(size.threads);
  }

  struct Choice {
    enum class Kind : std::uint8_t {
      kAdvance,    // a thread in the program
      kSignal,     // reaches it, and finds it where it may hold (yes), or not
      kHandler,    // goes on
      kInterrupt,  // the node's handler sends the next signal
      kToNode,     // a message arrives; yes: a thread is found asleep
      kToOrigin,   // one arrives there
      kLeader,     // the origin's leader goes on
      kTake,       // takes those that hold
      kAsk,        // the origin's watcher asks
      kAllHold,    // finds that all hold
      kGiveUp,     // does not wait any longer
      kVerdict,    // tells the others to go on
    };
    Kind kind;
    std::uint32_t node = 0, thread = 0;
    bool yes = false;
  };
  using Kind = Choice::Kind;

  const std::string& fault() const { return fault_; }
  bool over() const { return region_ > regions_; }
  std::uint32_t came_home() const { return came_home_; }

  std::vector<Choice> choices() const {
    std::vector<Choice> out;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      const NodeState& node = nodes_[n];
      for (std::uint32_t t = 0; t < node.threads.size(); ++t) add_choices(n, t, out);
      if (node.to_interrupt != 0) {
        out.push_back({Kind::kInterrupt, n});
      } else if (!node.in.empty()) {
        out.push_back({Kind::kToNode, n});
        if (node.in.front().kind == Message::Kind::kHalt)
          out.push_back({Kind::kToNode, n, 0, true});
      }
      if (!node.out.empty()) out.push_back({Kind::kToOrigin, n});
    }
    if (over()) return out;
    if (leader_can_act()) out.push_back({Kind::kLeader});
    const bool may_take = phase_ == Phase::kHeld && leader_ == Place::kWaits && !all_arrived();
    if (may_take || phase_ == Phase::kTaking) out.push_back({Kind::kTake});
    if (phase_ == Phase::kIdle && !watch_over_ && asked_ < attempts_) out.push_back({Kind::kAsk});
    if (phase_ == Phase::kAsked && all_hold() && !watch_over_) out.push_back({Kind::kAllHold});
    const bool gives_up = phase_ == Phase::kAsked || phase_ == Phase::kHeld ||
                          (bug_ == Bug::kGivesUpWhileTaken && phase_ == Phase::kTaken);
    if (gives_up) out.push_back({Kind::kGiveUp});
    if (phase_ == Phase::kGivenUp || phase_ == Phase::kOutOfStep) out.push_back({Kind::kVerdict});
    return out;
  }

  void take(const Choice& choice) {
    switch (choice.kind) {
      case Kind::kAdvance:
        return advance(choice.node, choice.thread);
      case Kind::kSignal:
        return signal(choice.node, choice.thread, choice.yes);
      case Kind::kHandler:
        return handle(choice.node, choice.thread);
      case Kind::kInterrupt: {
        NodeState& node = nodes_[choice.node];
        node.threads[--node.to_interrupt].interrupted = true;
        return;
      }
      case Kind::kToNode:
        return arrive_at_node(choice.node, choice.yes);
      case Kind::kToOrigin:
        return arrive_at_origin(choice.node);
      case Kind::kLeader:
        return lead();
      case Kind::kTake:
        return take_home();
      case Kind::kAsk:
        ++asked_;
        phase_ = Phase::kAsked;
        answers_.assign(nodes_.size(), {});
        called_ = all_nodes() & ~arrived_;
        return send({Message::Kind::kHalt, asked_}, called_);
      case Kind::kAllHold:
        phase_ = Phase::kHeld;
        return;
      case Kind::kGiveUp:
        phase_ = bug_ == Bug::kAsksMeanwhile ? Phase::kIdle : Phase::kGivenUp;
        return;
      case Kind::kVerdict:
        if (bug_ != Bug::kForgetsVerdict) send({Message::Kind::kVerdict, asked_}, called_);
        phase_ = Phase::kIdle;
        return;
    }
  }

  std::string name() const {
    std::string name;
    const auto add = [&name](auto value) { name.push_back(static_cast<char>(value)); };
    const auto add_all = [&](const std::deque<Message>& messages) {
      for (const Message& message : messages) {
        add(message.kind);
        add(message.number);
        add(message.yes);
        add(message.place);
      }
      add(255);
    };
    for (const NodeState& node : nodes_) {
      for (int byte = 0; byte < 8; ++byte) add(node.vote.word() >> (8 * byte));
      add(node.region);
      add(node.to_interrupt);
      for (const Thread& thread : node.threads) {
        add(thread.place);
        add(thread.interrupted);
        add(thread.handler);
        add(thread.handler == Handler::kNone ? 0 : thread.number);
      }
      add_all(node.in);
      add_all(node.out);
    }
    for (const Answer& answer : answers_) {
      add(answer.has_come);
      add(answer.holds);
      add(answer.place);
    }
    add(phase_);
    add(asked_);
    add(leader_);
    add(arrived_);
    add(called_);
    add(home_);
    add(region_);
    add(watch_over_);
    add(came_home_);
    return name;
  }

 private:
  // ---- the other nodes

  void add_choices(std::uint32_t n, std::uint32_t t, std::vector<Choice>& out) const {
    const NodeState& node = nodes_[n];
    const Thread& self = node.threads[t];
    const bool in_program = self.place == Place::kBeforeSingle || self.place == Place::kBeforeEnd;
    if (self.handler == Handler::kHolds) {
      if (!node.vote.waits(self.number)) out.push_back({Kind::kHandler, n, t});
      return;  // the signal is blocked meanwhile
    }
    if (self.handler != Handler::kNone) return out.push_back({Kind::kHandler, n, t});
    if (self.interrupted) {
      out.push_back({Kind::kSignal, n, t});
      if (in_program) out.push_back({Kind::kSignal, n, t, true});
    }
    if (in_program) out.push_back({Kind::kAdvance, n, t});
  }

  static bool waits(const Thread& thread) { return thread.place == Place::kWaits; }

  void advance(std::uint32_t n, std::uint32_t t) {
    NodeState& node = nodes_[n];
    Thread& self = node.threads[t];
    self.place = self.place == Place::kBeforeSingle ? Place::kBeforeEnd : Place::kWaits;
    if (std::ranges::all_of(node.threads, waits)) node.out.push_back({Message::Kind::kArrived});
  }

  void signal(std::uint32_t n, std::uint32_t t, bool may_hold) {
    NodeState& node = nodes_[n];
    Thread& self = node.threads[t];
    self.interrupted = false;
    self.number = static_cast<std::uint8_t>(node.vote.number());
    if (node.vote.state() == HaltVote::State::kVoting || bug_ == Bug::kHoldsAfterRefusing) {
      self.handler = Handler::kAsked;
      if (!may_hold) self.handler = Handler::kRefuses;
    }
  }

  // True: all hold, so this thread is to tell.
  bool hold(HaltVote& vote, Thread& self, std::uint32_t threads) const {
    self.handler = Handler::kHolds;
    if (bug_ == Bug::kHoldsAfterRefusing && vote.state() == HaltVote::State::kRefused) {
      vote = HaltVote(vote.word() + 0x100);
      return vote.held() == threads;
    }
    const bool any = bug_ == Bug::kAnyAttempt;
    if (!vote.hold(any ? vote.number() : self.number, threads)) self.handler = Handler::kNone;
    return self.handler != Handler::kNone && vote.state() == HaltVote::State::kAllHold;
  }

  void handle(std::uint32_t n, std::uint32_t t) {
    NodeState& node = nodes_[n];
    Thread& self = node.threads[t];
    HaltVote& vote = node.vote;
    if (self.handler == Handler::kRefuses) {
      vote.refuse(self.number);
      self.handler = Handler::kNone;
      return;
    }
    if (self.handler == Handler::kAsked) {
      const auto threads = static_cast<std::uint32_t>(node.threads.size());
      if (hold(vote, self, threads)) self.handler = Handler::kTells;
      return;
    }
    if (self.handler == Handler::kTells) {
      self.handler = Handler::kHolds;
      const auto as_far = [&](const Thread& one) { return one.place == self.place; };
      const bool in_step = std::ranges::all_of(node.threads, as_far);
      return answer(n, self.number, in_step, self.place);
    }
    if (vote.goes_home(self.number)) {
      if (self.place != leader_before_) fault_ = "went home from another place than the origin's";
      self.place = Place::kHome;
      const auto is_home = [](const Thread& one) { return one.place == Place::kHome; };
      if (std::ranges::all_of(node.threads, is_home)) node.out.push_back({Message::Kind::kHome});
    } else if (vote.tell_refusal(self.number)) {
      answer(n, self.number, false, Place::kIdle);
    }
    self.handler = Handler::kNone;
  }

  void answer(std::uint32_t n, std::uint8_t number, bool holds, Place place) {
    nodes_[n].out.push_back({Message::Kind::kHalted, number, holds, place});
  }

  void arrive_at_node(std::uint32_t n, bool one_sleeps) {
    NodeState& node = nodes_[n];
    const Message message = node.in.front();
    node.in.pop_front();
    switch (message.kind) {
      case Message::Kind::kHalt: {
        const auto is_out = [](const Thread& one) { return one.place >= Place::kIdle; };
        if (one_sleeps || std::ranges::any_of(node.threads, is_out)) {
          return answer(n, message.number, false, Place::kIdle);
        }
        if (!node.vote.ask(message.number)) fault_ = "asked for an earlier attempt";
        node.to_interrupt = static_cast<std::uint8_t>(node.threads.size());
        return;
      }
      case Message::Kind::kVerdict:
        if (!node.vote.decide(message.number, message.yes)) fault_ = "a verdict that cannot be";
        return;
      case Message::Kind::kRelease:
        for (Thread& thread : node.threads) thread.place = Place::kIdle;
        return;
      default:  // kRegion
        node.region = message.number;
        for (Thread& thread : node.threads) thread.place = Place::kBeforeSingle;
        return;
    }
  }

  // ---- the origin

  std::uint8_t all_nodes() const { return static_cast<std::uint8_t>((1U << nodes_.size()) - 1); }
  void send(const Message& message, unsigned to) {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if ((to >> n & 1) != 0) nodes_[n].in.push_back(message);
    }
  }

  void arrive_at_origin(std::uint32_t n) {
    NodeState& node = nodes_[n];
    const Message message = node.out.front();
    node.out.pop_front();
    if (message.kind == Message::Kind::kArrived) {
      arrived_ |= static_cast<std::uint8_t>(1U << n);
    } else if (message.kind == Message::Kind::kHome) {
      home_ |= static_cast<std::uint8_t>(1U << n);
    } else if (message.number == asked_) {
      if (answers_[n].has_come) fault_ = "two answers of a node about one attempt";
      answers_[n] = {true, message.yes, message.place};
    }
  }

  bool all_hold() const {
    const auto holds = [](const Answer& answer) { return answer.holds; };
    return called_ != 0 && agree(holds);
  }
  // Those that were called.
  template <typename Predicate>
  bool agree(Predicate predicate) const {
    bool one = false, all = true;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if ((called_ >> n & 1) == 0) continue;
      one = one || predicate(answers_[n]);
      all = all && predicate(answers_[n]);
    }
    return bug_ == Bug::kOneNodeIsEnough ? one : all;
  }
  bool all_arrived() const { return arrived_ == all_nodes(); }
  bool watcher_is_idle() const { return phase_ == Phase::kIdle || phase_ == Phase::kTaken; }

  bool leader_can_act() const {
    if (leader_ != Place::kWaits) return true;
    if (phase_ == Phase::kTaking) return false;
    if (phase_ == Phase::kTaken) {
      return home_ == (bug_ == Bug::kWaitsForAll ? all_nodes() : called_);
    }
    if (!all_arrived()) return false;
    // First it tells the watcher that the region is over, then it waits for it.
    return !watch_over_ || watcher_is_idle() || bug_ == Bug::kAsksAtTheEnd;
  }

  void lead() {
    if (leader_ == Place::kBeforeSingle) {
      leader_ = Place::kBeforeEnd;
      return;
    }
    if (leader_ == Place::kBeforeEnd) {
      leader_before_ = leader_;
      leader_ = Place::kWaits;
      return;
    }
    if (phase_ == Phase::kTaken) {
      ++came_home_;
      if ((arrived_ & called_) != 0) fault_ = "a node that has come to the end has come home";
      if ((arrived_ | called_) != all_nodes()) fault_ = "a node was forgotten";
      send({Message::Kind::kRelease}, arrived_);
    } else if (!watch_over_) {
      watch_over_ = true;
      return;
    } else {
      send({Message::Kind::kRelease}, all_nodes());
    }
    if (++region_ <= regions_) send({Message::Kind::kRegion, region_}, all_nodes());
    phase_ = Phase::kIdle;
    leader_ = Place::kBeforeSingle;
    watch_over_ = false;
    arrived_ = home_ = called_ = 0;
  }

  void take_home() {
    if (phase_ == Phase::kHeld) {
      phase_ = Phase::kTaking;
      return;
    }
    const auto in_step = [this](const Answer& answer) { return answer.place == leader_before_; };
    if (agree(in_step) || bug_ == Bug::kTakesWhatIsElsewhere) {
      send({Message::Kind::kVerdict, asked_, true}, called_);
      phase_ = Phase::kTaken;
    } else {
      phase_ = Phase::kOutOfStep;
    }
  }

  Bug bug_;
  int attempts_, regions_;
  std::vector<NodeState> nodes_;
  std::vector<Answer> answers_;
  Phase phase_ = Phase::kIdle;
  std::uint8_t asked_ = 0;
  Place leader_ = Place::kBeforeSingle;
  Place leader_before_ = Place::kBeforeSingle;        // how far it has come
  std::uint8_t arrived_ = 0, called_ = 0, home_ = 0;  // a bit for each node
  std::uint8_t region_ = 1;
  bool watch_over_ = false;
  std::uint8_t came_home_ = 0;
  std::string fault_;
};

struct Explored {
  Size size;
  std::size_t states;  // pinned: another number says that the explored behaviour has changed
};

TEST(HaltVote, InEveryOrderAllComeHomeOrGoOn) {
  for (const auto& [size, states] :
       {Explored{{1, 1, 2, 2}, 9762}, Explored{{1, 2, 2, 2}, 136996},
        Explored{{1, 3, 1, 2}, 103045}, Explored{{2, 1, 1, 2}, 66299},
        Explored{{2, 1, 2, 1}, 1325603}}) {
    int at_home = 0, stayed = 0;
    const Outcome outcome = explore(World(size, Bug::kNone), [&](const World& world) {
      ++(world.came_home() > 0 ? at_home : stayed);
    });
    EXPECT_EQ(outcome.fault, "") << size.nodes << " nodes, " << size.threads << " threads";
    EXPECT_GE(at_home, 1);
    EXPECT_GE(stayed, 1);
    EXPECT_EQ(outcome.states, states) << size.nodes << " x " << size.threads;
  }
}

TEST(HaltVote, TheExplorerFindsPlantedBugs) {
  for (const Bug bug : {Bug::kHoldsAfterRefusing, Bug::kAnyAttempt, Bug::kGivesUpWhileTaken,
                        Bug::kForgetsVerdict, Bug::kAsksMeanwhile, Bug::kTakesWhatIsElsewhere,
                        Bug::kOneNodeIsEnough, Bug::kAsksAtTheEnd, Bug::kWaitsForAll}) {
    const bool found = !explore(World({1, 2, 2, 1}, bug)).fault.empty() ||
                       !explore(World({2, 1, 1, 2}, bug)).fault.empty();
    EXPECT_TRUE(found) << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace amasia::omp
