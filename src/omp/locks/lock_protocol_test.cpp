// SPDX-License-Identifier: Apache-2.0
// Explores every interleaving of 2 and 3 nodes of 1 or 2 threads each on one lock: each delivery
// of a message, in any order, and each thread's call is a step of its own. The list of planted bugs
// checks the checker.
#include "omp/locks/lock_protocol.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace amasia::omp {
namespace {

constexpr std::uint32_t kMostThreads = 2;
constexpr std::uint8_t kNoThread = kMostThreads;
constexpr std::uint32_t kMaxModelNodes = 3;
constexpr std::uint16_t kBound = 1;
constexpr std::uint16_t kLingerBound = 2;

enum class Bug {
  kNone,
  kTokenLeavesWhileHeld,
  kNextForgotten,
  kWaitersForgottenOnPassing,
  kWaitersForgottenOnFailedTry,
  kHomeKeepsTail,
  kHomeIgnoresMovedToken,
  kHomeForwardsDuringProbe,
  kTryTakesHeldLock,
  kTriesLeftWaiting,
  kHandOverWithoutBound,
  kGrantLost,
  kWakeLost,
  kBargingWithoutBound,
  kUnsetStopsHalfway,
  kUnsetTakenTwice,
  kLingersUntold,
  kNudgeLost,
  kNudgeForgotten,
  kLingersWithoutBound,
  kCount,
};

// kUnset: it holds the lock, and a thread of another node has unset it.
enum class Thread : char { kIdle, kWaiting, kTrying, kHolding, kUnset };

struct Message {
  LockEventKind kind{};
  std::uint8_t subject = 0;
  friend bool operator==(const Message&, const Message&) = default;
};

// Messages under way from one node to another. Any of them may arrive next: the service sends what
// a step asks for after it has let go of the lock's state, so threads may overtake each other.
struct Channel {
  static constexpr std::size_t kMax = 8;
  std::array<Message, kMax + 1> messages{};
  std::uint8_t size = 0;

  const Message* begin() const { return messages.data(); }
  const Message* end() const { return messages.data() + size; }
  void push(Message message, std::uint32_t copies) {
    // Nobody answers these two, so a slow one may be overtaken by those of later turns. As they
    // say the same, one more than a few would tell nothing new.
    const bool unanswered =
        message.kind == LockEventKind::kLingers || message.kind == LockEventKind::kNudge;
    if (unanswered && std::count(begin(), end(), message) >= copies) return;
    if (size <= kMax) messages[size++] = message;
  }
  Message take(std::size_t at) {
    const Message message = messages[at];
    std::copy(messages.begin() + at + 1, messages.begin() + size, messages.begin() + at);
    --size;
    return message;
  }
};

struct World {
  static constexpr std::uint8_t kNotNudged = 0xff;
  std::uint32_t nodes = 2;
  LockHome home = initial_lock_home(base::kOrigin);
  std::array<LockLocal, kMaxModelNodes> local;
  std::array<std::array<Thread, kMostThreads>, kMaxModelNodes> threads{};
  std::array<std::string, kMaxModelNodes> waiting, trying;  // thread numbers, first come first
  std::array<std::array<Channel, kMaxModelNodes>, kMaxModelNodes> channel;
  std::array<bool, kMaxModelNodes> woken{};  // the first waiting thread is to retry
  std::array<std::uint8_t, kMaxModelNodes> grants_after_next{};
  // Since the nudge; one may be under way when it comes. kNotNudged: there was none.
  std::array<std::uint8_t, kMaxModelNodes> grants_after_nudge{kNotNudged, kNotNudged, kNotNudged};
  std::array<std::uint8_t, kMaxModelNodes> passed_over{};  // how often, the first waiting thread

