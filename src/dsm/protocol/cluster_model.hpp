// SPDX-License-Identifier: Apache-2.0
// A whole cluster as one value: the object code of the protocol, first-in-first-out channels
// between every pair of nodes, and what the kernel does to a page (view, alias, faults). The
// explorer enumerates its actions. For tests only.
//
// A page holds one byte. With free threads (no program) the byte says whether the copy is the
// newest: a store makes its own copy 1 and every other copy in the cluster, also those in flight,
// 0. So the state space is finite however many accesses are made, and "mapped implies newest" is
// the claim that memory behaves like one memory. With programs (litmus tests) the byte is the
// value.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "dsm/protocol/planted_bugs.hpp"
#include "dsm/protocol/single_writer.hpp"

namespace amasia::dsm::protocol {

enum class View : std::uint8_t { kAbsent, kReadOnly, kWritable };

struct ModelMessage {
  MessageKind kind{};
  std::uint8_t page = 0;
  std::uint8_t requester = 0;
  std::uint8_t value = 0;
};

inline constexpr std::size_t kChannelCapacity = 10;
struct Channel {
  std::uint8_t count = 0;
  std::array<ModelMessage, kChannelCapacity> messages{};
};

// A thread runs, waits for a page, or was woken and is about to try again.
struct ModelThread {
  enum Phase : std::uint8_t { kRuns, kWaits, kRetries };
  Phase phase = kRuns;
  bool writes = false;  // what it waits for or retries
  std::uint8_t page = 0;
  std::uint8_t next = 0;  // of a program: index of the next operation
  std::array<std::uint8_t, 2> loaded{};
};

struct Operation {
  bool writes;
  std::uint8_t page;
  std::uint8_t value;  // stored; loads go to the next free place of ModelThread::loaded
};

// Each effect of a step a step of its own; or sends together with what precedes them, which
// loses no outcome (a message that is sent earlier can still be received as late); or whole steps.
enum class Grain : std::uint8_t { kEachEffect, kEagerSends, kWholeSteps };

// Which cells of the state x event table were entered.
struct CellCoverage {
  std::array<std::array<bool, kCacheEventKinds>, kCacheStates> cache{};
  enum HomeState : std::uint8_t {
    kIdleExclusive,
    kIdleShared,
    kAwaitsDowngraded,
    kAwaitsAcks,
    kAwaitsEviction
  };
  std::array<std::array<bool, 7>, 5> home{};

  static HomeState home_state(const DirectoryEntry& entry) {
    if (entry.busy != 0) return static_cast<HomeState>(kIdleShared + entry.busy);
    return entry.sharers == 0 ? kIdleExclusive : kIdleShared;
  }
};

struct ModelSettings {
  Grain grain = Grain::kEachEffect;
  Bug bug = Bug::kNone;
  // Revocations are held while a woken thread has not retried, as the holding policy's floor does.
  bool floor = false;
  bool prefetch = true;
  bool evict = false;           // copies are evicted, and the memory of lost ones is given back
  bool offer = false;           // homes offer copies, which nodes give back
  bool spurious_faults = true;  // an event stays queued though its thread was woken
  CellCoverage* coverage = nullptr;
};

enum class ActionKind : std::uint8_t {
  kEffect,   // node executes its next effect
  kFault,    // node takes a fault event of a page (b: it writes)
  kDeliver,  // node a receives the next message from node b
  kDeliverHold,
  kRelease,   // node a, page b
  kPrefetch,  // node a, page b, c: it writes
  kEvict,     // node a, page b
  kOffer,     // the home of page b, to node a
  kGiveBack,  // node a, page b
  kGivenBack,  // what node a gave back of page b comes to the home
  kAccess,    // thread a, page b, c: it writes
  kRetry,     // thread a
};
struct Action {
  ActionKind kind;
  std::uint8_t a = 0, b = 0, c = 0;
};

template <int kNodes, int kPages, int kThreads>
class ClusterModel {
 public:
  struct Node {
    std::array<CachePage, kPages> pages{};
    std::array<View, kPages> view{};
    std::array<std::uint8_t, kPages> memory{};
    std::array<std::uint8_t, kPages> fault_events{};  // bit 0: read, bit 1: write
    std::uint8_t effect_count = 0, effect_next = 0, effect_page = 0;
    std::uint8_t copied_in = 0, copied_out = 0;
    std::array<Effect, 16> effects{};
  };

