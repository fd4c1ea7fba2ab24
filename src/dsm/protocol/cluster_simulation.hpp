// SPDX-License-Identifier: Apache-2.0
// A seeded simulation of a cluster in virtual time: many pages, random delays (first in, first out
// per pair of nodes), slow nodes, the holding policy, threads that compute on words. Every load is
// held against one global memory, which is exact: with a single writer an access takes effect
// at the moment it is made. For tests only; one seed gives one run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "dsm/protocol/hold_policy.hpp"
#include "dsm/protocol/single_writer.hpp"

namespace amasia::dsm::protocol {

inline constexpr int kWords = 4;
using PageBytes = std::array<std::uint64_t, kWords>;

struct SimulationSettings {
  std::uint64_t seed = 1;
  int nodes = 2;
  int pages = 64;
  int threads_per_node = 1;
  bool hold = true;  // false: every revocation is done at once
  bool stretch = true;  // turns as long as nodes wish
  Nanos delay_min = 3 * base::kMicrosecond, delay_max = 30 * base::kMicrosecond;
  Nanos wake_min = 2 * base::kMicrosecond, wake_max = 50 * base::kMicrosecond;
  Nanos effect_cost = base::kMicrosecond;
  Nanos fault_cost = 700;  // CPU time of the faulting thread
  int slow_node = -1;      // its engine and threads take eight times as long
  Nanos evict_every = 0;   // each node evicts a page that often, on average; 0: never
  // Each node offers a page to another one that often, on average, or gives one back; 0: never.
  Nanos offer_every = 0;
  Nanos end = base::kSecond;
};

// What a thread does next. Both pages are needed at once (`second` < 0: only one).
struct Access {
  // kTake stores `value` if the word is 0; its caller sees by the old value whether it did.
  enum Kind : std::uint8_t { kLoad, kStore, kAdd, kTake, kDone } kind = kDone;
  int page = 0, word = 0;
  std::uint64_t value = 0;
  int second = -1;
  Nanos cost = 200;
  bool counts = true;  // as progress
};

// A thread's program: given the value that its last access found, the next one.
using Program = std::function<Access(std::uint64_t last, std::mt19937_64& random)>;

class ClusterSimulation {
 public:
  explicit ClusterSimulation(const SimulationSettings& settings)
      : settings_(settings),
        random_(settings.seed),
        oracle_(settings.pages),
        turns_(settings.nodes),
        arbiter_(settings.nodes) {
    nodes_.resize(settings.nodes);
    for (int n = 0; n < settings.nodes; ++n) {
      Node& node = nodes_[n];
      node.pages.resize(settings.pages);
      node.speed = n == settings.slow_node ? 8 : 1;
      node.last_arrival.resize(settings.nodes);
      for (int p = 0; p < settings.pages; ++p)
        node.pages[p].view = home_of(p) == n ? kReadWrite : kNone;
    }
    directory_.resize(settings.pages);
    comes_back_.resize(static_cast<std::size_t>(settings.pages * settings.nodes));
    meters_.resize(settings.nodes);
  }

  // Threads are numbered in the order of addition; thread i runs at node i % nodes.
  void add_thread(Program program) {
    Thread thread;
    thread.program = std::move(program);
    thread.node = static_cast<int>(threads_.size()) % settings_.nodes;
    threads_.push_back(std::move(thread));
  }

  // Until every thread is done, or time is up. Returns what is wrong, or "".
  std::string run() {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      threads_[i].buckets.resize(settings_.end / kBucket + 1);
      schedule(0, {Event::kThread, static_cast<int>(i)});
    }
    for (int n = 0; settings_.evict_every > 0 && n < settings_.nodes; ++n) {
      plan(Event::kEvict, n, settings_.evict_every);
    }
    for (int n = 0; settings_.offer_every > 0 && n < settings_.nodes; ++n) {
      plan(Event::kOffer, n, settings_.offer_every);
    }
    while (!queue_.empty() && wrong_.empty()) {
      const Event event = queue_.top();
      queue_.pop();
      now_ = event.time;
      if (now_ > settings_.end) return wrong_;
      dispatch(event);
    }
    if (wrong_.empty()) check_end();
    return wrong_;
  }

