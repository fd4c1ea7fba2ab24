// SPDX-License-Identifier: Apache-2.0
#include "omp/locks/lock_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "omp/long_wait.hpp"
#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/team/team.hpp"
#include "omp/wait_scope.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

// A thread that finds the lock taken looks again this often before it sleeps: about the time that
// a short critical section and the news of its end take between two cores.
constexpr int kSpins = 400;

// Of a lock that rests; after that it is one that is waited for.
constexpr int kSpinsAtRest = 100;

// Uses of a lock since the last message about it after which it may rest: by then its habit is
// known.
constexpr std::uint32_t kUsesThatTell = 8;

// Fetches in a row by threads in no region of several nodes after which it is not one lock that
// such a thread wants, but all that these regions have used; what lies around each is fetched then.
constexpr std::uint32_t kFetchesThatTell = 16;
constexpr LockKey kAround = 256, kLeastLock = 4;

// A node's turn with a lock that others wait for lasts about so many times of what it takes to
// fetch the token, within bounds that no fetch, measured however badly, can move.
constexpr Nanos kTurnInFetches = 16;
constexpr Nanos kShortestTurn = base::kMillisecond / 2;
constexpr Nanos kLongestTurn = 8 * base::kMillisecond;
// A token that has taken longer has met a node that used it.
constexpr Nanos kLongestFetch = base::kMillisecond;
constexpr Nanos kNudgesThatTell = 8;

// Distinguishes threads; never reused, unlike what pthread_self() returns.
std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> next{1};
  // Relaxed: only uniqueness counts.
  thread_local const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

struct LockService::Waiter {
  // kLingers: it goes on waiting, for a node that keeps the token for a while.
  enum State : std::uint32_t { kParked, kLingers, kWoken, kGranted, kRefused };
  // Release by who grants or wakes, acquire by the waiting thread.
  std::atomic<std::uint32_t> state{kParked};
  std::uint64_t thread = 0;
  Waiter* next = nullptr;
};

struct LockService::Entry {
  LockLocal local;
  LockHome home;
  LockHabit habit;
  bool travels = false;        // the token has come or gone; nothing is measured before
  std::uint32_t uses = 0;      // since the last message about it
  std::uint32_t depth = 0;     // of a nest lock
  std::uint64_t owner = 0;     // its thread and region while depth > 0
  std::uint32_t region = 0;
  // First come first served.
  struct Queue {
    Waiter* first = nullptr;
    Waiter* last = nullptr;
    void push(Waiter* waiter) {
      waiter->next = nullptr;
      (last != nullptr ? last->next : first) = waiter;
      last = waiter;
    }
    Waiter* pop() {
      Waiter* const waiter = first;
      AMASIA_CHECK(waiter != nullptr, "a grant finds a thread that waits for it");
      first = waiter->next;
      if (first == nullptr) last = nullptr;
      return waiter;
    }
  };
  Queue waiting, trying;
};

struct alignas(64) LockService::Shard {
  std::mutex mutex;
  std::unordered_map<LockKey, Entry> entries;
  std::uint64_t tokens_fetched = 0;
};

// A message: an event about a lock. Without initialisers, so that Pending costs nothing.
struct LockService::Wire {
  LockKey key;
  LockEventKind kind;
  std::uint8_t unused;
  std::uint16_t node;
  std::uint32_t unused2;
};

// What a step asks for and is done after the shard's mutex was given back (L1). A waiter that is to
// be told is not touched after it was told: its thread may have returned.
struct LockService::Pending {
  std::array<Wire, base::kMaxNodes + 4> sends;
  std::array<std::uint16_t, base::kMaxNodes + 4> targets;
  std::size_t send_count = 0;
  bool caller_granted = false;
  bool caller_refused = false;
  bool nobody_holds = false;

  void send(NodeId to, LockKey key, LockEventKind kind, NodeId subject) {
    AMASIA_CHECK(send_count < sends.size(), "a step's messages are bounded");
    targets[send_count] = to.value;
    sends[send_count++] = {key, kind, 0, subject.value, 0};
  }
};

