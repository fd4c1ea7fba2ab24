// SPDX-License-Identifier: Apache-2.0
// The server's part that reads packets and answers them.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "devices/daemon/connection.hpp"
#include "devices/daemon/snapshot.hpp"

namespace amasia::devices {
namespace {

constexpr std::size_t kMaxConnections = 1000;

template <typename T>
bool read(std::span<const std::byte> bytes, T* packet) {
  if (bytes.size() != sizeof(T)) return false;
  std::memcpy(packet, bytes.data(), sizeof(T));
  return true;
}
constexpr const char* kWrongSize = "a packet has not the size of its kind";

}  // namespace

void Server::accept_all() {
  for (;;) {
    auto accepted = os::accept_connection(listening_.get());
    if (!accepted.ok()) return;
    greet(++last_tag_, std::move(accepted).value());
  }
}

void Server::greet(std::uint64_t tag, os::Descriptor socket) {
  auto made = std::make_unique<Connection>();
  made->tag = tag;
  made->client = ClientId(static_cast<std::uint32_t>(tag));
  made->socket = std::move(socket);
  Connection& connection = *made;
  const auto peer = os::peer_of(connection.socket.get());
  if (!peer.ok() || !os::set_nonblocking(connection.socket.get()).ok()) return;
  connection.peer = peer.value();
  const bool allowed =
      connection.peer.uid == ::geteuid() ||
      (settings_.group.has_value() &&
       os::peer_is_in_group(connection.socket.get(), *settings_.group));
  if (!allowed) {
    base::log_line(base::LogLevel::kWarning, "process {} of user {} is refused",
                   connection.peer.pid, connection.peer.uid);
    refuse(connection, EACCES,
           fmt::format("this daemon serves user {}, not user {}", ::geteuid(),
                       connection.peer.uid));
    return;
  }
  if (connections_.size() >= kMaxConnections) {
    refuse(connection, EAGAIN, fmt::format("there are {} programs already", kMaxConnections));
    return;
  }
  if (!poll_.add(connection.socket.get(), tag).ok()) return;
  connections_.emplace(tag, std::move(made));
}

template <typename T>
bool Server::send(Connection& connection, const T& packet, std::span<const int> descriptors) {
  const Status sent = os::send_packet(connection.socket.get(),
                                      std::as_bytes(std::span(&packet, 1)), descriptors);
  if (sent.ok()) return true;
  // One that was killed meanwhile has done nothing wrong.
  const bool gone = sent.error().code == EPIPE || sent.error().code == ECONNRESET;
  disconnect(connection.tag, gone ? "" : "it does not read its packets");
  return false;
}

void Server::refuse(Connection& connection, int code, const std::string& sentence) {
  RefusedPacket packet;
  packet.code = static_cast<std::uint32_t>(code);
  set_text(packet.sentence, sentence);
  // It is disconnected in any case.
  static_cast<void>(
      os::send_packet(connection.socket.get(), std::as_bytes(std::span(&packet, 1)), {}));
}

void Server::read_packets(std::uint64_t tag) {
  Connection& connection = *connections_.at(tag);
  alignas(8) std::byte buffer[kMaxPacket];
  while (connection.phase != Connection::Phase::kClosed) {
    auto packet = os::receive_packet(connection.socket.get(), buffer);
    if (!packet.ok()) {
      if (packet.error().code != EAGAIN) disconnect(tag, "");
      return;
    }
    if (packet.value().size == 0) {  // it has ended, or closed
      read_rest(connection);
      return disconnect(tag, "");
    }
    if (packet.value().size > sizeof buffer) return disconnect(tag, kWrongSize);
    auto complaint = handle(connection, std::span(buffer, packet.value().size),
                            packet.value().descriptors);
    if (complaint.has_value()) {
      refuse(connection, EPROTO, *complaint);
      return disconnect(tag, *complaint);
    }
  }
}

std::optional<std::string> Server::handle(Connection& connection,
                                          std::span<const std::byte> bytes,
                                          std::vector<os::Descriptor>& descriptors) {
  PacketHead head;
  if (bytes.size() < sizeof head) return kWrongSize;
  std::memcpy(&head, bytes.data(), sizeof head);
  using Phase = Connection::Phase;
  if (connection.phase == Phase::kNew) {
    if (head.kind != PacketKind::kHello) return "its first packet is not a hello";
    return handle_hello(connection, bytes);
  }
  if (connection.phase == Phase::kAnnouncing) {
    if (head.kind != PacketKind::kDevice) return "a packet came where devices had to";
    return handle_device(connection, bytes);
  }
  switch (head.kind) {
    case PacketKind::kOpenShared:
      return handle_open(connection, bytes, descriptors);
    case PacketKind::kCloseShared: {
      CloseSharedPacket packet;
      if (!read(bytes, &packet)) return kWrongSize;
      const std::string name = text_of(packet.name);
      if (segments_.close(connection.client, name)) segment_memory_.erase(name);
      return std::nullopt;
    }
    case PacketKind::kPublishTask:
    case PacketKind::kTaskEnded:
    case PacketKind::kWatchTask:
      return handle_task(connection, head.kind, bytes);
    case PacketKind::kQuery:
      handle_query(connection, head.request);
      return std::nullopt;
    default:
      return fmt::format("a packet of kind {}", static_cast<unsigned>(head.kind));
  }
}

std::optional<std::string> Server::handle_hello(Connection& connection,
                                                std::span<const std::byte> bytes) {
  HelloPacket& hello = connection.hello;
  constexpr std::size_t kFixed = offsetof(HelloPacket, role);  // the same in all versions
  if (bytes.size() < kFixed) return kWrongSize;
  std::memcpy(&hello, bytes.data(), std::min(bytes.size(), sizeof hello));
  if (hello.magic != kProtocolMagic) return "its first packet is not a hello";
  if (hello.version != kProtocolVersion || bytes.size() != sizeof hello) {
    const std::string sentence =
        fmt::format("the program's library speaks version {} of the protocol, the daemon "
                    "(process {}) version {}: end it and start one of the library's version",
                    hello.version, ::getpid(), kProtocolVersion);
    refuse(connection, EPROTONOSUPPORT, sentence);
    disconnect(connection.tag, sentence);
    return std::nullopt;
  }
  if (hello.devices > kMaxDevices || hello.weight_milli == 0 || hello.weight_milli > 1'000'000) {
    return fmt::format("it announces {} devices and a weight of {}/1000 (allowed: at most {}, "
                       "1 … 1000000)",
                       hello.devices, hello.weight_milli, kMaxDevices);
  }
  connection.phase = Connection::Phase::kAnnouncing;
  if (hello.devices == 0 && !welcome(connection)) return "it cannot be given memory";
  return std::nullopt;
}

std::optional<std::string> Server::handle_device(Connection& connection,
                                                 std::span<const std::byte> bytes) {
  DevicePacket packet;
  if (!read(bytes, &packet)) return kWrongSize;
  auto description = description_of(packet);
  if (!description.ok()) return description.error().message;
  connection.devices.push_back(std::move(description).value());
  if (connection.devices.size() < connection.hello.devices) return std::nullopt;
  if (!welcome(connection)) return "it cannot be given memory";
  return std::nullopt;
}

bool Server::welcome(Connection& connection) {
  auto memory = os::make_sealed_memory("amasia-devices", sizeof(Region));
  auto doorbell = os::Wakeup::make();
  auto wakeup = os::RemoteWakeup::make();
  std::uintptr_t address = 0;
  if (!memory.ok() || !doorbell.ok() || !wakeup.ok() ||
      !poll_.add_edges(doorbell.value().descriptor(), kDoorbellTag).ok() ||
      os::map_shared(memory.value().get(), 0, sizeof(Region), os::Placement::kAnywhere,
                     &address) != 0) {
    return false;
  }
  connection.memory = std::move(memory).value();
  connection.doorbell = std::move(doorbell).value();
  connection.wakes_client = std::move(wakeup).value();
  connection.region = new (reinterpret_cast<void*>(address)) Region;
  connection.incoming.emplace(&connection.region->to_daemon);
  connection.outgoing.emplace(&connection.region->to_client);

  Joined joined;
  joined.client = connection.client;
  joined.process = connection.peer.pid;
  joined.program = text_of(connection.hello.program);
  joined.weight = connection.hello.weight_milli / 1000.0;
  joined.devices = std::move(connection.devices);
  state_.step(joined, os::monotonic_now(), effects_);
  connection.phase = Connection::Phase::kServed;
  if (sink_ != nullptr) {
    sink_->client_joined(connection.client, state_.clients().at(connection.client));
  }
  WelcomePacket packet;
  packet.client = connection.client.value;
  packet.daemon_process = ::getpid();
  packet.run_most = state_.policy().run_most();
  packet.traces = sink_ != nullptr ? 1 : 0;
  set_text(packet.policy, state_.policy().name());
  const int handed[] = {connection.memory.get(), connection.doorbell.descriptor(),
                        connection.wakes_client.waiting_end()};
  const bool sent = send(connection, packet, handed);
  connection.memory.close();  // mapped here, and there
  if (sent && state_.draining()) {
    connection.waiting.push_back(short_record(RecordKind::kDraining, 0));
  }
  return true;
}

std::optional<std::string> Server::handle_open(Connection& connection,
                                               std::span<const std::byte> bytes,
                                               std::vector<os::Descriptor>& descriptors) {
  OpenSharedPacket packet;
  if (!read(bytes, &packet)) return kWrongSize;
  if (packet.create != 0) {
    if (descriptors.size() != 1) return "a shared segment came without its memory";
    const auto size = os::sealed_memory_size(descriptors[0].get());
    if (!size.ok() || size.value() < packet.size) {
      return "a shared segment's memory is not sealed, or too small";
    }
  }
  const std::string name = text_of(packet.name);
  if (packet.replace != 0 && packet.create != 0) {
    segments_.forget(name);
    segment_memory_.erase(name);
  }
  const auto answer = segments_.open(connection.client, name, packet.size, packet.create != 0);
  if (answer.takes_memory) segment_memory_[name] = std::move(descriptors[0]);
  SharedPacket reply;
  reply.head.request = packet.head.request;
  reply.code = static_cast<std::uint32_t>(answer.code);
  reply.users = answer.users;
  reply.size = answer.size;
  const int memory = answer.code == 0 ? segment_memory_.at(name).get() : -1;
  send(connection, reply, std::span(&memory, answer.code == 0 ? 1 : 0));
  return std::nullopt;
}

std::optional<std::string> Server::handle_task(Connection& connection, PacketKind kind,
                                               std::span<const std::byte> bytes) {
  TaskPacket packet;
  if (!read(bytes, &packet)) return kWrongSize;
  if (kind == PacketKind::kPublishTask) {
    if (!shared_tasks_.publish(connection.client, connection.peer.pid, packet.task)) {
      return "it publishes more tasks than are allowed";
    }
  } else if (kind == PacketKind::kTaskEnded) {
    answer(shared_tasks_.end(connection.client, packet.task, packet.error));
  } else {
    std::vector<SharedTasks::Answer> answers;
    if (!shared_tasks_.watch(connection.client, packet, &answers)) {
      return "it watches more tasks than are allowed";
    }
    answer(answers);
  }
  return std::nullopt;
}

void Server::answer(const std::vector<SharedTasks::Answer>& answers) {
  for (const SharedTasks::Answer& one : answers) {
    Connection* connection = connection_of(one.client);
    if (connection == nullptr || connection->phase != Connection::Phase::kServed) continue;
    send(*connection, one.packet);
  }
}

void Server::handle_query(Connection& connection, std::uint32_t request) {
  for (auto& [tag, one] : connections_) read_rest(*one);  // what nobody was woken for counts
  const std::string text = snapshot_of(state_, os::monotonic_now(), ::getpid());
  for (std::size_t at = 0; at < text.size();) {
    AnswerPacket packet;
    packet.head.request = request;
    const std::size_t length = std::min(text.size() - at, sizeof packet.text);
    text.copy(packet.text, length, at);
    at += length;
    packet.length = static_cast<std::uint32_t>(length);
    packet.last = at == text.size() ? 1 : 0;
    if (!send(connection, packet)) return;
  }
}

}  // namespace amasia::devices