  bool all_done() const {
    return std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.done; });
  }
  // The fewest counted accesses that a thread made in a whole 100 ms of the run.
  std::uint64_t least_in_a_bucket() const {
    std::uint64_t least = ~std::uint64_t{0};
    for (const Thread& thread : threads_)
      for (Nanos b = 0; b < settings_.end / kBucket; ++b)
        least = std::min(least, thread.buckets[b]);
    return least;
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const Thread& thread : threads_)
      for (std::uint64_t count : thread.buckets) sum += count;
    return sum;
  }
  std::uint64_t word(int page, int word) const { return oracle_[page][word]; }
  std::uint64_t faults() const { return faults_; }
  std::uint64_t messages() const { return messages_; }  // between different nodes
  std::uint64_t holds() const { return holds_; }
  std::uint64_t probes() const { return probes_; }
  std::uint64_t evictions() const { return evictions_; }  // requests to a page's home
  std::uint64_t returns() const { return returns_; }  // of copies that were offered
  Nanos longest_turn() const { return longest_turn_; }    // 0: none was stretched
  Nanos now() const { return now_; }

 private:
  static constexpr Nanos kBucket = 100 * base::kMillisecond;
  enum View : std::uint8_t { kNone, kRead, kReadWrite };

  struct Page {
    CachePage cache;
    View view = kNone;
    PageBytes bytes{};
    Nanos installed_at = 0;
    std::vector<std::pair<int, Nanos>> woken;  // thread, its CPU time then
    std::optional<HoldRecord> hold;
  };
  struct Work {
    enum Kind : std::uint8_t { kFault, kMessage, kTimer, kEvict, kOffer } kind = kFault;
    int page = 0, from = 0, thread = 0;
    bool writes = false;
    MessageKind message{};
    std::uint8_t requester = 0;
    PageBytes bytes{};
  };
  struct Node {
    std::vector<Page> pages;
    std::deque<Work> work;
    std::deque<Effect> effects;
    int effect_page = 0;
    PageBytes in{}, out{};
    bool awake = false;
    int speed = 1;
    int waiting = 0;  // threads of this node that wait for a page
    Nanos last_install = -1;
    std::vector<Nanos> last_arrival;
  };
  struct Thread {
    Program program;
    std::optional<Access> access;  // the one under way
    std::uint64_t last = 0;
    int node = 0, waits_for = -1;
    bool done = false;
    Nanos cpu = 0, last_fault = -1;
    Nanos had_at = 0;    // when the page it waits for was here before
    Nanos woken_in = 0;  // the last time: meanwhile it did not run
    std::vector<std::uint64_t> buckets;
  };
  struct Event {
    enum Kind : std::uint8_t { kThread, kArrive, kService, kTimer, kEvict, kOffer } kind;
    int index = 0;  // thread or node
    int page = 0;
    Work work{};
    Nanos time = 0;
    std::uint64_t sequence = 0;
    bool operator<(const Event& other) const {  // the earliest is the greatest
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  int home_of(int page) const { return page % settings_.nodes; }
  static NodeId id(int node) { return NodeId{static_cast<std::uint16_t>(node)}; }
  Nanos between(Nanos low, Nanos high) {
    return low + static_cast<Nanos>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  void schedule(Nanos time, Event event) {
    event.time = time;
    event.sequence = ++sequence_;
    queue_.push(event);
  }

  void dispatch(const Event& event) {
    switch (event.kind) {
      case Event::kThread:
        return run_thread(event.index);
      case Event::kArrive:
        return give_work(event.index, event.work);
      case Event::kTimer: {
        Work work;
        work.kind = Work::kTimer;
        work.page = event.page;
        return give_work(event.index, work);
      }
      case Event::kService:
        return serve(event.index);
      case Event::kEvict:
      case Event::kOffer: {
        const bool evicts = event.kind == Event::kEvict;
        Work work;
        work.kind = evicts ? Work::kEvict : Work::kOffer;
        work.page = event.page;
        give_work(event.index, work);
        return plan(event.kind, event.index,
                    evicts ? settings_.evict_every : settings_.offer_every);
      }
    }
  }

  // Of a page taken at random, later. None once every thread is done, so that the run ends.
  void plan(Event::Kind kind, int n, Nanos every) {
    if (all_done()) return;
    const int page = static_cast<int>(random_() % static_cast<std::uint64_t>(settings_.pages));
    schedule(now_ + between(1, 2 * every), {kind, n, page});
  }

  // ---- threads

  // Runs until another event could change what the thread sees.
  void run_thread(int index) {
    Thread& thread = threads_[index];
    const Nanos until = queue_.empty() ? settings_.end : queue_.top().time;
    Nanos at = now_;
    while (wrong_.empty()) {
      if (!thread.access) thread.access = thread.program(thread.last, random_);
      const Access access = *thread.access;
      if (access.kind == Access::kDone) {
        thread.done = true;
        return;
      }
      if (at > until || at > settings_.end) return schedule(at, {Event::kThread, index});
      const int missing = missing_page(thread.node, access);
      if (missing >= 0) return fault(index, missing, access.kind != Access::kLoad, at);
      perform(thread, access, at);
      thread.access.reset();
      const Nanos cost = access.cost * nodes_[thread.node].speed;
      thread.cpu += cost;
      at += cost;
    }
  }

  int missing_page(int node, const Access& access) const {
    const View needed = access.kind == Access::kLoad ? kRead : kReadWrite;
    if (nodes_[node].pages[access.page].view < needed) return access.page;
    if (access.second >= 0 && nodes_[node].pages[access.second].view < needed) return access.second;
    return -1;
  }

  void perform(Thread& thread, const Access& access, Nanos at) {
    std::uint64_t& cell = nodes_[thread.node].pages[access.page].bytes[access.word];
    std::uint64_t& truth = oracle_[access.page][access.word];
    if (cell != truth) return fail("a thread sees an old value", access.page);
    thread.last = cell;
    if (access.kind == Access::kStore) cell = truth = access.value;
    if (access.kind == Access::kAdd) cell = truth = truth + access.value;
    if (access.kind == Access::kTake && truth == 0) cell = truth = access.value;
    if (access.second >= 0) {
      std::uint64_t& other = nodes_[thread.node].pages[access.second].bytes[access.word];
      if (other != oracle_[access.second][access.word])
        return fail("a thread sees an old value", access.second);
      oracle_[access.second][access.word] = other = other + 1;
    }
    if (access.counts && at / kBucket < static_cast<Nanos>(thread.buckets.size()))
      ++thread.buckets[at / kBucket];
  }

  void fault(int index, int page, bool writes, Nanos at) {
    Thread& thread = threads_[index];
    Node& node = nodes_[thread.node];
    thread.waits_for = page;
    thread.last_fault = at;
    thread.had_at = node.pages[page].installed_at;
    thread.cpu += settings_.fault_cost;
    ++node.waiting;
    ++faults_;
    Work work;
    work.page = page;
    work.thread = index;
    work.writes = writes;
    schedule(at + settings_.fault_cost, {Event::kArrive, thread.node, 0, work});
  }

  // ---- one node's engine

  void give_work(int n, const Work& work) {
    nodes_[n].work.push_back(work);
    if (nodes_[n].awake) return;
    nodes_[n].awake = true;
    schedule(now_ + settings_.effect_cost * nodes_[n].speed, {Event::kService, n});
  }

  // One effect, or the step of the next piece of work.
  void serve(int n) {
    Node& node = nodes_[n];
    if (!node.effects.empty()) {
      const Effect effect = node.effects.front();
      node.effects.pop_front();
      execute(n, node.effect_page, effect);
      if (node.effects.empty()) free_memory(n, node.effect_page);
    } else if (!node.work.empty()) {
      const Work work = node.work.front();
      node.work.pop_front();
      step(n, work);
    }
    node.awake = !node.effects.empty() || !node.work.empty();
    if (node.awake) schedule(now_ + settings_.effect_cost * node.speed, {Event::kService, n});
  }

  // A lost copy's memory is given back: nothing may read it any more.
  void free_memory(int n, int p) {
    Page& page = nodes_[n].pages[p];
    if (n != home_of(p) && page.cache.state(false) == CacheState::kInvalid)
      page.bytes.fill(0xdeaddeaddeaddeadULL);
  }

  void step(int n, const Work& work) {
    Page& page = nodes_[n].pages[work.page];
    if (work.kind == Work::kTimer) return timer(n, work.page);
    if (work.kind == Work::kEvict) {
      if (n != home_of(work.page)) step_page(n, work.page, {CacheEventKind::kEvict});
      return;
    }
    if (work.kind == Work::kOffer) return offer_or_give_back(n, work.page);
    if (work.kind == Work::kFault) {
      if (page.hold && work.writes) note_probe_hit(*page.hold);
      return step_page(n, work.page,
                       {work.writes ? CacheEventKind::kWriteFault : CacheEventKind::kReadFault});
    }
    if (is_for_home(work.message)) {
      if (work.message == MessageKind::kGivenBack) comes_back(work.page, work.from) = false;
      HomeEffects effects;
      step_home(directory_[work.page], id(n), {work.message, id(work.from)}, effects);
      if (!is_valid(directory_[work.page], id(n), settings_.nodes))
        fail("a directory entry is not valid", work.page);
      return queue(n, work.page, effects);
    }
    CacheEvent event = cache_event(work.message, id(work.requester), false);
    if (settings_.hold && can_hold(page.cache, n == home_of(work.page), event.kind)) {
      page.hold = begin_hold(policy_);
      event.hold = ask(n, work.page);
      if (!event.hold) page.hold.reset();
    }
    nodes_[n].in = work.bytes;
    step_page(n, work.page, event);
  }

  std::vector<bool>::reference comes_back(int page, int node) {
    return comes_back_[static_cast<std::size_t>(page * settings_.nodes + node)];
  }

  void offer_or_give_back(int n, int p) {
    if (n != home_of(p)) return step_page(n, p, {CacheEventKind::kGiveBack});
    const int to = (n + 1 + static_cast<int>(between(0, settings_.nodes - 2))) % settings_.nodes;
    if (comes_back(p, to)) return;
    CacheEffects effects;
    offer(directory_[p], nodes_[n].pages[p].cache, id(n), id(to), effects);
    queue(n, p, effects);
  }

  void step_page(int n, int p, const CacheEvent& event) {
    Page& page = nodes_[n].pages[p];
    const CacheContext context{id(n), id(home_of(p))};
    CacheEffects effects;
    step_cache(page.cache, context, event, effects);
    if (!is_valid(page.cache, context, settings_.nodes)) fail("a cache page is not valid", p);
    if (!page.cache.has_pending()) page.hold.reset();
    queue(n, p, effects);
  }

  template <typename Effects>
  void queue(int n, int p, const Effects& effects) {
    nodes_[n].effect_page = p;
    for (const Effect& effect : effects) nodes_[n].effects.push_back(effect);
  }

  // Asks the policy; true: keep the page, and a timer is set.
  bool ask(int n, int p) {
    Node& node = nodes_[n];
    Page& page = node.pages[p];
    HoldInput input;
    input.now = now_;
    input.installed_at = page.installed_at;
    input.cpu_used = -1;
    input.self = id(n);
    input.turn = turns_.at(now_);
    input.exclusive = page.cache.state(n == home_of(p)) == CacheState::kExclusive;
    input.collecting =
        node.waiting > 0 || (node.last_install >= 0 && now_ - node.last_install < policy_.recheck);
    for (const auto& [index, cpu] : page.woken) {
      const Nanos used = threads_[index].cpu - cpu;
      if (input.cpu_used >= 0 && input.cpu_used <= used) continue;
      input.cpu_used = used;
      input.faulted_since = threads_[index].last_fault > page.installed_at;
    }
    const HoldDecision decision = decide(*page.hold, input, policy_);
    if (decision.action == HoldAction::kRelease) return false;
    if (decision.action == HoldAction::kProbe) {
      ++probes_;
      page.view = kRead;
    }
    ++holds_;
    schedule(now_ + decision.after, {Event::kTimer, n, p});
    return true;
  }

  void timer(int n, int p) {
    Page& page = nodes_[n].pages[p];
    if (!page.hold) return;
    if (!ask(n, p)) step_page(n, p, {CacheEventKind::kReleaseHold});
  }

  void execute(int n, int p, const Effect& effect) {
    Node& node = nodes_[n];
    Page& page = node.pages[p];
    switch (effect.kind) {
      case EffectKind::kProtect:
        page.view = std::min(page.view, kRead);
        return;
      case EffectKind::kUnmap:
        page.view = kNone;
        return;
      case EffectKind::kCopyOut:
        node.out = page.bytes;
        return;
      case EffectKind::kSend:
        return send(n, p, effect);
      case EffectKind::kCopyIn:
        page.bytes = node.in;
        return;
      case EffectKind::kInstallRead:
        page.view = kRead;
        return installed(n, p);
      case EffectKind::kInstallWrite:
        page.view = kReadWrite;
        return installed(n, p);
      case EffectKind::kWake:
        return wake(n, p);
      case EffectKind::kRevokePending:
        if (page.hold) return;  // held on arrival: asked already
        page.hold = begin_hold(policy_);
        if (!settings_.hold || !ask(n, p)) step_page(n, p, {CacheEventKind::kReleaseHold});
        return;
    }
  }

  void installed(int n, int p) {
    check_single_writer(p);
    Page& page = nodes_[n].pages[p];
    if (page.hold && page.hold->armed) return;  // a probe's fault: nothing new was installed
    page.installed_at = now_;
    nodes_[n].last_install = now_;
    page.woken.clear();
    for (std::size_t i = 0; i < threads_.size(); ++i)
      if (threads_[i].node == n && threads_[i].waits_for == p)
        page.woken.emplace_back(static_cast<int>(i), threads_[i].cpu);
  }

  void wake(int n, int p) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      Thread& thread = threads_[i];
      if (thread.node != n || thread.waits_for != p) continue;
      thread.waits_for = -1;
      --nodes_[n].waiting;
      if (settings_.stretch && thread.had_at > 0) measure_wait(n, thread);
      thread.woken_in = between(settings_.wake_min, settings_.wake_max);
      schedule(now_ + thread.woken_in, {Event::kThread, static_cast<int>(i)});
    }
  }

  // Wishes and stretches take no time here: a stretch begins later than it is told anyway.
  void measure_wait(int n, const Thread& thread) {
    const Turn turn = turns_.at(now_);
    if (turn.owner != id(n)) return;
    const std::optional<Nanos> wish =
        meters_[n].on_wait({thread.had_at, thread.last_fault, now_, thread.woken_in}, turn);
    if (!wish) return;
    const std::optional<Stretch> stretch = arbiter_.on_wish(id(n), *wish, now_);
    if (!stretch) return;
    if (!is_valid(*stretch, settings_.nodes)) fail("a stretch is not valid", -1);
    turns_.adopt(*stretch);
    longest_turn_ = std::max(longest_turn_, stretch->length);
  }

  void send(int n, int p, const Effect& effect) {
    if (effect.message == MessageKind::kEvictRequest) ++evictions_;
    Work work;
    work.kind = Work::kMessage;
    work.page = p;
    work.from = n;
    work.message = effect.message;
    work.requester = effect.requester;
    if (carries_page(effect.message)) work.bytes = nodes_[n].out;
    if (effect.to == n) return give_work(n, work);
    if (effect.message == MessageKind::kGivenBack) {  // overtakes, and is overtaken by, all others
      ++returns_;
      comes_back(p, n) = true;
      return schedule(now_ + between(1, 2 * settings_.delay_max),
                      {Event::kArrive, effect.to, 0, work});
    }
    ++messages_;
    Nanos& last = nodes_[n].last_arrival[effect.to];
    last = std::max(last + 1, now_ + between(settings_.delay_min, settings_.delay_max));
    schedule(last, {Event::kArrive, effect.to, 0, work});
  }

  // ---- checks

  void check_single_writer(int p) {
    int writers = 0, readers = 0;
    for (const Node& node : nodes_) {
      if (node.pages[p].view == kReadWrite) ++writers;
      if (node.pages[p].view == kRead) ++readers;
    }
    if (writers > 1 || (writers == 1 && readers > 0)) fail("a writer is not alone", p);
  }

  // Nothing is under way any more.
  void check_end() {
    if (!all_done()) return fail("a thread waits for ever", -1);
    for (int p = 0; p < settings_.pages; ++p) {
      const DirectoryEntry& entry = directory_[p];
      const NodeId home = id(home_of(p));
      if (!entry.idle()) return fail("the home waits for ever", p);
      for (int n = 0; n < settings_.nodes; ++n) {
        const CachePage& cache = nodes_[n].pages[p].cache;
        const bool owner = entry.sharers == 0 && entry.owner(home).value == n;
        const bool sharer = (entry.sharers >> n & 1) != 0;
        if (cache.has_pending() || may_write(cache, n == home.value) != owner ||
            may_read(cache, n == home.value) != (owner || sharer))
          return fail("directory and cache disagree at the end", p);
        if ((owner || sharer) && nodes_[n].pages[p].bytes != oracle_[p])
          return fail("a copy is not the newest at the end", p);
      }
    }
  }

  void fail(const char* what, int page) {
    if (wrong_.empty())
      wrong_ = std::string(what) + ", page " + std::to_string(page) + ", at " +
               std::to_string(now_) + " ns";
  }

  SimulationSettings settings_;
  HoldSettings policy_;
  std::mt19937_64 random_;
  std::vector<PageBytes> oracle_;
  std::vector<Node> nodes_;
  std::vector<DirectoryEntry> directory_;
  TurnSchedule turns_;
  TurnArbiter arbiter_;
  std::vector<TurnMeter> meters_;
  Nanos longest_turn_ = 0;
  std::vector<Thread> threads_;
  std::priority_queue<Event> queue_;
  Nanos now_ = 0;
  std::uint64_t sequence_ = 0, faults_ = 0, messages_ = 0, holds_ = 0, probes_ = 0;
  std::uint64_t evictions_ = 0, returns_ = 0;
  std::vector<bool> comes_back_;  // by page and node: it was given back, and the home has not heard
  std::string wrong_;
};

}  // namespace amasia::dsm::protocol
