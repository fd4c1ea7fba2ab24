// SPDX-License-Identifier: Apache-2.0
#include "fabric/ucx.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "fabric/channel.hpp"
#include "fabric/dispatcher.hpp"
#include "fabric/ucx_port.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

// How long a leaving node waits until the others have taken in its last words.
constexpr Nanos kLeaveTimeout = 5 * base::kSecond;
// Steps of UCX for one poll: enough to take in what has come, few enough to answer it soon.
constexpr int kProgressSteps = 64;

enum class ArrivalKind : std::uint8_t { kMessage, kLost };

// What poll() hands on: a message, or the loss of a peer with its reason as the body.
struct Arrival {
  ArrivalKind kind = ArrivalKind::kMessage;
  NodeId from;
  MessageType type = 0;
  std::span<const std::byte> body;
  void* held = nullptr;                 // UCX's memory, to be released
  std::vector<std::uint64_t> own = {};  // or ours
};

// A frame that came before its turn.
struct EarlyFrame {
  FrameHeader header;
  std::span<const std::byte> body;
  void* held = nullptr;
};

struct Peer {
  Peer(NodeId self, NodeId peer, const JobSecret& secret, const Nonce& nonce)
      : channel(self, peer, secret, nonce) {}
  Channel channel;
  std::map<std::uint64_t, EarlyFrame> early;  // at most kReorderWindow, by sequence
  bool reported = false;                      // its loss
  bool said_farewell = false;                 // it has taken in this node's goodbye
  bool failed = false;                        // its connection
  // Whether its farewell is still to come.
  bool may_answer() const {
    return !said_farewell && !failed && channel.state() != ChannelState::kLost;
  }
  std::string failure;                        // of its connection, not yet its loss
};

// field       | written by            | read by            | guarded by
// port_       | all                   | all                | mutex_
// peers_      | all                   | all                | mutex_
// inbox_      | progress, self-sends  | poll, arm          | mutex_
// armed_      | arm, wake             | wake               | mutex_
// failure_    | progress              | connect            | mutex_
// batch_      | poll                  | poll               | polling_
//
// Invariants: U1 mutex_ is taken in runtime sections only, so that its holder cannot fault on
// managed memory. U2 while armed_ is set, whatever poll() would find raises port_'s descriptor.
// U3 no handler runs under mutex_.
class UcxFabric final : public Fabric, private UcxListener {
 public:
  UcxFabric(NodeId self, std::uint32_t node_count) : self_(self), node_count_(node_count) {}
  ~UcxFabric() override;

  Status open(Bootstrap& bootstrap, const UcxSettings& settings);

  NodeId self() const override { return self_; }
  std::uint32_t node_count() const override { return node_count_; }
  bool send(NodeId to, MessageType type, std::span<const std::byte> head,
            std::span<const std::byte> payload) override;
  std::uint32_t poll(std::uint32_t budget) override;
  bool arm() override;
  int wait_descriptor() const override { return descriptor_; }
  void set_handler(MessageType first, MessageType last, Handler* handler) override {
    dispatcher_.set_handler(first, last, handler);
  }
  void set_peer_lost_handler(PeerLostHandler* handler) override {
    dispatcher_.set_peer_lost_handler(handler);
  }
  Statistics statistics() const override { return dispatcher_.statistics(); }

 private:
  bool on_frame(std::span<const std::byte> header, std::span<const std::byte> body,
                void* held) override AMASIA_REQUIRES(mutex_);
  void on_failure(NodeId peer, const char* why) override AMASIA_REQUIRES(mutex_);
  void on_sent(std::size_t body_length) override { dispatcher_.count_unqueued(body_length); }

