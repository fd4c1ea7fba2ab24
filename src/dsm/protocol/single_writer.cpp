// SPDX-License-Identifier: Apache-2.0
#include "dsm/protocol/single_writer.hpp"

#include <bit>

namespace amasia::dsm::protocol {
namespace {

constexpr std::uint64_t bit(NodeId node) { return std::uint64_t{1} << node.value; }
constexpr std::uint8_t byte(NodeId node) { return static_cast<std::uint8_t>(node.value); }
constexpr NodeId node_at(int index) { return NodeId{static_cast<std::uint16_t>(index)}; }

constexpr bool is_revocation(CacheEventKind kind) {
  return kind >= CacheEventKind::kFetchRead && kind <= CacheEventKind::kInvalidate;
}

// The cache side. One object lives for one step; members are the step's arguments.
class CacheStep {
 public:
  CacheStep(CachePage& page, const CacheContext& context, CacheEffects& effects)
      : page_(page), context_(context), effects_(effects) {}

  void run(const CacheEvent& event) {
    switch (event.kind) {
      case CacheEventKind::kReadFault:
        return read_fault();
      case CacheEventKind::kWriteFault:
        return write_fault();
      case CacheEventKind::kPrefetchRead:
        if (state() == CacheState::kInvalid) read_fault();
        return;
      case CacheEventKind::kPrefetchWrite:
        if (state() == CacheState::kInvalid) write_fault();
        return;
      case CacheEventKind::kReleaseHold:
        return release_hold();
      case CacheEventKind::kEvict:
        return evict();
      case CacheEventKind::kGiveBack:
        return give_back();
      case CacheEventKind::kFetchRead:
      case CacheEventKind::kFetchExclusive:
      case CacheEventKind::kFetchForGrant:
      case CacheEventKind::kInvalidate:
        return revocation(event);
      case CacheEventKind::kGrant:
        return grant();
      case CacheEventKind::kTakeBack:
        return take_back();
      case CacheEventKind::kWithdraw:
        return withdraw();
      case CacheEventKind::kDataShared:
        return data_shared();
      case CacheEventKind::kDataExclusive:
        return data_exclusive();
      case CacheEventKind::kDataForGrant:
        return data_for_grant();
      case CacheEventKind::kDataOffered:
        return data_offered();
    }
    AMASIA_CHECK(false, "an event that is none of CacheEventKind");
  }

 private:
  bool is_home() const { return context_.self == context_.home; }
  CacheState state() const { return page_.state(is_home()); }
  void change_state(CacheState from, CacheState to) {
    AMASIA_CHECK(state() == from, "a transition begins in another state than it says");
    page_.set_state(to, is_home());
  }
  void push(EffectKind kind) { effects_.push({kind}); }
  void send(MessageKind message, NodeId to, NodeId requester) {
    effects_.push({EffectKind::kSend, message, byte(to), byte(requester)});
  }
  void send_home(MessageKind message) { send(message, context_.home, context_.self); }

  void read_fault() {
    switch (state()) {
      case CacheState::kInvalid:
        change_state(CacheState::kInvalid, CacheState::kReadPending);
        return send_home(MessageKind::kReadRequest);
      case CacheState::kExclusive:  // stale, or at the home: in the file but not in the view
        return install_again(EffectKind::kInstallWrite);
      case CacheState::kShared:
      case CacheState::kUpgradePending:
        return install_again(EffectKind::kInstallRead);
      case CacheState::kReadPending:
      case CacheState::kWritePending:
      case CacheState::kWritePendingData:
      case CacheState::kWritePendingGrant:
        return;  // the installation that is to come wakes this thread too
    }
  }