  ClusterModel() {
    for (int page = 0; page < kPages; ++page) {
      nodes[home_of(page)].view[page] = View::kWritable;
      nodes[home_of(page)].memory[page] = 1;
    }
  }

  // Litmus programs start from zero memory.
  void clear_memory() {
    for (Node& node : nodes) node.memory.fill(0);
  }

  static constexpr int home_of(int page) { return page % kNodes; }
  static NodeId id(int node) { return NodeId{static_cast<std::uint16_t>(node)}; }
  static CacheContext context(int node, int page) { return {id(node), id(home_of(page))}; }

  // Appends the engine's and the kernel's actions; `drain_only`: none that begins something new.
  void engine_actions(const ModelSettings& settings, bool drain_only,
                      std::vector<Action>& actions) const {
    for (std::uint8_t n = 0; n < kNodes; ++n) {
      const Node& node = nodes[n];
      if (node.effect_next < node.effect_count) {
        actions.push_back({ActionKind::kEffect, n});
        continue;  // one service thread: nothing else happens in this node's engine meanwhile
      }
      for (std::uint8_t from = 0; from < kNodes; ++from)
        if (channels[from][n].count != 0) deliver_actions(settings, from, n, actions);
      for (std::uint8_t page = 0; page < kPages; ++page)
        page_actions(settings, drain_only, n, page, actions);
    }
  }

  // Performs an engine action. Returns what is wrong, or nullptr.
  const char* perform(const ModelSettings& settings, const Action& action) {
    spurious_faults_ = settings.spurious_faults;
    frees_memory_ = settings.evict;
    switch (action.kind) {
      case ActionKind::kEffect:
        execute_next(action.a);
        break;
      case ActionKind::kOffer:
        offer_page(action.b, action.a);
        break;
      case ActionKind::kGiveBack:
        step_page(settings, action.a, action.b, {CacheEventKind::kGiveBack});
        break;
      case ActionKind::kGivenBack:
        given_back[action.b] &= static_cast<std::uint8_t>(~(1U << action.a));
        step_home_of(settings, home_of(action.b), action.b,
                     {MessageKind::kGivenBack, id(action.a)});
        break;
      case ActionKind::kFault:
        nodes[action.a].fault_events[action.b] &= static_cast<std::uint8_t>(~(1U << action.c));
        step_page(settings, action.a, action.b,
                  {action.c != 0 ? CacheEventKind::kWriteFault : CacheEventKind::kReadFault});
        break;
      case ActionKind::kDeliver:
      case ActionKind::kDeliverHold:
        deliver(settings, action.b, action.a, action.kind == ActionKind::kDeliverHold, action.c);
        break;
      case ActionKind::kRelease:
        step_page(settings, action.a, action.b, {CacheEventKind::kReleaseHold});
        break;
      case ActionKind::kPrefetch:
        step_page(settings, action.a, action.b,
                  {action.c != 0 ? CacheEventKind::kPrefetchWrite : CacheEventKind::kPrefetchRead});
        break;
      case ActionKind::kEvict:
        step_page(settings, action.a, action.b, {CacheEventKind::kEvict});
        break;
      default:
        return "an action that is not the engine's";
    }
    run_ahead(settings);
    return violation_;
  }

