// SPDX-License-Identifier: Apache-2.0
// Explores two and three nodes that send each other a few messages and come to rest: every order of
// events, messages that overtake each other, a worker that goes to sleep while the thread that
// receives is amid a message, operations of other modules. The origin must be right when it judges,
// and at rest it must have; after the first time the program goes on. Planted bugs check the
// exploration; larger jobs go by chance.
#include "modules/nodes/deadlock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "modules/nodes/exploration.hpp"

namespace amasia::nodes {
namespace {

enum class Bug {
  kNone,
  kAnswersAmidMessage, // D1, D2: counted when it comes, and asked before it has led to anything
  kOneKindUncounted,   // D1: messages that make work, but not all of them
  kReceiverIsSilent,   // D3: a message that wakes nobody is not looked at
  kWorkerIsSilent,     // D3: nor is a worker that goes to sleep
  kNotToldAnew,        // D4
  kLastComerCounts,    // D5
  kOneWaveIsEnough,    // the verdict without asking
  kAnswersAreNotRead,  // the verdict whatever they say
  kReportsForEver,     // D6
  kOperationsIgnored,  // a node is stalled though an operation is outstanding
  kCount,
};

enum class Kind : std::uint8_t { kWork, kIdleWork, kTold, kAsk, kAnswer };
struct Message {
  Kind kind;
  std::uint8_t from, to;
  std::uint64_t round = 0;
  StallNews news = {};
};

struct Node {
  StallTeller teller;
  MessageCounts counts;
  bool busy = false;       // its worker does something
  bool looks = false;      // the worker has gone to sleep, and is yet to look: D3
  bool amid_look = false;  // it has read `received`, and is yet to see whether the node is stalled
  std::uint64_t read = 0;
  std::uint8_t receives = 0;   // 1: amid a message that makes work, 2: one that does not
  bool receiver_looks = false;
  std::uint8_t operations = 0;
};

struct World {
  std::vector<Node> nodes;
  std::vector<Message> under_way;
  StallJudge judge;
  int may_send = 0, may_begin = 0;
  int may_go_on = 1;  // the origin, after a report
  bool judged = false;
  std::string wrong;
  Bug bug = Bug::kNone;

  World(std::uint32_t count, int messages, int operations, Bug planted)
      : nodes(count), judge(count), may_send(messages), may_begin(operations), bug(planted) {
    nodes[0].busy = true;
    for (std::size_t n = 1; n < count; ++n) nodes[n].looks = true;
  }

  std::string key() const {
    std::string text;
    const auto put = [&](std::uint64_t value) { text.push_back(static_cast<char>(value)); };
    const auto put_counts = [&](const std::optional<MessageCounts>& counts) {
      put(counts ? counts->sent + 1 : 0);
      put(counts ? counts->received : 0);
    };
    for (const Node& node : nodes) {
      put_counts(node.counts);
      put_counts(node.teller.told());
      put(node.busy | node.looks << 1 | node.amid_look << 2 | node.receiver_looks << 3 |
          node.receives << 4);
      put(node.amid_look ? node.read : 0);
      put(node.operations);
    }
    for (const std::uint64_t part : judge.fingerprint()) put(part);
    put(static_cast<std::uint64_t>(may_send) << 4 | static_cast<std::uint64_t>(may_begin));
    put(judged | may_go_on << 1);
    std::vector<std::string> messages;
    for (const Message& message : under_way) {
      std::string one;
      std::swap(one, text);
      put(static_cast<std::uint64_t>(message.kind) << 4 | message.from);
      put(message.to);
      put(message.round);
      put(message.news.serial);
      put_counts(message.news.counts);
      std::swap(one, text);
      messages.push_back(one);
    }
    std::sort(messages.begin(), messages.end());
    for (const std::string& message : messages) text += message;
    return text;
  }

  bool is_at_rest() const {
    for (const Node& node : nodes) {
      if (node.busy || node.operations != 0 || node.receives != 0) return false;
    }
    return std::none_of(under_way.begin(), under_way.end(), [](const Message& message) {
      return message.kind == Kind::kWork || message.kind == Kind::kIdleWork;
    });
  }
  std::string flaw() const { return wrong; }
  std::string flaw_at_end() const { return judged ? "" : "all is at rest, and nobody says so"; }