  Status open_locked(Bootstrap& bootstrap, const UcxSettings& settings) AMASIA_REQUIRES(mutex_);
  Status shake_hands(Nanos deadline) AMASIA_REQUIRES(mutex_);
  Status describe_silent(Nanos timeout) AMASIA_REQUIRES(mutex_);
  Transmission transmit(NodeId to, const FrameHeader& header, OutgoingBody body)
      AMASIA_REQUIRES(mutex_);
  bool send_body(NodeId to, MessageType type, OutgoingBody body) AMASIA_EXCLUDES(mutex_);
  void send_to_self(MessageType type, const OutgoingBody& body) AMASIA_EXCLUDES(mutex_);
  bool judge(Peer& peer, const FrameHeader& header, std::span<const std::byte> body, void* held)
      AMASIA_REQUIRES(mutex_);
  void judge_early(Peer& peer) AMASIA_REQUIRES(mutex_);
  void send_proof(NodeId to, Peer& peer) AMASIA_REQUIRES(mutex_);
  void lose(NodeId peer, std::string_view why) AMASIA_REQUIRES(mutex_);
  void lose_failed() AMASIA_REQUIRES(mutex_);
  bool take_step() AMASIA_REQUIRES(mutex_);
  void wake() AMASIA_REQUIRES(mutex_);
  std::uint32_t poll_here(std::uint32_t budget) AMASIA_EXCLUDES(mutex_);
  void take_batch(std::uint32_t budget) AMASIA_EXCLUDES(mutex_);
  void dispatch(const Arrival& arrival) AMASIA_EXCLUDES(mutex_);
  void leave() AMASIA_REQUIRES(mutex_);
  void await_farewells(std::uint64_t staying) AMASIA_REQUIRES(mutex_);
  void drop_inbox() AMASIA_REQUIRES(mutex_);

  const NodeId self_;
  const std::uint32_t node_count_;
  int descriptor_ = -1;
  Dispatcher dispatcher_;
  mutable os::Mutex mutex_;
  std::unique_ptr<UcxPort> port_ AMASIA_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Peer>> peers_ AMASIA_GUARDED_BY(mutex_);  // null for self
  std::deque<Arrival> inbox_ AMASIA_GUARDED_BY(mutex_);
  bool armed_ AMASIA_GUARDED_BY(mutex_) = false;
  bool any_failed_ AMASIA_GUARDED_BY(mutex_) = false;  // some peer's `failure` is set
  bool connected_ AMASIA_GUARDED_BY(mutex_) = false;
  std::string failure_ AMASIA_GUARDED_BY(mutex_);  // what went wrong while connecting
  os::Mutex polling_;
  std::vector<Arrival> batch_;
};

// ---- connecting

Status UcxFabric::open(Bootstrap& bootstrap, const UcxSettings& settings) {
  Status status = base::ok();
  // UCX starts a thread of its own, which inherits that signals are blocked.
  os::in_runtime_section([&] {
    os::MutexLock lock(mutex_);
    status = open_locked(bootstrap, settings);
  });
  return status;
}

Status UcxFabric::open_locked(Bootstrap& bootstrap, const UcxSettings& settings) {
  const Nanos deadline = os::monotonic_now() + settings.connect_timeout;
  auto port = UcxPort::open(settings, *this);
  if (!port.ok()) return port.error();
  port_ = std::move(port).value();
  descriptor_ = port_->descriptor();

  auto done = bootstrap.put("ucx", port_->address());
  if (done.ok()) done = bootstrap.fence(settings.connect_timeout);
  if (!done.ok()) return done;
  for (std::uint16_t node = 0; node < node_count_; ++node) {
    if (NodeId(node) == self_) {
      peers_.push_back(nullptr);
      continue;
    }
    Nonce nonce;
    os::fill_random(nonce);
    peers_.push_back(std::make_unique<Peer>(self_, NodeId(node), bootstrap.secret(), nonce));
  }
  for (std::uint16_t node = 0; node < node_count_; ++node) {
    if (peers_[node] == nullptr) continue;
    auto address = bootstrap.get(NodeId(node), "ucx");
    if (!address.ok()) return address.error();
    done = port_->connect(NodeId(node), address.value());
    if (!done.ok()) return done;
    const Channel& channel = peers_[node]->channel;
    transmit(NodeId(node), channel.hello_header(), {channel.hello_body(), {}, {}});
  }
  done = shake_hands(deadline);
  connected_ = done.ok();
  return done.ok() || done.error().code != ETIMEDOUT ? done
                                                     : describe_silent(settings.connect_timeout);
}

Status UcxFabric::shake_hands(Nanos deadline) {
  const auto is_settled = [](const auto& peer) {
    return peer == nullptr || peer->channel.state() >= ChannelState::kOpen;
  };
  for (;;) {
    for (int step = 0; step < kProgressSteps && take_step(); ++step) {
    }
    if (!failure_.empty()) return Error{failure_, 0};
    if (std::all_of(peers_.begin(), peers_.end(), is_settled)) return base::ok();
    const Nanos now = os::monotonic_now();
    if (now >= deadline) return Error{"", ETIMEDOUT};
    if (port_->arm()) {
      const Nanos nap = std::min<Nanos>(deadline - now, 100 * base::kMillisecond);
      os::wait_readable(&descriptor_, 1, nap);
    }
  }
}

