// SPDX-License-Identifier: Apache-2.0
// The single-writer protocol: a page has many readers or one writer, so that a program sees
// sequentially consistent memory. Pure: values in, values out; no I/O, clock, thread, allocation.
// docs/protocols/single_writer.md has the message table and the state x event table.
//
// Vocabulary
//   cache side   every node's view of a page: CachePage, moved by step_cache().
//   home side    the directory of a page, at its home only: DirectoryEntry, moved by step_home().
//   revocation   a message that takes rights from a node: FetchRead takes writing and asks for a
//                copy to be sent to `requester`; FetchExclusive and FetchForGrant take everything
//                and hand the page to `requester`; Invalidate takes a read copy.
//   supplier     the node that answers requests with the page: the owner; of a shared page the home
//                where it is a sharer, else the node that owned the page last.
//   hold         a revocation that has arrived but waits in CachePage until kReleaseHold.
//   eviction     a node asks the home to take its copy away, to have the memory back. The copy goes
//                by the home's revocation, like every other: the request alone changes nothing.
//   offer        the home gives another node a read copy that it has not asked for. As long as that
//                node has not asked the home for anything since, it may drop the copy by itself and
//                tell the home of it later: it gives it back.
//
// What the caller (the engine, the explorer, the simulator) owes the protocol
//   A. One step at a time per page and node; all effects of a step are executed, in order, before
//      the next step of that page on that node.
//   B. Messages from one node to another (or to itself) arrive in the order in which they were
//   sent.
//      Nothing is assumed between different pairs.
//   C. After kRevokePending, the event kReleaseHold follows in bounded time.
//   D. A fault that the kernel reports is turned into one event, also when it looks stale.
//   E. kGivenBack is not of those messages: it may overtake all others, and may be lost. But a page
//      is not offered to a node while one of that page and node is under way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::dsm::protocol {

// From cache to home, from home to cache, and from cache to cache. The home's own cache is a node
// like any other: its messages only need no network.
enum class MessageKind : std::uint8_t {
  // cache -> home
  kReadRequest,     // the sender has no copy and wants one to read
  kWriteRequest,    // the sender has no copy and wants to own the page
  kUpgradeRequest,  // the sender has a read copy and wants to own the page
  kInvalidateAck,   // the sender's read copy is gone
  kDowngraded,      // the owner has become a sharer and the requester's copy is on its way or there
  kEvictRequest,    // the sender has a copy and would rather have the memory; a hint
  kGivenBack,       // the sender has dropped the copy that it was offered (see E above)
  // home -> cache
  kFetchRead,       // keep a read copy, send one to `requester`
  kFetchExclusive,  // drop yours, send the page to `requester`, which then owns it
  kFetchForGrant,   // the same, but `requester` must also await kGrant (others are invalidated)
  kInvalidate,      // drop your read copy and acknowledge
  kGrant,           // all other copies are gone (or will be, with the data): you own the page
  kTakeBack,        // to the home's own cache: ask for the page, unless you have it or wait for it
  kWithdraw,        // as kInvalidate, of a copy that was offered and may be gone, or never taken
  // cache -> cache; each carries the page
  kDataShared,
  kDataExclusive,
  kDataForGrant,
  kDataOffered,
};
inline constexpr std::size_t kMessageKinds = 18;

// Whether the message goes to step_home() (else to step_cache()).
constexpr bool is_for_home(MessageKind kind) { return kind <= MessageKind::kGivenBack; }
// Whether the message carries the bytes of the page.
constexpr bool carries_page(MessageKind kind) { return kind >= MessageKind::kDataShared; }

enum class CacheState : std::uint8_t {
  kInvalid,            // no copy, no request under way
  kExclusive,          // owner; reads and writes
  kShared,             // read copy
  kReadPending,        // no copy; kReadRequest sent
  kWritePending,       // no copy; ownership requested; neither data nor grant has come
  kWritePendingData,   // kDataForGrant has come, kGrant has not
  kWritePendingGrant,  // kGrant has come, kDataForGrant has not
  kUpgradePending,     // read copy; kUpgradeRequest sent
};
inline constexpr std::size_t kCacheStates = 8;