  void write_fault() {
    switch (state()) {
      case CacheState::kInvalid:
        change_state(CacheState::kInvalid, CacheState::kWritePending);
        return send_home(MessageKind::kWriteRequest);
      case CacheState::kExclusive:
        return install_again(EffectKind::kInstallWrite);
      case CacheState::kShared:
        if (!page_.has_pending()) {
          page_.offered = 0;
          change_state(CacheState::kShared, CacheState::kUpgradePending);
          return send_home(MessageKind::kUpgradeRequest);
        }
        // To hold on to a read copy while asking for more would serve nobody, and would let a
        // second revocation reach this page while the first is still held.
        revoke_held();
        change_state(CacheState::kInvalid, CacheState::kWritePending);
        return send_home(MessageKind::kWriteRequest);
      case CacheState::kUpgradePending:
      case CacheState::kReadPending:  // woken with the read copy, the thread faults again
      case CacheState::kWritePending:
      case CacheState::kWritePendingData:
      case CacheState::kWritePendingGrant:
        return;
    }
  }

  void install_again(EffectKind install) {
    push(install);
    push(EffectKind::kWake);
  }

  void release_hold() {
    const bool has_copy = state() == CacheState::kExclusive || state() == CacheState::kShared;
    if (page_.has_pending() && has_copy) revoke_held();
  }

  // Nothing changes here: the home takes the copy by a revocation, or has just taken it, or forgets
  // the request. So an eviction meets no race that a revocation does not meet anyway.
  void evict() {
    AMASIA_CHECK(!is_home(), "a page is evicted from its home");
    const bool has_copy = state() == CacheState::kExclusive || state() == CacheState::kShared;
    if (has_copy && !page_.has_pending()) send_home(MessageKind::kEvictRequest);
  }

  // The home has heard of nothing but the offer, so nobody waits for this copy, or will: at most it
  // is being withdrawn, which is acknowledged where there is none, too.
  void give_back() {
    if (page_.offered == 0) return;
    drop_offered();
    send_home(MessageKind::kGivenBack);
  }

  void drop_offered() {
    page_.offered = 0;
    change_state(CacheState::kShared, CacheState::kInvalid);
    push(EffectKind::kUnmap);
  }

  // Sent before the home heard of anything from here since the offer. So if this node has a copy,
  // it is the offered one; if it has asked for something meanwhile, it has not been served yet.
  void withdraw() {
    switch (state()) {
      case CacheState::kShared:
        AMASIA_CHECK(page_.offered != 0, "a copy is withdrawn that was not offered");
        drop_offered();
        break;
      case CacheState::kUpgradePending:
        lose_read_copy();
        push(EffectKind::kUnmap);
        break;
      case CacheState::kInvalid:  // given back
      case CacheState::kReadPending:  // or not taken, since it came meanwhile
      case CacheState::kWritePending:
        break;
      default:
        AMASIA_CHECK(false, "a copy is withdrawn from a node that was served since");
    }
    send_home(MessageKind::kInvalidateAck);
  }

  // Another node's copy is evicted, and the home has none: it takes the page as a writer does.
  void take_back() {
    AMASIA_CHECK(is_home(), "a page is taken back by a node that is not its home");
    if (state() == CacheState::kInvalid) write_fault();
  }

  void revoke_held() {
    const CacheEventKind kind = page_.pending();
    const NodeId requester{page_.pending_requester};
    page_.pending_code = 0;
    page_.pending_requester = 0;
    revoke(kind, requester);
  }

  // A revocation has arrived: do it, hold it, or keep it until the copy it is about has come.
  void revocation(const CacheEvent& event) {
    AMASIA_CHECK(!page_.has_pending(), "two revocations of one page are outstanding at a node");
    AMASIA_CHECK(event.kind == CacheEventKind::kInvalidate || event.requester != context_.self,
                 "a node is asked to send a page to itself");
    if (awaits_copy(event.kind)) return keep(event);
    if (event.hold && can_hold(page_, is_home(), event.kind)) {
      keep(event);
      return push(EffectKind::kRevokePending);
    }
    revoke(event.kind, event.requester);
  }

  // Messages of different pairs overtake each other: the home's revocation of what it has given can
  // come before the data that another node sends. kWritePendingData is not among these states:
  // there the home is busy until its grant is sent, which comes before any later revocation.
  bool awaits_copy(CacheEventKind kind) const {
    switch (state()) {
      case CacheState::kReadPending:
        return kind == CacheEventKind::kInvalidate;
      case CacheState::kWritePending:
      case CacheState::kWritePendingGrant:
        return kind == CacheEventKind::kFetchRead || kind == CacheEventKind::kFetchExclusive;
      default:
        return false;
    }
  }

