// SPDX-License-Identifier: Apache-2.0
// Packet sockets between processes of one host (SOCK_SEQPACKET, abstract addresses), which carry
// descriptors and tell who is at the other end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

// All descriptors made here are close-on-exec. An abstract address belongs to the network
// namespace of the calling thread and vanishes with its socket.
Result<Descriptor> listen_abstract(const std::string& name);
Result<Descriptor> connect_abstract(const std::string& name);
// A connection that waits, without blocking; an error with EAGAIN if there is none.
Result<Descriptor> accept_connection(int listener);

struct Peer {
  pid_t pid = 0;  // as seen from this process; 0 if it is in a namespace that we cannot see
  uid_t uid = 0;
};
// Who connected, as the kernel recorded it then.
Result<Peer> peer_of(int connection);

// One packet. Blocks only while the peer does not read. Never raises SIGPIPE.
Status send_packet(int connection, std::span<const std::byte> bytes,
                   std::span<const int> descriptors);

struct Packet {
  std::size_t size = 0;  // of the packet even if the buffer was smaller; 0: the peer is gone
  std::vector<Descriptor> descriptors;
};
Result<Packet> receive_packet(int connection, std::span<std::byte> buffer);

// Arranges that the kernel sends this process SIGKILL when `pipe`, the reading end of a pipe that
// nobody writes to, loses its last writer. Kills at once if that has happened already.
Status die_when_closed(int pipe);

bool is_open(int descriptor) noexcept;

// A connected pair of stream sockets, and a pipe {reading, writing}.
struct Pair {
  Descriptor first, second;
};
Result<Pair> make_stream_pair();
Result<Pair> make_pipe();

}  // namespace amasia::os