namespace {

template <typename Waiter>
void tell(Waiter* waiter, std::uint32_t state) {
  // The word may be gone as soon as it is set: its thread spins. A futex wake needs its address
  // only; a wake that hits something else there is allowed to be without cause.
  std::atomic<std::uint32_t>& word = waiter->state;
  word.store(state, std::memory_order_release);
  os::futex_wake(word, 1);
}

// Unless it has been told something better already.
template <typename Waiter>
void tell_of_lingering(Waiter& waiter) {
  std::uint32_t parked = Waiter::kParked;
  if (!waiter.state.compare_exchange_strong(parked, Waiter::kLingers)) return;
  os::futex_wake(waiter.state, 1);
}

Awaited awaited(LockKey key) {
  if (key == kUnnamedCritical) return {.what = "the unnamed critical section"};
  if (key == kGompAtomic) return {.what = "an atomic operation"};
  return {.what = "the lock or critical section", .address = key};
}

bool for_home(LockEventKind kind) {
  return kind == LockEventKind::kRequest || kind == LockEventKind::kTryRequest ||
         kind == LockEventKind::kTryMoved || kind == LockEventKind::kTryRefused;
}

}  // namespace

LockService::LockService(fabric::Fabric& fabric, Services& services, fabric::MessageType type,
                         HomeOf home_of, Nanos watchdog)
    : fabric_(fabric),
      services_(services),
      type_(type),
      home_of_(home_of),
      watchdog_(watchdog),
      shards_(std::make_unique<Shard[]>(kShards)) {
  fabric_.set_handler(type_, type_, this);
}

LockService::~LockService() = default;

LockService::Shard& LockService::shard_of(LockKey key) {
  // Locks lie at multiples of 4 and more; the multiplication spreads their low bits upwards.
  return shards_[(key * 0x9e3779b97f4a7c15ull) >> 58];
}

LockSite LockService::site_of(LockKey key) const {
  LockSite site;
  site.self = fabric_.self();
  site.home = home_of_(key);
  site.node_count = fabric_.node_count();
  return site;
}

// It does not rest any more.
LockService::Entry& LockService::entry_of(Shard& shard, LockKey key) {
  const std::optional<RestingLocks::Rested> rested = resting_.take_out(key);
  Entry& entry = entry_in(shard, key);
  if (rested.has_value()) {
    entry.local.held = rested->held;
    if (rested->released != RestingLocks::kNotTimed) {
      entry.habit.note_release(ticks_.time_of(rested->released));
    }
  }
  return entry;
}

LockService::Entry& LockService::entry_in(Shard& shard, LockKey key) {
  const auto found = shard.entries.find(key);
  if (found != shard.entries.end()) return found->second;
  if (shard.entries.size() >= kComfortableEntries &&
      (shard.entries.size() & (shard.entries.size() - 1)) == 0) {
    drop_idle_entries(shard);
  }
  Entry& entry = shard.entries[key];
  const LockSite site = site_of(key);
  entry.local = initial_lock_local(site.self, site.home);
  entry.home = initial_lock_home(site.home);
  return entry;
}

// An entry that says what initial_lock_* would say.
bool LockService::resting(const Entry& entry, LockKey key) const {
  const LockSite site = site_of(key);
  return entry.depth == 0 && entry.local == initial_lock_local(site.self, site.home) &&
         entry.home == initial_lock_home(site.home);
}

// Where the token is here and nobody waits for it: until a message comes, or a second thread.
void LockService::let_rest(Shard& shard, Entry& entry, LockKey key) {
  const LockLocal& local = entry.local;
  if (local.token != LockLocal::Token::kHere || local.next_known || local.waiting > 0) return;
  if (entry.depth > 0 || (entry.travels && entry.uses < kUsesThatTell)) return;
  if (!resting_.put(key, local.held, entry.travels)) return;
  entry.local.held = false;
  if (!entry.travels && resting(entry, key)) shard.entries.erase(key);
}

void LockService::drop_idle_entries(Shard& shard) {
  std::erase_if(shard.entries, [this](const auto& it) { return resting(it.second, it.first); });
}