  std::vector<World> successors() const {
    std::vector<World> all;
    for (std::size_t n = 0; n < nodes.size(); ++n) add_own_events(all, n);
    for (std::size_t m = 0; m < under_way.size(); ++m) {
      // One thread receives, and looks after each message.
      const Node& to = nodes[under_way[m].to];
      const bool amid = to.receives != 0 || to.receiver_looks;
      if (amid && (bug != Bug::kAnswersAmidMessage || under_way[m].kind != Kind::kAsk)) continue;
      add(all, [m](World& world) { world.come(m); });
    }
    return all;
  }
  template <typename Change>
  void add(std::vector<World>& all, Change change) const {
    all.push_back(*this);
    change(all.back());
  }

  void add_own_events(std::vector<World>& all, std::size_t n) const {
    const Node& node = nodes[n];
    if (node.busy) {
      if (may_send > 0) {
        for (std::size_t to = 0; to < nodes.size(); ++to) {
          if (to == n) continue;
          add(all, [=](World& world) { world.send_work(n, to, Kind::kWork); });
          add(all, [=](World& world) { world.send_work(n, to, Kind::kIdleWork); });
        }
      }
      if (may_begin > 0) {
        add(all, [n](World& world) {
          --world.may_begin;
          ++world.nodes[n].operations;
        });
      }
      add(all, [n](World& world) {
        world.nodes[n].busy = false;
        world.nodes[n].looks = true;
      });
    }
    if (node.operations > 0) add(all, [n](World& world) { world.end_operation(n); });
    // Both looks hold the same lock.
    if (node.looks && !node.busy && !node.amid_look) {
      add(all, [n](World& world) { world.begin_look(n); });
    }
    if (node.amid_look) add(all, [n](World& world) { world.end_look(n); });
    if (node.receives != 0) add(all, [n](World& world) { world.end_message(n); });
    if (node.receiver_looks && !node.amid_look) {
      add(all, [n](World& world) {
        world.nodes[n].receiver_looks = false;
        const bool anew = world.bug == Bug::kReportsForEver;
        world.look(n, world.here(n, world.nodes[n].counts.received), anew);
      });
    }
  }

  bool is_stalled(std::size_t n) const {
    const Node& node = nodes[n];
    return !node.busy && (node.operations == 0 || bug == Bug::kOperationsIgnored);
  }
  std::optional<MessageCounts> here(std::size_t n, std::uint64_t received) const {
    if (!is_stalled(n)) return std::nullopt;
    return MessageCounts{nodes[n].counts.sent, received};
  }
  void begin_look(std::size_t n) {
    Node& node = nodes[n];
    node.looks = false;
    if (bug == Bug::kWorkerIsSilent) return;
    node.amid_look = true;
    node.read = node.counts.received;
  }
  void end_look(std::size_t n) {
    nodes[n].amid_look = false;
    look(n, here(n, nodes[n].read), true);
  }
  void look(std::size_t n, const std::optional<MessageCounts>& seen, bool anew) {
    if (n == 0) return act(judge.on_stalled(seen, anew));
    if (const auto news = nodes[n].teller.look(seen)) send(Kind::kTold, n, 0, 0, *news);
  }

  void send(Kind kind, std::size_t from, std::size_t to, std::uint64_t round = 0,
            const StallNews& news = {}) {
    under_way.push_back(
        {kind, static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to), round, news});
  }
  void send_work(std::size_t from, std::size_t to, Kind kind) {
    --may_send;
    send(kind, from, to);
    if (is_counted(kind)) ++nodes[from].counts.sent;
  }
  bool is_counted(Kind kind) const { return bug != Bug::kOneKindUncounted || kind != Kind::kWork; }
  // It puts what a task waits for, or nothing: the task goes on, and comes to sleep again.
  void end_operation(std::size_t n) {
    --nodes[n].operations;
    nodes[n].busy = true;
  }

  void come(std::size_t m) {
    const Message message = under_way[m];
    under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(m));
    Node& node = nodes[message.to];
    if (message.kind > Kind::kIdleWork) node.receiver_looks = bug != Bug::kReceiverIsSilent;
    const auto now = here(message.to, node.counts.received);
    switch (message.kind) {
      case Kind::kWork:
      case Kind::kIdleWork:
        node.receives = message.kind == Kind::kWork ? 1 : 2;
        if (bug == Bug::kAnswersAmidMessage) ++node.counts.received;
        return;
      case Kind::kTold:
        return act(judge.on_told(NodeId(message.from), heard(message.news), now));
      case Kind::kAsk: {
        StallTeller before = node.teller;
        const StallNews news = node.teller.answer(now);
        if (bug == Bug::kNotToldAnew && !now) node.teller = before;
        return send(Kind::kAnswer, message.to, message.from, message.round, news);
      }
      case Kind::kAnswer:
        return act(judge.on_answer(NodeId(message.from), message.round, heard(message.news), now));
    }
  }
  // kLastComerCounts: as if it was said now.
  StallNews heard(StallNews news) {
    if (bug == Bug::kLastComerCounts) news.serial = ++comers;
    return news;
  }
  std::uint64_t comers = 0;