  std::string key() const {
    std::string k;
    k.reserve(96);
    auto put = [&k](std::uint64_t v) { k.push_back(static_cast<char>(v)); };
    put(home.tail.value);
    put(home.probing ? home.prober.value + 1 : 0);
    put(home.deferred_requests);
    put(home.deferred_tries);
    for (std::uint32_t n = 0; n < nodes; ++n) {
      const LockLocal& l = local[n];
      put(static_cast<std::uint8_t>(l.token) | l.held << 3 | l.next_known << 4 | l.lingers << 5 |
          l.nudged << 6);
      put(l.lingers_at);
      put(l.next_known ? l.next.value : 0);
      put(l.handed);
      put(l.barged);
      put(woken[n]);
      put(grants_after_next[n]);
      put(grants_after_nudge[n]);
      put(passed_over[n]);
      for (const Thread t : threads[n]) put(static_cast<std::uint8_t>(t));
      k += waiting[n] + "|" + trying[n] + "|";
      for (std::uint32_t m = 0; m < nodes; ++m) {
        std::string in_channel;
        for (const Message message : channel[n][m]) {
          in_channel.push_back(
              static_cast<char>((static_cast<int>(message.kind) + 1) * 4 + message.subject));
        }
        std::sort(in_channel.begin(), in_channel.end());
        k += in_channel;
        put(0xff);
      }
    }
    return k;
  }
};

// What is wrong with a world, if anything.
using Finding = std::optional<std::string>;

// What an exploration covers: barging and tries multiply each other's states.
struct Scope {
  std::uint32_t nodes = 2;
  std::uint32_t threads = kMostThreads;  // of each node
  bool barging = true;
  bool tries = true;
  bool unsets_elsewhere = false;
  bool lingering = false;  // wherever it may
  std::uint32_t copies = 2;  // of a message that nobody answers, under way at one time
};

class Model {
 public:
  Model(Scope scope, Bug bug) : scope_(scope), bug_(bug) {
    const std::uint32_t nodes = scope.nodes;
    first_.nodes = nodes;
    for (std::uint16_t n = 0; n < nodes; ++n) {
      first_.local[n] = initial_lock_local(NodeId{n}, base::kOrigin);
    }
  }

  Finding explore() {
    std::deque<World> open{first_};
    number_[first_.key()] = 0;
    edges_.emplace_back();
    while (!open.empty()) {
      const World world = std::move(open.front());
      open.pop_front();
      const std::uint32_t from = number_[world.key()];
      bool must_move = false;
      for (auto& [next, starts] : successors(world)) {
        if (finding_) return finding_;
        if (Finding wrong = check(next)) return wrong;
        must_move |= !starts;
        const auto [at, fresh] =
            number_.emplace(next.key(), static_cast<std::uint32_t>(number_.size()));
        if (fresh) {
          edges_.emplace_back();
          open.push_back(std::move(next));
        }
        if (!starts) edges_[from].push_back(at->second);
      }
      if (finding_) return finding_;
      if (!must_move && !all_idle(world)) return "a thread waits and nothing will wake it";
    }
    return check_termination();
  }

  // One path through worlds that are too many to see all; then no thread starts anything any more,
  // until all is at rest.
  Finding walk(std::uint32_t seed, int steps) {
    std::mt19937 random(seed);
    World world = first_;
    for (int step = 0;; ++step) {
      std::vector<Next> all = successors(world);
      if (step >= steps) std::erase_if(all, [](const Next& next) { return next.starts; });
      if (finding_) return finding_;
      if (all.empty() && all_idle(world)) return std::nullopt;
      if (all.empty()) return "a thread waits and nothing will wake it";
      world = std::move(all[random() % all.size()].world);
      if (Finding wrong = check(world)) return wrong;
    }
  }

  std::size_t states() const { return number_.size(); }

 private:
  struct Next {
    World world;
    bool starts;  // a thread's own choice; all other steps must lead to rest by themselves
  };

