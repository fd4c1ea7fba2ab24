// SPDX-License-Identifier: Apache-2.0
// The program's locks, critical sections and lock-based atomics across nodes: lock_protocol on the
// fabric. A lock is known by its address alone; the word there, in managed memory, is neither read
// nor written.
//
// field              | written by                       | guarded by
// Shard::entries     | threads of the node, handler     | Shard::mutex
// resting_           | threads of the node, handler     | a key's put, take_out: its Shard::mutex
// Entry (all)        | threads of the node, handler     | Shard::mutex
// Waiter::state      | who grants or wakes              | atomic; partner: the waiting thread
// Lingering (all)    | threads of the node, handler     | Lingering::mutex, inside a Shard's
// fetch_, paused_at_ | threads of the node              | atomic, estimates; so is lone_fetches_
// asked_around_      | threads of the node              | atomic, a count
// L1 A shard's mutex is held on a native stack only, never across a send or a wait, and nothing
//    managed is touched under it: the handler may take it.
// L2 A waiter lives on its thread's native stack and is in one queue until it was granted.
// L3 While a lock rests its entry, if it has one, says that the lock is free; whether it is, the
//    shelf says. entry_of() takes it from there, so who has an entry has all there is to know.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "omp/frame.hpp"
#include "omp/locks/lock_habit.hpp"
#include "omp/locks/lock_protocol.hpp"
#include "omp/locks/resting_locks.hpp"
#include "omp/services.hpp"

namespace amasia::omp {

class LongWait;

// Addresses of locks and of critical names are keys; so are these, where no object of a program can
// lie.
inline constexpr LockKey kUnnamedCritical = 1;
inline constexpr LockKey kGompAtomic = 2;
inline constexpr LockKey kFirstRuntimeLock = 16;  // the ABIs' own: 16 … 4095
inline LockKey lock_key(const void* address) { return reinterpret_cast<LockKey>(address); }

struct LockStatistics {
  std::uint64_t tokens_fetched = 0;  // tokens that came from another node since start
  std::uint64_t asked_around = 0;    // tokens that were asked for beside one that a thread wanted
  std::uint64_t entries = 0;         // locks with state here now
  Nanos fetch = 0;                   // what a token takes to come, about; 0: none has
};

class LockService final : public fabric::Handler {
 public:
  // The home of a lock: any fixed function that is the same on all nodes.
  using HomeOf = NodeId (*)(LockKey key);
  static NodeId origin_is_home(LockKey) { return base::kOrigin; }

  // Registers itself for messages of `type`. All outlive it. Waits that take longer than `watchdog`
  // go to the log; 0: none.
  LockService(fabric::Fabric& fabric, Services& services, fabric::MessageType type,
              HomeOf home_of = origin_is_home, Nanos watchdog = 0);
  ~LockService() override;

  // For any thread of the program, on any stack. acquire() blocks until the lock is the caller's;
  // try_acquire() at most for a message to a further node and back. Out of acquire() and the
  // releases the thread may go home (team/halt.hpp): then it is in the program again as another
  // thread, and the caller is to return at once.
  void acquire(LockKey key) {
    if (resting_.take_at_once(key)) [[likely]] return count_held(1);
    acquire_taken_or_away(key);
  }
  bool try_acquire(LockKey key);
  // By the thread that has the lock, or by one that acts for it, also on another node: libgomp lets
  // programs do so. Does not wait; released on another node, the lock is free a message later. Ends
  // the job with a sentence if no thread has the lock.
  void release(LockKey key) {
    if (ThreadFrame* const frame = current_frame(); frame != nullptr) {
      return release_in_region(*frame, key);
    }
    // Where a region stays no other node's thread waits for its locks.
    if (!resting_.give_back_at_once(key)) [[unlikely]] release_with_care(key);
  }

  // Locks that their owner may take again. The owner is the calling thread, together with `region`,
  // by which libgomp's owners, which are tasks, are told apart as far as they can be; explicit
  // tasks of one thread and region share their nest locks, as with libomp. acquire and try return
  // the depth, 0: not taken. release returns the depth that is left.
  std::uint32_t acquire_nested(LockKey key, std::uint32_t region = 0);
  std::uint32_t try_acquire_nested(LockKey key, std::uint32_t region = 0);
  std::uint32_t release_nested(LockKey key);

  // The program has destroyed the lock: its state may be dropped. Does not block.
  void forget(LockKey key);

