// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "fabric/dispatcher.hpp"
#include "fabric/parcel.hpp"

namespace amasia::fabric {
namespace {

// splitmix64: the same numbers from the same seed everywhere, unlike the library's distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // In [0, bound]; the bias of the remainder does not matter here.
  Nanos up_to(Nanos bound) {
    return static_cast<Nanos>(next() % (static_cast<std::uint64_t>(bound) + 1));
  }

 private:
  std::uint64_t state_;
};

// When a parcel is due, and its place among those due at the same time.
using Due = std::pair<Nanos, std::uint64_t>;

class Network;

class Endpoint final : public Fabric {
 public:
  Endpoint(Network& network, NodeId self) : network_(network), self_(self) {}

  NodeId self() const override { return self_; }
  std::uint32_t node_count() const override;
  bool send(NodeId to, MessageType type, std::span<const std::byte> head,
            std::span<const std::byte> payload) override;
  std::uint32_t poll(std::uint32_t budget) override;
  bool arm() override;
  int wait_descriptor() const override { return -1; }
  void set_handler(MessageType first, MessageType last, Handler* handler) override {
    dispatcher_.set_handler(first, last, handler);
  }
  void set_peer_lost_handler(PeerLostHandler* handler) override {
    dispatcher_.set_peer_lost_handler(handler);
  }
  Statistics statistics() const override { return dispatcher_.statistics(); }

 private:
  friend class Network;
  void dispatch(const Parcel& parcel);

  Network& network_;
  const NodeId self_;
  Dispatcher dispatcher_;
  std::map<Due, Parcel> arriving_;
  std::uint64_t known_lost_ = 0;  // a bit for each node whose loss was told
  bool lost_ = false;
  bool polling_ = false;
};

class Network final : public SimNetwork {
 public:
  explicit Network(const SimSettings& settings) : settings_(settings), random_(settings.seed) {
    AMASIA_CHECK(settings.node_count >= 1 && settings.node_count <= base::kMaxNodes,
                 "a job has 1 to 64 nodes");
    AMASIA_CHECK(settings.latency_min >= 0 && settings.latency_min <= settings.latency_max &&
                     settings.bytes_per_ns > 0,
                 "latencies form a range and bandwidth is positive");
    for (std::uint32_t node = 0; node < settings.node_count; ++node) {
      endpoints_.push_back(
          std::make_unique<Endpoint>(*this, NodeId(static_cast<std::uint16_t>(node))));
    }
    last_due_.resize(std::size_t{settings.node_count} * settings.node_count, 0);
  }

  Fabric& fabric(NodeId node) override { return endpoint(node); }
  Nanos now() const override { return now_; }
  std::optional<Nanos> next_due() const override {
    const Endpoint* const first = earliest();
    if (first == nullptr) return std::nullopt;
    return first->arriving_.begin()->first.first;
  }
  void advance_to(Nanos time) override {
    AMASIA_CHECK(time >= now_, "time does not run backwards");
    now_ = time;
  }
  std::uint64_t run(std::uint64_t message_count_max) override;
  void lose(NodeId node) override;

  Endpoint& endpoint(NodeId node) {
    AMASIA_CHECK(node.value < endpoints_.size(), "no such node");
    return *endpoints_[node.value];
  }
  void transmit(NodeId to, Parcel parcel);

 private:
  Endpoint* earliest() const;
  Nanos transfer_time(NodeId from, NodeId to, std::size_t length);
  Nanos& last_due(NodeId from, NodeId to) {
    return last_due_[std::size_t{from.value} * endpoints_.size() + to.value];
  }