  // What must hold in every state. Free threads: a mapped copy is the newest.
  const char* find_violation(bool free_threads) const {
    for (int page = 0; page < kPages; ++page) {
      int readers = 0, writers = 0, newest = 0;
      for (const Node& node : nodes) {
        if (node.view[page] == View::kWritable) ++writers;
        if (node.view[page] == View::kReadOnly) ++readers;
        newest += node.memory[page];
        if (free_threads && node.view[page] != View::kAbsent && node.memory[page] != 1)
          return "a stale copy is mapped";
      }
      if (writers > 1) return "two nodes can write a page";
      if (writers == 1 && readers > 0) return "one node can write a page while another reads it";
      if (free_threads && newest == 0 && !newest_in_flight(page)) return "the newest copy is lost";
      for (int n = 0; n < kNodes; ++n)
        if (!is_valid(nodes[n].pages[page], context(n, page), kNodes))
          return "a cache page is not valid";
      if (!is_valid(directory[page], id(home_of(page)), kNodes))
        return "a directory entry is not valid";
      if (revocations_outstanding(page) > 2) return "three revocations of a page for one node";
    }
    return quiet() ? find_disagreement() : nullptr;
  }

  // Nothing is queued, held or under way.
  bool quiet() const {
    for (const std::uint8_t nodes_of_page : given_back)
      if (nodes_of_page != 0) return false;
    for (const auto& row : channels)
      for (const Channel& channel : row)
        if (channel.count != 0) return false;
    for (const Node& node : nodes) {
      if (node.effect_next < node.effect_count) return false;
      for (int page = 0; page < kPages; ++page)
        if (node.fault_events[page] != 0 || node.pages[page].has_pending()) return false;
    }
    return true;
  }

  bool page_allows(int node, int page, bool writes) const {
    const View view = nodes[node].view[page];
    return view == View::kWritable || (view == View::kReadOnly && !writes);
  }

  // A store of a free thread: all other copies are now old ones.
  void mark_newest(int writer, int page) {
    for (Node& node : nodes) {
      node.memory[page] = 0;
      if (node.effect_page == page) node.copied_in = node.copied_out = 0;
    }
    nodes[writer].memory[page] = 1;
    for (auto& row : channels)
      for (Channel& channel : row)
        for (int i = 0; i < channel.count; ++i)
          if (channel.messages[i].page == page) channel.messages[i].value = 0;
  }

  // A canonical rendering: states that behave alike are equal.
  void encode(std::vector<std::uint8_t>& out) const {
    out.clear();
    for (const Node& node : nodes) encode_node(node, out);
    for (const DirectoryEntry& entry : directory) {
      for (std::uint64_t mask :
           {entry.sharers, entry.offered, entry.waiting_readers, entry.waiting_writers,
            entry.pending_acks})
        out.push_back(static_cast<std::uint8_t>(mask));
      for (std::uint8_t field :
           {entry.owner_code, entry.busy, entry.requester_id, entry.last_served})
        out.push_back(field);
    }
    for (const std::uint8_t nodes_of_page : given_back) out.push_back(nodes_of_page);
    for (const auto& row : channels)
      for (const Channel& channel : row) {
        out.push_back(channel.count);
        for (int i = 0; i < channel.count; ++i) encode_message(channel.messages[i], out);
      }
    for (const ModelThread& thread : threads) {
      out.push_back(static_cast<std::uint8_t>(thread.phase | thread.writes << 2 | thread.page << 3 |
                                              thread.next << 5));
      for (std::uint8_t value : thread.loaded) out.push_back(value);
    }
  }