void LockService::step(Entry& entry, LockKey key, LockEvent event, Waiter* caller,
                       Pending& pending) {
  LockEffects effects;
  step_lock_local(entry.local, site_of(key), event, effects);
  for (const LockEffect& effect : effects) {
    switch (effect.kind) {
      case LockEffect::Kind::kSend:
        pending.send(effect.to, key, effect.message, effect.subject);
        entry.travels |= effect.message == LockEventKind::kToken;
        if (effect.message == LockEventKind::kLingers) lingering_.add(key);
        break;
      case LockEffect::Kind::kGrantCaller:
        AMASIA_CHECK(caller != nullptr, "only a thread's call is granted to its caller");
        if (event.kind == LockEventKind::kRetry) {
          AMASIA_CHECK(entry.waiting.pop() == caller, "the first of the waiting threads retries");
        }
        pending.caller_granted = true;
        break;
      case LockEffect::Kind::kRefuseCaller: pending.caller_refused = true; break;
      case LockEffect::Kind::kWakeWaiter:
        AMASIA_CHECK(entry.waiting.first != nullptr, "a release wakes a thread that waits");
        tell(entry.waiting.first, Waiter::kWoken);
        break;
      case LockEffect::Kind::kGrantWaiter: tell(entry.waiting.pop(), Waiter::kGranted); break;
      case LockEffect::Kind::kGrantTry: tell(entry.trying.pop(), Waiter::kGranted); break;
      case LockEffect::Kind::kRefuseTries:
        while (entry.trying.first != nullptr) tell(entry.trying.pop(), Waiter::kRefused);
        break;
      case LockEffect::Kind::kNobodyHolds: pending.nobody_holds = true; break;
    }
  }
}

void LockService::step_home(Entry& entry, LockKey key, LockEvent event, Pending& pending) {
  AMASIA_CHECK(pending.send_count == 0, "the home's step is the only one of its message");
  LockHomeEffects effects;
  step_lock_home(entry.home, event, effects);
  for (const LockEffect& effect : effects) {
    pending.send(effect.to, key, effect.message, effect.subject);
  }
}

void LockService::carry_out(const Pending& pending) {
  for (std::size_t i = 0; i < pending.send_count; ++i) {
    fabric_.send(NodeId{pending.targets[i]}, type_, fabric::bytes_of(pending.sends[i]));
  }
}

Nanos LockService::turn() const {
  const Nanos fetch = fetch_.load(std::memory_order_relaxed);
  return std::clamp(kTurnInFetches * fetch, kShortestTurn, kLongestTurn);
}

// A request has taken so long. `nudged`: since the nudge that ended another node's turn. Were that
// turn counted, turns would be long because they are, where the first fetch of all met a node that
// used the lock. The token may have been on its way then, so one nudge says little.
void LockService::note_fetch(Nanos took, bool nudged) {
  took = std::clamp<Nanos>(took, 1, kLongestFetch);
  // Relaxed: an estimate; that one of two is lost does no harm.
  const Nanos known = fetch_.load(std::memory_order_relaxed);
  Nanos now = took;
  if (known != 0) now = nudged ? known + (took - known) / kNudgesThatTell : std::min(known, took);
  fetch_.store(now, std::memory_order_relaxed);
}

bool LockService::may_linger(const Entry& entry) const {
  if (!entry.travels) return false;
  return entry.habit.expects_thread(os::monotonic_now(), fetch_.load(std::memory_order_relaxed),
                                    paused_at_.load(std::memory_order_relaxed));
}

void LockService::Lingering::add(LockKey key) {
  const std::lock_guard lock(mutex);
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) return;
  keys.push_back(key);
  // Release, partner: note_pause.
  any.store(true, std::memory_order_release);
}

std::vector<LockKey> LockService::Lingering::take() {
  const std::lock_guard lock(mutex);
  any.store(false, std::memory_order_relaxed);
  return std::exchange(keys, {});
}