  void keep(const CacheEvent& event) {
    page_.pending_code = static_cast<std::uint8_t>(event.kind);
    page_.pending_requester = byte(event.requester);
  }

  void revoke(CacheEventKind kind, NodeId requester) {
    switch (kind) {
      case CacheEventKind::kFetchRead:
        return give_read_copy(requester);
      case CacheEventKind::kFetchExclusive:
        change_state(CacheState::kExclusive, CacheState::kInvalid);
        return hand_over(MessageKind::kDataExclusive, requester);
      case CacheEventKind::kFetchForGrant:
        lose_read_copy();
        return hand_over(MessageKind::kDataForGrant, requester);
      case CacheEventKind::kInvalidate:
        lose_read_copy();
        push(EffectKind::kUnmap);
        return send_home(MessageKind::kInvalidateAck);
      default:
        AMASIA_CHECK(false, "an event that is no revocation is done as one");
    }
  }

  void give_read_copy(NodeId requester) {
    const bool was_owner = state() == CacheState::kExclusive;
    AMASIA_CHECK(
        was_owner || state() == CacheState::kShared || state() == CacheState::kUpgradePending,
        "a node that has no copy is asked for one");
    if (was_owner) {
      change_state(CacheState::kExclusive, CacheState::kShared);
      push(EffectKind::kProtect);
    }
    push(EffectKind::kCopyOut);
    send(MessageKind::kDataShared, requester, requester);
    // The home's own arrival confirms for the owner: it costs no message.
    if (was_owner && requester != context_.home) send_home(MessageKind::kDowngraded);
  }

  void hand_over(MessageKind message, NodeId requester) {
    push(EffectKind::kUnmap);
    push(EffectKind::kCopyOut);
    send(message, requester, requester);
  }

  // An upgrade that is overtaken goes on as a write: the home sees that the sender is no sharer.
  void lose_read_copy() {
    if (state() == CacheState::kUpgradePending)
      return change_state(CacheState::kUpgradePending, CacheState::kWritePending);
    AMASIA_CHECK(state() == CacheState::kShared, "a read copy is revoked where there is none");
    change_state(CacheState::kShared, CacheState::kInvalid);
  }

  void grant() {
    switch (state()) {
      case CacheState::kUpgradePending:
        change_state(CacheState::kUpgradePending, CacheState::kExclusive);
        return install(EffectKind::kInstallWrite);
      case CacheState::kWritePendingData:
        change_state(CacheState::kWritePendingData, CacheState::kExclusive);
        return install(EffectKind::kInstallWrite);
      case CacheState::kWritePending:
        return change_state(CacheState::kWritePending, CacheState::kWritePendingGrant);
      default:
        AMASIA_CHECK(false, "a grant comes to a node that does not wait for one");
    }
  }

  void data_shared() {
    AMASIA_CHECK(state() == CacheState::kReadPending, "a read copy comes that was not asked for");
    change_state(CacheState::kReadPending, CacheState::kShared);
    push(EffectKind::kCopyIn);
    push(EffectKind::kInstallRead);
    push(EffectKind::kWake);
    if (is_home()) send_home(MessageKind::kDowngraded);
    note_pending();
  }

  void data_exclusive() {
    AMASIA_CHECK(state() == CacheState::kWritePending, "a page comes that was not asked for");
    change_state(CacheState::kWritePending, CacheState::kExclusive);
    push(EffectKind::kCopyIn);
    install(EffectKind::kInstallWrite);
  }

  void data_for_grant() {
    push(EffectKind::kCopyIn);
    if (state() == CacheState::kWritePending)
      return change_state(CacheState::kWritePending, CacheState::kWritePendingData);
    AMASIA_CHECK(state() == CacheState::kWritePendingGrant, "a page comes that was not asked for");
    change_state(CacheState::kWritePendingGrant, CacheState::kExclusive);
    install(EffectKind::kInstallWrite);
  }