  std::string describe() const {
    std::string text;
    char line[200];
    for (int n = 0; n < kNodes; ++n)
      for (int page = 0; page < kPages; ++page) {
        const CachePage& cache = nodes[n].pages[page];
        std::snprintf(line, sizeof line,
                      "  node %d page %d: %s%s%s view %d memory %d events %d effects %d/%d\n", n,
                      page, name_of(cache.state(n == home_of(page))),
                      cache.has_pending() ? " pending " : "",
                      cache.has_pending() ? name_of(cache.pending()) : "",
                      static_cast<int>(nodes[n].view[page]), nodes[n].memory[page],
                      nodes[n].fault_events[page], nodes[n].effect_next, nodes[n].effect_count);
        text += line;
      }
    for (int page = 0; page < kPages; ++page) {
      const DirectoryEntry& e = directory[page];
      std::snprintf(
          line, sizeof line,
          "  home of %d: sharers %x offered %x given back %x readers %x writers %x acks %x "
          "owner %d busy %d for %d\n",
          page, static_cast<unsigned>(e.sharers), static_cast<unsigned>(e.offered),
          static_cast<unsigned>(given_back[page]), static_cast<unsigned>(e.waiting_readers),
          static_cast<unsigned>(e.waiting_writers), static_cast<unsigned>(e.pending_acks),
          e.owner(id(home_of(page))).value, e.busy, e.requester_id);
      text += line;
    }
    for (int from = 0; from < kNodes; ++from)
      for (int to = 0; to < kNodes; ++to)
        for (int i = 0; i < channels[from][to].count; ++i) {
          const ModelMessage& m = channels[from][to].messages[i];
          std::snprintf(line, sizeof line, "  %d->%d %s page %d for %d value %d\n", from, to,
                        name_of(m.kind), m.page, m.requester, m.value);
          text += line;
        }
    return text;
  }

  std::array<Node, kNodes> nodes{};
  std::array<DirectoryEntry, kPages> directory{};
  std::array<std::array<Channel, kNodes>, kNodes> channels{};
  std::array<ModelThread, kThreads> threads{};
  // Of each page, a bit for each node of which the home has yet to hear that it gave it back.
  std::array<std::uint8_t, kPages> given_back{};

 private:
  void deliver_actions(const ModelSettings& settings, std::uint8_t from, std::uint8_t to,
                       std::vector<Action>& actions) const {
    const Channel& channel = channels[from][to];
    const int reachable = settings.bug == Bug::kChannelReorders ? channel.count : 1;
    for (std::uint8_t i = 0; i < reachable; ++i) {
      const ModelMessage& message = channel.messages[i];
      bool holdable = false;
      if (!is_for_home(message.kind)) {
        const CacheEventKind kind = cache_event(message.kind, {}, false).kind;
        holdable = can_hold(nodes[to].pages[message.page], to == home_of(message.page), kind);
      }
      const bool must_hold = holdable && settings.floor && someone_retries(to, message.page);
      if (!must_hold) actions.push_back({ActionKind::kDeliver, to, from, i});
      if (holdable) actions.push_back({ActionKind::kDeliverHold, to, from, i});
    }
  }

  void page_actions(const ModelSettings& settings, bool drain_only, std::uint8_t n,
                    std::uint8_t page, std::vector<Action>& actions) const {
    const Node& node = nodes[n];
    for (std::uint8_t writes : {0, 1})
      if ((node.fault_events[page] >> writes & 1) != 0)
        actions.push_back({ActionKind::kFault, n, page, writes});
    const CachePage& cache = node.pages[page];
    const CacheState state = cache.state(n == home_of(page));
    const bool has_copy = state == CacheState::kExclusive || state == CacheState::kShared;
    if (cache.has_pending() && has_copy && !(settings.floor && someone_retries(n, page)))
      actions.push_back({ActionKind::kRelease, n, page});
    if (!drain_only && settings.evict && n != home_of(page) && has_copy && !cache.has_pending() &&
        !asks_for_eviction(n, page))
      actions.push_back({ActionKind::kEvict, n, page});
    if (!drain_only && settings.offer) offer_actions(settings, n, page, actions);
    if (n == home_of(page))
      for (std::uint8_t other = 0; other < kNodes; ++other)
        if ((given_back[page] >> other & 1) != 0)
          actions.push_back({ActionKind::kGivenBack, other, page});
    if (drain_only || !settings.prefetch || state != CacheState::kInvalid) return;
    actions.push_back({ActionKind::kPrefetch, n, page, 0});
    actions.push_back({ActionKind::kPrefetch, n, page, 1});
  }

