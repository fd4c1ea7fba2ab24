// SPDX-License-Identifier: Apache-2.0
#include "fabric/slow_link.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fabric/dispatcher.hpp"
#include "fabric/frame.hpp"
#include "fabric/link_timing.hpp"
#include "fabric/parcel.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
// Before each body. Handlers find theirs aligned as before.
using Stamp = Nanos;
static_assert(sizeof(Stamp) == kStampRoom);
// A time of sending that lies further back is of another host's clock.
constexpr Nanos kOldest = base::kSecond;

// field       | written by                | read by     | guarded by
// under_way_  | poll                      | poll        | polling_
// links_      | poll                      | poll        | polling_
// alarm_      | poll                      | –           | polling_
// next_due_   | poll                      | arm         | atomic
//
// Invariants: W1 once poll() has returned, alarm_ is set for next_due_: who armed meanwhile hears
// of it. W2 a message is handed on after all that came from its sender before. W3 polling_ is
// taken in runtime sections only, as the back ends take theirs.
class SlowLink final : public Fabric, private Handler, private PeerLostHandler {
 public:
  SlowLink(Fabric& inner, const base::LinkSpeed& speed)
      : inner_(inner), links_(inner.node_count(), LinkTiming(speed)) {
    inner_.set_peer_lost_handler(this);
  }
  Status open(std::unique_ptr<Fabric> owned);

  NodeId self() const override { return inner_.self(); }
  std::uint32_t node_count() const override { return inner_.node_count(); }
  bool send(NodeId to, MessageType type, std::span<const std::byte> head,
            std::span<const std::byte> payload) override;
  std::uint32_t poll(std::uint32_t budget) override;
  bool arm() override;
  int wait_descriptor() const override { return descriptor_.get(); }
  void set_handler(MessageType first, MessageType last, Handler* handler) override {
    dispatcher_.set_handler(first, last, handler);
    inner_.set_handler(first, last, handler == nullptr ? nullptr : this);
  }
  void set_peer_lost_handler(PeerLostHandler* handler) override {
    dispatcher_.set_peer_lost_handler(handler);
  }
  Statistics statistics() const override;

 private:
  using Arrival = std::pair<Nanos, std::uint64_t>;  // due, then in the order of arrival

  void on_message(const Incoming& message) override;
  void on_peer_lost(NodeId peer, std::string_view why) override;
  void put(Nanos due, Parcel parcel) {
    under_way_.emplace(Arrival{due, arrivals_++}, std::move(parcel));
  }
  std::uint32_t hand_on(std::uint32_t budget);
  void set_alarm();

  std::unique_ptr<Fabric> owned_;
  Fabric& inner_;
  os::Alarm alarm_;
  os::Descriptor descriptor_;  // inner_'s and alarm_'s
  Dispatcher dispatcher_;
  os::Mutex polling_;
  std::vector<LinkTiming> links_;  // by sender
  std::map<Arrival, Parcel> under_way_;
  std::uint64_t arrivals_ = 0;
  std::uint32_t passed_ = 0;  // messages to oneself in this poll()
  // Release by poll, acquire by arm.
  std::atomic<Nanos> next_due_{kNever};
};

Status SlowLink::open(std::unique_ptr<Fabric> owned) {
  owned_ = std::move(owned);
  auto alarm = os::Alarm::make();
  if (!alarm.ok()) return alarm.error();
  alarm_ = std::move(alarm).value();
  auto joined = os::join_descriptors(inner_.wait_descriptor(), alarm_.descriptor());
  if (!joined.ok()) return joined.error();
  descriptor_ = std::move(joined).value();
  return base::ok();
}

bool SlowLink::send(NodeId to, MessageType type, std::span<const std::byte> head,
                    std::span<const std::byte> payload) {
  AMASIA_CHECK(head.size() + payload.size() <= kMaxBody, "a body is at most 4 MiB");
  if (to == self()) return inner_.send(to, type, head, payload);
  constexpr std::size_t kUsualHead = 512;
  std::array<std::byte, kUsualHead> usual;
  std::vector<std::byte> large;
  std::span<std::byte> stamped(usual);
  if (head.size() + sizeof(Stamp) > usual.size()) {
    large.resize(head.size() + sizeof(Stamp));
    stamped = large;
  }
  stamped = stamped.first(head.size() + sizeof(Stamp));
  if (!head.empty()) std::memcpy(stamped.data() + sizeof(Stamp), head.data(), head.size());
  // Last: reading the head may wait for a page.
  const Stamp now = os::monotonic_now();
  std::memcpy(stamped.data(), &now, sizeof now);
  if (!inner_.send(to, type, stamped, payload)) return false;
  dispatcher_.count_out(head.size() + payload.size());
  return true;
}