Status UcxFabric::describe_silent(Nanos timeout) {
  std::string silent;
  for (std::size_t node = 0; node < peers_.size(); ++node) {
    if (peers_[node] == nullptr || peers_[node]->channel.is_open()) continue;
    silent += fmt::format("{} {}", silent.empty() ? "" : ",", node);
  }
  return Error{fmt::format("node{} could not be reached over the network within {} s", silent,
                           (timeout + base::kSecond - 1) / base::kSecond),
               ETIMEDOUT};
}

// ---- sending

bool UcxFabric::send(NodeId to, MessageType type, std::span<const std::byte> head,
                     std::span<const std::byte> payload) {
  AMASIA_CHECK(to.value < node_count_, "no such node");
  AMASIA_CHECK(type >= kFirstFreeType && type < kTypeCount, "message types lie in [0x100, 0x400)");
  AMASIA_CHECK(head.size() + payload.size() <= kMaxFrameBody, "a body is at most 4 MiB");
  // A thread of the program may give bytes in managed memory, which must not be read under the
  // lock (U1): they are copied first. The runtime's own threads give runtime memory.
  const bool copy_first = !os::is_in_runtime_section();
  bool sent = false;
  os::in_runtime_section([&] {
    OutgoingBody body{head, payload, {}};
    if (copy_first) {
      body.copy.reserve(body.size());
      body.copy.insert(body.copy.end(), head.begin(), head.end());
      body.copy.insert(body.copy.end(), payload.begin(), payload.end());
      body.head = body.copy;
      body.payload = {};
    }
    sent = send_body(to, type, std::move(body));
  });
  return sent;
}

bool UcxFabric::send_body(NodeId to, MessageType type, OutgoingBody body) {
  const std::size_t size = body.size();
  if (to == self_) {
    send_to_self(type, body);
  } else {
    os::MutexLock lock(mutex_);
    Channel& channel = peers_[to.value]->channel;
    if (!channel.is_open()) return false;
    const FrameHeader header = channel.stamp(type, static_cast<std::uint32_t>(size));
    if (transmit(to, header, std::move(body)) == Transmission::kFailed) return false;
  }
  dispatcher_.count_out(size);
  return true;
}

Transmission UcxFabric::transmit(NodeId to, const FrameHeader& header, OutgoingBody body) {
  const std::size_t size = body.size();
  dispatcher_.count_queued(size);
  const Transmission result = port_->transmit(to, header, std::move(body));
  if (result != Transmission::kQueued) dispatcher_.count_unqueued(size);
  // What is queued is moved on by whoever polls.
  if (result == Transmission::kQueued) wake();
  return result;
}

void UcxFabric::send_to_self(MessageType type, const OutgoingBody& body) {
  Arrival arrival;
  arrival.from = self_;
  arrival.type = type;
  arrival.own.resize((body.size() + 7) / 8);
  const auto bytes = std::as_writable_bytes(std::span(arrival.own)).first(body.size());
  if (!body.head.empty()) std::memcpy(bytes.data(), body.head.data(), body.head.size());
  if (!body.payload.empty()) {
    std::memcpy(bytes.data() + body.head.size(), body.payload.data(), body.payload.size());
  }
  arrival.body = bytes;  // moving the vector leaves its memory where it is
  os::MutexLock lock(mutex_);
  inbox_.push_back(std::move(arrival));
  wake();
}

void UcxFabric::wake() {
  if (!armed_) return;
  armed_ = false;
  port_->signal();
}

// ---- receiving

bool UcxFabric::on_frame(std::span<const std::byte> header_bytes, std::span<const std::byte> body,
                         void* held) {
  const auto header = read_header(header_bytes);
  const std::uint32_t from =
      header.has_value() ? claimed_sender(*header, self_, node_count_) : node_count_;
  if (from >= peers_.size()) {
    dispatcher_.count_refused();
    return false;
  }
  Peer& peer = *peers_[from];
  const bool kept = judge(peer, *header, body, held);
  judge_early(peer);
  return kept;
}