void LockService::note_pause(Nanos now) {
  // Relaxed: who misses it keeps a token for one turn.
  paused_at_.store(now, std::memory_order_relaxed);
  if (!lingering_.any.load(std::memory_order_acquire)) return;
  for (const LockKey key : lingering_.take()) {
    Pending pending;
    {
      Shard& shard = shard_of(key);
      const std::lock_guard lock(shard.mutex);
      const auto found = shard.entries.find(key);
      if (found == shard.entries.end()) continue;
      step(found->second, key, {LockEventKind::kPause, fabric_.self()}, nullptr, pending);
      if (found->second.local.lingers) lingering_.add(key);  // another thread has it
    }
    carry_out(pending);
  }
}

void LockService::nudge(LockKey key) {
  Pending pending;
  {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    Entry& entry = entry_of(shard, key);
    while (entry.local.lingers_at != 0) {
      step(entry, key, {LockEventKind::kNudgeNext, fabric_.self()}, nullptr, pending);
    }
  }
  carry_out(pending);
}

// Sleeps until something is told or the watchdog wants to. Returns the state that it is in then.
std::uint32_t LockService::sleep(LockKey key, Waiter& waiter, LongWait& told, Nudging& nudging) {
  const Nanos now = os::monotonic_now();
  Nanos most = told.tell(now);
  if (nudging.due != kNoNudge && now >= nudging.due) {
    nudging = {.due = kNoNudge, .sent = now};
    nudge(key);
  } else if (nudging.due != kNoNudge) {
    most = most < 0 ? nudging.due - now : std::min(most, nudging.due - now);
  }
  os::futex_wait(waiter.state, Waiter::kParked, most);
  std::uint32_t state = waiter.state.load(std::memory_order_acquire);
  if (state != Waiter::kLingers) return state;
  nudging.due = os::monotonic_now() + turn();
  // Fails where it has been told something else meanwhile, which `state` is then.
  return waiter.state.compare_exchange_strong(state, Waiter::kParked) ? Waiter::kParked : state;
}

// Returns when it has nudged the node that gave the token then; kNoNudge: it has not.
Nanos LockService::wait(LockKey key, Waiter& waiter) {
  services_.note_pause();
  note_pause(os::monotonic_now());
  std::optional<WaitScope> booked;
  if (ThreadFrame* const frame = current_frame(); frame != nullptr) booked.emplace(*frame);
  LongWait told(services_, fabric_.self(), watchdog_, awaited(key), os::monotonic_now());
  Nudging nudging;
  for (;;) {
    std::uint32_t state = waiter.state.load(std::memory_order_acquire);
    for (int i = 0; state == Waiter::kParked && i < kSpins; ++i) {
      __builtin_ia32_pause();
      state = waiter.state.load(std::memory_order_acquire);
    }
    while (state == Waiter::kParked || state == Waiter::kLingers) {
      state = sleep(key, waiter, told, nudging);
    }
    if (state != Waiter::kWoken) return nudging.sent;
    Pending pending;
    {
      Shard& shard = shard_of(key);
      const std::lock_guard lock(shard.mutex);
      // Between the wake and now the lock may have been given to this thread outright.
      if (waiter.state.load(std::memory_order_acquire) != Waiter::kWoken) return nudging.sent;
      // Relaxed: under the mutex, which whoever tells holds as well.
      waiter.state.store(Waiter::kParked, std::memory_order_relaxed);
      Entry& entry = entry_of(shard, key);
      step(entry, key, {LockEventKind::kRetry, fabric_.self()}, &waiter, pending);
      // The token has gone since the thread was woken, and what was said then of the node where it
      // lingers has not reached it.
      const bool missed = !pending.caller_granted && entry.local.lingers_at != 0;
      if (missed && nudging.due == kNoNudge) nudging.due = os::monotonic_now() + turn();
    }
    carry_out(pending);
    if (pending.caller_granted) return nudging.sent;
  }
}