enum class CacheEventKind : std::uint8_t {
  kReadFault,      // a thread of this node waits to read
  kWriteFault,     // a thread of this node waits to write
  kPrefetchRead,   // as a read fault, but nobody waits; ignored unless the page is invalid
  kPrefetchWrite,  // as a write fault, but nobody waits; ignored unless the page is invalid
  kReleaseHold,    // do now what was held; without effect where nothing can be done
  kEvict,  // not at the home: ask for the copy to be taken away; ignored where there is none
           // to take, or one that is asked for already
  kGiveBack,  // drop a copy that was offered and not used for more; else ignored
  // the messages to a cache
  kFetchRead,
  kFetchExclusive,
  kFetchForGrant,
  kInvalidate,
  kGrant,
  kTakeBack,
  kWithdraw,
  kDataShared,
  kDataExclusive,
  kDataForGrant,
  kDataOffered,
};
inline constexpr std::size_t kCacheEventKinds = 18;

struct CacheEvent {
  CacheEventKind kind;
  NodeId requester{};  // of kFetchRead, kFetchExclusive, kFetchForGrant: who gets the page
  bool hold = false;   // of revocations: defer it where can_hold() says that it makes a difference
};

// The event that a message causes at the node it arrives at; `kind` must not be for the home.
constexpr CacheEvent cache_event(MessageKind kind, NodeId requester, bool hold) {
  const auto offset = static_cast<std::uint8_t>(kind) -
                      static_cast<std::uint8_t>(MessageKind::kFetchRead) +
                      static_cast<std::uint8_t>(CacheEventKind::kFetchRead);
  return {static_cast<CacheEventKind>(offset), requester, hold};
}

struct HomeEvent {
  MessageKind kind;  // one that is_for_home()
  NodeId from;
};

enum class EffectKind : std::uint8_t {
  kProtect,        // write-protect the page in the view: no local store succeeds any more
  kUnmap,          // remove the page from the view: no local access succeeds any more
  kCopyOut,        // read the page through the alias, for the kSend that follows
  kSend,           // send `message` (with what kCopyOut read, if it carries the page) to `to`
  kCopyIn,         // write the page that the message carried through the alias
  kInstallRead,    // map the page in the view, write-protected
  kInstallWrite,   // map the page in the view, writable; or lift the write protection it has
  kWake,           // wake every thread that waits for the page
  kRevokePending,  // a revocation is held: the caller must see to kReleaseHold; always the last
};

struct Effect {
  EffectKind kind;
  MessageKind message = MessageKind::kReadRequest;  // of kSend
  std::uint8_t to = 0;                              // of kSend
  std::uint8_t requester = 0;                       // of kSend of a fetch

  // Effects of neighbouring pages that compare equal may be executed as one batch.
  friend constexpr bool operator==(const Effect&, const Effect&) = default;
};

// Ordered and bounded; reset by the caller (a step appends).
template <std::size_t kCapacity>
class EffectList {
 public:
  void push(const Effect& effect) {
    AMASIA_CHECK(size_ < kCapacity, "a step has more effects than its bound says");
    effects_[size_++] = effect;
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Effect& operator[](std::size_t i) const { return effects_[i]; }
  Effect& operator[](std::size_t i) { return effects_[i]; }
  const Effect* begin() const { return effects_.data(); }
  const Effect* end() const { return effects_.data() + size_; }

 private:
  std::array<Effect, kCapacity> effects_;
  std::size_t size_ = 0;
};

// Largest: a write fault that ends a hold (unmap, copy out, send, request) or data that meets a
// held revocation (copy in, install, wake, confirm, pending).
inline constexpr std::size_t kMaxCacheEffects = 8;
// Largest: a fetch for every waiting reader, then a fetch and an invalidation for every sharer on
// behalf of the first waiting writer.
inline constexpr std::size_t kMaxHomeEffects = 2 * base::kMaxNodes + 8;
using CacheEffects = EffectList<kMaxCacheEffects>;
using HomeEffects = EffectList<kMaxHomeEffects>;

// Who runs the step. `home` is the page's home.
struct CacheContext {
  NodeId self;
  NodeId home;
};

// What a node knows of a page. All zero means untouched: owned exclusively where the node is the
// home, invalid elsewhere; so arrays of it need no initialisation.
struct CachePage {
  std::uint8_t state_code = 0;    // CacheState, with kInvalid and kExclusive swapped at the home
  std::uint8_t pending_code = 0;  // 0: no revocation held; else its CacheEventKind
  std::uint8_t pending_requester = 0;
  std::uint8_t offered = 0;  // 1: the read copy was offered, and the home told of nothing since