// Returns whether `held` was kept.
bool UcxFabric::judge(Peer& peer, const FrameHeader& header, std::span<const std::byte> body,
                      void* held) {
  const NodeId from(header.from);
  const Judgement judgement = peer.channel.judge(header, body);
  if (judgement.send_proof) send_proof(from, peer);
  switch (judgement.verdict) {
    case Verdict::kDeliver:
      inbox_.push_back({ArrivalKind::kMessage, from, header.type, body, held});
      return held != nullptr;
    case Verdict::kHold:
      dispatcher_.count_reordered();
      if (!peer.early.try_emplace(header.sequence, EarlyFrame{header, body, held}).second) {
        lose(from, "sends a frame twice");
        return false;
      }
      return held != nullptr;
    case Verdict::kBreak:
      lose(from, judgement.reason);
      return false;
    case Verdict::kRefuse:
      dispatcher_.count_refused();
      base::log_line(base::LogLevel::kDebug, "refused a frame: node {} {}", from.value,
                     judgement.reason);
      return false;
    case Verdict::kLeave:
      transmit(from, peer.channel.stamp(kFarewellType, 0), {});
      return false;
    case Verdict::kFarewell:
      peer.said_farewell = true;
      return false;
    case Verdict::kAccept:
      return false;
  }
  return false;
}

void UcxFabric::judge_early(Peer& peer) {
  const auto is_there = [&] {
    return peer.channel.is_open() || peer.channel.state() == ChannelState::kLeft;
  };
  while (!peer.early.empty() && is_there() &&
         peer.early.begin()->first == peer.channel.next_sequence()) {
    const EarlyFrame frame = peer.early.begin()->second;
    peer.early.erase(peer.early.begin());
    const bool kept = judge(peer, frame.header, frame.body, frame.held);
    if (!kept && frame.held != nullptr) port_->release(frame.held);
  }
}

void UcxFabric::send_proof(NodeId to, Peer& peer) {
  const ProofBody proof = peer.channel.proof_body();
  transmit(to, peer.channel.proof_header(), {bytes_of(proof), {}, {}});
}

void UcxFabric::on_failure(NodeId peer, const char* why) {
  // What it sent before may still be on its way up, even its goodbye.
  peers_[peer.value]->failed = true;
  peers_[peer.value]->failure = fmt::format("cannot be reached any more ({})", why);
  any_failed_ = true;
}

// Once nothing is left to take in.
void UcxFabric::lose_failed() {
  any_failed_ = false;
  for (std::uint16_t node = 0; node < peers_.size(); ++node) {
    if (peers_[node] == nullptr || peers_[node]->failure.empty()) continue;
    const std::string failure = std::exchange(peers_[node]->failure, {});
    if (peers_[node]->channel.state() != ChannelState::kLeft) lose(NodeId(node), failure);
  }
}

void UcxFabric::lose(NodeId node, std::string_view why) {
  Peer& peer = *peers_[node.value];
  peer.channel.close();
  for (const auto& [sequence, frame] : peer.early) {
    if (frame.held != nullptr) port_->release(frame.held);
  }
  peer.early.clear();
  // While connecting it is kept, so that a peer with another secret learns that from our proof.
  if (connected_) port_->drop(node);
  if (std::exchange(peer.reported, true)) return;
  if (!connected_ && failure_.empty()) failure_ = fmt::format("node {} {}", node.value, why);
  Arrival arrival;
  arrival.kind = ArrivalKind::kLost;
  arrival.from = node;
  arrival.own.resize((why.size() + 7) / 8);
  std::memcpy(arrival.own.data(), why.data(), why.size());
  arrival.body = std::as_bytes(std::span(arrival.own)).first(why.size());
  inbox_.push_back(std::move(arrival));
  wake();
}

// ---- polling

std::uint32_t UcxFabric::poll(std::uint32_t budget) {
  std::uint32_t dispatched = 0;
  os::in_runtime_section([&] { dispatched = poll_here(budget); });
  return dispatched;
}

