// SPDX-License-Identifier: Apache-2.0
// The launcher's end of one node's bootstrap socket: whole messages in, whole messages out.
#pragma once

#include <functional>
#include <optional>

#include "fabric/bootstrap_wire.hpp"
#include "os/os.hpp"

namespace amasia::fabric {

class BootstrapConnection {
 public:
  explicit BootstrapConnection(int socket) : socket_(socket) {}

  bool is_open() const { return socket_.valid(); }
  int descriptor() const { return socket_.get(); }
  void close() { socket_.close(); }

  // Reads what has come, without waiting, and calls `take` for each whole message until it returns
  // an error. That, or a malformed stream, closes the connection and is returned. A client that
  // closes its end is no error.
  Status receive(const std::function<Status(BootstrapMessage)>& take);
  // Waits up to a second for a client that does not read, then closes the connection.
  void send(const BootstrapMessage& message);

 private:
  os::Descriptor socket_;
  BootstrapReader reader_;
};

}  // namespace amasia::fabric