  // Taken only where nothing is under way. A request that crosses the offer tells the home that it
  // was not taken; it may have been answered by others by now, whose page is a newer one.
  void data_offered() {
    if (state() != CacheState::kInvalid) return;
    change_state(CacheState::kInvalid, CacheState::kShared);
    page_.offered = 1;
    push(EffectKind::kCopyIn);
    push(EffectKind::kInstallRead);
  }

  void install(EffectKind kind) {
    push(kind);
    push(EffectKind::kWake);
    note_pending();
  }

  // Always the last effect, so that the caller may release at once.
  void note_pending() {
    if (page_.has_pending()) push(EffectKind::kRevokePending);
  }

  CachePage& page_;
  const CacheContext context_;
  CacheEffects& effects_;
};

// The home side, likewise.
class HomeStep {
 public:
  HomeStep(DirectoryEntry& entry, NodeId home, HomeEffects& effects)
      : entry_(entry), home_(home), effects_(effects) {}

  void run(const HomeEvent& event) {
    switch (event.kind) {
      case MessageKind::kReadRequest:
        return request(event.from, entry_.waiting_readers, false);
      case MessageKind::kWriteRequest:
        return request(event.from, entry_.waiting_writers, false);
      case MessageKind::kUpgradeRequest:
        return request(event.from, entry_.waiting_writers, true);
      case MessageKind::kInvalidateAck:
        return invalidate_ack(event.from);
      case MessageKind::kDowngraded:
        return downgraded(event.from);
      case MessageKind::kEvictRequest:
        return evict_request(event.from);
      case MessageKind::kGivenBack:
        return take_offer_back(event.from);
      default:
        AMASIA_CHECK(false, "a message to a cache comes to the home");
    }
  }

 private:
  enum Busy : std::uint8_t {
    kIdle = 0,
    kAwaitsDowngraded = 1,
    kAwaitsAcks = 2,
    kAwaitsEviction = 3
  };

  bool shared() const { return entry_.sharers != 0; }
  NodeId supplier() const {
    return (entry_.sharers & bit(home_)) != 0 ? home_ : entry_.owner(home_);
  }
  void send(MessageKind message, NodeId to, NodeId requester) {
    effects_.push({EffectKind::kSend, message, byte(to), byte(requester)});
  }
  void set_owner(NodeId node) {
    entry_.owner_code = node == home_ ? 0 : static_cast<std::uint8_t>(node.value + 1);
    if (node != home_) entry_.owned_elsewhere = 1;
  }
  void become_busy(Busy why, NodeId requester) {
    AMASIA_CHECK(entry_.idle(), "the home serves two requests of one page at a time");
    entry_.busy = why;
    entry_.requester_id = byte(requester);
  }
  void become_idle() {
    entry_.busy = kIdle;
    entry_.requester_id = 0;
    serve_waiting();
  }

  void request(NodeId from, std::uint64_t& waiting, bool upgrade) {
    AMASIA_CHECK(((entry_.waiting_readers | entry_.waiting_writers) & bit(from)) == 0,
                 "a node asks twice for one page");
    // Who asks for a copy has none: it has not taken the offered one, or has given it back.
    if (!upgrade) take_offer_back(from);
    entry_.offered &= ~bit(from);
    AMASIA_CHECK(shared() || entry_.owner(home_) != from, "the owner asks for its page");
    AMASIA_CHECK(upgrade || !has_copy(from), "a sharer asks for a copy");
    if (from != home_ && !upgrade) entry_.asked_elsewhere = 1;
    waiting |= bit(from);
    serve_waiting();
  }

  // In turn, so that a node waits for at most one service of each other node and one more of
  // reads. Readers of a page that is shared already go first: they cost one message each, and a
  // writer would otherwise take the page away between them.
  void serve_waiting() {
    while (entry_.idle()) {
      const std::uint64_t waiting = shared() && entry_.waiting_readers != 0
                                        ? entry_.waiting_readers
                                        : entry_.waiting_readers | entry_.waiting_writers;
      if (waiting == 0) return;
      const NodeId next = next_in_turn(waiting);
      entry_.last_served = byte(next);
      const bool reads = (entry_.waiting_readers & bit(next)) != 0;
      entry_.waiting_readers &= ~bit(next);
      entry_.waiting_writers &= ~bit(next);
      if (reads) {
        serve_read(next);
      } else {
        serve_write(next);
      }
    }
  }

