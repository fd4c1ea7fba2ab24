// SPDX-License-Identifier: Apache-2.0
#include "os/packet_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace amasia::os {
namespace {

constexpr std::size_t kMaxDescriptors = 8;

struct Address {
  sockaddr_un socket{};
  socklen_t length = 0;
};

Result<Address> abstract_address(const std::string& name) {
  Address address;
  if (name.empty() || name.size() + 1 > sizeof address.socket.sun_path) {
    return Error{"'" + name + "' is not the name of a local socket", ENAMETOOLONG};
  }
  address.socket.sun_family = AF_UNIX;
  // The leading zero byte makes it abstract: no file is left behind.
  std::memcpy(address.socket.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<Descriptor> packet_socket() {
  Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made.valid()) return base::errno_error(errno, "cannot make a local socket");
  return made;
}

}  // namespace

Result<Descriptor> listen_abstract(const std::string& name) {
  auto address = abstract_address(name);
  if (!address.ok()) return address.error();
  auto made = packet_socket();
  if (!made.ok()) return made.error();
  const int listener = made.value().get();
  const auto* where = reinterpret_cast<const sockaddr*>(&address.value().socket);
  if (::bind(listener, where, address.value().length) != 0 || ::listen(listener, SOMAXCONN) != 0 ||
      ::fcntl(listener, F_SETFL, O_NONBLOCK) != 0) {
    return base::errno_error(errno, "cannot listen on the local socket '" + name + "'");
  }
  return made;
}

Result<Descriptor> connect_abstract(const std::string& name) {
  auto address = abstract_address(name);
  if (!address.ok()) return address.error();
  auto made = packet_socket();
  if (!made.ok()) return made.error();
  const auto* where = reinterpret_cast<const sockaddr*>(&address.value().socket);
  int failed;
  do {
    failed = ::connect(made.value().get(), where, address.value().length);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0) {
    return base::errno_error(errno, "cannot connect to the local socket '" + name + "'");
  }
  return made;
}

Result<Descriptor> accept_connection(int listener) {
  Descriptor made(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!made.valid()) return base::errno_error(errno, "cannot accept a connection");
  return made;
}

Result<Peer> peer_of(int connection) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return base::errno_error(errno, "cannot tell who connected");
  }
  return Peer{credentials.pid, credentials.uid};
}

Status send_packet(int connection, std::span<const std::byte> bytes,
                   std::span<const int> descriptors) {
  AMASIA_CHECK(descriptors.size() <= kMaxDescriptors, "the control buffer would overflow");
  iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(connection, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return base::errno_error(errno, "cannot send a packet");
  return base::ok();
}

Result<Packet> receive_packet(int connection, std::span<std::byte> buffer) {
  iovec vector{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t size;
  do {
    size = ::recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return base::errno_error(errno, "cannot receive a packet");
  Packet packet;
  packet.size = static_cast<std::size_t>(size);
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(head) + i * sizeof number, sizeof number);
      packet.descriptors.emplace_back(number);
    }
  }
  return packet;
}

Status die_when_closed(int pipe) {
  // The signal is the owner's, so children that inherit the description are not killed for us.
  if (::fcntl(pipe, F_SETOWN, ::getpid()) != 0 || ::fcntl(pipe, F_SETSIG, SIGKILL) != 0 ||
      ::fcntl(pipe, F_SETFL, O_ASYNC | O_NONBLOCK) != 0) {
    return base::errno_error(errno, "cannot watch the launcher");
  }
  // What happened before the line above raised no signal.
  pollfd now{pipe, POLLIN, 0};
  if (::poll(&now, 1, 0) > 0) ::kill(::getpid(), SIGKILL);
  return base::ok();
}

bool is_open(int descriptor) noexcept { return ::fcntl(descriptor, F_GETFD) != -1; }

Result<Pair> make_stream_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::errno_error(errno, "cannot make a pair of sockets");
  }
  return Pair{Descriptor(ends[0]), Descriptor(ends[1])};
}

Result<Pair> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error(errno, "cannot make a pipe");
  return Pair{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace amasia::os