std::uint32_t UcxFabric::poll_here(std::uint32_t budget) {
  if (!polling_.try_lock()) return 0;
  take_batch(budget);
  const auto dispatched = static_cast<std::uint32_t>(batch_.size());
  bool any_held = false;
  for (const Arrival& arrival : batch_) {
    dispatch(arrival);
    any_held = any_held || arrival.held != nullptr;
  }
  if (any_held) {
    os::MutexLock lock(mutex_);
    for (const Arrival& arrival : batch_) {
      if (arrival.held != nullptr) port_->release(arrival.held);
    }
  }
  batch_.clear();
  polling_.unlock();
  return dispatched;
}

void UcxFabric::take_batch(std::uint32_t budget) {
  os::MutexLock lock(mutex_);
  for (int step = 0; step < kProgressSteps && inbox_.size() <= budget; ++step) {
    if (!take_step()) break;
  }
  while (!inbox_.empty() && batch_.size() < budget) {
    batch_.push_back(std::move(inbox_.front()));
    inbox_.pop_front();
  }
}

// Whether anything happened.
bool UcxFabric::take_step() {
  if (port_->progress()) return true;
  if (!any_failed_) return false;
  lose_failed();
  return true;
}

void UcxFabric::dispatch(const Arrival& arrival) {
  if (arrival.kind == ArrivalKind::kLost) {
    dispatcher_.report_lost(
        arrival.from, {reinterpret_cast<const char*>(arrival.body.data()), arrival.body.size()});
    return;
  }
  if (dispatcher_.takes(arrival.type)) {
    dispatcher_.deliver({arrival.from, arrival.type, arrival.body});
    return;
  }
  // Asked only here, as messages may arrive before this node has set its handlers.
  AMASIA_CHECK(arrival.from != self_, "this node sent itself a message that nobody takes");
  os::MutexLock lock(mutex_);
  lose(arrival.from,
       fmt::format("sends a message of type {:#x}, which nobody takes", arrival.type));
}

bool UcxFabric::arm() {
  bool armed = false;
  os::in_runtime_section([&] {
    os::MutexLock lock(mutex_);
    armed = inbox_.empty() && !any_failed_ && port_->arm();
    armed_ = armed;
  });
  return armed;
}

// ---- leaving

UcxFabric::~UcxFabric() {
  os::in_runtime_section([&] {
    os::MutexLock lock(mutex_);
    if (port_ != nullptr) leave();
    port_.reset();
  });
}

// A connection that this node ends takes with it what the peer has not taken in yet.
void UcxFabric::await_farewells(std::uint64_t staying) {
  const Nanos deadline = os::monotonic_now() + kLeaveTimeout;
  for (std::size_t node = 0; node < peers_.size();) {
    if ((staying >> node & 1) == 0 || !peers_[node]->may_answer()) {
      ++node;
      continue;
    }
    const Nanos left = deadline - os::monotonic_now();
    if (left <= 0) return;
    const bool moved = take_step();
    drop_inbox();
    if (!moved && peers_[node]->may_answer() && port_->arm()) {
      os::wait_readable(&descriptor_, 1, left);
    }
  }
}

void UcxFabric::drop_inbox() {
  for (const Arrival& arrival : inbox_) {
    if (arrival.held != nullptr) port_->release(arrival.held);
  }
  inbox_.clear();
}

void UcxFabric::leave() {
  std::uint64_t staying = 0;  // a bit for each peer that will say farewell
  for (std::uint16_t node = 0; node < peers_.size(); ++node) {
    if (peers_[node] == nullptr || !peers_[node]->channel.is_open()) continue;
    transmit(NodeId(node), peers_[node]->channel.stamp(kGoodbyeType, 0), {});
    staying |= std::uint64_t{1} << node;
  }
  await_farewells(staying);
  drop_inbox();
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    for (const auto& [sequence, frame] : peer->early) {
      if (frame.held != nullptr) port_->release(frame.held);
    }
    peer->early.clear();
    peer->channel.close();  // what still comes is refused, not kept
  }
  port_->close(kLeaveTimeout);
}

}  // namespace

Result<std::unique_ptr<Fabric>> connect_ucx(Bootstrap& bootstrap, const UcxSettings& settings) {
  auto fabric = std::make_unique<UcxFabric>(bootstrap.self(), bootstrap.node_count());
  const auto opened = fabric->open(bootstrap, settings);
  if (!opened.ok()) return opened.error();
  return std::unique_ptr<Fabric>(std::move(fabric));
}

}  // namespace amasia::fabric