  // A thread of the node is about to wait for other nodes, or for a lock: tokens that were kept
  // for it go to those who wait for them. Native stack; does not block; a load and a store where
  // there are none.
  void note_pause(Nanos now);

  LockStatistics statistics() const;

  void on_message(const fabric::Incoming& message) override;

 private:
  struct Waiter;
  struct Entry;
  struct Shard;
  struct Wire;
  struct Pending;
  // Locks whose tokens have begun to linger here since the last pause.
  struct Lingering {
    void add(LockKey key);
    std::vector<LockKey> take();
    std::atomic<bool> any{false};
    std::mutex mutex;
    std::vector<LockKey> keys;
  };
  static constexpr Nanos kNoNudge = -1;
  // Of one wait: when the node where the token lingers is to be nudged, and when it last was.
  struct Nudging {
    Nanos due = kNoNudge, sent = kNoNudge;
  };
  static constexpr std::size_t kShards = 64;
  // A shard with more entries drops those that say nothing when it meets them.
  static constexpr std::size_t kComfortableEntries = 256;

  Shard& shard_of(LockKey key);
  Entry& entry_of(Shard& shard, LockKey key);
  Entry& entry_in(Shard& shard, LockKey key);
  LockSite site_of(LockKey key) const;
  void step(Entry& entry, LockKey key, LockEvent event, Waiter* caller, Pending& pending);
  void step_home(Entry& entry, LockKey key, LockEvent event, Pending& pending);
  void carry_out(const Pending& pending);
  void end_with_unset_of_free_lock(LockKey key, NodeId node);
  void drop_idle_entries(Shard& shard);
  bool take_resting(LockKey key);
  void let_rest(Shard& shard, Entry& entry, LockKey key);
  void fetch_around(LockKey key);
  bool resting(const Entry& entry, LockKey key) const;
  void step_message(Shard& shard, Entry& entry, const Wire& wire, Pending& pending);
  Nanos wait(LockKey key, Waiter& waiter);
  std::uint32_t sleep(LockKey key, Waiter& waiter, LongWait& told, Nudging& nudging);
  void nudge(LockKey key);
  bool may_linger(const Entry& entry) const;
  Nanos turn() const;
  void note_fetch(Nanos took, bool nudged);
  std::uint32_t reenter(LockKey key, std::uint32_t region);
  void enter(LockKey key, std::uint32_t region);

  template <auto kMethod, typename... Arguments>
  std::uint32_t on_native(LockKey key, Arguments... arguments);
  // Who has locks stays where it is (ThreadFrame::locks_held).
  static void count_held(std::int32_t change) {
    if (ThreadFrame* const frame = current_frame(); frame != nullptr) frame->locks_held += change;
  }
  static void stop_if_asked(ThreadFrame& frame);
  [[gnu::noinline]] void release_in_region(ThreadFrame& frame, LockKey key);
  [[gnu::noinline]] void acquire_taken_or_away(LockKey key);
  [[gnu::noinline]] void release_with_care(LockKey key);
  [[gnu::noinline]] void acquire_in_team(ThreadFrame& frame, LockKey key);
  [[gnu::noinline]] static void acquire_at_home(LockKey key);
  [[gnu::noinline]] std::uint32_t do_acquire(LockKey key);
  [[gnu::noinline]] std::uint32_t do_try(LockKey key);
  [[gnu::noinline]] std::uint32_t do_release(LockKey key);
  [[gnu::noinline]] std::uint32_t do_acquire_nested(LockKey key, std::uint32_t region);
  [[gnu::noinline]] std::uint32_t do_try_nested(LockKey key, std::uint32_t region);
  [[gnu::noinline]] std::uint32_t do_release_nested(LockKey key);
  [[gnu::noinline]] std::uint32_t do_forget(LockKey key);

  fabric::Fabric& fabric_;
  Services& services_;
  const fabric::MessageType type_;
  const HomeOf home_of_;
  const Nanos watchdog_;
  std::unique_ptr<Shard[]> shards_;
  RestingLocks resting_;
  const os::TickClock ticks_;
  Lingering lingering_;
  std::atomic<Nanos> paused_at_{0};
  std::atomic<Nanos> fetch_{0};  // what a token takes to come, about; 0: none has
  std::atomic<std::uint32_t> lone_fetches_{0};  // in a row, by threads in no team of several nodes
  std::atomic<std::uint64_t> asked_around_{0};
};

}  // namespace amasia::omp
