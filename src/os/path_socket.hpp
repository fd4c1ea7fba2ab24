// SPDX-License-Identifier: Apache-2.0
// Packet sockets (packet_socket.hpp) whose address is a path, so that its permissions keep others
// out. All are close-on-exec and non-blocking: sending and receiving fail with EAGAIN instead of
// waiting.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

// The longest path that a Unix socket can have, in bytes.
inline constexpr std::size_t kMaxSocketPath = 107;

// Makes the socket with these permissions. EADDRINUSE where the path exists, ENAMETOOLONG where it
// is too long.
Result<Descriptor> listen_at_path(const std::string& path, mode_t permissions);
// Does not wait for the listener to accept. ENOENT or ECONNREFUSED where nobody listens, EAGAIN
// where its queue is full.
Result<Descriptor> connect_to_path(const std::string& path);

// Removes what a listener has left that was killed. ENOTSOCK where something else is there, which
// stays.
Status remove_left_socket(const std::string& path);

// The path that a socket has; an error for any other descriptor.
Result<std::string> path_of_socket(int descriptor);

// Whether who connected is in the group, as its own or a further one (SO_PEERCRED, SO_PEERGROUPS).
bool peer_is_in_group(int connection, gid_t group);
Status set_nonblocking(int descriptor);

}  // namespace amasia::os