  CacheState state(bool is_home) const {
    const std::uint8_t swap = is_home && state_code <= 1 ? 1 : 0;
    return static_cast<CacheState>(state_code ^ swap);
  }
  void set_state(CacheState state, bool is_home) {
    const auto code = static_cast<std::uint8_t>(state);
    state_code = is_home && code <= 1 ? code ^ 1 : code;
  }
  bool has_pending() const { return pending_code != 0; }
  CacheEventKind pending() const { return static_cast<CacheEventKind>(pending_code); }
  friend bool operator==(const CachePage&, const CachePage&) = default;
};
static_assert(sizeof(CachePage) == 4);

// Moves the cache side of one page by one event and appends what must be done, in order.
// `page.state(...)` before the step tells which fault it is (kShared and a write fault: upgrade).
// Aborts on an event that cannot happen in the state (the tables say which and why).
void step_cache(CachePage& page, const CacheContext& context, const CacheEvent& event,
                CacheEffects& effects);

// Whether a revocation of this kind would take rights that a thread of this node could use, so that
// asking for `hold` makes a difference in this state. For the engine: ask the holding policy only
// then.
bool can_hold(const CachePage& page, bool is_home, CacheEventKind revocation);

// Whether the node may read, or write, the page once all effects so far are done.
bool may_read(const CachePage& page, bool is_home);
bool may_write(const CachePage& page, bool is_home);

// Says of one CachePage alone whether it is a value that step_cache can produce.
bool is_valid(const CachePage& page, const CacheContext& context, std::uint32_t node_count);

// The directory of one page, at its home. All zero means: owned exclusively by the home.
//   exclusive  <=> sharers == 0; the owner is owner().
//   shared     <=> sharers has the owner's bit, and another one or the home's (the home may be the
//                  only sharer: when the others' copies were evicted).
//   busy       <=> requester() waits for acks (pending_acks != 0), or kDowngraded is awaited,
//                  or the acknowledgement of requester(), whose read copy is evicted.
//   a node waits at most once; the requester for whom acks are collected does not wait.
//   offered: sharers, besides the home, from which nothing has come since they were offered a copy.
struct DirectoryEntry {
  std::uint64_t sharers = 0;
  std::uint64_t offered = 0;
  std::uint64_t waiting_readers = 0;
  std::uint64_t waiting_writers = 0;
  std::uint64_t pending_acks = 0;
  std::uint8_t owner_code = 0;  // 0: the home; else 1 + node
  std::uint8_t busy = 0;        // 0: idle; waits for 1: kDowngraded, 2: acks, 3: an eviction's ack
  std::uint8_t requester_id = 0;  // 0 while idle
  std::uint8_t last_served = 0;   // node; waiting nodes are served in turn from the next one on
  // 1: another node than the home has owned the page, or asked for a copy, since the caller has
  // cleared this, which no step reads. Only who reads a page has use for an offer.
  std::uint8_t owned_elsewhere = 0;
  std::uint8_t asked_elsewhere = 0;
  std::array<std::uint8_t, 2> reserved{};

  bool idle() const { return busy == 0; }
  NodeId requester() const { return NodeId{requester_id}; }  // of a busy entry
  NodeId owner(NodeId home) const {
    return owner_code == 0 ? home : NodeId{static_cast<std::uint16_t>(owner_code - 1)};
  }
  friend bool operator==(const DirectoryEntry&, const DirectoryEntry&) = default;
};
static_assert(sizeof(DirectoryEntry) == 48);

// Moves the home side of one page by one message and appends messages to be sent, in order.
// Aborts on a message that cannot come in the state.
void step_home(DirectoryEntry& entry, NodeId home, const HomeEvent& event, HomeEffects& effects);

// At the home: offers `to`, another node, a read copy, if it has none, and the home has one and
// waits for nobody. Moves the home's own cache page and appends what must be done there, in order.
// False: nothing is done. A and E above hold for it.
bool offer(DirectoryEntry& entry, CachePage& page, NodeId home, NodeId to, CacheEffects& effects);

// Says of one DirectoryEntry alone whether its equations (above) hold.
bool is_valid(const DirectoryEntry& entry, NodeId home, std::uint32_t node_count);

const char* name_of(MessageKind kind);
const char* name_of(CacheState state);
const char* name_of(CacheEventKind kind);
const char* name_of(EffectKind kind);

}  // namespace amasia::dsm::protocol
