// SPDX-License-Identifier: Apache-2.0
#include "devices/client/link.hpp"

#include <cerrno>

namespace amasia::devices {

Result<std::unique_ptr<Link>> Link::open(const LinkSettings& settings,
                                         const std::vector<DeviceDescription>& devices) {
  AMASIA_CHECK(devices.size() <= kMaxDevices, "more devices than a set can hold");
  // A daemon that ends for want of clients may do so just now: then there is another at once.
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    auto connected = connect_to_daemon(settings.connect);
    if (!connected.ok()) return connected.error();
    std::unique_ptr<Link> link(new Link);
    link->socket_ = std::move(connected).value();
    const Status done = link->shake_hands(settings, devices);
    if (done.ok()) return link;
    if (attempt == kAttempts || done.error().code != ECONNRESET) return done.error();
  }
}

Link::~Link() {
  if (region_ != nullptr) os::unmap(reinterpret_cast<std::uintptr_t>(region_), sizeof(Region));
}

Status Link::shake_hands(const LinkSettings& settings,
                         const std::vector<DeviceDescription>& devices) {
  const Nanos deadline = os::monotonic_now() + settings.answer_limit;
  HelloPacket hello;
  hello.role = settings.role;
  hello.devices = static_cast<std::uint32_t>(devices.size());
  hello.weight_milli = settings.weight_milli;
  set_text(hello.program, settings.program);
  const auto send_waiting = [&](const auto& packet) -> Status {
    for (;;) {
      Status sent = send_packet(packet);
      if (sent.ok() || sent.error().code != EAGAIN) return sent;
      if (os::monotonic_now() > deadline) return Error{"the daemon does not answer", ETIMEDOUT};
      os::wait_readable(nullptr, 0, base::kMillisecond);
    }
  };
  // Where sending fails the daemon may have said why.
  bool sent = send_waiting(hello).ok();
  for (const DeviceDescription& device : devices) {
    sent = sent && send_waiting(packet_of(device)).ok();
  }
  auto answer = receive_within(deadline);
  if (!answer.ok()) return answer.error();
  return take(answer.value());
}

Result<Link::Received> Link::receive_within(Nanos deadline) {
  bool reset = false;
  for (;;) {
    auto received = receive_packet();
    if (received.ok() && received.value().has_value()) return std::move(*received.value());
    if (!received.ok()) {
      // The first ECONNRESET may stand before a packet that says why.
      if (reset || received.error().code != ECONNRESET) {
        return Error{"the daemon ended before it answered", ECONNRESET};
      }
      reset = true;
      continue;
    }
    const Nanos left = deadline - os::monotonic_now();
    if (left <= 0) {
      return Error{"the daemon does not answer; it may be stopped, or not be one", ETIMEDOUT};
    }
    const int socket = socket_.get();
    os::wait_readable(&socket, 1, left);
  }
}

Status Link::take(Received& received) {
  RefusedPacket refused;
  if (received.kind() == PacketKind::kRefused && received.read(&refused)) {
    return Error{text_of(refused.sentence), static_cast<int>(refused.code)};
  }
  if (!received.read(&welcome_) || welcome_.head.kind != PacketKind::kWelcome ||
      welcome_.magic != kProtocolMagic || welcome_.version != kProtocolVersion ||
      received.descriptors.size() != 3) {
    return Error{fmt::format("what listens there is not a daemon of protocol version {}",
                             kProtocolVersion),
                 EPROTONOSUPPORT};
  }
  const auto size = os::sealed_memory_size(received.descriptors[0].get());
  if (!size.ok()) {
    return Error{fmt::format("what the daemon (process {}) shares is no memory of ours: {}",
                             welcome_.daemon_process, size.error().message),
                 EPROTONOSUPPORT};
  }
  if (size.value() != sizeof(Region)) {
    return Error{fmt::format("the daemon (process {}) and the program's library are of different "
                             "builds: their shared memory has {} and {} bytes; end the daemon and "
                             "start the one that was built with the library",
                             welcome_.daemon_process, size.value(), sizeof(Region)),
                 EPROTONOSUPPORT};
  }
  std::uintptr_t address = 0;
  const int reason = os::map_shared(received.descriptors[0].get(), 0, sizeof(Region),
                                    os::Placement::kAnywhere, &address);
  if (reason != 0) return base::errno_error(reason, "cannot map the daemon's shared memory");
  region_ = reinterpret_cast<Region*>(address);
  outgoing_.emplace(&region_->to_daemon);
  incoming_.emplace(&region_->to_client);
  wakes_daemon_ = os::Wakeup(std::move(received.descriptors[1]));
  wakes_me_ = os::Wakeup(std::move(received.descriptors[2]));
  return base::ok();
}

bool Link::send(std::span<const Record> records, Urgency urgency) {
  const std::uint32_t space = outgoing_->space();
  if (space > kRingSlots || space < records.size()) return false;
  for (const Record& record : records) {
    const RingState state = outgoing_->push(record);
    AMASIA_CHECK(state == RingState::kOk, "there was room");
  }
  if (outgoing_->publish(urgency)) wakes_daemon_.raise();
  return true;
}

unsigned Link::wait(const os::Wakeup& interrupt, Nanos timeout) {
  const int descriptors[] = {wakes_me_.descriptor(), socket_.get(), interrupt.descriptor()};
  const unsigned ready = os::wait_readable(descriptors, 3, timeout);
  if ((ready & kRecords) != 0) wakes_me_.clear();
  return ready;
}

Result<std::optional<Link::Received>> Link::receive_packet() {
  alignas(8) std::byte buffer[kMaxPacket];
  auto packet = os::receive_packet(socket_.get(), buffer);
  if (!packet.ok()) {
    if (packet.error().code == EAGAIN) return std::optional<Received>();
    return packet.error();
  }
  if (packet.value().size == 0) return Error{"the daemon has ended", EPIPE};
  if (packet.value().size > sizeof buffer) return Error{"a packet is too large", EPROTO};
  Received received;
  received.bytes.assign(buffer, buffer + packet.value().size);
  received.descriptors = std::move(packet.value().descriptors);
  return std::optional<Received>(std::move(received));
}

}  // namespace amasia::devices
