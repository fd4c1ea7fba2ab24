// SPDX-License-Identifier: Apache-2.0
#include "os/path_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace amasia::os {
namespace {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(sizeof address.sun_path == kMaxSocketPath + 1);
  if (path.empty() || path.size() > kMaxSocketPath) {
    return Error{fmt::format("the socket's path '{}' has {} bytes (allowed: 1 … {})", path,
                             path.size(), kMaxSocketPath),
                 ENAMETOOLONG};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<Descriptor> make_socket() {
  Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return base::errno_error(errno, "cannot make a local socket");
  return made;
}

}  // namespace

Result<Descriptor> listen_at_path(const std::string& path, mode_t permissions) {
  const auto address = address_of(path);
  if (!address.ok()) return address.error();
  auto made = make_socket();
  if (!made.ok()) return made;
  const int socket = made.value().get();
  // Nobody can connect between bind and chmod: it does not listen yet.
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address.value()),
             sizeof(sockaddr_un)) != 0) {
    return base::errno_error(errno, fmt::format("cannot make the socket '{}'", path));
  }
  if (::chmod(path.c_str(), permissions) != 0 || ::listen(socket, SOMAXCONN) != 0) {
    const int reason = errno;
    ::unlink(path.c_str());
    return base::errno_error(reason, fmt::format("cannot listen at '{}'", path));
  }
  return made;
}

Result<Descriptor> connect_to_path(const std::string& path) {
  const auto address = address_of(path);
  if (!address.ok()) return address.error();
  auto made = make_socket();
  if (!made.ok()) return made;
  if (::connect(made.value().get(), reinterpret_cast<const sockaddr*>(&address.value()),
                sizeof(sockaddr_un)) != 0) {
    if (errno == EAGAIN) {
      return Error{fmt::format("who listens at '{}' takes nobody in, and may be stopped", path),
                   EAGAIN};
    }
    return base::errno_error(errno, fmt::format("cannot connect to '{}'", path));
  }
  return made;
}

Status remove_left_socket(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return base::ok();
  if (!S_ISSOCK(found.st_mode)) {
    return Error{fmt::format("'{}' is there, and is no socket", path), ENOTSOCK};
  }
  ::unlink(path.c_str());
  return base::ok();
}

Result<std::string> path_of_socket(int descriptor) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return base::errno_error(errno, "not a socket");
  }
  if (address.sun_family != AF_UNIX || address.sun_path[0] == '\0') {
    return Error{"the socket has no path", EINVAL};
  }
  return std::string(address.sun_path);
}

bool peer_is_in_group(int connection, gid_t group) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 &&
      credentials.gid == group) {
    return true;
  }
  constexpr std::size_t kMost = 65536;  // NGROUPS_MAX
  for (std::size_t room = 64; room <= kMost; room *= 4) {
    std::vector<gid_t> groups(room);
    length = static_cast<socklen_t>(room * sizeof(gid_t));
    if (::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length) == 0) {
      groups.resize(length / sizeof(gid_t));
      return std::find(groups.begin(), groups.end(), group) != groups.end();
    }
    if (errno != ERANGE) return false;
  }
  return false;
}

Status set_nonblocking(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0) {
    return base::errno_error(errno, "cannot make a descriptor non-blocking");
  }
  return base::ok();
}

}  // namespace amasia::os