  const SimSettings settings_;
  Random random_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<Nanos> last_due_;  // of each pair, which is what keeps its messages in order
  Nanos now_ = 0;
  std::uint64_t parcel_count_ = 0;
  friend class Endpoint;
};

Endpoint* Network::earliest() const {
  Endpoint* first = nullptr;
  for (const auto& endpoint : endpoints_) {
    if (endpoint->lost_ || endpoint->arriving_.empty()) continue;
    if (first == nullptr || endpoint->arriving_.begin()->first < first->arriving_.begin()->first) {
      first = endpoint.get();
    }
  }
  return first;
}

Nanos Network::transfer_time(NodeId from, NodeId to, std::size_t length) {
  if (from == to) return 0;
  const Nanos latency =
      settings_.latency_min + random_.up_to(settings_.latency_max - settings_.latency_min);
  const double slowness = std::max(settings_.slowness[from.value], settings_.slowness[to.value]);
  const double transfer = static_cast<double>(length) / settings_.bytes_per_ns;
  Nanos time = static_cast<Nanos>((static_cast<double>(latency) + transfer) * slowness);
  if (settings_.spike_every != 0 && random_.next() % settings_.spike_every == 0) {
    time += settings_.spike;
  }
  return time;
}

void Network::transmit(NodeId to, Parcel parcel) {
  Nanos& last = last_due(parcel.from, to);
  last = std::max(last, now_ + transfer_time(parcel.from, to, parcel.length));
  endpoint(to).arriving_.emplace(Due{last, parcel_count_++}, std::move(parcel));
}

std::uint64_t Network::run(std::uint64_t message_count_max) {
  std::uint64_t count = 0;
  while (count < message_count_max) {
    Endpoint* const next = earliest();
    if (next == nullptr) break;
    now_ = std::max(now_, next->arriving_.begin()->first.first);
    AMASIA_CHECK(next->poll(1) == 1, "what is due is delivered; run() is not for handlers");
    ++count;
  }
  return count;
}

void Network::lose(NodeId node) {
  Endpoint& gone = endpoint(node);
  if (gone.lost_) return;
  gone.lost_ = true;
  gone.arriving_.clear();
  for (const auto& other : endpoints_) {
    if (other.get() == &gone) continue;
    // Of what is on its way to a peer, a prefix arrives: what was in its buffers already.
    const Nanos notice = now_ + random_.up_to(settings_.loss_notice_max);
    const Nanos cut = now_ + random_.up_to(notice - now_);
    std::erase_if(other->arriving_, [&](const auto& entry) {
      return entry.second.from == node && entry.first.first > cut;
    });
    other->arriving_.emplace(Due{notice, parcel_count_++}, Parcel{node, 0, {}, 0});
  }
}

std::uint32_t Endpoint::node_count() const {
  return static_cast<std::uint32_t>(network_.endpoints_.size());
}

bool Endpoint::send(NodeId to, MessageType type, std::span<const std::byte> head,
                    std::span<const std::byte> payload) {
  check_message(node_count(), to, type, head.size() + payload.size());
  if (lost_ || (known_lost_ >> to.value & 1) != 0) return false;
  Parcel parcel = pack(self_, type, head, payload);
  dispatcher_.count_out(parcel.length);
  // Nobody knows yet that the receiver is gone: its messages vanish.
  if (!network_.endpoint(to).lost_) network_.transmit(to, std::move(parcel));
  return true;
}

std::uint32_t Endpoint::poll(std::uint32_t budget) {
  if (polling_ || lost_) return 0;
  polling_ = true;
  std::uint32_t dispatched = 0;
  while (dispatched < budget && !arriving_.empty() &&
         arriving_.begin()->first.first <= network_.now_) {
    const Parcel parcel = std::move(arriving_.extract(arriving_.begin()).mapped());
    dispatch(parcel);
    ++dispatched;
  }
  polling_ = false;
  return dispatched;
}

void Endpoint::dispatch(const Parcel& parcel) {
  if (parcel.type == 0) {
    known_lost_ |= std::uint64_t{1} << parcel.from.value;
    dispatcher_.report_lost(parcel.from, "was lost in the simulation");
    return;
  }
  deliver(dispatcher_, parcel);
}

bool Endpoint::arm() {
  return lost_ || arriving_.empty() || arriving_.begin()->first.first > network_.now_;
}

}  // namespace

std::unique_ptr<SimNetwork> make_sim(const SimSettings& settings) {
  return std::make_unique<Network>(settings);
}

}  // namespace amasia::fabric