  std::vector<Next> successors(const World& world) {
    std::vector<Next> all;
    for (std::uint8_t n = 0; n < world.nodes; ++n) {
      for (std::uint8_t t = 0; t < scope_.threads; ++t) {
        if (world.threads[n][t] == Thread::kIdle) {
          all.push_back({call(world, n, t, LockEventKind::kAcquire), true});
          if (scope_.tries) all.push_back({call(world, n, t, LockEventKind::kTry), true});
        } else if (world.threads[n][t] == Thread::kHolding) {
          all.push_back({call(world, n, t, LockEventKind::kRelease), false});
          if (scope_.lingering) {
            all.push_back({call(world, n, t, LockEventKind::kRelease, true), false});
          }
          for (std::uint8_t m = 0; scope_.unsets_elsewhere && m < world.nodes; ++m) {
            if (m != n) all.push_back({unset_elsewhere(world, n, t, m), false});
          }
        }
      }
      if (world.woken[n]) all.push_back({retry(world, n), false});
      if (world.local[n].lingers_at != 0) {
        all.push_back({happen(world, n, LockEventKind::kNudgeNext), false});
      }
      if (world.local[n].lingers) all.push_back({happen(world, n, LockEventKind::kPause), true});
      for (std::uint8_t m = 0; m < world.nodes; ++m) {
        for (std::size_t at = 0; at < world.channel[n][m].size; ++at) {
          all.push_back({deliver(world, n, m, at), false});
          const LockEventKind kind = world.channel[n][m].messages[at].kind;
          if (scope_.lingering && kind == LockEventKind::kForward) {
            all.push_back({deliver(world, n, m, at, true), false});
          }
        }
      }
    }
    if (scope_.tries && world.local[0].token == LockLocal::Token::kAbsent) {
      all.push_back({happen(world, 0, LockEventKind::kRecall), true});
    }
    return all;
  }

  World happen(World world, std::uint8_t n, LockEventKind kind) {
    step_node(world, n, {kind, NodeId{n}}, kNoThread);
    return world;
  }

  World call(World world, std::uint8_t n, std::uint8_t t, LockEventKind kind,
             bool may_linger = false) {
    Thread& thread = world.threads[n][t];
    // Where the thread is unless an effect of the step says otherwise.
    if (kind == LockEventKind::kAcquire) {
      thread = Thread::kWaiting;
      world.waiting[n].push_back(static_cast<char>('0' + t));
    } else if (kind == LockEventKind::kTry) {
      thread = Thread::kTrying;
      world.trying[n].push_back(static_cast<char>('0' + t));
    } else {
      thread = Thread::kIdle;
    }
    step_node(world, n, {kind, NodeId{n}, may_linger}, t);
    return world;
  }

  World unset_elsewhere(World world, std::uint8_t n, std::uint8_t t, std::uint8_t where) {
    world.threads[n][t] = Thread::kUnset;
    step_node(world, where, {LockEventKind::kRelease, NodeId{where}}, kNoThread);
    return world;
  }

  World retry(World world, std::uint8_t n) {
    world.woken[n] = false;
    if (world.waiting[n].empty()) {  // it was given the lock in the meantime
      return world;
    }
    step_node(world, n, {LockEventKind::kRetry, NodeId{n}},
              static_cast<std::uint8_t>(world.waiting[n].front() - '0'));
    return world;
  }

  World deliver(World world, std::uint8_t from, std::uint8_t to, std::size_t at,
                bool may_linger = false) {
    const Message message = world.channel[from][to].take(at);
    const LockEvent event{message.kind, NodeId{message.subject}, may_linger};
    switch (message.kind) {
      case LockEventKind::kRequest:
      case LockEventKind::kTryRequest:
      case LockEventKind::kTryMoved:
      case LockEventKind::kTryRefused: step_home(world, event); break;
      default: step_node(world, to, event, kNoThread);
    }
    return world;
  }

  void step_home(World& world, LockEvent event) {
    const LockHome before = world.home;
    LockHomeEffects effects;
    if (bug_ == Bug::kHomeForwardsDuringProbe && event.kind == LockEventKind::kRequest) {
      world.home.probing = false;
      step_lock_home(world.home, event, effects);
      world.home.probing = before.probing;
    } else {
      step_lock_home(world.home, event, effects);
    }
    if (bug_ == Bug::kHomeKeepsTail && event.kind == LockEventKind::kRequest) {
      world.home.tail = before.tail;
    }
    if (bug_ == Bug::kHomeIgnoresMovedToken && event.kind == LockEventKind::kTryMoved &&
        effects.size() == 0) {
      world.home.tail = before.tail;
    }
    apply(world, 0, effects, kNoThread);
  }