// The calls below come from managed stacks. Their arguments and results are copied across; the
// methods behind them are not inlined, so that nothing of the managed stack is looked at under a
// mutex (L1).
template <auto kMethod, typename... Arguments>
std::uint32_t LockService::on_native(LockKey key, Arguments... arguments) {
  std::uint32_t result = 0;
  on_native_stack([this, key, arguments..., &result] {
    const std::uint32_t answer = (this->*kMethod)(key, arguments...);
    result = answer;
  });
  return result;
}

// The thread has released a lock, and may have been asked to stop while it had it. What was its
// node's may be another's afterwards.
void LockService::stop_if_asked(ThreadFrame& frame) {
  if (frame.locks_held != 0 || frame.team == nullptr) return;
  Halt& halt = frame.team->halt();
  if (halt.is_asked(frame) && halt.end_call(frame)) frame.team->stop_in_call(frame);
}

void LockService::release_in_region(ThreadFrame& frame, LockKey key) {
  --frame.locks_held;
  release_with_care(key);
  stop_if_asked(frame);
}

// Whether the calling thread has it now. It may be taken for as long as a short critical section.
bool LockService::take_resting(LockKey key) {
  for (int spins = 0; spins < kSpinsAtRest; ++spins) {
    const RestingLocks::Answer answer = resting_.try_take(key);
    if (answer != RestingLocks::Answer::kHeld) return answer == RestingLocks::Answer::kTaken;
    __builtin_ia32_pause();
  }
  return false;
}

void LockService::acquire_taken_or_away(LockKey key) {
  if (take_resting(key)) return count_held(1);
  ThreadFrame* const frame = current_frame();
  if (frame != nullptr && frame->team != nullptr) return acquire_in_team(*frame, key);
  on_native<&LockService::do_acquire>(key);
  count_held(1);
}

// Where it is asked to stop meanwhile it does so without the lock.
void LockService::acquire_in_team(ThreadFrame& frame, LockKey key) {
  Halt& halt = frame.team->halt();
  for (;;) {
    halt.begin_call(frame);
    on_native<&LockService::do_acquire>(key);
    if (!halt.end_call(frame)) break;
    on_native<&LockService::do_release>(key);
    if (!frame.team->stop_in_call(frame)) return acquire_at_home(key);
  }
  ++frame.locks_held;
}

void LockService::acquire_at_home(LockKey key) {
  current_frame()->team->node().locks()->acquire(key);
}

bool LockService::try_acquire(LockKey key) {
  const RestingLocks::Answer answer = resting_.try_take(key);
  if (answer == RestingLocks::Answer::kHeld) return false;
  const bool taken = answer == RestingLocks::Answer::kTaken ||
                     on_native<&LockService::do_try>(key) != 0;
  if (taken) count_held(1);
  return taken;
}

void LockService::release_with_care(LockKey key) {
  if (!resting_.give_back(key)) on_native<&LockService::do_release>(key);
}

std::uint32_t LockService::acquire_nested(LockKey key, std::uint32_t region) {
  count_held(1);
  return on_native<&LockService::do_acquire_nested>(key, region);
}

std::uint32_t LockService::try_acquire_nested(LockKey key, std::uint32_t region) {
  const std::uint32_t depth = on_native<&LockService::do_try_nested>(key, region);
  if (depth != 0) count_held(1);
  return depth;
}

std::uint32_t LockService::release_nested(LockKey key) {
  count_held(-1);
  const std::uint32_t left = on_native<&LockService::do_release_nested>(key);
  if (ThreadFrame* const frame = current_frame(); frame != nullptr) stop_if_asked(*frame);
  return left;
}

void LockService::forget(LockKey key) { on_native<&LockService::do_forget>(key); }