  NodeId next_in_turn(std::uint64_t waiting) const {
    const int first = (entry_.last_served + 1) % static_cast<int>(base::kMaxNodes);
    return node_at((std::countr_zero(std::rotr(waiting, first)) + first) %
                   static_cast<int>(base::kMaxNodes));
  }

  // The home must wait for the owner's downgrade, since a second fetch could otherwise find the
  // first one held. It must wait for its own copy, since as a sharer it becomes the supplier.
  // In all other cases the supplier's copy is there, and the order of messages is enough.
  void serve_read(NodeId requester) {
    const NodeId from = supplier();
    const bool downgrade = !shared();
    if (downgrade) entry_.sharers = bit(from);
    entry_.sharers |= bit(requester);
    send(MessageKind::kFetchRead, from, requester);
    if (downgrade || requester == home_) become_busy(kAwaitsDowngraded, requester);
  }

  void serve_write(NodeId requester) {
    if (!shared()) {  // handed from owner to owner: a chain of these needs no confirmation
      send(MessageKind::kFetchExclusive, entry_.owner(home_), requester);
      return set_owner(requester);
    }
    std::uint64_t others = entry_.sharers & ~bit(requester);
    if ((entry_.sharers & bit(requester)) == 0) {
      send(MessageKind::kFetchForGrant, supplier(), requester);
      others &= ~bit(supplier());
    }
    if (others == 0) {  // the home was the only sharer: nobody is to be waited for
      AMASIA_CHECK(entry_.sharers == bit(home_), "a page has one sharer, which is not the home");
      entry_.sharers = 0;
      set_owner(requester);
      return send(MessageKind::kGrant, requester, requester);
    }
    for (std::uint64_t rest = others; rest != 0; rest &= rest - 1)
      invalidate(node_at(std::countr_zero(rest)), requester);
    entry_.sharers = 0;
    entry_.pending_acks = others;
    set_owner(requester);
    become_busy(kAwaitsAcks, requester);
  }

  // A request that comes too late, or while the home waits for somebody, is forgotten: whatever
  // made it late takes the copy away, or the node asks again. Where the home shares the page, the
  // copy is one of those that can go alone; else the home takes the page itself, data and all.
  void evict_request(NodeId from) {
    AMASIA_CHECK(from != home_, "the home evicts its own page");
    if (!entry_.idle()) return;
    if (shared() ? (entry_.sharers & bit(from)) == 0 : entry_.owner(home_) != from) return;
    if ((entry_.sharers & bit(home_)) == 0) return send(MessageKind::kTakeBack, home_, home_);
    invalidate(from, home_);
    become_busy(kAwaitsEviction, from);
  }

  // An offered copy whose eviction is awaited may have been given back before.
  bool has_copy(NodeId node) const {
    const bool leaves = entry_.busy == kAwaitsEviction && entry_.requester() == node;
    return (entry_.sharers & bit(node)) != 0 && !leaves;
  }

  void invalidate(NodeId sharer, NodeId requester) {
    const bool offered = (entry_.offered & bit(sharer)) != 0;
    entry_.offered &= ~bit(sharer);
    send(offered ? MessageKind::kWithdraw : MessageKind::kInvalidate, sharer, requester);
  }

  // What was withdrawn, or is a copy like any other now, stays as it is: an acknowledgement comes.
  void take_offer_back(NodeId from) {
    if ((entry_.offered & bit(from)) == 0) return;
    entry_.offered &= ~bit(from);
    entry_.sharers &= ~bit(from);
  }

  void evicted(NodeId from) {
    AMASIA_CHECK(from == entry_.requester(), "another node than the one asked drops its copy");
    entry_.sharers &= ~bit(from);
    if (entry_.owner(home_) == from) set_owner(home_);
    become_idle();
  }