  void step_node(World& world, std::uint8_t n, LockEvent event, std::uint8_t caller) {
    LockLocal& lock = world.local[n];
    const LockLocal before = lock;
    LockEffects effects;
    LockSite site{NodeId{n}, base::kOrigin, kBound, barge_bound(), kLingerBound, scope_.nodes};
    if (bug_ == Bug::kLingersWithoutBound) site.linger_bound = 5;
    if (bug_ == Bug::kNudgeLost && event.kind == LockEventKind::kNudge) return;
    if (bug_ == Bug::kBargingWithoutBound) site.barge_bound = 5;
    if (bug_ == Bug::kHandOverWithoutBound) site.hand_over_bound = 3;
    if (bug_ == Bug::kTryTakesHeldLock && event.kind == LockEventKind::kTry) lock.held = false;
    if (bug_ == Bug::kTokenLeavesWhileHeld && event.kind == LockEventKind::kForward) {
      lock.held = false;
    }
    const bool unset = event.kind == LockEventKind::kUnset;
    if (bug_ == Bug::kUnsetStopsHalfway && unset && !lock.held) return;
    step_lock_local(lock, site, event, effects);
    if (unset && before.held) {
      for (Thread& thread : world.threads[n]) {
        if (thread == Thread::kUnset) thread = Thread::kIdle;
      }
      if (bug_ == Bug::kUnsetTakenTwice) effects.send(LockEventKind::kUnset, NodeId{0}, NodeId{n});
    }
    if (bug_ == Bug::kNextForgotten && event.kind == LockEventKind::kForward) {
      lock.next_known = false;
    }
    if (bug_ == Bug::kNudgeForgotten) lock.nudged = false;
    const bool passed = before.token == LockLocal::Token::kHere && before.waiting > 0 &&
                        lock.token == LockLocal::Token::kRequested;
    const bool failed = event.kind == LockEventKind::kTryFailed;
    const bool drop_request = (bug_ == Bug::kWaitersForgottenOnPassing && passed) ||
                              (bug_ == Bug::kWaitersForgottenOnFailedTry && failed);
    if (drop_request && lock.token == LockLocal::Token::kRequested) {
      lock.token = LockLocal::Token::kAbsent;
    }
    count_grants(world, n, event, effects);
    apply(world, n, effects, caller, drop_request);
  }

  // Counts independently of the core how long a known next is kept waiting.
  void count_grants(World& world, std::uint8_t n, LockEvent event, const LockEffects& effects) {
    constexpr std::uint8_t kNotNudged = World::kNotNudged;
    const std::uint16_t bound = scope_.lingering ? kLingerBound : kBound;
    std::uint8_t& after_nudge = world.grants_after_nudge[n];
    if (event.kind == LockEventKind::kForward) world.grants_after_next[n] = 0;
    const bool passes_later = world.local[n].token == LockLocal::Token::kHere &&
                              world.local[n].next_known;
    if (event.kind == LockEventKind::kNudge && passes_later && after_nudge == kNotNudged) {
      after_nudge = 0;
    }
    for (const LockEffect& effect : effects) {
      const bool passes = effect.kind == LockEffect::Kind::kSend &&
                          effect.message == LockEventKind::kToken;
      if (passes) {
        world.grants_after_next[n] = 0;
        after_nudge = kNotNudged;
      }
      const bool grants = effect.kind == LockEffect::Kind::kGrantWaiter ||
                          effect.kind == LockEffect::Kind::kGrantCaller;
      if (grants && world.local[n].next_known && ++world.grants_after_next[n] > bound + 1) {
        finding_ = "a node that waits is passed over";
      }
      if (grants && after_nudge != kNotNudged && ++after_nudge > 1) {
        finding_ = "a node that has nudged is passed over";
      }
    }
    if (!world.local[n].next_known) world.grants_after_next[n] = 0;
  }

