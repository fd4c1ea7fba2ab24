// SPDX-License-Identifier: Apache-2.0
// A client's end of its connection to the daemon: handshake, rings, packets. No threads of its own.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/client/locate.hpp"
#include "devices/ids.hpp"
#include "devices/wire/packets.hpp"
#include "devices/wire/ring.hpp"

namespace amasia::devices {

struct LinkSettings {
  ConnectSettings connect;
  std::string program;         // for people
  std::uint32_t weight_milli = 1000;
  Role role = Role::kClient;
  Nanos answer_limit = 10 * base::kSecond;
};

class Link {
 public:
  // Connects, announces the devices (at most kMaxDevices) and waits for the welcome. The error's
  // code is that of connect_to_daemon, EPROTONOSUPPORT (another version, or
  // build), EACCES (another user's daemon), ETIMEDOUT, ECONNRESET (the daemon ended meanwhile).
  static Result<std::unique_ptr<Link>> open(const LinkSettings& settings,
                                            const std::vector<DeviceDescription>& devices);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const WelcomePacket& welcome() const { return welcome_; }

  // One thread at a time sends. False: no room for all of them now; nothing was sent. Where they
  // are less urgent than what it waits for, the daemon sleeps on.
  bool send(std::span<const Record> records, Urgency urgency = Urgency::kOwn);
  // One thread at a time, another one than the senders' if need be.
  RingState receive(Record* record) { return incoming_->pop(record); }
  bool nothing_received() const { return incoming_->empty(); }

  // Sleeping: the thread that calls wait() sleeps; others may look at the ring for it meanwhile,
  // and say so with attend(), which spares the daemon to wake it.
  bool may_sleep() { return incoming_->may_sleep(); }
  void attend() { incoming_->wake(); }
  // Until the daemon has sent a record or a packet, has ended, or `interrupt` is raised, or so long
  // (-1: for ever; ns).
  // Bits: kRecords, kPackets (or end), kInterrupted.
  static constexpr unsigned kRecords = 1, kPackets = 2, kInterrupted = 4;
  unsigned wait(const os::Wakeup& interrupt, Nanos timeout = -1);

  template <typename T>
  Status send_packet(const T& packet, std::span<const int> descriptors = {}) {
    return os::send_packet(socket_.get(), std::as_bytes(std::span(&packet, 1)), descriptors);
  }
  // The next packet; nothing where there is none now. An error means that the daemon has gone.
  struct Received {
    std::vector<std::byte> bytes;
    std::vector<os::Descriptor> descriptors;
    template <typename T>
    bool read(T* packet) const {
      if (bytes.size() != sizeof(T)) return false;
      std::memcpy(packet, bytes.data(), sizeof(T));
      return true;
    }
    PacketKind kind() const {
      PacketHead head;
      if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
      return head.kind;
    }
  };
  Result<std::optional<Received>> receive_packet();
  int socket() const { return socket_.get(); }

 private:
  Link() = default;
  Status shake_hands(const LinkSettings& settings, const std::vector<DeviceDescription>& devices);
  Result<Received> receive_within(Nanos deadline);
  Status take(Received& received);

  os::Descriptor socket_;
  WelcomePacket welcome_;
  Region* region_ = nullptr;
  std::optional<RingProducer> outgoing_;
  std::optional<RingConsumer> incoming_;
  os::Wakeup wakes_daemon_, wakes_me_;
};

}  // namespace amasia::devices