  void invalidate_ack(NodeId from) {
    if (entry_.busy == kAwaitsEviction) return evicted(from);
    AMASIA_CHECK(entry_.busy == kAwaitsAcks && (entry_.pending_acks & bit(from)) != 0,
                 "an acknowledgement comes that was not asked for");
    entry_.pending_acks &= ~bit(from);
    if (entry_.pending_acks != 0) return;
    send(MessageKind::kGrant, entry_.requester(), entry_.requester());
    become_idle();
  }

  void downgraded(NodeId from) {
    AMASIA_CHECK(entry_.busy == kAwaitsDowngraded, "a confirmation comes that was not asked for");
    AMASIA_CHECK(from == (entry_.requester() == home_ ? home_ : entry_.owner(home_)),
                 "a node confirms that had nothing to do");
    become_idle();
  }

  DirectoryEntry& entry_;
  const NodeId home_;
  HomeEffects& effects_;
};

}  // namespace

void step_cache(CachePage& page, const CacheContext& context, const CacheEvent& event,
                CacheEffects& effects) {
  CacheStep(page, context, effects).run(event);
}

void step_home(DirectoryEntry& entry, NodeId home, const HomeEvent& event, HomeEffects& effects) {
  HomeStep(entry, home, effects).run(event);
}

// The home's own cache page says that its copy is here: the directory alone may run ahead of it.
bool offer(DirectoryEntry& entry, CachePage& page, NodeId home, NodeId to, CacheEffects& effects) {
  AMASIA_CHECK(to != home, "the home is offered its own page");
  const CacheState state = page.state(true);
  const bool exclusive =
      state == CacheState::kExclusive && entry.sharers == 0 && entry.owner(home) == home;
  const bool shared = state == CacheState::kShared && (entry.sharers & bit(home)) != 0 &&
                      (entry.sharers & bit(to)) == 0;
  if (!entry.idle() || page.has_pending() || !(exclusive || shared)) return false;
  entry.sharers |= bit(home) | bit(to);
  entry.offered |= bit(to);
  if (exclusive) {
    page.set_state(CacheState::kShared, true);
    effects.push({EffectKind::kProtect});
  }
  effects.push({EffectKind::kCopyOut});
  effects.push({EffectKind::kSend, MessageKind::kDataOffered, byte(to), byte(to)});
  return true;
}

// A node that waits for an upgrade holds nothing: its copy has been used, and the home could send a
// second revocation after having served the upgrade. To give a read copy of a read copy takes no
// rights.
bool can_hold(const CachePage& page, bool is_home, CacheEventKind revocation) {
  switch (page.state(is_home)) {
    case CacheState::kExclusive:
      return revocation == CacheEventKind::kFetchRead ||
             revocation == CacheEventKind::kFetchExclusive;
    case CacheState::kShared:
      return revocation == CacheEventKind::kFetchForGrant ||
             revocation == CacheEventKind::kInvalidate;
    default:
      return false;
  }
}

bool may_read(const CachePage& page, bool is_home) {
  const CacheState state = page.state(is_home);
  return state == CacheState::kExclusive || state == CacheState::kShared ||
         state == CacheState::kUpgradePending;
}

bool may_write(const CachePage& page, bool is_home) {
  return page.state(is_home) == CacheState::kExclusive;
}

bool is_valid(const CachePage& page, const CacheContext& context, std::uint32_t node_count) {
  const bool is_home = context.self == context.home;
  if (page.state_code >= kCacheStates || page.offered > 1) return false;
  if (page.offered != 0) {
    return !is_home && page.state(is_home) == CacheState::kShared && !page.has_pending();
  }
  if (!page.has_pending()) return page.pending_requester == 0;
  if (!is_revocation(page.pending()) || page.pending_requester >= node_count) return false;
  if (page.pending_requester == context.self.value) return false;
  const CacheEventKind kind = page.pending();
  switch (page.state(is_home)) {
    case CacheState::kReadPending:
      return kind == CacheEventKind::kInvalidate;
    case CacheState::kWritePending:
    case CacheState::kWritePendingGrant:
      return kind == CacheEventKind::kFetchRead || kind == CacheEventKind::kFetchExclusive;
    default:
      return can_hold(page, is_home, kind);
  }
}

bool is_valid(const DirectoryEntry& entry, NodeId home, std::uint32_t node_count) {
  const std::uint64_t nodes =
      node_count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << node_count) - 1;
  const std::uint64_t all =
      entry.sharers | entry.waiting_readers | entry.waiting_writers | entry.pending_acks;
  if ((all & ~nodes) != 0 || entry.owner(home).value >= node_count) return false;
  const std::uint64_t offerable = (entry.sharers & bit(home)) != 0 ? entry.sharers : 0;
  if ((entry.offered & ~(offerable & ~bit(home) & ~bit(entry.owner(home)))) != 0) return false;
  if (entry.owner_code == home.value + 1) return false;  // the home is written as 0
  if (entry.requester_id >= node_count || entry.busy > 3 || entry.owned_elsewhere > 1 ||
      entry.asked_elsewhere > 1) {
    return false;
  }
  if ((entry.waiting_readers & entry.waiting_writers) != 0) return false;
  if (entry.sharers != 0) {
    if ((entry.sharers & bit(entry.owner(home))) == 0) return false;
    if (std::popcount(entry.sharers) < 2 && entry.owner(home) != home) return false;
    const std::uint64_t leaving = entry.busy == 3 ? bit(entry.requester()) : 0;
    if ((entry.waiting_readers & entry.sharers & ~leaving) != 0) return false;
  } else if (((entry.waiting_readers | entry.waiting_writers) & bit(entry.owner(home))) != 0) {
    return false;
  }
  if ((entry.busy == 2) != (entry.pending_acks != 0)) return false;
  if (entry.busy == 2)
    return entry.sharers == 0 && entry.requester() == entry.owner(home) &&
           (entry.pending_acks & bit(entry.requester())) == 0;
  if (entry.busy == 3 && (entry.requester() == home || (entry.sharers & bit(home)) == 0))
    return false;
  if (entry.busy != 0) return (entry.sharers & bit(entry.requester())) != 0;
  return entry.requester_id == 0 && (entry.waiting_readers | entry.waiting_writers) == 0;
}