  void offer_actions(const ModelSettings& settings, std::uint8_t n, std::uint8_t page,
                     std::vector<Action>& actions) const {
    const CachePage& cache = nodes[n].pages[page];
    const bool has_offered = settings.bug == Bug::kGivesBackUsedCopy
                                 ? cache.state(n == home_of(page)) == CacheState::kShared
                                 : cache.offered != 0;
    if (has_offered && n != home_of(page)) actions.push_back({ActionKind::kGiveBack, n, page});
    if (n != home_of(page)) return;
    for (std::uint8_t other = 0; other < kNodes; ++other) {
      const bool comes_back = (given_back[page] >> other & 1) != 0;
      if (other == n || (comes_back && settings.bug != Bug::kOffersBeforeReturn)) continue;
      DirectoryEntry entry = directory[page];
      CachePage own = cache;
      CacheEffects effects;
      if (offer(entry, own, id(n), id(other), effects))
        actions.push_back({ActionKind::kOffer, other, page});
    }
  }

  void offer_page(int page, int to) {
    const int home = home_of(page);
    CacheEffects effects;
    offer(directory[page], nodes[home].pages[page], id(home), id(to), effects);
    queue(nodes[home], page, effects);
  }

  // One request under way, to the home or within it, is enough: more change nothing, and the model
  // would not be finite.
  bool asks_for_eviction(int node, int page) const {
    const int home = home_of(page);
    return is_under_way(MessageKind::kEvictRequest, node, home, page) ||
           is_under_way(MessageKind::kTakeBack, home, home, page);
  }

  bool is_under_way(MessageKind kind, int from, int to, int page) const {
    const Channel& channel = channels[from][to];
    for (int i = 0; i < channel.count; ++i)
      if (channel.messages[i].kind == kind && channel.messages[i].page == page) return true;
    return false;
  }

  bool someone_retries(int node, int page) const {
    for (int i = 0; i < kThreads; ++i)
      if (i % kNodes == node && threads[i].phase == ModelThread::kRetries &&
          threads[i].page == page)
        return true;
    return false;
  }

  void step_page(const ModelSettings& settings, int n, int page, CacheEvent event) {
    Node& node = nodes[n];
    CachePage& cache = node.pages[page];
    const CachePage before = cache;
    CacheEffects effects;
    mutate_cache_event(settings.bug, before, context(n, page), event);
    if (settings.coverage != nullptr)
      settings.coverage->cache[static_cast<std::size_t>(before.state(n == home_of(page)))]
                              [static_cast<std::size_t>(event.kind)] = true;
    step_cache(cache, context(n, page), event, effects);
    mutate_cache_step(settings.bug, before, context(n, page), event, cache, effects);
    queue(node, page, effects);
  }

  void deliver(const ModelSettings& settings, int from, int to, bool hold, int position) {
    Channel& channel = channels[from][to];
    const ModelMessage message = channel.messages[position];
    --channel.count;
    for (int i = position; i < channel.count; ++i) channel.messages[i] = channel.messages[i + 1];
    channel.messages[channel.count] = {};
    if (!is_for_home(message.kind)) {
      nodes[to].copied_in = message.value;
      return step_page(settings, to, message.page,
                       cache_event(message.kind, id(message.requester), hold));
    }
    step_home_of(settings, to, message.page, {message.kind, id(from)});
  }