std::uint32_t LockService::do_acquire(LockKey key) {
  Waiter waiter;
  Pending pending;
  Nanos began = 0;
  {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    Entry& entry = entry_of(shard, key);
    ++entry.uses;
    if (entry.travels) {
      began = os::monotonic_now();
      entry.habit.note_acquire(began, fetch_.load(std::memory_order_relaxed), entry.local.lingers);
    }
    step(entry, key, {LockEventKind::kAcquire, fabric_.self()}, &waiter, pending);
    if (!pending.caller_granted) entry.waiting.push(&waiter);
    let_rest(shard, entry, key);
  }
  const bool fetches = pending.send_count > 0;
  if (fetches && began == 0) began = os::monotonic_now();
  carry_out(pending);
  if (fetches) fetch_around(key);
  if (!pending.caller_granted) {
    const Nanos nudged = wait(key, waiter);
    if (fetches) {
      const bool was_nudged = nudged != kNoNudge;
      const Nanos now = os::monotonic_now();
      note_fetch(now - (was_nudged ? nudged : began), was_nudged);
      const ThreadFrame* const frame = current_frame();
      if (frame != nullptr && frame->team != nullptr) {
        frame->team->node().note_wait_for_others(now - began);
      }
    }
    services_.show_progress();
  }
  return 1;
}

// Other nodes' threads have no use for locks while a region stays here, or once it has come home.
void LockService::fetch_around(LockKey key) {
  const ThreadFrame* const frame = current_frame();
  const bool is_alone =
      frame == nullptr || (frame->team != nullptr && frame->team->shares().size() < 2);
  // Relaxed: a guess.
  if (!is_alone) return lone_fetches_.store(0, std::memory_order_relaxed);
  if (lone_fetches_.fetch_add(1, std::memory_order_relaxed) < kFetchesThatTell) return;
  const LockKey first = key - key % kAround;
  for (LockKey other = first; other < first + kAround; other += kLeastLock) {
    if (home_of_(other) != fabric_.self()) continue;
    Pending pending;
    {
      Shard& shard = shard_of(other);
      const std::lock_guard lock(shard.mutex);
      const auto found = shard.entries.find(other);
      const bool is_away = found != shard.entries.end() &&
                           found->second.local.token == LockLocal::Token::kAbsent;
      if (!is_away) continue;
      step(found->second, other, {LockEventKind::kRecall, fabric_.self()}, nullptr, pending);
    }
    asked_around_.fetch_add(1, std::memory_order_relaxed);
    carry_out(pending);
  }
}

std::uint32_t LockService::do_try(LockKey key) {
  Waiter waiter;
  Pending pending;
  {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    Entry& entry = entry_of(shard, key);
    step(entry, key, {LockEventKind::kTry, fabric_.self()}, &waiter, pending);
    if (!pending.caller_granted && !pending.caller_refused) entry.trying.push(&waiter);
  }
  carry_out(pending);
  if (pending.caller_granted || pending.caller_refused) return pending.caller_granted ? 1 : 0;
  wait(key, waiter);
  return waiter.state.load(std::memory_order_acquire) == Waiter::kGranted ? 1 : 0;
}

std::uint32_t LockService::do_release(LockKey key) {
  Pending pending;
  {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    Entry& entry = entry_of(shard, key);
    if (entry.travels) entry.habit.note_release(os::monotonic_now());
    const LockEvent event{LockEventKind::kRelease, fabric_.self(),
                          entry.local.next_known && may_linger(entry)};
    step(entry, key, event, nullptr, pending);
    let_rest(shard, entry, key);
  }
  if (pending.nobody_holds) end_with_unset_of_free_lock(key, fabric_.self());
  carry_out(pending);
  return 1;
}

void LockService::end_with_unset_of_free_lock(LockKey key, NodeId node) {
  services_.abort_job(fmt::format(
      "a lock at {:#x} was unset on node {}, but no thread of the program has set it", key,
      node.value));
}

// The new depth if the calling thread owns the nest lock, else 0.
std::uint32_t LockService::reenter(LockKey key, std::uint32_t region) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end()) return 0;
  Entry& entry = found->second;
  const bool mine = entry.owner == this_thread() && entry.region == region;
  return entry.depth > 0 && mine ? ++entry.depth : 0;
}

void LockService::enter(LockKey key, std::uint32_t region) {
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  Entry& entry = entry_of(shard, key);
  AMASIA_CHECK(entry.depth == 0 && entry.local.held, "a nest lock is entered by its holder");
  entry.depth = 1;
  entry.owner = this_thread();
  entry.region = region;
}