const char* name_of(MessageKind kind) {
  constexpr std::array<const char*, kMessageKinds> kNames = {
      "ReadRequest",  "WriteRequest", "UpgradeRequest", "InvalidateAck",  "Downgraded",
      "EvictRequest", "GivenBack",    "FetchRead",      "FetchExclusive", "FetchForGrant",
      "Invalidate",   "Grant",        "TakeBack",       "Withdraw",       "DataShared",
      "DataExclusive", "DataForGrant", "DataOffered"};
  return kNames.at(static_cast<std::size_t>(kind));
}

const char* name_of(CacheState state) {
  constexpr std::array<const char*, kCacheStates> kNames = {
      "Invalid",          "Exclusive",         "Shared",        "ReadPending", "WritePending",
      "WritePendingData", "WritePendingGrant", "UpgradePending"};
  return kNames.at(static_cast<std::size_t>(state));
}

const char* name_of(CacheEventKind kind) {
  constexpr std::array<const char*, kCacheEventKinds> kNames = {
      "ReadFault",  "WriteFault",    "PrefetchRead",  "PrefetchWrite", "ReleaseHold",
      "Evict",      "GiveBack",      "FetchRead",     "FetchExclusive", "FetchForGrant",
      "Invalidate", "Grant",         "TakeBack",      "Withdraw",      "DataShared",
      "DataExclusive", "DataForGrant", "DataOffered"};
  return kNames.at(static_cast<std::size_t>(kind));
}

const char* name_of(EffectKind kind) {
  constexpr std::array<const char*, 9> kNames = {"Protect",      "Unmap",  "CopyOut",
                                                 "Send",         "CopyIn", "InstallRead",
                                                 "InstallWrite", "Wake",   "RevokePending"};
  return kNames.at(static_cast<std::size_t>(kind));
}

}  // namespace amasia::dsm::protocol