  void step_home_of(const ModelSettings& settings, int to, int page, const HomeEvent& event) {
    DirectoryEntry& entry = directory[page];
    const DirectoryEntry before = entry;
    HomeEffects effects;
    mutate_home_event(settings.bug, event, entry);
    if (settings.coverage != nullptr)
      settings.coverage
          ->home[CellCoverage::home_state(before)][static_cast<std::size_t>(event.kind)] = true;
    step_home(entry, id(to), event, effects);
    mutate_home_step(settings.bug, before, event, id(to), entry, effects);
    queue(nodes[to], page, effects);
  }

  template <typename Effects>
  void queue(Node& node, int page, const Effects& effects) {
    node.effect_count = node.effect_next = 0;
    node.effect_page = static_cast<std::uint8_t>(page);
    for (const Effect& effect : effects) {
      AMASIA_CHECK(node.effect_count < node.effects.size(), "the model's effect queue is full");
      node.effects[node.effect_count++] = effect;
    }
    if (node.effect_count == 0) finish_effects(node);
  }

  void finish_effects(Node& node) {
    const int page = node.effect_page;
    const int n = static_cast<int>(&node - nodes.data());
    if (frees_memory_ && n != home_of(page) &&
        node.pages[page].state(false) == CacheState::kInvalid)
      node.memory[page] = 0;
    node.effect_count = node.effect_next = node.effect_page = 0;
    node.copied_in = node.copied_out = 0;
    node.effects = {};
  }

  void run_ahead(const ModelSettings& settings) {
    if (settings.grain == Grain::kEachEffect) return;
    for (int n = 0; n < kNodes; ++n) {
      Node& node = nodes[n];
      while (node.effect_next < node.effect_count &&
             (settings.grain == Grain::kWholeSteps ||
              node.effects[node.effect_next].kind == EffectKind::kSend))
        execute_next(n);
    }
  }

  void execute_next(int n) {
    Node& node = nodes[n];
    const int page = node.effect_page;
    const Effect effect = node.effects[node.effect_next++];
    switch (effect.kind) {
      case EffectKind::kProtect:
        if (node.view[page] == View::kWritable) node.view[page] = View::kReadOnly;
        break;
      case EffectKind::kUnmap:
        node.view[page] = View::kAbsent;
        break;
      case EffectKind::kCopyOut:
        node.copied_out = node.memory[page];
        break;
      case EffectKind::kSend:
        send(n, page, effect);
        break;
      case EffectKind::kCopyIn:
        node.memory[page] = node.copied_in;
        break;
      case EffectKind::kInstallRead:
        node.view[page] = View::kReadOnly;
        break;
      case EffectKind::kInstallWrite:
        node.view[page] = View::kWritable;
        break;
      case EffectKind::kWake:
        wake(n, page);
        if (!spurious_faults_) node.fault_events[page] = 0;
        break;
      case EffectKind::kRevokePending:
        break;
    }
    if (node.effect_next == node.effect_count) finish_effects(node);
  }

  void send(int n, int page, const Effect& effect) {
    if (effect.message == MessageKind::kGivenBack) {
      given_back[page] |= static_cast<std::uint8_t>(1U << n);
      return;
    }
    Channel& channel = channels[n][effect.to];
    if (channel.count == kChannelCapacity) {
      violation_ = "more messages are under way between two nodes than the bound says";
      return;
    }
    const bool carries = carries_page(effect.message);
    channel.messages[channel.count++] = {effect.message, static_cast<std::uint8_t>(page),
                                         effect.requester,
                                         carries ? nodes[n].copied_out : std::uint8_t{0}};
  }

  void wake(int n, int page) {
    for (int i = 0; i < kThreads; ++i) {
      ModelThread& thread = threads[i];
      if (i % kNodes == n && thread.phase == ModelThread::kWaits && thread.page == page)
        thread.phase = ModelThread::kRetries;
    }
  }

  bool newest_in_flight(int page) const {
    for (const Node& node : nodes)
      if (node.effect_page == page && (node.copied_in != 0 || node.copied_out != 0)) return true;
    for (const auto& row : channels)
      for (const Channel& channel : row)
        for (int i = 0; i < channel.count; ++i)
          if (channel.messages[i].page == page && channel.messages[i].value != 0) return true;
    return false;
  }