std::uint32_t LockService::do_acquire_nested(LockKey key, std::uint32_t region) {
  const std::uint32_t depth = reenter(key, region);
  if (depth > 0) return depth;
  do_acquire(key);
  enter(key, region);
  return 1;
}

std::uint32_t LockService::do_try_nested(LockKey key, std::uint32_t region) {
  const std::uint32_t depth = reenter(key, region);
  if (depth > 0) return depth;
  if (do_try(key) == 0) return 0;
  enter(key, region);
  return 1;
}

std::uint32_t LockService::do_release_nested(LockKey key) {
  {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    Entry& entry = entry_of(shard, key);
    if (entry.depth > 1) return --entry.depth;
    entry.depth = 0;
  }
  do_release(key);
  return 0;
}

std::uint32_t LockService::do_forget(LockKey key) {
  Pending pending;
  const LockSite site = site_of(key);
  {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    if (site.self != site.home) {
      // Only the home knows whether the token is away from it.
      pending.send(site.home, key, LockEventKind::kRecall, site.self);
    } else {
      Entry& entry = entry_of(shard, key);
      step(entry, key, {LockEventKind::kRecall, site.self}, nullptr, pending);
      if (resting(entry, key)) shard.entries.erase(key);
    }
  }
  carry_out(pending);
  return 1;
}

LockStatistics LockService::statistics() const {
  LockStatistics sum;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    sum.tokens_fetched += shards_[i].tokens_fetched;
    sum.entries += shards_[i].entries.size();
  }
  sum.fetch = fetch_.load(std::memory_order_relaxed);
  sum.asked_around = asked_around_.load(std::memory_order_relaxed);
  return sum;
}

void LockService::step_message(Shard& shard, Entry& entry, const Wire& wire, Pending& pending) {
  LockEvent event{wire.kind, NodeId{wire.node}};
  switch (wire.kind) {
    case LockEventKind::kToken:
      ++shard.tokens_fetched;
      entry.travels = true;
      break;
    case LockEventKind::kUnset: entry.depth = 0; break;
    case LockEventKind::kForward: event.may_linger = may_linger(entry); break;
    case LockEventKind::kNudge:
      if (entry.local.lingers && !entry.local.held) {
        entry.habit.note_nudge(os::monotonic_now(), fetch_.load(std::memory_order_relaxed));
      }
      break;
    default: break;
  }
  step(entry, wire.key, event, nullptr, pending);
  if (wire.kind == LockEventKind::kLingers && entry.local.lingers_at != 0) {
    tell_of_lingering(*entry.waiting.first);
  }
}

void LockService::on_message(const fabric::Incoming& message) {
  Wire wire;
  AMASIA_CHECK(message.body.size() == sizeof wire, "a lock message has a fixed length");
  std::memcpy(&wire, message.body.data(), sizeof wire);
  AMASIA_CHECK(wire.node < fabric_.node_count(), "a lock message names a node of the job");
  Pending pending;
  {
    Shard& shard = shard_of(wire.key);
    const std::lock_guard lock(shard.mutex);
    Entry& entry = entry_of(shard, wire.key);
    entry.uses = 0;
    if (for_home(wire.kind)) {
      step_home(entry, wire.key, {wire.kind, NodeId{wire.node}}, pending);
    } else if (wire.kind == LockEventKind::kUnset && entry.depth > 1) {
      --entry.depth;
      return;
    } else {
      step_message(shard, entry, wire, pending);
    }
    // What a message has brought to rest need not be remembered: beside a message, making the entry
    // again costs nothing. Unless it says how the lock is used; a recalled one is used no more.
    const bool recalled = wire.kind == LockEventKind::kToken ||
                          wire.kind == LockEventKind::kForwardTry;
    if (resting(entry, wire.key) && (recalled || !entry.habit.knows())) {
      shard.entries.erase(wire.key);
    }
  }
  if (pending.nobody_holds) end_with_unset_of_free_lock(wire.key, NodeId{wire.node});
  carry_out(pending);
}

}  // namespace amasia::omp