  void end_message(std::size_t n) {
    Node& node = nodes[n];
    const Kind kind = node.receives == 1 ? Kind::kWork : Kind::kIdleWork;
    if (kind == Kind::kWork) node.busy = true;
    node.receives = 0;
    if (bug != Bug::kAnswersAmidMessage && is_counted(kind)) ++node.counts.received;
    node.receiver_looks = bug != Bug::kReceiverIsSilent;
  }

  void act(Judgement judgement) {
    if (judgement == Judgement::kRefused) wrong = "refused";
    if (judgement == Judgement::kAsk && bug != Bug::kOneWaveIsEnough) {
      for (std::size_t to = 1; to < nodes.size(); ++to) send(Kind::kAsk, 0, to, judge.round());
      return;
    }
    const bool last_answer = bug == Bug::kAnswersAreNotRead &&
                             judgement == Judgement::kNone && judge.round() > 0 &&
                             !judge.is_asking();
    if (judgement == Judgement::kNone && !last_answer) return;
    judged = true;
    if (!is_at_rest()) wrong = "a deadlock is reported, and something goes on";
    if (may_go_on == 0) return;
    --may_go_on;
    judged = false;
    nodes[0].busy = true;
  }
};

TEST(DeadlockOfNodes, IsJudgedRightlyInEveryOrder) {
  const model::Outcome two = model::explore(World(2, 2, 1, Bug::kNone), 8'000'000);
  EXPECT_EQ(two.finding, "");
  const model::Outcome three = model::explore(World(3, 2, 0, Bug::kNone), 8'000'000);
  EXPECT_EQ(three.finding, "");
  // Pinned: an exploration that loses worlds finds nothing, too.
  EXPECT_EQ(two.worlds, 58'722u);
  EXPECT_EQ(three.worlds, 581'334u);
}

TEST(DeadlockOfNodes, PlantedBugsAreFound) {
  for (int bug = 1; bug < static_cast<int>(Bug::kCount); ++bug) {
    const auto outcome = model::explore(World(2, 2, 1, static_cast<Bug>(bug)), 8'000'000);
    EXPECT_NE(outcome.finding, "") << "bug " << bug;
  }
}

TEST(DeadlockOfNodes, LargerJobsPlayedByChance) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    World world(2 + seed % 7, 30, 5, Bug::kNone);
    for (int steps = 0;; ++steps) {
      ASSERT_LT(steps, 100'000) << "seed " << seed;
      ASSERT_EQ(world.flaw(), "") << "seed " << seed;
      auto next = world.successors();
      if (next.empty()) break;
      world = std::move(next[random() % next.size()]);
    }
    ASSERT_EQ(world.flaw_at_end(), "") << "seed " << seed;
  }
}

TEST(DeadlockOfNodes, RefusesWhatNobodyMaySend) {
  const StallNews news{1, MessageCounts{}};
  StallJudge judge(3);
  EXPECT_EQ(judge.on_told(NodeId{0}, news, std::nullopt), Judgement::kRefused);
  EXPECT_EQ(judge.on_told(NodeId{3}, news, std::nullopt), Judgement::kRefused);
  EXPECT_EQ(judge.on_told(NodeId{1}, {1, std::nullopt}, std::nullopt), Judgement::kRefused);
  EXPECT_EQ(judge.on_answer(NodeId{1}, 0, news, MessageCounts{}), Judgement::kRefused);
  EXPECT_EQ(judge.on_told(NodeId{1}, news, MessageCounts{}), Judgement::kNone);
  EXPECT_EQ(judge.on_told(NodeId{2}, news, MessageCounts{}), Judgement::kAsk);
  EXPECT_EQ(judge.on_answer(NodeId{1}, 2, {2, MessageCounts{}}, MessageCounts{}),
            Judgement::kRefused);
  EXPECT_EQ(judge.on_answer(NodeId{1}, 1, {2, MessageCounts{}}, MessageCounts{}), Judgement::kNone);
  EXPECT_EQ(judge.on_answer(NodeId{1}, 1, {3, MessageCounts{}}, MessageCounts{}),
            Judgement::kRefused);
  EXPECT_EQ(judge.on_answer(NodeId{2}, 1, {2, MessageCounts{}}, MessageCounts{}),
            Judgement::kDeadlock);
}

}  // namespace
}  // namespace amasia::nodes