  // The largest number for one node, of revocations that take something away (a fetch from a
  // sharer takes nothing: it is done at once and may be outstanding many times). Two: one for the
  // read copy of a node that waits for its upgrade, one for the page that follows. At most one is
  // ever held, as step_cache checks.
  int revocations_outstanding(int page) const {
    int largest = 0;
    for (int n = 0; n < kNodes; ++n) {
      const CacheState state = nodes[n].pages[page].state(n == home_of(page));
      const bool sharer = state == CacheState::kShared || state == CacheState::kUpgradePending;
      int count = nodes[n].pages[page].has_pending() ? 1 : 0;
      const Channel& channel = channels[home_of(page)][n];
      for (int i = 0; i < channel.count; ++i) {
        const ModelMessage& m = channel.messages[i];
        const bool takes =
            m.kind == MessageKind::kFetchExclusive || m.kind == MessageKind::kFetchForGrant ||
            m.kind == MessageKind::kInvalidate || m.kind == MessageKind::kWithdraw ||
            (m.kind == MessageKind::kFetchRead && !sharer);
        if (m.page == page && takes) ++count;
      }
      largest = count > largest ? count : largest;
    }
    return largest;
  }

  // Directory and caches, when nothing is under way.
  const char* find_disagreement() const {
    for (int page = 0; page < kPages; ++page) {
      const DirectoryEntry& entry = directory[page];
      const int home = home_of(page);
      if (!entry.idle()) return "the home waits, and nothing is under way";
      for (int n = 0; n < kNodes; ++n) {
        const CacheState state = nodes[n].pages[page].state(n == home);
        const bool owner = entry.sharers == 0 && entry.owner(id(home)).value == n;
        const bool sharer = (entry.sharers >> n & 1) != 0;
        const CacheState expected = owner    ? CacheState::kExclusive
                                    : sharer ? CacheState::kShared
                                             : CacheState::kInvalid;
        if (state != expected) return "directory and cache disagree, and nothing is under way";
        if (nodes[n].pages[page].offered != (entry.offered >> n & 1))
          return "directory and cache disagree about an offer, and nothing is under way";
      }
    }
    return nullptr;
  }

  static void encode_message(const ModelMessage& message, std::vector<std::uint8_t>& out) {
    out.push_back(static_cast<std::uint8_t>(message.kind));
    out.push_back(static_cast<std::uint8_t>(message.page << 4 | message.requester));
    out.push_back(message.value);
  }

  static void encode_node(const Node& node, std::vector<std::uint8_t>& out) {
    for (int page = 0; page < kPages; ++page) {
      const CachePage& cache = node.pages[page];
      const int code = cache.state_code | cache.offered << 3 | cache.pending_code << 4;
      out.push_back(static_cast<std::uint8_t>(code));
      out.push_back(static_cast<std::uint8_t>(cache.pending_requester << 4 |
                                              node.fault_events[page] << 2 |
                                              static_cast<int>(node.view[page])));
      out.push_back(node.memory[page]);
    }
    out.push_back(static_cast<std::uint8_t>(node.effect_count - node.effect_next));
    if (node.effect_next == node.effect_count) return;
    for (std::uint8_t field : {node.effect_page, node.copied_in, node.copied_out})
      out.push_back(field);
    for (int i = node.effect_next; i < node.effect_count; ++i) {
      const Effect& effect = node.effects[i];
      out.push_back(static_cast<std::uint8_t>(effect.kind));
      out.push_back(static_cast<std::uint8_t>(effect.message));
      out.push_back(static_cast<std::uint8_t>(effect.to << 4 | effect.requester));
    }
  }

  const char* violation_ = nullptr;
  bool spurious_faults_ = true;
  bool frees_memory_ = false;
};

}  // namespace amasia::dsm::protocol
