// SPDX-License-Identifier: Apache-2.0
#include "fabric/loopback.hpp"

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "fabric/dispatcher.hpp"
#include "fabric/parcel.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

class Network;

// field      | written by          | read by          | guarded by
// inbox_     | senders, poll       | poll, arm        | mutex_
// sleeping_  | arm, put, poll      | put              | mutex_
// batch_     | poll                | poll             | polling_
//
// Invariant L1: while sleeping_ is set and inbox_ is not empty, the wakeup is raised.
class Endpoint final : public Fabric {
 public:
  Endpoint(Network& network, NodeId self, os::Wakeup wakeup)
      : network_(network), self_(self), wakeup_(std::move(wakeup)) {}

  NodeId self() const override { return self_; }
  std::uint32_t node_count() const override;
  bool send(NodeId to, MessageType type, std::span<const std::byte> head,
            std::span<const std::byte> payload) override;
  std::uint32_t poll(std::uint32_t budget) override;
  bool arm() override;
  int wait_descriptor() const override { return wakeup_.descriptor(); }
  void set_handler(MessageType first, MessageType last, Handler* handler) override {
    dispatcher_.set_handler(first, last, handler);
  }
  void set_peer_lost_handler(PeerLostHandler* handler) override {
    dispatcher_.set_peer_lost_handler(handler);
  }
  Statistics statistics() const override { return dispatcher_.statistics(); }

  void put(Parcel parcel) AMASIA_EXCLUDES(mutex_);

 private:
  void dispatch(const Parcel& parcel);

  Network& network_;
  const NodeId self_;
  os::Wakeup wakeup_;
  Dispatcher dispatcher_;
  os::Mutex mutex_;
  std::deque<Parcel> inbox_ AMASIA_GUARDED_BY(mutex_);
  bool sleeping_ AMASIA_GUARDED_BY(mutex_) = false;
  os::Mutex polling_;
};

class Network final : public LoopbackNetwork {
 public:
  explicit Network(std::uint32_t node_count) {
    AMASIA_CHECK(node_count >= 1 && node_count <= base::kMaxNodes, "a job has 1 to 64 nodes");
    for (std::uint32_t node = 0; node < node_count; ++node) {
      auto wakeup = os::Wakeup::make();
      AMASIA_CHECK(wakeup.ok(), "a loopback network needs an eventfd for each node");
      endpoints_.push_back(std::make_unique<Endpoint>(*this, NodeId(static_cast<uint16_t>(node)),
                                                      std::move(wakeup).value()));
    }
  }

  Fabric& fabric(NodeId node) override { return endpoint(node); }
  Endpoint& endpoint(NodeId node) {
    AMASIA_CHECK(node.value < endpoints_.size(), "no such node");
    return *endpoints_[node.value];
  }
  std::uint32_t node_count() const { return static_cast<std::uint32_t>(endpoints_.size()); }

  bool is_lost(NodeId node) const {
    // Acquire: pairs with the release in lose(), so that what a sender does after it saw the loss
    // comes after the notices.
    return (lost_.load(std::memory_order_acquire) >> node.value & 1) != 0;
  }

  void lose(NodeId node) override {
    if ((lost_.fetch_or(std::uint64_t{1} << node.value, std::memory_order_release) >> node.value &
         1) != 0) {
      return;
    }
    for (const auto& endpoint : endpoints_) {
      if (endpoint->self() != node) endpoint->put(Parcel{node, 0, {}, 0});
    }
  }

 private:
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::atomic<std::uint64_t> lost_{0};  // a bit for each node; kMaxNodes is 64
};

std::uint32_t Endpoint::node_count() const { return network_.node_count(); }

bool Endpoint::send(NodeId to, MessageType type, std::span<const std::byte> head,
                    std::span<const std::byte> payload) {
  check_message(node_count(), to, type, head.size() + payload.size());
  if (network_.is_lost(to) || network_.is_lost(self_)) return false;
  Parcel parcel = pack(self_, type, head, payload);
  dispatcher_.count_out(parcel.length);
  network_.endpoint(to).put(std::move(parcel));
  return true;
}

void Endpoint::put(Parcel parcel) {
  bool wake = false;
  {
    os::MutexLock lock(mutex_);
    inbox_.push_back(std::move(parcel));
    wake = sleeping_;
    sleeping_ = false;
  }
  if (wake) wakeup_.raise();
}

std::uint32_t Endpoint::poll(std::uint32_t budget) {
  if (!polling_.try_lock()) return 0;
  std::uint32_t dispatched = 0;
  while (dispatched < budget && !network_.is_lost(self_)) {
    Parcel parcel;
    {
      os::MutexLock lock(mutex_);
      if (inbox_.empty()) break;
      parcel = std::move(inbox_.front());
      inbox_.pop_front();
    }
    if (parcel.type != 0 && network_.is_lost(parcel.from)) continue;
    dispatch(parcel);
    ++dispatched;
  }
  polling_.unlock();
  return dispatched;
}

void Endpoint::dispatch(const Parcel& parcel) {
  if (parcel.type == 0) {
    dispatcher_.report_lost(parcel.from, "was lost in the loopback network");
    return;
  }
  deliver(dispatcher_, parcel);
}

bool Endpoint::arm() {
  // A node that is lost hears nothing any more, so there is nothing to poll for.
  const bool deaf = network_.is_lost(self_);
  os::MutexLock lock(mutex_);
  if (!inbox_.empty() && !deaf) return false;
  wakeup_.clear();
  sleeping_ = true;
  return true;
}

}  // namespace

std::unique_ptr<LoopbackNetwork> make_loopback(std::uint32_t node_count) {
  return std::make_unique<Network>(node_count);
}

}  // namespace amasia::fabric
