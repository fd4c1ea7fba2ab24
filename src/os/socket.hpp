// SPDX-License-Identifier: Apache-2.0
// Stream sockets between processes of one host.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

// Two connected stream sockets, both close-on-exec.
Result<std::pair<Descriptor, Descriptor>> make_socket_pair();

// Sends all of `bytes`, waiting while the peer's buffer is full, until CLOCK_MONOTONIC passes
// `deadline`. No SIGPIPE: a peer that is gone is an error. Any thread; blocks.
Status send_all(int socket, std::span<const std::byte> bytes, Nanos deadline);
// Fills `bytes`; an orderly end by the peer before that is an error too. Any thread; blocks.
Status receive_all(int socket, std::span<std::byte> bytes, Nanos deadline);

enum class Transfer { kSome, kWouldBlock, kClosed };
// One attempt that never waits. `*count` is how many bytes went over; kClosed also on errors, as a
// broken stream has nothing more to say.
Transfer receive_some(int socket, std::span<std::byte> bytes, std::size_t* count) noexcept;
Transfer send_some(int socket, std::span<const std::byte> bytes, std::size_t* count) noexcept;

}  // namespace amasia::os