void SlowLink::on_message(const Incoming& message) {
  if (message.from == self()) {
    ++passed_;
    return dispatcher_.deliver(message);
  }
  AMASIA_CHECK(message.body.size() >= sizeof(Stamp), "each node stamps what it sends (--link)");
  Stamp sent = 0;
  std::memcpy(&sent, message.body.data(), sizeof sent);
  const Nanos now = os::monotonic_now();
  if (sent > now || sent < now - kOldest) sent = now;
  const auto body = message.body.subspan(sizeof sent);
  put(links_[message.from.value].due(sent, body.size()),
      pack(message.from, message.type, {}, body));
}

void SlowLink::on_peer_lost(NodeId peer, std::string_view why) {
  const Nanos last = links_[peer.value].due(os::monotonic_now(), 0);
  put(last, pack(peer, 0, {}, std::as_bytes(std::span(why))));
}

std::uint32_t SlowLink::poll(std::uint32_t budget) {
  std::uint32_t dispatched = 0;
  os::in_runtime_section([&] {
    if (!polling_.try_lock()) return;
    passed_ = 0;
    inner_.poll(budget);
    dispatched = passed_ + hand_on(budget);
    set_alarm();
    polling_.unlock();
  });
  return dispatched;
}

std::uint32_t SlowLink::hand_on(std::uint32_t budget) {
  std::uint32_t handed = 0;
  if (under_way_.empty()) return handed;
  const Nanos now = os::monotonic_now();
  while (handed < budget && !under_way_.empty() && under_way_.begin()->first.first <= now) {
    const Parcel parcel = std::move(under_way_.begin()->second);
    under_way_.erase(under_way_.begin());
    if (parcel.type == 0) {
      dispatcher_.report_lost(
          parcel.from, {reinterpret_cast<const char*>(parcel.words.data()), parcel.length});
    } else {
      deliver(dispatcher_, parcel);
    }
    ++handed;
  }
  return handed;
}

void SlowLink::set_alarm() {
  const Nanos next = under_way_.empty() ? kNever : under_way_.begin()->first.first;
  if (next == next_due_.load(std::memory_order_relaxed)) return;
  next_due_.store(next, std::memory_order_release);
  if (next == kNever) {
    alarm_.stop();
  } else {
    alarm_.set(next);
  }
}

bool SlowLink::arm() {
  if (next_due_.load(std::memory_order_acquire) <= os::monotonic_now()) return false;
  return inner_.arm();
}

Statistics SlowLink::statistics() const {
  Statistics out = inner_.statistics();
  const Statistics handed_on = dispatcher_.statistics();
  out.bytes_out -= handed_on.messages_out * sizeof(Stamp);
  out.messages_in = handed_on.messages_in;
  out.bytes_in = handed_on.bytes_in;
  return out;
}

Result<std::unique_ptr<Fabric>> make(Fabric& inner, std::unique_ptr<Fabric> owned,
                                     const base::LinkSpeed& speed) {
  auto link = std::make_unique<SlowLink>(inner, speed);
  if (const Status opened = link->open(std::move(owned)); !opened.ok()) return opened.error();
  return std::unique_ptr<Fabric>(std::move(link));
}

}  // namespace

Result<std::unique_ptr<Fabric>> make_slow_link(std::unique_ptr<Fabric> inner,
                                               const base::LinkSpeed& speed) {
  Fabric& fabric = *inner;
  return make(fabric, std::move(inner), speed);
}

Result<std::unique_ptr<Fabric>> make_slow_link(Fabric& inner, const base::LinkSpeed& speed) {
  return make(inner, nullptr, speed);
}

}  // namespace amasia::fabric