  template <typename Effects>
  void apply(World& world, std::uint8_t n, const Effects& effects, std::uint8_t caller,
             bool drop_request = false) {
    using Kind = LockEffect::Kind;
    for (const LockEffect& effect : effects) {
      switch (effect.kind) {
        case Kind::kSend:
          if (drop_request && effect.message == LockEventKind::kRequest) break;
          if (bug_ == Bug::kLingersUntold && effect.message == LockEventKind::kLingers) break;
          world.channel[n][effect.to.value].push(
              {effect.message, static_cast<std::uint8_t>(effect.subject.value)}, scope_.copies);
          break;
        case Kind::kGrantCaller: grant_caller(world, n, caller); break;
        case Kind::kRefuseCaller:
          if (world.threads[n][caller] == Thread::kTrying) {
            settle(world, n, caller, Thread::kIdle);
          }
          break;
        case Kind::kWakeWaiter: world.woken[n] = bug_ != Bug::kWakeLost; break;
        case Kind::kGrantWaiter:
          if (bug_ == Bug::kGrantLost) break;
          world.passed_over[n] = 0;
          settle_first(world, n, world.waiting[n], Thread::kHolding);
          break;
        case Kind::kGrantTry: settle_first(world, n, world.trying[n], Thread::kHolding); break;
        case Kind::kRefuseTries:
          if (bug_ == Bug::kTriesLeftWaiting) break;
          while (!world.trying[n].empty()) {
            settle_first(world, n, world.trying[n], Thread::kIdle);
          }
          break;
        case Kind::kNobodyHolds:
          finding_ = "an unset passes by the thread that holds the lock";
          break;
      }
    }
  }

  void grant_caller(World& world, std::uint8_t n, std::uint8_t caller) {
    const bool first = !world.waiting[n].empty() && world.waiting[n].front() == '0' + caller;
    if (first || world.waiting[n].empty()) {
      world.passed_over[n] = 0;
    } else if (++world.passed_over[n] > barge_bound() + 1) {
      finding_ = "a thread that waits is passed over";
    }
    settle(world, n, caller, Thread::kHolding);
  }

  void settle_first(World& world, std::uint8_t n, std::string& queue, Thread to) {
    if (queue.empty()) {
      finding_ = "a grant finds nobody who waits";
      return;
    }
    settle(world, n, static_cast<std::uint8_t>(queue.front() - '0'), to);
  }

  void settle(World& world, std::uint8_t n, std::uint8_t thread, Thread to) {
    world.threads[n][thread] = to;
    for (std::string* queue : {&world.waiting[n], &world.trying[n]}) {
      std::erase(*queue, static_cast<char>('0' + thread));
    }
  }

  static bool all_idle(const World& world) {
    for (std::uint32_t n = 0; n < world.nodes; ++n) {
      for (const Thread t : world.threads[n]) {
        if (t != Thread::kIdle) return false;
      }
    }
    return true;
  }

  static Finding check(const World& world) {
    int holding = 0, tokens = 0;
    for (std::uint32_t n = 0; n < world.nodes; ++n) {
      tokens += world.local[n].token == LockLocal::Token::kHere;
      int here = 0;
      for (const Thread t : world.threads[n]) here += t == Thread::kHolding || t == Thread::kUnset;
      holding += here;
      if ((here > 0) != world.local[n].held) return "the node's view of its holder is wrong";
      if (world.local[n].waiting != world.waiting[n].size()) return "a waiter is not counted";
      if (world.local[n].trying != world.trying[n].size()) return "a try is not counted";
      for (std::uint32_t m = 0; m < world.nodes; ++m) {
        for (const Message message : world.channel[n][m]) {
          tokens += message.kind == LockEventKind::kToken;
        }
        if (world.channel[n][m].size > Channel::kMax) return "a channel grows without bound";
      }
    }
    if (holding > 1) return "two threads have the lock";
    if (tokens != 1) return "the token is not exactly once in the world";
    return std::nullopt;
  }

  // With no thread starting anything new, every path ends: the graph of the other steps is acyclic.
  Finding check_termination() const {
    std::vector<std::uint32_t> incoming(edges_.size(), 0);
    for (const auto& list : edges_) {
      for (const auto to : list) ++incoming[to];
    }
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < edges_.size(); ++i) {
      if (incoming[i] == 0) ready.push_back(i);
    }
    std::size_t removed = 0;
    while (!ready.empty()) {
      const std::uint32_t at = ready.back();
      ready.pop_back();
      ++removed;
      for (const auto to : edges_[at]) {
        if (--incoming[to] == 0) ready.push_back(to);
      }
    }
    if (removed != edges_.size()) return "messages go round without end";
    return std::nullopt;
  }

  std::uint16_t barge_bound() const { return scope_.barging ? kBound : 0; }

  Scope scope_;
  Bug bug_;
  World first_;
  Finding finding_;
  std::unordered_map<std::string, std::uint32_t> number_;
  std::vector<std::vector<std::uint32_t>> edges_;
};

void expect_right(Scope scope, std::size_t states) {
  Model model(scope, Bug::kNone);
  const Finding finding = model.explore();
  EXPECT_FALSE(finding) << *finding;
  EXPECT_EQ(model.states(), states);
}

TEST(LockProtocol, IsRightInEveryInterleavingOfTwoNodes) {
  expect_right({.nodes = 2, .barging = true, .tries = true}, 20092u);
}

TEST(LockProtocol, IsRightInEveryInterleavingOfThreeNodes) {
  expect_right({.nodes = 3, .barging = true, .tries = false}, 689856u);
  expect_right({.nodes = 3, .barging = false, .tries = true}, 469369u);
}

TEST(LockProtocol, IsRightWhenOtherNodesUnset) {
  expect_right({.nodes = 2, .unsets_elsewhere = true}, 26572u);
  expect_right({.nodes = 3, .barging = false, .tries = false, .unsets_elsewhere = true}, 32139u);
}

TEST(LockProtocol, IsRightWhenTokensLinger) {
  expect_right({.nodes = 2, .threads = 1, .lingering = true}, 30870u);
  expect_right({.nodes = 2, .barging = false, .tries = false, .lingering = true}, 126162u);
  expect_right({.nodes = 2, .tries = false, .lingering = true, .copies = 1}, 317184u);
}

TEST(LockProtocol, IsRightOnRandomPathsOfThreeNodes) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    Model model({.nodes = 3, .unsets_elsewhere = seed % 2 == 0, .lingering = true}, Bug::kNone);
    const Finding finding = model.walk(seed, 2000);
    ASSERT_FALSE(finding) << *finding << " with seed " << seed;
  }
}

// True if the exploration finds something wrong or one of the core's own checks ends it. In a
// child, because a check aborts.
bool caught(Bug bug, Scope scope) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::fclose(stderr);
    close(STDERR_FILENO);
    Model model(scope, bug);
    _exit(model.explore() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) == 1;
}

TEST(LockProtocol, EveryPlantedBugIsCaught) {
  // The first that finds one ends the search: small ones first.
  constexpr Scope kScopes[] = {
      {.nodes = 2, .threads = 1, .lingering = true},
      {.nodes = 2},
      {.nodes = 3, .barging = false, .tries = false, .unsets_elsewhere = true},
      {.nodes = 2, .barging = false, .tries = false, .lingering = true},
      {.nodes = 3, .barging = false},
  };
  for (int bug = 1; bug < static_cast<int>(Bug::kCount); ++bug) {
    const bool found = std::any_of(std::begin(kScopes), std::end(kScopes), [bug](Scope scope) {
      return caught(static_cast<Bug>(bug), scope);
    });
    EXPECT_TRUE(found) << "bug " << bug;
  }
  for (const Scope scope : kScopes) {
    if (scope.nodes == 3) continue;
    EXPECT_FALSE(caught(Bug::kNone, scope));
  }
}

}  // namespace
}  // namespace amasia::omp
